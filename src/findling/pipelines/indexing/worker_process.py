"""The code of a worker process: batches of files in, prepared documents out, within limits of memory and time.

A frame is its length in eight bytes and a pickle. The first frame is the job, which `READY` answers; every other one
is a batch, and its answer the outcomes of its files. The end of the input ends the process.
"""

from __future__ import annotations

import faulthandler
import os
import pickle
import signal
import struct
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any, NamedTuple

from findling.pipelines.indexing.prepare import Job, Task, prepare

__all__ = ["EXIT_OUT_OF_MEMORY", "EXIT_TOO_SLOW", "Batch", "main", "read_frame", "write_frame"]

EXIT_TOO_SLOW, EXIT_OUT_OF_MEMORY, _EXIT_CRASHED = 1, 3, 4
"""Exit codes; faulthandler ends a process with the first."""

_READY = "ready"

_LENGTH = struct.Struct(">Q")


class Batch(NamedTuple):
    """Files to prepare; `carefully`, without syntax trees, when a worker has died over one of them."""

    tasks: list[Task]
    carefully: bool = False


def main() -> None:
    """Serve the parent at the other end of standard input and output."""
    try:
        # An interrupt at the terminal reaches the whole group; the parent decides.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        # The output of a library must not end up between two frames.
        inbox, outbox = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
        nowhere = os.open(os.devnull, os.O_RDWR)
        for descriptor in (0, 1):
            os.dup2(nowhere, descriptor)
        _serve(inbox, outbox, nowhere)
    except MemoryError:
        os._exit(EXIT_OUT_OF_MEMORY)
    except BrokenPipeError:  # the parent is gone
        os._exit(0)
    except BaseException:
        # No failure must look like the end that the watchdog makes.
        os._exit(_EXIT_CRASHED)


def read_frame(stream: IO[bytes]) -> bytes | None:
    """The pickle in the next frame; `None` at the end of the stream, be it in the middle of a frame."""
    head = stream.read(_LENGTH.size)
    if len(head) < _LENGTH.size:
        return None
    (length,) = _LENGTH.unpack(head)
    body = stream.read(length)
    return body if len(body) == length else None


def write_frame(stream: IO[bytes], value: Any) -> None:
    """Write a value as one frame."""
    body = pickle.dumps(value, protocol=5)
    stream.write(_LENGTH.pack(len(body)))
    stream.write(body)
    stream.flush()


def _serve(inbox: IO[bytes], outbox: IO[bytes], nowhere: int) -> None:
    job: Job = pickle.loads(read_frame(inbox) or b"")
    options = job.options
    careful = job._replace(options=options._replace(plan=options.plan._replace(code="patterns")))
    if job.embed:
        _load_vectors()
    write_frame(outbox, _READY)
    while (frame := read_frame(inbox)) is not None:
        batch: Batch = pickle.loads(frame)
        _limit_memory(options.max_memory)
        with _limited_time(options.max_seconds, nowhere):
            prepared = [prepare(careful if batch.carefully else job, task) for task in batch.tasks]
        write_frame(outbox, prepared)


@contextmanager
def _limited_time(seconds: float, nowhere: int) -> Iterator[None]:
    """End the process after so much computing, or where the system does not count that, after so much time."""
    if hasattr(signal, "ITIMER_PROF"):
        # Without a handler: the system itself ends even a parser that never returns.
        signal.signal(signal.SIGPROF, signal.SIG_DFL)
        signal.setitimer(signal.ITIMER_PROF, seconds)
        yield
        signal.setitimer(signal.ITIMER_PROF, 0.0)
    else:
        # A thread of C code, without the interpreter.
        faulthandler.dump_traceback_later(seconds, exit=True, file=nowhere)
        yield
        faulthandler.cancel_dump_traceback_later()


def _load_vectors() -> None:
    """Load numpy and the token vectors now: their time and memory are not those of a document."""
    # There is a worker for every core already.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    from findling.models.local.instant import instant_codes

    instant_codes(["warm up"])


def _limit_memory(extra: int) -> None:
    """Let the process allocate so much more than it has now; memory of earlier files does not count."""
    # Only Linux says how much address space is in use, and only there is the limit on it reliable.
    with suppress(ImportError, OSError, ValueError):
        import resource

        used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
        _, most = resource.getrlimit(resource.RLIMIT_AS)
        limit = used + extra if most == resource.RLIM_INFINITY else min(used + extra, most)
        resource.setrlimit(resource.RLIMIT_AS, (limit, most))
