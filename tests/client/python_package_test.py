#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The Python package as pip installs it: compiling on real servers, its exceptions, DLPack, generation, types.

    python_package_test.py HACKC_SERVER FAKE_SERVER LIBHACKC FAKE_LIBCUDA WORK_FOLDER

Installs into a virtual environment in WORK_FOLDER, which later runs use again; exit code 77 where no package index
is to be reached. The driver is the tests' own: kernels are launched, and compute nothing.
"""

import asyncio
import concurrent.futures
import contextlib
import copy
import ctypes
import gc
import json
import os
import pathlib
import pickle
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import types
import unittest
from unittest import mock

ROOT = pathlib.Path(__file__).resolve().parents[2]
GOLDEN = ROOT / "tests/data/golden/qwen2"
INSIDE = os.environ.get("HACKC_TEST_VENV")
SERVER, FAKE_SERVER, LIBRARY, FAKE_CUDA, WORK = sys.argv[1:6]
PROTOBUFS = ("3.20.3", "4.21.12", "5.29.5", "7.36.2")
PACKAGES = ("grpcio==1.85.3", "numpy==2.4.6", "mypy==2.4.1", "setuptools==84.2.1", f"protobuf=={PROTOBUFS[-1]}")


def prepare():
    """The environment's Python, with the package as it is now."""
    folder = pathlib.Path(WORK)
    python = folder / "venv" / "bin" / "python"

    def pip(*arguments):
        return subprocess.run([python, "-m", "pip", "--disable-pip-version-check", "-q", "install", *arguments],
                              capture_output=True, text=True)

    ready = folder / "ready"
    wanted = " ".join(PACKAGES + PROTOBUFS)
    if not ready.exists() or ready.read_text() != wanted:
        folder.mkdir(parents=True, exist_ok=True)
        steps = [lambda: subprocess.run([sys.executable, "-m", "venv", "--clear", folder / "venv"],
                                        capture_output=True, text=True),
                 lambda: pip(*PACKAGES)]
        steps += [lambda v=v: pip("--no-deps", "--target", folder / f"protobuf-{v}", f"protobuf=={v}") for v in PROTOBUFS]
        for step in steps:
            done = step()
            if done.returncode:
                print("skipped: no virtual environment with grpcio, protobuf, numpy and mypy could be made:\n"
                      + (done.stderr or done.stdout)[-600:])
                sys.exit(77)
        ready.write_text(wanted)
    # In a copy: setuptools builds where the sources are, and ships what it finds there from before.
    copy = folder / "source"
    shutil.rmtree(copy, ignore_errors=True)
    for part in ("client/python", "proto"):
        shutil.copytree(ROOT / part, copy / part, ignore=shutil.ignore_patterns("build", "*.egg-info", "__pycache__"))
    (copy / "client/python/build/lib/hackc").mkdir(parents=True)
    (copy / "client/python/build/lib/hackc/of_an_earlier_build.py").touch()
    os.environ["HACKC_LIBRARY"] = LIBRARY
    done = pip("--no-deps", "--no-build-isolation", "--force-reinstall", copy / "client/python")
    if done.returncode:
        sys.exit("pip install client/python failed:\n" + done.stderr)
    return python


if not INSIDE:
    command = [prepare(), "-B", os.path.abspath(__file__), *sys.argv[1:]]
    environment = dict(os.environ, HACKC_TEST_VENV="1", HACKC_LIBRARY=LIBRARY, HACKC_SERVER_BINARY=SERVER)
    sys.exit(subprocess.run(command, env=environment, cwd=WORK).returncode)

import grpc  # noqa: E402
import numpy  # noqa: E402

cuda = ctypes.CDLL(FAKE_CUDA)  # first: what asks for libcuda.so.1 afterwards gets this one
import hackc  # noqa: E402
from hackc import dlpack, errors, library  # noqa: E402
from hackc.generation import generate  # noqa: E402
from hackc.v1 import compiler_pb2  # noqa: E402

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import numpy_torch  # noqa: E402

CACHED = {"batch": (1, 2), "seq": (1, 16), "past": (0, 32)}


def scratch(case):
    folder = tempfile.TemporaryDirectory()
    case.addClassCleanup(folder.cleanup)
    return pathlib.Path(folder.name)


class WithLocalServer(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.scratch = scratch(cls)
        cls.client = hackc.Client(local=True, cache_dir=cls.scratch / "cache")
        cls.addClassCleanup(cls.client.close)
        cls.events = []
        cls.program = cls.client.compile(GOLDEN, dtype="float32", shapes=CACHED, arch="sm_90a",
                                         on_event=cls.events.append)

    def compile(self, config, **options):
        return self.client.compile(config, **{"dtype": "float32", "shapes": CACHED, "arch": "sm_90a", **options})


class Compile(WithLocalServer):
    def test_tells_what_happens_in_order(self):
        kinds = [type(event).__name__ for event in self.events]
        self.assertEqual(kinds[0], "Progress")
        self.assertEqual(kinds[-2:], ["ProgramReady", "Report"])
        kernels = [event for event in self.events if isinstance(event, hackc.KernelReady)]
        names = [kernel.name for kernel in self.program.message.kernels]
        self.assertEqual(sorted(kernel.name for kernel in kernels), sorted(names))
        self.assertTrue(all(not kernel.hit and kernel.cubin_bytes > 0 and kernel.times for kernel in kernels))
        done = [(event.done, event.total) for event in self.events
                if isinstance(event, hackc.Progress) and event.stage == "compile"]
        self.assertEqual(done, sorted(done))
        self.assertEqual(done[-1][0], done[-1][1])
        self.assertEqual(self.events[-1], self.program.report)
        self.assertEqual(self.program.report.misses + self.program.report.hits, len(names))

    def test_every_way_to_name_a_model_is_the_same_program(self):
        config = json.loads((GOLDEN / "config.json").read_text())
        transformers = types.SimpleNamespace(to_json_string=lambda: json.dumps(config), _name_or_path="org/qwen2")
        description = {"name": "qwen2", "config": config, "dtype": "DTYPE_FLOAT32"}
        for given in (config, GOLDEN / "config.json", str(GOLDEN), transformers, description):
            program = self.compile(given, name="qwen2", dtype=None if given is description else "float32")
            self.assertEqual(program.digest, self.program.digest)
            self.assertEqual(program.report.misses, 0)
        shapes = {"batch": "1..2", "seq": (1, 16), "past": [0, 32]}
        self.assertEqual(self.compile(GOLDEN, shapes=shapes).digest, self.program.digest)

    def test_the_stream_is_an_iterator(self):
        with self.client.stream(GOLDEN, dtype="float32", shapes=CACHED, arch="sm_90a", with_ir=True) as stream:
            first = next(stream)
            self.assertIn("threadIdx", first.ir["cuda"])
            self.assertEqual(stream.result().digest, self.program.digest)
            self.assertEqual(list(stream), [])

    def test_asyncio(self):
        seen = []
        program = asyncio.run(self.client.compile_async(GOLDEN, dtype="float32", shapes=CACHED, arch="sm_90a",
                                                        on_event=seen.append))
        self.assertEqual(program.digest, self.program.digest)
        self.assertIsInstance(seen[-1], hackc.Report)

    def test_fetch_and_save(self):
        fetched = self.client.fetch(self.program.digest)
        fetched.save(self.scratch / "saved")
        read = hackc.Program(self.scratch / "saved")
        self.assertEqual(read.message, self.program.message)
        read.save(self.scratch / "again")
        for path in (self.scratch / "saved").iterdir():
            self.assertEqual((self.scratch / "again" / path.name).read_bytes(), path.read_bytes())
        with self.assertRaisesRegex(hackc.NotFound, "no blob sha256:0"):
            self.client.fetch("sha256:" + "0" * 64)

    def test_refusals_name_the_field(self):
        config = json.loads((GOLDEN / "config.json").read_text())
        for change, field, expected in [
            ({"config": dict(config, hidden_size=-1)}, "config.hidden_size", "expected an integer"),
            ({"config": dict(config, model_type="gpt9")}, "config.model_type", "is not supported; expected one of"),
            ({"shapes": {"seq": (5, 1)}}, "seq", "expected 1 <= min <= max"),
            ({"shapes": {"seq": "many"}}, "shapes.seq", "expected a size or .least, most., got 'many'"),
            ({"shapes": {"heads": 1}}, "shapes.heads", "expected one of batch, seq, past"),
            ({"shapes": {"seq": (1.9, 5.7)}}, "shapes.seq", "expected a whole number of 1 to .*, got 1.9"),
            ({"shapes": {"seq": True}}, "shapes.seq", "expected a whole number of 1 to .*, got True"),
            ({"shapes": {"seq": 0}}, "shapes.seq", "expected a whole number of 1 to .*, got 0"),
            ({"shapes": {"batch": (0, 4)}}, "shapes.batch", "expected a whole number of 1 to .*, got 0"),
            ({"shapes": {"past": 10**30}}, "shapes.past", "expected a whole number of 0 to .*, got 1000"),
            ({"shapes": {"seq": (1, 2, 3)}}, "shapes.seq", "expected a size or .least, most., got .1, 2, 3."),
            ({"shapes": [("seq", 1)]}, "shapes", "expected a mapping such as .*, got "),
            ({"shapes": {"seq": None}}, "shapes.seq", "expected a size or .least, most., got None"),
            ({"layers": 2**40}, "layers", "expected a whole number of 0 to 2147483647, got 1099511627776"),
            ({"layers": True}, "layers", "expected a whole number of 0 to 2147483647, got True"),
            ({"layers": -1}, "layers", "expected a whole number of 0 to 2147483647, got -1"),
            ({"page_size": "x"}, "page_size", "expected a whole number of 0 to .*, got 'x'"),
            ({"page_size": 16.0}, "page_size", "expected a whole number of 0 to .*, got 16.0"),
            ({"arch": 90}, "arch", "expected a name such as sm_90a, got 90"),
            ({"name": 5}, "name", "expected a string, got 5"),
            ({"dtype": "int8"}, "dtype", "expected one of float32, bfloat16, float16, got 'int8'"),
            ({"config": "/dev/zero"}, "config", "/dev/zero is not a regular file"),
            ({"config": 5}, "config", "expected a dict, a path or a transformers config, got int"),
            ({"config": "/nonexistent/x"}, "config", "there is no /nonexistent/x; expected a folder"),
            ({"config": "Qwen/Qwen2.5-0.5B"}, "config", "there is no Qwen/Qwen2.5-0.5B; .* downloads nothing"),
            ({"config": {"model_type": "qwen2", "a": float("nan")}}, None, ""),
        ]:
            with self.subTest(change), self.assertRaisesRegex(hackc.InvalidConfig, expected) as raised:
                self.compile(**{"config": GOLDEN, **change})
            self.assertIsInstance(raised.exception, ValueError)
            if field:
                self.assertEqual(raised.exception.field, field)

    def test_json_that_is_not_what_it_seems(self):
        path = self.scratch / "config.json"
        for text, field, expected in [
            ('{"model_type": "qwen2", "hidden_size": 32, "hidden_size": 64}', "config.hidden_size", "is given twice"),
            ('{"rope": [{"a": 1}, {"a": 1, "a": 1}]}', "config.rope[1].a", r"the key rope\[1\].a is given twice"),
            ("[" * 100000, "config", "nested deeper than 32 levels"),
            ('{"a":' * 40 + "1" + "}" * 40, "config", "nested deeper than 32 levels"),
            ('{"a": NaN}', "config", "NaN is no number of JSON"),
            ('{"a": oops}', "config", "not JSON: Expecting value: line 1"),
            (" " * (1 << 20) + "{}", "config", "larger than the limit of 1048576 bytes"),
        ]:
            path.write_text(text)
            transformers = types.SimpleNamespace(to_json_string=path.read_text)
            for given in (path, str(path), self.scratch, transformers):
                with self.subTest(text[:30]), self.assertRaisesRegex(hackc.InvalidConfig, expected) as raised:
                    self.compile(given)
                self.assertEqual(raised.exception.field, field)
        path.write_text((GOLDEN / "config.json").read_text(), encoding="utf-8-sig")
        self.assertEqual(self.compile(path).digest, self.program.digest)
        endless = {"model_type": "qwen2"}
        endless["rope"] = endless
        with self.assertRaisesRegex(hackc.InvalidConfig, "config: nested deeper than 32 levels"):
            self.compile(endless)

    def test_a_saved_program_is_whole_or_none(self):
        folder = self.scratch / "replaced"
        old = type(self.program.message)()
        for name in ("old", "other"):
            old.kernels.add().name = name
        before = ["old.cubin", "old/loop.hir", "other/mine", "mine.cubin", "report.json", "kernel.hir"]
        for file in before:
            (folder / file).parent.mkdir(parents=True, exist_ok=True)
            (folder / file).write_text("before")
        (folder / "program.pb").write_bytes(old.SerializeToString())
        self.program.save(folder)
        self.assertEqual([file for file in before if (folder / file).exists()], ["other/mine", "mine.cubin"])
        self.assertFalse((folder / "old").exists() or (folder / "program.pb.new").exists())
        self.assertEqual(hackc.Program(folder).message, self.program.message)
        hackc.Program(folder).save(folder)  # onto itself
        self.assertEqual(hackc.Program(folder).message, self.program.message)
        cubin = folder / f"{self.program.message.kernels[-1].name}.cubin"
        cubin.unlink()
        cubin.mkdir()
        with self.assertRaises(OSError):
            self.program.save(folder)
        with self.assertRaises(hackc.NotFound):
            hackc.Program(folder)

    def test_a_closed_client(self):
        client = hackc.Client(self.client.address)
        client.close()
        for work in (client.status, lambda: client.compile(GOLDEN), lambda: client.fetch(self.program.digest)):
            with self.assertRaisesRegex(hackc.FailedPrecondition, "this client is closed"):
                work()

    def test_status(self):
        status = self.client.status()
        self.assertIn("sm_90a", status["archs"])
        self.assertGreater(status["compiled_kernels"], 0)

    def test_the_local_server_ends_with_its_process(self):
        script = "import hackc, time\nc = hackc.Client(local=True)\nprint(c.address, flush=True)\ntime.sleep(60)"
        with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True) as process:
            path = process.stdout.readline().strip().removeprefix("unix:")
            with socket.socket(socket.AF_UNIX) as probe:
                probe.connect(path)
            process.send_signal(signal.SIGKILL)
            process.wait()
        end = time.monotonic() + 20
        with self.assertRaises(OSError):
            while time.monotonic() < end:
                with socket.socket(socket.AF_UNIX) as probe:
                    probe.connect(path)
                time.sleep(0.05)
        while os.path.exists(os.path.dirname(path)) and time.monotonic() < end:
            time.sleep(0.05)
        self.assertFalse(os.path.exists(os.path.dirname(path)))

    def test_the_local_server_outlives_an_interrupt(self):
        script = ("import hackc, os, signal, time\nclient = hackc.Client(local=True)\n"
                  "try:\n    os.killpg(0, signal.SIGINT)\n    time.sleep(10)\n"
                  "except KeyboardInterrupt:\n    time.sleep(0.5)\n    print(client.status()['version'])\n")
        done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, start_new_session=True)
        self.assertEqual(done.stdout.strip(), hackc.__version__, done.stderr)

    def test_a_local_server_that_is_gone(self):
        with hackc.Client(local=True) as client:
            client.status()
            os.killpg(client._server._process.pid, signal.SIGKILL)
            client._server._process.wait()
            with self.assertRaisesRegex(hackc.Unavailable, "own server has ended with code -9: .*make another with"):
                client.status()

    def test_every_protobuf(self):
        script = f"import google.protobuf, hackc, sys\np = hackc.Client({self.client.address!r}).fetch(sys.argv[1])\n" \
                 f"print(google.protobuf.__version__, len(p.message.kernels))"
        for version in PROTOBUFS:
            done = subprocess.run([sys.executable, "-c", script, self.program.digest], capture_output=True, text=True,
                                  env=dict(os.environ, PYTHONPATH=f"{WORK}/protobuf-{version}"))
            self.assertEqual(done.stdout, f"{version} {len(self.program.message.kernels)}\n", done.stderr)

    def test_types(self):
        folder = pathlib.Path(hackc.__file__).parents[1]
        done = subprocess.run([sys.executable, "-m", "mypy", "--config-file", ROOT / "client/python/pyproject.toml",
                               "--cache-dir", f"{WORK}/mypy", "--no-silence-site-packages", "--allow-subclassing-any", "-p", "hackc"], cwd=WORK,
                              capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertTrue((folder / "hackc" / "py.typed").exists())
        self.assertFalse((folder / "hackc" / "of_an_earlier_build.py").exists())


class Failures(unittest.TestCase):
    """A real server over a compiler that does as the config says."""

    @classmethod
    def setUpClass(cls):
        cls.folder = scratch(cls)
        port = cls.folder / "port"
        cls.process = subprocess.Popen(
            [FAKE_SERVER, "--listen", "127.0.0.1:0", "--port-file", port, "--workers", "1", "--cache-dir",
             cls.folder / "cache", "--grace", "0"], stderr=subprocess.DEVNULL)
        cls.addClassCleanup(cls.process.wait)
        cls.addClassCleanup(cls.process.kill)
        end = time.monotonic() + 30
        while not port.exists() and time.monotonic() < end:
            time.sleep(0.02)
        cls.client = hackc.Client(f"127.0.0.1:{port.read_text().strip()}", timeout=60)
        cls.addClassCleanup(cls.client.close)

    def setUp(self):
        # A key of its own for each test: nothing comes from the cache.
        self.compiled = self.folder / self.id()
        self.config = {"model_type": "fake", "kernels": 3, "salt": self.id(), "slow_ms": 2000,
                       "count_file": str(self.compiled)}

    def compile(self, behave=None, **options):
        return self.client.compile({**self.config, "behave": behave or {}}, arch="sm_90a", **options)

    def assert_given_up(self):
        """The server ends the kernel that it is at and starts no other."""
        end = time.monotonic() + 30
        while self.client.status()["running"]:
            self.assertLess(time.monotonic(), end)
            time.sleep(0.05)
        self.assertLess(len(self.compiled.read_text().split() if self.compiled.exists() else ()), 3)

    def test_a_kernel_that_does_not_compile(self):
        with self.assertRaises(hackc.CompileError) as raised:
            self.compile({"k1": "error"})
        self.assertEqual(raised.exception.kernel, "k1")
        self.assertEqual(str(raised.exception), f'kernel "k1": {raised.exception.log}')
        self.assertGreater(len(raised.exception.log), 5)

    def test_a_kernel_that_kills_its_worker(self):
        with self.assertRaises(hackc.CompileError) as raised:
            self.compile({"k2": "crash"})
        self.assertEqual(raised.exception.kernel, "k2")

    def test_refusals(self):
        self.config["invalid"] = "rope"
        with self.assertRaises(hackc.InvalidConfig) as raised:
            self.compile()
        self.assertEqual(raised.exception.field, "model.config.rope")

    def test_deadline(self):
        started, self.config["slow_ms"] = time.monotonic(), 6000
        with self.assertRaises(hackc.DeadlineExceeded) as raised:
            self.compile({"k0": "slow"}, timeout=0.5)
        self.assertIsInstance(raised.exception, TimeoutError)
        self.assertLess(time.monotonic() - started, 5)
        self.assert_given_up()

    def test_cancel(self):
        stream = self.client.stream({**self.config, "behave": {"k0": "slow"}}, arch="sm_90a")
        self.assertIsInstance(next(stream), hackc.Progress)
        stream.cancel()
        with self.assertRaises(hackc.Cancelled):
            list(stream)
        with self.assertRaises(hackc.FailedPrecondition):
            stream.result()
        self.assert_given_up()

    def test_what_a_callback_raises_ends_the_compile(self):
        def stop(event):
            raise KeyError("enough")

        with self.assertRaises(KeyError):
            self.compile({"k0": "slow"}, on_event=stop)
        self.assert_given_up()

    def test_what_an_asynchronous_callback_raises_ends_the_compile(self):
        def stop(event):
            raise KeyError("enough")

        with self.assertRaises(KeyError):
            asyncio.run(self.client.compile_async({**self.config, "behave": {"k0": "slow"}}, arch="sm_90a",
                                                  on_event=stop))
        self.assert_given_up()

    def test_asyncio_cancels(self):
        async def work():
            task = asyncio.create_task(self.client.compile_async(
                {**self.config, "behave": {"k0": "slow"}}, arch="sm_90a"))
            while not self.client.status()["running"]:
                await asyncio.sleep(0.02)
            task.cancel()
            with self.assertRaises(asyncio.CancelledError):
                await task

        asyncio.run(work())
        self.assert_given_up()

    def test_no_server(self):
        with self.assertRaisesRegex(hackc.Unavailable, r"server at 127.0.0.1:1: .*hackc.Client\(local=True\)") as raised:
            hackc.Client("127.0.0.1:1").compile(self.config)
        self.assertIsInstance(raised.exception, ConnectionError)
        with socket.socket() as silent:
            silent.bind(("127.0.0.1", 0))
            silent.listen()
            started = time.monotonic()
            with self.assertRaises(hackc.Unavailable):
                hackc.Client(f"127.0.0.1:{silent.getsockname()[1]}", connect_timeout=0.5).status()
            self.assertLess(time.monotonic() - started, 10)

    def test_no_local_server(self):
        temporary = scratch(type(self))
        patched = mock.patch.object(tempfile, "tempdir", str(temporary))
        patched.start()
        self.addCleanup(patched.stop)
        with mock.patch.dict(os.environ, HACKC_SERVER_BINARY="/nonexistent"):
            with self.assertRaisesRegex(hackc.FailedPrecondition, "hackc-server not found at .*; build it"):
                hackc.Client(local=True)
        with mock.patch.dict(os.environ, HACKC_SERVER_BINARY="/bin/false"):
            with self.assertRaisesRegex(hackc.Unavailable, "/bin/false ended with code 1"):
                hackc.Client(local=True)
        with self.assertRaisesRegex(hackc.InvalidArgument, "a local client has a server of its own"):
            hackc.Client("127.0.0.1:1", local=True)
        self.assertEqual(list(temporary.iterdir()), [])

    def test_damaged_answers(self):
        good = compiler_pb2.CompileEvent()
        good.progress.stage = "lower"
        kernel, program = compiler_pb2.CompileEvent(), compiler_pb2.CompileEvent()
        kernel.kernel.kernel.name, kernel.kernel.kernel.digest, kernel.kernel.cubin = "k", "sha256:1", b"code"
        program.program.digest, program.program.bytes = "sha256:2", b"program"
        for answers, kind, expected in [([good, kernel], hackc.DataLoss, "cubin of k: expected sha256:1, got bytes of"),
                                        ([program], hackc.DataLoss, "program: expected sha256:2"),
                                        ([good], hackc.HackcError, "the answer ended without a program")]:
            handler = grpc.unary_stream_rpc_method_handler(
                lambda request, context: iter(answers), compiler_pb2.CompileRequest.FromString,
                compiler_pb2.CompileEvent.SerializeToString)
            server = grpc.server(concurrent.futures.ThreadPoolExecutor(1))
            server.add_generic_rpc_handlers(
                [grpc.method_handlers_generic_handler("hackc.v1.Compiler", {"Compile": handler})])
            port = server.add_insecure_port("127.0.0.1:0")
            server.start()
            with self.subTest(expected), hackc.Client(f"127.0.0.1:{port}") as client:
                with self.assertRaisesRegex(kind, expected):
                    client.compile(self.config)
            server.stop(0)


def kinds_of(kind):
    yield kind
    for inner in kind.__subclasses__():
        yield from kinds_of(inner)


class Exceptions(unittest.TestCase):
    def test_every_class_can_be_pickled(self):
        kinds = list(kinds_of(hackc.HackcError))
        self.assertGreater(len(kinds), 15)
        for kind in kinds:
            for error in (kind(5, "what was wrong"), copy.copy(kind(5, "what was wrong"))):
                error.more = ["anything"]
                read = pickle.loads(pickle.dumps(error))
                self.assertEqual((type(read), str(read), read.args, vars(read)),
                                 (kind, "what was wrong", error.args, vars(error)))
        read = pickle.loads(pickle.dumps(hackc.CompileError(13, "m", "k", "log")))
        self.assertEqual((read.code, str(read), read.kernel, read.log), (13, "m", "k", "log"))
        self.assertEqual(pickle.loads(pickle.dumps(hackc.InvalidConfig(3, "m", "seq"))).field, "seq")

    def test_they_come_out_of_a_process_pool(self):
        script = ("import concurrent.futures, hackc, multiprocessing\n"
                  "def work():\n    raise hackc.InvalidConfig(3, 'seq: no', 'seq')\n"
                  "with concurrent.futures.ProcessPoolExecutor(1, multiprocessing.get_context('fork')) as pool:\n"
                  "    try:\n        pool.submit(work).result(60)\n"
                  "    except hackc.InvalidConfig as error:\n        print(error, error.field)\n")
        done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
        self.assertEqual(done.stdout, "seq: no seq\n", done.stderr)

    def test_every_code_has_a_class(self):
        numbers = {value: name for name, value in vars(errors).items() if name.isupper() and isinstance(value, int)}
        self.assertEqual(sorted(numbers), list(range(17)))
        for code, name in numbers.items():
            if code not in (errors.OK, errors.UNKNOWN):
                self.assertEqual(type(errors.of_code(code, "")).__name__, name.title().replace("_", ""))


class Foreign:
    """Somebody else's tensor: DLPack and nothing more."""

    def __init__(self, values, device=dlpack.CUDA):
        self.values = numpy_torch.aligned(values)
        self.array = dlpack.Array(self.values.data_ptr(), values.shape, str(values.dtype), 0, lambda: None)
        self.asked = []

    shape = property(lambda self: self.array.shape)

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()

    def __dlpack__(self, *, stream=None):
        self.asked.append(stream)
        return self.array.__dlpack__()


class WithoutTorch(WithLocalServer):
    def setUp(self):
        self.runtime = self.program.load()
        self.addCleanup(self.runtime.close)
        self.ids = Foreign(numpy.arange(5, dtype=numpy.int32)[None])

    def test_runs_on_dlpack(self):
        self.assertIs(self.runtime.bind(GOLDEN), self.runtime)
        before = cuda.fake_cuda_launches()
        logits = self.runtime(self.ids, states=self.runtime.new_states())["logits"]
        self.assertGreater(cuda.fake_cuda_launches(), before + 10)
        self.assertEqual(self.ids.asked, [1])  # the default stream, in DLPack's numbers
        self.assertEqual((logits.shape[-2:], logits.dtype, logits.device), ((5, 96), "float32", "cuda:0"))
        view = dlpack.view(types.SimpleNamespace(__dlpack__=logits.__dlpack__,
                                                 __dlpack_device__=logits.__dlpack_device__))
        self.assertEqual((view.pointer, view.dtype, view.shape, view.device, view.contiguous),
                         (logits.data_ptr(), "float32", logits.shape, "cuda:0", True))
        with self.assertRaisesRegex(BufferError, "written on stream 0, to be read on stream 5"):
            logits.__dlpack__(stream=5)

    def test_a_tensor_lives_as_long_as_its_capsule(self):
        released = []
        array = dlpack.Array(4096, (2, 3), "bfloat16", 0, lambda: released.append(True))
        capsule = array.__dlpack__()
        del array
        gc.collect()
        self.assertEqual(released, [])
        del capsule
        gc.collect()
        self.assertEqual(released, [True])

    def test_what_outlives_close_keeps_its_memory(self):
        before, waits = cuda.fake_cuda_allocations(), cuda.fake_cuda_waits()
        runtime = self.program.load().bind(GOLDEN)
        states = runtime.new_states()
        logits = runtime(self.ids, states=states)["logits"]
        waits = cuda.fake_cuda_waits()
        handle, address = ctypes.c_void_p(runtime.handle().value), logits.data_ptr()
        runtime.close()
        self.assertGreater(cuda.fake_cuda_waits(), waits)
        self.assertEqual(cuda.fake_cuda_allocations(), before + 1 + len(states))
        with self.assertRaisesRegex(hackc.FailedPrecondition, "program: is closed"):
            library.check(library.load().hackc_prepare(handle, None))
        ctypes.memset(address, 65, logits.nbytes)
        capsule = logits.__dlpack__()
        del logits, states
        gc.collect()
        self.assertEqual(cuda.fake_cuda_allocations(), before + 1)
        other = self.program.load()
        taken = [other.new_states() for _ in range(20)]
        self.assertNotIn(address, [tensor.data_ptr() for states in taken for tensor in states.values()])
        del taken
        other.close()
        self.assertEqual(ctypes.string_at(address, 4), b"AAAA")
        del capsule
        gc.collect()
        self.assertEqual(cuda.fake_cuda_allocations(), before)

    def test_what_outlives_a_runtime_that_was_not_closed(self):
        before = cuda.fake_cuda_allocations()
        states = self.program.load().new_states()
        gc.collect()
        self.assertEqual(cuda.fake_cuda_allocations(), before + len(states))
        states.clear()
        gc.collect()
        self.assertEqual(cuda.fake_cuda_allocations(), before)

    def captured(self):
        runtime = self.program.load().bind(GOLDEN)
        token = Foreign(numpy.zeros((1, 1), numpy.int32))
        return runtime, runtime.capture("decode", {"past": 3}, states=runtime.new_states(), input_ids=token)

    def test_graphs_end_with_their_runtime(self):
        before, memory = cuda.fake_cuda_graphs(), cuda.fake_cuda_allocations()
        runtime, graph = self.captured()
        self.assertEqual(cuda.fake_cuda_graphs(), before + 1)
        del graph
        gc.collect()
        self.assertEqual(cuda.fake_cuda_graphs(), before)
        graph = runtime.capture("decode", {"past": 3}, states=runtime.new_states(),
                                input_ids=Foreign(numpy.zeros((1, 1), numpy.int32)))
        runtime.close()
        self.assertEqual(cuda.fake_cuda_graphs(), before)
        for work in (graph.launch, graph.launches):
            with self.assertRaisesRegex(hackc.FailedPrecondition, "this runtime is closed"):
                work()
        del graph, work
        runtime, graph = self.captured()
        runtime.graph = graph  # a cycle, whose parts are collected in any order
        del runtime, graph
        gc.collect()
        self.assertEqual((cuda.fake_cuda_graphs(), cuda.fake_cuda_allocations()), (before, memory))

    def test_a_refused_launch_changes_nothing(self):
        graph = self.captured()[1]
        for wrong, kind in [({"pasts": 5}, hackc.InvalidArgument), ({"past": 999}, hackc.InvalidArgument)]:
            with self.assertRaises(kind):
                graph.launch(wrong)
            graph.launch({"past": 5})
            graph.launch({"batch": 1})

    def test_names_what_is_missing_or_misspelt(self):
        self.runtime.bind(GOLDEN)
        states = self.runtime.new_states()
        for given, expected in [
            ({"states": states}, "input_ids: not given; decode wants int32 of rank 2"),
            ({"states": states, "inputids": self.ids}, "decode has no tensor inputids"),
            ({"states": states, "input_ids": self.ids, "symbols": {"pasts": 3}},
             "symbol pasts is unknown; the program has batch, seq, past"),
            ({"states": states, "input_ids": self.ids, "symbols": {}}, "symbol past needs a value of 0..32"),
        ]:
            with self.subTest(expected), self.assertRaisesRegex(hackc.InvalidArgument, expected):
                self.runtime.run("decode", **{"symbols": {"past": 3}, **given})

        with self.assertRaisesRegex(hackc.NotFound, "decode has no tensor ids; it has input_ids, "):
            self.runtime.dtype_of("decode", "ids")

    def test_a_size_that_is_none(self):
        pointer = ctypes.c_void_p()
        code = library.load().hackc_memory_allocate(self.runtime.handle(), 2**64 - 1, ctypes.byref(pointer))
        with self.assertRaisesRegex(hackc.InvalidArgument, "bytes: expected at most 9.*, got 18446744073709551615"):
            library.check(code)
        self.assertIsNone(pointer.value)

    def test_host_memory_is_refused_and_never_copied(self):
        self.runtime.bind(GOLDEN)
        cache = self.runtime.new_states()
        for ids, expected in [
            (numpy.zeros((1, 5), numpy.int32), "input_ids: must be contiguous on cuda:0, is on cpu; hackc copies no"),
            (Foreign(numpy.zeros((1, 5), numpy.int64)), r"input_ids: expected int32 \[1, 5\], got int64 \[1, 5\]"),
            ([[1, 2]], "expected a torch tensor or something with __dlpack__, got list"),
        ]:
            with self.subTest(expected), self.assertRaisesRegex(hackc.InvalidArgument, expected):
                self.runtime.run("prefill", {"past": 0, "batch": 1, "seq": 5}, states=cache, input_ids=ids)

    def test_weights_from_host_arrays(self):
        weights = {n: numpy.ones(shape, dtype) for n, (dtype, shape) in self.runtime.weights().items()}
        told = []
        self.runtime.bind(weights, progress=lambda done, total: told.append((done, total)))
        self.assertEqual(told[-1], (sum(w.nbytes for w in weights.values()),) * 2)
        other = self.program.load()
        weights["model.norm.weight"] = numpy.ones((64,), numpy.float32)[::2]
        with self.assertRaisesRegex(hackc.InvalidArgument, "weight model.norm.weight: not contiguous"):
            other.bind(weights)
        with self.assertRaisesRegex(hackc.InvalidArgument, "weights: expected a mapping of names or a folder, got list"):
            other.bind(list(weights.values()))
        weights["model.norm.weight"] = numpy.ones((32,), numpy.float64)
        for convert, expected in [(False, r"bind\(..., convert=True\) converts it"),
                                  (True, "convert=True converts PyTorch's tensors, not a ndarray")]:
            with self.assertRaisesRegex(hackc.InvalidArgument, expected):
                self.program.load().bind(weights, convert=convert)

    def test_a_folder_tells_progress_and_can_be_stopped(self):
        told = []
        self.runtime.bind(GOLDEN, progress=lambda done, total: told.append((done, total)))
        self.assertEqual(len(told), len(self.runtime.weights()))
        self.assertEqual(told, sorted(told))
        self.assertEqual(told[-1][0], told[-1][1])

        def stop(done, total):
            raise KeyboardInterrupt

        with self.assertRaises(KeyboardInterrupt):
            self.program.load().bind(GOLDEN, progress=stop)

    def test_the_callers_memory(self):
        taken = []

        def take(size):
            taken.append(Foreign(numpy.zeros(size, numpy.uint8)))
            return taken[-1]

        with mock.patch.dict(dlpack._TYPES, {(1, 8): "uint8"}), mock.patch.dict(dlpack._CODES, {"uint8": (1, 8)}):
            runtime = self.program.load(allocator=take)
            runtime.bind(GOLDEN)
            bound = len(taken)
            self.assertGreater(bound, len(runtime.weights()))
            runtime(self.ids, states=runtime.new_states())
            self.assertGreater(len(taken), bound)
            held = runtime._memory.allocator._held
            self.assertTrue(held)
            runtime.close()
            self.assertFalse(held)

    def test_an_allocator_that_gives_nothing(self):
        def fail(size):
            raise MemoryError("full")

        with self.assertRaisesRegex(hackc.ResourceExhausted, "the allocator has no .* bytes for") as raised:
            self.program.load(allocator=fail).bind(GOLDEN)
        self.assertIsInstance(raised.exception.__cause__, MemoryError)

    def test_what_needs_torch_says_so(self):
        self.runtime.bind(GOLDEN)
        with self.assertRaisesRegex(hackc.FailedPrecondition, "generate needs PyTorch"):
            self.runtime.generate([[1, 2]])

    def test_a_closed_runtime(self):
        self.runtime.close()
        with self.assertRaisesRegex(hackc.FailedPrecondition, "this runtime is closed"):
            self.runtime.weights()
        with self.assertRaisesRegex(hackc.InvalidArgument, "device: expected a CUDA device, got cpu"):
            self.program.load("cpu")


class Summing:
    """Stands for a Runtime whose model can be computed: the token after a sequence is the sum of its tokens, modulo 89.
    What lies in the cache behind a sequence's end is whatever was written there."""

    VOCABULARY, CALL, PAST = 89, 4, 40

    def __init__(self, torch, picks):
        self.torch, self.picks = torch, picks

    def symbols(self):
        return {"batch": (1, 4), "seq": (1, self.CALL), "past": (0, self.PAST)}

    def lowest(self):
        return {"batch": 1, "seq": 1, "past": 0}

    def tensors(self, entry, symbols):
        return dict.fromkeys(["input_ids", "past_lengths"] + ["last_positions"] * self.picks)

    def dtype_of(self, entry, name):
        return "int32"

    def new_states(self, batch, pages=None):
        return {"cache": numpy.full((batch, self.PAST + self.CALL), 77)}

    def run(self, entry, symbols, states, input_ids, past_lengths, last_positions=None):
        batch, count = input_ids.shape
        assert (entry == "decode") == (count == 1 and symbols["past"] > 0)
        assert count <= self.CALL and past_lengths.max() == symbols["past"] <= self.PAST
        logits = numpy.zeros((batch, count, self.VOCABULARY), numpy.float32)
        for b in range(batch):
            past = past_lengths[b]
            states["cache"][b, past:past + count] = input_ids[b]
            for s in range(count):
                logits[b, s, states["cache"][b, :past + s + 1].sum() % self.VOCABULARY] = 1
        if self.picks and entry == "prefill":
            logits = logits[numpy.arange(batch), last_positions][:, None]
        return {"logits": logits.view(numpy_torch.Tensor)}

    def capture(self, entry, symbols, **call):
        return types.SimpleNamespace(launch=lambda symbols: self.run(entry, symbols, **call))


class Generation(unittest.TestCase):
    def test_every_sequence_is_continued_as_if_alone(self):
        torch = numpy_torch.module()
        memory = types.SimpleNamespace(torch=torch, device="cuda:0")
        prompts = [[3, 50, 61, 2, 9, 88, 1, 4, 5], [7], [8, 13, 21, 34], [5, 4, 3, 2, 1]]
        expected = []
        for prompt in prompts:
            row = list(prompt)
            for _ in range(6):
                row.append(sum(row) % Summing.VOCABULARY)
            expected.append(row + [0] * (15 - len(row)))
        for picks in (False, True):
            for graph in (False, True):
                runtime = Summing(torch, picks)
                got = generate(runtime, memory, prompts, None, 6, 0, 0, None, None, graph, None)
                self.assertEqual(got.tolist(), expected)
                padded = [prompt + [55] * (9 - len(prompt)) for prompt in prompts]  # what stands behind is nobody's
                got = generate(runtime, memory, numpy.array(padded), [9, 1, 4, 5], 6, 0, 0, None, None, graph, None)
                self.assertEqual(got.tolist(), expected)
                got = generate(runtime, memory, prompts[0], None, 6, 0, 0, None, None, graph, None)
                self.assertEqual(got.tolist(), expected[:1])
                # The second token of the second sequence ends it: 7, 7, 14.
                got = generate(runtime, memory, prompts[1:3], None, 6, 0, 0, None, 14, graph, None)
                self.assertEqual(got[0].tolist(), [7, 7, 14] + [14] * 7)
                self.assertEqual(got[1].tolist(), expected[2][:10])


class Generate(WithLocalServer):
    def setUp(self):
        self.enter = contextlib.ExitStack()
        self.addCleanup(self.enter.close)
        self.enter.enter_context(mock.patch.dict(sys.modules, torch=numpy_torch.module()))
        self.runtime = self.program.load("cuda").bind(GOLDEN)

    def test_continues(self):
        for graph in (True, False):
            seen = []
            tokens = self.runtime.generate([[1, 2, 3], [4, 5, 6]], 4, graph=graph, on_token=seen.append)
            self.assertEqual(tokens.tolist(), [[1, 2, 3, 7, 7, 7, 7], [4, 5, 6, 7, 7, 7, 7]])
            self.assertEqual([token.shape for token in seen], [(2, 1)] * 4)

    def test_sequences_of_unequal_lengths(self):
        expected = [[1, 2, 3, 7, 7, 7], [4, 7, 7, 7, 0, 0]]
        for ids, lengths in [([[1, 2, 3], [4]], None), (numpy.array([[1, 2, 3], [4, 9, 9]]), [3, 1])]:
            lasts = []
            with mock.patch.object(self.runtime, "run", wraps=self.runtime.run) as run:
                tokens = self.runtime.generate(ids, 3, lengths=lengths, graph=False,
                                               on_token=lambda _: lasts.append(
                                                   run.call_args.kwargs["past_lengths"].tolist()))
            self.assertEqual(tokens.tolist(), expected)
            # After each call the lengths move on in place: 3 and 1 tokens of the prompts, then one more each time.
            self.assertEqual(lasts, [[3, 1], [4, 2], [5, 3]])
            self.assertEqual([call.args[1]["past"] for call in run.call_args_list], [0, 3, 4])
        for lengths in ([3], [3, 0], [4, 1]):
            with self.assertRaisesRegex(hackc.InvalidArgument, "ids: expected 2 lengths of 1 to 3, got"):
                self.runtime.generate(numpy.zeros((2, 3), numpy.int64), 1, lengths=lengths)

    def test_paged_caches_and_one_row_of_logits(self):
        runtime = self.compile(GOLDEN, page_size=16, logits="last").load().bind(GOLDEN)
        with mock.patch.object(runtime, "run", wraps=runtime.run) as run:
            tokens = runtime.generate([list(range(20)), [4, 5]], 3, graph=False)
        self.assertEqual(tokens[1].tolist(), [4, 5, 7, 7, 7] + [0] * 18)
        lasts = [call.kwargs["last_positions"].tolist() for call in run.call_args_list[:2]]
        self.assertEqual(lasts, [[15, 1], [3, 0]])
        table = run.call_args.kwargs["page_table"]
        self.assertEqual(sorted(table.ravel().tolist()), list(range(table.size)))
        self.assertEqual(runtime.generate([[4, 5]], 3).tolist(), [[4, 5, 7, 7, 7]])

    def test_long_prompts_go_in_parts(self):
        with mock.patch.object(self.runtime, "run", wraps=self.runtime.run) as run:
            self.assertEqual(self.runtime.generate(list(range(20)), 2, graph=False).shape, (1, 22))
        self.assertEqual([(call.args[0], call.args[1]["past"]) for call in run.call_args_list],
                         [("prefill", 0), ("prefill", 16), ("decode", 20)])

    def test_ends(self):
        tokens = self.runtime.generate([[1, 2, 3]], 30, eos_token_id=numpy_torch.FAVOURITE)
        self.assertEqual(tokens.tolist(), [[1, 2, 3, 7]])

    def test_refuses_what_does_not_fit(self):
        for ids, count, kind, expected in [
            ([[1] * 20], 15, hackc.OutOfRange, "20 tokens and 15 more need a cache of 34, the program is compiled for 33"),
            ([[1], [2], [3]], 1, hackc.InvalidArgument, "ids: 3 sequences, the program is compiled for 1..2"),
            ([[1]], 0, hackc.InvalidArgument, "max_new_tokens: expected at least 1, got 0"),
        ]:
            with self.subTest(expected), self.assertRaisesRegex(kind, expected):
                self.runtime.generate(ids, count)
        plain = self.compile(GOLDEN, shapes={"seq": (1, 16)}).load().bind(GOLDEN)
        with self.assertRaisesRegex(hackc.FailedPrecondition, "no key/value cache; compile it with shapes="):
            plain.generate([[1]])

    def test_the_readme(self):
        """The example as printed, but for the model's dtype, which numpy does not have, and the server's address."""
        text = (ROOT / "README.md").read_text()
        example, steps = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
        self.assertLessEqual(len(example.splitlines()), 10)
        for old, new in [("127.0.0.1:7070", self.client.address), ('dtype="bfloat16"', 'dtype="float32"'),
                         ("torch.bfloat16", "torch.float32")]:
            self.assertIn(old, example)
            example = example.replace(old, new)
        weights = {n: numpy_torch.aligned(numpy.ones(shape, dtype))
                   for n, (dtype, shape) in self.runtime.weights().items()}
        model = types.SimpleNamespace(
            config=types.SimpleNamespace(to_json_string=(GOLDEN / "config.json").read_text),
            state_dict=lambda: weights, to=lambda device: model)
        tokenizer = mock.Mock(return_value=types.SimpleNamespace(input_ids=[[1, 2, 3]]),
                              decode=lambda tokens: " ".join(map(str, tokens)))
        transformers = types.ModuleType("transformers")
        transformers.AutoTokenizer = types.SimpleNamespace(from_pretrained=lambda name: tokenizer)
        transformers.AutoModelForCausalLM = types.SimpleNamespace(from_pretrained=lambda name, dtype: model)
        printed = []
        with mock.patch.dict(sys.modules, transformers=transformers):
            names = {"print": printed.append}
            exec(compile(example, "README.md", "exec"), names)
            names["ids"] = numpy_torch.aligned(numpy.array([[1, 2, 3]]))  # int64, as tokenizers give them
            launches = cuda.fake_cuda_launches()
            exec(compile(steps, "README.md", "exec"), names)
        self.assertEqual(printed, [" ".join(["1 2 3"] + ["7"] * 64)])
        self.assertEqual((names["token"].tolist(), names["past"]), ([[numpy_torch.FAVOURITE]], 10))
        self.assertGreater(cuda.fake_cuda_launches(), launches)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[6:]])
