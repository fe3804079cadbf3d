"""The async twin answers as the engine does, also while many ask, files change and rights are given and taken."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest

import findling
from findling.domain.errors import BusyError, InvalidValueError, NotFoundError, NotIndexedError, UsageError
from findling.domain.reports import IndexProgress
from findling.domain.resources import Resource
from findling.domain.results import SearchAnswer
from findling.service.engine.async_engine import AsyncEngine
from findling.service.engine.engine import open_engine
from tests.processes import PATIENCE_S

ANN = "user:ann"
QUERIES = (
    "walrus migration",
    "kiwi",
    "how do otters sleep",
    "ferret OR kiwi",
    '"the walrus"',
    "zebra crossing",
    "otter",
)
ANIMALS = ("walrus", "otter", "ferret", "kiwi", "heron")


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("FINDLING_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("FINDLING_SEMANTIC_REFINE", "never")
    monkeypatch.setenv("FINDLING_SEMANTIC_MODEL", "none")
    root = tmp_path / "docs"
    root.mkdir()
    for number in range(20):
        animal = ANIMALS[number % len(ANIMALS)]
        (root / f"{animal}-{number}.md").write_text(
            f"# The {animal}, part {number}\n\nHow the {animal} sleeps.\n\nA migration of {number} weeks.\n"
        )
    return root


def _run(case: Callable[[], Coroutine[Any, Any, None]]) -> None:
    asyncio.run(asyncio.wait_for(case(), 60))


def _essence(answer: SearchAnswer) -> tuple[Any, ...]:
    """All of an answer but how long it took."""
    return (
        answer.hits,
        answer.total,
        answer.strategy,
        answer.unknown_terms,
        answer.notes,
        answer.quality,
        answer.degraded,
    )


def test_many_searches_at_once_answer_as_one_after_another(root: Path) -> None:
    with open_engine(root) as engine:
        engine.index()
        expected = {query: _essence(engine.search(query)) for query in QUERIES}

    async def case() -> None:
        async with AsyncEngine.open(root, threads=4) as engine:
            asked = QUERIES * 8
            answers = await asyncio.gather(*(engine.search(query) for query in asked))
        for query, answer in zip(asked, answers, strict=True):
            assert _essence(answer) == expected[query], query

    _run(case)


def test_searches_go_on_while_files_change_and_every_answer_is_one_of_a_state_that_was(root: Path) -> None:
    changing = root / "walrus-0.md"
    states = [f"# The walrus, state {number}\n\nplatypus{' echidna' * number}\n" for number in range(6)]
    changing.write_text(states[0])

    async def change(engine: AsyncEngine, done: asyncio.Event) -> None:
        for state in states[1:]:
            changing.write_text(state)
            await engine.index()
        done.set()

    async def ask(engine: AsyncEngine, done: asyncio.Event) -> list[SearchAnswer]:
        answers = []
        while not done.is_set():
            answers.append(await engine.search("platypus", refresh=False))
        return answers

    async def case() -> None:
        async with AsyncEngine.open(root, threads=4) as engine:
            await engine.index()
            done = asyncio.Event()
            asking = [asyncio.create_task(ask(engine, done)) for _ in range(4)]
            await change(engine, done)
            answers = [answer for own in await asyncio.gather(*asking) for answer in own]
            last = await engine.search("platypus", refresh=False)
        seen = {line.text for answer in answers for hit in answer for line in hit.lines if "platypus" in line.text}
        assert seen <= {state.splitlines()[2] for state in states}
        # The words may be a state ahead of the truth; then the hit is left out, and never shown as it was not.
        assert all(len(answer) <= 1 for answer in answers)
        assert [line.text for hit in last for line in hit.lines if "platypus" in line.text] == [
            states[-1].splitlines()[2]
        ]

    _run(case)


def test_rights_that_change_meanwhile_hold_from_the_next_question_on(root: Path) -> None:
    secret = Resource(rid="note:secret", type="note", title="Plan", path="secret", visibility=())

    async def ask(engine: AsyncEngine, done: asyncio.Event) -> set[int]:
        totals = set()
        while not done.is_set():
            answers = await asyncio.gather(*(engine.as_caller(ANN).search("quokka") for _ in range(2)))
            totals |= {answer.total for answer in answers}
        return totals

    async def case() -> None:
        async with AsyncEngine.open(root, threads=4) as engine:
            await engine.index()
            assert await engine.add([(secret, "quokka quokka")]) == 1
            ann, done = engine.as_caller(ANN), asyncio.Event()
            asking = [asyncio.create_task(ask(engine, done)) for _ in range(3)]
            for _ in range(4):
                await engine.run(lambda engine: engine.permissions.share("note:secret", ANN))
                assert (await ann.search("quokka")).total == 1
                assert (await engine.as_caller("user:bob").search("quokka")).total == 0
                await engine.run(lambda engine: engine.permissions.unshare("note:secret", ANN))
                assert (await ann.search("quokka")).total == 0
                with pytest.raises(NotFoundError):
                    await ann.fetch("note:secret")
            done.set()
            assert set().union(*await asyncio.gather(*asking)) <= {0, 1}

    _run(case)


def test_searches_that_refresh_take_in_new_files_while_others_index(root: Path) -> None:
    async def case() -> None:
        async with AsyncEngine.open(root, threads=4) as engine:
            await engine.index()
            for turn in range(5):
                (root / f"new-{turn}.md").write_text(f"an axolotl in its {turn}. year\n")
                indexing = asyncio.create_task(engine.index())
                answers = await asyncio.gather(*(engine.search("axolotl") for _ in range(6)))
                await indexing
                # A search that could not index the file answers from the index before it.
                assert {answer.total for answer in answers} <= {turn, turn + 1}
                assert (await engine.search("axolotl")).total == turn + 1

    _run(case)


def test_everything_else_answers_as_the_engine_does(root: Path) -> None:
    with open_engine(root) as engine:
        engine.index()
        name = engine.search("walrus").hits[0].rid
        document = engine.fetch(name)
        similar = engine.similar(name, 3)
        completions = engine.suggest("wal", 5)
        resources = list(engine.ls())
        verdict = engine.explain("walrus", name)
        status = engine.status()

    async def case() -> None:
        async with AsyncEngine.open(root) as engine:
            assert await engine.fetch(name) == document
            assert _essence(await engine.similar(name, 3)) == _essence(similar)
            assert await engine.suggest("wal", 5) == completions
            assert await engine.ls() == resources
            assert [resource.path for resource in await engine.ls("walrus-0.md")] == ["walrus-0.md"]
            assert (await engine.explain("walrus", name)).rank == verdict.rank
            assert (await engine.status()).resources == status.resources
            with pytest.raises(NotFoundError):
                await engine.fetch("nothing.md")
            everybody = engine.as_caller("user:nobody")
            assert everybody.principals == ("user:nobody",)
            assert await everybody.status() == {"resources": 0, "chunks": 0}
            assert await everybody.ls() == []
            assert await everybody.suggest("wal") == ()
            assert (await engine.run(lambda engine: engine.compact())) is not None
            with pytest.raises(InvalidValueError):
                engine.as_caller("ann")

    _run(case)


def test_stages_come_one_after_another(root: Path) -> None:
    async def case() -> None:
        async with AsyncEngine.open(root) as engine:
            await engine.index()
            stages = [(stage, answer) async for stage, answer in engine.search_in_stages("walrus", limit=3)]
            assert [stage for stage, _ in stages] == ["candidates", "reranked"]
            assert [hit.rid for hit in stages[-1][1]] == [hit.rid for hit in await engine.search("walrus", limit=3)]
            first = [stage async for stage, _ in engine.as_caller(ANN).search_in_stages("walrus", quick=True)]
            assert first == ["candidates"]

    _run(case)


def test_progress_is_told_in_the_event_loop(root: Path) -> None:
    told: list[tuple[str, int]] = []

    def note(progress: IndexProgress) -> None:
        told.append((progress.stage, threading.get_ident()))

    async def case() -> None:
        async with AsyncEngine.open(root) as engine:
            report = await engine.index(on_progress=note)
            assert report.added == 20
            assert told
            assert {ident for _, ident in told} == {threading.get_ident()}

    _run(case)


def test_a_cancelled_index_stops_and_is_finished_later(root: Path) -> None:
    for number in range(300):
        (root / f"more-{number}.md").write_text(f"one more page, the {number}. of them\n")

    async def case() -> None:
        async with AsyncEngine.open(root) as engine:
            has_begun = asyncio.Event()
            indexing = asyncio.create_task(engine.index(on_progress=lambda progress: has_begun.set()))
            await has_begun.wait()
            indexing.cancel()
            with pytest.raises(asyncio.CancelledError):
                await indexing
            report = await engine.index()
            assert (await engine.status()).resources == 320
            assert report.added > 0, "the run was stopped before its end"

    _run(case)


def test_more_than_may_wait_is_refused_and_nothing_is_lost(root: Path) -> None:
    async def case() -> None:
        async with AsyncEngine.open(root, threads=1, most_waiting=2) as engine:
            await engine.index()
            outcomes = await asyncio.gather(*(engine.search("walrus") for _ in range(12)), return_exceptions=True)
            refused = [outcome for outcome in outcomes if isinstance(outcome, BusyError)]
            answered = [outcome for outcome in outcomes if isinstance(outcome, SearchAnswer)]
            assert len(refused) + len(answered) == 12
            assert refused
            assert {answer.total for answer in answered} == {4}
            assert (await engine.search("walrus")).total == 4

    _run(case)


def test_errors_come_back_as_they_are(root: Path) -> None:
    async def case() -> None:
        async with AsyncEngine.open(root) as engine:
            with pytest.raises(NotIndexedError):
                await engine.search("walrus", refresh=False)
            with pytest.raises(findling.FindlingError, match="limit"):
                await engine.search("walrus", limit=-1)
        await engine.close()
        with pytest.raises(UsageError, match="not open"):
            await AsyncEngine.open(root).search("walrus")
        with pytest.raises(findling.FindlingError, match="nowhere"):
            async with AsyncEngine.open(root / "nowhere"):
                pass

    _run(case)


def test_a_closed_engine_says_so(root: Path) -> None:
    async def case() -> None:
        async with AsyncEngine.open(root) as engine:
            await engine.index()
            viewer = engine.as_caller(ANN)
        for ask in (
            lambda: engine.search("walrus"),
            lambda: engine.status(),
            lambda: engine.index(),
            lambda: engine.run(lambda engine: engine.compact()),
            lambda: viewer.search("walrus"),
            lambda: engine.__aenter__(),
        ):
            with pytest.raises(UsageError, match="the engine is closed") as refusal:
                await ask()
            assert "AsyncEngine.open" in refusal.value.hint

    _run(case)


def test_a_search_that_is_dropped_by_closing_says_so(root: Path) -> None:
    may_end = threading.Event()

    async def case() -> None:
        async with AsyncEngine.open(root, threads=1) as engine:
            await engine.index()
            changing = asyncio.create_task(engine.run(lambda engine: may_end.wait(PATIENCE_S)))
            queued = asyncio.create_task(engine.run(lambda engine: engine.compact()))
            while engine._changing.waiting < 1 or engine._changing.running < 1:
                await asyncio.sleep(0.001)
            closing = asyncio.create_task(engine.close())
            with pytest.raises(UsageError, match="the engine is closed"):
                await queued
            assert not closing.done()
            may_end.set()
            assert await changing
            await closing

    _run(case)


class _SlowToOpen:
    """Opens an engine as soon as it may, and keeps it, to see what becomes of it."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self.has_begun, self.may_end = threading.Event(), threading.Event()
        self.closed = False

    def __call__(self) -> findling.Engine:
        self.has_begun.set()
        assert self.may_end.wait(PATIENCE_S)
        engine = open_engine(self._root)
        engine.index()
        close = engine.close

        def noted() -> None:
            close()
            self.closed = True

        engine.close = noted  # type: ignore[method-assign]
        return engine


@pytest.mark.parametrize("times", [1, 2])
def test_an_open_that_is_cancelled_leaves_nothing_open(times: int, root: Path) -> None:
    slow = _SlowToOpen(root)

    async def case() -> None:
        engine = AsyncEngine(slow)
        opening = asyncio.create_task(engine.__aenter__())
        while not slow.has_begun.is_set():
            await asyncio.sleep(0.001)
        for _ in range(times):
            opening.cancel()
            await asyncio.sleep(0.02)
        slow.may_end.set()
        with pytest.raises(asyncio.CancelledError):
            await opening
        await engine.close()
        assert slow.closed
        with pytest.raises(UsageError, match="the engine is closed"):
            await engine.search("walrus")

    _run(case)
