"""What runs in a worker process: batches of files in, prepared documents out, within limits of memory and time.

A frame is its length in eight bytes and a pickle. The first frame is the order, which is answered by `READY`; every
other one is a batch and answered by what became of its files. The end of the input ends the process.
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

__all__ = [
    "EXIT_CRASHED",
    "EXIT_OUT_OF_MEMORY",
    "EXIT_TOO_SLOW",
    "READY",
    "Batch",
    "Order",
    "main",
    "read_frame",
    "write_frame",
]

READY = "ready"
EXIT_TOO_SLOW = 1
"""The status that faulthandler ends a process with."""

EXIT_OUT_OF_MEMORY, EXIT_CRASHED = 3, 4

_LENGTH = struct.Struct(">Q")


class Batch(NamedTuple):
    """Files to prepare; `carefully` when a worker has died over one of them: without syntax trees, for one."""

    tasks: list[Task]
    carefully: bool = False


class Order(NamedTuple):
    """What a worker is to do: the job, the seconds that a batch may compute, the bytes it may add to what it has."""

    job: Job
    seconds: float
    memory: int


def main() -> None:
    """Serve the parent at the other end of standard input and output."""
    try:
        # An interrupt at the terminal reaches the whole group; the parent decides what becomes of it.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        # Whatever a library prints must not end up between two frames.
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
        # Whatever it is, it must not look like the end that the watchdog makes.
        os._exit(EXIT_CRASHED)


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
    order: Order = pickle.loads(read_frame(inbox) or b"")
    if order.job.embed:
        _load_vectors()
    write_frame(outbox, READY)
    while (frame := read_frame(inbox)) is not None:
        batch: Batch = pickle.loads(frame)
        job = order.job
        if batch.carefully:
            job = job._replace(plan=job.plan._replace(code="patterns"))
        _limit_memory(order.memory)
        with _limited_time(order.seconds, nowhere):
            prepared = [prepare(job, task) for task in batch.tasks]
        write_frame(outbox, prepared)


@contextmanager
def _limited_time(seconds: float, nowhere: int) -> Iterator[None]:
    """End the process when it has computed for so long, in whatever code: a busy machine takes no time from a document.

    Where the system does not count that, it is the time that passes.
    """
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
    """Load numpy and the token vectors now: the time and memory they take are not those of a document."""
    # There is a worker for every core already.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    from findling.models.local.instant import instant_codes

    instant_codes(["warm up"])


def _limit_memory(extra: int) -> None:
    """Let the process take so much more than it has now: what it keeps of earlier files counts against no later one."""
    # Only Linux says how much address space is in use, and only there is the limit on it reliable.
    with suppress(ImportError, OSError, ValueError):
        import resource

        used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
        _, most = resource.getrlimit(resource.RLIMIT_AS)
        limit = used + extra if most == resource.RLIM_INFINITY else min(used + extra, most)
        resource.setrlimit(resource.RLIMIT_AS, (limit, most))
