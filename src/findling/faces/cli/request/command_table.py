"""The commands by their groups, those of earlier versions, and a group that names their replacements."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import click

from findling.domain.errors import UsageError

__all__ = ["COMMANDS", "GROUPS", "MOVED", "GroupWithMoves"]

GROUPS = {
    "Search": {
        "search": "commands.find.search",
        "fetch": "commands.find.document",
        "similar": "commands.find.document",
        "suggest": "commands.find.document",
        "recall": "commands.content.memories",
        "eval": "commands.find.eval",
    },
    "Content": {
        "add": "commands.content.items",
        "sync": "commands.content.items",
        "chats": "commands.content.chats",
        "remember": "commands.content.memories",
        "glossary": "commands.content.glossary",
        "export": "commands.admin.bundles",
        "import": "commands.admin.bundles",
    },
    "Index": {
        "index": "commands.index.index",
        "refine": "commands.index.index",
        "status": "commands.index.status",
        "ls": "commands.index.status",
        "forget": "commands.index.maintenance",
        "compact": "commands.index.snapshots",
        "snapshot": "commands.index.snapshots",
        "doctor": "commands.index.maintenance",
    },
    "Serve": {
        "serve": "commands.admin.serve",
        "mcp": "commands.admin.mcp",
        "watch": "commands.index.watch",
        "token": "commands.admin.tokens",
    },
    "Admin": {
        "workspaces": "commands.admin.workspaces",
        "permissions": "commands.admin.permissions",
        "models": "commands.index.models",
        "config": "commands.admin.config",
        "completion": "main",
    },
}
"""Every command and the module that holds it, as `--help` groups them."""

COMMANDS = {name: module for commands in GROUPS.values() for name, module in commands.items()}

MOVED = {
    "explain": "findling search QUERY --explain-hit ID",
    "include": "findling config add index.include PATTERN",
    "exclude": "findling config add index.exclude PATTERN",
    "repair": "findling doctor --repair",
    "version": "findling --version",
}
"""Commands of earlier versions, and what to type instead."""


class GroupWithMoves(click.Group):
    """A group that names the replacements of commands of earlier versions."""

    def __init__(self, *given: Any, moved: Mapping[str, str] | None = None, **options: Any) -> None:
        super().__init__(*given, **options)
        self.moved = moved or {}

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Raises UsageError that names the new command."""
        if args and args[0] in self.moved:
            raise UsageError(f"there is no {ctx.command_path} {args[0]} any more", hint=self.moved[args[0]])
        return super().resolve_command(ctx, args)
