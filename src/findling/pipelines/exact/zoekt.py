"""Candidates from a Zoekt server: the names of the files in which it finds a pattern.

Zoekt is another code search engine, with an index of its own. It only names files; each is verified in our text.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any
from urllib.parse import urlsplit

from findling.domain.errors import ProviderError
from findling.domain.reports import GrepRequest

__all__ = ["zoekt_paths", "zoekt_query"]

_TIMEOUT_S = 10.0
_LONGEST_ANSWER = 256 << 20
_MOST = 10_000_000
"""Matches and files that are asked for: a list that ends earlier would not be complete."""


def zoekt_paths(url: str, asked: GrepRequest, *, ignore_case: bool) -> set[str]:
    """The paths that Zoekt names for any of the patterns.

    Raises ProviderError when the server cannot be reached, refuses the pattern, or has not looked everywhere.
    """
    limits = {"ShardMaxMatchCount": _MOST, "TotalMaxMatchCount": _MOST, "MaxDocDisplayCount": _MOST}
    found: set[str] = set()
    for pattern in asked.patterns:
        query = zoekt_query(pattern, fixed=asked.fixed, ignore_case=ignore_case)
        result = _answer(url, {"Q": query, "Opts": {**limits, "NumContextLines": 0}})
        if any(result.get(name) for name in ("FilesSkipped", "ShardsSkipped", "Crashes")):
            raise ProviderError(f"Zoekt at {url} has not looked at all files", hint="ask for a longer pattern")
        found.update(str(file["FileName"]) for file in result.get("Files") or ())
    return found


def zoekt_query(pattern: str, *, fixed: bool, ignore_case: bool) -> str:
    """A pattern in Zoekt's query language: a regular expression in quotes, looked for in contents alone."""
    import re

    expression = re.escape(pattern) if fixed else pattern
    quoted = expression.replace("\\", "\\\\").replace('"', '\\"')
    return f'case:{"no" if ignore_case else "yes"} content:"{quoted}"'


def _answer(url: str, body: dict[str, Any]) -> dict[str, Any]:
    """The `Result` of a search. Raises ProviderError."""
    from http.client import HTTPConnection, HTTPException, HTTPSConnection

    place = urlsplit(url)
    connect = HTTPSConnection if place.scheme == "https" else HTTPConnection
    try:
        connection = connect(place.hostname or "", place.port, timeout=_TIMEOUT_S)
        try:
            headers = {"content-type": "application/json"}
            connection.request("POST", f"{place.path.rstrip('/')}/api/search", json.dumps(body), headers)
            response = connection.getresponse()
            text, status = response.read(_LONGEST_ANSWER), response.status
        finally:
            connection.close()
    except (OSError, HTTPException, ValueError) as error:
        hint = "zoekt-webserver -rpc -index DIR, or findling config remove exact.url"
        raise ProviderError(f"Zoekt at {url} cannot be reached: {error}", hint=hint) from error
    return _result(url, status, text)


def _result(url: str, status: int, text: bytes) -> dict[str, Any]:
    try:
        told = json.loads(text)
    except ValueError:
        told = None
    if status != 200 or not isinstance(told, dict):
        reason = told.get("Error", "") if isinstance(told, dict) else ""
        hint = "zoekt-webserver answers such questions only with -rpc" if status in (404, 405) else ""
        raise ProviderError(f"Zoekt at {url} answers with status {status} {reason}".rstrip(), hint=hint)
    result = told.get("Result")
    files: Sequence[Any] = (result.get("Files") or ()) if isinstance(result, dict) else (None,)
    if not all(isinstance(file, dict) and isinstance(file.get("FileName"), str) for file in files):
        raise ProviderError(f"what answers at {url} is no Zoekt", hint="findling config set exact.url ADDRESS")
    assert isinstance(result, dict)
    return result
