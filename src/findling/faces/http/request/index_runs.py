"""Indexing runs that somebody has asked for: one at a time for each workspace, beside the searches."""

from __future__ import annotations

import logging
import threading
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

from findling.domain.errors import FindlingError
from findling.domain.permissions import OWNER
from findling.domain.reports import IndexProgress
from findling.service.server.engine_pool import Host

__all__ = ["IndexRuns"]

_log = logging.getLogger("findling.http")


class IndexRuns:
    """The latest run of each workspace, each in a thread of its own; may be used from several threads."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self._lock = threading.Lock()
        self._runs: dict[Path, _Run] = {}
        """By the folder of the workspace: the served one may be asked for by its name, too."""
        self._is_closed = False

    def start(self, workspace: str = "") -> bool:
        """Begin a run, unless one is under way or the server ends; whether it has begun.

        Raises NotFoundError for a name that no workspace has.
        """
        folder = self._folder(workspace)
        run = _Run(self._host, workspace)
        with self._lock:
            latest = self._runs.get(folder)
            if self._is_closed or (latest is not None and latest.is_alive()):
                return False
            self._runs[folder] = run
            run.start()
            return True

    def account(self, workspace: str = "") -> dict[str, Any] | None:
        """The progress of the latest run, if there was one since the start of the server."""
        folder = self._folder(workspace)
        with self._lock:
            latest = self._runs.get(folder)
        return None if latest is None else latest.account()

    def close(self) -> None:
        """End all runs; their commits stay, and the next run continues there. Twice is fine."""
        with self._lock:
            self._is_closed = True
            runs = list(self._runs.values())
        for run in runs:
            run.end()

    def _folder(self, workspace: str) -> Path:
        with self._host.opened(OWNER, workspace) as engine:
            return engine.home


class _EndedError(Exception):
    """The server stops, and the run with it."""


class _Run(threading.Thread):
    def __init__(self, host: Host, workspace: str) -> None:
        super().__init__(name=f"findling-index-{workspace}", daemon=True)
        self._host, self._workspace = host, workspace
        self._started_at = time.time()
        self._finished_at: float | None = None
        self._progress = IndexProgress("scan")
        self._outcome: dict[str, Any] = {"state": "running"}
        self._shall_end = False

    def run(self) -> None:
        try:
            report = self._host.index(self._workspace, on_progress=self._note)
            self._outcome = {"state": "done", "report": asdict(report)}
        except FindlingError as error:
            told = {"code": error.code, "detail": error.message, "hint": error.hint}
            self._outcome = {"state": "failed", "error": told}
        except _EndedError:
            self._outcome = {"state": "ended"}
        except Exception:  # nobody is behind this who could tell: a fault, or a disk that gives out
            _log.exception("the indexing run of %s has failed", self._workspace or "what is served")
            told = {"code": "fault", "detail": "findling has failed at this", "hint": "its log has more"}
            self._outcome = {"state": "failed", "error": told}
        finally:
            self._finished_at = time.time()

    def account(self) -> dict[str, Any]:
        progress = self._progress
        return {
            **self._outcome,
            "started_at": self._started_at,
            "finished_at": self._finished_at,
            **progress._asdict(),
            "seconds_left": progress.seconds_left,
        }

    def end(self) -> None:
        self._shall_end = True
        self.join()

    def _note(self, progress: IndexProgress) -> None:
        if self._shall_end:
            raise _EndedError
        self._progress = progress
