"""Plain words rank, operators ask for a boolean reading, and the answer says which it was."""

from __future__ import annotations

import pytest

from findling.domain.queries import All, Any, Field, Not, Phrase, Prefix, Term, Word
from findling.text.analysis.lines import is_sentence
from findling.text.query.parser import parse
from findling.text.query.query_mode import demands, read, relaxed
from findling.text.query.tree import canonical


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("database timeout", "ranked"),
        ("how is the index made", "ranked"),
        ("database timeout path:src", "ranked"),
        ("database timeout -ext:md", "ranked"),
        ("report title:budget", "ranked"),
        ("profile of Aaron (brother of Moses)", "ranked"),
        ("database OR timeout", "boolean"),
        ("database AND timeout", "boolean"),
        ("data* AND timeout", "boolean"),
        ("ttl | timeout", "boolean"),
        ("data*", "boolean"),
        ("databse~ -timeout", "boolean"),
        ("database NEAR timeout", "boolean"),
        ('"exact phrase"', "boolean"),
        ('"exact phrase" "another one" -third', "boolean"),
        ("title:budget", "boolean"),
        ("database NOT timeout", "ranked"),
        ("database -(pool timeout)", "ranked"),
        ("data* timeout", "ranked"),
        ('auth -"session cookie"', "ranked"),
        ("auth -jwt", "ranked"),
        ("여자 -남자 -50대", "ranked"),
        ('"exact phrase" word', "ranked"),
        ("what is the capital of france -paris", "ranked"),
        ("Aaron's profile -moses, please?", "ranked"),
        ('where does "Van Gogh" live in the south', "ranked"),
        ("", "browse"),
        ("!!!", "browse"),
        ("-only", "browse"),
        ("ext:py -path:old after:7d", "browse"),
    ],
)
def test_the_kind_of_a_reading(text: str, kind: str) -> None:
    reading = read(parse(text))
    assert reading.kind == kind
    assert reading.because


def test_an_exclusion_demands_no_word() -> None:
    assert read(parse("internet not working -docker")).node == All(
        (Any((Word("internet"), Word("working"))), Not(Term("docker")))
    )
    assert read(parse("internet working NOT docker")).node == All(
        (Any((Word("internet"), Word("working"))), Not(Term("docker")))
    )


def test_operators_demand_their_own_words_and_the_others_rank() -> None:
    phrase = Phrase("green leaves")
    assert read(parse('tea "green leaves" pot')).node == All((Any((Word("tea"), Word("pot"), phrase)), phrase))
    either = Any((Term("cup"), Term("mug")))
    assert read(parse("tea cup OR mug")).node == All((Any((Word("tea"), *either.nodes)), either))
    assert read(parse("tea gre*")).node == All((Any((Word("tea"), Prefix("gre"))), Prefix("gre")))


def test_quotes_in_a_sentence_rank_with_their_words() -> None:
    reading = read(parse('what is the best tea -coffee "green leaves" lang:markdown'))
    assert reading.node == All(
        (
            Any((Word("best"), Word("tea"), Word("green"), Word("leaves"), Phrase("green leaves"))),
            Not(Term("coffee")),
            Field("lang", ("markdown",)),
        )
    )
    assert "a sentence" in reading.because


def test_plain_words_rank() -> None:
    assert read(parse("tea")).node == Word("tea")
    assert read(parse("tea ext:md")).node == All((Word("tea"), Field("ext", ("md",))))
    assert read(parse("the tea pot")).node == Any((Word("tea"), Word("pot")))


@pytest.mark.parametrize(
    "text",
    [
        "TEA AND COFFEE",
        "TEA NOT COFFEE",
        "I am interested in articles on tea AND coffee",
        "articles written either by Prieve OR Udo Pooch in the past",
        "the difference between AND and OR in SQL",
        "how do I start it NOT using the shell",
        "Ich suche alles über Tee AND Kaffee",
        "日本で梅雨がないのは北海道とどこですか AND 教えて",
    ],
)
def test_prose_and_capitals_are_never_boolean(text: str) -> None:
    parsed = parse(text)
    assert read(parsed).kind == "ranked"
    assert not isinstance(read(parsed).node, All)
    assert any("as a word" in note or "as words" in note for note in parsed.notes)


def test_a_shouted_question_is_read_as_if_it_were_not() -> None:
    assert parse("I AM INTERESTED IN TEA AND COFFEE, NOT IN MAX_VALUE!") == parse(
        "i am interested in tea and coffee, not in MAX_VALUE!"
    )
    assert parse("TODO OR FIXME OR XXX OR HACK") != parse("todo or fixme or xxx or hack"), "four words and operators"
    assert parse("TODO OR FIXME OR XXX") != parse("todo or fixme or xxx"), "too few words to tell"


@pytest.mark.parametrize(
    ("text", "excluded"),
    [
        ("why does the temperature fall to -5 degrees in the night?", 0),
        ("find returns -1 when nothing is there", 0),
        ('what is the "lowest temperature" of -5.5°C', 0),
        ("how to bake a bread of -20 degrees -walnut", 1),
        ("iphone -15", 1),
        ("tea -2024 -coffee", 2),
    ],
)
def test_the_sign_of_a_number_in_a_sentence_excludes_nothing(text: str, excluded: int) -> None:
    node = read(parse(text)).node
    assert sum(isinstance(part, Not) for part in (node.nodes if isinstance(node, All) else ())) == excluded


@pytest.mark.parametrize(
    "text",
    [
        "timeout AND pool",
        "MAX_VALUE AND MIN_VALUE",
        "数据库 AND API",
        "connection pool timeout AND redis cache eviction",
        "(the pool of a cache AND redis) timeout retry",
        "how AND index AND made AND by AND whom AND when",
    ],
)
def test_expressions_are_boolean(text: str) -> None:
    assert read(parse(text)).kind == "boolean"


@pytest.mark.parametrize(
    ("text", "demands_it"),
    [
        ('"connection pool"', True),
        ('"connection pool" redis', True),
        ('redis "could not connect to the server, because it is down"', True),
        ('"연결 풀" 오류', True),
        ("“connection pool” redis", False),
        ("«пул соединений» redis", False),
        ('including "what you see is what you get" systems, which are in use', False),
        ('who wrote "connection pool"?', False),
        ('kubernetes pod crash loop backoff image pull error "exit code"', False),
        ("「梅雨」がない", False),
        ('"数据库" 连接', False),
        ("『吾輩は猫である』の作者", False),
    ],
)
def test_quotes_demand_in_short_queries_with_ascii_quotes(text: str, demands_it: bool) -> None:
    reading = read(parse(text))
    assert bool(demands(reading.node)) is demands_it
    assert ("quotes" in reading.because) is not demands_it


@pytest.mark.parametrize(
    ("text", "echo"),
    [
        ('"connection pool"', 'connection OR pool OR "connection pool"'),
        ('redis "connection pool"', 'redis OR connection OR pool OR "connection pool"'),
        ("redis AND pool AND -cache", "(redis OR pool) AND -cache"),
        ("redis AND title:pool", "redis AND title:pool"),
        ("rate NEAR limit", "rate OR limit"),
        ("(redis AND pool) OR (cache AND -test)", "redis OR pool OR (cache AND -test)"),
        ("redis pool", None),
        ("redis -pool", None),
        ("node.js OR cache", "node.js OR cache"),
        ("title:pool", None),
        ("-pool", None),
    ],
)
def test_relaxing_drops_demands_and_nothing_else(text: str, echo: str | None) -> None:
    node = relaxed(read(parse(text)).node)
    assert (None if node is None else canonical(node)) == echo


def test_a_boolean_reading_is_the_tree_as_it_was_understood() -> None:
    parsed = parse("tea OR coffee AND milk")
    assert read(parsed).node is parsed.node
    assert read(parsed).because == "AND asks for all of it"


def test_words_with_a_field_are_not_ranked_by() -> None:
    assert read(parse("in:title tea pot")).node == All((Term("tea", "title"), Term("pot", "title")))


def test_the_plan_decides_before_the_query_does() -> None:
    assert read(parse("tea pot"), "all") == (
        All((Term("tea"), Term("pot"))),
        "boolean",
        "all that is asked for has to be there, as the plan says",
    )
    ranked = read(parse("tea AND pot OR cup"), "any")
    either = Any((Term("pot"), Term("cup")))
    assert (ranked.kind, ranked.node) == ("ranked", All((Any((Word("tea"), *either.nodes)), either)))
    assert read(parse("ext:py"), "all").kind == "browse"


@pytest.mark.parametrize(
    "text",
    [
        "tea?",
        "お茶は何ですか？",
        "what makes green tea",
        "tea with milk please",
        "wie macht man Tee",
        "comment faire du thé",
        "cómo se hace té",
        "one two three four five six seven eight",
    ],
)
def test_sentences(text: str) -> None:
    assert is_sentence(text)


@pytest.mark.parametrize(
    "text", ["", "tea", "the tea pot", "green tea leaf china", "a b c", "one two three five six ten"]
)
def test_a_few_words_are_no_sentence(text: str) -> None:
    assert not is_sentence(text)


def test_all_words_of_a_pasted_sentence_are_those_that_tell() -> None:
    pasted = "where do we keep the green tea " * 40
    node = read(parse(pasted), "all").node
    assert isinstance(node, All)
    assert [*dict.fromkeys(node.nodes)] == [Term("keep"), Term("green"), Term("tea")]


@pytest.mark.parametrize("code", ['open("x")', 'os.path.exists("/tmp")', 'print("%s" % name)', 'load("./a.json")'])
def test_the_quotes_of_a_call_demand_nothing(code: str) -> None:
    assert not any(isinstance(part, Phrase) for part in getattr(read(parse(code)).node, "nodes", ()))


def test_a_keyword_among_capitals_says_how_it_joins() -> None:
    assert parse("TODO OR API").notes == (
        "OR is read as a word: everything else is in capitals; it joins words in small letters",
    )
    assert parse("todo OR api").notes == ()
