"""Locks in PostgreSQL exclude other hosts, and end with their holder."""

from __future__ import annotations

import os
import signal
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from subprocess import PIPE

import psycopg
import pytest

from findling.domain.errors import WorkspaceError
from findling.stores.lock import WriteLock
from findling.stores.postgres import locks
from findling.stores.postgres.locks import PostgresLock
from findling.stores.postgres.server.places import parse_place
from findling.stores.postgres.truth.store import PostgresStore
from findling.testing.samples import PLAIN
from tests.postgres_servers import PostgresServer
from tests.processes import PATIENCE_S, BoundedProcess, run_process

_HOLD = """
import sys
from pathlib import Path
from findling.stores.lock import WriteLock
from findling.stores.postgres.locks import PostgresLock
from findling.stores.postgres.server.places import parse_place

lock = PostgresLock(parse_place(sys.argv[1]), "write", WriteLock(sys.argv[2]))
assert lock.acquire(0.0)
print("held", flush=True)
sys.stdin.read()
"""


_WRITE = """
import sys
from pathlib import Path
from findling.domain.errors import LockedError
from findling.service.index.index_files import OpenedWorkspace
from findling.testing.samples import line_document

name, folder = sys.argv[1], Path(sys.argv[2])
files = OpenedWorkspace(folder, unit="chunk")
try:
    with files.writing():
        files.store.write([line_document(f"{name}1", ["first"])])
        print("written", flush=True)
        sys.stdin.readline()
        files.store.write([line_document(f"{name}2", ["second"])])
    print("done", flush=True)
except LockedError as error:
    print(error.message, "|", error.hint, flush=True)
"""


def lock_at(place: str, folder: Path, name: str = "write") -> PostgresLock:
    folder.mkdir(exist_ok=True)
    return PostgresLock(parse_place(place), name, WriteLock(folder / f"{name}.lock"))


@pytest.mark.parametrize("suffix", ["", "?pooler=transaction"])
def test_it_excludes_other_hosts_and_processes(postgres: PostgresServer, tmp_path: Path, suffix: str) -> None:
    place = postgres.place().replace("#", f"{suffix}#")
    here, there = tmp_path / "here", tmp_path / "there"
    held = lock_at(place, here)
    assert held.acquire(0.0)
    assert not lock_at(place, here).acquire(0.0)
    elsewhere = lock_at(place, there)
    assert not elsewhere.acquire(0.05)
    assert (held.holder(), elsewhere.holder()) == (os.getpid(), None)
    for other in (lock_at(place, there, "refine"), lock_at(f"{place}-other", there)):
        assert other.acquire(0.0)
        other.release()
    held.release()
    held.release()
    assert elsewhere.acquire(0.0)
    assert elsewhere.holder() == os.getpid()
    elsewhere.release()


def test_a_killed_holder_holds_nobody_up(postgres: PostgresServer, tmp_path: Path) -> None:
    place, there = postgres.place(), tmp_path / "there"
    there.mkdir()
    command = [sys.executable, "-c", _HOLD, place, str(there / "write.lock")]
    with BoundedProcess(command, stdin=PIPE, stdout=PIPE) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        lock = lock_at(place, tmp_path / "here")
        assert not lock.acquire(0.0)
        holder.send_signal(signal.SIGKILL)
    assert lock.acquire(30.0)
    lock.release()


def test_a_server_that_restarts_takes_locks_again(tmp_path: Path) -> None:
    server = PostgresServer()
    try:
        lock = lock_at(server.place("again"), tmp_path / "here")
        assert lock.acquire(0.0)
        server.kill()
        lock.release()  # nothing is left to release
        with pytest.raises(WorkspaceError) as caught:
            lock.acquire(0.0)
        assert "postgres:postgres" not in f"{caught.value.message}{caught.value.hint}"
        server.restart()
        assert lock.acquire(0.0)
        lock.release()
    finally:
        server.close()


def test_a_forked_child_keeps_no_lock(postgres: PostgresServer, tmp_path: Path) -> None:
    place = postgres.place()
    held = lock_at(place, tmp_path / "here")
    assert held.acquire(0.0)
    child = os.fork()
    if not child:
        held.release()  # the parent's
        os._exit(0 if not lock_at(place, tmp_path / "there").acquire(0.0) else 1)
    assert os.waitpid(child, 0)[1] == 0
    held.release()


def test_waiting_takes_no_snapshot_of_the_server(postgres: PostgresServer, tmp_path: Path) -> None:
    held = lock_at(postgres.place(), tmp_path / "here")
    assert held.acquire(0.0)
    with psycopg.connect(postgres.dsn) as connection:
        rows = connection.execute(
            "SELECT backend_xid, backend_xmin FROM pg_stat_activity"
            " WHERE state = 'idle in transaction' AND application_name LIKE 'findling%'"
        ).fetchall()
    assert rows == [(None, None)]
    held.release()


@pytest.mark.parametrize("suffix", ["", "?pooler=transaction"])
def test_a_holder_that_has_lost_its_lock_writes_nothing_once_another_has_it(
    postgres: PostgresServer, tmp_path: Path, suffix: str
) -> None:
    place = postgres.place().replace("#", f"{suffix}#")
    for name in "ab":
        (tmp_path / name).mkdir()
        (tmp_path / name / "place.url").write_text(place)

    def started(name: str) -> BoundedProcess:
        writer = BoundedProcess([sys.executable, "-c", _WRITE, name, str(tmp_path / name)], stdin=PIPE, stdout=PIPE)
        assert writer.stdout is not None
        assert writer.stdout.readline() == "written\n"
        return writer

    with started("a") as first:
        with psycopg.connect(postgres.dsn, autocommit=True) as connection:
            ended = connection.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory' AND granted"
            ).fetchall()
        assert ended == [(True,)]
        with started("b") as second:  # which waits for nobody
            told, _ = first.communicate("go on\n")
            assert "nothing of this write was kept, only what the command had written before | do the same" in told
            assert "postgres:postgres" not in told
            assert second.communicate("go on\n")[0] == "done\n"
    with PostgresStore.open(place, readonly=True) as store:
        assert list(store.rids()) == ["a1", "b1", "b2"]
        assert store.integrity() == []


def test_a_lock_that_nobody_else_has_taken_serves_on(postgres: PostgresServer, tmp_path: Path) -> None:
    place = postgres.place()
    with PostgresStore.create(place) as store:
        held = lock_at(place, tmp_path / "here")
        assert held.acquire(0.0)
        with psycopg.connect(postgres.dsn, autocommit=True) as connection:
            connection.execute("SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory'")
        store.write([PLAIN])
        held.release()
        assert held.acquire(0.0)
        store.write([], [PLAIN.resource.rid])
        held.release()
        store.write([PLAIN])
        assert store.seq() == 3


def test_a_lock_is_not_taken_before_the_write_of_an_earlier_holder_ends(
    postgres: PostgresServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(locks, "_WRITE_S", 0.05)
    place = postgres.place()
    with PostgresStore.create(place) as store:
        lock = lock_at(place, tmp_path / "here")
        with store.connections.writing():
            assert not lock.acquire(0.0)
        assert lock.acquire(0.0)
        lock.release()


def test_a_lock_that_waits_for_another_host_leaves_the_files_of_this_one(
    postgres: PostgresServer, tmp_path: Path
) -> None:
    place, here = postgres.place(), tmp_path / "here"
    held, waiting, own = lock_at(place, tmp_path / "there"), lock_at(place, here), WriteLock(here / "write.lock")
    assert held.acquire(0.0)
    with ThreadPoolExecutor(1) as pool:
        taken = pool.submit(waiting.acquire, PATIENCE_S)
        assert own.acquire(PATIENCE_S)
        held.release()
        assert not taken.done()
        own.release()
        assert taken.result()
    assert waiting.holder() == os.getpid()
    waiting.release()


_AT_THE_END = """
import atexit, gc

@atexit.register
def tell():
    import psycopg
    print([one for one in gc.get_objects() if isinstance(one, psycopg.Connection) and not one.closed])
"""


def test_a_process_that_ends_closes_its_connections(postgres: PostgresServer, tmp_path: Path) -> None:
    code = _AT_THE_END + _HOLD.replace("sys.stdin.read()", "lock.release()")
    done = run_process([sys.executable, "-c", code, postgres.place(), str(tmp_path / "lock")], check=True)
    assert done.stdout == "held\n[]\n"


def test_behind_a_pooler_no_connection_is_used_that_keeps_statements(postgres: PostgresServer, tmp_path: Path) -> None:
    place = postgres.place()
    before = lock_at(place, tmp_path)
    assert before.acquire(0.0)
    before.release()
    pooled = lock_at(place.replace("#", "?pooler=transaction#"), tmp_path)
    assert pooled.acquire(0.0)
    assert pooled._connection is not None
    assert pooled._connection.prepare_threshold is None
    pooled.release()
