#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The Python runtime on a real compiled program, with a driver and a PyTorch made for the test; needs no package.

    python_test.py HACKC_CLIENT LIBHACKC FAKE_LIBCUDA HACKC_SELFTEST PYTHON_FOLDER
"""

import array
import ctypes
import os
import pathlib
import subprocess
import sys
import tempfile
import types
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
GOLDEN = ROOT / "tests/data/golden/qwen2"
CLIENT, LIBRARY, FAKE_CUDA, SELFTEST, PACKAGE = sys.argv[1:6]
SIZES = {"float32": 4, "bfloat16": 2, "float16": 2, "int32": 4, "int64": 8, "uint8": 1}


class Tensor:
    """What the wrapper asks of a torch.Tensor, in host memory that the fake driver takes for a GPU's."""

    def __init__(self, shape, dtype, is_cuda=True):
        self.shape, self.dtype, self.is_cuda = tuple(shape), "torch." + dtype, is_cuda
        self.device = "cuda:0" if is_cuda else "cpu"
        count = 1
        for extent in self.shape:
            count *= extent
        self.nbytes = count * SIZES[dtype]
        self._memory = array.array("B", bytes(self.nbytes + 256))
        self._start = -self._memory.buffer_info()[0] % 256

    def data_ptr(self):
        return self._memory.buffer_info()[0] + self._start

    def dim(self):
        return len(self.shape)

    def numel(self):
        return self.nbytes // SIZES[self.dtype.removeprefix("torch.")]

    def is_contiguous(self):
        return True

    def detach(self):
        return self

    def view(self, _):
        return self

    def fill_(self, value):
        self._memory[self._start:self._start + self.nbytes] = array.array("B", bytes([value]) * self.nbytes)

    def bytes(self):
        return bytes(self._memory[self._start:self._start + self.nbytes])


torch = types.ModuleType("torch")
torch.device = lambda kind, index: f"{kind}:{index}"
torch.empty = lambda shape, dtype, device: Tensor((shape,) if isinstance(shape, int) else shape, dtype)
torch.Tensor = Tensor
torch.cuda = types.SimpleNamespace(current_stream=lambda device: types.SimpleNamespace(cuda_stream=0),
                                   current_device=lambda: 0, is_available=lambda: True,
                                   synchronize=lambda device: None)
for name in SIZES:
    setattr(torch, name, name)
sys.modules["torch"] = torch
sys.path.insert(0, PACKAGE)
os.environ["HACKC_LIBRARY"] = LIBRARY
# Loaded first under the driver's own name: what asks for libcuda.so.1 afterwards gets this one.
cuda = ctypes.CDLL(FAKE_CUDA)

import hackc  # noqa: E402


class PythonTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.scratch = tempfile.TemporaryDirectory()
        cls.folder = pathlib.Path(cls.scratch.name) / "out"
        cls.cached = pathlib.Path(cls.scratch.name) / "cached"
        for out, past in ((cls.folder, "0"), (cls.cached, "0..32")):
            subprocess.run([CLIENT, "submit", GOLDEN, "--local", "--cache-dir", cls.scratch.name, "--dtype",
                            "float32", "--arch", "sm_90a", "--seq", "1..16", "--past", past, "--out", out],
                           check=True, capture_output=True)

    @classmethod
    def tearDownClass(cls):
        cls.scratch.cleanup()

    def setUp(self):
        self.program = hackc.Program(self.folder).load()
        self.weights = {n: Tensor(shape, dtype) for n, (dtype, shape) in self.program.weights().items()}

    def test_knows_the_model(self):
        self.assertEqual(self.weights["model.layers.1.self_attn.q_proj.bias"].shape, (32,))
        self.assertEqual(self.weights["model.embed_tokens.weight"].shape, (96, 32))
        self.assertEqual(len(self.weights), 27)
        self.assertEqual(self.program.symbols()["seq"], (1, 16))
        tensors = self.program.tensors("prefill", {"batch": 1, "seq": 5})
        self.assertEqual(tensors["logits"][2][-2:], (5, 96))

    def test_runs(self):
        self.program.bind(self.weights)
        ids = Tensor((1, 5), self.program.dtype_of("prefill", "input_ids"))
        before = cuda.fake_cuda_launches()
        logits = self.program.run("prefill", input_ids=ids, poison=True)["logits"]
        launched = cuda.fake_cuda_launches() - before
        # At the least a norm, the projections, attention and the MLP in each of two layers.
        self.assertGreater(launched, 10)
        self.assertEqual(logits.bytes(), b"\xff" * logits.nbytes)
        graph = self.program.capture("prefill", input_ids=ids)
        graph.launch()
        self.assertEqual(cuda.fake_cuda_launches() - before, 2 * launched)
        launches = graph.launches()
        self.assertEqual(len(launches), launched)
        name, arguments = launches[-1]
        self.assertEqual((arguments[-1].name, arguments[-1].shape, arguments[-1].written), ("logits", (1, 5, 96), True))
        one = self.program.capture("prefill", kernels=[name], input_ids=ids)
        one.launch()
        same = sum(other == name for other, _ in launches)
        self.assertEqual(cuda.fake_cuda_launches() - before, 2 * launched + same)
        with self.assertRaisesRegex(hackc.HackcError, "prefill launches no kernel nothing"):
            self.program.capture("prefill", kernels=["nothing"], input_ids=ids)

    def test_host_weights_are_copied(self):
        for tensor in self.weights.values():
            tensor.is_cuda = False
        self.program.bind(self.weights)

    def test_names_what_is_wrong_with_weights(self):
        spare = dict(self.weights, spare=Tensor((1,), "float32"))
        with self.assertRaisesRegex(hackc.HackcError, "1 weights are not of this program: spare"):
            self.program.bind(spare)
        tied = dict(self.weights, alias=self.weights["model.norm.weight"])
        self.weights.pop("model.norm.weight")
        with self.assertRaisesRegex(hackc.HackcError, "1 weights are missing: model.norm.weight"):
            self.program.bind(self.weights)
        self.weights["model.norm.weight"] = Tensor((32,), "bfloat16")
        with self.assertRaisesRegex(hackc.HackcError, "expected DTYPE_FLOAT32 .32., got DTYPE_BFLOAT16 .32.; .*convert=True"):
            self.program.bind(self.weights)
        self.program.bind(tied)  # another name of a bound tensor is no stranger

    def test_names_what_is_wrong_with_a_call(self):
        self.program.bind(self.weights)
        ids = Tensor((1, 5), self.program.dtype_of("prefill", "input_ids"))
        for change, expected in [
            ({"input_ids": Tensor((1, 17), "int32")}, "seq = 17"),
            ({"input_ids": Tensor((1, 5), "float32")}, "input_ids: expected int32 .1, 5., got float32"),
            ({"input_ids": Tensor((1, 5), "int32", is_cuda=False)}, "input_ids: must be contiguous on cuda:0"),
            ({"mask": ids}, "prefill has no tensor mask"),
            ({"entry": "decode"}, "entry point 'decode' does not exist"),
        ]:
            with self.subTest(expected), self.assertRaisesRegex(hackc.HackcError, expected):
                self.program.run(**({"input_ids": ids} | change))

    def test_open_says_what_is_wrong(self):
        with self.assertRaisesRegex(hackc.NotFound, "nonexistent/program.pb: no such file"):
            hackc.Program("/nonexistent")

    def test_decodes_over_a_cache(self):
        program = hackc.Program(self.cached).load()
        program.bind(GOLDEN)  # a Hugging Face folder
        cache = program.new_states(poison=True)
        self.assertEqual(set(cache), {f"layers.{n}.{kind}_cache" for n in (0, 1) for kind in ("key", "value")})
        self.assertEqual({tensor.shape[:2] for tensor in cache.values()}, {(1, 48)})
        prompt, token = Tensor((1, 5), "int32"), Tensor((1, 1), "int32")
        program.run("prefill", {"past": 0}, states=cache, input_ids=prompt)
        logits = program.run("decode", {"past": 5}, states=cache, input_ids=token)["logits"]
        self.assertEqual(logits.shape[-2:], (1, 96))
        before = cuda.fake_cuda_launches()
        graph = program.capture("decode", {"past": 6}, states=cache, input_ids=token)
        self.assertEqual(cuda.fake_cuda_launches(), before)
        for past in (6, 7, 32):
            graph.launch({"past": past})
            self.assertEqual(graph._lengths.bytes(), past.to_bytes(4, "little"))
        lengths = Tensor((1,), "int32")
        program.run("decode", {"past": 5}, states=cache, input_ids=token, past_lengths=lengths)
        own = program.capture("decode", {"past": 6}, states=cache, input_ids=token, past_lengths=lengths)
        own.launch({"past": 7})
        self.assertEqual(lengths.bytes(), bytes(4))  # the caller's
        self.assertGreater(cuda.fake_cuda_launches(), before + 3 * 10)
        for work, expected in [
            (lambda: graph.launch({"past": 33}), "past = 33, the entry point decode is compiled for 0..32"),
            (lambda: program.run("decode", {"past": 5}, states=cache, input_ids=prompt), "seq = 5, the entry"),
            (lambda: program.run("decode", {"past": 5}, input_ids=token), "layers.0.key_cache: not given"),
            (lambda: program.run("decode", states=cache, input_ids=token), "symbol past needs a value of 0..32"),
        ]:
            with self.subTest(expected), self.assertRaisesRegex(hackc.HackcError, expected):
                work()

    def test_folders_are_checked(self):
        program = hackc.Program(self.folder).load()
        with self.assertRaisesRegex(hackc.NotFound, "^.*has neither model.safetensors nor"):
            program.bind(self.scratch.name)
        program.bind(GOLDEN)

    def run_client(self, name, library):
        folder = pathlib.Path(self.scratch.name) / name
        folder.mkdir()
        library(folder / "libcuda.so.1")
        # A program that is compiled already: NVRTC would call more of a driver than the test's has.
        return subprocess.run([CLIENT, "run", GOLDEN, "--program", self.cached, "--ids", "1,2,3", "--tokens",
                               "4"], env=dict(os.environ, LD_LIBRARY_PATH=str(folder)), capture_output=True,
                              text=True)

    def test_client_generates(self):
        done = self.run_client("fake", lambda path: path.symlink_to(FAKE_CUDA))
        self.assertEqual(done.returncode, 0, done.stderr)
        # Nothing computes, so that every logit is 0 and the first token the likeliest.
        self.assertEqual(done.stdout.splitlines()[0], "0,0,0,0")
        self.assertRegex(done.stdout, r"prefill 3 tokens in .* ms; decode 3 tokens in .* tokens/s")

    def test_client_says_in_a_line_that_there_is_no_gpu(self):
        done = self.run_client("broken", lambda path: path.write_bytes(b""))
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stderr, "^hackc-client: FAILED_PRECONDITION: no CUDA driver on this machine")
        self.assertEqual(len(done.stderr.splitlines()), 1)

    def test_selftest_sees_what_no_kernel_wrote(self):
        folder = pathlib.Path(self.scratch.name) / "driver"
        folder.mkdir()
        (folder / "libcuda.so.1").symlink_to(FAKE_CUDA)
        environment = dict(os.environ, LD_LIBRARY_PATH=str(folder))
        done = subprocess.run([SELFTEST, self.folder, "--seq", "1,5"], env=environment, capture_output=True,
                              text=True)
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn("hackc-selftest: INTERNAL: logits[0] is", done.stderr)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
