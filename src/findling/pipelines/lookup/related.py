"""Related: paths between two things over passages that name both ends of a step, or things around one.

A thing is a name, a title, a file, or a passage. Every step has the passage that proves it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from findling.domain.budgets import spending
from findling.domain.errors import InvalidValueError, NotFoundError
from findling.domain.queries import All, Filters, Phrase
from findling.domain.reports import (
    RelatedAnswer,
    RelatedDocument,
    RelatedName,
    RelatedPassage,
    RelatedPath,
    RelatedStep,
)
from findling.domain.results import Degradation, Line
from findling.pipelines.answer.entity_names import NamedPassages, is_part
from findling.pipelines.lookup.document_names import find_document
from findling.pipelines.retrieve.legs import Retrievers
from findling.pipelines.retrieve.vector_retrieval import allowed_resources
from findling.ranking.graph_paths import (
    MentionGraph,
    PassagePath,
    best_path,
    mention_graph,
    nearest_passages,
    nearest_things,
)
from findling.text.mining.chunk_names import LEVEL_WEIGHTS, hash_of
from findling.text.mining.keys import entity_key

if TYPE_CHECKING:
    from findling.domain.backends import GraphRows, Neighbourhood
    from findling.domain.resources import StoredChunk

MOST_HOPS = 4
"""Steps of the longest path: two from each end is as far as the neighbourhood of both goes."""

_MOST_CHUNKS = 200
"""Passages that stand for a document."""

_BY_WORDS = 30
"""Passages that stand for words which no passage has among its names."""

_SHARED_NAMES = 3
_LONGEST_LINE = 240


@spending()
def related(
    legs: Retrievers, of: str, to: str = "", *, limit: int = 10, hops: int = MOST_HOPS, below: str = ""
) -> RelatedAnswer:
    """The strongest paths between two things, or the names and documents around one.

    Shorter paths come first, and no two go by the same name. Raises InvalidValueError for a thing without letters, a
    limit below 1, and hops that are not between 1 and 4.
    """
    if limit < 1:
        raise InvalidValueError(f"limit {limit} must be at least 1", hint="limit 10")
    if not 1 <= hops <= MOST_HOPS:
        raise InvalidValueError(f"hops {hops} must be between 1 and {MOST_HOPS}", hint=f"hops {MOST_HOPS}")
    if not entity_key(of) or (to and not entity_key(to)):
        raise InvalidValueError("a thing to relate has no letters or digits", hint="a name, a title or a path")
    at_hand = legs.graph
    if at_hand.rows is None:
        return RelatedAnswer(of=of, to=to, degraded=(Degradation(what=at_hand.lack, fix=at_hand.fix),))
    desk = _Relating(legs, at_hand.rows, below)
    things = [desk.thing(name) for name in (of, to) if name]
    known = [thing for thing in things if thing is not None]
    if len(known) < len(things):
        missing = [name for name, thing in zip((of, to), things, strict=False) if thing is None]
        return RelatedAnswer(of=of, to=to, unknown=tuple(missing))
    thing = known[0]
    if len(known) > 1:
        paths = desk.paths(thing, known[1], limit, hops)
        return RelatedAnswer(of=thing.label, to=known[1].label, paths=tuple(paths))
    return RelatedAnswer(of=thing.label, names=desk.names(thing, limit), documents=desk.documents(thing, limit))


class _Thing(NamedTuple):
    """A thing as it is written, the hashes of its keys, and its passages with the strength of each."""

    label: str
    hashes: frozenset[int]
    cids: Mapping[int, float]
    is_document: bool = False


class _MappedPart(NamedTuple):
    """A part of the graph with the places of its chunks."""

    near: Neighbourhood
    graph: MentionGraph
    place_of: Mapping[int, int]

    def starts(self, thing: _Thing) -> dict[int, float]:
        """The places of a thing's passages with their strengths."""
        return {self.place_of[cid]: one for cid, one in thing.cids.items() if cid in self.place_of}

    def things(self, hashes: Collection[int]) -> set[int]:
        """The places of things."""
        return {place for place, hash_ in enumerate(self.near.hashes.tolist()) if hash_ in hashes}


class _Relating:
    """One question over the graph that its caller sees; texts that prove something are read once."""

    def __init__(self, legs: Retrievers, rows: GraphRows, below: str) -> None:
        self._legs, self._rows, self._below = legs, rows, below
        self._allowed = allowed_resources(legs.store, Filters(within=below)) if below else None
        self._passages = NamedPassages(legs.store)

    def thing(self, name: str) -> _Thing | None:
        """The thing that a name stands for: a place or an id first, then a name, then words in a row."""
        is_place = any(mark in name for mark in "/:.") or len(name) == 16
        found = self._document(name) if is_place else None
        return found or self._named(name) or (None if is_place else self._document(name)) or self._written(name)

    def paths(self, one: _Thing, other: _Thing, limit: int, hops: int) -> Iterator[RelatedPath]:
        """The paths between two things, the short and strong ones first."""
        if not (one.is_document or other.is_document or one.cids.keys() & other.cids.keys()):
            both = dict.fromkeys(self._together(one.label, other.label), _share(0))
            one, other = (thing._replace(cids={**both, **thing.cids}) for thing in (one, other))
        part = self._part(self._rows.around((), [*one.cids, *other.cids]))
        starts, ends = part.starts(one), part.starts(other)
        passed = part.things(one.hashes | other.hashes)
        count = 0
        while count < limit and (found := best_path(part.graph, starts, ends, hops=hops, without=passed)):
            if found.things:
                passed |= set(found.things)
            else:
                direct = starts.keys() & ends.keys()
                starts = {place: score for place, score in starts.items() if place not in direct}
                ends = {place: score for place, score in ends.items() if place not in direct}
            told = self._told(part, found, one.label, other.label)
            if told is not None:
                count += 1
                yield told

    def names(self, thing: _Thing, limit: int) -> tuple[RelatedName, ...]:
        """The names that passages of a thing have, the strongest first."""
        part = self._part(self._rows.named((), list(thing.cids)))
        starts, near = part.starts(thing), part.near
        found = nearest_things(part.graph, starts, without=part.things(thing.hashes))
        told = list[RelatedName]()
        for place, (score, passage) in found.items():
            cid = int(near.cids[passage])
            stored, label = self._passages.chunk(cid), self._passages.labels(cid).get(int(near.hashes[place]))
            if stored is None or label is None or is_part(label, (thing.label, *(one.name for one in told))):
                continue
            count = len({int(near.numbers[one]) for one in part.graph.passages[place] if one in starts})
            told.append(RelatedName(label, score, count, _passage(stored, (label, thing.label))))
            if len(told) == limit:
                break
        return tuple(told)

    def documents(self, thing: _Thing, limit: int) -> tuple[RelatedDocument, ...]:
        """The documents that name a thing or, for a document, those that share names with it."""
        if thing.is_document:
            part = self._part(self._rows.around((), list(thing.cids)))
            group_of = lambda place: int(part.near.numbers[place])  # noqa: E731
            found = nearest_passages(part.graph, part.starts(thing), group_of)
        else:
            part = self._part(self._rows.named((), list(thing.cids)))
            found = _best_of_each(part, part.starts(thing))
        told = []
        for place, score, shared in found:
            cid = int(part.near.cids[place])
            stored, labels = self._passages.chunk(cid), self._passages.labels(cid)
            if stored is None:
                continue
            written = [labels.get(int(part.near.hashes[one]), "") for one in shared[:_SHARED_NAMES]]
            names = tuple(dict.fromkeys(filter(None, written))) if thing.is_document else (thing.label,)
            told.append(RelatedDocument(names, score, _passage(stored, names)))
            if len(told) == limit:
                break
        return tuple(told)

    # Things

    def _document(self, name: str) -> _Thing | None:
        with suppress(NotFoundError, InvalidValueError):
            document, cids = find_document(self._legs.store, name, self._below)
            label = document.resource.path or document.resource.title or document.resource.rid
            return _Thing(label, frozenset(), dict.fromkeys(cids[:_MOST_CHUNKS], 1.0), is_document=True)
        return None

    def _named(self, name: str) -> _Thing | None:
        keys = self._keys(name)
        hashes = frozenset(map(hash_of, keys))
        near = self._rows.named(keys, ())
        strengths: dict[int, float] = {}
        for row, thing, level in zip(near.rows.tolist(), near.things.tolist(), near.levels.tolist(), strict=True):
            cid = int(near.cids[row])
            if int(near.hashes[thing]) in hashes and self._is_in_sight(int(near.numbers[row])):
                strengths[cid] = max(_share(level), strengths.get(cid, 0.0))
        for cid in sorted(strengths, key=lambda cid: (-strengths[cid], cid))[:1]:
            labels = self._passages.labels(cid)
            return _Thing(next((labels[one] for one in hashes if one in labels), name), hashes, strengths)
        return None

    def _written(self, name: str) -> _Thing | None:
        """The passages that hold words in a row, which are no name that the graph knows."""
        found = self._legs.keyword.search(Phrase(name), Filters(within=self._below), _BY_WORDS)
        hashes = frozenset(map(hash_of, self._keys(name)))
        return _Thing(name, hashes, {cid: _share(0) for cid, _ in found.hits}) if found.hits else None

    def _together(self, *labels: str) -> list[int]:
        """The passages that write both names, which need not be among the ten that the graph knows of them."""
        both = All(tuple(map(Phrase, labels)))
        found = self._legs.keyword.search(both, Filters(within=self._below), _BY_WORDS)
        read = ((cid, self._passages.chunk(cid)) for cid, _ in found.hits)
        return [cid for cid, stored in read if stored is not None and all(one in stored.text for one in labels)]

    def _keys(self, name: str) -> list[str]:
        """The key of a name, and those of what the glossary calls it otherwise."""
        key = entity_key(name)
        terms = [one for one in self._legs.store.glossary() if one.status in ("canonical", "alias")]
        groups = {one.group for one in terms if key in (entity_key(one.surface), entity_key(one.group))}
        aliases = [entity_key(surface) for one in terms if one.group in groups for surface in (one.group, one.surface)]
        return [*dict.fromkeys([key, *filter(None, aliases)])]

    # The graph

    def _is_in_sight(self, number: int) -> bool:
        return self._allowed is None or number in self._allowed

    def _part(self, near: Neighbourhood) -> _MappedPart:
        is_seen = [self._is_in_sight(int(number)) for number in near.numbers]
        links = (
            (row, thing, _share(level))
            for row, thing, level in zip(near.rows.tolist(), near.things.tolist(), near.levels.tolist(), strict=True)
            if is_seen[row]
        )
        graph = mention_graph(len(near.cids), links, near.spreads.tolist(), near.total)
        return _MappedPart(near, graph, {cid: place for place, cid in enumerate(near.cids.tolist()) if is_seen[place]})

    # Proof

    def _told(self, part: _MappedPart, found: PassagePath, first: str, last: str) -> RelatedPath | None:
        cids = [int(part.near.cids[place]) for place in found.passages]
        stored = [one for cid in cids if (one := self._passages.chunk(cid)) is not None]
        if len(stored) < len(cids):
            return None
        names = [first]
        for thing, beside in zip(found.things, pairwise(map(self._passages.labels, cids)), strict=True):
            names.append(next(filter(None, [labels.get(int(part.near.hashes[thing])) for labels in beside]), ""))
        names.append(last)
        if not all(names):
            return None
        steps = [
            RelatedStep(start, end, _passage(one, (start, end)))
            for (start, end), one in zip(pairwise(names), stored, strict=True)
        ]
        return RelatedPath(tuple(names), found.score, tuple(steps))


def _share(level: int) -> float:
    return LEVEL_WEIGHTS[level] / LEVEL_WEIGHTS[-1]


def _best_of_each(part: _MappedPart, starts: Mapping[int, float]) -> list[tuple[int, float, list[int]]]:
    """The best passage of each resource."""
    best: dict[int, tuple[int, float, list[int]]] = {}
    for place in sorted(starts, key=lambda place: (-starts[place], place)):
        best.setdefault(int(part.near.numbers[place]), (place, round(starts[place], 4), []))
    return list(best.values())


def _passage(stored: StoredChunk, labels: Sequence[str]) -> RelatedPassage:
    """A passage by the line that has most of these labels, or its first one with a word."""
    chunk, resource, text = stored
    wanted = [label.casefold() for label in labels]
    said = {one.casefold() for one in (resource.title, *chunk.heading)}
    # A title proves nothing of the other label.
    worth = {one: 1 if one in said else 2 for one in wanted}
    lines = text.split("\n")
    place = max(range(len(lines)), key=lambda one: (*_telling(lines[one], worth), -one))
    line = Line(number=chunk.line_start + place, text="")
    if chunk.places:
        from findling.text.snippets import placed_lines

        (line,) = placed_lines([line], chunk, text)
    shown = _around(lines[place].strip(), wanted)
    return RelatedPassage(
        f"{chunk.cid:016x}", resource.rid, resource.path, resource.title, line.number, line.place, shown
    )


def _telling(line: str, worth: Mapping[str, int]) -> tuple[int, bool]:
    folded = line.casefold()
    return sum(value for one, value in worth.items() if one in folded), any(map(str.isalnum, line))


def _around(line: str, wanted: Sequence[str]) -> str:
    """A line, or the part of a long one that begins a little before the first label in it."""
    if len(line) <= _LONGEST_LINE:
        return line
    places = [at for one in wanted if (at := line.casefold().find(one)) >= 0]
    start = max(0, min(min(places, default=0) - 40, len(line) - _LONGEST_LINE))
    return (
        f"{'…' if start else ''}{line[start : start + _LONGEST_LINE]}{'…' if start + _LONGEST_LINE < len(line) else ''}"
    )
