"""Candidates by way of others: passages that share names with the question and its best hits take slots among these.

via Jump for Glory → Raoul Walsh
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from findling.domain.backends import GRAPH
from findling.domain.results import Evidence
from findling.domain.values import changed
from findling.pipelines.retrieve.legs import Candidate, Found, Retrievers
from findling.pipelines.retrieve.query_planner import AnalyzedQuery, loose_words
from findling.pipelines.retrieve.vector_retrieval import allowed_resources
from findling.ranking.evidence import falling
from findling.ranking.graph_walk import (
    Subgraph,
    Walked,
    gate,
    gate_facts,
    in_slots,
    ranked,
    seeds,
    walk,
    walk_path,
)
from findling.text.mining.chunk_names import LEVEL_WEIGHTS, TITLE, chunk_names, hash_of
from findling.text.mining.entities import asked_keys, is_mostly_name, longest_keys, plain_keys
from findling.text.mining.keys import entity_key

if TYPE_CHECKING:
    from findling.domain.backends import GraphRows, Neighbourhood
    from findling.domain.ports import KeywordLeg, ReadStore


_HITS = 30
"""Best candidates around which the graph is walked."""

_KEPT, _SLOTS = 2, 8
"""Best candidates that keep their places, and places that a walk may take: the third, the fifth, and so on."""

_LOOKED_AT = 64
"""Passages of a walk that are looked up."""

_OF_ONE = 2
"""Passages of one resource that a walk may bring."""

_LONGEST = 9
"""Words of a label in a question."""

_LONGEST_QUESTION = 45
"""Words of a question that leads on: six longer ones lower CISI by .005 NDCG@10 by words, and .007 read."""

_EDGES = ".,;:!?()[]\"'“”‘’«»„"


def lead_on(legs: Retrievers, question: AnalyzedQuery, found: Found) -> Found:
    """The findings with what the graph leads to in every second place from the third on, if its gate is open.

    A hit of the graph stands in the place of a candidate, and has the score of that one: it is as well supported as
    what it was reached from. `on` opens the gate for every question that the graph knows something of.
    """
    rows, keys, is_forced = legs.graph.rows, _keys(question), question.plan.graph == "on"
    if rows is None:
        return changed(found, graph=_off(legs.graph.lack))
    if not is_forced and (why := _obstacle(legs, rows, question, found, keys)):
        return changed(found, graph=_off(why))
    tour = _toured(legs.keyword, rows, keys, found, question.text)
    if not is_forced and not tour.asked:
        return changed(found, graph=_off(_UNNAMED))
    facts = gate_facts(tour.graph, tour.asked, tour.hits)
    opened = gate(facts)
    figures = {"named": facts.named, "bridges": facts.bridges, "around": len(tour.near.cids)}
    if not opened.is_open and not (is_forced and (tour.asked or tour.hits)):
        return changed(found, graph={**_off(opened.reason), **figures})
    order = _fitting(legs, question, found, tour, ranked(tour.walked.passages, tour.near.cids.tolist()))
    mode, themes = question.plan.graph_mode, list[dict[str, Any]]()
    if mode != "low":
        order, themes = _themed(legs.store, tour, order, mode)
    candidates, brought, lifted = _placed(legs.store, found, _few_of_each(order, tour.near), tour)
    account = {
        "state": "on",
        "because": opened.reason if opened.is_open else "the plan asks for it",
        **figures,
        "names": [tour.labels[one] for one in tour.asked],
        "brought": brought,
        "lifted": lifted,
        **({"mode": mode, "themes": themes} if mode != "low" else {}),
    }
    return changed(found, candidates=candidates, total=found.total + brought, graph=account)


class _Tour(NamedTuple):
    """A walked neighbourhood: places of the asked things and of the best hits in it, and the labels of the former."""

    near: Neighbourhood
    graph: Subgraph
    asked: list[int]
    hits: list[int]
    labels: Mapping[int, str]
    walked: Walked


def _off(why: str) -> dict[str, Any]:
    return {"state": "off", "because": why}


_UNNAMED = "it knows no name in the question"


def _obstacle(legs: Retrievers, rows: GraphRows, question: AnalyzedQuery, found: Found, keys: Sequence[str]) -> str:
    """The reason why a question leads nowhere, as far as it is known before a walk; empty for none."""
    if len(question.text.split()) > _LONGEST_QUESTION:
        return f"more than {_LONGEST_QUESTION} words describe, and ask by way of nothing"
    is_known = _has_names(question.text) or rows.holds(keys)
    return "" if is_known or ("question" in question.route.shape and _titled(legs, found, keys)) else _UNNAMED


def _keys(question: AnalyzedQuery) -> list[str]:
    """The keys that a question may name, with what the glossary calls them otherwise."""
    aliases = [entity_key(alias) for fired in question.fired for alias in fired.aliases]
    return [*dict.fromkeys([*asked_keys(question.text), *filter(None, aliases)])]


def _has_names(text: str) -> bool:
    """Whether a word within a question begins with a capital, or its script has none."""
    return not text.isascii() or any(word[:1].isupper() for word in text.split()[1:])


def _titled(legs: Retrievers, found: Found, keys: Sequence[str]) -> bool:
    """Whether one of the best hits has a title that the question names, though no other passage does.

    In lower case, MuSiQue and HotpotQA gain .008 by words. It costs a statement, so only questions pay it.
    """
    best = [candidate.cid for candidate in found.candidates[:_KEPT]]
    return any(entity_key(one.title) in keys for one in legs.store.resources_of(best).values())


def _toured(words: KeywordLeg, rows: GraphRows, keys: Sequence[str], found: Found, text: str) -> _Tour:
    import numpy as np  # which a question without a known name does not need

    best = [candidate.cid for candidate in found.candidates[:_HITS]]
    near = rows.around(keys, best)
    graph = subgraph_of(near)
    place_of = {hash_: place for place, hash_ in enumerate(near.hashes.tolist())}
    known = {key: int(near.spreads[place_of[hash_of(key)]]) for key in keys if hash_of(key) in place_of}
    plain = [key for key in plain_keys(text) if key in known]
    # What is written plainly may be the title of something, such as `index` or `information retrieval`, and no name:
    # phrases that count as names cost CISI .016 NDCG@10 instant.
    held = words.frequencies({word for key in plain for word in key.split()}) if plain else {}
    common = {key for key in plain if not is_mostly_name(known[key], min(held.get(one, 0) for one in key.split()))}
    names = longest_keys(keys, known.keys() - common)
    asked = {place_of[hash_of(key)]: key for key in reversed(names)}
    places = np.searchsorted(near.cids, best).tolist()
    size = len(near.cids)
    hits = [place for place, cid in zip(places, best, strict=True) if place < size and near.cids[place] == cid]
    walked = walk(graph, *seeds(graph, list(asked), hits))
    return _Tour(near, graph, list(asked), hits, {place: _written(text, key) for place, key in asked.items()}, walked)


def subgraph_of(near: Neighbourhood) -> Subgraph:
    """The neighbourhood as a walk has it."""
    import numpy as np

    starts = np.zeros(len(near.cids) + 1, np.int64)
    np.cumsum(np.bincount(near.rows, minlength=len(near.cids)), out=starts[1:])
    titles = near.levels == TITLE
    # A resource has its title on each of its chunks.
    size = len(near.hashes)
    titled = np.unique(near.numbers[near.rows[titles]] * size + near.things[titles])
    counts = np.bincount(titled % size, minlength=size) if size else titled
    weights = np.array(LEVEL_WEIGHTS)[near.levels]
    return Subgraph(starts, near.things, weights, titles, near.spreads, counts, near.total)


def _fitting(legs: Retrievers, question: AnalyzedQuery, found: Found, tour: _Tour, order: Sequence[int]) -> list[int]:
    """The places of an order that pass the filters and fulfil the demands of the question, as many as may be needed."""
    near, order = tour.near, order[:_LOOKED_AT]
    known = {candidate.cid for candidate in found.candidates}
    allowed = allowed_resources(legs.store, question.filters)
    if allowed is not None:
        order = [place for place in order if int(near.numbers[place]) in allowed]
    fresh = [cid for place in order if (cid := int(near.cids[place])) not in known]
    _, conditions = loose_words(question)
    if conditions is not None and fresh:
        fulfilling = legs.keyword.scores(conditions, fresh)
        fresh = [cid for cid in fresh if cid in fulfilling]
    there = legs.store.resources_of(fresh)
    return [place for place in order if (cid := int(near.cids[place])) in known or cid in there]


def _themed(store: ReadStore, tour: _Tour, order: list[int], mode: str) -> tuple[list[int], list[dict[str, Any]]]:
    """The order by themes, or by turns with the order itself; and the best themes in words."""
    from findling.pipelines.retrieve.graph_themes import by_turns, describe_themes, themes_of

    themes = themes_of(tour.graph, tour.walked, order)
    high = by_turns(*(theme.places for theme in themes))
    told = describe_themes(store, themes, tour.near.cids.tolist())
    return (high if mode == "high" else by_turns(order, high)), told


def _few_of_each(order: Sequence[int], near: Neighbourhood) -> list[int]:
    """The places without more than a few of one resource: a long document has its title on each of its chunks."""
    seen = Counter[int]()
    few = []
    for place in order:
        number = int(near.numbers[place])
        seen[number] += 1
        if seen[number] <= _OF_ONE:
            few.append(place)
    return few


def _placed(store: ReadStore, found: Found, led: Sequence[int], tour: _Tour) -> tuple[list[Candidate], int, int]:
    """The candidates with those of the walk in their slots; how many of these are new, and how many have risen."""
    own = {candidate.cid: candidate for candidate in found.candidates}
    kept = list(own)[:_KEPT]
    place_of = {int(tour.near.cids[place]): place for place in led}
    # Few candidates are not outnumbered by what they lead to.
    walked = [cid for cid in place_of if cid not in kept][: min(_SLOTS, max(_KEPT, len(own) - 1))]
    order = [cid for cid, _ in in_slots(list(own), walked, keep=_KEPT)]
    before = {cid: rank for rank, cid in enumerate(own)}
    risen = {cid for rank, cid in enumerate(order) if cid in place_of and before.get(cid, len(order)) > rank}
    scores = falling(_slot_scores([None if cid in risen else own[cid].score for cid in order]))
    placed = []
    for cid, score in zip(order, scores, strict=True):
        if cid in risen:
            placed.append(_by_way(store, tour, own.get(cid), place_of[cid], score))
        else:
            own[cid].score = score
            placed.append(own[cid])
    brought = sum(cid not in own for cid in risen)
    return placed, brought, len(risen) - brought


def _slot_scores(scores: Sequence[float | None]) -> list[float]:
    """Scores with those of the next candidate where there is none, at the end those of the last."""
    filled: list[float] = []
    following = next((score for score in reversed(scores) if score is not None), 0.0)
    for score in reversed(scores):
        following = following if score is None else score
        filled.append(following)
    return filled[::-1]


def _by_way(store: ReadStore, tour: _Tour, own: Candidate | None, place: int, score: float) -> Candidate:
    """A candidate in the slot of the walk; the way to it is told when it is shown."""
    raw = float(tour.walked.passages[place])

    def evidence(cid: int) -> tuple[Evidence, ...]:
        way = Evidence(GRAPH, raw, raw, score, _told(store, tour, place), "walk")
        return (*(own.evidence if own is not None else ()), way)

    cid = int(tour.near.cids[place])
    worth = max(score, own.worth) if own is not None else score
    return Candidate(cid, score, evidence, own.strength if own is not None else score, worth)


def _told(store: ReadStore, tour: _Tour, place: int) -> str:
    """The way to a passage, by labels from what its caller sees: `via Jump for Glory → Raoul Walsh`."""
    path = walk_path(tour.graph, tour.walked, tour.asked, place)
    if path is None:
        return "beside a best hit"
    *_, last = path.entities  # all before it are names of the question
    labels = [tour.labels.get(one, "") for one in path.entities]
    if last not in tour.labels:
        cid = int(tour.near.cids[place])
        for one in store.chunks([cid]).values():
            names = chunk_names(one.resource, one.chunk.heading, one.text)
            hash_ = int(tour.near.hashes[last])
            labels[-1] = next((name.label for name in names if hash_of(name.key) == hash_), "")
    if len(path.entities) == 1 and path.through >= 0:
        for through in store.resources_of([int(tour.near.cids[path.through])]).values():
            labels.insert(0, through.title or through.path.rpartition("/")[2] or through.rid)
    return "via " + " → ".join(dict.fromkeys(filter(None, labels)))


def _written(text: str, key: str) -> str:
    """A key as a question writes it; the key itself where the glossary or another order has led to it."""
    words = text.split()
    for size in range(1, min(len(words), _LONGEST) + 1):
        for start in range(len(words) - size + 1):
            label = " ".join(words[start : start + size]).strip(_EDGES)
            if entity_key(label) == key:
                return label
    return key
