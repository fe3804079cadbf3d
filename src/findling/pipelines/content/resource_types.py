"""The registry of resource types: those that are always there, those of programs and those of plugins."""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING

from findling.domain.errors import InvalidValueError, NotFoundError
from findling.domain.plans import FIELDS
from findling.domain.resources import PLACES, FieldRule, ResourceType

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

__all__ = [
    "BUILTIN_TYPES",
    "COMMON_KEYS",
    "MADE_ELSEWHERE",
    "check_type",
    "half_life_of",
    "register",
    "replaces_only",
    "resource_type",
    "types",
    "weights_of",
]


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


COMMON_KEYS = (
    *("id", "type", "title", "body", "tags", "author", "created_at", "updated_at", "visibility", "lang", "path"),
    *("system", "links", "supersedes", "context"),
)
"""The keys that an item of any type may have."""

_GROUP = "findling.types"
"""The entry points by which an installed package brings types."""

_registered: dict[str, ResourceType] = {}


def types() -> Mapping[str, ResourceType]:
    """All types that are known now; a plugin's once it was asked for."""
    return {**_registered, **BUILTIN_TYPES}


def resource_type(name: str, own: Mapping[str, ResourceType] | None = None) -> ResourceType:
    """The type of this name: a built-in one, one of `own`, a registered one, or that of a plugin, which is loaded.

    Raises NotFoundError for a name that no type has, and InvalidValueError for a plugin that does not work.
    """
    found = BUILTIN_TYPES.get(name) or (own or {}).get(name) or _registered.get(name)
    if found is not None:
        return found
    plugins = _plugins()
    if name in plugins:
        _registered[name] = _load(plugins[name])
        return _registered[name]
    known = [*types(), *(own or {}), *plugins]
    raise NotFoundError(f"no type of resources is called {name!r}", hint=_near(name, known))


def register(type: ResourceType) -> ResourceType:  # noqa: A002 - the word of the domain
    """Make a type known to this process, and return it. Raises InvalidValueError for one that cannot be.

    Registering a name again replaces its type, unless it is a built-in one.
    """
    _registered[type.name] = check_type(type)
    return type


def check_type(type: ResourceType) -> ResourceType:  # noqa: A002 - the word of the domain
    """The type, when it can be one beside those that are always there. Raises InvalidValueError."""
    name = type.name
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise InvalidValueError(f"{name!r} is no name of a type", hint="small letters, digits, '-' and '_'")
    if name in BUILTIN_TYPES or name in _TAKEN:
        raise InvalidValueError(f"the type {name} is always there and cannot be another one", hint="rename it")
    for field, rule in type.fields.items():
        _check_field(name, field, rule.place)
        if not rule.heading.isprintable():
            raise InvalidValueError(f"type {name}: the heading of {field} must be one line", hint="take the break out")
    titles = [field for field, rule in type.fields.items() if rule.place == "title"]
    if len(titles) > 1:
        raise InvalidValueError(f"type {name}: {' and '.join(titles)} cannot both be the title", hint="keep one")
    for field, weight in type.weights.items():
        if field not in FIELDS:
            raise InvalidValueError(f"type {name}: no text field is called {field!r}", hint=f"one of {_listed(FIELDS)}")
        _check_number(f"type {name}: the weight of {field}", weight)
    _check_number(f"type {name}: half_life_days", type.half_life_days)
    return type


def weights_of(names: Iterable[str], own: Mapping[str, ResourceType] | None = None) -> Mapping[str, float]:
    """The weights of text fields in a search that is limited to some types: none where they do not agree.

    A type that nobody knows has none: what was indexed can be searched when its plugin is gone.
    """
    known = [_found(name, own) for name in dict.fromkeys(names)]
    found = [{} if each is None else each.weights for each in known]
    return found[0] if found and all(weights == found[0] for weights in found) else {}


def replaces_only(names: Iterable[str], own: Mapping[str, ResourceType] | None = None) -> bool:
    """Whether all of the types are such that nothing is ever changed, and something else replaces it."""
    known = [_found(name, own) for name in names]
    return all(each is not None and each.immutable for each in known)


def half_life_of(name: str) -> float:
    """The days after which recency counts half for a type that is always there, registered, or that of a plugin.

    A type that nobody knows any more ages as one that does not say.
    """
    known = _found(name)
    return _HALF_LIFE_DAYS if known is None else known.half_life_days


_HALF_LIFE_DAYS = ResourceType(name="any").half_life_days

_NAME = re.compile(r"[a-z][a-z0-9_-]{0,39}")
_TAKEN = frozenset({"group", "log", "path", "role", "user"})
"""What stands before the colon of other ids."""

_OWN_PLACE = {"title": "title", "name": "name", "description": "description", "author": "author"}
_FREE = frozenset({"title", "body", "author"})
"""Common keys that a type may say more about."""

_RESERVED = {*COMMON_KEYS, "delete", "digest", "file", "scope", "shadowed_by", "shadows", "thread"} - _FREE


def _check_field(name: str, field: str, place: str) -> None:
    if not re.fullmatch(r"[A-Za-z]\w{0,59}", field):
        raise InvalidValueError(f"type {name}: {field!r} is no name of a field", hint="letters, digits and '_'")
    if field in _RESERVED:
        raise InvalidValueError(f"type {name}: {field} has a meaning of its own in every item", hint="rename the field")
    if place not in PLACES:
        raise InvalidValueError(
            f"type {name}: {field} has the place {place!r}, which is none", hint=f"one of {_listed(PLACES)}"
        )
    if place != _OWN_PLACE.get(field, place):
        raise InvalidValueError(
            f"type {name}: the place of {field} is always {_OWN_PLACE[field]}", hint=f'place = "{_OWN_PLACE[field]}"'
        )


def _check_number(what: str, value: object) -> None:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value) or value < 0:
        raise InvalidValueError(f"{what} must be a number of at least 0, not {value!r}", hint="1.0, for instance")


def _found(name: str, own: Mapping[str, ResourceType] | None = None) -> ResourceType | None:
    """The type of this name for a search, which must not fail because a plugin is gone or does not work."""
    found = BUILTIN_TYPES.get(name) or (own or {}).get(name) or _registered.get(name)
    return found or _of_plugin(name, tuple(sys.path))


@lru_cache(maxsize=64)
def _of_plugin(name: str, _path: tuple[str, ...]) -> ResourceType | None:
    """The type of a plugin, looked for once a process and path: nearly no name that is not known is a plugin's."""
    try:
        return resource_type(name)
    except (InvalidValueError, NotFoundError):
        return None


def _plugins() -> dict[str, EntryPoint]:
    from importlib.metadata import entry_points  # 15 ms, and most workspaces have no types of plugins

    return {found.name: found for found in entry_points(group=_GROUP)}


def _load(plugin: EntryPoint) -> ResourceType:
    """The type that a plugin brings: a ResourceType of the plugin's own name."""
    where = f"the plugin {plugin.name} ({plugin.value})"
    try:
        found = plugin.load()
    except Exception as error:  # a module of somebody else may raise anything while it is imported
        raise InvalidValueError(f"{where} cannot be loaded: {error}", hint=_reinstall(plugin)) from error
    if not isinstance(found, ResourceType) or found.name != plugin.name:
        raise InvalidValueError(f"{where} is no ResourceType of that name", hint=_reinstall(plugin))
    try:
        return check_type(found)
    except InvalidValueError as error:
        raise InvalidValueError(f"{where}: {error.message}", hint=error.hint) from error


def _reinstall(plugin: EntryPoint) -> str:
    package = plugin.dist.name if plugin.dist is not None else "the package"
    return f"update or remove {package}"


def _near(name: str, known: Iterable[str]) -> str:
    from difflib import get_close_matches

    names = sorted(set(known))
    closest = get_close_matches(name, names, n=1, cutoff=0.5)
    return f"{f'{closest[0]} instead? ' if closest else ''}there are: {_listed(names)}"


def _listed(names: Iterable[str]) -> str:
    return ", ".join(names)
