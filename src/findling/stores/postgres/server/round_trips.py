"""Connections that read by the shortest way: a statement and its setting in one round trip, through libpq itself.

A pipeline with two cursors of psycopg takes 0.18 ms of this host, this takes 0.03, and a question has eight of them.
Import this after `load_psycopg`.
"""

from __future__ import annotations

import re
from collections.abc import Generator, Sequence
from functools import lru_cache
from hashlib import blake2b
from itertools import count
from typing import TYPE_CHECKING, Any, NamedTuple

from psycopg import Connection, Cursor
from psycopg.adapt import PyFormat, Transformer
from psycopg.errors import DuplicatePreparedStatement, InvalidSqlStatementName, OperationalError, error_from_result
from psycopg.pq import ExecStatus, Format
from psycopg.waiting import Ready, Wait

if TYPE_CHECKING:
    from psycopg.abc import Buffer
    from psycopg.abc import Transformer as AnyTransformer
    from psycopg.pq.abc import PGconn, PGresult

_MOST_PREPARED = 100
"""Statements whose plans the server keeps for a connection. Those of filters have any number of shapes."""

_SET_WORKSPACE = """
SELECT pg_catalog.set_config('search_path', 'pg_catalog', true), pg_catalog.set_config('findling.ws', %s, true)
"""

_BY_NAME = "(SELECT ws::pg_catalog.text FROM findling.workspaces WHERE name OPERATOR(pg_catalog.=) %s)"


class _Bound(NamedTuple):
    """A statement with its values as libpq takes them."""

    query: bytes
    values: Sequence[Buffer | None]
    types: tuple[int, ...]
    formats: Sequence[Format] | None


class ServerConnection(Connection[tuple[Any, ...]]):
    """A connection of psycopg. Only one thread uses it at a time."""

    def __init__(self, *given: Any, **options: Any) -> None:
        super().__init__(*given, **options)
        self._uses: dict[tuple[bytes, tuple[int, ...]], int] = {}
        self._plans: dict[tuple[bytes, tuple[int, ...]], bytes] = {}
        self.counted: Sequence[int] = ()
        """The latest numbers of the workspace at the beginning of a write."""

    def ask(self, statement: str, values: Sequence[object]) -> Cursor[tuple[Any, ...]]:
        """A cursor over the rows of a statement, which come in binary form."""
        return self.cursor(binary=True).execute(statement.encode(), values)

    def rows(self, statement: str, values: Sequence[object], ws: int | str | None = None) -> list[tuple[Any, ...]]:
        """All rows of a statement, in one transaction with the setting of its workspace: by its number or its name.

        Raises errors of psycopg. After one of them the connection is idle, or closed.
        """
        transformer = Transformer(self)
        setting = _SET_WORKSPACE.replace("%s", _BY_NAME) if isinstance(ws, str) else _SET_WORKSPACE
        asked = [_bound(setting, (str(ws or 0),), transformer), _bound(statement, values, transformer)]
        try:
            result = self._last_result(asked)
        # psycopg drops all plans of a connection after a rollback; a pooler gives it another one's.
        except (InvalidSqlStatementName, DuplicatePreparedStatement):
            self._plans.clear()
            self._uses.clear()
            result = self._last_result(asked)
        transformer.set_pgresult(result)
        return transformer.load_rows(0, result.ntuples, tuple)

    def _last_result(self, asked: Sequence[_Bound]) -> PGresult:
        pgconn = self.pgconn
        pgconn.enter_pipeline_mode()
        try:
            for one in asked:
                self._send(pgconn, one)
            pgconn.pipeline_sync()
            results = self.wait(_results(pgconn))
            pgconn.exit_pipeline_mode()
        except BaseException:
            self.close()  # nobody knows what the server still has to say
            raise
        for result in results:
            if result.status == ExecStatus.FATAL_ERROR:
                raise error_from_result(result)
        return results[-1]

    def _send(self, pgconn: PGconn, asked: _Bound) -> None:
        """Queue a statement; one that comes again is planned first."""
        query, values, types, formats = asked
        key = query, types
        if (plan := self._plans.get(key)) is not None:
            pgconn.send_query_prepared(plan, values, formats, Format.BINARY)
            return
        uses = self._uses[key] = self._uses.get(key, 0) + 1
        if len(self._uses) > _MOST_PREPARED:
            self._uses.pop(next(iter(self._uses)))
        if self.prepare_threshold is None or uses <= self.prepare_threshold or len(self._plans) >= _MOST_PREPARED:
            pgconn.send_query_params(query, values, types, formats, Format.BINARY)
            return
        # A name says which statement it is: behind a pooler, another client may have given it.
        plan = self._plans[key] = b"findling_" + blake2b(repr(key).encode(), digest_size=12).hexdigest().encode()
        pgconn.send_prepare(plan, query, types)
        pgconn.send_query_prepared(plan, values, formats, Format.BINARY)


def _bound(statement: str, values: Sequence[object], transformer: AnyTransformer) -> _Bound:
    query, wanted = _translated(statement)
    data = transformer.dump_sequence(values, wanted)
    return _Bound(query, data, transformer.types or (), transformer.formats)


@lru_cache(maxsize=200)
def _translated(statement: str) -> tuple[bytes, list[PyFormat]]:
    """A statement, of which no other percent sign may be a part, with numbered places for its values; their forms."""
    marks = _MARK.findall(statement)
    numbers = count(1)
    numbered = _MARK.sub(lambda mark: f"${next(numbers)}", statement)
    return numbered.encode(), [PyFormat.BINARY if mark == "%b" else PyFormat.AUTO for mark in marks]


_MARK = re.compile("%[sb]")


def _results(pgconn: PGconn) -> Generator[Wait, Ready | int, list[PGresult]]:
    """All results up to the end of the pipeline. Raises OperationalError when the connection is lost before."""
    while pgconn.flush():
        if (yield Wait.RW) & Ready.R:
            pgconn.consume_input()
    results: list[PGresult] = []
    was_end = False
    while True:
        while pgconn.is_busy():
            if (yield Wait.R):
                pgconn.consume_input()
        result = pgconn.get_result()
        if result is None:
            # Nothing stands between two statements, and no more comes from a connection that is gone.
            if was_end or not results:
                raise error_from_result(results[-1]) if results else OperationalError("the server is gone")
        elif result.status == ExecStatus.PIPELINE_SYNC:
            return results
        else:
            results.append(result)
        was_end = result is None
