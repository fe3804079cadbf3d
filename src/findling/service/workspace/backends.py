"""Backends and vectors by URLs: `file:` is local, entry points `findling.backends`, `findling.vectors` bring others."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from findling.domain.errors import InvalidValueError, MissingExtraError, WorkspaceError

if TYPE_CHECKING:
    from findling.domain.backends import Backend, VectorTables

__all__ = [
    "folder_of_url",
    "is_url",
    "open_backend",
    "open_vectors",
    "require",
    "shown_url",
]

_GROUP = "findling.backends"
"""The entry points of backends: the name is the scheme, the value a callable `(url, folder) -> Backend`."""

_VECTORS = "findling.vectors"
"""The entry points of vectors elsewhere: the name is the scheme, the value `(url, folder) -> VectorTables`."""

_URL = r"(?s)([a-z][a-z0-9+.-]+):.*"
"""A scheme has two letters at least: one is a drive of Windows."""


def open_backend(place: str | Path, folder: Path | None = None) -> Backend:
    """The backend of a place: a path, a `file:` URL, or a URL whose scheme a plugin serves.

    `folder` holds such a backend's files on this host. Raises MissingExtraError or InvalidValueError.
    """
    url = str(place)
    path = folder_of_url(url) if is_url(url) else Path(place)
    if path is not None:
        from findling.stores.local.backend import LocalBackend

        return LocalBackend(path)
    factory = _plugin(_GROUP, url, "places")
    if folder is None:
        scheme = url.partition(":")[0]
        raise InvalidValueError(f"a place of the kind {scheme}: needs a folder on this host", hint="name one")
    backend: Backend = factory(url, folder)
    return backend


def open_vectors(url: str, folder: Path) -> VectorTables:
    """Vectors outside of the backend, by a URL whose scheme a plugin serves. Raises as `open_backend` does."""
    if not is_url(url):
        raise InvalidValueError(f"store.vectors: {url!r} is no URL", hint="chroma:PATH, chroma:http://HOST:PORT")
    tables: VectorTables = _plugin(_VECTORS, url, "vectors")(url, folder)
    return tables


def _plugin(group: str, url: str, what: str) -> Callable[[str, Path], Any]:
    """The factory that an entry point names for the scheme of a URL."""
    scheme = url.partition(":")[0]
    from importlib.metadata import entry_points  # 15 ms that a local place has no use for

    known = {found.name: found for found in entry_points(group=group)}
    if scheme not in known:
        others = ", ".join(sorted({*known, *(["file"] if group == _GROUP else [])})) or "none"
        raise MissingExtraError(
            f"no installed package serves {what} of the kind {scheme}:",
            hint=f"install one with the entry point {scheme} in {group}; there are: {others}",
        )
    plugin = known[scheme]
    package = plugin.dist.name if plugin.dist is not None else "the package"
    try:
        factory: Callable[[str, Path], Any] = plugin.load()
    except Exception as error:  # a plugin may raise anything
        message = f"the {what} {scheme} ({plugin.value}) cannot be loaded: {error}"
        raise InvalidValueError(message, hint=f"update or remove {package}") from error
    return factory


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
