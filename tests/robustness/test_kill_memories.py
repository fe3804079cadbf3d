"""Memories while others write, recall and are killed: a recall waits for nobody, and no access is lost or invented."""

from __future__ import annotations

import os
import random
import signal
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from findling.service.content.memories import WorkspaceMemories
from findling.service.index.access_log import AccessLog
from findling.stores.lock import WriteLock
from findling.stores.sqlite.store import SqliteStore
from tests.counts import tries

if TYPE_CHECKING:
    from tests.robustness.conftest import Playground

pytestmark = [pytest.mark.skipif(os.name == "nt", reason="signals of POSIX"), pytest.mark.slow]

KILLS = tries(4, short=2)
REMEMBER_KILLS = tries(100, short=3)

HOLDER = """
import sys, time
from findling.stores.lock import WriteLock
with WriteLock(sys.argv[1]):
    print("held", flush=True)
    time.sleep(600)
"""
RECALLER = """
import sys, findling
from functools import partial
from findling.service.content.memories import WorkspaceMemories
with findling.open(".") as engine:
    memories = WorkspaceMemories(engine.writer, partial(engine.search, refresh=False))
    print("ready", flush=True)
    for _ in range(int(sys.argv[1])):
        found = memories.recall("shared", mode="keyword")
        assert len(found) == 2, found
"""
APPENDER = """
import sys
from pathlib import Path
from findling.service.index.access_log import AccessLog
log, rids = AccessLog(Path(sys.argv[1])), ["memory:one", "memory:two"]
while True:
    assert log.append(rids)
    print(".", end="", flush=True)
"""
FOLDER = """
import sys
from pathlib import Path
from findling.service.index.access_log import AccessLog
from findling.stores.lock import WriteLock
from findling.stores.sqlite.store import SqliteStore
folder = Path(sys.argv[1])
log = AccessLog(folder)
print("ready", flush=True)
while True:
    with WriteLock(folder / "write.lock"), SqliteStore.open(folder / "index.sqlite") as store:
        log.fold(store, bool)
"""
REMEMBERER = """
import itertools, findling
from functools import partial
from findling.service.content.memories import WorkspaceMemories
with findling.open(".") as engine:
    memories = WorkspaceMemories(engine.writer, partial(engine.search, refresh=False))
    for number in itertools.count():
        print(memories.remember(f"fact {number}").rid, flush=True)
"""


def count(playground: Playground, rid: str) -> int:
    with playground.open() as engine:
        memories = WorkspaceMemories(engine.writer, partial(engine.search, refresh=False))
        return memories.get(rid).access_count


def test_a_recall_does_not_wait_for_a_writer(playground: Playground) -> None:
    rid = playground.call("remember", "--here", "A shared thing.").out.strip()
    lock = playground.workspace / "write.lock"
    holder = playground.start_code(HOLDER, str(lock))
    assert holder.stdout is not None
    assert holder.stdout.readline() == "held\n"
    for recall in (playground.run, playground.call):
        done = recall("recall", "shared")
        assert (done.code, done.err) == (0, "")
    # Had a recall needed the lock, it would still be waiting: nobody else has let it go.
    assert holder.poll() is None
    assert not WriteLock(lock).acquire(0.0)
    assert count(playground, rid) == 2
    holder.kill()
    holder.communicate()
    assert playground.call("remember", "--here", "Another thing.").code == 0
    assert count(playground, rid) == 2
    with SqliteStore.open(playground.store_file, readonly=True) as store:
        assert store.accesses([rid])[rid].count == 2


def test_many_recall_at_once_while_others_count_in(playground: Playground) -> None:
    rids = [playground.call("remember", "--here", f"A shared thing, {name}.").out.strip() for name in ("one", "two")]
    each, processes = 20, 2
    recalling = [playground.start_code(RECALLER, str(each)) for _ in range(processes)]
    for process in recalling:
        assert process.stdout is not None
        process.stdout.readline()
    with playground.open() as engine:
        memories = WorkspaceMemories(engine.writer, partial(engine.search, refresh=False))
        while any(process.poll() is None for process in recalling):
            memories.fold()
            time.sleep(0.005)
    for process in recalling:
        assert playground.finish(process).code == 0
    assert [count(playground, rid) for rid in rids] == [each * processes] * 2


def test_a_recall_that_is_killed_loses_at_most_its_own_line(tmp_path: Path, playground: Playground) -> None:
    chance = random.Random(3)
    with SqliteStore.open(tmp_path / "index.sqlite") as store:
        said = 0
        for _ in range(KILLS):
            process = playground.start_code(APPENDER, str(tmp_path))
            assert process.stdout is not None
            said += len(os.read(process.stdout.fileno(), 1))  # a buffer would keep what `communicate` is to give
            time.sleep(chance.uniform(0, 0.02))
            process.send_signal(signal.SIGKILL)
            said += len(process.communicate()[0])
        counts = AccessLog(tmp_path).counts(store, ["memory:one", "memory:two"])
    assert said <= counts["memory:one"].count <= said + KILLS
    assert said <= counts["memory:two"].count <= said + KILLS


def test_counting_in_that_is_killed_counts_every_line_once(tmp_path: Path, playground: Playground) -> None:
    chance = random.Random(4)
    SqliteStore.open(tmp_path / "index.sqlite").close()
    log, written = AccessLog(tmp_path), 0
    for _ in range(KILLS):
        process = playground.start_code(FOLDER, str(tmp_path))
        assert process.stdout is not None
        process.stdout.readline()
        until = time.monotonic() + chance.uniform(0.005, 0.05)
        while time.monotonic() < until:
            assert log.append(["memory:one"])
            written += 1
        process.send_signal(signal.SIGKILL)
        process.communicate()
        with SqliteStore.open(tmp_path / "index.sqlite") as store:
            assert log.counts(store, ["memory:one"])["memory:one"].count == written
    with SqliteStore.open(tmp_path / "index.sqlite") as store:
        log.fold(store, bool)
        assert store.accesses(["memory:one"])["memory:one"].count == written


def test_what_remember_has_printed_is_there_after_a_kill(playground: Playground) -> None:
    chance = random.Random(5)
    printed: set[str] = set()
    for turn in range(REMEMBER_KILLS):
        process = playground.start_code(REMEMBERER)
        assert process.stdout is not None
        # Later turns remember again what is there before they come to something new.
        for _ in range(2 + 2 * min(turn, 20)):
            printed.add(process.stdout.readline().strip())
        time.sleep(chance.uniform(0, 0.1))
        process.send_signal(signal.SIGKILL)
        printed.update(process.communicate()[0].split())
        with playground.open() as engine:
            memories = WorkspaceMemories(engine.writer, partial(engine.search, refresh=False))
            kept = {memory.rid: memory.text for memory in memories.list()}
            assert printed <= set(kept)
            found = {one.rid for one in memories.recall("fact", limit=1000, mode="keyword")}
            assert found == set(kept)
    assert len(set(kept.values())) == len(kept)
    playground.assert_sound()


def test_what_a_person_has_remembered_is_there_after_a_kill(playground: Playground) -> None:
    """The first turn is killed while the personal workspace is made, or right after it."""
    chance = random.Random(6)
    printed: set[str] = set()
    code = REMEMBERER.replace('findling.open(".")', 'findling.open(workspace="personal")')
    assert code != REMEMBERER
    for turn in range(REMEMBER_KILLS):
        process = playground.start_code(code)
        assert process.stdout is not None
        for _ in range(turn):
            printed.add(process.stdout.readline().strip())
        time.sleep(chance.uniform(0, 0.6 if not turn else 0.1))
        process.send_signal(signal.SIGKILL)
        printed.update(process.communicate()[0].split())
        with playground.open() as engine:
            kept = {memory.rid for memory in engine.memories.list()}
            assert printed <= kept
            assert {one.rid for one in engine.memories.recall("fact", limit=1000, mode="keyword")} == kept
