"""Relaxing: the answer goes on without a demand that nothing fulfils, in a part of its own that says so."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from findling.domain.queries import All
from findling.pipelines.retrieve.query_planner import Question
from findling.text.query.query_mode import demands, relaxed
from findling.text.query.tree import canonical, positive_terms

if TYPE_CHECKING:
    from findling.pipelines.answer.search import Legs, Ranking

__all__ = ["Relaxed", "relax"]


class Relaxed(NamedTuple):
    """What a question finds without its demands, and a sentence that says what was dropped."""

    ranking: Ranking
    note: str


def relax(legs: Legs, question: Question, exclude: re.Pattern[str] | None) -> Relaxed | None:
    """The ranking of a question that nothing answers, without what it demands of the text.

    Exclusions, conditions and filters hold. `None` when nothing was demanded, when the plan keeps to what is demanded,
    and when nothing is found even so.
    """
    from findling.pipelines.answer.search import rank

    node = relaxed(question.node)
    if node is None or not question.plan.relax or question.plan.words == "all":
        return None
    dropped = canonical(All(demands(question.node)))
    looser = question._replace(
        tree=node,
        node=node,
        asked=positive_terms(node),
        reading="ranked",
        because=f"nothing has {dropped}, so its words rank",
    )
    ranking = rank(legs, looser, exclude)
    if not ranking.page:
        return None
    return Relaxed(ranking, f"nothing has {dropped}; what is relaxed below does without that demand")
