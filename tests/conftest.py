"""Settings of every run of the tests."""

from __future__ import annotations

import pytest

from tests.processes import hear_signals


def pytest_configure() -> None:
    hear_signals()


def pytest_make_parametrize_id(config: pytest.Config, val: object, argname: str) -> str | None:
    """Name a case by its parameter, not by its bytes: an archive holds the time, which differs between two workers."""
    return argname if isinstance(val, bytes) else None
