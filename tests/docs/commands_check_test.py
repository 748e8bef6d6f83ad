#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Proves that commands_test.py fails on guides that don't do what they say."""

import pathlib
import tempfile
import unittest

import commands_test


class CommandsTest(unittest.TestCase):
    def run_on(self, text):
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            (root / "guide.md").write_text(text)
            return commands_test.run_guide("guide.md", root, root)

    def test_good_guides_pass(self):
        self.assertEqual(self.run_on("# A\n```sh\necho one > f\n```\nthen\n```sh\ncat f; pwd\n```\n```text\none\n```\n"), [])

    def test_a_failing_command(self):
        for body in ("false\ntrue", "cat missing | wc -l", "echo $unset_variable"):
            with self.subTest(body=body):
                wrong = self.run_on(f"# A\n\n```sh\n{body}\n```\n")
                self.assertEqual(len(wrong), 1)
                self.assertRegex(wrong[0], r"^guide\.md:3: exit code 1\n")

    def test_missing_output(self):
        wrong = self.run_on("```sh\necho one\n```\n```text\none\ntwo\n```\n")
        self.assertEqual(wrong, ["guide.md:4: not in the output: two\none\n"])

    def test_a_guide_without_commands(self):
        self.assertEqual(self.run_on("```text\nsh\n```\n"), ["guide.md: no commands"])


if __name__ == "__main__":
    unittest.main()
