"""How much meaning counts against words, decided for each query by what the words have found and what was asked.

Words that tell chunks apart have a best hit that stands out from the tenth; where the scores are flat, the words are
common ones and meaning has to decide. Names are found by their letters, not by their meaning.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from heapq import nlargest
from typing import NamedTuple

__all__ = ["Weighing", "meaning_weight"]


class Weighing(NamedTuple):
    """The weight of meaning, 0 to 1, and why."""

    alpha: float
    reason: str


class _Rule(NamedTuple):
    """alpha = base + flatness × (0.5 − fall) − names × share of names, within bounds, then less for identifiers.

    Fitted on seven development sets (docs/benchmarks.md): the refined rule has a mean NDCG@10 of .682, the best fixed
    weight .677. Fitted on six and tried on the seventh, it does as well as a fixed weight, not better.
    """

    base: float
    flatness: float
    names: float
    least: float
    most: float


_REFINED = _Rule(0.70, 0.6, 0.6, 0.5, 0.95)
_INSTANT = _Rule(0.35, 0.8, 0.4, 0.3, 0.7)

_IDENTIFIERS = 0.8
"""What meaning loses where the query is an identifier."""

_DEPTH = 10
_IDENTIFIER = re.compile(r"_|[a-z]{2}\.[a-z]{2}|[a-z]{2}[A-Z][a-z]")
_WORD = re.compile(r"\w+(?:[._:/-]\w+)*")


def meaning_weight(query: str, scores: Iterable[float], most: float, *, is_refined: bool) -> Weighing:
    """The weight of meaning for a query whose words have found chunks with these scores, of `most` that was possible.

    Where the words stand in fewer than ten chunks, it counts how much of the query the best of them holds. A score of 0
    is no evidence: such a chunk only fulfils a condition, as everything else does for `redis OR -zebra`.
    """
    rule = _REFINED if is_refined else _INSTANT
    best = nlargest(_DEPTH, (score for score in scores if score > 0))
    fall = 1 - best[-1] / best[0] if len(best) == _DEPTH else min(best[0] / most, 1.0) if best and most else 0.0
    words = _WORD.findall(query)
    identifiers = sum(map(_is_identifier, words)) / len(words) if words else 0.0
    # In a query of nothing but capitals they tell no names.
    names = sum(map(_is_name, words[1:])) / len(words) if words and not query.isupper() else 0.0
    alpha = rule.base + rule.flatness * (0.5 - fall) - rule.names * names
    alpha = min(max(alpha, rule.least), rule.most) * (1 - _IDENTIFIERS * identifiers)
    told = f"scores fall by {fall:.0%} from hit 1 to {_DEPTH}" if len(best) == _DEPTH else _few(len(best), fall)
    return Weighing(alpha, f"by words, {told}; {names + identifiers:.0%} of the query are names")


def _few(hits: int, share: float) -> str:
    return f"{hits} hits hold {share:.0%}" if hits else "no hit has evidence"


def _is_name(word: str) -> bool:
    return word[0].isupper()


def _is_identifier(word: str) -> bool:
    """`get_user`, `getUser`, `os.path`: what is written so is meant to the letter."""
    return _IDENTIFIER.search(word) is not None
