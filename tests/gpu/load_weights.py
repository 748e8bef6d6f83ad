#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""`hackc-client run` on Hugging Face folders: how fast weights reach the GPU, what host memory that takes, and that two runs
choose the same tokens.

    python3 tests/gpu/load_weights.py                            # TinyLlama-1.1B in bfloat16, in shards; a golden model
    python3 tests/gpu/load_weights.py --models qwen2.5-7b --dtypes bfloat16

Each model gets random bfloat16 weights in shards with an index, which are then read from the disk (its cache is dropped
where that is allowed) and again from the cache; float32 converts on the way. `anonymous` is the process's own memory at its
most: a second copy of the model would show there. Exit code 0: all well; 1: not; 77: no GPU.
"""

import argparse
import json
import pathlib
import re
import subprocess
import sys
import tempfile
import time

import harness


def write_folder(torch, model, folder, shard_bytes=1 << 30):
    from safetensors.torch import save_file
    from transformers import AutoConfig, AutoModelForCausalLM

    config = AutoConfig.for_model(**json.loads((harness.ROOT / "models" / f"{model}.json").read_text())["config"])
    with torch.device("meta"):
        state = AutoModelForCausalLM.from_config(config).state_dict()
    shards, size = [{}], 0
    generator = torch.Generator("cuda").manual_seed(1)
    for name, tensor in state.items():
        if name == "lm_head.weight" and config.tie_word_embeddings:
            continue
        values = torch.randn(tensor.shape, generator=generator, device="cuda", dtype=torch.bfloat16) * 0.02
        if size + values.nbytes > shard_bytes:
            shards, size = shards + [{}], 0
        shards[-1][name] = values.cpu()
        size += values.nbytes
    names = [f"model-{i + 1:05}-of-{len(shards):05}.safetensors" for i in range(len(shards))]
    for name, shard in zip(names, shards):
        save_file(shard, folder / name)
    index = {"weight_map": {tensor: name for name, shard in zip(names, shards) for tensor in shard}}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    config.dtype = "bfloat16"
    config.save_pretrained(folder)
    return len(shards)


def drop_caches():
    try:
        subprocess.run(["sync"], check=True)
        pathlib.Path("/proc/sys/vm/drop_caches").write_text("3")
        return True
    except OSError:
        return False


def run(folder, dtype, cache, tokens):
    """One `hackc-client run`; the process's memory is sampled while it runs."""
    command = [str(harness.client()), "run", str(folder), "--local", "--cache-dir", str(cache), "--ids", "1,2,3",
               "--tokens", str(tokens)] + (["--dtype", dtype] if dtype else [])
    started = time.monotonic()
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    anonymous = 0
    while process.poll() is None:
        try:
            status = pathlib.Path(f"/proc/{process.pid}/status").read_text()
            anonymous = max([anonymous] + [int(kib) << 10 for kib in re.findall(r"RssAnon:\s+(\d+)", status)])
        except OSError:
            pass
        time.sleep(0.01)
    out, err = process.communicate()
    speed = re.search(r"weights: ([\d.]+) GB in ([\d.]+) s, ([\d.]+) GB/s", err)
    return {"exit": process.returncode, "seconds": time.monotonic() - started, "anonymous_bytes": anonymous,
            "gigabytes": float(speed[1]) if speed else None, "load_seconds": float(speed[2]) if speed else None,
            "gigabytes_per_second": float(speed[3]) if speed else None, "output": out.strip()[-400:],
            "errors": "" if process.returncode == 0 else err.strip()[-600:], "last_line": err.strip().split("\n")[-1]}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", default="tinyllama-1.1b")
    parser.add_argument("--dtypes", default="bfloat16,float32")
    parser.add_argument("--golden", default="qwen2", help="a golden model of two layers; empty for none")
    parser.add_argument("--tokens", type=int, default=64)
    parser.add_argument("--most-anonymous", type=float, default=0.25, help="of the model's bytes, and 1 GB")
    parser.add_argument("--json", help="result file (else $OUT/load_weights.json, else ./load_weights.json)")
    options = parser.parse_args()
    torch = harness.need_gpu()
    cases = []

    def record(case, wrong):
        cases.append(case | {"wrong": wrong})
        print(json.dumps(cases[-1]), flush=True)
        result = {"machine": harness.machine(torch), "cases": cases}
        harness.result_path(options.json, "load_weights.json").write_text(json.dumps(result, indent=1))

    with tempfile.TemporaryDirectory() as work:
        if options.golden:
            folder = harness.ROOT / "tests" / "data" / "golden" / options.golden
            done = run(folder, "", f"{work}/cache", 16)
            record({"model": f"golden {options.golden}", **done}, done["exit"] != 0 or not done["output"])
        for model in options.models.split(","):
            folder = pathlib.Path(work) / model
            folder.mkdir()
            shards = write_folder(torch, model, folder)
            size = sum(file.stat().st_size for file in folder.glob("*.safetensors"))
            for dtype in options.dtypes.split(","):
                tokens = set()
                for source in ("disk", "page cache"):
                    dropped = drop_caches() if source == "disk" else False
                    done = run(folder, dtype, f"{work}/cache", options.tokens)
                    tokens.add(done["output"].split("\n")[0])
                    record({"model": model, "dtype": dtype, "shards": shards, "folder_bytes": size, "from": source,
                            "cache_dropped": dropped, **done},
                           done["exit"] != 0 or done["anonymous_bytes"] > options.most_anonymous * size + (1 << 30)
                           or len(tokens) != 1)
    wrong = sum(bool(case["wrong"]) for case in cases)
    print(f"{len(cases) - wrong} of {len(cases)} runs well")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
