# SPDX-License-Identifier: MIT
"""DLPack in both directions, without a library: tensors of others as pointers, GPU memory of ours as tensors.

    view = dlpack.view(array, stream)            # anything with __dlpack__, or with data_ptr() as torch has
    cupy.from_dlpack(dlpack.Array(...))
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any, NamedTuple

from hackc import errors, library

CPU, CUDA, CUDA_MANAGED = 1, 2, 13
_DEVICES = {CPU: "cpu", CUDA: "cuda", 3: "cpu (pinned)", CUDA_MANAGED: "cuda"}
# (code, bits) of DLDataType.
_TYPES = {(2, 32): "float32", (2, 64): "float64", (2, 16): "float16", (4, 16): "bfloat16", (0, 32): "int32",
          (0, 64): "int64", (6, 8): "bool"}
_CODES = {name: type_ for type_, name in _TYPES.items()}
_LEGACY_STREAM = 1  # DLPack's number for CUDA's default stream, whose handle is 0


class _Tensor(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("device_type", ctypes.c_int32), ("device_id", ctypes.c_int32),
                ("ndim", ctypes.c_int32), ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8),
                ("lanes", ctypes.c_uint16), ("shape", ctypes.POINTER(ctypes.c_int64)),
                ("strides", ctypes.POINTER(ctypes.c_int64)), ("byte_offset", ctypes.c_uint64)]


_Deleter = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


class _Managed(ctypes.Structure):
    _fields_ = [("tensor", _Tensor), ("manager", ctypes.c_void_p), ("deleter", _Deleter)]


_api = ctypes.pythonapi
_get_pointer = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(("PyCapsule_GetPointer", _api))
_Destructor = ctypes.PYFUNCTYPE(None, ctypes.c_void_p)
_new = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.c_char_p, _Destructor)(("PyCapsule_New", _api))
# Of a capsule that is being destroyed, which must not become a Python object again.
_is_valid = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_char_p)(("PyCapsule_IsValid", _api))
_get_dying = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_char_p)(("PyCapsule_GetPointer", _api))


class View(NamedTuple):
    """Where a tensor lies. `keep` holds the memory."""

    pointer: int
    dtype: str
    shape: tuple[int, ...]
    device: str  # "cuda:0", "cpu"
    contiguous: bool
    keep: Any

    @property
    def on_device(self) -> bool:
        return self.device.startswith("cuda")


def _dense(shape: tuple[int, ...], strides: list[int]) -> bool:
    expected = 1
    for extent, stride in zip(reversed(shape), reversed(strides)):
        if extent > 1 and stride != expected:
            return False
        expected *= extent
    return True


def view(value: Any, stream: int = 0) -> View:
    """The memory of a tensor, without a copy. What its owner has still to do on it is ordered before `stream`."""
    if hasattr(value, "data_ptr") and hasattr(value, "is_contiguous"):  # torch.Tensor, without its capsules' cost
        dtype = str(value.dtype).removeprefix("torch.")
        return View(value.data_ptr(), dtype, tuple(value.shape), str(value.device), value.is_contiguous(), value)
    if not hasattr(value, "__dlpack__"):
        raise errors.InvalidArgument(
            errors.INVALID_ARGUMENT, f"expected a torch tensor or something with __dlpack__, got {type(value).__name__}")
    kind, _ = value.__dlpack_device__()
    on_device = int(kind) in (CUDA, CUDA_MANAGED)
    capsule = value.__dlpack__(stream=stream or _LEGACY_STREAM) if on_device else value.__dlpack__()
    # The capsule keeps its name, so that it frees the tensor itself when the view is gone.
    tensor = _Managed.from_address(_get_pointer(capsule, b"dltensor")).tensor
    shape = tuple(tensor.shape[: tensor.ndim])
    dtype = _TYPES.get((tensor.code, tensor.bits), "") if tensor.lanes == 1 else ""
    strides = tensor.strides[: tensor.ndim] if tensor.strides else None
    where = _DEVICES.get(tensor.device_type, f"device kind {tensor.device_type}")
    return View((tensor.data or 0) + tensor.byte_offset, dtype or f"dtype ({tensor.code}, {tensor.bits})", shape,
                f"{where}:{tensor.device_id}" if where == "cuda" else where,
                strides is None or _dense(shape, strides), capsule)


class Array:
    """A dense tensor in GPU memory, for machines without PyTorch: has `shape`, `dtype`, `device`, data_ptr() and
    DLPack. It is written on `stream`; importing it on another raises BufferError, since nothing here could wait."""

    def __init__(self, pointer: int, shape: tuple[int, ...], dtype: str, device: int,
                 release: Callable[[], None], stream: int = 0) -> None:
        self.shape, self.dtype, self.device, self.stream = shape, dtype, f"cuda:{device}", stream
        self._pointer, self._device, self._release = pointer, device, release
        self.nbytes = library.bytes_of(dtype, shape)

    def __del__(self) -> None:
        self._release()

    def __repr__(self) -> str:
        return f"hackc.Array({self.dtype} {list(self.shape)} on {self.device})"

    def data_ptr(self) -> int:
        return self._pointer

    def is_contiguous(self) -> bool:
        return True

    def __dlpack_device__(self) -> tuple[int, int]:
        return CUDA, self._device

    def __dlpack__(self, *, stream: int | None = None, **options: Any) -> Any:
        if stream not in (None, -1, self.stream or _LEGACY_STREAM):
            raise BufferError(f"written on stream {self.stream}, to be read on stream {stream}: import it on the same")
        return _export(self)


_exported: dict[int, tuple[_Managed, Any]] = {}


def _delete(address: int) -> None:
    _exported.pop(address, None)


def _destroy(capsule: int) -> None:
    if _is_valid(capsule, b"dltensor"):  # else somebody took the tensor, and deletes it
        _delete(_get_dying(capsule, b"dltensor"))


_delete_in_c, _destroy_in_c = _Deleter(_delete), _Destructor(_destroy)


def _export(array: Array) -> Any:
    rank = len(array.shape)
    shape = (ctypes.c_int64 * max(rank, 1))(*array.shape)
    code, bits = _CODES[array.dtype]
    managed = _Managed(_Tensor(array.data_ptr(), CUDA, array._device, rank, code, bits, 1, shape, None, 0), None,
                       _delete_in_c)
    address = ctypes.addressof(managed)
    _exported[address] = (managed, (array, shape))
    return _new(address, b"dltensor", _destroy_in_c)
