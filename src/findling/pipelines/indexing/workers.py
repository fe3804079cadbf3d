"""Worker processes that prepare files: as many as there are cores, each with limits, results in the order of the tasks.

One thread a worker sends it a batch and waits for the answer, while the caller writes what came before. An answer that
is not wanted yet is held back as it came; when too much is held back, all wait for the one that is missing.
"""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Generator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO

import findling
from findling.domain.errors import WorkerError
from findling.pipelines.indexing.prepare import Prepared, Task, refuse
from findling.pipelines.indexing.worker_process import (
    EXIT_OUT_OF_MEMORY,
    EXIT_TOO_SLOW,
    Batch,
    Order,
    read_frame,
    write_frame,
)
from findling.sources.files.file_types import file_type
from findling.text.chunking.chunker import parses

__all__ = ["available_cores", "prepare_in_workers"]

_HELD_BACK_BYTES = 32 << 20
"""Answers that wait for their turn: a document of a minute may be overtaken by this much."""

_PIPE_BYTES = 1 << 20
"""So that a batch of text goes through with few turns; the default of Linux is 64 KB."""

_GLANCE_S = 1.0
"""How often a caller that waits looks after the workers."""

_GRACE_S = 20.0
_SHARE = 0.1
"""A worker keeps the limit of time by itself, as long as it runs. It is ended from here when it has not come to it in
ten times the limit and the grace: it is stopped, or waits for something. A busy machine gives it more than a tenth."""

_ATTEMPTS = 3
"""A worker may be killed before it has begun, by a system that is short of memory; not again and again."""

_Answer = bytes | list[Prepared]


def available_cores() -> int:
    """How many processors this process may use."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # only Linux tells
        return os.cpu_count() or 1


def prepare_in_workers(order: Order, batches: Sequence[list[Task]], workers: int) -> Generator[list[Prepared]]:
    """What became of the files of each batch, batch by batch in their order.

    A worker that dies or takes too long is replaced, and costs the one file it was at. Closing the iterator stops
    the workers. Raises WorkerError when no worker can be started.
    """
    crew = _Crew(order, batches)
    threads = [threading.Thread(target=crew.work, daemon=True) for _ in range(min(workers, len(batches)))]
    try:
        for thread in threads:
            thread.start()
        for number in range(len(batches)):
            yield crew.result(number)
    finally:
        crew.stop()
        for thread in threads:
            if thread.ident is not None:
                thread.join()
        crew.bury()


class _Crew:
    """What the threads and their caller share."""

    def __init__(self, order: Order, batches: Sequence[list[Task]]) -> None:
        self._order = order
        self._batches = batches
        self._changed = threading.Condition()
        self._taken = self._held_back = 0
        self._answers: dict[int, list[_Answer]] = {}
        self._workers: set[_Worker] = set()
        self._stopped = False
        self._failure: BaseException | None = None

    def result(self, number: int) -> list[Prepared]:
        """Wait for one batch; the caller asks for them in their order."""
        with self._changed:
            while not self._changed.wait_for(lambda: number in self._answers or self._failure, _GLANCE_S):
                for worker in self._workers:
                    worker.kill_if_overdue()
            if self._failure:
                raise self._failure
            answers = self._answers.pop(number)
            self._held_back -= sum(map(len, answers))
            self._changed.notify_all()
        return [prepared for answer in answers for prepared in _unpacked(answer)]

    def work(self) -> None:
        """What each thread does: take a batch, have it prepared, hand it over."""
        worker: _Worker | None = None
        try:
            while (number := self._take()) is not None:
                worker = self._prepare(worker, number)
        except BaseException as error:
            # Whatever ends a thread is raised where its results are waited for.
            with self._changed:
                if not self._stopped:
                    self._failure = error
                self._changed.notify_all()
        finally:
            if worker is not None:
                worker.end()

    def stop(self) -> None:
        """End all workers at once, whatever they are at."""
        with self._changed:
            self._stopped = True
            self._changed.notify_all()
            for worker in self._workers:
                worker.kill()

    def bury(self) -> None:
        """Release what is left of workers whose threads came to a sudden end."""
        for worker in self._workers:
            worker.end()

    def _take(self) -> int | None:
        with self._changed:
            # The batch that is wanted next has been taken already, so that waiting here cannot hold it up.
            self._changed.wait_for(lambda: self._held_back < _HELD_BACK_BYTES or self._stopped)
            if self._stopped or self._taken == len(self._batches):
                return None
            self._taken += 1
            return self._taken - 1

    def _prepare(self, worker: _Worker | None, number: int) -> _Worker | None:
        answers: list[_Answer] = []
        waiting = [Batch(self._batches[number])]
        while waiting:
            batch = waiting.pop(0)
            worker = worker or self._hire()
            answer = worker.ask(batch)
            if answer is not None:
                answers.append(answer)
                continue
            reason, detail = self._dismiss(worker)
            worker = None
            if len(batch.tasks) > 1:
                # Each alone, so that the blame falls on one.
                waiting = [Batch([task]) for task in batch.tasks]
            elif not batch.carefully and (reason == "killed" or self._has_tree(batch.tasks[0])):
                waiting.insert(0, batch._replace(carefully=True))
            else:
                answers.append([refuse(batch.tasks[0], reason, detail)])
        with self._changed:
            self._answers[number] = answers
            self._held_back += sum(map(len, answers))
            self._changed.notify_all()
        return worker

    def _has_tree(self, task: Task) -> bool:
        """Whether a syntax tree is made of the file, which can be done without."""
        return parses(self._order.job.plan, file_type(task.path.rpartition("/")[2]).lang)

    def _hire(self) -> _Worker:
        for _ in range(_ATTEMPTS):
            try:
                worker = _Worker(self._order)
            except OSError as error:
                problem = str(error)
                continue
            with self._changed:
                self._workers.add(worker)
                if self._stopped:
                    worker.kill()
            if worker.greet():
                return worker
            self._dismiss(worker)
            problem = f"it ended with status {worker.status}"
            if self._stopped:
                break
        raise WorkerError(
            f"no worker process can be started: {problem}",
            hint="check the memory and the number of processes this user may have (ulimit -a)",
        )

    def _dismiss(self, worker: _Worker) -> tuple[str, str]:
        with self._changed:
            self._workers.discard(worker)
        return worker.end()


class _Worker:
    """One process at the other end of two pipes."""

    def __init__(self, order: Order) -> None:
        self._order = order
        # Not the current folder: it is searched, not trusted, and a `re.py` in it must not be run.
        path = [entry for entry in sys.path if isinstance(entry, str) and entry]
        path.append(str(Path(findling.__file__).parents[1]))
        code = (
            f"import sys; sys.path[:] = {path!r}; from findling.pipelines.indexing.worker_process import main; main()"
        )
        command = [sys.executable, "-P", "-c", code]
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )
        self._asked_at: float | None = None
        self._is_overdue = False
        assert self._process.stdin and self._process.stdout
        self._inbox, self._outbox = self._process.stdout, self._process.stdin
        _widen(self._inbox)

    def greet(self) -> bool:
        """Give the order and wait until the process is there; whether it is."""
        return self._exchange(self._order) is not None

    def ask(self, batch: Batch) -> bytes | None:
        """The pickled answer; `None` when the process has died over it."""
        return self._exchange(batch)

    def end(self) -> tuple[str, str]:
        """End the process if it has not ended; the reason and detail of its own end."""
        for stream in (self._outbox, self._inbox):
            with suppress(BrokenPipeError):
                stream.close()
        status = self._process.wait()
        if self._is_overdue or status in (EXIT_TOO_SLOW, -getattr(signal, "SIGPROF", 0)):
            return "too-slow", f"took longer than {self._order.seconds:g} s"
        if status == EXIT_OUT_OF_MEMORY:
            return "out-of-memory", "needs more memory than a document may take"
        if -status in (signal.SIGKILL, signal.SIGTERM):
            return "killed", "the process that read it was ended from outside"
        cause = f"signal {-status}" if status < 0 else f"status {status}"
        return "crashed", f"reading it ended the process ({cause})"

    @property
    def status(self) -> int | None:
        """How the process has ended."""
        return self._process.returncode

    def kill_if_overdue(self) -> None:
        """End a process that should have ended itself long ago: stopped by a signal, or stuck before its first task."""
        asked_at = self._asked_at
        if asked_at is not None and time.monotonic() - asked_at > self._order.seconds / _SHARE + _GRACE_S:
            self._is_overdue = True
            self._process.kill()

    def kill(self) -> None:
        """End the process at once."""
        self._process.kill()

    def _exchange(self, value: object) -> bytes | None:
        self._asked_at = time.monotonic()
        try:
            write_frame(self._outbox, value)
            return read_frame(self._inbox)
        except OSError:  # the pipe broke: the process is gone
            return None
        finally:
            self._asked_at = None


def _widen(stream: IO[bytes]) -> None:
    with suppress(ImportError, AttributeError, OSError):  # Linux alone has the call, and may refuse it
        import fcntl

        fcntl.fcntl(stream.fileno(), fcntl.F_SETPIPE_SZ, _PIPE_BYTES)


def _unpacked(answer: _Answer) -> list[Prepared]:
    if isinstance(answer, bytes):
        prepared: list[Prepared] = pickle.loads(answer)
        return prepared
    return answer
