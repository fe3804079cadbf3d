"""Items of one workspace: decisions, knowledge, tasks and types of your own, written, deleted and followed."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from findling.domain.errors import InvalidValueError, NotFoundError, UsageError
from findling.domain.resources import Document, Resource, ResourceType
from findling.pipelines.content.items import TRAVERSED, Entry, compose, links_of, read_entries
from findling.pipelines.content.items_ledger import Composed, Ledger, at
from findling.pipelines.content.resource_types import resource_type
from findling.pipelines.lookup.document_names import full_id
from findling.service.index.writing import WorkspaceWriter

if TYPE_CHECKING:
    from findling.service.content.ai_sync import SyncReport

_BATCH = 500
"""Lines that are checked and written together: as many as one transaction takes."""

_DEEPEST = 5
"""Most links that a walk follows in a row; farther items are hardly affected."""


@dataclass(frozen=True, kw_only=True)
class ItemReport:
    """The outcome of a list of items; `missing` are ids to delete that were not there."""

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
    """The target of a link: the least number of links to it, type and source of the last one.

    `title` is `None` for a target that is not in the workspace.
    """

    rid: str
    depth: int
    link: str
    via: str
    title: str | None


class _Deletion(NamedTuple):
    rid: str
    where: str


_Change = Composed | _Deletion
_Outcome = tuple[str, str]
"""A field of the report; and the id of an item that is missing."""


class WorkspaceItems:
    """The items of one workspace. `types` are those of its settings, beside the registered ones."""

    def __init__(self, writer: WorkspaceWriter, types: Mapping[str, ResourceType] | None = None) -> None:
        self._writer = writer
        self._types = types or {}

    def add(self, items: Iterable[object], *, type: str = "") -> ItemReport:  # noqa: A002 - the key of an item
        """Upsert items, all or none: each is checked before anything is written, and they may name each other.

        `type` is that of items without one. `{"delete": ID}` among them deletes, before the rest is added.
        Raises UsageError for an item that cannot be, and as `WorkspaceWriter.writing` does.
        """
        return self.add_document((Entry(item, f"item {number}") for number, item in enumerate(items, 1)), type=type)

    def add_document(self, entries: Iterable[Entry], *, type: str = "") -> ItemReport:  # noqa: A002 - the key
        """Upsert and delete as `add` does; an entry knows its place in the input."""
        changes = [self._change(entry, type) for entry in entries]
        with self._ledger(whole=True) as ledger:
            outcomes = [_delete(ledger, change) for change in changes if isinstance(change, _Deletion)]
            added = ledger.add([change for change in changes if isinstance(change, Composed)])
        return _report([*outcomes, *((outcome, "") for outcome in added)])

    def add_stream(self, lines: Iterable[bytes], *, type: str = "", delete: bool = False) -> ItemReport:  # noqa: A002
        """Upsert the items of a JSON document, all or none, or of JSON lines, one after the other.

        With `delete` they only name resources: ids, or objects with type and id. Raises as `add` does.
        """
        is_document, entries = read_entries(lines, bare=delete)
        if delete:
            entries = _deletions(entries, type)
        return (self.add_document if is_document else self.add_lines)(entries, type=type)

    def change(
        self, upsert: Sequence[Mapping[str, object]], delete: Sequence[str]
    ) -> tuple[ItemReport, list[tuple[str, str]]]:
        """Delete and upsert, all or none; the report, and id and outcome of every entry. Raises as `add` does."""
        entries = [Entry({"delete": rid}, f"delete {place}") for place, rid in enumerate(delete, 1)]
        entries += [Entry(item, f"upsert {place}") for place, item in enumerate(upsert, 1)]
        rids = [self._id_of(item) for item in upsert]
        before = {rid: self._known(rid) for rid in rids}
        report = self.add_document(entries)
        outcomes = [(rid, "missing" if rid in report.missing else "deleted") for rid in delete]
        for rid in rids:
            is_same = before[rid] == self._known(rid)
            outcomes.append((rid, "added" if before[rid] is None else "unchanged" if is_same else "changed"))
        return report, outcomes

    def _id_of(self, item: Mapping[str, object]) -> str:
        """The id that an item has or gets; empty for what is no item, which `add_document` refuses."""
        try:
            return compose(resource_type(str(item.get("type") or ""), self._types), item)[0].rid
        except UsageError:
            return ""

    def _known(self, rid: str) -> tuple[Resource, str] | None:
        document = self._writer.store.document(rid) if self._writer.exists else None
        return None if document is None else (document.resource, document.text)

    def full_id(self, name: str) -> str:
        """The id of anything in the workspace, by itself or by its beginning.

        Raises NotFoundError when there is none, InvalidValueError when there are several.
        """
        return full_id(self._writer.store, name)

    def add_lines(self, entries: Iterable[Entry], *, type: str = "") -> ItemReport:  # noqa: A002 - the key
        """Upsert and delete in the order of the entries, in batches, each durable before the next one is read.

        Raises as `add` does for the first entry that cannot be: everything before it is done, as the error says.
        """
        outcomes: list[_Outcome] = []
        waiting = iter(entries)
        while True:
            changes: list[_Change] = []
            failure: UsageError | None = None
            try:
                for entry in islice(waiting, _BATCH):
                    changes.append(self._change(entry, type))
            except UsageError as error:
                failure = error
            if changes:
                with self._ledger(whole=False) as ledger:
                    try:
                        for change in changes:
                            if isinstance(change, _Deletion):
                                outcomes.append(_delete(ledger, change))
                            else:
                                outcomes.append((ledger.add([change])[0], ""))
                    except UsageError as error:
                        failure = error
            if failure is not None:
                before = f" (before it: {_report(outcomes)})" if outcomes else ""
                raise failure.__class__(f"{failure.message}{before}", hint=failure.hint) from failure
            if len(changes) < _BATCH:
                return _report(outcomes)

    def delete(self, rids: Iterable[str]) -> int:
        """Delete resources that are no files by their ids; returns how many there were. Raises as `add` does."""
        return self.add({"delete": rid} for rid in rids).deleted

    def get(self, rid: str) -> Document:
        """An item by its id, or by 8 or more hexadecimal digits that no other id begins with.

        Raises NotFoundError when there is none, InvalidValueError when there are several.
        """
        if not self._writer.exists:
            raise NotFoundError(f"there is no {rid}", hint="findling add")
        store = self._writer.store
        found = store.document(Ledger(store, 0.0).full_id(rid))
        if found is None:  # deleted meanwhile
            raise NotFoundError(f"there is no {rid}", hint="findling ls")
        return found

    def impact(self, rid: str, depth: int = _DEEPEST, *, links: Collection[str] = TRAVERSED) -> list[Impact]:
        """The targets of an item over links of some types, nearest first, each once at its shortest distance.

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
        """Sync directives, tools and knowledge of a project and of its user with their folders.

        Raises PathNotFoundError for a `user_folder` that is not there; without one it is `~/.ai`, which need not be.
        """
        from findling.service.content.ai_sync import sync_folders

        return sync_folders(self._writer, root, user_folder)

    def _change(self, entry: Entry, default_type: str) -> _Change:
        """The change that an entry asks for. Raises UsageError."""
        item, where = entry
        with at(where):
            if not isinstance(item, Mapping):
                raise InvalidValueError(f"{item!r:.60} is no item", hint='{"type": "decision", "title": "…"}')
            if "delete" in item:
                if len(item) > 1:
                    raise InvalidValueError('an item with "delete" has nothing else', hint='{"delete": "decision:ID"}')
                rid = item["delete"]
                if not isinstance(rid, str) or not rid:
                    raise InvalidValueError(f"{rid!r:.60} is no id to delete", hint="decision:ID")
                if rid.startswith("file:"):
                    hint = f"findling forget {rid.removeprefix('file:')}"
                    raise InvalidValueError(f"{rid} is a file, no item", hint=hint)
                return _Deletion(rid, where)
            name = item.get("type") or default_type
            if not name or not isinstance(name, str):
                raise InvalidValueError("the item does not say its type", hint='"type": "decision", or --type decision')
            kind = resource_type(name, self._types)
            return Composed(kind, *compose(kind, item), where, frozenset(item))

    @contextmanager
    def _ledger(self, *, whole: bool) -> Iterator[Ledger]:
        """A ledger that is written when the block ends, as a `whole` or as far as it fits."""
        with self._writer.writing(whole=whole) as put:
            ledger = Ledger(self._writer.store, time.time())
            yield ledger
            written = (item for item in ledger.pending.values() if item is not None)
            put(self._writer.documents(written), [rid for rid, item in ledger.pending.items() if item is None])


def _deletions(entries: Iterable[Entry], type_name: str) -> Iterator[Entry]:
    """Entries that only name resources, as those that delete them."""
    for entry in entries:
        value = entry.value
        if isinstance(value, dict) and "delete" not in value:
            if not value.get("id") or not (value.get("type") or type_name):
                raise InvalidValueError(
                    f"{entry.where or 'the item'} does not say what to delete", hint='"type" and "id", or just the id'
                )
            value = f"{value.get('type') or type_name}:{value['id']}"
        if isinstance(value, str):
            value = {"delete": value if ":" in value or not type_name else f"{type_name}:{value}"}
        yield entry._replace(value=value)


def _delete(ledger: Ledger, deletion: _Deletion) -> _Outcome:
    """Delete an item; a missing one is no error, so that a file of changes can be applied twice."""
    with at(deletion.where):
        try:
            ledger.delete(ledger.full_id(deletion.rid))
        except NotFoundError:
            return "missing", deletion.rid
    return "deleted", ""


def _report(outcomes: Collection[_Outcome]) -> ItemReport:
    counts = Counter(name for name, _ in outcomes)
    missing = tuple(rid for name, rid in outcomes if name == "missing")
    return ItemReport(missing=missing, **{name: counts[name] for name in ("added", "changed", "unchanged", "deleted")})
