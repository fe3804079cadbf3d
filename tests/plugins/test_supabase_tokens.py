"""The plugin `findling-supabase`: access tokens of its users, from the claims to the daemon."""

from __future__ import annotations

import base64
import hmac
import json
import os
import time
from collections.abc import Mapping
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from findling.domain.errors import MissingExtraError, TokenError, UsageError
from findling.service.server.tokens import TokenBook, issuer_of
from tests.faces.daemons import daemon_of
from tests.forks import run_findling
from tests.processes import PATIENCE_S

claims = pytest.importorskip("findling_supabase.claims", reason="pip install --editable plugins/findling-supabase")

SECRET = b"a secret of a project, long enough to be one"
NOW = 1_800_000_000.0
OWN = {"sub": "7c0e", "role": "authenticated", "exp": NOW + 3600, "app_metadata": {"groups": ["sea", "two words"]}}


def signed(body: Mapping[str, Any], secret: bytes = SECRET, **header: object) -> str:
    parts = [_encoded({"alg": "HS256", "typ": "JWT", **header}), _encoded(body)]
    return ".".join([*parts, _base64(hmac.digest(secret, ".".join(parts).encode(), "sha256"))])


def _encoded(value: object) -> str:
    return _base64(json.dumps(value).encode())


def _base64(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


def read(token: str, **more: Any) -> Any:
    return claims.verified_claims(token, SECRET, clock=lambda: NOW, **more)


def test_claims_of_a_verified_token_are_principals() -> None:
    found = read(signed(OWN))
    assert claims.principals_of(found) == ("user:7c0e", "role:authenticated", "group:sea")
    # What users write about themselves means nothing.
    own = {**OWN, "user_metadata": {"groups": ["admins"]}, "groups": ["admins"], "app_metadata": {"groups": "admins"}}
    assert claims.principals_of(read(signed(own))) == ("user:7c0e", "role:authenticated")
    service = {"role": "service_role", "exp": NOW + 9}
    assert claims.principals_of(read(signed(service))) == ("role:service_role",)
    assert claims.principals_of({"sub": 7, "role": "", "app_metadata": []}) == ()


@pytest.mark.parametrize(
    "token",
    [
        signed(OWN, b"another secret of another project, as long"),
        signed(OWN, alg="none"),
        signed(OWN, alg="HS512"),
        signed(OWN, crit=["exp"]),
        signed({**OWN, "exp": NOW}),
        signed({key: value for key, value in OWN.items() if key != "exp"}),
        signed({**OWN, "exp": "later"}),
        signed({**OWN, "nbf": NOW + 120}),
        signed({**OWN, "exp": float("nan")}),
        signed(OWN).rpartition(".")[0] + ".",
        ".".join([_encoded({"alg": "none"}), _encoded(OWN), ""]),
        signed(OWN)[:-2],
        signed(OWN) + "=",
        signed({**OWN, "pad": "x" * 9000}),
        "..",
        "",
        "fdl_something",
    ],
)
def test_other_tokens_are_not_valid(token: str) -> None:
    assert read(token) is None


def test_a_changed_letter_is_noticed() -> None:
    token = signed(OWN)
    head = token.rpartition(".")[0]
    for place in range(len(head)):
        if head[place] != ".":
            letter = "B" if head[place] == "A" else "A"
            assert read(token[:place] + letter + token[place + 1 :]) is None


@given(st.text(max_size=200))
def test_no_text_is_a_token_or_an_error(text: str) -> None:
    assert read(text) is None
    assert read(f"{text}.{text}.{text}") is None


def test_the_project_that_is_named() -> None:
    project = "https://project.supabase.co/auth/v1"
    assert read(signed(OWN), made_by=project) is None
    assert read(signed({**OWN, "iss": project}), made_by=project) is not None


def test_a_bearer_reads_as_its_principals_and_never_owns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(MissingExtraError, match="tokens of nobody"):
        issuer_of("nobody")
    monkeypatch.delenv("SUPABASE_JWT_SECRET", raising=False)
    with pytest.raises(UsageError, match="SUPABASE_JWT_SECRET"):
        issuer_of("supabase")
    monkeypatch.setenv("SUPABASE_JWT_SECRET", SECRET.decode())
    monkeypatch.setenv("SUPABASE_URL", "https://project.supabase.co/")
    book = TokenBook(tmp_path, issuer=issuer_of("supabase"))
    own = {**OWN, "exp": time.time() + 60, "iss": "https://project.supabase.co/auth/v1"}
    caller = book.caller(signed(own))
    assert caller.principals == ("user:7c0e", "role:authenticated", "group:sea")
    assert (caller.is_owner, caller.scopes, caller.workspaces) == (False, frozenset({"read"}), ())
    assert book.list() == []
    secret = book.create("bot", principals=None)
    assert book.caller(secret).is_owner
    for wrong in (signed({**own, "iss": "https://other.supabase.co/auth/v1"}), signed({**own, "exp": 1}), "fdl_x", ""):
        with pytest.raises(TokenError):
            book.caller(wrong)


def test_what_an_issuer_says_is_checked(tmp_path: Path) -> None:
    def strange(token: str) -> tuple[str, ...]:
        return ("user:ann", "owner")

    with pytest.raises(TokenError):
        TokenBook(tmp_path, issuer=strange).caller("anything")


def test_the_daemon_lets_users_in_and_shows_them_their_own(tmp_path: Path) -> None:
    tree, home = tmp_path / "tree", tmp_path / "home"
    tree.mkdir()
    (tree / "shared.md").write_text("# Shared\n\nThe ferry leaves at nine.\n")
    (tree / "private.md").write_text("# Private\n\nThe ferry is mine.\n")
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("FINDLING_", "SUPABASE_"))}
    environment |= {"FINDLING_HOME": str(home), "FINDLING_CONFIG": str(tmp_path / "none.toml"), "HOME": str(tmp_path)}
    environment |= {"FINDLING_SEMANTIC_MODEL": "none", "FINDLING_SERVE_AUTO": "never"}
    environment["FINDLING_SEMANTIC_REFINE"] = "never"
    words = ("permissions", "share", "file:shared.md", "group:sea")
    for command in (("index",), words):
        assert run_findling(*command, cwd=tree, env=environment).returncode == 0
    flags = ("--set", "serve.require_token=true", "--set", "serve.issuer=supabase", "--no-watch")
    with_secret = {**environment, "SUPABASE_JWT_SECRET": SECRET.decode()}
    with daemon_of(home, tree, *flags, environ=with_secret) as daemon:

        def ask(token: str) -> tuple[int, str]:
            connection = HTTPConnection(str(daemon.state.host), int(daemon.state.port or 0), timeout=PATIENCE_S)
            try:
                connection.request("GET", "/v1/search?q=ferry", headers={"authorization": f"Bearer {token}"})
                answer = connection.getresponse()
                return answer.status, answer.read().decode()
            finally:
                connection.close()

        own = {**OWN, "exp": time.time() + 600}
        status, text = ask(signed(own))
        assert (status, "shared.md" in text, "private.md" in text) == (200, True, False), text
        status, text = ask(signed({**own, "app_metadata": {}, "role": "service_role"}))
        assert (status, "shared.md" in text, "private.md" in text) == (200, False, False), text
        assert ask(signed(own, b"another secret of another project, as long"))[0] == 401
        assert ask("nonsense")[0] == 401
    run = run_findling("serve", str(tree), *flags, env=environment)
    assert run.returncode == 2
    assert "SUPABASE_JWT_SECRET is not set" in run.stderr
