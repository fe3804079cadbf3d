"""The files of one workspace, opened when they are needed and written under its lock."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

from findling.domain.errors import CorruptError, LockedError, NotIndexedError, ReadOnlyError
from findling.pipelines.catching_up import catch_up
from findling.service.workspace import STORE_FILE
from findling.stores.keyword import TantivyLeg
from findling.stores.keyword_query import Scoring
from findling.stores.lock import WriteLock
from findling.stores.sqlite import SqliteStore

__all__ = ["LOCK_PATIENCE_S", "OpenedWorkspace"]

LOCK_PATIENCE_S = 600.0
"""How long a command that must write waits for another writer; a first index of a large tree takes minutes."""


class OpenedWorkspace:
    """The truth store and the keyword leg of one folder. Nothing is created before something is written."""

    def __init__(self, folder: Path, *, scoring: Scoring, unit: str) -> None:
        self.folder = folder
        self._scoring = scoring
        self._unit = unit
        self._store: SqliteStore | None = None
        self._leg: TantivyLeg | None = None

    @property
    def exists(self) -> bool:
        """Whether there is a store at all."""
        return (self.folder / STORE_FILE).exists()

    @property
    def store(self) -> SqliteStore:
        """The truth store, read-only where it cannot be written. Raises NotIndexedError when there is none."""
        if self._store is None:
            if not self.exists:
                raise NotIndexedError(f"{self.folder} holds no index yet", hint="findling index PATH")
            path = self.folder / STORE_FILE
            readonly = not (os.access(path, os.W_OK) and os.access(self.folder, os.W_OK))
            self._store = SqliteStore.open(path, readonly=readonly)
        return self._store

    @property
    def leg(self) -> TantivyLeg:
        """The keyword leg. Raises CorruptError when it cannot be read."""
        if self._leg is None:
            store_id = self.store.get_meta("store_id") or ""
            self._leg = TantivyLeg.open(
                self.folder / "keyword", store_id=store_id, scoring=self._scoring, unit=self._unit
            )
        return self._leg

    @contextlib.contextmanager
    def writing(self, patience_s: float = LOCK_PATIENCE_S, *, anew: bool = False) -> Iterator[None]:
        """Hold the write lock, creating folder and store if need be; `anew` drops what is there, damaged or not.

        Raises LockedError when another process keeps it, ReadOnlyError when nothing can be written here.
        """
        try:
            self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            lock = WriteLock(self.folder / "write.lock")
            acquired = lock.acquire(patience_s)
        except PermissionError as error:
            raise ReadOnlyError(
                f"{self.folder} cannot be written: {error.strerror}",
                hint="check its permissions, or choose another place with FINDLING_HOME",
            ) from error
        if not acquired:
            raise LockedError(f"another process is writing {self.folder}", hint="try again when it has finished")
        try:
            # Another process may have written since the leg was opened: applying changes to what it was would
            # add chunks that are there already.
            self._release_leg()
            self._prepare_store(anew)
            yield
        finally:
            try:
                self._release_leg()
            finally:
                lock.release()

    def level_leg(self) -> str:
        """Let the leg catch up with the truth, mending it if it is damaged; returns what the caller should be told.

        Raises CorruptError when a damaged leg cannot be mended now.
        """
        try:
            behind = self._behind()
        except CorruptError as damage:
            return self._mend(damage)
        if not behind:
            return ""
        try:
            with self.writing(patience_s=0.0):
                catch_up(self.store, self.leg)
        except LockedError:
            return f"another process is writing; {behind} of its changes are not searchable yet"
        except ReadOnlyError:
            return f"the keyword leg is {behind} changes behind and cannot be written"
        return ""

    def rebuild_leg(self) -> None:
        """Make the leg anew from the truth. The caller holds the lock."""
        self._release_leg()
        _remove(self.folder / "keyword")
        catch_up(self.store, self.leg)

    def close(self) -> None:
        """Release all files; closing twice is fine."""
        self._release_leg()
        if self._store is not None:
            self._store.close()
            self._store = None

    def _behind(self) -> int:
        """How many changes the leg lacks, also when it has seen what other processes have committed."""
        # The leg is asked first: what is committed to both between the two questions must not put it ahead.
        absorbed = self.leg.seq()
        if absorbed != self.store.seq():
            self.leg.refresh()
            absorbed = self.leg.seq()
        return self.store.seq() - absorbed

    def _mend(self, damage: CorruptError) -> str:
        try:
            with self.writing():
                self.rebuild_leg()
        except (LockedError, ReadOnlyError):
            raise damage from None
        return "the keyword leg was damaged and has been rebuilt"

    def _prepare_store(self, anew: bool) -> None:
        """Create the store, and give it an identity by which its leg is told from that of a deleted store."""
        if anew:
            self.close()
            _remove(self.folder / "keyword")
            for suffix in ("", "-wal", "-shm"):
                (self.folder / (STORE_FILE + suffix)).unlink(missing_ok=True)
        if not self.exists:
            self._store = SqliteStore.open(self.folder / STORE_FILE)
        if self.store.get_meta("store_id") is None:
            self.store.set_meta("store_id", os.urandom(8).hex())

    def _release_leg(self) -> None:
        if self._leg is not None:
            self._leg.close()
            self._leg = None


def _remove(folder: Path) -> None:
    import shutil  # 3 ms of compression modules that a search has no use for

    shutil.rmtree(folder, ignore_errors=True)
