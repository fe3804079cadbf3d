"""One document: fetched by any of its names, what is like it by meaning, and nothing of what is hidden."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from findling.domain.errors import FindlingError, InvalidValueError, NotFoundError
from findling.domain.resources import Resource
from findling.pipelines.lookup.similar import similar
from findling.pipelines.lookup.suggest import suggest
from findling.pipelines.retrieve.legs import Retrievers
from findling.service.engine.engine import Engine, open_engine
from findling.service.index.documents import FetchedDocument, LinkedResource, fetch
from findling.service.settings.settings import Settings

GUIDE = """# Guide

How to begin, what to bring, whom to ask and where to find all that is needed for a first day here.

## Signing in

Every login makes a session token. The token is kept in a cookie, and whoever has the cookie is signed in.

## Leaving

Say goodbye to everybody, hand in the keys, close the window and the door, and do not forget to smile.
"""
ANN, EVERYONE = ("user:ann",), ("everyone",)


def decision(
    number: int, text: str, *, to: str = "", visibility: tuple[str, ...] = EVERYONE, **fields: str
) -> tuple[Resource, str]:
    links = {"links": json.dumps([{"to": to, "type": "depends", "strength": 5, "note": "see there"}])} if to else {}
    resource = Resource(
        rid=f"decision:{number}", type="decision", title=f"Decision {number}", visibility=visibility,
        fields={"system": "core", **fields, **links},
    )  # fmt: skip
    return resource, text


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[Engine]:
    root = tmp_path / "root"
    (root / "docs").mkdir(parents=True)
    (root / "docs" / "guide.md").write_text(GUIDE)
    (root / "table.csv").write_text("name,colour\nfalcon,grey\nowl,brown\n")
    (root / "cat.md").write_text("# Cat\n\nThe cat dozed off upon the rug.\n")
    (root / "feline.md").write_text("# Feline\n\nA feline sleeping on a carpet.\n")
    own = {
        "store.home": str(tmp_path / "home"),
        "semantic.refine": "never",
        "chunk.preset": "semantic:160:characters",
    }
    with open_engine(root, settings=Settings().override(own, "test")) as opened:
        opened.index()
        opened.add(
            [
                decision(1, "Tokens live for a day."),
                decision(2, "Tokens live for an hour.", supersedes="decision:1", to="decision:1"),
                decision(3, "Tokens live for a minute.", supersedes="decision:2", to="decision:9", visibility=ANN),
                decision(4, "Tokens are random.", to="decision:3"),
                decision(5, "A login gives a session token, kept in a cookie."),
            ]
        )
        yield opened


def legs_of(engine: Engine, principals: tuple[str, ...] | None = None) -> Retrievers:
    engine._notes("", None)  # the keyword leg absorbs what was written when it is next asked
    engine.opened.vectors.level_all()
    return engine.opened.at(principals)


def fetched(engine: Engine, name: str, context: int = 0, principals: tuple[str, ...] | None = None) -> FetchedDocument:
    return fetch(legs_of(engine, principals), name, context=context)


def test_a_document_comes_whole_by_its_id_or_path(engine: Engine) -> None:
    for name in ("file:docs/guide.md", "docs/guide.md", "./docs/guide.md"):
        document = fetched(engine, name)
        assert (document.text, document.is_whole) == (GUIDE, True)
        assert (document.line_start, document.line_end) == (1, 11)
        assert (document.title, document.lang, document.path) == ("Guide", "markdown", "docs/guide.md")
    assert fetch(legs_of(engine), "guide.md", below="docs").rid == "file:docs/guide.md"


def test_a_hit_is_fetched_as_the_passage_it_is(engine: Engine) -> None:
    hit = engine.search("whoever is signed in", refresh=False, limit=1).hits[0]
    document = fetched(engine, hit.id)
    assert (document.line_start, document.line_end) == (hit.line_start, hit.line_end)
    assert document.text.startswith("## Signing in") and "session token" in document.text
    assert (document.heading, document.is_whole) == (hit.heading, False)


def test_a_line_names_its_passage_and_context_widens_it(engine: Engine) -> None:
    passage = fetched(engine, "docs/guide.md:7")
    assert (passage.line_start, passage.line_end) == (5, 7)
    wider = fetched(engine, "docs/guide.md:7", 2)
    assert (wider.line_start, wider.line_end) == (3, 9)
    assert wider.text == "\n".join(GUIDE.split("\n")[2:9])
    assert fetched(engine, "docs/guide.md:7", 99).text == GUIDE
    assert fetched(engine, "docs/guide.md:7", 99).is_whole


def test_it_tells_where_in_the_text_a_passage_is(engine: Engine) -> None:
    hit = engine.search("whoever is signed in", refresh=False, limit=1).hits[0]
    own = fetched(engine, hit.id)
    assert own.passage == (0, len(own.text))
    for context in (0, 1, 2, 99):
        wider = fetched(engine, hit.id, context)
        first, last = wider.passage
        assert wider.text[first:last] == own.text
        assert GUIDE[wider.start : wider.start + len(wider.text)] == wider.text
        assert wider.start + first == own.start == GUIDE.index("## Signing in")
        body = [span for match in hit.receipt.matches if match.field == "body" for span in match.spans]
        assert {"whoever", "signed"} <= {wider.text[first + start : first + end] for start, end in body}
    whole = fetched(engine, "docs/guide.md")
    assert (whole.start, whole.passage) == (0, (0, len(GUIDE)))


def test_a_passage_that_is_repeated_is_told_apart(engine: Engine) -> None:
    said = "The very same words are said again, and they are long enough to be a passage of their own. " * 2
    text = f"# One\n\n{said}\n\n# Two\n\n{said}\n"
    (engine.root / "same.md").write_text(text)
    engine.index()
    stored = legs_of(engine).store.document("file:same.md")
    assert stored is not None and len(stored.chunks) > 2
    for chunk in stored.chunks:
        document = fetched(engine, f"{chunk.cid:016x}", 9)
        first, last = document.passage
        assert (document.start + first, document.start + last) == (chunk.start, chunk.end)


def test_a_line_between_passages_is_shown_alone(engine: Engine) -> None:
    assert fetched(engine, "docs/guide.md:4").text == ""
    assert fetched(engine, "docs/guide.md:4", 1).text == "\n".join(GUIDE.split("\n")[2:5])


def test_a_file_whose_lines_are_read_apart_keeps_its_own_numbers(engine: Engine) -> None:
    row = fetched(engine, "table.csv:2")
    assert "falcon" in row.text and row.line_start <= 2 <= row.line_end
    assert fetched(engine, "table.csv").line_end == 3


@pytest.mark.parametrize("name", ["docs/guide.md:99", "docs/guide.md:0", "table.csv:77", "decision:1:5"])
def test_a_line_that_is_not_there_is_told(engine: Engine, name: str) -> None:
    with pytest.raises(InvalidValueError, match="has no line"):
        fetched(engine, name)


def test_a_context_below_nothing_is_refused(engine: Engine) -> None:
    with pytest.raises(InvalidValueError, match="context -1"):
        fetched(engine, "cat.md", -1)


def test_links_and_successors_are_told(engine: Engine) -> None:
    document = fetched(engine, "decision:2")
    assert document.links == (LinkedResource(rid="decision:1", type="depends", title="Decision 1", note="see there"),)
    assert (document.supersedes, document.superseded_by) == (("decision:1",), ("decision:3",))
    assert document.fields == {"system": "core", "language": "english"}
    assert fetched(engine, "decision:3").supersedes == ("decision:2", "decision:1")
    assert fetched(engine, "decision:3").links == ()


@pytest.mark.parametrize("written", ["see there", "{}", "[1, {}]", '[{"to": 7}]', "null"])
def test_links_that_are_none_do_no_harm(engine: Engine, written: str) -> None:
    engine.add([(Resource(rid="note:1", type="note", fields={"links": written}), "text")])
    assert fetched(engine, "note:1").links == ()


def test_json_has_the_schema_first(engine: Engine) -> None:
    document = json.loads(json.dumps(fetched(engine, "decision:2").to_dict()))
    assert next(iter(document)) == "schema"
    assert document["links"][0]["rid"] == "decision:1"


def error_of(engine: Engine, ask: str, name: str, principals: tuple[str, ...]) -> FindlingError:
    legs = legs_of(engine, principals)
    with pytest.raises(FindlingError) as refused:
        fetch(legs, name) if ask == "fetch" else similar(legs, name)
    return refused.value


@pytest.mark.parametrize("ask", ["fetch", "similar"])
def test_what_is_hidden_is_as_what_was_never_there(engine: Engine, ask: str) -> None:
    hidden, absent = "decision:3", "decision:7"
    for principals in (("user:bob",), ()):
        one, other = (error_of(engine, ask, name, principals) for name in (hidden, absent))
        assert type(one) is type(other) is NotFoundError
        assert one.message.replace(hidden, absent) == other.message and one.hint == other.hint
    seen = engine.search("minute", refresh=False, limit=1).hits[0]
    assert seen.rid == hidden
    assert error_of(engine, ask, seen.id, ("user:bob",)).message == f"there is no {seen.id} in the index"
    assert fetch(legs_of(engine, ANN), hidden).text == "Tokens live for a minute."


def test_nobody_learns_of_links_and_successors_that_are_hidden(engine: Engine) -> None:
    bob = ("user:bob",)
    assert fetched(engine, "decision:2", principals=bob).superseded_by == ()
    assert fetched(engine, "decision:4", principals=bob).links == ()
    assert fetched(engine, "decision:4", principals=ANN).links[0].rid == "decision:3"
    assert "decision:3" not in {hit.rid for hit in similar(legs_of(engine, bob), "decision:1")}
    assert "decision:3" in {hit.rid for hit in similar(legs_of(engine, ANN), "decision:1")}
    assert not [one for one in suggest(legs_of(engine, bob), "tokens minu") if one.kind == "word"]
    assert [one.text for one in suggest(legs_of(engine, ANN), "tokens minu")] == ["tokens minute"]


def test_hidden_code_relates_nothing_and_takes_no_weight_from_what_is_seen(engine: Engine) -> None:
    def code(rid: str, text: str, visibility: tuple[str, ...] = EVERYONE) -> tuple[Resource, str]:
        return Resource(rid=rid, type="note", lang="python", visibility=visibility), text

    def seen_by(principals: tuple[str, ...]) -> dict[str, tuple[float, str]]:
        answer = similar(legs_of(engine, principals), "note:asked")
        return {hit.rid: (hit.score, part.why) for hit in answer for part in hit.receipt.further}

    table = "def load_table():\n    return 2\n"
    engine.add([code("note:asked", "def start():\n    return load_table()\n"), code("note:table", table)])
    alone = seen_by(("user:bob",))
    assert alone["note:table"][1] == "uses load_table, defined there"
    engine.add([code("note:secret", f"# mine\n{table}", ANN)])
    assert seen_by(("user:bob",)) == alone
    assert seen_by(ANN).keys() == {"note:table", "note:secret"}


def test_what_means_the_same_is_similar_without_a_word_in_common(engine: Engine) -> None:
    answer = similar(legs_of(engine), "cat.md", 3)
    assert answer.strategy == "semantic" and answer.meaning["speed"] == "instant"
    best = answer.hits[0]
    assert best.path == "feline.md"
    assert best.score == round(best.receipt.recomputed(), 4) > round(best.receipt.vector_score, 4) > 0
    assert "cat.md" not in {hit.path for hit in answer}


def test_a_passage_has_others_like_it_than_its_document(engine: Engine) -> None:
    answer = similar(legs_of(engine), "docs/guide.md:7", 2)
    assert answer.hits[0].rid == "decision:5"
    assert "docs/guide.md" not in {hit.path for hit in answer}


def test_what_means_the_same_in_other_languages_is_similar(engine: Engine) -> None:
    engine.add([(Resource(rid="note:cat", type="note"), "猫在地毯上睡觉。")])
    answer = similar(legs_of(engine), "note:cat", 3)
    assert answer.strategy == "semantic" and answer.meaning["speed"] == "instant"
    assert answer.hits[0].path == "feline.md"
