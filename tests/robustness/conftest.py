"""A tree to index, a home for its workspaces, and the real command line in processes of its own."""

from __future__ import annotations

import io
import json
import os
import random
import shutil
import subprocess
import sys
import time
from collections.abc import Container, Iterator, Sequence
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import findling
from findling.domain.queries import Filters, Not, Word
from findling.faces.cli.main import run
from findling.pipelines.indexing.fanout import catch_up
from findling.service.settings.settings import load_settings
from findling.stores.keyword.leg import TantivyLeg
from findling.stores.sqlite.store import SqliteStore
from findling.text.query.parser import parse
from findling.text.query.query_mode import read
from tests.processes import BoundedProcess, complaints

AS_PLAIN_USER = """
import ctypes, os, sys
if os.geteuid() == 0:
    for right in (1, 2):  # CAP_DAC_OVERRIDE and CAP_DAC_READ_SEARCH, with which root passes over permissions
        if ctypes.CDLL(None, use_errno=True).prctl(24, right, 0, 0, 0):  # PR_CAPBSET_DROP, which holds from exec on
            sys.exit(f"the rights of root cannot be given up here: {os.strerror(ctypes.get_errno())}")
os.execv(sys.executable, [sys.executable, "-c", *sys.argv[1:]])
"""
MAIN = "import sys; from findling.faces.cli.main import run; sys.exit(run())"
EACH = """
import io, json, sys
from contextlib import redirect_stderr, redirect_stdout
from findling.faces.cli.main import run
for command in json.loads(sys.argv[1]):
    streams = [io.TextIOWrapper(io.BytesIO(), "utf-8", newline="") for _ in range(2)]
    with redirect_stdout(streams[0]), redirect_stderr(streams[1]):
        code = run(command)
    for stream in streams:
        stream.seek(0)
    print(json.dumps([code, *(stream.read() for stream in streams)]))
"""
EVERYTHING = 1 << 20
"""A limit that cuts nothing off."""

_SYLLABLES = "ba ko ri lu me ta no si pe du fa gi ho ja ke lo mu na po ra".split()
WORDS = [first + second for first in _SYLLABLES for second in _SYLLABLES]
QUERIES = (
    "bako", "riluk rilu", "meta nosi", "pedu fagi hoja", '"kelo muna"', "pora -baba", "koko riri lulu", "rilu meta",
    "duke", "tasi nope sidu pefa",
)  # fmt: skip


Answers = dict[str, dict[int, float]]
"""Query → every chunk that it finds, with its score."""


class Outcome(NamedTuple):
    """The end of a command."""

    code: int
    out: str
    err: str

    @property
    def complaints(self) -> str:
        """The lines on stderr without those that depend on the moment."""
        return complaints(self.err)


class State(NamedTuple):
    """The content of a workspace: resource → text and chunk ids, and every entry of the leg, also repeated ones."""

    resources: dict[str, tuple[str, tuple[int, ...]]]
    leg_entries: list[int]

    @property
    def chunk_ids(self) -> list[int]:
        return sorted(cid for _, cids in self.resources.values() for cid in cids)


class Playground:
    """One root, one home, and everything tests do with them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.root = folder / "tree"
        self.home = folder / "workspaces"
        self.root.mkdir(parents=True)
        (folder / "config.toml").write_text('[profiles.exact]\ntypos = "ignore"\n')
        self.settings: dict[str, str] = {}
        self._processes: list[BoundedProcess] = []

    @property
    def environ(self) -> dict[str, str]:
        kept = {name: value for name, value in os.environ.items() if not name.startswith("FINDLING_")}
        own = {
            "FINDLING_HOME": str(self.home),
            "FINDLING_CONFIG": str(self.folder / "config.toml"),
            # Searches here are for exact words, and nothing may run on when a test is over.
            "FINDLING_SEARCH_MODE": "keyword",
            "FINDLING_SEARCH_PROFILE": "exact",
            "FINDLING_SEMANTIC_REFINE": "never",
            "FINDLING_COMPACT_AUTO": "false",
        }
        return {**kept, **own, "HOME": str(self.folder), "RUST_BACKTRACE": "0", **self.settings}

    @property
    def workspace(self) -> Path:
        """The folder of the one workspace in the home."""
        (folder,) = self.home.glob("[!.]*")
        return folder

    @property
    def store_file(self) -> Path:
        return self.workspace / "index.sqlite"

    @property
    def leg_folder(self) -> Path:
        return self.workspace / "keyword"

    def write(self, path: str, content: str | bytes) -> Path:
        """Write a file below the root, with its folders."""
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content.encode() if isinstance(content, str) else content)
        return file

    def mark(self, seed: int) -> str:
        """The word that only the text of this seed holds: letters alone, or it would be taken apart."""
        return "q" + "".join("bcdfghjklm"[int(digit)] for digit in str(seed)) + "x"

    def prose(self, seed: int, lines: int) -> str:
        """A text that is the same for the same seed."""
        chance = random.Random(seed)
        return "".join(" ".join(chance.choices(WORDS, k=9)) + f" {self.mark(seed)}\n" for _ in range(lines))

    def plant(self, count: int) -> None:
        """Grow a tree of so many files: prose, headings and code, small ones and large ones."""
        for number in range(count):
            text = self.prose(number, 10 + number * 7 % 90)
            kind = (".txt", ".md", ".py")[number % 3]
            if kind == ".md":
                text = f"# Chapter {number}\n\n{text}\n## Second part\n\n{self.prose(number + 10_000, 20)}"
            elif kind == ".py":
                rows = text.splitlines()
                text = "".join(f"def f{n}_{number}():\n    # {row}\n    pass\n\n" for n, row in enumerate(rows))
            self.write(f"part{number % 7}/file{number}{kind}", text)

    def let_time_pass(self) -> None:
        """Make all times of change an hour older: what has just changed is looked at twice in any case.

        The time at which the status changed cannot be set: that of a file lies 60 ms back.
        """
        then = time.time_ns() - 3600 * 10**9
        for path in (self.root, *self.root.rglob("*")):
            if not path.is_symlink():
                os.utime(path, ns=(then, then))
        time.sleep(0.06)

    def start(self, *args: str, plain_user: bool = False) -> BoundedProcess:
        """Start the command line in a process of its own."""
        return self.start_code(MAIN, *args, plain_user=plain_user)

    def start_code(self, code: str, *args: str, plain_user: bool = False) -> BoundedProcess:
        process = BoundedProcess(
            [sys.executable, *(["-I", "-S", "-c", AS_PLAIN_USER] if plain_user else ["-c"]), code, *args],
            cwd=self.root,
            env=self.environ,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            errors="surrogateescape",
        )
        self._processes.append(process)
        return process

    def close(self) -> None:
        """End what a failed test has left running."""
        for process in self._processes:
            with process:
                process.kill()

    def call(self, *args: str) -> Outcome:
        """Run the command line in this process, which takes a tenth of the time of one of its own."""
        out, err = (io.TextIOWrapper(io.BytesIO(), "utf-8", "surrogateescape", newline="") for _ in range(2))
        with pytest.MonkeyPatch.context() as patch, redirect_stdout(out), redirect_stderr(err):
            patch.chdir(self.root)
            for name in os.environ.keys() - self.environ.keys():
                patch.delenv(name)
            for name, value in self.environ.items():
                patch.setenv(name, value)
            code = run(args)
        said = []
        for stream in (out, err):
            stream.seek(0)
            said.append(stream.read())
        return Outcome(code, *said)

    def run(self, *args: str, plain_user: bool = False) -> Outcome:
        """Run the command line to its end; one that hangs fails the test."""
        return self.finish(self.start(*args, plain_user=plain_user))

    def run_each(self, *commands: Sequence[str], plain_user: bool = False) -> list[Outcome]:
        """Run several commands one after the other in one process, which is half of what each of them takes."""
        done = self.finish(self.start_code(EACH, json.dumps(commands), plain_user=plain_user))
        assert (done.code, done.err) == (0, "")
        return [Outcome(*json.loads(line)) for line in done.out.splitlines()]

    def finish(self, process: BoundedProcess) -> Outcome:
        """Wait for a process; one that hangs is ended and fails the test."""
        try:
            out, err = process.communicate()
        except subprocess.TimeoutExpired:
            pytest.fail(f"{process.args!r} hangs; stderr: {process.communicate()[1]}")
        return Outcome(process.returncode, out, err)

    def search(
        self, query: str, *args: str, plain_user: bool = False, apart: bool = False
    ) -> tuple[dict[str, Any], str]:
        """A search that must end without an error: its document and what stood on stderr.

        It runs in this process, but `apart` in one of its own, which may die of a full disk.
        """
        command = ("search", "--json", "-k", str(EVERYTHING), *args, "--", query)
        code, out, err = self.run(*command, plain_user=plain_user) if plain_user or apart else self.call(*command)
        document: dict[str, Any] = json.loads(out) if code in (0, 1) else {"hits": None}
        assert document["hits"] is not None, err
        assert code == (0 if document["hits"] else 1), err
        return document, err

    def index(self) -> None:
        """Index in this process, which is quicker where the process itself is not what is tested."""
        with self.open() as engine:
            engine.index()

    def look(self, query: str, *, refresh: bool = True) -> list[str]:
        """The same as `found`, in this process and with an engine of its own."""
        with self.open() as engine:
            return sorted({hit.path for hit in engine.search(query, limit=EVERYTHING, refresh=refresh)})

    def found(self, query: str, *args: str, plain_user: bool = False) -> list[str]:
        """The paths of the hits, in order of the alphabet."""
        return sorted({hit["path"] for hit in self.search(query, *args, plain_user=plain_user)[0]["hits"]})

    def skipped(self) -> dict[str, str]:
        """Path → reason of everything that was left out."""
        with self.open() as engine:
            return {entry.path: entry.reason for entry in engine.skipped()}

    def open(self) -> findling.Engine:
        """The library on the same workspace, in this process."""
        return findling.open(self.root, settings=load_settings(self.root, environ=self.environ))

    def state(self) -> State:
        """The stored content, read without changing anything."""
        with SqliteStore.open(self.store_file, readonly=True) as store:
            resources = {}
            for rid in store.rids():
                document = store.document(rid)
                assert document is not None
                resources[rid] = (document.text, tuple(chunk.cid for chunk in document.chunks))
            leg = TantivyLeg.open(self.leg_folder, store_id=store.get_meta("store_id") or "")
            found = leg.search(Not(Word("qqqqqq")), Filters(), EVERYTHING)
            return State(resources, sorted(cid for cid, _ in found.hits))

    def answers(self) -> Answers:
        """Chunk ids and scores that the leg gives, all of them."""
        with SqliteStore.open(self.store_file, readonly=True) as store:
            return _ask(TantivyLeg.open(self.leg_folder, store_id=store.get_meta("store_id") or ""))

    def rebuilt_answers(self) -> Answers:
        """The answers of a leg that is rebuilt from the same store."""
        with SqliteStore.open(self.store_file, readonly=True) as store:
            leg = TantivyLeg.open(self.folder / "rebuilt", store_id="another")
            catch_up(store, leg)
            answers = _ask(leg)
            leg.close()
        shutil.rmtree(self.folder / "rebuilt", ignore_errors=True)
        return answers

    def assert_sound(self) -> None:
        """Every check passes, nothing is there twice, and the leg holds exactly what the store does."""
        with self.open() as engine:
            engine.writer.files.level_leg()  # what is no file is absorbed by the next search
            problems = [check for check in engine.check() if not check.ok and check.name != "disk space"]
        assert problems == []
        state = self.state()
        assert state.leg_entries == state.chunk_ids
        assert len(set(state.leg_entries)) == len(state.leg_entries)

    def assert_complete(self, *, but: Container[str] = ()) -> None:
        """The index holds exactly the files below the root, with the text they have now."""
        files = {path.relative_to(self.root).as_posix(): path for path in self.root.rglob("*")}
        on_disk = {
            f"file:{name}": file.read_text()
            for name, file in files.items()
            if file.is_file() and not file.is_symlink() and name not in but
        }
        assert {rid: text for rid, (text, _) in self.state().resources.items()} == on_disk


def _ask(leg: TantivyLeg) -> Answers:
    return {
        query: {cid: round(score, 5) for cid, score in leg.search(read(parse(query)).node, Filters(), EVERYTHING).hits}
        for query in QUERIES
    }


@pytest.fixture
def playground(tmp_path: Path) -> Iterator[Playground]:
    made = Playground(tmp_path)
    yield made
    made.close()


@pytest.fixture(scope="session")
def new_playground() -> type[Playground]:
    return Playground
