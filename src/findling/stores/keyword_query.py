"""From a query tree and filters to one tantivy query with BM25 weights that fit together."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from typing import NamedTuple

import tantivy
from tantivy import Occur, Query

from findling.domain.queries import All, Any, Filters, Node, Not, Phrase, Word
from findling.domain.resources import Resource
from findling.text.analysis import is_compound, is_unspaced, phrase_terms
from findling.text.stemming import forms_prefix, same_stem

__all__ = ["STANDARD_B", "STANDARD_K1", "KeywordQuery", "Scoring", "scope_tokens"]

STANDARD_K1, STANDARD_B = 1.2, 0.75
"""tantivy's built-in parameters."""

_OTHER_FORMS = 0.2
"""What the weaker forms of a word add to its best form: 1 would reward a chunk for saying a word in many ways.
NDCG@10 on SciFact, a development set: 0 .686, 0.2 .691, 0.4 .687, 0.6 .682, plain sum .663."""

_INFLECTED = 0.8
"""Weight of a form that differs from what was typed: better than 1 on all seven development sets, by .001 to .007."""

_IN_A_ROW = 0.5
"""Weight of a compound found as it was typed, besides that of its terms."""

_NAMED_FILE, _NAMED_STEM = 1.0, 0.3
"""What a file gains when the query names it, with and without its extension, as a share of all the word can score:
whoever types argparse.py wants that file, not the one that mentions it most."""

_MOST_FORMS = 24
"""Forms of one word that are asked for, the frequent ones first."""

_VOCABULARY_WINDOW = 4000
"""Words of the vocabulary looked at for the forms of one word; short stems have many neighbours."""


class Scoring(NamedTuple):
    """Parameters of BM25 and the weight of each field."""

    k1: float = STANDARD_K1
    b: float = STANDARD_B
    weights: Mapping[str, float] = {"body": 1.0, "title": 0.5, "heading": 0.5, "path": 0.5, "tags": 0.5}

    @property
    def is_standard(self) -> bool:
        """Whether tantivy's own scores are right as they are."""
        return (self.k1, self.b) == (STANDARD_K1, STANDARD_B)


def scope_tokens(resource: Resource) -> list[str]:
    """What filters look for: one token for each thing a resource can be limited by.

    A path gives a token for itself and for every folder above it, so that a path prefix is one term.
    """
    tokens = [_token("type", resource.type)]
    if resource.path:
        parts = resource.path.split("/")
        tokens += [_token("path", "/".join(parts[: i + 1])) for i in range(len(parts))]
        name = parts[-1].lower()
        tokens += [_token("ext", name[i:]) for i, letter in enumerate(name) if letter == "." and i]
        tokens += [_token("name", given) for given in {name, name.partition(".")[0], "/".join(parts[-2:]).lower()}]
    for kind, value in (("lang", resource.lang), ("author", resource.author)):
        if value:
            tokens.append(_token(kind, value))
    tokens += [_token("tag", tag) for tag in resource.tags]
    tokens += [_token("principal", principal) for principal in resource.visibility or ()]
    return tokens


_UNSAFE = re.compile(r"[%\s]")


def _token(kind: str, value: str) -> str:
    # tantivy splits the field at white space, so a value must not bring any of its own.
    return f"{kind}={_UNSAFE.sub(lambda m: f'%{ord(m.group()):x};', value)}"


class KeywordQuery:
    """Builds queries against one state of the index, whose statistics and vocabulary it asks."""

    def __init__(self, schema: tantivy.Schema, searcher: tantivy.Searcher, scoring: Scoring) -> None:
        self._schema = schema
        self._searcher = searcher
        self._scoring = scoring
        self._chunks = searcher.num_docs
        self._known_forms: dict[str, list[tuple[str, int]]] = {}
        self._forms_asked: dict[str, tuple[str, ...]] = {}
        self._ceiling = 0.0

    def build(self, node: Node, filters: Filters) -> tuple[Query | None, float, dict[str, tuple[str, ...]]]:
        """The query (None when nothing can match), the most it can score, and the forms of each term."""
        self._forms_asked, self._ceiling = {}, 0.0
        clauses = self._clauses(node)
        scope = self._scope(filters)
        if clauses is None or scope is None or node == All(()):
            return None, self._ceiling, self._forms_asked
        if all(occur is Occur.MustNot for occur, _ in clauses):
            clauses.append((Occur.Must, _everything()))
        return Query.boolean_query(clauses + scope), self._ceiling, self._forms_asked

    def _clauses(self, node: Node) -> list[tuple[Occur, Query]] | None:
        """The clauses of one level; None when a part that must match cannot."""
        if isinstance(node, All):
            clauses: list[tuple[Occur, Query]] = []
            for part in node.nodes:
                if isinstance(part, Not):
                    query = self._unscored(part.node)
                    clauses += [(Occur.MustNot, query)] if query is not None else []
                else:
                    query = self._matching(part)
                    if query is None:
                        return None
                    clauses.append((Occur.Must, query))
            return clauses
        if isinstance(node, Not):
            return self._clauses(All((node,)))
        query = self._matching(node)
        return None if query is None else [(Occur.Must, query)]

    def _unscored(self, node: Node) -> Query | None:
        """A query for what must not match: its words are neither asked for nor part of the ceiling."""
        asked, ceiling = dict(self._forms_asked), self._ceiling
        query = self._matching(node)
        self._forms_asked, self._ceiling = asked, ceiling
        return query

    def _matching(self, node: Node) -> Query | None:
        if isinstance(node, Word):
            return self._word(node.text)
        if isinstance(node, Phrase):
            return self._phrase(node.text)
        if isinstance(node, Any):
            parts = [query for part in node.nodes if (query := self._matching(part)) is not None]
            return Query.boolean_query([(Occur.Should, part) for part in parts]) if parts else None
        clauses = self._clauses(node)
        if clauses is None:
            return None
        if all(occur is Occur.MustNot for occur, _ in clauses):
            clauses.append((Occur.Must, _everything()))
        return Query.boolean_query(clauses)

    def _word(self, text: str) -> Query | None:
        """Any term of the word; of a compound such as MAX_VALUE or node.js best all of them in a row."""
        words = phrase_terms(text)
        before = self._ceiling
        parts = [query for term in dict.fromkeys(words) if (query := self._term(term)) is not None]
        if len(words) > 1 and parts and is_compound(text):
            in_a_row = Query.phrase_query(self._schema, "body", [*words])
            parts.append(Query.boost_query(in_a_row, _IN_A_ROW))
        name = _token("name", text.strip("/").lower())
        if self._searcher.doc_freq("scope", name):
            share = _NAMED_FILE if "." in text else _NAMED_STEM
            parts.append(Query.const_score_query(self._scope_term(name), share * (self._ceiling - before)))
        if len(parts) < 2:
            return parts[0] if parts else None
        return Query.boolean_query([(Occur.Should, part) for part in parts])

    def _term(self, term: str) -> Query | None:
        forms = self._forms(term)
        self._forms_asked[term] = tuple(form for form, _ in forms)
        spread = min(self._chunks, sum(df for _, df in forms))
        self._ceiling += self._idf(spread) * (self._scoring.k1 + 1)
        queries = []
        for form, df in forms:
            # All forms count as one word: a rare form must not weigh more than the word itself.
            boost = self._idf(spread) / self._idf(df) if df else 1.0
            queries.append(self._in_all_fields(form, boost if form == term else boost * _INFLECTED))
        if len(queries) < 2:
            return queries[0] if queries else None
        return Query.disjunction_max_query(queries, _OTHER_FORMS)

    def _in_all_fields(self, form: str, body_boost: float) -> Query:
        clauses = []
        for name, weight in self._scoring.weights.items():
            if weight and self._searcher.doc_freq(name, form):
                query = Query.term_query(self._schema, name, form, index_option="freq")
                boost = weight * body_boost if name == "body" else weight
                clauses.append((Occur.Should, query if boost == 1.0 else Query.boost_query(query, boost)))
        return clauses[0][1] if len(clauses) == 1 else Query.boolean_query(clauses)

    def _phrase(self, text: str) -> Query | None:
        words = phrase_terms(text)
        if not words:
            return None
        self._forms_asked.update((word, (word,) if self._spread(word) else ()) for word in words)
        self._ceiling += sum(self._idf(self._searcher.doc_freq("body", word)) for word in words) * (
            self._scoring.k1 + 1
        )
        if len(words) == 1:
            return self._in_all_fields(words[0], 1.0) if self._spread(words[0]) else None
        clauses = []
        for name in ("body", "title"):
            query = Query.phrase_query(self._schema, name, [*words])
            clauses.append((Occur.Should, Query.boost_query(query, self._scoring.weights[name])))
        return Query.boolean_query(clauses)

    def _spread(self, form: str) -> int:
        return max(self._searcher.doc_freq(name, form) for name in self._scoring.weights)

    def _forms(self, term: str) -> list[tuple[str, int]]:
        """The forms of a term that the index holds, each with its document frequency."""
        if term not in self._known_forms:
            self._known_forms[term] = self._look_up_forms(term)
        return self._known_forms[term]

    def _look_up_forms(self, term: str) -> list[tuple[str, int]]:
        if len(term) == 1 and is_unspaced(term):
            # One character of an unspaced script: the beginning of any of its bigrams.
            frequent = self._searcher.terms_with_prefix("body", term, limit=_VOCABULARY_WINDOW)
        elif len(term) < 3 or not term.isalpha():
            frequent = []
        else:
            nearby = dict(self._searcher.terms_with_prefix("body", forms_prefix(term), limit=_VOCABULARY_WINDOW))
            frequent = [(form, nearby[form]) for form in same_stem(term, [*nearby])]
        forms = dict(sorted(frequent, key=lambda form: -form[1])[:_MOST_FORMS])
        if self._spread(term):
            forms[term] = self._searcher.doc_freq("body", term)
        return list(forms.items())

    def _idf(self, df: int) -> float:
        # tantivy counts deleted chunks in a term's frequency until it merges them away, but not among all chunks.
        df = min(df, self._chunks)
        return math.log(1 + (self._chunks - df + 0.5) / (df + 0.5))

    def _scope(self, filters: Filters) -> list[tuple[Occur, Query]] | None:
        """One clause per filter, none of which adds to the score; None when nothing can pass."""
        if filters.principals == ():
            return None
        wanted: list[tuple[str, Iterable[str]]] = [
            ("ext", [_dotted(ext) for ext in filters.ext]),
            ("path", (path.strip("/") for path in filters.path)),
            ("type", filters.type),
            ("lang", [lang.lower() for lang in filters.lang]),
            ("tag", filters.tag),
            ("author", filters.author),
            ("principal", filters.principals or ()),
        ]
        clauses = []
        for kind, values in wanted:
            # An empty path is the whole tree; any other empty value is a value that nothing has.
            tokens = [_token(kind, value) for value in values if value or kind != "path"]
            if tokens:
                query = Query.const_score_query(Query.term_set_query(self._schema, "scope", tokens), 0.0)
                clauses.append((Occur.Must, query))
        for value in filters.not_ext:
            clauses.append((Occur.MustNot, self._scope_term(_token("ext", _dotted(value)))))
        if filters.after is not None or filters.before is not None:
            lower = math.ceil(filters.after) if filters.after is not None else -(2**62)
            upper = math.floor(filters.before) if filters.before is not None else 2**62
            query = Query.range_query(self._schema, "updated", tantivy.FieldType.Integer, lower, upper, True, False)
            clauses.append((Occur.Must, Query.const_score_query(query, 0.0)))
        return clauses

    def _scope_term(self, token: str) -> Query:
        return Query.term_query(self._schema, "scope", token, index_option="basic")


def _everything() -> Query:
    # Not `all_query`: the leg's own mark is a document too, and it has no chunk id.
    return Query.const_score_query(Query.exists_query("cid"), 0.0)


def _dotted(ext: str) -> str:
    return ext.lower() if ext.startswith(".") else f".{ext.lower()}"
