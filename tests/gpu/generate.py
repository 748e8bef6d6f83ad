#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Generation through the key/value cache against Hugging Face transformers: prefill, then one token at a time.

    python3 tests/gpu/generate.py                                  # golden models, TinyLlama-1.1B, Qwen2.5-7B
    python3 tests/gpu/generate.py tests/data/golden/qwen2          # one golden model
    python3 tests/gpu/generate.py models/tinyllama-1.1b.json --dtypes float32 --prompts 5,128 --steps 16

A folder with expected.safetensors is a golden model: its prompt goes in at once, in two parts and token by
token, then all its steps, each against the true logits. Any other model gets random weights and prompts;
transformers in the same dtype continues each by the likeliest token, with its own cache, and float64 without
a cache on the same tokens is the truth. hackc is fed those tokens from a cache filled with NaN. float32
passes when it chooses the same tokens (or one whose true logit is the same within float32's bound) and its
logits are within the bound; bfloat16 and float16 when they are no further from the truth than transformers,
times 1.1. A second run, over what the first left in the cache, and a CUDA graph must give the same bits.
The same with a batch of unequal prompts, padded to the longest and decoded together, whose cache lies in a row or
in scattered pages; transformers continues each of them alone.
Exit code 0: all passed, 1: some did not, 77: no GPU.
"""

import argparse
import contextlib
import gc
import json
import pathlib
import sys
import tempfile
import time

import check_models
import harness

ROTARY = 1e-6  # transformers computes rotary tables in float32, whatever the rest is in


class Sequence:
    """Runs tokens [batch, n] through a program's cache. `totals` are the most tokens of each sequence: a paged cache
    has pages for so many, scattered, and none behind."""

    def __init__(self, torch, program, batch=1, poison=True, totals=None):
        self.torch, self.program = torch, program
        self.dtype = getattr(torch, program.dtype_of("prefill", "input_ids"))
        lowest = {symbol: low for symbol, (low, _) in program.symbols().items()} | {"batch": batch}
        wanted = program.tensors("prefill", lowest)
        self.inputs = {"past_lengths": torch.zeros(batch, dtype=torch.int32, device="cuda")}
        pages = None
        if "page_table" in wanted:
            width, size = wanted["page_table"][2][1], wanted["layers.0.key_cache"][2][1]
            pages = batch * width
            table = torch.randperm(pages, generator=torch.Generator().manual_seed(1)).reshape(batch, width)
            for row, total in enumerate(totals or []):
                table[row, -(-total // size):] = -1
            self.inputs["page_table"] = table.to(device="cuda", dtype=torch.int32)
        self.picks = "last_positions" in wanted
        self.cache = program.new_states(batch, poison=poison, pages=pages)
        self.reset()

    def reset(self):
        self.past = 0
        self.inputs["past_lengths"].zero_()

    def feed(self, tokens, poison=True, counts=None):
        """Logits [batch, n, vocab] of these tokens, of which sequence b has counts[b], else all; [batch, 1, vocab] of
        the last ones where the program gives no others."""
        torch = self.torch
        tokens = tokens.to(device="cuda", dtype=self.dtype).contiguous()
        entry = "decode" if tokens.shape[1] == 1 else "prefill"
        counts = torch.tensor(counts or [tokens.shape[1]] * tokens.shape[0], dtype=torch.int32, device="cuda")
        picks = {"last_positions": counts - 1} if self.picks and entry == "prefill" else {}
        out = self.program.run(entry, {"past": self.past}, states=self.cache, poison=poison, input_ids=tokens,
                               **self.inputs, **picks)
        self.inputs["past_lengths"] += counts
        self.past += tokens.shape[1]
        return out["logits"]


def golden(torch, folder, work, record):
    """All ways through the cache of one golden model."""
    import hackc
    from safetensors.torch import load_file

    config = json.loads((folder / "config.json").read_text())
    expected = load_file(folder / "expected.safetensors")
    ids, truth = expected["input_ids"].reshape(1, -1), expected["logits"]
    step_ids, step_truth = expected["step_ids"].reshape(1, -1), expected["step_logits"]
    length, steps = ids.shape[1], step_ids.shape[1]
    # A dynamic rope follows the length of a call: it is compiled for prompts that one call takes.
    whole = (config.get("rope_parameters") or {}).get("rope_type") == "dynamic"
    out = work / f"golden-{folder.name}"
    harness.compile_model(folder, out, harness.device_arch(torch), "float32",
                          f"1..{length + steps + 1 if whole else length}", cache_dir=work / "cache",
                          past=f"0..{length + steps}")
    bound = 4 * harness.float32_bound(config) + ROTARY
    halves = length // 2
    with hackc.Program(out).load() as program:
        program.bind(folder)  # the runtime's own reader of safetensors
        for way, parts in (("at once", [length]), ("two parts", [halves, length - halves]),
                           ("token by token", [1] * length))[:1 if whole else 3]:
            sequence = Sequence(torch, program)
            got = [sequence.feed(part) for part in ids.split(parts, dim=1)]
            choices = [got[-1][0, -1].argmax().item()]
            prompt = torch.cat(got, dim=1)[0].cpu()
            rows = []
            for i in range(steps):
                rows.append(sequence.feed(step_ids[:, i:i + 1])[0, -1])
                choices.append(rows[-1].argmax().item())
            errors = {"prompt": harness.errors(prompt.reshape(truth.shape), truth),
                      "steps": harness.errors(torch.stack(rows).cpu().reshape(step_truth.shape), step_truth)}
            wrong = [f"{part}: error {e[0]:.2e} (max {e[1]:.2e}) above {bound:.2e}"
                     for part, e in errors.items()
                     if not (e[2] and e[0] <= bound and e[1] <= harness.largest_of(bound, step_truth.numel()))]
            # The steps are the likeliest tokens of the true logits.
            if choices[:steps] != step_ids[0].tolist():
                wrong.append(f"chose {choices[:steps]}, the truth is {step_ids[0].tolist()}")
            record({"kind": "golden", "model": folder.name, "dtype": "float32", "batch": 1, "prompt": way,
                    "steps": steps, "passed": not wrong, "reason": "; ".join(wrong),
                    "hackc_error": max(e[0] for e in errors.values()),
                    "hackc_max_error": max(e[1] for e in errors.values()), "bound": bound})


def continue_greedily(torch, model, ids, steps):
    """(tokens [batch, steps], logits [batch, steps, vocab], ms for each decoded token) by transformers."""
    with torch.no_grad():
        out = model(input_ids=ids, use_cache=True)
        rows = [out.logits[:, -1].clone()]
        tokens = [rows[0].argmax(-1, keepdim=True)]
        cache = out.past_key_values
        del out
        torch.cuda.synchronize()
        start = time.perf_counter()
        for _ in range(steps - 1):
            out = model(input_ids=tokens[-1], past_key_values=cache, use_cache=True)
            cache = out.past_key_values
            rows.append(out.logits[:, -1].clone())
            tokens.append(rows[-1].argmax(-1, keepdim=True))
        torch.cuda.synchronize()
    return torch.cat(tokens, 1), torch.stack(rows, 1), (time.perf_counter() - start) * 1e3 / max(steps - 1, 1)


def truth_of(torch, model, ids, tokens):
    """float64 logits [batch, steps, vocab] from which each of the tokens is chosen; no cache."""
    rows = []
    with torch.no_grad(), check_models.float64_norms(torch, model):
        for row in range(ids.shape[0]):
            whole = torch.cat([ids[row:row + 1], tokens[row:row + 1, :-1]], 1)
            rows.append(model(input_ids=whole, use_cache=False).logits[0, ids.shape[1] - 1:].clone())
    return torch.stack(rows)


def hackc_logits(torch, ids, tokens, sequence, poison, counts=None):
    """(logits [batch, steps, vocab], ms for each decoded token); `tokens` are fed whatever hackc chooses."""
    rows = [sequence.feed(ids, counts=counts)[:, -1].clone()]
    given = tokens.to(sequence.dtype)
    begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    begin.record()
    for i in range(tokens.shape[1] - 1):
        rows.append(sequence.feed(given[:, i:i + 1], poison)[:, -1])
    end.record()
    torch.cuda.synchronize()
    return torch.stack(rows, 1), begin.elapsed_time(end) / max(tokens.shape[1] - 1, 1)


def graph_logits(torch, ids, tokens, sequence, counts=None):
    """The same with one CUDA graph of decode: `past` moves on, and the lengths on the GPU with it."""
    rows = [sequence.feed(ids, counts=counts)[:, -1].clone()]
    given = tokens.to(sequence.dtype)
    token = given[:, :1].contiguous()
    graph = sequence.program.capture("decode", {"past": sequence.past}, states=sequence.cache, input_ids=token,
                                     **sequence.inputs)
    begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    begin.record()
    for i in range(tokens.shape[1] - 1):
        token.copy_(given[:, i:i + 1])
        rows.append(graph.launch({"past": sequence.past})["logits"][:, -1].clone())
        sequence.inputs["past_lengths"] += 1
        sequence.past += 1
    end.record()
    torch.cuda.synchronize()
    return torch.stack(rows, 1), begin.elapsed_time(end) / max(tokens.shape[1] - 1, 1)


def undecided(truth, choices, tokens, slack):
    """Steps where another token was chosen although the truth prefers one by more than `slack`."""
    chosen = truth.gather(-1, choices.unsqueeze(-1)).squeeze(-1)
    other = truth.gather(-1, tokens.unsqueeze(-1)).squeeze(-1)
    return int(((choices != tokens) & ((other - chosen).abs() > slack)).sum())


def padded(torch, prompts):
    """[batch, n] of prompts [1, n_i]; what stands behind a prompt's end is any token."""
    ids = torch.full((len(prompts), max(p.shape[1] for p in prompts)), 1, dtype=prompts[0].dtype, device="cuda")
    for row, prompt in enumerate(prompts):
        ids[row, :prompt.shape[1]] = prompt
    return ids


def full_size(torch, path, dtype, options, work, record):
    import hackc

    name, config = check_models.read_config(path, options.layers)
    prompts = [int(p) for p in options.prompts.split(",")]
    batches = [int(b) for b in options.batches.split(",")]
    pages = [int(p) for p in options.page_sizes.split(",")] if options.page_sizes else []
    unequal = [int(p) for p in options.unequal.split(",")] if options.unequal else []
    started = time.time()
    # By size of a page, "" is for equal prompts and the logits of all positions.
    programs = {}
    for size in [""] + (pages if unequal else []):
        out = work / f"{name}-{dtype}{'-unequal' if size != '' else ''}{size}"
        report = harness.compile_model(path, out, harness.device_arch(torch), dtype,
                                       f"1..{max(prompts + unequal)}", options.layers, work / "cache",
                                       batch=f"1..{max(batches + [len(unequal)])}",
                                       past=f"0..{max(prompts + unequal) + options.steps}", page_size=size or 0,
                                       logits="all" if size == "" else "last")
        programs[size] = out, report
    compile_seconds = time.time() - started
    model = check_models.build(torch, config, dtype, options.seed)
    generator = torch.Generator().manual_seed(options.seed)

    def draw(batch, length):
        return torch.randint(config["vocab_size"], (batch, length), generator=generator).cuda()

    cases = {(b, p): [draw(b, p)] for b in batches for p in prompts}
    if unequal:
        cases["unequal"] = [draw(1, p) for p in unequal]
    check_models.convert(model, getattr(torch, dtype))
    gc.collect()
    torch.cuda.empty_cache()
    rival = {case: [continue_greedily(torch, model, ids, options.steps) for ids in parts]
             for case, parts in cases.items()}
    check_models.convert(model, torch.float64)  # exact: every parameter fits `dtype`
    truth = {case: torch.cat([truth_of(torch, model, ids, found[0]) for ids, found in zip(parts, rival[case])])
             for case, parts in cases.items()}
    check_models.convert(model, getattr(torch, dtype))
    gc.collect()
    torch.cuda.empty_cache()  # hackc allocates beside PyTorch's pool
    bound = harness.float32_bound(config)
    for size, (out, report) in programs.items():
        with hackc.Program(out).load() as program:
            program.bind(model.state_dict())
            for case, parts in cases.items():
                if (case == "unequal") != (size != ""):
                    continue
                tokens = torch.cat([found[0] for found in rival[case]])
                logits = torch.cat([found[1] for found in rival[case]])
                rival_ms = sum(found[2] for found in rival[case])
                true = truth[case]
                batch = tokens.shape[0]
                counts = [ids.shape[1] for ids in parts] if case == "unequal" else None
                ids = padded(torch, parts) if counts else parts[0]
                prompt = f"{options.unequal} pages {size}" if counts else case[1]
                totals = [count + options.steps for count in counts or []]
                sequence = Sequence(torch, program, batch, totals=totals)
                got, _ = hackc_logits(torch, ids, tokens, sequence, True, counts)
                sequence.reset()
                again, ms = hackc_logits(torch, ids, tokens, sequence, False, counts)
                sequence.reset()
                by_graph, graph_ms = graph_logits(torch, ids, tokens, sequence, counts)
                error, rival_error = harness.errors(got, true), harness.errors(logits, true)
                passed, reason = check_models.judge(dtype, bound, error, rival_error, true.numel())
                choices = got.argmax(-1)
                same = int((choices == tokens).sum())
                slack = 2 * harness.largest_of(bound, true.numel()) * true.square().mean().sqrt().item()
                wrong = undecided(true, choices, tokens, slack)
                if dtype == "float32" and wrong:
                    passed, reason = False, f"{wrong} of {tokens.numel()} tokens differ from transformers'"
                if not torch.equal(got, again) or not torch.equal(got, by_graph):
                    passed, reason = False, "a second run or the graph gave other bits"
                record({"kind": "model", "model": name, "dtype": dtype, "batch": batch, "prompt": prompt,
                        "steps": options.steps, "passed": passed, "reason": reason, "elements": true.numel(),
                        "same_tokens": same, "tokens": tokens.numel(), "hackc_error": error[0],
                        "hackc_max_error": error[1], "torch_error": rival_error[0],
                        "torch_max_error": rival_error[1], "bound": bound if dtype == "float32" else None,
                        "hackc_ms": ms, "hackc_graph_ms": graph_ms, "torch_ms": rival_ms,
                        "compile_seconds": compile_seconds, "page_size": size or 0,
                        "kernels": len(report["kernels"]), "program": report["program_digest"]})
                del sequence, got, again, by_graph


def show(case):
    head = f"{case['model']:18} {case['dtype']:9}"
    verdict = "ok" if case["passed"] else "FAILED: " + case["reason"]
    if "hackc_error" not in case:
        return f"{head} {verdict}"
    line = f"{head} batch {case['batch']} prompt {str(case['prompt']):14} error {case['hackc_error']:.3e} " \
           f"(max {case['hackc_max_error']:.3e})"
    if case["kind"] == "model":
        ratio = case["hackc_error"] / case["torch_error"] if case["torch_error"] else float("inf")
        line += f"  torch {case['torch_error']:.3e}  ratio {ratio:5.2f}" \
                f"  tokens {case['same_tokens']}/{case['tokens']}" \
                f"  {case['hackc_ms']:7.2f} ms/token, graph {case['hackc_graph_ms']:.2f} (eager {case['torch_ms']:.2f})"
    return f"{line}  {verdict}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", help="model files, golden models, or folders of golden models")
    parser.add_argument("--dtypes", default="float32,bfloat16")
    parser.add_argument("--prompts", default="5,128,1000", help="lengths of the prompts")
    parser.add_argument("--batches", default="1,4")
    parser.add_argument("--unequal", default="5,128,1000,31", help="prompts of one batch; empty for none")
    parser.add_argument("--page-sizes", default="0,16", help="of the cache of that batch; 0 is without pages")
    parser.add_argument("--steps", type=int, default=64)
    parser.add_argument("--layers", type=int, default=0, help="only the first N layers")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", help="result file (else $OUT/generate.json, else ./generate.json)")
    parser.add_argument("--work", help="folder for compiled programs and the cache (else a temporary one)")
    options = parser.parse_args()
    torch = harness.need_gpu()
    models = [pathlib.Path(m) for m in options.models] or [
        harness.ROOT / "tests" / "data" / "golden", harness.ROOT / "models" / "tinyllama-1.1b.json",
        harness.ROOT / "models" / "qwen2.5-7b.json"]
    target = harness.result_path(options.json, "generate.json")
    result = {"machine": harness.machine(torch), "seed": options.seed, "factor": check_models.FACTOR, "cases": []}

    def record(case):
        result["cases"].append(case)
        # After each case, so that a run that is cut off leaves what it found.
        target.write_text(json.dumps(result, indent=1) + "\n")
        print(show(case), flush=True)

    def attempt(name, dtype, work):
        try:
            work()
        except harness.Refused as refusal:
            record({"model": name, "dtype": dtype, "passed": False, "reason": f"not supported: {refusal}"})
        except Exception as error:  # one broken model must not hide the others
            record({"model": name, "dtype": dtype, "passed": False, "reason": f"{type(error).__name__}: {error}"})
        gc.collect()
        torch.cuda.empty_cache()

    with contextlib.ExitStack() as stack:
        work = pathlib.Path(options.work or stack.enter_context(tempfile.TemporaryDirectory()))
        work.mkdir(parents=True, exist_ok=True)
        for path in models:
            if path.is_dir() and not (path / "config.json").exists():
                folders = sorted(p.parent for p in path.glob("*/expected.safetensors"))
            else:
                folders = [path] if (path / "expected.safetensors").exists() else []
            for folder in folders:
                attempt(folder.name, "float32", lambda: golden(torch, folder, work, record))
            if folders:
                continue
            for dtype in options.dtypes.split(","):
                attempt(path.stem, dtype, lambda: full_size(torch, path, dtype, options, work, record))
    passed = sum(case["passed"] for case in result["cases"])
    print(f"{passed} of {len(result['cases'])} cases passed on {result['machine']['gpu']}; {target}")
    return 0 if passed == len(result["cases"]) and passed else 1


if __name__ == "__main__":
    sys.exit(main())
