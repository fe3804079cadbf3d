"""Parts of compounds, and pairs of characters that say little."""

from __future__ import annotations

import pytest

from findling.text.analysis.analysis import phrase_terms
from findling.text.analysis.word_parts import BESIDE_KANA, CHINESE, KANA, KOREAN, compound_parts, pair_weights

KNOWN = {"sicherheit": 9, "aktualisierung": 4, "arbeit": 30, "zeit": 40, "strasse": 7, "bahn": 6, "beits": 1}


@pytest.mark.parametrize(
    ("compound", "parts"),
    [
        ("sicherheitsaktualisierung", ("sicherheit", "aktualisierung")),
        ("arbeitszeit", ("arbeit", "zeit")),
        ("strassenbahn", ("strasse", "bahn")),
        ("zeitarbeit", ("zeit", "arbeit")),
        ("arbeit", ()),
        ("arbeitskraft", ()),
        ("", ()),
        ("arbeit" * 20 + "zeit", ()),
    ],
)
def test_a_compound_consists_of_two_known_words(compound: str, parts: tuple[str, ...]) -> None:
    assert compound_parts(compound, lambda word: KNOWN.get(word, 0)) == parts


def test_of_several_pairs_the_more_frequent_one_is_meant() -> None:
    frequency = {"staub": 5, "ecken": 1, "staube": 1, "cken": 1, "becken": 8, "stau": 9}
    assert compound_parts("staubecken", lambda word: frequency.get(word, 0)) == ("stau", "becken")


@pytest.mark.parametrize(
    ("word", "weights"),
    [
        ("検索できます", {"索で": BESIDE_KANA, "でき": KANA, "きま": KANA, "ます": KANA}),
        ("データ", {}),
        ("정부는", {"부는": KOREAN}),
        ("정부", {}),
        ("무엇을", {"무엇": KOREAN, "엇을": KOREAN}),
        ("数据库的索引", {"库的": CHINESE, "的索": CHINESE}),
        ("getUserName", {}),
        ("Überprüfung", {}),
    ],
)
def test_pairs_of_endings_and_small_words_say_less(word: str, weights: dict[str, float]) -> None:
    assert pair_weights(phrase_terms(word)) == weights
