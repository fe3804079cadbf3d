"""The registry of legs, their binding to an index, and the candidates that they find.

A line of the registry names the modes of a plan that ask a leg, and its weight. A new leg implements
`domain.backends.Leg` in a folder of its own and adds its line here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from findling.domain.backends import GRAPH, GraphAtHand
from findling.domain.errors import InvalidValueError
from findling.domain.plans import MODES, Plan
from findling.domain.ports import KeywordHits, KeywordLeg, ReadStore
from findling.domain.results import Degradation, Evidence, Step
from findling.domain.values import record
from findling.pipelines.retrieve.vector_retrieval import Meaning, VectorRetriever
from findling.ranking.evidence import falling

if TYPE_CHECKING:
    from findling.domain.backends import FoundMatches, Retriever
    from findling.domain.queries import Rephraser
    from findling.ranking.fusion import Hits, Weighing

COMPARED = 60
"""Best candidates whose resources are compared, the same ones for every page: of 179 questions about nine repositories
the right file has a passage among them for 178, among the best 30 for 175."""

KEYWORD, SEMANTIC, EXACT, EXPANSION = "keyword", "semantic", "exact", "expansion"

_EXACT_WEIGHT = 0.2
"""Little beside words: a pattern demands, and all that is found has it."""

_EXPANSION_WEIGHT = 0.3
"""Little beside the question itself: words of its best passages count a third of that, and hurt with twice as much."""


BindLeg: TypeAlias = "Callable[[Retrievers, Meaning], Retriever | None]"
"""Gives a leg for one query, or `None` where it cannot serve."""


class Retrievers(NamedTuple):
    """The sources of a search: the truth, the words, and the meaning, which is opened only where a plan needs it.

    `leg` opens any other leg by its name: `EXACT` narrows down what may match a pattern, `GRAPH` leads from passage to
    passage. For a caller with limited rights all of them hold the caller's sight alone, so no pipeline has to check;
    `state` is the one of that sight. `matches` are those of the patterns of one query. `rephraser` gives the language
    model of the owner, if one is chosen; `variants` binds those of one question.
    `wishes` become what the answer lacks: `KEYWORD` for passages that the truth no longer holds, and models whose
    vectors are behind, each with whether that shows: other passages may stand in the place of those that are gone.
    """

    store: ReadStore
    keyword: KeywordLeg
    meaning: Callable[[], Meaning] | None = None
    matches: FoundMatches | None = None
    rephraser: Callable[[], Rephraser | None] | None = None
    variants: BindLeg | None = None
    leg: Callable[[str], Any] | None = None
    wishes: dict[Any, bool] | None = None
    state: object = None

    @property
    def graph(self) -> GraphAtHand:
        """The graph in sight, or why there is none."""
        at_hand: GraphAtHand = self.leg(GRAPH) if self.leg is not None else GraphAtHand(None)
        return at_hand


class Widened(NamedTuple):
    """The outcome of an expansion: a leg of variants of the question, an account for the plan, notes on failures."""

    account: Mapping[str, Any]
    variants: BindLeg | None = None
    notes: tuple[Degradation, ...] = ()


_LOWERED = "words and meaning together rank a hit with less above it"
_SAME = 1 - 1e-9
"""Share of a product of factors that rounding may take away."""


class Candidate:
    """A chunk that a leg has found, with the evidence of every leg that says something of it.

    Candidates stand in the order of the sums of the shares, which is `strength`, unless something has moved them.
    `score` is the best worth of the evidence, or that of a candidate above. `given` may be a function of the chunk's
    id: of a hundred candidates ten are shown, and only these need evidence. So are the steps that have moved it.
    """

    __slots__ = ("_given", "_steps", "_worth", "cid", "score", "strength")

    def __init__(
        self,
        cid: int,
        score: float,
        given: tuple[Evidence, ...] | Callable[[int], tuple[Evidence, ...]] = (),
        strength: float | None = None,
        worth: float | None = None,
    ) -> None:
        self.cid, self.score = cid, score
        self.strength = score if strength is None else strength
        self._given, self._worth = given, worth
        self._steps: Callable[[int], tuple[Step, ...]] | None = None

    def move(self, score: float, steps: Callable[[int], tuple[Step, ...]]) -> None:
        """Take another score, which the worth times the factors of these steps leads to."""
        self.score, self._steps = score, steps

    @property
    def steps(self) -> tuple[Step, ...]:
        """The steps from its worth to its score."""
        steps = self._steps(self.cid) if self._steps else ()
        worth = self.worth
        for step in steps:
            worth *= step.factor
        if self.score >= worth * _SAME:
            return steps
        reason = "scores do not rise from hit to hit" if steps else _LOWERED
        return (*steps, Step(name="order", factor=self.score / worth, reason=reason))

    @property
    def evidence(self) -> tuple[Evidence, ...]:
        """The evidence of every leg, made at the first call: a receipt asks five times."""
        given = self._given
        if not isinstance(given, tuple):
            self._given = given = given(self.cid)
        return given

    @property
    def worth(self) -> float:
        """The best support by any leg, 0 to 1."""
        if self._worth is None:
            self._worth = max([one.worth for one in self.evidence], default=0.0)
        return self._worth

    def of(self, leg: str) -> Evidence | None:
        """The evidence of one leg."""
        return next((one for one in self.evidence if one.leg == leg), None)


def in_new_order(
    ordered: Sequence[Candidate],
    rest: Sequence[Candidate],
    gains: Sequence[float],
    steps: Callable[[int], Sequence[Step]],
) -> list[Candidate]:
    """The candidates in an order that gains have made, each with its worth times its gain, and those behind them.

    The first keeps the score of its evidence, and no score rises. `steps` tells the gains of a candidate.
    """
    scale = 1 / gains[0]
    scores = falling([min(one.worth * gain * scale, 1.0) for one, gain in zip(ordered, gains, strict=True)])
    kept = Step(name="scale", factor=scale, reason="the first hit keeps the score of its evidence")

    def steps_of(cid: int) -> tuple[Step, ...]:
        return (*steps(cid), kept)

    for one, score in zip(ordered, scores, strict=True):
        one.move(score, steps_of)
    for one in rest:
        one.score = min(one.score, scores[-1])
    return [*ordered, *rest]


def alone(one: Evidence, rank: int) -> Evidence:
    """The evidence of a leg that was asked alone: its worth is all of the score."""
    return one._replace(rank=rank, normalised=one.worth, weight=1.0, share=one.worth)


@record()
class Found:
    """The candidates, best first, what the keyword leg said, which legs were asked, and how they were weighed.

    `total` counts what has at least the evidence `least`, `weaker` what else matches; exact or at least so many.
    `feedback` and `resources` tell the effect of steps on the way. `definitions` are the places of asked names in the
    texts of chunks that define them. `graph` tells what a walk on the graph did, or why there was none. `unsupported`
    have words enough for a hit, which meaning does not support.
    """

    candidates: list[Candidate]
    keyword: KeywordHits
    total: int
    weaker: int
    least: float
    is_all: bool
    strategy: str
    legs: tuple[str, ...] = ()
    weighing: Weighing | None = None
    feedback: str = ""
    is_exact: bool = True
    resources: str = ""
    definitions: Mapping[int, tuple[int, int]] = field(default_factory=dict)
    graph: Mapping[str, Any] = field(default_factory=dict)
    unsupported: frozenset[int] = frozenset()


_STEEPNESS = 1.3
_BEST_BY_WORDS, _BEYOND = 100, 0.01
"""Steepness by which words lose their say down the ranking, and the place from which they hardly have any. NDCG@10 of
the hybrid on the development sets SciFact, anthropic-codebase, cosqa, lihua-world, cranfield: .735 .740 .595 .829 .432;
with plain shares .733 .739 .605 .826 .431."""


def _steep_shares(hits: Hits) -> Hits:
    """Scores of words between 0 and 1, the best first; without any evidence all are 0."""
    best = max(hits[0][1], 0.0) if hits else 0.0
    if not best:
        return [(cid, 0.0) for cid, _ in hits]
    return [
        (cid, (score / best) ** _STEEPNESS * (1.0 if rank < _BEST_BY_WORDS else _BEYOND))
        for rank, (cid, score) in enumerate(hits)
    ]


class LegKind(NamedTuple):
    """A leg that plans may ask: its name, the modes that ask it, and its binding to an index.

    `bind` gives the leg for one query, or `None` where it cannot serve. `weight` counts in a fusion unless the plan has
    another one; alpha weighs the first two legs. `scale` brings strengths, best first, to 0 to 1.
    """

    name: str
    modes: Sequence[str]
    bind: BindLeg
    weight: float = 1.0
    scale: Callable[[Hits], Hits] = lambda hits: hits


def _vectors(legs: Retrievers, meaning: Meaning) -> Retriever | None:
    return VectorRetriever(legs.store, meaning) if meaning.spaces else None


def _variants(legs: Retrievers, meaning: Meaning) -> Retriever | None:
    return legs.variants(legs, meaning) if legs.variants is not None else None


# Retrieval asks the words itself, before all others: they say what fulfils a query, and which of its words there are.
LEGS: dict[str, LegKind] = {
    KEYWORD: LegKind(KEYWORD, ("hybrid", "keyword"), lambda legs, meaning: None, scale=_steep_shares),
    SEMANTIC: LegKind(SEMANTIC, ("hybrid", "semantic"), _vectors),
    EXACT: LegKind(EXACT, MODES, lambda legs, meaning: legs.matches, weight=_EXACT_WEIGHT),
    EXPANSION: LegKind(EXPANSION, MODES, _variants, weight=_EXPANSION_WEIGHT),
}


def bound_legs(legs: Retrievers, meaning: Meaning, plan: Plan) -> list[Retriever]:
    """The legs beside the keyword leg that can serve a query by this plan, in the order of the registry."""
    kinds = [kind for kind in LEGS.values() if plan.mode in kind.modes and plan.leg_weights.get(kind.name, 1.0)]
    bound = [kind.bind(legs, meaning) for kind in kinds]
    return [leg for leg in bound if leg is not None]


def check_legs(plan: Plan) -> None:
    """Raises InvalidValueError for a weight of a leg that is not there; alpha weighs words and meaning."""
    for name in plan.leg_weights:
        if name not in LEGS or name in (KEYWORD, SEMANTIC):
            others = [known for known in LEGS if known not in (KEYWORD, SEMANTIC)]
            hint = f"one of {', '.join(others)}" if others else "alpha weighs words and meaning"
            raise InvalidValueError(f"there is no leg {name!r} to weigh", hint=hint)
