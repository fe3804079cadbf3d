"""How much work a query asks for: a score over its words, no model, with every decision in words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from findling.text.query_shapes import scripts, shapes, word_count, words

__all__ = ["KINDS", "SIGNALS", "Route", "route"]


class Route(NamedTuple):
    """What a query looks like and what follows from it.

    `complexity` runs from 0 to 1 and gives the `kind`. Each of `signals` is its name and the words that gave it
    (`comparison: difference, between`). `shape` holds what the query is made of, and then its scripts. `depth_factor`
    is how deep to look, as a multiple of the usual; `graph` is the walk that a graph leg is to do; `reasons` say why.
    """

    complexity: float
    kind: str
    signals: tuple[str, ...]
    shape: tuple[str, ...]
    depth_factor: float
    graph: str
    reasons: tuple[str, ...]


KINDS = (
    ("simple", 0.3, 0.8, "none"),
    ("moderate", 0.6, 1.0, "low"),
    ("complex", 0.8, 1.2, "dual"),
    ("very_complex", float("inf"), 1.5, "dual"),
)
"""Each kind of query: the complexity it stays below, its depth factor and its graph walk."""

SIGNALS = (
    ("comparison", 0.20, ("vs", "versus", "compare", "comparison", "difference", "between")),
    ("temporal", 0.15, ("when", "before", "after", "history", "timeline", "since", "until")),
    ("aggregation", 0.15, ("all", "every", "summary", "overview", "list", "total")),
    (
        "multi-hop",
        0.20,
        (
            "how does",
            "how do",
            "why does",
            "why do",
            "what happens when",
            "relationship between",
            "impact of",
            "effect of",
        ),
    ),
    ("complex", 0.15, ("explain", "analyze", "evaluate", "describe how")),
)
"""Each signal: what it adds to the complexity, once, and the words and phrases that give it."""


def route(query: str) -> Route:
    """How to treat a query, which is given without its operators."""
    text = query[:_LONGEST].strip()
    tokens = words(text)
    count = word_count(text, tokens)
    complexity, signals, reasons = _complexity(tokens, count)
    kind, _, depth_factor, graph = next(kind for kind in KINDS if complexity < kind[1])
    walk = "no graph walk" if graph == "none" else f"{graph} graph walk"
    reasons.append(f"complexity {complexity:.2f}: {kind}, depth ×{depth_factor:g}, {walk}")
    shape = shapes(text, tokens, count)
    reasons += [f"{name}: {reason}" for name, reason in shape.items()]
    shape_and_scripts = (*shape, *scripts(text))
    return Route(complexity, kind, tuple(signals), shape_and_scripts, depth_factor, graph, tuple(reasons))


_LONGEST = 4_000
"""Characters that are looked at: a pasted file shows at its beginning what it is, and is to cost no more than that."""

_WORDS_TO_ONE, _MOST_FOR_LENGTH = 20, 0.25


_FIRST_WORDS = frozenset(phrase.partition(" ")[0] for _, _, phrases in SIGNALS for phrase in phrases)


def _complexity(tokens: Sequence[str], count: int) -> tuple[float, list[str], list[str]]:
    """The score, its signals, and a reason for each part of it."""
    score = min(count / _WORDS_TO_ONE, _MOST_FOR_LENGTH)
    reasons = [f"{count} {'word' if count == 1 else 'words'}: +{score:.2f}"]
    signals: list[str] = []
    if _FIRST_WORDS.isdisjoint(tokens):
        return score, signals, reasons
    # Between spaces a phrase begins and ends with a whole word: `show documents` has no `how do`.
    spaced = f" {' '.join(tokens)} "
    for name, weight, phrases in SIGNALS:
        if found := [phrase for phrase in phrases if phrase in spaced and f" {phrase} " in spaced]:
            score += weight
            signals.append(f"{name}: {', '.join(found)}")
            reasons.append(f"{signals[-1]}: +{weight:.2f}")
    # Rounded, so that 0.25 + 0.20 + 0.15 is 0.6 and not a hair beside the threshold.
    return min(round(score, 6), 1.0), signals, reasons
