"""The HTTP interface: the same answers as those of the command line, and every error as a problem."""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Callable, Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families
from starlette.requests import Request
from starlette.routing import Route

from findling.domain.permissions import OWNER
from findling.domain.plans import Plan
from findling.domain.resources import Resource
from findling.domain.strangers import checked_pattern
from findling.faces.http.base.json_text import with_schema
from findling.faces.http.request.bodies import PlanBody
from findling.faces.http.security.guards import Guard
from findling.service.server.engine_pool import Host
from findling.service.server.tokens import TokenBook
from findling.service.settings.settings import load_settings
from tests.faces.http_servers import Client, in_process, listening

Call = Callable[..., tuple[int, str, str]]

NOTES = {
    "docs/guide.md": "# Guide\n\n## Signing in\n\nEvery login makes a session token.\n",
    "docs/index.md": "# The index\n\nHow a stale index is noticed at login.\n",
    "src/auth.py": "def login(user):\n    token = create_session(user)\n    return token\n",
}


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Host, Guard]]:
    """A small workspace that no test changes, and its app, which wants no token."""
    root = tmp_path_factory.mktemp("served") / "tree"
    for path, text in NOTES.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)
    (root / "broken.pdf").write_bytes(b"%PDF-1.7 nothing of the kind")
    with in_process(root, extra_routes=[Route("/breaks", _break)]) as (host, app):
        host.index()
        with host.opened(OWNER) as engine:
            engine.permissions.share("file:docs/guide.md", "user:ann")
        yield host, app


@pytest.fixture(scope="module")
def client(served: tuple[Host, Guard]) -> Client:
    """The owner, who needs no token on this machine."""
    return Client(served[1])


@pytest.fixture(scope="module")
def ann(served: tuple[Host, Guard]) -> Client:
    """Somebody who may see one document."""
    return Client(served[1], _token(served[0], "ann", ("user:ann",)))


async def _break(request: Request) -> None:
    raise RuntimeError("a secret of the machine")


def _token(host: Host, name: str, principals: tuple[str, ...] | None, scopes: tuple[str, ...] = ("read",)) -> str:
    return TokenBook(host.home).create(name, principals=principals, scopes=scopes)


def test_what_is_demanded_and_not_there_is_relaxed_apart(client: Client) -> None:
    found = client.post("/v1/search", {"query": '"token session" login'}).json()
    assert (found["hits"], found["total"]) == ([], 0)
    assert "docs/guide.md" in {hit["path"] for hit in found["relaxed"]}
    assert found["plan"]["relaxed"]["reading"] == "ranked"
    strict = client.post("/v1/search", {"query": '"token session" login', "relax": False}).json()
    assert strict["relaxed"] == []


def test_answers_are_those_of_the_command_line(project: Path, findling: Call) -> None:
    code, out, _ = findling("search", "login session", "--json", "--facet", "ext", "-e", "md", "-C", "1", "--explain")
    assert code == 0
    said = json.loads(out)
    body = {
        "query": "login session",
        "facets": ["ext"],
        "filters": {"ext": ["md"]},
        "context": 1,
        "explain": True,
    }
    own = {"store.home": str(project.parent.parent / "workspaces")}
    with in_process(project, own) as (_, app):
        answer = Client(app).post("/v1/search", body)
        address = "/v1/search?q=login+session&facets=ext&ext=md&context=1&explain=true"
        documents = [answer.json(), Client(app).get(address).json()]
    assert list(documents[0]) == list(said) and next(iter(said)) == "schema"
    for document in (said, *documents):
        del document["timings_ms"], document["served_by"]
    assert documents[0] == said == documents[1]
    assert answer.headers["cache-control"] == "no-store"


DOCUMENTS = {
    "/v1/fetch/docs/guide.md?lines=1": ("fetch", "docs/guide.md", "--lines", "1"),
    "/v1/suggest?q=log&limit=3": ("suggest", "log", "-k", "3"),
    "/v1/similar/docs/guide.md?limit=2": ("similar", "docs/guide.md", "-k", "2"),
    "/v1/related?of=docs/guide.md&limit=2": ("related", "docs/guide.md", "-k", "2"),
    "/v1/related?of=Guide&to=Signing%20in": ("related", "Guide", "Signing in"),
    "/v1/themes?limit=2": ("related", "-k", "2"),
    "/v1/explain?q=login&id=src/auth.py": ("search", "login", "--explain-hit", "src/auth.py"),
}


def test_documents_are_those_of_the_command_line(project: Path, findling: Call) -> None:
    findling("index")
    with in_process(project, {"store.home": str(project.parent.parent / "workspaces")}) as (_, app):
        for path, command in DOCUMENTS.items():
            said = json.loads(findling(*command, "--json")[1])
            document = Client(app).get(path).json()
            for one in (said, document):
                one.pop("timings_ms", None)
                one.pop("served_by", None)
            if command[0] == "related":
                assert said.pop("root") == str(project)
            assert document == said, path


def test_lines_and_files_are_complete_and_those_in_sight(client: Client, ann: Client) -> None:
    found = client.get("/v1/grep?pattern=log[i]n\\b&pattern=session&before=1").json()
    lines = {file["path"]: [(one["number"], one["match"]) for one in file["lines"]] for file in found["files"]}
    assert lines["src/auth.py"] == [(1, True), (2, True)]
    assert lines.keys() == {"docs/guide.md", "docs/index.md", "src/auth.py"}
    assert found["total"] == sum(file["total"] for file in found["files"])
    assert (found["is_cut"], found["degraded"]) == (False, [])
    assert found["strategy"]
    seen = ann.get("/v1/grep?pattern=login&pattern=session").json()
    assert [file["path"] for file in seen["files"]] == ["docs/guide.md"]
    assert (seen["strategy"], seen["searched"]) == ("", 0)
    assert ann.get("/v1/glob?glob=*").json()["files"] == [client.get("/v1/glob?glob=guide*").json()["files"][0]]
    assert client.get("/v1/glob?glob=docs&limit=1").json()["total"] == 2
    assert client.get("/v1/grep?pattern=login&limit=1").json()["is_cut"] is True
    assert set(client.get("/v1/search?q=login&all=true&limit=1").json()["facets"]["file"]) == set(lines)


def test_relations_in_code_are_those_in_sight(client: Client, ann: Client) -> None:
    found = client.get("/v1/refs?name=login").json()
    assert [(one["path"], one["kind"]) for one in found["references"]] == [("src/auth.py", "defines")]
    assert ann.get("/v1/refs?name=login").json()["references"] == []
    assert client.get("/v1/outline?file=src/auth.py").json()["definitions"][0]["name"] == "login"
    _problem(ann.get("/v1/outline?file=src/auth.py"), 404)
    _problem(client.get("/v1/refs?name=a%20b"), 422)


def test_a_limited_caller_writes_no_pattern_that_could_take_for_ever(client: Client, ann: Client) -> None:
    assert _problem(ann.get("/v1/grep?pattern=(a%2B)%2Bb"), 422)["detail"].startswith("pattern holds what only")
    assert client.get("/v1/grep?pattern=(a%2B)%2Bb").status_code == 200
    assert ann.get("/v1/grep?pattern=(a%2B)%2Bb&fixed=true").json()["files"] == []
    _problem(client.get("/v1/grep?pattern=("), 422)
    _problem(client.get("/v1/grep"), 422)


BAD_BODIES: list[tuple[dict[str, Any], str]] = [
    ({}, "query"),
    ({"query": "a", "limits": 3}, "limits"),
    ({"query": "a", "filters": {"extension": "py"}}, "filters.extension"),
    ({"query": "a", "plan": {"modes": "keyword"}}, "plan.modes"),
    ({"query": "a", "plan": {"overfetch": 1e9}}, "plan.overfetch"),
    ({"query": "a", "plan": {"alpha": 2}}, "plan.alpha"),
    ({"query": "a", "limit": "5"}, "limit"),
    ({"query": "a", "limit": -1}, "limit"),
    ({"query": "a", "limit": 10**6}, "limit"),
    ({"query": "a", "explain": 1}, "explain"),
    ({"query": "a", "mode": "magic"}, "mode"),
    ({"query": "a", "facets": ["size"]}, "facets.0"),
    ({"query": "\ud800"}, "query"),
    ({"query": "a" * 10_001}, "query"),
]


@pytest.mark.parametrize(("body", "field"), BAD_BODIES)
def test_a_value_that_cannot_be_is_named(client: Client, body: dict[str, Any], field: str) -> None:
    for path in ("/v1/search", "/v1/search/stream"):
        response = client.post(path, content=json.dumps(body), headers={"content-type": "application/json"})
        problem = _problem(response, 422)
        assert [error["field"] for error in problem["errors"]] == [field]
        assert len(response.content) < 1000  # what was sent is not sent back


@pytest.mark.parametrize(
    ("body", "told"),
    [
        ({"query": "a", "mode": "keyword", "plan": {"mode": "hybrid"}}, "mode is there twice"),
        ({"query": "a", "filters": {"after": "soon"}}, "after soon is no date"),
        ({"query": "a", "filters": {"after": "2026-02-01", "before": "2026-01-01"}}, "nothing is after"),
        ({"query": "a", "filters": {"ext": ["py"], "not_ext": ["*.PY"]}}, "ext and not_ext both name .py"),
        ({"query": "a", "filters": {"path": ["../other"]}}, "path ../other does not lie in the searched folder"),
        ({"query": "a", "filters": {"ext": ["."]}}, "ext '.' names no extension"),
        ({"query": "a", "exclude_pattern": "("}, "is no regular expression"),
        ({"query": "a", "profile": "nobody"}, "no profile is called nobody"),
        ({"query": "a", "cursor": "abc"}, "the cursor is none of an answer to this question"),
        ({"query": "a", "offset": 1, "cursor": "abc"}, "both say where to begin"),
    ],
)
def test_what_contradicts_itself_is_refused(client: Client, body: dict[str, Any], told: str) -> None:
    assert told in _problem(client.post("/v1/search", body), 422)["detail"]


@pytest.mark.parametrize(
    "path",
    [
        "/v1/search?q=a&limits=1",
        "/v1/search",
        "/v1/suggest?q=a&x=1",
        "/v1/fetch/docs/guide.md?line=1",
        "/v1/status?a=b",
        "/v1/workspaces?a=b",
        "/v1/failed?q=a",
        "/metrics?a=b",
        "/openapi.json?a=b",
        "/docs?a=b",
    ],
)
def test_parameters_that_are_not_known_are_refused(client: Client, path: str) -> None:
    _problem(client.get(path), 422)


@pytest.mark.parametrize(
    ("method", "path", "body", "status"),
    [
        ("GET", "/v1/nothing", b"", 404),
        ("DELETE", "/v1/search", b"", 405),
        ("POST", "/v1/search", b"{not json", 400),
        ("POST", "/v1/search", b"[" * 100_000, 400),
        ("POST", "/v1/search", b'"text"', 422),
        ("POST", "/v1/search", b"\xff\xfe", 400),
        ("GET", "/breaks", b"", 500),
        ("GET", "/v1/explain?q=login&id=nothing", b"", 404),
        ("GET", "/v1/suggest?q=%2B", b"", 422),
        ("GET", "/v1/search?q=a&workspace=nobodys", b"", 404),
    ],
)
def test_every_error_is_a_problem(client: Client, method: str, path: str, body: bytes, status: int) -> None:
    response = client.ask(method, path, content=body, headers={"content-type": "application/json"})
    _problem(response, status)
    assert "Traceback" not in response.text and "secret" not in response.text


def _problem(response: Any, status: int) -> dict[str, Any]:
    assert response.status_code == status, response.text
    assert response.headers["content-type"] == "application/problem+json"
    problem: dict[str, Any] = response.json()
    assert problem["status"] == status
    assert problem["instance"] == response.headers["x-request-id"] != ""
    assert problem["detail"] and problem["code"]
    return problem


HIDDEN_OR_NOT_THERE = [
    "nothing-like-it",
    "..%2f..%2fetc%2fpasswd",
    "%2e%2e/%2e%2e/etc/passwd",
    "%2Fetc%2Fpasswd",
    "file:%2Fetc%2Fpasswd",
    "docs%2Fguide.md%00",
    "%00",
    "0123456789abcdef",
    "x" * 3_000,
    "file:src/auth.py",
    "src/auth.py",
    "src/auth.py:1",
    "file:",
    "C:%5CWindows%5Cwin.ini",
    "file:%2F%2F%2Fetc%2Fpasswd",
    "%EF%BF%BD%F0%9F%92%A9",
]


@pytest.mark.parametrize("name", HIDDEN_OR_NOT_THERE)
def test_what_a_caller_may_not_see_is_not_there(ann: Client, name: str) -> None:
    from urllib.parse import unquote

    assert ann.get("/v1/fetch/docs/guide.md").status_code == 200
    for path in (f"/v1/fetch/{name}", f"/v1/similar/{name}", f"/v1/explain?q=login&id={name}"):
        problem = _problem(ann.get(path), 404)
        shown = unquote(name) if len(unquote(name)) <= 200 else f"{unquote(name)[:200]}…"
        assert problem["detail"] == f"there is no {shown} in the index"
        assert {**problem, "detail": "", "instance": ""} == {
            "type": "urn:findling:problem:not-found",
            "title": "Not Found",
            "status": 404,
            "detail": "",
            "code": "not-found",
            "hint": "findling ls lists what is",
            "instance": "",
        }


def test_no_file_beside_the_index_is_served(client: Client, served: tuple[Host, Guard]) -> None:
    """Not even to the owner: what is fetched is what was indexed, not what lies on disk."""
    root = Path(served[0].default)
    (root / "late.md").write_text("written after indexing")
    for name in ("late.md", "broken.pdf", str(root / "late.md").replace("/", "%2F"), "..%2Fworkspaces"):
        _problem(client.get(f"/v1/fetch/{name}"), 404)
    (root / "late.md").unlink()


def test_a_document_that_has_not_changed_is_not_sent_again(client: Client) -> None:
    first = client.get("/v1/fetch/docs/guide.md")
    tag = first.headers["etag"]
    for header in (tag, f'"other", {tag}', tag.removeprefix("W/"), "*"):
        again = client.get("/v1/fetch/docs/guide.md", headers={"if-none-match": header})
        assert (again.status_code, again.content, again.headers["etag"]) == (304, b"", tag)
    assert client.get("/v1/fetch/docs/guide.md", headers={"if-none-match": '"other"'}).status_code == 200
    assert client.get("/v1/fetch/docs/index.md").headers["etag"] != tag
    assert client.get("/v1/fetch/docs/guide.md?lines=1").json()["is_whole"]


def test_pages_are_steady_while_others_write(tmp_path: Path) -> None:
    root = tmp_path / "tree"
    root.mkdir()
    with in_process(root) as (host, app):
        client, token = Client(app), _token(host, "owner", None, ("read", "write"))
        writer = Client(app, token)
        items = [
            {"type": "knowledge", "id": f"{number:03}", "title": f"Login {number}", "body": "login " * (number % 7 + 1)}
            for number in range(40)
        ]
        assert writer.post("/v1/resources", {"upsert": items}).status_code == 200
        seen: list[str] = []
        body: dict[str, Any] = {"query": "login", "limit": 7, "cursor": ""}
        for turn in range(20):
            answer = client.post("/v1/search", body).json()
            seen += [hit["rid"] for hit in answer["hits"]]
            body["cursor"] = answer["next_cursor"]
            if not body["cursor"]:
                break
            new = {"type": "knowledge", "id": f"new{turn}", "title": "Login login login", "body": "login " * 9}
            writer.post("/v1/resources", {"upsert": [new], "delete": [seen[0]]})
        assert len(seen) == len(set(seen))
        assert {item["id"] for item in items} <= {rid.removeprefix("knowledge:") for rid in seen}


def test_large_answers_are_compressed(tmp_path: Path) -> None:
    root = tmp_path / "tree"
    root.mkdir()
    for number in range(5):
        (root / f"{number}.md").write_text(f"# Login {number}\n\nlogin and session\n")
    with listening(root) as (host, address):
        host.index()
        import http.client

        connection = http.client.HTTPConnection(address.removeprefix("http://"))
        try:
            read = {}
            for path in ("/v1/search?q=login", "/healthz", "/v1/search/stream?q=login"):
                connection.request("GET", path, headers={"accept-encoding": "gzip"})
                response = connection.getresponse()
                read[path] = response.getheader("content-encoding"), response.read()
        finally:
            connection.close()
    encoding, packed = read["/v1/search?q=login"]
    assert encoding == "gzip" and json.loads(gzip.decompress(packed))["total"] == 5
    assert read["/healthz"][0] is None and read["/v1/search/stream?q=login"][0] is None


def test_a_plan_is_changed_by_what_is_asked(client: Client) -> None:
    answer = client.post("/v1/search", {"query": "login", "profile": "strict", "plan": {"overfetch": 7}}).json()
    planned = answer["plan"]["plan"]
    assert (planned["overfetch"], planned["meaning_finds"], planned["profile"]) == (7.0, False, "strict")
    answer = client.post("/v1/search", {"query": "login", "mode": "semantic", "group": "resource"}).json()
    assert (answer["plan"]["plan"]["mode"], answer["plan"]["plan"]["group"]) == ("semantic", "resource")
    assert client.get("/v1/search?q=login&words=all").json()["plan"]["plan"]["words"] == "all"
    assert set(PlanBody.model_fields) == set(vars(Plan()))


def test_quick_answers_and_served_by(client: Client) -> None:
    answer = client.post("/v1/search", {"query": "login", "quick": True, "timeout_s": 5}).json()
    assert answer["served_by"] == "findling test"
    assert answer["plan"]["plan"]["rerank_depth"] == 0


def test_where_files_lie_is_told_to_the_owner_alone(client: Client, ann: Client, served: tuple[Host, Guard]) -> None:
    root = served[0].default
    assert client.get("/v1/search?q=login").json()["root"] == root
    for path in (
        "/v1/search?q=login",
        "/v1/similar/docs/guide.md",
        "/v1/status",
        "/v1/workspaces",
        "/v1/explain?q=a&id=x",
    ):
        assert root not in ann.get(f"/v1/{path}").text
    assert ann.get("/v1/status").json() == {"schema": 6, "resources": 1, "chunks": 1}
    assert ann.get("/v1/workspaces").json() == {"schema": 6, "workspaces": [{"name": "", "is_default": True}]}
    assert client.get("/v1/workspaces").json()["workspaces"][0]["root"] == root


def test_what_is_for_the_owner_alone(ann: Client) -> None:
    for path in ("/metrics", "/v1/failed", "/v1/glossary/candidates"):
        assert _problem(ann.get(path), 403)["code"] == "denied"
    for path in ("/v1/index", "/v1/resources"):
        assert _problem(ann.post(path, {}), 403)["code"] == "denied"


def test_a_token_that_may_only_write_asks_nothing(served: tuple[Host, Guard]) -> None:
    client = Client(served[1], _token(served[0], "writer", None, ("write",)))
    assert "does not allow to read" in _problem(client.get("/v1/search?q=login"), 403)["detail"]
    assert _problem(client.get("/metrics"), 403)["code"] == "denied"


def test_failed_files_and_status(client: Client) -> None:
    failed = client.get("/v1/failed").json()["failed_paths"]
    assert [entry["path"] for entry in failed] == ["broken.pdf"] and failed[0]["reason"]
    status = client.get("/v1/status").json()
    assert status["is_indexed"] and status["resources"] == 3 and status["indexing"] is None
    assert {"total_queries", "p99_latency_ms", "legs", "queue_depth"} <= set(status["daemon"])


def test_metrics_count(client: Client, served: tuple[Host, Guard]) -> None:
    def read() -> dict[str, Any]:
        response = client.get("/metrics")
        assert response.headers["content-type"].startswith("text/plain; version=0.0.4")
        return {family.name: family for family in text_string_to_metric_families(response.text)}

    before = read()
    client.post("/v1/search", {"query": "login never asked before"})
    client.post("/v1/search", {"query": "login", "profile": "nobody"})
    client.get("/v1/suggest?q=log")
    after = read()
    for name in ("findling_queries", "findling_search_seconds", "findling_failed_queries", "findling_documents"):
        assert name in after
    assert after["findling_queries"].samples[0].value == before["findling_queries"].samples[0].value + 1
    assert after["findling_failed_queries"].samples[0].value == before["findling_failed_queries"].samples[0].value + 1
    times = [one for one in after["findling_search_seconds"].samples if one.name.endswith("_count")]
    counted = {(one.labels["stage"], one.labels["mode"]): one.value for one in times}
    assert counted["search", "keyword"] > 0 and counted["suggest", ""] > 0
    assert client.get("/v1/status").json()["daemon"]["total_queries"] == after["findling_queries"].samples[0].value


def test_ready_when_everything_is_loaded(tmp_path: Path) -> None:
    root = tmp_path / "tree"
    root.mkdir()
    (root / "a.md").write_text("login")
    with in_process(root) as (host, app):
        client = Client(app)
        assert client.get("/healthz").json()["status"] == "ok"
        early = client.get("/readyz")
        assert (early.status_code, early.headers["retry-after"]) == (503, "1")
        assert _problem(client.get("/v1/search?q=login"), 409)["code"] == "not-indexed"
        assert client.get("/v1/status").json()["is_indexed"] is False
        host.index()
        host.warm_up()
        assert client.get("/readyz").status_code == 200
        assert client.get("/v1/search?q=login").json()["total"] == 1


def test_the_description_needs_nothing_from_elsewhere(client: Client) -> None:
    page = client.get("/docs")
    policy = page.headers["content-security-policy"]
    assert "default-src 'none'" in policy and "unsafe" not in policy
    looker = _Looker()
    looker.feed(page.text)
    assert looker.addresses == ["/openapi.json"] and not looker.tags & {"script", "link", "img", "iframe"}
    paths = client.get("/openapi.json").json()["paths"]
    for path in paths:
        assert path in page.text
    assert {"/v1/search", "/v1/search/stream", "/api/v2/search", "/v1/fetch/{id}", "/metrics"} <= set(paths)


class _Looker(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.addresses: list[str | None] = []
        self.tags: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.addresses += [value for name, value in attrs if name in ("href", "src", "action")]


def test_results_with_whole_passages(client: Client, ann: Client) -> None:
    answer = client.post("/api/v2/search", {"query": "login session", "type": "keyword", "path": "/docs", "limit": 5})
    first = answer.json()["results"][0]
    assert first["path"] == "docs/guide.md" and first["chunk_text"] == NOTES["docs/guide.md"].rstrip()
    assert first["keyword_score"] > 0 and first["vector_score"] is None
    assert (first["start_line"], first["end_line"]) == (1, 5)
    hybrid = client.post("/api/v2/search", {"query": "login", "search_type": "hybrid", "fusion_method": "rrf"}).json()
    assert hybrid["search_type"] == "hybrid" and hybrid["results"][0]["vector_score"] is not None
    assert [one["path"] for one in ann.post("/api/v2/search", {"query": "login"}).json()["results"]] == [
        "docs/guide.md"
    ]
    _problem(client.post("/api/v2/search", {"query": "login", "kind": "keyword"}), 422)
    disagreeing = {"query": "login", "type": "keyword", "search_type": "hybrid"}
    assert "disagree" in _problem(client.post("/api/v2/search", disagreeing), 422)["detail"]


def test_named_workspaces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from findling.service.workspace.workspaces import create_workspace

    root = tmp_path / "tree"
    root.mkdir()
    (root / "a.md").write_text("login")
    with in_process(root, {"permissions.unset": "public"}) as (host, app):
        monkeypatch.setenv("FINDLING_HOME", str(host.home))
        host.index()
        for name in ("team", "private"):
            create_workspace(name, home=host.home)
            item = {"type": "knowledge", "title": f"Login of {name}", "visibility": ["everyone"]}
            assert Client(app).post("/v1/resources", {"workspace": name, "upsert": [item]}).status_code == 200
        secret = TokenBook(host.home).create("ann", principals=("user:ann",), scopes=("read",), workspaces=("team",))
        ann = Client(app, secret)
        assert ann.get("/v1/search?q=login&workspace=team").json()["hits"][0]["title"] == "Login of team"
        told = [_problem(ann.get(f"/v1/search?q=login&workspace={name}"), 404) for name in ("private", "absents")]
        assert told[0]["detail"].replace("private", "absents") == told[1]["detail"]
        listed = ann.get("/v1/workspaces").json()["workspaces"]
        assert sorted(one["name"] for one in listed) == ["", "team"]
        everywhere = TokenBook(host.home).create("bob", principals=("user:bob",), scopes=("read",), workspaces=("*",))
        response = Client(app, everywhere).get("/v1/workspaces")
        assert str(tmp_path) not in response.text
        names = {one["name"]: one["is_default"] for one in response.json()["workspaces"]}
        assert names == {"": True, "team": False, "private": False}
        assert len(Client(app).get("/v1/workspaces").json()["workspaces"]) == 3


@pytest.mark.parametrize(
    ("pattern", "is_taken"),
    [
        ("secret", True),
        (r"^\bdraft\s\d\d\.txt$", True),
        (r"(?i)[a-z*+(|)] [^]x] [\]\w-]", True),
        (r"\*\+\?\(\|\)\{\\", True),
        ("b\u00e4r ]", True),
        ("." * 500, True),
        ("." * 501, False),
        ("(?:.|..)" * 40 + "\x01", False),
        ("a|b", False),
        ("colou?r", False),
        ("a{2}", False),
        ("[a-z]+ draft", False),
        (r"[\]+x", False),
        ("[](a+)+", False),
        ("(?:old)", False),
        ("a(?i)b", False),
        ("(?im)draft", False),
        ("(?=a)", False),
        ("(a|aa)+$", False),
        ("a*a*b", False),
        (r"(.*)\1", False),
        (r"a\1", False),
        ("a\\", False),
    ],
)
def test_a_pattern_that_could_take_for_ever_is_for_the_owner_alone(ann: Client, pattern: str, is_taken: bool) -> None:
    checked_pattern(pattern, is_owner=True)
    if is_taken:
        re.compile(pattern)
    response = ann.post("/v1/search", {"query": "login", "exclude_pattern": pattern})
    assert response.status_code == (200 if is_taken else 422), response.text


def test_names_that_are_no_unicode_are_written_all_the_same() -> None:
    document = json.loads(with_schema(Resource(rid="file:a\udcff.txt", path="a\udcff.txt"), root=Path("/r")))
    assert (document["schema"], document["root"], document["path"]) == (6, "/r", "a\udcff.txt")
    assert json.loads(with_schema({})) == {"schema": 6}


def test_a_limit_of_the_project_is_told_without_its_place(tmp_path: Path) -> None:
    root = tmp_path / "tree"
    root.mkdir()
    (root / ".findling.toml").write_text('[context]\ntypes = ["file"]\n')
    (root / "a.md").write_text("login")
    assert load_settings(root)["context.types"] == ("file",)
    with in_process(root, {"permissions.unset": "public"}) as (host, app):
        host.index()
        owner, other = Client(app), Client(app, _token(host, "ann", ("user:ann",)))
        assert str(root) in owner.get("/v1/search?q=login").json()["scope"]["from"]
        assert other.get("/v1/search?q=login").json()["scope"] == {"types": ["file"]}
