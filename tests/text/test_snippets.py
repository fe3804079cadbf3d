"""Snippets: the best lines of a chunk, shown as they are."""

from __future__ import annotations

import re
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from findling.domain.results import Line
from findling.text.analysis.lines import sentences_in
from findling.text.snippets import JudgedText, Match, Telling, plain_line


def spans_of(text: str, *words: str) -> list[Match]:
    return [(match.start(), match.end(), (word,)) for word in words for match in re.finditer(word, text)]


def snippet(
    text: str,
    first_line: int,
    spans: Sequence[Match],
    max_lines: int = 3,
    context: int = 0,
    telling: Telling = Telling(),  # noqa: B008 - it never changes
) -> tuple[Line, ...]:
    return JudgedText(text, spans, telling).show(first_line, max_lines, context)[0]


def numbers(lines: tuple[Line, ...]) -> list[int]:
    return [line.number for line in lines]


def marked(line: Line) -> list[str]:
    return [line.text[start:end] for start, end in line.spans]


X = "x" * 80
TEXT = f"apple apple apple\n{X}\n{X}\n{X}\napple\n  pear\n{X}\n{X}\npear plum\n{X}\n{X}"


def test_the_window_with_most_distinct_terms_wins() -> None:
    lines = snippet(TEXT, 10, spans_of(TEXT, "apple", "pear"))
    assert numbers(lines) == [14, 15, 16]
    assert [marked(line) for line in lines] == [["apple"], ["pear"], []]
    assert lines[1].text == "  pear"


def test_between_equal_windows_more_matches_then_the_earlier() -> None:
    text = f"pear\n{X}\n{X}\npear pear\n{X}\n{X}\npear pear\n{X}\n{X}"
    assert numbers(snippet(text, 1, spans_of(text, "pear"), max_lines=1)) == [4]


def test_a_match_on_the_last_line_is_shown_with_the_lines_above() -> None:
    text = f"{X * 4}\nb\nc\npear"
    assert numbers(snippet(text, 1, spans_of(text, "pear"))) == [2, 3, 4]


def test_blank_lines_at_the_ends_are_left_out() -> None:
    text = f"pear\n\n\n{X * 4}\n\n  \nplum"
    assert numbers(snippet(text, 1, spans_of(text, "pear"), max_lines=1)) == [1]
    assert numbers(snippet(text, 1, spans_of(text, "plum"), max_lines=1)) == [7]


def test_blank_lines_do_not_take_the_room_of_others() -> None:
    text = f"pear\n\n\nnear it\n\n{X * 4}"
    assert numbers(snippet(text, 1, spans_of(text, "pear"), max_lines=2)) == [1, 2, 3, 4]


def test_context_adds_lines_within_the_chunk() -> None:
    assert numbers(snippet(TEXT, 1, spans_of(TEXT, "plum"), max_lines=1, context=1)) == [8, 9, 10]
    assert numbers(snippet(TEXT, 1, spans_of(TEXT, "plum"), max_lines=1, context=99)) == list(range(1, 12))


def test_without_a_match_the_first_lines_that_say_something() -> None:
    assert numbers(snippet(f"\n  \nfirst\nsecond\n\n{X * 6}", 5, [])) == [7, 8]
    assert snippet(" \n", 1, []) == ()


def test_a_small_passage_is_shown_whole() -> None:
    text = (
        "# Bread\n\nFlour, water, salt and time.\nKnead it for long.\nRest it over night.\n\nBake it for 25 minutes.\n"
    )
    assert numbers(snippet(text, 1, spans_of(text, "Bread"))) == list(range(1, 8))
    assert numbers(snippet(text, 1, spans_of(text, "Bread"), max_lines=1)) == [1]


def test_small_words_and_what_is_said_already_do_not_choose_the_line() -> None:
    text = f"# The bread of the day\n\nTo be or not to be, to the letter.\n{X * 4}\n\nThe loaf: bake 25 minutes."
    spans = spans_of(text, "bread", "bake", "to", "the")
    weights = {"bread": 2.0, "bake": 2.0, "to": 0.01, "the": 0.01}
    telling = Telling(weights=weights, said={plain_line("The bread of the day")})
    assert numbers(snippet(text, 1, spans, max_lines=1, telling=telling)) == [6]
    assert numbers(snippet(text, 1, spans, max_lines=1)) == [1]


def test_lines_begin_behind_a_title_that_stands_above_them() -> None:
    """A title, its rule and its label held the words of the question too, and took the first lines of its snippet."""
    title = "Rye bread\n=========\n\n"
    text = f".. _rye-bread:\n\n{title}Rye bread bakes for 25 minutes.\n" + f"{X}\n" * 9
    said = {plain_line("Rye bread")}
    lines = snippet(text, 1, spans_of(text, "rye", "Rye", "bread"), telling=Telling(said=said))
    assert lines[0].text == "Rye bread bakes for 25 minutes."
    assert snippet(title + X * 9, 1, spans_of(title, "bread"), telling=Telling(said=said))[0].text == "Rye bread"


def test_a_sentence_answers_rather_than_a_label_with_the_same_words() -> None:
    text = f"bread_oven_heat: bread, oven\n{X * 4}\n\n{X}\nThe bread is put into the oven when it is hot."
    spans = spans_of(text, "bread", "oven")
    assert numbers(snippet(text, 1, spans, max_lines=1)) == [5]
    assert JudgedText(text, spans).answer() > 1.0


def test_meaning_chooses_where_words_do_not() -> None:
    text = f"apple pie\n{X * 4}\nthe oven is hot\n{X}\napple tart"
    near = {"the oven is hot": 0.9}
    telling = Telling(nearness=lambda texts: [near.get(one, 0.0) for one in texts])
    assert JudgedText(text, [], telling).show(1, 1)[1] == 3
    near = {"apple tart": 0.5}
    lines, best = JudgedText(text, spans_of(text, "apple"), telling).show(1, 1)
    assert (numbers(lines), best) == ([5], 5)


def test_a_long_line_is_cut_at_the_sentence_that_comes_nearest() -> None:
    text = "Knead the dough well. " * 30 + "It bakes for 25 minutes. " + "Let it cool down. " * 30
    telling = Telling(nearness=lambda texts: [float("25" in one) for one in texts])
    (line,) = snippet(text, 1, [], telling=telling)
    assert "It bakes for 25 minutes." in line.text


WRAPPED = (
    "The worker reads its settings from a file of that name when it begins\nto work. Whatever it was sent meanwhile is "
    "read after that, so that\nnothing gets lost on the way. A signal makes it finish what it has.\nAnother one ends "
    "it at once, which loses what was not written yet.\n\n"
)


def test_a_sentence_that_is_wrapped_is_shown_whole() -> None:
    """A window of three lines ended within the sentence that answers, or began behind its first words."""
    text = WRAPPED + f"{X}\n" * 3
    for word in ("meanwhile", "nothing gets", "on the way"):
        shown = " ".join(line.text for line in snippet(text, 1, spans_of(text, word)))
        assert "Whatever it was sent meanwhile is read after that, so that nothing gets lost on the way." in shown


@pytest.mark.parametrize(
    "marked",
    [
        "*MUST* provide them",
        "**must** be there",
        ":attr:`args` holds them",
        "``args`` holds them",
        "<https://a.de>`_ has",
    ],
)
def test_a_wrapped_sentence_goes_on_with_marked_words(marked: str) -> None:
    """The sentence that answers ended before them: 12 of 104 in strangers' manuals."""
    text = (
        f"{X}\nTo make sure that a pear can be sent to others the pear itself\n{marked} in its tree.\n" + f"{X}\n" * 9
    )
    for word in ("can be sent", "in its tree"):
        shown = " ".join(line.text for line in snippet(text, 1, spans_of(text, word)))
        assert f"the pear itself {marked} in its tree." in shown


@pytest.mark.parametrize("entry", ["* must be", "- must be", "```sh", "***", ":param pear: the", "<li>must be"])
def test_an_entry_of_a_list_goes_on_with_no_sentence(entry: str) -> None:
    text = f"To make sure that a pear can be sent to others the pear itself\n{entry} in its tree.\n"
    assert len(sentences_in(text).starts) == 2


def test_a_sentence_that_stands_twice_is_shown_once() -> None:
    """Pages that hold the text of their tabs twice showed both."""
    again = "A pear that is ripe may be eaten at once."
    text = f"Pears and plums are sold here on Mondays.\n{again}\n" + f"{X}\n" * 9 + f"{again}\n"
    lines = snippet(text, 1, spans_of(text, "Pear", "plum", "pear", "ripe"))
    assert [line.text for line in lines].count(again) == 1


def test_a_sentence_elsewhere_is_shown_beside_the_best_lines() -> None:
    text = "Pears and plums are sold here on Mondays.\n" + f"{X}\n" * 9 + "A pear that is ripe may be eaten at once.\n"
    spans = spans_of(text, "Pear", "plum", "pear", "ripe")
    lines = snippet(text, 1, spans)
    assert numbers(lines)[0] == 1
    assert lines[-1].text == "A pear that is ripe may be eaten at once."
    assert numbers(snippet(text, 1, spans, max_lines=1)) == [1]


def test_lines_of_code_bring_no_lines_from_elsewhere() -> None:
    text = "pear = plum()\n" + f"{X}\n" * 9 + "eat(pear, plum, when=ripe, where=here)\n"
    assert numbers(snippet(text, 1, spans_of(text, "pear", "plum"))) == [1, 2, 3]


def test_a_snippet_does_not_end_on_an_opening_fence() -> None:
    text = f"{X * 4}\n\nA pear tree is planted so:\n\n```sh\nplant --deep\n```\n\n{X}\n{X}\n"
    assert numbers(snippet(text, 1, spans_of(text, "pear"), max_lines=2)) == [3]
    assert snippet(text, 1, spans_of(text, "plant --deep"), max_lines=2)[0].text == "plant --deep"


def test_a_snippet_has_at_most_400_characters_of_short_lines() -> None:
    text = "".join(f"Sentence {n} tells of a pear that is as good as all others of them. " for n in range(30))
    for breaks in (text, text.replace(". ", ".\n"), text.replace(". ", ".\n\n")):
        for lines in (3, 1, 5):
            assert sum(len(line.text) for line in snippet(breaks, 1, spans_of(breaks, "pear"), lines)) <= 402


def test_two_sentences_of_a_long_line_are_both_shown() -> None:
    """What lies between them was shown instead, cut in the middle of a sentence."""
    other = "Other things may be said of it, " * 7 + "too. "
    text = f"Pears\n\nA green pear is quite hard. {other * 3}A ripe pear is yellow and soft. {other}"
    (line,) = snippet(text, 1, spans_of(text, "pear", "ripe", "green"))
    assert line.text == f"A green pear is quite hard. {other}… A ripe pear is yellow and soft. …"
    assert marked(line) == ["green", "pear", "ripe", "pear"]


def test_the_line_of_a_wrapped_sentence_is_the_one_with_its_words() -> None:
    text = WRAPPED + f"{X}\n" * 3
    assert JudgedText(text, spans_of(text, "nothing gets")).show(1)[1] == 3


def test_lines_are_not_cut_where_everything_is_wanted() -> None:
    text = "x" * 1000 + " pear"
    assert snippet(text, 1, spans_of(text, "pear"), context=1000)[0].text == text


def test_lines_are_verbatim() -> None:
    text = "\tpear  pie \r\nnext\rlast"
    assert [line.text for line in snippet(text, 1, spans_of(text, "pear"))] == ["\tpear  pie ", "next", "last"]


def test_a_match_across_a_line_break_is_marked_on_both_lines() -> None:
    text = "green pear\ntree"
    lines = snippet(text, 1, [(6, 15, ("pear tree",))])
    assert [marked(line) for line in lines] == [["pear"], ["tree"]]


def test_overlapping_matches_are_marked_once() -> None:
    lines = snippet("pear tree", 1, [(0, 4, ("pear",)), (0, 9, ("pear tree",)), (5, 9, ("tree",))])
    assert lines[0].spans == ((0, 9),)


def test_a_long_line_is_cut_around_its_matches() -> None:
    text = "pear " + "x" * 1000 + " pear plum " + "y" * 1000
    (line,) = snippet(text, 1, spans_of(text, "pear", "plum"))
    assert marked(line) == ["pear", "plum"]
    assert line.text[0] == line.text[-1] == "…"
    assert line.text[1:-1] in text
    assert len(line.text) == 402


def test_a_long_line_without_a_match_shows_its_beginning() -> None:
    (line,) = snippet("x" * 1000, 1, [])
    assert line.text == "x" * 400 + "…"


def test_a_match_at_the_end_of_a_long_line() -> None:
    text = "x" * 1000 + " pear"
    (line,) = snippet(text, 1, spans_of(text, "pear"))
    assert marked(line) == ["pear"]
    assert line.text.startswith("…x")
    assert line.text.endswith(" pear")


@given(
    text=st.text(alphabet=st.one_of(st.sampled_from("ab \n\r"), st.characters()), max_size=900),
    places=st.lists(st.tuples(st.integers(0, 900), st.integers(0, 30), st.sampled_from("ab"))),
    max_lines=st.integers(1, 5),
    context=st.integers(0, 3),
)
def test_every_mark_is_a_match_and_every_line_is_from_the_text(
    text: str, places: list[tuple[int, int, str]], max_lines: int, context: int
) -> None:
    spans = [(start, min(start + length, len(text)), (term,)) for start, length, term in places]
    lines = snippet(text, 7, spans, max_lines, context)
    original = re.split(r"\r\n|\r|\n", text)
    said = [line for line in lines if line.text.strip()]
    assert len(said) <= 2 * max_lines + 4 * context or len(text) <= 100 * max_lines
    assert numbers(lines) == sorted(set(numbers(lines))) if lines else not text.strip()
    for line in lines:
        source = original[line.number - 7]
        assert line.text == source or line.text.removeprefix("…").removesuffix("…") in source
        edges = [edge for span in line.spans for edge in span]
        assert edges == sorted(edges)
        assert all(start < end <= len(line.text) for start, end in line.spans)
        assert all(any(mark in text[span[0] : span[1]] for span in spans) or len(spans) > 1 for mark in marked(line))


def test_a_window_is_the_best_sentence_with_those_around_it() -> None:
    text = " ".join(f"Sentence number {number} is here." for number in range(20)) + " An apple fell. " + "More. " * 40
    judged = JudgedText(text, spans_of(text, "apple"))
    window = judged.window(100)
    assert len(window) <= 100
    assert "number 19 is here. An apple fell. More." in window
    assert judged.window(10_000) == text, "a short text is whole"
    assert judged.window(5) == "An ap", "a sentence may be longer than the window"


def test_without_anything_that_tells_a_window_is_the_beginning() -> None:
    text = "One sentence. " * 50
    assert JudgedText(text, []).window(30) == "One sentence. One sentence. "
    assert JudgedText("word" * 50, []).window(30) == ("word" * 50)[:30]
    assert JudgedText("", []).window(30) == ""
