#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Prints the size of each room and fails when compiler/ or a single file outgrows its budget.

Small is one of the three promises: a person can read the compiler in some days. The budget counts lines of code: a
blank line or one that holds only a comment costs nothing, since the style asks for headers that explain themselves.
The interpreters are printed but not counted: they are the oracle that tests hold the compiler against, and the
server does not link them.
"""

import tree

COMPILER_CODE_LINES = 15000
ORACLE = "compiler/interp"
FILE_LINES = 700  # all lines: a file above this does more than one job


def is_code(line):
    text = line.strip()
    return bool(text) and not text.startswith("//")


def check(root):
    wrong = []
    rooms = {}  # name -> (lines of code, all lines)
    for path in tree.source_files(root, {".h", ".cc"}, ("base", "compiler", "cache", "server", "client", "tools")):
        lines = (root / path).read_text().splitlines()
        room = "/".join(path.parts[: 2 if path.parts[0] == "compiler" and len(path.parts) > 2 else 1])
        code, total = rooms.get(room, (0, 0))
        rooms[room] = (code + sum(map(is_code, lines)), total + len(lines))
        if len(lines) > FILE_LINES:
            wrong.append(f"{path}: {len(lines)} lines, more than {FILE_LINES}: split it by job")
    print("  code  total room")
    for room, (code, total) in rooms.items():
        print(f"{code:6} {total:6} {room}")
    compiler = [sizes for room, sizes in rooms.items()
                if room.split("/")[0] == "compiler" and room != ORACLE]
    code, total = (sum(column) for column in zip((0, 0), *compiler))
    print(f"{code:6} {total:6} compiler/ without its interpreters, of {COMPILER_CODE_LINES} lines of code")
    if code > COMPILER_CODE_LINES:
        wrong.append(f"compiler/ has {code} lines of code, more than {COMPILER_CODE_LINES}")
    return wrong


if __name__ == "__main__":
    tree.main(check, __doc__)
