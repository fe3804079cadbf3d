"""The retriever component of Haystack: runs, pipelines, filters, and how it is written down."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from haystack import Document, Pipeline
from haystack.components.builders import PromptBuilder
from haystack.utils.filters import document_matches_filter

import findling
from findling.domain.errors import InvalidValueError, PathNotFoundError, UsageError
from findling.domain.queries import Filters
from findling.integrations.haystack import FindlingRetriever

Condition = dict[str, Any]


def paths(documents: list[Document]) -> list[str]:
    return [document.meta["path"] for document in documents]


def test_a_document_is_a_passage_with_its_score(folder: Path) -> None:
    with FindlingRetriever(path=folder, top_k=1) as retriever:
        (document,) = retriever.run('"last for a week"')["documents"]
    assert document.content == (folder / "docs" / "plan.md").read_text()
    assert document.id == document.meta["id"]
    assert document.score == document.meta["score"]
    assert document.meta["path"] == "docs/plan.md"
    assert Document.from_dict(document.to_dict()) == document


def test_a_run_may_say_otherwise(folder: Path) -> None:
    retriever = FindlingRetriever(path=folder, top_k=1, filters={"ext": "md"})
    assert paths(retriever.run("login")["documents"]) == ["docs/guide.md"]
    assert len(retriever.run("token", top_k=2)["documents"]) == 2
    assert paths(retriever.run("login", filters={"ext": "py"})["documents"]) == ["src/auth.py"]
    assert paths(asyncio.run(retriever.run_async("login", {"ext": "py"}))["documents"]) == ["src/auth.py"]
    assert retriever.run("token", top_k=0)["documents"] == []


def test_it_feeds_a_pipeline_which_closes_it(folder: Path) -> None:
    pipeline = Pipeline()
    pipeline.add_component("retriever", FindlingRetriever(path=folder, filters={"ext": "py"}))
    template = "{% for document in documents %}{{ document.content }}{% endfor %} {{ question }}"
    pipeline.add_component("prompt", PromptBuilder(template=template, required_variables="*"))
    pipeline.connect("retriever.documents", "prompt.documents")
    answer = pipeline.run({"retriever": {"query": "login"}, "prompt": {"question": "Who makes a session?"}})
    assert "create_session(user)" in answer["prompt"]["prompt"]
    pipeline.close()


@pytest.mark.parametrize(
    "filters",
    [
        None,
        {"type": "file", "where": "ext:md OR ext:py"},
        {"ext": ("md", "py"), "after": "2001-01-31"},
        {"operator": "NOT", "conditions": [{"field": "meta.ext", "operator": "in", "value": ["py", "ts"]}]},
        Filters(ext=("md",), after=978307200.0),
    ],
)
def test_a_pipeline_is_written_down_and_read_again(filters: Any, folder: Path) -> None:
    pipeline = Pipeline()
    made = FindlingRetriever(path=folder, top_k=3, filters=filters, profile="keyword", min_score=0.01, principals=None)
    pipeline.add_component("retriever", made)
    text = pipeline.dumps()
    again = Pipeline.loads(text, allowed_modules=["findling.*"])
    assert again.dumps() == text
    question = {"retriever": {"query": "token"}}
    assert again.run(question) == pipeline.run(question)
    assert len(again.run(question)["retriever"]["documents"]) >= 2
    again.close()
    pipeline.close()


def test_what_is_written_down_is_what_holds(folder: Path) -> None:
    principals, filters = ["user:ann"], {"ext": ["md"]}
    retriever = FindlingRetriever(path=folder, principals=principals, filters=filters)
    principals.append("user:bob")
    filters["ext"].append("py")
    written = retriever.to_dict()["init_parameters"]
    assert (written["principals"], written["filters"]) == (["user:ann"], {"ext": ["md"]})
    written["principals"].append("user:bob")
    assert retriever.to_dict()["init_parameters"]["principals"] == ["user:ann"]


@pytest.mark.parametrize("principals", [(), "user:ann"])
def test_who_asks_stays_what_it_was(principals: Any, folder: Path) -> None:
    with findling.open(folder) as engine:
        engine.index()
        engine.permissions.share("path:docs/plan.md", "user:ann")
    made = FindlingRetriever(path=folder, principals=principals)
    again = FindlingRetriever.from_dict(made.to_dict())
    expected = ["docs/plan.md"] if principals else []
    assert paths(made.run("token")["documents"]) == paths(again.run("token")["documents"]) == expected
    with pytest.raises(InvalidValueError, match="principals"):
        made.run("token", filters={"principals": ["user:bob"]})


def test_what_asks_an_open_engine_cannot_be_written_down(folder: Path) -> None:
    with findling.open(folder) as engine:
        retriever = FindlingRetriever(engine=engine)
        assert retriever.run("token")["documents"]
        with pytest.raises(UsageError, match="open engine"):
            retriever.to_dict()


def is_(field: str, operator: str, value: Any) -> Condition:
    return {"field": f"meta.{field}", "operator": operator, "value": value}


def grouped(operator: str, *conditions: Condition) -> Condition:
    return {"operator": operator, "conditions": list(conditions)}


NEW = 1_700_000_000  # when docs/plan.md was written
PLAN, AUTH = is_("path", "==", "docs/plan.md"), is_("path", "==", "src/auth.py")


@pytest.mark.parametrize(
    "condition",
    [
        PLAN,
        is_("path", "!=", "docs/plan.md"),
        is_("path", "==", "plan.md"),
        is_("path", "==", "docs/pla"),
        is_("path", "in", ["docs/plan.md", "src/auth.py"]),
        is_("path", "not in", ["docs/plan.md", "src/auth.py"]),
        is_("type", "==", "file"),
        is_("type", "!=", "file"),
        is_("rid", "==", "file:src/auth.py"),
        is_("author", "==", "ada"),
        is_("at", ">", NEW),
        is_("at", ">=", NEW),
        is_("at", "<", NEW),
        is_("at", "<=", NEW),
        grouped("AND", is_("type", "==", "file"), is_("at", "<=", NEW)),
        grouped("AND", PLAN, AUTH),
        grouped("OR", PLAN, AUTH),
        grouped("NOT", PLAN),
        grouped("NOT", PLAN, AUTH),
        grouped("AND", grouped("OR", PLAN, AUTH), grouped("NOT", AUTH)),
    ],
)
def test_filters_mean_what_they_mean_to_haystack(condition: Condition, indexed: findling.Engine) -> None:
    retriever = FindlingRetriever(engine=indexed, top_k=20)
    everything = retriever.run("token")["documents"]
    assert len(set(paths(everything))) == 4
    expected = {one.meta["path"] for one in everything if document_matches_filter(condition, one)}
    assert set(paths(retriever.run("token", filters=condition)["documents"])) == expected


def test_filters_know_more_than_what_a_document_carries(indexed: findling.Engine) -> None:
    def ask(condition: Condition) -> set[str]:
        return set(paths(FindlingRetriever(engine=indexed).run("token", filters=condition)["documents"]))

    assert ask(is_("ext", "in", ["py", "ts"])) == {"src/auth.py", "src/shop.ts"}
    assert ask(is_("lang", "==", "python")) == {"src/auth.py"}
    assert ask(is_("path", "==", "docs")) == {"docs/guide.md", "docs/plan.md"}
    assert ask(is_("at", ">", "2001-01-31T12:00:00+00:00")) == ask(is_("type", "==", "file"))


@pytest.mark.parametrize("profile", ["keyword", "hybrid"])
def test_a_path_is_one_below_the_root(profile: str, folder: Path) -> None:
    for name in ("docs/a.md", "x/docs/b.md", "docs2/c.md", "docs.md"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("A zebra has stripes.\n")

    def ask(*conditions: Condition) -> list[str]:
        found = retriever.run("zebra stripes", filters=grouped("AND", is_("ext", "==", "md"), *conditions))
        return sorted({path for path in paths(found["documents"]) if path not in ("docs/guide.md", "docs/plan.md")})

    everything = ["docs.md", "docs/a.md", "docs2/c.md", "x/docs/b.md"]
    with FindlingRetriever(path=folder, top_k=20, profile=profile) as retriever:
        for written in ("docs", "docs/", "./docs"):
            assert ask(is_("path", "==", written)) == ["docs/a.md"]
        assert ask(is_("path", "!=", "docs")) == ["docs.md", "docs2/c.md", "x/docs/b.md"]
        assert ask(is_("path", "in", ["docs2", "x/docs/b.md"])) == ["docs2/c.md", "x/docs/b.md"]
        assert ask(is_("path", "==", "")) == ask(is_("path", "in", ["docs", "."])) == everything
        assert ask(is_("path", "!=", "")) == []


NESTED: Condition = PLAN
for _ in range(3000):
    NESTED = grouped("AND", NESTED)


@pytest.mark.parametrize(
    "condition, named",
    [
        (is_("colour", "==", "red"), "colour"),
        (is_("ext", ">", "py"), ">"),
        (is_("ext", "in", "py"), "ext"),
        (is_("ext", "in", []), "ext"),
        (is_("ext", "==", None), "ext"),
        (is_("at", "==", NEW), "=="),
        (is_("at", ">", "soon"), "soon"),
        (grouped("XOR", PLAN), "XOR"),
        ({"operator": "AND"}, "AND"),
        ({"operator": "AND", "conditions": ["x"]}, "'x' is no condition"),
        ({"operator": "AND", "conditions": {}}, "is no condition"),
        ({"operator": [], "conditions": []}, "is no condition"),
        ({"operator": "AND", "conditions": [], "negated": True}, "negated"),
        ({**PLAN, "boost": 2}, "boost"),
        (NESTED, "50 deep"),
        (is_("at", ">", float("nan")), "nan"),
        (is_("at", "<=", float("inf")), "inf"),
        (is_("at", ">=", float("-inf")), "inf"),
        (is_("at", "<", 10**400), "at must be"),
        (is_("at", "<", True), "True"),
        (is_("path", "==", "../secret"), "does not lie in the searched folder"),
        (is_("path", "in", ["docs", "/etc"]), "does not lie in the searched folder"),
        (is_("principals", "in", ["everyone"]), "principals"),
    ],
)
def test_filters_that_do_not_fit_are_refused(condition: Condition, named: str, indexed: findling.Engine) -> None:
    with pytest.raises(InvalidValueError, match=named):
        FindlingRetriever(engine=indexed).run("token", filters=condition)
    with pytest.raises(InvalidValueError, match=named):
        FindlingRetriever(engine=indexed, filters=condition)


def test_errors_are_those_of_findling(folder: Path) -> None:
    with pytest.raises(PathNotFoundError):
        FindlingRetriever(path=folder / "nowhere")
    with pytest.raises(InvalidValueError, match="no profile is called nope"):
        FindlingRetriever(path=folder, profile="nope").run("token")
    options: dict[str, Any] = {"limit": 3}
    with pytest.raises(InvalidValueError, match="limit"):
        FindlingRetriever(path=folder, **options)
