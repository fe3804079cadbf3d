"""The router: how much work a query asks for, what it looks like, and why."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from findling.text.query.routing import KINDS, SIGNALS, route
from tests.counts import tries

TRIGGERS = [(name, weight, trigger) for name, weight, triggers in SIGNALS for trigger in triggers]


@pytest.mark.parametrize(("words", "score"), [(0, 0.0), (1, 0.05), (4, 0.2), (5, 0.25), (40, 0.25)])
def test_length_counts_up_to_a_quarter(words: int, score: float) -> None:
    assert route(" ".join(["word"] * words)).complexity == score


@pytest.mark.parametrize(("name", "weight", "trigger"), TRIGGERS)
def test_each_word_gives_its_signal_once(name: str, weight: float, trigger: str) -> None:
    once = route(f"{trigger.title()}? thing")
    words = len(trigger.split()) + 1
    own = [given for given, _, triggers in SIGNALS for one in triggers if f" {one} " in f" {trigger} "]
    expected = words / 20 + sum(added for given, added, _ in SIGNALS if given in own)
    assert once.complexity == pytest.approx(expected)
    assert any(signal.startswith(f"{name}: ") and trigger in signal for signal in once.signals)
    again = route(f"{trigger} {trigger}")
    assert [signal for signal in again.signals if signal.startswith(name)] == [
        signal for signal in once.signals if signal.startswith(name)
    ]


@pytest.mark.parametrize(
    "query",
    ["show documents", "overall plan", "listing", "explained", "somehow doing", "list.sort", "get_all", "src/all/x.py"],
)
def test_a_part_of_a_word_is_no_signal(query: str) -> None:
    assert route(query).signals == ()


@pytest.mark.parametrize("query", ["is it all?", "(all)", '"all"', "all, please", "All.", "before/after"])
def test_punctuation_hides_no_signal(query: str) -> None:
    assert route(query).signals != ()


@pytest.mark.parametrize(
    ("query", "complexity", "kind", "depth", "graph"),
    [
        ("rate limit", 0.1, "simple", 0.8, "none"),
        ("list every limit set since 2020", 0.55, "moderate", 1.0, "low"),
        ("how does the rate limit work", 0.45, "moderate", 1.0, "low"),
        ("what is the difference between tokens and cookies before 2020", 0.6, "complex", 1.2, "dual"),
        ("explain how does login differ between all of them", 0.95, "very_complex", 1.5, "dual"),
        ("explain all the history and the difference: how does it work", 1.0, "very_complex", 1.5, "dual"),
    ],
)
def test_kinds(query: str, complexity: float, kind: str, depth: float, graph: str) -> None:
    found = route(query)
    assert (found.complexity, found.kind, found.depth_factor, found.graph) == (complexity, kind, depth, graph)


def test_a_threshold_belongs_to_the_kind_above_it() -> None:
    found = route("all the words of history")
    assert (found.complexity, found.kind) == (0.55, "moderate")
    found = route("when was all of it said")
    assert (found.complexity, found.kind) == (0.55, "moderate")
    found = route("compare them when they have met")
    assert (found.complexity, found.kind) == (0.6, "complex")
    found = route("compare a b")
    assert (found.complexity, found.kind) == (0.35, "moderate")
    found = route("list of them")
    assert (found.complexity, found.kind) == (0.3, "moderate")


@pytest.mark.parametrize(
    ("query", "shape"),
    [
        ("", "empty"),
        ("!!! …", "empty"),
        ("🎉", "empty"),
        ("rate limit", "keywords latin"),
        ("sign-in", "keywords latin"),
        ("c++", "keywords latin"),
        ("foo\\", "keywords latin"),
        ("NASA", "keywords latin"),
        ("2024", "number"),
        ("+49 170 9988776", "number"),
        ("$1,000", "number"),
        ("2024 budget", "keywords latin"),
        ("os.path 3", "code latin"),
        ("getUserName", "identifier latin"),
        ("HashMap", "identifier latin"),
        ("HTTPServer", "identifier latin"),
        ("MAX_VALUE", "identifier latin"),
        ("snake_case", "identifier latin"),
        ("__init__", "identifier latin"),
        ("os.path.join", "identifier latin"),
        ("std::vector", "identifier latin"),
        ("open()", "identifier latin"),
        ("x509", "identifier latin"),
        ("CVE-2024-3094", "identifier latin"),
        ("getUser setUser", "identifier latin"),
        ("src/app/main.py", "path latin"),
        ("app/main.py", "path latin"),
        ("./x", "path latin"),
        ("../notes", "path latin"),
        ("/etc/hosts", "path latin"),
        ("docs/", "path latin"),
        ("C:\\x", "path latin"),
        ("src\\app\\main.py", "path latin"),
        ("*.md", "path latin"),
        ("**/*.py", "path latin"),
        ("and/or", "keywords latin"),
        ("TCP/IP", "keywords latin"),
        ("24/7", "number"),
        ("1/2/2024", "number"),
        ("foo.*bar", "regex latin"),
        ("\\bfoo\\d+", "regex latin"),
        ("[a-z]+", "regex latin"),
        ("foo[0-9]{2,3}", "regex latin"),
        ("(?i)error", "regex latin"),
        ("class .*Error", "regex latin"),
        ("https://example.org/a", "url latin"),
        ("www.example.org", "url latin"),
        ('"rate limit"', "quoted latin"),
        ("“rate limit” each user", "quoted latin"),
        ('5" screen', "keywords latin"),
        ("x == y", "code latin"),
        ("if x == y", "code sentence latin"),
        ("def parse(text):", "code latin"),
        ("parse_query tests", "code latin"),
        ("tests of app/main.py", "code latin"),
        ("covid19 vaccine", "keywords latin"),
        ("read https://example.org/a again", "keywords latin"),
        ("where is parse_query defined", "code question sentence latin"),
        ("how does auth work", "question sentence latin"),
        ("what's new", "question latin"),
        ("auth broken?", "question sentence latin"),
        ("is it safe to retry a request", "question sentence latin"),
        ("can opener", "keywords latin"),
        ("WHO guidelines", "keywords latin"),
        ("wie funktioniert das", "question latin"),
        ("¿dónde está la clave?", "question sentence latin"),
        ("comment style guide", "keywords latin"),
        ("как работает поиск", "question cyrillic"),
        ("数据库如何备份", "question cjk"),
        ("これは何ですか", "question cjk"),
        ("어떻게 백업하나요", "question hangul"),
        ("كيف يعمل البحث", "question arabic"),
        ("The server crashed.", "keywords latin"),
        ("The server crashed again.", "sentence latin"),
        ("error in login page", "sentence latin"),
        ("we have to find out if the cache is stale", "sentence latin"),
        ("여자 남자 50대", "keywords hangul"),
        ("データベースのバックアップ", "keywords cjk"),
        ("Überprüfung naïve", "keywords latin"),
        ("поиск search", "keywords cyrillic latin"),
        ("שלום", "keywords hebrew"),
        ("नमस्ते", "keywords indic"),
        ("αρχή", "keywords greek"),
    ],
)
def test_shapes(query: str, shape: str) -> None:
    assert route(query).shape == tuple(shape.split())


def test_characters_without_spaces_count_as_words() -> None:
    assert route("数据库备份").complexity == 0.1
    assert route("数据库备份与恢复的方法").complexity == 0.25


def test_every_decision_has_its_reason() -> None:
    found = route("what is the difference between tokens and cookies before 2020")
    assert found.signals == ("comparison: difference, between", "temporal: before")
    assert found.reasons == (
        "10 words: +0.25",
        "comparison: difference, between: +0.20",
        "temporal: before: +0.15",
        "complexity 0.60: complex, depth ×1.2, dual graph walk",
        "question: it begins with what",
        "sentence: it is written out",
    )
    assert route("getUser").reasons == (
        "1 word: +0.05",
        "complexity 0.05: simple, depth ×0.8, no graph walk",
        "identifier: getUser",
    )


def test_only_the_beginning_of_a_long_text_counts() -> None:
    words = "word " * 800
    assert route(f"{words}explain all the history") == route(words)


pieces = st.lists(
    st.sampled_from([trigger for *_, trigger in TRIGGERS])
    | st.sampled_from(["foo.*", "a/b/c.py", "getUser", '"', "\\", "://", "数据", "?", "(", "[a-", "x509"])
    | st.text(max_size=12),
    max_size=12,
).map(" ".join)


@settings(deadline=None, max_examples=tries(300, short=100))
@given(query=pieces | st.text(max_size=200))
def test_any_text_has_a_route_whose_reasons_add_up(query: str) -> None:
    found = route(query)
    assert 0 <= found.complexity <= 1
    below = [kind for kind, limit, *_ in KINDS if found.complexity < limit]
    assert found.kind == below[0]
    added = [float(part) for reason in found.reasons for part in re.findall(r": \+(\d\.\d\d)$", reason)]
    assert min(sum(added), 1.0) == pytest.approx(found.complexity, abs=0.006)
    kinds = [name for name in found.shape if any(reason.startswith(f"{name}: ") for reason in found.reasons)]
    assert kinds
    assert len(set(found.shape)) == len(found.shape)
