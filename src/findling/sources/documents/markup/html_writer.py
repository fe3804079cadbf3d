"""Writer of HTML as text: paragraphs, headings, lists, tables and code, each with its line."""

from __future__ import annotations

import re
from html import unescape

from findling.sources.documents.markup.html_tables import Cell, Table
from findling.sources.extracted import TextBuilder

_LINE_MARK = " \x01="  # beginning of the attributes of a marked tag
_BLOCK_NAMES = (
    "p|div|h[1-6]|li|t[rdh]|d[td]|pre|br|hr|[uod]l|table|section|article|main|header|footer|aside|nav|summary|details"
    "|blockquote|figcaption|caption|form|fieldset|address|center|body|textarea|legend"
)
# Only white space, `/` or `>` may follow a name: a mark would break the end of a comment such as `<!--<p-->`. Inside a
# quoted value or a comment a mark does no harm. A pattern that ignores case takes twice the time.
_FIRST_BLOCK_TAG = re.compile(rf"(<(?:{_BLOCK_NAMES}|{_BLOCK_NAMES.upper()})(?=[\s/>]))[^\n]*")
_MARK = re.compile(' \x01="?([0-9]+)')
_UNPARSED_MARK = re.compile(" \x01=[0-9]+ ")
_FIRST_LINE_END_OF_PRE = re.compile(r"<(?:pre|PRE)\b[^<>]*>(?=\n)")
_MAX_HEADING = 300  # longer ones are paragraphs in large type
_MAX_CELL = 1000  # cells with more text in several blocks arrange a page
_LONG_BLOCK = 2000
_BREAK = "\v"  # a `<br>` within a run of text: no line of the file, and white space elsewhere
_INPUTS_WITHOUT_TEXT = frozenset("checkbox color date file hidden image password radio range".split())


def with_line_marks(markup: str) -> str:
    """The markup, whose lines end with a line feed, with the first block tag of each line marked."""
    markup = markup.replace("\x01", "")
    parts: list[str] = []
    line, end = 1, 0
    for match in _FIRST_BLOCK_TAG.finditer(markup):
        start, end = end, match.end(1)
        line += markup.count("\n", start, end)
        parts += markup[start:end], f"{_LINE_MARK}{line} "
    parts.append(markup[end:])
    marked = "".join(parts)
    # The parser drops a line break right after `<pre>`; a second one keeps the count of lines.
    return _FIRST_LINE_END_OF_PRE.sub("\\g<0>\n", marked)


def without_line_marks(text: str) -> str:
    """The text without the marks of tags that the parser took for text."""
    return _UNPARSED_MARK.sub("", text) if "\x01" in text else text


class HtmlWriter:
    """Position in the page: the run of text, the line of the file, the heading, lists and tables around."""

    def __init__(self, builder: TextBuilder, last_line: int = 0) -> None:
        self.run: list[str] = []
        self._builder = builder
        self._last_line = last_line
        self._line = 1
        self._heading_level = 0
        self._list_depth = 0
        self._pre_depth = 0
        self._prefix = ""
        self._wrote_lines = False
        self._tables: list[Table] = []

    def end(self) -> None:
        while self._pre_depth:
            self.end_preformatted("", "")
        self.flush()
        while self._tables:
            self.end_table("", "")
        self._flush_prefix()

    def block(self, name: str, attributes: str) -> None:
        if self._pre_depth:
            self.run.append(_BREAK)
        elif self._heading_level:
            self.run.append(" ")
        else:
            if self.run:
                self.flush()
            if attributes:  # a call less for most tags
                self._move_to(attributes)

    def break_line(self, name: str, attributes: str) -> None:
        begins_paragraph = "".join(self.run[-2:]).rstrip(" \n").endswith(_BREAK)
        if begins_paragraph and not self._pre_depth:
            self.block(name, attributes)
        else:
            self.run.append(_BREAK)

    def space(self, name: str, attributes: str) -> None:
        self.run.append(" ")

    def image(self, name: str, attributes: str) -> None:
        self.run += (" ", _attribute(attributes, "alt"), " ")

    def form_input(self, name: str, attributes: str) -> None:
        self.run.append(" ")
        if _attribute(attributes, "type").lower() not in _INPUTS_WITHOUT_TEXT:
            self.run += (_attribute(attributes, "value"), " ", _attribute(attributes, "placeholder"), " ")

    def heading(self, name: str, attributes: str) -> None:
        if not self._pre_depth:
            self._begin_structure(attributes)
            self._heading_level = int(name[1])

    def end_heading(self, name: str, attributes: str) -> None:
        if not self._pre_depth:
            self.flush()
            self._heading_level = 0

    def preformatted(self, name: str, attributes: str) -> None:
        if not self._pre_depth:
            self._begin_structure(attributes)
        self._pre_depth += 1

    def end_preformatted(self, name: str, attributes: str) -> None:
        if self._pre_depth == 1:
            self._flush_preformatted()
        self._pre_depth = max(self._pre_depth - 1, 0)

    def item_list(self, name: str, attributes: str) -> None:
        self.block(name, attributes)
        self._flush_prefix()
        if not self._list_depth:
            self._separate_lines()
        self._list_depth += 1

    def end_item_list(self, name: str, attributes: str) -> None:
        self.block(name, attributes)
        self._flush_prefix()
        self._list_depth = max(self._list_depth - 1, 0)

    def item(self, name: str, attributes: str) -> None:
        self.block(name, attributes)
        self._flush_prefix()
        self._prefix = "- "

    def end_item(self, name: str, attributes: str) -> None:
        self.block(name, attributes)
        self._prefix = ""

    def term(self, name: str, attributes: str) -> None:
        self.block(name, attributes)
        self._flush_prefix()

    def end_term(self, name: str, attributes: str) -> None:
        if self._open_cell or self._pre_depth:
            self.block(name, attributes)
        else:
            line, text = self._take_run()
            if text:
                self._place(line)
                self._prefix = f"{text}: "

    def table(self, name: str, attributes: str) -> None:
        if not self._pre_depth:
            self._begin_structure(attributes)
            self._separate_lines()
        self._tables.append(Table('role="presentation"' in attributes))

    def end_table(self, name: str, attributes: str) -> None:
        if self._tables:
            self._end_row()
            self._tables.pop()

    def row(self, name: str, attributes: str) -> None:
        self._end_row()
        self._move_to(attributes)

    def cell(self, name: str, attributes: str) -> None:
        self.block(name, attributes)
        if self._tables and not self._tables[-1].is_layout:
            self._tables[-1].begin_cell(name, attributes)

    def end_cell(self, name: str, attributes: str) -> None:
        self.block(name, attributes)
        if self._tables:
            self._tables[-1].cell = None

    @property
    def _open_cell(self) -> Cell | None:
        return self._tables[-1].cell if self._tables else None

    def _move_to(self, attributes: str) -> None:
        if attributes.startswith(_LINE_MARK):  # few are: the first one of each line
            mark = _MARK.match(attributes)
            self._line = int(mark[1]) if mark else 0

    def _place(self, line: int) -> None:
        if self._last_line:  # a parser that moves text out of a broken table moves line ends, too
            self._builder.place("", min(line, self._last_line))

    def _take_run(self) -> tuple[int, str]:
        """Line of the file and text since the end of the last block, one line for each `<br>`."""
        text = self.run[0] if len(self.run) == 1 else "".join(self.run)
        self.run.clear()
        first_line = self._line
        if "\n" in text:
            self._line += text.count("\n")
            first_line += text.count("\n", 0, len(text) - len(text.lstrip()))
        if "&" in text:
            text = unescape(text)
        text = without_line_marks(text)
        if _BREAK not in text:
            return first_line, " ".join(text.split())
        return first_line, "\n".join(filter(None, (" ".join(part.split()) for part in text.split(_BREAK))))

    def flush(self) -> None:
        run = self.run
        if not run:
            return
        if len(run) == 1 and run[0].isspace():  # every second one: the line end between two blocks
            self._line += run[0].count("\n")
            run.clear()
            return
        line, text = self._take_run()
        if not text:
            return
        if cell := self._open_cell:
            cell.add(line, text)
            if cell.size > _MAX_CELL and len(cell.blocks) > 1:
                self._leave_table_row()
        else:
            self._write(line, text)

    def _write(self, line: int, text: str) -> None:
        self._place(line)
        if self._heading_level and len(text) <= _MAX_HEADING:
            self._builder.heading(text, self._heading_level)
        elif self._list_depth or self._prefix:
            for item in (self._prefix + text).split("\n"):
                self._builder.line(item)
            self._prefix = ""
            self._wrote_lines = True
            return
        else:
            self._builder.paragraph(text)
        self._wrote_lines = False

    def _flush_prefix(self) -> None:
        """Write a term that has no definition, or one that begins with a list or a table."""
        if self._prefix.endswith(": "):
            self._builder.line(self._prefix.removesuffix(": "))
            self._wrote_lines = True
        self._prefix = ""

    def _separate_lines(self) -> None:
        """An empty line between two lists or tables."""
        if self._wrote_lines and not self._open_cell:
            self._builder.end_paragraph()
            self._wrote_lines = False

    def _begin_structure(self, attributes: str) -> None:
        """End what cannot hold a heading, a table or code: a run of text, a term, a row."""
        self._leave_table_row()
        self._flush_prefix()
        self._move_to(attributes)

    def _flush_preformatted(self) -> None:
        raw = "".join(self.run)
        self.run.clear()
        line = self._line
        text = without_line_marks(unescape(raw)).replace(_BREAK, "\n").replace("\xa0", " ")
        for part in _parts_of_block(text):
            if not part.isspace():
                self._place(line + part.count("\n", 0, len(part) - len(part.lstrip())))
                self._builder.block(part)
                self._wrote_lines = False
            line += part.count("\n")
        self._line = line

    def _end_row(self) -> None:
        self.flush()
        if not self._tables or self._tables[-1].is_layout:
            return
        table = self._tables[-1]
        row = table.end_row()
        if not row:
            return
        line = table.row_text(row)
        filled = [cell for cell in row if cell.blocks]
        if len(filled) == 1 and not table.has_header:
            for block in filled[0].blocks:
                self._write(*block)
        elif filled:
            self._place(filled[0].blocks[0][0])
            self._builder.line(line)
            self._wrote_lines = True

    def _leave_table_row(self) -> None:
        """Write the cells of the row so far one by one: the table only arranges what stands in it."""
        self.flush()
        if self._tables and not self._tables[-1].is_layout and self._tables[-1].row:
            self._tables[-1].is_layout = True
            for cell in self._tables[-1].end_row():
                for line, text in cell.blocks:
                    self._write(line, text)


def _attribute(attributes: str, name: str) -> str:
    """The value of an attribute, still escaped."""
    start = attributes.find(f' {name}="')
    if start < 0:
        return ""
    start += len(name) + 3
    return attributes[start : attributes.find('"', start)]


def _parts_of_block(text: str) -> list[str]:
    """A long block in parts that end at empty lines, so that each can have its place."""
    parts = []
    start = 0
    while (cut := text.find("\n\n", start + _LONG_BLOCK)) >= 0:
        parts.append(text[start : cut + 2])
        start = cut + 2
    parts.append(text[start:])
    return parts
