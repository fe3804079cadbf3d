"""Queries as trees over postings, made by the rules of keyword queries."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from tantivy import FieldType, Occur

from findling.domain.plans import FIELDS
from findling.ranking.postings_algebra import (
    AllPart,
    AnyTermPart,
    BeginningPart,
    BestPart,
    BoostPart,
    ConstantPart,
    EveryPart,
    NumbersPart,
    Part,
    RangePart,
    RowPart,
    SumPart,
    TermPart,
)
from findling.ranking.postings_scoring import TermPostings
from findling.text.analysis.stemming import forms_prefix, same_stem

__all__ = ["PostingsQuery", "PostingsStatistics"]

_NUMBERS = ("cid",)


class PostingsQuery:
    """Implements `QueryMaker`, as `tantivy.Query` does."""

    @staticmethod
    def term_query(schema: Any, field_name: str, field_value: Any, index_option: str = "position") -> Part:
        return TermPart(field_name, field_value)

    @staticmethod
    def term_set_query(schema: Any, field_name: str, field_values: Sequence[Any]) -> Part:
        if field_name in _NUMBERS:
            return NumbersPart(field_name, tuple(field_values))
        return AnyTermPart(field_name, tuple(field_values))

    @staticmethod
    def all_query() -> Part:
        return EveryPart()

    @staticmethod
    def empty_query() -> Part:
        return EveryPart(is_empty=True)

    @staticmethod
    def phrase_query(schema: Any, field_name: str, words: list[str | tuple[int, str]], slop: int = 0) -> Part:
        return RowPart(field_name, tuple(_placed(words)), slop)

    @staticmethod
    def regex_query(schema: Any, field_name: str, regex_pattern: str) -> Part:
        word = _word(field_name, regex_pattern)
        return word if isinstance(word, BeginningPart) else AnyTermPart(field_name, (word,))

    @staticmethod
    def regex_phrase_query(schema: Any, field_name: str, words: list[str | tuple[int, str]]) -> Part:
        return RowPart(field_name, tuple((offset, _word(field_name, word)) for offset, word in _placed(words)))

    @staticmethod
    def boolean_query(subqueries: Sequence[tuple[Occur, Part]]) -> Part:
        musts = tuple(part for occur, part in subqueries if occur == Occur.Must)
        shoulds = tuple(part for occur, part in subqueries if occur == Occur.Should)
        nots = tuple(part for occur, part in subqueries if occur == Occur.MustNot)
        return AllPart(musts, shoulds, nots) if musts or nots else SumPart(shoulds)

    @staticmethod
    def disjunction_max_query(subqueries: Sequence[Part], tie_breaker: float | None = None) -> Part:
        return BestPart(tuple(subqueries), tie_breaker or 0.0)

    @staticmethod
    def boost_query(query: Part, boost: float) -> Part:
        return BoostPart(query, boost)

    @staticmethod
    def const_score_query(query: Part, score: float) -> Part:
        return ConstantPart(query, score)

    @staticmethod
    def range_query(
        schema: Any,
        field_name: str,
        field_type: FieldType,
        lower_bound: Any = None,
        upper_bound: Any = None,
        include_lower: bool = True,
        include_upper: bool = True,
    ) -> Part:
        return RangePart(field_name, lower_bound + (not include_lower), upper_bound + include_upper)


class PostingsStatistics:
    """Implements `Statistics` by postings, which count nothing but what is in sight."""

    def __init__(self, postings: TermPostings) -> None:
        self._postings = postings
        self.entries = postings.entries

    def frequency(self, field: str, term: str) -> int:
        return self._postings.frequency(field, term)

    def scale(self, field: str, terms: Sequence[str]) -> float:
        return 1.0

    def note(self, field: str, term: str, frequency: int) -> None:
        """Keep nothing: postings know their frequencies."""

    def begun(self, field: str, prefix: str, limit: int | None = None) -> list[tuple[str, int]]:
        return self._counted(field, self._postings.begun(field, prefix))[:limit]

    def related(self, term: str, fields: Sequence[str]) -> Mapping[str, Mapping[str, int]]:
        prefix = forms_prefix(term)
        found = {field: self._postings.begun(field, prefix) for field in fields}
        words = {*same_stem(term, [*{word for words in found.values() for word in words}])}
        return {field: dict(self._counted(field, [word for word in found[field] if word in words])) for field in fields}

    def _counted(self, field: str, terms: Sequence[str]) -> list[tuple[str, int]]:
        """Those of the terms that are in sight, the frequent ones first as tantivy has them."""
        counts = [(term, count) for term in terms if (count := self._postings.frequency(field, term))]
        return sorted(counts, key=lambda pair: -pair[1])

    def words(self) -> Collection[str]:
        return dict.fromkeys(word for field in FIELDS for word, _ in self.begun(field, ""))


def _placed(words: Sequence[str | tuple[int, str]]) -> list[tuple[int, str]]:
    return [(at, word) if isinstance(word, str) else word for at, word in enumerate(words)]


def _word(field: str, pattern: str) -> str | BeginningPart:
    """The word that a pattern stands for, or the beginning of words."""
    is_begun = pattern.endswith(".*")
    text = re.sub(r"\\(.)", r"\1", pattern.removesuffix(".*"), flags=re.DOTALL)
    return BeginningPart(field, text) if is_begun else text
