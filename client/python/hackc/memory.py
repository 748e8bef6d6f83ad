# SPDX-License-Identifier: MIT
"""Where a runtime's tensors and its stream come from: PyTorch if it sees a GPU, else libhackc.so itself."""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable
from typing import Any

from hackc import dlpack, errors, library


def find_torch() -> Any:
    """The module, or None where it is missing or sees no GPU. Called before libhackc.so is opened: PyTorch then
    decides which C++ runtime is loaded."""
    try:
        import torch
    except ImportError:
        return None
    return torch if torch.cuda.is_available() else None


def device_index(device: Any, torch: Any) -> int:
    if device is None:
        return int(torch.cuda.current_device()) if torch is not None else 0
    if isinstance(device, int):
        return device
    kind, _, index = str(device).partition(":")
    if kind != "cuda" or not (index or "0").isdigit():
        raise errors.InvalidArgument(errors.INVALID_ARGUMENT, f"device: expected a CUDA device, got {device}")
    return int(index) if index else device_index(None, torch)


class Allocator:
    """Hands memory of the caller's, or of PyTorch's pool, to libhackc.so, and keeps what is in use alive."""

    def __init__(self, take: Callable[[int], Any], device: str) -> None:
        self._take, self._device = take, device
        self._held: dict[int, Any] = {}
        self.error: BaseException | None = None  # what `take` raised last
        self.struct = library.Allocator(None, library.Allocate(self._allocate), library.Release(self._release))

    def memory(self, size: int) -> dlpack.View:
        view = dlpack.view(self._take(size))
        room = library.bytes_of(view.dtype, view.shape)
        if view.device != self._device or room < size or not view.contiguous:
            raise errors.InvalidArgument(
                errors.INVALID_ARGUMENT, f"allocator: expected {size} bytes on {self._device}, got {room} on"
                f" {view.device}")
        return view

    def _allocate(self, _: Any, size: int) -> int | None:
        try:
            view = self.memory(size)
        except BaseException as error:  # nothing may be raised through C; raised again by who called it
            self.error = error
            return None
        self._held[view.pointer] = view
        return view.pointer

    def _release(self, _: Any, data: int) -> None:
        self._held.pop(data, None)


def raise_with(code: int, allocator: Allocator | None) -> None:
    """library.check, with the reason why an allocator gave nothing as the cause."""
    cause, reason = (allocator.error, allocator) if allocator is not None else (None, None)
    if reason is not None:
        reason.error = None
    try:
        library.check(code)
    except errors.HackcError as error:
        if cause is not None and not isinstance(cause, Exception):
            raise cause
        raise error from cause


class TorchMemory:
    """Tensors from PyTorch's pool, and its current stream."""

    def __init__(self, torch: Any, index: int, take: Callable[[int], Any] | None) -> None:
        self.torch, self.device = torch, torch.device("cuda", index)
        self._given = take is not None
        self.allocator: Allocator | None = Allocator(take or self._bytes, f"cuda:{index}")

    def _bytes(self, size: int) -> Any:
        return self.torch.empty(size, dtype=self.torch.uint8, device=self.device)

    def stream(self) -> int:
        return int(self.torch.cuda.current_stream(self.device).cuda_stream)

    def empty(self, shape: tuple[int, ...], dtype: str, stream: int) -> Any:
        kind = getattr(self.torch, dtype)
        if not self._given:
            return self.torch.empty(shape, dtype=kind, device=self.device)
        assert self.allocator is not None
        size = library.bytes_of(dtype, shape)
        memory = self.allocator.memory(max(size, 1)).keep
        if not isinstance(memory, self.torch.Tensor):
            memory = self.torch.from_dlpack(memory)
        return memory.reshape(-1).view(self.torch.uint8)[:size].view(kind).view(shape)

    def poison(self, tensor: Any) -> None:
        tensor.view(self.torch.uint8).fill_(0xFF)

    def wait(self) -> None:
        self.torch.cuda.synchronize(self.device)


class PlainMemory:
    """Tensors from libhackc.so as dlpack.Array, and CUDA's default stream."""

    torch: Any = None

    def __init__(self, index: int, take: Callable[[int], Any] | None) -> None:
        self.index, self.device = index, f"cuda:{index}"
        self.allocator = Allocator(take, self.device) if take is not None else None
        self.program = ctypes.c_void_p()  # whose memory it is: a hackc_program, null once it is closed

    def stream(self) -> int:
        return 0

    def empty(self, shape: tuple[int, ...], dtype: str, stream: int) -> dlpack.Array:
        pointer = ctypes.c_void_p()
        raise_with(library.load().hackc_memory_allocate(self.program, library.bytes_of(dtype, shape),
                                                        ctypes.byref(pointer)), self.allocator)
        # Also once the program is closed, which keeps the memory until then; `allocator` lives as long.
        release = functools.partial(_release, library.load().hackc_memory_release, self.program.value, pointer.value,
                                    self.allocator)
        return dlpack.Array(pointer.value or 0, shape, dtype, self.index, release, stream)

    def poison(self, tensor: Any) -> None:
        raise errors.FailedPrecondition(errors.FAILED_PRECONDITION, "poison needs PyTorch")

    def wait(self) -> None:
        library.check(library.load().hackc_synchronize(self.program))


def _release(function: Any, program: int | None, address: int | None, _: Allocator | None) -> None:
    function(program, address)
