"""Legs in the database: a host that searches needs no index of its own."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from findling.domain.errors import LockedError, ReadOnlyError, ReplacedError
from findling.stores.keyword.segment_files import made_for
from findling.stores.postgres.backend import PostgresBackend

if TYPE_CHECKING:
    from findling.domain.backends import GraphLeg, LimitedLegs, VectorTable
    from findling.domain.ports import ExactLeg, KeywordLeg, TruthStore
    from findling.domain.sight import Sight
    from findling.stores.postgres.server.connections import PostgresConnections

__all__ = ["PostgresServerBackend", "postgres_backend"]


def postgres_backend(url: str, folder: Path, legs: str) -> PostgresBackend:
    """The backend of a place with its legs on this host (`local`), or in the database (`server`)."""
    return (PostgresServerBackend if legs == "server" else PostgresBackend)(url, folder)


class PostgresServerBackend(PostgresBackend):
    """Implements `Backend` with everything in the database; its `folder` holds the locks of this host."""

    legs = "server"

    def keyword_leg(self, store_id: str, unit: str) -> KeywordLeg:
        from findling.stores.postgres.keyword.keyword_leg import PostgresKeywordLeg

        return PostgresKeywordLeg(self._connections, store_id=store_id, unit=unit)

    def has_keyword_leg(self, unit: str) -> bool:
        from findling.stores.postgres.keyword.keyword_leg import read_keyword_state

        return bool(read_keyword_state(self._connections, unit).owner)

    def keyword_seq(self, store_id: str, unit: str) -> int:
        from findling.stores.postgres.keyword.keyword_leg import read_keyword_state

        state = read_keyword_state(self._connections, unit)
        return state.seq if state.owner == made_for(store_id, unit) else 0

    def discard_keyword_leg(self, unit: str) -> None:
        from findling.stores.postgres.keyword.keyword_leg import discard_keyword_leg

        if self.exists():
            discard_keyword_leg(self._connections, unit)

    def limited_legs(self, store_id: str, unit: str) -> LimitedLegs:
        return _MaskedLegs(self._connections, store_id, unit)

    def discard_limited_legs(self) -> None:
        """Nothing: they are the one leg under a mask."""

    def vector_table(self, store_id: str, model: str, dimensions: int) -> VectorTable:
        from findling.stores.postgres.legs.vector_table import PostgresVectors

        owner = f"{store_id}|{model}"
        return PostgresVectors(self._connections, model=model, made_for=owner, dimensions=dimensions)

    def vector_state(self, store_id: str, model: str) -> Mapping[str, int]:
        from findling.stores.postgres.legs.vector_table import vector_state

        return vector_state(self._connections, model, f"{store_id}|{model}")

    def discard_vectors(self, model: str | None = None) -> None:
        from findling.stores.postgres.legs.vector_table import discard_vectors

        discard_vectors(self._connections, model)

    def exact_leg(self, store_id: str) -> ExactLeg:
        from findling.stores.postgres.legs.exact_leg import PostgresTrigrams

        return PostgresTrigrams(self._connections, owner=store_id)

    def has_exact_leg(self) -> bool:
        from findling.stores.postgres.legs.exact_leg import has_exact_leg

        return has_exact_leg(self._connections)

    def discard_exact_leg(self) -> None:
        from findling.stores.postgres.legs.exact_leg import discard_exact_leg

        discard_exact_leg(self._connections)

    def graph_leg(self, store_id: str) -> GraphLeg:
        from findling.stores.postgres.legs.graph_leg import PostgresGraph

        return PostgresGraph(self._connections, owner=store_id)

    def has_graph_leg(self) -> bool:
        from findling.stores.postgres.legs.graph_leg import has_graph_leg

        return has_graph_leg(self._connections)

    def discard_graph_leg(self) -> None:
        from findling.stores.postgres.legs.graph_leg import discard_graph_leg

        discard_graph_leg(self._connections)

    def damage(self) -> list[str]:
        from findling.stores.postgres.legs.exact_leg import damaged_segments
        from findling.stores.postgres.legs.graph_leg import damaged_graph

        return [*damaged_segments(self._connections), *damaged_graph(self._connections)]


class _MaskedLegs:
    """Implements `LimitedLegs`: the keyword leg with statistics of nothing but what is in sight."""

    def __init__(self, connections: PostgresConnections, store_id: str, unit: str) -> None:
        self._connections, self._store_id, self._unit = connections, store_id, unit

    def for_sight(self, sight: Sight, store: TruthStore) -> KeywordLeg:
        from findling.stores.postgres.keyword.keyword_leg import PostgresKeywordLeg

        opened = partial(PostgresKeywordLeg, self._connections, store_id=self._store_id, unit=self._unit)
        # A writer may be at it, or this role may only read: then the leg is as far as others have brought it.
        with suppress(LockedError, ReadOnlyError, ReplacedError):
            _bring_up(opened(), store)
        return opened(numbers=list(sight.numbers))

    def discard(self, leg: KeywordLeg) -> None:
        """Nothing: the leg itself is rebuilt by a writer."""

    def drop_stale(self, store: TruthStore) -> list[str]:
        return []

    def close(self) -> None:
        """Nothing: the connections are the backend's."""


def _bring_up(leg: KeywordLeg, store: TruthStore) -> None:
    """Have a leg absorb what it lacks, unless somebody writes meanwhile: its commit finds that out."""
    seq, since = store.seq(), leg.seq()
    if since == seq:
        return
    if since > seq or since < store.log_floor():
        leg.clear()
        since = 0
    changes = store.changes(since)
    if store.seq() == seq:
        leg.apply(changes)
        leg.commit(seq)
