# SPDX-License-Identifier: MIT
"""Single operations: kernels of a program alone, beside the same operation in PyTorch on the same tensors.

A kernel is replayed for all layers of the program, so its weights come from memory, as in a run; its inputs
are filled with random numbers first. What the kernel computes is told from its name and its tensors.
"""

import re

import peers


def linear(torch, floats):
    """x @ w.T with what hackc fused: + bias [n], + residual [.., n], or silu(x @ g.T) * (x @ u.T)."""
    functional = torch.nn.functional
    x, *rest = floats
    weights = [t for t in rest if t.dim() == 2 and t.shape[-1] == x.shape[-1] * (x.shape[-2] if x.dim() == 4 else 1)]
    others = [t for t in rest if not any(t is w for w in weights)]
    x = x.flatten(2) if x.dim() == 4 else x
    if len(weights) == 2:
        def gated(x, gate_up):
            gate, up = functional.linear(x, gate_up).chunk(2, -1)
            return functional.silu(gate) * up
        return gated, (x, torch.cat(weights))
    if others and others[0].dim() == 1:
        return (lambda x, w, b: functional.linear(x, w, b)), (x, weights[0], others[0])
    if others:
        return (lambda x, w, r: functional.linear(x, w) + r), (x, weights[0], others[0])
    return (lambda x, w: functional.linear(x, w)), (x, weights[0])


def norm(torch, floats, eps):
    return (lambda x, w: peers.rms_norm(torch, x, w, eps)), tuple(floats)


def attention(torch, floats, past):
    """q [b, s, heads, d] over keys and values [b, capacity, kv heads, d], of which past + s are there."""
    q, keys, values = floats
    end = past + q.shape[1]
    # As the peer would keep them: dense and exactly as long as the context.
    k, v = (t[:, :end].transpose(1, 2).contiguous() for t in (keys, values))

    def attend(q, k, v):
        return torch.nn.functional.scaled_dot_product_attention(
            q, k, v, is_causal=past == 0, enable_gqa=True).transpose(1, 2)

    return attend, (q.transpose(1, 2), k, v)


# Operation -> (kernels of the program, as a pattern of their names without "_decode").
PATTERNS = {
    "qkv product": "qkv_linear",
    "gate/up product": "gate_up_linear",
    "down product": "down_linear",
    "rms norm": "input_norm",
    "attention": "(attention|attended).*",
}


def kernels_of(launches, operation, repeat):
    """Names of the operation's kernels and their launches, those of the repeated layers only."""
    pattern = re.compile(PATTERNS[operation])
    chosen = [(name, arguments) for name, arguments in launches
              if pattern.fullmatch(re.sub(r"(_decode|_prefill)", "", name))]
    names = sorted({name for name, _ in chosen})
    if not chosen or len(chosen) < repeat:
        raise LookupError(f"no kernels for {operation} among {sorted({n for n, _ in launches})}")
    return names, chosen


def operands(chosen, layers):
    """Per launch group of one layer: float inputs from outside the group, and the last output."""
    groups, size = [], len(chosen) // layers
    for first in range(0, size * layers, size):
        group = chosen[first:first + size]
        written = {a.name for _, arguments in group[:-1] for a in arguments if a.written}
        inputs = [a for _, arguments in group for a in arguments
                  if not a.written and a.dtype in ("float32", "bfloat16", "float16") and a.name not in written]
        groups.append((inputs, next(a for a in group[-1][1] if a.written)))
    return groups
