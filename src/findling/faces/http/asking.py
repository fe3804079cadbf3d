"""Who asks, and what is there to answer: what every route begins with."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import Annotated, NamedTuple, TypeVar

from fastapi import Depends, Request
from starlette.types import Scope

from findling.domain.callers import Caller
from findling.domain.errors import DeniedError, InvalidValueError
from findling.faces.http.indexing import IndexRuns
from findling.service.hosting import Host
from findling.service.queueing import WorkLine

__all__ = ["REPEATED", "Asked", "Owning", "Reading", "Served", "Writing", "asked"]

_Result = TypeVar("_Result")

REPEATED = frozenset({"facets", "ext", "not_ext", "path", "type", "lang", "tag", "author"})
"""Parameters that are lists, and may be given several times."""

_LONGEST_NAME = 100

_GRACE_S = 2.0
"""A search gives what it has when its time is up; only what does not keep to that is given up after this."""


class Served(NamedTuple):
    """What one app serves; it is kept as `app.state.served`."""

    host: Host
    line: WorkLine
    identify: Callable[[Scope], Caller]
    runs: IndexRuns


class Asked(NamedTuple):
    """One request: who sent it, and what answers it."""

    caller: Caller
    host: Host
    line: WorkLine
    runs: IndexRuns

    async def run(self, work: Callable[[], _Result], *, stage: str = "") -> _Result:
        """What some work returns, which must not block others. Raises as it and as `WorkLine.run` do.

        Its time is counted as that of the stage, if it has a name.
        """
        counted = partial(self._counted, work, stage) if stage else work
        return await self.line.run(counted, timeout_s=self.host.settings["serve.timeout_s"] + _GRACE_S)

    async def write(self, work: Callable[[], _Result]) -> _Result:
        """The same for work that changes something: it is waited for, however long it takes."""
        return await self.line.run(work)

    def _counted(self, work: Callable[[], _Result], stage: str) -> _Result:
        started = time.perf_counter()
        result = work()
        self.host.statistics.observe(stage, "", time.perf_counter() - started)
        return result


def asked(request: Request) -> Asked:
    """Who sent a request, whatever they may do. Raises InvalidValueError for an address that contradicts itself."""
    served: Served = request.app.state.served
    if request.url.query:
        _check_once(request)
    return Asked(served.identify(request.scope), served.host, served.line, served.runs)


def _check_once(request: Request) -> None:
    """Of two values of one parameter the framework would take the last."""
    names = [name for name, _ in request.query_params.multi_items() if name not in REPEATED]
    if twice := [name for name in names if names.count(name) > 1]:
        raise InvalidValueError(f"{twice[0][:_LONGEST_NAME]} is there twice", hint="give it once")


async def _reading(request: Request) -> Asked:
    return _allowed(asked(request), "read")


async def _writing(request: Request) -> Asked:
    found = _allowed(asked(request), "write")
    if not found.caller.is_owner:
        # What is written decides who may see it: somebody with limited rights could write over what they cannot see.
        hint = "findling token create NAME --owner --scope write"
        raise DeniedError("only a token of the owner may change something", hint=hint)
    return found


async def _owning(request: Request) -> Asked:
    found = _allowed(asked(request), "read")
    if not found.caller.is_owner:
        raise DeniedError("this is for the owner alone", hint="ask whoever runs the server")
    return found


def _allowed(found: Asked, scope: str) -> Asked:
    if not found.caller.may(scope):
        raise DeniedError(f"the token does not allow to {scope}", hint=f"findling token create NAME --scope {scope}")
    return found


Reading = Annotated[Asked, Depends(_reading)]
"""A request of somebody who may ask."""

Writing = Annotated[Asked, Depends(_writing)]
"""A request of the owner, who may change something."""

Owning = Annotated[Asked, Depends(_owning)]
"""A request of the owner."""
