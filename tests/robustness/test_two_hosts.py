"""Two hosts write and search one workspace in PostgreSQL at once: no errors, nothing twice, nothing lost."""

from __future__ import annotations

import json
import os
import signal
import socket
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from subprocess import PIPE

import pytest

from findling.domain.errors import CorruptError
from findling.domain.ports import TruthStore
from findling.service.engine.engine import open_engine
from findling.service.settings.settings import load_settings
from findling.service.workspace.store_url import connect_workspace
from findling.service.workspace.workspace import backend_at
from tests.counts import IS_LONG, tries
from tests.poolers import pooled, why_no_pooler
from tests.postgres_servers import PostgresServer
from tests.processes import PATIENCE_S, BoundedProcess

SECONDS = 120.0 if IS_LONG else 0.6

_HOST = """
import json, sys, time
from findling.domain.resources import Resource
from findling.service.engine.engine import open_engine
from findling.service.settings.settings import load_settings

name, place, seconds = sys.argv[1], sys.argv[2], float(sys.argv[3])
settings = load_settings(None).override({"store.url": place, "semantic.model": "none"}, "test")
added, missed, late = 0, 0, 0
with open_engine(".", settings=settings) as engine:
    print("ready", flush=True)
    sys.stdin.readline()
    end = time.monotonic() + seconds
    while not added or time.monotonic() < end:
        word = f"{name}word{added}"
        resource = Resource(rid=f"note:{name}{added}", type="note", title=f"Note {added} of {name}")
        engine.add([(resource, f"The {word} of the harbour, beside the common quay.")])
        added += 1
        answer = engine.search(word, mode="keyword")
        late += bool(answer.degraded)
        # Another host may be writing: then the answer says so.
        if resource.rid not in [hit.rid for hit in answer.hits] and not answer.degraded:
            missed += 1
        engine.search("common quay")
        if added % 5 == 0:
            engine.memories.remember(f"{name} saw {word}")
print(json.dumps({"added": added, "missed": missed, "late": late}), flush=True)
"""


_LONG_RUN = """
import sys, threading
from findling.domain.resources import Resource
from findling.service.engine.engine import open_engine
from findling.service.settings.settings import load_settings

settings = load_settings(None).override({"store.url": sys.argv[1], "semantic.model": "none"}, "test")
is_over, count = threading.Event(), 0
threading.Thread(target=lambda: (sys.stdin.readline(), is_over.set()), daemon=True).start()


def note(number):
    text = f"Note{number} of Marie Curie in Warsaw, beside the common quay."
    return Resource(rid=f"note:{number:05}", type="note", title=f"Note {number}"), text


with open_engine(".", settings=settings) as engine:
    engine.add([note(number) for number in range(300)])
    with engine.writer.files.writing():
        print("writing", flush=True)
        while not is_over.wait(0.005):
            # A new note, another that changes, and one that goes: numbers of changes rise all the time.
            count += 1
            resource, text = note(count % 300)
            engine.add([note(300 + count), (resource, f"{text} Changed {count} times.")])
            engine.forget([f"note:{299 + count:05}"] if count % 2 else [])
print(count, flush=True)
"""


_INDEX_RUN = """
import sys
from findling.pipelines.indexing.fanout import Legs
from findling.service.engine.engine import open_engine
from findling.service.settings.settings import load_settings
from findling.stores.postgres.truth import store

values = {"store.url": sys.argv[1], "semantic.model": "none", "index.batch_bytes": 2000, "index.workers": 1}
owner, name = (store, "put_documents") if sys.argv[2] == "within a batch" else (Legs, "write")
usual, turns = getattr(owner, name), []


def pausing(*args):
    done = usual(*args)
    turns.append(done)
    if len(turns) == 2:
        print("paused", flush=True)
        sys.stdin.readline()
    return done


setattr(owner, name, pausing)
with open_engine(".", settings=load_settings(None).override(values, "test")) as engine:
    report = engine.index()
    assert all(check.ok for check in engine.check() if check.name != "disk space"), list(engine.check())
    print(report.added, engine.search("quay", mode="keyword", limit=0).total, flush=True)
"""


@pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")
@pytest.mark.parametrize("moment", ["between batches", "within a batch"])
@pytest.mark.parametrize("way", ["straight", "pooled"])
def test_a_note_gets_between_the_batches_of_another_host_and_past_one_that_sleeps(
    moment: str, way: str, postgres: PostgresServer, tmp_path: Path
) -> None:
    root, is_asleep = tmp_path / "tree", moment == "within a batch"
    root.mkdir()
    for number in range(12):
        (root / f"{number}.md").write_text(f"The quay number {number}. " + f"Some words {number}. " * 50)
    with ExitStack() as stack:
        place = postgres.place("hosts")
        if way == "pooled":
            if why_no_pooler():
                pytest.skip(why_no_pooler())
            pooler = stack.enter_context(pooled(postgres, connections=8))
            place = f"{pooler}?pooler=transaction#{place.partition('#')[2]}"
        own = {"FINDLING_HOME": str(tmp_path / "a"), "FINDLING_CONFIG": str(tmp_path / "none.toml")}
        command = [sys.executable, "-c", _INDEX_RUN, place, moment]
        indexing = BoundedProcess(command, stdin=PIPE, stdout=PIPE, stderr=PIPE, cwd=root, env={**os.environ, **own})
        stack.callback(indexing.kill)
        assert indexing.stdout is not None
        assert indexing.stdout.readline() == "paused\n", indexing.communicate()
        if is_asleep:
            indexing.send_signal(signal.SIGSTOP)
        settings = load_settings(None, environ={"FINDLING_HOME": str(tmp_path / "b")})
        settings = settings.override({"semantic.model": "none"}, "test")
        name = connect_workspace(place, home=tmp_path / "b")
        told: list[str] = []
        with open_engine(".", workspace=name, settings=settings) as engine:
            engine.queue.tell = told.append
            # A wait for the end of the run, or for the host to wake, would be one for ever.
            with ThreadPoolExecutor(1) as pool:
                pool.submit(engine.memories.remember, "The ferry leaves the quay at nine.").result(PATIENCE_S)
            if is_asleep:
                assert told and socket.gethostname()[:25] in told[0] and f"({indexing.pid}), for " in told[0], told
                indexing.send_signal(signal.SIGCONT)
            out, err = indexing.communicate("go on\n")
            assert (out, indexing.returncode) == ("12 13\n", 0), err
            assert engine.search("quay", mode="keyword", limit=0).total == 13
            assert engine.opened.files.store.integrity() == []


def test_a_host_brings_up_its_legs_while_another_writes_on(postgres: PostgresServer, tmp_path: Path) -> None:
    place, home = postgres.place("hosts"), tmp_path / "b"
    own = {"FINDLING_HOME": str(tmp_path / "a"), "FINDLING_CONFIG": str(tmp_path / "none.toml")}
    command = [sys.executable, "-c", _LONG_RUN, place]
    settings = load_settings(None, environ={"FINDLING_HOME": str(home)}).override({"semantic.model": "none"}, "test")
    with BoundedProcess(command, stdin=PIPE, stdout=PIPE, env={**os.environ, **own}) as writer:
        assert writer.stdout is not None
        assert writer.stdout.readline() == "writing\n"
        name = connect_workspace(place, home=home)
        with open_engine(".", workspace=name, settings=settings) as engine:
            files = engine.opened.files
            for _ in range(tries(20, short=5)):
                written = _next_change(files.store)
                answer = engine.search("common quay", mode="keyword", limit=0)
                assert not answer.degraded
                assert answer.total >= 300
                assert files.leg.seq() >= written, "each search sees what was written before it"
                assert not engine.search("common quay", mode="hybrid").degraded
            assert engine.related("Marie Curie").names
            assert not backend_at(home / name).lock().acquire(0.0), "the other host has the write lock all the time"
            assert writer.communicate("end\n")[0] != "0\n"
            assert engine.search("common quay", mode="keyword", limit=0).total == files.store.counts()["resources"]
            engine.opened.level_all()
            assert files.leg.cids() == files.store.chunk_ids()
            for leg, found in engine.opened.vectors.legs():
                assert not isinstance(found, CorruptError), leg
                assert found.table.cids() == files.store.chunk_ids()
            assert all(check.ok for check in engine.check())


def test_two_hosts_write_and_search_at_once(postgres: PostgresServer, tmp_path: Path) -> None:
    place = postgres.place("hosts")
    hosts = {name: _started(name, place, tmp_path / name) for name in "ab"}
    try:
        for host in hosts.values():
            assert host.stdout is not None
            assert host.stdout.readline() == "ready\n"
        for host in hosts.values():
            assert host.stdin is not None
            host.stdin.write("go\n")
            host.stdin.flush()
        told = {name: host.communicate(timeout=SECONDS + 300) for name, host in hosts.items()}
    finally:
        for host in hosts.values():
            host.kill()
            host.communicate()
    reports = {}
    for name, (out, err) in told.items():
        assert hosts[name].returncode == 0, err[-3000:]
        reports[name] = json.loads(out.splitlines()[-1])
        assert reports[name]["added"] > 0
        assert reports[name]["missed"] == 0
    home = tmp_path / "c"
    settings = load_settings(None, environ={"FINDLING_HOME": str(home)}).override({"semantic.model": "none"}, "test")
    name = connect_workspace(place, home=home)
    with open_engine(".", workspace=name, settings=settings) as engine:
        rids = [one.rid for one in engine.ls()]
        notes = [rid for rid in rids if rid.startswith("note:")]
        wanted = [f"note:{name}{number}" for name, report in reports.items() for number in range(report["added"])]
        assert sorted(notes) == sorted(wanted)
        remembered = sum(report["added"] // 5 for report in reports.values())
        assert len(rids) - len(notes) == remembered
        # Matches of several words are counted up to 1,000.
        assert engine.search("quay", mode="keyword", limit=0).total == len(notes)
        for written_by, report in reports.items():
            for number in (0, report["added"] // 2, report["added"] - 1):
                found = engine.search(f"{written_by}word{number}", mode="keyword").hits
                assert [hit.rid for hit in found].count(f"note:{written_by}{number}") == 1
        assert all(check.ok for check in engine.check())


def _next_change(store: TruthStore) -> int:
    """The number of a change that the other host makes after this call."""
    before, end = store.seq(), time.monotonic() + PATIENCE_S
    while store.seq() == before:
        assert time.monotonic() < end, "the other host has stopped writing"
        time.sleep(0.005)
    return store.seq()


def _started(name: str, place: str, home: Path) -> BoundedProcess:
    own = {"FINDLING_HOME": str(home), "FINDLING_CONFIG": str(home / "none.toml"), "FINDLING_SEMANTIC_REFINE": "never"}
    command = [sys.executable, "-c", _HOST, name, place, str(SECONDS)]
    return BoundedProcess(command, stdin=PIPE, stdout=PIPE, stderr=PIPE, env={**os.environ, **own})
