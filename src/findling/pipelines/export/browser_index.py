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

import base64
import json
import zlib
from array import array
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import groupby
from typing import Any, NamedTuple

from findling.domain import backends
from findling.domain.backends import Scoring
from findling.domain.queries import PROPERTIES
from findling.domain.resources import Chunk, Document, Resource
from findling.pipelines.answer import versions
from findling.stores.keyword import leaf_queries, term_weights
from findling.stores.keyword.entries import padding
from findling.text.analysis import scripts, spelling, word_parts
from findling.text.analysis.analysis import STOP_WORDS, chunk_terms, index_form
from findling.text.analysis.lines import SENTENCE_WORDS
from findling.text.analysis.prose_languages import names_of
from findling.text.analysis.stemming import held_languages, stem, word_lists

FORMAT = 1
"""The version of the format; the script in the same page knows its own."""

_LEVEL = 9
_FREE_LENGTHS = 24  # lengths below it are their own code
_OF_PASSAGES = ("body", "heading")  # fields with an entry for each passage; the others have one for each resource


_CONSTANTS = {
    backends: "STANDARD_K1 STANDARD_B",
    term_weights: "INFLECTED OTHER_FORMS IN_A_ROW NAMED_FILE NAMED_STEM UNADDED REPEATED_K MOST_FORMS",
    leaf_queries: "RARE_FORM",
    versions: "SUPERSEDED BELOW",
    scripts: "LONGEST_WORD MOST_ALTERNATIONS",
    word_parts: "KANA BESIDE_KANA CHINESE KOREAN",
    spelling: "FEWEST_LETTERS LONGEST_OF_ONE_EDIT",
}
"""Constants by which a page scores as the engine does, by the module that gives their reasons."""


def constants() -> str:
    """The constants as a line of the script each, the query fields among them."""
    found = {name: getattr(module, name) for module, names in _CONSTANTS.items() for name in names.split()}
    columns = ("name", "attribute", "kind", "single")
    found["PROPERTIES"] = [{key: getattr(one, key) for key in columns} for one in PROPERTIES.values() if one.example]
    return "\n".join(f"const {name} = {json.dumps(value)};" for name, value in found.items())


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
        units_before = _counting(document.text)
        before = (0, 0)
        for chunk in document.chunks:
            given = chunk_terms(document.text, chunk)
            padded = padding(document.text[chunk.start : chunk.end])
            self._index("body", self.passages, given.body.split(), 1, padded)
            self._index("heading", self.passages, given.heading.split(), 1)
            before = self._write_passage(chunk, units_before, before)
            self.passages += 1
        for field, text in _common_texts(resource).items():
            self._index(field, number, index_form(text).split(), len(document.chunks))
        self._resources.append(_described(resource))
        if earlier := resource.fields.get("supersedes"):
            self._supersedes[earlier] = resource.rid

    def packed(self, about: Mapping[str, Any], related: Sequence[Sequence[Related]] = ()) -> bytes:
        """The index with facts `about` it, and the passages that are related to each."""
        terms = sorted(self._places, key=lambda term: term.encode("utf-16-be"))
        classes = _form_classes(terms, self._language())
        found = bytearray()
        for term in terms:
            written = postings(self._places[term])
            found += numbers([classes.get(term, 0), len(written)]) + written
        near: list[int] = []
        for given in related:
            near += [len(given), *(part for one in given for part in (one.passage, max(round(one.cosine * 100), 0)))]
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

    def _language(self) -> str:
        """The language that most passages are written in; words have one class, and so the forms of one language."""
        body = self._fields.index("body") if "body" in self._fields else -1
        held = held_languages(lambda word: len(self._places.get(word, {}).get(body, ())) // 2, self.passages)
        return held[0]

    def _header(self) -> dict[str, Any]:
        weights = self._scoring.weights
        return {
            "format": FORMAT,
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
            "functionWords": word_lists(),
            "language": self._language(),
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

    def _write_passage(
        self, chunk: Chunk, units_before: Callable[[int], int], before: tuple[int, int]
    ) -> tuple[int, int]:
        start = units_before(chunk.start)
        self._passages += [signed(start - before[0]), units_before(chunk.end) - start]
        self._passages += [signed(chunk.line_start - before[1]), chunk.line_end - chunk.line_start]
        self._passages += [self._string("\n".join(chunk.heading)), len(chunk.places)]
        for place in chunk.places:
            inside = max(units_before(place.start) - start, 0)
            self._passages += [inside, self._string(place.label), place.line]
        return start, chunk.line_start

    def _string(self, text: str) -> int:
        return self._strings.setdefault(_clean(text), len(self._strings))


class DeflatedTexts:
    """Texts one after the other, deflated as they come, so that their `size` is known at any time."""

    def __init__(self) -> None:
        self._stream = zlib.compressobj(_LEVEL)
        self._parts: list[bytes] = []
        self.size = 0
        self.units = 0

    def add(self, text: str) -> int:
        """Add a text; returns its beginning in the units of a browser."""
        start = self.units
        self._keep(self._stream.compress(text.encode("utf-8", "replace")))
        self.units += units(text)
        return start

    def finished(self) -> bytes:
        """All texts, deflated; nothing can be added any more."""
        self._keep(self._stream.flush())
        return b"".join(self._parts)

    def _keep(self, part: bytes) -> None:
        self._parts.append(part)
        self.size += len(part)


def _counting(text: str) -> Callable[[int], int]:
    """A function from offsets of a text to the units of a browser before them."""
    is_wide = not text.isascii() and units(text) > len(text)
    wide = [at for at, letter in enumerate(text) if letter > "\uffff"] if is_wide else []
    return lambda offset: offset + bisect_left(wide, offset)


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
        **{name: getattr(resource, name) for name in ("rid", "type", "title", "path", "author", "lang")},
        "tags": [_clean(tag) for tag in resource.tags],
        "languages": names_of(resource.fields.get("language", "")) or "",
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


def _form_classes(terms: Iterable[str], language: str) -> dict[str, int]:
    """Term → the number of its stem in a language, for stems that have several terms."""
    stems = sorted((stem(term, language), term) for term in terms if term.isalpha())
    classes: dict[str, int] = {}
    number = 0
    for _, group in groupby(stems, key=lambda pair: pair[0]):
        members = [term for _, term in group]
        if len(members) > 1:
            number += 1
            classes.update(dict.fromkeys(members, number))
    return classes


def units(text: str) -> int:
    """The length of a text in a browser, which counts characters beyond the first 65,536 as two."""
    return len(text) if text.isascii() else len(text.encode("utf-16-le", "replace")) // 2


def deflated(data: bytes) -> bytes:
    """The bytes in a form that browsers inflate by themselves."""
    return zlib.compress(data, _LEVEL)


def as_letters(data: bytes) -> str:
    """The bytes as text that may stand anywhere in a page."""
    return base64.b64encode(data).decode("ascii")


def numbers(values: Iterable[int]) -> bytearray:
    """Numbers from 0 up, seven bits a byte, the lowest first; the top bit says that more follow."""
    written = bytearray()
    for value in values:
        while value > 127:
            written.append(value & 127 | 128)
            value >>= 7
        written.append(value)
    return written


def signed(value: int) -> int:
    """A number that may be negative as one that is not: 0, -1, 1, -2 become 0, 1, 2, 3."""
    return value << 1 if value >= 0 else (-value << 1) - 1


def postings(places: Mapping[int, array[int]]) -> bytearray:
    """The postings of a term: the set of its fields, then for each field its entries and counts.

    `places` holds pairs of an entry and a count, in order. A field is the number of its entries, then each entry as
    its distance from the one before, doubled; plus one before a count other than 1.
    """
    written = numbers([sum(1 << field for field in places)])
    for field in sorted(places):
        pairs = places[field]
        values = [len(pairs) // 2]
        before = 0
        for entry, count in zip(pairs[::2], pairs[1::2], strict=True):
            gap, before = entry - before, entry
            values += [gap << 1] if count == 1 else [gap << 1 | 1, count]
        written += numbers(values)
    return written


def length_code(length: int) -> int:
    """The length of a field in one byte: three bits and a shift, rounded down as the keyword leg does."""
    beyond = length - _FREE_LENGTHS
    if beyond < 0:
        return length
    shift = max(beyond.bit_length() - 4, 0)
    bits = beyond >> shift
    return _FREE_LENGTHS + (bits if bits < 8 else (shift + 1 << 3) + (bits & 7))
