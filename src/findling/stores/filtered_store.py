"""A truth store as far as one caller may see it."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Sequence
from dataclasses import replace

from findling.domain.ports import TruthStore
from findling.domain.queries import Filters
from findling.domain.records import GlossaryTerm
from findling.domain.resources import Document, Resource, StoredChunk
from findling.domain.sight import Sight

__all__ = ["VisibleStore"]


class VisibleStore:
    """Implements `ReadStore`: what is out of sight is not there, for whatever question.

    Every resource is checked as it is now, not as it was when the sight was taken. The glossary is the workspace's own
    list of words, for all who may search in it.
    """

    def __init__(self, store: TruthStore, sight: Sight) -> None:
        self._store = store
        self._numbers = sight.numbers
        self._rights = sight.rights

    def chunks(self, cids: Sequence[int]) -> dict[int, StoredChunk]:
        """The chunks that exist among `cids`, in their order."""
        return {cid: chunk for cid, chunk in self._store.chunks(cids).items() if self._may_see(chunk.resource)}

    def resources_of(self, cids: Sequence[int]) -> dict[int, Resource]:
        """The resources of those chunks that exist among `cids`."""
        return {cid: one for cid, one in self._store.resources_of(cids).items() if self._may_see(one)}

    def document(self, rid: str) -> Document | None:
        """One resource with its text and chunks."""
        # The right first, so that what is hidden takes no longer to be refused than what is not there.
        right = self._store.right_to(rid)
        if right is None or not self._rights.may_see(right.rid, right.path, right.visibility):
            return None
        document = self._store.document(rid)
        if document is None or not self._may_see(document.resource):
            return None
        return document._replace(resource=_without_list(document.resource))

    def rids(self, type: str | None = None) -> Iterator[str]:  # noqa: A002 - the word of the port
        """All resource ids in order, or those of one type."""
        if type is not None:
            return (resource.rid for resource in self.resources() if resource.type == type)
        rights = self._store.rights()
        return iter(sorted(one.rid for one in rights if self._rights.may_see(one.rid, one.path, one.visibility)))

    def resources(self) -> Iterator[Resource]:
        """All resources in the order of their ids, as they are at the time of the call."""
        return map(_without_list, filter(self._may_see, self._store.resources()))

    def matching(self, filters: Filters) -> list[int]:
        """The numbers of all resources that pass the filters."""
        return [number for number in self._store.matching(filters) if number in self._numbers]

    def successors(self, rids: Iterable[str], among: Container[int] | None = None) -> dict[str, str]:
        """Those of the resources that another one supersedes, each with that one; of several the one changed last."""
        return self._store.successors(rids, self._among(among))

    def superseded(self, among: Container[int] | None = None) -> list[str]:
        """Every id that some other resource supersedes, in order."""
        return self._store.superseded(self._among(among))

    def glossary(self) -> list[GlossaryTerm]:
        """All terms of the glossary, ordered by group and key."""
        return self._store.glossary()

    def glossary_version(self) -> int:
        """A number that rises whenever the glossary is written."""
        return self._store.glossary_version()

    def _may_see(self, resource: Resource) -> bool:
        return self._rights.may_see(resource.rid, resource.path, resource.visibility)

    def _among(self, numbers: Container[int] | None) -> Container[int]:
        return self._numbers if numbers is None else [one for one in self._numbers if one in numbers]


def _without_list(resource: Resource) -> Resource:
    """Whoever may see something need not know who else may."""
    return replace(resource, visibility=None)
