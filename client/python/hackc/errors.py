# SPDX-License-Identifier: MIT
"""What hackc raises. Every class carries `code`, a google.rpc.Code, and derives from HackcError; some also from the
built-in exception that fits, so that `except TimeoutError` works as one expects."""

from __future__ import annotations

import re
from typing import Any

OK, CANCELLED, UNKNOWN, INVALID_ARGUMENT, DEADLINE_EXCEEDED, NOT_FOUND = 0, 1, 2, 3, 4, 5
ALREADY_EXISTS, PERMISSION_DENIED, RESOURCE_EXHAUSTED, FAILED_PRECONDITION, ABORTED = 6, 7, 8, 9, 10
OUT_OF_RANGE, UNIMPLEMENTED, INTERNAL, UNAVAILABLE, DATA_LOSS, UNAUTHENTICATED = 11, 12, 13, 14, 15, 16


class HackcError(RuntimeError):
    """A refusal or failure; `code` is the google.rpc.Code."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code

    def __reduce__(self) -> tuple[Any, ...]:
        # Else it is made anew from its `args`, which are not what the constructors take.
        return _remade, (type(self), self.args, self.__dict__.copy())


def _remade(kind: type[HackcError], args: tuple[Any, ...], values: dict[str, Any]) -> HackcError:
    error = kind(values["code"], *args)
    error.__dict__.update(values)
    return error


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


class PermissionDenied(HackcError, PermissionError):
    """A file or folder is not the caller's to read or write."""


class AlreadyExists(HackcError):
    """Something is where another thing was to be made."""


class Aborted(HackcError):
    """Given up because of something else that went on at the time."""


class Unimplemented(HackcError):
    """Not in this build, or not in the server's version."""


class Internal(HackcError):
    """A fault in hackc, or in the driver."""


class Unauthenticated(HackcError):
    """The server wants to know who asks."""


_CLASSES: dict[int, type[HackcError]] = {
    CANCELLED: Cancelled, INVALID_ARGUMENT: InvalidArgument, DEADLINE_EXCEEDED: DeadlineExceeded,
    NOT_FOUND: NotFound, RESOURCE_EXHAUSTED: ResourceExhausted, FAILED_PRECONDITION: FailedPrecondition,
    OUT_OF_RANGE: OutOfRange, UNAVAILABLE: Unavailable, DATA_LOSS: DataLoss, PERMISSION_DENIED: PermissionDenied,
    ALREADY_EXISTS: AlreadyExists, ABORTED: Aborted, UNIMPLEMENTED: Unimplemented, INTERNAL: Internal,
    UNAUTHENTICATED: Unauthenticated,
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
