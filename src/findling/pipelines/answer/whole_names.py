"""One name or number as the query: the passages that hold the whole of it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from findling.domain.queries import All, Any, Field, Pattern, Term, Word
from findling.text.analysis.scripts import written_name
from findling.text.query.leaves import CODE_LANGUAGES
from findling.text.query.patterns import compile_pattern

if TYPE_CHECKING:
    from findling.pipelines.retrieve.legs import Retrievers
    from findling.pipelines.retrieve.query_planner import AnalyzedQuery

_MOST_HOLDING = 5_000
"""Passages that are looked at for a name as a whole, in 100 ms; of a more frequent one the parts are no noise."""

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
    if found.total > _MOST_HOLDING:
        return question
    pattern = compile_pattern(Pattern(word, False, not word.islower(), whole_words=True))
    has_digits = any(map(str.isdigit, word))
    holding = [
        cid
        for cid, stored in legs.store.chunks([cid for cid, _ in found.hits]).items()
        if pattern.search(stored.text) or (has_digits and pattern.search(stored.resource.path))
    ]
    # Session.send means the definition of send in Session, too, which holds no dot.
    holding = list(dict.fromkeys([*definitions_within(legs, question, word), *holding]))
    if not holding:
        return question
    node = All((Word(word), Field("cid", tuple(map(str, holding)))))
    return replace(question, node=node, parts=question.node)


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
