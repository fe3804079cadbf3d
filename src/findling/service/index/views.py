"""What a caller with limited rights searches: legs that hold nothing else than what the caller may see.

So statistics, vocabulary, counts, neighbours and errors cannot tell of anything else. The keyword leg of a caller is a
sidecar in `views/`, made from the truth when the caller first asks and kept in step with what the caller may see.
"""

from __future__ import annotations

import os
import tempfile
import threading
from array import array
from collections import OrderedDict
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from findling.domain.errors import CorruptError, LockedError, PathNotFoundError, ReadOnlyError
from findling.domain.ports import Change, TruthStore, VectorHits, VectorSearch
from findling.domain.results import Degradation
from findling.domain.sight import Rights, Sight
from findling.pipelines.retrieve.legs import Retrievers
from findling.pipelines.retrieve.vector_retrieval import Meaning, Space
from findling.service.index.embeddings import READ_UP_TO
from findling.service.index.index_files import OpenedWorkspace
from findling.service.index.reader import IndexState, Reader
from findling.service.workspace.writer_queue import LOCK_PATIENCE_S
from findling.stores.filtered_store import VisibleStore
from findling.stores.keyword.leg import TantivyLeg, discard_leg
from findling.stores.local.layout import VIEWS
from findling.stores.lock import WriteLock

if TYPE_CHECKING:
    from findling.domain.ports import Vectors
    from findling.service.settings.settings import Settings

__all__ = ["WorkspaceSights", "drop_stale_views"]

_NOTE = "held"
"""The file beside a caller's keyword leg that says what is in it."""

_REMEMBERED = 16
"""Callers whose sight and leg stay open."""

_MOST_VIEWS = 64
"""Callers whose legs are kept on disk."""


class _Note(NamedTuple):
    """What a view holds, as it was written beside it: numbers with their changes. No two notes have the same token."""

    token: int
    held: dict[int, int]


_Aside = tempfile.TemporaryDirectory[str] | None


class _Seen(NamedTuple):
    """What a caller sees, and searches. A leg lies `aside` where the workspace cannot be written."""

    state: IndexState
    sight: Sight
    leg: TantivyLeg
    aside: _Aside = None


class WorkspaceSights:
    """The legs of every caller of one workspace. `meaning` gives what a search by meaning has at hand."""

    def __init__(self, files: OpenedWorkspace, settings: Settings, meaning: Callable[[], Meaning]) -> None:
        self._files = files
        self._settings = settings
        self._meaning = meaning
        self._seen: OrderedDict[frozenset[str], _Seen] = OrderedDict()
        self._guard = threading.RLock()

    def reader(self, principals: Iterable[str]) -> Reader:
        """The reader of these principals; one that is kept holds as long as the state is the same.

        Raises InvalidValueError for what is no principal, CorruptError when the truth is damaged.
        """
        seen = self._look(list(principals))
        return Reader(self._limited(seen), lambda _: self._discard(seen), seen.state)

    def sight(self, principals: Iterable[str]) -> Sight:
        """What these principals may see now."""
        return Sight.of(self._rights(principals), self._files.store.rights())

    def close(self) -> None:
        """Release files; closing twice is fine."""
        with self._guard:
            while self._seen:
                self._let_go(self._seen.popitem()[1])

    def _look(self, principals: Iterable[str]) -> _Seen:
        with self._guard:
            while True:
                state = self.state()
                rights = self._rights(principals)
                seen = self._seen.pop(rights.principals, None)
                if seen is not None and seen.state != state:
                    self._let_go(seen)
                    seen = None
                if seen is None:
                    sight = Sight.of(rights, self._files.store.rights())
                    seen = _Seen(state, sight, *self._leg(sight))
                self._seen[rights.principals] = seen
                while len(self._seen) > _REMEMBERED:
                    self._let_go(self._seen.popitem(last=False)[1])
                # What was written meanwhile may be in the leg and out of sight.
                if self.state() == state:
                    return seen

    def _discard(self, seen: _Seen) -> list[Degradation]:
        # A limited caller is not told of it.
        with self._guard:
            self._seen.pop(seen.sight.rights.principals, None)
            self._let_go(seen)
            discard_leg(self._folder(seen.sight))
        return []

    def _let_go(self, seen: _Seen) -> None:
        seen.leg.close()
        if seen.aside is not None:
            seen.aside.cleanup()

    def state(self) -> IndexState:
        """The state of the index now."""
        store = self._files.store
        return IndexState(store.get_meta("store_id") or "", store.seq(), store.relations_version())

    def _rights(self, principals: Iterable[str]) -> Rights:
        # Only where the workspace has no policy of its own: that one lives under the version of the relations.
        is_public = self._settings["permissions.unset"] == "public"
        return Rights(principals, self._files.store.relations(), unset_is_public=is_public)

    def _limited(self, seen: _Seen) -> Retrievers:
        store = VisibleStore(self._files.store, seen.sight)
        return Retrievers(store, seen.leg, lambda: self._limited_meaning(seen))

    def _limited_meaning(self, seen: _Seen) -> Meaning:
        """Vectors that all of what may be seen has: how far a model has come elsewhere must not show."""
        at_hand = self._meaning()
        numbers = seen.sight.changes.keys()
        limited = [_limited_space(space, numbers) for space in (*at_hand.spaces, *at_hand.spare([]))]
        refined = [one for one in limited if one.leg.speed == "refined" and self._is_read(one, seen)][:1]
        serving = refined or [one for one in limited if one.leg.speed == "instant"][:1]
        return at_hand._replace(
            spaces=tuple(serving),
            coverage=1.0 if refined else 0.0,
            read_on=None,
            spare=lambda notes: [_limited_space(space, numbers) for space in at_hand.spare(notes)],
            degraded=() if serving else at_hand.degraded,
        )

    def _is_read(self, space: Space, seen: _Seen) -> bool:
        """Whether the model has read all of it in a run that came to its end since the latest change of it.

        A passage that others have had read has its vector from the moment it is added. Were that enough, whoever adds
        a guess could tell whether it stands word for word in something hidden.
        """
        read_up_to = int(self._files.store.get_meta(READ_UP_TO + space.embedder.fingerprint) or -1)
        is_settled = max(seen.sight.changes.values(), default=0) <= read_up_to
        return is_settled and len(space.leg) >= seen.leg.size()

    def _folder(self, sight: Sight) -> Path:
        name = blake2b("\n".join(sorted(sight.rights.principals)).encode(), digest_size=8).hexdigest()
        return self._files.folder / VIEWS / name

    def _leg(self, sight: Sight) -> tuple[TantivyLeg, _Aside]:
        folder = self._folder(sight)
        if not sight.changes:
            return self._opened(folder / "nothing"), None  # where there is no leg there is an empty one
        try:
            if (leg := self._fitting(folder, sight)) is not None:
                return leg, None
        except CorruptError:
            pass  # it is made anew
        try:
            folder.parent.mkdir(mode=0o700, exist_ok=True)
            with WriteLock(folder.with_suffix(".lock"), timeout_s=LOCK_PATIENCE_S):
                leg = self._level(folder, sight)
            _keep_few(folder.parent)
            return leg, None
        except (LockedError, OSError, PathNotFoundError, ReadOnlyError):
            aside = tempfile.TemporaryDirectory(prefix="findling-view-", ignore_cleanup_errors=True)
            try:
                return self._level(Path(aside.name) / "leg", sight), aside
            except BaseException:
                aside.cleanup()
                raise

    def _opened(self, folder: Path) -> TantivyLeg:
        store_id = self._files.store.get_meta("store_id") or ""
        unit = self._settings["keyword.unit"]
        return TantivyLeg.open(folder / "keyword", store_id=f"{store_id}/view", unit=unit)

    def _fitting(self, folder: Path, sight: Sight) -> TantivyLeg | None:
        """The leg that is there, if it holds just what may be seen."""
        note = _read_note(folder)
        if note is None or note.held != sight.changes:
            return None
        leg = self._opened(folder)
        # Whoever changes a leg first takes its note away and then writes another one: the same note before and after
        # says that the leg in between is the one that it is about.
        if _read_note(folder) != note:
            return None
        if not leg.seq():
            return None  # one of another layout, which an earlier version has made, opens as an empty one
        with suppress(OSError):
            os.utime(folder / _NOTE)  # tells `compact` that it is in use
        return leg

    def _level(self, folder: Path, sight: Sight) -> TantivyLeg:
        """The leg in step with the sight: what is new is added; when anything has gone or changed, it is made anew.

        An index counts what was deleted in its statistics until it tidies itself up, and that must not be seen.
        """
        note = _read_note(folder)
        missing = dict(sight.changes)
        is_grown = note is not None and all(missing.pop(number, None) == seq for number, seq in note.held.items())
        (folder / _NOTE).unlink(missing_ok=True)
        try:
            leg = self._opened(folder)
            is_grown = is_grown and (bool(leg.size()) or not (note and note.held))
        except CorruptError:
            is_grown = False
        if not is_grown:
            discard_leg(folder)
            leg, missing = self._opened(folder), dict(sight.changes)
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        leg.apply(self._additions(missing))
        leg.commit(self._files.store.seq())
        leg.close()
        _write_note(folder, sight)
        return leg

    def _additions(self, numbers: Iterable[int]) -> Iterator[Change]:
        for number, document in self._files.store.documents(numbers):
            added = frozenset(chunk.cid for chunk in document.chunks)
            yield Change(0, document.resource.rid, (), added, document, number)


class _VisibleVectors:
    """Implements `VectorSearch`: the rows of what may be seen, each looked at, whatever else there is."""

    def __init__(self, leg: VectorSearch, numbers: Collection[int]) -> None:
        self._leg = leg
        self._numbers = numbers
        self.speed = leg.speed

    def __len__(self) -> int:
        return self._leg.count(self._numbers)

    def count(self, allowed: Collection[int]) -> int:
        """How many chunks of these resources it has a vector of."""
        return self._leg.count(self._within(allowed))

    def search(
        self,
        query: Vectors,
        limit: int,
        *,
        allowed: Collection[int] | None = None,
        also: Sequence[int] = (),
        exact: bool = True,
    ) -> VectorHits:
        """The `limit` chunks nearest to a vector; always exact."""
        within = self._numbers if allowed is None else self._within(allowed)
        return self._leg.search(query, limit, allowed=within, also=also, exact=True)

    def _within(self, allowed: Collection[int]) -> list[int]:
        return [number for number in allowed if number in self._numbers]


def _limited_space(space: Space, numbers: Collection[int]) -> Space:
    return Space(_VisibleVectors(space.leg, numbers), space.embedder)


def _read_note(folder: Path) -> _Note | None:
    """What the leg in a folder holds; `None` when nobody has noted it, or somebody is at it."""
    packed = array("q")
    try:
        packed.frombytes((folder / _NOTE).read_bytes())
    except (FileNotFoundError, NotADirectoryError, ValueError):
        return None
    if len(packed) % 2 == 0:
        return None
    return _Note(packed[0], dict(zip(packed[1::2], packed[2::2], strict=True)))


def _write_note(folder: Path, sight: Sight) -> None:
    token = int.from_bytes(os.urandom(8), "big", signed=True)
    packed = array("q", [token, *(part for pair in sight.changes.items() for part in pair)])
    draft = folder / f"{_NOTE}.new"
    draft.write_bytes(packed.tobytes())
    draft.replace(folder / _NOTE)


def drop_stale_views(folder: Path, store: TruthStore) -> list[str]:
    """Delete the views in a workspace's folder that hold anything that has changed or gone; tells which."""
    present = {right.number: right.seq for right in store.rights()}
    dropped = []
    for view in sorted((folder / VIEWS).glob("*/")):
        note = _read_note(view)
        if note is None or any(present.get(number) != seq for number, seq in note.held.items()):
            with WriteLock(view.with_suffix(".lock"), timeout_s=LOCK_PATIENCE_S):
                discard_leg(view)
            dropped.append(f"{VIEWS}/{view.name}")
    return dropped


def _keep_few(views: Path) -> None:
    """Delete the views that were used longest ago, when there are many; whoever needs one makes it again."""
    notes = sorted(views.glob(f"*/{_NOTE}"), key=_used_at, reverse=True)
    for note in notes[_MOST_VIEWS:]:
        with suppress(OSError, LockedError), WriteLock(note.parent.with_suffix(".lock"), timeout_s=0.0):
            discard_leg(note.parent)


def _used_at(file: Path) -> float:
    try:
        return file.stat().st_mtime
    except FileNotFoundError:
        return 0.0
