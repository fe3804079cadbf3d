"""One name or number as the query: the passages that hold the whole of it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from findling.domain.queries import All, Any, Field, Pattern, Term, Word
from findling.text.analysis.scripts import written_name
from findling.text.query.leaves import CODE_LANGUAGES
from findling.text.query.patterns import compile_pattern

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from findling.pipelines.retrieve.legs import Retrievers
    from findling.pipelines.retrieve.query_planner import AnalyzedQuery

_MOST_HOLDING, _MOST_READ = 5_000, 40_000
"""Passages with its word that are looked at for a name as a whole; and passages of an index whose texts are read for a
more frequent word, both in .1 to .4 s. `NAME` stands in 6 of 14,023 passages, and its word in 5,407. In a larger index
the parts of such a name are no noise."""

_LOOKED_AT, _MOSTLY = 10, 0.8
_NAMES, _PATHS = frozenset({"identifier", "number"}), frozenset({"path", "url", "regex"})


def whole_name(legs: Retrievers, question: AnalyzedQuery) -> AnalyzedQuery:
    """The question for nothing but a name or a number, asked of the passages that hold the whole, if there are some.

    Letters count as in a search with smart case: a name with a capital is another one without. Words that share parts
    of it are weaker matches. A number that is the name of a file stands in all of it.
    """
    word = question.text.strip("`'\"(){};, ")
    if question.plan.weak or question.reading != "ranked" or " " in word or not _is_name(legs, question, word):
        return question
    from findling.pipelines.retrieve.resource_order import definitions_within  # only a name needs the grammars of code

    found = legs.keyword.search(Any((Term(word), Term(word, "path"))), question.filters, _MOST_HOLDING)
    pattern, has_digits = Pattern(word, False, not word.islower(), whole_words=True), any(map(str.isdigit, word))
    if (is_frequent := found.total > _MOST_HOLDING) and (has_digits or legs.keyword.size() > _MOST_READ):
        return question
    holding = _read(legs, question, pattern) if is_frequent else _among(legs, found.hits, pattern, has_digits)
    # Session.send means the definition of send in Session, too, which holds no dot.
    holding = list(dict.fromkeys([*definitions_within(legs, question, word), *holding]))
    if not holding:
        return question
    node = All((Word(word), Field("cid", tuple(map(str, holding)))))
    return replace(question, node=node, parts=question.node)


def _among(legs: Retrievers, hits: Sequence[tuple[int, float]], pattern: Pattern, has_digits: bool) -> Iterable[int]:
    """Those of the chunks that hold a name; one with digits may be in their path."""
    whole = compile_pattern(pattern)
    return [
        cid
        for cid, stored in legs.store.chunks([cid for cid, _ in hits]).items()
        if whole.search(stored.text) or (has_digits and whole.search(stored.resource.path))
    ]


def _read(legs: Retrievers, question: AnalyzedQuery, pattern: Pattern) -> Iterable[int]:
    """The chunks that hold a name whose word stands in very many: to read all texts costs less than to look at them."""
    from findling.pipelines.retrieve.pattern_matches import KnownTexts, find_matches  # few names are that frequent

    return find_matches(legs, pattern, question.filters, KnownTexts({}, {}))[0]


def _is_name(legs: Retrievers, question: AnalyzedQuery, word: str) -> bool:
    """Whether a word is written like a name or a number, or is one that only code has."""
    shape = frozenset(question.route.shape)
    if shape & _NAMES or any(map(str.isdigit, word)):
        return not shape & _PATHS
    if not written_name(word) and not word.isidentifier():
        return False
    is_defined = bool(legs.keyword.definers([word], question.node, question.filters, 1))
    if not is_defined and not word.isupper():
        return False
    if is_defined and written_name(word):
        return True
    best = legs.keyword.search(question.node, question.filters, _LOOKED_AT).hits
    found = legs.store.resources_of([cid for cid, _ in best]).values()
    return sum([resource.lang in CODE_LANGUAGES for resource in found]) >= _MOSTLY * len(found)
