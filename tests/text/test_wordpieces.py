"""Tokens of BERT's uncased vocabulary, held against the `tokenizers` package word for word."""

from __future__ import annotations

import unicodedata
from collections import Counter
from functools import cache
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from findling.text.analysis import wordpieces
from findling.text.analysis.wordpieces import (
    Vocabulary,
    WordPieces,
    bert_vocabulary,
    count_tokens,
    piece_counts,
    piece_ids,
)

tokenizers = pytest.importorskip("tokenizers")


@st.deferred  # a million letters take 0.6 s, which no worker but one needs
def settled_signs() -> st.SearchStrategy[str]:
    """Letters with the same category in the Unicode of 2002 and today; the library's tables lie in between."""
    old, new = unicodedata.ucd_3_2_0.category, unicodedata.category
    return st.sampled_from([sign for sign in map(chr, range(0x110000)) if old(sign) == new(sign) not in ("Cn", "Cs")])


@cache
def reference_tokenizer() -> object:
    tokenizer = tokenizers.Tokenizer(tokenizers.models.WordPiece(dict(bert_vocabulary().numbers), unk_token="[UNK]"))
    tokenizer.normalizer = tokenizers.normalizers.BertNormalizer()
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.BertPreTokenizer()
    return tokenizer


def reference_ids(text: str) -> list[int]:
    ids: list[int] = reference_tokenizer().encode(text, add_special_tokens=False).ids  # type: ignore[attr-defined]
    return ids


@pytest.mark.parametrize(
    "text",
    [
        "",
        " \n\t ",
        "Unaffable, isn't it? The immunoprecipitation of PCR-products (n=3).",
        "def get_user_name(user_id: int) -> str:\n\treturn f'{x!r}'  # ≠ ±0.5",
        "naïve Café Zürich İstanbul ΟΔΟΣ e\u0301 =\u0338",
        "数据库连接超时，请检查配置。日本語のテキスト 안녕하세요 세계",
        "👩‍👩‍👧‍👦 ✅ — ‘quoted’ … ½ ™ soft\u00adhyphen zero\u200bwidth a\u00a0b\u3000c\u2028d",
        "off\x0cice \x00null\ufffd \x1bescape",
        "x" * 100 + " " + "x" * 101,
        "[CLS] [SEP] ##ing [UNK]",
    ],
)
def test_tokens_are_those_of_the_library(text: str) -> None:
    assert piece_ids(text) == reference_ids(text)


def test_our_own_sources_give_the_tokens_of_the_library() -> None:
    for file in sorted(Path(wordpieces.__file__).parent.glob("*.py")):
        text = file.read_text(encoding="utf-8")
        assert piece_ids(text) == reference_ids(text), file


@given(text=st.text(settled_signs | st.sampled_from("aA bZ\n.é中")))
def test_any_letters_give_the_tokens_of_the_library(text: str) -> None:
    assert piece_ids(text) == reference_ids(text)


@given(text=st.text(), limit=st.integers(0, 20))
def test_a_limit_takes_the_first_tokens(text: str, limit: int) -> None:
    assert piece_ids(text, limit) == piece_ids(text)[:limit]


def test_a_limit_reads_past_parts_that_have_no_tokens() -> None:
    assert piece_ids("\u00ad \u00ad \u00ad cat dog", 2) == piece_ids("cat dog")


@given(text=st.text())
def test_counting_and_reading_agree(text: str) -> None:
    assert count_tokens(text) == len(piece_ids(text))


@given(text=st.text() | st.text(st.sampled_from("aA bZ\n.=_-é\u0338\u0301\x0c\ud800中👩")))
def test_a_bag_holds_the_tokens_in_no_order(text: str) -> None:
    assert piece_counts(text) == Counter(piece_ids(text))


def test_a_surrogate_is_dropped() -> None:
    assert piece_ids("ca\ud800t") == piece_ids("cat")


def test_another_vocabulary_gives_its_own_numbers() -> None:
    pieces = WordPieces(Vocabulary({"<unk>": 0, "find": 1, "##ling": 2, "!": 3}, unknown="<unk>"))
    assert pieces.ids("Findling! foundling") == [1, 2, 3, 0]


def test_a_vocabulary_without_the_unknown_is_refused() -> None:
    with pytest.raises(KeyError):
        Vocabulary({"find": 1})


def test_parts_are_forgotten_when_there_are_too_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wordpieces, "_MAX_KNOWN", 10)
    pieces = WordPieces(bert_vocabulary())
    text = " ".join(f"word{number}" for number in range(100))
    assert pieces.ids(text) == piece_ids(text)
    assert len(pieces._parts) <= 10
