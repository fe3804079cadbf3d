"""The compiled core and its reference in Python give the same for any text, byte for byte."""

from __future__ import annotations

import random
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from findling.core import NativeCore, native
from findling.domain.resources import Piece
from findling.pipelines.indexing import document_build
from findling.stores.keyword import entries
from findling.text.analysis import analysis, wordpieces
from findling.text.analysis import lines as text_lines
from tests.counts import tries

pytestmark = pytest.mark.skipif(native is None, reason="the compiled core is not in use: there is nothing to compare")

LETTERS = "aAbBzZ019+#_-=.,:; \t\n\r\x0b\x0c\x1c\x00\x7f\x85\xa0\u2003\u3000"
OTHERS = "éß\u0301\u0338\u00ad\u200b\u200d\ufe0f数库대ｶﾞⅣ㎏¼™ÅİςΣ👩🏽🚀🇩🇪\ud800\udfff\uffff\U0010ffff"
IDENTIFIERS = st.from_regex(r"[A-Z]{0,4}[a-z]{0,3}[0-9]{0,3}([A-Z]{0,2}[a-z0-9]{0,3}){0,4}(\+\+|#)?[a-z0-9+#]{0,3}")
TEXTS = (
    st.text()
    | st.text(st.characters())
    | st.text(st.sampled_from(LETTERS))
    | st.text(st.sampled_from(LETTERS + OTHERS))
    | st.lists(IDENTIFIERS).map(" ".join)
    | st.lists(IDENTIFIERS | st.text(st.sampled_from(OTHERS), max_size=3)).map("".join)
)
WORDS = {"a", "b", "ab", "aa", "a1", "1", "a++", "b#", "é", "数", "数库", "kg", "👩", "ss", "\ud800"}


def core() -> NativeCore:
    assert native is not None
    return native


def index_form(text: str) -> str:
    return core().index_form(text, analysis._terms_of_stretch)


@given(TEXTS)
@example("=\u0338a")
@example("a=\u0338 b\u0301.\u0301c")
@example("C++17abc c+++ a++b C#x PR#12 x#")
@example("\u0301")
@example("ABCdef12 IPv6Address HTTPServer2 aB1cD2eF3g4 x509")
def test_terms_are_those_of_the_reference(text: str) -> None:
    assert index_form(text) == analysis._terms_with_spaces(text)[:-1]


@given(st.lists(TEXTS, max_size=4), st.lists(st.lists(TEXTS, max_size=3), min_size=1, max_size=3), TEXTS)
@example(["", "a" * 127, "b" * 128, "c" * 129, "é" * 64, "a" * 127], [["b" * 129, "", "t", "b" * 129]], "t")
def test_ids_of_chunks_are_those_of_the_reference(parts: list[str], headings: list[list[str]], title: str) -> None:
    text, reached, pieces = "".join(parts), 0, list[Piece]()
    for number, part in enumerate(parts):
        pieces.append(Piece(reached, reached + len(part), tuple(headings[number % len(headings)])))
        reached += len(part)
    pieces *= 2  # equal chunks, and spans that fall
    lines = list(range(2 * len(pieces)))
    given = text, pieces, lines, title, 0xFEDCBA9876543210, document_build._REPEAT
    assert core().chunk_rows(*given) == document_build._rows(*given)


@given(st.text(st.sampled_from("\n\nab \v\x0e"), max_size=200), st.lists(st.tuples(st.integers(0), st.integers(0))))
@example("\n" * 300, [(0, 300), (299, 300), (7, 7), (300, 300)])
def test_lines_of_chunks_are_those_of_the_reference(text: str, spans: list[tuple[int, int]]) -> None:
    places = [sorted((first % (len(text) + 1), last % (len(text) + 1))) for first, last in spans]
    given = text, [Piece(start, end, ()) for start, end in places], None, "", 0, document_build._REPEAT
    assert core().chunk_rows(*given) == document_build._rows(*given)


@pytest.mark.parametrize("lines", [[1, 1], None])
@pytest.mark.parametrize("piece", [(-1, 1, ()), (2, 1, ()), (0, 4, ()), (0, 1, (3,)), (0, 1), "ab"])
def test_a_piece_that_cannot_be_is_refused(piece: Any, lines: Any) -> None:
    with pytest.raises((ValueError, TypeError)):
        core().chunk_rows("abc", [piece], lines, "", 0, 0)


@pytest.mark.parametrize(("text", "lines"), [("é\n", None), ("abc", []), ("abc", (1, 1))])
def test_lines_that_cannot_be_are_refused(text: str, lines: Any) -> None:
    with pytest.raises((ValueError, TypeError)):
        core().chunk_rows(text, [(0, 1, ())], lines, "", 0, 0)


@given(TEXTS, st.integers(0, 20))
def test_signs_of_code_are_counted_as_the_reference_does(text: str, most: int) -> None:
    assert core().count_bytes(text, entries._CODE_SIGNS, most) == entries._count_signs(text, most)


@given(TEXTS)
@example("naïve café 数据库 “quoted” … donaudampfschifffahrtsgesellschaft")
@example("é" * 100)
@example("數" * 101)
def test_pieces_of_a_word_are_those_of_the_reference(text: str) -> None:
    for word in wordpieces.plain_words(text):
        given_pieces = core().word_pieces(wordpieces.native_vocabulary(), word)
        assert given_pieces == list(wordpieces.bert_vocabulary().pieces(word)), word


@given(TEXTS, st.sets(st.sampled_from(sorted(WORDS))), st.data())
def test_spans_are_those_of_the_reference(text: str, some: set[str], data: st.DataObject) -> None:
    own = data.draw(st.lists(st.sampled_from(analysis.terms(text) or ["none"]), max_size=5))
    wanted = dict.fromkeys([*own, *some, ""])
    assert analysis.matching_spans(text, wanted) == analysis._matching_spans(text, wanted)


@given(TEXTS)
def test_token_counts_are_those_of_the_reference(text: str) -> None:
    assert wordpieces.count_tokens(text) == wordpieces._count_tokens(text)


LINES = st.lists(
    st.text(st.sampled_from('ab Z.!:#•é\x85\u3000数。”"\ud800'), max_size=12)
    | st.sampled_from(
        ["", "  ", "# Ab", "x" * 420, "a line of some words that is as long as wrapped ones", "It ends. Then"]
    )
    | st.sampled_from("``x`` ``` `` * *a* **b** *** *\x00 :term:`d :e: ::` :` <https: <a>".split(" ")),
    max_size=14,
)


@given(LINES, st.sampled_from(["\n", "\r\n", "\r", " ", ". "]))
def test_sentences_are_those_of_the_reference(lines: list[str], between: str) -> None:
    text = between.join(lines)
    if text.strip():
        assert text_lines.sentences_in(text) == text_lines._sentences_of(text)


def test_sentences_of_real_files_are_those_of_the_reference() -> None:
    for path in sorted(Path(random.__file__).parent.glob("[a-d]*.py")):
        text = path.read_text("utf-8")
        assert text_lines.sentences_in(text) == text_lines._sentences_of(text), path


def test_an_empty_text_has_no_sentences() -> None:
    assert text_lines._sentences_of("") == text_lines.sentences_in("")


def test_wrong_arguments_of_sentences_raise() -> None:
    with pytest.raises(TypeError):
        core().sentences(b"a b", 1, 1, 1)  # type: ignore[arg-type]
    assert core().sentences("", 45, 4, 400) == ([], [], [], [], [], [], [], [])


@pytest.mark.parametrize("size", [99, 100, 101, 127, 128, 129, 700])
@pytest.mark.parametrize("letters", ["a", "A", "aB", "a1", "é", "a+", "c++", "#", "数"])
def test_long_words_are_read_as_the_reference_does(letters: str, size: int) -> None:
    for text in ((letters * size)[:size], f"x {(letters * size)[:size]} y", (letters * size)[:size] + ".é"):
        assert index_form(text) == analysis._terms_with_spaces(text)[:-1]
        assert wordpieces.count_tokens(text) == wordpieces._count_tokens(text)
        wanted = set(analysis.terms(text))
        assert analysis.matching_spans(text, wanted) == analysis._matching_spans(text, wanted)


@pytest.mark.parametrize("inner", ["", "Z", "7", "\x01", "é", "_", "@[`{/:"])
def test_words_of_every_size_end_where_those_of_the_reference_do(inner: str) -> None:
    # The core reads eight letters at a time, and so many bytes before the end of a text it reads single ones.
    words = [f"{'abcdefgh' * 4}"[:size] + inner + "xy" for size in range(30)]
    for behind in range(30):
        text = " ".join(words) + "." * behind
        assert index_form(text) == analysis._terms_with_spaces(text)[:-1]
        assert core().count_tokens(wordpieces.native_vocabulary(), text, wordpieces.word_tokens) == (
            wordpieces._count_tokens(text)
        )


@pytest.mark.parametrize("encoding", ["latin-1", "utf-8", "utf-16-le", "utf-32-le"])
def test_random_bytes_are_read_as_the_reference_does(encoding: str) -> None:
    chance = random.Random(encoding)
    for _ in range(tries(60, short=20)):
        text = chance.randbytes(chance.randrange(4000)).decode(encoding, "replace")
        assert index_form(text) == analysis._terms_with_spaces(text)[:-1]
        assert wordpieces.count_tokens(text) == wordpieces._count_tokens(text)
        wanted = dict.fromkeys(chance.choices(analysis.terms(text) or ["none"], k=9))
        assert analysis.matching_spans(text, wanted) == analysis._matching_spans(text, wanted)


def test_real_files_are_read_as_the_reference_does() -> None:
    library = Path(random.__file__).parent
    files = [*sorted(library.glob("*.py"))[::6], *sorted((library / "encodings").glob("*.py"))[::20]]
    for file in files:
        text = file.read_text("utf-8", "surrogateescape")
        assert index_form(text) == analysis._terms_with_spaces(text)[:-1], file
        assert wordpieces.count_tokens(text) == wordpieces._count_tokens(text), file
        wanted = set(analysis.terms(text)[:40])
        assert analysis.matching_spans(text, wanted) == analysis._matching_spans(text, wanted), file


def test_a_huge_text_is_read_as_the_reference_does() -> None:
    count = tries(100_000, short=20_000)
    text = "getUserName(数据库) IPv6, C++ é " * count
    assert index_form(text) == analysis._terms_with_spaces(text)[:-1]
    assert wordpieces.count_tokens(text) == wordpieces._count_tokens(text)
    assert len(analysis.matching_spans(text, {"ipv6"})) == count


@pytest.mark.parametrize("arguments", [(), ("x",), (b"x", {}), (None, {}), ("x", {}, {})])
def test_wrong_arguments_of_terms_raise(arguments: tuple[object, ...]) -> None:
    with pytest.raises(TypeError):
        core().index_form(*arguments)  # type: ignore[arg-type]


def test_an_error_of_the_rest_reaches_the_caller() -> None:
    def fail(piece: str, offset: int) -> list[tuple[int, int, list[str]]]:
        raise ZeroDivisionError

    with pytest.raises(KeyError):
        core().index_form("é", {})
    with pytest.raises(TypeError):
        core().index_form("é", {"é": 3})  # type: ignore[dict-item]
    with pytest.raises(ZeroDivisionError):
        core().matching_spans("é", ["e"], fail)
    with pytest.raises(TypeError):
        core().matching_spans("e", [3], fail)  # type: ignore[list-item]
    with pytest.raises(KeyError):
        core().count_tokens(wordpieces.native_vocabulary(), "é", {})
    with pytest.raises(ValueError, match="not in the vocabulary"):
        core().count_tokens(wordpieces.native_vocabulary(), "é", {"é".encode(): [30_522]})


@pytest.mark.parametrize("entries", [b"", b"a\nb\n", b"\n" * 70_000])
def test_what_is_no_vocabulary_is_refused(entries: bytes) -> None:
    with pytest.raises(ValueError, match="vocabulary"):
        core().vocabulary(entries)


def test_another_vocabulary_counts_by_its_own_entries() -> None:
    vocabulary = core().vocabulary(b"[UNK]\nfind\n##ling\n!")
    assert core().count_tokens(vocabulary, "Findling! foundling", {}) == 4


def test_no_reference_is_lost() -> None:
    text = "".join(["getUserName é ", "x"])
    before = sys.getrefcount(text)
    for _ in range(100):
        index_form(text)
        wordpieces.count_tokens(text)
        analysis.matching_spans(text, {"x"})
    assert sys.getrefcount(text) == before
