"""The plugin `findling-supabase`: a workspace behind a real pooler in transaction mode."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import mkdtemp

import pytest

from findling.domain.errors import InvalidValueError
from findling.service.workspace.backends import open_backend
from findling.stores.postgres.backend import PostgresBackend
from findling.testing.backend import BackendSuite
from tests.counts import tries
from tests.forks import run_findling
from tests.poolers import pooled, why_no_pooler
from tests.postgres_servers import PostgresServer

places = pytest.importorskip("findling_supabase.places", reason="pip install --editable plugins/findling-supabase")


def test_a_url_goes_through_the_pooler(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PGSSLMODE", raising=False)
    url = places.postgres_url
    far = "postgresql://postgres.x@pooler.example:6543/postgres?pooler=transaction&sslmode=require#team"
    assert url("supabase://postgres.x@pooler.example/postgres#team") == far
    assert url("supabase://postgres.x@pooler.example#team") == far
    near = "postgresql://u:p%40@127.0.0.1:5/d?sslmode=disable&pooler=transaction#w"
    assert url("supabase://u:p%40@127.0.0.1:5/d?sslmode=disable#w") == near
    for wrong in ("supabase:", "supabase:///x", "supabase://u:hush@[x/y#z", "supabase://u:hush@h:port/y#z"):
        with pytest.raises(InvalidValueError) as caught:
            url(wrong)
        assert "hush" not in str(caught.value)


def test_the_scheme_opens_a_place_in_postgresql(tmp_path: Path) -> None:
    assert isinstance(open_backend("supabase://postgres.x@pooler.example#team", tmp_path), PostgresBackend)


pytest_pooler = pytest.mark.skipif(bool(why_no_pooler()), reason=why_no_pooler())


@pytest.fixture(scope="module")
def pooler(postgres: PostgresServer) -> Iterator[Callable[[], str]]:
    """A function that gives the URL of a workspace behind a pooler."""
    with pooled(postgres, connections=20) as url:

        def place() -> str:
            workspace = postgres.place("supabase").partition("#")[2]
            return f"{url.replace('postgresql:', 'supabase:')}#{workspace}"

        yield place


class Pooled:
    """Places behind the pooler."""

    @pytest.fixture(autouse=True)
    def _room(self, tmp_path: Path, pooler: Callable[[], str]) -> None:
        self.folder, self.new_place = tmp_path, pooler

    def make_place(self) -> str:
        return self.new_place()

    def make_folder(self) -> Path:
        return Path(mkdtemp(dir=self.folder))


@pytest_pooler
class TestSupabaseBackend(Pooled, BackendSuite):
    """Its store is the one of `tests/stores/test_postgres_pooler.py`, which passes the suite of stores there."""

    worlds = tries(3, short=1)


@pytest_pooler
def test_nobody_listens_behind_a_pooler(tmp_path: Path, pooler: Callable[[], str]) -> None:
    backend = open_backend(pooler(), tmp_path)
    backend.create_store()
    assert backend.listen() is None


@pytest_pooler
def test_a_team_searches_through_the_pooler(tmp_path: Path, pooler: Callable[[], str]) -> None:
    place = pooler().replace("postgres@", "postgres:hush@")
    (tmp_path / "tree").mkdir()
    (tmp_path / "tree" / "harbour.md").write_text("# Harbour\n\nThe ferry leaves at nine.\n")

    def findling(host: str, *words: str) -> str:
        own = {"FINDLING_HOME": str(tmp_path / host), "FINDLING_CONFIG": str(tmp_path / "none.toml")}
        kept = {name: value for name, value in os.environ.items() if not name.startswith("FINDLING_")}
        environment = {**kept, **own, "FINDLING_SEARCH_MODE": "keyword", "FINDLING_SERVE_AUTO": "never"}
        environment["FINDLING_SEMANTIC_REFINE"] = "never"
        run = run_findling(*words, cwd=tmp_path, env=environment)
        assert run.returncode == 0, run.stdout + run.stderr
        assert "hush" not in run.stdout + run.stderr
        return run.stdout

    findling("one", "workspaces", "create", "team", "--root", str(tmp_path / "tree"), "--place", place)
    findling("one", "index", "--workspace", "team")
    findling("two", "workspaces", "create", "team", "--place", place)
    assert "harbour.md:3" in findling("two", "ferry at nine", "--workspace", "team")
    assert "team" in findling("two", "workspaces", "list")
    assert "server" in findling("two", "doctor", "--workspace", "team")
