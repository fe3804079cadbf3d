"""Rows of a database in one workspace: imported in batches, followed by a cursor, deleted when they are gone."""

from __future__ import annotations

import json
from array import array
from collections.abc import Callable
from dataclasses import dataclass, replace
from hashlib import blake2b
from typing import TYPE_CHECKING

from findling.domain.errors import UsageError
from findling.pipelines.content.table_rows import RowMapping, mapping_of, resource_of, row_id
from findling.sources.databases.postgres_rows import PostgresTable, TableRow, opened_table

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from findling.domain.resources import Resource
    from findling.service.index.writing import WorkspaceWriter

__all__ = ["RowMapping", "RowReport", "WorkspaceRows", "mapping_of"]

_BATCH = 500


@dataclass(frozen=True, kw_only=True)
class RowReport:
    """The counts of an import: `changed` rows are new or different, `empty` ones have no id or say nothing.

    `repeated` rows have the id of another one, which a full pass notices. `cursor` is the value that was reached.
    """

    source: str
    read: int = 0
    changed: int = 0
    deleted: int = 0
    empty: int = 0
    repeated: int = 0
    cursor: str = ""
    notes: tuple[str, ...] = ()


class WorkspaceRows:
    """The rows of databases in one workspace. An id is `postgres:TABLE/ID`, the table with its schema."""

    def __init__(self, writer: WorkspaceWriter) -> None:
        self._writer = writer

    def add(
        self,
        url: str,
        mapping: RowMapping,
        *,
        full: bool = False,
        on_progress: Callable[[RowReport], None] = lambda report: None,
    ) -> RowReport:
        """Import the rows behind the cursor, all without one; every batch is durable when `on_progress` reports it.

        A `full` pass reads all rows and deletes those that are gone; so does an import without a cursor. Raises
        UsageError as `opened_table` does, and for rows of another database; and as `WorkspaceWriter.writing` does.
        """
        longest = int(self._writer.settings["index.max_text"])
        with opened_table(url, mapping.table, mapping.columns, zone=mapping.zone, longest=longest) as table:
            source = f"postgres:{mapping.name or row_id(table.name)}/"
            state = self._state(source)
            if state and state["database"] != table.database and not full:
                raise UsageError(
                    f"the rows of {table.name} come from {state['database']}, not from {table.database}",
                    hint='--full replaces them; name = "OTHER" in a --mapping keeps both',
                )
            is_known = bool(state) and state["mapping"] == mapping.digest and state["database"] == table.database
            whole = full or not mapping.columns.cursor
            since = state["cursor"] or None if is_known and not whole else None
            report = RowReport(source=source, cursor=since or "", notes=tuple(table.notes))
            seen = array("q")
            for rows in table.rows(since):
                report = self._add(rows, table, mapping, report, seen if whole else None)
                if not whole:
                    self._remember(table, mapping, report)
                on_progress(report)
        if whole:
            import numpy as np

            marks = np.unique(np.frombuffer(seen, np.int64))
            report = replace(report, repeated=len(seen) - len(marks), deleted=self._delete_others(source, marks))
        self._remember(table, mapping, report)
        return report

    def _add(
        self,
        rows: list[TableRow],
        table: PostgresTable,
        mapping: RowMapping,
        report: RowReport,
        seen: array[int] | None,
    ) -> RowReport:
        """Write a batch; a row that was there twice counts as it was last."""
        found = {f"{report.source}{row_id(row.id)}": row for row in rows if row.id}
        if seen is not None:
            seen.extend(_mark(f"{report.source}{row_id(row.id)}") for row in rows if row.id)
        items = {rid: resource_of(row, mapping, rid, table.headings) for rid, row in found.items()}
        silent = [rid for rid, item in items.items() if item is None]
        with self._writer.writing() as put:
            written = (item for item in items.values() if item is not None)
            kept = written if mapping.visibility is not None else map(self._with_rights, written)
            changed = put(self._writer.documents(kept), silent)
        reached = next((row.cursor for row in reversed(rows) if row.cursor is not None), report.cursor)
        return replace(
            report,
            read=report.read + len(rows),
            changed=report.changed + changed,
            empty=report.empty + len(silent) + sum(not row.id for row in rows),
            cursor=reached,
        )

    def _with_rights(self, item: tuple[Resource, str]) -> tuple[Resource, str]:
        """The item with the readers that somebody has given it here: silence must not widen who may see it."""
        resource, text = item
        right = self._writer.store.right_to(resource.rid)
        return (resource if right is None else replace(resource, visibility=right.visibility)), text

    def _delete_others(self, source: str, seen: NDArray[np.int64]) -> int:
        """Delete the rows of a source that were not seen; their number."""
        if not self._writer.exists:
            return 0
        own = (rid for rid in self._writer.store.rids() if rid.startswith(source))
        gone = [rid for rid in own if not _holds(seen, _mark(rid))]
        return sum(self._writer.put((), gone[start : start + _BATCH]) for start in range(0, len(gone), _BATCH))

    def _state(self, source: str) -> dict[str, str]:
        text = self._writer.store.get_meta(source) if self._writer.exists else None
        return dict(json.loads(text)) if text else {}

    def _remember(self, table: PostgresTable, mapping: RowMapping, report: RowReport) -> None:
        """Note how far the import has come, after its rows are durable."""
        if not self._writer.exists:
            return
        state = {"database": table.database, "mapping": mapping.digest, "cursor": report.cursor}
        with self._writer.files.writing():
            self._writer.store.set_meta(report.source, json.dumps(state))


def _mark(rid: str) -> int:
    """Eight bytes that stand for an id: a set of ids of a million rows would be 150 MB."""
    return int.from_bytes(blake2b(rid.encode(), digest_size=8).digest(), "big", signed=True)


def _holds(marks: NDArray[np.int64], mark: int) -> bool:
    place = int(marks.searchsorted(mark))
    return place < len(marks) and int(marks[place]) == mark
