"""The browser bundle in a real browser: it finds what the engine finds, shows it, and does nothing else."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from findling.domain.plans import Plan
from findling.domain.resources import Resource
from findling.service.engine.engine import Engine, open_engine
from findling.service.export.browser_bundle import export_html
from findling.text.analysis.analysis import terms
from findling.text.analysis.stemming import stem
from tests.browser import opened_browser, why_not
from tests.faces.browser_pages import BrowserPage

if TYPE_CHECKING:
    from selenium.webdriver.chrome.webdriver import WebDriver

pytestmark = pytest.mark.skipif(bool(why_not()), reason=why_not() or "never")

EVIL = "<script>window.hacked = 1</script><img src=x onerror='window.hacked = 2'> & \"quoted\""

FILES = {
    "docs/guide.md": "# Guide\n\n## Signing in\n\nEvery login makes a session token.\nTokens expire after a day.\n",
    "docs/index.md": "# The index\n\nHow a stale index is noticed.\n\nA run connects every word to its passages.\n",
    "docs/release.md": "# Release\n\nTo ship a version, push a tag and wait. The tag names the version.\n",
    "src/auth.py": "import os\n\n\ndef login(user):\n    token = createSessionToken(user)\n    return token\n",
    "src/shop.ts": "export function basket(user: string) {\n  return user; // C++ and C# are not here\n}\n",
    "notes/köln.txt": "Straßenbahn nach Köln, Gleis 5.\r\nDie Überprüfung dauert 5㎏ und 👩🏽‍🚀 fliegt.\r\n",
    "notes/中文.txt": "数据库索引很快。\n搜索数据。\n",
    "notes/evil.md": f"# {EVIL}\n\nA harmless poison {EVIL} in the text.\n",
}
DECISIONS = [
    (
        Resource(
            rid="decision:1", type="decision", title="Keep sessions in cookies", author="Ada Byron", tags=("security",)
        ),
        "Session tokens are kept in cookies.",
    ),
    (
        Resource(
            rid="decision:2",
            type="decision",
            title="Keep sessions on the server",
            author="Ada Byron",
            fields={"supersedes": "decision:1"},
        ),
        "Session tokens are kept on the server, no longer in cookies.",
    ),
    (Resource(rid="decision:3", type="decision", title=EVIL, author=EVIL, tags=(EVIL,)), f"Poison {EVIL}"),
]


@pytest.fixture(scope="module")
def driver(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WebDriver]:
    with opened_browser(tmp_path_factory.mktemp("profile")) as opened:
        yield opened


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    folder = tmp_path_factory.mktemp("bundle")
    root = folder / "project"
    for name, text in FILES.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text, encoding="utf-8", newline="")
    with indexed(root, folder) as opened:
        opened.add(DECISIONS)
        yield opened


@pytest.fixture(scope="module")
def page(engine: Engine, driver: WebDriver, tmp_path_factory: pytest.TempPathFactory) -> BrowserPage:
    target = tmp_path_factory.mktemp("page") / "search.html"
    export_html(engine, target, title=f"Project {EVIL}")
    return BrowserPage(driver, target)


def indexed(root: Path, folder: Path) -> Engine:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("FINDLING_HOME", str(folder / "workspaces"))
        patch.setenv("FINDLING_CONFIG", str(folder / "none.toml"))
        patch.setenv("FINDLING_SEMANTIC_REFINE", "never")
        engine = open_engine(root)
    engine.index()
    return engine


# It finds what the engine finds


TEXTS = [
    *FILES.values(),
    "getUserName MAX_VALUE IPv6Address x509 HTTPServer2 sha256sum 3f2a9c1b3f2a9c1b node.js well-known user's",
    "C++ C# g++ a++b PR#12 C++17 f# Notepad++ ## +",
    "naïve Ångström ﬁne ½ Ⅳ Ελλάδα ΟΔΟΣ Привет ЁЖИК йод हिन्दी مَرحَبا שָׁלוֹם İstanbul Ørsted Œuvre ẞ",
    "数据库 ガラス 한국어는 50대는 ไทย 🇩🇪🇫🇷 👍🏽 ❤️ ☎ a\u200db co\u00adoperate \ufeffbom e\u0301t\u00e9",
    "x" * 129 + " " + "y" * 128 + " \U0001f600 \U0002070e\U00020731",
]


@pytest.mark.parametrize("text", TEXTS, ids=range(len(TEXTS)))
def test_texts_become_the_same_terms_as_in_the_engine(page: BrowserPage, text: str) -> None:
    page.ready()
    assert page.run("return findling.terms(arguments[0])", text) == terms(text)


def test_english_stems_are_those_of_the_engine(page: BrowserPage) -> None:
    page.ready()
    words = sorted({word for text in [*FILES.values(), *WORDS] for word in terms(text) if word.isascii()})
    assert page.run("return arguments[0].map(findling.stem)", words) == [stem(word) for word in words]


WORDS = [
    "connections connected relational conditionally hopefulness happier dying lying added eggs skies news evenings",
    "generically communism universities organization internally paste proceed hoping hopped controlling adjustable",
    "yellow saying youth beautifully activate oscillators probate rate cease falls agreed plastered feed bias",
]


def test_the_same_passages_come_first_as_in_a_keyword_search(
    driver: WebDriver, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """On the questions that findling ships with: what is measured, not what was made to fit."""
    import json

    import findling

    golden = Path(findling.__file__).with_name("golden")
    questions = [json.loads(line)["text"] for line in (golden / "queries.jsonl").read_text("utf-8").splitlines()]
    with indexed(golden / "files", tmp_path) as engine:
        export_html(engine, tmp_path / "golden.html", related=0)
        page = BrowserPage(driver, tmp_path / "golden.html")
        page.open()
        shares, firsts = [], []
        for question in questions:
            points = {(hit["path"], hit["line"]): hit["points"] for hit in page.search(question)["hits"]}
            here = list(points)[:10]
            answer = engine.search(question, plan=Plan(mode="keyword", collapse=False), refresh=False)
            there = [(hit.path, hit.line_start) for hit in answer.hits]
            for place, hit in zip(there, answer.hits, strict=True):
                if hit.receipt.keyword_score:  # a walk in the graph brings others
                    assert points[place] == pytest.approx(hit.receipt.keyword_score, abs=1e-4), (question, place)
            if there:
                shares.append(len({*here} & {*there}) / len(there))
                firsts.append(here[:1] == there[:1])
    assert len(shares) > 40
    assert sum(shares) / len(shares) > 0.97
    assert all(firsts)


def test_scores_are_those_of_the_engine(page: BrowserPage, engine: Engine) -> None:
    page.ready()
    for query in ("login", "session token", "createSessionToken", "auth.py", "version", "Köln", "数据", "tag"):
        here = {(hit["rid"], hit["line"]): hit["points"] for hit in page.search(query)["hits"]}
        answer = engine.search(query, plan=Plan(mode="keyword"), refresh=False, limit=20)
        assert answer.hits
        for hit in answer.hits:
            # A receipt gives four decimals, which 32 bits of the keyword leg made.
            assert here[hit.rid, hit.line_start] == pytest.approx(hit.receipt.keyword_score, abs=1e-4)


def test_other_languages_score_as_in_the_engine(driver: WebDriver, tmp_path: Path) -> None:
    """A page has the forms of the language that most of it is written in, and the weights of pairs."""
    root = tmp_path / "project"
    root.mkdir()
    for name, text in {
        "katzen.txt": "Die Katzen schlafen auf dem Dach und sind nicht zu sehen.\n",
        "katze.txt": "Eine Katze ist ein Tier, und die Nacht ist ihre Zeit.\n",
        "hunde.txt": "Die Hunde bellen nicht, wenn der Nachbar von der Arbeit kommt.\n",
        "kensaku.txt": "データベースはすぐに検索できます。東京の天気です。\n",
        "jeongbu.txt": "정부는 무엇을 설명하는가. 날씨가 좋습니다.\n",
        "zhongwen.txt": "数据库的索引很快。天气和新闻。\n",
        "hindi.txt": "पृष्ठभूमि को सेटिंग में बदलें।\n",
        "nen.txt": "Chọn một ảnh làm hình nền của bạn.\n",
        "fondo.txt": "Elija el fondo en la configuración.\n",
    }.items():
        (root / name).write_text(text, encoding="utf-8")
    with indexed(root, tmp_path) as engine:
        export_html(engine, tmp_path / "page.html", related=0)
        page = BrowserPage(driver, tmp_path / "page.html")
        page.ready()
        for query in (
            "Katze",
            "Katzen",
            "wo sind die Hunde",
            "データベースの検索です",
            "정부는 무엇",
            "数据库的索引",
            *ASKED,
        ):
            here = {hit["rid"]: hit["points"] for hit in page.search(query)["hits"]}
            hits = engine.search(query, plan=Plan(mode="keyword"), refresh=False).hits
            assert {hit.rid for hit in hits} <= here.keys() and hits, query
            for hit in hits:
                assert here[hit.rid] == pytest.approx(hit.receipt.keyword_score, abs=1e-4), query
        assert len(page.search("Katze")["hits"]) == 2
        for query in ("Katze lang:de", "Katze lang:german,python", "Katze lang:text"):
            assert len(page.search(query)["hits"]) == 2, query
        assert not page.search("Katze lang:en")["hits"]


ASKED = ("पृष्ठभूमि कैसे बदलें", "hình nền là gì", "¿Cómo cambio el fondo", "où est l’arrière-plan fondo")


@pytest.mark.parametrize(
    ("query", "paths"),
    [
        ('"session token"', {"docs/guide.md", "src/auth.py"}),
        ('"token session"', set[str]()),
        ("login -session", set[str]()),
        ("token -login", {""}),
        ("token NOT cookies ext:md", {"docs/guide.md"}),
        ("user ext:py", {"src/auth.py"}),
        ("user -ext:py", {"src/shop.ts"}),
        ("token path:docs", {"docs/guide.md"}),
        ("token path:d*cs", {"docs/guide.md"}),
        ("session author:byron tag:security", {""}),
        ("type:decision cookies", {""}),
        ("connection", {"docs/index.md"}),
        ("vers*", {"docs/release.md"}),
        ("ext:ts", {"src/shop.ts"}),
        ("strassenbahn", {"notes/köln.txt"}),
        ("库索", {"notes/中文.txt"}),
        ("据", {"notes/中文.txt"}),
        ("c#", {"src/shop.ts"}),
        ("👩", {"notes/köln.txt"}),
        ("Köln -5", set[str]()),
        ("what is it that weighs -5 kg in Köln", {"notes/köln.txt"}),
    ],
)
def test_operators_and_filters(page: BrowserPage, query: str, paths: set[str]) -> None:
    page.ready()
    assert {hit["path"] for hit in page.search(query)["hits"]} == paths


def test_what_was_superseded_stands_below_its_successor(page: BrowserPage) -> None:
    page.ready()
    rids = [hit["rid"] for hit in page.search("session tokens kept in cookies type:decision")["hits"]]
    assert rids == ["decision:2", "decision:1"]


# The page as a person sees it


def test_typing_shows_hits_with_highlights_lines_and_a_count(page: BrowserPage) -> None:
    page.open()
    assert page.texts("#status") == [f"{len(FILES) + len(DECISIONS)} documents, {len(FILES) + len(DECISIONS)} passages"]
    page.type("stale index")
    assert page.texts(".hit h3 button")[0] == "The index"
    assert page.texts("#status")[0].startswith("1 passage in 1 document")
    assert {mark.lower() for mark in page.texts("mark")} == {"stale", "index"}
    assert "3" in page.texts(".hit .number")
    assert "docs/index.md" in page.texts(".where")[0]


def test_a_word_that_is_being_typed_finds_already(page: BrowserPage) -> None:
    page.open()
    page.type("sess")
    assert "session" in {mark.lower() for mark in page.texts("mark")}


def test_facets_narrow_and_widen(page: BrowserPage) -> None:
    page.open("#q=token")
    before = len(page.all(".hit"))
    page.all('[data-filter="ext:py"]')[0].click()
    assert page.run("return document.getElementById('query').value") == "token ext:py"
    assert [text.partition("\n")[0] for text in page.texts(".hit")] == ["src/auth.py"]
    assert page.all('[data-filter="ext:py"]')[0].get_attribute("aria-pressed") == "true"
    page.all('[data-filter="ext:py"]')[0].click()
    assert len(page.all(".hit")) == before


def test_a_link_asks_a_question(page: BrowserPage) -> None:
    page.open("#q=stale+index")
    assert page.run("return document.getElementById('query').value") == "stale index"
    assert page.texts(".hit h3 button") == ["The index"]
    page.run("location.hash = 'q=basket'")
    page.wait(lambda: page.texts(".hit h3 button") == ["src/shop.ts"])


def test_keys(page: BrowserPage) -> None:
    from selenium.webdriver.common.keys import Keys

    page.open("#q=token")
    page.run("document.activeElement.blur()")
    page.press("/")
    assert page.focused() == "query"
    page.press(Keys.ARROW_DOWN)
    assert page.focused() == "hit-0"
    page.press(Keys.ARROW_DOWN)
    assert page.focused() == "hit-1"
    page.press(Keys.ENTER)
    assert page.all("#hit-1")[0].get_attribute("aria-expanded") == "true"
    page.press(Keys.ESCAPE)
    assert page.all("#hit-1")[0].get_attribute("aria-expanded") == "false"
    page.press(Keys.ARROW_UP)
    page.press(Keys.ARROW_UP)
    assert page.focused() == "query"
    page.press(Keys.ENTER)
    assert page.focused() == "hit-0"
    assert len(page.all(".opened")) == 1
    page.press(Keys.ESCAPE)
    page.press(Keys.ESCAPE)
    page.press(Keys.ESCAPE)
    assert page.run("return document.getElementById('query').value") == ""


def test_the_receipt_adds_up(page: BrowserPage) -> None:
    page.open("#q=session+token+cookies+nonsuch")
    page.all("#hit-0")[0].click()
    rows = [[cell.text for cell in row.find_elements("css selector", "td")] for row in page.all(".receipt tbody tr")]
    *words, total, score = rows
    assert [row[0] for row in words] == ["session", "token", "cookies", "nonsuch"]
    assert "body ×1" in words[0][1]
    assert words[3][1:] == ["not here", "0"]
    assert sum(float(row[2]) for row in words) == pytest.approx(float(total[2]), abs=0.003)
    assert 0 < float(score[2]) < 1


def test_related_passages_are_shown_under_a_hit_and_where_words_find_little(page: BrowserPage) -> None:
    page.open("#q=expire")
    page.all("#hit-0")[0].click()
    near = page.texts(".opened li")
    assert any("Keep sessions" in text or "auth.py" in text for text in near)
    assert page.all("#related")[0].is_displayed()
    assert "share no word" in page.texts("#related")[0]


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("stael", "Nobody wrote “stael”. Searched for stale instead."),
        ("xylophone", "Nobody wrote “xylophone” here."),
        ("colour:red token", "there is no filter colour:, only type:, ext:, lang:, author:, tag:, path:"),
        ("title:guide", "this page has no title:"),
        ("token ext:zip", "passages would match without the filters"),
        ('"stale" "basket"', "Each of these occurs, but no passage has all of them"),
        ("token -xylophone", "-xylophone excludes nothing"),
        ("???", "There is no letter, digit or emoji to search for"),
        ("token OR login", "OR is not understood on this page"),
    ],
)
def test_it_says_what_it_made_of_the_query(page: BrowserPage, query: str, said: str) -> None:
    page.ready()
    page.paste(query)
    assert said in page.texts("#advice")[0]


def test_a_suggestion_can_be_taken(page: BrowserPage) -> None:
    page.open("#q=stael+index")
    page.all("#advice button")[0].click()
    assert page.run("return document.getElementById('query').value") == "stale index"


# Limits of the page


def test_nothing_in_a_document_runs_or_becomes_markup(page: BrowserPage) -> None:
    page.open("#q=poison")
    assert len(page.all(".hit")) == 2
    for opener in page.all(".opener"):
        opener.click()
    for button in page.all(".opened > div > .link"):
        button.click()
    assert EVIL in page.all(".opened pre")[0].text
    assert page.run("return document.title") == f"poison – Project {EVIL}"
    assert page.texts("h1") == [f"Project {EVIL}"]
    assert page.all("main img, main script") == []
    assert page.run("return window.hacked") is None
    assert page.complaints() == []


def test_the_policy_stops_scripts_that_are_not_its_own(page: BrowserPage) -> None:
    page.open()
    page.run(
        "try { const added = document.createElement('script'); added.textContent = 'window.hacked = 3';"
        "document.body.append(added); document.body.innerHTML += '<img src=x onerror=\"window.hacked = 4\">' } catch {}"
    )
    assert page.run("return window.hacked") is None
    assert page.complaints() != []


def test_it_needs_no_network_and_asks_for_nothing(page: BrowserPage) -> None:
    offline = {"offline": True, "latency": 0, "downloadThroughput": 0, "uploadThroughput": 0}
    page.driver.execute_cdp_cmd("Network.enable", {})
    page.driver.execute_cdp_cmd("Network.emulateNetworkConditions", offline)
    try:
        page.open("#q=token")
        page.paste("stale index")
        page.all("#hit-0")[0].click()
        assert len(page.all(".hit")) == 1
        assert page.run("return performance.getEntriesByType('resource').length") == 0
        assert page.requests() == []
        assert page.complaints() == []
    finally:
        page.driver.execute_cdp_cmd("Network.emulateNetworkConditions", {**offline, "offline": False})


def test_what_can_be_operated_has_a_name(page: BrowserPage) -> None:
    page.open("#q=token")
    page.all("#hit-0")[0].click()
    nameless = page.run(
        "return [...document.querySelectorAll('button, input, a')].filter((one) =>"
        " !one.textContent.trim() && !one.labels?.length && !one.getAttribute('aria-label')).length"
    )
    assert nameless == 0
    assert page.run("return document.documentElement.lang") == "en"
    assert page.all("#status")[0].get_attribute("role") == "status"


def test_a_damaged_page_says_so(page: BrowserPage, tmp_path: Path) -> None:
    text = page.path.read_text("utf-8")
    damaged = tmp_path / "damaged.html"
    before, mark, after = text.partition('id="findling-index">')
    damaged.write_text(f"{before}{mark}{'A' * 40}{after[40:]}", "utf-8")
    page.driver.get(damaged.as_uri())
    page.wait(lambda: page.texts("#status")[0].startswith("The index of this page cannot be read"))
