"""The author of the best message of a passage."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from findling.domain.records import Message
from findling.domain.resources import Chunk, Document, Resource, StoredChunk
from findling.pipelines.content.chat_parts import (
    ChatPart,
    PartName,
    Speaker,
    ThreadFacts,
    best_message,
    document_of_part,
    joined_authors,
    kept_message,
    split_authors,
)
from findling.text.chunking.chunk_plan import ChunkPlan

START = 1_775_637_480.0


def part(*said: tuple[str, str]) -> Document:
    messages = [Message(str(n), text, author, START + n * 60) for n, (author, text) in enumerate(said)]
    facts = ThreadFacts("test/talk", "Talk")
    chat = ChatPart(PartName("20260408-083800"), map(kept_message, messages))
    return document_of_part(chat, facts, ChunkPlan(size=600), None, None)


def passage(document: Document) -> StoredChunk:
    (chunk,) = document.chunks
    return StoredChunk(chunk, document.resource, document.text[chunk.start : chunk.end])


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        (["roof"], Speaker("Ann", START)),
        (["roof", "repair"], Speaker("Lima, Ana", START + 60)),
        (["nothing"], Speaker("", START + 120)),
    ],
)
def test_the_author_is_that_of_the_message_not_all_those_of_the_part(asked: list[str], expected: Speaker) -> None:
    document = part(("Ann", "the roof"), ("Lima, Ana", "roof repair"), ("Bob", "yes"))
    assert document.resource.author == "Ann, Bob, Lima Ana"
    assert best_message(passage(document), asked) == expected


@pytest.mark.parametrize(("author", "expected"), [("Ann", "Ann"), ("Ann, Bob", ""), ("", "")])
def test_a_chat_without_recorded_messages_has_an_author_if_it_is_one(author: str, expected: str) -> None:
    resource = Resource(rid="chat:1", type="chat", author=author)
    stored = StoredChunk(Chunk(1, b"", 0, 0, 4, 1, 1), resource, "roof")
    assert best_message(stored, ["roof"]).author == expected


@given(st.lists(st.text("abAB ,é")))
def test_authors_come_apart_as_they_were_joined(authors: list[str]) -> None:
    expected = {" ".join(author.replace(",", " ").split()) for author in authors} - {""}
    assert split_authors(joined_authors(authors)) == sorted(expected)
