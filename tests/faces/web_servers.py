"""A real server with the web page on it, which tests can stop and start again, and the page in a real browser."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import uvicorn
from starlette.types import ASGIApp, Scope

from findling.domain.permissions import Caller
from findling.faces.http.app import create_app
from findling.faces.http.security.guards import OPEN_PATHS as ALWAYS_OPEN
from findling.faces.http.security.guards import Guard
from findling.faces.web.pages import OPEN_PATHS, page_routes
from findling.service.engine.executor import WorkLine
from findling.service.server.engine_pool import Host
from findling.service.server.tokens import TokenBook
from findling.service.settings.settings import Settings, load_settings
from tests.faces.browser_pages import BrowserPage
from tests.processes import PATIENCE_S

if TYPE_CHECKING:
    from selenium.webdriver.chrome.webdriver import WebDriver

__all__ = ["WebPage", "WebServer", "project_settings"]

_WATCH_STAGE = """
window.askedFor = null;
if (!window.stageWatcher) {
  const stage = document.querySelector("#stage");
  window.stageWatcher = new MutationObserver(() => {
    if (stage.classList.contains("asking")) window.askedFor = document.querySelector("#query").value.trim();
  });
  window.stageWatcher.observe(stage, { attributes: true });
}
"""
"""Notes the query that the page asks for, each time that it begins to ask."""


class WebServer:
    """The page and the interface of one workspace, on a port that stays the same over a restart."""

    def __init__(self, root: Path, settings: Settings, *, requires_token: bool = False) -> None:
        self._root, self._settings, self._requires_token = root, settings, requires_token
        self.port = _free_port()
        self.address = f"http://127.0.0.1:{self.port}"
        self.start()

    def start(self) -> None:
        """Serve, and come back when questions are answered."""
        self.host = Host(self._settings, self._root)
        self._line = WorkLine()
        app = self._guarded(create_app(self.host, self._line, identify=_caller, extra_routes=page_routes()))
        config = uvicorn.Config(app, host="127.0.0.1", port=self.port, log_level="error", ws="none", lifespan="on")
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(target=self._server.run, name="web-server")
        self._thread.start()
        end = time.monotonic() + PATIENCE_S
        while not self._server.started:
            assert self._thread.is_alive() and time.monotonic() < end, "the server does not start"
            time.sleep(0.01)

    def stop(self) -> None:
        """Serve no more; stopping twice is fine."""
        self._server.should_exit = True
        self._thread.join(PATIENCE_S)
        assert not self._thread.is_alive(), "the server does not stop"
        self._line.close()
        self.host.close()

    def _guarded(self, app: ASGIApp) -> ASGIApp:
        return Guard(
            app,
            names=(),
            tokens=TokenBook(self.host.home),
            requires_token=self._requires_token,
            max_body=1 << 20,
            rate=0,
            open_paths=(*ALWAYS_OPEN, *OPEN_PATHS),
        )


class WebPage(BrowserPage):
    """The page of a server, opened by its address."""

    def __init__(self, driver: WebDriver, server: WebServer) -> None:
        self.driver = driver
        self.server = server

    def open(self, query: str = "") -> None:
        """Load the page afresh, by a link such as `?q=words`, and wait for its first answer."""
        self._log("browser")
        self._log("performance")
        self.driver.get(f"{self.server.address}/{query}")
        self.rest()

    def go(self, query: str) -> None:
        """Follow a link such as `?q=words` within the page that is open, and wait for its answer."""
        self.run("history.pushState(null, '', `/${arguments[0]}`); dispatchEvent(new PopStateEvent('popstate'))", query)
        self.rest()

    def ready(self) -> None:
        """Load the page unless it is there already."""
        if not self.driver.current_url.startswith(self.server.address):
            self.open()

    def rest(self) -> None:
        """Wait until the page has the whole answer."""
        busy = "document.querySelector('[aria-busy=true], .asking')"
        self.wait(lambda: self.run(f"return 'ready' in document.documentElement.dataset && !{busy}"))

    def paste(self, text: str) -> None:
        """Put a text into the search box at once instead of what stands there, and wait for the whole answer."""
        self.run(_WATCH_STAGE)
        super().paste(text)
        self.rest()

    def type(self, text: str) -> None:
        """Type into the search box instead of what stands there, and wait for the whole answer."""
        box = self.all("#query")[0]
        # The mark of a question that is under way may come and go between two looks: an observer sees it.
        self.run(_WATCH_STAGE)
        box.clear()
        box.send_keys(text)
        self.wait(lambda: self._asked(text))
        self.rest()

    def texts(self, selector: str) -> list[str]:
        """The texts of the visible elements, all at one moment."""
        script = (
            "return [...document.querySelectorAll(arguments[0])]"
            ".map((one) => one.checkVisibility() ? one.innerText.trim() : '')"
        )
        found: list[str] = self.run(script, selector)
        return found

    def click(self, selector: str) -> None:
        """Click on the first element that a selector finds, once it is there and stays there."""
        from selenium.common.exceptions import StaleElementReferenceException

        def clicked() -> bool:
            try:
                found = self.all(selector)
                if found:
                    found[0].click()
            except StaleElementReferenceException:
                return False
            return bool(found)

        self.wait(clicked)

    def see(self, selector: str, text: str) -> None:
        """Wait until an element that can be seen says something."""
        self.wait(lambda: any(text in seen for seen in self.texts(selector)))

    def focused_hit(self) -> str:
        """The title of the hit that has the focus."""
        return str(self.run("return document.activeElement.closest('.hit')?.querySelector('.open')?.textContent ?? ''"))

    def requests(self) -> list[str]:
        """Every address that was asked for since the page was opened, the browser's own pictures left out."""
        urls = [str(one["url"]) for one in self._sent()]
        return [url for url in urls if not url.startswith(("about:", "data:"))]

    def bodies(self, path: str) -> list[dict[str, Any]]:
        """The requests to an address since the last look."""
        return [json.loads(one["postData"]) for one in self._sent() if str(one["url"]).endswith(path)]

    def _asked(self, text: str) -> bool:
        return bool(self.run("return window.askedFor === arguments[0]", text.strip()))

    def _sent(self) -> list[dict[str, Any]]:
        events = [json.loads(entry["message"])["message"] for entry in self._log("performance")]
        return [event["params"]["request"] for event in events if event["method"] == "Network.requestWillBeSent"]


def _caller(scope: Scope) -> Caller:
    caller: Caller = scope["state"]["caller"]
    return caller


def _free_port() -> int:
    with socket.socket() as asked:
        asked.bind(("127.0.0.1", 0))
        port: int = asked.getsockname()[1]
        return port


def project_settings(folder: Path, files: Mapping[str, str]) -> Settings:
    """The settings of a new project with these files; nothing is indexed yet, and no model reads."""
    root = folder / "project"
    root.mkdir()
    for name, text in files.items():
        (root / name).write_text(text, encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("FINDLING_HOME", str(folder / "workspaces"))
        patch.setenv("FINDLING_CONFIG", str(folder / "none.toml"))
        patch.setenv("FINDLING_SEMANTIC_REFINE", "never")
        return load_settings(root)
