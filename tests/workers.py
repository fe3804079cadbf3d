"""Workers that run the tests: forks of the one process that has collected them.

Collecting takes 12 s of CPU. Where each of six workers collects for itself, as those of pytest-xdist do, that is a
minute of a run, and six times the memory.
"""

from __future__ import annotations

import multiprocessing
import os
from collections import deque
from collections.abc import Iterator, Sequence
from itertools import groupby, pairwise
from multiprocessing.connection import Connection, wait
from pathlib import Path
from tempfile import TemporaryFile
from typing import TYPE_CHECKING, Any

import pytest
from _pytest.capture import FDCapture

if TYPE_CHECKING:
    from multiprocessing.context import ForkProcess


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--workers", type=int, default=0, help="run the files of tests in so many processes at once")


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop(session: pytest.Session) -> bool | None:
    """Share the files among workers, in their order, and report what those report."""
    count = session.config.getoption("--workers")
    if not count or session.config.option.collectonly or session.testsfailed:
        return None
    _Run(session).go(count)
    return True


class _Run:
    def __init__(self, session: pytest.Session) -> None:
        self._session = session
        places = groupby(range(len(session.items)), key=lambda at: session.items[at].path)
        self._files: deque[list[int]] = deque([*each] for _, each in places)
        self._started = 0
        self._workers: dict[Connection, tuple[ForkProcess, list[int]]] = {}
        """Workers by their connection, each with the tests that it has been given and has not finished."""

    def go(self, count: int) -> None:
        self._session.config._tmp_path_factory.getbasetemp()  # type: ignore[attr-defined]  # one for all workers
        for _ in range(count):
            self._start()
        try:
            while self._workers:
                for connection in wait([*self._workers]):
                    assert isinstance(connection, Connection)
                    self._hear(connection)
                if self._session.shouldfail or self._session.shouldstop:
                    raise self._session.Interrupted(self._session.shouldfail or self._session.shouldstop)
        finally:
            for process, _ in self._workers.values():
                process.kill()
                process.join()

    def _start(self) -> None:
        ours, theirs = multiprocessing.Pipe()
        self._started += 1
        process = multiprocessing.get_context("fork").Process(
            target=_work, args=(self._session, theirs, f"worker{self._started}")
        )
        process.start()
        theirs.close()
        self._workers[ours] = process, []

    def _hear(self, connection: Connection) -> None:
        process, given = self._workers[connection]
        hook = self._session.config.hook
        try:
            told = connection.recv()
        except EOFError:
            process.join()
            del self._workers[connection]
            if given:  # it ended in the midst of them
                at, *rest = given
                hook.pytest_runtest_logreport(report=_crash(self._session.items[at], process.exitcode))
                if rest:
                    self._files.appendleft(rest)
            if given and self._files:
                self._start()
            return
        if told is None:
            file = self._files.popleft() if self._files else []
            given.extend(file)
            connection.send(file)
        elif isinstance(told, int):
            given.remove(told)
        else:
            report = hook.pytest_report_from_serializable(config=self._session.config, data=told)
            hook.pytest_runtest_logreport(report=report)


def _crash(item: pytest.Item, code: int | None) -> pytest.TestReport:
    """The report of a test whose process ended."""
    return pytest.TestReport(
        item.nodeid, item.location, {}, "failed", f"the worker ended with code {code} in this test", "call"
    )


def _work(session: pytest.Session, connection: Connection, name: str) -> None:
    """Run the tests of one file after another, until there are no more."""
    config = session.config
    manager = config.pluginmanager
    manager.unregister(name="terminalreporter")
    _capture_apart(manager.getplugin("capturemanager"))
    factory: Any = config._tmp_path_factory  # type: ignore[attr-defined]
    factory._given_basetemp, factory._basetemp = Path(factory.getbasetemp(), name), None
    manager.register(_Telling(config, connection))
    for at, following in _pairs(connection):
        item = session.items[at]
        coming = None if following is None else session.items[following]
        config.hook.pytest_runtest_protocol(item=item, nextitem=coming)
        connection.send(at)


def _capture_apart(manager: Any) -> None:
    """Have what this process prints go into files of its own, behind descriptors that modules may know by now."""
    caught = manager._global_capturing
    for each in (caught.out, caught.err):
        if isinstance(each, FDCapture):
            with TemporaryFile() as file:
                os.dup2(file.fileno(), each.tmpfile.fileno())


def _pairs(connection: Connection) -> Iterator[tuple[int, int | None]]:
    """Each test with the one after it, so that what both need stays; the next file comes before a last test."""
    tests = _next_file(connection)
    while tests:
        yield from pairwise(tests)
        coming = _next_file(connection)
        yield tests[-1], coming[0] if coming else None
        tests = coming


def _next_file(connection: Connection) -> Sequence[int]:
    connection.send(None)
    found: list[int] = connection.recv()
    return found


class _Telling:
    """Sends reports to the process that collected."""

    def __init__(self, config: pytest.Config, connection: Connection) -> None:
        self._config, self._connection = config, connection

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._connection.send(self._config.hook.pytest_report_to_serializable(config=self._config, report=report))
