"""The seam between the rules of a keyword query and the engine that answers it.

Rules make queries with a few constructors and ask a few statistics. `tantivy.Query` itself is the maker of the local
tier; a tier with postings of its own has another one. So both tiers make the same trees by the same rules.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Protocol, TypeAlias

from tantivy import FieldType, Occur

EngineQuery: TypeAlias = Any
"""A query of the engine that made it; rules only put queries together."""

EngineSchema: TypeAlias = Any
"""The fields of an index, as its engine describes them; rules only hand them on."""


class QueryMaker(Protocol):
    """The constructors that rules use, with the meaning that they have in tantivy."""

    def term_query(
        self, schema: EngineSchema, field_name: str, field_value: Any, index_option: str = "position"
    ) -> EngineQuery:
        """Entries with a term, scored by BM25."""

    def term_set_query(self, schema: EngineSchema, field_name: str, field_values: Sequence[Any]) -> EngineQuery:
        """Entries with any of some terms."""

    def all_query(self) -> EngineQuery:
        """Every entry."""

    def empty_query(self) -> EngineQuery:
        """No entry."""

    def phrase_query(
        self, schema: EngineSchema, field_name: str, words: list[str | tuple[int, str]], slop: int = 0
    ) -> EngineQuery:
        """Entries with words in a row or at given offsets; as a term that is as rare as all of them together."""

    def regex_query(self, schema: EngineSchema, field_name: str, regex_pattern: str) -> EngineQuery:
        """Entries with a term that matches; rules ask for beginnings only."""

    def regex_phrase_query(
        self, schema: EngineSchema, field_name: str, words: list[str | tuple[int, str]]
    ) -> EngineQuery:
        """Entries with words in a row, each of which matches; rules ask for words and beginnings only."""

    def boolean_query(self, subqueries: Sequence[tuple[Occur, EngineQuery]]) -> EngineQuery:
        """Entries that match all that they must, none that they must not, or any of what they should; scores add up."""

    def disjunction_max_query(self, subqueries: Sequence[EngineQuery], tie_breaker: float | None = None) -> EngineQuery:
        """Entries that match any, with the best score and a share of the others."""

    def boost_query(self, query: EngineQuery, boost: float) -> EngineQuery:
        """The same entries, with scores that count so much."""

    def const_score_query(self, query: EngineQuery, score: float) -> EngineQuery:
        """The same entries, all with one score."""

    def range_query(
        self,
        schema: EngineSchema,
        field_name: str,
        field_type: FieldType,
        lower_bound: Any = None,
        upper_bound: Any = None,
        include_lower: bool = True,
        include_upper: bool = True,
    ) -> EngineQuery:
        """Entries with a number from the lower bound on and below the upper one; rules include no other bounds."""


class Statistics(Protocol):
    """The vocabulary of one state of the index. Every question may raise CorruptError."""

    @property
    def entries(self) -> int:
        """The number of entries."""

    def frequency(self, field: str, term: str) -> int:
        """The frequency of a term in a field."""

    def scale(self, field: str, terms: Sequence[str]) -> float:
        """The rarity of terms as one, as a share of what the engine takes it for."""

    def note(self, field: str, term: str, frequency: int) -> None:
        """Keep a frequency that a walk has given, so that nobody asks for it."""

    def begun(self, field: str, prefix: str, limit: int | None = None) -> list[tuple[str, int]]:
        """The terms of a field that begin so, the frequent ones first, each with its frequency."""

    def related(self, term: str, fields: Sequence[str]) -> Mapping[str, Mapping[str, int]]:
        """By field, the terms with the stem of a term and maybe others around them, with their frequencies."""

    def words(self) -> Collection[str]:
        """The terms of all text fields, nearly in order: those of the main field come first."""
