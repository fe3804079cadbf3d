"""Candidates from a Zoekt server: the names of the files in which it finds a pattern.

Zoekt is another code search engine, with an index of its own. It only names files; each is verified in our text.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from threading import Event
from typing import Any

from findling.domain.errors import InvalidValueError, ProviderError
from findling.domain.reports import GrepRequest

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
    from findling.models.remote.http_client import HttpClient, parse_address

    ends = time.monotonic() + _TIMEOUT_S
    try:
        client = HttpClient("Zoekt", parse_address(url), most_bytes=_LONGEST_ANSWER)
        told = client.post("/api/search", body, timeout_s=_TIMEOUT_S, ends=ends, stop=Event())
    except (InvalidValueError, ProviderError) as error:
        hint = "zoekt-webserver -rpc -index DIR, or findling config remove exact.url"
        raise ProviderError(f"Zoekt at {url} cannot be asked: {error.message}", hint=hint) from error
    result = told.get("Result") if isinstance(told, dict) else None
    files: Sequence[Any] = (result.get("Files") or ()) if isinstance(result, dict) else (None,)
    if not all(isinstance(file, dict) and isinstance(file.get("FileName"), str) for file in files):
        raise ProviderError(f"what answers at {url} is no Zoekt", hint="findling config set exact.url ADDRESS")
    assert isinstance(result, dict)
    return result
