"""A real browser for tests: Chromium and its driver, found where they are installed.

As a script, `python -m tests.browser --install` installs them where that is possible, says what it did, and never
fails: without them the tests that need a browser are skipped, and say so.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from tests.processes import run_process

if TYPE_CHECKING:
    from selenium.webdriver.chrome.webdriver import WebDriver

__all__ = ["PACKAGES", "Browser", "find_browser", "install", "opened_browser", "why_not"]

PACKAGES = ("chromium", "chromium-driver")
"""Their names on Debian."""

_INSTALLING_S = 900.0
_BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
_FLAGS = (
    "--headless=new",
    "--no-sandbox",  # CI runs as root
    "--disable-gpu",
    "--disable-quic",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--no-default-browser-check",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-extensions",
    "--disable-breakpad",
    # One renderer for all pages, none spare, none kept for a way back: a fifth of the CPU of opening a page.
    "--renderer-process-limit=1",
    "--disable-site-isolation-trials",
    "--disable-features=BackForwardCache,PaintHolding,SpareRendererForSitePerProcess,Translate,OptimizationHints",
    "--window-size=1100,1400",
)


class Browser(NamedTuple):
    """The places of the browser and its driver."""

    chromium: str
    driver: str


def find_browser() -> Browser | None:
    """The browser that CHROMIUM and CHROMEDRIVER name, or that is installed; `None` when a part is missing."""
    chromium = os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, _BROWSERS)), None)
    driver = os.environ.get("CHROMEDRIVER") or shutil.which("chromedriver")
    return Browser(chromium, driver) if chromium and driver else None


def why_not() -> str:
    """The parts that tests in a browser miss; empty when none is missing."""
    try:
        import selenium  # noqa: F401 - whether it is there is all that matters
    except ImportError:
        return "selenium is not installed: pip install selenium"
    if find_browser() is None:
        return f"there is no browser: apt-get install {' '.join(PACKAGES)}, or set CHROMIUM and CHROMEDRIVER"
    return ""


@contextmanager
def opened_browser(profile: Path) -> Iterator[WebDriver]:
    """A headless browser with a fresh profile in this folder, whose console and network can be read."""
    from selenium import webdriver
    from selenium.webdriver.chrome.options import Options
    from selenium.webdriver.chrome.service import Service

    found = find_browser()
    if found is None:
        raise RuntimeError(why_not())
    options = Options()
    options.binary_location = found.chromium
    for flag in (*_FLAGS, f"--user-data-dir={profile}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = webdriver.Chrome(options=options, service=Service(found.driver))
    try:
        driver.get("about:blank")  # the browser's first page has requests of its own, which are no test's
        yield driver
    finally:
        driver.quit()


def install() -> str:
    """Install browser and driver with apt-get, as root on Debian; what was done, or why nothing was."""
    if find_browser() is not None:
        return f"the browser is there: {find_browser()}"
    apt = shutil.which("apt-get")
    if apt is None or not hasattr(os, "geteuid") or os.geteuid() != 0:
        return f"no browser was installed: that takes root and apt-get; the packages are {' and '.join(PACKAGES)}"
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    for command in ([apt, "update", "-q"], [apt, "install", "-q", "-y", "--no-install-recommends", *PACKAGES]):
        done = run_process(command, env=environment, timeout=_INSTALLING_S)
        if done.returncode:
            return f"no browser was installed: {' '.join(command)} failed: {done.stderr.strip()[-500:]}"
    return f"installed {' and '.join(PACKAGES)}: {find_browser()}"


if __name__ == "__main__":
    print(install() if sys.argv[1:] == ["--install"] else why_not() or f"the browser is there: {find_browser()}")
