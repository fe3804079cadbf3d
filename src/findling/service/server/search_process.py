"""A search process, and its front's end of the line: calls in, outcomes out, within limits of memory and computing.

A call names an index and a verb, which reads it. The front has brought the keyword leg up to date before. The end of
the front, however it comes, ends the process.
"""

from __future__ import annotations

import gc
import json
import os
import pickle
import re
import signal
import socket
import threading
import time
import traceback
from collections import OrderedDict
from collections.abc import Callable, Mapping
from contextlib import nullcontext, suppress
from itertools import islice
from math import isinf
from typing import IO, Any, NamedTuple, cast

from findling.domain.budgets import WorkBudget, spending
from findling.domain.errors import FindlingError, OverdueError
from findling.domain.plans import Plan
from findling.domain.queries import SearchRequest
from findling.domain.results import Degradation, Hit, SearchAnswer
from findling.pipelines.answer.search import search
from findling.pipelines.indexing.child_processes import (
    EXIT_OUT_OF_MEMORY,
    child_command,
    framed,
    limit_memory,
    limited_time,
    read_frame,
    take_streams,
)
from findling.service.index.index import Index
from findling.service.index.model_choice import ModelTable
from findling.text.query.leaves import CODE_LANGUAGES

GRACE_S = 2.0
"""A search keeps its limits by itself, and gives what it has. What does not keep them is ended after this."""

_GARBAGE = 50_000
"""New objects after which garbage is looked for, those of a few questions: every 700 cost a twentieth of the time."""

_PIECE = 1 << 16
"""Bytes that the front reads at once: an answer of ten hits has 20 kB."""

_MOST_OPEN = 16
"""Workspaces that stay open, as many as in the front."""

_LOOKED_THROUGH, _REHEARSED = 1_000, 6
"""Resources, and characters of a text, in which a first question is looked for, and its words."""


class PackedAnswer(SearchAnswer):
    """An answer from a search process. Its hits are the JSON of it that faces send, and are read when they are used.

    A text costs the front a tenth of what objects cost, which a cache would have the garbage collector look through.
    """

    _text = b""

    @classmethod
    def of(cls, answer: SearchAnswer, encode: Callable[[object], bytes]) -> PackedAnswer:
        """The same answer, packed."""
        values = dict(vars(answer))
        values["_text"] = encode(values.pop("hits"))
        packed = object.__new__(cls)
        vars(packed).update(values)
        return packed

    @property
    def hits_text(self) -> bytes:
        """The hits as JSON; nothing for a copy by `replace`, which alone may have other hits."""
        return self._text

    def __getattr__(self, name: str) -> Any:
        if name != "hits" or not self._text:
            raise AttributeError(name)
        from findling.service.client.daemon import from_json

        hits = tuple([from_json(Hit, one) for one in json.loads(self._text)])
        vars(self)["hits"] = hits
        return hits


class Call(NamedTuple):
    """A verb that reads an index, see `Index.read`; without one the index is only loaded.

    `place` is a pickle of the workspace and the settings that the index is opened with. Unless the call accepts it, a
    keyword leg that is behind the truth is not read. With `encode`, an answer is packed.
    """

    place: bytes
    verb: Callable[..., Any] | None = None
    principals: tuple[str, ...] | None = None
    notes: list[Degradation] = []  # noqa: RUF012 - nobody changes it: a call is sent as a copy
    args: tuple[Any, ...] = ()
    options: Mapping[str, Any] = {}
    budget: WorkBudget | None = None
    accepts_late: bool = False
    encode: Callable[[object], bytes] | None = None


class Outcome(NamedTuple):
    """The result of a call or its error, the budget as it is then, and the parts of the index in memory.

    `fault` is the trace of an error that nobody expects. `is_late`: the front has to bring the leg up to date first.
    """

    result: Any = None
    error: FindlingError | None = None
    fault: str = ""
    budget: WorkBudget | None = None
    loaded: Mapping[str, bool] = {}
    is_late: bool = False


class SearchProcess:
    """One process at the other end of a socket; a pipe whose other end is open here keeps it alive.

    `loaded` are the places of indexes that it has opened, as calls name them.
    """

    def __init__(self, memory: int) -> None:
        ours, theirs = socket.socketpair()
        life, self._life = os.pipe()
        try:
            import subprocess  # which no search process needs

            self._process = subprocess.Popen(
                child_command("findling.service.server.search_process", life, memory),
                stdin=theirs.fileno(),
                stdout=subprocess.DEVNULL,
                pass_fds=(life,),
                # There is a process for every core already.
                env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},
            )
        except BaseException:
            ours.close()
            os.close(self._life)
            raise
        finally:
            theirs.close()
            os.close(life)
        self._line, self._inbox = ours, cast(IO[bytes], ours.makefile("rb", _PIECE))
        self.used_at = time.monotonic()
        self.loaded: set[bytes] = set()
        self._ending = threading.Lock()

    def send(self, frame: bytes) -> None:
        """Send a call to a process that has none. Where it is gone, whoever receives learns that."""
        with suppress(OSError):
            self._line.sendall(frame)

    def receive(self, longest_s: float) -> bytes | None:
        """The pickled outcome of the call; `None` when the process has died over it for no fault of the call.

        Raises OverdueError for a call that took more than it may.
        """
        try:
            if self._line.gettimeout() != (longest_s or None):
                self._line.settimeout(longest_s or None)
            answer = read_frame(self._inbox)
        except TimeoutError as error:
            raise _overdue(f"there was no answer within {longest_s:g} s") from error
        except (OSError, ValueError):  # it is gone, or was ended by another thread
            answer = None
        if answer is not None:
            return answer
        status = self._process.wait()
        if status == -signal.SIGPROF:
            raise _overdue("the answer took more computing than it may")
        if status == EXIT_OUT_OF_MEMORY:
            raise _overdue("the answer took more memory than it may")
        return None

    def end(self) -> str:
        """End the process; how it has ended by itself, if it has. Any thread may call it, and twice is fine."""
        with self._ending:
            if self._life >= 0:
                os.close(self._life)
                self._life = -1
            self._process.kill()
            status = self._process.wait()
            for stream in (self._inbox, self._line):
                with suppress(OSError):
                    stream.close()
        return f"signal {-status}" if status < 0 else f"status {status}"


def _overdue(what: str) -> OverdueError:
    return OverdueError(what, hint="ask for less, or allow more time")


def main(life: int, memory: int) -> None:
    """Serve the front at the socket on standard input; `life` is a pipe that ends with the front.

    A call may take `memory` bytes more than there are before it.
    """
    gc.set_threshold(_GARBAGE)
    _end_with(life)
    line = socket.socket(fileno=take_streams()[0])
    try:
        _serve(line, memory)
    except MemoryError:
        os._exit(EXIT_OUT_OF_MEMORY)
    except (BrokenPipeError, ConnectionResetError):  # the front is gone
        os._exit(0)


def _end_with(life: int) -> None:
    """Have the process end when the other end of a pipe closes, also in code that never returns."""
    with suppress(ImportError, AttributeError, OSError):  # not every system can send a signal for that
        import fcntl

        fcntl.fcntl(life, fcntl.F_SETOWN, os.getpid())
        fcntl.fcntl(life, fcntl.F_SETFL, fcntl.fcntl(life, fcntl.F_GETFL) | os.O_ASYNC)
    # Nor does each end a process for it, and the front may be gone already.
    threading.Thread(target=lambda: (os.read(life, 1), os._exit(0)), daemon=True).start()


def _serve(line: socket.socket, memory: int) -> None:
    inbox = line.makefile("rb")
    opened: OrderedDict[bytes, Index] = OrderedDict()
    models = ModelTable()
    while (frame := read_frame(inbox)) is not None:
        call: Call = pickle.loads(frame)
        if call.place not in opened:
            workspace, settings = pickle.loads(call.place)
            opened[call.place] = Index(workspace, settings, models)
        opened.move_to_end(call.place)
        while len(opened) > _MOST_OPEN:
            opened.popitem(last=False)[1].close()
        limit_memory(None if call.verb is None else memory, with_mapped=False)
        outcome = _outcome(opened[call.place], call)
        try:
            frame = framed(outcome)
        except (AttributeError, TypeError, pickle.PicklingError):
            frame = framed(Outcome(fault=traceback.format_exc(), budget=call.budget))
        line.sendall(frame)  # at once: the front wakes once for an answer


def _outcome(index: Index, call: Call) -> Outcome:
    budget = call.budget or WorkBudget()
    left_s = budget.cpu_left_s
    try:
        with nullcontext() if isinf(left_s) else limited_time(left_s + GRACE_S), spending(budget):
            outcome = _warmed_up(index) if call.verb is None else _read(index, call, call.verb)
    except FindlingError as error:
        outcome = Outcome(error=error)
    except MemoryError:
        raise
    except Exception:
        outcome = Outcome(fault=traceback.format_exc())
    return outcome._replace(budget=budget, loaded=index.loaded())


def _warmed_up(index: Index) -> Outcome:
    times = index.warm_up([])
    _rehearse(index)
    gc.collect()  # what is loaded stays, and need not be looked through for garbage again and again
    gc.freeze()
    return Outcome(times)


def _rehearse(index: Index) -> None:
    """Search once, so that the first question finds modules and tables loaded; nothing is sent to a provider.

    The question is a few words of a text, of code if there is some. A title would be searched by words alone, and numpy
    would then be loaded for the first question of every process: 0.2 s for which seven others wait.
    """
    store = index.files.store
    spaces = index.vectors.meaning(store, {}).spaces
    some = list(islice(store.resources(), _LOOKED_THROUGH))
    chosen = next((one for one in some if one.lang in CODE_LANGUAGES), some[0] if some else None)
    document = store.document(chosen.rid) if chosen is not None else None
    words = re.findall(r"[^\W\d_]{3,}", document.text[:_LOOKED_THROUGH] if document is not None else "")
    mode = "hybrid" if all(space.embedder.in_process for space in spaces) else "keyword"
    plan = Plan(mode=mode, budget_ms=0.0, rerank_depth=0)
    with suppress(FindlingError):
        index.read(None, [], search, SearchRequest(query=" ".join(dict.fromkeys(words[:_REHEARSED])), plan=plan))


def _read(index: Index, call: Call, verb: Callable[..., Any]) -> Outcome:
    """The answer of a verb, from a keyword leg that is in step unless the call accepts another."""
    index.require()
    if not index.files.follow_leg() and not call.accepts_late:
        return Outcome(is_late=True)
    answer = index.read(call.principals, call.notes, verb, *call.args, **call.options)
    if call.encode is not None and isinstance(answer, SearchAnswer):
        answer = PackedAnswer.of(answer, call.encode)
    return Outcome(answer)
