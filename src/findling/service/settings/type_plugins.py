"""Types of resources that settings files declare, as tables `[types.NAME]`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from findling.domain.errors import InvalidValueError, UnknownSettingError
from findling.domain.resources import FieldRule, ResourceType
from findling.domain.values import closest_name
from findling.pipelines.content.resource_types import BUILTIN_TYPES, check_type, types

_KEYS = {"fields": dict, "weights": dict, "lang": str, "half_life_days": float, "immutable": bool}
_RULE_KEYS = {"place": str, "heading": str, "required": bool, "many": bool}
_WANTED = {dict: "a table", str: "text", float: "a number", bool: "true or false"}


def read_types(tables: object, origin: str) -> dict[str, ResourceType]:
    """The types of a settings file by their names. A field may be a table, or just the name of its place.

    Raises InvalidValueError or UnknownSettingError, naming the file, the type and the key.
    """
    if not isinstance(tables, Mapping):
        raise InvalidValueError(f"{origin}: types must be tables, not {tables!r}", hint="[types.NAME]")
    return {name: _read(name, table, origin) for name, table in tables.items()}


def declared_types(own: Iterable[str] | None) -> set[str]:
    """Names of the types that everybody knows, or for the owner of all: with those of programs and settings."""
    return set(BUILTIN_TYPES) if own is None else {*types(), *own}


def _read(name: str, table: object, origin: str) -> ResourceType:
    where = f"{origin}: types.{name}"
    values = _checked(table, _KEYS, where)
    fields = {}
    for field, rule in values.pop("fields", {}).items():
        given = {"place": rule} if isinstance(rule, str) else rule
        fields[field] = FieldRule(**_checked(given, _RULE_KEYS, f"{where}.fields.{field}"))
    try:
        return check_type(ResourceType(name=name, fields=fields, **values))
    except InvalidValueError as error:
        raise InvalidValueError(f"{origin}: {error.message}", hint=error.hint) from error


def _checked(table: object, keys: Mapping[str, type], where: str) -> dict[str, Any]:
    """The table. Raises for an unknown key, or a value of another kind than its key wants."""
    if not isinstance(table, Mapping):
        raise InvalidValueError(f"{where} must be a table, not {table!r}", hint=f"it takes {', '.join(keys)}")
    for key, value in table.items():
        if key not in keys:
            raise UnknownSettingError(f"{where} has no {key!r}", hint=closest_name(key, keys))
        wanted = keys[key]
        is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
        if not (is_number if wanted is float else isinstance(value, wanted)):
            raise InvalidValueError(f"{where}.{key} must be {_WANTED[wanted]}, not {value!r}", hint=f"correct {key}")
    return dict(table)
