"""Terms are what a person would look for, on every script, and the same at every call site."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from findling.text.analysis import index_form, matching_spans, terms


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
        ("C++ and C#", "c and c"),
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
        ("🎉 party", "party"),
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
        assert span.start < following.start
    for span in spans:
        assert span.start < span.end
        assert span.terms
        assert set(span.terms) <= wanted


@given(
    st.text(st.sampled_from("aAbB12_- .\n"), max_size=40), st.sets(st.sampled_from(["a", "b", "ab", "aa", "1", "a1"]))
)
def test_ascii_and_other_texts_are_highlighted_alike(text: str, wanted: set[str]) -> None:
    plain, other = matching_spans(text, wanted), matching_spans(f"{text} é", wanted)
    assert [(start, end, set(found)) for start, end, found in plain] == [(s, e, set(found)) for s, e, found in other]


@pytest.mark.parametrize("text", ["the getUserName call", "Überprüfung der 数据库", "हिन्दी में", "plain words only"])
def test_every_term_of_a_text_has_its_span(text: str) -> None:
    assert {term for span in matching_spans(text, set(terms(text))) for term in span.terms} == set(terms(text))
