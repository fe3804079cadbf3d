"""One budget for an answer: what is counted against it, that it ends the work, and that the answer says so."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

import findling
from findling.domain.budgets import WorkBudget, current_budget, spending
from findling.domain.plans import Plan
from findling.domain.queries import SearchRequest

PASSAGES = 300
LETTERS = "bcdfghjklm"


def name_of(number: int) -> str:
    """A word of letters alone, another one for each number."""
    return "number" + "".join(LETTERS[int(digit)] for digit in str(number))


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[findling.Engine]:
    root = tmp_path_factory.mktemp("budget") / "tree"
    root.mkdir()
    for number in range(PASSAGES):
        text = f"# Note {number}\n\npool budget {name_of(number)}" + " token" * (number % 7)
        (root / f"{number}.md").write_text(f"{text}\n")
    settings = findling.Settings().override(
        {"store.home": str(root.parent / "home"), "search.mode": "keyword", "search.refresh": "never"}, "test"
    )
    with findling.open(root, settings=settings) as opened:
        opened.index()
        yield opened


KEYWORD = Plan(mode="keyword", glossary=False)


def sentences(answer: findling.SearchAnswer) -> str:
    return " | ".join(one.what for one in answer.degraded)


def test_a_kind_of_work_is_granted_until_it_is_used_up() -> None:
    budget = WorkBudget(read=10)
    assert budget.take("read", 7, "seven") == 7
    assert budget.refused == []
    assert budget.take("read", 7, "three") == 3
    assert budget.take("read", 7, "three") == 0
    assert budget.refused == ["three"]


def test_the_processor_time_of_every_thread_counts() -> None:
    budget = WorkBudget(cpu_s=0.05)

    def work() -> None:
        with spending(budget):
            while not budget.is_over("the rest"):
                sum(range(1000))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert budget.is_over()
    assert budget.cpu_s >= 0.05
    assert budget.refused == ["the 0.05 CPU seconds for an answer were over: the rest"]


def test_what_is_charged_counts() -> None:
    budget = WorkBudget(cpu_s=1.0)
    assert not budget.is_over()
    budget.charge(1.0)
    assert budget.is_over()


def test_an_earlier_deadline_holds() -> None:
    budget = WorkBudget(timeout_s=100)
    first = budget.deadline
    budget.end_within(1000)
    assert budget.deadline == first
    budget.end_within(1)
    assert first is not None
    assert budget.deadline is not None
    assert budget.deadline < first


def test_all_work_for_an_answer_draws_on_the_budget_that_came_first() -> None:
    with spending(WorkBudget(read=5)) as outer, spending(WorkBudget(read=50)) as inner:
        assert inner is outer
        assert current_budget() is outer
    assert current_budget() is not outer


def test_spellings_are_compared_as_long_as_the_budget_lasts(engine: findling.Engine) -> None:
    query = " OR ".join(f"{name_of(number)}x~2" for number in range(100, 160))
    request = SearchRequest(query=query, plan=KEYWORD)
    with spending(WorkBudget(compared=3000)) as budget:
        few = engine.search(request)
    assert 0 <= budget.left["compared"] < 3000
    assert "some were looked for as they are written" in sentences(few)
    assert few.quality == "reduced"
    assert few.total > 0
    assert "as they are written" not in sentences(engine.search(SearchRequest(query="numberbcdx~2", plan=KEYWORD)))


def test_the_same_spelling_is_paid_for_once(engine: findling.Engine) -> None:
    """A leaf is built for the search, for the words that nobody wrote and for the scores."""
    with spending(WorkBudget()) as once:
        engine.search(SearchRequest(query="numberbcdx~2", plan=KEYWORD))
    with spending(WorkBudget()) as grown:
        engine.search(SearchRequest(query="numberbcdx~2 numberbcdx~2", limit=200, plan=replace(KEYWORD, boosts=True)))
    assert once.left["compared"] == grown.left["compared"] < WorkBudget().left["compared"]


@pytest.mark.parametrize("stage", [{"boosts": True}, {"diversity": 0.5}, {"phrase_boost": 2.0}])
def test_stages_read_as_many_passages_as_the_budget_has(engine: findling.Engine, stage: dict[str, float]) -> None:
    plan = replace(KEYWORD, overfetch=100.0, **stage)  # type: ignore[arg-type]
    with spending(WorkBudget(read=40)) as budget:
        answer = engine.search(SearchRequest(query="pool", limit=50, plan=plan))
    assert budget.left["read"] == 0
    assert len(answer) == 50
    assert "for the best passages alone" in sentences(answer)


@pytest.mark.parametrize("request_", [{"offset": 250}, {"limit": 200}, {"min_score": 0.99, "limit": 100}])
def test_no_more_candidates_are_looked_at_than_the_budget_has(
    engine: findling.Engine, request_: dict[str, Any]
) -> None:
    with spending(WorkBudget(candidates=120)):
        request = SearchRequest(query="pool", plan=replace(KEYWORD, overfetch=1000.0))
        answer = engine.search(request, **request_)
    assert len(answer) <= 120
    assert "only the best 120 passages were looked at" in sentences(answer) or request_.get("min_score")


def test_an_answer_without_time_is_short_and_goes_on(engine: findling.Engine) -> None:
    """The work ends with the budget: one hit is shown, and the cursor asks for those behind it."""
    budget = WorkBudget(cpu_s=1000.0)
    budget.charge(1000.0)
    request = SearchRequest(query="pool budget", limit=5, plan=replace(KEYWORD, diversity=0.5))
    with spending(budget):
        first = engine.search(request)
    assert len(first) == 1
    assert "the page is shorter than was asked for" in sentences(first)
    assert "was not spread" in sentences(first)
    second = engine.search(replace(request, cursor=first.next_cursor))
    assert len(second) == 5
    assert first.hits[0].id not in [hit.id for hit in second]


def test_completions_do_not_repeat_a_long_text_a_thousand_times(engine: findling.Engine) -> None:
    typed = "token " * 1200 + "numb"
    found = engine.suggest(typed, limit=1000)
    assert sum(len(one.text) for one in found) < 3 * len(typed)
    assert len(engine.suggest("numb", limit=1000)) > 200


def test_work_in_a_thread_of_its_own_draws_on_the_same_budget() -> None:
    from findling.domain.budgets import finished_by

    with spending(WorkBudget()) as budget:
        assert finished_by(time.perf_counter() + 60, current_budget) is budget


def test_the_beginning_of_an_endless_query_is_read(engine: findling.Engine) -> None:
    answer = engine.search(SearchRequest(query="pool " * 100_000, plan=KEYWORD))
    assert "the first 10,000 were read" in sentences(answer)
    assert answer.total == PASSAGES
