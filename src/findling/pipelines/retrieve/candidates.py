"""Candidates: chunks that the legs have found, each with what every leg contributed."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from findling.domain.ports import KeywordHits, KeywordLeg, ReadStore
from findling.pipelines.retrieve.vector_retrieval import Meaning, MeaningHit

if TYPE_CHECKING:
    from findling.ranking.fusion import Part, Weighing

__all__ = ["Candidate", "Found", "Retrievers"]


class Retrievers(NamedTuple):
    """What a search goes by: the truth, the words, and, asked only where a plan needs it, the meaning.

    For a caller with limited rights all three are limited to the caller's sight (`service/index/views.py`): no pipeline
    can come upon anything else, so none has to check.
    """

    store: ReadStore
    keyword: KeywordLeg
    meaning: Callable[[], Meaning] | None = None


class Candidate(NamedTuple):
    """A chunk that a leg has found. Ranks count from 1, and are 0 in a leg without it.

    Candidates stand in the order of the sums of their parts, which a leg that was asked alone has none of. `words` is
    the evidence of their words; `score` the better one of both kinds of evidence, or that of a candidate above.
    """

    cid: int
    score: float
    keyword_rank: int = 0
    keyword_score: float = 0.0
    vector_rank: int = 0
    vector: MeaningHit | None = None
    parts: tuple[Part, ...] = ()
    words: float = 0.0

    @property
    def evidence(self) -> float:
        """How well the candidate is supported, 0 to 1, by whatever supports it best."""
        return max(self.words, self.meaning)

    @property
    def meaning(self) -> float:
        """The evidence of its meaning; what is no nearer than foreign texts are has none."""
        return self.vector.evidence if self.vector is not None and self.vector.is_near else 0.0


class Found(NamedTuple):
    """The candidates, best first, what the keyword leg said, and how the two kinds of evidence were weighed.

    `total` counts what has at least the evidence `least`, `weaker` what else matches.
    """

    candidates: list[Candidate]
    keyword: KeywordHits
    total: int
    weaker: int
    least: float
    is_all: bool
    strategy: str
    weighing: Weighing | None = None
    feedback: str = ""
