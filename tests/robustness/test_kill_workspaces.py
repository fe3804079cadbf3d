"""A process killed while it makes, moves, renames or drops a workspace leaves the old state or the new one."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from findling.domain.errors import InvalidValueError, NotFoundError
from findling.service.engine.engine import Engine
from findling.service.settings.settings import Settings
from findling.service.workspace.manifest import read_manifest
from findling.service.workspace.quotas import Quota
from findling.service.workspace.workspace import PROJECT_FOLDER, Workspace, folder_name, locate
from findling.service.workspace.workspace_folders import settle
from findling.service.workspace.workspace_moves import move_root, move_workspace
from findling.service.workspace.workspaces import create_workspace, drop_workspace, list_workspaces, rename_workspace
from findling.stores.local.legs import STORE_FILE
from findling.stores.sqlite.store import SqliteStore
from tests.counts import tries
from tests.processes import BoundedProcess

pytestmark = [pytest.mark.skipif(os.name == "nt", reason="signals and fork of POSIX"), pytest.mark.slow]

SETTINGS = Settings().override({"search.mode": "keyword", "semantic.instant": False}, "test")

KILLER = """
import errno, os, signal, sys

operation, arguments, across_devices = sys.argv[1], sys.argv[2].split("|"), sys.argv[3] == "True"
base = sys.argv[4]
from pathlib import Path
from findling.service.workspace.quotas import Quota
from findling.service.workspace.workspace_moves import move_root, move_workspace
from findling.service.workspace.workspaces import change_workspace, create_workspace, drop_workspace, rename_workspace

CHANGES = ("os.rename", "os.remove", "os.mkdir", "os.rmdir", "sqlite3.connect", "open")
state = {"left": -1}

def hook(event, values):
    if state["left"] < 0 or event not in CHANGES:
        return
    if event == "open" and not values[2] & (os.O_WRONLY | os.O_RDWR):
        return
    if state["left"] == 0:
        os.kill(os.getpid(), signal.SIGKILL)
    state["left"] -= 1
    if across_devices and event == "os.rename":
        inside = [os.fsdecode(path).startswith(base + "/home") for path in values[:2]]
        if inside[0] != inside[1]:
            raise OSError(errno.EXDEV, "another device")

sys.addaudithook(hook)
HOME = Path(base, "home")
for line in sys.stdin:
    child = os.fork()
    if child == 0:
        state["left"] = int(line)
        if operation == "set":
            change_workspace(*arguments, home=HOME, shared=True, limits={"text": 1000})
        else:
            globals()[operation](*arguments, home=HOME)
        os._exit(0)
    status = os.waitpid(child, 0)[1]
    print("done" if status == 0 else "killed" if os.WIFSIGNALED(status) else "failed", flush=True)
"""


class Place:
    """A home with a workspace of two files, which is the same again after every `restore`."""

    def __init__(self, base: Path) -> None:
        self.base, self.home, self.root = base / "now", base / "now" / "home", base / "now" / "project"
        self._before = base / "before"
        self.root.mkdir(parents=True)
        (self.root / "a.md").write_text("Every session token is rotated.\n")
        (self.root / "b.md").write_text("Trees grow slowly.\n")

    def index(self, name: str = "", place: str = "home") -> Workspace:
        workspace = locate(self.root, home=self.home, name=name, place=place)
        settle(workspace, self.home)
        with Engine(workspace, SETTINGS) as engine:
            engine.index()
        return workspace

    def keep(self) -> None:
        shutil.copytree(self.base, self._before, symlinks=True)

    def restore(self) -> None:
        shutil.rmtree(self.base)
        shutil.copytree(self._before, self.base, symlinks=True)

    def killed_everywhere(self, operation: str, *arguments: str, across_devices: bool = False) -> Iterator[int]:
        """Kill the operation before its first change, its second, and so on until it comes to its end.

        A short run kills before every third change.
        """
        command = [sys.executable, "-c", KILLER, operation, "|".join(arguments), str(across_devices), str(self.base)]
        with BoundedProcess(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
            assert process.stdin is not None
            assert process.stdout is not None
            step, outcome = 0, "killed"
            while outcome == "killed":
                self.restore()
                process.stdin.write(f"{step}\n")
                process.stdin.flush()
                outcome = process.stdout.readline().strip()
                assert outcome in ("killed", "done"), f"step {step}: {outcome}"
                yield step
                step += tries(1, short=3)
            process.stdin.close()
        assert step > 5, "the operation was not killed in the middle"

    def found(self, name: str = "", root: Path | None = None) -> list[str]:
        """The hits of a search; the store behind it must be whole."""
        workspace = locate(root or self.root, home=self.home, name=name)
        with SqliteStore.open(workspace.folder / STORE_FILE) as store:
            assert store.integrity() == []
        with Engine(workspace, SETTINGS) as engine:
            return [hit.path for hit in engine.search("token", refresh=False)]


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path.resolve())


def assert_tidy(place: Place, names: set[str]) -> None:
    """Nothing is left of what was begun and not finished."""
    assert {path.name for path in place.home.iterdir()} - {".places", ".workspaces.lock"} == names
    assert {path.name for path in place.root.iterdir()} <= {"a.md", "b.md", PROJECT_FOLDER}


@pytest.mark.parametrize("across_devices", [False, True])
def test_a_move_into_the_project(place: Place, across_devices: bool) -> None:
    place.index()
    place.keep()
    for _ in place.killed_everywhere("move_workspace", str(place.root), "project", across_devices=across_devices):
        assert place.found() == ["a.md"]
        assert len(list_workspaces(place.home)) == 1
        move_workspace(str(place.root), "project", home=place.home)
        assert place.found() == ["a.md"]
        assert (place.root / PROJECT_FOLDER / STORE_FILE).exists()
        # A copy that was made from is cleared away by the next move, or when it is dropped.
        drop_workspace(str(place.root), home=place.home)
        assert_tidy(place, set())


@pytest.mark.parametrize("across_devices", [False, True])
def test_a_move_into_the_home(place: Place, across_devices: bool) -> None:
    place.index(place="project")
    place.keep()
    for _ in place.killed_everywhere("move_workspace", str(place.root), "home", across_devices=across_devices):
        assert place.found() == ["a.md"]
        assert len(list_workspaces(place.home)) == 1
        move_workspace(str(place.root), "home", home=place.home)
        assert place.found() == ["a.md"]
        assert_tidy(place, {folder_name(place.root)})
        assert not (place.root / PROJECT_FOLDER).exists()


@pytest.mark.parametrize("where", ["home", "project"])
def test_a_root_that_has_moved(place: Place, where: str) -> None:
    place.index(place=where)
    moved = place.root.rename(place.root.with_name("moved"))
    place.keep()
    for _ in place.killed_everywhere("move_root", str(place.root), str(moved)):
        if [account.root for account in list_workspaces(place.home)] != [str(moved)]:
            move_root(str(place.root), moved, home=place.home)
        assert place.found(root=moved) == ["a.md"]
        assert [account.root for account in list_workspaces(place.home)] == [str(moved)]


def test_a_renaming(place: Place) -> None:
    create_workspace("old", home=place.home, root=place.root)
    place.index("old")
    place.keep()
    for _ in place.killed_everywhere("rename_workspace", "old", "new"):
        (account,) = list_workspaces(place.home)
        assert account.name in ("old", "new")
        assert place.found(account.name) == ["a.md"]
        if account.name == "old":
            rename_workspace("old", "new", home=place.home)
        assert place.found("new") == ["a.md"]


@pytest.mark.parametrize("where", ["home", "project"])
def test_a_drop(place: Place, where: str) -> None:
    place.index(place=where)
    place.keep()
    for _ in place.killed_everywhere("drop_workspace", str(place.root)):
        accounts = list_workspaces(place.home)
        if accounts:
            assert place.found() == ["a.md"]
            drop_workspace(str(place.root), home=place.home)
        else:
            with pytest.raises(NotFoundError):
                drop_workspace(str(place.root), home=place.home)
        assert_tidy(place, set())
        assert (place.root / "a.md").exists()


def test_a_creation(place: Place) -> None:
    place.home.mkdir()
    place.keep()
    for _ in place.killed_everywhere("create_workspace", "team"):
        if list_workspaces(place.home):
            with pytest.raises(InvalidValueError):
                create_workspace("team", home=place.home)
        else:
            create_workspace("team", home=place.home)
        manifest = read_manifest(place.home / "team")
        assert manifest is not None
        assert manifest.name == "team"
        assert_tidy(place, {"team"})


def test_a_change_of_the_manifest(place: Place) -> None:
    create_workspace("team", home=place.home)
    place.keep()
    for _ in place.killed_everywhere("set", "team"):
        manifest = read_manifest(place.home / "team")
        assert manifest is not None
        assert (manifest.shared, manifest.quota) in ((False, None), (True, Quota(text=1000)))
