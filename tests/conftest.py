"""Settings of every run of the tests."""

from __future__ import annotations

from hypothesis import HealthCheck, settings

from tests.processes import hear_signals

# A busy machine makes everything slow: 1.5 s for one list of words were seen beside a load of 18.
settings.register_profile("patient", deadline=None, suppress_health_check=[HealthCheck.too_slow])


def pytest_configure() -> None:
    hear_signals()
    settings.load_profile("patient")
