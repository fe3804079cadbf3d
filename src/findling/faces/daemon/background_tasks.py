"""Background work of a daemon: it warms up, follows the files, and unloads what is idle."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterable
from pathlib import Path

from findling.domain.errors import FindlingError
from findling.domain.reports import told_changes
from findling.service.engine.background import give_space_back, read_on, reap
from findling.service.engine.engine import Engine
from findling.service.server.engine_pool import Host
from findling.service.server.host_news import follow_hosts, is_shared
from findling.service.server.watch_list import WatchList
from findling.service.server.watcher import index_root, watch_roots
from findling.service.settings.settings import Settings

_log = logging.getLogger("findling.daemon")

_ROUND_S = 15.0
"""Pause between two looks for idle models."""

_SERVED_WAIT_S = 5.0
"""The served folder waits longer for more changes than watched folders, which change often."""


class Keeper:
    """The threads of a daemon that answer nothing. `root` is what is served, `None` when that is no files."""

    def __init__(self, host: Host, root: Path | None, *, watches: bool) -> None:
        self._host, self._root = host, root
        self._list = WatchList(host.home)
        self._stopped = threading.Event()
        self._awaits_index = watches and root is not None
        work: list[Callable[[], None]] = [self._look_after]
        if is_shared(host):
            work.append(self._follow_hosts)
        if watches:
            work += [self._follow_served, self._follow_list]
        self._threads = [threading.Thread(target=one, name=f"findling {one.__name__}", daemon=True) for one in work]

    def start(self) -> None:
        """Begin with all of it."""
        for thread in self._threads:
            thread.start()

    def stop(self, timeout_s: float) -> None:
        """End all of it; an index run keeps its commits, and the next one continues there."""
        self._stopped.set()
        deadline = time.monotonic() + timeout_s
        for thread in self._threads:
            thread.join(max(0.0, deadline - time.monotonic()))

    def _look_after(self) -> None:
        while True:
            if not self._host.is_ready:
                self._warm_up()
            self._host.unload_idle()
            self._host.level_wanted()
            reap()
            if self._stopped.wait(_ROUND_S):
                return

    def _follow_hosts(self) -> None:
        """Bring up the legs of what is served when another host has written, before somebody asks."""
        told = ""
        while not self._stopped.is_set():
            try:
                follow_hosts(self._host, self._stopped)
            except FindlingError as error:
                if told != error.message:
                    _log.error("other hosts are not followed: %s; try: %s", error.message, error.hint)
                told = error.message
                self._stopped.wait(_ROUND_S)

    def _warm_up(self) -> None:
        try:
            self._host.warm_up(awaits_index=self._awaits_index)
        except FindlingError as error:
            _log.error("not ready: %s; try: %s", error.message, error.hint)

    def _follow_served(self) -> None:
        """Follow what is served, unless it is on the list of watched folders."""
        settings = self._host.settings
        wait_s = _SERVED_WAIT_S if settings.origin("watch.wait_s") == "default" else settings["watch.wait_s"]
        self._watch(
            lambda: [self._root] if self._root is not None and self._root not in self._list.roots() else [],
            settings.override({"watch.wait_s": wait_s}, "flag"),
        )

    def _follow_list(self) -> None:
        self._watch(self._list.roots, self._host.settings)

    def _watch(self, roots: Callable[[], Iterable[Path]], settings: Settings) -> None:
        try:
            watch_roots(
                roots,
                self._index_root,
                settings=settings,
                should_stop=self._stopped,
                note=_log.info,
                called="findling serve",
            )
        except FindlingError as error:  # without the library for it
            _log.error("files are not followed: %s; try: %s", error.message, error.hint)

    def _index_root(self, root: Path) -> None:
        report = index_root(root, self._host.settings, should_stop=self._stopped, afterwards=self._finish)
        if report.changed:
            told = told_changes(report.added, report.updated, report.removed)
            _log.info("%s: %s in %.1f s", root, told, report.seconds)
        self._host.statistics.tell(last_index_refresh=time.time())

    def _finish(self, engine: Engine, settings: Settings) -> None:
        """Have done what follows an index run, and see that what is served is ready once it is there."""
        read_on(engine, settings)
        give_space_back(engine, settings)
        if engine.subject == self._root:
            self._host.statistics.tell(documents=engine.status().resources)
            if not self._host.is_ready:
                self._warm_up()
