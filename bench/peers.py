# SPDX-License-Identifier: MIT
"""PyTorch's side of the comparison: a decoder written for speed, on the weights that hackc is given.

Stronger than transformers' modules: one product for query, key and value, one for gate and up, a static
key/value cache that is exactly as long as the context (so attention needs no mask), rotation tables made
beforehand. torch.compile sees one block; all layers run the same compiled code with their own weights.
"""

import functools


class Sizes:
    def __init__(self, config):
        self.hidden, self.inner = config["hidden_size"], config["intermediate_size"]
        self.heads = config["num_attention_heads"]
        self.kv_heads = config.get("num_key_value_heads") or self.heads
        self.head = config.get("head_dim") or self.hidden // self.heads
        self.layers, self.vocabulary = config["num_hidden_layers"], config["vocab_size"]
        self.eps = config["rms_norm_eps"]
        self.theta = config.get("rope_theta") or config.get("rope_parameters", {}).get("rope_theta") or 10000.0
        self.layer_weights = (self.hidden * self.head * 2 * (self.heads + self.kv_heads)
                              + 3 * self.hidden * self.inner)


def rms_norm(torch, x, weight, eps):
    wide = x if x.dtype == torch.float64 else x.float()
    return (wide * torch.rsqrt(wide.square().mean(-1, keepdim=True) + eps)).to(x.dtype) * weight


def rotate(torch, x, cosine, sine):
    low, high = x.chunk(2, -1)
    return torch.cat((low * cosine - high * sine, high * cosine + low * sine), -1).to(x.dtype)


def block(x, weights, cosine, sine, cache, sizes):
    """x [batch, seq, hidden]. `cache` is None, or (keys, values, last): [batch, kv heads, context, head] whose
    place `last`, a tensor of one position, is written before the attention over all of it."""
    import torch
    import torch.nn.functional as F

    batch, seq, _ = x.shape
    s = sizes
    qkv = F.linear(rms_norm(torch, x, weights["norm1"], s.eps), weights["qkv"], weights["qkv_bias"])
    q, k, v = qkv.split((s.heads * s.head, s.kv_heads * s.head, s.kv_heads * s.head), -1)
    q = rotate(torch, q.view(batch, seq, s.heads, s.head), cosine, sine).transpose(1, 2)
    k = rotate(torch, k.view(batch, seq, s.kv_heads, s.head), cosine, sine).transpose(1, 2)
    v = v.view(batch, seq, s.kv_heads, s.head).transpose(1, 2)
    if cache is None:
        attended = F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)
    else:
        keys, values, last = cache
        keys.index_copy_(2, last, k)
        values.index_copy_(2, last, v)
        attended = F.scaled_dot_product_attention(q, keys, values, enable_gqa=True)
    x = x + F.linear(attended.transpose(1, 2).reshape(batch, seq, s.heads * s.head), weights["o"])
    gate, up = F.linear(rms_norm(torch, x, weights["norm2"], s.eps), weights["gate_up"]).chunk(2, -1)
    return x + F.linear(F.silu(gate) * up, weights["down"])


def random_weights(torch, shapes, dtype):
    """{name: tensor} for {name: shape}: no norm is 1, no bias is 0, activations keep their size."""
    generator = torch.Generator("cuda").manual_seed(0)
    weights = {}
    for name, shape in shapes.items():
        data = torch.randn(shape, device="cuda", generator=generator)
        if "norm" in name:
            data = 1 + 0.1 * data
        elif len(shape) > 1:
            data = data * shape[-1] ** -0.5
        weights[name] = data.to(getattr(torch, dtype))
    return weights


class Decoder:
    """All layers on the weights of a state dict, with embedding, final norm and head."""

    def __init__(self, torch, state, config):
        self.torch, self.sizes = torch, Sizes(config)
        self.embedding, self.norm = state["model.embed_tokens.weight"], state["model.norm.weight"]
        self.head = state.get("lm_head.weight", self.embedding)
        self.layers = [self._layer(state, f"model.layers.{n}.") for n in range(self.sizes.layers)]
        self._compiled = {"eager": block}

    def _layer(self, state, prefix):
        join = lambda names: self.torch.cat([state[prefix + n] for n in names])  # noqa: E731
        attention = [f"self_attn.{c}_proj" for c in "qkv"]
        biases = [f"{name}.bias" for name in attention]
        return {
            "norm1": state[prefix + "input_layernorm.weight"],
            "norm2": state[prefix + "post_attention_layernorm.weight"],
            "qkv": join([f"{name}.weight" for name in attention]),
            "qkv_bias": join(biases) if prefix + biases[0] in state else None,
            "o": state[prefix + "self_attn.o_proj.weight"],
            "gate_up": join(["mlp.gate_proj.weight", "mlp.up_proj.weight"]),
            "down": state[prefix + "mlp.down_proj.weight"],
        }

    def compiled(self, peer):
        if peer not in self._compiled:
            mode = {"compile": None, "max-autotune": "max-autotune-no-cudagraphs"}[peer]
            self._compiled[peer] = self.torch.compile(block, dynamic=False, mode=mode)
        return self._compiled[peer]

    def forget_compiled(self):
        self.torch.compiler.reset()
        self._compiled = {"eager": block}

    def tables(self, first, count, dtype):
        torch, half = self.torch, self.sizes.head // 2
        # Frequencies and angles in float32 step by step, as transformers has them and hackc too: another rounding of
        # 8000 radians is another model. On the CPU, whose power is rounded better than the GPU's.
        exponents = torch.arange(0, 2 * half, 2, dtype=torch.float32) / (2 * half)
        frequencies = (1.0 / self.sizes.theta ** exponents).cuda()
        angles = torch.arange(first, first + count, device="cuda").float()[:, None, None] * frequencies
        return angles.double().cos().to(dtype), angles.double().sin().to(dtype)

    def call(self, peer, ids, caches=None, past=0):
        """A function of no arguments that gives logits [batch, seq, vocabulary]."""
        tables = self.tables(past, ids.shape[1], self.torch.float32)
        return functools.partial(self._forward, self.compiled(peer), ids, caches, tables, lambda w: w)

    def truth(self, ids, caches=None, past=0):
        """The same in float64, from the same weights and cache."""
        wide = lambda tensor: None if tensor is None else tensor.double()  # noqa: E731
        if caches is not None:
            caches = [(wide(k), wide(v), last) for k, v, last in caches]
        return self._forward(block, ids, caches, self.tables(past, ids.shape[1], self.torch.float64), wide)

    def _forward(self, run_block, ids, caches, tables, convert):
        functional = self.torch.nn.functional
        x = convert(functional.embedding(ids, self.embedding))
        for number, layer in enumerate(self.layers):
            weights = {name: convert(weight) for name, weight in layer.items()}
            x = run_block(x, weights, *tables, caches[number] if caches else None, self.sizes)
        return functional.linear(rms_norm(self.torch, x, convert(self.norm), self.sizes.eps), convert(self.head))

    def new_caches(self, batch, context, dtype):
        torch, s = self.torch, self.sizes
        last = torch.tensor([context - 1], device="cuda")
        make = lambda: torch.randn(batch, s.kv_heads, context, s.head, device="cuda").to(dtype)  # noqa: E731
        return [(make(), make(), last) for _ in range(s.layers)]
