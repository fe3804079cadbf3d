"""The part of a truth store's contract that the understanding of a question relies on, as tests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from findling.domain.errors import InvalidValueError
from findling.domain.ports import TruthStore
from findling.domain.queries import All, Any, Field, Filters, Node, Not, Range, Same, Term, Word
from findling.domain.records import GlossaryTerm
from findling.domain.resources import Document
from findling.testing.samples import PLAIN, StoreSuite, line_document, with_metadata

__all__ = ["QuestionSuite"]


class QuestionSuite(StoreSuite):
    """The promises of a store about conditions on resources, supersession, and the glossary."""

    # Conditions on resources

    def test_a_condition_names_the_resources_that_it_holds_for(self, store: TruthStore) -> None:
        store.write(_LIBRARY)
        for node, rids in _CONDITIONS:
            assert _matching(store, Filters(where=node)) == rids, node
            unlike = "".join(sorted(set("1234") - set(rids)))
            assert _matching(store, Filters(where=Not(node))) == unlike, node

    def test_conditions_are_joined(self, store: TruthStore) -> None:
        store.write(_LIBRARY)
        python, ana, notes = Field("lang", ("python",)), Field("author", ("ana",)), Field("type", ("note",))
        expected: list[tuple[Node, str]] = [
            (All(()), "1234"),
            (Any(()), ""),
            (Same(()), ""),
            (All((python, ana)), "1"),
            (Any((python, notes)), "124"),
            (Same((python, notes)), "124"),
            (All((Not(python), Any((ana, Not(notes))))), "3"),
            (Not(Not(python)), "12"),
            (All((python, All((Not(Any((ana, notes))), Range(after=5.0))))), "2"),
        ]
        for node, rids in expected:
            assert _matching(store, Filters(where=node)) == rids, node

    def test_a_condition_holds_besides_the_other_filters(self, store: TruthStore) -> None:
        store.write(_LIBRARY)
        python = Field("lang", ("python",))
        assert _matching(store, Filters(where=python, path=("src",))) == "12"
        assert _matching(store, Filters(where=python, path=("src/api",), ext=("py",))) == "1"
        assert _matching(store, Filters(where=python, lang=("text",))) == ""

    def test_a_condition_may_have_thousands_of_values(self, store: TruthStore) -> None:
        store.write(_LIBRARY)
        many = tuple(f"x{number}" for number in range(40_000))
        for name, value, rid in (("rid", "3", "3"), ("lang", "TEXT", "3"), ("type", "note", "4"), ("tag", "Café", "2")):
            assert _matching(store, Filters(where=Field(name, (*many, value)))) == rid, name

    def test_a_condition_says_nothing_of_the_text(self, store: TruthStore) -> None:
        store.write(_LIBRARY)
        for node in (Word("x"), Not(Term("x")), All((Field("lang", ("python",)), Any((Word("x"),))))):
            with pytest.raises(InvalidValueError):
                _matching(store, Filters(where=node))
        for name in ("is", "colour", "title"):
            with pytest.raises(InvalidValueError):
                _matching(store, Filters(where=Field(name, ("x",))))

    def test_filters_name_the_resources_that_pass(self, store: TruthStore) -> None:
        store.write(_FILES)
        for filters, rids in _FILTERED:
            assert _matching(store, filters) == rids, filters

    def test_a_filter_may_name_thousands_of_paths(self, store: TruthStore) -> None:
        store.write([line_document("a", ["x"], path="folder/7/a.txt"), line_document("b", ["x"], path="b.txt")])
        assert _matching(store, Filters(path=tuple(f"folder/{n}" for n in range(2000)))) == "a"

    # What supersedes what

    def test_a_successor_is_what_names_a_resource(self, store: TruthStore) -> None:
        assert store.successors(["a"]) == {}
        assert store.superseded() == []
        store.write([_replacing("b", "a"), line_document("a", ["x"]), _replacing("c", "b"), _replacing("d", "gone")])
        assert store.successors(["b", "d", "a", "nowhere", "a"]) == {"b": "c", "a": "b"}
        assert store.successors(iter(["gone"])) == {"gone": "d"}
        assert store.successors([]) == {}
        assert store.superseded() == ["a", "b", "gone"]

    def test_of_several_successors_the_one_changed_last_counts(self, store: TruthStore) -> None:
        store.write([_replacing("z", "a"), _replacing("b", "a")])
        assert store.successors(["a"]) == {"a": "b"}
        store.write([with_metadata(_replacing("z", "a"), title="New")])
        assert store.successors(["a"]) == {"a": "z"}
        assert store.superseded() == ["a"]
        store.write([], ["z"])
        assert store.successors(["a"]) == {"a": "b"}

    def test_successors_follow_what_is_written_and_deleted(self, store: TruthStore) -> None:
        store.write([_replacing("b", "a")])
        store.write([_replacing("b", "c")])
        assert (store.successors(["a", "c"]), store.superseded()) == ({"c": "b"}, ["c"])
        store.write([line_document("b", ["x"], fields={"status": "open"})])
        assert (store.successors(["a", "c"]), store.superseded()) == ({}, [])
        store.write([_replacing("b", "a")])
        store.write([], ["b"])
        assert (store.successors(["a", "c"]), store.superseded()) == ({}, [])

    def test_only_another_resource_can_be_superseded(self, store: TruthStore) -> None:
        store.write([_replacing("a", "a"), _replacing("b", ""), _replacing("c", "caf\udce9")])
        store.write([line_document("d", ["x"], fields={"note": '"supersedes":"a"'})])
        assert store.successors(["a", "", "d"]) == {}
        assert store.superseded() == []

    def test_awkward_ids_are_superseded_like_any_other(self, store: TruthStore) -> None:
        ids = ["nul\0inside", "nul", '"quote"', "ä/\U0001f33b", "100%", " "]
        store.write(_replacing(f"new {rid}", rid) for rid in ids)
        assert store.successors(ids) == {rid: f"new {rid}" for rid in ids}
        assert store.superseded() == sorted(ids)

    def test_thousands_of_ids_may_be_asked_for(self, store: TruthStore) -> None:
        store.write(_replacing(f"new{number}", f"old{number}") for number in range(0, 2000, 2))
        expected = {f"old{number}": f"new{number}" for number in range(0, 2000, 2)}
        assert store.successors(f"old{number}" for number in range(40_000)) == expected
        assert store.superseded() == sorted(expected)

    # Glossary

    def test_terms_come_back_in_the_order_of_group_and_key(self, store: TruthStore) -> None:
        assert store.glossary() == []
        store.write_glossary(iter(_TERMS))
        assert store.glossary() == sorted(_TERMS)
        assert store.glossary()[0] == min(_TERMS)
        assert all(isinstance(term, GlossaryTerm) for term in store.glossary())

    def test_a_term_replaces_the_one_with_its_group_and_key(self, store: TruthStore) -> None:
        store.write_glossary(_TERMS)
        first, second, *rest = sorted(_TERMS)
        decided = first._replace(surface="Other", status="rejected", snippet="", decided_at=5.5)
        store.write_glossary([decided._replace(status="alias"), decided])
        assert store.glossary() == [decided, second, *rest]

    def test_terms_are_dropped_before_others_are_put_in(self, store: TruthStore) -> None:
        store.write_glossary(_TERMS)
        first, second, *rest = sorted(_TERMS)
        renewed = first._replace(source="person")
        store.write_glossary([renewed], iter([first[:2], second[:2], ("no group", first.key)]))
        assert store.glossary() == [renewed, *rest]
        store.write_glossary([], [term[:2] for term in _TERMS])
        assert store.glossary() == []
        store.write_glossary([])

    def test_the_version_of_the_glossary_rises_with_every_write_that_lands(self, store: TruthStore) -> None:
        store.write([PLAIN])
        versions = [store.glossary_version()]
        for terms in (_TERMS, [], _TERMS[:1]):
            store.write_glossary(terms)
            versions.append(store.glossary_version())
        assert versions[0] == 0
        assert versions == sorted(set(versions))
        with pytest.raises(InvalidValueError):
            store.write_glossary([_TERMS[0]._replace(surface="\ud800")])
        store.write([], list(store.rids()))
        assert store.glossary_version() == versions[-1]

    def test_the_glossary_is_no_change_and_outlives_resources(self, store: TruthStore) -> None:
        store.write([PLAIN])
        store.write_glossary(_TERMS)
        assert store.seq() == 1
        assert list(store.changes(1)) == []
        store.write([], list(store.rids()))
        assert store.glossary() == sorted(_TERMS)

    def test_a_term_that_cannot_be_kept_is_refused_with_all_that_came_with_it(self, store: TruthStore) -> None:
        store.write_glossary(_TERMS[:1])
        refused = [
            _TERMS[1]._replace(group="\ud800"),
            _TERMS[1]._replace(key="\ud800"),
            _TERMS[1]._replace(surface="\ud800"),
            _TERMS[1]._replace(snippet="caf\udce9"),
            _TERMS[1]._replace(decided_at=float("nan")),
        ]
        for term in refused:
            with pytest.raises(InvalidValueError):
                store.write_glossary([_TERMS[2], term], [_TERMS[0][:2]])
            assert store.glossary() == _TERMS[:1]
        with pytest.raises(InvalidValueError):
            store.write_glossary([_TERMS[2]], [_TERMS[0][:2], ("a", "\ud800")])
        assert store.glossary() == _TERMS[:1]

    def test_a_list_of_terms_that_breaks_off_leaves_nothing_behind(self, store: TruthStore) -> None:
        store.write_glossary(_TERMS[:1])

        def interrupted() -> Iterator[GlossaryTerm]:
            yield _TERMS[1]
            raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            store.write_glossary(interrupted(), [_TERMS[0][:2]])
        assert store.glossary() == _TERMS[:1]


def _matching(store: TruthStore, filters: Filters) -> str:
    """The ids of the resources that pass, one letter each, in order."""
    rids = {change.number: change.rid for change in store.changes(0)}
    return "".join(sorted(rids[number] for number in store.matching(filters)))


def _replacing(rid: str, replaced: str) -> Document:
    return line_document(rid, ["x"], fields={"supersedes": replaced})


_LIBRARY = [
    line_document("1", ["x"], path="src/api/Main.py", lang="python", author="Ana Lima", updated_at=9.5),
    line_document("2", ["x"], path="src/api_v2/util.test.py", lang="Python", tags=("Draft", "café"), updated_at=20.0),
    line_document(
        "3", ["x"], path="docs/Übersicht.txt", lang="text", visibility=("team",), fields={"system": "Billing, mail"}
    ),
    line_document("4", ["x"], type="Note", author="Lima, Bo", tags=("",), fields={"system": "", "status": "x"}),
]

_CONDITIONS: list[tuple[Node, str]] = [
    (Field("path", ("api",)), "12"), (Field("path", ("API/",)), "1"), (Field("path", ("/api",)), ""),
    (Field("path", ("/SRC/A",)), "12"), (Field("path", ("übers",)), "3"), (Field("path", ("",)), "1234"),
    (Field("path", ("nowhere", "docs/")), "3"), (Field("path", ("*.py",)), "12"), (Field("path", ("api*",)), "12"),
    (Field("path", ("ap?",)), "1"), (Field("path", ("/api*",)), ""), (Field("path", ("/src/*/util*",)), "2"),
    (Field("path", ("s*c",)), "12"), (Field("path", ("*rc",)), "12"), (Field("path", ("/src?api/main.py",)), "1"),
    (Field("path", ("util.*",)), "2"), (Field("path", ("il.*",)), ""), (Field("path", ("main.p*y",)), "1"),
    (Field("path", ("main.p?y",)), ""), (Field("path", ("*",)), "1234"), (Field("ext", ("PY",)), "12"),
    (Field("ext", (".test.py",)), "2"), (Field("ext", ("md", "txt")), "3"), (Field("lang", ("PYTHON",)), "12"),
    (Field("lang", ("pyth", "")), ""), (Field("type", ("FILE",)), "123"), (Field("type", ("note", "mail")), "4"),
    (Field("tag", ("CAFÉ",)), "2"), (Field("tag", ("draf",)), ""), (Field("tag", ("",)), "4"),
    (Field("system", ("billing",)), "3"), (Field("system", ("MAIL", "other")), "3"),
    (Field("system", ("", "bill", "billing, mail")), ""), (Field("author", ("lima",)), "14"),
    (Field("author", ("lima ANA",)), "1"), (Field("author", ("ana bo",)), ""), (Field("author", ("ana", "bo")), "14"),
    (Field("author", ("an", "", "!")), ""), (Field("rid", ("2", "4", "9")), "24"), (Field("rid", ()), ""),
    (Range(), "1234"), (Range(after=9.0), "12"), (Range(after=9.5), "2"), (Range(before=20.0), "1"),
    (Range(before=20.5), "1"), (Range(after=-5.0, before=9.0), ""),
]  # fmt: skip

_FILES = [
    line_document("1", ["x"], path="src/a_b/Übung.TAR.GZ", lang="py", updated_at=99.9),
    line_document("2", ["x"], path="src/aXb/c.gz", author="Ana", tags=("100%", 'a","b'), updated_at=-0.5),
    line_document("3", ["x"], path="src", type="chat", visibility=("user:ana", "team")),
    line_document("4", ["x"], visibility=(), lang="DE"),
    line_document("5", ["x"], path=".gz", tags=("",)),
    line_document("6", ["x"], path="src0/über.gz", lang="", author=""),
]

_FILTERED = (
    (Filters(), "123456"), (Filters(ext=("gz",)), "126"), (Filters(ext=(".Tar.gz",)), "1"),
    (Filters(ext=("g_", "g%", "")), ""), (Filters(not_ext=("gz",)), "345"),
    (Filters(ext=("gz",), not_ext=("tar.gz",)), "26"), (Filters(path=("src",)), "123"),
    (Filters(path=("/src/a_b/",)), "1"), (Filters(path=("SRC", "src/a", "src/a_b/Übung", "%")), ""),
    (Filters(path=("/",)), "123456"), (Filters(path=("src/aXb", "", "src/aXb/c.gz", "src0")), "26"),
    (Filters(type=("chat", "note")), "3"), (Filters(type=("Chat",)), "3"), (Filters(lang=("PY", "de")), "14"),
    (Filters(lang=("",)), ""), (Filters(author=("Ana",)), "2"), (Filters(author=("ANA", "")), "2"),
    (Filters(tag=("100%", "other")), "2"), (Filters(tag=('A","B',)), "2"), (Filters(tag=("1000", "a", "b", ",")), ""),
    (Filters(tag=("",)), "5"), (Filters(after=99.0), "1"), (Filters(after=99.1), ""),
    (Filters(after=0.0, before=99.9), "2"), (Filters(before=100.0), "12"),
)  # fmt: skip

_TERMS = [
    GlossaryTerm("rate limit", "throttle", "Throttle", "alias", "person", "a throttle for …", 1_700_000_000.25),
    GlossaryTerm("rate limit", "rate limit", "Rate  limit", "canonical"),
    GlossaryTerm("", "nul\0inside", "NUL\0inside", "protected", "mined", decided_at=0.0),
    GlossaryTerm("rate limit", "quota", "quota", "pending", "mined", "the quota (rate limit)"),
    GlossaryTerm("größe", "\U0001f33b", "\U0001f33b", "alias"),
    GlossaryTerm("Rate", "", "", "rejected", decided_at=-1.5),
]
