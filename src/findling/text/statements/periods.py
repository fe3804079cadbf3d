"""Days and periods in plain words: `3 June 2026`, `last week`, `until Friday`, `seit Mai`, in local time."""

from __future__ import annotations

import re
from datetime import date, datetime, timedelta
from functools import cache
from pathlib import Path
from typing import NamedTuple

NEAREST, PAST, LATER = "nearest", "past", "later"
"""The year of a day without one: the nearest, the last that has begun, the next that has not ended."""


class Period(NamedTuple):
    """Whole days in seconds, from `begin` up to `end`; `start` and `stop` are its place in the text."""

    begin: float
    end: float
    start: int = 0
    stop: int = 0


class Validity(NamedTuple):
    """The time in which a statement holds, as it says itself, and the statement without it."""

    since: float | None
    until: float | None
    rest: str


WORDS = Path(__file__).with_name("data") / "statement-words.txt"
"""The data file of all words."""


@cache
def _tables() -> dict[str, list[str]]:
    lines = (line.partition(": ") for line in WORDS.read_text(encoding="utf-8").splitlines())
    return {name[1:]: listed.split(", ") for name, _, listed in lines if name[:1] == "%"}


@cache
def word_table(name: str) -> dict[str, str]:
    """Words of the data file, each with the name of its group; the last group of a word counts."""
    return {word: group.split()[0] for group in _tables()[name] for word in group.split()[1:]}


def alternatives(name: str) -> str:
    """Words and phrases of a line of the data file, as an expression that finds any of them."""
    return _any(_tables()[name])


def _numbered(name: str) -> dict[str, int]:
    return {word: int(number) for word, number in word_table(name).items()}


_MONTHS, _WEEKDAYS, _DAYS, _COUNTS, _TURNS = map(_numbered, ("month", "weekday", "day", "count", "turn"))
_UNITS = word_table("unit")


def _any(names: object) -> str:
    return "|".join(sorted(map(re.escape, names), key=len, reverse=True))  # type: ignore[call-overload]


_MONTH, _WEEKDAY, _UNIT = _any(_MONTHS), _any(_WEEKDAYS), _any(_UNITS)
_YEAR = r"(?:19|20)[0-9]{2}"
_FORMS = (
    rf"(?P<iso>{_YEAR}-[0-9]{{2}}(?:-[0-9]{{2}})?)(?![0-9-])",
    rf"(?P<dotted>[0-3]?[0-9]\.[01]?[0-9]\.(?:{_YEAR})?)(?![0-9])",
    rf"(?:the )?(?P<day>[0-3]?[0-9])(?:st|nd|rd|th|\.|er)? (?:of |de )?(?P<month>{_MONTH})\b\.?"
    rf"(?:,? (?:de )?(?P<year>{_YEAR}))?\b",
    rf"(?P<month2>{_MONTH})\b\.? (?P<day2>[0-3]?[0-9])(?:st|nd|rd|th)?(?![0-9:.]\d)(?:,? (?P<year2>{_YEAR}))?\b",
    rf"(?P<month3>{_MONTH})\b\.?(?: (?:of |de )?(?P<year3>{_YEAR}))?",
    rf"(?:the |la |le )?(?P<turn>{_any(_TURNS)}) (?P<what>{_UNIT}|{_WEEKDAY}|{_MONTH})\b",
    rf"(?:la |le )?(?P<what2>{_UNIT}) (?P<turn2>dernière|dernier|pasado|pasada|passée)\b",
    rf"(?P<count>[0-9]{{1,3}}|{_any(_COUNTS)}) (?P<unit>{_UNIT}) ago\b",
    rf"(?:vor|il y a|hace) (?P<count2>[0-9]{{1,3}}|{_any(_COUNTS)}) (?P<unit2>{_UNIT})\b",
    rf"(?P<name>{_any(_DAYS)})\b",
    rf"(?P<weekday>{_WEEKDAY})s?\b",
    rf"(?P<alone>{_YEAR})(?![0-9.,:-]\d|\d)",
)
_DATE = re.compile(rf"(?<![\w.:-])(?:{'|'.join(_FORMS)})", re.IGNORECASE)
_BEFORE_YEAR = re.compile(rf"\b(?:{alternatives('before year')}) $", re.IGNORECASE)
_BEFORE_MONTH = re.compile(rf"(?:^|\b)(?:{alternatives('before month')}) $", re.IGNORECASE)
_BEFORE_DAY = re.compile(rf"(?:^|,|\b(?:{alternatives('before day')}|\w+tag),?) ?$", re.IGNORECASE)
_CAPITAL_MAY = re.compile(r"\bmay\b|\bmar\b|\bmars\b")


def periods(text: str, now: float, year: str = NEAREST) -> list[Period]:
    """All days, weeks, months and years that a text names, in order."""
    found = []
    for match in _DATE.finditer(text):
        # "may" is a verb, "mars" a planet; the months begin with a capital, or say a day or a year.
        if _CAPITAL_MAY.fullmatch(match[0]) and not text.islower():
            continue
        if match["month3"] and not match["year3"] and not _BEFORE_MONTH.search(text, 0, match.start()):
            continue  # April and Jan are people, too
        if match["dotted"] and match[0][-1] == "." and not _BEFORE_DAY.search(text, 0, match.start()):
            continue  # Python 3.10 at the end of a sentence
        if match["alone"] and not _BEFORE_YEAR.search(text, 0, match.start()):
            continue  # a door code of four digits
        try:
            begin, end = _named(match, datetime.fromtimestamp(now).date(), year)
            found.append(Period(_seconds(begin), _seconds(end), *match.span()))
        except (ValueError, OverflowError, OSError):
            continue  # no such day
    return found


def read_day(text: str, now: float, year: str = NEAREST) -> Period | None:
    """The period that is the whole text, as an option names it: `2026-06-03`, `June 2026`, `Friday`."""
    from findling.text.query.dates import changed

    text = " ".join(text.split())
    exact = changed("date", text, now)
    if exact is not None and exact.after is not None and exact.before is not None:
        return Period(exact.after, exact.before, 0, len(text))
    found = periods(text, now, year)
    return found[0] if found and (found[0].start, found[0].stop) == (0, len(text)) else None


def shown_day(seconds: float, *, is_end: bool = False) -> str:
    """A moment as the day that begins with it, or with `is_end` the last one before it."""
    return datetime.fromtimestamp(seconds - is_end).date().isoformat()


_SINCE = r"since|starting(?: from)?|as of|as from|effective|from|seit|ab|depuis|à partir de|a partir de|desde"
_UNTIL = r"until|till|up to and including|through|bis(?: zum)?|jusqu'au|jusqu'à|jusqu'en|hasta"
_EDGE = re.compile(
    rf"[,;]?(?:(?<=\s)|^|(?<=[,;]))(?P<word>{_SINCE}|{_UNTIL}) (?:the |dem |den |le |el |am )?$", re.IGNORECASE
)
_ONWARDS = re.compile(r" ?(?:on|onwards?|forward|an)(?=[\s.,;!]|$)")


def validity(text: str, now: float) -> Validity:
    """The time that a statement names for itself with `since May` or `until Friday`, and the rest of its words.

    An end lasts to the end of the day, month or year that it names. Hours are no validity.
    """
    since = until = None
    cuts: list[tuple[int, int]] = []
    nearest, past, later = ({one.start: one for one in periods(text, now, year)} for year in (NEAREST, PAST, LATER))
    for one in nearest.values():
        before = _EDGE.search(text[: one.start])
        if before is None:
            continue
        word = before["word"].lower()
        named = text[one.start : one.stop]
        after = _ONWARDS.match(text, one.stop)
        is_end = re.fullmatch(_UNTIL, word, re.IGNORECASE) is not None
        if word == "from" and after is None and not _is_certain(named) and not _is_last_month(text, one):
            continue  # "from Monday to Friday" is a habit
        if is_end and until is None:
            until = later[one.start].end
        elif not is_end and since is None:
            since = (past if word in ("since", "seit", "depuis", "desde") else nearest)[one.start].begin
        else:
            continue
        cuts.append((before.start(), after.end() if after else one.stop))
    rest = text
    for start, stop in reversed(cuts):
        rest = f"{rest[:start]} {rest[stop:]}"
    rest = re.sub(r"\s+([,.;!?])", r"\1", " ".join(rest.split())).strip(" ,;")
    return Validity(since, until, rest) if any(map(str.isalnum, rest)) else Validity(since, until, text)


def _is_last_month(text: str, one: Period) -> bool:
    """Whether a statement ends with a month: `985 euros from January`."""
    return text[one.start : one.stop].lower().rstrip(".") in _MONTHS and not any(map(str.isalnum, text[one.stop :]))


def _is_certain(named: str) -> bool:
    """Whether a day says its year, or is told by the day of speaking."""
    return re.search(_YEAR, named) is not None or named.lower() in _DAYS


def _named(match: re.Match[str], today: date, year: str) -> tuple[date, date]:
    """First day and the day after the last. Raises ValueError and OverflowError for what the calendar lacks."""
    # A group that stands in several forms has a number behind its name in the further ones.
    got = {name.rstrip("23"): value for name, value in match.groupdict().items() if value}
    if "iso" in got:
        parts = [int(part) for part in got["iso"].split("-")]
        return _span(parts[0], parts[1], parts[2] if len(parts) > 2 else 0)
    if "dotted" in got:
        day, month, rest = got["dotted"].split(".")
        return _in_year(today, int(rest) if rest else 0, int(month), int(day), year)
    if named := got.get("month"):
        return _in_year(today, int(got.get("year", 0)), _MONTHS[named.lower()], int(got.get("day", 0)), year)
    if turn := got.get("turn"):
        return _turned(today, _TURNS.get(turn.lower(), -1), got["what"].lower())
    if count := got.get("count"):
        number = int(count) if count.isdecimal() else _COUNTS[count.lower()]
        unit = _UNITS[got["unit"].lower()]
        return _around(today - timedelta(_UNIT_DAYS[unit] * number), unit)
    if name := got.get("name"):
        return _around(today + timedelta(_DAYS[name.lower()]), "d")
    if weekday := got.get("weekday"):
        away = (_WEEKDAYS[weekday.lower()] - today.weekday()) % 7
        return _around(today + timedelta(away - 7 if year == PAST and away else away), "d")
    return _around(date(int(got["alone"]), 1, 1), "y")


_UNIT_DAYS = {"d": 1, "w": 7, "m": 30.44, "y": 365.25}


def _span(year: int, month: int, day: int = 0) -> tuple[date, date]:
    first = date(year, month, day or 1)
    return first, first + timedelta(1) if day else date(year + month // 12, month % 12 + 1, 1)


def _in_year(today: date, given: int, month: int, day: int, year: str) -> tuple[date, date]:
    """A day or month of a year that may have to be guessed."""
    if given:
        return _span(given, month, day)
    tries = [_span(today.year + offset, month, day) for offset in (-1, 0, 1)]
    if year == PAST:
        return max(one for one in tries if one[0] <= today)
    if year == LATER:
        return min(one for one in tries if one[1] > today)
    return min(tries, key=lambda one: abs((one[0] - today).days))


def _turned(today: date, turn: int, what: str) -> tuple[date, date]:
    """The last, this or next week, month, year, weekday or month of the year."""
    unit = _UNITS.get(what, "")
    if unit in ("d", "w"):
        return _around(today + timedelta(turn * _UNIT_DAYS[unit]), unit)
    if unit:
        months = today.year * 12 + today.month - 1 + turn * (12 if unit == "y" else 1)
        return _around(date(months // 12, months % 12 + 1, 1), unit)
    if what in _WEEKDAYS:
        away = (_WEEKDAYS[what] - today.weekday()) % 7
        return _around(today + timedelta(away - 7 if turn < 0 else away or 7 * turn), "d")
    return _in_year(today, 0, _MONTHS[what], 0, PAST if turn < 0 else LATER)


def _around(day: date, unit: str) -> tuple[date, date]:
    """The day itself, or the week, month or year that it lies in."""
    if unit in ("d", "w"):
        first = day - timedelta(day.weekday() if unit == "w" else 0)
        return first, first + timedelta(_UNIT_DAYS[unit])
    return _span(day.year, day.month) if unit == "m" else (date(day.year, 1, 1), date(day.year + 1, 1, 1))


def _seconds(day: date) -> float:
    return datetime(day.year, day.month, day.day).timestamp()
