"""Answers: hits with their receipts, and the report of how they were found."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import field
from math import prod
from typing import Any, NamedTuple

from findling.domain.errors import FindlingError
from findling.domain.values import as_dict, plain, record

SCHEMA_VERSION = 6
"""Version of the JSON that `to_dict` gives; raised when a key changes its meaning or goes away."""


class JsonAnswer:
    """An answer that is JSON as it stands."""

    def to_dict(self) -> dict[str, Any]:
        """The answer as plain JSON-ready values."""
        values: dict[str, Any] = plain(self)
        return values


@record(kw_only=True)
class Line:
    """One line of the original text, verbatim, with the spans (start, end in characters) that matched.

    `number` is the line of the file, 0 when the file has no lines; `place` is what the file's readers call it instead
    (`p. 12`, `Sheet1!A7`), if they have a name for it.
    """

    number: int
    text: str
    spans: tuple[tuple[int, int], ...] = ()
    place: str = ""


@record(kw_only=True)
class TermMatch:
    """A term of the query found in a hit: in which field, in which forms, how often, and where.

    `spans` are the places in the chunk's own text (start, end in characters), for the field `body` only.
    """

    term: str
    field: str
    forms: tuple[str, ...]
    count: int
    spans: tuple[tuple[int, int], ...] = ()


@record(kw_only=True)
class AliasMatch:
    """An entry of the glossary by which a hit was found: `alias` stands in it, `typed` was asked for."""

    group: str
    typed: str
    alias: str
    count: int


class Evidence(NamedTuple):
    """The evidence of one leg for one chunk.

    `raw` is the leg's own score and `measure` its name (`BM25`, `cosine`). The leg ranks by `strength`. `worth` counts
    on the one scale, 0 to 1, that all legs share (`ranking/evidence.py`); a leg that would not find the chunk by itself
    gives 0. `why` is the leg's remark: the kind of vectors, a path through a graph, a line. Fusion fills in `rank`,
    from 1 on or 0 without one, and `share`, the part of the fused score: `weight` × `normalised`. `support` is for or
    against a hit that words have found, on the one scale; `None` from a leg that cannot judge it.
    """

    leg: str
    raw: float
    strength: float
    worth: float
    why: str = ""
    measure: str = "score"
    rank: int = 0
    normalised: float = 0.0
    weight: float = 0.0
    share: float = 0.0
    support: float | None = None


@record(kw_only=True)
class ScorePart:
    """The part of one leg in the fused score: `value` is `weight` × `normalised`, made from `raw`.

    `measure` names the unit of `raw`. `evidence` is the leg's support on the scale of all legs, and `why` its remark.
    The rank is 0 where another leg ranked.
    """

    leg: str
    rank: int
    raw: float
    normalised: float
    weight: float
    value: float
    measure: str = "score"
    evidence: float = 0.0
    why: str = ""

    @property
    def remark(self) -> str:
        """The remark of the leg, its score where it has none."""
        return self.why or f"{self.measure} {self.raw:.4g}"


@record(kw_only=True)
class Step:
    """A move of a hit after the legs were fused: its factor and the reason. A factor of 1 moves its place only."""

    name: str
    factor: float
    reason: str


@record(kw_only=True, in_parts=True)
class Receipt:
    """The reasons of a hit's place. Ranks count from 1 and are 0 in a leg that has not found it.

    `parts` hold the evidence of every leg, and their sums rank the hits. `keyword_rank`, `keyword_score` (BM25),
    `vector_rank`, `vector_score` (cosine) and `speed` (which vectors) repeat the parts of two legs. So do `words` and
    `meaning`, the worth of their evidence on the one scale. A text no nearer than foreign ones has no meaning.
    `fused_score` is the best evidence of all legs, at most the score of the hit above; `final_score` has the factors of
    all `steps`. `supersedes` and `superseded_by` are ids, nearest first.
    """

    keyword_rank: int = 0
    keyword_score: float = 0.0
    vector_rank: int = 0
    vector_score: float = 0.0
    speed: str = ""
    words: float = 0.0
    meaning: float = 0.0
    fused_score: float
    final_score: float
    parts: tuple[ScorePart, ...] = ()
    steps: tuple[Step, ...] = ()
    matches: tuple[TermMatch, ...] = ()
    aliases: tuple[AliasMatch, ...] = ()
    missing: tuple[str, ...] = ()
    supersedes: tuple[str, ...] = ()
    superseded_by: tuple[str, ...] = ()

    @property
    def further(self) -> tuple[ScorePart, ...]:
        """The parts of legs that have no fields of their own; age is no leg."""
        return tuple([part for part in self.parts if part.leg not in ("keyword", "semantic", "recency")])

    def recomputed(self) -> float:
        """The final score again: the best evidence times the factors of all steps."""
        best = max(self.words, self.meaning, *(part.evidence for part in self.parts))
        return best * prod(step.factor for step in self.steps)


@record(kw_only=True)
class Passage:
    """Another part of what a hit stands for that matches as well: one chunk, or several that lie side by side."""

    id: str
    rid: str
    line_start: int
    line_end: int
    place: str
    score: float
    lines: tuple[Line, ...]


@record(kw_only=True, in_parts=True)
class Hit:
    """A chunk that answers the question. `score` runs from 0 to 1 and falls from hit to hit.

    `line` is the line that matches best. In files with pages, sheets or slides `place` names one of those, and all
    numbers of lines are 0. In a grouped answer the hit is the best chunk of its group, and `passages` are the others.
    `around` are the messages around the one found in a chat; their numbers count from it, below 0 before it. `author`
    and `at` (seconds since the epoch) are those of that message, or of the resource. `workspace` is the folder above
    whose workspace holds it; empty for the workspace that was asked. `symbol` names the definition around `line`.
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
    author: str = ""
    at: float | None = None
    passages: tuple[Passage, ...] = ()
    around: tuple[Line, ...] = ()
    workspace: str = ""
    symbol: str = ""


@record(kw_only=True)
class Degradation:
    """A lack of an answer, and the command that mends it, if there is one."""

    what: str
    fix: str = ""

    @classmethod
    def of(cls, error: FindlingError) -> Degradation:
        """The degradation for an error that an answer survived."""
        return cls(what=error.message, fix=error.hint)

    def __str__(self) -> str:
        return f"{self.what}; {self.fix}" if self.fix else self.what


@record(kw_only=True)
class Suggestion:
    """A word of the index that a word of the query may have meant; `applied` when it was searched for as well."""

    term: str
    suggestion: str
    query: str
    applied: bool = False


@record(kw_only=True)
class SearchAnswer:
    """Hits, and the report of the search: the query as understood, the legs that ran, the lacks, the timings.

    `total` counts the chunks that match the query and its filters, by words or by meaning. `weaker` counts those far
    worse than the best: they are hits only if the plan has `weak`. Counting may end at 1,000: then `total_is_exact` is
    false, and both are at least so many. `reading` is `ranked` (any of its words), `boolean` (all that it asks for), or
    `browse` (no words at all, latest first). `strategy` names the legs that ran. `quality` is `none` for an empty
    answer, `excellent` when words and a model's meaning served in full, `good` when one of them or instant vectors did,
    `reduced` when something is in `degraded`. `relaxed` are hits without the demands of the query, where nothing
    fulfils them; exclusions and filters hold for them, and `total` does not count them. `related` are neighbours by
    meaning that do not match. `scope` is the limit that the project file sets.

    `notes` explain the reading of the query, and `plan` holds the whole plan. `meaning` names the vectors that served
    (`speed`), the model, the share of chunks it has read (`coverage`), and the host that text was sent to; it is
    empty when no vectors were asked. `facets` counts the matching resources by the values of each property asked for.
    `next_cursor` asks for the next page, if there is one. `served_by` names the daemon that has answered, if one has.
    """

    query: str
    understood_as: str
    hits: tuple[Hit, ...]
    total: int
    strategy: str
    weaker: int = 0
    total_is_exact: bool = True
    reading: str = "ranked"
    quality: str = "good"
    degraded: tuple[Degradation, ...] = ()
    notes: tuple[str, ...] = ()
    unknown_terms: tuple[str, ...] = ()
    did_you_mean: tuple[Suggestion, ...] = ()
    related: tuple[Hit, ...] = ()
    relaxed: tuple[Hit, ...] = ()
    scope: Mapping[str, Any] = field(default_factory=dict)
    timings_ms: Mapping[str, float] = field(default_factory=dict)
    meaning: Mapping[str, Any] = field(default_factory=dict)
    plan: Mapping[str, Any] = field(default_factory=dict)
    facets: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    next_cursor: str = ""
    served_by: str = ""

    def __iter__(self) -> Iterator[Hit]:
        return iter(self.hits)

    def __len__(self) -> int:
        return len(self.hits)

    def to_dict(self) -> dict[str, Any]:
        """The answer as plain JSON-ready values, with the schema version first."""
        return {"schema": SCHEMA_VERSION, **as_dict(self)}


@record(kw_only=True)
class LegVerdict:
    """The verdict of one leg on a document: rank and raw score of its best passage among `total`, 0 without one.

    `least` is the score from which the leg finds a passage by itself, where it has such a limit.
    """

    leg: str
    found: bool
    rank: int
    score: float
    least: float = 0.0
    total: int = 0


@record(kw_only=True)
class Explanation:
    """The reasons why a document is in an answer, or is not: its rank, its filters, the verdict of each leg.

    `rank` is that of its best passage among all that match, 0 when none does; `shown` is the number of hits of the
    answer. `reasons` name what keeps it out. `hit` is the passage with its receipt, when it matches.
    """

    query: str
    understood_as: str
    reading: str
    rid: str
    path: str
    found: bool
    rank: int
    shown: int
    reasons: tuple[str, ...] = ()
    filters: tuple[tuple[str, bool], ...] = ()
    legs: tuple[LegVerdict, ...] = ()
    hit: Hit | None = None
    degraded: tuple[Degradation, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """The explanation as plain JSON-ready values, with the schema version first."""
        return {"schema": SCHEMA_VERSION, **as_dict(self)}


@record(kw_only=True)
class Completion:
    """A text to search for: of `kind` word, with `count` passages, or spelling, or the title of a resource, `rid`."""

    text: str
    kind: str
    count: int = 0
    rid: str = ""


@record(kw_only=True)
class ThemeName:
    """A name of a theme as its texts write it; `resources` counts the documents of the theme that have it."""

    name: str
    resources: int


@record(kw_only=True)
class Theme:
    """Passages that name the same things. `id` is that of its best passage, `summary` a sentence of one of them."""

    id: str
    names: tuple[ThemeName, ...]
    summary: str
    resources: int
    passages: int


@record(kw_only=True)
class ThemesAnswer(JsonAnswer):
    """The themes of a workspace, those with most documents first; `total` counts them all."""

    themes: tuple[Theme, ...] = ()
    total: int = 0
    degraded: tuple[Degradation, ...] = ()
