"""The rules of memories: identity, fading importance, and the order of recall.

A memory is a resource of the type `memory`. Its importance falls by 5 % for every day since the last access, to no
less than 0.1. It multiplies the relevance by 0.84 to 1.2, and 0.5 leaves it alone.
"""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from typing import Any, NamedTuple

from findling.domain.errors import InvalidValueError
from findling.domain.permissions import check_visibility
from findling.domain.queries import HERE
from findling.domain.records import Access
from findling.domain.resources import Resource
from findling.domain.results import SCHEMA_VERSION, Degradation, Hit, Step, Suggestion
from findling.domain.values import as_dict, counted
from findling.pipelines.content.memory_history import Span, span_of, with_span
from findling.text.statements.periods import shown_day

MEMORY = "memory"
"""The type, and the beginning of an id."""

THRESHOLD = 0.7
"""Least `closeness` of a memory that has none of the words. Of 40 among 440 that are asked for in other words, MiniLM
finds 85 % without a threshold, 70 % with it, all first. Of 30 unrelated questions 20 % find something without it, 7 %
with it."""

_USUAL_IMPORTANCE = 0.5
_LEAST_IMPORTANCE = 0.1
_KEPT_A_DAY = 0.95

_LOWEST_FACTOR, _FACTOR_SPAN = 0.8, 0.4
LARGEST_FACTOR = _LOWEST_FACTOR + _FACTOR_SPAN
"""The factor of the greatest importance: 1.43 times that of the least one."""

_FULL = 8.0  # deviations above unrelated texts that count as full closeness, as for every search by meaning
_BEFORE = "accesses_before"
_LONGEST_ID = 200


@dataclass(frozen=True, kw_only=True)
class Memory:
    """A remembered text. `importance` is the one now, `importance_original` the first one.

    `last_accessed_at` is the time of the last recall, or else of remembering; `access_count` counts both, without the
    first time. It holds from `since` to `until`, where that is known. `outcome` is that of remembering: `new`, `known`,
    `changed`, or `updated` by a near copy; empty in other answers. `supersedes` is the memory whose place it takes,
    `conflicts` those that may not hold together with it, `undo` the command that takes back a decision of remembering.
    `workspace` holds it in a list of several workspaces; empty for the one that was asked. `here` is the folder that
    keeps it, `.` for the root; empty for one that is kept in none.
    """

    rid: str
    text: str
    importance: float
    importance_original: float
    tags: tuple[str, ...]
    author: str
    visibility: tuple[str, ...] | None
    created_at: float
    last_accessed_at: float
    access_count: int
    since: float | None = None
    until: float | None = None
    source: str = ""
    outcome: str = ""
    supersedes: str = ""
    conflicts: tuple[str, ...] = ()
    undo: str = ""
    workspace: str = ""
    here: str = ""

    @property
    def held(self) -> tuple[str, ...]:
        """Validity and source in words."""
        return _held(self.since, self.until, self.source)


@dataclass(frozen=True, kw_only=True)
class Recalled:
    """A memory that answers a query.

    The order follows `relevance`: the score of its best passage, the `hit`, times a factor for its importance. `score`
    is at most 1, as in the receipt of the hit. All figures are those before this recall.
    """

    rid: str
    text: str
    score: float
    relevance: float
    importance: float
    importance_original: float
    last_accessed_at: float
    access_count: int
    reasons: tuple[str, ...]
    hit: Hit
    since: float | None = None
    until: float | None = None
    source: str = ""

    @property
    def held(self) -> tuple[str, ...]:
        """Validity, source, and the memories before and after it in words."""
        receipt = self.hit.receipt
        chain = [f"supersedes {rid}" for rid in receipt.supersedes[:1]]
        chain += [f"superseded by {rid}" for rid in receipt.superseded_by[:1]]
        return (*_held(self.since, self.until, self.source), *chain)


@dataclass(frozen=True, kw_only=True)
class RecallAnswer:
    """Recalled memories, best first, and facts of the search; `is_counted` says whether accesses could be noted.

    `time` is the period that the question asks about, in words. `left_out` counts memories that no longer hold.
    """

    query: str
    memories: tuple[Recalled, ...] = ()
    strategy: str = ""
    degraded: tuple[Degradation, ...] = ()
    notes: tuple[str, ...] = ()
    did_you_mean: tuple[Suggestion, ...] = ()
    meaning: Mapping[str, Any] = field(default_factory=dict)
    is_counted: bool = True
    time: str = ""
    left_out: int = 0

    def __iter__(self) -> Iterator[Recalled]:
        return iter(self.memories)

    def __len__(self) -> int:
        return len(self.memories)

    def to_dict(self) -> dict[str, Any]:
        """The answer as plain JSON-ready values, with the schema version first."""
        return {"schema": SCHEMA_VERSION, **as_dict(self)}


class Wish(NamedTuple):
    """A text to remember. Without an `importance` a new memory gets 0.5 and a known one keeps its own.

    `here` is the folder that keeps it, `.` for the root.
    """

    text: str
    importance: float | None = None
    tags: Iterable[str] = ()
    author: str = ""
    visibility: Iterable[str] | None = None
    id: str = ""
    source: str = ""
    span: Span = Span()
    here: str = ""


def checked_wish(wish: Wish) -> Wish:
    """The wish, tidied. Raises InvalidValueError for a wrong type or value."""
    for what, value in (("text", wish.text), ("author", wish.author), ("id", wish.id), ("source", wish.source)):
        if not isinstance(value, str):
            raise InvalidValueError(f"{what} {value!r} is no text", hint="a str")
    text, importance = wish.text.strip(), wish.importance
    if not any(character.isprintable() and not character.isspace() for character in text):
        raise InvalidValueError("there is nothing to remember", hint='findling remember "some text"')
    if isinstance(importance, bool) or not isinstance(importance, (int, float, type(None))):
        raise InvalidValueError(f"importance {importance!r} is no number", hint="from 0 to 1; 0.5 is usual")
    if importance is not None and not 0 <= importance <= 1:
        raise InvalidValueError(f"importance {importance:g} is not between 0 and 1", hint="0.5 is usual")
    if wish.here.encode("utf-8", "replace").decode() != wish.here:
        raise InvalidValueError(f"the name of {wish.here} is not UTF-8", hint="rename the folder")
    name = wish.id.removeprefix(f"{MEMORY}:")
    if wish.id and (not name.isprintable() or len(name) > _LONGEST_ID or name.split() != [name]):
        raise InvalidValueError(f"{wish.id!r} is no id of a memory", hint="some letters without spaces, such as wifi")
    return wish._replace(
        text=text,
        tags=tuple(dict.fromkeys(tag.strip() for tag in _texts("tags", wish.tags) if tag.strip())),
        author=wish.author.strip(),
        source=" ".join(wish.source.split()),
        visibility=None if wish.visibility is None else check_visibility(_texts("visibility", wish.visibility)),
        id=name,
    )


def memory_rid(wish: Wish) -> str:
    """The id that a wish names, or one of its text, readers and folder: others must not learn of the memory."""
    if wish.id:
        return f"{MEMORY}:{wish.id}"
    seen_by = "" if wish.visibility is None else "\x1f".join(("seen by", *sorted(set(wish.visibility))))
    seen_by += f"\x1f{wish.here}" if wish.here not in ("", ".") else ""
    identity = f"{spelled(wish.text)}\x1e{seen_by}".encode("utf-8", "surrogatepass")
    return f"{MEMORY}:{blake2b(identity, digest_size=8, person=b'memory').hexdigest()}"


def spelled(text: str) -> str:
    """The text as it tells memories apart."""
    return " ".join(unicodedata.normalize("NFC", text).split())


def is_same_text(one: str, other: str) -> bool:
    """Whether two texts are one memory: but for spaces, line breaks, and whether letters are composed or not."""
    return spelled(one) == spelled(other)


def make_resource(wish: Wish, rid: str, now: float, *, accesses_before: int = 0) -> Resource:
    """The resource of a new memory; `accesses_before` are those of one of the same id that was forgotten since."""
    given = format(_USUAL_IMPORTANCE if wish.importance is None else wish.importance, "g")
    before = {_BEFORE: str(accesses_before)} if accesses_before else {}
    source = {"source": wish.source} if wish.source else {}
    source |= {HERE: wish.here} if wish.here else {}
    return Resource(
        rid=rid,
        type=MEMORY,
        author=wish.author,
        lang="text",
        tags=tuple(wish.tags),
        visibility=None if wish.visibility is None else tuple(wish.visibility),
        created_at=now,
        updated_at=now,
        fields=with_span({"importance": given, "importance_original": given, **before, **source}, wish.span),
    )


def renewed_resource(wish: Wish, known: Resource, now: float, *, is_same_text: bool) -> Resource:
    """The resource of a known memory with more tags and importance; another text has its own author and date."""
    given = format(max(_worth(known, "importance"), wish.importance or 0.0), "g")
    source = {"source": wish.source} if wish.source else {}
    former = span_of(known)
    if former.until is not None and former.until <= now:
        former = Span()  # it holds again
    span = Span(*(old if new is None else new for old, new in zip(former, wish.span, strict=True)))
    return replace(
        known,
        author=known.author or wish.author if is_same_text else wish.author or known.author,
        tags=tuple(dict.fromkeys((*known.tags, *wish.tags))),
        visibility=known.visibility if wish.visibility is None else tuple(wish.visibility),
        updated_at=known.updated_at if is_same_text else now,
        fields=with_span({**known.fields, "importance": given, **source}, span),
    )


def make_memory(resource: Resource, text: str, access: Access | None, now: float, outcome: str = "") -> Memory:
    """The memory of a resource and its accesses."""
    created_at = resource.created_at or 0.0
    since, until = span_of(resource)
    last_at = max(access.last_at if access else 0.0, resource.updated_at or 0.0, created_at)
    before = resource.fields.get(_BEFORE, "")
    return Memory(
        rid=resource.rid,
        text=text,
        importance=importance_now(_worth(resource, "importance"), last_at, now),
        importance_original=_worth(resource, "importance_original"),
        tags=resource.tags,
        author=resource.author,
        visibility=resource.visibility,
        created_at=created_at,
        last_accessed_at=last_at,
        access_count=max(access.count - int(before if before.isdecimal() else 0), 0) if access else 0,
        since=since,
        until=until,
        source=resource.fields.get("source", ""),
        outcome=outcome,
        supersedes=resource.fields.get("supersedes", ""),
        here=resource.fields.get(HERE, ""),
    )


def make_recalled(hit: Hit, memory: Memory, found_by: Sequence[str], now: float, timed: Step | None = None) -> Recalled:
    """The memory with its relevance and importance in its receipt, and with the time that was asked about."""
    factor = importance_factor(memory.importance)
    days = _days(memory.last_accessed_at, now)
    used = "today" if days < 1 else f"{counted(round(days), 'day')} ago"
    reason = f"importance {memory.importance:.2f}, last used {used}"
    steps = (Step(name="importance", factor=factor, reason=reason), *(() if timed is None else (timed,)))
    score = hit.score * math.prod(step.factor for step in steps)
    # No score is above 1, so the receipt shows the factor that counts.
    lost = min(1 / score, 1.0) if score else 1.0
    steps = (*steps[:-1], replace(steps[-1], factor=steps[-1].factor * lost))
    receipt = replace(hit.receipt, steps=(*hit.receipt.steps, *steps), final_score=round(min(score, 1.0), 4))
    return Recalled(
        rid=memory.rid,
        text=memory.text,
        score=receipt.final_score,
        relevance=round(score, 6),
        importance=round(memory.importance, 4),
        importance_original=memory.importance_original,
        last_accessed_at=memory.last_accessed_at,
        access_count=memory.access_count,
        reasons=(
            *found_by,
            f"{reason}: × {factor:.2f}",
            *(() if timed is None else (f"{timed.reason}: × {timed.factor:.2f}",)),
        ),
        hit=replace(hit, score=receipt.final_score, receipt=receipt),
        since=memory.since,
        until=memory.until,
        source=memory.source,
    )


def importance_now(given: float, last_accessed_at: float, now: float) -> float:
    """The importance now: 0.95 times as much for every day since the last access, and at least 0.1."""
    return max(_LEAST_IMPORTANCE, given * math.pow(_KEPT_A_DAY, _days(last_accessed_at, now)))


def importance_factor(importance: float) -> float:
    """The factor of a relevance that an importance gives."""
    return _LOWEST_FACTOR + _FACTOR_SPAN * importance


def closeness(cosine: float, usual: tuple[float, float]) -> float:
    """Closeness of two texts in meaning, from 0 to 1, for any model.

    0 is the usual cosine of unrelated texts, 1 is eight deviations above it. MiniLM reaches 0.7 with a cosine of 0.33.
    (cos + 1) / 2 says nothing: it is 0.5 for unrelated texts.
    """
    mean, deviation = usual
    return min(max((cosine - mean) / (_FULL * deviation), 0.0), 1.0)


def evidence(hit: Hit, usual: tuple[float, float] | None) -> tuple[str, ...]:
    """The reasons to recall a hit: words, meaning, or both; none when neither is enough.

    `usual` are mean and deviation of the cosines of unrelated texts. Without them, every hit by meaning is near enough.
    """
    receipt = hit.receipt
    reasons = []
    if receipt.keyword_rank:
        terms = dict.fromkeys(match.term for match in receipt.matches)
        reasons.append(f"has the words {', '.join(terms)}" if terms else "fulfils the conditions")
    if receipt.vector_rank and usual is None:
        reasons.append(f"near in meaning (cosine {receipt.vector_score:.2f})")
    elif receipt.vector_rank and usual and (near := closeness(receipt.vector_score, usual)) >= THRESHOLD:
        reasons.append(f"near in meaning: {near:.2f}, {THRESHOLD:g} is enough (cosine {receipt.vector_score:.2f})")
    return (*reasons, *(f"{part.leg}: {part.remark}" for part in receipt.further if part.evidence))


def _held(since: float | None, until: float | None, source: str) -> tuple[str, ...]:
    said = [] if since is None else [f"since {shown_day(since)}"]
    said += [] if until is None else [f"until {shown_day(until, is_end=True)}"]
    return (*said, *((f"source: {source}",) if source else ()))


def _texts(what: str, values: object) -> tuple[str, ...]:
    """The texts of a list. Raises InvalidValueError for a single text, which would be taken letter by letter."""
    texts = None if isinstance(values, str) or not isinstance(values, Iterable) else tuple(values)
    if texts is None or not all(isinstance(text, str) for text in texts):
        raise InvalidValueError(f"{what} {values!r} is no list of texts", hint=f'such as {what}=["one", "two"]')
    return texts


def _days(since: float, now: float) -> float:
    return max(now - since, 0.0) / 86_400


def _worth(resource: Resource, name: str) -> float:
    """An importance of a resource, or the usual one where a stranger has written nonsense."""
    try:
        number = float(resource.fields.get(name, _USUAL_IMPORTANCE))
    except ValueError:
        number = math.nan
    return number if 0 <= number <= 1 else _USUAL_IMPORTANCE
