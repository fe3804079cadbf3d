"""A daemon that runs, and a caller with a token: what the owner changes holds with the next question."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from findling.service.client.daemon import call_daemon
from findling.service.server.tokens import TokenBook
from tests.faces.daemons import Daemon, daemon_of
from tests.faces.test_daemon import ask

Findling = Callable[..., tuple[int, str, str]]


def answer(daemon: Daemon, secret: str) -> dict[str, Any]:
    status, body = ask(daemon, "GET /v1/search?q=token", head=f"authorization: Bearer {secret}\r\n")
    assert status == 200, body
    found: dict[str, Any] = json.loads(body)
    return found


def test_what_is_no_longer_public_is_hidden_at_once(project: Path, findling: Findling) -> None:
    home = Path(os.environ["FINDLING_HOME"])
    assert findling("index")[0] == 0
    assert findling("config", "set", "permissions.unset", "public")[0] == 0
    ann = TokenBook(home).create("ann", principals=("user:ann",))
    with daemon_of(home, project, "--set", "serve.require_token=true", "--no-watch") as daemon:
        assert ask(daemon, "GET /v1/workspaces")[0] == 401
        assert ask(daemon, "GET /healthz")[0] == 200
        assert ask(daemon, "GET /v1/workspaces", head=f"authorization: Bearer {ann}\r\n")[0] == 200
        assert call_daemon(daemon.state, "GET", "/v1/workspaces")[0] == 200, "the owner needs none"
        fresh, kept = answer(daemon, ann), answer(daemon, ann)
        assert len(fresh["hits"]) == 2
        assert (kept["hits"], kept["timings_ms"].keys()) == (fresh["hits"], {"search"})
        assert fresh["timings_ms"].keys() == {"search"}, "or a caller learns when something hidden is written"
        for change in (("config", "set", "permissions.unset", "owner"), ("permissions", "share", "*", "!everyone")):
            assert findling("config", "set", "permissions.unset", "public")[0] == 0
            assert answer(daemon, ann)["hits"] == fresh["hits"]
            code, _, err = findling(*change)
            assert code == 0, err
            assert answer(daemon, ann)["hits"] == []
            assert findling("permissions", "share", "*", "everyone")[0] == 0
            assert answer(daemon, ann)["hits"] == fresh["hits"]
            assert findling("config", "remove", "permissions.unset")[0] == 0
            assert answer(daemon, ann)["hits"] == []


def test_the_policy_is_told(project: Path, findling: Findling) -> None:
    assert findling("index")[0] == 0
    assert json.loads(findling("permissions", "list", "--json")[1])["policy"] == "owner"
    assert "left to public" in findling("permissions", "share", "*", "everyone")[2]
    assert json.loads(findling("permissions", "list", "--json")[1])["policy"] == "public"
    assert findling("permissions", "list")[1] == "everyone may see what has no list of its own\n"
    assert findling("permissions", "share", "*", "user:nobody")[:2] == (2, "")
