"""An export that is killed leaves no bundle, an import that is killed is completed by the next one."""

from __future__ import annotations

import os
import random
import shutil
import signal
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import findling
from findling.domain.errors import FindlingError
from findling.domain.resources import Resource
from findling.service.engine.engine import open_engine
from findling.service.export.bundles import export_bundle
from findling.stores.bundle.bundle import Bundle
from findling.stores.sqlite.store import SqliteStore
from tests.counts import tries
from tests.processes import BoundedProcess

if TYPE_CHECKING:
    from tests.robustness.conftest import Playground

pytestmark = [pytest.mark.skipif(os.name == "nt", reason="signals of POSIX"), pytest.mark.slow]

FILES = 160
KILLS = tries(4, short=2)


@pytest.mark.parametrize("name", ["bundle", "bundle.zip"])
def test_an_export_that_is_killed_leaves_the_bundle_that_was_there(playground: Playground, name: str) -> None:
    chance = random.Random(3)
    playground.plant(FILES)
    assert playground.call("index").code == 0
    target = playground.folder / name
    draft = playground.folder / f".{name}.partial"
    kills = turn = 0
    while kills < KILLS // 2 or turn < KILLS:  # on a busy machine a kill may come when all is written
        turn += 1
        run = playground.start("export", str(target), "--force")
        while run.poll() is None and not draft.exists():
            time.sleep(0.001)
        time.sleep(chance.uniform(0, 0.02 * (turn - 1) if turn <= KILLS else 0))
        kills += kill(run)
        if target.exists():  # it was too late, or this is the bundle of an earlier turn
            verified(target)
    assert playground.call("export", str(target), "--force").code == 0
    assert verified(target) == FILES
    assert [path.name for path in playground.folder.glob(".*")] == []


def test_an_import_that_is_killed_again_and_again_is_completed(playground: Playground) -> None:
    chance = random.Random(4)
    playground.plant(FILES)
    assert playground.call("index").code == 0
    # A long run commits more than once, and what that leaves behind counts in the scores until the leg is tidied up.
    assert playground.call("doctor", "--repair").code == 0
    target = str(playground.folder / "bundle.zip")
    assert playground.call("export", target).code == 0
    turn = 0
    while turn < KILLS:
        run = playground.start("import", target, "--workspace", "copy", "--trust", "rights,root,survey")
        watch(playground.home / "copy" / "index.sqlite", run, round(FILES * (turn + chance.random()) / KILLS))
        turn += 1
        if not kill(run):  # on a busy machine it was complete before the kill
            shutil.rmtree(playground.home / "copy")
            turn = 0
    done = playground.call("import", target, "--workspace", "copy", "--trust", "rights,root,survey")
    assert (done.code, done.complaints) == (0, ""), done.out
    # Two workspaces of one tree must tell the same.
    for word in (*map(playground.mark, (3, 77, 150)), "bako", "meta nosi"):
        copy = playground.search(word, "--workspace", "copy")[0]
        original = playground.search(word)[0]
        assert [(hit["id"], hit["score"]) for hit in copy["hits"]] == [
            (hit["id"], hit["score"]) for hit in original["hits"]
        ]
        assert copy["hits"] and not copy["degraded"]
    assert playground.call("doctor", "--workspace", "copy").code == 0
    again = playground.call("import", target, "--workspace", "copy", "--trust", "rights,root,survey")
    assert again.code == 2 and f"holds {FILES} resources" in again.err


def test_a_merge_that_is_killed_is_completed_and_keeps_every_earlier_text_once(playground: Playground) -> None:
    chance, count = random.Random(5), 250
    target = playground.folder / "forged"
    settings = findling.Settings().override({"store.home": str(playground.home), "semantic.model": "none"}, "test")
    for name in ("theirs", "ours"):
        with open_engine(".", workspace=name, settings=settings) as engine:
            memories = [Resource(rid=f"memory:{number}", type="memory") for number in range(count)]
            engine.add([(one, f"Text {one.rid} of {name}.") for one in memories])
            if name == "theirs":
                export_bundle(engine, target)
    refused = playground.call("import", str(target), "--workspace", "ours", "--merge")
    assert refused.code == 2 and "would change 250 resources" in refused.err and "--replace" in refused.err
    command = ("import", str(target), "--workspace", "ours", "--merge", "--replace")
    for _ in range(KILLS):
        run = playground.start(*command)
        time.sleep(chance.uniform(0.2, 1.0))
        kill(run)
    assert playground.call(*command).code == 0
    with open_engine(".", workspace="ours", settings=settings) as engine:
        for number in range(count):
            texts = [one.text for one in engine.memories.history(str(number))]
            assert texts == [f"Text memory:{number} of {name}." for name in ("theirs", "ours")]


def watch(store_file: Path, run: BoundedProcess, enough: int) -> None:
    """Follow an import as a reader until it has stored enough resources."""
    while run.poll() is None:
        try:
            with SqliteStore.open(store_file, readonly=True) as store:
                if store.counts()["resources"] >= enough:
                    return
        except (FindlingError, OSError, ValueError):
            pass  # there is no workspace yet
        time.sleep(0.002)


def verified(target: Path) -> int:
    """The number of resources in a bundle that must be sound."""
    with Bundle.open(target) as bundle:
        bundle.verify()
        return bundle.counts["resources"]


def kill(run: BoundedProcess) -> bool:
    """Kill a run; False when it was over already."""
    run.send_signal(signal.SIGKILL)
    run.communicate()
    return run.returncode == -signal.SIGKILL
