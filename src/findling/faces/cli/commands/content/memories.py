"""`findling remember`, `findling recall` and `findling memory`: what somebody wants to know again later."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from findling.domain.errors import InvalidValueError, UsageError
from findling.domain.plans import MODES
from findling.domain.records import DECISIONS
from findling.domain.values import counted
from findling.faces.cli.output.json_output import write_json, write_report
from findling.faces.cli.output.terminal import is_interactive, note, note_added, note_each, show_controls, write
from findling.faces.cli.request.options import (
    NumberRange,
    as_option,
    command_group,
    json_option,
    opened,
    resolve,
    work_in_background,
    workspace_option,
)
from findling.service.settings.settings import load_settings
from findling.service.workspace.workspace import PERSONAL, is_name

if TYPE_CHECKING:
    from findling.pipelines.content.memories import Memory, RecallAnswer, Recalled
    from findling.service.content.memories import WorkspaceMemories
    from findling.service.content.memory_review import MemoryPair

_PART = NumberRange(0, 1)


@click.command()
@click.argument("text", nargs=-1, required=True, metavar="TEXT|-")
@click.option("--importance", type=_PART, metavar="I", help="How much it matters, from 0 to 1; 0.5 unless said.")
@click.option("--tag", "tags", multiple=True, metavar="TAG", help="A tag to find it by; may be repeated.")
@click.option("--author", default="", metavar="NAME", help="Who says so.")
@click.option("--id", default="", metavar="ID", help="Its own id, under which it can be changed later.")
@click.option("--visibility", multiple=True, metavar="PRINCIPAL", help="Who may see it, such as user:ada; repeatable.")
@click.option("--source", default="", metavar="TEXT", help="Where it comes from: a book, an address, a person.")
@click.option("--until", default="", metavar="DATE", help="The last day on which it holds, such as 2026-06-03.")
@click.option("--here", is_flag=True, help="Keep it for this folder and those below, not for every folder.")
@json_option
@workspace_option
def remember(text: tuple[str, ...], here: bool, as_json: bool, workspace: str | None, **given: Any) -> int:
    """Keep TEXT, or what comes on stdin for -, and print its id.

    All folders find it, unless --here, --visibility or --workspace keeps it in one workspace.
    The same text again is the same memory: that counts as an access, and a higher importance raises its own.
    The same in other words updates it, and a newer value of a fact supersedes the older one; both can be undone.
    """
    said = _stdin() if text == ("-",) else " ".join(text)
    visibility = given.pop("visibility") or None
    with _memories(workspace, personal=not here and not visibility) as (memories, read_on):
        memory = memories.remember(said, visibility=visibility, here=here, **given)
        read_on()
    write_report(as_json, {"memory": memory}, f"{memory.rid}\n")
    note(f"kept {_kept(memory, memories)}")
    _tell_outcome(memory)
    return 0


_OUTCOMES = {
    "known": "remembered already",
    "changed": "its text was changed",
    "updated": "it says the same as a memory that was there, whose text it replaces",
}


def _kept(memory: Memory, memories: WorkspaceMemories) -> str:
    if is_name(name := memories.folder.name):
        return "for all folders" if name == PERSONAL else f"in the workspace {name}"
    folder = show_controls(str(Path(memories.label, memory.here)))
    return f"for {folder} and the folders below it" if memory.here else f"in {folder}"


def _tell_outcome(memory: Memory) -> None:
    if memory.outcome != "new":
        worth = f"importance {memory.importance:.2f}, accessed {_times(memory.access_count)}"
        note(f"{_OUTCOMES[memory.outcome]}; {worth}", memory.undo)
    elif memory.supersedes:
        note(f"it supersedes {memory.supersedes}", memory.undo)
    if memory.conflicts:
        others = ", ".join(memory.conflicts)
        note(f"it may not hold together with {others}: both stay", "findling memory review")


@click.command()
@click.argument("query", nargs=-1, metavar="[QUERY]")
@click.option("-k", "--limit", type=click.IntRange(min=1), default=10, metavar="N", help="How many at most; 10.")
@click.option("--mode", type=click.Choice(MODES), help="Go by words and meaning, words alone or meaning alone.")
@click.option("--min-importance", type=_PART, default=0.0, metavar="I", help="Only what is worth as much now.")
@click.option("--at", default="", metavar="DATE", help="Answer as of that day: what held then.")
@click.option("--all-versions", is_flag=True, help="Also what does not hold any more.")
@as_option
@json_option
@workspace_option
def recall(query: tuple[str, ...], as_: tuple[str, ...], as_json: bool, workspace: str | None, **asked: Any) -> int:
    """Find what was remembered, by meaning and words.

    Words such as `last week`, `in June` or `before the move` weigh what was made, began or held then.

    Without a QUERY, list the most important memories. Exit code: 0 found, 1 nothing found.
    """
    with _memories(workspace) as (memories, read_on):
        if not query:
            if asked["at"]:
                raise UsageError("--at needs a question", hint=f"findling recall QUERY --at {asked['at']}")
            every = memories.list(principals=as_ or None, all_versions=asked["all_versions"])
            kept = [memory for memory in every if memory.importance >= asked["min_importance"]]
            return _show_list(kept, asked["limit"], as_json)
        answer = memories.recall(" ".join(query), principals=as_ or None, **asked)
        if answer.meaning.get("coverage", 1) < 1:
            read_on()
    write_report(as_json, answer.to_dict(), "\n".join(_shown(one) for one in answer))
    _tell(answer)
    return 0 if answer.memories else 1


@command_group()
@json_option
@workspace_option
@click.pass_context
def memory(context: click.Context, as_json: bool, workspace: str | None) -> None:
    """Review, undo and look back at what was remembered.

    \b
      findling memory review                 memories that may not hold together
      findling memory undo memory:ID         take back the latest decision about it
      findling memory history memory:ID      all states of the fact that it tells
    """
    context.obj = as_json, workspace


@memory.command("review")
@click.argument("decision", nargs=-1, metavar="[NEWER OLDER keep|merge|supersede]")
@click.pass_obj
def _review(place: tuple[bool, str | None], decision: tuple[str, ...]) -> int:
    """List memories that may not hold together, or decide on two of them.

    In a terminal one key settles each pair.

    \b
      keep         both hold
      merge        they are one: the older one gets the text of the newer one
      supersede    the newer one holds, the older one is kept

    Exit code: 0 there are some, 1 there are none.
    """
    as_json, workspace = place
    with _memories(workspace) as (memories, _):
        if decision:
            if len(decision) != 3:
                raise UsageError("a decision names two memories", hint="findling memory review NEWER OLDER keep")
            done = memories.decide(*decision)
            write_report(as_json, {"decided": done, "decision": decision[2]}, f"{done.rid}\n")
            note(f"decided: {decision[2]}", f"findling memory undo {done.rid}")
            return 0
        found = memories.review()
        if found.trouble is not None:
            note(found.trouble.what, found.trouble.fix)
        if as_json:
            write_json(pairs=found.pairs, trouble=found.trouble)
        elif is_interactive() and sys.stdout.isatty():
            _settle(memories, found.pairs)
        else:
            write("\n".join(_shown_pair(pair) + _commands(pair) for pair in found.pairs))
    if not found.pairs:
        note("no memories wait for a decision")
    return 0 if found.pairs else 1


def _shown_pair(pair: MemoryPair) -> str:
    said = f"  {show_controls(pair.verdict_by)} thinks: {pair.verdict}\n" if pair.verdict else ""
    newer = f"{_where(str(Path(pair.workspace, pair.here)))}{pair.newer}  newer\n{_indented(pair.newer_text)}"
    return f"{newer}{pair.older}  older\n{_indented(pair.older_text)}{said}"


def _commands(pair: MemoryPair) -> str:
    return "".join(f"  findling memory review {pair.newer} {pair.older} {one}\n" for one in DECISIONS)


_KEYS = {"n": "the newer one holds", "o": "the older one holds", "b": "both hold", "s": "skip", "q": "quit"}


def _settle(memories: WorkspaceMemories, pairs: Sequence[MemoryPair]) -> None:
    """Show each pair, and settle it by one key."""
    gone: set[str] = set()
    for pair in pairs:
        if not gone.isdisjoint((pair.newer, pair.older)):
            continue  # a key has settled it with another pair
        write(_shown_pair(pair))
        key = _key()
        if key == "q":
            return
        if key == "s":
            continue
        holds, other = (pair.older, pair.newer) if key == "o" else (pair.newer, pair.older)
        done = memories.decide(holds, other, "keep" if key == "b" else "supersede")
        gone |= set() if key == "b" else {other}
        note(f"decided: {_KEYS[key]}", f"findling memory undo {done.rid}")


def _key() -> str:
    """The key that somebody presses; the end of the input quits."""
    asked = ", ".join(f"{key} {meaning}" for key, meaning in _KEYS.items())
    while True:
        click.echo(f"  {asked}? ", nl=False, err=True)
        try:
            key = click.getchar()[:1].lower() or "q"
        except EOFError:
            key = "q"
        click.echo(show_controls(key), err=True)
        if key in _KEYS:
            return key


@memory.command("undo")
@click.argument("id_", metavar="ID")
@click.pass_obj
def _undo(place: tuple[bool, str | None], id_: str) -> int:
    """Take back the latest decision about the memory ID.

    That may be an update by a near copy, a supersession, or a review. Nothing is deleted: the earlier text is there
    again, and the newer one as a memory of its own.
    """
    as_json, workspace = place
    with _memories(workspace) as (memories, read_on):
        done = memories.undo(id_)
        read_on()
    write_report(as_json, {"undone": done}, f"{done.rid}\n{_indented(done.text)}")
    if done.other:
        note(f"{done.other} holds by itself: {show_controls(' '.join(done.other_text.split()))}")
    return 0


@memory.command("history")
@click.argument("id_", metavar="ID")
@click.pass_obj
def _history(place: tuple[bool, str | None], id_: str) -> int:
    """List all states of the fact that the memory ID tells, latest first."""
    as_json, workspace = place
    with _memories(workspace) as (memories, _):
        versions = memories.history(id_)
    text = "\n".join(f"{version}\n{_indented(version.text)}" for version in versions)
    write_report(as_json, {"versions": versions}, text)
    return 0


def _show_list(listed: Sequence[Memory], limit: int, as_json: bool) -> int:
    if as_json:
        write_json(memories=listed[:limit], total=len(listed))
    else:
        write("\n".join(_shown_plainly(memory) for memory in listed[:limit]))
        if len(listed) > limit:
            note(f"{limit:,} of {counted(len(listed), 'memory', 'memories')}", f"findling recall -k {len(listed)}")
    if not listed:
        note("nothing is remembered", 'findling remember "some text"')
    return 0 if listed else 1


def _tell(answer: RecallAnswer) -> None:
    note_each(answer.degraded)
    note_added(answer.did_you_mean)
    for told in answer.notes:
        note(told)
    if answer.time:
        note(f"time: {show_controls(answer.time)}")
    if not answer.memories:
        note(f"no memory of {show_controls(answer.query)}", "findling recall lists those that are found from here")
    elif not answer.is_counted:
        note("the workspace cannot be written: these accesses are not counted")


def _shown(one: Recalled) -> str:
    accessed = f"accessed {_times(one.access_count)} so far" if one.access_count else "never accessed so far"
    reasons = "; ".join((*one.reasons, *one.held, accessed))
    return f"{_where(one.hit.workspace)}{one.rid}  {one.score:.2f}\n{_indented(one.text)}  {show_controls(reasons)}\n"


def _shown_plainly(memory: Memory) -> str:
    last = time.strftime("%Y-%m-%d %H:%M", time.localtime(memory.last_accessed_at))
    tags = "".join(f", #{show_controls(tag)}" for tag in memory.tags)
    worth = f"importance {memory.importance:.2f}, at first {memory.importance_original:.2f}"
    accessed = f"accessed {_times(memory.access_count)}, last {last}" if memory.access_count else "never accessed"
    held = "".join(f"; {show_controls(part)}" for part in memory.held)
    return f"{_where(memory.workspace)}{memory.rid}\n{_indented(memory.text)}  {worth}; {accessed}{tags}{held}\n"


def _where(workspace: str) -> str:
    return f"[{show_controls(workspace)}] " if workspace else ""


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
def _memories(workspace: str | None, personal: bool = False) -> Iterator[tuple[WorkspaceMemories, Callable[[], None]]]:
    """The memories of the current folder, or the `personal` ones, and a function that starts background work.

    A workspace that a flag or a setting names comes first.
    """
    settings = resolve(".", workspace=workspace)
    if personal and not (settings["workspace.name"] or settings["context.workspace"] or settings["store.url"]):
        # The project of the folder does not say how the personal workspace is opened.
        settings = load_settings(None).override({"workspace.name": PERSONAL}, "default")
    with opened(".", settings, creates=settings["workspace.name"] == PERSONAL) as engine:
        yield engine.memories, partial(work_in_background, engine, settings)
