"""The interface described: what answers look like, and the document that says so."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from fastapi.openapi.utils import get_openapi
from pydantic import ConfigDict
from starlette.routing import BaseRoute

from findling import __version__
from findling.domain.results import Completion, Explanation, SearchAnswer, ThemesAnswer
from findling.service.index.documents import FetchedDocument


@dataclass(frozen=True, kw_only=True)
class AnswerDocument(SearchAnswer):
    """An answer, as `findling search --json` prints it; `root` is for the owner alone."""

    schema: int
    root: str


@dataclass(frozen=True, kw_only=True)
class ExplanationDocument(Explanation):
    """An explanation, as `findling search --explain-hit ID --json` prints it."""

    schema: int


@dataclass(frozen=True, kw_only=True)
class FetchedAnswer(FetchedDocument):
    """A document, as `findling fetch --json` prints it."""

    schema: int


@dataclass(frozen=True, kw_only=True)
class SuggestionsDocument:
    """Suggestions, as `findling suggest --json` prints them."""

    schema: int
    text: str
    suggestions: tuple[Completion, ...]


@dataclass(frozen=True, kw_only=True)
class ThemesDocument(ThemesAnswer):
    """Themes, as `findling related --json` prints them."""

    schema: int


@dataclass(frozen=True, kw_only=True)
class Report:
    """Any other report: the keys that its description names."""

    __pydantic_config__ = ConfigDict(extra="allow")

    schema: int


_PROBLEM = {
    "type": "object",
    "title": "Problem",
    "description": "What is wrong (RFC 9457). `code` is stable, `hint` the next step, `instance` the request's id.",
    "required": ["type", "title", "status", "detail", "code", "hint", "instance"],
    "properties": {
        **{name: {"type": "string"} for name in ("type", "title", "detail", "code", "hint", "instance")},
        "status": {"type": "integer"},
        "errors": {
            "type": "array",
            "description": "What is wrong with which field of the request.",
            "items": {
                "type": "object",
                "required": ["field", "problem"],
                "properties": {"field": {"type": "string"}, "problem": {"type": "string"}},
            },
        },
    },
}

_STATUSES = {
    400: "The request cannot be read.",
    401: "A token is needed, or the one that was sent is not valid.",
    403: "The token does not allow this.",
    404: "There is no such thing, or nothing that the caller may see.",
    409: "Nothing is indexed yet.",
    413: "The request is too large.",
    422: "A value cannot be used, or a key is not known.",
    429: "Too many requests; see Retry-After.",
    500: "A fault of findling; its log has more under the id of the request.",
    503: "Too much is asked at once, something else is being written, or a database is away; see Retry-After.",
    504: "There was no answer in time.",
    507: "There is no room for that.",
}

PROBLEMS: dict[int | str, dict[str, Any]] = {
    status: {
        "description": told,
        "content": {"application/problem+json": {"schema": {"$ref": "#/components/schemas/Problem"}}},
    }
    for status, told in _STATUSES.items()
}
"""Errors that every route may answer with."""

_ABOUT = """Search over what you have, by words and by meaning. Answers are those of `findling --json`.

Keys and parameters that are not known are errors. Every response has an `x-request-id`."""


def openapi_document(routes: Sequence[BaseRoute]) -> dict[str, Any]:
    """The description of the routes of an app."""
    document = get_openapi(title="findling", version=__version__, description=_ABOUT, routes=routes)
    components = document.setdefault("components", {})
    components.setdefault("schemas", {})["Problem"] = _PROBLEM
    components["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
    document["security"] = [{}, {"token": []}]
    return document
