"""Watched roots follow their files: what changes is taken in, once, by one watcher, whatever happens to the root."""

from __future__ import annotations

import json
import shutil
import stat
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from findling.domain.errors import CorruptError, LockedError, UsageError
from findling.domain.reports import IndexReport
from findling.service.engine.engine import open_engine
from findling.service.server.watch_list import (
    WatchList,
    note_indexed,
    note_state,
    watch_accounts,
    watch_lock,
    watcher_of,
)
from findling.service.server.watch_listening import Calm, settings_for
from findling.service.server.watcher import index_root, watch_roots
from findling.service.settings.settings import Settings, load_settings
from findling.service.workspace.workspaces import create_workspace
from findling.stores.lock import WriteLock
from tests.processes import PATIENCE_S, BoundedProcess


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path / "user"))
    monkeypatch.setenv("FINDLING_CONFIG", str(tmp_path / "config.toml"))
    monkeypatch.setenv("FINDLING_HOME", str(tmp_path / "workspaces"))
    monkeypatch.setenv("FINDLING_SEMANTIC_REFINE", "never")
    return tmp_path / "workspaces"


@pytest.fixture
def settings(home: Path) -> Settings:
    chosen = {"search.mode": "keyword", "semantic.instant": False, "watch.wait_s": 0.5}
    return load_settings().override(chosen, "test")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    made = tmp_path.resolve() / "project"
    (made / "docs").mkdir(parents=True)
    (made / "docs" / "trees.md").write_text("Trees grow slowly.\n")
    return made


class Watching:
    """A watcher in a thread, with everything that it has noted and taken in."""

    def __init__(self, roots: Callable[[], list[Path]], settings: Settings, called: str = "a test") -> None:
        self.notes: list[str] = []
        self.runs: list[tuple[Path, IndexReport]] = []
        self.before_run: Callable[[Path], None] = lambda _: None
        self._settings = settings
        self._stop = threading.Event()
        self._thread = threading.Thread(
            target=watch_roots,
            args=(roots, self._index_root),
            kwargs={"settings": settings, "should_stop": self._stop, "note": self.notes.append, "called": called},
        )

    def start(self) -> Watching:
        self._thread.start()
        return self

    def stop(self) -> None:
        self._stop.set()
        self._thread.join()

    def is_alive(self) -> bool:
        return self._thread.is_alive()

    def _index_root(self, root: Path) -> None:
        self.before_run(root)
        self.runs.append((root, index_root(root, self._settings)))


@pytest.fixture
def watching(settings: Settings) -> Iterator[Callable[..., Watching]]:
    """Start watching roots; it ends with the test."""
    started: list[Watching] = []

    def begin(*roots: Path, called: str = "a test", **changes: object) -> Watching:
        own = settings.override({name.replace("__", "."): value for name, value in changes.items()}, "test")
        started.append(Watching(lambda: list(roots), own, called).start())
        if called == "a test":
            eventually(lambda: len(started[-1].runs) >= len(roots))
        return started[-1]

    yield begin
    for each in started:
        each.stop()


def eventually(holds: Callable[[], object]) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not holds():
        assert time.monotonic() < deadline, "it did not come to that"
        time.sleep(0.01)


def is_quiet(watcher: Watching) -> bool:
    """Whether a second passes without a run."""
    runs = len(watcher.runs)
    time.sleep(1.0)
    return len(watcher.runs) == runs


def found(query: str, root: Path, settings: Settings) -> list[str]:
    """The hits of a search that indexes nothing by itself."""
    with open_engine(root, settings=settings) as engine:
        return sorted(hit.path for hit in engine.search(query, refresh=False).hits)


modes = pytest.mark.parametrize("polling", ["auto", "always"])


@modes
def test_what_changes_can_be_found(
    watching: Callable[..., Watching], root: Path, settings: Settings, polling: str
) -> None:
    watching(root, watch__polling=polling)
    (root / "docs" / "new.md").write_text("A zebra crossing.\n")
    eventually(lambda: found("zebra", root, settings) == ["docs/new.md"])
    (root / "docs" / "new.md").rename(root / "docs" / "newer.md")
    eventually(lambda: found("zebra", root, settings) == ["docs/newer.md"])
    (root / "docs").rename(root / "texts")
    eventually(lambda: found("zebra", root, settings) == ["texts/newer.md"])
    (root / "texts" / "newer.md").write_text("A giraffe instead.\n")
    eventually(lambda: found("giraffe", root, settings) == ["texts/newer.md"])
    (root / "texts" / "newer.md").unlink()
    eventually(lambda: found("giraffe", root, settings) == [])
    assert found("trees", root, settings) == ["texts/trees.md"]


@modes
def test_a_root_that_vanishes_is_waited_for_and_its_index_stays(
    watching: Callable[..., Watching], root: Path, settings: Settings, polling: str
) -> None:
    watcher = watching(root, watch__polling=polling)
    shutil.rmtree(root)
    eventually(lambda: any("is gone; waiting" in note for note in watcher.notes))
    assert not root.exists()
    (root / "docs").mkdir(parents=True)
    eventually(lambda: watcher.notes[-1] == f"watching {root}")
    (root / "docs" / "back.md").write_text("Back with a zebra.\n")
    eventually(lambda: found("zebra", root, settings) == ["docs/back.md"])
    assert watcher.is_alive()


def test_a_disk_that_is_not_mounted_empties_nothing(
    watching: Callable[..., Watching], root: Path, settings: Settings
) -> None:
    """The empty folder at the mount point is another one than before."""
    watcher = watching(root)
    runs, before = len(watcher.runs), _since(settings, root)
    away = root.rename(root.with_name("away"))
    root.mkdir()
    eventually(lambda: _since(settings, root) > before)
    time.sleep(0.5)  # time enough for a mistake
    assert len(watcher.runs) == runs
    assert found("trees", root, settings) == ["docs/trees.md"]
    root.rmdir()
    (away / "docs" / "trees.md").write_text("Trees, and a zebra.\n")
    away.rename(root)
    eventually(lambda: found("zebra", root, settings) == ["docs/trees.md"])


def _since(settings: Settings, root: Path) -> float:
    (account,) = [each for each in watch_accounts(Path(settings["store.home"])) if each.root == root]
    return account.since or 0.0


def test_a_file_alone_can_be_watched(watching: Callable[..., Watching], root: Path, settings: Settings) -> None:
    file = root / "docs" / "trees.md"
    watcher = watching(file)
    (root / "docs" / "other.md").write_text("A zebra that nobody asked for.\n")
    file.write_text("Trees, and a giraffe.\n")
    eventually(lambda: found("giraffe", file, settings) == ["trees.md"])
    assert found("zebra", file, settings) == []
    file.unlink()
    eventually(lambda: any("is gone" in note for note in watcher.notes))
    file.write_text("A lion is back.\n")
    eventually(lambda: found("lion", file, settings) == ["trees.md"])


def test_what_changes_during_a_run_makes_one_more(watching: Callable[..., Watching], root: Path) -> None:
    watcher = watching(root)
    runs, begun, may_go = len(watcher.runs), threading.Event(), threading.Event()

    def hold(_: Path) -> None:
        begun.set()
        may_go.wait(PATIENCE_S)

    watcher.before_run = hold
    (root / "docs" / "first.md").write_text("first\n")
    assert begun.wait(PATIENCE_S)
    for number in range(30):
        (root / "docs" / f"{number}.md").write_text(f"number {number}\n")
        time.sleep(0.03)  # longer in all than changes are waited for
    time.sleep(1.0)  # until those are due as well
    may_go.set()
    eventually(lambda: len(watcher.runs) >= runs + 2)
    eventually(lambda: is_quiet(watcher))
    first, *others = [report.changed for _, report in watcher.runs[runs:]]
    # A busy machine may notice the last ones when the second run has begun.
    assert (first, set(others)) == (31, {0})
    assert len(others) < 30, "a run for each change"


def test_rules_that_change_count_at_once(watching: Callable[..., Watching], root: Path, settings: Settings) -> None:
    watching(root)
    (root / ".gitignore").write_text("docs/\n")
    eventually(lambda: found("trees", root, settings) == [])
    (root / ".gitignore").unlink()
    eventually(lambda: found("trees", root, settings) == ["docs/trees.md"])
    (root / ".findling.toml").write_text('[index]\nexclude = ["*.md"]\n')
    eventually(lambda: found("trees", root, settings) == [])
    (root / ".findling.toml").unlink()
    eventually(lambda: found("trees", root, settings) == ["docs/trees.md"])


def test_rules_above_the_root_count_too(watching: Callable[..., Watching], root: Path, settings: Settings) -> None:
    (root / ".git").mkdir()
    watching(root / "docs")
    assert found("trees", root / "docs", settings) == ["trees.md"]
    (root / ".gitignore").write_text("trees.*\n")
    eventually(lambda: found("trees", root / "docs", settings) == [])


def test_settings_that_are_wrong_for_a_moment_end_nothing(
    watching: Callable[..., Watching], root: Path, settings: Settings
) -> None:
    watcher = watching(root)
    (root / ".findling.toml").write_text("[index\n")
    eventually(lambda: any(".findling.toml" in note for note in watcher.notes))
    (root / ".findling.toml").write_text("")
    (root / "docs" / "new.md").write_text("A zebra crossing.\n")
    eventually(lambda: found("zebra", root, settings) == ["docs/new.md"])


def test_an_index_inside_its_root_does_not_wake_itself(
    watching: Callable[..., Watching], root: Path, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FINDLING_HOME", str(root / "data" / "workspaces"))
    watcher = watching(root, store__home=str(root / "data" / "workspaces"), index__hidden=True)
    eventually(lambda: len(watcher.runs) >= 1)
    (root / "docs" / "new.md").write_text("A zebra crossing.\n")
    eventually(lambda: any(report.added == 1 for _, report in watcher.runs))
    eventually(lambda: is_quiet(watcher))


def test_one_watcher_for_each_root_and_another_takes_over(
    watching: Callable[..., Watching], root: Path, home: Path, settings: Settings
) -> None:
    first = watching(root)
    second = watching(root, called="findling serve")
    eventually(lambda: second.notes)
    assert "is watched by process" in second.notes[0]
    assert "(a test)" in second.notes[0]
    (root / "docs" / "new.md").write_text("A zebra crossing.\n")
    eventually(lambda: found("zebra", root, settings))
    assert second.runs == []
    first.stop()
    eventually(lambda: second.runs)
    assert watcher_of(home, root)[1] == "findling serve"
    (root / "docs" / "newer.md").write_text("A giraffe.\n")
    eventually(lambda: found("giraffe", root, settings))


def test_roots_come_and_go_with_the_list(settings: Settings, root: Path, home: Path) -> None:
    listed = WatchList(home)
    watcher = Watching(listed.roots, settings).start()
    try:
        WatchList(home).add(root)
        eventually(lambda: watcher.runs)
        WatchList(home).remove(root)
        eventually(lambda: watcher.notes[-1] == f"{root} is no longer watched")
        assert watcher_of(home, root)[0] is None
        runs = len(watcher.runs)
        (root / "docs" / "new.md").write_text("A zebra crossing.\n")
        (home / ".watched.json").write_text("{")
        eventually(lambda: "cannot be read" in watcher.notes[-1])
        assert len(watcher.runs) == runs
        (home / ".watched.json").unlink()
        WatchList(home).add(root)
        eventually(lambda: found("zebra", root, settings))
    finally:
        watcher.stop()


def test_a_workspace_that_is_being_written_is_tried_again(
    watching: Callable[..., Watching], root: Path, settings: Settings
) -> None:
    watching(root)
    with open_engine(root, settings=settings) as engine:
        lock = WriteLock(engine.home / "write.lock")
    with lock:
        (root / "docs" / "new.md").write_text("A zebra crossing.\n")
        with pytest.raises(LockedError):
            index_root(root, settings)
        time.sleep(0.5)
    eventually(lambda: found("zebra", root, settings) == ["docs/new.md"])


def test_what_goes_wrong_is_told_once_and_ends_nothing(
    watching: Callable[..., Watching], root: Path, settings: Settings, home: Path
) -> None:
    watcher = watching(root)

    def fail(_: Path) -> None:
        raise UsageError("the sky is falling")

    watcher.before_run = fail
    for number in range(3):
        (root / "docs" / "new.md").write_text(f"A zebra crossing {number}.\n")
        time.sleep(0.4)
    eventually(lambda: f"{root}: the sky is falling" in watcher.notes)
    assert watcher.notes.count(f"{root}: the sky is falling") == 1
    (account,) = watch_accounts(home)
    assert "the sky is falling" in account.problem
    watcher.before_run = lambda _: None
    (root / "docs" / "new.md").write_text("A zebra at last.\n")
    eventually(lambda: found("zebra", root, settings) == ["docs/new.md"])
    eventually(lambda: watch_accounts(home)[0].problem == "")


def test_a_home_that_cannot_be_written_ends_nothing(settings: Settings, root: Path, home: Path) -> None:
    home.mkdir()
    (home / ".watching").write_text("a file in the place of the folder")
    watcher = Watching(lambda: [root], settings).start()
    try:
        eventually(lambda: any("is not watched" in note for note in watcher.notes))
        (home / ".watching").unlink()
        eventually(lambda: watcher.runs)
    finally:
        watcher.stop()


def test_every_workspace_of_a_root_follows(root: Path, home: Path, settings: Settings) -> None:
    create_workspace("papers", home=home, root=root)
    report = index_root(root, settings)
    assert report.added == 1
    named = settings.override({"workspace.name": "papers"}, "test")
    assert found("trees", root, named) == ["docs/trees.md"]
    with open_engine(root, settings=settings) as engine:
        engine.index()
    (root / "docs" / "new.md").write_text("A zebra crossing.\n")
    assert index_root(root, settings).added == 2
    assert found("zebra", root, named) == found("zebra", root, settings) == ["docs/new.md"]


def test_a_run_can_be_stopped_and_goes_on(root: Path, settings: Settings) -> None:
    should_stop = threading.Event()
    should_stop.set()
    assert index_root(root, settings, should_stop=should_stop) == IndexReport()
    should_stop.clear()
    assert index_root(root, settings, should_stop=should_stop).added == 1


def test_afterwards_the_index_is_open(root: Path, settings: Settings) -> None:
    seen: list[int] = []
    index_root(root, settings, afterwards=lambda engine, _: seen.append(engine.status().resources))
    assert seen == [1]


def test_settings_of_a_root_are_its_own(root: Path, settings: Settings) -> None:
    (root / ".findling.toml").write_text('[index]\nexclude = ["x"]\n[search]\nmode = "semantic"\n')
    own = settings_for(root, settings)
    assert own["index.exclude"] == ("x",)
    assert own["search.mode"] == "keyword", "what was given counts for more than a file"


def test_changes_wait_for_quiet_but_not_for_ever() -> None:
    calm = Calm(quiet_s=0.2, wait_s=2.0)
    assert not calm.is_waiting
    calm.disturb(10.0)
    assert calm.left_s(10.0) == pytest.approx(0.2)
    calm.disturb(10.1)
    assert calm.left_s(10.2) == pytest.approx(0.1)
    for tenth in range(1, 20):
        calm.disturb(10.0 + tenth / 10)
    assert calm.left_s(11.95) == pytest.approx(0.05)
    calm.clear()
    assert not calm.is_waiting
    calm.disturb(20.0)
    assert calm.left_s(20.0) == pytest.approx(0.2)


def test_the_list_is_for_its_owner_and_survives(home: Path, root: Path) -> None:
    watched = WatchList(home)
    assert watched.roots() == []
    assert not home.exists(), "asking makes nothing"
    assert watched.add(root)
    assert not watched.add(root)
    assert WatchList(home).roots() == [root]
    assert stat.S_IMODE((home / ".watched.json").stat().st_mode) == 0o600
    (home / ".watched.json.new").write_text("what a killed process left")
    assert watched.add(root / "docs")
    assert watched.roots() == [root, root / "docs"]
    assert watched.remove(root)
    assert not watched.remove(root)
    assert watched.roots() == [root / "docs"]


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"version": 2, "roots": []}', '{"version": 1, "roots": [3]}'])
def test_a_damaged_list_is_an_error_that_names_it(home: Path, text: str) -> None:
    home.mkdir()
    (home / ".watched.json").write_text(text)
    with pytest.raises(CorruptError, match=r"\.watched\.json"):
        WatchList(home).roots()
    with pytest.raises(CorruptError):
        WatchList(home).add(home)
    assert (home / ".watched.json").read_text() == text


def test_two_processes_add_at_once(home: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from findling.service.server.watch_list import WatchList\n"
        "for number in range(20): WatchList(Path(sys.argv[1])).add(Path(f'/{sys.argv[2]}{number}'))"
    )
    both = [BoundedProcess([sys.executable, "-c", code, str(home), name]) for name in "ab"]
    assert [each.wait() for each in both] == [0, 0]
    assert len(WatchList(home).roots()) == 40


def test_the_account_tells_who_watches_and_what_was_taken_in(home: Path, root: Path) -> None:
    WatchList(home).add(root)
    (account,) = watch_accounts(home)
    assert (account.pid, account.is_missing, account.taken_in) == (None, False, None)
    note_state(home, root, by="a test", since=5.0, polls=True, problem="none of this counts without a watcher")
    (account,) = watch_accounts(home)
    assert (account.pid, account.polls, account.problem) == (None, False, "")
    with watch_lock(home, root):
        note_indexed(home, root, IndexReport(added=2, removed=1))
        (account,) = watch_accounts(home)
        assert account.pid is not None
        assert (account.by, account.since, account.polls, account.problem) == ("a test", 5.0, True, "")
        assert account.taken_in == {"added": 2, "updated": 0, "removed": 1}
        before = account.taken_in_at
        note_indexed(home, root, IndexReport(unchanged=3))
        assert watch_accounts(home)[0].taken_in_at == before
        WatchList(home).remove(root)
        (account,) = watch_accounts(home)
        assert not account.is_listed
    assert watch_accounts(home) == []
    shutil.rmtree(root)
    WatchList(home).add(root)
    assert watch_accounts(home)[0].is_missing
    (home / ".watching" / "broken.json").write_text(json.dumps([1]))
    assert len(watch_accounts(home)) == 1
