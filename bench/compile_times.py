#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Seconds until a model can run: hackc's program for all shapes, and torch.compile's first result for one.

    python3 bench/compile_times.py qwen2.5-7b bfloat16               # one JSON line
    python3 bench/compile_times.py qwen2.5-7b bfloat16 --no-peer     # hackc alone: seconds in place of minutes

Cold is with empty caches, warm in a new process with what the first one left. hackc compiles for batch 1..8,
seq 1..2048, past 0..8192, kernels as files in a folder; torch.compile (default mode) compiles transformers' model
with random weights for seq 128 only, timed from the call to its result, without making the model.
"""

import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "tests" / "gpu")]
import harness  # noqa: E402


def torch_first_result(model, dtype):
    """In a process of its own: prints seconds."""
    import torch
    from transformers import AutoConfig, AutoModelForCausalLM

    config = json.loads((harness.ROOT / "models" / f"{model}.json").read_text())["config"]
    torch.set_default_dtype(getattr(torch, dtype))
    with torch.device("cuda"):
        decoder = AutoModelForCausalLM.from_config(AutoConfig.for_model(**config), attn_implementation="sdpa").eval()
        ids = torch.randint(1000, (1, 128))
    torch.set_default_dtype(torch.float32)
    with torch.no_grad():
        compiled = torch.compile(decoder)
        torch.cuda.synchronize()
        start = time.monotonic()
        compiled(input_ids=ids, use_cache=False)
        torch.cuda.synchronize()
    print(time.monotonic() - start)


def compare(model, dtype, arch, peer=True):
    result = {"row": "compile", "model": model, "dtype": dtype, "seconds": {}}
    with tempfile.TemporaryDirectory() as work:
        for state in ("cold", "warm"):
            start = time.monotonic()
            harness.compile_model(harness.ROOT / "models" / f"{model}.json", f"{work}/{state}", arch, dtype, "1..2048",
                                  cache_dir=f"{work}/cache", batch="1..8", past="0..8192")
            result["seconds"][f"hackc {state}"] = time.monotonic() - start
        places = {"TORCHINDUCTOR_CACHE_DIR": f"{work}/inductor", "TRITON_CACHE_DIR": f"{work}/triton"}
        for state in ("cold", "warm") if peer else ():
            done = subprocess.run([sys.executable, __file__, model, dtype, "--torch"], env=os.environ | places,
                                  capture_output=True, text=True)
            if done.returncode:
                result["error"] = (done.stderr.strip().splitlines() or ["no message"])[-1]
                break
            result["seconds"][f"torch.compile {state}"] = float(done.stdout.split()[-1])
    return result


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", help="a description in models/, without .json")
    parser.add_argument("dtype")
    parser.add_argument("--torch", action="store_true", help="only torch.compile, in this process")
    parser.add_argument("--no-peer", action="store_true", help="without torch.compile")
    options = parser.parse_args()
    if options.torch:
        torch_first_result(options.model, options.dtype)
    else:
        print(json.dumps(compare(options.model, options.dtype, harness.device_arch(harness.need_gpu()),
                                 peer=not options.no_peer)))
