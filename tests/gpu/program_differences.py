# SPDX-License-Identifier: MIT
"""What differs between two programs that `hackc-client submit --out` wrote, for tests that expect the same bits.

    differing(one, other)       # [".kernels.3.registers: 26 and 27", "attention.cubin: 23328 and 23328 bytes, ..."]
"""

import json
import pathlib

TIMED = {"report.json"}  # says how long each step took
SAID_IN_FIELDS = {"program.json", "program.pb"}


def differing_fields(one, other, path=""):
    """The fields of two values of JSON that differ, a line for each."""
    if type(one) is type(other) and isinstance(one, (dict, list)) and len(one) == len(other):
        if isinstance(one, list):
            return [line for i, (a, b) in enumerate(zip(one, other)) for line in differing_fields(a, b, f"{path}.{i}")]
        if one.keys() == other.keys():
            return [line for key in one for line in differing_fields(one[key], other[key], f"{path}.{key}")]
    return [] if one == other else [f"{path or '.'}: {str(one)[:80]} and {str(other)[:80]}"]


def differing(one, other, most=20):
    """Lines, `most` of them: fields of program.json, then files that only one folder has or whose bytes differ."""
    one, other = pathlib.Path(one), pathlib.Path(other)
    lines = differing_fields(*(json.loads((out / "program.json").read_text()) for out in (one, other)))
    if not lines and (one / "program.pb").read_bytes() != (other / "program.pb").read_bytes():
        lines.append("program.pb: other bytes for the same fields")
    files = [{str(path.relative_to(out)) for path in out.rglob("*") if path.is_file()} for out in (one, other)]
    lines += [f"{name}: in one of both" for name in sorted(files[0] ^ files[1])]
    for name in sorted((files[0] & files[1]) - TIMED - SAID_IN_FIELDS):
        a, b = ((out / name).read_bytes() for out in (one, other))
        if a != b:
            where = [i for i, (x, y) in enumerate(zip(a, b)) if x != y] or [min(len(a), len(b))]
            lines.append(f"{name}: {len(a)} and {len(b)} bytes, {len(where)} differ, from byte {where[0]} on")
    return lines[:most] + ([f"and {len(lines) - most} more"] if len(lines) > most else [])
