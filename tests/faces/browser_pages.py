"""A page of findling in a real browser, in the words of somebody who uses it."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.processes import PATIENCE_S

if TYPE_CHECKING:
    from selenium.webdriver.chrome.webdriver import WebDriver
    from selenium.webdriver.remote.webelement import WebElement

__all__ = ["BrowserPage"]

_POLL_S = 0.05
"""Between two looks at the page: each takes 6 ms of CPU."""


class BrowserPage:
    """One page, opened from its file."""

    def __init__(self, driver: WebDriver, path: Path) -> None:
        self.driver = driver
        self.path = path

    def open(self, query: str = "") -> None:
        """Load the page afresh, by a link to a query if one is given."""
        self.driver.get("about:blank")
        self._log("browser")
        self._log("performance")
        self.driver.get(self.path.as_uri() + query)
        self.wait(lambda: self.run("return document.documentElement.dataset.ready"))

    def ready(self) -> None:
        """Load the page unless it is there already."""
        if self.driver.current_url.partition("#")[0] != self.path.as_uri():
            self.open()

    def run(self, script: str, *arguments: object) -> Any:
        """The result of a script in the page."""
        return self.driver.execute_script(script, *arguments)

    def search(self, query: str) -> dict[str, Any]:
        """The hits of the page, as data."""
        found: dict[str, Any] = self.run("return findling.search(arguments[0])", query)
        return found

    def type(self, text: str) -> None:
        """Type into the search box instead of what stands there, and wait for the answer."""
        box = self.all("#query")[0]
        box.clear()
        box.send_keys(text)
        self.wait(lambda: self._asked(text))

    def paste(self, text: str) -> None:
        """Put a text into the search box at once instead of what stands there, and wait for the answer."""
        self.run("const box = document.querySelector('#query'); box.focus(); box.select()")
        self.driver.execute_cdp_cmd("Input.insertText", {"text": text})
        self.wait(lambda: self._asked(text))

    def press(self, key: str) -> None:
        """Press a key wherever the focus is."""
        self.driver.switch_to.active_element.send_keys(key)

    def all(self, selector: str) -> list[WebElement]:
        """The elements that a selector finds."""
        from selenium.webdriver.common.by import By

        return self.driver.find_elements(By.CSS_SELECTOR, selector)

    def texts(self, selector: str) -> list[str]:
        """The texts of the visible elements."""
        return [element.text for element in self.all(selector)]

    def focused(self) -> str:
        """The id of what has the focus."""
        return str(self.run("return document.activeElement.id"))

    def wait(self, holds: Callable[[], object]) -> None:
        """Wait until something holds. Raises AssertionError when it never does."""
        end = time.monotonic() + PATIENCE_S
        while not holds():
            assert time.monotonic() < end, "the page never came to it"
            time.sleep(_POLL_S)

    def complaints(self) -> list[str]:
        """The browser's console since the page was opened."""
        return [str(entry["message"]) for entry in self._log("browser")]

    def requests(self) -> list[str]:
        """The addresses that were asked for since the page was opened, the page itself left out."""
        events = [json.loads(entry["message"])["message"] for entry in self._log("performance")]
        asked = [
            event["params"]["request"]["url"] for event in events if event["method"] == "Network.requestWillBeSent"
        ]
        return [url for url in asked if url.partition("#")[0] not in (self.path.as_uri(), "about:blank")]

    def _asked(self, text: str) -> bool:
        """Whether the page has asked for a text."""
        return bool(self.run("return decodeURIComponent(location.hash.replace(/[+]/g, ' '))") == f"#q={text}")

    def _log(self, kind: str) -> list[dict[str, Any]]:
        """The log since the last look at it."""
        entries: list[dict[str, Any]] = self.driver.execute("getLog", {"type": kind})["value"]
        return entries
