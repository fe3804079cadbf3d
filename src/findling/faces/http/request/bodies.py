"""Bodies and parameters of requests, each knob with its bounds, and the question that they make."""

from __future__ import annotations

from collections.abc import Mapping
from math import isinf
from typing import Annotated, Any, Literal, NamedTuple

from pydantic import BaseModel, ConfigDict, Field, create_model

from findling.domain.errors import InvalidValueError
from findling.domain.permissions import Caller
from findling.domain.plans import KNOBS, Knob
from findling.domain.queries import FACETS, OFFERED, SCOPES, Filters, SearchRequest
from findling.domain.strangers import LONGEST_PATTERN, checked_pattern
from findling.service.settings.written_filters import written_filters

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


def _field(knob: Knob) -> tuple[Any, Any]:
    kind = Literal[knob.choices] if knob.choices else _KINDS[knob.kind]
    most = min(knob.maximum, knob.served)
    limits: dict[str, Any] = {}
    if knob.kind in ("count", "number"):
        limits = {"ge": knob.minimum} | ({} if isinf(most) else {"le": most})
    # Without a default in the schema: what is left out is as in the profile.
    return (kind | None if knob.optional else kind), Field(default=None, description=knob.help, **limits)


_FIELDS: dict[str, Any] = {knob.name: _field(knob) for knob in KNOBS.values()}

PlanBody = create_model(
    "PlanBody",
    __config__=ConfigDict(extra="forbid", strict=True, frozen=True, allow_inf_nan=False, title="Plan"),
    __doc__="Fields of the plan that differ from those of the profile.",
    **_FIELDS,
)
"""Any fields of a plan; `model_fields_set` says which were given."""

_BESIDE: dict[str, Any] = {
    name: (kind | None, settings) for name, (kind, settings) in _FIELDS.items() if KNOBS[name].http
}
_Shortcuts = create_model("Shortcuts", **_BESIDE)
"""The fields that a request may have beside its query."""

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

IN_BODY = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)
_IN_ADDRESS = ConfigDict(extra="forbid", frozen=True, strict=False, allow_inf_nan=False)


class PlacedRequest(NamedTuple):
    """A request, and the workspace that is asked."""

    request: SearchRequest
    workspace: str


_Moment: Any = float | Annotated[str, Field(max_length=40)] | None
_OFFERED: dict[str, Any] = {
    name: (kind, Field(default=default, description=one.metadata["help"]))
    for name, one in OFFERED.items()
    for kind, default in [(_Texts, list[str]()) if one.default == () else (_Moment, None)]
}


class FilterBody(create_model("Offered", **_OFFERED)):  # type: ignore[misc]
    """Filters of the answer; an empty list does not filter."""

    model_config = IN_BODY

    def filters(self) -> Filters:
        """Raises InvalidValueError for a date that is none, and for limits that contradict each other."""
        return written_filters(**{name: getattr(self, name) for name in OFFERED})


_UNLIMITED = FilterBody()


class _Knobs(_Shortcuts):  # type: ignore[valid-type,misc]
    """Parameters of a question besides its query, its filters and its plan."""

    workspace: WorkspaceName = ""
    limit: _Limit = 10
    offset: int = Field(default=0, ge=0, le=_DEEPEST, description="Hits that are passed over; a cursor is steadier.")
    cursor: str = Field(
        default="", max_length=1_000, description="The next_cursor of an answer to the same question: its next page."
    )
    facets: list[Literal[FACETS]] = Field(  # type: ignore[valid-type]
        default=[], max_length=len(FACETS), description="Properties whose values are counted over all that matches."
    )
    all: bool = Field(default=False, description="List every file that matches: the facet `file`.")
    exclude_pattern: str | None = Field(
        default=None,
        max_length=LONGEST_PATTERN,
        description="A regular expression; passages that it matches are left out. From anybody but the owner it may "
        "hold no repetition, no group and no alternative.",
    )
    context: int = Field(default=0, ge=0, le=100, description="Lines shown before and after each matching line.")
    explain: bool = Field(default=False, description="Tell more about how the query was understood and scored.")
    profile: str = Field(default="", max_length=100, description="The profile to follow; empty: that of the settings.")
    quick: bool = Field(default=False, description="Leave out what takes long: reading on and judging.")
    patient: bool = Field(default=False, description="Have a judge read the best hits, where one is at hand.")
    timeout_s: float = Field(
        default=0.0, ge=0, le=3_600, description="After this time the answer is what was found; 0: serve.timeout_s."
    )
    within: str | None = Field(
        default=None, max_length=1_000, description="The folder that is asked, and that paths are relative to."
    )
    in_context: bool = Field(default=True, description="Let the project file of the workspace limit the search.")
    scope: Literal[SCOPES] = Field(SCOPES[0], description="`all`: every workspace.")  # type: ignore[valid-type]

    def _question(self, query: str, filters: Filters, planned: dict[str, Any], caller: Caller) -> PlacedRequest:
        given = {name: getattr(self, name) for name in _Shortcuts.model_fields}
        given = {name: value for name, value in given.items() if value is not None}
        if twice := sorted(given.keys() & planned.keys()):
            raise InvalidValueError(f"{twice[0]} is there twice", hint=f"leave out {twice[0]} or plan.{twice[0]}")
        values = {name: getattr(self, name) for name in _OF_REQUEST}
        values["facets"] = tuple(dict.fromkeys([*self.facets, *(("file",) if self.all else ())]))
        if self.exclude_pattern is not None:
            checked_pattern(self.exclude_pattern, is_owner=caller.is_owner)
        request = SearchRequest(query=query, filters=filters, changes={**given, **planned}, **values)
        return PlacedRequest(request, self.workspace)


_OF_REQUEST = _Knobs.model_fields.keys() - _Shortcuts.model_fields.keys() - {"all", "workspace"}
"""Fields that a request has under the same name."""


class SearchBody(_Knobs):
    """A question with everything that bears on its answer."""

    model_config = IN_BODY

    query: QueryText
    # Shared, as nobody can change it: the framework would make a deep copy of a default for every request.
    filters: FilterBody = Field(default_factory=lambda: _UNLIMITED, description="What the answer is limited to.")
    plan: PlanBody | None = Field(  # type: ignore[valid-type]
        default=None, description="Any fields of the plan that differ from those of the profile."
    )

    def question(self, caller: Caller) -> PlacedRequest:
        """Raises InvalidValueError naming what cannot be used."""
        planned: dict[str, Any] = (
            {} if self.plan is None else {name: getattr(self.plan, name) for name in self.plan.model_fields_set}
        )
        return self._question(self.query, self.filters.filters(), planned, caller)


class SearchParameters(_Knobs, FilterBody):
    """The same in the address; what is a list is given several times."""

    model_config = _IN_ADDRESS

    q: QueryText

    def question(self, caller: Caller) -> PlacedRequest:
        """Raises InvalidValueError naming what cannot be used."""
        return self._question(self.q, self.filters(), {}, caller)


class ExplainParameters(SearchParameters):
    """A question, and the document that is asked about."""

    id: str = Field(
        max_length=4_000, description="The id of a hit or a resource, or a path, also with a line: notes.md:12."
    )


class WorkspaceParameters(BaseModel):
    """The workspace of a request."""

    model_config = _IN_ADDRESS

    workspace: WorkspaceName = ""


class WorkspaceBody(BaseModel):
    """The same in a body."""

    model_config = IN_BODY

    workspace: WorkspaceName = ""


class NameParameters(WorkspaceParameters):
    """The number of neighbours of a document."""

    limit: _Limit = 10


class SuggestParameters(NameParameters):
    """A text that is being typed."""

    q: Annotated[str, Field(max_length=_LONGEST_QUERY, description="What has been typed so far.")]
