"""Walks on a graph of passages and the things they name: the passage that answers a question by way of another one.

    Who is the spouse of the director of Jump for Glory?    →  Jump for Glory  →  Raoul Walsh  →  Betrayed (1917 film)

The graph is bipartite and small: what lies around the names of a question and the best hits by words and meaning. A
walk begins there and spreads for a few rounds. Everything is a pure function of arrays that hold what a caller sees.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from findling.domain.values import counted

if TYPE_CHECKING:
    from typing import TypeAlias

    from numpy import bool_, float64, int64
    from numpy.typing import NDArray

    Floats: TypeAlias = NDArray[float64]
    Numbers: TypeAlias = NDArray[int64]
    Flags: TypeAlias = NDArray[bool_]

Item = TypeVar("Item", bound=Hashable)


class Subgraph(NamedTuple):
    """Passages and the entities that they mention, as compressed rows; all numbers are places in this graph.

    Row `p` is `entities[indptr[p]:indptr[p + 1]]`, with the weights of the mentions. `is_title` marks those where the
    entity is the title of the passage's resource. `counts` are the visible resources that mention an entity and
    `title_counts` those that have it as a title, in the whole graph in sight. `resources` is the number in sight.
    """

    indptr: Numbers
    entities: Numbers
    weights: Floats
    is_title: Flags
    counts: Numbers
    title_counts: Numbers
    resources: int


class Walked(NamedTuple):
    """Scores of passages and entities after a walk; those that it does not reach have 0."""

    passages: Floats
    entities: Floats


ROUNDS = 3
"""Rounds from passages to entities and back: more than two hops bring nothing, see docs/internals.md."""

DAMPING = 0.85
_SEED_HITS = 5
_HIT_SHARE, _HIT_DECAY, _NAME_SHARE = 0.1, 0.6, 0.25
_LEAST_HUB, _HUB_SHARE = 20, 0.02
_DIGITS = 12


def is_hub(count: int, resources: int) -> bool:
    """Whether so many resources mention an entity that it connects nothing."""
    return count > max(_LEAST_HUB, _HUB_SHARE * resources)


def seeds(graph: Subgraph, asked: Sequence[int], hits: Sequence[int]) -> tuple[Floats, Floats]:
    """Begin of a walk: the passages of the best hits by their rank, and the entities that a question names.

    A rare name counts more than a common one, and a title four times as much as another name. All hits together weigh
    a quarter of the names.
    """
    import numpy as np

    passages, entities = np.zeros(len(graph.indptr) - 1), np.zeros(len(graph.counts))
    rarity = _rarity(graph)
    for entity in asked:
        entities[entity] = rarity[entity] * (1.0 if _is_telling_title(graph, entity) else _NAME_SHARE)
    whole = entities.sum() or 1.0
    for rank, passage in enumerate(hits[:_SEED_HITS]):
        passages[passage] += _HIT_SHARE * whole * _HIT_DECAY**rank
    return passages, entities


def walk(graph: Subgraph, passage_seeds: Floats, entity_seeds: Floats) -> Walked:
    """Personalised PageRank: seeds spread over mentions, each round less.

    A passage passes its score on to entities that others mention, too, and no hubs. An entity passes it on to all its
    passages by weight.
    """
    import numpy as np

    rows, columns = _rows(graph), graph.entities
    size, names = len(graph.indptr) - 1, len(graph.counts)
    total = float(passage_seeds.sum() + entity_seeds.sum())
    if total <= 0 or not len(columns):
        return Walked(passage_seeds.astype(np.float64), entity_seeds.astype(np.float64))
    strengths = _strengths(graph)
    outward = _shares(np.where(graph.counts[columns] > 1, strengths, 0.0), rows, size)
    inward = _shares(strengths, columns, names)
    start, named = passage_seeds / total, entity_seeds / total
    passages, entities = start, named
    for _ in range(ROUNDS):
        entities = named + DAMPING * np.bincount(columns, outward * passages[rows], names)
        passages = start + DAMPING * np.bincount(rows, inward * entities[columns], size)
    return Walked(passages, entities)


def ranked(scores: Floats, keys: Sequence[int]) -> list[int]:
    """The places of all positive scores, best first; of equal ones the smaller key comes first.

    Sums in another order differ in their last digits, so these do not count.
    """
    import numpy as np

    order = np.lexsort((np.asarray(keys), -np.round(scores, _DIGITS)))
    return [int(place) for place in order if scores[place] > 0]


class WalkPath(NamedTuple):
    """The strongest way to a hit: entities in order, the last one is mentioned by the hit itself.

    `through` is the passage that connects the last two of them or, where there is one entity that the question does
    not name, the hit that the walk began at; -1 where the question names the only entity.
    """

    entities: tuple[int, ...]
    through: int


def walk_path(graph: Subgraph, walked: Walked, asked: Iterable[int], passage: int) -> WalkPath | None:
    """The way by which most of a passage's score came, or None where the walk did not come by an entity."""
    import numpy as np

    named = set(asked)
    own = graph.entities[graph.indptr[passage] : graph.indptr[passage + 1]]
    strengths = _strengths(graph)
    through_own = walked.entities[own] * strengths[graph.indptr[passage] : graph.indptr[passage + 1]]
    if not len(own) or through_own.max() <= 0:
        return None
    last = int(own[int(np.argmax(np.round(through_own, _DIGITS)))])
    if last in named:
        return WalkPath((last,), -1)
    rows = _rows(graph)
    there = np.flatnonzero((graph.entities == last) & (rows != passage))
    sending = walked.passages[rows[there]] * strengths[there]
    if not len(there) or sending.max() <= 0:
        return None
    between = int(rows[there[int(np.argmax(np.round(sending, _DIGITS)))]])
    places = range(int(graph.indptr[between]), int(graph.indptr[between + 1]))
    first = max(
        (place for place in places if int(graph.entities[place]) in named),
        key=lambda place: (round(float(strengths[place]), _DIGITS), -place),
        default=None,
    )
    return WalkPath((last,) if first is None else (int(graph.entities[first]), last), between)


def communities(graph: Subgraph, rounds: int = 10) -> tuple[Numbers, Numbers]:
    """Labels of passages and entities by propagation: each takes the heaviest label of its neighbours.

    A label is the smallest entity that began with it; of equal weights the smaller label stays. Hubs and entities of a
    single resource spread nothing. A passage without a neighbour has -1.
    """
    import numpy as np

    rows, columns = _rows(graph), graph.entities
    size, names = len(graph.indptr) - 1, len(graph.counts)
    weights = np.where(graph.counts[columns] > 1, _strengths(graph), 0.0)
    labels = np.arange(names)
    passages = np.full(size, -1)
    for _ in range(rounds):
        passages = _heaviest(rows, labels[columns], weights, passages)
        known = passages[rows] >= 0
        after = _heaviest(columns[known], passages[rows][known], weights[known], labels)
        if np.array_equal(after, labels):
            break
        labels = after
    return passages, labels


def join_lonely(graph: Subgraph, passages: Numbers, resources: Numbers) -> tuple[Numbers, Numbers]:
    """Labels in which communities of a single resource have joined the heaviest one that they share an entity with.

    `resources` are those of the passages. An entity that no community of two resources mentions has -1.
    """
    import numpy as np

    rows, columns = _rows(graph), graph.entities
    weights = np.where(graph.counts[columns] > 1, _strengths(graph), 0.0)
    size = int(resources.max(initial=0)) + 1
    labels, spread = np.unique(np.unique(passages * size + resources) // size, return_counts=True)
    is_lonely = np.isin(passages, labels[(spread < 2) & (labels >= 0)])
    kept = (passages[rows] >= 0) & ~is_lonely[rows]
    entities = _heaviest(columns[kept], passages[rows][kept], weights[kept], np.full(len(graph.counts), -1))
    known = entities[columns] >= 0
    joined = _heaviest(rows[known], entities[columns][known], weights[known], passages)
    return np.where(is_lonely, joined, passages), entities


def own_strengths(graph: Subgraph, passages: Numbers, entities: Numbers) -> Floats:
    """For each mention its strength, if passage and entity have the same label; else 0."""
    import numpy as np

    own = (passages[_rows(graph)] == entities[graph.entities]) & (entities[graph.entities] >= 0)
    return np.where(own & (graph.counts[graph.entities] > 1), _strengths(graph), 0.0)


def in_slots(base: Sequence[Item], walked: Iterable[Item], *, keep: int = 2) -> list[tuple[Item, bool]]:
    """One ranking of two: the best `keep` of the base, then one of the walk and one of the base by turns.

    Nothing comes twice, and nothing of the base is lost. The flag says that an item has the place of the walk.
    """
    merged = [(item, False) for item in dict.fromkeys(base[:keep])]
    seen = {item for item, _ in merged}
    rest, found = iter(base[keep:]), iter(walked)
    sources = ((found, True), (rest, False))
    turn, empty = 0, 0
    while empty < 2:
        source, is_walked = sources[turn % 2]
        item = next((item for item in source if item not in seen), None)
        empty = empty + 1 if item is None else 0
        if item is not None:
            seen.add(item)
            merged.append((item, is_walked))
        turn += 1
    return merged


class GateFacts(NamedTuple):
    """Facts that tell whether a question leads from one passage to another.

    `named` counts the names of a question that are titles of one resource or two. `bridges` counts those of the best
    two hits that mention such a title, which the question does not name; without a known name there are none.
    """

    named: int
    bridges: int


class GraphGate(NamedTuple):
    """Whether the walk may take slots, and the reason."""

    is_open: bool
    reason: str


_FEW_TITLES = 2
"""Resources with one title: three of them are parts of something, and their title tells none of them."""

_BRIDGING_HITS = 2


def gate_facts(graph: Subgraph, asked: Sequence[int], hits: Sequence[int]) -> GateFacts:
    """Count names and bridges; `hits` are the passages of the base, best first."""
    named = set(asked)
    bridges = 0
    for passage in hits[:_BRIDGING_HITS] if named else ():
        places = range(int(graph.indptr[passage]), int(graph.indptr[passage + 1]))
        own = {int(graph.entities[place]) for place in places if graph.is_title[place]}
        mentioned = {int(graph.entities[place]) for place in places} - own - named
        bridges += any(_is_telling_title(graph, entity) for entity in mentioned)
    return GateFacts(sum(_is_telling_title(graph, entity) for entity in named), bridges)


def _is_telling_title(graph: Subgraph, entity: int) -> bool:
    few = 0 < int(graph.title_counts[entity]) <= _FEW_TITLES
    return few and not is_hub(int(graph.counts[entity]), graph.resources)


def gate(facts: GateFacts) -> GraphGate:
    """Open where a question names what a document is about, or a best hit names what another document is about.

    Collections whose titles are sentences, times or missing never open it; see docs/internals.md for the figures.
    """
    reasons = []
    if facts.named:
        reasons.append(f"the question names {counted(facts.named, 'title')}")
    if facts.bridges:
        reasons.append(f"{facts.bridges} of the best {_BRIDGING_HITS} hits name another document")
    if reasons:
        return GraphGate(True, " and ".join(reasons))
    return GraphGate(False, "neither the question nor a best hit names another document")


def _rows(graph: Subgraph) -> Numbers:
    """The passage of each mention."""
    import numpy as np

    return np.repeat(np.arange(len(graph.indptr) - 1), np.diff(graph.indptr))


def _rarity(graph: Subgraph) -> Floats:
    """Weight of each entity: the fewer visible resources mention it, the more."""
    import numpy as np

    rarity: Floats = np.log1p(graph.resources / np.maximum(graph.counts, 1))
    return rarity


def _strengths(graph: Subgraph) -> Floats:
    """Weight of each mention times the rarity of its entity; 0 for hubs."""
    import numpy as np

    hubs = graph.counts > max(_LEAST_HUB, _HUB_SHARE * graph.resources)
    return np.where(hubs[graph.entities], 0.0, graph.weights * _rarity(graph)[graph.entities])


def _shares(weights: Floats, groups: Numbers, size: int) -> Floats:
    """Each weight as a share of the sum of its group; 0 in a group without weight."""
    import numpy as np

    sums = np.bincount(groups, weights, size)[groups]
    return np.divide(weights, sums, out=np.zeros_like(weights), where=sums > 0)


def _heaviest(groups: Numbers, labels: Numbers, weights: Floats, before: Numbers) -> Numbers:
    """For each group the label with the largest sum of weights; groups without weight keep theirs."""
    import numpy as np

    used = weights > 0
    groups, labels, weights = groups[used], labels[used], weights[used]
    after = before.copy()
    if not len(groups):
        return after
    order = np.lexsort((labels, groups))
    groups, labels, weights = groups[order], labels[order], weights[order]
    starts = np.flatnonzero(np.r_[True, (np.diff(groups) != 0) | (np.diff(labels) != 0)])
    sums = np.round(np.add.reduceat(weights, starts), _DIGITS)
    best = np.lexsort((labels[starts], -sums, groups[starts]))
    firsts = best[np.r_[True, np.diff(groups[starts][best]) != 0]]
    after[groups[starts][firsts]] = labels[starts][firsts]
    return after
