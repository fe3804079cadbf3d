"""Glossary, relations, accesses and values of the store in plain dictionaries."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Container, Iterable, Iterator, Mapping

from findling.domain.permissions import Relation
from findling.domain.records import Access, GlossaryTerm
from findling.stores.validation import (
    check_accesses,
    check_glossary,
    check_relations,
)

__all__ = ["MemoryRecords"]


class MemoryRecords(ABC):
    """The part of `MemoryStore` that is small tables."""

    def __init__(self) -> None:
        self._glossary: dict[tuple[str, str], GlossaryTerm] = {}
        self._glossary_version = 0
        self._relations: set[Relation] = set()
        self._relations_version = 0
        self._accesses: dict[str, Access] = {}

    @abstractmethod
    def _predecessors(self) -> Iterator[tuple[int, str, str]]:
        """Number and id of each resource that supersedes another one, and the id of that one, oldest change first."""

    def successors(self, rids: Iterable[str], among: Container[int] | None = None) -> dict[str, str]:
        """Those of the resources that another one supersedes, each with that one; of several the one changed last."""
        latest = {old: rid for number, rid, old in self._predecessors() if among is None or number in among}
        return {rid: latest[rid] for rid in rids if rid in latest}

    def superseded(self, among: Container[int] | None = None) -> list[str]:
        """Every id that some other resource supersedes, in order; there need be no resource that has it."""
        return sorted({old for number, _, old in self._predecessors() if among is None or number in among})

    def glossary(self) -> list[GlossaryTerm]:
        """All terms of the glossary, ordered by group and key."""
        return [self._glossary[place] for place in sorted(self._glossary)]

    def glossary_version(self) -> int:
        """A number that rises with every `write_glossary`; 0 before the first."""
        return self._glossary_version

    def write_glossary(self, terms: Iterable[GlossaryTerm], dropped: Iterable[tuple[str, str]] = ()) -> None:
        """Drop terms by group and key, then put terms in."""
        kept, gone = list(terms), set(dropped)
        check_glossary(kept, gone)
        left = {place: term for place, term in self._glossary.items() if place not in gone}
        self._glossary = left | {(term.group, term.key): term for term in kept}
        self._glossary_version += 1

    def relations(self) -> list[Relation]:
        """All relations, in order."""
        return sorted(self._relations)

    def relations_version(self) -> int:
        """A number that rises with every `write_relations`; 0 before the first."""
        return self._relations_version

    def write_relations(self, added: Iterable[Relation], dropped: Iterable[Relation] = ()) -> None:
        """Drop relations, then put relations in."""
        kept = list(added)
        check_relations(kept)
        self._relations = (self._relations - set(dropped)) | set(kept)
        self._relations_version += 1

    def accesses(self, rids: Iterable[str]) -> dict[str, Access]:
        """How often those of the resources were accessed that were, and when last."""
        return {rid: self._accesses[rid] for rid in rids if rid in self._accesses}

    def add_accesses(self, accesses: Mapping[str, Access]) -> None:
        """Count accesses in: the numbers add up, the latest time stays."""
        check_accesses(accesses)
        for rid, access in accesses.items():
            known = self._accesses.get(rid, Access(0, access.last_at))
            self._accesses[rid] = Access(known.count + access.count, max(known.last_at, access.last_at))
