"""`findling chats`: conversations that other programs have exported."""

from __future__ import annotations

from collections import deque
from datetime import UTC, datetime
from pathlib import Path

import click

from findling.domain.errors import FindlingError
from findling.domain.values import counted
from findling.faces.cli.output.json_output import write_json, write_list
from findling.faces.cli.output.terminal import note, piped, show_controls
from findling.faces.cli.request.options import command_group, compact_in_background, json_option
from findling.faces.cli.request.place import GivenPlace, place_option
from findling.service.content.chats import FORMATS, ChatReport, ThreadSummary, WorkspaceChats, read_export


@command_group()
def chats() -> None:
    """Import, list and delete chats.

    \b
      findling chats import slack-export.zip
      findling chats import conversations.json       of ChatGPT or Claude
      findling chats list
      findling "deploy failed" --type chat
    """


@chats.command("import")
@click.argument("file", type=click.Path(allow_dash=True), metavar="FILE|FOLDER|-")
@click.option(
    "--format",
    type=click.Choice(FORMATS),
    default="auto",
    show_default=True,
    help="What exported it; auto looks into it.",
)
@click.option("--source", default="", metavar="NAME", help="What its threads are filed under, instead of the format.")
@click.option("--thread", default="", metavar="ID", help="The thread of JSON lines that do not name one.")
@click.option("--title", default="", metavar="TEXT", help="The title of threads in JSON lines that have none.")
@click.option(
    "--visibility",
    multiple=True,
    metavar="PRINCIPAL",
    help="Who may see it: user:NAME, group:NAME, role:NAME, everyone, or nobody; !user:NAME keeps one out."
    " May be given more than once.",
)
@json_option
@place_option
def _import(place: GivenPlace, file: str, visibility: tuple[str, ...], as_json: bool, **wishes: str) -> int:
    """Take in a chat export; messages that are known are left alone.

    FILE is JSON or JSON lines, FOLDER an unpacked export; a zip archive need not be unpacked, and - is stdin. Slack,
    Discord (DiscordChatExporter), ChatGPT and Claude are known, and JSON lines of thread, id, author, at, text, title
    and reply_to. Import the next export over this one: what is new is added, and what was edited is replaced.

    Exit code: 0 done, 1 there are no messages in it, 2 an error; what stands before the error is imported.
    """
    latest = deque([ChatReport()], maxlen=1)
    with place.opened() as engine:
        export = Path(file) if file != "-" else piped("is no export", "findling chats import FILE, or pipe one into it")
        threads = read_export(export, wishes, visibility)
        try:
            WorkspaceChats(engine.writer).add(threads, on_progress=latest.append)
        except FindlingError:
            if latest[0].threads:
                note(f"imported what stands before the error: {_sentence(latest[0])}")
            raise
        compact_in_background(engine, place.settings)
    report = latest[0]
    if as_json:
        write_json(report)
    if not report.threads:
        note(f"there are no messages in {'stdin' if file == '-' else file}")
        return 1
    if not as_json:
        note(_sentence(report))
    return 0


@chats.command("list")
@json_option
@place_option
def _list(place: GivenPlace, as_json: bool) -> int:
    """List the threads, each with its size and its times.

    Exit code: 0 there are some, 1 there are none.
    """
    with place.opened() as engine:
        threads = list(WorkspaceChats(engine.writer).threads())
    return write_list(as_json, "threads", threads, _columns, "there are no chats", "findling chats import FILE")


@chats.command("delete")
@click.argument("thread", metavar="SOURCE/THREAD")
@place_option
def _delete(place: GivenPlace, thread: str) -> int:
    """Delete a thread with all its messages from the workspace."""
    with place.opened() as engine:
        count = WorkspaceChats(engine.writer).delete(thread)
        compact_in_background(engine, place.settings)
    note(f"deleted {show_controls(thread)} with {counted(count, 'message')}")
    return 0


def _sentence(report: ChatReport) -> str:
    added = f"{counted(report.threads, 'thread')}: {counted(report.added, 'message')} added"
    return f"{added}, {report.changed:,} changed, {report.known:,} known"


def _columns(thread: ThreadSummary) -> tuple[str, ...]:
    return thread.thread, f"{thread.messages:,}", _day(thread.first_at), _day(thread.last_at), thread.title


def _day(at: float | None) -> str:
    return "" if at is None else f"{datetime.fromtimestamp(at, UTC):%Y-%m-%d}"
