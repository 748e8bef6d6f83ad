#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""deploy/find-cuda's choice among made-up toolkits, and what deploy/install-deps says and does with
made-up dpkg, apt, sudo and pip: nothing is installed by these tests."""

import os
import pathlib
import subprocess
import tempfile
import unittest

DEPLOY = pathlib.Path(__file__).resolve().parents[2] / "deploy"
# The scripts' own tools; everything else in a test's PATH is made up.
TOOLS = (
    "bash", "env", "dirname", "readlink", "uname", "sed", "grep", "cat", "mktemp", "rm", "mv", "tail", "printf",
)


class DeployTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        self.bin = self.root / "bin"
        self.bin.mkdir()
        for tool in TOOLS:
            for place in ("/usr/bin", "/bin"):
                if os.path.exists(f"{place}/{tool}"):
                    (self.bin / tool).symlink_to(f"{place}/{tool}")
                    break
        self.log = self.root / "log"

    def command(self, name, body):
        """Puts a made-up command on the PATH; it notes its arguments in self.log."""
        path = self.bin / name
        path.write_text(f'#!/bin/bash\necho "{name} $*" >> {self.log}\n{body}\n')
        path.chmod(0o755)

    def toolkit(self, name, version=13000, header="nvrtc.h", library="lib64/libnvrtc.so"):
        root = self.root / name
        for path in ("include/cuda.h", f"include/{header}", library):
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_text("")
        (root / "include/cuda.h").write_text(f"#define CUDA_VERSION {version}\n")
        return root

    def run_script(self, name, *arguments, **environment):
        return subprocess.run(
            [DEPLOY / name, *map(str, arguments)], env={"PATH": str(self.bin), **environment},
            stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)

    def logged(self):
        return self.log.read_text() if self.log.exists() else ""

    # find-cuda

    def find(self, *folders, **environment):
        result = self.run_script("find-cuda", "--why", *folders, **environment)
        return result.returncode, result.stdout.splitlines(), result.stderr

    def test_cuda_home_comes_before_the_path(self):
        home, other = self.toolkit("home"), self.toolkit("other")
        self.command("nvcc", "")
        (self.bin / "nvcc").rename(self.root / "other/nvcc")
        (other / "bin").mkdir()
        (other / "nvcc").rename(other / "bin/nvcc")
        (self.bin / "nvcc").symlink_to(other / "bin/nvcc")
        code, lines, _ = self.find(CUDA_HOME=str(home))
        self.assertEqual((code, lines), (0, [f"{home}/include", f"{home}/lib64/libnvrtc.so"]))
        code, lines, _ = self.find()
        self.assertEqual((code, lines), (0, [f"{other}/include", f"{other}/lib64/libnvrtc.so"]))

    def test_unusable_toolkits_are_passed_over_with_the_reason(self):
        old = self.toolkit("old", version=12040)
        bare = self.toolkit("bare", library="lib64/libnvrtc-builtins.so")
        headless = self.toolkit("headless", header="other.h")
        wheels = self.toolkit("wheels", library="lib/libnvrtc.so.13")
        for first, reason in (
            (old, "CUDA_VERSION 12040 is below 12080"),
            (bare, "no libnvrtc.so"),
            (headless, "no include/nvrtc.h"),
        ):
            with self.subTest(first=first.name):
                _, lines, reasons = self.find(wheels, CUDA_HOME=str(first))
                self.assertIn(f"  {first}: {reason}\n", reasons)
                if not os.path.exists("/usr/local/cuda"):
                    self.assertEqual(lines, [f"{wheels}/include", f"{wheels}/lib/libnvrtc.so.13"])

    # install-deps

    def install(self, installed="", root=True, **environment):
        """Runs install-deps where `installed` is the shell test that says whether package $1 is there."""
        self.command("dpkg-query", f"""
            shift 3  # -W -f FORMAT
            for package; do set -- "$package"; if {installed}; then echo "$1 installed"; fi; done""")
        self.command("id", "echo 0" if root else "echo 1000")
        environment.setdefault("CUDA_HOME", str(self.toolkit("cuda")))
        return self.run_script("install-deps", "--cuda-dir", self.root / "wheels", **environment)

    def test_nothing_missing_runs_no_apt(self):
        self.command("apt-get", "exit 1")
        result = self.install("true")
        self.assertEqual((result.returncode, result.stdout, result.stderr), (0, "", ""))
        self.assertNotIn("apt-get", self.logged())

    def test_installs_only_what_is_missing(self):
        self.command("apt-get", f"""
            case $* in *install*) > {self.root}/done ;; esac""")
        result = self.install(f"[[ $1 != cmake || -e {self.root}/done ]]")
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        self.assertEqual(result.stdout, "install-deps: installing cmake\n")
        self.assertIn("install -y --no-install-recommends cmake\n", self.logged())

    def test_without_ccache_the_build_goes_on(self):
        self.command("apt-get", "exit 100")
        result = self.install("[[ $1 != ccache ]]")
        self.assertEqual(result.returncode, 0)

    def test_package_that_apt_does_not_know(self):
        self.command("apt-get", "exit 100")
        self.command("apt-cache", "exit 100")
        result = self.install("[[ $1 != libgrpc++-dev ]]")
        self.assertEqual(result.returncode, 1)
        self.assertIn("install-deps: apt knows no package named: libgrpc++-dev\n", result.stderr)

    def test_package_that_does_not_install(self):
        self.command("apt-get", "exit 100")
        self.command("apt-cache", "exit 0")
        result = self.install("[[ $1 != libgrpc++-dev ]]")
        self.assertEqual(result.returncode, 1)
        self.assertIn("install-deps: apt could not install: libgrpc++-dev\n", result.stderr)
        self.assertIn("apt-get install --no-install-recommends libgrpc++-dev\n", result.stderr)

    def test_not_root_and_no_sudo(self):
        self.command("apt-get", "exit 0")
        result = self.install("[[ $1 != cmake ]]", root=False)
        self.assertEqual(result.returncode, 1)
        self.assertIn("needs root (no sudo here): cmake\n", result.stderr)
        self.assertIn("as root: apt-get update && apt-get install --no-install-recommends cmake\n", result.stderr)
        self.assertNotIn("apt-get", self.logged())

    def test_not_root_with_sudo(self):
        self.command("apt-get", f"""
            case $* in *install*) > {self.root}/done ;; esac""")
        self.command("sudo", 'shift; "$@"')
        result = self.install(f"[[ $1 != cmake || -e {self.root}/done ]]", root=False)
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        self.assertIn("sudo -n env DEBIAN_FRONTEND=noninteractive apt-get", self.logged())

    def test_no_apt(self):
        result = self.run_script("install-deps")
        self.assertEqual(result.returncode, 1)
        self.assertIn("install-deps: no apt here;", result.stderr)
        self.assertIn("libgrpc++-dev", result.stderr)

    @unittest.skipIf(os.path.exists("/usr/local/cuda"), "this machine's own toolkit would be found")
    def test_no_toolkit_and_no_wheels(self):
        self.command("apt-get", "exit 0")
        self.command("python3", '[[ $* == *--version ]]')
        result = self.install("true", CUDA_HOME="/nowhere")
        self.assertEqual(result.returncode, 1)
        self.assertIn("install-deps: the wheels of deploy/cuda-wheels.txt could not be downloaded", result.stderr)
        self.assertIn("set CUDA_HOME", result.stderr)


if __name__ == "__main__":
    unittest.main()
