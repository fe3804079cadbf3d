"""Errors of spelling are put right, identifiers as a whole; words of another language are left alone."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import findling
from findling.domain.plans import Plan

TEXTS = {
    "query.py": "def prefetch_related(self):\n    return getUserName(self, max_value)\n",
    "want.md": "What people want: the case of a base, and where they want it. The date was given to them.\n",
    "pool.md": "The connection pool waits, as it is busy.\n",
}


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[findling.Engine]:
    root: Path = tmp_path_factory.mktemp("texts")
    for name, text in TEXTS.items():
        (root / name).write_text(text)
    own = {"store.home": str(root.parent / "homes"), "semantic.refine": "never", "semantic.query_budget_ms": 0.0}
    with findling.open(root, settings=findling.Settings().override(own, "test")) as opened:
        opened.index()
        yield opened


def meant(engine: findling.Engine, query: str) -> dict[str, str]:
    answer = engine.search(query, refresh=False, plan=Plan(mode="keyword"))
    return {one.term: one.suggestion for one in answer.did_you_mean if one.applied}


@pytest.mark.parametrize(
    ("query", "term", "other"),
    [
        ("prefech_related", "prefech_related", "prefetch_related"),
        ("where is prefech_related()", "prefech_related", "prefetch_related"),
        ("prefechRelated", "prefechRelated", "prefetchRelated"),
        ("getUserNmae", "getUserNmae", "getUserName"),
        ("MAX_VALEU", "MAX_VALEU", "MAX_VALUE"),
        ("conection", "conection", "connection"),
    ],
)
def test_errors_inside_identifiers_are_put_right_as_a_whole(
    engine: findling.Engine, query: str, term: str, other: str
) -> None:
    assert meant(engine, query) == {term: other}
    answer = engine.search(query, refresh=False, plan=Plan(mode="keyword"))
    assert answer.hits
    assert answer.did_you_mean[0].query == query.replace(term, other)


def test_an_identifier_that_the_index_has_not_as_a_whole_is_left_alone(engine: findling.Engine) -> None:
    assert meant(engine, "prefech_value") == {}


@pytest.mark.parametrize(
    "query", ["wann", "Wann wurde die Brücke gebaut", "Käse", "wanr", "quand est le conectionn", "Wer baute die poool"]
)
def test_words_of_another_language_are_no_errors(engine: findling.Engine, query: str) -> None:
    assert meant(engine, query) == {}


def test_an_index_that_speaks_the_language_corrects_it(engine: findling.Engine, tmp_path: Path) -> None:
    (tmp_path / "text.md").write_text(
        "Der Fluss und die Brücke: das ist den Leuten, dem Dorf und des Landes ein Stolz, eine Freude, einen Weg.\n"
    )
    own = {"store.home": str(tmp_path / "home"), "semantic.refine": "never"}
    with findling.open(tmp_path, settings=findling.Settings().override(own, "test")) as german:
        german.index()
        assert meant(german, "Wann wurde die Brrücke gebaut") == {"Brrücke": "brucke"}


def test_unknown_words_are_shown_as_they_were_typed(engine: findling.Engine) -> None:
    answer = engine.search("Käse Zürich xyzzyx", refresh=False, plan=Plan(mode="keyword"))
    assert answer.unknown_terms == ("Käse", "Zürich", "xyzzyx")
    answer = engine.search("iPhone of ThreadPuulExcutor", refresh=False, plan=Plan(mode="keyword"))
    assert answer.unknown_terms == ("iPhone", "ThreadPuulExcutor"), "each once, parts and all"
