"""Starting and ending the warm process of a home."""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from findling.domain.errors import FindlingError
from findling.service.client.daemon_state import make_folder
from findling.service.warm.kit import describe_kit
from findling.service.warm.place import SOCKET, peer_of, reach

__all__ = ["WARM_PROCESS", "start", "stop"]

WARM_PROCESS = (sys.executable, "-P", "-c", "from findling.__main__ import stay_warm; stay_warm()")
"""The command of a warm process; the home follows. `-P`: the current folder may be a stranger's, with modules in it."""

_TOLD_FILE = "warm.told"
_LOG_FILE = "warm.log"
_LARGEST_PIPE = 60_000
"""Bytes that a pipe holds on Linux, while nobody reads it, are 65,536."""


def start(home: Path, asked: str, names: Sequence[str]) -> bool:
    """Start the warm process of a home, unless it runs; whether it is the first that this home has.

    `asked` is the folder in which shells look for it, by these `names`.
    """
    try:
        folder = make_folder(home)
        for name in names:
            _link(Path(asked) / name, folder / SOCKET)
        if (line := reach(str(folder), SOCKET)) is not None:
            line.close()
            return False
        _spawn(home, folder / _LOG_FILE)
        with suppress(FileExistsError):
            os.close(os.open(folder / _TOLD_FILE, os.O_CREAT | os.O_EXCL, 0o600))
            return True
    except (FindlingError, OSError):  # a home that cannot be written, no process left: a search works without
        pass
    return False


def stop(home: Path) -> int | None:
    """Ask the warm process of a home to leave; its number, or `None` when there is none."""
    from findling.service.client.daemon_state import daemon_folder

    line = reach(str(daemon_folder(home)), SOCKET)
    if line is None:
        return None
    pid, _ = peer_of(line)
    line.close()
    os.kill(pid, signal.SIGTERM)
    return pid


def _link(path: Path, target: Path) -> None:
    """Have a path lead to the socket, unless it is the socket."""
    if path == target or (path.is_symlink() and os.readlink(path) == str(target)):
        return
    make_folder(path.parent.parent)
    with suppress(FileNotFoundError):
        path.unlink()
    path.symlink_to(target)


def _spawn(home: Path, log: Path) -> None:
    """Start the process in a session of its own, with all that this one has loaded to begin with."""
    kit = json.dumps(describe_kit()).encode()
    reading, writing = os.pipe()
    try:
        os.write(writing, kit if len(kit) <= _LARGEST_PIPE else b"null")
        os.close(writing)
        writes = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
        streams = [
            (os.POSIX_SPAWN_DUP2, reading, 0),
            (os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_RDWR, 0),
            (os.POSIX_SPAWN_OPEN, 2, str(log), writes, 0o600),
        ]
        command = [*WARM_PROCESS, str(home)]
        os.posix_spawn(command[0], command, os.environ, file_actions=streams, setsid=True)
    finally:
        os.close(reading)
