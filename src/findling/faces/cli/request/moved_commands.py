"""A group of commands that names the replacements of earlier ones."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import click

from findling.domain.errors import UsageError

__all__ = ["GroupWithMoves"]


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
