"""The part of a truth store's contract that the vectors of a model rely on, as tests."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from findling.domain.errors import InvalidValueError
from findling.domain.ports import TruthStore
from findling.domain.queries import Filters
from findling.domain.resources import Document, Share, StoredChunk
from findling.stores.validation import MOST_WISHES
from findling.testing.samples import (
    EMPTY,
    FULL,
    PLAIN,
    StoreSuite,
    cid_of,
    cids_of,
    line_document,
    vectors_of,
    with_metadata,
)

__all__ = ["VectorSuite"]


class VectorSuite(StoreSuite):
    """The promises of a store about vectors, wishes, and the numbers of resources."""

    # Numbers

    def test_a_resource_keeps_its_number(self, store: TruthStore) -> None:
        numbers = {change.rid: change.number for change in store.write([PLAIN, FULL, EMPTY])}
        assert len(set(numbers.values())) == 3
        assert 0 not in numbers.values()
        (renamed,) = store.write([with_metadata(FULL, title="New")])
        assert renamed.number == numbers[FULL.resource.rid]
        assert {change.rid: change.number for change in store.changes(0)} == numbers
        (gone,) = store.write([], [PLAIN.resource.rid])
        assert gone.number == 0
        del numbers[PLAIN.resource.rid]
        assert sorted(store.matching(Filters())) == sorted(numbers.values())

    # Vectors

    def test_vectors_come_back_by_digest_and_model(self, store: TruthStore) -> None:
        store.write([PLAIN])
        one, two = vectors_of(PLAIN, b"1"), vectors_of(PLAIN, b"22")
        store.put_vectors("one", one)
        store.put_vectors("two", two)
        assert store.vectors("one", [b"unknown", *one]) == one
        assert store.vectors("two", [*two]) == two
        assert store.vectors("three", [*one]) == {}
        assert store.vectors("one", []) == {}
        assert store.models() == {"one": len(one), "two": len(two)}
        assert store.seq() == 1
        assert list(store.changes(1)) == []

    def test_many_vectors_are_found_at_once(self, store: TruthStore) -> None:
        vectors = {b"%d" % number: b"%08d" % number for number in range(3000)}
        store.put_vectors("m", vectors)
        assert store.vectors("m", [*vectors]) == vectors

    def test_a_vector_that_is_there_stays(self, store: TruthStore) -> None:
        store.put_vectors("m", {b"a": b"first"})
        store.put_vectors("m", {b"a": b"again", b"b": b"other"})
        store.put_vectors("m", {})
        assert store.vectors("m", [b"a", b"b"]) == {b"a": b"first", b"b": b"other"}

    def test_vectors_of_one_model_have_one_length(self, store: TruthStore) -> None:
        for bad in ({b"a": b"12", b"b": b"1"}, {b"a": b""}):
            with pytest.raises(InvalidValueError):
                store.put_vectors("m", bad)
        assert store.models() == {}
        store.put_vectors("m", {b"a": b"12"})
        with pytest.raises(InvalidValueError):
            store.put_vectors("m", {b"b": b"1234"})
        assert store.models() == {"m": 1}
        store.drop_vectors("m")
        store.put_vectors("m", {b"b": b"1234"})
        assert store.vectors("m", [b"a", b"b"]) == {b"b": b"1234"}

    # Rows

    def test_rows_come_in_the_order_they_were_put_in(self, store: TruthStore) -> None:
        (change,) = store.write([PLAIN])
        three, one = (_digest_of(PLAIN, line) for line in ("three", "one"))
        store.put_vectors("m", {three: b"3"})
        (row,) = store.vector_rows("m", 0)
        assert row[1:] == (cid_of(PLAIN, "three"), change.number, b"3")
        store.put_vectors("other", {one: b"o"})
        store.put_vectors("m", {one: b"1", three: b"x", b"of no chunk": b"-"})
        (later,) = store.vector_rows("m", row.mark)
        assert later.mark > row.mark
        assert later[1:] == (cid_of(PLAIN, "one"), change.number, b"1")
        assert list(store.vector_rows("m", 0)) == [row, later]
        assert list(store.vector_rows("unknown", 0)) == []

    def test_a_row_for_every_chunk_that_shares_the_passage(self, store: TruthStore) -> None:
        other = line_document("other", ["two", "two"])
        store.write([PLAIN, other])
        store.put_vectors("m", {_digest_of(other, "two"): b"2"})
        rows = list(store.vector_rows("m", 0))
        assert len({row.mark for row in rows}) == 1
        twos = {chunk.cid for chunk in PLAIN.chunks[1:3]} | set(cids_of(other))
        assert [row.cid for row in rows] == sorted(twos)

    def test_many_rows_stream_in_order_whatever_became_of_their_chunks(self, store: TruthStore) -> None:
        documents = [line_document(f"r{number}", [f"{number} {line}" for line in range(30)]) for number in range(90)]
        store.write(documents)
        for at in range(0, 90, 4):
            store.put_vectors("m", {key: b"v" for one in documents[at : at + 4] for key in vectors_of(one, b"v")})
        store.write([], [f"r{number}" for number in range(80)])
        rows = list(store.vector_rows("m", 0))
        assert [row.cid for row in rows] == [cid for document in documents[80:] for cid in cids_of(document)]
        marks = [row.mark for row in rows]
        assert marks == sorted(marks)

    def test_marks_are_not_used_again(self, store: TruthStore) -> None:
        store.write([PLAIN])
        store.put_vectors("m", vectors_of(PLAIN, b"v"))
        latest = max(row.mark for row in store.vector_rows("m", 0))
        store.drop_vectors("m")
        store.put_vectors("m", vectors_of(PLAIN, b"w"))
        assert min(row.mark for row in store.vector_rows("m", 0)) > latest

    # What lacks vectors

    def test_chunks_without_a_vector_come_in_order_one_for_each_passage(self, store: TruthStore) -> None:
        store.write([PLAIN, line_document("z", ["three", "four"]), line_document("a", ["five"])])
        assert _texts(store.unembedded("m", 10)) == ["one", "two", "three", "four", "five"]
        assert _texts(store.unembedded("m", 2)) == ["one", "two"]
        assert store.unembedded("m", 0) == []
        (first,) = store.unembedded("m", 1)
        assert (first.chunk, first.resource) == (PLAIN.chunks[0], PLAIN.resource)
        _put(store, ["one", "three"])
        assert _texts(store.unembedded("m", 10)) == ["two", "four", "five"]
        assert _texts(store.unembedded("other", 1)) == ["one"]

    def test_what_comes_and_goes_while_vectors_are_made_is_not_missed(self, store: TruthStore) -> None:
        store.write(line_document(f"r{number}", [f"{number}a", f"{number}b"]) for number in range(6))
        _put(store, _texts(store.unembedded("m", 7)))
        assert _texts(store.unembedded("m", 2)) == ["3b", "4a"]
        store.write([line_document("r1", ["1a", "new", "1b"])], ["r3"])
        assert _texts(store.unembedded("m", 3)) == ["new", "4a", "4b"]
        _put(store, ["new", "4a", "4b", "5a", "5b"])
        assert store.unembedded("m", 3) == []
        store.write([line_document("r0", ["0a", "late"]), line_document("r9", ["9"])])
        assert _texts(store.unembedded("m", 3)) == ["late", "9"]
        store.drop_vectors("m")
        assert _texts(store.unembedded("m", 3)) == ["0a", "late", "1a"]
        _put(store, ["late"])
        assert _texts(store.unembedded("m", 2)) == ["0a", "1a"]

    def test_what_searches_wanted_comes_first(self, store: TruthStore) -> None:
        document = line_document("a", [f"{number}" for number in range(8)])
        store.write([document])
        cid = {line: cid_of(document, line) for line in document.text.split("\n")}
        store.want([cid["6"], cid["3"]])
        store.want(iter([cid["5"], 12345, -1, 2**70]))
        assert _texts(store.unembedded("m", 5)) == ["5", "6", "3", "0", "1"]
        store.want([cid["3"], cid["3"]])
        assert _texts(store.unembedded("m", 2)) == ["3", "5"]
        _put(store, ["3"])
        assert _texts(store.unembedded("m", 4)) == ["5", "6", "0", "1"]
        assert _texts(store.unembedded("other", 3)) == ["5", "6", "0"], "a wish is fulfilled by any model"
        assert store.seq() == 1

    def test_a_wish_goes_with_its_chunk(self, store: TruthStore) -> None:
        store.write([PLAIN])
        store.want([cid_of(PLAIN, "three")])
        store.write([], [PLAIN.resource.rid])
        assert store.unembedded("m", 9) == []
        store.write([PLAIN])
        assert _texts(store.unembedded("m", 1)) == ["one"]

    def test_only_the_latest_wishes_are_kept(self, store: TruthStore) -> None:
        lines = [f"{number}" for number in range(MOST_WISHES + 20)]
        documents = [line_document(f"{at}", lines[at : at + 30]) for at in range(0, len(lines), 30)]
        store.write(documents)
        cids = [cid for document in documents for cid in cids_of(document)]
        store.want(cids[:20])
        store.want(reversed(cids[20:]))
        expected = [*reversed(lines[20:]), *lines[:20]]
        assert _texts(store.unembedded("m", len(lines))) == expected

    def test_a_share_is_counted_and_embedded_alone(self, store: TruthStore) -> None:
        changes = store.write(line_document(f"r{number}", [f"{number}a", f"{number}b", "both"]) for number in range(9))
        every = frozenset(change.number for change in changes)
        few = frozenset(changes[at].number for at in (2, 5))
        own, rest = Share(few, every - few, "few"), Share(every - few, few, "but few")
        store.want([stored.chunk.cid for stored in store.unembedded("m", 2)])
        assert _texts(store.unembedded("m", 3, of=own)) == ["2a", "2b", "both"]
        _put(store, ["2a", "both", "0a"])
        assert [store.coverage("m", share) for share in (own, rest, Share())] == [(3, 6), (8, 21), (11, 27)]
        assert _texts(store.unembedded("m", 2, of=own)) == ["2b", "5a"]
        _put(store, ["2b", "5a", "5b"])
        assert store.unembedded("m", 9, of=own) == []
        assert store.coverage("m", own) == (6, 6)
        assert _texts(store.unembedded("m", 2, of=rest)) == ["0b", "1a"]

    # Coverage, and what is dropped

    def test_coverage_follows_chunks_and_vectors(self, store: TruthStore) -> None:
        assert store.coverage("m") == (0, 0)
        store.write([PLAIN])
        assert store.coverage("m") == (0, 4)
        _put(store, ["two", "of no chunk"])
        assert store.coverage("m") == (2, 4)
        store.write([line_document("other", ["two", "six"])])
        assert store.coverage("m") == (3, 6)
        store.write([line_document("other", ["six", "two", "two"])])
        assert store.coverage("m") == (4, 7)
        store.write([], [PLAIN.resource.rid])
        assert store.coverage("m") == (2, 3)
        assert store.coverage("unknown") == (0, 3)
        assert store.coverages() == {"m": 2}
        first, *rest = line_document("other", ["six", "two", "two"]).chunks
        changed = line_document("other", ["six", "two", "two"])._replace(
            chunks=(first._replace(digest=rest[0].digest), *rest)
        )
        store.write([changed])
        assert store.coverage("m") == (3, 3)

    def test_a_passage_that_moves_finds_its_vector_again(self, store: TruthStore) -> None:
        store.write([PLAIN])
        vectors = vectors_of(PLAIN, b"v")
        store.put_vectors("m", vectors)
        store.write([], [PLAIN.resource.rid])
        assert store.models() == {"m": 3}
        assert list(store.vector_rows("m", 0)) == []
        store.write([line_document("elsewhere", ["one", "two", "two", "three"])])
        assert store.coverage("m") == (4, 4)
        assert store.unembedded("m", 9) == []
        assert store.vectors("m", [*vectors]) == vectors

    def test_vectors_are_dropped_by_model_or_when_no_chunk_uses_them(self, store: TruthStore) -> None:
        store.write([PLAIN])
        for model in ("m", "n"):
            store.put_vectors(model, vectors_of(PLAIN, b"v") | {b"of no chunk": b"v"})
        store.put_vectors("unused", {b"of no chunk": b"v"})
        assert store.drop_vectors() == 3
        assert store.models() == {"m": 3, "n": 3}
        assert store.coverage("m") == (4, 4)
        assert store.coverages() == {"m": 4, "n": 4}
        assert store.drop_vectors("m") == 3
        assert store.drop_vectors("m") == 0
        assert store.models() == {"n": 3}
        assert store.coverage("m") == (0, 4)
        assert store.coverage("n") == (4, 4)
        store.write([], [PLAIN.resource.rid])
        assert store.drop_vectors() == 3
        assert store.models() == {}
        assert store.drop_vectors() == 0


def _texts(found: Iterable[StoredChunk]) -> list[str]:
    return [stored.text for stored in found]


def _put(store: TruthStore, lines: Iterable[str]) -> None:
    """Put in vectors for lines, as `line_document` makes chunks of them."""
    store.put_vectors("m", vectors_of(line_document("any", list(lines)), b"v"))


def _digest_of(document: Document, line: str) -> bytes:
    """The digest of the chunks with this text."""
    return next(chunk.digest for chunk in document.chunks if document.text[chunk.start : chunk.end] == line)
