"""Ignore files: explicit cases, and git itself as the oracle for random ones."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from findling.sources.files.discovery import FoundFile, scan
from findling.sources.files.ignore_rules import compile_patterns, ignoring_rule, layers_above
from findling.sources.files.rule_patterns import Rules
from tests.counts import tries
from tests.processes import run_process

needs_git = pytest.mark.skipif(shutil.which("git") is None, reason="git is the oracle")

DIRECTORIES = ("", "a/", "a/b/", "a/b/c/", "b/", "b/a/", "ab/", "ab/a/", "x.y/", "[z]/", "sp ace/")
FILES = ("a", "a.txt", "b.txt", "ab.txt", "abc.md", "b.tar.txt", "#x.txt", "!x.txt", "[x].txt", "e .txt", "a-b.md")


def run_git(directory: Path, *arguments: str) -> str:
    environment = {**os.environ, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1", "HOME": str(directory)}
    environment.pop("GIT_DIR", None)
    command = ["git", *arguments]
    return run_process(command, cwd=directory, env=environment, check=True).stdout


def kept_by_git(directory: Path) -> set[str]:
    return set(run_git(directory, "ls-files", "-o", "--exclude-standard", "-z").split("\0")) - {""}


def kept_by_us(directory: Path) -> set[str]:
    rules = Rules(hidden=True, include=())
    skipped_otherwise = set()
    kept = set()
    for item in scan(str(directory), rules):
        if isinstance(item, FoundFile):
            kept.add(item.path)
        elif item.reason not in ("ignored", "machine-made"):
            skipped_otherwise.add((item.path, item.reason))
    # `a` has no type we know: for the oracle it counts as kept when no ignore file speaks against it.
    assert {reason for _, reason in skipped_otherwise} <= {"unknown-type"}
    return kept | {path for path, _ in skipped_otherwise}


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("repository")
    for directory in DIRECTORIES:
        (root / directory).mkdir(exist_ok=True)
        for name in FILES:
            if not (root / directory / name).is_dir() and not (name == "a" and directory in ("", "b/", "ab/")):
                (root / directory / name).write_text("text\n")
    run_git(root, "init", "-q")
    return root


PIECES = (
    r"a b c ab abc . * ? .txt .md x - [ab] [!a] [^b-c] [a-c] []x] [x [[:alpha:]] [![:punct:]] [c-a] [a-] [\]x] "
    r"\* \# \! \[ \a # !"
)
piece = st.sampled_from([*PIECES.split(), " ", "\\ "])
segment = st.one_of(st.just("**"), st.just("*"), st.lists(piece, min_size=1, max_size=4).map("".join))
body = st.lists(segment, min_size=1, max_size=4).map("/".join)
pattern = st.builds(
    lambda negation, anchor, middle, slash, space: negation + anchor + middle + slash + space,
    st.sampled_from(["", "", "", "!"]),
    st.sampled_from(["", "", "/"]),
    body,
    st.sampled_from(["", "", "/", "/**", "/*"]),
    st.sampled_from(["", "", "", " ", "\\ ", "\r", "\\"]),
)
# git up to 2.51 takes `x**/` for `x/**/`, against its own manual.
TAKEN_WRONGLY_BY_GIT = re.compile(r"[^/!*]\*\*+(/|\s*$)")
pattern = pattern.filter(lambda line: not TAKEN_WRONGLY_BY_GIT.search(line))
ignore_file = st.lists(pattern, max_size=6).map(lambda lines: "\n".join(lines) + "\n")


@needs_git
@settings(max_examples=tries(150, short=40), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    files=st.dictionaries(st.sampled_from(["", "a/", "a/b/", "ab/", "x.y/"]), ignore_file, max_size=3), info=ignore_file
)
def test_same_files_as_git(repository: Path, files: dict[str, str], info: str) -> None:
    for directory in DIRECTORIES:
        (repository / directory / ".gitignore").unlink(missing_ok=True)
    for directory, text in files.items():
        (repository / directory / ".gitignore").write_text(text, newline="")
    (repository / ".git" / "info" / "exclude").write_text(info, newline="")
    assert kept_by_us(repository) == kept_by_git(repository)


MATCHES: list[tuple[str, str, bool]] = [
    ("*.log", "deep/er/x.log", True),
    ("*.log", "x.log.md", False),
    ("*.tar.gz", "a/x.tar.gz", True),
    ("/x.md", "x.md", True),
    ("/x.md", "a/x.md", False),
    ("a/x.md", "a/x.md", True),
    ("a/x.md", "b/a/x.md", False),
    ("a/*.md", "a/x.md", True),
    ("a/*.md", "a/b/x.md", False),
    ("build", "deep/build/", True),
    ("build", "deep/build", True),
    ("build/", "deep/build/", True),
    ("build/", "deep/build", False),
    ("**/x.md", "x.md", True),
    ("**/x.md", "a/b/x.md", True),
    ("a/**", "a/b/x.md", True),
    ("a/**", "a/", False),
    ("a/**/x.md", "a/x.md", True),
    ("a/**/x.md", "a/b/c/x.md", True),
    ("a/**/x.md", "b/a/x.md", False),
    ("**/a/**/x.md", "b/a/c/x.md", True),
    ("a/**/b/**/x.md", "a/c/b/c/b/x.md", True),
    ("a/**/**/x.md", "a/x.md", True),
    ("/**", "a/b", True),
    ("foo**/bar", "foobar", False),
    ("foo**/bar", "foox/bar", True),
    ("foo**/bar", "foox/y/bar", False),
    ("a**b", "axb", True),
    ("?.md", "x.md", True),
    ("?.md", "xy.md", False),
    ("a/?", "a/b", True),
    ("a?b", "a/b", False),
    ("[a-c].md", "b.md", True),
    ("[!a-c].md", "b.md", False),
    ("[^a-c].md", "d.md", True),
    ("[]-].md", "].md", True),
    ("a[/]b", "a/b", False),
    ("a[!x]b", "a/b", False),
    ("[x.md", "[x.md", False),
    ("x.md\\", "x.md\\", False),
    ("\\#x", "#x", True),
    ("#x", "#x", False),
    ("\\!x", "!x", True),
    ("x\\ ", "x ", True),
    ("x\\  ", "x ", True),
    ("x  ", "x", True),
    ("x\\\\ ", "x\\", True),
    ("x\r", "x", True),
    ("/", "x", False),
    ("a//b", "a/b", False),
    ("a//b", "a/x/b", False),
    ("é?.md", "éü.md", True),
    ("*\nx", "two\nlines.md", True),
]


@pytest.mark.parametrize(("line", "path", "expected"), MATCHES)
def test_one_pattern(line: str, path: str, expected: bool) -> None:
    patterns = compile_patterns(line)
    plain = path.rstrip("/")
    found = patterns.match(plain, plain.rpartition("/")[2], path.endswith("/")) if patterns else None
    assert (found is not None) is expected


def test_last_match_wins_across_all_forms_of_patterns() -> None:
    text = "*.md\n!keep.md\nkeep.m?\n!/a/keep.md\na/k*p.md\n!a/keep.md\n"
    patterns = compile_patterns(text)
    assert patterns
    lines = {path: patterns.match(path, "keep.md", False) for path in ("keep.md", "a/keep.md", "b/keep.md")}
    assert {path: pattern and pattern.line for path, pattern in lines.items()} == {
        "keep.md": 3,
        "a/keep.md": 6,
        "b/keep.md": 3,
    }


@pytest.mark.parametrize("line", ["*a" * 40 + "b", "**/a/" * 40 + "b", "a*" * 30 + "/**/" + "a*" * 30 + "b"])
def test_no_pattern_takes_exponential_time(line: str) -> None:
    patterns = compile_patterns(line)
    assert patterns
    assert patterns.match("a/" * 500 + "a" * 250, "a" * 250, False) is None


def test_byte_order_mark_and_crlf_are_no_part_of_a_pattern() -> None:
    patterns = compile_patterns("\ufeff*.log\r\nx.md \r\n")
    assert patterns
    assert patterns.match("a.log", "a.log", False)
    assert patterns.match("x.md", "x.md", False)


Write = Callable[[str, str], None]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def write_file(path: str, text: str = "text\n") -> None:
        file = tmp_path / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)

    return write_file


def found(root: Path) -> list[str]:
    return [item.path for item in scan(str(root)) if isinstance(item, FoundFile) and "ignore" not in item.path]


def test_stronger_ignore_file_of_the_same_directory_decides(tmp_path: Path, write: Write) -> None:
    for name in "abcd":
        write(f"{name}.md", "text\n")
    write(".gitignore", "a.md\nb.md\n!c.md\n")
    write(".ignore", "!a.md\nc.md\nd.md\n")
    write(".findlingignore", "!d.md\n")
    assert found(tmp_path) == ["a.md", "d.md"]


def test_deeper_ignore_file_wins_over_a_stronger_one_above(tmp_path: Path, write: Write) -> None:
    write("sub/x.md", "text\n")
    write(".findlingignore", "x.md\n")
    write("sub/.gitignore", "!x.md\n")
    assert found(tmp_path) == ["sub/x.md"]


def test_file_below_an_ignored_directory_stays_ignored(tmp_path: Path, write: Write) -> None:
    write("docs/x.md", "text\n")
    write("docs/.gitignore", "!x.md\n")
    write(".gitignore", "docs/\n!docs/x.md\n")
    assert [
        (item.path, item.reason, item.detail) for item in scan(str(tmp_path)) if not isinstance(item, FoundFile)
    ] == [("docs/", "ignored", ".gitignore:1: docs/")]


def test_rules_above_the_root_apply_up_to_the_top_of_the_repository(tmp_path: Path, write: Write) -> None:
    write(".gitignore", "*\n")
    write("top/.git/info/exclude", "excluded.md\n")
    write("top/.gitignore", "*.log\n/mid/root/anchored.md\n")
    write("top/mid/.gitignore", "!keep.log\nroot/sub/*.md\n")
    for name in ("a.log", "keep.log", "anchored.md", "sub/anchored.md", "sub/keep.log", "excluded.md", "b.md"):
        write(f"top/mid/root/{name}", "text\n")
    assert found(tmp_path / "top/mid/root") == ["b.md", "keep.log", "sub/keep.log"]
    rule = ignoring_rule(layers_above(str(tmp_path / "top/mid/root"))[1], "mid/root/a.log", "a.log", False)
    assert rule == "../../.gitignore:1: *.log"


def test_root_that_its_repository_ignores_is_searched_all_the_same(tmp_path: Path, write: Write) -> None:
    write("top/.git/HEAD", "ref\n")
    write("top/.gitignore", "*\n")
    write("top/notes/x.md", "text\n")
    write("top/notes/y.md", "text\n")
    write("top/notes/.gitignore", "y.md\n")
    assert found(tmp_path / "top/notes") == ["x.md"]


@needs_git
def test_rules_of_a_worktree_come_from_the_common_directory(tmp_path: Path) -> None:
    main, tree = tmp_path / "main", tmp_path / "tree"
    main.mkdir()
    run_git(main, "init", "-q")
    run_git(main, "-c", "user.name=n", "-c", "user.email=e", "commit", "-q", "--allow-empty", "-m", "first")
    run_git(main, "worktree", "add", "-q", str(tree))
    (main / ".git/info/exclude").write_text("x.md\n")
    (tree / "x.md").write_text("text\n")
    (tree / "y.md").write_text("text\n")
    assert found(tree) == ["y.md"]


def test_symlinked_and_special_ignore_files_say_nothing(tmp_path: Path, write: Write) -> None:
    write("rules.txt", "*.md\n")
    write("a.md", "text\n")
    write("sub/b.md", "text\n")
    (tmp_path / ".gitignore").symlink_to("rules.txt")
    os.mkfifo(tmp_path / "sub/.gitignore")
    assert found(tmp_path) == ["a.md", "rules.txt", "sub/b.md"]


def test_undecodable_bytes_in_an_ignore_file_do_no_harm(tmp_path: Path, write: Write) -> None:
    (tmp_path / ".gitignore").write_bytes(b"\xff\xfe*.log\n*.tmp.md\n")
    write("a.tmp.md", "text\n")
    write("b.md", "text\n")
    assert found(tmp_path) == ["b.md"]


@pytest.mark.parametrize("line", ["\xff" * 400_000, "[[:" * 130_000 + "]"], ids=["name", "classes"])
def test_a_line_without_end_is_read_once(tmp_path: Path, write: Write, line: str) -> None:
    """A square of its length would be minutes."""
    write(".findlingignore", f"{line}\n*.tmp.md\n")
    write("a.tmp.md", "text\n")
    write("b.md", "text\n")
    assert found(tmp_path) == ["b.md"]
