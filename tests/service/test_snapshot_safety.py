"""Snapshots never cost what they are for: sound copies, files of others, and what belongs to the workspace."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

import findling
from findling.domain.errors import CorruptError, DiskFullError, InvalidValueError, NotFoundError
from findling.service.upkeep.snapshots import WorkspaceSnapshots
from findling.stores.local.snapshot_files import require_room
from tests.processes import small_disk


@pytest.fixture
def settings(tmp_path: Path) -> findling.Settings:
    values = {"store.home": str(tmp_path / "home"), "semantic.refine": "never", "search.mode": "keyword"}
    return findling.Settings().override(values, "test")


@pytest.fixture
def engine(tmp_path: Path, settings: findling.Settings) -> Iterator[findling.Engine]:
    with indexed(tmp_path / "tree", settings) as opened:
        yield opened


@pytest.fixture
def snapshots(engine: findling.Engine) -> WorkspaceSnapshots:
    return engine.snapshots


def indexed(root: Path, settings: findling.Settings, *, name: str | None = None) -> findling.Engine:
    root.mkdir(exist_ok=True)
    for number in range(3):
        (root / f"note{number}.md").write_text(f"# Note {number}\n\nharbour of {root.name}\n")
    engine = findling.open(root, workspace=name, settings=settings)
    engine.index()
    return engine


def damage(engine: findling.Engine) -> None:
    """Lose a text in a way that only a close look at the store tells."""
    engine.close()
    connection = sqlite3.connect(engine.home / "index.sqlite")
    connection.execute("DELETE FROM bodies WHERE id = (SELECT min(id) FROM bodies)")
    connection.commit()
    connection.close()


def names(snapshots: WorkspaceSnapshots) -> list[str]:
    return [each.name for each in snapshots.list()]


def test_a_damaged_store_is_not_copied_and_drives_no_sound_snapshot_out(
    engine: findling.Engine, snapshots: WorkspaceSnapshots, tmp_path: Path
) -> None:
    snapshots.create("monday")
    snapshots.create("tuesday")
    damage(engine)
    for name, file in (("wednesday", None), ("", tmp_path / "copy.db")):
        with pytest.raises(CorruptError, match=r"damaged.*no snapshot was made") as caught:
            snapshots.create(name, to=file, keep=None if file else 1)
        assert caught.value.hint == "findling snapshot restore tuesday"
    assert names(snapshots) == ["tuesday", "monday"]
    assert not list(tmp_path.glob("*copy.db*"))
    assert len(list((engine.home / "snapshots").iterdir())) == 4


def test_a_store_that_cannot_be_opened_is_led_back_to_a_snapshot(
    engine: findling.Engine, snapshots: WorkspaceSnapshots
) -> None:
    snapshots.create("monday")
    engine.close()
    (engine.home / "index.sqlite").write_bytes(b"no database at all" * 500)
    with pytest.raises(CorruptError) as caught:
        snapshots.create()
    assert caught.value.hint == "findling snapshot restore monday"
    snapshots.drop("monday")
    with pytest.raises(CorruptError) as caught:
        snapshots.create()
    assert caught.value.hint == "findling index --rebuild"


def test_the_copy_of_a_damaged_store_that_a_restore_keeps_is_called_so_and_counts_apart(
    engine: findling.Engine, snapshots: WorkspaceSnapshots
) -> None:
    for number in range(7):
        snapshots.create(f"s{number}")
    damage(engine)
    report = snapshots.restore("s6")
    assert report.safety is not None
    assert report.safety.name.startswith("damaged-before-restore-")
    assert "has no text" in report.safety.problem
    assert {f"s{number}" for number in range(7)} < set(names(snapshots)), "as many as the settings keep are sound"
    assert snapshots.list()[0] == report.safety
    assert snapshots.verify(report.safety.name) == (report.safety.problem,)
    with pytest.raises(CorruptError, match="nothing was changed"):
        snapshots.restore(report.safety.name)
    assert all(check.ok for check in engine.check() if check.name != "disk space")
    snapshots.create("s7")
    assert set(names(snapshots)) == {report.safety.name, *(f"s{number}" for number in range(1, 8))}


def test_doctor_names_the_snapshot_to_go_back_to(engine: findling.Engine, snapshots: WorkspaceSnapshots) -> None:
    damage(engine)
    (found,) = [check for check in engine.check() if check.name == "truth store"]
    assert (found.ok, found.hint) == (False, "findling index --rebuild")
    engine.index(rebuild=True)
    snapshots.create("monday")
    engine.close()
    (engine.home / "index.sqlite").write_bytes(b"no database at all" * 500)
    (found,) = [check for check in engine.check() if check.name == "truth store"]
    assert (found.ok, found.hint) == (False, "findling snapshot restore monday")
    assert "privacy" in {check.name for check in engine.check()}, "the rest is looked at as well"


def test_a_file_beside_the_target_that_is_not_ours_stays(
    engine: findling.Engine, snapshots: WorkspaceSnapshots, tmp_path: Path
) -> None:
    file, beside = tmp_path / "copy.db", tmp_path / "copy.db.json"
    beside.write_text('{"mine": true}')
    with pytest.raises(InvalidValueError, match=r"copy\.db\.json is there already"):
        snapshots.create(to=file)
    assert (beside.read_text(), file.exists()) == ('{"mine": true}', False)
    beside.unlink()
    snapshots.create(to=file)
    file.unlink()
    described = beside.read_text()

    def interrupt(remaining: int, total: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        snapshots.create(to=file, on_step=interrupt)
    assert beside.read_text() == described, "only what this call wrote is deleted"
    assert snapshots.create(to=file).path == file, "the description of a copy that is gone is in nobody's way"
    assert snapshots.verify(file) == ()


def test_what_belongs_to_the_workspace_survives_a_restore(
    engine: findling.Engine, snapshots: WorkspaceSnapshots, settings: findling.Settings, tmp_path: Path
) -> None:
    file = tmp_path / "copy.db"
    snapshots.create(to=file)
    small = settings.override({"index.max_file_size": 30}, "test")
    with indexed(tmp_path / "other", small, name="other") as other:
        (other.root / "long.md").write_text("gooseberry " * 20)
        other.index()
        other.snapshots.create("small")
    with indexed(tmp_path / "other", settings, name="other") as other:
        assert other.search("gooseberry").hits, "it is not too large any more"
        other.snapshots.restore("small", safety=False)
        assert other.writer.store.get_meta("root") == str(other.root)
        assert other.search("gooseberry").hits, "and is tried again after a restore of when it was"
        for loss in ("", "damaged", "gone"):
            other.close()
            if loss == "damaged":
                (other.home / "index.sqlite").write_bytes(b"no database at all" * 500)
            elif loss == "gone":
                (other.home / "index.sqlite").unlink()
            other.snapshots.restore(file)
            assert other.writer.store.get_meta("root") == str(other.root)
            assert [hit.path for hit in other.search('"harbour of tree"', refresh=False)] != []
            assert {hit.path for hit in other.search('"harbour of other"')} == {f"note{n}.md" for n in range(3)}


def test_a_new_workspace_follows_the_folder_of_the_snapshot(
    engine: findling.Engine, snapshots: WorkspaceSnapshots, settings: findling.Settings, tmp_path: Path
) -> None:
    file = tmp_path / "copy.db"
    snapshots.create(to=file)
    with findling.open(workspace="saved", settings=settings) as saved:
        saved.snapshots.restore(file)
        assert saved.writer.store.get_meta("root") == str(engine.root)


def test_a_workspace_that_is_not_there_is_not_made(settings: findling.Settings, tmp_path: Path) -> None:
    (tmp_path / "tree").mkdir()
    with findling.open(tmp_path / "tree", workspace="typo", settings=settings) as engine:
        snapshots = engine.snapshots
        for ask in (snapshots.verify, snapshots.restore, snapshots.drop):
            with pytest.raises(NotFoundError, match=r"no workspace at .*typo"):
                ask("nope")
        with pytest.raises(NotFoundError, match="no snapshot"):
            snapshots.restore(tmp_path / "nope.db")
    assert not (tmp_path / "home").exists()


def test_too_little_room_is_told_in_numbers_and_with_what_helps(
    engine: findling.Engine, snapshots: WorkspaceSnapshots, tmp_path: Path
) -> None:
    free = shutil.disk_usage(engine.home).free
    with pytest.raises(DiskFullError, match=r"takes [\d,]+\.\d MB at .* where [\d,]+\.\d MB are free") as caught:
        require_room(engine.home, 2 * free, "a copy", engine.home)
    assert "drop" not in caught.value.hint, "there is none"
    snapshots.create("monday")
    with pytest.raises(DiskFullError) as caught:
        require_room(engine.home, 2 * free, "a copy", engine.home)
    assert "findling snapshot drop NAME" in caught.value.hint
    disk = tmp_path / "disk"
    too_large = pytest.raises(DiskFullError, match=r"takes [1-9][\d.]* MB at .* where 0\.9 MB")
    with small_disk(disk, "900k"), too_large as caught:
        snapshots.create(to=disk / "copy.db")
    assert "drop" not in caught.value.hint, "what lies on another disk is in nobody's way"
