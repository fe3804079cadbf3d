"""The graph around a hit on the web page, in a real browser: a drawing, the same as a list, and names as facets."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from findling.service.engine.engine import open_engine
from findling.service.settings.settings import Settings
from tests.browser import why_not
from tests.faces.web_servers import WebPage, WebServer, project_settings

pytestmark = pytest.mark.skipif(bool(why_not()), reason=why_not() or "never")

EVIL = "<script>window.hacked = 1</script><img src=x onerror='window.hacked = 2'> \u202eevil"
FILES = {
    "Marie Curie.md": "# Marie Curie\n\nShe founded the Radium Institute in spring.\n",
    "Radium Institute.md": "# Radium Institute\n\nThe laboratory stands in Paris.\n",
    "Paris.md": "# Paris\n\nA town on a river.\n",
    "evil.md": f"# {EVIL}\n\nPoison was told of [[{EVIL}]] to Marie Curie.\n",
}


@pytest.fixture(scope="module")
def settings(tmp_path_factory: pytest.TempPathFactory) -> Settings:
    folder = tmp_path_factory.mktemp("graph")
    loaded = project_settings(folder, FILES)
    with open_engine(folder / "project", settings=loaded) as engine:
        engine.index()
    return loaded


@pytest.fixture(scope="module")
def server(settings: Settings) -> Iterator[WebServer]:
    served = WebServer(Path(settings["store.home"]).parent / "project", settings)
    yield served
    served.stop()


def test_the_receipt_of_a_hit_of_the_graph_tells_its_way_and_adds_up(page: WebPage) -> None:
    page.open("?q=Where+does+the+institute+of+Marie+Curie+stand%3F")
    page.wait(lambda: "Paris" in page.texts("#hits .open"))
    page.run("document.querySelectorAll('#hits .why')[arguments[0]].click()", page.texts("#hits .open").index("Paris"))
    page.see("#panel-why .score-table", "via Radium Institute")
    rows = [[cell.text for cell in row.find_elements("css selector", "th, .value")] for row in
            page.all("#panel-why .score-table tbody tr")]  # fmt: skip
    told = {name.partition("\n")[0]: (name, value) for name, value in rows}
    assert "walk 0." in told["Graph"][0] and "cosine" not in told["Graph"][0]
    assert told["Graph"][1] == told["Score"][1]


def _open_graph(page: WebPage, query: str) -> None:
    page.open(f"?q={query}&mode=keyword")
    page.click("#hits .open")
    page.click("#tab-graph")
    page.wait(lambda: page.all("#panel-graph .drawing"))


def test_a_hit_shows_its_names_and_the_documents_that_share_them(page: WebPage) -> None:
    _open_graph(page, "founded")
    assert "Radium Institute" in page.texts("#panel-graph .graph-names a")
    assert "Radium Institute" in page.texts("#panel-graph .graph-documents a")
    drawn = page.run("return [...document.querySelectorAll('.drawing a text')].map((one) => one.textContent)")
    listed = page.texts("#panel-graph .graph-names a") + page.texts("#panel-graph .graph-documents a")
    assert len(drawn) == len(listed)
    assert "tab=graph" in page.run("return location.search")
    # Every line of the drawing ends at something, inside of it.
    lines = page.run("return [...document.querySelectorAll('.drawing line')].length")
    assert lines >= len(drawn)


def test_a_link_of_the_drawing_is_followed_by_keys(page: WebPage) -> None:
    from selenium.webdriver.common.keys import Keys

    _open_graph(page, "founded")
    page.run("document.querySelector('.drawing .graph-document').focus()")
    assert page.run("return document.activeElement.getAttribute('aria-label')").startswith("open ")
    first = page.run("return document.activeElement.dataset.hit")
    page.press(Keys.ENTER)
    page.wait(lambda: f"hit={first}" in page.run("return location.search"))
    page.rest()
    focus = "const one = document.querySelector('.drawing .graph-name'); one?.focus(); "
    page.wait(lambda: page.run(f"{focus}return one !== null && document.activeElement === one"))
    name = page.run("return document.activeElement.dataset.query")
    page.press(Keys.ENTER)
    page.wait(lambda: page.run("return document.getElementById('query').value") == name)
    page.rest()
    assert name.startswith('"')
    assert page.texts("#hits .open")


def test_keys_lead_to_the_graph_and_through_the_tabs(page: WebPage) -> None:
    from selenium.webdriver.common.keys import Keys

    page.open("?q=founded&mode=keyword")
    page.run("document.querySelector('#hits .open').focus()")
    page.press("g")
    page.wait(lambda: page.all("#panel-graph .drawing"))
    page.run("document.getElementById('tab-graph').focus()")
    page.press(Keys.ARROW_RIGHT)
    page.wait(lambda: page.focused() == "tab-text")
    page.press(Keys.ARROW_LEFT)
    page.wait(lambda: page.focused() == "tab-graph")
    page.see("#panel-graph", "Names")


def test_a_name_narrows_the_query_and_widens_it_again(page: WebPage) -> None:
    page.open("?q=founded+OR+stands&mode=keyword")
    assert len(page.texts("#hits .open")) == 2
    page.click('[data-facet="entity:Paris"]')
    page.wait(lambda: page.texts("#hits .open") == ["Radium Institute"])
    assert page.run("return document.getElementById('query').value") == 'founded OR stands "Paris"'
    page.wait(lambda: page.all('[data-facet="entity:Paris"][aria-pressed="true"]'))
    page.click('[data-facet="entity:Paris"]')
    page.wait(lambda: len(page.texts("#hits .open")) == 2)


def test_script_in_a_name_is_text(page: WebPage) -> None:
    _open_graph(page, "poison")
    page.see("#panel-graph .graph-names", "<script>")
    assert "U+202E" in page.run("return document.querySelector('#panel-graph').textContent")
    made = page.run("return document.querySelectorAll('#panel-graph :is(script, img)').length")
    assert made == 0
    assert page.run("return window.hacked ?? 0") == 0
    assert page.texts("#facets")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_drawing_can_be_seen_in_both_schemes(page: WebPage, scheme: str) -> None:
    page.open()
    page.run("document.documentElement.dataset.theme = arguments[0]", scheme)
    page.paste("founded")
    page.click("#hits .open")
    page.click("#tab-graph")
    page.wait(lambda: page.all("#panel-graph .drawing"))
    ink, paper = page.run(
        "const box = document.querySelector('.drawing');"
        "return [getComputedStyle(box.querySelector('text')).fill, getComputedStyle(box).backgroundColor]"
    )
    light = [sum(map(int, one[4:-1].split(","))) for one in (ink, paper)]
    assert (light[0] < light[1]) is (scheme == "light")
    assert abs(light[0] - light[1]) > 400
