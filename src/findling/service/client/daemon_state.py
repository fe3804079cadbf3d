"""The traces by which a daemon is found: a lock that ends with it, and a file with its addresses."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

from findling.domain.errors import DaemonError

_LOCK_FILE = "lock"
_STATE_FILE = "state.json"
_SOCKET = "socket"

_LONGEST_SOCKET = 100
"""Bytes of the path of a socket: Linux takes 107 of them, macOS 103."""


class DaemonState(NamedTuple):
    """The process that serves a home, its start, its unix socket (empty: none), and its address on TCP."""

    pid: int
    version: str
    socket: str
    host: str
    port: int
    started_at: float

    @property
    def address(self) -> str:
        """Its address for a browser."""
        return f"http://{f'[{self.host}]' if ':' in self.host else self.host}:{self.port}"


def daemon_folder(home: Path) -> Path:
    """The folder in a home that belongs to its daemon; no workspace can be called so."""
    return home / ".daemon"


def make_folder(home: Path) -> Path:
    """The folder, made if it has to be; for its owner alone."""
    from findling.stores.filesystem import make_private

    folder = daemon_folder(home)
    make_private(folder)
    folder.chmod(0o700)
    return folder


def read_state(home: Path) -> DaemonState | None:
    """The state of the last daemon, whether it still runs or not; one look at the disk when there is none."""
    try:
        content = (daemon_folder(home) / _STATE_FILE).read_bytes()
    except OSError:  # it is not there, or not ours to look into
        return None
    import json  # which few searches need

    try:
        return _checked_state(json.loads(content))
    except (RecursionError, ValueError):
        return None  # damaged: like a daemon that is not there


def write_state(home: Path, state: DaemonState) -> None:
    """Say where the daemon is to be found, once it can be. Raises ReadOnlyError or DiskFullError."""
    import json

    from findling.stores.filesystem import write_whole

    write_whole(daemon_folder(home) / _STATE_FILE, json.dumps(state._asdict()).encode())


def remove_state(home: Path) -> None:
    """Remove the state of a daemon that runs no more. The caller holds the lock.

    Raises DaemonError for something in the place of the file that cannot be removed.
    """
    state, file = read_state(home), daemon_folder(home) / _STATE_FILE
    try:
        file.unlink(missing_ok=True)
    except OSError as error:
        raise DaemonError(f"{file} cannot be replaced: {error.strerror}", hint="move it away") from error
    sockets = {daemon_folder(home) / _SOCKET, *([Path(state.socket)] if state and state.socket else [])}
    for path in [*sockets, *map(mcp_socket, sockets)]:
        if _is_socket(path):
            path.unlink(missing_ok=True)
            if path.parent != daemon_folder(home):
                with suppress(OSError):  # nothing but sockets was ever put there
                    path.parent.rmdir()


def running(home: Path) -> DaemonState | None:
    """The daemon of a home, if it really listens; what one that was killed has left counts for nothing."""
    state = read_state(home)
    if state is None or not is_own_socket(state.socket):
        return None
    import socket

    with socket.socket(socket.AF_UNIX) as line:
        line.settimeout(1.0)
        try:
            line.connect(state.socket)
        except TimeoutError:
            return state  # so busy that it does not come to take the call
        except OSError:
            return None
    return state


def process_that_holds(home: Path) -> int | None:
    """The process that is the daemon of a home, also when it cannot be found by its state; 0 for one without a name."""
    path = daemon_folder(home) / _LOCK_FILE
    if not os.path.exists(path):  # noqa: PTH110 - a home that is not ours to look into has none
        return None
    from findling.stores.lock import WriteLock, taken

    lock = WriteLock(path)
    holder = lock.holder()  # before the try, which would leave our own name there
    with taken(lock, 0.0) as is_free:
        return None if is_free else holder or 0


@contextmanager
def only_daemon(home: Path) -> Iterator[None]:
    """Be the daemon of a home, and clear away what a killed one has left. Raises DaemonError if one runs."""
    from findling.stores.lock import WriteLock, taken

    with taken(lock := WriteLock(make_folder(home) / _LOCK_FILE), 0.0) as is_ours:
        if not is_ours:
            state, holder = read_state(home), lock.holder() or 0
            at = f" at {state.address}" if state else ""
            hint = "findling serve --stop" if state else how_to_kill(holder)
            raise DaemonError(f"process {holder} serves {home} already{at}", hint=hint)
        remove_state(home)
        yield
        remove_state(home)


def has_ended(home: Path, patience_s: float) -> bool:
    """Whether the daemon of a home ends in time."""
    from findling.stores.lock import WriteLock, taken

    with taken(WriteLock(daemon_folder(home) / _LOCK_FILE), patience_s) as has_ended:
        return has_ended


def how_to_kill(pid: int) -> str:
    """The command that ends a process which does not answer."""
    if os.name == "nt":
        return f"taskkill /F /PID {pid}"
    return f"kill {pid}, and kill -9 {pid} if it stays"


def is_own_socket(path: str) -> bool:
    """Whether there is a socket that belongs to the user: a socket of others is sent nothing."""
    try:
        facts = os.lstat(path)
    except OSError:
        return False
    return stat.S_ISSOCK(facts.st_mode) and (os.name == "nt" or facts.st_uid == os.getuid())


def socket_path(home: Path) -> Path:
    """The path of the unix socket: beside the state, or in a new folder of our own where that path is too long."""
    path = daemon_folder(home) / _SOCKET
    if len(os.fsencode(path)) <= _LONGEST_SOCKET:
        return path
    from tempfile import mkdtemp

    return Path(mkdtemp(prefix="findling-")) / _SOCKET


def mcp_socket(path: str | Path) -> Path:
    """The socket beside a daemon's that takes the lines of MCP clients."""
    return Path(path).with_name("mcp")


def _checked_state(document: Any) -> DaemonState | None:
    """The state in a document, whatever else a later version has added; `None` where a field is of the wrong kind."""
    if not isinstance(document, dict):
        return None
    kinds: dict[str, type | tuple[type, ...]] = {
        "pid": int,
        "version": str,
        "socket": str,
        "host": str,
        "port": int,
        "started_at": (int, float),
    }
    if not all(isinstance(document.get(name), kind) for name, kind in kinds.items()):
        return None
    os.fsencode(document["socket"])  # raises UnicodeEncodeError, a ValueError, for what no path holds
    return DaemonState(**{name: document[name] for name in kinds}) if "\0" not in document["socket"] else None


def _is_socket(path: Path) -> bool:
    try:
        return stat.S_ISSOCK(path.lstat().st_mode)
    except OSError:
        return False
