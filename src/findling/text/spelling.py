"""Words that are spelled nearly alike: what a fuzzy word matches, and what a person may have meant."""

from __future__ import annotations

from collections.abc import Iterable

from findling.text.analysis import is_unspaced
from findling.text.stemming import same_stem

__all__ = ["close_terms", "edits", "suggest"]

_FEWEST_LETTERS = 4
"""Of a word to suggest something for: almost every shorter one is an edit away from some other word."""
_LONGEST_OF_ONE_EDIT = 7
_SHORTEST_HALF = 3


def edits(a: str, b: str, most: int) -> int:
    """How many letters to add, leave out, change or swap with their neighbour turn one word into the other.

    No letter is edited twice (optimal string alignment). `most + 1` stands for everything beyond `most`.
    """
    return _distance(_masks(a), len(a), b, most)


def close_terms(term: str, vocabulary: Iterable[tuple[str, int]], distance: int = 2) -> list[tuple[str, int, int]]:
    """All words of the vocabulary within that many edits: word, frequency, edits; nearest first, then most frequent."""
    length, letters, masks = len(term), set(term), _masks(term)
    shortest, longest = length - distance, length + distance
    # An edit takes away one letter of the term at most and brings in one: without a look at what the words have in
    # common, 300,000 words cost 5x as much.
    alike = [
        entry
        for entry in vocabulary
        if shortest <= len(entry[0]) <= longest
        and len(letters.difference(entry[0])) <= distance
        and len(set(entry[0]) - letters) <= distance
    ]
    found = [(word, frequency, _distance(masks, length, word, distance)) for word, frequency in alike]
    return sorted((entry for entry in found if entry[2] <= distance), key=lambda entry: (entry[2], -entry[1], entry[0]))


def suggest(term: str, vocabulary: Iterable[tuple[str, int]], *, limit: int = 3) -> list[str]:
    """What a person may have meant by a term: words spelled nearly so, or two words that were run together.

    Nothing for short words, for scripts without spaces, and nothing that is the term in another inflected form. The
    first letter is seldom mistyped, so words that share it come first; then fewer edits, then the same letters in
    another order (josn: json, not join), then more frequent words.
    """
    if sum(map(str.isalpha, term)) < _FEWEST_LETTERS or any(map(is_unspaced, term)):
        return []
    words = vocabulary if isinstance(vocabulary, list) else list(vocabulary)
    close = close_terms(term, words, 1 if len(term) <= _LONGEST_OF_ONE_EDIT else 2)
    forms = {term, *same_stem(term, [word for word, _, _ in close])}
    # 2023 is no way to spell 2024, nor is python2 one to spell python3.
    meant = [entry for entry in close if entry[0] not in forms and _digits(entry[0]) == _digits(term)]
    meant += _taken_apart(term, words, max((frequency for _, frequency, _ in meant), default=0))
    letters = sorted(term)
    meant.sort(key=lambda entry: (entry[0][0] != term[0], entry[2], sorted(entry[0]) != letters, -entry[1]))
    return [word for word, _, _ in meant[:limit]]


def _digits(word: str) -> str:
    return "".join(filter(str.isdigit, word))


def _taken_apart(term: str, vocabulary: list[tuple[str, int]], rarest: int) -> list[tuple[str, int, int]]:
    """The two words that a term most likely consists of; a pair is as frequent as its rarer half.

    Large vocabularies have two words for almost any term (config, ration), so a pair has to be more frequent than the
    words that are spelled nearly so.
    """
    pairs = [(term[:at], term[at:]) for at in range(_SHORTEST_HALF, len(term) - _SHORTEST_HALF + 1)]
    halves = {half for pair in pairs for half in pair}
    known = {word: frequency for word, frequency in vocabulary if word in halves}
    found = [(min(known.get(left, 0), known.get(right, 0)), f"{left} {right}") for left, right in pairs]
    frequency, words = max(found, default=(0, ""))
    return [(words, frequency, 1)] if frequency > rarest else []


def _masks(word: str) -> dict[str, int]:
    """For each letter the places where it stands, one bit each."""
    masks: dict[str, int] = {}
    for place, letter in enumerate(word):
        masks[letter] = masks.get(letter, 0) | 1 << place
    return masks


def _distance(masks: dict[str, int], length: int, word: str, most: int) -> int:
    # Hyyrö's bit-parallel algorithm (2003): a whole column of the table of distances in one integer, as the places
    # where it rises (up) or falls (down) by one; equal says where a diagonal costs nothing.
    if not length or not word:
        return min(length + len(word), most + 1)
    everywhere, last = (1 << length) - 1, 1 << (length - 1)
    up, down, equal, before = everywhere, 0, 0, 0
    score, limit = length, most + len(word)
    for letter in word:
        here = masks.get(letter, 0)
        swapped = ((~equal & here) << 1) & before
        equal = ((((here & up) + up) ^ up) | here | down | swapped) & everywhere
        rises = down | (everywhere & ~(equal | up))
        falls = equal & up
        limit -= 1
        if rises & last:
            score += 1
        elif falls & last:
            score -= 1
        if score > limit:  # every letter that is left lowers it by one at most
            return most + 1
        rises = (rises << 1) | 1
        up = ((falls << 1) | ~(equal | rises)) & everywhere
        down = rises & equal
        before = here
    return score
