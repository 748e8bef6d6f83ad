# SPDX-License-Identifier: MIT
"""A compile server of this process's own, on a socket in a temporary folder."""

from __future__ import annotations

import os
import pathlib
import shutil
import signal
import subprocess
import tempfile
import time
import weakref
from typing import Any

from hackc import errors, library

# Stops the server and removes its folder when this process is gone, however it ended: its end of the pipe closes then.
_KEEPER = """exec 3<&0 </dev/null
folder=$1
shift
"$@" 3<&- & server=$!
(
  read -r _ <&3
  kill "$server" 2>/dev/null
  while kill -0 "$server" 2>/dev/null; do sleep 0.05; done
  rm -rf "$folder"
) &
exec 3<&-
wait "$server"
"""


def _program() -> str:
    given = os.environ.get("HACKC_SERVER_BINARY")
    for path in [pathlib.Path(given)] if given else library.places("bin", "hackc-server"):
        if path.exists():
            return str(path)
    found = None if given else shutil.which("hackc-server")
    if found is None:
        raise errors.FailedPrecondition(
            errors.FAILED_PRECONDITION,
            "hackc-server not found" + (f" at $HACKC_SERVER_BINARY, {given}" if given else "")
            + "; build it (ninja -C build hackc-server), put it on the PATH or set HACKC_SERVER_BINARY")
    return found


class LocalServer:
    """Runs until closed, collected, or this process ends. `address` is what a client connects to."""

    def __init__(self, cache_dir: Any = None, wait: float = 30.0) -> None:
        program = _program()
        cache = [] if cache_dir is None else ["--cache-dir", os.fspath(cache_dir)]
        folder = tempfile.mkdtemp(prefix="hackc-")
        self.address = f"unix:{folder}/socket"
        # A unix socket has no port; the file is there once the server listens.
        ready = pathlib.Path(folder, "port")
        command = [program, "--gpu", "none", "--grace", "1", "--listen", self.address, "--port-file", str(ready), *cache]
        with open(os.path.join(folder, "log"), "wb") as log:
            # A session of its own: Ctrl-C in a terminal is for this process, which may go on.
            self._process = process = subprocess.Popen(
                ["/bin/sh", "-c", _KEEPER, "hackc", folder, *command], stdin=subprocess.PIPE, stdout=log, stderr=log,
                start_new_session=True)
        self.close = weakref.finalize(self, _stop, process, folder)
        deadline = time.monotonic() + wait
        while not ready.exists():
            if process.poll() is not None or time.monotonic() > deadline:
                said = pathlib.Path(folder, "log").read_text(errors="replace").strip()[-2000:]
                how = f"ended with code {process.poll()}" if process.poll() is not None else "does not answer"
                self.close()
                raise errors.Unavailable(errors.UNAVAILABLE, f"{command[0]} {how}: {said}")
            time.sleep(0.01)

    def state(self) -> str:
        """For messages: what has become of it."""
        code = self._process.poll()
        return "does not answer" if code is None else f"has ended with code {code}"


def _stop(process: subprocess.Popen[bytes], folder: str) -> None:
    if process.stdin:
        process.stdin.close()
    try:
        process.wait(timeout=20)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    shutil.rmtree(folder, ignore_errors=True)
