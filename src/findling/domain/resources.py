"""Resources and the chunks they are made of."""

# No `from __future__ import annotations`: classes of fields parse each annotation that is a text, 1 ms in all.
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from functools import partial
from typing import NamedTuple

from findling.domain.values import record

PLACES = ("title", "name", "description", "tags", "author", "body", "kept")
"""Places of an item's fields: the text fields of a chunk, or `kept`, which is stored and not searched."""

MADE_BY_MODELS = ("situated", "model_names")
"""Fields that language models have written about a resource; a store notes the name of each that is in use."""


@record(kw_only=True)
class FieldRule:
    """The place of one field of an item.

    A field in the `body` is a section under its `heading`; several fields may share any place but the title. A
    `required` field is never empty. `many` fields are lists.
    """

    place: str = "body"
    heading: str = ""
    required: bool = False
    many: bool = False


@record(kw_only=True)
class ResourceType:
    """A type of resources, as data: nothing in the core knows any of them by name.

    `weights` are those of text fields in searches that are limited to this type. `lang` is that of the body, which
    chooses the chunker. Recency of a resource halves with every `half_life_days`; 0 says that it does not age. An item
    of an `immutable` type is never changed: another one supersedes it.
    """

    name: str
    fields: Mapping[str, FieldRule] = field(default_factory=dict)
    weights: Mapping[str, float] = field(default_factory=dict)
    lang: str = "markdown"
    half_life_days: float = 90.0
    immutable: bool = False


RESERVED = ("path:", "log:")
"""Starts that no id of a resource has: stores keep rights to folders and marks of logs under such names."""


class Fingerprint(NamedTuple):
    """The marks of a file's content: the cheap ones first, the digest only when those differ.

    `changed_ns` is the later one of the times at which content and status changed. An `inode` of 0 is not known.
    """

    size: int
    changed_ns: int
    digest: bytes = b""
    inode: int = 0


@record(kw_only=True)
class Resource:
    """One thing a person can open: a file, a chat thread, a decision, a memory.

    `visibility` lists the principals that may see it; `None` leaves it to the workspace's policy and an
    empty tuple means nobody. Times are seconds since the epoch.
    """

    rid: str
    type: str = "file"
    title: str = ""
    path: str = ""
    author: str = ""
    lang: str = ""
    tags: tuple[str, ...] = ()
    visibility: tuple[str, ...] | None = None
    created_at: float | None = None
    updated_at: float | None = None
    fields: Mapping[str, str] = field(default_factory=dict)


class Piece(NamedTuple):
    """A piece from a chunker: a span of the original text, in characters, and the headings above it."""

    start: int
    end: int
    heading: tuple[str, ...] = ()


class Place(NamedTuple):
    """The place in the file that the text from `start` on comes from.

    `label` names it for a reader of the file (`p. 12`, `Sheet1!A7`, `slide 3`, `00:01:02`); `line` is the line of the
    file, counted from 1, or 0 when the file has none.
    """

    start: int
    label: str = ""
    line: int = 0


class Chunk(NamedTuple):
    """A piece with its identity: `text[start:end]` of the resource, lines counted from 1, both ends included.

    `cid` depends on the resource, the heading path and the chunk's own text, so it survives edits elsewhere
    in the resource; `digest` is that of what a model reads of it (`passage`), so that equal passages share a vector
    across resources. `places` are those
    of the text in the chunk, the first one at its start; a file that is text itself has none.
    """

    cid: int
    digest: bytes
    ordinal: int
    start: int
    end: int
    line_start: int
    line_end: int
    heading: tuple[str, ...] = ()
    places: tuple[Place, ...] = ()


class ChunkTerms(NamedTuple):
    """The words of a chunk and of its headings in the form that legs index, and the names that it defines."""

    body: str
    heading: str
    defines: str = ""


class Document(NamedTuple):
    """Everything a store needs to hold one resource: the resource, its text, its chunks, its fingerprint.

    `terms` is one entry a chunk where somebody has analysed them already, in another process perhaps. It follows from
    the text, so it spares a leg work and is never stored. `vectors` are the instant ones, a row of 8-bit numbers each.
    """

    resource: Resource
    text: str
    chunks: tuple[Chunk, ...]
    fingerprint: Fingerprint | None = None
    terms: tuple[ChunkTerms, ...] = ()
    vectors: tuple[bytes, ...] = ()

    def __reduce__(self) -> tuple[object, ...]:
        """Its parts for a pickle, chunks and terms as plain tuples: one class a document, not two a chunk."""
        resource, text, chunks, fingerprint, terms, vectors = self
        return _unpickled, (resource, text, list(map(tuple, chunks)), fingerprint, list(map(tuple, terms)), vectors)


def _unpickled(
    resource: Resource,
    text: str,
    chunks: Sequence[tuple[object, ...]],
    fingerprint: Fingerprint | None,
    terms: Sequence[tuple[object, ...]],
    vectors: tuple[bytes, ...],
) -> Document:
    # Not `Chunk(*values)`, which is a call of Python code for each of them.
    own_chunks = tuple(map(partial(tuple.__new__, Chunk), chunks))
    own_terms = tuple(map(partial(tuple.__new__, ChunkTerms), terms))
    return Document(resource, text, own_chunks, fingerprint, own_terms, vectors)


class StoredChunk(NamedTuple):
    """A chunk as a store hands it back: with its resource and its own text."""

    chunk: Chunk
    resource: Resource
    text: str


class StoredText(NamedTuple):
    """The text of a resource as a store hands it back, with what decides who may see it.

    `digest` is that of the file it was read from, empty where there is none.
    """

    number: int
    rid: str
    path: str
    visibility: tuple[str, ...] | None
    digest: bytes
    text: str


@record()
class Share:
    """Some resources by their numbers, all for `None`, and the `others`; `name` tells which they are."""

    numbers: frozenset[int] | None = None
    others: frozenset[int] = frozenset()
    name: str = ""

    def __contains__(self, number: int) -> bool:
        return self.numbers is None or number in self.numbers

    def own(self, rows: Iterable[tuple[int, bytes, int]]) -> Iterator[tuple[int, bytes, int]]:
        """The rows whose last column is the number of a resource of the share."""
        return (row for row in rows if row[2] in self)

    def __bool__(self) -> bool:
        return self.numbers is None or bool(self.numbers)

    @property
    def counted(self) -> frozenset[int]:
        """The smaller side, by which the share is counted."""
        numbers, others = self.numbers, self.others
        return others if numbers is None or len(others) < len(numbers) else numbers

    def part(self, whole: tuple[int, int], rows: Iterable[tuple[int, int]]) -> tuple[int, int]:
        """Two counts of the share, from those of the whole and those of what is `counted`, in any number of rows."""
        first, second = [sum(column) for column in zip(*rows, strict=True)] or (0, 0)
        return (first, second) if self.counted is self.numbers else (whole[0] - first, whole[1] - second)


ALL = Share()


def beside(shares: Iterable[Share]) -> Share:
    """The share of what none of the shares holds."""
    rest = ALL
    for share in shares:
        numbers = share.others if rest.numbers is None else rest.numbers & share.others
        rest = Share(numbers, rest.others | (share.numbers or frozenset()))
    return rest
