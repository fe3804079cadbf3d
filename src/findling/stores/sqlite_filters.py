"""Finding the resources that pass the filters in the tables. Runs inside the caller's transaction."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable
from functools import cache
from typing import Any

from findling.domain.queries import Filters
from findling.stores.filtering import dotted, has_extension, prefixes, time_span
from findling.stores.sqlite_rows import decode_words

__all__ = ["find_matching"]

_Check = tuple[str, Callable[[Any], bool]]


def find_matching(connection: sqlite3.Connection, filters: Filters) -> list[int]:
    """The numbers of the resources that pass, in no order."""
    if filters.principals == ():
        return []
    conditions, values = _conditions(filters)
    checks = _checks(filters)
    # Only the columns that are looked at: path and number alone come from an index that is a tenth of the table.
    select = f"SELECT {', '.join(['id', *(column for column, _ in checks)])} FROM resources WHERE "
    folders = prefixes(filters)
    if not folders:
        return _passing(connection.execute(select + " AND ".join(conditions or ["true"]), values), checks)
    found: dict[int, None] = {}
    for folder in folders:
        # "0" follows "/": the range holds what lies below the folder. One statement a folder, since SQLite neither
        # takes hundreds of alternatives nor finds its way through them by the index.
        for place, bounds in (("path = ?", (folder,)), ("path >= ? AND path < ?", (f"{folder}/", f"{folder}0"))):
            rows = connection.execute(select + " AND ".join([place, *conditions]), (*bounds, *values))
            found |= dict.fromkeys(_passing(rows, checks))
    return list(found)


def _passing(rows: Iterable[tuple[Any, ...]], checks: list[_Check]) -> list[int]:
    for position, (_, test) in enumerate(checks, 1):
        rows = [row for row in rows if test(row[position])]
    return [row[0] for row in rows]


def _conditions(filters: Filters) -> tuple[list[str], list[Any]]:
    """What SQL compares as Python does: whole values, byte by byte, and numbers."""
    conditions: list[str] = []
    values: list[Any] = []
    for column, wanted in (
        ("type", filters.type),
        ("lang", [lang.lower() for lang in filters.lang]),
        ("author", filters.author),
    ):
        if wanted:
            conditions.append(f"{column} IN ({','.join('?' * len(wanted))})")
            values += wanted
            if column != "type":
                conditions.append(f"{column} != ''")
    span = time_span(filters)
    if span is not None:
        conditions.append("CAST(updated_at AS INTEGER) >= ? AND CAST(updated_at AS INTEGER) < ?")
        values += span
    return conditions, values


def _checks(filters: Filters) -> list[_Check]:
    """What is left to Python: case beyond ASCII, and lists."""
    checks: list[_Check] = []
    if filters.ext:
        wanted = dotted(filters.ext)
        checks.append(("path", lambda path: has_extension(path, wanted)))
    if filters.not_ext:
        unwanted = dotted(filters.not_ext)
        checks.append(("path", lambda path: not has_extension(path, unwanted)))
    if filters.tag:
        checks.append(("tags", _shares_a_word(filters.tag)))
    if filters.principals is not None:
        checks.append(("visibility", _shares_a_word(filters.principals)))
    return checks


def _shares_a_word(wanted: Iterable[str]) -> Callable[[str | None], bool]:
    words = frozenset(wanted)

    @cache  # many resources have the same rights
    def shares(text: str | None) -> bool:
        return bool(text) and not words.isdisjoint(decode_words(text or ""))

    return shares
