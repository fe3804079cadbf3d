"""Scopes of a question: choices of project files, their precedence, and their report in the answer."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from findling.domain.errors import InvalidValueError, PathNotFoundError, UntrustedSettingError
from findling.domain.plans import Plan
from findling.domain.queries import Field, Filters, SearchRequest
from findling.domain.resources import Resource
from findling.service.engine.engine import open_engine
from findling.service.settings.settings import Settings, load_settings
from findling.service.workspace.scope import Scoped, placed, prepared, request_with


class Place:
    """A project with a file of its own, the user's private notes, and the home of the workspaces."""

    def __init__(self, folder: Path) -> None:
        self.project, self.notes, self.home = folder / "mono" / "project", folder / "notes", folder / "home"
        for name, text in (("docs/a.md", "a tapir in the docs"), ("src/b.md", "a tapir in the source")):
            (self.project / name).parent.mkdir(parents=True, exist_ok=True)
            (self.project / name).write_text(text)
        (self.project / ".git").mkdir()
        self.notes.mkdir()
        (self.notes / "secret.md").write_text("a private tapir")
        self.file = self.project / ".findling.toml"

    def load(self, context: str = "", **environ: str) -> Settings:
        self.file.write_text(f"[context]\n{context}\n")
        own = {"FINDLING_CONFIG": str(self.home / "none.toml"), "FINDLING_HOME": str(self.home)}
        settings = load_settings(self.project, environ={**own, **environ})
        return settings.override({"search.mode": "keyword", "semantic.refine": "never"}, "test")

    def make_workspace(self, name: str, root: Path) -> None:
        with open_engine(root, workspace=name, settings=self.load()) as engine:
            engine.index()


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    made = Place(tmp_path)
    monkeypatch.chdir(made.project)
    return made


def test_a_project_file_does_not_open_a_workspace_that_does_not_hold_the_project(place: Place) -> None:
    place.make_workspace("notes", place.notes)
    for path in (None, place.project, place.project / "docs"):
        with pytest.raises(UntrustedSettingError) as caught:
            open_engine(path, settings=place.load('workspace = "notes"'))
        assert caught.value.message == f"{place.file} names the workspace notes, which does not hold {place.project}"
        assert caught.value.hint == "--no-context, or --workspace notes if you want that one"


def test_a_project_file_does_not_make_a_workspace(place: Place) -> None:
    with pytest.raises(UntrustedSettingError, match="names the workspace fresh, which does not hold"):
        open_engine(settings=place.load('workspace = "fresh"'))
    assert not (place.home / "fresh").exists()


def test_a_project_file_may_name_a_workspace_that_holds_the_project(place: Place) -> None:
    place.make_workspace("mono", place.project.parent)
    with open_engine(settings=place.load('workspace = "mono"\npath = "docs"')) as engine:
        answer = engine.search("tapir")
    assert (engine.home.name, engine.scope) == ("mono", "project/docs")
    assert [hit.path for hit in answer] == ["project/docs/a.md"]
    assert answer.scope == {"workspace": "mono", "path": "docs", "from": f"project file {place.file}"}


def test_the_user_may_choose_any_workspace_for_the_context(place: Place) -> None:
    place.make_workspace("notes", place.notes)
    own = place.load(FINDLING_CONTEXT_WORKSPACE="notes")
    with open_engine(".", settings=own) as engine:
        answer = engine.search("tapir")
    assert [hit.path for hit in answer] == ["secret.md"]
    assert answer.scope == {"workspace": "notes", "from": "env FINDLING_CONTEXT_WORKSPACE"}


@pytest.mark.parametrize("variable", ["FINDLING_WORKSPACE", "FINDLING_CONTEXT_WORKSPACE"])
def test_the_path_of_a_project_says_nothing_about_a_workspace_that_was_named(place: Place, variable: str) -> None:
    place.make_workspace("notes", place.notes)
    with open_engine(settings=place.load('path = "docs"', **{variable: "notes"})) as engine:
        answer = engine.search("tapir")
    assert [hit.path for hit in answer] == ["secret.md"]
    assert "path" not in answer.scope


def test_the_workspace_of_the_context_yields_to_one_that_was_named(place: Place) -> None:
    place.make_workspace("notes", place.notes)
    with open_engine(workspace="notes", settings=place.load('workspace = "other"\npath = "docs"')) as engine:
        answer = engine.search("tapir")
    assert ([hit.path for hit in answer], answer.scope) == (["secret.md"], {})


def test_a_path_that_was_named_wins_over_the_path_of_the_context_and_is_not_taken_for_it(place: Place) -> None:
    settings = place.load('path = "docs"')
    with open_engine(place.project, settings=settings) as engine:
        answer = engine.search("tapir")
    assert ({hit.path for hit in answer}, answer.scope) == ({"docs/a.md", "src/b.md"}, {})
    with open_engine(settings=settings) as engine:
        answer = engine.search("tapir")
    assert [hit.path for hit in answer] == ["docs/a.md"]
    assert answer.scope == {"path": "docs", "from": f"project file {place.file}"}


def test_the_path_of_a_project_file_is_one_of_its_project(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(place.project / "src")
    assert placed(place.load('path = "docs"'))[1] == str(place.project / "docs")
    with pytest.raises(UntrustedSettingError, match="lies outside"):
        placed(place.load('path = "../.."'))
    with pytest.raises(PathNotFoundError, match="names the path nowhere, which is not there"):
        placed(place.load('path = "nowhere"'))
    with pytest.raises(InvalidValueError):
        place.load('workspace = "../notes"')


def scoped(place: Place, context: str, plan: Plan | None = None, **options: Any) -> Scoped:
    return prepared(request_with("tapir", options), place.load(context), "docs", lambda _: plan or Plan())


def test_types_come_from_the_filters_then_from_the_profile_then_from_the_context(place: Place) -> None:
    context = 'types = ["note"]\nsystem = ["auth"]'
    origin = f"project file {place.file}"
    found = scoped(place, context)
    assert found.request.filters.type == ("note",)
    assert found.context == {"system": ("auth",), "types": ("note",), "from": origin}
    of_profile = scoped(place, context, Plan(types=("decision",)))
    assert of_profile.request.filters.type == ()
    assert of_profile.context == {"system": ("auth",), "from": origin}
    explicit = scoped(place, context, filters=Filters(type=("memory",)))
    assert explicit.request.filters.type == ("memory",)
    assert explicit.context == {"system": ("auth",), "from": origin}


def test_a_profile_answers_with_its_types_under_a_context_of_others(place: Place) -> None:
    with open_engine(place.project, settings=place.load('types = ["memory"]')) as engine:
        engine.add(
            (Resource(rid=f"r:{kind}", type=kind, title=kind), f"a tapir as {kind}") for kind in ("memory", "decision")
        )
        assert [hit.rid for hit in engine.search("tapir")] == ["r:memory"]
        answer = engine.search("tapir", profile="decisions")
    assert ([hit.rid for hit in answer], answer.scope) == (["r:decision"], {})


def test_a_context_of_several_origins_names_them_all(place: Place) -> None:
    settings = place.load('system = ["auth"]', FINDLING_CONTEXT_TYPES="note")
    context = prepared(SearchRequest(query="tapir"), settings, "", lambda _: Plan()).context
    assert context["from"] == f"project file {place.file} and env FINDLING_CONTEXT_TYPES"


def test_out_of_context_nothing_of_it_is_applied_or_told(place: Place) -> None:
    found = scoped(place, 'types = ["note"]\nsystem = ["auth"]', in_context=False)
    assert (found.filters, found.context) == (Filters(), {})


def test_the_filters_of_a_plan_are_those_before_the_part_that_is_asked(place: Place) -> None:
    found = scoped(place, 'system = ["auth"]', filters=Filters(path=("api",)))
    assert found.filters == Filters(path=("api",), where=Field("system", ("auth",)))
    assert (found.request.filters.path, found.request.within) == (("docs/api",), "docs")
    again = SearchRequest(query="tapir", filters=found.filters, in_context=False, within="docs")
    elsewhere = prepared(again, place.load(), "src", lambda _: Plan())
    assert elsewhere.request.filters == found.request.filters


def test_an_engine_carries_out_the_plan_of_its_own_answer(place: Place) -> None:
    from findling.pipelines.retrieve.plan_files import read_filters, read_plan

    (place.project / "docs" / "docs").mkdir()
    (place.project / "docs" / "docs" / "c.md").write_text("a tapir below")
    with open_engine(place.project, settings=place.load()) as engine:
        engine.index()
    with open_engine(place.project / "docs", settings=place.load()) as engine:
        first = engine.search("tapir", filters=Filters(path=("docs",)))
        plan = first.plan
        again = engine.search(plan["query"], filters=read_filters(plan["filters"]), plan=read_plan(plan["plan"]))
    assert [hit.path for hit in first] == ["docs/docs/c.md"]
    assert (again.hits, plan["within"]) == (first.hits, "docs")
