"""The seams: what a truth store and a keyword leg promise. Every implementation passes the same suite."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple, Protocol

from findling.domain.queries import Filters, Node
from findling.domain.resources import Document, Fingerprint, Resource, StoredChunk

__all__ = ["Change", "IndexProgress", "KeywordHits", "KeywordLeg", "Progress", "SkippedPath", "TruthStore"]


class Change(NamedTuple):
    """What one write did to one resource, in the words a leg needs: drop these chunks, then add those.

    `document` is `None` when the resource was deleted; `added` are the ids of the document's chunks that the
    legs do not hold yet in this form.
    """

    seq: int
    rid: str
    dropped: tuple[int, ...]
    added: frozenset[int]
    document: Document | None


class SkippedPath(NamedTuple):
    """A path that was left out of the index, and why.

    Size and time of change are kept for a file that was opened and refused, so that it is opened again only when it
    has changed; they are 0 for a path that was left out by its name or kind.
    """

    path: str
    reason: str
    detail: str = ""
    size: int = 0
    mtime_ns: int = 0


class TruthStore(Protocol):
    """Holds every resource with its text and chunks, and numbers every change.

    One writer at a time (the caller holds the workspace's write lock), any number of readers. A reader sees
    whole writes only.
    """

    def seq(self) -> int:
        """The number of the latest change; 0 for an empty store. It never falls and never repeats."""

    def write(self, documents: Iterable[Document], deleted_rids: Iterable[str] = ()) -> list[Change]:
        """Upsert documents and delete resources in one transaction: all of it lands or nothing does.

        Chunks whose id is already there keep it; only their span is updated. A document equal to the stored one
        makes no change. Deleting what is not there is no change either.
        """

    def changes(self, since: int) -> Iterator[Change]:
        """What a leg that has absorbed `since` still has to apply, oldest first, later states only.

        A resource that changed often appears once, with its present document; a leg has therefore absorbed a number
        only when it has applied everything up to the end.
        """

    def chunks(self, cids: Sequence[int]) -> dict[int, StoredChunk]:
        """The chunks that exist among `cids`."""

    def document(self, rid: str) -> Document | None:
        """One resource with its text and chunks."""

    def rids(self, type: str | None = None) -> Iterator[str]:
        """All resource ids in order, or those of one type."""

    def resources(self) -> Iterator[Resource]:
        """All resources in the order of their ids, as they are at the time of the call."""

    def fingerprints(self) -> dict[str, Fingerprint]:
        """Path → fingerprint of every resource that has a path and a fingerprint."""

    def touch(self, fingerprints: Mapping[str, Fingerprint]) -> None:
        """Record new fingerprints for resources (by path) whose content has not changed; makes no change."""

    def stamps(self) -> Iterable[tuple[str, int, int]]:
        """Path, size and time of change of the same resources, at the least cost."""

    def set_folders(self, folders: Mapping[str, int]) -> None:
        """Replace the list of folders that were walked, each with its time of change in nanoseconds."""

    def folders(self) -> Iterable[tuple[str, int]]:
        """The folders that were walked in the latest run."""

    def set_skipped(self, skipped: Iterable[SkippedPath]) -> None:
        """Replace the list of paths that were left out."""

    def skipped(self) -> list[SkippedPath]:
        """The paths that were left out of the latest run, ordered by path."""

    def refusals(self) -> dict[str, SkippedPath]:
        """Path → entry of the files that were opened and refused."""

    def log_floor(self) -> int:
        """A leg that has absorbed less than this cannot catch up from `changes` and starts from nothing."""

    def get_meta(self, key: str) -> str | None:
        """A small named value, kept with the data."""

    def set_meta(self, key: str, value: str) -> None:
        """Set a small named value."""

    def counts(self) -> Mapping[str, int]:
        """`resources`, `chunks`, `characters`, `skipped`."""

    def close(self) -> None:
        """Release files and connections; closing twice is fine."""


class KeywordHits(NamedTuple):
    """Chunk ids with raw BM25 scores, best first; `total` matches in all; `ceiling` is the most any chunk could score.

    `forms` names, for every query term, the forms of it that the index holds; a term without forms is unknown.
    """

    hits: list[tuple[int, float]]
    total: int
    ceiling: float
    forms: Mapping[str, tuple[str, ...]]


class KeywordLeg(Protocol):
    """Finds chunks by their words. Derived from the truth store, and rebuilt from it at any time.

    `unit` says what it scores: every `chunk`, or every `page`, which is a resource as a whole.
    """

    unit: str

    def seq(self) -> int:
        """The number of the latest change that is durably absorbed."""

    def apply(self, changes: Iterable[Change]) -> None:
        """Take changes in; they become visible and durable with `commit`."""

    def commit(self, seq: int) -> None:
        """Make everything applied so far durable, together with the number it reaches."""

    def search(self, node: Node, filters: Filters, limit: int) -> KeywordHits:
        """The best `limit` chunks among those that pass the filters."""

    def clear(self) -> None:
        """Forget everything, durably with the next commit."""

    def close(self) -> None:
        """Release files; what was not committed is forgotten."""


class IndexProgress(NamedTuple):
    """A moment of an indexing run. `stage` is `scan`, `index` or `done`; `total` is 0 while it is not known.

    `done` of `total` files and `bytes_read` of `bytes_total` are dealt with; `failed` of them could not be read.
    """

    stage: str
    done: int = 0
    total: int = 0
    chunks: int = 0
    failed: int = 0
    bytes_read: int = 0
    bytes_total: int = 0
    seconds: float = 0.0
    path: str = ""

    @property
    def bytes_per_second(self) -> float:
        """How fast files are read, on average so far."""
        return self.bytes_read / self.seconds if self.seconds > 0 else 0.0

    @property
    def seconds_left(self) -> float | None:
        """How long the rest will take at this speed; `None` before there is any."""
        speed = self.bytes_per_second
        return max(0, self.bytes_total - self.bytes_read) / speed if speed else None


Progress = Callable[[IndexProgress], None]
