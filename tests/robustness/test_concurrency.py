"""Many processes on one workspace: nobody fails, nothing is there twice, every answer is whole."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.counts import sample, tries
from tests.processes import run_process

if TYPE_CHECKING:
    from tests.robustness.conftest import Playground

pytestmark = pytest.mark.slow

FILES = tries(120, short=63)
PROCESSES = tries(8, short=4)
UPDATES, VERSIONS_OF = tries(25, short=8), 6
"""The rounds of the writer, and the files it changes each time."""

READER = """
import json, sys, time
from pathlib import Path
import findling

stop, root = Path(sys.argv[1]), Path.cwd()
asked = 0
kept_open = findling.open(root)
while True:
    last = stop.exists() and asked > 2
    for engine in (kept_open, findling.open(root)):
        answer = engine.search("versioned", limit=1000)
        asked += 1
        lines = [(hit.path, line.number, line.text) for hit in answer for line in hit.lines]
        notes = [note.what for note in answer.degraded]
        print(json.dumps({"lines": lines, "ids": [hit.id for hit in answer], "notes": notes}), flush=True)
        if engine is not kept_open:
            engine.close()
    if last:
        break
kept_open.close()
"""

PROBE = """
import fcntl, sys
with open(sys.argv[1], "r+b") as file:
    try:
        fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB, 510, 0x40000002)  # the bytes of SQLite's shared lock
    except OSError:
        sys.exit(3)
"""


@pytest.mark.parametrize("searchers", sample([PROCESSES // 4, PROCESSES * 5 // 8, PROCESSES], short=2))
def test_many_processes_start_from_nothing(
    playground: Playground, new_playground: type[Playground], searchers: int
) -> None:
    """All at once: some index, some search first and so index too."""
    playground.settings = {"FINDLING_INDEX_BATCH_BYTES": "20000"}
    playground.plant(FILES)
    commands = [("search", "-l", playground.mark(60))] * searchers + [("index",)] * (PROCESSES - searchers)
    outcomes = [playground.finish(process) for process in [playground.start(*command) for command in commands]]
    for command, outcome in zip(commands, outcomes, strict=True):
        if command == ("index",):
            assert (outcome.code, outcome.complaints) == (0, "")
        elif outcome.code == 1:
            assert "another process is indexing for the first time" in outcome.err
        else:
            assert (outcome.code, outcome.out) == (0, "part4/file60.txt\n")
            missing = outcome.complaints.partition("; ")[2]
            assert not missing or "files may be missing" in missing or "files are indexed so far" in missing
    assert any(outcome.code == 0 for outcome in outcomes)

    later = [playground.start("search", "-l", playground.mark(number)) for number in range(PROCESSES // 2)]
    assert [playground.finish(process).code for process in later] == [0] * (PROCESSES // 2)
    playground.assert_sound()
    playground.assert_complete()
    alone = new_playground(playground.folder / "alone")
    alone.plant(FILES)
    alone.index()
    assert playground.state() == alone.state()


def test_processes_that_search_while_files_change(playground: Playground) -> None:
    """Several processes find the same changes at once: one takes them in, the others wait for nothing."""
    playground.plant(FILES)
    playground.index()
    for turn in range(tries(4, short=1)):
        for number in range(0, FILES, 3):
            playground.write(f"part{number % 7}/file{number}.txt", playground.prose(1000 * turn + number, 20))
        commands = [("search", "-l", "bako"), ("index",)] * (PROCESSES // 2)
        for outcome in [playground.finish(process) for process in [playground.start(*each) for each in commands]]:
            assert outcome.code == 0, outcome.err
        playground.assert_sound()
        playground.assert_complete()


def test_a_damaged_leg_is_found_by_all_at_once(playground: Playground) -> None:
    playground.plant(FILES)
    playground.index()
    for kind in ("*.idx", "meta.json"):
        for file in playground.leg_folder.glob(kind):
            file.unlink()
        searches = [playground.start("search", "-l", playground.mark(60)) for _ in range(PROCESSES // 2)]
        for outcome in [playground.finish(process) for process in searches]:
            assert (outcome.code, outcome.out) == (0, "part4/file60.txt\n"), outcome.err
        playground.assert_sound()


@pytest.mark.parametrize("nuisance", [("index", "--rebuild"), ("forget", "--everything", "--force")])
def test_an_index_that_is_taken_away_while_it_is_used(playground: Playground, nuisance: tuple[str, ...]) -> None:
    """Nobody does that on purpose; when it happens, every process says what it met and leaves a sound index."""
    playground.plant(FILES)
    commands = [("search", "-l", playground.mark(60)), nuisance, ("index",), nuisance] * tries(2, short=1)
    for _ in range(tries(2, short=1)):
        processes = [(command, playground.start(*command)) for command in commands]
        for command, process in processes:
            done = playground.finish(process)
            assert "Traceback" not in done.err
            if command[0] == "search":
                found = (done.code, done.out) == (0, "part4/file60.txt\n")
                assert found or done.complaints.startswith("findling: "), done
            elif nuisance[0] == "index":
                assert (done.code, done.complaints) == (0, "")
        assert playground.found(playground.mark(60)) == ["part4/file60.txt"]
        playground.assert_sound()
        playground.assert_complete()


def test_readers_see_whole_answers_while_a_writer_works(playground: Playground) -> None:
    for number in range(VERSIONS_OF):
        playground.write(f"file{number}.md", version(number, 0))
    playground.index()
    stop = playground.folder / "stop"
    readers = [playground.start_code(READER, str(stop)) for _ in range(tries(3, short=2))]
    for turn in range(1, UPDATES + 1):
        for number in range(VERSIONS_OF):
            playground.write(f"file{number}.md", version(number, turn))
        with playground.open() as engine:
            engine.index()
    stop.touch()

    possible = {
        (f"file{number}.md", index, text)
        for number in range(VERSIONS_OF)
        for turn in range(UPDATES + 1)
        for index, text in enumerate(version(number, turn).splitlines(), start=1)
    }
    for outcome in [playground.finish(reader) for reader in readers]:
        assert (outcome.code, outcome.err) == (0, "")
        answers = [json.loads(line) for line in outcome.out.splitlines()]
        assert len(answers) > 2
        for answer in answers:
            assert len(answer["ids"]) == len(set(answer["ids"]))
            assert {tuple(line) for line in answer["lines"]} <= possible
        if not answers[-1]["notes"]:
            turns = {text.split()[1] for _, _, text in answers[-1]["lines"] if text.startswith("versioned")}
            assert turns == {str(UPDATES)}, "the last answer knows the last version, and no other"
    playground.assert_sound()
    playground.assert_complete()


@pytest.mark.skipif(os.name == "nt", reason="locks of POSIX")
def test_two_engines_in_one_process_keep_their_locks(playground: Playground) -> None:
    """POSIX drops all locks of a process on a file when it closes any handle on it: SQLite must be left alone."""
    playground.write("note.md", "a note\n")
    with playground.open() as first:
        first.index()
        with playground.open() as second:
            assert second.search("note").hits
            assert is_locked(playground.store_file)
        assert first.search("note").hits
        assert is_locked(playground.store_file)


def is_locked(file: Path) -> bool:
    """Whether this process holds SQLite's shared lock; only another process can tell."""
    return run_process([sys.executable, "-c", PROBE, str(file)]).returncode == 3


def version(number: int, turn: int) -> str:
    """A file with headings that move up and down from version to version."""
    sections = [f"## Part {part}\n\nversioned {turn} {number} {part}\n" for part in range(3)]
    return f"# File {number}\n" + "\n" * (turn % 5) + "\n".join(sections)
