"""Options and arguments that several commands share, and the way from them to an open engine."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from math import isnan
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from findling.domain.errors import DaemonError, NotFoundError, UsageError
from findling.domain.plans import KNOBS, Knob
from findling.domain.values import counted
from findling.faces.cli.output.terminal import note
from findling.service.settings.setting_list import KNOB_ROWS, PROJECT_ORIGIN, instead_of, plan_row
from findling.service.settings.settings import Settings, get_setting, load_settings, parse_text

if TYPE_CHECKING:
    from findling.service.client.daemon import DaemonClient, SearchClient
    from findling.service.client.warm_fork import StandIn
    from findling.service.engine.background import Embedding
    from findling.service.engine.engine import Engine

_Command = TypeVar("_Command", bound=Callable[..., Any])
_Result = TypeVar("_Result")

_FLAGS = {
    "workspace": ("--workspace", "workspace.name"),
    "store": ("--store", "store.url"),
    "limit": ("--limit", "search.limit"),
    "context": ("--context", "search.context"),
    "color": ("--color", "output.color"),
    "profile": ("--profile", "search.profile"),
}
"""Parameter → the flag people type and the setting it stands for."""


class NumberRange(click.FloatRange):
    """A number between bounds; nan, which no bound holds back, is none."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        number: float = super().convert(value, param, ctx)
        return self.fail(f"{value!r} is no number", param, ctx) if isnan(number) else number


def command_group(**moved: str) -> Callable[[_Command], click.Group]:
    """Make a group of a function; it names the replacements of commands of earlier versions."""

    def made(function: _Command) -> click.Group:
        group = click.group(cls=_GroupWithMoves, no_args_is_help=False)(function)
        group.moved = moved
        return group

    return made


class _GroupWithMoves(click.Group):
    moved: Mapping[str, str] = {}

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Raises UsageError that names the new command."""
        if args and args[0] in self.moved:
            raise UsageError(f"there is no {ctx.command_path} {args[0]} any more", hint=self.moved[args[0]])
        return super().resolve_command(ctx, args)


def takes_all(context: click.Context, args: list[str]) -> list[str]:
    """The arguments without an `--all` beside `--help`; the help is a whole one then."""
    if "--all" not in args or not {"-h", "--help"} & set(args):
        return args
    context.meta[_ALL] = True
    return [one for one in args if one != "--all"]


def is_whole(context: click.Context) -> bool:
    """Whether the help lists everything."""
    return _ALL in context.meta


_ALL = "findling.all"

_FREQUENT = frozenset("limit ext path_prefix type_ plan_mode profile context files as_json explain".split())
"""Parameters of a search that its help lists; `--help --all` lists all of them."""


class BriefCommand(click.Command):
    """A command whose help lists the options that people need most."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        return super().parse_args(ctx, takes_all(ctx, args))

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the frequent ones, and how to see the others."""
        listed = [each for each in self.get_params(ctx) if isinstance(each, click.Option)]
        shown = [each for each in listed if is_whole(ctx) or each.name in _FREQUENT or each.is_eager]
        with formatter.section("Options"):
            formatter.write_dl([each.get_help_record(ctx) or ("", "") for each in shown])
        if len(shown) < len(listed):
            formatter.write(f"\n{len(listed) - len(shown)} more options: {ctx.command_path} --help --all\n")


def setting_option(parameter: str, *short: str, metavar: str | None = None) -> Callable[[_Command], _Command]:
    """An option that overrides a setting; its help and its choices are those of the setting."""
    flag, setting_name = _FLAGS[parameter]
    setting = get_setting(setting_name)
    kind = click.Choice(setting.choices) if setting.choices else None
    told = f"{setting.help} [setting: {setting_name}]"
    return click.option(*short, flag, parameter, type=kind, metavar=metavar, help=told)


def plan_options(knobs: Iterable[Knob]) -> list[Callable[..., Any]]:
    """The options of all knobs of the plan that have a flag; a command gets them as `plan_NAME`."""
    return [_plan_option(knob) for knob in knobs if knob.flag]


def _plan_option(knob: Knob) -> Callable[..., Any]:
    named = f" [setting: {knob.setting}]" if knob.setting else ""
    if knob.kind == "switch":
        told = f"{knob.flag_help or knob.help}{named}"
        return click.option(knob.flag, f"plan_{knob.name}", is_flag=True, flag_value=knob.sets, default=None, help=told)
    kind = click.Choice(knob.choices) if knob.choices else None
    return click.option(knob.flag, f"plan_{knob.name}", type=kind, metavar=knob.metavar, help=f"{knob.help}{named}")


def read_changes(given: Mapping[str, Any], knobs: Mapping[str, Knob] = KNOBS) -> dict[str, Any]:
    """Changes of the plan that flags ask for. Raises InvalidValueError naming the flag whose value does not fit."""
    changes: dict[str, Any] = {}
    for name, value in given.items():
        if value is not None:
            knob = knobs[name]
            is_text = isinstance(value, str)
            changes[name] = parse_text(plan_row(knob), value, f"flag {knob.flag}") if is_text else value
    return changes


def looks_like_path(text: str) -> bool:
    """Whether a name is that of a file or folder."""
    return text.startswith((".", "~")) or "/" in text or "\\" in text


def is_url(text: str) -> bool:
    """Whether a workspace is named by a URL. Raises UsageError for key=value pairs, which may hold a password."""
    if re.match(r"\s*\w+\s*=", text):
        message = "a workspace in a database is named by a URL, not by key=value pairs"
        raise UsageError(message, hint="postgresql://USER@HOST:PORT/DATABASE#WORKSPACE")
    return "://" in text


workspace_option = click.option(
    "--workspace",
    "--store",
    "workspace",
    metavar="NAME|URL",
    help="The workspace by its name, or by the URL of its place. [settings: workspace.name, store.url]",
)
path_argument = click.argument("path", default=".", type=click.Path())
json_option = click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
yes_option = click.option("-y", "--yes", is_flag=True, help="Index a home folder or a whole disk without asking.")
as_option = click.option(
    "--as", "as_", multiple=True, metavar="PRINCIPAL", help="Only what user:NAME, group:NAME or role:NAME may see."
)
changes_option = click.option(
    "--set", "changes", multiple=True, metavar="NAME=VALUE", help="Another value of any setting, for this run only."
)


def apply_changes(settings: Settings, changes: Iterable[str]) -> Settings:
    """The settings with what `--set NAME=VALUE` changes. Raises UsageError for what is no change of a setting."""
    for change in changes:
        name, equals, text = change.partition("=")
        if not equals:
            raise UsageError(f"--set {change} gives no value", hint="--set search.mode=keyword")
        settings = settings.override_text(name.strip(), text.strip(), "flag --set")
    return settings


def resolve(path: str, *, in_context: bool = False, **given: str | None) -> Settings:
    """The settings that hold for a path, with the flags that were given.

    Only `in_context` may a project file name a workspace: it says what is searched, not what is indexed or forgotten.
    """
    settings = load_settings(path)
    _tell_knobs(settings)
    if not in_context and settings.project_file("context.workspace") is not None:
        settings = settings.override({"context.workspace": ""}, "default")
    for parameter, text in given.items():
        if text is not None:
            flag, name = _FLAGS["store" if parameter == "workspace" and is_url(text) else parameter]
            settings = settings.override_text(name, text, f"flag {flag}")
    return settings


def _tell_knobs(settings: Settings) -> None:
    """Say once what files and the environment set that is no setting any more; it counts all the same."""
    context = click.get_current_context(silent=True)
    told = context.meta.setdefault("findling.told", set()) if context is not None else set()
    for name in KNOB_ROWS:
        origin = settings.origin(name)
        if name not in told and origin.startswith(("user file ", PROJECT_ORIGIN, "env ")):
            told.add(name)
            note(f"{origin}: {name} is no setting any more; it still counts", instead_of(name, origin))


def at_store(settings: Settings, *, creates: bool = False) -> Settings:
    """The settings with the name of the workspace at `store.url`, if one is set. Raises as `connect_workspace` does."""
    if not settings["store.url"]:
        return settings
    from findling.service.workspace import store_url

    return store_url.at_store(settings, creates=creates)


no_context_option = click.option(
    "--no-context", is_flag=True, help="Do not let the project file limit what is searched."
)


@contextmanager
def opened(path: str | None, settings: Settings, *, creates: bool = False) -> Iterator[Engine]:
    """The engine for a path, or for what the context names.

    Raises NotFoundError for the name of a workspace that is not there, unless the command `creates` it: a name that was
    mistyped must not make another one.
    """
    from findling.service.engine.engine import open_engine

    settings = at_store(settings, creates=creates)
    url = ""
    if not creates and (name := settings["workspace.name"]):
        from findling.service.workspace.workspace import folder_of, has_store, home_folder, place_of

        folder = folder_of(name, home_folder(settings["store.home"]))
        url = place_of(folder)
        if not has_store(folder):
            hint = f"findling workspaces create {name}, or findling index --workspace {name} PATH"
            raise NotFoundError(f"there is no workspace {name}", hint=hint)
    with open_engine(path, settings=settings) as engine:
        engine.queue.tell = note
        if (fork := stand_in()) is not None:
            fork.indexes.add(str(engine.home))
        if url and not engine.writer.exists:
            from findling.service.workspace.store_url import gone_workspace

            raise gone_workspace(engine.home)
        yield engine


def note_settings(settings: Settings, *, starts: bool = True) -> None:
    """Keep a process warm behind a command that searches, if its settings and a terminal want one."""

    def keep() -> None:
        from findling.service.client.warm_process import keep_warm

        keep_warm(settings, starts=starts, tell=note)

    wish = settings["serve.auto"]
    if stand_in() is not None:
        keep()
    elif starts and (wish == "always" or (wish == "auto" and sys.stdout.isatty())):
        click.get_current_context().call_on_close(keep)


def stand_in() -> StandIn | None:
    """This process, if it is a fork of the warm process that stands in for a shell."""
    loaded = sys.modules.get("findling.service.client.warm_fork")
    fork: StandIn | None = getattr(loaded, "stand_in", None)
    return fork


def daemon_client(
    path: str | None, settings: Settings, principals: tuple[str, ...] | None = None
) -> DaemonClient | None:
    """The client of the daemon that serves these settings, if one runs and they allow its use."""
    note_settings(settings)
    settings = at_store(settings)
    if settings["serve.use"] == "never":
        return None
    from findling.service.client.daemon_state import read_state
    from findling.service.workspace.workspace import home_folder

    home = home_folder(settings["store.home"])
    state = read_state(home)
    if state is None:
        return None
    from findling.service.client.daemon import DaemonClient

    return DaemonClient(state, home, path, settings, principals)


def ask_client(
    path: str | None,
    settings: Settings,
    ask: Callable[[SearchClient], _Result],
    *,
    principals: tuple[str, ...] | None = None,
    before: Callable[[Engine], object] = lambda engine: None,
) -> _Result:
    """The answer of the daemon, if one runs; else of this process, which does what comes `before` with its engine.

    Raises as `opened` does.
    """
    daemon = daemon_client(path, settings, principals)
    if daemon is not None:
        with suppress(DaemonError):  # this process finds out by itself what is wrong
            return ask(daemon)
    from findling.service.engine.client import LocalClient

    with opened(path, settings) as engine:
        before(engine)
        return ask(LocalClient(engine, principals, settings=settings))


def name_from_root(name: str, root: Path) -> str:
    """A path as answers print it, seen from the current folder, as the index knows it; any other name as it is."""
    file, place = _split_line(name)
    try:
        return Path(file).resolve(strict=True).relative_to(root).as_posix() + place
    except (OSError, ValueError):
        return name


def place_of(name: str) -> str | None:
    """The folder of the index that holds the file of this name; None for the current folder, and for any other name.

    The index of the current folder comes first; then that of the nearest folder above the file.
    """
    from findling.service.workspace.workspace import holds_file, home_folder, locate

    try:
        file = Path(_split_line(name)[0]).resolve(strict=True)
    except OSError:
        return None
    home = home_folder(load_settings(".")["store.home"])
    own = locate(file, home=home)
    if not file.is_file() or holds_file(locate(".", home=home), file) or not holds_file(own, file):
        return None
    return str(own.root / own.only)


def _split_line(name: str) -> tuple[str, str]:
    """The path in a name, and the line behind it with its colon."""
    path, colon, line = name.rpartition(":")
    return (path, colon + line) if path and line.isdecimal() else (name, "")


def refine_in_background(engine: Engine, settings: Settings) -> None:
    """Start a process that has the unread passages read, unless the settings say no or one is at it."""
    from findling.service.engine.background import read_on

    tell_embedding(read_on(engine, settings))


def compact_in_background(engine: Engine, settings: Settings) -> None:
    """Start a process that gives unused space back, if there is a good deal of it."""
    from findling.service.engine.background import give_space_back

    give_space_back(engine, settings)


def work_in_background(engine: Engine, settings: Settings) -> None:
    """Have both done."""
    refine_in_background(engine, settings)
    compact_in_background(engine, settings)


def tell_embedding(embedding: Embedding | None) -> None:
    """Report to a person that the model has begun to embed."""
    if embedding is not None and sys.stderr.isatty():
        where = f" at {embedding.sent_to}" if embedding.sent_to else ""
        told = f"{embedding.model} reads {counted(embedding.waiting, 'passage')} in the background{where}"
        note(f"{told}; findling status tells how far")
