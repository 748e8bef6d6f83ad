#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A failing compile leaves a file that hackc-opt runs into the same failure; plug-ins bring the failures.

    replay_test.py BIN_DIR FAULTY_PASSES_SO
"""

import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import time
import unittest

os.environ["ASAN_OPTIONS"] = "handle_segv=0"  # a sanitizer makes an exit of a crash otherwise

SOURCE = pathlib.Path(__file__).resolve().parents[2]
MODEL = SOURCE / "tests" / "data" / "golden" / "llama"
PLUGIN = pathlib.Path(sys.argv.pop(2))
BIN = pathlib.Path(sys.argv.pop(1))


def run(program, *arguments, fault=""):
    return subprocess.run([BIN / program, *arguments], capture_output=True, text=True,
                          env=dict(os.environ, HACKC_TEST_FAULT=fault))


class Server:
    def __init__(self, folder, fault, plugin=True):
        port_file = folder / "port"
        command = [BIN / "hackc-server", "--listen", "127.0.0.1:0", "--port-file", port_file, "--workers", "1",
                   "--cache-dir", folder / "cache", "--replay-dir", folder / "replay"]
        if plugin:
            command += ["--pass-plugin", PLUGIN]
        with open(folder / "log", "ab") as log:
            self.process = subprocess.Popen(command, stderr=log, env=dict(os.environ, HACKC_TEST_FAULT=fault))
        for _ in range(1200):
            if port_file.exists() or self.process.poll() is not None:
                break
            time.sleep(0.05)
        assert port_file.exists(), (folder / "log").read_text()
        self.address = f"127.0.0.1:{port_file.read_text().strip()}"

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(timeout=60)

    def submit(self):
        return run("hackc-client", "submit", MODEL, "--server", self.address, "--dtype", "float32", "--seq", "1..16")


class ReplayTest(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory(prefix="hackc-replay-")
        self.addCleanup(scratch.cleanup)
        self.folder = pathlib.Path(scratch.name)

    def check_fault(self, fault, message, exit_code, first_line):
        """Fails in a worker process, and again from the file that it left."""
        with Server(self.folder, fault) as server:
            failed = server.submit()
        self.assertNotEqual(failed.returncode, 0)
        self.assertIn(message, failed.stderr)
        path = re.search(rf"to see it again: hackc-opt --pass-plugin {PLUGIN} (\S+)", failed.stderr)
        self.assertTrue(path, failed.stderr)
        path = pathlib.Path(path[1])
        self.assertEqual(path.parent, self.folder / "replay")
        self.assertRegex(path.read_text().splitlines()[0], f"^{first_line}$")
        again = run("hackc-opt", "--pass-plugin", PLUGIN, path, fault=fault)
        self.assertEqual(again.returncode, exit_code, again.stderr)
        self.assertEqual(again.stdout, "")
        mended = run("hackc-opt", "--pass-plugin", PLUGIN, path)
        self.assertEqual(mended.returncode, 0, mended.stderr)
        return again.stderr

    def test_a_pass_of_the_model_throws(self):
        again = self.check_fault("tensor throws", "pass faulty_tensor: ", 3, "# pass: faulty_tensor  verify: yes  target: sm_90a")
        self.assertIn("hackc-opt: pass faulty_tensor: ", again)
        self.assertIn("on purpose", again)

    def test_a_pass_of_all_kernels_throws(self):
        again = self.check_fault("loops throw", "pass faulty_loops: ", 3,
                                 "# pass: lower_tensor,.*,faulty_loops  verify: yes  target: sm_90a")
        self.assertIn("hackc-opt: pass faulty_loops: ", again)

    def test_a_pass_of_a_kernel_refuses(self):
        again = self.check_fault("tile refuses", "pass faulty_tile, kernel ", 3, "# pass: faulty_tile  verify: yes  target: sm_90a")
        self.assertIn("on purpose", again)

    def test_a_pass_leaves_wrong_ir(self):
        again = self.check_fault("kernel is wrong", "left wrong IR:", 1, "# pass: faulty_kernel  verify: yes  target: sm_90a")
        self.assertIn("hackc-opt: after faulty_kernel: ", again)
        self.assertIn("4096", again)

    def test_a_program_cannot_be_built(self):
        again = self.check_fault("program contradicts itself", "program: ", 3, "# pass: program  verify: yes  target: sm_90a")
        self.assertIn("value %nothing is not defined before its use", again)

    def test_a_pass_takes_its_process_with_it(self):
        self.check_fault("tile crashes", "planning the program: the worker was lost, twice: ", -signal.SIGSEGV,
                         "# pass: program  target: sm_90a  dtype: float32  batch: 1..1  seq: 1..16  past: 0..0")

    def test_a_plugin_is_part_of_the_key(self):
        with Server(self.folder, "", plugin=False) as server:
            self.assertEqual(server.submit().returncode, 0)
        (self.folder / "port").unlink()
        with Server(self.folder, "tensor throws") as server:
            self.assertNotEqual(server.submit().returncode, 0)  # not from the cache of a server without it

    def test_what_is_no_plugin_is_refused(self):
        refused = run("hackc-opt", "--pass-plugin", SOURCE / "README.md", "--list-passes")
        self.assertEqual(refused.returncode, 2)
        self.assertIn("hackc-opt: pass plug-in ", refused.stderr)
        passes = run("hackc-opt", "--pass-plugin", PLUGIN, "--list-passes").stdout
        self.assertRegex(passes, r"dead_values +tensor -> tensor\nfaulty_tensor +tensor -> tensor\n")


if __name__ == "__main__":
    unittest.main(verbosity=2)
