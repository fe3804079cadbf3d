"""Base of all adapters: open a workspace, search it, and return whole passages with their metadata."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple, Self, TypedDict

from findling.domain.errors import InvalidValueError, MissingExtraError, NotFoundError, UsageError
from findling.domain.permissions import check_principal
from findling.domain.queries import Filters
from findling.domain.results import Hit, SearchAnswer
from findling.domain.values import closest_name
from findling.service.client.written_requests import filters_from
from findling.service.engine.client import LocalClient
from findling.service.engine.engine import Engine, Viewer, open_engine
from findling.service.settings.settings import load_settings
from findling.service.workspace.scope import request_with
from findling.service.workspace.workspace import home_folder
from findling.service.workspace.workspaces import find_workspace


class AdapterOptions(TypedDict, total=False):
    """Options of an adapter: fields of SearchRequest and of Plan.

    `filters` may be a table such as `{"ext": ["py"], "path": "src", "after": "2026-01-31"}`.
    """

    filters: Filters | Mapping[str, Any] | None
    exclude_pattern: str | None
    min_score: float
    profile: str
    in_context: bool
    within: str | None
    quick: bool
    timeout_s: float


class FoundText(NamedTuple):
    """A passage with its whole text; the values of `metadata` are plain ones."""

    id: str
    text: str
    score: float
    metadata: dict[str, str | int | float | None]


class Searcher:
    """Asks one workspace. It closes an engine that it opened, at the latest when it is garbage."""

    def __init__(
        self,
        *,
        path: str | Path | None = None,
        workspace: str | None = None,
        engine: Engine | Viewer | None = None,
        principals: str | Sequence[str] | None = None,
        refresh: bool = True,
        creates: bool = True,
        options: AdapterOptions,
    ) -> None:
        """Without an engine, the workspace is opened as `findling.open` does; a named one has to be there already.

        With `refresh` every search indexes changes on disk; the first one builds the index if it `creates` one. Raises
        UsageError for unknown or clashing options, NotFoundError for an unknown workspace; as `findling.open` does.
        """
        known = AdapterOptions.__annotations__
        if unknown := [name for name in options if name not in known]:
            raise InvalidValueError(f"there is no option {unknown[0]}", hint=closest_name(unknown[0], known))
        who = None if principals is None else checked_principals(principals)
        fields: dict[str, Any] = {**options, "filters": filters_from(options.get("filters"))}
        self._request = request_with("", {**fields, "principals": who})
        self._has_answered, self._guard = False, threading.Lock()
        self._opened: Engine | None = None
        if engine is None:
            engine = self._opened = _opened(path, workspace)
            weakref.finalize(self, engine.close)
        elif path is not None or workspace is not None:
            raise UsageError("an open engine has a workspace already", hint="leave out path and workspace")
        if isinstance(engine, Viewer):
            if who is not None:
                raise UsageError("a viewer has principals already", hint="leave out principals")
            self._client, self._refresh = LocalClient(engine.engine, engine.principals), False
        else:
            self._client = LocalClient(engine, who)
            self._refresh = refresh and (creates or engine.is_indexed())
        self.fetch = self._client.fetch

    def find(self, query: str, *, limit: int, filters: Filters | Mapping[str, Any] | None = None) -> list[FoundText]:
        """The passages that answer a query, best first; `filters` take the place of those that were set."""
        return self.in_full(self.ask(query, limit=limit, filters=filters))

    def ask(self, query: str, *, limit: int, filters: Filters | Mapping[str, Any] | None = None) -> SearchAnswer:
        """The answer to a query, as the engine gives it."""
        request = replace(self._request, query=query, limit=limit)
        if filters is not None:
            request = replace(request, filters=filters_from(filters))
        if self._has_answered:
            return self._client.search(request, refresh=self._refresh)
        # The first search may index for longer than others wait for it, and what an adapter gives has no place to say
        # that half of it is missing.
        with self._guard:
            answer = self._client.search(request, refresh=self._refresh)
            self._has_answered = True
        return answer

    def in_full(self, hits: Iterable[Hit]) -> list[FoundText]:
        """The hits with the whole text of each; what has gone since it was found is left out."""
        found = []
        for hit in hits:
            with suppress(NotFoundError):
                found.append(FoundText(hit.id, self.fetch(hit.id).text, hit.score, _metadata(hit)))
        return found

    def close(self) -> None:
        """Close what was opened here; closing twice is fine."""
        if self._opened is not None:
            self._opened.close()


class Closing:
    """An adapter that can be closed, and used as a context manager."""

    _searcher: Searcher

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the workspace if it was opened here; closing twice is fine."""
        self._searcher.close()


def checked_principals(given: str | Sequence[str]) -> tuple[str, ...]:
    """The principals; one text stands for one of them. Raises InvalidValueError for what is no principal."""
    return tuple([check_principal(one) for one in ([given] if isinstance(given, str) else given)])


def missing_extra(extra: str, package: str) -> MissingExtraError:
    """Error for an adapter whose library is not installed."""
    return MissingExtraError(f"{package} is not installed", hint=f"pip install 'findling[{extra}]'")


def _opened(path: str | Path | None, workspace: str | None) -> Engine:
    if workspace:
        # Opened under a name that was mistyped, the current folder would be indexed anew.
        find_workspace(workspace, home_folder(load_settings("." if path is None else path)["store.home"]))
    return open_engine(path, workspace=workspace)


def _metadata(hit: Hit) -> dict[str, str | int | float | None]:
    return {
        "id": hit.id,
        "rid": hit.rid,
        "path": hit.path,
        "type": hit.type,
        "title": hit.title,
        "heading": " › ".join(hit.heading),
        "line_start": hit.line_start,
        "line_end": hit.line_end,
        "line": hit.line,
        "place": hit.place,
        "author": hit.author,
        "at": hit.at,
        "score": hit.score,
        "keyword_score": hit.receipt.keyword_score,
        "vector_score": hit.receipt.vector_score,
        "fused_score": hit.receipt.fused_score,
    }
