"""Places `supabase://USER@HOST:6543/postgres#WORKSPACE`: PostgreSQL behind a pooler in transaction mode."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from findling.domain.errors import InvalidValueError

if TYPE_CHECKING:
    from findling.stores.postgres.backend import PostgresBackend

__all__ = ["open_supabase", "postgres_url"]

_PORT = 6543
_LOOPBACK = ("127.0.0.1", "::1", "localhost")


def open_supabase(url: str, folder: Path) -> PostgresBackend:
    """The backend of a place, with its legs in the `folder` of this host."""
    from findling.stores.postgres.backend import PostgresBackend

    return PostgresBackend(postgres_url(url), folder)


def postgres_url(url: str) -> str:
    """The same place as a URL of PostgreSQL. Raises InvalidValueError, which never quotes the URL."""
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError:
        host, port = None, None
    if host is None or parts.scheme != "supabase":
        hint = "supabase://USER@HOST:6543/postgres#WORKSPACE"
        raise InvalidValueError("the URL names no place in Supabase", hint=hint)
    options = [part for part in parts.query.split("&") if part]
    named = {part.partition("=")[0] for part in options}
    if "pooler" not in named:
        options.append("pooler=transaction")
    if "sslmode" not in named and "PGSSLMODE" not in os.environ and host not in _LOOPBACK:
        options.append("sslmode=require")
    address = parts.netloc if port is not None else f"{re.sub(':$', '', parts.netloc)}:{_PORT}"
    return f"postgresql://{address}{parts.path or '/postgres'}?{'&'.join(options)}#{parts.fragment}"
