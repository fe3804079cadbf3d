"""Who asks, and what is there to answer: what every route begins with."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import Annotated, NamedTuple, TypeVar

from fastapi import Depends, Request
from starlette.concurrency import run_in_threadpool
from starlette.types import Scope

from findling.domain.budgets import WorkBudget, spending
from findling.domain.errors import DeniedError
from findling.domain.permissions import Caller
from findling.faces.http.request.fair_queue import Shares
from findling.faces.http.request.index_runs import IndexRuns
from findling.service.engine.executor import WorkLine
from findling.service.server.engine_pool import Host

__all__ = ["GATES", "Asked", "Owning", "Reading", "Served", "Writing"]

_Result = TypeVar("_Result")

_GRACE_S = 2.0
"""A search gives what it has when its time is up; only what does not keep to that is given up after this."""


class Served(NamedTuple):
    """What one app serves; it is kept as `app.state.served`."""

    host: Host
    line: WorkLine
    identify: Callable[[Scope], Caller]
    runs: IndexRuns
    shares: Shares


class Asked(NamedTuple):
    """One request: who sent it, and what answers it."""

    caller: Caller
    host: Host
    line: WorkLine
    runs: IndexRuns
    shares: Shares
    request: Request
    budget: WorkBudget

    async def run(self, work: Callable[[], _Result], *, stage: str = "") -> _Result:
        """What some work returns, which must not block others. Raises as it and as `Shares.run` do.

        Its time is counted as that of the stage, if it has a name.
        """
        counted = partial(self._counted, work, stage) if stage else partial(self._within_budget, work)
        longest = self.host.settings["serve.timeout_s"] + _GRACE_S
        return await self.shares.run(self.caller, counted, receive=self.request.receive, timeout_s=longest)

    async def run_beside(self, work: Callable[[], _Result]) -> _Result:
        """The same for work of the owner that must not wait behind the questions of others."""
        return await run_in_threadpool(work)

    async def write(self, work: Callable[[], _Result]) -> _Result:
        """The same for work that changes something: it is waited for, however long it takes."""
        return await self.line.run(work)

    def _within_budget(self, work: Callable[[], _Result]) -> _Result:
        with spending(self.budget):
            return work()

    def _counted(self, work: Callable[[], _Result], stage: str) -> _Result:
        started = time.perf_counter()
        result = self._within_budget(work)
        self.host.statistics.observe(stage, "", time.perf_counter() - started)
        return result


async def _reading(request: Request) -> Asked:
    return _allowed(request, "read")


async def _writing(request: Request) -> Asked:
    found = _allowed(request, "write")
    if not found.caller.is_owner:
        # What is written decides who may see it: somebody with limited rights could write over what they cannot see.
        hint = "findling token create NAME --owner --scope write"
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
            f"the token does not allow to {scope}", hint=f"findling token create NAME --owner --scope {scope}"
        )
    return Asked(caller, served.host, served.line, served.runs, served.shares, request, served.host.budget(caller))


GATES = frozenset({_reading, _writing, _owning})
"""What finds out whether a caller may ask a route at all."""

Reading = Annotated[Asked, Depends(_reading)]
"""A request of somebody who may ask."""

Writing = Annotated[Asked, Depends(_writing)]
"""A request of the owner, who may change something."""

Owning = Annotated[Asked, Depends(_owning)]
"""A request of the owner."""
