"""The models in use, shared by all who choose the same one: each takes some 100 MB."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar
from weakref import WeakValueDictionary

from findling.service.settings.settings import Settings

if TYPE_CHECKING:
    from findling.models.ports import Embedder, Reranker

__all__ = ["ModelTable"]

_Model = TypeVar("_Model")


class ModelTable:
    """Holds no model itself: one is gone when the last workspace releases it. Threads may share a table."""

    def __init__(self) -> None:
        self._in_use: WeakValueDictionary[tuple[object, ...], Any] = WeakValueDictionary()
        self._guard = threading.Lock()

    def embedder(self, settings: Settings) -> Embedder | None:
        """The embedder that `semantic.model` names. Raises as `choose_embedder` does."""
        from findling.service.index.model_choice import choose_embedder

        return self._chosen(choose_embedder, settings)

    def reranker(self, settings: Settings) -> Reranker | None:
        """The reranker that `rerank.model` names. Raises as `choose_reranker` does."""
        from findling.service.index.model_choice import choose_reranker

        return self._chosen(choose_reranker, settings)

    def _chosen(self, choose: Callable[[Settings], _Model | None], settings: Settings) -> _Model | None:
        key = (choose, *[settings[name] for name in settings if name.startswith(_OF_MODELS)])
        with self._guard:
            model: _Model | None = self._in_use.get(key)
            if model is None and (model := choose(settings)) is not None:
                self._in_use[key] = model
            return model


_OF_MODELS = ("semantic.", "rerank.", "remote.", "store.")
