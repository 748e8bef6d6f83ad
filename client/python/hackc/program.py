# SPDX-License-Identifier: MIT
"""A compiled program on PyTorch tensors."""

import ctypes
import os

from hackc import library as lib


class HackcError(RuntimeError):
    """A refusal or failure of the runtime; `code` is the google.rpc.Code."""

    def __init__(self, code, message):
        super().__init__(message)
        self.code = code


def _check(code):
    if code != lib.OK:
        raise HackcError(code, lib.load().hackc_last_error().decode(errors="replace"))


def _symbols(values):
    return (lib.Symbol * len(values))(*[lib.Symbol(n.encode(), v) for n, v in values.items()]), len(values)


def _dtype_name(tensor):
    return str(tensor.dtype).removeprefix("torch.")


def _torch():
    # Imported late and before libhackc.so is opened: PyTorch then decides which C++ runtime is loaded.
    import torch

    return torch


class Program:
    """Loads a folder written by `hackc-client submit --out DIR` onto a CUDA device."""

    def __init__(self, directory, device=0):
        self.torch = _torch()
        self.device = self.torch.device("cuda", device)
        self._handle = ctypes.c_void_p()
        self._kept = []  # bound GPU tensors, which the program reads where they lie
        self._workspace = None
        _check(lib.load().hackc_program_open(os.fsencode(directory), device, ctypes.byref(self._handle)))

    def close(self):
        if self._handle:
            lib.load().hackc_program_close(self._handle)
            self._handle = ctypes.c_void_p()
            self._kept.clear()

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        self.close()

    def __del__(self):
        if getattr(self, "_handle", None):
            self.close()

    def _list(self, structure, function, *arguments):
        items = []
        while True:
            item = structure()
            code = function(*arguments, len(items), ctypes.byref(item))
            if code == lib.OUT_OF_RANGE:
                return items
            _check(code)
            items.append(item)

    def weights(self):
        """{name: (dtype name, shape)} of every weight that the program wants."""
        infos = self._list(lib.TensorInfo, lib.load().hackc_weight_info, self._handle)
        return {i.name.decode(): (lib.DTYPE_NAMES[i.dtype], i.extents()) for i in infos}

    def symbols(self):
        """{name: (min, max)} of the program's symbolic dimensions."""
        infos = self._list(lib.SymbolRange, lib.load().hackc_symbol_info, self._handle)
        return {i.name.decode(): (i.min, i.max) for i in infos}

    def tensors(self, entry, symbols):
        """{name: (kind, dtype name, shape)} of the inputs, outputs and states at these symbol values."""
        array, count = _symbols(symbols)
        infos = self._list(lib.TensorInfo, lib.load().hackc_tensor_info_at, self._handle, entry.encode(),
                           array, count)
        return {i.name.decode(): (i.kind, lib.DTYPE_NAMES[i.dtype], i.extents()) for i in infos}

    def dtype_of(self, entry, name):
        """Name of the dtype that an input, output or state must have."""
        lowest = {symbol: low for symbol, (low, _) in self.symbols().items()}
        return self.tensors(entry, lowest)[name][1]

    def bind(self, state_dict, strict=True):
        """Binds weights by their Hugging Face names and runs the program's preparation.

        `state_dict` maps names to tensors, or is a Hugging Face folder whose safetensors are loaded and converted
        to the program's dtype.
        GPU tensors are used in place and kept alive; CPU tensors are copied to the GPU. With `strict`, a
        tensor that the program has no use for is an error unless it is another name of a bound one (tied
        embeddings).
        """
        if isinstance(state_dict, (str, os.PathLike)):
            _check(lib.load().hackc_bind_folder(self._handle, os.fsencode(state_dict), int(strict)))
            _check(lib.load().hackc_prepare(self._handle, self._stream()))
            return self
        wanted = self.weights()
        missing = [name for name in wanted if name not in state_dict]
        if missing:
            raise HackcError(5, f"{len(missing)} weights are missing: {', '.join(missing[:5])}")
        used = {state_dict[name].data_ptr() for name in wanted}
        extra = [n for n, t in state_dict.items() if n not in wanted and t.data_ptr() not in used]
        if strict and extra:
            raise HackcError(3, f"{len(extra)} weights are not of this program: {', '.join(extra[:5])}")
        for name in wanted:
            tensor = state_dict[name].detach()
            if not tensor.is_contiguous():
                raise HackcError(3, f"weight {name}: not contiguous")
            if tensor.is_cuda:
                self._kept.append(tensor)
            shape = (ctypes.c_int64 * max(1, tensor.dim()))(*tensor.shape)
            dtype = lib.DTYPES.get(_dtype_name(tensor), 0)
            _check(lib.load().hackc_bind_weight(self._handle, name.encode(), tensor.data_ptr(), dtype,
                                                tensor.dim(), shape, int(tensor.is_cuda)))
        # The weights may still be on their way on the current stream; prepare runs behind them.
        _check(lib.load().hackc_prepare(self._handle, self._stream()))
        return self

    def _stream(self):
        return self.torch.cuda.current_stream(self.device).cuda_stream

    def workspace_bytes(self, entry, symbols):
        array, count = _symbols(symbols)
        size = ctypes.c_uint64()
        _check(lib.load().hackc_workspace_bytes(self._handle, entry.encode(), array, count, ctypes.byref(size)))
        return size.value

    def _call(self, entry, symbols, inputs, outputs, poison):
        """Arguments of hackc_run, the outputs, and what has to stay alive for the call."""
        torch = self.torch
        wanted = self.tensors(entry, symbols)
        tensors = {}
        for name, (kind, dtype, shape) in wanted.items():
            given = inputs.get(name, (outputs or {}).get(name))
            if given is None and kind == lib.KIND_OUTPUT:
                given = torch.empty(shape, dtype=getattr(torch, dtype), device=self.device)
                if poison:
                    given.view(torch.uint8).fill_(0xFF)
            if given is None:
                raise HackcError(3, f"{name}: not given; {entry} wants {dtype} {list(shape)}")
            if (_dtype_name(given), tuple(given.shape)) != (dtype, shape):
                raise HackcError(3, f"{name}: expected {dtype} {list(shape)}, got {_dtype_name(given)} "
                                    f"{list(given.shape)}")
            if given.device != self.device or not given.is_contiguous():
                raise HackcError(3, f"{name}: must be contiguous on {self.device}, is on {given.device}")
            tensors[name] = given
        unknown = (set(inputs) | set(outputs or {})) - set(wanted)
        if unknown:
            raise HackcError(3, f"{entry} has no tensor {', '.join(sorted(unknown))}")
        size = self.workspace_bytes(entry, symbols)
        if self._workspace is None or self._workspace.numel() < size:
            self._workspace = torch.empty(max(size, 256), dtype=torch.uint8, device=self.device)
        if poison:
            self._workspace.fill_(0xFF)
        array, count = _symbols(symbols)
        records = (lib.Tensor * len(tensors))(
            *[lib.Tensor(n.encode(), t.data_ptr(), t.nbytes) for n, t in tensors.items()])
        arguments = (self._handle, entry.encode(), array, count, records, len(tensors),
                     self._workspace.data_ptr(), self._workspace.numel())
        results = {n: t for n, t in tensors.items() if wanted[n][0] == lib.KIND_OUTPUT}
        return arguments, results, tensors

    def _symbols_of(self, inputs, given):
        """Values of the symbols: as given, else read off input_ids [batch, seq], else the only allowed."""
        values = dict(given or {})
        ids = inputs.get("input_ids")
        for name, (low, high) in self.symbols().items():
            if name in values:
                continue
            if ids is not None and name in ("batch", "seq"):
                values[name] = ids.shape[0] if name == "batch" else ids.shape[-1]
            elif low == high:
                values[name] = low
            else:
                raise HackcError(3, f"symbol {name} needs a value of {low}..{high}")
        return values

    def new_states(self, batch=1, poison=False):
        """{name: tensor} of the key/value cache for `batch` sequences, [batch, capacity, heads, head_dim] for
        each layer; for the `states` of run and capture. It needs no initial values; `poison` fills it with NaN."""
        lowest = {symbol: low for symbol, (low, _) in self.symbols().items()}
        states = {}
        for name, (kind, dtype, shape) in self.tensors("prefill", lowest | {"batch": batch}).items():
            if kind == lib.KIND_STATE:
                states[name] = self.torch.empty(shape, dtype=getattr(self.torch, dtype), device=self.device)
                if poison:
                    states[name].view(self.torch.uint8).fill_(0xFF)
        return states

    def run(self, entry="prefill", symbols=None, outputs=None, states=None, poison=False, **inputs):
        """Launches an entry point on the current stream and returns its outputs by name.

        Outputs that are not given are allocated. `states` is the key/value cache from new_states, of which
        symbols={"past": n} says how many tokens are filled. `poison` fills outputs and workspace with NaN first.
        """
        inputs = inputs | (states or {})
        arguments, results, _ = self._call(entry, self._symbols_of(inputs, symbols), inputs, outputs, poison)
        _check(lib.load().hackc_run(*arguments, self._stream()))
        return results

    def capture(self, entry="prefill", symbols=None, outputs=None, states=None, kernels=(), **inputs):
        """The same as a CUDA graph over these tensors: `graph.launch()` runs it again.

        With `kernels`, names of the program's kernels, the graph holds only their launches.
        """
        inputs = inputs | (states or {})
        values = self._symbols_of(inputs, symbols)
        arguments, results, tensors = self._call(entry, values, inputs, outputs, False)
        handle = ctypes.c_void_p()
        names = (ctypes.c_char_p * len(kernels))(*[name.encode() for name in kernels])
        _check(lib.load().hackc_graph_capture_kernels(*arguments, names, len(kernels), ctypes.byref(handle)))
        return Graph(self, handle, results, values, (tensors, self._workspace))


class Graph:
    """A captured run; `outputs` are filled by each launch."""

    def __init__(self, program, handle, outputs, symbols, kept):
        self.program, self._handle, self.outputs, self._kept = program, handle, outputs, kept
        self._symbols = symbols

    def launch(self, symbols=None):
        """Runs it on the current stream. `symbols` are new values, such as {"past": 12}; shapes must stay."""
        if symbols:
            self._symbols = self._symbols | symbols
            _check(lib.load().hackc_graph_set_symbols(self._handle, *_symbols(self._symbols)))
        _check(lib.load().hackc_graph_launch(self._handle, self.program._stream()))
        return self.outputs

    def launches(self):
        """[(kernel name, [Argument])] of every launch of the entry point, also of those left out."""
        found = []
        while True:
            arguments = self.program._list(lib.ArgumentInfo, lib.load().hackc_graph_argument, self._handle, len(found))
            if not arguments:
                return found
            found.append((arguments[0].kernel.decode(), [Argument(self.program, a) for a in arguments]))

    def __del__(self):
        if getattr(self, "_handle", None) and self.program._handle:
            lib.load().hackc_graph_destroy(self._handle)


class Argument:
    """A tensor that a launch reads or writes. Memory of the program: valid until the next run."""

    def __init__(self, program, info):
        self.name, self.written = info.tensor.name.decode(), bool(info.written)
        self.dtype, self.shape = lib.DTYPE_NAMES[info.tensor.dtype], info.tensor.extents()
        self._program, self._address, self._bytes = program, info.address, info.tensor.bytes

    def tensor(self):
        """The bytes as a torch tensor, without a copy."""
        self.__cuda_array_interface__ = {"shape": (self._bytes,), "typestr": "|u1", "version": 3,
                                         "data": (self._address, False)}
        torch = self._program.torch
        flat = torch.as_tensor(self, device=self._program.device)
        return flat.view(getattr(torch, self.dtype)).reshape(self.shape)
