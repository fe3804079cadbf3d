"""The items of one workspace: decisions, knowledge, tasks and types of your own, put in, taken out and followed."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from findling.domain.errors import InvalidValueError, NotFoundError, UsageError
from findling.domain.resources import Document, ResourceType
from findling.pipelines.content.items import TRAVERSED, compose, links_of
from findling.pipelines.content.items_ledger import Composed, Ledger, at
from findling.pipelines.content.items_reading import Entry
from findling.pipelines.content.resource_types import resource_type
from findling.pipelines.indexing.document_build import text_documents
from findling.service.index.writing import WorkspaceWriter

if TYPE_CHECKING:
    from findling.service.content.ai_sync import SyncReport

__all__ = ["Impact", "ItemReport", "WorkspaceItems"]

_BATCH = 500
"""Lines that are checked and written together: as many as one transaction takes."""

_DEEPEST = 5
"""Links that a walk follows one after the other; what is farther away is hardly affected."""


@dataclass(frozen=True, kw_only=True)
class ItemReport:
    """What became of the items that were given; `missing` are ids that were to be deleted and were not there."""

    added: int = 0
    changed: int = 0
    unchanged: int = 0
    deleted: int = 0
    missing: tuple[str, ...] = ()

    def __str__(self) -> str:
        counts = {"added": self.added, "changed": self.changed, "unchanged": self.unchanged, "deleted": self.deleted}
        counts["not there"] = len(self.missing)
        return ", ".join(f"{count:,} {name}" for name, count in counts.items() if count) or "nothing to do"


class Impact(NamedTuple):
    """Something that a link leads to: over how many links at least, of which type the last one is, and from where.

    `title` is `None` for what is not in the workspace.
    """

    rid: str
    depth: int
    link: str
    via: str
    title: str | None


class WorkspaceItems:
    """The items of one workspace. `types` are those of its settings, beside the ones that are registered."""

    def __init__(self, writer: WorkspaceWriter, types: Mapping[str, ResourceType] | None = None) -> None:
        self._writer = writer
        self._types = types or {}

    def add(self, items: Iterable[object], *, type: str = "") -> ItemReport:  # noqa: A002 - the key of an item
        """Upsert items, all or none: each is checked before anything is written, and they may name each other.

        `type` is that of items that do not say theirs. `{"delete": ID}` among them deletes, before the rest is added.
        Raises UsageError for an item that cannot be, and as `WorkspaceWriter.writing` does.
        """
        return self.add_document((Entry(item, f"item {number}") for number, item in enumerate(items, 1)), type=type)

    def add_document(self, entries: Iterable[Entry], *, type: str = "") -> ItemReport:  # noqa: A002 - the key
        """The same for values that were read, which know where they stood."""
        steps = [self._step(entry, type) for entry in entries]
        with self._ledger(whole=True) as ledger:
            deletions = [_delete(ledger, step) for step in steps if isinstance(step, _Deletion)]
            outcomes = ledger.add([step for step in steps if isinstance(step, Composed)])
        return _report([*deletions, *map(_Outcome, outcomes)])

    def add_lines(self, entries: Iterable[Entry], *, type: str = "") -> ItemReport:  # noqa: A002 - the key
        """Upsert and delete in the order of the entries, in batches, each durable before the next one is read.

        Raises as `add` does for the first entry that cannot be: everything before it is done, as the error says.
        """
        outcomes: list[_Outcome] = []
        waiting = iter(entries)
        while True:
            steps, trouble = self._next_steps(waiting, type)
            done, refused = self._carried_out(steps) if steps else ([], None)
            outcomes += done
            if (error := refused or trouble) is not None:
                told = f"{error.message} (before it: {_report(outcomes)})" if outcomes else error.message
                raise error.__class__(told, hint=error.hint) from error
            if len(steps) < _BATCH:
                return _report(outcomes)

    def delete(self, rids: Iterable[str]) -> int:
        """Delete resources that are no files by their ids; tells how many were there. Raises as `add` does."""
        return self.add({"delete": rid} for rid in rids).deleted

    def get(self, rid: str) -> Document:
        """An item by its id, or by 8 or more hexadecimal digits that no other id begins with.

        Raises NotFoundError when there is none, InvalidValueError when there are several.
        """
        if not self._writer.exists:
            raise NotFoundError(f"there is no {rid}", hint="findling add")
        store = self._writer.store
        found = store.document(Ledger(store, 0.0).full_id(rid))
        if found is None:  # deleted since it was looked up
            raise NotFoundError(f"there is no {rid}", hint="findling ls")
        return found

    def impact(self, rid: str, depth: int = _DEEPEST, *, links: Collection[str] = TRAVERSED) -> list[Impact]:
        """What an item leads to over links of some types, nearest first, each once at its shortest distance.

        Raises as `get` does, and InvalidValueError for a depth that is not 1 to 5.
        """
        if not 1 <= depth <= _DEEPEST:
            raise InvalidValueError(f"the depth must be 1 to {_DEEPEST}, not {depth}", hint=f"depth={_DEEPEST}")
        start = self.get(rid).resource
        store = self._writer.store
        found: dict[str, Impact] = {}
        frontier = [start]
        for distance in range(1, depth + 1):
            reached = []
            for resource in frontier:
                for link in links_of(resource):
                    if link.type not in links or link.to in found or link.to == start.rid:
                        continue
                    target = store.document(link.to)
                    title = None if target is None else target.resource.title
                    found[link.to] = Impact(link.to, distance, link.type, resource.rid, title)
                    if target is not None:
                        reached.append(target.resource)
            frontier = reached
        return list(found.values())

    def sync(self, root: Path, user_folder: Path | None = None) -> SyncReport:
        """Bring directives, tools and knowledge of a project and of its user in step with their folders.

        Raises PathNotFoundError for a `user_folder` that is not there; without one it is `~/.ai`, which need not be.
        """
        from findling.service.content.ai_sync import sync_folders

        return sync_folders(self._writer, root, user_folder)

    def _step(self, entry: Entry, default_type: str) -> Composed | _Deletion:
        """What an entry asks for. Raises UsageError."""
        item, where = entry
        with at(where):
            if not isinstance(item, Mapping):
                raise InvalidValueError(f"{item!r:.60} is no item", hint='{"type": "decision", "title": "…"}')
            if "delete" in item:
                if len(item) > 1:
                    raise InvalidValueError('an item with "delete" has nothing else', hint='{"delete": "decision:ID"}')
                return _deletion(item["delete"], where)
            name = item.get("type") or default_type
            if not name or not isinstance(name, str):
                raise InvalidValueError("the item does not say its type", hint='"type": "decision", or --type decision')
            kind = resource_type(name, self._types)
            return Composed(kind, *compose(kind, item), where, frozenset(item))

    def _next_steps(self, entries: Iterator[Entry], default_type: str) -> tuple[list[_Step], UsageError | None]:
        """The steps of one batch, up to an entry that is none."""
        steps: list[_Step] = []
        try:
            for entry in islice(entries, _BATCH):
                steps.append(self._step(entry, default_type))
        except UsageError as error:
            return steps, error
        return steps, None

    def _carried_out(self, steps: Iterable[_Step]) -> tuple[list[_Outcome], UsageError | None]:
        """Do one step after the other, up to one that cannot be done; what was done is durable."""
        outcomes: list[_Outcome] = []
        with self._ledger(whole=False) as ledger:
            try:
                for step in steps:
                    if isinstance(step, _Deletion):
                        outcomes.append(_delete(ledger, step))
                    else:
                        outcomes += map(_Outcome, ledger.add([step]))
            except UsageError as error:
                return outcomes, error
        return outcomes, None

    @contextmanager
    def _ledger(self, *, whole: bool) -> Iterator[Ledger]:
        """A ledger whose entries are written when the block ends, as a `whole` or as far as they fit."""
        with self._writer.writing(whole=whole) as put:
            ledger = Ledger(self._writer.store, time.time())
            yield ledger
            written = (item for item in ledger.pending.values() if item is not None)
            batches = text_documents(written, self._writer.chunk_plan)
            put(chain.from_iterable(batches), [rid for rid, item in ledger.pending.items() if item is None])


class _Deletion(NamedTuple):
    rid: str
    where: str


class _Outcome(NamedTuple):
    """What became of one item: a field of the report; and its id, for one that is missing."""

    name: str
    rid: str = ""


_Step = Composed | _Deletion


def _deletion(rid: object, where: str) -> _Deletion:
    if not isinstance(rid, str) or not rid:
        raise InvalidValueError(f"{rid!r:.60} is no id to delete", hint="decision:ID")
    if rid.startswith("file:"):
        raise InvalidValueError(f"{rid} is a file, no item", hint=f"findling forget {rid.removeprefix('file:')}")
    return _Deletion(rid, where)


def _delete(ledger: Ledger, step: _Deletion) -> _Outcome:
    """Delete what is there; so that a file of changes can be gone through twice, what is not there is no error."""
    with at(step.where):
        try:
            ledger.delete(ledger.full_id(step.rid))
        except NotFoundError:
            return _Outcome("missing", step.rid)
    return _Outcome("deleted")


def _report(outcomes: Iterable[_Outcome]) -> ItemReport:
    seen = list(outcomes)
    counts = Counter(outcome.name for outcome in seen)
    missing = tuple(outcome.rid for outcome in seen if outcome.name == "missing")
    return ItemReport(
        added=counts["added"],
        changed=counts["changed"],
        unchanged=counts["unchanged"],
        deleted=counts["deleted"],
        missing=missing,
    )
