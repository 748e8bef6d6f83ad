#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""hackc beside PyTorch on one GPU: paired, alternating, both as CUDA graphs, the same weights and inputs.

    python3 bench/compare.py                                            # every row; pick rows to stay in a time
    python3 bench/compare.py --rows prefill,decode --models qwen2.5-7b --dtypes bfloat16
    python3 bench/compare.py --rows compile                             # cold and warm compile times

Rows:
  prefill    decoder stack of --layers layers and a vocabulary of 256, for each of --seqs; times per layer
  decode     the same for one token, for each of --contexts and --batches; times per layer
  operation  single kernels at prefill 512 and decode 1024: products, norm, attention; times per launch
  model      all layers and the true vocabulary: prefill 512, decode after 1023 tokens; times per run
  compile    seconds to the first program (hackc) or the first result (torch.compile), cold and warm

One program serves all prefill and decode rows of a model and dtype: batch 1..8, seq 1..2048, past 0..8192. Four
layers of these models exceed the L2 cache, so weights come from memory each time. Peers (bench/peers.py) are a
hand-fused PyTorch decoder run as it is (eager), through torch.compile (compile) and with max-autotune.
For each row: median of the alternating samples, median of the pairs' ratios (peer / hackc: above 1, hackc is
ahead), spread ((p90 - p10) / median), errors against float64, the floor (bytes over the bandwidth or operations
over the rate of bench/measure.py, whichever is larger) and hackc's share of it. A row whose spread is above 5 %
is marked: other load disturbed it. After --minutes no new peer is compiled and no new row begun; the table says so.

Most of max-autotune's time is compiling candidates on the CPU. Several runs with `--rounds 1` beside each other,
with one TRITON_CACHE_DIR for all and a TORCHINDUCTOR_CACHE_DIR for each (what they choose and measure on a busy GPU must
not count), leave the choosing alone to the run that measures: with TRITON_CACHE_DIR, and without the other.
"""

import argparse
import json
import os
import pathlib
import sys
import tempfile
import time

# Before torch is imported: without it candidates of max-autotune are compiled one after the other.
os.environ.setdefault("TORCHINDUCTOR_COMPILE_THREADS", str(os.cpu_count()))

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "tests" / "gpu")]
import compile_times  # noqa: E402
import harness  # noqa: E402
import measure  # noqa: E402
import operations  # noqa: E402
import peers  # noqa: E402

VOCABULARY = 256
CAPACITY = 8192


class Bench:
    def __init__(self, torch, options, work):
        self.torch, self.options, self.work = torch, options, work
        self.rows, self.notes, self.end = [], [], time.monotonic() + 60 * options.minutes
        self.clocks_before = harness.clocks()

    def late(self, what):
        if time.monotonic() < self.end:
            return False
        self.notes.append(f"not measured, --minutes were over: {what}")
        print(self.notes[-1], flush=True)
        return True

    def record(self, row):
        self.rows.append(row)
        columns = [f"{row['us']['hackc']:9.1f}"]
        for peer in self.options.peers:
            columns.append(f"{row['us'][peer]:9.1f} {row['ratio'][peer]:5.2f}" if peer in row["us"] else " " * 15)
        errors = " ".join(f"{name} {value:.1e}" for name, value in row["error"].items())
        print(f"{row['model']:14} {row['dtype']:8} {row['row']:9} {row['what']:28} {' '.join(columns)}  "
              f"{row['floor_us']:8.1f} {100 * row['share_of_floor']:3.0f} %  {errors}"
              f"{'  DISTURBED' if row['disturbed'] else ''}", flush=True)
        self.save()

    def save(self):
        result = {"machine": harness.machine(self.torch), "clocks_before": self.clocks_before, "rows": self.rows,
                  "notes": self.notes}
        harness.result_path(self.options.json, "compare.json").write_text(json.dumps(result, indent=1))

    def compiled(self, model, dtype, **changes):
        """(config, program, decoder) on the same random weights."""
        import hackc

        changes = {"tie_word_embeddings": False, "max_position_embeddings": 16384, **changes}
        config, out = harness.compile_changed(
            model, self.work, changes, harness.device_arch(self.torch), dtype, self.options.seq_range,
            batch=self.options.batch_range, past=f"0..{CAPACITY}")
        program = hackc.Program(out).load()
        state = peers.random_weights(self.torch, {n: shape for n, (_, shape) in program.weights().items()}, dtype)
        program.bind(state)
        return config, program, peers.Decoder(self.torch, state, config)

    def measure(self, facts, decoder, replay, logits, caches, ids, past, floor, units):
        """Times hackc's graph beside the peers' and records the row."""
        torch = self.torch
        runs, outputs = {"hackc": replay}, {}
        with torch.no_grad():
            for peer in self.options.peers:
                if peer != "eager" and self.late(f"{facts['what']} {peer}"):
                    continue
                runs[peer], outputs[peer] = measure.captured(torch, decoder.call(peer, ids, caches, past))
            times = measure.alternate(torch, runs, self.options.rounds)
            replay()
            torch.cuda.synchronize()
            outputs["hackc"] = logits
            truth = decoder.truth(ids, caches, past)
        errors = {name: harness.errors(outputs[name].reshape(truth.shape), truth)[0] for name in runs}
        self.record(measure.row(facts, times, errors, floor, units))
        decoder.forget_compiled()

    def phase(self, row, model, dtype, config, program, decoder, states, seq, batch=1, context=None):
        """One prefill (context is None) or decode row."""
        torch, sizes = self.torch, decoder.sizes
        what = f"seq {seq}" if context is None else f"context {context} batch {batch}"
        if self.late(f"{model} {dtype} {row} {what}"):
            return
        ids = torch.randint(sizes.vocabulary, (batch, seq), device="cuda")
        past, caches = 0, None
        if context is not None:
            past, caches = context - 1, decoder.new_caches(batch, context, getattr(torch, dtype))
            for number, (keys, values, _) in enumerate(caches):
                for kind, tensor in (("key", keys), ("value", values)):
                    states[f"layers.{number}.{kind}_cache"][:batch, :context] = tensor.transpose(1, 2)
        mine = {name: tensor[:batch] for name, tensor in states.items()}
        entry = "prefill" if context is None else "decode"
        symbols = {"past": past, "batch": batch, "seq": seq}
        inputs = {"input_ids": ids.to(torch.int32)}
        if "past_lengths" in program.tensors(entry, symbols):
            inputs["past_lengths"] = torch.full((batch,), past, device="cuda", dtype=torch.int32)
        graph = program.capture(entry, symbols=symbols, states=mine, **inputs)
        launches = graph.launches()
        size = measure.SIZE[dtype]
        weights = sizes.layer_weights
        keys = context or seq
        cache_bytes = 0 if context is None else 2 * batch * context * sizes.kv_heads * sizes.head * size
        attended = 4 * batch * seq * keys * sizes.head * sizes.heads / (1 if context else 2)
        operations_ = 2 * batch * seq * weights + attended
        bytes_, units = weights * size + cache_bytes, sizes.layers
        if row == "model":
            bytes_ = bytes_ * sizes.layers + sizes.hidden * sizes.vocabulary * size
            operations_ = operations_ * sizes.layers + 2 * batch * seq * sizes.hidden * sizes.vocabulary
            units = 1
        facts = {"row": row, "model": model, "dtype": dtype, "what": what, "phase": entry, "seq": seq, "batch": batch,
                 "context": context, "layers": sizes.layers, "kernels": len(launches),
                 "kernels_per_layer": self.per_layer(launches, sizes.layers)}
        self.measure(facts, decoder, graph.launch, graph.outputs["logits"], caches, ids, past,
                     measure.floor_us(bytes_, operations_, dtype), units)
        if row != "model" and "operation" in self.options.rows and what in ("seq 512", "context 1024 batch 1"):
            for operation in operations.PATTERNS:
                self.operation(operation, entry, program, decoder, launches, past, what, facts,
                               dict(symbols=symbols, states=mine, outputs=graph.outputs, **inputs))

    @staticmethod
    def per_layer(launches, layers):
        names = [name for name, _ in launches]
        return sum(c - c % layers for c in map(names.count, sorted(set(names)))) // layers

    def operation(self, operation, entry, program, decoder, launches, past, what, facts, call):
        torch, layers = self.torch, decoder.sizes.layers
        if self.late(f"{operation} {what}"):
            return
        names, _ = operations.kernels_of(launches, operation, layers)
        graph = program.capture(entry, kernels=names, **call)  # a graph may have a workspace of its own
        _, chosen = operations.kernels_of(graph.launches(), operation, layers)
        groups = operations.operands(chosen, len(chosen) if operation == "rms norm" else layers)
        functions, tensors = [], []
        moved = 0
        for inputs, output in groups:
            floats = [argument.tensor() for argument in inputs]
            for argument, tensor in zip(inputs, floats):
                if tensor.dim() > 2:  # activations and caches; weights stay as bound
                    tensor.normal_()
            if operation == "attention":
                made = operations.attention(torch, floats, past)
            elif operation == "rms norm":
                made = operations.norm(torch, floats, decoder.sizes.eps)
            else:
                made = operations.linear(torch, floats)
            functions.append(made[0])
            tensors.append(made[1])
            moved = sum(t.numel() * t.element_size() for t in made[1])
        saved = [(t, t.clone()) for inputs, _ in groups for t in (a.tensor() for a in inputs) if t.dim() > 2]

        def restore():
            for tensor, copy in saved:
                tensor.copy_(copy)

        out = groups[-1][1]
        moved += out.tensor().numel() * out.tensor().element_size()
        runs, outputs = {"hackc": graph.launch}, {}
        with torch.no_grad():
            for peer in self.options.peers:
                if peer != "eager" and self.late(f"{operation} {what} {peer}"):
                    continue
                mode = "max-autotune-no-cudagraphs" if peer == "max-autotune" else None
                function = functions[0] if peer == "eager" else torch.compile(functions[0], dynamic=False, mode=mode)
                runs[peer], outputs[peer] = measure.captured(
                    torch, lambda f=function: [f(*t) for t in tensors][-1])
            times = measure.alternate(torch, runs, self.options.rounds, budget_us=2000)
            restore()
            for peer in outputs:
                runs[peer]()
            truth = functions[-1](*[t.double() for t in tensors[-1]])
            errors = {name: harness.errors(o.reshape(truth.shape), truth)[0] for name, o in outputs.items()}
            # An output may lie where an input did, whose next layer then reads it: so for the truth as well.
            for function, made, (_, result) in zip(functions, tensors, groups):
                truth = function(*[t.double() for t in made])
                result.tensor().copy_(truth.reshape(result.tensor().shape))
            restore()
            graph.launch()
            torch.cuda.synchronize()
            errors = {"hackc": harness.errors(out.tensor().reshape(truth.shape), truth)[0]} | errors
        x = tensors[-1][0]
        if operation == "attention":
            q, k = tensors[-1][:2]
            work = 4 * q.numel() * k.shape[2] / (2 if past == 0 else 1)
        elif operation == "rms norm":
            work = 0
        else:
            work = 2 * x.shape[0] * x.shape[1] * tensors[-1][1].numel()
        keep = {key: facts[key] for key in ("model", "dtype", "phase", "seq", "batch", "context")}
        self.record(measure.row({"row": "operation", "what": f"{operation}, {what}", "kernels": names, **keep}, times,
                                errors, measure.floor_us(moved, work, facts["dtype"]), len(groups)))
        torch.compiler.reset()

    def stack(self, model, dtype):
        options = self.options
        wanted = {"prefill", "decode", "operation"} & set(options.rows)
        if not wanted or self.late(f"{model} {dtype}"):
            return
        config, program, decoder = self.compiled(model, dtype, num_hidden_layers=options.layers,
                                                 vocab_size=VOCABULARY)
        states = program.new_states(batch=min(max(options.batches), int(options.batch_range.split("..")[-1])))
        if wanted & {"decode", "operation"}:
            for context in options.contexts:
                for batch in options.batches:
                    if "decode" in wanted or (context, batch) == (1024, 1):
                        self.phase("decode", model, dtype, config, program, decoder, states, 1, batch, context)
        if wanted & {"prefill", "operation"}:
            for seq in options.seqs:
                if "prefill" in wanted or seq == 512:
                    self.phase("prefill", model, dtype, config, program, decoder, states, seq)

    def whole(self, model, dtype):
        if "model" not in self.options.rows or self.late(f"{model} {dtype} whole model"):
            return
        config, program, decoder = self.compiled(model, dtype)
        states = program.new_states(batch=1)
        self.phase("model", model, dtype, config, program, decoder, states, 1, 1, 1024)
        self.phase("model", model, dtype, config, program, decoder, states, 512)


def quiet_autotuning():
    import logging

    import torch._inductor.config as inductor

    inductor.autotune_num_choices_displayed = 0
    inductor.max_autotune_report_choices_stats = False
    logging.getLogger("torch._inductor.select_algorithm").setLevel(logging.CRITICAL)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", default="prefill,decode,operation,model,compile")
    parser.add_argument("--models", default="tinyllama-1.1b,qwen2.5-7b")
    parser.add_argument("--dtypes", default="bfloat16,float32")
    parser.add_argument("--seqs", default="128,512,2048")
    parser.add_argument("--contexts", default="1024,8192")
    parser.add_argument("--batches", default="1,8")
    parser.add_argument("--batch-range", default="1..8", help="what the program is compiled for")
    parser.add_argument("--seq-range", default="1..2048", help="likewise")
    parser.add_argument("--peers", default="eager,compile,max-autotune")
    parser.add_argument("--layers", type=int, default=4)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--minutes", type=float, default=1e9)
    parser.add_argument("--json", help="result file (else $OUT/compare.json, else ./compare.json)")
    options = parser.parse_args()
    for name in ("rows", "models", "dtypes", "peers"):
        setattr(options, name, getattr(options, name).split(","))
    for name in ("seqs", "contexts", "batches"):
        setattr(options, name, [int(value) for value in getattr(options, name).split(",")])
    torch = harness.need_gpu()
    quiet_autotuning()
    print(f"{'model':14} {'dtype':8} {'row':9} {'what':28} {'hackc us':>9} "
          + " ".join(f"{peer[:9]:>9} ratio" for peer in options.peers)
          + "     floor share  errors against float64      (ratio above 1: hackc is ahead)")
    with tempfile.TemporaryDirectory() as work:
        bench = Bench(torch, options, pathlib.Path(work))
        for model in options.models:
            for dtype in options.dtypes:
                bench.stack(model, dtype)
        for model in options.models:
            for dtype in options.dtypes:
                bench.whole(model, dtype)
        if "compile" in options.rows:
            for model in options.models:
                if not bench.late(f"{model} compile times"):
                    bench.notes.append(compile_times.compare(model, options.dtypes[0], harness.device_arch(torch)))
                    print(json.dumps(bench.notes[-1]), flush=True)
        bench.save()


if __name__ == "__main__":
    main()
