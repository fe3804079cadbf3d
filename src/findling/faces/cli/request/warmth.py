"""The warm process as the command line sees it: when one is started, when a command is done without it, how it ends."""

from __future__ import annotations

import os
import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from findling.faces.cli.output.terminal import note
from findling.service.warm.place import ALWAYS, SOCKET, is_script, warm_folder

if TYPE_CHECKING:
    from findling.service.settings.settings import Settings
    from findling.service.warm.fork import StandIn

__all__ = ["keep_warm", "leave_process", "note_index", "stop_warm_process"]


def keep_warm(settings: Settings, *, starts: bool) -> None:
    """Follow the settings of a command that searches.

    Behind it a warm process is started, if they want one. A command in a warm process goes back to its shell, if they
    want none.
    """
    if (warm := _forked()) is not None:
        is_wanted = settings["serve.auto"] != "never"
        if not is_wanted or (starts and not _is_wanted(settings)) or str(_home(settings)) != warm.home:
            warm.decline(leave=not is_wanted)
    elif starts and _is_wanted(settings) and warm_folder(os.environ):
        click.get_current_context().call_on_close(partial(_start, settings))


def note_index(folder: Path) -> None:
    """Take note of an index that a command opens: a warm process does not outlive all of them."""
    if (warm := _forked()) is not None:
        warm.indexes.add(str(folder))


def leave_process(code: int) -> None:
    """End this process at once, from any thread."""
    if (warm := _forked()) is not None:
        warm.leave(code)
    os._exit(code)


def stop_warm_process(settings: Settings) -> int | None:
    """Ask the warm process to leave; its number, or `None` when there is none."""
    from findling.service.warm.starting import stop

    return stop(_home(settings))


def _forked() -> StandIn | None:
    module = sys.modules.get("findling.service.warm.fork")  # which only the warm process loads
    stand_in: StandIn | None = module.current_stand_in() if module is not None else None
    return stand_in


def _is_wanted(settings: Settings) -> bool:
    wish = settings["serve.auto"]
    return wish == "always" or (wish == "auto" and not is_script(os.environ))


def _home(settings: Settings) -> Path:
    from findling.service.workspace.workspace import home_folder

    return home_folder(settings["store.home"])


def _start(settings: Settings) -> None:
    """Start a warm process, unless the one that runs can be found; a person hears of the first."""
    if settings.origin("store.home").startswith("flag "):
        return  # for this run only
    from findling.service.warm.starting import start

    names = (SOCKET, ALWAYS) if settings["serve.auto"] == "always" else (SOCKET,)
    if start(_home(settings), warm_folder(os.environ), names):
        note(
            "a process stays for ten minutes, so that the next search is quick",
            "findling config set serve.auto never, if you want none",
        )
