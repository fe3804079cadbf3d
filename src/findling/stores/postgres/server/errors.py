"""Errors of PostgreSQL in findling's words; none of them holds a connection string."""

from __future__ import annotations

import re

from findling.domain.errors import (
    DiskFullError,
    FindlingError,
    InvalidValueError,
    LockedError,
    ReadOnlyError,
    StoreDamagedError,
    UnreachableError,
    WorkspaceError,
)
from findling.stores.postgres.server.places import PostgresPlace, load_psycopg

_UNREADABLE_ROW = (ValueError, TypeError, AttributeError, LookupError, MemoryError)
"""Errors of decoding a row that holds something else than was written."""

_LOST = ("08", "57P", "25P03", "25P04")
"""Beginnings of the codes of a connection or a server that is gone; the last two are timeouts of transactions."""

_OF_SERVER = ("0A", "25", "53", "55", "57", "58", "F0", "XX")
"""Beginnings of the codes of what is wrong with the server, not with a statement of ours."""

_TIMEOUTS = {
    "idle-in-transaction": "idle_in_transaction_session_timeout",
    "idle-session": "idle_session_timeout",
    "transaction": "transaction_timeout",
}
"""Settings by the words of the server."""

_TIMEOUT = re.compile(r"terminating connection due to (?P<which>[\w-]+) timeout")

_FULL = re.compile(r"FATAL: +(sorry, too many clients.*|(?:too many|remaining) connection.*)")

_WRONG = re.compile(
    r"(?P<password>(?:fe_sendauth: )?no password supplied)"
    r"|(?P<encryption>(?:server does not support SSL|SSL error|root certificate|server certificate).*)"
    r"|(?P<required>(?:channel binding|GSSAPI encryption) required.*)"
    r"|(?P<url>(?:invalid|definition of service).*)"
)
"""Reasons that libpq itself gives."""

_WAYS = {
    "password": "give the password in the URL, in PGPASSWORD or in ~/.pgpass",
    "encryption": "look at sslmode and its relatives in the URL, and at ssl of the server",
    "required": "look at channel_binding and gssencmode in the URL",
    "url": "look at this part of the URL, or at its variable of the environment",
}

_MORE = "raise max_connections or the connection limit of the role, or try again"

_Told = tuple[type[FindlingError], str, str]
"""The kind of an error, its message and its hint."""

_DAMAGED: _Told = StoreDamagedError, "{shown} is damaged: {said}", "findling doctor"

_BY_CODE: dict[str, _Told] = {
    "42501": (ReadOnlyError, "{shown}: this role lacks rights: {said}",
        "let the owner of the database grant them, or open it as a role that has them"),
    "25006": (ReadOnlyError, "{shown} can only be read: {said}", "name the server that takes writes"),
    "53100": (DiskFullError, "the server of {shown} has no space left", "free some space there and try again"),
    "53300": (UnreachableError, "{shown} takes no more connections", _MORE),
    "55P03 40P01 40001": (LockedError, "{shown} is being written by another process",
        "try again when it has finished"),
    "57014": (WorkspaceError, "{shown} ended a statement: {said}", "raise statement_timeout of this role"),
    "42P01 42703 3F000 42883 XX001 XX002": _DAMAGED,
    "54000": (InvalidValueError, "{shown} does not take something this large: {said}", "split the resource"),
    "23": (InvalidValueError, "{shown} does not take this: {said}", "chunk ids must differ everywhere"),
    "22": (InvalidValueError, "{shown} does not take this value: {said}", "look at what is written"),
    # A prepared statement that another connection has: a pooler in transaction mode mixes them.
    "26000 42P05": (WorkspaceError, "{shown} is behind a pooler in transaction mode: {said}",
        "add pooler=transaction to the URL, behind ? or &"),
}  # fmt: skip
"""Codes of the server, or their beginnings."""

_REFUSED = (
    (r"(database .*)", "create the database: `createdb NAME`"),
    (r"(?! |sorry|the database system)(.*pg_hba\.conf.*)",
     "ask for an entry in pg_hba.conf of the server, or look at sslmode in the URL"),
    (r"(?! |sorry|the database system)(.*)",
     "check the user, and the password in the URL, in PGPASSWORD or in ~/.pgpass"),
)  # fmt: skip
"""Reasons of a server that lets nobody in, behind `failed: FATAL: `: libpq keeps no code of an attempt to connect."""


class PostgresErrors:
    """A context that translates errors of the server; it may be entered many times.

    With `reads`, a row that cannot be decoded is damage, too.
    """

    def __init__(self, place: PostgresPlace, *, reads: bool = False) -> None:
        self._place = place
        self._reads = reads

    def __enter__(self) -> None: ...

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if error is None or isinstance(error, FindlingError):
            return
        if isinstance(error, load_psycopg().Error):
            translated = _translate(error, self._place.shown)
        elif self._reads and isinstance(error, _UNREADABLE_ROW):
            translated = _worded(_DAMAGED, self._place.shown, f"a row cannot be read: {error!r}")
        else:
            return
        if translated is not None:
            raise translated from error


def is_lost(error: BaseException) -> bool:
    """Whether an error says that the connection is gone, or that the server cannot be reached."""
    psycopg = load_psycopg()
    if not isinstance(error, psycopg.OperationalError | psycopg.InterfaceError):
        return False
    code = error.sqlstate or ""
    return not code or code.startswith(_LOST)


def foreign_schema(place: PostgresPlace) -> StoreDamagedError:
    """The error for a schema `findling` with tables that are not ours."""
    message = f"the schema findling in the database of {place.shown} belongs to another program"
    return StoreDamagedError(message, hint="choose another database, or rename that schema")


_WRITING = "call_bool_check_hook"
"""The function of the server that refuses a setting of yes or no; findling sets none but whether it writes."""


def _translate(error: Exception, shown: str) -> FindlingError | None:
    code, said = _code_of(error), (str(error).strip().splitlines() or [""])[0]
    told = next((told for codes, told in _BY_CODE.items() if code.startswith(tuple(codes.split()))), None)
    if told is not None:
        return _worded(told, shown, said)
    if full := _FULL.search(said):
        return UnreachableError(f"{shown} takes no more connections: {full[1]}", hint=_MORE)
    for pattern, hint in _REFUSED:
        if refused := re.search(f"failed: FATAL: +{pattern}", said):
            return WorkspaceError(f"{shown} does not let this user in: {refused[1]}", hint=hint)
    if wrong := _WRONG.search(said):
        return WorkspaceError(f"{shown} cannot be reached this way: {wrong[0]}", hint=_WAYS[wrong.lastgroup or ""])
    if ended := _TIMEOUT.search(said):
        name = _TIMEOUTS.get(ended["which"], f"the {ended['which']} timeout")
        return UnreachableError(f"{shown} ended the connection: {said}", hint=f"raise {name} of this role")
    if is_lost(error):
        hint = "see that the server runs, has space on its disk and can be reached, then try again"
        return UnreachableError(f"{shown} does not answer: {said}", hint=hint)
    if code.startswith(_OF_SERVER):
        hint = "look at the log of the server, then try again"
        return WorkspaceError(f"{shown} cannot do this: {said} (SQLSTATE {code})", hint=hint)
    return WorkspaceError(f"{shown} ended a statement: {said}", hint="findling doctor") if code else None


def _code_of(error: Exception) -> str:
    """The code of an error, or the one that it should have."""
    if "No space left on device" in str(error):  # a server that cannot write its log ends without a code
        return "53100"
    code: str = getattr(error, "sqlstate", None) or ""
    # A replica, of a transaction that is to write; its words depend on the server's language.
    is_replica = code == "0A000" and getattr(getattr(error, "diag", None), "source_function", "") == _WRITING
    return "25006" if is_replica else code


def _worded(told: _Told, shown: str, said: str) -> FindlingError:
    kind, message, hint = told
    return kind(message.format(shown=shown, said=said), hint=hint)
