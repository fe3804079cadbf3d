"""A copy of a truth store through its port has the same content, order and numbers of changes."""

from __future__ import annotations

from pathlib import Path

import pytest

from findling.domain.permissions import Relation
from findling.domain.ports import SkippedPath, TruthStore
from findling.domain.records import Access, GlossaryTerm
from findling.pipelines.export.copying import copy_truth, finish_copy
from findling.stores.sqlite.store import SqliteStore
from findling.testing.samples import line_document
from tests.memory_store import MemoryStore


@pytest.fixture
def source(tmp_path: Path) -> TruthStore:
    store = SqliteStore.open(tmp_path / "index.sqlite")
    store.set_meta("store_id", "here")
    store.write([line_document(f"note:{number}", [f"text {number}", "more of it"]) for number in range(250)])
    store.write([line_document("note:7", ["changed later"])], ["note:9"])
    store.write_relations([Relation("user:ann", "viewer", "note:7")])
    store.write_glossary([GlossaryTerm("k8s", "kubernetes", "Kubernetes", "alias")])
    store.add_accesses({"note:3": Access(count=2, last_at=5.0)})
    store.set_folders({"docs": 7})
    store.set_skipped([SkippedPath("a.bin", "binary")])
    store.set_meta("root", "/srv/docs")
    digests = {chunk.digest for _, document in store.documents([1, 2, 3]) for chunk in document.chunks}
    store.put_vectors("m", {digest: bytes(8) for digest in digests})
    return store


def content(store: TruthStore) -> object:
    vectors = [row.vector for row in store.vector_rows("m", 0)]
    changes = [(change.rid, change.document) for change in store.changes(0) if change.document is not None]
    numbers = [right.rid for right in store.rights()]
    rest = store.relations(), store.glossary(), store.accesses(numbers), dict(store.folders()), store.skipped()
    return changes, numbers, vectors, rest, store.get_meta("root")


def test_everything_is_copied_in_its_order(source: TruthStore) -> None:
    target = MemoryStore()
    told: list[tuple[int, int]] = []
    assert copy_truth(source, target, ["root"], told.append)
    assert content(target) == content(source)
    assert told[-1] == (249, 249)


def test_a_copy_that_was_stopped_continues(source: TruthStore) -> None:
    target = MemoryStore()

    def stop(_: tuple[int, int]) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        copy_truth(source, target, ["root"], stop)
    assert copy_truth(source, target, ["root"])
    assert content(target) == content(source)
    finish_copy(source, target, is_used=False)
    before = target.seq()
    assert copy_truth(source, target, ["root"])
    assert target.seq() == before


def test_a_source_that_changed_since_is_copied_anew(source: TruthStore) -> None:
    target = MemoryStore()
    assert copy_truth(source, target, ["root"])
    source.write([line_document("note:new", ["new"])], ["note:11"])
    source.write_glossary([], [("k8s", "kubernetes")])
    source.write_relations([], source.relations())
    assert copy_truth(source, target, ["root"])
    assert content(target) == content(source)


def test_other_content_is_not_overwritten(source: TruthStore) -> None:
    target = MemoryStore()
    target.write([line_document("note:own", ["mine"])])
    assert not copy_truth(source, target, [])
    used = MemoryStore()
    assert copy_truth(source, used, [])
    finish_copy(source, used, is_used=False)
    source.write([line_document("note:new", ["new"])])
    assert not copy_truth(source, used, [])
    finish_copy(source, used, is_used=True)
    assert not copy_truth(source, used, [])
    assert list(target.rids()) == ["note:own"]
