"""The local backend keeps the contract, and places are found by their URLs."""

from __future__ import annotations

import os
from contextlib import closing
from pathlib import Path
from tempfile import mkdtemp

import pytest

from findling.domain.backends import KEYWORD, VECTORS, VectorTable
from findling.domain.errors import InvalidValueError, MissingExtraError
from findling.domain.ports import KeywordLeg, TruthStore
from findling.service.workspace.backends import is_same_place, open_backend, shown_url
from findling.service.workspace.workspace import PLACE_FILE, backend_at
from findling.stores.local.backend import LocalBackend
from findling.stores.local.legs import STORE_FILE
from findling.testing.backend import BackendSuite
from findling.testing.keyword_leg import KeywordLegSuite
from findling.testing.vector_table import VectorTableSuite
from tests.counts import tries
from tests.stores.test_sqlite_errors import someone_without_rights


class Local:
    @pytest.fixture(autouse=True)
    def _tmp(self, tmp_path: Path) -> None:
        self.tmp = tmp_path

    def make_folder(self) -> Path:
        return Path(mkdtemp(dir=self.tmp))

    def make_place(self) -> str:
        return self.make_folder().as_uri()

    def make_backend(self) -> LocalBackend:
        return LocalBackend(self.make_folder())

    def make_store(self) -> TruthStore:
        backend = self.make_backend()
        backend.create_store()
        return backend.open_store()

    def make_leg(self) -> KeywordLeg:
        leg: KeywordLeg = self.make_backend().legs[KEYWORD].open("test", "chunk")
        return leg

    def make_table(self, dimensions: int) -> VectorTable:
        table: VectorTable = self.make_backend().legs[VECTORS].open("test", "model", dimensions)
        return table


class TestLocalBackend(Local, BackendSuite):
    worlds = tries(3, short=1)


class TestLocalKeywordLeg(Local, KeywordLegSuite):
    pass


class TestLocalVectors(Local, VectorTableSuite):
    pass


@pytest.mark.skipif(os.name == "nt", reason="Windows keeps access lists, not modes")
def test_a_store_that_nobody_may_look_at_counts_as_the_one_that_was_opened(tmp_path: Path) -> None:
    backend, former = LocalBackend(tmp_path), tmp_path / "former"
    backend.create_store()
    with closing(backend.open_store()):
        tmp_path.chmod(0)
        try:
            with someone_without_rights():
                with pytest.raises(PermissionError):
                    (tmp_path / STORE_FILE).stat()
                assert not backend.is_replaced()
        finally:
            tmp_path.chmod(0o700)
        assert not backend.is_replaced()
        (tmp_path / STORE_FILE).rename(former)
        assert backend.is_replaced()
        (tmp_path / STORE_FILE).touch()
        assert backend.is_replaced()
        former.replace(tmp_path / STORE_FILE)
        assert not backend.is_replaced()


def test_a_path_and_its_url_are_the_same_place(tmp_path: Path) -> None:
    folder = tmp_path / "mit Leerzeichen+ü"
    for place in (folder, str(folder), folder.as_uri(), folder.as_uri().replace("file://", "file:")):
        backend = open_backend(place)
        assert isinstance(backend, LocalBackend)
        assert (backend.folder, backend.url) == (folder, folder.as_uri())


def test_a_scheme_that_nobody_serves_is_named_with_what_is_missing(tmp_path: Path) -> None:
    with pytest.raises(MissingExtraError) as caught:
        open_backend("elsewhere://somewhere/db#notes", tmp_path)
    assert "elsewhere:" in caught.value.message
    assert "findling.backends" in caught.value.hint
    assert "file" in caught.value.hint


@pytest.mark.parametrize("url", ["file://elsewhere/srv", "file:"])
def test_a_url_that_names_no_folder_here_is_refused(url: str) -> None:
    with pytest.raises(InvalidValueError):
        open_backend(url)


def test_a_project_cannot_send_us_to_a_place(tmp_path: Path) -> None:
    for name, is_followed in (("notes", True), (".findling", False)):
        folder = tmp_path / name
        folder.mkdir()
        (folder / PLACE_FILE).write_text((tmp_path / "elsewhere").as_uri())
        backend = backend_at(folder)
        assert isinstance(backend, LocalBackend)
        assert backend.folder == (tmp_path / "elsewhere" if is_followed else folder)


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("postgresql://ann:s3cret@db/x#y", "postgresql://ann@db/x#y"),
        ("postgresql://ann:s3/cr@et@db:5432,other/x#y", "postgresql://ann@db:5432,other/x#y"),
        ("postgresql://db/x?password=s3cret&sslmode=require#y", "postgresql://db/x?password=***&sslmode=require#y"),
        ("postgresql://db/x?user=ann&sslPassword=s3cret#y", "postgresql://db/x?user=ann&sslPassword=***#y"),
        ("postgresql://db:5432/x#y", "postgresql://db:5432/x#y"),
        ("file:///tmp/a:b@c", "file:///tmp/a:b@c"),
    ],
)
def test_a_password_is_not_shown(url: str, shown: str) -> None:
    assert shown_url(url) == shown


def test_a_place_is_the_same_whoever_connects() -> None:
    place = "postgresql://ann:old@db:5432/team#notes"
    for same in ("postgres://bob@DB/team?sslmode=require#notes", "postgresql://ann:new@db/team#notes"):
        assert is_same_place(place, same)
    for other in ("team#other", "team2#notes", "team?port=5433#notes"):
        assert not is_same_place(place, f"postgresql://ann:old@db:5432/{other}")
