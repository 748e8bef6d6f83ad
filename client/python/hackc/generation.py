# SPDX-License-Identifier: MIT
"""Runtime.generate: prompts through "prefill", then one token at a time through "decode", sampling on the GPU."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from hackc import errors

if TYPE_CHECKING:
    from hackc.runtime import Runtime

_EOS_PERIOD = 8  # tokens between two looks at whether all sequences have ended; each look waits for the GPU


def _invalid(message: str) -> errors.InvalidArgument:
    return errors.InvalidArgument(errors.INVALID_ARGUMENT, message)


def _pick(torch: Any, logits: Any, temperature: float, top_k: int, random: Any) -> Any:
    """int64 [batch, 1] from [batch, vocab]."""
    if temperature <= 0:
        return logits.argmax(-1, keepdim=True)
    scaled = logits.float() / temperature
    if top_k > 0:
        least = scaled.topk(min(top_k, scaled.shape[-1])).values[:, -1:]
        scaled = scaled.masked_fill(scaled < least, float("-inf"))
    return torch.multinomial(scaled.softmax(-1), 1, generator=random)


def _prompts(torch: Any, device: Any, ids: Any, lengths: Any) -> tuple[Any, list[int]]:
    """(int64 [batch, longest], the length of each)"""
    if isinstance(ids, (list, tuple)) and ids and isinstance(ids[0], (list, tuple)):
        if lengths is not None:
            raise _invalid("lengths: nested lists have lengths of their own")
        lengths = [len(row) for row in ids]
        ids = [[*row, *[0] * (max(lengths) - len(row))] for row in ids]
    prompt = torch.as_tensor(ids, device=device).long()
    if prompt.dim() == 1:
        prompt = prompt[None]
    batch, longest = prompt.shape
    counts = [longest] * batch if lengths is None else [int(n) for n in (
        lengths.tolist() if hasattr(lengths, "tolist") else lengths)]
    if len(counts) != batch or min(counts) < 1 or max(counts) > longest:
        raise _invalid(f"ids: expected {batch} lengths of 1 to {longest}, got {counts}")
    return prompt[:, : max(counts)], counts


def _check(runtime: Runtime, longest: int, batch: int, count: int) -> int:
    """The longest call of prefill."""
    bounds = runtime.symbols()
    if "past" not in bounds or bounds["past"][0] > 0:
        raise errors.FailedPrecondition(
            errors.FAILED_PRECONDITION, "the program has no key/value cache; compile it with shapes={'past': (0, N)}")
    low, high = bounds.get("batch", (1, 1))
    if not low <= batch <= high:
        raise _invalid(f"ids: {batch} sequences, the program is compiled for {low}..{high}")
    if count < 1:
        raise _invalid(f"max_new_tokens: expected at least 1, got {count}")
    most = bounds["past"][1] + 1
    if longest + count - 1 > most:
        raise errors.OutOfRange(errors.OUT_OF_RANGE, f"{longest} tokens and {count} more need a cache of"
                                                     f" {longest + count - 1}, the program is compiled for {most}")
    return bounds["seq"][1]


class _Cache:
    """States of a batch, with the page table of a paged cache, and how many tokens of each sequence they hold."""

    def __init__(self, torch: Any, runtime: Runtime, batch: int, device: Any) -> None:
        wanted = runtime.tensors("prefill", {**runtime.lowest(), "batch": batch})
        self.picks = "last_positions" in wanted
        self.lengths = torch.zeros((batch,), dtype=torch.int32, device=device)
        self.inputs, pages = {"past_lengths": self.lengths}, None
        if "page_table" in wanted:
            width = wanted["page_table"][2][1]
            pages = batch * width
            self.inputs["page_table"] = torch.arange(pages, device=device).int().reshape((batch, width))
        self.states = runtime.new_states(batch, pages=pages)


def _prefill(torch: Any, runtime: Runtime, cache: _Cache, prompt: Any, ends: Any, longest_call: int) -> Any:
    """Logits [batch, vocab] of each sequence's last token. Tokens behind a sequence's end go into the cache too, where
    the ones that are generated take their places."""
    kind = getattr(torch, runtime.dtype_of("prefill", "input_ids"))
    rows = torch.arange(prompt.shape[0], device=prompt.device)
    past, found = 0, None
    for part in prompt.to(kind).split(longest_call, dim=1):
        count = part.shape[1]
        last = (ends - 1 - past).clamp(0, count - 1)
        entry = "decode" if count == 1 and past > 0 else "prefill"
        more = {"last_positions": last.int()} if cache.picks and entry == "prefill" else {}
        cache.lengths.fill_(past)
        logits = runtime.run(entry, {"past": past}, states=cache.states, input_ids=part.contiguous(), **cache.inputs,
                             **more)["logits"]
        logits = logits[:, 0] if logits.shape[1] == 1 else logits[rows, last]
        found = logits if found is None else torch.where((ends > past)[:, None], logits, found)
        past += count
    return found


def generate(runtime: Runtime, memory: Any, ids: Any, lengths: Any, count: int, temperature: float, top_k: int,
             seed: int | None, eos: int | None, graph: bool, on_token: Callable[[Any], None] | None) -> Any:
    torch, device = memory.torch, memory.device
    if torch is None:
        raise errors.FailedPrecondition(errors.FAILED_PRECONDITION, "generate needs PyTorch with CUDA; run() does not")
    prompt, counts = _prompts(torch, device, ids, lengths)
    batch, longest = prompt.shape
    longest_call = _check(runtime, longest, batch, count)
    random = None
    if seed is not None:
        random = torch.Generator(device=device)
        random.manual_seed(seed)
    ends = torch.as_tensor(counts, device=device).long()
    cache = _Cache(torch, runtime, batch, device)
    logits = _prefill(torch, runtime, cache, prompt, ends, longest_call)
    cache.lengths.copy_(ends)
    tokens = torch.full((batch, longest + count), 0 if eos is None else eos, dtype=torch.int64, device=device)
    tokens[:, :longest] = torch.where(torch.arange(longest, device=device)[None] < ends[:, None], prompt,
                                      tokens[:, :longest])
    ended = torch.zeros((batch, 1), dtype=torch.bool, device=device)
    token = torch.zeros((batch, 1), dtype=getattr(torch, runtime.dtype_of("prefill", "input_ids")), device=device)
    call = {"states": cache.states, "input_ids": token, **cache.inputs}
    total, captured = ends.clone(), None
    for step in range(count):
        chosen = _pick(torch, logits, temperature, top_k, random)
        if eos is not None:
            chosen = chosen.masked_fill(ended, eos)
            total += (~ended)[:, 0]
            ended |= chosen == eos
        tokens.scatter_(1, (ends + step)[:, None], chosen)
        if on_token is not None:
            on_token(chosen)
        if step + 1 == count or (eos is not None and step % _EOS_PERIOD == _EOS_PERIOD - 1 and bool(ended.all())):
            break
        token.copy_(chosen)
        symbols = {"past": longest + step}
        if graph and captured is None:
            captured = runtime.capture("decode", symbols, **call)
        outputs = captured.launch(symbols) if captured is not None else runtime.run("decode", symbols, **call)
        logits = outputs["logits"][:, 0]
        cache.lengths += 1
    return tokens if eos is None else tokens[:, : int(total.max())]
