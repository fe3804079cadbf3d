"""Filters as people write them."""

from __future__ import annotations

from datetime import datetime

import pytest

from findling.domain.errors import InvalidValueError
from findling.domain.queries import Filters
from findling.service.settings.written_filters import read_moment, written_filters


def test_moments_are_dates_spans_or_numbers() -> None:
    assert read_moment("after", "1970-01-02T00:00:00+00:00") == 86400.0
    assert read_moment("after", "1700000000.5") == 1700000000.5
    assert read_moment("before", 5) == 5.0
    assert read_moment("after", None) is None
    assert read_moment("after", "") is None
    assert read_moment("before", "2026-01-31") == datetime(2026, 1, 31).timestamp()
    assert read_moment("after", "2026") == datetime(2026, 1, 1).timestamp()
    week = read_moment("after", "7d")
    assert week is not None
    assert 7 <= (datetime.now() - datetime.fromtimestamp(week)).total_seconds() / 86400 < 8.1


def test_extensions_and_folders_are_written_in_many_ways() -> None:
    made = written_filters(ext=["py", "*.PY,.md"], path=["docs/api/", "src"], type=["file"], author=["Ada"])
    assert made == Filters(ext=(".py", ".md"), path=("docs/api", "src"), type=("file",), author=("Ada",))
    assert written_filters(path=["docs", "."]) == Filters()


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"ext": ["py,,md"]}, "-e 'py,,md' names no extension"),
        ({"ext": ["py"], "not_ext": [".py", "md"]}, "-e and not_ext both name .py"),
        ({"path": ["/etc"]}, "path /etc does not lie in the searched folder"),
        ({"path": ["docs/../.."]}, "path docs/../.. does not lie in the searched folder"),
        ({"after": "soon"}, "after soon is no date"),
        ({"after": "nan"}, "after nan is no date"),
        ({"before": float("inf")}, "before inf is no date"),
        ({"after": "2026-02-01", "before": "2026-01-01"}, "nothing is after 2026-02-01 and before 2026-01-01"),
    ],
)
def test_what_does_not_fit_is_named(given: dict[str, object], told: str) -> None:
    with pytest.raises(InvalidValueError) as refused:
        written_filters(**given, called={"ext": "-e"})
    assert refused.value.message == told
    assert refused.value.hint
