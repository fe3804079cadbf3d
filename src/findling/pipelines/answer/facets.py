"""Facets: how many of the resources that match have which type, extension, language, author, tag, folder or year.

The facet `file` is the complete list of what matches, the facet `entity` counts the names in it.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain, islice
from typing import NamedTuple

from findling.domain.budgets import MOST_CANDIDATES
from findling.domain.errors import InvalidValueError
from findling.domain.queries import FACETS, PROPERTIES
from findling.domain.resources import Resource
from findling.pipelines.answer.rankings import Ranking
from findling.pipelines.content.chat_parts import split_authors
from findling.pipelines.retrieve.legs import Retrievers
from findling.pipelines.retrieve.query_planner import loose_words
from findling.ranking.evidence import words_evidence
from findling.stores.filtering import values_held

MOST_MATCHES = 10_000
"""Chunks whose resources are counted, unless all files are asked for."""

ENTITY, FILE = "entity", "file"

MOST_VALUES = 100
"""Values of one property in an answer, the frequent ones."""


class Facets(NamedTuple):
    """For every property its values, frequent ones first, each with how many resources have it; and what was cut."""

    counts: Mapping[str, Mapping[str, int]]
    notes: tuple[str, ...] = ()


def check_facets(names: Iterable[str]) -> None:
    """Raises InvalidValueError for a property that cannot be counted."""
    for name in dict.fromkeys(names):
        if name not in FACETS:
            raise InvalidValueError(f"there is no facet {name!r}", hint=f"one of {', '.join(FACETS)}")


def facets_of(legs: Retrievers, ranking: Ranking) -> Facets:
    """Count what a ranking was made from: what the words match, and what is near in meaning as far as it ranks.

    Weaker matches do not count.
    """
    question, found = ranking.question, ranking.found
    request = question.request
    most = MOST_CANDIDATES if FILE in request.facets else MOST_MATCHES
    matching: list[int] = []
    is_cut = False
    by_meaning_alone = found.strategy == "semantic" and question.plan.meaning_finds and loose_words(question)[0]
    if not by_meaning_alone:
        words = legs.keyword.search(question.node, question.filters, most, weights=question.plan.weights)
        matching = [cid for cid, raw in words.hits if words_evidence(raw, words.ceiling) >= found.least]
        is_cut = len(matching) == len(words.hits) < words.total
        matching = [cid for cid in matching if cid not in found.unsupported]
    if len(found.legs) > 1 or by_meaning_alone:
        matching += [one.cid for one in found.candidates]
    found_in = legs.store.resources_of(list(dict.fromkeys(matching)))
    resources = {resource.rid: resource for resource in found_in.values()}
    names = [name for name in request.facets if name not in (ENTITY, FILE)]
    counted = count_facets(resources.values(), names, request.within or "")
    if FILE in request.facets:
        files = _most_first(Counter(resource.path or resource.rid for resource in found_in.values()))
        counted = counted._replace(counts={**counted.counts, FILE: files})
    if ENTITY in request.facets:
        from findling.pipelines.answer.entity_names import count_entities

        named, notes = count_entities(legs, list(found_in))
        counted = Facets({**counted.counts, ENTITY: named}, counted.notes + notes)
    cut = (f"facets count the first {most:,} matches",) if is_cut else ()
    return counted._replace(notes=cut + counted.notes)


def count_facets(resources: Iterable[Resource], names: Sequence[str], below: str = "") -> Facets:
    """The number of resources with each value of each property; folders are those `below` one.

    A resource without a value is not counted, one with several counts for each.
    """
    listed, counts, notes = list(resources), {}, []
    for name in dict.fromkeys(names):
        counter = Counter(chain.from_iterable(set(_values(resource, name, below)) for resource in listed))
        counts[name] = dict(islice(_most_first(counter).items(), MOST_VALUES))
        if len(counter) > MOST_VALUES:
            notes.append(f"facet {name} tells the {MOST_VALUES} most frequent of {len(counter):,} values")
    return Facets(counts, tuple(notes))


def _most_first(counter: Mapping[str, int]) -> dict[str, int]:
    return dict(sorted(counter.items(), key=lambda entry: (-entry[1], entry[0])))


def _values(resource: Resource, name: str, below: str) -> Iterable[str]:
    kind = PROPERTIES[name].kind
    if kind == "path":
        path = resource.path.removeprefix(f"{below}/") if below else resource.path
        folder, slash, _ = path.partition("/")
        return (folder,) if slash and folder else ()
    if kind == "time":
        return _year(resource.updated_at)
    values = values_held(resource, name)
    if kind == "ending":
        return [ending for ending in values[-1:] if ending != "."]
    if kind == "names" and resource.type == "chat":
        return [one for value in values for one in split_authors(value)]
    return filter(None, values)


def _year(moment: float | None) -> tuple[str, ...]:
    if moment is None:
        return ()
    try:
        return (str(time.gmtime(moment).tm_year),)
    except (OverflowError, OSError, ValueError):  # a time that no calendar has
        return ()
