"""A hit in a chat tells who said it, when, and what was said before and after."""

from __future__ import annotations

import json

import pytest

from findling.domain.plans import Plan
from findling.domain.queries import SearchRequest
from findling.domain.records import Message
from findling.domain.resources import Document, Place, Resource
from findling.domain.results import Hit
from findling.pipelines.answer.chat_context import messages_of
from findling.pipelines.answer.search import search
from findling.pipelines.content.chat_parts import ChatPart, PartName, ThreadFacts, document_of_part, kept_message
from findling.pipelines.indexing.document_build import make_document
from findling.pipelines.retrieve.legs import Retrievers
from findling.sources.extracted import Extracted
from findling.text.chunking.chunk_plan import ChunkPlan
from tests.memory_leg import MemoryLeg
from tests.memory_store import MemoryStore

NINE = 1_775_638_800.0  # 2026-04-08 09:00 UTC
FIRST = [("Ann", "Good morning everyone"), ("Bob", "The falcon has landed\nand it is hungry"), ("Ann", "Feed it then")]
SECOND = [("Cleo", "With what"), ("Bob", "A falcon eats mice"), ("", "No author here")]


def part(number: int, said: list[tuple[str, str]], *, recorded: bool = True, size: int = 2400) -> Document:
    """A part of a thread, a message a minute."""
    text, places, messages = "", list[Place](), list[dict[str, object]]()
    for minute, (author, words) in enumerate(said):
        label = ", ".join(filter(None, (author, f"2026-04-08 {9 + number:02}:{minute:02}")))
        places.append(Place(len(text), label))
        at = NINE + number * 3600 + minute * 60
        messages.append({"id": str(minute), "at": at, "author": author, "start": len(text)})
        text += f"{words}\n\n"
    neighbours = {"previous": f"chat:slack/general/{number - 1}", "next": f"chat:slack/general/{number + 1}"}
    fields = {"thread": "slack/general", **neighbours, **({"messages": json.dumps(messages)} if recorded else {})}
    resource = Resource(
        rid=f"chat:slack/general/{number}",
        type="chat",
        title="general",
        author="Everyone",
        updated_at=1.0,
        fields=fields,
    )
    return make_document(resource, Extracted(text=text, places=tuple(places)), plan=ChunkPlan(size=size))


def legs_of(*documents: Document) -> Retrievers:
    store, leg = MemoryStore(), MemoryLeg()
    leg.apply(store.write(documents))
    leg.commit(store.seq())
    return Retrievers(store, leg)


def found(legs: Retrievers, query: str, around: int = 1, **knobs: str) -> list[Hit]:
    plan = Plan(mode="keyword", around=around, **knobs)  # type: ignore[arg-type]
    return list(search(legs, SearchRequest(query=query, plan=plan)).hits)


def around(hit: Hit) -> list[tuple[int, str, str]]:
    return [(line.number, line.place, line.text) for line in hit.around]


@pytest.mark.parametrize("recorded", [True, False])
def test_a_hit_has_the_author_and_time_of_its_message(recorded: bool) -> None:
    (hit,) = found(legs_of(part(0, FIRST, recorded=recorded)), "landed")
    assert (hit.author, hit.at, hit.place) == ("Bob", NINE + 60, "Bob, 2026-04-08 09:01")
    (hit,) = found(legs_of(part(0, SECOND, recorded=recorded)), "here")
    assert (hit.author, hit.at) == ("", NINE + 120)


@pytest.mark.parametrize("recorded", [True, False])
@pytest.mark.parametrize("size", [2400, 25])
def test_the_messages_before_and_after_stand_around_it(recorded: bool, size: int) -> None:
    hit = found(legs_of(part(0, FIRST, recorded=recorded, size=size)), "landed")[0]
    assert around(hit) == [
        (-1, "Ann, 2026-04-08 09:00", "Good morning everyone"),
        (1, "Ann, 2026-04-08 09:02", "Feed it then"),
    ]


def test_nothing_stands_around_it_unless_it_is_wanted() -> None:
    assert found(legs_of(part(0, FIRST)), "landed", around=0)[0].around == ()


def test_at_the_edge_the_neighbouring_part_goes_on() -> None:
    legs = legs_of(part(0, FIRST), part(1, SECOND))
    (hit,) = found(legs, "what", around=2)
    assert [(number, text) for number, _, text in around(hit)] == [
        (-2, "The falcon has landed"),
        (-2, "and it is hungry"),
        (-1, "Feed it then"),
        (1, "A falcon eats mice"),
        (2, "No author here"),
    ]
    assert around(hit)[0][1] == "Bob, 2026-04-08 09:01"
    (hit,) = found(legs, "feed")
    assert around(hit)[-1] == (1, "Cleo, 2026-04-08 10:00", "With what")


def test_the_first_and_the_last_message_have_one_side_only() -> None:
    legs = legs_of(part(0, FIRST), part(1, SECOND))
    assert [number for number, _, _ in around(found(legs, "morning")[0])] == [1, 1]
    assert [number for number, _, _ in around(found(legs, "author")[0])] == [-1]


def test_parts_of_other_threads_are_no_neighbours() -> None:
    stranger = part(1, SECOND)
    fields = {**stranger.resource.fields, "thread": "slack/other"}
    resource = Resource(**{**vars(stranger.resource), "fields": fields})
    legs = legs_of(part(0, FIRST), stranger._replace(resource=resource))
    assert [number for number, _, _ in around(found(legs, "feed")[0])] == [-1, -1]


@pytest.mark.parametrize("written", ["", "no json", "{}", "[1]", '[{"start": "x"}]', '[{"id": 1}]', "null"])
def test_what_an_importer_wrote_wrongly_does_no_harm(written: str) -> None:
    document = part(0, FIRST, recorded=False)
    fields = {**document.resource.fields, "messages": written}
    resource = Resource(**{**vars(document.resource), "fields": fields})
    (hit,) = found(legs_of(document._replace(resource=resource)), "landed")
    assert (hit.author, len(hit.around)) == ("Bob", 2)


def test_a_chat_without_places_falls_back_on_what_it_says_of_itself() -> None:
    resource = Resource(rid="chat:x/y/a", type="chat", author="Dan", updated_at=7.0)
    document = make_document(resource, Extracted(text="the falcon has landed", lang="text"), plan=ChunkPlan())
    (hit,) = found(legs_of(document), "falcon")
    assert (hit.author, hit.at, hit.around) == ("Dan", 7.0, ())
    assert messages_of(document) == []


def test_other_resources_have_their_own_author_and_time() -> None:
    resource = Resource(rid="file:a.md", path="a.md", author="Dan", updated_at=7.0)
    document = make_document(resource, Extracted(text="the falcon has landed", lang="text"), plan=ChunkPlan())
    (hit,) = found(legs_of(document), "falcon")
    assert (hit.author, hit.at, hit.around) == ("Dan", 7.0, ())


def test_the_messages_of_a_thread_are_one_hit_when_grouped() -> None:
    legs = legs_of(part(0, FIRST), part(1, SECOND))
    (hit,) = found(legs, "falcon", group="thread")
    assert sorted([hit.place, *[one.place for one in hit.passages]]) == [
        "Bob, 2026-04-08 09:01",
        "Bob, 2026-04-08 10:01",
    ]
    assert len(found(legs, "falcon", group="resource")) == 2


def test_an_imported_chat_tells_all_this() -> None:
    said = [Message(str(n), words, author, NINE + n * 60) for n, (author, words) in enumerate(FIRST + SECOND)]
    entries = [kept_message(message) for message in said]
    facts, names = ThreadFacts("slack/general", "general"), [PartName("20260408-090000"), PartName("20260408-090300")]
    first = document_of_part(ChatPart(names[0], entries[:3]), facts, ChunkPlan(), None, names[1])
    second = document_of_part(ChatPart(names[1], entries[3:]), facts, ChunkPlan(), names[0], None)
    (hit,) = found(legs_of(first, second), "feed")
    assert (hit.author, hit.at, hit.place) == ("Ann", NINE + 120, "Ann, 2026-04-08 09:02")
    assert around(hit) == [
        (-1, "Bob, 2026-04-08 09:01", "[2026-04-08 09:01] Bob: The falcon has landed"),
        (-1, "Bob, 2026-04-08 09:01", "and it is hungry"),
        (1, "Cleo, 2026-04-08 09:03", "[2026-04-08 09:03] Cleo: With what"),
    ]
