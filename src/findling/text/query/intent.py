"""The one rule for when a query is meant as an expression, and when as prose that only looks like one.

AND, OR, NOT and NEAR are words where everything else is in capitals, or where the query is a sentence. Quotes demand
their phrase in a short query: ASCII ones, beside a few words, in a script with spaces. Anywhere else they are what
prose does with quotes, and rank. The dash before a number in a sentence is its sign.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from findling.text.analysis.analysis import terms
from findling.text.analysis.scripts import is_unspaced
from findling.text.query.lexer import KEYWORD_KINDS, unquoted

__all__ = ["EXPRESSION", "Intent", "intent_of", "without_signs"]


class Intent(NamedTuple):
    """Whether keywords such as AND are operators, whether quotes demand their phrase, and why not if not."""

    keywords: bool = True
    quotes: bool = True
    is_prose: bool = False
    because: str = ""


EXPRESSION = Intent()

_PROSE = 6
"""Words of a sentence, the small ones among them; fewer are a question only with a question mark."""
_ASKED = 3
_SHORT = 8
"""Words beside quotes from which on a query is no expression any more."""
_CLAUSE = 3
"""Words that stand side by side in any sentence, however many operators it seems to have."""
_UNSPACED_SENTENCE = 12
"""Letters of a run without spaces that say as much as six words."""


def intent_of(tokens: Sequence[tuple[str, str]]) -> Intent:
    """Intent of the tokens of a query."""
    kinds = {kind for kind, _ in tokens}
    has_keywords = not KEYWORD_KINDS.isdisjoint(kinds)
    unsigned = without_signs(tokens) if "minus" in kinds else tokens
    if not has_keywords and "phrase" not in kinds and len(unsigned) == len(tokens):
        return EXPRESSION
    asked = _asked(unsigned)
    quotes, runs = [raw for kind, raw in asked if kind == "phrase"], _runs(asked)
    words = [word for run in runs for word in run]
    if has_keywords and _is_in_capitals([raw for kind, raw in tokens if kind == "word"]):
        return Intent(False, _demands(quotes, words), False, "everything else is in capitals")
    if not _has_expression(tokens) and _is_prose(runs, sum(kind in KEYWORD_KINDS for kind, _ in tokens)):
        return Intent(False, False, True, "it is a sentence")
    if quotes and not _demands(quotes, words):
        is_long = len(words) >= _SHORT
        return Intent(True, False, False, "many words stand beside them" if is_long else "they are those of prose")
    return EXPRESSION


def without_signs(tokens: Sequence[tuple[str, str]]) -> Sequence[tuple[str, str]]:
    """The tokens of a sentence without the signs of numbers: `-5 degrees` excludes nothing."""
    pairs = zip(tokens, [*tokens[1:], ("end", "")], strict=True)
    return [token for token, after in pairs if token[0] != "minus" or after[0] != "word" or not after[1][0].isdigit()]


def _asked(tokens: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    """The tokens without what a dash excludes: that is excluded, whatever its quotes."""
    asked: list[tuple[str, str]] = []
    level, last = 0, ""
    for kind, raw in tokens:
        if level or last == "minus":
            level = max(0, level + (kind == "open") - (kind == "close"))
        else:
            asked.append((kind, raw))
        last = kind
    return asked


def _runs(tokens: Iterable[tuple[str, str]]) -> list[list[str]]:
    """The words that stand side by side between operators; a quotation is one of them, an unclosed one is its words."""
    runs: list[list[str]] = [[]]
    for kind, raw in tokens:
        if kind == "word":
            runs[-1].append(raw)
        elif kind == "phrase":
            text, _, is_closed = unquoted(raw)
            runs[-1] += [raw] if is_closed else text.split()
        elif kind in KEYWORD_KINDS or kind == "pipe":
            runs.append([])
    return runs


def _demands(quotes: Iterable[str], words: Sequence[str]) -> bool:
    is_typed = all(quote[0] == '"' for quote in quotes)
    return is_typed and len(words) < _SHORT and not any(map(_unspaced, (*words, *quotes)))


def _is_in_capitals(words: Sequence[str]) -> bool:
    """Whether all plain words are; `MAX_VALUE` is written so anyway, and so are the letters of `A OR B`."""
    # `con*`, `con~1`, `sign-in` and `node.js` are typed words as well.
    bare = (word.rstrip("*0123456789").removesuffix("~").translate(_UNMARKED) for word in words)
    plain = [letters for letters in bare if letters.isalpha()]
    return any(len(word) > 1 for word in plain) and all(map(str.isupper, plain))


def _has_expression(tokens: Iterable[tuple[str, str]]) -> bool:
    """Whether an operator stands in parentheses, which no sentence does."""
    level = 0
    for kind, _ in tokens:
        level += (kind == "open") - (kind == "close")
        if level > 0 and (kind in KEYWORD_KINDS or kind == "pipe"):
            return True
    return False


def _is_prose(runs: Sequence[Sequence[str]], keywords: int) -> bool:
    words = [word for run in runs for word in run]
    if any(_unspaced(word) >= _UNSPACED_SENTENCE for word in words):
        return True
    is_asked = bool(words) and words[-1].endswith(("?", "？", "؟"))
    if len(words) + keywords < (_ASKED if is_asked else _PROSE):
        return False
    from findling.text.analysis.function_words import is_function_word

    clauses = [run for run in runs if len(run) >= _CLAUSE]
    return any(is_function_word(term) for run in clauses for word in run for term in terms(word)[:1])


def _unspaced(word: str) -> int:
    """Number of letters of a script without spaces; Korean has spaces."""
    letters = "" if word.isascii() else word
    return sum(is_unspaced(letter) and not "\uac00" <= letter <= "\ud7af" for letter in letters)


_MARKS = "\"'`()[]{}.,;:!?…-"
_UNMARKED = str.maketrans("", "", _MARKS)
