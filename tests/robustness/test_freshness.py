"""Freshness: the very next search knows every change of the files, without an index run."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

import findling
from tests.processes import run_process

if TYPE_CHECKING:
    from tests.robustness.conftest import Playground

Change = Callable[["Playground"], None]


@pytest.fixture
def settled(playground: Playground) -> Playground:
    """A small tree that was indexed, searched, and then left alone for a while."""
    playground.write("docs/guide.md", "# Guide\n\nquagga grazing\n")
    playground.write("docs/other.md", "# Other\n\nquagga sleeping\n")
    playground.write("src/main.py", "def quagga():\n    pass\n")
    playground.write("notes.txt", "nothing of interest\n")
    playground.write("was-empty.md", "")
    playground.write("was-binary.md", b"\x00\x01\x02\x03" * 50)
    playground.write("was-large.md", "okapi " * 4000)
    (playground.root / "bare").mkdir()
    playground.settings = {"FINDLING_INDEX_MAX_FILE_SIZE": "20000"}
    playground.let_time_pass()
    assert playground.look("quagga") == ["docs/guide.md", "docs/other.md", "src/main.py"]
    assert playground.look("okapi") == []
    return playground


def edit(playground: Playground) -> None:
    playground.write("notes.txt", "an okapi after all\n")


def edit_without_changing_the_size(playground: Playground) -> None:
    file = playground.root / "docs/guide.md"
    file.write_text(file.read_text().replace("quagga", "okapis"))


def edit_without_changing_size_or_time(playground: Playground) -> None:
    """As editors and programs that copy with `-p` do."""
    file = playground.root / "docs/guide.md"
    before = file.stat()
    file.write_text(file.read_text().replace("quagga", "okapis"))
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert (file.stat().st_size, file.stat().st_mtime_ns) == (before.st_size, before.st_mtime_ns)


def replace_by_one_of_the_same_size_and_time(playground: Playground) -> None:
    file, other = playground.root / "docs/guide.md", playground.folder / "other.md"
    other.write_text(file.read_text().replace("quagga", "okapis"))
    os.utime(other, ns=(0, file.stat().st_mtime_ns))
    other.rename(file)


def add_and_set_the_time_of_the_folder_back(playground: Playground) -> None:
    before = (playground.root / "docs").stat()
    playground.write("docs/new.md", "okapi\n")
    os.utime(playground.root / "docs", ns=(before.st_atime_ns, before.st_mtime_ns))


def make_text_of_the_binary_at_the_same_time(playground: Playground) -> None:
    file = playground.root / "was-binary.md"
    before = file.stat()
    file.write_text("okapi ".ljust(before.st_size))
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))


def add(playground: Playground) -> None:
    playground.write("docs/new.md", "okapi\n")


def add_in_a_new_folder(playground: Playground) -> None:
    playground.write("one/two/three/new.md", "okapi\n")


def add_in_an_empty_folder(playground: Playground) -> None:
    playground.write("bare/new.md", "okapi\n")


def move_in_from_outside(playground: Playground) -> None:
    """A file keeps its own, old time when it is moved."""
    outside = playground.folder / "outside.md"
    outside.write_text("okapi\n")
    os.utime(outside, (0, 0))
    outside.rename(playground.root / "docs" / "moved.md")


def move_a_folder_in(playground: Playground) -> None:
    (playground.folder / "outside").mkdir()
    (playground.folder / "outside" / "note.md").write_text("okapi\n")
    (playground.folder / "outside").rename(playground.root / "inside")


def fill_the_empty(playground: Playground) -> None:
    playground.write("was-empty.md", "okapi\n")


def make_text_of_the_binary(playground: Playground) -> None:
    playground.write("was-binary.md", "okapi\n")


def shrink_the_large(playground: Playground) -> None:
    playground.write("was-large.md", "okapi\n")


def swap_two_files(playground: Playground) -> None:
    docs = playground.root / "docs"
    playground.write("docs/other.md", "# Other\n\nokapi grazing\n")
    (docs / "guide.md").rename(docs / "swap")
    (docs / "other.md").rename(docs / "guide.md")
    (docs / "swap").rename(docs / "other.md")


@pytest.mark.parametrize(
    ("change", "found"),
    [
        (edit, ["notes.txt"]),
        (edit_without_changing_the_size, ["docs/guide.md"]),
        (edit_without_changing_size_or_time, ["docs/guide.md"]),
        (replace_by_one_of_the_same_size_and_time, ["docs/guide.md"]),
        (add_and_set_the_time_of_the_folder_back, ["docs/new.md"]),
        (make_text_of_the_binary_at_the_same_time, ["was-binary.md"]),
        (add, ["docs/new.md"]),
        (add_in_a_new_folder, ["one/two/three/new.md"]),
        (add_in_an_empty_folder, ["bare/new.md"]),
        (move_in_from_outside, ["docs/moved.md"]),
        (move_a_folder_in, ["inside/note.md"]),
        (fill_the_empty, ["was-empty.md"]),
        (make_text_of_the_binary, ["was-binary.md"]),
        (shrink_the_large, ["was-large.md"]),
        (swap_two_files, ["docs/guide.md"]),
    ],
)
def test_new_content_is_found(settled: Playground, change: Change, found: list[str]) -> None:
    change(settled)
    assert settled.look("okapi OR okapis") == found
    settled.assert_sound()


def test_a_tree_whose_every_status_has_changed_is_read_and_not_indexed_again(settled: Playground) -> None:
    """A clone, or rights that were given: the digests tell that nothing else has changed."""
    for path in settled.root.rglob("*.md"):
        path.chmod(0o640)
    time.sleep(0.06)
    with settled.open() as engine:
        seq = engine.writer.store.seq()
        report = engine.index()
        assert (report.added, report.updated, engine.writer.store.seq()) == (0, 0, seq)
        assert report.bytes_read > 0
        assert engine.index().bytes_read == 0


def delete(playground: Playground) -> None:
    (playground.root / "docs/guide.md").unlink()


def delete_a_folder(playground: Playground) -> None:
    shutil.rmtree(playground.root / "docs")


def rename(playground: Playground) -> None:
    (playground.root / "docs/guide.md").rename(playground.root / "docs/manual.md")


def rename_a_folder(playground: Playground) -> None:
    (playground.root / "docs").rename(playground.root / "doc")


def rename_to_another_type(playground: Playground) -> None:
    (playground.root / "docs/guide.md").rename(playground.root / "docs/guide.jpg")


def replace_by_a_folder(playground: Playground) -> None:
    delete(playground)
    playground.write("docs/guide.md/inner.md", "not that animal\n")


def replace_by_a_link(playground: Playground) -> None:
    delete(playground)
    (playground.root / "docs/guide.md").symlink_to("other.md")


def empty_it(playground: Playground) -> None:
    playground.write("docs/guide.md", "")


def make_it_binary(playground: Playground) -> None:
    playground.write("docs/guide.md", b"quagga\x00\x01\x02" * 10)


def make_it_large(playground: Playground) -> None:
    playground.write("docs/guide.md", "quagga " * 4000)


def edit_the_word_away(playground: Playground) -> None:
    playground.write("docs/guide.md", "# Guide\n\nzebras grazing\n")


def ignore(playground: Playground) -> None:
    playground.write(".gitignore", "guide.md\n")


def ignore_in_a_folder(playground: Playground) -> None:
    playground.write("docs/.findlingignore", "/guide.*\n")


def exclude_in_the_project(playground: Playground) -> None:
    playground.write(".findling.toml", '[index]\nexclude = ["guide.md"]\n')


def exclude_in_the_environment(playground: Playground) -> None:
    playground.settings["FINDLING_INDEX_EXCLUDE"] = "docs/guide.md"


def exclude_by_command(playground: Playground) -> None:
    assert playground.call("config", "add", "index.exclude", "guide.md").code == 0


REST = ["docs/other.md", "src/main.py"]


@pytest.mark.parametrize(
    ("change", "left"),
    [
        (delete, REST),
        (delete_a_folder, ["src/main.py"]),
        (rename, ["docs/manual.md", *REST]),
        (rename_a_folder, ["doc/guide.md", "doc/other.md", "src/main.py"]),
        (rename_to_another_type, REST),
        (replace_by_a_folder, REST),
        (replace_by_a_link, REST),
        (empty_it, REST),
        (make_it_binary, REST),
        (make_it_large, REST),
        (edit_the_word_away, REST),
        (ignore, REST),
        (ignore_in_a_folder, REST),
        (exclude_in_the_project, REST),
        (exclude_in_the_environment, REST),
        (exclude_by_command, REST),
    ],
)
def test_no_ghost_is_found(settled: Playground, change: Change, left: list[str]) -> None:
    before = settled.look("quagga", refresh=False)
    change(settled)
    assert settled.look("quagga", refresh=False) == before, "--no-index does not look"
    assert settled.look("quagga") == left
    assert settled.look("quagga", refresh=False) == left
    settled.assert_sound()


def test_rules_that_change_in_place(settled: Playground) -> None:
    """An ignore file that is edited, ignores itself, lies above the root, or belongs to the repository alone."""
    settled.write("../.git/info/exclude", "")
    for rules in (".gitignore", "../.gitignore", "../.git/info/exclude", "docs/.ignore"):
        settled.write(rules, ".*ignore\nokapi\n")
        settled.let_time_pass()
        assert "docs/guide.md" in settled.look("quagga"), rules
        settled.write(rules, ".*ignore\nguide.md\n")
        assert "docs/guide.md" not in settled.look("quagga"), rules
        (settled.root / rules).unlink()
        assert "docs/guide.md" in settled.look("quagga"), rules


def test_the_command_line_does_the_same(settled: Playground) -> None:
    settled.write("docs/new.md", "okapi\n")
    delete(settled)
    assert (settled.found("okapi", "--no-index"), settled.found("okapi")) == ([], ["docs/new.md"])
    assert settled.found("quagga") == REST
    settled.settings["FINDLING_SEARCH_REFRESH"] = "never"
    edit_the_word_away(settled)
    assert settled.found("zebras") == []
    del settled.settings["FINDLING_SEARCH_REFRESH"]
    assert settled.found("zebras") == ["docs/guide.md"]


def test_what_was_left_out_comes_back(settled: Playground) -> None:
    settled.write(".gitignore", "docs/\n")
    assert settled.look("quagga") == ["src/main.py"]
    (settled.root / ".gitignore").unlink()
    assert settled.look("quagga") == ["docs/guide.md", *REST]
    settled.settings["FINDLING_INDEX_EXCLUDE"] = "*.md"
    assert settled.look("quagga") == ["src/main.py"]
    del settled.settings["FINDLING_INDEX_EXCLUDE"]
    assert settled.look("quagga") == ["docs/guide.md", *REST]


def test_an_edit_within_one_tick_of_the_clock(playground: Playground) -> None:
    """Same size, same time, and yet another text: what was read right after it was written is read again."""
    for _ in range(50):
        file = playground.write("note.md", "quagga\n")
        stamp = file.stat().st_mtime_ns
        with playground.open() as engine:
            engine.index()
            in_time = time.time_ns() - stamp < 50_000_000
            file.write_text("okapis\n")
            os.utime(file, ns=(stamp, stamp))
            if in_time:
                assert [hit.path for hit in engine.search("okapis")] == ["note.md"]
                assert not engine.search("quagga").hits
                return
    pytest.skip("this machine is too slow to index a file within 50 ms of its writing")


def test_a_file_that_was_only_touched_makes_no_change(settled: Playground) -> None:
    before = settled.state()
    with settled.open() as engine:
        seq = engine.status().seq
        for path in settled.root.rglob("*"):
            path.touch()
        assert len(engine.search("quagga")) == 3
        assert engine.status().seq == seq
        report = engine.index()
        assert (report.changed, report.chunks) == (0, 0)
    assert settled.state() == before


def test_only_the_edited_part_is_indexed_anew(settled: Playground) -> None:
    sections = [f"## Part {number}\n\n{settled.prose(number, 12)}\n" for number in range(20)]
    settled.write("long.md", "# Long\n\n" + "".join(sections))
    assert settled.look(settled.mark(7)) == ["long.md"]
    before = set(settled.state().chunk_ids)
    sections[7] = f"## Part 7\n\n{settled.prose(700, 12)}\n"
    settled.write("long.md", "# Long\n\n" + "".join(sections))
    assert settled.look(settled.mark(7)) == []
    assert settled.look(settled.mark(700)) == ["long.md"]
    after = set(settled.state().chunk_ids)
    assert 0 < len(after - before) <= 2
    assert len(before & after) > 15


def test_a_root_that_is_gone_is_answered_from_the_index(settled: Playground) -> None:
    with settled.open() as engine:
        settled.root.rename(settled.folder / "elsewhere")
        answer = engine.search("quagga")
        assert [hit.path for hit in answer]
        assert any("is gone" in note.what for note in answer.degraded)
        (settled.folder / "elsewhere").rename(settled.root)
        assert engine.search("quagga").degraded == ()
    settled.assert_complete(but=["was-binary.md", "was-empty.md", "was-large.md"])


def test_an_engine_that_stays_open_sees_what_others_index(settled: Playground) -> None:
    with settled.open() as engine:
        assert not engine.search("okapi").hits
        settled.write("docs/new.md", "okapi\n")
        assert settled.run("index").code == 0
        time.sleep(1.0)  # long enough for whatever reloads in the background
        assert [hit.path for hit in engine.search("okapi", refresh=False)] == ["docs/new.md"]
        settled.write("docs/new.md", "okapi and giraffe\n")
        assert [hit.path for hit in engine.search("giraffe")] == ["docs/new.md"]
    settled.assert_sound()


def test_an_engine_that_stays_open_survives_a_rebuild_by_others(settled: Playground) -> None:
    with settled.open() as engine:
        assert engine.search("quagga").hits
        assert settled.run("index", "--rebuild").code == 0
        settled.write("docs/new.md", "okapi\n")
        assert [hit.path for hit in engine.search("okapi")] == ["docs/new.md"]
        engine.add([(findling.Resource(rid="chat:1", type="chat"), "a talk about giraffes")])
        settled.assert_sound()
        assert settled.call("search", "-l", "giraffes").code == 0
        assert settled.run("forget", "--everything", "--force").code == 0
        assert [hit.path for hit in engine.search("okapi")] == ["docs/new.md"]
    settled.assert_sound()


@pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
def test_switching_branches(settled: Playground) -> None:
    def git(*args: str) -> None:
        command = ["git", "-c", "user.name=x", "-c", "user.email=x@y", *args]
        run_process(command, cwd=settled.root, check=True)

    git("init", "-b", "one")
    git("add", "-A")
    git("commit", "-m", "one")
    git("checkout", "-b", "two")
    (settled.root / "docs/guide.md").unlink()
    settled.write("docs/two.md", "okapi\n")
    git("add", "-A")
    git("commit", "-m", "two")
    for _ in range(2):
        git("checkout", "one")
        assert (settled.look("quagga"), settled.look("okapi")) == (["docs/guide.md", *REST], [])
        git("checkout", "two")
        assert (settled.look("quagga"), settled.look("okapi")) == (REST, ["docs/two.md"])
    settled.assert_sound()
