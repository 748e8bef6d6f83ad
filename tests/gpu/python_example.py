#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The Python package as a service uses it, against Hugging Face transformers: a server of this script's own compiles a
model's config, the program takes the model's weights where they lie, and generates.

    python3 tests/gpu/python_example.py                        # golden models and TinyLlama-1.1B, random weights
    python3 tests/gpu/python_example.py tests/data/golden/qwen2 models/tinyllama-1.1b.json --dtypes float32

For each model and dtype (golden models in float32 alone): logits of a prompt against transformers in float32 (float32: within twice its bound, as both
err; others: no further than transformers in that dtype, times 1.1); greedy tokens of generate() against transformers'
(float32: the same, or one whose logit is as high within that bound); the same tokens without a CUDA graph, through
DLPack, on another stream and in a batch; draws that repeat with their seed; a folder bound with progress gives the same
bits; runs return while the GPU is still at work; memory comes from PyTorch's pool and goes back.
Needs transformers, grpcio and protobuf. Exit code 0: all passed, 1: some did not, 77: it cannot run here.
"""

import argparse
import contextlib
import gc
import json
import pathlib
import subprocess
import sys
import tempfile
import time

import check_models
import harness

PROMPTS = (5, 37)


class Server:
    def __init__(self, folder):
        binary, port = harness.client().parent / "hackc-server", folder / "port"
        self.log = open(folder / "server.log", "wb")
        self.process = subprocess.Popen([binary, "--listen", "127.0.0.1:0", "--port-file", port, "--gpu", "none",
                                         "--cache-dir", folder / "cache"], stderr=self.log)
        end = time.monotonic() + 60
        while not port.exists():
            if self.process.poll() is not None or time.monotonic() > end:
                raise RuntimeError("hackc-server did not start: " + (folder / "server.log").read_text())
            time.sleep(0.02)
        self.address = f"127.0.0.1:{port.read_text().strip()}"

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        self.process.terminate()
        self.process.wait(60)


class Wrapped:
    """Somebody else's tensor: DLPack and nothing more."""

    def __init__(self, tensor):
        self._tensor = tensor

    shape = property(lambda self: self._tensor.shape)

    def __dlpack__(self, **options):
        return self._tensor.__dlpack__(**options)

    def __dlpack_device__(self):
        return self._tensor.__dlpack_device__()


class Case:
    """One model in one dtype; `wrong` collects what does not hold."""

    def __init__(self, torch, path, dtype, options, address, work):
        self.torch, self.dtype, self.options, self.work = torch, dtype, options, work
        self.name, self.config = check_models.read_config(path, options.layers)
        self.wrong, self.facts = [], {}
        if (path / "expected.safetensors").exists():
            import transformers

            self.model = transformers.AutoModelForCausalLM.from_pretrained(path, dtype=torch.float32).eval().cuda()
        else:
            self.model = check_models.build(torch, self.config, dtype, options.seed)
        self.model.config.use_cache = True
        self.vocab = self.config["vocab_size"]
        events, started = [], time.time()
        import hackc

        with hackc.Client(address) as client:
            self.program = client.compile(
                self.model.config, dtype=dtype, on_event=events.append,
                shapes={"batch": (1, 2), "seq": (1, 64), "past": (0, 64 + options.tokens)})
        self.facts["compile_seconds"] = time.time() - started
        self.facts["kernels"] = sum(isinstance(event, hackc.KernelReady) for event in events)
        self.expect(isinstance(events[-1], hackc.Report), "the last event is no report")

    def expect(self, holds, what):
        if not holds:
            self.wrong.append(what)

    def logits(self, ids):
        return check_models.logits_of(self.torch, self.model, ids).float()

    def greedy(self, ids):
        with self.torch.no_grad():
            return self.model.generate(ids, max_new_tokens=self.options.tokens, min_new_tokens=self.options.tokens,
                                       do_sample=False, attention_mask=self.torch.ones_like(ids), pad_token_id=0,
                                       eos_token_id=None)

    def run(self):
        torch = self.torch
        generator = torch.Generator().manual_seed(self.options.seed)
        prompts = [torch.randint(self.vocab, (1, length), generator=generator).cuda() for length in PROMPTS]
        truth = [self.logits(ids) for ids in prompts]
        check_models.convert(self.model, getattr(torch, self.dtype))
        rival = [self.logits(ids) for ids in prompts]
        tokens = [self.greedy(ids) for ids in prompts]
        gc.collect()
        torch.cuda.empty_cache()
        before = torch.cuda.memory_allocated()
        with self.program.load("cuda") as runtime:
            runtime.bind(self.model.state_dict())
            self.facts["bound_bytes"] = torch.cuda.memory_allocated() - before
            for ids, true, other, wanted in zip(prompts, truth, rival, tokens):
                self.compare(runtime, ids, true, other, wanted)
            self.ways(runtime, prompts[1])
            self.asynchrony(runtime, prompts[1])
            first = runtime(prompts[0].int(), states=runtime.new_states())["logits"].clone()
        torch.cuda.synchronize()
        gc.collect()
        # The first logits, and what PyTorch rounds up.
        self.expect(torch.cuda.memory_allocated() - before <= 2 * first.nbytes + (1 << 20), "close kept GPU memory")
        self.folder(prompts[0], first)

    def compare(self, runtime, ids, truth, rival, wanted):
        got = runtime(ids.int(), states=runtime.new_states(poison=True))["logits"].float().reshape(truth.shape)
        error = harness.errors(got, truth.double())
        rival_error = harness.errors(rival, truth.double())
        bound = 2 * harness.float32_bound(self.config)
        passed, why = check_models.judge(self.dtype, bound, error, rival_error, truth.numel())
        self.expect(passed, f"prompt {ids.shape[1]}: {why}")
        mine = runtime.generate(ids, self.options.tokens)
        same = int((mine == wanted).sum()) - ids.numel()
        self.facts[f"prompt {ids.shape[1]}"] = {"error": error[0], "torch_error": rival_error[0], "same_tokens": same,
                                                "tokens": self.options.tokens}
        self.expect(mine.shape == wanted.shape and mine.dtype == self.torch.int64, f"generate gave {list(mine.shape)}")
        if self.dtype == "float32" and not self.torch.equal(mine, wanted):
            at = int((mine != wanted).int().argmax())
            row = self.logits(wanted[:, :at])[-1]
            gap = (row[wanted[0, at]] - row[mine[0, at]]).abs().item()
            slack = 2 * harness.largest_of(bound, row.numel()) * row.square().mean().sqrt().item()
            self.expect(gap <= slack, f"prompt {ids.shape[1]}: token {at} differs, logits {gap:.3g} apart")

    def ways(self, runtime, ids):
        torch, count = self.torch, self.options.tokens
        tokens = runtime.generate(ids, count)
        self.expect(torch.equal(tokens, runtime.generate(ids, count)), "a second run gave other tokens")
        self.expect(torch.equal(tokens, runtime.generate(ids, count, graph=False)), "the graph gives other tokens")
        self.expect(torch.equal(tokens, runtime.generate(ids.tolist(), count)), "lists give other tokens")
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            other = runtime.generate(ids, count)
        torch.cuda.current_stream().wait_stream(stream)
        self.expect(torch.equal(tokens, other), "another stream gives other tokens")
        both = runtime.generate([ids[0].tolist(), ids[0, :5].tolist()], count)
        self.expect(both.shape == (2, ids.shape[1] + count), f"a batch gave {list(both.shape)}")
        alone = runtime.generate(ids[:, :5], count)
        if self.dtype == "float32":  # the kernels of two sequences may round otherwise, which bfloat16 shows
            self.expect(torch.equal(both[:1], tokens) and torch.equal(both[1:, :5 + count], alone),
                        "two sequences of unequal lengths give other tokens than each alone")
        drawn = [runtime.generate(ids, count, temperature=1.0, top_k=20, seed=seed) for seed in (3, 3, 4)]
        self.expect(torch.equal(drawn[0], drawn[1]), "a seed gives other tokens the second time")
        self.expect(not torch.equal(drawn[0], drawn[2]), "two seeds give the same tokens")
        self.expect(int(drawn[0].max()) < self.vocab and int(drawn[0].min()) >= 0, "a token outside the vocabulary")
        states = runtime.new_states()
        plain = runtime(ids.int(), states=states)["logits"]
        given = torch.full_like(plain, float("nan"))
        result = runtime(Wrapped(ids.int()), states={n: Wrapped(t) for n, t in states.items()},
                         outputs={"logits": given})["logits"]
        self.expect(result is given and torch.equal(plain, given), "DLPack gives other logits")

    def asynchrony(self, runtime, ids):
        """A run that waited for the GPU would take as long as what is before it on the stream."""
        torch = self.torch
        given, states = ids.int(), runtime.new_states()
        token = given[:, :1].contiguous()
        graph = runtime.capture("decode", {"past": ids.shape[1]}, states=states, input_ids=token)
        runtime(given, states=states)
        torch.cuda.synchronize()
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        begin.record()
        torch.cuda._sleep(400_000_000)  # about 0.2 s
        started = time.perf_counter()
        runtime(given, states=states)
        graph.launch({"past": ids.shape[1] + 1})
        launched = time.perf_counter() - started
        end.record()
        torch.cuda.synchronize()
        self.facts["launch_ms"], self.facts["gpu_ms"] = launched * 1e3, begin.elapsed_time(end)
        self.expect(launched * 1e3 < begin.elapsed_time(end) / 2, "a run waited for the GPU")

    def folder(self, ids, logits):
        """What save_pretrained writes, read by the runtime itself."""
        torch, told = self.torch, []
        target = self.work / f"{self.name}-{self.dtype}"
        self.model.save_pretrained(target)
        before = torch.cuda.memory_allocated()
        with self.program.load("cuda") as runtime:
            started = time.time()
            runtime.bind(target, progress=lambda done, total: told.append((done, total)))
            self.facts["folder_gb_per_s"] = told[-1][1] / 1e9 / (time.time() - started)
            self.expect(told[-1][0] == told[-1][1] and len(told) == len(runtime.weights()), "progress is incomplete")
            self.expect(torch.cuda.memory_allocated() > before, "the weights are not in PyTorch's pool")
            got = runtime(ids.int(), states=runtime.new_states())["logits"]
            self.expect(torch.equal(got, logits), "the folder gives other bits than the state dict")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", type=pathlib.Path, help="model files or golden models")
    parser.add_argument("--dtypes", default="float32,bfloat16")
    parser.add_argument("--tokens", type=int, default=32)
    parser.add_argument("--layers", type=int, default=0, help="only the first N layers")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", help="result file (else $OUT/python_example.json, else ./python_example.json)")
    options = parser.parse_args()
    torch = harness.need_gpu()
    for package in ("transformers", "grpc", "google.protobuf"):
        try:
            __import__(package)
        except ImportError as error:
            print(f"skipped: {error}")
            return harness.SKIPPED
    golden = harness.ROOT / "tests" / "data" / "golden"
    models = options.models or [golden / name for name in ("llama", "qwen2", "qwen3", "mistral", "llama-tied")] + [
        harness.ROOT / "models" / "tinyllama-1.1b.json"]
    cases, target = [], harness.result_path(options.json, "python_example.json")
    with contextlib.ExitStack() as stack:
        work = pathlib.Path(stack.enter_context(tempfile.TemporaryDirectory()))
        server = stack.enter_context(Server(work))
        for path in models:
            for dtype in options.dtypes.split(","):
                if dtype != "float32" and (path / "expected.safetensors").exists():
                    continue  # so few numbers that the ratio of two errors is chance
                case, reason = None, ""
                try:
                    case = Case(torch, path, dtype, options, server.address, work)
                    case.run()
                    reason = "; ".join(case.wrong)
                except Exception as error:  # one broken model must not hide the others
                    reason = f"{type(error).__name__}: {error}"
                facts = case.facts if case else {}
                cases.append({"model": path.stem, "dtype": dtype, "passed": not reason, "reason": reason, **facts})
                target.write_text(json.dumps({"machine": harness.machine(torch), "cases": cases}, indent=1) + "\n")
                print(f"{path.stem:18} {dtype:9} {'ok' if not reason else 'FAILED: ' + reason}  {json.dumps(facts)}",
                      flush=True)
                del case
                gc.collect()
                torch.cuda.empty_cache()
    passed = sum(case["passed"] for case in cases)
    print(f"{passed} of {len(cases)} cases passed; {target}")
    return 0 if cases and passed == len(cases) else 1


if __name__ == "__main__":
    sys.exit(main())
