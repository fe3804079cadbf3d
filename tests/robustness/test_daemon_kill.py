"""A daemon that is killed while it writes, and one that is asked by many while files change."""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

from findling.service.client.daemon import ask_daemon
from findling.service.client.daemon_state import read_state, running
from findling.stores.sqlite.store import SqliteStore
from tests.counts import IS_LONG, tries
from tests.processes import PATIENCE_S, BoundedProcess

if TYPE_CHECKING:
    from tests.robustness.conftest import Playground

pytestmark = [pytest.mark.slow, pytest.mark.skipif(os.name == "nt", reason="there are no unix sockets")]

FILES, BURST = 30, tries(150, short=100)
BY_WORDS = {"FINDLING_SEMANTIC_MODEL": "none"}
"""No process of a daemon opens a model, which none of the searches here asks: 1 s each."""
SEARCHES, LINES = tries(8, short=4), 40


def start_daemon(playground: Playground, *args: str) -> BoundedProcess:
    """Start a daemon and wait until it listens."""
    process = playground.start("serve", "--port", "0", "--set", "watch.wait_s=0.1", *args)

    def listens() -> bool:
        assert process.poll() is None, process.communicate()
        state = running(playground.home)
        return state is not None and state.pid == process.pid

    wait_until(listens)
    return process


def wait_until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not holds():
        assert time.monotonic() < deadline, "it does not come to that"
        time.sleep(0.005)


def count(playground: Playground) -> int:
    with SqliteStore.open(playground.store_file, readonly=True) as store:
        return store.counts()["resources"]


@pytest.mark.parametrize("taken_in", [1, 60] if IS_LONG else [60])
def test_a_daemon_that_is_killed_while_it_writes_loses_nothing(playground: Playground, taken_in: int) -> None:
    playground.settings = {**BY_WORDS, "FINDLING_INDEX_BATCH_BYTES": "5000"}
    playground.plant(FILES)
    playground.index()
    first = start_daemon(playground)
    for number in range(FILES, FILES + BURST):
        playground.write(f"burst/file{number}.txt", playground.prose(number, 30))
    (playground.root / "part0" / "file0.txt").unlink()
    wait_until(lambda: count(playground) >= FILES + taken_in)
    first.kill()
    first.communicate()
    # On a busy machine the kill may come when all is written.
    was_at_work = count(playground) < FILES + BURST - 1
    assert read_state(playground.home) is not None, "and had no time to clear up"

    last = FILES + BURST - 1
    document, err = playground.search(playground.mark(last))
    assert [hit["path"] for hit in document["hits"]][:1] == [f"burst/file{last}.txt"]
    assert (document["served_by"], document["degraded"]) == ("", [])
    if was_at_work:
        assert err.count("\n") == 1, err
        assert err.startswith(f"findling: indexing {playground.root}: "), "what the daemon has not taken in is told"
    playground.assert_sound()
    playground.assert_complete()

    second = start_daemon(playground)
    served_by = f"the daemon of process {second.pid}"
    wait_until(lambda: playground.search(playground.mark(last))[0]["served_by"] == served_by)
    assert playground.call("serve", "--stop").code == 0
    assert playground.finish(second).code == 0
    playground.assert_sound()


def test_many_searches_through_a_daemon_while_files_change(playground: Playground) -> None:
    playground.settings = BY_WORDS
    playground.plant(FILES)
    names = [f"versions/file{number}.txt" for number in range(6)]

    def write(version: int) -> None:
        for name in names:
            # One step, as editors save: nobody may read half of a file.
            draft = playground.write(f"{name}.draft", f"versioned {version}\n" * LINES)
            draft.replace(playground.root / name)

    write(0)
    playground.write(".ignore", "*.draft\n")
    playground.index()
    daemon = start_daemon(playground)
    stop, versions = threading.Event(), [0]

    def change() -> None:
        while not stop.wait(0.2):
            versions.append(versions[-1] + 1)
            write(versions[-1])

    writer = threading.Thread(target=change)
    writer.start()
    try:
        command = ("search", "--json", "-k", "1000", "-C", str(LINES), "versioned")
        started = [playground.start(*command) for _ in range(SEARCHES)]
        outcomes = [playground.finish(process) for process in started]
    finally:
        stop.set()
        writer.join()
    served_by = f"the daemon of process {daemon.pid}"
    for code, out, err in outcomes:
        assert code in (0, 1), err
        document = json.loads(out)
        # A shell answers by itself when a busy daemon says nothing for 2 s.
        assert document["served_by"] in (served_by, ""), err
        if not document["degraded"]:
            assert {hit["path"] for hit in document["hits"]} == set(names)
        for name in names:
            seen = {line["text"] for hit in document["hits"] if hit["path"] == name for line in hit["lines"]}
            assert len(seen) <= 1, "each file is of one version"

    def answered_by_daemon() -> bool:
        document, _ = playground.search(f"versioned {versions[-1]}", "--set", "search.words=all")
        assert {hit["path"] for hit in document["hits"]} == set(names), "what was saved last is there"
        return bool(document["served_by"] == served_by)

    wait_until(answered_by_daemon)
    answered = ask_daemon(playground.home, "GET", "/local/status", patience_s=PATIENCE_S)
    assert answered is not None
    assert answered[1]["failed_queries"] == 0
    assert playground.call("serve", "--stop").code == 0
    assert "Traceback" not in playground.finish(daemon).err
    playground.assert_sound()
