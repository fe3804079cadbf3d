"""Lines that match, as ripgrep prints them: `path:line:text` in a pipe, headings and colours on a terminal, or JSON."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from findling.domain.reports import GrepAnswer, GrepRequest, MatchedFile, MatchedLine
from findling.faces.cli.output.rendering import MATCH, NUMBER, PATH, View


class GrepView(NamedTuple):
    """The look of lines that a request asked for."""

    asked: GrepRequest
    path: Callable[[MatchedFile], str]
    look: View
    numbers: bool
    with_paths: bool

    @property
    def has_context(self) -> bool:
        """Whether there may be gaps between lines."""
        return bool(self.asked.before or self.asked.after)


def render_grep(answer: GrepAnswer, view: GrepView) -> Iterator[str]:
    """The answer, file by file."""
    for place, file in enumerate(answer.files):
        path = view.look.painted(view.look.shown(view.path(file)), PATH)
        if view.asked.gives == "files":
            yield f"{path}\n"
        elif view.asked.gives == "counts":
            yield f"{path}:{file.total}\n" if view.with_paths else f"{file.total}\n"
        elif view.look.terminal and view.with_paths:
            yield "".join(["\n" if place else "", f"{path}\n", *_rows(file, "", view)])
        else:
            gap = "--\n" if place and view.has_context else ""
            yield "".join([gap, *_rows(file, path if view.with_paths else "", view)])


def _rows(file: MatchedFile, path: str, view: GrepView) -> Iterator[str]:
    last = 0
    for line in file.lines:
        if last and view.has_context and line.number > last + 1:
            yield "--\n"
        last = line.number
        mark = ":" if line.is_match else "-"
        lead = f"{path}{mark}" if path else ""
        lead += f"{view.look.painted(str(line.number), NUMBER)}{mark}" if view.numbers else ""
        if view.asked.only_matching and line.is_match and line.spans:
            for start, end in line.spans:
                yield f"{lead}{view.look.painted(_shown(line.text[start:end], view), MATCH)}\n"
        elif not view.asked.only_matching or not line.is_match:
            yield f"{lead}{_text(line, view)}\n"


def _text(line: MatchedLine, view: GrepView) -> str:
    return view.look.marked(_shown(line.text.removesuffix("\n"), view), line.spans)


def _shown(text: str, view: GrepView) -> str:
    return view.look.shown(text.removesuffix("\r")) if view.look.terminal else text


def grep_messages(file: MatchedFile, path: str) -> Iterator[dict[str, Any]]:
    """A file as the messages of `rg --json`: begin, match, context, end."""
    named = {"path": {"text": path}}
    yield {"type": "begin", "data": named}
    for line in file.lines:
        found = [_submatch(line.text, start, end) for start, end in line.spans]
        place = {"line_number": line.number, "absolute_offset": line.offset}
        data = {**named, "lines": {"text": line.text}, **place, "submatches": found}
        yield {"type": "match" if line.is_match else "context", "data": data}
    stats = {"matched_lines": file.total, "matches": sum(len(line.spans) for line in file.lines)}
    yield {"type": "end", "data": {**named, "binary_offset": None, "extracted": file.is_extract, "stats": stats}}


def summary_message(answers: list[GrepAnswer]) -> dict[str, Any]:
    """The last message: the sums, and how the lines were found."""
    files = [file for answer in answers for file in answer.files]
    stats = {
        "searches": sum(answer.searched for answer in answers),
        "searches_with_match": len(files),
        "matched_lines": sum(file.total for file in files),
        "matches": sum(len(line.spans) for file in files for line in file.lines),
    }
    degraded = [{"what": one.what, "fix": one.fix} for answer in answers for one in answer.degraded]
    strategies = list(dict.fromkeys(answer.strategy for answer in answers))
    is_cut = any(answer.is_cut for answer in answers)
    data = {"stats": stats, "strategy": "; ".join(strategies), "is_cut": is_cut, "degraded": degraded}
    return {"type": "summary", "data": data}


def _submatch(text: str, start: int, end: int) -> dict[str, Any]:
    first = len(text[:start].encode("utf-8", "surrogatepass"))
    length = len(text[start:end].encode("utf-8", "surrogatepass"))
    return {"match": {"text": text[start:end]}, "start": first, "end": first + length}
