"""Pulling models from a hub that is a real HTTP server on this machine."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest

from findling.domain.errors import ModelDamagedError, ModelError, ProviderError
from findling.models.catalogue import ModelCard
from findling.models.locating import locate
from findling.models.pulling import pull

CARD = ModelCard("org/tiny", "org/tiny", dimensions=8)
MODEL = os.urandom(700_000)


class Hub(ThreadingHTTPServer):
    """Serves `files`; `breaks` are the numbers of bytes after which the next replies for the model end too soon."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.files = {"onnx/model.onnx": MODEL, "tokenizer.json": b"{}", "config.json": b'{"hidden_size": 8}'}
        self.breaks: list[int] = []
        self.status = 0
        self.seen: list[tuple[str, str]] = []

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    def asked_for(self, name: str) -> list[str]:
        """The ranges that were asked for of one file."""
        return [asked for file, asked in self.seen if file == name]


class _Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        hub = self.server
        assert isinstance(hub, Hub)
        name = self.path.removeprefix("/org/tiny/resolve/main/")
        hub.seen.append((name, self.headers.get("Range", "")))
        if hub.status or name not in hub.files:
            self.send_error(hub.status or 404)
            return
        data = hub.files[name]
        tag = f'"{hashlib.sha256(data).hexdigest()[:8]}"'
        start = 0
        if self.headers.get("Range") and self.headers.get("If-Range") == tag:
            start = int(self.headers["Range"].removeprefix("bytes=").rstrip("-"))
            self.send_response(206)
        else:
            self.send_response(200)
        self.send_header("ETag", tag)
        self.send_header("Content-Length", str(len(data) - start))
        self.end_headers()
        end = start + hub.breaks.pop(0) if hub.breaks and name.endswith("model.onnx") else len(data)
        self.wfile.write(data[start:end])

    def log_request(self, code: object = "-", size: object = "-") -> None:
        pass

    def log_error(self, format: str, *args: object) -> None:  # noqa: A002 - the name is that of the base class
        pass


@pytest.fixture
def hub() -> Iterator[Hub]:
    with Hub() as server:
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def test_a_model_is_pulled_and_found(hub: Hub, tmp_path: Path) -> None:
    steps: list[tuple[str, int, int]] = []
    folder = pull(CARD, tmp_path, endpoint=hub.address, on_progress=lambda *step: steps.append(step))
    assert (folder / "model.onnx").read_bytes() == MODEL
    assert ("model.onnx", len(MODEL), len(MODEL)) in steps
    files = locate("org/tiny", tmp_path)
    assert files.card.dimensions == 8
    assert files.sha256 == hashlib.sha256(MODEL).hexdigest()
    assert not list(folder.rglob("*.part*"))


def test_a_transfer_that_breaks_goes_on_where_it_stopped(hub: Hub, tmp_path: Path) -> None:
    hub.breaks = [300_000, 200_000]
    folder = pull(CARD, tmp_path, endpoint=hub.address)
    assert (folder / "model.onnx").read_bytes() == MODEL
    assert hub.asked_for("onnx/model.onnx") == ["", "bytes=300000-", "bytes=500000-"]


def test_a_hub_that_keeps_breaking_off_is_given_up_and_resumed_later(hub: Hub, tmp_path: Path) -> None:
    hub.breaks = [300_000, 0, 0, 0]
    with pytest.raises(ProviderError, match="broke off"):
        pull(CARD, tmp_path, endpoint=hub.address)
    assert not list(tmp_path.rglob("model.onnx"))
    with pytest.raises(ModelError):
        locate("org/tiny", tmp_path)
    hub.breaks = []
    pull(CARD, tmp_path, endpoint=hub.address)
    assert hub.asked_for("onnx/model.onnx")[-1] == "bytes=300000-"
    assert locate("org/tiny", tmp_path).model.read_bytes() == MODEL


def test_a_file_that_changed_meanwhile_is_fetched_from_its_beginning(hub: Hub, tmp_path: Path) -> None:
    hub.breaks = [300_000, 0, 0, 0]
    with pytest.raises(ProviderError):
        pull(CARD, tmp_path, endpoint=hub.address)
    hub.breaks = []
    hub.files["onnx/model.onnx"] = MODEL[::-1]
    assert (pull(CARD, tmp_path, endpoint=hub.address) / "model.onnx").read_bytes() == MODEL[::-1]


def test_what_is_there_is_not_fetched_again_and_what_was_harmed_is(hub: Hub, tmp_path: Path) -> None:
    folder = pull(CARD, tmp_path, endpoint=hub.address)
    pull(CARD, tmp_path, endpoint=hub.address)
    assert len(hub.asked_for("onnx/model.onnx")) == 1
    (folder / "model.onnx").write_bytes(b"harmed")
    pull(CARD, tmp_path, endpoint=hub.address)
    assert (folder / "model.onnx").read_bytes() == MODEL


def test_another_file_than_the_first_time_is_refused(hub: Hub, tmp_path: Path) -> None:
    folder = pull(CARD, tmp_path, endpoint=hub.address)
    (folder / "model.onnx").unlink()
    hub.files["onnx/model.onnx"] = b"another model"
    with pytest.raises(ModelDamagedError, match="sha256"):
        pull(CARD, tmp_path, endpoint=hub.address)
    assert not (folder / "model.onnx").exists()


def test_a_file_that_is_not_what_the_card_says_is_refused(hub: Hub, tmp_path: Path) -> None:
    with pytest.raises(ModelDamagedError, match="instead of ffffffffffff"):
        pull(CARD._replace(sha256="f" * 64), tmp_path, endpoint=hub.address)
    assert not list(tmp_path.rglob("model.onnx*"))


def test_a_model_that_the_hub_does_not_have_is_named(hub: Hub, tmp_path: Path) -> None:
    with pytest.raises(ProviderError, match=r"the hub has no .*org/none/resolve/main/onnx/model\.onnx"):
        pull(ModelCard("org/none", "org/none"), tmp_path, endpoint=hub.address)


def test_a_hub_in_trouble_is_told(hub: Hub, tmp_path: Path) -> None:
    hub.status = 503
    with pytest.raises(ProviderError, match="503"):
        pull(CARD, tmp_path, endpoint=hub.address)


def test_without_a_network_the_error_comes_at_once(hub: Hub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    with pytest.raises(ProviderError, match="cannot be reached"):
        pull(CARD, tmp_path)
    assert not list(tmp_path.rglob("model.onnx"))


def test_a_hub_must_be_a_web_address(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="no address of a hub"):
        pull(CARD, tmp_path, endpoint="file:///etc")
