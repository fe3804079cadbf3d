"""The fields of a plan as a request may give them, each with the bounds that a plan has anyway."""

from __future__ import annotations

from collections.abc import Mapping
from math import isinf
from typing import Annotated, Any, Literal, cast

from pydantic import BaseModel, ConfigDict, Field, create_model

from findling.pipelines.plan_files import PLAN_RULES, Rule
from findling.service.settings import get_setting

__all__ = ["PlanBody"]

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
