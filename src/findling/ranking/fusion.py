"""One ranking from those of several legs, with what each leg contributed.

A score is the sum of its parts, each weight × normalised (`math.fsum`, exact in any order). The order is by score, then
by id. A leg that does not list an id has no part in it. Every function raises ValueError for a negative or missing
weight and for numbers that are not finite.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from math import fsum
from typing import NamedTuple, TypeAlias

from findling.domain.values import counted
from findling.ranking.evidence import finite, positive, unit


def decayed(age: float, half_life: float) -> float:
    """1 for what is new, one half at the age of `half_life`, towards 0; what comes from the future is new.

    Raises ValueError for a half-life that is not positive.
    """
    return float(0.5 ** (max(finite(age, "age"), 0.0) / positive(half_life, "half-life")))


class Weighing(NamedTuple):
    """The weight of meaning, 0 to 1, and why."""

    alpha: float
    reason: str


class _WeightRule(NamedTuple):
    """alpha = base + flatness × (0.5 − fall) − names × share of names, within bounds, then less for identifiers.

    Fitted on seven development sets (docs/benchmarks.md): the refined rule has a mean NDCG@10 of .682, the best fixed
    weight .677. Fitted on six and tried on the seventh, it does as well as a fixed weight, not better.
    """

    base: float
    flatness: float
    names: float
    least: float
    most: float


_REFINED = _WeightRule(0.70, 0.6, 0.6, 0.5, 0.95)
_INSTANT = _WeightRule(0.35, 0.8, 0.4, 0.3, 0.7)

_IDENTIFIERS = 0.8
"""Share of its weight that meaning loses where the query is an identifier."""

_DEPTH = 10
_IDENTIFIER = re.compile(r"_|[a-z]{2}\.[a-z]{2}|[a-z]{2}[A-Z][a-z]")
_WORD = re.compile(r"\w+(?:[._:/-]\w+)*")


def meaning_weight(query: str, scores: Iterable[float], most: float, *, is_refined: bool) -> Weighing:
    """The weight of meaning for a query whose words have found chunks with these scores, of `most` that was possible.

    Where the words stand in fewer than ten chunks, it counts how much of the query the best of them holds. A score of 0
    is no evidence: such a chunk only fulfils a condition, as everything else does for `redis OR -zebra`.
    """
    rule = _REFINED if is_refined else _INSTANT
    best = sorted([score for score in scores if score > 0], reverse=True)[:_DEPTH]
    fall = 1 - best[-1] / best[0] if len(best) == _DEPTH else min(best[0] / most, 1.0) if best and most else 0.0
    words = _WORD.findall(query)
    identifiers = sum(_IDENTIFIER.search(word) is not None for word in words) / len(words) if words else 0.0
    # In a query of nothing but capitals they mark no names.
    names = sum(word[0].isupper() for word in words[1:]) / len(words) if words and not query.isupper() else 0.0
    alpha = rule.base + rule.flatness * (0.5 - fall) - rule.names * names
    alpha = min(max(alpha, rule.least), rule.most) * (1 - _IDENTIFIERS * identifiers)
    why = f"scores fall by {fall:.0%} from hit 1 to {_DEPTH}" if len(best) == _DEPTH else _few(len(best), fall)
    return Weighing(alpha, f"by words, {why}; {names + identifiers:.0%} of the query are names")


def foreign_weight(best: float) -> Weighing:
    """The weight of meaning for a question in another language than English, by the evidence of its best words.

    Words that find little are asked across languages, where meaning is all there is. Sentences out of handbooks in ten
    languages, asked of the same and of the English ones: the best weight is .3 at .43, .4 at .34, .6 at .26, .8 at .18.
    """
    alpha = min(max(1 - 1.7 * best, _INSTANT.least), 0.8)
    return Weighing(alpha, f"in another language than English, words find {best:.0%}")


def _few(hits: int, share: float) -> str:
    return f"{counted(hits, 'hit')} with {share:.0%}" if hits else "no hit has evidence"


Hits: TypeAlias = Sequence[tuple[int, float]]
"""Ids with scores, best first, each id once. The place in the list is the rank."""

RECENCY_WEIGHTS: Mapping[str, float] = {"semantic": 0.7, "keyword": 0.2, "recency": 0.1}

Part: TypeAlias = tuple[str, int, float, float, float]
"""Contribution of one leg to a score: leg, rank from 1 on, normalised score, weight, and weight × normalised."""


class Fusion:
    """Ids with their scores, best first, and what each score is the sum of.

    `legs` has the weight of each leg and its hits. Of hundreds of fused ids ten are shown: only these need parts.
    """

    def __init__(self, ranking: Hits, legs: Mapping[str, tuple[float, Hits]]) -> None:
        self.ranking, self.legs = ranking, legs

    def parts(self, item: int) -> list[Part]:
        """The parts of the score of an id, in the order of the legs."""
        places = [(leg, weight, own[item]) for leg, weight, own in self._places if item in own]
        return [(leg, rank, normalised, weight, weight * normalised) for leg, weight, (rank, normalised) in places]

    @cached_property
    def _places(self) -> list[tuple[str, float, dict[int, tuple[int, float]]]]:
        """By leg, the rank and the normalised score of each id."""
        return [
            (leg, weight, {item: (rank, normalised) for rank, (item, normalised) in enumerate(hits, start=1)})
            for leg, (weight, hits) in self.legs.items()
        ]


def best_first(scores: Mapping[int, float]) -> Hits:
    """Hits in the order of their scores, equals in the order of their ids."""
    # As pairs that compare by themselves: a key made in Python takes twice as long, two sorts a third more.
    return [(item, -score) for score, item in sorted([(-score, item) for item, score in scores.items()])]


def rrf(legs: Mapping[str, Hits], *, k: float = 60.0) -> Fusion:
    """Reciprocal rank fusion: the sum of 1 / (k + rank)."""
    return _by_rank(legs, k, 1.0, dict.fromkeys(legs, 1.0))


def rrf_weighted(legs: Mapping[str, Hits], weights: Mapping[str, float], *, k: float = 60.0) -> Fusion:
    """Reciprocal ranks between 0 and 1: first in every leg that has a weight is 1.

    Weights count as shares of their sum. Raises ValueError when that is 0, too.
    """
    total = fsum(positive(weight, f"weight of leg {leg}", or_zero=True) for leg, weight in weights.items())
    positive(total, "the sum of all weights")
    return _by_rank(legs, k, k + 1, {leg: weight / total for leg, weight in weights.items()})


def weighted(legs: Mapping[str, Hits], weights: Mapping[str, float]) -> Fusion:
    """The sum of weight × score, of scores that the caller has brought to 0 to 1.

    Weights that add up to 1 give scores between 0 and 1. Raises ValueError for scores outside of 0 to 1, too.
    """
    return _fused({leg: _units(leg, hits) for leg, hits in legs.items()}, weights)


def with_recency(
    legs: Mapping[str, Hits],
    ages_in_days: Mapping[int, float],
    *,
    half_life_in_days: float = 90.0,
    weights: Mapping[str, float] = RECENCY_WEIGHTS,
) -> Fusion:
    """`weighted` of the legs and age: meaning 0.7, words 0.2 and age 0.1 by default.

    Age finds nothing by itself: it counts for ids that one of the legs lists. An id without a known age gets nothing.
    """
    listed = {item for hits in legs.values() for item, _ in hits}
    recency = {item: decayed(age, half_life_in_days) for item, age in ages_in_days.items() if item in listed}
    return weighted({**legs, "recency": best_first(recency)}, weights)


def _by_rank(legs: Mapping[str, Hits], k: float, top: float, weights: Mapping[str, float]) -> Fusion:
    positive(k, "k", or_zero=True)
    ranked = {leg: [(hit[0], top / (k + rank)) for rank, hit in enumerate(hits, start=1)] for leg, hits in legs.items()}
    return _fused(ranked, weights)


def _units(leg: str, hits: Hits) -> Hits:
    # Nearly all pass: a call or a turn of a loop for each of them would take half of the time of a fusion.
    scores = [score for _, score in hits]
    # What is no number may hide from min and max, but not in a sum.
    if not scores or (min(scores) >= 0.0 and max(scores) <= 1.0 and sum(scores) >= 0.0):
        return hits
    return [(item, unit(score, f"score of leg {leg}")) for item, score in hits]


def _fused(legs: Mapping[str, Hits], weights: Mapping[str, float]) -> Fusion:
    weighed: dict[str, tuple[float, Hits]] = {}
    for leg, hits in legs.items():
        if leg not in weights:
            raise ValueError(f"leg {leg} has no weight; there are weights for {', '.join(weights) or 'none'}")
        weighed[leg] = positive(weights[leg], f"weight of leg {leg}", or_zero=True), hits
    values = [{item: weight * normalised for item, normalised in hits} for weight, hits in weighed.values()]
    return Fusion(best_first(_sums(values)), weighed)


def _sums(values: Sequence[Mapping[int, float]]) -> Mapping[int, float]:
    """The exact sum of the values of each id."""
    if len(values) == 2:  # a plain sum of two is exact, and takes a third of the time
        one, other = values
        both = {item: value + other.get(item, 0.0) for item, value in one.items()}
        return both | {item: value for item, value in other.items() if item not in both}
    items = {item for own in values for item in own}
    return {item: fsum([own[item] for own in values if item in own]) for item in items}
