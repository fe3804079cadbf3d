"""What replaces what: a superseded resource stands below its successor, and says so."""

from __future__ import annotations

from collections.abc import Sequence

from findling.domain.ports import TruthStore
from findling.domain.resources import Resource
from findling.domain.results import Step
from findling.pipelines.assembling import Ranked

__all__ = ["demote", "predecessors", "successors"]

_SUPERSEDED = 0.5
"""What is left of the score of something that no longer holds: half as good as the same words that do."""

_LONGEST_CHAIN = 100
"""Links that are followed; a chain that is longer, or turns back on itself, is a fault in the data."""


def demote(ranked: Sequence[Ranked], store: TruthStore) -> list[Ranked]:
    """The ranking with everything superseded at half its score, and below what supersedes it."""
    rids = {entry.stored.resource.rid for entry in ranked}
    replaced = store.successors(rids)
    if not replaced:
        return list(ranked)
    best: dict[str, float] = {}
    for entry in ranked:
        best.setdefault(entry.stored.resource.rid, entry.score)
    moved = []
    for entry in ranked:
        rid = entry.stored.resource.rid
        if rid not in replaced or not entry.score:
            moved.append(entry)
            continue
        chain = successors(store, rid)
        # Halved once for each link, so that the chain keeps its order.
        most = min([best[later] for later in chain if later in best], default=entry.score)
        score = min(entry.score, most) * _SUPERSEDED ** len(chain)
        step = Step(name="superseded", factor=score / entry.score, reason=f"replaced by {chain[-1]}")
        moved.append(entry._replace(score=score, steps=(*entry.steps, step)))
    return sorted(moved, key=lambda entry: -entry.score)


def successors(store: TruthStore, rid: str) -> tuple[str, ...]:
    """What replaces a resource, what replaces that, and so on to what holds today."""
    chain: list[str] = []
    while len(chain) < _LONGEST_CHAIN:
        later = store.successors([rid]).get(rid)
        if later is None or later in chain:
            break
        chain.append(later)
        rid = later
    return tuple(chain)


def predecessors(store: TruthStore, resource: Resource) -> tuple[str, ...]:
    """What a resource replaces, what that replaces, and so on."""
    chain: list[str] = []
    earlier = resource.fields.get("supersedes", "")
    while earlier and earlier not in chain and len(chain) < _LONGEST_CHAIN:
        chain.append(earlier)
        document = store.document(earlier)
        earlier = document.resource.fields.get("supersedes", "") if document else ""
    return tuple(chain)
