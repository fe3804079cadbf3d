"""What a daemon leaves for others to find it by: a lock that ends with it, and a file that says where it listens."""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

__all__ = [
    "LOCK_FILE",
    "DaemonState",
    "daemon_folder",
    "make_folder",
    "read_state",
    "remove_state",
    "running",
    "socket_path",
    "write_state",
]

LOCK_FILE = "lock"
_STATE_FILE = "state.json"
_SOCKET = "socket"

_LONGEST_SOCKET = 100
"""Bytes of the path of a socket: Linux takes 107 of them, macOS 103."""


class DaemonState(NamedTuple):
    """Which process serves a home, since when, and where: the unix socket (empty: none), and the address on TCP."""

    pid: int
    version: str
    socket: str
    host: str
    port: int
    started_at: float

    @property
    def address(self) -> str:
        """Where a browser finds it."""
        return f"http://{f'[{self.host}]' if ':' in self.host else self.host}:{self.port}"


def daemon_folder(home: Path) -> Path:
    """The folder in a home that belongs to its daemon; no workspace can be called so."""
    return home / ".daemon"


def make_folder(home: Path) -> Path:
    """The folder, made if it has to be; for its owner alone."""
    folder = daemon_folder(home)
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    folder.chmod(0o700)
    return folder


def read_state(home: Path) -> DaemonState | None:
    """What the last daemon has left, whether it still runs or not; one look at the disk when there is nothing."""
    try:
        content = (daemon_folder(home) / _STATE_FILE).read_bytes()
    except FileNotFoundError:
        return None
    except (NotADirectoryError, PermissionError):
        return None  # a home that is not ours to look into
    import json  # which few searches need

    try:
        return DaemonState(**json.loads(content))
    except (TypeError, ValueError):
        return None  # of another version: like a daemon that is not there


def write_state(home: Path, state: DaemonState) -> None:
    """Say where the daemon is to be found, once it can be. Raises ReadOnlyError or DiskFullError."""
    import json

    from findling.service.whole_files import write_whole

    write_whole(daemon_folder(home) / _STATE_FILE, json.dumps(state._asdict()).encode())


def remove_state(home: Path) -> None:
    """Clear away what a daemon has left that runs no more. Whoever calls holds the lock."""
    state = read_state(home)
    (daemon_folder(home) / _STATE_FILE).unlink(missing_ok=True)
    for path in {daemon_folder(home) / _SOCKET, Path(state.socket) if state and state.socket else None}:
        if path is not None and _is_socket(path):
            path.unlink(missing_ok=True)
            if path.parent != daemon_folder(home):
                with suppress(OSError):  # nothing but the socket was ever put there
                    path.parent.rmdir()


def running(home: Path) -> DaemonState | None:
    """The daemon of a home, if it really listens; what one that was killed has left counts for nothing."""
    state = read_state(home)
    if state is None or not state.socket:
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


def socket_path(home: Path) -> Path:
    """Where the unix socket goes: beside the state, or in a new folder of our own where that path is too long."""
    path = daemon_folder(home) / _SOCKET
    if len(os.fsencode(path)) <= _LONGEST_SOCKET:
        return path
    from tempfile import mkdtemp

    return Path(mkdtemp(prefix="findling-")) / _SOCKET


def _is_socket(path: Path) -> bool:
    try:
        return stat.S_ISSOCK(path.lstat().st_mode)
    except OSError:
        return False
