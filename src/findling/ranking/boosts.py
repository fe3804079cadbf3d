"""Boosts: what lifts a score besides its legs, each by a bounded factor and with its reason.

Fused scores lie close together: with reciprocal ranks the thirtieth place of both legs has two thirds of the first
place of both. A factor of 1.475 would let it win whatever it says, so all boosts of a hit together stay below that.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from math import prod
from typing import NamedTuple

from findling.domain.values import counted
from findling.ranking.evidence import positive, unit
from findling.ranking.fusion import decayed

MOST = 1.45
"""The most that all boosts together multiply a score by."""

FIELD_FACTORS: Mapping[str, float] = {"title": 1.15, "heading": 1.1, "file name": 1.1, "tags": 1.1}
"""Factor of a field that holds the whole query."""

_LEAST = 1.005
"""A factor that comes to less is not worth a line in a receipt."""


class Boost(NamedTuple):
    """One reason to lift a score, and by how much."""

    name: str
    factor: float
    reason: str


class Boosted(NamedTuple):
    """An id with its lifted score. `factor` is the product of the boosts, or the limit that cut it off."""

    id: int
    score: float
    factor: float
    boosts: tuple[Boost, ...]


def boosted(
    scores: Sequence[tuple[int, float]], boosts: Mapping[int, Sequence[Boost]], *, most: float = MOST
) -> list[Boosted]:
    """Every score times its boosts, though never more than `most` times, ordered by the outcome, equals as they were.

    Raises ValueError for a score that is negative or not finite, and for a factor or limit below 1.
    """
    _factor(most, "the limit of boosts")
    lifted = []
    for item, score in scores:
        own = tuple(boosts.get(item, ()))
        factor = min(prod([_factor(boost.factor, f"boost {boost.name}") for boost in own], start=1.0), most)
        lifted.append(Boosted(item, positive(score, "score", or_zero=True) * factor, factor, own))
    return sorted(lifted, key=lambda one: -one.score)


def field_match(
    field: str, query: Collection[str], words: Collection[str], *, most: float | None = None
) -> Boost | None:
    """A boost for the share of the query's terms that a field holds; `None` when it holds none of them.

    `most` is the factor for the whole query, by default that of the field in `FIELD_FACTORS`. Raises ValueError for a
    field that has none.
    """
    if most is None:
        if field not in FIELD_FACTORS:
            raise ValueError(f"field {field} has no factor; there are factors for {', '.join(FIELD_FACTORS)}")
        most = FIELD_FACTORS[field]
    asked = list(dict.fromkeys(query))
    held = set(words)
    found = [term for term in asked if term in held]
    if not found:
        return None
    share = f"all {len(asked)} terms" if 1 < len(found) == len(asked) else ", ".join(found)
    return _boost(field, most, len(found) / len(asked), f"the {field} has {share}")


def exact_field(query: Sequence[str], fields: Mapping[str, Sequence[str]], *, factor: float) -> Boost | None:
    """A boost when a field has the terms of the query, in their order, and no others; the first such field counts."""
    asked = _distinct(query)
    for field, words in fields.items():
        if asked and _distinct(words) == asked:
            return _boost("exact match", factor, 1.0, f'the {field} is "{" ".join(asked)}"')
    return None


def starts_field(query: Sequence[str], fields: Mapping[str, Sequence[str]], *, factor: float) -> Boost | None:
    """A boost when a longer field begins with the terms of the query; the first such field counts."""
    asked = _distinct(query)
    for field, words in fields.items():
        held = _distinct(words)
        if asked and len(held) > len(asked) and held[: len(asked)] == asked:
            return _boost("prefix match", factor, 1.0, f'the {field} begins with "{" ".join(asked)}"')
    return None


def exact_phrase(query: Sequence[str], words: Sequence[str], *, most: float = 1.15) -> Boost | None:
    """Boost by `most` a text that has two or more terms of the query in a row."""
    if len(query) < 2:
        return None
    # Terms have no spaces, and one search for a string is 8 times as fast as a loop over 200 words.
    phrase = " ".join(query)
    if f" {phrase} " not in f" {' '.join(words)} ":
        return None
    return _boost("exact phrase", most, 1.0, f'the text has "{phrase}" word for word')


def recency(age_in_days: float | None, *, half_life_in_days: float = 90.0, most: float = 1.1) -> Boost | None:
    """A boost that halves with every half-life; `None` when the age is not known or too great to matter."""
    if age_in_days is None:
        return None
    age = max(age_in_days, 0.0)
    share = decayed(age, half_life_in_days)
    return _boost("recency", most, share, f"changed {counted(round(age), 'day')} ago" if age >= 1 else "changed today")


def author_affinity(author: str, affinities: Mapping[str, float], *, most: float = 1.1) -> Boost | None:
    """Boost the texts of an author who is close to the caller; affinities run from 0 to 1."""
    if not author or author not in affinities:
        return None
    affinity = unit(affinities[author], f"affinity of {author}")
    return _boost("author", most, affinity, f"written by {author} (affinity {affinity:.2f})")


def _distinct(words: Sequence[str]) -> list[str]:
    """Each term once: a query names what it asks for once, a title may say it twice."""
    return list(dict.fromkeys(words))


def _boost(name: str, most: float, share: float, reason: str) -> Boost | None:
    factor = 1 + (_factor(most, f"boost {name}") - 1) * share
    return Boost(name, factor, reason) if factor >= _LEAST else None


def _factor(factor: float, name: str) -> float:
    if positive(factor, name) < 1:
        raise ValueError(f"{name} is {factor}, which would lower a score")
    return factor
