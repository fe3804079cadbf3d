"""Answers and reports as JSON: the same keys as those of the command line, `schema` first."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import fields
from typing import TYPE_CHECKING, Any

import msgspec

from findling.domain.permissions import Caller
from findling.domain.results import SCHEMA_VERSION, JsonAnswer, SearchAnswer
from findling.domain.values import changed, plain
from findling.service.server.search_process import PackedAnswer

if TYPE_CHECKING:
    from starlette.responses import Response

JSON = "application/json"

NO_STORE = {"cache-control": "no-store"}
"""For what depends on who asks and on what has changed meanwhile: nobody may keep it."""


def text_of(answer: object, caller: Caller, root: str) -> bytes:
    """Any answer of a client; its hits say the places of files to their owner alone."""
    if isinstance(answer, SearchAnswer):
        return answer_text(answer, caller, root)
    if isinstance(answer, JsonAnswer):
        return with_schema(answer.to_dict())
    return report_text(answer) if isinstance(answer, Mapping) else with_schema(answer)


def answer_text(answer: SearchAnswer, caller: Caller, root: str) -> bytes:
    """A whole answer; the places of files on this machine are for its owner alone."""
    if not caller.is_owner:
        root = ""
        if "from" in answer.scope:
            answer = changed(answer, scope={name: value for name, value in answer.scope.items() if name != "from"})
    return with_schema(answer, root=root)


def report_text(values: Mapping[str, object]) -> bytes:
    """Any other report."""
    return with_schema(plain(values))


def with_schema(value: object, **lead: object) -> bytes:
    """An object, or a dataclass, with the schema version and what else shall stand first."""
    # The parts are put together as text: a copy of an answer with two more keys would take 40 times as long.
    head, rest = encoded({"schema": SCHEMA_VERSION, **lead}), encoded(value)
    return head[:-1] + (b"," + rest[1:] if rest != b"{}" else b"}")


def encoded(value: object) -> bytes:
    """Plain values, dataclasses and paths as JSON on one line."""
    if isinstance(value, PackedAnswer) and value.hits_text:
        known = {**vars(value), "hits": msgspec.Raw(value.hits_text)}
        value = {name: known[name] for name in _ANSWER}
    try:
        return _encoder.encode(value)
    except UnicodeEncodeError:  # a path whose bytes are no UTF-8
        return json.dumps(msgspec.to_builtins(value, enc_hook=_plain), separators=(",", ":")).encode()


def json_response(text: bytes, status: int = 200, headers: Mapping[str, str] = NO_STORE) -> Response:
    """A response of text that is JSON already."""
    from starlette.responses import Response  # search processes write JSON, and send none

    return Response(text, status, dict(headers), media_type=JSON)


def _plain(value: Any) -> object:
    """Plain values of paths, and of mappings that are no dict. Raises TypeError for anything else."""
    return dict(value) if isinstance(value, Mapping) else os.fspath(value)


_ANSWER = tuple([one.name for one in fields(SearchAnswer)])

_encoder = msgspec.json.Encoder(enc_hook=_plain)
