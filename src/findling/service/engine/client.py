"""The client that faces search through: an engine of this process, the answers it keeps, and what follows a search."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from findling.domain.errors import FindlingError, NotFoundError, ReplacedError
from findling.domain.results import Degradation
from findling.domain.values import changed
from findling.service.engine.engine import Engine, Viewer
from findling.service.workspace.scope import timings_for

if TYPE_CHECKING:
    from findling.domain.queries import SearchRequest
    from findling.domain.reports import GlobAnswer, GrepAnswer, GrepRequest, OutlineAnswer, Progress, RefsAnswer
    from findling.domain.results import Explanation, Hit, SearchAnswer, ThemesAnswer
    from findling.service.engine.background import Embedding
    from findling.service.engine.engine import Engine
    from findling.service.settings.settings import Settings
    from findling.service.workspace.scope import Scoped

_MOST_HITS = 50
"""Of an answer that is kept: 512 answers of that size take some 40 MB."""

_MOST_CONTEXT = 5
"""Lines around a hit of an answer that is kept, for the same reason."""

_LONGEST_S = 60.0
"""Seconds for which an answer is kept: where recency counts, it changes without any change of the index."""


class CacheKey(NamedTuple):
    """A question, the state of the index that it was asked of, and whether its answer is small enough."""

    asked: str
    state: object
    is_small: bool


def cache_key(engine: Engine, scoped: Scoped) -> CacheKey:
    """The key of a prepared request at this moment."""
    request = scoped.request
    is_small = request.limit <= _MOST_HITS and request.context <= _MOST_CONTEXT
    return CacheKey(engine.question(scoped), engine.state(), is_small)


class _Given(NamedTuple):
    state: object
    at: float
    answer: SearchAnswer


class AnswerCache:
    """The latest answers, at most `most` of them; may be shared between threads."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._given: OrderedDict[str, _Given] = OrderedDict()
        self._guard = threading.Lock()

    def get(self, key: CacheKey) -> SearchAnswer | None:
        """The answer that was given under this key, if the index is as it was then."""
        with self._guard:
            given = self._given.get(key.asked)
            if given is None:
                return None
            if given.state == key.state and time.monotonic() - given.at <= _LONGEST_S:
                return given.answer
            del self._given[key.asked]
            return None

    def put(self, key: CacheKey, answer: SearchAnswer) -> None:
        """Keep an answer, unless it lacks something or the model still embeds: the next answer would differ."""
        is_being_read = bool(answer.meaning.get("model")) and answer.meaning["coverage"] < 1
        if not self._most or not key.is_small or answer.degraded or is_being_read:
            return
        with self._guard:
            self._given.pop(key.asked, None)
            self._given[key.asked] = _Given(key.state, time.monotonic(), answer)
            while len(self._given) > self._most:
                self._given.popitem(last=False)

    def clear(self) -> None:
        """Forget all of them."""
        with self._guard:
            self._given.clear()


class SearchStatistics(Protocol):
    """The counters that a server keeps of searches."""

    def failed(self) -> None:
        """Count a search that has failed."""

    def answered(self, strategy: str, seconds: float, *, degraded: int = 0, cached: bool = False) -> None:
        """Count a search that was answered."""


class Refreshed(NamedTuple):
    """The degradations that a refresh of the index has left, and its duration."""

    notes: Sequence[Degradation] = ()
    seconds: float = 0.0


_NOT_REFRESHED = Refreshed()


class LocalClient(Viewer):
    """A viewer for faces: it may refresh the index, keep answers, count searches, and start what follows them."""

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
    ) -> None:
        """Without principals the owner looks, who may also ask on behalf of others.

        `settings` say what `finish` starts. `answers` are kept, `statistics` count searches, `served_by` stands in
        every answer, and no search takes more than `longest_s` unless that is 0.
        """
        super().__init__(engine, principals)
        self._settings, self._answers, self._statistics = settings, answers, statistics
        self._served_by, self._longest_s = served_by, longest_s
        self._lacks_vectors = False

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

        With `refresh` the index first absorbs what has changed on disk; `refreshed` says that it just has. Raises as
        `Engine.search` does.
        """
        started, is_kept = time.perf_counter(), False
        asked = self._asked(request, options)
        try:
            if self._answers is None or refresh or refreshed.notes or asked.scope == "all":
                answer = self.engine.search(asked, refresh=refresh, on_progress=on_progress, notes=refreshed.notes)
            else:
                answer, is_kept = self._kept_or_found(asked, self._answers)
        except FindlingError:
            if self._statistics is not None:
                self._statistics.failed()
            raise
        seconds = time.perf_counter() - started + refreshed.seconds
        timings = {"kept": round(seconds * 1000, 3)} if is_kept else dict(answer.timings_ms)
        if refreshed.seconds and not is_kept:
            timings["refresh"] = round(timings.get("refresh", 0.0) + refreshed.seconds * 1000, 3)
        if self._statistics is not None:
            self._statistics.answered(answer.strategy, seconds, degraded=len(answer.degraded), cached=is_kept)
        self._lacks_vectors = answer.meaning.get("coverage", 1) < 1 and not answer.meaning["sent_to"]
        return changed(answer, timings_ms=timings_for(asked.principals, timings), served_by=self._served_by)

    def explain(
        self,
        request: SearchRequest | str,
        name: str,
        *,
        refresh: bool = False,
        on_progress: Progress | None = None,
        **options: Any,
    ) -> Explanation:
        """Say why a document is in the answer to a question, or what keeps it out, as `Engine.explain` does."""
        if refresh:
            self.engine.check_path(name, self.principals)
        return self.engine.explain(self._asked(request, options), name, refresh=refresh, on_progress=on_progress)

    def grep(self, asked: GrepRequest, notes: Sequence[Degradation] = ()) -> GrepAnswer:
        """All lines that match, of the index as it is; `notes` are those of an earlier refresh.

        Raises as `WorkspaceExact.grep` does.
        """
        from findling.domain.budgets import spending

        with spending() as budget:
            budget.end_within(self._longest_s)
            return self.engine.exact.grep(replace(asked, principals=self.principals), refresh=False, notes=notes)

    def glob(self, patterns: Sequence[str], **options: Any) -> GlobAnswer:
        """All files that a glob matches, as `WorkspaceExact.glob` lists them, of the index as it is."""
        return self.engine.exact.glob(patterns, principals=self.principals, refresh=False, **options)

    def refs(self, name: str, **options: Any) -> RefsAnswer:
        """All lines of code with a name, as `WorkspaceExact.refs` lists them, of the index as it is."""
        from findling.domain.budgets import spending

        with spending() as budget:
            budget.end_within(self._longest_s)
            return self.engine.exact.refs(name, principals=self.principals, refresh=False, **options)

    def outline(self, name: str) -> OutlineAnswer:
        """The definitions of a file, as `WorkspaceExact.outline` lists them, of the index as it is."""
        return self.engine.exact.outline(name, principals=self.principals, refresh=False)

    def themes(self, limit: int = 20) -> ThemesAnswer:
        """The themes with most documents, as `WorkspaceThemes.top` lists them."""
        return self.engine.themes.top(limit, principals=self.principals)

    def theme_passages(self, name: str, limit: int = 10) -> SearchAnswer:
        """The best passages of a theme, as `WorkspaceThemes.passages` finds them."""
        return self.engine.themes.passages(name, limit, principals=self.principals)

    def finish(self) -> Embedding | None:
        """Start what is worthwhile after searches; the embedding run that has begun.

        A process indexes what a quick search has left out. The model embeds in a process of its own what the latest
        search lacked, and another one releases unused space.
        """
        if self._settings is None:
            return None
        embedding, has_left_open = None, self.engine.take_left_open()
        if has_left_open or self.engine.opened.lacks_leg:
            from findling.service.engine.background import index_on

            index_on(self.engine, self._settings)  # which brings up the leg that was missed, too
        if self._lacks_vectors and not has_left_open:  # the process that indexes starts the one that embeds
            from findling.service.engine.background import read_on

            embedding = read_on(self.engine, self._settings)
        self._lacks_vectors = False
        if self.engine.queue.has_written:
            from findling.service.engine.background import give_space_back

            give_space_back(self.engine, self._settings)
        return embedding

    def cursor_after(self, request: SearchRequest, answer: SearchAnswer, count: int) -> str:
        """The cursor behind the first `count` hits of an answer, for a face that shows no more; empty for none.

        It is the one that the same search with that limit would have given, without asking again.
        """
        if count >= len(answer.hits) or request.scope == "all":
            return answer.next_cursor
        if count < 1:
            return ""
        from findling.pipelines.answer.cursors import cursor_after

        asked = self.engine.prepare(self._asked(request, {})).request
        # Later pages are those of the workspace itself.
        own = [hit for hit in answer.hits[:count] if not hit.workspace]
        return cursor_after(asked, own, lambda hit, by: self.engine.group_of(hit, by, principals=self.principals))

    def texts(self, hits: Sequence[Hit]) -> list[str | None]:
        """The whole text of each hit; `None` for one that is gone since it was found.

        One look serves all of them: to fetch each reads its whole document again, 100 times 12 MB in 35 CPU seconds.
        """
        own = [hit.id for hit in hits if not hit.workspace]
        known = self.passages(own) if own else {}
        return [self._text_beside(hit) if hit.workspace else known.get(hit.id) for hit in hits]

    def _asked(self, request: SearchRequest | str, options: dict[str, Any]) -> SearchRequest:
        asked = super()._asked(request, options)
        if self._longest_s:
            asked = replace(asked, timeout_s=min(asked.timeout_s or self._longest_s, self._longest_s))
        return asked

    def _kept_or_found(
        self, asked: SearchRequest, answers: AnswerCache, *, again: bool = True
    ) -> tuple[SearchAnswer, bool]:
        """The answer, and whether it was kept. A store that is replaced meanwhile is asked `again`."""
        try:
            scoped = self.engine.prepare(asked)
            key = cache_key(self.engine, scoped)
            found = answers.get(key)
            if found is not None:
                return found, True
            answer = self.engine.search(scoped, refresh=False)
            # A change in the meantime may be in one part of it and not in the other. The state is that of before, which
            # never comes back: nobody is given such an answer again.
            answers.put(key, answer)
        except ReplacedError:
            if not again:
                raise
            return self._kept_or_found(asked, answers, again=False)
        return answer, False

    def _text_beside(self, hit: Hit) -> str | None:
        """The text of a hit of another workspace."""
        try:
            return self.fetch(hit.id, workspace=hit.workspace).text
        except NotFoundError:
            return None
