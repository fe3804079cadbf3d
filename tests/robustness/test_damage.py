"""A workspace that cannot be written, is damaged, or has no space: the answer comes, or the error says what to do."""

from __future__ import annotations

import json
import os
import shutil
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from findling.stores.sqlite.store import SqliteStore
from tests.counts import sample
from tests.processes import small_disk

if TYPE_CHECKING:
    from tests.robustness.conftest import Playground

pytestmark = pytest.mark.skipif(os.name == "nt", reason="permissions and limits of POSIX")

FILES = 30


# A workspace that cannot be written


@contextmanager
def unwritable(folder: Path) -> Iterator[None]:
    """Take the right to write from a folder and everything in it."""
    paths = [folder, *folder.rglob("*")]
    modes = [path.stat().st_mode for path in paths]
    for path in reversed(paths):
        path.chmod(path.stat().st_mode & ~0o222)
    try:
        yield
    finally:
        for path, mode in zip(paths, modes, strict=True):
            path.chmod(mode)


def test_a_workspace_that_cannot_be_written_can_be_searched(playground: Playground) -> None:
    playground.plant(FILES)
    playground.let_time_pass()
    playground.index()
    with unwritable(playground.workspace):
        document, err = playground.search(playground.mark(3), plain_user=True)
        assert {hit["path"] for hit in document["hits"]} == {"part3/file3.txt"}
        assert (document["degraded"], err) == ([], "")

        playground.write("part3/file3.txt", playground.prose(777, 20))
        document, err = playground.search(playground.mark(3), plain_user=True)
        assert {hit["path"] for hit in document["hits"]} == {"part3/file3.txt"}
        assert "1 changed files may be missing" in err
        assert "cannot be written" in err
        assert len(document["degraded"]) == 1

        commands = (["index"], ["index", "--rebuild"], ["doctor", "--repair"], ["forget", "part3", "--force"])
        outcomes = playground.run_each(*commands, plain_user=True)
        for command, (code, out, err) in zip(commands, outcomes, strict=True):
            assert (code, out) == (2, ""), command
            assert str(playground.workspace) in err
            assert "cannot be written" in err
            assert "  try: check" in err
    assert playground.found(playground.mark(3)) == []
    assert playground.found(playground.mark(777)) == ["part3/file3.txt"]
    playground.assert_complete()


def test_a_leg_that_is_behind_and_cannot_be_written(playground: Playground) -> None:
    playground.plant(FILES)
    playground.index()
    with SqliteStore.open(playground.store_file) as store:
        store.write((), ["file:part3/file3.txt"])
    with unwritable(playground.workspace):
        document, err = playground.search(playground.mark(3), "--no-index", plain_user=True)
        assert document["hits"] == [], "what the truth has lost is not found, although the leg still knows it"
        assert "the keyword leg is behind by 1: " in err
        assert playground.search(playground.mark(6), "--no-index", plain_user=True)[0]["hits"]


def test_a_log_that_cannot_be_merged_loses_nothing(playground: Playground) -> None:
    """The log of a killed run is read, or the error says so; it is never just missing."""
    playground.plant(FILES)
    playground.index()
    code = "import os, sys; from findling.stores.sqlite.store import SqliteStore as S; s = S.open(sys.argv[1])"
    code += "; s.write((), ['file:part3/file3.txt']); os.kill(os.getpid(), 9)"
    assert playground.finish(playground.start_code(code, str(playground.store_file))).code == -signal.SIGKILL
    assert playground.store_file.with_name("index.sqlite-wal").stat().st_size
    with unwritable(playground.workspace):
        code_, out, err = playground.run("ls", plain_user=True)
        assert (code_ == 0 and "part3/file3.txt" not in out) or (code_ == 2 and "  try: " in err)
    assert "part3/file3.txt" not in playground.run("ls").out


def test_a_home_that_cannot_be_written(playground: Playground) -> None:
    playground.plant(3)
    playground.home.mkdir()
    with unwritable(playground.home):
        for code, out, err in playground.run_each(["index"], ["search", "bako"], plain_user=True):
            assert (code, out) == (2, "")
            assert str(playground.home) in err
            assert "FINDLING_HOME" in err


# A damaged keyword leg


def each(pattern: str, damage: Callable[[Path], None]) -> Callable[[Path], None]:
    """Damage that is done to every file of a kind."""

    def do(leg: Path) -> None:
        files = list(leg.glob(pattern))
        assert files
        for file in files:
            # Another inode: this process may still have the old one in its memory, and would die of a bus error.
            copy = file.with_suffix(".copy")
            shutil.copy2(file, copy)
            copy.replace(file)
            damage(file)

    return do


def truncate(file: Path) -> None:
    os.truncate(file, file.stat().st_size // 2)


def empty(file: Path) -> None:
    os.truncate(file, 0)


def fill_with_garbage(file: Path) -> None:
    file.write_text("garbage")


def scribble(file: Path) -> None:
    """Overwrite all but the end, which holds the length that is checked when the file is opened."""
    content = file.read_bytes()
    file.write_bytes(b"\xa5\x5a\xff" * ((len(content) - 200) // 3) + content[(len(content) - 200) // 3 * 3 :])


def become_file(leg: Path) -> None:
    shutil.rmtree(leg)
    leg.write_text("not a folder")


def become_empty(leg: Path) -> None:
    shutil.rmtree(leg)
    leg.mkdir()


DAMAGES: dict[str, Callable[[Path], None]] = {
    "postings truncated": each("*.idx", truncate),
    "terms truncated": each("*.term", truncate),
    "positions empty": each("*.pos", empty),
    "numbers truncated": each("*.fast", truncate),
    "store deleted": each("*.store", Path.unlink),
    "postings deleted": each("*.idx", Path.unlink),
    "postings scribbled over": each("*.idx", scribble),
    "terms scribbled over": each("*.term", scribble),
    "garbage in meta.json": each("meta.json", fill_with_garbage),
    "meta.json empty": each("meta.json", empty),
    "meta.json deleted": each("meta.json", Path.unlink),
    "empty folder": become_empty,
    "no folder": shutil.rmtree,
    "a file": become_file,
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_leg_is_rebuilt_and_the_answer_says_so(playground: Playground, damage: str) -> None:
    playground.plant(FILES)
    playground.index()
    answers = playground.answers()
    DAMAGES[damage](playground.leg_folder)
    document, err = playground.search(playground.mark(3))
    assert {hit["path"] for hit in document["hits"]} == {"part3/file3.txt"}
    assert "has been rebuilt" in err
    assert len(document["degraded"]) == 1
    assert playground.search(playground.mark(3))[0]["degraded"] == []
    playground.assert_sound()
    assert playground.answers() == answers


@pytest.mark.parametrize("damage", ["postings deleted", "a file", "garbage in meta.json"])
@pytest.mark.parametrize("command", ["index", "doctor --repair"])
def test_a_damaged_leg_does_not_stop_other_commands(playground: Playground, damage: str, command: str) -> None:
    playground.plant(FILES)
    playground.index()
    DAMAGES[damage](playground.leg_folder)
    playground.write("new.md", "quagga\n")
    done = playground.run(*command.split())
    assert (done.code, done.complaints) == (0, "")
    assert playground.found("quagga") == ["new.md"]
    playground.assert_sound()
    playground.assert_complete()


# A damaged truth store


def overwrite_header(store: Path) -> None:
    with store.open("r+b") as file:
        file.write(b"garbage!" * 16)


def overwrite_middle(store: Path) -> None:
    size = store.stat().st_size
    with store.open("r+b") as file:
        file.seek(4096)
        file.write(b"\xa5" * (size - 8192))


def cut_in_half(store: Path) -> None:
    os.truncate(store, store.stat().st_size // 2)


def cut_to_a_page(store: Path) -> None:
    os.truncate(store, 4096)


@pytest.mark.parametrize("damage", [overwrite_header, overwrite_middle, cut_in_half, cut_to_a_page])
def test_a_damaged_store_is_told_and_mended_by_what_the_hint_says(
    playground: Playground, damage: Callable[[Path], None]
) -> None:
    playground.plant(FILES)
    playground.index()
    damage(playground.store_file)
    for command in (["search", playground.mark(3)], ["search", "--no-index", "bako"], ["index"]):
        code, out, err = playground.call(*command)
        assert (code, out) == (2, ""), command
        assert "index.sqlite is damaged" in err
        assert "try: findling index --rebuild" in err
    assert playground.call("doctor").code in (1, 2)
    code, _, err = playground.run("index", "--rebuild")
    assert code == 0
    assert "index.sqlite.damaged now" in err
    assert playground.found(playground.mark(3)) == ["part3/file3.txt"]
    playground.assert_sound()
    playground.assert_complete()


@pytest.mark.parametrize("damage", [empty, Path.unlink])
def test_a_store_that_is_lost_is_missed_and_never_made_anew_in_silence(
    playground: Playground, damage: Callable[[Path], None]
) -> None:
    playground.settings = {"FINDLING_SNAPSHOT_AUTO_BYTES": "0"}
    playground.plant(FILES)
    playground.index()
    assert playground.call("remember", "--here", "the quagga is extinct").code == 0
    damage(playground.store_file)
    commands = (["search", playground.mark(3)], ["search", "--no-index", "bako"], ["index"], ["recall", "quagga"])
    for command in (*commands, ["remember", "--here", "another"], ["ls"], ["status"], ["search", "bako", "part3"]):
        code, out, err = playground.call(*command)
        assert (code, out) == (2, ""), command
        assert f"{playground.store_file} is {'empty' if damage is empty else 'gone'}" in err
        assert "1 of type memory" in err
        assert "  try: findling index --rebuild" in err
    assert "1 of type memory" in playground.call("doctor").out
    assert playground.call("index", "--rebuild").code == 0
    assert playground.found(playground.mark(3)) == ["part3/file3.txt"]
    assert playground.call("recall", "quagga").code == 1
    playground.assert_sound()
    playground.assert_complete()


@pytest.mark.parametrize("damage", [empty, Path.unlink, cut_in_half, overwrite_header])
def test_a_lost_store_comes_back_from_the_snapshot_that_was_made_by_itself(
    playground: Playground, damage: Callable[[Path], None]
) -> None:
    playground.plant(FILES)
    playground.index()
    assert playground.call("remember", "--here", "the quagga is extinct").code == 0
    answer = playground.call("search", playground.mark(3), "--json").out
    damage(playground.store_file)
    code, out, err = playground.call("search", playground.mark(3))
    assert (code, out) == (2, "")
    (name,) = [path.stem for path in (playground.workspace / "snapshots").glob("auto-*.sqlite")]
    assert f"  try: findling snapshot restore {name}\n" in err
    assert playground.call("snapshot", "restore", name, "--yes").code == 0
    assert playground.found(playground.mark(3)) == ["part3/file3.txt"]
    assert json.loads(playground.call("search", playground.mark(3), "--json").out)["hits"] == json.loads(answer)["hits"]
    assert "the quagga is extinct" in playground.call("recall", "quagga").out
    playground.assert_sound()


def test_a_snapshot_is_made_once_a_day_and_only_of_what_has_changed(playground: Playground) -> None:
    def made() -> list[str]:
        return sorted(path.stem for path in (playground.workspace / "snapshots").glob("auto-*.sqlite"))

    def let_a_day_pass() -> None:
        then = time.time() - 90_000
        for path in (playground.workspace / "snapshots").glob("auto-*.sqlite"):
            renamed = path.with_name(path.name.replace(path.name[5:13], f"{int(path.name[5:13]) - 1}"))
            path.with_name(f"{path.name}.json").rename(renamed.with_name(f"{renamed.name}.json"))
            os.utime(path.rename(renamed), (then, then))

    playground.plant(3)
    playground.index()
    assert made() == [], "files are their own snapshot"
    with playground.open() as engine:
        engine.memories.remember("one")
        assert len(made()) == 1
        let_a_day_pass()
        playground.write("new.md", "quagga")
        engine.index()
        assert len(made()) == 1, "nothing has changed but files"
        engine.memories.remember("two")
        assert len(made()) == 1, "asked again in a day"
        for number in range(5):
            let_a_day_pass()
            engine.memories.remember(f"day {number}")
        assert len(made()) == 3
    assert playground.call("snapshot", "restore", "--check", made()[-1]).code == 0


def test_a_store_of_another_workspace_is_told(
    playground: Playground, new_playground: type[Playground], tmp_path: Path
) -> None:
    playground.plant(3)
    playground.index()
    (tmp_path / "other").mkdir()
    other = new_playground(tmp_path / "other")
    assert other.call("remember", "--here", "of the other one").code == 0
    shutil.copyfile(other.store_file, playground.store_file)
    code, out, err = playground.call("search", "bako")
    assert (code, out) == (2, "")
    assert f"{playground.store_file} is not the store of this workspace" in err
    assert playground.call("index", "--rebuild").code == 0
    playground.assert_complete()


def test_a_store_that_was_set_back_is_told_and_taken_when_that_is_wanted(playground: Playground) -> None:
    playground.plant(3)
    playground.index()
    assert playground.call("remember", "--here", "kept by the copy").code == 0
    before = playground.store_file.read_bytes()
    for text in ("lost", "lost as well"):
        assert playground.call("remember", "--here", text).code == 0
    playground.store_file.write_bytes(before)
    code, out, err = playground.call("recall", "kept")
    assert (code, out) == (2, "")
    assert "its latest changes are missing: 2; there was what no file holds: 3 of type memory" in err
    assert playground.call("index", "--rebuild").code == 0
    assert "kept by the copy" in playground.call("recall", "kept").out
    playground.assert_sound()


# No space


@pytest.mark.parametrize("size", sample(["300k", "800k", "1300k", "2000k", "2600k"], short=3))
def test_a_disk_that_is_full_during_the_first_run(playground: Playground, size: str) -> None:
    playground.settings = {"FINDLING_INDEX_BATCH_BYTES": "12000"}
    playground.plant(240)
    with small_disk(playground.home, size) as resize:
        code, out, err = playground.run("index")
        assert (code, out) == (2, "")
        assert "no space left" in err
        assert "try: free some space" in err
        resize("100m")
        with SqliteStore.open(playground.store_file) as store:
            assert store.integrity() == []
            committed = {rid: store.document(rid) for rid in store.rids()}
        done = playground.call("index")
        assert (done.code, done.complaints) == (0, "")
        with SqliteStore.open(playground.store_file) as store:
            assert committed.items() <= {rid: store.document(rid) for rid in store.rids()}.items()
        playground.assert_sound()
        playground.assert_complete()


def test_a_disk_that_is_full_later_can_be_searched(playground: Playground) -> None:
    playground.plant(60)
    with small_disk(playground.home, "100m") as resize:
        playground.index()
        fill = playground.workspace.parent / "filler"
        used = sum(file.stat().st_blocks * 512 for file in playground.home.rglob("*") if file.is_file())
        resize(f"{used // 1024 + 200}k")
        with fill.open("wb", buffering=0) as file, pytest.raises(OSError, match="No space"):
            while True:
                file.write(b"x" * 4096)
        os.truncate(fill, fill.stat().st_size - 100_000)  # SQLite needs 32 kB for an index of its log
        for number in range(60, 240, 3):
            playground.write(f"part0/file{number}.txt", playground.prose(number, 60))
        document, err = playground.search(playground.mark(3), apart=True)
        assert {hit["path"] for hit in document["hits"]} == {"part3/file3.txt"}
        assert "no space left" in err
        assert document["degraded"]
        code, _, err = playground.run("index")
        assert code == 2
        assert "no space left" in err
        fill.unlink()
        resize("100m")
        assert playground.found(playground.mark(63)) == ["part0/file63.txt"]
        playground.assert_sound()
        playground.assert_complete()


@pytest.mark.parametrize("left", sample([0, 8192, 28_672], short=2))
def test_a_healthy_index_on_a_full_disk_is_searched(playground: Playground, left: int) -> None:
    """SQLite takes 32 kB for an index of its log, which a search can do without."""
    playground.plant(FILES)
    playground.let_time_pass()
    with small_disk(playground.home, "100m") as resize:
        playground.index()
        before = playground.search(playground.mark(3))[0]["hits"]
        fill = playground.home / ".filler"
        used = sum(file.stat().st_blocks * 512 for file in playground.home.rglob("*") if file.is_file())
        resize(f"{used // 1024 + 200}k")
        with fill.open("wb", buffering=0) as file, pytest.raises(OSError, match="No space"):
            while True:
                file.write(b"x" * 4096)
        os.truncate(fill, fill.stat().st_size - left)
        document, err = playground.search(playground.mark(3), apart=True)
        assert (document["hits"], document["degraded"], err) == (before, [], "")
        code, out, err = playground.run("remember", "--here", "there is no room for this")
        assert (code, out) == (2, "")
        assert "no space left" in err
        for command in (("forget", "part3", "--force"), ("glossary", "add", "PO", "purchase order"), ("compact",)):
            code, _, err = playground.run(*command)
            assert code == 2, command
            assert "no space left" in err, "and not that somebody had opened it read-only"
        fill.unlink()
        resize("100m")
        assert playground.call("remember", "--here", "there is room for this").code == 0
        playground.assert_sound()


def test_what_killed_writers_have_left_is_removed_by_the_next_one(playground: Playground) -> None:
    playground.plant(3)
    playground.index()
    left = [playground.workspace / name for name in (".manifest.json.new", "keyword/.tmpA1b2C3", ".truth.txt.new")]
    snapshots = playground.workspace / "snapshots"
    (snapshots / ".restoring").mkdir(parents=True)
    left += [snapshots / ".first.sqlite.part-17", snapshots / ".restoring" / "index.sqlite"]
    for path in left:
        path.write_text("half of it")
    assert playground.call("remember", "--here", "a thing").code == 0
    assert [path for path in left if path.exists()] == []


def test_a_leg_that_the_next_search_levels_needs_no_repair(playground: Playground) -> None:
    playground.plant(3)
    playground.index()
    assert playground.call("remember", "--here", "the quagga is extinct").code == 0
    code, out, _ = playground.call("doctor")
    assert code == 0
    assert "keyword leg: 1 change behind, the next search catches up" in out
    assert "repair" not in out
    assert playground.call("recall", "quagga").code == 0
    assert "in step" in playground.call("doctor").out


@pytest.mark.parametrize("most", sample([20_000, 100_000, 300_000, 600_000], short=2))
def test_files_that_may_not_grow(playground: Playground, most: int) -> None:
    """A limit on the size of files stands in for a full disk where none can be mounted."""
    playground.settings = {"FINDLING_INDEX_BATCH_BYTES": "12000"}
    playground.plant(240)
    limited = f"import resource; resource.setrlimit(resource.RLIMIT_FSIZE, ({most}, {most}))\n"
    limited += "import sys; from findling.faces.cli.main import run; sys.exit(run())"
    code, out, err = playground.finish(playground.start_code(limited, "index"))
    assert (code, out) == (2, "")
    assert "Traceback" not in err
    assert "  try: " in err
    done = playground.call("index")
    assert (done.code, done.complaints) == (0, "")
    playground.assert_sound()
    playground.assert_complete()
