"""The web page on texts that are hard to show: one endless line, the same message again and again, nothing at all."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from findling.domain.records import Message, Thread
from findling.service.content.chats import WorkspaceChats
from findling.service.engine.engine import open_engine
from findling.service.settings.settings import Settings
from tests.browser import opened_browser, why_not
from tests.faces.web_servers import WebPage, WebServer, project_settings

if TYPE_CHECKING:
    from selenium.webdriver.chrome.webdriver import WebDriver

pytestmark = pytest.mark.skipif(bool(why_not()), reason=why_not() or "never")

START = 1_775_637_480.0
LONG_MESSAGE = "Words about the kumquat migration are said again and again. " * 12
FILES = {
    "line.json": '{"a": "' + "mutex ledger 🚀 packet queue " * 2000 + "zebrafish " + "river socket " * 500 + '"}',
    "wrapped.txt": "".join(
        f"Line {n} {'goes on and on, far beyond the edge ' * (n % 7)}{'the unicorn' if n == 10_050 else ''}\n"
        for n in range(1, 10_100)
    ),
}
FILES["saved.html"] = (
    "<html><head>\n<!--\n"
    + "kept\n" * 30
    + "-->\n</head><body><h1>Zoo</h1>\n"
    + "".join(f"<p>Paragraph {n} of the page,\nwhich says little.</p>\n\n" for n in range(20))
    + "<p>The okapi is fed at noon.</p>\n</body></html>\n"
)
MARKS_IN_VIEW = (
    "const pane = document.getElementById('preview-body').getBoundingClientRect();"
    "return [...document.querySelectorAll('#panel-text mark')].filter((mark) => {"
    "  const place = mark.getBoundingClientRect();"
    "  return place.top >= pane.top && place.bottom <= pane.bottom;"
    "}).map((mark) => mark.textContent.toLowerCase())"
)


@pytest.fixture(scope="module")
def settings(tmp_path_factory: pytest.TempPathFactory) -> Settings:
    folder = tmp_path_factory.mktemp("preview")
    loaded = project_settings(folder, FILES)
    said = [("Ann", "The kumquat deployment failed again"), ("Bob", "Rolling back now"), ("Çelik", LONG_MESSAGE)]
    messages = [Message(str(n), said[n % 3][1], said[n % 3][0], START + n * 60) for n in range(18)]
    with open_engine(folder / "project", settings=loaded) as engine:
        engine.index()
        WorkspaceChats(engine.writer).add([Thread("test", "ops", messages, title="#ops")])
    (folder / "empty").mkdir()
    with open_engine(folder / "empty", settings=loaded) as engine:
        engine.index()
    return loaded


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory, settings: Settings) -> Iterator[WebPage]:
    server = WebServer(Path(settings["store.home"]).parent / "project", settings)
    try:
        with opened_browser(tmp_path_factory.mktemp("profile")) as driver:
            yield _page(driver, server)
    finally:
        server.stop()


def _page(driver: WebDriver, server: WebServer) -> WebPage:
    driver.set_window_size(1200, 900)
    return WebPage(driver, server)


def test_a_match_far_along_an_endless_line_is_marked_and_in_view(page: WebPage) -> None:
    page.open("?q=zebrafish&mode=keyword")
    page.click("#hits .open")
    page.wait(lambda: page.run(MARKS_IN_VIEW) == ["zebrafish"])
    passage = page.run("return document.querySelector('#panel-text .passage').textContent")
    assert "zebrafish" in passage and len(passage) < len(FILES["line.json"]) / 4


def test_the_message_that_was_found_is_marked_and_none_that_says_the_same(page: WebPage) -> None:
    page.open("?q=kumquat+migration&type=chat&mode=keyword")
    count = len(page.all("#hits .open"))
    assert count > 3
    for place in range(count):
        page.run("document.querySelectorAll('#hits .open')[arguments[0]].click()", place)
        when = page.run("return document.querySelectorAll('#hits .hit')[arguments[0]].querySelector('.where')"
                        ".textContent.match(/\\d\\d:\\d\\d/)[0]", place)  # fmt: skip
        page.see("#preview-where", when)
        page.rest()
        marked = page.run(
            "return [...document.querySelectorAll('#panel-text .line')].filter((line) => line.querySelector('mark'))"
            ".map((line) => line.textContent.slice(0, 18))"
        )
        assert f"[2026-04-08 {when}]" in marked
        assert len(marked) < 3  # a passage may hold a short message besides, never the next long one
    page.click("#whole")
    page.wait(lambda: len(page.all("#panel-text .line")) == 18)
    page.wait(lambda: page.run(MARKS_IN_VIEW))


def test_author_and_time_of_a_message_are_said_once(page: WebPage) -> None:
    page.open("?q=deployment&type=chat&mode=keyword")
    where = page.texts("#hits .where")[0]
    assert where.count("Ann") == 1 and where.count("2026-04-08") == 1
    shown = page.texts("#hits .chat")[0]
    assert "The kumquat deployment failed again" in shown
    assert "Rolling back now" in shown
    assert "[2026-04-08" not in shown
    said = page.texts("#hits .chat .line, #hits .chat .around")
    assert len(set(said)) >= 2
    page.open("?q=bob&type=chat&mode=keyword")
    assert "Bob" in page.texts("#hits .chat mark")  # what matched is shown, wherever it stands


def test_the_whole_document_opens_at_the_passage(page: WebPage) -> None:
    page.open("?q=unicorn&mode=keyword")
    page.click("#hits .open")
    page.wait(lambda: page.run(MARKS_IN_VIEW) == ["unicorn"])
    page.click("#whole")
    page.wait(lambda: len(page.all("#panel-text .block")) == 51)
    page.wait(lambda: page.run(MARKS_IN_VIEW) == ["unicorn"])
    page.click("#tab-why")
    page.click("#tab-text")
    page.wait(lambda: page.run(MARKS_IN_VIEW) == ["unicorn"])


def test_numbers_of_lines_have_room(page: WebPage) -> None:
    page.open("?q=unicorn&mode=keyword")
    page.click("#hits .open")
    page.wait(lambda: page.run(MARKS_IN_VIEW) == ["unicorn"])
    overflow = page.run(
        "return [...document.querySelectorAll('.number')].filter((one) => {"
        "  const range = document.createRange(); range.selectNodeContents(one);"
        "  return range.getBoundingClientRect().left < one.parentElement.getBoundingClientRect().left + 4;"
        "}).map((one) => one.textContent)"
    )
    assert overflow == []


def test_a_line_of_an_extracted_text_has_one_number_in_snippet_and_preview(page: WebPage) -> None:
    """Rows of the text were counted: 1262 in the preview for line 1300 of the snippet."""
    page.open("?q=okapi&mode=keyword")
    line = "[...document.querySelectorAll('{0} .line')].find((one) => one.textContent.includes('okapi'))"
    number = f"return {line}?.querySelector('.number')?.textContent ?? ''"
    page.click("#hits .open")
    page.see("#panel-text mark", "okapi")
    expected = FILES["saved.html"].split("\n").index("<p>The okapi is fed at noon.</p>") + 1
    for place in ("#hits", "#panel-text"):
        assert page.run(number.format(place)) == str(expected), place


def test_an_empty_workspace_says_how_to_fill_it(page: WebPage, settings: Settings) -> None:
    page.open(f"?workspace={Path(settings['store.home']).parent / 'empty'}")
    page.see("#nothing", "Nothing is in here yet.")
    assert [line.partition("\n")[0] for line in page.texts("#nothing code")] == [
        "findling index",
        "findling chats import FILE",
        "findling add FILE",
    ]
    assert not page.all("#recent")[0].is_displayed()
    assert "latest first" not in page.texts("#stage")[0]
    page.open()
    assert page.all("#recent")[0].is_displayed()
    assert "latest first" in page.texts("#stage")[0]
