"""Similar: what is most like a document, by words here; never itself, never its own thread."""

from __future__ import annotations

import os
import string
import sys
from pathlib import Path

import pytest

from findling.domain.budgets import WorkBudget, spending
from findling.domain.errors import InvalidValueError, NotFoundError
from findling.domain.resources import Resource
from findling.pipelines.indexing.document_build import text_documents
from findling.pipelines.lookup.similar import similar, telling_words
from findling.pipelines.retrieve.legs import Retrievers
from findling.text.chunking.chunk_plan import ChunkPlan
from tests.memory_leg import MemoryLeg
from tests.memory_store import MemoryStore
from tests.processes import run_process

THREAD = {"thread": "slack/birds"}
ITEMS = [
    (
        Resource(rid="file:falcon.md", path="falcon.md", lang="markdown"),
        "# Falcon\n\nA falcon is a raptor with talons.",
    ),
    (Resource(rid="file:eagle.md", path="eagle.md", lang="markdown"), "# Eagle\n\nAn eagle is a raptor with talons."),
    (Resource(rid="file:sparrow.md", path="sparrow.md", lang="markdown"), "# Sparrow\n\nA sparrow fears every raptor."),
    (Resource(rid="file:bread.md", path="bread.md", lang="markdown"), "# Bread\n\nFlour and water in an oven."),
    (
        Resource(rid="chat:slack/birds/0", type="chat", fields=THREAD),
        "which raptor has the longest and sharpest talons of them all, and why",
    ),
    (Resource(rid="chat:slack/birds/1", type="chat", fields=THREAD), "the raptor with talons of course"),
    (Resource(rid="note:empty", type="note"), ""),
]


@pytest.fixture
def legs() -> Retrievers:
    store, leg = MemoryStore(), MemoryLeg()
    for batch in text_documents(ITEMS, ChunkPlan()):
        leg.apply(store.write(batch))
    leg.commit(store.seq())
    return Retrievers(store, leg)


def test_what_shares_the_telling_words_is_most_like_it(legs: Retrievers) -> None:
    answer = similar(legs, "falcon.md")
    assert {hit.rid for hit in answer.hits[:2]} == {"file:eagle.md", "chat:slack/birds/1"}
    assert "file:bread.md" not in {hit.rid for hit in answer}
    assert "file:falcon.md" not in {hit.rid for hit in answer}
    assert [hit.score for hit in answer] == sorted((hit.score for hit in answer), reverse=True)
    assert (answer.strategy, answer.understood_as) == ("keyword", "like falcon.md")
    assert answer.notes[0].startswith("compared by its most telling words: talons")
    assert answer.total == len(answer.hits) == 3
    eagle = next(hit for hit in answer if hit.path == "eagle.md")
    assert eagle.lines and {match.term for match in eagle.receipt.matches} >= {"raptor", "talons"}


def test_a_long_document_is_read_as_far_as_the_budget_goes(legs: Retrievers) -> None:
    document = legs.store.document("file:falcon.md")
    assert document is not None
    with spending(WorkBudget(read=0)) as budget:
        assert telling_words(legs.keyword, document, document.chunks) == []
    assert budget.refused == ["its first passages alone stand for it"]
    with spending(WorkBudget(read=1)) as budget:
        assert {hit.rid for hit in similar(legs, "falcon.md")} >= {"file:eagle.md"}
        assert (budget.left["read"], budget.refused) == (0, [])


def test_a_thread_is_one_hit_and_never_like_itself(legs: Retrievers) -> None:
    chats = [hit for hit in similar(legs, "falcon.md") if hit.type == "chat"]
    assert len(chats) == 1 and [one.rid for one in chats[0].passages] == ["chat:slack/birds/0"]
    assert {hit.type for hit in similar(legs, "chat:slack/birds/0")} == {"file"}


def test_a_limit_is_kept(legs: Retrievers) -> None:
    assert len(similar(legs, "falcon.md", 1).hits) == 1
    assert similar(legs, "falcon.md", 0).hits == ()
    with pytest.raises(InvalidValueError, match="limit -1"):
        similar(legs, "falcon.md", -1)


def test_what_has_no_telling_word_is_like_nothing(legs: Retrievers) -> None:
    for name in ("note:empty", "bread.md"):
        answer = similar(legs, name)
        assert (answer.hits, answer.notes) == ((), ("it has no telling word",))


def test_words_that_only_the_document_has_tell_nothing(legs: Retrievers) -> None:
    document = legs.store.document("file:falcon.md")
    assert document is not None
    words = telling_words(legs.keyword, document, document.chunks)
    assert "falcon" not in words and "is" not in words
    assert set(words) == {"raptor", "talons"}


def test_what_is_not_there_is_told(legs: Retrievers) -> None:
    with pytest.raises(NotFoundError, match=r"there is no nothing\.md in the index"):
        similar(legs, "nothing.md")


def test_what_was_superseded_says_so_and_stands_below() -> None:
    items = [
        (Resource(rid="note:asked", type="note"), "An osprey is a raptor with talons that dives for fish."),
        (Resource(rid="note:old", type="note"), "A kestrel is a raptor with talons that dives."),
        (
            Resource(rid="note:new", type="note", fields={"supersedes": "note:old"}),
            "A kestrel is a raptor that hovers.",
        ),
        (Resource(rid="note:other", type="note"), "Bread is made of flour."),
    ]
    store, leg = MemoryStore(), MemoryLeg()
    for batch in text_documents(items, ChunkPlan()):
        leg.apply(store.write(batch))
    leg.commit(store.seq())
    answer = similar(Retrievers(store, leg), "note:asked")
    assert [hit.rid for hit in answer] == ["note:new", "note:old"]
    assert answer.hits[1].receipt.superseded_by == ("note:new",)
    assert [hit.rid for hit in similar(Retrievers(store, leg), "note:asked", 1)] == ["note:new"]


CODE = [
    ("shop/store.py", "class Ledger:\n    def post_entry(self, entry):\n        return entry\n"),
    (
        "shop/orders.py",
        "from shop.store import Ledger\n\ndef place_order(basket):\n    return Ledger().post_entry(basket)\n",
    ),
    ("shop/web.py", "from shop.orders import place_order\n\ndef view(request):\n    return place_order(request)\n"),
    ("shop/notes.py", "# Ledger and place_order are only mentioned\ndef weather():\n    return 'rain'\n"),
]


def code_legs(items: list[tuple[str, str]]) -> Retrievers:
    store, leg = MemoryStore(), MemoryLeg()
    resources = [(Resource(rid=f"file:{path}", path=path, lang="python"), text) for path, text in items]
    for batch in text_documents(resources, ChunkPlan()):
        leg.apply(store.write(batch))
    leg.commit(store.seq())
    return Retrievers(store, leg)


def test_files_of_code_are_related_by_the_names_they_define_and_use() -> None:
    answer = similar(code_legs(CODE), "shop/orders.py")
    said = {hit.path: part.why for hit in answer for part in hit.receipt.further}
    assert said == {
        "shop/store.py": "uses Ledger, post_entry, defined there",
        "shop/web.py": "defines place_order, used there",
    }
    assert [hit.path for hit in answer.hits[:2]] == ["shop/store.py", "shop/web.py"]
    for hit in answer:
        assert hit.receipt.recomputed() == pytest.approx(hit.score, abs=1e-4)


def test_a_name_that_many_define_relates_less_than_one_of_a_single_file() -> None:
    shared = [(f"shop/plugin{number}.py", "def run_plugin():\n    return 1\n") for number in range(4)]
    asked = ("shop/main.py", "def start():\n    run_plugin()\n    return load_table()\n")
    answer = similar(
        code_legs([asked, *shared, ("shop/table.py", "def load_table():\n    return 2\n")]), "shop/main.py"
    )
    worth = {hit.path: part.evidence for hit in answer for part in hit.receipt.further}
    assert worth["shop/table.py"] == pytest.approx(0.5) and worth["shop/plugin0.py"] == pytest.approx(0.2)


_SIMILAR = """
import sys, findling
own = {"store.home": f"{sys.argv[1]}/.home", "semantic.refine": "never"}
with findling.open(sys.argv[1], settings=findling.Settings().override(own, "test")) as engine:
    engine.index()
    print([(hit.path, hit.receipt) for hit in engine.similar("a.py").hits])
"""


def test_the_last_digit_of_shared_names_is_the_same_in_every_process(tmp_path: Path) -> None:
    """A sum in the order of a set had another last digit in every process, and so had a receipt."""
    names = [f"word_{letter}" for letter in string.ascii_lowercase]
    for number, name in enumerate("abcdefg"):
        (tmp_path / f"{name}.py").write_text(
            "".join(f"def {one}():\n    return {one}\n\n" for one in names[number * 2 :])
        )
    (tmp_path / "a.py").write_text("".join(f"{one}()\n" for one in names))
    runs = [
        run_process([sys.executable, "-c", _SIMILAR, tmp_path], env={**os.environ, "PYTHONHASHSEED": seed}, check=True)
        for seed in "1234"
    ]
    assert "b.py" in runs[0].stdout and len({run.stdout for run in runs}) == 1
