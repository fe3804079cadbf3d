"""`findling grep` and `findling glob`: complete answers, of lines and of files."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from findling.domain.errors import PathNotFoundError, UsageError
from findling.domain.values import counted
from findling.faces.cli.commands.find.asked import AskedPlace, below, indexing, path_shower, question
from findling.faces.cli.output.terminal import note, note_each, use_color, write
from findling.faces.cli.request.options import (
    as_option,
    note_settings,
    opened,
    path_argument,
    resolve,
    setting_option,
    workspace_option,
)

if TYPE_CHECKING:
    from findling.domain.reports import GrepAnswer, GrepRequest

_Count = click.IntRange(0, 1_000_000_000)


@click.command(options_metavar="[OPTIONS]")
@click.argument("words", nargs=-1, metavar="PATTERN [PATH]...", type=click.Path())
@click.option("-e", "--regexp", "patterns", multiple=True, metavar="PATTERN", help="A pattern; may be repeated.")
@click.option("-F", "--fixed-strings", "fixed", is_flag=True, help="Patterns are texts, no regular expressions.")
@click.option("-i", "--ignore-case", is_flag=True, help="Take a and A for the same.")
@click.option("-w", "--word-regexp", "words_only", is_flag=True, help="Matches are whole words.")
@click.option("-v", "--invert-match", "invert", is_flag=True, help="Lines that do not match.")
@click.option("-o", "--only-matching", is_flag=True, help="Print the matches alone, one a line.")
@click.option("-l", "--files-with-matches", "files", is_flag=True, help="Print the names of the files alone.")
@click.option("-c", "--count", "counts", is_flag=True, help="Print how many lines of each file match.")
@click.option("-n/-N", "--line-number/--no-line-number", "numbers", default=True, help="Number the lines, or do not.")
@click.option("-A", "--after-context", "after", type=_Count, metavar="N", help="Lines behind each match, too.")
@click.option("-B", "--before-context", "before", type=_Count, metavar="N", help="Lines in front of it.")
@click.option("-C", "--context", "around", type=_Count, default=0, metavar="N", help="Both.")
@click.option("-m", "--max-count", "most", type=_Count, metavar="N", help="At most so many lines of a file.")
@click.option("-g", "--glob", "globs", multiple=True, metavar="GLOB", help="Only these files; with ! all others.")
@click.option("--json", "as_json", is_flag=True, help="Print messages as rg --json does, one a line.")
@click.option("--explain", is_flag=True, help="Say on stderr how the lines were found.")
@setting_option("color")
@as_option
@workspace_option
def grep(words: tuple[str, ...], **given: Any) -> int:
    """Print every line that matches PATTERN, here or at each PATH.

    The index answers, after a look at what has changed. Patterns are regular expressions of Python; each line is
    matched alone. Lines of documents, such as PDF and mail, are those of their extracted text.

    Exit code: 0 found, 1 nothing found, 2 error.
    """
    patterns, paths = (given["patterns"], words) if given["patterns"] else (words[:1], words[1:])
    if not patterns:
        raise UsageError("there is no pattern", hint="findling grep PATTERN")
    if given["as_json"] and (given["files"] or given["counts"]):
        raise UsageError("--json gives all lines", hint="leave out -l and -c, or --json")
    if given["most"] == 0:
        return 1  # no line, as ripgrep reads it
    note_settings(resolve(".", workspace=given["workspace"], color=given["color"], in_context=True))
    answers, is_wrong = [], False
    for path in paths or (None,):
        try:
            answers.append(_printed(path, _request(patterns, given), given, is_only=len(paths) == 1))
        except PathNotFoundError as error:  # the others are searched, as grep does
            note(error.message, error.hint)
            is_wrong = True
    if given["as_json"]:
        from findling.faces.cli.output.grep_text import summary_message
        from findling.faces.cli.output.json_output import dump

        write(dump(summary_message(answers)))
    if is_wrong:
        return 2
    return 0 if any(answer.files for answer in answers) else 1


@click.command()
@click.argument("pattern", metavar="GLOB")
@path_argument
@click.option("--newest", is_flag=True, help="The latest changes first, instead of the order of paths.")
@question()
def glob(asked: AskedPlace, pattern: str, newest: bool) -> int:
    """List the indexed files at PATH that GLOB matches, such as '*.py'.

    The syntax is that of gitignore, with {a,b} for alternatives: without a slash a name in any folder, with one a path
    below PATH; what matches a folder matches everything in it.

    Exit code: 0 found, 1 nothing found, 2 error.
    """
    answer = asked.answer(
        lambda engine, bar: engine.exact.glob([pattern], newest=newest, principals=asked.principals, on_progress=bar),
        lambda answer, shown: map(shown, answer.files),
    )
    return 0 if answer.files else 1


def _request(patterns: Sequence[str], given: Mapping[str, Any]) -> GrepRequest:
    from findling.domain.reports import GrepRequest

    return GrepRequest(
        patterns=tuple(patterns),
        fixed=given["fixed"],
        case="ignore" if given["ignore_case"] else "sensitive",
        words=given["words_only"],
        invert=given["invert"],
        globs=given["globs"],
        only_matching=given["only_matching"],
        before=given["around"] if given["before"] is None else given["before"],
        after=given["around"] if given["after"] is None else given["after"],
        gives="files" if given["files"] else "counts" if given["counts"] else "lines",
        most=given["most"] or 0,
        principals=given["as_"] or None,
    )


def _printed(path: str | None, asked: GrepRequest, given: Mapping[str, Any], *, is_only: bool) -> GrepAnswer:
    """The answer at one path, printed."""
    from findling.faces.cli.output.grep_text import GrepView, grep_messages, render_grep
    from findling.faces.cli.output.rendering import View
    from findling.service.engine.client import LocalClient

    settings = resolve(path or ".", workspace=given["workspace"], color=given["color"], in_context=True)
    with opened(path or ".", settings) as engine:
        asked = replace(asked, base=below(engine.root, Path.cwd()) or "")
        with indexing(engine, settings) as bar:
            answer = engine.exact.grep(asked, on_progress=bar)
        shown = path_shower(engine.root, path)
        if given["as_json"]:
            from findling.faces.cli.output.json_output import dump

            messages = (dump(one) for file in answer.files for one in grep_messages(file, shown(file)))
            write("".join(messages))
        else:
            is_file = is_only and path is not None and Path(path).is_file()
            color = use_color(settings["output.color"], sys.stdout)
            look = View(engine.root, color=color, terminal=sys.stdout.isatty())
            view = GrepView(asked, shown, look, numbers=given["numbers"], with_paths=not is_file)
            write("".join(render_grep(answer, view)), styled=True)
        LocalClient(engine, settings=settings).finish()
    note_each(answer.degraded)
    if given["explain"]:
        note(f"{answer.strategy}: {counted(answer.searched, 'text')} searched, {counted(answer.total, 'line')} match")
    return answer
