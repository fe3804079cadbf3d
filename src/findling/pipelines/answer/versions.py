"""Versions: a superseded resource stands below its successor, and says so.

The store of a limited caller does not know a hidden successor or predecessor: the chain ends there.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from findling.domain.ports import ReadStore
from findling.domain.resources import Resource
from findling.domain.results import Step
from findling.pipelines.answer.rankings import Ranked

SUPERSEDED = 0.5
"""Factor for the score of a superseded resource: half as good as the same words that hold."""

BELOW = 0.95
"""Its largest share of the score of its successor, so that a chain keeps its order."""

_NO_CEILING = float("inf")

_LONGEST_CHAIN = 100
"""Links that are followed; a chain that is longer, or turns back on itself, is a fault in the data."""

_SHOWN = 10
"""Predecessors that a receipt names."""


def demote(ranked: Sequence[Ranked], replaced: Mapping[str, str]) -> list[Ranked]:
    """The ranking with everything superseded at half its score, and below what supersedes it.

    `replaced` names the successor of each resource that has one, see `replaced_by`.
    """
    best: dict[str, float] = {}
    for entry in ranked:
        best.setdefault(entry.stored.resource.rid, entry.score)
    heads = _heads(replaced)
    # The least score among what replaces a resource: it has to stay below all of them.
    ceilings: dict[str, float] = {}
    # From what holds today back to the oldest, so that each knows what became of its successor.
    for rid in heads:
        later = replaced[rid]
        ceilings[rid] = min(ceilings.get(later, _NO_CEILING), best.get(later, _NO_CEILING))
        if rid in best:
            best[rid] = min(best[rid] * SUPERSEDED, ceilings[rid] * BELOW)
    moved = []
    for entry in ranked:
        rid = entry.stored.resource.rid
        if rid in replaced and entry.score:
            score = min(entry.score * SUPERSEDED, best[rid])
            step = Step(name="superseded", factor=score / entry.score, reason=f"replaced by {heads[rid]}")
            entry = entry.moved(score, step)
        moved.append(entry)
    return sorted(moved, key=lambda entry: -entry.score)


def below_newer(scores: Mapping[str, float], newer: Mapping[str, Iterable[str]]) -> dict[str, float]:
    """The scores of resources that have to fall below those of newer ones, which say nearly the same.

    `newer` names these for each, the newest resource first.
    """
    settled = dict(scores)
    for rid, later in newer.items():
        settled[rid] = min([settled[rid], *(settled[one] * BELOW for one in later)])
    return {rid: score for rid, score in settled.items() if score < scores[rid]}


def _heads(replaced: Mapping[str, str]) -> dict[str, str]:
    """The resource that holds today in place of each, successors first; in a circle any of it."""
    heads: dict[str, str] = {}
    for start in replaced:
        chain: dict[str, None] = {}
        rid = start
        while rid in replaced and rid not in heads and rid not in chain:
            chain[rid] = None
            rid = replaced[rid]
        head = heads.get(rid, rid)
        heads |= dict.fromkeys(reversed(chain), head)
    return heads


def replaced_by(store: ReadStore, rids: Iterable[str]) -> dict[str, str]:
    """The successors of some resources, and theirs."""
    known: dict[str, str] = {}
    frontier = set(rids)
    for _ in range(_LONGEST_CHAIN):
        found = store.successors(frontier)
        known |= found
        frontier = set(found.values()) - known.keys()
        if not frontier:
            break
    return known


def successors(rid: str, replaced: Mapping[str, str]) -> tuple[str, ...]:
    """The successors of a resource, nearest first, to the one that holds today."""
    chain: dict[str, None] = {}
    while (later := replaced.get(rid)) is not None and later not in chain and len(chain) < _LONGEST_CHAIN:
        chain[later] = None
        rid = later
    return tuple(chain)


def predecessors(store: ReadStore, resource: Resource) -> tuple[str, ...]:
    """The predecessors of a resource, nearest first."""
    chain: list[str] = []
    earlier = resource.fields.get("supersedes", "")
    while earlier and earlier not in chain and len(chain) < _SHOWN:
        document = store.document(earlier)
        if document is None:
            break
        chain.append(earlier)
        earlier = document.resource.fields.get("supersedes", "")
    return tuple(chain)
