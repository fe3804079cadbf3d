"""The set-up of suites for legs in a folder: a store and legs that are closed after each test."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Protocol, TypeVar

import pytest

from findling.domain.ports import TruthStore
from findling.stores.sqlite.store import SqliteStore


class _Closable(Protocol):
    def close(self) -> None: ...


_Opened = TypeVar("_Opened", bound=_Closable)


class LegsInFolder:
    """A part of a suite: stores of SQLite, and a folder for its legs."""

    @pytest.fixture(autouse=True)
    def _folder(self, tmp_path: Path) -> Iterator[None]:
        self.folder = tmp_path
        self._opened: list[_Closable] = []
        yield
        for one in self._opened:
            one.close()

    def make_store(self) -> TruthStore:
        return self.kept(SqliteStore.open(self.folder / "truth.db"))

    def kept(self, opened: _Opened) -> _Opened:
        """What was opened, to be closed after the test."""
        self._opened.append(opened)
        return opened
