#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""hackc-server and hackc-client with the real compiler, as a user runs them.

    daemon_test.py BIN_DIR [FAKE_CUDA]

FAKE_CUDA is the library of tests/client/fake_cuda_library.cc, a GPU on which kernels do nothing in 0.1 s.
"""

import hashlib
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import time
import unittest

SOURCE = pathlib.Path(__file__).resolve().parents[2]
MODEL = SOURCE / "models" / "tinyllama-1.1b.json"
BIN = pathlib.Path(sys.argv.pop(1) if len(sys.argv) > 1 else SOURCE / "build" / "bin")
FAKE_CUDA = pathlib.Path(sys.argv.pop(1)) if len(sys.argv) > 1 else None


class Daemon:
    """A server on a free port with its own folder for cache and logs."""

    def __init__(self, folder, *options, **environment):
        self.port_file = folder / "port"
        self.port_file.unlink(missing_ok=True)
        self.log_file = folder / "log"
        with open(self.log_file, "ab") as log:
            self.process = subprocess.Popen(
                [BIN / "hackc-server", "--listen", "127.0.0.1:0", "--port-file", self.port_file,
                 "--workers", "2", "--cache-dir", folder / "cache", *options], stderr=log,
                env={**os.environ, **environment})
        for _ in range(1200):
            if self.port_file.exists() or self.process.poll() is not None:
                break
            time.sleep(0.05)
        if not self.port_file.exists():
            self.process.kill()
            self.process.wait()
            raise AssertionError("the server did not start:\n" + self.log_file.read_text())
        self.address = f"127.0.0.1:{self.port_file.read_text().strip()}"

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(timeout=60)


class DaemonTest(unittest.TestCase):
    """One server for all tests, with TinyLlama compiled."""

    @classmethod
    def setUpClass(cls):
        cls.scratch = tempfile.TemporaryDirectory(prefix="hackc-e2e-")
        cls.folder = pathlib.Path(cls.scratch.name)
        cls.server = Daemon(cls.folder)
        cls.addClassCleanup(cls.scratch.cleanup)
        cls.addClassCleanup(lambda: cls.server.process.poll() is None and cls.server.process.kill())
        cls.cold = cls.submit(MODEL)

    @classmethod
    def client(cls, *arguments, address=None):
        return subprocess.run(
            [BIN / "hackc-client", *map(str, arguments), "--server", address or cls.server.address],
            capture_output=True, text=True, timeout=300)

    @classmethod
    def submit(cls, model, *more):
        done = cls.client("submit", model, "--json", *more)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    def description(self, **config):
        """TinyLlama's description with another config, as a file."""
        model = json.loads(MODEL.read_text())
        model["config"].update(config)
        path = self.folder / "model.json"
        path.write_text(json.dumps(model))
        return path

    def test_cold_answer_is_whole(self):
        kernels = self.cold["kernels"]
        self.assertGreater(len(kernels), 5)
        self.assertEqual(self.cold["cache"]["misses"], len(kernels))
        for kernel in kernels:
            self.assertRegex(kernel["key"], r"^sha256:[0-9a-f]{64}$")
            self.assertGreater(kernel["cubin_bytes"], 0)
            self.assertGreater(kernel["registers"], 0)

    def test_second_answer_comes_from_the_cache(self):
        start = time.monotonic()
        warm = self.submit(MODEL)
        seconds = time.monotonic() - start
        self.assertEqual(warm["cache"], {"hits": len(self.cold["kernels"]), "misses": 0, "program": "hit"})
        self.assertEqual(warm["program_digest"], self.cold["program_digest"])
        # 100 ms on a quiet machine; tests run beside others.
        self.assertLess(seconds, 2)

    def test_layers_cost_no_kernels(self):
        fewer = self.submit(MODEL, "--layers", 2)
        self.assertEqual(fewer["cache"]["misses"], 0)
        self.assertNotEqual(fewer["program_digest"], self.cold["program_digest"])

    def test_another_server_with_a_store_of_its_own_makes_the_same_bytes(self):
        folder = self.folder / "another"
        folder.mkdir()
        server = Daemon(folder, "--workers", "1")
        try:
            done = self.client("submit", MODEL, "--json", address=server.address)
            self.assertEqual(done.returncode, 0, done.stderr)
            answer = json.loads(done.stdout)
        finally:
            self.assertEqual(server.stop(), 0)
        self.assertEqual(answer["cache"]["misses"], len(answer["kernels"]))
        self.assertEqual(answer["program_digest"], self.cold["program_digest"])

    def test_a_restart_answers_from_the_store(self):
        self.assertEqual(self.server.stop(), 0)
        type(self).server = Daemon(self.folder)
        warm = self.submit(MODEL)
        self.assertEqual(warm["cache"]["program"], "hit")
        self.assertEqual(warm["program_digest"], self.cold["program_digest"])

    def test_the_local_compiler_makes_the_same_bytes(self):
        done = subprocess.run(
            [BIN / "hackc-client", "submit", MODEL, "--local", "--cache-dir", self.folder / "local",
             "--json"], capture_output=True, text=True, timeout=300)
        self.assertEqual(done.returncode, 0, done.stderr)
        local = json.loads(done.stdout)
        self.assertEqual(local["program_digest"], self.cold["program_digest"])
        self.assertEqual(local["cache"]["misses"], len(local["kernels"]))

    def test_explain_shows_each_level(self):
        kernel = self.cold["kernels"][-1]["name"]
        for level in ("graph", "tensor", "loop", "tile", "kernel", "cuda"):
            done = self.client("explain", MODEL, "--kernel", kernel, "--level", level)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertTrue(done.stdout.strip(), level)

    def test_fetch(self):
        digests = [kernel["digest"] for kernel in self.cold["kernels"]]
        done = self.client("fetch", *digests, "--out", self.folder / "fetched")
        self.assertEqual(done.returncode, 0, done.stderr)
        fetched = {path.name: path.read_bytes() for path in (self.folder / "fetched").iterdir()}
        self.assertEqual(len(fetched), len(set(digests)))
        for digest in digests:
            found = [data for data in fetched.values() if "sha256:" + hashlib.sha256(data).hexdigest() == digest]
            self.assertEqual(len(found), 1, digest)
            self.assertEqual(found[0][:4], b"\x7fELF", "a cubin")
        missing = self.client("fetch", "sha256:" + "0" * 64)
        self.assert_refused(missing, "sha256:" + "0" * 64)

    def test_status_and_size(self):
        self.submit(MODEL)
        done = self.client("status")
        self.assertEqual(done.returncode, 0, done.stderr)
        lines = dict(re.split(r"  +|(?<=kernels compiled) ", line, maxsplit=1) for line in done.stdout.splitlines())
        self.assertEqual(lines["state"], "serving")
        self.assertEqual(lines["gpu"], "none")
        self.assertEqual(lines["workers"], "2")
        self.assertIn("sm_90a", lines["archs"].split())
        done = self.client("status", "--json")
        self.assertEqual(done.returncode, 0, done.stderr)
        status = json.loads(done.stdout)
        self.assertGreater(int(status["requests"]), 0)
        self.assertGreater(int(status["program_hits"]), 0)
        self.assertGreater(int(status["cache_bytes"]), 100_000)
        for loss in ("workers_lost", "store_failures", "cache_corruptions", "refused_kernels", "refused_requests"):
            self.assertEqual(int(status[loss]), 0, loss)
        resident = int(re.search(r"VmRSS:\s+(\d+) kB", pathlib.Path(
            f"/proc/{self.server.process.pid}/status").read_text())[1])
        mapped = pathlib.Path(f"/proc/{self.server.process.pid}/maps").read_text()
        self.assertLess(resident, (600 if "libasan" in mapped else 150) * 1024)
        self.assertNotIn("nvrtc", mapped, "only worker processes open it")

    def assert_refused(self, done, *words):
        self.assertNotEqual(done.returncode, 0)
        lines = done.stderr.strip().splitlines()
        self.assertEqual(len(lines), 1, done.stderr)
        for word in words:
            self.assertIn(word, lines[0])

    def test_bad_models_are_refused_by_field(self):
        for config, words in (
                ({"num_key_value_heads": 5}, ["num_key_value_heads"]),
                ({"hidden_size": -1}, ["hidden_size"]),
                ({"hidden_size": 0}, ["hidden_size"]),
                ({"intermediate_size": 2**40}, ["intermediate_size"]),
                ({"vocab_size": None}, ["vocab_size"]),
                ({"num_hidden_layers": "many"}, ["num_hidden_layers"]),
                ({"model_type": "mamba"}, ["model_type", "mamba"]),
                ({"rope_scaling": {"type": "wavy", "factor": 2}}, ["rope_scaling", "wavy"]),
                ({"quantization_config": {"quant_method": "awq"}}, ["quantization_config"]),
        ):
            with self.subTest(**config):
                self.assert_refused(self.client("submit", self.description(**config)), *words)
        self.assertEqual(self.submit(MODEL)["cache"]["misses"], 0)

    def test_an_arch_that_is_not_there_is_refused_with_those_that_are(self):
        self.assert_refused(self.client("submit", MODEL, "--arch", "sm_35"), "sm_35", "sm_90a")

    def test_no_server(self):
        self.assert_refused(self.client("status", address="127.0.0.1:1"), "127.0.0.1:1")


@unittest.skipUnless(FAKE_CUDA, "no fake CUDA library given")
class TimedDaemonTest(unittest.TestCase):
    """With a GPU, if only a fake one: every kernel and its reference compile, load, launch and agree."""

    def test_report(self):
        with tempfile.TemporaryDirectory(prefix="hackc-e2e-") as scratch:
            folder = pathlib.Path(scratch)
            answers = []
            for run in ("first", "second"):
                server = Daemon(folder, "--gpu", "0", LD_LIBRARY_PATH=str(FAKE_CUDA.parent))
                try:
                    done = subprocess.run(
                        [BIN / "hackc-client", "submit", MODEL, "--server", server.address, "--json", "--layers", "2",
                         "--seq", "1..64", "--past", "0..64", "--batch", "1..2", "--out", folder / run],
                        capture_output=True, text=True, timeout=300)
                    self.assertEqual(done.returncode, 0, done.stderr)
                    answers.append(json.loads(done.stdout))
                finally:
                    self.assertEqual(server.stop(), 0)
            timing = answers[0]["timing"]
            self.assertEqual(timing["problems"], [])
            self.assertTrue(timing["final"])
            self.assertEqual([kernel["name"] for kernel in timing["kernels"]],
                             [kernel["name"] for kernel in answers[0]["kernels"]])
            for kernel in timing["kernels"]:
                for one in kernel["times"]:
                    self.assertEqual(one["median_us"], 1e5, kernel["name"])
                    self.assertGreater(one["bytes"], 0, kernel["name"])
                    self.assertGreater(one["predicted_us"], 0, kernel["name"])
            entries = timing["entry_points"]
            self.assertEqual([entry["name"] for entry in entries][:2], ["prepare", "prefill"])
            for entry in entries:
                self.assertEqual(entry["launches"], sum(entry["kernel_launches"].values()))
                for total in entry["totals"]:
                    self.assertTrue(total["complete"])
                    self.assertEqual(list(total["symbols"]), sorted(total["symbols"]))
                    self.assertAlmostEqual(total["median_us"] / 1e5, entry["launches"], delta=0.01)
            self.assertEqual(answers[1]["timing"], timing)
            self.assertEqual(answers[1]["program_digest"], answers[0]["program_digest"])
            table = subprocess.run([BIN / "hackc-client", "report", folder / "second"], capture_output=True, text=True)
            self.assertEqual(table.returncode, 0, table.stderr)
            self.assertIn("= prefill", table.stdout)


if __name__ == "__main__":
    unittest.main()
