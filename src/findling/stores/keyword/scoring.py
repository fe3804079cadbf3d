"""The weights by which a keyword leg counts words: forms, repetitions and lengths."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable

from findling.domain.queries import Node, Term, Word
from findling.text.analysis.analysis import is_compound, row_terms
from findling.text.analysis.scripts import is_mostly_unspaced, is_unspaced

__all__ = [
    "INFLECTED",
    "IN_A_ROW",
    "NAMED_FILE",
    "NAMED_STEM",
    "OTHER_FORMS",
    "PAD",
    "PADDING",
    "UNADDED",
    "counted",
    "is_added",
    "most_of_word",
    "named_file",
    "padding",
    "repeated",
]

INFLECTED = 0.8
"""Weight of a form that differs from what was typed: better than 1 on all seven development sets, by .001 to .007."""

OTHER_FORMS = 0.2
"""Share of the weaker forms of a word beside its best form: 1 would reward a chunk for saying a word in many ways.
NDCG@10 on SciFact, a development set: 0 .686, 0.2 .691, 0.4 .687, 0.6 .682, plain sum .663."""

IN_A_ROW = 0.5
"""Weight of a compound found as it was typed, besides that of its terms."""

NAMED_FILE, NAMED_STEM = 1.5, 0.3
"""Gain of a file that the query names, with and without its extension, as a share of all the word can score:
argparse.py means that file, not the one that mentions it most."""


PADDING = 20
"""Words by which a passage of prose counts longer than it is. A few words more or less say nothing about a turn of a
chat, and much about an abstract: the length of a turn of 20 words counts half as much, that of 200 words nine tenths.
NDCG@10 with 0, 20 and 40 words, on development sets: turns of chats .373, .430, .450; short abstracts .429, .440, .434;
long ones .716, .715; functions of code .382, .362; Korean documents, cut into pairs of letters, .922, .915. So code and
text without spaces are left as they are."""

_CODE_SIGNS = "(){}[]=_<>;"
_CHARACTERS_A_SIGN, _FREE_SIGNS = 40, 2
"""Code has one of these signs in fewer characters: 95 of 100 pieces of code, 1 of 100 passages of prose. A pair of
parentheses is free: a turn of a chat is short."""

PAD = "¤"
"""The term that a body is padded with; no text gives it."""

UNADDED = 2.0
"""Weight of the lesser fields, as a multiple, for pairs of characters. A pair in the title is no word: its points are
not added to those of the body, the better of both counts. NDCG@10 on the first 400 questions of jsquad, a development
set: added .912, the better one .923; one field for everything, the reference, .924. For words adding is better:
hotpotqa .811 against .782, cacm .516 against .449."""

_REPEATED_K = 8.0
"""Pace at which repetitions of a word in a query wear off: said twice it counts 1.8, said four times 3."""


def padding(text: str) -> int:
    """By how many words a text counts longer than it is, which depends on nothing but the text."""
    if not text.isascii() and is_mostly_unspaced(text):
        return 0
    signs = sum(map(text.count, _CODE_SIGNS))
    return 0 if not text or (signs - _FREE_SIGNS) * _CHARACTERS_A_SIGN > len(text) else PADDING


def is_added(term: str) -> bool:
    """Whether a term counts in all its fields together, as words do."""
    return term[0].isascii() or not is_unspaced(term[0])


def most_of_word(terms: Iterable[tuple[str, float, bool]]) -> float:
    """The most that a word can score: of its terms, the most each can, and whether any chunk holds it.

    A run without spaces that shares no pair with the index is one unknown word. Counted by its 19 pairs, a Chinese
    question would drown the English name that it asks for.
    """
    words, known, unknown = 0.0, 0.0, list[float]()
    for term, most, is_held in terms:
        if is_added(term):
            words += most
        else:
            known += most if is_held else 0.0
            unknown += [] if is_held else [most]
    return words + (known + sum(unknown) if known else max(unknown, default=0.0))


def repeated(times: int) -> float:
    """The weight of a word that is said so often in a query."""
    return (_REPEATED_K + 1) * times / (_REPEATED_K + times)


def counted(nodes: Iterable[Node]) -> list[tuple[Node, float]]:
    """Each node once with its weight; words are the same when their terms are, whatever their spelling."""
    first: dict[object, Node] = {}
    times: Counter[object] = Counter()
    for node in nodes:
        said = _said(node)
        first.setdefault(said, node)
        times[said] += 1
    return [(first[said], repeated(often)) for said, often in times.items()]


def _said(node: Node) -> object:
    if not isinstance(node, (Word, Term)):
        return node
    return type(node), getattr(node, "field", ""), is_compound(node.text), *row_terms(node.text)


def named_file(text: str) -> str:
    """A text as the name of a file, with its folder at most, and without a line: `queues.py` of `./queues.py:120:5`."""
    parts = (re.sub(_LINE, "", text) if ":" in text else text).lower().replace("\\", "/").split("/")
    return "/".join([part for part in parts if part not in ("", ".", "..")][-2:])


_LINE = r"(?::\d{1,9}){1,2}:?$"
