"""`findling remember` and `findling recall`: what somebody wants to know again later."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING

import click

from findling.domain.errors import InvalidValueError
from findling.domain.plans import MODES
from findling.domain.values import counted
from findling.faces.cli.output.json_output import dump, write_json, write_report
from findling.faces.cli.output.terminal import note, show_controls, write
from findling.faces.cli.request.options import (
    as_option,
    json_option,
    opened,
    resolve,
    work_in_background,
    workspace_option,
)

if TYPE_CHECKING:
    from findling.pipelines.content.memories import Memory, RecallAnswer, Recalled
    from findling.service.content.memories import WorkspaceMemories

__all__ = ["recall", "remember"]

_PART = click.FloatRange(0, 1)


@click.command()
@click.argument("text", nargs=-1, required=True, metavar="TEXT|-")
@click.option("--importance", type=_PART, metavar="I", help="How much it matters, from 0 to 1; 0.5 unless said.")
@click.option("--tag", "tags", multiple=True, metavar="TAG", help="A tag to find it by; may be repeated.")
@click.option("--author", default="", metavar="NAME", help="Who says so.")
@click.option("--id", "id_", default="", metavar="ID", help="Its own id, under which it can be changed later.")
@click.option("--visibility", multiple=True, metavar="PRINCIPAL", help="Who may see it, such as user:ada; repeatable.")
@json_option
@workspace_option
def remember(
    text: tuple[str, ...],
    importance: float | None,
    tags: tuple[str, ...],
    author: str,
    id_: str,
    visibility: tuple[str, ...],
    as_json: bool,
    workspace: str | None,
) -> int:
    """Keep TEXT, or what comes on stdin for -, and print its id.

    The same text again is the same memory: that counts as an access, and a higher importance raises its own.
    """
    said = _stdin() if text == ("-",) else " ".join(text)
    with _memories(workspace) as (memories, read_on):
        memory = memories.remember(
            said, importance=importance, tags=tags, author=author, visibility=visibility or None, id=id_
        )
        read_on()
    write_report(as_json, {"memory": memory}, f"{memory.rid}\n")
    if memory.outcome != "new":
        what = "remembered already" if memory.outcome == "known" else "its text was changed"
        note(f"{what}; importance {memory.importance:.2f}, accessed {_times(memory.access_count)}")
    return 0


@click.command()
@click.argument("query", nargs=-1, metavar="[QUERY]")
@click.option("-k", "--limit", type=click.IntRange(min=1), default=10, metavar="N", help="How many at most; 10.")
@click.option("--mode", type=click.Choice(MODES), help="Go by words and meaning, words alone or meaning alone.")
@click.option("--min-importance", type=_PART, default=0.0, metavar="I", help="Only what is worth as much now.")
@as_option
@json_option
@workspace_option
def recall(
    query: tuple[str, ...],
    limit: int,
    mode: str | None,
    min_importance: float,
    as_: tuple[str, ...],
    as_json: bool,
    workspace: str | None,
) -> int:
    """Find what was remembered, by meaning and words.

    Without a QUERY, list the most important memories. Exit code: 0 found, 1 nothing found.
    """
    with _memories(workspace) as (memories, read_on):
        if not query:
            every = memories.list(principals=as_ or None)
            return _show_list([memory for memory in every if memory.importance >= min_importance], limit, as_json)
        answer = memories.recall(
            " ".join(query), limit=limit, mode=mode, min_importance=min_importance, principals=as_ or None
        )
        if answer.meaning.get("coverage", 1) < 1:
            read_on()
    if as_json:
        write(dump(answer.to_dict(), indent=2))
    else:
        write("\n".join(_shown(one) for one in answer))
    _tell(answer)
    return 0 if answer.memories else 1


def _show_list(listed: Sequence[Memory], limit: int, as_json: bool) -> int:
    if as_json:
        write_json(memories=listed[:limit], total=len(listed))
    else:
        write("\n".join(_shown_plainly(memory) for memory in listed[:limit]))
        if len(listed) > limit:
            note(f"{limit:,} of {counted(len(listed), 'memory', 'memories')}", f"findling recall -k {len(listed)}")
    if not listed:
        note("nothing is remembered here", 'findling remember "some text"')
    return 0 if listed else 1


def _tell(answer: RecallAnswer) -> None:
    for missing in answer.degraded:
        note(missing.what, missing.fix)
    for meant in answer.did_you_mean:
        if meant.applied:
            note(f"nobody wrote {meant.term}: searched for {meant.suggestion} as well")
    if not answer.memories:
        note(f"no memory of {show_controls(answer.query)}", "findling recall lists all of them")
    elif not answer.is_counted:
        note("the workspace cannot be written: these accesses are not counted")


def _shown(one: Recalled) -> str:
    accessed = f"accessed {_times(one.access_count)} so far" if one.access_count else "never accessed so far"
    reasons = "; ".join((*one.reasons, accessed))
    where = f"[{show_controls(one.hit.workspace)}] " if one.hit.workspace else ""
    return f"{where}{one.rid}  {one.score:.2f}\n{_indented(one.text)}  {show_controls(reasons)}\n"


def _shown_plainly(memory: Memory) -> str:
    last = time.strftime("%Y-%m-%d %H:%M", time.localtime(memory.last_accessed_at))
    tags = "".join(f", #{show_controls(tag)}" for tag in memory.tags)
    worth = f"importance {memory.importance:.2f}, at first {memory.importance_original:.2f}"
    accessed = f"accessed {_times(memory.access_count)}, last {last}" if memory.access_count else "never accessed"
    return f"{memory.rid}\n{_indented(memory.text)}  {worth}; {accessed}{tags}\n"


def _indented(text: str) -> str:
    return "".join(f"  {show_controls(line)}\n" for line in text.splitlines())


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count:,} times"


def _stdin() -> str:
    try:
        return sys.stdin.buffer.read().decode("utf-8")
    except UnicodeDecodeError as error:
        raise InvalidValueError("what comes on stdin is not UTF-8", hint="iconv -t UTF-8 FILE") from error


@contextmanager
def _memories(workspace: str | None) -> Iterator[tuple[WorkspaceMemories, Callable[[], None]]]:
    """The memories of the workspace of the current folder, and a function that starts background work."""
    settings = resolve(".", workspace=workspace)
    with opened(".", settings) as engine:
        yield engine.memories, partial(work_in_background, engine, settings)
