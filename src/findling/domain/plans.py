"""How a search is carried out, as data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

__all__ = ["FIELDS", "FUSIONS", "GROUPINGS", "MODES", "TYPOS", "WORDS", "Plan"]

MODES = ("hybrid", "keyword", "semantic")
FUSIONS = ("weighted", "rrf", "rrf_weighted", "recency")
WORDS = ("auto", "any", "all")
TYPOS = ("correct", "suggest", "ignore")
GROUPINGS = ("none", "resource", "thread")
FIELDS = ("body", "title", "heading", "path", "tags", "name", "description")
"""The text fields of a chunk that words are looked for in."""


@dataclass(frozen=True, kw_only=True)
class Plan:
    """Which legs are asked and what is done with what they find; the defaults are what measured best.

    `words` says which of the words of a query a hit must have: `any` of them, `all`, or what the query looks like.
    `typos` is what becomes of words that nobody wrote. Without `meaning_finds`, meaning reorders what words have found
    and adds nothing. With `relax`, a query whose demands nothing fulfils is answered without them, in a part of its
    own; where `words` is `all`, it is not. `related` is how many neighbours by meaning are named apart when nothing
    matches. `route` lets the shape of the query change the plan. `types` limits the answer to these types; `heads`
    leaves out what something else supersedes. `weights` are those of text fields that differ from the settings of the
    keyword leg.

    `alpha` is the weight of meaning against words, 0 to 1; `None` has it decided for each query. `overfetch` says how
    many times the wanted hits each leg is asked for. `weak` shows weaker matches, which are only counted otherwise.
    `diversity` is the share of relevance when near-equal hits are spread, 1 leaves the ranking alone. `budget_ms` is
    the time for reading passages that the model has not read yet. `group` makes one hit of all passages of a resource,
    or of a thread of messages, with the others in it; `around` is how many messages are shown before and after one that
    was found. `affinities` say how close authors are to the one who asks, 0 to 1, by their names in lower case;
    `half_lives` say after how many days the recency of types that are not always there counts half, 0 never; `boosts`
    make use of both. `exact_boost`, `prefix_boost` and `phrase_boost` are the factors for a title or name that is the
    query, that begins with it, and for a text that has it word for word; 1 leaves the ranking alone.
    """

    profile: str = "auto"
    mode: str = "hybrid"
    words: str = "auto"
    glossary: bool = True
    typos: str = "correct"
    meaning_finds: bool = True
    relax: bool = True
    related: int = 3
    route: bool = True
    types: tuple[str, ...] = ()
    heads: bool = False
    weights: Mapping[str, float] = field(default_factory=dict)
    fusion: str = "weighted"
    alpha: float | None = None
    rrf_k: float = 60.0
    overfetch: float = 3.0
    min_score: float = 0.0
    weak: bool = False
    feedback: bool = False
    boosts: bool = False
    exact_boost: float = 1.0
    prefix_boost: float = 1.0
    phrase_boost: float = 1.0
    collapse: bool = False
    diversity: float = 1.0
    adaptive_k: bool = False
    group: str = "none"
    around: int = 1
    affinities: Mapping[str, float] = field(default_factory=dict)
    half_lives: Mapping[str, float] = field(default_factory=dict)
    rerank_depth: int = 50
    budget_ms: float = 300.0
