"""The sentence that answers: whole, marked, and with its own line, in every face."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from findling.service.engine.engine import open_engine
from tests.browser import opened_browser, why_not
from tests.faces.http_servers import Client, in_process
from tests.faces.mcp_desks import call, served
from tests.faces.web_servers import WebPage, WebServer, project_settings

QUESTION = "which argument keeps the pickle of an exception"
PADDING = "".join(
    f"Sentence {number} is about something else that nobody has asked for today.\n" for number in range(30)
)
SENTENCE = [
    "So that the pickle of an exception works, the argument that it was made with",
    ":attr:`args` keeps is *all*.",
]
TEXT = f"# Errors\n\n{PADDING}\n## Sending\n\n{PADDING}\n{SENTENCE[0]}\n{SENTENCE[1]} An aside\nfollows.\n\n{PADDING}"
FIRST = TEXT.split("\n").index(SENTENCE[0]) + 1
MARKED = {"pickle", "exception", "argument", "keeps"}


@pytest.fixture
def root(home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    root = home / "manual"
    root.mkdir()
    (root / "errors.md").write_text(TEXT)
    monkeypatch.chdir(root)
    return root


def check(lines: list[tuple[int, str]]) -> None:
    """Both lines of the sentence are there, under the numbers that they have in the file."""
    shown = dict(lines)
    assert [shown.get(FIRST), shown.get(FIRST + 1, "").partition(" An aside")[0]] == SENTENCE
    assert all(text == TEXT.split("\n")[number - 1] for number, text in lines)


def check_document(hit: dict[str, object]) -> None:
    lines = hit["lines"]
    assert isinstance(lines, list)
    check([(line["number"], line["text"]) for line in lines])
    marked = {
        line["text"][start:end]
        for line in lines
        for start, end in line["spans"]
        if line["number"] in (FIRST, FIRST + 1)
    }
    assert marked == MARKED
    assert hit["line"] == FIRST


def test_on_the_command_line(root: Path, findling: Callable[..., tuple[int, str, str]]) -> None:
    code, out, _ = findling(QUESTION, "-k", "1")
    assert code == 0
    assert out.startswith(f"errors.md:{FIRST} ")
    check([(int(number), text) for number, text in re.findall(r"^ *(\d+) │ ?(.*)$", out, re.MULTILINE)])
    _, out, _ = findling(QUESTION, "-k", "1", "--json")
    check_document(json.loads(out)["hits"][0])


def test_of_the_http_interface(root: Path) -> None:
    with in_process(root) as (host, app):
        host.index()
        found = Client(app).post("/v1/search", {"query": QUESTION}).json()
    check_document(found["hits"][0])


def test_of_mcp_also_where_the_passage_does_not_fit(root: Path) -> None:
    with served(root) as (engine, server):
        engine.index()
        for size in ({}, {"max_chars": 1500}):
            result = call(server, "search", query=QUESTION, limit=1, **size)["results"][0]
            rows = [row.partition(": ") for row in result["snippet"].split("\n")]
            check([(int(number), text) for number, _, text in rows if number.isdecimal()])
            assert result["url"].endswith(f"errors.md#L{FIRST}")


@pytest.mark.skipif(bool(why_not()), reason=why_not() or "never")
def test_of_the_page(tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.mktemp("sentence")
    settings = project_settings(folder, {"errors.md": TEXT})
    with open_engine(folder / "project", settings=settings) as engine:
        engine.index()
    server = WebServer(folder / "project", settings)
    try:
        with opened_browser(tmp_path_factory.mktemp("profile")) as driver:
            page = WebPage(driver, server)
            page.open(f"?q={QUESTION.replace(' ', '+')}")
            page.see("#hits mark", "pickle")
            rows = page.run(
                "return [...document.querySelector('#hits .hit').querySelectorAll('.line')].map((line) =>"
                " [line.querySelector('.number').textContent, line.textContent.slice("
                "line.querySelector('.number').textContent.length)])"
            )
            check([(int(number), text) for number, text in rows if number])
    finally:
        server.stop()
