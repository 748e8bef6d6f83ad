#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""compute-sanitizer over two-layer models: memcheck and racecheck must find nothing.

    python3 tests/gpu/sanitize.py                         # two_layers.json, small since racecheck is slow
    python3 tests/gpu/sanitize.py tests/data/golden/qwen2 --seqs 1,7,13 --tools memcheck

hackc-selftest fills random weights and runs prefill on poisoned memory between red zones, and decode and prefill
over a key/value cache of sequences of unequal lengths, in a row and in pages; it needs no framework, so that the
tool watches hackc's kernels alone. Exit code 0: clean, 1: not, 77: no GPU or no
compute-sanitizer.
"""

import argparse
import json
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

import harness


def sanitizer():
    found = shutil.which("compute-sanitizer")
    if not found and pathlib.Path("/usr/local/cuda/bin/compute-sanitizer").exists():
        found = "/usr/local/cuda/bin/compute-sanitizer"
    if not found:
        print("skipped: no compute-sanitizer on this machine")
        sys.exit(harness.SKIPPED)
    return found


def check(tool, name, options, selftest):
    """One run of hackc-selftest under the tool `name`."""
    started = time.time()
    # The runtime asks for parameters beyond the contract's to see that there are none: the driver's error is the
    # wanted answer, so errors of API calls are not reported.
    command = [tool, "--tool", name, "--report-api-errors", "no", "--error-exitcode", "9", *selftest]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=options.limit)
        code, text = done.returncode, done.stdout + done.stderr
    except subprocess.TimeoutExpired as expired:
        code, text = 124, (expired.stdout or b"").decode(errors="replace") + "\ntimed out"
    summary = [line for line in text.splitlines() if "SUMMARY" in line]
    case = {"tool": name, "arguments": selftest[2:], "passed": code == 0, "seconds": round(time.time() - started, 1),
            "summary": (summary or ["no summary"])[-1].strip("= ")}
    if code:
        case["output"] = text[-6000:]
        print(text[-3000:])
    return case


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*",
                        default=[pathlib.Path(__file__).parent / "two_layers.json"])
    parser.add_argument("--layers", type=int, default=2)
    parser.add_argument("--seqs", default="1,7,33")
    parser.add_argument("--past", type=int, default=21, help="tokens of the longest of three sequences; 0: no cache")
    parser.add_argument("--page-sizes", default="0,16", help="of the cache; 0 is without pages")
    parser.add_argument("--dtypes", default="float32,bfloat16")
    parser.add_argument("--tools", default="memcheck,racecheck")
    parser.add_argument("--limit", type=int, default=240, help="seconds for one run of the tool")
    parser.add_argument("--json", help="result file (else $OUT/sanitize.json, else ./sanitize.json)")
    options = parser.parse_args()
    torch = harness.need_gpu()
    tool = sanitizer()
    selftest = harness.client().with_name("hackc-selftest")
    longest = max(int(s) for s in options.seqs.split(","))
    cases = []
    # What is compiled, and the runs of it.
    prefill = ["--seq", options.seqs]
    programs = [("", {}, [prefill])]
    for size in options.page_sizes.split(",") if options.past else []:
        cached = ["--batch", "3", "--past", str(options.past)]
        programs.append((f"pages{size}", {"batch": "1..3", "past": f"0..{options.past}", "page_size": int(size),
                                          "logits": "last"},
                         [prefill, prefill + cached, ["--entry", "decode", "--seq", "1"] + cached,
                          ["--entry", "decode", "--seq", "1", "--past", str(options.past)]]))
    with tempfile.TemporaryDirectory() as work:
        for model in options.models:
            for dtype in options.dtypes.split(","):
                for kind, shapes, runs in programs:
                    out = pathlib.Path(work) / f"{pathlib.Path(model).stem}-{dtype}-{kind}"
                    harness.compile_model(model, out, harness.device_arch(torch), dtype, f"1..{longest}",
                                          options.layers, **shapes)
                    for name in options.tools.split(","):
                        for arguments in runs:
                            cases.append(check(tool, name, options, [str(selftest), str(out), *arguments]))
                            case = cases[-1]
                            case |= {"model": str(model), "dtype": dtype, "layers": options.layers, **shapes}
                            print(f"{pathlib.Path(model).stem:16} {dtype:9} {kind:8} {' '.join(arguments):44} {name:10} "
                                  f"{case['seconds']:6.1f} s  {'ok' if case['passed'] else 'FAILED'}  "
                                  f"{case['summary']}", flush=True)
                            result = {"machine": harness.machine(torch), "cases": cases}
                            harness.result_path(options.json, "sanitize.json").write_text(
                                json.dumps(result, indent=1) + "\n")
    passed = sum(case["passed"] for case in cases)
    print(f"{passed} of {len(cases)} runs clean")
    return 0 if passed == len(cases) else 1


if __name__ == "__main__":
    sys.exit(main())
