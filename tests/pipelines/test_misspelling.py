"""Errors of spelling are put right, identifiers as a whole; words of another language are left alone."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import findling
from findling.domain.plans import Plan

TEXTS = {
    "query.py": "def prefetch_related(self):\n    return getUserName(self, max_value)\n",
    "want.md": "What people want: the case of a base, and where they want it. The date was given to them.\n",
    "mail.py": "class HttpConnection:\n    limit = 3\n\n    def receive_message(self):\n        return self.limit\n",
    "pool.md": "The connection pool waits, as it is busy.\n",
}


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[findling.Engine]:
    root: Path = tmp_path_factory.mktemp("texts")
    for name, text in TEXTS.items():
        (root / name).write_text(text)
    own = {"store.home": str(root.parent / "homes"), "semantic.refine": "never", "semantic.query_budget_ms": 0.0}
    with findling.open(root, settings=findling.Settings().override(own, "test")) as opened:
        opened.index()
        yield opened


def meant(engine: findling.Engine, query: str) -> dict[str, str]:
    answer = engine.search(query, refresh=False, plan=Plan(mode="keyword"))
    return {one.term: one.suggestion for one in answer.did_you_mean if one.applied}


@pytest.mark.parametrize(
    ("query", "term", "other"),
    [
        ("prefech_related", "prefech_related", "prefetch_related"),
        ("where is prefech_related()", "prefech_related", "prefetch_related"),
        ("prefechRelated", "prefechRelated", "prefetchRelated"),
        ("getUserNmae", "getUserNmae", "getUserName"),
        ("MAX_VALEU", "MAX_VALEU", "MAX_VALUE"),
        ("conection", "conection", "connection"),
        ("recieve_mesage", "recieve_mesage", "receive_message"),
        ("HttpConection", "HttpConection", "HttpConnection"),
        ("HttpConection.receive_message", "HttpConection.receive_message", "HttpConnection.receive_message"),
    ],
)
def test_errors_inside_identifiers_are_put_right_as_a_whole(
    engine: findling.Engine, query: str, term: str, other: str
) -> None:
    assert meant(engine, query) == {term: other}
    answer = engine.search(query, refresh=False, plan=Plan(mode="keyword"))
    assert answer.hits
    assert answer.did_you_mean[0].query == query.replace(term, other)


def test_an_identifier_that_the_index_has_not_as_a_whole_is_left_alone(engine: findling.Engine) -> None:
    assert meant(engine, "prefech_value") == {}


@pytest.mark.parametrize("query", ["wann", "Wann wurde die Brücke gebaut", "Käse", "wanr", "Wer baute die poool"])
def test_words_of_another_language_are_no_errors(engine: findling.Engine, query: str) -> None:
    assert meant(engine, query) == {}


def test_an_index_that_speaks_the_language_corrects_it(engine: findling.Engine, tmp_path: Path) -> None:
    (tmp_path / "text.md").write_text(
        "Der Fluss und die Brücke: das ist den Leuten, dem Dorf und des Landes ein Stolz, eine Freude, einen Weg.\n"
    )
    own = {"store.home": str(tmp_path / "home"), "semantic.refine": "never"}
    with findling.open(tmp_path, settings=findling.Settings().override(own, "test")) as german:
        german.index()
        assert meant(german, "Wann wurde die Brrücke gebaut") == {"Brrücke": "brucke"}


def test_a_number_is_found_where_its_thousands_are_set_apart(tmp_path: Path) -> None:
    """1249 found no bill over 1,249.00."""
    (tmp_path / "bill.md").write_text("# Bill\n\nThe sum is 1,249.00 euros, or 3 249 crowns.\n")
    (tmp_path / "code.md").write_text("# Code\n\nThe room has the number 7777.\n")
    own = {"store.home": str(tmp_path.parent / "homes"), "semantic.refine": "never"}
    with findling.open(tmp_path, settings=findling.Settings().override(own, "test")) as engine:
        engine.index()
        for query in ("1249", "sum 1249", "3249"):
            answer = engine.search(query, refresh=False)
            assert [hit.path for hit in answer] == ["bill.md"], query
            assert [one.suggestion for one in answer.did_you_mean if one.applied] == [f"{query[-4]} 249"]
        assert [hit.path for hit in engine.search("7777", refresh=False)] == ["code.md"]
        for query in ("1250", "0249", "249000"):
            assert not engine.search(query, refresh=False).hits, query


@pytest.mark.parametrize("mode", ["keyword", "hybrid"])
def test_a_corrected_word_is_worth_less_than_a_typed_one_and_each_edit_counts(tmp_path: Path, mode: str) -> None:
    """A French question for a passport had the German note on a password as its first hit, with .68."""
    notes = {
        "wlan.md": "# WLAN\nDas Passwort vom Netz der Gäste steht auf dem Gerät im Flur.\n",
        "auto.md": "# Auto\nDer Wagen muss im Mai zur Prüfung. Die Reifen sind im Keller.\n",
        "koch.md": "# Kochen\nDie Kartoffeln mit Quark und Leinöl sind das Gericht der Lausitz.\n",
    }
    for name, text in notes.items():
        (tmp_path / name).write_text(text)
    own = {"store.home": str(tmp_path.parent / "homes")}
    with findling.open(tmp_path, settings=findling.Settings().override(own, "test")) as german:
        german.index()
        german.refine()
        queries = ("wo ist mein Passwort", "wo ist mein Passwortt", "wo ist mein passeport")
        answers = [german.search(query, refresh=False, plan=Plan(mode=mode)) for query in queries]
    corrections = [{one.suggestion for one in answer.did_you_mean if one.applied} for answer in answers]
    assert corrections == [set(), {"passwort"}, {"passwort"}]
    assert {answer.hits[0].path for answer in answers} == {"wlan.md"}
    typed, near, far = (answer.hits[0].score for answer in answers)
    assert typed > near >= far
    assert far < 0.9 * typed, "no confident hit follows from a correction alone"
    assert near > far or mode == "hybrid"


def test_unknown_words_are_shown_as_they_were_typed(engine: findling.Engine) -> None:
    answer = engine.search("Käse Zürich xyzzyx", refresh=False, plan=Plan(mode="keyword"))
    assert answer.unknown_terms == ("Käse", "Zürich", "xyzzyx")
    answer = engine.search("iPhone of ThreadPuulExcutor", refresh=False, plan=Plan(mode="keyword"))
    assert answer.unknown_terms == ("iPhone", "ThreadPuulExcutor"), "each once, parts and all"


@pytest.mark.parametrize("query", ["wie parst man eine Base", "comment parst on les pool"])
def test_an_index_with_a_few_small_words_of_a_language_does_not_speak_it(tmp_path: Path, query: str) -> None:
    """Any large tree has der, die and das somewhere: `parst` became `parts`, which won."""
    foreign = "der die das den dem des ein eine und le la les un une du de et ou il lo gli uno una".split()
    for number in range(400):
        name = foreign[number % len(foreign)] if number < len(foreign) else "base"
        (tmp_path / f"{number}.md").write_text(f"The parts of a pool, number {number}, are called {name}.\n")
    own = {"store.home": str(tmp_path.parent / "home"), "semantic.refine": "never"}
    with findling.open(tmp_path, settings=findling.Settings().override(own, "test")) as large:
        large.index()
        assert meant(large, "the parst of a pool") == {"parst": "parts"}
        assert meant(large, query) == {}


def test_gibberish_is_not_two_rare_words(tmp_path: Path) -> None:
    """`xkcdqqq` was searched for by meaning as `xkcd qqq`, because both stand somewhere."""
    (tmp_path / "a.md").write_text("A strip of xkcd, and the rate of a limit. The zork blat waits.\n")
    (tmp_path / "b.md").write_text("The letters qqq are a sample.\n")
    own = {"store.home": str(tmp_path.parent / "home"), "semantic.refine": "never"}
    with findling.open(tmp_path, settings=findling.Settings().override(own, "test")) as engine:
        engine.index()
        answer = engine.search("xkcdqqq")
        assert (answer.hits, answer.did_you_mean, answer.unknown_terms) == ((), (), ("xkcdqqq",))
        assert meant(engine, "ratelimit") == {"ratelimit": "rate limit"}, "both are common words"
        assert meant(engine, "zorkblat") == {"zorkblat": "zork blat"}, "they stand in a row"


def test_words_of_deleted_texts_are_not_named(tmp_path: Path) -> None:
    """tantivy keeps them until a compaction: a deleted password was completed and suggested still."""
    for number in range(30):
        (tmp_path / f"{number}.md").write_text(f"Number {number} has a swordsman and a password, called Ann.\n")
    (tmp_path / "secret.md").write_text("The password is swordfish, swordfish42 or sword fish.\n")
    own = {"store.home": str(tmp_path.parent / "home"), "semantic.refine": "never"}
    with findling.open(tmp_path, settings=findling.Settings().override(own, "test")) as engine:
        engine.index()
        explained = engine.search("swordf*", plan=Plan(mode="keyword"), explain=True)
        assert explained.plan["forms"]["swordf*"] == ["swordfish", "swordfish42"]
        assert [one.text for one in engine.suggest("sword")] == ["swordsman", "swordfish", "swordfish42"]
        assert meant(engine, "swordfis") == {"swordfis": "swordfish"}
        (tmp_path / "secret.md").unlink()
        engine.search("password")
        vocabulary = dict(engine.opened.at().keyword.vocabulary("swordf"))
        assert vocabulary == {}
        assert [(one.text, one.count) for one in engine.suggest("sword")] == [("swordsman", 30)]
        assert engine.suggest("swordf") == ()
        assert meant(engine, "swordfis") == {}
        explained = engine.search("swordf*", plan=Plan(mode="keyword"), explain=True)
        assert explained.plan["forms"]["swordf*"] == []
