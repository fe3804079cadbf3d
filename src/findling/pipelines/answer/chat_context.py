"""Surroundings: who said what was found in a chat, when, and what was said before and after it."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import replace
from itertools import pairwise
from typing import NamedTuple

from findling.domain.ports import ReadStore
from findling.domain.resources import Document, Place, Resource, StoredChunk
from findling.domain.results import Hit, Line
from findling.domain.values import read_json
from findling.pipelines.answer.rankings import HighlightSpec
from findling.pipelines.content.chat_parts import Speaker, speaker_of, split_authors
from findling.text.snippets import JudgedText


class Said(NamedTuple):
    """A message of a chat: where it begins in the text, what its place is called, and what it says."""

    start: int
    label: str
    text: str


def in_conversation(hit: Hit, stored: StoredChunk, offset: int, asked: HighlightSpec, store: ReadStore) -> Hit:
    """The hit with the author and time of the message at an offset of the chat's text, and the messages around it.

    A line of `around` is numbered by how far its message is from the one that was found: -1 is the one before it.
    """
    author, at = _speaker(stored, offset)
    around = _around(stored.resource, offset, asked, store) if asked.around and asked.snippet_lines else ()
    return replace(hit, author=author, at=at, around=around)


def messages_of(document: Document) -> list[Said]:
    """The messages of a chat in order: as they were recorded, or one for every place of the text."""
    places = _places(document)
    starts_of_places = [place.start for place in places]
    starts = [start for start, _ in _recorded(document.resource)] or starts_of_places
    messages = []
    for start, end in pairwise([*starts, len(document.text)]):
        place = places[max(bisect_right(starts_of_places, start) - 1, 0)] if places else Place(0)
        messages.append(Said(start, place.label, document.text[start:end].strip()))
    return messages


def _around(resource: Resource, offset: int, asked: HighlightSpec, store: ReadStore) -> tuple[Line, ...]:
    document = store.document(resource.rid)
    if document is None:  # deleted since it was found
        return ()
    count, messages = asked.around, messages_of(document)
    found = max(bisect_right([message.start for message in messages], offset) - 1, 0)
    before, after = messages[max(found - count, 0) : found], messages[found + 1 : found + 1 + count]
    if len(before) < count:
        before = [*_part(resource, "previous", store)[len(before) - count :], *before]
    if len(after) < count:
        after = [*after, *_part(resource, "next", store)[: count - len(after)]]
    around: list[Line] = []
    for distance, message in (*enumerate(before, start=-len(before)), *enumerate(after, start=1)):
        lines, _ = JudgedText(message.text, ()).show(1, asked.snippet_lines)
        around += [replace(line, number=distance, place=message.label) for line in lines]
    return tuple(around)


def _part(resource: Resource, which: str, store: ReadStore) -> list[Said]:
    """The messages of the `previous` or the `next` part of the same thread, which a part names, if it is there."""
    rid, thread = resource.fields.get(which, ""), resource.fields.get("thread", "")
    document = store.document(rid) if rid and thread else None
    return [] if document is None or document.resource.fields.get("thread") != thread else messages_of(document)


def _speaker(stored: StoredChunk, offset: int) -> Speaker:
    """Author and time of a message: as recorded, as the place is called, or as a chat of one author says."""
    resource = stored.resource
    said = [speaker for start, speaker in _recorded(resource) if start <= offset]
    if said:
        return said[-1]
    label = next((place.label for place in reversed(stored.chunk.places) if place.start <= offset), "")
    named = speaker_of(label)
    if named.author == label:
        # The place tells no time.
        authors = split_authors(resource.author)
        return Speaker(label or (authors[0] if len(authors) == 1 else ""), resource.updated_at)
    return named


def _places(document: Document) -> list[Place]:
    """The places of the whole text; one that continues in the next chunk is one place."""
    places: list[Place] = []
    for chunk in document.chunks:
        for place in chunk.places:
            goes_on = bool(places) and place.label == places[-1].label and place.start == chunk.start
            if not goes_on and (not places or place.start > places[-1].start):
                places.append(place)
    return places


def _recorded(resource: Resource) -> list[tuple[int, Speaker]]:
    """The notes of an importer: where each message starts, in this order, and who says it; without unreadable ones."""
    try:
        entries = read_json(resource.fields.get("messages", "[]"))
    except ValueError:
        return []
    records = {}
    for entry in entries if isinstance(entries, list) else ():
        start = entry.get("start") if isinstance(entry, dict) else None
        if isinstance(start, int):
            author, at = entry.get("author"), entry.get("at")
            is_time = isinstance(at, (int, float)) and not isinstance(at, bool)
            records[start] = Speaker(author if isinstance(author, str) else "", float(at) if is_time else None)
    return sorted(records.items())
