"""Kills of a client, of one process of the server, of the whole server: nothing that was confirmed is lost.

Every turn lets a process work on one workspace in PostgreSQL, and ends one of the parties at a random moment.
"""

from __future__ import annotations

import json
import os
import random
import signal
import time
from collections.abc import Iterator
from contextlib import suppress
from subprocess import TimeoutExpired
from typing import TYPE_CHECKING

import psycopg
import pytest

from findling.domain.queries import Filters, Not, Word
from findling.stores.postgres.truth.store import PostgresStore
from tests.counts import tries
from tests.postgres_servers import PostgresServer
from tests.processes import PATIENCE_S

if TYPE_CHECKING:
    from tests.processes import BoundedProcess
    from tests.robustness.conftest import Playground

pytestmark = [pytest.mark.skipif(os.name == "nt", reason="signals of POSIX"), pytest.mark.slow]

JOBS = ("index", "refine", "add", "share", "ship")
VICTIMS = ("client", "connection", "backend", "server")
KILLS = tries(40, short=1)
"""Kills during each job: two hundred in a long run."""

FILES = 12
EVERYTHING = 1 << 20

WORKER = """
import itertools, json, os, sys
import findling
from findling.domain.errors import FindlingError
from findling.domain.resources import Resource
from findling.stores.postgres import leg_copies

os.environ["PGAPPNAME"] = "worker"  # the connections to end are those of no other process
job, first = sys.argv[1], int(sys.argv[2])
leg_copies.LEAST_CHANGES = 1  # every index run leaves copies of its legs

def say(kind, *facts):
    print(json.dumps([kind, *facts]), flush=True)

def note(number):
    text = f"common quay, turn {number}. " + " ".join(f"word{number * n % 97}" for n in range(60))
    return Resource(rid=f"note:{number}", type="note", title=f"Note {number}"), text

try:
    with findling.open(".") as engine:
        engine.add([note(0)])
        say("ready")
        for number in itertools.count(first):
            if job == "index":
                for name in range(12):
                    text = f"common quay\\n\\nversion {number} of file {name}\\n" + f"line {number}\\n" * 40
                    (engine.root / f"file{name}.md").write_text(text)
                engine.index()
                say("version", number)
            elif job == "share":
                engine.permissions.share("note:0", f"user:u{number}")
                if number % 3 == 0:
                    engine.permissions.unshare("note:0", f"user:u{number}")
                say("shared" if number % 3 else "unshared", f"user:u{number}")
            else:
                items = [note(10 * number + n) for n in range(1 if job == "ship" else 4)]
                engine.add(items)
                say("added", *((resource.rid, text) for resource, text in items))
                if job == "ship":
                    engine.search("quay")
                    engine.opened.level_wanted()
                if job == "refine":
                    engine.refine()
                    say("read", engine.status().meaning["read"])
except FindlingError as error:
    print(f"{error.message} / {error.hint}", file=sys.stderr)
    sys.exit(2)
"""


class Ledger:
    """Everything that workers have confirmed."""

    def __init__(self) -> None:
        self.texts: dict[str, str] = {}
        self.shared: set[str] = set()
        self.unshared: set[str] = set()
        self.version, self.read = 0, 0

    def note(self, line: str) -> None:
        kind, *facts = json.loads(line)
        if kind == "added":
            self.texts.update(facts)
        elif kind == "shared":
            self.shared.add(*facts)
        elif kind == "unshared":
            self.unshared.add(*facts)
        elif kind == "version":
            (self.version,) = facts
        elif kind == "read":
            (self.read,) = facts

    def compare(self, store: PostgresStore) -> None:
        """Everything confirmed is in a store, and nothing that was taken back."""
        for rid, text in self.texts.items():
            document = store.document(rid)
            assert document is not None, f"{rid} is lost"
            assert document.text == text
        viewers = {relation.subject for relation in store.relations() if relation.object == "note:0"}
        assert self.shared <= viewers
        assert not self.unshared & viewers
        assert sum(store.models().values()) >= self.read
        for name in range(FILES if self.version else 0):
            document = store.document(f"file:file{name}.md")
            assert document is not None, f"file{name}.md is lost"
            assert int(document.text.split("version ")[1].split()[0]) >= self.version


@pytest.fixture(scope="module")
def server() -> Iterator[PostgresServer]:
    """A server to kill."""
    made = PostgresServer()
    yield made
    made.close()


@pytest.mark.parametrize("job", JOBS)
def test_everything_confirmed_survives(job: str, server: PostgresServer, playground: Playground) -> None:
    place, ledger = server.place(job), Ledger()
    chance = random.Random(job)
    (playground.root / "first.md").write_text("common quay\n")
    playground.settings = {"FINDLING_STORE_URL": place}
    assert playground.call("index", str(playground.root)).code == 0
    confirmed = 0
    for turn in range(KILLS):
        victim = VICTIMS[(turn + JOBS.index(job)) % len(VICTIMS)]
        worker = playground.start_code(WORKER, job, str(1_000 * (turn + 1)))
        assert worker.stdout is not None
        assert worker.stdout.readline() == '["ready"]\n', worker.communicate()[1]
        told = [worker.stdout.readline() for _ in range((turn + 1) % 3)]
        time.sleep(chance.uniform(0, 0.5))
        kill(victim, worker, server, chance)
        try:
            out, err = worker.communicate(timeout=0.5)  # it may have noticed nothing
        except TimeoutExpired:
            worker.send_signal(signal.SIGKILL)
            out, err = worker.communicate()
        assert worker.returncode in (2, -signal.SIGKILL), err
        assert "Traceback" not in err
        assert not err or " / " in err, "an error names the next step"
        for line in (*told, *out.splitlines()):
            ledger.note(line)
            confirmed += 1
        if victim == "server":
            server.restart()
        wait_for(server)
        check(playground, place, ledger)
    assert confirmed >= KILLS * 0.9
    assert (playground.call("index").code, playground.call("refine").code) == (0, 0)
    check(playground, place, ledger)
    done = playground.call("doctor")
    assert done.code == 0, done.out + done.err


def kill(victim: str, worker: BoundedProcess, server: PostgresServer, chance: random.Random) -> None:
    """End one party: the client, a connection of it in order or by force, or all processes of the server."""
    if victim == "client":
        worker.send_signal(signal.SIGKILL)
    elif victim == "server":
        server.kill()
    else:
        with psycopg.connect(server.dsn, autocommit=True) as connection:
            found = connection.execute(
                "SELECT pid FROM pg_stat_activity WHERE application_name LIKE 'worker%' ORDER BY state, pid"
            ).fetchall()
            (pid,) = chance.choice(found)
            if victim == "connection":
                connection.execute("SELECT pg_terminate_backend(%s)", (pid,))
            else:
                os.kill(pid, signal.SIGKILL)  # the server ends all others, and recovers
                with suppress(psycopg.OperationalError):  # not before it has ended this one
                    connection.execute("SELECT pg_sleep(%s)", (PATIENCE_S,))


def wait_for(server: PostgresServer) -> None:
    """Wait until a server that recovers answers again."""
    deadline = time.monotonic() + PATIENCE_S
    while True:
        try:
            psycopg.connect(server.dsn, connect_timeout=5).close()
            return
        except psycopg.OperationalError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.02)


def check(playground: Playground, place: str, ledger: Ledger) -> None:
    """The truth is sound and complete; legs and their copies catch up with it, and hold nothing twice."""
    with PostgresStore.open(place, readonly=True) as store:
        assert store.integrity() == []
        ledger.compare(store)
        cids, rids = sorted(store.chunk_ids()), sorted(store.rids())
    fresh = playground.folder / f"fresh{len(rids)}"
    for home in ({"FINDLING_HOME": str(fresh)}, {}):
        playground.settings = {"FINDLING_STORE_URL": place, **home}
        with playground.open() as engine:
            found = engine.search("common quay", mode="keyword", limit=EVERYTHING, refresh=False)
            assert not found.degraded
            assert sorted(hit.rid for hit in found.hits) == rids
            engine.search("common quay", mode="hybrid", refresh=False)
            entries = engine._files.leg.search(Not(Word("qqqqqq")), Filters(), EVERYTHING).hits
            assert sorted(cid for cid, _ in entries) == cids
            assert [one for one in engine.check() if not one.ok and one.name != "disk space"] == []
