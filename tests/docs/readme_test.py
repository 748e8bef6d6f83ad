#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Runs the README's commands on programs of this build, each as it is written, but for those that need a GPU.

    readme_test.py --source DIR --build DIR

The server's line runs in the background, on an address of its own that the others get from $HACKC_SERVER; a digest that
the README leaves out is that of the program compiled before.
"""

import argparse
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time

PROGRAM = "build/bin/"
# A report has times where a GPU took them.
EXPECTED = {"hackc-client report out": (1, "holds no times; they come from a server that was started with --gpu")}


def commands(text):
    """The lines of the README's shell blocks that run a program of the build, without their comments."""
    blocks = re.findall(r"^```sh\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    lines = [line.split(" #")[0].strip() for block in blocks for line in block.splitlines()]
    return [line for line in lines if line.startswith(PROGRAM)]


def start_server(command, folder, environment):
    port = folder / "port"
    server = subprocess.Popen([*command.split(), "--listen", environment["HACKC_SERVER"], "--port-file", port],
                              cwd=folder, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    end = time.monotonic() + 60
    while not port.exists() and server.poll() is None and time.monotonic() < end:
        time.sleep(0.05)
    return server


def run_all(lines, folder, environment):
    """What went wrong, by line."""
    wrong, server, digest = [], None, ""
    try:
        for line in lines:
            name = line.removeprefix(PROGRAM)
            if name.startswith("hackc-server"):
                server = start_server(line, folder, environment)
                continue
            if name.startswith("hackc-client run "):
                continue  # needs a GPU and a model's weights
            done = subprocess.run(["bash", "-c", line.replace("sha256:...", digest)], cwd=folder, env=environment,
                                  capture_output=True, text=True)
            code, said = EXPECTED.get(name, (0, ""))
            if done.returncode != code or said not in done.stderr:
                wrong.append(f"{line}\n  exit code {done.returncode}: {done.stderr.strip()[-500:]}")
            digest = next(iter(re.findall(r"sha256:[0-9a-f]{64}", done.stdout)), digest)
    finally:
        if server is not None:
            server.terminate()
            server.wait()
    return wrong


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--source", type=pathlib.Path, required=True)
    parser.add_argument("--build", type=pathlib.Path, required=True)
    options = parser.parse_args()
    lines = commands((options.source / "README.md").read_text())
    if not any("hackc-server" in line for line in lines) or len(lines) < 8:
        sys.exit("README.md: the commands are not found")
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        for link, target in (("build", options.build), ("models", options.source / "models"),
                             ("tests", options.source / "tests")):
            (folder / link).symlink_to(target.resolve())
        environment = dict(os.environ, HACKC_SERVER=f"unix:{folder}/socket", XDG_CACHE_HOME=str(folder / "cache"))
        wrong = run_all(lines, folder, environment)
    print("\n".join(wrong) or f"README.md: {len(lines)} commands do what they say")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
