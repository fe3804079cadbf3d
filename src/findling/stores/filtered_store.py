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
