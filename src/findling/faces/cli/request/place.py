"""The place that a command is about: a path, the name of a workspace, and the settings that hold there."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import cached_property, wraps
from typing import TYPE_CHECKING, Any, TypeVar, cast

import click

from findling.faces.cli.request.options import is_url, looks_like_path, opened, resolve, workspace_option

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from findling.service.engine.engine import Engine
    from findling.service.settings.settings import Settings

_Command = TypeVar("_Command", bound=Callable[..., Any])


class GivenPlace:
    """A path and a workspace as they were given, and flags of settings; `in_context` is as in `resolve`."""

    def __init__(self, path: str, workspace: str | None, *, in_context: bool = False, **flags: str | None) -> None:
        self.path, self.workspace = path, workspace
        self._in_context, self._flags = in_context, flags

    @cached_property
    def settings(self) -> Settings:
        """The settings that hold there, with the flags."""
        return resolve(self.path, in_context=self._in_context, workspace=self.workspace, **self._flags)

    def opened(self, *, creates: bool = False) -> AbstractContextManager[Engine]:
        """The engine of the place. Raises as `opened` does."""
        return opened(self.path, self.settings, creates=creates)


def at_workspace(command: _Command) -> _Command:
    """Have a command take a workspace by its name; it gets that and its PATH, if it has one, as `place`."""

    @wraps(command)
    def placed(workspace: str | None, path: str = ".", **given: Any) -> Any:
        return command(place=GivenPlace(path, workspace), **given)

    return cast("_Command", workspace_option(placed))


def place_option(command: _Command) -> _Command:
    """Have a command take a workspace by its name, or by a folder of it; it gets `place`."""

    @wraps(command)
    def placed(workspace: str | None, **given: Any) -> Any:
        is_path = workspace is not None and not is_url(workspace) and looks_like_path(workspace)
        path = os.path.expanduser(workspace or "") if is_path else "."  # noqa: PTH111 - "./" names a folder, "." does not
        return command(place=GivenPlace(path, None if is_path else workspace), **given)

    told = "The workspace: its name, a folder of it such as ./docs, or its URL; by default that of this folder."
    option = click.option("--workspace", "--store", "workspace", metavar="NAME|PATH|URL", help=told)
    return cast("_Command", option(placed))
