#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Fails on an include that the table of rooms does not allow (see ARCHITECTURE.md).

A room is a folder; the longest entry of ROOMS that a path starts with is its room. Tests and benches may
include everything. A pass is a header below compiler/passes/LEVEL/ that a file of compiler/passes/ itself
includes, since there the passes are put in order; other files there are parts of the passes of that level.
"""

import re

import tree

# Room -> rooms or single headers it may include. Every room may include itself and compiler/support.
COMPILER_ROOMS = (
    "compiler/ir", "compiler/interp", "compiler/frontend", "compiler/passes", "compiler/schedule",
    "compiler/codegen", "compiler/program", "compiler/toolchain",
)
ROOMS = {
    "base": (),
    "compiler/support": (),
    "compiler/ir": (),
    "compiler/interp": ("compiler/ir",),
    "compiler/frontend": ("base", "compiler/ir"),
    "compiler/passes": ("compiler/ir",),
    "compiler/schedule": ("compiler/ir",),
    "compiler/codegen": ("compiler/ir",),
    "compiler/program": ("compiler/ir", "compiler/passes", "compiler/schedule", "compiler/codegen"),
    "compiler/toolchain": (),
    # compile.h and what is built on all of the compiler.
    "compiler": COMPILER_ROOMS,
    # Command lines over single parts of the compiler; replay files repeat calls of compile.h.
    "tools": ("tools", "base", "compiler/compile.h", *COMPILER_ROOMS),
    # Golden models, read as the client reads checkpoints; on a GPU they go the way of `hackc-client run`.
    "tools/golden": ("tools/opt", "compiler/compile.h", "client/runtime", *COMPILER_ROOMS),
    "tools/golden/gpu": ("tools/golden", "compiler/compile.h", "proto", "client", "server/local.h", *COMPILER_ROOMS),
    "cache": (),
    # program.h holds plain structs; the server turns them into protos.
    "server": ("proto", "compiler/compile.h", "compiler/program/program.h", "cache",
               "server/bench/bench_handler.h"),
    # The inside of a bench process; it launches as clients do, through their runtime.
    "server/bench": ("proto", "client/runtime"),
    "client": ("proto", "base", "client/runtime"),
    "client/runtime": ("proto", "base"),
    # --local runs the server's core in the same process.
    "client/cli": ("proto", "base", "client", "server/engine.h", "server/local.h", "server/event_stream.h"),
}

# Header (as written in the include) -> rooms that alone may include it; their sub-folders too.
OUTSIDE = (
    (re.compile(r"^nvrtc\.h$"), ("compiler/toolchain",)),
    (re.compile(r"^(cuda|cuda_runtime|cuda_runtime_api|cudaTypedefs|cublas\w*)\.h$"), ("client", "server")),
    (re.compile(r"^sqlite3\w*\.h$"), ("cache",)),
    (re.compile(r"^(grpc|grpcpp|grpc\+\+)/"), ("server", "client")),
    (re.compile(r"^google/(protobuf|rpc)/"), ("server", "client")),
)

INCLUDE = re.compile(r'^\s*#\s*include\s*[<"]([^>"]+)[>"]')
PASS_LEVEL = re.compile(r"compiler/passes/(graph|tensor|loop|tile|kernel)/")


def starts_with(path, prefix):
    return path == prefix or path.startswith(prefix + "/")


def room_of(path):
    """The room of a file or of an include's target, or None outside the table."""
    if re.search(r"\.pb\.h$", path) or path.startswith("proto/"):
        return "proto"
    rooms = [room for room in ROOMS if starts_with(path, room)]
    return max(rooms, key=len) if rooms else None


def wrong_include(source, target, passes):
    """Why `source` may not include `target`; None if it may. `passes`: the headers that are passes."""
    room = room_of(source)
    for header, rooms in OUTSIDE:
        if header.search(target) and not any(starts_with(room, allowed) for allowed in rooms):
            return f"only {' and '.join(rooms)} may include <{target}>"
    target_room = room_of(target)
    if target_room is None or target_room == "compiler/support":
        return None
    source_level, target_level = PASS_LEVEL.match(source), PASS_LEVEL.match(target)
    if source_level and target_level and source.rsplit(".", 1)[0] != target.rsplit(".", 1)[0]:
        if target in passes:
            return "a pass may not include another pass; what two passes share is a file that is no pass"
        if source_level[1] != target_level[1]:
            return "parts of a pass serve their own level only; what two levels share belongs in compiler/passes/*.h"
        return None
    if target_room == room or any(starts_with(target, allowed) for allowed in ROOMS[room]):
        return None
    if target_room == "proto" and "proto" in ROOMS[room]:
        return None
    allowed = ", ".join(ROOMS[room]) or "no other room"
    return f"{room} may not include {target_room} (it may include: {allowed})"


def check(root):
    includes = []  # (file, line number, target)
    for path in tree.source_files(root, {".h", ".cc", ".cu"}, ("base", "compiler", "cache", "server", "client", "tools")):
        for number, line in enumerate((root / path).read_text().splitlines(), 1):
            match = INCLUDE.match(line)
            if match:
                includes.append((path.as_posix(), number, match[1]))
    passes = {
        target for source, _, target in includes
        if re.fullmatch(r"compiler/passes/[^/]+", source) and PASS_LEVEL.match(target)
    }
    wrong = []
    for source, number, target in includes:
        reason = wrong_include(source, target, passes)
        if reason:
            wrong.append(f"{source}:{number}: includes {target}: {reason}")
    return wrong


if __name__ == "__main__":
    tree.main(check, __doc__)
