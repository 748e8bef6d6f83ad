#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Logits of compiled models against Hugging Face transformers, every element, at real sizes.

    python3 tests/gpu/check_models.py                                    # TinyLlama-1.1B and Qwen2.5-7B
    python3 tests/gpu/check_models.py models/qwen2.5-0.5b.json --layers 2 --dtypes float32 --seqs 1,33

For each model and dtype: random weights (norms and biases too), rounded to the dtype; truth is transformers
in float64 on those weights; transformers in the dtype itself is the rival; hackc compiles with
`hackc-client submit --local`, binds the same GPU tensors and runs prefill into poisoned memory.
float32 passes within a bound from dtype and reduction length; bfloat16 and float16 pass when they are no
further from the truth than transformers in that dtype, times 1.1, in Frobenius norm and at the worst element.
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
import types

import harness

FACTOR = 1.1
# Modules that transformers computes in float32 even when everything else is float64.
PLAIN_RMS_NORMS = ("LlamaRMSNorm", "Qwen2RMSNorm", "Qwen3RMSNorm", "MistralRMSNorm")


def read_config(path, layers):
    """The Hugging Face config of a model file, and a name."""
    path = pathlib.Path(path)
    if path.is_dir():
        path = path / "config.json"
    data = json.loads(path.read_text())
    name = data.get("name") or (path.parent.name if path.name == "config.json" else path.stem)
    config = data if "model_type" in data else data["config"]
    if layers:
        config["num_hidden_layers"] = layers
        for key in ("layer_types",):
            if config.get(key):
                config[key] = config[key][:layers]
    return name, config


def build(torch, config, dtype, seed):
    """A transformers model on the GPU in float32 whose every parameter is random and fits `dtype`."""
    import transformers

    facts = {k: v for k, v in config.items() if k not in ("model_type", "torch_dtype", "dtype", "transformers_version")}
    hf_config = transformers.AutoConfig.for_model(config["model_type"], **facts)
    with torch.device("cuda"):
        model = transformers.AutoModelForCausalLM.from_config(
            hf_config, dtype=torch.float32, attn_implementation="sdpa").eval()
    generator = torch.Generator(device="cuda").manual_seed(seed)
    for name, parameter in model.named_parameters():
        data = parameter.data
        data.normal_(generator=generator)
        if data.dim() > 1:
            tied = config.get("tie_word_embeddings", False)
            embedding = "embed" in name and not tied
            # Rows of length one keep activations near 1 at every depth.
            data.mul_(1.0 if embedding else data.shape[-1] ** -0.5)
        elif name.endswith("bias"):
            data.mul_(0.3)
        else:
            data.mul_(0.1).add_(1.0)
        data.copy_(data.to(getattr(torch, dtype)))
    return model


def convert(model, dtype):
    """Parameters alone: casting the rotary tables' buffers would change the model."""
    for parameter in model.parameters():
        parameter.data = parameter.data.to(dtype)


@contextlib.contextmanager
def float64_norms(torch, model):
    """transformers computes its RMS norms in float32 whatever the input; the truth must not."""
    patched = []

    def forward(self, x):
        return self.weight * (x * torch.rsqrt(x.square().mean(-1, keepdim=True) + self.variance_epsilon))

    for module in model.modules():
        if type(module).__name__ in PLAIN_RMS_NORMS:
            module.forward = types.MethodType(forward, module)
            patched.append(module)
    yield
    for module in patched:
        del module.forward


def logits_of(torch, model, ids):
    with torch.no_grad():
        return model(input_ids=ids, use_cache=False).logits[0]


def judge(dtype, bound, hackc, rival, count):
    """(passed, why not)"""
    if not hackc[2]:
        return False, "not finite: an element was not written, or is NaN"
    if dtype == "float32":
        if hackc[0] > bound:
            return False, f"error {hackc[0]:.2e} above {bound:.2e}"
        if hackc[1] > harness.largest_of(bound, count):
            return False, f"largest error {hackc[1]:.2e} above {harness.largest_of(bound, count):.2e}"
        return True, ""
    if hackc[0] > FACTOR * rival[0]:
        return False, f"error {hackc[0]:.3e} above {FACTOR} times {rival[0]:.3e}"
    if hackc[1] > FACTOR * rival[1]:
        return False, f"largest error {hackc[1]:.3e} above {FACTOR} times {rival[1]:.3e}"
    return True, ""


def check(torch, path, dtype, sequences, options, work, record):
    """All sequences of one model in one dtype; `record` gets a dict for each."""
    import hackc

    name, config = read_config(path, options.layers)
    out = work / f"{name}-{dtype}"
    started = time.time()
    report = harness.compile_model(path, out, harness.device_arch(torch), dtype, f"1..{max(sequences)}",
                                   options.layers, work / "cache")
    compile_seconds = time.time() - started
    model = build(torch, config, dtype, options.seed)
    generator = torch.Generator().manual_seed(options.seed)
    ids = {s: torch.randint(config["vocab_size"], (1, s), generator=generator).cuda() for s in sequences}

    convert(model, torch.float64)
    with float64_norms(torch, model):
        truth = {s: logits_of(torch, model, ids[s]) for s in sequences}
    convert(model, getattr(torch, dtype))
    gc.collect()
    torch.cuda.empty_cache()
    rival = {s: harness.errors(logits_of(torch, model, ids[s]), truth[s]) for s in sequences}
    torch.cuda.empty_cache()  # hackc allocates beside PyTorch's pool

    with hackc.Program(out).load() as program:
        program.bind(model.state_dict())
        wanted_ids = program.dtype_of("prefill", "input_ids")
        for s in sequences:
            given = ids[s].to(getattr(torch, wanted_ids))
            got = program.run("prefill", input_ids=given, poison=True)["logits"]
            torch.cuda.synchronize()
            first = got.clone()
            begin = torch.cuda.Event(enable_timing=True)
            end = torch.cuda.Event(enable_timing=True)
            begin.record()
            again = program.run("prefill", input_ids=given, poison=False)["logits"]
            end.record()
            torch.cuda.synchronize()
            same = bool(torch.equal(first, again))
            graph = program.capture("prefill", input_ids=given)
            replayed = graph.launch()["logits"]
            torch.cuda.synchronize()
            same_graph = bool(torch.equal(first, replayed))
            error = harness.errors(first.reshape(truth[s].shape), truth[s])
            bound = harness.float32_bound(config)
            passed, reason = judge(dtype, bound, error, rival[s], truth[s].numel())
            if not same or not same_graph:
                passed, reason = False, "a second run or the graph gave other bits"
            record({
                "model": name, "dtype": dtype, "seq": s, "passed": passed, "reason": reason,
                "elements": truth[s].numel(), "hackc_error": error[0], "hackc_max_error": error[1],
                "torch_error": rival[s][0], "torch_max_error": rival[s][1],
                "bound": bound if dtype == "float32" else None, "run_ms": begin.elapsed_time(end),
                "compile_seconds": compile_seconds, "kernels": len(report["kernels"]),
                "program": report["program_digest"],
            })
            del graph, replayed, first, again, got


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    models = harness.ROOT / "models"
    parser.add_argument("models", nargs="*", default=[models / "tinyllama-1.1b.json", models / "qwen2.5-7b.json"])
    parser.add_argument("--dtypes", default="float32,bfloat16")
    parser.add_argument("--seqs", default="1,7,128,513,1025")
    parser.add_argument("--layers", type=int, default=0, help="only the first N layers")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", help="result file (else $OUT/check_models.json, else ./check_models.json)")
    parser.add_argument("--work", help="folder for compiled programs and the cache (else a temporary one)")
    options = parser.parse_args()
    torch = harness.need_gpu()
    sequences = [int(s) for s in options.seqs.split(",")]
    target = harness.result_path(options.json, "check_models.json")
    result = {"machine": harness.machine(torch), "seed": options.seed, "factor": FACTOR, "cases": []}

    def record(case):
        result["cases"].append(case)
        # After each case, so that a run that is cut off leaves what it found.
        target.write_text(json.dumps(result, indent=1) + "\n")
        if "hackc_error" in case:
            ratio = case["hackc_error"] / case["torch_error"] if case["torch_error"] else float("inf")
            print(f"{case['model']:16} {case['dtype']:9} seq {case['seq']:5}: "
                  f"hackc {case['hackc_error']:.3e} (max {case['hackc_max_error']:.3e})  "
                  f"torch {case['torch_error']:.3e} (max {case['torch_max_error']:.3e})  "
                  f"ratio {ratio:5.2f}  {case['run_ms']:8.2f} ms  "
                  f"{'ok' if case['passed'] else 'FAILED: ' + case['reason']}", flush=True)
        else:
            print(f"{case['model']:16} {case['dtype']:9}: FAILED: {case['reason']}", flush=True)

    with contextlib.ExitStack() as stack:
        work = pathlib.Path(options.work or stack.enter_context(tempfile.TemporaryDirectory()))
        work.mkdir(parents=True, exist_ok=True)
        for path in options.models:
            for dtype in options.dtypes.split(","):
                try:
                    check(torch, path, dtype, sequences, options, work, record)
                except Exception as error:  # one broken model must not hide the others
                    record({"model": pathlib.Path(path).stem, "dtype": dtype, "passed": False,
                            "reason": f"{type(error).__name__}: {error}"})
                gc.collect()
                torch.cuda.empty_cache()
    passed = sum(case["passed"] for case in result["cases"])
    print(f"{passed} of {len(result['cases'])} cases passed on {result['machine']['gpu']}; {target}")
    return 0 if passed == len(result["cases"]) else 1


if __name__ == "__main__":
    sys.exit(main())
