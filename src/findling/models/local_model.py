"""A model on this machine that is opened when it is first needed and read by several threads."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from threading import Lock

import numpy as np
from numpy.typing import NDArray

from findling.models.locating import ModelFiles, verified_sha256
from findling.models.onnx_session import OnnxSession, Row, batch_rows, open_session
from findling.models.tokenizing import TextEncoder, load_encoder

__all__ = ["LocalModel"]

_Read = Callable[[OnnxSession, Sequence[Row]], NDArray[np.float32]]


class LocalModel:
    """Session and encoder of one model; `threads` 0 takes every core, `exact` keeps its arithmetic as it is stored.

    Raises ModelDamagedError when the file is not the one its card names.
    """

    def __init__(
        self, files: ModelFiles, models_home: Path, outputs: Sequence[str], *, threads: int = 0, exact: bool = False
    ) -> None:
        self.sha256 = verified_sha256(files, models_home)
        self._files = files
        self._outputs = outputs
        self._threads = threads or os.cpu_count() or 1
        self._prepared = None if exact else models_home / "prepared" / f"{self.sha256[:16]}.onnx"
        self._session: OnnxSession | None = None
        self._encoder: TextEncoder | None = None
        self._lock = Lock()

    @property
    def encoder(self) -> TextEncoder:
        """What turns texts into tokens."""
        with self._lock:
            if self._encoder is None:
                self._encoder = load_encoder(self._files.tokenizer)
            return self._encoder

    def read_batches(self, rows: Sequence[Row], read: _Read) -> Iterator[tuple[list[int], NDArray[np.float32]]]:
        """What `read` makes of the rows, batch by batch: the numbers of the rows and one result for each.

        Each batch takes one core: several batches at once lose less than one batch on several cores.
        """
        batches = batch_rows([len(row.ids) for row in rows])
        read_rows = partial(read, self._opened())
        chosen = [[rows[place] for place in batch] for batch in batches]
        threads = min(self._threads, len(batches))
        if threads <= 1:
            yield from zip(batches, map(read_rows, chosen), strict=True)
            return
        from concurrent.futures import ThreadPoolExecutor

        with ThreadPoolExecutor(threads) as pool:
            yield from zip(batches, pool.map(read_rows, chosen), strict=True)

    def close(self) -> None:
        """Give the model's memory back; the next text opens it again."""
        with self._lock:
            self._session = None

    def _opened(self) -> OnnxSession:
        with self._lock:
            if self._session is None:
                self._session = open_session(self._files.model, self._outputs, self._files.card.pad_id, self._prepared)
            return self._session
