"""The open workspaces of a server, the clients that search them, and the counters of both."""

from __future__ import annotations

import contextlib
import gc
import threading
import time
from bisect import bisect_left
from collections import OrderedDict, deque
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from findling.domain.budgets import WorkBudget, spending
from findling.domain.errors import FindlingError, NotFoundError, NotIndexedError
from findling.domain.permissions import ALL_WORKSPACES, OWNER, Caller
from findling.domain.reports import Progress
from findling.service.engine.client import AnswerCache, LocalClient
from findling.service.engine.engine import Engine, open_engine
from findling.service.index.index import Index
from findling.service.index.model_choice import ModelTable
from findling.service.server.search_pool import PooledIndex, SearchPool
from findling.service.server.search_process import GRACE_S
from findling.service.settings.setting_list import SETTINGS, Value
from findling.service.settings.settings import Settings, load_settings
from findling.service.workspace.scope import OWN
from findling.service.workspace.workspace import PERSONAL, Workspace, has_store, home_folder, indexed_root, locate
from findling.service.workspace.workspaces import WorkspaceAccount, all_workspaces, list_workspaces, place_in

if TYPE_CHECKING:
    from findling.domain.reports import IndexReport
    from findling.domain.results import Degradation

BUCKETS_S = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
"""Upper bounds of the buckets of times."""

_RECENT = 4096
"""Questions of the 99th percentile: one in a hundred of them is 41."""


class Histogram(NamedTuple):
    """Times of one kind of work: the count of each bucket, the last one above every bound, and their sum."""

    counts: list[int]
    sums: list[float]

    def add(self, seconds: float) -> None:
        """Count one time."""
        self.counts[bisect_left(BUCKETS_S, seconds)] += 1
        self.sums[0] += seconds


class ServerStatistics:
    """Counts since the start; may be shared between threads."""

    def __init__(self) -> None:
        self.started_at = time.time()
        self._lock = threading.Lock()
        self._times_ms: dict[str, float] = {}
        self._recent: deque[float] = deque(maxlen=_RECENT)
        self._histograms: dict[tuple[str, str], Histogram] = {}
        self._facts: dict[str, Any] = {}
        self._queries = self._cached = self._failed = self._degraded = 0
        self._seconds = 0.0

    def took(self, name: str, seconds: float) -> None:
        """Note the time of a step of the start, under a name that ends in `_time_ms`."""
        with self._lock:
            self._times_ms[name] = round(seconds * 1000, 3)

    def tell(self, **facts: Any) -> None:
        """Note present facts, such as `documents` or `last_index_refresh`."""
        with self._lock:
            self._facts |= facts

    def observe(self, stage: str, mode: str, seconds: float) -> None:
        """Count a stage of answering, such as `search` or `fetch`."""
        with self._lock:
            self._histograms.setdefault((stage, mode), Histogram([0] * (len(BUCKETS_S) + 1), [0.0])).add(seconds)

    def answered(self, mode: str, seconds: float, *, degraded: int = 0, cached: bool = False) -> None:
        """Count a question that was answered."""
        self.observe("search", mode, seconds)
        with self._lock:
            self._queries += 1
            self._cached += cached
            self._seconds += seconds
            self._recent.append(seconds)
            self._degraded += bool(degraded)

    def failed(self) -> None:
        """Count a question that was not answered."""
        with self._lock:
            self._failed += 1

    def histograms(self) -> dict[tuple[str, str], Histogram]:
        """The times of every stage and mode, as they are now."""
        with self._lock:
            return {key: Histogram(list(one.counts), list(one.sums)) for key, one in self._histograms.items()}

    def snapshot(self) -> dict[str, Any]:
        """Everything as plain values; times without a value yet are 0."""
        with self._lock:
            recent = sorted(self._recent)
            return {
                "startup_time_ms": 0.0,
                "keyword_load_time_ms": 0.0,
                "vector_warmup_time_ms": 0.0,
                "model_load_time_ms": 0.0,
                "documents": 0,
                "last_index_refresh": None,
                "legs": {"keyword": False, "vectors": False, "model": False},
                "queue_depth": 0,
                **self._times_ms,
                **self._facts,
                "uptime_s": round(time.time() - self.started_at, 3),
                "total_queries": self._queries,
                "failed_queries": self._failed,
                "cache_hits": self._cached,
                "degraded_total": self._degraded,
                "avg_latency_ms": round(self._seconds / self._queries * 1000, 3) if self._queries else 0.0,
                "p99_latency_ms": round(recent[int(len(recent) * 0.99)] * 1000, 3) if recent else 0.0,
            }


_MOST_OPEN = 16
"""Workspaces that stay open: one with 100,000 passages and a model maps some 100 MB."""

_MOST_ENGINES = 8
"""Engines of one open workspace that keep their plans: for its parts, and for settings of callers."""

IDLE_S = 900.0
"""Time without a question after which models are released."""

MAX_BODY = 16 << 20
"""The largest request of the owner with resources, or to MCP; others may send 256 KB."""

_ANSWERS = 512
"""Answers in the cache."""

_CANDIDATES, _READ, _ROWS = 5_000, 500, 1_000
"""Limits of one request of a token: passages looked at (0.3 s), split into words (0.5 s), rows of words (0.2 s)."""

_SECTIONS_OF_LEGS = tuple("keyword. semantic. rerank. remote. privacy. permissions. chat. store.".split())
_OF_LEGS = tuple(setting.name for setting in SETTINGS if setting.name.startswith(_SECTIONS_OF_LEGS))
"""Settings that decide how legs are opened; callers who differ in one of them have engines of their own."""


class _Key(NamedTuple):
    folder: Path
    settings: tuple[Value, ...]


class _Kept:
    """An open workspace, the number of its users, and the time of its last use."""

    def __init__(self, index: Index) -> None:
        self.index = index
        self._engines: OrderedDict[tuple[Workspace, int], Engine] = OrderedDict()
        self.leases = 0
        self.used_at = time.monotonic()

    def engine(self, place: Workspace, settings: Settings) -> Engine:
        """The engine for a part of the root and settings, which caches its plans."""
        key = (place, id(settings))  # the engine holds its settings, so their id stays theirs
        engine = self._engines.pop(key, None) or Engine(place, settings, self.index)
        self._engines[key] = engine
        while len(self._engines) > _MOST_ENGINES:
            self._engines.popitem(last=False)
        return engine


class Host:
    """The workspaces of one home, opened on demand; `path` belongs to the default one."""

    def __init__(
        self,
        settings: Settings,
        path: str | Path | None = None,
        *,
        served_by: str = "",
        processes: int = 0,
        encode: Callable[[object], bytes] | None = None,
    ) -> None:
        """With `processes`, so many answer questions, and turn hits into JSON with `encode`, if given."""
        self.settings = settings
        self.processes = processes
        self._pool = SearchPool(processes, encode=encode) if processes else None
        self.home = home_folder(settings["store.home"])
        self.statistics = ServerStatistics()
        self.served_by = served_by
        self.is_ready = False
        with open_engine(path, settings=settings) as engine:
            has_files = engine.root != engine.home
            # It may be a part of the indexed root.
            self._subject = engine.asked if has_files else engine.home
            self.default = str(self._subject if has_files else engine.root)
        self._place = self._served()
        self._named: dict[Path, Settings] = {}
        self._models = ModelTable()
        self._kept: OrderedDict[_Key, _Kept] = OrderedDict()
        self._guard = threading.Lock()
        self._answers = AnswerCache(_ANSWERS)

    # Opening

    @contextlib.contextmanager
    def opened(self, caller: Caller, workspace: str = "") -> Iterator[Engine]:
        """The engine of a workspace, the served one by default, which stays loaded meanwhile.

        Raises NotFoundError for an unknown name and, in the same words, for one that the caller may not ask.
        """
        place, settings = self._find(caller, workspace)
        with spending(self.budget(caller)), self._leased(place, settings) as engine:
            # What lies beside is for callers who may ask those workspaces.
            is_free = caller.is_owner and ALL_WORKSPACES in caller.workspaces
            yield engine if is_free else engine.reaching(OWN, caller.workspaces)

    def budget(self, caller: Caller) -> WorkBudget:
        """The budget of one request: none for the owner, whose processor everybody else shares."""
        longest_s = self.settings["serve.timeout_s"] + GRACE_S
        if caller.is_owner:
            return WorkBudget(longest_s=longest_s)
        cpu_s = self.settings["serve.cpu_s"]
        return WorkBudget(cpu_s=cpu_s, candidates=_CANDIDATES, read=_READ, rows=_ROWS, longest_s=longest_s)

    @contextlib.contextmanager
    def opened_local(self, path: str | Path, settings: Settings) -> Iterator[Engine]:
        """The engine that `open_engine` would give, for callers who could open it themselves. Raises as that does."""
        name = settings["workspace.name"] or settings["context.workspace"]
        place = locate(path, home=home_folder(settings["store.home"]), name=name, place=settings["store.place"])
        with self._leased(place, settings) as engine:
            yield engine

    @contextlib.contextmanager
    def client(self, caller: Caller, workspace: str = "") -> Iterator[LocalClient]:
        """A client of a workspace with the rights of the caller; its answers are cached. Raises as `opened` does."""
        with self.opened(caller, workspace) as engine:
            served_by, longest_s = self.served_by if caller.is_owner else "", self.settings["serve.timeout_s"]
            yield self._client(engine, caller, served_by=served_by, longest_s=longest_s)
        self._tell_legs()

    @contextlib.contextmanager
    def local_client(
        self, path: str | Path, settings: Settings, caller: Caller = OWNER, *, longest_s: float = 0.0
    ) -> Iterator[LocalClient]:
        """A client for callers who could open the workspace themselves; their settings decide what follows a search."""
        limits = spending(WorkBudget(longest_s=longest_s + GRACE_S)) if longest_s else contextlib.nullcontext()
        with limits, self.opened_local(path, settings) as engine:
            yield self._client(engine, caller, settings=settings, served_by=self.served_by, longest_s=longest_s)
        self._tell_legs()

    def _client(self, engine: Engine, caller: Caller, **more: Any) -> LocalClient:
        return LocalClient(engine, caller.principals, answers=self._answers, statistics=self.statistics, **more)

    def workspaces(self, caller: Caller) -> list[WorkspaceAccount]:
        """The workspaces that a caller may ask."""
        accounts = [one for one in list_workspaces(self.home) if caller.is_owner or one.name != PERSONAL]
        if ALL_WORKSPACES in caller.workspaces:
            return accounts
        return [one for one in accounts if one.folder == self._place.folder or one.label in caller.workspaces]

    # Upkeep

    def warm_up(self, *, awaits_index: bool = False) -> None:
        """Load the legs and models that the first question needs.

        With `awaits_index` a workspace without an index is not ready; then call it again.
        """
        notes: list[Degradation] = []
        try:
            with self.opened(OWNER) as engine:
                times = engine.opened.warm_up(notes)
                status = engine.status()
                if awaits_index and not engine.is_indexed():
                    return
        except NotIndexedError:
            if awaits_index:
                return
        else:
            for name, seconds in times.items():
                self.statistics.took(f"{name}_time_ms", seconds)
            self._tell_legs()
            self.statistics.tell(documents=status.resources, last_index_refresh=status.indexed_at)
        # What is loaded stays: to look through it for garbage again and again took a quarter of the time of an answer.
        gc.collect()
        gc.freeze()
        self.is_ready = True
        self.statistics.took("startup_time_ms", time.time() - self.statistics.started_at)

    def index(self, workspace: str = "", *, on_progress: Progress | None = None) -> IndexReport:
        """Bring the index up to the state of the disk. Raises as `Engine.index` does."""
        with self.opened(OWNER, workspace) as engine:
            report = engine.index(on_progress=on_progress)
            if engine.home == self._place.folder:
                self.statistics.tell(documents=engine.status().resources)
        self.statistics.tell(last_index_refresh=time.time())
        return report

    def unload_idle(self) -> bool:
        """Release models and vectors that nobody has used for a while; returns whether there were any.

        A workspace that another process has dropped is closed, too, which frees its space on disk.
        """
        was_loaded, idle_s = False, IDLE_S
        with self._guard:
            unused = {key: kept for key, kept in self._kept.items() if not kept.leases}
            for key, kept in unused.items():
                if kept.index.files.is_replaced():
                    self._kept.pop(key).index.close()
                    idle_s = 0.0
                elif time.monotonic() - kept.used_at >= IDLE_S:
                    was_loaded = kept.index.unload() or was_loaded
        if self._pool is not None:
            self._pool.rest(idle_s)
        if was_loaded:
            self._answers.clear()
            self._tell_legs()
        return was_loaded

    def level_wanted(self) -> None:
        """Bring up the legs that searches have missed."""
        with self._guard:
            indexes = [kept.index for kept in self._kept.values()]
        for index in indexes:
            with contextlib.suppress(FindlingError):  # a search reports what is wrong
                index.level_wanted()

    def end_processes(self) -> None:
        """End the search processes, with what they are at."""
        if self._pool is not None:
            self._pool.close()

    def close(self) -> None:
        """Close all workspaces."""
        self.end_processes()
        with self._guard:
            while self._kept:
                self._kept.popitem()[1].index.close()

    # Inside

    def _tell_legs(self) -> None:
        """Note the parts of the served workspace that are in memory."""
        with self._guard:  # another thread may take a workspace out
            kept = [one.index for key, one in self._kept.items() if key.folder == self._place.folder]
        loaded = [one.loaded() for one in kept]
        self.statistics.tell(legs={name: any(one[name] for one in loaded) for name in ("keyword", "vectors", "model")})

    def _find(self, caller: Caller, workspace: str) -> tuple[Workspace, Settings]:
        if not workspace:
            if not has_store(self._place.folder):
                self._place = self._served()
            return self._place, self.settings
        is_theirs = ALL_WORKSPACES in caller.workspaces or workspace in caller.workspaces
        # By name, or by root as `workspaces` shows it, never by a path to look up on disk.
        known = [one for one in all_workspaces(self.home) if is_theirs and (caller.is_owner or one.key != PERSONAL)]
        found = [one for one in known if workspace in (one.name, one.key)]
        found = found or [one for one in known if workspace == str(indexed_root(one.folder) or "")]
        if not found:
            raise NotFoundError(f"there is no workspace {workspace}", hint="findling workspaces list")
        place = place_in(found[0])
        if place.folder not in self._named:
            # Those of its own project file, as the command line has them.
            self._named[place.folder] = load_settings(place.root if place.root.exists() else ".")
        return place, self._named[place.folder]

    def _served(self) -> Workspace:
        name = self.settings["workspace.name"] or self.settings["context.workspace"]
        return locate(self._subject, home=self.home, name=name, place=self.settings["store.place"])

    @contextlib.contextmanager
    def _leased(self, place: Workspace, settings: Settings) -> Iterator[Engine]:
        key = _Key(place.folder, tuple([settings[name] for name in _OF_LEGS]))
        with self._guard:
            kept = self._kept.pop(key, None) or _Kept(self._index(place, settings))
            self._kept[key] = kept
            kept.leases += 1
            engine = kept.engine(place, settings)
            unused = [key for key, other in self._kept.items() if not other.leases]
            for old in unused[: max(0, len(self._kept) - _MOST_OPEN)]:
                self._kept.pop(old).index.close()
        try:
            yield engine
        finally:
            with self._guard:
                kept.leases -= 1
                kept.used_at = time.monotonic()

    def _index(self, place: Workspace, settings: Settings) -> Index:
        if self._pool is None:
            return Index(place, settings, self._models)
        return PooledIndex(place, settings, self._models, self._pool)
