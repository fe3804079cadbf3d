"""Two servers that differ only in what the caller may not see send the same bytes, whatever they are asked.

The worlds are those of `tests/service/test_twin_worlds.py`; the caller is known by a token.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from findling.domain.permissions import OWNER
from findling.domain.queries import SearchRequest
from findling.faces.http.security.guards import Guard
from findling.service.server.engine_pool import Host
from findling.service.server.tokens import TokenBook
from findling.service.workspace.workspaces import create_workspace
from tests.counts import sample, tries
from tests.faces.http_servers import Client, in_process
from tests.service import test_graph_twin_worlds as names
from tests.service import test_twin_worlds as twins

SEEDS = (3,)
PROCESSES = (0, 2)


class Twins(NamedTuple):
    """The same caller in front of both servers."""

    without: Client
    with_hidden: Client
    owners: tuple[Client, Client]

    def same(self, method: str, path: str, **options: Any) -> str:
        """The answer of both worlds, which has to be the same."""
        one, other = (_told(client.ask(method, path, **options)) for client in (self.without, self.with_hidden))
        assert one == other, f"{method} {path} {options}"
        return one


@pytest.fixture(params=[(seed, processes) for seed in SEEDS for processes in PROCESSES], scope="module")
def worlds(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Twins]:
    seed, processes = request.param
    with _worlds(seed, processes, tmp_path_factory.mktemp("twins")) as made:
        yield made


@contextmanager
def _worlds(
    seed: int,
    processes: int,
    folder: Path,
    style: twins.Style = twins.Style(),  # noqa: B008 - it is a value
    bulk: int = 0,
) -> Iterator[Twins]:
    entries = twins._with_bulk(twins._entries(seed, 10, 10, style), bulk, style)
    callers, owners = [], []
    with ExitStack() as stack:
        for name, shown in (("without", [one for one in entries if one.is_seen]), ("with", entries)):
            root = folder / name / "tree"
            root.mkdir(parents=True)
            host, app = stack.enter_context(_served(root, processes))
            with host.opened(OWNER) as engine:
                twins._fill(engine, shown)
            create_workspace("team", home=host.home)
            if name == "with":
                create_workspace("board", home=host.home)
                (root / "secret.md").write_text("budget pool secret")
            book = TokenBook(host.home)
            token = book.create("ann", principals=twins.ANN, scopes=("read", "write"), workspaces=("team",))
            callers.append(Client(app, token))
            owners.append(Client(app, book.create("owner", principals=None, scopes=("read",))))
        yield Twins(callers[0], callers[1], (owners[0], owners[1]))


def _served(root: Path, processes: int) -> AbstractContextManager[tuple[Host, Guard]]:
    return in_process(root, {"search.mode": "hybrid"}, requires_token=True, processes=processes)


def _told(response: Any) -> str:
    """Everything that is sent, but for times and the id of the request."""
    headers = {name: value for name, value in response.headers.items() if name != "x-request-id"}
    assert len(response.content) == int(headers.get("content-length", len(response.content)))
    text = re.sub(r'"timings_ms":\{[^}]*\}|"latency_ms":[\d.]+|"instance": "[0-9a-f]*"', "", response.text)
    if text != response.text:
        headers.pop("content-length", None)  # a time may have a digit more
    return f"{response.status_code}\n{headers}\n{text}"


def test_searches(worlds: Twins) -> None:
    for request in twins._requests(7, tries(20, short=8)):
        body = _body(request)
        told = worlds.same("POST", "/v1/search", json=body)
        assert told.startswith("200")
        worlds.same("POST", "/v1/search", json=body)  # once more, when an answer may have been kept
    for body in map(_body, twins._requests(8, tries(6, short=3))):
        worlds.same("POST", "/v1/search/stream", json=body)
    for query in ("pool budget", "secret", "secretiv*", '"quarterly roadmap"', "is:head", "merger -pool", "zebra"):
        worlds.same(
            "GET", "/v1/search", params={"q": query, "facets": ["type", "author", "tag", "entity"], "explain": "true"}
        )
        worlds.same("GET", "/v1/search/stream", params={"q": query, "mode": "keyword"})
        worlds.same("POST", "/api/v2/search", json={"query": query, "limit": 5})


def _body(request: SearchRequest) -> dict[str, Any]:
    assert request.plan is not None
    knobs = ("mode", "fusion", "typos", "feedback", "boosts", "collapse", "diversity", "adaptive_k", "group", "heads")
    return {
        "query": request.query,
        "limit": request.limit,
        "offset": request.offset,
        "filters": {"tag": list(request.filters.tag)},
        "facets": list(request.facets),
        "explain": request.explain,
        "plan": {name: getattr(request.plan, name) for name in knobs},
    }


@pytest.mark.parametrize("bulk", names.BULKS)
@pytest.mark.parametrize("processes", PROCESSES)
def test_the_amount_of_hidden_text_decides_nothing_right_after_the_load(
    processes: int, bulk: int, tmp_path: Path
) -> None:
    walked = 0
    with _worlds(5, processes, tmp_path, names.STYLE, bulk) as worlds:
        for request in names._requests(5, tries(30, short=6)):
            assert request.plan is not None
            plan = {"graph": request.plan.graph, "graph_mode": request.plan.graph_mode}
            body = _body(request)
            told = worlds.same("POST", "/v1/search", json={**body, "explain": True, "plan": {**body["plan"], **plan}})
            walked += '"state":"on"' in told
        for name in sample(names.NAMES, short=3):
            worlds.same("GET", "/v1/related", params={"of": name, "to": names.NAMES[0]})
        worlds.same("GET", "/v1/themes")
    assert walked > tries(5, short=1)


def test_documents_and_names(worlds: Twins) -> None:
    entries = twins._entries(3, 10, 10)
    kinds = [[entry.resource.rid for entry in entries if entry.is_seen is is_seen] for is_seen in (True, False)]
    rids = [rid for kind in kinds for rid in sample(kind, short=4)]
    asked = [
        *rids,
        "decision:",
        "note:999",
        "decision:00",
        "docs/3.md",
        "0123456789abcdef",
        "secret.md",
        "file:secret.md",
    ]
    statuses = set()
    for name in asked:
        statuses.add(worlds.same("GET", f"/v1/fetch/{name}")[:3])
        worlds.same("GET", f"/v1/fetch/{name}", headers={"if-none-match": "*"})
        worlds.same("GET", f"/v1/similar/{name}", params={"limit": 3})
        worlds.same("GET", "/v1/explain", params={"q": "pool budget", "id": name})
        worlds.same("GET", f"/v1/themes/{name}", params={"limit": 3})
        worlds.same("GET", "/v1/related", params={"of": name})
        worlds.same("GET", "/v1/related", params={"of": "C++", "to": name, "hops": 2})
    assert statuses == {"200", "404"}
    assert '"summary"' in worlds.same("GET", "/v1/themes")
    worlds.same("GET", "/v1/themes", params={"limit": 1})
    for text in ("se", "sec", "budg", "pool mer", "sercet", "x", ""):
        worlds.same("GET", "/v1/suggest", params={"q": text})


def test_complete_answers(worlds: Twins) -> None:
    found = 0
    for word in ("pool", "secret", "budget", "zebra", "e", "# More", "mer.er", "p.*l"):
        for more in ({}, {"fixed": "true", "gives": "counts"}, {"case": "ignore", "before": "1"}, {"invert": "true"}):
            told = worlds.same("GET", "/v1/grep", params={"pattern": [word, "merger"], **more})
            found += '"number"' in told
        worlds.same("GET", "/v1/search", params={"q": word, "all": "true", "limit": "1"})
        worlds.same("POST", "/v1/search", json={"query": word, "all": True, "mode": "keyword"})
    assert found > 3
    for glob in ("*.md", "docs", "!src", "secret*", "["):
        worlds.same("GET", "/v1/glob", params={"glob": [glob], "limit": "3"})
    for name in ("pool", "secret", "budget", "a b"):
        worlds.same("GET", "/v1/refs", params={"name": name, "limit": "3"})
    for file in ("docs/1.md", "src/1.py", "secret.md"):
        worlds.same("GET", "/v1/outline", params={"file": file})


def test_pages(worlds: Twins) -> None:
    cursor, pages = "", 0
    while True:
        body = {"query": "pool budget token cat", "limit": 2, "cursor": cursor}
        worlds.same("POST", "/v1/search", json=body)
        answers = [client.post("/v1/search", body).json() for client in worlds[:2]]
        assert answers[0]["next_cursor"] == answers[1]["next_cursor"]
        cursor, pages = answers[0]["next_cursor"], pages + 1
        if not cursor:
            break
    assert pages > 1


def test_everything_else(worlds: Twins) -> None:
    assert '"resources"' in worlds.same("GET", "/v1/status")
    worlds.same("GET", "/v1/status", params={"workspace": "team"})
    assert '"team"' in worlds.same("GET", "/v1/workspaces")
    for name in ("board", "absent"):
        for path in ("search?q=pool&", "status?a=1&", "status?", "suggest?q=po&", "fetch/note:001?"):
            worlds.same("GET", f"/v1/{path}workspace={name}")
        worlds.same("POST", "/v1/search", json={"query": "pool", "workspace": name})
    for path in ("/metrics", "/v1/failed", "/v1/glossary/candidates"):
        assert worlds.same("GET", path).startswith("403")
    rid = twins._entries(3, 10, 10)[0].resource.rid
    for path, body in (("/v1/resources", {"delete": [rid]}), ("/v1/index", {})):
        assert worlds.same("POST", path, json=body).startswith("403")
    assert worlds.same("POST", "/v1/glossary/candidates/0123456789abcdef/approve").startswith("403")
    for path in ("/healthz", "/readyz", "/nothing", "/openapi.json", "/v1/search?q=a&b=c"):
        worlds.same("GET", path)
    worlds.same("POST", "/v1/search", json={"query": "pool", "cursor": "abc", "within": "docs"})
    worlds.same(
        "POST", "/v1/search", json={"query": "pool", "exclude_pattern": "bud.*", "min_score": 0.2, "context": 2}
    )


def test_the_worlds_do_differ_for_their_owner(worlds: Twins) -> None:
    """Otherwise all of the above could not fail."""
    totals = [owner.get("/v1/search?q=pool+budget").json()["total"] for owner in worlds.owners]
    assert totals[0] < totals[1]
    assert worlds.without.get("/v1/search?q=pool+budget").json()["total"] > 0
