"""Names that a question asks for, and whether a text defines one of them: by its look, whatever its language is."""

from __future__ import annotations

import re
from typing import NamedTuple


class AskedNames(NamedTuple):
    """The names in a question, without their scopes; `is_all` says that it has nothing else."""

    names: tuple[str, ...]
    is_all: bool = False


def asked_names(query: str) -> AskedNames:
    """The names that a question asks for: all of a single word, else what is written or introduced like a name.

    That is `in_backticks`, `with_separators`, `inCapitals`, `called()`, a Capital within, and the word beside `class`,
    `function`, `method` and their like.
    """
    found: dict[str, None] = {}
    words = query.split()
    if len(words) > 1:
        words = [word for word in words if word.strip("`").lower() not in _KINDS]
    if len(words) == 1:
        last = _last_part(words[0].strip("`'\"(){};,"))
        return AskedNames((last,) if last else (), bool(last))
    for match in _MARKED.finditer(query):
        _add(found, match[1] or match[2])
    for before, kind, after in _INTRODUCED.findall(query):
        if kind and before:
            _add(found, before)
        elif after and not after.islower():
            _add(found, after)
    for place, match in enumerate(_WORD.finditer(query)):
        word = match[0]
        if _SHAPED.search(word) or (place and len(word) > 2 and word[0].isupper()):
            _add(found, word)
    return AskedNames(tuple(found))


def asks_in_prose(query: str) -> bool:
    """Whether a question is one to people: who, when, why, how to, what I or we do. One with a name of code is none."""
    return bool(_IN_PROSE.search(query)) and not _MARKED.search(query) and not _SHAPED.search(query)


def code_names(query: str) -> list[str]:
    """Those of the asked names that are surely of code: by their look, or beside `class`, `function` and their like."""
    is_about_code = "`" in query or "()" in query or not _KINDS.isdisjoint(query.lower().split())
    return [name for name in asked_names(query).names if is_about_code or _SHAPED.search(name)]


def name_words(text: str) -> list[str]:
    """The words of a name or a question in lower case, each once: `getUserName`, `MAX_VALUE` and `a plain one`."""
    return list(dict.fromkeys([word.lower() for word in _PARTS.findall(text)]))


def defines(text: str, name: str) -> bool:
    """Whether a text has a definition of a name, by the look of the line; the first dozen occurrences count."""
    end = -1
    for _ in range(_MOST_OCCURRENCES):
        start = text.find(name, end + 1)
        if start < 0:
            return False
        end = start + len(name)
        if (start and _is_letter(text[start - 1])) or _is_letter(text[end : end + 1]):
            continue
        before, after = text[text.rfind("\n", 0, start) + 1 : start], text[end : end + _LONGEST_SIGNATURE]
        if _ANNOUNCED.search(before) or (_ASSIGNED.match(after) and _TARGET.fullmatch(before)):
            return True
        if _WITH_BLOCK.match(after) and _TYPED.fullmatch(before) and not _CALLED.match(before):
            return True
    return False


def looks_like_code(text: str) -> bool:
    """Whether the beginning of a text has more than one of the signs of code in 40 characters."""
    start = text[:800]
    return sum(map(start.count, "(){}[]=_<>;")) * 40 > len(start) + 80


_KINDS = frozenset(
    "class struct enum trait interface function method macro module type constant variable decorator attribute property"
    " field exception mixin protocol union fn func def constructor object".split()
)
_NO_NAMES = frozenset(
    "the a an of in for to and or is this that which what how each any all its their new static abstract public private"
    " main base first same following given other i".split()
)
_WORD = re.compile(r"[^\W\d]\w*(?:(?:::|\.|->|#)~?[^\W\d]\w*)*")
_MARKED = re.compile(r"`([^\W\d][\w.:#]*)(?:\([^`]*\))?`|([^\W\d][\w.:#]*)\(\)")
_INTRODUCED = re.compile(rf"\b(?:([^\W\d]\w*)`? ({'|'.join(_KINDS)})s?\b|(?:{'|'.join(_KINDS)})s? `?([^\W\d]\w*))")
_SHAPED = re.compile(r"_|[a-z][A-Z]|::|[a-z]\.[a-z]|[A-Z]{2}[a-z]")
_SCOPES = re.compile(r"::|->|[.#]")
_PARTS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+|[^\W\dA-Za-z_]+")

_IN_PROSE = re.compile(
    r"^(?:\w+ )?(?:who|whom|whose|when|why|which|what|wer|wann|warum|wie|welche\w?|quién|cuándo|cómo|pourquoi"
    r"|how (?:to|do|can|should|could|would|many|much|long|often|fast|far))\b"
    r"|^(?:may|can|could|should|must|do|does|is|are|where (?:do|can|should|to)) \w"
    r"|\b(?:i|my|me|we|our|us)\b",
    re.IGNORECASE,
)
"""Openings of questions and first persons. None of 179 questions about nine repositories is met, 72 of 81 in prose and
none of 39 about code in `bench/mixed.py` are."""

_MOST_OCCURRENCES = 12
_LONGEST_SIGNATURE = 200
_ANNOUNCED = re.compile(
    r"\b(?:def|class|func|fn|function|struct|enum|trait|interface|type|module|record|union|macro_rules!|typedef|concept"
    r"|namespace|object|val|var|const|let|static|mut|mod|package|protocol|extension|data|newtype|sub|proc|defmodule)"
    r"[ \t]+(?:\([^)]*\)[ \t]*)?(?:[\w.:]+[.:])?$|#[ \t]*define[ \t]+$"
)
_TARGET = re.compile(r"[ \t]*(?:(?:export|local|pub|public|final|readonly)[ \t]+)*(?:[\w.]+\.)?")
_ASSIGNED = re.compile(r"[ \t]*[:=][ \t]*(?:async\b[ \t]*)?(?:function\b|class\b|lambda\b|\([^()\n]*\)[ \t]*=>)")
_TYPED = re.compile(r"[ \t]*(?:[\w:<>,\[\]&*.?]+[ \t]+)+[*&]*(?:\w+::)*")
_CALLED = re.compile(r"[ \t]*(?:return|else|new|throw|await|case|yield|if|while|for|in|not|and|or|assert|raise)\b")
_WITH_BLOCK = re.compile(r"[ \t]*\([^;{}]*\)[^;{}=]*\{")


def _last_part(word: str) -> str:
    parts = [part for part in _SCOPES.split(word) if part.isidentifier()]
    return parts[-1] if parts else ""


def _add(found: dict[str, None], word: str) -> None:
    name = _last_part(word)
    if len(name) > 1 and name.lower() not in _NO_NAMES and name.lower() not in _KINDS:
        found[name] = None


def _is_letter(character: str) -> bool:
    return character.isalnum() or character == "_"
