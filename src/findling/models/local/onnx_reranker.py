"""A cross-encoder that runs on this machine: it reads a query and a passage together."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from findling.models.local.local_model import LocalModel
from findling.models.local.onnx_session import Row
from findling.models.local.tokenizing import TextEncoder
from findling.models.locating import ModelFiles

__all__ = ["OnnxReranker"]


class OnnxReranker:
    """Scores passages with an ONNX cross-encoder, which is opened at the first query; `threads` 0 takes every core.

    A query takes at most half of what the model reads, and the passage is cut to the rest. Raises ModelDamagedError
    when the file is not the one its card names.
    """

    def __init__(self, files: ModelFiles, models_home: Path, *, threads: int = 0) -> None:
        self._card = files.card
        self._model = LocalModel(files, models_home, ("logits",), threads=threads)

    @property
    def name(self) -> str:
        """What users call the model."""
        return self._card.name

    @property
    def host(self) -> str:
        """Empty: nothing leaves the machine."""
        return ""

    def rerank(self, query: str, texts: Sequence[str]) -> list[float]:
        """One score for each text, in order, between 0 and 1. Raises ModelError when the model fails."""
        if not texts:
            return []
        rows = _pairs(query, texts, self._model.encoder, self._card.max_tokens)
        return [_probability(logits.reshape(-1)) for logits in self._model.read(rows)]

    def close(self) -> None:
        """Give the model's memory back; the next query opens it again."""
        self._model.close()


def _pairs(query: str, texts: Sequence[str], encoder: TextEncoder, max_tokens: int) -> list[Row]:
    room = max_tokens - len(encoder.start) - len(encoder.middle) - len(encoder.end)
    asked = encoder.ids(query, room // 2)
    lead = [*encoder.start, *asked, *encoder.middle]
    return [Row([*lead, *encoder.ids(text, room - len(asked)), *encoder.end], len(lead)) for text in texts]


def _probability(logits: NDArray[np.float32]) -> float:
    """The last logit as a probability; of two, that of the second against the first."""
    value = logits[-1] - (logits[0] if len(logits) == 2 else 0)
    return float(np.nan_to_num(1 / (1 + np.exp(-np.clip(value, -60, 60))), nan=0.0))
