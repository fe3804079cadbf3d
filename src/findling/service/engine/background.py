"""Work that goes on in a process of its own: the model reads on, and unused space is given back."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from findling.service.engine.engine import Engine
    from findling.service.settings.settings import Settings

__all__ = ["Reading", "give_space_back", "read_on", "reap"]

_started: list[int] = []
"""Processes that were started and may have ended unnoticed."""


class Reading(NamedTuple):
    """A model that has begun to read: how many passages it has before it, and which host they are sent to, if any."""

    model: str
    waiting: int
    sent_to: str


def read_on(engine: Engine, settings: Settings) -> Reading | None:
    """Start a process that has the unread passages read, unless the settings say no or one is at it."""
    if settings["semantic.refine"] != "background":
        return None
    meaning = engine.reading()
    waiting = meaning["of"] - meaning["read"]
    if not meaning["model"] or not waiting or meaning["refining"]:
        return None
    if not _start(["refine", str(engine.subject), "--gently"], engine, settings):
        return None
    return Reading(meaning["model"], waiting, meaning["sent_to"])


def give_space_back(engine: Engine, settings: Settings) -> None:
    """Start a process that gives unused space back, when this one has written and there is a good deal of it.

    It costs a search that has written nothing 0.1 ms. The settings may say no.
    """
    if not settings["compact.auto"] or not engine.has_written():
        return
    from findling.service.upkeep.compaction import is_worthwhile

    if is_worthwhile(engine.home, settings):
        _start(["compact", str(engine.subject), "--if-worthwhile"], engine, settings)


def reap() -> None:
    """Take note of processes that have ended: one that goes on itself would keep them in the table of processes."""
    if os.name == "nt":
        return
    for pid in list(_started):
        try:
            ended, _ = os.waitpid(pid, os.WNOHANG)
        except ChildProcessError:
            ended = pid
        if ended:
            _started.remove(pid)


def _start(arguments: list[str], engine: Engine, settings: Settings) -> bool:
    """Run findling in a process that outlives this one; tells whether it could be told where to work."""
    if not engine.root.exists():
        return False
    import subprocess

    command = [sys.executable, "-m", "findling", *arguments]
    if workspace := settings["workspace.name"] or settings["context.workspace"]:
        command += ["--workspace", workspace]
    # A session of its own: it must outlive the terminal it was started from.
    process = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
        cwd=engine.root,
        env=_environment(settings),
    )
    process.returncode = 0  # it outlives this one, which therefore never asks how it ended
    _started.append(process.pid)
    return True


def _environment(settings: Settings) -> dict[str, str]:
    """Variables under which another process has the same settings, whoever has set them: a flag, or another shell."""
    from findling.service.settings.settings import get_setting

    environ = {name: value for name, value in os.environ.items() if not name.startswith("FINDLING_")}
    if "FINDLING_CONFIG" in os.environ:
        environ["FINDLING_CONFIG"] = os.environ["FINDLING_CONFIG"]
    for name in settings:
        origin = settings.origin(name)
        if origin.startswith(("env ", "flag ")):
            environ[get_setting(name).variable] = _as_text(settings[name])
        elif origin.startswith("user file "):
            environ["FINDLING_CONFIG"] = origin.removeprefix("user file ")
    return environ


def _as_text(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if value is None:
        return "auto"
    return ",".join(value) if isinstance(value, tuple) else str(value)
