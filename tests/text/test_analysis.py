"""Terms are what a person would look for, on every script, and the same at every call site."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from findling.text.analysis.analysis import (
    index_form,
    is_compound,
    matching_spans,
    phrase_terms,
    prefix_terms,
    row_terms,
    terms,
)

MIXED = "cCxé+#_1. \n数库대е\u0301🚀❤\ufe0f\u200d👩🏽🇩🇪✓→㎏™Ｃ＋"
"""Everything that has a rule of its own, and what may stand next to it."""


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("getUserName", "getusername get user name"),
        ("MAX_VALUE", "max value"),
        ("x509", "x509 x 509"),
        ("utf8", "utf8 utf 8"),
        ("IPv6Address", "ipv6address ipv6 ip v 6 address"),
        ("a_b_c", "a b c"),
        ("HTTPServer", "httpserver http server"),
        ("__init__", "init"),
        ("Go C AI", "go c ai"),
        ("C++ and C#", "c c++ and c c#"),
        ("C++17 Notepad++", "c++17 c c++ 17 notepad notepad++"),
        ("NotePad++", "notepad note pad notepad++"),
        ("for (i = 0; i < n; i++)", "for i 0 i n i i++"),
        ("a++b ++c d+++ 2x++", "a b c d 2x 2 x"),
        ("PR#12 a## #e abc# x#y", "pr 12 a e abc x y"),
        ("abcdefghijkl++ abcdefghijklm++", "abcdefghijkl abcdefghijkl++ abcdefghijklm"),
        ("1+1 x+y # + ##", "1 1 x y"),
        ("使用C++开发 größe++ F#é", "使用 用 c c++ 开发 发 grosse f f# e"),
        ("Ｃ＋＋", "c c++"),
        ("don't", "don t"),
        ("café Zürich", "cafe zurich"),
        ("straße ﬁle ½", "strasse file 1 2"),
        ("Ærø Łódź", "aero lodz"),
        ("Привет Ёлка йод", "привет елка йод"),
        ("Ελλάδα ΣΊΣΥΦΟΣ", "ελλαδα σισυφοσ"),
        ("الْكِتَابُ", "الكتاب"),
        ("हिन्दी", "हिन्दी"),
        ("数据库", "数据 据库 库"),
        ("東", "東"),
        ("인증을", "인증 증을 을"),
        ("สวัส", "สว วั ัส ส"),
        ("３Ｄ ＡＢＣ", "3d 3 d abc"),
        ("naïve_Café", "naive cafe"),
        ("data数据", "data 数据 据"),
        ("soft\u00adhyphen", "softhyphen"),
        ("🎉 party", "🎉 party"),
        ("ship🚀🚀it", "ship 🚀 🚀 it"),
        ("👍🏽 👩🏽\u200d🚀 ❤\ufe0f", "👍 👩 🚀 ❤"),
        ("🇩🇪🇫🇷 🇩", "🇩🇪 🇫🇷"),
        ("1\ufe0f\u20e3 葛\U000e0100城", "1 葛城 城"),
        ("→ ─ ≠ ✓ © ™", "tm"),
        ("3f2a9c1b7d", "3f2a9c1b7d"),
        ("x509v3Cert2024", "x509v3cert2024 x509 x 509 v3 v 3 cert2024 cert 2024"),
        ("getUserNameFromDatabaseById", "getusernamefromdatabasebyid get user name from database by id"),
        ("x" * 200, ""),
        ("", ""),
    ],
)
def test_terms_of_a_text(text: str, expected: str) -> None:
    assert index_form(text).split() == expected.split()


@pytest.mark.parametrize("identifier", ["getUserName", "MAX_VALUE", "x509", "utf8", "HTTPServer", "a_b_c"])
def test_an_identifier_gives_the_same_whole_in_any_case(identifier: str) -> None:
    assert set(terms(identifier.lower())) <= set(terms(identifier))


@given(st.text())
def test_any_text_gives_terms_that_are_terms_of_themselves(text: str) -> None:
    for term in terms(text):
        assert not term.isspace() and term
        assert term in terms(term)


@given(st.text(), st.text())
def test_terms_do_not_reach_across_a_line_break(left: str, right: str) -> None:
    assert terms(f"{left}\n{right}") == terms(left) + terms(right)


@given(st.text(alphabet=st.characters(max_codepoint=127)))
def test_ascii_takes_the_same_way_as_everything_else(text: str) -> None:
    assert terms(text + " é")[:-1] == terms(text)


@given(st.text(st.characters(exclude_categories=["Cs"])), st.data())
def test_matching_spans_are_the_words_that_give_a_wanted_term(text: str, data: st.DataObject) -> None:
    wanted = set(data.draw(st.lists(st.sampled_from(terms(text) or ["none"]), max_size=3)))
    spans = matching_spans(text, wanted)
    for span, following in pairwise(spans):
        assert span[0] < following[0]
    for start, end, found in spans:
        assert start < end
        assert found
        assert set(found) <= wanted


@given(
    st.text(st.sampled_from("aAbB12_- .\n+#"), max_size=40),
    st.sets(st.sampled_from(["a", "b", "ab", "aa", "1", "a1", "a++", "b#"])),
)
def test_ascii_and_other_texts_are_highlighted_alike(text: str, wanted: set[str]) -> None:
    plain, other = matching_spans(text, wanted), matching_spans(f"{text} é", wanted)
    assert [(start, end, set(found)) for start, end, found in plain] == [(s, e, set(found)) for s, e, found in other]


@given(st.text() | st.text(st.sampled_from(MIXED)) | st.text(st.characters(max_codepoint=127)))
@example("5㎏Ⓐ")
@example("数\u00ad据")
def test_every_term_of_any_text_has_a_span_that_gives_it(text: str) -> None:
    spans = matching_spans(text, set(terms(text)))
    assert {term for _, _, found in spans for term in found} == set(terms(text))
    for start, end, found in spans:
        assert set(found) <= set(terms(text[start:end]))


@pytest.mark.parametrize("text", ["the getUserName call", "Überprüfung der 数据库", "हिन्दी में", "plain words only"])
def test_every_term_of_a_text_has_its_span(text: str) -> None:
    assert {term for _, _, found in matching_spans(text, set(terms(text))) for term in found} == set(terms(text))


@pytest.mark.parametrize(
    ("text", "term", "marked"),
    [
        ("Learn C++, not C.", "c++", ["C++"]),
        ("Learn C++, not C.", "c", ["C++", "C"]),
        ("x+y", "x", ["x"]),
        ("größer in C#, C++17", "c#", ["C#"]),
        ("使用C++开发", "c++", ["C++"]),
        ("go 👍🏽!", "👍", ["👍🏽"]),
        ("a 👩🏽\u200d🚀 flew", "🚀", ["👩🏽\u200d🚀"]),
        ("🇩🇪🇫🇷", "🇫🇷", ["🇫🇷"]),
    ],
)
def test_what_is_no_letter_is_marked_as_it_is_written(text: str, term: str, marked: list[str]) -> None:
    assert [text[start:end] for start, end, _ in matching_spans(text, {term})] == marked


@pytest.mark.parametrize(
    ("word", "row", "prefix"),
    [
        ("c++", "c++", "c++"),
        ("C++'s", "c++", "c++ s"),
        ("NotePad++", "notepad++", "notepad++"),
        ("c++17", "c c++ 17", "c++17"),
        ("c++/cli", "c++ cli", "c++ cli"),
        ("modern-c++", "modern c c++", "modern c c++"),
        ("getUser", "get user", "getuser"),
        ("self.getUser", "self getuser get user", "self getuser get user"),
        ("node.js", "node js", "node js"),
        ("数据库", "数据 据库", "数据 据库 库"),
        ("🚀", "🚀", "🚀"),
        ("🚀🚀", "🚀 🚀", "🚀 🚀"),
        ("!!!", "", ""),
        ("＋＋", "", ""),
        ("Ｃ＋＋", "c++", "c++"),
    ],
)
def test_the_terms_of_a_word_that_is_asked_for(word: str, row: str, prefix: str) -> None:
    assert row_terms(word) == row.split()
    assert prefix_terms(word) == prefix.split()


@pytest.mark.parametrize(
    ("query", "text", "stands"),
    [
        ("c++", "written in C++.", True),
        ("c++", "written in C, C# and Java", False),
        ("c++ templates", "modern C++ templates", True),
        ("c templates", "modern C++ templates", False),
        ("modern c++", "modern C++ templates", True),
        ("this.count", "this.count++;", True),
        ("self.getUser", "x = self.getUser()", True),
        ("数据", "数据库", True),
        ("go 🚀", "go 🚀🚀", True),
    ],
)
def test_a_phrase_stands_where_it_is_written(query: str, text: str, stands: bool) -> None:
    for row in (phrase_terms(query), row_terms(query)):
        assert (f" {' '.join(row)} " in f" {index_form(text)} ") == stands


@given(st.text() | st.text(st.sampled_from(MIXED)), st.text(st.sampled_from(MIXED)))
def test_the_row_of_a_text_stands_in_it_and_terms_have_single_spaces(text: str, before: str) -> None:
    form = index_form(f"{before} {text}")
    assert form.split(" ") == (terms(before) + terms(text) or [""])
    for row in (phrase_terms(text), row_terms(text)):
        assert " ".join(row) in form
    assert bool(phrase_terms(text)) == bool(terms(text))
    assert bool(prefix_terms(text)) == bool(terms(text))


@pytest.mark.parametrize(
    ("word", "expected"),
    [("c++", False), ("c++17", False), ("c#", False), ("a+b", True), ("c++/cli", True), ("node.js", True)],
)
def test_a_name_with_a_sign_is_one_word(word: str, expected: bool) -> None:
    assert is_compound(word) == expected
