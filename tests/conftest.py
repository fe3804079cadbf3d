"""Settings of every run of the tests."""

from __future__ import annotations

import gc
import shutil
from collections.abc import Generator, Iterator
from contextlib import ExitStack
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings

from findling.models.local import onnx_session as local_model
from tests.counts import tries
from tests.memory_disk import memory_folder
from tests.postgres_template import shared_template
from tests.processes import hear_signals

if TYPE_CHECKING:
    from tests.postgres_servers import PostgresServer

pytest_plugins = ("tests.workers",)

# No test fails because other work takes the processor for a while.
settings.register_profile(
    "unhurried", deadline=None, max_examples=tries(100, short=30), suppress_health_check=[HealthCheck.too_slow]
)


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    hear_signals()
    # A run of several workers; one alone leaves its folders on the disk to look at.
    if config.getoption("--workers") and not config.option.basetemp and (folder := memory_folder()):
        config.option.basetemp = str(folder)
        config.add_cleanup(lambda: shutil.rmtree(folder, ignore_errors=True))
    template = ExitStack()
    template.enter_context(shared_template())  # workers inherit it
    config.add_cleanup(template.close)
    settings.load_profile("unhurried")
    # A model that was opened stays open: 0.2 s for each of some hundred engines.
    local_model._OPEN = {}  # type: ignore[assignment]


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Look for no garbage among 700,000 objects of 11,000 tests: 0.5 s each time, and they stay to the end."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.collect()
        gc.freeze()
        gc.enable()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with the longest test, 25 s: all other workers would wait for it in the end."""
    items.sort(key=lambda item: item.path.name != "test_third_party_backend.py")


def pytest_make_parametrize_id(config: pytest.Config, val: object, argname: str) -> str | None:
    """Name a case by its parameter, not by its bytes: an archive holds the time, which differs between two workers."""
    return argname if isinstance(val, bytes) else None


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    """A server for all tests of this process; a test that kills one starts its own."""
    from tests.postgres_servers import PostgresServer

    server = PostgresServer()
    yield server
    server.close()
