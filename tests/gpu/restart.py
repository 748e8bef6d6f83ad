#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The same request in another process, compiled anew, gives the same bits: program, and logits on the GPU.

    python3 tests/gpu/restart.py                                   # TinyLlama-1.1B with two layers, all dtypes
    python3 tests/gpu/restart.py models/qwen2.5-7b.json --layers 4 --dtypes bfloat16

For each model and dtype two processes compile into a cache of their own, fill weights and prompts from one seed, and
run prefill and 16 decode steps of unequal sequences, as launches and as a CUDA graph; what they print of it, the
program's digest and a digest of all logits, must be equal. Where the programs differ, it is said in which fields, and
which kernels' code. Exit code 0: they are equal; 1: they are not; 77: no GPU.
"""

import argparse
import hashlib
import json
import pathlib
import subprocess
import sys
import tempfile

import harness
import program_differences

COUNTS = [5, 33, 1]  # tokens of the prompts
STEPS = 16


def one_process(model, dtype, layers, folder):
    """Prints one line of JSON: digests of the program, which lies in `folder`/out then, and of every logit."""
    torch = harness.need_gpu()
    import generate
    import hackc

    work = pathlib.Path(folder)
    report = harness.compile_model(model, work / "out", harness.device_arch(torch), dtype, f"1..{max(COUNTS)}",
                                   layers=layers, cache_dir=work / "cache", batch=f"1..{len(COUNTS)}",
                                   past=f"0..{max(COUNTS) + STEPS}")
    with hackc.Program(work / "out").load() as program:
        generator = torch.Generator("cuda").manual_seed(7)
        weights = {name: torch.randn(shape, device="cuda", generator=generator) * 0.02
                   for name, (_, shape) in sorted(program.weights().items())}
        program.bind({name: tensor.to(getattr(torch, dtype)) for name, tensor in weights.items()})
        vocabulary = json.loads(pathlib.Path(model).read_text())
        vocabulary = vocabulary.get("config", vocabulary)["vocab_size"]
        tokens = torch.randint(vocabulary, (len(COUNTS), max(COUNTS) + STEPS), device="cuda", generator=generator)
        ids, steps = tokens[:, :max(COUNTS)], tokens[:, max(COUNTS):]
        digest = hashlib.sha256()
        for logits_of in (generate.graph_logits,
                          lambda *call, counts: generate.hackc_logits(*call, poison=True, counts=counts)):
            sequence = generate.Sequence(torch, program, batch=len(COUNTS))
            prompt = sequence.feed(ids, counts=COUNTS).clone()
            for row, count in enumerate(COUNTS):  # what stands behind a prompt's end is nobody's
                digest.update(prompt[row, :count].contiguous().view(torch.uint8).cpu().numpy().tobytes())
            sequence = generate.Sequence(torch, program, batch=len(COUNTS))
            rows, _ = logits_of(torch, ids, steps, sequence, counts=COUNTS)
            digest.update(rows[:, 1:].contiguous().view(torch.uint8).cpu().numpy().tobytes())
    print(json.dumps({"program": report["program_digest"], "logits": digest.hexdigest()}))


def main():
    if sys.argv[1:2] == ["--one-process"]:
        return one_process(sys.argv[2], sys.argv[3], int(sys.argv[4]), sys.argv[5])
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", default=[harness.ROOT / "models" / "tinyllama-1.1b.json"])
    parser.add_argument("--layers", type=int, default=2)
    parser.add_argument("--dtypes", default="float32,bfloat16,float16")
    parser.add_argument("--json", help="result file (else $OUT/restart.json, else ./restart.json)")
    options = parser.parse_args()
    torch = harness.need_gpu()
    cases = []
    for model, dtype in ((m, d) for m in options.models for d in options.dtypes.split(",")):
        command = [sys.executable, "-B", __file__, "--one-process", str(model), dtype, str(options.layers)]
        with tempfile.TemporaryDirectory() as one, tempfile.TemporaryDirectory() as other:
            done = [subprocess.run([*command, folder], capture_output=True, text=True) for folder in (one, other)]
            failed = next((run for run in done if run.returncode), None)
            said = [] if failed else [json.loads(run.stdout.splitlines()[-1]) for run in done]
            same = [said[0][key] == said[1][key] for key in ("program", "logits")] if said else []
            reason = [failed.stderr[-2000:]] if failed else []
            reason += [] if failed or same[0] else ["other programs", *program_differences.differing(f"{one}/out", f"{other}/out")]
            reason += [] if failed or same[1] else ["other logits"]
        cases.append({"model": pathlib.Path(model).stem, "dtype": dtype, "passed": not reason, "said": said,
                      "reason": reason})
        print("\n    ".join([f"{'FAILED' if reason else 'ok    '} {pathlib.Path(model).stem} {dtype}", *reason]), flush=True)
    result = {"machine": harness.machine(torch), "layers": options.layers, "cases": cases}
    harness.result_path(options.json, "restart.json").write_text(json.dumps(result, indent=1) + "\n")
    passed = sum(case["passed"] for case in cases)
    print(f"{passed} of {len(cases)} cases passed on {result['machine']['gpu']}")
    return 0 if passed == len(cases) else 1


if __name__ == "__main__":
    sys.exit(main())
