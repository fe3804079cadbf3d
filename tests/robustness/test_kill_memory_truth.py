"""Memories that stay true while processes are killed, and while two of them remember the same at once."""

from __future__ import annotations

import os
import random
import signal
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from findling.service.content.memories import WorkspaceMemories
from tests.counts import tries

if TYPE_CHECKING:
    from tests.robustness.conftest import Playground

pytestmark = [pytest.mark.skipif(os.name == "nt", reason="signals of POSIX"), pytest.mark.slow]

KILLS = tries(60, short=2)

OPENED = """
import sys, findling
from functools import partial
from findling.service.content.memories import WorkspaceMemories
engine = findling.open(".").__enter__()
memories = WorkspaceMemories(engine.writer, partial(engine.search, refresh=False))
"""
RESTLESS = (
    OPENED
    + """
import itertools
for number in itertools.count(int(sys.argv[1])):
    name = f"Person{number}"
    first = memories.remember(f"{name} lives in Berlin.")
    memories.remember(f"{name} resides in Berlin.")
    moved = memories.remember(f"{name} moved to Hamburg.")
    print(number, flush=True)
    memories.undo(first.rid)
    memories.remember(f"{name} likes tea.")
    coffee = memories.remember(f"{name} likes coffee.")
    for pair in memories.review().pairs:
        memories.decide(pair.newer, pair.older, "merge" if number % 2 else "supersede")
    memories.undo(moved.rid)
"""
)
SAME = (
    OPENED
    + """
print("ready", flush=True)
import time
from pathlib import Path
while not Path(sys.argv[2]).exists():
    time.sleep(0.001)
for number in range(int(sys.argv[1])):
    for wording in ("Anna{0}'s phone number is 0341 {0}.", "The telephone number of Anna{0} is 0341 {0}."):
        memories.remember(wording.format(number))
"""
)


def memories_of(playground: Playground) -> dict[str, str]:
    with playground.open() as engine:
        memories = WorkspaceMemories(engine.writer, partial(engine.search, refresh=False))
        for memory in memories.list():
            assert memories.history(memory.rid), "every state can be read"
        return {memory.rid: memory.text for memory in memories.list()}


def test_remembering_undoing_and_reviewing_survive_a_kill(playground: Playground) -> None:
    chance, start = random.Random(7), 0
    for _ in range(KILLS):
        process = playground.start_code(RESTLESS, str(start))
        assert process.stdout is not None
        done = int(process.stdout.readline())
        time.sleep(chance.uniform(0, 0.3))
        process.send_signal(signal.SIGKILL)
        said = process.communicate()[0].split()
        done = int(said[-1]) if said else done
        kept = memories_of(playground)
        # Of every person both places are known in some state: nothing that was said is lost.
        texts = " ".join(kept.values())
        for number in range(start, done + 1):
            assert f"Person{number} " in texts
            assert f"Person{number} moved to Hamburg." in kept.values()
            assert {f"Person{number} lives in Berlin.", f"Person{number} resides in Berlin."} & set(kept.values())
        start = done + 1
    playground.assert_sound()


def test_two_processes_that_remember_the_same_fact_make_one_memory(tmp_path: Path, playground: Playground) -> None:
    facts = tries(20, short=5)
    go = tmp_path / "go"
    processes = [playground.start_code(SAME, str(facts), str(go)) for _ in range(2)]
    for process in processes:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
    go.touch()
    for process in processes:
        assert playground.finish(process).code == 0
    assert len(memories_of(playground)) == facts
    playground.assert_sound()
