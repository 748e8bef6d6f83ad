# SPDX-License-Identifier: MIT
"""client/hackc.h through ctypes, one to one."""

import ctypes
import functools
import os
import pathlib

MAX_RANK = 8
OK, OUT_OF_RANGE = 0, 11
KIND_INPUT, KIND_OUTPUT, KIND_STATE = 0, 1, 6
# hackc.v1.DType by the name that torch gives the type.
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

    def extents(self):
        return tuple(self.shape[: self.rank])


class ArgumentInfo(ctypes.Structure):
    _fields_ = [("kernel", ctypes.c_char_p), ("tensor", TensorInfo), ("address", ctypes.c_void_p),
                ("written", ctypes.c_int32)]


class SymbolRange(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p), ("min", ctypes.c_int64), ("max", ctypes.c_int64)]


_POINTER = ctypes.c_void_p
_NAME = ctypes.c_char_p
_CALL = [_POINTER, _NAME, ctypes.POINTER(Symbol), ctypes.c_size_t, ctypes.POINTER(Tensor), ctypes.c_size_t,
         _POINTER, ctypes.c_uint64]
_SIGNATURES = {
    "hackc_program_open": [_NAME, ctypes.c_int, ctypes.POINTER(_POINTER)],
    "hackc_weight_info": [_POINTER, ctypes.c_size_t, ctypes.POINTER(TensorInfo)],
    "hackc_symbol_info": [_POINTER, ctypes.c_size_t, ctypes.POINTER(SymbolRange)],
    "hackc_tensor_info_at": [_POINTER, _NAME, ctypes.POINTER(Symbol), ctypes.c_size_t, ctypes.c_size_t,
                             ctypes.POINTER(TensorInfo)],
    "hackc_bind_weight": [_POINTER, _NAME, _POINTER, ctypes.c_int, ctypes.c_int,
                          ctypes.POINTER(ctypes.c_int64), ctypes.c_int],
    "hackc_bind_folder": [_POINTER, _NAME, ctypes.c_int],
    "hackc_prepare": [_POINTER, _POINTER],
    "hackc_workspace_bytes": [_POINTER, _NAME, ctypes.POINTER(Symbol), ctypes.c_size_t,
                              ctypes.POINTER(ctypes.c_uint64)],
    "hackc_run": _CALL + [_POINTER],
    "hackc_graph_capture": _CALL + [ctypes.POINTER(_POINTER)],
    "hackc_graph_capture_kernels": _CALL + [ctypes.POINTER(_NAME), ctypes.c_size_t, ctypes.POINTER(_POINTER)],
    "hackc_graph_argument": [_POINTER, ctypes.c_size_t, ctypes.c_size_t, ctypes.POINTER(ArgumentInfo)],
    "hackc_graph_set_symbols": [_POINTER, ctypes.POINTER(Symbol), ctypes.c_size_t],
    "hackc_graph_launch": [_POINTER, _POINTER],
}


def candidates():
    """Places of libhackc.so, the most explicit first."""
    if os.environ.get("HACKC_LIBRARY"):
        return [pathlib.Path(os.environ["HACKC_LIBRARY"])]
    # client/python/hackc lies in the source tree and in a bundle at the same depth.
    root = pathlib.Path(__file__).resolve().parents[3]
    return [root / "lib" / "libhackc.so", root / "build" / "lib" / "libhackc.so"]


@functools.cache
def load():
    """The library with its signatures set. Raises OSError naming the places searched."""
    for path in candidates():
        if path.exists():
            library = ctypes.CDLL(str(path))
            break
    else:
        raise OSError("libhackc.so not found in " + ", ".join(map(str, candidates()))
                      + "; build it (ninja -C build hackc_c) or set HACKC_LIBRARY")
    for name, arguments in _SIGNATURES.items():
        function = getattr(library, name)
        function.argtypes, function.restype = arguments, ctypes.c_int
    for name in ("hackc_program_close", "hackc_graph_destroy"):
        getattr(library, name).argtypes, getattr(library, name).restype = [_POINTER], None
    library.hackc_last_error.argtypes, library.hackc_last_error.restype = [], _NAME
    return library
