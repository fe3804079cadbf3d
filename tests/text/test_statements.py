"""Statements in plain words: their periods, their facts, and what tells two of them apart."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from datetime import datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from findling.pipelines.content.memory_judge import anchors
from findling.text.statements.facts import fact_of
from findling.text.statements.likeness import compare
from findling.text.statements.periods import LATER, PAST, periods, read_day, shown_day, validity
from findling.text.statements.readings import read_statement
from findling.text.statements.words import content, written_words
from tests.text.statement_pairs import ALIKE, UPDATES

NOW = datetime(2026, 11, 17, 12).timestamp()
"""A Tuesday."""


@pytest.mark.parametrize(
    ("text", "first", "last"),
    [
        ("on 3 June 2027", "2027-06-03", "2027-06-03"),
        ("on June 3rd, 2027", "2027-06-03", "2027-06-03"),
        ("2027-06-03", "2027-06-03", "2027-06-03"),
        ("am 3.6.2027", "2027-06-03", "2027-06-03"),
        ("am 3. Juni 2027", "2027-06-03", "2027-06-03"),
        ("in June 2027", "2027-06-01", "2027-06-30"),
        ("in 2025", "2025-01-01", "2025-12-31"),
        ("yesterday", "2026-11-16", "2026-11-16"),
        ("gestern", "2026-11-16", "2026-11-16"),
        ("last week", "2026-11-09", "2026-11-15"),
        ("letzte Woche", "2026-11-09", "2026-11-15"),
        ("la semaine dernière", "2026-11-09", "2026-11-15"),
        ("next month", "2026-12-01", "2026-12-31"),
        ("3 days ago", "2026-11-14", "2026-11-14"),
        ("vor 2 Wochen", "2026-11-02", "2026-11-08"),
        ("last Friday", "2026-11-13", "2026-11-13"),
    ],
)
def test_days_and_periods(text: str, first: str, last: str) -> None:
    (found,) = periods(text, NOW)
    assert (shown_day(found.begin), shown_day(found.end, is_end=True)) == (first, last)


@pytest.mark.parametrize(
    "text", ["It may rain", "April lives here", "Jan's code is 2024", "release 4.2.1", "30 February 2027", "port 8080"]
)
def test_what_is_no_day(text: str) -> None:
    assert periods(text, NOW) == []


def test_the_year_of_a_day_without_one() -> None:
    assert [shown_day(periods("in June", NOW, year)[0].begin) for year in (PAST, LATER)] == ["2026-06-01", "2027-06-01"]
    assert [shown_day(periods("Monday", NOW, year)[0].begin) for year in (PAST, LATER)] == ["2026-11-16", "2026-11-23"]


def test_a_day_as_an_option() -> None:
    for text in ("2027-06-03", "3 June 2027", " Friday ", "yesterday", "2027-06", "2027"):
        assert read_day(text, NOW) is not None, text
    for text in ("", "soon", "before Friday", "Friday and Monday", "2027-13-01"):
        assert read_day(text, NOW) is None, text


@pytest.mark.parametrize(
    ("text", "since", "until", "rest"),
    [
        ("Since May Anna lives in Bonn.", "2026-05-01", None, "Anna lives in Bonn."),
        ("Anna lives in Bonn since May.", "2026-05-01", None, "Anna lives in Bonn."),
        ("Anna is on leave until Friday.", None, "2026-11-20", "Anna is on leave."),
        ("From 3 June 2027 the office is in Ulm.", "2027-06-03", None, "the office is in Ulm."),
        ("Ben sits in room 5 from Monday on.", "2026-11-23", None, "Ben sits in room 5."),
        ("Seit Mai wohnt Anna in Bonn.", "2026-05-01", None, "wohnt Anna in Bonn."),
        ("Der Preis gilt bis Freitag.", None, "2026-11-20", "Der Preis gilt."),
        ("The shop is open from Monday to Friday.", None, None, "The shop is open from Monday to Friday."),
        ("The shop is open until 5 pm.", None, None, "The shop is open until 5 pm."),
    ],
)
def test_validity_in_a_statement(text: str, since: str | None, until: str | None, rest: str) -> None:
    found = validity(text, NOW)
    assert (found.since and shown_day(found.since)) == since
    assert (found.until and shown_day(found.until, is_end=True)) == until
    assert found.rest.rstrip(".") == rest.rstrip(".")


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("The rent is 1,250 euros.", "the rent: 1250 EUR"),
        ("The shop opens at 3 pm.", "The shop opens at 15:00."),
        ("The play is on June 3rd.", "The play is on 3 June."),
        ("Bob has three cats.", "Bob has 3 cats"),
        ("Anna isn't here.", "Anna is not here."),
        ("Die Straße ist gesperrt.", "die Strasse ist gesperrt"),
    ],
)
def test_one_spelling_of_numbers_days_and_words(one: str, other: str) -> None:
    keys = [sorted(word.key for word in content(written_words(text, NOW))) for text in (one, other)]
    assert keys[0] == keys[1]


@pytest.mark.parametrize(
    ("text", "slot", "value"),
    [
        ("Anna's phone number is 0341 5566.", {"anna", "@phone"}, ("#0341", "#5566")),
        ("The deadline of Apollo is 3 June 2027.", {"apollo", "@deadline"}, ("when:2027-06-03",)),
        ("Wifi password: hunter2", {"@wifi", "@password"}, ("#hunter2",)),
        ("We use PostgreSQL 16 for Apollo.", {"@use", "apollo"}, ("postgresql", "#16")),
        ("Anna lives in New York.", {"anna", "@live"}, ("new", "york")),
        ("Anna wohnt in Köln.", {"anna", "@live"}, ("koln",)),
        ("Olga is Anna's manager.", {"anna", "@manager"}, ("olga",)),
        ("The office moved to Leipzig.", {"@office"}, ("leipzig",)),
        ("The server listens on port 8080.", {"@server", "port"}, ("#8080",)),
        ("The capital of France is Paris.", {"capit", "franc"}, ("pari",)),
    ],
)
def test_facts(text: str, slot: set[str], value: tuple[str, ...]) -> None:
    found = fact_of(text, NOW)
    assert found is not None
    assert set(found.slot) == slot
    assert [key for key in found.value if key in value] == list(value)


@pytest.mark.parametrize(
    "text",
    ["What is Anna's number?", "The server is slow.", "Anna used to live in Bonn.", "Buy milk.", "", ":", "is", "x: "],
)
def test_no_fact_where_nothing_is_certain(text: str) -> None:
    assert fact_of(text, NOW) is None


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("John: Thanks, James.", "John: Keep me posted, James!"),
        ("Andrew: That looks so nice.", "Andrew: I'm really excited to try different sushi."),
        ("Looks like you all had fun!", "It looks like they have so much more room to swim now!"),
        ("I'd love to learn some techniques.", "Plus, I love learning new things!"),
        ("You'll do great!", "It's been great!"),
        ("I like my new bike.", "You like your new bike."),
        ("Where is Anna's key?", "Anna's key is where?"),
        ("The trial of soup was a success.", "The trial of rice was a success."),
    ],
)
def test_talk_is_no_fact_and_no_copy(one: str, other: str) -> None:
    """Lines of real chats, of which names before a colon once made facts."""
    assert compare(read_statement(one, NOW), read_statement(other, NOW)) == ""


@pytest.mark.parametrize(
    ("one", "other"),
    [
        # who does it to whom
        ("the cat chased the dog", "the dog chased the cat"),
        ("frontend depends on backend", "backend depends on frontend"),
        ("Convert from EUR to USD", "Convert from USD to EUR"),
        ("copy files from staging to production", "copy files from production to staging"),
        ("Alice's mother is Bob's doctor.", "Bob's mother is Alice's doctor."),
        ("Room 5 on floor 3 is free.", "Room 3 on floor 5 is free."),
        ("Anna beat Ben 3-2.", "Anna beat Ben 2-3."),
        ("Anna voted for the plan.", "Anna voted against the plan."),
        ("The key is in the box.", "The key is on the box."),
        # signs, and negations of a part
        ("The temperature is -5 degrees.", "The temperature is 5 degrees."),
        ("x is > 5 in all tests", "x is < 5 in all tests"),
        ("The regex is a+b.", "The regex is a*b."),
        ("The tool takes the --from option.", "The tool takes the --to option."),
        ("Not all servers are patched.", "All servers are not patched."),
        # words that look like a form of another one
        ("Ben's father died in Berlin.", "Ben's father is in Berlin."),
        ("Anna quit her job at Siemens.", "Anna has her job at Siemens."),
        ("Luis lives in Berlin.", "He lives in Berlin."),
        ("Mary is allergic to nuts.", "The wife is allergic to nuts."),
        ("The terminal is in hall 5.", "The appointment is in hall 5."),
        ("Anna married Will.", "Anna married."),
        ("Anna would pay the bill.", "Anna did pay the bill."),
        # words of which the vectors know nothing
        ("آنا تعيش في برلين.", "آنا تعيش في هامبورغ."),
        ("сервер в москве медленный", "сервер в питере медленный"),
        ("The token is abc.def.", "The token is abc-def."),
    ],
)
def test_words_that_are_alike_and_say_another_thing_are_no_copies(one: str, other: str) -> None:
    for first, second in ((one, other), (other, one)):
        assert compare(read_statement(first, NOW), read_statement(second, NOW)) in ("", "conflict")


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        ("Anna lives in Berlin.", "Anna lives in a flat."),
        ("Anna lives in Berlin.", "Anna moved to tears."),
        ("Anna lives in Berlin.", "Anna moved to the sales team."),
        ("Anna lives in Berlin.", "Anna moved to Hamburg for two months."),
        ("Anna wohnt in Berlin.", "Anna ist in eine WG gezogen."),
        ("Anna works at Siemens.", "Anna works in Munich."),
        ("Anna's manager is Olga.", "Anna's manager is nice."),
        ("The frontend calls the backend.", "The frontend calls the cache."),
        ("The function is called parse.", "The function is called twice."),
        ("The limit is 100 for free users.", "The limit is 1000 for paid users."),
        ("The code is 1234.", "The code is probably 9999."),
        ("The code is 1234.", "The code could be changed to 9999."),
        ("The code is 1234.", "Please change the code to 9999."),
        ("The code is 1234.", '"The code is 9999"'),
        ("The code is 1234.", "> The code is 9999"),
        ("It is located in Daxi.", "It is located in Zhongzheng."),
        ("It was released in 1992.", "It was released in 1996."),
        ("He works as a cook.", "He works as a nurse."),
        ("It is all about positioning.", "Now it is not easy to stay positive."),
        ("I'm working on my health.", "Now I'm working on something new."),
        ("A dog sits on a couch in a living room.", "A dog sits in a bed in a living room."),
    ],
)
def test_no_newer_value_where_another_reading_is_possible(older: str, newer: str) -> None:
    assert compare(read_statement(older, NOW), read_statement(newer, NOW)) in ("", "conflict")


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        ("The code is 12 34.", "The code is 34 12."),
        ("anna lives in berlin", "anna moved to hamburg"),
        ("Anna lives in Berlin.", "Anna now lives in Hamburg."),
        ("The status is green.", "The status is red now."),
        ("The wifi network is called Rex.", "The wifi network is called Bello."),
    ],
)
def test_newer_values(older: str, newer: str) -> None:
    assert compare(read_statement(older, NOW), read_statement(newer, NOW)) == "update"


@given(st.text(max_size=80), st.text(max_size=80))
def test_any_text_can_be_read_and_compared(one: str, other: str) -> None:
    readings = [read_statement(text, NOW) for text in (one, other)]
    assert compare(readings[0], readings[1]) in ("", "copy", "update", "conflict")
    assert compare(readings[0], readings[0]) in ("", "copy")


def _verdicts(pairs: Iterable[tuple[str, ...]]) -> Counter[str]:
    found: Counter[str] = Counter()
    for older, newer in pairs:
        old, new = read_statement(older, NOW - 86_400), read_statement(newer, NOW)
        relation = compare(old, new)
        assert not relation or anchors(new)(older), f"{newer!r} would not be compared with {older!r}"
        found[relation] += 1
    return found


def test_updates_supersede_or_wait_and_what_looks_alike_is_not_lost() -> None:
    updates, alike = _verdicts(UPDATES), _verdicts(ALIKE)
    assert (updates["copy"], alike["copy"], alike["update"]) == (0, 0, 0)
    assert updates["update"] >= 0.6 * len(UPDATES)
    assert updates["update"] + updates["conflict"] >= 0.95 * len(UPDATES)
    assert alike["conflict"] <= 0.25 * len(ALIKE)


@pytest.mark.parametrize(
    ("older", "newer", "relation"),
    [
        ("I am a vegetarian.", "I am not a vegetarian any more.", "update"),  # two words of negation are one
        ("editor = vim", "editor = emacs", "update"),  # `or` within a word is no list
        ("Note 3 about the boiler.", "Note 4 about the boiler.", ""),
        ("The library is Python 3 only.", "Library usage", ""),
        ("Python support", "Python 2 is no longer supported.", ""),
        ("The tests need Node 18.", "The tests need Node 20.", "conflict"),  # `need` is no past
        ("The staging database is reset every Monday.", "The staging database is reset every Friday.", "conflict"),
        ("We use Terraform.", "We also use Pulumi.", ""),
        ("Olga has an account at Nordbank.", "Olga has an account at Südbank.", "conflict"),  # of `accountant`
        ("I work at Halden Robotics.", "I take the tram to work now.", "conflict"),
        ("Max is vegetarian.", "Max is colour-blind.", "conflict"),  # not a maximum
        ("The support mailbox is help@t.example.", "The support mailbox is ask@t.example.", "update"),  # no verb
        ("The flag new_cart is off in production.", "The flag new_cart is on in production.", "update"),
        ("The rent is 940 euros.", "The rent is 985 euros from January.", "update"),
        ("Our porter is Mr. Bell.", "Our porter is Mr. Gray since the strike.", "update"),
        ("I prefer tabs over spaces.", "I prefer spaces over tabs.", "update"),
        ("Samir reports to Gwen.", "Gwen reports to Samir.", ""),
        ("Sigrid manages the Oslo warehouse.", "Pål manages the Oslo warehouse.", "conflict"),
        ("Sigrid manages a warehouse.", "Pål manages a warehouse.", ""),
        ("I am allergic to nothing.", "I am allergic to cashews.", "conflict"),
        ("The backup disk is in the safe.", "The backup disk is at my sister's.", "conflict"),
        ("The espresso machine is a Gaggia.", "The espresso machine is a Rancilio.", "update"),
        ("Peter's book is Dune.", "Peter's book is Emma.", "conflict"),  # he has several
        ("My wife is Polish.", "My wife is Vegan.", "conflict"),
        ("The invoice from Acme is 300 euros.", "The invoice from Acme is 450 euros.", "conflict"),
        ("We have an office in Berlin.", "We have an office in Paris now.", "conflict"),
        ("The weekly sync is on Monday.", "The weekly sync is on Tuesday.", "update"),
        ("The retro is on Fridays at 3pm.", "The retro is on Thursdays at 3pm.", "update"),
        ("The market is on Wednesdays.", "The market is on Saturdays.", "conflict"),  # two of them
        ("Swimming is on Mondays.", "Swimming is on Fridays.", "conflict"),
        ("Standup is at 9:15.", "Standup is at 10:00.", "update"),
        ("The bus to Ulm leaves at 7:10.", "The bus to Ulm leaves at 7:40.", "conflict"),
        ("The wedding is on 5 September.", "The wedding is on 12 September.", "update"),
        ("My appointment is on 4 June.", "My appointment is on 18 June.", "conflict"),
        ("The cluster runs Elasticsearch 7.17.", "The cluster runs Elasticsearch 8.11.", "update"),  # 8.11 is no day
        ("We support Python 3.10.", "We support Python 3.12.", "conflict"),
        ("The bug occurs with Node 18.", "The bug occurs with Node 20.", "conflict"),
        ("Jana wohnt in Kassel.", "Jana wohnt in Rostock.", "update"),
        ("I have lived in Prague.", "I have lived in Warsaw.", "conflict"),
        ("Priya lives in London.", "Priya lives in Hackney.", "conflict"),  # a part of it
        ("My phone number is 0176 4410.", "My phone number is 0151 9087.", "update"),
        ("Anna's phone number is 0341 5566.", "Anna's mobile number is 0176 5512.", "conflict"),
        ("Vikram sits on the fourth floor.", "Vikram sits on the second floor.", "update"),
        ("The printer on floor 1 is out of toner.", "The printer on floor 3 is out of toner.", ""),  # `on` is no `we`
        ("The lamp has 2 bulbs.", "The lamp has 4 bulbs.", "update"),
        ("Bought 2 loaves of bread.", "Bought 3 loaves of bread.", ""),
        ("We use Jenkins for CI.", "We replaced Jenkins with Actions for CI.", "update"),
        ("Anna uses Jenkins for CI.", "Ben replaced Jenkins with Actions for CI.", ""),
        ("I work for Bosch.", "I left Bosch and work for Siemens now.", "update"),
        ("I am learning Italian.", "I have stopped learning Italian.", "update"),
        ("Ik werk bij Philips.", "Ik werk niet meer bij Philips.", "update"),
        ("I like apples and pears.", "I no longer like pears.", "conflict"),
        ("We store uploads on the NAS in the cellar.", "We store uploads in an S3 bucket now.", "conflict"),
        ("Jakob's manager is Xaver.", "Gesa's manager is Xaver now.", ""),
        ("The project is licensed under MIT.", "The project is licensed under GPL.", "conflict"),  # not German `mit`
        ("The timeout in client.py is 5 seconds.", "I raised the timeout in client.py to 20 seconds.", "update"),
        ("The bakery opens at 7.", "The bakery opens at 6:30 since summer.", "update"),
        ("LOG_LEVEL=info", "LOG_LEVEL=debug", "update"),
        ("I get up at 6:30.", "I get up at 7:15.", "update"),
        ("I walk the dog at 6:30.", "I walk the dog at 19:15.", "conflict"),
        ("Wir nutzen Jira für Tickets.", "Wir sind von Jira auf Linear umgestiegen.", "conflict"),
        ("Kavita is a team lead.", "Ruben is a team lead.", ""),
        ("Kavita is team lead of platform.", "Ruben is team lead of platform.", "update"),
        ("Unser Chef ist Schwabe.", "Unser Chef ist Vegetarier.", "conflict"),
        ("Ben is good at maths.", "Ben is good at drawing.", ""),  # they add up
    ],
)
def test_statements_that_were_read_wrongly(older: str, newer: str, relation: str) -> None:
    assert compare(read_statement(older, NOW - 86_400), read_statement(newer, NOW)) == relation
