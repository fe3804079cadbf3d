"""The times that documents write in many ways, as seconds since the epoch; `None` for one that nobody meant."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

__all__ = ["parse_iso_time", "parse_mail_time", "seconds_of", "windows_time"]


def parse_iso_time(text: str) -> float | None:
    """The time of an ISO 8601 text, of which months, days and hours may be missing."""
    text = text.strip()
    if _YEAR_OR_MONTH.fullmatch(text):
        text = (text + "-01-01")[: len("2000-01-01")]
    try:
        return seconds_of(datetime.fromisoformat(text))
    except ValueError:
        return None


def parse_mail_time(text: str) -> float | None:
    """The time of a text such as `Fri, 01 Mar 2024 10:00:00 +0100`, as mails and web servers write it."""
    try:
        return seconds_of(parsedate_to_datetime(text))
    except (IndexError, OverflowError, TypeError, ValueError):
        return None


def windows_time(ticks: int) -> float | None:
    """The time that Windows counts in tenths of microseconds since 1601."""
    seconds = ticks / 10_000_000 - 11_644_473_600
    return seconds if 0 < seconds < _YEAR_2200 else None


def seconds_of(moment: datetime) -> float | None:
    """The time of a moment, which is in UTC unless it says otherwise."""
    if moment.year <= _LAST_PLACEHOLDER_YEAR:
        return None
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()


_YEAR_OR_MONTH = re.compile(r"\d{4}(?:-\d\d)?")
_LAST_PLACEHOLDER_YEAR = 1601  # an unset time is the year 101 in some e-books and 1601 on Windows
_YEAR_2200 = 7_258_118_400
