#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Makes llama-rope-dynamic-long: llama-rope-dynamic with a prompt beyond its max_position_embeddings.

    tests/data/golden/make_long_prompt.py

A llama in float64 that shares nothing with hackc and needs no library; its rotary tables are rounded to float32, as
those of transformers are. It first computes llama-rope-dynamic's own tokens, and writes nothing where they differ from
what transformers wrote by more than 1e-6 of the largest value.
"""

import json
import math
import pathlib
import shutil
import struct
import sys

FOLDER = pathlib.Path(__file__).resolve().parent
SOURCE, TARGET = FOLDER / "llama-rope-dynamic", FOLDER / "llama-rope-dynamic-long"
PROMPT = [(37 * i * i + 11 * i + 5) % 96 for i in range(24)]  # of 16 positions
STEPS = 4
CODES = {"F32": "f", "F64": "d", "I64": "q"}


def float32(value):
    return struct.unpack("<f", struct.pack("<f", value))[0]


def read(path):
    data = path.read_bytes()
    size = struct.unpack("<Q", data[:8])[0]
    tensors = {}
    for name, entry in json.loads(data[8:8 + size]).items():
        if name != "__metadata__":
            begin, end = (8 + size + offset for offset in entry["data_offsets"])
            code = CODES[entry["dtype"]]
            values = struct.unpack(f"<{(end - begin) // struct.calcsize(code)}{code}", data[begin:end])
            tensors[name] = (entry["dtype"], entry["shape"], list(values))
    return tensors


def write(path, tensors):
    header, body = {}, b""
    for name, (dtype, shape, values) in tensors.items():
        data = struct.pack(f"<{len(values)}{CODES[dtype]}", *values)
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [len(body), len(body) + len(data)]}
        body += data
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(struct.pack("<Q", len(text)) + text + body)


class Llama:
    def __init__(self, folder):
        self.config = json.loads((folder / "config.json").read_text())
        self.weights = read(folder / "model.safetensors")
        self.caches = [([], []) for _ in range(self.config["num_hidden_layers"])]
        self.past = 0

    def product(self, name, x):
        _, (rows, columns), values = self.weights[name + ".weight"]
        return [sum(values[r * columns + c] * x[c] for c in range(columns)) for r in range(rows)]

    def norm(self, name, x):
        scale = 1 / math.sqrt(sum(v * v for v in x) / len(x) + self.config["rms_norm_eps"])
        return [v * scale * w for v, w in zip(x, self.weights[name + ".weight"][2])]

    def rotations(self, length):
        """(cosine, sine) of each pair at each new position, where the sequence is `length` long after this call."""
        rope, most = self.config["rope_parameters"], self.config["max_position_embeddings"]
        dim = self.config["head_dim"]
        stretch = rope["factor"] * max(length, most) / most - (rope["factor"] - 1)
        base = rope["rope_theta"] * stretch ** (dim / (dim - 2))
        frequencies = [float32(1 / float32(float32(base) ** float32(i / dim))) for i in range(0, dim, 2)]
        angles = [[float32(position * f) for f in frequencies] for position in range(self.past, length)]
        return [[(float32(math.cos(a)), float32(math.sin(a))) for a in row] for row in angles]

    def heads(self, flat, rotation=None):
        dim = self.config["head_dim"]
        heads = [flat[i:i + dim] for i in range(0, len(flat), dim)]
        if rotation is None:
            return heads
        low = [[h[j] * c - h[j + dim // 2] * s for j, (c, s) in enumerate(rotation)] for h in heads]
        high = [[h[j + dim // 2] * c + h[j] * s for j, (c, s) in enumerate(rotation)] for h in heads]
        return [a + b for a, b in zip(low, high)]

    def attention(self, layer, x, rotation):
        """Of one token; the cache then holds it too."""
        name = f"model.layers.{layer}.self_attn."
        query = self.heads(self.product(name + "q_proj", x), rotation)
        keys, values = self.caches[layer]
        keys.append(self.heads(self.product(name + "k_proj", x), rotation))
        values.append(self.heads(self.product(name + "v_proj", x)))
        attended = []
        for h, q in enumerate(query):
            shared = h * len(keys[0]) // len(query)
            scores = [sum(a * b for a, b in zip(q, key[shared])) / math.sqrt(len(q)) for key in keys]
            terms = [math.exp(score - max(scores)) for score in scores]
            attended += [sum(t * value[shared][d] for t, value in zip(terms, values)) / sum(terms)
                         for d in range(len(q))]
        return self.product(name + "o_proj", attended)

    def mlp(self, layer, x):
        name = f"model.layers.{layer}.mlp."
        gate, up = self.product(name + "gate_proj", x), self.product(name + "up_proj", x)
        return self.product(name + "down_proj", [g / (1 + math.exp(-g)) * u for g, u in zip(gate, up)])

    def call(self, ids):
        """(hidden states of each stage, logits), a row for each of the new tokens."""
        _, (_, features), table = self.weights["model.embed_tokens.weight"]
        rotations = self.rotations(self.past + len(ids))
        rows = [table[i * features:(i + 1) * features] for i in ids]
        stages = [rows]
        for layer in range(len(self.caches)):
            name = f"model.layers.{layer}."
            rows = [[a + b for a, b in zip(x, self.attention(layer, self.norm(name + "input_layernorm", x), rotation))]
                    for x, rotation in zip(rows, rotations)]
            rows = [[a + b for a, b in zip(x, self.mlp(layer, self.norm(name + "post_attention_layernorm", x)))]
                    for x in rows]
            stages.append(rows)
        stages[-1] = [self.norm("model.norm", x) for x in rows]
        self.past += len(ids)
        return stages, [self.product("lm_head", x) for x in stages[-1]]


def expected(folder, prompt):
    def rows(values):
        return "F64", [len(values), len(values[0])], [v for row in values for v in row]

    model = Llama(folder)
    stages, logits = model.call(prompt)
    ids, steps = [], [logits[-1]]
    for _ in range(STEPS):
        ids.append(steps[-1].index(max(steps[-1])))
        steps += model.call(ids[-1:])[1]
    tensors = {"input_ids": ("I64", [1, len(prompt)], prompt), "step_ids": ("I64", [1, STEPS], ids)}
    tensors |= {f"hidden_{i}": rows(stage) for i, stage in enumerate(stages)}
    return tensors | {"logits": rows(logits), "step_logits": rows(steps[1:])}


def main():
    truth = read(SOURCE / "expected.safetensors")
    for name, (dtype, shape, values) in expected(SOURCE, truth["input_ids"][2]).items():
        difference = max(abs(a - b) for a, b in zip(values, truth[name][2])) / max(map(abs, values))
        print(f"{name} of {SOURCE.name}: {difference:.1e}")
        if (dtype, shape) != truth[name][:2] or difference > (0 if dtype == "I64" else 1e-6):
            sys.exit(f"{name} is not what transformers computes")
    TARGET.mkdir(exist_ok=True)
    for name in ("config.json", "model.safetensors"):
        shutil.copyfile(SOURCE / name, TARGET / name)
    write(TARGET / "expected.safetensors", expected(TARGET, PROMPT))


if __name__ == "__main__":
    main()
