"""Parts of chats: up to a hundred messages of a thread as one resource, and back again.

A part has its name from the second of its first message: the names alone say where a message of a long thread belongs.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from collections.abc import Iterable
from datetime import UTC, datetime
from itertools import pairwise
from typing import NamedTuple

from findling.domain.records import Message
from findling.domain.resources import Document, Place, Resource, StoredChunk
from findling.pipelines.indexing.document_build import make_document
from findling.sources.extracted import Extracted, paired_surrogates
from findling.text.analysis.analysis import terms
from findling.text.chunking.chat_messages import read_messages
from findling.text.chunking.chunk_plan import ChunkPlan


class Speaker(NamedTuple):
    """The author of a message and its time in seconds since the epoch; `None` for an unknown one."""

    author: str
    at: float | None = None


def best_message(stored: StoredChunk, asked: Iterable[str]) -> Speaker:
    """Author and time of the message with most of the query's terms; without one, the only author of the passage."""
    chunk, resource, text = stored
    starts = [place.start - chunk.start for place in chunk.places]
    spans = zip(chunk.places, starts, [*starts[1:], len(text)], strict=False)
    messages = [(speaker_of(place.label), text[start:end]) for place, start, end in spans]
    wanted = set(asked)
    found = [len(wanted.intersection(terms(said))) for _, said in messages]
    if any(found):
        return messages[found.index(max(found))][0]
    authors = {speaker.author for speaker, _ in messages} or set(split_authors(resource.author))
    times = [speaker.at for speaker, _ in messages if speaker.at is not None]
    return Speaker(authors.pop() if len(authors) == 1 else "", max(times, default=None))


def joined_authors(authors: Iterable[str]) -> str:
    """The author of a resource with several: sorted names, each once, with a comma between them."""
    return _BETWEEN.join(sorted({" ".join(author.replace(",", " ").split()) for author in authors} - {""}))


def split_authors(author: str) -> list[str]:
    """The authors that were joined."""
    return author.split(_BETWEEN) if author else []


def speaker_of(label: str) -> Speaker:
    """The speaker from the label of a place: `AUTHOR, 2026-04-08 08:38`."""
    from datetime import datetime

    timed = _TIMED.fullmatch(label)
    if timed is None:
        return Speaker(label)
    try:
        at = datetime.fromisoformat(f"{timed['time']}+00:00").timestamp()
    except ValueError:  # somebody calls themselves 2024-13-45 99:99
        at = None
    return Speaker(timed["author"] or "", at)


_BETWEEN = ", "
_TIMED = re.compile(r"(?:(?P<author>.*), )?(?P<time>\d{4}-\d\d-\d\d \d\d:\d\d)", re.DOTALL)


_PREFIX = "chat:"

_MOST_MESSAGES = 100
_MOST_CHARACTERS = 20_000
_ENOUGH_MESSAGES = 50
_SILENCE_S = 3600.0  # a part of so many messages ends with an hour of silence, as passages do


class PartName(NamedTuple):
    """The name of a part: the second of its first message, and a number when several begin within it."""

    second: str
    number: int = 0

    def __str__(self) -> str:
        return f"{self.second}-{self.number}" if self.number else self.second

    @classmethod
    def read(cls, name: str) -> PartName:
        """The name from its text."""
        second, number = name[:_STAMP_LENGTH], name[_STAMP_LENGTH + 1 :]
        return cls(second, int(number or 0))


class ThreadFacts(NamedTuple):
    """The facts that all parts of a thread share; `thread` is SOURCE/ID."""

    thread: str
    title: str = ""
    tags: tuple[str, ...] = ()
    visibility: tuple[str, ...] | None = None


class KeptMessage(NamedTuple):
    """A message as a part keeps it; `shown` is its form in the text."""

    id: str
    at: float | None
    author: str
    reply_to: str
    shown: str


class ChatPart:
    """Messages in the order of their times; one without a time stands behind the one it came after."""

    def __init__(self, name: PartName, messages: Iterable[KeptMessage] = ()) -> None:
        self.name = name
        self.messages: list[KeptMessage] = []
        self._keys: list[float] = []
        for message in messages:
            self.insert(message, self.latest() if message.at is None else message.at)

    def is_behind(self, key: float) -> bool:
        """Whether a message of this time would be the last of the part."""
        return not self._keys or key >= self._keys[-1]

    def has_room(self, key: float) -> bool:
        """Whether the part can hold another message, at this time; a part of some size ends with a long silence."""
        count, characters = len(self.messages), sum(len(message.shown) for message in self.messages)
        if count >= _ENOUGH_MESSAGES and key - self._keys[-1] > _SILENCE_S:
            return False
        return count < _MOST_MESSAGES and characters < _MOST_CHARACTERS

    def insert(self, message: KeptMessage, key: float) -> None:
        """Put a message behind all those that are not later."""
        at = bisect_right(self._keys, key)
        self.messages.insert(at, message)
        self._keys.insert(at, key)

    def find(self, id_: str, *, untimed: bool = False) -> int | None:
        """The index of a message, of one without a time if it must be `untimed`."""
        found = (
            index for index, one in enumerate(self.messages) if one.id == id_ and not (untimed and one.at is not None)
        )
        return next(found, None)

    def remove(self, index: int) -> None:
        """Remove a message."""
        del self.messages[index], self._keys[index]

    def split(self, end: str) -> tuple[float, list[KeptMessage]] | None:
        """Remove the second half: the time of its first message, and its messages.

        The next part begins in the second `end`; the new part needs a name before it. `None` when there is none.
        """
        middle = len(self.messages) // 2
        while middle and stamp(self._keys[middle]) >= end:
            middle -= 1
        if not middle:
            return None
        key, moved = self._keys[middle], self.messages[middle:]
        del self._keys[middle:], self.messages[middle:]
        return key, moved

    def latest(self) -> float:
        """The time of the last message, or that of the part; a message without a time is filed under it."""
        if self._keys:
            return self._keys[-1]
        return datetime.strptime(f"{self.name.second} +0000", "%Y%m%d-%H%M%S %z").timestamp()


def chat_rid(thread: str, name: PartName) -> str:
    """The id of a part as a resource."""
    return f"{_PREFIX}{thread}/{name}"


def split_rid(rid: str) -> tuple[str, str] | None:
    """The thread and the name of a part, as texts; `None` for another resource."""
    thread, _, name = rid.removeprefix(_PREFIX).rpartition("/")
    return (thread, name) if rid.startswith(_PREFIX) and _NAME.fullmatch(name) else None


def stamp(seconds: float) -> str:
    """The second of a time, so written that the order of texts is that of times."""
    return datetime.fromtimestamp(seconds, UTC).isoformat()[:_ISO_LENGTH].translate(_COMPACT)


def kept_message(message: Message) -> KeptMessage:
    """The message with its author in front; a line that looks like another message is indented."""
    author = clean(message.author, one_line=True)
    speaker = " ".join(_NOT_IN_NAMES.sub(" ", author).split())[:_LONGEST_SPEAKER].rstrip() or _NOBODY
    time = "" if message.at is None else f"[{_minute(message.at)}] "
    shown = f"{time}{speaker}: {clean(message.text)}"
    while "\n" in shown and (others := [found.start for found in read_messages(shown) if found.start]):
        shown = " ".join([shown[start:end] for start, end in pairwise([0, *others, len(shown)])])
    id_, reply_to = clean(message.id, one_line=True), clean(message.reply_to, one_line=True)
    return KeptMessage(id_, message.at, author, reply_to, shown)


def document_of_part(
    part: ChatPart, facts: ThreadFacts, plan: ChunkPlan, before: PartName | None, after: PartName | None
) -> Document:
    """The part as a document; `before` and `after` are its neighbours in the thread."""
    places, rows, start = [], [], 0
    for id_, at, author, reply_to, shown in part.messages:
        places.append(Place(start, ", ".join(filter(None, (author, "" if at is None else _minute(at))))))
        row = {"id": id_, "start": start, "author": author, "at": at, "reply_to": reply_to}
        rows.append({key: value for key, value in row.items() if value not in ("", None)})
        start += len(shown) + 1
    times = [message.at for message in part.messages if message.at is not None]
    neighbours = {"previous": before, "next": after}
    resource = Resource(
        rid=chat_rid(facts.thread, part.name),
        type="chat",
        title=facts.title,
        author=joined_authors(message.author for message in part.messages),
        lang="chat",
        tags=facts.tags,
        visibility=facts.visibility,
        created_at=min(times, default=None),
        updated_at=max(times, default=None),
        fields={
            "thread": facts.thread,
            **{role: chat_rid(facts.thread, name) for role, name in neighbours.items() if name is not None},
            "messages": json.dumps(rows, ensure_ascii=False, separators=(",", ":")),
        },
    )
    text = "\n".join([message.shown for message in part.messages])
    return make_document(resource, Extracted(text=text, lang="chat", places=tuple(places)), plan=plan)


def part_of_document(document: Document) -> tuple[ChatPart, ThreadFacts]:
    """The part that `document_of_part` made a document of."""
    resource, text = document.resource, document.text
    rows = json.loads(resource.fields["messages"])
    ends = [*(row["start"] - 1 for row in rows[1:]), len(text)]
    messages = [
        KeptMessage(row["id"], row.get("at"), row.get("author", ""), row.get("reply_to", ""), text[row["start"] : end])
        for row, end in zip(rows, ends, strict=True)
    ]
    facts = ThreadFacts(resource.fields["thread"], resource.title, resource.tags, resource.visibility)
    return ChatPart(PartName.read(resource.rid.rpartition("/")[2]), messages), facts


def clean(text: str, *, one_line: bool = False) -> str:
    """The text without control characters and halves of characters; lines end with `\\n`."""
    if not (text.isascii() and text.isprintable()):
        text = _NO_TEXT.sub("", _BREAKS.sub("\n", paired_surrogates(text)))
    return " ".join(text.split()) if one_line else text.strip()


_STAMP_LENGTH = len("20260408-083800")
_ISO_LENGTH = len("2026-04-08T08:38:00")
_MINUTE_LENGTH = len("2026-04-08 08:38")
_COMPACT = str.maketrans({"-": None, ":": None, "T": "-"})
_NAME = re.compile(r"\d{8}-\d{6}(?:-\d+)?")
_NO_TEXT = re.compile("[\x00-\x08\x0e-\x1f\x7f\ufeff\u00ad]")
_BREAKS = re.compile("\r\n?|[\x0b\x0c\x85\u2028\u2029]")
_NOT_IN_NAMES = re.compile(r"[:<>\[\]]")
_LONGEST_SPEAKER = 64
_NOBODY = "unknown"


def _minute(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(" ", "minutes")[:_MINUTE_LENGTH]
