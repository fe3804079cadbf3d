"""The loss of a score by age."""

from __future__ import annotations

from math import inf, nan

import pytest

from findling.ranking.fusion import decayed


def test_decay_by_hand() -> None:
    assert [decayed(age, 30) for age in (-5, 0, 30, 60)] == [1.0, 1.0, 0.5, 0.25]
    assert decayed(1e299, 1e-9) == 0.0


@pytest.mark.parametrize(("age", "half_life"), [(nan, 30.0), (inf, 30.0), (1.0, 0.0), (1.0, -2.0), (1.0, nan)])
def test_decay_refuses_what_makes_no_sense(age: float, half_life: float) -> None:
    with pytest.raises(ValueError, match=r"age|half-life"):
        decayed(age, half_life)
