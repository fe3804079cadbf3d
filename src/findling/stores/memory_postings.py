"""Where the terms of every chunk stand, in plain dictionaries."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence

from findling.domain.plans import FIELDS
from findling.domain.resources import Chunk, Document, Resource
from findling.stores.keyword_scoring import padding
from findling.text.analysis import terms

__all__ = ["Postings"]


class Postings:
    """Field → term → chunk → positions, and the resource of every chunk."""

    def __init__(self) -> None:
        self.resources: dict[int, Resource] = {}
        self._places: dict[str, dict[str, dict[int, list[int]]]] = {field: {} for field in FIELDS}
        self._lengths: dict[str, dict[int, int]] = {field: {} for field in FIELDS}
        self._totals = dict.fromkeys(FIELDS, 0)

    def add(self, chunk: Chunk, document: Document) -> None:
        """Take in a chunk."""
        self.resources[chunk.cid] = document.resource
        for field, text in _texts(chunk, document).items():
            given = terms(text)
            length = len(given) + (padding(text) if field == "body" and given else 0)
            self._lengths[field][chunk.cid] = length
            self._totals[field] += length
            for position, term in enumerate(given):
                self._places[field].setdefault(term, {}).setdefault(chunk.cid, []).append(position)

    def drop(self, cid: int) -> None:
        """Forget a chunk, and the terms that no other chunk has."""
        self.resources.pop(cid, None)
        for field, places in self._places.items():
            self._totals[field] -= self._lengths[field].pop(cid, 0)
            for term in [term for term, chunks in places.items() if cid in chunks]:
                del places[term][cid]
                if not places[term]:
                    del places[term]

    def beginning(self, prefix: str, fields: Iterable[str] = FIELDS) -> list[str]:
        """The terms of some fields that begin so."""
        return sorted({term for field in fields for term in self._places[field] if term.startswith(prefix)})

    def spread(self, term: str, fields: Iterable[str] = FIELDS) -> int:
        """In how many chunks a term stands in one of the fields."""
        return len(set().union(*(self._places[field].get(term, ()) for field in fields)))

    def length(self, field: str, cid: int) -> float:
        """How long a field of a chunk counts, as a multiple of what is usual."""
        return self._lengths[field][cid] * len(self.resources) / self._totals[field]

    def places(self, term: str, field: str) -> dict[int, list[int]]:
        """Chunk → the positions of a term in a field."""
        return self._places[field].get(term, {})

    def rows(self, row: Sequence[Collection[str]], field: str) -> dict[int, list[int]]:
        """Chunk → where in the field a row begins; each place of it is taken by one of some terms."""
        first, *others = [self._standing(forms, field) for forms in row]
        begins = {cid: sorted(positions) for cid, positions in first.items()}
        for step, there in enumerate(others, 1):
            begins = {cid: [at for at in begun if at + step in there.get(cid, ())] for cid, begun in begins.items()}
        return {cid: begun for cid, begun in begins.items() if begun}

    def _standing(self, forms: Iterable[str], field: str) -> dict[int, set[int]]:
        standing: dict[int, set[int]] = defaultdict(set)
        for form in forms:
            for cid, positions in self._places[field].get(form, {}).items():
                standing[cid].update(positions)
        return standing


def _texts(chunk: Chunk, document: Document) -> dict[str, str]:
    resource = document.resource
    return {
        "body": document.text[chunk.start : chunk.end],
        "title": resource.title,
        "heading": "\n".join(chunk.heading),
        "path": resource.path,
        "tags": " ".join(resource.tags),
        "name": resource.fields.get("name") or resource.path.rpartition("/")[2],
        "description": resource.fields.get("description", ""),
    }
