"""Words that are spelled nearly alike: what a fuzzy word matches, and what a person may have meant."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain

from findling.text.analysis.scripts import is_unspaced
from findling.text.analysis.stemming import same_stem

FEWEST_LETTERS = 4
"""Of a word to suggest something for: almost every shorter one is an edit away from some other word."""
LONGEST_OF_ONE_EDIT = 7
_SHORTEST_HALF = 3


class Spellings:
    """A vocabulary by the lengths of its words: only words of nearly the same length are compared with a term.

    It gives its words and their frequencies, too: a leg keeps one for all who ask for its vocabulary.
    """

    def __init__(self, vocabulary: Iterable[tuple[str, int]]) -> None:
        self._by_length: dict[int, dict[str, int]] = {}
        for word, frequency in vocabulary:
            self._by_length.setdefault(len(word), {})[word] = frequency

    @classmethod
    def of(cls, vocabulary: Iterable[tuple[str, int]]) -> Spellings:
        """The spellings of a vocabulary, which may be spellings already."""
        return vocabulary if isinstance(vocabulary, cls) else cls(vocabulary)

    def __iter__(self) -> Iterator[tuple[str, int]]:
        return chain.from_iterable(words.items() for words in self._by_length.values())

    def frequency(self, word: str) -> int:
        """Frequency of a word; 0 for an unknown one."""
        return self._by_length.get(len(word), {}).get(word, 0)

    def compared(self, term: str, distance: int) -> int:
        """Number of words that `close` compares: 100,000 of them take 30 ms."""
        return sum(map(len, self._alike(term, _sensible(term, distance))))

    def close(self, term: str, distance: int) -> list[tuple[str, int, int]]:
        """All words within that many edits: word, frequency, edits; nearest first, then most frequent.

        At most half of the letters are edited: two edits turn `os` into any of 9,000 words of a code tree.
        """
        from rapidfuzz import process
        from rapidfuzz.distance import OSA

        found = []
        distance = _sensible(term, distance)
        for words in self._alike(term, distance):
            near = process.extract(term, list(words), scorer=OSA.distance, score_cutoff=distance, limit=None)
            found += [(word, words[word], int(edits)) for word, edits, _ in near]
        return sorted(found, key=lambda entry: (entry[2], -entry[1], entry[0]))

    def _alike(self, term: str, distance: int) -> list[dict[str, int]]:
        lengths = range(len(term) - distance, len(term) + distance + 1)
        return [self._by_length[length] for length in lengths if length in self._by_length]


def _sensible(term: str, distance: int) -> int:
    return min(distance, len(term) // 2)


def edits(a: str, b: str, most: int) -> int:
    """Edit distance of two words: letters added, left out, changed or swapped with their neighbour.

    No letter is edited twice (optimal string alignment). `most + 1` stands for everything beyond `most`.
    """
    from rapidfuzz.distance import OSA

    return int(OSA.distance(a, b, score_cutoff=most))


def suggest(term: str, vocabulary: Spellings, *, limit: int = 3) -> list[str]:
    """Suggest words for a term: words of a close spelling, or two words that were run together.

    Nothing for short words, for scripts without spaces, and nothing that is the term in another inflected form. The
    first letter is seldom mistyped, so words that share it come first; then fewer edits, then the same letters in
    another order (josn: json, not join), then more frequent words.
    """
    if sum(map(str.isalpha, term)) < FEWEST_LETTERS or any(map(is_unspaced, term)):
        return []
    close = vocabulary.close(term, 1 if len(term) <= LONGEST_OF_ONE_EDIT else 2)
    forms = {term, *same_stem(term, [word for word, _, _ in close])}
    # 2023 is no way to spell 2024, nor is python2 one to spell python3.
    meant = [entry for entry in close if entry[0] not in forms and _digits(entry[0]) == _digits(term)]
    meant += _taken_apart(term, vocabulary, max((frequency for _, frequency, _ in meant), default=0))
    letters = sorted(term)
    meant.sort(key=lambda entry: (entry[0][0] != term[0], entry[2], sorted(entry[0]) != letters, -entry[1]))
    return [word for word, _, _ in meant[:limit]]


def _digits(word: str) -> str:
    return "".join(filter(str.isdigit, word))


def _taken_apart(term: str, vocabulary: Spellings, rarest: int) -> list[tuple[str, int, int]]:
    """The two words that a term most likely consists of; a pair is as frequent as its rarer half.

    Large vocabularies have two words for almost any term (config, ration). A pair must be more frequent than words of a
    close spelling.
    """
    pairs = [(term[:at], term[at:]) for at in range(_SHORTEST_HALF, len(term) - _SHORTEST_HALF + 1)]
    known = vocabulary.frequency
    found = [(min(known(left), known(right)), f"{left} {right}") for left, right in pairs]
    frequency, words = max(found, default=(0, ""))
    return [(words, frequency, 1)] if frequency > rarest else []
