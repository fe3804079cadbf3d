"""The manifest of a workspace: written whole, private, kept up to date, and read with care."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path
from typing import Any

import pytest

from findling.domain.errors import FormatError, ManifestError, ReadOnlyError
from findling.service.index.model_choice import instant_embedder
from findling.service.settings.settings import Settings
from findling.service.workspace.manifest import (
    MANIFEST_FILE,
    Manifest,
    Model,
    model_of,
    preprocessing_of,
    quota_of,
    read_manifest,
    write_manifest,
)
from findling.service.workspace.quotas import Quota
from tests.memory_store import MemoryStore


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "team"
    made.mkdir()
    return made


def document(folder: Path) -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads((folder / MANIFEST_FILE).read_text(encoding="utf-8"))
    return loaded


def test_a_new_manifest_says_all_there_is_to_say(folder: Path) -> None:
    write_manifest(folder, root="/home/me/notes")
    written = document(folder)
    assert list(written) == [
        "schemaVersion", "name", "root", "model", "preprocessing", "createdAt", "shared", "quota", "sum",
    ]  # fmt: skip
    assert (written["schemaVersion"], written["name"], written["root"]) == ("1.0", "team", "/home/me/notes")
    assert (written["shared"], written["quota"], written["model"]) == (False, None, None)
    assert written["createdAt"].endswith("Z")


def test_a_folder_that_is_no_name_gives_none(tmp_path: Path) -> None:
    folder = tmp_path / ".findling"
    folder.mkdir()
    assert write_manifest(folder).name == ""


@pytest.mark.skipif(os.name == "nt", reason="modes of POSIX")
def test_only_the_owner_may_read_it_and_no_draft_stays(folder: Path) -> None:
    (folder / f".{MANIFEST_FILE}.new").write_text("half of a draft that a killed process has left")
    write_manifest(folder)
    assert stat.S_IMODE((folder / MANIFEST_FILE).stat().st_mode) == 0o600
    assert [path.name for path in folder.iterdir()] == [MANIFEST_FILE]


def test_what_is_not_named_stays(folder: Path) -> None:
    first = write_manifest(folder, shared=True, quota=Quota(text=5))
    settings = Settings().override({"chunk.preset": "nexus"}, "test")
    second = write_manifest(folder, preprocessing=preprocessing_of(settings), model=Model("minilm", 384))
    assert (second.shared, second.quota, second.created_at) == (True, Quota(text=5), first.created_at)
    assert read_manifest(folder) == second
    assert document(folder)["model"] == {"name": "minilm", "dim": 384, "normalize": True}
    assert document(folder)["preprocessing"]["chunker"] == "nexus"


def test_an_unchanged_manifest_is_not_written_again(folder: Path) -> None:
    write_manifest(folder, root="/a")
    before = (folder / MANIFEST_FILE).stat()
    write_manifest(folder, root="/a")
    assert (folder / MANIFEST_FILE).stat().st_ino == before.st_ino
    write_manifest(folder, root="/b")
    assert (folder / MANIFEST_FILE).stat().st_ino != before.st_ino


def test_an_older_workspace_has_none_and_still_gets_one(folder: Path) -> None:
    assert read_manifest(folder) is None
    assert quota_of(folder, Settings(), MemoryStore()) == Quota()
    write_manifest(folder)
    assert isinstance(read_manifest(folder), Manifest)


def test_a_newer_minor_version_is_read_and_its_keys_are_kept(folder: Path) -> None:
    write_manifest(folder)
    newer = {**document(folder), "schemaVersion": "1.7", "colour": "green"}
    del newer["sum"]
    (folder / MANIFEST_FILE).write_text(json.dumps(newer))
    write_manifest(folder, shared=True)
    assert document(folder)["colour"] == "green"
    assert document(folder)["shared"] is True


def test_one_character_that_is_another_one_is_noticed(folder: Path) -> None:
    write_manifest(folder, root="/home/me/notes")
    text = (folder / MANIFEST_FILE).read_text()
    (folder / MANIFEST_FILE).write_text(text.replace("notes", "nodes"))
    with pytest.raises(ManifestError, match="not what was written") as told:
        read_manifest(folder)
    assert told.value.hint.startswith("findling doctor --repair")


def test_an_unknown_major_version_is_named(folder: Path) -> None:
    (folder / MANIFEST_FILE).write_text('{"schemaVersion": "2.0"}')
    with pytest.raises(FormatError, match=r"schemaVersion 2\.0"):
        read_manifest(folder)
    with pytest.raises(FormatError):
        write_manifest(folder, shared=True)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{}",
        "\udc80",
        '{"schemaVersion": 1}',
        '{"schemaVersion": "1.0", "shared": "yes"}',
        '{"schemaVersion": "1.0", "root": 5}',
        '{"schemaVersion": "1.0", "name": "../up"}',
        '{"schemaVersion": "1.0", "quota": {"text": -1}}',
        '{"schemaVersion": "1.0", "quota": {"text": true}}',
        '{"schemaVersion": "1.0", "quota": 5}',
        '{"schemaVersion": "1.0", "model": {"name": "m"}}',
        '{"schemaVersion": "1.0", "model": {"name": "m", "dim": "384"}}',
    ],
)
def test_a_damaged_manifest_says_so(folder: Path, text: str) -> None:
    (folder / MANIFEST_FILE).write_bytes(text.encode("utf-8", "surrogateescape"))
    with pytest.raises(ManifestError, match=r"manifest\.json is damaged"):
        read_manifest(folder)


def test_its_own_quota_wins_over_that_of_the_settings(folder: Path) -> None:
    write_manifest(folder, quota=Quota(resources=3))
    assert quota_of(folder, Settings(), MemoryStore()) == Quota(resources=3)


def test_a_model_counts_when_the_length_of_its_vectors_is_known() -> None:
    assert model_of(None) is None
    instant = instant_embedder()
    assert model_of(instant) == Model(instant.name, instant.dimensions)


@pytest.mark.skipif(os.name == "nt" or os.geteuid() == 0, reason="root passes over permissions")
def test_a_folder_that_cannot_be_written_says_so(folder: Path) -> None:
    folder.chmod(0o500)
    try:
        with pytest.raises(ReadOnlyError):
            write_manifest(folder)
    finally:
        folder.chmod(0o700)
