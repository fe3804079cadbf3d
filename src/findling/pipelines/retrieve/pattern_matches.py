"""Patterns of a query: the chunks that match them, found before the words are asked, and their evidence."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING

from findling.domain.budgets import current_budget
from findling.domain.errors import OverdueError
from findling.domain.queries import GROUPS, Any, Field, Node, Not, Pattern
from findling.domain.results import Evidence
from findling.domain.strangers import checked_pattern
from findling.domain.values import counted
from findling.pipelines.retrieve.match_time import MatchTime
from findling.text.query.patterns import compile_pattern, fold, required_trigrams
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
                for cid in _chunks_at(legs.store.chunk_spans(stored.number), spans, is_page=is_page):
                    found[cid] = found.get(cid, 0) + 1
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
    return list(islice(_spans(pattern, text), most))


def _spans(pattern: Pattern, text: str) -> Iterator[tuple[int, int]]:
    """The matches in a text; one without a letter is none."""
    expression = compile_pattern(pattern)
    if pattern.is_regex or pattern.whole_words:
        return (match.span() for match in expression.finditer(text) if match.end() > match.start())
    if pattern.is_case_sensitive:
        return _occurrences(pattern.text, text)
    # Ten times as fast as an expression that ignores case, which has the last word where letters are not ASCII.
    wanted = fold(pattern.text)
    if not text.isascii() and wanted.isascii() and not any(letter in text for letter in _LIKE_ASCII):
        return _occurrences_in_bytes(wanted, text)
    found = _occurrences(wanted, fold(text))
    return found if text.isascii() else (span for span in found if expression.fullmatch(text, *span))


_LIKE_ASCII = "\u0130\u0131\u017f\u212a"
"""Letters that are i, s or k when case is ignored; no other one is like a letter of ASCII."""


def _occurrences_in_bytes(wanted: str, text: str) -> Iterator[tuple[int, int]]:
    """The places of a text of ASCII, whatever the case: `lower` takes 8 ns a letter for text, and 1 for bytes."""
    data, needle = text.encode("utf-8", "surrogatepass").lower(), wanted.encode()
    behind, letters, start = 0, 0, data.find(needle)
    while start >= 0:
        letters += len(data[behind:start].decode("utf-8", "surrogatepass"))
        yield letters, letters + len(wanted)
        behind, letters = start + len(needle), letters + len(wanted)
        start = data.find(needle, behind)


def _occurrences(wanted: str, text: str) -> Iterator[tuple[int, int]]:
    start = text.find(wanted)
    while start >= 0:
        yield start, start + len(wanted)
        start = text.find(wanted, start + len(wanted))


def _chunks_at(
    chunks: Sequence[tuple[int, int, int]], spans: Iterable[tuple[int, int]], *, is_page: bool
) -> Iterator[int]:
    """The chunks in which matches begin, or into which they reach from between two chunks; of a page its first."""
    starts = [start for _, start, _ in chunks]
    for start, end in spans:
        at = bisect_right(starts, start)
        held = [cid for cid, _, last in chunks[max(at - 2, 0) : at] if last > start]
        held = held or [cid for cid, first, _ in chunks[at : at + 1] if first < end]
        yield from [chunks[0][0]] if is_page and held else held


def _with(node: Node, places: Mapping[Node, Node]) -> Node:
    """The tree with other nodes in the place of some leaves."""
    if isinstance(node, Not):
        return Not(_with(node.node, places))
    if isinstance(node, GROUPS):
        return replace(node, nodes=tuple(_with(part, places) for part in node.nodes))
    return places.get(node, node)
