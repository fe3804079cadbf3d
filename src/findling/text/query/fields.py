"""The fields of a query: which there are and what their values mean."""

from __future__ import annotations

from findling.domain.queries import Any, Field, Node
from findling.text.analysis.analysis import terms
from findling.text.query.lexer import FIELD_NAMES, TEXT_FIELDS

__all__ = ["CODE_LANGUAGES", "SINGLE_VALUED", "condition", "nearest_field", "possible_values"]

CODE_LANGUAGES = tuple(
    "abap ada agda apex applescript assembly astro autohotkey awk bash batch c clojure cmake cobol coffeescript cpp "
    "crystal csharp css cuda cython d dart dockerfile elixir elm erlang fennel fortran fsharp gdscript gleam glsl go "
    "graphql groovy haskell haxe hcl idl idris janet java javascript julia kotlin lean lisp lua make mojo nim nix "
    "objectivec ocaml odin pascal perl php policy powershell prisma prolog proto puppet purescript python qml r racket "
    "ruby rust scala scheme smalltalk solidity sql stan svelte swift systemverilog tcl template typescript typst vala "
    "vb vhdl vim vue webassembly zig".split()
)
"""The languages of `is:code`."""

SINGLE_VALUED = frozenset({"ext", "lang", "type"})
"""A resource has one value of these, so asking for two of them can only mean either. A path may well contain two
texts, an author have two names, and a resource belong to two systems: there both have to hold."""


def condition(name: str, values: list[str], now: float | None = None) -> Node | None:
    """The node for a field with any of these values; `None` when a value is impossible."""
    if not values:
        return None
    if name in ("before", "after", "date", "is"):
        from findling.text.query.dates import changed

        nodes = [_STATES.get(value.lower()) if name == "is" else changed(name, value, now) for value in values]
        known = tuple(dict.fromkeys(node for node in nodes if node is not None))
        return None if None in nodes else known[0] if len(known) == 1 else Any(known)
    cleaned = dict.fromkeys(_clean(name, value) for value in values)
    return Field(name, tuple(cleaned)) if all(cleaned) else None


def possible_values(name: str) -> str:
    """Possible values of a field, in words."""
    return _POSSIBLE.get(name, "a value right after the colon")


def nearest_field(name: str) -> str:
    """The field that a person may have meant by another name; empty when none is near."""
    from difflib import get_close_matches

    lower = name.lower()
    rivals = [field for field in FIELD_NAMES if field[0] == lower[0] and len(field) > 2]
    return _OTHER_NAMES.get(lower) or next(iter(get_close_matches(lower, rivals, n=1, cutoff=0.8)), "")


_DATES = "a day such as 2026-01-31, 2026-01, 2026, today, yesterday, 7d, 2w, 3m, 1y or 12h"
_POSSIBLE = {
    "before": _DATES,
    "after": _DATES,
    "date": f"{_DATES}, or two of them as in 2026-01..2026-03",
    "is": "code, chat, head or superseded",
    "in": f"{', '.join(TEXT_FIELDS)} or history",
    "ext": "the ending of a file name such as py",
}
_OTHER_NAMES = {
    **dict.fromkeys(("dir", "file", "filename", "folder", "directory", "inpath", "inurl"), "path"),
    **dict.fromkeys(("extension", "filetype", "suffix"), "ext"),
    **dict.fromkeys(("by", "creator", "from", "writer"), "author"),
    **dict.fromkeys(("intitle", "subject"), "title"),
    **dict.fromkeys(("newer", "since"), "after"),
    **dict.fromkeys(("older", "until"), "before"),
    **dict.fromkeys(("label", "labels", "topic"), "tag"),
    "kind": "type",
    "language": "lang",
}
_STATES: dict[str, Node] = {
    "code": Field("lang", CODE_LANGUAGES),
    "chat": Field("type", ("chat",)),
    "head": Field("is", ("head",)),
    "superseded": Field("is", ("superseded",)),
}


def _clean(name: str, value: str) -> str:
    """The value in the form that is stored; empty when it is impossible."""
    if name == "path":
        return value.replace("\\", "/")
    if name == "ext":
        return value.lstrip("*") if value.strip("*.") else ""
    return value if name != "author" or terms(value) else ""
