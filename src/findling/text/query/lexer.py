"""Lexer of the query language: tokens, quotes, escapes, and the spelling of a word that reads back."""

from __future__ import annotations

import re

from findling.text.query.symbols import QUOTES

__all__ = [
    "KEYWORD",
    "KEYWORD_KINDS",
    "MOST_CHARACTERS",
    "MOST_LEAVES",
    "field_prefix",
    "is_plain",
    "quoted",
    "shortened",
    "spelled",
    "split_field",
    "split_suffix",
    "tokens",
    "unescaped",
    "unquoted",
    "visible",
]

MOST_CHARACTERS = 1_000
MOST_LEAVES = 64
"""A text beyond these was pasted: it is read as plain words."""

KEYWORD = re.compile(r"AND|OR|NOT|NEAR(?:/[0-9]+)?")
KEYWORD_KINDS = frozenset({"AND", "OR", "NOT", "NEAR"})

_MEANINGFUL = frozenset(f"{QUOTES}()|*~:,-\\")
_LONGEST_QUOTE = 40


def tokens(text: str) -> list[tuple[str, str]]:
    """The kind and the raw text of each token; a keyword is of its own kind, unless a dash makes it a word."""
    if is_plain(text):
        return [(_kind(word), word) for word in text.split()]
    from findling.text.query.patterns import TOKEN

    found: list[tuple[str, str]] = []
    was_minus = False
    for match in TOKEN.finditer(text):
        kind, raw = match.lastgroup or "", match.group()
        found.append((_kind(raw) if kind == "word" and not was_minus else kind, raw))
        was_minus = kind == "minus"
    return found


def is_plain(text: str) -> bool:
    """Whether no character of the text means anything in a query."""
    return _MEANINGFUL.isdisjoint(text)


def split_field(raw: str) -> tuple[str, list[str]]:
    """The name of a field token in lower case, `in:heading` for one, and its values as they were typed."""
    from findling.text.query.patterns import FIELD, VALUE

    match = FIELD.match(raw)
    if match is None:
        raise ValueError(f"{raw!r} is no field")
    return match.group(1).lower(), VALUE.findall(raw, match.end())


def split_suffix(raw: str) -> tuple[str, str]:
    """A raw word without the `*`, `~` or `~2` at its end, and that end."""
    from findling.text.query.patterns import SUFFIX

    match = SUFFIX.search(raw)
    return (raw[: match.start()], match.group()) if match else (raw, "")


def unescaped(raw: str) -> str:
    """A raw word or value without its escapes, and without the backslash of `dir\\` that would escape what follows."""
    if "\\" not in raw:
        return raw
    from findling.text.query.patterns import ESCAPED

    return ESCAPED.sub(r"\1", raw).rstrip("\\")


def unquoted(raw: str) -> tuple[str, str, bool]:
    """Text in the quotes, the `*` or `~2` behind them, and whether the end quote was there."""
    from findling.text.query.patterns import BLANK_END, QUOTED

    match = QUOTED.match(raw)
    if match is None:
        raise ValueError(f"{raw!r} is not quoted")
    bodies, ends = match.groups()[::2], match.groups()[1::2]
    body, end = next((body, end) for body, end in zip(bodies, ends, strict=True) if body is not None)
    return BLANK_END.sub("", body.replace('\\"', '"')).lstrip(), raw[match.end() :], bool(end)


def quoted(text: str) -> str:
    """The text in quotes, such that `unquoted` gives it back."""
    return '"' + text.replace('"', '\\"') + '"'


def spelled(word: str, field: str = "") -> str:
    """The word written such that it is read as this very word (in the field), whatever its characters mean."""
    name = field_prefix(field)
    if KEYWORD.fullmatch(word):
        return name + word.lower()
    if is_plain(word):
        return name + word
    from findling.text.query.patterns import BARE_VALUE, MISLEADING, SPECIAL_CHARACTER, WORD

    match = (BARE_VALUE if field else WORD).match(word)
    reads_back = match is not None and match.end() == len(word) and not MISLEADING.search(word)
    return name + (word if reads_back else SPECIAL_CHARACTER.sub(r"\\\g<0>", word))


def field_prefix(field: str) -> str:
    """Prefix of a word or phrase that is searched in one field only."""
    return f"in:{field}:" if field and field != "title" else field and "title:"


def visible(text: str) -> str:
    """The text without control characters, halves of characters and marks of direction."""
    if text.isprintable():
        return text
    from findling.text.query.patterns import CONTROL, UNSEEN

    return UNSEEN.sub("", CONTROL.sub(" ", text))


def shortened(text: str) -> str:
    """The text as a note quotes it."""
    return text if len(text) <= _LONGEST_QUOTE else f"{text[: _LONGEST_QUOTE - 1]}…"


def _kind(word: str) -> str:
    return word.partition("/")[0] if word[0] in "AON" and KEYWORD.fullmatch(word) else "word"
