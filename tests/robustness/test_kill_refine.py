"""Reading by a model that is killed at any moment: what was read stays read, and everything else works on."""

from __future__ import annotations

import os
import random
import signal
import time
from typing import TYPE_CHECKING

import pytest

from findling.stores.sqlite.store import SqliteStore
from tests.counts import tries

if TYPE_CHECKING:
    from tests.robustness.conftest import Playground

pytestmark = [pytest.mark.skipif(os.name == "nt", reason="signals of POSIX"), pytest.mark.slow]

KILLS = tries(4, short=1)
HYBRID = {"FINDLING_SEARCH_MODE": "hybrid", "FINDLING_SEMANTIC_THREADS": "1"}


def test_reading_that_is_killed_goes_on_where_it_was(playground: Playground) -> None:
    chance = random.Random(5)
    playground.settings = dict(HYBRID)
    playground.plant(tries(40, short=14))
    store_file = playground.home / playground.root.as_posix().replace("/", "+") / "index.sqlite"
    playground.index()
    reached = 0
    for _ in range(KILLS):
        run = playground.start("refine")
        while run.poll() is None and count(store_file) <= reached:
            time.sleep(0.005)
        time.sleep(chance.uniform(0, 0.1))
        run.send_signal(signal.SIGKILL)
        playground.finish(run)
        kept = count(store_file)
        assert kept >= reached
        reached = kept
        assert "part3/file3.txt" in playground.found(playground.mark(3), "--no-index")
    assert reached > 0
    assert playground.run("refine").code == 0
    with playground.open() as engine:
        account = engine.status().meaning
        assert account["read"] == account["of"] >= reached
        assert [check for check in engine.check() if not check.ok and check.name != "disk space"] == []
        assert engine.search("alpha", refresh=False).meaning["coverage"] == 1


def count(store_file: object) -> int:
    with SqliteStore.open(str(store_file), readonly=True) as store:
        return sum(store.models().values())
