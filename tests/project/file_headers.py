#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Fails on a source file without its licence line, on a header without #pragma once or opening comment, and on a
comment of C++ or protobuf beyond 100 columns, which clang-format leaves alone."""

import itertools
import re

import tree

SUFFIXES = {".h", ".cc", ".cu", ".proto", ".py", ".cmake", ".sh", ".service"}
LICENCE = "SPDX-License-Identifier: MIT"
COLUMNS = 100
COMMENT = re.compile(r"^\s*//(?!.*://)|[;{}]\s+// ")  # not one with an address, which has no place to break


def is_source(root, path):
    if path.suffix in SUFFIXES or path.name == "CMakeLists.txt":
        return True
    if path.suffix:
        return False
    with open(root / path, "rb") as file:
        return file.read(2) == b"#!"


def check(root):
    wrong = []
    for path in tree.source_files(root):
        if not is_source(root, path):
            continue
        lines = (root / path).read_text().splitlines()
        first = lines[1:2] if lines and lines[0].startswith("#!") else lines[:1]
        if not first or LICENCE not in first[0]:
            wrong.append(f"{path}: the first line (after any #!) must say {LICENCE}")
        if path.suffix in (".h", ".cc", ".proto"):
            wrong += [f"{path}: line {number} is a comment of {len(line)} columns; expected at most {COLUMNS}"
                      for number, line in enumerate(lines, 1) if len(line) > COLUMNS and COMMENT.search(line)]
        if path.suffix == ".h":
            if "#pragma once" not in lines:
                wrong.append(f"{path}: no #pragma once")
            if not any(re.match(r"//\s*\w", line) for line in lines[1:2]):
                wrong.append(f"{path}: line 2 must say what the header is for")
            opening = itertools.takewhile(lambda line: line.startswith("//"), lines)
            if path.parts[0] != "tests" and not any("hread" in line for line in opening):
                wrong.append(f"{path}: the opening comment must say what threads may do with it")
    return wrong


if __name__ == "__main__":
    tree.main(check, __doc__)
