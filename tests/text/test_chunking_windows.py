"""Text without structure: where it is cut."""

from __future__ import annotations

import unicodedata

from hypothesis import given
from hypothesis import strategies as st

from findling.text.chunking.chunk_plan import ChunkPlan
from findling.text.chunking.chunker import chunk_text


def cut(text: str, size: int) -> list[str]:
    return [text[piece.start : piece.end] for piece in chunk_text(text, "text", ChunkPlan(size=size))]


def test_blank_lines_come_first() -> None:
    assert cut("one two. three\nfour\n\nfive six. seven\neight nine ten", 40) == [
        "one two. three\nfour",
        "five six. seven\neight nine ten",
    ]


def test_a_line_of_spaces_is_blank() -> None:
    assert cut("one two three\n  \t\nfour five six\nseven eight", 30) == [
        "one two three",
        "four five six\nseven eight",
    ]


def test_a_blank_line_before_an_unindented_line_is_better() -> None:
    text = "A first paragraph with some more words.\n\nExample:\n\n    one\n\n    two\n\n    three\n\n    four"
    assert cut(text, 60) == [
        "A first paragraph with some more words.",
        "Example:\n\n    one\n\n    two\n\n    three\n\n    four",
    ]


def test_then_line_ends_then_sentences_then_spaces() -> None:
    assert cut("one two. three\nfour five. six\nseven", 30) == ["one two. three", "four five. six\nseven"]
    assert cut("One two. Three four! Five six seven eight", 30) == ["One two. Three four!", "Five six seven eight"]
    assert cut("一二三四。五六七八九十一二三四五六", 12) == ["一二三四。", "五六七八九十一二三四五六"]
    assert cut("one two three four five six seven", 20) == ["one two three four", "five six seven"]


def test_long_words_are_cut_between_signs_if_there_are_any() -> None:
    assert cut("aaaa;bbbb_cccc;dddd_eeee", 12) == ["aaaa;", "bbbb_cccc;", "dddd_eeee"]
    assert "".join(cut("x" * 100, 30)) == "x" * 100


def test_the_last_piece_is_no_crumb() -> None:
    lengths = [len(piece) for piece in cut("word " * 21, 100)]
    assert lengths == [79, 24]


def test_indentation_of_the_first_line_is_kept() -> None:
    assert cut("\n\n    indented\n  less\n\n", 100) == ["    indented\n  less"]


@given(text=st.text(alphabet="ae\u0301\u0327\u200d\ufe0f👩", min_size=1), size=st.integers(40, 60))
def test_letters_keep_their_marks(text: str, size: int) -> None:
    whole = "a" + text * 5
    for piece in chunk_text(whole, "text", ChunkPlan(size=size))[1:]:
        before = whole[max(piece.start - 31, 1) : piece.start]  # a letter and 31 marks belong together, no more
        inseparable = all(unicodedata.category(sign) in ("Mn", "Cf") for sign in before)
        assert unicodedata.category(whole[piece.start]) not in ("Mn", "Cf") or inseparable
