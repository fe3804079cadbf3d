"""The ports of a backend and its legs: one place that holds the truth of a workspace and its legs.

A place is a URL. The scheme chooses the backend: `file:` is the local one, others come from the entry points
`findling.backends`. `findling.testing` holds the suites that every backend passes.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol, TypeVar

from findling.domain.errors import InvalidValueError
from findling.domain.ports import LegIndex, VectorRows
from findling.domain.values import FIELDS, record

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from findling.domain.errors import FindlingError
    from findling.domain.ports import KeywordLeg, TruthStore, Vectors
    from findling.domain.queries import LegQuery, Required
    from findling.domain.reports import Check
    from findling.domain.resources import Document
    from findling.domain.results import Evidence
    from findling.domain.sight import Sight

__all__ = [
    "EXACT",
    "GRAPH",
    "KEYWORD",
    "STANDARD_B",
    "STANDARD_K1",
    "VECTORS",
    "VIEWS",
    "Backend",
    "BackendLock",
    "Capabilities",
    "ExactSource",
    "FoundMatches",
    "GraphAtHand",
    "GraphLeg",
    "GraphRows",
    "Leg",
    "LegStore",
    "LimitedLegs",
    "Neighbourhood",
    "Retriever",
    "Scoring",
    "StoreIdentity",
    "VectorTable",
    "check_escapes",
    "lazy_names",
]

STANDARD_K1, STANDARD_B = 1.2, 0.75
"""The usual parameters of BM25, which tantivy has built in."""


KEYWORD, VECTORS, VIEWS, EXACT, GRAPH = "keyword", "vectors", "views", "exact", "graph"
"""Names of legs at a place."""


def lazy_names(legs: Iterable[str]) -> list[str]:
    """Those of these legs that are made when a search has wanted them."""
    return [name for name in legs if name not in (KEYWORD, VECTORS, VIEWS)]


class Scoring(NamedTuple):
    """The weight of each field. A field without a weight is found only by its name."""

    weights: Mapping[str, float] = dict.fromkeys(FIELDS, 0.5) | {"body": 1.0, "name": 0.0}


class StoreIdentity(NamedTuple):
    """The id of a truth store and the number of its latest change; legs carry both."""

    store_id: str
    seq: int


@record()
class Capabilities:
    """Abilities that not every backend has. A command that needs a missing one refuses with a clear error.

    `statistics` are `visible` when hidden resources change no score, `global` when they do. `vectors` says how the
    nearest are found: `exact`, or `ann` from some size on.
    """

    check: bool = False
    compact: bool = False
    snapshots: bool = False
    statistics: Literal["visible", "global"] = "visible"
    vectors: Literal["exact", "ann"] = "exact"


class BackendLock(Protocol):
    """An exclusive lock between all processes that use a place. It is gone when its holder is."""

    def acquire(self, timeout_s: float) -> bool:
        """Take the lock, waiting up to `timeout_s` seconds; return whether it was taken. Raises ReadOnlyError."""

    def release(self) -> None:
        """Release the lock; fine when it is not held."""

    def holder(self) -> int | None:
        """The id of the process that took it last, where that is known and on this host; for messages."""


class VectorTable(VectorRows, Protocol):
    """Unit vectors of chunks, each with the number of its resource. The caller of a write holds the write lock."""

    @property
    def where(self) -> str:
        """Its place, for messages."""

    @property
    def state(self) -> Mapping[str, int]:
        """The numbers given to the last commit; none when nothing was committed."""

    def cids(self) -> set[int]:
        """The chunks that have a row."""

    def add(self, cids: Sequence[int], numbers: Sequence[int], vectors: Vectors) -> None:
        """Add rows, or replace those of the same chunks, with the next commit. Raises ValueError for wrong shapes."""

    def add_codes(self, cids: Sequence[int], numbers: Sequence[int], codes: Sequence[bytes]) -> None:
        """Add rows of 8-bit numbers, whose directions count and whose largest number is 127; zeros are left out."""

    def drop(self, cids: Iterable[int]) -> None:
        """Remove the rows of these chunks, with the next commit; chunks without one are passed over."""

    def commit(self, **state: int) -> None:
        """Make everything added and dropped so far visible and durable, together with these numbers."""

    def clear(self) -> None:
        """Forget everything, durably with the next commit."""

    def close(self) -> None:
        """Release files or connections; what was not committed is forgotten."""

    def damaged_parts(self) -> list[str]:
        """The parts that are not what was written; every byte is read."""


_Opened = TypeVar("_Opened", covariant=True)


class LegStore(Protocol[_Opened]):
    """The legs of one kind at a place. A `key` tells them apart: units of keyword legs, models of vectors."""

    def open(self, store_id: str, key: str = "", size: int = 0) -> _Opened:
        """Open a leg, empty when there is none of this store; vectors have a size. Raises CorruptError."""

    def exists(self, key: str = "") -> bool:
        """Whether there is one, of whatever store or version."""

    def state(self, store_id: str, key: str = "") -> Mapping[str, int]:
        """The numbers of its last commit, `seq` among them, at less cost than opening it; none without such a leg."""

    def discard(self, key: str | None = None) -> None:
        """Delete the leg of a key, or all of this kind; they are rebuilt from the truth. The lock is held."""

    def damage(self) -> list[str]:
        """Parts that are not what was written, one sentence each; for checks."""


class Neighbourhood(NamedTuple):
    """A part of a graph: chunks with the numbers of their resources, things by their hashes, and links between them.

    `spreads` count all resources that name a thing. A link is the place of its chunk, that of its thing, and the level
    of the mention, of which 3 is a title; links stand in the order of their chunks. `total` counts all resources.
    """

    cids: NDArray[np.int64]
    numbers: NDArray[np.int64]
    hashes: NDArray[np.int64]
    spreads: NDArray[np.int64]
    rows: NDArray[np.intp]
    things: NDArray[np.intp]
    levels: NDArray[np.int64]
    total: int


class GraphRows(Protocol):
    """Chunks and the things that they name: all of them, or those of one caller's sight."""

    def __len__(self) -> int:
        """Number of chunks that name something."""

    def holds(self, keys: Iterable[str]) -> bool:
        """Whether at least two chunks name one of these things; at the least cost."""

    def around(self, keys: Iterable[str], cids: Sequence[int]) -> Neighbourhood:
        """The chunks that share a thing with these ones or name one with these keys. Raises CorruptError.

        It has bounded size, and depends on nothing but the chunks that the graph holds. Things that very many chunks
        name lead nowhere.
        """

    def named(self, keys: Iterable[str], cids: Sequence[int]) -> Neighbourhood:
        """These chunks and some that name a thing with one of these keys. Raises CorruptError.

        They have all things that they name, also those that very many chunks name, or no other one.
        """

    def whole(self, most: int) -> Neighbourhood:
        """All chunks, or the first so many in the order of their ids, with the things of links. Raises CorruptError.

        Things that very many chunks name are left out.
        """


class GraphAtHand(NamedTuple):
    """The graph that a search may walk, or the reason why there is none, with the next step."""

    rows: GraphRows | None
    lack: str = "this place of the index has no graph"
    fix: str = ""


class GraphLeg(LegIndex, GraphRows, Protocol):
    """Knows the things that chunks name, and leads from chunk to chunk."""

    def is_current(self) -> bool:
        """Whether its files are still those that were opened."""

    def cids(self) -> set[int]:
        """All chunks that name something; for checks."""

    def within(self, numbers: Collection[int], others: Iterable[tuple[int, Document]] = ()) -> GraphRows:
        """The graph of nothing but the chunks of these resources, and of other ones that it may not have absorbed."""


class LimitedLegs(Protocol):
    """Keyword legs of callers with limited rights, whose every number follows from what the caller may see."""

    def for_sight(self, sight: Sight, store: TruthStore) -> KeywordLeg:
        """The leg of a caller, in step with what the caller may see. Raises CorruptError."""

    def discard(self, leg: KeywordLeg) -> None:
        """Delete the damaged parts of a leg; they are rebuilt when somebody asks."""

    def drop_stale(self, store: TruthStore) -> list[str]:
        """Delete everything of resources that have changed or gone; returns the names of what was deleted."""

    def close(self) -> None:
        """Release files; closing twice is fine."""


class Backend(Protocol):
    """One place. Nothing is created before something is written; a store and its legs are opened by the caller."""

    url: str
    capabilities: Capabilities
    legs: Mapping[str, LegStore[Any]]
    """By name: `KEYWORD`, `VECTORS`, `VIEWS`, which are the keyword legs of callers, and those that are made when they
    are wanted."""
    snapshot_bytes: int
    """The bytes that automatic snapshots may take; without meaning for a backend that makes none."""

    def exists(self) -> bool:
        """Whether a truth store is there. Raises StoreDamagedError when there was one, and it is gone or empty."""

    def identity(self) -> StoreIdentity | None:
        """The id of the store and its latest change; None when there is no store, or it has no id yet."""

    def lock(self, name: str = "write") -> BackendLock:
        """A lock of this place; a writer of content holds the one called `write`."""

    def open_store(self, *, readonly: bool = False, accepts_older: bool = False) -> TruthStore:
        """Open the truth, read-only where it cannot be written. Raises NotIndexedError when there is none.

        Raises StoreDamagedError for a store that is damaged, or that knows less than it did unless `accepts_older`.
        """

    def create_store(self, *, anew: bool = False, before: Callable[[], None] = ...) -> None:
        """Create the truth store unless it is there, after `before()`. The caller holds the write lock.

        Raises StoreDamagedError as `exists` does, unless a damaged store was moved away to start `anew`.
        """

    def identify(self, store: TruthStore, *, accepts_older: bool = False) -> None:
        """Give a store an id as the small value `store_id`, unless it has one. The caller holds the write lock.

        A store that knows less than it did gets another id: numbers of changes that were lost come again.
        """

    def forget_identity(self) -> None:
        """Forget how far the store had come, so that what it is now counts. The caller holds the write lock."""

    def version(self) -> Hashable:
        """A value that differs when the content does. Cheap: asked before an opened store is used again."""

    def listen(self) -> AbstractContextManager[Callable[[float], object]] | None:
        """A function that waits up to so many seconds for a write; None where nobody tells, and `version` must."""

    def put_store_aside(self) -> str | None:
        """Keep a damaged store where a person finds it, if there is one, and return where. The lock is held."""

    def drop_store(self) -> None:
        """Delete a truth that does not lie in the folder of the workspace, for all hosts. The lock is held."""

    def is_replaced(self) -> bool:
        """Whether another process has deleted or replaced the store since it was opened here."""

    def write_refusal(self) -> FindlingError | None:
        """The reason why the opened store cannot be written, if lack of space made it read-only."""

    def settle(self, store: TruthStore) -> None:
        """Note what a write has come to, after the legs were closed. The caller holds the write lock."""

    def offer_legs(self, store: TruthStore) -> None:
        """Leave copies of legs where hosts without any find them, if that is worthwhile. The lock `legs` is held."""

    def frozen(self, store: TruthStore) -> AbstractContextManager[TruthStore] | None:
        """One state of the truth, for legs of this host to catch up with while other hosts write; else None.

        The caller holds the lock `legs`, which keeps off the writers of this host. Without such a state only the write
        lock will do.
        """

    def examine(self) -> Iterable[Check]:
        """Checks of the place itself for `findling doctor`, such as versions and rights. An error is a check, too."""


class Retriever(Protocol):
    """A leg as one query asks it; it holds nothing but what the caller may see."""

    name: str

    @property
    def least(self) -> float:
        """The raw score from which the leg finds a chunk by itself, 0 without such a limit."""

    def search(self, query: LegQuery, limit: int, also: Sequence[int] = ()) -> Mapping[int, Evidence]:
        """The best `limit` chunks, and what the leg says of the chunks in `also`, however far down they are.

        A leg that works for long looks at `current_budget()` and gives what it has. Raises ModelError when a model
        fails.
        """

    def second_look(self, query: LegQuery, best: Sequence[int]) -> Mapping[int, Evidence]:
        """Evidence that took too long for all chunks, for the best of a first ranking; empty from most legs."""


class ExactSource(Protocol):
    """The exact leg as a search asks it: what has changed since is among its candidates, too."""

    def candidates(self, required: Required, allowed: Collection[int]) -> Sequence[int] | None:
        """Those of the allowed resources that may match; `None` without a leg, where all of them may."""


class FoundMatches(Retriever, Protocol):
    """The matches of the patterns of one query, as evidence; `did` has a step for each: how it was looked for."""

    did: tuple[tuple[str, str], ...]


class Leg(Retriever, LegIndex, Protocol):
    """One way to find chunks: an index that follows the truth, and the evidence that it gives."""


def check_escapes(url: str) -> None:
    """Raise InvalidValueError for a URL whose password has letters that end it too early; it is not quoted.

    A message would show the rest of the password as a host, a database or a workspace.
    """
    before = re.split(r"\?(?=\w+=)", url.partition("://")[2])[0].rpartition("@")[0]
    if re.search(r"[/?#@]", before) or url.count("#") > 1:
        message = "the URL of the database has a letter that needs an escape in its user or password"
        raise InvalidValueError(message, hint="write / as %2F, ? as %3F, # as %23 and @ as %40, or use ~/.pgpass")
