"""The leg in memory scores as BM25 says, and as the leg on disk does."""

from __future__ import annotations

from math import log
from pathlib import Path
from random import Random

import pytest

from findling.domain.ports import KeywordLeg
from findling.domain.queries import All, Any, Filters, Fuzzy, Near, Node, Phrase, Prefix, Term, Word
from findling.domain.resources import Document
from findling.stores.keyword.entries import PADDING
from findling.stores.keyword.leg import TantivyLeg
from findling.testing.samples import cid_of, line_document
from tests.memory_leg import MemoryLeg
from tests.memory_store import MemoryStore

LINES = ["red red blue", "red", "blue green", "green reds"]


def absorbed(leg: KeywordLeg, *documents: Document) -> KeywordLeg:
    store = MemoryStore()
    store.write(documents)
    leg.apply(store.changes(0))
    leg.commit(store.seq())
    return leg


def score(leg: KeywordLeg, node: Node, document: Document, line: str) -> float:
    cid = cid_of(document, line)
    return leg.scores(node, [cid])[cid]


def idf(spread: int, chunks: int = len(LINES)) -> float:
    return log(1 + (chunks - spread + 0.5) / (spread + 0.5))


def saturation(count: int, length: int, average: float = 2.0) -> float:
    return 2.2 * count / (count + 1.2 * (0.25 + 0.75 * (length + PADDING) / (average + PADDING)))


def test_a_word_scores_as_the_formula_says() -> None:
    document = line_document("a", LINES)
    leg = absorbed(MemoryLeg(), document)
    assert score(leg, Word("blue"), document, "blue green") == pytest.approx(idf(2) * saturation(1, 2))
    assert leg.search(Word("blue"), Filters(), 9).ceiling == pytest.approx(2.2 * idf(2))
    assert leg.search(Word("purple"), Filters(), 9).ceiling == pytest.approx(2.2 * idf(0))


def test_all_forms_count_as_one_word_and_those_that_were_not_typed_for_less() -> None:
    document = line_document("a", LINES)
    leg = absorbed(MemoryLeg(), document)
    assert score(leg, Word("red"), document, "red red blue") == pytest.approx(idf(3) * saturation(2, 3))
    assert score(leg, Word("red"), document, "green reds") == pytest.approx(0.8 * idf(3) * saturation(1, 2))
    assert score(leg, Phrase("red"), document, "red") == pytest.approx(idf(2) * saturation(1, 1))


def test_rows_count_as_one_word_that_is_as_rare_as_all_of_theirs() -> None:
    document = line_document("a", LINES)
    leg = absorbed(MemoryLeg(), document)
    both = idf(2) + idf(2)
    assert score(leg, Phrase("red blue"), document, "red red blue") == pytest.approx(both * saturation(1, 3))
    assert score(leg, Near("blue", "reds", 1), document, "red red blue") == pytest.approx(
        (idf(2) + idf(3)) * saturation(2, 3)
    )


def test_a_file_that_the_query_names_gains() -> None:
    document = line_document("a", ["pool"], path="src/pool.py")
    leg = absorbed(MemoryLeg(), document, line_document("b", ["pool"], path="src/pool/other.py"))
    for text in ("pool.py", "pool", "src/pool.py", "/pool.py/"):
        for node in (Word(text), Term(text)):
            (first, best), *rest = leg.search(node, Filters(), 9).hits
            assert first == cid_of(document, "pool")
            assert all(best > other for _, other in rest)


def test_words_that_no_chunk_has_any_more_are_forgotten() -> None:
    store, leg = MemoryStore(), MemoryLeg()
    for lines in (["one two"], ["two three"], []):
        store.write([line_document("a", lines)])
        leg.apply(store.changes(leg.seq()))
        leg.commit(store.seq())
        assert {word for word, _ in leg.vocabulary()} == {*" ".join(lines).split(), *(["lines"] if lines else [])}


def test_scores_are_near_those_of_the_leg_on_disk(tmp_path: Path) -> None:
    random = Random(3)
    words = [f"{letter}{other}word" for letter in "bcdfghklmn" for other in "aeio"]
    rarity = [1 / (place + 1) for place in range(len(words))]

    def some(most: int) -> str:
        return " ".join(random.choices(words, rarity, k=random.randint(1, most)))

    documents = [
        line_document(f"{number}", [some(30) for _ in range(5)], title=some(4), path=f"{some(1)}/{some(1)}.md")
        for number in range(60)
    ]
    legs = [absorbed(MemoryLeg(), *documents), absorbed(TantivyLeg.open(tmp_path / "leg", store_id="x"), *documents)]
    first, second, third = words[1], words[4], words[9]
    for node in (
        Word(first),
        Any((Word(first), Word(second), Word(third))),
        All((Term(first), Term(f"{second}s"))),
        Phrase(f"{first} {second}"),
        Any((Word(f"{first}.md"), Prefix("ba"))),
        Fuzzy(second),
        Near(first, third, 3),
    ):
        ours, theirs = (leg.search(node, Filters(), 1000) for leg in legs)
        assert ours.total == theirs.total > 5, node
        assert ours.ceiling == pytest.approx(theirs.ceiling, rel=0.02), node
        # Pairs of near words are counted in another way.
        if not isinstance(node, Near):
            assert dict(ours.hits) == pytest.approx(dict(theirs.hits), rel=0.03, abs=0.01), node
