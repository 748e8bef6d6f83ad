#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Fails when tests/README.md lacks one of the forty kinds of mistakes, or names a test that does not exist."""

import re

import tree

GTEST = re.compile(r"^TEST(?:_F|_P)?\(\s*(\w+),\s*(\w+)\s*\)", re.MULTILINE)
ROW = re.compile(r"^\| (\d+) \| [^|]+ \| ([^|]+) \|$", re.MULTILINE)


def check(root):
    tests = set()
    for path in tree.source_files(root, {".cc"}, ("tests",)):
        tests.update(f"{suite}.{name}" for suite, name in GTEST.findall((root / path).read_text()))
    wrong, kinds = [], set()
    for number, cell in ROW.findall((root / "tests/README.md").read_text()):
        kinds.add(int(number))
        named = re.findall(r"`([^`]+)`", cell)
        if not named and not cell.startswith("none yet: "):
            wrong.append(f"tests/README.md: kind {number} has no test and does not say why")
        for name in named:
            if name not in tests and not (name.endswith(".hir") and (root / "tests" / name).is_file()):
                wrong.append(f"tests/README.md: kind {number}: there is no test {name}")
    wrong += [f"tests/README.md: kind {number} is missing" for number in range(1, 41) if number not in kinds]
    return wrong


if __name__ == "__main__":
    tree.main(check, __doc__)
