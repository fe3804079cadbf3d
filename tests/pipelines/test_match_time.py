"""Expressions that try too many ways end, in the main thread and in others, and the answer says so."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import findling
from findling.domain.budgets import WorkBudget, spending
from findling.domain.errors import OverdueError
from findling.domain.reports import GrepAnswer, GrepRequest
from findling.pipelines.exact import grep
from findling.pipelines.retrieve import match_time
from findling.pipelines.retrieve.match_time import MatchTime
from findling.service.engine.engine import Engine
from findling.service.settings.settings import load_settings
from tests.processes import PATIENCE_S

ENDLESS = "(a+)+$"


@pytest.fixture
def engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Engine]:
    monkeypatch.setattr(grep, "_FIRST_S", 0.3)
    root = tmp_path / "tree"
    root.mkdir()
    (root / "fine.txt").write_text("aaa\nbanana and more\n")
    (root / "long.txt").write_text("a" * 60 + "!\n")
    changes = {"store.home": str(tmp_path / "home"), "search.mode": "keyword"}
    with findling.open(root, settings=load_settings(root).override(changes, "test")) as opened:
        opened.index()
        yield opened
    match_time._end_idle()


def here(work: Callable[[], object]) -> object:
    return work()


def in_a_thread(work: Callable[[], object]) -> object:
    """The result of work in a thread, while which this one goes on."""
    found: list[object] = []
    thread = threading.Thread(target=lambda: found.append(work()), daemon=True)
    thread.start()
    turns, end = 0, time.monotonic() + PATIENCE_S
    while thread.is_alive() and time.monotonic() < end:
        time.sleep(0.001)
        turns += 1
    assert found and turns
    return found[0]


PLACES = pytest.mark.parametrize("place", [here, in_a_thread])


@PLACES
def test_a_grep_that_would_never_end_is_cut_and_says_so(engine: Engine, place: Callable[..., object]) -> None:
    answer = place(lambda: engine.exact.grep(GrepRequest(patterns=(ENDLESS,)), refresh=False))
    assert isinstance(answer, GrepAnswer)
    assert [file.path for file in answer.files] == ["fine.txt"] and answer.is_cut
    (late,) = answer.degraded
    assert late.what == "the pattern '(a+)+$' takes too long: it was ended in long.txt; lines may be missing"
    assert "without a repetition inside" in late.fix


@PLACES
def test_a_query_that_would_never_end_says_so(engine: Engine, place: Callable[..., object]) -> None:
    answer = place(lambda: engine.search(f"/{ENDLESS}/", refresh=False))
    assert isinstance(answer, findling.SearchAnswer)
    assert [hit.path for hit in answer] == ["fine.txt"]
    assert any("takes too long" in one.what for one in answer.degraded)


@PLACES
def test_an_expression_with_repetitions_finds_the_same_everywhere(engine: Engine, place: Callable[..., object]) -> None:
    asked = GrepRequest(patterns=(r"\b\w+na\b.*",), only_matching=True)
    answer = place(lambda: engine.exact.grep(asked, refresh=False))
    assert isinstance(answer, GrepAnswer) and not answer.degraded
    assert [(file.path, [line.spans for line in file.lines]) for file in answer.files] == [("fine.txt", [((0, 15),)])]


@PLACES
def test_the_deadline_of_an_answer_counts_within_a_text(engine: Engine, place: Callable[..., object]) -> None:
    def late() -> object:
        with spending(WorkBudget(timeout_s=0.3)), MatchTime(ENDLESS) as clock:
            with pytest.raises(OverdueError, match="takes too long"):
                clock.run(_searched, ENDLESS, "a" * 60 + "!")
            return True

    assert place(late)


def test_a_mistake_elsewhere_is_raised_here(engine: Engine) -> None:
    def wrong() -> object:
        with MatchTime(ENDLESS) as clock, pytest.raises(ZeroDivisionError):
            clock.run(divmod, 1, 0)
        return True

    assert in_a_thread(wrong)


@PLACES
def test_an_endless_expression_ends_once_for_all_hits_and_patterns(
    engine: Engine, place: Callable[..., object]
) -> None:
    """`'import OR /(a+)+$/' -l` on 12 tiny files ran for more than 300 s: a clock for each hit and pattern."""
    for number in range(12):
        (engine.root / f"{number}.txt").write_text("import banana\n" + "a" * 60 + "!\n")
    engine.index()
    budget = WorkBudget()

    def ask() -> object:
        with spending(budget):
            return engine.search(f"import OR /{ENDLESS}/ OR /(b|a)*c/ OR /(a*)*d/", refresh=False, limit=100)

    answer = place(ask)
    assert isinstance(answer, findling.SearchAnswer)
    assert len([hit for hit in answer if "import" in hit.lines[0].text]) == 12
    assert sum("takes too long" in one.what for one in answer.degraded) == 1
    assert any("the time for patterns was over" in one.what for one in answer.degraded)
    assert ENDLESS in budget.ended and budget.matching_s <= 0


@PLACES
def test_an_endless_expression_leaves_time_for_the_literal_behind_it(
    engine: Engine, place: Callable[..., object]
) -> None:
    """`/[A-Z]{2,}_\\w+/ case:no OR "new_N"` said of both that not all texts were read."""
    (engine.root / "endless.txt").write_text("a" * 60 + "!\n")
    (engine.root / "fruit.txt").write_text("banana = 1\n")
    engine.index()
    answer = place(lambda: engine.search(f'/{ENDLESS}/ OR "banana =" case:yes', refresh=False))
    assert isinstance(answer, findling.SearchAnswer)
    assert "fruit.txt" in [hit.path for hit in answer]
    assert len(answer.degraded) == 1 and ENDLESS in answer.degraded[0].what
    first, second = [step for step in answer.plan["steps"] if "exact" in step.values()]
    assert ENDLESS in str(first) and "banana" in str(second)


@PLACES
def test_an_endless_expression_that_excludes_ends_and_says_so(engine: Engine, place: Callable[..., object]) -> None:
    answer = place(lambda: engine.search("ext:txt", exclude_pattern=ENDLESS, refresh=False))
    assert isinstance(answer, findling.SearchAnswer)
    assert any("passages that it excludes may be there" in one.what for one in answer.degraded)


def test_names_of_files_alone_make_no_lines(engine: Engine) -> None:
    changes = {"store.home": str(engine.home.parent), "search.mode": "keyword", "search.snippet_lines": 0}
    with findling.open(engine.root, settings=load_settings(engine.root).override(changes, "test")) as opened:
        (hit,) = opened.search("/ban.na/ banana", refresh=False)
    assert (hit.path, hit.lines, hit.receipt.matches[0].count) == ("fine.txt", (), 1)


def _searched(expression: str, text: str) -> bool:
    import re

    return re.search(expression, text) is not None
