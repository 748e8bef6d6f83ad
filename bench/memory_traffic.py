#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Bytes that each kernel really moves to and from memory, as Nsight Compute's counters say, beside those it must.

    python3 bench/memory_traffic.py                          # Qwen2.5-7B, both dtypes, decode and prefill
    python3 bench/memory_traffic.py --models tinyllama-1.1b --dtypes bfloat16

Each kernel of one layer runs once with empty caches (ncu flushes them), so that inputs come from memory; what it
writes may stay in the L2 cache. `must` is each input and output once: of the matrix products, as the model's sizes
and dtype have it, of the others the contract's bytes_moved. The time is the kernel's own, from its first block to its
last. Exit code 0: no kernel above --most times its bytes (and --slack, for small kernels, which are counted apart);
1: some are; 77: no GPU or no counters.
"""

import argparse
import csv
import json
import pathlib
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "tests" / "gpu")]
import decode_kernels  # noqa: E402
import harness  # noqa: E402
import measure  # noqa: E402
import peers  # noqa: E402

COUNTERS = ["dram__bytes_read.sum", "dram__bytes_write.sum", "gpu__time_duration.sum"]
POINTS = [("decode", 1, 1024, 1), ("decode", 8, 1024, 1), ("decode", 1, 8192, 1), ("prefill", 1, 0, 128),
          ("prefill", 1, 0, 512), ("prefill", 1, 0, 2048)]  # entry, batch, tokens in the cache after it, seq


def product_bytes(kernel, sizes, symbols, dtype):
    """Weights, inputs and outputs (and the residual) of a layer's matrix product; None for another kernel."""
    rows = symbols["batch"] * symbols["seq"]
    hidden, inner, query = sizes.hidden, sizes.inner, sizes.heads * sizes.head
    joined = query + 2 * sizes.kv_heads * sizes.head
    elements = {"qkv_linear": hidden * joined + rows * (hidden + joined),
                "o_linear": query * hidden + rows * (query + 2 * hidden),
                "gate_up_linear": 2 * hidden * inner + rows * (hidden + inner),
                "down_linear": inner * hidden + rows * (inner + 2 * hidden)}
    return next((n * measure.SIZE[dtype] for name, n in elements.items() if name in kernel), None)


def run_under_counters(program_folder, dtype):
    """In a process of its own: every point once, between profiler marks; prints a line of JSON for each."""
    torch = harness.need_gpu()
    import hackc

    program = hackc.Program(program_folder).load()
    program.bind(peers.random_weights(torch, {n: s for n, (_, s) in program.weights().items()}, dtype))
    states = program.new_states(batch=8)
    for tensor in states.values():
        tensor.normal_()
    for entry, batch, context, seq in POINTS:
        past = max(context - 1, 0)
        symbols = {"past": past, "batch": batch, "seq": seq}
        call = {"symbols": symbols, "states": {n: t[:batch] for n, t in states.items()},
                "input_ids": torch.randint(256, (batch, seq), device="cuda", dtype=torch.int32)}
        if "past_lengths" in program.tensors(entry, symbols):
            call["past_lengths"] = torch.full((batch,), past, device="cuda", dtype=torch.int32)
        names = [name for name, _ in program.capture(entry, **call).launches()]
        torch.cuda.synchronize()
        torch.cuda.profiler.start()
        program.run(entry, symbols, states=call["states"],
                    **{n: t for n, t in call.items() if n not in ("symbols", "states")})
        torch.cuda.synchronize()
        torch.cuda.profiler.stop()
        print(json.dumps({"entry": entry, "symbols": symbols, "launches": names}), flush=True)


def profile(folder, dtype):
    """(points, [(function, {counter: value})]) in the order of launches."""
    tool = shutil.which("ncu") or "/usr/local/cuda/bin/ncu"
    report = pathlib.Path(folder) / "counters.csv"
    command = [tool, "--clock-control", "none", "--profile-from-start", "off", "--csv", "--print-units", "base",
               "--log-file", str(report), "--kernel-name", "regex:^hackc_", "--metrics", ",".join(COUNTERS),
               sys.executable, __file__, "--under-counters", str(folder), dtype]
    done = subprocess.run(command, capture_output=True, text=True)
    text = report.read_text() if report.exists() else ""
    if done.returncode or "Metric Value" not in text:
        print("skipped: ncu reads no counters here:", (text + done.stdout + done.stderr)[-1500:])
        sys.exit(harness.SKIPPED)
    points = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    launches = {}
    for row in csv.DictReader(line for line in text.splitlines() if line.startswith('"')):
        function = row["Kernel Name"].split("(")[0]
        launches.setdefault(int(row["ID"]), (function, {}))[1][row["Metric Name"]] = float(
            row["Metric Value"].replace(",", ""))
    return points, [launches[number] for number in sorted(launches)]


def main():
    if sys.argv[1:2] == ["--under-counters"]:
        return run_under_counters(sys.argv[2], sys.argv[3])
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", default="qwen2.5-7b")
    parser.add_argument("--dtypes", default="bfloat16,float32")
    parser.add_argument("--layers", type=int, default=4)
    parser.add_argument("--most", type=float, default=2.0, help="bytes moved over those that must be")
    parser.add_argument("--slack", type=float, default=1e6, help="bytes that count for nothing: instructions, tables")
    parser.add_argument("--json", help="result file (else $OUT/memory_traffic.json, else ./memory_traffic.json)")
    options = parser.parse_args()
    torch = harness.need_gpu()
    rows, failed, small = [], 0, 0
    with tempfile.TemporaryDirectory() as work:
        for model, dtype in ((m, d) for m in options.models.split(",") for d in options.dtypes.split(",")):
            changes = {"tie_word_embeddings": False, "num_hidden_layers": options.layers, "vocab_size": 256}
            config, out = harness.compile_changed(model, work, changes, harness.device_arch(torch), dtype, "1..2048",
                                             batch="1..8", past="0..8192")
            contracts = {k["name"]: k for k in json.loads((out / "program.json").read_text())["kernels"]}
            points, launches = profile(out, dtype)
            for point in points:
                mine, launches = launches[:len(point["launches"])], launches[len(point["launches"]):]
                seen = set()
                print(f"{model} {dtype} {point['entry']} {point['symbols']}")
                for name, (function, counters) in zip(point["launches"], mine):
                    contract = contracts[name]
                    assert contract["entry"] == function, (name, function)
                    read, written, nanoseconds = (counters[c] for c in COUNTERS)
                    if name in seen:
                        continue
                    seen.add(name)
                    must = (product_bytes(name, peers.Sizes(config), point["symbols"], dtype)
                            or decode_kernels.evaluate(contract["bytes_moved"], point["symbols"]))
                    above = read + written > options.most * must + options.slack
                    failed += above
                    small += not above and read + written > options.most * must
                    rows.append({"model": model, "dtype": dtype, "entry": point["entry"], **point["symbols"],
                                 "kernel": name, "read": read, "written": written, "must": must,
                                 "ratio": (read + written) / must, "us": nanoseconds * 1e-3, "above": above})
                    print(f"  {name:60} read {read / 1e6:9.2f} MB  written {written / 1e6:8.2f}  must "
                          f"{must / 1e6:9.2f}  {(read + written) / must:5.2f}  {nanoseconds * 1e-3:8.2f} us"
                          f"{'  ABOVE' if above else ''}", flush=True)
            result = {"machine": harness.machine(torch), "rows": rows}
            harness.result_path(options.json, "memory_traffic.json").write_text(json.dumps(result, indent=1))
    print(f"{len(rows)} kernels, {failed} above {options.most} times their bytes, and {small} by no more than "
          f"{options.slack:.0f} bytes")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
