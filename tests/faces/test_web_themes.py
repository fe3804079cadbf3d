"""Themes on the web page, in a real browser: a list to browse, names that are searched for, passages as hits."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from findling.service.engine.engine import open_engine
from findling.service.settings.settings import Settings, load_settings
from tests.browser import why_not
from tests.faces.web_servers import WebPage, WebServer, project_settings

if TYPE_CHECKING:
    from selenium.webdriver.chrome.webdriver import WebDriver

pytestmark = pytest.mark.skipif(bool(why_not()), reason=why_not() or "never")

EVIL = "<script>window.hacked = 1</script> \u202eevil"
FILES = {
    "Marie Curie.md": "# Marie Curie\n\nShe founded the Radium Institute in spring.\n",
    "Radium Institute.md": "# Radium Institute\n\nMarie Curie led the laboratory.\n",
    "letters.md": "# letters\n\nTo Marie Curie at the Radium Institute: come soon.\n",
    "Jump for Glory.md": "# Jump for Glory\n\nA film of Raoul Walsh.\n",
    "Raoul Walsh.md": "# Raoul Walsh\n\nHe made [[Jump for Glory]] in a hurry.\n",
    "evil one.md": f"# evil one\n\nPoison was told of [[{EVIL}]] there.\n",
    "evil two.md": f"# evil two\n\nMore was told of [[{EVIL}]] here.\n",
}


@pytest.fixture(scope="module")
def settings(tmp_path_factory: pytest.TempPathFactory) -> Settings:
    folder = tmp_path_factory.mktemp("themes")
    loaded = project_settings(folder, FILES)
    with open_engine(folder / "project", settings=loaded) as engine:
        engine.index()
    return loaded


@pytest.fixture(scope="module")
def server(settings: Settings) -> Iterator[WebServer]:
    served = WebServer(Path(settings["store.home"]).parent / "project", settings)
    yield served
    served.stop()


def _titles(page: WebPage) -> list[str]:
    return page.texts("#theme-list .open-theme")


def _browse(page: WebPage) -> None:
    page.open("?view=themes")
    page.wait(lambda: _titles(page))


def test_a_link_leads_from_the_search_to_the_themes(page: WebPage) -> None:
    page.open()
    page.wait(lambda: page.texts("#themes-link") == ["Themes"])
    page.click("#themes-link")
    page.wait(lambda: _titles(page))
    assert page.run("return location.search") == "?view=themes"
    assert page.focused() == "themes-title"
    first = page.texts("#theme-list .theme")[0]
    assert "Marie Curie" in _titles(page)[0] and "Radium Institute" in _titles(page)[0]
    assert "3 documents" in first and "3 passages" in first
    assert "Marie Curie" in page.texts("#theme-list .theme blockquote")[0]
    assert page.texts("#theme-count") == ["2 themes."]
    page.run("history.back()")
    page.wait(lambda: page.run("return location.search") == "")
    page.wait(lambda: page.texts("#hits .open"))


def test_keys_choose_a_theme_whose_passages_are_hits(page: WebPage) -> None:
    from selenium.webdriver.common.keys import Keys

    _browse(page)
    page.press("j")
    assert page.run("return document.activeElement.textContent") == _titles(page)[0]
    page.press(Keys.ARROW_DOWN)
    assert page.run("return document.activeElement.textContent") == _titles(page)[1]
    page.press("k")
    page.press(Keys.ENTER)
    page.wait(lambda: len(page.texts("#hits .open")) == 3)
    page.rest()
    assert set(page.texts("#hits .open")) == {"Marie Curie", "Radium Institute", "letters"}
    assert page.texts("#theme-names")[0].startswith("Theme: ")
    assert page.texts("#hits mark")
    assert "by shared names" in page.texts("#stage")[0]
    page.press(Keys.ARROW_DOWN)
    page.press("e")
    page.see("#panel-why", "names ")
    assert "theme=" in page.run("return location.search")
    page.press(Keys.ESCAPE)
    page.click("#theme-line a")
    page.wait(lambda: page.run("return location.search") == "?view=themes")


def test_a_theme_is_a_link_that_lasts_until_something_else_is_asked(page: WebPage) -> None:
    _browse(page)
    address = page.run("return document.querySelector('#theme-list .open-theme').getAttribute('href')")
    page.open(address.removeprefix("/"))
    assert len(page.texts("#hits .open")) == 3
    page.paste("hurry")
    assert page.texts("#hits .open") == ["Raoul Walsh"]
    assert "theme=" not in page.run("return location.search")
    assert page.texts("#theme-line") == [""]


def test_a_name_of_a_theme_is_searched_for(page: WebPage) -> None:
    _browse(page)
    label = page.run("return document.querySelector('.theme-names a').getAttribute('aria-label')")
    assert label.startswith("Search for ") and "documents" in label
    name = page.texts(".theme-names a")[0]
    page.click(".theme-names a")
    page.wait(lambda: page.run("return document.getElementById('query').value") == f'"{name}"')
    page.rest()
    assert page.texts("#hits .open")
    assert page.run("return new URLSearchParams(location.search).get('view')") is None


def test_a_theme_that_is_gone_is_said(page: WebPage) -> None:
    page.open("?theme=0123456789abcdef")
    page.see("#notices", "0123456789abcdef")
    assert page.texts("#themes-link") == ["Themes"]
    assert all("404" in complaint for complaint in page.complaints())


def test_script_in_a_theme_is_text(page: WebPage) -> None:
    _browse(page)  # a name that looks like a command is told nowhere, nor run
    assert "<script>" not in page.run("return document.getElementById('theme-list').textContent")
    assert page.run("return document.querySelectorAll('#theme-list script').length") == 0
    assert page.run("return window.hacked ?? 0") == 0


def test_every_link_has_a_name_and_every_list_too(page: WebPage) -> None:
    _browse(page)
    nameless = page.run(
        "return [...document.querySelectorAll('#themes a, #themes ul')].filter((one) =>"
        " !one.textContent.trim() && !one.getAttribute('aria-label')).length"
    )
    assert nameless == 0
    assert page.run("return document.querySelectorAll('nav [aria-current=page]').length") == 1
    assert page.run("return document.querySelector('nav [aria-current=page]').id") == "themes-link"


def test_the_list_fits_on_a_narrow_screen(page: WebPage) -> None:
    size = {"width": 360, "height": 740, "deviceScaleFactor": 1, "mobile": False}
    page.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    try:
        _browse(page)
        assert page.run("return document.documentElement.scrollWidth <= document.documentElement.clientWidth")
    finally:
        page.driver.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def test_keys_of_the_glossary_do_not_reach_the_themes(page: WebPage) -> None:
    _browse(page)
    page.click('nav [data-view="glossary"]')
    page.see("#candidates", "Nothing waits for a decision.")
    page.press("j")
    assert page.focused() == "glossary-title"


def test_without_shared_names_there_is_nothing_to_browse(driver: WebDriver, tmp_path: Path) -> None:
    root = tmp_path / "plain"
    root.mkdir()
    (root / "one.txt").write_text("nothing of that kind\n")
    own = {"store.home": str(tmp_path / "home"), "semantic.model": "off", "semantic.instant": False}
    settings = load_settings(root).override(own, "test")
    with open_engine(root, settings=settings) as engine:
        engine.index()
    served = WebServer(root, settings)
    try:
        other = WebPage(driver, served)
        other.open("?view=themes")
        other.see("#theme-list", "No two documents name the same thing.")
    finally:
        served.stop()
