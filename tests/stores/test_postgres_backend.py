"""The backend in PostgreSQL keeps the contract."""

from __future__ import annotations

from pathlib import Path
from tempfile import mkdtemp

import pytest

from findling.testing.backend import BackendSuite
from tests.postgres_servers import PostgresServer


class TestPostgresBackend(BackendSuite):
    @pytest.fixture(autouse=True)
    def _place(self, tmp_path: Path, postgres: PostgresServer) -> None:
        self.tmp, self.server = tmp_path, postgres

    def make_place(self) -> str:
        return self.server.place()

    def make_folder(self) -> Path:
        return Path(mkdtemp(dir=self.tmp))


class TestPostgresBackendBehindAPooler(TestPostgresBackend):
    """Nothing needs a session: neither locks, nor settings, nor prepared statements."""

    def make_place(self) -> str:
        return self.server.place().replace("#", "?pooler=transaction#")
