"""The ports of the truth store and of legs. Every implementation passes the suites of `findling.testing`."""

from __future__ import annotations

from collections.abc import Collection, Container, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple, Protocol

from findling.domain.queries import Filters, Node, Required
from findling.domain.resources import ALL, Document, Fingerprint, Resource, Share, StoredChunk, StoredText
from findling.domain.values import record

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from findling.domain.permissions import Relation, Right
    from findling.domain.records import Access, GlossaryTerm

    Vectors = NDArray[np.float32]
    """One row a text, each of length 1."""

__all__ = [
    "Change",
    "ExactLeg",
    "KeywordHits",
    "KeywordLeg",
    "LegIndex",
    "ReadStore",
    "SkippedPath",
    "TruthStore",
    "VectorHits",
    "VectorLeg",
    "VectorRow",
    "VectorRows",
    "VectorSearch",
]


class Change(NamedTuple):
    """One write to one resource, in the words a leg needs: drop these chunks, then add those.

    `document` is `None` for a deleted resource. `added` are the ids of its chunks that no leg holds in this form.
    `number` is that of the resource in its store, by which `matching` names it.
    """

    seq: int
    rid: str
    dropped: tuple[int, ...]
    added: frozenset[int]
    document: Document | None
    number: int = 0


class SkippedPath(NamedTuple):
    """A path left out of the index, and why; a file that was opened and refused has its size and time of change."""

    path: str
    reason: str
    detail: str = ""
    size: int = 0
    changed_ns: int = 0


class VectorRow(NamedTuple):
    """A vector of one chunk in little-endian 16-bit floats; `mark` grows with every vector that is put in."""

    mark: int
    cid: int
    number: int
    vector: bytes


class ReadStore(Protocol):
    """The truth as a search reads it: all of it, or as much as one caller may see."""

    def chunks(self, cids: Sequence[int]) -> dict[int, StoredChunk]:
        """The chunks that exist among `cids`."""

    def resources_of(self, cids: Sequence[int]) -> dict[int, Resource]:
        """The resources of those chunks that exist among `cids`."""

    def document(self, rid: str) -> Document | None:
        """One resource with its text and chunks."""

    def rids(self, type: str | None = None) -> Iterator[str]:
        """All resource ids in order, or those of one type."""

    def resources(self) -> Iterator[Resource]:
        """All resources in the order of their ids, as they are at the time of the call."""

    def rights(self, since: int = 0, *, among: Collection[int] | None = None) -> list[Right]:
        """The rights to resources changed after `since`, all or those `among` some, in the order of their numbers."""

    def texts(self, numbers: Iterable[int]) -> Iterator[StoredText]:
        """The texts of those resources that exist among `numbers`, in the order of these."""

    def chunk_spans(self, numbers: Collection[int]) -> list[tuple[int, int, int, int]]:
        """The resource, the id, the start and the end of each chunk of some resources, in the order of their starts."""

    def matching(self, filters: Filters) -> Iterable[int]:
        """The numbers of all resources that pass the filters, with the meaning the keyword leg gives to each."""

    def successors(self, rids: Iterable[str], among: Container[int] | None = None) -> dict[str, str]:
        """Those of the resources that another one, whose number is `among` those given, `supersedes`; with that one."""

    def superseded(self, among: Container[int] | None = None) -> list[str]:
        """Every id that some resource names in its field `supersedes`; `among` as above."""

    def glossary(self) -> list[GlossaryTerm]:
        """All terms of the glossary, ordered by group and key."""

    def glossary_version(self) -> int:
        """A number that rises with every `write_glossary`, whoever it is by; 0 before the first. Cheap to ask for."""


class TruthStore(ReadStore, Protocol):
    """The truth of one workspace: every resource with its text and chunks. Every leg is derived from it.

    One writer at a time, who holds the write lock, any number of readers. A reader sees whole writes only. "Makes no
    change" says that `seq` stays as it is.
    """

    def seq(self) -> int:
        """The number of the latest change; 0 for an empty store. It never falls and never repeats."""

    def pinned(self) -> TruthStore:
        """This store to be read for one answer: with the number and the small values of now, where asking costs."""

    def write(self, documents: Iterable[Document], deleted_rids: Iterable[str] = ()) -> list[Change]:
        """Upsert documents and delete resources in one transaction.

        Chunks whose id is already there keep it; only their span is updated. A document equal to the stored one
        makes no change, nor does deleting what is not there.
        """

    def changes(self, since: int) -> Iterator[Change]:
        """Changes after `since`, oldest first, each resource once and as it is: absorbed only when all are applied."""

    def log_floor(self) -> int:
        """The number below which a leg cannot catch up from `changes` and starts from nothing."""

    def documents(self, numbers: Iterable[int]) -> Iterator[tuple[int, Document]]:
        """The documents of those resources that exist among `numbers`, in order of their numbers."""

    def counts(self) -> Mapping[str, int]:
        """`resources`, `chunks`, `characters`, `skipped`."""

    def chunk_ids(self) -> set[int]:
        """The ids of all chunks."""

    def made_counts(self) -> Mapping[str, int]:
        """Type → number of resources that are no files, with `relation` and `term`: only this store holds them."""

    def has_items(self) -> bool:
        """Whether any resource has no path. Cheap to ask for."""

    def fingerprints(self) -> dict[str, Fingerprint]:
        """Path → fingerprint of every resource that has a path and a fingerprint."""

    def touch(self, fingerprints: Mapping[str, Fingerprint]) -> None:
        """Record new fingerprints for resources (by path) whose content has not changed; makes no change."""

    def stamps(self) -> Iterable[tuple[str, int, int, int]]:
        """Path, size, time of change and inode of the same resources, at the least cost."""

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

    def right_to(self, rid: str) -> Right | None:
        """The rights to one resource, without a look at its text."""

    def relations(self) -> list[Relation]:
        """All relations, in order."""

    def relations_version(self) -> int:
        """A number that rises with every `write_relations`, whoever it is by; 0 before the first. Cheap to ask for."""

    def write_relations(self, added: Iterable[Relation], dropped: Iterable[Relation] = ()) -> None:
        """Drop relations, then put relations in, in one transaction; makes no change. What is there stays."""

    def put_vectors(self, model: str, vectors: Mapping[bytes, bytes], *, patience_s: float | None = None) -> None:
        """Keep vectors by digest; makes no change. What is there stays. Raises LockedError after `patience_s`."""

    def vectors(self, model: str, digests: Sequence[bytes]) -> dict[bytes, bytes]:
        """The vectors that exist among `digests`."""

    def vector_rows(self, model: str, since: int) -> Iterator[VectorRow]:
        """The vectors put in after mark `since`, in order, one row for each chunk that has the digest now."""

    def unembedded(self, model: str, limit: int, *, skip: Container[bytes] = (), of: Share = ALL) -> list[StoredChunk]:
        """Up to `limit` chunks without a vector, one for each digest that is not in `skip`: the wanted ones first."""

    def want(self, cids: Iterable[int], *, patience_s: float | None = None) -> None:
        """Note chunks that a search wants vectors of; the latest come first. Raises LockedError after `patience_s`."""

    def coverage(self, model: str, of: Share = ALL) -> tuple[int, int]:
        """Number of chunks with a vector, and of all chunks, of a share."""

    def coverages(self) -> dict[str, int]:
        """Model → how many chunks have a vector of it. Cheap to ask for: every hybrid search may."""

    def models(self) -> dict[str, int]:
        """Model → how many vectors are kept of it."""

    def drop_vectors(self, model: str | None = None) -> int:
        """Forget the vectors of one model, or with `None` those that no chunk has use for; returns their number."""

    def damaged_vectors(self) -> int:
        """Number of vectors that are not what was put in; every one is read."""

    def write_glossary(self, terms: Iterable[GlossaryTerm], dropped: Iterable[tuple[str, str]] = ()) -> None:
        """Drop terms by group and key, then put terms in, in one transaction; makes no change."""

    def accesses(self, rids: Iterable[str]) -> dict[str, Access]:
        """The accesses of those of the resources that were accessed."""

    def add_accesses(self, accesses: Mapping[str, Access]) -> None:
        """Count accesses in: the numbers add up, the latest time stays; makes no change."""

    def get_meta(self, key: str) -> str | None:
        """A small named value, kept with the data."""

    def set_meta(self, key: str, value: str) -> None:
        """Set a small named value."""

    @property
    def format(self) -> int:
        """The number of its format; 0 where it has none."""

    def integrity(self) -> list[str]:
        """Damage, one sentence each, after a look at everything; empty when all is sound."""

    def close(self) -> None:
        """Release files and connections; closing twice is fine."""


class KeywordHits(NamedTuple):
    """Chunk ids with raw BM25 scores, best first; `total` matches in all; `ceiling` is the most any chunk could score.

    `forms` names, for every query term, the forms of it that the index holds; a term without forms is unknown. A
    `Prefix` is the term `text*`, a `Fuzzy` the term `text~`.
    """

    hits: list[tuple[int, float]]
    total: int
    ceiling: float
    forms: Mapping[str, tuple[str, ...]]


class LegIndex(Protocol):
    """The files of a leg. Derived from the truth store, and rebuilt from it at any time."""

    def seq(self) -> int:
        """The number of the latest change that is durably absorbed."""

    def apply(self, changes: Iterable[Change]) -> None:
        """Apply changes; they become visible and durable with `commit`."""

    def commit(self, seq: int) -> None:
        """Make everything applied so far durable, together with the number it reaches."""

    def clear(self) -> None:
        """Forget everything, durably with the next commit."""

    def close(self) -> None:
        """Release files; what was not committed is forgotten."""


class KeywordLeg(LegIndex, Protocol):
    """Finds chunks by their words.

    `unit` says what it scores: every `chunk`, or every `page`, which is a resource as a whole.
    """

    unit: str

    def is_current(self) -> bool:
        """Whether its files are still those that were opened; a compacted index has other statistics."""

    def size(self) -> int:
        """Number of its chunks, or pages."""

    def cids(self) -> set[int]:
        """Every chunk id that it holds; for checks."""

    def frequencies(self, terms: Iterable[str]) -> Mapping[str, int]:
        """Term → number of chunks that hold it; about, where some were changed lately."""

    def vocabulary(self, prefix: str = "") -> Iterable[tuple[str, int]]:
        """The words it holds that begin so, each with the number of chunks it stands in, in no order."""

    def search(
        self, node: Node, filters: Filters, limit: int, *, weights: Mapping[str, float] | None = None
    ) -> KeywordHits:
        """The best `limit` chunks among those that pass the filters; `weights` are those of text fields.

        A node that asks for no text (see `asks_for_text`) has nothing to rank by: the latest chunks come first, all
        with the score 0.
        """

    def scores(
        self, node: Node, cids: Sequence[int], *, weights: Mapping[str, float] | None = None
    ) -> Mapping[int, float]:
        """Scores that a search would give some chunks, however far down they are; those that match at all."""

    def count(
        self, node: Node, filters: Filters, least: float, *, most: int, weights: Mapping[str, float] | None = None
    ) -> int:
        """Number of chunks that a search would score with at least so much; `most` where there are more."""

    def definers(
        self, names: Iterable[str], node: Node, filters: Filters, limit: int, weights: Mapping[str, float] | None = None
    ) -> list[tuple[int, float]]:
        """The `limit` chunks best by a search, 0 where they do not match it, among those that define any of the names.

        Case and style of a name do not count. Some of the chunks may define other names: their texts tell.
        """


class ExactLeg(LegIndex, Protocol):
    """Narrows down the resources whose texts may match a pattern. It has one entry a resource."""

    def is_current(self) -> bool:
        """Whether its files are still those that were opened."""

    def size(self) -> int:
        """Number of its resources."""

    def numbers(self) -> set[int]:
        """The numbers of all resources that it holds; for checks."""

    def candidates(self, required: Required, allowed: Collection[int] | None = None) -> Sequence[int]:
        """The numbers of the allowed resources that hold the trigrams, of all for `None`, in order.

        None of those that match is missing, as far as the leg has come; others may be among them.
        """


class VectorRows(Protocol):
    """Chunks with their vectors, to be searched."""

    def __len__(self) -> int:
        """Number of chunks that have a vector."""

    def count(self, allowed: Collection[int]) -> int:
        """Number of chunks of these resources that have a vector."""

    def search(
        self,
        query: Vectors,
        limit: int,
        *,
        allowed: Collection[int] | None = None,
        also: Sequence[int] = (),
        exact: bool = False,
    ) -> VectorHits:
        """The `limit` chunks nearest to a unit vector among those of the allowed resources, all of them for `None`.

        `also` are chunks whose cosines are wanted however far they are. With `exact`, every allowed row is looked at,
        and nothing in the outcome depends on the others.
        """


class VectorSearch(VectorRows, Protocol):
    """Vectors of one model. `speed` is `instant` when indexing makes them, `refined` when a model does so later."""

    speed: str


class VectorLeg(LegIndex, VectorSearch, Protocol):
    """A leg of vectors."""


@record()
class VectorHits:
    """Chunk ids with cosines, best first, and `scores` of the chunks that were asked for besides.

    `mean` and `deviation` are those of the cosines of all rows looked at, or of a fair sample: they show how far a
    cosine stands out for this query, whatever the model. `rows` counts the rows that passed the filter.
    """

    hits: list[tuple[int, float]]
    scores: Mapping[int, float]
    mean: float
    deviation: float
    rows: int
