#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Runs the ```sh blocks of a guide, in order, in a copy of the source tree.

A block that fails fails the test. Each line of a ```text block must be in the output of the block before it. The
guide's `cmake --build build --target ...` is answered by this script: it compiles only what the guide added or changed
and links that into the targets, before the libraries that are built already.

    commands_test.py GUIDE --source DIR --build DIR
    commands_test.py --answer-cmake SOURCE BUILD ARGUMENTS...    (in the copy)
"""

import argparse
import json
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import tempfile

FENCE = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
COPIED = ("compiler", "tools", "docs", "tests/golden", "tests/project", ".clang-format")


def blocks(text):
    """[(number of the line, kind, body)] of the fenced blocks."""
    return [(text.count("\n", 0, match.start()) + 1, match[1], match[2]) for match in FENCE.finditer(text)]


def compile_command(source, build, path):
    """How `path` is compiled: as it is itself, or as its neighbours are when it is new."""
    entries = json.loads((build / "compile_commands.json").read_text())
    folder = str((source / path).parent)
    exact = [entry for entry in entries if entry["file"] == str(source / path)]
    entry = (exact or [entry for entry in entries if str(pathlib.Path(entry["file"]).parent) == folder])[0]
    words = shlex.split(entry["command"])
    words = [f"-I{os.getcwd()}" if word == f"-I{source}" else word for word in words]
    for option in ("-o", "-c"):
        at = words.index(option)
        del words[at : at + 2]
    return words


def link_command(build, target):
    lines = subprocess.run(["ninja", "-C", str(build), "-t", "commands", target],
                           capture_output=True, text=True, check=True).stdout.splitlines()
    return next(part for part in lines[-1].split(" && ") if f"-o {target} " in part)


def answer_cmake(source, build, arguments):
    objects = []
    here = pathlib.Path.cwd()
    for path in sorted(pathlib.Path("compiler").rglob("*.cc")):
        original = source / path
        if original.exists() and original.read_bytes() == path.read_bytes():
            continue
        objects.append(here / "build" / (path.stem + ".o"))
        command = compile_command(source, build, path) + ["-c", str(here / path), "-o", str(objects[-1])]
        subprocess.run(command, cwd=build, check=True)
    for name in arguments[arguments.index("--target") + 1 :]:
        target = f"bin/{name}" if name.startswith("hackc-") else f"tests/{name}"
        output = here / "build" / target
        output.unlink()
        words = shlex.split(link_command(build, target))
        first_library = next(i for i, word in enumerate(words) if word.endswith(".a"))
        words[first_library:first_library] = map(str, objects)
        words[words.index("-o") + 1] = str(output)
        subprocess.run(words, cwd=build, check=True)


def prepare(source, build, copy):
    for name in COPIED:
        if (source / name).is_dir():
            shutil.copytree(source / name, copy / name)
        elif (source / name).exists():
            shutil.copy(source / name, copy / name)
    for program in ("bin/hackc-opt", "tests/golden_test"):
        (copy / "build" / program).parent.mkdir(parents=True, exist_ok=True)
        (copy / "build" / program).symlink_to(build / program)
    programs = copy / "build/answers"
    programs.mkdir()
    (programs / "cmake").write_text(
        f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -B {shlex.quote(os.path.abspath(__file__))} '
        f'--answer-cmake {shlex.quote(str(source))} {shlex.quote(str(build))} "$@"\n')
    if not shutil.which("clang-format"):
        (programs / "clang-format").write_text("#!/bin/sh\n")  # order of includes is all that it would mend
    for program in programs.iterdir():
        program.chmod(0o755)
    return dict(os.environ, PATH=f"{programs}:{os.environ['PATH']}", HACKC_SOURCE_DIR=str(copy))


def run_guide(guide, source, build):
    found = blocks((source / guide).read_text())
    if not any(kind == "sh" for _, kind, _ in found):
        return [f"{guide}: no commands"]
    with tempfile.TemporaryDirectory() as folder:
        copy = pathlib.Path(folder)
        environment = prepare(source, build, copy)
        output = ""
        for line, kind, body in found:
            if kind == "sh":
                done = subprocess.run(["bash", "-euo", "pipefail", "-c", body], cwd=copy, env=environment, text=True,
                                      stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=240)
                output = done.stdout
                if done.returncode:
                    return [f"{guide}:{line}: exit code {done.returncode}\n{body}{output}"]
            elif kind == "text":
                missing = [text for text in body.splitlines() if text not in output]
                if missing:
                    return [f"{guide}:{line}: not in the output: {missing[0]}\n{output}"]
    return []


if __name__ == "__main__":
    if sys.argv[1:2] == ["--answer-cmake"]:
        answer_cmake(pathlib.Path(sys.argv[2]), pathlib.Path(sys.argv[3]), sys.argv[4:])
        sys.exit()
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("guide")
    parser.add_argument("--source", type=pathlib.Path, required=True)
    parser.add_argument("--build", type=pathlib.Path, required=True)
    options = parser.parse_args()
    wrong = run_guide(options.guide, options.source.resolve(), options.build.resolve())
    print("\n".join(wrong) or f"{options.guide}: every command does what it says")
    sys.exit(1 if wrong else 0)
