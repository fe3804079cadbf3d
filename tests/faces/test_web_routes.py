"""The files of the web page: what is served, under which policy, and that nothing else is."""

from __future__ import annotations

import re
from gzip import compress
from pathlib import Path

import pytest
from starlette.applications import Starlette
from starlette.testclient import TestClient

from findling.faces import web
from findling.faces.web.pages import ASSETS, OPEN_PATHS, POLICY, page_routes

FOLDER = Path(web.__file__).parent
SCRIPTS = sorted(name for name in ASSETS if name.endswith(".js"))


@pytest.fixture(scope="module")
def client() -> TestClient:
    return TestClient(Starlette(routes=page_routes()))


def text_of(name: str) -> str:
    return (FOLDER / name).read_text(encoding="utf-8")


# Served files


def test_the_page_has_a_policy_that_lets_nothing_else_in(client: TestClient) -> None:
    response = client.get("/?q=words")
    assert response.status_code == 200
    assert response.headers["content-type"] == "text/html; charset=utf-8"
    assert response.headers["content-security-policy"] == POLICY
    assert response.headers["x-frame-options"] == "DENY"
    assert response.headers["x-content-type-options"] == "nosniff"
    assert response.headers["referrer-policy"] == "no-referrer"
    rules = dict(rule.split(" ", 1) for rule in POLICY.split("; "))
    assert rules["default-src"] == "'none'"
    assert {rules[f"{kind}-src"] for kind in ("script", "style", "connect")} == {"'self'"}
    assert {rules["base-uri"], rules["frame-ancestors"]} == {"'none'"}
    assert "unsafe" not in POLICY and "http" not in POLICY


@pytest.mark.parametrize("name", ASSETS)
def test_every_file_is_served_with_its_type_and_policy(client: TestClient, name: str) -> None:
    response = client.get(f"/assets/{name}")
    assert response.status_code == 200
    assert response.content == (FOLDER / name).read_bytes()
    assert response.headers["content-type"].partition(";")[0] == ASSETS[name]
    assert response.headers["content-security-policy"] == POLICY
    assert response.headers["cache-control"] == "no-cache"


@pytest.mark.parametrize(
    "path",
    [
        "/assets/pages.py", "/assets/page.html", "/assets/", "/assets", "/assets/..%2fpages.py", "/assets/../pages.py",
        "/assets/%2e%2e/pages.py", "/assets/APP.JS", "/assets/app.js%00", "/pages.py", "/index.html",
    ],
)  # fmt: skip
def test_nothing_else_is_served(client: TestClient, path: str) -> None:
    assert client.get(path).status_code == 404


@pytest.mark.parametrize("path", ["/", "/assets/app.js"])
def test_what_the_browser_has_is_not_sent_again(client: TestClient, path: str) -> None:
    tag = client.get(path).headers["etag"]
    for known in (tag, f"W/{tag}", f'"other", {tag}', "*"):
        again = client.get(path, headers={"if-none-match": known})
        assert (again.status_code, again.content, again.headers["etag"]) == (304, b"", tag)
        assert again.headers["content-security-policy"] == POLICY
    assert client.get(path, headers={"if-none-match": '"other"'}).status_code == 200


@pytest.mark.parametrize("path", ["/", "/assets/app.js"])
def test_it_can_only_be_read(client: TestClient, path: str) -> None:
    assert client.head(path).status_code == 200
    assert client.head(path).content == b""
    assert client.post(path).status_code == 405


def test_what_needs_no_token_is_what_is_served() -> None:
    paths = {route.path for route in page_routes()}
    assert {path.partition("{")[0] for path in paths} == set(OPEN_PATHS)


# Content of the files


def test_all_files_of_the_page_are_known() -> None:
    present = {path.name for path in FOLDER.iterdir() if path.suffix in (".js", ".css", ".svg")}
    assert present == set(ASSETS)


def test_the_page_refers_to_its_own_files_only() -> None:
    page = text_of("page.html")
    referred = re.findall(r'(?:src|href)="([^"]*)"', page)
    assert {name.removeprefix("/assets/") for name in referred if name.startswith("/assets/")} <= set(ASSETS)
    assert all(name.startswith(("/", "#")) for name in referred)
    assert not re.search(r"https?://|//\w", page)


def test_the_page_holds_neither_script_nor_style_of_its_own() -> None:
    page = text_of("page.html")
    assert re.findall(r"<script[^>]*>([^<]*)</script>", page) == ["", ""]
    assert "<style" not in page
    assert not re.search(r"\s(?:on\w+|style)=", page)


@pytest.mark.parametrize("name", SCRIPTS)
def test_a_module_makes_no_markup_and_asks_nobody_else(name: str) -> None:
    text = text_of(name)
    forbidden = r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function|setTimeout\(\s*['\"`]"
    assert not re.search(forbidden, text)
    # The name of the namespace of drawings looks like an address, and is none.
    assert not re.search(r"https?://(?!localhost/|www\.w3\.org/2000/svg\")", text)
    assert set(re.findall(r'from "\./([^"]+)"', text)) <= set(ASSETS)
    assert text.count("\n") <= 350


def test_all_modules_are_needed() -> None:
    used, waiting = set[str](), ["app.js"]
    while waiting:
        name = waiting.pop()
        if name not in used:
            used.add(name)
            waiting += re.findall(r'from "\./([^"]+)"', text_of(name))
    assert used | {"theme.js"} == set(SCRIPTS)


def test_every_id_that_a_module_names_is_in_the_page() -> None:
    present = set(re.findall(r'\bid="([^"]+)"', text_of("page.html")))
    named = {one for script in SCRIPTS for one in re.findall(r'byId\("([^"]+)"\)', text_of(script))}
    assert named - present == set()


def test_everything_together_is_small() -> None:
    assert sum(len(compress((FOLDER / name).read_bytes())) for name in [*ASSETS, "page.html"]) < 50_000


def test_without_scripts_there_is_still_a_form() -> None:
    page = text_of("page.html")
    noscript = page[page.index("<noscript>") : page.index("</noscript>")]
    assert 'action="/v1/search"' in noscript and 'name="q"' in noscript
    assert "findling search" in noscript
