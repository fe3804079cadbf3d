"""Paths in a graph of passages and the things they name: from one passage to another by a thing that both name.

    Marie Curie  →  Radium Institute  →  Paris

Strengths lie between 0 and 1: a rare thing connects more than a common one, a title more than a mention. A path is as
strong as the product of its parts. Everything is a pure function of what a caller sees.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from math import log, log1p
from typing import NamedTuple

_DIGITS = 9
"""Digits that count where strengths are compared: products in another order differ in the last ones."""

_SHOWN = 4

_Reached = tuple[float, int, int]
"""The strength at a passage, the passage before it, and the thing between them."""


class MentionGraph(NamedTuple):
    """For each passage the strengths of its things, and for each thing the passages that name it."""

    things: Sequence[Mapping[int, float]]
    passages: Sequence[Sequence[int]]


def mention_graph(
    size: int, links: Iterable[tuple[int, int, float]], spreads: Sequence[int], total: int
) -> MentionGraph:
    """The graph of links, each a passage, a thing and the share of the largest weight that its mention has.

    `spreads` are the resources that name each thing, of a `total` of them.
    """
    rarest = log1p(max(total, 1))
    rarity = [log1p(total / max(spread, 1)) / rarest for spread in spreads]
    things: list[dict[int, float]] = [{} for _ in range(size)]
    passages: list[list[int]] = [[] for _ in spreads]
    for passage, thing, weight in links:
        things[passage][thing] = weight * rarity[thing]
        passages[thing].append(passage)
    return MentionGraph(things, passages)


class PassagePath(NamedTuple):
    """Passages in a row, the things that connect each with the next, and the strength of all of it."""

    passages: tuple[int, ...]
    things: tuple[int, ...]
    score: float


def best_path(
    graph: MentionGraph,
    starts: Mapping[int, float],
    ends: Mapping[int, float],
    *,
    hops: int,
    without: Collection[int] = (),
) -> PassagePath | None:
    """The strongest of the shortest paths from one of the starts to one of the ends, each given with its strength.

    It has at most as many passages as `hops`, and goes by none of the things that it is to do `without`.
    """
    reached: dict[int, _Reached] = {one: (score, -1, -1) for one, score in starts.items()}
    layer = dict(starts)
    for _ in range(hops):
        arrived = {one: score * ends[one] for one, score in layer.items() if one in ends}
        if arrived:
            last = _strongest(arrived)
            return _traced(reached, last, arrived[last])
        layer = _next_layer(graph, layer, reached, without)
        if not layer:
            return None
    return None


def nearest_things(
    graph: MentionGraph, starts: Mapping[int, float], *, without: Collection[int] = ()
) -> dict[int, tuple[float, int]]:
    """The things that the starts name, with the strength of all mentions together and the passage of the best one."""
    found: dict[int, tuple[float, float, int]] = {}
    for passage in sorted(starts):
        for thing, strength in graph.things[passage].items():
            if thing in without:
                continue
            sent = starts[passage] * strength
            kept, best, place = found.get(thing, (1.0, 0.0, -1))
            is_better = _height(sent) > _height(best)
            found[thing] = kept * (1 - sent), *((sent, passage) if is_better else (best, place))
    scores = {thing: (round(1 - kept, _SHOWN), place) for thing, (kept, _, place) in found.items()}
    return dict(sorted(scores.items(), key=lambda one: (-one[1][0], one[0])))


def nearest_passages(
    graph: MentionGraph, starts: Mapping[int, float], group_of: Callable[[int], int]
) -> list[tuple[int, float, list[int]]]:
    """The best passage of each other group that shares things with the starts, its strength and these things."""
    senders = _by_thing(graph, starts, ())
    shared: dict[int, dict[int, float]] = {}
    own = {group_of(passage) for passage in starts}
    for thing, (score, _) in senders.items():
        for passage in graph.passages[thing]:
            if group_of(passage) not in own:
                shared.setdefault(passage, {})[thing] = score * graph.things[passage][thing]
    scored = []
    for passage, things in shared.items():
        kept = 1.0
        for thing in sorted(things):
            kept *= 1 - things[thing]
        order = sorted(things, key=lambda thing: (-_height(things[thing]), thing))
        scored.append((passage, round(1 - kept, _SHOWN), order))
    best: dict[int, tuple[int, float, list[int]]] = {}
    for one in sorted(scored, key=lambda one: (-one[1], one[0])):
        best.setdefault(group_of(one[0]), one)
    return list(best.values())


def _next_layer(
    graph: MentionGraph, layer: Mapping[int, float], reached: dict[int, _Reached], without: Collection[int]
) -> dict[int, float]:
    """The passages that a layer leads to and that were not reached before; how is noted in `reached`."""
    following: dict[int, float] = {}
    for thing, (score, sender) in _by_thing(graph, layer, without).items():
        for passage in graph.passages[thing]:
            if passage in reached and passage not in following:
                continue
            onward = score * graph.things[passage][thing]
            # Of equal ones the first thing stays.
            if passage not in following or _height(onward) > _height(following[passage]):
                following[passage] = onward
                reached[passage] = onward, sender, thing
    return following


def _by_thing(
    graph: MentionGraph, layer: Mapping[int, float], without: Collection[int]
) -> dict[int, tuple[float, int]]:
    """For each thing of a layer, its strength there and the passage that sends it on."""
    senders: dict[int, tuple[float, int]] = {}
    for passage in sorted(layer):
        for thing, strength in graph.things[passage].items():
            if thing in without:
                continue
            sent = layer[passage] * strength
            if thing not in senders or _height(sent) > _height(senders[thing][0]):
                senders[thing] = sent, passage
    return dict(sorted(senders.items()))


def _height(strength: float) -> float:
    """A strength as it is compared: four steps may leave one in a billion of it."""
    return round(log(strength), _DIGITS) if strength > 0 else -1e9


def _strongest(scores: Mapping[int, float]) -> int:
    return min(scores, key=lambda one: (-_height(scores[one]), one))


def _traced(reached: Mapping[int, _Reached], last: int, score: float) -> PassagePath:
    passages, things = [last], list[int]()
    while reached[passages[-1]][1] >= 0:
        _, sender, thing = reached[passages[-1]]
        passages.append(sender)
        things.append(thing)
    return PassagePath(tuple(reversed(passages)), tuple(reversed(things)), float(f"{score:.4g}"))
