"""An import of chats that is killed loses nothing it has committed, and the next one completes it."""

from __future__ import annotations

import json
import os
import random
import signal
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from findling.domain.errors import FindlingError
from findling.stores.sqlite.store import SqliteStore
from tests.processes import BoundedProcess

if TYPE_CHECKING:
    from tests.robustness.conftest import Answers, Playground

pytestmark = [pytest.mark.skipif(os.name == "nt", reason="signals of POSIX"), pytest.mark.slow]

MESSAGES = 4_200
"""Two batches, and the beginning of a third."""
KILLS = 2


def write_export(playground: Playground) -> Path:
    """Threads that take turns, some messages late, some without a time."""
    chance = random.Random(7)
    file = playground.folder / "export.jsonl"
    with file.open("w") as lines:
        for number in range(MESSAGES):
            row = {
                "thread": f"t{number % 3}",
                "id": number,
                "author": chance.choice(("Ann", "Bob")),
                "at": 1_775_637_480 + number * 40 - (5000 if chance.random() < 0.05 else 0),
                "text": playground.prose(number, 1).strip(),
            }
            if chance.random() < 0.05:
                del row["at"]
            lines.write(json.dumps(row) + "\n")
    return file


def test_an_import_that_is_killed_again_and_again(
    playground: Playground, tmp_path_factory: pytest.TempPathFactory, new_playground: type[Playground]
) -> None:
    undisturbed = new_playground(tmp_path_factory.mktemp("undisturbed"))
    file = write_export(undisturbed)
    assert undisturbed.call("chats", "import", str(file)).code == 0
    assert len(message_ids(undisturbed)) == MESSAGES

    chance = random.Random(11)
    kills = 0
    for turn in range(KILLS):
        run = playground.start("chats", "import", str(file))
        seen = watch(playground, run, MESSAGES * turn // KILLS + 1)
        time.sleep(chance.uniform(0, 0.03))
        kills += kill(run)
        kept = message_ids(playground)
        assert seen <= set(kept)
        assert len(kept) == len(set(kept))
    assert kills, "the first moment lies in the first part of the import"

    outcome = playground.call("chats", "import", "--json", str(file))
    assert outcome.code == 0, outcome.err
    report = json.loads(outcome.out)
    assert (report["added"] + report["known"], report["changed"]) == (MESSAGES, 0)
    assert playground.state() == undisturbed.state()
    assert_alike(playground.answers(), undisturbed.answers())
    playground.assert_sound()


def watch(playground: Playground, run: BoundedProcess, enough: int) -> set[str]:
    """Follow an import as a reader until it has stored enough messages; returns those that were seen."""
    seen: set[str] = set()
    while run.poll() is None and len(seen) < enough:
        time.sleep(0.01)
        with suppress(FindlingError, OSError, ValueError):  # there is no workspace yet
            seen = set(message_ids(playground))
    return seen


def message_ids(playground: Playground) -> list[str]:
    with SqliteStore.open(playground.store_file, readonly=True) as store:
        parts = [json.loads(resource.fields["messages"]) for resource in store.resources()]
    return [row["id"] for rows in parts for row in rows]


def assert_alike(answers: Answers, expected: Answers) -> None:
    """The same chunks for every query, with the same scores but for what deleted entries add to the statistics."""
    for query, scores in answers.items():
        assert scores == pytest.approx(expected[query], rel=0.02)


def kill(run: BoundedProcess) -> bool:
    """Kill a run; False when it was over already."""
    run.send_signal(signal.SIGKILL)
    run.communicate()
    return run.returncode == -signal.SIGKILL
