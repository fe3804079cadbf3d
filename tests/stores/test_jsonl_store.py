from __future__ import annotations

import os
import random
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from findling.domain.errors import (
    CorruptError,
    DiskFullError,
    FormatError,
    InvalidValueError,
    LockedError,
    NotIndexedError,
    ReadOnlyError,
)
from findling.domain.permissions import Relation
from findling.domain.ports import SkippedPath, TruthStore
from findling.domain.records import Access, GlossaryTerm
from findling.domain.resources import Fingerprint
from findling.testing.samples import (
    AWKWARD,
    EMPTY,
    FULL,
    HISTORY,
    PLAIN,
    LegModel,
    held_by,
    line_document,
    vectors_of,
)
from findling.testing.truth_store import TruthStoreSuite
from tests.counts import tries
from tests.jsonl_store import LOG_FILE, JsonlStore
from tests.processes import BoundedProcess

TERM = GlossaryTerm("rate limit", "quota", "Quota", "alias", "person", decided_at=1.5)
KILLS = tries(10, short=3)

WRITER = """
import sys
from findling.testing.samples import line_document
from tests.jsonl_store import JsonlStore

with JsonlStore.open(sys.argv[1], patience_s=0) as store:
    turn = store.seq()
    while True:
        turn += 1
        batch = [
            line_document(f"r{(turn * 7 + n) % 40}", ["same"] + [f"{turn} {n} {line}" + "x" * 600 for line in range(n)])
            for n in range(12)
        ]
        store.write(batch, [f"r{turn % 40}"])
        store.put_vectors("m", {chunk.digest: chunk.digest for one in batch for chunk in one.chunks})
        if turn % 5 == 0:
            store.compact(store.seq() - 60)
        sys.stdout.write(f"{store.seq()} {store.counts()['chunks']}\\n")
        sys.stdout.flush()
"""


class TestJsonlStore(TruthStoreSuite):
    @pytest.fixture(autouse=True)
    def _folder(self, tmp_path: Path) -> Iterator[None]:
        self.path = tmp_path / "store"
        self.stores: list[JsonlStore] = []
        yield
        for store in self.stores:
            store.close()

    def make_store(self) -> TruthStore:
        self.stores.append(JsonlStore.open(self.path))
        return self.stores[-1]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "store"


def facts(store: TruthStore) -> list[object]:
    """All that a store can be asked for."""
    return [
        store.seq(),
        store.log_floor(),
        store.rights(),
        list(store.changes(0)),
        list(store.changes(store.log_floor())),
        {model: list(store.vector_rows(model, 0)) for model in store.models()},
        store.unembedded("other", 100),
        store.glossary(),
        store.glossary_version(),
        store.relations(),
        store.relations_version(),
        store.accesses(["a", FULL.resource.rid]),
        store.skipped(),
        dict(store.folders()),
        store.fingerprints(),
        store.get_meta("key"),
        store.counts(),
    ]


def fill(store: TruthStore) -> None:
    """Do everything that can be done to a store."""
    for documents, deleted in HISTORY:
        store.write(documents, deleted)
    store.write([PLAIN, FULL, AWKWARD, EMPTY])
    store.write([FULL._replace(fingerprint=Fingerprint(9, 9, b"9"))])
    store.put_vectors("m", vectors_of(PLAIN, b"12"))
    store.put_vectors("n", vectors_of(FULL, b"1234"))
    store.put_vectors("m", vectors_of(FULL, b"34"))
    store.write([], [PLAIN.resource.rid])
    store.drop_vectors()
    store.want([FULL.chunks[1].cid, AWKWARD.chunks[0].cid])
    store.touch({"chats/7.md": Fingerprint(1, 2, b"3")})
    store.write_glossary([TERM, TERM._replace(key="kontingent", surface="Kontingent")])
    store.write_glossary([], [("rate limit", "kontingent")])
    ana, bo = (Relation(f"user:{name}", "member", "group:team") for name in ("ana", "bo"))
    store.write_relations([ana, bo])
    store.write_relations([], [bo])
    store.add_accesses({FULL.resource.rid: Access(2, 5.5)})
    store.add_accesses({FULL.resource.rid: Access(1, 4.0)})
    store.set_folders({"": 5, "b/ü/": -1})
    store.set_skipped([SkippedPath("caf\udce9", "binary"), SkippedPath("b", "too-large", "3 MB", 3, 4)])
    store.set_meta("key", "wert\n„ü“")


def test_everything_is_there_when_opened_again(folder: Path) -> None:
    with JsonlStore.open(folder) as store:
        fill(store)
        before = facts(store)
    with JsonlStore.open(str(folder)) as store:
        assert facts(store) == before
    with JsonlStore.open(folder, readonly=True) as store:
        assert facts(store) == before
    assert stat.S_IMODE((folder / LOG_FILE).stat().st_mode) == 0o600


@pytest.mark.parametrize("kept", [0, 3, 10**9])
def test_a_file_written_anew_tells_the_same(folder: Path, kept: int) -> None:
    with JsonlStore.open(folder) as store:
        fill(store)
        floor = max(0, store.seq() - kept)
        store.compact(floor)
        before = facts(store)
        assert store.log_floor() == floor
    with JsonlStore.open(folder) as store:
        assert facts(store) == before
        assert [change.seq for change in store.write([line_document("z", ["new"])])] == [store.seq()]
        after = facts(store)
    with JsonlStore.open(folder) as store:
        assert facts(store) == after


def test_a_log_of_detours_is_written_anew_by_itself(folder: Path) -> None:
    with JsonlStore.open(folder) as store:
        for turn in range(60):
            store.write([line_document("r", [f"{turn} " + "x" * 50_000])])
        assert (folder / LOG_FILE).stat().st_size < 1_200_000
        before = facts(store)
    with JsonlStore.open(folder) as store:
        assert facts(store) == before
        assert store.seq() == 60


def test_what_changes_nothing_is_not_written(folder: Path) -> None:
    with JsonlStore.open(folder) as store:
        store.write([PLAIN, FULL])
        size = (folder / LOG_FILE).stat().st_size
        assert store.write([PLAIN, FULL], ["nothing"]) == []
        assert (folder / LOG_FILE).stat().st_size == size


def test_a_line_that_was_cut_short_is_as_if_it_had_never_been(folder: Path) -> None:
    with JsonlStore.open(folder) as store:
        store.write([PLAIN])
        kept = (folder / LOG_FILE).stat().st_size
        before = facts(store)
        store.write([FULL])
    whole = (folder / LOG_FILE).read_bytes()
    for end in (kept, kept + 1, kept + 40, len(whole) - 1):
        (folder / LOG_FILE).write_bytes(whole[:end])
        with JsonlStore.open(folder, readonly=True) as store:
            assert facts(store) == before
        with JsonlStore.open(folder) as store:
            assert facts(store) == before
            assert (folder / LOG_FILE).stat().st_size == kept
            store.set_meta("key", "goes on")
        with JsonlStore.open(folder) as store:
            assert store.get_meta("key") == "goes on"


def test_damage_before_the_last_line_is_told(folder: Path) -> None:
    with JsonlStore.open(folder) as store:
        store.write([PLAIN])
        store.write([FULL])
    whole = (folder / LOG_FILE).read_bytes()
    (folder / LOG_FILE).write_bytes(whole.replace(b"three", b"thrae", 1))
    with pytest.raises(CorruptError, match=r"log\.jsonl is damaged: line 2 "):
        JsonlStore.open(folder)
    (folder / LOG_FILE).write_bytes(b"")
    with pytest.raises(CorruptError, match="no first line"):
        JsonlStore.open(folder)
    (folder / LOG_FILE).write_bytes(whole)
    JsonlStore.open(folder).close()  # the lock was let go each time


def test_a_log_of_a_newer_findling_is_left_alone(folder: Path) -> None:
    from zlib import crc32

    folder.mkdir()
    body = b'{"op":"begin","kind":"findling-log","format":2}'
    (folder / LOG_FILE).write_bytes(b'["%08x",%b]\n' % (crc32(body), body))
    with pytest.raises(FormatError, match="has format 2"):
        JsonlStore.open(folder)


def test_one_writer_at_a_time(folder: Path) -> None:
    with JsonlStore.open(folder) as store:
        store.write([PLAIN])
        with pytest.raises(LockedError):
            JsonlStore.open(folder, patience_s=0)
        with JsonlStore.open(folder, readonly=True) as reader:
            assert reader.document(PLAIN.resource.rid) == PLAIN
            with pytest.raises(ReadOnlyError):
                reader.write([FULL])
            with pytest.raises(ReadOnlyError):
                reader.set_meta("key", "value")
    JsonlStore.open(folder).close()


def test_there_must_be_something_to_read(folder: Path) -> None:
    with pytest.raises(NotIndexedError):
        JsonlStore.open(folder, readonly=True)
    assert not folder.exists()


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
def test_a_full_disk_takes_nothing_back(folder: Path) -> None:
    with JsonlStore.open(folder) as store:
        store.write([PLAIN])
        before = facts(store)
        assert store._log is not None
        file = store._log._file
        kept, full = os.dup(file), os.open("/dev/full", os.O_RDWR)
        os.dup2(full, file)
        for attempt in (lambda: store.write([FULL], [PLAIN.resource.rid]), lambda: store.set_meta("key", "v")):
            with pytest.raises(DiskFullError):
                attempt()
            assert facts(store) == before
        os.dup2(kept, file)
        os.close(kept)
        os.close(full)
        store.write([FULL])
    with JsonlStore.open(folder) as store:
        assert sorted(store.rids()) == sorted([PLAIN.resource.rid, FULL.resource.rid])


def test_what_is_refused_is_not_in_the_log(folder: Path) -> None:
    with JsonlStore.open(folder) as store:
        store.write([PLAIN])
        with pytest.raises(InvalidValueError):
            store.write([FULL, PLAIN._replace(text="\ud800")])
        before = facts(store)
    with JsonlStore.open(folder) as store:
        assert facts(store) == before


@pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")
def test_a_killed_writer_loses_nothing_it_reported(folder: Path) -> None:
    moments = random.Random(7)
    leg = LegModel()
    reported = 0
    for _ in range(KILLS):
        process = BoundedProcess([sys.executable, "-c", WRITER, str(folder)], stdout=subprocess.PIPE)
        assert process.stdout is not None
        lines = [process.stdout.readline()]
        assert lines[0], "the process could not start after the crash before"
        time.sleep(moments.uniform(0, 0.15))
        process.send_signal(signal.SIGKILL)
        lines += process.stdout.read().splitlines()
        process.stdout.close()
        assert process.wait() == -signal.SIGKILL
        # The line being written when the signal came may be cut short.
        reported = max(reported, *(int(line.split()[0]) for line in lines[:-1] or lines))
        with JsonlStore.open(folder, patience_s=0) as store:
            assert store.seq() >= reported
            leg.catch_up(store)
            assert leg.held == held_by(store)
            rows = list(store.vector_rows("m", 0))
            assert {row.vector for row in rows} <= {
                stored.chunk.digest for stored in store.chunks([r.cid for r in rows]).values()
            }
    assert reported >= KILLS
