"""An embedding model that runs on this machine."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from findling.domain.errors import ModelError
from findling.models.local.onnx_session import LocalModel, TextEncoder, TokenRow
from findling.models.locating import ModelFiles, file_sha256, keep, kept_lists

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from findling.domain.ports import Vectors


class OnnxReranker:
    """Scores passages with an ONNX cross-encoder, which is opened at the first query; `threads` 0 takes every core.

    A query takes at most half of what the model reads, and the passage is cut to the rest. Raises ModelDamagedError
    when the file is not the one its card names.
    """

    def __init__(self, files: ModelFiles, models_home: Path, *, threads: int = 0) -> None:
        self._card = files.card
        self.name = files.card.name
        self.languages = files.card.languages
        self.host = ""  # nothing leaves the machine
        self._model = LocalModel(files, models_home, ("logits",), threads=threads)

    def rerank(self, query: str, texts: Sequence[str]) -> list[float]:
        """One score for each text, in order, between 0 and 1. Raises ModelError when the model fails."""
        if not texts:
            return []
        rows = _pairs(query, texts, self._model.encoder, self._card.max_tokens)
        return [_probability(logits.reshape(-1)) for logits in self._model.read(rows)]

    def close(self) -> None:
        """Give the model's memory back; the next query opens it again."""
        self._model.close()


def _pairs(query: str, texts: Sequence[str], encoder: TextEncoder, max_tokens: int) -> list[TokenRow]:
    room = max_tokens - len(encoder.start) - len(encoder.middle) - len(encoder.end)
    asked = encoder.ids(query, room // 2)
    lead = [*encoder.start, *asked, *encoder.middle]
    return [TokenRow([*lead, *encoder.ids(text, room - len(asked)), *encoder.end], len(lead)) for text in texts]


def _probability(logits: NDArray[np.float32]) -> float:
    """The last logit as a probability; of two, that of the second against the first."""
    import numpy as np  # which the name of a model does not need

    value = logits[-1] - (logits[0] if len(logits) == 2 else 0)
    return float(np.nan_to_num(1 / (1 + np.exp(-np.clip(value, -60, 60))), nan=0.0))


def kind_and_width(files: ModelFiles, models_home: Path) -> tuple[str, int]:
    """The kind of a model by what it gives: one or two numbers for a pair, or vectors, with their length.

    Raises ModelError for one that cannot be opened.
    """
    model = LocalModel(files, models_home, ("logits", *_OUTPUTS), threads=1)
    encoder = model.encoder
    given = next(model.read([TokenRow([*encoder.start, *encoder.ids("a word", 8), *encoder.end])]))
    width = given.shape[-1] if given.ndim else 1
    return ("reranker", 0) if width <= 2 else ("embedder", width)


_QUERIES = (
    "how to bake bread at home",
    "symptoms of a heart attack",
    "sort a list in python",
    "causes of the first world war",
    "cheap flights to the coast",
    "what is a black hole",
    "train a puppy to sit",
    "mortgage interest rates",
)
_PASSAGES = (
    "The glacier retreated by forty metres last summer, and the meltwater carved a new channel through the moraine.",
    "Violins of that period were varnished with a mixture of oil and resin whose recipe has been lost.",
    "The committee adjourned without a vote after two members objected to the wording of the amendment.",
    "Each server keeps a log of the transactions it has seen and replays it when it starts again.",
    "Bees find their way by the position of the sun and pass it on to others in a dance.",
    "The goalkeeper saved two penalties before the captain scored in the last minute of extra time.",
    "Concrete reaches most of its strength within a month, provided that it is kept moist.",
    "Her second novel is set in a harbour town where nobody will speak about the shipwreck.",
)
_SHORTEST_DEVIATION = 0.01


def usual_cosines(
    fingerprint: str, embed: Callable[[Sequence[str], str], Vectors], memory: Path
) -> tuple[float, float]:
    """Mean and deviation, kept in the file `memory` for the next process."""
    known = kept_lists(memory, 2)
    try:
        mean, deviation = known[fingerprint]
        return float(mean), float(deviation)
    except (ValueError, KeyError, TypeError):  # not there, or not readable: it is measured again
        pass
    cosines = embed(_QUERIES, "query") @ embed(_PASSAGES, "passage").T
    # Sixty-four pairs of short texts lie closer together than the passages of a whole collection.
    found = float(cosines.mean()), max(float(cosines.std()), _SHORTEST_DEVIATION)
    keep(memory, json.dumps({**known, fingerprint: found}).encode())
    return found


_WAY = "alone"
"""Mark of vectors whose texts were read one by one. Older fingerprints lack it: padding changed their vectors."""

_OUTPUTS = ("sentence_embedding", "last_hidden_state", "token_embeddings")


class OnnxEmbedder:
    """Reads texts with an ONNX model, which is opened at the first text; `threads` 0 takes every core.

    A text longer than the model reads is read in up to `windows` windows; their vectors are averaged by the number of
    tokens in each, and what is longer still is left out. 1 window truncates. An empty text has a vector like any other.
    `exact` keeps a model with stored 8-bit weights from calculating with them: 2.6 times slower. Otherwise
    MiniLM's vectors lie at a cosine of about .99 to the exact ones. A vector is a function of one text, bit for bit:
    every window is read by itself. Raises ModelDamagedError when the file is not the one its card names.
    """

    def __init__(
        self, files: ModelFiles, models_home: Path, *, threads: int = 0, windows: int = 4, exact: bool = False
    ) -> None:
        self._card = files.card
        self._windows = windows
        self._models_home = models_home
        self._usual: tuple[float, float] | None = None
        self._model = LocalModel(files, models_home, _OUTPUTS, threads=threads, exact=exact)
        self.name = files.card.name
        self.host = ""  # nothing leaves the machine
        self.in_process = True
        self.languages = files.card.languages
        self.dimensions = files.card.dimensions
        # It changes with model file, tokenizer, pooling, limits, prefixes: only vectors of one fingerprint compare.
        self.fingerprint = _fingerprint(files, models_home, self._model.sha256, windows, exact)

    @property
    def usual_cosines(self) -> tuple[float, float] | None:
        """Mean and deviation of the cosines of unrelated texts: as its card says, or as a few of them show."""
        if self._card.usual_cosines is None and self._usual is None:
            self._usual = usual_cosines(self.fingerprint, self.embed, self._models_home / "usual-cosines.json")
        return self._card.usual_cosines or self._usual

    def embed(self, texts: Sequence[str], kind: str = "passage") -> Vectors:
        """One vector of length 1 for each text, in order; `kind` is `passage` or `query`.

        Raises ModelError when the model fails or gives vectors of another length than its card says.
        """
        import numpy as np

        card = self._card
        prefix = {"passage": card.passage_prefix, "query": card.query_prefix}[kind]
        vectors = np.zeros((len(texts), card.dimensions), dtype=np.float32)
        if not texts:
            return vectors
        windows = [_windows_of(prefix + text, self._model.encoder, card.max_tokens, self._windows) for text in texts]
        states = self._model.read([window for rows in windows for window in rows])
        for number, rows in enumerate(windows):
            for row in rows:
                vectors[number] += self._pooled(next(states)) * len(row.ids)
            vectors[number] = _unit(vectors[number])
        return vectors

    def close(self) -> None:
        """Give the model's memory back; the next text opens it again."""
        self._model.close()

    def _pooled(self, states: NDArray[np.float32]) -> NDArray[np.float32]:
        card = self._card
        if states.ndim > 1:  # one row a token
            states = states[0] if card.pooling == "cls" else states.mean(axis=0)
        if states.shape != (card.dimensions,):
            raise ModelError(
                f"{card.name} gives vectors of {states.shape[-1]} numbers, its card says {card.dimensions}",
                hint="correct dimensions in the model's findling-model.json",
            )
        return _unit(states)


def _windows_of(text: str, encoder: TextEncoder, max_tokens: int, windows: int) -> list[TokenRow]:
    size = max_tokens - len(encoder.start) - len(encoder.end)
    ids = encoder.ids(text, size * windows)
    parts = [ids[first : first + size] for first in range(0, len(ids) or 1, size)]
    return [TokenRow([*encoder.start, *part, *encoder.end]) for part in parts]


def _unit(vector: NDArray[np.float32]) -> NDArray[np.float32]:
    """The vector at length 1; one that is not made of finite numbers, or of zeros only, becomes zeros."""
    import numpy as np

    # Not `norm`, which hands a single vector to BLAS: its sums depend on the number of threads.
    length = np.sqrt(np.square(vector).sum())
    return vector / length if np.isfinite(length) and length > 0 else np.zeros_like(vector)


def _fingerprint(files: ModelFiles, models_home: Path, sha256: str, windows: int, exact: bool) -> str:
    card = files.card
    facts = [sha256[:16], card.pooling, str(card.max_tokens), f"w{windows}", "exact" if exact else "int8", _WAY]
    if card.query_prefix or card.passage_prefix:
        facts.append(f"{card.query_prefix!r}{card.passage_prefix!r}")
    if files.tokenizer is not None:
        facts.append(f"t{file_sha256(files.tokenizer, models_home)[:8]}")
    return ":".join(facts)
