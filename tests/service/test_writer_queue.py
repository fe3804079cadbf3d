"""One writer at a time: threads stand in a queue, processes wait for the file."""

from __future__ import annotations

import asyncio
import os
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from findling.domain.errors import LockedError, NotFoundError
from findling.service.workspace.writer_queue import WriterQueue
from tests.processes import PATIENCE_S, run_process


class _Holder(threading.Thread):
    """A thread that has its turn until it is let go."""

    def __init__(self, queue: WriterQueue) -> None:
        super().__init__()
        self._queue = queue
        self.has_turn, self.may_end = threading.Event(), threading.Event()
        self.start()
        assert self.has_turn.wait(PATIENCE_S)

    def run(self) -> None:
        with self._queue.locked(PATIENCE_S):
            self.has_turn.set()
            self.may_end.wait(PATIENCE_S)

    def end(self) -> None:
        self.may_end.set()
        self.join(PATIENCE_S)


def test_all_who_name_a_folder_stand_in_one_queue(tmp_path: Path) -> None:
    queue = WriterQueue.of(tmp_path)
    assert WriterQueue.of(Path(str(tmp_path))) is queue
    assert WriterQueue.of(tmp_path / "other") is not queue


def test_they_write_in_the_order_in_which_they_came(tmp_path: Path) -> None:
    queue = WriterQueue.of(tmp_path)
    holder, seen = _Holder(queue), list[int]()

    def write(number: int) -> None:
        with queue.locked(PATIENCE_S):
            seen.append(number)

    threads = []
    for number in range(6):
        threads.append(threading.Thread(target=write, args=(number,)))
        threads[-1].start()
        while len(queue._line) < number + 2:
            pass
    holder.end()
    for thread in threads:
        thread.join(PATIENCE_S)
    assert seen == list(range(6))


def test_a_turn_inside_a_turn_is_the_same_one(tmp_path: Path) -> None:
    queue = WriterQueue.of(tmp_path)
    with queue.locked(0.0), queue.turn(0.0) as is_ours:
        assert is_ours
        assert not queue.is_busy
        # The lock itself is held once: two who wrote at once would harm each other, in one thread, too.
        with pytest.raises(LockedError), queue.locked(PATIENCE_S):
            pass
    assert queue.writer() == ""


def test_who_has_no_patience_is_told_and_leaves_the_queue(tmp_path: Path) -> None:
    queue = WriterQueue.of(tmp_path)
    holder = _Holder(queue)
    with queue.turn(0.0) as is_ours:
        assert not is_ours
    with pytest.raises(LockedError, match="is writing"), queue.locked(0.01):
        pass
    assert (queue.is_busy, queue.writer()) == (True, "another thread")
    holder.end()
    with queue.locked(0.0):
        pass


def test_an_event_loop_waits_and_its_job_may_write(tmp_path: Path) -> None:
    queue, seen = WriterQueue.of(tmp_path), list[str]()
    holder = _Holder(queue)

    def job() -> str:
        with queue.locked(0.0):
            return "written"

    def go_on() -> None:
        seen.append("the loop goes on")
        holder.may_end.set()

    async def write() -> None:
        asyncio.get_running_loop().call_later(0.05, go_on)
        async with queue.awaited() as run:
            seen.append(await asyncio.to_thread(run, job))

    asyncio.run(asyncio.wait_for(write(), PATIENCE_S))
    holder.join(PATIENCE_S)
    assert seen == ["the loop goes on", "written"]
    assert not queue.is_busy


def test_a_job_without_a_turn_runs_when_patience_ends(tmp_path: Path) -> None:
    queue = WriterQueue.of(tmp_path)
    holder = _Holder(queue)

    async def look() -> bool:
        async with queue.awaited(0.01) as run:
            return await asyncio.to_thread(run, lambda: queue.is_busy)

    assert asyncio.run(look())
    holder.end()
    assert not queue.is_busy


def test_a_job_that_has_waited_in_vain_does_not_wait_again(tmp_path: Path) -> None:
    queue = WriterQueue.of(tmp_path)
    holder = _Holder(queue)

    def job() -> bool:
        threading.Timer(0.2, holder.may_end.set).start()
        with queue.turn(PATIENCE_S) as is_ours:
            return is_ours

    async def look() -> bool:
        async with queue.awaited(0.01) as run:
            return await asyncio.to_thread(run, job)

    assert not asyncio.run(look()), "a second wait would have got the turn"
    holder.join(PATIENCE_S)
    with queue.turn(PATIENCE_S) as is_ours:
        assert is_ours, "the next job of the thread waits as usual"


def test_a_cancelled_task_leaves_the_turn_to_the_job_that_goes_on(tmp_path: Path) -> None:
    queue = WriterQueue.of(tmp_path)
    has_begun, may_end = threading.Event(), threading.Event()

    def job() -> None:
        has_begun.set()
        assert may_end.wait(PATIENCE_S)

    async def cancel() -> None:
        async def write() -> None:
            async with queue.awaited() as run:
                await asyncio.get_running_loop().run_in_executor(pool, run, job)

        task = asyncio.create_task(write())
        await asyncio.to_thread(has_begun.wait, PATIENCE_S)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    with ThreadPoolExecutor(1) as pool:
        asyncio.run(cancel())
        assert queue.is_busy
        may_end.set()
    assert not queue.is_busy


def test_a_folder_that_must_exist_is_not_made_again(tmp_path: Path) -> None:
    with pytest.raises(NotFoundError), WriterQueue.of(tmp_path / "gone").locked(0.0, must_exist=True):
        pass
    assert not (tmp_path / "gone").exists()


def test_another_process_is_excluded_by_the_file(tmp_path: Path) -> None:
    script = (
        "import sys; from pathlib import Path\n"
        "from findling.service.workspace.writer_queue import WriterQueue\n"
        "print(WriterQueue.of(Path(sys.argv[1])).writer())\n"
    )
    with WriterQueue.of(tmp_path).locked(0.0):
        ended = run_process([sys.executable, "-c", script, str(tmp_path)])
    assert ended.stdout == "another process\n"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
def test_a_forked_child_waits_for_the_parent_and_not_for_its_threads(tmp_path: Path) -> None:
    queue = WriterQueue.of(tmp_path)
    holder = _Holder(queue)
    child = os.fork()
    if not child:
        # The queue is free, the file is not.
        code = 1
        try:
            if not queue.is_busy and queue.writer() == "another process":
                code = 0
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    holder.end()
