"""The types of resources that are always there."""

from __future__ import annotations

from collections.abc import Mapping

from findling.domain.resources import FieldRule, ResourceType

__all__ = ["BUILTIN_TYPES", "MADE_ELSEWHERE"]

MADE_ELSEWHERE: Mapping[str, str] = {
    "file": "findling index",
    "chat": "findling chats import",
    "memory": "findling remember",
}
"""Types whose resources are no items, each with the command that makes them."""

_TITLE = FieldRule(place="title", required=True)
_BODY = FieldRule()
_RATIONALE = FieldRule(heading="Rationale")
_SOURCE = FieldRule(heading="Source")
_STATUS = FieldRule(place="tags")

_NAMED = {
    "title": FieldRule(place="title"),
    "name": FieldRule(place="name"),
    "description": FieldRule(place="description"),
    "category": FieldRule(place="tags"),
    "body": _BODY,
    "version": FieldRule(heading="Version"),
}
"""The fields of what is called by a name: one of name and title is enough."""

_BY_NAME = {"title": 3.0, "name": 3.0, "description": 2.0, "tags": 1.5, "body": 1.0}
_BY_TITLE = {"title": 3.0, "description": 2.0, "tags": 1.5, "body": 1.0}


def _titled(name: str, half_life_days: float, *, immutable: bool = False, **fields: FieldRule) -> ResourceType:
    return ResourceType(
        name=name,
        fields={"title": _TITLE, "body": _BODY, **fields},
        weights=_BY_TITLE,
        half_life_days=half_life_days,
        immutable=immutable,
    )


_TYPES = (
    ResourceType(name="file", lang=""),
    ResourceType(name="chat", lang="chat", half_life_days=30.0),
    ResourceType(name="memory", fields={"text": FieldRule(required=True)}, lang="text", half_life_days=30.0),
    _titled(
        "decision",
        0.0,  # it holds until something supersedes it
        immutable=True,
        rationale=_RATIONALE,
        alternatives=FieldRule(heading="Alternatives", many=True),
        confidence=FieldRule(heading="Confidence"),
        source_url=_SOURCE,
        source_ref=FieldRule(heading="Source reference"),
    ),
    _titled("policy", 0.0, rationale=_RATIONALE, source_url=_SOURCE, expires_at=FieldRule(heading="Expires")),
    _titled("document", 180.0, description=FieldRule(place="description"), source_url=_SOURCE),
    _titled(
        "research", 90.0, source_url=FieldRule(heading="Source", required=True), findings=FieldRule(heading="Findings")
    ),
    _titled("task", 30.0, status=_STATUS, assignee=FieldRule(heading="Assigned to"), due_at=FieldRule(heading="Due")),
    _titled(
        "qa_check",
        90.0,
        status=_STATUS,
        steps=FieldRule(heading="Steps", many=True),
        expected=FieldRule(heading="Expected"),
        result=FieldRule(heading="Result"),
    ),
    *(
        ResourceType(name=name, fields=_NAMED, weights=_BY_NAME, half_life_days=0.0)
        for name in ("directive", "tool", "knowledge")
    ),
)

BUILTIN_TYPES: Mapping[str, ResourceType] = {each.name: each for each in _TYPES}
"""Name → type. The weights of named things are those of catalogues: whoever knows the name wants that one first."""
