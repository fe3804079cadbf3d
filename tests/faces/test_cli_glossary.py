"""`findling glossary`, run in this process."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

Findling = Callable[..., tuple[int, str, str]]


@pytest.fixture
def indexed(findling: Findling, project: Path) -> Path:
    assert findling("index")[0] == 0
    return project


def test_add_and_list(findling: Findling, indexed: Path) -> None:
    code, out, err = findling("glossary", "add", "auth", "authentication", "sign-in")
    assert (code, out) == (0, "")
    assert "findling: sign-in is an alias of auth\n" in err
    findling("glossary", "add", "rate limit", "throttle", "quota")
    findling("glossary", "set", "OTP", "protected")
    code, out, _ = findling("glossary", "list")
    assert code == 0
    assert out == (
        "auth        authentication, sign-in\n"
        "rate limit  throttle, quota\n"
        "OTP         (protected)\n"
    )  # fmt: skip


def test_columns_are_aligned_by_what_the_terminal_shows(findling: Findling, indexed: Path) -> None:
    findling("glossary", "add", "인증", "auth")
    findling("glossary", "add", "rate", "pace")
    assert findling("glossary", "list")[1] == "rate  pace\n인증  auth\n"


def test_list_of_everything_and_as_json(findling: Findling, indexed: Path) -> None:
    assert findling("glossary", "list")[0] == 1
    findling("glossary", "set", "author", "rejected", "--group", "auth")
    assert findling("glossary", "list")[:2] == (1, "")
    assert findling("glossary", "list", "all")[:2] == (0, "rejected  auth  author  user\n")
    findling("glossary", "add", "auth", "login")
    code, out, _ = findling("glossary", "list", "--json")
    document = json.loads(out)
    assert code == 0
    assert document["groups"] == [{"canonical": "auth", "aliases": ["login"]}]
    assert (document["protected"], "terms" in document) == ([], False)
    terms = json.loads(findling("glossary", "list", "all", "--json")[1])["terms"]
    assert {(term["surface"], term["status"]) for term in terms} == {
        ("auth", "canonical"),
        ("login", "alias"),
        ("author", "rejected"),
    }


@pytest.fixture
def suggested(findling: Findling, indexed: Path, tmp_path: Path) -> Path:
    """A glossary with one pending term."""
    row = {"group": "time to live", "surface": "TTL", "status": "pending", "source": "acronym", "snippet": "a\n\tb\x1b"}
    file = tmp_path / "suggested.json"
    file.write_text(json.dumps({"schema": 1, "terms": [row]}))
    assert findling("glossary", "import", str(file))[0] == 0
    return file


def test_pending_then_approve(findling: Findling, suggested: Path) -> None:
    code, out, err = findling("glossary", "list", "pending")
    assert (code, out) == (0, "TTL  time to live  acronym  a b␛\n")
    assert "1 pending" in err
    assert json.loads(findling("glossary", "list", "pending", "--json")[1])["pending"][0]["surface"] == "TTL"
    code, _, err = findling("glossary", "set", "ttl", "canonical")
    assert code == 0
    assert "TTL is the name of a group" in err
    assert findling("glossary", "list")[1] == "TTL  time to live\n"
    assert findling("glossary", "list", "pending")[:2] == (1, "")


def test_reject_is_for_good_and_remove_is_not(findling: Findling, suggested: Path) -> None:
    assert findling("glossary", "set", "TTL", "removed") == (0, "", "findling: 1 dropped\n")
    assert findling("glossary", "import", str(suggested))[0] == 0
    code, _, err = findling("glossary", "set", "TTL", "rejected")
    assert (code, err) == (0, "findling: TTL will not be suggested for time to live again\n")
    findling("glossary", "import", str(suggested))
    assert findling("glossary", "list", "pending")[0] == 1


def test_protect_and_off(findling: Findling, indexed: Path) -> None:
    findling("glossary", "set", "OTP", "protected")
    assert "nothing has changed" in findling("glossary", "set", "otp", "protected")[2]
    code, _, err = findling("glossary", "add", "password", "OTP")
    assert code == 2
    assert err == "findling: OTP is protected\n  try: findling glossary set OTP unprotected\n"
    assert findling("glossary", "set", "OTP", "unprotected")[0] == 0
    assert findling("glossary", "list")[0] == 1


def test_merge(findling: Findling, indexed: Path) -> None:
    findling("glossary", "add", "auth", "login")
    findling("glossary", "add", "sso", "single sign-on")
    code, _, err = findling("glossary", "set", "sso", "merged", "--group", "auth")
    assert code == 0
    assert "findling: single sign-on is an alias of auth\n" in err
    assert findling("glossary", "list")[1] == "auth  login, sso, single sign-on\n"


def test_what_is_exported_can_be_imported(findling: Findling, indexed: Path, tmp_path: Path) -> None:
    findling("glossary", "add", "인증", "auth")
    code, out, _ = findling("glossary", "list", "export")
    document = json.loads(out)
    assert (code, document["schema"]) == (0, 1)
    assert set(document["terms"][0]) == {"group", "key", "surface", "status", "source", "snippet", "decided_at"}
    file = tmp_path / "glossary.json"
    file.write_text(out, encoding="utf-8")
    findling("glossary", "add", "quota", "limit")
    code, _, err = findling("glossary", "import", "--replace", str(file))
    assert (code, err) == (0, "findling: 0 terms put in, 2 dropped\n")
    assert findling("glossary", "list", "export")[1] == out


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ("{", "is no JSON"),
        ("[]", "holds no glossary"),
        ('{"schema": 1, "terms": {}}', "holds no glossary"),
        ('{"schema": 9, "terms": []}', "has the schema 9, not 1"),
        ('{"schema": 1, "terms": [{"surface": "x", "colour": 1}]}', "row 1 of the glossary: unknown: colour"),
    ],
)
def test_a_wrong_file_is_refused(findling: Findling, indexed: Path, tmp_path: Path, content: str, problem: str) -> None:
    file = tmp_path / "wrong.json"
    file.write_text(content)
    code, _, err = findling("glossary", "import", str(file))
    assert code == 2
    assert problem in err
    assert "try: findling glossary list export" in err


def test_a_file_that_is_not_there_is_named(findling: Findling, indexed: Path) -> None:
    code, _, err = findling("glossary", "import", "none.json")
    assert code == 2
    assert "none.json does not exist" in err


def test_another_folder_is_named_with_in(
    findling: Findling, indexed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert findling("glossary", "add", "auth", "login", "--workspace", str(indexed))[0] == 0
    assert findling("glossary", "list", "--workspace", str(indexed))[1] == "auth  login\n"
    assert findling("glossary", "list", "--workspace", str(indexed / "src"))[1] == "auth  login\n"


def test_the_glossary_is_that_of_what_a_search_here_asks(findling: Findling, project: Path) -> None:
    (project / ".findling.toml").write_text('[context]\npath = "docs"\n')
    assert findling("session", "-l")[0] == 0
    assert findling("glossary", "add", "session", "visit")[0] == 0
    assert findling("glossary", "list")[1] == "session  visit\n"
    assert findling("glossary", "list", "--workspace", "./docs")[1] == "session  visit\n"
    assert findling("glossary", "list", "--workspace", "./")[:2] == (1, ""), "the whole project has another one"


def test_a_project_file_has_a_glossary_read_and_not_changed(findling: Findling, project: Path) -> None:
    assert findling("index", "--workspace", "mono")[0] == 0
    assert findling("glossary", "add", "auth", "login", "--workspace", "mono")[0] == 0
    (project / ".findling.toml").write_text('[context]\nworkspace = "mono"\n')
    assert findling("glossary", "list")[1] == "auth  login\n"
    code, _, err = findling("glossary", "set", "auth", "removed")
    assert code == 2
    assert f"{project / '.findling.toml'} names the workspace mono" in err and "--workspace mono" in err
    assert findling("glossary", "set", "auth", "removed", "--workspace", "mono")[0] == 0
