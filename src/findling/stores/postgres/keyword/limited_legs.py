"""Keyword legs of callers with limited rights: the one leg in the server, seen through the numbers in sight."""

from __future__ import annotations

from collections.abc import Collection
from contextlib import suppress
from typing import TYPE_CHECKING

from findling.domain.errors import CorruptError, LockedError, ReadOnlyError, ReplacedError, StoreDamagedError
from findling.stores.postgres.keyword.keyword_leg import PostgresKeywordLeg, discard_keyword_leg

if TYPE_CHECKING:
    from findling.domain.ports import KeywordLeg, TruthStore
    from findling.domain.sight import Sight
    from findling.stores.postgres.server.connections import PostgresConnections

__all__ = ["ServerLimitedLegs"]

_ATTEMPTS = 5


class ServerLimitedLegs:
    """Implements `LimitedLegs`: no caller has an index, and every number follows from what is in sight."""

    def __init__(self, connections: PostgresConnections, *, store_id: str, unit: str) -> None:
        self._connections = connections
        self._store_id = store_id
        self._unit = unit

    def for_sight(self, sight: Sight, store: TruthStore) -> PostgresKeywordLeg:
        """The leg of a caller, in step with what the caller may see. Raises ReplacedError where others write on.

        While a writer holds the lock, and for a role that only reads, it is as far as others have brought it.
        """
        for _ in range(_ATTEMPTS):
            leg = self._open(sight.numbers)
            try:
                leg.size()  # what is written from now on is out of it
            except StoreDamagedError:
                raise
            except CorruptError as damage:
                self._mend(leg, damage)
                continue
            if leg.seq() >= sight.latest:
                return leg
            try:
                _bring_up(self._open(None), store)
            except (LockedError, ReadOnlyError):
                return leg
        raise ReplacedError("the keyword leg is being written by other processes", hint="ask again")

    def discard(self, leg: KeywordLeg) -> None:
        """Delete the leg of the workspace, since all callers share it; it is rebuilt from the truth."""
        discard_keyword_leg(self._connections, self._unit)

    def drop_stale(self, store: TruthStore) -> list[str]:
        """Delete everything of resources that have changed or gone; returns what was deleted, in words."""
        gone = self._open(None).purge()
        return [f"dead entries of the keyword leg: {gone:,}"] if gone else []

    def close(self) -> None:
        """Release nothing: the connections belong to the backend."""

    def _mend(self, leg: KeywordLeg, damage: CorruptError) -> None:
        """Have a damaged leg be made again. Raises the damage where nothing can be written."""
        try:
            self.discard(leg)
        except (LockedError, ReadOnlyError):
            raise damage from None

    def _open(self, numbers: Collection[int] | None) -> PostgresKeywordLeg:
        return PostgresKeywordLeg(self._connections, store_id=self._store_id, unit=self._unit, numbers=numbers)


def _bring_up(leg: PostgresKeywordLeg, store: TruthStore) -> None:
    """Have a leg absorb what it lacks, unless another process was faster: its commit finds that out."""
    since = leg.seq()
    if since > store.seq() or since < store.log_floor():
        leg.clear()
        since = 0
    with suppress(ReplacedError):
        leg.apply(store.changes(since))
        leg.commit(store.seq())
