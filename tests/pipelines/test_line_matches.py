"""Lines that match a pattern, compared with `re` on each line alone."""

from __future__ import annotations

import random
import re

import pytest

from findling.domain.errors import InvalidValueError
from findling.pipelines.exact.line_matches import inverted, matching_lines, with_context
from findling.text.query.line_patterns import compile_lines
from findling.text.query.patterns import fold
from tests.counts import tries

LETTERS = "abAB \n\n\r.xßſiİΣσ"
PATTERNS = [
    "a", "ab", "a.b", "[^x]*b", "a*", "^a", "b$", "a|bb", "(a|b)+x", r"\s+b", r"a\b", "(?=a)b?", "ab+", "b{2}", "^$",
    r"^\s*$", "a(b|x)", "(?:ab|ba)a", "İ", "ss", "σ", "(?i)ab", "(?s)a.b", r"\Aab", "(?<!a)b", "a[^x]+b", "i+",
]  # fmt: skip


def lines_of(text: str) -> list[str]:
    lines = text.split("\n")
    return lines if lines[-1] else lines[:-1]


def numbers(text: str, found: list[tuple[int, int]]) -> list[int]:
    return [text.count("\n", 0, start) for start, _ in found]


def plain_expression(patterns: tuple[str, ...], fixed: bool, ignore_case: bool, words: bool) -> re.Pattern[str]:
    sources = [re.escape(one) if fixed else re.sub(r"^\(\?([is])\)(.*)", r"(?\1:\2)", one) for one in patterns]
    joined = "|".join(f"(?:{one})" for one in sources)
    joined = rf"(?<!\w)(?:{joined})(?!\w)" if words else joined
    return re.compile(joined, re.MULTILINE | (re.IGNORECASE if ignore_case else 0))


def test_lines_are_those_that_match_alone_with_their_context() -> None:
    chance = random.Random(17)
    for _ in range(tries(100_000, short=1_500)):
        text = "".join(chance.choice(LETTERS) for _ in range(chance.randrange(40)))
        patterns = tuple(chance.sample(PATTERNS, chance.choice([1, 1, 2])))
        fixed, ignore_case, words = (chance.random() < share for share in (0.2, 0.4, 0.3))
        given = text, patterns, fixed, ignore_case, words
        plain = plain_expression(patterns, fixed, ignore_case, words)
        lines = lines_of(text)
        wanted = [at for at, line in enumerate(lines) if plain.search(line)]
        pattern = compile_lines(patterns, fixed=fixed, ignore_case=ignore_case, words=words)
        found = list(matching_lines(pattern, text))
        assert numbers(text, list(found)) == wanted, given
        others = numbers(text, list(inverted(iter(found), text)))
        assert others == [at for at in range(len(lines)) if at not in wanted], given
        before, after = chance.randrange(3), chance.randrange(3)
        shown = list(with_context(pattern, text, found, before, after))
        around = {at for hit in wanted for at in range(max(0, hit - before), min(len(lines), hit + after + 1))}
        assert [line.number - 1 for line in shown] == sorted(around), (given, before, after)
        for line in shown:
            assert line.is_match == (line.number - 1 in wanted)
            assert line.text.removesuffix("\n") == lines[line.number - 1]
            assert text.encode()[line.offset :].startswith(line.text.encode())
            spans = [match.span() for match in plain.finditer(lines[line.number - 1]) if match.group()]
            assert list(line.spans) == (spans if line.is_match else [])


@pytest.mark.parametrize("ignore_case", [False, True])
def test_a_literal_is_found_across_the_borders_of_windows(ignore_case: bool) -> None:
    chance = random.Random(3)
    count = tries(12_000, short=6_000)  # two windows at least
    for needle in ("Needle", "ab", "x"):
        lines = ["".join(chance.choice("abcde") for _ in range(chance.randrange(50))) for _ in range(count)]
        for at in chance.sample(range(len(lines)), 40):
            lines[at] += needle.upper() if chance.random() < 0.5 else needle
        # One stands across the first border, whatever stands in front of it.
        text = "\n".join(["y" * ((1 << 16) - 2) + needle, *lines])
        pattern = compile_lines((needle,), fixed=True, ignore_case=ignore_case, words=False)
        folds = str.lower if ignore_case else str
        wanted = [at for at, line in enumerate(text.split("\n")) if folds(needle) in folds(line)]
        assert numbers(text, list(matching_lines(pattern, text))) == wanted


def test_folding_agrees_with_expressions_that_ignore_case() -> None:
    letters = [chr(code) for code in range(0x110000) if not 0xD800 <= code < 0xE000]
    cased = [one for one in letters if one.lower() != one or one.upper() != one or one.casefold() != one]
    everything = "".join(cased)
    for one in cased[:: tries(1, short=7)]:
        equal = re.findall(re.escape(one), everything, re.IGNORECASE)
        assert {fold(other) for other in equal} == {fold(one)}, one


def test_lines_end_when_time_is_over() -> None:
    pattern = compile_lines(("a",), fixed=True, ignore_case=False, words=False)
    assert len(list(matching_lines(pattern, "a\n" * 10_000, lambda: True))) < 1_000


@pytest.mark.parametrize(("pattern", "told"), [("(", "is no regular expression"), ("a\nb", "holds a line break")])
def test_a_pattern_that_is_none_is_an_error(pattern: str, told: str) -> None:
    with pytest.raises(InvalidValueError, match=told):
        compile_lines((pattern,), fixed=False, ignore_case=False, words=False)


@pytest.mark.parametrize(
    ("patterns", "text", "expected"),
    [
        (("(a)b", r"(s)\1"), "xs\nss\nab\n", ["ss", "ab"]),
        (("(?P<x>s)(?P=x)", "(?P<x>l)(?P=x)"), "ss\nll\nsl\n", ["ss", "ll"]),
        (("(?x)json # c",), "a json\nyaml\n", ["a json"]),
        (("(?x)a # c", "b"), "a\nb\nc\n", ["a", "b"]),
        (("[[:alpha:]]b",), "ab\n:]b\n", [":]b"]),
    ],
)
def test_patterns_keep_their_groups_comments_and_flags(
    patterns: tuple[str, ...], text: str, expected: list[str], recwarn: pytest.WarningsRecorder
) -> None:
    pattern = compile_lines(patterns, fixed=False, ignore_case=False, words=False)
    assert [text[start:end] for start, end in matching_lines(pattern, text)] == expected
    assert not recwarn.list


def test_a_text_with_a_line_break_is_no_pattern() -> None:
    with pytest.raises(InvalidValueError, match="line break"):
        compile_lines(("a\nb",), fixed=True, ignore_case=False, words=False)


def test_the_first_letter_of_what_is_repeated_belongs_to_the_word_before_it() -> None:
    r"""`\w{3,}inp+` was tried near every `in`: a query took 0.58 s of CPU instead of 0.23 over 20,000 passages."""
    cases = {r"\w{3,}inp+": "inp", r"\w{3,}78+": "78", r"x(?:ab)+c": "xa", r"in(?:\bp){2}": "inp", r"in(p)*": "in"}
    for pattern, literal in cases.items():
        assert compile_lines((pattern,), fixed=False, ignore_case=False, words=False).literals == (literal,)
