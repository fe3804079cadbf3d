"""Answers put together: groups that fill a page, pages that follow each other, facets, through the engine."""

from __future__ import annotations

import json
import pickle
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import TypeAdapter

from findling.domain.errors import InvalidValueError
from findling.domain.plans import Plan
from findling.domain.queries import SearchRequest
from findling.domain.resources import Resource
from findling.domain.results import Hit, SearchAnswer
from findling.domain.values import as_dict, changed
from findling.pipelines.answer.search import search
from findling.pipelines.indexing.document_build import text_documents
from findling.pipelines.retrieve.legs import Retrievers
from findling.service.client.daemon import from_json
from findling.service.engine.engine import Engine, open_engine
from findling.service.settings.settings import Settings
from findling.text.chunking.chunk_plan import ChunkPlan
from tests.memory_leg import MemoryLeg
from tests.memory_store import MemoryStore

SECTION = "## Part {n}\n\nThe falcon number {n} flies over the hills, over the lake and over the town of {name}.\n\n"


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[Engine]:
    root = tmp_path / "root"
    root.mkdir()
    # One long file whose passages are all better than those of the others, which say the word once in more text.
    (root / "long.md").write_text("".join(f"## Falcon {n}\n\nfalcon falcon falcon falcon\n\n" for n in range(150)))
    for name in ("a", "b", "c"):
        (root / f"{name}.md").write_text(f"# {name}\n\n" + SECTION.format(n=1, name=name) + "Much more is said. " * 9)
    own = {
        "store.home": str(tmp_path / "home"), "semantic.refine": "never",
        "chunk.preset": "semantic:300:characters",
    }  # fmt: skip
    with open_engine(root, settings=Settings().override(own, "test")) as opened:
        opened.index()
        yield opened


def ask(engine: Engine, query: str, *, group: str = "none", mode: str = "keyword", **given: Any) -> SearchAnswer:
    plan = Plan(mode=mode, group=group, budget_ms=0.0)
    return engine.search(query, refresh=False, plan=plan, **given)


def paths(answer: SearchAnswer) -> list[str]:
    return [hit.path for hit in answer]


def all_pages(engine: Engine, query: str, limit: int, **given: object) -> list[Hit]:
    hits, cursor = list[Hit](), ""
    for _ in range(100):
        answer = ask(engine, query, limit=limit, cursor=cursor, **given)  # type: ignore[arg-type]
        hits += answer.hits
        cursor = answer.next_cursor
        if not cursor:
            return hits
        assert len(answer.hits) == limit
    raise AssertionError("the pages have no end")


@pytest.mark.parametrize("mode", ["keyword", "hybrid"])
def test_groups_fill_the_page_however_deep_they_are(engine: Engine, mode: str) -> None:
    plain = ask(engine, "falcon", limit=4, mode=mode)
    assert paths(plain) == ["long.md"] * 4 and not any(hit.passages for hit in plain)
    answer = ask(engine, "falcon", limit=4, group="resource", mode=mode)
    assert sorted(paths(answer)) == ["a.md", "b.md", "c.md", "long.md"]
    assert answer.hits[0].id == plain.hits[0].id and answer.hits[0].score == plain.hits[0].score
    (counted,) = [step for step in answer.hits[0].receipt.steps if step.name == "group"]
    alone = tuple(step for step in answer.hits[0].receipt.steps if step is not counted)
    assert replace(answer.hits[0].receipt, steps=alone) == plain.hits[0].receipt
    assert [hit.score for hit in answer] == sorted((hit.score for hit in answer), reverse=True)


def test_the_total_counts_passages_and_the_limit_groups(engine: Engine) -> None:
    plain, answer = ask(engine, "falcon", limit=2), ask(engine, "falcon", limit=2, group="resource")
    assert answer.total == plain.total > 10
    assert len(answer.hits) == 2
    rest = ask(engine, "falcon", limit=9, offset=2, group="resource")
    assert sorted(paths(answer) + paths(rest)) == ["a.md", "b.md", "c.md", "long.md"]


def test_chunks_side_by_side_become_one_stretch(engine: Engine) -> None:
    plain = ask(engine, "falcon path:long", limit=1).hits[0]
    (hit,) = ask(engine, "falcon path:long", limit=1, group="resource")
    assert hit.line_start < plain.line_start or hit.line_end > plain.line_end
    assert hit.lines == plain.lines
    (few,) = ask(engine, '"falcon 17" OR "falcon 90"', limit=1, group="resource")
    assert len(few.passages) == 1 and few.passages[0].rid == few.rid
    assert few.passages[0].lines[0].spans


def test_a_browsed_answer_can_be_grouped(engine: Engine) -> None:
    assert sorted(paths(ask(engine, "ext:md", group="resource"))) == ["a.md", "b.md", "c.md", "long.md"]


@pytest.mark.parametrize("group", ["none", "resource"])
@pytest.mark.parametrize("limit", [1, 3, 7])
def test_pages_by_cursor_are_one_long_page(engine: Engine, group: str, limit: int) -> None:
    query = "falcon town" if group == "none" else "falcon"
    whole = ask(engine, query, limit=200, group=group)
    assert not whole.next_cursor
    pages = all_pages(engine, query, limit, group=group)
    assert [(hit.id, hit.score) for hit in pages] == [(hit.id, hit.score) for hit in whole]


@pytest.mark.parametrize("knobs", [{"mode": "hybrid"}, {"mode": "semantic"}, {"exclude_pattern": "Falcon 1"}])
def test_the_same_holds_by_meaning_and_when_something_is_left_out(engine: Engine, knobs: dict[str, str]) -> None:
    # As deep as one ranking by meaning goes: a deeper one takes in more, and weighs anew.
    whole = ask(engine, "a falcon over the hills", limit=30, **knobs)
    pages = all_pages(engine, "a falcon over the hills", 6, **knobs)
    assert [hit.id for hit in pages][:30] == [hit.id for hit in whole]
    assert len({hit.id for hit in pages}) == len(pages)


def test_there_is_no_cursor_behind_the_last_hit(engine: Engine) -> None:
    answer = ask(engine, "town", limit=3)
    assert len(answer.hits) == 3 and not answer.next_cursor
    answer = ask(engine, "town", limit=2)
    assert answer.next_cursor
    assert len(ask(engine, "town", limit=5, cursor=answer.next_cursor).hits) == 1
    assert not ask(engine, "ostrich").next_cursor
    assert not ask(engine, "town", limit=0).next_cursor
    above = ask(engine, "town").hits[0].score + 0.01
    assert not ask(engine, "town", limit=1, min_score=above).next_cursor, "none scores enough"


def test_reading_goes_on_where_it_was_while_files_come_and_go(engine: Engine) -> None:
    first = ask(engine, "town", limit=1)
    engine.add([(Resource(rid=f"note:{n}", type="note"), "town town town") for n in range(5)])
    second = ask(engine, "town", limit=1, cursor=first.next_cursor)
    assert second.hits[0].id not in {hit.id for hit in first}
    engine.forget([second.hits[0].path])
    third = ask(engine, "town", limit=9, cursor=second.next_cursor)
    assert {hit.path for hit in (*first, *second, *third) if hit.type == "file"} == {"a.md", "b.md", "c.md"}
    assert len(third.hits) == 1


def test_a_cursor_of_another_question_is_refused(engine: Engine) -> None:
    cursor = ask(engine, "falcon", limit=1).next_cursor
    for change in ({"query": "town"}, {"principals": ("user:ann",)}, {"facets": ("nothing",)}, {"offset": 1}):
        plan = Plan(mode="keyword", budget_ms=0.0)
        request = replace(SearchRequest(query="falcon", plan=plan, cursor=cursor), **change)
        with pytest.raises(InvalidValueError):
            engine.search(request, refresh=False)
    with pytest.raises(InvalidValueError, match="cursor"):
        ask(engine, "falcon", limit=1, group="resource", cursor=cursor)


def test_facets_count_what_is_near_in_meaning_too(engine: Engine) -> None:
    engine.add([(Resource(rid="note:1", type="note", tags=("bird",)), "a hawk soaring above hills and lakes")])
    words = ask(engine, "falcon hills", facets=("type",))
    assert words.facets == {"type": {"file": 3, "note": 1}}, "weaker matches do not count"
    assert ask(engine, "falcon", facets=("type", "tag")).facets == {"type": {"file": 4}, "tag": {}}
    near = ask(engine, "bird of prey soaring", mode="semantic", facets=("type",))
    assert near.total and sum(near.facets["type"].values()) <= near.total
    assert near.facets["type"].get("note") == 1
    assert "facets" in near.timings_ms


WORDS = ("falcon", "owl", "town", "hill", "lake")
texts = st.lists(st.sampled_from(WORDS), min_size=1, max_size=8).map(" ".join)


def indexed(documents: dict[str, str]) -> Retrievers:
    store, leg = MemoryStore(), MemoryLeg()
    for batch in text_documents(
        [(Resource(rid=rid, type="note"), text) for rid, text in documents.items()], ChunkPlan()
    ):
        leg.apply(store.write(batch))
    leg.commit(store.seq())
    return Retrievers(store, leg)


def asked(query: str, limit: int, group: str, cursor: str = "") -> SearchRequest:
    return SearchRequest(
        query=query, limit=limit, cursor=cursor, plan=Plan(mode="keyword", group=group, typos="ignore")
    )


@settings(max_examples=40, suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(
    st.dictionaries(st.integers(0, 60), texts, max_size=25),
    st.dictionaries(st.integers(61, 99), texts, max_size=10),
    st.sets(st.integers(0, 60)),
    st.integers(1, 6),
    st.sampled_from(["none", "resource"]),
)
def test_no_hit_is_lost_or_repeated_between_two_pages(
    corpus: dict[int, str], added: dict[int, str], dropped: set[int], limit: int, group: str
) -> None:
    before = {f"note:{number}": text for number, text in corpus.items()}
    page = search(indexed(before), asked("falcon town", limit, group))
    after = {rid: text for rid, text in before.items() if int(rid[5:]) not in dropped}
    after |= {f"note:{number}": text for number, text in added.items()}
    old = [hit.rid for hit in search(indexed(before), asked("falcon town", 99, group))]
    new = [hit.rid for hit in search(indexed(after), asked("falcon town", 99, group))]
    shown = [hit.rid for hit in page]
    assert shown == old[:limit]
    if not page.next_cursor:
        assert len(old) <= limit
        return
    legs, cursor, later = indexed(after), page.next_cursor, list[str]()
    while cursor:
        answer = search(legs, asked("falcon town", limit, group, cursor))
        later += [hit.rid for hit in answer]
        cursor = answer.next_cursor
    assert not set(later) & set(shown)
    mark = next((rid for rid in reversed(shown) if rid in new), None)
    if mark is not None:
        behind = set(new[new.index(mark) + 1 :]) - set(shown)
        assert later == [rid for rid in new if rid in behind]
        assert behind >= set(old[limit:]) & set(new) - set(new[: new.index(mark)])


def test_receipts_and_symbols_are_made_when_they_are_read_and_nobody_can_tell(tmp_path: Path) -> None:
    TypeAdapter(Hit).json_schema()  # gives a class defaults that it lacks
    (tmp_path / "root").mkdir()
    (tmp_path / "root" / "falcon.py").write_text("class Falcon:\n    def fly(self):\n        return self.wings\n" * 9)
    own = {"store.home": str(tmp_path / "home"), "semantic.refine": "never"}
    with open_engine(tmp_path / "root", settings=Settings().override(own, "test")) as opened:
        opened.index()
        late, read, shown, hashed, sent, other = (ask(opened, "fly falcon").hits[0] for _ in range(6))
        plain = from_json(Hit, json.loads(json.dumps(as_dict(read))))
    assert "symbol" not in vars(late)
    assert "matches" not in vars(late.receipt)
    assert type(plain) is type(late) and vars(plain).keys() == vars(read).keys() >= {"symbol", "receipt"}
    assert plain.symbol and plain.receipt.matches
    assert repr(shown) == repr(plain)
    assert hash(hashed) == hash(plain)
    assert pickle.loads(pickle.dumps(sent)) == plain == sent
    assert msgspec.json.encode(other) == msgspec.json.encode(plain)
    assert replace(late, score=0.5) == replace(plain, score=0.5)
    assert changed(late.receipt, words=0.5) == replace(plain.receipt, words=0.5)
    assert list(vars(late)) == list(vars(plain))
