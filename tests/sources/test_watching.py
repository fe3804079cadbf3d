"""A watched tree tells of changes that the scan would see, and of nothing else."""

from __future__ import annotations

import gc
import os
import shutil
import sys
import threading
import time
import tracemalloc
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from findling.domain.errors import InvalidValueError, MissingExtraError, PathNotFoundError
from findling.sources.files.rule_patterns import Rules
from findling.sources.files.watching import Tree, TreeWatch, network_file_system, open_watch
from tests.processes import PATIENCE_S, run_process

"""Seconds that a test waits for an event that must come; it comes much sooner."""

SILENCE_S = 0.3
"""Seconds that a test listens for an event that must not come."""

NEVER = threading.Event()

on_linux = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="inotify")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    made = tmp_path.resolve() / ".notes" / "project"  # a hidden folder above the root hides nothing
    (made / "src").mkdir(parents=True)
    (made / "node_modules" / "left-pad").mkdir(parents=True)
    (made / ".git" / "objects").mkdir(parents=True)
    (made / ".cache").mkdir()
    (made / "build").mkdir()
    (made / ".gitignore").write_text("build/\n*.log\n")
    (made / "src" / "a.py").write_text("a = 1\n")
    (made / "index" / "keyword").mkdir(parents=True)
    (made / "index" / "manifest.json").write_text("{}\n")
    return made


@pytest.fixture
def opened(root: Path) -> Iterator[Callable[..., TreeWatch]]:
    """Watches that are closed when the test is over."""
    watches = []

    def begin(
        mode: str = "never", *, rules: Rules | None = None, only: str = "", path: Path | None = None
    ) -> TreeWatch:
        rules = rules or Rules(exclude=("/index/",))
        watches.append(open_watch(Tree(path or root, rules, only), polling=mode, poll_s=0.05))
        return watches[-1]

    yield begin
    for watch in watches:
        watch.close()


def wakes(watch: TreeWatch, patience_s: float = PATIENCE_S) -> bool:
    deadline = time.monotonic() + patience_s
    while time.monotonic() < deadline:
        if watch.wait(0.1, NEVER):
            return True
    return False


def is_quiet(watch: TreeWatch) -> bool:
    return not wakes(watch, SILENCE_S)


both = pytest.mark.parametrize("mode", ["never", "always"])


@both
@pytest.mark.parametrize(
    "path", ["src/a.py", "src/new.md", "README", "build/../notes.txt", "src/grows.md", "Dockerfile"]
)
def test_a_change_that_the_scan_would_see_wakes(
    opened: Callable[..., TreeWatch], root: Path, mode: str, path: str
) -> None:
    (root / "src" / "grows.md").write_text("")
    watch = opened(mode)
    (root / path).write_text("something else\n")
    assert wakes(watch)


LEFT_OUT = (
    ".git/index",
    ".git/objects/ab",
    "node_modules/left-pad/index.js",
    ".cache/x.md",
    ".hidden.md",
    "src/.a.py.swp",
    "build/out.md",
    "src/trace.log",
    "src/picture.png",
    "src/4913",
    "index/manifest.json",
    "index/keyword/meta.json",
    "src/.env",
)


@both
def test_changes_that_the_scan_leaves_out_wake_nobody(opened: Callable[..., TreeWatch], root: Path, mode: str) -> None:
    watch = opened(mode)
    for path in LEFT_OUT:
        (root / path).write_text("once\n")
        (root / path).write_text("twice\n")
    assert is_quiet(watch)
    for path in LEFT_OUT:
        (root / path).unlink()
    assert is_quiet(watch)
    (root / "src" / "a.py").write_text("a = 2\n")
    assert wakes(watch)


@both
def test_files_that_go_or_get_another_name_wake(opened: Callable[..., TreeWatch], root: Path, mode: str) -> None:
    watch = opened(mode)
    (root / "src" / "a.py").rename(root / "src" / "b.py")
    assert wakes(watch)
    watch.settle()
    is_quiet(watch)
    (root / "src" / "b.py").unlink()
    assert wakes(watch)


@both
def test_a_file_that_becomes_one_that_is_left_out_wakes(
    opened: Callable[..., TreeWatch], root: Path, mode: str
) -> None:
    watch = opened(mode)
    (root / "src" / "a.py").write_text("")
    assert wakes(watch)


@both
def test_folders_that_come_later_are_watched_too(opened: Callable[..., TreeWatch], root: Path, mode: str) -> None:
    watch = opened(mode)
    (root / "docs" / "deep").mkdir(parents=True)
    (root / "docs" / "deep" / "a.md").write_text("a\n")
    assert wakes(watch)
    watch.settle()
    is_quiet(watch)
    (root / "docs" / "deep" / "a.md").write_text("b, which is longer\n")
    assert wakes(watch)


@both
def test_a_folder_is_watched_under_its_new_name(opened: Callable[..., TreeWatch], root: Path, mode: str) -> None:
    watch = opened(mode)
    (root / "src").rename(root / "source")
    assert wakes(watch)
    watch.settle()
    is_quiet(watch)
    (root / "source" / "a.py").write_text("a = 100\n")
    assert wakes(watch)


@both
def test_a_folder_that_is_deleted_and_made_again_is_watched(
    opened: Callable[..., TreeWatch], root: Path, mode: str
) -> None:
    watch = opened(mode)
    shutil.rmtree(root / "src")
    (root / "src").mkdir()
    assert wakes(watch)
    watch.settle()
    is_quiet(watch)
    (root / "src" / "a.py").write_text("a = 100\n")
    assert wakes(watch)


@both
def test_an_ignore_file_wakes_and_opens_what_it_hid(opened: Callable[..., TreeWatch], root: Path, mode: str) -> None:
    (root / "build" / "report.md").write_text("hidden by a rule\n")
    watch = opened(mode)
    (root / ".gitignore").write_text("*.log\n")
    assert wakes(watch)
    watch.settle()
    is_quiet(watch)
    (root / "build" / "report.md").write_text("seen from now on\n")
    assert wakes(watch)


@both
def test_an_ignore_file_that_hides_itself_wakes(opened: Callable[..., TreeWatch], root: Path, mode: str) -> None:
    watch = opened(mode)
    (root / "src" / ".ignore").write_text("*\n")
    assert wakes(watch)


def test_a_tag_that_makes_a_folder_machine_made_wakes(opened: Callable[..., TreeWatch], root: Path) -> None:
    watch = opened()
    (root / "src" / "pyvenv.cfg").write_text("home = /usr\n")
    assert wakes(watch)


@both
def test_a_single_file_is_watched_without_its_neighbours(
    opened: Callable[..., TreeWatch], root: Path, mode: str
) -> None:
    watch = opened(mode, rules=Rules(include=("/a.py",)), only="a.py", path=root / "src")
    (root / "src" / "b.py").write_text("b = 1\n")
    assert is_quiet(watch)
    replacement = root / "src" / "a.py.new"
    replacement.write_text("a = 100\n")
    replacement.replace(root / "src" / "a.py")
    assert wakes(watch)


def test_links_are_not_followed_unless_the_scan_does(
    opened: Callable[..., TreeWatch], root: Path, tmp_path: Path
) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (root / "link").symlink_to(outside)
    watch, following = opened(), opened(rules=Rules(follow_symlinks=True))
    (outside / "a.md").write_text("a\n")
    assert is_quiet(watch)
    assert wakes(following)


@on_linux
def test_a_name_that_is_no_text_does_not_make_it_deaf(opened: Callable[..., TreeWatch], root: Path) -> None:
    watch = opened()
    (root / os.fsdecode(b"\xff.md")).write_text("x\n")
    assert wakes(watch)
    watch.settle()
    is_quiet(watch)
    (root / "src" / "a.py").write_text("a = 100\n")
    assert wakes(watch)


def test_ten_thousand_changes_leave_nothing_behind(opened: Callable[..., TreeWatch], root: Path) -> None:
    """The kept state grows neither with changes that count nor with others."""
    watch = opened()
    is_quiet(watch)

    def burst(count: int) -> None:
        for number in range(count):
            (root / "src" / f"{number % 500}.md").write_text(f"{number}\n")
            (root / "src" / f".{number % 500}.tmp").write_text(f"{number}\n")

    def handle(count: int) -> None:
        writer = threading.Thread(target=burst, args=(count,))
        writer.start()
        while writer.is_alive():
            watch.wait(0.05, NEVER)
        writer.join()

    def kept() -> int:
        while watch.wait(0.3, NEVER):
            pass
        gc.collect()  # gives back up to 2,000 freed pairs, 112 kB, which a busy machine's larger sets of changes leave
        # pathlib interns names: the interpreter's table of them doubles now and then, whoever has made the paths.
        snapshot = tracemalloc.take_snapshot().filter_traces([tracemalloc.Filter(False, "*pathlib*")])
        return sum(trace.size for trace in snapshot.traces)

    tracemalloc.start()
    try:
        handle(500)
        few = kept()
        handle(5_000)  # and as many that do not count
        deadline = time.monotonic() + PATIENCE_S
        while (grown := kept() - few) >= 64_000 and time.monotonic() < deadline:
            pass  # a busy machine delivers the last events late
        assert grown < 64_000
    finally:
        tracemalloc.stop()
    (root / "src" / "a.py").write_text("a = 100\n")
    assert wakes(watch)


def test_a_flood_is_not_judged_one_by_one(opened: Callable[..., TreeWatch], root: Path) -> None:
    """The system drops what it cannot hold, so a flood of what does not count may hide something that does."""
    watch = opened()
    for number in range(4_000):
        (root / f".{number}.tmp").touch()
    assert wakes(watch)
    watch.settle()
    deadline = time.monotonic() + PATIENCE_S
    while not is_quiet(watch):  # a busy machine delivers the last events late
        assert time.monotonic() < deadline
        watch.settle()


@both
def test_a_root_that_is_lost_is_an_error(opened: Callable[..., TreeWatch], root: Path, mode: str) -> None:
    with pytest.raises(PathNotFoundError):
        opened(mode, path=root / "nowhere")
    assert not (root / "nowhere").exists()


def test_a_polled_root_that_goes_is_missed(opened: Callable[..., TreeWatch], root: Path) -> None:
    watch = opened("always")
    shutil.rmtree(root)
    with pytest.raises(PathNotFoundError):
        wakes(watch)


def test_a_rule_that_matches_nothing_is_an_error(opened: Callable[..., TreeWatch]) -> None:
    with pytest.raises(InvalidValueError):
        opened(rules=Rules(exclude=("[",)))


SHORT_OF_FILES = """
import resource, sys, threading
from pathlib import Path
from findling.domain.errors import UsageError
from findling.sources.files.rule_patterns import Rules
from findling.sources.files.watching import Tree
from findling.sources.files.watching import open_watch

tree = Tree(Path(sys.argv[1]), Rules())
first = open_watch(tree)  # everything that it needs is loaded now
used = {int(entry.name) for entry in Path("/proc/self/fd").iterdir()}
free = [number for number in range(max(used) + 4) if number not in used]
hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
# Two more files are left, one of them that of the listing; watching needs three.
resource.setrlimit(resource.RLIMIT_NOFILE, (free[0] + 1, hard))
watch = open_watch(tree, poll_s=0.05)
print(first.polls, watch.polls, watch.note)
(tree.root / "src" / "a.py").write_text("a = 100\\n")
print(any(watch.wait(0.1, threading.Event()) for _ in range(int(sys.argv[2]))))
try:
    open_watch(tree, polling="never")
except UsageError as error:
    print(error.message, "|", error.hint)
"""


@on_linux
def test_it_polls_where_the_system_cannot_tell_more(root: Path) -> None:
    run = run_process([sys.executable, "-c", SHORT_OF_FILES, str(root), str(int(5 * PATIENCE_S))], check=True)
    how, woke, refused = run.stdout.splitlines()
    assert how.startswith("False True")
    assert "sysctl fs.inotify.max_user_instances" in how
    assert woke == "True"
    assert "cannot be watched" in refused
    assert refused.endswith("findling config set watch.polling auto")


def test_without_its_library_it_says_what_to_install(
    opened: Callable[..., TreeWatch], root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "watchfiles", None)
    with pytest.raises(MissingExtraError) as caught:
        opened()
    assert "findling[watch]" in caught.value.hint
    watch = opened("always")
    (root / "src" / "a.py").write_text("a = 100\n")
    assert wakes(watch)


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/", ""),
        ("/home/ann/notes", ""),
        ("/home/ann/server/notes", "nfs4"),
        ("/home/ann/server2", ""),
        ("/mnt/a share/x", "cifs"),
        ("/mnt/a share/local/x", ""),
    ],
)
def test_network_file_systems_are_known_by_their_mounts(tmp_path: Path, path: str, kind: str) -> None:
    mounts = tmp_path / "mountinfo"
    mounts.write_text(
        "22 1 254:0 / / rw,relatime - ext4 /dev/vda rw\n"
        "30 22 0:40 / /home/ann/server rw,relatime shared:1 - nfs4 host:/x rw\n"
        "31 22 0:41 / /mnt/a\\040share rw - cifs //host/x rw\n"
        "32 31 0:42 / /mnt/a\\040share/local rw - tmpfs tmpfs rw\n"
    )
    assert network_file_system(Path(path), mounts) == kind


def test_no_mounts_no_network(tmp_path: Path) -> None:
    assert network_file_system(tmp_path, tmp_path / "none") == ""
