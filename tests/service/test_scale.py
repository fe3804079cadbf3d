"""A score means the same in every state of an index, and what is far below the best hit is only counted."""

from __future__ import annotations

import heapq
import random
import shutil
import statistics
import stringprep
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from findling.domain.plans import Plan
from findling.domain.results import SearchAnswer
from findling.pipelines.evaluation.evaluation import no_answer
from findling.service.engine.engine import Engine, open_engine
from findling.service.settings.settings import Settings

SUBJECTS = {
    "bread": "Knead the dough of flour, water, salt and yeast, let it rise, then bake the loaf in a hot oven.",
    "football": "The goalkeeper saved a penalty, and the striker scored in the last minute of the match.",
    "tax": "A company pays tax on its profit; losses of earlier years are deducted from the income.",
    "garden": "Prune the roses in spring, feed the soil with compost, and water the beds in the evening.",
    "database": "An index makes a query fast; a transaction is committed to the table as a whole or rolled back.",
    "music": "The violin plays the melody while the orchestra follows the conductor through the symphony.",
    "medicine": "The doctor treats a fever with rest and tablets, and examines the patient for an infection.",
    "travel": "The train crosses the border at night; passengers show their passport and sleep until morning.",
}
ASKED = {
    "bread": ["how to bake bread", "dough with yeast"],
    "football": ["who saved the penalty", "striker scored in the match"],
    "tax": ["how much tax does a company pay", "deduct losses from income"],
    "garden": ["when to prune roses", "compost for the soil"],
    "database": ["why is my query slow", "transaction rolled back"],
    "music": ["orchestra and conductor", "melody of the violin"],
    "medicine": ["treat a fever", "is it an infection"],
    "travel": ["crossing the border by train", "show a passport at night"],
}
FOREIGN = [
    "black holes in distant galaxies",
    "knitting a woollen scarf",
    "price of crude petroleum",
    "dinosaur fossils of the jurassic",
    "haircut for curly hair",
    "ancient egyptian pyramids",
    "chess opening with the queen",
    "volcano eruption in iceland",
]


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder `2` with a file a subject, and a hundred more files that say little."""
    root = tmp_path_factory.mktemp("scale") / "root"
    (root / "2").mkdir(parents=True)
    for name, text in SUBJECTS.items():
        (root / "2" / f"{name}.md").write_text(f"# {name.title()}\n\n{text}\n")
    for number in range(100):
        (root / "2" / f"day-{number}.md").write_text(f"The weather was dull on day {number}, and dull it remained.\n")
    (root / "2" / "packing.md").write_text("Socks, a torch and a rope.\n")
    return root


@pytest.fixture(scope="module", params=["words", "instant", "part", "read"])
def engine(request: pytest.FixtureRequest, tree: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    """An engine in each state of an index."""
    own = {
        "store.home": str(tmp_path_factory.mktemp(request.param)),
        "search.refresh": "never",
        "search.mode": "keyword" if request.param == "words" else "hybrid",
        "semantic.refine": "never",
        "semantic.threads": 1,
        "semantic.query_budget_ms": 0.0,
    }
    with open_engine(tree, settings=Settings().override(own, "test")) as opened:
        opened.index()
        if request.param == "part":
            looks = iter([False])
            opened.refine(should_stop=lambda: next(looks, True))
            assert 0 < opened.reading()["read"] < opened.reading()["of"]
        elif request.param == "read":
            opened.refine()
        yield opened


def ask(engine: Engine, query: str, **options: Any) -> SearchAnswer:
    return engine.search(query, refresh=False, **options)


def test_questions_without_an_answer_stay_below_right_answers(engine: Engine) -> None:
    right = [
        next((hit.score for hit in ask(engine, question) if hit.path == f"2/{name}.md"), 0.0)
        for name, questions in ASKED.items()
        for question in questions
    ]
    chance = random.Random(3)
    letters = "bcdfghjklmnpqrstvwxzaeiou"
    nonsense = [" ".join("".join(chance.choices(letters, k=8)) for _ in range(2)) for _ in range(20)]
    best = [max((hit.score for hit in ask(engine, text)), default=0.0) for text in [*FOREIGN, *nonsense]]
    told = no_answer(right, best)
    assert told.median > 0.3
    assert told.reaching <= 0.05
    assert told.empty >= len(nonsense) / len(best), "gibberish finds nothing"


def test_scores_mean_the_same_in_every_state(engine: Engine) -> None:
    hits = ask(engine, "orchestra and conductor").hits
    assert hits[0].path == "2/music.md"
    assert 0.4 < hits[0].score < 0.9
    for hit in hits:
        assert hit.score <= max(hit.receipt.words, hit.receipt.meaning) + 1e-4


def test_what_shares_a_folder_or_a_common_word_only_is_counted_as_weaker(engine: Engine) -> None:
    answer = ask(engine, "packing.md 2", facets=("path", "ext"))
    assert answer.hits[0].path == "2/packing.md"
    assert answer.total == len(answer.hits) < 5
    assert answer.total + answer.weaker >= 100
    assert answer.facets["ext"] == {".md": answer.total}
    everything = ask(engine, "packing.md 2", plan=Plan(mode=answer.strategy, weak=True, budget_ms=0.0), limit=500)
    assert everything.total == len(everything.hits) == answer.total + answer.weaker
    assert everything.weaker == 0
    assert [hit.id for hit in everything.hits][: answer.total] == [hit.id for hit in answer.hits]


def test_pages_end_at_the_cut(engine: Engine) -> None:
    whole = ask(engine, "treat a fever with rest at night", limit=100)
    shown, cursor = [], ""
    while True:
        page = ask(engine, "treat a fever with rest at night", limit=1, cursor=cursor)
        shown += [hit.id for hit in page.hits]
        assert (page.total, page.weaker) == (whole.total, whole.weaker)
        cursor = page.next_cursor
        if not cursor:
            break
    assert shown == [hit.id for hit in whole.hits]


def test_one_word_has_no_weaker_matches(engine: Engine) -> None:
    answer = ask(engine, "dull", limit=200)
    assert answer.total >= 100
    assert answer.weaker == 0


def test_an_empty_answer_is_of_no_quality(engine: Engine) -> None:
    assert ask(engine, "zxcmnbvqw asdkjhqwe").quality == "none"
    assert ask(engine, "dull").quality != "none"


def test_the_quality_of_an_answer_is_that_of_its_best_score(engine: Engine) -> None:
    """An answer whose best hit had .14 was called excellent, since all had been searched."""
    asked = [*[one for some in ASKED.values() for one in some], "dull", "a night", "the match of the symphony at noon"]
    for question in asked:
        answer = ask(engine, question)
        best = max((hit.score for hit in answer.hits), default=1.0)
        assert (answer.quality == "weak") == (best < 0.2), question
        assert answer.quality != "excellent" or best >= 0.5, question


def test_explain_says_that_a_match_is_weak(engine: Engine) -> None:
    told = engine.explain("packing.md 2", "2/day-7.md")
    assert not told.found
    assert any("weaker match" in reason and "--weak" in reason for reason in told.reasons)


def test_numbers_and_codes_that_nobody_wrote_find_nothing(tmp_path: Path) -> None:
    """Tables of other numbers are near to the digits of any number, in the vectors of a model."""
    root = tmp_path / "code"
    root.mkdir()
    for module in (statistics, stringprep, heapq):
        shutil.copy(str(module.__file__), root)
    (root / "invoice.md").write_text("The invoice NCT06145295 was paid.", encoding="utf-8")
    own = {"store.home": str(tmp_path / "home"), "search.mode": "hybrid", "semantic.refine": "never"}
    with open_engine(root, settings=Settings().override(own, "test")) as opened:
        opened.index()
        for query in ("7391824650", "3f9a0b7c22", "CVE-2031-99123", "8888777.6666"):
            assert not ask(opened, query).hits, query
        assert not ask(opened, "7391824650").related
        answer = ask(opened, "NCT06145295")
        assert ([hit.path for hit in answer], answer.strategy) == (["invoice.md"], "keyword")
        assert ask(opened, "covid19").strategy == "hybrid", "a name with a meaning"
