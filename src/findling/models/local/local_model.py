"""A model on this machine that is opened when it is first needed and read by several threads."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from threading import Lock
from weakref import WeakValueDictionary

import numpy as np
from numpy.typing import NDArray

from findling.domain.budgets import current_budget
from findling.models.local.onnx_session import OnnxSession, Row, open_session
from findling.models.local.tokenizing import TextEncoder, load_encoder
from findling.models.locating import ModelFiles, verified_sha256

__all__ = ["LocalModel"]


_OPEN: WeakValueDictionary[tuple[object, ...], OnnxSession] = WeakValueDictionary()
_OPENING = Lock()
"""The sessions of this process: the workspaces of a daemon share 60 MB and 0.2 s of CPU time for each model."""


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

    def read(self, rows: Sequence[Row]) -> Iterator[NDArray[np.float32]]:
        """What the model says to each of the rows, in order.

        Each row takes one core: several rows at once lose less than one row on several cores.
        """
        session, budget = self._opened(), current_budget()

        def run(row: Row) -> NDArray[np.float32]:
            started = time.thread_time()
            try:
                return session.run(row)
            finally:
                budget.charge(time.thread_time() - started)

        threads = min(self._threads, len(rows))
        if threads <= 1:
            yield from map(session.run, rows)
            return
        from concurrent.futures import ThreadPoolExecutor

        with ThreadPoolExecutor(threads) as pool:
            yield from pool.map(run, rows)

    def close(self) -> None:
        """Give the model's memory back; the next text opens it again."""
        with self._lock:
            self._session = None

    def _opened(self) -> OnnxSession:
        with self._lock:
            if self._session is None:
                self._session = self._shared()
            return self._session

    def _shared(self) -> OnnxSession:
        key = self.sha256, *self._outputs, self._prepared is None
        with _OPENING:
            if (session := _OPEN.get(key)) is None:
                session = _OPEN[key] = open_session(self._files.model, self._outputs, self._prepared)
            return session
