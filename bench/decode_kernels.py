#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Each kernel of a decode block alone: microseconds, the bytes that it must move, and the time these bytes take.

    python3 bench/decode_kernels.py                                      # Qwen2.5-7B, both dtypes; 2 minutes on an H200
    python3 bench/decode_kernels.py --dtypes bfloat16 --batch-range 1 --batches 1 --contexts 1024

One program (batch --batch-range, seq 1..64, past 0..8192) of --layers layers and a vocabulary of 256; a kernel is
replayed for all layers, so weights come from memory. `block` is the whole launch list over the layers.
"""

import argparse
import json
import pathlib
import statistics
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "tests" / "gpu")]
import harness  # noqa: E402
import measure  # noqa: E402
import peers  # noqa: E402

OPERATORS = {"ADD": lambda a, b: a + b, "MUL": lambda a, b: a * b, "FLOOR_DIV": lambda a, b: a // b,
             "CEIL_DIV": lambda a, b: -(-a // b), "MOD": lambda a, b: a % b, "MIN": min, "MAX": max}


def evaluate(formula, symbols):
    """Value of a formula of program.json."""
    op = formula.get("op", "CONSTANT")
    if op == "CONSTANT":
        return int(formula.get("value", 0))
    if op == "SYMBOL":
        return symbols[formula["symbol"]]
    return OPERATORS[op](*(evaluate(argument, symbols) for argument in formula["args"]))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", default="qwen2.5-7b")
    parser.add_argument("--dtypes", default="bfloat16,float32")
    parser.add_argument("--contexts", default="1024,8192")
    parser.add_argument("--batches", default="1,8")
    parser.add_argument("--batch-range", default="1..8")
    parser.add_argument("--layers", type=int, default=4)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--json", help="result file (else $OUT/decode_kernels.json, else ./decode_kernels.json)")
    options = parser.parse_args()
    torch = harness.need_gpu()
    import hackc

    rows = []
    with tempfile.TemporaryDirectory() as work:
        for model, dtype in ((m, d) for m in options.models.split(",") for d in options.dtypes.split(",")):
            changes = {"tie_word_embeddings": False, "num_hidden_layers": options.layers, "vocab_size": 256}
            _, out = harness.compile_changed(model, work, changes, harness.device_arch(torch), dtype, "1..64",
                                             batch=options.batch_range, past="0..8192")
            contracts = {k["name"]: k for k in json.loads((out / "program.json").read_text())["kernels"]}
            program = hackc.Program(out).load()
            program.bind(peers.random_weights(torch, {n: s for n, (_, s) in program.weights().items()}, dtype))
            batches = [int(b) for b in options.batches.split(",")]
            states = program.new_states(batch=max(batches))
            for tensor in states.values():
                tensor.normal_()
            for context, batch in ((int(c), b) for c in options.contexts.split(",") for b in batches):
                symbols = {"past": context - 1, "batch": batch, "seq": 1}
                call = {"symbols": symbols, "states": {n: t[:batch] for n, t in states.items()},
                        "input_ids": torch.randint(256, (batch, 1), device="cuda", dtype=torch.int32)}
                if "past_lengths" in program.tensors("decode", symbols):
                    call["past_lengths"] = torch.full((batch,), context - 1, device="cuda", dtype=torch.int32)
                graph = program.capture("decode", **call)
                names = [name for name, _ in graph.launches()]
                block = [n for n in dict.fromkeys(names) if names.count(n) >= options.layers]
                graphs = {name: program.capture("decode", kernels=[name], **call) for name in block}
                graphs["block"] = program.capture("decode", kernels=block, **call)
                times = measure.alternate(torch, {n: g.launch for n, g in graphs.items()}, options.rounds, 2000)
                print(f"{model} {dtype} context {context} batch {batch}: {len(block)} kernels a layer")
                for name, samples in times.items():
                    count = options.layers if name == "block" else names.count(name)
                    us = statistics.median(samples) / count
                    contract = contracts.get(name)
                    bytes_ = evaluate(contract["bytes_moved"], symbols) if contract else sum(
                        row["bytes"] for row in rows[-len(block):])
                    floor = measure.floor_us(bytes_, 0, dtype)
                    rows.append({"model": model, "dtype": dtype, "context": context, "batch": batch, "kernel": name,
                                 "us": us, "bytes": bytes_, "floor_us": floor, "spread": measure.spread(samples)})
                    grid = [evaluate(g, symbols) for g in contract["grid"]] if contract else ""
                    print(f"  {name:60} {us:8.2f} us  {bytes_ / 1e6:8.2f} MB  floor {floor:7.2f} us  {grid}", flush=True)
                result = {"machine": harness.machine(torch), "rows": rows}
                harness.result_path(options.json, "decode_kernels.json").write_text(json.dumps(result, indent=1))
                del graph, graphs


if __name__ == "__main__":
    main()
