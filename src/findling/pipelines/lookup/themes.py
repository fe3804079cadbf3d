"""Themes of a workspace: groups of passages that name the same things, and the best passages of one.

They are made of what a caller sees whenever somebody asks: 100,000 passages take 0.3 s.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from findling.domain.backends import GRAPH
from findling.domain.budgets import current_budget, spending
from findling.domain.errors import InvalidValueError
from findling.domain.queries import Filters
from findling.domain.results import Degradation, Evidence, Hit, SearchAnswer, Theme, ThemeName, ThemesAnswer
from findling.pipelines.answer.entity_names import NamedPassages, is_part
from findling.pipelines.answer.hits import make_hit
from findling.pipelines.answer.rankings import HighlightSpec, Ranked
from findling.pipelines.lookup.document_names import find_document
from findling.pipelines.retrieve.graph_step import subgraph_of
from findling.pipelines.retrieve.graph_themes import summary_of
from findling.pipelines.retrieve.legs import Candidate, Retrievers
from findling.pipelines.retrieve.vector_retrieval import allowed_resources
from findling.ranking.graph_walk import communities, join_lonely, own_strengths
from findling.text.analysis.analysis import STOP_WORDS, terms

if TYPE_CHECKING:
    from findling.domain.backends import GraphRows, Neighbourhood
    from findling.domain.resources import StoredChunk

_MOST_PASSAGES = 100_000
"""Passages that themes are made of."""

_LEAST = 2
"""Resources of a theme, and of each of its names."""

_NAMES, _READ = 6, 5
"""Names of a theme, and passages that are read for its summary; each takes 0.4 ms."""

_OF_ONE = 2
"""Passages of one resource among those of a theme."""

_DIGITS = 9


@spending()
def themes(legs: Retrievers, limit: int = 20, *, below: str = "") -> ThemesAnswer:
    """The themes with most documents, with names and a summary. Raises InvalidValueError for a limit below 1."""
    if limit < 1:
        raise InvalidValueError(f"limit {limit} must be at least 1", hint="limit 20")
    rows, lacks = _graph(legs)
    if rows is None:
        return ThemesAnswer(degraded=tuple(lacks))
    desk = _ThemeMap(legs, rows, below)
    told, total = list[Theme](), len(desk.labels)
    for label in desk.labels:
        if len(told) == limit or (told and current_budget().is_over("fewer themes are told than there are")):
            break
        theme = desk.theme(label)
        if theme is not None:
            told.append(theme)
        else:
            total -= 1
    lacks += [Degradation(what=one) for one in current_budget().refused]
    return ThemesAnswer(themes=tuple(told), total=total, degraded=tuple(lacks))


@spending()
def theme_passages(legs: Retrievers, name: str, limit: int = 10, *, below: str = "") -> SearchAnswer:
    """The best passages of the theme that a passage or a document belongs to, two of one resource at most.

    The score of a hit says how much of the theme it names, compared with the best one. Raises as `find_document` does,
    and InvalidValueError for a limit below 0.
    """
    if limit < 0:
        raise InvalidValueError(f"limit {limit} must not be negative")
    document, cids = find_document(legs.store, name, below)
    rows, lacks = _graph(legs)
    desk = _ThemeMap(legs, rows, below) if rows is not None else None
    label = desk.label_of(cids) if desk is not None else None
    if desk is None or label is None:
        where = document.resource.path or document.resource.rid
        notes = () if lacks else (f"{where} belongs to no theme",)
        return SearchAnswer(
            query=name,
            understood_as="no theme",
            hits=(),
            total=0,
            strategy=GRAPH,
            quality="none",
            degraded=tuple(lacks),
            notes=notes,
        )
    names = [one.name for one in desk.names(label)]
    hits = tuple(desk.hits(label, names, limit))
    lacks += [Degradation(what=one) for one in current_budget().refused]
    return SearchAnswer(
        query=name,
        understood_as=f"the theme {', '.join(names)}",
        hits=hits,
        total=len(desk.places(label)),
        strategy=GRAPH,
        quality="reduced" if lacks else "good",
        degraded=tuple(lacks),
    )


def _graph(legs: Retrievers) -> tuple[GraphRows | None, list[Degradation]]:
    """The graph, and everything that is missing."""
    at_hand = legs.graph
    if at_hand.rows is None:
        return None, [Degradation(what=at_hand.lack, fix=at_hand.fix)]
    count = len(at_hand.rows)
    cut = f"themes are made of {_MOST_PASSAGES:,} of {count:,} passages"
    return at_hand.rows, [Degradation(what=cut)] if count > _MOST_PASSAGES else []


class _Groups(NamedTuple):
    """Labels of passages and things, the strength of each mention within its theme, and that of each passage."""

    passages: Any
    things: Any
    strengths: Any
    scores: Any


class _ThemeMap:
    """The themes of one sight; texts are read once."""

    def __init__(self, legs: Retrievers, rows: GraphRows, below: str) -> None:
        self._store = legs.store
        allowed = allowed_resources(legs.store, Filters(within=below)) if below else None
        self._near = _within(rows.whole(_MOST_PASSAGES), allowed)
        self._groups = _grouped(self._near)
        self._counts = self._resources()
        self.labels = sorted(self._counts, key=self._rank)
        self._passages = NamedPassages(legs.store)

    def label_of(self, cids: Sequence[int]) -> int | None:
        """The theme that most of these passages belong to, if any does."""
        found = Counter(int(self._groups.passages[place]) for place in self._places_of(cids))
        known = [label for label, _ in found.most_common() if label in self._counts]
        return known[0] if known else None

    def places(self, label: int) -> list[int]:
        """The passages of a theme, those that name most of it first."""
        import numpy as np

        own = np.flatnonzero(self._groups.passages == label)
        order = np.lexsort((own, -np.round(self._groups.scores[own], _DIGITS)))
        return [int(place) for place in own[order]]

    def names(self, label: int) -> tuple[ThemeName, ...]:
        """The names of a theme as its passages write them, those of most resources first."""
        told = list[ThemeName]()
        for thing, count, rows in self._things(label):
            hash_ = int(self._near.hashes[thing])
            written = next((one for row in rows if (one := self._labels(row).get(hash_))), "")
            if written and not is_part(written, (one.name for one in told)):
                told.append(ThemeName(name=written, resources=count))
            if len(told) == _NAMES:
                break
        return tuple(told)

    def theme(self, label: int) -> Theme | None:
        """A theme in words; None when its passages are gone since the graph was read."""
        places, names = self.places(label), self.names(label)
        read = [one for place in places[:_READ] if (one := self._chunk(place)) is not None]
        if not read or not names:
            return None
        return Theme(
            id=f"{read[0].chunk.cid:016x}",
            names=names,
            summary=summary_of([one.text for one in read], [one.name for one in names]),
            resources=self._counts[label],
            passages=len(places),
        )

    def hits(self, label: int, names: Sequence[str], limit: int) -> Iterator[Hit]:
        """The best passages of a theme with its names marked."""
        words = list(dict.fromkeys(word for name in names for word in terms(name) if word not in STOP_WORDS))
        asked = HighlightSpec(words, {word: word for word in words}, {})
        shown = Counter[int]()
        places = self.places(label)
        best = float(self._groups.scores[places[0]])
        for place in places:
            number = int(self._near.numbers[place])
            if sum(shown.values()) == limit or current_budget().is_over("fewer are shown than were asked for"):
                return
            stored = self._chunk(place) if shown[number] < _OF_ONE else None
            if stored is None:
                continue
            shown[number] += 1
            raw = float(self._groups.scores[place])
            why = ", ".join(one for one in names if one in self._labels(place).values())
            worth = round(raw / best, 4)
            evidence = Evidence(GRAPH, raw, raw, worth, f"names {why}" if why else "", "theme")
            yield make_hit(Ranked(stored, Candidate(stored.chunk.cid, worth, (evidence,)), worth), asked, self._store)

    def _resources(self) -> dict[int, int]:
        """The number of resources of each theme."""
        import numpy as np

        is_in = self._groups.passages >= 0
        labels, numbers = self._groups.passages[is_in], self._near.numbers[is_in]
        size = int(numbers.max(initial=0)) + 1
        found, counts = np.unique(np.unique(labels * size + numbers) // size, return_counts=True)
        return {int(label): int(n) for label, n in zip(found, counts, strict=True) if n >= _LEAST}

    def _rank(self, label: int) -> tuple[int, int]:
        return -self._counts[label], label

    def _things(self, label: int) -> Iterator[tuple[int, int, list[int]]]:
        """The things of a theme: the resources and the passages that name each, the most telling passages first."""
        import numpy as np

        near, groups = self._near, self._groups
        own = np.flatnonzero((groups.strengths > 0) & (groups.things[near.things] == label))
        by_thing: dict[int, list[int]] = {}
        for mention in own.tolist():
            by_thing.setdefault(int(near.things[mention]), []).append(mention)
        spread = {thing: len({int(near.numbers[near.rows[one]]) for one in mine}) for thing, mine in by_thing.items()}
        weight = {thing: round(float(groups.strengths[mine].sum()), _DIGITS) for thing, mine in by_thing.items()}
        for thing in sorted(by_thing, key=lambda thing: (-spread[thing], -weight[thing], thing)):
            if spread[thing] >= _LEAST:
                rows = near.rows[by_thing[thing]]
                best = np.lexsort((rows, -np.round(groups.scores[rows], _DIGITS)))
                yield thing, spread[thing], rows[best[:_READ]].tolist()

    def _places_of(self, cids: Sequence[int]) -> list[int]:
        import numpy as np

        wanted = np.array(cids, np.int64)
        return [int(place) for place in np.flatnonzero(np.isin(self._near.cids, wanted))]

    def _chunk(self, place: int) -> StoredChunk | None:
        return self._passages.chunk(int(self._near.cids[place]))

    def _labels(self, place: int) -> Mapping[int, str]:
        return self._passages.labels(int(self._near.cids[place]))


def _within(near: Neighbourhood, allowed: Collection[int] | None) -> Neighbourhood:
    """The same part of a graph without the links of other resources."""
    if allowed is None:
        return near
    import numpy as np

    seen = np.isin(near.numbers, np.fromiter(allowed, np.int64, len(allowed)))[near.rows]
    return near._replace(rows=near.rows[seen], things=near.things[seen], levels=near.levels[seen])


def _grouped(near: Neighbourhood) -> _Groups:
    """The communities of a graph, in which a title counts as much as any name.

    Where it counts more, 143 of 992 documents of HotpotQA make a theme of their own; here 5 do, which join others.
    """
    import numpy as np

    graph = subgraph_of(near)
    flat = graph._replace(weights=np.ones(len(near.rows)))
    passages, things = join_lonely(flat, communities(flat)[0], near.numbers)
    strengths = own_strengths(graph, passages, things)
    return _Groups(passages, things, strengths, np.bincount(near.rows, strengths, len(near.cids)))
