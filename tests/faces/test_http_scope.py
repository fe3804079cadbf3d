"""`scope: all` over HTTP and MCP: a token reaches what it names, and nothing tells of the rest."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import findling
from findling.domain.permissions import OWNER
from findling.domain.resources import Resource
from findling.service.server.engine_pool import Host
from findling.service.server.tokens import TokenBook
from findling.service.workspace.workspaces import create_workspace
from tests.faces.http_servers import Client, in_process
from tests.faces.mcp_desks import call, served, told

ASKED = (
    ("GET", "/v1/search?q=walrus&scope=all&facets=type", None),
    ("GET", "/v1/search?q=walrsu&scope=all&explain=true", None),
    ("POST", "/v1/search", {"query": "walrus OR seal", "scope": "all", "limit": 50, "explain": True}),
    ("POST", "/v1/search", {"query": "", "scope": "all", "facets": ["type", "file"]}),
    ("POST", "/v1/search", {"query": "seal", "scope": "all", "workspace": "team"}),
    ("GET", "/v1/search/stream?q=walrus&scope=all", None),
    ("GET", "/v1/workspaces", None),
    ("GET", "/v1/fetch/note:9?workspace=other", None),
    ("GET", "/v1/search?q=walrus&workspace=personal", None),
    ("GET", "/v1/memories?query=walrus&workspace=personal", None),
    ("GET", "/v1/memories?query=walrus", None),
)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    made = tmp_path / "served"
    made.mkdir()
    (made / "shown.md").write_text("A walrus to see.\n")
    return made


def fill(host: Host, name: str, rid: str, text: str, *readers: str) -> None:
    if not (host.home / name).exists():
        create_workspace(name, home=host.home)
    with findling.open(workspace=name, settings=host.settings) as engine:
        engine.add([(Resource(rid=rid, type="note", visibility=readers or None), text)])


def hide(host: Host) -> None:
    """Everything that the tokens of the tests do not reach."""
    fill(host, "other", "note:9", "A walrus and a seal, walrsu.", "everyone")
    fill(host, "team", "note:8", "A walrus and a seal of bob, walrsu.", "user:bob")
    with findling.open(workspace="personal", settings=host.settings) as engine:
        engine.memories.remember("A walrus and a seal of my own.", visibility=["everyone"])


def said(client: Client, method: str, path: str, document: Any) -> tuple[int, Any]:
    response = client.ask(method, path, **({"json": document} if document else {}))
    lines = response.text.splitlines() if "stream" in path else [response.text]
    parts = [json.loads(line.removeprefix("data: ")) for line in lines if line.removeprefix("data: ").startswith("{")]
    for part in parts:
        for moment in ("timings_ms", "instance"):
            part.pop(moment, None)
    return response.status_code, parts


def test_what_a_token_does_not_name_changes_no_byte(root: Path) -> None:
    with in_process(root, requires_token=True) as (host, app):
        host.index()
        with host.opened(OWNER) as engine:
            engine.permissions.share("path:shown.md", "user:ann")
        fill(host, "team", "note:1", "A walrus of the team.", "user:ann")
        book, who = TokenBook(host.home), ("user:ann",)
        names = {"named": ("team",), "none": (), "personal": ("team", "personal")}
        tokens = {
            name: book.create(name, principals=who, scopes=("read",), workspaces=given) for name, given in names.items()
        }
        clients = [Client(app, token) for token in tokens.values()]
        before = [said(client, *asked) for client in clients for asked in ASKED]
        assert {code for code, _ in before} == {200, 404}
        found = said(clients[0], *ASKED[0])[1][0]
        assert {(hit["workspace"], hit["rid"]) for hit in found["hits"]} == {("", "file:shown.md"), ("team", "note:1")}
        assert [hit["rid"] for hit in said(clients[1], *ASKED[0])[1][0]["hits"]] == ["file:shown.md"]
        hide(host)
        assert [said(client, *asked) for client in clients for asked in ASKED] == before
        owner = Client(app, book.create("owner", principals=None, scopes=("read",), workspaces=("*",)))
        everything = said(owner, *ASKED[2])[1][0]
        assert {hit["workspace"] for hit in everything["hits"]} == {"", "team", "other", "personal"}


@pytest.mark.parametrize("personal", [True, False])
def test_agents_find_personal_memories_unless_a_person_says_no(root: Path, personal: bool) -> None:
    with served(root, OWNER, mcp__personal=personal, mcp__write=True) as one:
        one.engine.index()
        with findling.open(workspace="personal", settings=one.engine.writer.settings) as engine:
            rid = engine.memories.remember("A walrus of my own.").rid
        kept = call(one.server, "remember", text="The walrus of this folder.")["id"]
        for scope in ("here", "all"):
            found = call(one.server, "search", query="walrus", scope=scope)["results"]
            assert (rid in {hit["id"] for hit in found}) == personal
            assert kept in {hit["id"] for hit in found}
        rows = call(one.server, "memory", text="walrus")["rows"]
        assert {row["rid"] for row in rows} == {kept, *[rid] * personal}
        if personal:
            assert call(one.server, "fetch", id=rid, workspace="personal")["text"] == "A walrus of my own."
        else:
            assert "there is no workspace personal" in told(one.server, "fetch", id=rid, workspace="personal")
            assert "there is no" in told(one.server, "fetch", id=rid)
