"""A leg beside words and meaning: one line in the registry, and it is in fusion, receipt, plan, JSON and text."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from findling.domain.backends import Leg
from findling.domain.errors import InvalidValueError
from findling.domain.plans import Plan
from findling.domain.ports import Change, ReadStore
from findling.domain.queries import LegQuery, SearchRequest
from findling.domain.resources import Resource
from findling.domain.results import Evidence, SearchAnswer
from findling.faces.cli.output.rendering import make_view, render_text
from findling.faces.mcp.tools.tool_results import describe_search
from findling.pipelines.lookup.federated import fuse_across
from findling.pipelines.retrieve.legs import LEGS, LegKind
from findling.service.client.daemon import read_answer
from findling.service.engine.engine import Engine, open_engine
from findling.service.settings.settings import Settings

NEEDLE = "nnectionPo"
"""A part of a word: neither words nor meaning find it."""


class SubstringLeg:
    """Finds chunks that hold the query letter by letter."""

    name = "letters"
    least = 1.0

    def __init__(self) -> None:
        self._texts: dict[int, str] = {}
        self._seq = 0

    @classmethod
    def over(cls, store: ReadStore) -> SubstringLeg:
        """The leg over all that a caller may see."""
        leg = cls()
        for resource in store.resources():
            document = store.document(resource.rid)
            if document is not None:
                cids = frozenset(chunk.cid for chunk in document.chunks)
                leg.apply([Change(0, resource.rid, (), cids, document)])
        return leg

    def seq(self) -> int:
        return self._seq

    def apply(self, changes: Iterable[Change]) -> None:
        for change in changes:
            for cid in change.dropped:
                self._texts.pop(cid, None)
            if change.document is not None:
                text = change.document.text
                self._texts |= {one.cid: text[one.start : one.end] for one in change.document.chunks}

    def commit(self, seq: int) -> None:
        self._seq = seq

    def clear(self) -> None:
        self._texts.clear()

    def close(self) -> None:
        self.clear()

    def search(self, query: LegQuery, limit: int, also: Sequence[int] = ()) -> Mapping[int, Evidence]:
        counts = {cid: text.count(query.text) for cid, text in self._texts.items()}
        best = sorted((cid for cid in counts if counts[cid]), key=lambda cid: (-counts[cid], cid))[:limit]
        return {
            cid: Evidence(self.name, counts[cid], min(counts[cid] / 2, 1), 0.9, f"{query.text} to the letter", "times")
            for cid in dict.fromkeys([*best, *also])
            if counts.get(cid)
        }

    def second_look(self, query: LegQuery, best: Sequence[int]) -> Mapping[int, Evidence]:
        return {}


@pytest.fixture
def exact() -> Iterator[None]:
    leg: Leg = SubstringLeg()
    modes = ("hybrid", "keyword")
    LEGS[leg.name] = LegKind(leg.name, modes, lambda legs, meaning: SubstringLeg.over(legs.store), 0.5)
    yield
    del LEGS[leg.name]


@pytest.fixture
def engine(tmp_path: Path, exact: None) -> Iterator[Engine]:
    root = tmp_path / "root"
    root.mkdir()
    (root / "pool.py").write_text("class ConnectionPool:\n    '''ConnectionPool keeps sockets open.'''\n")
    (root / "other.md").write_text("Sockets are opened by a pool of workers.\n")
    own = {"store.home": str(tmp_path / "home"), "semantic.model": "none", "semantic.refine": "never"}
    with open_engine(root, settings=Settings().override(own, "test")) as opened:
        opened.index()
        yield opened


def asked(
    engine: Engine, mode: str, query: str = NEEDLE, legs: Mapping[str, float] | None = None, **options: object
) -> SearchAnswer:
    plan = Plan(mode=mode, typos="ignore", route=False, leg_weights=legs or {})
    request = SearchRequest(query=query, plan=plan, explain=True, **options)  # type: ignore[arg-type]
    return engine.search(request, refresh=False)


@pytest.mark.parametrize("mode", ["hybrid", "keyword"])
def test_a_registered_leg_finds_ranks_and_is_told(engine: Engine, mode: str) -> None:
    answer = asked(engine, mode)
    assert [hit.path for hit in answer] == ["pool.py"], "neither words nor meaning find a part of a word"
    (hit,) = answer
    part = next(part for part in hit.receipt.parts if part.leg == "letters")
    assert (part.rank, part.raw, part.measure, part.weight, part.value) == (1, 2, "times", 0.5, 0.5)
    assert part.why == f"{NEEDLE} to the letter"
    assert hit.score == hit.receipt.fused_score == 0.9 == pytest.approx(hit.receipt.recomputed())
    assert (hit.receipt.keyword_rank, hit.receipt.words) == (0, 0.0)
    assert answer.plan["legs"] == (["keyword", "semantic", "letters"] if mode == "hybrid" else ["keyword", "letters"])


def test_its_evidence_is_in_every_output(engine: Engine, tmp_path: Path) -> None:
    answer = asked(engine, "hybrid")
    text = render_text(answer, make_view(tmp_path, color=False, terminal=False, explain=True))
    assert f"letters rank 1, times 2 ({NEEDLE} to the letter)" in text
    assert "0.900 by letters" in text and "searched by its words and its meaning and letters" in text
    document = json.loads(json.dumps(answer.to_dict()))
    assert [part["leg"] for part in document["hits"][0]["receipt"]["parts"]][-1] == "letters"
    assert read_answer(document).hits == answer.hits
    (told, *_) = describe_search(answer, None, {}, is_full=True)["results"]
    assert f"letters: {NEEDLE} to the letter" in told["why"]
    assert told["metadata"]["receipt"]["letters"] == {
        "rank": 1,
        "times": 2,
        "evidence": 0.9,
        "why": f"{NEEDLE} to the letter",
    }
    (hit,) = answer
    lesser = replace(hit, receipt=replace(hit.receipt, parts=()))
    assert [one.answer for one in fuse_across([replace(answer, hits=(lesser,)), answer], 5)] == [1, 0]


def test_an_explanation_has_its_verdict(engine: Engine) -> None:
    told = engine.explain(SearchRequest(query=NEEDLE, plan=Plan(typos="ignore", route=False)), "pool.py", refresh=False)
    verdicts = {one.leg: (one.found, one.rank, one.score) for one in told.legs}
    assert told.found and verdicts["letters"] == (True, 1, 2.0)
    assert list(verdicts) == ["keyword", "semantic", "letters"]


def test_it_adds_to_what_words_find_and_keeps_to_conditions(engine: Engine) -> None:
    answer = asked(engine, "keyword", "sockets")
    shares = {hit.path: {part.leg: part.value for part in hit.receipt.parts} for hit in answer}
    assert shares["pool.py"]["letters"] == 0.25 and "letters" not in shares["other.md"]
    assert [hit.path for hit in asked(engine, "keyword", f"{NEEDLE} -workers")] == ["pool.py"]
    assert not asked(engine, "keyword", f"{NEEDLE} -sockets").hits


def test_the_plan_weighs_it_or_leaves_it_out(engine: Engine) -> None:
    (hit,) = asked(engine, "keyword", legs={"letters": 0.2})
    assert [(part.leg, part.weight) for part in hit.receipt.parts] == [("letters", 0.2)]
    silent = asked(engine, "keyword", legs={"letters": 0.0})
    assert (silent.hits, silent.plan["legs"]) == ((), ["keyword"])
    with pytest.raises(InvalidValueError, match="there is no leg 'graph' to weigh"):
        asked(engine, "keyword", legs={"graph": 0.5})


def test_it_holds_what_a_caller_may_see(engine: Engine) -> None:
    seen = {"rid": "note:own", "type": "note", "visibility": ("user:bob",)}
    hidden = {"rid": "note:hidden", "type": "note", "visibility": ("user:ann",)}
    notes = [(Resource(**one), f"a{NEEDLE}b by {one['rid']}") for one in (seen, hidden)]  # type: ignore[arg-type]
    engine.add(notes)
    assert {hit.rid for hit in asked(engine, "hybrid")} == {"file:pool.py", "note:own", "note:hidden"}
    assert [hit.rid for hit in asked(engine, "hybrid", principals=("user:bob",))] == ["note:own"]


@pytest.mark.parametrize("fusion", ["weighted", "rrf"])
def test_a_leg_whose_strength_is_no_number_is_refused(
    engine: Engine, monkeypatch: pytest.MonkeyPatch, fusion: str
) -> None:
    said = {1: Evidence("letters", 1.0, float("nan"), 0.9)}
    monkeypatch.setattr(SubstringLeg, "search", lambda *_: said)
    plan = Plan(typos="ignore", route=False, fusion=fusion)
    with pytest.raises(ValueError, match="leg letters gives a strength that is no finite number"):
        engine.search(SearchRequest(query="sockets pool", plan=plan), refresh=False)
