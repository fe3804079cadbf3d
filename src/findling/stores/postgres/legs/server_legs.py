"""The legs of a workspace in the server, as a backend gives them."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING

from findling.domain.errors import NotIndexedError
from findling.stores.keyword.segment_files import POSTINGS_LAYOUT, made_for

if TYPE_CHECKING:
    from findling.domain.ports import TruthStore
    from findling.stores.postgres.keyword.keyword_leg import PostgresKeywordLeg
    from findling.stores.postgres.keyword.limited_legs import ServerLimitedLegs
    from findling.stores.postgres.legs.exact_leg import PostgresTrigrams
    from findling.stores.postgres.legs.graph_leg import PostgresGraph
    from findling.stores.postgres.legs.vector_table import PostgresVectors
    from findling.stores.postgres.server.connections import PostgresConnections

__all__ = ["ServerLegs"]

_VECTOR_LAYOUT, _EXACT_LAYOUT = 1, 2
"""Raised when rows or lists change their meaning; a leg of another layout is rebuilt."""


class ServerLegs:
    """A part of `Backend`: the legs of one workspace that lie beside its truth. Writing needs the write lock."""

    def __init__(self, beside: Callable[[], PostgresConnections]) -> None:
        self._beside = beside
        """The connections to the truth: others after a workspace has gone and come again."""

    def keyword_leg(self, store_id: str, unit: str) -> PostgresKeywordLeg:
        from findling.stores.postgres.keyword.keyword_leg import PostgresKeywordLeg

        return PostgresKeywordLeg(self._beside(), store_id=store_id, unit=unit)

    def has_keyword_leg(self, unit: str) -> bool:
        from findling.stores.postgres.keyword.keyword_leg import read_keyword_state

        return bool(read_keyword_state(self._beside(), unit).owner)

    def keyword_seq(self, store_id: str, unit: str) -> int:
        from findling.stores.postgres.keyword.keyword_leg import read_keyword_state

        state = read_keyword_state(self._beside(), unit)
        return state.seq if state.owner == made_for(store_id, unit, POSTINGS_LAYOUT) else 0

    def discard_keyword_leg(self, unit: str) -> None:
        from findling.stores.postgres.keyword.keyword_leg import discard_keyword_leg

        with suppress(NotIndexedError):
            discard_keyword_leg(self._beside(), unit)

    def limited_legs(self, store_id: str, unit: str) -> ServerLimitedLegs:
        from findling.stores.postgres.keyword.limited_legs import ServerLimitedLegs

        return ServerLimitedLegs(self._beside(), store_id=store_id, unit=unit)

    def discard_limited_legs(self) -> None:
        """Nothing: they are the one leg under a mask."""

    def vector_table(self, store_id: str, model: str, dimensions: int) -> PostgresVectors:
        from findling.stores.postgres.legs.vector_table import PostgresVectors

        return PostgresVectors(self._beside(), model=model, made_for=_made_for(store_id, model), dimensions=dimensions)

    def vector_state(self, store_id: str, model: str) -> Mapping[str, int]:
        from findling.stores.postgres.legs.vector_table import vector_state

        try:
            return vector_state(self._beside(), model, _made_for(store_id, model))
        except NotIndexedError:
            return {}

    def discard_vectors(self, model: str | None = None) -> None:
        from findling.stores.postgres.legs.vector_table import discard_vectors

        discard_vectors(self._beside(), model)

    def exact_leg(self, store_id: str) -> PostgresTrigrams:
        from findling.stores.postgres.legs.exact_leg import PostgresTrigrams

        # Which letters are equal is a matter of the table of letters.
        owner = f"{_EXACT_LAYOUT}|{unicodedata.unidata_version}|exact|{store_id}"
        return PostgresTrigrams(self._beside(), owner=owner)

    def has_exact_leg(self) -> bool:
        from findling.stores.postgres.legs.exact_leg import has_exact_leg

        try:
            return has_exact_leg(self._beside())
        except NotIndexedError:
            return False

    def discard_exact_leg(self) -> None:
        from findling.stores.postgres.legs.exact_leg import discard_exact_leg

        discard_exact_leg(self._beside())

    def graph_leg(self, store_id: str) -> PostgresGraph:
        from findling.stores.graph.graph_leg import graph_owner
        from findling.stores.postgres.legs.graph_leg import PostgresGraph

        return PostgresGraph(self._beside(), owner=graph_owner(store_id))

    def has_graph_leg(self) -> bool:
        from findling.stores.postgres.legs.graph_leg import has_graph_leg

        try:
            return has_graph_leg(self._beside())
        except NotIndexedError:
            return False

    def discard_graph_leg(self) -> None:
        from findling.stores.postgres.legs.graph_leg import discard_graph_leg

        discard_graph_leg(self._beside())

    def frozen(self, store: TruthStore) -> None:
        """Nothing: hosts share these legs."""

    def damage(self) -> list[str]:
        """Parts of these legs that are not what was written, one sentence each; vectors tell by themselves."""
        from findling.stores.postgres.keyword.keyword_tables import damaged_segments as damaged_keyword
        from findling.stores.postgres.legs.exact_leg import damaged_segments
        from findling.stores.postgres.legs.graph_leg import damaged_graph

        connections = self._beside()
        with connections.reading() as connection:
            words = damaged_keyword(connection, connections.ws)
        exact, graph = damaged_segments(connections), damaged_graph(connections)
        found = (("keyword", words), ("exact", exact), ("graph", graph))
        return [
            f"{', '.join(wrong)} of the {leg} leg in {connections.place.shown}: not what was written; nothing is lost"
            for leg, wrong in found
            if wrong
        ]


def _made_for(store_id: str, model: str) -> str:
    return f"{_VECTOR_LAYOUT}|{store_id}|{model}"
