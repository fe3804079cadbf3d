"""`findling serve`: keep indexes and models ready, for the command line, browsers, programs and agents."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from findling.domain.errors import DaemonError, MissingExtraError
from findling.faces.cli.output.terminal import ask_before_indexing, note, write
from findling.faces.cli.request.options import (
    apply_changes,
    at_store,
    changes_option,
    opened,
    resolve,
    workspace_option,
    yes_option,
)

if TYPE_CHECKING:
    from findling.service.client.daemon_state import DaemonState
    from findling.service.settings.settings import Settings

_STOPPING_S = 30.0
"""Patience with a daemon that ends."""


@click.command()
@click.argument("path", required=False, type=click.Path())
@click.option("--port", metavar="N", help="Port to listen on; 0 is any that is free. [setting: serve.port]")
@click.option("--no-watch", is_flag=True, help="Do not follow changes of files.")
@click.option("-v", "--verbose", is_flag=True, help="Tell of every request; never what was asked.")
@click.option("--print-unit", type=click.Choice(("systemd", "launchd")), help="Print a unit that starts it at login.")
@click.option("--stop", is_flag=True, help="End the daemon that runs instead.")
@changes_option
@workspace_option
@yes_option
def serve(path: str | None, print_unit: str | None, stop: bool, yes: bool, **given: Any) -> int:
    """Keep PATH and its model ready, for searches, browsers and agents.

    `findling search` asks a daemon that runs, which is quicker, and works the same without one. The daemon follows the
    files of PATH and the folders of `findling watch`. It ends with Ctrl-C, SIGTERM or `findling serve --stop`.
    """
    settings = resolve(path or ".", in_context=True, workspace=given["workspace"])
    settings = apply_changes(settings, given["changes"])
    if given["port"] is not None:
        settings = settings.override_text("serve.port", given["port"], "flag --port")
    if stop:
        return _stop(settings)
    settings = at_store(settings)
    with opened(path, settings) as engine:
        files = engine.writer.files
        is_followed = engine.root != engine.home and not (files.exists and files.is_followed_elsewhere())
        root = engine.subject if is_followed else None
        folder, is_indexed = root or engine.root, engine.is_indexed()
    if print_unit:
        _print_unit(print_unit, root, folder, _unit_options(settings, given))
        _note_missing_extra()
        return 0
    watches, verbose = not given["no_watch"], given["verbose"]
    if root is not None and watches and not is_indexed:
        ask_before_indexing(folder, yes)

    def tell(state: DaemonState) -> None:
        note(f"serving {root or folder} at {state.address}, process {state.pid}; Ctrl-C ends it")

    _load_daemon()(settings, path, root=root, watches=watches, verbose=verbose, on_listening=tell)
    return 0


def _unit_options(settings: Settings, given: Mapping[str, Any]) -> list[str]:
    # A unit is no place for a URL with a password: its folder has it.
    named = settings["workspace.name"] if given["workspace"] or "FINDLING_STORE_URL" in os.environ else None
    told = {"--port": (given["port"],), "--workspace": (named,), "--set": given["changes"]}
    options = [part for flag, values in told.items() for value in values if value for part in (flag, value)]
    return [*options, *(f"--{name.replace('_', '-')}" for name in ("no_watch", "verbose") if given[name])]


def _load_daemon() -> Callable[..., None]:
    try:
        from findling.faces.daemon.server import run_daemon
    except ModuleNotFoundError as error:
        if (error.name or "findling").partition(".")[0] == "findling":
            raise
        raise MissingExtraError(
            f"findling serve needs {error.name}, which is not installed", hint="pip install 'findling[serve]'"
        ) from error
    return run_daemon


def _note_missing_extra() -> None:
    try:
        _load_daemon()
    except MissingExtraError as missing:
        note(missing.message, missing.hint)


def _print_unit(kind: str, root: Path | None, folder: Path, options: list[str]) -> None:
    where = [str(root)] if root is not None else []
    command = [sys.executable, "-P", "-m", "findling", "serve", *where, *options]
    given = {name: value for name, value in sorted(os.environ.items()) if name != "FINDLING_STORE_URL"}
    environment = {name: value for name, value in given.items() if name.startswith("FINDLING_")}
    if kind == "systemd":
        write(systemd_unit(command, environment, str(root or folder.name)))
    else:
        write(launchd_plist(command, environment, str(Path.home() / "Library" / "Logs" / "findling.log")))
    note(f"save this as {_SAVED_AS[kind]}", _STARTED_BY[kind])


def _stop(settings: Settings) -> int:
    from findling.service.client.daemon import call_daemon
    from findling.service.client.daemon_state import has_ended, how_to_kill, process_that_holds, running
    from findling.service.client.warm_process import stop as stop_warm_process
    from findling.service.workspace.workspace import home_folder

    home = home_folder(settings["store.home"])
    warm = stop_warm_process(home)
    if warm:
        note(f"the warm process {warm} has ended")
    elif warm == 0:
        note(f"the warm process of {home} runs in another container", "findling serve --stop there")
    state = running(home)
    if state is None:
        pid = process_that_holds(home)
        if pid is None:
            if warm is None:
                note("no daemon runs")
            return 0 if warm else 1
        raise DaemonError(f"process {pid} serves {home}, and cannot be reached", hint=how_to_kill(pid))
    try:
        call_daemon(state, "POST", "/local/stop", {}, any_version=True)
    except DaemonError as error:
        if process_that_holds(home) is not None:  # else it has ended meanwhile
            raise DaemonError(error.message, hint=how_to_kill(state.pid)) from error
    if not has_ended(home, _STOPPING_S):
        raise DaemonError(f"process {state.pid} is still at work", hint=how_to_kill(state.pid))
    note(f"the daemon of process {state.pid} has ended")
    return 0


# Files that start the daemon when its user logs in: a unit for systemd, a property list for launchd.

_LABEL = "findling.serve"

_SAVED_AS = {"systemd": "~/.config/systemd/user/findling.service", "launchd": f"~/Library/LaunchAgents/{_LABEL}.plist"}
"""Paths where the system looks for them."""

_STARTED_BY = {
    "systemd": "systemctl --user enable --now findling",
    "launchd": f"launchctl bootstrap gui/$UID {_SAVED_AS['launchd']}",
}
"""Commands that start the daemon from them."""

_STOP_S = 20
"""Longest time to end: open requests are answered first."""


def systemd_unit(command: Sequence[str], environment: Mapping[str, str], about: str) -> str:
    """A unit of the user's own systemd. It needs loopback alone, so it waits for no network."""
    from importlib.resources import files

    unit = (files(__package__) / "systemd.unit").read_text(encoding="utf-8")
    variables = "".join(f"Environment={_quoted(f'{name}={value}')}\n" for name, value in environment.items())
    started = " ".join(map(_quoted_argument, command))
    return unit.format(about=about.replace("%", "%%"), command=started, environment=variables, stop_s=_STOP_S)


def launchd_plist(command: Sequence[str], environment: Mapping[str, str], log: str) -> str:
    """An agent of the user's own launchd; the daemon logs to the file `log`."""
    agent: dict[str, object] = {
        "Label": _LABEL,
        "ProgramArguments": list(command),
        "RunAtLoad": True,
        "KeepAlive": {"SuccessfulExit": False},
        "ExitTimeOut": _STOP_S,
        "StandardErrorPath": log,
        "Umask": 0o077,
    }
    if environment:
        agent["EnvironmentVariables"] = dict(environment)
    import plistlib

    return plistlib.dumps(agent, sort_keys=False).decode()


def _quoted(text: str) -> str:
    """One word of a unit, with any characters."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("%", "%%")
    return f'"{escaped}"'


def _quoted_argument(text: str) -> str:
    # Only in commands does systemd replace variables.
    quoted = _quoted(text.replace("$", "$$"))
    is_plain = quoted == f'"{text}"' and text and all(each.isalnum() or each in "/._-+:=@," for each in text)
    return text if is_plain else quoted
