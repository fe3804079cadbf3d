"""Limits that only fall: code, modules, long functions, settings, commands, options. `limits.toml` has the numbers."""

from __future__ import annotations

import ast
import io
import tokenize
import tomllib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from findling.faces.cli.main import cli
from findling.service.settings.settings import SETTINGS
from tests.meta.structure import PACKAGE, modules, syntax

LIMITS: dict[str, Any] = tomllib.loads((Path(__file__).parent / "limits.toml").read_text("utf-8"))

MOST_FUNCTION_LINES = 40
NO_CODE = frozenset(
    {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER}
)
RAISE = "fold something, or raise the limit in a commit of its own that names what left instead"


def room_of(path: Path) -> str:
    """The first folder of a module in the package, "." for the package itself."""
    first, *rest = path.relative_to(PACKAGE).parts
    return first if rest else "."


def is_no_code(node: ast.AST) -> bool:
    """Whether a statement is an import, a string that stands alone, or the list of public names."""
    if isinstance(node, ast.Assign):
        return any(isinstance(target, ast.Name) and target.id == "__all__" for target in node.targets)
    if isinstance(node, ast.Expr):
        return isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
    return isinstance(node, ast.Import | ast.ImportFrom)


def code_lines(source: str, tree: ast.Module) -> int:
    """The lines of a module that hold a token of code."""
    rows, left_out, within = source.splitlines(), set[int](), set[int]()
    for node in ast.walk(tree):
        if isinstance(node, ast.stmt):
            if is_no_code(node) and node.end_lineno is not None:
                left_out.update(range(node.lineno, node.end_lineno + 1))
        elif isinstance(node, ast.Constant | ast.JoinedStr) and node.end_lineno is not None:
            within.update(range(node.lineno, node.end_lineno + 1) if node.end_lineno > node.lineno else ())
    if any('"""' in rows[line - 1] or "'''" in rows[line - 1] for line in within - left_out):
        return len(lines_of_tokens(source) - left_out)
    held = {line for line, row in enumerate(rows, 1) if row.strip() and not row.lstrip().startswith("#")}
    return len(held - left_out)


def lines_of_tokens(source: str) -> set[int]:
    """The lines of code where a string may hold empty ones: one module in twenty, and ten times the work."""
    held = set[int]()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type not in NO_CODE:
            held.update(range(token.start[0], token.end[0] + 1))
    return held


def long_functions() -> list[str]:
    """The functions above the usual size, each with its module."""
    return [
        f"{name}.{node.name}"
        for name, path in modules().items()
        for node in ast.walk(syntax(path))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and node.end_lineno is not None
        and node.end_lineno - node.lineno >= MOST_FUNCTION_LINES
    ]


def walk(command: click.Command) -> Iterator[click.Command]:
    """A command and all below it."""
    yield command
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            found = command.get_command(context, name)
            assert found is not None
            yield from walk(found)


def above(found: Counter[str], limits: dict[str, int], most: int) -> dict[str, int]:
    """The rooms above their limits, by how much, if all together have grown by more than `most`."""
    over = {room: count - limits.get(room, 0) for room, count in sorted(found.items())}
    too_large = {room: excess for room, excess in over.items() if excess > 0}
    return too_large if max([sum(over.values()), *over.values()]) > most else {}


def test_code_does_not_grow() -> None:
    found = Counter[str]()
    for path in modules().values():
        found[room_of(path)] += code_lines(path.read_text("utf-8"), syntax(path))
    assert above(found, LIMITS["lines"], LIMITS["issue"]["lines"]) == {}, RAISE


def test_modules_do_not_become_more() -> None:
    found = Counter(room_of(path) for path in modules().values())
    assert above(found, LIMITS["modules"], LIMITS["issue"]["modules"]) == {}, RAISE


def test_long_functions_do_not_become_more() -> None:
    found = long_functions()
    assert len(found) <= LIMITS["shape"]["long_functions"], found


def test_settings_commands_and_options_do_not_become_more() -> None:
    commands = list(walk(cli))
    leaves = [command for command in commands if not isinstance(command, click.Group)]
    options = [each for command in commands for each in command.params if isinstance(each, click.Option)]
    found = {"settings": len(SETTINGS), "commands": len(leaves), "options": len(options)}
    assert {name: count for name, count in found.items() if count > LIMITS["surface"][name]} == {}, RAISE


def test_code_is_counted_without_prose_and_imports() -> None:
    source = '"""Title."""\n\nimport os\nfrom re import (\n    sub,\n)\n\n__all__ = [\n    "a",\n]\n\n# why\n'
    assert code_lines(source, ast.parse(source)) == 0
    source += 'def a(\n    b,\n):\n    """Doc."""\n    return """x\n\ny"""  # note\n\nA = 1\n"""About A."""\n'
    assert code_lines(source, ast.parse(source)) == 7


def test_growth_of_one_room_is_paid_by_another() -> None:
    limits = {"a": 10, "b": 10}
    assert above(Counter(a=12, b=9), limits, 1) == {"a": 2}, "two more in a room where one is allowed"
    assert above(Counter(a=11, b=9), limits, 1) == {}
    assert above(Counter(a=11, b=11), limits, 1) == {"a": 1, "b": 1}
    assert above(Counter(a=10, b=10), limits, 0) == {}
    assert above(Counter(a=10, b=10, c=1), limits, 0) == {"c": 1}
