"""Merging messages into the parts of their threads: known ones stay, new and edited ones find their place.

A batch of messages changes as few parts as it can, and parts are bounded. The length of a thread does not matter.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from findling.domain.errors import InvalidValueError
from findling.domain.permissions import check_visibility
from findling.domain.records import Message, Thread
from findling.domain.resources import Document
from findling.pipelines.content.chat_parts import (
    ChatPart,
    KeptMessage,
    PartName,
    ThreadFacts,
    chat_rid,
    clean,
    document_of_part,
    kept_message,
    part_of_document,
    split_rid,
    stamp,
)
from findling.sources.chats.json_stream import YEAR_10000
from findling.text.chunking.chunk_plan import ChunkPlan

_MOST_PENDING = 400
"""Parts that wait to be written: fewer than one transaction takes, so that no half of a split is lost."""

_LONGEST_ID = 1000


@dataclass(frozen=True, kw_only=True)
class ChatReport:
    """The counts of an import: `changed` messages were edited since, `known` ones are as they were."""

    threads: int = 0
    added: int = 0
    changed: int = 0
    known: int = 0


class Arrival(NamedTuple):
    """A message with its thread. `key` is the time it is filed under, that of the one before it if it has none.

    It is `None` before the first message of the thread that has a time: then the stored parts decide.
    """

    facts: ThreadFacts
    key: float | None
    message: KeptMessage


def arrivals(threads: Iterable[Thread]) -> Iterator[Arrival]:
    """The messages of the threads that are not empty. Raises InvalidValueError for a wrong thread or message."""
    latest: dict[str, float | None] = {}
    for thread in threads:
        facts = _facts(thread)
        for message in thread.messages:
            if message.text.strip():
                _check(message, facts.thread)
                key = latest.get(facts.thread) if message.at is None else message.at
                latest[facts.thread] = key
                yield Arrival(facts, key, kept_message(message))


def parts_by_thread(rids: Iterable[str]) -> dict[str, list[str]]:
    """The ids of parts by the thread they belong to; other ids are left out."""
    found: dict[str, list[str]] = {}
    for rid in rids:
        if (split := split_rid(rid)) is not None:
            found.setdefault(split[0], []).append(rid)
    return found


class Merge:
    """One batch of messages on its way into the parts of a store. The caller holds the write lock.

    `load` gives a stored document and `rids` are those of all chats; `put` writes documents and deletes ids, in one
    transaction. `counts` are those of a ChatReport.
    """

    def __init__(
        self,
        rids: Iterable[str],
        load: Callable[[str], Document | None],
        put: Callable[[Iterable[Document], Iterable[str]], int],
        plan: ChunkPlan,
    ) -> None:
        self.counts = Counter(added=0, changed=0, known=0)
        self._rids = parts_by_thread(rids)
        self._load = load
        self._put = put
        self._plan = plan
        self._threads: dict[str, _ThreadParts] = {}
        self._pending: _Pending = {}

    def add(self, batch: Iterable[Arrival]) -> None:
        """Merge messages, those of each thread in the order of their times, and write the changed parts."""
        by_thread: dict[str, list[Arrival]] = {}
        for arrival in batch:
            by_thread.setdefault(arrival.facts.thread, []).append(arrival)
        for own in by_thread.values():
            for facts, key, message in sorted(own, key=lambda one: one.key or 0.0):
                self.counts[self._thread(facts).take(message, key)] += 1
                self._write(_MOST_PENDING)
        self._write()

    def _thread(self, given: ThreadFacts) -> _ThreadParts:
        """The thread as it is stored; new facts hold for all of its parts."""
        thread = self._threads.get(given.thread)
        if thread is None:
            names = sorted(PartName.read(rid.rpartition("/")[2]) for rid in self._rids.get(given.thread, ()))
            thread = self._threads[given.thread] = _ThreadParts(given, names, self._load, self._pending)
        # Silence must not widen who may see a thread.
        visibility = thread.facts.visibility if given.visibility is None else given.visibility
        facts = given._replace(
            title=given.title or thread.facts.title, tags=given.tags or thread.facts.tags, visibility=visibility
        )
        if facts != thread.facts:
            # The last part comes last: as long as it is the old one, a run that was interrupted does this again.
            self._write()
            thread.facts = facts
            for name in list(thread.names):
                thread.mark(name)
                self._write(_MOST_PENDING)
        return thread

    def _write(self, least: int = 1) -> None:
        """Write every changed part when there are so many; all of them land together, or none does."""
        if len(self._pending) < least:
            return
        documents = []
        for found in self._pending.values():
            if found is not None:
                thread, name = found
                documents.append(
                    document_of_part(thread.part(name), thread.facts, self._plan, *thread.neighbours(name))
                )
        self._put(documents, [rid for rid, found in self._pending.items() if found is None])
        self._pending.clear()
        for thread in self._threads.values():
            thread.parts.clear()


class _ThreadParts:
    """The parts of one thread: all names, and the contents of those that were read since the last write."""

    def __init__(
        self, given: ThreadFacts, names: list[PartName], load: Callable[[str], Document | None], pending: _Pending
    ) -> None:
        self.facts = given
        self.names = names
        self.parts: dict[PartName, ChatPart] = {}
        self._load = load
        self._pending = pending
        self._untimed: set[str] | None = None
        if names:
            self.parts[names[-1]], self.facts = self._read(names[-1])

    def take(self, message: KeptMessage, key: float | None) -> str:
        """File a message; the outcome is one of the counts."""
        if key is None:
            key = self.part(self.names[-1]).latest() if self.names else 0.0
        held = self._held(message, key)
        if held is None:
            self._file(message, key)
            return "added"
        part, index = held
        before = part.messages[index]
        if before == message:
            return "known"
        self.mark(part.name)
        if before.at == message.at:
            part.messages[index] = message
        else:
            part.remove(index)
            self._file(message, key)
            if not part.messages:
                self._drop(part.name)
        return "changed"

    def part(self, name: PartName) -> ChatPart:
        """A part, which is read unless it is held."""
        if name not in self.parts:
            self.parts[name], _ = self._read(name)
        return self.parts[name]

    def mark(self, name: PartName) -> None:
        """Have a part written."""
        self._pending[chat_rid(self.facts.thread, name)] = self, name

    def neighbours(self, name: PartName) -> tuple[PartName | None, PartName | None]:
        """The parts before and after one."""
        index = bisect_left(self.names, name)
        before = self.names[index - 1] if index else None
        return before, self.names[index + 1] if index + 1 < len(self.names) else None

    def _read(self, name: PartName) -> tuple[ChatPart, ThreadFacts]:
        rid = chat_rid(self.facts.thread, name)
        document = self._load(rid)
        if document is None:
            raise InvalidValueError(f"{rid} has gone", hint="import it again")
        return part_of_document(document)

    def _held(self, message: KeptMessage, key: float) -> tuple[ChatPart, int] | None:
        """The place of a message that is known already: at its time, or anywhere if neither copy has one."""
        # Parts that begin in the second of the message may hold it, and so may the one before them.
        first = bisect_left(self.names, PartName(stamp(key)))
        for name in self.names[max(first - 1, 0) : self._behind(stamp(key))]:
            if (index := self.part(name).find(message.id)) is not None:
                return self.part(name), index
        if message.at is not None:
            return None
        if self._untimed is None:
            parts = (self._glance(name) for name in self.names)
            self._untimed = {one.id for part in parts for one in part.messages if one.at is None}
        for name in self.names if message.id in self._untimed else ():
            if (index := self._glance(name).find(message.id, untimed=True)) is not None:
                return self.part(name), index
        return None

    def _glance(self, name: PartName) -> ChatPart:
        """A part, which is not held for that: a thread may have more than memory should hold."""
        return self.parts[name] if name in self.parts else self._read(name)[0]

    def _behind(self, second: str) -> int:
        """The index behind the parts that do not begin after a second; a new message belongs to the last of them."""
        return bisect_right(self.names, second, key=lambda name: name.second)

    def _file(self, message: KeptMessage, key: float) -> None:
        """Put a message into the part it belongs to, which is split when it is full."""
        if message.at is None and self._untimed is not None:
            self._untimed.add(message.id)
        index = self._behind(stamp(key))
        part = self.part(self.names[index - 1]) if index else None
        if part is None or (not part.has_room(key) and part.is_behind(key)):
            self._new_part(key, [message])
            return
        if not part.has_room(key):
            _, after = self.neighbours(part.name)
            if (cut := part.split("~" if after is None else after.second)) is not None:
                self.mark(part.name)
                self._new_part(*cut)
                self._file(message, key)
                return
        part.insert(message, key)
        self.mark(part.name)

    def _new_part(self, key: float, messages: list[KeptMessage]) -> None:
        second = stamp(key)
        index = self._behind(second)
        last = self.names[index - 1] if index else None
        name = PartName(second, last.number + 1 if last is not None and last.second == second else 0)
        part = ChatPart(name)
        for message in messages:
            key = key if message.at is None else message.at
            part.insert(message, key)
        insort(self.names, name)
        self.parts[name] = part
        self.mark(name)
        self._mark_neighbours(name)

    def _drop(self, name: PartName) -> None:
        self._mark_neighbours(name)
        self.names.remove(name)
        self.parts.pop(name, None)
        self._pending[chat_rid(self.facts.thread, name)] = None

    def _mark_neighbours(self, name: PartName) -> None:
        for neighbour in self.neighbours(name):
            if neighbour is not None:
                self.mark(neighbour)


_Pending = dict[str, tuple[_ThreadParts, PartName] | None]
"""The ids of parts to write, and of those to delete, which have nothing."""


def _facts(thread: Thread) -> ThreadFacts:
    source, id_ = thread.source, thread.id
    if "/" in source or not _is_name(source):
        raise InvalidValueError(f"{source!r} cannot be a source of chats", hint="a short name without a slash")
    if not _is_name(id_):
        raise InvalidValueError(f"{id_!r} cannot be the id of a thread", hint="one line of text, without a control")
    visibility = None if thread.visibility is None else check_visibility(thread.visibility)
    return ThreadFacts(f"{source}/{id_}", clean(thread.title, one_line=True), thread.tags, visibility)


def _is_name(text: str) -> bool:
    return 0 < len(text) <= _LONGEST_ID and text.isprintable() and text == text.strip()


def _check(message: Message, thread: str) -> None:
    if not clean(message.id):
        raise InvalidValueError(f"a message of {thread} has no id", hint="give every message its own")
    if message.at is not None and not 0 <= message.at < YEAR_10000:
        raise InvalidValueError(
            f"message {message.id} of {thread}: {message.at} is no time",
            hint="seconds since 1970, below the year 10000",
        )
