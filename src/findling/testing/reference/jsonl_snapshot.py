"""A store in memory that can be told as lines, and be made from them again: every change, or the state as a whole."""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterable, Iterator

from findling.domain.permissions import Relation
from findling.domain.ports import SkippedPath
from findling.domain.records import Access, GlossaryTerm
from findling.domain.resources import Chunk, Document
from findling.stores.bundle.jsonl_records import Record, document_record, to_document, to_fingerprint, to_term
from findling.testing.reference.memory_store import MemoryStore

__all__ = ["ReplayedStore", "vectors_record"]


class ReplayedStore(MemoryStore):
    """Replays what `JsonlStore` logs. Every operation stands for one method of the store, or for a part of its state.

    The methods called are those of `MemoryStore` itself: a subclass may do more than change the memory.
    """

    def replay(self, records: Iterable[Record]) -> None:
        """Do all that the records say. Raises KeyError for an operation that does not exist."""
        waiting: list[Document] = []
        for record in records:
            if record["op"] == "write":
                # A write copies the state, so many of them become one where that makes no difference.
                waiting += map(to_document, record["documents"])
                if not record["deleted"]:
                    continue
                MemoryStore.write(self, waiting, record["deleted"])
            else:
                MemoryStore.write(self, waiting)
                _REPLAYS[record["op"]](self, record)
            waiting = []
        MemoryStore.write(self, waiting)

    def snapshot(self) -> Iterator[Record]:
        """Records that make an empty store what this one is, to the last number."""
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
        vectors = [(one.mark, model, digest) for model, kept in self._vectors.items() for digest, one in kept.items()]
        for mark, model, digest in sorted(vectors):
            vector = self._vectors[model][digest].vector
            yield {**vectors_record(model, {digest: vector}), "mark": mark}
        yield {"op": "glossary", "put": [list(term) for term in self.glossary()], "dropped": []}
        yield {"op": "relations", "added": [list(relation) for relation in self.relations()], "dropped": []}
        yield {"op": "accesses", "of": {rid: [one.count, one.last_at] for rid, one in self._accesses.items()}}
        yield {"op": "folders", "of": dict(self._folders)}
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

    def _replay_stored(self, record: Record) -> None:
        document, state = to_document(record["document"]), self._state
        rid = document.resource.rid
        state.documents[rid] = document
        state.numbers[rid], state.changed_at[rid] = record["number"], record["changed"]
        state.rid_of |= dict.fromkeys(map(_cid, document.chunks), rid)
        state.added_at |= zip(map(_cid, document.chunks), record["added"], strict=True)

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

    def _replay_touch(self, record: Record) -> None:
        MemoryStore.touch(self, {path: to_fingerprint(mark) for path, mark in record["fingerprints"].items()})

    def _replay_glossary(self, record: Record) -> None:
        terms = [to_term(dict(zip(GlossaryTerm._fields, row, strict=True))) for row in record["put"]]
        MemoryStore.write_glossary(self, terms, [(group, key) for group, key in record["dropped"]])

    def _replay_relations(self, record: Record) -> None:
        added, dropped = ([Relation(*row) for row in record[name]] for name in ("added", "dropped"))
        MemoryStore.write_relations(self, added, dropped)

    def _replay_accesses(self, record: Record) -> None:
        MemoryStore.add_accesses(self, {rid: Access(*access) for rid, access in record["of"].items()})


def vectors_record(model: str, vectors: dict[bytes, bytes]) -> Record:
    """Vectors of one model by the digests of their passages."""
    rows = {digest.hex(): base64.b64encode(vector).decode() for digest, vector in vectors.items()}
    return {"op": "vectors", "model": model, "vectors": rows}


def _cid(chunk: Chunk) -> int:
    return chunk.cid


_REPLAYS: dict[str, Callable[[ReplayedStore, Record], object]] = {
    "accesses": ReplayedStore._replay_accesses,
    "begin": lambda store, record: None,
    "drop_vectors": lambda store, record: MemoryStore.drop_vectors(store, record["model"]),
    "folders": lambda store, record: MemoryStore.set_folders(store, record["of"]),
    "glossary": ReplayedStore._replay_glossary,
    "meta": lambda store, record: MemoryStore.set_meta(store, record["key"], record["value"]),
    "relations": ReplayedStore._replay_relations,
    "skipped": lambda store, record: MemoryStore.set_skipped(store, [SkippedPath(*row) for row in record["paths"]]),
    "state": ReplayedStore._replay_state,
    "stored": ReplayedStore._replay_stored,
    "touch": ReplayedStore._replay_touch,
    "vectors": ReplayedStore._replay_vectors,
    "want": lambda store, record: MemoryStore.want(store, record["cids"]),
}
"""Every operation of a log besides `write`."""
