"""The glossary of a workspace: kept, locked, exported and imported."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from findling.domain.errors import InvalidValueError, UsageError
from findling.pipelines.glossary.glossary import Edit, Group
from findling.service.content.glossary import WorkspaceGlossary
from findling.service.index.index_files import OpenedWorkspace
from findling.service.settings.settings import Settings
from findling.stores.lock import WriteLock


@pytest.fixture
def files(tmp_path: Path) -> Iterator[OpenedWorkspace]:
    opened = OpenedWorkspace(tmp_path / "workspace", unit="chunk")
    yield opened
    opened.close()


@pytest.fixture
def glossary(files: OpenedWorkspace) -> WorkspaceGlossary:
    return WorkspaceGlossary(files, Settings())


def test_decisions_are_kept(glossary: WorkspaceGlossary, files: OpenedWorkspace) -> None:
    glossary.add("rate limit", ["throttle", "quota"])
    glossary.protect("OTP")
    glossary.propose([("TTL", "time to live", "acronym", "time to live (TTL)")])
    glossary.approve("ttl", canonical=True)
    glossary.reject("share", "rate limit")
    files.close()
    again = WorkspaceGlossary(files, Settings())
    assert again.groups() == [Group("TTL", ("time to live",)), Group("rate limit", ("throttle", "quota"))]
    assert [term.surface for term in again.protected()] == ["OTP"]
    assert again.pending() == []
    assert again.propose([("share", "quota", "mined", "")]) == Edit()


def test_every_decision_says_when_and_a_suggestion_does_not(glossary: WorkspaceGlossary) -> None:
    glossary.add("auth", ["login"])
    glossary.propose([("sso", "auth", "mined", "")])
    dates = {term.surface: term.decided_at for term in glossary.terms()}
    assert dates["sso"] is None
    assert dates["auth"] is not None
    first = dates["login"]
    glossary.approve("sso")
    assert {term.surface: term.decided_at for term in glossary.terms()}["login"] == first


def test_removing_merging_and_lifting_a_protection(glossary: WorkspaceGlossary) -> None:
    glossary.add("auth", ["login", "sso"])
    glossary.add("quota", ["limit"])
    glossary.merge("quota", "auth")
    glossary.remove("sso")
    glossary.protect("OTP")
    glossary.unprotect("otp")
    assert glossary.groups() == [Group("auth", ("login", "quota", "limit"))]
    assert glossary.protected() == []


def test_reading_and_vain_tries_make_no_workspace(glossary: WorkspaceGlossary, files: OpenedWorkspace) -> None:
    assert (glossary.terms(), glossary.groups(), glossary.pending(), glossary.export_rows()) == ([], [], [], [])
    assert glossary.propose([]) == Edit()
    with pytest.raises(UsageError):
        glossary.approve("login")
    assert not files.folder.exists()


def test_a_change_waits_for_the_lock_and_a_look_does_not(glossary: WorkspaceGlossary, files: OpenedWorkspace) -> None:
    glossary.add("auth", ["login"])

    def add_elsewhere() -> None:
        other = OpenedWorkspace(files.folder, unit="chunk")
        WorkspaceGlossary(other, Settings()).add("auth", ["sso"])
        other.close()

    lock = WriteLock(files.folder / "write.lock")
    assert lock.acquire(0.0)
    waiting = threading.Thread(target=add_elsewhere)
    try:
        waiting.start()
        waiting.join(0.3)
        assert waiting.is_alive()
        assert glossary.groups() == [Group("auth", ("login",))]
        assert glossary.add("auth", ["login"]) == Edit()
    finally:
        lock.release()
        waiting.join()
    assert glossary.groups() == [Group("auth", ("login", "sso"))]


def test_what_is_exported_can_be_imported(glossary: WorkspaceGlossary, tmp_path: Path) -> None:
    glossary.add("rate limit", ["throttle", "접속 제한"])
    glossary.propose([("TTL", "time to live", "acronym", "time to live (TTL)")])
    glossary.reject("share", "rate limit")
    glossary.protect("OTP")
    rows = glossary.export_rows()
    other_files = OpenedWorkspace(tmp_path / "other", unit="chunk")
    other = WorkspaceGlossary(other_files, Settings())
    other.import_rows(rows)
    assert other.export_rows() == rows
    assert other.import_rows(rows) == Edit()
    other.add("auth", ["login"])
    other.import_rows(rows, replace=True)
    assert other.export_rows() == rows
    other_files.close()


def test_a_short_row_will_do(glossary: WorkspaceGlossary) -> None:
    names = ("auth", "login", "sso")
    glossary.import_rows(
        [{"group": "auth", "surface": name, "status": "canonical" if name == "auth" else "alias"} for name in names]
    )
    assert glossary.groups() == [Group("auth", ("login", "sso"))]
    assert all(term.key and term.decided_at for term in glossary.terms())


GOOD = [
    {"group": "auth", "surface": "auth", "status": "canonical"},
    {"group": "auth", "surface": "login", "status": "alias"},
]


@pytest.mark.parametrize(
    ("row", "problem"),
    [
        ("login", "row 3 of the glossary: it is no object"),
        ({"group": "auth", "surface": "sso", "status": "alias", "weight": 1}, "row 3 of the glossary: unknown: weight"),
        ({"group": "auth", "surface": 7, "status": "alias"}, "row 3 of the glossary: surface is no text"),
        ({"group": "auth", "surface": "sso", "status": "maybe"}, "status is 'maybe', not one of"),
        ({"group": "auth", "surface": "sso"}, "status is '', not one of"),
        ({"group": "auth", "surface": "!", "status": "alias"}, "surface '!' has no word in it"),
        ({"group": "", "surface": "sso", "status": "alias"}, "a term that is alias needs a group"),
        ({"group": "auth", "surface": "OTP", "status": "protected"}, "a protected term has no group"),
        ({"group": "auth", "surface": "sso", "status": "canonical"}, "a canonical term is the name of its group"),
        ({"group": "auth", "surface": "Auth", "status": "pending"}, "a canonical term is the name of its group"),
        ({"group": "Auth", "surface": "Logins", "status": "alias"}, "Logins is the same as login before it"),
        ({"group": "auth", "surface": "sso", "status": "alias", "decided_at": "now"}, "decided_at is no number"),
        ({"group": "auth", "surface": "sso", "status": "alias", "decided_at": True}, "decided_at is no number"),
        ({"group": "login", "surface": "sso", "status": "alias"}, "an alias of login, which has no canonical term"),
        ({"group": "", "surface": "login", "status": "protected"}, "login is protected and cannot be alias"),
    ],
)
def test_one_wrong_row_and_nothing_is_imported(glossary: WorkspaceGlossary, row: Any, problem: str) -> None:
    with pytest.raises(InvalidValueError) as caught:
        glossary.import_rows([*GOOD, row])
    assert problem in caught.value.message
    assert caught.value.hint
    assert glossary.terms() == []
