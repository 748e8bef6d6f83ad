# SPDX-License-Identifier: MIT
"""The little of PyTorch that hackc asks of it, over numpy, for machines without a GPU: host memory that the fake CUDA
driver takes for a GPU's. Nothing computes logits there, so that empty() makes FAVOURITE the likeliest of every row."""

import types

import numpy

FAVOURITE = 7


class Tensor(numpy.ndarray):
    device = "cuda:0"
    is_cuda = True

    def data_ptr(self):
        return self.ctypes.data

    def is_contiguous(self):
        return self.flags.c_contiguous

    def dim(self):
        return self.ndim

    def detach(self):
        return self

    def contiguous(self):
        return aligned(self)

    def to(self, target):
        return self if isinstance(target, str) else self.astype(target)

    def long(self):
        return self.astype(numpy.int64)

    def split(self, count, dim):
        assert dim == 1
        return [self[:, at:at + count] for at in range(0, self.shape[1], count)]

    def argmax(self, dim, keepdim=False):
        return numpy.argmax(numpy.asarray(self), axis=dim, keepdims=keepdim).view(Tensor)

    def clamp(self, least, most):
        return self.clip(least, most)

    def clone(self):
        return aligned(self)

    def scatter_(self, dim, index, values):
        numpy.put_along_axis(self, index, values, dim)

    def int(self):
        return aligned(self.astype(numpy.int32))

    def masked_fill(self, mask, value):
        return numpy.where(mask, value, self).view(Tensor)

    def copy_(self, other):
        self[...] = other

    def fill_(self, value):
        self.fill(value)


def aligned(values):
    """A dense copy at a multiple of 256, as a GPU's memory is."""
    room = numpy.zeros(values.nbytes + 256, numpy.uint8)
    start = -room.ctypes.data % 256
    made = room[start:start + values.nbytes].view(values.dtype).reshape(values.shape).view(Tensor)
    made[...] = values
    return made


def empty(shape, dtype, device):
    made = aligned(numpy.zeros(shape, dtype))
    if made.dtype.kind == "f" and made.ndim >= 2 and made.shape[-1] > FAVOURITE:
        made[..., FAVOURITE] = 1
    return made


def module():
    torch = types.ModuleType("torch")
    for name in ("float32", "float16", "int32", "int64", "uint8"):
        setattr(torch, name, getattr(numpy, name))
    torch.bool = numpy.bool_
    torch.Tensor, torch.empty = Tensor, empty
    torch.device = lambda kind, index: f"{kind}:{index}"
    torch.zeros = lambda shape, dtype, device: aligned(numpy.zeros(shape, dtype))
    torch.full = lambda shape, value, dtype, device: aligned(numpy.full(shape, value, dtype))
    torch.arange = lambda count, device: aligned(numpy.arange(count))
    torch.where = lambda condition, a, b: numpy.where(condition, a, b).view(Tensor)
    torch.as_tensor = lambda values, device: aligned(numpy.asarray(values))
    torch.cuda = types.SimpleNamespace(
        current_stream=lambda device: types.SimpleNamespace(cuda_stream=0), current_device=lambda: 0,
        is_available=lambda: True, synchronize=lambda device: None, get_device_capability=lambda: (9, 0))
    return torch
