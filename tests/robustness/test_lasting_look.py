"""A watched tree: no search looks at it again, and none misses a change that was made right before it."""

from __future__ import annotations

import os
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import findling
from findling.pipelines.indexing import lasting_look
from findling.pipelines.indexing.freshness import UNSURE_NS
from findling.pipelines.indexing.lasting_look import LastingLooks
from findling.sources.files import still_folders
from findling.sources.files.still_folders import is_quiet, place_of_tree, watch_folders
from findling.sources.files.watching import file_system
from tests.counts import tries
from tests.processes import PATIENCE_S, run_process, small_disk

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="only Linux reports changes in time")

_FILES = 8


@pytest.fixture
def root(tmp_path: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A tree that pays to be watched: by itself, with as many files as a test asks for, or else with eight."""
    made, files = tmp_path / "tree", getattr(request, "param", _FILES)
    if files < lasting_look._LEAST_FILES:
        monkeypatch.setattr(lasting_look, "_LEAST_FILES", files)
    (made / "a" / "b").mkdir(parents=True)
    for number in range(files):
        (made / "a" / ("b" if number % 2 else "") / f"note{number}.md").write_text(f"# Note {number}\n\nword{number}\n")
    (made / "a" / "guide.md").write_text("# Guide\n\nquagga\n")
    return made


@pytest.fixture
def engine(root: Path, tmp_path: Path) -> Iterator[findling.Engine]:
    own = {"store.home": str(tmp_path / "home"), "search.mode": "keyword", "semantic.instant": False}
    if file_system(root) not in still_folders._TELLING:
        pytest.skip("changes on this disk may pass unnoticed")
    time.sleep(2 * UNSURE_NS / 1e9)
    with findling.open(root, settings=findling.Settings().override(own, "test")) as opened:
        settle(opened)
        yield opened


def settle(engine: findling.Engine) -> None:
    """Search until the tree is watched: a first look, and a second one that begins to watch."""
    deadline = time.monotonic() + PATIENCE_S
    while not engine.is_still() and time.monotonic() < deadline:
        engine.search("quagga")
    assert engine.is_still()


def found(engine: findling.Engine, word: str) -> list[str]:
    return sorted(hit.path for hit in engine.search(word))


def edit(root: Path) -> None:
    (root / "a" / "guide.md").write_text("# Guide\n\nokapis\n")


def edit_without_changing_size_or_time(root: Path) -> None:
    file = root / "a" / "guide.md"
    before = file.stat()
    file.write_text(file.read_text().replace("quagga", "okapis"))
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))


def replace_by_another_file(root: Path) -> None:
    other = root.parent / "other.md"
    other.write_text("# Guide\n\nokapis\n")
    other.replace(root / "a" / "guide.md")


def create(root: Path) -> None:
    (root / "a" / "guide2.md").write_text("okapis\n")


def create_in_a_new_folder(root: Path) -> None:
    (root / "a" / "c" / "d").mkdir(parents=True)
    (root / "a" / "c" / "d" / "e.md").write_text("okapis\n")


def move_a_folder_into_the_tree(root: Path) -> None:
    outside = root.parent / "outside"
    outside.mkdir()
    (outside / "e.md").write_text("okapis\n")
    outside.rename(root / "inside")


def replace_the_root(root: Path) -> None:
    root.rename(root.with_name("former"))
    shutil.copytree(root.with_name("former"), root)
    edit(root)


CHANGES = [
    edit, edit_without_changing_size_or_time, replace_by_another_file, create, create_in_a_new_folder,
    move_a_folder_into_the_tree, replace_the_root,
]  # fmt: skip


@pytest.mark.parametrize("change", CHANGES)
def test_the_very_next_search_knows_a_change(
    engine: findling.Engine, root: Path, change: Callable[[Path], None]
) -> None:
    assert found(engine, "okapis") == []
    change(root)
    assert not engine.is_still()
    assert len(found(engine, "okapis")) == 1
    time.sleep(2 * UNSURE_NS / 1e9)
    settle(engine)


def test_a_change_by_another_process_and_one_in_a_new_folder(engine: findling.Engine, root: Path) -> None:
    create_in_a_new_folder(root)
    assert found(engine, "okapis") == ["a/c/d/e.md"]
    time.sleep(2 * UNSURE_NS / 1e9)
    settle(engine)
    run_process(["sh", "-c", "echo kiwis > a/c/d/f.md"], cwd=root, check=True)
    assert found(engine, "kiwis") == ["a/c/d/f.md"]


def test_a_folder_that_was_replaced_between_two_looks_is_watched_again(engine: findling.Engine, root: Path) -> None:
    shutil.copytree(root / "a" / "b", root.parent / "copy")
    shutil.rmtree(root / "a" / "b")
    (root.parent / "copy").rename(root / "a" / "b")
    assert found(engine, "word1") == ["a/b/note1.md"]
    time.sleep(2 * UNSURE_NS / 1e9)
    settle(engine)
    (root / "a" / "b" / "note1.md").write_text("kiwis\n")
    assert found(engine, "kiwis") == ["a/b/note1.md"]


def test_deleted_and_ignored_files_are_gone(engine: findling.Engine, root: Path) -> None:
    assert found(engine, "word4") == ["a/note4.md"]
    (root / "a" / "note4.md").unlink()
    assert found(engine, "word4") == []
    time.sleep(2 * UNSURE_NS / 1e9)
    settle(engine)
    (root / "a" / ".ignore").write_text("note6.md\n")
    assert "a/note6.md" not in found(engine, "word6")


def test_a_file_with_another_name_outside_is_looked_at(engine: findling.Engine, root: Path) -> None:
    os.link(root / "a" / "guide.md", root.parent / "twin.md")
    create(root)  # a link outside is not reported: only a look sees that there is one
    engine.search("quagga")
    time.sleep(2 * UNSURE_NS / 1e9)
    settle(engine)
    (root.parent / "twin.md").write_text("# Guide\n\nkiwis\n")
    assert found(engine, "kiwis") == ["a/guide.md"]


def test_files_that_another_engine_forgets_come_back(engine: findling.Engine, root: Path) -> None:
    with findling.open(root, settings=engine._settings) as other:
        other.forget(["a/guide.md"])
    assert not engine.is_still()
    assert found(engine, "quagga") == ["a/guide.md"]


def test_writing_and_searching_in_turn_never_misses_anything(engine: findling.Engine, root: Path) -> None:
    for number in range(tries(400, short=12)):
        word = "okapi" + "abcdefghij"[number % 10] + "klmnopqrst"[number // 10 % 10] + "uvwxy"[number // 100]
        (root / "a" / f"new{number % 7}.md").write_text(f"{word}\n")
        assert found(engine, f'"{word}"') == [f"a/new{number % 7}.md"], number
        engine.search("quagga")


def queues() -> set[str]:
    """The queues of events that this process has open."""
    return {file.name for file in Path("/proc/self/fd").iterdir() if "inotify" in os.path.realpath(file)}


def test_a_closed_index_is_not_watched(engine: findling.Engine) -> None:
    watched = queues()
    engine.close()
    assert len(queues()) == len(watched) - 1
    assert engine.search("quagga").hits, "it is opened again"
    assert engine.is_still()


def test_a_tree_has_one_queue_whatever_happens_in_it(engine: findling.Engine, root: Path) -> None:
    watched = len(queues())
    for change in (edit, create_in_a_new_folder, edit_without_changing_size_or_time):
        change(root)
        engine.search("okapis")
        time.sleep(2 * UNSURE_NS / 1e9)
        settle(engine)
    assert len(queues()) == watched


@pytest.mark.parametrize("root", [lasting_look._LEAST_FILES], indirect=True)
def test_a_still_tree_is_not_looked_at(engine: findling.Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    looked: list[object] = []
    monkeypatch.setattr(findling.pipelines.indexing.freshness, "changed_ns", looked.append)
    assert found(engine, "quagga") == ["a/guide.md"]
    assert looked == []


# Looks that a fork of the warm process leaves to the next one


@pytest.fixture
def relay(engine: findling.Engine) -> Iterator[LastingLooks]:
    """The looks of a process that has one of a fork."""
    looks, fork = LastingLooks(), LastingLooks()
    assert relayed(fork, engine)
    assert fork.own is not None
    looks.keep(fork.own._replace(queue=os.dup(fork.own.queue)))
    fork.close()
    yield looks
    looks.close()


def relayed(relay: LastingLooks, engine: findling.Engine) -> bool:
    return relay.is_fresh(engine.opened.files.store, engine.root, engine._disk._options)


def test_a_relayed_look_is_not_made_again(
    engine: findling.Engine, relay: LastingLooks, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked: list[object] = []
    monkeypatch.setattr(findling.pipelines.indexing.freshness, "changed_ns", looked.append)
    for _ in range(3):
        relay.tidy()
        assert relayed(relay, engine)
    assert (looked, relay.own) == ([], None)


@pytest.mark.parametrize("change", CHANGES)
def test_a_relayed_look_never_hides_a_change(
    engine: findling.Engine, root: Path, relay: LastingLooks, change: Callable[[Path], None]
) -> None:
    change(root)
    assert not relayed(relay, engine)
    assert len(found(engine, "okapis")) == 1
    relay.tidy()
    time.sleep(2 * UNSURE_NS / 1e9)
    settle(engine)
    assert relayed(relay, engine)
    assert relay.own is not None, "it was looked at again"


def test_a_relayed_look_is_for_one_state_and_its_rules(engine: findling.Engine, relay: LastingLooks) -> None:
    options = engine._disk._options
    other = options._replace(rules=options.rules._replace(hidden=not options.rules.hidden))
    assert not relay.is_fresh(engine.opened.files.store, engine.root, other)
    with findling.open(engine.root, settings=engine._settings) as another:
        another.forget(["a/guide.md"])
    assert not relayed(relay, engine)


def test_a_relayed_look_that_is_old_is_made_again_with_the_same_watch(
    engine: findling.Engine, relay: LastingLooks, monkeypatch: pytest.MonkeyPatch
) -> None:
    (kept,) = relay._kept.values()
    relay._kept[kept.root] = kept._replace(until=0.0)
    assert relayed(relay, engine)
    assert relay.own is not None
    assert relay.own.queue == kept.queue
    assert relay.own.until > time.monotonic()


def test_files_with_other_names_are_looked_at_in_a_relayed_look(engine: findling.Engine, root: Path) -> None:
    os.link(root / "a" / "guide.md", root.parent / "twin.md")
    create(root)
    engine.search("quagga")
    time.sleep(2 * UNSURE_NS / 1e9)
    settle(engine)
    relay = LastingLooks()
    assert relayed(relay, engine)
    assert relay.own is not None
    (root.parent / "twin.md").write_text("# Guide\n\nkiwis\n")
    assert not relayed(relay, engine)
    relay.close()


def watched(root: Path) -> int:
    queue = watch_folders(root, [""])
    if queue is None:
        pytest.skip("changes on this disk may pass unnoticed")
    return queue


def test_folders_are_not_still_when_the_queue_was_full(tmp_path: Path) -> None:
    queue = watched(tmp_path)
    assert is_quiet(queue)
    most = int(Path("/proc/sys/fs/inotify/max_queued_events").read_text())
    ours, others = tmp_path / "x", tmp_path / "y"
    for _ in range(most // 2 + 1):  # equal events in a row count once
        ours.touch()
        others.touch()
    assert not is_quiet(queue)
    os.close(queue)


@pytest.mark.parametrize("name", ["tree", "a tree\twith \\ and\nlines"])
def test_only_a_mount_in_the_tree_moves_it(tmp_path: Path, name: str) -> None:
    """Another disk elsewhere says nothing about the tree; programs mount some all the time."""
    (tmp_path / name).mkdir()
    place = place_of_tree(tmp_path / name)
    assert place is not None
    with small_disk(tmp_path / f"{name} of another", "100k"):
        assert place_of_tree(tmp_path / name) == place
    with small_disk(tmp_path / name / "inner", "100k"):
        assert place_of_tree(tmp_path / name) != place
    assert place_of_tree(tmp_path / name) == place


def test_a_forked_child_takes_nothing_away(tmp_path: Path) -> None:
    os.close(watched(tmp_path))
    program = """
import os, sys
from pathlib import Path
from findling.sources.files.still_folders import is_quiet, watch_folders
queue = watch_folders(Path(sys.argv[1]), [""])
assert is_quiet(queue)
Path(sys.argv[1], "x").touch()
child = os.fork()
if not child:
    os._exit(is_quiet(queue))
assert os.waitpid(child, 0)[1] == 0, "the child claims that nothing has changed"
assert not is_quiet(queue), "the child has taken the event"
"""
    ended = run_process([sys.executable, "-c", program, str(tmp_path)])
    assert ended.returncode == 0, ended.stderr
