"""The place where a shell and the warm process meet. Every search pays for what stands here, so it is little.

`_socket` is the part of `socket` that is written in C: the rest of it, with `enum` and `selectors`, takes 6 ms to load.
"""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from _socket import socket
    from collections.abc import Mapping

__all__ = ["ALWAYS", "FOLDER", "SOCKET", "address", "is_script", "peer_of", "reach", "warm_folder"]

FOLDER = ".daemon"
"""The folder in a home that holds the socket; no workspace can be called so."""

SOCKET = "warm"
"""The socket that terminals ask."""

ALWAYS = "always"
"""A link to the socket, there while `serve.auto` is `always`: scripts ask by this name, without reading settings."""

_CONNECT_S = 1.0
_LONGEST_ADDRESS = 100
"""Bytes of a socket's address: Linux takes 107 of them."""


def warm_folder(environ: Mapping[str, str]) -> str:
    """The folder of the socket, as the environment names the home; empty where there is no warm process."""
    if sys.platform != "linux":
        return ""
    home = environ.get("FINDLING_HOME") or environ.get("FINDLING_STORE_HOME")
    if not home:
        home = (environ.get("XDG_DATA_HOME") or "~/.local/share") + "/findling/workspaces"
    return os.path.join(os.path.abspath(os.path.expanduser(home)), FOLDER)


def is_script(environ: Mapping[str, str]) -> bool:
    """Whether nobody sits in front of this command: stdout is no terminal, or a service for tests runs it."""
    return environ.get("CI", "").lower() not in ("", "0", "false") or not os.isatty(1)


def address(folder: str, name: str) -> tuple[str, int]:
    """The address of a socket, and the descriptor to close afterwards; -1 for none.

    A path that is too long for an address is reached through the descriptor of its folder. Raises OSError.
    """
    path = f"{folder}/{name}"
    if len(os.fsencode(path)) <= _LONGEST_ADDRESS:
        return path, -1
    number = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    return f"/proc/self/fd/{number}/{name}", number


def reach(folder: str, name: str) -> socket | None:
    """A connection to a process of the same user that listens there; `None` when there is none."""
    import _socket

    line = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
    line.settimeout(_CONNECT_S)
    number = -1
    try:
        path, number = address(folder, name)
        line.connect(path)
        if peer_of(line)[1] == os.geteuid():
            return line
    except OSError:
        pass
    finally:
        if number >= 0:
            os.close(number)
    line.close()
    return None


def peer_of(line: socket) -> tuple[int, int]:
    """The process at the other end, and its user. Raises OSError."""
    import _socket

    facts = line.getsockopt(_socket.SOL_SOCKET, _socket.SO_PEERCRED, 12)
    return int.from_bytes(facts[:4], sys.byteorder), int.from_bytes(facts[4:8], sys.byteorder)
