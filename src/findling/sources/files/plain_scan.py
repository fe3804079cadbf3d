"""A plain scan for the words of a question: names first, then bytes, until time is up. Nothing is indexed for it."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress

from findling.sources.files.discovery import FoundFile
from findling.sources.files.file_text import UnreadableError, read_bytes
from findling.sources.files.file_types import file_type
from findling.text.analysis.analysis import STOP_WORDS, terms
from findling.text.analysis.stemming import forms_prefix, is_function_word

__all__ = ["LARGEST_SCANNED", "Needle", "best_files", "needles"]

LARGEST_SCANNED = 400_000
"""Bytes of the largest file that is scanned: a larger one takes too long to be indexed for a first answer."""

_MOST_NEEDLES = 12
_SHORTEST = 2
_NAME_WORTH = 2.0
"""A word in the path of a file counts twice as much as in its text: people name files after their subject."""

_SATURATION, _TYPICAL_BYTES = 1.2, 12_000
"""Constants of BM25 and the usual size of a file: one that mentions a word often in little text is about it."""

Needle = tuple[bytes, ...]
"""The spellings of a word, in lower case as far as ASCII goes; any of them stands for it."""


def needles(question: str) -> list[Needle]:
    """The words of a question as bytes to look for: beginnings that all forms of a word share, without small words."""
    found: dict[Needle, None] = {}
    for raw in question.replace("_", " ").split():
        word = raw.strip("\"'()[]{}<>,;:!?.-~*")
        if not word.isascii():
            spellings = dict.fromkeys(one.encode().lower() for one in (word.lower(), word.capitalize(), word.upper()))
            found[tuple(spellings)] = None
            continue
        given = [term for term in terms(word) if term not in STOP_WORDS and not is_function_word(term)]
        # The whole of an identifier says more than its parts.
        found.update(dict.fromkeys((forms_prefix(term).encode(),) for term in given[:1] or ()))
    return [one for one in found if len(one[0]) >= _SHORTEST][:_MOST_NEEDLES]


def best_files(
    root: str, files: Sequence[FoundFile], wanted: Sequence[Needle], is_over: Callable[[], bool]
) -> list[FoundFile]:
    """The files with one of the words in their path or bytes, the best first, as far as the scan comes in time.

    Those with a word in their path are scanned first, the others as they come.
    """
    in_names = _found_in(((file, file.path.lower().encode()) for file in files), wanted)
    order = sorted(in_names, key=lambda file: -len(in_names[file])) + [file for file in files if file not in in_names]
    scanned: list[FoundFile] = []
    in_texts = _found_in(_read(root, order, is_over, scanned), wanted)
    worth: dict[FoundFile, float] = dict.fromkeys([*in_names, *in_texts], 0.0)
    for found, weight, among in ((in_names, _NAME_WORTH, len(files)), (in_texts, 1.0, len(scanned))):
        having = Counter(at for counts in found.values() for at in counts)
        for file, counts in found.items():
            slope = _SATURATION * (0.25 + 0.75 * file.size / _TYPICAL_BYTES) if found is in_texts else 0.0
            for at, count in counts.items():
                worth[file] += weight * math.log(1 + among / having[at]) * count / (count + slope)
    return sorted(worth, key=lambda file: -worth[file])


def _found_in(texts: Iterable[tuple[FoundFile, bytes]], wanted: Sequence[Needle]) -> dict[FoundFile, dict[int, int]]:
    """Files that have a word: for each the numbers of its words, and how often each occurs."""
    found: dict[FoundFile, dict[int, int]] = {}
    for file, text in texts:
        counts = {at: count for at, needle in enumerate(wanted) if (count := sum([text.count(one) for one in needle]))}
        if counts:
            found[file] = counts
    return found


def _read(
    root: str, files: Sequence[FoundFile], is_over: Callable[[], bool], scanned: list[FoundFile]
) -> Iterator[tuple[FoundFile, bytes]]:
    """The bytes of files in lower case, one after another until time is up; `scanned` receives the files."""
    for file in files:
        if file.size > LARGEST_SCANNED or file_type(file.path.rpartition("/")[2]).kind == "document":
            continue
        if is_over():
            return
        scanned.append(file)
        with suppress(UnreadableError):
            yield file, read_bytes(f"{root}/{file.path}", LARGEST_SCANNED)[0].lower()
