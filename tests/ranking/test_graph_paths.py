"""Paths over passages and the things they name: the shortest, of these the strongest, and none that is not there."""

from __future__ import annotations

import random
from itertools import pairwise, permutations

import pytest

from findling.ranking.graph_paths import MentionGraph, best_path, mention_graph, nearest_passages, nearest_things

LINKS = [
    # passage, thing, weight: 0 and 1 share thing 0, 1 and 2 share thing 1, 0 and 3 share thing 2, 3 and 2 share thing 3
    (0, 0, 1.0),
    (1, 0, 1.0),
    (1, 1, 1.0),
    (2, 1, 1.0),
    (0, 2, 0.4),
    (3, 2, 1.0),
    (3, 3, 1.0),
    (2, 3, 1.0),
]


def graph(total: int = 10) -> MentionGraph:
    return mention_graph(4, LINKS, [2, 2, 2, 2], total)


def test_the_strongest_of_the_shortest_is_taken() -> None:
    found = best_path(graph(), {0: 1.0}, {2: 1.0}, hops=4)
    assert found is not None
    assert (found.passages, found.things) == ((0, 1, 2), (0, 1))
    other = best_path(graph(), {0: 1.0}, {2: 1.0}, hops=4, without={0})
    assert other is not None
    assert (other.passages, other.things) == ((0, 3, 2), (2, 3))
    assert 0 < other.score < found.score < 1
    assert best_path(graph(), {0: 1.0}, {2: 1.0}, hops=4, without={0, 2}) is None


def test_hops_bound_the_passages() -> None:
    assert best_path(graph(), {0: 1.0}, {2: 1.0}, hops=2) is None
    direct = best_path(graph(), {0: 1.0, 2: 0.5}, {2: 1.0}, hops=1)
    assert direct is not None
    assert (direct.passages, direct.things, direct.score) == ((2,), (), 0.5)
    assert best_path(graph(), {}, {2: 1.0}, hops=4) is None


def test_a_rare_thing_connects_more_than_a_common_one() -> None:
    links = [(0, 0, 1.0), (1, 0, 1.0), (0, 1, 1.0), (1, 1, 1.0)]
    found = best_path(mention_graph(2, links, [9, 2], 10), {0: 1.0}, {1: 1.0}, hops=2)
    assert found is not None
    assert found.things == (1,)


def test_things_and_passages_around_come_strongest_first() -> None:
    around = nearest_things(graph(), {0: 1.0, 1: 1.0})
    assert list(around) == [0, 1, 2]
    assert around[2][1] == 0
    assert nearest_things(graph(), {0: 1.0}, without={0}).keys() == {2}
    near = nearest_passages(graph(), {0: 1.0}, lambda passage: passage)
    assert [(passage, things) for passage, _, things in near] == [(1, [0]), (3, [2])]
    # Of one group the best passage alone, and none of the starts' own.
    assert [one[0] for one in nearest_passages(graph(), {0: 1.0}, lambda passage: passage % 2)] == [1]
    assert nearest_passages(graph(), {0: 1.0}, lambda passage: 0) == []


@pytest.mark.parametrize("seed", range(30))
def test_it_agrees_with_all_paths_tried_one_by_one(seed: int) -> None:
    chance = random.Random(seed)
    size, things = 6, 5
    links = [
        (passage, thing, chance.choice([0.3, 0.6, 1.0]))
        for passage in range(size)
        for thing in range(things)
        if chance.random() < 0.35
    ]
    spreads = [max(1, sum(thing == one for _, one, _ in links)) for thing in range(things)]
    made = mention_graph(size, links, spreads, 12)
    starts, ends = {0: 1.0, 1: 0.5}, {4: 1.0, 5: 0.7}
    found = best_path(made, starts, ends, hops=4)
    every = {}
    for count in range(1, 5):
        for row in permutations(range(size), count):
            if row[0] in starts and row[-1] in ends:
                score = starts[row[0]] * ends[row[-1]]
                for one, other in pairwise(row):
                    shared = made.things[one].keys() & made.things[other].keys()
                    score *= max((made.things[one][x] * made.things[other][x] for x in shared), default=0.0)
                if score > 0:
                    every[row] = score
    if found is None:
        assert not every
    else:
        shortest = [score for row, score in every.items() if len(row) == min(map(len, every))]
        assert found.score == pytest.approx(max(shortest), rel=1e-3)
