"""A provider that does not answer must not keep an answer waiting."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import findling
from findling.domain import budgets
from findling.domain.budgets import finished_by
from findling.domain.errors import OverdueError
from tests.processes import PATIENCE_S, in_time

if TYPE_CHECKING:
    from tests.models.conftest import ProviderServer


def engine_with(server: ProviderServer, tmp_path: Path, **more: object) -> findling.Engine:
    root = tmp_path / "tree"
    root.mkdir(parents=True)
    (root / "pool.md").write_text("The pool hands out database connections.\n")
    (root / "tea.md").write_text("Tea is poured at four.\n")
    values = {"store.home": str(tmp_path / "home"), "remote.timeout_s": 30.0, "semantic.query_budget_ms": 0.0}
    return findling.open(root, settings=findling.Settings().override({**values, **more}, "test"))


def test_words_answer_when_the_model_takes_too_long(server: ProviderServer, tmp_path: Path) -> None:
    chosen = {"semantic.model": "openai:text-embedding-3-small", "semantic.base_url": server.url}

    def ask(seconds: float) -> None:
        with engine_with(server, tmp_path / str(seconds), **chosen) as engine:
            engine.index()
            engine.refine()
            early = engine.search("database pool", timeout_s=PATIENCE_S)
            assert early.strategy == "hybrid"
            assert not early.degraded
            server.then_wait()
            late = engine.search("database connections", timeout_s=seconds)
            assert [hit.path for hit in late] == ["pool.md"]
            assert late.strategy == "keyword"
            assert late.quality == "reduced"
            left_out = f"the {seconds:g} s for an answer were over: words alone were searched"
            assert [note.what for note in late.degraded] == [left_out]

    in_time(ask, 1.5)
    server.released.set()


def test_instant_vectors_need_no_thread(
    server: ProviderServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with engine_with(server, tmp_path, **{"semantic.model": "none"}) as engine:
        engine.index()
        engine.search("tea")

        def refuse(*_: object) -> None:
            raise AssertionError("a thread was started")

        monkeypatch.setattr("findling.pipelines.answer.search.finished_by", refuse)
        answer = engine.search("database connections", timeout_s=PATIENCE_S)
        assert (answer.strategy, answer.meaning["speed"]) == ("hybrid", "instant")


def test_a_reranker_that_takes_too_long_is_done_without(server: ProviderServer, tmp_path: Path) -> None:
    chosen = {"semantic.model": "none", "rerank.model": "cohere:rerank-v3.5", "rerank.base_url": server.url}

    def ask(seconds: float) -> None:
        with engine_with(server, tmp_path / str(seconds), **chosen) as engine:
            engine.index()
            server.then_wait()
            late = engine.search("database pool", timeout_s=seconds, facets=("ext",))
            assert [hit.path for hit in late] == ["pool.md"]
            # It took all of the time: words alone answered, on a shorter page, without facets.
            assert [note.what for note in late.degraded] == ["there was time to judge 0 of the best 1 hits"]
            assert (late.strategy, late.facets) == ("hybrid", {"ext": {".md": 1}})
            asked = len(server.received)
            assert not engine.search("database pool", quick=True).degraded
            assert len(server.received) == asked

    in_time(ask, 1.5)
    server.released.set()


def test_a_viewer_gives_a_quick_answer_first(server: ProviderServer, tmp_path: Path) -> None:
    chosen = {"semantic.model": "none", "rerank.model": "cohere:rerank-v3.5", "rerank.base_url": server.url}
    with engine_with(server, tmp_path, **chosen) as engine:
        engine.index()
        stages = list(findling.Viewer(engine, None).search_in_stages("database pool"))
        assert [name for name, _ in stages] == ["candidates", "reranked"]
        steps = [[step.name for step in answer.hits[0].receipt.steps] for _, answer in stages]
        assert steps == [[], ["rerank"]]


def test_what_fails_in_time_fails_as_it_would_without_a_limit() -> None:
    def fail() -> None:
        raise ValueError("as it is")

    with pytest.raises(ValueError, match="as it is"):
        finished_by(time.perf_counter() + PATIENCE_S, fail)
    with pytest.raises(OverdueError):
        finished_by(time.perf_counter() - 1, list)


def test_late_work_does_not_pile_up(monkeypatch: pytest.MonkeyPatch) -> None:
    import threading

    monkeypatch.setattr(budgets, "_late", set())
    release, begun = threading.Event(), []

    def wait() -> None:
        begun.append(1)
        release.wait(PATIENCE_S)

    while len(budgets._late) < 16:
        with pytest.raises(OverdueError):
            finished_by(time.perf_counter() + 0.01, wait)
    with pytest.raises(OverdueError):
        finished_by(time.perf_counter() + PATIENCE_S, wait)
    release.set()
    while budgets._late:
        time.sleep(0.01)
    assert len(begun) == 16
    assert finished_by(time.perf_counter() + PATIENCE_S, lambda: 7) == 7
