"""The web page in a real browser, on a real server: what a person sees and does, and what never happens."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

import pytest

from findling.domain.resources import Resource
from findling.service.engine.engine import open_engine
from findling.service.server.tokens import TokenBook
from findling.service.settings.settings import Settings, load_settings
from tests.browser import why_not
from tests.faces.web_servers import WebPage, WebServer

if TYPE_CHECKING:
    from selenium.webdriver.chrome.webdriver import WebDriver

pytestmark = pytest.mark.skipif(bool(why_not()), reason=why_not() or "never")

EVIL = "<script>window.hacked = 1</script><img src=x onerror='window.hacked = 2'> & \"quoted\" \u202eright to left"
SEEN = EVIL.replace("\u202e", "U+202E")
EVIL_PATH = "notes/<img src=x onerror=hacked=3> 'quoted' \u202e.md"

FILES = {
    "docs/guide.md": "# Guide\n\n## Signing in\n\nEvery login makes a session token.\nTokens expire after a day.\n",
    "docs/index.md": "# The index\n\nHow a stale index is noticed.\n\nA run connects every word to its passages.\n",
    "docs/release.md": "# Release\n\nTo ship a version, push a tag and wait. The tag names the version.\n",
    "docs/long.md": "# Long\n" + "".join(f"\n## Part {n}\n\nLine about walrus number {n}.\n" for n in range(60)),
    "docs/first.md": "# First\n\nThe service level agreement (SLA) is kept.\n",
    "src/auth.py": "import os\n\n\ndef login(user):\n    token = create_session_token(user)\n    return token\n",
    "notes/emoji.md": "# Astronauts\n\n👩🏽‍🚀🚀🚀 the rocketship flies, 🚀 rocketship again\n",
    **{f"walrus/{n}.md": f"# Walrus {n}\n\nA walrus has the number {n}.\n" for n in range(25)},
    EVIL_PATH: f"# {EVIL}\n\nA harmless poison {EVIL} in the text.\n",
}
ITEMS = [
    (
        Resource(rid="decision:1", type="decision", title="Sessions in cookies", author="Ada Byron", tags=("auth",)),
        "Session tokens are kept in cookies.",
    ),
    (
        Resource(
            rid="decision:2",
            type="decision",
            title="Sessions on the server",
            author="Ada Byron",
            fields={"supersedes": "decision:1"},
        ),
        "Session tokens are kept on the server, no longer in cookies.",
    ),
    (Resource(rid="decision:3", type="decision", title=EVIL, author=EVIL, tags=(EVIL,)), f"Poison {EVIL}"),
]


@pytest.fixture(scope="module")
def settings(tmp_path_factory: pytest.TempPathFactory) -> Settings:
    folder = tmp_path_factory.mktemp("web")
    root = folder / "project"
    for name, text in FILES.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text, encoding="utf-8")
    (root / "docs" / "broken.pdf").write_bytes(b"%PDF-1.4 and nothing else")
    os.utime(root / "docs" / "release.md", (1_700_000_000, 1_700_000_000))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("FINDLING_HOME", str(folder / "workspaces"))
        patch.setenv("FINDLING_CONFIG", str(folder / "none.toml"))
        patch.setenv("FINDLING_SEMANTIC_REFINE", "never")
        loaded = load_settings(root)
    with open_engine(root, settings=loaded) as engine:
        engine.index()
        engine.add(ITEMS)
    other = folder / "other"
    other.mkdir()
    (other / "elsewhere.md").write_text("# Elsewhere\n\nA session token of another place.\n", encoding="utf-8")
    with open_engine(other, settings=loaded) as engine:
        engine.index()
    return loaded


@pytest.fixture(scope="module")
def root(settings: Settings) -> Path:
    return Path(settings["store.home"]).parent / "project"


@pytest.fixture(scope="module")
def server(settings: Settings, root: Path) -> Iterator[WebServer]:
    served = WebServer(root, settings)
    yield served
    served.stop()


# Searching


def test_typing_shows_hits_with_highlights_lines_and_a_count(page: WebPage) -> None:
    page.open()
    page.see("#welcome", "documents")
    page.type("stale index")
    assert page.texts("#hits .open")[0] == "The index"
    assert {"stale", "index"} <= {mark.lower() for mark in page.texts("#hits mark")}
    assert "3" in page.texts("#hits .number")
    assert "docs/index.md" in page.texts("#hits .where")[0]
    assert "hit" in page.texts("#count")[0]
    assert page.run("return document.getElementById('announce').textContent") == page.texts("#count")[0]
    assert page.run("return location.search") == "?q=stale+index"
    assert not page.all("#welcome")[0].is_displayed()


def test_a_first_look_comes_while_somebody_types(page: WebPage) -> None:
    page.open()
    page.run("window.stages = []; new MutationObserver(() => stages.push(document.getElementById('stage').textContent))"
             ".observe(document.getElementById('stage'), { childList: true })")  # fmt: skip
    page.type("session token")
    stages = page.run("return stages")
    assert stages[0] == "first look"
    assert stages[-1].startswith("by words and meaning")
    bodies = [url for url in page.requests() if url.endswith("/v1/search")]
    assert len(bodies) >= 2


def test_hits_that_stay_are_not_made_anew(page: WebPage) -> None:
    page.open("?q=session+token&mode=keyword")
    page.run("for (const hit of document.querySelectorAll('#hits .hit')) hit.isKept = true")
    hits = len(page.all("#hits .hit"))
    page.click('[data-facet="ext:.py"]')
    page.wait(lambda: page.texts("#hits .open") == ["src/auth.py"])
    page.click('[data-facet="ext:.py"]')
    page.wait(lambda: len(page.all("#hits .hit")) == hits)
    kept = page.run("return [...document.querySelectorAll('#hits .hit')].map((hit) => hit.isKept ?? false)")
    assert kept.count(True) == 1  # the one that was there all the time
    assert page.run("return document.querySelector('#hits .open').search").startswith(
        "?q=session+token&mode=keyword&hit="
    )


def test_the_mode_can_be_chosen(page: WebPage) -> None:
    page.open("?q=session+token&mode=keyword")
    page.see("#stage", "by words ·")
    page.click("#modes label:nth-of-type(3)")
    page.see("#stage", "by meaning")
    assert page.run("return location.search") == "?q=session+token&mode=semantic"


def test_marks_count_characters_as_the_engine_does(page: WebPage) -> None:
    page.open("?q=rocketship&mode=keyword")
    assert page.texts("#hits mark") == ["rocketship", "rocketship"]
    page.click("#hits .open")
    page.wait(lambda: page.texts("#panel-text mark") == ["rocketship", "rocketship"])


def test_more_hits_come_by_a_cursor(page: WebPage) -> None:
    page.open("?q=walrus&path=walrus&mode=keyword")
    before = page.run("return [...document.querySelectorAll('#hits .hit')].map((hit) => hit.dataset.key)")
    assert len(before) == 20
    page.click("#more")
    page.wait(lambda: len(page.all("#hits .hit")) == 25)
    after = page.run("return [...document.querySelectorAll('#hits .hit')].map((hit) => hit.dataset.key)")
    assert after[:20] == before
    assert len(set(after)) == 25
    assert not page.all("#more")[0].is_displayed()
    assert page.run("return document.activeElement.closest('.hit').dataset.key") == after[20]


def test_it_says_what_may_have_been_meant(page: WebPage) -> None:
    page.open("?q=stlae+index&mode=keyword")
    page.see("#notices", "stlae")
    page.click("#notices a.suggestion")
    page.rest()
    assert page.run("return document.getElementById('query').value") == "stale index"
    page.go("?q=%22quagga%22&mode=keyword&ext=.py")
    page.see("#notices", "Nothing here holds “quagga”.")
    page.see("#nothing", "Nothing was found.")
    page.click("#nothing button")
    page.rest()
    assert page.run("return location.search") == "?q=%22quagga%22&mode=keyword"


def test_advice_fits_what_was_asked(page: WebPage) -> None:
    page.open("?q=%22quagga%22&mode=keyword")
    page.see("#nothing", "Try another word")
    page.go("?q=%22quagga+herd%22&mode=keyword")
    page.see("#nothing", "Try fewer words")
    page.go("?q=(((&mode=keyword")
    page.see("#nothing", "Type a word")
    assert "latest first" not in page.texts("#stage")[0]
    page.go("?q=ext:zzz&mode=keyword")
    page.see("#nothing", "passes these filters")


# Narrowing


def test_facets_narrow_and_widen_and_several_can_be_chosen(page: WebPage) -> None:
    page.open("?q=session+token&mode=keyword")
    everything = len(page.all("#hits .hit"))
    page.click('[data-facet="ext:.py"]')
    page.wait(lambda: page.texts("#hits .open") == ["src/auth.py"])
    assert page.all('[data-facet="ext:.py"]')[0].get_attribute("aria-pressed") == "true"
    assert page.run("return document.activeElement.dataset.facet") == "ext:.py"
    page.click('[data-facet="ext:.md"]')
    page.wait(lambda: len(page.all("#hits .hit")) > 1)
    assert page.run("return location.search") == "?q=session+token&ext=.py&ext=.md&mode=keyword"
    page.click("#widen")
    page.wait(lambda: len(page.all("#hits .hit")) == everything)
    page.click('[data-facet="author:Ada Byron"]')
    page.wait(lambda: set(page.texts("#hits .open")) == {"Sessions in cookies", "Sessions on the server"})
    page.click('[data-facet="author:Ada Byron"]')
    page.wait(lambda: len(page.all("#hits .hit")) == everything)


def test_years_and_dates_narrow(page: WebPage) -> None:
    page.open()
    page.click('[data-facet="year:2023"]')
    page.wait(lambda: page.texts("#hits .open") == ["Release"])
    assert page.run("return document.getElementById('from').value") == "2023-01-01"
    page.open("?from=2023-11-14&to=2023-11-14")
    assert page.texts("#hits .open") == ["Release"]
    page.go("?from=2023-11-15&to=2023-11-16")
    page.see("#nothing", "Nothing was found")


# One hit


def test_a_preview_shows_the_passage_in_its_surroundings(page: WebPage) -> None:
    page.open("?q=walrus+%22number+30%22&mode=keyword")
    page.click("#hits .open")
    page.see("#preview-title", "Long")
    page.see("#panel-text .within .text", "walrus number 30")
    assert set(page.texts("#panel-text mark")) == {"number", "30"} | {"walrus"}
    lines = page.texts("#panel-text .number")
    within = page.texts("#panel-text .within .number")
    assert len(within) < len(lines) < 60 * 4
    assert [int(line) for line in lines] == list(range(int(lines[0]), int(lines[-1]) + 1))
    page.click("#whole")
    page.wait(lambda: len(page.all("#panel-text .line")) == FILES["docs/long.md"].count("\n"))
    assert page.run("return document.querySelector('#panel-text .within').getBoundingClientRect().top > 0")


def test_its_place_can_be_copied(page: WebPage) -> None:
    page.open("?q=stale&mode=keyword")
    page.driver.execute_cdp_cmd("Browser.grantPermissions", {"permissions": ["clipboardReadWrite"]})
    page.click("#hits .open")
    page.see("#preview-where", "docs/index.md:3")
    page.click("#copy")
    page.see("#said", "Copied docs/index.md:3")


def test_the_receipt_adds_up(page: WebPage) -> None:
    page.open("?q=session+tokens+cookies+nonsuch")
    page.click("#hits .why")
    page.see("#panel-why", "Score")
    rows = [[cell.text for cell in row.find_elements("css selector", "th, .value")] for row in
            page.all("#panel-why section:first-child tbody tr")]  # fmt: skip
    names = [row[0].partition("\n")[0] for row in rows]
    assert names[:3] == ["Words", "Meaning", "Evidence"]
    assert names[-1] == "Score"
    assert max(float(rows[0][1]), float(rows[1][1])) == pytest.approx(float(rows[2][1]), abs=0.0002)
    widths = page.run("return [...document.querySelectorAll('#panel-why .bar > span')].map((bar) => bar.offsetWidth)")
    assert widths[0] > 0 and widths[2] >= max(widths[0], widths[1]) - 2
    assert page.texts("#panel-why .missing") == ["nonsuch\tis not in this passage"]
    page.see("#panel-why", "session OR tokens OR cookies OR nonsuch")
    assert "tab=why" in page.run("return location.search")


def test_a_step_that_moved_a_hit_has_its_factor_and_reason(page: WebPage) -> None:
    page.open("?q=tokens+kept+in+cookies+in:history&type=decision&mode=keyword")
    assert page.texts("#hits .open")[:2] == ["Sessions on the server", "Sessions in cookies"]
    page.run("document.querySelectorAll('#hits .why')[1].click()")
    page.see("#panel-why .score-table", "superseded")
    assert any("×" in value for value in page.texts("#panel-why .score-table .value"))
    page.see("#panel-why", "Superseded by decision:2")


def test_keys_alone_are_enough(page: WebPage) -> None:
    from selenium.webdriver.common.keys import Keys

    page.open()
    page.run("document.activeElement.blur()")
    page.press("/")
    assert page.focused() == "query"
    page.paste("session token")
    titles = page.texts("#hits .open")
    page.press(Keys.ARROW_DOWN)
    assert page.focused_hit() == titles[0]
    page.press("j")
    assert page.focused_hit() == titles[1]
    page.press(Keys.ENTER)
    page.see("#preview-title", titles[1])
    page.press("k")
    page.see("#preview-title", titles[0])
    assert page.focused_hit() == titles[0]
    page.press("e")
    page.see("#panel-why", "Score")
    page.press("o")
    page.wait(lambda: page.all("#panel-text")[0].is_displayed())
    page.press(Keys.ESCAPE)
    page.wait(lambda: not page.all("#preview")[0].is_displayed())
    assert page.focused_hit() == titles[0]
    page.press(Keys.ARROW_UP)
    assert page.focused() == "query"
    page.press(Keys.ESCAPE)
    page.wait(lambda: page.run("return document.getElementById('query').value") == "")
    page.run("document.activeElement.blur()")
    page.press("?")
    page.wait(lambda: page.all("#help")[0].is_displayed())
    page.press(Keys.ESCAPE)
    page.wait(lambda: not page.all("#help")[0].is_displayed())


def test_arrows_choose_among_the_modes(page: WebPage) -> None:
    from selenium.webdriver.common.keys import Keys

    page.open("?q=session+token&mode=keyword")
    page.run("document.querySelector('#modes input:checked').focus()")
    page.press(Keys.ARROW_DOWN)
    page.wait(lambda: page.run("return document.activeElement.value") == "hybrid")
    page.see("#stage", "by words and meaning")


def test_keys_of_a_single_character_can_be_switched_off(page: WebPage) -> None:
    from selenium.webdriver.common.keys import Keys

    page.open("?q=session+token&mode=keyword")
    page.click("#help-button")
    page.click("#letters")
    page.press(Keys.ESCAPE)
    page.open("?q=session+token&mode=keyword")
    page.press(Keys.ARROW_DOWN)
    first = page.focused_hit()
    for key in ("j", "e", "/", "?"):
        page.press(key)
        assert page.focused_hit() == first
    assert page.run("return location.search") == "?q=session+token&mode=keyword"
    page.press(Keys.ARROW_DOWN)
    assert page.focused_hit() not in ("", first)
    page.click("#help-button")
    page.click("#letters")
    page.press(Keys.ESCAPE)
    page.run("document.querySelector('#hits .open').focus()")
    page.press("j")
    assert page.focused_hit() != first
    assert page.run("return localStorage.length") == 0


def test_enter_asks_no_more_than_once(page: WebPage) -> None:
    from selenium.webdriver.common.keys import Keys

    page.open("?q=session&mode=keyword")
    page.requests()
    page.type("session token")
    for _ in range(3):
        page.press(Keys.ENTER)
    page.all("#query")[0].send_keys("s", Keys.ENTER, Keys.ENTER, Keys.ENTER)
    page.wait(lambda: page.run("return location.search") == "?q=session+tokens&mode=keyword")
    page.rest()
    wholes = [body for body in page.bodies("/v1/search") if not body.get("quick")]
    assert [body["query"] for body in wholes] == ["session token", "session tokens"]


# The address


def test_a_link_restores_everything(page: WebPage) -> None:
    page.open("?q=session+token&ext=.md&mode=keyword")
    page.click("#hits .why")
    page.see("#panel-why", "Score")
    address = page.driver.current_url
    title = page.texts("#preview-title")
    page.open(address.removeprefix(f"{page.server.address}/"))
    page.see("#panel-why", "Score")
    assert page.run("return document.getElementById('query').value") == "session token"
    assert page.texts("#preview-title") == title
    assert page.all('[data-facet="ext:.md"]')[0].get_attribute("aria-pressed") == "true"
    assert page.all("#modes input:checked")[0].get_attribute("value") == "keyword"
    assert len(page.all(".hit.opened")) == 1
    assert page.run("return document.title") == "session token – findling"


def test_back_and_forward(page: WebPage) -> None:
    page.open("?q=stale&mode=keyword")
    page.paste("basket login")
    page.wait(lambda: "login" in {mark.lower() for mark in page.texts("#hits mark")})
    page.driver.back()
    page.wait(lambda: page.texts("#hits .open") == ["The index"])
    assert page.run("return document.getElementById('query').value") == "stale"
    page.click('nav [data-view="status"]')
    page.see("#state", "documents")
    page.driver.back()
    page.wait(lambda: page.all("#hits .hit")[0].is_displayed())


def test_a_link_to_what_is_gone_says_so(page: WebPage) -> None:
    page.open("?q=stale&hit=0123456789abcdef")
    page.see("#preview-title", "No longer there")
    assert {"404" in line for line in page.complaints()} == {True}  # the browser's own note of the status


def test_a_hit_outside_of_the_answer_is_explained(page: WebPage) -> None:
    page.open("?q=stale&mode=keyword&hit=docs/release.md&tab=why")
    page.see("#panel-why", "It is not in the answer.")
    page.see("#panel-why", "Not in the answer")


def test_another_workspace_can_be_chosen(page: WebPage, root: Path) -> None:
    page.open("?q=session+token&mode=keyword")
    page.wait(lambda: len(page.texts("#workspace option")) == 3)
    page.click("#workspace option:nth-child(3)")
    page.wait(lambda: page.texts("#hits .open") == ["Elsewhere"])
    page.click("#hits .open")
    page.see("#panel-text", "A session token of another place.")
    assert page.run("return new URLSearchParams(location.search).get('workspace')") == str(root.parent / "other")
    page.driver.refresh()
    page.wait(lambda: page.texts("#hits .open") == ["Elsewhere"])
    page.see("#panel-text", "A session token of another place.")


def test_all_workspaces_answer_in_one_list_and_each_hit_names_its_own(page: WebPage, root: Path) -> None:
    page.open("?q=session+token&mode=keyword")
    page.wait(lambda: len(page.texts("#workspace option")) == 3)
    own = page.texts("#hits .open")
    page.click("#workspace option:nth-child(2)")
    page.wait(lambda: "Elsewhere" in page.texts("#hits .open"))
    assert set(page.texts("#hits .open")) == {*own, "Elsewhere"}
    assert page.texts("#hits .workspace") == [f"{root.parent.name}/other"]
    place = page.texts("#hits .open").index("Elsewhere") + 1
    page.click(f"#hits > li:nth-child({place}) .open")
    page.see("#panel-text", "A session token of another place.")
    page.driver.refresh()
    page.see("#panel-text", "A session token of another place.")
    for number, title in enumerate(page.texts("#hits .open"), 1):
        page.click(f"#hits > li:nth-child({number}) .why")
        page.see("#preview-title", title)
        page.wait(lambda: page.texts("#panel-why") != [""])
    # Outside of the answer, its own workspace explains a hit.
    page.open("?q=stale&mode=keyword&workspace=*&hit=docs/release.md&tab=why")
    page.see("#panel-why", "It is not in the answer.")
    page.open("?workspace=*&view=status")
    page.see("#state", "documents")


def module(page: WebPage, name: str, script: str) -> object:
    """The result of a script that has a module of the page as `it`."""
    done = "const done = arguments[arguments.length - 1];"
    return page.driver.execute_async_script(f"{done} import('/assets/{name}').then((it) => done({script}))")


@pytest.mark.parametrize(
    "address",
    [
        "/",
        "/?q=a+%26+b&type=file&ext=.md&ext=.py&from=2024-01-01&to=2024-12-31&mode=semantic&workspace=w&hit=x&tab=why",
        "/?view=glossary&workspace=notes",
        "/?view=status",
    ],
)
def test_an_address_and_its_state_are_one(page: WebPage, address: str) -> None:
    page.ready()
    assert module(page, "state.js", f"it.addressOf(it.stateOf({address!r}))") == address


def test_an_address_that_makes_no_sense_is_taken_as_far_as_it_does(page: WebPage) -> None:
    page.ready()
    address = "/?view=nonsense&mode=magic&from=yesterday&tab=why&colour=red&ext=&q=words"
    assert module(page, "state.js", f"it.addressOf(it.stateOf({address!r}))") == "/?q=words"


def test_work_that_is_under_way_has_its_share(page: WebPage) -> None:
    page.ready()
    indexing = "{ state: 'running', stage: 'index', done: 50, total: 200, seconds_left: 7.4 }"
    meaning = "{ refining: true, model: 'minilm', read: 30, of: 40, seconds_left: 65 }"
    assert module(page, "status.js", f"it.workOf({{ indexing: {indexing}, meaning: {meaning} }})") == [
        {"kind": "index", "name": "Indexing", "share": 0.25, "detail": "50 of 200 files, 7 s left"},
        {
            "kind": "read",
            "name": "Reading for meaning",
            "share": 0.75,
            "detail": "minilm has read 30 of 40 passages, 65 s left",
        },
    ]
    assert module(page, "status.js", "it.workOf({ indexing: { state: 'done' }, meaning: { refining: false } })") == []


# Glossary and status


def test_a_candidate_is_approved_by_keys_and_the_glossary_has_it(page: WebPage, settings: Settings, root: Path) -> None:
    page.open("?view=glossary")
    page.see(".candidate", "SLA may mean the same as service level agreement")
    page.press("j")
    page.press("a")
    page.see("#said", "SLA now finds service level agreement")
    page.see("#candidates", "Nothing waits for a decision.")
    with open_engine(root, settings=settings) as engine:
        assert [(group.canonical, group.aliases) for group in engine.glossary.groups()] == [
            ("service level agreement", ("SLA",))
        ]
    page.go("?q=sla&mode=keyword")
    page.click("#hits .why")
    page.see("#panel-why .aliases", "also means service level agreement")


def test_the_status_tells_what_is_there_and_what_could_not_be_read(page: WebPage) -> None:
    page.open("?view=status")
    page.see(".numbers", str(len(FILES) + len(ITEMS)))
    page.see(".failed", "docs/broken.pdf")
    page.see(".failed .fix", "findling index")
    page.see("#state", "Daemon")


def test_indexing_can_be_begun_and_what_is_new_is_found(page: WebPage, root: Path) -> None:
    page.open("?q=quokka&mode=keyword")
    assert page.all("#hits .hit") == []
    (root / "docs" / "quokka.md").write_text("# Marsupials\n\nA quokka smiles.\n", encoding="utf-8")
    page.click('nav [data-view="status"]')
    page.click("#index-now")
    page.see("#said", "up to date")
    page.driver.back()
    page.wait(lambda: page.texts("#hits .open") == ["Marsupials"])


# Failures


def test_a_server_that_stops_is_told_and_waited_for(page: WebPage) -> None:
    page.open("?q=stale&mode=keyword")
    page.server.stop()
    page.run("document.getElementById('query').value = 'session'; "
             "document.getElementById('query').dispatchEvent(new Event('input'))")  # fmt: skip
    page.see("#offline", "findling does not answer.")
    page.see("#offline", "findling serve")
    assert page.texts("#hits .open") == ["The index"]
    page.server.start()
    page.wait(lambda: not page.all("#offline")[0].is_displayed())
    page.wait(lambda: "session" in {mark.lower() for mark in page.texts("#hits mark")})
    page.see("#said", "findling answers again")
    # The browser itself notes every request that nobody took.
    assert {line for line in page.complaints() if "net::ERR_" not in line} == set()


def test_a_token_is_asked_for_where_one_is_needed(driver: WebDriver, settings: Settings, root: Path) -> None:
    tokens = TokenBook(Path(settings["store.home"]))
    secret = tokens.create("ann", principals=None, scopes=("read",))
    limited = tokens.create("bob", principals=("user:bob",), scopes=("read",))
    guarded = WebServer(root, settings, requires_token=True)
    shown = WebPage(driver, guarded)
    try:
        shown.driver.get(f"{guarded.address}/?q=stale&mode=keyword")
        shown.see("#token-title", "A token is needed")
        shown.see("#token-dialog", "findling token create NAME --as owner")
        shown.all("#token")[0].send_keys("fdl_wrong\n")
        shown.see("#token-problem", "not accepted")
        shown.all("#token")[0].send_keys(f"{secret}\n")
        shown.wait(lambda: shown.texts("#hits .open") == ["The index"])
        shown.driver.refresh()
        shown.wait(lambda: shown.texts("#hits .open") == ["The index"])
        assert shown.run("return localStorage.length + document.cookie.length") == 0
        assert secret not in shown.driver.current_url
        shown.see('nav [data-view="glossary"]', "Glossary")
        shown.click('nav [data-view="status"]')
        shown.click("#forget-token")
        shown.see("#token-title", "A token is needed")
        shown.all("#token")[0].send_keys(f"{limited}\n")
        shown.see(".numbers", "passages")
        assert "".join(shown.texts('nav [data-view="glossary"]')) == ""
        assert shown.all("#index-now") == []
        assert str(root) not in shown.texts("body")[0]
        assert {line for line in shown.complaints() if "status of 401" not in line} == set()
    finally:
        shown.run("sessionStorage.clear()")
        shown.driver.get("about:blank")  # so that it asks a server that is gone no more
        guarded.stop()


def test_nothing_in_a_document_runs_or_becomes_markup(page: WebPage) -> None:
    page.open("?q=poison&mode=keyword")
    assert len(page.all("#hits .hit")) == 2
    assert set(page.texts("#hits .open")) == {SEEN}
    assert any(EVIL_PATH.replace("\u202e", "U+202E") in where for where in page.texts("#hits .where"))
    for place in range(2):
        page.run("document.querySelectorAll('#hits .open')[arguments[0]].click()", place)
        page.see("#preview-title", "<script>")
        page.see("#panel-text", "onerror='window.hacked = 2'")
        page.click("#tab-why")
        page.see("#panel-why", "poison")
        page.click("#tab-text")
    assert any(SEEN in value for value in page.texts("#facets .value"))
    page.open(f"?q={quote(EVIL)}&tag={quote(EVIL)}")
    assert page.run("return document.getElementById('query').value") == EVIL
    page.see("#facets .value", "<script>")
    assert page.all("main img, main script") == []
    assert page.run("return window.hacked") is None


def test_the_policy_stops_what_is_not_its_own(page: WebPage) -> None:
    page.open()
    refused = page.run(
        "try { document.body.innerHTML += '<img src=x onerror=\"window.hacked = 4\">'; return false }"
        "catch (error) { return error.name === 'TypeError' }"
    )
    assert refused
    assert page.run("return window.hacked") is None
    assert page.complaints() != []


# Everybody


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_everything_can_be_read(page: WebPage, scheme: str) -> None:
    """Text has the contrast that WCAG AA asks for, in both schemes."""
    page.driver.execute_cdp_cmd(
        "Emulation.setEmulatedMedia", {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
    )
    try:
        page.open("?q=session+token+nonsuch&ext=.md&mode=keyword")
        for query in ("?q=session+token+nonsuch&ext=.md&mode=keyword", "?view=glossary", "?view=status"):
            page.go(query)
            if "view" not in query:
                page.click("#hits .why")
                page.see("#panel-why", "Score")
            assert page.run(CONTRAST) == []
    finally:
        page.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})


def test_what_can_be_operated_has_a_name_and_can_be_reached(page: WebPage) -> None:
    page.open("?q=session+token&mode=keyword")
    page.click("#hits .open")
    page.see("#preview-where", ":")
    nameless = page.run(
        "return [...document.querySelectorAll('button, input, a, select')].filter((one) => one.offsetParent &&"
        " !one.textContent.trim() && !one.labels?.length && !one.getAttribute('aria-label')).map((one) => one.id)"
    )
    assert nameless == []
    assert page.run("return document.documentElement.lang") == "en"
    for name in ("count", "stage"):
        assert page.all(f"#{name}")
    assert page.all("#announce")[0].get_attribute("role") == "status"
    doubled = page.run(
        "const ids = [...document.querySelectorAll('[id]')].map((one) => one.id);"
        "return ids.filter((id, place) => ids.indexOf(id) !== place)"
    )
    assert doubled == []


def test_the_colours_can_be_chosen_and_are_kept(page: WebPage) -> None:
    page.open()
    page.click("#theme")
    page.click("#theme")
    assert page.run("return document.documentElement.dataset.theme") == "dark"
    page.open()
    assert page.run("return getComputedStyle(document.documentElement).colorScheme") == "dark"
    page.click("#theme")
    assert page.run("return document.documentElement.dataset.theme ?? 'auto'") == "auto"
    page.run("localStorage.clear()")


def test_it_fits_on_a_narrow_screen(page: WebPage) -> None:
    size = {"width": 360, "height": 740, "deviceScaleFactor": 1, "mobile": False}
    page.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    try:
        page.open("?view=glossary")
        for query in ("?view=glossary", "?view=status", "?q=poison&mode=keyword"):
            page.go(query)
            assert page.run("return document.documentElement.scrollWidth <= document.documentElement.clientWidth"), (
                query
            )
        page.click("#hits .open")
        page.see("#preview-title", "<script>")
        assert page.focused() == "preview-title"
        page.click("#close-preview")
        page.wait(lambda: not page.all("#preview")[0].is_displayed())
    finally:
        page.driver.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


CONTRAST = """
const channel = (value) => (value /= 255) <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4;
const light = ([r, g, b]) => 0.2126 * channel(r) + 0.7152 * channel(g) + 0.0722 * channel(b);
const canvas = new OffscreenCanvas(1, 1).getContext("2d", { willReadFrequently: true });
const rgba = (colour) => {
  canvas.clearRect(0, 0, 1, 1); canvas.fillStyle = colour; canvas.fillRect(0, 0, 1, 1);
  return [...canvas.getImageData(0, 0, 1, 1).data];
};
const behind = (element) => {
  for (let one = element; one; one = one.parentElement) {
    const colour = rgba(getComputedStyle(one).backgroundColor);
    if (colour[3] === 255) return colour;
  }
  return rgba(getComputedStyle(document.documentElement).colorScheme === "dark" ? "black" : "white");
};
const poor = [];
const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
while (walker.nextNode()) {
  const element = walker.currentNode.parentElement;
  const text = walker.currentNode.data.trim().slice(0, 30);
  if (!text || !element.checkVisibility() || element.closest(".unseen, noscript, .toast")) continue;
  const [one, other] = [light(rgba(getComputedStyle(element).color)), light(behind(element))];
  const ratio = (Math.max(one, other) + 0.05) / (Math.min(one, other) + 0.05);
  if (ratio < 4.5) poor.push(`${element.tagName}.${element.className} ${text} ${ratio.toFixed(2)}`);
}
return poor;
"""
