"""The leaves of a query tree, from the words and phrases a person typed."""

from __future__ import annotations

from typing import NamedTuple

from findling.domain.queries import All, Fuzzy, Near, Node, Phrase, Prefix, Term
from findling.text.analysis.analysis import phrase_terms, row_terms, terms
from findling.text.analysis.scripts import LONGEST_WORD, is_unspaced
from findling.text.query.lexer import KEYWORD, is_plain, shortened, split_suffix, unescaped, unquoted

__all__ = [
    "TOO_LONG",
    "UNCLOSED_QUOTE",
    "Remarks",
    "near_leaf",
    "phrase_leaf",
    "plain_word",
    "term_leaf",
    "too_long",
    "word_leaf",
]

_FARTHEST = 100
"""The most words that may stand between two that are asked for near each other."""

TOO_LONG = "is too long to be one, and is left out"
UNCLOSED_QUOTE = "a quote that is never closed runs to the end"

_NEAR = 10
_SHORTEST_PREFIX = 2
_LONG_WORD = 8
_MOST_EDITS = 2


class Remarks(NamedTuple):
    """Findings of the parser: the operators in use, and notes for the person."""

    operators: set[str]
    notes: list[str]


def word_leaf(raw: str, field: str, remarks: Remarks) -> Node | None:
    """The leaf of a raw word with or without `*` or `~2` at its end; `None` when there is no term in it."""
    if is_plain(raw):
        return term_leaf(raw, field)
    base, suffix = split_suffix(raw)
    text = unescaped(base.lstrip("-"))
    if not suffix:
        return term_leaf(text, field)
    return _prefix(text, field, remarks) if suffix[0] == "*" else _fuzzy(text, suffix[1:], field, remarks)


def phrase_leaf(raw: str, field: str, remarks: Remarks) -> Node | None:
    """The leaf of a quotation with or without `*` or `~5` behind it; `None` when there is no term in it."""
    body, suffix, is_closed = unquoted(raw)
    text = " ".join(body.split())
    if not is_closed:
        remarks.notes.append(UNCLOSED_QUOTE)
    if not phrase_terms(text):
        return None
    remarks.operators.add('""')
    if suffix.startswith("*"):
        return _prefix(text, field, remarks, Phrase(text, field))
    return _close_together(text, suffix[1:], field, remarks) if suffix else Phrase(text, field)


def term_leaf(text: str, field: str = "") -> Term | None:
    """The word as a leaf, a keyword in lower case; `None` when there is no term in it."""
    return Term(_word(text), field) if _has_terms(text) else None


def too_long(raw: str) -> list[str]:
    """A note on a raw text that has letters and no term, since its words are too long; none on any other."""
    letters = max((sum(map(str.isalnum, word)) for word in raw.replace(":", " ").split()), default=0)
    return [f"a word of {letters:,} letters {TOO_LONG}"] if letters > LONGEST_WORD else []


def plain_word(raw: str) -> str:
    """The word that a raw one without `*` or `~` stands for; empty when there is no term in it."""
    base, suffix = split_suffix(raw)
    text = unescaped(base.lstrip("-"))
    return _word(text) if not suffix and _has_terms(text) else ""


def near_leaf(words: list[str], distances: list[str]) -> Node:
    """Each word near the next one, within as many words as the digits say."""
    pairs = [Near(a, b, _within(n, _NEAR, _FARTHEST)) for a, b, n in zip(words, words[1:], distances, strict=False)]
    return pairs[0] if len(pairs) == 1 else All(tuple(pairs))


def _prefix(text: str, field: str, remarks: Remarks, literal: Node | None = None) -> Node | None:
    words = terms(text)
    if not words:
        return None
    if sum(map(len, words)) < _SHORTEST_PREFIX and not is_unspaced(words[0]):
        remarks.notes.append(f"{text}* is too short to be the beginning of a word, so it is read as {text}")
        return literal or term_leaf(text, field)
    remarks.operators.add("*")
    return Prefix(_word(text), field)


def _fuzzy(text: str, digits: str, field: str, remarks: Remarks) -> Node | None:
    words = terms(text)
    if len(words) != 1:
        if words:
            remarks.notes.append(f"~ is for single words, so {shortened(text)} is read as it stands")
        return term_leaf(text, field)
    distance = _within(digits, 1 if len(words[0]) < _LONG_WORD else 2, _MOST_EDITS)
    if not distance:
        return term_leaf(text, field)
    remarks.operators.add("~")
    return Fuzzy(_word(text), distance, field)


def _close_together(text: str, digits: str, field: str, remarks: Remarks) -> Node:
    words = [_word(word) for raw in text.split() if row_terms(word := raw.rstrip("\\"))]
    distance = _within(digits, _NEAR, _FARTHEST)
    if len(words) < 2 or not distance:
        return Phrase(text, field)
    if field:
        remarks.notes.append(
            f'only bodies are searched for words near each other, so "{shortened(text)}" is read as a phrase'
        )
        return Phrase(text, field)
    remarks.operators.add("NEAR")
    return near_leaf(words, [str(distance)] * len(words))


def _within(digits: str, otherwise: int, most: int) -> int:
    return min(int(digits), most) if digits else otherwise


def _has_terms(text: str) -> bool:
    is_plain = text.isascii() and text.isalnum() and len(text) <= LONGEST_WORD  # saves the analysis of most words
    return is_plain or bool(row_terms(text))


def _word(text: str) -> str:
    return text.lower() if text.isupper() and KEYWORD.fullmatch(text) else text
