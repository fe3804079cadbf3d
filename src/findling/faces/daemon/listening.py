"""Where a daemon listens: a unix socket for its owner, and an address on TCP, open before anything is loaded."""

from __future__ import annotations

import errno
import os
import socket
from ipaddress import ip_address
from pathlib import Path
from typing import Any

from findling.domain.errors import DaemonError
from findling.service.tokens import TokenBook

__all__ = ["bind_tcp", "bind_unix", "is_loopback", "require_tokens"]

_BACKLOG = 512


def bind_unix(path: Path) -> socket.socket | None:
    """A socket that nobody but the owner can connect to; `None` where the system has none."""
    if not hasattr(socket, "AF_UNIX"):
        return None
    listening = socket.socket(socket.AF_UNIX)
    before = os.umask(0o177)  # there must be no moment in which others could connect
    try:
        listening.bind(str(path))
        listening.listen(_BACKLOG)
    except OSError as error:
        listening.close()
        raise DaemonError(f"no socket can be made at {path}: {error.strerror}", hint="check its folder") from error
    finally:
        os.umask(before)
    return listening


def bind_tcp(host: str, port: int) -> socket.socket:
    """A socket at an address. Raises DaemonError that says what is wrong with it, and what to try."""
    family, address = _resolve(host, port)
    listening = socket.socket(family)
    try:
        if os.name == "posix":
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(address)
        listening.listen(_BACKLOG)
    except OSError as error:
        listening.close()
        if error.errno == errno.EADDRINUSE:
            told = DaemonError(f"port {port} of {host} is taken", hint=f"findling serve --port {port + 1}, or --port 0")
        elif error.errno == errno.EACCES:
            told = DaemonError(f"port {port} is not for everybody", hint="findling serve --port 3463")
        else:
            told = DaemonError(f"nothing can listen on {host}:{port}: {error.strerror}", hint="--host 127.0.0.1")
        raise told from error
    return listening


def is_loopback(listening: socket.socket) -> bool:
    """Whether only this machine can connect to a socket. It is asked itself: a name may lead elsewhere next time."""
    return ip_address(str(listening.getsockname()[0]).partition("%")[0]).is_loopback


def require_tokens(host: str, tokens: TokenBook) -> None:
    """Raises DaemonError unless there is a token that whoever comes from elsewhere can be known by."""
    if not tokens.list():
        raise DaemonError(
            f"others could connect to {host}, and there is no token to know them by",
            hint="findling token create NAME --owner (or --as user:NAME), or --host 127.0.0.1",
        )


def _resolve(host: str, port: int) -> tuple[int, tuple[Any, ...]]:
    try:
        family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
        return family, address
    except (OSError, UnicodeError) as error:
        raise DaemonError(f"{host} is no address of this machine", hint="--host 127.0.0.1") from error
