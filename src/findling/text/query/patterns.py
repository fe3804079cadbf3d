"""The patterns of the query language, apart because they take 12 ms to compile and most queries are plain words."""

from __future__ import annotations

import re

from findling.text.query.symbols import FIELD_NAMES, QUOTES, TEXT_FIELDS

__all__ = [
    "BARE_VALUE",
    "BLANK_END",
    "CONTROL",
    "ESCAPED",
    "FIELD",
    "KNOWN_FIELD",
    "MISLEADING",
    "PASTED_WORD",
    "QUOTED",
    "SPECIAL_CHARACTER",
    "SUFFIX",
    "TOKEN",
    "UNKNOWN_FIELD",
    "UNSEEN",
    "VALUE",
    "WORD",
]

_SPECIAL = rf"{QUOTES}()|*~:,\-"
_ESCAPE = rf"\\[{_SPECIAL}]"
_IN_PARENTHESES = rf"\([^\s{QUOTES}()|]*+\)"  # f(x) and author(s) are words
_LETTERS = rf"(?:[^\s{QUOTES}()|\\]++|{_ESCAPE}|\\)"
_VALUE_LETTERS = rf"(?:[^\s{QUOTES}()|,\\]++|{_ESCAPE}|\\)"
_WORD_PATTERN = rf"(?:(?:AND|OR|NOT)(?=\()|{_LETTERS}++(?:{_IN_PARENTHESES}{_LETTERS}*+)*+)"
_BARE_PATTERN = rf"{_VALUE_LETTERS}++(?:{_IN_PARENTHESES}{_VALUE_LETTERS}*+)*+"
_SUFFIX_PATTERN = r"(?:\*+|~[0-9]*)"


def _quotation(group: str) -> str:
    """The pattern of a quotation of any kind, up to its end quote or the end; `group` opens its groups."""
    return (
        rf'(?:"{group}(?:\\"|[^"])*+){group}"|\Z)|[“„]{group}(?:\\"|[^“”"])*+){group}[“”"]|\Z)'
        rf"|«{group}[^»]*+){group}»|\Z)|‹{group}[^›]*+){group}›|\Z)"
        rf"|「{group}[^」]*+){group}」|\Z)|『{group}[^』]*+){group}』|\Z))"
    )


_PHRASE_PATTERN = f"{_quotation('(?:')}{_SUFFIX_PATTERN}?+"
_VALUE_PATTERN = f"(?:{_PHRASE_PATTERN}|{_BARE_PATTERN})"
_NAME_PATTERN = rf"(?ai:in:(?:{'|'.join(TEXT_FIELDS)})(?=:.)|{'|'.join(FIELD_NAMES)})"

TOKEN = re.compile(
    rf"(?P<minus>(?<![^\s(|])-(?=[^\s|)\-”»›」』]))|(?P<open>\()|(?P<close>\))|(?P<pipe>\|+)|(?P<phrase>{_PHRASE_PATTERN})"
    rf"|(?P<field>{_NAME_PATTERN}:{_VALUE_PATTERN}(?:,{_VALUE_PATTERN}?+)*+)|(?P<word>{_WORD_PATTERN})"
)
FIELD = re.compile(f"({_NAME_PATTERN}):")
VALUE = re.compile(_VALUE_PATTERN)
QUOTED = re.compile(_quotation("("))
WORD = re.compile(_WORD_PATTERN)
BARE_VALUE = re.compile(_BARE_PATTERN)
SUFFIX = re.compile(rf"(?<!\\){_SUFFIX_PATTERN}\Z")
ESCAPED = re.compile(rf"\\([{_SPECIAL}])")
SPECIAL_CHARACTER = re.compile(f"[{_SPECIAL}]")
MISLEADING = re.compile(rf"\A-|\A{_NAME_PATTERN}:|{_ESCAPE}|{_SUFFIX_PATTERN}\Z")
BLANK_END = re.compile(r"[\s\\]+\Z")
CONTROL = re.compile("[\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f\ud800-\udfff]")
UNSEEN = re.compile("[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ufeff]")

KNOWN_FIELD = re.compile(f"({'|'.join(FIELD_NAMES)}):", re.ASCII | re.IGNORECASE)
UNKNOWN_FIELD = re.compile(r"([A-Za-z]{2,20}):(?=[^\s:/\\0-9])")
PASTED_WORD = re.compile(rf"[^\s{QUOTES}()|*~:\\]+")
