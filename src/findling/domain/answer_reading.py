"""An answer that was written as JSON, made an answer again."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from findling.domain.errors import InvalidValueError
from findling.domain.results import (
    SCHEMA_VERSION,
    AliasMatch,
    Degradation,
    Hit,
    Line,
    Passage,
    Receipt,
    ScorePart,
    SearchAnswer,
    Step,
    Suggestion,
    TermMatch,
)

__all__ = ["read_answer"]


def read_answer(document: Mapping[str, Any]) -> SearchAnswer:
    """The answer of which `SearchAnswer.to_dict` made the document, read as JSON.

    Raises InvalidValueError for anything else.
    """
    values = dict(document) if isinstance(document, Mapping) else {}
    if values.pop("schema", None) != SCHEMA_VERSION:
        raise InvalidValueError("this is no answer of this version", hint=f"write it with schema {SCHEMA_VERSION}")
    try:
        for name in ("hits", "relaxed", "related"):
            values[name] = tuple(map(_hit, values[name]))
        values["degraded"] = tuple([Degradation(**one) for one in values["degraded"]])
        values["did_you_mean"] = tuple([Suggestion(**one) for one in values["did_you_mean"]])
        for name in ("notes", "unknown_terms"):
            values[name] = tuple(values[name])
        values["scope"] = {
            name: tuple(value) if isinstance(value, list) else value for name, value in values["scope"].items()
        }
        return SearchAnswer(**values)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise InvalidValueError(f"this is no answer: {error!r}", hint="write it with SearchAnswer.to_dict") from error


def _hit(document: Mapping[str, Any]) -> Hit:
    return Hit(
        **{
            **document,
            "heading": tuple(document["heading"]),
            "lines": _lines(document["lines"]),
            "around": _lines(document["around"]),
            "receipt": _receipt(document["receipt"]),
            "passages": tuple([Passage(**{**one, "lines": _lines(one["lines"])}) for one in document["passages"]]),
        }
    )


def _receipt(document: Mapping[str, Any]) -> Receipt:
    plain = {name: tuple(document[name]) for name in ("missing", "supersedes", "superseded_by")}
    return Receipt(
        **{
            **document,
            **plain,
            "parts": tuple([ScorePart(**one) for one in document["parts"]]),
            "steps": tuple([Step(**one) for one in document["steps"]]),
            "matches": tuple([_match(one) for one in document["matches"]]),
            "aliases": tuple([AliasMatch(**one) for one in document["aliases"]]),
        }
    )


def _match(document: Mapping[str, Any]) -> TermMatch:
    return TermMatch(**{**document, "forms": tuple(document["forms"]), "spans": _spans(document["spans"])})


def _lines(documents: Iterable[Mapping[str, Any]]) -> tuple[Line, ...]:
    return tuple([Line(**{**one, "spans": _spans(one["spans"])}) for one in documents])


def _spans(pairs: Iterable[Iterable[int]]) -> tuple[tuple[int, int], ...]:
    return tuple([(start, end) for start, end in pairs])
