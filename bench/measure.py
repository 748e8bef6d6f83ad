# SPDX-License-Identifier: MIT
"""Paired, alternating timing of things that can be replayed, and what a row of results says."""

import statistics

DISTURBED = 0.05  # spread above which other load must have disturbed a row

# Measured on an H200: what the fastest kernels, hackc's and PyTorch's, read a second (4.45e12; a copy moves 4.0e12);
# dense bfloat16 and float32 products of cuBLAS (bench/README.md).
BYTES_PER_SECOND = 4.5e12
OPERATIONS_PER_SECOND = {"float32": 50e12, "bfloat16": 790e12, "float16": 790e12}
SIZE = {"float32": 4, "bfloat16": 2, "float16": 2}


def captured(torch, function):
    """`function` as a CUDA graph: (replay, what it returned)."""
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(3):
            function()
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        result = function()

    def replay():
        graph.replay()

    replay.kept = function  # the tensors that it reads, which the graph does not hold
    return replay, result


def alternate(torch, runs, rounds, budget_us=4000):
    """Microseconds of one replay for each run, `rounds` times, one after another in turn; each sample repeats
    a run for about `budget_us`, so that the clock's half microsecond weighs nothing."""
    begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)

    def sample(run, repeats):
        run()
        begin.record()
        for _ in range(repeats):
            run()
        end.record()
        end.synchronize()
        return begin.elapsed_time(end) * 1e3 / repeats

    repeats = {name: max(3, min(400, int(budget_us / sample(run, 3)))) for name, run in runs.items()}
    times = {name: [] for name in runs}
    for _ in range(rounds):
        for name, run in runs.items():
            times[name].append(sample(run, repeats[name]))
    return times


def spread(times):
    ordered = sorted(times)
    last = len(ordered) - 1
    return (ordered[round(0.9 * last)] - ordered[round(0.1 * last)]) / statistics.median(times)


def row(facts, times, errors, floor_us, units):
    """One line of the results: times are per unit (a layer, a launch, a model); ratio = peer over hackc."""
    result = dict(facts)
    result["us"] = {name: statistics.median(t) / units for name, t in times.items()}
    result["ratio"] = {name: statistics.median(p / h for p, h in zip(t, times["hackc"]))
                       for name, t in times.items() if name != "hackc"}
    result["spread"] = {name: spread(t) for name, t in times.items()}
    result["error"] = errors
    result["floor_us"] = floor_us
    result["share_of_floor"] = floor_us / result["us"]["hackc"]
    result["disturbed"] = max(result["spread"].values()) > DISTURBED
    return result


def floor_us(moved_bytes, operations, dtype):
    return 1e6 * max(moved_bytes / BYTES_PER_SECOND, operations / OPERATIONS_PER_SECOND[dtype])
