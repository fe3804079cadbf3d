"""Keyword legs of callers with limited rights: unions of segments, each with resources of one class of visibility.

A segment is a small tantivy index in a folder of its own, without a deleted entry, that never changes. A caller's leg
lists the segments of the classes in sight as one index. So tantivy itself adds up their statistics, and every score is
that of an index which holds what the caller may see and nothing else. An edit replaces one segment, whoever asks.
"""

from __future__ import annotations

import os
from collections import OrderedDict
from collections.abc import Collection, Iterable, Iterator, Mapping
from itertools import chain
from pathlib import Path
from typing import NamedTuple

from findling.domain.backends import Scoring
from findling.domain.errors import CorruptError, LockedError, PathNotFoundError, ReadOnlyError
from findling.domain.ports import KeywordLeg, TruthStore
from findling.domain.sight import Audience, Population, Sight
from findling.stores.filesystem import discard
from findling.stores.keyword.class_files import (
    SEGMENT,
    Links,
    Segment,
    TermBlock,
    discard_segment,
    pack_terms,
    read_segment,
    read_terms,
    write_segment,
)
from findling.stores.keyword.entries import PreparedResource, prepare, schema
from findling.stores.keyword.leg import TantivyLeg
from findling.stores.keyword.segment_files import OpenedIndex, damaged_parts, made_for, new_index
from findling.stores.lock import WriteLock

_LEAST_CHARACTERS = 250_000
"""A segment of so much text is replaced in 30 ms of CPU. Twice as much takes 45 ms, and searches cost a third less."""

_MOST_SEGMENTS = 48
"""Beyond so many of the least size segments grow with the text: each costs a search 0.5 ms."""

_REMEMBERED = 16
"""Legs that stay open. Callers who see the same share one."""

_PATIENCE_S = 600.0
"""Seconds a search waits for another process that writes segments: the first ones of a large index take minutes."""

_LOST = (LockedError, OSError, PathNotFoundError, ReadOnlyError)
"""Why a segment cannot be kept beside the others; it is then made for this process alone."""


class _Cover(NamedTuple):
    """Segments of the classes in sight, the resources that are in none, and segments of which anything has changed."""

    segments: dict[Audience, list[Segment]]
    missing: dict[Audience, set[int]]
    broken: list[Segment]

    def names(self) -> frozenset[str]:
        """The names of the chosen segments."""
        return frozenset(one.name for chosen in self.segments.values() for one in chosen)


class ClassSegments:
    """The segments in one folder, and the legs that are put together from them. One thread uses it at a time."""

    def __init__(self, folder: Path, *, store_id: str, unit: str) -> None:
        self._folder = folder
        self._made_for = made_for(store_id, unit)
        self._unit = unit
        self._known: dict[str, Segment] = {}
        self._judged: tuple[Population, _Cover] | None = None
        self._links: Links | None = None
        self._legs: OrderedDict[frozenset[str], TantivyLeg] = OrderedDict()

    def for_sight(self, sight: Sight, store: TruthStore) -> TantivyLeg:
        """A leg of just what is in sight. Raises CorruptError when the truth is damaged."""
        for is_last in (False, False, True):
            names = self._cover(sight, store)
            if (leg := self._legs.get(names)) is not None:
                self._legs.move_to_end(names)
                return leg
            try:
                leg = self._open(names)
            except (CorruptError, OSError):
                if is_last:
                    raise
                gone = [name for name in names if not self._known[name].exists()]
                for name in gone:  # another process has just replaced them
                    del self._known[name]
                if not gone:
                    self._discard(names)
                continue
            self._legs[names] = leg
            while len(self._legs) > _REMEMBERED:
                self._legs.popitem(last=False)
            return leg
        raise AssertionError("the last turn returns or raises")

    def discard(self, leg: KeywordLeg) -> None:
        """Delete the damaged segments of a leg, or all of them where no checksum is wrong."""
        for names in [names for names, one in self._legs.items() if one is leg]:
            self._discard(names)

    def drop_stale(self, store: TruthStore) -> list[str]:
        """Delete what segments hold of resources that have changed or gone, and earlier versions; return what went."""
        if not self._folder.is_dir():
            return []
        present = {right.number: right.seq for right in store.rights()}
        with _locked(self._folder):
            self._refresh()
            stale = [one for one in self._known.values() if not one.held.items() <= present.items()]
            for segment in stale:
                left = {number: seq for number, seq in segment.held.items() if present.get(number) == seq}
                # Only what it holds in a form that can be read is worth another one: a search makes the rest.
                kept = [one for block in read_terms(segment) for one in block.resources if one.number in left]
                if kept:
                    self._write(self._folder, [*pack_terms(kept)], {one.number: left[one.number] for one in kept})
            self._remove(stale)
            others = [path for path in sorted(self._folder.glob("*/")) if path.name not in self._known]
            for path in others:
                discard(path)
            return [f"{self._folder.name}/{one.name}" for one in (*(segment.folder for segment in stale), *others)]

    def close(self) -> None:
        """Release files; closing twice is fine."""
        self._legs.clear()
        self._known.clear()
        self._judged = None
        if self._links is not None:
            self._links.close()
            self._links = None

    def _cover(self, sight: Sight, store: TruthStore) -> frozenset[str]:
        """The names of segments that hold just what is in sight; those that are missing are made."""
        self._refresh()
        cover = self._chosen(sight)
        if not any(cover.missing.values()):
            return cover.names()
        try:
            self._folder.mkdir(mode=0o700, exist_ok=True)
            with _locked(self._folder):
                if self._refresh():
                    cover = self._chosen(sight)
                self._make(self._folder, sight.population, store, cover)
                self._sweep()
        except _LOST:
            cover = self._chosen(sight)
            self._make(self._private().own, sight.population, store, cover)
        return cover.names()

    def _chosen(self, sight: Sight) -> _Cover:
        segments, missing, broken = self._judge(sight.population)
        classes = sight.population.classes
        return _Cover(
            {audience: [*segments.get(audience, ())] for audience in sight.audiences},
            {audience: {*missing.get(audience, classes[audience])} for audience in sight.audiences},
            broken,
        )

    def _judge(self, population: Population) -> _Cover:
        """The cover of all classes; a class without a segment is not in it.

        After a write only the segments that hold what it changed are compared: all of 20,000 resources take 5 ms.
        """
        former, kept = self._judged, dict[Audience, list[Segment]]()
        changed = None if former is None else population.changed_since(former[0])
        loose: set[int] = set()
        if former is not None and changed is not None:
            loose |= changed
            for audience, chosen in former[1].segments.items():
                whole = [one for one in chosen if one.name in self._known and one.held.keys().isdisjoint(changed)]
                names = {one.name for one in whole}
                loose.update(former[1].missing[audience], *(one.held for one in chosen if one.name not in names))
                kept |= {audience: whole} if whole else {}
        missing = {audience: set[int]() for audience in kept}
        for number in loose:
            own = population.audience_of.get(number)
            if own is not None and own in missing:
                missing[own].add(number)
        cover = _Cover(kept, missing, [])
        placed = cover.names()
        for segment in self._known.values():
            if segment.name not in placed:
                _place(segment, population, cover)
        self._judged = population, cover
        return cover

    def _make(self, folder: Path, population: Population, store: TruthStore, cover: _Cover) -> None:
        """Write the missing segments from what broken ones hold and from the truth, and delete the broken ones."""
        held = sum(one.weight for one in self._known.values()) or store.counts()["characters"]
        most = max(_LEAST_CHARACTERS, held // _MOST_SEGMENTS)
        for audience, numbers in cover.missing.items():
            wanted = {number: population.classes[audience][number] for number in numbers}
            if not wanted:
                continue
            sources = [one for one in cover.broken if not wanted.items().isdisjoint(one.held.items())]
            joined = _smallest(cover.segments[audience], most - _weight(wanted, sources))
            wanted.update(chain.from_iterable(one.held.items() for one in joined))
            blocks = self._blocks(dict(wanted), [*sources, *joined], store)
            # A segment that grows by an edit stays one.
            made = self._write_all(folder, blocks, wanted, most * 3 // 2 if sources else most)
            cover.segments[audience] = [*(one for one in cover.segments[audience] if one not in joined), *made]
            self._remove(joined)
        self._remove(one for one in cover.broken if _is_covered(one, population, cover.missing))

    def _blocks(self, wanted: dict[int, int], sources: Iterable[Segment], store: TruthStore) -> Iterator[TermBlock]:
        """The resources that are wanted, in the blocks that segments have of them, and the others."""
        loose: list[PreparedResource] = []
        for source in sources:
            for block in read_terms(source):
                kept = [one for one in block.resources if _is_same(one.number, wanted, source.held)]
                for prepared in kept:
                    del wanted[prepared.number]
                if block.is_small or len(kept) < len(block.resources):
                    loose += kept
                else:
                    yield block
        others = (prepare(document, number, unit=self._unit) for number, document in store.documents(wanted))
        yield from pack_terms(chain(loose, others))

    def _write_all(
        self, folder: Path, blocks: Iterable[TermBlock], wanted: Mapping[int, int], most: int
    ) -> Iterator[Segment]:
        left, batch, weight = dict(wanted), list[TermBlock](), 0
        for block in blocks:
            batch.append(block)
            weight += block.weight
            if weight >= most:
                held = {prepared.number: left.pop(prepared.number) for one in batch for prepared in one.resources}
                yield self._write(folder, batch, held)
                batch, weight = [], 0
        # Resources deleted meanwhile count as held: the state has changed, and everything is looked at again.
        if batch or left:
            yield self._write(folder, batch, left)

    def _write(self, folder: Path, blocks: list[TermBlock], held: dict[int, int]) -> Segment:
        segment = write_segment(folder, blocks, held, self._made_for)
        self._known[segment.name] = segment
        return segment

    def _refresh(self) -> bool:
        """Look which segments there are, and return whether they differ; those of this process alone stay."""
        own = self._links.own if self._links is not None else None
        try:
            names = {entry.name for entry in os.scandir(self._folder) if entry.name.endswith(SEGMENT)}
        except OSError:
            names = set()
        gone = [one.name for one in self._known.values() if one.folder.parent != own and one.name not in names]
        for name in gone:
            del self._known[name]
        read = [read_segment(self._folder / name, self._made_for) for name in sorted(names - self._known.keys())]
        self._known.update({segment.name: segment for segment in read if segment is not None})
        return bool(gone or any(read))

    def _sweep(self) -> None:
        """Delete what killed processes have left. The caller holds the lock."""
        for path in self._folder.glob("*/"):
            if path.name not in self._known and path.name.endswith((SEGMENT, ".new")):
                discard(path)

    def _open(self, names: frozenset[str]) -> TantivyLeg:
        searcher = None
        if names:
            searcher = self._private().open([self._known[name] for name in sorted(names)], self._known.keys())
        return TantivyLeg(
            OpenedIndex(new_index(schema()), 1), self._folder, self._made_for, Scoring(), self._unit, searcher
        )

    def _private(self) -> Links:
        if self._links is None:
            self._links = Links()
        return self._links

    def _discard(self, names: frozenset[str]) -> None:
        segments = [self._known[name] for name in names if name in self._known]
        self._remove([one for one in segments if damaged_parts(one.folder)] or segments)

    def _remove(self, segments: Iterable[Segment]) -> None:
        for segment in segments:
            self._known.pop(segment.name, None)
            discard_segment(segment.folder)
            for names in [names for names in self._legs if segment.name in names]:
                del self._legs[names]
            if self._links is not None:
                self._links.forget(segment.name)


def discard_classes(folder: Path, segments: Iterable[Path] | None = None) -> list[str]:
    """Delete segments, all of them unless some are named, and return which; none while a process writes some."""
    found = sorted(folder.glob("*/")) if segments is None else [*segments]
    try:
        with _locked(folder, 0.0):
            for segment in found:
                discard_segment(segment)
    except (LockedError, PathNotFoundError, ReadOnlyError):
        return []
    return [segment.name for segment in found]


def _locked(folder: Path, timeout_s: float = _PATIENCE_S) -> WriteLock:
    return WriteLock(folder / "lock", timeout_s=timeout_s)


def _place(segment: Segment, population: Population, cover: _Cover) -> None:
    """Add a segment to its class, or to the broken ones: it has changed, or another one holds some of it."""
    audience = _class_of(segment, population)
    if audience is not None and audience not in cover.missing:
        cover.missing[audience] = set(population.classes[audience])
        cover.segments[audience] = []
    if audience is None or not segment.held.keys() <= cover.missing[audience]:
        cover.broken.append(segment)
    else:
        cover.missing[audience].difference_update(segment.held)
        cover.segments[audience].append(segment)


def _class_of(segment: Segment, population: Population) -> Audience | None:
    """The class whose resources a segment holds, as they are; None when any of them has changed or moved."""
    audience = population.audience_of.get(next(iter(segment.held), -1))
    if audience is None or not segment.held.items() <= population.classes[audience].items():
        return None
    return audience


def _is_same(number: int, wanted: Mapping[int, int], held: Mapping[int, int]) -> bool:
    """Whether a segment holds a resource as it is wanted."""
    return number in wanted and wanted[number] == held.get(number)


def _smallest(segments: Iterable[Segment], room: int) -> list[Segment]:
    """The smallest segments, as far as there is room for them in another one."""
    found = []
    for segment in sorted(segments, key=lambda one: one.weight):
        if (room := room - segment.weight) < 0:
            break
        found.append(segment)
    return found


def _weight(wanted: Mapping[int, int], sources: Iterable[Segment]) -> int:
    """About how many characters are taken over from these segments."""
    shares = (len(wanted.items() & one.held.items()) / len(one.held) * one.weight for one in sources)
    return int(sum(shares))


def _is_covered(segment: Segment, population: Population, audiences: Collection[Audience]) -> bool:
    """Whether other segments hold whatever is still as this one has it."""
    for number, seq in segment.held.items():
        audience = population.audience_of.get(number)
        if audience is not None and audience not in audiences and population.classes[audience][number] == seq:
            return False
    return True
