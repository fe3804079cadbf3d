"""Patterns of exact searches: their trigrams never lose a match, and mistakes in them have a place."""

from __future__ import annotations

import re
import sys
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from findling.domain.errors import InvalidValueError
from findling.domain.queries import Pattern, Required
from findling.pipelines.retrieve import pattern_matches
from findling.text.query.patterns import compile_pattern, fold, required_trigrams, trigrams
from tests.counts import tries
from tests.text.pattern_samples import ALPHABETS, random_pattern, random_text

PATTERNS = tries(100_000, short=700)
LETTERS = tries(sys.maxunicode + 1, short=0x20000)
"""The codes to look at: no letter with a case lies above the first two planes."""


def test_no_random_pattern_loses_a_match() -> None:
    random = Random(17)
    matched = narrowed = 0
    for _ in range(PATTERNS):
        letters = random.choice(ALPHABETS)
        pattern, example = random_pattern(random, letters)
        text = random_text(random, letters, example)
        required = required_trigrams(pattern)
        is_match = compile_pattern(pattern).search(text) is not None
        assert not is_match or _holds(required, text), (pattern, text, required)
        matched += is_match
        narrowed += required is not None and not _holds(required, text)
    assert matched > PATTERNS // 6 and narrowed > PATTERNS // 12


@given(st.data())
@settings(deadline=None, max_examples=tries(3_000, short=50))
def test_no_matching_text_of_hypothesis_is_lost(data: st.DataObject) -> None:
    pattern, _ = random_pattern(Random(data.draw(st.integers(0, 10**9))), data.draw(st.sampled_from(ALPHABETS)))
    text = data.draw(st.text(max_size=3)) + data.draw(st.from_regex(compile_pattern(pattern)))
    if compile_pattern(pattern).search(text):
        assert _holds(required_trigrams(pattern), text)


def test_letters_that_re_takes_for_one_are_one_folded_letter() -> None:
    for code in range(LETTERS):
        letter = chr(code)
        assert len(fold(letter)) == 1
        if letter.lower() != letter or letter.upper() != letter:
            for other in {letter.lower(), letter.upper(), letter.swapcase(), fold(letter)}:
                if len(other) == 1 and re.fullmatch(re.escape(letter), other, re.IGNORECASE):
                    assert fold(letter) == fold(other), (letter, other)


@given(st.text())
@settings(deadline=None)
def test_folded_text_is_its_folded_letters(text: str) -> None:
    assert fold(text) == "".join(map(fold, text))
    assert fold(fold(text)) == fold(text)


@pytest.mark.parametrize("same", ["iIİı", "sSſ", "kK\u212a", "σΣς", "µμΜ", "ßẞ", "åÅ\u212b", "ﬅﬆ"])
def test_same_letters_have_the_same_trigrams(same: str) -> None:
    assert len({frozenset(trigrams(fold(f"a{letter}b"))) for letter in same}) == 1


@pytest.mark.parametrize(
    ("source", "clauses"),
    [
        (r"def \w+_off", [{"def", "ef ", "_of", "off"}]),
        (r"foo|Bar", [{"bar"}, {"foo"}]),
        (r"colou?r", [{"col", "olo", "lor"}, {"col", "olo", "lou", "our"}]),
        (r"x(?=hell)", [{"hel", "ell"}]),
        (r"(?:ab){2}", [{"aba", "bab"}]),
        (r"[ab]cd", [{"acd"}, {"bcd"}]),
        (r"abc\ndef", [{"abc", "def"}]),
    ],
)
def test_trigrams_follow_from_a_pattern(source: str, clauses: list[set[str]]) -> None:
    required = required_trigrams(Pattern(source, True, False))
    assert required is not None and len(required.clauses) == 1
    assert required.clauses[0] == frozenset(map(frozenset, clauses))


@pytest.mark.parametrize("source", [r"\w+", "ab", ".*", "(abc|d)e?", "a?b?c?", "", r"a\nb"])
def test_a_pattern_without_a_trigram_needs_a_scan(source: str) -> None:
    assert required_trigrams(Pattern(source, True, False)) is None


@pytest.mark.parametrize(
    ("source", "whole_words", "place"),
    [
        ("a(b", False, 2),
        ("a(b", True, 2),
        ("(?i)x[z", True, 6),
        ("*a", False, 1),
        ("*a", True, 1),
        ("a{3}{2}", False, 5),
    ],
)
def test_a_mistake_has_its_place(source: str, whole_words: bool, place: int) -> None:
    pattern = Pattern(source, True, False, whole_words)
    for read in (compile_pattern, required_trigrams):
        with pytest.raises(InvalidValueError, match=f"at character {place}$") as error:
            read(pattern)
        assert repr(source) in error.value.message


@pytest.mark.parametrize("source", ["a" * 1_001, "(" * 900 + ")" * 900, "a{99999999999999999999}"])
def test_a_pattern_that_is_too_much_is_an_error(source: str) -> None:
    with pytest.raises(InvalidValueError):
        compile_pattern(Pattern(source, True, False))


def test_whole_words_case_and_lines() -> None:
    def spans(pattern: Pattern, text: str) -> list[tuple[int, int]]:
        return [match.span() for match in compile_pattern(pattern).finditer(text)]

    assert spans(Pattern("a|b", True, True, True), "a ab b") == [(0, 1), (5, 6)]
    assert spans(Pattern("(?x) a # b", True, True, True), "a ab") == [(0, 1)]
    assert spans(Pattern("+x", False, True, True), "a +x +xy") == [(2, 4)]
    assert spans(Pattern("a.b", False, False), "A.B axb") == [(0, 3)]
    assert spans(Pattern("^b$", True, False), "a\nb\nab") == [(2, 3)]


def _holds(required: Required | None, text: str) -> bool:
    held = trigrams(fold(text))
    return required is None or all(any(one <= held for one in clause) for clause in required.clauses)


def test_a_text_is_found_in_any_case_as_re_finds_it() -> None:
    random, letters = Random(7), "kKsSiIxX é數😀\ud800\n"
    for _ in range(2_000):
        text = "".join(random.choices(letters + random.choice(["", "ſ", "\u212a", "İı"]), k=random.randrange(40)))
        wanted = "".join(random.choices("kKsSiIé", k=random.randrange(1, 3)))
        expected = [match.span() for match in re.finditer(re.escape(wanted), text, re.IGNORECASE)]
        found = pattern_matches.match_spans([Pattern(wanted, False, False)], text)
        assert [span[:2] for span in found] == expected, (wanted, text)
