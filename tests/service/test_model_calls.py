"""Calls of a model: one a search, for the query, when it has read all passages."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

import findling
from findling.models.local.onnx_session import OnnxSession, TokenRow

SUBJECTS = ("bread", "harbour", "tax", "violin", "volcano", "compiler", "glacier", "vaccine", "chess", "ferry")


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, ...]]:
    """The rows of tokens that the real model was given, in order."""
    given: list[tuple[int, ...]] = []
    run = OnnxSession.run

    def counted(self: OnnxSession, row: TokenRow) -> NDArray[np.float32]:
        given.append(tuple(row.ids))
        return run(self, row)

    monkeypatch.setattr(OnnxSession, "run", counted)
    return given


def settings_of(tmp_path: Path) -> findling.Settings:
    values = {
        "store.home": str(tmp_path / "home"),
        "semantic.threads": 1,
        "semantic.query_budget_ms": 60_000.0,
    }
    return findling.Settings().override(values, "test")


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    root = tmp_path / "tree"
    root.mkdir()
    for number, subject in enumerate(SUBJECTS * 3):
        (root / f"{number}.md").write_text(f"Note {number} tells of the {subject} and of nothing else.\n")
    return root


@pytest.mark.parametrize("query", ["the bread", "kubernetes ingress", "tax -violin", '"tells of" ferry', "note* 7~"])
def test_a_search_asks_the_model_once_when_all_is_read(
    tree: Path, tmp_path: Path, runs: list[tuple[int, ...]], query: str
) -> None:
    with findling.open(tree, settings=settings_of(tmp_path)) as engine:
        engine.index()
        engine.refine()
        runs.clear()
        engine.search(query)
        assert len(runs) == 1
        engine.search(query, limit=3)
        assert len(runs) == 1


def test_no_passage_is_read_twice(tree: Path, tmp_path: Path, runs: list[tuple[int, ...]]) -> None:
    with findling.open(tree, settings=settings_of(tmp_path)) as engine:
        engine.index()
        for query in ("the bread", "kubernetes ingress", "an old ship", "music for strings", "mountains of fire"):
            engine.search(query)
        engine.refine()
    assert len(runs) == len(set(runs)) == len(SUBJECTS) * 3 + 5


def test_vectors_of_mixed_batches_do_not_serve(tree: Path, tmp_path: Path) -> None:
    """Until 0.6.0 texts were read in company, and the fingerprint did not say how."""
    with findling.open(tree, settings=settings_of(tmp_path)) as engine:
        engine.index()
        engine.refine()
        assert engine.status().meaning["read"] == 30
        (alone,) = engine._files.store.models()
        file = engine.home / "index.sqlite"
    old = alone.removesuffix(":alone")
    with closing(sqlite3.connect(file)) as connection, connection:
        connection.execute("UPDATE models SET fingerprint = ?", (old,))
        connection.execute("INSERT INTO meta (key, value) VALUES (?, 'auto')", (f"chosen by {old}",))
    with findling.open(tree, settings=settings_of(tmp_path)) as engine:
        assert engine._files.store.coverage(old) == (30, 30)
        assert engine.status().meaning["read"] == 0
        assert engine.search("the bread", quick=True).meaning["coverage"] == 0
