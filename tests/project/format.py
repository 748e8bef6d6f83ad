#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Fails on C++ that clang-format would change; exits 77 (skipped) where clang-format 14 is not installed.

Releases of clang-format disagree in details, so only Debian 12's judges. To mend what it finds:
    git ls-files '*.h' '*.cc' | xargs clang-format -i
"""

import re
import shutil
import subprocess
import sys

import tree

RELEASE = "14"


def clang_format():
    """The program's path, or None; the second value is why."""
    for name in (f"clang-format-{RELEASE}", "clang-format"):
        program = shutil.which(name)
        if program:
            version = subprocess.run([program, "--version"], capture_output=True, text=True).stdout
            if re.search(rf"version {RELEASE}\.", version):
                return program, ""
    return None, f"no clang-format {RELEASE} here"


def check(root):
    program, why = clang_format()
    if not program:
        print(f"skipped: {why}")
        sys.exit(77)
    files = tree.source_files(root, {".h", ".cc"})
    if not files:
        return []
    command = [program, "--style=file", "--dry-run", "-Werror", *map(str, files)]
    output = subprocess.run(command, cwd=root, capture_output=True, text=True).stderr
    return sorted({
        f"{file}: not as clang-format writes it; run clang-format -i on it"
        for file in re.findall(r"^([^\s:]+):\d+:\d+: error: code should be clang-formatted", output, re.M)
    })


if __name__ == "__main__":
    tree.main(check, __doc__)
