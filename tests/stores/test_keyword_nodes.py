"""The keyword leg understands every node of a query tree: what each finds, what it does not, and how it scores."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any as Anything

import pytest

from findling.domain.backends import Scoring
from findling.domain.budgets import WorkBudget, spending
from findling.domain.errors import CorruptError, InvalidValueError
from findling.domain.ports import KeywordHits
from findling.domain.queries import (
    All,
    Any,
    Field,
    Filters,
    Fuzzy,
    Near,
    Node,
    Not,
    Phrase,
    Prefix,
    Range,
    Same,
    Term,
    Word,
)
from findling.domain.resources import Document, Resource
from findling.pipelines.indexing.document_build import make_document
from findling.pipelines.indexing.fanout import catch_up
from findling.sources.extracted import Extracted
from findling.stores.keyword.leg import TantivyLeg
from findling.text.chunking.chunk_plan import ChunkPlan
from tests.memory_leg import MemoryLeg
from tests.memory_store import MemoryStore

Corpus = dict[str, tuple[str, dict[str, Anything]]]

CORPUS: Corpus = {
    "pool": (
        "The connection pool waits for a free database connection.",
        {"path": "src/db/pool.py", "lang": "python", "title": "Connections", "updated_at": 500.0},
    ),
    "user": (
        "def getUserName(user_id): return sign_in(user_id)",
        {"path": "src/web/User.py", "lang": "python", "tags": ("api", "Two Words"), "updated_at": 3000.0},
    ),
    "snake": ("call get_user_name, then sign-in with node.js", {"path": "docs/My Guide.md", "type": "note"}),
    "lower": ("getusername signin nodejs", {"path": "archive/old.tar.gz", "author": "Ada King Lovelace"}),
    "apart": (
        "get the user a name; in the sign a node has js",
        {"path": "docs/apart.md", "author": "Ada Byron", "updated_at": 1000.0},
    ),
    "zh": ("数据库连接超时，请检查配置。", {"path": "docs/zh/timeout.md", "author": "wei", "updated_at": 2000.0}),
    "ko1": ("여자는 집에 갔다. 30대는 바쁘다.", {"path": "ko/하나.txt"}),
    "ko2": ("여자와 남자가 만났다.", {"path": "ko/둘.txt"}),
    "ko3": ("여자 50대는 많다.", {"path": "ko/셋.txt"}),
    "hidden": ("=", {"path": "etc/.env"}),
    "meta": (
        "nothing to see",
        {"fields": {"name": "Quokka", "description": "about marsupials", "system": "Billing, search"}},
    ),
}

Built = tuple[MemoryStore, TantivyLeg]


def document_of(resource: Resource, text: str) -> Document:
    return make_document(resource, Extracted(text=text, lang="text"), plan=ChunkPlan(size=1800))


def build(folder: Path, corpus: Corpus = CORPUS, **options: Anything) -> Built:
    store = MemoryStore()
    store.write(document_of(Resource(rid=rid, **fields), text) for rid, (text, fields) in corpus.items())
    leg = TantivyLeg.open(folder / "keyword", store_id="test", **options)
    catch_up(store, leg)
    return store, leg


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Built:
    return build(tmp_path_factory.mktemp("nodes"))


def ranked(built: Built, node: Node, weights: Mapping[str, float] | None = None, **filters: Anything) -> list[str]:
    store, leg = built
    hits = leg.search(node, Filters(**filters), 1000, weights=weights)
    assert hits.total == len(hits.hits)
    chunks = store.chunks([cid for cid, _ in hits.hits])
    return [chunks[cid].resource.rid for cid, _ in hits.hits]


def found(built: Built, node: Node, weights: Mapping[str, float] | None = None, **filters: Anything) -> set[str]:
    return set(ranked(built, node, weights, **filters))


def searched(built: Built, node: Node) -> KeywordHits:
    return built[1].search(node, Filters(), 1000)


@pytest.mark.parametrize(
    ("node", "expected"),
    [
        (Word("connections"), {"pool"}),
        (Word("node.js"), {"snake", "apart"}),
        (Word("zebra"), set()),
        (Word("!!!"), set()),
        (Word("/"), set()),
        (Word(".env"), {"hidden"}),
        # A word that is meant: in any form, compounds in a row, identifiers as a whole as well.
        (Term("connecting"), {"pool"}),
        (Term("zebra"), set()),
        (Term("…"), set()),
        (Term("sign-in"), {"user", "snake"}),
        (Term("signIn"), {"user", "snake", "lower"}),
        (Term("signin"), {"lower"}),
        (Term("node.js"), {"snake"}),
        (Term("getUserName"), {"user", "snake", "lower"}),
        (Term("get_user_name"), {"user", "snake"}),
        (Term("User.py"), {"user"}),
        (Term("database's"), {"pool"}),
        (Term("数据库"), {"zh"}),
        (Term("库"), {"zh"}),
        (Term("据"), {"zh"}),
        (Term("数据超"), set()),
        (Term("여자"), {"ko1", "ko2", "ko3"}),
        (Term("50대"), {"ko3"}),
        (Term("0대"), set()),
        # In one field.
        (Term("connection", "title"), {"pool"}),
        (Term("database", "title"), set()),
        (Term("words", "tags"), {"user"}),
        (Term("quokka"), set()),
        (Term("quokka", "name"), {"meta"}),
        (Term("marsupial"), {"meta"}),
        (Term("marsupial", "description"), {"meta"}),
        (Term("marsupial", "body"), set()),
        (Term("pool.py", "name"), {"pool"}),
        (Term("db/pool.py", "path"), {"pool"}),
        # As written.
        (Phrase("free database connection"), {"pool"}),
        (Phrase("free connection"), set()),
        (Phrase("connections"), {"pool"}),
        (Phrase("connections", "body"), set()),
        (Phrase("waiting"), set()),
        (Phrase("db pool", "path"), {"pool"}),
        (Phrase("two words"), {"user"}),
        (Phrase("words two"), set()),
        (Phrase("数据库连接"), {"zh"}),
        (Phrase("数据连接"), set()),
        (Phrase("?!"), set()),
        # Beginnings.
        (Prefix("conn"), {"pool"}),
        (Prefix("onn"), set()),
        (Prefix("free data"), {"pool"}),
        (Prefix("database free"), set()),
        (Prefix("conn", "title"), {"pool"}),
        (Prefix("data", "title"), set()),
        (Prefix("连"), {"zh"}),
        (Prefix("여"), {"ko1", "ko2", "ko3"}),
        (Prefix("quok", "name"), {"meta"}),
        (Prefix("-"), set()),
        # Near spellings: added, left out, changed, swapped.
        (Fuzzy("databasee"), {"pool"}),
        (Fuzzy("databse"), {"pool"}),
        (Fuzzy("dotabase"), {"pool"}),
        (Fuzzy("adtabase"), {"pool"}),
        (Fuzzy("adtabsae"), set()),
        (Fuzzy("adtabsae", 2), {"pool"}),
        (Fuzzy("database", 0), {"pool"}),
        (Fuzzy("marsupialz", field="description"), {"meta"}),
        (Fuzzy("marsupialz", field="title"), set()),
        (Fuzzy("quoka"), set()),
        (Fuzzy("quoka", field="name"), {"meta"}),
        (Fuzzy("."), set()),
    ],
)
def test_what_a_leaf_finds(built: Built, node: Node, expected: set[str]) -> None:
    assert found(built, node) == expected


@pytest.mark.parametrize(
    ("first", "second", "distance", "expected"),
    [
        ("connection", "waits", 1, True),
        ("waits", "connection", 1, True),
        ("connection", "waits", 0, False),
        ("waiting", "pools", 0, True),
        ("free", "pool", 3, True),
        ("free", "pool", 2, False),
        ("connection", "connection", 6, True),
        ("connection", "connection", 5, False),
        ("pool", "pool", 100, False),
        ("free-database", "pool", 3, True),
        ("pool", "free-database", 3, True),
        ("free-database", "pool", 2, False),
        ("database-free", "pool", 9, False),
        ("free-database", "database-connection", 9, False),
        ("zebra", "pool", 10**12, False),
        ("the", "connection", 10**12, True),
        ("pool", "waits", -1, True),
        ("!", "pool", 10, False),
    ],
)
def test_near_counts_the_words_between(built: Built, first: str, second: str, distance: int, expected: bool) -> None:
    assert found(built, Near(first, second, distance)) == ({"pool"} if expected else set())


def test_a_spelling_near_a_name_with_a_sign_is_not_near_its_letter(tmp_path: Path) -> None:
    built = build(tmp_path, {"c": ("vitamin c and d", {}), "cpp": ("written in C++", {}), "hash": ("C# code", {})})
    leg = MemoryLeg()
    catch_up(built[0], leg)
    assert found(built, Fuzzy("c++")) == {"cpp"}
    assert found(built, Fuzzy("c++", 2)) == {"cpp"}, "at most half of the letters are edited"
    for distance in (1, 2):
        node = Fuzzy("c++", distance)
        forms = built[1].search(node, Filters(), 10).forms
        assert {*forms} == {*leg.search(node, Filters(), 10).forms} == {"c++~"}
        assert leg.search(node, Filters(), 10).total == len(found(built, node))


def test_near_draws_on_the_budget_of_an_answer(built: Built) -> None:
    """A word near itself is a row for every distance: of 44 such words in every passage, 25 CPU seconds."""
    itself, others = Near("connection", "connection", 1000), Near("pool", "free", 1000)
    for rows, expected in ((0, set()), (6, set()), (7, {"pool"})):
        with spending(WorkBudget(rows=rows)) as budget:
            assert found(built, itself) == expected
            assert found(built, itself) == expected, "the same leaf is paid for once"
            assert budget.refused == ["not all words near each other were looked for, or at smaller distances"]
            assert found(built, others) == set(), "nothing is left for another one"
    with spending(WorkBudget(rows=2)) as budget:
        assert found(built, others) == {"pool"}
        assert budget.refused == []


def test_near_finds_words_of_all_scripts(built: Built) -> None:
    assert found(built, Near("数据", "超时", 10)) == {"zh"}
    assert found(built, Near("数据", "超时", 1)) == set()
    assert found(built, Near("50대", "여자", 5)) == {"ko3"}
    assert found(built, Near("getUserName", "sign-in", 5)) == {"user", "snake"}


def test_near_counts_an_identifier_as_a_whole_too(built: Built) -> None:
    assert found(built, Near("getUserName", "signin", 0)) == {"lower"}


KOREAN = All((Term("여자"), Not(Term("남자")), Not(Term("50대"))))


@pytest.mark.parametrize(
    ("node", "expected"),
    [
        (KOREAN, {"ko1"}),
        (All((Term("user"), Not(Phrase("the user")))), {"user", "snake"}),
        (All((Term("user"), Term("name"))), {"user", "snake", "apart"}),
        (All((Term("user"), Term("zebra"))), set()),
        (Any((Term("zebra"), Term("数据库"))), {"zh"}),
        (Any((Term("free"), Not(Prefix("여자")))), set(CORPUS) - {"ko1", "ko2", "ko3"}),
        (Any((Term("free"), Not(Term("zebra")))), set(CORPUS)),
        (All((Any((Not(Term("get")), Term("node"))), Term("docs"))), {"zh", "snake", "apart"}),
        (Not(Any((Term("여자"), Field("ext", ("md", "py"))))), {"lower", "meta", "hidden"}),
        (Not(Not(Term("free"))), {"pool"}),
        (Not(All(())), set()),
        (Not(Any(())), set(CORPUS)),
        (Not(Term("!!!")), set(CORPUS)),
        (Same((Term("zebra"), Term("free"), Phrase("nothing to see"))), {"pool", "meta"}),
        (Same(()), set()),
        (Any(()), set()),
        (All(()), set(CORPUS)),
        (All((Term("free"), Any(()))), set()),
        (All((Term("docs"), Range(after=1500.0))), {"zh"}),
    ],
)
def test_what_a_tree_finds(built: Built, node: Node, expected: set[str]) -> None:
    assert found(built, node) == expected


WHERE: list[tuple[Node, set[str]]] = [
    (Field("path", ("DB/po",)), {"pool"}),
    (Field("path", ("/src",)), {"pool", "user"}),
    (Field("path", ("/db",)), set()),
    (Field("path", ("my guide",)), {"snake"}),
    (Field("path", ("20",)), set()),
    (Field("path", ("docs/*.md",)), {"snake", "apart", "zh"}),
    (Field("path", ("/*.py",)), {"pool", "user"}),
    (Field("path", ("d?",)), {"pool"}),
    (Field("path", ("*/zh",)), {"zh"}),
    (Field("path", ("하나", "/archive/")), {"ko1", "lower"}),
    (Field("path", ("x" * 5000, "?" * 500)), set()),
    (Field("path", ("",)), set(CORPUS)),
    (Field("ext", ("PY", ".gz")), {"pool", "user", "lower"}),
    (Field("ext", (".tar.gz",)), {"lower"}),
    (Field("ext", ("tar",)), set()),
    (Field("lang", ("Python",)), {"pool", "user"}),
    (Field("lang", ("",)), set()),
    (Field("type", ("NOTE",)), {"snake"}),
    (Field("tag", ("two words",)), {"user"}),
    (Field("tag", ("two",)), set()),
    (Field("system", ("BILLING",)), {"meta"}),
    (Field("system", ("search", "nothing")), {"meta"}),
    (Field("system", ("billing, search",)), set()),
    (Field("author", ("ada",)), {"lower", "apart"}),
    (Field("author", ("King, Ada",)), {"lower"}),
    (Field("author", ("ada wei",)), set()),
    (Field("author", ("byron", "WEI")), {"apart", "zh"}),
    (Field("author", ("?",)), set()),
    (Field("rid", ("zh", "meta")), {"zh", "meta"}),
    (Field("rid", ("ZH",)), set()),
    (Range(after=1000.0), {"apart", "zh", "user"}),
    (Range(before=1000.0), {"pool"}),
    (Range(1000.0, 2000.0), {"apart"}),
    (Range(2000.0, 1000.0), set()),
    (Range(), set(CORPUS)),
    (Not(Field("ext", ("md", "txt"))), {"pool", "user", "lower", "meta", "hidden"}),
    (All((Field("path", ("src",)), Not(Field("tag", ("api",))))), {"pool"}),
    (
        Any((Range(before=1000.0), All((Field("ext", ("md",)), Not(Field("author", ("ada",))))))),
        {"pool", "snake", "zh"},
    ),
    (Not(Any((Field("path", ("docs", "ko", "src", "etc")), Not(Field("system", ("search",)))))), {"meta"}),
]


@pytest.mark.parametrize(("node", "expected"), WHERE)
def test_properties_hold_as_a_query_and_as_a_filter(built: Built, node: Node, expected: set[str]) -> None:
    assert found(built, node) == expected
    assert found(built, All(()), where=node) == expected
    assert found(built, Term("docs"), where=node) == expected & {"snake", "apart", "zh"}
    assert found(built, Not(node)) == set(CORPUS) - expected


def test_filters_on_names_have_no_case(built: Built) -> None:
    assert found(built, All(()), type=("Note",)) == {"snake"}
    assert found(built, All(()), tag=("TWO words",)) == {"user"}
    assert found(built, All(()), lang=("PYTHON",)) == {"pool", "user"}
    assert found(built, All(()), author=("WEI",)) == {"zh"}
    assert found(built, All(()), author=("ada",)) == {"apart", "lower"}, "one of the names will do"
    assert found(built, All(()), author=("ada grace",)) == set()


def test_what_does_not_exist_is_an_error(built: Built) -> None:
    for node in (Field("is", ("head",)), Field("colour", ("red",)), Term("a", "colour"), Prefix("a", "author")):
        with pytest.raises(InvalidValueError, match=r"head|is|colour|author"):
            found(built, node)
    with pytest.raises(InvalidValueError, match="colour"):
        found(built, Term("a"), {"colour": 1.0})


@pytest.mark.parametrize("filters", [Filters(after=math.nan), Filters(before=math.nan)])
def test_a_value_that_cannot_be_is_no_damage(built: Built, filters: Filters) -> None:
    limits: list[tuple[Node, Filters]] = [
        (Term("user"), filters),
        (Range(filters.after, filters.before), Filters()),
        (Term("user"), Filters(where=Range(filters.after, filters.before))),
    ]
    leg = MemoryLeg()
    catch_up(built[0], leg)
    for node, given in limits:
        with pytest.raises(InvalidValueError, match=r"(after|before) must be a number, not nan"):
            built[1].search(node, given, 10)
        with pytest.raises(InvalidValueError, match=r"(after|before) must be a number, not nan"):
            leg.search(node, given, 10)


def test_bytes_that_are_no_text_are_found_nowhere(built: Built) -> None:
    assert found(built, Word("pool\udcff")) == {"pool"}
    for node in (Word("\udcff"), Term("\udcff"), Field("lang", ("\udcff",)), Field("path", ("\udcff",))):
        assert found(built, node) == set()


@pytest.mark.parametrize("node", [Not(Term("zebra")), All(()), Range(after=0.0), Field("path", ("s", "d"))])
def test_without_a_word_the_latest_come_first(built: Built, node: Node) -> None:
    times = [CORPUS[rid][1].get("updated_at", -1.0) for rid in ranked(built, node)]
    assert times == sorted(times, reverse=True)
    assert times[:4] == [3000.0, 2000.0, 1000.0, 500.0]
    hits = built[1].search(node, Filters(), 2)
    assert [score for _, score in hits.hits] == [0.0, 0.0]
    assert hits.ceiling == 0.0
    assert hits.total == len(times)
    cids = [cid for cid, _ in hits.hits]
    assert built[1].scores(node, cids) == dict.fromkeys(cids, 0.0)


def test_a_negated_clause_does_not_flatten_scores(built: Built) -> None:
    asked = Any((Word("user"), Word("sign"), Word("connections")))
    plain = dict(searched(built, asked).hits)
    for excluded in (Term("free"), Phrase("the user"), Field("ext", ("py",)), Range(after=2500.0), Prefix("고")):
        hits = searched(built, All((asked, Not(excluded))))
        assert dict(hits.hits).items() <= plain.items(), excluded
        assert hits.ceiling == searched(built, asked).ceiling
        assert hits.forms == searched(built, asked).forms
    assert len(set(plain.values())) > 2


def test_a_condition_adds_nothing_to_scores(built: Built) -> None:
    plain, limited = searched(built, Term("user")), searched(built, All((Term("user"), Field("ext", ("py",)))))
    assert dict(limited.hits).items() < dict(plain.hits).items()
    assert limited.ceiling == plain.ceiling


def test_any_and_all_add_up_and_the_best_way_to_say_it_counts(built: Built) -> None:
    one, other = searched(built, Term("free")), searched(built, Term("database"))
    (_, first), (_, second) = one.hits[0], other.hits[0]
    both = (Term("free"), Term("database"))
    for node, score, ceiling in (
        (Any(both), first + second, one.ceiling + other.ceiling),
        (All(both), first + second, one.ceiling + other.ceiling),
        (Same(both), max(first, second), max(one.ceiling, other.ceiling)),
    ):
        hits = searched(built, node)
        assert hits.hits[0][1] == pytest.approx(score, rel=1e-5)
        assert hits.ceiling == pytest.approx(ceiling)


@pytest.mark.parametrize("text", ["connections", "user", "pool", "库", "여자"])
def test_a_meant_word_of_one_term_scores_as_a_word(built: Built, text: str) -> None:
    meant, word = searched(built, Term(text)), searched(built, Word(text))
    assert dict(meant.hits) == pytest.approx(dict(word.hits))
    assert (meant.ceiling, meant.forms) == (word.ceiling, word.forms)


def test_a_named_file_comes_first_for_meant_words_too(tmp_path: Path) -> None:
    corpus: Corpus = {
        "talk": ("argparse.py, again argparse.py, always argparse.py", {"path": "test/test_argparse.py"}),
        "file": ("def parse_args(): ...", {"path": "lib/argparse.py"}),
        "other": ("nothing of the kind", {"path": "lib/other.py"}),
    }
    built = build(tmp_path, corpus)
    for text in ("argparse.py", "lib/argparse.py"):
        assert ranked(built, Term(text))[0] == "file", text
    assert found(built, Term("argparse.py", "body")) == {"talk"}


def test_weights_of_one_call(built: Built) -> None:
    assert found(built, Word("quokka"), {"name": 3.0}) == {"meta"}
    assert found(built, Word("quokka")) == set()
    assert found(built, Word("database"), {"body": 0.0}) == set()
    assert found(built, Near("free", "database", 0), {"body": 0.0}) == {"pool"}, "NEAR is about the body in any case"
    assert found(built, Word("pool"), dict.fromkeys(Scoring().weights, 0.0)) == set()
    light, heavy = ({"title": weight} for weight in (0.5, 5.0))
    cids = [cid for cid, _ in searched(built, Term("connections")).hits]
    scores = [built[1].scores(Term("connections"), cids, weights=given)[cids[0]] for given in (light, heavy)]
    assert scores[0] < scores[1]
    assert dict(searched(built, Term("connections")).hits)[cids[0]] == pytest.approx(scores[0])


def test_scores_are_those_of_a_search(tmp_path: Path) -> None:
    built = build(tmp_path)
    for node in (Any((Word("user"), Word("docs"))), Prefix("s"), Fuzzy("usr"), Near("get", "user", 3), KOREAN):
        hits = dict(searched(built, node).hits)
        assert hits
        assert built[1].scores(node, [*hits, 12345]) == pytest.approx(hits, rel=1e-4), node


def test_beginnings_are_complete_however_many_words_there_are(tmp_path: Path) -> None:
    letters = str.maketrans("0123456789", "abcdefghij")
    corpus: Corpus = {f"r{n}": (f"go pre{n:03d} {'pre' * (n % 5 == 0)}".translate(letters), {}) for n in range(600)}
    corpus["title"] = ("go", {"title": "prelude"})
    corpus["other"] = ("go apre on prx", {})
    built = build(tmp_path, corpus)
    assert found(built, Prefix("pre")) == set(corpus) - {"other"}
    assert found(built, Prefix("go pre")) == set(corpus) - {"other", "title"}
    assert found(built, Prefix("prefj")) == {f"r{n}" for n in range(590, 600)}
    hits = searched(built, Prefix("pre"))
    assert all(score > 0 for _, score in hits.hits)
    assert 200 <= len(hits.forms["pre*"]) < 250
    assert hits.forms["pre*"][0] == "pre", "the most frequent one first"


def test_all_words_that_one_character_begins_are_found(tmp_path: Path) -> None:
    corpus: Corpus = {f"r{n}": (f"库{chr(0x4E00 + n)}", {}) for n in range(100)}
    corpus["none"] = ("数据", {})
    built = build(tmp_path, corpus)
    for node in (Word("库"), Term("库"), Prefix("库")):
        assert found(built, node) == set(corpus) - {"none"}


def test_beginnings_are_taken_apart_where_they_are_too_many(tmp_path: Path) -> None:
    import re

    words = sorted({f"a{n:b}" for n in range(200)} | {"a"})
    leg = build(tmp_path, {"all": (" ".join(words), {})})[1]
    groups = leg._querying().words.beginnings("a", "body", 20)
    counts = [sum(re.fullmatch(group, word) is not None for word in words) for group in groups]
    assert max(counts) <= 20
    assert sum(counts) == len(words), "each in one group"


def test_forms_say_what_the_index_holds(built: Built) -> None:
    forms = searched(built, All((Term("connecting"), Prefix("free dat"), Fuzzy("pol"), Not(Term("user"))))).forms
    assert set(forms) == {"connecting", "free", "dat*", "pol~"}
    assert set(forms["connecting"]) == {"connection", "connections"}
    assert (forms["free"], forms["dat*"], forms["pol~"]) == (("free",), ("database",), ("pool",))
    unknown = searched(built, Any((Phrase("free zebra"), Term("zebraCrossing")))).forms
    assert unknown == {"free": ("free",), "zebra": (), "crossing": ()}
    assert "대는" in searched(built, Term("50대")).forms["대"]


def test_the_vocabulary_is_that_of_all_text_fields(built: Built) -> None:
    leg = built[1]
    words = dict(leg.vocabulary())
    assert {"connection", "connections", "quokka", "marsupials", "words", "数据", "guide"} <= words.keys()
    assert words["user"] == 3
    assert not any("=" in word for word in words)
    assert dict(leg.vocabulary("conn")) == {"connection": 1, "connections": 1}
    assert leg.vocabulary("zebra") == []


def test_changes_are_seen_by_every_node(tmp_path: Path) -> None:
    store, leg = build(tmp_path)
    assert found((store, leg), Fuzzy("databse")) == {"pool"}
    changed = document_of(Resource(rid="new", path="src/n.py"), "databases")
    store.write([changed], ["pool"])
    catch_up(store, leg)
    assert found((store, leg), Fuzzy("databases", 1)) == {"new"}
    assert found((store, leg), Field("path", ("src/n",))) == {"new"}
    assert found((store, leg), Prefix("datab")) == {"new"}
    assert found((store, leg), Field("rid", ("pool",))) == set()


def test_dropped_chunks_do_no_harm_to_any_node(tmp_path: Path) -> None:
    store, leg = build(tmp_path, {f"r{n}": (f"50대는 common words number {n}", {}) for n in range(20)})
    for turn in range(3):
        store.write([document_of(Resource(rid=f"r{n}"), f"50대는 common words again {n} {turn}") for n in range(19)])
        catch_up(store, leg)
    for node in (
        Term("common-words"),
        Term("50대"),
        Prefix("com"),
        Prefix("common wor"),
        Fuzzy("comon"),
        Near("words", "common", 3),
        Near("common-words", "common", 3),
        Same((Term("common"), Phrase("words again"))),
    ):
        hits = leg.search(node, Filters(), 50)
        expected = 0 if node == Near("common-words", "common", 3) else 20
        assert hits.total == len(hits.hits) == expected, node
        assert hits.ceiling > 0
        assert all(score > 0 for _, score in hits.hits), node


@pytest.mark.parametrize("suffix", [".term", ".pos", ".idx", ".fast", ".fieldnorm"])
def test_damage_is_named_as_such_by_every_node(tmp_path: Path, suffix: str) -> None:
    build(tmp_path)[1].close()
    for file in (tmp_path / "keyword").glob(f"*{suffix}"):
        content = file.read_bytes()
        file.write_bytes(bytes(byte ^ 0xA5 for byte in content[:-60]) + content[-60:])  # the footer stays
    damaged = 0
    for node in (Term("user"), Term("50대"), Prefix("free dat"), Fuzzy("pol"), Near("a", "b"), Field("path", ("s",))):
        try:
            TantivyLeg.open(tmp_path / "keyword", store_id="test").search(node, Filters(), 10)
        except CorruptError:
            damaged += 1
    assert damaged or suffix in (".pos", ".fieldnorm"), "read as if nothing were wrong"


def test_pages_have_properties_too(tmp_path: Path) -> None:
    built = build(tmp_path, unit="page")
    assert found(built, Field("rid", ("zh",))) == {"zh"}
    assert found(built, All((Term("user"), Not(Field("ext", ("md",)))))) == {"user"}
    assert ranked(built, All(()))[:2] == ["user", "zh"]
