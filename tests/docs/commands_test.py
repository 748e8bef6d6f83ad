#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Runs the ```sh blocks of a guide, in order, in a copy of the source tree.

A block that fails fails the test. Each line of a ```text block must be in the output of the block before it. The
guide's `cmake --build build --target ...` is answered by this script: it compiles only what the guide added or changed,
and what includes that, and links it into the targets, before the libraries that are built already. Without optimisation:
the statement tree's header alone means 80 files.

    commands_test.py GUIDE --source DIR --build DIR
    commands_test.py --answer-cmake SOURCE BUILD ARGUMENTS...    (in the copy)
"""

import argparse
import concurrent.futures
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import tempfile

FENCE = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
COPIED = ("base", "compiler", "tools", "docs", "tests/golden", "tests/invalid", "tests/data", "tests/project",
          ".clang-format")
PROGRAMS = ("bin/hackc-opt", "bin/hackc-golden", "tests/golden_test")


def blocks(text):
    """[(number of the line, kind, body)] of the fenced blocks."""
    return [(text.count("\n", 0, match.start()) + 1, match[1], match[2]) for match in FENCE.finditer(text)]


def ninja(build, *arguments):
    return subprocess.run(["ninja", "-C", str(build), "-t", *arguments], capture_output=True, text=True,
                          check=True).stdout.splitlines()


def compile_commands(build, targets):
    """{object: words of its command} of all that the targets are linked from."""
    lines = [line for target in targets for line in ninja(build, "commands", target) if " -c " in line]
    split = [shlex.split(line) for line in lines]
    return {words[words.index("-o") + 1]: words for words in split}


def link_command(build, target):
    command = ninja(build, "commands", target)[-1]
    return shlex.split(next(part for part in command.split(" && ") if f"-o {target} " in part))


def dependencies(build):
    """{object: the files that it was made from}."""
    found = {}
    for line in ninja(build, "deps"):
        if line.startswith("    "):
            found[current].add(os.path.normpath(build / line.strip()))
        elif ": #deps" in line:
            current = line.split(": #deps")[0]
            found[current] = set()
    return found


def adapt(words, source, copy, file, output):
    """The words of a compile command for a file of the copy; headers that were not copied are the source's."""
    words = list(words)
    for option in ("-o", "-c", "-MT", "-MF"):
        if option in words:
            at = words.index(option)
            del words[at : at + 2]
    words.insert(words.index(f"-I{source}"), f"-I{copy}")
    return words + ["-O0", "-c", str(file), "-o", str(output)]


def answer_cmake(source, build, arguments):
    copy = pathlib.Path.cwd()
    names = arguments[arguments.index("--target") + 1 :]
    targets = [f"bin/{name}" if name.startswith("hackc-") else f"tests/{name}" for name in names]
    commands = compile_commands(build, targets)
    changed = [path for room in ("compiler", "tools") for path in sorted(pathlib.Path(room).rglob("*.*"))
               if path.suffix in (".h", ".cc")
               and not ((source / path).exists() and (source / path).read_bytes() == path.read_bytes())]
    stale = {str(source / path) for path in changed}
    todo = {}  # object of the build -> (command, object of the copy)
    for name, files in dependencies(build).items():
        if name in commands and files & stale:
            original = pathlib.Path(commands[name][-1])
            file = copy / original.relative_to(source)
            if not file.exists():  # a room that was not copied
                file = original
            output = copy / "build/objects" / name
            todo[name] = (adapt(commands[name], source, copy, file, output), output)
    for path in changed:  # a new file is compiled as its neighbours are
        if path.suffix == ".cc" and not (source / path).exists():
            neighbour = next(words for words in commands.values()
                             if pathlib.Path(words[-1]).parent == (source / path).parent)
            output = copy / "build/objects" / path.with_suffix(".o")
            todo[str(path)] = (adapt(neighbour, source, copy, copy / path, output), output)

    newest = max((path.stat().st_mtime_ns for path in changed), default=0)

    def compile_one(item):
        command, output = item
        if output.exists() and output.stat().st_mtime_ns > newest:
            return
        output.parent.mkdir(parents=True, exist_ok=True)
        # ccache sees the same paths in each copy.
        subprocess.run(command, cwd=copy / "build", check=True, env=dict(os.environ, CCACHE_BASEDIR=str(copy)))

    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        list(pool.map(compile_one, todo.values()))
    for target in targets:
        output = copy / "build" / target
        output.unlink()
        words = link_command(build, target)
        first_library = next(i for i, word in enumerate(words) if word.endswith(".a"))
        words = [str(todo[word][1]) if word in todo else word for word in words]
        objects = [str(made) for name, (_, made) in todo.items() if str(made) not in words]
        words[first_library:first_library] = objects
        words[words.index("-o") + 1] = str(output)
        subprocess.run(words, cwd=build, check=True)


def prepare(source, build, copy):
    for name in COPIED:
        if (source / name).is_dir():
            shutil.copytree(source / name, copy / name)
        elif (source / name).exists():
            shutil.copy(source / name, copy / name)
    for program in PROGRAMS:
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
                                      stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=800)
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
        try:
            answer_cmake(pathlib.Path(sys.argv[2]), pathlib.Path(sys.argv[3]), sys.argv[4:])
        except subprocess.CalledProcessError as error:  # what it printed says more than its words
            sys.exit(error.returncode)
        sys.exit()
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("guide")
    parser.add_argument("--source", type=pathlib.Path, required=True)
    parser.add_argument("--build", type=pathlib.Path, required=True)
    options = parser.parse_args()
    wrong = run_guide(options.guide, options.source.resolve(), options.build.resolve())
    print("\n".join(wrong) or f"{options.guide}: every command does what it says")
    sys.exit(1 if wrong else 0)
