"""Patterns of a query: the chunks that match them, found before the words are asked, and their evidence."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cached_property, lru_cache, partial
from itertools import chain, islice
from math import inf
from operator import methodcaller
from typing import TYPE_CHECKING, NamedTuple

from findling.domain.backends import EXACT
from findling.domain.budgets import current_budget
from findling.domain.errors import OverdueError
from findling.domain.queries import Any, Field, Node, Pattern, with_leaves
from findling.domain.results import Evidence
from findling.domain.strangers import checked_pattern
from findling.domain.values import counted
from findling.pipelines.retrieve.match_time import MatchTime
from findling.text.query.line_patterns import lines_crossed, required_texts, windows
from findling.text.query.patterns import (
    compile_folded,
    compile_pattern,
    fold,
    front_of,
    has_scoped_flags,
    parsed_pattern,
    required_trigrams,
)
from findling.text.query.tree import canonical, patterns_of

if TYPE_CHECKING:
    from findling.domain.queries import Filters, LegQuery, Required
    from findling.domain.resources import StoredText
    from findling.pipelines.retrieve.legs import Retrievers
    from findling.pipelines.retrieve.query_planner import AnalyzedQuery

_MOST_CHARACTERS = 128 << 20
"""Characters of texts that are looked at for one pattern: 0.1 s for a literal, 2 s for one that ignores case."""

_MOST_KEPT = 32 << 20
"""Characters of texts that a pattern keeps for the next of its query: reading them is a third of the time of one."""

_MOST_CHUNKS = 20_000
"""Chunks that match one pattern: so many take a keyword leg 40 ms to pass on."""

_MOST_IN_TEXT = 10_000
"""Matches in one text: a pattern that matches nearly everywhere says little by matching once more."""


_TEXTS_AT_ONCE = 64
"""Texts with matches whose chunks are asked for together: one by one they took an eighth of a pattern's time."""

_PIECE = 4_096
"""Letters of a piece of a text that is not of ASCII."""

_LINE = 256
r"""Letters between two literals below which it costs less to try an expression on the whole text than line by line.

Of 32 MB of code `(self\.|split)` takes 0.26 s with 256 and 0.39 with 128, `self\.asser|\d{4}-AWS` 0.53 and 0.48.
"""

_LEAD = 4
"""Times as many for an expression that begins with letters: `re` looks for them at 1 ns a letter."""

_MOST_RUNS = 3
"""Runs of letters that are counted in a text to find the rarest."""

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
    places, matches, did = dict[Node, Node](), dict[int, int](), dict.fromkeys(patterns, (PatternMatches.name, ""))
    known = KnownTexts({}, {})
    for pattern in (one for one in patterns if one.is_regex):
        checked_pattern(pattern.text, is_owner=is_owner, name="the query")
    # One that is tried at every letter may take all the time, and left none for the cheap ones behind it.
    for pattern in sorted(patterns, key=lambda one: _nature(one).is_dear):
        key = "pattern", pattern, question.filters, id(legs.store)
        found, strategy = budget.once(key, partial(find_matches, legs, pattern, question.filters, known))
        places[pattern] = Field("cid", tuple(map(str, found))) if found else Any(())
        matches |= {cid: matches.get(cid, 0) + count for cid, count in found.items()}
        # How far the leg has come depends on what others have written.
        told = f"{counted(len(found), 'passage')} by {strategy}" if is_owner else counted(len(found), "passage")
        did[pattern] = PatternMatches.name, f"{canonical(pattern)}: {told}"
    node = with_leaves(question.node, lambda leaf: places.get(leaf, leaf))
    return legs._replace(matches=PatternMatches(matches, tuple(did.values()))), replace(question, node=node)


class KnownTexts(NamedTuple):
    """Texts by their numbers as the patterns of a query know them: some as they were read, and the spans of chunks."""

    read: dict[int, _Read]
    chunks: dict[int, list[tuple[int, int, int]]]


def find_matches(legs: Retrievers, pattern: Pattern, filters: Filters, known: KnownTexts) -> tuple[dict[int, int], str]:
    """The chunks that match a pattern, each with the number of its matches, and the strategy that found them.

    `known` are texts that a pattern before has read; it takes some of this one.
    """
    numbers, strategy = narrowed(legs, required_trigrams(pattern), list(legs.store.matching(filters)))
    budget, scanned, found, folds = current_budget(), 0, dict[int, int](), _nature(pattern).folds
    kept, matched = known.read, dict[int, list[tuple[int, int]]]()
    # Without numbers: how many texts had to be read depends on the whole index.
    cut = f"{canonical(pattern)} was not looked for in all texts"
    read = legs.store.texts([number for number in numbers if number not in kept])
    with MatchTime(*_expression(pattern)) as clock:
        for one in chain([kept[number] for number in numbers if number in kept], map(_Read, read)):
            stored = one.stored
            scanned += len(stored.text)
            if scanned < _MOST_KEPT:
                kept[stored.number] = one
            budget.allow_scan(scanned)
            if is_much := scanned > _MOST_CHARACTERS or len(found) >= _MOST_CHUNKS:
                budget.refuse(cut)
            if is_much or budget.is_over(cut):
                break
            try:
                spans = clock.run(_first_spans, pattern, stored.text, one.low if folds else "", _MOST_IN_TEXT)
            except OverdueError as error:
                budget.refuse(f"{error.message}; {cut}")
                break
            if spans:
                matched[stored.number] = spans
                if len(matched) == _TEXTS_AT_ONCE:
                    found |= _in_chunks(legs, matched, known.chunks)
                    matched = {}
    return found | _in_chunks(legs, matched, known.chunks), strategy


def narrowed(legs: Retrievers, required: Required | None, numbers: Sequence[int]) -> tuple[Collection[int], str]:
    """Those of the resources that may hold what is required, and the strategy that found them."""
    scan = f"a scan of {counted(len(numbers), 'text')}"
    if required is None:
        return numbers, f"{scan}, as no trigram follows from it"
    found = legs.leg(EXACT).candidates(required, set(numbers)) if legs.leg is not None else None
    if found is None:
        return numbers, scan
    return found, f"the exact leg, which left {len(found):,} of {counted(len(numbers), 'text')}"


def match_spans(patterns: Iterable[Pattern], text: str) -> list[tuple[int, int, tuple[str]]]:
    """The matches of patterns in a passage that do not overlap, in order, each with its pattern."""
    found: list[tuple[int, int, tuple[str]]] = []
    for pattern in patterns:
        with MatchTime(*_expression(pattern)) as clock, suppress(OverdueError):  # it is shown without marks
            spans = clock.run(_first_spans, pattern, text, "", _MOST_SHOWN)
            found += [(*span, (pattern.text,)) for span in spans]
    kept: list[tuple[int, int, tuple[str]]] = []
    for one in sorted(found):
        if not kept or one[0] >= kept[-1][1]:
            kept.append(one)
    return kept


def _expression(pattern: Pattern) -> tuple[str, ...]:
    return (pattern.text,) if pattern.is_regex else ()


class _Read:
    """A text that was read, folded once for all patterns of a query."""

    def __init__(self, stored: StoredText) -> None:
        self.stored = stored

    @cached_property
    def low(self) -> str:
        return _folded(self.stored.text)


def _first_spans(pattern: Pattern, text: str, low: str, most: int) -> list[tuple[int, int]]:
    """The first matches in a text, which is folded in `low` if that was done; one without a letter is none."""
    spans, nature = list[tuple[int, int]](), _nature(pattern)
    low = (low or _folded(text)) if nature.folds else text
    for at, piece in _pieces(text) if nature.folds and not nature.crossed else ((0, text),):
        matches = _matches(pattern, nature, piece, low[at : at + len(piece)])
        found = map(re.Match.span, islice(matches, most - len(spans)))
        spans += [(at + start, at + end) for start, end in found] if at else found
    return spans


def _folded(text: str) -> str:
    return "".join(fold(piece) for _, piece in _pieces(text))


def _pieces(text: str) -> Iterator[tuple[int, str]]:
    """The text in pieces of whole lines: most are of ASCII where a few of its letters are not."""
    start = 0
    while start < len(text):
        end = (0 if text.isascii() else text.find("\n", start + _PIECE) + 1) or len(text)
        yield start, text[start:end]
        start = end


def _matches(pattern: Pattern, nature: _Nature, text: str, low: str) -> Iterator[re.Match[str]]:
    # Python's `re` takes 10 to 100 ns a letter, `str.find` less than 1: the run that is rarest here leaves least to it.
    times, literals = len(text), tuple[str, ...]()
    for run in nature.required:
        if (count := sum(map(low.count, run))) < times:
            times, literals = count, run
        if not times:
            return iter(())
    is_low = not nature.folds or text.isascii()
    text, expression = (low, compile_folded(pattern)) if is_low else (text, compile_pattern(pattern))
    if not literals or times * nature.gap > len(text):
        found = expression.finditer(text)
        return filter(methodcaller("group"), found) if nature.may_be_empty else found
    spans = windows(low, literals, int(nature.crossed))
    return chain.from_iterable(expression.finditer(text, *span) for span in spans)


class _Nature(NamedTuple):
    """Runs of letters that every match holds, and how many breaks of lines; whether case folds; whether it is empty.

    On average so many letters of a `gap` lie between two runs where an expression is tried near them alone. A dear one
    neither begins with a letter nor is tried near any.
    """

    required: tuple[tuple[str, ...], ...]
    crossed: float
    gap: float
    folds: bool
    may_be_empty: bool
    is_dear: bool


@lru_cache(maxsize=64)
def _nature(pattern: Pattern) -> _Nature:
    tree, may_be_empty = parsed_pattern(pattern), not parsed_pattern(pattern).getwidth()[0]
    if has_scoped_flags(tree):
        return _Nature((), inf, inf, False, may_be_empty, True)
    folds, crossed = bool(tree.state.flags & re.IGNORECASE), lines_crossed(tree)
    lead = "".join(chr(given) for _, given in front_of(tree)[1])
    runs = required_texts(tree, folds)[:_MOST_RUNS]
    required = tuple(run for run in runs if run != (fold(lead) if folds else lead,))
    gap = _LINE * (1 + crossed) * (_LEAD if len(lead) > 1 else 1)
    return _Nature(required, crossed, gap, folds, may_be_empty, not lead and (crossed == inf or not required))


def _in_chunks(
    legs: Retrievers, matched: Mapping[int, Sequence[tuple[int, int]]], chunks: dict[int, list[tuple[int, int, int]]]
) -> dict[int, int]:
    """The chunks, or the first ones of their pages, with the number of their matches, by matches in whole texts."""
    missing = [number for number in matched if number not in chunks]
    chunks |= {number: [] for number in missing}
    for number, cid, start, end in legs.store.chunk_spans(missing):
        chunks[number].append((cid, start, end))
    found = dict[int, int]()
    for number, spans in matched.items():
        counts = dict(_counted(chunks[number], spans))
        found |= {chunks[number][0][0]: sum(counts.values())} if counts and legs.keyword.unit == "page" else counts
    return found


def _counted(chunks: Sequence[tuple[int, int, int]], spans: Sequence[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """The chunks in which matches begin, or into which one reaches from between two chunks, and how many."""
    starts, behind = [start for start, _ in spans], 0
    for cid, first, last in chunks:
        at = bisect_left(starts, first)
        reaches = at > 0 and starts[at - 1] >= behind and spans[at - 1][1] > first
        if count := bisect_left(starts, last, at) - at + reaches:
            yield cid, count
        behind = max(behind, last)
