"""Parts of chats: up to a hundred messages of a thread as one resource, and back again.

A part is called after the second of its first message, so that the names of the parts alone tell where a message
belongs, however long the thread is.
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
from findling.domain.resources import Document, Place, Resource
from findling.pipelines.content.chat_authors import joined_authors
from findling.pipelines.indexing.document_build import make_document
from findling.sources.documents.charsets import paired_surrogates
from findling.sources.documents.extracted import Extracted
from findling.text.chunking.chat_messages import read_messages
from findling.text.chunking.chunk_plan import ChunkPlan

__all__ = [
    "ChatPart",
    "Entry",
    "PartName",
    "ThreadFacts",
    "chat_rid",
    "clean",
    "document_of_part",
    "make_entry",
    "part_of_document",
    "split_rid",
    "stamp",
    "thread_of",
]

_PREFIX = "chat:"

_MOST_MESSAGES = 100
_MOST_CHARACTERS = 20_000
_ENOUGH_MESSAGES = 50
_SILENCE_S = 3600.0
"""A part of so many messages ends where nobody says anything for an hour, which is where passages end, too."""


class PartName(NamedTuple):
    """What a part is called: the second of its first message, and a number when several begin within it."""

    second: str
    number: int = 0

    def __str__(self) -> str:
        return f"{self.second}-{self.number}" if self.number else self.second

    @property
    def seconds(self) -> float:
        """The time it stands for."""
        return datetime.strptime(f"{self.second} +0000", "%Y%m%d-%H%M%S %z").timestamp()

    @classmethod
    def read(cls, name: str) -> PartName:
        """The name from its text."""
        second, number = name[:_STAMP_LENGTH], name[_STAMP_LENGTH + 1 :]
        return cls(second, int(number or 0))


class ThreadFacts(NamedTuple):
    """What all parts of a thread have in common."""

    thread: str
    title: str = ""
    tags: tuple[str, ...] = ()
    visibility: tuple[str, ...] | None = None


class Entry(NamedTuple):
    """A message as a part keeps it; `shown` is how it stands in the text."""

    id: str
    at: float | None
    author: str
    reply_to: str
    shown: str


class ChatPart:
    """Messages in the order of their times; one without a time stands behind the one it came after."""

    def __init__(self, name: PartName, entries: Iterable[Entry] = ()) -> None:
        self.name = name
        self.entries: list[Entry] = []
        self.ids: set[str] = set()
        self._keys: list[float] = []
        self._characters = 0
        for entry in entries:
            self.insert(entry, self.latest() if entry.at is None else entry.at)

    def is_behind(self, key: float) -> bool:
        """Whether a message of this time would be the last of the part."""
        return not self._keys or key >= self._keys[-1]

    def has_room(self, key: float) -> bool:
        """Whether it can take another message, at this time; a part of some size ends with a long silence."""
        count = len(self.entries)
        if count >= _ENOUGH_MESSAGES and key - self._keys[-1] > _SILENCE_S:
            return False
        return count < _MOST_MESSAGES and self._characters < _MOST_CHARACTERS

    def insert(self, entry: Entry, key: float) -> None:
        """Put a message behind all those that are not later."""
        at = bisect_right(self._keys, key)
        self.entries.insert(at, entry)
        self._keys.insert(at, key)
        self.ids.add(entry.id)
        self._characters += len(entry.shown)

    def find(self, id_: str) -> int:
        """Where a message that is there stands."""
        return next(index for index, entry in enumerate(self.entries) if entry.id == id_)

    def replace(self, index: int, entry: Entry) -> None:
        """Put another version of a message in its place."""
        self._characters += len(entry.shown) - len(self.entries[index].shown)
        self.entries[index] = entry

    def remove(self, index: int) -> None:
        """Take a message out."""
        self.ids.discard(self.entries[index].id)
        self._characters -= len(self.entries[index].shown)
        del self.entries[index], self._keys[index]

    def split(self, end: str) -> tuple[float, list[Entry]] | None:
        """Take the second half out: the time of its first message, and its messages.

        That message comes before the second `end`, in which the next part begins, or there would be no name for the
        new part between the two; `None` when there is no such place.
        """
        middle = len(self.entries) // 2
        while middle and stamp(self._keys[middle]) >= end:
            middle -= 1
        if not middle:
            return None
        key, moved = self._keys[middle], self.entries[middle:]
        for index in range(len(self.entries) - 1, middle - 1, -1):
            self.remove(index)
        return key, moved

    def latest(self) -> float:
        """The time of the last message, or that of the part: what a message without a time is filed under."""
        return self._keys[-1] if self._keys else self.name.seconds

    def untimed_ids(self) -> set[str]:
        """The ids of its messages that have no time."""
        return {entry.id for entry in self.entries if entry.at is None}


def chat_rid(thread: str, name: PartName) -> str:
    """The id of a part as a resource."""
    return f"{_PREFIX}{thread}/{name}"


def split_rid(rid: str) -> tuple[str, str] | None:
    """The thread and the name of a part, as texts; `None` for what is no part of a chat."""
    thread, _, name = rid.removeprefix(_PREFIX).rpartition("/")
    return (thread, name) if rid.startswith(_PREFIX) and _NAME.fullmatch(name) else None


def thread_of(source: str, id_: str) -> str:
    """What names a thread in a workspace."""
    return f"{source}/{id_}"


def stamp(seconds: float) -> str:
    """The second of a time, so written that the order of texts is that of times."""
    return datetime.fromtimestamp(seconds, UTC).isoformat()[:_ISO_LENGTH].translate(_COMPACT)


def make_entry(message: Message) -> Entry:
    """The message as it is kept, with the author in front of what is said.

    A line of it that would be read as the beginning of another message is indented.
    """
    author = clean(message.author, one_line=True)
    speaker = " ".join(_NOT_IN_NAMES.sub(" ", author).split())[:_LONGEST_SPEAKER].rstrip() or _NOBODY
    shown = f"{speaker}: {clean(message.text)}"
    if message.at is not None:
        shown = f"[{_minute(message.at)}] {shown}"
    while "\n" in shown and (others := [found.start for found in read_messages(shown) if found.start]):
        shown = " ".join([shown[start:end] for start, end in pairwise([0, *others, len(shown)])])
    return Entry(clean(message.id, one_line=True), message.at, author, clean(message.reply_to, one_line=True), shown)


def document_of_part(
    part: ChatPart, facts: ThreadFacts, plan: ChunkPlan, before: PartName | None, after: PartName | None
) -> Document:
    """The part as a document; `before` and `after` are its neighbours in the thread."""
    places, rows, start = [], [], 0
    for entry in part.entries:
        places.append(Place(start, _label(entry)))
        row = {"id": entry.id, "start": start, "author": entry.author, "at": entry.at, "reply_to": entry.reply_to}
        rows.append({key: value for key, value in row.items() if value not in ("", None)})
        start += len(entry.shown) + 1
    times = [entry.at for entry in part.entries if entry.at is not None]
    neighbours = {"previous": before, "next": after}
    resource = Resource(
        rid=chat_rid(facts.thread, part.name),
        type="chat",
        title=facts.title,
        author=joined_authors(entry.author for entry in part.entries),
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
    text = "\n".join([entry.shown for entry in part.entries])
    return make_document(resource, Extracted(text=text, lang="chat", places=tuple(places)), plan=plan)


def part_of_document(document: Document) -> tuple[ChatPart, ThreadFacts]:
    """The part that `document_of_part` made a document of."""
    resource, text = document.resource, document.text
    rows = json.loads(resource.fields["messages"])
    ends = [*(row["start"] - 1 for row in rows[1:]), len(text)]
    entries = [
        Entry(row["id"], row.get("at"), row.get("author", ""), row.get("reply_to", ""), text[row["start"] : end])
        for row, end in zip(rows, ends, strict=True)
    ]
    name = PartName.read(resource.rid.rpartition("/")[2])
    return ChatPart(name, entries), ThreadFacts(
        resource.fields["thread"], resource.title, resource.tags, resource.visibility
    )


def clean(text: str, *, one_line: bool = False) -> str:
    """The text without what is no text: control characters and halves of characters; lines end with `\\n`."""
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


def _label(entry: Entry) -> str:
    """What the place of a message is called: who and when."""
    return ", ".join(filter(None, (entry.author, "" if entry.at is None else _minute(entry.at))))


def _minute(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(" ", "minutes")[:_MINUTE_LENGTH]
