"""Types of settings files."""

from __future__ import annotations

import tomllib

import pytest

from findling.domain.errors import InvalidValueError, UnknownSettingError
from findling.domain.resources import FieldRule, ResourceType
from findling.service.settings.type_plugins import read_types

RUNBOOK = """
[types.runbook]
half_life_days = 180
immutable = true
weights = { title = 3.0, tags = 1.5 }

[types.runbook.fields]
service = "tags"
steps = { heading = "Steps", many = true, required = true }

[types.note]
lang = "text"
"""


def read(text: str) -> dict[str, ResourceType]:
    return read_types(tomllib.loads(text).get("types"), "user file x.toml")


def test_types_are_read() -> None:
    assert read(RUNBOOK) == {
        "runbook": ResourceType(
            name="runbook",
            fields={
                "service": FieldRule(place="tags"),
                "steps": FieldRule(heading="Steps", many=True, required=True),
            },
            weights={"title": 3.0, "tags": 1.5},
            half_life_days=180,
            immutable=True,
        ),
        "note": ResourceType(name="note", lang="text"),
    }


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("types = 3", "user file x.toml: types must be tables, not 3"),
        ("[types]\nnote = 3", "user file x.toml: types.note must be a table, not 3"),
        ("[types.note]\nweigths = {}", "user file x.toml: types.note has no 'weigths'"),
        ("[types.note]\nimmutable = 1", "types.note.immutable must be true or false, not 1"),
        ("[types.note]\nhalf_life_days = true", "types.note.half_life_days must be a number, not True"),
        ("[types.note.fields]\nx = { palce = 'tags' }", "types.note.fields.x has no 'palce'"),
        ("[types.note.fields]\nx = 'header'", "user file x.toml: type note: x has the place 'header'"),
        ("[types.note]\nweights = { title = 'much' }", "the weight of title must be a number"),
        ("[types.decision]\nlang = 'text'", "user file x.toml: the type decision is always there"),
    ],
)
def test_what_is_no_type_is_named_with_its_file(text: str, message: str) -> None:
    with pytest.raises((InvalidValueError, UnknownSettingError)) as caught:
        read(text)
    assert message in caught.value.message
    assert caught.value.hint
