"""Ports of models: embedders, rerankers and chats."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Vectors = NDArray[np.float32]
    """One row a text, each of length 1."""

__all__ = ["Chat", "Embedder", "Reranker"]


class _Model(Protocol):
    @property
    def name(self) -> str:
        """The name that users give the model."""

    @property
    def host(self) -> str:
        """The host that texts are sent to; empty when nothing leaves the machine."""


class Embedder(_Model, Protocol):
    """Turns texts into vectors of length 1. Raises ModelError when it cannot."""

    @property
    def fingerprint(self) -> str:
        """Tells vectors that can be compared from those that cannot: model file, pooling, limits, prefixes."""

    @property
    def dimensions(self) -> int:
        """Length of a vector."""

    @property
    def in_process(self) -> bool:
        """Whether it reads in this process, at a speed that can be foretold; not on any server."""

    @property
    def languages(self) -> str:
        """The languages it reads, in words; empty when any may be tried."""

    @property
    def usual_cosines(self) -> tuple[float, float] | None:
        """Mean and deviation of the cosines of texts that have nothing to do with each other, where they are known."""

    def embed(self, texts: Sequence[str], kind: str = "passage") -> Vectors:
        """One vector a text, in order; `kind` is `passage` or `query`."""


class Reranker(_Model, Protocol):
    """Scores how well a query and a passage fit. Raises ModelError when it cannot."""

    @property
    def languages(self) -> str:
        """The languages it reads, in words; empty when any may be tried."""

    def rerank(self, query: str, texts: Sequence[str]) -> list[float]:
        """One score a text, in order, between 0 and 1: how likely it answers the query."""


class Chat(_Model, Protocol):
    """A language model that answers in words. Raises ModelError when it cannot."""

    def complete(self, system: str, user: str, *, max_tokens: int = 512) -> str:
        """The reply of the model to `user` under the instructions of `system`."""
