"""Formats of a database: the numbered SQL files that make them, and which ones this findling knows.

The first lines of a file are comments for this module: `-- min_reader: N` is the lowest format whose readers
understand the result, `-- optional` says that readers can do without the step.
"""

from __future__ import annotations

import re
from functools import cache
from importlib import resources
from typing import NamedTuple

from findling.domain.errors import FormatError

_NAME = re.compile(r"(\d{4})_\w+\.sql")


class SqlMigration(NamedTuple):
    """One file. Applied migrations have no `sql`."""

    number: int
    name: str
    min_reader: int
    is_optional: bool
    sql: str = ""


def load_migrations() -> list[SqlMigration]:
    """The migrations that this findling brings, in order."""
    found = []
    for file in resources.files("findling.stores.postgres").joinpath("migrations").iterdir():
        if named := _NAME.fullmatch(file.name):
            sql = file.read_text("utf-8")
            head = sql.partition("\n\n")[0]
            reader = re.search(r"(?m)^-- min_reader: (\d+)$", head)
            is_optional = re.search(r"(?m)^-- optional$", head) is not None
            found.append(SqlMigration(int(named[1]), file.name, int(reader[1]) if reader else 1, is_optional, sql))
    return sorted(found)


@cache
def newest_format() -> int:
    """The format that this findling writes."""
    return load_migrations()[-1].number


def newer_format(shown: str, theirs: int, ours: int) -> FormatError:
    """The error for a database that a newer findling has changed."""
    message = f"{shown} has format {theirs}, this findling knows formats up to {ours}"
    return FormatError(message, hint="upgrade findling: `pip install --upgrade findling`")
