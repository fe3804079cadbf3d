"""The part that legs in tantivy share: a folder, the change that it has reached, one writer."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import tantivy

from findling.stores.keyword.segment_files import (
    DamageGuard,
    LegNote,
    OpenedIndex,
    files_of,
    new_index,
    read_opstamp,
    write_error,
    write_note,
)

__all__ = ["IndexedLeg"]

_HEAP_BYTES = 64_000_000
"""Memory of the one indexing thread; 200 MB measured no faster."""


class IndexedLeg:
    """The part that legs in tantivy share: they differ in their fields and in what they are asked."""

    def __init__(
        self,
        opened: OpenedIndex,
        folder: Path,
        made_for: str,
        make: Callable[[], tantivy.Schema],
        guard: DamageGuard,
    ) -> None:
        self._index, self._seq, self._files, self._opstamp = opened
        """`_seq` is the change that the open index has reached; None where there is no index of this leg on disk."""
        self._folder = folder
        self._made_for = made_for
        self._make = make
        self._reading = guard
        self._is_dirty = False
        self._writer: tantivy.IndexWriter | None = None

    def seq(self) -> int:
        """The number of the latest change that is durably absorbed."""
        return self._seq or 0

    def is_current(self) -> bool:
        """Whether its files are still those that were opened; a compacted index has other statistics."""
        return self._seq is None or self._files == files_of(self._folder)

    def size(self) -> int:
        """The number of its entries. Raises CorruptError for files that cannot be read."""
        with self._reading:
            return self._searcher().num_docs

    def commit(self, seq: int) -> None:
        """Make everything applied so far durable, together with the number it reaches."""
        if self._seq is None and self._writer is None:
            self._start_writing()
        try:
            # Without anything to commit the index stays at the commit that it is at.
            reached = self.seq() if self._is_dirty else seq
            write_note(self._folder, LegNote(self._made_for, read_opstamp(self._folder), reached, seq))
            if self._writer is not None and self._is_dirty:
                self._writer.commit()
                self._is_dirty = False
            self._files = files_of(self._folder)
            self._opstamp = read_opstamp(self._folder)
            self._index.reload()
            self._forget()
        except (ValueError, OSError) as error:
            raise self._write_error(error) from error
        self._seq = seq

    def clear(self) -> None:
        """Forget everything, durably with the next commit."""
        self.close()
        self._index = new_index(self._make())
        self._seq = None
        self._forget()

    def close(self) -> None:
        """Release files; what was not committed is forgotten."""
        if self._writer is not None:
            writer, self._writer = self._writer, None
            # Not when nothing is to be forgotten: it would also throw away the merge that a commit has started, and
            # an index of many small writes would be one of many small segments.
            if self._is_dirty:
                self._is_dirty = False
                # A writer that has failed, or whose folder was deleted, has nothing to roll back to.
                with suppress(ValueError):
                    writer.rollback()
            writer.wait_merging_threads()
            if self._seq is not None:
                self._written()

    def _forget(self) -> None:
        """Forget what was derived from the index, which is another one now."""

    def _begun(self, index: tantivy.Index) -> None:
        """Prepare an index for its writer."""

    def _written(self) -> None:
        """Finish what was written, once the writer is gone."""

    def _searcher(self) -> tantivy.Searcher:
        return self._index.searcher()

    def _values(self, field: str) -> set[int]:
        """Every number in a field."""
        with self._reading:
            searcher = self._searcher()
            hits = searcher.search(tantivy.Query.all_query(), max(1, searcher.num_docs), count=False).hits
            values = searcher.fast_field_values(field, [address for _, address in hits]) if hits else []
        return {int(value) for value in values if value is not None}

    def _add(self, added: Sequence[tantivy.Document]) -> None:
        if added:
            with self._writing() as writer:
                for entry in added:
                    writer.add_document(entry)

    def _delete(self, field: str, value: str | int) -> None:
        # Not delete_documents_by_term: in tantivy 0.27 it silently misses unsigned values.
        query = tantivy.Query.term_query(self._index.schema, field, value, index_option="basic")
        with self._writing() as writer:
            writer.delete_documents_by_query(query)

    @contextmanager
    def _writing(self) -> Iterator[tantivy.IndexWriter]:
        """The writer; when it fails, which may be long after the cause, the error says what that was."""
        writer = self._writer or self._start_writing()
        self._is_dirty = True
        try:
            yield writer
        except ValueError as error:
            raise self._write_error(error) from error

    def _start_writing(self) -> tantivy.IndexWriter:
        from findling.stores.filesystem import discard

        try:
            if self._seq is None:
                # Nothing durable that is ours: start from an empty folder, whatever lies there.
                discard(self._folder)
                self._folder.mkdir(parents=True, mode=0o700)
                self._index = new_index(self._make(), self._folder)
                self._forget()
            self._begun(self._index)
            self._writer = self._index.writer(_HEAP_BYTES, num_threads=1)
        except (ValueError, OSError) as error:
            raise self._write_error(error) from error
        return self._writer

    def _write_error(self, error: Exception) -> Exception:
        return write_error(error, self._folder, self._reading.leg)
