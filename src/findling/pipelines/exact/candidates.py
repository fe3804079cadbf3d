"""Candidates of an exact search: the resources whose texts have to be looked at."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from findling.domain.reports import GrepRequest
from findling.domain.values import counted
from findling.pipelines.retrieve.legs import Retrievers

__all__ = ["candidate_resources"]


def candidate_resources(legs: Retrievers, asked: GrepRequest, numbers: Sequence[int]) -> tuple[Collection[int], str]:
    """Those of the resources that may match, and the strategy that found them."""
    return numbers, f"scan of {counted(len(numbers), 'text')}"
