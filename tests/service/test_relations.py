"""Relations in code: the lines that define, import, call or use a name, and the definitions of a file."""

from __future__ import annotations

from pathlib import Path

import pytest

import findling
from findling.domain.errors import InvalidValueError, NotFoundError
from findling.domain.reports import RefsAnswer
from findling.text.chunking.bare_code import without_comments

SESSIONS = '''"""Session.send is the heart."""
from net import Adapter

class Session:
    def send(self, request):
        # send it
        return Adapter().send(request)

    def close(self):
        print(f"{self.send}", "send")

def run():
    hook = Session().send
'''
ADAPTERS = """package net

// Send sends.
func (a *Adapter) Send(r string) error {
\treturn a.send(r)
}
"""


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    root = tmp_path / "tree"
    (root / "lib").mkdir(parents=True)
    (root / "lib" / "sessions.py").write_text(SESSIONS)
    (root / "lib" / "adapter.go").write_text(ADAPTERS)
    (root / "notes.md").write_text("call send() twice\n")
    return root


def _told(answer: RefsAnswer) -> list[tuple[int, str, str]]:
    return [(one.line, one.kind, one.symbol) for one in answer.references if one.path == "lib/sessions.py"]


def test_refs_are_the_lines_of_code_that_have_the_name(tree: Path) -> None:
    with findling.open(tree) as engine:
        answer = engine.exact.refs("send")
        assert _told(answer) == [
            (5, "defines", "Session.send"),
            (7, "calls", "Session.send"),
            (10, "uses", "Session.close"),
            (13, "uses", "run"),
        ]
        assert {one.path for one in answer.references} == {"lib/sessions.py", "lib/adapter.go"}
        assert [(one.line, one.kind) for one in engine.exact.refs("Adapter").references if "py" in one.path] == [
            *[(2, "imports"), (7, "calls")]
        ]
        assert engine.exact.refs("send", within="notes.md").references == ()
        cut = engine.exact.refs("send", limit=1)
        assert (len(cut.references), cut.total, cut.is_cut) == (1, answer.total, True)
        with pytest.raises(InvalidValueError):
            engine.exact.refs("a b")


def test_a_qualified_name_is_defined_in_its_scope(tree: Path) -> None:
    (tree / "lib" / "other.py").write_text("class Pool:\n    def send(self):\n        pass\n")
    with findling.open(tree) as engine:
        for name, paths in (
            ("Session.send", {"lib/sessions.py"}),
            ("Pool#send", {"lib/other.py"}),
            ("No::send", set()),
        ):
            found = engine.exact.refs(name).references
            assert {one.path for one in found if one.kind == "defines"} == paths
            assert any(one.kind == "calls" for one in found)


def test_refs_are_those_of_the_files_as_they_are_now(tree: Path) -> None:
    with findling.open(tree) as engine:
        assert not engine.exact.refs("brand_new").references
        (tree / "lib" / "new.rs").write_text("fn brand_new() {}\n")
        assert [one.kind for one in engine.exact.refs("brand_new").references] == ["defines"]


def test_an_outline_lists_definitions_with_their_lines(tree: Path) -> None:
    with findling.open(tree) as engine:
        found = engine.exact.outline("lib/sessions.py").definitions
        assert [(one.name, one.line, one.end, one.level) for one in found] == [
            ("Session", 4, 10, 0),
            ("Session.send", 5, 7, 1),
            ("Session.close", 9, 10, 1),
            ("run", 12, 13, 0),
        ]
        assert [(one.name, one.line, one.end) for one in engine.exact.outline("lib/adapter.go").definitions] == [
            ("Adapter.Send", 4, 6)
        ]
        assert engine.exact.outline("notes.md").definitions == ()
        with pytest.raises(NotFoundError):
            engine.exact.outline("lib/none.py")


def test_comments_and_strings_are_blank_and_nothing_else() -> None:
    for lang, text, kept in (
        ("python", 'a = "x" # y\n"""z\nz"""\nb', "a = b"),
        ("rust", "fn f<'a>(x: &'a str) { 'q'; /* c\n c */ \"s\" } // t", "fn f<'a>(x: &'a str) { ; }"),
        ("javascript", "x = 'a' + \"b\" // c\n`${y}`", "x = + `${y}`"),
        ("lua", "--[[ a\n b ]]\nx = 'y' -- z", "x ="),
    ):
        hidden = without_comments(text, lang)
        assert " ".join(hidden.split()) == kept, lang
        assert [len(row) for row in hidden.split("\n")] == [len(row) for row in text.split("\n")]


def test_a_name_that_code_writes_in_another_style_is_named(tree: Path) -> None:
    (tree / "lib" / "users.py").write_text("def get_user_name(x):\n    return x\n")
    with findling.open(tree) as engine:
        answer = engine.exact.refs("getUserName")
        assert not answer.references and not answer.is_cut
        assert [str(one.fix) for one in answer.degraded] == ["findling refs get_user_name"]
        assert engine.exact.refs("get_user_name").degraded == ()
        assert engine.exact.refs("getUserNames").degraded == ()
        assert engine.exact.refs("getUserName", within="notes.md").degraded == ()
