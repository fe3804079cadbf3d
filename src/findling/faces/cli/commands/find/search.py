"""`findling search`, which is also what `findling QUERY` runs."""

from __future__ import annotations

import sys
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from findling.domain.errors import DaemonError, UsageError
from findling.domain.queries import FACETS, SCOPES
from findling.domain.results import Hit, SearchAnswer
from findling.domain.values import counted
from findling.faces.cli.output.rendering import (
    FORMATS,
    View,
    count_of,
    make_view,
    render_apart,
    render_files,
    render_text,
    render_vimgrep,
)
from findling.faces.cli.output.terminal import (
    ask_before_indexing,
    note,
    note_added,
    note_each,
    show_controls,
    use_color,
    write,
)
from findling.faces.cli.request.options import BriefCommand, daemon_client, opened, setting_option, tell_embedding
from findling.faces.cli.request.request_builder import (
    SearchOptions,
    build_request,
    choose_format,
    collected,
    planned_requests,
    question_options,
    read_queries,
    settled,
)
from findling.service.workspace.workspace import home_folder, is_name

if TYPE_CHECKING:
    from collections.abc import Sequence

    from findling.domain.queries import SearchRequest
    from findling.domain.reports import IndexProgress, Progress
    from findling.domain.results import Suggestion
    from findling.service.client.daemon import SearchClient
    from findling.service.engine.client import LocalClient
    from findling.service.settings.settings import Settings

_LONGEST_ECHO = 200
"""Characters of a query that are repeated in a message."""


@click.command(cls=BriefCommand, options_metavar="[OPTIONS]")
@click.argument("words", nargs=-1, metavar="QUERY [PATH]", type=click.Path())
@question_options
@click.option(
    "--facet",
    multiple=True,
    metavar="NAME",
    help=f"Count matches by {', '.join(FACETS[:-2])}, or the names in them: entity.",
)
@click.option("--cursor", default="", metavar="TEXT", help="The next page: next_cursor of an answer to this question.")
@click.option("--plan", metavar="FILE", help="Carry out the plan of an answer again; QUERY or PATH may differ.")
@setting_option("context", "-C", metavar="N")
@click.option("-l", "--files", is_flag=True, help="Print only the names of files. Same as --format files.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document; a list of them with -Q.")
@click.option(
    "--format",
    "format_",
    type=click.Choice(FORMATS),
    help="jsonl: a line of JSON for each hit and query; vimgrep: path:line:column:text.",
)
@click.option("--explain", is_flag=True, help="Say why each hit is there, what was planned and how long it took.")
@click.option("--quick", is_flag=True, help="Answer from what there is time to index and to read; the rest follows.")
@click.option("--explain-hit", metavar="ID", help="Say why one document is in the answer, or is not: an id or a path.")
@click.option("--shared", is_flag=True, help="Ask all workspaces that are marked as shared.")
@click.option("--everywhere", is_flag=True, help="Ask all workspaces that there are.")
@click.option("-Q", "--queries", metavar="FILE", help="Ask every line of FILE, or of stdin for -.")
def search(words: tuple[str, ...], explain_hit: str | None, **given: Any) -> int:
    """Search a folder or a file, by default the current folder.

    Words rank; "quoted words" must stand in a row; -word must not occur; also OR, NOT, (groups), prefix*, fuzzy~,
    a NEAR b, and path: ext: lang: type: tag: author: title: system: before: after: is: in:. Options may stand before
    or behind the query. A query that starts with a dash goes behind `--`.

    Where nothing has what is demanded, the answer is empty, and what is found without the demand stands apart.
    `--workspace A,B`, `--shared` and `--everywhere` ask several workspaces. `--explain-hit` takes the id of a hit or of
    a resource, or the path of a file, also with a line: notes.md:12.

    Exit code: 0 found, 1 nothing found, 2 error.
    """
    options = collected({"words": words, **given})
    format_ = choose_format(options)
    if explain_hit is not None:
        return _explained(options, format_, explain_hit)
    queries, named = read_queries(options)
    settings, path = settled(options, named)
    if options.plan is None:
        requests = [build_request(query, options, settings) for query in queries]
    else:
        requests = planned_requests(queries, options, settings)
    printer = _Printer(format_, settings, options)
    # A daemon has another current folder, to which the names may be relative.
    if "," in options.scope or not _ask_daemon(path, settings, requests, printer):
        from findling.service.engine.client import LocalClient

        with opened(path, settings) as engine:
            client = LocalClient(engine, requests[0].principals, settings=settings)
            is_fresh = printer.shown > 0 or _index_first(client, settings, requests, printer)
            refresh = settings["search.refresh"] == "auto" and not is_fresh
            for request in requests[printer.shown :]:
                with ExitStack() as bars:
                    answer = client.search(request, refresh=refresh, on_progress=_Progress(bars))
                printer.show(answer, client)
                refresh = False  # the first search has refreshed the index for all of them
            tell_embedding(client.finish())
    printer.finish()
    return 0 if printer.found else 1


def _explained(options: SearchOptions, format_: str, name: str) -> int:
    """Explain one document. Raises UsageError for options that say something else."""
    others: dict[str, object] = {
        "-Q": options.queries,
        "--plan": options.plan,
        "--facet": options.facet,
        "--cursor": options.cursor,
        f"--format {format_}": format_ not in ("text", "json"),
        "several workspaces": options.scope != SCOPES[0],
    }
    for other, is_given in others.items():
        if is_given:
            raise UsageError(f"--explain-hit and {other} do not go together", hint=f"leave out {other}")
    from findling.faces.cli.commands.find.document import explain_hit

    return explain_hit(replace(options, explain=True), name, as_json=format_ == "json")


def _ask_daemon(path: str | None, settings: Settings, requests: list[SearchRequest], printer: _Printer) -> bool:
    """Have a running daemon answer; whether it has answered all requests."""
    client = daemon_client(path, settings, requests[0].principals)
    if client is None:
        return False
    try:
        for answer in client.search_many(requests, refresh=True):
            printer.show(answer, client)
        tell_embedding(client.finish())
    except DaemonError as trouble:
        if printer.explain:
            note(f"searched here: {trouble.message}", trouble.hint)
    return printer.shown == len(requests)


def _index_first(client: LocalClient, settings: Settings, requests: list[SearchRequest], printer: _Printer) -> bool:
    """Index what has never been indexed, unless the user wants no indexing; whether it was done.

    A person at a terminal gets a first answer meanwhile. A quick search indexes by itself what it needs.
    """
    engine = client.engine
    if settings["search.refresh"] != "auto" or requests[0].scope != SCOPES[0] or engine.is_indexed():
        return False
    # Where another process writes, a person gets what is there; a script waits for the complete answer.
    if (printer.is_for_person or requests[0].quick) and engine.queue.writer():
        return False
    ask_before_indexing(engine.subject, False)
    if requests[0].quick:
        return False
    from findling.faces.cli.output.progress import progress_bar

    events: list[IndexProgress] = []
    if printer.is_for_person and len(requests) == 1 and requests[0].principals is None:
        with progress_bar(events.append) as bar:
            first = client.search(replace(requests[0], quick=True), refresh=True, on_progress=bar)
        if "indexed" in first.plan:
            printer.show_first(first, client)
    if not engine.is_indexed():  # a small folder is indexed as a whole by then
        with progress_bar(events.append) as bar:
            engine.index(on_progress=bar)
    if sys.stderr.isatty() and events:
        left_out, last = len(engine.skipped()), events[-1]
        more = f"; {left_out:,} left out, see findling status --list skipped" if left_out else ""
        note(f"indexed {counted(last.done - last.failed, 'file')} in {last.seconds:.1f} s{more}")
    return True


class _Progress:
    """Shows the progress of an indexing run, if there is one, until the stack is closed."""

    def __init__(self, bars: ExitStack) -> None:
        self._bars = bars
        self._tell: Progress | None = None

    def __call__(self, event: IndexProgress) -> None:
        if self._tell is None:
            from findling.faces.cli.output.progress import progress_bar

            self._tell = self._bars.enter_context(progress_bar())
        self._tell(event)


class _Printer:
    """Prints answers as they come: the answer on stdout, everything else on stderr."""

    def __init__(self, format_: str, settings: Settings, options: SearchOptions) -> None:
        self._format, self._settings, self._with_queries = format_, settings, bool(options.queries)
        self._names_all = options.scope != SCOPES[0]
        self._documents: list[dict[str, Any]] = []
        self._printed = False
        self.explain, self.found, self.shown = options.explain, False, 0
        self._first: list[str] = []

    @property
    def is_for_person(self) -> bool:
        """Whether answers are printed for somebody who can read a first one while the whole one is made."""
        return self._format == "text" and sys.stdout.isatty() and sys.stderr.isatty()

    def show_first(self, answer: SearchAnswer, client: SearchClient) -> None:
        """Print an answer from a part of the files; the whole one is printed again only if it differs."""
        view = self._view(client)
        self._show_text(answer, view)
        _tell(replace(answer, degraded=()), view)
        note("{files:,} of {of:,} files are indexed so far; the whole answer follows".format(**answer.plan["indexed"]))
        self._first = [hit.id for hit in answer.hits]

    def show(self, answer: SearchAnswer, client: SearchClient) -> None:
        self.found, self.shown = self.found or bool(answer.hits) or _only_counts(answer), self.shown + 1
        view = self._view(client)
        if self._names_all:
            answer = self._placed(answer, client)
        if self._format == "json":
            from findling.faces.cli.output.json_output import answer_document

            self._documents.append(answer_document(answer, view.root))
        elif self._format == "jsonl":
            from findling.faces.cli.output.json_output import answer_stream, dump

            write("".join(map(dump, answer_stream(answer, view.root))))
        elif self._format == "text":
            self._show_text(answer, view)
        else:
            write((render_files if self._format == "files" else render_vimgrep)(answer, view))
        _tell(answer, view)
        if self.explain and answer.served_by and self.shown == 1:
            note(f"answered by {answer.served_by}")

    def finish(self) -> None:
        if self._format == "json":
            from findling.faces.cli.output.json_output import dump

            write(dump(self._documents if self._with_queries else self._documents[0], indent=2))

    def _view(self, client: SearchClient) -> View:
        # The paths of a workspace without files lead nowhere here, and are shown as they are.
        has_files = client.root != client.home
        return make_view(
            client.root if has_files else Path(),
            color=use_color(self._settings["output.color"], sys.stdout),
            terminal=sys.stdout.isatty(),
            editor_uri=self._settings["output.editor_uri"] if has_files else "",
            explain=self.explain,
        )

    def _placed(self, answer: SearchAnswer, client: SearchClient) -> SearchAnswer:
        """The answer with the workspace of each hit; a path in text leads to the file from everywhere."""
        from findling.service.workspace.workspaces import root_of

        label = client.home.name if is_name(client.home.name) else str(client.root)
        home = home_folder(self._settings["store.home"])

        def placed(hit: Hit) -> Hit:
            named = hit.workspace or label
            is_whole = hit.path and not self._format.startswith("json")
            return replace(hit, workspace=named, path=str(root_of(named, home) / hit.path) if is_whole else hit.path)

        return replace(answer, hits=tuple(map(placed, answer.hits)), relaxed=tuple(map(placed, answer.relaxed)))

    def _show_text(self, answer: SearchAnswer, view: View) -> None:
        if self._first and self._first == [hit.id for hit in answer.hits]:
            note("the first answer stands: it has the best hits of all files")
            return
        text = render_text(answer, view)
        if self._with_queries and text:
            text = f"# {show_controls(answer.query)}\n{text}"
        write("\n" + text if self._printed and text else text, styled=True)
        self._printed = self._printed or bool(text)


def _tell(answer: SearchAnswer, view: View) -> None:
    note_each(answer.degraded)
    for remark in answer.notes if answer.hits else ():
        note(remark)
    if answer.scope:
        limits = "; ".join(f"{name} {_listed(value)}" for name, value in answer.scope.items() if name != "from")
        note(f"searched in the context of {answer.scope['from']}: {limits}", "--no-context searches everything")
    _tell_spellings(answer.did_you_mean)
    respelled = {meant.term for meant in answer.did_you_mean}
    unknown = ", ".join(term for term in answer.unknown_terms if term not in respelled)
    unknown = f"unknown terms: {unknown}" if unknown else ""
    if _only_counts(answer):
        note(f"{count_of(answer, 'hit')}; none is shown, as --limit says")
    elif not answer.hits:
        _tell_nothing(answer, unknown)
    elif unknown:
        note(unknown)
    # Not on stdout: nothing was found, and whoever reads that must not take neighbours for hits.
    aside = {"relaxed, without what is demanded": answer.relaxed, "not a match, but near in meaning": answer.related}
    for name, apart in aside.items():
        if apart:
            click.echo(render_apart(name, apart, view), err=True, nl=False)
    if answer.hits and sys.stdout.isatty():
        shown = sum(1 + len(hit.passages) for hit in answer.hits)
        hits = f"{shown:,} of {count_of(answer, 'hit')}" if answer.total > shown else counted(shown, "hit")
        took = f"{hits} in {sum(answer.timings_ms.values()):.0f} ms"
        note("; ".join(filter(None, (took, _weaker(answer), _unread(answer)))))


def _tell_spellings(meant: Sequence[Suggestion]) -> None:
    """Name the words that were searched as well, and those that may be meant."""
    note_added(meant)
    if only_meant := [one for one in meant if not one.applied]:
        from shlex import quote

        words = ", ".join(f"{one.suggestion} for {one.term}" for one in only_meant)
        note(f"did you mean {words}?", f"findling {quote(only_meant[0].query)}")


def _tell_nothing(answer: SearchAnswer, unknown: str) -> None:
    """Say that there is no match, and why that may be."""
    # Pasted text may hold quotes and dashes that were not meant as conditions: say what they did.
    understood = f"understood as {_shortened(answer.understood_as)}" if answer.reading != "ranked" else ""
    reasons = filter(None, (understood, unknown, *answer.notes, _weaker(answer)))
    hint = "" if answer.did_you_mean else _meant_command(answer.query)
    so_far = " so far" if "indexed" in answer.plan else ""
    note("; ".join((f'no match{so_far} for "{_shortened(answer.query)}"', *reasons)), hint)


def _only_counts(answer: SearchAnswer) -> bool:
    """Whether there are hits of which none was asked for."""
    return answer.total > 0 and answer.plan.get("limit") == 0


def _listed(value: object) -> str:
    return ", ".join(map(str, value)) if isinstance(value, tuple) else str(value)


def _weaker(answer: SearchAnswer) -> str:
    return f"{counted(answer.weaker, 'weaker match', 'weaker matches')}: --weak" if answer.weaker else ""


def _unread(answer: SearchAnswer) -> str:
    """The share of passages that the model has read, as long as that is not everything."""
    meaning = answer.meaning
    is_partial = meaning and meaning["model"] and meaning["coverage"] < 1
    # Rounded down: "100% so far" would be no reason for anything.
    return f"{meaning['model']} has read {int(meaning['coverage'] * 100)}% of the passages so far" if is_partial else ""


def _shortened(text: str) -> str:
    return text if len(text) <= _LONGEST_ECHO else text[:_LONGEST_ECHO] + "…"


def _meant_command(query: str) -> str:
    """A hint for a query of one word that looks like a mistyped command."""
    if " " in query:
        return ""
    from difflib import get_close_matches

    from findling.faces.cli.request.command_table import COMMANDS

    close = get_close_matches(query, COMMANDS, n=1, cutoff=0.75)
    return f"findling {close[0]}, if you meant the command" if close and query not in COMMANDS else ""
