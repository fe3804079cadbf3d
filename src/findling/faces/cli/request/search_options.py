"""The options that say what is asked, which every command that asks a question takes."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar, cast

import click

from findling.domain.plans import KNOBS
from findling.faces.cli.request.options import (
    apply_changes,
    as_option,
    changes_option,
    no_context_option,
    plan_options,
    resolve,
    setting_option,
    workspace_option,
)
from findling.faces.cli.request.request_builder import SearchOptions
from findling.service.settings.settings import Settings
from findling.service.workspace.scope import NO_CONTEXT

__all__ = ["question_options", "settled"]

_Command = TypeVar("_Command", bound=Callable[..., Any])

_OPTIONS: tuple[Callable[..., Any], ...] = (
    setting_option("limit", "-k", metavar="N"),
    click.option("-e", "--ext", multiple=True, metavar="EXT", help="Only files with this extension; py, .py or py,md."),
    click.option("-E", "--exclude-ext", multiple=True, metavar="EXT", help="No files with this extension."),
    click.option("-x", "--exclude-pattern", metavar="REGEX", help="No chunks that this regular expression matches."),
    click.option("--path", "path_prefix", multiple=True, metavar="FOLDER", help="Only below this folder of PATH."),
    click.option("--type", "type_", multiple=True, metavar="TYPE", help="Only resources of this type, such as file."),
    click.option("--lang", multiple=True, metavar="LANG", help="Only this language, such as python or markdown."),
    click.option("--tag", multiple=True, metavar="TAG", help="Only resources with this tag."),
    click.option("--author", multiple=True, metavar="NAME", help="Only resources by this author."),
    click.option("--after", metavar="DATE", help="Only what changed at or after this date, such as 2026-01-31."),
    click.option("--before", metavar="DATE", help="Only what changed before this date."),
    setting_option("profile", metavar="NAME"),
    *plan_options(KNOBS.values()),
    changes_option,
    as_option,
    no_context_option,
    click.option("--no-index", is_flag=True, help="Search the index as it is, without looking for changed files."),
    workspace_option,
)

_SETTING_FLAGS = ("limit", "context", "color", "workspace", "profile")


def question_options(command: _Command) -> _Command:
    """Give a command all of them; those of the plan come as `knobs`."""

    @wraps(command)
    def collected(**given: Any) -> Any:
        knobs = {name: given.pop(f"plan_{name}") for name, knob in KNOBS.items() if knob.flag}
        return command(knobs=knobs, **given)

    for option in reversed(_OPTIONS):
        collected = option(collected)
    return cast("_Command", collected)


def settled(options: SearchOptions, named: str | None) -> tuple[Settings, str | None]:
    """The settings with all that the options change, and the path that is asked of unless the context names it."""
    values = {flag: getattr(options, flag) for flag in _SETTING_FLAGS}
    settings = apply_changes(resolve(named or ".", in_context=True, **values), options.changes)
    if options.no_context:
        settings = settings.override(NO_CONTEXT, "flag --no-context")
    if options.no_index:
        settings = settings.override({"search.refresh": "never"}, "flag --no-index")
    return settings, named
