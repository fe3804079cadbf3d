"""A run that is killed at any moment loses nothing it has committed, and the next command goes on from there."""

from __future__ import annotations

import os
import random
import shutil
import signal
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from findling.domain.errors import FindlingError
from findling.stores.sqlite.store import SqliteStore
from tests.counts import tries
from tests.processes import BoundedProcess

if TYPE_CHECKING:
    from tests.robustness.conftest import Answers, Playground

pytestmark = [pytest.mark.skipif(os.name == "nt", reason="signals of POSIX"), pytest.mark.slow]

FILES = tries(240, short=160)
SMALL_BATCHES = {"FINDLING_INDEX_BATCH_BYTES": "12000"}
WORKSPACES, QUARTERS = tries(5, short=1), tries(4, short=2)
"""Kills of a first index run: twenty in a long run."""
UPDATE_KILLS = tries(6, short=2)
REPAIR_KILLS = tries(6, short=2)


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory, new_playground: type[Playground]) -> Answers:
    """The result of a run that nobody kills, on the same tree in a workspace of its own."""
    playground = new_playground(tmp_path_factory.mktemp("undisturbed"))
    playground.plant(FILES)
    playground.index()
    playground.assert_complete()
    return playground.answers()


@pytest.mark.parametrize("seed", range(WORKSPACES))
def test_a_first_run_that_is_killed_again_and_again(playground: Playground, undisturbed: Answers, seed: int) -> None:
    chance = random.Random(seed)
    playground.settings = SMALL_BATCHES
    playground.plant(FILES)
    kills = 0
    for quarter in range(QUARTERS):
        run = playground.start("index")
        seen = watch(playground, run, round(FILES * (quarter + chance.random()) / QUARTERS))
        time.sleep(chance.uniform(0, 0.03))
        kills += kill(run)
        assert seen <= stored_rids(playground)
        if seen:
            playground.call("search", "--no-index", "alpha")
            playground.assert_sound()
            assert_alike(playground.answers(), playground.rebuilt_answers())
    assert kills, "the first moment lies in the first part of the run"

    assert playground.found(playground.mark(150)) == ["part3/file150.txt"]
    playground.assert_sound()
    playground.assert_complete()
    assert_alike(playground.answers(), undisturbed)
    assert playground.call("doctor", "--repair").code == 0
    assert playground.answers() == undisturbed


def test_an_update_that_is_killed_leaves_no_ghosts(playground: Playground) -> None:
    """Changed, deleted and renamed files: whatever the moment, the next search knows the tree as it is."""
    chance = random.Random(99)
    playground.settings = SMALL_BATCHES
    playground.plant(FILES)
    playground.index()
    before = playground.folder / "before"
    shutil.copytree(playground.workspace, before)
    old_words = rearrange(playground)
    kills = 0
    for turn in range(UPDATE_KILLS):
        shutil.rmtree(playground.workspace)
        shutil.copytree(before, playground.home / playground.root.as_posix().replace("/", "+"))
        run = playground.start("index")
        watch(playground, run, FILES + round(len(old_words) * (turn + chance.random()) / UPDATE_KILLS), by_seq=True)
        time.sleep(chance.uniform(0, 0.02))
        kills += kill(run)
        for word in chance.sample(sorted(old_words), 2):
            assert set(playground.found(word)) <= old_words[word]
        playground.assert_sound()
        playground.assert_complete()
    assert kills, "the first moment lies in the first part of the run"


def test_a_repair_that_is_killed_is_made_up_for(playground: Playground) -> None:
    """Most of a repair is the leg being deleted, written and committed."""
    playground.plant(FILES)
    playground.index()
    answers = playground.answers()
    for turn in range(REPAIR_KILLS):
        leg = playground.leg_folder / "meta.json"
        before = _inode(leg)
        run = playground.start("doctor", "--repair")
        while run.poll() is None and _inode(leg) == before:
            time.sleep(0.001)
        time.sleep(0.02 * turn)
        kill(run)
        assert playground.found(playground.mark(30)) == ["part2/file30.txt"]
        playground.assert_sound()
        assert_alike(playground.answers(), answers)


def _inode(file: Path) -> int | None:
    try:
        return file.stat().st_ino
    except FileNotFoundError:
        return None


def rearrange(playground: Playground) -> dict[str, set[str]]:
    """Change, delete and rename a part of the files; returns for each old word where it may still be found."""
    old_words: dict[str, set[str]] = {}
    for number, file in enumerate(sorted(playground.root.rglob("*.txt"))):
        word = playground.mark(int(file.stem.removeprefix("file")))
        if number % 3 == 0:
            file.write_text(playground.prose(500_000 + number, 40))
            old_words[word] = set()
        elif number % 3 == 1:
            file.unlink()
            old_words[word] = set()
        else:
            moved = file.with_name(f"moved-{file.name}")
            file.rename(moved)
            old_words[word] = {moved.relative_to(playground.root).as_posix()}
    return old_words


def watch(playground: Playground, run: BoundedProcess, enough: int, *, by_seq: bool = False) -> set[str]:
    """Follow a run as a reader until it has stored enough resources, or made enough changes; returns what was seen."""
    seen: set[str] = set()
    while run.poll() is None:
        try:
            with SqliteStore.open(playground.store_file, readonly=True) as store:
                seen = set(store.rids())
                if (store.seq() if by_seq else len(seen)) >= enough:
                    break
        except (FindlingError, OSError, ValueError):
            pass  # there is no workspace yet
        time.sleep(0.002)
    return seen


def stored_rids(playground: Playground) -> set[str]:
    if not any(playground.home.glob("*/index.sqlite")):
        return set()
    with SqliteStore.open(playground.store_file) as store:
        assert store.integrity() == []
        return set(store.rids())


def assert_alike(answers: Answers, expected: Answers) -> None:
    """The same chunks for every query, with the same scores but for what deleted entries add to the statistics.

    Every commit deletes the mark of the one before; the entry counts in the number of all until segments are merged.
    """
    assert {query: set(scores) for query, scores in answers.items()} == {
        query: set(scores) for query, scores in expected.items()
    }
    for query, scores in answers.items():
        assert scores == pytest.approx(expected[query], rel=0.02)


def kill(run: BoundedProcess) -> bool:
    """Kill a run; False when it was over already."""
    run.send_signal(signal.SIGKILL)
    run.communicate()
    return run.returncode == -signal.SIGKILL
