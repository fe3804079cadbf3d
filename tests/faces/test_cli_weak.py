"""Weaker matches, empty answers and the plan, as they are seen in a terminal."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

Findling = Callable[..., tuple[int, str, str]]


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    root = tmp_path / "2"
    root.mkdir()
    (root / "packing.md").write_text("Socks, a torch and a rope.\n")
    for number in range(100, 130):
        (root / f"day-{number}.md").write_text(f"The weather was dull on day {number}, and dull it remained.\n")
    return root


def test_weaker_matches_are_counted_and_shown_on_demand(tree: Path, findling: Findling) -> None:
    code, out, _ = findling("packing.md 2", str(tree), "--json")
    answer = json.loads(out)
    assert (code, [hit["path"] for hit in answer["hits"]]) == (0, ["packing.md"])
    assert (answer["total"], answer["weaker"]) == (1, 30)
    _, out, _ = findling("packing.md 2", str(tree), "--weak", "--json")
    answer = json.loads(out)
    assert (answer["total"], answer["weaker"]) == (31, 0)


def test_counting_ends_and_the_answer_says_so(tree: Path, findling: Findling, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("findling.pipelines.retrieve.retrieval._COUNTED", 10)
    monkeypatch.setattr("findling.pipelines.retrieve.retrieval.COMPARED", 0)  # or all 30 are known at once
    counts = {}
    for limit in (5, 20, 50):
        answer = json.loads(findling("dull weather", str(tree), "--json", "--limit", str(limit))[1])
        counts[limit] = answer["total"], answer["weaker"], answer["total_is_exact"]
        assert len(answer["hits"]) == min(limit, 30)
    assert counts == {5: (15, 0, False), 20: (26, 0, False), 50: (30, 0, True)}
    assert json.loads(findling("packing.md 2", str(tree), "--json")[1])["total_is_exact"]
    assert "at least 15 matches; quality" in findling("dull weather", str(tree), "--explain", "--limit", "5")[1]


def test_gibberish_finds_nothing(tree: Path, findling: Findling) -> None:
    code, out, err = findling("zxcmnbvqw asdkjhqwe", str(tree))
    assert (code, out) == (1, ""), err


def test_the_plan_is_told_in_a_handful_of_lines(tree: Path, findling: Findling) -> None:
    _, out, _ = findling("packing.md 2", str(tree), "--explain")
    rows = out.partition("\nplan\n")[2].splitlines()
    assert 3 <= len(rows) < 8
    assert any("1 match, 30 weaker ones left out" in row for row in rows)
