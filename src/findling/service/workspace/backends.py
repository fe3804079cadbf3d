"""Backends and vectors by URLs: `file:` and `postgresql:` are built in, entry points bring the others."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from findling.domain.errors import InvalidValueError, MissingExtraError, WorkspaceError

if TYPE_CHECKING:
    from findling.domain.backends import Backend, LegStore, VectorTable

_POSTGRES = ("postgresql", "postgres")

_GROUP = "findling.backends"
"""The entry points of backends: the name is the scheme, the value a callable `(url, folder) -> Backend`."""

_VECTORS = "findling.vectors"
"""The entry points of vectors elsewhere: the name is the scheme, the value `(url, folder) -> LegStore[VectorTable]`."""

_URL = r"(?s)([a-z][a-z0-9+.-]+):.*"
"""A scheme has two letters at least: one is a drive of Windows."""


_INSTEAD = {
    "snapshots": "findling export DIR keeps a copy, and so do backups of the place itself",
    "compact": "nothing: the place releases unused space by itself",
}
"""The next step where a place lacks an ability."""


def open_backend(place: str | Path, folder: Path | None = None) -> Backend:
    """The backend of a place: a path, a `file:` URL, or a URL whose scheme a plugin serves.

    `folder` holds the files on this host of a backend whose truth is elsewhere. Raises MissingExtraError or
    InvalidValueError.
    """
    url = str(place)
    path = folder_of_url(url) if is_url(url) else Path(place)
    if path is not None:
        from findling.stores.local.backend import LocalBackend

        return LocalBackend(path)
    scheme = url.partition(":")[0]
    if folder is None:
        raise InvalidValueError(f"a place of the kind {scheme}: needs a folder on this host", hint="name one")
    if scheme in _POSTGRES:
        from findling.stores.postgres.backend import PostgresBackend

        return PostgresBackend(url, folder)
    backend: Backend = _plugin(_GROUP, scheme, "places")(url, folder)
    return backend


def open_vectors(url: str, folder: Path) -> LegStore[VectorTable]:
    """Vectors outside of the backend, by a URL whose scheme a plugin serves. Raises as `open_backend` does."""
    if not is_url(url):
        raise InvalidValueError(f"store.vectors: {url!r} is no URL", hint="chroma:PATH, chroma:http://HOST:PORT")
    tables: LegStore[VectorTable] = _plugin(_VECTORS, url.partition(":")[0], "vectors")(url, folder)
    return tables


@cache
def _plugin(group: str, scheme: str, what: str) -> Callable[..., Any]:
    """The factory that an entry point names for a scheme. Raises as `open_backend` does."""
    from importlib.metadata import entry_points  # 15 ms that a local place has no use for

    known = {found.name: found for found in entry_points(group=group)}
    if scheme not in known:
        others = ", ".join(sorted({*known, *(["file", "postgresql"] if group == _GROUP else [])})) or "none"
        raise MissingExtraError(
            f"no installed package serves {what} of the kind {scheme}:",
            hint=f"install one with the entry point {scheme} in {group}; there are: {others}",
        )
    plugin = known[scheme]
    package = plugin.dist.name if plugin.dist is not None else "the package"
    try:
        factory: Callable[..., Any] = plugin.load()
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
        raise WorkspaceError(message, hint=_INSTEAD[capability])


def shown_url(url: str) -> str:
    """A URL without its password, also one with letters that should have been escaped."""
    if url.startswith("file:"):
        return url
    if "://" not in url:  # key=value pairs, whose password may have spaces and quotes
        return re.sub(r"(?is)(password\s*=).*", r"\1***", url)
    without = re.sub(r"(?s)(?<=//)([^/@:]*):.*@", r"\1@", url)
    return re.sub(r"(?i)(?<=[?&])((?:ssl)?password)=[^&#]*", r"\1=***", without)


def is_same_place(url: str, other: str) -> bool:
    """Whether two URLs name one place, whoever connects and by which options."""
    return _place(url) == _place(other)


def _place(url: str) -> tuple[object, ...]:
    from urllib.parse import parse_qsl, unquote, urlsplit

    parts = urlsplit(url)
    scheme = _POSTGRES[0] if parts.scheme in _POSTGRES else parts.scheme
    hosts = parts.netloc.rpartition("@")[2].lower().split(",")
    where = {name: value for name, value in parse_qsl(parts.query) if name in ("host", "port", "dbname", "service")}
    if scheme in _POSTGRES:
        hosts = [host.removesuffix(":5432") for host in hosts]
    return scheme, tuple(hosts), unquote(parts.path), tuple(sorted(where.items())), unquote(parts.fragment)
