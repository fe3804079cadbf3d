"""Types are data: built in, registered, or brought by an installed package."""

from __future__ import annotations

from pathlib import Path

import pytest

from findling.domain.errors import InvalidValueError, NotFoundError
from findling.domain.resources import FieldRule, ResourceType
from findling.pipelines.content import resource_types as registry
from findling.pipelines.content.resource_types import register, resource_type, types, weights_of


@pytest.fixture(autouse=True)
def _fresh_registry(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "_registered", {})


def test_the_types_that_are_always_there() -> None:
    assert set(types()) == {
        *("file", "chat", "memory", "row", "decision", "directive", "tool", "knowledge"),
        *("policy", "document", "research", "task", "qa_check"),
    }
    assert resource_type("decision").immutable
    assert not resource_type("knowledge").immutable


def test_a_name_that_no_type_has_gets_the_nearest_one() -> None:
    with pytest.raises(NotFoundError, match="no type of resources is called 'desicion'") as caught:
        resource_type("desicion")
    assert caught.value.hint.startswith("decision instead?")


def test_a_registered_type_is_known_and_may_be_replaced() -> None:
    register(ResourceType(name="runbook"))
    again = register(ResourceType(name="runbook", half_life_days=5))
    assert resource_type("runbook") is again
    assert types()["runbook"] is again


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (ResourceType(name="Run Book"), "'Run Book' is no name of a type"),
        (ResourceType(name="decision"), "decision is always there"),
        (ResourceType(name="path"), "path is always there"),
        (ResourceType(name="a", fields={"x": FieldRule(place="header")}), "x has the place 'header'"),
        (ResourceType(name="a", fields={"tags": FieldRule()}), "tags has a meaning of its own"),
        (ResourceType(name="a", fields={"a b": FieldRule()}), "'a b' is no name of a field"),
        (ResourceType(name="a", fields={"title": FieldRule()}), "the place of title is always title"),
        (
            ResourceType(name="a", fields={"x": FieldRule(place="title"), "y": FieldRule(place="title")}),
            "x and y cannot both be the title",
        ),
        (ResourceType(name="a", fields={"x": FieldRule(heading="a\nb")}), "the heading of x must be one line"),
        (ResourceType(name="a", weights={"rationale": 2.0}), "no text field is called 'rationale'"),
        (ResourceType(name="a", weights={"title": -1.0}), "the weight of title must be a number"),
        (ResourceType(name="a", half_life_days=float("nan")), "half_life_days must be a number"),
    ],
)
def test_a_type_that_cannot_be_is_refused(wrong: ResourceType, message: str) -> None:
    with pytest.raises(InvalidValueError, match=message):
        register(wrong)
    assert wrong not in types().values()


def test_weights_hold_where_all_types_agree() -> None:
    assert weights_of(["tool", "directive", "tool"])["name"] == 3.0
    assert weights_of(["tool", "decision"]) == {}
    assert weights_of(["tool", "gone"]) == {}
    assert weights_of([]) == {}
    own = {"runbook": ResourceType(name="runbook", weights={"title": 9.0})}
    assert weights_of(["runbook"], own) == {"title": 9.0}


def install(folder: Path, module: str, entry: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Lay out what an installer would of a package that brings types."""
    (folder / "brought_types.py").write_text(module)
    info = folder / "brought-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: brought\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[findling.types]\n{entry}\n")
    monkeypatch.syspath_prepend(str(folder))
    monkeypatch.delitem(__import__("sys").modules, "brought_types", raising=False)


MODULE = """
from findling.domain.resources import FieldRule, ResourceType
PLAYBOOK = ResourceType(name="playbook", fields={"play": FieldRule(required=True)})
"""


def test_a_plugin_is_loaded_when_it_is_asked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(tmp_path, MODULE, "playbook = brought_types:PLAYBOOK", monkeypatch)
    resource_type("decision")
    assert "playbook" not in types()
    with pytest.raises(NotFoundError) as caught:
        resource_type("playbok")
    assert caught.value.hint.startswith("playbook instead?")
    assert resource_type("playbook").fields["play"].required
    assert "playbook" in types()


@pytest.mark.parametrize(
    ("module", "entry", "message"),
    [
        ("raise ValueError('no luck')", "playbook = brought_types:PLAYBOOK", "cannot be loaded: no luck"),
        (MODULE, "playbook = brought_types:NOTHING", "cannot be loaded"),
        (MODULE, "playbooks = brought_types:PLAYBOOK", "is no ResourceType of that name"),
        (MODULE.replace('"play"', '"tags"'), "playbook = brought_types:PLAYBOOK", "tags has a meaning of its own"),
    ],
)
def test_a_plugin_that_does_not_work_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, module: str, entry: str, message: str
) -> None:
    install(tmp_path, module, entry, monkeypatch)
    with pytest.raises(InvalidValueError, match=message) as caught:
        resource_type(entry.partition(" ")[0])
    assert "brought_types:" in caught.value.message
