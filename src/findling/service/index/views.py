"""Retrievers of callers with limited rights: they hold nothing else than what the caller may see.

So statistics, vocabulary, counts, neighbours and errors cannot tell of anything else. Keyword legs are put together
from segments in `views/`, one class of visibility each, which all callers share; vectors are filtered.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Collection, Container, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from findling.domain.backends import LimitedLegs
from findling.domain.permissions import PATH, Right
from findling.domain.ports import KeywordLeg, TruthStore, VectorHits, VectorSearch
from findling.domain.queries import Filters
from findling.domain.records import GlossaryTerm
from findling.domain.resources import Document, Resource, Share, StoredChunk, StoredText, beside
from findling.domain.sight import Audiences, Population, Rights, Sight
from findling.domain.values import changed, record
from findling.pipelines.indexing.embedding_run import read_up_to
from findling.pipelines.retrieve.vector_retrieval import Meaning, ModelCoverage, Space
from findling.service.index.index_files import OpenedWorkspace

if TYPE_CHECKING:
    from findling.domain.ports import Vectors
    from findling.service.settings.settings import Settings


@record()
class IndexState:
    """The state that a sight depends on: another store, another change or another relation gives another one."""

    store_id: str
    seq: int
    relations: int


class VisibleStore:
    """Implements `ReadStore` for the resources in sight, each checked as it is now.

    The glossary is the workspace's own list of words, for every caller.
    """

    def __init__(self, store: TruthStore, sight: Sight) -> None:
        self._store = store
        self._numbers = sight.numbers
        self._rights = sight.rights

    def chunks(self, cids: Sequence[int]) -> dict[int, StoredChunk]:
        return {cid: chunk for cid, chunk in self._store.chunks(cids).items() if self._may_see(chunk.resource)}

    def resources_of(self, cids: Sequence[int]) -> dict[int, Resource]:
        return {cid: one for cid, one in self._store.resources_of(cids).items() if self._may_see(one)}

    def document(self, rid: str) -> Document | None:
        # The right first, so that what is hidden takes no longer to be refused than what is not there.
        right = self._store.right_to(rid)
        if right is None or not self._rights.may_see(right.rid, right.path, right.visibility):
            return None
        document = self._store.document(rid)
        if document is None or not self._may_see(document.resource):
            return None
        return document._replace(resource=_without_list(document.resource))

    def rids(self, type: str | None = None) -> Iterator[str]:  # noqa: A002 - the word of the port
        if type is not None:
            return (resource.rid for resource in self.resources() if resource.type == type)
        rights = self._store.rights()
        return iter(sorted(one.rid for one in rights if self._rights.may_see(one.rid, one.path, one.visibility)))

    def resources(self) -> Iterator[Resource]:
        return map(_without_list, filter(self._may_see, self._store.resources()))

    def rights(self, since: int = 0, *, among: Collection[int] | None = None) -> list[Right]:
        rights = self._store.rights(since, among=among)
        seen = [one for one in rights if self._rights.may_see(one.rid, one.path, one.visibility)]
        return [one._replace(visibility=None) for one in seen]

    def texts(self, numbers: Iterable[int]) -> Iterator[StoredText]:
        # What is out of sight is not even read; what is read is looked at again.
        for one in self._store.texts(number for number in numbers if number in self._numbers):
            if self._rights.may_see(one.rid, one.path, one.visibility):
                yield one._replace(visibility=None)

    def chunk_spans(self, numbers: Collection[int]) -> list[tuple[int, int, int, int]]:
        return self._store.chunk_spans([number for number in numbers if number in self._numbers])

    def matching(self, filters: Filters) -> list[int]:
        return [number for number in self._store.matching(filters) if number in self._numbers]

    def successors(self, rids: Iterable[str], among: Container[int] | None = None) -> dict[str, str]:
        return self._store.successors(rids, self._among(among))

    def superseded(self, among: Container[int] | None = None) -> list[str]:
        return self._store.superseded(self._among(among))

    def glossary(self) -> list[GlossaryTerm]:
        return self._store.glossary()

    def glossary_version(self) -> int:
        return self._store.glossary_version()

    def _may_see(self, resource: Resource) -> bool:
        return self._rights.may_see(resource.rid, resource.path, resource.visibility)

    def _among(self, numbers: Container[int] | None) -> Container[int]:
        return self._numbers if numbers is None else [one for one in self._numbers if one in numbers]


def _without_list(resource: Resource) -> Resource:
    """Hide from a viewer who else may see the resource."""
    return replace(resource, visibility=None)


_REMEMBERED = 256
"""Callers whose sight is kept: a few references to what all callers share."""


class _KeptSight(NamedTuple):
    """The sight of a caller on one state, and the leg that it searches."""

    state: IndexState
    sight: Sight
    leg: KeywordLeg


class Seen(NamedTuple):
    """The part of one state of the truth that a caller sees."""

    store: TruthStore
    state: IndexState
    sight: Sight
    leg: KeywordLeg

    def visible(self) -> VisibleStore:
        """The truth in sight."""
        return VisibleStore(self.store, self.sight)

    def limited(self, at_hand: Meaning) -> Meaning:
        """Vectors that all of what may be seen has: how far a model has come elsewhere must not show."""
        numbers = self.sight.numbers
        refined = [_limited_space(space, numbers) for space in at_hand.spaces if space.is_refined]
        serving = [one for one in refined if self._is_read(one)]
        readings = tuple(ModelCoverage("", one.languages, int(one in serving), 1) for one in refined)
        if left := beside(one.share for one in serving):
            serving += [changed(_limited_space(space, numbers), share=left) for space in at_hand.spare([])]
        return at_hand._replace(
            spaces=tuple(serving),
            readings=readings,
            spare=lambda notes: [_limited_space(space, numbers) for space in at_hand.spare(notes)],
            degraded=() if serving else at_hand.degraded,
        )

    def _is_read(self, space: Space) -> bool:
        """Whether a run of the model over all of it has ended since the latest change of it.

        A passage that others have had embedded has its vector from the moment it is added. Were that enough, who adds
        a guess could tell whether it stands word for word in something hidden.
        """
        if self.sight.latest > read_up_to(self.store, space.embedder.fingerprint, space.share):
            return False
        if space.share.numbers is None:
            return len(space.leg) >= self.leg.size()
        own = space.share.numbers.intersection(self.sight.numbers)
        share = Share(own, space.share.others | space.share.numbers - own)
        return space.leg.count(own) >= self.store.coverage(space.embedder.fingerprint, share)[1]


class WorkspaceSights:
    """The sights of all callers of one workspace, and the keyword legs that hold just these."""

    def __init__(self, files: OpenedWorkspace, settings: Settings) -> None:
        self._files = files
        self._settings = settings
        self._kept: OrderedDict[tuple[str, ...], _KeptSight] = OrderedDict()
        self._population: tuple[IndexState, Population] | None = None
        self._segments: tuple[str, LimitedLegs] | None = None
        self._guard = threading.RLock()

    def sight(self, principals: Iterable[str]) -> Sight:
        """The sight of these principals now."""
        with self._guard:
            return Sight(self._rights(principals), self._populated(self.state()))

    def close(self) -> None:
        """Release files; closing twice is fine."""
        with self._guard:
            self._kept.clear()
            self._population = None
            if self._segments is not None:
                self._segments[1].close()
                self._segments = None

    def seen(self, principals: tuple[str, ...]) -> Seen:
        """The sight of these principals now; their leg is kept as long as the state is the same.

        Raises InvalidValueError for what is no principal, CorruptError when the truth is damaged.
        """
        with self._guard:
            while True:
                store = self._files.store.pinned()
                state = _state_of(store)
                kept = self._kept.get(principals)
                is_kept = kept is not None and kept.state == state
                if kept is None or not is_kept:
                    sight = Sight(self._rights(principals), self._populated(state))
                    kept = _KeptSight(state, sight, self._for_store(state.store_id).for_sight(sight, self._files.store))
                    # What a former state has in sight is no longer needed.
                    for former in [one for one, other in self._kept.items() if other.state != state]:
                        del self._kept[former]
                    self._kept[principals] = kept
                self._kept.move_to_end(principals)
                while len(self._kept) > _REMEMBERED:
                    self._kept.popitem(last=False)
                # What was written while a leg was made may be in the leg and out of sight.
                if is_kept or self.state() == state:
                    return Seen(store, *kept)

    def discard(self, leg: KeywordLeg) -> None:
        """Delete the damaged parts of the leg of a caller."""
        with self._guard:
            self._kept.clear()
            if self._segments is not None:
                self._segments[1].discard(leg)

    def _for_store(self, store_id: str) -> LimitedLegs:
        if self._segments is None or self._segments[0] != store_id:
            if self._segments is not None:
                self._segments[1].close()
            self._segments = store_id, self._files.limited_legs()
        return self._segments[1]

    def _populated(self, state: IndexState) -> Population:
        """The resources of a state by their classes. After a write only what was changed is read."""
        store, former = self._files.store, self._population
        if former is not None and former[0] == state:
            return former[1]
        audiences = Audiences(store.relations())
        population = None
        if former is not None and former[0].store_id == state.store_id:
            names = audiences.differing(former[1].audiences)
            if not any(name.startswith(PATH) for name in names):  # else a folder, with all that lies below it
                shared = [right for name in names if (right := store.right_to(name)) is not None]
                changed = store.rights(former[0].seq)
                population = Population.of(audiences, [*changed, *shared], former[1])
                # A change that no resource bears was a deletion, or that of a resource which has changed again.
                if sum(one.seq <= state.seq for one in changed) < state.seq - former[0].seq:
                    population = population.only(store.matching(Filters()))
        if population is None:
            population = Population.of(audiences, store.rights())
        self._population = state, population
        return population

    def state(self) -> IndexState:
        """The state of the index now."""
        return _state_of(self._files.store.pinned())

    def _rights(self, principals: Iterable[str]) -> Rights:
        # Only where the workspace has no policy of its own: that one lives under the version of the relations.
        is_public = self._settings["permissions.unset"] == "public"
        return Rights(principals, self._files.store.relations(), unset_is_public=is_public)


def _state_of(store: TruthStore) -> IndexState:
    return IndexState(store.get_meta("store_id") or "", store.seq(), store.relations_version())


class _VisibleVectors:
    """Implements `VectorSearch`: the rows of what may be seen, each looked at, whatever else there is."""

    def __init__(self, leg: VectorSearch, numbers: Collection[int]) -> None:
        self._leg = leg
        self._numbers = numbers
        self.speed = leg.speed

    def __len__(self) -> int:
        return self._leg.count(self._numbers)

    def count(self, allowed: Collection[int]) -> int:
        """The number of chunks of these resources with a vector."""
        return self._leg.count(self._within(allowed))

    def search(
        self,
        query: Vectors,
        limit: int,
        *,
        allowed: Collection[int] | None = None,
        also: Sequence[int] = (),
        exact: bool = True,
    ) -> VectorHits:
        """The `limit` chunks nearest to a vector; always exact."""
        within = self._numbers if allowed is None else self._within(allowed)
        return self._leg.search(query, limit, allowed=within, also=also, exact=True)

    def _within(self, allowed: Collection[int]) -> list[int]:
        return [number for number in allowed if number in self._numbers]


def _limited_space(space: Space, numbers: Collection[int]) -> Space:
    return Space(_VisibleVectors(space.leg, numbers), space.embedder, share=space.share, languages=space.languages)
