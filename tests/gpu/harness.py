# SPDX-License-Identifier: MIT
"""What the GPU checks share: where hackc is, compiling into a folder, facts of the machine, errors."""

import datetime
import json
import math
import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]  # the source tree, or a bundle
# A bundle has the built package in client/python, a source tree in build/python.
sys.path.insert(0, str(ROOT / "build" / "python" if (ROOT / "build" / "python").is_dir() else ROOT / "client" / "python"))

SKIPPED = 77  # what ctest takes for "not run here"
FLOAT32_ROUNDOFF = 2.0**-24


class Refused(Exception):
    """hackc-client said INVALID_ARGUMENT."""


def need_gpu():
    """torch with float32 that is float32; leaves with SKIPPED and a reason where there is no GPU."""
    try:
        import torch
    except ImportError as error:
        print(f"skipped: {error}")
        sys.exit(SKIPPED)
    if not torch.cuda.is_available():
        print("skipped: PyTorch sees no CUDA GPU")
        sys.exit(SKIPPED)
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.allow_tf32 = False
    return torch


def client():
    for folder in (ROOT / "bin", ROOT / "build" / "bin"):
        if (folder / "hackc-client").exists():
            return folder / "hackc-client"
    sys.exit(f"no hackc-client in {ROOT}/bin or {ROOT}/build/bin; build it or run from a bundle")


def device_arch(torch):
    major, minor = torch.cuda.get_device_capability()
    return f"sm_{major}{minor}" + ("a" if major >= 9 else "")


def compile_model(model, out, arch, dtype, seq, layers=0, cache_dir=None, batch="1", past=None,
                  page_size=0, logits="all"):
    """`hackc-client submit --local --out`; returns its report. Raises Refused or RuntimeError."""
    command = [str(client()), "submit", str(model), "--local", "--arch", arch, "--dtype", dtype,
               "--batch", batch, "--seq", seq, "--out", str(out), "--json"]
    if past:
        command += ["--past", past]
    if page_size:
        command += ["--page-size", str(page_size)]
    if logits != "all":
        command += ["--logits", logits]
    if layers:
        command += ["--layers", str(layers)]
    if cache_dir:
        command += ["--cache-dir", str(cache_dir)]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        line = (done.stderr.strip().splitlines() or ["no message"])[-1]
        raise (Refused if done.returncode == 3 else RuntimeError)(line)
    return json.loads(done.stdout)


def compile_changed(model, work, changes, arch, dtype, seq, **shapes):
    """models/MODEL.json with other values, in folder `work`: (config, folder of the compiled program)."""
    config = dict(json.loads((ROOT / "models" / f"{model}.json").read_text())["config"]) | changes
    description, out = pathlib.Path(work) / f"{model}.json", pathlib.Path(work) / f"{model}-{dtype}-{len(changes)}"
    description.write_text(json.dumps(config))
    compile_model(description, out, arch, dtype, seq, **shapes)
    return config, out


def machine(torch):
    """Facts that a result is worthless without."""
    facts = {
        "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "command": " ".join([pathlib.Path(sys.argv[0]).name, *sys.argv[1:]]),
        "gpu": torch.cuda.get_device_name(),
        "torch": torch.__version__,
        "cuda": torch.version.cuda,
        "python": sys.version.split()[0],
        "hackc": subprocess.run([str(client()), "--version"], capture_output=True, text=True).stdout.strip(),
    }
    try:
        import transformers
        facts["transformers"] = transformers.__version__
    except ImportError:
        pass
    facts["driver"] = (nvidia_smi("driver_version") or ["unknown"])[0]
    facts["clocks"] = clocks()
    return facts


def nvidia_smi(*fields):
    """What it says of the first GPU, one text for each field; nothing where it is not installed."""
    try:
        done = subprocess.run(["nvidia-smi", f"--query-gpu={','.join(fields)}", "--format=csv,noheader"],
                              capture_output=True, text=True)
    except OSError:
        return []
    return [value.strip() for value in done.stdout.split("\n")[0].split(",")]


def clocks():
    """Clocks, power and temperature of the first GPU now."""
    fields = ["clocks.sm", "clocks.mem", "clocks.max.sm", "power.draw", "temperature.gpu"]
    return dict(zip(fields, nvidia_smi(*fields)))


def result_path(given, name):
    if given:
        return pathlib.Path(given)
    return pathlib.Path(os.environ.get("OUT", ".")) / name


def errors(got, truth):
    """(relative Frobenius error, largest error over the truth's root mean square, all finite)."""
    import torch

    if not bool(torch.isfinite(got).all()):
        return math.inf, math.inf, False
    difference = got.double() - truth
    scale = truth.square().mean().sqrt().item()
    return ((difference.norm() / truth.norm()).item(), difference.abs().max().item() / scale, True)


def float32_bound(config):
    """How far float32 may be off, relative: each of some 7 reductions in a layer errs like a random walk
    over its length, and the layers' errors add up in quadrature."""
    length = max(config.get("intermediate_size", 0), config["hidden_size"])
    return FLOAT32_ROUNDOFF * math.sqrt(length) * math.sqrt(7 * config["num_hidden_layers"] + 1)


def largest_of(bound, count):
    """Bound of the largest of `count` errors whose root mean square is `bound`."""
    return bound * math.sqrt(2 * math.log(max(count, 2)))
