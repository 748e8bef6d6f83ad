#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Checks each description in models/ against the model's published number of parameters.

One wrong size, a missing bias or a wrongly tied head changes the count.
"""

import json
import pathlib
import unittest

MODELS = pathlib.Path(__file__).resolve().parents[2] / "models"
PUBLISHED = {
    "qwen2.5-7b": 7_615_616_512,
    "qwen2.5-0.5b": 494_032_768,
    "tinyllama-1.1b": 1_100_048_384,
}


def parameters(config):
    hidden, inner, vocab = config["hidden_size"], config["intermediate_size"], config["vocab_size"]
    head = hidden // config["num_attention_heads"]
    key_value = config["num_key_value_heads"] * head
    bias = hidden + 2 * key_value if config["model_type"] == "qwen2" else 0
    attention = 2 * hidden * hidden + 2 * hidden * key_value + bias
    layer = attention + 3 * hidden * inner + 2 * hidden
    embeddings = vocab * hidden * (1 if config["tie_word_embeddings"] else 2)
    return embeddings + config["num_hidden_layers"] * layer + hidden


class ModelsTest(unittest.TestCase):
    def test_published_parameters(self):
        names = {path.stem for path in MODELS.glob("*.json")}
        self.assertLessEqual(set(PUBLISHED), names)
        for name in sorted(names):
            with self.subTest(name=name):
                description = json.loads((MODELS / f"{name}.json").read_text())
                self.assertEqual(description["name"], name)
                self.assertEqual(parameters(description["config"]), PUBLISHED[name])


if __name__ == "__main__":
    unittest.main()
