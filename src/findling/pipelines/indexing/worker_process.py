"""The code of a worker process: batches of files in, prepared documents out, within limits of memory and time.

A frame is its length in eight bytes and a pickle. The first frame is the job, which `READY` answers; every other one
is a batch, and its answer the outcomes of its files. The end of the input ends the process. A fork has its job already.
"""

from __future__ import annotations

import gc
import os
import pickle
from typing import IO, NamedTuple

from findling.pipelines.indexing.child_processes import (
    EXIT_OUT_OF_MEMORY,
    limit_memory,
    limited_time,
    read_frame,
    take_streams,
    write_frame,
)
from findling.pipelines.indexing.prepare import Job, Task, prepare

_EXIT_CRASHED = 4

_READY = "ready"

_LOOK_FOR_CIRCLES = 20_000
"""New objects between two looks of the garbage collector: a hundred files of code."""


class Batch(NamedTuple):
    """Files to prepare; `carefully`, without syntax trees, when a worker has died over one of them."""

    tasks: list[Task]
    carefully: bool = False


def main(job: Job | None = None) -> None:
    """Serve the parent at the other end of standard input and output; without a job, it is the first frame."""
    try:
        taken, given = take_streams()
        inbox, outbox = os.fdopen(taken, "rb"), os.fdopen(given, "wb")
        if job is None:
            job = pickle.loads(read_frame(inbox) or b"")
            assert job is not None
            _prepare_process(job)
            write_frame(outbox, _READY)
        else:
            _prepare_process(job)
        _serve(job, inbox, outbox)
        os._exit(0)
    except MemoryError:
        os._exit(EXIT_OUT_OF_MEMORY)
    except BrokenPipeError:  # the parent is gone
        os._exit(0)
    except BaseException:
        # No failure must look like the end that the watchdog makes.
        os._exit(_EXIT_CRASHED)


def _prepare_process(job: Job) -> None:
    if job.embed:
        _load_vectors()
    # What is loaded stays; chunks are many small tuples without circles, for which the usual 700 is a look too often.
    gc.freeze()
    gc.set_threshold(_LOOK_FOR_CIRCLES, 20, 20)


def _serve(job: Job, inbox: IO[bytes], outbox: IO[bytes]) -> None:
    options = job.options
    careful = job._replace(options=options._replace(plan=options.plan._replace(code="patterns")))
    while (frame := read_frame(inbox)) is not None:
        batch: Batch = pickle.loads(frame)
        limit_memory(options.max_memory, with_mapped=True)
        with limited_time(options.max_seconds):
            prepared = [prepare(careful if batch.carefully else job, task) for task in batch.tasks]
        write_frame(outbox, prepared)


def _load_vectors() -> None:
    """Load numpy and the token vectors now: their time and memory are not those of a document."""
    # There is a worker for every core already.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    from findling.models.local.instant import instant_codes

    instant_codes(["warm up"])
