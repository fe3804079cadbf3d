"""The rules of memories: identity, importance that fades, closeness in meaning, receipts."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from findling.domain.errors import InvalidValueError
from findling.domain.records import Access
from findling.domain.resources import Resource
from findling.domain.results import Hit, Receipt, ScorePart, TermMatch
from findling.pipelines.content.memories import (
    LARGEST_FACTOR,
    THRESHOLD,
    Wish,
    checked_wish,
    closeness,
    evidence,
    importance_factor,
    importance_now,
    make_memory,
    make_recalled,
    make_resource,
    memory_rid,
    renewed_resource,
)
from findling.ranking.boosts import MOST

DAY = 86_400.0
NOW = 1_800_000_000.0
MINILM = (-0.01, 0.061)
parts = st.floats(0, 1)


def hit(*, words: int = 0, cosine: float | None = None, score: float = 0.5) -> Hit:
    receipt = Receipt(
        keyword_rank=words,
        vector_rank=0 if cosine is None else 1,
        vector_score=cosine or 0.0,
        fused_score=score,
        final_score=score,
        words=score,
        parts=(ScorePart(leg="keyword", rank=1, raw=3.0, normalised=score, weight=1.0, value=score),),
        matches=(TermMatch(term="door", field="body", forms=("door",), count=1),) if words else (),
    )
    return Hit(
        id="0" * 16, rid="memory:a", path="", type="memory", title="", heading=(), line_start=1, line_end=1,
        score=score, lines=(), receipt=receipt,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("given_", "days", "left"),
    [(0.8, 0, 0.8), (0.8, 1, 0.76), (0.8, 10, 0.8 * 0.95**10), (0.8, 365, 0.1), (0.0, 0, 0.1), (1.0, -3, 1.0)],
)
def test_importance_fades_by_a_twentieth_a_day_and_never_below_a_tenth(given_: float, days: float, left: float) -> None:
    assert importance_now(given_, NOW - days * DAY, NOW) == pytest.approx(left)


@given(parts, st.floats(0, 5000), st.floats(0, 5000))
def test_importance_only_falls_with_time(importance: float, one: float, other: float) -> None:
    sooner, later = sorted((one, other))
    assert importance_now(importance, NOW - sooner * DAY, NOW) >= importance_now(importance, NOW - later * DAY, NOW)


def test_importance_moves_less_than_all_boosts_of_a_search_may() -> None:
    assert importance_factor(0.5) == pytest.approx(1.0)
    assert importance_factor(1.0) == pytest.approx(LARGEST_FACTOR)
    assert importance_factor(1.0) / importance_factor(0.1) < MOST


def test_closeness_is_nothing_for_texts_that_have_nothing_in_common() -> None:
    assert closeness(-0.01, MINILM) == 0
    assert closeness(-0.4, MINILM) == 0
    assert closeness(0.9, MINILM) == 1
    assert closeness(0.3316, MINILM) == pytest.approx(THRESHOLD)
    # Unrelated texts of another model have 0.7.
    assert closeness(0.7, (0.70, 0.024)) == 0


def test_words_or_meaning_must_be_enough() -> None:
    assert evidence(hit(words=1, cosine=0.1), MINILM) == ("has the words door",)
    assert evidence(hit(cosine=0.33), MINILM) == ()
    assert evidence(hit(cosine=0.34), MINILM) == ("near in meaning: 0.72, 0.7 is enough (cosine 0.34)",)
    assert len(evidence(hit(words=2, cosine=0.6), MINILM)) == 2
    assert evidence(hit(), MINILM) == ()


def test_of_a_model_that_nobody_knows_what_the_search_has_found_counts() -> None:
    assert evidence(hit(cosine=0.2), None) == ("near in meaning (cosine 0.20)",)


def test_the_same_text_is_the_same_memory() -> None:
    wish = Wish("The café opens\n at nine.")
    assert memory_rid(wish) == memory_rid(Wish("The cafe\u0301 opens at nine."))
    assert memory_rid(wish) == memory_rid(wish._replace(importance=0.9, tags=("food",), author="Ada"))
    assert memory_rid(wish) != memory_rid(Wish("the café opens at nine."))


def test_who_may_see_it_is_part_of_what_it_is() -> None:
    """Or remembering a text would tell whether somebody else had."""
    wish = Wish("The code is 4711.")
    private, shared = wish._replace(visibility=("user:ada",)), wish._replace(visibility=("user:ada", "user:bob"))
    nobody = wish._replace(visibility=())
    assert len({memory_rid(each) for each in (wish, private, shared, nobody)}) == 4
    assert memory_rid(shared) == memory_rid(wish._replace(visibility=("user:bob", "user:ada", "user:bob")))


@pytest.mark.parametrize(
    ("wish", "message"),
    [
        (Wish("  \n"), "nothing to remember"),
        (Wish("\x00\x1b \u200b\x7f"), "nothing to remember"),
        (Wish("a", importance=1.2), "importance 1.2"),
        (Wish("a", importance=float("nan")), "importance nan"),
        (Wish("a", id="two words"), "no id"),
        (Wish("a", id="tab\there"), "no id"),
        (Wish("a", id="memory:"), "no id"),
        (Wish("a", id="x" * 201), "no id"),
        (Wish("a", visibility=("ada",)), "no principal"),
    ],
)
def test_what_cannot_be_remembered(wish: Wish, message: str) -> None:
    with pytest.raises(InvalidValueError, match=message):
        checked_wish(wish)


@pytest.mark.parametrize(
    ("given_", "message"),
    [
        ({"text": None}, "text None is no text"),
        ({"text": b"bytes"}, "is no text"),
        ({"author": 7}, "author 7 is no text"),
        ({"id": 7}, "id 7 is no text"),
        ({"tags": "food"}, "tags 'food' is no list of texts"),
        ({"tags": None}, "tags None is no list of texts"),
        ({"tags": ["food", 7]}, "is no list of texts"),
        ({"visibility": "user:ada"}, "visibility 'user:ada' is no list of texts"),
        ({"visibility": [None]}, "is no list of texts"),
        ({"importance": "0.5"}, "importance '0.5' is no number"),
        ({"importance": True}, "importance True is no number"),
    ],
)
def test_what_has_the_wrong_type_is_refused(given_: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidValueError, match=message):
        checked_wish(Wish(**{"text": "a", **given_}))


def test_a_wish_is_tidied() -> None:
    wish = checked_wish(Wish(" text ", tags=(" a", "b", "a ", ""), author=" Ada ", id="memory:wifi"))
    assert wish == Wish("text", tags=("a", "b"), author="Ada", id="wifi")
    assert memory_rid(wish) == "memory:wifi"


@given(st.lists(st.none() | parts, min_size=1, max_size=6))
def test_the_original_importance_never_changes_and_the_other_never_falls(given_: list[float | None]) -> None:
    resource = make_resource(Wish("a", given_[0]), "memory:a", NOW)
    worth = []
    for importance in given_:
        resource = renewed_resource(Wish("a", importance), resource, NOW, is_same_text=True)
        worth.append(make_memory(resource, "a", None, NOW).importance)
    first = 0.5 if given_[0] is None else given_[0]
    assert make_memory(resource, "a", None, NOW).importance_original == pytest.approx(first, abs=1e-5)
    assert worth == sorted(worth)


def test_another_text_keeps_the_memory_and_dates_it_anew() -> None:
    old = make_resource(Wish("a", 0.9, ("x",), "Ada"), "memory:a", NOW)
    new = renewed_resource(Wish("b", 0.2, ("y",), "Bob"), old, NOW + DAY, is_same_text=False)
    assert (new.created_at, new.updated_at, new.author, new.tags) == (NOW, NOW + DAY, "Bob", ("x", "y"))
    assert new.fields == old.fields
    same = renewed_resource(Wish("a", author="Bob"), old, NOW + DAY, is_same_text=True)
    assert same == old


def test_fields_that_somebody_else_has_spoiled_count_as_usual() -> None:
    for text in ("", "much", "nan", "7"):
        resource = Resource(rid="memory:a", type="memory", created_at=NOW, fields={"importance": text})
        memory = make_memory(resource, "a", None, NOW)
        assert (memory.importance, memory.importance_original) == (0.5, 0.5)


def test_accesses_of_one_that_was_forgotten_are_not_its_own() -> None:
    resource = make_resource(Wish("a"), "memory:a", NOW, accesses_before=5)
    assert make_memory(resource, "a", Access(5, NOW - DAY), NOW).access_count == 0
    assert make_memory(resource, "a", Access(7, NOW), NOW).access_count == 2
    assert make_memory(resource, "a", Access(1, NOW), NOW).access_count == 0, "moved to a store that counts anew"


def test_the_last_access_is_the_latest_of_recalls_and_texts() -> None:
    resource = Resource(rid="memory:a", type="memory", created_at=NOW, updated_at=NOW + DAY)
    assert make_memory(resource, "a", None, NOW).last_accessed_at == NOW + DAY
    assert make_memory(resource, "a", Access(3, NOW + 2 * DAY), NOW).last_accessed_at == NOW + 2 * DAY


@given(parts, parts, st.floats(0, 400))
def test_a_receipt_adds_up_to_the_score(score: float, importance: float, days: float) -> None:
    resource = make_resource(Wish("a", importance), "memory:a", NOW - days * DAY)
    memory = make_memory(resource, "a", None, NOW)
    one = make_recalled(hit(words=1, score=round(score, 4)), memory, ("has the words door",), NOW)
    assert one.hit.receipt.recomputed() == pytest.approx(one.score, abs=1e-4)
    assert one.score == one.hit.score == one.hit.receipt.final_score <= 1
    assert one.relevance == pytest.approx(one.hit.receipt.fused_score * importance_factor(memory.importance), abs=1e-6)
    assert one.reasons[0] == "has the words door"
    assert one.reasons[-1].startswith("importance ")
