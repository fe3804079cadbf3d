"""BM25 with other parameters than tantivy's: the score is built again from the parts of its explanation."""

from __future__ import annotations

import json
from typing import Any

from findling.domain.backends import Scoring

__all__ = ["rescore"]


def rescore(explanation: str, scoring: Scoring) -> float:
    """The score that an explained hit would have had under these parameters."""
    return _value(json.loads(explanation), scoring)


def _value(node: dict[str, Any], scoring: Scoring) -> float:
    details: list[dict[str, Any]] = node.get("details") or []
    if not details:
        return float(node["value"])
    frequency = _frequency_part(details)
    if frequency is not None:
        freq, _, _, length, average = (float(part["value"]) for part in frequency)
        idf = float(details[1]["value"])
        saturation = freq + scoring.k1 * (1 - scoring.b + scoring.b * length / average)
        return idf * (scoring.k1 + 1) * freq / saturation
    before = [float(part["value"]) for part in details]
    after = [_value(part, scoring) for part in details]
    if len(before) == 1:  # a boost
        return after[0] * (float(node["value"]) / before[0] if before[0] else 1.0)
    # A sum, or a best-of with a share of the rest: that share is what the old values tell.
    rest = sum(before) - max(before)
    share = (float(node["value"]) - max(before)) / rest if rest > 1e-9 else 0.0
    return max(after) + share * (sum(after) - max(after))


def _frequency_part(details: list[dict[str, Any]]) -> list[dict[str, Any]] | None:
    """freq, k1, b, dl and avgdl, when these are the three factors (k1 + 1), idf and saturated frequency of a term."""
    if len(details) != 3:
        return None
    parts = details[2].get("details") or []
    named = len(parts) == 5 and str(parts[0]["description"]).startswith("freq")
    return parts if named else None
