"""Legs that are written together, and those that find by meaning: filled from the text, or from a model's vectors."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Self

from findling.domain.errors import CorruptError, LockedError, UnreachableError
from findling.domain.ports import Change, LegIndex, TruthStore
from findling.domain.resources import MADE_BY_MODELS, Chunk, Document
from findling.text.chunking.chunk_plan import passage

if TYPE_CHECKING:
    from findling.domain.backends import VectorTable
    from findling.domain.ports import Vectors
    from findling.stores.lock import HostLock

_ROWS_AT_A_TIME = 2048

_PATIENCE_S = 600.0
"""Longest wait for a turn that another host has."""


_Added = tuple[Document, int, Chunk, int]
"""A chunk to add: its document, its place there, the chunk itself, and the number of its resource."""


class _TableLeg:
    """The common part of both legs: one table, and the number of the last change it has absorbed."""

    def __init__(self, table: VectorTable) -> None:
        self.table = table
        self.search, self.count = table.search, table.count
        self.clear, self.close = table.clear, table.close

    def __len__(self) -> int:
        return len(self.table)

    def seq(self) -> int:
        """The number of the latest change that is durably absorbed."""
        return self.table.state.get("seq", 0)

    def following(self, store: TruthStore) -> Self:
        """The same leg, fed from another state of the truth."""
        return self

    def has_news(self) -> bool:
        """Whether there is something to absorb besides changes."""
        return False

    def apply(self, changes: Iterable[Change]) -> None:
        """Absorb changes; they become visible and durable with `commit`."""
        # Rows of many documents at once: row by row, numpy and the system take four times as long.
        waiting: list[_Added] = []
        for change in changes:
            if waiting and (change.dropped or len(waiting) >= _ROWS_AT_A_TIME):
                self._add_chunks(waiting)
                waiting = []
            self.table.drop(change.dropped)
            document, added = change.document, change.added
            if document is not None and added:
                number = change.number
                waiting += [
                    (document, place, chunk, number)
                    for place, chunk in enumerate(document.chunks)
                    if chunk[0] in added  # its id
                ]
        if waiting:
            self._add_chunks(waiting)

    def commit(self, seq: int) -> None:
        """Make everything applied so far durable, together with the number it reaches."""
        self.table.commit(seq=seq)

    def _add_chunks(self, added: list[_Added]) -> None:
        raise NotImplementedError


class InstantLeg(_TableLeg):
    """A vector for every chunk that holds a known word, made while it is indexed."""

    speed = "instant"

    def __init__(self, table: VectorTable, codes_of: Callable[[Sequence[str]], Sequence[bytes]]) -> None:
        super().__init__(table)
        self._codes_of = codes_of

    def _add_chunks(self, added: list[_Added]) -> None:
        if all(document.vectors for document, _, _, _ in added):
            codes: Sequence[bytes] = [document.vectors[place] for document, place, _, _ in added]
        else:
            codes = self._codes_of([_passage(document, chunk) for document, _, chunk, _ in added])
        self.table.add_codes([chunk[0] for _, _, chunk, _ in added], [number for *_, number in added], codes)


class RefinedLeg(_TableLeg):
    """The vectors that the store holds of one model."""

    speed = "refined"

    def __init__(self, table: VectorTable, store: TruthStore, model: str) -> None:
        super().__init__(table)
        self._store = store
        self._model = model

    def following(self, store: TruthStore) -> Self:
        """The same leg, fed from another state of the truth."""
        return type(self)(self.table, store, self._model)

    def has_news(self) -> bool:
        """Whether the store holds vectors that the leg has not absorbed."""
        return next(iter(self._store.vector_rows(self._model, self._mark())), None) is not None

    def apply(self, changes: Iterable[Change]) -> None:
        """Absorb changes; the first `commit` absorbs the vectors of all chunks by itself."""
        if self.seq():
            super().apply(changes)

    def commit(self, seq: int) -> None:
        """Make everything applied so far durable, and with it all new vectors of the store."""
        mark = self._mark()
        rows = iter(self._store.vector_rows(self._model, mark))
        while batch := list(islice(rows, _ROWS_AT_A_TIME)):
            self._add([row.cid for row in batch], [row.number for row in batch], [row.vector for row in batch])
            mark = batch[-1].mark
        self.table.commit(seq=seq, mark=mark)

    def _mark(self) -> int:
        """The mark of the latest vector that is durably absorbed."""
        return self.table.state.get("mark", 0)

    def _add_chunks(self, added: list[_Added]) -> None:
        known = self._store.vectors(self._model, [chunk.digest for _, _, chunk, _ in added])
        read = [(chunk, number) for _, _, chunk, number in added if chunk.digest in known]
        if read:
            vectors = [known[chunk.digest] for chunk, _ in read]
            self._add([chunk.cid for chunk, _ in read], [number for _, number in read], vectors)

    def _add(self, cids: list[int], numbers: list[int], vectors: list[bytes]) -> None:
        try:
            self.table.add(cids, numbers, to_rows(vectors))
        except ValueError as error:  # a bundle may have brought them
            raise CorruptError(
                f"the vectors of {self._model} in the index are not as its model makes them: {error}",
                hint="findling index --rebuild, then findling refine",
            ) from error


def to_rows(vectors: Sequence[bytes]) -> Vectors:
    """Stored vectors, at least one, as the rows of a matrix."""
    import numpy as np  # which a leg of words does not need

    return np.frombuffer(b"".join(vectors), dtype="<f2").reshape(len(vectors), -1).astype(np.float32)


def catch_up(store: TruthStore, leg: LegIndex) -> bool:
    """Let a leg absorb the changes it missed, and return whether there were any. The caller holds the write lock.

    It commits once, at the end: a resource comes in its latest state, so that no part of the changes is a whole state.
    """
    seq, since = store.seq(), leg.seq()
    if since == seq:
        return False
    if since > seq or since < store.log_floor():
        leg.clear()
        since = 0
    leg.apply(store.changes(since))
    leg.commit(seq)
    return True


class Legs:
    """Legs that stay in step with the truth, because writes pass through them. The caller holds the write lock.

    With `by_turns`, each write takes a `turn` of its own: other hosts write in between, and legs follow them.
    """

    def __init__(self, store: TruthStore, *legs: LegIndex, turn: HostLock | None = None) -> None:
        self._store = store
        self._legs = legs
        self._turn = turn
        self._seq = store.seq()
        self.by_turns, self.turn_s = False, 0.0
        """Seconds of the last turn: so long another host has waited for it."""

    @property
    def analyses(self) -> bool:
        """Whether one of them needs the words of every chunk."""
        return any(getattr(leg, "unit", "") == "chunk" for leg in self._legs)

    @property
    def embeds(self) -> bool:
        """Whether one of them needs an instant vector of every chunk."""
        return any(getattr(leg, "speed", "") == "instant" for leg in self._legs)

    def write(self, documents: Iterable[Document], deleted_rids: Iterable[str] = ()) -> list[Change]:
        """Write to the truth and then to every leg; they are durable there with the next commit."""
        if any(map(self._store.get_meta, MADE_BY_MODELS)):
            from findling.pipelines.indexing.situated import carried

            documents = carried(self._store, documents)
        if self.by_turns and self._turn is not None:
            documents, deleted_rids = list(documents), list(deleted_rids)
            try:
                changes = self._write(self._turn, documents, deleted_rids)
            except (LockedError, UnreachableError):  # a host that has slept lost its turn, and what it was writing
                changes = self._write(self._turn, documents, deleted_rids)
        else:
            changes = self._store.write(documents, deleted_rids)
        self._apply(changes)
        return changes

    def commit(self) -> None:
        """Make every leg durable as far as they have come, the keyword leg last: a search looks at its number."""
        for leg in reversed(self._legs):
            if leg.seq() != self._seq:
                leg.commit(self._seq)

    def take_turn(self) -> None:
        """Hold the lock again, and follow what other hosts have written meanwhile. Raises LockedError."""
        if self._turn is None:
            return
        if not self._turn.acquire(_PATIENCE_S):
            raise LockedError(f"another process is writing: {self._turn.held_by()}", hint="do the same again")
        if self._store.seq() != self._seq:
            self._apply(list(self._store.changes(self._seq)))

    def _write(self, turn: HostLock, documents: Iterable[Document], deleted_rids: Iterable[str]) -> list[Change]:
        """Write to the truth in a turn of its own."""
        self.take_turn()
        started = time.monotonic()
        try:
            return self._store.write(documents, deleted_rids)
        finally:
            turn.lend()
            self.turn_s = time.monotonic() - started

    def _apply(self, changes: Sequence[Change]) -> None:
        for leg in self._legs:
            leg.apply(changes)
        if changes:
            self._seq = changes[-1].seq


def _passage(document: Document, chunk: Chunk) -> str:
    return passage(document.resource, chunk.heading, document.text[chunk.start : chunk.end], chunk.cid)
