"""`findling grep` and `findling glob`: the same bytes as ripgrep on the same files, and all else that they do."""

from __future__ import annotations

import json
import os
import re
import shutil
import sysconfig
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.counts import sample
from tests.processes import run_process

Call = Callable[..., tuple[int, str, str]]

needs_ripgrep = pytest.mark.skipif(shutil.which("rg") is None, reason="ripgrep is not installed")

FLAGS: list[list[str]] = [
    ["-n", "import"], ["-n", "-i", "UNICODE"], ["-n", "-w", "def|self"], ["-n", "-F", "self.("], ["-l", r"\bre\."],
    ["-c", "^class "], ["-n", "-C", "2", "raise [A-Z]"], ["-n", "-B", "1", "-A", "3", "yield"],
    ["-n", "-o", r"\d+\.\d+"],
    ["-n", "-v", "[a-z]"], ["-n", "-m", "2", "return"], ["-n", "-e", "header", "-e", "charset"], ["-c", "-o", "self"],
    ["-n", "-g", "*.py", "-g", "!_*", "None"], ["-n", "Message"], ["-n", "^$"],
    ["-n", r"foo\s+bar|\S\s{4,}\S"], ["-n", "[^a]*zip$"], ["-N", "encode"], ["-n", "-i", "ß|straße|é"],
    ["-l", "-v", "x"], ["-n", "-o", "-w", "-i", "the"], ["-n", "<div|<p>"], ["-n", '"name"'],
    ["-n", "-C", "1", "-o", "lambda"],
]  # fmt: skip


@pytest.fixture
def library(tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A part of the standard library, with files of other kinds, as the current folder."""
    source = Path(sysconfig.get_paths()["stdlib"])
    root = home / "library"
    unwanted = shutil.ignore_patterns("__pycache__", "*.pyc", "*.gif", "*.png", "*.ico")
    for name in ("email", "json", "idlelib", "xml", "http"):
        shutil.copytree(source / name, root / name, ignore=unwanted)
    (root / "page.html").write_text('<html><body>\n<div class="a">Hello name</div>\n<p>import this</p></body></html>\n')
    (root / "data.json").write_text('{\n  "name": "self.(import)",\n  "n": 1.5\n}')
    (root / "dos.txt").write_bytes(b"import me\r\n\r\nreturn Message\r\nraise It")
    (root / "marked.md").write_bytes(b"\xef\xbb\xbfimport mark\nStra\xc3\x9fe \xc3\xa9t\xc3\xa9 import\n")
    (root / "empty.md").write_text("\n")
    for folder in root.rglob("*"):  # files that were written a moment ago are looked at again by every search
        os.utime(folder, (1_700_000_000, 1_700_000_000))
    monkeypatch.chdir(root)
    return root


def ripgrep(output: Path, *args: str) -> tuple[int, str]:
    """Exit code and output, whose bytes no reader of text has changed."""
    done = run_process(["sh", "-c", f'"$0" "$@" < /dev/null > {output}', "rg", "--no-config", "--sort", "path", *args])
    return done.returncode, output.read_bytes().decode()


@needs_ripgrep
def test_lines_are_those_of_ripgrep_byte_for_byte(library: Path, tmp_path: Path, findling: Call) -> None:
    files = set(findling("glob", "*")[1].splitlines())
    assert len(files) > 100
    for path in library.rglob("*"):  # both are asked for the same files: what an index leaves out is another question
        if path.is_file() and path.relative_to(library).as_posix() not in files:
            path.unlink()
    found = 0
    for flags in sample(FLAGS, short=12):
        code, ours, err = findling("grep", *flags)
        assert (code, ours) == ripgrep(tmp_path / "rg.out", *flags), flags
        assert err == "", flags
        found += len(ours.splitlines())
    assert found > 5_000


@needs_ripgrep
def test_messages_are_those_of_ripgrep(library: Path, tmp_path: Path, findling: Call) -> None:
    for flags in (["-i", "message"], ["-C", "1", "-w", "self"], ["-v", "e"], [r"é|ß.*\w"]):
        _, theirs = ripgrep(tmp_path / "rg.out", "--json", *flags, "email", "marked.md")
        code, ours, _ = findling("grep", "--json", *flags, "email", "marked.md")
        assert code == 0
        wanted, given = ([json.loads(line) for line in text.splitlines()] for text in (theirs, ours))
        kinds = ("begin", "match", "context")
        assert [one for one in given if one["type"] in kinds] == [one for one in wanted if one["type"] in kinds]
        ends, their_ends = ([one["data"] for one in all_ if one["type"] == "end"] for all_ in (given, wanted))
        for mine, other in zip(ends, their_ends, strict=True):
            assert mine["path"] == other["path"]
            assert mine["stats"].items() <= other["stats"].items()
        assert given[-1]["type"] == "summary"
        stats = wanted[-1]["data"]["stats"]
        assert given[-1]["data"]["stats"]["matched_lines"] == stats["matched_lines"]


@needs_ripgrep
def test_paths_are_shown_as_ripgrep_shows_them(library: Path, tmp_path: Path, findling: Call) -> None:
    findling("index")
    for paths in (
        ["email"],
        ["./email"],
        ["email/"],
        ["."],
        ["email/errors.py"],
        ["xml", "json"],
        [str(library / "http")],
    ):
        code, ours, _ = findling("grep", "-n", "Error", *paths)
        assert (code, ours) == ripgrep(tmp_path / "rg.out", "-n", "Error", *paths), paths
    os.chdir(library / "email")
    assert findling("grep", "-n", "-g", "/*.py", "Error")[1] == ripgrep(tmp_path / "o", "-n", "-g", "/*.py", "Error")[1]


def test_a_file_that_was_changed_a_moment_ago_is_searched_as_it_is(project: Path, findling: Call) -> None:
    assert findling("grep", "create_session")[:2] == (0, "src/auth.py:5:    token = create_session(user)\n")
    (project / "src" / "auth.py").write_text("nothing\n")
    (project / "docs" / "new.md").write_text("one\ncreate_session is new\n")
    assert findling("grep", "create_session")[:2] == (0, "docs/new.md:2:create_session is new\n")
    (project / "docs" / "new.md").unlink()
    assert findling("grep", "create_session") == (1, "", "")


def test_markup_and_data_have_the_lines_of_their_files(project: Path, findling: Call) -> None:
    (project / "page.html").write_text("<html><body>\n<div>text</div>\n<script>hidden()</script></body></html>\n")
    (project / "data.json").write_text('{\n  "name": "text"\n}\n')
    code, out, _ = findling("grep", "text|hidden")
    assert code == 0
    markup = "page.html:2:<div>text</div>\npage.html:3:<script>hidden()</script></body></html>\n"
    assert out == f'data.json:2:  "name": "text"\n{markup}'


def test_documents_and_items_are_searched_in_their_text(project: Path, findling: Call) -> None:
    (project / "letter.eml").write_text(
        "From: a@example.com\nSubject: Hello\nContent-Transfer-Encoding: base64\n\n"
        + "U29tZSBzZXNzaW9uIHRva2VuIGluIGEgbGV0dGVyCg==\n"
    )
    assert findling("remember", "--here", "a session token is short")[0] == 0
    code, out, _ = findling("grep", "-l", "session token")
    names = out.splitlines()
    assert (code, names[:2]) == (0, ["docs/guide.md", "letter.eml"])
    assert names[2].startswith("memory:")
    assert findling("grep", "-l", "session token", "docs")[1] == "docs/guide.md\n"
    messages = [json.loads(line) for line in findling("grep", "--json", "token", "letter.eml")[1].splitlines()]
    assert [one["data"]["extracted"] for one in messages if one["type"] == "end"] == [True]


def test_the_strategy_is_said(project: Path, findling: Call) -> None:
    _, _, err = findling("grep", "--explain", "login")
    assert "texts searched, 2 lines match" in err
    summary = json.loads(findling("grep", "--json", "login")[1].splitlines()[-1])
    assert summary["data"]["strategy"]


@pytest.mark.parametrize(
    ("args", "told"),
    [
        (("grep",), "there is no pattern"),
        (("grep", "("), "is no regular expression"),
        (("grep", "-g", "[", "a"), "can match nothing"),
        (("grep", "--json", "-l", "a"), "--json gives all lines"),
        (("grep", "-z", "a"), "-z"),
        (("grep", "a", "nowhere"), "nowhere"),
        (("glob", "["), "can match nothing"),
        (("glob", "a", "nowhere"), "nowhere"),
    ],
)
def test_mistakes_are_errors(project: Path, findling: Call, args: tuple[str, ...], told: str) -> None:
    code, out, err = findling(*args)
    assert (code, out) == (2, "")
    assert told in err
    assert "Traceback" not in err


def test_no_line_at_most_is_no_line(project: Path, findling: Call) -> None:
    assert findling("grep", "-m", "0", "login")[:2] == (1, "")


def test_a_path_that_is_missing_does_not_hide_the_others(project: Path, findling: Call) -> None:
    code, out, err = findling("grep", "-l", "login", "nowhere", "src")
    assert (code, out) == (2, "src/auth.py\n")
    assert "nowhere" in err


def unstyled(text: str) -> str:
    return re.sub(r"\x1b\[[\d;]*m", "", text)


def test_a_terminal_gets_headings_and_colours(project: Path, findling: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    _, out, _ = findling("grep", "--color", "always", "login", "src")
    assert out == "\x1b[35msrc/auth.py\x1b[0m:\x1b[32m4\x1b[0m:def \x1b[1;31mlogin\x1b[0m(user):\n"
    (project / "src" / "odd.py").write_text("login \x1b[2J\n")
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    _, out, _ = findling("grep", "login", "src")
    assert [unstyled(line) for line in out.splitlines()] == [
        "src/auth.py", "4:def login(user):", "", "src/odd.py", "1:login ␛[2J",
    ]  # fmt: skip


def test_glob_lists_what_is_indexed(project: Path, findling: Call) -> None:
    assert findling("glob", "*.md")[:2] == (0, "docs/guide.md\ndocs/index.md\n")
    assert findling("glob", "src/")[1] == "src/auth.py\nsrc/shop.ts\n"
    assert findling("glob", "*.{ts,py}", "src")[1] == "src/auth.py\nsrc/shop.ts\n"
    assert findling("glob", "/*.md", "docs")[1] == "docs/guide.md\ndocs/index.md\n"
    os.utime(project / "docs" / "index.md", (1_800_000_000, 1_800_000_000))
    assert findling("glob", "--newest", "*.md")[1] == "docs/index.md\ndocs/guide.md\n"
    assert findling("glob", "*.nothing")[:2] == (1, "")
    told = json.loads(findling("glob", "--json", "*.ts")[1])
    assert ([one["path"] for one in told["files"]], told["total"]) == (["src/shop.ts"], 1)


def test_search_lists_all_files_behind_the_best_hits(project: Path, findling: Call) -> None:
    for number in range(150):  # more than any other facet lists
        (project / "docs" / f"note-{number:03}.md").write_text(f"# Note {number}\n\nA login of somebody.\n")
    code, out, _ = findling("search", "--facet", "file", "-k", "1", "login")
    head, listed = out.split("\n\n152 files with 152 passages that match:\n")
    assert code == 0
    assert head
    paths = [line.split()[1] for line in listed.splitlines()]
    assert len(paths) == 152
    assert {"src/auth.py", "docs/guide.md", "docs/note-149.md"} <= set(paths)
    facets = json.loads(findling("search", "--facet", "file", "--json", "-k", "1", "login")[1])["facets"]
    assert sorted(facets["file"]) == sorted(paths)


def test_refs_and_outline(findling: Call, project: Path) -> None:
    code, out, _ = findling("refs", "create_session")
    assert code == 0
    assert "src/auth.py:5  calls  login  token = create_session(user)\n" in out
    told = json.loads(findling("refs", "login", "--json")[1])
    assert [(one["path"], one["line"], one["kind"]) for one in told["references"]] == [("src/auth.py", 4, "defines")]
    code, out, err = findling("refs", "nowhere_at_all")
    assert (code, out) == (1, "")
    assert "no code has the name nowhere_at_all" in err
    assert findling("refs", "a b")[0] == 2
    assert findling("outline", "src/auth.py")[:2] == (0, "    4-6     def login(user):\n")
    assert json.loads(findling("outline", "src/auth.py", "--json")[1])["definitions"][0]["name"] == "login"
    assert findling("outline", "docs/guide.md")[0] == 1
    assert findling("outline", "src/none.py")[0] == 2


def test_a_missing_path_is_named_before_any_index_run(findling: Call, project: Path) -> None:
    for asked in (
        ("outline", "src/none.py"),
        ("outline", "src/none.py:3"),
        ("search", "login", "--explain-hit", "src/none.py"),
        ("grep", "login", "src/none.py"),
        ("refs", "login", "src/none.py"),
        ("glob", "*.py", "src/none.py"),
        ("search", "login", "src/none.py"),
    ):
        code, out, err = findling(*asked)
        assert (code, out) == (2, ""), asked
        assert err.startswith("findling: there is no ") and "src/none.py" in err, asked
    assert findling("similar", "src/none.py")[0] == 2
    assert findling("ls")[0] == 2  # nothing has been indexed
    assert findling("outline", "src/auth.py")[0] == 0
