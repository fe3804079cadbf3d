"""The question of a command: its place, whose rights count, and how its answer is printed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import cached_property, wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

from findling.faces.cli.output.terminal import ask_before_indexing, note_each, write_names
from findling.faces.cli.request.options import (
    as_option,
    ask_client,
    json_option,
    note_settings,
    place_of,
    workspace_option,
)
from findling.faces.cli.request.place import GivenPlace

if TYPE_CHECKING:
    from findling.domain.reports import ListedFile, MatchedFile, Progress
    from findling.service.client.daemon import SearchClient
    from findling.service.engine.engine import Engine
    from findling.service.settings.settings import Settings

    Shower = Callable[[MatchedFile | ListedFile], str]

_Command = TypeVar("_Command", bound=Callable[..., Any])
_Result = TypeVar("_Result")


class AskedPlace(GivenPlace):
    """The place of a question in its context, the principals whose rights count, and whether JSON is printed."""

    def __init__(
        self, path: str, workspace: str | None, principals: tuple[str, ...], as_json: bool, **flags: str | None
    ) -> None:
        super().__init__(path, workspace, in_context=True, **flags)
        self.principals, self.as_json = principals or None, as_json

    @cached_property
    def limit(self) -> int:
        """The most that is shown."""
        most: int = self.settings["search.limit"]
        return most

    def client(self, ask: Callable[[SearchClient], _Result]) -> _Result:
        """The answer of a client, as `ask_client` finds one."""
        return ask_client(self.path, self.settings, ask, principals=self.principals)

    def answer(
        self,
        ask: Callable[[Engine, Progress], _Result],
        lines: Callable[[_Result, Shower], Iterable[str]],
        *,
        before: Callable[[Engine], object] = lambda engine: None,
        finishes: bool = False,
    ) -> _Result:
        """Print the answer of an engine that is brought up to date, and note what it lacks.

        With `finishes`, what follows a search is started, which builds a graph that is missing.
        """
        note_settings(self.settings)
        with self.opened() as engine:
            before(engine)
            with indexing(engine, self.settings) as bar:
                answer: Any = ask(engine, bar)
            if self.as_json:
                from findling.faces.cli.output.json_output import write_json

                write_json({"root": engine.root, **answer.to_dict()})
            else:
                write_names(lines(answer, path_shower(engine.root, None if self.path == "." else self.path)))
            if finishes:
                from findling.service.engine.client import LocalClient

                LocalClient(engine, settings=self.settings).finish()
        note_each(getattr(answer, "degraded", ()))
        return cast("_Result", answer)


def question(*flags: str, about: str = "") -> Callable[[_Command], _Command]:
    """Have a command take --json, --as and --workspace; it gets them, its PATH and those flags as `asked`.

    Without a place, it is the one that holds the file that the argument `about` names.
    """

    def decorate(command: _Command) -> _Command:
        @wraps(command)
        def asking(as_json: bool, as_: tuple[str, ...], workspace: str | None, path: str = ".", **given: Any) -> Any:
            if about and not workspace and path == ".":
                path = place_of(given[about]) or path
            chosen = {flag: given.pop(flag) for flag in flags}
            return command(asked=AskedPlace(path, workspace, as_, as_json, **chosen), **given)

        return cast("_Command", json_option(as_option(workspace_option(asking))))

    return decorate


@contextmanager
def indexing(engine: Engine, settings: Settings) -> Iterator[Progress]:
    """Have the user agree to a first index run of a vast place, and show the progress of any run.

    While another process carries out the first run, a complete answer waits for it.
    """
    from findling.faces.cli.output.progress import progress_bar

    is_first = is_agreed_first(engine, settings)
    with progress_bar() as bar:
        if is_first and engine.queue.writer():
            engine.index(on_progress=bar)
        yield bar


def is_agreed_first(engine: Engine, settings: Settings) -> bool:
    """Whether a question needs a first index run, to which the user has agreed where the place is vast."""
    is_first = settings["search.refresh"] == "auto" and not engine.is_indexed()
    if is_first:
        ask_before_indexing(engine.subject, False)
    return is_first


def path_shower(root: Path, typed: str | None) -> Callable[[MatchedFile | ListedFile], str]:
    """A function that gives paths as grep prints them: below the path that was typed, or below the current folder."""
    start = Path(typed or ".").resolve()
    inner = below(root, start)
    lead = "" if typed is None else typed if typed.endswith("/") else f"{typed}/"

    def shown(file: MatchedFile | ListedFile) -> str:
        path = file.path
        if getattr(file, "rid", "") == path:
            return path  # of what is no file
        if inner is None:
            return f"{root}/{path}"
        if path == inner and typed is not None:
            return typed
        return lead + (path[len(inner) + 1 :] if inner else path)

    return shown


def below(root: Path, path: Path) -> str | None:
    """The path as seen from a root; None where it does not lie there."""
    try:
        inner = path.relative_to(root).as_posix()
    except ValueError:
        return None
    return "" if inner == "." else inner
