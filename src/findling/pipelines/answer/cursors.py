"""Cursors: the place where an answer ended and the next one continues, also when the index has changed meanwhile.

A cursor holds the latest hits that were shown, the score of the last one, as it was shown, and how many there were:
nothing that its caller has not seen. So it can be made of an answer, too. It fits one question only.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import inf

from findling.domain.errors import InvalidValueError
from findling.domain.plans import Plan
from findling.domain.queries import SearchRequest
from findling.domain.results import Hit
from findling.domain.values import record
from findling.pipelines.answer.rankings import Ranked, group_of

_REMEMBERED = 12
"""Hits that a cursor knows: as long as one of them is there, the next page is exact. 156 characters in all."""


@record()
class Cursor:
    """The number of hits shown, the score of the last one, and the marks of the latest, last first.

    A mark stands for a hit: for its chunk or, in an answer that is grouped, for its group.
    """

    shown: int
    score: float
    marks: tuple[int, ...]


def read_cursor(request: SearchRequest) -> Cursor | None:
    """The cursor of a request, if it has one. Raises InvalidValueError for one of another question, or of none."""
    if not request.cursor:
        return None
    if request.offset:
        raise InvalidValueError("a cursor and an offset both say where to begin", hint="leave out one of them")
    # Here and below, not above: 7 ms that an answer of one page has no use for.
    import struct
    from base64 import urlsafe_b64decode

    try:
        packed = urlsafe_b64decode(request.cursor + "=" * (-len(request.cursor) % 4))
        score, count = struct.unpack_from(_POSITION, packed, _DIGEST_SIZE)
        start = _DIGEST_SIZE + struct.calcsize(_POSITION)
        marks = tuple([mark for (mark,) in struct.iter_unpack(_MARK, packed[start:])])
    except (ValueError, struct.error) as error:
        raise _foreign() from error
    if packed[:_DIGEST_SIZE] != _digest(request, packed[_DIGEST_SIZE:]):
        raise _foreign()
    return Cursor(count, score, marks)


def next_cursor(request: SearchRequest, page: Sequence[Ranked], before: Cursor | None = None) -> str:
    """The cursor behind a page, which must not be empty; `before` is the cursor of the page itself."""
    by = (request.plan or Plan()).group
    return _written(request, [_mark(entry, by) for entry in page], _shown(page[-1]), before)


def cursor_after(request: SearchRequest, hits: Sequence[Hit], group: Callable[[Hit, str], str]) -> str:
    """The cursor behind the first hits of an answer, which may be none.

    `group` gives the group of a hit, as `group_of` does for its resource. The request has its plan. Raises
    InvalidValueError as `read_cursor` does.
    """
    by = (request.plan or Plan()).group
    marks = [int(hit.id, 16) if by == "none" else _group_mark(group(hit, by)) for hit in hits]
    return _written(request, marks, hits[-1].score if hits else inf, read_cursor(request))


def behind(cursor: Cursor, ranked: Sequence[Ranked], by: str, *, is_all: bool) -> list[Ranked] | None:
    """The entries of a ranking behind a cursor; `None` when more of the ranking is needed to tell.

    They follow the latest hit that is still there; without one, the score of the last hit, and among equals its rank.
    A hit that the cursor remembers does not come again.
    """
    marks = [_mark(entry, by) for entry in ranked]
    place_of = {mark: place for place, mark in enumerate(marks)}
    if not is_all and cursor.marks and cursor.marks[0] not in place_of:
        return None  # what was shown last may have sunk below what is here
    start = next((place_of[mark] + 1 for mark in cursor.marks if mark in place_of), None)
    if start is None:
        above = sum(_shown(entry) > cursor.score for entry in ranked)
        level = sum(_shown(entry) >= cursor.score for entry in ranked)
        start = min(max(cursor.shown - len(cursor.marks), above), level)
    shown = set(cursor.marks)
    return [entry for entry, mark in zip(ranked[start:], marks[start:], strict=True) if mark not in shown]


_DIGEST_SIZE = 8
_POSITION = ">dI"
_MARK = ">Q"


def _written(request: SearchRequest, marks: Sequence[int], score: float, before: Cursor | None) -> str:
    """The cursor behind a page, given the marks of its hits in their order and the score of the last one."""
    import struct
    from base64 import urlsafe_b64encode

    count = (before.shown if before else request.offset) + len(marks)
    latest = [*reversed(marks), *(before.marks if before else ())][:_REMEMBERED]
    position = struct.pack(f"{_POSITION}{len(latest)}Q", score, count, *latest)
    return urlsafe_b64encode(_digest(request, position) + position).decode().rstrip("=")


def _shown(entry: Ranked) -> float:
    """The score of an entry as its hit has it."""
    return round(entry.score, 4)


def _mark(entry: Ranked, by: str) -> int:
    return entry.stored.chunk.cid if by == "none" else _group_mark(group_of(entry.stored.resource, by))


def _group_mark(group: str) -> int:
    from hashlib import blake2b

    return int.from_bytes(blake2b(group.encode(), digest_size=8).digest(), "big")


def _digest(request: SearchRequest, position: bytes) -> bytes:
    """Of everything that decides the order of the hits, and of the position."""
    from hashlib import blake2b

    principals = None if request.principals is None else sorted(set(request.principals))
    knobs = _knobs_of(request.plan or Plan())
    question = f"({request.query!r}, {request.filters!r}, {knobs}, {principals!r}, {request.exclude_pattern!r})"
    return blake2b(question.encode("utf-8", "surrogatepass") + position, digest_size=_DIGEST_SIZE).digest()


def _knobs_of(plan: Plan) -> str:
    """All knobs of a plan in order, as text; that of the latest plan is remembered: most questions have its equal."""
    for known, text in _known:
        if known == plan:
            return text
    text = repr(sorted({**vars(plan), "weights": sorted(plan.weights.items())}.items()))
    _known[:] = [(plan, text)]
    return text


_known: list[tuple[Plan, str]] = []


def _foreign() -> InvalidValueError:
    return InvalidValueError(
        "the cursor is none of an answer to this question", hint="ask without it, from the first hit on"
    )
