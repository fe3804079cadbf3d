"""The client that faces search through: an engine of this process, and what follows a search; or the daemon."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from findling.domain.errors import FindlingError, NotFoundError, ReplacedError
from findling.domain.queries import SearchRequest, request_with
from findling.domain.resources import Resource
from findling.domain.results import Degradation, Explanation, Hit, SearchAnswer
from findling.service.workspace.scope import timings_for

if TYPE_CHECKING:
    from findling.domain.reports import Progress
    from findling.pipelines.lookup.suggest import Completion
    from findling.service.engine.answer_cache import AnswerCache
    from findling.service.engine.background import Reading
    from findling.service.engine.engine import Engine
    from findling.service.index.documents import FetchedDocument
    from findling.service.settings.settings import Settings

__all__ = ["LocalClient", "Refreshed", "SearchClient", "SearchStatistics"]


class SearchClient(Protocol):
    """Searches one workspace as one caller. `LocalClient` and `DaemonClient` give the same answers."""

    @property
    def root(self) -> Path:
        """The folder that paths of hits are relative to."""

    @property
    def home(self) -> Path:
        """The folder of the index; the same as the root where a workspace has no files."""

    def search_many(
        self, requests: Sequence[SearchRequest], *, refresh: bool = False, on_progress: Progress | None = None
    ) -> Iterator[SearchAnswer]:
        """Answer requests one after another. With `refresh` the index takes in what has changed on disk, once."""

    def explain(
        self, request: SearchRequest, name: str, *, refresh: bool = False, on_progress: Progress | None = None
    ) -> Explanation:
        """Why a document is in the answer to a request, or what keeps it out."""

    def fetch(self, name: str, *, context: int = 0) -> FetchedDocument:
        """A document, or a passage of it."""

    def similar(self, name: str, limit: int = 10) -> SearchAnswer:
        """The documents that are most like one."""

    def suggest(self, text: str, limit: int = 10) -> tuple[Completion, ...]:
        """How a text that is being typed may go on."""

    def finish(self) -> Reading | None:
        """Have done what follows searches; tells whether the model has begun to embed."""


class SearchStatistics(Protocol):
    """The counters that a server keeps of searches."""

    def failed(self) -> None:
        """Count a search that has failed."""

    def answered(self, strategy: str, seconds: float, *, degraded: int = 0, cached: bool = False) -> None:
        """Count a search that was answered."""


class Refreshed(NamedTuple):
    """The degradations that a refresh of the index has left, and how long it took."""

    notes: Sequence[Degradation] = ()
    seconds: float = 0.0


_NOT_REFRESHED = Refreshed()


class LocalClient:
    """Answers as if nothing else were there than what the principals may see. Nothing can be changed through it."""

    def __init__(
        self,
        engine: Engine,
        principals: tuple[str, ...] | None = None,
        *,
        settings: Settings | None = None,
        answers: AnswerCache | None = None,
        statistics: SearchStatistics | None = None,
        served_by: str = "",
        longest_s: float = 0.0,
        reads_files: bool = True,
    ) -> None:
        """Without principals it is the owner who looks, who may also ask on behalf of others.

        With `settings`, `finish` has done what they say about background work. `answers` are kept, `statistics` count
        searches, `served_by` stands in every answer, and no search takes more than `longest_s` unless that is 0.
        Unless it `reads_files`, it refuses to refresh the index. Raises InvalidValueError for what is no principal.
        """
        self.engine = engine
        self.principals = None if principals is None else _checked(principals)
        self._settings = settings
        self._answers, self._statistics = answers, statistics
        self._served_by, self._longest_s = served_by, longest_s
        self._is_unread = False
        self._reads_files = reads_files

    @property
    def root(self) -> Path:
        """The folder that paths of hits are relative to."""
        return self.engine.root

    @property
    def home(self) -> Path:
        """The folder of the index."""
        return self.engine.home

    # Searching

    def search(
        self,
        request: SearchRequest | str,
        *,
        refresh: bool = False,
        on_progress: Progress | None = None,
        refreshed: Refreshed = _NOT_REFRESHED,
        **options: Any,
    ) -> SearchAnswer:
        """Answer a question from the index as it is; options are the fields of SearchRequest.

        With `refresh` the index first takes in what has changed on disk; `refreshed` says that it just has, and how
        that went. Raises as `Engine.search` does.
        """
        self._check_refresh(refresh, on_progress)
        asked, started = self._asked(request, options), time.perf_counter()
        try:
            answer, is_kept = self._answer(asked, refresh, on_progress, refreshed.notes)
        except FindlingError:
            if self._statistics is not None:
                self._statistics.failed()
            raise
        seconds = time.perf_counter() - started + refreshed.seconds
        timings = {"kept": round(seconds * 1000, 3)} if is_kept else dict(answer.timings_ms)
        if refreshed.seconds and not is_kept:
            timings["refresh"] = round(timings.get("refresh", 0.0) + refreshed.seconds * 1000, 3)
        answer = replace(answer, timings_ms=timings_for(asked.principals, timings))
        if self._statistics is not None:
            degraded = len(answer.degraded)
            self._statistics.answered(answer.strategy, seconds, degraded=degraded, cached=is_kept)
        self._is_unread = answer.meaning.get("coverage", 1) < 1 and not answer.meaning["sent_to"]
        return replace(answer, served_by=self._served_by) if self._served_by else answer

    def search_many(
        self, requests: Sequence[SearchRequest], *, refresh: bool = False, on_progress: Progress | None = None
    ) -> Iterator[SearchAnswer]:
        """Answer requests one after another; with `refresh` the first one refreshes the index for all of them."""
        for request in requests:
            yield self.search(request, refresh=refresh, on_progress=on_progress)
            refresh = False

    def search_in_stages(self, request: SearchRequest | str, **options: Any) -> Iterator[tuple[str, SearchAnswer]]:
        """A quick answer as `candidates`, and then the whole one as `reranked`."""
        asked = self._asked(request, options)
        yield "candidates", self.search(replace(asked, quick=True))
        if not asked.quick:
            yield "reranked", self.search(asked)

    def finish(self) -> Reading | None:
        """Have done what is worthwhile after searches; tells whether the model has begun to embed.

        The model embeds in a process of its own what the latest search lacked, and unused space is given back.
        """
        if self._settings is None:
            return None
        from findling.service.engine.background import give_space_back, read_on, reap

        reap()
        reading = read_on(self.engine, self._settings) if self._is_unread else None
        give_space_back(self.engine, self._settings)
        self._is_unread = False
        return reading

    def cursor_after(self, request: SearchRequest, answer: SearchAnswer, count: int) -> str:
        """The cursor behind the first `count` hits of an answer, for a face that shows no more; empty for none.

        It is the one that the same search with that limit would have given, without asking again.
        """
        if count >= len(answer.hits):
            return answer.next_cursor
        if count < 1:
            return ""
        from findling.pipelines.answer.cursors import cursor_after

        asked = self.engine.asked_as(self._asked(request, {}))
        # Later pages are those of the workspace itself.
        own = [hit for hit in answer.hits[:count] if not hit.workspace]
        return cursor_after(asked, own, self.group_of)

    # Reading

    def explain(
        self,
        request: SearchRequest | str,
        name: str,
        *,
        refresh: bool = False,
        on_progress: Progress | None = None,
        **options: Any,
    ) -> Explanation:
        """Why a document is in the answer to a question, or what keeps it out, as `Engine.explain` does."""
        self._check_refresh(refresh, on_progress)
        return self.engine.explain(self._asked(request, options), name, refresh=refresh, on_progress=on_progress)

    def fetch(self, name: str, *, context: int = 0) -> FetchedDocument:
        """One document, as `Engine.fetch` gives it."""
        return self.engine.fetch(name, context=context, principals=self.principals)

    def passages(self, ids: Sequence[str]) -> dict[str, str]:
        """The whole texts of hits, as `Engine.passages` gives them."""
        return self.engine.passages(ids, principals=self.principals)

    def texts(self, hits: Sequence[Hit]) -> list[str | None]:
        """The whole text of each hit; `None` for one that is gone since it was found.

        One look serves all of them: to fetch each reads its whole document again, 100 times 12 MB in 35 CPU seconds.
        """
        known = self.passages([hit.id for hit in hits]) if hits else {}
        return [known[hit.id] if hit.id in known else self._text_above(hit) for hit in hits]

    def similar(self, name: str, limit: int = 10) -> SearchAnswer:
        """The documents that are most like one, as `Engine.similar` finds them."""
        return self.engine.similar(name, limit, principals=self.principals)

    def suggest(self, text: str, limit: int = 10) -> tuple[Completion, ...]:
        """How a text may go on, as `Engine.suggest` does."""
        return self.engine.suggest(text, limit, principals=self.principals)

    def ls(self, prefix: str = "") -> Iterator[Resource]:
        """The resources in order of their ids, or those at and below a path."""
        return self.engine.ls(prefix, principals=self.principals)

    def status(self) -> dict[str, Any]:
        """The contents of the workspace: everything for its owner, for others how much of it they may see."""
        return self.engine.status_for(self.principals)

    def group_of(self, hit: Hit, by: str) -> str:
        """The group of a hit, as `Engine.group_of` names it."""
        return self.engine.group_of(hit, by, principals=self.principals)

    # Inside

    def _check_refresh(self, refresh: bool, on_progress: Progress | None) -> None:
        if not self._reads_files and (refresh or on_progress is not None):
            raise TypeError("a viewer reads no files; refresh the index through its engine")

    def _asked(self, request: SearchRequest | str, options: dict[str, Any]) -> SearchRequest:
        asked = request_with(request, options)
        if self.principals is not None:
            asked = replace(asked, principals=self.principals)  # a limited caller does not choose its own rights
        if self._longest_s:
            asked = replace(asked, timeout_s=min(asked.timeout_s or self._longest_s, self._longest_s))
        return asked

    def _answer(
        self, asked: SearchRequest, refresh: bool, on_progress: Progress | None, notes: Sequence[Degradation]
    ) -> tuple[SearchAnswer, bool]:
        """The answer, and whether it is one that was kept."""
        if self._answers is None or refresh or notes:
            return self.engine.search(asked, refresh=refresh, on_progress=on_progress, notes=notes), False
        try:
            return self._kept_or_found(asked, self._answers)
        except ReplacedError:
            return self._kept_or_found(asked, self._answers)

    def _kept_or_found(self, asked: SearchRequest, answers: AnswerCache) -> tuple[SearchAnswer, bool]:
        from findling.service.engine.answer_cache import cache_key

        scoped = self.engine.prepare(asked)
        key = cache_key(self.engine, scoped)
        found = answers.get(key)
        if found is not None:
            return found, True
        answer = self.engine.search(scoped, refresh=False)
        # A change in the meantime may be in one part of it and not in the other.
        if self.engine.state() == key.state:
            answers.put(key, answer)
        return answer, False

    def _text_above(self, hit: Hit) -> str | None:
        """The text of a hit of the folders above."""
        try:
            return self.fetch(hit.id).text
        except NotFoundError:
            return None


def _checked(principals: tuple[str, ...]) -> tuple[str, ...]:
    from findling.domain.permissions import check_principal

    return tuple([check_principal(one) for one in principals])
