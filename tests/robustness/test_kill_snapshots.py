"""Compacting, copying and restoring: searches go on meanwhile, and kill -9 at any moment loses nothing."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Self

import pytest

from findling.service.index.embeddings import WorkspaceVectors
from findling.service.upkeep.compaction import compact
from findling.service.upkeep.snapshots import WorkspaceSnapshots
from tests.processes import BoundedProcess

if TYPE_CHECKING:
    from tests.robustness.conftest import Playground

pytestmark = [pytest.mark.skipif(os.name == "nt", reason="signals of POSIX"), pytest.mark.slow]

Hits = dict[str, list[list[object]]]

FILES = 8
POINTS = 4
"""Places at which one run is killed, spread over all that it does to files."""
MOMENTS = 1
"""Kills at any time besides, most of which fall into what SQLite and the index do by themselves."""

# Asks the same questions until it is stopped, as one that stays open and as one that comes anew, and prints every
# answer that is not one of those that it was given.
SEARCHER = """
import json, sys
import findling
from findling.service.settings.settings import load_settings

right = json.loads(sys.argv[1])

def is_right(query, hits):
    # Those of one state; in the moment of the change they may lack what only one of the states has.
    ids = [{id_ for id_, _ in state[query]} for state in right]
    in_all = set.intersection(*ids)
    found = {id_ for id_, _ in hits}
    return in_all <= found and any(all(hit in state[query] for hit in hits) for state in right)

settings = load_settings(".")
with findling.open(".", settings=settings) as lasting:
    while True:
        with findling.open(".", settings=settings) as fresh:
            for query in right[0]:
                for engine in (lasting, fresh):
                    answer = engine.search(query, limit=1000, refresh=False)
                    hits = sorted([hit.id, hit.score] for hit in answer)
                    if not is_right(query, hits) or answer.degraded:
                        print("WRONG", query, hits, answer.degraded, flush=True)
        print("asked", flush=True)
"""

# For every line "POINT NAME" it does what it is for once, in a process that is killed when it is about to touch a file
# for the POINT-th time; with 0 it lives on and tells how often it does.
VICTIM = """
import os, signal, sys
import numpy
import findling
from findling.service.upkeep import compaction as compacting
from findling.service.upkeep import snapshots
from findling.service.upkeep import snapshots as restoring
from findling.service.settings.settings import load_settings
from findling.service.index.embeddings import WorkspaceVectors

WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT
TOUCHING = {"os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.link", "shutil.rmtree", "shutil.copyfile",
            "sqlite3.connect"}
touched = 0

def watch(point):
    def hook(event, args):
        global touched
        if event in TOUCHING or (event == "open" and isinstance(args[2], int) and args[2] & WRITES):
            touched += 1
            if touched == point:
                os.kill(os.getpid(), signal.SIGKILL)
    sys.addaudithook(hook)

def act(what, name):
    settings = load_settings(".")
    with findling.open(".", settings=settings) as engine:
        files = engine.writer.files
        if what == "compact":
            compacting.compact(files, WorkspaceVectors(files, settings), settings, full=True)
        elif what == "create":
            snapshots.WorkspaceSnapshots(files, settings).create(keep=3)
        else:
            snapshots.WorkspaceSnapshots(files, settings).restore(name)

for line in sys.stdin:
    point, name = line.split()
    child = os.fork()
    if not child:
        watch(int(point))
        print(os.getpid(), flush=True)
        act(sys.argv[1], name)
        print(touched, flush=True)
        os._exit(0)
    _, status = os.waitpid(child, 0)
    print("killed" if os.WIFSIGNALED(status) else "done", flush=True)
"""

QUERIES = ("bako", "meta nosi", "rilu meta", "duke")


@pytest.fixture
def churned(playground: Playground) -> Playground:
    """A workspace with a past."""
    playground.plant(FILES)
    playground.index()
    for number in range(0, FILES, 3):
        playground.write(f"part{number % 7}/file{number}.txt", playground.prose(1000 + number, 40))
    playground.index()
    return playground


def test_searches_go_on_while_compacting(churned: Playground) -> None:
    compact_fully(churned)
    with searching(churned, [hits(churned)]):
        for _ in range(3):
            compact_fully(churned)


def test_searches_go_on_while_restoring(churned: Playground) -> None:
    with searching(churned, make_two_states(churned)):
        for name in ("first", "second", "first"):
            with opened_snapshots(churned) as snapshots:
                snapshots.restore(name)


def test_compacting_that_is_killed(churned: Playground) -> None:
    compact_fully(churned)
    expected, right = hits(churned), churned.answers()
    with Victim(churned, "compact") as victim:
        for _ in victim.deaths():
            assert hits(churned) == expected
            churned.assert_sound()
            assert churned.answers() == right
    compact_fully(churned)
    assert churned.answers() == right
    assert not list(churned.workspace.glob("*.fresh"))


def test_restoring_that_is_killed(churned: Playground) -> None:
    states = make_two_states(churned)
    wanted, outcomes = 0, set()
    with Victim(churned, "restore") as victim:
        victim.name = "first"
        for _ in victim.deaths():
            found = hits(churned)
            assert found in states
            outcomes.add(states.index(found) == wanted)
            churned.assert_sound()
            with opened_snapshots(churned) as snapshots:
                assert all(snapshots.verify(each.name) == () for each in snapshots.list())
            wanted = 1 - states.index(found)
            victim.name = ("first", "second")[wanted]
    assert outcomes == {False, True}, "some were killed before the store was replaced, some after it"
    with opened_snapshots(churned) as snapshots:
        snapshots.restore("first")
    assert hits(churned) == states[0]
    assert not (churned.workspace / "snapshots" / ".restoring").exists()


def test_copying_that_is_killed(churned: Playground) -> None:
    folder = churned.workspace / "snapshots"
    with Victim(churned, "create") as victim:
        for _ in victim.deaths():
            with opened_snapshots(churned) as snapshots:
                assert all(snapshots.verify(each.name) == () for each in snapshots.list())
                snapshots.create(keep=3)
            files = sorted(path.name for path in folder.iterdir())
            copies = [name for name in files if name.endswith(".sqlite")]
            assert files == sorted([*copies, *(f"{name}.json" for name in copies)]), "nothing else is left"
            assert 0 < len(copies) <= 3
    churned.assert_sound()


class Victim:
    """A process that starts others to be killed."""

    def __init__(self, playground: Playground, what: str) -> None:
        self.name = "-"
        self._process = BoundedProcess(
            [sys.executable, "-c", VICTIM, what],
            cwd=playground.root,
            env=playground.environ,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.communicate()

    def deaths(self) -> Iterator[None]:
        """Kill at many points of a run, and after each of them let the caller look."""
        self._send(0)
        touched = int(self._read())
        assert self._read() == "done"
        assert touched > POINTS
        yield
        for number in range(POINTS):
            self._send(1 + number * (touched - 1) // (POINTS - 1))
            # The last ones may come too late: a run that finds less litter touches less.
            assert self._read() == "killed" or number > POINTS - 3
            yield
        chance = random.Random(7)
        for _ in range(MOMENTS):
            child = self._send(0)
            time.sleep(chance.uniform(0, 0.4))
            with suppress(ProcessLookupError):  # it may be done already
                os.kill(child, signal.SIGKILL)
            while self._read() not in ("killed", "done"):
                pass
            yield

    def _send(self, point: int) -> int:
        assert self._process.stdin is not None
        self._process.stdin.write(f"{point} {self.name}\n")
        self._process.stdin.flush()
        return int(self._read())

    def _read(self) -> str:
        assert self._process.stdout is not None
        return self._process.stdout.readline().strip()


def make_two_states(playground: Playground) -> list[Hits]:
    """Two snapshots, and what each of them answers; the second is the present state."""
    states = []
    for name in ("first", "second"):
        if name == "second":
            playground.write("part1/extra.md", "# Extra\n\nbako rilu meta nosi duke\n")
            playground.index()
        with opened_snapshots(playground) as snapshots:
            snapshots.create(name)
            snapshots.restore(name, safety=False)
        states.append(hits(playground))
    assert states[0] != states[1]
    return states


def hits(playground: Playground) -> Hits:
    with playground.open() as engine:
        return {
            query: sorted([hit.id, hit.score] for hit in engine.search(query, limit=1000, refresh=False))
            for query in QUERIES
        }


def compact_fully(playground: Playground) -> None:
    with playground.open() as engine:
        files, settings = engine.writer.files, engine.writer.settings
        report = compact(files, WorkspaceVectors(files, settings), settings, full=True)
    assert {"keyword leg", "truth store"} <= set(report.rewritten)


@contextmanager
def opened_snapshots(playground: Playground) -> Iterator[WorkspaceSnapshots]:
    with playground.open() as engine:
        yield WorkspaceSnapshots(engine.writer.files, engine.writer.settings)


@contextmanager
def searching(playground: Playground, right: list[Hits]) -> Iterator[None]:
    """Another process searches meanwhile, and all its answers are right."""
    searcher = playground.start_code(SEARCHER, json.dumps(right))
    assert searcher.stdout is not None
    assert searcher.stderr is not None
    with searcher:
        try:
            assert searcher.stdout.readline() == "asked\n"
            yield
            # However slow it is, it asks on before it is stopped.
            told = [searcher.stdout.readline() for _ in range(3)]
        finally:
            searcher.kill()
        told += searcher.stdout.readlines()
        assert searcher.stderr.read() == ""
    assert "WRONG" not in "".join(told), told
