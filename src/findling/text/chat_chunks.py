"""Chunks of a chat: whole messages, filed under who speaks and when; a long silence begins a new one."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

from findling.domain.resources import Piece
from findling.text.chat_messages import Message, read_messages
from findling.text.measures import Measure
from findling.text.windows import trim, windows

__all__ = ["chunk_chat"]


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
        start = messages[first].start if first else 0
        span = trim(text, start, messages[last].end)
        spans = [span] if last > first else windows(text, *span, measure.size, fit=measure.fit)
        heading = _heading(messages[first : last + 1])
        pieces += [Piece(*span, heading) for span in spans if span[0] < span[1]]
        first = last + 1
    return pieces


_SILENCE = timedelta(minutes=60)
_SHOWN_AUTHORS = 3
_MAX_STEP = 120


def _last_of_window(text: str, messages: Sequence[Message], first: int, measure: Measure) -> int:
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


def _is_silence(before: Message, after: Message) -> bool:
    if before.time is None or after.time is None:
        return False
    pause = after.time - before.time
    if not after.dated:
        pause %= timedelta(days=1)
    return pause > _SILENCE


def _heading(messages: Sequence[Message]) -> tuple[str, ...]:
    authors = list(dict.fromkeys(message.author for message in messages if message.author))
    shown = [*authors[:_SHOWN_AUTHORS], *(["…"] if len(authors) > _SHOWN_AUTHORS else [])]
    people = ", ".join(shown)
    if len(people) > _MAX_STEP:
        people = people[: _MAX_STEP - 1] + "…"
    return tuple(step for step in (people, _time_span(messages)) if step)


def _time_span(messages: Sequence[Message]) -> str:
    timed = [message for message in messages if message.time is not None]
    if not timed:
        return ""
    first, last = timed[0], timed[-1]
    begin, end = _clock(first, with_day=first.dated), _clock(last, with_day=last.dated and not _same_day(first, last))
    return begin if _clock(first, with_day=True) == _clock(last, with_day=True) else f"{begin} – {end}"


def _same_day(first: Message, last: Message) -> bool:
    return first.time is not None and last.time is not None and first.time.date() == last.time.date()


def _clock(message: Message, *, with_day: bool) -> str:
    return f"{message.time:%Y-%m-%d %H:%M}" if with_day else f"{message.time:%H:%M}"
