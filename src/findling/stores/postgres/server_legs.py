"""Legs in the database: a host that searches needs no index of its own."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from findling.stores.keyword.segment_files import made_for
from findling.stores.postgres.backend import PostgresBackend
from findling.stores.postgres.legs.server_legs import ServerLegs

if TYPE_CHECKING:
    from findling.domain.backends import GraphLeg, LimitedLegs, VectorTable
    from findling.domain.ports import ExactLeg, KeywordLeg, TruthStore

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
        from findling.stores.postgres.keyword.limited_legs import ServerLimitedLegs

        return ServerLimitedLegs(self._connections, store_id=store_id, unit=unit)

    def discard_limited_legs(self) -> None:
        """Nothing: they are the one leg under a mask."""

    def vector_table(self, store_id: str, model: str, dimensions: int) -> VectorTable:
        return self._server.vector_table(store_id, model, dimensions)

    def vector_state(self, store_id: str, model: str) -> Mapping[str, int]:
        return self._server.vector_state(store_id, model)

    def discard_vectors(self, model: str | None = None) -> None:
        self._server.discard_vectors(model)

    def exact_leg(self, store_id: str) -> ExactLeg:
        return self._server.exact_leg(store_id)

    def has_exact_leg(self) -> bool:
        return self._server.has_exact_leg()

    def discard_exact_leg(self) -> None:
        self._server.discard_exact_leg()

    def graph_leg(self, store_id: str) -> GraphLeg:
        return self._server.graph_leg(store_id)

    def has_graph_leg(self) -> bool:
        return self._server.has_graph_leg()

    def discard_graph_leg(self) -> None:
        self._server.discard_graph_leg()

    def frozen(self, store: TruthStore) -> None:
        """Nothing: hosts share these legs."""

    def damage(self) -> list[str]:
        return self._server.damage()

    @property
    def _server(self) -> ServerLegs:
        return ServerLegs(self._connections)
