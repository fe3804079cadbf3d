"""Taking messages into the parts of their threads: what is known is left alone, the rest finds its place.

A batch of messages changes as few parts as it can, and a part is bounded, so that a message costs the same whatever
the length of its thread.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from findling.domain.errors import InvalidValueError
from findling.domain.permissions import check_visibility
from findling.domain.records import Message, Thread
from findling.domain.resources import Document
from findling.pipelines.content.chat_parts import (
    ChatPart,
    Entry,
    PartName,
    ThreadFacts,
    chat_rid,
    clean,
    document_of_part,
    make_entry,
    part_of_document,
    split_rid,
    stamp,
    thread_of,
)
from findling.sources.chats.json_stream import YEAR_10000
from findling.text.chunking.chunk_plan import ChunkPlan

__all__ = ["Arrival", "ChatReport", "Merge", "arrivals", "parts_by_thread"]

_MOST_CHANGED = 400
"""Parts that wait to be written at most: fewer than one transaction takes, so that no half of a split is lost."""

_LONGEST_ID = 1000


@dataclass(frozen=True, kw_only=True)
class ChatReport:
    """What became of the messages of an import: `changed` ones were edited since, `known` ones are as they were."""

    threads: int = 0
    added: int = 0
    changed: int = 0
    known: int = 0


class Arrival(NamedTuple):
    """A message with its thread. `key` is the time it is filed under, that of the one before it if it has none.

    It is `None` as long as no message of the thread had a time: then only what is stored tells where it belongs.
    """

    facts: ThreadFacts
    key: float | None
    entry: Entry


def arrivals(threads: Iterable[Thread]) -> Iterator[Arrival]:
    """The messages of the threads that say something, one after the other.

    Raises InvalidValueError for a thread or a message that cannot be filed.
    """
    latest: dict[str, float | None] = {}
    for thread in threads:
        facts = _facts(thread)
        for message in thread.messages:
            if not message.text.strip():
                continue
            entry = make_entry(_checked(message, facts.thread))
            key = latest.get(facts.thread) if entry.at is None else entry.at
            latest[facts.thread] = key
            yield Arrival(facts, key, entry)


def parts_by_thread(rids: Iterable[str]) -> dict[str, list[str]]:
    """The ids of parts by the thread they belong to; what is no part of a chat is left out."""
    found: dict[str, list[str]] = {}
    for rid in rids:
        if (split := split_rid(rid)) is not None:
            found.setdefault(split[0], []).append(rid)
    return found


class Merge:
    """One batch of messages on its way into the parts of a store. The caller holds the write lock.

    `load` gives a stored document and `rids` are those of all chats; `put` writes documents and deletes ids, in one
    transaction.
    """

    def __init__(
        self,
        rids: Iterable[str],
        load: Callable[[str], Document | None],
        put: Callable[[Iterable[Document], Iterable[str]], int],
        plan: ChunkPlan,
    ) -> None:
        self._names = parts_by_thread(rids)
        self._load = load
        self._put = put
        self._plan = plan
        self._threads: dict[str, _ThreadState] = {}
        self._changed: dict[tuple[str, PartName], None] = {}
        self._deleted: dict[str, None] = {}
        self.added = self.changed = self.known = 0

    def add(self, batch: Iterable[Arrival]) -> None:
        """Take in messages, those of each thread in the order of their times, and write what has changed."""
        by_thread: dict[str, list[Arrival]] = {}
        for arrival in batch:
            by_thread.setdefault(arrival.facts.thread, []).append(arrival)
        for messages in by_thread.values():
            for arrival in sorted(messages, key=lambda one: one.key or 0.0):
                self._take(arrival)
                if len(self._changed) >= _MOST_CHANGED:
                    self._write()
        self._write()

    def _take(self, arrival: Arrival) -> None:
        state, entry = self._state_of(arrival.facts), arrival.entry
        key = self._end_of(state) if arrival.key is None else arrival.key
        part = self._holder(state, entry, key)
        if part is None:
            self.added += 1
            self._file(state, key, entry)
            return
        index = part.find(entry.id)
        before = part.entries[index]
        if before == entry:
            self.known += 1
            return
        self.changed += 1
        self._mark(state, part.name)
        if before.at == entry.at:
            part.replace(index, entry)
        else:
            part.remove(index)
            self._file(state, key, entry)
            self._drop_if_empty(state, part)

    def _end_of(self, state: _ThreadState) -> float:
        """The time that a thread ends with, as far as it is there."""
        return self._part(state, state.names[-1]).latest() if state.names else 0.0

    def _holder(self, state: _ThreadState, entry: Entry, key: float) -> ChatPart | None:
        """The part that holds a message already: at its time, or anywhere if neither that nor the message has one."""
        for name in state.candidates(stamp(key)):
            part = self._part(state, name)
            if entry.id in part.ids:
                return part
        if entry.at is not None or entry.id not in self._untimed_ids(state):
            return None
        holders = (part.name for part in self._all_parts(state) if entry.id in part.untimed_ids())
        found = next(holders, None)
        return None if found is None else self._part(state, found)

    def _untimed_ids(self, state: _ThreadState) -> set[str]:
        """The ids of all messages of a thread that have no time. Its parts are read for them once, and then only."""
        if state.untimed is None:
            state.untimed = {id_ for part in self._all_parts(state) for id_ in part.untimed_ids()}
        return state.untimed

    def _all_parts(self, state: _ThreadState) -> Iterator[ChatPart]:
        """The parts of a thread one after the other, none of which is held for that."""
        for name in state.names:
            yield state.parts[name] if name in state.parts else self._read(state, name)[0]

    def _file(self, state: _ThreadState, key: float, entry: Entry) -> None:
        """Put a message into the part it belongs to, and make room there first if need be."""
        if entry.at is None and state.untimed is not None:
            state.untimed.add(entry.id)
        name = state.home(stamp(key))
        if name is None:
            self._new_part(state, key, [entry])
            return
        part = self._part(state, name)
        if not part.has_room(key):
            if part.is_behind(key):
                self._new_part(state, key, [entry])
                return
            if (cut := part.split(state.end_of(name))) is not None:
                self._mark(state, name)
                self._new_part(state, *cut)
                self._file(state, key, entry)
                return
        part.insert(entry, key)
        self._mark(state, name)

    def _new_part(self, state: _ThreadState, key: float, entries: list[Entry]) -> None:
        name = state.free_name(stamp(key))
        part = ChatPart(name)
        for entry in entries:
            key = key if entry.at is None else entry.at
            part.insert(entry, key)
        insort(state.names, name)
        state.parts[name] = part
        self._deleted.pop(chat_rid(state.facts.thread, name), None)
        self._mark(state, name)
        self._mark_neighbours(state, name)

    def _drop_if_empty(self, state: _ThreadState, part: ChatPart) -> None:
        if not part.entries:
            self._mark_neighbours(state, part.name)
            state.names.remove(part.name)
            state.parts.pop(part.name, None)
            self._changed.pop((state.facts.thread, part.name), None)
            self._deleted[chat_rid(state.facts.thread, part.name)] = None

    def _mark_neighbours(self, state: _ThreadState, name: PartName) -> None:
        """Have those written anew that name this part as the one before or after them."""
        for neighbour in state.neighbours(name):
            if neighbour is not None:
                self._part(state, neighbour)
                self._mark(state, neighbour)

    def _mark(self, state: _ThreadState, name: PartName) -> None:
        self._changed[state.facts.thread, name] = None

    def _state_of(self, given: ThreadFacts) -> _ThreadState:
        """The thread as it is stored; whatever is said anew about it holds for all of its parts."""
        state = self._threads.get(given.thread)
        if state is None:
            names = sorted(PartName.read(rid.rpartition("/")[2]) for rid in self._names.get(given.thread, ()))
            state = self._threads[given.thread] = _ThreadState(given, names)
            if names:
                state.parts[names[-1]], state.facts = self._read(state, names[-1])
        facts = _overlaid(state.facts, given)
        if facts != state.facts:
            # The last part comes last: as long as it is the old one, a run that was interrupted does this again.
            self._write()
            state.facts = facts
            for name in list(state.names):
                self._part(state, name)
                self._mark(state, name)
                if len(self._changed) >= _MOST_CHANGED:
                    self._write()
        return state

    def _part(self, state: _ThreadState, name: PartName) -> ChatPart:
        if name not in state.parts:
            state.parts[name], _ = self._read(state, name)
        return state.parts[name]

    def _read(self, state: _ThreadState, name: PartName) -> tuple[ChatPart, ThreadFacts]:
        document = self._load(chat_rid(state.facts.thread, name))
        if document is None:
            raise InvalidValueError(f"{chat_rid(state.facts.thread, name)} has gone", hint="import it again")
        return part_of_document(document)

    def _write(self) -> None:
        """Write every part that has changed; all of them land together, or none does."""
        documents = []
        for thread, name in self._changed:
            state = self._threads[thread]
            before, after = state.neighbours(name)
            documents.append(document_of_part(state.parts[name], state.facts, self._plan, before, after))
        if documents or self._deleted:
            self._put(documents, self._deleted)
        self._changed, self._deleted = {}, {}
        # A thread may have more parts than memory should hold; what is needed again is read again.
        for state in self._threads.values():
            state.parts.clear()


@dataclass
class _ThreadState:
    """A thread while messages are being taken in: the names of all its parts, and those parts that were read.

    `untimed` are the ids of its messages that have no time, once they were asked for.
    """

    facts: ThreadFacts
    names: list[PartName]
    parts: dict[PartName, ChatPart] = field(default_factory=dict)
    untimed: set[str] | None = None

    def candidates(self, second: str) -> list[PartName]:
        """The parts that may hold a message of this second: those that begin in it, and the one before them."""
        first = bisect_left(self.names, PartName(second))
        last = bisect_right(self.names, second, key=lambda name: name.second)
        return self.names[max(first - 1, 0) : last]

    def home(self, second: str) -> PartName | None:
        """The part that a new message of this second belongs to: the last one that does not begin after it."""
        index = bisect_right(self.names, second, key=lambda name: name.second)
        return self.names[index - 1] if index else None

    def free_name(self, second: str) -> PartName:
        """A name for a new part that begins in this second."""
        last = self.home(second)
        return PartName(second, last.number + 1 if last is not None and last.second == second else 0)

    def end_of(self, name: PartName) -> str:
        """The second in which the next part begins; later than any other when there is none."""
        _, after = self.neighbours(name)
        return "~" if after is None else after.second

    def neighbours(self, name: PartName) -> tuple[PartName | None, PartName | None]:
        """The parts before and after one."""
        index = bisect_left(self.names, name)
        before = self.names[index - 1] if index else None
        return before, self.names[index + 1] if index + 1 < len(self.names) else None


def _overlaid(stored: ThreadFacts, given: ThreadFacts) -> ThreadFacts:
    """What is said holds; what is not said stays: above all, who may see a thread does not widen by itself."""
    return ThreadFacts(
        stored.thread,
        given.title or stored.title,
        given.tags or stored.tags,
        stored.visibility if given.visibility is None else given.visibility,
    )


def _facts(thread: Thread) -> ThreadFacts:
    source, id_ = thread.source, thread.id
    if not source or "/" in source or not _is_name(source):
        raise InvalidValueError(f"{source!r} cannot be a source of chats", hint="a short name without a slash")
    if not _is_name(id_):
        raise InvalidValueError(f"{id_!r} cannot be the id of a thread", hint="one line of text, without a control")
    visibility = None if thread.visibility is None else check_visibility(thread.visibility)
    return ThreadFacts(thread_of(source, id_), clean(thread.title, one_line=True), thread.tags, visibility)


def _is_name(text: str) -> bool:
    return 0 < len(text) <= _LONGEST_ID and text.isprintable() and text == text.strip()


def _checked(message: Message, thread: str) -> Message:
    if not clean(message.id):
        raise InvalidValueError(f"a message of {thread} has no id", hint="give every message its own")
    if message.at is not None and not 0 <= message.at < YEAR_10000:
        raise InvalidValueError(
            f"message {message.id} of {thread}: {message.at} is no time",
            hint="seconds since 1970, below the year 10000",
        )
    return message
