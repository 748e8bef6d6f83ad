# SPDX-License-Identifier: MIT
"""What hackc raises. Every class carries `code`, a google.rpc.Code, and derives from HackcError; some also from the
built-in exception that fits, so that `except TimeoutError` works as one expects."""

from __future__ import annotations

import re

OK, CANCELLED, UNKNOWN, INVALID_ARGUMENT, DEADLINE_EXCEEDED, NOT_FOUND = 0, 1, 2, 3, 4, 5
RESOURCE_EXHAUSTED, FAILED_PRECONDITION, OUT_OF_RANGE, UNIMPLEMENTED = 8, 9, 11, 12
INTERNAL, UNAVAILABLE, DATA_LOSS, UNAUTHENTICATED = 13, 14, 15, 16


class HackcError(RuntimeError):
    """A refusal or failure; `code` is the google.rpc.Code."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


class InvalidArgument(HackcError, ValueError):
    """Something given is not what was expected; the message says which, what was expected and what was got."""


class InvalidConfig(InvalidArgument):
    """The server refuses the model's description. `field` is the path of the field at fault, such as
    "config.hidden_size" or "seq"."""

    def __init__(self, code: int, message: str, field: str = "") -> None:
        super().__init__(code, message)
        self.field = field


class CompileError(HackcError):
    """A kernel could not be compiled: `kernel` is its name, `log` what the compiler said."""

    def __init__(self, code: int, message: str, kernel: str = "", log: str = "") -> None:
        super().__init__(code, message)
        self.kernel = kernel
        self.log = log


class Unavailable(HackcError, ConnectionError):
    """No server answers, or it is stopping."""


class DeadlineExceeded(HackcError, TimeoutError):
    """The time that the caller allowed is over."""


class Cancelled(HackcError):
    """The caller gave up."""


class NotFound(HackcError, LookupError):
    """No such program, file, weight or entry point."""


class ResourceExhausted(HackcError):
    """The server's queue is full, or memory is."""


class FailedPrecondition(HackcError):
    """Called too early or too late, or on a machine that lacks something, such as a GPU."""


class OutOfRange(HackcError, IndexError):
    """Past the end of what exists."""


class DataLoss(HackcError):
    """Bytes are not those of their digest, or a file is damaged."""


_CLASSES: dict[int, type[HackcError]] = {
    CANCELLED: Cancelled, INVALID_ARGUMENT: InvalidArgument, DEADLINE_EXCEEDED: DeadlineExceeded,
    NOT_FOUND: NotFound, RESOURCE_EXHAUSTED: ResourceExhausted, FAILED_PRECONDITION: FailedPrecondition,
    OUT_OF_RANGE: OutOfRange, UNAVAILABLE: Unavailable, DATA_LOSS: DataLoss,
}
_KERNEL = re.compile(r'kernel "([^"]*)": (.*)', re.DOTALL)
_FIELD = re.compile(r"([A-Za-z_][\w.\[\]-]*): ")


def of_code(code: int, message: str) -> HackcError:
    """The exception of a google.rpc.Code."""
    return _CLASSES.get(code, HackcError)(code, message)


def of_server(code: int, message: str) -> HackcError:
    """The exception of what a server answered: its messages open with the field's path, or name the kernel."""
    if kernel := _KERNEL.match(message):
        if code not in (CANCELLED, RESOURCE_EXHAUSTED):
            return CompileError(code, message, kernel[1], kernel[2])
    if code == INVALID_ARGUMENT:
        field = _FIELD.match(message)
        return InvalidConfig(code, message, field[1] if field else "")
    return of_code(code, message)
