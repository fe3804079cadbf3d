"""What a caller with limited rights searches: legs that hold nothing else than what the caller may see.

So statistics, vocabulary, counts, neighbours and errors cannot tell of anything else. The keyword leg of a caller is a
sidecar in `views/`, made from the truth when the caller first asks and kept in step with what the caller may see.
"""

from __future__ import annotations

import tempfile
from array import array
from collections import OrderedDict
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from findling.domain.errors import CorruptError, LockedError, ReadOnlyError
from findling.domain.ports import Change, VectorHits, VectorSearch
from findling.domain.sight import Rights, Sight
from findling.pipelines.meaning import Meaning, Space
from findling.pipelines.searching import Legs
from findling.service.opened import LOCK_PATIENCE_S, OpenedWorkspace
from findling.stores.keyword import TantivyLeg, discard_leg
from findling.stores.lock import WriteLock
from findling.stores.visible import VisibleStore

if TYPE_CHECKING:
    from findling.domain.ports import Vectors
    from findling.service.settings import Settings

__all__ = ["VIEWS", "WorkspaceSights"]

VIEWS = "views"
"""The folder of a workspace that holds the keyword legs of callers."""

_NOTE = "held"
"""The file beside a caller's keyword leg that says what is in it."""

_REMEMBERED = 16
"""Callers whose sight and leg stay open."""


class _State(NamedTuple):
    """What a sight depends on: another store, another change or another relation gives another one."""

    store_id: str
    seq: int
    relations: int


class _Seen(NamedTuple):
    state: _State
    sight: Sight
    leg: TantivyLeg


class WorkspaceSights:
    """The legs of every caller of one workspace. `meaning` gives what a search by meaning has at hand."""

    def __init__(self, files: OpenedWorkspace, settings: Settings, meaning: Callable[[], Meaning]) -> None:
        self._files = files
        self._settings = settings
        self._meaning = meaning
        self._seen: OrderedDict[frozenset[str], _Seen] = OrderedDict()
        self._aside: list[tempfile.TemporaryDirectory[str]] = []

    def legs(self, principals: Iterable[str]) -> Legs:
        """What a search by these principals goes by. Raises InvalidValueError for what is no principal."""
        while True:
            state = self._state()
            rights = self._rights(principals)
            seen = self._seen.pop(rights.principals, None)
            if seen is None or seen.state != state:
                sight = Sight.of(rights, self._files.store.rights())
                seen = _Seen(state, sight, self._leg(sight))
            self._seen[rights.principals] = seen
            while len(self._seen) > _REMEMBERED:
                self._seen.popitem(last=False)[1].leg.close()
            # What was written meanwhile may be in the leg and out of sight.
            if self._state() == state:
                return self._limited(seen)

    def sight(self, principals: Iterable[str]) -> Sight:
        """What these principals may see now."""
        return Sight.of(self._rights(principals), self._files.store.rights())

    def close(self) -> None:
        """Release files; closing twice is fine."""
        while self._seen:
            self._seen.popitem()[1].leg.close()
        while self._aside:
            self._aside.pop().cleanup()

    def _state(self) -> _State:
        store = self._files.store
        return _State(store.get_meta("store_id") or "", store.seq(), store.relations_version())

    def _rights(self, principals: Iterable[str]) -> Rights:
        is_public = self._settings["permissions.unset"] == "public"
        return Rights(principals, self._files.store.relations(), unset_is_public=is_public)

    def _limited(self, seen: _Seen) -> Legs:
        store = VisibleStore(self._files.store, seen.sight)
        return Legs(store, seen.leg, lambda: _limited_meaning(self._meaning(), seen))

    def _leg(self, sight: Sight) -> TantivyLeg:
        if not sight.changes:
            return self._opened(Path())  # where there is no leg there is an empty one
        name = blake2b("\n".join(sorted(sight.rights.principals)).encode(), digest_size=8).hexdigest()
        folder = self._files.folder / VIEWS / name
        try:
            leg = self._opened(folder)
            if _held(folder, leg) == sight.changes:
                return leg
        except CorruptError:
            pass  # it is made anew
        try:
            folder.parent.mkdir(mode=0o700, exist_ok=True)
            with WriteLock(folder.with_suffix(".lock"), timeout_s=LOCK_PATIENCE_S):
                return self._level(folder, sight)
        except (LockedError, OSError, ReadOnlyError):
            aside = tempfile.TemporaryDirectory(prefix="findling-view-", ignore_cleanup_errors=True)
            self._aside.append(aside)
            return self._level(Path(aside.name) / "leg", sight)

    def _opened(self, folder: Path) -> TantivyLeg:
        store_id = self._files.store.get_meta("store_id") or ""
        return self._files.open_leg(folder / "keyword", f"{store_id}/view", counts=False)

    def _level(self, folder: Path, sight: Sight) -> TantivyLeg:
        """The leg in step with the sight: what is new is added; when anything has gone or changed, it is made anew.

        An index counts what was deleted in its statistics until it tidies itself up, and that must not be seen.
        """
        missing = dict(sight.changes)
        try:
            leg = self._opened(folder)
            held = _held(folder, leg)
            is_grown = held is not None and all(missing.pop(number, None) == seq for number, seq in held.items())
        except CorruptError:
            is_grown = False
        if not is_grown:
            discard_leg(folder)
            leg, missing = self._opened(folder), dict(sight.changes)
        if missing:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            leg.apply(self._additions(missing))
            leg.commit(self._files.store.seq())
            leg.close()
            _hold(folder, leg, sight)
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


def _limited_meaning(at_hand: Meaning, seen: _Seen) -> Meaning:
    """Vectors that all of what may be seen has: how far a model has come elsewhere must not show."""
    numbers = seen.sight.changes.keys()
    spaces = [*at_hand.spaces]
    if not any(space.leg.speed == "instant" for space in spaces):
        spaces += at_hand.spare([])
    chunks = seen.leg.size()
    refined = [one for one in spaces if one.leg.speed == "refined" and one.leg.count(numbers) >= chunks]
    serving = refined or [one for one in spaces if one.leg.speed == "instant"]
    return at_hand._replace(
        spaces=tuple([Space(_VisibleVectors(one.leg, numbers), one.embedder) for one in serving]),
        coverage=1.0 if refined else 0.0,
        read_on=None,
        spare=lambda notes: [] if refined else [*map(_spare(numbers), at_hand.spare(notes))],
        degraded=() if serving else at_hand.degraded,
    )


def _spare(numbers: Collection[int]) -> Callable[[Space], Space]:
    return lambda space: Space(_VisibleVectors(space.leg, numbers), space.embedder)


def _held(folder: Path, leg: TantivyLeg) -> dict[int, int] | None:
    """What the leg holds: numbers with their changes. `None` when nobody noted it, or more was added since."""
    packed = array("q")
    try:
        packed.frombytes((folder / _NOTE).read_bytes())
    except (FileNotFoundError, NotADirectoryError, ValueError):
        return None
    if not packed or packed[0] != leg.size():
        return None
    return dict(zip(packed[1::2], packed[2::2], strict=True))


def _hold(folder: Path, leg: TantivyLeg, sight: Sight) -> None:
    """Note what the leg holds: first how many chunks, by which a note is told from that of an earlier state."""
    packed = array("q", [leg.size(), *(part for pair in sight.changes.items() for part in pair)])
    draft = folder / f"{_NOTE}.new"
    draft.write_bytes(packed.tobytes())
    draft.replace(folder / _NOTE)
