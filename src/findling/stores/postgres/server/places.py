"""Places in PostgreSQL: `postgresql://…/database#workspace`, and their names without secrets."""

from __future__ import annotations

import logging
import re
from functools import cache
from typing import Any
from urllib.parse import unquote

from findling.domain.backends import check_escapes
from findling.domain.errors import InvalidValueError, MissingExtraError

_POOLER = re.compile(r"(?<=[?&])pooler=([^&]*)&?")
"""The one parameter of a URL that is ours: `pooler=transaction`."""

_HARMLESS = re.compile(r'(invalid URI query parameter: "\w+"|(missing|extra) key/value separator "=" in URI .*)')
"""Errors of libpq that quote nothing but the name of a parameter. Others may quote the password."""

_MOST_NAME = 200
"""Characters of a workspace's name: an entry of a B-tree holds 2,700 bytes."""


class PostgresPlace:
    """One workspace of one database. `shown` names it in messages, without user and password.

    `is_pooled` says that a pooler in transaction mode stands in front: no session keeps anything then.
    """

    def __init__(self, dsn: str, workspace: str, *, is_pooled: bool, shown: str) -> None:
        self.dsn = dsn
        self.workspace = workspace
        self.is_pooled = is_pooled
        self.shown = shown

    def __repr__(self) -> str:
        return f"PostgresPlace({self.shown})"


def parse_place(url: str | PostgresPlace) -> PostgresPlace:
    """The place that a URL names. Raises InvalidValueError, which never quotes the URL, and MissingExtraError."""
    if isinstance(url, PostgresPlace):
        return url
    check_escapes(url)
    address, _, fragment = url.partition("#")
    try:
        workspace = unquote(fragment, errors="strict")
    except UnicodeDecodeError:
        workspace = ""
    if not workspace or len(workspace) > _MOST_NAME or not workspace.isprintable():
        message = "the URL of the database names no workspace"
        raise InvalidValueError(message, hint=f"end it in #NAME, of up to {_MOST_NAME} letters")
    modes = _POOLER.findall(address)
    if modes not in ([], ["transaction"]):
        raise InvalidValueError(
            f"pooler={modes[0]} is no mode that changes anything", hint="pooler=transaction, or none"
        )
    dsn = re.sub(r"[?&]$", "", _POOLER.sub("", address))
    parts = _parse(dsn)
    host = parts.get("host") or parts.get("hostaddr") or ""
    port = f":{parts['port']}" if parts.get("port") else ""
    shown = f"postgresql://{host}{port}/{parts.get('dbname', '')}#{workspace}"
    return PostgresPlace(dsn, workspace, is_pooled=bool(modes), shown=shown)


@cache
def load_psycopg() -> Any:
    """The library that speaks to PostgreSQL. Raises MissingExtraError."""
    try:
        import psycopg
    except ImportError as error:
        message = "a workspace in PostgreSQL needs psycopg"
        raise MissingExtraError(message, hint="pip install 'findling[postgres]'") from error
    logging.getLogger("psycopg").addFilter(_is_news)
    return psycopg


def _is_news(record: logging.LogRecord) -> bool:
    """Leave out warnings of a lost connection: those follow an error that findling tells in its own words."""
    return not str(record.msg).startswith("error ignored")


def _parse(dsn: str) -> dict[str, Any]:
    psycopg = load_psycopg()
    try:
        return dict(psycopg.conninfo.conninfo_to_dict(dsn))
    except psycopg.ProgrammingError as error:
        said = _HARMLESS.fullmatch(str(error).strip())
        why = said[1] if said else "it has another form"
        # The cause would quote the URL in a traceback.
        raise InvalidValueError(
            f"the URL of the database cannot be read: {why}", hint="postgresql://USER@HOST:PORT/DATABASE#WORKSPACE"
        ) from None
