"""Dates in queries: days, months, moments, `yesterday` and `7d`, all in local time."""

from __future__ import annotations

import re
import time
from calendar import monthrange
from datetime import datetime, timedelta

from findling.domain.queries import Range


def changed(name: str, value: str, now: float | None = None) -> Range | None:
    """Range of changes `before`, `after` or within (`date`) the named period; `None` for an unknown period."""
    try:
        if name == "date":
            return _dates(value.lower(), now)
        period = _period(value.lower(), now)
    except (OverflowError, ValueError, OSError):
        return None  # no such day, or one too far away to be reckoned with
    if period is None:
        return None
    return Range(before=period[0]) if name == "before" else Range(after=period[0])


def moment(seconds: float) -> str:
    """A moment as `after:` and `before:` read it back: the local day that begins then, or the time with its offset."""
    at = datetime.fromtimestamp(min(max(seconds, _FIRST), _LAST))
    day = datetime(at.year, at.month, at.day)
    return day.date().isoformat() if day.timestamp() == seconds else at.astimezone().isoformat()


_FIRST, _LAST = -62_000_000_000, 253_000_000_000
"""Seconds of the years 5 and 9987: what lies beyond has no name in the calendar."""

_DAY = re.compile(r"([1-9][0-9]{3})(?:-([0-9]{1,2})(?:-([0-9]{1,2}))?)?")
_TIME = re.compile(
    r"([1-9][0-9]{3}-[0-9]{2}-[0-9]{2})[Tt ]([0-9]{2}(?::[0-9]{2}(?::[0-9]{2}(?:\.[0-9]{1,6})?)?)?)"
    r"([Zz]|[+-][0-9]{2}:?[0-9]{2}(?::[0-9]{2})?)?"
)
_AGO = re.compile(r"([0-9]{1,6})([hdwmy])")
_LAST_YEAR = 9990


def _dates(value: str, now: float | None) -> Range | None:
    """Range of a period, or from the beginning of one to the end of another; `7d` alone lasts until now."""
    first, dots, last = value.partition("..")
    if not dots:
        period = _period(first, now)
        return None if period is None else Range(period[0], None if _AGO.fullmatch(first) else period[1])
    begin, end = _period(first, now), _period(last, now)
    if (first and begin is None) or (last and end is None) or not (first or last):
        return None
    if begin and end and begin[0] > end[1]:
        begin, end = end, begin
    return Range(begin[0] if begin else None, end[1] if end else None)


def _period(value: str, now: float | None) -> tuple[float, float] | None:
    """Beginning and end of a named period.

    Raises `ValueError`, `OverflowError` or `OSError` for one that the calendar does not have.
    """
    if day := _DAY.fullmatch(value):
        return _calendar_period(*(int(part) if part else 0 for part in day.groups()))
    if moment_ := _TIME.fullmatch(value):
        return _clock_period(*moment_.groups(default=""))
    ago = _AGO.fullmatch(value)
    if not ago and value not in ("today", "yesterday"):
        return None
    count, unit = (int(ago.group(1)), ago.group(2)) if ago else (int(value == "yesterday"), "d")
    return _past_period(count, unit, now)


def _calendar_period(year: int, month: int, day: int) -> tuple[float, float]:
    if year > _LAST_YEAR:
        raise OverflowError(year)
    begin = datetime(year, month or 1, day or 1)
    next_month = datetime(year + (month in (0, 12)), month % 12 + 1 if month else 1, 1)
    return begin.timestamp(), (begin + timedelta(days=1) if day else next_month).timestamp()


def _clock_period(day: str, clock: str, offset: str) -> tuple[float, float]:
    if int(day[:4]) > _LAST_YEAR:
        raise OverflowError(day)
    begin = datetime.fromisoformat(f"{day}T{clock if ':' in clock else clock + ':00'}{offset.upper()}").timestamp()
    return begin, begin + {0: 3600, 1: 60}.get(clock.count(":"), 1)


def _past_period(count: int, unit: str, now: float | None) -> tuple[float, float]:
    """The hour that began so many hours ago, or the day so many days, weeks, months or years ago."""
    seconds = time.time() if now is None else now
    if unit == "h":
        begin = float(seconds // 1 - 3600 * count)
        _check(datetime.fromtimestamp(begin))
        return begin, begin + 3600
    today = datetime.fromtimestamp(seconds).replace(hour=0, minute=0, second=0, microsecond=0, fold=0)
    if unit in "dw":
        day = today - timedelta(days=count * (7 if unit == "w" else 1))
    else:
        months = today.year * 12 + today.month - 1 - count * (12 if unit == "y" else 1)
        year, month = months // 12, months % 12 + 1
        day = today.replace(year=year, month=month, day=min(today.day, monthrange(year, month)[1]))
    _check(day)
    return day.timestamp(), (day + timedelta(days=1)).timestamp()


def _check(day: datetime) -> None:
    if not 1000 <= day.year <= _LAST_YEAR:
        raise OverflowError(day.year)
