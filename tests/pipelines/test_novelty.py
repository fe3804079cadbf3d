"""What stands everywhere counts less: licence heads, quoted mail, lists of links, headings alone; and says so."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from findling.domain.plans import Plan
from findling.domain.queries import SearchRequest
from findling.domain.resources import Resource
from findling.domain.results import Hit, Step
from findling.service.engine.engine import Engine, open_engine
from findling.service.settings.settings import Settings

HEAD = """# Copyright 2020 The Authors. All rights reserved.
# Redistribution and use in source and binary forms are permitted.
# This software comes without warranty of any kind.
"""
FOOT = (
    "\n\nKind regards\nErika Mustermann, Example Ltd\nThis message is confidential and meant for its receiver only.\n"
)
LINKS = "Home of all\nNews of today\nAll our products\nPrices for you\nContact to us\nImprint and law\nYour account\n"


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[Engine]:
    root = tmp_path / "root"
    root.mkdir()
    own = {"store.home": str(tmp_path / "home"), "semantic.model": "none", "permissions.unset": "public"}
    with open_engine(root, settings=Settings().override(own, "test")) as opened:
        yield opened


def put(engine: Engine, texts: dict[str, str], visibility: tuple[str, ...] | None = None) -> None:
    engine.add([(Resource(rid=rid, type="note", visibility=visibility), text) for rid, text in texts.items()])


def asked(engine: Engine, query: str, *, novelty: bool = True, mode: str = "keyword") -> list[Hit]:
    request = SearchRequest(query=query, plan=Plan(mode=mode, novelty=novelty, typos="ignore", weak=True))
    return list(engine.search(request, refresh=False))


def held_back(hit: Hit) -> Step | None:
    return next((step for step in hit.receipt.steps if step.name == "novelty"), None)


def code(number: int) -> str:
    return f"{HEAD}\ndef function{number}(argument):\n    return argument + {number}\n"


def test_words_in_a_licence_head_count_half_and_the_receipt_says_so(engine: Engine) -> None:
    put(engine, {f"file{number}": code(number) for number in range(6)})
    rest = " ".join(f"word{number}" for number in range(90))
    put(engine, {"law": f"We pack forms that are binary, for redistribution on demand. {rest}\n"})
    before = asked(engine, "redistribution of binary forms", novelty=False)
    assert before[0].rid != "law"
    hits = asked(engine, "redistribution of binary forms")
    assert hits[0].rid == "law"
    assert held_back(hits[0]) is None
    step = held_back(hits[1])
    assert step is not None
    assert step.factor == pytest.approx(0.5)
    assert "6 passages" in step.reason
    for hit in hits:
        assert hit.receipt.final_score == pytest.approx(hit.receipt.recomputed(), abs=1e-4)
    assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)


def test_words_beside_the_head_count_in_full(engine: Engine) -> None:
    put(engine, {f"file{number}": code(number) for number in range(6)})
    assert all(held_back(hit) is None for hit in asked(engine, "function3 argument"))


def test_a_question_for_the_licence_finds_the_licence(engine: Engine) -> None:
    put(engine, {f"file{number}": code(number) for number in range(6)})
    for query in ("which copyright has it", "warranty of the software", "license redistribution"):
        hits = asked(engine, query)
        assert hits
        assert all(held_back(hit) is None for hit in hits)


def test_a_head_of_few_files_is_none(engine: Engine) -> None:
    put(engine, {f"file{number}": code(number) for number in range(2)})
    assert all(held_back(hit) is None for hit in asked(engine, "redistribution of binary forms"))


def test_quoted_mail_stands_below_the_original(engine: Engine) -> None:
    said = "The pump of the cellar must be replaced before winter comes."
    quoted = f"On Monday Ann wrote:\n> {said}\n> Please order one.\n\nWill do, pump pump pump replaced.\n"
    put(engine, {"first": f"Dear all\n\n{said}\nPlease order one.\n", "answer": quoted})
    hits = {hit.rid: held_back(hit) for hit in asked(engine, "pump of the cellar before winter")}
    assert hits["first"] is None
    step = hits["answer"]
    assert step is not None
    assert step.factor < 1


def test_signatures_and_lists_of_links(engine: Engine) -> None:
    put(engine, {f"mail{number}": f"The offer number {number} is ready and waits.{FOOT}" for number in range(6)})
    put(engine, {f"page{number}": f"{LINKS}\nPage {number} tells something else entirely.\n" for number in range(6)})
    assert all(held_back(hit) for hit in asked(engine, "receiver of a confidential message"))
    assert all(held_back(hit) is None for hit in asked(engine, "offer ready"))
    assert all(held_back(hit) for hit in asked(engine, "imprint account"))


def test_a_passage_that_says_next_to_nothing(engine: Engine, tmp_path: Path) -> None:
    put(engine, {"again": "retry " * 60, "once": "After an error retry the call, at most three times in a minute.\n"})
    hits = asked(engine, "retry")
    steps = {hit.rid: held_back(hit) for hit in hits}
    assert steps["once"] is None
    assert steps["again"] is not None
    assert "says the same again" in steps["again"].reason
    for rid, text in {"empty": "# Opening hours\n", "full": "# Hours\n\nOur opening hours are nine to five.\n"}.items():
        engine.add([(Resource(rid=rid, type="note", lang="markdown"), text)])
    put(engine, {"short": "Opening hours"})
    steps = {hit.rid: held_back(hit) for hit in asked(engine, "opening hours")}
    assert steps["empty"] is not None
    assert steps["full"] is None
    assert steps["short"] is None, "a short note is what it is"


def test_it_can_be_turned_off(engine: Engine) -> None:
    put(engine, {f"file{number}": code(number) for number in range(6)})
    assert all(held_back(hit) is None for hit in asked(engine, "redistribution of binary forms", novelty=False))


def test_what_a_caller_cannot_see_is_not_counted(engine: Engine) -> None:
    put(engine, {f"hidden{number}": code(number) for number in range(6)}, visibility=("user:bob",))
    put(engine, {"seen": code(9)})
    request = SearchRequest(query="redistribution of binary forms", plan=Plan(mode="keyword"))
    (hit,) = engine.as_caller("user:ann").search(request).hits
    assert held_back(hit) is None
    assert any(held_back(hit) for hit in engine.as_caller("user:bob").search(request))


def test_pages_fit_together(engine: Engine) -> None:
    put(engine, {f"file{number:02}": code(number) for number in range(20)})
    put(engine, {f"law{number}": f"Binary forms, redistribution {'of it ' * number}in a shop." for number in range(20)})
    plan = Plan(mode="keyword", typos="ignore", weak=True)
    query = "redistribution of binary forms"
    whole = engine.search(SearchRequest(query=query, limit=40, plan=plan), refresh=False)
    paged: list[str] = []
    cursor = ""
    for _ in range(9):
        page = engine.search(SearchRequest(query=query, limit=5, cursor=cursor, plan=plan), refresh=False)
        paged += [hit.rid for hit in page]
        cursor = page.next_cursor
        if not cursor:
            break
    assert sorted(paged) == sorted(hit.rid for hit in whole)
    assert len(set(paged)) == len(paged) == 40
