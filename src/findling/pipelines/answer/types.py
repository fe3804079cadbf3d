"""The types that the stages of an answer hand on."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from findling.domain.queries import Same
from findling.domain.resources import StoredChunk
from findling.domain.results import Degradation, Step, Suggestion
from findling.pipelines.retrieve.candidates import Candidate, Found
from findling.pipelines.retrieve.query_planner import AnalyzedQuery
from findling.pipelines.retrieve.vector_retrieval import Meaning

__all__ = ["HighlightSpec", "Ranked", "Ranking"]


class Ranked(NamedTuple):
    """A candidate that stands up to the truth: its chunk, its score so far, and what has moved it.

    `others` are the entries that it stands for in an answer that is grouped, best first.
    """

    stored: StoredChunk
    candidate: Candidate
    score: float
    steps: tuple[Step, ...] = ()
    others: tuple[Ranked, ...] = ()


class HighlightSpec(NamedTuple):
    """What is looked for in every hit: the terms of the query, the forms they have, identifiers and their parts.

    `same` are groups of terms of which one will do, each a list of alternatives. `around` is how many messages are
    shown on either side of one that was found. `weights` says how much each term tells, and `nearness` how near in
    meaning texts are to the query: both choose the lines that are shown.
    """

    terms: Sequence[str]
    forms: Mapping[str, str]
    identifiers: Mapping[str, set[str]]
    same: Sequence[Same] = ()
    snippet_lines: int = 3
    context: int = 0
    around: int = 0
    weights: Mapping[str, float] = {}
    nearness: Callable[[Sequence[str]], Sequence[float]] | None = None


class Ranking(NamedTuple):
    """What the legs have made of a question: the hits that stand up to the truth, and what happened on the way.

    `page` are those of them that are shown, `next_cursor` asks for what is behind them.
    """

    question: AnalyzedQuery
    ranked: list[Ranked]
    found: Found
    meaning: Meaning
    degraded: list[Degradation]
    page: Sequence[Ranked]
    next_cursor: str = ""
    suggestions: tuple[Suggestion, ...] = ()
