"""What comes back: hits with their receipts, and the answer that says how it was found."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

__all__ = ["SCHEMA_VERSION", "Hit", "Line", "Receipt", "ScorePart", "SearchAnswer", "Step", "TermMatch"]

SCHEMA_VERSION = 2
"""Version of the JSON that `to_dict` gives; raised when a key changes its meaning or goes away."""


@dataclass(frozen=True, kw_only=True)
class Line:
    """One line of the original text, verbatim, with the spans (start, end in characters) that matched.

    `number` is the line of the file, 0 when the file has no lines; `place` is what the file's readers call it instead
    (`p. 12`, `Sheet1!A7`), if they have a name for it.
    """

    number: int
    text: str
    spans: tuple[tuple[int, int], ...] = ()
    place: str = ""


@dataclass(frozen=True, kw_only=True)
class TermMatch:
    """A term of the query found in a hit: in which field, in which forms, how often."""

    term: str
    field: str
    forms: tuple[str, ...]
    count: int


@dataclass(frozen=True, kw_only=True)
class ScorePart:
    """What one leg contributes to the fused score: `value` is `weight` × `normalised`, made from `raw`."""

    leg: str
    rank: int
    raw: float
    normalised: float
    weight: float
    value: float


@dataclass(frozen=True, kw_only=True)
class Step:
    """What moved a hit after the legs were fused, by which factor, and why; a factor of 1 moves its place only."""

    name: str
    factor: float
    reason: str


@dataclass(frozen=True, kw_only=True)
class Receipt:
    """Why a hit is where it is. Ranks count from 1 and are 0 in a leg that has not found it.

    `keyword_score` is the raw BM25 score, `vector_score` the cosine and `speed` which vectors gave it. The sums of
    `parts` rank the hits; `fused_score` is that sum on a scale on which the best hit is as good as its best evidence,
    `final_score` what became of it after all `steps`.
    """

    keyword_rank: int = 0
    keyword_score: float = 0.0
    vector_rank: int = 0
    vector_score: float = 0.0
    speed: str = ""
    fused_score: float
    final_score: float
    parts: tuple[ScorePart, ...] = ()
    steps: tuple[Step, ...] = ()
    matches: tuple[TermMatch, ...] = ()
    missing: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Hit:
    """A chunk that answers the question. `score` runs from 0 to 1 and falls from hit to hit.

    `line` is the line that matches best, `place` its page, sheet or slide in files that have those instead of lines;
    in such files all numbers of lines are 0.
    """

    id: str
    rid: str
    path: str
    type: str
    title: str
    heading: tuple[str, ...]
    line_start: int
    line_end: int
    score: float
    lines: tuple[Line, ...]
    receipt: Receipt
    line: int = 0
    place: str = ""


@dataclass(frozen=True, kw_only=True)
class SearchAnswer:
    """Hits, and what really happened: what was understood, what ran, what was missing, how long each stage took.

    `total` counts the chunks that match the query and its filters, by its words or by its meaning. `meaning` says
    which vectors served the answer (`speed`), the model, the share of chunks it has read (`coverage`), and the host
    that text was sent to, if any; it is empty when no vectors were asked.
    """

    query: str
    understood_as: str
    hits: tuple[Hit, ...]
    total: int
    strategy: str
    degraded: tuple[str, ...] = ()
    unknown_terms: tuple[str, ...] = ()
    timings_ms: Mapping[str, float] = field(default_factory=dict)
    meaning: Mapping[str, Any] = field(default_factory=dict)
    plan: Mapping[str, Any] = field(default_factory=dict)

    def __iter__(self) -> Iterator[Hit]:
        return iter(self.hits)

    def __len__(self) -> int:
        return len(self.hits)

    def to_dict(self) -> dict[str, Any]:
        """The answer as plain JSON-ready values, with the schema version first."""
        return {"schema": SCHEMA_VERSION, **asdict(self)}
