"""From a query tree and filters to one tantivy query with BM25 weights that fit together."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

import tantivy
from tantivy import Occur, Query

from findling.domain.backends import Scoring
from findling.domain.queries import CONDITIONS, All, Any, Filters, Node, Not, Same
from findling.stores.keyword.filter_clauses import KeywordScope, everything
from findling.stores.keyword.leaf_queries import Leaves, Memory, ScoredQuery
from findling.stores.keyword.term_weights import KeywordWords, Statistics, counted

__all__ = ["BuiltQuery", "KeywordQuery"]

_REMEMBERED = 20_000
"""Terms whose queries are kept for the next search."""

_NO_FILTERS = Filters()


class BuiltQuery(NamedTuple):
    """A query (None when nothing can match), the most it can score, and the forms of each term that is asked for."""

    query: Query | None
    ceiling: float
    forms: dict[str, tuple[str, ...]]


class KeywordQuery:
    """Builds queries against one state of the index, whose statistics and vocabulary it asks."""

    def __init__(self, schema: tantivy.Schema, statistics: Statistics, scoring: Scoring) -> None:
        self.words = KeywordWords(statistics)
        self._schema = schema
        self._scope = KeywordScope(schema, statistics)
        self._scoring = scoring
        self._memory: Memory = {}

    def build(self, node: Node, filters: Filters, weights: Mapping[str, float] | None = None) -> BuiltQuery:
        """The query for a tree under filters; `weights` are those of single fields that differ.

        Raises InvalidValueError for a field or property that does not exist, CorruptError when the index is damaged.
        """
        leaves = self._leaves(weights)
        query, ceiling = self._part(node, leaves)
        limits = self._limits(filters, weights)
        if query is None or limits is None:
            return BuiltQuery(None, ceiling, leaves.forms)
        if limits:
            query = Query.boolean_query([(Occur.Must, query), *limits])
        return BuiltQuery(query, ceiling, leaves.forms)

    def _limits(self, filters: Filters, weights: Mapping[str, float] | None) -> list[tuple[Occur, Query]] | None:
        if filters == _NO_FILTERS:
            return []
        clauses = self._scope.clauses(filters)
        if filters.where is None:
            return clauses
        where = self._part(filters.where, self._leaves(weights)).query
        return None if where is None else [*clauses, (Occur.Must, Query.const_score_query(where, 0.0))]

    def _part(self, node: Node, leaves: Leaves) -> ScoredQuery:
        if isinstance(node, (Any, Same)):
            return self._any(node, leaves)
        if isinstance(node, All):
            return self._all(node.nodes, leaves)
        if isinstance(node, Not):
            return self._all((node,), leaves)
        if isinstance(node, CONDITIONS):
            return ScoredQuery(self._scope.query(node))
        return leaves.part(node)

    def _any(self, node: Any | Same, leaves: Leaves) -> ScoredQuery:
        parts = self._counted(node.nodes, leaves)
        queries = [part.query for part in parts if part.query is not None]
        ceilings = [part.ceiling for part in parts]
        ceiling = max(ceilings, default=0.0) if isinstance(node, Same) else sum(ceilings)
        if len(queries) < 2:
            return ScoredQuery(queries[0] if queries else None, ceiling)
        if isinstance(node, Same):
            return ScoredQuery(Query.disjunction_max_query(queries, 0.0), ceiling)
        return ScoredQuery(Query.boolean_query([(Occur.Should, query) for query in queries]), ceiling)

    def _counted(self, nodes: Iterable[Node], leaves: Leaves) -> list[ScoredQuery]:
        """The parts of nodes; a word that is said more than once is one part that counts more."""
        return [self._part(node, leaves).said(weight) for node, weight in counted(nodes)]

    def _all(self, nodes: tuple[Node, ...], leaves: Leaves) -> ScoredQuery:
        parts = self._counted((node for node in nodes if not isinstance(node, Not)), leaves)
        ceiling = sum(part.ceiling for part in parts)
        clauses: list[tuple[Occur, Query]] = []
        for part in parts or [ScoredQuery(everything())]:
            if part.query is None:
                return ScoredQuery(None, ceiling)
            clauses.append((Occur.Must, part.query))
        for node in nodes:
            if isinstance(node, Not):
                # An exclusion is neither asked for nor part of the ceiling.
                excluded = self._part(node.node, leaves.aside()).query
                clauses += [] if excluded is None else [(Occur.MustNot, excluded)]
        return ScoredQuery(clauses[0][1] if len(clauses) == 1 else Query.boolean_query(clauses), ceiling)

    def _leaves(self, weights: Mapping[str, float] | None) -> Leaves:
        scoring = self._scoring._replace(weights={**self._scoring.weights, **weights}) if weights else self._scoring
        if len(self._memory) > _REMEMBERED:
            self._memory.clear()
        return Leaves(self._schema, self.words, self._scope, scoring, self._memory)
