"""Understanding: from what was typed to what is asked of the legs, with a note of everything that was decided."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from findling.domain.budgets import current_budget
from findling.domain.errors import InvalidValueError
from findling.domain.plans import Plan
from findling.domain.ports import ReadStore
from findling.domain.queries import (
    GROUPS,
    SPELLING,
    All,
    Any,
    Field,
    Filters,
    LegQuery,
    Node,
    Not,
    Same,
    SearchRequest,
    Term,
    Word,
    with_leaves,
)
from findling.domain.values import record
from findling.pipelines.retrieve.legs import check_legs
from findling.ranking.evidence import judge_weight
from findling.stores.filtering import check_filters
from findling.text.analysis.analysis import phrase_terms
from findling.text.analysis.stemming import is_foreign_by_looks, question_begin, told_language
from findling.text.query.lexer import calmed
from findling.text.query.parser import Parsed, parse
from findling.text.query.query_mode import read
from findling.text.query.routing import Route, route
from findling.text.query.tree import canonical, positive_terms, positive_texts, split_where, spoken, typed_terms

if TYPE_CHECKING:
    from findling.pipelines.glossary.glossary_expansion import Fired
    from findling.pipelines.retrieve.match_time import TimedPattern

LONGEST_QUERY = 10_000
"""Characters of a query that are read: more than a page of text has, and what the HTTP API takes."""

_TO_THE_LETTER = frozenset({"identifier", "number", "path", "url", "regex"})
"""Shapes of a query that is meant to the letter: its neighbours by meaning are no hits."""

_CODE = r"[_.:#(/\\\[]|\b[a-z]+[A-Z]|(?:[0-9][^\s0-9]*){3}"
"""The signs of `get_user`, `os.path`, `getUser` and `CVE-2024-3094`; names such as JavaScript and COVID19 have none,
but a meaning. Three digits are a code: a model finds any table of numbers near to its pieces."""


@record()
class AnalyzedQuery:
    """A request that has been understood.

    `tree` is the whole query as it was read, `node` what of it the legs are asked and `filters` what they are limited
    to. `text` is what a model reads of the query, `asked` the terms to look for in hits. `parts` finds the parts of a
    name, where `node` asks for passages that hold the whole. `language` is that of its words, empty if nothing tells.
    """

    request: SearchRequest
    plan: Plan
    tree: Node
    node: Node
    filters: Filters
    text: str
    asked: Sequence[str]
    reading: str
    because: str
    route: Route
    fired: tuple[Fired, ...] = ()
    notes: tuple[str, ...] = ()
    has_patterns: bool = False
    parts: Node | None = None
    language: str = ""

    def for_legs(self, held: Iterable[str] = ()) -> LegQuery:
        """The query as the legs are asked it; `held` are the words of it that the index holds."""
        words = loose_words(self)[0]
        return LegQuery(self.node, words, self.filters, self.text, self.asked, self.plan, frozenset(held))

    def any_of(self, words: Iterable[str]) -> Node:
        """Any of some words, in the language of the question."""
        return Any(tuple([Word(word, self.language) for word in words]))

    @property
    def is_literal(self) -> bool:
        """Whether the query is an identifier, a number, a path or the like, and nothing else."""
        return bool(_letters(self.route, self.text))

    @property
    def to_judge(self) -> str:
        """The text that a judge reads of the query; empty where the plan wants none, and for names, code, operators."""
        is_prose = self.reading == "ranked" and judge_weight(self.route.shape) > 0
        return self.text if is_prose and self.plan.rerank_depth else ""

    @property
    def telling(self) -> int:
        """The number of words that a hit has to answer, numbers aside, 0 in other languages than English.

        Of those the inflected forms are found in part, and a question across languages shares a name at most.
        """
        is_foreign = is_foreign_by_looks(self.text)
        return 0 if is_foreign else sum(not term.isdecimal() for term in typed_terms(self.node))

    @property
    def understood_as(self) -> str:
        """The query written out again."""
        return canonical(self.tree)


def check_request(request: SearchRequest, plan: Plan) -> TimedPattern | None:
    """The pattern that excludes chunks, if there is one. Raises InvalidValueError naming what cannot be used."""
    if request.limit < 0 or request.offset < 0:
        raise InvalidValueError(f"limit {request.limit} and offset {request.offset} must not be negative")
    if request.filters != Filters():
        check_filters(request.filters)
    check_legs(plan)
    if request.exclude_pattern is None:
        return None
    from findling.pipelines.retrieve.match_time import TimedPattern

    try:
        return TimedPattern(request.exclude_pattern)
    except (re.error, OverflowError, RecursionError) as error:
        raise InvalidValueError(
            f"exclude pattern {request.exclude_pattern!r} is no regular expression: {error}",
            hint="escape special characters with a backslash",
        ) from error


def understand(request: SearchRequest, plan: Plan, store: ReadStore, parsed: Parsed | None = None) -> AnalyzedQuery:
    """Understand a request; `parsed` is its query, where that is known. Never raises for what a person types."""
    query = calmed(_beginning(request.query))
    parsed = parsed or parse(query)
    reading = read(parsed, plan.words)
    text = _asked_text(_text_for_models(parsed) if parsed.operators else query)
    shape = route(parsed.plain or text)
    tree, fired = _with_aliases(reading.node, store) if plan.glossary else (reading.node, ())
    language = _language(text, plan)
    node, where = split_where(spoken(tree, language))
    if plan.heads and not parsed.history:
        where = _both(where, Field("is", ("head",)))
    if request.filters.where is not None:
        where = request.filters.where if where is None else _both(request.filters.where, where)
    filters = request.filters
    if where is not None:
        filters = replace(filters, where=_resolved(where, store))
    if "is:" in parsed.operators:
        node = _resolved(node, store)
    if plan.types and not filters.type:
        filters = replace(filters, type=plan.types)
    plan, decisions = _routed(plan, shape, text, reading.kind)
    if language not in ("", "english"):
        decisions.append(f"its words are taken for {language.title()}")
    return AnalyzedQuery(
        request,
        plan,
        tree,
        node,
        filters,
        text,
        positive_terms(node),
        reading.kind,
        "; ".join([reading.because, *decisions]),
        shape,
        fired,
        parsed.notes if parsed.operators else parsed.notes + _excluded_in_words(query),
        not parsed.operators.isdisjoint(("//", "case:")),
        language=language,
    )


def _beginning(query: str) -> str:
    """As much of a query as is read: a million characters would take seconds, and find what the first ones do."""
    if len(query) <= LONGEST_QUERY:
        return query
    current_budget().refuse(f"the query has {len(query):,} characters: the first {LONGEST_QUERY:,} were read")
    return query[:LONGEST_QUERY]


def corrected(question: AnalyzedQuery, corrections: Mapping[str, str]) -> AnalyzedQuery:
    """The question with other spellings of some words beside what was typed; what stands in quotes stays as it is."""
    if not corrections:
        return question
    keys = {_key(typed): other for typed, other in corrections.items()}
    node = _respelled(question.node, keys)
    return replace(
        question,
        tree=_respelled(question.tree, keys),
        node=node,
        text=respelled(question.text, corrections),
        asked=positive_terms(node),
    )


def respelled(text: str, corrections: Mapping[str, str]) -> str:
    """A text with some words corrected; everything between the words stays, and so do exclusions and conditions."""
    keys = {_key(typed): other for typed, other in corrections.items()}
    text = WORDS.sub(lambda word: keys.get(_key(word.group()), word.group()), text)
    for typed, other in corrections.items():
        text = text if WORDS.fullmatch(typed) else text.replace(typed, other)
    return text


def typed_words(text: str) -> dict[str, str]:
    """The words of a text that stand by themselves, as they were typed, by the term that each of them is."""
    rows = {word: phrase_terms(word) for word in WORDS.findall(text)}
    return {row[0]: word for word, row in rows.items() if len(row) == 1}


def loose_words(question: AnalyzedQuery) -> tuple[Node | None, Node | None]:
    """The words of a ranked query, `None` in any other reading, and what else must hold, `None` when nothing must."""
    if question.reading != "ranked":
        return None, question.node
    words, *rest = question.node.nodes if isinstance(question.node, All) else (question.node,)
    return words, All(tuple(rest)) if rest else None


def _text_for_models(parsed: Parsed) -> str:
    """The query without operators: its words as they were typed, stop words included, then the rest."""
    plain = re.sub(_MARKS, "", parsed.plain)
    return " ".join([plain, *[text for text in positive_texts(parsed.node) if text not in plain]]).strip()


def _asked_text(text: str) -> str:
    """A question without the request for an answer before it, so that a model reads what is asked."""
    words = text.split()
    begin = question_begin(words)
    return " ".join(words[begin:]) if begin else text


def _language(text: str, plan: Plan) -> str:
    """The language of a question, by its small words or as the plan has it; empty where neither tells."""
    told = told_language(text)
    return told if not plan.languages or told in plan.languages else plan.languages[0]


_MARKS = r"[*~]\d*(?!\S)"
_EXCLUDING = re.compile(
    r"\b(?:excluding|except for|not including|(?:do not|don't) mention)\s+([^\s,.?()][^,.?()]*)", re.IGNORECASE
)


def _excluded_in_words(query: str) -> tuple[str, ...]:
    """A hint for a query that excludes something in words: named words rank, whatever stands in front of them."""
    found = _EXCLUDING.search(query)
    return () if found is None else (f'to leave it out, write -"{found[1].strip()}"',)


WORDS = re.compile(r"(?<![\w.:/-])\w+(?![\w:/-]|\.\w)")
"""Words that stand by themselves, whatever punctuation follows; no part of a compound, a path or a condition."""


def _with_aliases(node: Node, store: ReadStore) -> tuple[Node, tuple[Fired, ...]]:
    if not store.glossary_version():
        return node, ()
    from findling.pipelines.glossary.glossary_expansion import expand, lookup_of

    return expand(node, lookup_of(store))


def _routed(plan: Plan, shape: Route, text: str, reading: str) -> tuple[Plan, list[str]]:
    """The plan as the shape of the query wants it, and why it differs from what was given."""
    if not plan.route:
        return plan, []
    decisions = []
    if plan.mode == "hybrid" and reading == "browse":
        plan = replace(plan, mode="keyword")
    elif plan.mode == "hybrid" and (letters := _letters(shape, text)):
        plan = replace(plan, mode="keyword")
        decisions.append(f"{'an' if 'identifier' in letters else 'a'} {min(letters)} is meant to the letter")
    if shape.depth_factor > 1:
        # Never less than was asked for: a short query deserves as many candidates as any other.
        plan = replace(plan, overfetch=plan.overfetch * shape.depth_factor)
        decisions.append(f"a {shape.kind.replace('_', ' ')} question: {shape.depth_factor:g} times the candidates")
    return plan, decisions


def _letters(shape: Route, text: str) -> frozenset[str]:
    """The shapes for which the query is meant to the letter."""
    letters = _TO_THE_LETTER.intersection(shape.shape)
    return letters if "number" in letters or re.search(_CODE, text) else frozenset()


def _resolved(node: Node, store: ReadStore) -> Node:
    """The tree with `is:head` and `is:superseded` as the ids that the store knows today."""

    def resolved(leaf: Node) -> Node:
        if not isinstance(leaf, Field) or leaf.name != "is":
            return leaf
        old = Field("rid", tuple(store.superseded()))
        return old if leaf.values == ("superseded",) else Not(old)

    return with_leaves(node, resolved)


def _key(text: str) -> str:
    """The key that all ways to type a word share."""
    return " ".join(phrase_terms(text))


def _respelled(node: Node, corrections: Mapping[str, str]) -> Node:
    if isinstance(node, (Word, Term)):
        other = corrections.get(_key(node.text))
        if other is None:
            return node
        from findling.domain.queries import Phrase

        return Same((node, Phrase(other) if " " in other else replace(node, text=other)), group=SPELLING)
    if isinstance(node, GROUPS) and not (isinstance(node, Same) and node.group):
        return replace(node, nodes=tuple(_respelled(part, corrections) for part in node.nodes))
    return node


def _both(one: Node | None, other: Node) -> Node:
    if one is None:
        return other
    parts = [part for node in (one, other) for part in (node.nodes if isinstance(node, All) else (node,))]
    return All(tuple(parts))
