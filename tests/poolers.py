"""A real pooler for tests: pgbouncer in transaction mode in front of a server, found where it is installed.

As a script, `python -m tests.poolers --install` installs it where that is possible, and says what it did. It never
fails: without a pooler the tests that need one are skipped, and say so.
"""

from __future__ import annotations

import os
import shutil
import socket
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from subprocess import DEVNULL
from typing import TYPE_CHECKING, Any

import psycopg

from tests.processes import PATIENCE_S, BoundedProcess, run_process

if TYPE_CHECKING:
    from tests.postgres_servers import PostgresServer

__all__ = ["find_pooler", "install", "pooled", "why_no_pooler"]

_PACKAGE = "pgbouncer"
_INSTALLING_S = 300.0
_CONNECTIONS = 2
"""Connections to the server: fewer than there are clients, so that nobody keeps one."""

_SETTINGS = """
[databases]
* = host=127.0.0.1 port={server} user={user} password={password}

[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {port}
unix_socket_dir =
auth_type = any
pool_mode = transaction
default_pool_size = {connections}
max_client_conn = 100
ignore_startup_parameters = extra_float_digits
logfile = {folder}/log
pidfile = {folder}/pid
"""


def find_pooler() -> str | None:
    """The place of pgbouncer, if it is installed."""
    return os.environ.get("PGBOUNCER") or shutil.which("pgbouncer", path=f"{os.environ['PATH']}:/usr/sbin")


def why_no_pooler() -> str:
    """The reason why tests with a pooler are skipped; empty when there is none."""
    return "" if find_pooler() else "pgbouncer is not installed: python -m tests.poolers --install"


def install() -> str:
    """Install pgbouncer with apt-get, as root on Debian; what was done, or why nothing was."""
    if find_pooler() is not None:
        return f"the pooler is there: {find_pooler()}"
    apt = shutil.which("apt-get")
    if apt is None or not hasattr(os, "geteuid") or os.geteuid() != 0:
        return f"no pooler was installed: that takes root and apt-get; the package is {_PACKAGE}"
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    for command in ([apt, "update", "-q"], [apt, "install", "-q", "-y", "--no-install-recommends", _PACKAGE]):
        done = run_process(command, env=environment, timeout=_INSTALLING_S)
        if done.returncode:
            return f"no pooler was installed: {' '.join(command)} failed: {done.stderr.strip()[-500:]}"
    return f"installed {_PACKAGE}: {find_pooler()}"


@contextmanager
def pooled(
    server: PostgresServer, user: str = "postgres", password: str = "postgres", connections: int = _CONNECTIONS
) -> Iterator[str]:
    """The URL of the server's database through a pooler, all of whose clients are one user of the server."""
    program = find_pooler()
    assert program is not None
    folder = Path(tempfile.mkdtemp(prefix="findling-pooler-"))
    options: dict[str, Any] = {}
    if os.geteuid() == 0:
        options = {"user": "nobody", "group": "nogroup", "extra_groups": []}
        shutil.chown(folder, "nobody")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = int(probe.getsockname()[1])
    text = _SETTINGS.format(
        server=server.port, port=port, connections=connections, folder=folder, user=user, password=password
    )
    settings = folder / "pgbouncer.ini"
    settings.write_text(text)
    settings.chmod(0o644)
    process = BoundedProcess([program, str(settings)], stdin=DEVNULL, stdout=DEVNULL, stderr=DEVNULL, **options)
    try:
        url = f"postgresql://{user}@127.0.0.1:{port}/postgres"
        deadline = time.monotonic() + PATIENCE_S
        while True:
            try:
                psycopg.connect(url, connect_timeout=5).close()
                break
            except psycopg.OperationalError:
                if time.monotonic() > deadline or process.poll() is not None:
                    log = folder / "log"
                    raise AssertionError(log.read_text() if log.exists() else "pgbouncer does not start") from None
                time.sleep(0.02)
        yield url
    finally:
        process.kill()
        process.wait()
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    print(install() if sys.argv[1:] == ["--install"] else why_no_pooler() or f"the pooler is there: {find_pooler()}")
