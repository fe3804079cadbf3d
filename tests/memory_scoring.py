"""What each node of a query tree finds among postings, and what it scores."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

from findling.domain.backends import STANDARD_B, STANDARD_K1, Scoring
from findling.domain.errors import InvalidValueError
from findling.domain.plans import FIELDS
from findling.domain.queries import (
    All,
    Any,
    Field,
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
from findling.domain.resources import Chunk, Document, Resource
from findling.stores.filtering import holds
from findling.stores.keyword.entries import padding
from findling.stores.keyword.query_builder import counted, named_file
from findling.stores.keyword.term_weights import (
    IN_A_ROW,
    INFLECTED,
    NAMED_FILE,
    NAMED_STEM,
    OTHER_FORMS,
    UNADDED,
    is_added,
    most_of_word,
    repeated,
)
from findling.text.analysis.analysis import is_compound, phrase_terms, prefix_terms, row_terms, terms, word_terms
from findling.text.analysis.scripts import is_unspaced
from findling.text.analysis.spelling import Spellings
from findling.text.analysis.stemming import forms_prefix, same_stem

__all__ = ["Found", "Postings", "Question", "Step"]


class Postings:
    """Field → term → chunk → positions, and the resource of every chunk."""

    def __init__(self) -> None:
        self.resources: dict[int, Resource] = {}
        self._places: dict[str, dict[str, dict[int, list[int]]]] = {field: {} for field in FIELDS}
        self._lengths: dict[str, dict[int, int]] = {field: {} for field in FIELDS}
        self._totals = dict.fromkeys(FIELDS, 0)

    def add(self, chunk: Chunk, document: Document) -> None:
        """Take in a chunk."""
        self.resources[chunk.cid] = document.resource
        for field, text in _texts(chunk, document).items():
            given = terms(text)
            length = len(given) + (padding(text) if field == "body" and given else 0)
            self._lengths[field][chunk.cid] = length
            self._totals[field] += length
            for position, term in enumerate(given):
                self._places[field].setdefault(term, {}).setdefault(chunk.cid, []).append(position)

    def drop(self, cid: int) -> None:
        """Forget a chunk, and the terms that no other chunk has."""
        self.resources.pop(cid, None)
        for field, places in self._places.items():
            self._totals[field] -= self._lengths[field].pop(cid, 0)
            for term in [term for term, chunks in places.items() if cid in chunks]:
                del places[term][cid]
                if not places[term]:
                    del places[term]

    def beginning(self, prefix: str, fields: Iterable[str] = FIELDS) -> list[str]:
        """The terms of some fields that begin so."""
        return sorted({term for field in fields for term in self._places[field] if term.startswith(prefix)})

    def spread(self, term: str, fields: Iterable[str] = FIELDS) -> int:
        """In how many chunks a term stands in one of the fields."""
        return len(set().union(*(self._places[field].get(term, ()) for field in fields)))

    def length(self, field: str, cid: int) -> float:
        """How long a field of a chunk counts, as a multiple of what is usual."""
        return self._lengths[field][cid] * len(self.resources) / self._totals[field]

    def places(self, term: str, field: str) -> dict[int, list[int]]:
        """Chunk → the positions of a term in a field."""
        return self._places[field].get(term, {})

    def rows(self, row: Sequence[Collection[str]], field: str) -> dict[int, list[int]]:
        """Chunk → where in the field a row begins; each place of it is taken by one of some terms."""
        first, *others = [self._standing(forms, field) for forms in row]
        begins = {cid: sorted(positions) for cid, positions in first.items()}
        for step, there in enumerate(others, 1):
            begins = {cid: [at for at in begun if at + step in there.get(cid, ())] for cid, begun in begins.items()}
        return {cid: begun for cid, begun in begins.items() if begun}

    def _standing(self, forms: Iterable[str], field: str) -> dict[int, set[int]]:
        standing: dict[int, set[int]] = defaultdict(set)
        for form in forms:
            for cid, positions in self._places[field].get(form, {}).items():
                standing[cid].update(positions)
        return standing


def _texts(chunk: Chunk, document: Document) -> dict[str, str]:
    resource = document.resource
    return {
        "body": document.text[chunk.start : chunk.end],
        "title": resource.title,
        "heading": "\n".join(chunk.heading),
        "path": resource.path,
        "tags": " ".join(resource.tags),
        "name": resource.fields.get("name") or resource.path.rpartition("/")[2],
        "description": resource.fields.get("description", ""),
    }


_MOST_FORMS = 200

Found = dict[int, float]
"""The chunks that match, with their scores."""


class Step(NamedTuple):
    """One place of a row: the term that is asked for, and the forms that may stand there, each with its weight."""

    term: str
    forms: Mapping[str, float]


Row = Sequence[Step]


class Question:
    """Finds and scores chunks for one state of the postings."""

    def __init__(self, postings: Postings, scoring: Scoring) -> None:
        for field in scoring.weights:
            _check_field(field)
        self._postings = postings
        self._scoring = scoring

    def found(self, node: Node) -> Found:
        """The chunks that match a node."""
        every = self._postings.resources
        if isinstance(node, All):
            parts = self._counted(node.nodes)
            return {cid: sum(part[cid] for part in parts) for cid in every if all(cid in part for part in parts)}
        if isinstance(node, Any):
            return _joined(self._counted(node.nodes), rest=1.0)
        if isinstance(node, Same):
            return _joined(map(self.found, node.nodes))
        if isinstance(node, Not):
            excluded = self.found(node.node)
            return {cid: 0.0 for cid in every if cid not in excluded}
        if isinstance(node, Field) and node.name == "cid":
            return {cid: 0.0 for cid in every if str(cid) in node.values}
        assert not isinstance(node, Pattern), "a keyword leg finds words"
        if isinstance(node, Field | Range):
            return {cid: 0.0 for cid, resource in every.items() if holds(node, resource)}
        if isinstance(node, Near):
            return self._near(node)
        return self._words(node)

    def ceiling(self, node: Node) -> float:
        """The most that a chunk could score."""
        if isinstance(node, Not | Field | Range | Pattern):
            return 0.0
        if isinstance(node, All | Any):
            return sum(self.ceiling(part) * weight for part, weight in counted(node.nodes))
        if isinstance(node, Same):
            return max(map(self.ceiling, node.nodes), default=0.0)
        weights = self._weights(node)
        if not weights:
            return 0.0
        ways = [(row, self._worth(row, weights) * often) for row, often in self._weighed_ways(node)]
        if isinstance(node, Word):
            worth = most_of_word((row[0].term, most, bool(self._row(row, weights))) for row, most in ways)
        elif isinstance(node, Near):
            worth = sum(most for _, most in ways)
        else:
            worth = max((most for _, most in ways), default=0.0)
        return worth * (STANDARD_K1 + 1) * max(weights.values())

    def _counted(self, nodes: Iterable[Node]) -> list[Found]:
        """What nodes find; a word that is said more than once counts more."""
        return [_scaled(self.found(node), weight) for node, weight in counted(nodes)]

    def forms(self, node: Node) -> dict[str, tuple[str, ...]]:
        """The forms of every term that is asked for, the frequent ones first."""
        if isinstance(node, Not | Field | Range | Pattern):
            return {}
        known: dict[str, tuple[str, ...]] = {}
        if isinstance(node, All | Any | Same):
            for part in node.nodes:
                known = _united(known, self.forms(part))
            return known
        fields = [*self._weights(node)]
        for row in self._ways(node):
            for term, forms in row:
                standing = [(-self._postings.spread(form, fields), form) for form in forms]
                frequent = sorted(form for form in standing if form[0])[:_MOST_FORMS]
                known = _united(known, {term: tuple(form for _, form in frequent)})
        return known

    def _weights(self, leaf: Word | Term | Phrase | Prefix | Fuzzy | Near) -> dict[str, float]:
        """The fields to look into. What has no weight is looked into only when it is named."""
        name = "" if isinstance(leaf, Word) else "body" if isinstance(leaf, Near) else leaf.field
        weights = {field: weight for field in FIELDS if (weight := self._scoring.weights.get(field, 0.0))}
        if not name:
            return weights
        _check_field(name)
        return {name: weights.get(name, 1.0)}

    # Which rows may stand for a leaf

    def _ways(self, leaf: Word | Term | Phrase | Prefix | Fuzzy | Near) -> list[Row]:
        """The rows of which one has to stand in a field; for two words that are near, the rows of both."""
        if isinstance(leaf, Word):
            return [[self._inflected(term)] for term in dict.fromkeys(word_terms(leaf.text))]
        if isinstance(leaf, Term):
            return self._meant(leaf.text)
        if isinstance(leaf, Near):
            return [*self._meant(leaf.first)[:1], *self._meant(leaf.second)[:1]]
        if isinstance(leaf, Phrase):
            return _one_row(map(_as_written, phrase_terms(leaf.text)))
        words = prefix_terms(leaf.text)
        if not words:
            return []
        if isinstance(leaf, Prefix):
            return _one_row([*map(_as_written, words[:-1]), self._begun(words[-1], f"{words[-1]}*")])
        close = Spellings((term, 0) for term in self._postings.beginning("")).close(words[0], leaf.distance)
        return [[Step(f"{words[0]}~", {term: INFLECTED**edits for term, _, edits in close})]]

    def _weighed_ways(self, leaf: Word | Term | Phrase | Prefix | Fuzzy | Near) -> list[tuple[Row, float]]:
        """The same with what each row counts: a word may hold a term twice, in unspaced scripts many do."""
        ways = self._ways(leaf)
        if not isinstance(leaf, Word):
            return [(row, 1.0) for row in ways]
        return list(zip(ways, map(repeated, Counter(word_terms(leaf.text)).values()), strict=True))

    def _meant(self, text: str) -> list[Row]:
        """A word in any form; what consists of several terms with these in a row, an identifier also as a whole."""
        row = row_terms(text)
        if len(row) < 2:
            return [[self._inflected(term)] for term in row]
        ways: list[Row] = [[*map(_as_written, row[:-1]), self._inflected(row[-1], only_longer=True)]]
        given = terms(text)
        if not is_compound(text) and all(map(str.isascii, given)):
            ways.append([_as_written(given[0])])
        return ways

    def _inflected(self, term: str, *, only_longer: bool = False) -> Step:
        """One character of an unspaced script is the beginning of any longer term; other words have a stem."""
        if len(term) == 1 and is_unspaced(term):
            return self._begun(term, term)
        if only_longer:
            return _as_written(term)
        forms = dict.fromkeys(same_stem(term, self._postings.beginning(forms_prefix(term))), INFLECTED)
        return Step(term, forms | {term: 1.0})

    def _begun(self, prefix: str, name: str) -> Step:
        return Step(name, dict.fromkeys(self._postings.beginning(prefix), INFLECTED) | {prefix: 1.0})

    # How much they score

    def _words(self, leaf: Word | Term | Phrase | Prefix | Fuzzy) -> Found:
        weights = self._weights(leaf)
        ways = [_scaled(self._row(row, weights), often) for row, often in self._weighed_ways(leaf)] if weights else []
        found = _joined(ways, rest=1.0 if isinstance(leaf, Word) else 0.0)
        row = phrase_terms(leaf.text)
        if isinstance(leaf, Word) and is_compound(leaf.text) and len(row) > 1 and "body" in weights:
            in_a_row = self._row([*map(_as_written, row)], {"body": weights["body"] * IN_A_ROW})
            found = _joined([found, in_a_row], rest=1.0)
        if isinstance(leaf, Word) or (isinstance(leaf, Term) and not leaf.field):
            share = NAMED_FILE if "." in leaf.text else NAMED_STEM
            for cid in found:
                if named_file(leaf.text) in _names(self._postings.resources[cid].path):
                    found[cid] += share * self.ceiling(leaf)
        return found

    def _row(self, row: Row, weights: Mapping[str, float]) -> Found:
        """A row counts as one word that is as rare as all of its words together."""
        if len(row) == 1:
            return self._forms(row[0], weights)
        is_as_written = all(len(step.forms) == 1 for step in row)
        found: Found = defaultdict(float)
        for field, weight in weights.items():
            worth = weight * self._worth(row, [field] if is_as_written else weights)
            for cid, begins in self._postings.rows([step.forms for step in row], field).items():
                found[cid] += worth * (self._saturation(len(begins), field, cid) if is_as_written else 1.0)
        return found

    def _forms(self, step: Step, weights: Mapping[str, float]) -> Found:
        """All forms count as one word, of which the best is worth most: a rare form weighs no more than the word."""
        main = next(iter(weights))
        found = []
        for form, share in step.forms.items():
            in_fields: list[Found] = []
            for field, weight in weights.items():
                places = self._postings.places(form, field)
                worth = self._worth([step], [main]) * share if field == main else self._idf(len(places))
                worth *= weight if field == main or is_added(form) else weight * UNADDED
                in_fields.append({cid: worth * self._saturation(len(at), field, cid) for cid, at in places.items()})
            found.append(_joined(in_fields, rest=1.0 if is_added(form) else 0.0))
        return _joined(found, rest=OTHER_FORMS)

    def _near(self, node: Near) -> Found:
        weights = self._weights(node)
        worth = weights["body"] * self._worth([step for row in self._ways(node) for step in row], weights)
        found = []
        for one in self._meant(node.first):
            for other in self._meant(node.second):
                there = self._postings.rows([step.forms for step in other], "body")
                close: dict[int, int] = {}
                for cid, begins in self._postings.rows([step.forms for step in one], "body").items():
                    gaps = [
                        max(second - first - len(one), first - second - len(other))
                        for first in begins
                        for second in there.get(cid, ())
                    ]
                    close[cid] = sum(0 <= gap <= node.distance for gap in gaps)
                found.append({cid: worth * self._saturation(n, "body", cid) for cid, n in close.items() if n})
        return _joined(found)

    def _worth(self, row: Row, fields: Iterable[str]) -> float:
        """What the words of a row tell together, by how rare each is in the first of the fields."""
        main = next(iter(fields))
        return sum(self._idf(sum(len(self._postings.places(form, main)) for form in step.forms)) for step in row)

    def _idf(self, spread: int) -> float:
        chunks = len(self._postings.resources)
        return math.log(1 + (chunks - min(spread, chunks) + 0.5) / (min(spread, chunks) + 0.5))

    def _saturation(self, count: int, field: str, cid: int) -> float:
        k1, b = STANDARD_K1, STANDARD_B
        return (k1 + 1) * count / (count + k1 * (1 - b + b * self._postings.length(field, cid)))


def _joined(parts: Iterable[Found], *, rest: float = 0.0) -> Found:
    """What one of the parts has found, with the best score and a share of the others."""
    gathered: dict[int, list[float]] = defaultdict(list)
    for part in parts:
        for cid, score in part.items():
            gathered[cid].append(score)
    return {cid: max(scores) + rest * (sum(scores) - max(scores)) for cid, scores in gathered.items()}


def _scaled(found: Found, weight: float) -> Found:
    return {cid: score * weight for cid, score in found.items()}


def _united(some: Mapping[str, tuple[str, ...]], more: Mapping[str, tuple[str, ...]]) -> dict[str, tuple[str, ...]]:
    both = {**some, **more}
    return {term: tuple(dict.fromkeys((*some.get(term, ()), *more.get(term, ())))) for term in both}


def _one_row(steps: Iterable[Step]) -> list[Row]:
    row = [*steps]
    return [row] if row else []


def _as_written(term: str) -> Step:
    return Step(term, {term: 1.0})


def _names(path: str) -> set[str]:
    """What a file is called: by its name, without its extension, or with its folder."""
    *_, name = parts = path.lower().split("/")
    return {name, name.partition(".")[0], "/".join(parts[-2:])} if path else set()


def _check_field(name: str) -> None:
    if name not in FIELDS:
        raise InvalidValueError(f"no text field {name!r}", hint=f"one of {', '.join(FIELDS)}")
