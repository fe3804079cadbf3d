"""Requests that were written down: the `plan` of an answer, and filters as a table."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from findling.domain.errors import InvalidValueError, PathNotFoundError
from findling.domain.queries import OFFERED, Filters, SearchRequest
from findling.domain.values import read_json
from findling.pipelines.retrieve.plan_files import filters_document, read_filters, read_plan
from findling.service.settings.written_filters import read_moment, written_filters

__all__ = ["filters_document", "filters_from", "read_plan_file"]

_REPORTED = frozenset(
    (
        "reading because route legs unit overfetch weighing glossary feedback steps ceiling forms understood_as relaxed"
    ).split()
)
"""Fields that report a run of the plan; another run finds them again."""


def read_plan_file(source: str) -> SearchRequest:
    """The request that a file, or stdin for `-`, holds.

    Raises `PathNotFoundError` for a file that is not there, `InvalidValueError` naming what in it cannot be used.
    """
    name = "stdin" if source == "-" else source
    try:
        text = sys.stdin.read() if source == "-" else Path(source).read_text(encoding="utf-8")
        document = read_json(text)
    except (FileNotFoundError, IsADirectoryError) as error:
        raise PathNotFoundError(f"there is no file {source}", hint="findling QUERY --json > plan.json") from error
    except ValueError as error:
        raise InvalidValueError(f"{name} is no JSON: {error}", hint="findling QUERY --json > plan.json") from error
    if isinstance(document, dict) and "hits" in document:
        document = document.get("plan")
    if not isinstance(document, dict) or "plan" not in document:
        raise InvalidValueError(f"{name} holds no plan", hint="findling QUERY --json > plan.json")
    return _request({key: value for key, value in document.items() if key not in _REPORTED}, name)


def _request(document: dict[str, Any], name: str) -> SearchRequest:
    known = {"query", "filters", "limit", "offset", "min_score", "exclude_pattern", "plan", "within"}
    unknown = sorted(document.keys() - known)
    if unknown:
        raise InvalidValueError(f"{name}: a plan has no {unknown[0]}", hint=f"one of {', '.join(sorted(known))}")
    kinds: dict[str, tuple[type, ...]] = {
        "query": (str,),
        "limit": (int,),
        "offset": (int,),
        "min_score": (int, float),
        "exclude_pattern": (str, type(None)),
        "within": (str, type(None)),
    }
    for key, kind in kinds.items():
        if key in document and not isinstance(document[key], kind):
            raise InvalidValueError(f"{name}: {key} {document[key]!r} is of the wrong kind", hint="see docs/how-to.md")
    values: dict[str, Any] = {"query": "", **{key: document[key] for key in kinds if key in document}}
    plan = read_plan(document["plan"])
    # Answers before 0.7 kept the least score of a request apart from that of its plan.
    least = max(values.pop("min_score", 0.0), plan.min_score)
    filters = read_filters(document.get("filters", {}))
    return SearchRequest(**values, filters=filters, plan=plan, changes={"min_score": least})


def filters_from(given: Filters | Mapping[str, Any] | None) -> Filters:
    """The filters of a table: one text may stand for a list of one, and dates may be written out.

    Raises InvalidValueError for what is no filter, and for a value that does not fit, as every face does.
    """
    if given is None or isinstance(given, Filters):
        return given or Filters()
    if not isinstance(given, Mapping):
        raise InvalidValueError(f"filters must be a table, not {given!r}", hint='{"ext": ["py"], "path": "src"}')
    limits = {name: given.get(name) for name, one in OFFERED.items() if one.default is None}
    moments = {name: read_moment(name, value) for name, value in limits.items() if isinstance(value, str)}
    listed = {name: [value] if isinstance(value, str) and name != "where" else value for name, value in given.items()}
    # This finds unknown filters and wrong types; SearchRequest finds values that fit no search.
    read = {**vars(read_filters({**listed, **moments})), **limits}
    checked = {name: read.pop(name) for name in ("where", "within")}
    return replace(written_filters(**read), **checked)
