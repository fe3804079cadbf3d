"""Queries with a glossary."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from findling.domain.queries import All, Any, Field, Fuzzy, Near, Node, Not, Phrase, Prefix, Range, Same, Term, Word
from findling.domain.records import GlossaryTerm
from findling.pipelines.glossary.glossary import add, protect
from findling.pipelines.glossary.glossary_expansion import Fired, Lookup, expand
from findling.text.query.tree import canonical, positive_texts
from tests.counts import tries


def terms_of(*groups: str, protected: str = "") -> list[GlossaryTerm]:
    """The terms of groups that are written as `canonical = alias, alias`."""
    rows: dict[tuple[str, str], GlossaryTerm] = {}
    for group in groups:
        name, _, aliases = group.partition(" = ")
        put = add(rows.values(), name, aliases.split(", ")).put
        rows |= {(row.group, row.key): row._replace(decided_at=float(at)) for at, row in enumerate(put, start=1)}
    for surface in protected.split():
        rows |= {(row.group, row.key): row for row in protect(rows.values(), surface).put}
    return [rows[at] for at in sorted(rows)]


LOOKUP = Lookup(
    terms_of(
        "auth = authentication, sign-in",
        "rate limit = throttle, quota",
        "share = quota, portion",
        "time to live = TTL",
        "GitHub = forge",
        "javascript engine = V8",
        "인증 = authorisation",
        protected="OTP Windows",
    )
)


def boolean(query: str) -> Node:
    return All(tuple(map(Term, query.split())))


def ranked(query: str) -> Node:
    return Any(tuple(map(Word, query.split())))


def written(node: Node) -> str:
    return canonical(expand(node, LOOKUP)[0])


def test_every_word_must_match_itself_or_an_alias() -> None:
    node, fired = expand(boolean("auth rate limit"), LOOKUP)
    assert canonical(node) == '(auth | authentication | sign-in) AND ("rate limit" | throttle | quota)'
    assert fired == (
        Fired("auth", "auth", ("authentication", "sign-in")),
        Fired("rate limit", "rate limit", ("throttle", "quota")),
    )
    assert isinstance(node, All)
    assert [part.group for part in node.nodes if isinstance(part, Same)] == ["auth", "rate limit"]


def test_a_ranked_query_keeps_its_words() -> None:
    node, fired = expand(ranked("auth rate limit please"), LOOKUP)
    assert canonical(node) == "(auth | authentication | sign-in) OR ((rate OR limit) | throttle | quota) OR please"
    assert [each.typed for each in fired] == ["auth", "rate limit"]
    assert positive_texts(node) == ["auth", "rate", "limit", "please"]
    assert isinstance(node, Any)
    same = node.nodes[1]
    assert isinstance(same, Same)
    assert same.nodes == (Any((Word("rate"), Word("limit"))), Term("throttle"), Term("quota"))


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("throttle", '(throttle | "rate limit" | quota)'),
        ("Sign-Ins now", "(Sign-Ins | auth | authentication | sign-in) AND now"),
        ("SIGN_IN", "(SIGN_IN | auth | authentication)"),
        ("sign in", '("sign in" | auth | authentication)'),
        ("rateLimits", '(rateLimits | "rate limit" | throttle | quota)'),
        ("rate limits", '("rate limits" | "rate limit" | throttle | quota)'),
        ("time live", '("time to live" | TTL)'),
        ("time to live", '("time to live" | TTL)'),
        ("ttl cache", '(ttl | "time to live") AND cache'),
        ("github", "(github | forge)"),
        ("GITHUB", "(GITHUB | forge)"),
        ("Git-Hub", "(Git-Hub | forge)"),
        ("JavaScript engine", '("JavaScript engine" | V8)'),
        ("인증을", "(인증을 | 인증 | authorisation)"),
        ("sign", "sign"),
        ("limit rate", "limit AND rate"),
        ("접속", "접속"),
    ],
)
def test_terms_are_found_however_they_are_typed(query: str, expected: str) -> None:
    assert written(boolean(f"{query} end")) == f"{expected} AND end"


def test_korean_particles_are_cut_off_other_words_too() -> None:
    lookup = Lookup(terms_of("API = 인터페이스"))
    assert canonical(expand(Term("API를"), lookup)[0]) == "API를 | API | 인터페이스"
    english = Lookup(terms_of("API = interface"))
    assert canonical(expand(Term("API를"), english)[0]) == "API를 | API | interface"
    assert expand(Term("인터페이스"), english) == (Term("인터페이스"), ())


def test_words_without_terms_join_nothing() -> None:
    assert written(boolean("!!! auth")) == "!!! AND (auth | authentication | sign-in)"


def test_the_longest_term_wins() -> None:
    lookup = Lookup(terms_of("limit = bound", "rate limit = throttle", "rate = pace", "hard rate limit = ceiling"))
    node, _ = expand(boolean("hard rate limit rate"), lookup)
    assert canonical(node) == '("hard rate limit" | ceiling) AND (rate | pace)'


def test_five_words_may_be_a_term() -> None:
    lookup = Lookup(terms_of("a1 b1 c1 d1 e1 = five"))
    assert canonical(expand(boolean("a1 b1 c1 d1 e1"), lookup)[0]) == '"a1 b1 c1 d1 e1" | five'
    assert canonical(expand(boolean("x a1 b1 c1 d1 e1 y"), lookup)[0]) == 'x AND ("a1 b1 c1 d1 e1" | five) AND y'


def test_a_word_of_two_groups_stands_for_both_and_says_so() -> None:
    node, fired = expand(Term("quota"), LOOKUP)
    assert node == Same(
        (Term("quota"), Phrase("rate limit"), Term("throttle"), Term("share"), Term("portion")),
        group="rate limit, share",
    )
    assert fired == (
        Fired("rate limit", "quota", ("rate limit", "throttle")),
        Fired("share", "quota", ("share", "portion")),
    )


def test_a_group_that_fires_twice_for_one_word_is_told_once() -> None:
    _, fired = expand(All((Term("auth"), Any((Term("auth"), Term("x"))))), LOOKUP)
    assert len(fired) == 1


def test_alternatives_are_widened_one_by_one() -> None:
    assert written(Any((Term("auth"), Term("password")))) == "(auth | authentication | sign-in) OR password"
    assert written(Any((Term("rate"), Term("limit")))) == "rate OR limit"
    assert written(Same((Term("auth"), Term("x")))) == "(auth | authentication | sign-in) | x"


@pytest.mark.parametrize(
    "node",
    [
        Phrase("auth"),
        Phrase("rate limit"),
        Not(Term("auth")),
        Not(All((Term("rate"), Term("limit")))),
        Prefix("auth"),
        Fuzzy("auth"),
        Near("auth", "quota"),
        Field("tag", ("auth",)),
        Range(after=1.0),
        Term("auth", field="title"),
        All((Term("rate", field="title"), Term("limit", field="title"))),
        All((Term("rate"), Phrase("x"), Term("limit"))),
        Same((Term("auth"), Term("login")), group="auth"),
        All(()),
        Any(()),
    ],
)
def test_what_says_exactly_what_it_means_stays(node: Node) -> None:
    assert expand(node, LOOKUP) == (node, ())


def test_a_protected_word_is_taken_to_the_letter() -> None:
    assert expand(All((Term("OTP"), Term("x"))), LOOKUP) == (All((Phrase("OTP"), Term("x"))), ())
    assert expand(Word("windows"), LOOKUP) == (Phrase("windows"), ())
    assert expand(Word("window"), LOOKUP) == (Word("window"), ())
    assert expand(Not(Term("OTP")), LOOKUP) == (Not(Term("OTP")), ())


def test_what_is_not_decided_does_nothing() -> None:
    undecided = [
        GlossaryTerm("auth", "login", "login", "pending"),
        GlossaryTerm("auth", "author", "author", "rejected"),
        GlossaryTerm("alone", "alon", "alone", "canonical"),
    ]
    lookup = Lookup(undecided)
    assert lookup.empty
    assert Lookup([]).empty
    assert not LOOKUP.empty
    assert expand(Term("login"), lookup) == (Term("login"), ())


WORDS = st.sampled_from(
    [
        "auth",
        "rate",
        "limit",
        "quota",
        "OTP",
        "GitHub",
        "JavaScript",
        "Engine",
        "time",
        "live",
        "plain",
        "",
        "인증",
        "c++",
    ]
)
LEAVES = st.one_of(WORDS.map(Word), WORDS.map(Term), WORDS.map(Phrase), WORDS.map(Prefix))
TREES: st.SearchStrategy[Node] = st.recursive(
    LEAVES,
    lambda nodes: st.one_of(
        st.lists(nodes, max_size=4).map(lambda parts: All(tuple(parts))),
        st.lists(nodes, max_size=4).map(lambda parts: Any(tuple(parts))),
        nodes.map(Not),
    ),
    max_leaves=12,
)


@settings(max_examples=tries(300, short=100), deadline=None)
@given(TREES)
def test_widening_twice_is_widening_once(node: Node) -> None:
    once, fired = expand(node, LOOKUP)
    assert expand(once, LOOKUP) == (once, ())
    assert bool(fired) == (" | " in canonical(once))
