"""A plain scan for the words of a question: names first, then bytes, until time is up. Nothing is indexed for it."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress

from findling.sources.files.discovery import FoundFile
from findling.sources.files.file_text import UnreadableError, read_beginning
from findling.sources.files.file_types import file_type
from findling.text.analysis.analysis import STOP_WORDS, terms
from findling.text.analysis.stemming import forms_prefix, is_function_word

LARGEST_SCANNED = 400_000
"""Bytes of a file that are scanned, from its beginning: more takes too long to be indexed for a first answer."""

_MOST_NEEDLES = 12
_SHORTEST = 2
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


def scanned_files(
    root: str, files: Sequence[FoundFile], wanted: Sequence[Needle], is_over: Callable[[], bool]
) -> dict[FoundFile, float]:
    """The files with one of the words in their path or bytes, as far as the scan comes in time.

    Each has the strength of its text, which is that of BM25. Those with a word in their path are scanned first, most
    words first, the others as they come.
    """
    in_names = _found_in(((file, file.path.lower().encode()) for file in files), wanted)
    order = sorted(in_names, key=lambda file: -len(in_names[file])) + [file for file in files if file not in in_names]
    scanned: list[FoundFile] = []
    in_texts = _found_in(_read(root, order, is_over, scanned), wanted)
    strengths: dict[FoundFile, float] = dict.fromkeys([*in_names, *in_texts], 0.0)
    having = Counter(at for counts in in_texts.values() for at in counts)
    rarity = {at: math.log(1 + len(scanned) / count) for at, count in having.items()}
    for file, counts in in_texts.items():
        size = min(file.size, LARGEST_SCANNED)
        slope = _SATURATION * (0.25 + 0.75 * size / _TYPICAL_BYTES)
        strengths[file] = sum([rarity[at] * count / (count + slope) for at, count in counts.items()])
    return strengths


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
        if file_type(file.path.rpartition("/")[2]).kind == "document":
            continue
        if is_over():
            return
        scanned.append(file)
        with suppress(UnreadableError):
            yield file, read_beginning(f"{root}/{file.path}", LARGEST_SCANNED).lower()
