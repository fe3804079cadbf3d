"""The caller of a request, and the parts that answer it, index runs among them; every route begins with them."""

from __future__ import annotations

import json
import logging
import threading
import time
from collections.abc import Callable, Coroutine
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Any, TypeVar

from fastapi import Depends, Request
from fastapi.dependencies.utils import request_body_to_args, request_params_to_args
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from pydantic_core import PydanticUndefined
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.types import Scope

from findling.domain.budgets import WorkBudget, spending
from findling.domain.errors import DeniedError, FindlingError, InvalidValueError
from findling.domain.permissions import OWNER, Caller
from findling.domain.queries import OFFERED
from findling.domain.reports import IndexProgress
from findling.faces.http.base.json_text import json_response, text_of
from findling.faces.http.request.fair_queue import Shares
from findling.service.engine.client import LocalClient
from findling.service.engine.engine import Engine
from findling.service.engine.executor import WorkLine
from findling.service.server.engine_pool import Host
from findling.service.server.search_process import GRACE_S

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


_Result = TypeVar("_Result")


@dataclass(frozen=True)
class Served:
    """The parts of one app, kept as `app.state.served`."""

    host: Host
    line: WorkLine
    identify: Callable[[Scope], Caller]
    runs: IndexRuns
    shares: Shares


@dataclass(frozen=True)
class Asked(Served):
    """One request: who sent it, and what answers it."""

    caller: Caller
    request: Request
    budget: WorkBudget

    async def run(self, work: Callable[[], _Result], *, stage: str = "") -> _Result:
        """Run work that must not block others. Raises as it and as `Shares.run` do.

        Its time is counted as that of the stage, if it has a name.
        """

        def counted() -> _Result:
            started = time.perf_counter()
            with spending(self.budget):
                result = work()
            if stage:
                self.host.statistics.observe(stage, "", time.perf_counter() - started)
            return result

        longest = self.host.settings["serve.timeout_s"] + GRACE_S
        return await self.shares.run(self.caller, counted, receive=self.request.receive, timeout_s=longest)

    async def run_beside(self, work: Callable[[], _Result]) -> _Result:
        """The same for work of the owner that must not wait behind the questions of others."""
        return await run_in_threadpool(work)

    async def write(self, work: Callable[[], _Result]) -> _Result:
        """The same for work that changes something: it is waited for, however long it takes."""
        return await self.line.run(work)

    async def answer(self, workspace: str, ask: Callable[[LocalClient], object], stage: str = "") -> Response:
        """The response with the answer of a client of the workspace, run as `run` does."""

        def work() -> bytes:
            with self.host.client(self.caller, workspace) as client:
                return text_of(ask(client), self.caller, str(client.root))

        return json_response(await self.run(work, stage=stage))

    async def report(self, workspace: str, tell: Callable[[Engine], object], stage: str = "") -> Response:
        """The report on the engine of the workspace, run as `run` does."""
        return json_response(await self.run(partial(self._told, workspace, tell), stage=stage))

    async def change(self, workspace: str, work: Callable[[Engine], object]) -> Response:
        """The report of work on the engine of the workspace that changes something, run as `write` does."""
        return json_response(await self.write(partial(self._told, workspace, work)))

    def _told(self, workspace: str, tell: Callable[[Engine], object]) -> bytes:
        with self.host.opened(self.caller, workspace) as engine:
            return text_of(tell(engine), self.caller, str(engine.root))


async def _reading(request: Request) -> Asked:
    return _allowed(request, "read")


async def _writing(request: Request) -> Asked:
    found = _allowed(request, "write")
    if not found.caller.is_owner:
        # What is written decides who may see it: somebody with limited rights could write over what they cannot see.
        hint = "findling token create NAME --as owner --scope write"
        raise DeniedError("only a token of the owner may change something", hint=hint)
    return found


async def _owning(request: Request) -> Asked:
    found = _allowed(request, "read")
    if not found.caller.is_owner:
        raise DeniedError("this is for the owner alone", hint="ask whoever runs the server")
    return found


def _allowed(request: Request, scope: str) -> Asked:
    served: Served = request.app.state.served
    caller = served.identify(request.scope)
    if not caller.may(scope):
        raise DeniedError(
            f"the token does not allow to {scope}", hint=f"findling token create NAME --as owner --scope {scope}"
        )
    return Asked(**vars(served), caller=caller, request=request, budget=served.host.budget(caller))


GATES = frozenset({_reading, _writing, _owning})
"""Dependencies that decide whether a caller may use a route at all."""

Reading = Annotated[Asked, Depends(_reading)]
"""A request of somebody who may ask."""

Writing = Annotated[Asked, Depends(_writing)]
"""A request of the owner, who may change something."""

Owning = Annotated[Asked, Depends(_owning)]
"""A request of the owner."""


REPEATED = frozenset({"facets", "pattern", "glob", *[name for name, one in OFFERED.items() if one.default == ()]})
"""Parameters that are lists, and may be given several times."""

_MOST_PARAMETERS = 200
_MOST_KEYS = 1_000
"""Of one object in a body. Each that is not known would be an error of its own: 10 µs and 1.5 KB."""

_LONGEST_NAME = 100


class CheckedRoute(APIRoute):
    """A route that reads a body only from callers who may send one, and refuses repeated and unknown names.

    Raises DeniedError, InvalidValueError and RequestValidationError.
    """

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handle = super().get_route_handler()
        # The framework asks them, too, but only when it has read and parsed the body.
        gates = [one.call for one in self.dependant.dependencies if one.call in GATES]
        has_parameters = bool(self.dependant.query_params)

        async def checked(request: Request) -> Response:
            request = _CheckedRequest(request.scope, request.receive)
            for gate in gates:
                await gate(request)
            if request.scope["query_string"]:
                _check_parameters(request, has_parameters)
            return await handle(request)

        return checked


class DirectRoute(CheckedRoute):
    """A checked route with one gate and one model, for what is asked most.

    The framework's own fields validate; only its solver of dependencies is left out, which costs 0.2 ms a request.
    """

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        needs = self.dependant
        ((gate_name, gate),) = [(str(one.name), one.call) for one in needs.dependencies if one.call in GATES]

        async def direct(request: Request) -> Response:
            request = _CheckedRequest(request.scope, request.receive)
            asked = await gate(request)
            if request.scope["query_string"]:
                _check_parameters(request, bool(needs.query_params))
            if needs.body_params:
                body = await _json_body(request)
                given, errors = await request_body_to_args(
                    body_fields=needs.body_params, received_body=body, embed_body_fields=False
                )
            else:
                given, errors = request_params_to_args(needs.query_params, request.query_params)
            if errors:
                raise RequestValidationError(errors)
            response: Response = await self.endpoint(**given, **{gate_name: asked})
            return response

        return direct


async def _json_body(request: Request) -> Any:
    """The document in a body, or its bytes when they are not said to be JSON, as the framework reads it."""
    content = await request.body()
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    is_json = kind == "application/json" or (kind.startswith("application/") and kind.endswith("+json"))
    if not content:
        return PydanticUndefined
    if not is_json:
        return content
    try:
        return await request.json()
    except json.JSONDecodeError as error:
        told = {"type": "json_invalid", "loc": ("body", error.pos), "msg": "JSON decode error", "input": {}}
        raise RequestValidationError([{**told, "ctx": {"error": error.msg}}]) from error
    except (RecursionError, ValueError) as error:  # such as a number of 100,000 digits
        raise HTTPException(400, "There was an error parsing the body") from error


class _CheckedRequest(Request):
    async def json(self) -> Any:
        return json.loads(await self.body(), object_pairs_hook=_unambiguous)


def _check_parameters(request: Request, has_parameters: bool) -> None:
    """Of two values of one parameter the framework would take the last."""
    if request.scope["query_string"].count(b"&") >= _MOST_PARAMETERS:
        raise InvalidValueError(f"there are more than {_MOST_PARAMETERS} parameters", hint="send a body with POST")
    names = [name for name, _ in request.query_params.multi_items()]
    if names and not has_parameters:
        raise RequestValidationError([{"type": "extra_forbidden", "loc": ("query", names[0]), "msg": "", "input": ""}])
    _check_once([name for name in names if name not in REPEATED])


def _unambiguous(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len(pairs) > _MOST_KEYS:
        raise InvalidValueError(f"an object has more than {_MOST_KEYS:,} keys", hint="send less at once")
    found = dict(pairs)
    if len(found) < len(pairs):
        _check_once([name for name, _ in pairs])
    return found


def _check_once(names: list[str]) -> None:
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise InvalidValueError(f"{name[:_LONGEST_NAME]} is there twice", hint="give it once")
        seen.add(name)
