"""The outline of TeX, YAML and TOML files, in the shape of `outlines`: one pass of one pattern each.

Lines end with `\\n`. Patterns that start at a line break run over `"\\n" + text`, so that a match begins at the offset
of its line in the text.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache

from findling.text.chunking.outlines import Heading, Outline, clean_title, line_end
from findling.text.chunking.windows import Span

_TEX_PLAIN = r"[^{}\\]++|\\."
_TEX_GROUP = rf"\{{((?:{_TEX_PLAIN}|\{{(?:{_TEX_PLAIN}|\{{(?:{_TEX_PLAIN})*+\}})*+\}})*+)\}}"
_TEX = re.compile(
    r"\\(?:(?P<command>title|part|chapter|(?:sub){0,2}section|(?:sub)?paragraph|frametitle)\*?+\s*+"
    rf"(?:\[[^\]\n]*+\]\s*+)?{_TEX_GROUP}"
    r"|begin\{(?P<environment>abstract|frame|verbatim|Verbatim|lstlisting|minted|comment|alltt|equation|align|gather"
    r"|multline|eqnarray|displaymath|math|tabular|tabularx|longtable|algorithm|algorithmic|tikzpicture)(?P<star>\*?+)\}"
    rf"(?:<[^>\n]*+>)?(?:\[[^\]\n]*+\])?(?:{_TEX_GROUP})?)",
    re.DOTALL,
)
_TEX_LEVELS = {
    "title": 1,
    "part": 2,
    "chapter": 3,
    "section": 4,
    "abstract": 4,
    "subsection": 5,
    "subsubsection": 6,
    "paragraph": 7,
    "frame": 7,
    "frametitle": 7,
    "subparagraph": 8,
}
_TEX_DROPPED = re.compile(r"\\(?:label|thanks|footnote|vspace|hspace|index)\*?\{[^{}]*\}|(?<!\\)%[^\n]*\n?")
_TEX_COMMAND = re.compile(r"\\(?:[A-Za-z]+\*?|(\W))|[{}~$]")


def latex(text: str) -> Outline:
    """Title, parts, sections, paragraphs, the abstract and slides; listings, formulas and tables are blocks."""
    headings: list[Heading] = []
    blocks: list[Span] = []
    unclosed: set[str] = set()
    after = 0
    for match in _TEX.finditer(text):
        name = match["command"] or match["environment"]
        if match.start() < after or name in unclosed:
            continue
        line = text.rfind("\n", 0, match.start()) + 1
        if _is_commented(text, line, match.start()):
            continue
        level = _TEX_LEVELS.get(name)
        if level:
            source = _TEX_DROPPED.sub("", "Abstract" if name == "abstract" else match[2] or match[5] or "")
            title = clean_title(_TEX_COMMAND.sub(lambda match: match[1] or " ", source))
            start = line if not headings or headings[-1].start < line else match.start()
            if title:
                headings.append(Heading(start, level, title))
        else:
            closing = f"\\end{{{name}{match['star']}}}"
            end = text.find(closing, match.end())
            if end < 0:
                unclosed.add(name)
                continue
            after = line_end(text, end + len(closing))
            blocks.append((line, after))
    return Outline(headings, blocks)


def _is_commented(text: str, line: int, offset: int) -> bool:
    percent = text.rfind("%", line, offset)
    while percent > line and text[percent - 1] == "\\":
        percent = text.rfind("%", line, percent)
    return percent >= 0


_YAML = re.compile(
    r"""
    \n(?P<indent>[ ]*+)
    (?:-[ ]++name:[ \t]++(?P<name>[^\s|>&!{\[\#][^\n]*+)
    |  (?P<dashes>(?:-[ ]++)*+)(?=[^\s\#])
       (?:(?P<key>"[^"\n]*+"|'[^'\n]*+'|[^\s\-\#'"{}\[\]&*!|>%@`,?:][^\n:]*+):(?=\s|\Z)[ \t]*+)?
       (?:[&!]\S*+[ \t]*+)*+(?P<scalar>[|>][-+\d]*+)?[ \t]*+(?:\#[^\n]*+)?(?=\n|\Z)
    )""",
    re.VERBOSE,
)
_YAML_COMMENT = re.compile(r"[ \t]\#.*")
_YAML_DEPTH = 4
_YAML_SECTION = 700  # characters: with every nested block a section, one chunk in five had less than 200


def yaml(text: str) -> Outline:
    """Keys that open a nested block, and items that begin with their name; block scalars are blocks.

    Blocks of a few lines are left to the section around them. A heading without a title stands where a section ends
    and what follows belongs to the one around it again.
    """
    headings: list[Heading] = []
    blocks: list[Span] = []
    enclosing: list[int] = []
    padded = "\n" + text
    after: int | None = 0
    while after is not None:
        lines, after = _YAML.finditer(padded, after), None
        for match in lines:
            indent, name, dashes, key, scalar = match.groups()
            start = match.start()
            if scalar:
                column = len(indent) + (len(dashes) if key else len(dashes.rstrip()) - 1)
                dedent = _scalar_end(column).search(text, match.end() - 1)
                after = dedent.start() if dedent else len(text)
                blocks.append((start, after))
                break
            if dashes or not (name or key) or sum(end > start for end in enclosing) == _YAML_DEPTH:
                continue
            dedent = _section_end(len(indent), is_item=bool(name)).search(text, match.end() - 1)
            section_end = dedent.end() if dedent else len(text)
            if section_end - start < _YAML_SECTION:
                continue
            headings += _ends(enclosing, start)
            enclosing.append(section_end)
            title = _YAML_COMMENT.sub("", name or key).strip().strip("\"'")
            headings.append(Heading(start, len(enclosing), clean_title(title)))
    headings += _ends(enclosing, len(text))
    return Outline(headings, blocks)


def _ends(enclosing: list[int], start: int) -> list[Heading]:
    """Leave the sections that end here or further up; where one ends in between, text of the one around it follows."""
    ends: list[Heading] = []
    while enclosing and enclosing[-1] <= start:
        end = enclosing.pop()
        if ends and ends[-1].start == end:
            ends.pop()
        if end < start:
            ends.append(Heading(end, len(enclosing) + 1, ""))
    return ends


@lru_cache(maxsize=64)
def _scalar_end(column: int) -> re.Pattern[str]:
    """End of a block scalar: before a line that is not indented deeper than its key."""
    return re.compile(rf"\n(?=[ ]{{0,{column}}}\S)")


@lru_cache(maxsize=128)
def _section_end(column: int, is_item: bool) -> re.Pattern[str]:
    """End of a section; the items of a list may stand in the column of its key."""
    if is_item:
        return re.compile(rf"\n(?=[ ]{{0,{column}}}[^\s#])")
    shallower = rf"[ ]{{0,{column - 1}}}[^\s#]|" if column else ""
    return re.compile(rf"\n(?={shallower}[ ]{{{column}}}(?:[^\s#-]|-\S))")


_TOML_PART = r"""(?:"[^"\n]*+"|'[^'\n]*+'|[\w-]++)"""
_TOML = re.compile(
    rf"\n[ \t]*+\[{{1,2}}+[ \t]*+(?P<table>{_TOML_PART}(?:[ \t]*+\.[ \t]*+{_TOML_PART})*+)[ \t]*+"
    r"\]{1,2}+[ \t]*+(?=#|\n|\Z)"
    '|"""'
    "|'''"
)
_TOML_STRING = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+"|' r"'[^']*+'")
_TOML_PARTS = re.compile(_TOML_PART)


def toml(text: str) -> Outline:
    """Tables, each below the nearest one above it whose name its own begins with; multi-line strings are blocks."""
    headings: list[Heading] = []
    blocks: list[Span] = []
    enclosing: list[list[str]] = []
    after = 0
    for match in _TOML.finditer("\n" + text):
        start = match.start()
        if start < after:
            continue
        if match["table"]:
            if not _is_in_array(text, start):
                headings.append(_table(start, match["table"], enclosing))
        else:
            line = text.rfind("\n", 0, start) + 1
            end = _string_end(text, start - 1, match[0]) if not _is_in_comment(text, line, start - 1) else -1
            if end >= 0:
                after = end
                blocks.append((max(line, blocks[-1][1] if blocks else 0), end))
    return Outline(headings, blocks)


def _table(start: int, name: str, enclosing: list[list[str]]) -> Heading:
    parts = [part.strip("\"'") for part in _TOML_PARTS.findall(name)]
    while enclosing and (len(enclosing[-1]) >= len(parts) or parts[: len(enclosing[-1])] != enclosing[-1]):
        enclosing.pop()
    title = ".".join(parts[len(enclosing[-1]) if enclosing else 0 :])
    enclosing.append(parts)
    return Heading(start, len(enclosing), clean_title(title))


def _is_in_comment(text: str, line: int, offset: int) -> bool:
    return "#" in text[line:offset] and "#" in _TOML_STRING.sub("", text[line:offset])


def _is_in_array(text: str, line: int) -> bool:
    """Whether the line before ends in the middle of an array, whose last row may look like the name of a table."""
    above = line - 1
    while above >= 0 and text[above].isspace():
        above -= 1
    if above < 0 or text[above] not in ",[":
        return False
    return not text[text.rfind("\n", 0, above) + 1 : above].lstrip().startswith("#")


def _string_end(text: str, offset: int, quotes: str) -> int:
    """The end of a multi-line string that begins here; negative when it has none."""
    end = text.find(quotes, offset + len(quotes))
    while end > 0 and quotes[0] == '"' and _is_escaped(text, end):
        end = text.find(quotes, end + 1)
    return end + len(quotes) if end >= 0 else -1


def _is_escaped(text: str, offset: int) -> bool:
    backslashes = offset
    while text[backslashes - 1] == "\\":
        backslashes -= 1
    return (offset - backslashes) % 2 == 1


DATA_OUTLINES: dict[str, Callable[[str], Outline]] = {"latex": latex, "toml": toml, "yaml": yaml}
