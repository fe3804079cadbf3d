"""Line numbers of character offsets. Only `\\n`, `\\r\\n` and a lone `\\r` end a line, as in editors."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from itertools import accumulate, count
from operator import add

from findling.text.analysis.analysis import STOP_WORDS

__all__ = [
    "ENGLISH_WORDS",
    "GERMAN_WORDS",
    "SENTENCE_WORDS",
    "LineIndex",
    "is_sentence",
    "line_numbers",
    "with_plain_breaks",
]


ENGLISH_WORDS = STOP_WORDS | frozenset(
    "what which who whom whose when where why how do does did can could should would about from without "
    "i me my we us our you your he she his her its has have had were been am".split()
)
GERMAN_WORDS = frozenset(
    "was wie wer wo wann warum welche welcher welches der die das und ist sind ein eine ohne mit von für".split()
)
SENTENCE_WORDS = (
    ENGLISH_WORDS
    | GERMAN_WORDS
    | frozenset(
        "que qui quoi quel quelle quand où comment pourquoi le la les des du un une et est sont sans avec pour dans "
        "qué quién cuál cuándo dónde cómo el los las una y es son sin con por para en "
        "che chi quale quando dove come perché il lo gli di e è senza per "
        "o os não sem com quem onde wat wie waarom hoe de het een en is zonder".split()
    )
)
"""Those of a few languages."""

_SOME_WORDS = 4
_MANY_WORDS = 8


def is_sentence(text: str) -> bool:
    """Whether the words are a question or a sentence rather than a few things to look for."""
    words = text.lower().split()
    if text.rstrip().endswith(("?", "？", "؟")) or len(words) >= _MANY_WORDS:
        return True
    return len(words) >= _SOME_WORDS and any(word.strip(".,;:!¿¡") in SENTENCE_WORDS for word in words)


class LineIndex:
    """Starts of the lines of a text; lines count from 1, and a final break opens an empty last line."""

    def __init__(self, text: str) -> None:
        self._text = text
        lengths = map(len, with_plain_breaks(text).split("\n"))
        # The characters before line n and the n - 1 breaks between them, summed without a Python-level loop.
        self._starts = [0, *map(add, accumulate(lengths), count(1))][:-1]

    def __len__(self) -> int:
        return len(self._starts)

    def line_of(self, offset: int) -> int:
        """The number of the line that holds the offset; a break belongs to the line it ends."""
        return bisect_right(self._starts, offset)

    def lines_of(self, offsets: Iterable[int]) -> list[int]:
        """The number of each offset's line, as `line_of` tells it."""
        starts = self._starts
        return [bisect_right(starts, offset) for offset in offsets]

    def line_span(self, number: int) -> tuple[int, int]:
        """Start and end of a line, without its break; raises `IndexError` when there is no such line."""
        if not 1 <= number <= len(self._starts):
            raise IndexError(f"line {number} is outside 1..{len(self._starts)}")
        start = self._starts[number - 1]
        if number == len(self._starts):
            return start, len(self._text)
        end = self._starts[number] - 1
        if self._text[end] == "\n" and end > start and self._text[end - 1] == "\r":
            end -= 1
        return start, end


def line_numbers(text: str, offsets: Sequence[int]) -> list[int]:
    """The line of each offset, in one pass where they do not fall. Agrees with `LineIndex.line_of`."""
    plain = with_plain_breaks(text)
    numbers = []
    line, reached = 1, 0
    for offset in offsets:
        line += plain.count("\n", reached, offset) if reached <= offset else -plain.count("\n", offset, reached)
        reached = offset
        numbers.append(line)
    return numbers


def with_plain_breaks(text: str) -> str:
    """The text with `\\n` as its only line break; every line that is not blank stays at its offset."""
    if "\r" not in text:
        return text
    return text.replace("\r\n", " \n").replace("\r", "\n")
