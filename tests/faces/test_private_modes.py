"""Files of findling belong to their owner alone, whatever the mask of the shell."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from tests.processes import run_process

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="modes of POSIX")


def test_folders_and_exports_are_private(project: Path, tmp_path: Path) -> None:
    data = tmp_path / "data"
    environ = {**os.environ, "FINDLING_HOME": "", "XDG_DATA_HOME": str(data)}
    page = tmp_path / "page.html"
    before = os.umask(0o022)
    try:
        for args in (["index"], ["remember", "--here", "tea"], ["snapshot", "create"], ["export", str(page)]):
            done = run_process([sys.executable, "-m", "findling", *args], env=environ, cwd=project)
            assert done.returncode == 0, done.stderr
        home = data / "findling" / "workspaces"
        folders = [data, *data.rglob("*/")]
        assert home in folders
        assert {folder: oct(folder.stat().st_mode & 0o077) for folder in folders} == dict.fromkeys(folders, "0o0")
        assert page.stat().st_mode & 0o777 == 0o600
        home.chmod(0o755)  # as earlier versions left it: it names the folders that are indexed
        assert (
            run_process(
                [sys.executable, "-m", "findling", "remember", "--here", "more"], env=environ, cwd=project
            ).returncode
            == 0
        )
        assert home.stat().st_mode & 0o777 == 0o700
    finally:
        os.umask(before)
