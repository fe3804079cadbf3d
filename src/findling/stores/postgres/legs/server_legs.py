"""The vector, exact and graph legs of a workspace in the server, as a backend gives them."""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping
from typing import TYPE_CHECKING

from findling.domain.errors import NotIndexedError

if TYPE_CHECKING:
    from findling.stores.postgres.legs.exact_leg import PostgresTrigrams
    from findling.stores.postgres.legs.graph_leg import PostgresGraph
    from findling.stores.postgres.legs.vector_table import PostgresVectors
    from findling.stores.postgres.server.connections import PostgresConnections

__all__ = ["ServerLegs"]

_VECTOR_LAYOUT, _EXACT_LAYOUT = 1, 2
"""Raised when rows or lists change their meaning; a leg of another layout is rebuilt."""


class ServerLegs:
    """A part of `Backend`: the legs of one workspace that lie beside its truth. Writing needs the write lock."""

    def __init__(self, connections: PostgresConnections) -> None:
        self._connections = connections

    def vector_table(self, store_id: str, model: str, dimensions: int) -> PostgresVectors:
        from findling.stores.postgres.legs.vector_table import PostgresVectors

        return PostgresVectors(
            self._connections, model=model, made_for=_made_for(store_id, model), dimensions=dimensions
        )

    def vector_state(self, store_id: str, model: str) -> Mapping[str, int]:
        from findling.stores.postgres.legs.vector_table import vector_state

        try:
            return vector_state(self._connections, model, _made_for(store_id, model))
        except NotIndexedError:
            return {}

    def discard_vectors(self, model: str | None = None) -> None:
        from findling.stores.postgres.legs.vector_table import discard_vectors

        discard_vectors(self._connections, model)

    def exact_leg(self, store_id: str) -> PostgresTrigrams:
        from findling.stores.postgres.legs.exact_leg import PostgresTrigrams

        # Which letters are equal is a matter of the table of letters.
        owner = f"{_EXACT_LAYOUT}|{unicodedata.unidata_version}|exact|{store_id}"
        return PostgresTrigrams(self._connections, owner=owner)

    def has_exact_leg(self) -> bool:
        from findling.stores.postgres.legs.exact_leg import has_exact_leg

        try:
            return has_exact_leg(self._connections)
        except NotIndexedError:
            return False

    def discard_exact_leg(self) -> None:
        from findling.stores.postgres.legs.exact_leg import discard_exact_leg

        discard_exact_leg(self._connections)

    def graph_leg(self, store_id: str) -> PostgresGraph:
        from findling.stores.graph.graph_leg import graph_owner
        from findling.stores.postgres.legs.graph_leg import PostgresGraph

        return PostgresGraph(self._connections, owner=graph_owner(store_id))

    def has_graph_leg(self) -> bool:
        from findling.stores.postgres.legs.graph_leg import has_graph_leg

        try:
            return has_graph_leg(self._connections)
        except NotIndexedError:
            return False

    def discard_graph_leg(self) -> None:
        from findling.stores.postgres.legs.graph_leg import discard_graph_leg

        discard_graph_leg(self._connections)

    def damage(self) -> list[str]:
        """Parts of these legs that are not what was written, one sentence each; vectors tell by themselves."""
        from findling.stores.postgres.keyword.keyword_tables import damaged_segments as damaged_keyword
        from findling.stores.postgres.legs.exact_leg import damaged_segments
        from findling.stores.postgres.legs.graph_leg import damaged_graph

        with self._connections.reading() as connection:
            words = damaged_keyword(connection, self._connections.ws)
        exact, graph = damaged_segments(self._connections), damaged_graph(self._connections)
        found = (("keyword", words), ("exact", exact), ("graph", graph))
        return [
            f"{', '.join(wrong)} of the {leg} leg in {self._connections.place.shown}: not what was written;"
            " nothing is lost"
            for leg, wrong in found
            if wrong
        ]


def _made_for(store_id: str, model: str) -> str:
    return f"{_VECTOR_LAYOUT}|{store_id}|{model}"
