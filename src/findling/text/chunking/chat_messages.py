"""The messages of a chat written down as text, as messengers export it and people paste it.

A message begins on a line with a time and an author, or an author alone where no line has a time; the lines up to the
next one belong to it. `[2024-01-02 10:00] Ann: hi`, `2024-01-02T10:00:00Z Ann: hi`, `02.01.24, 10:00 - Ann: hi`,
`1/2/24, 10:00 AM - Ann: hi`, `[10:00] <ann> hi`, `<ann> hi`, `Ann: hi`.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, NamedTuple

from findling.domain.resources import Piece
from findling.text.analysis.stemming import is_function_word, listed
from findling.text.chunking.measures import Measure
from findling.text.chunking.windows import trim, windows

if TYPE_CHECKING:
    from findling.text.chunking.windows import Span


def chunk_chat(text: str, measure: Measure) -> list[Piece]:
    """Windows of whole messages; only a message that is larger than a piece is cut.

    The heading path holds the participants and the time span. A text without messages is cut like any other.
    """
    messages = read_messages(text)
    if not messages:
        return [Piece(*span) for span in windows(text, 0, len(text), measure.size, fit=measure.fit)]
    pieces: list[Piece] = []
    first = 0
    while first < len(messages):
        last = _last_of_window(text, messages, first, measure)
        span = trim(text, messages[first].start if first else 0, messages[last].end)
        spans = [span] if last > first else windows(text, *span, measure.size, fit=measure.fit)
        heading = _heading(messages[first : last + 1])
        pieces += [Piece(*span, heading) for span in spans if span[0] < span[1]]
        first = last + 1
    return pieces


_SILENCE = timedelta(minutes=60)
_SHOWN_AUTHORS = 3
_MAX_STEP = 120


def _last_of_window(text: str, messages: Sequence[WrittenMessage], first: int, measure: Measure) -> int:
    """The last message of the window; silence ends it unless it is so small that it says little on its own."""
    start = messages[first].start if first else 0
    limit = measure.fit(text, start, min(start + measure.size, len(text)))
    last = first
    while last + 1 < len(messages) and messages[last + 1].end <= limit:
        small = messages[last].end - start < measure.size // 8
        if not small and _is_silence(messages[last], messages[last + 1]):
            break
        last += 1
    return last


def _is_silence(before: WrittenMessage, after: WrittenMessage) -> bool:
    if before.time is None or after.time is None:
        return False
    pause = after.time - before.time
    if not after.dated:
        pause %= timedelta(days=1)
    return pause > _SILENCE


def _heading(messages: Sequence[WrittenMessage]) -> tuple[str, ...]:
    authors = list(dict.fromkeys(message.author for message in messages if message.author))
    shown = [*authors[:_SHOWN_AUTHORS], *(["…"] if len(authors) > _SHOWN_AUTHORS else [])]
    people = ", ".join(shown)
    if len(people) > _MAX_STEP:
        people = people[: _MAX_STEP - 1] + "…"
    return tuple(step for step in (people, _time_span(messages)) if step)


def _time_span(messages: Sequence[WrittenMessage]) -> str:
    timed = [message for message in messages if message.time is not None]
    if not timed:
        return ""
    first, last = timed[0], timed[-1]
    begin, end = _clock(first, with_day=first.dated), _clock(last, with_day=last.dated and not _same_day(first, last))
    return begin if _clock(first, with_day=True) == _clock(last, with_day=True) else f"{begin} – {end}"


def _same_day(first: WrittenMessage, last: WrittenMessage) -> bool:
    return first.time is not None and last.time is not None and first.time.date() == last.time.date()


def _clock(message: WrittenMessage, *, with_day: bool) -> str:
    return f"{message.time:%Y-%m-%d %H:%M}" if with_day else f"{message.time:%H:%M}"


class WrittenMessage(NamedTuple):
    """One message up to the start of the next; an undated time lies on the first day of the calendar."""

    start: int
    end: int
    author: str
    time: datetime | None = None
    dated: bool = False


def read_messages(text: str) -> list[WrittenMessage]:
    """The messages in order; empty when nothing in the text looks like one. Lines end with `\\n`."""
    found = list(_TIMED.finditer(text)) or list(_UNTIMED.finditer(text))
    if not found:
        return []
    month_first = _is_month_first(found)
    ends = [*(match.start() for match in found[1:]), len(text)]
    messages = []
    for match, end in zip(found, ends, strict=True):
        author = " ".join((match["nick"] or match["name"] or "").split())
        parts = match.groupdict()
        time = _time(parts, month_first) if parts.get("hour") else None
        messages.append(WrittenMessage(match.start(), end, author, time, bool(parts.get("year") or parts.get("third"))))
    return messages


def speakers_of(text: str) -> list[str]:
    """The people who said a passage, in order; empty where it does not begin with a message."""
    messages = read_messages(text[:_SPOKEN])
    if not messages or messages[0].start:
        return []
    return [name for name in dict.fromkeys(message.author for message in messages) if name.lower() not in _LABELS]


def names_in(text: str) -> set[str]:
    """The words of a text in lower case; `JakeWatson` has two."""
    return {name.lower() for name in _WORD.findall(_CAMEL.sub(" ", text))}


def people_in(question: str) -> set[str]:
    """The words of a question that may name somebody: `Will` does, but not `will` or the first word of a question."""
    words = [(names_in(word), word.islower() or not at) for at, word in enumerate(question.split())]
    return {name for names, is_small in words for name in names if not (is_small and is_function_word(name))}


def said_by_others(text: str, asked: Collection[str]) -> tuple[list[Span], set[str]]:
    """The places of what others have said than the people with these names, and which names these are.

    Both are empty for a passage in which none of them speaks.
    """
    messages = read_messages(text[:_SPOKEN])
    names = [names_in(message.author).intersection(asked) for message in messages]
    others = [(message.start, message.end) for message, own in zip(messages, names, strict=True) if not own]
    return (others, set().union(*names)) if any(names) else ([], set())


_WORD = re.compile(r"[^\W\d_]{2,}")
_CAMEL = re.compile(r"(?<=[^\W\d_A-Z])(?=[A-Z])")

_SPOKEN = 4_000
"""Characters of a passage that are looked at for its speakers."""

_LABELS = listed("labels")
"""Words before a colon that are no speakers."""

_AUTHOR = r"(?:<[@+%~& ]?(?P<nick>[^<>\n]{1,64})>[ \t]|(?P<name>[^\s:<>\[\]][^:\n<>\[\]]{0,63}):(?=\s|\Z))"
_DATE = (
    r"(?:(?P<year>\d{4})[-/.](?P<month>\d{1,2})[-/.](?P<day>\d{1,2})"
    r"|(?P<first>\d{1,2})(?P<mark>[./-])(?P<second>\d{1,2})[./-](?P<third>\d{4}|\d{2}))"
)
_CLOCK = (
    r"(?P<hour>[01]?\d|2[0-3])[:.](?P<minute>[0-5]\d)(?:[:.][0-5]\d(?:[.,]\d{1,6})?)?"
    r"(?:[ \u00a0\u202f]?(?P<half>[AaPp])\.?[Mm]\.?)?(?:Z|[+-]\d{2}:?\d{2})?"
)
_TIMED = re.compile(
    rf"^[\u200e\u200f]?[\[(]?(?:{_DATE}(?:T|,?[ \t_]{{1,2}}))?{_CLOCK}[\])]?(?:[ \t]*[-–—][ \t]*|[ \t]+){_AUTHOR}",
    re.MULTILINE,
)
_UNTIMED = re.compile(
    r"^(?:<[@+%~& ]?(?P<nick>[^<>\n]{1,64})>[ \t]|(?P<name>[^\W_][\w.'’@-]*(?:[ \t][\w.'’@()-]+){0,3}):(?=\s|\Z))",
    re.MULTILINE,
)


def _is_month_first(found: Sequence[re.Match[str]]) -> bool:
    """Order of day and month in `1/2/24`: a number above twelve decides, else the twelve-hour clock beside slashes."""
    dates = [parts for parts in (match.groupdict() for match in found) if parts.get("third")]
    if any(int(parts["first"]) > 12 for parts in dates):
        return False
    if any(int(parts["second"]) > 12 for parts in dates):
        return True
    return any(parts["mark"] == "/" and parts["half"] for parts in dates)


def _time(parts: dict[str, str], month_first: bool) -> datetime | None:
    hour, half = int(parts["hour"]), (parts["half"] or "").lower()
    if half:
        hour = hour % 12 + (12 if half == "p" else 0)
    year, month, day = 1, 1, 1
    if parts["year"]:
        year, month, day = int(parts["year"]), int(parts["month"]), int(parts["day"])
    elif parts["third"]:
        first, second = int(parts["first"]), int(parts["second"])
        month, day = (first, second) if month_first else (second, first)
        year = int(parts["third"]) + (2000 if len(parts["third"]) == 2 else 0)
    try:
        return datetime(year, month, day, hour, int(parts["minute"]))
    except ValueError:  # the 31st of June: the message has no time
        return None
