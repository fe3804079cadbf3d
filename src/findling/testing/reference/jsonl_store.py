"""The truth store in plain files, for places where SQLite is not: small corpora, all of which is held in memory."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self

from findling.domain.errors import CorruptError, DiskFullError, LockedError, NotIndexedError, ReadOnlyError
from findling.domain.permissions import Relation
from findling.domain.ports import Change, SkippedPath
from findling.domain.records import Access, GlossaryTerm
from findling.domain.resources import Document, Fingerprint
from findling.stores.bundle.bundle import MANIFEST, Bundle
from findling.stores.bundle.bundle_restore import restore_all
from findling.stores.bundle.jsonl_records import Record, document_record, file_errors, fingerprint_record
from findling.stores.lock import WriteLock
from findling.testing.reference.jsonl_log import LogWriter, read_log, write_log
from findling.testing.reference.jsonl_snapshot import ReplayedStore, vectors_record

__all__ = ["LOG_FILE", "JsonlStore"]

LOG_FILE = "log.jsonl"

_LOCK_FILE = "write.lock"

_SLACK_BYTES = 1 << 20
"""A log shorter than this is never worth a rewrite."""

_MOST_GROWTH = 4
"""The log is rewritten when it is so many times as long as after the last time."""


class JsonlStore(ReplayedStore):
    """Implements `TruthStore` over a log of JSON lines, one line a transaction. Not to be shared between threads.

    Whoever may write holds the folder's lock from `open` to `close`; a reader sees what was there when it was opened.
    """

    def __init__(self, path: Path, lock: WriteLock | None) -> None:
        super().__init__()
        self._path = path
        self._lock = lock
        self._log: LogWriter | None = None
        self._compact_size = 0
        self._is_loading = False

    @classmethod
    def open(cls, path: Path | str, *, readonly: bool = False, patience_s: float = 30.0) -> Self:
        """Open the store in a folder, which is created (mode 0700, its file 0600) unless it is only to be read.

        A bundle, folder or archive, can be opened as well, to be read, and is checked first. Raises NotIndexedError for
        a store to be read that is not there, LockedError when another process writes for longer than `patience_s`,
        CorruptError for a damaged log or bundle, FormatError for what a newer findling wrote, ReadOnlyError when it
        cannot be written.
        """
        path = Path(path)
        if not (path / LOG_FILE).exists() and (path.is_file() or (path / MANIFEST).exists()):
            return cls._of_bundle(path)
        if readonly:
            if not (path / LOG_FILE).exists():
                raise NotIndexedError(f"{path} holds no store", hint="open it for writing first")
            store = cls(path, None)
            store._load()
            return store
        with file_errors(path):
            path.mkdir(mode=0o700, exist_ok=True)
        lock = WriteLock(path / _LOCK_FILE)
        if not lock.acquire(patience_s):
            raise LockedError(f"another process is writing {path}", hint="try again when it has finished")
        store = cls(path, lock)
        try:
            store._open_log()
        except BaseException:
            lock.release()
            raise
        return store

    @classmethod
    def _of_bundle(cls, path: Path) -> Self:
        store = cls(path, None)
        with Bundle.open(path) as bundle:
            bundle.verify()
            store._is_loading = True
            restore_all(bundle, store)
            store._is_loading = False
        return store

    # What changes the store: first the memory, which may refuse, then the log.

    def write(self, documents: Iterable[Document], deleted_rids: Iterable[str] = ()) -> list[Change]:
        """Upsert the documents, then delete the resources; one line of the log.

        Raises InvalidValueError for a document that cannot be kept, DiskFullError and ReadOnlyError; in each case
        nothing has been written.
        """
        self._check_writable()
        news: list[Document] = []
        gone = list(deleted_rids)

        def noting() -> Iterator[Document]:
            rids: set[str] = set()
            for document in documents:
                rid, known = document.resource.rid, self.document(document.resource.rid)
                if rid in rids or known is None or known[:4] != document[:4]:
                    news.append(document)
                    rids.add(rid)
                yield document

        changes = super().write(noting(), gone)
        if news or changes:
            self._note({"op": "write", "documents": [document_record(one) for one in news], "deleted": gone})
        return changes

    def touch(self, fingerprints: Mapping[str, Fingerprint]) -> None:
        """Record new fingerprints for resources (by path) whose content has not changed."""
        self._check_writable()
        super().touch(fingerprints)
        rows = {path: fingerprint_record(fingerprint) for path, fingerprint in fingerprints.items()}
        self._note({"op": "touch", "fingerprints": rows})

    def set_folders(self, folders: Mapping[str, int]) -> None:
        """Replace the list of folders that were walked."""
        self._check_writable()
        super().set_folders(folders)
        self._note({"op": "folders", "of": dict(folders)})

    def set_skipped(self, skipped: Iterable[SkippedPath]) -> None:
        """Replace the list of paths that were left out."""
        self._check_writable()
        super().set_skipped(skipped)
        self._note({"op": "skipped", "paths": [list(entry) for entry in self.skipped()]})

    def write_glossary(self, terms: Iterable[GlossaryTerm], dropped: Iterable[tuple[str, str]] = ()) -> None:
        """Drop terms by group and key, then put terms in."""
        self._check_writable()
        kept, gone = list(terms), list(dropped)
        super().write_glossary(kept, gone)
        self._note({"op": "glossary", "put": [list(term) for term in kept], "dropped": [list(one) for one in gone]})

    def write_relations(self, added: Iterable[Relation], dropped: Iterable[Relation] = ()) -> None:
        """Drop relations, then put relations in."""
        self._check_writable()
        kept, gone = list(added), list(dropped)
        super().write_relations(kept, gone)
        self._note({"op": "relations", "added": [list(one) for one in kept], "dropped": [list(one) for one in gone]})

    def add_accesses(self, accesses: Mapping[str, Access]) -> None:
        """Count accesses in: the numbers add up, the latest time stays."""
        self._check_writable()
        super().add_accesses(accesses)
        self._note({"op": "accesses", "of": {rid: [one.count, one.last_at] for rid, one in accesses.items()}})

    def put_vectors(self, model: str, vectors: Mapping[bytes, bytes], *, patience_s: float | None = None) -> None:
        """Keep vectors by the digest of the chunks they were made from; what is there stays."""
        self._check_writable()
        if vectors:
            super().put_vectors(model, vectors)
            self._note(vectors_record(model, dict(vectors)))

    def want(self, cids: Iterable[int], *, patience_s: float | None = None) -> None:
        """Note that a search would have liked vectors for these chunks; a power cut may take the wish back."""
        self._check_writable()
        wishes = list(cids)
        if wishes:
            super().want(wishes)
            self._note({"op": "want", "cids": wishes}, durable=False)

    def drop_vectors(self, model: str | None = None) -> int:
        """Forget the vectors of one model, or with `None` those that no chunk has use for; tells how many."""
        self._check_writable()
        dropped = super().drop_vectors(model)
        if dropped:
            self._note({"op": "drop_vectors", "model": model})
        return dropped

    def set_meta(self, key: str, value: str) -> None:
        """Set a small named value."""
        self._check_writable()
        super().set_meta(key, value)
        self._note({"op": "meta", "key": key, "value": value})

    def compact(self, absorbed: int) -> None:
        """Forget the part of the change log that every leg has absorbed, and write the file anew without detours."""
        self._check_writable()
        super().compact(absorbed)
        self._rewrite()

    def close(self) -> None:
        """Release the file and the lock; closing twice is fine."""
        if self._log is not None:
            self._log.close()
            self._log = None
        if self._lock is not None:
            self._lock.release()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # The file

    def _open_log(self) -> None:
        path = self._path / LOG_FILE
        if not path.exists():
            write_log(path, ())
        self._log = LogWriter(path, self._load())

    def _load(self) -> int:
        """Do in memory what the log says; returns where its last whole line ends."""
        path = self._path / LOG_FILE
        end = 0

        def records() -> Iterator[Record]:
            nonlocal end
            for record, end in read_log(path):
                yield record
                if record.get("op") == "state":
                    self._compact_size = end

        try:
            self.replay(records())
        except (KeyError, TypeError, ValueError) as error:
            raise CorruptError(f"{path} is damaged: {error!r}", hint="restore it from a copy") from error
        return end

    def _check_writable(self) -> None:
        if self._log is None and not self._is_loading:
            raise ReadOnlyError(f"{self._path} is open for reading only", hint="open it for writing")

    def _note(self, record: Record, *, durable: bool = True) -> None:
        if self._log is None:
            return  # a bundle is being loaded
        try:
            self._log.append(record, durable=durable)
        except BaseException:
            # The memory is ahead of the file: only what is there counts.
            ReplayedStore.__init__(self)
            self._load()
            raise
        if self._log.size > max(_SLACK_BYTES, _MOST_GROWTH * self._compact_size):
            # Without room for that the log is only longer than it need be.
            with suppress(DiskFullError):
                self._rewrite()

    def _rewrite(self) -> None:
        path = self._path / LOG_FILE
        size = write_log(path, self.snapshot())
        if self._log is not None:
            self._log.close()
        self._log, self._compact_size = LogWriter(path, size), size
