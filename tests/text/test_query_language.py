"""Typed queries are understood, echoed, mended where need be, and never an error."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import findling
from findling.domain.queries import All, Any, Field, Fuzzy, Near, Node, Not, Pattern, Phrase, Prefix, Same, Term
from findling.text.analysis.analysis import STOP_WORDS
from findling.text.query.lexer import EXPRESSION
from findling.text.query.parser import MOST_PASTED, parse
from findling.text.query.tree import canonical, patterns_of, positive_terms


@pytest.mark.parametrize(
    ("text", "echo"),
    [
        ("database timeout", "database AND timeout"),
        ("database AND timeout", "database AND timeout"),
        ("a b OR c d", "(b OR c) AND d"),
        ("x b OR c | d", "x AND (b OR (c | d))"),
        ("x||y", "x | y"),
        ('auth -"session cookie"', 'auth AND -"session cookie"'),
        ("auth OR password", "auth OR password"),
        ("여자 -남자 -50대", "여자 AND -남자 AND -50대"),
        ("x NOT y", "x AND -y"),
        ("x AND NOT y", "x AND -y"),
        ("x (y OR z) -(p q)", "x AND (y OR z) AND -(p AND q)"),
        ("x (y (z))", "x AND y AND z"),
        ("x OR (y OR z)", "x OR y OR z"),
        ("word word", "word AND word"),
        ("x OR x", "x"),
        ("-only", "-only"),
        ("NOT -x -(-y) NOT NOT z", "x AND y AND z"),
        ("x -!!! (+++) OR …", "x"),
        ("title:word", "title:word"),
        ('title:"two words" title:pre*', 'title:"two words" AND title:pre*'),
        ("title:one,two", "title:one OR title:two"),
        ("in:heading:word", "in:heading:word"),
    ],
)
def test_a_query_is_echoed_as_understood(text: str, echo: str) -> None:
    assert canonical(parse(text).node) == echo
    assert not parse(text).notes


@pytest.mark.parametrize(
    ("text", "node"),
    [
        ("", All(())),
        (" \n", All(())),
        ("!!!", Any(())),
        ('""', Any(())),
        ("()", Any(())),
        ("-", Any(())),
        ("\ud800\x00", Any(())),  # what cannot be read is no wish for everything
        ("\ufeff", Any(())),
        ("c++", Term("c++")),
        ("node.js", Term("node.js")),
        ("sign-in", Term("sign-in")),
        ("--flag", Term("flag")),
        ("-5", Not(Term("5"))),
        ("foo\\", Term("foo")),
        ("… foo", Term("foo")),
        ("main()", Term("main()")),
        ("author(s)", Term("author(s)")),
        ("\u202b-foo\u202c", Not(Term("foo"))),
        (r"\-foo", Term("-foo")),
        (r"\"foo\"", Term('"foo"')),
        (r'"say \"hi\""', Phrase('say "hi"')),
        ("-OR", Not(Term("or"))),
        ("OR", Term("or")),
        ("NOT", Term("not")),
        ("AND OR", All((Term("and"), Term("or")))),
    ],
)
def test_what_looks_odd_is_read_as_a_person_expects(text: str, node: Node) -> None:
    assert parse(text).node == node
    assert not parse(text).notes


@pytest.mark.parametrize("text", ["http://example.com/x?y=1", r"C:\x", "12:30", "std::vector", "localhost:8080", "a:b"])
def test_colons_that_are_no_fields_just_work(text: str) -> None:
    assert parse(text) == (Term(text), frozenset(), (), False, text, EXPRESSION)


@pytest.mark.parametrize(
    ("text", "node"),
    [
        ("data*", Prefix("data")),
        ("node.j*", Prefix("node.j")),
        ("京*", Prefix("京")),
        ('"of the da"*', Prefix("of the da")),
        ("recieve~", Fuzzy("recieve", 1)),
        ("internationl~", Fuzzy("internationl", 2)),
        ("foo~2", Fuzzy("foo", 2)),
        ("foo~9", Fuzzy("foo", 2)),
        ("foo~0", Term("foo")),
        ("x NEAR y", Near("x", "y", 10)),
        ("x NEAR/3 y", Near("x", "y", 3)),
        ("x NEAR/999 y", Near("x", "y", 100)),
        ("x NEAR y NEAR/2 z", All((Near("x", "y", 10), Near("y", "z", 2)))),
        ('"x y z"~5', All((Near("x", "y", 5), Near("y", "z", 5)))),
        ("-x NEAR y", Not(Near("x", "y", 10))),
        ('"foo"', Phrase("foo")),
        ('"one"~5', Phrase("one")),
        ("x | y", Same((Term("x"), Term("y")))),
    ],
)
def test_beginnings_spellings_and_neighbours(text: str, node: Node) -> None:
    assert parse(text).node == node
    assert not parse(text).notes


@pytest.mark.parametrize(
    "text",
    [
        "“exact words”",
        "„exact words“",
        "«exact words»",
        "‹exact words›",
        "「exact words」",
        "『exact words』",
        '"exact  words"',
    ],
)
def test_quotes_of_many_keyboards(text: str) -> None:
    parsed = parse(text)
    assert (parsed.node, parsed.notes, parsed.intent.quotes) == (Phrase("exact words"), (), text[0] == '"')
    assert parse(f"-{text}").node == Not(Phrase("exact words"))


@pytest.mark.parametrize(
    ("text", "echo", "note"),
    [
        ('"unclosed phrase', '"unclosed phrase"', "never closed"),
        ("(x OR y", "x OR y", "( without its )"),
        ("x) y", "x AND y", ") without its ("),
        ("OR foo", "foo", "OR joins nothing"),
        ("foo AND", "foo", "AND joins nothing"),
        ("foo NOT", "foo", "NOT joins nothing"),
        ("NEAR foo", "foo", "NEAR joins nothing"),
        ("x OR OR y", "x OR y", "OR joins nothing"),
        ("x OR AND y", "x OR y", "AND joins nothing"),
        ('"x y" NEAR z', '"x y" AND near AND z', "read as a word"),
        ("x* NEAR zed", "x AND near AND zed", "read as a word"),
        ("node.js~", "node.js", "single words"),
        ("z*", "z", "too short"),
        ("foo OR -bar", "foo OR -bar", "nearly everything"),
        ("ext:py ext:js", "ext:py,js", "any of its values"),
        ("pth:src", "pth:src", "path:"),
        ("before:soon", r"before\:soon", "2026-01-31"),
        ("is:blue", r"is\:blue", "superseded"),
        ("ext: x", r"ext\: AND x", "ending of a file name"),
        ('is:"sky blue"', '"is sky blue"', "superseded"),
        ("x -in:title", "x", "cannot be excluded"),
    ],
)
def test_what_is_mended_is_noted(text: str, echo: str, note: str) -> None:
    parsed = parse(text)
    assert canonical(parsed.node) == echo
    assert any(note in given for given in parsed.notes), parsed.notes


@pytest.mark.parametrize(
    ("text", "echo"),
    [
        ("how is the index made", "index AND made"),
        ("how AND index", "how AND index"),
        ("to be or not to be", "to AND be AND or AND not AND to AND be"),
        ('the "the who"', '"the who"'),
        ("the (cat OR dog)", "cat OR dog"),
        ("the OR cat", "the OR cat"),
        ("cat -the", "cat AND -the"),
        ("cat -(the dog)", "cat AND -(the AND dog)"),
        ("-(-(the dog))", "dog"),
        ("the ext:py", "the AND ext:py"),
        ("and/or cat", "cat"),
        ("title:the cat", "title:the AND cat"),
    ],
)
def test_stop_words_go_where_a_word_stands_beside_them(text: str, echo: str) -> None:
    assert canonical(parse(text).node) == echo


def test_in_limits_every_word_that_is_asked_for() -> None:
    parsed = parse('in:title the cat "big dog" -bird heading')
    assert canonical(parsed.node) == 'title:cat AND title:"big dog" AND -bird AND title:heading'
    assert canonical(parse("in:name,path cat").node) == "in:name:cat | in:path:cat"
    assert canonical(parse("in:body title:cat dog~1").node) == "title:cat AND in:body:dog~1"


def test_in_history_is_no_condition() -> None:
    parsed = parse("in:history cat")
    assert (parsed.node, parsed.history, parsed.notes) == (Term("cat"), True, ())
    assert parse("in:history").node == All(())
    assert not parse("cat").history


@pytest.mark.parametrize(("text", "words"), [("/word/", ["word"]), ("/usr/b.*c/", ["usr", "b", "c"])])
def test_what_may_be_a_path_is_read_as_words_and_says_so(text: str, words: list[str]) -> None:
    parsed = parse(text)
    (note,) = parsed.notes
    assert note.startswith(f"{text} may be a path and is read as the words {', '.join(words)}")
    assert parsed.operators == frozenset()
    assert words == positive_terms(parsed.node)


@pytest.mark.parametrize(
    ("text", "node"),
    [
        ("/pars.*header/", Pattern("pars.*header", True, False)),
        (r"/\bfoo\d+_bar[a-z]{2}\//i", Pattern(r"\bfoo\d+_bar[a-z]{2}\/", True, False)),
        (" /one two|three/ ", Pattern("one two|three", True, False)),
        ("/a.b$/sg case:yes", Pattern("(?s)a.b$", True, True)),
        ("/TODO/ case:yes", Pattern("TODO", True, True)),
        ("tea case:yes -/TODO/i", All((Term("tea"), Not(Pattern("TODO", True, True))))),
        ("-/a+/", Not(Pattern("a+", True, False))),
        ("retry /def \\w+/", All((Term("retry"), Pattern("def \\w+", True, False)))),
        ("(/a+/ OR /b+/) tea", All((Any((Pattern("a+", True, False), Pattern("b+", True, False))), Term("tea")))),
        ('"x.Y( " case:yes', Pattern("x.Y(", False, True)),
        ('"->" case:no', Pattern("->", False, False)),
        ("tea file:*.py", All((Term("tea"), Field("path", ("*.py",))))),
    ],
)
def test_patterns_are_searched_letter_by_letter(text: str, node: Node) -> None:
    parsed = parse(text)
    assert (parsed.node, parsed.notes) == (node, ())
    assert parse(canonical(node), intent=EXPRESSION).node == node


@pytest.mark.parametrize(
    "text",
    [
        *(
            "and/or",
            "src/foo/bar.py",
            "GET /v1/search",
            "/usr/lib/",
            "10 / 2 + 3 / 4",
            "s/foo/ba+r/",
            "/* a comment */ x",
        ),
        *(
            "TCP/IP",
            "//",
            "/",
            "a /b c/ d",
            "/v1/users/{id}/posts",
            "/a/*/b+",
            "case:foo",
            "upper case:",
            "either/or/both?",
        ),
    ],
)
def test_slashes_of_other_kinds_are_what_they_were(text: str) -> None:
    parsed = parse(text)
    assert not patterns_of(parsed.node)
    assert parsed.operators.isdisjoint(("//", "case:"))


def test_sentences_of_others_hold_no_patterns() -> None:
    golden = Path(findling.__file__).parent / "golden" / "queries.jsonl"
    asked = [json.loads(line)["text"] for line in golden.read_text("utf-8").splitlines()]
    for source in sorted(Path(json.__file__).parent.parent.glob("*.py"))[:80]:
        asked += re.findall(r"^ *# (.{20,200})$", source.read_text("utf-8"), re.MULTILINE)[:40]
    assert len(asked) > 1_000
    found = [text for text in asked if patterns_of(parse(text).node)]
    # ipaddress.py speaks of the expressions /1*0*/ and /0+1+/.
    assert [text for text in found if "mask" not in text] == []


def test_what_is_no_expression_is_read_as_words() -> None:
    parsed = parse("/(foo/ bar")
    assert not patterns_of(parsed.node)
    assert positive_terms(parsed.node) == ["foo", "bar"]
    assert parsed.notes[0].startswith("'(foo' is no regular expression: missing )")


@pytest.mark.parametrize("text", ["/usr/lib/", "/etc", "/etc/hosts", "and/or", "//"])
def test_a_path_is_no_regular_expression(text: str) -> None:
    assert not parse(text).notes


def test_operators_are_those_in_use() -> None:
    parsed = parse('a1 OR b1 | c1 AND -d1 NOT e1* fog~ "g h" path:x title:y -(k1 l1)')
    assert parsed.operators == {"OR", "|", "AND", "-", "NOT", "*", "~", '""', "path:", "title:", "()"}
    assert parse("i1 NEAR j1").operators == {"NEAR"}
    assert parse("“g h” i1").operators == frozenset()


def test_parentheses_that_change_nothing_and_excluded_conditions_are_no_operators() -> None:
    assert parse("profile of Aaron (the brother of Moses)").operators == frozenset()
    assert parse("connection pool -ext:md").operators == {"ext:"}


def test_the_plain_words_keep_their_stop_words() -> None:
    assert parse('the capital -paris "of france"').plain == "the capital"
    assert parse('what is the capital -paris "of france" ?').plain == "what is the capital of france ?"


@pytest.mark.parametrize(
    ("text", "note"),
    [
        ("-pasted OR text " * 80, "1,000 characters"),
        (" ".join(f"-w{number}" for number in range(65)), "64 words"),
        ("(" * 41 + "x OR y", "20 deep"),
        ("x OR (y (" * 11 + "z", "20 deep"),
    ],
)
def test_what_is_too_long_or_too_deep_is_read_as_plain_words(text: str, note: str) -> None:
    parsed = parse(text)
    assert not parsed.operators
    assert isinstance(parsed.node, All) and all(isinstance(part, Term) for part in parsed.node.nodes)
    assert len(parsed.notes) == 1 and note in parsed.notes[0]
    assert parse(canonical(parsed.node)).node == parsed.node


def test_a_pasted_text_is_searched_for_its_first_words() -> None:
    words = [f"w{number}" for number in range(600)]
    parsed = parse(" ".join(words))
    assert parsed.node == All(tuple(map(Term, words[: MOST_PASTED // 2]))), "two terms each"
    assert parsed.notes[1:] == ("of a pasted text the first 512 words are searched",)
    again = parse(canonical(parsed.node))
    assert (again.node, len(again.notes)) == (parsed.node, 1)
    assert len(parse(" ".join(words[:64] * 20)).notes) == 1, "words that come again count once"


def test_a_page_without_spaces_is_searched_for_its_beginning() -> None:
    page = "".join(chr(0x4E00 + number * 7 % 5000) for number in range(20_000))
    assert len(positive_terms(parse(page).node)) <= 1_000
    assert len(positive_terms(parse(f"{page[:900]} {page[2000:2900]} {page}").node)) <= 1_000


def test_a_word_of_twelve_hundred_letters_is_said_to_be_too_long() -> None:
    parsed = parse("x" * 1_200)
    assert parsed.node == Any(())
    assert parsed.notes[1:] == ("a word of 1,200 letters is too long to be one, and is left out",)


@pytest.mark.parametrize("long", ["{}", "-{}", '"{} {}"', "title:{}", "{}*", "{}~", "{} NEAR tea"])
def test_words_that_are_too_long_are_left_out_with_a_note(long: str) -> None:
    parsed = parse(f"tea {long.replace('{}', 'y' * 129)}")
    assert "a word of 129 letters is too long to be one, and is left out" in parsed.notes
    assert positive_terms(parsed.node)[0] == "tea"
    assert parse(long.replace("{}", "y" * 128)).notes == ()


def test_sixty_four_words_and_twenty_levels_are_still_a_query() -> None:
    assert parse(" ".join(f"-w{number}" for number in range(64))).operators == {"-"}
    assert "OR" in parse("x OR (y (" * 9 + "z").operators


@pytest.mark.parametrize("character", ["(", "-", '"', "\\", "*", "“", "a ", "-(", "x|", "a NEAR ", "path:"])
def test_a_hundred_thousand_characters_are_read_at_once(character: str) -> None:
    assert parse(character * (100_000 // len(character))).notes


def test_repeated_conditions_are_any_of_unless_a_resource_can_have_both() -> None:
    assert parse("lang:go type:file lang:c").node == All((Field("lang", ("go", "c")), Field("type", ("file",))))
    for name in ("author", "path", "system", "tag"):
        parsed = parse(f"{name}:a AND {name}:b")
        assert parsed.node == All((Field(name, ("a",)), Field(name, ("b",)))), "a resource can have both"
        assert parsed.notes == ()
    assert parse("-ext:py,js").node == Not(Field("ext", ("py", "js")))


@given(st.lists(st.from_regex(r"[a-z]{4,9}", fullmatch=True), min_size=1, max_size=60, unique=True))
def test_every_word_of_a_plain_query_is_asked_for(words: list[str]) -> None:
    meaningful = [word for word in words if word not in STOP_WORDS] or words
    assert positive_terms(parse(" ".join(words)).node) == meaningful


def test_an_operator_that_is_typed_twice_counts_once() -> None:
    parsed = parse("pool AND AND cache")
    assert parsed.operators == {"AND"}
    assert parsed.node == All((Term("pool"), Term("cache")))
