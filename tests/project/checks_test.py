#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Proves of each project check that it fails on what it is there for, and on nothing else."""

import contextlib
import io
import pathlib
import tempfile
import unittest

import bug_kinds
import doc_paths
import file_headers
import format as format_check
import include_direction
import line_budget

CC = "// SPDX-License-Identifier: MIT\n"
HEADER = CC + "// What it is for. Thread safety: pure.\n#pragma once\n"


class ChecksTest(unittest.TestCase):
    def run_on(self, check, files):
        """The check's lines on a tree of the given files, and what it printed besides."""
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            for name, text in files.items():
                (root / name).parent.mkdir(parents=True, exist_ok=True)
                (root / name).write_text(text)
            printed = io.StringIO()
            with contextlib.redirect_stdout(printed):
                wrong = check(root)
            return wrong, printed.getvalue()

    def include(self, source, target):
        files = {source: f'#include "{target}"\n'}
        # The table of passes: fuse, unroll and stage are passes, parts.h is not.
        table = "".join(f'#include "compiler/passes/{name}.h"\n' for name in ("loop/fuse", "loop/unroll", "tile/stage"))
        files.setdefault("compiler/passes/table.cc", table)
        return self.run_on(include_direction.check, files)[0]

    def test_bug_kinds(self):
        rows = "".join(f"| {number} | a kind | `Suite.Name` |\n" for number in range(1, 41))
        tests = {"tests/a_test.cc": "TEST_F(Suite,\n       Name) {}\nTEST(Suite, Other) {}\n", "tests/invalid/a.hir": ""}
        run = lambda table: self.run_on(bug_kinds.check, {**tests, "tests/README.md": table})[0]
        self.assertEqual(run(rows), [])
        self.assertEqual(run(rows.replace("| 7 | a kind | `Suite.Name` |", "| 7 | a kind | `Suite.Gone` `invalid/a.hir` |")),
                         ["tests/README.md: kind 7: there is no test Suite.Gone"])
        self.assertEqual(run(rows.replace("| 7 | a kind | `Suite.Name` |", "| 7 | a kind | `invalid/b.hir` |")),
                         ["tests/README.md: kind 7: there is no test invalid/b.hir"])
        self.assertEqual(run(rows.replace("| 7 | a kind | `Suite.Name` |", "| 7 | a kind | later |")),
                         ["tests/README.md: kind 7 has no test and does not say why"])
        self.assertEqual(run(rows.replace("| 7 | a kind | `Suite.Name` |", "| 7 | a kind | none yet: no such code |")), [])
        self.assertEqual(run(rows.replace("| 40 |", "| 41 |")), ["tests/README.md: kind 40 is missing"])

    def test_doc_paths(self):
        files = {"compiler/ir/graph.h": HEADER, "tests/a/b.py": "", "docs/notes.txt": ""}
        text = "`ir/graph.h` `ir/graph` `tests/a/` `docs/notes.txt` `build/x/y` `tests/R/a` `DIR/report.json` `a * b/c`\n"
        run = lambda more: self.run_on(doc_paths.check, {**files, "docs/text.md": text + more})[0]
        self.assertEqual(run("```sh\nx `ir/gone.h`\n```\n"), [])
        self.assertEqual(run("`ir/gone.h` `tests/a/c.py`"),
                         ["docs/text.md: there is no ir/gone.h", "docs/text.md: there is no tests/a/c.py"])

    def test_forbidden_includes(self):
        for source, target in (
            ("compiler/support/text.h", "compiler/ir/expr.h"),
            ("base/json_text.cc", "compiler/ir/expr.h"),
            ("compiler/ir/expr.cc", "base/json_text.h"),
            ("server/engine.cc", "base/json_text.h"),
            ("compiler/ir/expr.cc", "compiler/passes/pass.h"),
            ("compiler/ir/expr.cc", "compiler/interp/interp.h"),
            ("compiler/interp/loop.cc", "compiler/passes/loop/fuse.h"),
            ("compiler/interp/loop.cc", "compiler/codegen/emit.h"),
            ("compiler/frontend/config.cc", "compiler/schedule/target.h"),
            ("compiler/passes/loop/fuse.cc", "compiler/passes/loop/unroll.h"),
            ("compiler/passes/loop/fuse.cc", "compiler/passes/tile/stage.h"),
            ("compiler/passes/loop/parts.cc", "compiler/passes/loop/unroll.h"),
            ("compiler/passes/tile/stage.cc", "compiler/passes/loop/parts.h"),
            ("compiler/passes/loop/fuse.cc", "compiler/schedule/cost.h"),
            ("compiler/schedule/cost.cc", "cuda.h"),
            ("compiler/schedule/cost.cc", "compiler/passes/pass.h"),
            ("compiler/codegen/emit.cc", "nvrtc.h"),
            ("compiler/toolchain/nvrtc.cc", "compiler/ir/expr.h"),
            ("compiler/compile.cc", "nvrtc.h"),
            ("compiler/compile.cc", "cache/store.h"),
            ("compiler/compile.cc", "sqlite3.h"),
            ("compiler/program/plan.cc", "hackc/v1/program.pb.h"),
            ("compiler/program/plan.cc", "proto/hackc/v1/program.pb.h"),
            ("compiler/program/plan.cc", "grpcpp/grpcpp.h"),
            ("compiler/frontend/config.cc", "google/protobuf/struct.pb.h"),
            ("compiler/compile.h", "server/engine.h"),
            ("tools/opt/opt.cc", "server/engine.h"),
            ("compiler/compile.cc", "tools/opt/unit.h"),
            ("cache/key.cc", "compiler/compile.h"),
            ("cache/key.cc", "hackc/v1/model.pb.h"),
            ("cache/key.cc", "grpcpp/grpcpp.h"),
            ("server/engine.cc", "compiler/ir/expr.h"),
            ("server/engine.cc", "compiler/program/buffers.h"),
            ("server/engine.cc", "sqlite3.h"),
            ("server/engine.cc", "client/client.h"),
            ("client/runtime/load.cc", "compiler/compile.h"),
            ("client/runtime/load.cc", "server/engine.h"),
            ("client/runtime/load.cc", "cache/store.h"),
            ("client/cli/submit.cc", "server/queue.h"),
        ):
            with self.subTest(source=source, target=target):
                wrong = self.include(source, target)
                self.assertEqual(len(wrong), 1)
                self.assertTrue(wrong[0].startswith(f"{source}:1: includes {target}: "), wrong[0])

    def test_allowed_includes(self):
        for source, target in (
            ("compiler/ir/expr.cc", "compiler/support/status_macros.h"),
            ("cache/store.cc", "compiler/support/status_macros.h"),
            ("compiler/frontend/config.cc", "base/json_text.h"),
            ("client/runtime/load.cc", "base/json_text.h"),
            ("compiler/ir/expr.cc", "absl/status/status.h"),
            ("compiler/passes/loop/fuse.cc", "compiler/passes/loop/fuse.h"),
            ("compiler/passes/loop/fuse.cc", "compiler/passes/pass.h"),
            ("compiler/passes/loop/fuse.cc", "compiler/passes/loop/parts.h"),
            ("compiler/passes/loop/parts.cc", "compiler/passes/loop/other_parts.h"),
            ("compiler/passes/pipeline.cc", "compiler/passes/loop/fuse.h"),
            ("compiler/program/plan.cc", "compiler/passes/pipeline.h"),
            ("compiler/toolchain/nvrtc.cc", "nvrtc.h"),
            ("compiler/compile.cc", "compiler/toolchain/nvrtc.h"),
            ("compiler/compile.cc", "compiler/program/program.h"),
            ("tools/opt/opt.cc", "compiler/passes/pipeline.h"),
            ("cache/sqlite_store.cc", "sqlite3.h"),
            ("server/engine.cc", "compiler/compile.h"),
            ("server/convert.cc", "compiler/program/program.h"),
            ("server/convert.cc", "hackc/v1/program.pb.h"),
            ("server/service.cc", "grpcpp/grpcpp.h"),
            ("client/runtime/driver.cc", "cuda.h"),
            ("client/cli/submit.cc", "server/engine.h"),
            ("client/cli/submit.cc", "client/client.h"),
            ("tests/passes/fuse_test.cc", "compiler/passes/loop/unroll.h"),
        ):
            with self.subTest(source=source, target=target):
                self.assertEqual(self.include(source, target), [])

    def test_line_budget(self):
        line = "int x;\n"
        wrong, printed = self.run_on(line_budget.check, {"compiler/ir/a.cc": line * 700, "cache/b.cc": line})
        self.assertEqual(wrong, [])
        self.assertIn("   700    700 compiler/ir\n", printed)
        limit = line_budget.COMPILER_CODE_LINES
        self.assertIn(f"   700    700 compiler/ without its interpreters, of {limit} lines of code\n", printed)

        mixed = CC + "\n" + line + "  // Why.\n" + "int y;  // Code, with a reason.\n" + "   \n"
        wrong, printed = self.run_on(line_budget.check, {"compiler/ir/a.cc": mixed})
        self.assertEqual(wrong, [])
        self.assertIn(f"     2      6 compiler/ without its interpreters, of {limit} lines of code\n", printed)
        for path in ("cache/b.cc", "compiler/interp/b.cc"):
            self.assertIn("     0      0 compiler/ without", self.run_on(line_budget.check, {path: line})[1])

        for text in (line * 701, "// Why.\n" * 701):
            wrong, _ = self.run_on(line_budget.check, {"server/a.cc": text})
            self.assertEqual(wrong, ["server/a.cc: 701 lines, more than 700: split it by job"])

        many = {f"compiler/ir/{i}.cc": line * 600 for i in range(limit // 600)}
        many["compiler/last.cc"] = line * (limit % 600)
        many["compiler/compile.h"] = HEADER.replace("#pragma once\n", "")
        self.assertEqual(self.run_on(line_budget.check, many)[0], [])
        many["compiler/compile.h"] = HEADER
        wrong, _ = self.run_on(line_budget.check, many)
        self.assertEqual(wrong, [f"compiler/ has {limit + 1} lines of code, more than {limit}"])

    def test_file_headers(self):
        good = {
            "compiler/a.h": HEADER,
            "compiler/a.cc": CC + "// " + "x" * 97 + "\n// https://" + "x" * 97 + "\n",
            "deploy/tool": "#!/bin/sh\n# SPDX-License-Identifier: MIT\n",
            "models/data.json": "{}",
            "compiler/build/x.cc": "generated\n",
        }
        self.assertEqual(self.run_on(file_headers.check, good)[0], [])
        licence = "the first line (after any #!) must say SPDX-License-Identifier: MIT"
        for name, text, expected in (
            ("cache/a.cc", "int x;\n", licence),
            ("cache/a.cc", CC + "// " + "x" * 98 + "\n", "line 2 is a comment of 101 columns; expected at most 100"),
            ("cache/a.cc", CC + "int x;  // " + "x" * 90 + "\n", "line 2 is a comment of 101 columns; expected at most 100"),
            ("cache/a.cc", "\n" + CC, licence),
            ("deploy/tool", "#!/bin/sh\ntrue\n", licence),
            ("tests/CMakeLists.txt", "project(x)\n", licence),
            ("cache/a.h", CC + "// For threads.\n", "no #pragma once"),
            ("cache/a.h", CC + "//\n// Of any thread.\n#pragma once\n", "line 2 must say what the header is for"),
            ("cache/a.h", CC + "// For.\n#pragma once\n", "the opening comment must say what threads may do with it"),
        ):
            with self.subTest(name=name, text=text):
                self.assertEqual(self.run_on(file_headers.check, {name: text})[0], [f"{name}: {expected}"])

    def test_format(self):
        program, why = format_check.clang_format()
        if not program:
            self.skipTest(why)
        style = {".clang-format": "BasedOnStyle: Google\n"}
        wrong, _ = self.run_on(format_check.check, {**style, "cache/a.cc": "int  x ;\n", "cache/b.cc": "int y;\n"})
        self.assertEqual(wrong, ["cache/a.cc: not as clang-format writes it; run clang-format -i on it"])
        self.assertEqual(self.run_on(format_check.check, {**style, "cache/b.cc": "int y;\n"})[0], [])


if __name__ == "__main__":
    unittest.main()
