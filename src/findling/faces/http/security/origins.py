"""Checks of requests of browsers: against names rebound to this machine, and against pages of others."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from findling.domain.errors import InvalidValueError
from findling.faces.http.base.problems import Problem

__all__ = ["LOOPBACK", "check_host", "check_origin", "check_site", "host_names", "is_own_host"]

LOOPBACK = ("127.0.0.1", "localhost", "::1")
"""Names that always stand for this machine."""

_AUTHORITY = re.compile(r"(?:\[(?P<v6>[0-9a-f:.]+)\]|(?P<name>[^\s\[\]:@/?#\\]+))(?::(?P<port>[0-9]{1,5}))?", re.ASCII)
_ORIGIN = re.compile(r"(?P<scheme>https?)://(?P<authority>[^/?#@\s]+)", re.ASCII)
_DEFAULT_PORTS = {"http": "80", "https": "443"}

_OWN_SITES = (b"none", b"same-origin")
"""Typed into the browser, or asked by a page of ours."""

_PAGES, _PAGE_FILES = ("/", "/docs"), "/assets/"
"""Targets of links on other sites: pages that hold nothing of the index."""


def host_names(names: Iterable[str]) -> frozenset[str]:
    """Names of hosts as `check_host` compares them, those of this machine among them.

    Raises InvalidValueError for what is no name or address of a host: one with a port, a path or a wildcard.
    """
    found = set(LOOPBACK)
    for name in names:
        plain = name.strip().lower().removeprefix("[").removesuffix("]")
        is_host = _AUTHORITY.fullmatch(f"[{plain}]" if ":" in plain else plain) and "*" not in plain
        if not is_host:
            raise InvalidValueError(f"{name!r} is no name of a host", hint="such as findling.example or 192.168.1.5")
        found.add(plain)
    return frozenset(found)


def check_host(host: bytes | None, names: frozenset[str], reached: str) -> Problem | None:
    """The fault of a Host header. `reached` is the address at which the connection came in.

    A page whose name was rebound to this machine still sends its own name. An address cannot be rebound.
    """
    if host is None:
        return Problem(400, "the request has no Host header")
    if _name_in(host) in names or is_own_host(host, reached):
        return None
    return Problem(421, "the request is for another host", "add its name to the setting serve.names")


def is_own_host(host: bytes, reached: str) -> bool:
    """Whether a Host header names this machine itself, or the address that was reached, and no other name for it."""
    name = _name_in(host)
    return name in LOOPBACK or (name is not None and name == reached.removeprefix("::ffff:"))


def check_origin(headers: Mapping[bytes, bytes]) -> Problem | None:
    """The fault of an Origin header, which browsers send with requests of a page."""
    if b"access-control-request-method" in headers:
        return Problem(403, "pages of other origins may not ask", code="cross-origin")
    sent = headers.get(b"origin")
    if sent is None:
        return None
    origin = _ORIGIN.fullmatch(sent.decode("latin-1").lower())
    if origin is not None:
        port = f":{_DEFAULT_PORTS[origin['scheme']]}"
        host = headers[b"host"].decode("latin-1").lower()
        if origin["authority"].removesuffix(port) == host.removesuffix(port):
            return None
    return Problem(403, "pages of other origins may not ask", code="cross-origin")


def check_site(method: str, path: str, headers: Mapping[bytes, bytes]) -> Problem | None:
    """The fault of the site that a browser names: from other sites only links to pages may lead here.

    A link to anything else would have it done without the page that holds the link seeing an answer.
    """
    if headers.get(b"sec-fetch-site", b"none") in _OWN_SITES:
        return None
    is_link = headers.get(b"sec-fetch-mode") == b"navigate" and headers.get(b"sec-fetch-dest") == b"document"
    is_page = path in _PAGES or path.startswith(_PAGE_FILES)
    if is_link and is_page and method == "GET":
        return None
    return Problem(403, "pages of other sites may not ask", code="cross-site")


def _name_in(host: bytes) -> str | None:
    authority = _AUTHORITY.fullmatch(host.decode("latin-1").lower())
    return None if authority is None else authority["v6"] or authority["name"]
