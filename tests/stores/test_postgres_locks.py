"""Locks in PostgreSQL exclude other hosts, and end with their holder."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path
from subprocess import PIPE

import psycopg
import pytest

from findling.domain.errors import WorkspaceError
from findling.stores.lock import WriteLock
from findling.stores.postgres.locks import PostgresLock
from findling.stores.postgres.server.places import parse_place
from tests.postgres_servers import PostgresServer
from tests.processes import BoundedProcess

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
            " WHERE state = 'idle in transaction' AND application_name = 'findling'"
        ).fetchall()
    assert rows == [(None, None)]
    held.release()
