"""The content of a bundle as it may be taken in. A bundle is a stranger's data until its owner trusts a part of it.

`domain.strangers` says what needs which trust. Everything that follows from a text is made here again, never believed.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from findling.domain.errors import CorruptError, InvalidValueError
from findling.domain.permissions import MEMBER, PATH, UNSET, Relation, check_visibility
from findling.domain.ports import SkippedPath
from findling.domain.records import Access
from findling.domain.resources import Document, Fingerprint
from findling.domain.strangers import BUNDLE_KEPT, BUNDLE_KEPT_OF_MODEL, BUNDLE_META, is_safe_path
from findling.pipelines.indexing.document_build import with_own_ids
from findling.pipelines.indexing.survey import UNKNOWN
from findling.sources.files.discovery import REASONS
from findling.stores.bundle.bundle import Bundle
from findling.stores.bundle.bundle_restore import SeenBefore, VectorLine, to_access, to_relation, to_vector
from findling.stores.bundle.jsonl_records import Record, to_document, to_term
from findling.stores.validation import check_accesses, check_document, check_glossary, check_relations

__all__ = ["VettedBundle"]

_FILE = "file:"
_LONGEST_NAME = 4096
"""Characters of an id, as of the longest path of a file."""

_MOST_OVERLAP = 100
"""How often a character of a text may be in chunks: those of all presets that overlap have it in two."""

_WIDEST = 16_384
"""Numbers of a vector: four times as many as those of the largest models."""

_LONGEST_VECTOR = 1.01
"""Vectors have the length 1, but for what half of the bits loses."""

_INT = 1 << 63
_LATEST = 1e11
"""Seconds since 1970: the year 5138."""

_Left = Counter[tuple[str, str]]


class VettedBundle:
    """One bundle, looked at as a whole before anything is written. `left_out` counts what is not taken.

    Each key of it is the trust that would take it, empty where none does, and what it is. With `merges`, rights that
    would reach beyond the bundle are left out as well. Raises CorruptError for what makes no sense.
    """

    def __init__(self, bundle: Bundle, trust: frozenset[str], *, merges: bool) -> None:
        self.bundle = bundle
        self._trust = trust
        self._merges = merges
        self._rids: set[str] = set()
        self._paths: set[str] = set()
        self._digests: set[bytes] = set()
        self._widths: dict[str, int] = {}
        self.counts: dict[str, int] = {}
        self.left_out: _Left = Counter()
        self._look()

    def document(self, record: Record) -> Document:
        """A document of the bundle. Raises KeyError, TypeError, ValueError or InvalidValueError for what is none."""
        made = to_document(record)
        if not isinstance(made.text, str):
            raise TypeError("its text is none")
        check_document(made)
        resource = made.resource
        _check_name(resource.rid, resource.path)
        _check_times(resource.created_at, resource.updated_at)
        if sum(chunk.end - chunk.start for chunk in made.chunks) > _MOST_OVERLAP * (len(made.text) + 1):
            raise ValueError("its chunks overlap too much")
        visibility = None if resource.visibility is None else check_visibility(resource.visibility)
        if "rights" not in self._trust:
            visibility = ()
        made = made._replace(resource=replace(resource, visibility=visibility), fingerprint=self._mark(made))
        return with_own_ids(made)

    def order(self) -> list[str]:
        """The ids in the order of their numbers, where the lines are in another one; else nothing."""
        order = self.bundle.meta().get("order")
        if order is not None and not (isinstance(order, list) and all(isinstance(rid, str) for rid in order)):
            raise self._wrong_meta("its order is no list of ids")
        return list(dict.fromkeys(rid for rid in order or () if rid in self._rids))

    def takes_vector(self, row: VectorLine) -> bool:
        """Whether a vector is of a passage of the bundle."""
        return row.digest in self._digests

    def takes_relation(self, relation: Relation) -> bool:
        """Whether a right is trusted, and one to something in the bundle."""
        return "rights" in self._trust and self._reaches_inside(relation)

    def takes_access(self, rid: str) -> bool:
        """Whether an access is one of something in the bundle."""
        return rid in self._rids

    def widths(self) -> Mapping[str, int]:
        """Bytes of a vector as stores keep it, for each model."""
        return {model: 2 * width for model, width in self._widths.items()}

    def survey(self) -> SeenBefore | None:
        """What the latest indexing run has seen, where that is trusted."""
        return self._survey() if "survey" in self._trust else None

    # Looking

    def _look(self) -> None:
        """Read every line once."""
        lists = 0
        for given, made in self.bundle.read("resources.jsonl", lambda record: (record, self.document(record))):
            rid = made.resource.rid
            if rid in self._rids:
                raise CorruptError(f"{rid!r} is twice in the bundle {self.bundle.path}", hint="export it again")
            self._rids.add(rid)
            self._paths.add(made.resource.path)
            self._digests.update(chunk.digest for chunk in made.chunks)
            self.counts["resources"] = self.counts.get("resources", 0) + 1
            self.counts["chunks"] = self.counts.get("chunks", 0) + len(made.chunks)
            self.counts["characters"] = self.counts.get("characters", 0) + len(made.text)
            lists += given["visibility"] is not None
        if lists and "rights" not in self._trust:
            self.left_out["rights", "lists of who may see a resource"] = lists
        self.counts["vectors"] = sum(map(self._counts_vector, self.bundle.read("vectors.jsonl", self._vector)))
        self.counts["glossary"] = self._checked("glossary.jsonl", to_term, check_glossary)
        relations = list(self.bundle.read("relations.jsonl", to_relation))
        self._check("relations.jsonl", check_relations, relations)
        self.counts["relations"] = sum(map(self._counts_relation, relations))
        self.counts["accesses"] = sum(map(self._counts_access, self.bundle.read("accesses.jsonl", _access)))
        self._look_at_meta()

    def _vector(self, record: Record) -> VectorLine:
        import numpy as np

        row = to_vector(record)
        numbers = np.frombuffer(row.vector, "<f2").astype("<f4")
        width = len(numbers)
        if not float(numbers @ numbers) <= _LONGEST_VECTOR**2:
            raise ValueError("the vector is longer than 1")
        if width > _WIDEST or not row.model or len(row.model) > _LONGEST_NAME:
            raise ValueError(f"a vector of {width:,} numbers is none of a model")
        if self._widths.setdefault(row.model, width) != width:
            raise ValueError(f"vectors of {row.model} have {self._widths[row.model]} numbers, not {width}")
        return row

    def _counts_vector(self, row: VectorLine) -> bool:
        taken = self.takes_vector(row)
        self.left_out["", "vectors of passages that are not in it"] += not taken
        return taken

    def _counts_relation(self, relation: Relation) -> bool:
        taken = self.takes_relation(relation)
        if not taken:
            inside = self._reaches_inside(relation)
            what = "relations" if inside else "relations to something that is not in it"
            self.left_out["rights" if inside else "", what] += 1
        return taken

    def _counts_access(self, row: tuple[str, Access]) -> bool:
        taken = self.takes_access(row[0])
        self.left_out["", "accesses of what is not in it"] += not taken
        return taken

    def _reaches_inside(self, relation: Relation) -> bool:
        """Whether a relation is about the bundle's own: merged rights of a folder or a group are about others, too."""
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

    def _look_at_meta(self) -> None:
        meta = self.bundle.meta()
        for key in meta.keys() - BUNDLE_META.keys():
            self.left_out["", f"meta.json {key!r:.80}"] += 1
        self.order()
        self._survey()
        kept = meta.get("kept")
        for key in kept if isinstance(kept, dict) else ():
            if not self._may_keep(key):
                self.left_out["", f"meta.json kept {key!r:.80}"] += 1
        if meta.get("root") and "root" not in self._trust:
            self.left_out["root", f"the folder {meta['root']!r:.200}"] = 1
        if (meta.get("folders") or meta.get("kept")) and "survey" not in self._trust:
            self.left_out["survey", "the survey of its files, which will be read again"] = 1
        self.left_out = +self.left_out

    def _survey(self) -> SeenBefore:
        meta = self.bundle.meta()
        try:
            kept = {str(key): str(value) for key, value in meta["kept"].items() if self._may_keep(key)}
            folders = {_str(path): _whole(mtime_ns) for path, mtime_ns in meta["folders"].items()}
            skipped = [_skipped(*entry) for entry in meta["skipped"]]
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise self._wrong_meta(str(error)) from error
        return SeenBefore(kept, folders, skipped)

    def _may_keep(self, key: str) -> bool:
        model = key.removeprefix(BUNDLE_KEPT_OF_MODEL)
        return key in BUNDLE_KEPT or (model != key and model in self._widths)

    def _mark(self, document: Document) -> Fingerprint | None:
        """The fingerprint of a file; one that is not trusted has the file read again."""
        mark = document.fingerprint
        if mark is None or not document.resource.rid.startswith(_FILE):
            return None
        if "survey" not in self._trust:
            return UNKNOWN
        if not all(0 <= number < _INT for number in (mark.size, mark.inode)) or not -_INT < mark.changed_ns < _INT:
            raise ValueError("its fingerprint is none")
        return mark

    def _checked(self, name: str, parse: Any, check: Any) -> int:
        rows = list(self.bundle.read(name, parse))
        self._check(name, check, rows)
        return len(rows)

    def _check(self, name: str, check: Any, rows: Iterable[Any]) -> None:
        try:
            check(rows)
        except (AttributeError, TypeError, ValueError, InvalidValueError) as error:
            raise CorruptError(f"{name} in the bundle {self.bundle.path} is damaged: {error}", hint=_AGAIN) from error

    def _wrong_meta(self, why: str) -> CorruptError:
        return CorruptError(f"meta.json in the bundle {self.bundle.path} is damaged: {why}", hint=_AGAIN)


_AGAIN = "export it again"


def _check_name(rid: str, path: str) -> None:
    """Raise ValueError for an id or a path that leads elsewhere, or that means something else to a store."""
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


def _access(record: Record) -> tuple[str, Access]:
    rid, access = to_access(record)
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
