#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Makes hackc/v1/*_pb2.py and their type stubs of proto/hackc/v1 with protoc.

    python3 client/python/make_messages.py OUT     # writes OUT/hackc/v1/

Needs only the standard library and a protoc ($PROTOC, else of the PATH). What protoc 3.21 makes works with protobuf
3.20 and later in Python; newer ones ask for a protobuf at least as new as themselves.
"""

import os
import pathlib
import shutil
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
PROTOS = ("model", "program", "compiler")


def proto_folder():
    return HERE.parents[1] / "proto"


def make(out):
    protoc = os.environ.get("PROTOC") or shutil.which("protoc")
    if not protoc:
        raise SystemExit("make_messages: no protoc; install protobuf-compiler (deploy/install-deps does) or set PROTOC")
    pathlib.Path(out).mkdir(parents=True, exist_ok=True)
    subprocess.run([protoc, "-I", proto_folder(), f"--python_out={out}", f"--pyi_out={out}",
                    *[f"hackc/v1/{name}.proto" for name in PROTOS]], check=True)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        raise SystemExit(__doc__)
    make(sys.argv[1])
