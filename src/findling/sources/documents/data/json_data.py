"""JSON and its relatives (JSON Lines, JSON5, JSON with comments): one line for every value, with its path.

The reader never gives up: a token that does not fit becomes plain text. So a missing
quote or a cut-off file costs a path, not the text.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import lru_cache

from findling.sources.extracted import Extracted, Properties, Source, TextBuilder, paired_surrogates
from findling.sources.files.file_text import decode_data
from findling.text.analysis.lines import with_plain_breaks

_MAX_LINE = 200  # characters of short values that share a line
_MAX_PATH = 400  # a path that is longer is cut: thousands of nested arrays must not cost their number squared
_MAX_INTEGERS = 1000
_MAX_FLOATS = 100  # the shortest embeddings have 128
_MIN_BLOB = 1000
_MIN_BLOB_WORD = 60  # base64 comes in lines of 64 or 76 characters, the words of prose and code are far shorter
_LINE = re.compile(r"[^\n]++")
_TOKEN = re.compile(
    r"""
    [\s,]*+
    (?:("[^"\\\n]*+(?:\\.[^"\\\n]*+)*+"|'[^'\\\n]*+(?:\\.[^'\\\n]*+)*+'|[\w$][\w$-]*+)\s*+:\s*+)?
    (?:"([^"\\\n]*+(?:\\.[^"\\\n]*+)*+)"
    |  ([\w.+-]++)
    |  \[([\s\d.,eE+-]*+)\]
    |  ([\[{])
    |  ([\]}])
    |  (//[^\n]*+|/\*.*?(?:\*/|\Z)|\#[^\n]*+)
    |  '([^'\\\n]*+(?:\\.[^'\\\n]*+)*+)'
    |  (.)
    )""",
    re.VERBOSE | re.DOTALL,
)
_STRING, _ATOM, _NUMBERS, _OPEN, _CLOSE, _COMMENT, _SINGLE_QUOTED = range(2, 9)
_LITERALS = frozenset("true false null undefined NaN Infinity None True False".split())
_NUMBER = re.compile(r"[^\s,]++")
_NUMBER_START = frozenset("+-.0123456789")
_ODD_KEY = re.compile(r"""[\s.\[\]"':]|^$""")
_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|x([0-9a-fA-F]{2})|(.))", re.DOTALL)
_ESCAPED = {"n": "\n", "t": "\t", "r": "\n", "b": "", "f": "\n", "v": "\n", "0": "", "\n": ""}


def extract(source: Source) -> Extracted:
    """Every key and value of a JSON document. Raises `UnreadableError`."""
    text = with_plain_breaks(decode_data(source.data)[0])
    builder = TextBuilder(source.limit)
    reader = _JsonReader(text, builder)
    if _holds_a_record_per_line(source.name, text):
        for line in _LINE.finditer(text):
            reader.read_record(*line.span())
        return builder.extracted()
    reader.read(0, len(text))
    return builder.extracted(Properties(title=reader.title))


def _holds_a_record_per_line(name: str, text: str) -> bool:
    """By its name, unless the first line only opens a record that continues below it."""
    first = _LINE.search(text)
    return name.lower().endswith((".jsonl", ".ndjson")) and first is not None and first[0].strip() not in ("{", "[")


@dataclass(slots=True)
class _Frame:
    """An object or array that is being read; the bracket of the outermost one is empty.

    `items` are the scalars of an array that are not written yet: index, offset, text, count of numbers in it.
    """

    bracket: str
    path: str
    key: str | None = None
    empty: bool = True
    index: int = 0
    items: list[tuple[int, int, str, int]] = field(default_factory=list)
    numbers: int = 0


class _JsonReader:
    """Turns tokens into lines of text; the stack is explicit, so that no depth of nesting is too deep."""

    def __init__(self, text: str, builder: TextBuilder) -> None:
        self.title = ""
        self._text = text
        self._builder = builder
        self._frame = _Frame("", "")
        self._parents: list[_Frame] = []
        self._open = {"{": 0, "[": 0}
        self._junk_start, self._junk_line_end = -1, 0
        self._line, self._line_offset = 1, 0
        self._paragraph_depth = 2

    def read_record(self, start: int, end: int) -> None:
        """Read one line of a file that holds a record per line."""
        self._paragraph_depth = 0
        if not self._builder.full:
            self.read(start, end)
            self._builder.end_paragraph()

    def read(self, start: int, end: int) -> None:
        """Read a part of the text; what is open at its end is closed."""
        end = start + len(self._text[start:end].rstrip(" \t\n\r\f\v,"))  # so that every match is short
        for token in _TOKEN.finditer(self._text, start, end):
            kind = token.lastindex
            if kind == _STRING:
                self._scalar(token, token[2], 0)
            elif kind == _ATOM and (token[3][0] in _NUMBER_START or token[3] in _LITERALS):
                self._scalar(token, token[3], int(token[3] not in _LITERALS))
            elif kind == _OPEN:
                self._open_frame(token)
            elif kind == _CLOSE:
                self._close_frame(token)
            elif kind == _NUMBERS:
                self._number_array(token)
            elif kind == _SINGLE_QUOTED:
                self._scalar(token, token[8], 0)
            elif kind == _COMMENT:
                self._comment(token)
            else:
                self._junk(token)
            if self._builder.full:
                break
        self._end_junk(end)
        while self._parents:
            self._leave_frame(end)
        self._write_items(self._frame)

    def _scalar(self, token: re.Match[str], raw: str, numbers: int) -> None:
        frame = self._frame
        key = token[1] or frame.key
        if self._junk_start >= 0:
            if key is None and token.start() <= self._junk_line_end:
                return
            self._end_junk(token.start())
        if key is None:
            if frame.bracket == "{":
                self._junk(token)
                return
            frame.empty = False
            frame.items.append((frame.index, token.end(), _value(raw), numbers))
            frame.index += 1
            frame.numbers += numbers
            return
        frame.key = None
        frame.empty = False
        path, text = _member_path(frame.path, key), _value(raw)
        if path in ("title", "name") and (not self.title or path == "title") and token.lastindex != _ATOM:
            self.title = text
        self._write(path, text, token.end())

    def _open_frame(self, token: re.Match[str]) -> None:
        self._end_junk(token.start())
        frame = _Frame(token[5], self._child_path(token[1]))
        self._parents.append(self._frame)
        self._frame = frame
        self._open[frame.bracket] += 1

    def _close_frame(self, token: re.Match[str]) -> None:
        self._end_junk(token.start())
        key = token[1] or self._frame.key
        if key is not None:
            self._frame.empty = False
            self._write(_member_path(self._frame.path, key), "", token.start(6))
        bracket = "{" if token[6] == "}" else "["
        while self._open[bracket]:
            if self._leave_frame(token.start(6)) == bracket:
                break

    def _leave_frame(self, offset: int) -> str:
        frame = self._frame
        self._write_items(frame)
        if frame.empty:
            self._write(frame.path, "{}" if frame.bracket == "{" else "[]", offset)
        self._open[frame.bracket] -= 1
        self._frame = self._parents.pop()
        depth = len(self._parents) + 1
        is_record = frame.bracket == "{" and self._frame.bracket == "["
        if depth <= self._paragraph_depth + is_record and self._paragraph_depth:
            self._builder.end_paragraph()
        return frame.bracket

    def _number_array(self, token: re.Match[str]) -> None:
        self._end_junk(token.start())
        frame = self._frame
        numbers = [(token.start(4) + match.start(), match[0]) for match in _NUMBER.finditer(token[4])]
        if frame.bracket == "[" and token[1] is None:
            frame.empty = False
            item = f"[{', '.join(number for _, number in numbers)}]" if len(numbers) <= _MAX_INTEGERS else ""
            frame.items.append((frame.index, token.start(4), item, len(numbers)))
            frame.index += 1
            frame.numbers += len(numbers)
            return
        array = _Frame("[", self._child_path(token[1]))
        array.items = [(index, offset, number, 1) for index, (offset, number) in enumerate(numbers)]
        array.numbers = len(numbers)
        self._write_items(array)
        if not numbers:
            self._write(array.path, "[]", token.end())

    def _comment(self, token: re.Match[str]) -> None:
        self._frame.key = token[1] or self._frame.key
        if self._junk_start < 0 or token.start() > self._junk_line_end:
            self._end_junk(token.start())
            self._write_items(self._frame)
            self._write("", token[7], token.start(7))

    def _junk(self, token: re.Match[str]) -> None:
        start = token.end() - len(token[0].lstrip(" \t\n\r\f\v,"))
        if self._junk_start < 0 or start > self._junk_line_end:
            self._end_junk(token.start())
            self._junk_start = start
            line_end = self._text.find("\n", start)
            self._junk_line_end = line_end if line_end >= 0 else len(self._text)

    def _end_junk(self, end: int) -> None:
        if self._junk_start >= 0:
            self._write_items(self._frame)
            self._write("", self._text[self._junk_start : end].rstrip(", \t\n"), self._junk_start)
            self._frame.empty = False
            self._junk_start = -1

    def _child_path(self, key: str | None) -> str:
        """The path of an object or array that begins here."""
        frame = self._frame
        key = key or frame.key
        frame.key = None
        frame.empty = False
        path = frame.path if key is None else _member_path(frame.path, key)
        if key is None and frame.bracket == "[":
            self._write_items(frame)
            frame.index += 1
            path = f"{path}[{frame.index - 1}]"
        return path if len(path) <= _MAX_PATH else path[:_MAX_PATH] + "…"

    def _write_items(self, frame: _Frame) -> None:
        """Write the scalars of an array, as many on a line as fit; of long vectors only their length."""
        if not frame.items:
            return
        items, frame.items = frame.items, []
        is_vector = frame.numbers > _MAX_INTEGERS or (
            frame.numbers > _MAX_FLOATS and any("." in text for _, _, text, numbers in items if numbers)
        )
        start, width = 0, 0
        texts: list[str] = []
        for index, offset, text, numbers in items:
            if numbers and is_vector:
                continue
            is_long = len(text) > _MAX_LINE
            if texts and (is_long or width + len(text) > _MAX_LINE):
                self._write(frame.path, ", ".join(texts), start)
                texts, width = [], 0
            if is_long:
                self._write(f"{frame.path}[{index}]" if frame.bracket else "", text, offset)
                continue
            start = start if texts else offset
            texts.append(text)
            width += len(text) + 2
        if texts:
            self._write(frame.path, ", ".join(texts), start)
        if is_vector:
            self._write(frame.path, f"{frame.numbers:,} numbers", items[-1][1])
        frame.numbers = 0

    def _write(self, path: str, value: str, offset: int) -> None:
        text = f"{path}: {value}" if path else value
        is_paragraph = len(value) > _MAX_LINE and "\n" in value
        if is_paragraph:
            self._builder.end_paragraph()
        self._line += self._text.count("\n", self._line_offset, offset)
        self._line_offset = offset
        self._builder.place("", self._line)
        if is_paragraph:
            self._builder.paragraph(text)
        else:
            self._builder.line(text)


def _member_path(path: str, key: str) -> str:
    step = _step(key)
    return path + step if path else step.removeprefix(".")


@lru_cache(maxsize=4096)
def _step(key: str) -> str:
    if key[0] in "\"'":
        key = _unescaped(key[1:-1])
    return f'["{" ".join(key.split())}"]' if _ODD_KEY.search(key) else "." + key


def _value(raw: str) -> str:
    """The text of a string; what is packed or drawn rather than written is only measured."""
    text = _unescaped(raw) if "\\" in raw else raw
    if len(text) > _MIN_BLOB and text.isascii() and len(text) > _MIN_BLOB_WORD * len(text.split()):
        return f"<{len(text):,} characters>"
    return text


def _unescaped(raw: str) -> str:
    return paired_surrogates(_ESCAPE.sub(_unescaped_character, raw))


def _unescaped_character(match: re.Match[str]) -> str:
    code = match[1] or match[2]
    return chr(int(code, 16)) if code else _ESCAPED.get(match[3], match[3])
