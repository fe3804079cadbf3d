"""Spellings that are one term."""

from __future__ import annotations

import importlib.util

import pytest
from hypothesis import given
from hypothesis import strategies as st

from findling.text.mining.keys import glossary_key, has_hangul, lower_key


@pytest.mark.parametrize(
    ("surfaces", "key"),
    [
        (["rate limit", "Rate-Limits", "rateLimit", "RATE_LIMIT", " rate \n limits ", "ｒａｔｅ limit"], "rate limit"),
        (["café", "Cafe", "CAFÉS", "cafe\u0301"], "cafe"),
        (["Straße", "STRASSE"], "strass"),
        (["JWT", "JWTs", "jwt"], "jwt"),
        (["URL", "URLs", "url", "urls"], "url"),
        (["user's guide", "user guides"], "user guid"),
        (["sign-in", "sign in", "signIn"], "sign in"),
        (["인증", "인증을", "인증은", "인증에서", "인증으로"], "인증"),
        (["접속 제한", "접속제한", "접속을 제한"], "접속 속제 제한"),
        (["API", "API를"], "api"),
        (["数据库", " 数据库 "], "数据 据库"),
    ],
)
def test_variants_of_a_term_have_one_key(surfaces: list[str], key: str) -> None:
    assert {glossary_key(surface) for surface in surfaces} == {key}


@pytest.mark.parametrize(
    ("one", "other"),
    [("C", "C++"), ("C", "C#"), ("C++", "C#"), ("login", "log in"), ("rate limit", "limit rate"), ("sign", "sign-in")],
)
def test_different_terms_have_different_keys(one: str, other: str) -> None:
    assert glossary_key(one) != glossary_key(other)


def test_a_short_korean_word_that_ends_like_a_particle_is_whole() -> None:
    assert (glossary_key("결과"), glossary_key("회의")) == ("결과", "회의")


@pytest.mark.skipif(importlib.util.find_spec("kiwipiepy") is None, reason="needs kiwipiepy")
def test_an_analyser_keeps_whole_nouns_and_drops_longer_particles() -> None:
    assert glossary_key("전문가를") == glossary_key("전문가") != glossary_key("전문")
    assert glossary_key("사용자에게") == glossary_key("사용자")


@pytest.mark.parametrize("surface", ["", "  ", "!!!", "+#", "—"])
def test_what_has_no_word_has_no_key(surface: str) -> None:
    assert glossary_key(surface) == ""


def test_capitals_inside_a_word_can_be_disregarded() -> None:
    assert glossary_key("GitHub") == "git hub"
    assert lower_key("GitHub") == glossary_key("github") == "github"


def test_hangul_is_noticed() -> None:
    assert has_hangul("API를")
    assert not has_hangul("日本語 API café")


@given(st.text(max_size=40))
def test_no_text_is_too_strange(text: str) -> None:
    key = glossary_key(text)
    assert key == " ".join(key.split())
    assert glossary_key(f" {text} ") == key
