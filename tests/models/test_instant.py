"""Instant vectors: sums of token vectors, the same on every run, near for texts that mean the same."""

from __future__ import annotations

import hashlib
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from findling.models.local import instant
from findling.models.local.instant import InstantEmbedder, instant_codes
from findling.text.analysis.wordpieces import bert_vocabulary, piece_ids

DATA = Path(instant.__file__).with_name("data")
TEXTS = [
    "The feline dozed off upon the rug",
    "Inhibition of the kinase slows the growth of tumours in mice, and in mice only.",
    "def read_lines(path): return path.read_text().splitlines()",
    "naïve café déjà vu, 北京 and the the the the",
]


def slow_vector(text: str) -> NDArray[np.float64]:
    """The promise of `embed`, token by token."""
    table = np.load(DATA / "instant-vectors.npy")
    total = np.zeros(256)
    for token, count in Counter(piece_ids(text)).items():
        total += np.sqrt(count) * np.float64(table["scale"][token]) * table["codes"][token]
    return total / np.linalg.norm(total)


def cosine(one: str, other: str) -> float:
    left, right = InstantEmbedder().embed([one, other])
    return float(left @ right)


def test_data_file_is_the_one_that_the_fingerprint_names() -> None:
    digest = hashlib.sha256((DATA / "instant-vectors.npy").read_bytes()).hexdigest()
    assert digest == instant._SHA256
    assert digest[:16] in InstantEmbedder().fingerprint


def test_data_is_small_and_has_a_notice() -> None:
    files = list(DATA.glob("instant-*"))
    assert DATA / "instant-NOTICE" in files
    assert sum(path.stat().st_size for path in files) <= 10_000_000


def test_table_has_a_row_for_every_token_of_the_vocabulary() -> None:
    assert len(np.load(DATA / "instant-vectors.npy")) == len(bert_vocabulary().numbers)


def test_embedder_says_what_it_is() -> None:
    embedder = InstantEmbedder()
    assert (embedder.name, embedder.host, embedder.dimensions) == ("instant", "", 256)


def test_vectors_equal_those_made_token_by_token() -> None:
    vectors = InstantEmbedder().embed(TEXTS)
    assert vectors.dtype == np.float32
    np.testing.assert_allclose(vectors, [slow_vector(text) for text in TEXTS], atol=1e-6)


def test_many_long_texts_get_the_vectors_that_each_gets_alone() -> None:
    words = sorted(word for word in bert_vocabulary().numbers if word.isalpha())
    texts = [" ".join(words[start : start + 100]) for start in range(0, len(words), 100)]
    texts.insert(40, "")
    together = InstantEmbedder().embed(texts)
    alone = np.concatenate([InstantEmbedder().embed([text]) for text in texts])
    np.testing.assert_allclose(together, alone, atol=1e-6)
    assert not together[40].any()


def test_same_texts_give_the_same_bytes() -> None:
    assert InstantEmbedder().embed(TEXTS).tobytes() == InstantEmbedder().embed(TEXTS).tobytes()


def test_order_of_words_does_not_matter() -> None:
    assert cosine("a cat on a red carpet", "carpet red cat a on a") == pytest.approx(1, abs=1e-6)


def test_order_of_texts_does_not_matter() -> None:
    forwards, backwards = InstantEmbedder().embed(TEXTS), InstantEmbedder().embed(TEXTS[::-1])
    np.testing.assert_allclose(forwards, backwards[::-1], atol=1e-6)


def test_passages_and_queries_are_read_alike() -> None:
    embedder = InstantEmbedder()
    assert np.array_equal(embedder.embed(TEXTS, "query"), embedder.embed(TEXTS, "passage"))


@pytest.mark.parametrize("text", ["", "   \n", "\u0000", "\U0001f9ff", "x" * 200])
def test_text_without_a_known_token_gives_zeros(text: str) -> None:
    assert not InstantEmbedder().embed([text]).any()
    assert instant_codes([text]) == [bytes(256)]


def test_nothing_gives_nothing() -> None:
    assert InstantEmbedder().embed([]).shape == (0, 256)
    assert instant_codes([]) == []


@pytest.mark.parametrize(
    ("query", "related", "unrelated"),
    [
        ("cat sleeping on carpet", "The feline dozed off upon the rug", "Quarterly revenue rose by nine percent"),
        ("cat sleeping on carpet", "The feline dozed off upon the rug", "The committee sat on the question of tariffs"),
        ("how to fix a flat tyre", "Repairing a punctured bicycle wheel", "Baking bread with wholemeal flour"),
        ("heart attack", "myocardial infarction in elderly patients", "panic buying of shares"),
        ("delete a file in python", "os.remove(path) unlinks the given file", "matplotlib draws a bar chart"),
    ],
)
def test_related_texts_are_nearer_than_unrelated_ones(query: str, related: str, unrelated: str) -> None:
    assert cosine(query, related) > cosine(query, unrelated) + 0.05


def test_codes_keep_the_vectors() -> None:
    vectors = InstantEmbedder().embed(TEXTS)
    codes = instant_codes(TEXTS)
    assert {len(code) for code in codes} == {256}
    kept = np.frombuffer(b"".join(codes), np.int8).reshape(-1, 256).astype(np.float32)
    assert set(np.abs(kept).max(axis=1)) == {127}
    assert (np.sum(kept * vectors, axis=1) / np.linalg.norm(kept, axis=1)).min() > 0.9995
