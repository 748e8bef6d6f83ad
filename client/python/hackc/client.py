# SPDX-License-Identifier: MIT
"""The compile server over gRPC."""

from __future__ import annotations

import asyncio
import hashlib
import os
from collections.abc import Callable, Iterator
from typing import Any

from hackc import errors, events, request
from hackc.program import Program

_SERVICE = "/hackc.v1.Compiler/"
# A program with large constants exceeds gRPC's default of 4 MiB; a proxy for the web must not come between.
_OPTIONS = [("grpc.max_receive_message_length", 512 << 20), ("grpc.enable_http_proxy", 0)]


def _verify(digest: str, data: bytes, what: str) -> None:
    got = "sha256:" + hashlib.sha256(data).hexdigest()
    if got != digest:
        raise errors.DataLoss(errors.DATA_LOSS, f"{what}: expected {digest}, got bytes of {got}")


class CompileStream(Iterator[events.Event]):
    """The events of one compile, as they come: Progress, a KernelReady for each kernel, ProgramReady, Report.

        with client.stream(config, dtype="bfloat16") as stream:
            for event in stream:
                print(event)
            program = stream.result()

    Leaving the `with` early cancels the compile, as cancel() does. Iterating raises what went wrong.
    """

    def __init__(self, call: Any, convert: Callable[[Exception], errors.HackcError]) -> None:
        self._call, self._convert = call, convert
        self._cubins: dict[str, bytes] = {}
        self._program: Any = None
        self._report: events.Report | None = None
        self._ended = False

    def __next__(self) -> events.Event:
        if self._ended:
            raise StopIteration
        import grpc

        try:
            message = next(self._call)
        except StopIteration:
            self._ended = True
            if self._program is None or self._report is None:
                what = "report" if self._program is not None else "program"
                raise errors.HackcError(errors.INTERNAL, f"the answer ended without a {what}") from None
            raise
        except grpc.RpcError as error:
            self._ended = True
            raise self._convert(error) from error
        try:
            return self._take(message)
        except errors.HackcError:
            self.cancel()
            self._ended = True
            raise

    def _take(self, message: Any) -> events.Event:
        kind = message.WhichOneof("event")
        if kind == "kernel":
            _verify(message.kernel.kernel.digest, message.kernel.cubin, f"cubin of {message.kernel.kernel.name}")
            self._cubins[message.kernel.kernel.digest] = message.kernel.cubin
        if kind == "program":
            _verify(message.program.digest, message.program.bytes, "program")
            self._program = message.program
        event = events.of_message(message)
        if isinstance(event, events.Report):
            self._report = event
        return event

    def result(self) -> Program:
        """The compiled program; takes the events that are still to come."""
        for _ in self:
            pass
        if self._program is None:
            raise errors.FailedPrecondition(errors.FAILED_PRECONDITION, "this compile has failed or was cancelled")
        return Program.from_bytes(self._program.bytes, self._cubins, self._program.digest, self._report)

    def cancel(self) -> None:
        """Tells the server to stop; the next event is a Cancelled. Nothing happens once the compile is over."""
        self._call.cancel()

    def __enter__(self) -> CompileStream:
        return self

    def __exit__(self, *unused: object) -> None:
        if not self._ended:
            self.cancel()


class Client:
    """Compiles models on a server, or on one of this process's own.

        client = hackc.Client("127.0.0.1:7070")      # or "unix:/run/hackc.sock"; else $HACKC_SERVER, else this
        client = hackc.Client(local=True)            # starts hackc-server and stops it with this process

    `timeout` bounds each call in seconds (None: no bound), `connect_timeout` the wait for a server that does not
    answer; a refused connection fails at once. `cache_dir` is where a local server keeps what it compiled.
    Safe to use from several threads.
    """

    def __init__(self, address: str | None = None, *, local: bool = False, timeout: float | None = 600.0,
                 connect_timeout: float = 5.0, cache_dir: str | os.PathLike[str] | None = None) -> None:
        try:
            import grpc

            from hackc.v1 import compiler_pb2
        except ImportError as error:
            raise errors.FailedPrecondition(
                errors.FAILED_PRECONDITION, f"hackc.Client needs grpcio, protobuf and hackc.v1 ({error}): pip install"
                " grpcio protobuf, and take the package from a build or bundle") from error
        if local and address is not None:
            raise errors.InvalidArgument(errors.INVALID_ARGUMENT, "address: a local client has a server of its own")
        self._server: Any = None
        if local:
            from hackc.local import LocalServer

            self._server = LocalServer(cache_dir)
            address = self._server.address
        elif cache_dir is not None:
            raise errors.InvalidArgument(errors.INVALID_ARGUMENT, "cache_dir: a server's is its own; see local=True")
        self.address: str = address or os.environ.get("HACKC_SERVER") or "127.0.0.1:7070"
        self.timeout = timeout
        self._messages = compiler_pb2
        # This one bounds an attempt to connect too, which would take 20 s.
        patience = ("grpc.min_reconnect_backoff_ms", max(1, int(connect_timeout * 1000)))
        self._channel = grpc.insecure_channel(self.address, options=[*_OPTIONS, patience])
        self._closed = False

    def close(self) -> None:
        self._closed = True
        self._channel.close()
        if self._server is not None:
            self._server.close()

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *unused: object) -> None:
        self.close()

    def compile(self, config: request.Config, *, dtype: Any = None, shapes: request.Shapes | None = None,
                arch: str | None = None, layers: int = 0, name: str = "", page_size: int = 0, logits: str = "all",
                timeout: float | None = None, on_event: Callable[[events.Event], None] | None = None) -> Program:
        """Compiles a model, or takes it from the server's cache.

        `config` is a Hugging Face config: a dict, the path of a config.json or of its folder, or a transformers
        PretrainedConfig. `dtype` ("float32", "bfloat16", "float16" or torch's) is the storage of weights and
        activations, else the config's own. `shapes` bounds the symbolic dimensions, each a size or (least, most):

            batch  sequences in one call                              default 1
            seq    tokens of each in one call                         default (1, 2048)
            past   tokens already in the key/value cache              default 0, which is no cache

        `arch` is the target ("sm_90a"), else this machine's GPU if PyTorch sees one, else the server's default.
        `layers` compiles only the first N. `page_size` positions are a page of a paged cache; `logits` "last" gives
        those of one position of each sequence, [batch, 1, vocab]. `on_event` is called with each event; what it raises
        ends the compile.
        Raises InvalidConfig, CompileError, Unavailable, DeadlineExceeded, ResourceExhausted and others of HackcError.
        """
        with self.stream(config, dtype=dtype, shapes=shapes, arch=arch, layers=layers, name=name,
                         page_size=page_size, logits=logits, timeout=timeout) as stream:
            for event in stream:
                if on_event is not None:
                    on_event(event)
            return stream.result()

    async def compile_async(self, config: request.Config, *,
                            on_event: Callable[[events.Event], None] | None = None, **options: Any) -> Program:
        """compile() for asyncio: cancelling the task cancels the compile. `on_event` is called in the event loop; what
        it raises ends the compile."""
        loop = asyncio.get_running_loop()
        stream = await asyncio.to_thread(self.stream, config, **options)
        raised: list[BaseException] = []

        def tell(event: events.Event) -> None:
            if on_event is None or raised:
                return
            try:
                on_event(event)
            except BaseException as error:  # the loop would log it and go on
                raised.append(error)
                stream.cancel()

        def follow() -> Program:
            with stream:
                for event in stream:
                    loop.call_soon_threadsafe(tell, event)
                return stream.result()

        try:
            program = await asyncio.to_thread(follow)
        except asyncio.CancelledError:
            stream.cancel()
            raise
        except errors.HackcError:
            if not raised:
                raise
        if raised:
            raise raised[0]
        return program

    def stream(self, config: request.Config, *, dtype: Any = None, shapes: request.Shapes | None = None,
               arch: str | None = None, layers: int = 0, name: str = "", page_size: int = 0, logits: str = "all",
               timeout: float | None = None, with_ir: bool = False) -> CompileStream:
        """The same as an iterator of events, whose result() is the program. `with_ir` adds the text of each IR."""
        if arch is not None and not isinstance(arch, str):
            raise request.refuse("arch", f"expected a name such as sm_90a, got {arch!r}")
        message = self._messages.CompileRequest(
            model=request.describe(config, dtype, shapes, layers, name, page_size, logits), with_cubins=True,
            with_ir=with_ir)
        message.target.arch = request.local_arch() if arch is None else arch
        call = self._method("Compile", "CompileRequest", "CompileEvent", stream=True)
        return CompileStream(call(message, timeout=self._seconds(timeout)), self._converted)

    def fetch(self, digest: str, *, timeout: float | None = None) -> Program:
        """A program that the server has already, by its digest ("sha256:...")."""
        from hackc.v1 import program_pb2

        data = self._blobs([digest], timeout)[digest]
        program: Any = program_pb2.Program()
        try:
            program.ParseFromString(data)
        except Exception as error:  # DecodeError, whose place differs between versions of protobuf
            raise errors.DataLoss(errors.DATA_LOSS, f"{digest} is no program: {error}") from error
        return Program.from_bytes(data, self._blobs([k.digest for k in program.kernels], timeout), digest)

    def status(self, *, timeout: float | None = None) -> dict[str, Any]:
        """The server's version, target, GPU, queue and counters."""
        import grpc

        call = self._method("Status", "StatusRequest", "StatusResponse", stream=False)
        try:
            answer = call(self._messages.StatusRequest(), timeout=self._seconds(timeout))
        except grpc.RpcError as error:
            raise self._converted(error) from error
        values = {field.name: getattr(answer, field.name) for field in answer.DESCRIPTOR.fields}
        return {**values, "archs": list(answer.archs)}

    def _blobs(self, digests: list[str], timeout: float | None) -> dict[str, bytes]:
        import grpc

        call = self._method("Fetch", "FetchRequest", "Blob", stream=True)
        found: dict[str, bytes] = {}
        try:
            for blob in call(self._messages.FetchRequest(digests=digests), timeout=self._seconds(timeout)):
                _verify(blob.digest, blob.data, "blob")
                found[blob.digest] = blob.data
        except grpc.RpcError as error:
            raise self._converted(error) from error
        for digest in digests:
            if digest not in found:
                raise errors.HackcError(errors.INTERNAL, f"the answer ended without {digest}")
        return found

    def _seconds(self, timeout: float | None) -> float | None:
        return self.timeout if timeout is None else timeout

    def _method(self, name: str, asks: str, answers: str, *, stream: bool) -> Any:
        if self._closed:
            raise errors.FailedPrecondition(errors.FAILED_PRECONDITION, "this client is closed")
        make = self._channel.unary_stream if stream else self._channel.unary_unary
        return make(_SERVICE + name, request_serializer=getattr(self._messages, asks).SerializeToString,
                    response_deserializer=getattr(self._messages, answers).FromString)

    def _unavailable(self, why: str) -> errors.Unavailable:
        if self._server is not None:
            return errors.Unavailable(
                errors.UNAVAILABLE, f"this client's own server {self._server.state()}: {why}; make another with"
                " hackc.Client(local=True)")
        return errors.Unavailable(
            errors.UNAVAILABLE, f"server at {self.address}: {why}; start one with `hackc-server`, name another, or"
            " compile in a process of your own with hackc.Client(local=True)")

    def _converted(self, error: Any) -> errors.HackcError:
        code, details = error.code().value[0], error.details() or ""
        if code == errors.UNAVAILABLE and not details.startswith("kernel "):
            return self._unavailable(details)
        if code == errors.UNIMPLEMENTED:
            return errors.Unimplemented(code, f"server at {self.address} is no hackc-server of this version: {details}")
        return errors.of_server(code, details)
