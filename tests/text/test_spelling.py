"""Words spelled nearly alike are found completely, and what is suggested is what a person may have meant."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from findling.text.analysis.spelling import Spellings, edits, suggest

WORDS = st.text(st.sampled_from("abcé数"), max_size=8)


def table_of_edits(a: str, b: str) -> int:
    """The textbook table of optimal string alignment."""
    table = [[i + j if i == 0 or j == 0 else 0 for j in range(len(b) + 1)] for i in range(len(a) + 1)]
    for i in range(1, len(a) + 1):
        for j in range(1, len(b) + 1):
            best = min(table[i - 1][j] + 1, table[i][j - 1] + 1, table[i - 1][j - 1] + (a[i - 1] != b[j - 1]))
            if i > 1 and j > 1 and a[i - 1] == b[j - 2] and a[i - 2] == b[j - 1]:
                best = min(best, table[i - 2][j - 2] + 1)
            table[i][j] = best
    return table[len(a)][len(b)]


@pytest.mark.parametrize(
    ("a", "b", "expected"),
    [
        ("search", "search", 0),
        ("serch", "search", 1),
        ("recieve", "receive", 1),
        ("authentification", "authentication", 2),
        ("ca", "abc", 3),  # no letter is edited twice: with that it would be 2
        ("", "abc", 3),
        ("abc", "", 3),
        ("", "", 0),
        ("x" * 100, "x" * 98 + "yx", 1),
    ],
)
def test_edits_between_two_words(a: str, b: str, expected: int) -> None:
    assert edits(a, b, 5) == expected
    if expected:
        assert edits(a, b, expected - 1) == expected


@given(WORDS, WORDS, st.integers(0, 9))
def test_edits_are_those_of_the_textbook_and_stop_beyond_the_most(a: str, b: str, most: int) -> None:
    assert edits(a, b, most) == min(table_of_edits(a, b), most + 1)


@given(WORDS, st.dictionaries(WORDS, st.integers(1, 5), max_size=40), st.integers(0, 3))
def test_close_terms_are_complete_and_in_order(term: str, vocabulary: dict[str, int], distance: int) -> None:
    measured = [(word, frequency, table_of_edits(term, word)) for word, frequency in vocabulary.items()]
    most = min(distance, len(term) // 2)
    expected = sorted((e for e in measured if e[2] <= most), key=lambda e: (e[2], -e[1], e[0]))
    assert Spellings(vocabulary.items()).close(term, distance) == expected


def test_at_most_half_of_the_letters_are_edited() -> None:
    vocabulary = [("os", 1), ("as", 1), ("at", 1), ("cost", 1), ("most", 1)]
    assert [word for word, _, _ in Spellings(vocabulary).close("os", 2)] == ["os", "as"]
    assert [word for word, _, _ in Spellings(vocabulary).close("o", 2)] == []
    assert [word for word, _, _ in Spellings(vocabulary).close("past", 2)] == ["as", "at", "cost", "most"]


def test_letters_that_were_swapped_come_before_another_letter() -> None:
    assert suggest("josn", Spellings([("join", 900), ("json", 30)]))[0] == "json"


def test_a_generator_will_do_as_a_vocabulary() -> None:
    assert Spellings(iter([("search", 3), ("serch", 1)])).close("serch", 2) == [("serch", 1, 0), ("search", 3, 1)]
    assert suggest("ratelimit", Spellings(iter([("rate", 3), ("limit", 4)]))) == ["rate limit"]


def test_spellings_are_a_vocabulary() -> None:
    words = [("rate", 3), ("limit", 4), ("item", 1)]
    spellings = Spellings(words)
    assert sorted(spellings) == sorted(words)
    assert Spellings.of(spellings) is spellings
    assert sorted(Spellings.of(iter(words))) == sorted(words)


VOCABULARY = {
    "connection": 90,
    "connections": 40,
    "convection": 5,
    "database": 60,
    "data": 200,
    "bse": 2,
    "destination": 9,
    "estimation": 9,
    "estimations": 9,
    "form": 70,
    "from": 500,
    "farm": 4,
    "norm": 80,
    "limit": 50,
    "rate": 40,
    "ratel": 1,
    "imit": 1,
    "python3": 30,
    "2023": 8,
    "the": 900,
    "数据库": 9,
    "привет": 3,
}


@pytest.mark.parametrize(
    ("term", "expected"),
    [
        ("conection", ["connection", "convection", "connections"]),
        ("ratelimit", ["rate limit"]),
        ("databse", ["database"]),  # not "data bse", whose second half is rare
        ("form", ["from", "farm", "norm"]),  # a first letter that agrees counts more than frequency
        ("estimation", ["destination"]),  # an inflected form of the term is no other spelling
        ("python2", []),
        ("2024", []),
        ("teh", []),
        ("数据厍", []),
        ("превет", ["привет"]),
        ("conectoin", ["connection", "convection"]),
        ("dtabsae", []),  # two edits in a word of seven letters
        ("", []),
        ("🚀🚀🚀🚀", []),
    ],
)
def test_suggestions(term: str, expected: list[str]) -> None:
    assert suggest(term, Spellings(VOCABULARY.items())) == expected


def test_suggestions_are_cut_off_at_the_limit() -> None:
    assert suggest("form", Spellings(VOCABULARY.items()), limit=1) == ["from"]


@given(WORDS, st.dictionaries(WORDS, st.integers(1, 5), max_size=20), st.integers(0, 4))
def test_the_term_itself_is_never_suggested(term: str, vocabulary: dict[str, int], limit: int) -> None:
    found = suggest(term, Spellings(vocabulary.items()), limit=limit)
    assert term not in found
    assert len(found) <= limit
