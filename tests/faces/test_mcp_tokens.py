"""Two worlds that differ in what a caller may not see, each behind a real daemon, asked over MCP with a real token."""

from __future__ import annotations

import json
import os
import re
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import pytest

import findling as library
from findling.service.server.tokens import TokenBook
from tests.faces.daemons import daemon_of

CALLS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("tools/list", {}),
    ("resources/read", {"uri": "findling://status"}),
    ("search", {"query": "roadmap"}),
    ("search", {"query": "merger roadmap", "mode": "keyword", "detail": "full"}),
    ("search", {"query": "", "filters": {"path": ["secret"]}}),
    ("fetch", {"id": "docs/open.md"}),
    ("fetch", {"id": "secret/merger.md"}),
    ("fetch", {"id": "secret/nothing.md"}),
    ("explain", {"query": "roadmap", "id": "secret/merger.md"}),
    ("similar", {"id": "docs/open.md"}),
    ("status", {}),
    ("related", {"of": "docs/open.md", "to": "Acme"}),
    ("index", {}),
)


def test_tokens_bound_to_principals_see_twin_worlds_alike(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FINDLING_SEMANTIC_MODEL", "none")
    hidden = asked(tmp_path / "one", "The secret merger of the roadmap with Acme.\n")
    absent = asked(tmp_path / "two", "")
    assert len(hidden) == len(CALLS)
    assert [one["found"] for one in hidden] == [one["found"] for one in absent]
    assert "docs/open.md" in hidden[2]["found"]
    assert "merger.md" in hidden[6]["owner"], "the owner does see it"
    assert hidden[6]["owner"] != absent[6]["owner"]


def asked(folder: Path, secret: str) -> list[dict[str, str]]:
    """The answers to a limited token and to the owner's in one world."""
    root, home = folder / "tree", folder / "home"
    (root / "docs").mkdir(parents=True)
    (root / "docs" / "open.md").write_text("The roadmap for spring.\n")
    os.utime(root / "docs" / "open.md", (1_700_000_000, 1_700_000_000))
    (root / "secret").mkdir()
    if secret:
        (root / "secret" / "merger.md").write_text(secret)
    settings = library.Settings().override({"store.home": str(home)}, "test")
    with library.open(root, settings=settings) as engine:
        engine.index()
        engine.permissions.share("path:docs/open.md", "user:ann")
    book = TokenBook(home)
    tokens = {"found": book.create("ann", principals=("user:ann",)), "owner": book.create("me", principals=None)}
    with daemon_of(home, root, "--no-watch", "--set", "serve.require_token=true") as daemon:
        address = f"{daemon.state.address}/mcp"
        with pytest.raises(urllib.error.HTTPError, match="401"):
            call(address, "", *CALLS[0])
        return [{who: call(address, token, *one) for who, token in tokens.items()} for one in CALLS]


def call(address: str, token: str, name: str, arguments: dict[str, Any]) -> str:
    is_method = "/" in name
    message = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": name if is_method else "tools/call",
        "params": arguments if is_method else {"name": name, "arguments": arguments},
    }
    headers = {
        "content-type": "application/json",
        "accept": "application/json, text/event-stream",
        "mcp-protocol-version": "2025-11-25",
        **({"authorization": f"Bearer {token}"} if token else {}),
    }
    request = urllib.request.Request(address, json.dumps(message).encode(), headers)
    with urllib.request.urlopen(request, timeout=60) as answer:
        text: str = answer.read().decode()
    # Each world has its own time of indexing.
    return re.sub(r'"(index_age_s|indexed_at)\\*":[^,}]+', "", text)
