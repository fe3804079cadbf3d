"""Fuzzing: every input gets an answer or an error that says what to do, and the server keeps running."""

from __future__ import annotations

import asyncio
import random
import string
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from hypothesis import HealthCheck, Phase, example, given, settings
from hypothesis import strategies as st
from mcp import Client

from findling.faces.mcp.tools.budget import Budget, compact_json, count_tokens, fit_answer, fit_facts, fit_text
from tests.counts import tries
from tests.faces.mcp_desks import Served, make_project, served, text_of

FAULT = "this is a fault in findling"


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with served(make_project(Path(tmp_path_factory.mktemp("fuzz")) / "project"), mcp__write=True) as one:
        one.engine.index()
        yield one


def tried(count: int) -> settings:
    return settings(
        max_examples=count,
        deadline=None,
        phases=[Phase.explicit, Phase.generate],
        suppress_health_check=[*HealthCheck],
        database=None,
    )


_texts = st.one_of(
    st.text(max_size=30),
    st.sampled_from(
        ["", "login", "src/auth.py", "file:docs/guide.md", "docs/guide.md:3", ":", "a:999999999999", "../x"]
    ),
    st.sampled_from(
        ["((((", '"', "-", "OR OR", "type:", "a NEAR", "\x00", "\ud800", "数" * 50, "x" * 5000, "~~*", "2026"]
    ),
)
_values = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), _texts),
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(_texts, inner, max_size=4)),
    max_leaves=8,
)
_names_of = {
    "search": ["query", "limit", "mode", "filters", "item_type", "cursor", "detail", "max_chars"],
    "fetch": ["id", "offset", "max_chars", "context_lines"],
    "explain": ["query", "id"],
    "similar": ["id", "limit", "max_chars"],
    "related": ["of", "to", "limit"],
    "status": [],
    "remember": ["text", "tags", "importance", "source", "until"],
    "memory": ["action", "text", "older", "at"],
}
_fitting: dict[str, st.SearchStrategy[Any]] = {
    **dict.fromkeys(("query", "source", "until", "older", "at", "of", "to"), _texts),
    "action": st.sampled_from(["recall", "review", "history", "undo", "keep", "merge", "supersede"]),
    "id": _texts,
    "of": _texts,
    "to": _texts,
    "text": _texts,
    "limit": st.integers(1, 50),
    "mode": st.sampled_from(["auto", "keyword", "hybrid", "semantic"]),
    "filters": st.fixed_dictionaries(
        {},
        optional={
            **{
                name: st.lists(_texts, max_size=3)
                for name in ("ext", "not_ext", "path", "type", "lang", "tag", "author")
            },
            "after": _texts,
            "before": _texts,
        },
    ),
    "item_type": st.sampled_from(["any", "directive", "tool", "knowledge"]),
    "cursor": _texts,
    "detail": st.sampled_from(["concise", "full"]),
    "max_chars": st.integers(1000, 9000),
    "offset": st.integers(0, 200),
    "context_lines": st.integers(0, 20),
    "tags": st.lists(_texts, max_size=3),
    "importance": st.floats(0, 1),
}


@st.composite
def _calls(draw: st.DrawFn) -> tuple[str, dict[str, Any]]:
    """A call that mostly fits, or does not fit at all."""
    tool = draw(st.sampled_from(list(_names_of)))
    names = _names_of[tool]
    arguments = {
        name: draw(_fitting[name]) for name in names if draw(st.integers(0, 3)) or name in ("query", "id", "of")
    }
    for name in draw(st.lists(st.one_of(st.sampled_from(names or ["x"]), st.text(max_size=8)), max_size=1)):
        arguments[name] = draw(_values)
    return tool, arguments


@tried(tries(10, short=4))
@given(calls=st.lists(_calls(), min_size=12, max_size=12), era=st.sampled_from(["auto", "legacy"]))
def test_any_arguments(shop: Served, calls: list[tuple[str, dict[str, Any]]], era: str) -> None:
    async def ask() -> None:
        async with Client(shop.server, mode=era) as client:
            for name, arguments in calls:
                try:
                    result = await client.call_tool(name, arguments)
                except ValueError:  # what the client itself cannot send, such as half a character
                    continue
                said = text_of(result)
                assert said
                assert not said.startswith(FAULT)
                if result.is_error:
                    assert "Traceback" not in said
                    assert len(said) < 5000
                else:
                    assert count_tokens(said) <= 8000
            assert not (await client.call_tool("search", {"query": "login"})).is_error

    asyncio.run(ask())


def _any_text(chance: random.Random, most: int) -> str:
    letters = chance.choice([string.printable, "äöüßéñ ", "数据库连接中 ", "бюджет\n", '"\\\x01'])
    return "".join(chance.choices(letters, k=chance.randint(0, most)))


def _any_result(chance: random.Random) -> dict[str, Any]:
    path = chance.choice(["", "docs/" * 200, "長い名前の文書/" * 80]) + f"{chance.randint(0, 99)}.md"
    return {
        "id": f"file:{path}",
        "passage": f"{chance.randint(0, 1 << 63):016x}",
        "title": _any_text(chance, 160),
        "url": f"file:///{quote(path)}",
        "path": path,
        "lines": chance.choice(["", "3-9", "Sheet with a long name!" * 9]),
        "snippet": _any_text(chance, 900),
        "preview": _any_text(chance, 160),
        "why": [_any_text(chance, 60) for _ in range(chance.randint(1, 5))],
        "metadata": {"heading": _any_text(chance, 200)},
    }


@tried(tries(60, short=20))
@given(seed=st.integers(0, 10**9))
@example(seed=30137)  # no results, and too much beside them
def test_an_answer_always_fits(seed: int) -> None:
    chance = random.Random(seed)
    document: dict[str, Any] = {
        "results": [_any_result(chance) for _ in range(chance.randint(0, 20))],
        "understood_as": _any_text(chance, 300),
        "notes": [_any_text(chance, 300) for _ in range(chance.randint(0, 5))],
        "truncated": False,
        "left_out": "",
        "next_cursor": "x" * 160,
    }
    budget = Budget(chance.randint(500, 3000), chance.randint(1000, 9000))
    best = [result["snippet"].partition("\n")[0] for result in document["results"]]
    fitted, kept = fit_answer(document, budget, best)
    assert budget.allows(fitted)
    assert len(fitted["results"]) == kept >= min(1, len(document["results"]))
    shown = [result["passage"] for result in fitted["results"]]
    assert shown == [result["passage"] for result in document["results"][:kept]]
    for result, was in zip(fitted["results"], document["results"], strict=False):
        assert result["id"] in (was["id"], was["passage"])
    assert fitted["truncated"] is (fitted != document)
    assert bool(fitted["left_out"]) is (fitted != document)


@tried(tries(60, short=20))
@given(seed=st.integers(0, 10**9))
def test_a_text_is_cut_where_it_fits(seed: int) -> None:
    chance = random.Random(seed)
    document = {"id": "file:a.md", "text": _any_text(chance, 9000)}
    budget = Budget(chance.randint(500, 3000), 1 << 30)
    fitted = fit_text(document, "text", budget)
    assert budget.allows(fitted)
    assert document["text"].startswith(fitted["text"])
    if fitted != document:
        longer = {**document, "text": document["text"][: len(fitted["text"]) * 13 // 10 + 10]}
        assert not budget.allows(longer)


def test_facts_go_by_their_length() -> None:
    document = {"id": "a" * 300, "reasons": ["b" * 2000], "why": ["c" * 900], "rank": 3}
    assert fit_facts(document, Budget(500, 1 << 30), kept=("id",)) == {**document, "reasons": []}
    assert fit_facts(document, Budget(100, 1 << 30), kept=("id",)) == {**document, "reasons": [], "why": []}


def test_tokens_are_counted_high() -> None:
    assert count_tokens("") == 0
    assert count_tokens("abcde") == 2
    assert count_tokens("数据库") == 3
    assert count_tokens("é") == 1
    assert compact_json({"a": ["é", 1]}) == '{"a":["é",1]}'
    assert compact_json("\ud800") == '"?"'
