"""Threads that read one store at once: none waits for another, each sees one state, all let go of the files."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from findling.domain.errors import ReplacedError
from findling.stores.sqlite.store import SqliteStore
from findling.testing.samples import line_document
from tests.processes import PATIENCE_S

_READERS = 4
"""As many as a store opens."""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "store.sqlite"


@pytest.fixture
def store(path: Path) -> Iterator[SqliteStore]:
    with SqliteStore.open(path) as opened:
        opened.write([line_document("a", ["first"])])
        yield opened


def _at_once(threads: int, work: Callable[[], int]) -> list[int]:
    with ThreadPoolExecutor(threads) as pool:
        return [future.result(PATIENCE_S) for future in [pool.submit(work) for _ in range(threads)]]


def _meeting(store: SqliteStore, readers: int) -> list[int]:
    """The number each of several threads reads while all others are reading, too."""
    meeting = threading.Barrier(readers, timeout=PATIENCE_S)

    def read() -> int:
        with store._connections.reading() as connection:
            meeting.wait()
            (seq,) = connection.execute("SELECT seq FROM header").fetchone()
            meeting.wait()
        return int(seq)

    return _at_once(readers, read)


def test_threads_read_at_the_same_time(store: SqliteStore) -> None:
    assert _meeting(store, _READERS) == [1] * _READERS


def test_more_threads_than_connections_take_turns(store: SqliteStore) -> None:
    at_once, most = 0, 0
    guard = threading.Lock()

    def read() -> int:
        nonlocal at_once, most
        for _ in range(20):
            with store._connections.reading() as connection:
                with guard:
                    at_once += 1
                    most = max(most, at_once)
                connection.execute("SELECT count(*) FROM chunks").fetchone()
                with guard:
                    at_once -= 1
        return store.seq()

    assert _at_once(12, read) == [1] * 12
    assert most <= _READERS


def test_a_reader_keeps_its_state_while_another_sees_the_next(store: SqliteStore) -> None:
    with store._connections.reading() as connection:
        connection.execute("SELECT seq FROM header").fetchone()
        with ThreadPoolExecutor(1) as pool:
            pool.submit(store.write, [line_document("b", ["second"])]).result(PATIENCE_S)
            assert pool.submit(store.seq).result(PATIENCE_S) == 2
        assert connection.execute("SELECT seq FROM header").fetchone() == (1,)
    assert store.seq() == 2


def test_a_store_that_is_only_read_is_read_by_several(path: Path, store: SqliteStore) -> None:
    store.close()
    with SqliteStore.open(path, readonly=True) as reader:
        assert _meeting(reader, _READERS) == [1] * _READERS


@pytest.mark.skipif(os.name == "nt", reason="folders have no such rights there")
def test_a_store_in_a_folder_that_cannot_be_written_is_read_by_several(path: Path, store: SqliteStore) -> None:
    store.close()
    path.parent.chmod(0o500)
    try:
        with SqliteStore.open(path, readonly=True) as reader:
            assert _meeting(reader, _READERS) == [1] * _READERS
    finally:
        path.parent.chmod(0o700)


def test_no_reader_wanders_to_a_store_that_has_taken_the_place(path: Path, store: SqliteStore) -> None:
    other = path.with_name("other.sqlite")
    with SqliteStore.open(other) as newcomer:
        newcomer.write([line_document(name, ["x"]) for name in "abc"])
    with ThreadPoolExecutor(1) as pool:
        with store._connections.reading() as connection:
            for suffix in ("-wal", "-shm", ""):
                path.with_name(path.name + suffix).replace(path.with_name("aside.sqlite" + suffix))
            other.replace(path)
            waiting = pool.submit(store.seq)
            # The first connection is in use and the path leads elsewhere: whoever comes next has to wait.
            with pytest.raises(TimeoutError):
                waiting.result(0.2)
            assert connection.execute("SELECT seq FROM header").fetchone() == (1,)
        assert waiting.result(PATIENCE_S) == 1
    with SqliteStore.open(path, readonly=True) as newcomer:
        assert newcomer.seq() == 3


def test_closing_waits_for_readers_and_refuses_later_ones(store: SqliteStore) -> None:
    with ThreadPoolExecutor(1) as pool:
        with store._connections.reading() as connection:
            closing = pool.submit(store.close)
            with pytest.raises(TimeoutError):
                closing.result(0.1)
            assert connection.execute("SELECT seq FROM header").fetchone() == (1,)
        closing.result(PATIENCE_S)
    with pytest.raises(ReplacedError, match="closed"):
        store.seq()
    store.close()


def test_a_thread_that_waits_for_its_turn_learns_that_the_store_is_closed(store: SqliteStore) -> None:
    _meeting(store, _READERS)
    may_end = threading.Event()
    begun = threading.Semaphore(0)

    def hold() -> int:
        with store._connections.reading():
            begun.release()
            may_end.wait(PATIENCE_S)
        return 0

    with ThreadPoolExecutor(_READERS + 2) as pool:
        holding = [pool.submit(hold) for _ in range(_READERS)]
        for _ in holding:
            assert begun.acquire(timeout=PATIENCE_S)
        waiting = pool.submit(store.seq)
        closing = pool.submit(store.close)
        with pytest.raises(ReplacedError):
            waiting.result(PATIENCE_S)
        may_end.set()
        closing.result(PATIENCE_S)


@pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="only Linux tells which files are open")
def test_all_files_are_let_go(path: Path, store: SqliteStore) -> None:
    _meeting(store, _READERS)
    assert _open_files(path) >= _READERS
    store.close()
    assert _open_files(path) == 0


def _open_files(path: Path) -> int:
    links = []
    for entry in Path("/proc/self/fd").iterdir():
        try:
            links.append(str(entry.readlink()))
        except FileNotFoundError:  # the one that the folder itself was read with
            continue
    return sum(link.startswith(str(path)) for link in links)


def test_an_error_gives_the_connection_back(store: SqliteStore) -> None:
    for _ in range(2 * _READERS):
        with pytest.raises(RuntimeError), store._connections.reading():
            raise RuntimeError
    assert _meeting(store, _READERS) == [1] * _READERS
