"""Discovery: what is found, what is skipped and why, and that the walk survives what file systems do."""

from __future__ import annotations

import os
import shutil
import socket
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from findling.domain.errors import InvalidValueError, PathNotFoundError
from findling.domain.ports import SkippedPath
from findling.sources.files.discovery import REASONS, FoundFile, scan, verdict
from findling.sources.files.file_text import changed_ns
from findling.sources.files.rule_patterns import Rules
from tests.counts import tries

CACHE_TAG = "Signature: 8a477f597d28d172789f06886806bc55\n# written by a tool\n"


@pytest.fixture
def write(tmp_path: Path) -> Callable[..., None]:
    def write_files(*paths: str, text: str = "text\n") -> None:
        for path in paths:
            file = tmp_path / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text)

    return write_files


Write = Callable[..., None]


def found(root: Path, rules: Rules = Rules(), under: str = "") -> list[str]:  # noqa: B008
    return [item.path for item in scan(str(root), rules, under) if isinstance(item, FoundFile)]


def skipped(root: Path, rules: Rules = Rules(), under: str = "") -> dict[str, str]:  # noqa: B008
    """Path to reason; also checks that every reason is a documented one and every path is named once."""
    items = [item for item in scan(str(root), rules, under) if isinstance(item, SkippedPath)]
    assert {item.reason for item in items} <= REASONS.keys()
    assert len({item.path for item in items}) == len(items)
    return {item.path: item.reason for item in items}


def test_found_files_carry_size_and_time(tmp_path: Path, write: Write) -> None:
    write("a.md", text="12345")
    os.utime(tmp_path / "a.md", ns=(1, 1_700_000_000_123_456_789))
    status = (tmp_path / "a.md").stat()
    # The time of its content was set back; that of its status cannot be.
    assert list(scan(str(tmp_path))) == [FoundFile("a.md", 5, status.st_ctime_ns, status.st_ino)]
    assert status.st_ctime_ns > status.st_mtime_ns


def test_order_is_that_of_the_paths(tmp_path: Path, write: Write) -> None:
    write(
        "a/x.md", "a-b.md", "a.md", "a/b/x.md", "a0.md", "B.md", "node_modules/x.md", "é.md", "x.qqq", "a/.git/config"
    )
    paths = [item.path for item in scan(str(tmp_path))]
    assert paths == sorted(paths)
    assert "node_modules/" in paths
    assert "a/.git/" in paths


def test_directory_names_alone_hide_nothing(tmp_path: Path, write: Write) -> None:
    names = (
        "build",
        "dist",
        "bin",
        "obj",
        "packages",
        "vendor",
        "target",
        "env",
        "venv",
        "out",
        "output",
        "logs",
        "tmp",
    )
    write(*(f"{name}/x.md" for name in names), *(f"deep/{name}/x.md" for name in names))
    assert len(found(tmp_path)) == 2 * len(names)
    assert skipped(tmp_path) == {}


def test_machine_made_directories_are_one_path_each(tmp_path: Path, write: Write) -> None:
    write("node_modules/a/x.md", "node_modules/b/x.md", "src/__pycache__/x.md", ".tox/x.md", "my.egg-info/SOURCES.txt")
    write("venv/lib/x.md", "venv/pyvenv.cfg", ".venv/x.md", ".venv/pyvenv.cfg", "a.md")
    write("target/debug/x.md")
    write("target/CACHEDIR.TAG", "root.md", text=CACHE_TAG)
    write("fake/CACHEDIR.TAG", text="no signature")
    write("fake/x.md")
    assert skipped(tmp_path) == {
        ".tox/": "machine-made",
        ".venv/": "machine-made",
        "fake/CACHEDIR.TAG": "unknown-type",
        "my.egg-info/": "machine-made",
        "node_modules/": "machine-made",
        "src/__pycache__/": "machine-made",
        "target/": "machine-made",
        "venv/": "machine-made",
    }
    assert found(tmp_path) == ["a.md", "fake/x.md", "root.md"]


def test_root_is_walked_whatever_it_is_called_or_holds(tmp_path: Path, write: Write) -> None:
    write("node_modules/.hidden/build/x.md", "node_modules/.hidden/build/pyvenv.cfg")
    write("node_modules/.hidden/build/CACHEDIR.TAG", text=CACHE_TAG)
    assert "x.md" in found(tmp_path / "node_modules/.hidden/build")
    assert found(tmp_path / "node_modules/.hidden") == []


def test_hidden_files_and_directories(tmp_path: Path, write: Write) -> None:
    write(".notes.md", ".secret-plans/x.md", ".github/workflows/ci.yml", ".gitlab-ci.yml", ".editorconfig", ".zzz")
    assert found(tmp_path) == [".editorconfig", ".github/workflows/ci.yml", ".gitlab-ci.yml"]
    assert skipped(tmp_path) == {".notes.md": "hidden", ".secret-plans/": "hidden", ".zzz": "hidden"}
    assert {".notes.md", ".secret-plans/x.md"} <= set(found(tmp_path, Rules(hidden=True)))
    assert skipped(tmp_path, Rules(hidden=True)) == {".zzz": "unknown-type"}


@pytest.mark.parametrize("name", [".git", ".hg", ".svn", ".findling"])
def test_version_control_and_our_own_directory_are_never_entered(tmp_path: Path, write: Write, name: str) -> None:
    write(f"sub/{name}/x.md")
    rules = Rules(hidden=True, include=("*", f"sub/{name}/x.md"))
    assert found(tmp_path, rules) == []
    assert skipped(tmp_path, rules) == {f"sub/{name}/": "machine-made"}


def test_names_types_and_sizes_have_their_reasons(tmp_path: Path, write: Write) -> None:
    write("yarn.lock", ".env", ".env.example", "id_rsa", "a.min.js", "a.pages", "a.png", "a.qqq", "ok.md", ".DS_Store")
    write("empty.md", text="")
    write("large.md", text="x" * 101)
    write("limit.md", text="x" * 100)
    rules = Rules(max_file_size=100)
    assert found(tmp_path, rules) == [".env.example", "limit.md", "ok.md"]
    assert skipped(tmp_path, rules) == {
        ".DS_Store": "machine-made",
        ".env": "secret",
        "a.min.js": "minified",
        "a.pages": "unsupported",
        "a.png": "binary",
        "a.qqq": "unknown-type",
        "empty.md": "empty",
        "id_rsa": "secret",
        "large.md": "too-large",
        "yarn.lock": "lock-file",
    }
    assert SkippedPath("a.pages", "unsupported", "Apple iWork document") in list(scan(str(tmp_path), rules))


def test_sparse_gigabyte_is_too_large(tmp_path: Path) -> None:
    with (tmp_path / "huge.txt").open("wb") as sparse:
        sparse.truncate(1 << 30)
    assert skipped(tmp_path) == {"huge.txt": "too-large"}


def test_special_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    os.mkfifo(tmp_path / "pipe.md")
    monkeypatch.chdir(tmp_path)  # the path of a socket is limited to 107 bytes
    with socket.socket(socket.AF_UNIX) as server:
        server.bind("socket.md")
        assert skipped(tmp_path) == {"pipe.md": "special", "socket.md": "special"}


@pytest.mark.skipif(os.name == "nt", reason="names are bytes on POSIX only")
def test_name_that_is_not_utf8_is_skipped_and_can_be_stored(tmp_path: Path, write: Write) -> None:
    write("é/ü.md")
    try:
        Path(os.fsdecode(os.fsencode(tmp_path) + b"/bad\xff.md")).write_text("text")
    except OSError:
        pytest.skip("this file system holds UTF-8 names only")
    assert found(tmp_path) == ["é/ü.md"]
    assert skipped(tmp_path) == {"bad\ufffd.md": "undecodable"}


class TestIncludeAndExclude:
    def test_extension_beats_what_the_name_says(self, tmp_path: Path, write: Write) -> None:
        write("a.log2", "sub/B.LOG2", ".hidden.log2", "ignored.log2", "a.qqq")
        write(".gitignore", text="ignored.log2\n")
        rules = Rules(include=(".log2",))
        assert found(tmp_path, rules) == [".gitignore", ".hidden.log2", "a.log2", "ignored.log2", "sub/B.LOG2"]

    def test_glob_beats_lock_files_minified_and_ignored(self, tmp_path: Path, write: Write) -> None:
        write("uv.lock", "a.min.js", "docs/x.md", "docs/y.txt", "sub/uv.lock")
        write(".ignore", text="docs/*\n")
        rules = Rules(include=("/uv.lock", "*.min.js", "docs/*.md"))
        assert found(tmp_path, rules) == [".ignore", "a.min.js", "docs/x.md", "uv.lock"]

    def test_secret_needs_its_exact_name(self, tmp_path: Path, write: Write) -> None:
        write(".env", "sub/.env", "prod.env", "keys/server.pem")
        assert found(tmp_path, Rules(include=("*", "*.pem", "keys/*", ".env.*"))) == []
        assert found(tmp_path, Rules(include=("keys/server.pem", "prod.env"))) == ["keys/server.pem", "prod.env"]
        assert found(tmp_path, Rules(include=("/.env",))) == [".env"]

    def test_unsupported_stays_so(self, tmp_path: Path, write: Write) -> None:
        write("a.pages")
        assert skipped(tmp_path, Rules(include=(".pages",))) == {"a.pages": "unsupported"}

    def test_path_leads_into_skipped_directories(self, tmp_path: Path, write: Write) -> None:
        write(
            "build/notes/x.md", "build/notes/y.txt", "build/other/x.md", ".cache/deep/x.md", "node_modules/p/README.md"
        )
        write("target/CACHEDIR.TAG", text=CACHE_TAG)
        write("target/doc/x.md", "target/x.md")
        write(".gitignore", text="build/\n")
        rules = Rules(include=("build/notes/*.md", ".cache/**", "node_modules/p/README.md", "target/doc/*.md"))
        assert found(tmp_path, rules) == [
            ".cache/deep/x.md",
            ".gitignore",
            "build/notes/x.md",
            "node_modules/p/README.md",
            "target/doc/x.md",
        ]
        assert skipped(tmp_path, rules) == {
            "build/notes/y.txt": "ignored",
            "build/other/": "ignored",
            "target/CACHEDIR.TAG": "machine-made",
            "target/x.md": "machine-made",
        }

    def test_extension_does_not_lead_into_skipped_directories(self, tmp_path: Path, write: Write) -> None:
        write("node_modules/x.log2", ".hidden/x.log2")
        assert found(tmp_path, Rules(include=(".log2",))) == []

    def test_directory_by_name_is_walked_with_the_usual_rules(self, tmp_path: Path, write: Write) -> None:
        write("node_modules/a.md", "node_modules/b.qqq", ".drafts/a.md")
        rules = Rules(include=("node_modules/", ".drafts/"))
        assert found(tmp_path, rules) == [".drafts/a.md", "node_modules/a.md"]
        assert skipped(tmp_path, rules) == {"node_modules/b.qqq": "unknown-type"}

    def test_exclude_wins_over_everything(self, tmp_path: Path, write: Write) -> None:
        write("a.md", "docs/a.md", "docs/keep.md", "drafts/a.md", "x/drafts/a.md")
        write(".gitignore", text="!a.md\n")
        rules = Rules(include=("*.md", "drafts/a.md"), exclude=("docs/*", "!docs/keep.md", "drafts/"))
        assert found(tmp_path, rules) == [".gitignore", "a.md", "docs/keep.md"]
        assert skipped(tmp_path, rules) == {"docs/a.md": "excluded", "drafts/": "excluded", "x/drafts/": "excluded"}

    def test_ignore_files_can_be_left_out(self, tmp_path: Path, write: Write) -> None:
        write("a.md")
        write(".gitignore", text="a.md\n")
        assert found(tmp_path, Rules(use_ignore_files=False)) == [".gitignore", "a.md"]

    @pytest.mark.parametrize("glob", ["", "#x", "[x", "x\\", "a\nb"])
    def test_pattern_that_can_match_nothing_is_an_error(self, tmp_path: Path, glob: str) -> None:
        for rules in (Rules(include=(glob,)), Rules(exclude=(glob,))):
            with pytest.raises(InvalidValueError, match="can match nothing"):
                scan(str(tmp_path), rules)


class TestSymlinks:
    def test_are_skipped_by_default(self, tmp_path: Path, write: Write) -> None:
        write("docs/x.md")
        (tmp_path / "file.md").symlink_to("docs/x.md")
        (tmp_path / "docs/loop").symlink_to("..")
        (tmp_path / "broken.md").symlink_to("nowhere")
        assert found(tmp_path) == ["docs/x.md"]
        assert skipped(tmp_path) == dict.fromkeys(("broken.md", "docs/loop", "file.md"), "symlink")

    def test_loops_end(self, tmp_path: Path, write: Write) -> None:
        write("root/a/x.md", "outside/y.md")
        root = tmp_path / "root"
        (root / "a/up").symlink_to("..")
        (root / "a/self").symlink_to(".")
        (root / "knot").symlink_to("knot")
        (root / "out").symlink_to("../outside")
        (tmp_path / "outside/back").symlink_to("../root")
        (tmp_path / "outside/self").symlink_to(".")
        rules = Rules(follow_symlinks=True)
        assert found(root, rules) == ["a/x.md", "out/y.md"]
        assert skipped(root, rules) == {
            "a/self/": "symlink",
            "a/up/": "symlink",
            "knot": "unreadable",
            "out/back/": "symlink",
            "out/self/": "symlink",
        }

    def test_directory_is_found_once_under_its_real_path(self, tmp_path: Path, write: Write) -> None:
        write("root/real/x.md", "outside/sub/y.md")
        root = tmp_path / "root"
        (root / "a").symlink_to("real")
        (root / "o1").symlink_to("../outside")
        (root / "o2").symlink_to("../outside/sub")
        (root / "link.md").symlink_to("../outside/sub/y.md")
        assert found(root, Rules(follow_symlinks=True)) == ["link.md", "o1/sub/y.md", "real/x.md"]

    def test_parent_of_the_root_is_walked_without_the_root(self, tmp_path: Path, write: Write) -> None:
        write("root/x.md", "beside.md")
        (tmp_path / "root/up").symlink_to("..")
        rules = Rules(follow_symlinks=True)
        assert found(tmp_path / "root", rules) == ["up/beside.md", "x.md"]

    def test_root_may_be_one(self, tmp_path: Path, write: Write) -> None:
        write("real/x.md")
        (tmp_path / "link").symlink_to("real")
        assert found(tmp_path / "link") == ["x.md"]


class TestVanishing:
    def test_directory_removed_during_the_walk(self, tmp_path: Path, write: Write) -> None:
        write("a.md", "b/x.md", "c.md")
        walk = scan(str(tmp_path))
        assert next(walk).path == "a.md"
        shutil.rmtree(tmp_path / "b")
        assert next(walk) == SkippedPath("b/", "unreadable", "No such file or directory")

    def test_files_and_their_directory_removed_during_the_walk(self, tmp_path: Path, write: Write) -> None:
        write("d/a.md", "d/b.md", "d/sub/x.md", "e.md")
        walk = scan(str(tmp_path))
        assert next(walk).path == "d/a.md"
        shutil.rmtree(tmp_path / "d")
        items = [(item.path, type(item)) for item in walk]
        assert items == [("d/b.md", SkippedPath), ("d/sub/", SkippedPath), ("e.md", FoundFile)]

    def test_directory_replaced_by_a_file(self, tmp_path: Path, write: Write) -> None:
        write("a.md", "b/x.md")
        walk = scan(str(tmp_path))
        next(walk)
        shutil.rmtree(tmp_path / "b")
        write("b")
        assert list(walk) == [SkippedPath("b/", "unreadable", "Not a directory")]

    def test_root_removed_before_the_first_step(self, tmp_path: Path, write: Write) -> None:
        write("root/x.md")
        walk = scan(str(tmp_path / "root"))
        shutil.rmtree(tmp_path / "root")
        assert list(walk) == [SkippedPath("./", "unreadable", "No such file or directory")]

    @pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
    def test_unreadable_directory(self, tmp_path: Path, write: Write) -> None:
        write("a/x.md", "b.md")
        (tmp_path / "a").chmod(0)
        try:
            assert skipped(tmp_path) == {"a/": "unreadable"}
            assert found(tmp_path) == ["b.md"]
        finally:
            (tmp_path / "a").chmod(0o700)

    def test_path_too_long_for_the_system(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.chdir(tmp_path)
        for _ in range(20):
            Path("d" * 250).mkdir()
            os.chdir("d" * 250)
        os.chdir(tmp_path)
        (item,) = scan(str(tmp_path))
        assert isinstance(item, SkippedPath)
        assert (item.reason, item.detail) == ("unreadable", "File name too long")


class TestRoots:
    def test_missing_root_is_an_error_at_once(self, tmp_path: Path) -> None:
        with pytest.raises(PathNotFoundError, match="missing"):
            scan(str(tmp_path / "missing"))

    @pytest.mark.parametrize("name", ["a.md", "strange.qqq", ".hidden", ".env", "[a]*?.q q ", "!x", "#x", "yarn.lock"])
    def test_single_file_counts_as_included(self, tmp_path: Path, write: Write, name: str) -> None:
        write(name, "other.md")
        write(".gitignore", text="*\n")
        status = (tmp_path / name).stat()
        assert list(scan(str(tmp_path / name))) == [FoundFile(name, 5, changed_ns(status), status.st_ino)]

    def test_single_file_may_be_a_symlink_but_not_unsupported_or_a_pipe(self, tmp_path: Path, write: Write) -> None:
        write("a.md", "a.pages")
        (tmp_path / "link").symlink_to("a.md")
        os.mkfifo(tmp_path / "pipe.md")
        assert found(tmp_path / "link") == ["link"]
        assert skipped(tmp_path / "a.pages") == {"a.pages": "unsupported"}
        assert skipped(tmp_path / "pipe.md") == {"pipe.md": "special"}
        with pytest.raises(InvalidValueError, match="is a file"):
            scan(str(tmp_path / "a.md"), under="b.md")

    def test_relative_root(self, tmp_path: Path, write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
        write("top/.git/HEAD", "top/sub/a.md", "top/sub/b.md")
        write("top/.gitignore", text="sub/b.md\n")
        monkeypatch.chdir(tmp_path / "top/sub")
        assert found(Path()) == ["a.md"]


class TestUnder:
    def test_same_verdicts_as_the_whole_walk(self, tmp_path: Path, write: Write) -> None:
        write("docs/a.md", "docs/b.log", "docs/sub/c.md", "docs/sub/d.md", "x.md", "docs2/x.md")
        write(".gitignore", text="*.log\nc.md\n")
        write("docs/.gitignore", text="!c.md\nd.md\n")
        whole = [item for item in scan(str(tmp_path)) if item.path.startswith("docs/")]
        assert list(scan(str(tmp_path), under="docs")) == whole
        assert list(scan(str(tmp_path), under="./docs/")) == whole
        assert found(tmp_path, under="docs/sub") == ["docs/sub/c.md"]
        assert found(tmp_path, under="docs/a.md") == ["docs/a.md"]
        assert skipped(tmp_path, under="docs/b.log") == {"docs/b.log": "ignored"}

    def test_skipped_directory_on_the_way_is_what_is_told(self, tmp_path: Path, write: Write) -> None:
        write("node_modules/p/a.md", "venv/pyvenv.cfg", "venv/lib/a.md", "a.md")
        assert skipped(tmp_path, under="node_modules/p") == {"node_modules/": "machine-made"}
        assert skipped(tmp_path, under="venv/lib/a.md") == {"venv/": "machine-made"}
        assert skipped(tmp_path, under="venv") == {"venv/": "machine-made"}
        assert skipped(tmp_path, under="a.md/b.md") == {"a.md/b.md": "unreadable"}
        assert skipped(tmp_path, under="gone/b.md") == {"gone/b.md": "unreadable"}

    @pytest.mark.parametrize("under", ["../x", "a/../../x", "/etc"])
    def test_leads_never_out_of_the_root(self, tmp_path: Path, under: str) -> None:
        with pytest.raises(InvalidValueError, match="does not lie below"):
            scan(str(tmp_path), under=under)


def test_verdict_of_a_directory_that_is_walked_is_none(tmp_path: Path, write: Write) -> None:
    write("docs/a.md", ".hidden/a.md")
    assert verdict(str(tmp_path), "docs") is None
    assert verdict(str(tmp_path), "") is None
    assert verdict(str(tmp_path), ".hidden/a.md") == SkippedPath(".hidden/", "hidden")


names = st.sampled_from(["a.md", "b.qqq", ".c.md", "d", "build", "node_modules", ".github", ".env", "venv", "e.log2"])
paths = st.lists(names, min_size=1, max_size=4).map("/".join)
globs = st.sampled_from(
    ["*.md", ".log2", "build/", "build/**", "d/*.qqq", "/d", "!a.md", "**/venv", "node_modules/d/*", ".env", "*"]
)


@settings(max_examples=tries(100, short=30), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    files=st.lists(paths, min_size=1, max_size=12),
    tagged=st.sampled_from(["", "venv/pyvenv.cfg", "d/CACHEDIR.TAG"]),
    ignore=st.lists(globs, max_size=3),
    include=st.lists(globs, max_size=2),
    exclude=st.lists(globs, max_size=1),
    hidden=st.booleans(),
)
def test_walk_and_single_verdicts_agree(
    tmp_path_factory: pytest.TempPathFactory,
    files: list[str],
    tagged: str,
    ignore: list[str],
    include: list[str],
    exclude: list[str],
    hidden: bool,
) -> None:
    root = tmp_path_factory.mktemp("tree")
    for path in [*files, *filter(None, [tagged])]:
        if not any(parent.is_file() for parent in (root / path).parents) and not (root / path).is_dir():
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_text(CACHE_TAG)
    (root / ".gitignore").write_text("\n".join(ignore) + "\n")
    rules = Rules(include=tuple(include), exclude=tuple(exclude), hidden=hidden)

    walked = {item.path: item for item in scan(str(root), rules)}
    for path in (str(path.relative_to(root)) for path in root.rglob("*") if path.is_file()):
        single = verdict(str(root), path, rules)
        assert single is not None
        assert walked[single.path] == single
        assert single.path == path or path.startswith(single.path)
