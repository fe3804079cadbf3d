"""Searching through a running daemon, over its unix socket.

HTTP by hand: `http.client` and all that it brings would cost a search more time than the answer.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import is_dataclass, replace
from functools import cache, cached_property, partial
from pathlib import Path
from types import NoneType, UnionType
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar, Union, cast, get_args, get_origin, get_type_hints

from findling import __version__
from findling.domain.errors import DaemonError, InvalidValueError
from findling.domain.queries import Filters, SearchRequest
from findling.domain.results import SCHEMA_VERSION, Explanation, SearchAnswer
from findling.domain.values import plain
from findling.service.client.daemon_state import DaemonState, is_own_socket, read_state
from findling.service.engine.background import Embedding
from findling.service.settings.portable_settings import settings_document
from findling.service.settings.settings import Settings
from findling.service.workspace.scope import placed
from findling.service.workspace.workspace import locate

if TYPE_CHECKING:
    from socket import socket

    from findling.domain.reports import Progress
    from findling.pipelines.lookup.suggest import Completion
    from findling.service.engine.client import LocalClient
    from findling.service.index.documents import FetchedDocument

_Value = TypeVar("_Value")
_Reader = Callable[[Any], Any]


_ANSWER_S = 3600.0
"""Seconds that a daemon may take once it has begun: many files may have to be indexed first."""


_AT_ONCE = 32
"""Requests in one message: nobody has to wait for the first answer until the last one is found."""


class DaemonClient:
    """Searches through a running daemon, with the answers of `LocalClient` over `open_engine(path, settings=settings)`.

    Everything raises DaemonError when the daemon cannot be reached, or leaves the work to its caller: where nothing is
    indexed yet, or something is wrong with the question.
    """

    def __init__(
        self,
        state: DaemonState,
        home: Path,
        path: str | None,
        settings: Settings,
        principals: tuple[str, ...] | None = None,
    ) -> None:
        """Without principals the owner asks. Raises as `placed` does."""
        settings, subject = placed(settings, path)
        named = settings["workspace.name"] or settings["context.workspace"]
        self._found = partial(locate, subject, home=home, name=named, place=settings["store.place"])
        self._state = state
        self._reading: Embedding | None = None
        self._place = {
            "home": str(home),
            # Not normalised: what `..` leads to depends on links.
            "path": str(Path.cwd() / Path(subject).expanduser()),
            "is_here": str(subject) == ".",
            "settings": settings_document(settings),
            "principals": None if principals is None else list(principals),
        }

    @cached_property
    def root(self) -> Path:
        """The folder that paths of hits are relative to. Raises as `locate` does."""
        return self._found().root

    @cached_property
    def home(self) -> Path:
        """The folder of the index."""
        return self._found().folder

    def search(
        self, request: SearchRequest, *, refresh: bool = False, on_progress: Progress | None = None
    ) -> SearchAnswer:
        """Answer a request; with `refresh` the index first absorbs what has changed on disk."""
        return next(self.search_many([request], refresh=refresh))

    def search_many(self, requests: Sequence[SearchRequest], *, refresh: bool = False) -> Iterator[SearchAnswer]:
        """Answer requests one after another, several in one message; `refresh` holds for the first."""
        for start in range(0, len(requests), _AT_ONCE):
            asked = [request_document(request) for request in requests[start : start + _AT_ONCE]]
            found = self._ask("search", {"requests": asked}, refresh=refresh and not start)
            if len(found) != len(asked):
                raise _strange(f"{len(found)} answers to {len(asked)} questions")
            yield from [self._read(read_answer, one) for one in found]

    def explain(
        self, request: SearchRequest, name: str, *, refresh: bool = False, on_progress: Progress | None = None
    ) -> Explanation:
        """Say why a document is in the answer to a request, or what keeps it out."""
        asked = {"request": request_document(request), "name": name}
        return self._read(partial(from_json, Explanation), self._ask("explain", asked, refresh=refresh))

    def fetch(self, name: str, *, context: int = 0) -> FetchedDocument:
        """Give a document, or a passage of it."""
        from findling.service.index.documents import FetchedDocument

        return self._read(partial(from_json, FetchedDocument), self._ask("fetch", {"name": name, "context": context}))

    def similar(self, name: str, limit: int = 10) -> SearchAnswer:
        """Find the documents that are most like one."""
        return self._read(partial(from_json, SearchAnswer), self._ask("similar", {"name": name, "limit": limit}))

    def suggest(self, text: str, limit: int = 10) -> tuple[Completion, ...]:
        """Complete a text that is being typed."""
        from findling.pipelines.lookup.suggest import Completion

        found = self._ask("suggest", {"text": text, "limit": limit})
        return tuple([self._read(partial(from_json, Completion), one) for one in found])

    def finish(self) -> Embedding | None:
        """Whether the model has begun to embed because of the searches: the daemon has done what follows them."""
        return self._reading

    def _ask(self, verb: str, arguments: dict[str, Any], *, refresh: bool = False) -> Any:
        asked = {**self._place, "verb": verb, "arguments": arguments, "refresh": refresh}
        status, found = call_daemon(self._state, "POST", "/local/ask", asked, answer_s=_ANSWER_S)
        if status != 200:
            detail = found.get("detail") if isinstance(found, dict) else ""
            raise DaemonError(f"the daemon leaves this to the command line: {detail or status}")
        try:
            self.root, self.home = Path(found["root"]), Path(found["folder"])
            self._reading = Embedding(**found["reading"]) if found["reading"] else None
            return found["result"]
        except (KeyError, TypeError) as error:
            raise _strange(error) from error

    def _read(self, read: Callable[[Any], _Value], document: object) -> _Value:
        try:
            return read(document)
        except InvalidValueError as error:
            raise _strange(error) from error


SearchClient: TypeAlias = "LocalClient | DaemonClient"
"""A client that searches one workspace as one caller; both give the same answers."""


def _strange(told: object) -> DaemonError:
    return DaemonError(f"the daemon answers in another way: {told}", hint="restart it")


_TUPLES = ("facets", "principals")


def request_document(request: SearchRequest) -> dict[str, Any]:
    """Everything that bears on the answer."""
    document = dict(vars(request))
    filters, plan = document.pop("filters"), document.pop("plan")
    # Few questions have any of these, and what writes them down takes a while to load.
    if filters != Filters():
        from findling.pipelines.retrieve.plan_files import filters_document

        document["filters"] = filters_document(filters)
    if plan is not None:
        document["plan"] = plain(plan)
    return document


def read_request(document: Mapping[str, Any]) -> SearchRequest:
    """The question that `request_document` wrote. Raises InvalidValueError for what it never writes."""
    from findling.pipelines.retrieve.plan_files import read_filters, read_plan

    values = {**document, "filters": read_filters(document.get("filters", {}))}
    if "plan" in document:
        values["plan"] = read_plan(document["plan"])
    try:
        for name in _TUPLES:
            if values[name] is not None:
                values[name] = tuple(values[name])
        return SearchRequest(**values)
    except (KeyError, TypeError) as error:
        raise InvalidValueError(f"this is no question: {error!r}", hint="send what request_document gives") from error


PATIENCE_S = 2.0
"""Seconds of silence after which a daemon counts as one that does not answer."""

_CONNECT_S = 1.0
_PIECE = 1 << 18


def ask_daemon(
    home: Path,
    method: str,
    path: str,
    document: object = None,
    headers: Mapping[str, str] | None = None,
    *,
    patience_s: float = PATIENCE_S,
) -> tuple[int, Any] | None:
    """The status and the document that the daemon of a home answers with; `None` when there is none that answers."""
    state = read_state(home)
    if state is None:
        return None
    try:
        return call_daemon(state, method, path, document, headers, patience_s=patience_s)
    except DaemonError:
        return None


def call_daemon(
    state: DaemonState,
    method: str,
    path: str,
    document: object = None,
    headers: Mapping[str, str] | None = None,
    *,
    patience_s: float = PATIENCE_S,
    answer_s: float | None = None,
    any_version: bool = False,
) -> tuple[int, Any]:
    """The same of a certain daemon. Raises DaemonError that says why there is no answer.

    What takes long to answer has `answer_s` for it, once the daemon has said within `patience_s` that it is at it.
    """
    if state.version != __version__ and not any_version:
        raise DaemonError(f"the daemon is findling {state.version}, this is {__version__}", hint="restart the daemon")
    if not state.socket:
        raise DaemonError("the daemon has no socket for the command line", hint=state.address)
    if not is_own_socket(state.socket):
        raise DaemonError(
            f"the daemon of process {state.pid} does not answer: {state.socket} is no socket of yours",
            hint="start it again",
        )
    body = b"" if document is None else json.dumps(document).encode()
    lines = [f"{method} {path} HTTP/1.1", "host: localhost", "connection: close", f"content-length: {len(body)}"]
    if body:
        lines.append("content-type: application/json")
    if answer_s is not None:
        lines.append("expect: 100-continue")  # it says so as soon as it looks at the question: a sign of life
    lines += [f"{name}: {value}" for name, value in (headers or {}).items()]
    try:
        request = "\r\n".join([*lines, "", ""]).encode() + body
        status, content = _exchange(state.socket, request, patience_s, answer_s or patience_s)
        return status, json.loads(content) if content else None
    except (OSError, RecursionError, ValueError) as error:
        raise DaemonError(
            f"the daemon of process {state.pid} does not answer: {error}", hint="findling serve --stop, or start it"
        ) from error


def _exchange(path: str, request: bytes, patience_s: float, answer_s: float) -> tuple[int, bytes]:
    import socket

    with socket.socket(socket.AF_UNIX) as line:
        line.settimeout(_CONNECT_S)
        line.connect(path)
        line.settimeout(patience_s)
        line.sendall(request)
        begun = _next_piece(line)
        line.settimeout(answer_s)
        return _read(line, begun)


def _read(line: socket, received: bytes) -> tuple[int, bytes]:
    """The status and the body of an answer. Raises ValueError for anything else, and for one that breaks off."""
    status = 0
    while status < 200:  # what comes before only says that there will be an answer
        while b"\r\n\r\n" not in received:
            received += _next_piece(line)
        head, _, received = received.partition(b"\r\n\r\n")
        first, *lines = head.decode("latin-1").split("\r\n")
        status = int(first.partition(" ")[2].partition(" ")[0])
    fields = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    if "content-length" not in fields:
        raise ValueError("it does not say how long its answer is")
    pieces, missing = [received], int(fields["content-length"]) - len(received)
    while missing > 0:
        pieces.append(_next_piece(line))
        missing -= len(pieces[-1])
    return status, b"".join(pieces)


def _next_piece(line: socket) -> bytes:
    piece = line.recv(_PIECE)
    if not piece:
        raise ValueError("it has hung up")
    return piece


# Values that another process wrote as JSON, read back as what they were.


def from_json(kind: type[_Value], document: object) -> _Value:
    """The dataclass or named tuple of which JSON was made, with all that is in it.

    Raises InvalidValueError for a document that lacks a field, has one too many, or has another shape.
    """
    try:
        value: _Value = _reader(cast(Any, kind))(document)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise InvalidValueError(
            f"this is no {kind.__name__}: {error!r}", hint="write it with the same version of findling"
        ) from error
    return value


def read_answer(document: Mapping[str, Any]) -> SearchAnswer:
    """The answer of which `SearchAnswer.to_dict` made the document, read as JSON.

    Raises InvalidValueError for anything else.
    """
    values = dict(document) if isinstance(document, Mapping) else {}
    if values.pop("schema", None) != SCHEMA_VERSION:
        raise InvalidValueError("this is no answer of this version", hint=f"write it with schema {SCHEMA_VERSION}")
    answer = from_json(SearchAnswer, values)
    scope = {name: tuple(value) if isinstance(value, list) else value for name, value in answer.scope.items()}
    return replace(answer, scope=scope)


@cache
def _reader(kind: Any) -> _Reader:
    """The function that reads values of a type; each type is looked at once, 1 ms for all of an answer."""
    origin, arguments = get_origin(kind), get_args(kind)
    if origin in (Union, UnionType):
        return _of_union(arguments)
    if origin is tuple:
        return _of_tuple(arguments)
    if origin is list:
        item = _reader(arguments[0])
        return lambda values: [item(value) for value in _listed(values)]
    if origin in (dict, Mapping):
        value_of = _reader(arguments[1])
        return lambda values: {name: value_of(value) for name, value in values.items()}
    if is_dataclass(kind) or hasattr(kind, "_fields"):
        return _of_fields(kind)
    return Path if kind is Path else lambda value: value


def _of_fields(kind: Any) -> _Reader:
    readers = {name: _reader(hint) for name, hint in get_type_hints(kind).items()}
    return lambda values: kind(**{name: readers[name](value) for name, value in values.items()})


def _of_tuple(arguments: tuple[Any, ...]) -> _Reader:
    if arguments[1:] == (...,):
        item = _reader(arguments[0])
        return lambda values: tuple([item(value) for value in _listed(values)])
    items = [_reader(one) for one in arguments]
    return lambda values: tuple([item(value) for item, value in zip(items, _listed(values), strict=True)])


def _of_union(arguments: tuple[Any, ...]) -> _Reader:
    """The one kind of a union that is written as a list or an object reads those; anything else is as it was."""
    shaped = [one for one in arguments if one is not NoneType and (get_origin(one) or is_dataclass(one))]
    if len(shaped) != 1:
        return lambda value: value
    read = _reader(shaped[0])
    return lambda value: read(value) if isinstance(value, list | dict) else value


def _listed(values: Any) -> Iterable[Any]:
    if not isinstance(values, list | tuple):
        raise TypeError(f"{values!r} is no list")
    return values
