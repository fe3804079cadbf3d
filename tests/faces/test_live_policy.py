"""A daemon that runs, and a caller with a token: what the owner changes holds with the next question."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from findling.service.server.tokens import TokenBook
from tests.faces.daemons import Daemon, daemon_of
from tests.faces.test_daemon import ask
from tests.processes import run_process


def run(*args: str) -> subprocess.CompletedProcess[str]:
    return run_process([sys.executable, "-m", "findling", *args])


def answer(daemon: Daemon, secret: str) -> dict[str, Any]:
    status, body = ask(daemon, "GET /v1/search?q=token", head=f"authorization: Bearer {secret}\r\n")
    assert status == 200, body
    found: dict[str, Any] = json.loads(body)
    return found


@pytest.mark.parametrize(
    "change", [("config", "set", "permissions.unset", "owner"), ("permissions", "policy", "owner")]
)
def test_what_is_no_longer_public_is_hidden_at_once(project: Path, change: tuple[str, ...]) -> None:
    home = Path(os.environ["FINDLING_HOME"])
    assert run("index", str(project)).returncode == 0
    assert run("config", "set", "permissions.unset", "public").returncode == 0
    ann = TokenBook(home).create("ann", principals=("user:ann",))
    with daemon_of(home, project, "--set", "serve.require_token=true", "--no-watch") as daemon:
        fresh, kept = answer(daemon, ann), answer(daemon, ann)
        assert len(fresh["hits"]) == 2
        assert (kept["hits"], kept["timings_ms"].keys()) == (fresh["hits"], {"search"})
        assert fresh["timings_ms"].keys() == {"search"}, "or a caller learns when something hidden is written"
        done = run(*change)
        assert done.returncode == 0, done.stderr
        assert answer(daemon, ann)["hits"] == []
        assert run("permissions", "policy", "public").returncode == 0
        assert answer(daemon, ann)["hits"] == fresh["hits"]
        assert run("config", "remove", "permissions.unset").returncode == 0
        assert answer(daemon, ann)["hits"] == []


def test_the_policy_is_told(project: Path) -> None:
    assert run("index", str(project)).returncode == 0
    assert run("permissions", "policy").stdout == "owner\n"
    assert "left to public" in run("permissions", "policy", "public").stderr
    assert run("permissions", "policy").stdout == "public\n"
    assert run("permissions", "list").stdout == "everyone may see what has no list of its own\n"
    done = run("permissions", "policy", "nobody")
    assert (done.returncode, done.stdout) == (2, "")
