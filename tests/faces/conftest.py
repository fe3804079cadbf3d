"""Every test of the command line has a home, a configuration and an index folder of its own."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from findling.faces.cli.main import run
from tests.processes import complaints

if TYPE_CHECKING:
    from selenium.webdriver.chrome.webdriver import WebDriver

    from tests.faces.web_servers import WebPage, WebServer


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    made = tmp_path / "home"
    made.mkdir()
    for name in [name for name in os.environ if name.startswith("FINDLING_")] + ["NO_COLOR", "FORCE_COLOR"]:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(made))
    monkeypatch.setenv("USERPROFILE", str(made))
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("FINDLING_CONFIG", str(tmp_path / "config.toml"))
    monkeypatch.setenv("FINDLING_HOME", str(tmp_path / "workspaces"))
    monkeypatch.setenv("FINDLING_SEARCH_MODE", "keyword")  # words are what these tests look for, others say otherwise
    monkeypatch.setenv("FINDLING_SEMANTIC_REFINE", "never")  # nothing may run on when a test is over
    monkeypatch.setenv("FINDLING_SERVE_AUTO", "never")
    return made


@pytest.fixture
def project(home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A small project, which is the current folder."""
    root = home / "project"
    (root / "src").mkdir(parents=True)
    (root / "docs").mkdir()
    (root / "src" / "auth.py").write_text(
        "import os\n\n\ndef login(user):\n    token = create_session(user)\n    return token\n"
    )
    (root / "src" / "shop.ts").write_text("export function basket(user: string) {\n  return user;\n}\n")
    (root / "docs" / "guide.md").write_text("# Guide\n\n## Signing in\n\nEvery login makes a session token.\n")
    (root / "docs" / "index.md").write_text("# The index\n\nHow a stale index is noticed.\n")
    (root / "blob.bin").write_bytes(b"\x00\x01\x02\x00" * 64)
    monkeypatch.chdir(root)
    return root


@pytest.fixture
def findling(capfd: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str, str]]:
    """Run the command line in this process: exit code, stdout, stderr without what depends on the moment."""

    def call(*args: str) -> tuple[int, str, str]:
        code, out, err = spoken(capfd, *args)
        return code, out, complaints(err)

    return call


@pytest.fixture
def findling_aloud(capfd: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str, str]]:
    """Run the command line in this process: exit code, stdout, all of stderr."""
    return partial(spoken, capfd)


def spoken(capfd: pytest.CaptureFixture[str], *args: str) -> tuple[int, str, str]:
    capfd.readouterr()
    code = run(args)
    out, err = capfd.readouterr()
    return code, out, err


@pytest.fixture(scope="module")
def driver(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WebDriver]:
    from tests.browser import opened_browser

    with opened_browser(tmp_path_factory.mktemp("profile")) as opened:
        yield opened


@pytest.fixture
def page(driver: WebDriver, server: WebServer) -> Iterator[WebPage]:
    """The page, which must not complain, and ask nobody but its own server, whatever a test does with it."""
    from tests.faces.web_servers import WebPage

    shown = WebPage(driver, server)
    yield shown
    assert shown.complaints() == []
    assert {url for url in shown.requests() if not url.startswith(f"{server.address}/")} == set()
