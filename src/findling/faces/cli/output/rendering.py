"""Answers as text: grouped for people, `path:line:column:text` for editors, file names alone, JSON for programs.

The grouped form is the same on a terminal and in a pipe, but for colours. Every hit starts with a line that holds
`path:line`, or the path and a place such as `p. 12` in files without lines; then come lines of the file, verbatim but
for very long ones, with their numbers or places. Messages around one that was found in a chat, and other passages of a
hit that stands for several, are shown dimly.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from findling.domain.results import Hit, Line, Passage, ScorePart, SearchAnswer
from findling.domain.values import counted
from findling.faces.cli.output.terminal import display_width, joins_previous, show_controls

FORMATS = ("text", "files", "vimgrep", "json", "jsonl")

PATH, NUMBER, MATCH, _DIM, _BOLD = "35", "32", "1;31", "2", "1"

_SCORE_COLUMN = 74
_LONGEST_LINE = 400
"""Longer lines are cut around their first match: one line of minified code would fill the screen."""


_ID = re.compile(r"[a-z][\w-]*:")
"""The beginning of an id of what is no file."""

_LONGEST_ALSO = 100
"""Characters of another passage that are shown."""


class View(NamedTuple):
    """The look of an answer: the folder from which paths are seen, with colour or not, for a terminal or not.

    Paths of hits are relative to `root`; they are shown relative to `here`, or absolute without it.
    """

    root: Path
    here: Path | None = None
    color: bool = False
    terminal: bool = False
    editor_uri: str = ""
    explain: bool = False

    def shown(self, text: str) -> str:
        """A name or a line of a file: on a terminal with its control characters made visible."""
        return show_controls(text) if self.terminal else text

    def painted(self, text: str, code: str) -> str:
        """The text in a colour, where there are any."""
        return f"\x1b[{code}m{text}\x1b[0m" if self.color and text else text

    def marked(self, text: str, spans: Iterable[tuple[int, int]]) -> str:
        """The text with its matches in colour."""
        return highlight(text, spans, f"\x1b[{MATCH}m", "\x1b[0m") if self.color else text


def make_view(root: Path, *, color: bool, terminal: bool, editor_uri: str = "", explain: bool = False) -> View:
    """A view from the current folder: paths are relative to it unless the absolute ones are shorter."""
    folder, here = root.parent if root.is_file() else root, Path.cwd()
    try:
        is_near = len(os.path.relpath(folder, here)) <= len(str(folder))
    except ValueError:  # another drive
        is_near = False
    return View(folder, here if is_near else None, color, terminal, editor_uri, explain)


def render_text(answer: SearchAnswer, view: View) -> str:
    """The hits grouped by file, the file of the best hit first."""
    groups: dict[tuple[str, str], list[Hit]] = {}
    for hit in answer.hits:
        groups.setdefault((hit.workspace, hit.rid), []).append(hit)
    parts = ["".join(_render_hit(hit, view) for hit in hits) for hits in groups.values()]
    if answer.facets:
        parts.append(render_facets(answer, view))
    if view.explain:
        parts.append(_render_plan(answer, view))
    return "\n".join(parts)


def render_facets(answer: SearchAnswer, view: View) -> str:
    """A line for each property that was counted: its values, the frequent ones first, each with its number."""
    rows = []
    for name, counts in answer.facets.items():
        if name == "file":
            rows.append(_render_all(counts, view))
            continue
        values = ", ".join(f"{value} {count:,}" for value, count in counts.items()) or "none"
        rows.append(f"{view.painted(f'{name}:', _BOLD)} {view.shown(values)}\n")
    return "".join(rows)


def _render_all(counts: Mapping[str, int], view: View) -> str:
    """Every file that matches, one a line, with the number of its passages that do."""
    title = f"{counted(len(counts), 'file')} with {counted(sum(counts.values()), 'passage')} that match:"
    width = len(str(max(counts.values(), default=0)))
    rows = [view.painted(title, _BOLD)]
    for value, count in counts.items():
        path = value if _ID.match(value) else _from_here(value, view)
        rows.append(f"  {count:>{width}}  {view.painted(view.shown(path), PATH)}")
    return "".join(f"{row}\n" for row in rows)


def render_apart(title: str, hits: Sequence[Hit], view: View) -> str:
    """Hits that are no match, plainly and under a title that says so."""
    plain = view._replace(color=False, explain=False)
    return "".join([f"{title}:\n", *[_render_hit(hit, plain) for hit in hits]])


def render_vimgrep(answer: SearchAnswer, view: View) -> str:
    """One line for each matching line: path, line number, column in bytes as editors count it, the line itself."""
    rows = []
    for hit in answer.hits:
        for line in [line for line in hit.lines if line.spans] or hit.lines[:1]:
            start = line.spans[0][0] if line.spans else 0
            column = len(line.text[:start].encode("utf-8", "surrogatepass")) + 1
            path = view.shown(shown_path(hit, view))
            rows.append(f"{path}:{line.number or 1}:{column}:{_line_text(line)}\n")
    return "".join(rows)


def render_files(answer: SearchAnswer, view: View) -> str:
    """The name of each file that has a hit, best first, each once."""
    paths = [(shown_path(hit, view), *[_path_of(one, view) for one in hit.passages]) for hit in answer.hits]
    names = dict.fromkeys(name for listed in paths for name in listed)
    return "".join(f"{view.shown(name)}\n" for name in names)


def _path_of(passage: Passage, view: View) -> str:
    path = passage.rid.removeprefix("file:")
    return path if path == passage.rid else _from_here(path, view)


def shown_path(hit: Hit, view: View) -> str:
    """The path of a hit, as seen from the current folder; the resource's id when it is no file."""
    return hit.rid if not hit.path and hit.type != "file" else _from_here(hit.path, view)


def _from_here(path: str, view: View) -> str:
    return str(view.root / path) if view.here is None else os.path.relpath(view.root / path, view.here)


def highlight(text: str, spans: Iterable[tuple[int, int]], before: str, after: str) -> str:
    """The text with `before` and `after` around each span, never between a letter and its accents."""
    parts, position = [], 0
    for start, end in sorted(spans):
        start, end = max(start, position), min(end, len(text))
        while start > position and start < len(text) and joins_previous(text[start]):
            start -= 1
        while end < len(text) and joins_previous(text[end]):
            end += 1
        if start < end:
            parts += [text[position:start], before, text[start:end], after]
            position = end
    return "".join([*parts, text[position:]])


def _render_hit(hit: Hit, view: View) -> str:
    own = {(line.place, line.text) for line in hit.lines}
    around = [line for line in hit.around if (line.place, line.text) not in own]
    shown = [
        *[(line, True) for line in around if line.number < 0],
        *[(line, hit.type == "chat" and line.place != hit.place and not line.spans) for line in hit.lines],
        *[(line, True) for line in around if line.number > 0],
    ]
    told = {line.place for line, _ in shown if _tells_place(line)}
    marks = [_mark(line, is_dim, told) for line, is_dim in shown]
    # A place is told once: all lines of a chapter are in it.
    marks = [
        "" if mark and line.place and at and mark == marks[at - 1] else view.shown(mark)
        for at, (mark, (line, _)) in enumerate(zip(marks, shown, strict=True))
    ]
    width = max(map(display_width, marks), default=0)
    rows = [_header(hit, view)]
    for mark, (line, is_dim) in zip(marks, shown, strict=True):
        text = _line(line, view)
        padding, gap = " " * (width - display_width(mark)), " " if text else ""
        if is_dim:
            rows.append(view.painted(f"  {padding}{mark} │{gap}{text}", _DIM))
        else:
            rows.append(f"  {padding}{view.painted(mark, NUMBER)} │{gap}{text}")
    rows += [_also(passage, hit, view) for passage in hit.passages]
    if view.explain:
        rows += [view.painted(f"  {row}", _DIM) for row in receipt_lines(hit)]
    return "".join(f"{row}\n" for row in rows)


def _mark(line: Line, is_dim: bool, told: set[str]) -> str:
    """The mark in front of a line: its place or number, unless the line itself shows it."""
    if line.place:
        return "" if line.place in told else line.place
    return "" if is_dim else str(line.number or "")


def _tells_place(line: Line) -> bool:
    """Whether a line of a chat begins with who speaks and when, as `[2026-04-08 08:38] Ann: …` does."""
    time = line.place.rpartition(", ")[2]
    return bool(line.place) and line.text.startswith((f"[{time}] ", f"{line.place}:"))


def _also(passage: Passage, hit: Hit, view: View) -> str:
    """Another passage of a hit in one line: where it is, and its best line."""
    where = passage.place or (f"{passage.line_start}-{passage.line_end}" if passage.line_start else "")
    if passage.rid != hit.rid:
        where = f"{_path_of(passage, view)} {where}".rstrip()
    line = next((line for line in passage.lines if line.spans), passage.lines[0] if passage.lines else None)
    text = " ".join(_line_text(line).split()) if line else ""
    if len(text) > _LONGEST_ALSO:
        text = f"{text[:_LONGEST_ALSO]}…"
    row = f"  also {where}  {text}"
    return view.painted(view.shown(row), _DIM)


def _header(hit: Hit, view: View) -> str:
    location = shown_path(hit, view)
    if hit.workspace:
        location = f"[{hit.workspace}] {location}"
    if hit.place or hit.line:
        location += f" {hit.place}" if hit.place else f":{hit.line}"
    heading = hit.symbol or " › ".join(hit.heading)
    if hit.type == "chat":
        heading = hit.title or heading
    elif hit.type != "file" and hit.title and hit.heading[:1] != (hit.title,):
        heading = " › ".join((hit.title, *hit.heading))
    if hit.receipt.superseded_by:
        heading = f"{heading} (superseded by {hit.receipt.superseded_by[-1]})".lstrip()
    location, heading = view.shown(location), view.shown(heading)
    gap = "  " if heading else ""
    padding = " " * max(2, _SCORE_COLUMN - display_width(location + gap + heading))
    link = _link(view.painted(location, PATH), hit, view)
    return f"{link}{gap}{view.painted(heading, _DIM)}{padding}{view.painted(f'{hit.score:.2f}', _DIM)}"


def _line(line: Line, view: View) -> str:
    text, spans = _crop(_line_text(line), line.spans)
    return view.marked(view.shown(text), spans)


def _line_text(line: Line) -> str:
    return line.text.rstrip("\r\n")


def _crop(text: str, spans: tuple[tuple[int, int], ...]) -> tuple[str, tuple[tuple[int, int], ...]]:
    if len(text) <= _LONGEST_LINE:
        return text, spans
    start = max(0, (spans[0][0] if spans else 0) - _LONGEST_LINE // 4)
    end = start + _LONGEST_LINE
    left, right = "…" if start else "", "…" if end < len(text) else ""
    shift = len(left) - start
    inside = tuple((max(a, start) + shift, min(b, end) + shift) for a, b in spans if a < end and b > start)
    return left + text[start:end] + right, inside


def receipt_lines(hit: Hit) -> Iterator[str]:
    """The receipt of a hit in words."""
    receipt = hit.receipt
    said = [_leg_line(part) for part in receipt.parts if part.raw]
    yield f"why: {'; '.join(said) or 'it fulfils the conditions'}; score {hit.score:.4g}"
    held = [f"{part.evidence:.3f} by {part.leg}" for part in receipt.parts if part.evidence]
    factors = "".join(f" × {step.factor:.3f} {step.name}" for step in receipt.steps if step.factor != 1)
    yield f"     {' or '.join(held) or '0'}{factors} = {receipt.recomputed():.4g}"
    ranking = [part for part in receipt.parts if part.rank]
    if len(ranking) > 1:
        sums = " + ".join(f"{part.weight:.2f} × {part.normalised:.3f} {part.leg}" for part in ranking)
        yield f"     ranked by {sums} = {sum(part.value for part in ranking):.3f}"
    for step in receipt.steps:
        yield f"     {step.name} ×{step.factor:.2f}: {step.reason}"
    for match in receipt.matches:
        forms = f" as {', '.join(match.forms)}" if match.forms and match.forms != (match.term,) else ""
        yield f"     {match.term} ×{match.count} in {match.field}{forms}"
    for alias in receipt.aliases:
        origin = f"the glossary's group {alias.group}" if alias.group else "another spelling"
        yield f"     {alias.alias} ×{alias.count} for {alias.typed}: {origin}"
    if receipt.missing:
        yield f"     missing: {', '.join(receipt.missing)}"
    if receipt.superseded_by:
        yield f"     superseded by {' → '.join(receipt.superseded_by)}"
    if receipt.supersedes:
        yield f"     supersedes {' → '.join(receipt.supersedes)}"


def _leg_line(part: ScorePart) -> str:
    """The verdict of one leg about a hit."""
    rank = f"rank {part.rank}, " if part.rank else ""
    return f"{part.leg} {rank}{part.measure} {part.raw:.4g}" + (f" ({part.why})" if part.why else "")


def _render_plan(answer: SearchAnswer, view: View) -> str:
    """The way to the answer in a few sentences; `--json` has the whole plan."""
    plan, meaning = answer.plan, answer.meaning
    because = f": {plan['because']}" if plan.get("because") else ""
    ways = {"keyword": "its words", "semantic": "its meaning"}
    asked = " and ".join(ways.get(leg, leg) for leg in plan.get("legs", ())) or "its conditions"
    rows = [f"understood as {answer.understood_as}, {answer.reading}{because}", f"searched by {asked}"]
    if weighing := plan.get("weighing"):
        rows[-1] += f"; meaning weighs {weighing['alpha']:.0%}, since {weighing['because']}"
    rows += [f"then {step['name']}: {step['did']}" for step in plan.get("steps", ())]
    if meaning:
        model = f", {meaning['model']} has read {int(meaning['coverage'] * 100)}%" if meaning["model"] else ""
        rows.append(f"vectors: {meaning['speed']}{model}")
    weaker = f", {counted(answer.weaker, 'weaker one')} left out" if answer.weaker else ""
    took = sum(answer.timings_ms.values())
    rows.append(f"{count_of(answer, 'match', 'matches')}{weaker}; quality {answer.quality}; {took:.0f} ms")
    if answer.unknown_terms:
        rows.append(f"unknown terms: {', '.join(answer.unknown_terms)}")
    rows += [f"degraded: {missing}" for missing in answer.degraded]
    if glossary := plan.get("glossary"):
        rows.append(f"glossary: {', '.join(str(fired['typed']) for fired in glossary)}")
    title = view.painted("plan", _BOLD)
    return "".join(f"{row}\n" for row in [title, *[f"  {row}" for row in rows]])


def count_of(answer: SearchAnswer, one: str, several: str = "") -> str:
    """The matches of an answer with their noun, and whether there may be more of them."""
    return ("" if answer.total_is_exact else "at least ") + counted(answer.total, one, several)


def _link(text: str, hit: Hit, view: View) -> str:
    """The text as a link that terminals open (OSC 8), when the user has said what a link looks like."""
    if not (view.editor_uri and view.terminal and view.color and (hit.path or hit.type == "file")):
        return text
    from urllib.parse import quote

    address = view.editor_uri.replace("{path}", quote(str(view.root / hit.path))).replace("{line}", str(hit.line or 1))
    return f"\x1b]8;;{show_controls(address)}\x1b\\{text}\x1b]8;;\x1b\\"
