"""Words by their language: the inflected forms of a word, and small words that say nothing of what is asked.

Snowball stems decide what is a form, one algorithm per script, and one per language in Latin letters. Stems never
enter the index. A passage is no hit because it shares small words. They are rare in small collections, where BM25 takes
them for telling: `how do I delete the index` found "I do". The language counts: `war` says nothing in German.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import cache, lru_cache
from itertools import chain
from pathlib import Path
from typing import Any, Protocol
from unicodedata import normalize

from findling.domain.plans import LANGUAGES
from findling.text.analysis.analysis import phrase_terms
from findling.text.analysis.scripts import has_other_letters

_LISTS = Path(__file__).with_name("data") / "function-words.txt"
"""A line for each language, written by hand: terms that say nothing, words of requests, letters that of these
languages it alone has, and the accents of those terms where other words differ by accents alone (`té`). Behind `*` are
terms for all: `alsoEnglish` are small words of other languages that are words or parts of names in English, and tell no
language. Behind `%` are words as they are written, for one module each."""

_ENGLISH = "english"


@cache
def _rows() -> dict[str, list[list[str]]]:
    lines = [line.partition(": ") for line in _LISTS.read_text(encoding="utf-8").splitlines()]
    return {name: [part.split() for part in words.split("|")] for name, _, words in lines}


def listed(name: str) -> frozenset[str]:
    """The words of a list of one module."""
    return frozenset(_rows()[f"%{name}"][0])


@cache
def _special(name: str) -> frozenset[str]:
    return frozenset(_rows()[f"*{name}"][0])


@cache
def languages_by_word() -> dict[str, list[str]]:
    """Term → the languages in which it says nothing."""
    return by_word({language: words for language, (words, _) in function_words().items()})


def by_word(rows: Mapping[str, Iterable[str]]) -> dict[str, list[str]]:
    """Word → those whose rows hold it."""
    known: dict[str, list[str]] = {}
    for language, words in rows.items():
        for word in words:
            known.setdefault(word, []).append(language)
    return known


@cache
def function_words() -> dict[str, tuple[list[str], list[str]]]:
    """Language → its small words, the frequent ones first, and its words of requests, such as `tell` and `please`."""
    return {name: (parts[0], parts[1]) for name, parts in _rows().items() if name[0] not in "*%"}


@cache
def _letters() -> dict[str, list[str]]:
    """Language → letters that no other one here has."""
    return {name: _rows()[name][2] for name in function_words()}


@cache
def _accented(language: str) -> frozenset[str]:
    """The small words of a language that have accents, where these tell them from other words."""
    return frozenset(chain.from_iterable(_rows()[language][3:]))


def word_lists() -> dict[str, Any]:
    """All lists as JSON-ready values, for a page that searches by itself."""
    special = {name[1:]: parts[0] for name, parts in _rows().items() if name[0] == "*"}
    pairs = {name: sorted(listed(name)) for name in ("koreanPairs", "koreanEndings", "chineseSigns")}
    accented = {name: sorted(_accented(name)) for name in function_words()}
    return {"languages": function_words(), "letters": _letters(), "accented": accented, **special, **pairs}


def is_function_word(term: str) -> bool:
    """Whether a term is a small word of some language."""
    return term in languages_by_word()


def question_language(text: str) -> str:
    """The language of a question by its small words, `english` where they do not tell another one."""
    return told_language(text) or _ENGLISH


@lru_cache(maxsize=256)
def told_language(text: str) -> str:
    """The language of a question by its small words, empty where none stands in it.

    Another one than English needs two of them, or of words in its own letters, one that asks or is not in ASCII, and
    more than English has.
    """
    votes, own = Counter[str](), Counter[str]()
    for word in dict.fromkeys(normalize("NFC", text.replace("\u2019", "'")).split()):
        if not _is_plainly_written(word):
            continue
        owners = [] if word.isascii() else [one for one, own in _letters().items() if not set(own).isdisjoint(word)]
        votes.update(owners)
        row = phrase_terms(word)
        for term in row:
            # The `s` of `patient's` and the letter of `N-cadherin` are no words.
            is_cut = len(term) == 1 and word != term and not word.lower().startswith(f"{term}'")
            known = languages_by_word().get(term, ()) if not is_cut and term not in _special("alsoEnglish") else ()
            languages = [one for one in owners or known if one in known and not _is_another_by_accents(word, one)]
            # The accent of `l'arrière-plan` is not one of the `l`.
            is_telling = term in _special("asking") or (len(row) == 1 and not word.isascii())
            votes.update(dict.fromkeys(languages, 2 if is_telling else 1))
            own.update(dict.fromkeys(languages, 1 / max(len(languages), 1)))
    best = max(function_words(), key=lambda language: (votes[language], own[language]))
    if votes[best] > max(votes[_ENGLISH], 1):
        return best
    return _ENGLISH if votes[_ENGLISH] else ""


def held_languages(frequency: Callable[[str], int], entries: int) -> tuple[str, ...]:
    """The languages in Latin letters that an index holds, by how many of its entries have their small words.

    A word tells the first of the languages that have it: Danish is not held beside Norwegian, nor Afrikaans beside
    Dutch.
    """
    rows = {
        language: [word for word in function_words()[language][0] if word in telling][:_LOOKED_UP]
        for language, telling in telling_words().items()
        if language in LANGUAGES
    }
    said = {word: frequency(word) for row in rows.values() for word in row}
    held: list[str] = []
    while len(held) < _MOST_HELD:
        best = max(rows, key=lambda language: sum(said[word] for word in rows[language]))
        if _SHARE * sum(said[word] for word in rows[best]) < max(entries, 1):
            break
        held.append(best)
        said.update(dict.fromkeys([word for word in function_words()[best][0] if word in said], 0))
        del rows[best]
    return tuple(held) or (_ENGLISH,)


def is_foreign_by_looks(text: str) -> bool:
    """Whether the letters of a question, or its small words, are those of another language than English."""
    return has_other_letters(text) or question_language(text) != _ENGLISH


def _is_plainly_written(word: str) -> bool:
    """Whether a word is neither code nor a product: no digits, and capitals at its beginning or all over.

    Signs may stand before it (`¿Cómo`), and letters need no capitals (`कैसे`).
    """
    begin = next((at for at, letter in enumerate(word) if letter.isalpha()), 0)
    return (word.isupper() or word[begin + 1 :] == word[begin + 1 :].lower()) and not any(map(str.isdigit, word))


@cache
def telling_words() -> dict[str, frozenset[str]]:
    """Language → the small words that tell it in a passage; those of English are no other language's."""
    known = languages_by_word()
    rows = {name: frozenset(words) for name, (words, _) in function_words().items()}
    own = {
        name: frozenset(word for word in words if len(word) >= _TELLING and _ENGLISH not in known[word])
        for name, words in rows.items()
    }
    own[_ENGLISH] = frozenset(word for word in rows[_ENGLISH] if len(known[word]) < _SHARED)
    return {name: words - _special("alsoEnglish") for name, words in own.items()}


_LOOKED_UP, _SHARE, _MOST_HELD = 12, 3, 3
"""Small words of a language that are looked up in an index, its entries for one that they stand in, and languages that
it holds at most: each takes a walk for each word of a question."""

_TELLING, _SHARED = 3, 3
"""Letters of a small word that tells a language, and languages that share one which does not tell English any more."""


def empty_words(words: Sequence[str]) -> list[bool]:
    """For each word of a question, as it was typed, whether it says nothing of what is asked.

    Words of requests (`can you tell me`) are such words at the beginning. A small word that is written as a name (`IT`,
    `The Who`) or as code is none.
    """
    rows = [phrase_terms(word) for word in words]
    language = question_language(" ".join(words))
    small, requests = small_words(language)
    lower = [word.islower() for word in words]
    said: list[bool] = []
    is_begin = True  # `how do I What are`: a capital behind words of a request begins the question
    for at, (word, row) in enumerate(zip(words, rows, strict=True)):
        is_first = is_begin and rows[at - 1 : at] != [["the"]]
        is_small = _is_empty(word, row, small) and not _is_another_by_accents(word, language)
        said.append(is_small and not _is_name(word, is_first, lower, language))
        is_begin = is_begin and (said[at] or requests.issuperset(row))
    for at in range(_request_end(rows, said, requests)):
        said[at] = True
    return said


@cache
def small_words(language: str) -> tuple[frozenset[str], ...]:
    # Kept: to make sets of 270 words took a fiftieth of a question.
    return tuple(map(frozenset, function_words()[language]))


def question_begin(words: Sequence[str]) -> int:
    """The number of words by which a question only asks for an answer: `can you tell me` of `… where it lies`."""
    rows = [phrase_terms(word) for word in words]
    said = empty_words(words)
    lead = next((at for at, is_empty in enumerate(said) if not is_empty), len(said))
    return max((at for at in range(lead) if not _special("asking").isdisjoint(rows[at])), default=0)


def _is_empty(word: str, row: Sequence[str], empty: Collection[str]) -> bool:
    # One letter is the end of a contraction, or a name such as the language D.
    is_cut = len(row) > 1 and not word.isalnum()
    return bool(row) and "`" not in word and all(term in empty or (is_cut and len(term) == 1) for term in row)


def _is_another_by_accents(word: str, language: str) -> bool:
    """Whether accents were typed that no small word of the language has: `nền`, a ground, is no `nên`."""
    if word.isascii() or not (known := _accented(language)):
        return False
    parts = re.findall(r"\w+", normalize("NFC", word.lower()))
    return any(not part.isascii() and part not in known for part in parts)


def _is_name(word: str, is_first: bool, lower: Sequence[bool], language: str) -> bool:
    """Whether a small word is written as a name among words in lower case."""
    if len(word) < 2 or not any(lower):
        return False
    if word.isupper():
        return True
    is_title = language == _ENGLISH and not is_first and word[0].isupper()
    return is_title and word.lower() not in _special("articles") and 2 * sum(lower) > len(lower) - 1


def _request_end(rows: Sequence[Sequence[str]], said: Sequence[bool], requests: frozenset[str]) -> int:
    """The end of the request that a question begins with: behind the last small word, articles aside."""
    end = 0
    for at, row in enumerate(rows):
        if said[at]:
            end = end if _special("articles").issuperset(row) else at + 1
        elif not requests.issuperset(row):
            break
        elif at == end and _special("orders").issuperset(row) and any(said[at + 1 : at + 2]):
            end = at + 1
    return end


_ALGORITHMS = (
    ("a", "z", "english"),
    ("\u0370", "\u03ff", "greek"),
    ("\u0400", "\u04ff", "russian"),
    ("\u0600", "\u06ff", "arabic"),
    ("\u0900", "\u097f", "hindi"),
)


@lru_cache(maxsize=1_000)
def stem(term: str, language: str = "") -> str:
    """The stem of a term, or the term itself where no algorithm knows its script or leaves anything of it."""
    algorithm = _algorithm(term, language)
    # Snowball's Greek takes όταν ("when") for an ending without a word.
    return term if algorithm is None else _stemmer(algorithm).stemWord(term) or term


def forms_prefix(term: str, language: str = "") -> str:
    """A beginning that the term's forms share: what to look for in a sorted vocabulary."""
    root = stem(term, language)
    shared = 0
    for a, b in zip(term, root, strict=False):
        if a != b:
            break
        shared += 1
    # happy, happier → happi; use, using → use: the last letter of a stem may differ from the forms.
    if shared == len(root) and root[-1] in "iey" and len(root) > 2:
        shared -= 1
    return term[: max(shared, 2)]


def same_stem(term: str, vocabulary: Sequence[str], language: str = "") -> list[str]:
    """The words of the vocabulary that have the term's stem."""
    algorithm = _algorithm(term, language)
    if algorithm is None:
        return [word for word in vocabulary if word == term]
    root = stem(term, language)
    stems = _stemmer(algorithm).stemWords(vocabulary)
    return [word for word, own in zip(vocabulary, stems, strict=True) if (own or word) == root]


def forms_table(words: Collection[str], table: bytes = b"") -> bytes:
    """The words that differ from their stems, a sorted line for each stem: `connect: connected connecting`.

    With a table, also the words in it.
    """
    groups: dict[str, list[str]] = {}
    for root, word in _inflected(words):
        groups.setdefault(root, []).append(word)
    pieces, at = [], 0
    for root in sorted(groups):
        start, end = _row_span(table, root.encode(), at)
        forms = {*groups[root], *table[start:end].decode().split()[1:]}
        pieces += [table[at:start], f"{root}: {' '.join(sorted(forms))}\n".encode()]
        at = end
    return b"".join([*pieces, table[at:]])


def table_forms(table: bytes, term: str) -> list[str]:
    """The words of a vocabulary that have the term's stem, in order, by its table; the stem may not be in it."""
    algorithm, root = _algorithm(term), stem(term)
    if algorithm is None:
        return [term]
    # As a walk stems it: short words have no stem of their own, and may be the form of another one.
    is_own = (_stemmer(algorithm).stemWord(root) or root) == root
    start, end = _row_span(table, root.encode())
    return sorted({*table[start:end].decode().split()[1:], *([root] if is_own else [])})


def stemmer_version() -> str:
    """The version of the stems."""
    import Stemmer

    version: str = Stemmer.version()
    return version


def _inflected(words: Collection[str]) -> Iterator[tuple[str, str]]:
    """The stem and the word of each word that differs from its stem."""
    # What is no letter stays in an English stem; vowels of Hindi are no letters, and do not.
    english = [word for word in words if "a" <= word < "{" and word.isalpha()]
    others = [word for word in words if word >= "{"]
    for first, last, name in _ALGORITHMS:
        own = english if name == "english" else [word for word in others if first <= word[0] <= last]
        for word, root in zip(own, _stemmer(name).stemWords(own) if own else (), strict=True):
            if root != word and root.isalpha():
                yield root, word


def _row_span(table: bytes, root: bytes, low: int = 0) -> tuple[int, int]:
    """The row of a stem from `low` on; an empty one where it belongs if there is none. 17 steps find one of 40,000."""
    high, reach = len(table), _NEAR
    while 0 < low < high - reach:  # the row before was asked for: 5 steps find a neighbour
        start = table.rfind(b"\n", low, low + reach) + 1 or low
        if table[start : table.index(b":", start)] > root:
            high = start
        else:
            low, reach = start, 2 * reach
    while low < high:
        start = table.rfind(b"\n", low, (low + high) // 2) + 1 or low
        end = table.index(b"\n", start) + 1
        head = table[start : table.index(b":", start)]
        if head == root:
            return start, end
        low, high = (end, high) if head < root else (low, start)
    return low, low


_NEAR = 1024
"""Bytes of a table that hold some 30 rows."""


def stems_apart(language: str) -> bool:
    """Whether a language in Latin letters has stems of its own, which no table of forms holds."""
    return language in _LATIN


_LATIN = frozenset(LANGUAGES) - {_ENGLISH}


def _algorithm(term: str, language: str = "") -> str | None:
    if len(term) < 3 or not term.isalpha():
        return None
    if term[0] <= "z":  # as most terms are
        return (language if language in _LATIN else _ENGLISH) if term[0] >= "a" else None
    return next((name for first, last, name in _ALGORITHMS if first <= term[0] <= last), None)


class _Stemmer(Protocol):
    def stemWord(self, word: str) -> str: ...  # noqa: N802 - the names of PyStemmer

    def stemWords(self, words: Sequence[str]) -> list[str]: ...  # noqa: N802


@cache
def _stemmer(algorithm: str) -> _Stemmer:
    import Stemmer

    # Without a cache: a vocabulary is stemmed once, and filling PyStemmer's cache costs more than twice the stemming.
    stemmer: _Stemmer = Stemmer.Stemmer(algorithm, 0)
    return stemmer
