"""Zoekt as the engine behind grep: its real server where Go's proxy offers it, and all that happens without one."""

from __future__ import annotations

import os
import shutil
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from urllib.request import urlopen

import pytest

import findling
from findling.domain.reports import GrepAnswer, GrepRequest
from findling.pipelines.exact.zoekt import zoekt_query
from findling.service.settings.settings import load_settings
from tests.processes import PATIENCE_S, BoundedProcess, run_process

ZOEKT = "github.com/sourcegraph/zoekt"


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    root = tmp_path / "tree"
    (root / "src").mkdir(parents=True)
    (root / "src" / "one.py").write_text("def needle():\n    return 'Hay'\n")
    (root / "src" / "two.py").write_text("# nothing here\n")
    (root / "page.html").write_text("<p>\nneedle in markup\n</p>\n")
    return root


def grep(tree: Path, url: str, **asked: object) -> GrepAnswer:
    changes = {"exact.url": url, "store.home": str(tree.parent / "home")}
    settings = load_settings(tree).override({**changes, "search.mode": "keyword"}, "test")
    with findling.open(tree, settings=settings) as engine:
        return engine.exact.grep(GrepRequest(patterns=("needle",), **asked))  # type: ignore[arg-type]


@contextmanager
def another_server(status: int = 200, body: bytes = b'{"hello": "world"}') -> Iterator[str]:
    """A web server that is no Zoekt, or one that answers as a Zoekt does which refuses a pattern."""

    class Other(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.send_response(status)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Other) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}"
        finally:
            server.shutdown()
            thread.join()


def test_without_a_server_our_own_index_answers_and_says_so(tree: Path) -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))  # nobody listens there
        url = f"http://127.0.0.1:{closed.getsockname()[1]}"
        answer = grep(tree, url)
    assert [file.path for file in answer.files] == ["page.html", "src/one.py"]
    (missing,) = answer.degraded
    assert missing.what.startswith(f"Zoekt at {url} cannot be asked: Zoekt (127.0.0.1) ")
    assert missing.what.endswith("the index of findling has answered")
    assert "zoekt-webserver -rpc" in missing.fix
    assert "zoekt" not in answer.strategy


def test_a_server_that_is_no_zoekt_is_not_believed(tree: Path) -> None:
    with another_server() as url:
        answer = grep(tree, url)
    assert [file.path for file in answer.files] == ["page.html", "src/one.py"]
    assert f"what answers at {url} is no Zoekt" in answer.degraded[0].what


def test_the_reason_of_a_refusal_is_told(tree: Path) -> None:
    with another_server(400, b'{"Error": "bad regexp"}') as url:
        answer = grep(tree, url)
    assert [file.path for file in answer.files] == ["page.html", "src/one.py"]
    assert "answered 400: bad regexp; the index" in answer.degraded[0].what
    assert "zoekt-webserver -rpc" in answer.degraded[0].fix


def test_a_limited_caller_never_asks_it(tree: Path) -> None:
    answer = grep(tree, "http://127.0.0.1:1", principals=("user:ann",))
    assert (answer.files, answer.degraded) == ((), ())


def test_a_pattern_is_quoted_for_its_language() -> None:
    assert zoekt_query(r'a\s"b', fixed=False, ignore_case=True) == r'case:no content:"a\\s\"b"'
    assert zoekt_query("a.b", fixed=True, ignore_case=False) == r'case:yes content:"a\\.b"'


@pytest.fixture(scope="session")
def zoekt_programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the real programs, built once; the test is skipped where they cannot be had."""
    if shutil.which("go") is None:
        pytest.skip("Go is not installed, so Zoekt cannot be built")
    folder = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "findling-zoekt"
    if not (folder / "zoekt-webserver").exists():
        build = tmp_path_factory.mktemp("zoekt")
        run_process(["go", "mod", "init", "example.org/zoekt"], cwd=build, check=True)
        got = run_process(["go", "get", f"{ZOEKT}@latest"], cwd=build, timeout=10 * PATIENCE_S)
        if got.returncode:
            pytest.skip(f"Go's proxy does not offer {ZOEKT}: {got.stderr.strip().splitlines()[-1:]}")
        for name in ("zoekt-index", "zoekt-webserver"):
            command = ["go", "build", "-mod=mod", "-o", str(folder / name), f"{ZOEKT}/cmd/{name}"]
            run_process(command, cwd=build, check=True, timeout=10 * PATIENCE_S)
    return folder


def test_the_real_server_names_files_that_are_verified(tree: Path, zoekt_programs: Path, tmp_path: Path) -> None:
    shards = tmp_path / "shards"
    run_process([zoekt_programs / "zoekt-index", "-index", str(shards), str(tree)], check=True)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
    command = [str(zoekt_programs / "zoekt-webserver"), "-rpc", "-index", str(shards), "-listen", address]
    with BoundedProcess(command) as server:
        try:
            _wait_for(f"http://{address}/healthz")
            answer = grep(tree, f"http://{address}")
            assert [file.path for file in answer.files] == ["page.html", "src/one.py"]
            assert answer.strategy.startswith("zoekt: ")
            assert answer.degraded == ()
            # A file that has changed since is not what Zoekt remembers.
            (tree / "src" / "one.py").write_text("gone\n")
            assert [file.path for file in grep(tree, f"http://{address}").files] == ["page.html"]
        finally:
            server.terminate()


def _wait_for(url: str) -> None:
    ends = time.monotonic() + PATIENCE_S
    while True:
        try:
            urlopen(url, timeout=5).close()
            return
        except OSError:
            assert time.monotonic() < ends
            time.sleep(0.1)
