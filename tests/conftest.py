"""Settings of every run of the tests."""

from __future__ import annotations

from tests.processes import hear_signals


def pytest_configure() -> None:
    hear_signals()
