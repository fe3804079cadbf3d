"""The retriever of LlamaIndex."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import findling
from findling.domain.errors import InvalidValueError, PathNotFoundError

if TYPE_CHECKING:
    from llama_index.core.llms import MockLLM
    from llama_index.core.query_engine import RetrieverQueryEngine
    from llama_index.core.schema import MetadataMode, NodeWithScore, QueryBundle, TextNode

    from findling.integrations.llama_index import FindlingRetriever


@pytest.fixture(scope="module", autouse=True)
def _library() -> None:
    """Load the library for the first test: 1 s of CPU in every worker that collects this file."""
    from llama_index.core.llms import MockLLM
    from llama_index.core.query_engine import RetrieverQueryEngine
    from llama_index.core.schema import MetadataMode, QueryBundle, TextNode

    from findling.integrations.llama_index import FindlingRetriever

    globals().update(
        MockLLM=MockLLM,
        RetrieverQueryEngine=RetrieverQueryEngine,
        MetadataMode=MetadataMode,
        QueryBundle=QueryBundle,
        TextNode=TextNode,
        FindlingRetriever=FindlingRetriever,
    )


def paths(nodes: list[NodeWithScore]) -> list[str]:
    return [node.metadata["path"] for node in nodes]


def test_a_node_is_a_passage_with_its_score(folder: Path) -> None:
    with FindlingRetriever(path=folder, similarity_top_k=2) as retriever:
        found = retriever.retrieve("session token last for a week")
    assert len(found) == 2
    assert found[0].get_score() >= found[1].get_score() > 0
    node = found[0].node
    assert isinstance(node, TextNode)
    assert node.text == (folder / "docs" / "plan.md").read_text()
    assert node.node_id == node.metadata["id"]
    assert node.ref_doc_id == node.metadata["rid"] == "file:docs/plan.md"
    assert found[0].score == node.metadata["score"]


def test_a_model_is_told_where_a_passage_is_and_no_figures(folder: Path) -> None:
    with FindlingRetriever(path=folder, similarity_top_k=1) as retriever:
        (found,) = retriever.retrieve(QueryBundle('"last for a week"'))
    told = found.node.get_content(metadata_mode=MetadataMode.LLM)
    assert "path: docs/plan.md" in told
    assert "line_start: 1" in told
    assert "_score" not in told
    assert "author" not in told, "nothing is known of one"


def test_options_hold_for_every_query(folder: Path) -> None:
    retriever = FindlingRetriever(path=folder, filters={"ext": "md"}, profile="keyword")
    assert set(paths(retriever.retrieve("token"))) == {"docs/guide.md", "docs/plan.md"}


def test_it_can_be_awaited_many_times_at_once(folder: Path) -> None:
    retriever = FindlingRetriever(path=folder, similarity_top_k=1)

    async def ask() -> list[list[NodeWithScore]]:
        return await asyncio.gather(*[retriever.aretrieve(f"token ext:{ext}") for ext in ("py", "ts")])

    assert [paths(nodes) for nodes in asyncio.run(ask())] == [["src/auth.py"], ["src/shop.ts"]]


def test_it_feeds_a_query_engine(folder: Path) -> None:
    retriever = FindlingRetriever(path=folder, filters={"ext": "py"})
    answer = RetrieverQueryEngine.from_args(retriever, llm=MockLLM()).query("who makes a session?")
    assert paths(answer.source_nodes) == ["src/auth.py"]
    assert "create_session(user)" in str(answer), "the model says what it was told"


def test_only_what_the_principals_may_see_is_found(folder: Path) -> None:
    with findling.open(folder) as engine:
        engine.index()
        engine.permissions.share("path:docs/plan.md", "user:ann")
        assert paths(FindlingRetriever(engine=engine.as_caller("user:ann")).retrieve("token")) == ["docs/plan.md"]
    assert paths(FindlingRetriever(path=folder, principals=["user:ann"]).retrieve("token")) == ["docs/plan.md"]


def test_errors_are_those_of_findling(folder: Path) -> None:
    with pytest.raises(PathNotFoundError):
        FindlingRetriever(path=folder / "nowhere")
    with pytest.raises(InvalidValueError, match="no profile is called nope"):
        FindlingRetriever(path=folder, profile="nope").retrieve("token")
    options: dict[str, Any] = {"top_k": 3}
    with pytest.raises(InvalidValueError, match="top_k"):
        FindlingRetriever(path=folder, **options)
