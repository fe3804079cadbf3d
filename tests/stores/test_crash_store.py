"""A process that is killed at any moment loses nothing it has reported, and leaves nothing half-done."""

from __future__ import annotations

import os
import random
from pathlib import Path

import pytest

from findling.stores.lock import WriteLock
from findling.stores.sqlite.store import SqliteStore
from findling.testing.samples import LegModel, held_by, line_document
from tests.counts import tries
from tests.processes import run_and_kill

KILLS = tries(10, short=3)

WRITER = """
import sys
from pathlib import Path
from findling.testing.samples import line_document
from findling.stores.lock import WriteLock
from findling.stores.sqlite.store import SqliteStore
from findling.stores.sqlite.vacuum import fold_log, rewrite_store, trim_log

with WriteLock(sys.argv[1] + ".lock", timeout_s=0), SqliteStore.open(sys.argv[1]) as store:
    turn = store.seq()
    while True:
        turn += 1
        batch = [
            line_document(f"r{(turn * 7 + n) % 40}", ["same"] + [f"{turn} {n} {line}" + "x" * 600 for line in range(n)])
            for n in range(12)
        ]
        store.write(batch, [f"r{turn % 40}"])
        if turn % 5 == 0:
            trim_log(Path(sys.argv[1]), store.seq() - 60)
            rewrite_store(Path(sys.argv[1]))
            fold_log(Path(sys.argv[1]))
        sys.stdout.write(f"{store.seq()} {store.counts()['chunks']}\\n")
        sys.stdout.flush()
"""


EMBEDDER = """
import sys
from findling.stores.sqlite.store import SqliteStore

with SqliteStore.open(sys.argv[1]) as store:
    sys.stdout.write(f"{store.coverage('m')[0]}\\n")
    while found := store.unembedded("m", 3):
        store.want([stored.chunk.cid for stored in store.unembedded("other", 50)])
        store.put_vectors("m", {stored.chunk.digest: stored.chunk.digest * 48 for stored in found})
        sys.stdout.write(f"{store.coverage('m')[0]}\\n")
        sys.stdout.flush()
"""


@pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")
def test_a_killed_writer_loses_nothing_it_reported(tmp_path: Path) -> None:
    path = tmp_path / "truth.db"
    moments = random.Random(7)
    leg = LegModel()
    reported = 0
    for _ in range(KILLS):
        lines = run_and_kill(WRITER, str(path), moments.uniform(0, 0.15))
        reported = max(reported, *(int(line.split()[0]) for line in lines))
        with WriteLock(f"{path}.lock", timeout_s=0), SqliteStore.open(path) as store:
            assert store.seq() >= reported
            assert store.integrity() == []
            leg.catch_up(store)
            assert leg.held == held_by(store)
    assert reported >= KILLS


@pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")
def test_a_killed_embedder_loses_no_vector_it_reported(tmp_path: Path) -> None:
    path = tmp_path / "truth.db"
    moments = random.Random(8)
    known: dict[int, bytes] = {}
    mark = 0
    with SqliteStore.open(path) as store:
        store.write(line_document(f"r{n}", [f"{n} {line}" for line in range(200)]) for n in range(100))
        for turn in range(KILLS):
            lines = run_and_kill(EMBEDDER, str(path), moments.uniform(0, 0.15))
            covered, _ = store.coverage("m")
            assert covered >= max(int(line) for line in lines)
            assert store.integrity() == []
            # A leg that reads on from the mark it has reached ends with what the store has.
            rows = list(store.vector_rows("m", mark))
            assert not known.keys() & {row.cid for row in rows}
            known |= {row.cid: row.vector for row in rows}
            mark = max((row.mark for row in rows), default=mark)
            assert len(known) == covered
            store.write([line_document(f"new {turn}", [f"new {turn}"])])
        chunks = store.chunks(list(known))
    assert known == {cid: stored.chunk.digest * 48 for cid, stored in chunks.items()}
    assert len(known) >= KILLS
