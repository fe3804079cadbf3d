"""Relaxation: a query that nothing fulfils is asked again without its demands, and the answer says so."""

from __future__ import annotations

from typing import NamedTuple

from findling.domain.queries import All
from findling.pipelines.retrieve.query_planner import AnalyzedQuery
from findling.text.query.query_mode import demands, relaxed
from findling.text.query.tree import canonical, positive_terms

__all__ = ["Relaxed", "relax"]


class Relaxed(NamedTuple):
    """A query without its demands, and a sentence that says what was dropped."""

    query: AnalyzedQuery
    note: str


def relax(question: AnalyzedQuery) -> Relaxed | None:
    """The query without what it demands of the text; exclusions, conditions and filters hold.

    `None` when nothing was demanded, and when the plan keeps to what is demanded.
    """
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
    return Relaxed(looser, f"nothing has {dropped}; what is relaxed below does without that demand")
