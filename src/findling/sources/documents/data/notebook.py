"""Jupyter notebooks as Markdown: the cells in order, code in fences, the beginning of what it printed below it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from findling.sources.documents.data import json_data
from findling.sources.extracted import Extracted, Properties, Source, TextBuilder
from findling.sources.files.file_text import decode

_Json = Mapping[str, Any]
_MAX_OUTPUT_LINES = 20
_MAX_OUTPUT = 1000
_HEADING = re.compile(r"^ {0,3}#{1,6}[ \t]+(.+?)[ \t#]*$|^(\S.*)\n=+[ \t]*$", re.MULTILINE)
_FENCED = re.compile(r"^(```|~~~).*?(?:^\1|\Z)", re.MULTILINE | re.DOTALL)
_FENCE = re.compile(r"`{3,}")
_EMBEDDED_IMAGE = re.compile(r"data:[\w/+.-]*+;base64,[A-Za-z0-9+/=\s]{100,}+")
_TERMINAL_CODE = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
_OVERWRITTEN = re.compile(r"[^\n]*\r(?!\n)")  # a progress bar prints its line again and again


def extract(source: Source) -> Extracted:
    """The cells of a notebook; one that is damaged is read as plain JSON. Raises `UnreadableError`."""
    try:
        notebook = _mapping(json.loads(decode(source.data)[0]))
    except (ValueError, RecursionError):
        notebook = {}
    cells = _cells(notebook)
    if cells is None:
        return json_data.extract(source)
    builder = TextBuilder(source.limit)
    metadata = _mapping(notebook.get("metadata"))
    language = _language(metadata)
    title = _text(metadata.get("title"))
    for number, cell in enumerate(cells, start=1):
        builder.place(f"cell {number}")
        _write_cell(builder, cell, language)
        title = title or _first_heading(cell)
        if builder.full:
            break
    about = Properties(title=title, author=_authors(metadata), fields={"code_language": language})
    return builder.extracted(about, lang="markdown")


def _cells(notebook: _Json) -> list[_Json] | None:
    """The cells of any version of the format: the third one keeps them in worksheets."""
    cells = notebook.get("cells")
    if cells is None and isinstance(sheets := notebook.get("worksheets"), list):
        cells = [cell for sheet in sheets for cell in _mapping(sheet).get("cells") or []]
    return [cell for cell in cells if isinstance(cell, dict)] if isinstance(cells, list) else None


def _write_cell(builder: TextBuilder, cell: _Json, language: str) -> None:
    kind, text = cell.get("cell_type"), _text(cell.get("source") or cell.get("input"))
    if kind == "code":
        builder.block(_fenced(text, _text(cell.get("language")) or language))
        builder.block(_fenced(_trimmed("\n".join(_outputs(cell))), "output"))
    elif kind == "heading":
        level = cell.get("level")
        level = level if isinstance(level, int) and 0 < level < 7 else 1
        builder.paragraph(f"{'#' * level} {' '.join(text.split())}")
    else:
        builder.paragraph(_EMBEDDED_IMAGE.sub("", text))


def _fenced(text: str, info: str) -> str:
    if not text.strip():
        return ""
    fence = "`" * max([3, *(len(run) + 1 for run in _FENCE.findall(text))])
    return f"{fence}{info}\n{text.rstrip()}\n{fence}"


def _outputs(cell: _Json) -> Iterator[str]:
    """Output of a cell as plain text: prints, results, errors."""
    outputs = cell.get("outputs")
    for output in outputs if isinstance(outputs, list) else []:
        output = _mapping(output)
        kind = output.get("output_type")
        if kind == "stream":
            yield _text(output.get("text")).rstrip("\n")
        elif kind in ("error", "pyerr"):
            yield f"{_text(output.get('ename'))}: {_text(output.get('evalue'))}"
        else:
            shown = _mapping(output.get("data")) or output
            if not any(name.startswith("image/") or name in ("png", "jpeg", "svg") for name in shown):
                yield _text(shown.get("text/plain") or shown.get("text"))


def _trimmed(output: str) -> str:
    output = _OVERWRITTEN.sub("", _TERMINAL_CODE.sub("", output.replace("\r\n", "\n")).rstrip())
    kept = "\n".join(output.split("\n", _MAX_OUTPUT_LINES)[:_MAX_OUTPUT_LINES])[:_MAX_OUTPUT]
    return kept if len(kept) == len(output) else kept.rstrip() + "\n…"


def _first_heading(cell: _Json) -> str:
    text = _text(cell.get("source"))
    if cell.get("cell_type") == "heading":
        return text
    heading = _HEADING.search(_FENCED.sub("", text)) if cell.get("cell_type") == "markdown" else None
    return (heading[1] or heading[2]) if heading else ""


def _language(metadata: _Json) -> str:
    """The language of the code cells, as the kernel names it; notebooks of the third format are Python."""
    named = _mapping(metadata.get("language_info")).get("name") or _mapping(metadata.get("kernelspec")).get("language")
    return _text(named).strip().lower().replace(" ", "-") or "python"


def _authors(metadata: _Json) -> str:
    authors = metadata.get("authors")
    names = [_mapping(author).get("name") or author for author in authors] if isinstance(authors, list) else [authors]
    return ", ".join(filter(None, map(_text, names)))


def _mapping(value: object) -> _Json:
    return value if isinstance(value, dict) else {}


def _text(value: object) -> str:
    """Text may be a string or a list of its lines."""
    if isinstance(value, list):
        return "".join(part for part in value if isinstance(part, str))
    return value if isinstance(value, str) else ""
