#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Runs tiny golden models (config.json, model.safetensors, expected.safetensors) on the GPU in float32.

    python3 tests/gpu/run_golden.py tests/data/golden            # every folder in it
    python3 tests/gpu/run_golden.py tests/data/golden/qwen2

Weights go through host memory, as a service would load them. An architecture that hackc does not support
yet is counted apart, with the field that it named. Exit code 0: all supported ones passed, 1: some did
not or none was supported, 77: no GPU.
"""

import argparse
import json
import pathlib
import sys
import tempfile

import harness

# transformers computes rotary tables in float32, so its float64 logits are true to about this.
ROTARY = 1e-6


def run(torch, folder, work):
    """(passed, line)"""
    import hackc
    from safetensors.torch import load_file

    config = json.loads((folder / "config.json").read_text())
    expected = load_file(folder / "expected.safetensors")
    ids, truth = expected["input_ids"], expected["logits"]
    out = work / folder.name
    harness.compile_model(folder, out, harness.device_arch(torch), "float32", f"1..{ids.shape[-1]}")
    with hackc.Program(out).load() as program:
        program.bind(load_file(folder / "model.safetensors"))
        given = ids.to(getattr(torch, program.dtype_of("prefill", "input_ids"))).cuda()
        got = program.run("prefill", input_ids=given, poison=True)["logits"].cpu()
    error = harness.errors(got.reshape(truth.shape), truth)
    bound = 4 * harness.float32_bound(config) + ROTARY
    passed = error[2] and error[0] <= bound and error[1] <= harness.largest_of(bound, truth.numel())
    return passed, f"error {error[0]:.2e} (max {error[1]:.2e}), bound {bound:.2e}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="+", help="golden models, or folders of them")
    parser.add_argument("--json", help="result file (else $OUT/run_golden.json, else ./run_golden.json)")
    options = parser.parse_args()
    torch = harness.need_gpu()
    folders = []
    for given in map(pathlib.Path, options.folders):
        inside = sorted(p.parent for p in given.glob("*/config.json"))
        folders += [given] if (given / "config.json").exists() else inside
    counts = {"passed": 0, "failed": 0, "unsupported": 0}
    cases = []
    with tempfile.TemporaryDirectory() as work:
        for folder in folders:
            try:
                passed, line = run(torch, folder, pathlib.Path(work))
                outcome = "passed" if passed else "failed"
            except harness.Refused as refusal:
                outcome, line = "unsupported", str(refusal)
            except Exception as error:  # one broken model must not hide the others
                outcome, line = "failed", f"{type(error).__name__}: {error}"
            counts[outcome] += 1
            cases.append({"model": folder.name, "outcome": outcome, "detail": line})
            print(f"{folder.name:20} {outcome:11} {line}", flush=True)
    result = {"machine": harness.machine(torch), "counts": counts, "cases": cases}
    harness.result_path(options.json, "run_golden.json").write_text(json.dumps(result, indent=1) + "\n")
    print(", ".join(f"{count} {outcome}" for outcome, count in counts.items()))
    return 1 if counts["failed"] or not counts["passed"] else 0


if __name__ == "__main__":
    sys.exit(main())
