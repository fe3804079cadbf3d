"""What a request may say, each knob with its bounds, and the question that it makes."""

from __future__ import annotations

import re
from collections.abc import Mapping
from math import isinf
from typing import Annotated, Any, Literal, NamedTuple, cast

from pydantic import BaseModel, ConfigDict, Field, create_model

from findling.domain.errors import InvalidValueError
from findling.domain.permissions import Caller
from findling.domain.plans import FUSIONS, GROUPINGS, MODES, WORDS
from findling.domain.queries import Filters, SearchRequest
from findling.pipelines.answer.facets import FACETS
from findling.pipelines.retrieve.plan_files import PLAN_RULES, Rule
from findling.service.settings.settings import get_setting
from findling.service.settings.written_filters import written_filters

__all__ = [
    "LONGEST_PATTERN",
    "ExplainParameters",
    "FilterBody",
    "NameParameters",
    "PlanBody",
    "QueryText",
    "Question",
    "SearchBody",
    "SearchParameters",
    "SuggestParameters",
    "WorkspaceName",
    "WorkspaceParameters",
    "checked_pattern",
]


_SETTING_OF = {
    "affinities": "search.affinity",
    "rerank_depth": "rerank.depth",
    "budget_ms": "semantic.query_budget_ms",
}
"""Fields whose setting has another name than `search.` and theirs."""

_TOLD = {
    "profile": "The name that the answer shows for this plan.",
    "weights": "Weights of text fields that differ from the settings: body, title, heading, path, tags, name, …",
    "alpha": "Weight of meaning against words, 0 to 1; null has it decided for each query.",
    "affinities": "How close authors are to you, 0 to 1, by their names in lower case.",
    "half_lives": "Days after which the recency of a type counts half, by types of your own; 0 never.",
}
"""Fields that the help of a setting does not describe."""

_MOST: Mapping[str, float] = {"overfetch": 100, "rrf_k": 1e6, "rerank_depth": 1000, "budget_ms": 60_000}
"""Bounds that a plan does not have: whoever asks a server must not keep it busy for all others."""

_KINDS: Mapping[str, Any] = {
    "weights": dict[str, float],
    "shares": dict[str, float],
    "days": dict[str, float],
    "texts": Annotated[list[str], Field(max_length=100)],
    "switch": bool,
    "count": int,
    "number": float,
    "text": str,
}


def _field(name: str, rule: Rule) -> tuple[Any, Any]:
    kind = Literal[rule.choices] if rule.choices else _KINDS[rule.kind]
    most = _MOST.get(name, rule.most)
    limits: dict[str, Any] = {}
    if rule.kind in ("count", "number"):
        limits = {"ge": rule.least} | ({} if isinf(most) else {"le": most})
    told = _TOLD.get(name) or get_setting(_SETTING_OF.get(name, f"search.{name}")).help
    # Without a default in the schema: what is left out is as in the profile.
    return (kind | None if rule.optional else kind), Field(default=None, description=told, **limits)


PlanBody: type[BaseModel] = create_model(
    "PlanBody",
    __config__=ConfigDict(extra="forbid", strict=True, frozen=True, allow_inf_nan=False, title="Plan"),
    __doc__="Fields of the plan that differ from those of the profile.",
    **cast("dict[str, Any]", {name: _field(name, rule) for name, rule in PLAN_RULES.items()}),
)
"""Any fields of a `Plan`; `model_fields_set` says which were given."""


LONGEST_PATTERN = 500


def checked_pattern(pattern: str | None, *, is_owner: bool) -> str | None:
    """A pattern that may be tried on every passage. Raises InvalidValueError for one that could take for ever.

    Nothing can stop an expression while it is tried, and all others wait for it. So from anybody but the owner it is
    taken only when there is one way to match it: a passage of 2,000 characters then takes a million steps at worst.
    """
    if pattern is None or is_owner:
        return pattern
    if len(pattern) > LONGEST_PATTERN or _LINEAR.fullmatch(pattern) is None:
        raise InvalidValueError(
            "exclude_pattern holds what only the owner may use: repetitions, groups, alternatives or references",
            hint=r"use characters, ., [classes], ^, $, \b, \d, \w, \s, and (?i) at the beginning",
        )
    return pattern


_LINEAR = re.compile(
    r"""
    (?:\(\?i\))?+
    (?: [^\\.\[(){}*+?|]                         # a character that stands for itself, or an anchor
      | \.
      | \\ (?: [bBdDsSwWAZtnr] | [^0-9A-Za-z] )  # neither a reference nor a code of a character
      | \[ \^?+ \]?+ (?: \\. | [^\]\\] )*+ \]
    )*+
    """,
    re.VERBOSE | re.DOTALL,
)
"""Possessive throughout, so that this check is linear itself."""


_LONGEST_QUERY = 10_000
_MOST_HITS = 1_000
_DEEPEST = 100_000

_Texts = Annotated[list[Annotated[str, Field(max_length=1_000)]], Field(max_length=100)]
_Limit = Annotated[int, Field(ge=0, le=_MOST_HITS, description="The most hits that are shown.")]
WorkspaceName = Annotated[
    str, Field(max_length=1_000, description="The name of the workspace; empty: the one that is served.")
]
QueryText = Annotated[
    str,
    Field(
        max_length=_LONGEST_QUERY,
        description='What is looked for: words, "phrases", -exclusions, OR, path:, type: and all else of the query '
        "language. Without any word, everything that passes the filters, latest first.",
    ),
]

_IN_BODY = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)
_IN_ADDRESS = ConfigDict(extra="forbid", frozen=True, strict=False, allow_inf_nan=False)


class Question(NamedTuple):
    """What is asked, of which workspace, and what of the plan differs from that of the profile."""

    request: SearchRequest
    workspace: str
    changes: dict[str, Any]


class FilterBody(BaseModel):
    """What the answer is limited to; an empty list does not filter."""

    model_config = _IN_BODY

    ext: _Texts = Field(default=[], description="Extensions, with or without the dot.")
    not_ext: _Texts = Field(default=[], description="Extensions that are left out.")
    path: _Texts = Field(default=[], description="Folders or files, from the root of the workspace.")
    type: _Texts = Field(default=[], description="Types of resources: file, chat, decision, memory, …")
    lang: _Texts = Field(default=[], description="Languages of texts and of code: markdown, python, …")
    tag: _Texts = Field(default=[], description="Tags.")
    author: _Texts = Field(default=[], description="Authors.")
    after: float | Annotated[str, Field(max_length=40)] | None = Field(
        default=None, description="Changed at or after this: a date as in ISO 8601, or seconds since the epoch."
    )
    before: float | Annotated[str, Field(max_length=40)] | None = Field(
        default=None, description="Changed before this: a date as in ISO 8601, or seconds since the epoch."
    )

    def filters(self) -> Filters:
        """Raises InvalidValueError for a date that is none, and for limits that contradict each other."""
        return written_filters(
            ext=self.ext,
            not_ext=self.not_ext,
            path=self.path,
            type=self.type,
            lang=self.lang,
            tag=self.tag,
            author=self.author,
            after=self.after,
            before=self.before,
        )


_UNLIMITED = FilterBody()


class _Knobs(BaseModel):
    """What a question may say besides its query, its filters and its plan."""

    workspace: WorkspaceName = ""
    limit: _Limit = 10
    offset: int = Field(default=0, ge=0, le=_DEEPEST, description="Hits that are passed over; a cursor is steadier.")
    cursor: str = Field(
        default="", max_length=1_000, description="The next_cursor of an answer to the same question: its next page."
    )
    facets: list[Literal[FACETS]] = Field(  # type: ignore[valid-type]
        default=[], max_length=len(FACETS), description="Properties whose values are counted over all that matches."
    )
    exclude_pattern: str | None = Field(
        default=None,
        max_length=LONGEST_PATTERN,
        description="A regular expression; passages that it matches are left out. From anybody but the owner it may "
        "hold no repetition, no group and no alternative.",
    )
    min_score: float = Field(default=0.0, ge=0, le=1, description="Hits that score less are left out.")
    context: int = Field(default=0, ge=0, le=100, description="Lines shown before and after each matching line.")
    explain: bool = Field(default=False, description="Tell more about how the query was understood and scored.")
    profile: str = Field(default="", max_length=100, description="The profile to follow; empty: that of the settings.")
    mode: Literal[MODES] | None = Field(  # type: ignore[valid-type]
        default=None, description="By words and meaning, by words alone, or by meaning alone."
    )
    alpha: float | None = Field(default=None, ge=0, le=1, description="Weight of meaning against words.")
    fusion: Literal[FUSIONS] | None = Field(  # type: ignore[valid-type]
        default=None, description="How words and meaning become one ranking."
    )
    words: Literal[WORDS] | None = Field(  # type: ignore[valid-type]
        default=None, description="Which words of the query a hit must have."
    )
    relax: bool | None = Field(
        default=None, description="Whether to show, apart, what is found without a demand that nothing fulfils."
    )
    group: Literal[GROUPINGS] | None = Field(  # type: ignore[valid-type]
        default=None, description="One hit for each passage, for each resource, or for each thread of messages."
    )
    quick: bool = Field(default=False, description="Leave out what takes long: reading on and reranking.")
    timeout_s: float = Field(
        default=0.0, ge=0, le=3_600, description="After this time the answer is what was found; 0: serve.timeout_s."
    )
    within: str | None = Field(
        default=None, max_length=1_000, description="The folder that is asked, and that paths are relative to."
    )
    in_context: bool = Field(default=True, description="Let the project file of the workspace limit the search.")

    def _question(self, query: str, filters: Filters, planned: dict[str, Any], caller: Caller) -> Question:
        given = {name: getattr(self, name) for name in ("mode", "alpha", "fusion", "words", "relax", "group")}
        given = {name: value for name, value in given.items() if value is not None}
        if twice := sorted(given.keys() & planned.keys()):
            raise InvalidValueError(f"{twice[0]} is there twice", hint=f"leave out {twice[0]} or plan.{twice[0]}")
        request = SearchRequest(
            query=query,
            limit=self.limit,
            offset=self.offset,
            cursor=self.cursor,
            facets=tuple(dict.fromkeys(self.facets)),
            filters=filters,
            exclude_pattern=checked_pattern(self.exclude_pattern, is_owner=caller.is_owner),
            min_score=self.min_score,
            context=self.context,
            explain=self.explain,
            profile=self.profile,
            in_context=self.in_context,
            within=self.within,
            quick=self.quick,
            timeout_s=self.timeout_s,
        )
        return Question(request, self.workspace, {**given, **planned})


class SearchBody(_Knobs):
    """A question with everything that bears on its answer."""

    model_config = _IN_BODY

    query: QueryText
    # Shared, as nobody can change it: the framework would make a deep copy of a default for every request.
    filters: FilterBody = Field(default_factory=lambda: _UNLIMITED, description="What the answer is limited to.")
    plan: PlanBody | None = Field(  # type: ignore[valid-type]
        default=None, description="Any fields of the plan that differ from those of the profile."
    )

    def question(self, caller: Caller) -> Question:
        """Raises InvalidValueError naming what cannot be used."""
        planned: dict[str, Any] = (
            {} if self.plan is None else {name: getattr(self.plan, name) for name in self.plan.model_fields_set}
        )
        planned |= {"types": tuple(planned["types"])} if "types" in planned else {}
        return self._question(self.query, self.filters.filters(), planned, caller)


class SearchParameters(_Knobs, FilterBody):
    """The same in the address; what is a list is given several times."""

    model_config = _IN_ADDRESS

    q: QueryText

    def question(self, caller: Caller) -> Question:
        """Raises InvalidValueError naming what cannot be used."""
        return self._question(self.q, self.filters(), {}, caller)


class ExplainParameters(SearchParameters):
    """A question, and the document that is asked about."""

    id: str = Field(
        max_length=4_000, description="The id of a hit or a resource, or a path, also with a line: notes.md:12."
    )


class WorkspaceParameters(BaseModel):
    """Which workspace is meant."""

    model_config = _IN_ADDRESS

    workspace: WorkspaceName = ""


class NameParameters(WorkspaceParameters):
    """How many neighbours of a document are shown."""

    limit: _Limit = 10


class SuggestParameters(NameParameters):
    """A text that is being typed."""

    q: Annotated[str, Field(max_length=_LONGEST_QUERY, description="What has been typed so far.")]
