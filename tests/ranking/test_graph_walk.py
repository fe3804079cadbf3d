"""Walks on small graphs: the passage behind another one is found, and nothing depends on how the graph is numbered."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from findling.ranking.graph_walk import (
    GateFacts,
    Subgraph,
    communities,
    gate,
    gate_facts,
    in_slots,
    is_hub,
    join_lonely,
    own_strengths,
    ranked,
    seeds,
    walk,
    walk_path,
)
from tests.counts import tries

no_deadline = settings(deadline=None, max_examples=tries(80, short=25))

Rows = Sequence[Sequence[tuple[int, float, bool]]]


def graph_of(rows: Rows, names: int, resources: int | None = None) -> Subgraph:
    """A graph in which every passage is a resource of its own."""
    counts, titles = np.zeros(names, np.int64), np.zeros(names, np.int64)
    for row in rows:
        for entity, _, is_title in row:
            counts[entity] += 1
            titles[entity] += is_title
    edges = [edge for row in rows for edge in row]
    return Subgraph(
        np.cumsum([0, *map(len, rows)]).astype(np.int64),
        np.array([edge[0] for edge in edges], np.int64),
        np.array([edge[1] for edge in edges], np.float64),
        np.array([edge[2] for edge in edges], bool),
        counts,
        titles,
        len(rows) if resources is None else resources,
    )


FILM, WALSH, PARIS, OTHER = range(4)
CHAIN = graph_of(
    [
        [(FILM, 3.0, True), (WALSH, 1.0, False)],  # 0: Jump for Glory, directed by Raoul Walsh
        [(WALSH, 1.7, False), (PARIS, 1.0, False)],  # 1: a passage about Walsh's wife
        [(PARIS, 1.0, False), (OTHER, 3.0, True)],  # 2: another one that only shares Paris
        [(OTHER, 1.0, False)],  # 3: farther away
    ],
    4,
)


def test_a_walk_finds_the_passage_behind_the_one_that_is_named() -> None:
    walked = walk(CHAIN, *seeds(CHAIN, [FILM], [0]))
    assert ranked(walked.passages, range(4)) == [0, 1, 2, 3]
    path = walk_path(CHAIN, walked, [FILM], 1)
    assert path is not None
    assert path.entities == (FILM, WALSH)
    assert path.through == 0
    direct = walk_path(CHAIN, walked, [FILM], 0)
    assert direct is not None
    assert direct.entities[0] == FILM


def test_a_hit_alone_is_a_seed() -> None:
    walked = walk(CHAIN, *seeds(CHAIN, [], [0]))
    assert ranked(walked.passages, range(4))[:2] == [0, 1]
    path = walk_path(CHAIN, walked, [], 1)
    assert path is not None
    assert path == ((WALSH,), 0)


def test_a_better_hit_weighs_more_and_the_next_ones_weigh_something() -> None:
    passages, _ = seeds(CHAIN, [FILM], [2, 0, 3])
    assert passages[2] > passages[0] > passages[3] > 0
    assert passages[1] == 0


def test_a_title_in_a_question_weighs_more_than_another_name() -> None:
    _, entities = seeds(CHAIN, [FILM, PARIS], [])
    assert entities[FILM] > 2 * entities[PARIS] > 0


def test_hubs_connect_nothing() -> None:
    rows = [[(0, 3.0, True), (1, 1.0, False)], *([[(1, 1.0, False)]] * 30)]
    walked = walk(graph_of(rows, 2), *seeds(graph_of(rows, 2), [0], [0]))
    assert ranked(walked.passages, range(31)) == [0]
    assert is_hub(21, 100)
    assert not is_hub(21, 10_000)


def test_empty_and_single_graphs_have_finite_scores() -> None:
    for rows, names in (([], 0), ([[]], 0), ([[(0, 1.0, False)]], 1), ([[(0, 0.0, True)], [(0, 0.0, False)]], 1)):
        graph = graph_of(rows, names)
        asked, hits = list(range(names)), list(range(len(rows)))
        for start in (seeds(graph, asked, hits), seeds(graph, [], []), seeds(graph, [], hits)):
            walked = walk(graph, *start)
            assert np.isfinite(walked.passages).all()
            assert np.isfinite(walked.entities).all()
            for passage in hits:
                walk_path(graph, walked, asked, passage)
        assert gate_facts(graph, asked, hits).bridges == 0
        passages, entities = communities(graph)
        assert len(passages) == len(rows)
        assert len(entities) == names


@st.composite
def graphs(draw: st.DrawFn) -> tuple[list[list[tuple[int, float, bool]]], int, list[int], list[int]]:
    names = draw(st.integers(1, 8))
    edge = st.tuples(st.integers(0, names - 1), st.sampled_from([0.3, 1.0, 1.7, 3.0]), st.booleans())
    rows = draw(st.lists(st.lists(edge, max_size=5, unique_by=lambda one: one[0]), min_size=1, max_size=12))
    asked = draw(st.lists(st.integers(0, names - 1), unique=True, max_size=3))
    hits = draw(st.lists(st.integers(0, len(rows) - 1), unique=True, max_size=6))
    return rows, names, asked, hits


@no_deadline
@given(graphs(), st.randoms(use_true_random=False))
def test_the_order_does_not_depend_on_numbers(
    given_graph: tuple[Rows, int, list[int], list[int]], random: object
) -> None:
    rows, names, asked, hits = given_graph
    graph = graph_of(rows, names)
    before = ranked(walk(graph, *seeds(graph, asked, hits)).passages, range(len(rows)))
    places, labels = list(range(len(rows))), list(range(names))
    random.shuffle(places)  # type: ignore[attr-defined]
    random.shuffle(labels)  # type: ignore[attr-defined]
    moved = graph_of([[(labels[e], w, t) for e, w, t in reversed(rows[place])] for place in places], names)
    where = {place: at for at, place in enumerate(places)}
    start = seeds(moved, [labels[entity] for entity in asked], [where[hit] for hit in hits])
    after = ranked(walk(moved, *start).passages, places)
    assert [places[at] for at in after] == before
    facts = gate_facts(moved, [labels[entity] for entity in asked], [where[hit] for hit in hits])
    assert facts == gate_facts(graph, asked, hits)


@no_deadline
@given(graphs())
def test_scores_are_finite_and_bounded(given_graph: tuple[Rows, int, list[int], list[int]]) -> None:
    rows, names, asked, hits = given_graph
    graph = graph_of(rows, names)
    walked = walk(graph, *seeds(graph, asked, hits))
    for scores in walked:
        assert np.isfinite(scores).all()
        assert (scores >= 0).all()
        assert scores.sum() <= 1 / (1 - 0.85) + 1 or not asked
    for passage in range(len(rows)):
        path = walk_path(graph, walked, asked, passage)
        if path is not None:
            assert path.entities[-1] in {edge[0] for edge in rows[passage]}
            assert path.through != passage


def test_slots_keep_the_best_and_alternate() -> None:
    assert in_slots("abcdef", "xbayc") == [
        ("a", False), ("b", False), ("x", True), ("c", False), ("y", True), ("d", False), ("e", False), ("f", False),
    ]  # fmt: skip
    assert in_slots("", "xy") == [("x", True), ("y", True)]
    assert in_slots("ab", "") == [("a", False), ("b", False)]
    assert in_slots("abc", "x", keep=0)[0] == ("x", True)


@no_deadline
@given(st.lists(st.integers(0, 20)), st.lists(st.integers(0, 20)), st.integers(0, 4))
def test_slots_lose_nothing_and_repeat_nothing(base: list[int], walked: list[int], keep: int) -> None:
    merged = [item for item, _ in in_slots(base, walked, keep=keep)]
    assert len(merged) == len(set(merged))
    assert set(merged) == set(base) | set(walked)
    own = [item for item, is_walked in in_slots(base, walked, keep=keep) if not is_walked]
    assert own == [item for item in dict.fromkeys(base) if item in own]


def test_the_gate_opens_for_names_and_bridges_only() -> None:
    assert gate_facts(CHAIN, [FILM], [0, 1]) == GateFacts(named=1, bridges=0)
    assert gate_facts(CHAIN, [WALSH], [3, 0]) == GateFacts(named=0, bridges=1)
    assert gate_facts(CHAIN, [], [3, 0]) == GateFacts(named=0, bridges=0)
    assert gate_facts(CHAIN, [OTHER], [3, 0]).bridges == 0
    shared = graph_of([[(0, 3.0, True)]] * 5, 1)
    assert gate_facts(shared, [0], [0]) == GateFacts(named=0, bridges=0)
    everywhere = graph_of([[(0, 3.0, True)], *[[(0, 1.0, False)]] * 30], 1)
    assert gate_facts(everywhere, [0], [0]) == GateFacts(named=0, bridges=0)
    assert not gate(GateFacts(0, 0)).is_open
    assert gate(GateFacts(1, 0)).is_open
    assert "1 title" in gate(GateFacts(1, 0)).reason
    assert gate(GateFacts(0, 2)).is_open


def test_communities_are_the_parts_that_hang_together() -> None:
    rows = [
        [(0, 1.0, False), (1, 1.0, False)], [(0, 1.0, False), (1, 1.0, False)], [(1, 1.0, False), (0, 1.0, False)],
        [(2, 1.0, False), (3, 1.0, False)], [(2, 1.0, False), (3, 1.0, False)], [(4, 1.0, False)],
    ]  # fmt: skip
    passages, entities = communities(graph_of(rows, 5))
    assert passages.tolist() == [0, 0, 0, 2, 2, -1]
    assert entities.tolist() == [0, 0, 2, 2, 4]


def test_a_community_of_one_resource_joins_the_heaviest_beside_it() -> None:
    rows = [
        [(0, 1.0, False), (1, 1.0, False)], [(0, 1.0, False), (1, 1.0, False)],  # two resources share both
        [(1, 1.0, False), (2, 3.0, False)], [(1, 1.0, False), (2, 3.0, False)],  # two passages of a third one
        [(3, 1.0, False)],
    ]  # fmt: skip
    graph = graph_of(rows, 4)
    labels, resources = np.array([0, 0, 2, 2, -1]), np.array([7, 8, 9, 9, 4])
    passages, entities = join_lonely(graph, labels, resources)
    assert passages.tolist() == [0, 0, 0, 0, -1]
    assert entities.tolist() == [0, 0, -1, -1]
    strengths = own_strengths(graph, passages, entities)
    assert (strengths > 0).tolist() == [True, True, True, True, True, False, True, False, False]
    # Nothing is beside it: it stays.
    alone, _ = join_lonely(graph, np.array([-1, -1, 2, 2, -1]), resources)
    assert alone.tolist() == [-1, -1, 2, 2, -1]
