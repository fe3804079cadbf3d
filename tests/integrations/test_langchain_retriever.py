"""The retriever of LangChain: the library's own tests for one, and what is our own about it."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from langchain_core.documents import Document
from langchain_core.runnables import ConfigurableField, RunnableLambda
from langchain_tests.integration_tests import RetrieversIntegrationTests

import findling
from findling.domain.errors import InvalidValueError, PathNotFoundError, UsageError
from findling.domain.queries import Filters
from findling.integrations.langchain import FindlingRetriever

# The test is a coroutine without a mark, and must not be overridden: its library has such tests run by a setting.
pytest.mark.asyncio(RetrieversIntegrationTests.test_ainvoke_returns_documents)


class TestFindlingRetriever(RetrieversIntegrationTests):
    """The tests that LangChain has for every retriever."""

    folder: Path

    @pytest.fixture(autouse=True)
    def searched(self, folder: Path) -> None:
        self.folder = folder

    @property
    def retriever_constructor(self) -> type[FindlingRetriever]:
        return FindlingRetriever

    @property
    def retriever_constructor_params(self) -> dict[str, Any]:
        return {"path": self.folder}

    @property
    def retriever_query_example(self) -> str:
        return "session token"


def paths(documents: list[Document]) -> list[str]:
    return [document.metadata["path"] for document in documents]


def test_a_document_is_a_passage_with_its_source(folder: Path) -> None:
    with FindlingRetriever(path=folder, k=1) as retriever:
        (document,) = retriever.invoke('"last for a week"')
    assert document.page_content == (folder / "docs" / "plan.md").read_text()
    assert document.metadata["source"] == document.metadata["path"] == "docs/plan.md"
    assert document.id == document.metadata["id"]
    with findling.open(folder) as engine:
        assert engine.fetch(str(document.id)).path == "docs/plan.md"


def test_options_hold_for_every_query_and_a_query_may_say_otherwise(folder: Path) -> None:
    retriever = FindlingRetriever(path=folder, k=2, filters={"ext": ["md"]}, profile="keyword")
    assert set(paths(retriever.invoke("token"))) == {"docs/guide.md", "docs/plan.md"}
    assert paths(retriever.invoke("token", k=1, filters={"ext": "py"})) == ["src/auth.py"]
    retriever.k = 1
    assert len(retriever.invoke("token")) == 1


def test_it_is_a_part_of_a_chain(folder: Path) -> None:
    chain = FindlingRetriever(path=folder, filters={"ext": "py"}) | RunnableLambda(paths)
    assert chain.invoke("login") == ["src/auth.py"]
    assert chain.batch(["login"] * 4) == [["src/auth.py"]] * 4


def test_it_can_be_awaited_many_times_at_once(folder: Path) -> None:
    retriever = FindlingRetriever(path=folder)

    async def ask() -> list[list[Document]]:
        return await asyncio.gather(*[retriever.ainvoke("login", k=1, filters={"ext": ext}) for ext in ("py", "md")])

    assert [paths(documents) for documents in asyncio.run(ask())] == [["src/auth.py"], ["docs/guide.md"]]


def test_a_configured_copy_asks_the_same_folder(folder: Path) -> None:
    retriever = FindlingRetriever(path=folder, k=1).configurable_fields(k=ConfigurableField(id="k"))
    assert len(retriever.invoke("token")) == 1
    assert len(retriever.invoke("token", config={"configurable": {"k": 3}})) == 3


def test_who_asks_is_not_for_a_query_to_say(folder: Path) -> None:
    with findling.open(folder) as engine:
        engine.index()
        engine.permissions.share("path:docs/plan.md", "user:ann")
    retriever = FindlingRetriever(path=folder, principals=["user:ann"])
    assert paths(retriever.invoke("token")) == ["docs/plan.md"]
    with pytest.raises(TypeError, match="principals"):
        retriever.invoke("token", principals=None)
    with findling.open(folder) as engine:
        assert paths(FindlingRetriever(engine=engine.as_caller("user:ann")).invoke("token")) == ["docs/plan.md"]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("principals", None),
        ("principals", ["user:bob"]),
        ("filters", {"ext": "py"}),
        ("path", "."),
        ("workspace", "notes"),
        ("engine", None),
        ("refresh", False),
        ("exclude_pattern", "x"),
        ("min_score", 0.5),
        ("profile", "semantic"),
        ("in_context", False),
        ("within", "docs"),
        ("quick", True),
        ("timeout_s", 1.0),
    ],
)
def test_no_option_but_k_is_silently_kept_when_it_is_assigned(name: str, value: Any, folder: Path) -> None:
    retriever = FindlingRetriever(path=folder, principals=["user:ann"], filters={"ext": ["md"]})
    told = repr(retriever)
    with pytest.raises(UsageError, match=f"{name} of a retriever cannot be changed"):
        setattr(retriever, name, value)
    with pytest.raises(UsageError, match=f"{name} of a retriever cannot be changed"):
        retriever.model_copy(update={"k": 3, name: value})
    assert repr(retriever) == told


def test_what_was_given_cannot_be_changed_in_place(folder: Path) -> None:
    principals, filters = ["user:ann"], {"ext": ["md"]}
    retriever = FindlingRetriever(path=folder, principals=principals, filters=filters)
    principals.append("user:bob")
    filters["ext"].append("py")
    assert retriever.principals == ("user:ann",)
    assert retriever.filters == Filters(ext=(".md",))


def test_a_copy_with_another_k_asks_the_same_folder(folder: Path) -> None:
    retriever = FindlingRetriever(path=folder, filters={"ext": "md"})
    copied = retriever.model_copy(update={"k": 1, "tags": ["copied"]})
    assert len(copied.invoke("token")) == 1
    assert {path.rpartition(".")[2] for path in paths(retriever.invoke("token"))} == {"md"}


def test_errors_are_those_of_findling(folder: Path) -> None:
    with pytest.raises(PathNotFoundError):
        FindlingRetriever(path=folder / "nowhere")
    with pytest.raises(InvalidValueError, match="nothing is called extension"):
        FindlingRetriever(path=folder, filters={"extension": "py"})
    with pytest.raises(InvalidValueError, match="no profile is called nope"):
        FindlingRetriever(path=folder, profile="nope").invoke("token")


def test_an_unknown_option_is_an_error(folder: Path) -> None:
    options: dict[str, Any] = {"top_k": 3}
    with pytest.raises(ValueError, match="top_k"):
        FindlingRetriever(path=folder, **options)
