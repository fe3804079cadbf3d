"""Boosts that depend on what a resource is: recency by its type, affinity by who wrote a message."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime

import pytest

from findling.domain.plans import Plan
from findling.domain.queries import SearchRequest
from findling.domain.resources import Chunk, Place, Resource, ResourceType, StoredChunk
from findling.pipelines.answer.rankings import Ranked, StepContext
from findling.pipelines.answer.steps import run_steps
from findling.pipelines.content.resource_types import register
from findling.pipelines.retrieve.legs import Candidate
from findling.pipelines.retrieve.query_planner import understand
from findling.pipelines.retrieve.vector_retrieval import Meaning
from tests.memory_store import MemoryStore

DAY = 86_400.0
NOW = datetime(2026, 6, 1, tzinfo=UTC).timestamp()


def ranked(
    cid: int, type_: str, *, days: float | None = None, text: str = "some prose", places: tuple[Place, ...] = ()
) -> Ranked:
    updated_at = None if days is None else NOW - days * DAY
    resource = Resource(rid=f"{type_}:{cid}", type=type_, updated_at=updated_at)
    chunk = Chunk(cid, b"", 0, 0, len(text), 1, 1, (), places)
    return Ranked(StoredChunk(chunk, resource, text), Candidate(cid, 0.5), 0.5)


def steps(*entries: Ranked, query: str = "unheard of", **plan: object) -> dict[int, Mapping[str, float]]:
    """The steps that moved each entry, by its chunk."""
    asked = Plan(boosts=True, **plan)  # type: ignore[arg-type]
    question = understand(SearchRequest(query=query), asked, MemoryStore())
    context = StepContext(None, question, Meaning(), 10, NOW)
    moved = run_steps(list(entries), context)
    assert context.notes == []
    return {entry.stored.chunk.cid: {step.name: round(step.factor, 4) for step in entry.steps} for entry in moved}


def test_every_type_ages_in_its_own_time() -> None:
    found = steps(ranked(1, "file", days=90), ranked(2, "chat", days=30), ranked(3, "memory", days=30))
    assert found == {1: {"recency": 1.05}, 2: {"recency": 1.05}, 3: {"recency": 1.05}}
    found = steps(ranked(1, "file", days=30), ranked(2, "chat", days=90))
    assert found[1]["recency"] == pytest.approx(1 + 0.1 * 0.5 ** (1 / 3), abs=1e-4)
    assert found[2]["recency"] == pytest.approx(1.0125)


def test_what_does_not_age_gains_nothing_by_being_new() -> None:
    entries = [ranked(1, "decision", days=0), ranked(2, "decision", days=4000), ranked(3, "tool", days=1)]
    assert steps(*entries) == {1: {}, 2: {}, 3: {}}


def test_a_registered_type_brings_its_own_half_life_and_an_unknown_one_the_usual() -> None:
    register(ResourceType(name="weather", half_life_days=2.0))
    found = steps(ranked(1, "weather", days=2), ranked(2, "nobodys", days=90), ranked(3, "file"))
    assert found == {1: {"recency": 1.05}, 2: {"recency": 1.05}, 3: {}}


def test_without_boosts_nothing_is_lifted() -> None:
    question = understand(SearchRequest(query="prose"), Plan(affinities={"ada": 1.0}), MemoryStore())
    (entry,) = run_steps([ranked(1, "chat", days=0)], StepContext(None, question, Meaning(), 10, NOW))
    assert entry.steps == ()


TALK = "Shall we paint the boat?\nOnly when the weather is fine.\nThe boat needs a new mast first.\n"
PLACES = (
    Place(0, "Ada, 2026-05-31 08:00"),
    Place(25, "Bob, 2026-05-02 00:00"),
    Place(56, "Cleo"),
)


def test_the_author_of_the_message_that_was_found_counts() -> None:
    near = {"ada": 1.0, "bob": 0.5}
    chat = ranked(1, "chat", days=1000, text=TALK, places=PLACES)
    assert steps(chat, query="paint", affinities=near)[1]["author"] == 1.1
    assert steps(chat, query="fine weather", affinities=near)[1]["author"] == 1.05
    assert "author" not in steps(chat, query="mast", affinities=near)[1]
    assert "author" not in steps(chat, query="paint", affinities={"bob": 1.0})[1]
    # More of the query's words beat being first.
    assert "author" not in steps(chat, query="new mast of the boat", affinities=near)[1]


def test_the_age_of_a_message_is_its_own() -> None:
    chat = ranked(1, "chat", days=1000, text=TALK, places=PLACES)
    assert steps(chat, query="weather")[1]["recency"] == pytest.approx(1.05)
    assert "recency" not in steps(chat, query="mast")[1], "a message without a time is as old as the chat"


def test_words_that_nobody_wrote_are_nobodys() -> None:
    chat = ranked(1, "chat", text=TALK, places=PLACES)
    assert "author" not in steps(chat, query="sailing", affinities={"ada": 1.0, "bob": 1.0, "cleo": 1.0})[1]
    alone = ranked(1, "chat", text=TALK, places=(Place(0, "ADA, 2026-05-31 08:00"), Place(25, "ADA, 2026-05-02 00:00")))
    assert steps(alone, query="sailing", affinities={"ada": 1.0})[1]["author"] == 1.1


def test_authors_of_files_are_no_matter_of_affinity() -> None:
    entry = ranked(1, "file", text="prose")
    entry = entry._replace(
        stored=entry.stored._replace(resource=Resource(rid="file:a", type="file", path="a", author="Ada"))
    )
    assert steps(entry, query="prose", affinities={"ada": 1.0}) == {1: {}}


def test_a_close_author_comes_first_among_equals() -> None:
    question = understand(SearchRequest(query="boat"), Plan(boosts=True, affinities={"zoe": 0.8}), MemoryStore())
    entries = [
        ranked(cid, "chat", text="the boat", places=(Place(0, f"{name}, 2026-05-31 08:00"),))
        for cid, name in ((1, "Yan"), (2, "Zoe"), (3, "Xi"))
    ]
    moved = run_steps(entries, StepContext(None, question, Meaning(), 10, NOW))
    assert [entry.stored.chunk.cid for entry in moved] == [2, 1, 3]
    assert [step.reason for step in moved[0].steps if step.name == "author"] == ["written by Zoe (affinity 0.80)"]
