"""The engine: everything findling does, for every face that people and programs use."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from findling.domain.errors import InvalidValueError, NotFoundError, NotIndexedError
from findling.domain.queries import HERE, SCOPES, Field, Filters, Not, SearchRequest
from findling.domain.values import changed
from findling.service.engine.reach import ReachingEngine
from findling.service.settings.settings import Settings, load_settings
from findling.service.workspace.scope import (
    OWN,
    PERSON,
    Scoped,
    is_below,
    of_a_part,
    placed,
    prepared,
    request_with,
    timings_for,
    with_condition,
)
from findling.service.workspace.workspace import Workspace, backend_at, home_folder, is_name, locate, workspaces_above

if TYPE_CHECKING:
    from findling.domain.reports import Progress, RelatedAnswer
    from findling.domain.resources import Resource
    from findling.domain.results import Degradation, Explanation, Hit, SearchAnswer
    from findling.pipelines.lookup.suggest import Completion
    from findling.service.content.memories import WorkspaceMemories
    from findling.service.index.documents import FetchedDocument


def open_engine(
    path: str | Path | None = None, *, workspace: str | None = None, settings: Settings | None = None
) -> Engine:
    """Open the workspace that `path` belongs to; nothing is written before something is indexed.

    Without a path it is the one that the project file names, or the current folder. Raises PathNotFoundError when the
    path is not there, UntrustedSettingError when a project file leads out of its project; as `load_settings` does.
    """
    settings = settings or load_settings("." if path is None else path)
    settings, path = placed(settings, path, workspace or "")
    name = workspace or settings["workspace.name"] or settings["context.workspace"]
    found = locate(path, home=home_folder(settings["store.home"]), name=name, place=settings["store.place"])
    if os.fsencode(found.root).decode(errors="replace") != str(found.root):
        raise InvalidValueError(f"the name of {found.root} is not UTF-8", hint="rename the folder")
    return Engine(found, settings)


class Engine(ReachingEngine):
    """One workspace, opened: index into it, search in it, look after it. Use it as a context manager.

    Engines for several parts of a root, and under several settings, may share one opened index.
    """

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Release files; closing twice is fine."""
        self.opened.close()

    def as_caller(self, *principals: str) -> Viewer:
        """The workspace as these principals may see it. Raises InvalidValueError for what is no principal."""
        return Viewer(self, principals)

    # Searching

    def search(
        self,
        request: SearchRequest | str | Scoped,
        *,
        refresh: bool = True,
        on_progress: Progress | None = None,
        notes: Sequence[Degradation] = (),
        **options: Any,
    ) -> SearchAnswer:
        """Answer a question, which may be prepared; options are the fields of SearchRequest.

        With `refresh`, a first search indexes, and every later one indexes what has changed on disk. With `quick` that
        is only what a first answer needs, if there is much; the plan then says what share is `indexed`. `notes` are
        those of an earlier `refresh`. The owner finds items of the folders above, too, unless there is a cursor.
        Raises NotIndexedError when there is nothing to search and `refresh` is off.
        """
        started = time.perf_counter()
        scoped = request if isinstance(request, Scoped) else self.prepare(request, **options)
        asked, principals = scoped.request, scoped.request.principals
        if asked.scope != SCOPES[0]:
            from findling.service.engine.parent_items import answer_of_several

            return answer_of_several(scoped, self, self.meant(asked.scope, principals), refresh=refresh)
        notes = list(notes) or self._ready(refresh, on_progress, asked)
        share = self.share() if notes and principals is None else {}
        is_partial = bool(notes) and not self.is_indexed()
        asked = self._without_others(of_a_part(asked) if is_partial else asked)
        timings = {"refresh": round((time.perf_counter() - started) * 1000, 3)}
        above = self._asked_above(asked)
        if above:
            from findling.service.engine.parent_items import to_be_fused, with_items_above

            asked = to_be_fused(asked)
        from findling.pipelines.answer.search import search

        lines = self._settings["search.snippet_lines"]
        answer = self.opened.read(principals, notes, search, asked, scoped.parsed, lines, notes)
        answer = self._told(answer, scoped, share, timings, is_partial=is_partial)
        return with_items_above(answer, scoped, self, above) if above else answer

    def _told(
        self,
        answer: SearchAnswer,
        scoped: Scoped,
        share: Mapping[str, int],
        timings: Mapping[str, float],
        *,
        is_partial: bool,
    ) -> SearchAnswer:
        """The answer with its scope, plan and times; the owner learns of a rule that leaves out what was asked."""
        principals = scoped.request.principals
        rule = self._rule_at(self.scope) if answer.quality == "none" and principals is None else None
        return changed(
            answer,
            degraded=answer.degraded if rule is None else tuple(dict.fromkeys((*answer.degraded, rule))),
            scope=scoped.context,
            unknown_terms=() if is_partial else answer.unknown_terms,
            plan={**answer.plan, **scoped.account(), **({"indexed": share} if share else {})},
            timings_ms=timings_for(principals, {**timings, **answer.timings_ms}),
        )

    def search_items(self, request: SearchRequest, *, refresh: bool | None = None) -> SearchAnswer:
        """Answer a question that was put to another workspace; with notes on what its files lack unless None."""
        from findling.pipelines.answer.search import search

        self.opened.require()
        self._files.level_leg()
        asked = self.prepare(request).request
        if refresh is not None and not self.is_indexed() and not self.status().resources:
            # A first run may take long, and read files that nobody meant.
            raise NotIndexedError("it has not been indexed yet", hint=f"findling index {self.root}")
        notes = [] if refresh is None else self._ready(refresh and self.is_indexed(), None, asked)
        own, lines = self._without_others(asked), self._settings["search.snippet_lines"]
        return self.opened.read(asked.principals, notes, search, own, None, lines, notes)

    def explain(
        self,
        request: SearchRequest | str,
        name: str,
        *,
        refresh: bool = True,
        on_progress: Progress | None = None,
        **options: Any,
    ) -> Explanation:
        """Say why a document is in the answer to a question, or what keeps it out.

        `name` is the id of a hit or a resource, or a path, also with a line as in `notes.md:12`. Raises NotFoundError
        when there is no such thing in the index.
        """
        from findling.pipelines.lookup.explain import explain

        asked = (scoped := self.prepare(request, **options)).request
        if asked.scope != SCOPES[0]:
            raise InvalidValueError("one workspace explains its hits", hint="ask the workspace of the hit")
        notes = self._ready(refresh, on_progress, asked)
        above = self._asked_above(replace(asked, cursor=""))

        def here() -> Explanation:
            own = self._without_others(asked)
            return self.opened.read(asked.principals, notes, explain, own, name, self.scope, degraded=notes)

        if not above:
            return here()
        from findling.service.engine.parent_items import explained_with

        return explained_with(here, name, scoped, self, above)

    # Reading

    def fetch(
        self, name: str, *, context: int = 0, principals: tuple[str, ...] | None = None, workspace: str = ""
    ) -> FetchedDocument:
        """Give a document, or the passage of it that a name stands for, with what is known about it.

        `name` is as for `explain`, `workspace` that of a hit. Raises NotFoundError when there is no such thing.
        """
        from findling.service.index.documents import fetch

        if workspace not in ("", self.label):
            return self.at(self.named([workspace], principals)[0]).fetch(name, context=context, principals=principals)
        self._notes("", None)
        try:
            return self.opened.read(principals, [], fetch, name, context=context, below=self.scope)
        except NotFoundError:
            above = self.above() if principals is None else ()
            if not above:
                raise
            from findling.service.engine.parent_items import first_item

            return first_item(name, above, lambda one: one.fetch(name, context=context))

    def passages(self, ids: Sequence[str], *, principals: tuple[str, ...] | None = None) -> dict[str, str]:
        """Give the whole texts of hits by their ids, without those that are gone."""
        from findling.service.index.documents import passages

        self.opened.require()
        return self.opened.read(principals, [], passages, ids)

    def similar(self, name: str, limit: int = 10, *, principals: tuple[str, ...] | None = None) -> SearchAnswer:
        """Find the documents that are most like one, by meaning or by words. Raises as `fetch` does."""
        from findling.pipelines.lookup.similar import similar

        self._notes("", None)
        return self.opened.read(principals, [], similar, name, limit, below=self.scope)

    def suggest(
        self, text: str, limit: int = 10, *, principals: tuple[str, ...] | None = None
    ) -> tuple[Completion, ...]:
        """Complete a text that is being typed."""
        from findling.pipelines.lookup.suggest import suggest

        self._notes("", None)
        return self.opened.read(principals, [], suggest, text, limit)

    def ls(self, prefix: str = "", *, principals: tuple[str, ...] | None = None) -> Iterator[Resource]:
        """List the resources of the index in order of their ids, or those at and below a path."""
        is_everywhere = not prefix.strip("/.")
        below = "/".join(part for part in (self.scope, prefix.strip("/")) if part and part != ".")
        self.opened.require()
        resources = self.opened.at(principals).store.resources()
        return (one for one in resources if is_below(one.path, below) or (is_everywhere and not one.path))

    def group_of(self, hit: Hit, by: str, *, principals: tuple[str, ...] | None = None) -> str:
        """The group of a hit. The id stands for a hit that is gone since it was found."""
        from findling.domain.resources import Resource
        from findling.pipelines.answer.rankings import group_of

        fields: dict[str, str] = {}
        if by == "thread" and hit.type == "chat":
            with suppress(NotFoundError):
                fields = dict(self.fetch(hit.rid, principals=principals).fields)
        return group_of(Resource(rid=hit.rid, type=hit.type, fields=fields), by)

    def above(self) -> list[Self]:
        """The workspaces above and the personal one that hold items, nearest first. They are not to be closed."""
        return [self._beside(place) for place in self._places_above() if self._holds_items(place)]

    @property
    def memories(self) -> WorkspaceMemories:
        """Memories: small texts to be recalled."""
        from findling.service.content.memories import WorkspaceMemories

        def search(request: SearchRequest) -> SearchAnswer:
            return self.alone().search(request, refresh=False)

        def others() -> Iterator[WorkspaceMemories]:
            return (one.memories for one in (*self.above(), *self.elsewhere()))

        return WorkspaceMemories(self.writer, search, self.label, others, part=self.scope, kept_apart=self.kept_apart)

    # Inside

    def kept_apart(self, principals: tuple[str, ...] | None) -> set[str]:
        """The ids of memories that other folders keep for themselves and those below; one that is gone keeps none."""
        if is_name(self.home.name) or not self._files.exists:
            return set()  # a name means its workspace alone
        keepers, nearer = (self._files.store.get_meta(HERE) or "").split("//"), (self.asked, *self.asked.parents)
        # Not `Path.exists`, which raises OSError for a name that is too long.
        apart = [one for one in keepers if (at := self.root / one) not in nearer and os.path.exists(at)]  # noqa: PTH110
        if not apart or keepers == [""]:
            return set()
        store = self.opened.at(principals).store
        kept = store.matching(Filters(type=("memory",), where=Field(HERE, tuple(apart))))
        return {one.rid for one in store.rights(among=set(kept))}

    def _without_others(self, asked: SearchRequest) -> SearchRequest:
        """The request without memories that other folders keep, unless all of them are asked."""
        apart = self.kept_apart(asked.principals) if asked.scope == SCOPES[0] else ()
        ids = Not(Field("rid", tuple(sorted(apart))))
        return replace(asked, filters=with_condition(asked.filters, ids)) if apart else asked

    def prepare(self, request: SearchRequest | str, **options: Any) -> Scoped:
        """A request as the legs are asked: with its plan, and limited to the part of the root that was opened."""
        asked = request_with(request, options)
        if asked.scope != SCOPES[0]:
            if asked.cursor:
                raise InvalidValueError("an answer of several workspaces has no cursor", hint="use an offset")
            asked = replace(asked, within=asked.within or "", in_context=False)
        return prepared(asked, self._settings, self.scope, self._plan_of)

    def question(self, request: SearchRequest | Scoped) -> str:
        """A key of the request, its index and its settings: equal keys get equal answers."""
        scoped = request if isinstance(request, Scoped) else self.prepare(request)
        return f"{self._described} {scoped.request!r}"

    def state(self) -> object:
        """A value that differs as soon as anything has changed that answers depend on."""
        self._files.let_go_if_replaced()
        store = self._files.store
        # The numbers tell every change of content and rights; the files also one of the glossary, and of vectors.
        above = [backend_at(place.folder).version() for place in self._places_above()]
        return store.get_meta("store_id"), store.seq(), store.relations_version(), self._files.backend.version(), *above

    @cached_property
    def _described(self) -> str:
        """The index, and the settings that are not the default."""
        own = {name: self._settings[name] for name in self._settings if self._settings.origin(name) != "default"}
        return repr((self.home, self.scope, own))

    def _ready(self, refresh: bool, on_progress: Progress | None, asked: SearchRequest) -> list[Degradation]:
        query = asked.query if asked.quick else None
        return self._fresh(query, principals=asked.principals, refresh=refresh, on_progress=on_progress)

    def _asked_above(self, asked: SearchRequest) -> list[Self]:
        """The workspaces above whose items answer a request: the owner's, whose page is the first and names no path."""
        is_theirs = asked.principals is None and not asked.cursor and not asked.filters.path
        return self.above() if is_theirs and asked.scope == SCOPES[0] else []

    def _places_above(self) -> list[Workspace]:
        is_person = self._reach >= PERSON
        return workspaces_above(self.home, self._top, self._homes, personal=is_person) if self._reach > OWN else []


class Viewer:
    """Answers as if nothing else were there than what the principals may see. Nothing can be changed through it."""

    def __init__(self, engine: Engine, principals: tuple[str, ...] | None = None) -> None:
        """Without principals the owner looks. Raises InvalidValueError for what is no principal."""
        if principals is not None:
            from findling.domain.permissions import check_principal

            principals = tuple([check_principal(one) for one in principals])
        self.engine, self.principals = engine, principals

    @property
    def root(self) -> Path:
        """The folder that paths of hits are relative to."""
        return self.engine.root

    @property
    def home(self) -> Path:
        """The folder of the index."""
        return self.engine.home

    def search(self, request: SearchRequest | str, **options: Any) -> SearchAnswer:
        """Answer a question from the index as it is; options are the fields of SearchRequest."""
        return self.engine.search(self._asked(request, options), refresh=False)

    def search_in_stages(self, request: SearchRequest | str, **options: Any) -> Iterator[tuple[str, SearchAnswer]]:
        """A quick answer as `candidates`, and then the whole one as `reranked`."""
        asked = self._asked(request, options)
        yield "candidates", self.search(replace(asked, quick=True))
        if not asked.quick:
            yield "reranked", self.search(replace(asked, patient=True))

    def explain(self, request: SearchRequest | str, name: str, **options: Any) -> Explanation:
        """Say why a document is in the answer to a question, or what keeps it out, as `Engine.explain` does."""
        return self.engine.explain(self._asked(request, options), name, refresh=False)

    def fetch(self, name: str, *, context: int = 0, workspace: str = "") -> FetchedDocument:
        """Give a document, as `Engine.fetch` does."""
        return self.engine.fetch(name, context=context, principals=self.principals, workspace=workspace)

    def passages(self, ids: Sequence[str]) -> dict[str, str]:
        """Give the whole texts of hits, as `Engine.passages` does."""
        return self.engine.passages(ids, principals=self.principals)

    def similar(self, name: str, limit: int = 10) -> SearchAnswer:
        """Find the documents that are most like one, as `Engine.similar` does."""
        return self.engine.similar(name, limit, principals=self.principals)

    def related(self, of: str, to: str = "", *, limit: int = 10, hops: int = 4) -> RelatedAnswer:
        """Find the paths between two things, as `Engine.related` does."""
        return self.engine.related(of, to, limit=limit, hops=hops, principals=self.principals)

    def suggest(self, text: str, limit: int = 10) -> tuple[Completion, ...]:
        """Complete a text, as `Engine.suggest` does."""
        return self.engine.suggest(text, limit, principals=self.principals)

    def ls(self, prefix: str = "") -> Iterator[Resource]:
        """List the resources in order of their ids, or those at and below a path."""
        return self.engine.ls(prefix, principals=self.principals)

    def status(self) -> dict[str, Any]:
        """The contents of the workspace: everything for its owner, for others how much of it they may see."""
        return self.engine.status_for(self.principals)

    def _asked(self, request: SearchRequest | str, options: dict[str, Any]) -> SearchRequest:
        asked = request_with(request, options)
        return asked if self.principals is None else replace(asked, principals=self.principals)  # never chosen by it
