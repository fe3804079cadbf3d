"""The contract of a backend as tests: subclass `BackendSuite`, say where a new place and a new folder are.

    class TestMyBackend(BackendSuite):
        @pytest.fixture(autouse=True)
        def _tmp(self, tmp_path: Path) -> None:
            self.tmp = tmp_path

        def make_place(self) -> str:
            return "mine://..."  # a place that nothing was written to

        def make_folder(self) -> Path:
            return Path(tempfile.mkdtemp(dir=self.tmp))

It checks the place itself, two processes that write at once, and two worlds that must look alike to a caller.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path

import pytest

from findling.domain.backends import KEYWORD, VECTORS, VIEWS, Backend
from findling.domain.errors import LockedError, NotIndexedError
from findling.domain.ports import TruthStore
from findling.domain.queries import Filters, Term
from findling.domain.resources import Resource
from findling.domain.sight import Audiences, Population, Rights, Sight
from findling.pipelines.indexing.fanout import catch_up
from findling.service.engine.engine import Engine, open_engine
from findling.service.settings.settings import load_settings
from findling.service.workspace.backends import open_backend
from findling.service.workspace.workspaces import create_workspace
from findling.testing.samples import PLAIN, LegModel, held_by, line_document, stored_document

__all__ = ["BackendSuite", "ConcurrentWritersSuite", "PlaceSuite", "TwinWorldsSuite"]

_PATIENCE_S = 120.0
"""The patience with another process; only a hanging one takes that long."""


class _Places(ABC):
    @abstractmethod
    def make_place(self) -> str:
        """The URL of a new, empty place."""

    @abstractmethod
    def make_folder(self) -> Path:
        """A new, empty folder of this host."""

    def open_new(self) -> Backend:
        """The backend of a new place."""
        return open_backend(self.make_place(), self.make_folder())


class PlaceSuite(_Places):
    """The promises of `Backend` about one place."""

    def test_a_new_place_is_empty(self) -> None:
        backend = self.open_new()
        assert not backend.exists()
        assert backend.identity() is None
        with pytest.raises(NotIndexedError):
            backend.open_store()

    def test_a_store_is_created_once_and_keeps_its_identity(self) -> None:
        place, folder = self.make_place(), self.make_folder()
        backend = open_backend(place, folder)
        with _writing(backend) as store:
            store.write([PLAIN])
        identity = backend.identity()
        assert identity is not None
        assert (backend.exists(), identity.seq, bool(identity.store_id)) == (True, 1, True)
        again = open_backend(place, folder)
        assert again.identity() == identity
        with _writing(again) as store:
            assert store.document(PLAIN.resource.rid) == PLAIN
            store.write([], [PLAIN.resource.rid])
        assert again.identity() == identity._replace(seq=2)
        with closing(backend.open_store(readonly=True)) as store:
            assert (store.seq(), store.integrity()) == (2, [])

    def test_two_places_have_two_stores(self) -> None:
        first, second = self.open_new(), self.open_new()
        with _writing(first) as store, _writing(second):
            store.write([PLAIN])
        (one, seq), (other, unwritten) = first.identity() or ("", -1), second.identity() or ("", -1)
        assert (seq, unwritten) == (1, 0)
        assert one != other

    def test_a_lock_excludes_others_until_it_is_released(self) -> None:
        place, folder = self.make_place(), self.make_folder()
        backend, other = open_backend(place, folder), open_backend(place, folder)
        held = backend.lock()
        assert held.acquire(0.0)
        assert not other.lock().acquire(0.0)
        refine = other.lock("refine")
        assert refine.acquire(0.0)
        refine.release()
        held.release()
        held.release()
        again = other.lock()
        assert again.acquire(0.0)
        again.release()

    def test_the_version_changes_with_the_content(self) -> None:
        backend = self.open_new()
        with _writing(backend) as store:
            before = backend.version()
            assert backend.version() == before
            store.write([PLAIN])
            assert backend.version() != before

    def test_a_keyword_leg_is_kept_and_belongs_to_its_store(self) -> None:
        backend = self.open_new()
        with _writing(backend) as store:
            store.write([line_document("a", ["hello world"])])
            store_id = store.get_meta("store_id") or ""
            with closing(backend.legs[KEYWORD].open(store_id, "chunk")) as leg:
                catch_up(store, leg)
                assert backend.legs[KEYWORD].exists("chunk")
            with closing(backend.legs[KEYWORD].open(store_id, "chunk")) as leg:
                assert (leg.seq(), leg.cids()) == (1, store.chunk_ids())
                assert backend.legs[KEYWORD].state(store_id, "chunk")["seq"] == 1
                assert backend.legs[KEYWORD].state("another", "chunk") == backend.legs[KEYWORD].state(store_id, "page")
                assert leg.search(Term("hello"), Filters(), 5).total == 1
            with closing(backend.legs[KEYWORD].open("another", "chunk")) as leg:
                assert (leg.seq(), leg.size()) == (0, 0)
            backend.legs[KEYWORD].discard("chunk")
            with closing(backend.legs[KEYWORD].open(store_id, "chunk")) as leg:
                assert (leg.seq(), leg.size()) == (0, 0)
            backend.settle(store)
        assert [legs.damage() for legs in backend.legs.values() if legs.damage()] == []

    def test_the_leg_of_a_caller_holds_just_what_is_in_sight(self) -> None:
        backend = self.open_new()
        with _writing(backend) as store:
            store.write(
                [line_document(rid, ["same words"], visibility=(f"user:{rid}", "user:ann")) for rid in ("bob", "eve")]
            )
            population = Population.of(Audiences(store.relations()), store.rights())
            legs = backend.legs[VIEWS].open(store.get_meta("store_id") or "", "chunk")
            for who, seen in (("user:bob", {"bob"}), ("user:ann", {"bob", "eve"}), ("user:joe", set())):
                sight = Sight(Rights([who], store.relations(), unset_is_public=False), population)
                found = legs.for_sight(sight, store).search(Term("words"), Filters(), 9).hits
                assert {one.resource.rid for one in store.chunks([cid for cid, _ in found]).values()} == seen
            store.write([], ["bob"])
            legs.drop_stale(store)
            assert legs.drop_stale(store) == []
            legs.close()
            backend.legs[VIEWS].discard()

    def test_vectors_are_kept_and_belong_to_their_store_and_model(self) -> None:
        import numpy as np

        backend, rows = self.open_new(), np.eye(4, dtype=np.float32)
        with _writing(backend):
            with closing(backend.legs[VECTORS].open("s", "m", 4)) as table:
                table.add([1, 2, 3, 4], [1] * 4, rows)
                table.commit(seq=7)
            with closing(backend.legs[VECTORS].open("s", "m", 4)) as table:
                assert (table.cids(), dict(table.state)) == ({1, 2, 3, 4}, {"seq": 7})
            assert backend.legs[VECTORS].state("s", "m") == {"seq": 7}
            for store_id, model in (("other", "m"), ("s", "other")):
                assert backend.legs[VECTORS].state(store_id, model) == {}
                with closing(backend.legs[VECTORS].open(store_id, model, 4)) as table:
                    assert (len(table), dict(table.state)) == (0, {})
            backend.legs[VECTORS].discard("m")
            with closing(backend.legs[VECTORS].open("s", "m", 4)) as table:
                assert len(table) == 0


class ConcurrentWritersSuite(_Places):
    """Two real processes write one place: nothing is lost, nothing happens twice, a killed one holds nobody up."""

    def test_two_processes_write_at_once_and_nothing_is_lost(self) -> None:
        place, folder = self.make_place(), self.make_folder()
        with _other(place, folder, "write", "a") as first, _other(place, folder, "write", "b") as second:
            for writer in (first, second):
                assert _line_of(writer) == "ready"
            for writer in (first, second):
                _start(writer)
            backend, seen = open_backend(place, folder), [0]
            while first.poll() is None or second.poll() is None:
                with suppress(NotIndexedError):  # there is no store yet
                    seen.append(_look(backend))
                time.sleep(0.005)  # the writers need the processor, too
            assert (first.wait(_PATIENCE_S), second.wait(_PATIENCE_S)) == (0, 0)
        assert seen == sorted(seen), "a reader saw fewer documents than before"
        with closing(backend.open_store(readonly=True)) as store:
            assert sorted(store.rids()) == sorted(f"{name}{number}" for name in "ab" for number in range(20))
            assert store.seq() == 40
            assert sorted(change.seq for change in store.changes(0)) == list(range(1, 41))
            assert store.integrity() == []
            follower = LegModel()
            follower.catch_up(store)
            assert follower.held == held_by(store)

    def test_a_killed_writer_leaves_whole_writes_and_no_lock(self) -> None:
        place, folder = self.make_place(), self.make_folder()
        with _other(place, folder, "hold", "k") as holder:
            assert _line_of(holder) == "ready"
            backend = open_backend(place, folder)
            with pytest.raises(LockedError), _writing(backend, 0.0):
                pass
            holder.send_signal(signal.SIGKILL)
            holder.wait(_PATIENCE_S)
        with _writing(backend) as store:
            assert list(store.rids()) == ["k0"]
            store.write([PLAIN])
            assert store.seq() == 2


class TwinWorldsSuite(_Places):
    """A caller's answers equal, byte for byte, those of a place that holds only what the caller sees.

    A backend that declares `statistics: global` cannot pass, and is not to be used for callers with limited rights.
    """

    worlds = 3
    """Pairs of worlds to compare."""

    def test_hidden_resources_change_no_answer(self) -> None:
        for seed in range(self.worlds):
            chance = random.Random(seed)
            items = [_item(chance, number) for number in range(40)]
            seen = _seen(items)
            with self._world(seen) as without, self._world(items) as among:
                for query in (*_QUERIES, *_PATTERNS, *(" ".join(chance.choices(_WORDS, k=3)) for _ in range(12))):
                    assert _answers(without, query) == _answers(among, query), f"seed {seed}, query {query!r}"

    def test_what_is_hidden_or_changed_later_leaves_no_trace(self) -> None:
        chance = random.Random(11)
        items = [_item(chance, number) for number in range(24)]
        with self._world(_seen(items)) as without, self._world(items) as among:
            for _ in range(3):
                later = [(resource, " ".join(chance.choices(_WORDS, k=9))) for resource, _ in items[::3]]
                among.add(later)
                without.add(_seen(later))
                for query in _QUERIES:
                    assert _answers(without, query) == _answers(among, query), query

    @contextmanager
    def _world(self, items: Sequence[tuple[Resource, str]]) -> Iterator[Engine]:
        folder = self.make_folder()
        own = {"store.home": str(folder / "home"), "semantic.model": "off", "search.mode": "hybrid"}
        settings = load_settings(folder).override(own, "test")
        (folder / "home").mkdir()
        create_workspace("twin", home=folder / "home", place=self.make_place())
        with open_engine(".", workspace="twin", settings=settings) as engine:
            engine.add(items)
            yield engine


class BackendSuite(PlaceSuite, ConcurrentWritersSuite, TwinWorldsSuite):
    """All of the contract of a backend. Its store, leg and table pass suites of their own besides."""


_WORDS = "pool pools pooling budget salary token login harbour merger secret roadmap retry café 数据库".split()
_QUERIES = ("budget", "pool token", '"secret roadmap"', "pol", "harb*", "title:merger", "login OR retry", "數據", "zzz")
_PATTERNS = (
    "/t[ou]ken/",
    '"Secret road" case:no',
    '"secret " case:yes',
    "budget -/sal[a]ry/",
    "pool /h[a]rbour/ OR /数据库$/",
)


def _item(chance: random.Random, number: int) -> tuple[Resource, str]:
    resource = Resource(
        rid=f"note:{number:03}",
        type="note",
        title=" ".join(chance.choices(_WORDS, k=2)),
        tags=tuple(chance.sample(["a", "b", "c"], chance.randint(0, 2))),
        visibility=chance.choice([("user:ann",), ("user:ann", "user:bob"), ("user:bob",), ()]),
        updated_at=1.7e9 + number,
    )
    return resource, " ".join(chance.choices(_WORDS, k=chance.randint(1, 14)))


def _seen(items: Sequence[tuple[Resource, str]]) -> list[tuple[Resource, str]]:
    return [item for item in items if "user:ann" in (item[0].visibility or ())]


def _answers(engine: Engine, query: str) -> str:
    """All that the caller learns, without times."""
    caller = engine.as_caller("user:ann")
    answer = caller.search(query, limit=50).to_dict()
    answer.pop("timings_ms", None)
    listed = [resource.rid for resource in caller.ls()]
    return json.dumps([answer, listed, [str(one) for one in caller.suggest(query)]], default=str, ensure_ascii=False)


@contextmanager
def _writing(backend: Backend, patience_s: float = _PATIENCE_S) -> Iterator[TruthStore]:
    """The store of a place, created if need be, under its write lock."""
    lock = backend.lock()
    if not lock.acquire(patience_s):
        raise LockedError("the place is being written", hint="try again")
    try:
        backend.create_store()
        with closing(backend.open_store()) as store:
            backend.identify(store)
            yield store
            backend.settle(store)
    finally:
        lock.release()


def _look(backend: Backend) -> int:
    """Read as a search does while others write: only whole documents. Returns how many there are."""
    with closing(backend.open_store(readonly=True)) as store:
        seq, rids = store.seq(), list(store.rids())
        assert len(rids) >= seq
        for rid in rids:
            assert stored_document(store, rid).text == f"text {rid[1:]} of {rid[0]}"
        return len(rids)


@contextmanager
def _other(place: str, folder: Path, job: str, name: str) -> Iterator[subprocess.Popen[str]]:
    """Another process that does a job; it is gone in the end."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    command = [sys.executable, "-c", _JOBS, place, str(folder), job, name]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment)
    try:
        yield process
    finally:
        process.kill()
        process.wait(_PATIENCE_S)
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                pipe.close()


def _line_of(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


def _start(process: subprocess.Popen[str]) -> None:
    assert process.stdin is not None
    process.stdin.write("go\n")
    process.stdin.flush()


_JOBS = """
import sys, time
from pathlib import Path
from findling.service.workspace.backends import open_backend
from findling.testing.backend import _writing
from findling.testing.samples import line_document

place, folder, job, name = sys.argv[1:]
backend = open_backend(place, Path(folder))
if job == "write":
    print("ready", flush=True)
    sys.stdin.readline()
    for number in range(20):
        with _writing(backend) as store:
            store.write([line_document(f"{name}{number}", [f"text {number} of {name}"])])
else:
    with _writing(backend) as store:
        store.write([line_document(f"{name}0", ["written before the end"])])
        print("ready", flush=True)
        time.sleep(600)
"""
