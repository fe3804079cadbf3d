"""Clients of Chroma, one a process and place. A folder belongs to one process at a time, by a lock."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from findling.domain.errors import CorruptError, InvalidValueError, LockedError, ProviderError
from findling.stores.lock import WriteLock

if TYPE_CHECKING:
    from chromadb.api import ClientAPI

__all__ = ["asking", "client_at"]

_PATIENCE_S = 2.0
_guard = threading.Lock()
_clients: dict[tuple[int, str], ClientAPI] = {}
"""Process and place → client: threads of a client do not survive a fork."""
_locks: list[WriteLock] = []


def client_at(place: str) -> ClientAPI:
    """The client of a folder or of the URL of a server.

    Raises LockedError when another process uses the folder, ProviderError when the server does not answer.
    """
    key = os.getpid(), place
    with _guard:
        if key not in _clients:
            is_server = place.startswith(("http://", "https://"))
            with asking(place):
                _clients[key] = _server(place) if is_server else _folder(Path(place))
        return _clients[key]


def _folder(folder: Path) -> ClientAPI:
    import chromadb
    from chromadb.config import Settings

    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    lock = WriteLock(folder / "findling.lock")
    if not lock.acquire(_PATIENCE_S):
        raise LockedError(
            f"another process uses the vectors in {folder}",
            hint="chroma run --path FOLDER, and store.vectors = chroma:http://127.0.0.1:8000",
        )
    _locks.append(lock)
    return chromadb.PersistentClient(path=str(folder), settings=Settings(anonymized_telemetry=False))


def _server(url: str) -> ClientAPI:
    import chromadb
    from chromadb.config import Settings

    parts = urlsplit(url)
    if not parts.hostname or parts.password or parts.path.strip("/"):
        raise InvalidValueError("store.vectors names no server of Chroma", hint="chroma:http://HOST:PORT")
    is_secure = parts.scheme == "https"
    token = os.environ.get("CHROMA_TOKEN")
    return chromadb.HttpClient(
        host=parts.hostname,
        port=parts.port or (443 if is_secure else 8000),
        ssl=is_secure,
        headers={"x-chroma-token": token} if token else None,
        settings=Settings(anonymized_telemetry=False),
    )


@contextmanager
def asking(place: str) -> Iterator[None]:
    """Have errors of Chroma say where it is: ProviderError for a server, CorruptError for a folder."""
    import httpx
    from chromadb.errors import ChromaError

    try:
        yield
    except (ChromaError, httpx.HTTPError, ValueError, OSError) as error:
        reason = " ".join(str(error).split())[:300] or type(error).__name__
        if place.startswith("http"):
            raise ProviderError(f"Chroma at {place}: {reason}", hint=f"chroma run --port {_port(place)}") from error
        raise CorruptError(f"Chroma in {place}: {reason}", hint="findling doctor --repair") from error


def _port(url: str) -> int:
    return urlsplit(url).port or 8000
