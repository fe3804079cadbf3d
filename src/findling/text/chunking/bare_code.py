"""Code without its comments and strings, by patterns: names in these are no uses."""

from __future__ import annotations

import re
from functools import cache


def without_comments(text: str, lang: str) -> str:
    """The text with blanks in place of comments and strings, line by line as long as before."""
    return _hidden(lang).sub(_blanks, text)


def _blanks(match: re.Match[str]) -> str:
    found = match[0]
    if found[:1] in "fF" and found[1:2] in ("'", '"'):
        return found  # names in an f-string are used
    return re.sub(r"[^\n]", " ", found)


_DOUBLE = r'"(?:\\.|[^"\\\n])*+"'
_SINGLE = r"'(?:\\.|[^'\\\n])*+'"
_LETTER = r"'(?:\\[^'\n]{1,9}+|[^'\\\n])'"
_TICKS = r"`(?:\\.|[^`\\])*+`"
_SLASHES = r"//[^\n]*+|/\*.*?(?:\*/|\Z)"
_HASH = r"#[^\n]*+"
_TRIPLE = r"[fF]?(?:\"{3}.*?(?:\"{3}|\Z)|'{3}.*?(?:'{3}|\Z))"
_HIDDEN = {
    **dict.fromkeys(("cython", "gdscript", "julia", "python"), rf"{_TRIPLE}|{_HASH}|[fF]?(?:{_DOUBLE}|{_SINGLE})"),
    **dict.fromkeys(("crystal", "elixir", "nim", "perl", "r", "ruby"), rf"{_HASH}|{_DOUBLE}|{_SINGLE}"),
    **dict.fromkeys(("bash", "graphql", "hcl", "powershell", "shell"), r"(?<!\S)#[^\n]*+"),
    **dict.fromkeys(("haskell", "sql"), rf"--[^\n]*+|\{{-.*?(?:-\}}|\Z)|/\*.*?(?:\*/|\Z)|{_DOUBLE}"),
    **dict.fromkeys(("clojure", "lisp", "racket", "scheme"), rf";[^\n]*+|{_DOUBLE}"),
    # A template of JavaScript may hold code.
    **dict.fromkeys(
        ("astro", "dart", "groovy", "javascript", "svelte", "typescript", "vue"), rf"{_SLASHES}|{_DOUBLE}|{_SINGLE}"
    ),
    "erlang": rf"%[^\n]*+|{_DOUBLE}",
    "go": rf"{_SLASHES}|{_DOUBLE}|{_LETTER}|{_TICKS}",
    "lua": rf"--\[\[.*?(?:\]\]|\Z)|--[^\n]*+|{_DOUBLE}|{_SINGLE}",
    "php": rf"{_SLASHES}|{_HASH}|{_DOUBLE}|{_SINGLE}",
}


@cache
def _hidden(lang: str) -> re.Pattern[str]:
    """Comments and strings of a language; most have those of C."""
    return re.compile(_HIDDEN.get(lang, rf"{_SLASHES}|{_DOUBLE}|{_LETTER}"), re.DOTALL)
