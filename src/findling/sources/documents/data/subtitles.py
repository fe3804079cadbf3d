"""Subtitles and timed lyrics: what is said, each cue a line that knows its time."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from typing import NamedTuple

from findling.sources.extracted import Extracted, Properties, Source, TextBuilder, labelled
from findling.sources.files.file_text import decode

_PAUSE = 3.0
_ROLL_UP = 0.5  # captions that roll up follow each other without a gap
_TIME = r"(?:(\d{1,4}):)?(\d{1,3}):(\d{1,2}(?:[.,]\d{1,9})?)"
_CUE = re.compile(rf"\s*{_TIME}\s*(?:-{{2,3}}>|,)\s*{_TIME}(?:\s.*)?$")
_FRAME = re.compile(r"\s*(?:\d+\s*$|WEBVTT)")
_LYRIC = re.compile(rf"\s*\[{_TIME}\]")
_LYRIC_NOTE = re.compile(r"\s*\[(ti|ar):(.*)\]\s*$", re.IGNORECASE)
_SCRIPT_TITLE = re.compile(r"Title:\s*(?!<untitled>|Default)(.*)")
_SPEAKER = re.compile(r"<v(?:\.[^\s>]*)?\s+([^>]+)>")
_TAG = re.compile(r"</?[A-Za-z][^<>]*>|</?[\d:.]+>|\{[\\=][^{}]*\}|\{[A-Za-z]:[^{}]*\}")
_SCRIPT_TAG = re.compile(r"\{([^{}]*)\}")
_DRAWING_SCALE = re.compile(r"\\p(\d+)")
_SCRIPT_BREAK = re.compile(r"\\[Nnh]")


def extract(source: Source) -> Extracted:
    """The text of subtitles, without styling; a long pause begins a new paragraph. Raises `UnreadableError`."""
    lines = decode(source.data)[0].replace("\r\n", "\n").replace("\r", "\n").split("\n")
    notes = dict(_notes(lines))
    builder = TextBuilder(source.limit)
    head = [line for line in lines[:200] if line.strip()]
    if any(line.startswith(("[Script Info]", "[Events]", "Dialogue:")) for line in head):
        found = _script_cues(lines)
    elif source.name.lower().endswith(".lrc") or (head and _LYRIC.match(head[0])):
        found = _lyric_cues(lines)
    else:
        found = _block_cues(lines)
    cues = sorted(found, key=lambda cue: cue.start)
    if cues:
        _write_cues(builder, cues)
    else:
        _write_lines(builder, lines)
    return builder.extracted(Properties(title=notes.get("title", ""), author=notes.get("author", "")))


class _Cue(NamedTuple):
    """Caption from `start` to `end`, in seconds; `line` is that of the file, counted from 1."""

    start: float
    end: float
    line: int
    texts: list[str]


def _write_cues(builder: TextBuilder, cues: list[_Cue]) -> None:
    previous_end = cues[0].start
    for cue in _without_repetitions(cues):
        if cue.start - previous_end > _PAUSE:
            builder.end_paragraph()
        previous_end = cue.end
        second = int(cue.start)
        builder.place(f"{second // 3600:02}:{second // 60 % 60:02}:{second % 60:02}", cue.line)
        builder.line(" ".join(cue.texts))
        if builder.full:
            break


def _write_lines(builder: TextBuilder, lines: list[str]) -> None:
    """Lyrics without times, or a file that is not what its name says: its lines as they are."""
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            builder.end_paragraph()
        elif not _CUE.match(line) and not _FRAME.match(line):
            builder.place("", number)
            builder.line(line)
        if builder.full:
            break


def _block_cues(lines: list[str]) -> Iterator[_Cue]:
    """Cues of SRT, VTT and SBV: a line with two times, then text. An empty line ends it in VTT, where notes follow."""
    is_vtt = any(line.startswith("WEBVTT") for line in lines[:3])
    found = [(number, times) for number, line in enumerate(lines) if (times := _CUE.match(line))]
    ends = [*(number for number, _ in found[1:]), len(lines)]
    for (number, times), end in zip(found, ends, strict=False):
        body = lines[number + 1 : end]
        if is_vtt:
            body = body[: body.index("")] if "" in body else body
        else:
            body = _without_counter(body, is_last=end == len(lines))
        texts = [text for line in body if (text := _plain(line))]
        if texts:
            yield _Cue(_seconds(times.groups()[:3]), _seconds(times.groups()[3:]), number + 2, texts)


def _without_counter(body: list[str], is_last: bool) -> list[str]:
    """The lines of a cue without the number of the next one at their end."""
    while body and not body[-1].strip():
        body.pop()
    return body[:-1] if body and not is_last and body[-1].strip().isdecimal() else body


def _script_cues(lines: list[str]) -> Iterator[_Cue]:
    """Cues of SSA and ASS; the `Format` line above them names their columns."""
    columns = ["layer", "start", "end", "style", "name", "marginl", "marginr", "marginv", "effect", "text"]
    for number, line in enumerate(lines, start=1):
        kind, _, rest = line.partition(":")
        if kind == "Format" and "text" in rest.lower():
            columns = [column.strip().lower() for column in rest.split(",")]
        elif kind == "Dialogue":
            values = dict(zip(columns, rest.split(",", len(columns) - 1), strict=False))
            times = _CUE.match(f"{values.get('start', '')} --> {values.get('end', '')}")
            text = _plain(_SCRIPT_BREAK.sub(" ", _without_drawings(values.get("text", ""))))
            if times and text:
                text = labelled(values.get("name", "").strip(), text)
                yield _Cue(_seconds(times.groups()[:3]), _seconds(times.groups()[3:]), number, [text])


def _without_drawings(text: str) -> str:
    """The text without what stands in braces; between the marks `\\p1` and `\\p0` there are shapes, no words."""
    shown, is_drawing = [], False
    for index, part in enumerate(_SCRIPT_TAG.split(text)):
        if index % 2 and (scales := _DRAWING_SCALE.findall(part)):
            is_drawing = scales[-1] != "0"
        elif not index % 2 and not is_drawing:
            shown.append(part)
    return "".join(shown)


def _lyric_cues(lines: list[str]) -> Iterator[_Cue]:
    """Lines of lyrics; a line with several times is sung several times."""
    for number, line in enumerate(lines, start=1):
        starts: list[float] = []
        while time := _LYRIC.match(line):
            starts.append(_seconds(time.groups()))
            line = line[time.end() :]
        if text := _plain(line):
            yield from (_Cue(start, start + _PAUSE, number, [text]) for start in starts)


def _without_repetitions(cues: list[_Cue]) -> Iterator[_Cue]:
    """Leave out what rolling captions show again: lines of the cue before, or the beginning of the next."""
    shown: list[str] = []
    shown_until = float("-inf")
    for cue, following in zip(cues, [*cues[1:], None], strict=True):
        is_next = cue.start - shown_until < _ROLL_UP
        texts = [text for text in cue.texts if not (is_next and text in shown)]
        shown, shown_until = cue.texts, max(cue.end, cue.start)
        said = " ".join(texts) + " "
        if following and following.start - shown_until < _ROLL_UP and " ".join(following.texts).startswith(said):
            continue  # the next cue says it again, and more
        if texts:
            yield cue._replace(texts=texts)


def _notes(lines: list[str]) -> Iterator[tuple[str, str]]:
    """Title and author, where the head of the file names them."""
    for line in lines[:50]:
        if note := _LYRIC_NOTE.match(line):
            yield "title" if note[1].lower() == "ti" else "author", note[2].strip()
        elif title := _SCRIPT_TITLE.match(line):
            yield "title", title[1].strip()


def _plain(line: str) -> str:
    return " ".join(html.unescape(_TAG.sub("", _SPEAKER.sub(r"\1: ", line))).split())


def _seconds(time: tuple[str | None, ...]) -> float:
    hours, minutes, seconds = time
    return int(hours or 0) * 3600 + int(minutes or 0) * 60 + float((seconds or "0").replace(",", "."))
