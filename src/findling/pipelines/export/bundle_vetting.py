"""The content of a bundle as it may be imported. A bundle is a stranger's data until its owner trusts a part of it.

`domain.strangers` says what needs which trust. Everything that follows from a text is computed again, never believed.
"""

from __future__ import annotations

import base64
import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

from findling.domain.errors import CorruptError, InvalidValueError
from findling.domain.permissions import MEMBER, PATH, UNSET, Relation, check_visibility
from findling.domain.ports import SkippedPath
from findling.domain.records import Access, GlossaryTerm
from findling.domain.resources import Document, Fingerprint
from findling.domain.strangers import BUNDLE_KEPT, BUNDLE_KEPT_OF_MODEL, BUNDLE_META, is_safe_path
from findling.pipelines.indexing.document_build import with_own_ids
from findling.pipelines.indexing.freshness import UNKNOWN
from findling.sources.files.discovery import REASONS
from findling.stores.bundle.bundle import Bundle
from findling.stores.bundle.jsonl_records import Record, to_document, to_term
from findling.stores.bundle.truth_records import SeenBefore, VectorRecord
from findling.stores.validation import check_accesses, check_document, check_glossary, check_relations

_T = TypeVar("_T")

_FILE = "file:"
_LONGEST_NAME = 4096  # characters of an id, as of the longest path of a file
_MOST_OVERLAP = 100  # chunks that may hold one character of a text; presets with overlap have it in two
_WIDEST = 16_384  # numbers of a vector: four times those of the largest models
_LONGEST_VECTOR = 1.01  # vectors have the length 1, with the error of 16-bit numbers
_INT = 1 << 63
_LATEST = 1e11  # seconds since 1970: the year 5138


class BundleRecords:
    """Implements `TruthRecords` for a bundle, as it stands there. Raises CorruptError for a line without sense."""

    def __init__(self, bundle: Bundle) -> None:
        self.bundle = bundle

    def document(self, record: Record) -> Document:
        """A document of the bundle. Raises KeyError, TypeError, ValueError or InvalidValueError for a wrong record."""
        return to_document(record)

    def vector(self, record: Record) -> VectorRecord:
        """A vector of the bundle. Raises as `document` does."""
        import numpy as np

        # The exporting store kept 16 bits of each number, too: nothing is lost.
        full = np.frombuffer(base64.b64decode(record["vector"], validate=True), "<f4")
        if not len(full) or len(full) != record["dim"]:
            raise ValueError(f"the vector has {len(full)} numbers, not {record['dim']}")
        with np.errstate(over="ignore"):
            half = full.astype("<f2")
        if not np.isfinite(half).all():
            raise ValueError("the vector holds a value that is no number")
        return VectorRecord(_str(record["model"]), bytes.fromhex(record["digest"]), half.tobytes(), "")

    def order(self) -> Sequence[str]:
        order = self.bundle.meta().get("order")
        if order is not None and not (isinstance(order, list) and all(isinstance(rid, str) for rid in order)):
            raise self._wrong_meta("its order is no list of ids")
        return order or ()

    def documents(self) -> Iterator[Document]:
        return self.bundle.read("resources.jsonl", self.document)

    def vectors(self) -> Iterator[VectorRecord]:
        return self.bundle.read("vectors.jsonl", self.vector)

    def glossary(self) -> Iterator[GlossaryTerm]:
        return self.bundle.read("glossary.jsonl", to_term)

    def relations(self) -> Iterator[Relation]:
        return self.bundle.read("relations.jsonl", _relation)

    def accesses(self) -> Iterator[tuple[str, Access]]:
        return self.bundle.read("accesses.jsonl", _access)

    def survey(self) -> SeenBefore | None:
        meta = self.bundle.meta()
        try:
            kept = {str(key): str(value) for key, value in meta["kept"].items()}
            folders = {_str(path): _whole(mtime_ns) for path, mtime_ns in meta["folders"].items()}
            return SeenBefore(kept, folders, [_skipped(*entry) for entry in meta["skipped"]])
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise self._wrong_meta(str(error)) from error

    def _wrong_meta(self, why: str) -> CorruptError:
        return CorruptError(f"meta.json in the bundle {self.bundle.path} is damaged: {why}", hint=_AGAIN)


class VettedBundle(BundleRecords):
    """One bundle of a stranger, checked as a whole before anything is written.

    `left_out` counts content that is not imported, by the trust that would import it, empty for none, and its name.
    With `merges`, rights that reach beyond the bundle are left out as well. A part of a workspace has lost its lists of
    readers, and brings no rights whatever is trusted. Raises CorruptError for a damaged bundle.
    """

    def __init__(self, bundle: Bundle, trust: frozenset[str], *, merges: bool) -> None:
        super().__init__(bundle)
        self.trust = trust - {"rights"} if bundle.manifest.get("partial") else trust
        self._merges = merges
        self._rids: set[str] = set()
        self._paths: set[str] = set()
        self._digests: set[bytes] = set()
        self._widths: dict[str, int] = {}
        self.left_out: Counter[tuple[str, str]] = Counter()
        self.left_out["", "rights, which a part of a workspace does not hold"] = len(trust - self.trust)
        self.counts = self._checked_documents() | self._checked_records()
        self._check_meta()
        self.left_out = +self.left_out

    def document(self, record: Record) -> Document:
        made = super().document(record)
        if not isinstance(made.text, str):
            raise TypeError("its text is none")
        check_document(made)
        resource = made.resource
        _check_name(resource.rid, resource.path)
        _check_times(resource.created_at, resource.updated_at)
        if sum(chunk.end - chunk.start for chunk in made.chunks) > _MOST_OVERLAP * (len(made.text) + 1):
            raise ValueError("its chunks overlap too much")
        visibility = None if resource.visibility is None else check_visibility(resource.visibility)
        if "rights" not in self.trust:
            visibility = ()
        made = made._replace(resource=replace(resource, visibility=visibility), fingerprint=self._mark(made))
        return with_own_ids(made)

    def vector(self, record: Record) -> VectorRecord:
        import numpy as np

        row = super().vector(record)
        numbers = np.frombuffer(row.vector, "<f2").astype("<f4")
        width = len(numbers)
        if not float(numbers @ numbers) <= _LONGEST_VECTOR**2:
            raise ValueError("the vector is longer than 1")
        if width > _WIDEST or not row.model or len(row.model) > _LONGEST_NAME:
            raise ValueError(f"a vector of {width:,} numbers is none of a model")
        if self._widths.setdefault(row.model, width) != width:
            raise ValueError(f"vectors of {row.model} have {self._widths[row.model]} numbers, not {width}")
        return row

    def order(self) -> list[str]:
        return list(dict.fromkeys(rid for rid in super().order() if rid in self._rids))

    def vectors(self) -> Iterator[VectorRecord]:
        """The vectors of passages of the bundle."""
        return (row for row in super().vectors() if row.digest in self._digests)

    def relations(self) -> Iterator[Relation]:
        """The rights to something in the bundle, where they are trusted."""
        return filter(self._reaches_inside, super().relations() if "rights" in self.trust else ())

    def accesses(self) -> Iterator[tuple[str, Access]]:
        """The accesses of something in the bundle."""
        return (access for access in super().accesses() if access[0] in self._rids)

    def survey(self) -> SeenBefore | None:
        """The survey of the latest indexing run, where it is trusted."""
        survey = super().survey()
        if survey is None or "survey" not in self.trust:
            return None
        return survey._replace(kept={key: value for key, value in survey.kept.items() if self._may_keep(key)})

    def widths(self) -> Mapping[str, int]:
        """Bytes of a stored vector, for each model."""
        return {model: 2 * width for model, width in self._widths.items()}

    def _checked_documents(self) -> dict[str, int]:
        chunks = characters = lists = 0
        for given, made in self.bundle.read("resources.jsonl", lambda record: (record, self.document(record))):
            rid = made.resource.rid
            if rid in self._rids:
                raise CorruptError(f"{rid!r} is twice in the bundle {self.bundle.path}", hint=_AGAIN)
            self._rids.add(rid)
            self._paths.add(made.resource.path)
            self._digests.update(chunk.digest for chunk in made.chunks)
            chunks += len(made.chunks)
            characters += len(made.text)
            lists += given["visibility"] is not None
        if "rights" not in self.trust:
            self.left_out["rights", "lists of who may see a resource"] = lists
        return {"resources": len(self._rids), "chunks": chunks, "characters": characters} if self._rids else {}

    def _checked_records(self) -> dict[str, int]:
        vectors = (row.digest in self._digests for row in super().vectors())
        terms = self._sound("glossary.jsonl", super().glossary(), check_glossary)
        relations = self._sound("relations.jsonl", super().relations(), check_relations)
        accesses = (rid in self._rids for rid, _ in super().accesses())
        inside = sum(map(self._reaches_inside, relations))
        self.left_out["", "relations to something that is not in it"] = len(relations) - inside
        if "rights" not in self.trust:
            self.left_out["rights", "relations"] = inside
        return {
            "vectors": self._taken(vectors, "vectors of passages that are not in it"),
            "glossary": len(terms),
            "relations": inside if "rights" in self.trust else 0,
            "accesses": self._taken(accesses, "accesses of what is not in it"),
        }

    def _taken(self, taken: Iterable[bool], what: str) -> int:
        counts = Counter(taken)
        self.left_out["", what] = counts[False]
        return counts[True]

    def _reaches_inside(self, relation: Relation) -> bool:
        """Whether a relation is about the bundle alone: merged rights of a folder or a group are about others, too."""
        target = relation.object
        if target == UNSET:
            return False
        if relation.relation == MEMBER:
            return not self._merges
        if not target.startswith(PATH):
            return target in self._rids
        path = target.removeprefix(PATH)
        if self._merges:
            return path in self._paths
        return any(path in (".", one) or one.startswith(f"{path}/") for one in self._paths)

    def _check_meta(self) -> None:
        meta = self.bundle.meta()
        for key in meta.keys() - BUNDLE_META.keys():
            self.left_out["", f"meta.json {key!r:.80}"] += 1
        self.order()
        self.survey()
        for key in meta["kept"]:
            if not self._may_keep(key):
                self.left_out["", f"meta.json kept {key!r:.80}"] += 1
        if meta.get("root") and "root" not in self.trust:
            self.left_out["root", f"the folder {meta['root']!r:.200}"] = 1
        if (meta.get("folders") or meta.get("kept")) and "survey" not in self.trust:
            self.left_out["survey", "the survey of its files, which will be read again"] = 1

    def _may_keep(self, key: str) -> bool:
        model = key.removeprefix(BUNDLE_KEPT_OF_MODEL)
        return key in BUNDLE_KEPT or (model != key and model in self._widths)

    def _mark(self, document: Document) -> Fingerprint | None:
        """The fingerprint of a file; without trust it is unknown, and the file is read again."""
        mark = document.fingerprint
        if mark is None or not document.resource.rid.startswith(_FILE):
            return None
        if "survey" not in self.trust:
            return UNKNOWN
        if not all(0 <= number < _INT for number in (mark.size, mark.inode)) or not -_INT < mark.changed_ns < _INT:
            raise ValueError("its fingerprint is none")
        return mark

    def _sound(self, name: str, rows: Iterable[_T], check: Callable[[list[_T]], None]) -> list[_T]:
        listed = list(rows)
        try:
            check(listed)
        except (AttributeError, TypeError, ValueError, InvalidValueError) as error:
            raise CorruptError(f"{name} in the bundle {self.bundle.path} is damaged: {error}", hint=_AGAIN) from error
        return listed


_AGAIN = "export it again"


def _check_name(rid: str, path: str) -> None:
    """Raise ValueError for an id or a path that leads elsewhere, or that a store reserves."""
    if "\0" in rid or len(rid) > _LONGEST_NAME:
        raise ValueError(f"{rid!r:.200} is no id")
    if rid.startswith(_FILE) and rid != f"{_FILE}{path}":
        raise ValueError(f"{rid!r:.200} is not the id of the path {path!r:.200}")
    if path and not is_safe_path(path):
        raise ValueError(f"{path!r:.200} does not lie below the folder that was indexed")


def _check_times(*times: float | None) -> None:
    for time in times:
        if time is not None and not (math.isfinite(time) and abs(time) < _LATEST):
            raise ValueError(f"{time!r:.50} is no time")


def _relation(record: Record) -> Relation:
    return Relation(_str(record["subject"]), _str(record["relation"]), _str(record["object"]))


def _access(record: Record) -> tuple[str, Access]:
    rid, access = _str(record["rid"]), Access(int(record["count"]), float(record["last_at"]))
    check_accesses({rid: access})
    if access.count >= _INT or not abs(access.last_at) < _LATEST:
        raise ValueError("it is no access")
    return rid, access


def _skipped(path: object, reason: object, detail: object = "", size: object = 0, mtime_ns: object = 0) -> SkippedPath:
    if reason not in REASONS:
        raise ValueError(f"{reason!r:.80} is no reason to skip a file")
    return SkippedPath(_str(path), _str(reason), _str(detail), _whole(size), _whole(mtime_ns))


def _str(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{value!r:.80} is no text")
    value.encode("utf-8", "surrogateescape")
    return value


def _whole(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not -_INT < value < _INT:
        raise TypeError(f"{value!r:.80} is no whole number")
    return value
