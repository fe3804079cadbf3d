"""Answers and reports as JSON: the same keys everywhere, `schema` first."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from itertools import starmap
from pathlib import Path
from typing import Any, TypeVar

from findling.domain.ports import SkippedPath
from findling.domain.results import SCHEMA_VERSION, SearchAnswer
from findling.domain.values import plain
from findling.faces.cli.output.terminal import display_width, note, show_controls, speaks_unicode, write

_Entry = TypeVar("_Entry")


def write_json(values: object = None, /, **more: object) -> None:
    """Print a record, and more values, as one document with the schema version first."""
    write(dump(report_document({**plain(values or {}), **plain(more)}), indent=2))


def write_report(as_json: bool, values: object, text: str) -> None:
    """Print a report, as one document or as text."""
    if as_json:
        write_json(values)
    else:
        write(text)


def write_list(
    as_json: bool, name: str, found: Sequence[_Entry], row: Callable[[_Entry], Sequence[str]], nothing: str, hint: str
) -> int:
    """Print a list as a document or as a table, or note that there is nothing; the exit code says which."""
    if as_json:
        write_json({name: found})
    elif found:
        write_table(map(row, found))
    else:
        note(nothing, hint)
    return 0 if found else 1


def skipped_entries(skipped: Iterable[SkippedPath]) -> list[dict[str, str]]:
    """Paths that were left out, each with its reason."""
    return [{"path": entry.path, "reason": entry.reason, "detail": entry.detail} for entry in skipped]


def write_table(rows: Iterable[Sequence[str]]) -> None:
    """Print rows of names and texts as a table."""
    write(aligned([[show_controls(cell) for cell in row] for row in rows]))


def aligned(rows: Sequence[Sequence[str]], right: Container[int] = ()) -> str:
    """Rows with columns of equal width, flush left but for those that are flush `right`."""
    widths = [max(map(display_width, column)) for column in zip(*rows, strict=True)]

    def padded(at: int, cell: str) -> str:
        gap = " " * (widths[at] - display_width(cell))
        return gap + cell if at in right else cell + gap

    return "".join("  ".join(starmap(padded, enumerate(row))).rstrip() + "\n" for row in rows)


def answer_document(answer: SearchAnswer, root: Path) -> dict[str, Any]:
    """The whole answer; paths in it are relative to `root`."""
    document = answer.to_dict()
    return {"schema": document.pop("schema"), "root": str(root), **document}


def answer_stream(answer: SearchAnswer, root: Path) -> list[dict[str, Any]]:
    """The answer in pieces: one of kind `hit` for each hit, then one of kind `summary`."""
    rest = answer_document(answer, root)
    hits = rest.pop("hits")
    lead = {"schema": rest.pop("schema")}
    names = {"query": answer.query, "root": str(root)}
    stream = [{**lead, "kind": "hit", **names, **hit} for hit in hits]
    return [*stream, {**lead, "kind": "summary", **names, **rest, "shown": len(hits)}]


def report_document(values: Mapping[str, Any]) -> dict[str, Any]:
    """Any other report."""
    return {"schema": SCHEMA_VERSION, **values}


def dump(value: object, *, indent: int | None = None) -> str:
    """The value as JSON with a line end: readable letters, or escapes where stdout could not take them."""
    text = json.dumps(value, ensure_ascii=not speaks_unicode(sys.stdout), indent=indent, default=os.fspath)
    try:
        text.encode()
    except UnicodeEncodeError:  # a path whose bytes are no UTF-8
        text = json.dumps(value, indent=indent, default=os.fspath)
    return text + "\n"
