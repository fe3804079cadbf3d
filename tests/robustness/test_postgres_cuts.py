"""A connection to PostgreSQL that is cut at any byte of a write: all of it lands or nothing, and people learn it.

A proxy on the way to the server counts bytes and cuts. It is real TCP on both sides.
"""

from __future__ import annotations

import json
import random
import select
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

import psycopg
import pytest

from findling.stores.postgres.truth.store import PostgresStore
from tests.counts import tries
from tests.postgres_servers import PostgresServer

if TYPE_CHECKING:
    from tests.robustness.conftest import Playground

pytestmark = pytest.mark.slow

CUTS = tries(60, short=3)
PASSWORD = "s3cret-of-a-cut"
ITEMS = 40


class CuttingProxy:
    """A way to a server that is cut when `left` bytes have passed to it; `is_open` lets new connections in after."""

    def __init__(self, port: int) -> None:
        self._to = port
        self._door = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._door.getsockname()[1])
        self._ends: list[socket.socket] = []
        self._guard = threading.Lock()
        self.passed, self.left, self.is_open, self.was_cut = 0, -1, True, False
        threading.Thread(target=self._accept, daemon=True).start()

    def begin(self, left: int = -1) -> None:
        """Let everything pass again, but for a cut after so many bytes; never with a negative number."""
        with self._guard:
            self.passed, self.left, self.is_open, self.was_cut = 0, left, True, False

    def close(self) -> None:
        self._door.close()
        self._cut()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._door.accept()
                if not self.is_open:
                    client.close()
                    continue
                server = socket.create_connection(("127.0.0.1", self._to))
                with self._guard:
                    self._ends += [client, server]
                threading.Thread(target=self._pass, args=(client, server), daemon=True).start()

    def _pass(self, client: socket.socket, server: socket.socket) -> None:
        with suppress(OSError, ValueError):
            while True:
                for end in select.select([client, server], [], [])[0]:
                    data = end.recv(1 << 16)
                    if not data:
                        raise OSError
                    if end is server:
                        client.sendall(data)
                        continue
                    with self._guard:
                        rest = len(data) if self.left < 0 else max(self.left - self.passed, 0)
                        self.passed += len(data)
                    server.sendall(data[:rest])
                    if rest < len(data):
                        self._cut()
        for end in (client, server):
            end.close()

    def _cut(self) -> None:
        with self._guard:
            ends, self._ends = self._ends, []
            self.left, self.was_cut = -1, True
        for end in ends:
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)


@contextmanager
def proxied(server: PostgresServer) -> Iterator[tuple[CuttingProxy, str]]:
    """A proxy, and the URL of the database through it, of a role with a password of its own."""
    with psycopg.connect(server.dsn, autocommit=True) as connection:
        if connection.execute("SELECT FROM pg_roles WHERE rolname = 'cut'").fetchone() is None:
            connection.execute(f"CREATE ROLE cut SUPERUSER LOGIN PASSWORD '{PASSWORD}'")
    proxy = CuttingProxy(server.port)
    try:
        yield proxy, f"postgresql://cut:{PASSWORD}@127.0.0.1:{proxy.port}/postgres"
    finally:
        proxy.close()


def test_a_write_that_is_cut_lands_as_a_whole_or_not_at_all(playground: Playground, postgres: PostgresServer) -> None:
    chance = random.Random("local")
    with proxied(postgres) as (proxy, url):
        playground.settings = {"FINDLING_STORE_URL": f"{url}#cut"}
        straight = f"{postgres.dsn}#cut"
        assert playground.call("index", str(playground.root)).code == 0
        assert playground.call("add", items(playground, 0)).code == 0
        proxy.begin()
        assert playground.call("add", items(playground, 1)).code == 0
        whole, landed, refused = proxy.passed, 2 * ITEMS, 0
        for turn in range(2, CUTS + 2):
            file = items(playground, turn)
            proxy.begin(chance.randrange(whole))
            done = playground.call("add", file)
            assert proxy.was_cut or done.code == 0
            kept = of_turn(straight, turn)
            if done.code == 0:
                assert kept == ITEMS
            else:
                refused += 1
                assert done.code == 2, done.err
                assert kept in (0, ITEMS)
                assert kept == 0 or "all of it has landed, or nothing" in done.err or "not searchable" in done.err
                assert "again" in done.err
            assert "Traceback" not in done.err
            assert PASSWORD not in done.out + done.err
            again = playground.call("add", file)  # the next command works, and does nothing twice
            assert again.code in (0, 1), again.err
            landed += ITEMS
            with PostgresStore.open(straight, readonly=True) as store:
                assert store.integrity() == []
                assert len(list(store.rids())) == landed
            assert found(playground) == landed
        assert refused > 0


def test_a_command_that_is_cut_between_its_batches_says_what_was_kept(
    playground: Playground, postgres: PostgresServer
) -> None:
    with proxied(postgres) as (proxy, url):
        file = playground.folder / "many.jsonl"
        lines = [{"type": "decision", "id": f"n{n}", "title": f"N{n}", "rationale": "quay"} for n in range(1500)]
        file.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
        for name, share in (("batches", -1), ("batches2", 6)):
            playground.settings = {"FINDLING_STORE_URL": f"{url}#{name}"}
            whole = proxy.passed
            proxy.begin()
            assert playground.call("index", str(playground.root)).code == 0
            proxy.begin(whole * share // 10)  # the second command is cut in its second batch or its third
            done = playground.call("add", str(file))
            assert share > 0 or done.code == 0, done.err
        with PostgresStore.open(f"{postgres.dsn}#batches2", readonly=True) as store:
            kept = sum(rid.startswith("decision:n") for rid in store.rids())
        assert (done.code, kept) in ((2, 500), (2, 1000)), done.err
        assert "was kept" not in done.err or "what the command had written before" in done.err


def test_a_server_that_stays_away_is_named_with_the_next_step(playground: Playground, postgres: PostgresServer) -> None:
    with proxied(postgres) as (proxy, url):
        playground.settings = {"FINDLING_STORE_URL": f"{url}#away"}
        assert playground.call("index", str(playground.root)).code == 0
        assert playground.call("add", items(playground, 0)).code == 0
        proxy.is_open = False
        proxy._cut()
        for words in (["add", items(playground, 1)], ["search", "harbour"], ["status"], ["refine"]):
            done = playground.call(*words)
            assert done.code == 2, words
            assert "try again" in done.err
            assert f"{proxy.port}/postgres#away does not answer" in done.err
            assert PASSWORD not in done.out + done.err
            assert "Traceback" not in done.err
        proxy.begin()
        assert playground.call("add", items(playground, 1)).code == 0
        assert found(playground) == 2 * ITEMS


def items(playground: Playground, turn: int) -> str:
    """A file with items of one turn, as one array: all of them, or none."""
    file = playground.folder / f"items{turn}.json"
    made = [
        {
            "type": "decision",
            "id": f"t{turn}n{number}",
            "title": f"Note {number}",
            "rationale": f"harbour turn{turn} " * 30,
        }
        for number in range(ITEMS)
    ]
    file.write_text(json.dumps(made))
    return str(file)


def of_turn(place: str, turn: int) -> int:
    with PostgresStore.open(place, readonly=True) as store:
        return sum(rid.startswith(f"decision:t{turn}n") for rid in store.rids())


def found(playground: Playground) -> int:
    done = playground.call("search", "--json", "-k", "0", "harbour")
    assert done.code == 0, done.err
    return int(json.loads(done.out)["total"])
