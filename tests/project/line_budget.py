#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Prints the size of each room and fails when compiler/ or a single file outgrows its budget.

Small is one of the three promises: a person can read the compiler in some days.
"""

import tree

COMPILER_LINES = 15000
FILE_LINES = 700  # a file above this does more than one job


def check(root):
    wrong = []
    rooms = {}
    for path in tree.source_files(root, {".h", ".cc"}, ("compiler", "cache", "server", "client")):
        lines = len((root / path).read_text().splitlines())
        room = "/".join(path.parts[: 2 if path.parts[0] == "compiler" and len(path.parts) > 2 else 1])
        rooms[room] = rooms.get(room, 0) + lines
        if lines > FILE_LINES:
            wrong.append(f"{path}: {lines} lines, more than {FILE_LINES}: split it by job")
    for room, lines in rooms.items():
        print(f"{lines:6} {room}")
    total = sum(lines for room, lines in rooms.items() if room.split("/")[0] == "compiler")
    print(f"{total:6} of {COMPILER_LINES} lines in all of compiler/")
    if total > COMPILER_LINES:
        wrong.append(f"compiler/ has {total} lines, more than {COMPILER_LINES}")
    return wrong


if __name__ == "__main__":
    tree.main(check, __doc__)
