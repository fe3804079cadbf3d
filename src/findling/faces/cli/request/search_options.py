"""The options that say what is asked, which every command that asks a question takes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

from findling.faces.cli.request.options import (
    apply_changes,
    as_option,
    changes_option,
    no_context_option,
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
    click.option("--history", is_flag=True, help="Also what something newer supersedes."),
    setting_option("min_score", metavar="S"),
    click.option("--weak", is_flag=True, help="Show weaker matches, too. [setting: search.weak]"),
    setting_option("profile", metavar="NAME"),
    setting_option("words", name="words_"),
    click.option("--no-relax", is_flag=True, help="Stay empty where nothing has what is demanded."),
    setting_option("mode"),
    setting_option("alpha", metavar="A"),
    setting_option("fusion"),
    changes_option,
    as_option,
    no_context_option,
    click.option("--no-index", is_flag=True, help="Search the index as it is, without looking for changed files."),
    workspace_option,
)

_SETTING_FLAGS = ("limit", "context", "color", "workspace", "mode", "alpha", "fusion", "profile", "min_score", "group")


def question_options(command: _Command) -> _Command:
    """Give a command all of them."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def settled(options: SearchOptions, named: str | None) -> tuple[Settings, str | None]:
    """The settings with all that the options change, and the path that is asked of unless the context names it."""
    values = {flag: getattr(options, flag) for flag in _SETTING_FLAGS}
    settings = resolve(named or ".", in_context=True, words=options.words_, **values)
    settings = apply_changes(settings, options.changes)
    if options.history:
        settings = settings.override({"search.heads": False}, "flag --history")
    if options.weak:
        settings = settings.override({"search.weak": True}, "flag --weak")
    if options.no_context:
        settings = settings.override(NO_CONTEXT, "flag --no-context")
    if options.no_relax:
        settings = settings.override({"search.relax": False}, "flag --no-relax")
    if options.no_index:
        settings = settings.override({"search.refresh": "never"}, "flag --no-index")
    return settings, named
