"""The pages of what servers offer: the routes of the HTTP interface, and the tools of the MCP server."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from markdown_tables import code, table

from findling.domain.permissions import OWNER
from findling.faces.http.app import create_app
from findling.faces.mcp.tools.arguments import input_schema
from findling.faces.mcp.tools.tools import TOOLS
from findling.service.engine.executor import WorkLine
from findling.service.server.engine_pool import Host
from findling.service.settings.settings import Settings

__all__ = ["mcp_page", "routes_page"]


def routes_page() -> Iterator[str]:
    """Every route with its parameters."""
    yield "# Routes"
    yield ""
    yield "What the daemon answers, as `/openapi.json` describes it; [HTTP](../http.md) shows it in use. Parameters and"
    yield "keys that do not stand here are refused with 422."
    yield ""
    description = _description()
    schemas = description["components"]["schemas"]
    shown: dict[str, None] = {}
    for path, methods in description["paths"].items():
        for method, route in methods.items():
            yield from _route(f"{method.upper()} {path}", route, schemas, shown)
    yield "## Bodies"
    yield ""
    for name in shown:
        yield from _body(name, schemas[name])


def mcp_page() -> Iterator[str]:
    """Every tool with its arguments."""
    yield "# MCP tools"
    yield ""
    yield "What `findling mcp` and `/mcp` offer; [MCP clients](../mcp.md) shows it in use. Arguments that do not stand"
    yield "here are refused."
    yield ""
    for tool in TOOLS:
        yield f"## {tool.name}"
        yield ""
        yield tool.description + (" Only where `mcp.write` is on." if tool.writes else "")
        yield ""
        yield from _properties(input_schema(tool.arguments), ("argument", "type", "default", "meaning"))


def _description() -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as home:
        host = Host(Settings().override({"store.home": home}, "docs"), Path(home))
        line = WorkLine(1)
        try:
            return create_app(host, line, identify=lambda scope: OWNER).openapi()
        finally:
            line.close()
            host.close()


def _route(name: str, route: Mapping[str, Any], schemas: Mapping[str, Any], shown: dict[str, None]) -> Iterator[str]:
    yield f"## {name}"
    yield ""
    yield " ".join((route.get("description") or route.get("summary") or "").split())
    yield ""
    for content in route.get("requestBody", {}).get("content", {}).values():
        for reached in _references(content, schemas):
            shown[reached] = None
        named = next(_named(content))
        yield f"Body: [{named}](#{named.lower()})."
        yield ""
    rows = [
        (code(one["name"]), one["in"], _type(one["schema"]), one.get("description", ""))
        for one in route.get("parameters", ())
    ]
    if rows:
        yield from table(("parameter", "in", "type", "meaning"), rows)


def _body(name: str, schema: Mapping[str, Any]) -> Iterator[str]:
    yield f"### {name}"
    yield ""
    yield " ".join(schema.get("description", "").split())
    yield ""
    yield from _properties(schema, ("key", "type", "default", "meaning"))


def _properties(schema: Mapping[str, Any], head: tuple[str, str, str, str]) -> Iterator[str]:
    rows = list(_rows(schema))
    if rows:
        yield from table(head, rows)


def _rows(schema: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, str, str, str]]:
    """One for each property, and for each property of those that are objects."""
    for key, one in schema.get("properties", {}).items():
        default = "needed" if key in schema.get("required", ()) else _default(one)
        yield code(prefix + key), _type(one), default, one.get("description", "")
        yield from _rows(one, f"{prefix}{key}.")


def _default(schema: Mapping[str, Any]) -> str:
    default = schema.get("default")
    return "" if default in (None, "", []) or isinstance(default, dict) else code(str(default))


def _type(schema: Mapping[str, Any]) -> str:
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        return f"[{name}](#{name.lower()})"
    if "anyOf" in schema:
        return " or ".join(dict.fromkeys(map(_type, schema["anyOf"])))
    if "enum" in schema:
        return " or ".join(code(str(value)) for value in schema["enum"])
    name = str(schema.get("type", "any"))
    if name == "array":
        return f"list of {_type(schema.get('items', {}))}"
    bounds = [
        f"{word} {schema[key]}"
        for key, word in (("minimum", "from"), ("maximum", "to"), ("minLength", "at least"), ("maxLength", "at most"))
        if key in schema
    ]
    return " ".join([name, *bounds])


def _references(value: object, schemas: Mapping[str, Any]) -> Iterator[str]:
    """The schemas that a part of the description names, and those that these name."""
    for name in _named(value):
        yield name
        yield from _references({key: part for key, part in schemas[name].items() if key != "$ref"}, schemas)


def _named(value: object) -> Iterator[str]:
    if isinstance(value, Mapping):
        for key, part in value.items():
            if key == "$ref":
                yield str(part).rpartition("/")[2]
            else:
                yield from _named(part)
    elif isinstance(value, list):
        for part in value:
            yield from _named(part)
