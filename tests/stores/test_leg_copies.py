"""Copies of legs in PostgreSQL: a fresh host has the files of another one, and believes nothing that is damaged."""

from __future__ import annotations

import json
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import psycopg
import pytest

from findling.domain.resources import Resource
from findling.service.engine.engine import Engine, open_engine
from findling.service.index import lazy_legs
from findling.service.settings.settings import load_settings
from findling.service.workspace.store_url import connect_workspace
from findling.stores.postgres import leg_copies
from findling.stores.postgres.leg_copies import copy_states
from findling.stores.postgres.truth.store import PostgresStore
from tests.counts import tries
from tests.postgres_servers import PostgresServer
from tests.processes import PATIENCE_S, BoundedProcess
from tests.stores.postgres_legs import ordinary_place

PEOPLE = ["Marie Curie", "Pierre Curie", "Hertha Ayrton", "Paul Langevin", "Albert Einstein"]
QUESTIONS = ("who met Marie Curie", "Langevin in Brussels", "/Curie.*Warsaw/", '"met Albert"', "wor*")

Opened = Callable[[str], Engine]


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Few changes are worth a copy, and a copy has many parts."""
    monkeypatch.setattr(lazy_legs, "LEAST_CHARACTERS", 100)
    monkeypatch.setattr(leg_copies, "LEAST_CHANGES", 10)
    monkeypatch.setattr(leg_copies, "_PART_BYTES", 2000)


@pytest.fixture
def place(postgres: PostgresServer) -> str:
    return ordinary_place(postgres)


@pytest.fixture
def host(place: str, tmp_path: Path) -> Opened:
    """A function that opens the workspace as the host of a name has it."""
    return lambda name: opened(name, place, tmp_path)


def opened(name: str, place: str, folder: Path) -> Engine:
    home = folder / name
    own = {"store.home": str(home), "semantic.model": "none", "search.mode": "hybrid", "search.graph": "on"}
    settings = load_settings(folder).override(own, "test")
    return open_engine(".", workspace=connect_workspace(place, home=home, creates=True), settings=settings)


def notes(first: int, last: int) -> list[tuple[Resource, str]]:
    chance = random.Random(first)
    return [
        (
            Resource(rid=f"note:{number:03}", type="note", title=chance.choice(PEOPLE), updated_at=1.7e9 + number),
            f"{chance.choice(PEOPLE)} met {chance.choice(PEOPLE)} in Warsaw or Brussels; work went on, day {number}.",
        )
        for number in range(first, last)
    ]


def filled(engine: Engine, last: int = 60) -> list[str]:
    """The answers of a host that has added notes and made all of its legs, which it has offered to others."""
    engine.add(notes(0, last))
    engine.opened.level_all()
    with engine.opened.files.writing():
        engine.opened.lazy("graph").level()
        engine.opened.lazy("exact").level()
    engine.opened.files.store.set_meta("graph", "wanted")
    engine.opened.files.store.set_meta("exact", "wanted")
    engine.opened.level_wanted()
    return answers(engine)


def offered(engine: Engine) -> list[str]:
    """The answers of a host that has left copies of its legs: while it writes, it leaves them to a later search."""
    deadline = time.monotonic() + PATIENCE_S
    while True:
        told, store = answers(engine), engine.opened.files.store
        assert isinstance(store, PostgresStore)
        copies = {one.leg: one for one in copy_states(store.connections)}
        if any(name.startswith("keyword") and one.seq == store.seq() for name, one in copies.items()):
            return told
        assert time.monotonic() < deadline, copies


def answers(engine: Engine) -> list[str]:
    """The answers from all legs; a host brings none up while another one writes."""
    told = []
    for question in QUESTIONS:
        deadline = time.monotonic() + PATIENCE_S
        while True:
            engine.opened.level_all()
            engine.opened.level_wanted()
            answer = engine.search(question, limit=30)
            if not answer.degraded:
                break
            assert time.monotonic() < deadline, answer.degraded
            time.sleep(0.05)
        facts = answer.to_dict()
        facts.pop("timings_ms", None)
        told.append(json.dumps(facts, default=str))
    return told


def files_of(engine: Engine, *legs: str) -> set[str]:
    """The names of files that an index of tantivy gives by chance: two hosts that make them have others."""
    folder = engine.opened.files.folder
    return {file.name for leg in legs for file in (folder / leg).glob("*.idx")}


def states(place: str) -> dict[str, tuple[int, bool]]:
    with PostgresStore.open(place) as store:
        return {one.leg.split("-")[0]: (one.seq, one.is_sound) for one in copy_states(store.connections)}


def test_a_fresh_host_has_the_files_of_another_and_its_answers(host: Opened, place: str) -> None:
    with host("a") as first, host("b") as second:
        expected = filled(first)
        assert states(place) == dict.fromkeys(("exact", "graph", "keyword", "vectors"), (60, True))
        assert answers(second) == expected
        assert files_of(second, "keyword", "exact") == files_of(first, "keyword", "exact") != set()
        assert [check for check in second.check() if not check.ok] == []


def test_a_fetched_leg_catches_up_and_is_shipped_again_when_that_is_worth_it(host: Opened, place: str) -> None:
    with host("a") as first, host("b") as second, host("c") as third:
        filled(first)
        first.add(notes(60, 65))
        expected = answers(first)
        assert states(place)["keyword"] == (60, True), "five changes are worth no copy"
        assert answers(second) == expected
        assert files_of(first, "keyword") & files_of(second, "keyword")
        second.add(notes(65, 80))
        expected = answers(second)
        assert states(place)["keyword"] == (80, True)
        assert answers(third) == expected == answers(first)
        assert files_of(second, "keyword") == files_of(third, "keyword")


KEPT = """
SELECT count(*), (SELECT sum(cardinality(parts)) FROM findling.leg_copies c WHERE c.ws = %s)
FROM findling.leg_parts p WHERE p.ws = %s
"""


def test_old_parts_go_with_the_copies_that_had_them(host: Opened, place: str) -> None:
    with host("a") as first:
        filled(first)
        for turn in range(6):
            first.add([(resource, f"{text} Again, {turn}.") for resource, text in notes(0, 60)])
            answers(first)
        with PostgresStore.open(place) as store:
            ws = store.connections.ws
            ((parts, listed),) = store.connections.rows(KEPT, (ws, ws))
            assert 0 < parts <= listed
            assert states(place)["keyword"][0] == store.seq()


DAMAGES = (
    "UPDATE findling.leg_parts SET data = set_byte(data, length(data) / 2, 255 - get_byte(data, length(data) / 2))",
    "UPDATE findling.leg_parts SET data = ''",
    "DELETE FROM findling.leg_parts",
    "UPDATE findling.leg_copies SET seq = seq - 3",
    "UPDATE findling.leg_copies SET files = replace(files, 'meta.json', '../meta.json')",
    "UPDATE findling.leg_copies SET parts = parts[2:]",
    "UPDATE findling.leg_copies SET sum = ''",
)


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_copy_is_passed_over_and_said(
    damage: str, host: Opened, place: str, postgres: PostgresServer, caplog: pytest.LogCaptureFixture
) -> None:
    with host("a") as first, host("b") as second, host("c") as third:
        expected = filled(first)
        with psycopg.connect(postgres.dsn, dbname="legs", autocommit=True) as connection:
            (ws,) = connection.execute(
                "SELECT ws FROM findling.workspaces WHERE name = %s", (place.partition("#")[2],)
            ).fetchone() or (0,)
            connection.execute(f"{damage} WHERE ws = {ws}".encode())
        wrong = [check for check in first.check() if not check.ok]
        assert ["copy" in check.detail for check in wrong] == [True] * ("leg_parts" in damage)
        assert answers(second) == expected
        assert not files_of(first, "keyword", "exact") & files_of(second, "keyword", "exact")
        assert "is passed over" in caplog.text
        first.add(notes(60, 80))
        expected = offered(first)
        assert all(is_sound for _, is_sound in states(place).values())
        assert answers(third) == expected
        assert files_of(first, "keyword") == files_of(third, "keyword"), "the next copy is good again"


def test_a_damaged_copy_is_replaced_by_a_repair_and_not_only_after_500_changes(
    host: Opened, place: str, postgres: PostgresServer
) -> None:
    with host("a") as first, host("b") as second:
        expected = filled(first)
        with psycopg.connect(postgres.dsn, dbname="legs", autocommit=True) as connection:
            connection.execute("UPDATE findling.leg_parts SET data = 'nothing'")
        (wrong,) = [check for check in first.check() if not check.ok]
        assert "doctor --repair" in wrong.hint
        first.repair()
        assert [check for check in first.check() if not check.ok] == []
        assert answers(first) == expected == answers(second)
        assert files_of(first, "keyword") == files_of(second, "keyword")


def test_a_copy_of_another_life_of_the_database_is_none_of_ours(host: Opened, place: str) -> None:
    with host("a") as first:
        filled(first)
        first.opened.files.store.set_meta("born", "a backup")
    with host("b") as second:
        second.add(notes(60, 62))
        answers(second)
        assert not files_of(second, "keyword") & files_of(first, "keyword")


def test_a_damaged_leg_of_a_host_is_made_from_the_copy_once_and_then_anew(host: Opened) -> None:
    with host("a") as first:
        expected = filled(first)
        for _ in range(2):
            for file in (first.opened.files.folder / "keyword").glob("*.idx"):
                file.write_bytes(b"\0" * 99)
            first.opened.files.close()
            assert answers(first) == expected


def test_only_one_process_leaves_copies_at_a_time(host: Opened, place: str) -> None:
    with host("a") as first, host("b") as second:
        lock = second.opened.files.backend.lock("copies")
        second.add(notes(0, 1))
        assert lock.acquire(0.0)
        filled(first)
        assert states(place) == {}
        lock.release()
        first.opened.level_wanted()
        assert states(place)["keyword"] == (60, True)


def test_a_role_that_may_only_read_fetches_and_leaves_nothing(
    host: Opened, place: str, postgres: PostgresServer, tmp_path: Path
) -> None:
    looker = place.replace("keeper:keeper@", "watcher:watcher@")
    with psycopg.connect(postgres.dsn, dbname="legs", autocommit=True) as connection:
        connection.execute("CREATE ROLE watcher LOGIN PASSWORD 'watcher'")
        try:
            with host("a") as first:
                expected = filled(first)
                connection.execute("GRANT USAGE ON SCHEMA findling TO watcher")
                connection.execute("GRANT SELECT ON ALL TABLES IN SCHEMA findling TO watcher")
                with opened("b", looker, tmp_path) as reader:
                    assert answers(reader) == expected
                    assert files_of(reader, "keyword", "exact") == files_of(first, "keyword", "exact")
                    first.add(notes(60, 100))
                    first.opened.level_all()
                    assert answers(reader) == answers(first)
        finally:
            connection.execute("DROP OWNED BY watcher; DROP ROLE watcher")


def test_copies_go_through_a_pooler_in_transaction_mode(place: str, tmp_path: Path) -> None:
    pooled = place.replace("#", "?pooler=transaction#")
    with opened("a", pooled, tmp_path) as first, opened("b", pooled, tmp_path) as second:
        expected = filled(first)
        assert answers(second) == expected
        assert files_of(first, "keyword") == files_of(second, "keyword")


def test_a_replica_gives_copies(tmp_path: Path) -> None:
    server = PostgresServer()
    try:
        with opened("a", server.place("replica"), tmp_path) as first:
            expected = filled(first)
            place = f"{server.dsn}#{first.opened.files.backend.url.partition('#')[2]}"
            server.become_replica()
        with opened("b", place, tmp_path) as second:
            assert answers(second) == expected
            assert files_of(second, "keyword") == files_of(first, "keyword")
    finally:
        server.close()


WORKER = """
import sys
from pathlib import Path
from findling.stores.postgres import leg_copies
from findling.service.index import lazy_legs
from tests.stores.test_leg_copies import answers, files_of, notes, opened
leg_copies.LEAST_CHANGES, leg_copies._PART_BYTES, leg_copies._PARTS_AT_ONCE = 10, 500, 1
lazy_legs.LEAST_CHARACTERS = 100
job, place, folder, turn = sys.argv[1], sys.argv[2], Path(sys.argv[3]), int(sys.argv[4])
with opened("a" if job == "ship" else f"fetch{turn}", place, folder) as engine:
    if job == "ship":
        engine.add(notes(100 + 20 * turn, 120 + 20 * turn))
        engine.opened.level_all()
    print("ready", flush=True)
    answers(engine)
    print("done", flush=True)
"""


@pytest.mark.slow
@pytest.mark.parametrize("job", ["ship", "fetch"])
def test_a_process_that_is_killed_leaves_whole_copies_and_whole_legs(
    job: str, place: str, host: Opened, tmp_path: Path
) -> None:
    chance = random.Random(job)
    with host("a") as first:
        filled(first)
    for turn in range(tries(30, short=6)):
        command = [sys.executable, "-c", WORKER, job, place, str(tmp_path), str(turn)]
        worker = BoundedProcess(command, stdout=subprocess.PIPE)
        assert worker.stdout is not None
        assert worker.stdout.readline() == "ready\n"
        time.sleep(chance.uniform(0, 0.4))
        worker.send_signal(signal.SIGKILL)
        worker.communicate()
        assert all(is_sound for _, is_sound in states(place).values()), "what is listed is there, and right"
        name = f"fetch{turn}" if job == "fetch" else f"fresh{turn}"
        with host(name) as killed, host("a") as first:
            assert answers(killed) == answers(first)
            assert [check for check in killed.check() if not check.ok] == []
            assert not list(killed.opened.files.folder.glob(".*.fetched"))
