"""Every file of a workspace, damaged in every way: the answer is the same, or what is wrong and what to run is told."""

from __future__ import annotations

import json
import os
import random
import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import findling
from findling.domain.errors import FindlingError
from findling.domain.records import GlossaryTerm
from findling.service.upkeep.snapshots import WorkspaceSnapshots
from tests.counts import tries

pytestmark = [pytest.mark.skipif(os.name == "nt", reason="open files cannot be replaced there"), pytest.mark.slow]

FLIPS = tries(8, short=1)
CASES = tries(100_000, short=24)
"""Pairs of file and damage that are tried, of some 400."""

SUBJECTS = ("harbour", "lantern", "meadow", "thimble", "granite", "orchard", "compass", "velvet")
QUERIES = ("harbour lantern", "where is the orchard", "granite -velvet", "what did we decide about compasses")
MOST_COMMANDS = 4
"""Commands that may be needed, one after the other."""


class Sample:
    """A workspace with files, memories, decisions, terms, vectors and a snapshot; `name` tells it from others."""

    def __init__(self, folder: Path, name: str) -> None:
        self.root, self.name = folder / name, name
        # Memories of all folders in one home are listed together.
        values = {"store.home": str(folder / f"home of {name}"), "semantic.refine": "never", "semantic.model": "none"}
        self.settings = findling.Settings().override(values, "test")
        (self.root / "docs").mkdir(parents=True)
        for number, word in enumerate(SUBJECTS):
            text = " ".join(SUBJECTS[(number + step * step) % len(SUBJECTS)] for step in range(40))
            (self.root / "docs" / f"{word}.md").write_text(f"# {word.title()} of {name}\n\n{text}\n")
        time.sleep(0.06)
        with self.open() as engine:
            engine.index()
            engine.memories.remember(f"The orchard of {name} is behind the harbour.")
            engine.add(
                [(findling.Resource(rid=f"decision:{name}", type="decision", title="Compasses"), "We keep them.")]
            )
            engine.writer.store.write_glossary([GlossaryTerm("g", "compass", "compass", "canonical", "test", "", None)])
            engine.search("harbour")
            WorkspaceSnapshots(engine.writer.files, self.settings).create("whole")
            engine.repair()
            engine.search("harbour")
            self.home = engine.home
        self.answers = self.ask()
        self.copy = folder / f"copy of {name}"
        shutil.copytree(self.home, self.copy)

    def open(self) -> findling.Engine:
        return findling.open(self.root, settings=self.settings)

    def ask(self) -> str:
        """Everything that is answered, as text."""
        with self.open() as engine:
            found = [
                [(hit.rid, hit.id, round(hit.score, 6), hit.path) for hit in engine.search(query)] for query in QUERIES
            ]
            memories = [(one.rid, one.text) for one in engine.memories.list()]
            return json.dumps([found, memories, [term.surface for term in engine.writer.store.glossary()]])

    def restore(self) -> None:
        """Make the workspace what it was before it was damaged."""
        shutil.rmtree(self.home)
        shutil.copytree(self.copy, self.home)

    def files(self) -> list[str]:
        found = sorted(path for path in self.copy.rglob("*") if path.is_file())
        return [path.relative_to(self.copy).as_posix() for path in found if path.suffix != ".lock"]

    def obey(self, command: str) -> None:
        """Do what a hint says."""
        words = command.split()
        with self.open() as engine:
            snapshots = WorkspaceSnapshots(engine.writer.files, self.settings)
            if words[:3] == ["findling", "snapshot", "restore"]:
                snapshots.restore(words[3])
            elif words[:3] == ["findling", "snapshot", "drop"]:
                snapshots.drop(words[3])
            elif words[:3] == ["findling", "index", "--rebuild"]:
                engine.index(rebuild=True)
            elif [word.rstrip(",") for word in words[:3]] == ["findling", "doctor", "--repair"]:
                engine.repair()
            else:
                pytest.fail(f"no command: {command}")


@pytest.fixture(scope="module")
def samples(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Sample, Sample]]:
    folder = tmp_path_factory.mktemp("samples")
    yield Sample(folder, "first"), Sample(folder, "second")


def empty(file: Path, _: random.Random) -> None:
    os.truncate(file, 0)


def halve(file: Path, _: random.Random) -> None:
    os.truncate(file, file.stat().st_size // 2)


def delete(file: Path, _: random.Random) -> None:
    file.unlink()


def flip(file: Path, chance: random.Random) -> None:
    content = bytearray(file.read_bytes())
    if content:
        content[chance.randrange(len(content))] ^= 1 << chance.randrange(8)
    file.write_bytes(content)


Damage = Callable[[Path, random.Random], None]


def cases(sample: Sample, other: Sample) -> list[tuple[str, str, Damage]]:
    """File, name of the damage, and the damage: some of all that there are."""

    def exchange(name: str) -> Damage:
        kin = [path for path in other.files() if Path(path).suffix == Path(name).suffix and path[:4] == name[:4]]

        def do(file: Path, chance: random.Random) -> None:
            shutil.copyfile(other.copy / chance.choice(kin), file)

        return do

    made: list[tuple[str, str, Damage]] = []
    for name in sample.files():
        made += [(name, damage.__name__, damage) for damage in (empty, halve, delete)]
        made += [(name, "exchange", exchange(name)), *((name, f"flip {n}", flip) for n in range(FLIPS))]
    chance = random.Random(14)
    return made if len(made) <= CASES else chance.sample(made, CASES)


def test_whatever_is_damaged_is_seen_and_comes_back(samples: tuple[Sample, Sample]) -> None:
    sample, other = samples
    wrong = []
    for number, (name, kind, damage) in enumerate(cases(sample, other)):
        sample.restore()
        damage(sample.home / name, random.Random(number))
        if problem := _judge(sample, name):
            wrong.append(f"{name}, {kind}, seed {number}: {problem}")
    sample.restore()
    assert not wrong, "\n".join(wrong)


def _judge(sample: Sample, name: str) -> str:
    """The fault in dealing with a damage; nothing when it is seen or heals by itself."""
    told: list[str] = []
    for _ in range(MOST_COMMANDS):
        try:
            is_same = sample.ask() == sample.answers
            messages: list[tuple[str, str]] = []
        except FindlingError as error:
            is_same, messages = False, [(error.message, error.hint)]
        except Exception as error:
            return f"a traceback: {error!r}"
        with sample.open() as engine:
            messages += [(check.detail, check.hint) for check in engine.check() if not check.ok]
        messages = [(message, hint) for message, hint in messages if "MB free" not in message]
        if is_same and not messages:
            return ""
        if not messages:
            return f"another answer, and nobody says so; told before: {told}"
        told += [f"{message} -> {hint}" for message, hint in messages]
        if len(told) == len(messages) and not any(_names(name, message) for message, _ in messages):
            return f"the file is not named: {told}"
        sample.obey(messages[0][1])
    return f"no end of commands: {told}"


def _names(name: str, message: str) -> bool:
    """Whether a message names the file, or the folder of files that are only ever made anew together."""
    parts = Path(name).parts
    return any(part in message for part in (name, Path(name).name, Path(name).stem.removesuffix(".sqlite"), parts[0]))
