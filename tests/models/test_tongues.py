"""Meaning at once in other languages: pieces, sums that are exact, and texts that find their translations."""

from __future__ import annotations

import gzip
import hashlib
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from findling.models.local import instant, tongues
from findling.models.local.instant import InstantEmbedder, instant_codes
from findling.text.analysis import tongue_pieces
from findling.text.analysis.tongue_pieces import cut, foreign_words, whole

DATA = Path(instant.__file__).with_name("data")
PIECES = gzip.decompress(Path(tongue_pieces.__file__).with_name("data").joinpath("tongue-pieces.txt.gz").read_bytes())


def cosine(one: str, other: str) -> float:
    # As questions: short ones are told by fewer signs than passages.
    left, right = InstantEmbedder().embed([one, other], "query")
    return float(left @ right)


def test_data_files_are_those_that_the_fingerprint_names() -> None:
    digest = hashlib.sha256((DATA / "tongue-rows.npy").read_bytes()).hexdigest()
    assert digest == instant._TONGUES_SHA256
    assert digest[:16] in InstantEmbedder().fingerprint
    turn = hashlib.sha256((DATA / "tongue-turn.npy").read_bytes()).hexdigest()
    assert turn.startswith("432685a27177094f")
    assert hashlib.sha256(PIECES).hexdigest().startswith("a5c64a378e12e4ec")


def test_data_is_small_and_has_a_notice() -> None:
    files = [*DATA.glob("tongue-*"), *Path(tongue_pieces.__file__).with_name("data").glob("tongue-*")]
    assert DATA / "tongue-NOTICE" in files
    assert sum(path.stat().st_size for path in files) <= 12_000_000


def test_pieces_are_sorted_and_each_has_a_row() -> None:
    pieces = PIECES.splitlines()
    assert pieces == sorted(set(pieces))
    assert len(pieces) == len(np.load(DATA / "tongue-rows.npy")) == tongues._PIECES


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Die Straße, der Weg!", ["die", "straße", "der", "weg"]),
        ("٣ كِتَاب", ["3", "كتاب"]),
        ("ﬁne１２", ["fine12"]),
        ("北京大学。好", ["北京大学", "好"]),
        ("", []),
    ],
)
def test_words_are_cut_at_what_is_no_letter(text: str, words: list[str]) -> None:
    assert foreign_words(text) == words


def test_a_word_that_is_a_piece_is_whole_and_others_are_cut_into_known_ones() -> None:
    pieces = [piece for piece in PIECES.decode().splitlines() if piece[0] != "\x02"]
    for row, piece in list(enumerate(PIECES.decode().splitlines()))[::1000]:
        if piece[0] != "\x02":
            assert whole(piece) == row
            assert cut(piece)[:1] == [row]
    assert whole("sicherheitsdatenblatt") is None
    rows = cut("sicherheitsdatenblatt")
    names = PIECES.decode().splitlines()
    assert "".join(names[row].lstrip("\x02") for row in rows) == "sicherheitsdatenblatt"
    assert max(map(len, pieces)) >= tongue_pieces._beginning("a").longest


@given(st.text(max_size=60))
def test_any_text_has_a_vector_of_length_1_or_none(text: str) -> None:
    sums = tongues.foreign_sums([text], instant._table())
    assert np.array_equal(sums, np.rint(sums)), "sums are whole numbers"
    assert sums.any() == bool(tongues.row_counts(text))


def test_sums_are_the_same_alone_and_together_and_in_any_order() -> None:
    texts = ["Где лежит ключ от подвала?", "鍵はどこですか", "Wo liegt der Schlüssel?", "", "مفتاح القبو"]
    together = tongues.foreign_sums(texts, instant._table())
    for text, row in zip(texts, together, strict=True):
        turned = " ".join(reversed(text.split()))
        assert np.array_equal(tongues.foreign_sums([text], instant._table())[0], row)
        assert np.array_equal(tongues.foreign_sums([turned], instant._table())[0], row)


def test_sums_stay_exact_in_a_huge_text() -> None:
    """The piece with the largest share 400,000 times, and each other one once."""
    table = tongues._table()
    names = PIECES.decode().splitlines()
    heaviest = max(
        (row for row in range(len(names)) if names[row][0] != "\x02" and names[row].isalpha()),
        key=lambda row: table["scale"][row],
    )
    text = f"{names[heaviest]} " * 400_000
    assert np.abs(tongues.foreign_sums([text], instant._table())).max() < 2**53
    # No order of the additions exceeds this, with each piece of the list once.
    most = sum(np.rint(table["scale"].astype(np.float64) * tongues._SHARES)) * 3 * np.abs(tongues._turn()).sum(0).max()
    assert most < 2**53


@pytest.mark.parametrize(
    ("question", "passage", "other"),
    [
        ("猫在地毯上睡觉", "The cat is sleeping on the carpet.", "Quarterly revenue rose by nine percent."),
        (
            "Wo liegt der Schlüssel für den Keller?",
            "The key of the cellar hangs beside the door.",
            "Bread with butter.",
        ),
        ("¿Cómo se cambia una rueda pinchada?", "Replace a flat tyre of a car.", "The committee sat on tariffs."),
        ("Как удалить файл?", "Delete a file from the folder.", "The matplotlib library draws charts."),
        ("كيف أدفع الضريبة؟", "How taxes are paid.", "A bicycle without brakes."),
        ("セキュリティ更新", "Security updates are installed.", "A walk along the river."),
    ],
)
def test_a_question_is_nearer_to_its_answer_in_english(question: str, passage: str, other: str) -> None:
    assert cosine(question, passage) > cosine(question, other) + 0.1


def test_two_other_languages_meet() -> None:
    french, turkish = "Le chat dort sur le tapis du salon.", "Kedi salondaki halının üzerinde uyuyor."
    assert cosine(french, turkish) > cosine(french, "Bütçe bu yıl yüzde dokuz arttı ve gelirler düştü.") + 0.2


def test_codes_of_a_mixed_batch_are_those_of_each_alone() -> None:
    texts = ["The cat sleeps on the carpet.", "Die Katze schläft auf dem Teppich und träumt von einer Maus.", "", "猫"]
    assert instant_codes(texts) == [instant_codes([text])[0] for text in texts]
