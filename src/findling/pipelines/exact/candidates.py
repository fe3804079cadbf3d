"""Candidates of an exact search: the resources whose texts have to be looked at."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from findling.domain.queries import Pattern
from findling.domain.reports import GrepRequest
from findling.domain.values import counted
from findling.pipelines.retrieve.legs import Retrievers
from findling.pipelines.retrieve.pattern_matches import narrowed
from findling.text.query.patterns import required_trigrams


def candidate_resources(legs: Retrievers, asked: GrepRequest, numbers: Sequence[int]) -> tuple[Collection[int], str]:
    """Those of the resources that may match, and the strategy that found them."""
    # Other lines than those that match are nearly everywhere.
    required = [required_trigrams(Pattern(one, not asked.fixed, False)) for one in asked.patterns]
    needed = [None] if asked.invert or None in required else required
    found = {number for one in needed for number in narrowed(legs, one, numbers)[0]}
    if len(found) == len(numbers):
        return numbers, f"scan of {counted(len(numbers), 'text')}"
    return found, f"exact leg: {len(found):,} of {counted(len(numbers), 'text')}"
