"""Patterns of a query: the chunks that match them, found before the words are asked, and their evidence."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import lru_cache, partial
from itertools import chain, islice
from operator import methodcaller
from typing import TYPE_CHECKING, NamedTuple

from findling.domain.budgets import current_budget
from findling.domain.errors import OverdueError
from findling.domain.queries import GROUPS, Any, Field, Node, Not, Pattern
from findling.domain.results import Evidence
from findling.domain.strangers import checked_pattern
from findling.domain.values import counted
from findling.pipelines.retrieve.match_time import MatchTime
from findling.text.query.line_patterns import has_scoped_flags, places_of, required_texts, stays_in_line
from findling.text.query.patterns import compile_folded, compile_pattern, fold, parsed_pattern, required_trigrams
from findling.text.query.tree import canonical, patterns_of

if TYPE_CHECKING:
    from findling.domain.queries import Filters, LegQuery, Required
    from findling.pipelines.retrieve.legs import Retrievers
    from findling.pipelines.retrieve.query_planner import AnalyzedQuery

__all__ = ["PatternMatches", "find_matches", "match_spans", "narrowed", "resolved"]

_MOST_CHARACTERS = 128 << 20
"""Characters of texts that are looked at for one pattern: 0.1 s for a literal, 2 s for one that ignores case."""

_MOST_CHUNKS = 20_000
"""Chunks that match one pattern: so many take a keyword leg 40 ms to pass on."""

_MOST_IN_TEXT = 10_000
"""Matches in one text: a pattern that matches nearly everywhere says little by matching once more."""


_PIECE = 4_096
"""Letters of a piece of a text that is not of ASCII."""

_LINE = 128
"""Letters between two literals below which it costs less to try an expression on the whole text than line by line."""

_MOST_SHOWN = 100
"""Matches that are marked in one passage."""


class PatternMatches:
    """Implements `Retriever` for the patterns of one query, whose matches are known: chunk → how many."""

    name = "exact"
    least = 0.0

    def __init__(self, matches: Mapping[int, int], did: tuple[tuple[str, str], ...]) -> None:
        self._matches = matches
        self.did = did
        """A step for each pattern: how it was looked for, and what came of it."""

    def search(self, query: LegQuery, limit: int, also: Sequence[int] = ()) -> dict[int, Evidence]:
        """The evidence for the chunks in `also`. By itself it finds none: the words are asked for the same chunks."""
        return {cid: self._evidence(self._matches[cid]) for cid in also if cid in self._matches}

    def second_look(self, query: LegQuery, best: Sequence[int]) -> dict[int, Evidence]:
        """Nothing more."""
        return {}

    def _evidence(self, count: int) -> Evidence:
        # What matches fulfils the demand wholly; more matches are more to see, and soon not much more.
        return Evidence(self.name, count, count / (count + 1), 1.0, counted(count, "match", "matches"), "matches")


def resolved(legs: Retrievers, question: AnalyzedQuery) -> tuple[Retrievers, AnalyzedQuery]:
    """The question with the chunks that match its patterns in their place, and the legs with the evidence for them.

    Raises InvalidValueError for an expression that only the owner may use.
    """
    patterns = patterns_of(question.node)
    if not patterns:
        return legs, question
    budget, is_owner = current_budget(), question.request.principals is None
    places: dict[Node, Node] = {}
    matches: dict[int, int] = {}
    did = []
    for pattern in patterns:
        if pattern.is_regex:
            checked_pattern(pattern.text, is_owner=is_owner, name="the query")
        key = "pattern", pattern, question.filters, id(legs.store)
        found, strategy = budget.once(key, partial(find_matches, legs, pattern, question.filters))
        places[pattern] = Field("cid", tuple(map(str, found))) if found else Any(())
        matches |= {cid: matches.get(cid, 0) + count for cid, count in found.items()}
        # How far the leg has come depends on what others have written.
        told = f" by {strategy}" if is_owner else ""
        did.append((PatternMatches.name, f"{canonical(pattern)}: {counted(len(found), 'passage')}{told}"))
    node = _with(question.node, places)
    return legs._replace(matches=PatternMatches(matches, tuple(did))), replace(question, node=node)


def find_matches(legs: Retrievers, pattern: Pattern, filters: Filters) -> tuple[dict[int, int], str]:
    """The chunks that match a pattern, each with the number of its matches, and the strategy that found them."""
    numbers, strategy = narrowed(legs, required_trigrams(pattern), list(legs.store.matching(filters)))
    budget, scanned, found = current_budget(), 0, dict[int, int]()
    # Without numbers: how many texts had to be read depends on the whole index.
    cut = f"{canonical(pattern)} was not looked for in all texts"
    is_page = legs.keyword.unit == "page"
    with MatchTime(*_expression(pattern)) as clock:
        for stored in legs.store.texts(numbers):
            scanned += len(stored.text)
            budget.allow_scan(scanned)
            if budget.is_over(cut):
                break
            if scanned > _MOST_CHARACTERS or len(found) >= _MOST_CHUNKS:
                budget.refuse(cut)
                break
            try:
                spans = clock.run(_first_spans, pattern, stored.text, _MOST_IN_TEXT)
            except OverdueError as error:
                budget.refuse(f"{error.message}; {cut}")
                break
            if spans:
                counts = dict(_counted(chunks := legs.store.chunk_spans(stored.number), spans))
                found |= {chunks[0][0]: sum(counts.values())} if is_page and counts else counts
    return found, strategy


def narrowed(legs: Retrievers, required: Required | None, numbers: Sequence[int]) -> tuple[Collection[int], str]:
    """Those of the resources that may hold what is required, and the strategy that found them."""
    scan = f"a scan of {counted(len(numbers), 'text')}"
    if required is None:
        return numbers, f"{scan}, as no trigram follows from it"
    found = legs.exact().candidates(required, set(numbers)) if legs.exact is not None else None
    if found is None:
        return numbers, scan
    return found, f"the exact leg, which left {len(found):,} of {counted(len(numbers), 'text')}"


def match_spans(patterns: Iterable[Pattern], text: str) -> list[tuple[int, int, tuple[str]]]:
    """The matches of patterns in a passage that do not overlap, in order, each with its pattern."""
    found: list[tuple[int, int, tuple[str]]] = []
    for pattern in patterns:
        with MatchTime(*_expression(pattern)) as clock, suppress(OverdueError):  # it is shown without marks
            spans = clock.run(_first_spans, pattern, text, _MOST_SHOWN)
            found += [(*span, (pattern.text,)) for span in spans]
    kept: list[tuple[int, int, tuple[str]]] = []
    for one in sorted(found):
        if not kept or one[0] >= kept[-1][1]:
            kept.append(one)
    return kept


def _expression(pattern: Pattern) -> tuple[str, ...]:
    return (pattern.text,) if pattern.is_regex else ()


def _first_spans(pattern: Pattern, text: str, most: int) -> list[tuple[int, int]]:
    """The first matches in a text; one without a letter is none."""
    spans: list[tuple[int, int]] = []
    for at, piece in _pieces(text) if _nature(pattern).stays_in_line else ((0, text),):
        found = [match.span() for match in islice(_matches(pattern, piece), most - len(spans))]
        spans += [(at + start, at + end) for start, end in found] if at else found
    return spans


def _pieces(text: str) -> Iterator[tuple[int, str]]:
    """The text in pieces of whole lines: most are of ASCII where a few of its letters are not."""
    start = 0
    while start < len(text):
        end = (0 if text.isascii() else text.find("\n", start + _PIECE) + 1) or len(text)
        yield start, text[start:end]
        start = end


def _matches(pattern: Pattern, text: str) -> Iterator[re.Match[str]]:
    expression, (literals, _, folds, may_be_empty) = compile_pattern(pattern), _nature(pattern)
    low = fold(text) if folds else text
    if folds and text.isascii():
        text, expression = low, compile_folded(pattern)
    # Python's `re` takes 10 to 100 ns a letter, `str.find` less than 1.
    if not literals or sum(map(low.count, literals)) * _LINE > len(text):
        found = expression.finditer(text)
        return filter(methodcaller("group"), found) if may_be_empty else found
    lines = ((low.rfind("\n", 0, at) + 1, low.find("\n", at) + 1 or len(text)) for at in places_of(literals, low))
    return chain.from_iterable(expression.finditer(text, *line) for line in lines)


class _Nature(NamedTuple):
    """Literals of which every match holds one in its line, or none; whether matches end with it; whether case folds.

    And whether a match may be without a letter.
    """

    literals: tuple[str, ...]
    stays_in_line: bool
    folds: bool
    may_be_empty: bool


@lru_cache(maxsize=64)
def _nature(pattern: Pattern) -> _Nature:
    tree = parsed_pattern(pattern)
    ignores_case, is_scoped = bool(tree.state.flags & re.IGNORECASE), has_scoped_flags(tree)
    in_line = not is_scoped and stays_in_line(tree)
    texts = required_texts(tree, ignores_case) if in_line else ()
    literals = tuple(map(fold, texts)) if ignores_case else texts
    return _Nature(literals, in_line, ignores_case and not is_scoped, not tree.getwidth()[0])


def _counted(chunks: Sequence[tuple[int, int, int]], spans: Sequence[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """The chunks in which matches begin, or into which one reaches from between two chunks, and how many."""
    starts, behind = [start for start, _ in spans], 0
    for cid, first, last in chunks:
        at = bisect_left(starts, first)
        reaches = at > 0 and starts[at - 1] >= behind and spans[at - 1][1] > first
        if count := bisect_left(starts, last, at) - at + reaches:
            yield cid, count
        behind = max(behind, last)


def _with(node: Node, places: Mapping[Node, Node]) -> Node:
    """The tree with other nodes in the place of some leaves."""
    if isinstance(node, Not):
        return Not(_with(node.node, places))
    if isinstance(node, GROUPS):
        return replace(node, nodes=tuple(_with(part, places) for part in node.nodes))
    return places.get(node, node)
