"""What cosines a model gives to texts that have nothing to do with each other, found out with a few of them."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from findling.domain.strangers import read_json

if TYPE_CHECKING:
    from findling.domain.ports import Vectors

__all__ = ["usual_cosines"]

_QUERIES = (
    "how to bake bread at home",
    "symptoms of a heart attack",
    "sort a list in python",
    "causes of the first world war",
    "cheap flights to the coast",
    "what is a black hole",
    "train a puppy to sit",
    "mortgage interest rates",
)
_PASSAGES = (
    "The glacier retreated by forty metres last summer, and the meltwater carved a new channel through the moraine.",
    "Violins of that period were varnished with a mixture of oil and resin whose recipe has been lost.",
    "The committee adjourned without a vote after two members objected to the wording of the amendment.",
    "Each server keeps a log of the transactions it has seen and replays it when it starts again.",
    "Bees find their way by the position of the sun and pass it on to others in a dance.",
    "The goalkeeper saved two penalties before the captain scored in the last minute of extra time.",
    "Concrete reaches most of its strength within a month, provided that it is kept moist.",
    "Her second novel is set in a harbour town where nobody will speak about the shipwreck.",
)
_SHORTEST_DEVIATION = 0.01


def usual_cosines(
    fingerprint: str, embed: Callable[[Sequence[str], str], Vectors], memory: Path
) -> tuple[float, float]:
    """Mean and deviation, kept in the file `memory` for the next process."""
    try:
        known = read_json(memory.read_text(encoding="utf-8"))
        mean, deviation = known[fingerprint]
        return float(mean), float(deviation)
    except (OSError, ValueError, KeyError, TypeError):  # not there, or not readable: it is found out anew
        pass
    cosines = embed(_QUERIES, "query") @ embed(_PASSAGES, "passage").T
    # Sixty-four pairs of short texts lie closer together than the passages of a whole collection.
    found = float(cosines.mean()), max(float(cosines.std()), _SHORTEST_DEVIATION)
    with suppress(OSError, ValueError):
        kept = read_json(memory.read_text(encoding="utf-8")) if memory.is_file() else {}
        memory.parent.mkdir(parents=True, exist_ok=True)
        fresh = memory.with_name(f"{memory.name}.{os.getpid()}")
        fresh.write_text(json.dumps({**kept, fingerprint: found}), encoding="utf-8")
        fresh.replace(memory)
    return found
