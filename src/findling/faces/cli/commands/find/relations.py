"""`findling refs` and `findling outline`: relations in code, by name; `findling related`: paths between things."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import click

from findling.domain.reports import ListedFile, RelatedAnswer, RelatedPassage
from findling.domain.values import counted
from findling.faces.cli.commands.find.asked import AskedPlace, question
from findling.faces.cli.output.terminal import note
from findling.faces.cli.request.options import name_from_root, path_argument, setting_option

if TYPE_CHECKING:
    from findling.domain.reports import OutlineAnswer, Progress
    from findling.domain.results import ThemesAnswer
    from findling.service.engine.engine import Engine


@click.command()
@click.argument("name", metavar="NAME")
@path_argument
@question()
def refs(asked: AskedPlace, name: str) -> int:
    """List the lines of code that define, import, call or use NAME.

    NAME is one such as send, or has its scope: Session.send, Session::send. Names are found as words, without comments
    and strings, in files as they are now; other things of the same name are listed, too.

    Exit code: 0 found, 1 nothing found, 2 error.
    """
    answer = asked.answer(
        lambda engine, bar: engine.exact.refs(name, principals=asked.principals, on_progress=bar),
        lambda answer, shown: [
            f"{shown(ListedFile(one.path))}:{one.line}  {one.kind}  {one.symbol or '-'}  {one.text}"
            for one in answer.references
        ],
    )
    if not answer.references:
        note(f"no code has the name {name}")
    return 0 if answer.references else 1


@click.command()
@click.argument("file", metavar="FILE")
@question(about="file")
def outline(asked: AskedPlace, file: str) -> int:
    """List the definitions of FILE with their lines.

    Each stands below the one that holds it. FILE is a path or the id of a resource; its folder has to be indexed.

    Exit code: 0 found, 1 it defines nothing, 2 error.
    """

    def outlined(engine: Engine, bar: Progress) -> OutlineAnswer:
        name = name_from_root(file, engine.root)
        return engine.exact.outline(name, principals=asked.principals, on_progress=bar)

    answer = asked.answer(
        outlined,
        lambda answer, _: [
            f"{one.line:>5}-{one.end:<5} {'  ' * one.level}{one.signature}" for one in answer.definitions
        ],
        before=lambda engine: engine.check_path(name_from_root(file, engine.root), asked.principals),
    )
    if not answer.definitions:
        note(f"{answer.path or answer.rid} defines nothing that findling knows")
    return 0 if answer.definitions else 1


@click.command()
@click.argument("of", metavar="[A]", default="")
@click.argument("to", metavar="[B]", default="")
@path_argument
@setting_option("limit", "-k", metavar="N")
@question("limit")
def related(asked: AskedPlace, of: str, to: str) -> int:
    """Show how A and B are connected, or A alone; without both, themes.

    A and B are names, titles, paths or ids. Each step shows the passage that proves it. A theme is a group of passages
    that name the same things. PATH is the folder to search; write "" for what is missing in front of it.

    Exit code: 0 found, 1 nothing found, 2 error.
    """
    if not of and not to:
        return _list_themes(asked)

    def connected(engine: Engine, bar: Progress) -> RelatedAnswer:
        things = [name_from_root(one, engine.root) if one else "" for one in (of, to)]
        most = max(asked.limit, 1)
        return engine.related(*things, limit=most, principals=asked.principals, refresh=True, on_progress=bar)

    answer = asked.answer(
        connected,
        lambda answer, shown: _related_lines(answer, lambda one: shown(ListedFile(one.path)) if one.path else one.rid),
        finishes=True,
    )
    for name in answer.unknown:
        note(f"nothing names {name}", f'findling search "{name}"')
    if not answer.is_found and not answer.degraded and not answer.unknown:
        note(f"nothing connects {answer.of} with {answer.to}" if to else f"nothing is connected to {answer.of}")
    return 0 if answer.is_found else 1


def _list_themes(asked: AskedPlace) -> int:
    """List each theme by its names, how much has them, a summary, and its best passage."""

    def top(engine: Engine, bar: Progress) -> ThemesAnswer:
        most = max(asked.limit, 1)
        return engine.themes.top(most, principals=asked.principals, refresh=True, on_progress=bar)

    answer = asked.answer(top, lambda answer, _: _theme_lines(answer), finishes=True)
    if len(answer.themes) < answer.total:
        note(f"{len(answer.themes)} of {counted(answer.total, 'theme')}", "findling related -k 100")
    if not answer.themes and not answer.degraded:
        note("no two documents name the same thing")
    return 0 if answer.themes else 1


def _theme_lines(answer: ThemesAnswer) -> Iterator[str]:
    for theme in answer.themes:
        size = f"{counted(theme.resources, 'document')}, {counted(theme.passages, 'passage')}"
        yield f"{', '.join(one.name for one in theme.names)}  ({size}, {theme.id})"
        yield f"  {theme.summary}"


def _related_lines(answer: RelatedAnswer, place: Callable[[RelatedPassage], str]) -> list[str]:
    """Paths with a line for each step; for one thing its names and documents."""

    def proof(one: RelatedPassage) -> str:
        where = f" ({one.place})" if one.place else f":{one.line}" if one.line else ""
        return f"  {place(one)}{where}  {one.text}"

    lines = []
    for path in answer.paths:
        lines += [" → ".join(path.names), *(proof(step.passage) for step in path.steps)]
    for name in answer.names:
        lines += [f"{answer.of} → {name.name}", proof(name.passage)]
    if answer.documents:
        lines.append(f"documents with {answer.of}, or with names that it has:")
        lines += [f"{proof(one.passage)}  (by {', '.join(one.names)})" for one in answer.documents]
    return lines
