# SPDX-License-Identifier: MIT
"""A program on a GPU, run on PyTorch tensors or on anything with DLPack, in place."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Union

from hackc import dlpack, errors
from hackc import library as lib
from hackc.memory import PlainMemory, TorchMemory, device_index, find_torch, raise_with
from hackc.program import Program

Symbols = Mapping[str, int]
Weights = Union[Mapping[str, Any], str, "os.PathLike[str]"]


_DEFAULTS = ("past_lengths", "last_positions")  # inputs that callers may leave out


def _invalid(message: str) -> errors.InvalidArgument:
    return errors.InvalidArgument(errors.INVALID_ARGUMENT, message)


def _some(names: list[str]) -> str:
    return ", ".join(names[:20]) + (f" and {len(names) - 20} more" if len(names) > 20 else "")


class Runtime:
    """A program on one GPU; made by Program.load.

        runtime = program.load("cuda:0").bind(model.state_dict())
        logits = runtime.run("prefill", input_ids=ids)["logits"]           # [batch, seq, vocab]

    One compiled with a cache has the entry points "prefill" and "decode" over states that the caller keeps:

        cache = runtime.new_states(batch=1)
        runtime.run("prefill", {"past": 0}, states=cache, input_ids=ids)
        runtime.run("decode", {"past": ids.shape[1]}, states=cache, input_ids=next_id)

    Runs are launched on PyTorch's current stream (without PyTorch: the default stream, or the one given), never
    wait for the GPU and copy no tensor. Tensors have to stay alive until the stream has passed the run.
    Thread safety: none; one call at a time.
    """

    def __init__(self, program: Program, device: Any = None, allocator: Callable[[int], Any] | None = None) -> None:
        self._handle = ctypes.c_void_p()
        torch = find_torch()
        index = device_index(device, torch)
        self.program = program
        self._memory = TorchMemory(torch, index, allocator) if torch is not None else PlainMemory(index, allocator)
        self.device = self._memory.device
        self._name = f"cuda:{index}"
        self._graphs: set[int] = set()  # hackc_graphs, which have to go before the program
        self._kept: list[Any] = []  # bound GPU tensors, which the program reads where they lie
        self._workspaces: dict[int, Any] = {}  # by stream: two streams may run at once
        self._defaults: dict[tuple[str, tuple[int, ...], int], Any] = {}  # inputs that callers leave out
        self._symbols: dict[str, tuple[int, int]] = {}
        given = self._memory.allocator
        struct = ctypes.byref(given.struct) if given is not None else None
        if program._folder is not None:
            code = lib.load().hackc_program_open(os.fsencode(program._folder), index, struct,
                                                 ctypes.byref(self._handle))
        else:
            codes = list(program._cubins.values())
            cubins = (lib.Bytes * max(1, len(codes)))(*[lib.Bytes(code, len(code)) for code in codes])
            code = lib.load().hackc_program_load(lib.Bytes(program._bytes, len(program._bytes)), cubins, len(codes),
                                                 index, struct, ctypes.byref(self._handle))
        self._check(code)
        if isinstance(self._memory, PlainMemory):
            self._memory.program = self._handle

    def _check(self, code: int) -> None:
        raise_with(code, self._memory.allocator)

    def handle(self) -> ctypes.c_void_p:
        """The hackc_program of client/hackc.h, for other libraries."""
        if not self._handle:
            raise errors.FailedPrecondition(errors.FAILED_PRECONDITION, "this runtime is closed")
        return self._handle

    def destroy_graph(self, graph: int) -> None:
        if graph in self._graphs:
            self._graphs.discard(graph)
            lib.load().hackc_graph_destroy(graph)

    def close(self) -> None:
        """Waits for the GPU and frees everything, its graphs too, but tensors of the caller's and outputs and states
        that the caller still has: their memory is freed with the last of them, and with DLPack's views of it."""
        if not self._handle:
            return
        handle, self._handle = self._handle, ctypes.c_void_p()
        try:
            self._memory.wait()
        finally:
            for graph in list(self._graphs):
                self.destroy_graph(graph)
            for held in (self._kept, self._workspaces, self._defaults):
                held.clear()
            if isinstance(self._memory, PlainMemory):
                self._memory.program = ctypes.c_void_p()
            lib.load().hackc_program_close(handle)

    def __enter__(self) -> Runtime:
        return self

    def __exit__(self, *unused: object) -> None:
        self.close()

    def __del__(self) -> None:
        if getattr(self, "_handle", None):
            self.close()

    def _list(self, structure: type[Any], function: Any, *arguments: Any) -> list[Any]:
        items: list[Any] = []
        while True:
            item = structure()
            code = function(*arguments, len(items), ctypes.byref(item))
            if code == errors.OUT_OF_RANGE:
                return items
            lib.check(code)
            items.append(item)

    def weights(self) -> dict[str, tuple[str, tuple[int, ...]]]:
        """{name: (dtype name, shape)} of every weight that the program wants."""
        infos = self._list(lib.TensorInfo, lib.load().hackc_weight_info, self.handle())
        return {i.name.decode(): (lib.DTYPE_NAMES[i.dtype], i.extents()) for i in infos}

    def symbols(self) -> dict[str, tuple[int, int]]:
        """{name: (min, max)} of the program's symbolic dimensions."""
        if not self._symbols:
            infos = self._list(lib.SymbolRange, lib.load().hackc_symbol_info, self.handle())
            self._symbols = {i.name.decode(): (i.min, i.max) for i in infos}
        return dict(self._symbols)

    def tensors(self, entry: str, symbols: Symbols) -> dict[str, tuple[int, str, tuple[int, ...]]]:
        """{name: (kind, dtype name, shape)} of the inputs, outputs and states at these symbol values."""
        infos = self._list(lib.TensorInfo, lib.load().hackc_tensor_info_at, self.handle(), entry.encode(),
                           *lib.symbols(dict(symbols)))
        return {i.name.decode(): (i.kind, lib.DTYPE_NAMES[i.dtype], i.extents()) for i in infos}

    def lowest(self) -> dict[str, int]:
        """Every symbol at its least value."""
        return {symbol: low for symbol, (low, _) in self.symbols().items()}

    def dtype_of(self, entry: str, name: str) -> str:
        """Name of the dtype that an input, output or state must have."""
        found = self.tensors(entry, self.lowest())
        if name not in found:
            raise errors.NotFound(errors.NOT_FOUND, f"{entry} has no tensor {name}; it has {', '.join(found)}")
        return found[name][1]

    def bind(self, weights: Weights, *, strict: bool = True, convert: bool = False,
             progress: Callable[[int, int], None] | None = None) -> Runtime:
        """Binds weights by their Hugging Face names, runs the program's preparation and waits for it.

        `weights` maps names to tensors, or is a Hugging Face folder whose safetensors are mapped, checked and
        converted to the program's dtype one by one. Tensors of the program's dtype on its GPU are used where they
        lie and kept alive; those in host memory are copied. Another dtype is an error, unless `convert` has
        PyTorch convert it. With `strict`, a tensor that the program has no use for is an error unless it is
        another name of a bound one (tied embeddings). `progress(bytes done, of all)` is told after each tensor;
        what it raises ends the loading.
        """
        self.handle()
        if not isinstance(weights, (str, os.PathLike, Mapping)):
            raise _invalid(f"weights: expected a mapping of names or a folder, got {type(weights).__name__}")
        # PyTorch's pool hands out memory that earlier work of a stream may still use; uploads are on none.
        self._memory.wait()
        if isinstance(weights, (str, os.PathLike)):
            self._bind_folder(os.fsencode(weights), strict, progress)
        else:
            self._bind_tensors(weights, strict, convert, progress)
        # The weights may still be on their way on the current stream; prepare runs behind them and waits.
        self._check(lib.load().hackc_prepare(self.handle(), self._memory.stream()))
        return self

    def _bind_folder(self, folder: bytes, strict: bool, progress: Callable[[int, int], None] | None) -> None:
        raised: list[BaseException] = []

        def tell(_: Any, done: int, total: int) -> int:
            try:
                if progress is not None:
                    progress(done, total)
                return 0
            except BaseException as error:  # nothing may be raised through C
                raised.append(error)
                return 1

        code = lib.load().hackc_bind_folder(self.handle(), folder, int(strict), lib.Progress(tell), None)
        if raised:
            raise raised[0]
        self._check(code)

    def _bind_tensors(self, given: Mapping[str, Any], strict: bool, convert: bool,
                      progress: Callable[[int, int], None] | None) -> None:
        wanted = self.weights()
        missing = [name for name in wanted if name not in given]
        if missing:
            raise errors.NotFound(errors.NOT_FOUND, f"{len(missing)} weights are missing: {_some(missing)}")
        stream = self._memory.stream()
        views = {name: dlpack.view(_detached(tensor), stream) for name, tensor in given.items()}
        used = {views[name].pointer for name in wanted}
        extra = [name for name, view in views.items() if name not in wanted and view.pointer not in used]
        if strict and extra:
            raise _invalid(f"{len(extra)} weights are not of this program: {_some(extra)}")
        total, done = sum(lib.bytes_of(*of) for of in wanted.values()), 0
        for name, (dtype, shape) in wanted.items():
            view = views[name]
            if view.dtype != dtype and convert and hasattr(given[name], "to"):
                converted = given[name].detach().to(getattr(self._memory.torch, dtype)).contiguous()
                view = dlpack.view(converted, stream)
            if not view.contiguous:
                raise _invalid(f"weight {name}: not contiguous")
            if view.on_device and view.device != self._name:
                raise _invalid(f"weight {name}: is on {view.device}, the program on {self._name}")
            extents = (ctypes.c_int64 * max(1, len(view.shape)))(*view.shape)
            try:
                self._check(lib.load().hackc_bind_weight(
                    self.handle(), name.encode(), view.pointer, lib.DTYPES.get(view.dtype, 0), len(view.shape),
                    extents, int(view.on_device)))
            except errors.InvalidArgument as error:
                hint = ""
                if view.dtype != dtype and view.shape == shape:
                    hint = f"; convert=True converts PyTorch's tensors, not a {type(given[name]).__name__}" if convert \
                        else "; bind(..., convert=True) converts it"
                raise _invalid(f"{error}{hint}") from None
            if view.on_device:
                self._kept.append(view.keep)
            done += lib.bytes_of(dtype, shape)
            if progress is not None:
                progress(done, total)

    def workspace_bytes(self, entry: str, symbols: Symbols) -> int:
        size = ctypes.c_uint64()
        lib.check(lib.load().hackc_workspace_bytes(self.handle(), entry.encode(), *lib.symbols(dict(symbols)),
                                                   ctypes.byref(size)))
        return size.value

    def _workspace(self, size: int, stream: int, own: bool) -> Any:
        kept = None if own else self._workspaces.get(stream)
        if kept is None or kept.nbytes < size:
            kept = self._memory.empty((max(size, 256),), "uint8", stream)
            if not own:
                self._workspaces[stream] = kept
        return kept

    def _call(self, entry: str, symbols: Symbols, inputs: Mapping[str, Any], outputs: Mapping[str, Any] | None,
              poison: bool, stream: int, own_workspace: bool) -> tuple[tuple[Any, ...], dict[str, Any], Any]:
        """Arguments of hackc_run, the outputs, and what has to stay alive for the call."""
        wanted = self.tensors(entry, symbols)
        given = dict(inputs) | dict(outputs or {})
        unknown = set(given) - set(wanted)
        if unknown:
            raise _invalid(f"{entry} has no tensor {', '.join(sorted(unknown))}")
        views: dict[str, dlpack.View] = {}
        results: dict[str, Any] = {}
        defaults = {"past_lengths": symbols.get("past", 0), "last_positions": symbols.get("seq", 1) - 1}
        lengths = None
        for name, (kind, dtype, shape) in wanted.items():
            tensor = given.get(name)
            if tensor is None and name in defaults:
                tensor = self._default(name, shape, stream, own_workspace)
                self._fill(tensor, defaults[name], stream)
                lengths = tensor if name == "past_lengths" else lengths
            if tensor is None and kind == lib.KIND_OUTPUT:
                tensor = self._memory.empty(shape, dtype, stream)
                if poison:
                    self._memory.poison(tensor)
            if tensor is None:
                raise _invalid(f"{name}: not given; {entry} wants {dtype} {list(shape)}")
            view = dlpack.view(tensor, stream)
            if (view.dtype, view.shape) != (dtype, shape):
                raise _invalid(f"{name}: expected {dtype} {list(shape)}, got {view.dtype} {list(view.shape)}")
            if view.device != self._name or not view.contiguous:
                raise _invalid(f"{name}: must be contiguous on {self._name}, is on {view.device}; hackc copies no"
                               " tensor of a call")
            views[name] = view
            if kind == lib.KIND_OUTPUT:
                results[name] = tensor
        workspace = self._workspace(self.workspace_bytes(entry, symbols), stream, own_workspace)
        if poison:
            self._memory.poison(workspace)
        records = (lib.Tensor * len(views))(
            *[lib.Tensor(n.encode(), v.pointer, lib.bytes_of(v.dtype, v.shape)) for n, v in views.items()])
        arguments = (self.handle(), entry.encode(), *lib.symbols(dict(symbols)), records, len(views),
                     workspace.data_ptr(), workspace.nbytes)
        return arguments, results, (views, workspace, lengths)

    def _default(self, name: str, shape: tuple[int, ...], stream: int, own: bool) -> Any:
        """int32 for an input that is not given: the same memory in each call on a stream, or its own."""
        key = name, shape, stream
        if own:
            return self._memory.empty(shape, "int32", stream)
        if key not in self._defaults:
            self._defaults[key] = self._memory.empty(shape, "int32", stream)
        return self._defaults[key]

    def _fill(self, tensor: Any, value: int, stream: int) -> None:
        view = dlpack.view(tensor, stream)
        count = lib.bytes_of("int32", view.shape) // 4
        lib.check(lib.load().hackc_memory_fill(self.handle(), view.pointer, value, count, stream))

    def _check_names(self, entry: str, given: Mapping[str, Any], symbols: Symbols) -> None:
        """That symbols and tensors are the program's, and that no input or state is missing."""
        known = self.symbols()
        strange = ", ".join(sorted(set(symbols) - set(known)))
        if strange:
            raise _invalid(f"symbol {strange} is unknown; the program has {', '.join(known)}")
        wanted = self.tensors(entry, self.lowest() | dict(symbols))
        strange = ", ".join(sorted(set(given) - set(wanted)))
        if strange:
            raise _invalid(f"{entry} has no tensor {strange}")
        for name, (kind, dtype, shape) in wanted.items():
            if kind != lib.KIND_OUTPUT and given.get(name) is None and name not in _DEFAULTS:
                raise _invalid(f"{name}: not given; {entry} wants {dtype} of rank {len(shape)}")

    def _symbols_of(self, entry: str, inputs: Mapping[str, Any], outputs: Mapping[str, Any] | None,
                    given: Symbols | None) -> dict[str, int]:
        """Values of the symbols: as given, else read off input_ids [batch, seq], else the only allowed."""
        values = dict(given or {})
        shape = getattr(inputs.get("input_ids"), "shape", None)
        for name, (low, high) in self.symbols().items():
            if name in values:
                continue
            if shape is not None and name in ("batch", "seq"):
                values[name] = shape[0] if name == "batch" else shape[-1]
            elif name == "pages" and any(n.endswith("_cache") for n in inputs):
                values[name] = next(t.shape[0] for n, t in inputs.items() if n.endswith("_cache"))
            elif low == high:
                values[name] = low
            else:
                self._check_names(entry, dict(inputs) | dict(outputs or {}), dict(given or {}))  # the cause, if it is a name
                raise _invalid(f"symbol {name} needs a value of {low}..{high}")
        return values

    def new_states(self, batch: int = 1, poison: bool = False, pages: int | None = None) -> dict[str, Any]:
        """{name: tensor} of the key/value cache for `batch` sequences, [batch, capacity, heads, head_dim], or of
        `pages` pages, [pages, page_size, heads, head_dim], for each layer; for the `states` of run and capture. It
        needs no initial values; `poison` fills it with NaN."""
        states: dict[str, Any] = {}
        symbols = self.lowest() | {"batch": batch} | ({} if pages is None else {"pages": pages})
        for name, (kind, dtype, shape) in self.tensors("prefill", symbols).items():
            if kind == lib.KIND_STATE:
                states[name] = self._memory.empty(shape, dtype, self._memory.stream())
                if poison:
                    self._memory.poison(states[name])
        return states

    def _stream(self, stream: Any) -> int:
        if stream is None:
            return self._memory.stream()
        for attribute in ("cuda_stream", "ptr", "handle"):  # of torch, of CuPy, of Numba
            stream = getattr(stream, attribute, stream)
        return int(getattr(stream, "value", stream) or 0)

    def run(self, entry: str = "prefill", symbols: Symbols | None = None, outputs: Mapping[str, Any] | None = None,
            states: Mapping[str, Any] | None = None, poison: bool = False, stream: Any = None,
            **inputs: Any) -> dict[str, Any]:
        """Launches an entry point on the current stream and returns its outputs by name.

            input_ids  int32 [batch, seq]   ->   logits  [batch, seq, vocab], of the program's dtype or float32

        dtype_of() and tensors() say what a program wants exactly. Tensors are torch's or have DLPack, lie dense on
        the program's GPU, and are used in place. Outputs that are not given are allocated: torch tensors, without
        PyTorch hackc.Array. `states` is the key/value cache from new_states, of which past_lengths, int32 [batch], says
        how many tokens of each sequence are filled, and symbols={"past": n} how many of the longest. All are so long if
        past_lengths is not given; last_positions are then the last of the call. `stream` is a torch or CuPy stream or a
        handle, else the current one. `poison` fills
        outputs and workspace with NaN first.
        """
        inputs = inputs | dict(states or {})
        on = self._stream(stream)
        values = self._symbols_of(entry, inputs, outputs, symbols)
        arguments, results, _ = self._call(entry, values, inputs, outputs, poison, on, False)
        lib.check(lib.load().hackc_run(*arguments, on))
        return results

    def __call__(self, input_ids: Any, *, past: int = 0, states: Mapping[str, Any] | None = None,
                 outputs: Mapping[str, Any] | None = None, stream: Any = None, **inputs: Any) -> dict[str, Any]:
        """run() with the entry point that fits: "decode" for one token after others, if the program has it."""
        bounds = self.symbols()
        entry = "decode" if "past" in bounds and past > 0 and input_ids.shape[-1] == 1 else "prefill"
        symbols = {"past": past} if "past" in bounds else {}
        return self.run(entry, symbols, outputs, states, stream=stream, input_ids=input_ids, **inputs)

    def capture(self, entry: str = "prefill", symbols: Symbols | None = None,
                outputs: Mapping[str, Any] | None = None, states: Mapping[str, Any] | None = None,
                kernels: Sequence[str] = (), **inputs: Any) -> Graph:
        """The same as a CUDA graph over these tensors and a workspace of its own: `graph.launch()` runs it.

        With `kernels`, names of the program's kernels, the graph holds only their launches.
        """
        inputs = inputs | dict(states or {})
        values = self._symbols_of(entry, inputs, outputs, symbols)
        arguments, results, kept = self._call(entry, values, inputs, outputs, False, self._memory.stream(), True)
        handle = ctypes.c_void_p()
        names = (ctypes.c_char_p * len(kernels))(*[name.encode() for name in kernels])
        lib.check(lib.load().hackc_graph_capture_kernels(*arguments, names, len(kernels), ctypes.byref(handle)))
        self._graphs.add(handle.value or 0)
        return Graph(self, handle.value or 0, results, values, kept, kept[2])

    def generate(self, ids: Any, max_new_tokens: int = 64, *, lengths: Any = None, temperature: float = 0.0,
                 top_k: int = 0, seed: int | None = None, eos_token_id: int | None = None, graph: bool = True,
                 on_token: Callable[[Any], None] | None = None) -> Any:
        """Continues `ids` ([batch, n], integers of any kind): int64 [batch, n + new] on the GPU.

        Sequences may differ in length: nested lists as they are, or a tensor padded at its end with `lengths`
        [batch]. Each is continued right behind its own end, and padded with `eos_token_id`, else 0, at the end.
        `temperature` 0 takes the likeliest token; above, one is drawn with softmax(logits / temperature), among
        the `top_k` likeliest if given, from `seed`. With `eos_token_id`, sequences that have ended are filled with
        it, and generation ends when all have, which the GPU is asked every 8 tokens; without, nothing waits for
        the GPU. `on_token` gets each step's tokens, int64 [batch, 1], on the GPU. `graph` runs decode as a CUDA graph.
        """
        from hackc.generation import generate

        return generate(self, self._memory, ids, lengths, max_new_tokens, temperature, top_k, seed, eos_token_id, graph,
                        on_token)


def _detached(tensor: Any) -> Any:
    return tensor.detach() if hasattr(tensor, "detach") else tensor


class Graph:
    """A captured run; `outputs` are filled by each launch. Ends with its runtime."""

    def __init__(self, runtime: Runtime, handle: int, outputs: dict[str, Any], symbols: dict[str, int],
                 kept: Any, lengths: Any = None) -> None:
        self.runtime, self.outputs = runtime, outputs
        self._handle, self._symbols, self._kept, self._lengths = handle, symbols, kept, lengths

    def launch(self, symbols: Symbols | None = None, stream: Any = None) -> dict[str, Any]:
        """Runs it on the current stream. `symbols` are new values, such as {"past": 12}; shapes must stay. A
        past_lengths that capture was given is the caller's to change, in place."""
        self.runtime.handle()
        on = self.runtime._stream(stream)
        if symbols:
            values = self._symbols | dict(symbols)
            lib.check(lib.load().hackc_graph_set_symbols(self._handle, *lib.symbols(values)))
            self._symbols = values
            if self._lengths is not None:
                self.runtime._fill(self._lengths, values["past"], on)
        lib.check(lib.load().hackc_graph_launch(self._handle, on))
        return self.outputs

    def launches(self) -> list[tuple[str, list[Argument]]]:
        """[(kernel name, [Argument])] of every launch of the entry point, also of those left out."""
        self.runtime.handle()
        found: list[tuple[str, list[Argument]]] = []
        while True:
            arguments = self.runtime._list(lib.ArgumentInfo, lib.load().hackc_graph_argument, self._handle, len(found))
            if not arguments:
                return found
            found.append((arguments[0].kernel.decode(), [Argument(self.runtime, a) for a in arguments]))

    def __del__(self) -> None:
        self.runtime.destroy_graph(self._handle)


class Argument:
    """A tensor that a launch reads or writes. Memory of the program: valid until the next run."""

    def __init__(self, runtime: Runtime, info: Any) -> None:
        self.name, self.written = info.tensor.name.decode(), bool(info.written)
        self.dtype, self.shape = lib.DTYPE_NAMES[info.tensor.dtype], info.tensor.extents()
        self._runtime, self.address, self.bytes = runtime, info.address, info.tensor.bytes

    def tensor(self) -> Any:
        """The bytes as a torch tensor, without a copy."""
        self._runtime.handle()
        self.__cuda_array_interface__ = {"shape": (self.bytes,), "typestr": "|u1", "version": 3,
                                         "data": (self.address, False)}
        torch = self._runtime._memory.torch
        flat = torch.as_tensor(self, device=self._runtime.device)
        return flat.view(getattr(torch, self.dtype)).reshape(self.shape)
