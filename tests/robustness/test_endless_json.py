"""JSON that nests, or counts, without an end: whoever reads it says which file is wrong, and nothing falls over."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import findling
from findling.domain.errors import FindlingError
from findling.domain.queries import SearchRequest
from findling.domain.resources import Resource
from findling.domain.values import read_json
from findling.faces.cli.main import run
from findling.pipelines.answer.search import search
from findling.pipelines.indexing.document_build import text_documents
from findling.pipelines.retrieve.legs import Retrievers
from findling.service.engine.engine import Engine
from findling.service.index.documents import fetch
from findling.service.settings.settings import Settings
from findling.text.chunking.chunk_plan import ChunkPlan
from tests.memory_leg import MemoryLeg
from tests.memory_store import MemoryStore

ENDLESS = {"deep": "[" * 100_000, "keys": '{"terms":' * 100_000, "number": f'{{"plan": 1{"0" * 5_000}}}'}


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[Engine]:
    root = tmp_path / "tree"
    root.mkdir()
    (root / "note.md").write_text("The boiler is in the cellar.\n")
    settings = Settings().override({"store.home": str(tmp_path / "home"), "search.mode": "keyword"}, "test")
    with findling.open(root, settings=settings) as opened:
        opened.index()
        yield opened


@pytest.mark.parametrize("text", ENDLESS.values(), ids=ENDLESS)
def test_it_is_a_value_that_cannot_be(text: str) -> None:
    for form in (text, text.encode()):
        with pytest.raises(ValueError, match="without an end"):
            read_json(form)


@pytest.mark.parametrize("text", ENDLESS.values(), ids=ENDLESS)
def test_files_that_a_command_is_given(
    text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("FINDLING_HOME", str(tmp_path / "home"))
    file = tmp_path / "given.json"
    file.write_text(text)
    for words in (["glossary", "import"], ["boiler", "--plan"], ["chats", "import"]):
        assert run([*words, str(file)]) == 2, words
        told = capsys.readouterr().err
        assert "given.json" in told and "Traceback" not in told, words


@pytest.mark.parametrize(
    "name", ["manifest.json", "keyword/absorbed.json", "keyword/meta.json", "keyword/.managed.json"]
)
@pytest.mark.parametrize("text", ENDLESS.values(), ids=ENDLESS)
def test_files_of_a_workspace(name: str, text: str, engine: Engine) -> None:
    home, root = engine.home, engine.root
    assert (home / name).is_file()
    (home / name).write_text(text)
    settings = Settings().override({"store.home": str(home.parent), "search.mode": "keyword"}, "test")
    try:
        with findling.open(root, settings=settings) as opened:
            assert [hit.path for hit in opened.search("boiler")] == ["note.md"]
    except FindlingError as error:
        assert name in str(error)


@pytest.mark.parametrize("text", ENDLESS.values(), ids=ENDLESS)
def test_fields_that_a_bundle_brought(text: str) -> None:
    store, leg = MemoryStore(), MemoryLeg()
    chat = Resource(rid="chat:x/y", type="chat", fields={"links": text, "messages": text})
    for batch in text_documents([(chat, "The boiler is in the cellar.")], ChunkPlan()):
        leg.apply(store.write(batch))
    leg.commit(store.seq())
    legs = Retrievers(store, leg)
    assert fetch(legs, "chat:x/y").links == ()
    assert [hit.rid for hit in search(legs, SearchRequest(query="boiler"))] == ["chat:x/y"]
