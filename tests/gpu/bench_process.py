#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The timing report of a real server on a GPU: plausible, kept over a restart, and unharmed by bad kernels.

    python3 tests/gpu/bench_process.py                                   # TinyLlama-1.1B and Qwen2.5-7B
    python3 tests/gpu/bench_process.py models/qwen2.5-0.5b.json --past 0..512

Starts `hackc-server --gpu 0`, submits each model, prints its table and checks that every kernel was right and timed,
that no time is faster than the data sheet allows, that big kernels are within reach of their floor, and that nothing
else is said to have run (so nothing else must run). A second server on the same cache must answer with the same bits
and the same report, without measuring. hackc-bench-faults then runs kernels that write outside, trap, hang and more.
Exit code 0: all as it should be, 1: not, 77: no GPU.
"""

import argparse
import datetime
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]  # the source tree, or a bundle
SKIPPED = 77


def binary(name):
    for folder in (ROOT / "bin", ROOT / "build" / "bin"):
        if (folder / name).exists():
            return folder / name
    sys.exit(f"no {name} in {ROOT}/bin or {ROOT}/build/bin")


class Server:
    def __init__(self, work, gpu, seconds):
        port_file = work / "port"
        port_file.unlink(missing_ok=True)
        self.log = work / "server.log"
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(
                [binary("hackc-server"), "--gpu", str(gpu), "--listen", "127.0.0.1:0", "--port-file", port_file,
                 "--cache-dir", work / "cache", "--bench-seconds", str(seconds)], stderr=log)
        while not port_file.exists():
            if self.process.poll() is not None:
                text = self.log.read_text()
                print(text.strip().splitlines()[-1] if text else "the server ended")
                sys.exit(SKIPPED if "GPU " in text else 1)
            time.sleep(0.05)
        self.address = f"127.0.0.1:{port_file.read_text().strip()}"

    def submit(self, model, options, out):
        started = time.time()
        done = subprocess.run(
            [binary("hackc-client"), "submit", model, "--server", self.address, "--dtype", options.dtype,
             "--seq", options.seq, "--past", options.past, "--batch", options.batch, "--out", out, "--json"],
            capture_output=True, text=True)
        if done.returncode:
            sys.exit(f"{model}: {done.stderr.strip().splitlines()[-1]}\n{self.log.read_text()[-3000:]}")
        return json.loads(done.stdout), time.time() - started

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(timeout=60)


def implausible(timing):
    """What cannot be, as lines."""
    wrong = [f"problem: {line}" for line in timing["problems"]]
    wrong += [f"on a GPU that runs nothing else: {line}" for line in timing["disturbances"]]
    rate = timing["copy_bytes_per_second"]
    if not 0.3 < rate / timing["target_rates"]["bytes_per_second"] < 1.05:
        wrong.append(f"a copy reached {rate:.3g} bytes a second, the data sheet says "
                     f"{timing['target_rates']['bytes_per_second']:.3g}")
    for kernel in timing["kernels"]:
        for one in kernel["times"]:
            where = f"{kernel['name']} at {one['symbols']}"
            if one["median_us"] <= 0 or one["samples"] < 9:
                wrong.append(f"{where}: {one['median_us']} us from {one['samples']} samples")
            if one["share_of_floor"] > 1.5:
                wrong.append(f"{where}: {one['share_of_floor']:.2f} of its floor")
            if one["floor_us"] > 50 and one["share_of_floor"] < 0.01:
                wrong.append(f"{where}: {one['median_us']} us, a hundred times its floor")
    return wrong


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", default=[ROOT / "models" / "tinyllama-1.1b.json",
                                                      ROOT / "models" / "qwen2.5-7b.json"])
    parser.add_argument("--gpu", type=int, default=0)
    parser.add_argument("--dtype", default="bfloat16")
    parser.add_argument("--batch", default="1")
    parser.add_argument("--seq", default="1..2048")
    parser.add_argument("--past", default="0..2048")
    parser.add_argument("--bench-seconds", type=float, default=20)
    parser.add_argument("--json", help="result file (else $OUT/bench_process.json, else ./bench_process.json)")
    options = parser.parse_args()
    result = {"date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
              "command": " ".join([pathlib.Path(sys.argv[0]).name, *sys.argv[1:]]), "models": []}
    wrong = []
    with tempfile.TemporaryDirectory(prefix="hackc-bench-") as folder:
        work = pathlib.Path(folder)
        server = Server(work, options.gpu, options.bench_seconds)
        first = {}
        for model in options.models:
            out = work / pathlib.Path(model).stem
            report, seconds = server.submit(model, options, out)
            first[model] = report
            print(f"\n{pathlib.Path(model).stem}, {options.dtype}: {seconds:.1f} s, of which "
                  f"{report['timing'].get('seconds', 0)} s on the GPU\n", flush=True)
            print(subprocess.run([binary("hackc-client"), "report", out], capture_output=True, text=True).stdout,
                  flush=True)
            wrong += [f"{pathlib.Path(model).stem}: {line}" for line in implausible(report["timing"])]
            result["models"].append({"model": pathlib.Path(model).stem, "seconds": round(seconds, 1),
                                     "program_digest": report["program_digest"], "timing": report["timing"]})
        if server.stop() != 0:
            wrong.append("the server did not stop by itself")
        server = Server(work, options.gpu, options.bench_seconds)
        for model in options.models:
            again, seconds = server.submit(model, options, work / "again")
            name = pathlib.Path(model).stem
            if again["program_digest"] != first[model]["program_digest"]:
                wrong.append(f"{name}: another program after the restart")
            if [k["digest"] for k in again["kernels"]] != [k["digest"] for k in first[model]["kernels"]]:
                wrong.append(f"{name}: other cubins after the restart")
            kept = again["timing"] == first[model]["timing"]
            if kept != first[model]["timing"]["final"]:
                wrong.append(f"{name}: the report is {'' if kept else 'not '}the one from before the restart")
            print(f"{name} after a restart: {seconds:.2f} s, {'the same report' if kept else 'measured again'}")
        if server.stop() != 0:
            wrong.append("the second server did not stop by itself")
    print(flush=True)
    faults = subprocess.run([binary("hackc-bench-faults"), str(options.gpu)], capture_output=True, text=True)
    print(faults.stdout + faults.stderr)
    result["faults"] = faults.stdout.splitlines()
    if faults.returncode:
        wrong.append("hackc-bench-faults: not every fault was blamed as it should be")
    result["wrong"] = wrong
    path = options.json or pathlib.Path(os.environ.get("OUT", ".")) / "bench_process.json"
    pathlib.Path(path).write_text(json.dumps(result, indent=1) + "\n")
    print("\n".join(wrong) or "all as it should be")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
