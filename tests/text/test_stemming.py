"""Forms of a word are recognised in a vocabulary, one algorithm per script."""

from __future__ import annotations

import re
import textwrap
import unicodedata
from bisect import bisect_left
from collections import Counter
from pathlib import Path

import pytest

from findling.text.analysis.analysis import terms
from findling.text.analysis.stemming import (
    forms_prefix,
    forms_table,
    function_words,
    held_languages,
    same_stem,
    stem,
    table_forms,
    told_language,
)

PROSE = " ".join(terms(Path(re.__file__).read_text() + Path(textwrap.__file__).read_text()))
"""Words of the standard library."""


@pytest.mark.parametrize(
    ("term", "forms", "strangers"),
    [
        ("connections", ["connect", "connected", "connection"], ["con", "connor", "connexion"]),
        ("using", ["use", "used", "uses"], ["user", "usher"]),
        ("happy", ["happiness"], ["happen"]),
        ("indices", ["indices"], ["index"]),
        ("книги", ["книга", "книгу"], ["книжный"]),
    ],
)
def test_forms_share_a_stem_and_a_prefix(term: str, forms: list[str], strangers: list[str]) -> None:
    assert same_stem(term, [*forms, *strangers]) == forms
    assert all(form.startswith(forms_prefix(term)) for form in forms)


@pytest.mark.parametrize("term", ["go", "c", "x509", "数据", "ab", "c++", "notepad++", "🚀"])
def test_short_and_foreign_terms_are_left_alone(term: str) -> None:
    assert stem(term) == term
    assert same_stem(term, [term, f"{term}s"]) == [term]
    assert term.startswith(forms_prefix(term))


def words_of_all_languages() -> list[str]:
    """Small words of every language, and what endings, beginnings and doubled letters make of them."""
    small = [term for words, _ in function_words().values() for term in words]
    endings = ["s", "ing", "ed", "ους", "αν", "ων", "ого", "ами", "ات", "ون", "ها", "ों", "ियाँ"]
    made = [f"{word}{ending}" for word in small for ending in endings if _is_one_script(word, ending)]
    letters = "abcdefghijklmnopqrstuvwxyzαβγδεζηθικλμνξοπρστυφχψωабвгдежзийклмнопрстуфхцчшщыэюяابتثجحخدرسشعغفقكلمنهوي"
    short = [a + b + a for a in letters for b in letters]
    return list(dict.fromkeys([*small, *endings, *made, *short]))


def _is_one_script(word: str, ending: str) -> bool:
    return unicodedata.name(word[0]).split()[0] == unicodedata.name(ending[0]).split()[0]


def test_no_stem_is_empty_and_every_word_is_a_form_of_itself() -> None:
    words = words_of_all_languages()
    assert len(words) > 5_000
    assert [word for word in words if not stem(word)] == []
    assert [word for word in words if word not in same_stem(word, [word])] == []
    assert [word for word in words if not word.startswith(forms_prefix(word))] == []


def test_a_greek_word_that_is_all_ending_is_found_and_finds_no_other() -> None:
    assert same_stem("οταν", ["οταν", "οτε", "ηταν"]) == ["οταν"]


def test_a_table_names_the_forms_that_a_walk_finds() -> None:
    words = words_of_all_languages()
    vocabulary = sorted({*words[::2], *PROSE.split(), "utf8", "tests2", "c++", "ad", "ads", "लडक", "लडकी"})
    table = forms_table(vocabulary)
    for term in dict.fromkeys([*words, *vocabulary]):
        if len(term) < 3 or not term.isalpha():
            continue  # which nobody asks a table for
        prefix = forms_prefix(term)
        near = vocabulary[bisect_left(vocabulary, prefix) : bisect_left(vocabulary, f"{prefix}\U0010ffff")]
        named = [word for word in table_forms(table, term) if word in near]
        assert named == same_stem(term, near), term


def test_a_table_grows_into_that_of_all_words() -> None:
    words = [*dict.fromkeys([*words_of_all_languages(), *PROSE.split()])]
    table = b""
    for start in range(0, len(words), len(words) // 7):
        table = forms_table(words[start : start + len(words) // 7], table)
    assert table == forms_table(words)
    assert forms_table(words[::3], table) == table
    assert forms_table([], table) == table


@pytest.mark.parametrize(
    ("language", "term", "forms", "strangers"),
    [
        ("german", "katzen", ["katze", "katzen"], ["kater"]),
        ("turkish", "kitaplar", ["kitap", "kitaplari"], ["kitle"]),
        ("spanish", "buscando", ["buscar", "buscado"], ["busto"]),
        ("polish", "kota", ["kot"], ["kora"]),
        ("", "connections", ["connect"], ["con"]),
        ("russian", "connections", ["connect"], ["con"]),
    ],
)
def test_a_language_has_forms_of_its_own(language: str, term: str, forms: list[str], strangers: list[str]) -> None:
    assert same_stem(term, [*forms, *strangers], language) == forms
    assert all(form.startswith(forms_prefix(term, language)) for form in forms)


@pytest.mark.parametrize(
    ("question", "language"),
    [
        ("wie wird der Index gelöscht", "german"),
        ("how do I delete the index", "english"),
        ("delete index", ""),
        ("¿dónde está la biblioteca?", "spanish"),
    ],
)
def test_small_words_tell_the_language_of_a_question(question: str, language: str) -> None:
    assert told_language(question) == language


def test_an_index_holds_the_languages_whose_small_words_it_has() -> None:
    english = "the house and the garden of that man with his dog"
    german = "der hund und die katze sind nicht in dem haus"
    for texts, held in (
        ([english] * 9, ("english",)),
        ([german] * 9, ("german",)),
        ([german] * 6 + [english] * 3, ("german", "english")),
        ([english] * 30 + [german], ("english",)),
        (["x = y + 1"] * 9, ("english",)),
        ([], ("english",)),
    ):
        frequency = Counter(word for text in texts for word in {*text.split()})
        assert held_languages(frequency.__getitem__, len(texts)) == held
