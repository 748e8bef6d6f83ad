#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""hackc beside PyTorch on one GPU: paired, alternating, both as CUDA graphs, the same weights and inputs.

    python3 bench/compare.py                                        # every row; under 4 minutes on an H200
    python3 bench/compare.py --models qwen2.5-7b --dtypes bfloat16 --seqs 1,512 --peers eager

What is timed is the decoder stack: a model of `--layers` layers with a vocabulary of 256, so that embedding and
head weigh nothing; times are per layer. Four layers of these models are larger than the L2 cache, so weights come
from memory each time. seq 1 is compiled for one token (`--seq 1`), the others for `--seq 1..2048`.
For each row: median of the alternating pairs for hackc and each peer, the median of the pairs' ratios (peer / hackc:
above 1, hackc is ahead), the spread ((p90 - p10) / median), errors of both against float64, the floor (bytes of
weights over the bandwidth below, operations over the rate below, whichever is larger) and hackc's share of it.
A row whose spread is above 5 % is marked: other load disturbed it.
"""

import argparse
import json
import pathlib
import statistics
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "tests" / "gpu"))
import harness  # noqa: E402

# Measured on an H200: a streaming read; dense bfloat16 and float32 products of cuBLAS (bench/README.md).
BYTES_PER_SECOND = 4.1e12
OPERATIONS_PER_SECOND = {"float32": 50e12, "bfloat16": 790e12, "float16": 790e12}
VOCABULARY = 256


def config_of(model, layers):
    config = dict(json.loads((harness.ROOT / "models" / f"{model}.json").read_text())["config"])
    config.update(num_hidden_layers=layers, vocab_size=VOCABULARY, tie_word_embeddings=False)
    return config


def build(torch, config, dtype):
    """A transformers model with random weights: no norm is 1, no bias is 0."""
    from transformers import AutoConfig, AutoModelForCausalLM

    torch.manual_seed(0)
    with torch.device("cuda"):
        model = AutoModelForCausalLM.from_config(AutoConfig.for_model(**config), attn_implementation="sdpa")
    for parameter in model.parameters():
        data = parameter.data.float().normal_()
        scaled = data * data.shape[-1] ** -0.5 if data.dim() > 1 else 1 + 0.1 * data
        parameter.data = scaled.to(getattr(torch, dtype))
    return model.eval()


def captured(torch, function):
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(3):
            function()
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        result = function()
    return graph.replay, result


def alternate(torch, runs, rounds, repeats):
    """Microseconds of one call for each run, `rounds` times, one after another in turn."""
    times = {name: [] for name in runs}
    begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    for _ in range(rounds):
        for name, run in runs.items():
            run()
            begin.record()
            for _ in range(repeats):
                run()
            end.record()
            end.synchronize()
            times[name].append(begin.elapsed_time(end) * 1e3 / repeats)
    return times


def spread(times):
    ordered = sorted(times)
    return (ordered[int(0.9 * (len(ordered) - 1))] - ordered[int(0.1 * (len(ordered) - 1))]) / statistics.median(times)


def floor_us(config, dtype, seq):
    hidden, inner = config["hidden_size"], config["intermediate_size"]
    head = config.get("head_dim") or hidden // config["num_attention_heads"]
    attention = hidden * head * (2 * config["num_attention_heads"] + 2 * config["num_key_value_heads"])
    weights = attention + 3 * hidden * inner
    products = 2 * seq * weights + 2 * seq * seq * head * config["num_attention_heads"]
    size = 4 if dtype == "float32" else 2
    return 1e6 * max(weights * size / BYTES_PER_SECOND, products / OPERATIONS_PER_SECOND[dtype])


def compare(torch, options, model_name, dtype, work, record):
    import hackc

    config = config_of(model_name, options.layers)
    description = work / f"{model_name}.json"
    description.write_text(json.dumps(config))
    model = build(torch, config, dtype)
    programs = {}
    for seq in options.seqs:
        wanted = "1" if seq == 1 else "1..2048"
        if wanted not in programs:
            out = work / f"{model_name}-{dtype}-{wanted}"
            harness.compile_model(description, out, harness.device_arch(torch), dtype, wanted)
            programs[wanted] = hackc.Program(out).bind(model.state_dict())
        program = programs[wanted]
        ids = torch.randint(VOCABULARY, (1, seq), device="cuda")
        graph = program.capture("prefill", input_ids=ids.to(torch.int32))
        runs = {"hackc": graph.launch}
        outputs = {}
        with torch.no_grad():
            call = lambda m: (lambda: m(input_ids=ids, use_cache=False).logits)  # noqa: E731
            for peer in options.peers:
                compiled = model if peer == "eager" else torch.compile(
                    model, dynamic=False, mode=None if peer == "compile" else "max-autotune-no-cudagraphs")
                runs[peer], outputs[peer] = captured(torch, call(compiled))
            quick = statistics.median(alternate(torch, {"hackc": graph.launch}, 3, 3)["hackc"])
            times = alternate(torch, runs, options.rounds, max(3, int(4000 / quick)))
            outputs["hackc"] = graph.launch()["logits"]
            torch.cuda.synchronize()
            for parameter in model.parameters():
                parameter.data = parameter.data.double()
            truth = model(input_ids=ids, use_cache=False).logits.double()
            for parameter in model.parameters():
                parameter.data = parameter.data.to(getattr(torch, dtype))
            # The program keeps the tensors it was bound to; the model's are new ones with the same numbers.
        ours = statistics.median(times["hackc"])
        floor = floor_us(config, dtype, seq)
        row = {"model": model_name, "dtype": dtype, "seq": seq, "layers": options.layers,
               "us_per_layer": {name: statistics.median(t) / options.layers for name, t in times.items()},
               "ratio": {name: statistics.median(p / h for p, h in zip(times[name], times["hackc"]))
                         for name in options.peers},
               "spread": {name: spread(t) for name, t in times.items()},
               "error": {name: harness.errors(o.reshape(truth.shape), truth)[0] for name, o in outputs.items()},
               "floor_us": floor, "share_of_floor": floor / (ours / options.layers)}
        row["disturbed"] = max(row["spread"].values()) > 0.05
        record(row)
        torch.compiler.reset()
        del graph, runs, outputs, truth


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", default="tinyllama-1.1b,qwen2.5-7b")
    parser.add_argument("--dtypes", default="bfloat16,float32")
    parser.add_argument("--seqs", default="1,128,512,2048")
    parser.add_argument("--peers", default="eager,compile", help="of eager, compile, max-autotune")
    parser.add_argument("--layers", type=int, default=4)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--json", help="result file (else $OUT/compare.json, else ./compare.json)")
    options = parser.parse_args()
    options.seqs = [int(s) for s in options.seqs.split(",")]
    options.peers = options.peers.split(",")
    torch = harness.need_gpu()
    rows = []

    def record(row):
        rows.append(row)
        columns = [f"{row['us_per_layer']['hackc']:9.1f}"]
        for peer in options.peers:
            columns.append(f"{row['us_per_layer'][peer]:9.1f} {row['ratio'][peer]:5.2f}")
        errors = " ".join(f"{row['error'][name]:.1e}" for name in ["hackc", *options.peers])
        print(f"{row['model']:15} {row['dtype']:9} {row['seq']:5} {' '.join(columns)}  floor {row['floor_us']:8.1f} "
              f"({100 * row['share_of_floor']:3.0f} %)  errors {errors}{'  DISTURBED' if row['disturbed'] else ''}",
              flush=True)
        result = {"machine": harness.machine(torch), "rows": rows}
        harness.result_path(options.json, "compare.json").write_text(json.dumps(result, indent=1))

    print(f"{'model':15} {'dtype':9} {'seq':>5} {'hackc us':>9} " +
          " ".join(f"{peer:>9} ratio" for peer in options.peers) + "   (per layer; ratio above 1: hackc is ahead)")
    with tempfile.TemporaryDirectory() as work:
        for model in options.models.split(","):
            for dtype in options.dtypes.split(","):
                compare(torch, options, model, dtype, pathlib.Path(work), record)


if __name__ == "__main__":
    main()
