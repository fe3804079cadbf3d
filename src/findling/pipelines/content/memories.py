"""The rules of memories: what one is, how its importance fades, when it is recalled and how far up.

A memory is a resource of the type `memory`. Its importance now is what it was last given times 0.95 for every day since
it was last accessed, though never less than 0.1. It multiplies the relevance by 0.84 to 1.2, and 0.5 leaves it alone.
"""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from hashlib import blake2b
from typing import Any, NamedTuple

from findling.domain.errors import InvalidValueError
from findling.domain.permissions import check_visibility
from findling.domain.records import Access
from findling.domain.resources import Resource
from findling.domain.results import SCHEMA_VERSION, Degradation, Hit, Step, Suggestion

__all__ = [
    "LARGEST_FACTOR",
    "MEMORY",
    "THRESHOLD",
    "Memory",
    "RecallAnswer",
    "Recalled",
    "Wish",
    "checked_wish",
    "closeness",
    "evidence",
    "importance_factor",
    "importance_now",
    "is_same_text",
    "make_memory",
    "make_recalled",
    "make_resource",
    "memory_rid",
    "renewed_resource",
]

MEMORY = "memory"
"""The type, and what stands before the colon of an id."""

THRESHOLD = 0.7
"""How close in meaning a memory must be that has none of the words; see `closeness`. Among 440, MiniLM finds 85 % of 40
that are asked for in other words without a threshold, 70 % with it, and all of these first. Of 30 questions about
something else 20 % find something without it and 7 % with it."""

USUAL_IMPORTANCE = 0.5
_LEAST_IMPORTANCE = 0.1
_KEPT_A_DAY = 0.95

_LOWEST_FACTOR, _FACTOR_SPAN = 0.8, 0.4
LARGEST_FACTOR = _LOWEST_FACTOR + _FACTOR_SPAN
"""What the greatest importance multiplies a relevance by: 1.43 times what the least one does."""

_FULL = 8.0
"""Deviations above unrelated texts that count as full closeness, as for every search by meaning."""

_BEFORE = "accesses_before"
_LONGEST_ID = 200


@dataclass(frozen=True, kw_only=True)
class Memory:
    """Something that was remembered. `importance` is what it is worth now, `importance_original` what it was at first.

    `last_accessed_at` is when it was last recalled, or else remembered; `access_count` counts both but the first time.
    `outcome` says what remembering it did: `new`, `known` or `changed`; it is empty when nobody remembered just now.
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
    outcome: str = ""


@dataclass(frozen=True, kw_only=True)
class Recalled:
    """A memory that answers a query, with everything that put it there.

    `relevance` is the score of its best passage, the `hit`, times a factor for its importance: the order comes from it.
    `score` is the same, though at most 1, as in the receipt of the hit. Importance, times and counts are those before
    this recall.
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


@dataclass(frozen=True, kw_only=True)
class RecallAnswer:
    """What was recalled, best first, and how: `strategy`, `degraded` and the rest are those of a search.

    `is_counted` tells whether the accesses could be noted.
    """

    query: str
    memories: tuple[Recalled, ...] = ()
    strategy: str = ""
    degraded: tuple[Degradation, ...] = ()
    notes: tuple[str, ...] = ()
    did_you_mean: tuple[Suggestion, ...] = ()
    meaning: Mapping[str, Any] = field(default_factory=dict)
    is_counted: bool = True

    def __iter__(self) -> Iterator[Recalled]:
        return iter(self.memories)

    def __len__(self) -> int:
        return len(self.memories)

    def to_dict(self) -> dict[str, Any]:
        """The answer as plain JSON-ready values, with the schema version first."""
        return {"schema": SCHEMA_VERSION, **asdict(self)}


class Wish(NamedTuple):
    """What is to be remembered. Without an `importance` a new memory gets 0.5 and a known one keeps its own."""

    text: str
    importance: float | None = None
    tags: Iterable[str] = ()
    author: str = ""
    visibility: Iterable[str] | None = None
    id: str = ""


def checked_wish(wish: Wish) -> Wish:
    """The wish, tidied. Raises InvalidValueError for what cannot be remembered, of the wrong type above all."""
    for what, value in (("text", wish.text), ("author", wish.author), ("id", wish.id)):
        if not isinstance(value, str):
            raise InvalidValueError(f"{what} {value!r} is no text", hint="a str")
    text = wish.text.strip()
    if not any(character.isprintable() and not character.isspace() for character in text):
        raise InvalidValueError("there is nothing to remember", hint='findling remember "some text"')
    _check_importance(wish.importance)
    name = wish.id.removeprefix(f"{MEMORY}:")
    if wish.id and (not name.isprintable() or len(name) > _LONGEST_ID or name.split() != [name]):
        raise InvalidValueError(f"{wish.id!r} is no id of a memory", hint="some letters without spaces, such as wifi")
    return wish._replace(
        text=text,
        tags=tuple(dict.fromkeys(tag.strip() for tag in _texts("tags", wish.tags) if tag.strip())),
        author=wish.author.strip(),
        visibility=None if wish.visibility is None else check_visibility(_texts("visibility", wish.visibility)),
        id=name,
    )


def memory_rid(wish: Wish) -> str:
    """The id of what is wished: the one it names, or that of all memories of this text that the same people may see.

    Were others to share it, remembering a text would tell whether they had.
    """
    if wish.id:
        return f"{MEMORY}:{wish.id}"
    seen_by = "" if wish.visibility is None else "\x1f".join(("seen by", *sorted(set(wish.visibility))))
    told = f"{_spelling(wish.text)}\x1e{seen_by}".encode("utf-8", "surrogatepass")
    return f"{MEMORY}:{blake2b(told, digest_size=8, person=b'memory').hexdigest()}"


def is_same_text(one: str, other: str) -> bool:
    """Whether two texts are one memory: but for spaces, line breaks, and whether letters are composed or not."""
    return _spelling(one) == _spelling(other)


def make_resource(wish: Wish, rid: str, now: float, *, accesses_before: int = 0) -> Resource:
    """The resource of a new memory; `accesses_before` are those of one of the same id that was forgotten since."""
    given = _number(USUAL_IMPORTANCE if wish.importance is None else wish.importance)
    before = {_BEFORE: str(accesses_before)} if accesses_before else {}
    return Resource(
        rid=rid,
        type=MEMORY,
        author=wish.author,
        lang="text",
        tags=tuple(wish.tags),
        visibility=None if wish.visibility is None else tuple(wish.visibility),
        created_at=now,
        updated_at=now,
        fields={"importance": given, "importance_original": given, **before},
    )


def renewed_resource(wish: Wish, known: Resource, now: float, *, is_same_text: bool) -> Resource:
    """The resource of a known memory, which keeps what it has and gains tags and importance.

    Another text brings its own author and date.
    """
    given = _number(max(_worth(known, "importance"), wish.importance or 0.0))
    return replace(
        known,
        author=known.author or wish.author if is_same_text else wish.author or known.author,
        tags=tuple(dict.fromkeys((*known.tags, *wish.tags))),
        visibility=known.visibility if wish.visibility is None else tuple(wish.visibility),
        updated_at=known.updated_at if is_same_text else now,
        fields={**known.fields, "importance": given},
    )


def make_memory(resource: Resource, text: str, access: Access | None, now: float, outcome: str = "") -> Memory:
    """The memory that a resource and its accesses are."""
    created_at = resource.created_at or 0.0
    last_at = max(access.last_at if access else 0.0, resource.updated_at or 0.0, created_at)
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
        access_count=_own_accesses(resource, access),
        outcome=outcome,
    )


def make_recalled(hit: Hit, memory: Memory, found_by: Sequence[str], now: float) -> Recalled:
    """The memory at the place that relevance and importance give it, with both in its receipt."""
    factor = importance_factor(memory.importance)
    told = _importance_told(memory, now)
    score = hit.score * factor
    # No score is above 1: the factor that is told is the one that counts.
    lifted = Step(name="importance", factor=min(factor, 1 / hit.score) if hit.score else factor, reason=told)
    receipt = replace(hit.receipt, steps=(*hit.receipt.steps, lifted), final_score=round(min(score, 1.0), 4))
    return Recalled(
        rid=memory.rid,
        text=memory.text,
        score=receipt.final_score,
        relevance=round(score, 6),
        importance=round(memory.importance, 4),
        importance_original=memory.importance_original,
        last_accessed_at=memory.last_accessed_at,
        access_count=memory.access_count,
        reasons=(*found_by, f"{told}: × {factor:.2f}"),
        hit=replace(hit, score=receipt.final_score, receipt=receipt),
    )


def importance_now(given: float, last_accessed_at: float, now: float) -> float:
    """What is left of an importance: 0.95 times as much for every day since the last access, and at least 0.1."""
    return max(_LEAST_IMPORTANCE, given * math.pow(_KEPT_A_DAY, _days(last_accessed_at, now)))


def importance_factor(importance: float) -> float:
    """What an importance multiplies a relevance by."""
    return _LOWEST_FACTOR + _FACTOR_SPAN * importance


def closeness(cosine: float, usual: tuple[float, float]) -> float:
    """How close two texts are in meaning, from 0 to 1, whatever the model.

    0 is the usual cosine of texts that have nothing to do with each other, 1 is eight deviations above it. MiniLM
    reaches 0.7 with a cosine of 0.33. (cos + 1) / 2 says nothing: it is 0.5 for texts that have nothing in common.
    """
    mean, deviation = usual
    return min(max((cosine - mean) / (_FULL * deviation), 0.0), 1.0)


def evidence(hit: Hit, usual: tuple[float, float] | None, threshold: float = THRESHOLD) -> tuple[str, ...]:
    """Why a hit is recalled: by its words, by its meaning, or by both; nothing when neither is enough.

    `usual` are mean and deviation of the cosines of unrelated texts. Where nobody knows them, what the search has found
    by meaning is near enough.
    """
    receipt = hit.receipt
    reasons = []
    if receipt.keyword_rank:
        terms = dict.fromkeys(match.term for match in receipt.matches)
        reasons.append(f"has the words {', '.join(terms)}" if terms else "fulfils the conditions")
    if receipt.vector_rank:
        near = None if usual is None else closeness(receipt.vector_score, usual)
        if near is None:
            reasons.append(f"near in meaning (cosine {receipt.vector_score:.2f})")
        elif near >= threshold:
            reasons.append(f"near in meaning: {near:.2f} of {threshold:g} (cosine {receipt.vector_score:.2f})")
    reasons += [
        f"{part.leg}: {part.why or f'{part.measure} {part.raw:.4g}'}" for part in receipt.further if part.evidence
    ]
    return tuple(reasons)


def _spelling(text: str) -> str:
    return " ".join(unicodedata.normalize("NFC", text).split())


def _check_importance(importance: object) -> None:
    if importance is None:
        return
    if isinstance(importance, bool) or not isinstance(importance, (int, float)):
        raise InvalidValueError(f"importance {importance!r} is no number", hint="from 0 to 1; 0.5 is usual")
    if not 0 <= importance <= 1:
        raise InvalidValueError(f"importance {importance:g} is not between 0 and 1", hint="0.5 is usual")


def _texts(what: str, values: object) -> tuple[str, ...]:
    """The texts of a list. Raises InvalidValueError for a single text, which would be taken letter by letter."""
    texts = None if isinstance(values, str) or not isinstance(values, Iterable) else tuple(values)
    if texts is None or not all(isinstance(text, str) for text in texts):
        raise InvalidValueError(f"{what} {values!r} is no list of texts", hint=f'such as {what}=["one", "two"]')
    return texts


def _importance_told(memory: Memory, now: float) -> str:
    days = _days(memory.last_accessed_at, now)
    since = "today" if days < 1 else f"{days:.0f} days ago"
    return f"importance {memory.importance:.2f}, last used {since}"


def _days(since: float, now: float) -> float:
    return max(now - since, 0.0) / 86_400


def _worth(resource: Resource, name: str) -> float:
    """An importance of a resource; one that somebody else has put in may be wrong, and is the usual one then."""
    try:
        number = float(resource.fields.get(name, USUAL_IMPORTANCE))
    except ValueError:
        number = math.nan
    return number if 0 <= number <= 1 else USUAL_IMPORTANCE


def _own_accesses(resource: Resource, access: Access | None) -> int:
    before = resource.fields.get(_BEFORE, "")
    return max(access.count - int(before if before.isdecimal() else 0), 0) if access else 0


def _number(value: float) -> str:
    return format(value, "g")
