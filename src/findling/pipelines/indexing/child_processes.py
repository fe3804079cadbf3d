"""Child processes that run code of findling: their command, frames of pickles, and a limit of computing."""

from __future__ import annotations

import faulthandler
import os
import pickle
import signal
import struct
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import findling

__all__ = [
    "EXIT_OUT_OF_MEMORY",
    "EXIT_TOO_SLOW",
    "child_command",
    "framed",
    "limited_time",
    "read_frame",
    "write_frame",
]

EXIT_TOO_SLOW, EXIT_OUT_OF_MEMORY = 1, 3
"""Exit codes; faulthandler ends a process with the first."""

_LENGTH = struct.Struct(">Q")


def child_command(module: str, *arguments: int) -> list[str]:
    """The command of a process that runs `main` of a module, with what this process can import."""
    # Not the current folder: it is searched, not trusted, and a `re.py` in it must not be run.
    path = [entry for entry in sys.path if isinstance(entry, str) and entry]
    path.append(str(Path(findling.__file__).parents[1]))
    code = f"import sys; sys.path[:] = {path!r}; from {module} import main; main(*{arguments!r})"
    return [sys.executable, "-P", "-c", code]


def read_frame(stream: IO[bytes]) -> bytes | None:
    """The pickle in the next frame; `None` at the end of the stream, be it in the middle of a frame."""
    head = stream.read(_LENGTH.size)
    if len(head) < _LENGTH.size:
        return None
    (length,) = _LENGTH.unpack(head)
    body = stream.read(length)
    return body if len(body) == length else None


def framed(value: Any) -> bytes:
    """A value as one frame."""
    body = pickle.dumps(value, protocol=5)
    return _LENGTH.pack(len(body)) + body


def write_frame(stream: IO[bytes], value: Any) -> None:
    """Write a value as one frame, which may be large and is not copied."""
    body = pickle.dumps(value, protocol=5)
    stream.write(_LENGTH.pack(len(body)))
    stream.write(body)
    stream.flush()


@contextmanager
def limited_time(seconds: float) -> Iterator[None]:
    """End the process after so much computing, or where the system does not count that, after so much time."""
    if hasattr(signal, "ITIMER_PROF"):
        # Without a handler: the system itself ends even a parser that never returns.
        signal.signal(signal.SIGPROF, signal.SIG_DFL)
        signal.setitimer(signal.ITIMER_PROF, seconds)
        try:
            yield
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0.0)
    else:
        # A thread of C code, without the interpreter.
        with Path(os.devnull).open("w") as nowhere:
            faulthandler.dump_traceback_later(seconds, exit=True, file=nowhere)
            try:
                yield
            finally:
                faulthandler.cancel_dump_traceback_later()
