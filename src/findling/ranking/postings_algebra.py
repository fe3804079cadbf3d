"""The algebra of queries over postings: a few kinds of parts that are put together."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple, TypeAlias

__all__ = [
    "AllPart",
    "AnyTermPart",
    "BeginningPart",
    "BestPart",
    "BoostPart",
    "ConstantPart",
    "EveryPart",
    "NumbersPart",
    "Part",
    "RangePart",
    "RowPart",
    "SumPart",
    "TermPart",
    "leaves_of",
]


class TermPart(NamedTuple):
    """Entries with a term."""

    field: str
    term: str


class AnyTermPart(NamedTuple):
    """Entries with any of some terms, all with the score 1."""

    field: str
    terms: tuple[str, ...]


class BeginningPart(NamedTuple):
    """Entries with a term that begins so, all with the score 1."""

    field: str
    prefix: str


class NumbersPart(NamedTuple):
    """Entries with any of some numbers in a column, all with the score 1."""

    column: str
    numbers: tuple[int, ...]


class RangePart(NamedTuple):
    """Entries with a number from `first` on and below `end`, all with the score 1."""

    column: str
    first: int
    end: int


class EveryPart(NamedTuple):
    """Every entry, or none of them, with the score 1."""

    is_empty: bool = False


class RowPart(NamedTuple):
    """Entries with words in a row: at offsets, or two words with at most `slop` others between them.

    A word that is a `BeginningPart` may be longer.
    """

    field: str
    words: tuple[tuple[int, str | BeginningPart], ...]
    slop: int = 0


class BoostPart(NamedTuple):
    """The same entries, with scores that count so much."""

    part: Part
    boost: float


class ConstantPart(NamedTuple):
    """The same entries, all with one score."""

    part: Part
    score: float


class SumPart(NamedTuple):
    """Entries that match any part, with the sum of their scores."""

    parts: tuple[Part, ...]


class AllPart(NamedTuple):
    """Entries that match all of `musts` and none of `nots`; what they match of `shoulds` counts, too."""

    musts: tuple[Part, ...]
    shoulds: tuple[Part, ...] = ()
    nots: tuple[Part, ...] = ()


class BestPart(NamedTuple):
    """Entries that match any part, with the best of their scores and a share of the others."""

    parts: tuple[Part, ...]
    share: float


Part: TypeAlias = (
    TermPart
    | AnyTermPart
    | BeginningPart
    | NumbersPart
    | RangePart
    | EveryPart
    | RowPart
    | BoostPart
    | ConstantPart
    | SumPart
    | AllPart
    | BestPart
)


def leaves_of(part: Part) -> Iterator[Part]:
    """The parts that a part is put together of, down to those that are of no others."""
    if isinstance(part, (SumPart, BestPart)):
        below = part.parts
    elif isinstance(part, AllPart):
        below = (*part.musts, *part.shoulds, *part.nots)
    elif isinstance(part, (BoostPart, ConstantPart)):
        below = (part.part,)
    else:
        yield part
        return
    for one in below:
        yield from leaves_of(one)
