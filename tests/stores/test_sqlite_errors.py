from __future__ import annotations

import os
import shutil
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from findling.domain.errors import (
    CorruptError,
    DiskFullError,
    LockedError,
    NotIndexedError,
    PathNotFoundError,
    ReadOnlyError,
    WorkspaceError,
)
from findling.domain.ports import SkippedPath
from findling.domain.resources import Fingerprint, Resource
from findling.pipelines.indexing.document_build import text_documents
from findling.stores.sqlite.store import SqliteStore
from findling.testing.samples import FULL, PLAIN, line_document
from findling.text.chunking.chunk_plan import ChunkPlan

NOBODY = 65534


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A store with one document."""
    path = tmp_path / "truth.db"
    with SqliteStore.open(path) as store:
        store.write([PLAIN])
    return path


def test_a_full_disk_keeps_what_was_committed_and_the_store_goes_on(path: Path) -> None:
    with SqliteStore.open(path) as store:
        store.write([FULL])
        assert store._connections.writer is not None
        # The only way to a real SQLITE_FULL that needs no file system of its own.
        (pages,) = store._connections.writer.execute("PRAGMA page_count").fetchone()
        store._connections.writer.execute(f"PRAGMA max_page_count = {pages + 4}")
        with pytest.raises(DiskFullError) as caught:
            store.write([line_document("small", ["x"]), line_document("large", ["x" * 200_000])])
        assert caught.value.hint
        assert list(store.rids()) == [FULL.resource.rid, PLAIN.resource.rid]
        assert store.seq() == 2
        store._connections.writer.execute("PRAGMA max_page_count = 1000000")
        store.write([line_document("large", ["x" * 200_000])])
        assert store.seq() == 3
        assert store.integrity() == []


def test_a_store_opened_for_reading_refuses_to_write(path: Path) -> None:
    with SqliteStore.open(path, readonly=True) as store:
        with pytest.raises(ReadOnlyError):
            store.write([FULL])
        with pytest.raises(ReadOnlyError):
            store.touch({"a": Fingerprint(1, 2)})
        with pytest.raises(ReadOnlyError):
            store.set_skipped([SkippedPath("a", "b")])
        with pytest.raises(ReadOnlyError):
            store.set_meta("a", "b")
        with pytest.raises(ReadOnlyError):
            store.put_vectors("m", {b"a": b"1"})
        with pytest.raises(ReadOnlyError):
            store.want([1])
        with pytest.raises(ReadOnlyError):
            store.drop_vectors()
        assert store.document(PLAIN.resource.rid) == PLAIN


def test_a_store_to_be_read_that_is_not_there_is_not_created(tmp_path: Path) -> None:
    with pytest.raises(NotIndexedError) as caught:
        SqliteStore.open(tmp_path / "truth.db", readonly=True)
    assert "findling index" in caught.value.hint
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(PathNotFoundError, match="nowhere"):
        SqliteStore.open(tmp_path / "nowhere" / "truth.db")


@pytest.mark.parametrize("readonly", [False, True])
def test_a_file_that_is_no_database_is_damaged(path: Path, readonly: bool) -> None:
    path.write_bytes(b"once this was a store" * 1000)
    with pytest.raises(CorruptError) as caught:
        SqliteStore.open(path, readonly=readonly)
    assert "findling" in caught.value.hint
    assert path.read_bytes().startswith(b"once")


def test_a_damaged_page_is_reported_as_damage(path: Path) -> None:
    with SqliteStore.open(path) as store:
        store.write([line_document(f"r{number}", ["x" * 3000, f"{number}"]) for number in range(50)])
    with path.open("r+b") as file:
        for page in range(30, path.stat().st_size // 4096):  # the tables themselves are described before
            file.seek(page * 4096)
            file.write(os.urandom(4096))
    with SqliteStore.open(path, readonly=True) as store:
        assert store.integrity()
        with pytest.raises(CorruptError):
            list(store.changes(0))


def test_text_that_is_no_longer_unicode_is_reported_as_damage(path: Path) -> None:
    content = path.read_bytes()
    at = content.rindex(b"one\ntwo\ntwo\nthree")
    path.write_bytes(content[:at] + b"\xff" + content[at + 1 :])
    with SqliteStore.open(path, readonly=True) as store, pytest.raises(CorruptError):
        store.document(PLAIN.resource.rid)


@pytest.mark.parametrize("letter", ["e", "é", "漢"])
def test_a_passage_proves_itself_and_a_changed_one_is_reported_as_damage(path: Path, letter: str) -> None:
    """Other passages of the text are what they were, and are given."""
    text = "\n\n".join(f"# Part {number}\n\n" + f"w{letter}rds of {number} " * 300 for number in range(5))
    ((document,),) = text_documents([(Resource(rid="r", title="Parts"), text)], ChunkPlan())
    first, *_, last = document.chunks
    assert len(document.chunks) > 4
    with SqliteStore.open(path) as store:
        store.write([document])
        shown = {chunk.cid: text[chunk.start : chunk.end] for chunk in document.chunks}
        assert {cid: chunk.text for cid, chunk in store.chunks([*shown]).items()} == shown
    connection = sqlite3.connect(path)
    with connection:
        connection.execute("UPDATE bodies SET text = replace(text, 'rds of 4', 'rdz of 4')")
    connection.close()
    with SqliteStore.open(path) as store:
        assert store.chunks([first.cid])[first.cid].text == shown[first.cid]
        with pytest.raises(CorruptError, match="text"):
            store.chunks([first.cid, last.cid])


def test_a_document_without_its_text_is_reported_as_damage(path: Path) -> None:
    connection = sqlite3.connect(path)
    with connection:
        connection.execute("DELETE FROM bodies")
    connection.close()
    with SqliteStore.open(path) as store:
        with pytest.raises(CorruptError, match="text"):
            store.document(PLAIN.resource.rid)
        with pytest.raises(CorruptError, match="text"):
            store.chunks([PLAIN.chunks[0].cid])
        store.write([PLAIN])
        assert store.document(PLAIN.resource.rid) == PLAIN


def test_another_writer_that_does_not_finish_is_named(path: Path) -> None:
    other = sqlite3.connect(path, isolation_level=None)
    with SqliteStore.open(path) as store:
        store.set_meta("a", "before")
        assert store._connections.writer is not None
        store._connections.writer.execute("PRAGMA busy_timeout = 20")
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(LockedError):
            store.set_meta("a", "after")
        assert store.get_meta("a") == "before"
        other.execute("ROLLBACK")
        store.set_meta("a", "after")
        assert store.get_meta("a") == "after"
    other.close()


@pytest.fixture
def shared_folder() -> Iterator[Path]:
    """A folder outside the private one of the tests, that another user can enter."""
    folder = Path(tempfile.mkdtemp(prefix="findling-"))
    folder.chmod(0o755)
    yield folder
    folder.chmod(0o755)
    shutil.rmtree(folder)


@contextmanager
def someone_without_rights() -> Iterator[None]:
    """The superuser may write everything, so the tests must be somebody else for a moment."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(0)


@pytest.mark.skipif(os.name == "nt", reason="Windows keeps access lists, not modes")
def test_a_store_in_a_read_only_folder_can_be_read(shared_folder: Path) -> None:
    path = shared_folder / "truth.db"
    with SqliteStore.open(path) as store:
        store.write([PLAIN])
    path.chmod(0o444)
    shared_folder.chmod(0o555)
    with someone_without_rights():
        with SqliteStore.open(path, readonly=True) as store:
            assert store.document(PLAIN.resource.rid) == PLAIN
            assert store.integrity() == []
        with pytest.raises(ReadOnlyError):
            SqliteStore.open(path)
    assert [file.name for file in shared_folder.iterdir()] == ["truth.db"]


@pytest.mark.skipif(os.name == "nt", reason="Windows keeps access lists, not modes")
def test_a_log_that_cannot_be_read_is_never_ignored(shared_folder: Path) -> None:
    path, copy = shared_folder / "truth.db", shared_folder / "copy.db"
    with SqliteStore.open(path) as store:
        store.write([PLAIN])
    with SqliteStore.open(path) as store:
        store.write([FULL])
        for end in ("", "-wal"):
            shutil.copy(f"{path}{end}", f"{copy}{end}")
            Path(f"{copy}{end}").chmod(0o444)
    shared_folder.chmod(0o555)
    with someone_without_rights(), pytest.raises(WorkspaceError, match="copy"):
        SqliteStore.open(copy, readonly=True)
