"""Which terms of a glossary stand in texts, so that none is sent away that stands only in what must not be."""

from __future__ import annotations

from collections.abc import Iterable

from findling.text.analysis import row_terms, terms
from findling.text.stemming import stem

__all__ = ["Presence"]


class Presence:
    """Looks for surfaces in one text after the other: their words in a row, the last one in any form."""

    def __init__(self, surfaces: Iterable[str]) -> None:
        self.found: set[str] = set()
        self._seen: set[str] = set()
        self._surfaces: dict[tuple[str, ...], set[str]] = {}
        self._lengths: dict[str, set[int]] = {}
        for surface in surfaces:
            # GitHub stands in a text as `git hub` and as `github`.
            for row in filter(None, (row_terms(surface), row_terms(surface.lower()))):
                self._surfaces.setdefault(_key(row), set()).add(surface)
                if len(row) > 1:
                    self._lengths.setdefault(row[0], set()).add(len(row))

    def look(self, text: str) -> None:
        """Add to `found` what stands in the text."""
        given = terms(text)
        new = set(given) - self._seen
        self._seen |= new
        for term in new:
            self._note([term])
        for at, term in enumerate(given):
            for length in self._lengths.get(term, ()):
                self._note(given[at : at + length])

    def _note(self, row: list[str]) -> None:
        self.found |= self._surfaces.get(_key(row), _NOTHING)


_NOTHING: frozenset[str] = frozenset()


def _key(row: list[str]) -> tuple[str, ...]:
    return *row[:-1], stem(row[-1])
