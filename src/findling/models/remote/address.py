"""Where a provider listens: addresses, whether they are on this machine, and the proxy on the way."""

from __future__ import annotations

import base64
import ipaddress
from typing import NamedTuple
from urllib.parse import unquote, urlsplit
from urllib.request import getproxies, proxy_bypass

from findling.domain.errors import InvalidValueError

__all__ = ["Address", "Proxy", "https_proxy", "is_loopback", "parse_address"]


class Address(NamedTuple):
    """A web address in parts; `path` has no slash at its end."""

    scheme: str
    host: str
    port: int
    path: str

    @property
    def netloc(self) -> str:
        """Host and port."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


class Proxy(NamedTuple):
    """The URL of a proxy without its password, and the headers that log in to it."""

    url: str
    headers: dict[str, str]


def parse_address(url: str) -> Address:
    """The address in a URL; without a scheme it means https, and http on this machine or a private network.

    Raises InvalidValueError for anything but a plain http or https address, and for one that holds a password.
    """
    scheme, mark, _ = url.partition("://")
    try:
        parts = urlsplit(url if mark else f"//{url}")
        host, port = parts.hostname or "", parts.port
    except ValueError:
        raise InvalidValueError("base_url is not a plain web address", hint=_HINT) from None
    if parts.username is not None or parts.password is not None:
        raise InvalidValueError(
            f"base_url for {host} holds a user's name or password",
            hint="Leave it out: the key belongs into the environment variable of the provider.",
        )
    if not mark:
        scheme = "http" if _is_private(host) else "https"
    scheme = scheme.lower()
    if scheme not in ("http", "https") or not host or not host.isascii() or parts.query or parts.fragment:
        raise InvalidValueError("base_url is not a plain web address", hint=_HINT)
    return Address(scheme, host, port or (443 if scheme == "https" else 80), parts.path.rstrip("/"))


def is_loopback(host: str) -> bool:
    """Whether a host is this machine itself."""
    if host == "localhost" or host.endswith(".localhost"):
        return True
    address = _ip_address(host)
    return address is not None and address.is_loopback


def https_proxy(host: str) -> Proxy | None:
    """The proxy that the environment names for https and this host, by the rules of `urllib`."""
    url = getproxies().get("https", "")
    if not url or is_loopback(host) or proxy_bypass(host):
        return None
    parts = urlsplit(url if "://" in url else f"http://{url}")
    if not parts.hostname:
        return None
    headers = {}
    if parts.username is not None:
        secret = f"{unquote(parts.username)}:{unquote(parts.password or '')}".encode()
        headers["Proxy-Authorization"] = f"Basic {base64.b64encode(secret).decode('ascii')}"
    return Proxy(f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}", headers)


_HINT = "Write it like https://models.example.org/v1."


def _is_private(host: str) -> bool:
    address = _ip_address(host)
    if address is not None:
        return address.is_private
    return is_loopback(host) or "." not in host or host.endswith(".local")


def _ip_address(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(host)
    except ValueError:
        return None
