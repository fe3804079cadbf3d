"""From a query tree and filters to one query of an engine with BM25 weights that fit together."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple
from zlib import crc32

from tantivy import DocAddress, FieldType, Occur, Query, Schema, SearchResult

from findling.domain.backends import Scoring
from findling.domain.errors import InvalidValueError
from findling.domain.queries import (
    COMPARED,
    CONDITIONS,
    PROPERTIES,
    All,
    Any,
    Field,
    Filters,
    Node,
    Not,
    Pattern,
    Range,
    Same,
    Term,
    Word,
)
from findling.domain.resources import Resource
from findling.stores.filtering import condition, conditions, dotted, languages_in, no_property, time_span, values_held
from findling.stores.keyword.leaf_queries import Leaves, Memory, ScoredQuery, best_of, sum_of, unsaid
from findling.stores.keyword.segment_files import FORMS_FILE
from findling.stores.keyword.term_weights import KeywordWords, repeated
from findling.text.analysis.analysis import is_compound, row_terms, terms
from findling.text.analysis.scripts import name_terms
from findling.text.analysis.stemming import forms_table, stemmer_version

_LITERAL = ("name", *[one.name for one in PROPERTIES.values() if one.kind in ("exact", "path")])


def scope_tokens(resource: Resource) -> list[str]:
    """The tokens that filters look for: one for each thing a resource can be limited by.

    A path gives a token for itself and for every folder above it, so that a path prefix is one term.
    """
    tokens = [_token(name, value) for name in COMPARED for value in values_held(resource, name)]
    if resource.path:
        parts = resource.path.lower().split("/")
        tokens += [_token("name", given) for given in {parts[-1], parts[-1].partition(".")[0], "/".join(parts[-2:])}]
    return tokens


def rid_token(rid: str) -> str:
    """The token that all entries of a resource have in common."""
    return _token("rid", rid)


def among(schema: Schema, query: Query, cids: Iterable[int]) -> Query:
    """The query for no other chunks than these, at the scores that it gives them."""
    named = [(Occur.Should, Query.term_query(schema, "cid", cid, index_option="basic")) for cid in cids]
    these = Query.const_score_query(Query.boolean_query(named), 0.0)
    return Query.boolean_query([(Occur.Must, query), (Occur.Must, these)])


def everything() -> Query:
    """A query for every chunk, without a score."""
    return Query.const_score_query(Query.all_query(), 0.0)


class KeywordScope:
    """Builds queries about resources against one state of the index. None of them adds to a score."""

    def __init__(self, schema: Schema, words: KeywordWords) -> None:
        self._schema = schema
        self._words = words
        self._paths: list[tuple[str, str]] | None = None

    def query(self, node: Field | Range) -> Query:
        """The chunks of the resources for which it holds. Raises InvalidValueError for an unknown property."""
        if isinstance(node, Range):
            span = time_span(node)
            return everything() if span is None else self._changed_within(span)
        if node.name == "cid":
            cids = Query.term_set_query(self._schema, "cid", [int(value) for value in node.values])
            return Query.const_score_query(cids, 0.0)
        if node.name == "folder":
            return self._any_of([_token("path", folder) for folder in node.values])
        if node.name not in COMPARED:
            raise no_property(node.name)
        kind = PROPERTIES[node.name].kind
        if kind == "path":
            return self._any_of(self._tokens_of_paths(node))
        if kind == "names":
            return self._written_by(node.values)
        values = dotted(node.values) if kind == "ending" else node.values
        spoken = languages.values if (languages := languages_in(node)) else ()
        tokens = [_token("language", value) for value in spoken]
        return self._any_of([*tokens, *[_token(node.name, value) for value in values]])

    def named(self, text: str, worth: float) -> Query | None:
        """The file that the text names, with or without its extension or folder, at a score; None if there is none."""
        token = _token("name", named_file(text))
        if not self._words.frequency("scope", token):
            return None
        return Query.const_score_query(self.term("scope", token), worth)

    def _any_of(self, tokens: list[str]) -> Query:
        return Query.const_score_query(Query.term_set_query(self._schema, "scope", tokens), 0.0)

    def _changed_within(self, span: tuple[int, int]) -> Query:
        query = Query.range_query(self._schema, "updated", FieldType.Integer, *span, True, False)
        return Query.const_score_query(query, 0.0)

    def _written_by(self, values: Iterable[str]) -> Query:
        """Any author among whose names all of one value are."""
        asked = [names for value in values if (names := terms(value))]
        each = [Query.boolean_query([(Occur.Must, self.term("author", name)) for name in names]) for names in asked]
        return Query.const_score_query(Query.boolean_query([(Occur.Should, query) for query in each]), 0.0)

    def _tokens_of_paths(self, node: Field) -> list[str]:
        """The files and folders for which it holds, without what lies in one of these folders."""
        # The meaning of a path is that of every store. It is asked of names, not of the index: tantivy's own patterns
        # end at 1,000 states, which is a name of 300 letters.
        holds = condition(node, lambda _, accepts: accepts)
        if self._paths is None:
            tokens = [token for token, _ in self._words.begun("scope", "path=")]
            # The content of a folder comes right after it, not after files with a similar name.
            self._paths = sorted(((_value(token), token) for token in tokens), key=lambda path: path[0].split("/"))
        found: list[str] = []
        above = "\0"
        for path, token in self._paths:
            if not path.startswith(above) and holds(path):
                found.append(token)
                above = f"{path}/" if path else above
        return found

    def term(self, field: str, token: str) -> Query:
        """The chunks with one term in a field."""
        return Query.term_query(self._schema, field, token, index_option="basic")


def named_file(text: str) -> str:
    """A text as the name of a file, with its folder at most, and without a line: `queues.py` of `./queues.py:120:5`."""
    parts = (re.sub(_LINE, "", text) if ":" in text else text).lower().replace("\\", "/").split("/")
    return "/".join([part for part in parts if part not in ("", ".", "..")][-2:])


_LINE = r"(?::\d{1,9}){1,2}:?$"


_UNSAFE = re.compile(r"[%\s\ud800-\udfff]")
_ESCAPED = r"%([0-9a-f]+);"


def _token(kind: str, value: str) -> str:
    # tantivy splits the field at white space, so a value must not bring any of its own; and it takes no halves of
    # surrogate pairs, which is what bytes that are no UTF-8 arrive as.
    value = value if kind in _LITERAL else value.lower()
    # Spaces and halves of pairs are not printable; the look takes a tenth of the time of the pattern.
    if " " in value or "%" in value or not value.isprintable():
        value = _UNSAFE.sub(lambda m: f"%{ord(m.group()):x};", value)
    return f"{kind}={value}"


def _value(token: str) -> str:
    value = token.partition("=")[2]
    return re.sub(_ESCAPED, lambda m: chr(int(m.group(1), 16)), value) if "%" in value else value


_MOST_NEWS = 2_000_000
"""Characters of new entries whose words are added to the table; for more, the vocabulary is read again: 0.4 s of CPU
time for 170,000 words."""


class FormsFile:
    """The table of forms of one index. It serves the commit that it was written for, and no other.

    It may name words that the index no longer holds, and lacks none that it holds.
    """

    def __init__(self, folder: Path, made_for: str) -> None:
        self._file = folder / FORMS_FILE
        self._made_for = made_for
        self._table: bytes | None = None
        self._news: list[str] = []
        self._left = 0

    def read(self, opstamp: int) -> bytes | None:
        """The table for a commit; None without a sound one."""
        try:
            head, _, table = self._file.read_bytes().partition(b"\n")
        except OSError:
            return None
        return table if head == self._head(opstamp, table) else None

    def begin(self, opstamp: int) -> None:
        """Have the words that are noted from now on added to the table of a commit."""
        self._table, self._news, self._left = self.read(opstamp), [], _MOST_NEWS

    def note(self, texts: Iterable[str]) -> None:
        """Note the terms of new entries."""
        for text in texts if self._table is not None else ():
            self._news.append(text)
            self._left -= len(text)
        if self._left < 0:
            self._table, self._news = None, []

    def finish(self, opstamp: int, vocabulary: Callable[[], Collection[str]]) -> None:
        """Write the table for a commit; the vocabulary is asked for unless what was noted will do."""
        table, news = self._table, self._news
        self._table, self._news = None, []
        table = forms_table(vocabulary()) if table is None else forms_table(set(" ".join(news).split()), table)
        draft = self._file.with_name(f"{FORMS_FILE}.new")
        # A disk that is full, or cannot be written: queries then walk the vocabulary.
        with suppress(OSError):
            draft.write_bytes(self._head(opstamp, table) + b"\n" + table)
            draft.replace(self._file)

    def _head(self, opstamp: int, table: bytes) -> bytes:
        return f"{self._made_for}|{stemmer_version()}|{opstamp}|{crc32(table)}".encode()


def counted(nodes: Iterable[Node]) -> list[tuple[Node, float]]:
    """Each node once with its weight; words are the same when their terms are, whatever their spelling."""
    first: dict[object, Node] = {}
    times: Counter[object] = Counter()
    for node in nodes:
        said = _said(node)
        first.setdefault(said, node)
        times[said] += 1
    return [(first[said], repeated(often)) for said, often in times.items()]


def _said(node: Node) -> object:
    if not isinstance(node, (Word, Term)):
        return node
    return type(node), getattr(node, "field", ""), is_compound(node.text), *row_terms(node.text)


_REMEMBERED = 20_000
"""Terms whose queries are kept for the next search."""

_NO_FILTERS = Filters()


class BuiltQuery(NamedTuple):
    """A query (None when nothing can match), the most it can score, and the forms of each term that is asked for."""

    query: Query | None
    ceiling: float
    forms: dict[str, tuple[str, ...]]


class KeywordQuery:
    """Builds queries against one state of the index, whose statistics and vocabulary it asks."""

    def __init__(self, schema: Schema, words: KeywordWords, scoring: Scoring) -> None:
        self.words = words
        self._schema = schema
        self._scope = KeywordScope(schema, words)
        self._scoring = scoring
        self._memory: Memory = {}

    def build(self, node: Node, filters: Filters, weights: Mapping[str, float] | None = None) -> BuiltQuery:
        """The query for a tree under filters; `weights` are those of single fields that differ.

        Raises InvalidValueError for a field or property that does not exist, CorruptError when the index is damaged.
        """
        leaves = self._leaves(weights)
        query, ceiling = self._part(node, leaves)
        limits = self._limits(filters, weights)
        if query is None or limits is None:
            return BuiltQuery(None, ceiling, leaves.forms)
        if limits:
            query = Query.boolean_query([(Occur.Must, query), *limits])
        return BuiltQuery(query, ceiling, leaves.forms)

    def defining(
        self, names: Iterable[str], node: Node | None, filters: Filters, weights: Mapping[str, float] | None = None
    ) -> Query | None:
        """The query for chunks under filters that define any of the names; with the scores of a tree, if any."""
        each = [
            [(Occur.Must, self._scope.term("defines", term)) for term in name_terms(name).split()] for name in names
        ]
        limits = self._limits(filters, weights)
        if not each or limits is None:
            return None
        defined = Query.boolean_query([(Occur.Should, Query.boolean_query(both)) for both in each])
        ranked = None if node is None else self._part(node, self._leaves(weights)).query
        clauses = [(Occur.Must, Query.const_score_query(defined, 0.0)), *limits]
        return Query.boolean_query(clauses if ranked is None else [*clauses, (Occur.Should, ranked)])

    def _limits(self, filters: Filters, weights: Mapping[str, float] | None) -> list[tuple[Occur, Query]] | None:
        clauses: list[tuple[Occur, Query]] = []
        for node in conditions(filters) if filters != _NO_FILTERS else ():
            is_excluded = isinstance(node, Not)
            query = self._part(node.node if isinstance(node, Not) else node, self._leaves(weights)).query
            if query is not None:
                query = query if isinstance(node, CONDITIONS) else Query.const_score_query(query, 0.0)
                clauses.append((Occur.MustNot if is_excluded else Occur.Must, query))
            elif not is_excluded:
                return None
        return clauses

    def _part(self, node: Node, leaves: Leaves) -> ScoredQuery:
        if isinstance(node, (Any, Same)):
            return self._any(node, leaves)
        if isinstance(node, All):
            return self._all(node.nodes, leaves)
        if isinstance(node, Not):
            return self._all((node,), leaves)
        if isinstance(node, CONDITIONS):
            return ScoredQuery(self._scope.query(node))
        if isinstance(node, Pattern):
            raise InvalidValueError(f"a keyword leg finds words, and {node.text!r} is a pattern")
        return leaves.part(node)

    def _any(self, node: Any | Same, leaves: Leaves) -> ScoredQuery:
        parts = self._counted(node.nodes, leaves)
        queries = [part.query for part in parts if part.query is not None]
        ceilings = [part.ceiling for part in parts]
        ceiling = max(ceilings, default=0.0) * unsaid(node) if isinstance(node, Same) else sum(ceilings)
        return ScoredQuery(best_of(queries, 0.0) if isinstance(node, Same) else sum_of(queries), ceiling)

    def _counted(self, nodes: Iterable[Node], leaves: Leaves) -> list[ScoredQuery]:
        """The parts of nodes; a word that is said more than once is one part that counts more."""
        return [self._part(node, leaves).said(weight) for node, weight in counted(nodes)]

    def _all(self, nodes: tuple[Node, ...], leaves: Leaves) -> ScoredQuery:
        parts = self._counted((node for node in nodes if not isinstance(node, Not)), leaves)
        ceiling = sum(part.ceiling for part in parts)
        clauses: list[tuple[Occur, Query]] = []
        for part in parts or [ScoredQuery(everything())]:
            if part.query is None:
                return ScoredQuery(None, ceiling)
            clauses.append((Occur.Must, part.query))
        for node in nodes:
            if isinstance(node, Not):
                # An exclusion is neither asked for nor part of the ceiling.
                excluded = self._part(node.node, leaves.aside()).query
                clauses += [] if excluded is None else [(Occur.MustNot, excluded)]
        return ScoredQuery(clauses[0][1] if len(clauses) == 1 else Query.boolean_query(clauses), ceiling)

    def _leaves(self, weights: Mapping[str, float] | None) -> Leaves:
        scoring = self._scoring._replace(weights={**self._scoring.weights, **weights}) if weights else self._scoring
        if len(self._memory) > _REMEMBERED:
            self._memory.clear()
        return Leaves(self._schema, self.words, self._scope.named, scoring, self._memory)


_FEW_HITS = 1_000
"""More hits than that are worth switching the collector off."""


def hits_of(result: SearchResult, total: int) -> list[tuple[float | None, DocAddress]]:
    """The hits of a result, many without a search for garbage among them, which takes half of the time."""
    if total <= _FEW_HITS:
        return result.hits
    import gc

    was_enabled = gc.isenabled()
    gc.disable()
    try:
        return result.hits
    finally:
        if was_enabled:
            gc.enable()
