"""Exported and imported again: the same answers, nothing that must not leave, and nothing half done."""

from __future__ import annotations

import json
import os
import random
import shutil
import stat
import time
import zipfile
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

import findling
from findling.domain.errors import (
    CorruptError,
    FormatError,
    InvalidValueError,
    NotFoundError,
    NotIndexedError,
    PathNotFoundError,
    ReadOnlyError,
    UsageError,
)
from findling.domain.permissions import Relation
from findling.domain.queries import Filters, SearchRequest
from findling.domain.records import Access
from findling.domain.resources import Resource
from findling.domain.strangers import TRUSTS
from findling.pipelines.answer.search import search
from findling.pipelines.indexing.fanout import catch_up
from findling.pipelines.retrieve.legs import Retrievers
from findling.service.engine.engine import open_engine
from findling.service.export.bundles import IMPORTING, export_bundle, import_bundle
from findling.stores.bundle.bundle import FILES, Bundle
from findling.stores.keyword.leg import TantivyLeg
from tests.jsonl_store import JsonlStore
from tests.memory_leg import MemoryLeg

NOUNS = (
    "session token login quota invoice ledger pipeline index cluster basket parser window socket garden river".split()
)
VERBS = "opens closes rejects renews expires drops merges writes reads splits guards follows".split()
QUERIES = (
    "session token",
    "which quota expires",
    '"login opens"',
    "pipeline -index",
    "invoice~ ledger*",
    "type:decision merges",
    "author:ana window",
    "how are sockets guarded",
    "sesion tokn",
    "kontingent",
    "zzz nothing zzz",
)
EPOCH = 1_767_225_600.0


def prose(seed: int, sentences: int) -> str:
    chance = random.Random(seed)
    rows = [(chance.choice(NOUNS), chance.choice(VERBS), *chance.choices(NOUNS, k=2)) for _ in range(sentences)]
    return "\n".join(f"The {who} {does} the {what} of {whom} {seed}." for who, does, what, whom in rows)


def items() -> Iterator[tuple[Resource, str]]:
    for number in range(120):
        kind = ("decision", "memory", "ticket", "knowledge")[number % 4]
        yield (
            Resource(
                rid=f"{kind}:{number}",
                type=kind,
                title=f"{NOUNS[number % 15].title()} {number}",
                author=("ana", "bo", "")[number % 3],
                lang="markdown",
                tags=("plan", "größe") if number % 5 == 0 else (),
                visibility=(None, ("user:ana",), ("group:team", "!user:eve"), ())[number % 4] if number % 7 else None,
                created_at=EPOCH + number,
                updated_at=EPOCH + 1000 - number,
                fields={"supersedes": f"{kind}:{number - 8}", "ärger": "nein"} if number % 8 == 3 else {},
            ),
            f"# Head {number}\n\n{prose(number % 60, 2)}\n\n## Part\n\n{prose(number, 1)}",
        )


@pytest.fixture(scope="module")
def settings(tmp_path_factory: pytest.TempPathFactory) -> findling.Settings:
    values = {
        "store.home": str(tmp_path_factory.mktemp("home")),
        "semantic.threads": 1,
        "semantic.query_budget_ms": 0.0,
        "semantic.refine": "never",
    }
    return findling.Settings().override(values, "test")


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("tree")
    for number in range(80):
        kind = (".txt", ".md", ".py")[number % 3]
        folder = root / f"part{number % 4}"
        folder.mkdir(exist_ok=True)
        (folder / f"file{number}{kind}").write_text(f"# Note {number}\n\n{prose(1000 + number, 2)}\n", encoding="utf-8")
    (root / "blob.bin").write_bytes(b"\0\1" * 99)
    then = time.time_ns() - 3600 * 10**9
    for path in (root, *root.rglob("*")):
        os.utime(path, ns=(then, then))
    return root


@pytest.fixture(scope="module")
def original(tree: Path, settings: findling.Settings) -> Iterator[findling.Engine]:
    """A workspace of 200 resources that has a past: some have changed, some have gone, a model has read them."""
    with open_engine(tree, settings=settings) as engine:
        engine.index()
        engine.add(items())
        engine.add([(Resource(rid="memory:1000", type="memory"), "gone soon")])
        engine.writer.put((), ["memory:1000", "knowledge:7"])
        engine.add([(Resource(rid="decision:0", type="decision", title="Changed last"), prose(7, 5))])
        engine.glossary.add("quota", ["kontingent"])
        engine.glossary.propose([("ration", "quota", "mined", "a ration of decision:1")])
        with engine.writer.files.writing():
            engine.writer.store.write_relations([Relation("user:ana", "member", "group:team")])
            engine.writer.store.add_accesses({"memory:1": Access(3, EPOCH)})
        engine.refine()
        engine.repair()
        yield engine


@pytest.fixture(scope="module")
def bundle(original: findling.Engine, tmp_path_factory: pytest.TempPathFactory) -> Path:
    target = tmp_path_factory.mktemp("bundles") / "all"
    export_bundle(original, target, created_at=EPOCH)
    return target


def told(answer: findling.SearchAnswer) -> dict[str, Any]:
    return {**answer.to_dict(), "timings_ms": None}


def requests() -> Iterator[SearchRequest]:
    for number, query in enumerate(QUERIES):
        yield SearchRequest(query=query, limit=30)
        yield SearchRequest(query=query, limit=30, plan=findling.Plan(mode=("keyword", "semantic")[number % 2]))
    yield SearchRequest(query="session", limit=5, offset=5)
    yield SearchRequest(query="session", principals=("user:ana",), limit=30)
    yield SearchRequest(query="quota", filters=Filters(type=("memory",)), limit=30)


def test_what_was_imported_answers_the_same(
    original: findling.Engine, settings: findling.Settings, tmp_path: Path
) -> None:
    export_bundle(original, tmp_path / "all.zip")
    report = import_bundle(tmp_path / "all.zip", workspace="same", settings=settings, trust=TRUSTS)
    assert (report.root, report.differing) == (original.root, {})
    assert report.changed == report.counts["resources"] == 199
    with open_engine(".", workspace="same", settings=settings) as copy:
        hits = 0
        for request in requests():
            expected = original.search(request)
            hits += len(expected.hits)
            assert told(copy.search(request)) == told(expected), request
            assert not expected.degraded
        assert hits > 300
        assert copy.status().meaning["read"] == copy.status().chunks
        assert [check.detail for check in copy.check() if not check.ok] == []
        mine, theirs = copy.writer.store, original.writer.store
        assert [right.rid for right in mine.rights()] == [right.rid for right in theirs.rights()]
        assert [change.rid for change in mine.changes(0)] == [change.rid for change in theirs.changes(0)]
        assert [change.rid for change in mine.changes(0)] != [right.rid for right in mine.rights()]
        assert mine.glossary() == theirs.glossary()
        assert mine.relations() == theirs.relations()
        assert mine.accesses(["memory:1"]) == {"memory:1": Access(3, EPOCH)}
        assert mine.skipped() == theirs.skipped()
        assert {model: list(mine.vectors(model, digests(mine)).items()) for model in mine.models()} == {
            model: list(theirs.vectors(model, digests(theirs)).items()) for model in theirs.models()
        }
        assert [mine.document(rid) for rid in mine.rids()] == [theirs.document(rid) for rid in theirs.rids()]
        assert copy.index().unchanged == 80, "nothing is read again that has not changed"


def digests(store: Any) -> list[bytes]:
    return [chunk.digest for rid in store.rids() for chunk in store.document(rid).chunks]


def test_the_same_workspace_makes_the_same_files(original: findling.Engine, bundle: Path, tmp_path: Path) -> None:
    export_bundle(original, tmp_path / "again", created_at=EPOCH)
    assert sorted(path.name for path in bundle.iterdir()) == sorted([*FILES, "manifest.json"])
    for path in bundle.iterdir():
        assert path.read_bytes() == (tmp_path / "again" / path.name).read_bytes()
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
    export_bundle(original, tmp_path / "a.zip", created_at=EPOCH)
    export_bundle(original, tmp_path / "b.zip", created_at=EPOCH)
    assert (tmp_path / "a.zip").read_bytes() == (tmp_path / "b.zip").read_bytes()
    assert stat.S_IMODE((tmp_path / "a.zip").stat().st_mode) == 0o600
    with zipfile.ZipFile(tmp_path / "a.zip") as archive:
        assert {name: archive.read(name) for name in archive.namelist()} == {
            path.name: path.read_bytes() for path in bundle.iterdir()
        }


def test_the_time_can_come_from_the_environment(
    original: findling.Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1767225600")
    export_bundle(original, tmp_path / "dated")
    assert Bundle.open(tmp_path / "dated").manifest["createdAt"] == "2026-01-01T00:00:00Z"
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "yesterday")
    with pytest.raises(InvalidValueError, match="SOURCE_DATE_EPOCH"):
        export_bundle(original, tmp_path / "undated")


def test_vectors_can_be_left_out(original: findling.Engine, settings: findling.Settings, tmp_path: Path) -> None:
    report = export_bundle(original, tmp_path / "words.zip", vectors=False)
    assert (report.counts["vectors"], report.counts["resources"]) == (0, 199)
    import_bundle(tmp_path / "words.zip", workspace="words", settings=settings, trust=TRUSTS)
    with open_engine(".", workspace="words", settings=settings) as copy:
        assert copy.status().meaning["read"] == 0
        assert copy.search("session token").meaning["speed"] == "instant"


def test_a_bundle_for_somebody_holds_nothing_else(
    original: findling.Engine, settings: findling.Settings, tmp_path: Path
) -> None:
    export_bundle(original, tmp_path / "ana", principals=["user:ana"])
    seen = {one.rid for one in original.ls() if one.visibility and "user:ana" in one.visibility}
    seen |= {one.rid for one in original.ls() if one.visibility and "group:team" in one.visibility}
    hidden = {one.rid for one in original.ls()} - seen
    assert len(seen) > 20 < len(hidden)
    report = import_bundle(tmp_path / "ana", workspace="ana", settings=settings, trust=TRUSTS)
    assert report.left_out[""] == ("rights, which a part of a workspace does not hold",)
    public = settings.override({"permissions.unset": "public"}, "test")
    with open_engine(".", workspace="ana", settings=public) as copy:
        assert not list(copy.as_caller("user:eve").ls()), "nobody but the owner, although the list is lost"
    with open_engine(".", workspace="ana", settings=settings) as copy:
        assert set(copy.writer.store.rids()) == seen
        assert copy.writer.store.relations() == []
        for query in QUERIES:
            request = SearchRequest(query=query, limit=50)
            mine = copy.search(request, refresh=False)
            theirs = original.search(SearchRequest(query=query, limit=50, principals=("user:ana",)), refresh=False)
            assert [(hit.id, hit.score) for hit in mine] == [(hit.id, hit.score) for hit in theirs]
    text = b"".join(path.read_bytes() for path in (tmp_path / "ana").iterdir()).decode()
    for secret in ("group:team", "user:eve", "!user", "ration", "mined", "blob.bin", str(original.root)):
        assert secret not in text
    replaced = {one.fields.get("supersedes") for one in original.ls() if one.rid in seen}
    for rid in hidden - replaced:
        assert f'"{rid}"' not in text
    assert "kontingent" in text


def test_the_bundle_of_somebody_tells_nothing_of_the_disk_or_of_equal_hidden_texts(
    settings: findling.Settings, tmp_path: Path
) -> None:
    """Inodes and times of change of the owner's files, and vectors in an order that hidden texts move."""
    told = []
    for name in ("without", "with"):
        root = tmp_path / name
        root.mkdir()
        (root / "a.md").write_text("# Sessions\n\nA session ends after an hour.\n")
        os.utime(root / "a.md", (1_700_000_000, 1_700_000_000))
        own = settings.override({"permissions.unset": "public", "semantic.model": "auto"}, "test")
        with findling.open(root, settings=own) as engine:
            if name == "with":  # equal to the last one, and read first
                engine.add([(Resource(rid="note:0", type="note", visibility=("user:eve",)), "The last one.")])
                engine.refine()
            engine.index()
            texts = ["The first one.", "The second one.", "The last one."]
            seen = [Resource(rid=f"note:{number}", type="note", visibility=("everyone",)) for number in (3, 2, 1)]
            engine.add(list(zip(seen, texts, strict=True)))
            engine.refine()
            export_bundle(engine, tmp_path / f"{name}.bundle", principals=["user:ana"], created_at=0.0)
        files = {path.name: path.read_text() for path in (tmp_path / f"{name}.bundle").iterdir()}
        ids = [json.loads(line)["id"] for line in files["vectors.jsonl"].splitlines()]
        assert len(ids) >= 4 and ids == sorted(ids)
        marks = [json.loads(line)["fingerprint"] for line in files["resources.jsonl"].splitlines()]
        assert {(mark["inode"], mark["mtime_ns"]) for mark in marks if mark} == {(0, -1)}
        told.append(files)
    assert told[0] == told[1]


def test_the_bundle_of_a_folder_holds_its_files_alone(
    original: findling.Engine, settings: findling.Settings, tmp_path: Path
) -> None:
    with open_engine(original.root / "part1", settings=settings) as part:
        report = export_bundle(part, tmp_path / "part")
        assert any(not one.path for one in part.ls())
        with pytest.raises(NotFoundError, match="these may see nothing"):
            export_bundle(part, tmp_path / "none", principals=["user:ana"])
    assert (report.counts["resources"], report.counts["files"], report.counts["relations"]) == (20, 20, 0)
    assert (report.counts["chunks"], report.counts["glossary"]) == (report.counts["vectors"], 0)
    text = b"".join(path.read_bytes() for path in (tmp_path / "part").iterdir()).decode()
    for other in ("decision:", "memory:", "part2", "user:ana", "kontingent", "blob.bin", str(original.root)):
        assert other not in text
    import_bundle(tmp_path / "part", workspace="part", settings=settings, trust=TRUSTS)
    with open_engine(".", workspace="part", settings=settings) as copy:
        assert {one.path.partition("/")[0] for one in copy.ls()} == {"part1"}


def test_a_bundle_answers_where_it_lies(original: findling.Engine, bundle: Path, tmp_path: Path) -> None:
    """In words, from the plain files alone: as the workspace does, with the same leg to the last digit."""
    with JsonlStore.open(bundle) as plain:
        tantivy, theirs, mine = TantivyLeg.open(tmp_path / "leg", store_id=""), MemoryLeg(), MemoryLeg()
        truth = original.writer.store
        catch_up(plain, tantivy)
        catch_up(plain, mine)
        catch_up(truth, theirs)
        found = 0
        for query in QUERIES:
            request = SearchRequest(query=query, limit=20, plan=findling.Plan(mode="keyword"))
            expected = original.search(request, refresh=False)
            answer = search(Retrievers(plain, tantivy), request)
            assert [asdict(hit) for hit in answer] == [asdict(hit) for hit in expected]
            by_memory = search(Retrievers(plain, mine), request)
            assert told(by_memory) == told(search(Retrievers(truth, theirs), request))
            found += len(expected.hits)
        assert found > 100
        tantivy.close()
        with pytest.raises(ReadOnlyError):
            plain.set_meta("key", "value")
        assert plain.relations() == truth.relations()
        assert plain.coverage(next(iter(truth.models()))) == truth.coverage(next(iter(truth.models())))


# Refusals


def test_only_a_bundle_is_overwritten_and_only_on_demand(original: findling.Engine, tmp_path: Path) -> None:
    (tmp_path / "precious").mkdir()
    (tmp_path / "precious" / "diary.txt").write_text("dear diary")
    (tmp_path / "notes.zip").write_text("no archive")
    (tmp_path / "empty").mkdir()
    for name in ("precious", "notes.zip", "empty"):
        with pytest.raises(InvalidValueError, match="is there already"):
            export_bundle(original, tmp_path / name)
    for name in ("precious", "notes.zip"):
        with pytest.raises(InvalidValueError, match="no bundle"):
            export_bundle(original, tmp_path / name, force=True)
    assert (tmp_path / "precious" / "diary.txt").read_text() == "dear diary"
    for _ in range(2):
        export_bundle(original, tmp_path / "empty", force=True, vectors=False)
    assert export_bundle(original, tmp_path / "empty", force=True).counts["vectors"] > 0
    assert sorted(path.name for path in tmp_path.iterdir()) == ["empty", "notes.zip", "precious"]
    with pytest.raises(PathNotFoundError):
        export_bundle(original, tmp_path / "nowhere" / "b")


def test_nothing_indexed_is_nothing_to_export(settings: findling.Settings, tmp_path: Path) -> None:
    (tmp_path / "bare").mkdir()
    with open_engine(tmp_path / "bare", settings=settings) as engine, pytest.raises(NotIndexedError):
        export_bundle(engine, tmp_path / "b")
    assert not (tmp_path / "b").exists()


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("harm", ["byte", "cut", "gone"])
def test_a_damaged_file_is_named_and_nothing_is_imported(
    bundle: Path, settings: findling.Settings, tmp_path: Path, name: str, harm: str
) -> None:
    shutil.copytree(bundle, tmp_path / "b")
    path = tmp_path / "b" / name
    content = path.read_bytes()
    if harm == "gone":
        path.unlink()
    elif harm == "cut" and content:
        path.write_bytes(content[:-1])
    else:
        path.write_bytes(content[:9] + b"~" + content[10:])
    with pytest.raises(CorruptError, match=name):
        import_bundle(tmp_path / "b", workspace="damaged", settings=settings, trust=TRUSTS)
    with pytest.raises(CorruptError, match=name):
        JsonlStore.open(tmp_path / "b")
    with open_engine(".", workspace="damaged", settings=settings) as engine:
        assert not engine.writer.exists


def test_a_manifest_must_be_one_that_is_known(bundle: Path, settings: findling.Settings, tmp_path: Path) -> None:
    shutil.copytree(bundle, tmp_path / "b")
    path = tmp_path / "b" / "manifest.json"
    manifest = json.loads(path.read_text())
    cases: list[tuple[object, type[Exception]]] = [
        ({**manifest, "schemaVersion": "2.0"}, FormatError),
        ({**manifest, "schemaVersion": "new"}, CorruptError),
        ({**manifest, "kind": "recipe"}, InvalidValueError),
        ({**manifest, "files": {}}, CorruptError),
        ({**manifest, "counts": []}, CorruptError),
        ([], InvalidValueError),
    ]
    for document, error in cases:
        path.write_text(json.dumps(document))
        with pytest.raises(error):
            import_bundle(tmp_path / "b", workspace="unknown", settings=settings, trust=TRUSTS)
    path.write_text("{")
    with pytest.raises(CorruptError, match="manifest"):
        import_bundle(tmp_path / "b", workspace="unknown", settings=settings, trust=TRUSTS)
    path.write_text(json.dumps({**manifest, "schemaVersion": "1.7", "news": True}))
    assert import_bundle(tmp_path / "b", workspace="known", settings=settings, trust=TRUSTS).changed == 199
    with pytest.raises(PathNotFoundError):
        import_bundle(tmp_path / "none", workspace="unknown", settings=settings, trust=TRUSTS)


# Targets


def test_a_workspace_that_is_not_empty_is_left_alone_unless_merged(
    bundle: Path, settings: findling.Settings, tmp_path: Path, tree: Path
) -> None:
    import_bundle(bundle, workspace="full", settings=settings, trust=TRUSTS)
    with pytest.raises(InvalidValueError, match="holds 199 resources"):
        import_bundle(bundle, workspace="full", settings=settings, trust=TRUSTS)
    with open_engine(".", workspace="full", settings=settings) as engine:
        engine.writer.put((), ["decision:4"])
        engine.add([(Resource(rid="memory:mine", type="memory"), "mine alone"), (Resource(rid="memory:1"), "changed")])
        engine.glossary.add("basket", ["trolley"])
        before = engine.writer.store.document("memory:5")
    with pytest.raises(InvalidValueError, match=r"would change 1 resource .* memory:1, 'changed', to"):
        import_bundle(bundle, workspace="full", merge=True, settings=settings, trust=TRUSTS)
    for expected in (2, 0):
        report = import_bundle(bundle, workspace="full", merge=True, replaces=True, settings=settings, trust=TRUSTS)
        assert report.changed == expected
        assert report.replaced == (("memory:1",) if expected else ())
    with open_engine(".", workspace="full", settings=settings) as engine:
        store = engine.writer.store
        assert len(list(store.rids())) == 200
        assert store.document("memory:5") == before
        assert store.accesses(["memory:1"]) == {"memory:1": Access(3, EPOCH)}, "not counted twice"
        assert {"trolley", "kontingent"} <= {term.surface for term in store.glossary()}
        assert [hit.rid for hit in engine.search("mine alone")][:1] == ["memory:mine"]
        assert [check.detail for check in engine.check() if not check.ok] == []
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "note.txt").write_text("another tree")
    with open_engine(tmp_path / "other", workspace="other", settings=settings) as engine:
        engine.index()
    with pytest.raises(InvalidValueError, match="not those that the workspace indexes"):
        import_bundle(bundle, workspace="other", merge=True, settings=settings, trust=TRUSTS)


def test_files_that_are_elsewhere_now(bundle: Path, settings: findling.Settings, tmp_path: Path, tree: Path) -> None:
    moved = tmp_path / "moved"
    shutil.copytree(tree, moved)
    report = import_bundle(bundle, root=moved, settings=settings, trust=TRUSTS)
    assert report.root == moved
    with open_engine(moved, settings=settings) as engine:
        assert engine.home == report.home
        hits = engine.search("session token", limit=50).hits
        assert {hit.type for hit in hits} > {"file"}
    with pytest.raises(InvalidValueError, match="none of the files"):
        (tmp_path / "strange").mkdir()
        import_bundle(bundle, root=tmp_path / "strange", settings=settings, trust=TRUSTS)
    with pytest.raises(PathNotFoundError):
        import_bundle(bundle, root=tmp_path / "missing", settings=settings, trust=TRUSTS)


def test_a_folder_with_other_files_does_not_take_the_place_of_those_in_the_bundle(
    settings: findling.Settings, tmp_path: Path
) -> None:
    root = tmp_path / "root"
    root.mkdir()
    (root / "note.txt").write_text("what was indexed")
    with open_engine(root, settings=settings) as engine:
        engine.index()
        export_bundle(engine, tmp_path / "b.zip")
        engine.forget_everything()
    (root / "note.txt").unlink()
    (root / "other.txt").write_text("somebody else's")
    with pytest.raises(UsageError, match="does not hold the files"):
        import_bundle(tmp_path / "b.zip", settings=settings, trust=TRUSTS)
    report = import_bundle(tmp_path / "b.zip", workspace="apart", settings=settings, trust=TRUSTS)
    assert report.root is None
    with open_engine(".", workspace="apart", settings=settings) as engine:
        answer = engine.search("indexed")
        assert ([hit.path for hit in answer], answer.degraded) == (["note.txt"], ())
    shutil.rmtree(root)
    with pytest.raises(UsageError, match="are not here"):
        import_bundle(tmp_path / "b.zip", settings=settings, trust=TRUSTS)
    report = import_bundle(tmp_path / "b.zip", workspace="away", settings=settings, trust=TRUSTS)
    with open_engine(".", workspace="away", settings=settings) as engine:
        assert engine.root == root
        answer = engine.search("indexed")
        assert [hit.path for hit in answer] == ["note.txt"]
        assert [note.what for note in answer.degraded] == [f"{root} is gone; the answer comes from the index alone"]


def test_settings_that_differ_are_told(bundle: Path, settings: findling.Settings) -> None:
    other = settings.override({"keyword.unit": "page", "search.refresh": "never"}, "test")
    report = import_bundle(bundle, workspace="differing", settings=other)
    assert report.differing == {"keyword.unit": ("chunk", "page")}


def test_an_import_that_was_stopped_is_completed_by_the_same_import(
    bundle: Path, settings: findling.Settings, original: findling.Engine
) -> None:
    """Stopped after the first batches, as a killed process leaves it."""
    with Bundle.open(bundle) as opened, open_engine(".", workspace="stopped", settings=settings) as engine:
        from itertools import islice

        from findling.stores.bundle.jsonl_records import to_document

        with engine.writer.files.writing():
            engine.writer.store.set_meta(IMPORTING, f"new {opened.identity}")
            engine.writer.store.set_meta("root", str(original.root))
            engine.writer.store.write(islice(opened.read("resources.jsonl", to_document), 30))
        assert not engine.is_indexed()
    report = import_bundle(bundle, workspace="stopped", settings=settings, trust=TRUSTS)
    assert report.changed > 150
    with open_engine(".", workspace="stopped", settings=settings) as engine:
        assert engine.is_indexed()
        assert engine.writer.store.get_meta(IMPORTING) == ""
        answers = [(hit.id, hit.score) for hit in engine.search("session token", limit=50)]
        assert answers == [(hit.id, hit.score) for hit in original.search("session token", limit=50)]
