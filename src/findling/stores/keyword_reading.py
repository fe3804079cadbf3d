"""Reading the files of a keyword leg, any of which may be damaged."""

from __future__ import annotations

from pathlib import Path
from types import TracebackType

import tantivy

from findling.domain.errors import CorruptError
from findling.stores.keyword_scoring import PAD

__all__ = ["Reading", "Statistics"]


class Reading:
    """Turns what tantivy says about damaged files into CorruptError: most are refused, some make it panic.

    Nothing but reading may stand inside it: a value that tantivy refuses looks like damage, too. It is a class since a
    query enters it hundreds of times, and a generator would take five times as long.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def __enter__(self) -> None:
        return None

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        # A panic arrives as an exception that is no Exception and whose class cannot be imported.
        if error is None or not (isinstance(error, ValueError) or type(error).__name__ == "PanicException"):
            return
        raise CorruptError(
            f"the keyword leg in {self._folder} cannot be read: {error}", hint="findling repair"
        ) from error


class Statistics:
    """What queries are built from: the words of one state of the index. Every question may raise CorruptError."""

    def __init__(self, searcher: tantivy.Searcher, reading: Reading) -> None:
        self._searcher = searcher
        self._reading = reading
        with reading:
            self.entries = searcher.num_docs

    def frequency(self, field: str, term: str) -> int:
        """In how many entries a term stands in a field; what was dropped counts until the index tidies itself up."""
        with self._reading:
            return self._searcher.doc_freq(field, term)

    def begun(self, field: str, prefix: str, limit: int | None = None) -> list[tuple[str, int]]:
        """The terms of a field that begin so, in order, each with its frequency."""
        with self._reading:
            found = self._searcher.terms_with_prefix(field, prefix, limit=limit)
        return found if prefix else [pair for pair in found if pair[0] != PAD]
