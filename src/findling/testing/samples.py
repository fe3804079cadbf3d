"""Sample documents and queries, a model of a leg, and the base of the suites that need a store."""

from __future__ import annotations

import typing
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import replace
from hashlib import blake2b

import pytest

from findling.domain.ports import Change, TruthStore
from findling.domain.queries import (
    All,
    Any,
    Field,
    Filters,
    Fuzzy,
    Near,
    Node,
    Not,
    Phrase,
    Prefix,
    Range,
    Term,
    Word,
)
from findling.domain.resources import Chunk, Document, Fingerprint, Place, Resource

__all__ = [
    "AWKWARD",
    "EMPTY",
    "FILTERS",
    "FULL",
    "HISTORY",
    "LIBRARY",
    "MATCHES",
    "PLAIN",
    "PROPERTIES",
    "LegModel",
    "StoreSuite",
    "cid_of",
    "cids_of",
    "held_by",
    "line_document",
    "stored_document",
    "vectors_of",
    "with_metadata",
]


class StoreSuite(ABC):
    """Tests that ask for a `store` get a new, empty one each."""

    @abstractmethod
    def make_store(self) -> TruthStore:
        """A new, empty store."""

    @pytest.fixture
    def store(self) -> TruthStore:
        """The store of one test."""
        return self.make_store()


def line_document(
    rid: str, lines: Sequence[str], *, fingerprint: Fingerprint | None = None, **metadata: typing.Any
) -> Document:
    """A document with one chunk per line, its ids made as the contract of `Chunk` asks."""
    seen: dict[str, int] = {}
    chunks = []
    start = 0
    for ordinal, line in enumerate(lines):
        repeat = seen[line] = seen.get(line, -1) + 1
        cid = int.from_bytes(_digest(f"{rid}\0{line}\0{repeat}", 8), "big") >> 1
        end = start + len(line)
        chunks.append(Chunk(cid, _digest(line, 16), ordinal, start, end, ordinal + 1, ordinal + 1, ("Lines",)))
        start = end + 1
    return Document(Resource(rid=rid, **metadata), "\n".join(lines), tuple(chunks), fingerprint)


class LegModel:
    """A leg that does nothing but take notes: what it holds of every chunk, and the number it has absorbed."""

    def __init__(self) -> None:
        self.seq = 0
        self.held: dict[int, tuple[object, ...]] = {}

    def apply(self, changes: Iterable[Change]) -> None:
        """Drop, then add. A chunk must never be added on top of itself: a real leg would hold it twice."""
        for change in changes:
            for cid in change.dropped:
                self.held.pop(cid, None)
            noted = {} if change.document is None else _notes(change.document)
            assert change.added <= noted.keys(), "a change adds chunks that its document does not have"
            for cid in change.added:
                assert cid not in self.held, "a chunk was added twice"
                self.held[cid] = noted[cid]

    def catch_up(self, store: TruthStore) -> None:
        """Absorb what the store has done since, or everything when the log does not reach back far enough."""
        if self.seq < store.log_floor():
            self.seq, self.held = 0, {}
        self.apply(store.changes(self.seq))
        self.seq = store.seq()


def held_by(store: TruthStore) -> dict[int, tuple[object, ...]]:
    """The chunks of a leg that is up to date with the store."""
    notes: dict[int, tuple[object, ...]] = {}
    for rid in store.rids():
        notes |= _notes(stored_document(store, rid))
    return notes


def with_metadata(document: Document, **metadata: typing.Any) -> Document:
    """The document with other metadata."""
    return document._replace(resource=replace(document.resource, **metadata))


def stored_document(store: TruthStore, rid: str) -> Document:
    """The document of a resource that the store must have."""
    document = store.document(rid)
    assert document is not None, f"{rid} is listed but cannot be loaded"
    return document


def vectors_of(document: Document, vector: bytes) -> dict[bytes, bytes]:
    """The same vector for every passage of the document, in the order of the text."""
    return {chunk.digest: vector for chunk in document.chunks}


def _notes(document: Document) -> dict[int, tuple[object, ...]]:
    return {
        chunk.cid: (document.resource, chunk.heading, document.text[chunk.start : chunk.end])
        for chunk in document.chunks
    }


def _digest(text: str, size: int) -> bytes:
    return blake2b(text.encode(), digest_size=size).digest()


PLAIN = line_document("p", ["one", "two", "two", "three"])
_FULL = line_document(
    "chat:7",
    ["Was ist entschieden?", "Nichts."],
    fingerprint=Fingerprint(28, 1_700_000_000_123_456_789, b"\x00\xff"),
    type="chat",
    title="Runde „Größe“",
    path="chats/7.md",
    author="Ana",
    lang="de",
    tags=("plan", 'mit "Zitat"', "日本"),
    visibility=("team:a", "user:ana"),
    created_at=1.25,
    updated_at=1_700_000_000.123456,
    fields={"status": "open", "ärger": "nein"},
)
_PLACES = (Place(0, "p. 1"), Place(4, "'Größe 2'!A7", 12), Place(21, "", 3))
FULL = _FULL._replace(
    chunks=(
        _FULL.chunks[0]._replace(places=_PLACES[:2]),
        _FULL.chunks[1]._replace(places=_PLACES[2:]),
    )
)
AWKWARD = line_document("awk\U0001f33b", ["crlf\r", "nul\0inside", "", "🌻 astral", "\ufeffbom", "\u2028"], title="\0")
EMPTY = line_document("e", [])

HISTORY: tuple[tuple[list[Document], list[str]], ...] = (
    ([line_document("a", ["1", "2", "3"]), line_document("b", ["1"])], []),
    ([line_document("a", ["2", "3", "4"])], []),
    ([line_document("a", ["2", "3", "4"], title="T")], []),
    ([line_document("c", ["1", "1", "1"])], ["b"]),
    ([line_document("a", ["1", "2", "3"], title="T")], []),
    ([line_document("b", ["1", "9"]), line_document("c", ["1"])], []),
    ([], ["a", "b", "c"]),
    ([line_document("a", ["1", "2", "3"])], []),
)


def cids_of(document: Document) -> list[int]:
    """The ids of all chunks."""
    return [chunk.cid for chunk in document.chunks]


def cid_of(document: Document, line: str) -> int:
    """The id of the chunk with this text."""
    (cid,) = (chunk.cid for chunk in document.chunks if document.text[chunk.start : chunk.end] == line)
    return cid


LIBRARY = (
    line_document(
        "a",
        ["The connecting pool waits for a free connection."],
        path="src/db/Pool.py",
        lang="python",
        tags=("api",),
        updated_at=100.5,
    ),
    line_document(
        "b",
        ["Connected clients raise no error."],
        title="User guide",
        path="docs/guide.md",
        type="note",
        author="Ana Lima",
        updated_at=200.0,
    ),
    line_document("c", ["def getUserName(user_id): return MAX_VALUE"], path="src/names.py", lang="python"),
    line_document("d", ["数据库连接超时，请检查配置。"], path="docs/zh/timeout.md", author="wei", lang="zh"),
    line_document("e", ["50대는 여자보다 남자가 많다"], title="설문 조사", lang="ko", updated_at=300.0),
    line_document("f", ["Zürich's café likes IPv6Address, x509 and node.js"], path="backup.tar.gz"),
    line_document("g", ["книги в библиотеке"], tags=("two words", "API"), visibility=("team", "user:ana")),
    line_document(
        "h",
        ["The lighthouse of Alexandria, the great lighthouse"],
        fields={"name": "pharos", "description": "a burnt-out lamp", "system": "auth, Billing"},
        updated_at=-5.0,
    ),
    line_document("i", ["..."], path=".env", visibility=()),
)
"""Nine resources of one chunk each, named by one letter; all of them stand under the heading `Lines`."""

_CIDS = {document.resource.rid: str(document.chunks[0].cid) for document in LIBRARY}

MATCHES: tuple[tuple[Node, str], ...] = (
    (Word("connections"), "ab"), (Word("getUserName"), "bc"), (Word("max-pool"), "ac"), (Word("数据库"), "d"),
    (Word("库"), "d"), (Word("配"), "d"), (Word("книга"), "g"), (Word("cafe"), "f"), (Word("C++"), ""),
    (Word("!!!"), ""), (Word("/"), ""),
    (Term("connects"), "ab"), (Term("users"), "bc"), (Term("line"), "abcdefghi"), (Term("getUserName"), "c"),
    (Term("get_user_name"), "c"), (Term("GETUSERNAME"), "c"), (Term("value_max"), ""), (Term("user_name"), "c"),
    (Term("max_value"), "c"), (Term("node.js"), "f"), (Term("js.node"), ""), (Term("X509"), "f"),
    (Term("zurich's"), "f"), (Term("lighthouse's"), "h"), (Term("数据库"), "d"), (Term("连接"), "d"),
    (Term("连超"), ""), (Term("여자"), "e"), (Term("50대"), "e"), (Term("대"), "e"), (Term("40대"), ""),
    (Term("книгу"), "g"), (Term("!!!"), ""), (Term("guides", "title"), "b"), (Term("guide", "path"), "b"),
    (Term("guide", "body"), ""),
    (Term("pool", "body"), "a"), (Term("pool", "name"), "a"), (Term("db", "path"), "a"), (Term("db", "name"), ""),
    (Term("pharos", "name"), "h"), (Term("burnt-out", "description"), "h"), (Term("lamps"), "h"),
    (Term("api", "tags"), "ag"), (Term("lines", "heading"), "abcdefghi"),
    (Phrase("connecting pool"), "a"), (Phrase("connected pool"), ""), (Phrase("pool connecting"), ""),
    (Phrase("connection"), "a"), (Phrase("connections"), ""), (Phrase("db pool py"), "a"), (Phrase("two words"), "g"),
    (Phrase("user guide", "title"), "b"), (Phrase("user guide", "body"), ""), (Phrase("数据库连接"), "d"),
    (Phrase("据库"), "d"), (Phrase("库"), ""), (Phrase("여자보다 남자가"), "e"), (Phrase(""), ""),
    (Prefix("conn"), "ab"), (Prefix("Connected cl"), "b"), (Prefix("getUs"), "c"), (Prefix("ipv6Add"), "f"),
    (Prefix("MAX_VAL"), "c"), (Prefix("connecting cl"), ""), (Prefix("gui", "title"), "b"),
    (Prefix("gui", "body"), ""), (Prefix("数"), "d"), (Prefix("数据库"), "d"), (Prefix("남"), "e"),
    (Prefix("кни"), "g"), (Prefix(".*"), ""),
    (Fuzzy("poll"), "a"), (Fuzzy("pol"), "a"), (Fuzzy("opol"), "a"), (Fuzzy("oopl"), ""), (Fuzzy("oopl", 2), "a"),
    (Fuzzy("cornection"), "a"), (Fuzzy("cornecting", 2), "a"), (Fuzzy("cornecton", 2), "a"),
    (Fuzzy("gide", 1, "title"), "b"), (Fuzzy("gide", 1, "body"), ""), (Fuzzy("книпи"), "g"),
    (Near("pool", "connecting", 0), "a"), (Near("free", "pools", 3), "a"), (Near("free", "pools", 2), ""),
    (Near("free", "pools", 0), ""), (Near("connect", "connects", 5), "a"), (Near("free", "free", 9), ""),
    (Near("lighthouses", "lighthouse", 9), "h"), (Near("guide", "user", 5), ""),
    (Near("max_value", "getUserName", 5), "c"), (Near("x509", "js", 4), "f"), (Near("x509", "node.js", 1), "f"),
    (Near("여자", "남자", 9), "e"), (Near("pool", "!!!", 9), ""),
    (All((Term("line"), Field("cid", (_CIDS["a"], _CIDS["d"], "12345")))), "ad"),
    (All((Term("users"), Not(Field("cid", (_CIDS["b"],))))), "c"),
    (All((Term("users"), Field("cid", ("12345",)))), ""),
)  # fmt: skip
"""Nodes, each with the letters of the resources that match."""

PROPERTIES: tuple[tuple[Node, str], ...] = (
    (Field("path", ("SRC",)), "ac"), (Field("path", ("/src/d",)), "a"), (Field("path", ("/db",)), ""),
    (Field("path", ("*.py",)), "ac"), (Field("path", ("/docs/*.md",)), "bd"), (Field("path", ("z?", "pool")), "ad"),
    (Field("path", ("/z?",)), ""), (Field("path", ("src*names",)), ""), (Field("ext", (".MD", "gz")), "bdf"),
    (Field("ext", ("tar.gz",)), "f"), (Field("ext", ("ar.gz",)), ""), (Field("lang", ("Python", "KO")), "ace"),
    (Field("type", ("Note",)), "b"), (Field("type", ("not",)), ""), (Field("tag", ("Api",)), "ag"),
    (Field("tag", ("words",)), ""), (Field("author", ("lima",)), "b"), (Field("author", ("Lima, Ana",)), "b"),
    (Field("author", ("ana wei",)), ""), (Field("system", ("BILLING",)), "h"), (Field("system", ("bill",)), ""),
    (Field("rid", ("a", "e", "x")), "ae"), (Field("rid", ("A",)), ""), (Field("rid", ()), ""),
    (Range(after=100), "abe"), (Range(after=101), "be"), (Range(after=100, before=200), "a"), (Range(before=0), "h"),
    (Range(), "abcdefghi"),
    (Not(Range(after=-1000)), "cdfgi"),
    (Any((Field("ext", ("py",)), Not(Field("path", ("",))))), "ac"),
)  # fmt: skip
"""Nodes that look at no text, each with the letters of the resources that match."""

FILTERS = (
    Filters(), Filters(ext=("py", ".gz")), Filters(not_ext=("md",)), Filters(path=("src",)),
    Filters(path=("/docs/zh/", "backup.tar.gz")), Filters(path=("doc", "SRC/db")), Filters(type=("note", "chat")),
    Filters(lang=("PYTHON",)), Filters(tag=("two words", "other")), Filters(tag=("two",)), Filters(author=("wei",)),
    Filters(after=100.0, before=300.0), Filters(after=100.7), Filters(before=100.0),
    Filters(path=("src",), lang=("python",), not_ext=("py",)),
    Filters(path=("src",), where=Not(Field("rid", ("a",)))), Filters(tag=("db",), where=Range(after=0)),
)  # fmt: skip
