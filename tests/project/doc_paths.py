#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Fails on a text that names a file of the tree, as in `ir/graph.h`, that is not there.

Paths may leave out compiler/, compiler/passes/ and .h. Code blocks, build/ and names in capitals, which stand for
any name (DIR/report.json), are not looked at.
"""

import re

import tree

PATH = re.compile(r"`([\w.-]+/[\w./-]*\w/?)`")
ANY_NAME = re.compile(r"(^|/)(build/|[A-Z](/|$))|[A-Z]{2}(?!ADME|HANGELOG)")
PLACES = ("", "compiler", "compiler/passes")


def there(root, text, path):
    candidates = [root / place / path for place in PLACES] + [root / text.parent / path]
    return any(candidate.exists() or candidate.with_suffix(".h").exists() for candidate in candidates)


def check(root):
    texts = sorted(path.relative_to(root) for path in root.glob("*.md"))
    texts += tree.source_files(root, {".md"}, (*tree.TOP_FOLDERS, "docs"))
    return [f"{text}: there is no {path}"
            for text in texts
            for path in PATH.findall(re.sub(r"```.*?```", "", (root / text).read_text(), flags=re.S))
            if not ANY_NAME.search(path) and not there(root, text, path)]


if __name__ == "__main__":
    tree.main(check, __doc__)
