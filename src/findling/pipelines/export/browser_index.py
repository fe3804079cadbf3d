"""The index of a page that searches by itself: words, passages and texts, in the form that its script reads.

    index := length of the header (4 bytes), header (JSON), sections in the order of `header.sections`

    passages   for each resource how many it has; for each passage where it begins and how long it is, its first line
               and how many more it has, its heading, and its places
    lengths    of each text field, one byte an entry, see `length_code`
    terms      all terms, one a line, in the order in which a browser compares text
    postings   for each term the class of its inflected forms, how many bytes follow, and these (`postings`)
    related    for each passage how many are related to it, then which, each with its cosine in hundredths

Texts are apart from it. Positions in them count the units of a browser. Words have no positions: the script looks a
phrase up in the texts of the passages that have all of its words.
"""

from __future__ import annotations

import json
from array import array
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain, groupby
from typing import Any, NamedTuple

from findling.domain.backends import STANDARD_B, STANDARD_K1, Scoring
from findling.domain.resources import Chunk, Document, Resource
from findling.pipelines.export.browser_packing import DeflatedTexts, length_code, numbers, postings, signed, units
from findling.stores.keyword.scoring import padding
from findling.text.analysis.analysis import STOP_WORDS, chunk_terms, index_form
from findling.text.analysis.lines import SENTENCE_WORDS
from findling.text.analysis.stemming import stem

__all__ = ["FORMAT", "BrowserIndex", "Related"]

FORMAT = 1
"""The version of the format; the script in the same page knows its own."""

_OF_PASSAGES = ("body", "heading")  # fields with an entry for each passage; the others have one for each resource


class Related(NamedTuple):
    """A passage by its number, and its cosine."""

    passage: int
    cosine: float


class BrowserIndex:
    """An index that grows by documents and is packed at the end. Passages and resources are numbered as they come."""

    def __init__(self, scoring: Scoring) -> None:
        self.texts = DeflatedTexts()
        self.passages = 0
        self._scoring = scoring
        self._fields = [field for field, weight in scoring.weights.items() if weight]
        self._places: dict[str, dict[int, array[int]]] = {}
        self._lengths: list[bytearray] = [bytearray() for _ in self._fields]
        self._totals = [0] * len(self._fields)
        self._resources: list[dict[str, Any]] = []
        self._supersedes: dict[str, str] = {}
        self._passages: list[int] = []
        self._strings: dict[str, int] = {"": 0}

    def __len__(self) -> int:
        return len(self._resources)

    @property
    def terms(self) -> int:
        """The number of different terms."""
        return len(self._places)

    def add(self, document: Document) -> None:
        """Add a document, unless it has no passage to find."""
        if not document.chunks:
            return
        resource, number = document.resource, len(self._resources)
        begin = self.texts.add(document.text)
        self._passages += [len(document.chunks), begin, self.texts.units - begin]
        offsets = _Offsets(document.text)
        before = (0, 0)
        for chunk in document.chunks:
            given = chunk_terms(document.text, chunk)
            padded = padding(document.text[chunk.start : chunk.end])
            self._index("body", self.passages, given.body.split(), 1, padded)
            self._index("heading", self.passages, given.heading.split(), 1)
            before = self._write_passage(chunk, offsets, before)
            self.passages += 1
        for field, text in _common_texts(resource).items():
            self._index(field, number, index_form(text).split(), len(document.chunks))
        self._resources.append(_described(resource))
        if earlier := resource.fields.get("supersedes"):
            self._supersedes[earlier] = resource.rid

    def packed(self, about: Mapping[str, Any], related: Sequence[Sequence[Related]] = ()) -> bytes:
        """The index with facts `about` it, and the passages that are related to each."""
        terms = sorted(self._places, key=lambda term: term.encode("utf-16-be"))
        classes = _form_classes(terms)
        found = bytearray()
        for term in terms:
            written = postings(self._places[term])
            found += numbers([classes.get(term, 0), len(written)]) + written
        near = [part for given in related for part in (len(given), *chain.from_iterable(map(_nearness, given)))]
        sections = {
            "passages": bytes(numbers(self._passages)),
            "lengths": b"".join(self._lengths),
            "terms": "\n".join(terms).encode(),
            "postings": bytes(found),
            "related": bytes(numbers(near)),
        }
        lengths = {name: len(section) for name, section in sections.items()}
        header = json.dumps({**about, **self._header(), "sections": lengths}, separators=(",", ":")).encode("ascii")
        return b"".join([len(header).to_bytes(4, "little"), header, *sections.values()])

    def _header(self) -> dict[str, Any]:
        weights = self._scoring.weights
        return {
            "format": FORMAT,
            "k1": STANDARD_K1,
            "b": STANDARD_B,
            "fields": [
                {
                    "name": field,
                    "weight": weights[field],
                    "ofPassages": field in _OF_PASSAGES,
                    "average": total / max(self.passages, 1),
                }
                for field, total in zip(self._fields, self._totals, strict=True)
            ],
            "passages": self.passages,
            "resources": self._with_successors(),
            "strings": list(self._strings),
            "stopWords": sorted(STOP_WORDS),
            "sentenceWords": sorted(SENTENCE_WORDS),
        }

    def _with_successors(self) -> list[dict[str, Any]]:
        """The resources, each with the number of its successor if that is among them."""
        number_of = {resource["rid"]: number for number, resource in enumerate(self._resources)}
        later = {earlier: number_of[rid] for earlier, rid in self._supersedes.items() if earlier in number_of}
        return [
            {**resource, "successor": later[resource["rid"]]} if resource["rid"] in later else resource
            for resource in self._resources
        ]

    def _index(self, field: str, entry: int, terms: Sequence[str], passages: int, padded: int = 0) -> None:
        if field not in self._fields:
            return
        number = self._fields.index(field)
        length = len(terms) + padded if terms else 0
        self._lengths[number].append(length_code(length))
        self._totals[number] += length * passages
        for term, count in Counter(terms).items():
            places = self._places.setdefault(term, {})
            if number not in places:
                places[number] = array("I")
            places[number].extend((entry, count))

    def _write_passage(self, chunk: Chunk, offsets: _Offsets, before: tuple[int, int]) -> tuple[int, int]:
        start = offsets.units_before(chunk.start)
        self._passages += [signed(start - before[0]), offsets.units_before(chunk.end) - start]
        self._passages += [signed(chunk.line_start - before[1]), chunk.line_end - chunk.line_start]
        self._passages += [self._string("\n".join(chunk.heading)), len(chunk.places)]
        for place in chunk.places:
            inside = max(offsets.units_before(place.start) - start, 0)
            self._passages += [inside, self._string(place.label), place.line]
        return start, chunk.line_start

    def _string(self, text: str) -> int:
        return self._strings.setdefault(_clean(text), len(self._strings))


class _Offsets:
    """Positions of a text in the units of a browser."""

    def __init__(self, text: str) -> None:
        is_wide = not text.isascii() and units(text) > len(text)
        self._wide = [at for at, letter in enumerate(text) if letter > "\uffff"] if is_wide else []

    def units_before(self, offset: int) -> int:
        return offset + bisect_left(self._wide, offset) if self._wide else offset


def _common_texts(resource: Resource) -> dict[str, str]:
    return {
        "title": resource.title,
        "path": resource.path,
        "tags": " ".join(resource.tags),
        "name": resource.fields.get("name") or resource.path.rpartition("/")[2],
        "description": resource.fields.get("description", ""),
    }


def _described(resource: Resource) -> dict[str, Any]:
    """The facts about a resource that the page shows, without empty ones and never its readers."""
    about = {
        "rid": resource.rid,
        "type": resource.type,
        "title": resource.title,
        "path": resource.path,
        "author": resource.author,
        "lang": resource.lang,
        "tags": [_clean(tag) for tag in resource.tags],
        "name": resource.fields.get("name", ""),
        "description": resource.fields.get("description", ""),
        "updated": None if resource.updated_at is None else int(resource.updated_at),
    }
    return {
        name: _clean(value) if isinstance(value, str) else value
        for name, value in about.items()
        if value or isinstance(value, int)
    }


def _clean(text: str) -> str:
    """The text without halves of characters, which file names that are no UTF-8 bring."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


def _form_classes(terms: Iterable[str]) -> dict[str, int]:
    """Term → the number of its stem, for stems that have several terms."""
    stems = sorted((stem(term), term) for term in terms if term.isalpha())
    classes: dict[str, int] = {}
    number = 0
    for _, group in groupby(stems, key=lambda pair: pair[0]):
        members = [term for _, term in group]
        if len(members) > 1:
            number += 1
            classes.update(dict.fromkeys(members, number))
    return classes


def _nearness(one: Related) -> tuple[int, int]:
    return one.passage, max(round(one.cosine * 100), 0)
