# SPDX-License-Identifier: MIT
"""client/hackc.h through ctypes, one to one."""

from __future__ import annotations

import ctypes
import ctypes.util
import functools
import os
import pathlib
from typing import Any

from hackc import errors

MAX_RANK = 8
KIND_INPUT, KIND_OUTPUT, KIND_STATE = 0, 1, 6
# hackc.v1.DType by the name that torch and numpy give the type.
DTYPES = {"float32": 1, "bfloat16": 2, "float16": 3, "int32": 4, "int64": 5, "bool": 6, "float64": 7}
DTYPE_NAMES = {number: name for name, number in DTYPES.items()}


class Symbol(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p), ("value", ctypes.c_int64)]


class Tensor(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p), ("data", ctypes.c_void_p), ("bytes", ctypes.c_uint64)]


class TensorInfo(ctypes.Structure):
    _fields_ = [
        ("name", ctypes.c_char_p), ("kind", ctypes.c_int32), ("dtype", ctypes.c_int32),
        ("rank", ctypes.c_int32), ("shape", ctypes.c_int64 * MAX_RANK), ("bytes", ctypes.c_uint64),
    ]

    def extents(self) -> tuple[int, ...]:
        return tuple(self.shape[: self.rank])


class ArgumentInfo(ctypes.Structure):
    _fields_ = [("kernel", ctypes.c_char_p), ("tensor", TensorInfo), ("address", ctypes.c_void_p),
                ("written", ctypes.c_int32)]


class SymbolRange(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p), ("min", ctypes.c_int64), ("max", ctypes.c_int64)]


class Bytes(ctypes.Structure):
    _fields_ = [("data", ctypes.c_char_p), ("bytes", ctypes.c_uint64)]


_POINTER = ctypes.c_void_p
_NAME = ctypes.c_char_p
Allocate = ctypes.CFUNCTYPE(_POINTER, _POINTER, ctypes.c_uint64)
Release = ctypes.CFUNCTYPE(None, _POINTER, _POINTER)
Progress = ctypes.CFUNCTYPE(ctypes.c_int, _POINTER, ctypes.c_uint64, ctypes.c_uint64)


class Allocator(ctypes.Structure):
    _fields_ = [("user", _POINTER), ("allocate", Allocate), ("release", Release)]


_CALL = [_POINTER, _NAME, ctypes.POINTER(Symbol), ctypes.c_size_t, ctypes.POINTER(Tensor), ctypes.c_size_t,
         _POINTER, ctypes.c_uint64]
_SIGNATURES: dict[str, list[Any]] = {
    "hackc_program_open": [_NAME, ctypes.c_int, ctypes.POINTER(Allocator), ctypes.POINTER(_POINTER)],
    "hackc_program_load": [Bytes, ctypes.POINTER(Bytes), ctypes.c_size_t, ctypes.c_int,
                           ctypes.POINTER(Allocator), ctypes.POINTER(_POINTER)],
    "hackc_memory_allocate": [_POINTER, ctypes.c_uint64, ctypes.POINTER(_POINTER)],
    "hackc_memory_release": [_POINTER, _POINTER],
    "hackc_memory_fill": [_POINTER, _POINTER, ctypes.c_int32, ctypes.c_uint64, _POINTER],
    "hackc_weight_info": [_POINTER, ctypes.c_size_t, ctypes.POINTER(TensorInfo)],
    "hackc_symbol_info": [_POINTER, ctypes.c_size_t, ctypes.POINTER(SymbolRange)],
    "hackc_tensor_info_at": [_POINTER, _NAME, ctypes.POINTER(Symbol), ctypes.c_size_t, ctypes.c_size_t,
                             ctypes.POINTER(TensorInfo)],
    "hackc_bind_weight": [_POINTER, _NAME, _POINTER, ctypes.c_int, ctypes.c_int,
                          ctypes.POINTER(ctypes.c_int64), ctypes.c_int],
    "hackc_bind_folder": [_POINTER, _NAME, ctypes.c_int, Progress, _POINTER],
    "hackc_prepare": [_POINTER, _POINTER],
    "hackc_workspace_bytes": [_POINTER, _NAME, ctypes.POINTER(Symbol), ctypes.c_size_t,
                              ctypes.POINTER(ctypes.c_uint64)],
    "hackc_run": _CALL + [_POINTER],
    "hackc_graph_capture": _CALL + [ctypes.POINTER(_POINTER)],
    "hackc_graph_capture_kernels": _CALL + [ctypes.POINTER(_NAME), ctypes.c_size_t, ctypes.POINTER(_POINTER)],
    "hackc_graph_argument": [_POINTER, ctypes.c_size_t, ctypes.c_size_t, ctypes.POINTER(ArgumentInfo)],
    "hackc_graph_set_symbols": [_POINTER, ctypes.POINTER(Symbol), ctypes.c_size_t],
    "hackc_graph_launch": [_POINTER, _POINTER],
    "hackc_synchronize": [_POINTER],
}


def places(kind: str, name: str) -> list[pathlib.Path]:
    """Where a file of hackc may be: beside this package, in a bundle or source tree around it. `kind` is lib or bin."""
    here = pathlib.Path(__file__).resolve().parent
    found = [here / kind / name]
    # PACKAGE lies in client/python of a source tree or bundle, or in build/python of a build.
    for root in (here.parents[2], here.parents[1]):
        found += [root / kind / name, root / "build" / kind / name]
    return found


def candidates() -> list[str]:
    """Places of libhackc.so, the most explicit first."""
    if os.environ.get("HACKC_LIBRARY"):
        return [os.environ["HACKC_LIBRARY"]]
    installed = ctypes.util.find_library("hackc")
    return [str(path) for path in places("lib", "libhackc.so")] + ([installed] if installed else [])


@functools.lru_cache(maxsize=None)
def load() -> ctypes.CDLL:
    """The library with its signatures set. Raises OSError naming the places searched."""
    for path in candidates():
        if "/" not in path or os.path.exists(path):
            library = ctypes.CDLL(path)
            break
    else:
        raise OSError("libhackc.so not found in " + ", ".join(candidates())
                      + "; build it (ninja -C build hackc_c) or set HACKC_LIBRARY to its path")
    for name, arguments in _SIGNATURES.items():
        function = getattr(library, name)
        function.argtypes, function.restype = arguments, ctypes.c_int
    for name in ("hackc_program_close", "hackc_graph_destroy"):
        getattr(library, name).argtypes, getattr(library, name).restype = [_POINTER], None
    for name in ("hackc_last_error", "hackc_version"):
        getattr(library, name).argtypes, getattr(library, name).restype = [], _NAME
    return library


def check(code: int) -> None:
    """Raises what hackc_last_error says unless the code is OK."""
    if code != errors.OK:
        # "NOT_FOUND: ...": the class says that already.
        name, _, message = load().hackc_last_error().decode(errors="replace").partition(": ")
        raise errors.of_code(code, message if name.isupper() else f"{name}: {message}")


def symbols(values: dict[str, int]) -> tuple[Any, int]:
    """The symbol arguments of a call."""
    return (Symbol * len(values))(*[Symbol(n.encode(), v) for n, v in values.items()]), len(values)


def bytes_of(dtype: str, shape: tuple[int, ...]) -> int:
    """Size of a dense tensor."""
    size = {"bfloat16": 2, "float16": 2, "bool": 1, "uint8": 1, "int64": 8, "float64": 8}.get(dtype, 4)
    for extent in shape:
        size *= extent
    return size
