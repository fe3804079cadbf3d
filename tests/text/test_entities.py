"""Entities by rules: what a passage names, in which form, with which weight, in time that grows with the text."""

from __future__ import annotations

import time
import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from findling.domain.resources import Resource
from findling.text.mining.chunk_names import chunk_names
from findling.text.mining.entities import (
    MOST_MENTIONS,
    asked_keys,
    is_mostly_name,
    longest_keys,
    mentions_of,
    plain_keys,
)
from findling.text.mining.keys import entity_key
from tests.counts import tries

no_deadline = settings(deadline=None, max_examples=tries(100, short=25))


def keys(text: str, title: str = "", *headings: str) -> set[str]:
    return {mention.key for mention in mentions_of(text, title, headings)}


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Marie Curie", "MARIE CURIE"),
        ("Marie Curie", "Marie Curie's"),
        ("The Beatles", "Beatles"),
        ("Person-centered therapy", "Person centered Therapy"),
        ("Karel Purkyně", "Karel Purkyne"),
        ("ＮＨＫ", "NHK"),
        ("U.S. Navy", "US Navy"),
        ("APIs", "API"),
        ("O’Brien", "O'Brien"),
        (unicodedata.normalize("NFD", "Café Müller"), "Cafe Muller"),
        ("snake_case_name", "snake case name"),
    ],
)
def test_ways_to_write_a_name_have_one_key(one: str, other: str) -> None:
    assert entity_key(one) == entity_key(other) != ""


def test_what_tells_names_apart_stays() -> None:
    assert entity_key("Rolling Stone") != entity_key("Rolling Stones")
    assert entity_key("한국") != entity_key("한구")
    assert entity_key("हिन्दी") == "हिन्दी" or entity_key("हिन्दी") != entity_key("हन्द")
    assert entity_key("The") == "the"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("It was written by J. R. R. Tolkien in Oxford.", {"j r r tolkien", "oxford"}),
        ("He met Ludwig van Beethoven and Frances Dee there.", {"ludwig van beethoven", "frances dee"}),
        ("She led the Ministry of Trade and Industry.", {"ministry of trade and industry"}),
        ("A friend of Jean-Luc O'Neil's came.", {"jean luc oneil"}),
        ("We use NATO and the U.S. Navy there.", {"nato", "us navy"}),
        ("Она родилась в Санкт-Петербурге рядом с Невой.", {"санкт петербурге", "невой"}),
        ("Γεννήθηκε στην Αθήνα το βράδυ.", {"αθηνα"}),
        ("See [[Radium (band)|the band]] and [the Paris report](x.md).", {"radium band", "paris report"}),
        ("the song “Hello Love” and «Le Petit Café»", {"hello love", "le petit cafe"}),
        ("write to ann@example.org or @bob_k please", {"ann@example.org", "bob k"}),
        ("call `read_file` there", {"read file"}),
    ],
)
def test_names_of_a_text(text: str, expected: set[str]) -> None:
    found = keys(text)
    assert {entity_key(name) for name in expected} <= found


def test_the_first_word_of_a_sentence_is_no_name() -> None:
    assert keys("Hundreds came. However, nobody left. Yesterday was quiet.") == set()
    assert "paris" in keys("Paris is a city. Many love Paris.")
    assert "gisvi" in keys("Gisvi was born. Gisvi died.")
    assert keys("Cats sleep. Cats eat what cats like.") == set()
    assert keys("The Beatles came.") == {"beatles"}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("I’m here and I’m late. Let's go, Let's go. We hope It's true. They Don't know, said Anna.", {"anna"}),
        ("He told Ben: That's John's dog, and I've seen it.", {"ben", "john"}),
        ("Hey Li Hua, come! Thanks, Nate Brown.", {"li hua", "nate brown"}),
        ("RESULTS The trial ended. It took Vitamin A and King Charles I to do it.", {"results", "vitamin a"}),
        ("В Москве холодно. На Волге тепло.", {"москве", "волге"}),
        ("Los Angeles is big. It was quiet on Good Friday.", {"los angeles", "good friday"}),
    ],
)
def test_little_words_are_no_names_and_no_part_of_them(text: str, expected: set[str]) -> None:
    assert keys(text) - {"king charles i"} == expected


def test_labels_before_a_colon_do_not_speak() -> None:
    chat = "Time: 9:00\nAnna: I am late.\nTime: 9:05\nBen: I am here.\nTime: 9:10\nAnna: Fine.\n"
    assert {one.key for one in mentions_of(chat) if one.kind == "person"} == {"anna", "ben"}


def test_a_heading_of_code_names_what_it_defines() -> None:
    resource = Resource(rid="file:a.go", type="file", path="a.go", lang="go")
    found = {
        mention.label: mention.kind
        for heading in ("func (c *Context) BindWith", "type header struct", "func one, func two…")
        for mention in chunk_names(resource, (heading,), "")
    }
    assert found == {"BindWith": "title", "header": "title"}


def test_a_family_name_is_that_of_the_full_name_beside_it() -> None:
    mentions = {mention.key: mention for mention in mentions_of("We met Marie Curie. Then Curie left, said Curie.")}
    assert set(mentions) == {"marie curie"}
    assert mentions["marie curie"].weight > 1.5
    assert "curie" in keys("We met Marie Curie, Pierre Curie and another Curie.")


def test_titles_weigh_most_and_their_names_less() -> None:
    mentions = {mention.key: mention for mention in mentions_of("nothing here", "Radium (band)", ("Early years",))}
    assert mentions["radium band"].kind == "title"
    assert mentions["radium band"].weight > mentions["early years"].weight > mentions["radium"].weight > 1
    assert {"baure nigeria", "baure", "nigeria"} <= keys("", "Baure, Nigeria")
    assert "indiana" in keys("", "Alcohol laws of Indiana")
    assert keys("", "a long title that is rather a sentence about cells and mice") == set()


def test_people_speak_in_chats() -> None:
    text = "Ann Lee: hi\nBob: hello\nAnn Lee: how are you?\n"
    people = {mention.key for mention in mentions_of(text) if mention.kind == "person"}
    assert "ann lee" in people
    assert {mention.kind for mention in mentions_of("Note: nothing")} == set()
    assert ("zoe", "person") in {(m.key, m.kind) for m in mentions_of("hi", people=["Zoë"])}


def test_code_gives_what_it_defines() -> None:
    found = {mention.key: mention.kind for mention in mentions_of("x = 1", "store.py", defines=["SqliteStore"])}
    assert found["sqlitestore"] == "code"


def test_years_weigh_little() -> None:
    mentions = {
        mention.key: mention for mention in mentions_of("It came in 1911 and 2004, not 3.1415 or 12345 or v1999.")
    }
    assert {key for key, mention in mentions.items() if mention.kind == "date"} == {"1911", "2004"}
    assert all(mention.weight < 1 for mention in mentions.values())


def test_scripts_without_capitals_give_what_is_quoted_and_repeated() -> None:
    assert "吾輩は猫である" in keys("夏目漱石の『吾輩は猫である』を読む。")
    assert "小笠原諸島" in keys("小笠原諸島の気候。梅雨は小笠原諸島にない。")
    assert "小笠原諸島" not in keys("小笠原諸島の気候。")
    assert "한국은행" in keys("한국은행은 금리를 올렸다. 한국은행의 결정이다.")


def test_of_equal_weights_the_name_of_more_words_comes_first() -> None:
    mentions = mentions_of("he met Ann, Raoul Walsh and Jean Luc Picard there")
    assert [mention.key for mention in mentions] == ["jean luc picard", "raoul walsh", "ann"]


def test_a_passage_has_a_bounded_number_of_mentions() -> None:
    text = ", ".join(f"Name{chr(65 + place % 26)}{place}" for place in range(5_000))
    assert len(mentions_of(f"see {text}")) == MOST_MENTIONS


def test_questions_give_their_names_and_longest_wins() -> None:
    question = "Who is the spouse of the director of Jump for Glory?"
    assert "jump for glory" in asked_keys(question)
    known = {"jump", "glory", "jump for glory", "director"}
    assert longest_keys(asked_keys(question), known) == ["jump for glory"]
    assert longest_keys(asked_keys("where did the journal of physics begin"), {"journal of physics", "physics"}) == [
        "journal of physics"
    ]
    assert "state" not in asked_keys("In which state is Baure?")
    assert "baure" in asked_keys("where is baure")
    assert {"梅雨", "北海道"} <= set(asked_keys("日本で梅雨がないのは北海道とどこか。"))


def test_words_in_lower_case_are_names_where_texts_write_them_so() -> None:
    words = ["spouse", "director", "decade", "director of decade"]
    assert plain_keys("who is the spouse of the director of decade")[:4] == words
    # Of a question with a name in capitals, phrases in lower case are plain, too.
    plain = plain_keys("how Marie Curie sees information retrieval")
    assert "information retrieval" in plain
    assert "marie curie" not in plain
    assert "big eye" not in plain_keys("Who is the spouse of Big Eye's director?")
    assert is_mostly_name(3, 4)
    assert not is_mostly_name(3, 200)
    assert is_mostly_name(13, 100)
    assert not is_mostly_name(11, 100)
    assert not is_mostly_name(0, 0)


def test_capitals_everywhere_tell_nothing() -> None:
    quiet = "what is the capital of the state where baure lies"
    assert asked_keys(quiet.upper()) == asked_keys(quiet) == asked_keys(quiet.title())
    assert plain_keys(quiet.upper()) == plain_keys(quiet)
    assert "radium" not in plain_keys("Marie Curie Radium Institute")


def test_capitals_of_a_title_and_of_a_sentence_tell_nothing() -> None:
    asked = asked_keys("Amount of use of books. Relation to the Dewey systems .")
    assert "dewey" in asked
    assert "relation" not in asked
    titled = "A Translating Interface for the Operation of Retrieval Systems. How does it find Marie Curie?"
    assert "retrieval systems" in plain_keys(titled)
    assert "marie curie" not in plain_keys(titled)


@no_deadline
@given(st.text(max_size=300), st.text(max_size=40))
def test_any_text_has_mentions_in_a_stable_order(text: str, title: str) -> None:
    mentions = mentions_of(text, title, (title,))
    assert mentions == mentions_of(text, title, (title,))
    assert len({mention.key for mention in mentions}) == len(mentions)
    assert all(mention.key and mention.label and mention.weight > 0 for mention in mentions)
    assert [mention.weight for mention in mentions] == sorted((m.weight for m in mentions), reverse=True)
    assert all(entity_key(key) == key for key in asked_keys(text)) or not text.isascii()


HOSTILE = [
    "A" * 4,
    "A ",
    "A of ",
    "A-",
    "A'",
    "A.",
    "[[a",
    "[[a|",
    '"',
    '"A',
    "“A",
    "`a",
    "a.",
    "a@",
    "@a",
    "1:1 - A",
    "A: ",
    "\n1/1/1, A",
    "一",
    "「",
    "가",
    "1999",
    "１",
    "İ",
    "Ⅷ ",
    "A & ",
    "a@a.",
    "[A](",
]


@pytest.mark.parametrize("piece", HOSTILE)
def test_hostile_text_takes_linear_time(piece: str) -> None:
    """A third of a megabyte takes 0.1 CPU seconds; an expression that is quadratic in it would take minutes."""
    text = piece * (300_000 // len(piece))
    started = time.process_time()
    mentions_of(text, text[:200], (text[:2_000],))
    asked_keys(text)
    assert time.process_time() - started < 10
