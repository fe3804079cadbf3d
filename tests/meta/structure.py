"""The structure of the source tree: folders, imports, circles. Read from the syntax trees, nothing is imported."""

from __future__ import annotations

import ast
import gc
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

__all__ = ["PACKAGE", "SOURCE", "circles", "folder_sizes", "folders_of", "imports_between", "modules", "syntax"]

SOURCE = Path(__file__).resolve().parents[2] / "src"
PACKAGE = SOURCE / "findling"

Graph = Mapping[str, set[str]]


def modules() -> dict[str, Path]:
    """Every module by its dotted name; packages included."""
    paths = sorted(PACKAGE.rglob("*.py"))
    return {".".join(path.relative_to(SOURCE).with_suffix("").parts): path for path in paths}


@cache
def syntax(path: Path) -> ast.Module:
    """The syntax tree of a module. All of them take 1 s, and 3 s where each is looked through for garbage."""
    gc.disable()
    try:
        return ast.parse(path.read_text("utf-8"))
    finally:
        gc.enable()


def folder_sizes() -> Counter[Path]:
    """The number of Python files in every folder."""
    return Counter(path.parent.relative_to(PACKAGE) for path in modules().values())


@cache
def imports_between() -> dict[str, set[str]]:
    """The modules that each module imports, in functions and under TYPE_CHECKING as well."""
    known = {name for name, path in modules().items() if path.name != "__init__.py"}
    graph = defaultdict[str, set[str]](set)
    for name, path in modules().items():
        for imported in _imported(syntax(path)):
            if imported in known and imported != name:
                graph[name].add(imported)
    return dict(graph)


def folders_of(graph: Graph) -> dict[str, set[str]]:
    """The same graph between folders."""
    folders = defaultdict[str, set[str]](set)
    for name, imported in graph.items():
        folder = name.rpartition(".")[0]
        folders[folder] |= {one.rpartition(".")[0] for one in imported} - {folder}
    return dict(folders)


def circles(graph: Graph) -> list[list[str]]:
    """The groups of names that reach each other, smallest first."""
    reach = {name: _reachable(graph, name) for name in graph}
    groups = {frozenset(other for other in reach[name] if name in reach.get(other, ())) for name in graph}
    return sorted((sorted(group) for group in groups if len(group) > 1), key=len)


def _reachable(graph: Graph, start: str) -> set[str]:
    found, open_names = set[str](), [start]
    while open_names:
        fresh = graph.get(open_names.pop(), set()) - found
        found |= fresh
        open_names += fresh
    return found


def _imported(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
