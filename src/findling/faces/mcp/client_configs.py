"""What to write into the settings of an MCP client so that it finds findling."""

from __future__ import annotations

import json
import shlex
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

__all__ = ["CLIENTS", "claude_command", "client_snippet", "own_command", "skill_text"]

CLIENTS = {
    "claude": ".mcp.json of the project",
    "cursor": ".cursor/mcp.json of the project, or ~/.cursor/mcp.json",
    "vscode": ".vscode/mcp.json of the project",
    "codex": "~/.codex/config.toml, or .codex/config.toml of a project that Codex trusts",
}
"""Every client that a snippet is made for, and where that goes."""


def client_snippet(client: str, command: Sequence[str]) -> str:
    """The settings under which a client starts a command, as text that can be pasted."""
    program, arguments = command[0], list(command[1:])
    if client == "codex":
        return f"[mcp_servers.findling]\ncommand = {_quoted(program)}\nargs = {_quoted(arguments)}\n"
    entry = {"command": program, "args": arguments}
    if client == "vscode":
        return _document({"servers": {"findling": {"type": "stdio", **entry}}})
    return _document({"mcpServers": {"findling": entry}})


def claude_command(command: Sequence[str]) -> str:
    """What has Claude Code write the settings by itself."""
    return f"claude mcp add findling -- {shlex.join(command)}"


def own_command(started_as: str) -> list[str]:
    """How to start findling from anywhere: the program by its whole path, or the interpreter that runs it."""
    named = Path(started_as)
    for found in (shutil.which(str(named.absolute())) if named.parts else None, shutil.which("findling")):
        if found and Path(found).stem == "findling":
            return [str(Path(found).absolute())]
    return [sys.executable, "-m", "findling"]


def skill_text() -> str:
    """What teaches an agent when to use findling, and how."""
    from importlib.resources import files

    return (files("findling.faces.mcp") / "skill" / "SKILL.md").read_text(encoding="utf-8")


def _document(value: object) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False) + "\n"


def _quoted(value: object) -> str:
    # A basic string of TOML has the escapes of JSON.
    return json.dumps(value, ensure_ascii=False)
