"""The compiled core and its reference in Python give the same vectors, bit by bit."""

from __future__ import annotations

import threading

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from findling.core import NativeCore, native
from findling.models.local import instant
from findling.models.local.instant import InstantEmbedder
from findling.stores.vectors import vector_scan, vector_signs
from findling.stores.vectors.vector_scan import Query
from findling.text.analysis import wordpieces
from tests.core.test_native_text import TEXTS

pytestmark = pytest.mark.skipif(native is None, reason="the compiled core is not in use: there is nothing to compare")


def core() -> NativeCore:
    assert native is not None
    return native


def codes(texts: list[str]) -> list[bytes]:
    """The codes that the core makes, whatever language the texts seem to be in."""
    return core().instant_codes(wordpieces.native_vocabulary(), *instant._mapped(), texts, wordpieces.word_tokens)


def reference(texts: list[str]) -> list[bytes]:
    return instant._codes(instant._sums(texts))


@given(st.lists(TEXTS, max_size=4))
def test_instant_vectors_are_those_of_the_reference(texts: list[str]) -> None:
    assert codes(texts) == reference(texts)
    assert instant._native_sums(texts) == instant._sums(texts).tobytes()


def test_sums_stay_exact_in_a_huge_text() -> None:
    words = sorted(wordpieces.bert_vocabulary().numbers)
    text = " ".join(words * 20)
    assert instant._native_sums([text]) == instant._sums([text]).tobytes()
    assert np.abs(instant._sums([text])).max() < 2**53


def test_threads_do_not_mix_their_texts() -> None:
    texts = [f"número {number} é naïve café {number * 7} déjà vu" * 20 for number in range(40)]
    expected, wrong = reference(texts), []

    def run(place: int) -> None:
        for _ in range(30):
            if codes([texts[place]]) != [expected[place]]:
                wrong.append(place)

    threads = [threading.Thread(target=run, args=(place,)) for place in range(len(texts))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_a_table_that_is_too_small_is_refused() -> None:
    vocabulary, (table, offset) = wordpieces.native_vocabulary(), instant._mapped()
    for given_table, start in ((b"", 0), (table, offset + 1), (table, -1), (table, 1 << 62)):
        with pytest.raises(ValueError, match="row for every token"):
            core().instant_codes(vocabulary, given_table, start, ["a"], {})
    with pytest.raises(TypeError):
        core().instant_codes(vocabulary, table, offset, [3], {})  # type: ignore[list-item]


@given(st.integers(1, 1024), st.integers(0, 20), st.integers(0, 1 << 32), st.integers(1, 128))
def test_rows_of_codes_become_what_numpy_makes_of_them(size: int, rows: int, seed: int, most: int) -> None:
    chance = np.random.default_rng(seed)
    codes = chance.integers(1 - most, most, (rows, size)).astype(np.int8)
    codes[np.arange(rows), chance.integers(0, size, rows)] = chance.choice([-127, 127], rows)
    unit = vector_scan.unit_rows(codes.tobytes(), size)
    again, scales = vector_scan.quantise(unit)
    assert again.tobytes() == codes.tobytes()
    assert not vector_scan.rest_of(unit, again, scales).any()
    expected = scales.tobytes(), vector_signs.signs_of(codes).tobytes()
    assert core().unit_rows(codes.tobytes(), size) == expected


def test_rows_that_are_no_codes_are_refused() -> None:
    for codes, size in ((bytes(8), 8), (b"\x7e" * 8, 8), (b"\x7f" * 9, 8), (b"\x7f" * 8, 0), (b"\x7f" * 2048, 2048)):
        with pytest.raises(ValueError, match="127"):
            core().unit_rows(codes, size)


@given(st.integers(1, 300), st.integers(0, 70), st.integers(0, 1 << 32), st.booleans())
def test_every_kernel_gives_the_products_of_the_reference(size: int, rows: int, seed: int, extreme: bool) -> None:
    chance = np.random.default_rng(seed)
    low, high = (-128, -127) if extreme else (-128, 128)
    codes = chance.integers(low, high, (rows, size), np.int8)
    query = Query(np.zeros(size, np.float32), chance.integers(low, high, (1, size), np.int8), 0.37)
    scales = chance.random(rows, np.float32)
    exact = (codes.astype(np.int64) @ query.codes[0].astype(np.int64)).astype(np.float32)
    expected = exact * np.float32(query.scale) * scales
    for kernel in range(len(core().KERNELS)):
        values = np.full(rows, np.nan, np.float32)
        core().scan(query.codes, codes, scales, query.scale, values, kernel)
        assert values.tobytes() == expected.tobytes(), core().KERNELS[kernel]
    if rows:
        assert vector_scan._plain_cosines(query, codes, scales).tobytes() == expected.tobytes()


@given(st.integers(1, 20), st.integers(0, 70), st.integers(0, 1 << 32))
def test_differing_bits_are_those_of_the_reference(words: int, rows: int, seed: int) -> None:
    chance = np.random.default_rng(seed)
    signs = chance.integers(0, 1 << 64, (rows, words), np.uint64)
    query = ~signs[0] if seed % 3 == 0 and rows else chance.integers(0, 1 << 64, words, np.uint64)
    counts, expected = np.full(rows, 9_999, np.uint16), np.zeros(rows, np.uint16)
    core().differing_bits(query, signs, counts)
    vector_signs._count_differing(query, signs, expected)
    assert counts.tolist() == expected.tolist()


def test_signs_of_another_shape_are_refused() -> None:
    query, signs, counts = np.zeros(4, np.uint64), np.zeros((3, 4), np.uint64), np.zeros(3, np.uint16)
    for wrong in ((query[:3], signs, counts), (query, signs, counts[:2]), (query[:0], signs, counts)):
        with pytest.raises(ValueError, match="one row of whole words"):
            core().differing_bits(*wrong)
    with pytest.raises(ValueError, match="one row of whole words"):
        core().differing_bits(bytes(7), bytes(21), counts)


def test_a_scan_of_rows_of_another_shape_is_refused() -> None:
    query, codes, scales = np.zeros(8, np.int8), np.zeros((3, 8), np.int8), np.zeros(3, np.float32)
    for wrong in (
        (query[:0], codes, scales, np.zeros(3, np.float32)),
        (query, codes[:, :7].copy(), scales, np.zeros(3, np.float32)),
        (query, codes, scales[:2], np.zeros(3, np.float32)),
        (query, codes, scales, np.zeros(4, np.float32)),
        (query, codes, np.zeros(13, np.int8)[1:], np.zeros(3, np.float32)),
    ):
        with pytest.raises(ValueError, match="one row length"):
            core().scan(wrong[0], wrong[1], wrong[2], 1.0, wrong[3])
    with pytest.raises(ValueError, match="kernels a number"):
        core().scan(query, codes, scales, 1.0, np.zeros(3, np.float32), len(core().KERNELS))


def test_queries_are_read_as_passages_are() -> None:
    (vector,) = InstantEmbedder().embed(["stale index"], "query")
    sums = instant._sums(["stale index"])[0]
    assert vector.tobytes() == (sums / np.linalg.norm(sums)).astype(np.float32).tobytes()
