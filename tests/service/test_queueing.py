"""The line in front of the threads: who is let in, who is dropped, and what stays counted."""

from __future__ import annotations

import asyncio
import gc
import threading
import weakref
from collections.abc import Callable, Coroutine, Iterator
from contextvars import ContextVar
from functools import partial
from typing import Any

import pytest

from findling.domain.errors import BusyError, UsageError
from findling.service.engine.executor import WorkLine
from tests.processes import PATIENCE_S


class _Blocked:
    """Work that has begun and goes on until it is released."""

    def __init__(self) -> None:
        self.has_begun = threading.Event()
        self.may_end = threading.Event()

    def __call__(self) -> str:
        self.has_begun.set()
        assert self.may_end.wait(PATIENCE_S)
        return "done"


@pytest.fixture
def blocked() -> Iterator[_Blocked]:
    work = _Blocked()
    yield work
    work.may_end.set()


def _run(case: Callable[[WorkLine], Coroutine[Any, Any, None]], threads: int = 1, most_waiting: int = 2) -> WorkLine:
    line = WorkLine(threads, most_waiting)
    try:
        asyncio.run(asyncio.wait_for(case(line), PATIENCE_S))
    finally:
        line.close()
    assert (line.waiting, line.running) == (0, 0)
    return line


async def _until(is_so: Callable[[], bool]) -> None:
    while not is_so():
        await asyncio.sleep(0.001)


def test_a_result_and_an_error_come_back_as_they_are() -> None:
    async def case(line: WorkLine) -> None:
        assert await line.run(lambda: 6 * 7) == 42
        with pytest.raises(TimeoutError, match="the work's own"):
            await line.run(_fails)

    _run(case)


def _fails() -> None:
    raise TimeoutError("the work's own")


def test_work_runs_beside_the_event_loop_and_in_the_context_of_its_caller() -> None:
    asked_by: ContextVar[str] = ContextVar("asked_by", default="nobody")

    async def case(line: WorkLine) -> None:
        asked_by.set("ann")
        name, ident = await line.run(lambda: (asked_by.get(), threading.get_ident()))
        assert name == "ann"
        assert ident != threading.get_ident()

    _run(case)


def test_there_are_two_threads_for_each_core_unless_told() -> None:
    line = WorkLine()
    assert line.threads >= 2
    assert line.threads % 2 == 0
    line.close()


def test_as_much_runs_at_once_as_there_are_threads() -> None:
    meeting = threading.Barrier(3, timeout=PATIENCE_S)

    async def case(line: WorkLine) -> None:
        await asyncio.gather(*(line.run(meeting.wait) for _ in range(3)))

    _run(case, threads=3)


def test_a_full_line_refuses_and_lets_in_again(blocked: _Blocked) -> None:
    async def case(line: WorkLine) -> None:
        first = asyncio.create_task(line.run(blocked))
        await _until(blocked.has_begun.is_set)
        queued = [asyncio.create_task(line.run(lambda: "later")) for _ in range(2)]
        await _until(lambda: line.waiting == 2)
        assert line.running == 1
        with pytest.raises(BusyError, match="2 others waiting") as refusal:
            await line.run(lambda: "refused")
        assert refusal.value.hint
        blocked.may_end.set()
        assert await asyncio.gather(first, *queued) == ["done", "later", "later"]
        assert await line.run(lambda: "again") == "again"

    _run(case)


def test_a_line_without_room_to_wait_still_works() -> None:
    async def case(line: WorkLine) -> None:
        assert await line.run(lambda: "done") == "done"

    _run(case, most_waiting=0)


def test_what_nobody_waits_for_any_more_never_begins(blocked: _Blocked) -> None:
    began: list[str] = []

    async def case(line: WorkLine) -> None:
        first = asyncio.create_task(line.run(blocked))
        await _until(blocked.has_begun.is_set)
        dropped = asyncio.create_task(line.run(lambda: began.append("dropped")))
        kept = asyncio.create_task(line.run(lambda: began.append("kept")))
        await _until(lambda: line.waiting == 2)
        dropped.cancel()
        with pytest.raises(asyncio.CancelledError):
            await dropped
        assert line.waiting == 1
        blocked.may_end.set()
        await asyncio.gather(first, kept)

    _run(case)
    assert began == ["kept"]


class _Payload:
    """An object that work holds."""


def test_many_that_were_cancelled_leave_nothing_behind(blocked: _Blocked) -> None:
    async def case(line: WorkLine) -> None:
        first = asyncio.create_task(line.run(blocked))
        await _until(blocked.has_begun.is_set)
        payloads: weakref.WeakSet[_Payload] = weakref.WeakSet()
        for _ in range(300):  # many times what the line holds
            payload = _Payload()
            payloads.add(payload)
            tasks = [asyncio.create_task(line.run(partial(id, payload))) for _ in range(2)]
            await asyncio.sleep(0)
            assert line.waiting == 2
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            assert line.waiting == 0
        assert not first.done()
        del payload, tasks, task
        await asyncio.sleep(0)
        gc.collect()
        assert len(payloads) == 0
        assert line._pool._work_queue.qsize() == 0
        blocked.may_end.set()
        assert await first == "done"

    _run(case)


def test_a_thread_with_nothing_to_do_keeps_no_answer() -> None:
    async def case(line: WorkLine) -> None:
        payload = weakref.ref(await line.run(_Payload))
        await _until(lambda: line._workers == 0)
        gc.collect()
        assert payload() is None

    _run(case)


@pytest.mark.parametrize("kind", [KeyboardInterrupt, SystemExit, GeneratorExit, asyncio.CancelledError])
def test_whatever_work_raises_comes_back_and_costs_no_thread(kind: type[BaseException]) -> None:
    def fail() -> None:
        raise kind

    async def case(line: WorkLine) -> None:
        for _ in range(3):  # more often than there are threads
            with pytest.raises(kind):
                await line.run(fail)
            assert (line.waiting, line.running) == (0, 0)
        assert await line.run(lambda: "still there") == "still there"

    _run(case)


def test_work_that_ends_an_iterator_does_not_wait_for_ever() -> None:
    async def case(line: WorkLine) -> None:
        with pytest.raises(RuntimeError, match="StopIteration"):
            await line.run(partial(next, iter(())))
        assert await line.run(lambda: "still there") == "still there"

    _run(case)


@pytest.mark.parametrize("kind", [SystemExit, ValueError])
def test_what_is_raised_after_its_caller_has_gone_disturbs_nobody(kind: type[BaseException], blocked: _Blocked) -> None:
    def fail() -> None:
        blocked()
        raise kind

    async def case(line: WorkLine) -> None:
        caller = asyncio.create_task(line.run(fail))
        await _until(blocked.has_begun.is_set)
        caller.cancel()
        with pytest.raises(asyncio.CancelledError):
            await caller
        blocked.may_end.set()
        await _until(lambda: line.running == 0)
        assert await line.run(lambda: "still there") == "still there"

    _run(case)


def test_a_cancelled_caller_is_free_at_once_and_the_thread_stays_counted(blocked: _Blocked) -> None:
    async def case(line: WorkLine) -> None:
        caller = asyncio.create_task(line.run(blocked))
        await _until(blocked.has_begun.is_set)
        caller.cancel()
        with pytest.raises(asyncio.CancelledError):
            await caller
        assert line.running == 1
        blocked.may_end.set()
        await _until(lambda: line.running == 0)

    _run(case)


def test_what_is_overdue_goes_on_and_keeps_its_place(blocked: _Blocked) -> None:
    async def case(line: WorkLine) -> None:
        # On a busy machine it may be given up before it has begun.
        while not line.running:
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(line.run(blocked), 0.05)
        with pytest.raises(BusyError):
            await line.run(lambda: "no thread, no line")
        blocked.may_end.set()
        await _until(lambda: line.running == 0)
        assert await line.run(lambda: "free again") == "free again"

    _run(case, most_waiting=0)


def test_what_is_overdue_before_it_began_never_begins(blocked: _Blocked) -> None:
    began: list[str] = []

    async def case(line: WorkLine) -> None:
        first = asyncio.create_task(line.run(blocked))
        await _until(blocked.has_begun.is_set)
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(line.run(lambda: began.append("late")), 0.02)
        assert line.waiting == 0
        blocked.may_end.set()
        await first

    _run(case)
    assert began == []


def test_closing_waits_for_what_runs_and_refuses_the_rest(blocked: _Blocked) -> None:
    async def case(line: WorkLine) -> None:
        first = asyncio.create_task(line.run(blocked))
        await _until(blocked.has_begun.is_set)
        queued = asyncio.create_task(line.run(lambda: "never"))
        await _until(lambda: line.waiting == 1)
        closing = asyncio.create_task(asyncio.to_thread(line.close))
        with pytest.raises(BusyError, match="shutting down"):
            await queued
        assert not closing.done()
        with pytest.raises(BusyError, match="shutting down"):
            await line.run(lambda: "too late")
        blocked.may_end.set()
        await closing
        assert await first == "done"

    _run(case)


def test_a_closed_line_raises_what_its_owner_says(blocked: _Blocked) -> None:
    line = WorkLine(1, closed=lambda: UsageError("the shop is closed"))

    async def case() -> None:
        first = asyncio.create_task(line.run(blocked))
        await _until(blocked.has_begun.is_set)
        queued = asyncio.create_task(line.run(lambda: "never"))
        await _until(lambda: line.waiting == 1)
        closing = asyncio.create_task(asyncio.to_thread(line.close))
        for dropped in (queued, line.run(lambda: "too late")):
            with pytest.raises(UsageError, match="the shop is closed"):
                await dropped
        blocked.may_end.set()
        await asyncio.gather(first, closing)

    asyncio.run(asyncio.wait_for(case(), PATIENCE_S))


def test_closing_drops_what_other_event_loops_wait_for(blocked: _Blocked) -> None:
    line = WorkLine(1)
    refused: list[str] = []

    async def wait() -> None:
        with pytest.raises(BusyError) as refusal:
            await line.run(lambda: "never")
        refused.append(refusal.value.message)

    async def hold() -> None:
        assert await line.run(blocked) == "done"

    loops = [threading.Thread(target=lambda: asyncio.run(hold()))]
    loops[0].start()
    assert blocked.has_begun.wait(PATIENCE_S)
    loops += [threading.Thread(target=lambda: asyncio.run(wait())) for _ in range(3)]
    for thread in loops[1:]:
        thread.start()
    asyncio.run(_until(lambda: line.waiting == 3))
    closing = threading.Thread(target=line.close)
    closing.start()
    for thread in loops[1:]:
        thread.join(PATIENCE_S)
    blocked.may_end.set()
    for thread in (loops[0], closing):
        thread.join(PATIENCE_S)
    assert refused == ["findling is shutting down"] * 3
    assert (line.waiting, line.running) == (0, 0)


def test_one_line_serves_several_event_loops() -> None:
    line = WorkLine(2)
    answers: list[list[int]] = []

    async def ask() -> list[int]:
        return list(await asyncio.gather(*(line.run(lambda n=n: n) for n in range(20))))  # type: ignore[misc]

    threads = [threading.Thread(target=lambda: answers.append(asyncio.run(ask()))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    line.close()
    assert answers == [list(range(20))] * 4
