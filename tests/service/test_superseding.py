"""A superseded item stands below its successor, in every part of the answer and for every caller."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from findling.domain.resources import Chunk, Resource, StoredChunk
from findling.pipelines.answer.rankings import Ranked
from findling.pipelines.answer.versions import demote
from findling.pipelines.retrieve.legs import Candidate
from findling.service.engine.engine import Engine, open_engine
from findling.service.settings.settings import Settings

Rids = list[str]


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[Engine]:
    own = {"store.home": str(tmp_path / "home"), "search.mode": "keyword", "semantic.refine": "never"}
    (tmp_path / "root").mkdir()
    with open_engine(tmp_path / "root", settings=Settings().override(own, "test")) as opened:
        yield opened


def decision(number: int, *, supersedes: str = "", visibility: tuple[str, ...] | None = None) -> Resource:
    fields = {"supersedes": supersedes} if supersedes else {}
    return Resource(rid=f"d:{number:02}", type="decision", fields=fields, visibility=visibility)


def rids(engine: Engine, query: str, **options: Any) -> Rids:
    return [hit.rid for hit in engine.search(query, refresh=False, **options)]


def test_pages_are_cut_from_one_ranking(engine: Engine) -> None:
    # The ten best by words are superseded by the ten worst; ten more stand for themselves.
    items = [(decision(n), "deploy " * 9 + f"number{n}") for n in range(10)]
    items += [(decision(n), "deploy by hand and then rest a while") for n in range(10, 20)]
    items += [
        (
            decision(n, supersedes=f"d:{n - 20:02}"),
            "deploy with a pipeline that takes ever so many more words than others",
        )
        for n in range(20, 30)
    ]
    engine.add(items)
    whole = rids(engine, "deploy", limit=30)
    assert len(set(whole)) == 30
    assert all(whole.index(f"d:{n:02}") > whole.index(f"d:{n + 20:02}") for n in range(10))
    for size in (1, 3, 10):
        pages = [rids(engine, "deploy", limit=size, offset=offset) for offset in range(0, 30, size)]
        assert [rid for page in pages for rid in page] == whole
    told = engine.explain("deploy", whole[0], refresh=False)
    assert (told.found, told.rank) == (True, 1)


def test_a_long_chain_keeps_its_order_and_its_head_on_top(engine: Engine) -> None:
    engine.add([(decision(0), "cache cache cache cache")])
    engine.add([(decision(n, supersedes=f"d:{n - 1:02}"), "cache " + "more words " * n) for n in range(1, 40)])
    assert rids(engine, "cache", limit=10) == [f"d:{n:02}" for n in range(39, 29, -1)]
    assert rids(engine, "cache", limit=1) == ["d:39"]
    scores = [hit.score for hit in engine.search("cache", refresh=False, limit=40)]
    assert scores == sorted(scores, reverse=True) and scores[-1] > 0


def test_a_chain_that_bites_its_tail_ends(engine: Engine) -> None:
    engine.add([(decision(1, supersedes="d:02"), "loop"), (decision(2, supersedes="d:01"), "loop")])
    assert sorted(rids(engine, "loop")) == ["d:01", "d:02"]


def test_nobody_learns_of_a_successor_they_may_not_see(engine: Engine) -> None:
    engine.add(
        [
            (decision(1, visibility=("user:bob", "user:eve")), "merger"),
            (decision(3, visibility=("user:bob",)), "merger"),
        ]
    )
    engine.add([(decision(2, supersedes="d:01", visibility=("user:eve",)), "merger secret")])
    bob, eve = ("user:bob",), ("user:eve",)
    answer = engine.search("merger", refresh=False, principals=bob)
    assert sorted(hit.rid for hit in answer) == ["d:01", "d:03"]
    assert "d:02" not in str(answer.to_dict())
    assert rids(engine, "merger is:head", principals=bob) == [hit.rid for hit in answer]
    assert rids(engine, "merger", principals=eve) == ["d:02", "d:01"]
    (old,) = [hit for hit in engine.search("merger", refresh=False, principals=eve) if hit.rid == "d:01"]
    assert old.receipt.superseded_by == ("d:02",)


def test_what_people_may_not_know_stands_in_no_note(engine: Engine) -> None:
    engine.add(
        [(decision(1, visibility=("user:eve",)), "secretword"), (decision(2, visibility=("user:bob",)), "tapirs")]
    )
    bob = ("user:bob",)
    for word in ("secretword", "nonsenseword"):
        answer = engine.search(f"tapirs AND {word}", refresh=False, principals=bob, explain=True)
        relaxed = f"nothing has tapirs AND {word}; what is relaxed below does without that demand"
        assert (answer.notes, answer.did_you_mean, answer.unknown_terms) == ((relaxed,), (), (word,))
        assert answer.plan["forms"] == {"tapirs": ["tapirs"], word: []}


class CountedLinks(dict[str, str]):
    """Successors that count how often they are asked for."""

    asked = 0

    def __getitem__(self, rid: str) -> str:
        self.asked += 1
        return super().__getitem__(rid)

    def get(self, rid: str, default: str | None = None) -> str | None:  # type: ignore[override]
        self.asked += 1
        return super().get(rid, default)


def test_a_chain_of_sixteen_hundred_is_followed_once() -> None:
    size = 1600
    stored = [StoredChunk(Chunk(n, b"", 0, 0, 1, 1, 1, ()), decision(n), "x") for n in range(size)]
    ranked = [Ranked(one, Candidate(one.chunk.cid, 0.9), 0.9) for one in stored]
    links = CountedLinks({f"d:{n:02}": f"d:{n + 1:02}" for n in range(size - 1)})
    moved = demote(ranked, links)
    assert [entry.stored.chunk.cid for entry in moved] == list(range(size - 1, -1, -1))
    assert moved[-1].steps[-1].reason == f"replaced by d:{size - 1}"
    assert links.asked < 5 * size
