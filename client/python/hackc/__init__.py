# SPDX-License-Identifier: MIT
"""Compiles language models with a hackc server and runs them on PyTorch tensors, without a copy.

    program = hackc.Client("127.0.0.1:7070").compile(model.config, shapes={"seq": (1, 512), "past": (0, 2048)})
    runtime = program.load("cuda").bind(model.state_dict())    # Hugging Face names; GPU tensors are used in place
    tokens = runtime.generate(ids, max_new_tokens=64)           # [batch, n + 64]

Client, Program, Runtime and Graph say the rest. `libhackc.so` is searched in $HACKC_LIBRARY, in this package, in lib/
and build/lib/ of the tree around it, and where the loader looks. Client needs grpcio and protobuf; tensors are
PyTorch's where it is installed, else anything with DLPack.
"""

from hackc.client import Client, CompileStream
from hackc.dlpack import Array
from hackc.errors import (Aborted, AlreadyExists, Cancelled, CompileError, DataLoss, DeadlineExceeded,
                          FailedPrecondition, HackcError, Internal, InvalidArgument, InvalidConfig, NotFound, OutOfRange,
                          PermissionDenied, ResourceExhausted, Unauthenticated, Unavailable, Unimplemented)
from hackc.events import Event, KernelReady, ProgramReady, Progress, Report
from hackc.program import Program
from hackc.runtime import Graph, Runtime

__version__ = "0.1.0"
__all__ = [
    "Aborted", "AlreadyExists", "Array", "Cancelled", "Client", "CompileError", "CompileStream", "DataLoss",
    "DeadlineExceeded", "Event", "FailedPrecondition", "Graph", "HackcError", "Internal", "InvalidArgument",
    "InvalidConfig", "KernelReady", "NotFound", "OutOfRange", "PermissionDenied", "Program", "ProgramReady", "Progress",
    "Report", "ResourceExhausted", "Runtime", "Unauthenticated", "Unavailable", "Unimplemented",
]
