"""Statements of a text about its own words: acronyms, other names, compounds written in two ways."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from findling.text.mining.marked_names import is_told
from findling.text.mining.noun_runs import compounds
from findling.text.mining.synonyms import LONGEST_SNIPPET, acronyms, is_one_term, other_names, prose, snippet_of
from tests.counts import tries


@pytest.mark.parametrize(
    "label", [":%s/old/new/gc", "GB", "Fridays", "EUR", "16 GB", "EUR 20", "May 3", "rm -rf", "2024"]
)
def test_commands_units_days_and_currencies_are_no_names_to_tell(label: str) -> None:
    """They were the names facet of 48 notes, and EUR their only theme."""
    assert not is_told(label)


@pytest.mark.parametrize(
    "label", ["Anna", "US", "C++", "March of the Penguins", "東京", "O'Neil", ".gitignore", "AT&T"]
)
def test_names_are_told(label: str) -> None:
    assert is_told(label)


def explained(text: str) -> list[tuple[str, str]]:
    found = list(acronyms(text))
    assert {candidate.source for candidate in found} <= {"acronym"}
    return [(candidate.surface, candidate.group) for candidate in found]


def named(text: str) -> list[tuple[str, str]]:
    return [(candidate.surface, candidate.group) for candidate in other_names(text)]


@pytest.mark.parametrize(
    ("text", "surface", "group"),
    [
        ("set the Time To Live (TTL) to 60", "TTL", "Time To Live"),
        ("the TTL (time to live) of a record", "TTL", "time to live"),
        ("the TTL (time to live, in seconds) of it", "TTL", "time to live"),
        ("the U.S. Department of Defense (DoD) said", "DoD", "Department of Defense"),
        ("we use role-based access control (RBAC) here", "RBAC", "role-based access control"),
        ("in hypertext markup language (HTML)", "HTML", "hypertext markup language"),
        ("the Extensible Markup Language (XML)", "XML", "Extensible Markup Language"),
        ("as JavaScript Object Notation ('JSON')", "JSON", "JavaScript Object Notation"),
        ("an access control list (acl) says", "acl", "access control list"),
        ("Several access control\nlists (ACLs) apply", "ACL", "access control lists"),
        ("about internationalization (i18n) of it", "i18n", "internationalization"),
        ("a peer-to-peer (P2P) network", "P2P", "peer-to-peer"),
        ("Research and Development (R&D)", "R&D", "Research and Development"),
        ("in der Datenschutz-Grundverordnung (DSGVO) steht", "DSGVO", "Datenschutz-Grundverordnung"),
        (
            "das Bundesministerium für Bildung und Forschung (BMBF)",
            "BMBF",
            "Bundesministerium für Bildung und Forschung",
        ),
        ("inklusive Umsatzsteuer (USt).", "USt", "Umsatzsteuer"),
        ("- WPT: web platform tests - a suite of tests", "WPT", "web platform tests"),
        ("TTL stands for time to live in caches.", "TTL", "time to live"),
        ("TTL steht für Time To Live.", "TTL", "Time To Live"),
        ("of Major League Baseball's (MLB) season", "MLB", "Major League Baseball"),
    ],
)
def test_an_acronym_and_what_it_is_short_for(text: str, surface: str, group: str) -> None:
    assert explained(text) == [(surface, group)]


@pytest.mark.parametrize(
    "text",
    [
        "as was shown (2019) before",
        "as was shown (Miller 2019)",
        "something (see Figure 1)",
        "some fruit (e.g. apples)",
        "click the button (OK)",
        "an apple (A) and a banana (B)",
        "Return the value (TRUE)",
        "return code when the operation failed (RC)",
        "the thing (which is long) is here",
        "call foo(BAR) with Foo(b)",
        "file open error(FOE)",
        "Note: no one thinks everything",
        "The End. Fresh start (TEFS)",
        "the top tier list, which is long (TTL)",
        "a the (AT)",
        "TTL (TTL)",
        "RBAC (we use it for roles based on access control)",
    ],
)
def test_what_is_no_acronym(text: str) -> None:
    assert explained(text) == []


@pytest.mark.parametrize(
    ("text", "surface", "group"),
    [
        ("A rate limiter (also throttle) helps.", "throttle", "rate limiter"),
        ("The rate limiter (also known as the throttle) helps.", "throttle", "rate limiter"),
        ("The rate limiter, also known as a throttle, helps.", "throttle", "rate limiter"),
        ("The rate limiter, a.k.a. throttle, helps.", "throttle", "rate limiter"),
        ("The rate limiter (aka throttle) helps.", "throttle", "rate limiter"),
        ("It uses a rate limiter, also called throttle in some books.", "throttle", "rate limiter"),
        ("A rate limiter is also called a throttle.", "throttle", "rate limiter"),
        ('A rate limiter, also referred to as "throttle", helps.', "throttle", "rate limiter"),
        ("The bidirectional algorithm, or bidi for short, is old.", "bidi", "bidirectional algorithm"),
        ("The bidirectional algorithm (bidi for short) is old.", "bidi", "bidirectional algorithm"),
        ("the Windows Subsystem for Linux (also known as WSL)", "WSL", "Windows Subsystem for Linux"),
        ("A throttle, also known as a rate limiter, helps.", "throttle", "rate limiter"),
        ("a denial of service attack, also known as flooding, is", "flooding", "denial of service attack"),
        ("Die Ratenbegrenzung (auch Drosselung) hilft.", "Drosselung", "Ratenbegrenzung"),
        ("Die Ratenbegrenzung, auch Drosselung genannt, hilft.", "Drosselung", "Ratenbegrenzung"),
        ("Die Ratenbegrenzung (auch als Drosselung bekannt) hilft.", "Drosselung", "Ratenbegrenzung"),
        ("Die Ratenbegrenzung, auch bekannt als Drosselung, hilft.", "Drosselung", "Ratenbegrenzung"),
        ("Die Ratenbegrenzung (engl. rate limiting) hilft.", "rate limiting", "Ratenbegrenzung"),
        ("Der Landesbetrieb Straßenbau, kurz LBS, baut.", "LBS", "Landesbetrieb Straßenbau"),
        ("이 시스템은 속도 제한(일명 스로틀링)을 쓴다.", "스로틀링", "속도 제한"),
        ("我们使用速率限制（又称限流）。", "限流", "速率限制"),
        ("这是数据库管理系统（简称DBMS）。", "DBMS", "数据库管理系统"),
        ("この流量制限（スロットリングとも）を使う。", "流量制限", "スロットリング"),
        ("これはレート制限（別名：流量制御）です。", "流量制御", "レート制限"),
        ("서비스는 인증(authentication)을 요구한다.", "authentication", "인증"),
    ],
)
def test_a_thing_and_its_other_name(text: str, surface: str, group: str) -> None:
    assert named(text) == [(surface, group)]


@pytest.mark.parametrize(
    "text",
    [
        "Values (also see below) are kept.",
        "It works (also on Windows) well.",
        "This is slow, also called too often.",
        "He was tall. Also known as such, he left.",
        "the red green blue white black pink, also known as seven",
        "Rate limits, also known as Rate-Limit, exist.",
        "Unleashed (also known as Danny the Dog) is a film.",
        "we know this, or not for short",
        "정한 값(일명 )",
    ],
)
def test_what_is_no_other_name(text: str) -> None:
    assert named(text) == []


def test_markup_does_not_stand_between_a_word_and_its_explanation() -> None:
    text = "The **Time To Live** (`TTL`) and [Role-Based Access Control](https://example.org/a) (*RBAC*)."
    assert explained(prose(text)) == [("TTL", "Time To Live"), ("RBAC", "Role-Based Access Control")]
    assert explained(prose(r"The \emph{Time To Live} (TTL)")) == [("TTL", "Time To Live")]


def test_code_blocks_are_left_out() -> None:
    text = "Before.\n\n```python\nx = time_to_live (TTL)\n# Time To Live (TTL)\n```\n\nAfter."
    assert "TTL" not in prose(text)
    assert prose(text).split() == ["Before.", "After."]


def test_a_snippet_is_one_line_of_whole_words_around_the_place() -> None:
    text = f"{'before ' * 60}\n\nthe Time To\nLive (TTL) is\n\n{'after ' * 60}"
    (candidate,) = acronyms(text)
    assert "the Time To Live (TTL) is" in candidate.snippet
    assert len(candidate.snippet) <= LONGEST_SNIPPET
    assert set(candidate.snippet.split()) <= set(text.split())
    assert snippet_of("word" * 100, 100, 110) == ("word" * 100)[25:185]


def test_compounds_as_they_are_written() -> None:
    found = compounds("The file name (or filename, Filename, FILENAME) of an e-mail: rate limit. Next\nstep fileFormat")
    assert found.pairs == {"filename": "file name", "email": "e-mail", "ratelimit": "rate limit"}
    assert "filename" in found.words
    assert "fileformat" not in found.words  # `file format` to a glossary already
    assert compounds("go to the file; name it. New York 数据 库存 x-y utf-8").pairs == {}


def test_terms_that_a_glossary_takes_for_one() -> None:
    assert is_one_term("rate-limit", "RATE_LIMITS")
    assert is_one_term("rateLimit", "rate limit")
    assert is_one_term("GitHub", "github")
    assert not is_one_term("ratelimit", "rate limit")
    assert not is_one_term("e-mail", "email")


def test_a_name_is_one_line_whatever_ends_a_line() -> None:
    found = [*other_names(prose("The run\u2028time, also known as engine, starts."))]
    assert [(one.surface, one.group) for one in found] == [("engine", "run time")]


WORDS = st.sampled_from(
    ["Time", "To", "Live", "(TTL)", "TTL", "(time to live)", "also", "(also", "known as", "a.k.a.", "aka", ",", ".",
     "x)", "for short", "auch", "genannt", "kurz", "(engl.", "(일명", "（又称", "とも）", "인증(authentication)",
     "数据库", "\n\n", "stands for", "- API:", "of", "the", "e-mail", "\u2028", "İ", "ß", "\U0001f600", "(", ")"]
)  # fmt: skip


@settings(max_examples=tries(300, short=100), deadline=None)
@given(st.one_of(st.text(max_size=300), st.lists(WORDS, max_size=40).map(" ".join), st.lists(WORDS).map("".join)))
def test_any_text_gives_candidates_that_can_be_shown(text: str) -> None:
    plain = prose(text)
    for candidate in [*acronyms(plain), *other_names(plain)]:
        assert candidate.surface.strip() and candidate.group.strip()
        assert candidate.surface != candidate.group
        assert len(candidate.snippet) <= LONGEST_SNIPPET
        assert candidate.snippet == " ".join(candidate.snippet.split())
        for name in (candidate.surface, candidate.group):
            assert len(name.splitlines()) == 1
            assert " ".join(name.split()) in " ".join(plain.split())
