"""Files, names and questions that nobody would wish for: each is taken in, or left out for a reason that is told."""

from __future__ import annotations

import json
import os
import shutil
import socket
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from findling.domain.errors import InvalidValueError
from findling.domain.reports import IndexProgress
from findling.sources.files.discovery import scan
from tests.processes import run_process

if TYPE_CHECKING:
    from tests.robustness.conftest import Playground

pytestmark = pytest.mark.skipif(os.name == "nt", reason="pipes, sockets and permissions of POSIX")

GIGABYTE = 1 << 30


def test_a_file_that_may_not_be_read_is_told_and_taken_in_later(playground: Playground) -> None:
    playground.write("open.md", "an open secret\n")
    closed = playground.write("closed.md", "a closed secret\n")
    closed.chmod(0)
    assert playground.found("secret", plain_user=True) == ["open.md"]
    assert playground.skipped() == {"closed.md": "unreadable"}
    closed.chmod(0o600)
    assert playground.found("secret", plain_user=True) == ["closed.md", "open.md"]
    assert playground.skipped() == {}


def test_a_current_folder_that_is_gone_is_named(playground: Playground, tmp_path: Path) -> None:
    gone = tmp_path / "gone"
    command = f"mkdir {gone} && cd {gone} && rmdir {gone} && {sys.executable} -m findling"
    for asked in ("harbour", "status", "remember 'the harbour is deep'"):
        done = run_process(["sh", "-c", f"{command} {asked}"], env=playground.environ)
        expected = "findling: the current folder is gone\n  try: change to a folder that exists, then ask again\n"
        assert (done.returncode, done.stdout, done.stderr) == (2, "", expected)


def test_a_folder_that_may_not_be_read_deletes_nothing(playground: Playground) -> None:
    playground.write("open.md", "an open secret\n")
    folder = playground.write("inner/closed.md", "a closed secret\n").parent
    playground.index()
    folder.chmod(0)
    assert playground.found("secret", plain_user=True) == ["inner/closed.md", "open.md"]
    assert playground.skipped() == {"inner/": "unreadable"}
    folder.chmod(0o700)
    playground.write("inner/closed.md", "a changed secret\n")
    assert playground.found("changed", plain_user=True) == ["inner/closed.md"]


def test_text_in_other_encodings(playground: Playground) -> None:
    playground.write("utf8.md", "quagga Grüße\n")
    playground.write("utf16-marked.md", "quagga Grüße\n".encode("utf-16"))
    playground.write("utf16-le.md", "quagga Grüße and some more words\n".encode("utf-16-le"))
    playground.write("utf16-be.md", "quagga Grüße and some more words\n".encode("utf-16-be"))
    playground.write("windows.md", "quagga Grüße\n".encode("cp1252"))
    playground.write("broken.md", b"quagga \xff\xfe\x80 and some more words, \xc3\x28\n")
    playground.write("broken-utf16.md", "quagga".encode("utf-16") + b"\x00")
    playground.write("noise.md", bytes(range(256)) * 8)
    readable = ["broken.md", "utf16-be.md", "utf16-le.md", "utf16-marked.md", "utf8.md", "windows.md"]
    assert playground.look("quagga") == readable
    assert playground.look("Grüße") == readable[1:]
    assert playground.skipped() == {"broken-utf16.md": "undecodable", "noise.md": "binary"}


def test_a_gigabyte_is_not_read(playground: Playground) -> None:
    playground.write("small.md", "quagga\n")
    with playground.write("huge.md", "").open("r+b") as huge:
        huge.truncate(GIGABYTE)
    assert playground.look("quagga") == ["small.md"]
    assert playground.skipped() == {"huge.md": "too-large"}


@pytest.mark.parametrize("follow", ["false", "true"])
def test_what_is_no_file(playground: Playground, follow: str) -> None:
    """Pipes, sockets, links to nothing and links in a circle; none of them may be waited for."""
    playground.settings = {"FINDLING_INDEX_FOLLOW_SYMLINKS": follow}
    playground.write("note.md", "quagga\n")
    os.mkfifo(playground.root / "pipe.md")
    (playground.root / "nowhere.md").symlink_to("missing.md")
    (playground.root / "circle.md").symlink_to("circle.md")
    (playground.root / "loop").mkdir()
    (playground.root / "loop" / "up").symlink_to(playground.root)
    (playground.root / "to-pipe.md").symlink_to("pipe.md")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(os.path.relpath(playground.root / "socket.md"))
        assert playground.look("quagga") == ["note.md"]
        assert playground.look("quagga") == ["note.md"]
    link = {"false": "symlink", "true": "unreadable"}[follow]
    assert playground.skipped() == {
        "circle.md": link,
        "loop/up" + ("/" if follow == "true" else ""): "symlink",
        "nowhere.md": link,
        "pipe.md": "special",
        "socket.md": "special",
        "to-pipe.md": "symlink" if follow == "false" else "special",
    }


def test_a_folder_that_vanishes_during_the_walk(playground: Playground) -> None:
    for name in ("a", "b", "c"):
        playground.write(f"{name}/note.md", "quagga\n")
    walk = scan(str(playground.root))
    assert next(walk)[0] == "a/note.md"
    shutil.rmtree(playground.root / "b")
    assert [(entry[0], entry[1] if entry[1] == "unreadable" else "") for entry in walk] == [
        ("b/", "unreadable"),
        ("c/note.md", ""),
    ]


def test_folders_that_come_and_go_during_runs(playground: Playground) -> None:
    playground.plant(30)
    churning = threading.Event()

    def churn() -> None:
        turn = 0
        while not churning.wait(0.001):
            turn += 1
            playground.write(f"churn/{turn % 5}/deep/note.md", "quagga\n")
            shutil.rmtree(playground.root / "churn" / str((turn + 2) % 5), ignore_errors=True)

    thread = threading.Thread(target=churn)
    thread.start()
    try:
        with playground.open() as engine:
            for _ in range(15):
                engine.index()
    finally:
        churning.set()
        thread.join()
    expected = sorted(file.relative_to(playground.root).as_posix() for file in playground.root.rglob("note.md"))
    assert playground.look("quagga") == expected
    playground.assert_sound()
    playground.assert_complete()


def become_folder(file: Path) -> None:
    file.unlink()
    file.mkdir()


def become_pipe(file: Path) -> None:
    file.unlink()
    os.mkfifo(file)


def grow(file: Path) -> None:
    with file.open("r+b") as content:
        content.truncate(GIGABYTE)


@pytest.mark.parametrize(
    ("happen", "reason"),
    [
        (Path.unlink, "unreadable"),
        (become_folder, "special"),
        (become_pipe, "special"),
        (grow, "too-large"),
    ],
)
def test_a_file_that_changes_between_the_walk_and_the_reading(
    playground: Playground, happen: Callable[[Path], None], reason: str
) -> None:
    playground.write("a.md", "quagga one\n")
    playground.write("z.md", "quagga two\n")
    happened = []

    def on_progress(event: IndexProgress) -> None:
        if event.path == "a.md":
            happen(playground.root / "z.md")
            happened.append(event)

    with playground.open() as engine:
        report = engine.index(on_progress=on_progress)
        assert happened
        assert (report.added, report.skipped) == (1, {reason: 1})
        assert [hit.path for hit in engine.search("quagga")] == ["a.md"]
        there = playground.root / "z.md"
        if there.is_dir():
            there.rmdir()
        there.unlink(missing_ok=True)
        playground.write("z.md", "quagga again\n")
        assert sorted(hit.path for hit in engine.search("quagga")) == ["a.md", "z.md"]


def test_a_file_that_changes_while_it_is_read(playground: Playground) -> None:
    """The next search notices a file that was read halfway: its time of change is the one before the reading."""
    versions = [("quagga " * 20 + f"{letter}\n") * 3000 for letter in "abc"]
    file = playground.write("busy.md", versions[0])
    done = threading.Event()

    def rewrite() -> None:
        turn = 0
        while not done.is_set():
            turn += 1
            file.write_text(versions[turn % 3])

    thread = threading.Thread(target=rewrite)
    thread.start()
    try:
        with playground.open() as engine:
            for _ in range(15):
                engine.search("quagga", limit=1)
    finally:
        done.set()
        thread.join()
    assert playground.look("quagga") == ["busy.md"]
    playground.assert_sound()
    playground.assert_complete()


def test_odd_names(playground: Playground) -> None:
    names = ["new\nline.md", "-rf.md", "tab\tand space.md", "🦓 zebra.md", "\u00e9.md", "e\u0301.md", "100%=+#?&.md"]
    names.append("x" * 247 + ".md")
    for name in names:
        playground.write(name, "quagga\n")
    playground.write(os.fsdecode(b"bytes-\xff.md"), "quagga\n")
    assert playground.found("quagga") == sorted(names)
    assert playground.skipped() == {"bytes-\N{REPLACEMENT CHARACTER}.md": "undecodable"}
    assert playground.run("quagga").code == 0
    assert playground.call("quagga", "-l").code == 0
    for name in names:
        (playground.root / name).unlink()
    assert playground.found("quagga") == []


@pytest.mark.parametrize("name", ["zebra 🦓\n%+:", "y" * 250, "-k"])
def test_a_root_with_an_odd_name(playground: Playground, name: str) -> None:
    playground.write(f"{name}/note.md", "quagga\n")
    for command in (
        ["index"],
        ["search", "-l", "quagga"],
        ["search", "-l", "quagga"],
        ["doctor"],
        ["doctor", "--repair"],
    ):
        done = playground.call(*command, "--", str(playground.root / name))
        assert (done.code, done.complaints) == (0, ""), command


def test_a_root_whose_name_is_no_unicode(playground: Playground) -> None:
    root = playground.write(os.fsdecode(b"bytes-\xff/note.md"), "quagga\n").parent
    code, _, err = playground.run("quagga", str(root))
    assert code == 2
    assert "bytes-" in err
    assert "try: rename" in err
    assert not playground.home.exists()


def test_an_empty_tree(playground: Playground) -> None:
    code, out, err = playground.call("quagga")
    assert (code, out) == (1, "")
    assert "no match" in err
    assert playground.call("index").out.startswith("nothing to index")
    playground.write("note.md", "quagga\n")
    assert playground.look("quagga") == ["note.md"]


def test_one_huge_line(playground: Playground) -> None:
    playground.write("line.txt", "word " * 600_000 + "quagga")
    document, _ = playground.search("quagga")
    assert [hit["path"] for hit in document["hits"]] == ["line.txt"]
    assert len(json.dumps(document["hits"][0])) < 20_000, "a hit shows a part of the line"
    playground.assert_sound()


def test_a_huge_query(playground: Playground) -> None:
    playground.plant(30)
    query = " ".join(playground.prose(seed, 1).strip() for seed in range(2000))[:100_000]
    document, _ = playground.search(query)
    assert document["hits"]
    assert playground.call("search", '"' * 50_000).code == 1
    assert playground.call("search", "a" * 100_000).code == 1
    assert playground.call("search", "--", "-" * 100_000).code == 1


@pytest.mark.parametrize(
    "query", ["qua\0gga", "\0", "quagga \ud800", "\ud800", "\x1b[31m", '"', '-"', "-", "*", "\n\n"]
)
def test_a_query_of_odd_characters(playground: Playground, query: str) -> None:
    playground.write("note.md", "quagga\n")
    with playground.open() as engine:
        answer = engine.search(query)
        assert isinstance(answer.total, int)
    file = playground.folder / "queries"
    file.write_bytes(b"quagga\n" + query.encode("utf-8", "surrogatepass"))
    code, _, err = playground.call("search", "-Q", str(file))
    assert code in ((0,) if "\ud800" not in query else (2,))
    assert "Traceback" not in err


def test_requests_that_cannot_be_met(playground: Playground) -> None:
    playground.write("note.md", "quagga\n")
    with playground.open() as engine:
        assert engine.search("quagga", limit=0).hits == ()
        for options in ({"limit": -1}, {"offset": -1}, {"min_score": 2.0}, {"exclude_pattern": "("}):
            with pytest.raises(InvalidValueError) as caught:
                engine.search("quagga", **options)
            assert str(next(iter(options.values()))) in caught.value.message
    for args, named in [
        (["-k", "-1"], "search.limit"),
        (["-k", "many"], "search.limit"),
        (["--set", "search.min_score=7"], "search.min_score"),
        (["nowhere"], "nowhere"),
        (["--path", "/etc"], "--path /etc"),
        (["--workspace", "../up"], "workspace.name"),
    ]:
        code, out, err = playground.call("search", "quagga", *args)
        assert (code, out) == (2, ""), args
        assert named in err
        assert "  try: " in err
