"""The files of a PostgreSQL server that nothing was written to: made once in a run of the tests, copied for a server.

Tests that run as root use them as `nobody`, because a server refuses to run as root.
"""

from __future__ import annotations

import os
import shutil
import socket
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from findling.stores.lock import WriteLock
from tests.processes import PATIENCE_S, BoundedProcess, run_process

__all__ = [
    "copy_template",
    "free_port",
    "ordinary_environment",
    "ordinary_folder",
    "ordinary_user",
    "shared_template",
]

_TEMPLATE = "TEST_POSTGRES_TEMPLATE"
"""Environment variable with the folder of the template; without it every server makes its own."""

_ORDINARY_USER = "nobody"


def copy_template(folder: Path) -> Path:
    """Copy the data of a server into a folder; returns the folder of its programs. The first call makes the template.

    The data comes in 0.3 s, where a server that is made anew takes 4 s.
    """
    template = Path(os.environ.get(_TEMPLATE) or folder)
    with WriteLock(template / "lock", timeout_s=PATIENCE_S):
        if not (template / "made").exists():
            _make_template(template)
            (template / "made").touch()
    if template != folder:
        run_process(["cp", "-pR", str(template / "data"), str(folder)], check=True)
    return next(template.glob(".pg0/installation/*/bin"))


@contextmanager
def shared_template() -> Iterator[None]:
    """Have all servers of this process and those that it starts copy one template, which the first of them makes."""
    if _TEMPLATE in os.environ or os.name == "nt":
        yield
        return
    folder = ordinary_folder("findling-postgres-template-")
    os.environ[_TEMPLATE] = str(folder)
    try:
        yield
    finally:
        del os.environ[_TEMPLATE]
        shutil.rmtree(folder, ignore_errors=True)


def _make_template(folder: Path) -> None:
    """Unpack the programs, and make the files of a server that nothing was written to."""
    import pg0

    for part in (".pg0", "data"):  # of a process that was killed on the way
        shutil.rmtree(folder / part, ignore_errors=True)
    # Its folder may lie where an ordinary user cannot look.
    program = folder / "pg0"
    shutil.copy(Path(pg0.__file__).parent / "bin" / "pg0", program)
    program.chmod(0o755)
    port = free_port()
    data = ["--data-dir", str(folder / "data"), "--port", str(port), "--name", "test"]
    for command in (["start", *data], ["stop", "--name", "test"]):
        if command[0] == "stop":
            _shorten_password(port)
        # A server that goes on holds the pipes open, so output goes to a file.
        with (folder / "log").open("w") as log:
            options = {**ordinary_user(), "env": ordinary_environment(folder), "cwd": folder}
            done = BoundedProcess([str(program), *command], stdout=log, stderr=log, **options)
            assert done.wait() == 0, (folder / "log").read_text("utf-8")


def _shorten_password(port: int) -> None:
    """Have the server hash a password once and not 4,096 times: 6 ms of its 10 ms of CPU for every connection."""
    import psycopg

    with psycopg.connect(f"postgresql://postgres:postgres@127.0.0.1:{port}/postgres", autocommit=True) as connection:
        connection.execute("SET scram_iterations = 1")
        connection.execute("ALTER USER postgres PASSWORD 'postgres'")


def ordinary_folder(prefix: str) -> Path:
    """A new folder that belongs to the user of servers."""
    folder = Path(tempfile.mkdtemp(prefix=prefix))
    if ordinary_user():
        shutil.chown(folder, _ORDINARY_USER)
    return folder


def ordinary_user() -> dict[str, Any]:
    """Options of a process that runs as somebody else when this one runs as root."""
    return {"user": _ORDINARY_USER, "group": "nogroup", "extra_groups": []} if os.geteuid() == 0 else {}


def ordinary_environment(folder: Path) -> dict[str, str]:
    """The environment of a process of a server, with its home in this folder."""
    return {"PATH": os.environ["PATH"], "HOME": str(folder), "LC_ALL": "C.UTF-8"}


def free_port() -> int:
    """A port that nobody listens at."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
