"""The choice of parts that a commit writes again: a leg of many small commits stays one of few parts."""

from __future__ import annotations

from collections.abc import Mapping

__all__ = ["worn_out"]


def worn_out(living: Mapping[int, tuple[int, int]], added: int, most: int) -> set[int]:
    """Parts to be written again with `added` entries, given of each the entries that live, and all that it has.

    These are parts of which a third is dead, and small ones that are not much larger than what is written anyway. So an
    entry is written again whenever the number of entries has doubled, until its part has half of the `most` entries.
    """
    chosen = {part for part, (live, size) in living.items() if 3 * (size - live) > size}
    written = added + sum(living[part][0] for part in chosen)
    if not written:
        return chosen
    for live, part in sorted((live, part) for part, (live, _) in living.items() if part not in chosen):
        if live > most // 2 or live > 2 * written:
            break
        chosen.add(part)
        written += live
    return chosen
