"""Documents that break their parsers, and workers that die, cost one file each and never the run."""

from __future__ import annotations

import contextlib
import os
import random
import re
import signal
import subprocess
import sys
import threading
import time
import zipfile
from functools import partial
from pathlib import Path

import pytest

import findling
from findling.domain.ports import SkippedPath
from findling.pipelines.indexing.freshness import UNSURE_NS, IndexOptions
from findling.service.index import refresh
from tests.counts import tries
from tests.processes import PATIENCE_S, BoundedProcess, run_process

pytestmark = pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="finds child processes under /proc")


def open_engine(root: Path, home: Path, **values: object) -> findling.Engine:
    settings = findling.Settings().override({"store.home": str(home), "search.mode": "keyword", **values}, "test")
    return findling.open(root, settings=settings)


def failures(engine: findling.Engine) -> dict[str, SkippedPath]:
    return {entry.path: entry for entry in engine.failed()}


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A page, a note, and room for whatever is to go wrong between them."""
    root = tmp_path / "tree"
    root.mkdir()
    (root / "a-page.html").write_text("<h1>Lighthouse</h1><p>The keeper counts the ships.</p>")
    (root / "z-note.txt").write_text("The harbour master counts the boats.")
    return root


def assert_the_rest_is_there(engine: findling.Engine) -> None:
    assert [hit.path for hit in engine.search("keeper")] == ["a-page.html"]
    assert [hit.path for hit in engine.search("harbour")] == ["z-note.txt"]


ABANDONED = """
import sys, threading
import findling
from findling.pipelines.indexing import workers

workers._HELD_BACK_BYTES = 1  # so that a thread waits for its turn
begun = threading.Event()

def never_ending(progress):
    if progress.done:
        begun.set()
        threading.Event().wait()

def run():
    settings = findling.Settings().override(
        {"store.home": sys.argv[2], "search.mode": "keyword", "index.workers": 2}, "test")
    findling.open(sys.argv[1], settings=settings).index(on_progress=never_ending)

threading.Thread(target=run, daemon=True).start()
assert begun.wait(float(sys.argv[3]))
print("bye")
"""


def test_a_program_ends_beside_an_index_run(tmp_path: Path) -> None:
    root = tmp_path / "tree"
    root.mkdir()
    for number in range(120):
        (root / f"n{number}.txt").write_text(f"Note {number}. " * 9000)
    command = [sys.executable, "-c", ABANDONED, str(root), str(tmp_path / "home"), str(PATIENCE_S)]
    assert run_process(command, check=True).stdout == "bye\n"


def test_a_document_that_takes_too_long_is_given_up(tree: Path, tmp_path: Path) -> None:
    (tree / "slow.html").write_text("<table>" + "<tr><td>cell<td>cell</tr>" * tries(300_000, short=80_000) + "</table>")
    values = {"index.max_seconds": 0.4, "index.max_file_size": 64 << 20}
    with open_engine(tree, tmp_path / "home", **values) as engine:
        report = engine.index()
        assert (report.added, report.failed) == (2, 1)
        assert failures(engine)["slow.html"].reason == "too-slow"
        assert "0.4 s" in failures(engine)["slow.html"].detail
        assert_the_rest_is_there(engine)
    with open_engine(tree, tmp_path / "home", **{**values, "index.max_seconds": 100.0}) as engine:
        assert [hit.path for hit in engine.search("cell", limit=1)] == ["slow.html"], "more time is another try"
        assert failures(engine) == {}


def test_a_document_that_takes_too_much_memory_is_given_up(
    tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(refresh, "IndexOptions", partial(IndexOptions, max_memory=128 << 20))
    with zipfile.ZipFile(tree / "bomb.docx", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("[Content_Types].xml", "<Types/>")
        archive.writestr("word/document.xml", b"<w>" + b"<p>x</p>" * 3_000_000 + b"</w>")
    with open_engine(tree, tmp_path / "home") as engine:
        assert engine.index().failed == 1
        assert failures(engine)["bomb.docx"].reason in ("out-of-memory", "crashed")
        assert_the_rest_is_there(engine)


def test_a_zip_bomb_is_refused_before_it_is_unpacked(tree: Path, tmp_path: Path) -> None:
    with zipfile.ZipFile(tree / "bomb.docx", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("[Content_Types].xml", "<Types/>")
        archive.writestr("word/document.xml", b"<w>" + b" " * (80 << 20) + b"</w>")
    with open_engine(tree, tmp_path / "home") as engine:
        assert engine.index().failed == 1
        assert failures(engine)["bomb.docx"].reason == "too-large"
        assert_the_rest_is_there(engine)


def test_an_xml_bomb_is_refused(tree: Path, tmp_path: Path) -> None:
    entities = "".join(f'<!ENTITY e{n} "{f"&e{n - 1};" * 10}">' for n in range(1, 12))
    (tree / "bomb.xml").write_text(f'<!DOCTYPE b [<!ENTITY e0 "boom">{entities}]><b>&e11;</b>')
    with open_engine(tree, tmp_path / "home") as engine:
        assert engine.index().failed == 1
        assert failures(engine)["bomb.xml"].reason == "damaged"
        assert_the_rest_is_there(engine)


def test_wrong_names_and_damage_are_recorded(tree: Path, tmp_path: Path) -> None:
    (tree / "cut.pdf").write_bytes(b"%PDF-1.7\n1 0 obj\n<<")
    (tree / "noise.docx").write_bytes(random.Random(7).randbytes(5000))
    (tree / "page-by-another-name.doc").write_text(
        "<html><body><p>Actually a saved page about otters</p></body></html>"
    )
    with open_engine(tree, tmp_path / "home") as engine:
        report = engine.index()
        assert report.failed == 2
        assert {path: entry.reason for path, entry in failures(engine).items()} == {
            "cut.pdf": "damaged",
            "noise.docx": "damaged",
        }
        assert [hit.path for hit in engine.search("otters")] == ["page-by-another-name.doc"]
        assert engine.index().failed == 2, "a file that was refused stays on the list without being read again"
        assert_the_rest_is_there(engine)


def test_a_newer_extractor_tries_again(tree: Path, tmp_path: Path) -> None:
    (tree / "cut.pdf").write_bytes(b"%PDF-1.7\n1 0 obj\n<<")
    time.sleep(2 * UNSURE_NS / 1e9)  # a file that was written just now is read again
    with open_engine(tree, tmp_path / "home") as engine:
        engine.index()
        looked_at = engine.index()
        assert (looked_at.updated, looked_at.unchanged, looked_at.bytes_read) == (0, 2, 0)
        store = engine._files.store
        store.set_meta("formats", re.sub(r"\bpdf:\d+", "pdf:0", store.get_meta("formats") or ""))
        pages = []
        again = engine.index(on_progress=lambda event: pages.append(event.path))
        assert again.failed == 1
        assert "cut.pdf" in pages and "a-page.html" not in pages


NOBODY = 1 << 30
"""A process number that no system gives."""


def children() -> set[int]:
    """The processes that this one has started."""
    own = Path(f"/proc/{os.getpid()}/task")
    return {int(pid) for task in own.iterdir() for pid in (task / "children").read_text().split()}


def newest(before: set[int]) -> int:
    """A process that this one has started since then; the servers of other tests are left alone."""
    return next(iter(children() - before), NOBODY)


def test_killed_workers_lose_no_text_file(tmp_path: Path) -> None:
    root = tmp_path / "tree"
    root.mkdir()
    words = ["".join(random.Random(n).choices("abcdefghij", k=7)) for n in range(5000)]
    files = tries(400, short=220)  # 5 MB: four are read without workers
    for number in range(files):
        chance = random.Random(number)
        (root / f"{number:03}.txt").write_text(f"mark{number} " + " ".join(chance.choices(words, k=3000)))
    killed: list[int] = []
    stop, before = threading.Event(), children()

    def kill_now_and_then() -> None:
        # Two kills at most: a third in a row before the new worker has begun would be a system that allows none.
        while len(killed) < 2 and not stop.wait(0.05):
            with contextlib.suppress(OSError):
                pid = newest(before)
                os.kill(pid, signal.SIGKILL)
                killed.append(pid)

    with open_engine(root, tmp_path / "home", **{"index.workers": 2}) as engine:
        thread = threading.Thread(target=kill_now_and_then)
        thread.start()
        try:
            report = engine.index()
        finally:
            stop.set()
            thread.join()
        assert killed, "some worker must have been there to be killed"
        assert (report.added, engine.failed()) == (files, [])
        assert engine.search("mark7").hits[0].path == "007.txt"


def test_a_worker_that_stands_still_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that was stopped cannot keep its own limit of time."""
    monkeypatch.setattr("findling.pipelines.indexing.workers._GRACE_S", 1.0)
    root = tmp_path / "tree"
    root.mkdir()
    for number in range(40):
        (root / f"{number:02}.html").write_text(f"<p>page{number}</p>" + "<p>words and words</p>" * 3000)
    stopped: list[int] = []
    before = children()

    def stop_once(event: findling.IndexProgress) -> None:
        if event.done and not stopped:
            with contextlib.suppress(OSError):
                pid = newest(before)
                os.kill(pid, signal.SIGSTOP)
                stopped.append(pid)

    with open_engine(root, tmp_path / "home", **{"index.workers": 1, "index.max_seconds": 0.5}) as engine:
        report = engine.index(on_progress=stop_once)
        assert stopped
        assert report.added + report.failed == 40
        assert report.failed <= 1
        assert {entry.reason for entry in engine.failed()} <= {"too-slow"}
        assert engine.search("page39").hits


@pytest.mark.parametrize("closed", ["2>&-", "<&- 2>&-", "<&- 2>&- >&-"])
def test_documents_are_read_whatever_descriptors_are_closed(tree: Path, tmp_path: Path, closed: str) -> None:
    code = (
        "import findling, sys; own = {'store.home': sys.argv[2], 'search.mode': 'keyword'};"
        "s = findling.Settings().override(own, 't');"
        "e = findling.open(sys.argv[1], settings=s); r = e.index(); e.close(); sys.exit(r.failed * 10 + r.added)"
    )
    script = f'exec "$0" -c "$1" "$2" "$3" {closed}'
    done = run_process(["sh", "-c", script, sys.executable, code, str(tree), str(tmp_path / "home")])
    assert done.returncode == 2, "two files are read, none fails"


def test_a_first_run_that_is_stopped_goes_on_where_it_was(tmp_path: Path) -> None:
    root = tmp_path / "tree"
    root.mkdir()
    for number in range(60):
        (root / f"{number:02}.txt").write_text(f"mark{number} " + "some words " * 3000)

    class StopError(Exception):
        pass

    def stop(event: findling.IndexProgress) -> None:
        if event.done == 50:
            raise StopError

    values = {"index.batch_bytes": 100_000}
    with open_engine(root, tmp_path / "home", **values) as engine, pytest.raises(StopError):
        engine.index(on_progress=stop)
    with open_engine(root, tmp_path / "home", **values) as engine:
        report = engine.index()
        assert report.unchanged >= 40
        assert report.added <= 20
        assert engine.search("mark59").hits[0].path == "59.txt"


SLOW_RUN = """
import sys, threading, findling

def tell(event):
    print(event.done, flush=True)
    if event.done >= int(sys.argv[3]):
        threading.Event().wait()  # it never comes to its end, however late the signal is

settings = findling.Settings().override({"store.home": sys.argv[2], "search.mode": "keyword"}, "test")
with findling.open(sys.argv[1], settings=settings) as engine:
    engine.index(on_progress=tell)
"""


@pytest.mark.parametrize("kind", [signal.SIGKILL, signal.SIGINT])
def test_no_worker_outlives_its_parent(tmp_path: Path, kind: signal.Signals) -> None:
    root = tmp_path / "tree"
    root.mkdir()
    files = tries(600, short=60)
    for number in range(files):
        (root / f"{number}.html").write_text(f"<p>page {number}</p>" + "<p>words and words</p>" * 1000)
    run = BoundedProcess(
        [sys.executable, "-c", SLOW_RUN, str(root), str(tmp_path / "home"), str(files // 2)],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    assert run.stdout
    while int(run.stdout.readline()) < 5:
        pass
    workers = [
        int(pid) for task in Path(f"/proc/{run.pid}/task").iterdir() for pid in (task / "children").read_text().split()
    ]
    assert workers
    run.send_signal(kind)
    run.stdout.close()
    assert run.wait() != 0
    deadline = time.monotonic() + PATIENCE_S
    while any(is_running(pid) for pid in workers):
        assert time.monotonic() < deadline, "a worker is still there"
        time.sleep(0.05)
    with open_engine(root, tmp_path / "home") as engine:
        engine.index()
        assert engine.search(f"page {files - 1}").hits


def is_running(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


FORKED = """
import os, signal, sys, time
from findling.pipelines.indexing.child_processes import ForkedProcess, is_alone

def tell():
    os.write(1, " ".join(sorted(os.listdir("/proc/self/fd"), key=int)).encode())
    os._exit(7)

with open(sys.argv[1], "w") as held:
    assert is_alone()
    first, second = ForkedProcess(lambda: time.sleep(600)), ForkedProcess(tell)
    print(second.stdout.read().decode(), second.wait(), flush=True)
    first.kill()
    assert first.wait() == -signal.SIGKILL
    failed = ForkedProcess(lambda: 1 / 0)
    print(failed.wait(), flush=True)
"""


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="only Linux tells whether a process may fork")
def test_a_fork_holds_no_file_of_its_parent(tmp_path: Path) -> None:
    """Else it would keep the write lock of a parent that was killed, or the pipe that ends another fork."""
    done = run_process([sys.executable, "-c", FORKED, str(tmp_path / "held")])
    # The listing itself has one open.
    assert done.stdout.splitlines() == ["0 1 2 3 7", "4"], done.stderr


def test_code_whose_syntax_tree_cannot_be_made_is_cut_by_patterns(tmp_path: Path) -> None:
    """A worker that dies over a batch of code does its files again without trees: none of them is lost."""
    root = tmp_path / "tree"
    root.mkdir()
    files = tries(150, short=80)
    for number in range(files):
        body = "".join(f"int f{number}_{n}(int a) {{ return a + {n}; }}\n" for n in range(400))
        (root / f"{number:03}.c").write_text(f"/* mark{number} */\n{body}")
    killed: list[int] = []
    before = children()

    def kill_once(event: findling.IndexProgress) -> None:
        if event.done and not killed:
            with contextlib.suppress(OSError):
                os.kill(newest(before), signal.SIGKILL)
                killed.append(event.done)

    with open_engine(root, tmp_path / "home", **{"index.workers": 1}) as engine:
        report = engine.index(on_progress=kill_once)
        assert killed
        assert (report.added, engine.failed()) == (files, [])
        assert engine.search(f"f{files - 1}_399").hits
