"""A tool of the MCP server, made of the function that does its work."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, get_type_hints

from findling.domain.reports import Progress
from findling.faces.mcp.tool_context import Desk
from findling.faces.mcp.tools.arguments import Arguments

Work = Callable[[Desk, Any, Progress | None], dict[str, Any]]
"""The work of a tool; it may block."""


class Tool(NamedTuple):
    """One tool. `writes` says that it changes something, `is_offered` to whom it is shown.

    `check` raises FindlingError for what cannot be asked, before anything is done; with `wants_latest`, what has
    changed on disk is taken in then.
    """

    name: str
    description: str
    arguments: type[Arguments]
    result: type
    work: Work
    writes: bool = False
    wants_latest: bool = False
    check: Callable[[Desk, Any], object] = lambda desk, asked: None
    is_offered: Callable[[Desk], bool] = lambda desk: True


def tool(result: type, description: str = "", **facts: Any) -> Callable[[Work], Tool]:
    """Make a tool of a function: it has its name, its docstring and the arguments that it is annotated with."""

    def made(work: Work) -> Tool:
        told = description or " ".join((work.__doc__ or "").split())
        return Tool(work.__name__, told, get_type_hints(work)["asked"], result, work, **facts)

    return made
