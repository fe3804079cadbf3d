"""An item becomes a resource and a text in which every field can be found; what cannot be is refused by its key."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from findling.domain.errors import FindlingError, InvalidValueError, UnknownSettingError
from findling.domain.resources import FieldRule, ResourceType
from findling.pipelines.content.items import Link, compose, links_of
from findling.pipelines.content.resource_types import resource_type

DECISION = resource_type("decision")
WHOLE: dict[str, Any] = {
    "id": "3f2a91c0",
    "type": "decision",
    "title": "Keep jobs in PostgreSQL",
    "body": "Jobs live in one table.",
    "rationale": "There is one database to back up.",
    "alternatives": ["Redis", {"option": "RabbitMQ", "reason": "too much to run"}],
    "confidence": "high",
    "tags": ["queue", "storage"],
    "author": "Ann",
    "created_at": "2026-04-08T08:38:00Z",
    "visibility": ["group:backend"],
    "system": ["billing", "mail"],
    "context": {"team": {"lead": "Bo", "size": 4}, "risks": ["lock-in", "growth"], "empty": None},
    "links": [{"to": "policy:retention", "type": "depends", "strength": 8, "note": "rows are kept for 30 days"}],
    "supersedes": "1a2b3c4d",
}


def test_every_field_has_its_place() -> None:
    resource, text = compose(DECISION, WHOLE)
    assert (resource.rid, resource.type, resource.title) == ("decision:3f2a91c0", "decision", WHOLE["title"])
    assert (resource.tags, resource.author, resource.lang) == (("queue", "storage"), "Ann", "markdown")
    assert resource.visibility == ("group:backend",)
    assert resource.created_at == datetime(2026, 4, 8, 8, 38, tzinfo=UTC).timestamp()
    assert resource.fields["system"] == "billing, mail"
    assert resource.fields["supersedes"] == "decision:1a2b3c4d"
    assert json.loads(resource.fields["context"]) == WHOLE["context"]
    assert links_of(resource) == [
        Link("policy:retention", "depends", 8, "rows are kept for 30 days"),
        Link("decision:1a2b3c4d", "supersedes", 10),
    ]
    assert text == (
        "Jobs live in one table.\n\n"
        "## Rationale\n\nThere is one database to back up.\n\n"
        "## Alternatives\n\n- Redis\n- option: RabbitMQ; reason: too much to run\n\n"
        "## Confidence\n\nhigh\n\n"
        "## Context\n\nteam.lead: Bo\nteam.size: 4\nrisks: lock-in, growth\n\n"
        "## System\n\nbilling, mail\n\n"
        "## Links\n\n- depends policy:retention: rows are kept for 30 days"
    )


def test_an_item_of_a_title_alone_has_that_for_its_text() -> None:
    assert compose(DECISION, {"title": "Ship on Fridays"})[1] == "Ship on Fridays"
    assert compose(DECISION, {"title": "Ship on Fridays", "lang": "text"})[1] == "Ship on Fridays"


def test_a_body_in_another_language_stays_as_it_is() -> None:
    resource, text = compose(resource_type("tool"), {"name": "rotate", "lang": "python", "body": "print(1)"})
    assert (resource.lang, resource.title, text) == ("python", "rotate", "print(1)")


def test_an_id_that_is_missing_follows_from_the_content_and_its_readers_alone() -> None:
    item = {"title": "Ship on Fridays", "tags": ["release"]}
    rid = compose(DECISION, item)[0].rid
    assert len(rid) == len("decision:") + 32
    assert rid == compose(DECISION, {**item, "type": "decision", "visibility": None, "updated_at": 5})[0].rid
    for_ann = compose(DECISION, {**item, "visibility": ["user:ann", "user:bob"]})[0].rid
    assert for_ann == compose(DECISION, {**item, "visibility": ["user:bob", "user:ann"]})[0].rid
    assert len({rid, for_ann, compose(DECISION, {**item, "visibility": []})[0].rid}) == 3
    assert rid != compose(DECISION, {**item, "tags": ["releases"]})[0].rid


def test_places_of_a_type_of_ones_own() -> None:
    runbook = ResourceType(
        name="runbook",
        fields={
            "headline": FieldRule(place="title"),
            "call_sign": FieldRule(place="name"),
            "summary": FieldRule(place="description"),
            "service": FieldRule(place="tags", many=True),
            "owner": FieldRule(place="author"),
            "pager": FieldRule(place="kept"),
            "first_steps": FieldRule(many=True),
        },
    )
    item = {
        "headline": "The queue stands still",
        "call_sign": "QUEUE-1",
        "summary": "What to do first",
        "service": ["mail", "jobs"],
        "owner": "Bo",
        "pager": 4711,
        "first_steps": ["Look at the\nlocks", "Restart"],
    }
    resource, text = compose(runbook, item)
    assert (resource.title, resource.tags, resource.author) == ("The queue stands still", ("mail", "jobs"), "Bo")
    assert dict(resource.fields) == {
        "name": "QUEUE-1",
        "description": "What to do first",
        "service": "mail, jobs",
        "owner": "Bo",
        "pager": "4711",
    }
    assert text == "## First steps\n\n- Look at the\n  locks\n- Restart"


def test_without_a_title_the_name_or_the_first_line_is_one() -> None:
    tool = resource_type("tool")
    assert compose(tool, {"name": "rotate", "body": "Rotates."})[0].title == "rotate"
    assert compose(tool, {"body": "# Rotate\n\nmore"})[0].title == "Rotate"
    long = compose(tool, {"body": "word " * 40})[0].title
    assert long.endswith("word…") and len(long) <= 80


@pytest.mark.parametrize(
    ("change", "message", "hint"),
    [
        ({"titel": "x"}, "items of type decision have no 'titel'", "title instead?"),
        ({"title": "  "}, "must have 'title'", 'add "title"'),
        ({"title": ["a"]}, "title must be one value", "one text"),
        ({"visibility": "user:ann"}, "visibility must be a list", "user:ann"),
        ({"visibility": ["ann"]}, "'ann' is no principal", "user:NAME"),
        ({"created_at": "yesterday"}, "created_at must be a time, not 'yesterday'", "2026-04-08"),
        ({"created_at": True}, "created_at must be a time", "1970"),
        ({"updated_at": 1.7e12}, "updated_at must be a time", "not milliseconds"),
        ({"context": "text"}, "context must be an object", "deadline"),
        ({"links": {"to": "a:b"}}, "links must be a list", "depends"),
        ({"links": [{"to": "a:b", "typ": "depends"}]}, "link 1 has no 'typ'", "type instead?"),
        ({"links": [{"to": "a:b"}]}, "link 1 must say what it leads to", '"to" and "type"'),
        ({"links": [{"to": "a:b", "type": "x", "strength": 11}]}, "link 1: strength must be 1 to 10", "5"),
        ({"id": "two words"}, "'two words' is no id", "without spaces"),
        ({"path": "/etc/passwd"}, "the path '/etc/passwd' leads out of the workspace", "from its root"),
        ({"path": "docs/../../plan"}, "leads out of the workspace", "from its root"),
        ({"path": "C:\\plans"}, "leads out of the workspace", "from its root"),
        ({"system": ["billing, search"]}, "the name of a system cannot have a comma", "a list"),
        ({"body": "\ud800"}, "body holds characters that are not valid Unicode", "leave"),
        ({"body": {1: {2: object()}}}, "body must be a text", "string"),
    ],
)
def test_what_cannot_be_is_refused_by_its_key(change: dict[str, Any], message: str, hint: str) -> None:
    with pytest.raises((InvalidValueError, UnknownSettingError)) as caught:
        compose(DECISION, {**WHOLE, **change})
    assert message in caught.value.message
    assert hint in caught.value.hint


def test_an_object_that_is_nested_without_end_is_refused() -> None:
    deep: dict[str, Any] = {}
    for _ in range(30):
        deep = {"in": deep, "x": 1}
    with pytest.raises(InvalidValueError, match="context is nested deeper"):
        compose(DECISION, {**WHOLE, "context": deep})


def test_a_required_field_of_a_type_is_asked_for() -> None:
    with pytest.raises(InvalidValueError, match="items of type research must have 'source_url'"):
        compose(resource_type("research"), {"title": "Queues compared"})


@pytest.mark.parametrize(
    ("name", "hint"),
    [("file", "findling index"), ("chat", "findling chats import"), ("memory", "findling remember")],
)
def test_what_is_made_elsewhere_is_no_item(name: str, hint: str) -> None:
    with pytest.raises(InvalidValueError) as caught:
        compose(resource_type(name), {"body": "x"})
    assert caught.value.hint == hint


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=8,
)


@given(st.dictionaries(st.sampled_from([*WHOLE, "path", "lang", "updated_at", "titel"]), _JSON, max_size=6))
def test_any_json_becomes_an_item_or_an_error_on_purpose(item: dict[str, Any]) -> None:
    try:
        resource, text = compose(DECISION, item)
    except FindlingError as error:
        assert error.hint
        return
    assert resource.title and text.strip()
    (resource.title + text + "".join(resource.fields.values())).encode()
