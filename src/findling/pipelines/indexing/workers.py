"""Worker processes that prepare files: one a core, each with limits, results in the order of the tasks.

They are forks of a process that has one thread, as a command has; any other process starts new ones.

One thread a worker sends it a batch and waits for the answer, while the caller writes earlier ones. Early answers are
held back as pickles; when too much is held back, all wait for the missing one.
"""

from __future__ import annotations

import os
import pickle
import signal
import threading
import time
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, wait
from contextlib import contextmanager, suppress
from functools import partial
from itertools import count
from typing import TYPE_CHECKING

from findling.domain.errors import WorkerError
from findling.pipelines.indexing.child_processes import (
    EXIT_OUT_OF_MEMORY,
    EXIT_TOO_SLOW,
    ChildProcess,
    ForkedProcess,
    is_alone,
    new_process,
)
from findling.pipelines.indexing.prepare import Job, Prepared, Task, refuse
from findling.pipelines.indexing.worker_process import Batch, main
from findling.sources.files.file_types import file_type
from findling.text.chunking.chunker import parses

if TYPE_CHECKING:
    import subprocess

_HELD_BACK_BYTES = 20 << 20  # answers that wait for their turn: so much may overtake a document of a minute
_GLANCE_S = 1.0  # seconds between two looks of a waiting caller at the workers
_GRACE_S = 20.0
_SHARE = 0.1
"""A running worker keeps the limit of time by itself. A stopped or waiting one is killed after ten times the limit and
the grace: a busy machine gives it more than a tenth."""

_ATTEMPTS = 3  # starts of one worker: a system that is short of memory may kill it before its first task

_Answer = bytes | list[Prepared]


def available_cores() -> int:
    """The number of processors that this process may use."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # only Linux tells
        return os.cpu_count() or 1


@contextmanager
def preparing(job: Job, batches: Sequence[list[Task]], workers: int) -> Iterator[Iterator[list[Prepared]]]:
    """Have files prepared from now on; yields the outcomes of each batch, batch by batch in their order.

    A worker that dies or is too slow is replaced, and costs the one file it was at. The end of the block stops the
    workers. The outcomes raise WorkerError when no worker can be started.
    """
    crew = _Crew(job)
    futures: deque[Future[list[_Answer]]] = deque(Future() for _ in batches)
    jobs = deque(zip(count(), batches, futures, strict=False))
    # No ThreadPoolExecutor: the interpreter waits for its threads, so a program could not end beside an index run.
    threads = [threading.Thread(target=crew.work, args=(jobs,), daemon=True) for _ in range(min(workers, len(batches)))]
    try:
        crew.fork(len(threads))
        for thread in threads:
            thread.start()
        yield (crew.result(futures.popleft()) for _ in batches)
    finally:
        crew.stop()
        for thread in threads:
            if thread.ident is not None:
                thread.join()
        for worker in crew.workers:
            worker.end()


class _Crew:
    """The state that the threads and their caller share."""

    def __init__(self, job: Job) -> None:
        self.workers: set[_Worker] = set()
        self._job = job
        self._changed = threading.Condition()
        self._idle: list[_Worker] = []
        self._wanted = self._held_back = 0
        self._stopped = False

    def fork(self, count: int) -> None:
        """Fork workers, if this process is alone and may; threads start others when they need them."""
        for _ in range(count if is_alone() else 0):
            with suppress(OSError):
                self._idle.append(_Worker(self._job, ForkedProcess(partial(main, self._job))))
        self.workers.update(self._idle)

    def result(self, future: Future[list[_Answer]]) -> list[Prepared]:
        """Wait for the next batch, and look after the workers meanwhile."""
        while not wait([future], _GLANCE_S).done:
            with self._changed:
                for worker in self.workers:
                    worker.kill_if_overdue()
        answers = future.result()
        with self._changed:
            self._wanted += 1
            self._held_back -= sum(map(len, answers))
            self._changed.notify_all()
        unpacked = (pickle.loads(answer) if isinstance(answer, bytes) else answer for answer in answers)
        return [prepared for own in unpacked for prepared in own]

    def stop(self) -> None:
        """Kill all workers."""
        with self._changed:
            self._stopped = True
            self._changed.notify_all()
            for worker in self.workers:
                worker.process.kill()

    def work(self, jobs: deque[tuple[int, list[Task], Future[list[_Answer]]]]) -> None:
        """Have one batch after another prepared, until none is left or the crew is stopped."""
        while not self._stopped:
            try:
                number, tasks, future = jobs.popleft()
            except IndexError:
                return
            try:
                future.set_result(self._prepare(number, tasks))
            except BaseException as error:  # raised where the result is waited for
                future.set_exception(error)

    def _prepare(self, number: int, tasks: list[Task]) -> list[_Answer]:
        """Have a batch prepared, when there is room to hold it back or the caller waits for it."""
        with self._changed:
            self._changed.wait_for(
                lambda: self._held_back < _HELD_BACK_BYTES or number <= self._wanted or self._stopped
            )
            if self._stopped:
                return []
            worker = self._idle.pop() if self._idle else None
        answers: list[_Answer] = []
        waiting = [Batch(tasks)]
        while waiting:
            batch = waiting.pop(0)
            worker = worker or self._hire()
            answer = worker.exchange(batch)
            if answer is not None:
                answers.append(answer)
                continue
            reason, detail = self._dismiss(worker)
            worker = None
            if len(batch.tasks) > 1:
                # One by one, so that the blame falls on one.
                waiting = [Batch([task]) for task in batch.tasks]
            elif not batch.carefully and (reason == "killed" or self._has_tree(batch.tasks[0])):
                waiting.insert(0, batch._replace(carefully=True))
            else:
                answers.append([refuse(batch.tasks[0], reason, detail)])
        with self._changed:
            self._idle += [worker] if worker else []
            self._held_back += sum(map(len, answers))
        return answers

    def _has_tree(self, task: Task) -> bool:
        """Whether the file is cut by its syntax tree; patterns do without one."""
        return parses(self._job.options.plan, file_type(task.path.rpartition("/")[2]).lang)

    def _hire(self) -> _Worker:
        for _ in range(_ATTEMPTS):
            try:
                worker = _Worker(self._job, new_process("findling.pipelines.indexing.worker_process"))
            except OSError as error:
                problem = str(error)
                continue
            with self._changed:
                self.workers.add(worker)
                if self._stopped:
                    worker.process.kill()
            if worker.exchange(self._job) is not None:
                return worker
            self._dismiss(worker)
            problem = f"it ended with status {worker.process.returncode}"
            if self._stopped:
                break
        raise WorkerError(
            f"no worker process can be started: {problem}",
            hint="check the memory and the number of processes this user may have (ulimit -a)",
        )

    def _dismiss(self, worker: _Worker) -> tuple[str, str]:
        with self._changed:
            self.workers.discard(worker)
        return worker.blame()


class _Worker(ChildProcess):
    """A process that prepares files, and may take only so long for each answer."""

    def __init__(self, job: Job, process: ForkedProcess | subprocess.Popen[bytes]) -> None:
        super().__init__(process)
        self._max_seconds = job.options.max_seconds
        self._asked_at: float | None = None
        self._is_overdue = False

    def exchange(self, value: Job | Batch) -> bytes | None:
        """The pickled answer to the job or to a batch; `None` when the process has ended over it."""
        self._asked_at = time.monotonic()
        try:
            return super().exchange(value)
        finally:
            self._asked_at = None

    def blame(self) -> tuple[str, str]:
        """Have the process end; the reason and detail of its own end."""
        status = self.end()
        if self._is_overdue or status in (EXIT_TOO_SLOW, -getattr(signal, "SIGPROF", 0)):
            return "too-slow", f"took longer than {self._max_seconds:g} s"
        if status == EXIT_OUT_OF_MEMORY:
            return "out-of-memory", "needs more memory than a document may take"
        if -status in (signal.SIGKILL, signal.SIGTERM):
            return "killed", "the process that read it was ended from outside"
        cause = f"signal {-status}" if status < 0 else f"status {status}"
        return "crashed", f"reading it ended the process ({cause})"

    def kill_if_overdue(self) -> None:
        """Kill a process that should have ended long ago: stopped by a signal, or stuck before its first task."""
        asked_at = self._asked_at
        if asked_at is not None and time.monotonic() - asked_at > self._max_seconds / _SHARE + _GRACE_S:
            self._is_overdue = True
            self.process.kill()
