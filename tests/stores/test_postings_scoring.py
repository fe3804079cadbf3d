"""Postings give the hits and scores of tantivy: random corpora, random trees, random sights."""

from __future__ import annotations

from math import isclose
from pathlib import Path
from random import Random

import numpy as np
import pytest
import tantivy
from hypothesis import given
from hypothesis import strategies as st

from findling.domain.ports import KeywordHits
from findling.domain.queries import All, Any, Filters, Node, Word
from findling.domain.resources import Document
from findling.ranking.postings_scoring import LENGTHS, quantised
from findling.stores.keyword.leg import TantivyLeg
from findling.stores.keyword.posting_segments import INDEXED, pack_field, row_counts, row_entries, row_positions
from findling.testing.keyword_leg import catch_up
from findling.testing.reference.memory_store import MemoryStore
from findling.testing.samples import line_document
from tests.counts import tries
from tests.postings_leg import PostingsLeg
from tests.stores.test_query_oracle import DAY, EPOCH, FIELD_VALUES, WORDS, make_corpus, random_leaf, random_tree

CORPORA = tries(20, short=2)
TREES = tries(400, short=60)
MANY = 10_000
RARE = [f"w{number}" for number in range(300)]


def random_corpus(random: Random) -> list[Document]:
    """The corpus of all kinds of metadata, and chunks of very different lengths."""
    documents = make_corpus()
    for number in range(random.randint(1, 40)):
        lines = [
            " ".join(random.choices(WORDS + random.sample(RARE, 20), k=random.choice([1, 5, 30, 90, 400])))
            for _ in range(random.randint(1, 3))
        ]
        lines = [f"{line} {at}" for at, line in enumerate(lines)]
        documents.append(line_document(f"more:{number}", lines, updated_at=EPOCH + number * DAY))
    return documents


def random_question(random: Random) -> Node:
    """A tree, or a question of words as people ask them."""
    if random.random() < 0.5:
        return random_tree(random, 3)
    words = [Word(random.choice([*WORDS, *RARE])) for _ in range(random.randint(1, 12))]
    return All(tuple(words)) if random.random() < 0.3 else Any(tuple(words))


def random_filters(random: Random) -> Filters:
    if random.random() < 0.6:
        return Filters()
    if random.random() < 0.4:
        return Filters(where=random_leaf(random))
    return random.choice(
        [
            Filters(path=("src",)),
            Filters(ext=("py", "md")),
            Filters(not_ext=("md",)),
            Filters(after=EPOCH + DAY),
            Filters(before=EPOCH + 3 * DAY, tag=("api",)),
            Filters(author=tuple(FIELD_VALUES["author"][:1])),
            Filters(within="src"),
        ]
    )


def is_alike(one: KeywordHits, other: KeywordHits) -> bool:
    """Whether two answers are the same, but for what 32 bits leave out."""
    scores = dict(other.hits)
    return (
        (one.total, dict(one.forms)) == (other.total, dict(other.forms))
        and isclose(one.ceiling, other.ceiling, rel_tol=1e-9)
        and {cid for cid, _ in one.hits} == scores.keys()
        and all(isclose(score, scores[cid], rel_tol=1e-5, abs_tol=1e-9) for cid, score in one.hits)
    )


@pytest.mark.parametrize("seed", range(CORPORA))
def test_postings_score_as_tantivy_does(tmp_path: Path, seed: int) -> None:
    random = Random(seed)
    store, postings = MemoryStore(), PostingsLeg()
    leg = TantivyLeg.open(tmp_path / "keyword", store_id="test")
    store.write(random_corpus(random))
    for one in (leg, postings):
        catch_up(store, one)
    for _ in range(TREES):
        node, filters = random_question(random), random_filters(random)
        weights = random.choice([None, None, {"title": 3.0, "body": 0.5, "name": 1.0}, {"tags": 0.0}])
        expected = leg.search(node, filters, MANY, weights=weights)
        answer = postings.search(node, filters, MANY, weights=weights)
        assert is_alike(answer, expected), (node, filters, weights)
        cids = random.sample(sorted(leg.cids()), 5)
        wanted = leg.scores(node, cids, weights=weights)
        assert postings.scores(node, cids, weights=weights) == pytest.approx(wanted, rel=1e-5, abs=1e-9), node
        found = postings.definers(["getUserName", "pool"], node, filters, MANY, weights)
        assert dict(found) == pytest.approx(
            dict(leg.definers(["getUserName", "pool"], node, filters, MANY, weights)), rel=1e-5, abs=1e-9
        )
    leg.close()


@pytest.mark.parametrize("seed", range(CORPORA))
def test_hidden_entries_change_no_byte_of_an_answer(seed: int) -> None:
    random = Random(seed)
    every, visible = MemoryStore(), MemoryStore()
    whole, twin = PostingsLeg(), PostingsLeg()
    documents = random_corpus(random)
    shown = {document.resource.rid for document in documents if random.random() < random.choice([0.2, 0.8])}
    for document in documents:
        every.write([document])
        if random.random() < 0.3:
            catch_up(every, whole)
    catch_up(every, whole)
    visible.write([document for document in documents if document.resource.rid in shown])
    catch_up(visible, twin)
    masked = whole.within({change.number for change in every.changes(0) if change.rid in shown})
    assert dict(masked.vocabulary()) == dict(twin.vocabulary())
    for _ in range(TREES):
        node, filters = random_question(random), random_filters(random)
        limit = random.choice([1, 3, 10, MANY])
        assert masked.search(node, filters, limit) == twin.search(node, filters, limit), (node, filters)


def test_what_was_dropped_counts_no_longer() -> None:
    random = Random(1)
    documents = random_corpus(random)
    store, leg, fresh_store, fresh = MemoryStore(), PostingsLeg(), MemoryStore(), PostingsLeg()
    store.write(documents)
    catch_up(store, leg)
    gone = [document.resource.rid for document in documents[::3]]
    store.write([], gone)
    catch_up(store, leg)
    fresh_store.write([document for document in documents if document.resource.rid not in gone])
    catch_up(fresh_store, fresh)
    for _ in range(TREES):
        node = random_question(random)
        assert leg.search(node, Filters(), 20) == fresh.search(node, Filters(), 20), node


def test_a_length_is_the_byte_that_tantivy_has() -> None:
    builder = tantivy.SchemaBuilder()
    builder.add_text_field("body", tokenizer_name="whitespace", index_option="position")
    builder.add_integer_field("length", fast=True)
    schema = builder.build()
    index = tantivy.Index(schema)
    writer = index.writer(15_000_000, num_threads=1)
    bounds = LENGTHS[(LENGTHS > 0) & (LENGTHS < 20_000)].tolist()
    lengths = sorted({*range(1, 130), *bounds, *(bound - 1 for bound in bounds[1:])})
    for length in lengths:
        writer.add_document(tantivy.Document(body=f"word{' other' * (length - 1)}", length=length))
    writer.commit()
    index.reload()
    searcher = index.searcher()
    hits = searcher.search(tantivy.Query.term_query(schema, "body", "word"), len(lengths)).hits
    usual = sum(lengths) / len(lengths)
    for score, address in hits:
        (length,) = searcher.fast_field_values("length", [address])
        counted = LENGTHS[quantised(np.array([length]))[0]]
        idf = np.log(1 + 0.5 / (len(lengths) + 0.5))
        expected = idf * 2.2 / (1 + 1.2 * (0.25 + 0.75 * counted / usual))
        assert isclose(score, expected, rel_tol=1e-5), length


@st.composite
def token_lists(draw: st.DrawFn) -> list[list[str]]:
    terms = st.sampled_from(["a", "b", "c", "long", "Ω"])
    sparse = draw(st.lists(st.lists(terms, max_size=6), max_size=8))
    return [one for entry in sparse for one in (entry, *[[]] * draw(st.sampled_from([0, 0, 3, 300])))]


@given(token_lists(), st.sampled_from([0, 0, 300, 70_000]))
def test_a_row_is_read_as_it_was_packed(entries: list[list[str]], first: int) -> None:
    terms = sorted({term for entry in entries for term in entry})
    placed = [
        (terms.index(term), at, first + place) for at, entry in enumerate(entries) for place, term in enumerate(entry)
    ]
    tokens, docs, positions = (np.array([one[column] for one in placed], np.int64) for column in range(3))
    rows = dict(pack_field(terms, tokens, docs, positions, INDEXED[0]))
    assert [*rows] == terms
    for number, term in enumerate(terms):
        counts, holders = row_counts(rows[term]), row_entries(rows[term])
        for kept in (np.arange(len(holders)), np.arange(len(holders))[::2], np.arange(len(holders))[1:]):
            where = np.repeat(holders[kept], counts[kept]).tolist(), row_positions(rows[term], counts, kept).tolist()
            wanted = {*holders[kept].tolist()}
            expected = [(doc, place) for token, doc, place in placed if token == number and doc in wanted]
            assert [*zip(*where, strict=True)] == expected
