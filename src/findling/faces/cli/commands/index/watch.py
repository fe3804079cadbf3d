"""`findling watch`: indexes that follow their files by themselves."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from findling.domain.errors import NotFoundError, UsageError
from findling.domain.reports import told_changes
from findling.faces.cli.output.terminal import ask_before_indexing, note, note_each, tell_index_runs
from findling.faces.cli.request.options import command_group, path_argument, yes_option
from findling.faces.cli.request.place import GivenPlace, at_workspace
from findling.service.settings.settings import load_settings

if TYPE_CHECKING:
    from findling.service.engine.engine import Engine
    from findling.service.settings.settings import Settings


@command_group(remove="findling watch add PATH --remove", list="findling status --list watched")
def watch() -> None:
    """Keep indexes in step with their files all the time.

    A search indexes changed files by itself. Watching does so beforehand, so that no search has to wait for it.
    `findling watch run` and `findling serve` watch the folders on the list.
    """


@watch.command("add")
@path_argument
@at_workspace
@click.option("--remove", is_flag=True, help="Take it off the list instead; its index stays.")
@yes_option
def _add(place: GivenPlace, remove: bool, yes: bool) -> int:
    """Put PATH, a folder or a file, on the list of what is watched, or off."""
    from findling.service.server.watch_list import WatchList, watch_accounts, watcher_of

    if remove:
        return _take_off(place)
    root = _subject(place, yes)
    home = _home()
    if not WatchList(home).add(root):
        note(f"{root} is on the list already")
    elif Path(place.path).resolve() != root:
        note(f"{root} is on the list: {place.path} belongs to its index")
    else:
        note(f"{root} is on the list")
    if watcher_of(home, root)[0] is None and not any(each.pid is not None for each in watch_accounts(home)):
        note("nobody is watching now", "findling watch run, or findling serve")
    return 0


def _take_off(place: GivenPlace) -> int:
    from findling.service.server.watch_list import WatchList

    watched = WatchList(_home())
    named = Path(place.path).expanduser().resolve()
    # A folder that is gone, or whose index is, still has to come off the list.
    root = named if not place.workspace and named in watched.roots() else _subject(place, yes=True)
    if not watched.remove(root):
        raise NotFoundError(f"{root} is not on the list", hint="findling status --list watched")
    note(f"{root} is no longer on the list")
    return 0


@watch.command("run")
@click.argument("paths", nargs=-1, metavar="[PATH]...", type=click.Path())
@yes_option
def _run(paths: tuple[str, ...], yes: bool) -> int:
    """Watch the list, or the PATHs, until Ctrl-C.

    It reports changes on stderr. It also watches folders that are put on the list meanwhile. A folder that another
    process watches is left to it as long as it lives.
    """
    from findling.service.server.watch_list import WatchList
    from findling.service.server.watcher import watch_roots

    settings = load_settings()
    named = [_subject(GivenPlace(path, None), yes) for path in paths]
    listed = WatchList(_home())
    if not named and not listed.roots():
        note("nothing is on the list yet; waiting", "findling watch add PATH")
    should_stop = threading.Event()
    tell_index_runs()
    with _ended_by_signals(should_stop):
        watch_roots(
            (lambda: named) if named else listed.roots,
            partial(_index_root, settings=settings, should_stop=should_stop),
            settings=settings,
            should_stop=should_stop,
            note=note,
        )
    note("watching has ended")
    return 0


def _index_root(root: Path, *, settings: Settings, should_stop: threading.Event) -> None:
    from findling.service.engine.background import reap
    from findling.service.server.watcher import index_root

    report = index_root(root, settings, should_stop=should_stop, afterwards=_afterwards)
    if report.changed:
        note(f"{root}: {told_changes(report.added, report.updated, report.removed)} in {report.seconds:.1f} s")
    reap()


def _afterwards(engine: Engine, settings: Settings) -> None:
    from findling.faces.cli.request.options import work_in_background

    note_each(engine.notices())
    work_in_background(engine, settings)


@contextmanager
def _ended_by_signals(should_stop: threading.Event) -> Iterator[None]:
    """Have Ctrl-C and a polite kill end the watching after what is being written; a second Ctrl-C ends it at once."""

    def stop(number: int, _: object) -> None:
        should_stop.set()
        signal.signal(number, before[number])

    before = {int(number): signal.signal(number, stop) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _subject(place: GivenPlace, yes: bool) -> Path:
    """The root that a path belongs to. Raises UsageError for a workspace without files."""
    with place.opened() as engine:
        if engine.root == engine.home:
            raise UsageError(f"the workspace {place.workspace} has no files to watch", hint="findling workspaces list")
        ask_before_indexing(engine.subject, yes)
        return engine.subject


def _home() -> Path:
    from findling.service.workspace.workspace import home_folder

    return home_folder(load_settings()["store.home"])
