"""Backends by the URLs of their places: `file:` is local, entry points `findling.backends` bring the others."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from findling.domain.errors import InvalidValueError, MissingExtraError, WorkspaceError
from findling.stores.local.identity import STORE_FILE

if TYPE_CHECKING:
    from findling.domain.backends import Backend

__all__ = [
    "PLACE_FILE",
    "PROJECT_FOLDER",
    "backend_at",
    "folder_of_url",
    "has_store",
    "is_url",
    "open_backend",
    "place_of",
    "require",
    "shown_url",
]

_GROUP = "findling.backends"
"""The entry points of backends: the name is the scheme, the value a callable `(url, folder) -> Backend`."""

PLACE_FILE = "place.url"
"""The file in a workspace's folder that holds the URL of its truth, if that is elsewhere."""

_URL = r"(?s)([a-z][a-z0-9+.-]+):.*"
"""A scheme has two letters at least: one is a drive of Windows."""

PROJECT_FOLDER = ".findling"
"""The folder of a workspace inside the root. A stranger who ships one must not have findling connect to a URL."""


def open_backend(place: str | Path, folder: Path | None = None) -> Backend:
    """The backend of a place: a path, a `file:` URL, or a URL whose scheme a plugin serves.

    `folder` holds such a backend's files on this host. Raises MissingExtraError or InvalidValueError.
    """
    url = str(place)
    path = folder_of_url(url) if is_url(url) else Path(place)
    if path is not None:
        return _local(path)
    scheme = url.partition(":")[0]
    from importlib.metadata import entry_points  # 15 ms that a local place has no use for

    known = {found.name: found for found in entry_points(group=_GROUP)}
    if scheme not in known:
        others = ", ".join(sorted({*known, "file"}))
        raise MissingExtraError(
            f"no installed package serves places of the kind {scheme}:",
            hint=f"install one with the entry point {scheme} in {_GROUP}; there are: {others}",
        )
    plugin = known[scheme]
    package = plugin.dist.name if plugin.dist is not None else "the package"
    try:
        factory = plugin.load()
    except Exception as error:  # a plugin may raise anything
        message = f"the backend {scheme} ({plugin.value}) cannot be loaded: {error}"
        raise InvalidValueError(message, hint=f"update or remove {package}") from error
    if folder is None:
        raise InvalidValueError(f"a place of the kind {scheme}: needs a folder on this host", hint="name one")
    backend: Backend = factory(url, folder)
    return backend


def backend_at(folder: Path) -> Backend:
    """The backend of the workspace in a folder. Raises as `open_backend` does."""
    url = place_of(folder)
    return open_backend(url, folder) if url else _local(folder)


def place_of(folder: Path) -> str:
    """The URL of the place that holds the truth of a workspace; empty when that is the folder itself."""
    if folder.name == PROJECT_FOLDER:
        return ""
    try:
        return (folder / PLACE_FILE).read_text("utf-8").strip()
    except (FileNotFoundError, NotADirectoryError):
        return ""


def has_store(folder: Path) -> bool:
    """Whether a folder holds a truth store, or names the place of one."""
    return (folder / STORE_FILE).exists() or bool(place_of(folder))


def is_url(place: str) -> bool:
    """Whether a place is a URL and no path."""
    return re.fullmatch(_URL, place) is not None


def folder_of_url(url: str) -> Path | None:
    """The folder that a `file:` URL names; None for other URLs. Raises InvalidValueError for one on another host."""
    from urllib.parse import unquote, urlsplit

    parts = urlsplit(url)
    if parts.scheme != "file":
        return None
    if parts.netloc not in ("", "localhost") or not parts.path:
        raise InvalidValueError(f"{url} names no folder of this machine", hint="file:///PATH")
    return Path(unquote(parts.path)).absolute()


def require(backend: Backend, capability: str) -> None:
    """Raise WorkspaceError when a backend does not declare an ability."""
    if not getattr(backend.capabilities, capability):
        message = f"{shown_url(backend.url)} is a place without {capability}"
        raise WorkspaceError(message, hint="use the tools that come with the place")


def shown_url(url: str) -> str:
    """A URL without its password."""
    return re.sub(r"(?<=//)([^/@:]*):[^/@]*@", r"\1@", url)


def _local(folder: Path) -> Backend:
    from findling.stores.local.backend import LocalBackend

    return LocalBackend(folder)
