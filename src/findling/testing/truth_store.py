"""The contract of a truth store as tests: subclass `TruthStoreSuite`, say how to make a store, let pytest collect it.

    class TestMyStore(TruthStoreSuite):
        def make_store(self) -> TruthStore:
            return MyStore(...)

It needs pytest and no other library.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from findling.domain.errors import InvalidValueError
from findling.domain.ports import Change, SkippedPath, TruthStore
from findling.domain.resources import Chunk, Document, Fingerprint, Place, Resource
from findling.testing.samples import (
    AWKWARD,
    EMPTY,
    FULL,
    PLAIN,
    LegModel,
    cid_of,
    cids_of,
    held_by,
    line_document,
    stored_document,
    with_metadata,
)
from findling.testing.truth_store_queries import QuestionSuite
from findling.testing.truth_store_records import ChangeLogSuite, RecordSuite
from findling.testing.truth_store_vectors import VectorSuite

__all__ = ["TruthStoreSuite"]


class TruthStoreSuite(ChangeLogSuite, QuestionSuite, RecordSuite, VectorSuite):
    """Every sentence of `TruthStore`, as a test. Each test gets a new, empty store."""

    # Reading back

    def test_an_empty_store_holds_nothing(self, store: TruthStore) -> None:
        assert store.seq() == 0
        assert store.log_floor() == 0
        assert list(store.changes(0)) == []
        assert list(store.rids()) == []
        assert store.document("a") is None
        assert store.chunks([1]) == {}
        assert store.fingerprints() == {}
        assert store.counts() == {"resources": 0, "chunks": 0, "characters": 0, "skipped": 0}

    def test_a_document_comes_back_as_it_was_written(self, store: TruthStore) -> None:
        for document in (FULL, PLAIN, AWKWARD, EMPTY):
            store.write([document])
            assert store.document(document.resource.rid) == document

    def test_seen_by_nobody_differs_from_left_to_the_policy(self, store: TruthStore) -> None:
        store.write([line_document("nobody", ["x"], visibility=()), line_document("policy", ["x"], visibility=None)])
        assert stored_document(store, "nobody").resource.visibility == ()
        assert stored_document(store, "policy").resource.visibility is None

    def test_chunks_carry_their_resource_and_their_own_text(self, store: TruthStore) -> None:
        store.write([AWKWARD, FULL])
        found = store.chunks([chunk.cid for chunk in AWKWARD.chunks])
        assert [stored.chunk for stored in found.values()] == list(AWKWARD.chunks)
        for stored in found.values():
            assert stored.resource == AWKWARD.resource
            assert stored.text == AWKWARD.text[stored.chunk.start : stored.chunk.end]

    def test_chunks_leaves_out_ids_that_do_not_exist(self, store: TruthStore) -> None:
        store.write([PLAIN])
        known = PLAIN.chunks[0].cid
        assert list(store.chunks([7, known, -1, 2**63, 2**70, known])) == [known]
        assert store.chunks([]) == {}

    def test_chunks_takes_thousands_of_ids_in_any_order(self, store: TruthStore) -> None:
        documents = [line_document(f"r{number}", [f"line {line}" for line in range(30)]) for number in range(60)]
        store.write(documents)
        cids = sorted(chunk.cid for document in documents for chunk in document.chunks)
        found = store.chunks(cids)
        assert list(found) == cids
        assert {stored.text for stored in found.values()} == {f"line {line}" for line in range(30)}

    def test_the_largest_and_the_smallest_chunk_id_are_kept(self, store: TruthStore) -> None:
        ends = (Chunk(0, b"", 0, 0, 1, 1, 1), Chunk(2**63 - 1, b"", 1, 1, 2, 1, 1))
        store.write([Document(Resource(rid="a"), "xy", ends)])
        assert {cid: stored.text for cid, stored in store.chunks([0, 2**63 - 1]).items()} == {0: "x", 2**63 - 1: "y"}

    def test_rids_come_in_order_and_by_type(self, store: TruthStore) -> None:
        types = {"b": "file", "a": "chat", "Ä": "file", "Z": "file", "a/b": "chat", "\U0001f33b": "file"}
        store.write(line_document(rid, ["x"], type=type_) for rid, type_ in types.items())
        assert list(store.rids()) == sorted(types)
        assert list(store.rids("chat")) == ["a", "a/b"]
        assert [resource.rid for resource in store.resources()] == sorted(types)
        assert list(store.rids("decision")) == []

    def test_counts_follow_the_content(self, store: TruthStore) -> None:
        store.write([line_document("a", ["äö", "x\0y"]), line_document("b", ["zz"])])
        store.set_skipped([SkippedPath("p", "binary")])
        assert store.counts() == {"resources": 2, "chunks": 3, "characters": 8, "skipped": 1}
        store.write([], ["a"])
        assert store.counts() == {"resources": 1, "chunks": 1, "characters": 2, "skipped": 1}

    # Numbering

    def test_every_change_has_the_next_number(self, store: TruthStore) -> None:
        changes = store.write([PLAIN, FULL])
        assert [change.seq for change in changes] == [1, 2]
        assert store.seq() == 2

    def test_numbers_never_fall_and_never_repeat(self, store: TruthStore) -> None:
        store.write([PLAIN])
        store.write([], [PLAIN.resource.rid])
        assert store.seq() == 2
        assert [change.seq for change in store.write([PLAIN])] == [3]

    # What a write does

    def test_a_new_document_adds_all_its_chunks(self, store: TruthStore) -> None:
        (change,) = store.write([PLAIN])
        assert change == Change(1, PLAIN.resource.rid, (), frozenset(cids_of(PLAIN)), PLAIN, change.number)

    def test_an_equal_document_makes_no_change(self, store: TruthStore) -> None:
        store.write([FULL, PLAIN])
        assert store.write([FULL, with_metadata(PLAIN)]) == []
        assert store.seq() == 2

    def test_a_new_fingerprint_is_recorded_and_is_no_change(self, store: TruthStore) -> None:
        store.write([FULL])
        newer = FULL._replace(fingerprint=Fingerprint(1, 2, b"3"))
        assert store.write([newer]) == []
        assert store.seq() == 1
        assert store.document(FULL.resource.rid) == newer
        assert next(store.changes(0)).document == newer

    def test_an_edit_keeps_the_chunks_it_does_not_touch(self, store: TruthStore) -> None:
        before = line_document("a", ["one", "two", "three"])
        after = line_document("a", ["a new first line", "one", "three"])
        store.write([before])
        (change,) = store.write([after])
        assert change.dropped == (cid_of(before, "two"),)
        assert change.added == {cid_of(after, "a new first line")}
        assert change.document == after
        assert store.document("a") == after
        kept = store.chunks([cid_of(before, "three")])[cid_of(before, "three")]
        assert (kept.text, kept.chunk.line_start) == ("three", 3)

    def test_text_between_the_chunks_counts_as_a_change(self, store: TruthStore) -> None:
        store.write([PLAIN])
        after = PLAIN._replace(text=PLAIN.text + "\n")
        (change,) = store.write([after])
        assert change == Change(2, PLAIN.resource.rid, (), frozenset(), after, change.number)
        assert store.document(PLAIN.resource.rid) == after

    def test_new_metadata_renews_every_chunk(self, store: TruthStore) -> None:
        renewals: dict[str, Any] = dict.fromkeys(("title", "path", "lang", "type", "author"), "new")
        renewals |= {"tags": ("new",), "visibility": (), "created_at": 1.5, "updated_at": 2.5, "fields": {"a": "new"}}
        document = PLAIN
        store.write([document])
        for name, value in renewals.items():
            document = with_metadata(document, **{name: value})
            (change,) = store.write([document])
            assert change.dropped == tuple(sorted(cids_of(document)))
            assert change.added == set(cids_of(document))
            assert store.document(document.resource.rid) == document

    def test_a_chunk_that_moves_to_another_place_is_not_added_anew(self, store: TruthStore) -> None:
        store.write([FULL])
        first = FULL.chunks[0]
        after = FULL._replace(chunks=(first._replace(places=(Place(0, "p. 2"),)), *FULL.chunks[1:]))
        (change,) = store.write([after])
        assert (change.dropped, change.added) == ((), frozenset())
        assert store.document(FULL.resource.rid) == after

    def test_a_chunk_with_another_heading_is_added_anew(self, store: TruthStore) -> None:
        store.write([PLAIN])
        first = PLAIN.chunks[0]
        after = PLAIN._replace(chunks=(first._replace(heading=("Other",)), *PLAIN.chunks[1:]))
        (change,) = store.write([after])
        assert change.dropped == (first.cid,)
        assert change.added == {first.cid}
        assert store.document(PLAIN.resource.rid) == after

    def test_deleting_drops_every_chunk(self, store: TruthStore) -> None:
        store.write([PLAIN, FULL])
        (change,) = store.write([], [PLAIN.resource.rid])
        assert change == Change(3, PLAIN.resource.rid, tuple(sorted(cids_of(PLAIN))), frozenset(), None)
        assert store.document(PLAIN.resource.rid) is None
        assert store.chunks(cids_of(PLAIN)) == {}
        assert list(store.rids()) == [FULL.resource.rid]

    def test_deleting_what_is_not_there_is_no_change(self, store: TruthStore) -> None:
        assert store.write([], ["nothing"]) == []
        assert store.seq() == 0

    def test_a_resource_written_twice_in_one_go_ends_as_the_last(self, store: TruthStore) -> None:
        first, last = line_document("a", ["one", "two"]), line_document("a", ["two", "three"])
        changes = store.write([first, last])
        assert [change.seq for change in changes] == [1, 2]
        assert store.document("a") == last
        leg = LegModel()
        leg.apply(changes)
        assert leg.held == held_by(store)

    def test_deletions_come_after_the_documents(self, store: TruthStore) -> None:
        changes = store.write([PLAIN], [PLAIN.resource.rid])
        assert [change.document for change in changes] == [PLAIN, None]
        assert store.document(PLAIN.resource.rid) is None

    # All or nothing

    def test_a_write_that_fails_leaves_nothing_behind(self, store: TruthStore) -> None:
        store.write([PLAIN])

        def interrupted() -> Iterator[Document]:
            yield FULL
            yield line_document(PLAIN.resource.rid, ["changed"])
            raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            store.write(interrupted(), [PLAIN.resource.rid])
        assert store.seq() == 1
        assert list(store.rids()) == [PLAIN.resource.rid]
        assert store.document(PLAIN.resource.rid) == PLAIN
        assert [change.seq for change in store.write([FULL])] == [2]

    def test_readers_see_whole_writes_only(self, store: TruthStore) -> None:
        store.write([PLAIN])
        seen: list[tuple[int, list[str], dict[str, int]]] = []

        def watching() -> Iterator[Document]:
            yield FULL
            seen.append((store.seq(), list(store.rids()), dict(store.counts())))
            assert store.document(FULL.resource.rid) is None
            assert store.chunks(cids_of(FULL)) == {}
            yield EMPTY

        before = (store.seq(), list(store.rids()), dict(store.counts()))
        store.write(watching())
        assert seen == [before]
        assert store.seq() == 3

    def test_a_document_that_cannot_be_kept_is_refused(self, store: TruthStore) -> None:
        first, second = PLAIN.chunks[:2]
        refused = [
            with_metadata(PLAIN, rid=""),
            PLAIN._replace(text=PLAIN.text + "\ud800"),
            with_metadata(PLAIN, path="caf\udce9"),
            PLAIN._replace(chunks=(first._replace(cid=-1),)),
            PLAIN._replace(chunks=(first._replace(cid=2**63),)),
            PLAIN._replace(chunks=(first._replace(end=len(PLAIN.text) + 1),)),
            PLAIN._replace(chunks=(first._replace(start=3, end=2),)),
            PLAIN._replace(chunks=(first._replace(start=-1),)),
            PLAIN._replace(chunks=(first, second._replace(cid=first.cid))),
            PLAIN._replace(chunks=(second, first)),
            line_document("other", ["x"])._replace(text="xx", chunks=(Chunk(FULL.chunks[0].cid, b"", 0, 0, 1, 1, 1),)),
        ]
        store.write([FULL])
        for document in refused:
            with pytest.raises(InvalidValueError):
                store.write([EMPTY, document])
            assert list(store.rids()) == [FULL.resource.rid]
            assert store.seq() == 1

    # Fingerprints

    def test_fingerprints_are_those_of_resources_with_a_path(self, store: TruthStore) -> None:
        mark = Fingerprint(3, 2**62, b"\0digest")
        store.write(
            [
                line_document("a", ["x"], path="dir/a.txt", fingerprint=mark),
                line_document("b", ["x"], path="dir/b.txt"),
                line_document("c", ["x"], fingerprint=mark),
                line_document("d", ["x"], path="d", fingerprint=Fingerprint(0, 0)),
            ]
        )
        assert store.fingerprints() == {"dir/a.txt": mark, "d": Fingerprint(0, 0)}

    def test_touching_records_a_fingerprint_and_is_no_change(self, store: TruthStore) -> None:
        document = line_document("a", ["x"], path="a.txt", updated_at=5.0, fingerprint=Fingerprint(1, 1))
        store.write([document])
        store.touch({"a.txt": Fingerprint(1, 9, b"new", 7), "elsewhere.txt": Fingerprint(1, 1)})
        assert store.fingerprints() == {"a.txt": Fingerprint(1, 9, b"new", 7)}
        assert store.seq() == 1
        assert list(store.changes(1)) == []
        assert stored_document(store, "a").resource == document.resource

    def test_stamps_are_the_cheap_part_of_fingerprints(self, store: TruthStore) -> None:
        store.write([PLAIN, FULL])
        expected = {(path, known.size, known.changed_ns, known.inode) for path, known in store.fingerprints().items()}
        assert set(store.stamps()) == expected

    def test_folders_are_replaced(self, store: TruthStore) -> None:
        assert list(store.folders()) == []
        store.set_folders({"": 5, "a/": 6})
        store.set_folders({"": 7, "b/ü/": -1})
        assert dict(store.folders()) == {"": 7, "b/ü/": -1}
        assert store.seq() == 0

    # What was left out, and small values

    def test_skipped_paths_are_replaced_and_ordered(self, store: TruthStore) -> None:
        store.set_skipped([SkippedPath("old", "binary")])
        entries = [SkippedPath("b", "too-large", "3 MB", 3, 4), SkippedPath("Z", "ignored"), SkippedPath("ä", "binary")]
        store.set_skipped(iter(entries))
        assert store.skipped() == sorted(entries)
        assert store.seq() == 0
        store.set_skipped([])
        assert store.skipped() == []

    def test_refusals_are_the_files_that_were_opened(self, store: TruthStore) -> None:
        refused = [SkippedPath("b", "binary", "", 3, 4), SkippedPath("empty", "unreadable", "", 0, 4)]
        store.set_skipped([SkippedPath("a", "ignored"), *refused])
        assert store.refusals() == {entry.path: entry for entry in refused}

    def test_skipped_names_need_not_be_valid_unicode(self, store: TruthStore) -> None:
        entry = SkippedPath("caf\udce9.txt", "name", "caf\udce9", 1, 2)
        store.set_skipped([entry])
        assert store.skipped() == [entry]
        assert store.refusals() == {entry.path: entry}

    def test_meta_values_are_kept_apart_from_everything_else(self, store: TruthStore) -> None:
        for key in ("format", "seq", ""):
            assert store.get_meta(key) is None
            store.set_meta(key, "first")
            store.set_meta(key, "second ä")
            assert store.get_meta(key) == "second ä"
        assert store.seq() == 0
        assert store.write([PLAIN])[0].seq == 1

    def test_closing_twice_is_fine(self, store: TruthStore) -> None:
        store.write([PLAIN])
        store.close()
        store.close()
