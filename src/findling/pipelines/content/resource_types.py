"""The registry of resource types: built-in ones, those of programs and those of plugins."""

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
from findling.domain.values import closest_name

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

MADE_ELSEWHERE = {
    "file": "findling index",
    "chat": "findling chats import",
    "memory": "findling remember",
    "row": "findling import --from-postgres",
}
"""Types whose resources are no items, each with its own command."""

_NAMED = {
    "title": FieldRule(place="title"),
    "name": FieldRule(place="name"),
    "description": FieldRule(place="description"),
    "category": FieldRule(place="tags"),
    "body": FieldRule(),
    "version": FieldRule(heading="Version"),
}
"""The fields of named things: one of name and title is enough."""

_BY_TITLE = {"title": 3.0, "description": 2.0, "tags": 1.5, "body": 1.0}
_BY_NAME = {"title": 3.0, "name": 3.0, "description": 2.0, "tags": 1.5, "body": 1.0}


def _titled(name: str, half_life_days: float, immutable: bool = False, **fields: FieldRule | str) -> ResourceType:
    """A type with a title and a body; a text among its other fields is the heading of a section."""
    rules = {field: FieldRule(heading=rule) if isinstance(rule, str) else rule for field, rule in fields.items()}
    return ResourceType(
        name=name,
        fields={"title": FieldRule(place="title", required=True), "body": FieldRule(), **rules},
        weights=_BY_TITLE,
        half_life_days=half_life_days,
        immutable=immutable,
    )


_TYPES = (
    ResourceType(name="file", lang=""),
    ResourceType(name="chat", lang="chat", half_life_days=30.0),
    ResourceType(name="memory", fields={"text": FieldRule(required=True)}, lang="text", half_life_days=30.0),
    ResourceType(name="row", fields={"title": FieldRule(place="title"), "body": FieldRule()}, weights=_BY_TITLE),
    _titled(
        "decision",
        0.0,  # it holds until something supersedes it
        immutable=True,
        rationale="Rationale",
        alternatives=FieldRule(heading="Alternatives", many=True),
        confidence="Confidence",
        source_url="Source",
        source_ref="Source reference",
    ),
    _titled("policy", 0.0, rationale="Rationale", source_url="Source", expires_at="Expires"),
    _titled("document", 180.0, description=FieldRule(place="description"), source_url="Source"),
    _titled("research", 90.0, source_url=FieldRule(heading="Source", required=True), findings="Findings"),
    _titled("task", 30.0, status=FieldRule(place="tags"), assignee="Assigned to", due_at="Due"),
    _titled(
        "qa_check",
        90.0,
        status=FieldRule(place="tags"),
        steps=FieldRule(heading="Steps", many=True),
        expected="Expected",
        result="Result",
    ),
    *(
        ResourceType(name=name, fields=_NAMED, weights=_BY_NAME, half_life_days=0.0)
        for name in ("directive", "tool", "knowledge")
    ),
)

BUILTIN_TYPES: Mapping[str, ResourceType] = {each.name: each for each in _TYPES}
"""Name → type. Named things have the weights of catalogues: a reader who types a name wants that thing first."""

COMMON_KEYS = (
    *("id", "type", "title", "body", "tags", "author", "created_at", "updated_at", "visibility", "lang", "path"),
    *("system", "links", "supersedes", "context"),
)
"""The keys that an item of any type may have."""

_registered: dict[str, ResourceType] = {}


def types() -> Mapping[str, ResourceType]:
    """All types that this process knows; that of a plugin after its first use."""
    return {**_registered, **BUILTIN_TYPES}


def resource_type(name: str, own: Mapping[str, ResourceType] | None = None) -> ResourceType:
    """The type of this name: built in, one of `own`, registered, or that of a plugin, which is loaded.

    Raises NotFoundError for a name that no type has, and InvalidValueError for a plugin that does not work.
    """
    if (found := _known(name, own)) is not None:
        return found
    from importlib.metadata import entry_points  # 15 ms, and most workspaces have no types of plugins

    plugins = {plugin.name: plugin for plugin in entry_points(group="findling.types")}
    if name not in plugins:
        known = sorted({*types(), *(own or {}), *plugins})
        raise NotFoundError(f"no type of resources is called {name!r}", hint=closest_name(name, known))
    _registered[name] = _load(plugins[name])
    return _registered[name]


def register(type: ResourceType) -> ResourceType:  # noqa: A002 - the word of the domain
    """Make a type known to this process, in place of a registered one of its name. Raises InvalidValueError."""
    _registered[type.name] = check_type(type)
    return type


def check_type(type: ResourceType) -> ResourceType:  # noqa: A002 - the word of the domain
    """The type, when it can stand beside the built-in ones. Raises InvalidValueError."""
    name = type.name
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise InvalidValueError(f"{name!r} is no name of a type", hint="small letters, digits, '-' and '_'")
    if name in BUILTIN_TYPES or name in _TAKEN:
        raise InvalidValueError(f"the type {name} is always there and cannot be another one", hint="rename it")
    for field, rule in type.fields.items():
        _check_field(name, field, rule)
    titles = [field for field, rule in type.fields.items() if rule.place == "title"]
    if len(titles) > 1:
        raise InvalidValueError(f"type {name}: {' and '.join(titles)} cannot both be the title", hint="keep one")
    if unknown := [field for field in type.weights if field not in FIELDS]:
        raise InvalidValueError(
            f"type {name}: no text field is called {unknown[0]!r}", hint=f"one of {', '.join(FIELDS)}"
        )
    numbers = {f"the weight of {field}": weight for field, weight in type.weights.items()}
    for what, value in {**numbers, "half_life_days": type.half_life_days}.items():
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value) or value < 0:
            raise InvalidValueError(
                f"type {name}: {what} must be a number of at least 0, not {value!r}", hint="1.0, for instance"
            )
    return type


def weights_of(names: Iterable[str], own: Mapping[str, ResourceType] | None = None) -> Mapping[str, float]:
    """The weights of text fields in a search that is limited to some types: none where they differ or are unknown."""
    known = [_of_search(name, own) for name in dict.fromkeys(names)]
    found = [{} if each is None else each.weights for each in known]
    return found[0] if found and all(weights == found[0] for weights in found) else {}


def replaces_only(names: Iterable[str], own: Mapping[str, ResourceType] | None = None) -> bool:
    """Whether all of the types are immutable: nothing is changed, another resource replaces it."""
    known = [_of_search(name, own) for name in names]
    return all(each is not None and each.immutable for each in known)


def half_life_of(name: str) -> float:
    """The days after which recency counts half for a type; an unknown one has the usual number."""
    return (_of_search(name) or _USUAL).half_life_days


_USUAL = ResourceType(name="any")

_NAME = re.compile(r"[a-z][a-z0-9_-]{0,39}")
_TAKEN = frozenset({"group", "log", "path", "role", "user"})  # words before the colon of other ids
_OWN_PLACE = {"title": "title", "name": "name", "description": "description", "author": "author"}
_FREE = frozenset({"title", "body", "author"})  # common keys that a type may say more about
_RESERVED = {*COMMON_KEYS, "delete", "digest", "file", "scope", "shadowed_by", "shadows", "thread"} - _FREE


def _check_field(name: str, field: str, rule: FieldRule) -> None:
    place, own = rule.place, _OWN_PLACE.get(field, rule.place)
    is_name = re.fullmatch(r"[A-Za-z]\w{0,59}", field) is not None
    faults = (
        (not is_name, f"{field!r} is no name of a field", "letters, digits and '_'"),
        (field in _RESERVED, f"{field} has a meaning of its own in every item", "rename the field"),
        (place not in PLACES, f"{field} has the place {place!r}, which is none", f"one of {', '.join(PLACES)}"),
        (place != own, f"the place of {field} is always {own}", f'place = "{own}"'),
        (not rule.heading.isprintable(), f"the heading of {field} must be one line", "take the break out"),
    )
    for is_there, problem, hint in faults:
        if is_there:
            raise InvalidValueError(f"type {name}: {problem}", hint=hint)


def _known(name: str, own: Mapping[str, ResourceType] | None) -> ResourceType | None:
    return BUILTIN_TYPES.get(name) or (own or {}).get(name) or _registered.get(name)


def _of_search(name: str, own: Mapping[str, ResourceType] | None = None) -> ResourceType | None:
    """The type of this name for a search, which must not fail with a plugin."""
    return _known(name, own) or _of_plugin(name, tuple(sys.path))


@lru_cache(maxsize=64)
def _of_plugin(name: str, _path: tuple[str, ...]) -> ResourceType | None:
    """The type of a plugin, looked for once a process and path: hardly any unknown name is a plugin's."""
    try:
        return resource_type(name)
    except (InvalidValueError, NotFoundError):
        return None


def _load(plugin: EntryPoint) -> ResourceType:
    where = f"the plugin {plugin.name} ({plugin.value})"
    hint = f"update or remove {plugin.dist.name if plugin.dist is not None else 'the package'}"
    try:
        found = plugin.load()
    except Exception as error:  # a stranger's module may raise anything while it is imported
        raise InvalidValueError(f"{where} cannot be loaded: {error}", hint=hint) from error
    if not isinstance(found, ResourceType) or found.name != plugin.name:
        raise InvalidValueError(f"{where} is no ResourceType of that name", hint=hint)
    try:
        return check_type(found)
    except InvalidValueError as error:
        raise InvalidValueError(f"{where}: {error.message}", hint=error.hint) from error
