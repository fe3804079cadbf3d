"""The truth store in one log of JSON lines, for places without SQLite; memory holds all of a small corpus."""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, suppress
from pathlib import Path
from typing import Any, Self

from findling.domain.errors import CorruptError, DiskFullError, LockedError, NotIndexedError, ReadOnlyError
from findling.domain.permissions import Relation
from findling.domain.ports import Change, SkippedPath
from findling.domain.records import Access, GlossaryTerm
from findling.domain.resources import Document, Fingerprint
from findling.pipelines.export.bundle_vetting import BundleRecords
from findling.pipelines.export.copying import fill_store
from findling.stores.bundle.bundle import MANIFEST, Bundle
from findling.stores.bundle.jsonl_records import (
    Record,
    document_record,
    fingerprint_record,
    to_document,
    to_fingerprint,
    to_term,
)
from findling.stores.filesystem import FileErrors
from findling.stores.lock import WriteLock
from tests.jsonl_log import LogWriter, read_log, write_log
from tests.memory_store import MemoryStore

__all__ = ["LOG_FILE", "JsonlStore"]

LOG_FILE = "log.jsonl"

_LOCK_FILE = "write.lock"

_SLACK_BYTES = 1 << 20
"""A log shorter than this is never worth a rewrite."""

_MOST_GROWTH = 4
"""The growth of a log since its last rewrite that makes another one worthwhile."""


class JsonlStore(MemoryStore, AbstractContextManager["JsonlStore"]):
    """Implements `TruthStore` over a log, one line a transaction. Threads must not share it.

    A writer holds the folder's lock from `open` to `close`; a reader sees the state at the time it was opened.
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
        """Open the store in a folder; create it (mode 0700, its file 0600) unless it is only to be read.

        Open a bundle, folder or archive, to be read, and check it first. Raises NotIndexedError for a missing store to
        be read, LockedError when another process writes for longer than `patience_s`, CorruptError for a damaged log
        or bundle, FormatError for one of a newer findling, and ReadOnlyError for a folder that cannot be written.
        """
        path = Path(path)
        has_log = (path / LOG_FILE).exists()
        if not has_log and (path.is_file() or (path / MANIFEST).exists()):
            return cls._of_bundle(path)
        if readonly:
            if not has_log:
                raise NotIndexedError(f"{path} holds no store", hint="open it for writing first")
            store = cls(path, None)
            store._load()
            return store
        with FileErrors(path):
            path.mkdir(mode=0o700, exist_ok=True)
        lock = WriteLock(path / _LOCK_FILE)
        if not lock.acquire(patience_s):
            raise LockedError(f"another process is writing {path}", hint="try again when it has finished")
        store = cls(path, lock)
        try:
            if not (path / LOG_FILE).exists():
                write_log(path / LOG_FILE, ())
            store._log = LogWriter(path / LOG_FILE, store._load())
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
            fill_store(BundleRecords(bundle), store)
            store._is_loading = False
        return store

    # Every write changes the memory, which may refuse, and then the log.

    def write(self, documents: Iterable[Document], deleted_rids: Iterable[str] = ()) -> list[Change]:
        self._check_writable()
        given, gone = list(documents), list(deleted_rids)
        rids = [document.resource.rid for document in given]
        stored = [self.document(rid) for rid in rids]
        changes = super().write(given, gone)
        news = [
            document_record(document)
            for document, known in zip(given, stored, strict=True)
            if known is None or known[:4] != document[:4] or rids.count(document.resource.rid) > 1
        ]
        if news or changes:
            self._note({"op": "write", "documents": news, "deleted": gone})
        return changes

    def touch(self, fingerprints: Mapping[str, Fingerprint]) -> None:
        self._do("touch", fingerprints={path: fingerprint_record(mark) for path, mark in fingerprints.items()})

    def set_folders(self, folders: Mapping[str, int]) -> None:
        self._do("folders", of=dict(folders))

    def set_skipped(self, skipped: Iterable[SkippedPath]) -> None:
        self._do("skipped", paths=[list(entry) for entry in skipped])

    def write_glossary(self, terms: Iterable[GlossaryTerm], dropped: Iterable[tuple[str, str]] = ()) -> None:
        self._do("glossary", put=[list(term) for term in terms], dropped=[list(one) for one in dropped])

    def write_relations(self, added: Iterable[Relation], dropped: Iterable[Relation] = ()) -> None:
        self._do("relations", added=[list(one) for one in added], dropped=[list(one) for one in dropped])

    def add_accesses(self, accesses: Mapping[str, Access]) -> None:
        self._do("accesses", of={rid: [one.count, one.last_at] for rid, one in accesses.items()})

    def put_vectors(self, model: str, vectors: Mapping[bytes, bytes], *, patience_s: float | None = None) -> None:
        self._check_writable()
        if vectors:
            self._do(**_vectors_record(model, vectors))

    def want(self, cids: Iterable[int], *, patience_s: float | None = None) -> None:
        """Note wishes for vectors; a power cut may lose them."""
        self._do("want", durable=False, cids=list(cids))

    def drop_vectors(self, model: str | None = None) -> int:
        self._check_writable()
        dropped = super().drop_vectors(model)
        if dropped:
            self._note({"op": "drop_vectors", "model": model})
        return dropped

    def set_meta(self, key: str, value: str) -> None:
        self._do("meta", key=key, value=value)

    def compact(self, absorbed: int) -> None:
        """Forget the changes that every leg has absorbed, and rewrite the file."""
        self._check_writable()
        super().compact(absorbed)
        self._rewrite()

    def close(self) -> None:
        if self._log is not None:
            self._log.close()
            self._log = None
        if self._lock is not None:
            self._lock.release()

    def __exit__(self, *error: object) -> None:
        self.close()

    def _check_writable(self) -> None:
        if self._log is None and not self._is_loading:
            raise ReadOnlyError(f"{self._path} is open for reading only", hint="open it for writing")

    def _do(self, op: str, *, durable: bool = True, **fields: Any) -> None:
        """Carry out a record as a replay would, then log it."""
        self._check_writable()
        _REPLAYS[op](self, fields)
        self._note({"op": op, **fields}, durable=durable)

    def _note(self, record: Record, *, durable: bool = True) -> None:
        if self._log is None:
            return  # a bundle is being loaded
        try:
            self._log.append(record, durable=durable)
        except BaseException:
            # The memory is ahead of the file: only what is there counts.
            MemoryStore.__init__(self)
            self._load()
            raise
        if self._log.size > max(_SLACK_BYTES, _MOST_GROWTH * self._compact_size):
            # Without room for that the log is only longer than it need be.
            with suppress(DiskFullError):
                self._rewrite()

    def _rewrite(self) -> None:
        path = self._path / LOG_FILE
        size = write_log(path, self._snapshot())
        if self._log is not None:
            self._log.close()
        self._log, self._compact_size = LogWriter(path, size), size

    def _load(self) -> int:
        """Replay the log in memory; return the end of its last whole line."""
        path = self._path / LOG_FILE
        end = 0
        try:
            for record, end in read_log(path):
                _REPLAYS[record["op"]](self, record)
                if record["op"] == "state":
                    self._compact_size = end
        except (KeyError, TypeError, ValueError) as error:
            raise CorruptError(f"{path} is damaged: {error!r}", hint="restore it from a copy") from error
        return end

    def _snapshot(self) -> Iterator[Record]:
        """Records that turn an empty store into this one, to the last number."""
        state = self._state
        for rid in sorted(state.numbers, key=state.numbers.__getitem__):
            document = state.documents[rid]
            yield {
                "op": "stored",
                "number": state.numbers[rid],
                "changed": state.changed_at[rid],
                "added": [state.added_at[chunk.cid] for chunk in document.chunks],
                "document": document_record(document),
            }
        rows = [(one.mark, model, digest) for model, kept in self._vectors.items() for digest, one in kept.items()]
        for mark, model, digest in sorted(rows):
            yield {**_vectors_record(model, {digest: self._vectors[model][digest].vector}), "mark": mark}
        yield {"op": "glossary", "put": [list(term) for term in self.glossary()], "dropped": []}
        yield {"op": "relations", "added": [list(relation) for relation in self.relations()], "dropped": []}
        yield {"op": "accesses", "of": {rid: [one.count, one.last_at] for rid, one in self._accesses.items()}}
        yield {"op": "folders", "of": self._folders}
        yield {"op": "skipped", "paths": [list(entry) for entry in self._skipped]}
        yield from ({"op": "meta", "key": key, "value": value} for key, value in self._meta.items())
        yield {
            "op": "state",
            "seq": state.seq,
            "floor": self._log_floor,
            "mark": self._mark,
            "glossary": self._glossary_version,
            "relations": self._relations_version,
            "dropped": [[cid, rid, seq] for cid, (rid, seq) in state.dropped_at.items()],
            "deleted": state.deleted_at,
            "wanted": state.wanted,
        }

    def _replay_write(self, record: Record) -> None:
        self._write_to(self._state, map(to_document, record["documents"]), record["deleted"])

    def _replay_stored(self, record: Record) -> None:
        document, state = to_document(record["document"]), self._state
        rid, cids = document.resource.rid, [chunk.cid for chunk in document.chunks]
        state.documents[rid] = document
        state.numbers[rid], state.changed_at[rid] = record["number"], record["changed"]
        state.rid_of |= dict.fromkeys(cids, rid)
        state.added_at |= zip(cids, record["added"], strict=True)

    def _replay_vectors(self, record: Record) -> None:
        if "mark" in record:
            self._mark = record["mark"] - 1
        vectors = {bytes.fromhex(digest): base64.b64decode(vector) for digest, vector in record["vectors"].items()}
        MemoryStore.put_vectors(self, record["model"], vectors)

    def _replay_state(self, record: Record) -> None:
        state = self._state
        state.seq, self._log_floor, self._mark = record["seq"], record["floor"], record["mark"]
        self._glossary_version, self._relations_version = record["glossary"], record["relations"]
        state.dropped_at = {cid: (rid, seq) for cid, rid, seq in record["dropped"]}
        state.deleted_at, state.wanted = dict(record["deleted"]), list(record["wanted"])

    def _replay_glossary(self, record: Record) -> None:
        terms = [to_term(dict(zip(GlossaryTerm._fields, row, strict=True))) for row in record["put"]]
        MemoryStore.write_glossary(self, terms, [(group, key) for group, key in record["dropped"]])

    def _replay_relations(self, record: Record) -> None:
        added, dropped = ([Relation(*row) for row in record[name]] for name in ("added", "dropped"))
        MemoryStore.write_relations(self, added, dropped)


def _vectors_record(model: str, vectors: Mapping[bytes, bytes]) -> Record:
    rows = {digest.hex(): base64.b64encode(vector).decode() for digest, vector in vectors.items()}
    return {"op": "vectors", "model": model, "vectors": rows}


_REPLAYS: dict[str, Callable[[JsonlStore, Record], object]] = {
    "accesses": lambda store, record: MemoryStore.add_accesses(
        store, {rid: Access(*access) for rid, access in record["of"].items()}
    ),
    "begin": lambda store, record: None,
    "drop_vectors": lambda store, record: MemoryStore.drop_vectors(store, record["model"]),
    "folders": lambda store, record: MemoryStore.set_folders(store, record["of"]),
    "glossary": JsonlStore._replay_glossary,
    "meta": lambda store, record: MemoryStore.set_meta(store, record["key"], record["value"]),
    "relations": JsonlStore._replay_relations,
    "skipped": lambda store, record: MemoryStore.set_skipped(store, [SkippedPath(*row) for row in record["paths"]]),
    "state": JsonlStore._replay_state,
    "stored": JsonlStore._replay_stored,
    "touch": lambda store, record: MemoryStore.touch(
        store, {path: to_fingerprint(mark) for path, mark in record["fingerprints"].items()}
    ),
    "vectors": JsonlStore._replay_vectors,
    "want": lambda store, record: MemoryStore.want(store, record["cids"]),
    "write": JsonlStore._replay_write,
}
"""Every operation of a log. A replay calls the methods of `MemoryStore`, which log nothing."""
