"""The contract of vectors as tests: subclass `VectorTableSuite`, say how to make a store and a table.

    class TestMyTable(VectorTableSuite):
        def make_store(self) -> TruthStore:
            return MyStore(...)

        def make_table(self, dimensions: int) -> VectorTable:
            return MyTable(...)

The legs that search use the table: one embeds chunks while they are indexed, one follows the vectors of a model.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from hashlib import blake2b
from math import isclose
from typing import TYPE_CHECKING

import numpy as np
import pytest

from findling.domain.backends import VectorTable
from findling.domain.ports import TruthStore, VectorLeg
from findling.models.ports import Embedder
from findling.pipelines.indexing.fanout import InstantLeg, RefinedLeg, catch_up
from findling.testing.samples import HISTORY, StoreSuite, line_document, stored_document

if TYPE_CHECKING:
    from findling.domain.ports import Vectors

__all__ = ["SampleEmbedder", "VectorTableSuite"]

DIMENSIONS = 16


class SampleEmbedder:
    """Implements `Embedder`: a direction that follows from the text alone, none for a text without letters."""

    name, fingerprint, host, languages = "sample", "sample|1", "", ""
    dimensions, in_process, usual_cosines = DIMENSIONS, True, None

    def embed(self, texts: Sequence[str], kind: str = "passage") -> Vectors:
        """One vector a text, in order."""
        rows = np.zeros((len(texts), DIMENSIONS), np.float32)
        for row, text in enumerate(texts):
            last = text.rpartition("\n")[2]
            if any(map(str.isalnum, last)):
                seed = int.from_bytes(blake2b(last.encode(), digest_size=8).digest(), "big")
                drawn = np.random.default_rng(seed).standard_normal(DIMENSIONS)
                rows[row] = drawn / np.linalg.norm(drawn)
        return rows


_EMBEDDER: Embedder = SampleEmbedder()


def _sample_codes(texts: Sequence[str]) -> list[bytes]:
    """The sample vectors of texts as rows of 8-bit numbers, as an instant leg has them."""
    rows = _EMBEDDER.embed(texts)
    largest = np.abs(rows).max(axis=1, keepdims=True, initial=0.0)
    return [row.tobytes() for row in np.rint(rows * (127 / np.where(largest > 0, largest, 1))).astype(np.int8)]


class VectorTableSuite(StoreSuite):
    """Every sentence of `VectorTable`, and of the legs over it, as a test. Each test gets a new, empty table."""

    @abstractmethod
    def make_table(self, dimensions: int) -> VectorTable:
        """A new, empty table for vectors of this length."""

    @pytest.fixture
    def table(self) -> VectorTable:
        """The table of one test."""
        return self.make_table(DIMENSIONS)

    def test_an_empty_table_answers(self, table: VectorTable) -> None:
        answer = table.search(_directions(1)[0], 5, also=[1])
        assert (answer.hits, dict(answer.scores), answer.rows) == ([], {}, 0)
        assert (len(table), table.cids(), dict(table.state), table.count([1])) == (0, set(), {}, 0)
        assert table.damaged_parts() == []

    def test_rows_count_from_the_commit_on_with_its_numbers(self, table: VectorTable) -> None:
        rows = _directions(3)
        table.add([10, 11, 12], [1, 1, 2], rows)
        assert (len(table), table.search(rows[0], 3).hits) == (0, [])
        table.commit(seq=5, mark=9)
        assert (len(table), table.cids(), dict(table.state)) == (3, {10, 11, 12}, {"seq": 5, "mark": 9})
        (cid, cosine), *_ = table.search(rows[1], 1).hits
        assert cid == 11
        assert isclose(cosine, 1.0, abs_tol=2e-3)

    def test_a_chunk_has_one_row_and_a_dropped_one_none(self, table: VectorTable) -> None:
        rows = _directions(4)
        table.add([1, 2], [1, 2], rows[:2])
        table.commit(seq=1)
        table.add([1], [3], rows[2:3])
        table.drop([2, 99])
        assert table.cids() == {1, 2}
        table.commit(seq=2)
        assert (table.cids(), table.count([1]), table.count([3]), table.count([1, 2, 3])) == ({1}, 0, 1, 1)
        assert table.search(rows[2], 9).hits[0][0] == 1
        assert table.search(rows[1], 9).rows == 1

    def test_rows_of_codes_are_the_vectors_of_their_directions(self, table: VectorTable) -> None:
        given = np.rint(_directions(3) * 100).astype(np.int8)
        given[np.arange(3), np.abs(given).argmax(axis=1)] = (127, -127, 127)
        lengths = np.linalg.norm(given.astype(np.float32), axis=1, keepdims=True)
        rows = given.astype(np.float32) / lengths.astype(np.float32)
        table.add_codes([10, 11, 12, 13], [1, 1, 2, 2], [*(row.tobytes() for row in given), bytes(DIMENSIONS)])
        table.commit(seq=1)
        other = self.make_table(DIMENSIONS)
        other.add([10, 11, 12], [1, 1, 2], rows)
        other.commit(seq=1)
        assert table.cids() == {10, 11, 12}
        assert [table.search(row, 3) for row in rows] == [other.search(row, 3) for row in rows]
        with pytest.raises(ValueError, match="numbers"):
            table.add_codes([14], [3], [b"\x7f"])

    def test_what_was_not_committed_is_forgotten(self, table: VectorTable) -> None:
        rows = _directions(2)
        table.add([1], [1], rows[:1])
        table.clear()
        table.add([2], [1], rows[1:])
        table.commit(seq=1)
        assert table.cids() == {2}

    def test_what_is_cleared_is_forgotten_with_the_commit(self, table: VectorTable) -> None:
        rows = _directions(2)
        table.add([1], [1], rows[:1])
        table.commit(seq=1)
        table.clear()
        table.commit(seq=4)
        assert (table.cids(), dict(table.state), table.search(rows[0], 3).hits) == (set(), {"seq": 4}, [])

    def test_the_nearest_come_first_and_equals_by_their_ids(self, table: VectorTable) -> None:
        rows = _directions(40)
        table.add([*range(100, 140), 7, 900], [1] * 42, np.concatenate((rows, rows[:1], rows[:1])))
        table.commit(seq=1)
        cosines = rows @ rows[0]
        best = [100 + int(row) for row in np.argsort(-cosines)[:6]]
        assert [cid for cid, _ in table.search(rows[0], 8).hits] == [7, 100, 900, *best[1:]]
        for cid, cosine in table.search(rows[0], 8).hits[3:]:
            assert isclose(cosine, float(cosines[cid - 100]), abs_tol=2e-3)

    def test_only_allowed_resources_are_looked_at(self, table: VectorTable) -> None:
        rows = _directions(60)
        table.add(range(60), [cid % 6 for cid in range(60)], rows)
        table.commit(seq=1)
        found = table.search(rows[6], 60, allowed=[0, 3])
        assert {cid % 6 for cid, _ in found.hits} == {0, 3}
        assert (found.rows, found.hits[0][0], table.count([0, 3])) == (20, 6, 20)
        assert table.search(rows[6], 60, allowed=[]).hits == []

    def test_cosines_asked_for_besides(self, table: VectorTable) -> None:
        rows = _directions(9)
        table.add(range(9), [1] * 9, rows)
        table.commit(seq=1)
        scores = table.search(rows[0], 1, also=[5, 6, 77]).scores
        assert scores.keys() == {5, 6}
        assert isclose(scores[5], float(rows[5] @ rows[0]), abs_tol=2e-3)

    def test_an_exact_search_depends_on_nothing_but_the_allowed_rows(self) -> None:
        alone, among, rows = self.make_table(DIMENSIONS), None, _directions(80)
        alone.add(range(20), [1] * 20, rows[:20])
        alone.commit(seq=1)
        expected = alone.search(rows[3], 9, allowed=[1], also=[4], exact=True)
        alone.close()
        among = self.make_table(DIMENSIONS)
        among.clear()
        order = [*range(40, 80), *range(20)]
        among.add(order, [2 if cid >= 40 else 1 for cid in order], rows[order])
        among.commit(seq=1)
        assert among.search(rows[3], 9, allowed=[1], also=[4], exact=True) == expected

    def test_rows_that_do_not_fit_are_refused(self, table: VectorTable) -> None:
        rows = _directions(2)
        with pytest.raises(ValueError):
            table.add([1], [1], rows)
        with pytest.raises(ValueError):
            table.add([1, 2], [1], rows)
        with pytest.raises(ValueError):
            table.add([1, 2], [1, 1], rows[:, :3])
        with pytest.raises(ValueError):
            table.add([1, 2], [1, 1], rows * np.float32("nan"))

    # Legs over it

    def test_an_instant_leg_holds_what_the_store_holds_at_every_number(self, store: TruthStore) -> None:
        leg = InstantLeg(self.make_table(DIMENSIONS), _sample_codes)
        for documents, deleted in HISTORY:
            store.write(documents, deleted)
            catch_up(store, leg)
            assert (leg.table.cids(), leg.seq(), len(leg)) == (store.chunk_ids(), store.seq(), len(store.chunk_ids()))
        _assert_finds_each(store, leg)

    def test_a_chunk_without_a_known_word_has_no_row(self) -> None:
        store, leg = self.make_store(), InstantLeg(self.make_table(DIMENSIONS), _sample_codes)
        store.write([line_document("a", ["words", "…", "more"])])
        catch_up(store, leg)
        assert len(leg) == 2

    def test_a_refined_leg_holds_the_vectors_of_its_model(self, store: TruthStore) -> None:
        leg = RefinedLeg(self.make_table(DIMENSIONS), store, "m")
        for documents, deleted in HISTORY:
            store.write(documents, deleted)
            digests = {one.chunk.digest: one.text for one in store.chunks(sorted(store.chunk_ids())).values()}
            missing = {key: text for key, text in digests.items() if not store.vectors("m", [key])}
            rows = _EMBEDDER.embed(list(missing.values())).astype("<f2")
            store.put_vectors("m", {key: row.tobytes() for key, row in zip(missing, rows, strict=True)})
            assert leg.has_news() == bool(missing)
            if not catch_up(store, leg):
                leg.commit(store.seq())
            assert (leg.table.cids(), leg.seq(), leg.has_news()) == (store.chunk_ids(), store.seq(), False)
        _assert_finds_each(store, leg)


def _assert_finds_each(store: TruthStore, leg: VectorLeg) -> None:
    numbers = {right.rid: right.number for right in store.rights()}
    for rid in store.rids():
        document = stored_document(store, rid)
        assert leg.count([numbers[rid]]) == len(document.chunks)
        for chunk in document.chunks:
            (vector,) = _EMBEDDER.embed([document.text[chunk.start : chunk.end]])
            found = leg.search(vector, 50, allowed=[numbers[rid]]).hits
            assert chunk.cid in [cid for cid, cosine in found if isclose(cosine, 1.0, abs_tol=2e-3)]


def _directions(count: int) -> Vectors:
    drawn = np.random.default_rng(7).standard_normal((count, DIMENSIONS)).astype(np.float32)
    rows: Vectors = drawn / np.linalg.norm(drawn, axis=1, keepdims=True)
    return rows
