# SPDX-License-Identifier: MIT
"""Runtime.generate: prompts through "prefill", then one token at a time through "decode", sampling on the GPU."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from hackc import errors

if TYPE_CHECKING:
    from hackc.runtime import Runtime

_EOS_PERIOD = 8  # tokens between two looks at whether all sequences have ended; each look waits for the GPU


def _pick(torch: Any, logits: Any, temperature: float, top_k: int, random: Any) -> Any:
    """int64 [batch, 1] from [batch, vocab]."""
    if temperature <= 0:
        return logits.argmax(-1, keepdim=True)
    scaled = logits.float() / temperature
    if top_k > 0:
        least = scaled.topk(min(top_k, scaled.shape[-1])).values[:, -1:]
        scaled = scaled.masked_fill(scaled < least, float("-inf"))
    return torch.multinomial(scaled.softmax(-1), 1, generator=random)


def _check(runtime: Runtime, prompt: int, batch: int, count: int) -> int:
    """The longest call of prefill."""
    bounds = runtime.symbols()
    if "past" not in bounds or bounds["past"][0] > 0:
        raise errors.FailedPrecondition(
            errors.FAILED_PRECONDITION, "the program has no key/value cache; compile it with shapes={'past': (0, N)}")
    low, high = bounds.get("batch", (1, 1))
    if not low <= batch <= high:
        raise errors.InvalidArgument(errors.INVALID_ARGUMENT, f"ids: {batch} sequences, the program is compiled for"
                                                              f" {low}..{high}")
    if count < 1 or prompt < 1:
        raise errors.InvalidArgument(errors.INVALID_ARGUMENT, "expected at least one token in ids and one to generate")
    most = bounds["past"][1] + 1
    if prompt + count - 1 > most:
        raise errors.OutOfRange(errors.OUT_OF_RANGE, f"{prompt} tokens and {count} more need a cache of"
                                                     f" {prompt + count - 1}, the program is compiled for {most}")
    return bounds["seq"][1]


def generate(runtime: Runtime, memory: Any, ids: Any, count: int, temperature: float, top_k: int, seed: int | None,
             eos: int | None, graph: bool, on_token: Callable[[Any], None] | None) -> Any:
    torch = memory.torch
    if torch is None:
        raise errors.FailedPrecondition(errors.FAILED_PRECONDITION, "generate needs PyTorch with CUDA; run() does not")
    prompt = torch.as_tensor(ids, device=memory.device).long()
    if prompt.dim() == 1:
        prompt = prompt[None]
    batch, length = prompt.shape
    longest = _check(runtime, length, batch, count)
    kind = getattr(torch, runtime.dtype_of("prefill", "input_ids"))
    random = None
    if seed is not None:
        random = torch.Generator(device=memory.device)
        random.manual_seed(seed)
    states = runtime.new_states(batch)
    past, logits = 0, None
    for part in prompt.to(kind).split(longest, dim=1):
        logits = runtime(part.contiguous(), past=past, states=states)["logits"][:, -1]
        past += part.shape[1]
    tokens = torch.empty((batch, length + count), dtype=torch.int64, device=memory.device)
    tokens[:, :length] = prompt
    ended = torch.zeros((batch, 1), dtype=torch.bool, device=memory.device)
    token = torch.empty((batch, 1), dtype=kind, device=memory.device)
    captured = None
    for step in range(count):
        chosen = _pick(torch, logits, temperature, top_k, random)
        if eos is not None:
            chosen = chosen.masked_fill(ended, eos)
            ended |= chosen == eos
        tokens[:, length + step : length + step + 1] = chosen
        if on_token is not None:
            on_token(chosen)
        if step + 1 == count:
            break
        if eos is not None and step % _EOS_PERIOD == _EOS_PERIOD - 1 and bool(ended.all()):
            break
        token.copy_(chosen)
        if graph and captured is None:
            captured = runtime.capture("decode", {"past": past}, states=states, input_ids=token)
        if captured is not None:
            logits = captured.launch({"past": past})["logits"][:, -1]
        else:
            logits = runtime(token, past=past, states=states)["logits"][:, -1]
        past += 1
    if eos is not None and bool(ended.all()):
        # Up to the last sequence's first end.
        return tokens[:, : length + int((tokens[:, length:] == eos).int().argmax(-1).max()) + 1]
    return tokens
