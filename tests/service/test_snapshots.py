"""Snapshots: made while others write, verified, restored to the letter, and let go in time."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

import findling
from findling.domain.errors import (
    CorruptError,
    DiskFullError,
    FormatError,
    InvalidValueError,
    NotFoundError,
    NotIndexedError,
    PathNotFoundError,
)
from findling.domain.records import GlossaryTerm
from findling.service.upkeep.snapshots import WorkspaceSnapshots
from findling.stores.sqlite.store import SqliteStore
from tests.processes import small_disk

QUERIES = ("harbour lantern", "meadow", "granite -velvet", "orchard compass", "remembered colour")
WORDS = ["harbour", "lantern", "meadow", "thimble", "granite", "orchard", "compass", "velvet", "saddle", "parchment"]


@pytest.fixture
def settings(tmp_path: Path) -> findling.Settings:
    # No model reads during a search: what it gets done depends on the time it takes.
    values = {"store.home": str(tmp_path / "home"), "semantic.refine": "never", "semantic.query_budget_ms": 0}
    # None is made by itself among those that are made here.
    return findling.Settings().override({**values, "snapshot.auto_bytes": 0}, "test")


@pytest.fixture
def engine(tmp_path: Path, settings: findling.Settings) -> Iterator[findling.Engine]:
    root = tmp_path / "tree"
    root.mkdir()
    for number in range(12):
        words = [WORDS[(number * 7 + place * place) % len(WORDS)] for place in range(50)]
        (root / f"note{number}.md").write_text(f"# Note {number}\n\n{' '.join(words)}\n")
    with findling.open(root, settings=settings) as opened:
        opened.index()
        opened.add([memory("one", "The remembered colour is green.")])
        yield opened


@pytest.fixture
def snapshots(engine: findling.Engine, settings: findling.Settings) -> WorkspaceSnapshots:
    return WorkspaceSnapshots(engine.writer.files, settings)


def memory(name: str, text: str) -> tuple[findling.Resource, str]:
    return findling.Resource(rid=f"memory:{name}", type="memory", title=name), text


def rearrange(engine: findling.Engine) -> None:
    """Change, delete and add files, and what is no file."""
    for number in range(0, 12, 2):
        (engine.root / f"note{number}.md").write_text("# Other\n\nmeadow granite zanzibar\n")
    for number in range(1, 8, 2):
        (engine.root / f"note{number}.md").unlink()
    engine.index()
    engine.add([memory("one", "The remembered colour is red."), memory("two", "meadow")])


def answers(engine: findling.Engine) -> dict[str, list[tuple[object, ...]]]:
    found: dict[str, list[tuple[object, ...]]] = {}
    for query in QUERIES:
        hits = engine.search(query, refresh=False, limit=100)
        found[query] = [(hit.id, hit.rid, hit.score, hit.lines) for hit in hits]
    return found


def assert_sound(engine: findling.Engine) -> None:
    assert [check for check in engine.check() if not check.ok and check.name not in ("disk space", "snapshot")] == []


def test_a_restored_state_answers_to_the_letter(engine: findling.Engine, snapshots: WorkspaceSnapshots) -> None:
    # From nothing, as a restore makes them: what was deleted before counts in the statistics of a leg until then.
    engine.repair()
    engine.writer.store.write_glossary([GlossaryTerm("g", "k", "harbour", "approved", "user", "", None)])
    before = answers(engine)
    assert all(before.values())
    made = snapshots.create("good")
    rearrange(engine)
    engine.writer.store.write_glossary([], [("g", "k")])
    assert answers(engine) != before
    numbers = engine.writer.store.seq(), engine.writer.store.glossary_version()
    report = snapshots.restore("good")
    assert answers(engine) == before
    assert [term.surface for term in engine.writer.store.glossary()] == ["harbour"]
    assert report.snapshot == made
    assert report.safety is not None
    assert report.put_aside is None
    # Others notice a change by these numbers: none may ever come again.
    assert engine.writer.store.seq() > numbers[0]
    assert engine.writer.store.glossary_version() > numbers[1]
    assert_sound(engine)
    snapshots.restore(report.safety.name)
    assert engine.search("zanzibar", refresh=False).hits
    assert_sound(engine)


def test_files_that_differ_are_taken_in_again(engine: findling.Engine, snapshots: WorkspaceSnapshots) -> None:
    snapshots.create("good")
    rearrange(engine)
    snapshots.restore("good")
    assert not engine.search("zanzibar", refresh=False).hits
    assert len(engine.search("zanzibar", limit=100).hits) == 6
    assert "green" in str(engine.search("remembered colour").hits[0].lines)


def test_an_engine_that_was_open_follows(
    engine: findling.Engine, snapshots: WorkspaceSnapshots, settings: findling.Settings
) -> None:
    engine.repair()
    before = answers(engine)
    snapshots.create("good")
    with findling.open(engine.root, settings=settings) as other:
        assert answers(other) == before
        rearrange(engine)
        assert other.search("zanzibar", refresh=False).hits
        snapshots.restore("good")
        assert answers(other) == before
        other.add([memory("three", "thimble of the other process")])
    assert [hit.rid for hit in engine.search('"other process"', refresh=False)] == ["memory:three"]
    assert_sound(engine)


def test_states_that_part_ways_are_told_apart(
    engine: findling.Engine, snapshots: WorkspaceSnapshots, settings: findling.Settings
) -> None:
    """The same number of changes after a restore is another state."""
    snapshots.create("fork")
    with findling.open(engine.root, settings=settings) as sleeper:
        engine.add([memory("left", "gooseberry")])
        assert sleeper.search('"gooseberry"', refresh=False).hits
        snapshots.restore("fork", safety=False)
        engine.add([memory("right", "elderberry")])
        assert not sleeper.search('"gooseberry"', refresh=False).hits
        assert [hit.rid for hit in sleeper.search('"elderberry"', refresh=False)] == ["memory:right"]


def test_a_copy_is_one_state_while_others_write(
    engine: findling.Engine, snapshots: WorkspaceSnapshots, settings: findling.Settings
) -> None:
    engine.writer.store.put_vectors("m", {n.to_bytes(16, "big"): b"\0" * 60_000 for n in range(200)})
    counts, seq = engine.writer.store.counts(), engine.writer.store.seq()
    steps: list[int] = []
    with findling.open(engine.root, settings=settings) as other:

        def write_meanwhile(remaining: int, total: int) -> None:
            steps.append(remaining)
            other.add([memory(f"late{len(steps)}", "gooseberry jam")])
            assert other.search("gooseberry", refresh=False).hits

        made = snapshots.create("calm", on_step=write_meanwhile)
    assert len(steps) >= 3
    assert (made.counts, made.seq) == (counts, seq)
    assert snapshots.verify("calm") == ()
    assert engine.writer.store.counts()["resources"] == counts["resources"] + len(steps)


def test_what_lies_on_disk(engine: findling.Engine, snapshots: WorkspaceSnapshots) -> None:
    made = snapshots.create("good")
    folder = engine.home / "snapshots"
    assert sorted(file.name for file in folder.iterdir()) == ["good.sqlite", "good.sqlite.json"]
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert {stat.S_IMODE(file.stat().st_mode) for file in folder.iterdir()} == {0o600}
    told = json.loads((folder / "good.sqlite.json").read_text())
    assert told.keys() == {"createdAt", "seq", "counts", "bytes", "sha256", "format", "version"}
    assert told["counts"] == engine.writer.store.counts()
    assert (made.path, made.version) == (folder / "good.sqlite", findling.__version__)
    with SqliteStore.open(made.path, readonly=True) as copy:
        assert copy.integrity() == []
        assert set(copy.rids()) == set(engine.writer.store.rids())


def test_the_latest_are_kept(engine: findling.Engine, snapshots: WorkspaceSnapshots) -> None:
    for number in range(4):
        snapshots.create(f"s{number}")
    assert [each.name for each in snapshots.list()] == ["s3", "s2", "s1", "s0"]
    snapshots.create("s4", keep=3)
    assert [each.name for each in snapshots.list()] == ["s4", "s3", "s2"]
    snapshots.create("s5", keep=0)
    assert len(snapshots.list()) == 4
    for _ in range(6):
        snapshots.create()
    assert len(snapshots.list()) == 7, "as the settings say"
    oldest = snapshots.list()[-1].name
    report = snapshots.restore(oldest)
    names = [each.name for each in snapshots.list()]
    assert report.safety is not None
    assert {oldest, report.safety.name} <= set(names), "neither the one restored nor what was there goes"
    assert snapshots.drop(oldest).name == oldest
    assert oldest not in [each.name for each in snapshots.list()]
    assert not list((engine.home / "snapshots").glob(f"{oldest}*"))
    with pytest.raises(InvalidValueError):
        snapshots.create(keep=-1)


def test_names_that_are_none(snapshots: WorkspaceSnapshots) -> None:
    for name in ("../x", "a/b", ".hidden", "", "x.", "a b", "x.sqlite", "x" * 101, "a\0b", "ü", "x\n"):
        with pytest.raises(InvalidValueError):
            snapshots.drop(name)
        with pytest.raises(InvalidValueError):
            snapshots.restore(name)
        if name:
            with pytest.raises(InvalidValueError):
                snapshots.create(name)
    assert snapshots.list() == []


def test_names_that_are_taken_or_missing(snapshots: WorkspaceSnapshots) -> None:
    made = snapshots.create("good")
    with pytest.raises(InvalidValueError, match="there already"):
        snapshots.create("good")
    assert snapshots.list() == [made]
    for ask in (snapshots.verify, snapshots.restore, snapshots.drop):
        with pytest.raises(NotFoundError, match="called bad"):
            ask("bad")


def test_a_file_elsewhere(engine: findling.Engine, snapshots: WorkspaceSnapshots, tmp_path: Path) -> None:
    file = tmp_path / "copy.db"
    made = snapshots.create(to=file)
    assert (made.path, snapshots.list()) == (file, [])
    assert snapshots.verify(file) == ()
    with pytest.raises(InvalidValueError):
        snapshots.create(to=file)
    with pytest.raises(PathNotFoundError):
        snapshots.create(to=tmp_path / "nowhere" / "copy.db")
    shutil.rmtree(engine.home)
    snapshots.restore(file)
    assert "green" in str(engine.search("remembered colour", refresh=False).hits[0].lines)
    assert stat.S_IMODE(engine.home.stat().st_mode) == 0o700
    assert_sound(engine)


def test_damage_is_told_and_nothing_is_restored(engine: findling.Engine, snapshots: WorkspaceSnapshots) -> None:
    file = snapshots.create("good").path
    description = file.with_name("good.sqlite.json")
    sound, told = file.read_bytes(), json.loads(description.read_text())
    flipped = bytearray(sound)
    flipped[len(sound) // 2] ^= 1
    rearrange(engine)
    before = answers(engine)

    def assert_refused(word: str, error: type[findling.FindlingError] = CorruptError) -> None:
        problems = snapshots.verify("good")
        assert word in "; ".join(problems)
        with pytest.raises(error, match=word):
            snapshots.restore("good")
        assert answers(engine) == before
        assert [each.name for each in snapshots.list()] == ["good"], "no safety snapshot is made for nothing"

    file.write_bytes(flipped)
    assert_refused("checksum")
    file.write_bytes(sound[:-4096])
    assert_refused("bytes")
    file.write_bytes(sound)
    description.write_text(json.dumps({**told, "counts": {**told["counts"], "chunks": 1}}))
    assert_refused("description says")
    description.write_text(json.dumps({**told, "format": 99}))
    assert_refused("format 99", FormatError)
    description.write_text("{")
    assert_refused("cannot be read")
    description.unlink()
    assert_refused("missing")
    description.write_text(json.dumps(told))
    assert snapshots.verify("good") == ()


def test_damage_behind_a_fitting_checksum(
    engine: findling.Engine, snapshots: WorkspaceSnapshots, tmp_path: Path
) -> None:
    made = snapshots.create("good")
    connection = sqlite3.connect(made.path)
    connection.execute("PRAGMA journal_mode = DELETE")
    connection.execute("DELETE FROM bodies WHERE id = 3")
    connection.commit()
    connection.close()
    describe_anew(made.path)
    assert "has no text" in "; ".join(snapshots.verify("good"))
    foreign = tmp_path / "foreign.db"
    connection = sqlite3.connect(foreign)
    connection.execute("CREATE TABLE t (x)")
    connection.close()
    shutil.copy(made.path.with_name("good.sqlite.json"), tmp_path / "foreign.db.json")
    describe_anew(foreign)
    assert "no store of findling" in "; ".join(snapshots.verify(foreign))
    assert_sound(engine)


def describe_anew(path: Path) -> None:
    import hashlib

    description = path.with_name(f"{path.name}.json")
    told = json.loads(description.read_text())
    told |= {"bytes": path.stat().st_size, "sha256": hashlib.sha256(path.read_bytes()).hexdigest()}
    description.write_text(json.dumps(told))


@pytest.mark.parametrize("damage", ["garbage", "page", "gone", "empty"])
def test_a_store_that_cannot_be_read_is_restored(
    engine: findling.Engine, snapshots: WorkspaceSnapshots, damage: str
) -> None:
    engine.repair()
    before = answers(engine)
    snapshots.create("good")
    rearrange(engine)
    engine.close()
    store = engine.home / "index.sqlite"
    content = bytearray(store.read_bytes())
    if damage == "garbage":
        store.write_bytes(b"garbage" * 1000)
    elif damage == "page":
        content[4096:] = b"\xff" * (len(content) - 4096)
        store.write_bytes(content)
    elif damage == "empty":
        store.write_bytes(b"")
    else:
        store.unlink()
    report = snapshots.restore("good")
    assert answers(engine) == before
    assert_sound(engine)
    if damage in ("garbage", "page"):
        assert report.put_aside == engine.home / "index.sqlite.damaged"
        assert report.put_aside.stat().st_size > 0
        assert report.safety is None


def test_there_must_be_something_to_copy(tmp_path: Path, settings: findling.Settings) -> None:
    (tmp_path / "empty").mkdir()
    with findling.open(tmp_path / "empty", settings=settings) as engine:
        snapshots = WorkspaceSnapshots(engine.writer.files, settings)
        assert snapshots.list() == []
        with pytest.raises(NotIndexedError):
            snapshots.create()
    assert not (tmp_path / "home").exists()


def test_what_is_interrupted_leaves_nothing(engine: findling.Engine, snapshots: WorkspaceSnapshots) -> None:
    def interrupt(remaining: int, total: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        snapshots.create("half", on_step=interrupt)
    assert list((engine.home / "snapshots").iterdir()) == []
    snapshots.create("half")


def test_a_full_disk_leaves_nothing(engine: findling.Engine, snapshots: WorkspaceSnapshots, tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    with small_disk(disk, "1m") as resize:
        with pytest.raises(DiskFullError, match="no space left"):
            snapshots.create(to=disk / "copy.db")

        def fill(remaining: int, total: int) -> None:
            if not (disk / "filler").exists():
                (disk / "filler").write_bytes(b"x" * (os.statvfs(disk).f_bavail * os.statvfs(disk).f_frsize))

        resize("60m")
        engine.writer.store.put_vectors("m", {n.to_bytes(16, "big"): b"\0" * 60_000 for n in range(200)})
        with pytest.raises(DiskFullError, match="no space left"):
            snapshots.create(to=disk / "copy.db", on_step=fill)
        assert [file.name for file in disk.iterdir()] == ["filler"]
    assert_sound(engine)
