"""Words that a vocabulary cuts into letters have no meaning to a model."""

from __future__ import annotations

import random

import pytest

from findling.text.analysis.wordpieces import known_share


@pytest.mark.parametrize(
    "text", ["how to bake bread", "blockchain consensus algorithm", "Median of a list", "2024", "", "?!"]
)
def test_words_of_a_language_are_known(text: str) -> None:
    assert known_share(text) == 1.0


def test_random_letters_are_unknown() -> None:
    chance = random.Random(7)
    words = ["".join(chance.choices("bcdfghjklmnpqrstvwxz", k=9)) for _ in range(100)]
    assert known_share(" ".join(words)) < 0.05
    assert known_share("asdkjhqwe zxcmnbvqw") == 0.0
    assert known_share("q" * 200) == 0.0, "a word too long to be read at all"


def test_the_words_that_hold_a_sentence_together_do_not_count() -> None:
    assert known_share("where is the asdkjhqwe of the zxcmnbvqw") == 0.0
    assert known_share("bread with zxcmnbvqw") == 0.5


def test_what_the_index_holds_is_known() -> None:
    assert known_share("zxcmnbvqw", {"zxcmnbvqw"}) == 1.0
