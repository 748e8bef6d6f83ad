# SPDX-License-Identifier: MIT
"""A compiled program: kernels, launch lists and plans, not yet on any GPU."""

from __future__ import annotations

import os
import pathlib
import re
from collections import Counter
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from hackc import errors

_LEVELS = ("graph", "tensor", "loop", "tile", "kernel", "cuda")  # whose text `submit --out` writes

if TYPE_CHECKING:
    from hackc.events import Report
    from hackc.runtime import Runtime


class Program:
    """What Client.compile gives, or a folder written by save() or by `hackc-client submit --out`.

        runtime = hackc.Program("out").load("cuda:0").bind("Qwen2.5-7B")

    Attributes: `digest` ("sha256:...", "" for a folder's) and `report` (events.Report of its compile, or None).
    Immutable, and safe to use from several threads.
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self._folder: pathlib.Path | None = pathlib.Path(folder)
        if not (self._folder / "program.pb").is_file():
            raise errors.NotFound(errors.NOT_FOUND, f"{self._folder / 'program.pb'}: no such file")
        self._bytes, self._cubins = b"", {}  # type: bytes, Mapping[str, bytes]
        self.digest, self.report = "", None  # type: str, Report | None

    @classmethod
    def from_bytes(cls, program: bytes, cubins: Mapping[str, bytes], digest: str = "",
                   report: Report | None = None) -> Program:
        """From a serialised hackc.v1.Program and its kernels' cubins by digest."""
        made = cls.__new__(cls)
        made._folder, made._bytes, made._cubins = None, program, dict(cubins)
        made.digest, made.report = digest, report
        return made

    @property
    def message(self) -> Any:
        """The hackc.v1.Program: symbols, buffers, kernels with their launch contracts, launch lists."""
        from hackc.v1 import program_pb2

        message: Any = program_pb2.Program()
        message.ParseFromString(self._serialised())
        return message

    def _serialised(self) -> bytes:
        return (self._folder / "program.pb").read_bytes() if self._folder else self._bytes

    def save(self, folder: str | os.PathLike[str]) -> None:
        """Writes program.pb and every cubin, for Program(folder) and for C++ and C programs. A program that is there
        is replaced; program.pb comes last, so that a folder that has one is complete."""
        target = pathlib.Path(folder)
        names = _file_names(self.message)
        program, files = self._serialised(), {}
        for name, digest in names.items():
            code = (self._folder / f"{name}.cubin").read_bytes() if self._folder else self._cubins[digest]
            files[f"{name}.cubin"] = code
        target.mkdir(parents=True, exist_ok=True)
        _remove(target)
        for file, data in files.items():
            (target / file).write_bytes(data)
        (target / "program.pb.new").write_bytes(program)
        os.replace(target / "program.pb.new", target / "program.pb")

    def load(self, device: Any = None, *, allocator: Callable[[int], Any] | None = None) -> Runtime:
        """Loads it onto a GPU, in the device's primary context, which PyTorch uses too.

        `device` is a number, "cuda:1" or a torch.device; else PyTorch's current one, else 0. `allocator(bytes)`
        gives the memory of copied and prepared weights, workspaces, caches and outputs as a tensor (anything with
        DLPack) of at least so many bytes, aligned to 256; by default that is torch.empty, else the driver's.
        """
        from hackc.runtime import Runtime

        return Runtime(self, device, allocator)


def _file_names(message: Any) -> dict[str, str]:
    """{name of a kernel's files: digest}"""
    names = {}
    uses = Counter(kernel.name for kernel in message.kernels)
    for i, kernel in enumerate(message.kernels):
        name = kernel.name if uses[kernel.name] == 1 else f"{kernel.name}.{i}"
        if not re.fullmatch(r"[A-Za-z0-9_-][A-Za-z0-9_.-]{0,127}", name):
            raise errors.DataLoss(errors.DATA_LOSS, f"kernel {i}: {name!r} is no name for a file")
        names[name] = kernel.digest
    return names


def _remove(folder: pathlib.Path) -> None:
    """What save() or `submit --out` wrote there before, program.pb first; nothing else."""
    if not (folder / "program.pb").is_file():
        return
    try:
        names = list(_file_names(Program(folder).message))
    except Exception:  # a damaged one, which says no names
        names = []
    texts = [f"{level}.{'cu' if level == 'cuda' else 'hir'}" for level in _LEVELS]
    for file in ["program.pb", "program.json", "report.json", *texts]:
        (folder / file).unlink(missing_ok=True)
    for name in names:
        (folder / f"{name}.cubin").unlink(missing_ok=True)
        if (folder / name).is_dir():
            for text in texts:
                (folder / name / text).unlink(missing_ok=True)
            if not any((folder / name).iterdir()):
                (folder / name).rmdir()
