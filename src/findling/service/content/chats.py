"""Chats of one workspace: indexed message by message, listed, deleted."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, TYPE_CHECKING, NamedTuple

from findling.domain.errors import FindlingError, NotFoundError, UsageError
from findling.domain.permissions import check_visibility
from findling.domain.records import Thread
from findling.domain.resources import Resource
from findling.pipelines.content.chats import Arrival, ChatReport, Merge, arrivals, parts_by_thread
from findling.sources.chats.chat_formats import FORMATS, Wishes, read_chats, read_chats_stream
from findling.text.chunking.chunk_plan import PRESETS

if TYPE_CHECKING:
    from findling.service.index.writing import WorkspaceWriter
    from findling.text.chunking.chunk_plan import ChunkPlan

__all__ = ["FORMATS", "ChatReport", "ThreadSummary", "WorkspaceChats", "read_export"]

_BATCH_MESSAGES = 2_000
_BATCH_CHARACTERS = 4_000_000
"""Size of a batch, which is held in memory and written under one lock."""

_WINDOW = 160
"""Tokens of a passage of a chat, about four messages. Of 442 conversations with 571 queries (NDCG@10, instant and after
a model has read them): 80 tokens .786; 120 .808 and .815; 160 .809 and .817; 240 .801 and .805; 480 .795 and .803."""


_NOBODY = "nobody"


def read_export(
    export: Path | IO[bytes], wishes: Mapping[str, str], visibility: Sequence[str] = ()
) -> Iterable[Thread]:
    """The threads of an export, a file or a stream, seen by `visibility` if that names anybody.

    `wishes` are the fields of `Wishes`. Raises UsageError for what is no export, and for principals that clash.
    """
    asked = Wishes(**wishes)
    threads = read_chats(export, asked) if isinstance(export, Path) else read_chats_stream(export, "stdin", asked)
    if not visibility:
        return threads
    if _NOBODY in visibility and len(visibility) > 1:
        raise UsageError(f"--visibility {_NOBODY} leaves no room for others", hint="name it alone, or not at all")
    seen_by = () if _NOBODY in visibility else check_visibility(visibility)
    return (thread._replace(visibility=seen_by) for thread in threads)


class ThreadSummary(NamedTuple):
    """A thread at a glance; times are seconds since the epoch, `None` when unknown."""

    thread: str
    title: str
    messages: int
    first_at: float | None
    last_at: float | None


class WorkspaceChats:
    """The chats of one workspace; a thread is named `SOURCE/ID`."""

    def __init__(self, writer: WorkspaceWriter) -> None:
        self._writer = writer

    def add(self, threads: Iterable[Thread], *, on_progress: Callable[[ChatReport], None] | None = None) -> ChatReport:
        """Index the new and edited messages of threads, in batches that are durable when `on_progress` reports them.

        When reading the threads fails, the messages before it are kept, and then the failure is raised. Raises
        InvalidValueError for a thread or message that cannot be kept, and as `WorkspaceWriter.writing` does.
        """
        report, counts, seen = ChatReport(), Counter[str](), set[str]()
        for batch in _batches(arrivals(threads)):
            seen.update(arrival.facts.thread for arrival in batch)
            with self._writer.writing() as put:
                store = self._writer.store
                merge = Merge(store.rids("chat"), store.document, put, _windows(self._writer.chunk_plan))
                merge.add(batch)
            counts.update(merge.counts)
            report = ChatReport(threads=len(seen), **counts)
            if on_progress is not None:
                on_progress(report)
        return report

    def delete(self, thread: str) -> int:
        """Delete a thread; returns the number of its messages. Raises NotFoundError when there is no such thread."""
        rids = parts_by_thread(self._writer.store.rids("chat")).get(thread, []) if self._writer.exists else []
        if not rids:
            raise NotFoundError(f"there is no thread {thread}", hint="findling chats list")
        count = sum(_count(found.resource) for rid in rids if (found := self._writer.store.document(rid)) is not None)
        self._writer.put((), rids)
        return count

    def threads(self) -> Iterator[ThreadSummary]:
        """All threads, in the order of their names."""
        found: dict[str, ThreadSummary] = {}
        for part in self._writer.store.resources() if self._writer.exists else ():
            thread = part.fields.get("thread") if part.type == "chat" else None
            if thread:
                own = ThreadSummary(thread, part.title, _count(part), part.created_at, part.updated_at)
                found[thread] = _together(found[thread], own) if thread in found else own
        return iter([found[thread] for thread in sorted(found)])


def _batches(messages: Iterator[Arrival]) -> Iterator[list[Arrival]]:
    """The messages in batches; when reading fails, those before the failure come first."""
    failure: FindlingError | OSError | None = None
    batch: list[Arrival] = []
    characters = 0
    try:
        for arrival in messages:
            batch.append(arrival)
            characters += len(arrival.message.shown)
            if len(batch) >= _BATCH_MESSAGES or characters >= _BATCH_CHARACTERS:
                yield batch
                batch, characters = [], 0
    except (FindlingError, OSError) as error:
        failure = error
    if batch:
        yield batch
    if failure is not None:
        raise failure


def _windows(plan: ChunkPlan) -> ChunkPlan:
    """The plan with passages the size of a few messages, unless the user has chosen another one."""
    default = PRESETS["default"]
    is_default = (plan.strategy, plan.size, plan.unit) == (default.strategy, default.size, default.unit)
    return plan._replace(size=_WINDOW) if is_default else plan


def _count(part: Resource) -> int:
    return len(json.loads(part.fields.get("messages", "[]")))


def _together(one: ThreadSummary, other: ThreadSummary) -> ThreadSummary:
    firsts = [at for at in (one.first_at, other.first_at) if at is not None]
    lasts = [at for at in (one.last_at, other.last_at) if at is not None]
    return one._replace(
        messages=one.messages + other.messages, first_at=min(firsts, default=None), last_at=max(lasts, default=None)
    )
