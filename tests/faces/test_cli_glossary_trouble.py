"""`findling glossary list --pending` when the language model that was chosen does not answer."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.models.conftest import ProviderServer

pytest_plugins = ["tests.models.conftest"]

Findling = Callable[..., tuple[int, str, str]]


def test_a_model_that_is_down_is_a_note_beside_the_list(
    findling: Findling, project: Path, server: ProviderServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    (project / "ttl.md").write_text("Records have a Time To Live (TTL).\n")
    findling("index")
    findling("glossary", "add", "record", "entry")
    monkeypatch.setenv("FINDLING_CHAT_MODEL", "ollama:qwen3")
    monkeypatch.setenv("FINDLING_CHAT_BASE_URL", f"{server.url}/v1")
    server.then(401, {"error": {"message": "no such key"}}, times=2)
    code, out, err = findling("glossary", "list", "pending")
    assert code == 0
    assert out.startswith("TTL  Time To Live  acronym  ")
    assert "findling: no language model was asked: " in err
    assert err.index("401") < err.index("  try: ") < err.index("1 pending")
    code, out, err = findling("glossary", "list", "pending", "--json")
    assert (code, [term["surface"] for term in json.loads(out)["pending"]]) == (0, ["TTL"])
    assert "no language model was asked" in err
