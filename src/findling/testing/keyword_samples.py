"""A small library in several scripts, and nodes with the resources that they match."""

from __future__ import annotations

from findling.domain.queries import Any, Field, Filters, Fuzzy, Near, Node, Not, Phrase, Prefix, Range, Term, Word
from findling.testing.samples import line_document

__all__ = ["FILTERS", "LIBRARY", "MATCHES", "PROPERTIES"]

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
