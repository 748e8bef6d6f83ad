#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The same request, compiled anew in another process, gives the same bits: program, cubins, text of every IR.

    same_bits_test.py BIN_DIR

Processes differ in where memory lies, in the seeds of hash tables, and in the order in which kernels are done; the
second also has another folder for its cache. tests/gpu/restart.py asks for the same of logits on a GPU.
"""

import pathlib
import subprocess
import sys
import tempfile
import unittest

SOURCE = pathlib.Path(__file__).resolve().parents[2]
BIN = pathlib.Path(sys.argv.pop(1) if len(sys.argv) > 1 else SOURCE / "build" / "bin")
sys.path.insert(0, str(SOURCE / "tests" / "gpu"))
import program_differences  # noqa: E402

GENERATE = ["--batch", "1..4", "--seq", "1..1000", "--past", "0..1064"]
CASES = {
    "float32, a cache": ("models/tinyllama-1.1b.json", "float32", GENERATE),
    "bfloat16, a cache in pages": ("models/qwen2.5-7b.json", "bfloat16",
                                   [*GENERATE, "--page-size", "16", "--logits", "last"]),
    "float16, no cache": ("models/qwen2.5-7b.json", "float16", ["--batch", "1", "--seq", "1..1025"]),
    "a window, short ranges": ("tests/data/golden/qwen2-sliding", "float32",
                               ["--batch", "1..3", "--seq", "1..33", "--past", "0..49"]),
}


class SameBitsTest(unittest.TestCase):
    def test_another_process(self):
        for name, (model, dtype, shapes) in CASES.items():
            with self.subTest(name), tempfile.TemporaryDirectory(prefix="hackc-bits-") as scratch:
                folders = [pathlib.Path(scratch) / place for place in ("one", "other/and/deeper")]
                for folder in folders:
                    done = subprocess.run(
                        [BIN / "hackc-client", "submit", SOURCE / model, "--local", "--arch", "sm_90a", "--layers", "2",
                         "--dtype", dtype, *shapes, "--cache-dir", folder / "cache", "--out", folder / "out"],
                        capture_output=True, text=True, timeout=300)
                    self.assertEqual(done.returncode, 0, done.stderr)
                self.assertEqual(program_differences.differing(*(folder / "out" for folder in folders)), [])

    def test_a_difference_is_named(self):
        with tempfile.TemporaryDirectory(prefix="hackc-bits-") as scratch:
            one, other = (pathlib.Path(scratch) / name for name in ("one", "other"))
            for folder, registers, code in ((one, 26, b"abc"), (other, 27, b"aXc")):
                folder.mkdir()
                (folder / "program.json").write_text('{"kernels": [{"registers": %d}]}' % registers)
                (folder / "program.pb").write_bytes(b"")
                (folder / "a.cubin").write_bytes(code)
            (other / "b.cubin").write_bytes(b"")
            self.assertEqual(program_differences.differing(one, other),
                             [".kernels.0.registers: 26 and 27", "b.cubin: in one of both",
                              "a.cubin: 3 and 3 bytes, 1 differ, from byte 1 on"])


if __name__ == "__main__":
    unittest.main()
