"""Cursors: pages put together are one long page, and nobody is shown a hit twice because the index has changed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from findling.domain.errors import InvalidValueError
from findling.domain.plans import Plan
from findling.domain.queries import Field, Filters, SearchRequest
from findling.domain.resources import Chunk, Resource, StoredChunk
from findling.pipelines.answer.cursors import behind, next_cursor, read_cursor
from findling.pipelines.answer.rankings import Ranked
from findling.pipelines.retrieve.legs import Candidate

ASKED = SearchRequest(query="what was said", limit=3, plan=Plan(mode="keyword"))


def entry(cid: int, score: float, rid: str = "") -> Ranked:
    resource = Resource(rid=rid or f"file:{cid}")
    return Ranked(StoredChunk(Chunk(cid, b"", 0, 0, 1, 1, 1), resource, "x"), Candidate(cid, score), score)


def cids(entries: Sequence[Ranked]) -> list[int]:
    return [one.stored.chunk.cid for one in entries]


RANKED = [entry(cid, 1 - cid / 20) for cid in range(1, 10)]


def turned(ranked: Sequence[Ranked], request: SearchRequest) -> tuple[list[Ranked], str]:
    """A page and the cursor behind it, with all of the ranking at hand."""
    cursor, by = read_cursor(request), (request.plan or Plan()).group
    rest = ranked[request.offset :] if cursor is None else behind(cursor, ranked, by, is_all=True)
    assert rest is not None
    page = list(rest[: request.limit])
    return page, next_cursor(request, page, cursor) if page and len(rest) > len(page) else ""


def test_a_cursor_is_short_and_fits_into_an_address() -> None:
    request, cursor = replace(ASKED, limit=100), ""
    ranked = [entry(cid, 1 / cid) for cid in range(1, 1000)]
    for _ in range(3):
        _, cursor = turned(ranked, replace(request, cursor=cursor))
        assert 0 < len(cursor) < 200
        assert set(cursor) <= set("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_")


def test_the_last_page_has_no_cursor() -> None:
    _, cursor = turned(RANKED[:3], ASKED)
    assert cursor == ""
    page, cursor = turned(RANKED[:4], ASKED)
    assert (cids(page), bool(cursor)) == ([1, 2, 3], True)
    page, cursor = turned(RANKED[:4], replace(ASKED, cursor=cursor))
    assert (cids(page), cursor) == ([4], "")
    assert turned(RANKED, replace(ASKED, limit=0)) == ([], "")


def test_it_goes_on_behind_an_offset() -> None:
    page, cursor = turned(RANKED, replace(ASKED, offset=2))
    assert cids(page) == [3, 4, 5]
    assert cids(turned(RANKED, replace(ASKED, cursor=cursor))[0]) == [6, 7, 8]


@pytest.mark.parametrize(
    "other",
    [
        replace(ASKED, query="what was sung"),
        replace(ASKED, filters=Filters(ext=(".md",))),
        replace(ASKED, filters=Filters(where=Field("tag", ("a",)))),
        replace(ASKED, plan=Plan(mode="keyword", group="resource")),
        replace(ASKED, plan=Plan(mode="keyword", weights={"title": 3.0})),
        replace(ASKED, plan=None),
        replace(ASKED, principals=()),
        replace(ASKED, principals=("user:ann",)),
        replace(ASKED, plan=replace(ASKED.plan or Plan(), min_score=0.1)),
        replace(ASKED, exclude_pattern="x"),
    ],
)
def test_a_cursor_of_another_question_is_refused(other: SearchRequest) -> None:
    _, cursor = turned(RANKED, ASKED)
    with pytest.raises(InvalidValueError, match="none of an answer to this question"):
        read_cursor(replace(other, cursor=cursor))


def test_what_does_not_decide_the_order_may_change() -> None:
    _, cursor = turned(RANKED, replace(ASKED, principals=("user:ann", "role:a")))
    same = replace(ASKED, limit=5, facets=("type",), explain=True, context=2, principals=("role:a", "user:ann"))
    assert cids(turned(RANKED, replace(same, cursor=cursor))[0]) == [4, 5, 6, 7, 8]


@given(st.text() | st.binary().map(lambda data: data.hex()))
def test_nonsense_is_no_cursor(text: str) -> None:
    if text:
        with pytest.raises(InvalidValueError, match="cursor"):
            read_cursor(replace(ASKED, cursor=text))


def test_a_cursor_that_was_cut_or_changed_is_refused() -> None:
    _, cursor = turned(RANKED, ASKED)
    for spoiled in (cursor[:-1], cursor[:-11], cursor[1:], cursor.swapcase()):
        with pytest.raises(InvalidValueError, match="cursor"):
            read_cursor(replace(ASKED, cursor=spoiled))


def test_a_cursor_and_an_offset_contradict_each_other() -> None:
    _, cursor = turned(RANKED, ASKED)
    with pytest.raises(InvalidValueError, match="both say where to begin"):
        read_cursor(replace(ASKED, cursor=cursor, offset=3))


def test_more_of_the_ranking_is_wanted_while_the_place_cannot_be_told() -> None:
    cursor = read_cursor(replace(ASKED, cursor=next_cursor(ASKED, RANKED[:3])))
    assert cursor is not None
    above = [entry(100 + at, 0.99) for at in range(5)]
    assert behind(cursor, above, "none", is_all=False) is None
    assert behind(cursor, [], "none", is_all=False) is None
    assert behind(cursor, above, "none", is_all=True) == []
    lower = [*above, entry(7, 0.5)]
    assert behind(cursor, lower, "none", is_all=False) is None, "what was shown may have sunk below"
    assert cids(behind(cursor, lower, "none", is_all=True) or []) == [7]


def test_among_equals_the_rank_decides_when_all_that_was_shown_is_gone() -> None:
    level = [entry(cid, 1.0) for cid in range(1, 8)]
    request = replace(ASKED, limit=2)
    _, first = turned(level, request)
    page, second = turned(level, replace(request, cursor=first))
    assert cids(page) == [3, 4]
    assert cids(turned(level[4:], replace(request, cursor=second))[0]) == [5, 6]


def test_a_group_is_known_by_its_key_and_not_by_its_best_passage() -> None:
    request = replace(ASKED, limit=1, plan=Plan(mode="keyword", group="resource"))
    _, cursor = turned([entry(1, 0.9, "a"), entry(2, 0.8, "b")], request)
    changed = [entry(11, 0.9, "a"), entry(2, 0.8, "b")]
    assert cids(turned(changed, replace(request, cursor=cursor))[0]) == [2]


scores = st.integers(0, 30).map(lambda n: n / 30)
corpora = st.dictionaries(st.integers(1, 200), scores, max_size=40)


def ranking(corpus: dict[int, float]) -> list[Ranked]:
    return [entry(cid, score) for cid, score in sorted(corpus.items(), key=lambda item: (-item[1], item[0]))]


@given(corpora, st.integers(1, 7))
def test_pages_put_together_are_one_long_page(corpus: dict[int, float], limit: int) -> None:
    ranked, request = ranking(corpus), replace(ASKED, limit=limit)
    read: list[int] = []
    for _ in range(len(ranked) + 1):
        page, cursor = turned(ranked, request)
        read += cids(page)
        if not cursor:
            break
        request = replace(request, cursor=cursor)
    assert read == cids(ranked)


@given(corpora, st.lists(st.tuples(corpora, st.sets(st.integers(1, 200))), max_size=6), st.integers(1, 5))
def test_no_hit_is_lost_or_repeated_while_the_index_changes_as_long_as_one_of_the_last_is_there(
    corpus: dict[int, float], edits: list[tuple[dict[int, float], set[int]]], limit: int
) -> None:
    request, held, read = replace(ASKED, limit=limit), dict(corpus), list[int]()
    page, cursor = turned(ranking(held), request)
    read += cids(page)
    unchanged = set(corpus)
    for added, dropped in edits:
        if not cursor:
            break
        new = {cid: score for cid, score in added.items() if cid not in corpus and cid not in read}
        gone = (dropped & held.keys()) - set(read[-12:][:1])
        unchanged -= gone
        held = {cid: score for cid, score in held.items() if cid not in gone} | new
        page, cursor = turned(ranking(held), replace(request, cursor=cursor))
        read += cids(page)
    while cursor:
        page, cursor = turned(ranking(held), replace(request, cursor=cursor))
        read += cids(page)
    shown = [cid for cid in read if cid in unchanged]
    assert shown == [cid for cid in cids(ranking(corpus)) if cid in unchanged]
