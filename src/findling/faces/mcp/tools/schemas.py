"""JSON schemas of what tools take and give, as short as they can be: every client reads them before anything else."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from pydantic import BaseModel, TypeAdapter

__all__ = ["input_schema", "output_schema"]

_LONGEST_WORTH_TELLING = 100
"""A bound above which a length keeps out nothing but nonsense, which is refused all the same."""


def input_schema(kind: type[BaseModel]) -> dict[str, Any]:
    """The schema of arguments; it allows no keys but those in it."""
    return _object(kind.model_json_schema())


def output_schema(kind: type) -> dict[str, Any]:
    """The schema of a result; that every key is always there need not be said."""
    return _object(TypeAdapter(kind).json_schema(), idle=("required", "additionalProperties"))


def _object(schema: dict[str, Any], idle: Collection[str] = ()) -> dict[str, Any]:
    parts = schema.pop("$defs", {})
    slim: dict[str, Any] = _slim(schema, parts, idle)
    return slim


def _slim(node: Any, parts: Mapping[str, Any], idle: Collection[str]) -> Any:
    """A schema without titles and idle keys, and with everything in its place instead of references."""
    if isinstance(node, list):
        return [_slim(each, parts, idle) for each in node]
    if not isinstance(node, dict):
        return node
    if "$ref" in node:
        node = {**parts[node["$ref"].rpartition("/")[2]], **{key: node[key] for key in node if key != "$ref"}}
    kept = {key: value for key, value in node.items() if key not in idle and not _is_idle(key, value, node)}
    if "properties" in kept:
        kept["properties"] = {name: _slim(each, parts, idle) for name, each in kept["properties"].items()}
    return {key: value if key == "properties" else _slim(value, parts, idle) for key, value in kept.items()}


def _is_idle(key: str, value: object, node: Mapping[str, Any]) -> bool:
    """Whether a key says what everybody knows: a title that is the name, a bound nobody meets, an empty default."""
    if key == "title":
        return isinstance(value, str)
    if key in ("maxLength", "maxItems"):
        return True
    if key == "minLength":
        return value == 1
    if key == "maximum":
        return isinstance(value, int) and value > _LONGEST_WORTH_TELLING
    if key == "description":
        return "properties" in node  # the docstring of a model
    return key == "default" and (not value or isinstance(value, dict))
