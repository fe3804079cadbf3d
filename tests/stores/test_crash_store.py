"""A writer that is killed at any moment loses nothing it has reported, and leaves nothing half-done."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from findling.stores.conformance_samples import LegModel, held_by
from findling.stores.lock import WriteLock
from findling.stores.sqlite import SqliteStore

KILLS = 10

WRITER = """
import sys
from findling.stores.conformance_samples import line_document
from findling.stores.lock import WriteLock
from findling.stores.sqlite import SqliteStore

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
            store.compact(store.seq() - 60)
        sys.stdout.write(f"{store.seq()} {store.counts()['chunks']}\\n")
        sys.stdout.flush()
"""


@pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")
def test_a_killed_writer_loses_nothing_it_reported(tmp_path: Path) -> None:
    path = tmp_path / "truth.db"
    moments = random.Random(7)
    leg = LegModel()
    reported = 0
    for _ in range(KILLS):
        writer = subprocess.Popen([sys.executable, "-c", WRITER, str(path)], stdout=subprocess.PIPE, text=True)
        assert writer.stdout is not None
        first = writer.stdout.readline()
        assert first, "the writer could not start after the crash before"
        time.sleep(moments.uniform(0, 0.15))
        writer.send_signal(signal.SIGKILL)
        lines = [first, *writer.stdout.read().splitlines()]
        writer.stdout.close()
        assert writer.wait() == -signal.SIGKILL
        # The line being written when the signal came may be cut short.
        reported = max(reported, *(int(line.split()[0]) for line in lines[:-1] or lines))
        with WriteLock(f"{path}.lock", timeout_s=0), SqliteStore.open(path) as store:
            assert store.seq() >= reported
            assert store.integrity() == []
            leg.catch_up(store)
            assert leg.held == held_by(store)
    assert reported > KILLS
