"""The legs that find by meaning: the same files, filled from the text at once or from a model's vectors by and by."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from itertools import islice
from typing import TYPE_CHECKING

from findling.domain.errors import CorruptError
from findling.domain.ports import Change, TruthStore, VectorHits
from findling.models.ports import Embedder
from findling.pipelines.indexing.embedding_run import to_rows
from findling.text.chunking.chunk_plan import passage

if TYPE_CHECKING:
    from findling.domain.backends import VectorTable
    from findling.domain.ports import Vectors

__all__ = ["InstantLeg", "RefinedLeg"]

_ROWS_AT_A_TIME = 2048


class _MatrixLeg:
    """What both legs have in common: one table, and the number of the last change it has absorbed."""

    def __init__(self, table: VectorTable) -> None:
        self._table = table

    def __len__(self) -> int:
        return len(self._table)

    def seq(self) -> int:
        """The number of the latest change that is durably absorbed."""
        return self._table.state.get("seq", 0)

    def count(self, allowed: Collection[int]) -> int:
        """How many chunks of these resources it has a vector of."""
        return self._table.count(allowed)

    def has_news(self) -> bool:
        """Whether there is something to absorb besides changes."""
        return False

    def search(
        self,
        query: Vectors,
        limit: int,
        *,
        allowed: Collection[int] | None = None,
        also: Sequence[int] = (),
        exact: bool = False,
    ) -> VectorHits:
        """The `limit` chunks nearest to a vector, and the cosines of those in `also`."""
        return self._table.search(query, limit, allowed=allowed, also=also, exact=exact)

    @property
    def where(self) -> str:
        """Its place, for messages."""
        return self._table.where

    def damaged_parts(self) -> list[str]:
        """The parts that are not what was written; for checks."""
        return self._table.damaged_parts()

    def cids(self) -> set[int]:
        """Every chunk id the leg holds; for checks."""
        return self._table.cids()

    def clear(self) -> None:
        """Forget everything, durably with the next commit."""
        self._table.clear()

    def close(self) -> None:
        """Release files; what was not committed is forgotten."""
        self._table.close()


class InstantLeg(_MatrixLeg):
    """A vector for every chunk that holds a known word, made while it is indexed."""

    speed = "instant"

    def __init__(self, table: VectorTable, embedder: Embedder) -> None:
        super().__init__(table)
        self._embedder = embedder

    def apply(self, changes: Iterable[Change]) -> None:
        """Take changes in; they become visible and durable with `commit`."""
        for change in changes:
            self._table.drop(change.dropped)
            if change.document is None or not change.added:
                continue
            document = change.document
            positions = [i for i, chunk in enumerate(document.chunks) if chunk.cid in change.added]
            if document.vectors:
                from findling.models.local.instant import from_codes

                vectors = from_codes([document.vectors[i] for i in positions])
            else:
                chunks = [document.chunks[i] for i in positions]
                vectors = self._embedder.embed(
                    [passage(document.resource, c.heading, document.text[c.start : c.end]) for c in chunks]
                )
            # A chunk without a known word has no direction.
            known = [row for row, vector in enumerate(vectors) if vector.any()]
            cids = [document.chunks[positions[row]].cid for row in known]
            self._table.add(cids, [change.number] * len(cids), vectors[known])

    def commit(self, seq: int) -> None:
        """Make everything applied so far durable, together with the number it reaches."""
        self._table.commit(seq=seq)


class RefinedLeg(_MatrixLeg):
    """The vectors that the store holds of one model."""

    speed = "refined"

    def __init__(self, table: VectorTable, store: TruthStore, model: str) -> None:
        super().__init__(table)
        self._store = store
        self._model = model

    def mark(self) -> int:
        """The mark of the latest vector that is durably absorbed."""
        return self._table.state.get("mark", 0)

    def has_news(self) -> bool:
        """Whether the store holds vectors that the leg has not absorbed."""
        return next(iter(self._store.vector_rows(self._model, self.mark())), None) is not None

    def apply(self, changes: Iterable[Change]) -> None:
        """Take changes in; they become visible and durable with `commit`."""
        if not self.seq():
            return  # `commit` takes in all vectors of all chunks
        for change in changes:
            self._table.drop(change.dropped)
            if change.document is None or not change.added:
                continue
            chunks = [chunk for chunk in change.document.chunks if chunk.cid in change.added]
            known = self._store.vectors(self._model, [chunk.digest for chunk in chunks])
            chunks = [chunk for chunk in chunks if chunk.digest in known]
            self._add([chunk.cid for chunk in chunks], [change.number] * len(chunks), [known[c.digest] for c in chunks])

    def commit(self, seq: int) -> None:
        """Make everything applied so far durable, and with it all new vectors of the store."""
        mark = self.mark()
        rows = iter(self._store.vector_rows(self._model, mark))
        while batch := list(islice(rows, _ROWS_AT_A_TIME)):
            self._add([row.cid for row in batch], [row.number for row in batch], [row.vector for row in batch])
            mark = batch[-1].mark
        self._table.commit(seq=seq, mark=mark)

    def _add(self, cids: list[int], numbers: list[int], vectors: list[bytes]) -> None:
        if not cids:
            return
        try:
            rows = to_rows(vectors)
            self._table.add(cids, numbers, rows)
        except ValueError as error:  # a store may have them from elsewhere
            raise CorruptError(
                f"the vectors of {self._model} in the index are not as its model makes them: {error}",
                hint="findling index --rebuild, then findling refine",
            ) from error
