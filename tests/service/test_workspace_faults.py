"""Faults of workspaces that happened once, and must not again."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import threading
import time
from contextlib import closing, suppress
from pathlib import Path

import pytest

from findling.domain.backends import KEYWORD
from findling.domain.errors import (
    CorruptError,
    InvalidValueError,
    ManifestError,
    NotFoundError,
    QuotaError,
    UntrustedSettingError,
    UsageError,
)
from findling.domain.resources import Resource
from findling.service.engine.engine import Engine, open_engine
from findling.service.settings.settings import Settings
from findling.service.workspace.manifest import MANIFEST_FILE, read_manifest
from findling.service.workspace.quotas import Quota, disk_usage
from findling.service.workspace.workspace import PROJECT_FOLDER, folder_name, folder_of, indexed_root, locate
from findling.service.workspace.workspace_folders import changing, discard
from findling.service.workspace.workspace_moves import adopt_index, adoptable_index, move_workspace
from findling.service.workspace.workspaces import (
    all_workspaces,
    change_workspace,
    create_workspace,
    drop_workspace,
    list_workspaces,
    rename_workspace,
)
from findling.stores.local.legs import DAMAGED_FILE, STORE_FILE, KeywordLegs
from findling.stores.lock import WriteLock
from tests.processes import PATIENCE_S

MEMORY = (Resource(rid="memory:1", type="memory"), "The token is in the safe.")


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path.resolve() / "home"


@pytest.fixture
def settings(home: Path) -> Settings:
    own = {"store.home": str(home), "search.mode": "keyword", "semantic.instant": False}
    return Settings().override(own, "test")


@pytest.fixture
def in_project(settings: Settings) -> Settings:
    return settings.override({"store.place": "project"}, "test")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    made = tmp_path.resolve() / "project"
    made.mkdir()
    for number in range(3):
        (made / f"{number}.md").write_text(f"A token, number {number}.\n")
    return made


def open_index(root: Path, settings: Settings) -> Engine:
    """An engine on an index of the files, with a memory in it."""
    engine = open_engine(root, settings=settings)
    engine.index()
    engine.add([MEMORY])
    return engine


def damage(path: Path) -> None:
    path.write_bytes(b"no database at all" * 1000)


# Damage


def test_a_rebuild_with_a_damaged_manifest_loses_nothing(root: Path, settings: Settings) -> None:
    with open_index(root, settings) as engine:
        (engine.home / MANIFEST_FILE).write_text("{")
        with pytest.raises(ManifestError, match="manifest"):
            engine.index(rebuild=True)
        assert engine.fetch("memory:1").text == MEMORY[1]
        assert len(list(engine.ls())) == 4
        (engine.home / MANIFEST_FILE).unlink()
        assert engine.index(rebuild=True).added == 3
        assert engine.fetch("memory:1").text == MEMORY[1]


def test_a_rebuild_keeps_a_store_that_is_sound_whatever_else_is_damaged(
    root: Path, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    with open_index(root, settings) as engine:

        def fail() -> None:
            raise CorruptError("something beside the store is damaged")

        with monkeypatch.context() as patched:
            patched.setattr(engine._disk, "_legs", fail)
            with pytest.raises(CorruptError, match="beside the store"):
                engine.index(rebuild=True)
        assert not (engine.home / DAMAGED_FILE).exists()
        assert engine.index(rebuild=True).added == 3
        assert engine.fetch("memory:1").text == MEMORY[1]


def test_a_damaged_store_is_put_aside_and_not_deleted(root: Path, settings: Settings) -> None:
    with open_index(root, settings) as engine:
        folder = engine.home
    damage(folder / STORE_FILE)
    damaged = (folder / STORE_FILE).read_bytes()
    with open_engine(root, settings=settings) as engine:
        assert engine.index(rebuild=True).added == 3
        (notice,) = engine.notices()
        assert DAMAGED_FILE in notice.what
        assert engine.notices() == []
    assert (folder / DAMAGED_FILE).read_bytes() == damaged


def test_a_search_with_a_damaged_manifest_answers_and_says_so(root: Path, settings: Settings) -> None:
    with open_index(root, settings) as engine:
        (engine.home / MANIFEST_FILE).write_text("[]")
        (root / "3.md").write_text("A token, number 3.\n")
        answer = engine.search("token")
        assert answer.total == 4
        (missing,) = answer.degraded
        assert "changed files may be missing" in missing.what
        assert f"{engine.home / MANIFEST_FILE} is damaged" in missing.what
        assert "findling doctor --repair" in missing.what


def test_one_workspace_of_a_newer_format_does_not_keep_the_others_from_answering(
    home: Path, root: Path, settings: Settings
) -> None:
    create_workspace("team", home=home)
    with open_engine(workspace="team", settings=settings) as engine:
        engine.add([MEMORY])
    with open_index(root, settings) as engine:
        folder = engine.home
    with closing(sqlite3.connect(folder / STORE_FILE)) as connection, connection:
        connection.execute("UPDATE header SET format = 99, min_reader = 99")
    with open_engine(workspace="team", settings=settings) as engine:
        answer = engine.search("token", scope=f"{root},team")
    assert answer.total == 1
    (missing,) = answer.degraded
    assert missing.what.startswith(f"{folder} is not searched: ")


def test_a_leg_of_another_version_is_not_said_to_be_missing(root: Path, settings: Settings) -> None:
    with open_index(root, settings) as engine:
        leg = KeywordLegs(engine.home).folder()
    with open_engine(root, settings=settings) as engine:
        other = engine._files.backend.legs[KEYWORD].open("another store", "chunk")
        other.commit(1)
        other.close()
    with open_engine(root, settings=settings) as engine:
        assert "made by another version" in str(engine.search("token").degraded[0])
    shutil.rmtree(leg)
    with open_engine(root, settings=settings) as engine:
        assert "was missing" in str(engine.search("token").degraded[0])


# Places


def test_the_note_of_an_index_that_is_away_for_a_moment_stays(home: Path, root: Path, in_project: Settings) -> None:
    open_index(root, in_project).close()
    away = (root / PROJECT_FOLDER).rename(root.with_name("away"))
    create_workspace("other", home=home)
    away.rename(root / PROJECT_FOLDER)
    assert locate(root, home=home).folder == root / PROJECT_FOLDER


def test_an_index_that_is_not_known_here_can_be_adopted(
    home: Path, root: Path, in_project: Settings, settings: Settings
) -> None:
    open_index(root, in_project).close()
    assert adoptable_index(str(root), home=home) is None
    with pytest.raises(NotFoundError):
        adopt_index(str(root), home=home)
    shutil.rmtree(home)
    with pytest.raises(UntrustedSettingError, match="was not made here"):
        locate(root, home=home, place="project")
    assert adoptable_index(str(root), home=home) == root / PROJECT_FOLDER
    assert adopt_index(str(root), home=home).folder == root / PROJECT_FOLDER
    with open_engine(root, settings=settings) as engine:
        assert engine.home == root / PROJECT_FOLDER
        assert engine.fetch("memory:1").text == MEMORY[1]


@pytest.mark.parametrize("name", ["", "team"])
def test_an_index_that_has_moved_with_its_project_can_be_adopted(
    home: Path, root: Path, in_project: Settings, settings: Settings, name: str
) -> None:
    if name:
        create_workspace(name, home=home, root=root, place="project")
    with open_engine(root, workspace=name, settings=in_project) as engine:
        engine.index()
    moved = root.rename(root.with_name("moved"))
    found = adopt_index(str(moved), home=home)
    assert (found.name, indexed_root(found.folder)) == (name, moved)
    with open_engine(moved, workspace=name, settings=settings) as engine:
        report = engine.index()
        assert (report.unchanged, report.added, report.removed) == (3, 0, 0)


def test_an_index_that_has_moved_with_its_project_is_told_of(
    home: Path, root: Path, in_project: Settings, settings: Settings
) -> None:
    open_index(root, in_project).close()
    moved = root.rename(root.with_name("moved"))
    with open_engine(moved, settings=settings) as engine:
        first, second = engine.search("token"), engine.search("token")
        assert engine.home.parent == home
    (notice,) = first.degraded
    assert str(moved / PROJECT_FOLDER) in notice.what
    assert f"findling workspaces set {moved} --to project" in notice.fix
    assert second.degraded == ()
    drop_workspace(str(moved), home=home)
    assert adopt_index(str(moved), home=home).folder == moved / PROJECT_FOLDER


def test_a_new_index_in_a_synced_folder_is_warned_of(tmp_path: Path, in_project: Settings) -> None:
    root = tmp_path.resolve() / "Dropbox" / "notes"
    root.mkdir(parents=True)
    (root / "a.md").write_text("A token.\n")
    with open_engine(root, settings=in_project) as engine:
        (notice,) = engine.search("token").degraded
    assert "Dropbox" in notice.what
    assert notice.fix == f"findling workspaces set {root} --to home"


@pytest.mark.skipif(os.name == "nt", reason="links need rights there")
@pytest.mark.parametrize("exists", [True, False])
def test_a_link_in_the_place_of_an_index_is_refused(
    home: Path, root: Path, in_project: Settings, settings: Settings, tmp_path: Path, exists: bool
) -> None:
    target = tmp_path.resolve() / "elsewhere"
    if exists:
        target.mkdir()
    (root / PROJECT_FOLDER).symlink_to(target)
    with pytest.raises(UntrustedSettingError, match="is a link"):
        open_engine(root, settings=in_project)
    with pytest.raises(UntrustedSettingError, match="is a link"):
        create_workspace("team", home=home, root=root, place="project")
    open_index(root, settings).close()
    with pytest.raises(UntrustedSettingError, match="is a link"):
        move_workspace(str(root), "project", home=home)
    assert not target.exists() or list(target.iterdir()) == []


@pytest.mark.skipif(os.name == "nt", reason="links need rights there")
def test_a_link_that_a_note_leads_to_is_not_followed(home: Path, root: Path, in_project: Settings) -> None:
    open_index(root, in_project).close()
    elsewhere = (root / PROJECT_FOLDER).rename(root.with_name("elsewhere"))
    (root / PROJECT_FOLDER).symlink_to(elsewhere)
    assert locate(root, home=home).folder.parent == home


@pytest.mark.skipif(os.name == "nt", reason="links need rights there")
def test_clearing_away_deletes_links_and_not_what_they_lead_to(home: Path, tmp_path: Path) -> None:
    precious = tmp_path / "precious"
    precious.mkdir()
    (precious / "file").write_text("mine")
    home.mkdir()
    (home / ".deleted-team").symlink_to(precious)
    with changing(home):
        assert not (home / ".deleted-team").is_symlink()
    assert (precious / "file").read_text() == "mine"


def test_what_another_process_is_deleting_does_not_stop_a_change(home: Path) -> None:
    home.mkdir()
    stop = threading.Event()

    def delete_over_and_over() -> None:
        doomed = home / ".deleted-1"
        while not stop.is_set():
            with suppress(FileNotFoundError):
                doomed.mkdir(exist_ok=True)
                for number in range(20):
                    (doomed / str(number)).touch()
            shutil.rmtree(doomed, ignore_errors=True)

    other = threading.Thread(target=delete_over_and_over)
    other.start()
    try:
        for _ in range(200):
            with changing(home):
                pass
    finally:
        stop.set()
        other.join()


def deep_root(base: Path, name: str) -> Path:
    made = base.joinpath(*["a" * 60] * 4, name)
    made.mkdir(parents=True)
    (made / "a.md").write_text("A token.\n")
    return made


@pytest.mark.parametrize("name", [".new-things", ".deleted-things", ".config"])
def test_the_folder_of_a_deep_path_never_begins_with_a_dot(
    home: Path, tmp_path: Path, settings: Settings, name: str
) -> None:
    root = deep_root(tmp_path.resolve(), name)
    open_index(root, settings).close()
    with changing(home):
        pass
    assert locate(root, home=home).folder.name.startswith("+")
    assert [account.root for account in list_workspaces(home)] == [str(root)]


@pytest.mark.parametrize("name", [".new-things", ".config", "plain"])
def test_a_deep_path_is_found_under_the_name_that_it_had_before(
    home: Path, tmp_path: Path, settings: Settings, name: str
) -> None:
    root = deep_root(tmp_path.resolve(), name)
    open_index(root, settings).close()
    key = folder_name(root)
    former = (home / key).rename(home / key[1:])
    with changing(home):
        pass
    assert folder_of(key, home) == former
    assert locate(root, home=home).folder == former
    assert [found.folder for found in all_workspaces(home)] == [former]
    drop_workspace(str(root), home=home)
    assert not former.exists()


# The nature of a workspace


def test_what_is_no_file_makes_a_workspace_without_files(
    home: Path, root: Path, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(home.parent)
    with open_engine(workspace="fresh", settings=settings) as engine:
        engine.add([MEMORY])
        assert [hit.rid for hit in engine.search("token")] == ["memory:1"]
        with pytest.raises(UsageError, match="has no files"):
            engine.index()
    monkeypatch.chdir(root)
    with open_engine(workspace="fresh", settings=settings) as engine:
        assert [hit.rid for hit in engine.search("token")] == ["memory:1"]
    assert indexed_root(home / "fresh") == home / "fresh"


def test_a_glossary_makes_a_workspace_without_files_too(
    home: Path, root: Path, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(root)
    with open_engine(workspace="fresh", settings=settings) as engine, engine._files.writing():
        pass
    assert indexed_root(home / "fresh") == home / "fresh"


@pytest.mark.parametrize("name", ["", "docs"])
def test_what_is_no_file_leaves_a_path_that_was_named_to_be_indexed(
    home: Path, root: Path, settings: Settings, name: str
) -> None:
    with open_engine(root, workspace=name, settings=settings) as engine:
        engine.add([MEMORY])
        assert engine.search("token").total == 4
        manifest = read_manifest(engine.home)
    assert manifest is not None
    assert manifest.root == str(root)


@pytest.mark.parametrize("change", ["rename", "drop", "move"])
def test_a_writer_that_waited_does_not_write_under_a_name_that_is_gone(
    home: Path, root: Path, settings: Settings, change: str
) -> None:
    create_workspace("team", home=home, root=root)
    errors: list[Exception] = []
    with open_engine(root, workspace="team", settings=settings) as engine:
        lock = WriteLock(home / "team" / "write.lock")
        assert lock.acquire(0.0)

        def write() -> None:
            try:
                engine.add([MEMORY])
            except NotFoundError as error:
                errors.append(error)

        writer = threading.Thread(target=write)
        writer.start()
        deadline = time.monotonic() + PATIENCE_S
        while not engine.queue.is_busy and time.monotonic() < deadline:
            time.sleep(0.01)
        # As a change does it that holds the lock.
        if change == "drop":
            discard(home / "team", home)
        else:
            (home / "team").rename(home / "crew" if change == "rename" else root / PROJECT_FOLDER)
        lock.release()
        writer.join()
    assert "was moved or dropped meanwhile" in str(errors[0])
    assert not (home / "team").exists()


def test_a_workspace_can_be_made_again_by_who_has_deleted_it(root: Path, settings: Settings) -> None:
    with open_index(root, settings) as engine:
        engine.forget_everything()
        assert engine.index().added == 3


def test_a_folder_without_a_store_is_in_nobodys_way(home: Path) -> None:
    (home / "team").mkdir(parents=True)
    (home / "team" / "write.lock").touch()
    create_workspace("team", home=home)
    (home / "crew").mkdir()
    rename_workspace("team", "crew", home=home)
    (home / "mine").mkdir()
    (home / "mine" / "notes.txt").write_text("mine")
    with pytest.raises(InvalidValueError, match=r"it holds notes\.txt"):
        create_workspace("mine", home=home)
    assert (home / "mine" / "notes.txt").exists()


def test_renaming_a_workspace_without_a_manifest_keeps_its_root(home: Path, root: Path, settings: Settings) -> None:
    create_workspace("docs", home=home, root=root)
    (home / "docs" / MANIFEST_FILE).unlink()
    found = rename_workspace("docs", "notes", home=home)
    manifest = read_manifest(found.folder)
    assert manifest is not None
    assert (manifest.name, manifest.root) == ("notes", str(root))


@pytest.mark.skipif(os.name == "nt", reason="names of any bytes")
def test_a_root_that_is_not_utf8_is_refused_and_leaves_nothing(home: Path, tmp_path: Path) -> None:
    bad = Path(os.fsdecode(os.fsencode(tmp_path) + b"/bad\xff"))
    try:
        bad.mkdir()
    except OSError:
        pytest.skip("this file system takes only UTF-8")
    with pytest.raises(InvalidValueError, match="is not UTF-8") as caught:
        create_workspace("badroot", home=home, root=bad)
    assert caught.value.hint == "rename the folder"
    assert not (home / ".new-badroot").exists()


def test_a_path_in_a_workspace_without_files_has_a_hint_that_helps(home: Path, tmp_path: Path) -> None:
    create_workspace("team", home=home)
    with pytest.raises(InvalidValueError) as caught:
        locate(tmp_path, home=home, name="team")
    assert caught.value.hint == "findling --workspace team QUERY"


# Quotas


def test_a_quota_of_the_disk_does_not_count_snapshots(home: Path) -> None:
    folder = create_workspace("team", home=home).folder
    before = disk_usage(folder)
    (folder / "snapshots" / "one").mkdir(parents=True)
    (folder / "snapshots" / "one" / STORE_FILE).write_bytes(b"x" * 5000)
    (folder / "more").write_bytes(b"x" * 7)
    assert disk_usage(folder) == before + 7


def test_what_fits_of_a_batch_is_written(home: Path, settings: Settings) -> None:
    create_workspace("team", home=home, quota=Quota(resources=2))
    items = [(Resource(rid=f"decision:{n}", type="decision"), f"Token {n}.") for n in range(4)]
    with open_engine(workspace="team", settings=settings) as engine:
        with pytest.raises(QuotaError, match="decision:2 does not fit") as caught:
            engine.add(items)
        assert "findling compact" in caught.value.hint
        assert {hit.rid for hit in engine.search("token")} == {"decision:0", "decision:1"}


def test_nothing_of_a_batch_is_written_when_it_is_whole(home: Path, settings: Settings) -> None:
    from findling.pipelines.indexing.document_build import text_documents

    create_workspace("team", home=home, quota=Quota(resources=2))
    items = [(Resource(rid=f"decision:{n}", type="decision"), f"Token {n}.") for n in range(3)]
    with open_engine(workspace="team", settings=settings) as engine:
        plan = engine.writer.chunk_plan
        with pytest.raises(QuotaError), engine.writer.writing(whole=True) as put:
            put((document for batch in text_documents(items, plan) for document in batch), ())
        assert engine.search("token").total == 0


def test_what_a_quota_keeps_out_has_not_failed(home: Path, root: Path, settings: Settings) -> None:
    create_workspace("docs", home=home, root=root, quota=Quota(resources=1))
    with open_engine(root, workspace="docs", settings=settings) as engine:
        report = engine.index()
        assert (report.added, report.failed, report.skipped["quota"]) == (1, 0, 2)
        assert engine.failed() == []


def test_limits_are_changed_one_by_one_under_the_lock(home: Path) -> None:
    create_workspace("team", home=home)
    limits = {"resources": 5, "text": 500, "disk": 50_000_000}
    threads = [
        threading.Thread(target=change_workspace, args=("team",), kwargs={"home": home, "limits": {name: most}})
        for name, most in limits.items()
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    document = json.loads((home / "team" / MANIFEST_FILE).read_text())
    assert document["quota"] == limits
    _, changed = change_workspace("team", home=home, limits=dict.fromkeys(limits, 0))
    assert changed.quota is None


def test_an_older_workspace_of_memories_alone_takes_no_files_in(
    home: Path, root: Path, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(root)
    with open_engine(workspace="old", settings=settings) as engine:
        engine.add([MEMORY])
    with closing(sqlite3.connect(home / "old" / STORE_FILE)) as connection, connection:
        connection.execute("DELETE FROM meta WHERE key = 'root'")
    with open_engine(workspace="old", settings=settings) as engine:
        assert [hit.rid for hit in engine.search("token")] == ["memory:1"]
