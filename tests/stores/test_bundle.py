from __future__ import annotations

import base64
import json
import zipfile
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as rules
from hypothesis import strategies as st

from findling.domain.errors import CorruptError, InvalidValueError
from findling.domain.permissions import Relation
from findling.domain.ports import SkippedPath, TruthStore
from findling.domain.records import Access, GlossaryTerm
from findling.domain.resources import Chunk, Document, Fingerprint, Place, Resource
from findling.pipelines.export.bundle_vetting import BundleRecords
from findling.pipelines.export.bundles import Facts, export_store
from findling.pipelines.export.copying import fill_store
from findling.stores.bundle.bundle import FILES, Bundle, is_bundle
from findling.stores.bundle.bundle_writer import write_bundle
from findling.stores.bundle.jsonl_records import Record, document_record, encode, to_document
from findling.stores.sqlite.store import SqliteStore
from findling.testing.samples import AWKWARD, EMPTY, FULL, HISTORY, PLAIN, cids_of, line_document
from tests.counts import tries
from tests.jsonl_store import JsonlStore
from tests.memory_store import MemoryStore

FACTS = Facts(0.0, None, {"analysis": "words:2"}, {"search.limit": 5}, "/somewhere")

texts = st.text(max_size=30)
unicode = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)


@st.composite
def documents(draw: st.DrawFn) -> Document:
    text = draw(unicode)
    cuts = sorted(draw(st.lists(st.integers(0, len(text)), max_size=6)))
    chunks = tuple(
        Chunk(
            draw(st.integers(0, 2**63 - 1)),
            draw(st.binary(max_size=16)),
            ordinal,
            start,
            end,
            draw(st.integers(1, 99)),
            draw(st.integers(1, 99)),
            tuple(draw(st.lists(unicode, max_size=2))),
            tuple(Place(start, label, 0) for label in draw(st.lists(unicode, max_size=2))),
        )
        for ordinal, (start, end) in enumerate(pairwise(cuts))
    )
    moments = st.none() | st.floats(allow_nan=False, allow_infinity=False) | st.integers(0, 2**40)
    resource = Resource(
        rid=draw(unicode),
        title=draw(texts),
        path=draw(unicode),
        tags=tuple(draw(st.lists(texts, max_size=2))),
        visibility=draw(st.none() | st.lists(texts, max_size=2).map(tuple)),
        created_at=draw(moments),
        updated_at=draw(moments),
        fields=draw(st.dictionaries(texts, texts, max_size=3)),
    )
    mark = draw(
        st.none()
        | st.builds(Fingerprint, st.integers(0, 2**62), st.integers(0, 2**62), st.binary(max_size=9), st.just(0))
    )
    return Document(resource, text, chunks, mark)


@given(documents())
@rules(suppress_health_check=[HealthCheck.too_slow], max_examples=tries(60, short=20), deadline=None)
def test_a_document_is_the_same_after_it_was_a_line(document: Document) -> None:
    line = encode(document_record(document))
    assert b"\n" not in line
    line.decode()  # UTF-8, whatever was in it
    assert to_document(json.loads(line)) == document


def fill(store: TruthStore) -> None:
    for written, deleted in HISTORY:
        store.write(written, deleted)
    store.write([PLAIN, FULL, AWKWARD, EMPTY])
    store.write([line_document("a", ["1", "2", "changed last"], fields={"supersedes": "p", "half": "\ud800"})])
    store.put_vectors("m", {chunk.digest: half(n, n + 1) for n, chunk in enumerate(PLAIN.chunks)})
    store.put_vectors("n", {FULL.chunks[0].digest: half(0.1, 0.2, 0.3)})
    store.write_glossary([GlossaryTerm("quota", "kontingent", "Kontingent", "alias", "person", "…", 1.5)])
    store.write_relations([Relation("user:ana", "member", "group:team")])
    store.add_accesses({FULL.resource.rid: Access(2, 5.5)})
    store.set_folders({"": 5, "b/ü/": -1})
    store.set_skipped([SkippedPath("caf\udce9", "binary"), SkippedPath("b", "too-large", "3 MB", 3, 4)])
    store.set_meta("made_by", "3|x")
    store.set_meta("chosen by m", "auto")
    store.set_meta("store_id", "private")


def half(*numbers: float) -> bytes:
    return np.array(numbers, "<f2").tobytes()


def facts(store: TruthStore) -> list[object]:
    cids = [cid for rid in store.rids() for cid in cids_of(store.document(rid) or EMPTY)]
    return [
        [right.rid for right in store.rights()],
        [change.document for change in store.changes(0)],
        [(row.cid, row.vector) for model in sorted(store.models()) for row in store.vector_rows(model, 0)],
        store.chunks(cids),
        store.successors(["p"]),
        store.glossary(),
        store.relations(),
        store.accesses([FULL.resource.rid]),
        store.skipped(),
        dict(store.folders()),
        store.get_meta("made_by"),
        store.get_meta("chosen by m"),
    ]


@pytest.fixture(params=["memory", "sqlite", "jsonl"])
def new_store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Callable[[], TruthStore]]:
    opened: list[TruthStore] = []

    def make() -> TruthStore:
        name = f"store{len(opened)}"
        kinds: dict[str, Callable[[], TruthStore]] = {
            "memory": MemoryStore,
            "sqlite": lambda: SqliteStore.open(tmp_path / name),
            "jsonl": lambda: JsonlStore.open(tmp_path / name),
        }
        opened.append(kinds[request.param]())
        return opened[-1]

    yield make
    for store in opened:
        store.close()


@pytest.mark.parametrize("name", ["b", "b.zip"])
def test_every_store_comes_back_as_it_was(new_store: Callable[[], TruthStore], tmp_path: Path, name: str) -> None:
    store, copy = new_store(), new_store()
    fill(store)
    manifest = export_store(store, tmp_path / name, FACTS)
    with Bundle.open(tmp_path / name) as bundle:
        bundle.verify()
        assert bundle.manifest == manifest
        fill_store(BundleRecords(bundle), copy)
    assert facts(copy) == facts(store)
    assert copy.get_meta("store_id") is None
    export_store(copy, tmp_path / f"again-{name}", FACTS)
    if name == "b":
        for file in FILES:
            assert (tmp_path / "again-b" / file).read_bytes() == (tmp_path / "b" / file).read_bytes()


@pytest.mark.parametrize("name", ["b", "b.zip"])
def test_a_bundle_can_be_opened_as_a_store(tmp_path: Path, name: str) -> None:
    store = MemoryStore()
    fill(store)
    export_store(store, tmp_path / name, FACTS)
    with JsonlStore.open(tmp_path / name) as opened:
        assert facts(opened) == facts(store)


def test_restoring_twice_makes_no_difference(tmp_path: Path) -> None:
    store, copy = MemoryStore(), MemoryStore()
    fill(store)
    export_store(store, tmp_path / "b", FACTS)
    with Bundle.open(tmp_path / "b") as bundle:
        fill_store(BundleRecords(bundle), copy)
        seq = copy.seq()
        fill_store(BundleRecords(bundle), copy)
    assert copy.seq() == seq
    assert facts(copy) == facts(store)


def test_only_what_may_be_seen(tmp_path: Path) -> None:
    store, copy = MemoryStore(), MemoryStore()
    fill(store)
    export_store(store, tmp_path / "b", FACTS, may_see=lambda resource: resource.rid != PLAIN.resource.rid)
    with Bundle.open(tmp_path / "b") as bundle:
        fill_store(BundleRecords(bundle), copy)
        assert bundle.manifest["partial"] is True
    assert set(store.rids()) - set(copy.rids()) == {PLAIN.resource.rid}
    assert list(copy.models()) == ["n"]
    assert copy.relations() == []
    assert [(term.surface, term.source, term.snippet) for term in copy.glossary()] == [("Kontingent", "", "")]
    assert copy.skipped() == [] == list(copy.folders())


# Trouble


def crafted(target: Path, **lines: list[Any]) -> Path:
    """A bundle whose checksums are right, whatever stands in its lines."""
    store = MemoryStore()
    fill(store)
    export_store(store, target.with_name("sound"), FACTS)
    with Bundle.open(target.with_name("sound")) as sound:
        parts = [(name, lines.get(name.partition(".")[0]) or list(sound.read(name, dict))) for name in FILES]
        about = {"counts": {"files": 0, "characters": 0}}
        write_bundle(target, parts, lambda: about)
    return target


def bad_vector(**changes: object) -> Record:
    vector = base64.b64encode(np.array([1, 2], "<f4").tobytes()).decode()
    return {"id": "p:1", "digest": "00", "model": "m", "dim": 2, "vector": vector, **changes}


@pytest.mark.parametrize(
    ("name", "line"),
    [
        ("resources", {"rid": "a"}),
        ("resources", ["a"]),
        ("resources", {**document_record(PLAIN), "chunks": [{}]}),
        ("resources", {**document_record(PLAIN), "created_at": "yesterday"}),
        ("vectors", bad_vector(dim=3)),
        ("vectors", bad_vector(vector="…")),
        ("vectors", bad_vector(vector=base64.b64encode(np.array([np.nan, 1], "<f4").tobytes()).decode())),
        ("vectors", bad_vector(vector=base64.b64encode(np.array([1e9, 1], "<f4").tobytes()).decode())),
        ("vectors", bad_vector(model=7)),
        ("glossary", {"group": 1}),
        ("relations", {"subject": "user:ana"}),
        ("accesses", {"rid": "a", "count": "often", "last_at": 0}),
        ("meta", {"order": [1]}),
        ("meta", {"kept": {}, "folders": [], "skipped": []}),
    ],
)
def test_a_line_that_makes_no_sense_is_named(tmp_path: Path, name: str, line: object) -> None:
    crafted(tmp_path / "b", **{name: [line]})
    with Bundle.open(tmp_path / "b") as bundle:
        bundle.verify()
        with pytest.raises(CorruptError, match=f"{name}.json"):
            fill_store(BundleRecords(bundle), MemoryStore())
    with pytest.raises(CorruptError):
        JsonlStore.open(tmp_path / "b")


def test_a_document_that_no_store_takes_is_refused(tmp_path: Path) -> None:
    record = document_record(PLAIN)
    record["chunks"][0]["span"] = [0, 9999]
    crafted(tmp_path / "b", resources=[record])
    with Bundle.open(tmp_path / "b") as bundle, pytest.raises(InvalidValueError, match="lies outside"):
        fill_store(BundleRecords(bundle), MemoryStore())


def test_vectors_that_are_there_stay(tmp_path: Path) -> None:
    store, copy = MemoryStore(), MemoryStore()
    fill(store)
    export_store(store, tmp_path / "b", FACTS)
    copy.put_vectors("m", {PLAIN.chunks[0].digest: half(9, 9)})
    with Bundle.open(tmp_path / "b") as bundle:
        fill_store(BundleRecords(bundle), copy)
    assert copy.vectors("m", [PLAIN.chunks[0].digest]) == {PLAIN.chunks[0].digest: half(9, 9)}
    assert len(copy.vectors("m", [chunk.digest for chunk in PLAIN.chunks])) == 3


@pytest.mark.parametrize("name", ["b", "b.zip"])
def test_what_fails_in_the_middle_leaves_nothing(tmp_path: Path, name: str) -> None:
    def failing() -> Iterator[Record]:
        yield {"rid": "a"}
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_bundle(tmp_path / name, [("resources.jsonl", failing())], dict)
    assert list(tmp_path.iterdir()) == []
    store = MemoryStore()
    fill(store)
    export_store(store, tmp_path / name, FACTS)
    with pytest.raises(KeyboardInterrupt):
        write_bundle(tmp_path / name, [("resources.jsonl", failing())], dict, force=True)
    assert [path.name for path in tmp_path.iterdir()] == [name]
    with Bundle.open(tmp_path / name) as bundle:
        bundle.verify()


def test_an_archive_is_read_and_never_unpacked(tmp_path: Path) -> None:
    store, copy = MemoryStore(), MemoryStore()
    fill(store)
    export_store(store, tmp_path / "b.zip", FACTS)
    with zipfile.ZipFile(tmp_path / "b.zip", "a") as archive:
        archive.writestr("../escaped", "out")
    with Bundle.open(tmp_path / "b.zip") as bundle:
        bundle.verify()
        fill_store(BundleRecords(bundle), copy)
    assert facts(copy) == facts(store)
    assert not (tmp_path.parent / "escaped").exists()


def test_a_damaged_archive_is_told(tmp_path: Path) -> None:
    store = MemoryStore()
    fill(store)
    export_store(store, tmp_path / "b.zip", FACTS)
    whole = (tmp_path / "b.zip").read_bytes()
    for place in (0, 100, 150, 200):
        (tmp_path / "b.zip").write_bytes(whole[:place] + bytes([whole[place] ^ 255]) + whole[place + 1 :])
        with Bundle.open(tmp_path / "b.zip") as bundle, pytest.raises(CorruptError, match=r"resources\.jsonl"):
            bundle.verify()
    (tmp_path / "b.zip").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(InvalidValueError, match="no bundle"):
        Bundle.open(tmp_path / "b.zip")
    assert not is_bundle(tmp_path / "b.zip")
