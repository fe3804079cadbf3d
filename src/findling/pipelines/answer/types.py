"""The types that the stages of an answer hand on."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from findling.domain.queries import Same
from findling.domain.resources import StoredChunk
from findling.domain.results import Degradation, Step, Suggestion
from findling.pipelines.retrieve.legs import Candidate, Found, Retrievers
from findling.pipelines.retrieve.query_planner import AnalyzedQuery
from findling.pipelines.retrieve.vector_retrieval import Meaning

__all__ = ["HighlightSpec", "Ranked", "Ranking", "StepContext"]


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

    `page` are those of them that are shown, `next_cursor` asks for what is behind them. `steps` name the steps of the
    plan after the fusion, in order, each with what it did.
    """

    question: AnalyzedQuery
    ranked: list[Ranked]
    found: Found
    meaning: Meaning
    degraded: list[Degradation]
    page: Sequence[Ranked]
    next_cursor: str = ""
    suggestions: tuple[Suggestion, ...] = ()
    steps: tuple[tuple[str, str], ...] = ()


class StepContext:
    """What the steps of one search know beside the ranking, and what they note.

    `candidates` are those that the ranking was made of, and `is_settled` says that more of them would not change its
    top. `unread` are passages that there is no time to take apart. `now` is in seconds since the epoch, `None` the
    present.
    """

    def __init__(
        self, legs: Retrievers | None, question: AnalyzedQuery, meaning: Meaning, wanted: int, now: float | None = None
    ) -> None:
        self.legs, self.question, self.plan, self.meaning = legs, question, question.plan, meaning
        self.wanted, self.now = wanted, now
        self.least = question.plan.min_score
        self.again(())

    def again(self, candidates: Sequence[Candidate]) -> StepContext:
        """The same for a new ranking."""
        self.candidates, self.is_settled = candidates, True
        self.notes: list[Degradation] = []
        self.did: list[tuple[str, str]] = []
        self.unread: list[Ranked] = []
        return self

    @property
    def boosts(self) -> bool:
        """Whether the plan lifts hits for what their fields say."""
        plan = self.plan
        return plan.boosts or max(plan.exact_boost, plan.prefix_boost, plan.phrase_boost) > 1

    @property
    def reads(self) -> bool:
        """Whether a step takes passages apart into their words again."""
        return self.boosts or self.plan.collapse or self.plan.diversity < 1

    @property
    def reranks(self) -> bool:
        """Whether a model reads the best passages together with the query."""
        return self.meaning.reranker is not None and bool(self.plan.rerank_depth)

    @property
    def shuffles(self) -> bool:
        """Whether something may move hits after the legs have ranked them."""
        return self.reads or self.reranks or self.plan.adaptive_k
