"""Every leg finds what brute force finds: thousands of random queries against an evaluator that knows no index.

The evaluator writes each field of a chunk as one string of its terms, ` get user name `, and asks it with substrings
and regular expressions; the legs work with postings and positions. They share the analysis of text and nothing else.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from functools import cache
from random import Random
from typing import NamedTuple

import pytest

from findling.domain.plans import FIELDS
from findling.domain.ports import KeywordLeg, TruthStore
from findling.domain.queries import (
    All,
    Any,
    Field,
    Filters,
    Fuzzy,
    Near,
    Node,
    Not,
    Pattern,
    Phrase,
    Prefix,
    Range,
    Same,
    Term,
    Word,
)
from findling.domain.resources import Document, Resource
from findling.pipelines.indexing.fanout import catch_up
from findling.stores.keyword.leg import TantivyLeg
from findling.stores.sqlite.store import SqliteStore
from findling.testing.samples import line_document
from findling.text.analysis.analysis import (
    STOP_WORDS,
    is_compound,
    phrase_terms,
    prefix_terms,
    row_terms,
    terms,
    word_terms,
)
from findling.text.analysis.scripts import is_unspaced
from findling.text.analysis.stemming import same_stem
from findling.text.query.parser import parse
from findling.text.query.query_mode import read
from tests.counts import tries
from tests.memory_leg import MemoryLeg
from tests.memory_store import MemoryStore

TREES = tries(10_000, short=300)
STRINGS = tries(10_000, short=400)
EPOCH = 1_700_000_000
MANY = 1000

ALL_FIELDS = dict.fromkeys(FIELDS, 1.0)
"""A field without weight is found only by those who name it."""

Vocabulary = tuple[str, ...]


# The evaluator


class Passage(NamedTuple):
    """A chunk as the evaluator sees it: its resource, and the terms of each text field, each between two spaces."""

    resource: Resource
    rows: Mapping[str, str]


def passage(resource: Resource, text: str, heading: Sequence[str]) -> Passage:
    """The chunk with this text and this heading."""
    texts = {
        "body": text,
        "title": resource.title,
        "heading": "\n".join(heading),
        "path": resource.path,
        "tags": " ".join(resource.tags),
        "name": resource.fields.get("name") or resource.path.rpartition("/")[2],
        "description": resource.fields.get("description", ""),
    }
    return Passage(resource, {name: f" {' '.join(terms(texts[name]))} " for name in FIELDS})


def matches(node: Node, chunk: Passage, vocabulary: Vocabulary) -> bool:
    """Whether a chunk matches; `vocabulary` is every term of the index, among which words have their forms."""
    if isinstance(node, Field | Range):
        return _holds(node, chunk.resource)
    if isinstance(node, Not):
        return not matches(node.node, chunk, vocabulary)
    if isinstance(node, Any | Same):
        return any(matches(part, chunk, vocabulary) for part in node.nodes)
    if isinstance(node, All):
        return all(matches(part, chunk, vocabulary) for part in node.nodes)
    assert not isinstance(node, Pattern), "a keyword leg finds words"
    name = "body" if isinstance(node, Near) else "" if isinstance(node, Word) else node.field
    return any(_stands(node, row, vocabulary) for field, row in chunk.rows.items() if name in ("", field))


def _stands(leaf: Word | Term | Phrase | Prefix | Fuzzy | Near, row: str, vocabulary: Vocabulary) -> bool:
    if isinstance(leaf, Word):
        return any(re.search(f" {_forms(term, vocabulary)} ", row) for term in word_terms(leaf.text))
    if isinstance(leaf, Term):
        wanted = _as_meant(leaf.text, vocabulary)
        return wanted is not None and re.search(f" {wanted} ", row) is not None
    if isinstance(leaf, Phrase):
        words = phrase_terms(leaf.text)
        return bool(words) and f" {' '.join(words)} " in row
    if isinstance(leaf, Prefix):
        words = prefix_terms(leaf.text)
        return bool(words) and f" {' '.join(words)}" in row
    if isinstance(leaf, Fuzzy):
        words = prefix_terms(leaf.text)
        most = min(leaf.distance, len(words[0]) // 2) if words else 0
        return bool(words) and any(edits(words[0], term) <= most for term in row.split())
    first, second = _as_meant(leaf.first, vocabulary), _as_meant(leaf.second, vocabulary)
    if first is None or second is None:
        return False
    between = f" (?:[^ ]+ ){{0,{leaf.distance}}}"
    return re.search(f" (?:{first}{between}{second}|{second}{between}{first}) ", row) is not None


@cache
def _as_meant(text: str, vocabulary: Vocabulary) -> str | None:
    """A regular expression for the ways in which a word that is meant may stand."""
    row = row_terms(text)
    if len(row) < 2:
        return _forms(row[0], vocabulary) if row else None
    ways = [" ".join(map(re.escape, row)) + ("[^ ]*" if len(row[-1]) == 1 and is_unspaced(row[-1]) else "")]
    given = terms(text)
    if not is_compound(text) and all(term.isascii() for term in given):
        ways.append(given[0])
    return f"(?:{'|'.join(ways)})"


@cache
def _forms(term: str, vocabulary: Vocabulary) -> str:
    if len(term) == 1 and is_unspaced(term):
        return f"{term}[^ ]*"
    return f"(?:{'|'.join(map(re.escape, [term, *same_stem(term, vocabulary)]))})"


@cache
def edits(one: str, other: str) -> int:
    """The number of letters to add, leave out, change or swap with a neighbour, each at most once."""
    if not one or not other:
        return len(one) + len(other)
    ways = [
        edits(one[:-1], other) + 1,
        edits(one, other[:-1]) + 1,
        edits(one[:-1], other[:-1]) + (one[-1] != other[-1]),
    ]
    if len(one) > 1 and len(other) > 1 and one[-2:] == other[-1] + other[-2]:
        ways.append(edits(one[:-2], other[:-2]) + 1)
    return min(ways)


def _holds(node: Field | Range, resource: Resource) -> bool:
    if isinstance(node, Range):
        if node.after is None and node.before is None:
            return True
        at = resource.updated_at
        return at is not None and (node.after is None or at >= node.after) and (node.before is None or at < node.before)
    if node.name == "rid":
        return resource.rid in node.values
    return any(_has_value(node.name, value.lower(), resource) for value in node.values)


def _has_value(name: str, value: str, resource: Resource) -> bool:
    if name == "path":
        return _lies_at(value, resource.path.lower())
    if name == "ext":
        return resource.path.lower().rpartition("/")[2][1:].endswith(f".{value.removeprefix('.')}")
    if name == "author":
        return set(terms(value)) <= set(terms(resource.author))
    held = {
        "lang": [resource.lang],
        "type": [resource.type],
        "tag": resource.tags,
        "system": [part.strip() for part in resource.fields.get("system", "").split(",")],
        "language": [part.strip() for part in resource.fields.get("language", "").split(",")],
    }
    return value in [one.lower() for one in held[name]]


def _lies_at(value: str, path: str) -> bool:
    anchored, wanted = value.startswith("/"), value.removeprefix("/")
    if "*" not in wanted and "?" not in wanted:
        return path.startswith(wanted) if anchored else wanted in path
    glob = re.escape(wanted).replace(r"\*", ".*").replace(r"\?", ".")
    return re.search(f"{'^' if anchored else '(?:^|/)'}{glob}(?:/|$)", path) is not None


# The corpus

WORDS = (
    "connect connects connected connecting connection connections user users user's error errors use used using pool "
    "happy happier café cafe database timeout login the not in of 50 "
    "getUserName get_user_name GETUSERNAME getUser max MAX_VALUE node node.js x509 IPv6Address sign-in c++ C# v2 🚀 "
    "여자 여자는 남자 50대 50대는 검색 数据 数据库 数据库连接 库 连接 データベース 日 книга книги книгу λόγος"
).split()


def make_corpus() -> list[Document]:
    """14 resources of three chunks each, in all metadata as different as can be."""
    random = Random(1)
    return [_make_document(random, number) for number in range(14)]


def _make_document(random: Random, number: int) -> Document:
    def some(least: int, most: int) -> str:
        return " ".join(random.choices(WORDS, k=random.randint(least, most)))

    folder = random.choice(["", "src/", "src/db/", "docs/ko/", "Docs/Guides/"])
    names = ["pool.py", "userGuide.md", "node.js", "backup.tar.gz", "数据库.txt", ".env", "README"]
    resource = Resource(
        rid=f"file:{number}",
        type=random.choice(["file", "file", "chat", "Decision"]),
        title=some(0, 3),
        path=f"{folder}{names[number % 7]}" if number else "",
        author=random.choice(["", "Ana Lima", "Bo", "ana"]),
        lang=random.choice(["", "python", "markdown", "ko"]),
        tags=tuple(random.sample(["api", "API", "two words", "검색", "users"], random.randint(0, 3))),
        updated_at=None if number % 7 == 3 else EPOCH + 0.7 * DAY * random.randint(0, 12),
        fields={
            key: value
            for key, value in (("system", random.choice(["", "Auth", "auth, Billing"])), ("description", some(0, 4)))
            if value
        }
        | ({"name": some(1, 2)} if number % 5 == 0 else {}),
    )
    document = line_document(resource.rid, [f"{some(2, 9)}{'.' * line}" for line in range(3)])
    chunks = tuple(chunk._replace(heading=tuple(some(0, 2).split("-"))) for chunk in document.chunks)
    return document._replace(resource=resource, chunks=chunks)


# The queries

BLANK = ("/", "!!!", "")
DAY = 86_400
FIELD_VALUES = {
    "path": [
        "src",
        "SRC/",
        "/src",
        "docs/",
        "/db",
        "pool",
        "*.py",
        "src/*.md",
        "/docs/k?",
        "d?",
        "/*/*/*",
        "数据",
        "*",
    ],
    "ext": ["py", ".md", "GZ", ".tar.gz", "env", "txt"],
    "lang": ["Python", "ko", "rust"],
    "type": ["file", "CHAT", "decision", "fil"],
    "tag": ["api", "Two Words", "two", "검색"],
    "system": ["auth", "BILLING", "b"],
    "author": ["ana", "Lima Ana", "Bo", "lim"],
    "rid": ["file:1", "FILE:2", "file:9"],
}

SIDE_BY_SIDE, OR, PIPE, NEGATION, LEAF = range(5)
JOINTS: list[tuple[type[All | Any | Same], int, str]] = [
    (All, SIDE_BY_SIDE, " "),
    (All, SIDE_BY_SIDE, " AND "),
    (Any, OR, " OR "),
    (Same, PIPE, " | "),
    (Same, PIPE, "|"),
]


def random_tree(random: Random, depth: int) -> Node:
    """A tree of at most this depth."""
    if depth == 0 or random.random() < 0.3:
        return random_leaf(random)
    if random.random() < 0.2:
        return Not(random_tree(random, depth - 1))
    kind, _, _ = random.choice(JOINTS)
    return kind(tuple(random_tree(random, depth - 1) for _ in range(random.choice([0, 1, 2, 2, 2, 3, 3]))))


def random_leaf(random: Random) -> Node:
    """Words, phrases, beginnings and misspellings of what the corpus is made of; conditions on its resources."""
    kind = random.randrange(12)
    if kind == 11:
        after, before = (random.choice([None, EPOCH + random.randint(0, 90) * DAY / 10]) for _ in range(2))
        return Range(after, before)
    if kind > 8:
        name = random.choice(list(FIELD_VALUES))
        return Field(name, tuple(random.sample(FIELD_VALUES[name], random.choice([1, 1, 2]))))
    word, other = (random.choice(BLANK if random.random() < 0.01 else WORDS) for _ in range(2))
    field = random.choice([*FIELDS, *[""] * 12])
    if kind < 2:
        return Word(word)
    if kind < 5:
        return Term(word, field)
    if kind == 5:
        return Phrase(random.choice([word, f"{word} {other}"]), field)
    if kind == 6:
        return Prefix(random.choice([word[: random.randint(1, 5)], f"{word} {other[:1]}"]), field)
    if kind == 7:
        return Fuzzy(_misspelt(random, word), random.choice([0, 1, 1, 2]), field)
    return Near(word, other, random.choice([0, 1, 2, 3, 10]))


def _misspelt(random: Random, word: str) -> str:
    at = random.randrange(len(word) + 1)
    left, letter, right = word[:at], word[at : at + 1], word[at + 1 :]
    return random.choice([word, left + right, f"{left}x{right}", f"{left}x{letter}{right}", left + right[:1] + letter])


class Spoken(NamedTuple):
    """A query as a person types it, what is meant by it, and how tightly its outermost operator binds."""

    text: str
    node: Node
    binding: int


PLAIN_WORDS = [word for word in WORDS if not STOP_WORDS.issuperset(terms(word))]
SINGLE_TERMS = [word for word in PLAIN_WORDS if len(terms(word)) == 1 and word.isalpha()]


def random_spoken(random: Random, depth: int, fields: list[str]) -> Spoken:
    """A query that needs no mending; each of the fields is used once at most, since two values of one mean either."""
    if depth == 0 or random.random() < 0.3:
        return _spoken_leaf(random, fields)
    if random.random() < 0.25:
        part = random_spoken(random, depth - 1, fields)
        return Spoken(random.choice(["-", "NOT "]) + _bracketed(random, part, LEAF), Not(part.node), NEGATION)
    kind, binding, joint = random.choice(JOINTS)
    parts = [random_spoken(random, depth - 1, fields) for _ in range(random.choice([2, 2, 3]))]
    text = joint.join(_bracketed(random, part, binding + 1) for part in parts)
    return Spoken(text, kind(tuple(part.node for part in parts)), binding)


def _is_shouted(text: str) -> bool:
    """Whether the words beside operators, fields and quotes are all in capitals."""
    bare = re.sub(r'"[^"]*"|“[^”]*”|«[^»]*»|「[^」]*」', "quote", text)
    bare = re.sub(r"[\w:]+:[^\s|)]+|quote|[()|]", " ", bare)
    bare = re.sub(r"\b(AND|OR|NOT)\b|NEAR/\d|[-.*]|~\d", "", bare)
    words = [word for word in bare.split() if word.isalpha()]
    return any(len(word) > 1 for word in words) and all(map(str.isupper, words))


def _bracketed(random: Random, part: Spoken, binding: int) -> str:
    return f"({part.text})" if part.binding < binding or random.random() < 0.1 else part.text


def _spoken_leaf(random: Random, fields: list[str]) -> Spoken:
    word, other = random.choice(PLAIN_WORDS), random.choice(PLAIN_WORDS)
    field = random.choice([*FIELDS, *[""] * 14])
    name = "title:" if field == "title" else f"in:{field}:" if field else ""
    kind = random.randrange(9)
    if kind == 0 and fields:
        return _spoken_condition(random, fields.pop())
    if kind == 1:
        distance = random.randint(0, 5)
        return Spoken(f"{word} NEAR/{distance} {other}", Near(word, other, distance), LEAF)
    if kind == 2:
        phrase = random.choice([word, f"{word} {other}", f"the {word}"])
        quotation = random.choice(['"{}"', "“{}”", "«{}»", "「{}」"]).format(phrase)
        return Spoken(f"{name}{quotation}", Phrase(phrase, field), LEAF)
    if kind == 3:
        begun = random.choice(SINGLE_TERMS)[: random.randint(2, 4)]
        return Spoken(f"{name}{begun}*", Prefix(begun, field), LEAF)
    if kind == 4:
        fuzzy, distance = random.choice(SINGLE_TERMS), random.choice([1, 2])
        return Spoken(f"{name}{fuzzy}~{distance}", Fuzzy(fuzzy, distance, field), LEAF)
    return Spoken(f"{name}{word}", Term(word, field), LEAF)


def _spoken_condition(random: Random, name: str) -> Spoken:
    if name in ("after", "before"):
        day = datetime.fromtimestamp(EPOCH + random.randint(0, 9) * DAY).replace(hour=0, minute=0, second=0)
        return Spoken(f"{name}:{day.date()}", Range(**{name: day.timestamp()}), LEAF)
    values = random.sample(FIELD_VALUES[name], random.choice([1, 1, 2]))
    text = ",".join(f'"{value}"' if " " in value else value for value in values)
    return Spoken(f"{name}:{text}", Field(name, tuple(values)), LEAF)


def random_noise(random: Random) -> str:
    """Texts that nobody types on purpose: operators that join nothing, ends without beginnings."""
    pieces = [
        "AND",
        "OR",
        "|",
        "NOT",
        "NEAR/2",
        "NEAR",
        "(",
        ")",
        "-",
        '"',
        "“",
        "*",
        "~",
        ",",
        "\\",
        "in:title",
        "is:chat",
    ]
    pieces += ["path:", "title:", "before:2023-11-20", "after:7", "foo:bar", "!!!", "--", "tag:", "ext:py,md"]
    chosen = random.choices([*pieces, *random.choices(WORDS, k=2 * len(pieces))], k=random.randint(1, 9))
    return "".join(f"{piece}{random.choice(['', ' ', ' ', ' '])}" for piece in chosen)


# The test


class Oracle:
    """The evaluator over a corpus; what it says of a leaf is remembered."""

    def __init__(self, documents: Sequence[Document]) -> None:
        self._chunks = {
            chunk.cid: passage(document.resource, document.text[chunk.start : chunk.end], chunk.heading)
            for document in documents
            for chunk in document.chunks
        }
        rows = (row for chunk in self._chunks.values() for row in chunk.rows.values())
        self._vocabulary = tuple(sorted({term for row in rows for term in row.split()}))
        self._leaves: dict[Node, frozenset[int]] = {}

    def cids(self, node: Node) -> frozenset[int]:
        """The chunks that match."""
        if isinstance(node, Not):
            return frozenset(self._chunks) - self.cids(node.node)
        if isinstance(node, Any | Same):
            return frozenset().union(*map(self.cids, node.nodes))
        if isinstance(node, All):
            return frozenset(self._chunks).intersection(*map(self.cids, node.nodes))
        if node not in self._leaves:
            found = (cid for cid, chunk in self._chunks.items() if matches(node, chunk, self._vocabulary))
            self._leaves[node] = frozenset(found)
        return self._leaves[node]


@pytest.fixture(scope="module")
def oracle() -> Oracle:
    return Oracle(make_corpus())


@pytest.fixture(scope="module")
def legs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[KeywordLeg]]:
    folder = tmp_path_factory.mktemp("oracle")
    with SqliteStore.open(folder / "truth.db") as store:
        pairs: list[tuple[TruthStore, KeywordLeg]] = [
            (store, TantivyLeg.open(folder / "keyword", store_id="test")),
            (MemoryStore(), MemoryLeg()),
        ]
        for truth, leg in pairs:
            truth.write(make_corpus())
            catch_up(truth, leg)
        yield [leg for _, leg in pairs]
        for _, leg in pairs:
            leg.close()


def disagreements(legs: Sequence[KeywordLeg], node: Node, expected: frozenset[int]) -> list[str]:
    """The hits of each leg that differ from those of brute force."""
    told = []
    for leg in legs:
        answer = leg.search(node, Filters(), MANY, weights=ALL_FIELDS)
        found = {cid for cid, _ in answer.hits}
        if found != expected or answer.total != len(expected):
            told.append(f"{type(leg).__name__}: {node} finds {len(found)} ({answer.total}), not {len(expected)}")
    return told


@pytest.mark.slow
def test_trees_find_what_brute_force_finds(legs: list[KeywordLeg], oracle: Oracle) -> None:
    random = Random(5)
    told: list[str] = []
    telling = 0
    for _ in range(TREES):
        node = random_tree(random, 3)
        expected = oracle.cids(node)
        told += disagreements(legs, node, expected)
        telling += 0 < len(expected) < len(oracle.cids(All(())))
    assert sorted(told, key=len)[:5] == []
    assert telling > TREES / 3


@pytest.mark.slow
def test_queries_find_what_is_meant(legs: list[KeywordLeg], oracle: Oracle) -> None:
    random = Random(6)
    told: list[str] = []
    telling = 0
    for _ in range(STRINGS // 2):
        fields = [name for name in (*FIELD_VALUES, "after", "before") if name != "rid"]
        random.shuffle(fields)
        spoken = random_spoken(random, 3, fields)
        if _is_shouted(spoken.text):
            continue  # AND, OR and NOT are words there
        expected = oracle.cids(spoken.node)
        understood = read(parse(spoken.text), "all").node
        if oracle.cids(understood) != expected:
            told.append(f"{spoken.text} is understood as {understood}")
        else:
            told += disagreements(legs, understood, expected)
        telling += 0 < len(expected) < len(oracle.cids(All(())))
    assert sorted(told, key=len)[:5] == []
    assert telling > STRINGS / 6


@pytest.mark.slow
def test_noise_finds_what_brute_force_makes_of_it(legs: list[KeywordLeg], oracle: Oracle) -> None:
    random = Random(7)
    told: list[str] = []
    for _ in range(STRINGS // 2):
        node = read(parse(random_noise(random)), "all").node
        told += disagreements(legs, node, oracle.cids(node))
    assert sorted(told, key=len)[:5] == []
