# SPDX-License-Identifier: MIT
"""What a compile tells while it runs: Progress, a KernelReady for each kernel as it is ready, ProgramReady, Report."""

from __future__ import annotations

import dataclasses
import json
from typing import Any, Union


@dataclasses.dataclass(frozen=True)
class Progress:
    stage: str  # "queued", "lower", "compile", "check", "store", "time"
    done: int
    total: int
    detail: str


@dataclasses.dataclass(frozen=True)
class KernelReady:
    name: str
    computes: str  # one line for people
    digest: str  # of the cubin
    hit: bool  # it came from the cache
    registers: int
    spill_bytes: int
    cubin_bytes: int
    times: dict[str, float]  # stage: milliseconds
    ir: dict[str, str]  # level: text; empty unless asked for


@dataclasses.dataclass(frozen=True)
class ProgramReady:
    digest: str
    hit: bool
    model: str
    arch: str
    kernels: int


@dataclasses.dataclass(frozen=True)
class Report:
    compile_ms: float
    hits: int  # kernels that came from the cache
    misses: int
    times: dict[str, float]  # stage: milliseconds
    ir: dict[str, str]  # "graph" and "tensor", of the whole model; empty unless asked for
    timing: Any  # kernel times that a server with a GPU measured, else None


Event = Union[Progress, KernelReady, ProgramReady, Report]


def of_message(message: Any) -> Event:
    """The event in a hackc.v1.CompileEvent."""
    kind = message.WhichOneof("event")
    event = getattr(message, kind)
    if kind == "progress":
        return Progress(event.stage, event.done, event.total, event.detail)
    if kind == "program":
        program = event.program
        return ProgramReady(event.digest, event.hit, program.model, program.arch, len(program.kernels))
    times = {time.stage: time.milliseconds for time in event.times}
    if kind == "kernel":
        k = event.kernel
        return KernelReady(k.name, k.computes, k.digest, event.hit, k.registers, k.spill_bytes, k.cubin_bytes,
                           times, dict(event.ir))
    timing = json.loads(event.timing_json) if event.timing_json else None
    return Report(event.compile_ms, event.hits, event.misses, times, dict(event.ir), timing)
