"""`findling compact` and `findling snapshot` as people and scripts use them."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

Findling = Callable[..., tuple[int, str, str]]


@pytest.fixture
def indexed(project: Path, findling: Findling) -> Path:
    assert findling("index")[0] == 0
    return project


@pytest.fixture
def workspace(indexed: Path, tmp_path: Path) -> Path:
    (store,) = (tmp_path / "workspaces").glob("*/index.sqlite")
    return store.parent


def test_compact_tells_the_size_of_every_part(indexed: Path, findling: Findling) -> None:
    for turn in range(3):
        (indexed / "docs" / "guide.md").write_text(f"# Guide\n\nturn {turn} of the login\n")
        findling("index")
    code, out, err = findling("compact", "--full")
    assert (code, err) == (0, "")
    assert out.splitlines()[0].split() == ["before", "after"]
    assert {"truth store", "keyword leg", "vectors", "all"} <= {line[:16].strip() for line in out.splitlines()}
    assert "rewritten: keyword leg" in out
    code, out, _ = findling("compact", "--json")
    report = json.loads(out)
    assert (code, report["rewritten"]) == (0, [])
    assert report["freed_bytes"] == sum(report["before"].values()) - sum(report["after"].values())
    assert findling("search", "--no-index", "turn 2")[0] == 0
    assert findling("doctor")[0] == 0


def test_compact_when_it_is_worthwhile(indexed: Path, findling: Findling) -> None:
    assert findling("compact", "--if-worthwhile") == (1, "", "")
    assert findling("compact", "--full", "--if-worthwhile") == (1, "", ""), "the last one holds"


def test_compact_needs_an_index(project: Path, findling: Findling) -> None:
    code, out, err = findling("compact")
    assert (code, out) == (2, "")
    assert "holds no index yet" in err


def test_there_and_back(indexed: Path, findling: Findling, workspace: Path) -> None:
    code, out, err = findling("snapshot", "create", "--name", "before")
    assert (code, out) == (0, "before\n")
    assert "4 resources" in err
    (indexed / "docs" / "guide.md").unlink()
    findling("index")
    assert findling("search", "--no-index", '"session token"')[0] == 1
    code, out, err = findling("snapshot", "restore", "before")
    assert (code, out) == (2, "")
    assert "nothing was done" in err
    assert "--yes" in err
    code, out, err = findling("snapshot", "restore", "before", "--yes")
    assert (code, out) == (0, "restored before: 4 resources\n")
    assert "findling snapshot restore before-restore-" in err
    assert findling("search", "--no-index", '"session token"')[0] == 0
    assert findling("search", '"session token"')[0] == 1, "the file is gone, and the next look at the disk says so"
    code, out, _ = findling("snapshot", "list")
    assert code == 0
    assert [line.split()[0] for line in out.splitlines()][-1] == "before"
    assert "3 resources" in out.splitlines()[0]
    assert findling("doctor")[0] == 0


def test_as_documents(indexed: Path, findling: Findling) -> None:
    made = json.loads(findling("snapshot", "create", "--name", "one", "--json")[1])["snapshot"]
    assert (made["name"], made["counts"]["resources"], len(made["sha256"])) == ("one", 4, 64)
    listed = json.loads(findling("snapshot", "list", "--json")[1])["snapshots"]
    assert listed == [made]
    verdict = json.loads(findling("snapshot", "restore", "--check", "one", "--json")[1])
    assert (verdict["ok"], verdict["problems"]) == (True, [])
    restored = json.loads(findling("snapshot", "restore", "one", "--yes", "--no-safety", "--json")[1])
    assert (restored["snapshot"], restored["safety"], restored["put_aside"]) == (made, None, None)


def test_verify_tells_damage_by_its_exit_code(indexed: Path, findling: Findling, workspace: Path) -> None:
    findling("snapshot", "create", "--name", "one")
    assert findling("snapshot", "restore", "--check", "one") == (0, "one is sound\n", "")
    file = workspace / "snapshots" / "one.sqlite"
    content = bytearray(file.read_bytes())
    content[5000] ^= 1
    file.write_bytes(content)
    code, out, _ = findling("snapshot", "restore", "--check", "one")
    assert code == 1
    assert "checksum" in out
    code, _, err = findling("snapshot", "restore", "one", "--yes")
    assert code == 2
    assert "nothing was changed" in err


def test_a_damaged_index_can_be_restored(indexed: Path, findling: Findling, workspace: Path) -> None:
    findling("snapshot", "create", "--name", "one")
    (workspace / "index.sqlite").write_bytes(b"no database at all" * 500)
    assert findling("search", "login")[0] == 2
    code, out, err = findling("snapshot", "restore", "one", "--yes")
    assert (code, out) == (0, "restored one: 4 resources\n")
    assert "index.sqlite.damaged" in err
    assert findling("search", "login")[0] == 0
    (workspace / "index.sqlite").unlink()
    assert findling("snapshot", "restore", "one", "--yes")[0] == 0
    assert findling("search", "--no-index", "login")[0] == 0


def test_a_file_of_its_own(indexed: Path, findling: Findling, tmp_path: Path) -> None:
    file = tmp_path / "copy.sqlite"
    assert findling("snapshot", "create", "--to", str(file))[:2] == (0, f"{file}\n")
    assert findling("snapshot", "list") == (
        1,
        "",
        "findling: there are no snapshots\n  try: findling snapshot create\n",
    )
    assert findling("snapshot", "restore", "--check", str(file))[0] == 0
    assert findling("snapshot", "restore", str(file), "--yes")[0] == 0
    code, _, err = findling("snapshot", "create", "--to", str(file))
    assert (code, "there already" in err) == (2, True)
    code, _, err = findling("snapshot", "create", "--to", str(file), "--name", "x")
    assert code == 2


def test_retention_and_dropping(indexed: Path, findling: Findling) -> None:
    assert findling("config", "set", "snapshot.keep", "2")[0] == 0
    for name in ("a", "b", "c"):
        assert findling("snapshot", "create", "--name", name)[0] == 0
    assert [line.split()[0] for line in findling("snapshot", "list")[1].splitlines()] == ["c", "b"]
    assert findling("snapshot", "drop", "b")[:2] == (0, "")
    assert [line.split()[0] for line in findling("snapshot", "list")[1].splitlines()] == ["c"]


def test_what_cannot_be_done_is_an_error(indexed: Path, findling: Findling) -> None:
    for args in (
        ("restore", "../../etc", "--yes"),
        ("drop", "nothing"),
        ("verify",),
        ("verify", "a", "--from", "b"),
        ("create", "--name", "a/b"),
        ("create", "--keep", "-1"),
        ("create", "--nonsense"),
    ):
        code, out, err = findling("snapshot", *args)
        assert (code, out) == (2, ""), args
        assert err.startswith("findling: ")
        assert "Traceback" not in err


def test_a_mistyped_workspace_is_an_error_and_not_made(indexed: Path, findling: Findling, tmp_path: Path) -> None:
    for args in (("restore", "nope", "--yes"), ("drop", "nope"), ("restore", "nope", "--check")):
        code, out, err = findling("snapshot", *args, "--workspace", "typo")
        assert (code, out) == (2, "")
        assert "there is no workspace" in err
    assert not (tmp_path / "workspaces" / "typo").exists()


def test_a_damaged_index_leads_back_to_a_snapshot(indexed: Path, findling: Findling, workspace: Path) -> None:
    findling("snapshot", "create", "--name", "one")
    connection = sqlite3.connect(workspace / "index.sqlite")
    connection.execute("DELETE FROM bodies")
    connection.commit()
    connection.close()
    code, out, err = findling("snapshot", "create")
    assert (code, out) == (2, "")
    assert "try: findling snapshot restore one" in err
    code, out, _ = findling("doctor")
    assert code == 1
    assert "try: findling snapshot restore one" in out
    code, _, err = findling("snapshot", "restore", "one", "--yes")
    assert code == 0
    assert "damaged-before-restore-" in err
    assert "store was damaged" in findling("snapshot", "list")[1]
    assert findling("doctor")[0] == 0
