"""From what was typed to what is asked: queries, the path, and the request of each query."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import field, replace
from pathlib import Path
from typing import Any, TypeVar

import click

from findling.domain.errors import InvalidValueError, PathNotFoundError, UsageError
from findling.domain.plans import KNOBS
from findling.domain.queries import SCOPES, Filters, SearchRequest
from findling.domain.values import record
from findling.faces.cli.request.options import (
    apply_changes,
    as_option,
    changes_option,
    no_context_option,
    plan_options,
    read_changes,
    resolve,
    setting_option,
    workspace_option,
)
from findling.service.settings.settings import Settings
from findling.service.workspace.scope import NO_CONTEXT


@record()
class SearchOptions:
    """The options of one call of `findling search`."""

    words: tuple[str, ...] = ()
    queries: str | None = None
    limit: str | None = None
    context: str | None = None
    workspace: str | None = None
    profile: str | None = None
    knobs: Mapping[str, Any] = field(default_factory=dict)
    plan: str | None = None
    changes: tuple[str, ...] = ()
    ext: tuple[str, ...] = ()
    path_prefix: tuple[str, ...] = ()
    type_: tuple[str, ...] = ()
    format_: str | None = None
    files: bool = False
    as_json: bool = False
    explain: bool = False
    as_: tuple[str, ...] = ()
    facet: tuple[str, ...] = ()
    cursor: str = ""
    no_context: bool = False
    no_index: bool = False
    quick: bool = False
    scope: str = SCOPES[0]


_Command = TypeVar("_Command", bound=Callable[..., Any])

_OPTIONS: tuple[Callable[..., Any], ...] = (
    setting_option("limit", "-k", metavar="N"),
    click.option("-e", "--ext", multiple=True, metavar="EXT", help="Only files with this extension; py, .py or py,md."),
    click.option("--path", "path_prefix", multiple=True, metavar="FOLDER", help="Only below this folder of PATH."),
    click.option("--type", "type_", multiple=True, metavar="TYPE", help="Only resources of this type, such as file."),
    setting_option("profile", metavar="NAME"),
    *plan_options(KNOBS.values()),
    changes_option,
    as_option,
    no_context_option,
    click.option("--no-index", is_flag=True, help="Search the index as it is, without looking for changed files."),
    workspace_option,
)

_FLAGGED = [name for name, knob in KNOBS.items() if knob.flag]
_SETTING_FLAGS = ("limit", "context", "workspace", "profile")


def question_options(command: _Command) -> _Command:
    """Give a command all of them; `collected` makes a record of what it is called with."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def collected(given: dict[str, Any]) -> SearchOptions:
    """The options that a command is called with; those of the plan as `knobs`."""
    knobs = {name: given.pop(f"plan_{name}") for name in _FLAGGED}
    named, is_all, is_shared = given["workspace"] or "", given.pop("everywhere"), given.pop("shared")
    # A URL may name several servers.
    scope = "all" if is_all else "shared" if is_shared else named if "," in named and "://" not in named else SCOPES[0]
    flags = {"--everywhere": is_all, "--shared": is_shared, "--workspace": named, "--cursor": given["cursor"]}
    said = [flag for flag, is_given in flags.items() if is_given]
    if scope != SCOPES[0] and len(said) > 1:
        raise UsageError(f"{said[0]} and {said[1]} do not go together", hint=f"leave out {said[1]}")
    return SearchOptions(knobs=knobs, scope=scope, **given | ({"workspace": None} if scope == named else {}))


def settled(options: SearchOptions, named: str | None) -> tuple[Settings, str | None]:
    """The settings with all that the options change, and the path that is asked of unless the context names it."""
    values = {flag: getattr(options, flag) for flag in _SETTING_FLAGS}
    settings = apply_changes(resolve(named or ".", in_context=True, **values), options.changes)
    if options.no_context or options.scope != SCOPES[0]:
        settings = settings.override(NO_CONTEXT, "flag --no-context")
    if options.no_index:
        settings = settings.override({"search.refresh": "never"}, "flag --no-index")
    if choose_format(options) == "files":
        settings = settings.override({"search.snippet_lines": 0}, "flag --files")
    return settings, named


def read_queries(options: SearchOptions) -> tuple[list[str], str | None]:
    """The queries and the path they are asked of, if one is named.

    A plan brings its own query: with one, a single word that is a path is the path. Raises `UsageError` for too few or
    too many words and `PathNotFoundError` for a path or file that is not there.
    """
    queries, words = _typed(options)
    if words and options.scope != SCOPES[0]:
        raise UsageError("several workspaces are searched as a whole, not below a path", hint=f"leave out {words[0]}")
    if options.queries is not None:
        queries = _read_lines(options.queries)
    elif not queries and options.plan is None:
        raise UsageError("there is no query", hint='findling "words to find" [PATH]')
    if not all(query.strip() for query in queries):
        raise InvalidValueError("the query is empty", hint='findling "words to find" [PATH]')
    if len(words) > 1:
        told = f"only one path can be searched, not {' and '.join(words)}"
        raise UsageError(told, hint=_what_was_meant(options.words))
    if words and not _exists(words[0]):
        hint = _what_was_meant(options.words) if options.queries is None else "name a folder or file that exists"
        raise PathNotFoundError(f"there is no file or folder {words[0]}", hint=hint)
    return queries, words[0] if words else None


def _what_was_meant(words: tuple[str, ...]) -> str:
    """A command whose name the first word nearly is, or a query of several words that lacks its quotes."""
    from difflib import get_close_matches

    from findling.faces.cli.request.command_table import COMMANDS

    near = get_close_matches(words[0], COMMANDS, n=1, cutoff=0.8)
    if near:
        return f"findling {near[0]}, if you meant that command; findling --help"
    return f'findling "{" ".join(words)}", with quotes, if all of it is the query'


def build_request(query: str, options: SearchOptions, settings: Settings) -> SearchRequest:
    """The request of a query. Raises `InvalidValueError` naming the option whose value cannot be used."""
    return SearchRequest(
        query=query,
        limit=settings["search.limit"],
        filters=_filters(options),
        context=settings["search.context"],
        explain=options.explain,
        cursor=options.cursor,
        facets=options.facet,
        principals=options.as_ or None,
        changes=read_changes(options.knobs),
        quick=options.quick,
        scope=options.scope,
    )


_PLANNED = "limit profile ext path_prefix type_".split()
"""Options whose say a plan has."""

_UNPLANNED = ("search.refresh", "search.context", "search.snippet_lines")
"""Settings of a search that a plan says nothing about."""


def planned_requests(queries: list[str], options: SearchOptions, settings: Settings) -> list[SearchRequest]:
    """The requests of a plan that was written down. Raises `UsageError` when options contradict it."""
    assert options.plan is not None
    given = [name.rstrip("_").replace("_", "-") for name in _PLANNED if getattr(options, name)]
    given += [KNOBS[name].flag.removeprefix("--") for name, value in options.knobs.items() if value is not None]
    given += [f"set {change}" for change in options.changes if _is_planned(change.partition("=")[0].strip())]
    if given:
        raise UsageError(f"--plan says all that --{given[0]} would say", hint="change the plan, or leave out --plan")
    from findling.service.client.written_requests import read_plan_file

    planned = read_plan_file(options.plan)
    _, paths = _typed(options)
    own = {
        "context": settings["search.context"],
        "explain": options.explain,
        "quick": options.quick,
        "scope": options.scope,
        "in_context": False,
        "within": None if paths else planned.within,
    }
    return [replace(planned, query=query, **own) for query in queries or [planned.query]]


def choose_format(options: SearchOptions) -> str:
    """The one format that was asked for. Raises `UsageError` when there are several."""
    asked = {
        "--format": options.format_,
        "--files": "files" if options.files else None,
        "--json": "json" if options.as_json else None,
    }
    chosen = {flag: name for flag, name in asked.items() if name}
    if len(set(chosen.values())) > 1:
        raise UsageError(f"{' and '.join(chosen)} contradict each other", hint="give one of them")
    return next(iter(chosen.values()), "text")


def _typed(options: SearchOptions) -> tuple[list[str], list[str]]:
    """The words that are the query, and those that are paths."""
    words = list(options.words)
    is_path = options.plan is not None and len(words) == 1 and _exists(words[0])
    first = 0 if options.queries is not None or is_path else 1
    return words[:first], words[first:]


def _exists(path: str) -> bool:
    try:
        return bool(path) and Path(path).expanduser().exists()
    except (OSError, RuntimeError):  # a query that is too long to be a path, or starts with ~
        return False


def _is_planned(setting: str) -> bool:
    if any(knob.row == setting for knob in KNOBS.values()):
        return True
    return setting.startswith("search.") and setting not in _UNPLANNED


def _read_lines(source: str) -> list[str]:
    try:
        text = sys.stdin.read() if source == "-" else Path(source).read_text(encoding="utf-8")
    except (FileNotFoundError, IsADirectoryError) as error:
        raise PathNotFoundError(f"there is no file {source}", hint="--queries FILE, one query a line") from error
    except UnicodeDecodeError as error:
        raise InvalidValueError(f"{source} is not UTF-8 text: {error}", hint="save it as UTF-8") from error
    queries = [line.strip() for line in text.splitlines() if line.strip()]
    if not queries:
        raise InvalidValueError(f"{'stdin' if source == '-' else source} holds no query", hint="write one query a line")
    return queries


def _filters(options: SearchOptions) -> Filters:
    if not (options.ext or options.path_prefix or options.type_):
        return Filters()
    from findling.service.settings.written_filters import written_filters

    called = {"ext": "-e", "path": "--path"}
    return written_filters(ext=options.ext, path=options.path_prefix, type=options.type_, called=called)
