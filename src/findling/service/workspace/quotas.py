"""Quotas: limits of a workspace, and the refusal of what exceeds them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from findling.domain.errors import QuotaError
from findling.stores.filesystem import file_size

if TYPE_CHECKING:
    from findling.domain.ports import TruthStore
    from findling.domain.resources import Document
    from findling.service.settings.settings import Settings


class Quota(NamedTuple):
    """The most that a workspace may hold: resources, characters of text, bytes on disk; 0 is any number."""

    resources: int = 0
    text: int = 0
    disk: int = 0


_NOT_THERE = -1

_UNITS = {"resources": "resources", "text": "characters of text", "disk": "bytes on disk"}


def effective_quota(own: Quota | None, settings: Settings) -> Quota:
    """The limits of a workspace: its own, and where it has none those of the settings."""
    usual = Quota(*(int(settings.get(f"quota.{name}", 0)) for name in Quota._fields))
    return Quota(*(mine or theirs for mine, theirs in zip(own or Quota(), usual, strict=True)))


def parse_limit(name: str, text: str, where: str) -> int:
    """Parse a limit such as `500`, `50MB`, `2GB`. Raises InvalidValueError that names `where`."""
    from findling.service.settings.settings import Setting, parse_text

    parsed = parse_text(Setting(f"quota.{name}", "size", 0, f"The most {_UNITS[name]}."), text, where)
    assert isinstance(parsed, int)
    return parsed


class Allowance:
    """The room left in a workspace, counted down as documents come. It costs nothing without a quota.

    Bytes on disk are measured between batches, so one batch may exceed them.
    """

    def __init__(self, store: TruthStore, folder: Path, quota: Quota) -> None:
        self._store, self._folder, self._quota = store, folder, quota
        self._is_limited = any(quota)
        self._counted: dict[str, int] = {}
        self._resources = self._text = self._disk = 0
        if self._is_limited:
            counts = store.counts()
            self._resources, self._text = counts["resources"], counts["characters"]
            self.measure()

    def measure(self) -> None:
        """Measure the disk again; call it after each batch."""
        if self._quota.disk:
            self._disk = disk_usage(self._folder)

    def refusal(self, document: Document) -> str:
        """The reason why a document does not fit, or nothing; one that fits is counted as if it were written."""
        if not self._is_limited:
            return ""
        held, text_before = self._held(document.resource.rid)
        resources, text = 1 - held, len(document.text) - text_before
        # A text takes at least its own size on disk.
        after = Quota(self._resources + resources, self._text + text, self._disk + max(0, text))
        # A document that shrinks always fits: otherwise no quota could be met again.
        why = self._excess(after) if resources > 0 or text > 0 else ""
        if not why:
            self._resources, self._text, self._disk = after
            self._counted[document.resource.rid] = len(document.text)
        return why

    def free(self, rids: Iterable[str]) -> None:
        """Count resources as deleted before they are."""
        for rid in rids if self._is_limited else ():
            resources, text = self._held(rid)
            self._resources, self._text = self._resources - resources, self._text - text
            self._counted[rid] = _NOT_THERE

    def require(self, *, resources: int, text: int) -> None:
        """Raise QuotaError when so many more resources and characters would exceed the quota."""
        if why := self._excess(Quota(self._resources + resources, self._text + text, self._disk + text)):
            raise self._error(why)

    def admit(
        self, documents: Sequence[Document], deleted_rids: Iterable[str] = ()
    ) -> tuple[Sequence[Document], QuotaError | None]:
        """Count a batch before it is written: the documents up to the first that does not fit, and its refusal."""
        if not self._is_limited:
            return documents, None
        self.free(deleted_rids)
        for number, document in enumerate(documents):
            if why := self.refusal(document):
                return documents[:number], self._error(f"{why}; {document.resource.rid} does not fit")
        return documents, None

    def check(self, documents: Sequence[Document], deleted_rids: Iterable[str] = ()) -> None:
        """Count a batch that is written as a whole. Raises QuotaError when one of its documents does not fit."""
        _, refusal = self.admit(documents, deleted_rids)
        if refusal is not None:
            raise refusal

    def _held(self, rid: str) -> tuple[int, int]:
        if rid not in self._counted:
            before = self._store.document(rid)
            self._counted[rid] = _NOT_THERE if before is None else len(before.text)
        length = self._counted[rid]
        return (0, 0) if length == _NOT_THERE else (1, length)

    def _excess(self, held: Quota) -> str:
        for name, amount, most in zip(Quota._fields, held, self._quota, strict=True):
            if most and amount > most:
                return f"the quota {name} allows {most:,} {_UNITS[name]}"
        return ""

    def _error(self, why: str) -> QuotaError:
        return QuotaError(
            f"{self._folder}: {why}; what was committed is kept",
            hint="findling forget and then findling compact make room, findling workspaces set allows more",
        )


def disk_usage(folder: Path) -> int:
    """The bytes of all files of a workspace, without its snapshots: a quota does not count them."""
    return sum(file_size(path) for path in folder.rglob("*") if path.relative_to(folder).parts[0] != "snapshots")
