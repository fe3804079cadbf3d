"""The plan of a search: one table of knobs, from which settings, profiles, flags, HTTP bodies and MCP tools follow."""

# No `from __future__ import annotations`: classes of fields parse each annotation that is a text, 1 ms in all.
from collections.abc import Mapping
from dataclasses import field, fields, replace
from functools import partial
from typing import Any

from findling.domain.values import FIELDS, record

__all__ = [
    "EXPANSIONS",
    "FIELDS",
    "FUSIONS",
    "GRAPHS",
    "GRAPH_MODES",
    "GROUPINGS",
    "JUDGED",
    "KNOBS",
    "MODES",
    "TYPOS",
    "WORDS",
    "Knob",
    "Plan",
    "knob",
    "knobs_of",
]

MODES = ("hybrid", "keyword", "semantic")
FUSIONS = ("weighted", "rrf", "rrf_weighted", "recency")
WORDS = ("auto", "any", "all")
TYPOS = ("correct", "suggest", "ignore")
GROUPINGS = ("none", "resource", "thread")
GRAPHS = ("auto", "off", "on")
GRAPH_MODES = ("low", "high", "dual")
EXPANSIONS = ("off", "auto", "on")
JUDGED = 20
"""Hits that a judge reads where nothing else is said: 1.8 s of one core with passages of 450 characters."""

LANGUAGES = tuple(
    "basque catalan czech danish dutch english esperanto estonian finnish french german hungarian indonesian irish "
    "italian lithuanian norwegian polish portuguese romanian spanish swedish turkish".split()
)
"""Languages in Latin letters whose inflected forms are known."""

COMPOUNDING = frozenset({"danish", "dutch", "finnish", "german", "norwegian", "swedish"})
"""Those that write compounds as one word."""


@record()
class Knob:
    """One field of a plan, and every place where it shows.

    `kind` is one of `domain.values`. `setting` makes it a setting of that name; without one, profiles and `--set` carry
    it. A `flag` of a switch `sets` one value. `project` says what a stranger's project file may do: nothing, `any`
    value, or only `lower` it. `served` is the upper bound for callers of a server. `http` puts it beside the query of a
    request. `mcp` is its description there, and shows it in the tool. `row` is its full name in profiles and `--set`.
    An `optional` one may be None, which leaves the decision to each query.
    """

    kind: str
    default: Any
    help: str
    name: str = ""
    row: str = ""
    optional: bool = False
    choices: tuple[str, ...] = ()
    minimum: float = 0
    maximum: float = float("inf")
    setting: str = ""
    profile: bool = True
    flag: str = ""
    metavar: str | None = None
    sets: bool | None = None
    flag_help: str = ""
    project: str = ""
    served: float = float("inf")
    http: bool = False
    mcp: str = ""


def knob(default: Any, help: str, /, kind: str = "", **more: Any) -> Any:
    """A field of a plan with everything that there is to say about it; the kind follows from the default."""
    kinds = {bool: "switch", int: "count", float: "number", str: "text", tuple: "texts"}
    declared = Knob(kind or kinds[type(default)], default, help, **more)
    if isinstance(default, Mapping):
        return field(default_factory=dict, metadata={"knob": declared})
    return field(default=default, metadata={"knob": declared})


_open = partial(knob, project="any")
"""A knob that a stranger's project file may set to any value."""

_factor = partial(_open, minimum=1, maximum=10)


@record(kw_only=True)
class Plan:
    """The legs that a search asks, and the steps after them; the defaults measured best."""

    profile: str = knob("auto", "The name that the answer shows for this plan.", profile=False)
    mode: str = _open(
        "hybrid",
        "What a search goes by: words and meaning, words alone, or meaning alone.",
        choices=MODES,
        setting="search.mode",
        flag="--mode",
        http=True,
        mcp="keyword: exact names and codes; semantic: other words, same meaning",
    )
    words: str = _open(
        "auto",
        "Which words of a query a hit must have: any of them, all of them, or (auto) what the query looks like.",
        choices=WORDS,
        http=True,
    )
    languages: tuple[str, ...] = _open(
        (),
        "Languages in Latin letters that are asked in, the usual one first; empty: as the question and the index tell.",
        row="search.languages",
        choices=LANGUAGES,
    )
    glossary: bool = _open(True, "Also find what the glossary calls by another name.")
    typos: str = _open(
        "correct",
        "A word that nobody wrote: search for the nearest ones instead, suggest them only, or leave it.",
        choices=TYPOS,
    )
    meaning_finds: bool = _open(
        True, "Answer also with what has none of the words and the same meaning; off: meaning only reorders."
    )
    relax: bool = knob(
        True,
        "Where nothing has what a query demands (a quoted phrase, AND), show apart what it finds without the demand.",
        http=True,
    )
    related: int = _open(3, "Neighbours by meaning, shown apart when nothing matches; 0: none.", maximum=1000)
    route: bool = _open(True, "Let what a query looks like (a question, a path, code) change the plan.")
    types: tuple[str, ...] = _open((), "Types to answer with, such as memory or decision; empty: all.")
    heads: bool = _open(False, "Leave out what something newer supersedes.")
    weights: Mapping[str, float] = _open(
        {},
        "Weights of text fields that differ from the usual ones: body, title, heading, path, tags, name, description.",
        "weights",
    )
    fusion: str = _open(
        "weighted",
        "How words and meaning become one ranking: by their scores, by their ranks, or by scores and age.",
        choices=FUSIONS,
        http=True,
    )
    alpha: float | None = _open(
        None,
        "Weight of meaning against words, 0 to 1; not set, it is decided for each query.",
        "number",
        maximum=1,
        http=True,
    )
    graph: str = _open(
        "auto",
        "Passages that share names with the question and its best hits: where that helps (auto), never, or always.",
        choices=GRAPHS,
        http=True,
        mcp="shared names",
    )
    graph_mode: str = _open(
        "low",
        "What the graph leads to: passages that share names (low), one of each theme (high), or both by turns (dual).",
        choices=GRAPH_MODES,
        http=True,
    )
    leg_weights: Mapping[str, float] = knob(
        {}, "Weights of legs beside words and meaning, 0 to 1, by name; 0 leaves one out.", "shares"
    )
    rrf_k: float = _open(60.0, "How slowly ranks lose their worth when rankings are fused by rank.", served=1e6)
    overfetch: float = knob(
        3.0, "How many times the wanted hits each leg is asked for.", minimum=1, project="lower", served=100
    )
    min_score: float = _open(0.0, "Hits that score less, from 0 to 1, are left out.", maximum=1, http=True)
    weak: bool = knob(
        False,
        "Show weaker matches, too, which are only counted otherwise.",
        flag="--weak",
        sets=True,
        flag_help="Show weaker matches, too.",
    )
    feedback: bool = _open(False, "Search again with words that the best hits of a short query share.")
    expand: str = knob(
        "off",
        "Ask again with other words for the question: never, where the first round is weak (auto), or always.",
        choices=EXPANSIONS,
        http=True,
        mcp="other words",
    )
    novelty: bool = _open(True, "Count what stands everywhere (licence heads, signatures, quoted mail) half.")
    boosts: bool = _open(False, "Lift hits whose title, heading, name or tags match, and recent ones.")
    exact_boost: float = _factor(1.0, "Factor for a hit whose title or name is the query, such as 1.5; 1: none.")
    prefix_boost: float = _factor(
        1.0, "Factor for a hit whose title or name begins with the query, such as 1.2; 1: none."
    )
    phrase_boost: float = _factor(1.0, "Factor for a hit whose text has the query word for word, such as 1.2; 1: none.")
    collapse: bool = _open(True, "Show copies of a passage once, with the others in it.")
    diversity: float = _open(
        1.0, "Share of relevance when similar hits are spread, such as 0.7; 1: leave the ranking alone.", maximum=1
    )
    adaptive_k: bool = _open(False, "End the answer where scores fall most.")
    group: str = _open(
        "none",
        "One hit for each passage, or for each resource, or for each thread of messages, with the others in it.",
        choices=GROUPINGS,
        http=True,
    )
    around: int = _open(1, "Messages shown before and after one that was found in a chat.", maximum=100)
    affinities: Mapping[str, float] = knob(
        {}, "How close authors are to you, 0 to 1, by their names in lower case; boosts lift what they wrote.", "shares"
    )
    half_lives: Mapping[str, float] = knob(
        {}, "Days after which the recency of a type counts half, by types of your own; 0 never.", "days", profile=False
    )
    rerank_depth: int | None = knob(
        None,
        "How many of the best hits a judge reads; 0: none; not set: 20 over MCP, in second stages and by a model that "
        "was chosen by its name, else none.",
        "count",
        row="rerank.depth",
        project="lower",
        served=1000,
    )
    budget_ms: float = knob(
        300.0,
        "Time a search may spend on the best passages not read yet; 0: none.",
        setting="semantic.query_budget_ms",
        project="lower",
        served=60_000,
    )


def knobs_of(plan: type[Plan]) -> dict[str, Knob]:
    """The table: every knob of a plan by its name."""
    knobs = {each.name: each.metadata["knob"] for each in fields(plan)}
    return {
        name: replace(one, name=name, row=one.row or one.setting or f"search.{name}", optional=one.default is None)
        for name, one in knobs.items()
    }


KNOBS: Mapping[str, Knob] = knobs_of(Plan)
