"""`findling token`: the secret alone on stdout, everything else beside it."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from findling.domain.errors import TokenError
from findling.service.server.tokens import TokenBook

Call = Callable[..., tuple[int, str, str]]


@pytest.fixture
def book(tmp_path: Path) -> TokenBook:
    return TokenBook(tmp_path / "workspaces")


def test_a_token_is_made_used_and_revoked(project: Path, findling: Call, book: TokenBook) -> None:
    code, out, err = findling("token", "create", "bot", "--as", "user:ann", "--as", "group:eng")
    assert code == 0 and out.startswith("fdl_") and out.count("\n") == 1
    assert "it is not shown again" in err and out.strip() not in err
    caller = book.caller(out.strip())
    assert (caller.principals, caller.scopes) == (("user:ann", "group:eng"), frozenset({"read"}))
    assert findling("token", "revoke", "bot") == (0, "", "findling: the token bot is revoked\n")
    with pytest.raises(TokenError):
        book.caller(out.strip())


def test_a_token_of_the_owner_with_all_options(project: Path, findling: Call, book: TokenBook) -> None:
    findling("workspaces", "create", "notes")
    code, out, err = findling(
        "token", "create", "laptop", "--as", "owner", "--scope", "read", "--scope", "write", "--days", "30", "--json",
        *("--workspace", "notes", "--workspace", "nots"),
    )  # fmt: skip
    assert code == 0
    document = json.loads(out)
    caller = book.caller(document["token"])
    assert caller.is_owner and caller.may("read") and caller.may("write")
    assert caller.workspaces == ("notes", "nots")
    assert 29 < (document["expires_at"] - time.time()) / 86_400 <= 30
    assert "there is no workspace nots yet" in err and "no workspace notes yet" not in err


def test_tokens_are_listed_without_their_secrets(project: Path, findling: Call, book: TokenBook) -> None:
    secrets = [
        findling("token", "create", "zoe", "--as", "user:zoe", "--days", "9")[1].strip(),
        findling("token", "create", "laptop", "--as", "owner", "--scope", "write")[1].strip(),
    ]
    book.caller(secrets[1])
    code, out, err = findling("token", "list")
    assert (code, err) == (0, "")
    first, second = (line.split("  ") for line in out.splitlines())
    assert first[0] == "laptop" and "owner" in first and "all" in first and "for good" in first
    assert first[-1].startswith("used 20")
    assert second[0] == "zoe" and "until" in out and second[-1] == "never used"
    listed = findling("token", "list", "--json")[1]
    assert [each["name"] for each in json.loads(listed)["tokens"]] == ["laptop", "zoe"]
    for kept in (*secrets, "sha256"):
        assert kept not in out and kept not in listed


def test_no_tokens_is_exit_code_1(project: Path, findling: Call, tmp_path: Path) -> None:
    code, out, err = findling("token", "list")
    assert (code, out) == (1, "") and "there are no tokens" in err
    assert json.loads(findling("token", "list", "--json")[1])["tokens"] == []
    assert not (tmp_path / "workspaces" / ".tokens.json").exists()


@pytest.mark.parametrize(
    ("args", "told"),
    [
        (("create",), "Missing argument 'NAME'"),
        (("create", "bot"), "whose rights has bot?"),
        (("create", "bot", "--as", "owner", "--as", "user:ann"), "not both"),
        (("create", "bot", "--as", "ann"), "'ann' is no principal"),
        (("create", "bot", "--as", "owner", "--scope", "admin"), "'admin' is not one of"),
        (("create", "bot", "--as", "owner", "--days", "0"), "0 is not in the range"),
        (("create", "bot", "--as", "owner", "--workspace", ""), "needs a name"),
        (("create", "a b", "--as", "owner"), "no name of a token"),
        (("create", "there", "--as", "owner"), "there is a token there already"),
        (("create", "bot", "--as", "owner", "--forever"), "No such option"),
        (("revoke", "nobody"), "there is no token nobody"),
    ],
)
def test_what_cannot_be_is_an_error(project: Path, findling: Call, args: tuple[str, ...], told: str) -> None:
    findling("token", "create", "there", "--as", "owner")
    code, out, err = findling("token", *args)
    assert (code, out) == (2, "")
    assert told in err
    assert len(json.loads(findling("token", "list", "--json")[1])["tokens"]) == 1


def test_a_damaged_file_is_told_with_the_next_step(project: Path, findling: Call, tmp_path: Path) -> None:
    findling("token", "create", "bot", "--as", "owner")
    (tmp_path / "workspaces" / ".tokens.json").write_text("{")
    code, out, err = findling("token", "list")
    assert (code, out) == (2, "")
    assert ".tokens.json is damaged" in err and "try: " in err


def test_an_expired_token_is_listed_as_such(project: Path, findling: Call, tmp_path: Path) -> None:
    past = time.time() - 86_400
    TokenBook(tmp_path / "workspaces", clock=lambda: past).create("old", principals=None, expires_at=past + 60)
    assert "expired 20" in findling("token", "list")[1]
