"""Threads of one process that search while files change wait for each other, and none of them loses what is there."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from pathlib import Path
from typing import Any

import pytest

import findling
from findling.domain.reports import IndexProgress
from findling.domain.results import SearchAnswer
from findling.service.engine.async_engine import AsyncEngine
from findling.service.index import refresh as disk
from findling.service.workspace import writer_queue
from findling.stores.keyword.leg import TantivyLeg
from tests.processes import PATIENCE_S


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("FINDLING_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("FINDLING_SEMANTIC_REFINE", "never")
    monkeypatch.setenv("FINDLING_SEARCH_MODE", "keyword")
    root = tmp_path / "docs"
    root.mkdir()
    _write(root, "heron", 200)
    return root


def _write(root: Path, animal: str, count: int) -> None:
    for number in range(count):
        (root / f"page-{number}.md").write_text(f"# Page {number}\n\nHow the {animal} sleeps.\n")


def _at_once(count: int, ask: Callable[[], SearchAnswer]) -> list[SearchAnswer]:
    meeting = threading.Barrier(count, timeout=PATIENCE_S)

    def arrive() -> SearchAnswer:
        meeting.wait()
        return ask()

    with ThreadPoolExecutor(count) as pool:
        return [future.result(PATIENCE_S) for future in [pool.submit(arrive) for _ in range(count)]]


def test_every_one_of_many_awaited_searches_finds_what_has_just_changed(root: Path) -> None:
    async def case() -> None:
        async with AsyncEngine.open(root, threads=6) as engine:
            await engine.index()
            for turn in range(1, 6):
                (root / "page-0.md").write_text("zebra " * turn)
                answers = await asyncio.gather(*(engine.search("zebra") for _ in range(6)))
                assert [(answer.total, answer.degraded) for answer in answers] == [(1, ())] * 6

    asyncio.run(asyncio.wait_for(case(), 60))


def test_every_thread_finds_all_of_many_changes(root: Path) -> None:
    with findling.open(root) as engine:
        engine.index()
        _write(root, "otter and its young", 200)
        answers = _at_once(8, lambda: engine.search("otter"))
    assert [(answer.total, answer.degraded) for answer in answers] == [(200, ())] * 8


def test_every_thread_finds_all_of_a_first_index(root: Path) -> None:
    with findling.open(root) as engine:
        answers = _at_once(4, lambda: engine.search("heron"))
    assert [(answer.total, answer.degraded) for answer in answers] == [(200, ())] * 4


def test_searches_that_do_not_refresh_are_in_nobodys_way(root: Path) -> None:
    with findling.open(root) as engine:
        engine.index()
        is_over = threading.Event()

        def go_on_searching() -> None:
            while not is_over.is_set():
                engine.search("heron", refresh=False)

        others = [threading.Thread(target=go_on_searching) for _ in range(3)]
        for thread in others:
            thread.start()
        try:
            for turn in range(1, 11):
                (root / "page-0.md").write_text("okapi " * turn)
                answer = engine.search("okapi")
                assert (answer.total, answer.degraded) == (1, ())
        finally:
            is_over.set()
            for thread in others:
                thread.join()


class _Paused:
    """Progress that stops a refresh in the middle, until it is let go on."""

    def __init__(self) -> None:
        self.has_begun, self.may_go_on = threading.Event(), threading.Event()

    def __call__(self, progress: IndexProgress) -> None:
        self.has_begun.set()
        assert self.may_go_on.wait(PATIENCE_S)


def test_who_does_not_refresh_never_waits_for_who_does(root: Path) -> None:
    paused = _Paused()
    with findling.open(root) as engine, ThreadPoolExecutor(1) as pool:
        engine.index()
        (root / "page-0.md").write_text("zebra")
        refreshing = pool.submit(engine.search, "zebra", on_progress=paused)
        assert paused.has_begun.wait(PATIENCE_S)
        assert engine.search("heron", refresh=False).total == 200
        assert not refreshing.done()
        paused.may_go_on.set()
        assert refreshing.result(PATIENCE_S).total == 1


def test_who_has_waited_long_enough_answers_from_what_is_there(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(disk, "REFRESH_PATIENCE_S", 0.05)
    paused = _Paused()
    with findling.open(root) as engine, ThreadPoolExecutor(1) as pool:
        engine.index()
        (root / "page-0.md").write_text("zebra")
        refreshing = pool.submit(engine.search, "zebra", on_progress=paused)
        assert paused.has_begun.wait(PATIENCE_S)
        answer = engine.search("heron")
        assert answer.total == 200
        assert answer.degraded[0].what.startswith("another thread is indexing; ")
        paused.may_go_on.set()
        assert refreshing.result(PATIENCE_S).total == 1
        assert engine.search("heron").degraded == ()


def test_an_error_in_one_thread_lets_the_next_one_do_it(root: Path) -> None:
    def fail(progress: IndexProgress) -> None:
        raise ZeroDivisionError

    with findling.open(root) as engine:
        engine.index()
        (root / "page-0.md").write_text("zebra")
        with pytest.raises(ZeroDivisionError):
            engine.search("zebra", on_progress=fail)
        answer = engine.search("zebra")
        assert (answer.total, answer.degraded) == (1, ())


def test_threads_that_write_and_threads_that_refresh_do_not_block_each_other(root: Path) -> None:
    with findling.open(root) as engine:
        engine.index()

        def write_and_search(number: int) -> int:
            (root / f"new-{number}.md").write_text(f"axolotl {number}")
            engine.index()
            with engine._files.writing():  # what holds the guard and then refreshes, in the other order
                engine.search("axolotl", refresh=False)
            return engine.search("axolotl").total

        with ThreadPoolExecutor(4) as pool:
            for future in [pool.submit(write_and_search, number) for number in range(8)]:
                assert future.result(PATIENCE_S) >= 1
        assert engine.search("axolotl").total == 8


@pytest.mark.parametrize("is_short", [True, False])
def test_who_has_written_finds_it_beside_a_short_turn(
    root: Path, monkeypatch: pytest.MonkeyPatch, is_short: bool
) -> None:
    """A search did not wait for another one that levelled the leg, and lacked what its own caller had written."""
    monkeypatch.setattr(writer_queue, "_SHORT_S", PATIENCE_S if is_short else 0.0)
    with findling.open(root) as engine, ThreadPoolExecutor(2) as pool:
        engine.index()
        engine.memories.remember("The axolotl sleeps.")
        has_begun, may_go_on = threading.Event(), threading.Event()

        def hold() -> None:
            with engine.queue.turn(0.0):
                has_begun.set()
                assert may_go_on.wait(PATIENCE_S)

        holding = pool.submit(hold)
        assert has_begun.wait(PATIENCE_S)
        searching = pool.submit(engine.search, "axolotl", refresh=False)
        if is_short:
            assert not wait([searching], timeout=0.2).done
            may_go_on.set()
            assert (searching.result(PATIENCE_S).total, searching.result().degraded) == (1, ())
        else:
            late = searching.result(PATIENCE_S)
            assert late.degraded[0].what.startswith("files are being indexed; ")
            may_go_on.set()
        holding.result(PATIENCE_S)
        assert engine.search("axolotl", refresh=False).total == 1


@pytest.mark.parametrize("is_leg_written", [True, False])
def test_what_is_replaced_between_a_leg_and_the_truth_is_found_as_it_is_now(
    root: Path, monkeypatch: pytest.MonkeyPatch, is_leg_written: bool
) -> None:
    """The passages of the first look are gone; without another look the answer would be empty and say nothing."""
    asked = TantivyLeg.search

    def replace_behind(leg: TantivyLeg, *args: Any, **options: Any) -> Any:
        found = asked(leg, *args, **options)
        if (root / "page-0.md").read_text().count("heron") == 1:
            _write(root, "heron and the bittern", 200)
            with findling.open(root) as writer, monkeypatch.context() as meanwhile:
                if not is_leg_written:
                    meanwhile.setattr(TantivyLeg, "commit", lambda *_, **__: None)
                writer.index()
        return found

    with findling.open(root) as engine:
        engine.index()
        monkeypatch.setattr(TantivyLeg, "search", replace_behind)
        answer = engine.search("heron", refresh=False)
    assert (len(answer.hits), answer.degraded) == (10, ())
    assert all("bittern" in line.text for hit in answer.hits for line in hit.lines if "heron" in line.text)
