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
        self._words: dict[str, set[str]] = {}
        self._rows: dict[str, list[tuple[list[str], str, str]]] = {}
        for surface in surfaces:
            # GitHub stands in a text as `git hub` and as `github`.
            for row in (row_terms(surface), row_terms(surface.lower())):
                if len(row) == 1:
                    self._words.setdefault(stem(row[0]), set()).add(surface)
                elif row:
                    self._rows.setdefault(row[0], []).append((row[:-1], stem(row[-1]), surface))

    def look(self, text: str) -> None:
        """Add to `found` what stands in the text."""
        given = terms(text)
        for term in set(given):
            self.found |= self._words.get(stem(term), _NOTHING)
        for at, term in enumerate(given):
            for row, last, surface in self._rows.get(term, ()):
                end = at + len(row)
                if given[at:end] == row and end < len(given) and stem(given[end]) == last:
                    self.found.add(surface)


_NOTHING: frozenset[str] = frozenset()
