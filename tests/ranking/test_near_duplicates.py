"""Near-duplicates are shown once; none of them goes unmentioned."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from findling.ranking.diversity import Duplicate, Kept, collapse
from tests.counts import tries

no_deadline = settings(deadline=None, max_examples=tries(60, short=25))

WORDS = [f"w{number}" for number in range(102)]
"""100 runs of three words."""

texts = st.lists(st.lists(st.sampled_from("a b c".split()), max_size=7), max_size=10)


def runs_of(words: list[str]) -> set[tuple[str, ...]]:
    return {tuple(words[start : start + 3]) for start in range(max(len(words) - 2, 1))} if words else set()


def plain(given_texts: list[list[str]], threshold: float) -> list[Kept]:
    """The definition: every text against every kept one."""
    kept: list[tuple[int, set[tuple[str, ...]], list[Duplicate]]] = []
    for item, words in enumerate(given_texts):
        own = runs_of(words)
        for _, others, stands_for in kept:
            if own and (similarity := len(own & others) / len(own | others)) >= threshold:
                stands_for.append(Duplicate(item, similarity))
                break
        else:
            kept.append((item, own, []))
    return [Kept(item, tuple(stands_for)) for item, _, stands_for in kept]


def changed_at(*places: int) -> list[str]:
    return [f"x{place}" if place in places else word for place, word in enumerate(WORDS)]


def test_similar_enough_and_not_quite() -> None:
    # A word in the middle stands in 3 runs. 9 runs of 100 differ: 91 / 109 = 0.835; 12 differ: 88 / 112 = 0.786.
    three, four = changed_at(20, 40, 60), changed_at(20, 40, 60, 80)
    assert collapse([(1, WORDS), (2, three)]) == [Kept(1, (Duplicate(2, 91 / 109),))]
    assert collapse([(1, WORDS), (2, four)]) == [Kept(1), Kept(2)]
    assert collapse([(1, WORDS), (2, four)], threshold=0.78) == [Kept(1, (Duplicate(2, 88 / 112),))]


def test_the_first_stands_for_the_others_in_order() -> None:
    other = ["quite", "another", "text"]
    assert collapse([(5, WORDS), (9, other), (3, WORDS), (7, other), (1, changed_at(50))]) == [
        Kept(5, (Duplicate(3, 1.0), Duplicate(1, 97 / 103))),
        Kept(9, (Duplicate(7, 1.0),)),
    ]


def test_a_chain_does_not_pull_in_what_is_not_alike() -> None:
    near, far = changed_at(20, 40, 60), changed_at(20, 40, 60, 70, 80, 90)
    assert [kept.id for kept in collapse([(1, near), (2, far)])] == [1]
    assert [kept.id for kept in collapse([(1, WORDS), (2, near), (3, far)])] == [1, 3]


def test_a_text_made_of_pieces_of_others_stays() -> None:
    halves = WORDS[:51] + [f"y{number}" for number in range(51)]
    assert [kept.id for kept in collapse([(1, WORDS), (2, halves[51:] * 2), (3, halves)])] == [1, 2, 3]


def test_order_of_the_words_matters() -> None:
    assert len(collapse([(1, WORDS), (2, WORDS[::-1])])) == 2


def test_short_and_empty_texts() -> None:
    assert collapse([]) == []
    assert collapse([(1, []), (2, [])]) == [Kept(1), Kept(2)], "nothing is no repetition"
    assert collapse([(1, ["to", "do"]), (2, ["to", "do"]), (3, ["to"])]) == [Kept(1, (Duplicate(2, 1.0),)), Kept(3)]


def test_the_length_of_a_run_is_a_choice() -> None:
    one, other = "a b c d".split(), "d a b c".split()
    assert [kept.id for kept in collapse([(1, one), (2, other)], run=1)] == [1]
    assert [kept.id for kept in collapse([(1, one), (2, other)])] == [1, 2]


def test_an_id_given_twice_is_refused() -> None:
    with pytest.raises(ValueError, match="id 4 is given twice"):
        collapse([(4, WORDS), (5, []), (4, ["other"])])


@pytest.mark.parametrize("threshold", [0.0, -1.0, 1.2, float("nan")])
def test_a_threshold_lies_between_0_and_1(threshold: float) -> None:
    with pytest.raises(ValueError, match="threshold is"):
        collapse([], threshold=threshold)


@no_deadline
@given(given_texts=texts, threshold=st.sampled_from([0.2, 0.5, 0.83, 1.0]))
def test_the_shortcut_never_misses_one(given_texts: list[list[str]], threshold: float) -> None:
    collapsed = collapse(list(enumerate(given_texts)), threshold=threshold)
    assert collapsed == plain(given_texts, threshold)
    told = [item for kept in collapsed for item in (kept.id, *(other.id for other in kept.stands_for))]
    assert sorted(told) == list(range(len(given_texts)))
