"""Counts of BERT's WordPiece tokens; the expected numbers were made with the `tokenizers` package, without specials."""

from __future__ import annotations

import gzip
import hashlib
import unicodedata
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import findling
from findling.text.analysis import wordpieces
from findling.text.analysis.scripts import Remembered
from findling.text.analysis.wordpieces import count_tokens
from findling.text.chunking.measures import MOST_TOKENS_OF_A_CHARACTER


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("", 0),
        ("  \n\t ", 0),
        ("The quick brown fox", 4),
        ("unaffable", 3),
        ("Unaffable, isn't it?", 9),
        ("immunoprecipitation", 7),
        ("def get_user_name(user_id: int) -> str:", 18),
        ("naïve Café Zürich", 3),
        ("ΟΔΟΣ", 4),
        ("İstanbul", 1),
        ("数据库连接超时，请检查配置。", 14),
        ("日本語のテキスト", 8),
        ("안녕하세요 세계", 13),
        ("👩‍👩‍👧‍👦 family 🦊", 3),
        ("✅ done — ‘quoted’ … ½ ™", 9),
        ("Привет, мир", 10),
        ("שלום עולם", 8),
        ("x" * 100, 50),
        ("x" * 101, 1),
        ("off\x0cice", 1),
        ("a\u00a0b\u3000c\u2028d", 4),
        ("soft\u00adhyphen zero\u200bwidth", 8),
        ("≠", 1),
        ("https://example.org/a_b?c=1&d=%20", 20),
        ("##ing [UNK]", 7),
    ],
)
def test_counts_are_those_of_the_reference(text: str, count: int) -> None:
    assert count_tokens(text) == count


def test_the_vocabulary_is_the_published_one() -> None:
    packed = (Path(findling.__file__).parent / "text" / "analysis" / "data" / "bert-uncased-vocab.txt.gz").read_bytes()
    text = gzip.decompress(packed)
    assert text.count(b"\n") == 30_522
    assert hashlib.sha256(text).hexdigest() == "07eced375cec144d27c900241f3e339478dec958f92fddbc551f295c992038a3"


def test_no_character_has_more_tokens_than_said() -> None:
    decomposed = [sign for sign in map(chr, range(0x110000)) if unicodedata.decomposition(sign) or "가" <= sign <= "힣"]
    assert max(map(count_tokens, decomposed)) == MOST_TOKENS_OF_A_CHARACTER


@given(left=st.text(max_size=40), right=st.text(max_size=40), space=st.sampled_from(" \t\n\r"))
def test_a_space_parts_what_is_counted(left: str, right: str, space: str) -> None:
    assert count_tokens(left + space + right) == count_tokens(left) + count_tokens(right)


@given(text=st.text())
def test_a_text_has_no_more_tokens_than_its_characters_allow(text: str) -> None:
    assert count_tokens(text) <= MOST_TOKENS_OF_A_CHARACTER * len(text)


def test_words_are_forgotten_when_there_are_too_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wordpieces, "word_tokens", Remembered(wordpieces._tokens_of, 10))
    words = [f"word{number}" for number in range(100)]
    assert count_tokens(" ".join(words)) == sum(map(count_tokens, words))
    assert len(wordpieces.word_tokens) <= 10
