"""The same content gives the same scores, however it came, to its owner and to callers who see a part of it."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

import findling
from findling.domain.resources import Resource
from findling.service.upkeep.compaction import compact_if_worthwhile

WORDS = [f"{first}{second}{third}" for first in "bdfgk" for second in "aeiou" for third in "lmnr"]
QUERIES = ("bal", "dem gin fol", "bal bal kur", '"bal bam" gel')


def contents(count: int = 90) -> list[tuple[Resource, str]]:
    random = Random(43)
    rarity = [1 / (place + 1) for place in range(len(WORDS))]
    texts = [" ".join(random.choices(WORDS, rarity, k=random.randint(2, 50))) for _ in range(count)]
    seen_by = [("user:ana",) if number % 3 else None for number in range(count)]
    resources = [
        Resource(rid=f"r{number}", path=f"{'old' if number < 39 else 'new'}/{number}", visibility=who)
        for number, who in enumerate(seen_by)
    ]
    return list(zip(resources, texts, strict=True))


def engine(place: Path) -> findling.Engine:
    place.mkdir()
    values = {"store.home": str(place / "home"), "semantic.refine": "never", "search.profile": "keyword"}
    return findling.open(place, settings=findling.Settings().override(values, "test"))


def answers(opened: findling.Engine, principals: list[str] | None) -> list[list[tuple[str, float]]]:
    who = None if principals is None else tuple(principals)
    found = [opened.search(query, refresh=False, principals=who, limit=100) for query in QUERIES]
    return [[(hit.rid, hit.score) for hit in hits] for hits in found]


@pytest.mark.parametrize("principals", [None, ["user:ana"]])
def test_scores_do_not_tell_of_the_history(tmp_path: Path, principals: list[str] | None) -> None:
    given = contents()
    with engine(tmp_path / "once") as once, engine(tmp_path / "each") as each:
        once.add(given)
        for start in range(0, len(given), 5):
            each.add(given[start : start + 5])
            answers(each, principals)
        assert any(answers(once, principals))
        assert answers(each, principals) == answers(once, principals)


@pytest.mark.parametrize("principals", [None, ["user:ana"]])
def test_what_was_forgotten_leaves_no_trace(tmp_path: Path, principals: list[str] | None) -> None:
    given = contents()
    with engine(tmp_path / "less") as less, engine(tmp_path / "kept") as kept:
        less.add(given)
        answers(less, principals)
        assert less.forget(["old"]) == 39
        kept.add(given[39:])
        at_once, expected = answers(less, principals), answers(kept, principals)
        assert compact_if_worthwhile(less.writer.files, less.writer.settings)
        for found in (at_once, answers(less, principals)):
            for these, those in zip(found, expected, strict=True):
                assert [rid for rid, _ in these] == [rid for rid, _ in those]
                assert [score for _, score in these] == pytest.approx([score for _, score in those], abs=1e-6)
