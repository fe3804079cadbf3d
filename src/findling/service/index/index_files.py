"""The files of one workspace, opened when they are needed and written under its lock."""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Callable, Iterable, Iterator
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from findling.domain.backends import KEYWORD, VECTORS, VIEWS, LimitedLegs
from findling.domain.errors import (
    CorruptError,
    DiskFullError,
    FindlingError,
    LockedError,
    ReadOnlyError,
    StoreDamagedError,
)
from findling.domain.ports import KeywordLeg, TruthStore
from findling.domain.results import Degradation
from findling.service.workspace.workspace import backend_at, place_of
from findling.service.workspace.writer_queue import LOCK_PATIENCE_S, WriterQueue

if TYPE_CHECKING:
    from findling.domain.backends import LegStore, VectorTable
    from findling.pipelines.indexing.lasting_look import LastingLooks


LAZY = 200
"""Changes that a writer leaves to the next search, which absorbs so many in about 50 ms."""

_BRIEF_S = 3.0
"""Seconds that a search waits for its turn to absorb them: who wrote them expects to find them."""

_DAMAGED = "the keyword leg was damaged and has been rebuilt"
_MISSING = "the keyword leg was missing and has been rebuilt"
_OTHER = "the keyword leg was made by another version and has been rebuilt"


class OpenedWorkspace:
    """The truth store and the keyword leg of one folder. Nothing is created before something is written.

    `subject` is what a new workspace is noted to index, nothing for one without files; None leaves that to others.
    `auto_bytes` is how much automatic snapshots may take. `vectors` is the URL of vectors outside of the backend,
    `legs` says where the others are.
    """

    def __init__(
        self,
        folder: Path,
        *,
        unit: str,
        subject: str | None = None,
        before_first_write: Callable[[], Iterable[Degradation]] = tuple,
        auto_bytes: int = 0,
        vectors: str = "",
    ) -> None:
        self.folder, self._vectors_at = folder, vectors
        self.backend = backend_at(folder)
        self.backend.snapshot_bytes = auto_bytes
        self.subject, self.unit = subject, unit
        self._notices: list[Degradation] = []
        self._was_there = folder.exists()
        self._before_first_write = before_first_write
        self._store: TruthStore | None = None
        self._leg: KeywordLeg | None = None
        self._frozen: TruthStore | None = None
        self._mended = ""
        self._accepts_older = self._is_writing = False
        self.queue = WriterQueue.of(folder)
        self.looks: LastingLooks | None = None
        self.has_looked = self.is_left_open = False
        # Two threads that open a file at once would leave one of the two open, and written behind the other's back.
        self._opening = threading.RLock()

    @cached_property
    def vectors(self) -> LegStore[VectorTable]:
        """The vectors: those of the backend, unless the settings name another place."""
        if not self._vectors_at:
            return self.backend.legs[VECTORS]
        from findling.service.workspace.backends import open_vectors

        return open_vectors(self._vectors_at, self.folder)

    @property
    def exists(self) -> bool:
        """Whether there is a store at all. Raises StoreDamagedError when there was one, and it is gone or empty."""
        return self.backend.exists()

    @property
    def store(self) -> TruthStore:
        """The truth store, read-only where it cannot be written. Raises NotIndexedError when there is none."""
        # Read once: another thread may release it meanwhile.
        if (store := self._store) is not None:
            return store
        with self._opening:
            if self._store is None:
                self._store = self.backend.open_store(accepts_older=self._accepts_older)
            return self._store

    @property
    def truth(self) -> TruthStore:
        """The state of the truth that legs catch up with. The caller holds the lock."""
        return self._frozen or self.store

    def is_replaced(self) -> bool:
        """Whether another process has deleted or replaced the store since it was opened."""
        return self._store is not None and self.backend.is_replaced()

    def let_go_if_replaced(self) -> None:
        """Close files that another process has deleted or replaced; to be called between two uses of them."""
        with self._opening:  # one of several threads lets go, and of nothing that another one has opened since
            if not self.is_replaced():
                return
            left = self._let_go()
            former, self.backend = self.backend, backend_at(self.folder)
            self.backend.snapshot_bytes = former.snapshot_bytes
            self.__dict__.pop("vectors", None)
        for one in left:
            one.close()

    @property
    def leg(self) -> KeywordLeg:
        """The keyword leg. Raises CorruptError when it cannot be read."""
        if (leg := self._leg) is not None:
            return leg
        with self._opening:
            if self._leg is None:
                self._leg = self.backend.legs[KEYWORD].open(self._store_id, self.unit)
            return self._leg

    def keyword_seq(self) -> int:
        """The change that the keyword leg has reached, by its note: opening it takes 3 ms."""
        return self.backend.legs[KEYWORD].state(self._store_id, self.unit).get("seq", 0)

    def limited_legs(self) -> LimitedLegs:
        """The keyword legs of callers with limited rights; the caller closes them."""
        views: LimitedLegs = self.backend.legs[VIEWS].open(self._store_id, self.unit)
        return views

    def is_damaged(self) -> bool:
        """Whether there is, or was, a store that cannot be read; every page of it is looked at."""
        self.close()
        try:
            return self.exists and bool(self.store.integrity())
        except CorruptError:
            return True

    def take_notices(self) -> list[Degradation]:
        """Notes about a new or rebuilt index, each once."""
        notices, self._notices = self._notices, []
        return notices

    def is_followed_elsewhere(self, at: TruthStore | None = None) -> bool:
        """Whether another host follows the files of the workspace, in that state of the truth or now."""
        if not place_of(self.folder):
            return False
        from findling.service.workspace.host_files import is_followed_elsewhere

        return is_followed_elsewhere(self.folder, at or self.store)

    def note_subject(self) -> None:
        """Note what the workspace indexes, unless that is known. The caller holds the lock."""
        if self.subject is not None and self.store.get_meta("root") is None:
            self.store.set_meta("root", self.subject)

    @contextlib.contextmanager
    def writing(
        self, patience_s: float = LOCK_PATIENCE_S, *, anew: bool = False, accepts_older: bool = False
    ) -> Iterator[None]:
        """Hold the write lock, creating folder and store if need be; `anew` puts a damaged store aside first.

        With `accepts_older`, a store that knows less than it did is taken as it is. Raises StoreDamagedError,
        LockedError when another process keeps it, ReadOnlyError when nothing can be written here, NotFoundError when
        the workspace was moved or dropped since it was opened.
        """
        if self._is_writing and not self.queue.is_busy:
            yield  # inside another block of the same thread
            return
        with self._locked(patience_s):
            # Another process may have written since the leg was opened: applying changes to what it was would
            # add chunks that are there already.
            self._release_leg()
            self.let_go_if_replaced()
            self._accepts_older, self._is_writing = accepts_older, True
            if self.backend.write_refusal() is not None:
                self.close()  # there may be some by now
            try:
                self._prepare_store(anew)
                if (refusal := self.backend.write_refusal()) is not None:
                    raise refusal
                yield
                self.note_subject()
                self._close_leg()
                self.backend.settle(self.store)
            finally:
                self._accepts_older = self._is_writing = False
                self._close_leg()

    @contextlib.contextmanager
    def leveling(self, patience_s: float = LOCK_PATIENCE_S, *, alone: bool = True) -> Iterator[None]:
        """Hold the lock of the legs, which catch up with `truth`. Raises as `writing` does.

        Legs of this host `alone` leave other hosts to write on, where the truth gives one state of itself.
        """
        self.let_go_if_replaced()
        frozen = self.backend.frozen(self.store) if alone and not self._is_writing else None
        if frozen is None:
            with self.writing(patience_s):
                yield
            return
        with self._locked(patience_s, "legs"):
            self._release_leg()
            with frozen as self._frozen:
                try:
                    yield
                finally:
                    self._frozen = None
                    self._close_leg()
            self.backend.settle(self.store)

    def offer_legs(self) -> None:
        """Leave copies of legs for hosts without them, where a truth is shared and nobody else writes here."""
        if place_of(self.folder):
            with contextlib.suppress(FindlingError), self._locked(0.0, "legs"):  # another run offers them again
                self.backend.offer_legs(self.store)

    def delete(self) -> None:
        """Delete the truth and the folder when no other process is writing. Raises as `writing` does."""
        import shutil

        with self._locked(LOCK_PATIENCE_S):
            self.close()
            self.backend.drop_store()
            doomed = self.folder.with_name(f".deleted-{os.getpid()}")
            try:
                # Out of the way first: the next holder of the lock starts a new folder while this one is being emptied.
                self.folder.rename(doomed)
            except OSError:
                doomed = self.folder
            shutil.rmtree(doomed, ignore_errors=True)
            self._was_there = False
        if self.folder == doomed and doomed.exists():
            raise ReadOnlyError(f"{doomed} cannot be deleted", hint="check its permissions")

    def level_leg(self, at: TruthStore | None = None) -> Degradation | None:
        """Let the leg catch up with the truth, or rebuild it if it is damaged; returns a note for the caller.

        Raises CorruptError when a damaged leg cannot be rebuilt now.
        """
        if self._is_level(at) and self.leg.is_current():
            mended, self._mended = self._mended, ""
            return Degradation(what=mended) if mended else None
        with self.queue.turn(self.queue.short_s) as is_ours:
            if is_ours:
                return self._level()
        late = "files are being indexed; the latest changes are not searchable yet"
        return None if self._is_level() else Degradation(what=late, fix="ask again")

    def follow_leg(self) -> bool:
        """Open the keyword leg as another process has written it; whether it is in step with the truth now."""
        if not (self._is_level() and self.leg.is_current()):
            self._release_leg()
        return self._is_level()

    def _level(self) -> Degradation | None:
        try:
            behind = self._behind()
            # Without a leg there is no answer, and the holder of the lock is building one.
            patience_s = LOCK_PATIENCE_S if behind and self._is_missing() else _BRIEF_S if behind <= LAZY else 0.0
        except CorruptError as damage:
            return Degradation(what=self.mend_leg(damage))
        if behind:
            try:
                with self.leveling(patience_s):
                    self.sound_leg()
            except LockedError:
                who = "files are being indexed" if self.queue.was_last() else "another process is writing"
                return Degradation(what=f"{who}; changes that are not searchable yet: {behind:,}", fix="ask again")
            except (DiskFullError, ReadOnlyError) as error:
                return Degradation(what=f"the keyword leg is behind by {behind:,}: {error.message}", fix=error.hint)
        mended, self._mended = self._mended, ""
        return Degradation(what=mended) if mended else None

    def mend_leg(self, damage: CorruptError) -> str:
        """Rebuild a damaged leg; returns a note for the caller. Raises the damage if that cannot be done."""
        try:
            with self.leveling():
                self.rebuild_leg()
        except (DiskFullError, LockedError, ReadOnlyError):
            raise damage from None
        return _DAMAGED

    def sound_leg(self) -> KeywordLeg:
        """The leg in step with the truth, rebuilt when it is damaged. The caller holds the lock."""
        try:
            has_leg = self.backend.legs[KEYWORD].exists(self.unit)
            is_missing = self._is_missing()
            self._catch_up()
            if is_missing and has_leg:
                self._mended = _OTHER
            elif is_missing and not place_of(self.folder):  # hosts of a shared truth make their own
                self._mended = _MISSING
        except StoreDamagedError:
            raise
        except CorruptError:
            self.rebuild_leg()
            self._mended = _DAMAGED
        return self.leg

    def rebuild_leg(self) -> None:
        """Rebuild the leg from the truth. The caller holds the lock."""
        self._release_leg()
        self.backend.legs[KEYWORD].discard(self.unit)
        self._catch_up()

    def _catch_up(self) -> None:
        from findling.pipelines.indexing.fanout import catch_up  # only a leg that is behind needs it

        catch_up(self.truth, self.leg)

    def close(self) -> None:
        """Release all files; closing twice is fine."""
        with self._opening:
            left = self._let_go()
        for one in left:
            one.close()

    def _let_go(self) -> list[LastingLooks | TruthStore]:
        """Release the leg; returns what the caller closes without the lock, for which readers may wait."""
        self._release_leg()
        left, self.looks, self._store = (self.looks, self._store), None, None
        return [one for one in left if one is not None]

    @contextlib.contextmanager
    def _locked(self, patience_s: float, name: str = "write") -> Iterator[None]:
        # A search that finds its index deleted makes another one.
        must_exist = self._was_there and patience_s >= LOCK_PATIENCE_S
        with self.queue.locked(patience_s, must_exist=must_exist, name=name):
            self._was_there = True
            yield

    def _behind(self) -> int:
        """The number of changes that the leg lacks, with those that other processes have committed."""
        # The leg is asked first: what is committed to both between the two questions must not put it ahead.
        absorbed = self.leg.seq()
        if absorbed != self.store.seq() or not self.leg.is_current():
            self._release_leg()
            absorbed = self.leg.seq()
        return self.store.seq() - absorbed

    def _is_level(self, at: TruthStore | None = None) -> bool:
        """Whether nothing is missing: the thread that holds the lock may be looking, too."""
        try:
            return self.leg.seq() == (at or self.store).seq()
        except CorruptError:
            return False  # the holder of the lock rebuilds it

    def _is_missing(self) -> bool:
        """Whether a workspace that was indexed to the end has no leg that belongs to it."""
        return not self.leg.seq() and bool(self.store.seq()) and self.store.get_meta("indexed_at") is not None

    def _prepare_store(self, anew: bool) -> None:
        """Create the store, with an identity that tells its leg from the leg of a deleted store."""
        if anew:
            self.close()
            self.backend.legs[KEYWORD].discard(self.unit)
            if (aside := self.backend.put_store_aside()) is not None:
                what = f"the store was damaged and is {aside} now; what was no file (chats, memories) is in it alone"
                self._notices.append(Degradation(what=what, fix="findling snapshot list"))
        self.backend.create_store(anew=anew, before=lambda: self._notices.extend(self._before_first_write()))
        self.backend.identify(self.store, accepts_older=self._accepts_older)

    @property
    def _store_id(self) -> str:
        return self.store.get_meta("store_id") or ""

    def _close_leg(self) -> None:
        # It stays open for reading: outside the lock another process may be rebuilding it.
        if self._leg is not None:
            self._leg.close()

    def _release_leg(self) -> None:
        with self._opening:
            leg, self._leg = self._leg, None
        if leg is not None:
            leg.close()
