"""The keyword leg finds what the words say, obeys every filter, and always knows how far it has come."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any as Anything

import pytest
import tantivy
from hypothesis import example, given
from hypothesis import strategies as st

from findling.domain.budgets import spending
from findling.domain.errors import CorruptError
from findling.domain.plans import FIELDS
from findling.domain.ports import KeywordHits
from findling.domain.queries import All, Any, Filters, Node, Not, Phrase, Prefix, Term, Word
from findling.domain.resources import Chunk, Document, Resource
from findling.pipelines.indexing.document_build import make_document
from findling.pipelines.indexing.fanout import catch_up
from findling.sources.extracted import Extracted
from findling.stores.keyword.entries import PADDING, entries, prepare, schema
from findling.stores.keyword.leg import TantivyLeg
from findling.testing.samples import line_document
from findling.text.analysis.spelling import Spellings
from findling.text.chunking.chunk_plan import ChunkPlan
from tests.core.test_native_text import TEXTS
from tests.memory_store import MemoryStore

Corpus = dict[str, tuple[str, dict[str, Anything]]]

CORPUS: Corpus = {
    "a": ("The connection pool waits for a free database connection.", {"path": "src/pool.py", "lang": "python"}),
    "b": (
        "Connecting twice raises an error; connected clients are listed.",
        {"path": "docs/My Guide.md", "type": "note"},
    ),
    "c": ("def getUserName(user_id): return MAX_VALUE", {"path": "src/user.py", "tags": ("api", "two words")}),
    "d": ("数据库连接超时，请检查配置。", {"path": "docs/zh/timeout.md", "author": "wei", "updated_at": 1000.0}),
    "e": ("The café on Zürich's main street, IPv6Address and x509.", {"path": "notes.txt", "updated_at": 2000.0}),
    "f": ("salaries of the whole team", {"path": "hr/salaries.md", "visibility": ("group:hr", "user:eve adams")}),
    "g": ("salaries in general", {"path": "blog/salaries.md", "visibility": ("everyone",)}),
    "h": ("nobody may read about salaries", {"path": "void.md", "visibility": ()}),
}


def asked(text: str) -> Node:
    """Words to rank by, "phrases" that must be there, -exclusions."""
    tokens = re.findall(r'(-?)(?:"([^"]*)"|(\S+))', text)
    words = tuple(Word(word) for minus, _, word in tokens if word and not minus)
    phrases = tuple(Phrase(phrase) for minus, phrase, _ in tokens if phrase and not minus)
    excluded = tuple(Not(Phrase(phrase) if phrase else Word(word)) for minus, phrase, word in tokens if minus)
    return All((*((Any(words),) if words else ()), *phrases, *excluded))


def document_of(resource: Resource, text: str) -> Document:
    return make_document(resource, Extracted(text=text, lang=resource.lang or "text"), plan=ChunkPlan(size=1800))


def build(folder: Path, corpus: Corpus = CORPUS, **options: Anything) -> tuple[MemoryStore, TantivyLeg]:
    store = MemoryStore()
    store.write(document_of(Resource(rid=rid, **fields), text) for rid, (text, fields) in corpus.items())
    leg = TantivyLeg.open(folder / "keyword", store_id="test", **options)
    catch_up(store, leg)
    return store, leg


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> tuple[MemoryStore, TantivyLeg]:
    return build(tmp_path_factory.mktemp("leg"))


def found(built: tuple[MemoryStore, TantivyLeg], query: str, **filters: Anything) -> list[str]:
    store, leg = built
    hits = leg.search(asked(query), Filters(**filters), 100).hits
    chunks = store.chunks([cid for cid, _ in hits])
    return [chunks[cid].resource.rid for cid, _ in hits]


def searches_of(leg: TantivyLeg, monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """The searches that a leg asks of tantivy from now on."""
    searcher, searches = leg._searcher(), list[object]()

    class Counting:
        def __getattr__(self, name: str) -> object:
            return getattr(searcher, name)

        def search(self, *args: object, **options: object) -> object:
            searches.append(args)
            return searcher.search(*args, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(leg, "_searcher", Counting)
    return searches


def test_chunks_among_the_best_have_scores_without_a_second_search(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    leg = TantivyLeg.open(tmp_path / "leg", store_id="s")
    store = MemoryStore()
    store.write([line_document("notes", ["pool" + " other words" * number for number in range(60)])])
    catch_up(store, leg)
    cids, searches = sorted(leg.cids()), searches_of(leg, monkeypatch)
    monkeypatch.setattr("findling.stores.keyword.leg._AT_ONCE", 20)
    with spending():
        hits = leg.search(Word("pool"), Filters(), 5).hits
        assert leg.scores(Word("pool"), [cid for cid, _ in hits]) == dict(hits)
        assert len(searches) == 1
        every = leg.scores(Word("pool"), [*cids, 7])
        assert len(searches) == 2
    assert every == leg.scores(Word("pool"), cids)
    assert len(every) == 60


def test_an_answer_that_counts_its_hits_asks_tantivy_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    leg = TantivyLeg.open(tmp_path / "leg", store_id="s")
    store = MemoryStore()
    store.write([line_document(f"note:{number}", ["pool budget", "pool", "budget"]) for number in range(20)])
    catch_up(store, leg)
    cids, searches = sorted(leg.cids())[::2], searches_of(leg, monkeypatch)
    node = Any((Word("pool"), Word("budget")))
    with spending():
        hits = leg.search(node, Filters(), 30)
        assert (len(hits.hits), hits.total) == (30, 60)
        assert leg.count(node, Filters(), 0.0, most=100) == 60
        assert leg.count(node, Filters(), hits.hits[19][1], most=100) == 20
        assert leg.count(node, Filters(), hits.hits[19][1], most=7) == 7, "counting ends"
        assert leg.count(node, Filters(), hits.hits[0][1] + 1, most=100) == 0
        known = leg.scores(node, [*cids, 7])
        assert leg.scores(node, [7]) == {}
    assert len(searches) == 1
    assert list(known.items()) == list(leg.scores(node, cids).items())
    assert len(searches) == 2
    assert known.items() <= dict(leg.search(node, Filters(), 99).hits).items()


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("connections", {"a", "b"}),
        ("getUserName", {"c"}),
        ("getusername", {"c"}),
        ("user name", {"c"}),
        ("max_value", {"c"}),
        ("数据库", {"d"}),
        ("超时", {"d"}),
        ("库", {"d"}),
        ("cafe zurich", {"e"}),
        ("ipv6", {"e"}),
        ("509", {"e"}),
        ("pool.py", {"a", "c"}),
        ('"free database connection"', {"a"}),
        ('"database free"', set()),
        ('"the connections"', set()),
        ("connection -twice", {"a"}),
        ('salaries -"whole team"', {"g", "h"}),
        ("nonexistent", set()),
        ("", set(CORPUS)),
    ],
)
def test_what_a_query_finds(built: tuple[MemoryStore, TantivyLeg], query: str, expected: set[str]) -> None:
    assert set(found(built, query)) == expected


def test_the_vocabulary_is_put_in_order_once(built: tuple[MemoryStore, TantivyLeg]) -> None:
    leg = built[1]
    assert ("connecting", 1) in leg.vocabulary()
    assert Spellings.of(leg.vocabulary()) is Spellings.of(leg.vocabulary())


def test_an_exclusion_alone_finds_everything_else(built: tuple[MemoryStore, TantivyLeg]) -> None:
    assert set(found(built, "-salaries")) == set(CORPUS) - {"f", "g", "h"}


@pytest.mark.parametrize(
    ("filters", "expected"),
    [
        ({"ext": ("py",)}, {"a", "c"}),
        ({"ext": (".MD",)}, {"b", "d", "f", "g", "h"}),
        ({"not_ext": (".md",)}, {"a", "c", "e"}),
        ({"path": ("src",)}, {"a", "c"}),
        ({"path": ("src/",)}, {"a", "c"}),
        ({"path": ("sr",)}, set()),
        ({"path": ("docs/My Guide.md",)}, {"b"}),
        ({"path": ("docs", "src/pool.py")}, {"a", "b", "d"}),
        ({"type": ("note",)}, {"b"}),
        ({"lang": ("python",)}, {"a"}),
        ({"tag": ("two words",)}, {"c"}),
        ({"tag": ("words",)}, set()),
        ({"author": ("wei",)}, {"d"}),
        ({"after": 1500.0}, {"e"}),
        ({"before": 1500.0}, {"d"}),
        ({"after": 1000.0, "before": 2000.0}, {"d"}),
        ({"ext": ("md",), "path": ("docs",), "author": ("wei",)}, {"d"}),
    ],
)
def test_every_filter_narrows_the_answer(
    built: tuple[MemoryStore, TantivyLeg], filters: dict[str, Anything], expected: set[str]
) -> None:
    assert set(found(built, "-nonexistent", **filters)) == expected


def test_rarer_words_weigh_more_and_more_of_them_weigh_more(tmp_path: Path) -> None:
    corpus: Corpus = {str(i): ("common words here", {}) for i in range(20)}
    corpus["rare"] = ("common zebra", {})
    corpus["both"] = ("zebra quagga", {})
    ranked = found(build(tmp_path, corpus), "common zebra quagga")
    assert ranked[:2] == ["both", "rare"]


def test_the_typed_form_comes_before_an_inflected_one(tmp_path: Path) -> None:
    corpus: Corpus = {"one": ("he walks home", {}), "two": ("he walked home", {}), "x": ("she stays", {})}
    built = build(tmp_path, corpus)
    assert found(built, "walked") == ["two", "one"]
    assert found(built, "walks") == ["one", "two"]


def test_a_title_counts_besides_the_text(tmp_path: Path) -> None:
    corpus: Corpus = {"text": ("about pools", {}), "both": ("about pools", {"title": "Pools"}), "no": ("other", {})}
    assert found(build(tmp_path, corpus), "pools") == ["both", "text"]


def test_scores_follow_bm25(tmp_path: Path) -> None:
    import math

    corpus: Corpus = {"a": ("zebra zebra common", {}), "b": ("common word here and there", {}), "c": ("other", {})}
    _, leg = build(tmp_path, corpus)
    (_, score), *_ = leg.search(asked("zebra"), Filters(), 10).hits
    # Three chunks and nothing else, each counting longer by the padding.
    length, average = 3 + PADDING, 9 / 3 + PADDING
    k1, b, idf = 1.2, 0.75, math.log(1 + (3 - 1 + 0.5) / (1 + 0.5))
    assert score == pytest.approx(idf * 2 * (k1 + 1) / (2 + k1 * (1 - b + b * length / average)), rel=1e-4)


def hits_of(leg: TantivyLeg, query: str) -> KeywordHits:
    return leg.search(asked(query), Filters(), 10)


def test_forms_and_unknown_terms_are_reported(built: tuple[MemoryStore, TantivyLeg]) -> None:
    forms = hits_of(built[1], "connections unheardof").forms
    assert set(forms["connections"]) == {"connection", "connecting", "connected"}
    assert forms["unheardof"] == ()


def test_leaves_that_were_met_before_answer_alike_and_do_not_pile_up(
    built: tuple[MemoryStore, TantivyLeg], monkeypatch: pytest.MonkeyPatch
) -> None:
    leg = built[1]
    queries: list[Node] = [Any((Word("connecting"), Prefix("sal"))), Prefix("getUs"), Term("数"), Prefix("free data")]
    once = [leg.search(query, Filters(), 10) for query in queries]
    assert [leg.search(query, Filters(), 10) for query in queries] == once
    monkeypatch.setattr("findling.stores.keyword.leaf_queries._MOST_REMEMBERED", 2)
    for number in range(50):
        leg.search(Word(f"word{number}"), Filters(), 10)
    assert [leg.search(query, Filters(), 10) for query in queries] == once
    assert leg._query is not None
    assert len(leg._query._memory) <= 2


def test_the_leg_remembers_how_far_it_has_come(tmp_path: Path) -> None:
    store, leg = build(tmp_path)
    leg.close()
    reopened = TantivyLeg.open(tmp_path / "keyword", store_id="test")
    assert reopened.seq() == store.seq()
    store.write([document_of(Resource(rid="new"), "a brand new thing")], ["a"])
    assert not hits_of(reopened, "brand").hits
    assert catch_up(store, reopened)
    assert hits_of(reopened, "brand").hits
    assert not hits_of(reopened, "pool").hits
    assert reopened.seq() == store.seq()
    assert not catch_up(store, reopened)
    assert reopened.cids() == {chunk.cid for rid in store.rids() for chunk in store.document(rid).chunks}  # type: ignore[union-attr]


def test_what_was_not_committed_is_forgotten(tmp_path: Path) -> None:
    store, leg = build(tmp_path)
    before = leg.seq()
    leg.apply(store.write([document_of(Resource(rid="new"), "half done")]))
    leg.close()
    reopened = TantivyLeg.open(tmp_path / "keyword", store_id="test")
    assert reopened.seq() == before
    assert not hits_of(reopened, "half").hits


def test_a_leg_of_another_store_is_not_believed(tmp_path: Path) -> None:
    build(tmp_path)[1].close()
    stranger = TantivyLeg.open(tmp_path / "keyword", store_id="another")
    assert stranger.seq() == 0
    assert not hits_of(stranger, "connection").hits


def test_a_damaged_leg_says_so(tmp_path: Path) -> None:
    build(tmp_path)[1].close()
    (tmp_path / "keyword" / "meta.json").write_text("{ not json")
    with pytest.raises(CorruptError, match="cannot be read"):
        TantivyLeg.open(tmp_path / "keyword", store_id="test")


def test_whole_resources_as_the_unit(tmp_path: Path) -> None:
    long = (
        "\n\n".join(f"Paragraph {i} about nothing. " + "filler " * 60 for i in range(20))
        + "\n\nzebra here\n\nquagga there"
    )
    store, leg = build(tmp_path, {"long": (long, {}), "short": ("zebra", {})}, unit="page")
    assert len(leg.cids()) == 2
    hits = leg.search(asked("zebra quagga"), Filters(), 10).hits
    assert len(hits) == 2
    store.write([document_of(Resource(rid="long"), "now about lions")])
    catch_up(store, leg)
    assert len(leg.search(asked("quagga"), Filters(), 10).hits) == 0


def test_edits_keep_scores_and_phrases_right(tmp_path: Path) -> None:
    corpus: Corpus = {f"r{n}": (f"common words number {n}", {}) for n in range(20)}
    store, leg = build(tmp_path, corpus)
    for turn in range(3):
        edited = [document_of(Resource(rid=f"r{n}"), f"common words again {n} {turn}") for n in range(19)]
        store.write(edited)
        catch_up(store, leg)
    for query in ('"common words"', "common", "words again"):
        found = leg.search(asked(query), Filters(), 50)
        assert found.total == len(found.hits) == 20
        assert found.ceiling > 0
        assert all(score > 0 for _, score in found.hits)


@pytest.mark.parametrize(
    ("query", "hits"), [('"数据库"', 1), ('"数据"', 1), ('"连接"', 1), ('"库数"', 0), ('"连接超时"', 1)]
)
def test_phrases_of_unspaced_scripts(built: tuple[MemoryStore, TantivyLeg], query: str, hits: int) -> None:
    assert len(hits_of(built[1], query).hits) == hits


def test_an_excluded_word_is_no_part_of_the_question(built: tuple[MemoryStore, TantivyLeg]) -> None:
    plain, excluding = hits_of(built[1], "pool"), hits_of(built[1], "pool -unheardof -team")
    assert excluding.ceiling == plain.ceiling
    assert excluding.forms == plain.forms


def test_equal_scores_keep_one_order_on_every_page(tmp_path: Path) -> None:
    _, leg = build(tmp_path, {f"r{n}": ("the same text", {}) for n in range(45)})
    for query in ("same", "-other"):
        whole = [cid for cid, _ in leg.search(asked(query), Filters(), 45).hits]
        assert len(set(whole)) == 45
        for size in (5, 10, 44):
            assert [cid for cid, _ in leg.search(asked(query), Filters(), size).hits] == whole[:size]


def test_an_empty_filter_value_is_a_value_that_nothing_has(built: tuple[MemoryStore, TantivyLeg]) -> None:
    for filters in (Filters(type=("",)), Filters(tag=("",)), Filters(author=("",))):
        assert built[1].search(asked("salaries"), filters, 10).total == 0
    assert built[1].search(asked("salaries"), Filters(path=("",)), 10).total == 3


@pytest.mark.parametrize("limit", [0, 1, 10**15])
def test_any_limit(built: tuple[MemoryStore, TantivyLeg], limit: int) -> None:
    found = built[1].search(asked("salaries"), Filters(), limit)
    assert found.total == 3
    assert len(found.hits) == min(limit, 3)


def test_one_letter_of_a_spaced_script_is_a_word(tmp_path: Path) -> None:
    built = build(tmp_path, {"word": ("и снова", {}), "longer": ("игрок", {}), "greek": ("αγάπη", {})})
    assert found(built, "и") == ["word"]
    assert found(built, "α") == []


def test_a_file_that_is_named_comes_first(tmp_path: Path) -> None:
    corpus: Corpus = {
        "talk": ("argparse argparse argparse py argparse.py and again argparse.py", {"path": "test/test_argparse.py"}),
        "file": ("def parse_args(): ...", {"path": "lib/argparse.py"}),
        "other": ("nothing of the kind", {"path": "lib/other.py"}),
    }
    built = build(tmp_path, corpus)
    for query in ("argparse.py", "lib/argparse.py", "ARGPARSE.py"):
        assert found(built, query)[0] == "file", query


def test_a_word_of_an_unspaced_script_is_not_its_last_character(tmp_path: Path) -> None:
    built = build(tmp_path, {"tokyo": ("東京に行く", {}), "beijing": ("北京に行く", {})})
    assert found(built, "東京") == ["tokyo"]


@pytest.mark.parametrize(
    "name", ["pool.py", "./pool.py", "../src/pool.py:12:5", "/home/ann/project/src/pool.py", "src\\pool.py"]
)
def test_a_file_is_named_however_its_path_is_written(tmp_path: Path, name: str) -> None:
    corpus: Corpus = {
        "talk": ("pool.py and src/pool.py of the project of ann at home", {"path": "test/talk.md"}),
        "file": ("def connect(): ...", {"path": "src/pool.py"}),
    }
    assert found(build(tmp_path, corpus), name)[0] == "file"


@given(TEXTS, TEXTS, TEXTS, st.none() | st.integers(-(1 << 40), 1 << 40))
@example('"\\\x00\u2028', 'a/"b\\c".py', 'class "A\\B":', None)
def test_entries_are_the_fields_of_a_resource_whatever_its_name(
    text: str, path: str, heading: str, updated: int | None
) -> None:
    resource = Resource(rid="r", path=path.replace("\ud800", ""), title=heading, lang="python", updated_at=updated)
    chunk = Chunk(7, b"", 0, 0, len(text), 1, 1, (heading,))
    prepared = prepare(Document(resource, text, (chunk,)), 3, unit="chunk")
    (cid, turn, body, over, defines, *_), (entry,) = prepared.rows[0], entries(prepared)
    expected = {"cid": cid, "turn": turn, "body": body, "heading": over, "defines": defines, "updated": updated}
    read = json.loads(entry)
    lengths = {name: read.pop(name) for name in [*read] if name.startswith("n_")}
    assert lengths == {f"n_{name}": len(read[name].split()) for name in FIELDS if name in read}
    assert read == {name: value for name, value in [*expected.items(), *prepared.common] if value not in ("", None)}
    assert tantivy.Document.from_dict(read, schema()).to_dict()["cid"] == [7]
