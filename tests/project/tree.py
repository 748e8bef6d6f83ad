# SPDX-License-Identifier: MIT
"""The files that the project checks read, and how a check ends.

A check is a function from a tree's root to a list of lines, one for each thing wrong; main() prints
them and exits 1 if there are any.
"""

import argparse
import pathlib
import sys

TOP_FOLDERS = (
    "proto", "base", "compiler", "cache", "server", "client", "tools", "cmake", "deploy", "models", "bench", "tests",
    ".ci",
)


def source_files(root, suffixes=None, folders=TOP_FOLDERS):
    """Paths relative to root, sorted; of every kind, or of those with the given suffixes."""
    found = []
    for folder in folders:
        for path in sorted((root / folder).rglob("*")):
            relative = path.relative_to(root)
            hidden = any(part == "__pycache__" or part.startswith("build") for part in relative.parts[:-1])
            if path.is_file() and not path.is_symlink() and not hidden:
                if suffixes is None or path.suffix in suffixes:
                    found.append(relative)
    return found


def main(check, description):
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--root", type=pathlib.Path, default=pathlib.Path(__file__).resolve().parents[2])
    root = parser.parse_args().root
    wrong = check(root)
    for line in wrong:
        print(line)
    sys.exit(1 if wrong else 0)
