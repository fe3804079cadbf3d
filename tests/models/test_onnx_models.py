"""Models that run here: the installed MiniLM, and small graphs made for the test."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from weakref import WeakValueDictionary

import numpy as np
import pytest

from findling.domain.errors import ModelError
from findling.models.local import onnx_session as local_model
from findling.models.local.int8_graph import to_int8_arithmetic
from findling.models.local.onnx_models import OnnxEmbedder, OnnxReranker
from findling.models.locating import locate

onnx = pytest.importorskip("onnx")
helper = onnx.helper
FLOAT, INT64 = onnx.TensorProto.FLOAT, onnx.TensorProto.INT64
WORDS = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "cat", "dog", "tax", "a", "##s", ".")


@pytest.fixture(autouse=True)
def unshared(monkeypatch: pytest.MonkeyPatch) -> None:
    """No test takes over a model that another one has opened."""
    monkeypatch.setattr(local_model, "_OPEN", WeakValueDictionary())


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("models")


@pytest.fixture(scope="module")
def minilm(home: Path) -> OnnxEmbedder:
    return OnnxEmbedder(locate("minilm", home), home, threads=2)


def small_embedder(folder: Path, **changes: object) -> OnnxEmbedder:
    save_embedder(folder)
    save_tokenizer(folder)
    card = {"dimensions": 8, "max_tokens": 6, **changes}
    (folder / "findling-model.json").write_text(json.dumps(card))
    return OnnxEmbedder(locate(str(folder), folder), folder, threads=1)


def test_meaning_is_found_without_a_shared_word(minilm: OnnxEmbedder) -> None:
    query = minilm.embed(["cat sleeping on carpet"], "query")[0]
    related, unrelated = minilm.embed(["The feline dozed off upon the rug", "Quarterly revenue rose"]) @ query
    assert related > 0.45
    assert unrelated < 0.2


def test_vectors_have_length_one_whatever_the_text(minilm: OnnxEmbedder) -> None:
    vectors = minilm.embed(["", " \n", "\x00", "a", "中文", "\ud800", "word " * 2000])
    assert vectors.shape == (7, 384)
    assert vectors.dtype == np.float32
    assert np.allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)


def test_no_texts_give_no_vectors(minilm: OnnxEmbedder) -> None:
    assert minilm.embed([]).shape == (0, 384)


def test_integers_calculate_nearly_what_floats_do(minilm: OnnxEmbedder, home: Path) -> None:
    texts = ["How does a garbage collector know what is alive?", "def parse(text: str) -> Tree:", "Sind Bären da?"]
    exact = OnnxEmbedder(locate("minilm", home), home, threads=1, exact=True)
    assert (minilm.embed(texts) * exact.embed(texts)).sum(1).min() > 0.97
    assert exact.fingerprint != minilm.fingerprint


def test_the_prepared_model_is_kept_and_used_again(minilm: OnnxEmbedder, home: Path) -> None:
    before = minilm.embed(["once"])
    prepared = list((home / "prepared").iterdir())
    assert [file.suffix for file in prepared] == [".onnx"]
    minilm.close()
    assert np.array_equal(minilm.embed(["once"]), before)


def test_models_of_one_process_share_what_is_open(home: Path) -> None:
    first, second = (OnnxEmbedder(locate("minilm", home), home, threads=1) for _ in range(2))
    vectors = first.embed(["one text"]), second.embed(["one text"])
    assert np.array_equal(*vectors)
    assert len(local_model._OPEN) == 1
    first.close()
    assert np.array_equal(second.embed(["one text"]), vectors[0])
    second.close()
    assert not local_model._OPEN


def test_a_home_that_cannot_be_written_is_no_obstacle(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    embedder = OnnxEmbedder(locate("minilm", tmp_path / "file"), tmp_path / "file", threads=1)
    assert np.isclose(np.linalg.norm(embedder.embed(["a text"])), 1, atol=1e-5)


def test_another_tokenizer_makes_another_fingerprint(tmp_path: Path) -> None:
    before = small_embedder(tmp_path).fingerprint
    tokenizer = tmp_path / "tokenizer.json"
    tokenizer.write_text(tokenizer.read_text().replace("cat", "cow"))
    assert OnnxEmbedder(locate(str(tmp_path), tmp_path), tmp_path, threads=1).fingerprint != before


def test_order_is_kept_when_lengths_are_mixed(tmp_path: Path) -> None:
    embedder = small_embedder(tmp_path)
    texts = ["cat", "dog dog tax", "", "tax . a dog", "cats", "dog"] * 40
    together = embedder.embed(texts)
    assert np.array_equal(together, np.concatenate([embedder.embed([text]) for text in texts]))


def test_a_long_text_is_the_mean_of_its_windows(tmp_path: Path) -> None:
    embedder = small_embedder(tmp_path)  # 6 tokens are 4 of the text
    first, second = embedder.embed(["cat dog tax a", "dog dog"])
    expected = first * 6 + second * 4
    assert np.allclose(embedder.embed(["cat dog tax a dog dog"])[0], expected / np.linalg.norm(expected), atol=1e-6)


def test_what_lies_behind_the_last_window_is_left_out(tmp_path: Path) -> None:
    embedder = small_embedder(tmp_path)
    assert np.array_equal(embedder.embed(["cat " * 16 + "tax"]), embedder.embed(["cat " * 16 + "dog dog"]))


def test_prefixes_and_pooling_follow_the_card(tmp_path: Path) -> None:
    embedder = small_embedder(tmp_path, query_prefix="cat ", pooling="cls")
    assert np.array_equal(embedder.embed(["dog"], "query"), embedder.embed(["cat dog"]))
    assert np.array_equal(embedder.embed(["dog"]), embedder.embed(["tax"]))  # [CLS] sees no neighbours in this model
    plain = small_embedder(tmp_path)
    assert plain.fingerprint != embedder.fingerprint


def test_vectors_of_another_length_than_said_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="gives vectors of 8 numbers, its card says 9"):
        small_embedder(tmp_path, dimensions=9).embed(["cat"])


def test_a_file_that_is_no_model_is_named(tmp_path: Path) -> None:
    (tmp_path / "model.onnx").write_bytes(b"version https://git-lfs.github.com/spec/v1\n")
    save_tokenizer(tmp_path)
    with pytest.raises(ModelError, match=r"model\.onnx cannot be opened"):
        OnnxEmbedder(locate(str(tmp_path), tmp_path), tmp_path).embed(["cat"])


def test_a_reranker_scores_the_passage_and_not_the_query(tmp_path: Path) -> None:
    save_reranker(tmp_path)
    save_tokenizer(tmp_path)
    (tmp_path / "config.json").write_text('{"architectures": ["BertForSequenceClassification"]}')
    files = locate(str(tmp_path), tmp_path)
    assert files.card.kind == "reranker"
    scores = OnnxReranker(files, tmp_path, threads=2).rerank(
        "cat cat cat", ["dog", "cat cat", "", "a cat . cat cats cat"]
    )
    logits = np.array([-2, 0, -2, 2])
    assert np.allclose(scores, 1 / (1 + np.exp(-logits)), atol=1e-6)


def test_a_reranker_cuts_the_passage_to_what_the_model_reads(tmp_path: Path) -> None:
    save_reranker(tmp_path)
    save_tokenizer(tmp_path)
    (tmp_path / "findling-model.json").write_text('{"kind": "reranker", "max_tokens": 9}')
    reranker = OnnxReranker(locate(str(tmp_path), tmp_path), tmp_path, threads=1)
    assert reranker.rerank("dog " * 50, ["cat " * 50]) == pytest.approx([1 / (1 + np.exp(-1.0))])  # 3 of 9 tokens
    assert reranker.rerank("dog", []) == []


def test_only_models_with_stored_integers_are_rewritten(tmp_path: Path) -> None:
    assert to_int8_arithmetic(save_embedder(tmp_path).read_bytes()) is None
    assert to_int8_arithmetic(b"\xff\xff") is None
    assert to_int8_arithmetic(b"") is None
    model = locate("minilm", tmp_path).model.read_bytes()
    rewritten = to_int8_arithmetic(model)
    assert rewritten is not None
    assert rewritten.count(b"MatMulInteger\x12") + rewritten.count(b"MatMulInteger_") >= 36
    assert to_int8_arithmetic(rewritten) is None
    assert to_int8_arithmetic(model[:-1000]) is None


def save_tokenizer(folder: Path, words: tuple[str, ...] = WORDS) -> None:
    """A `tokenizer.json` of BERT's uncased kind with a vocabulary of a few words."""
    document = {
        "normalizer": {"type": "BertNormalizer", "clean_text": True, "handle_chinese_chars": True, "lowercase": True},
        "pre_tokenizer": {"type": "BertPreTokenizer"},
        "model": {
            "type": "WordPiece",
            "unk_token": "[UNK]",
            "vocab": {word: place for place, word in enumerate(words)},
        },
    }
    (folder / "tokenizer.json").write_text(json.dumps(document), encoding="utf-8")


def save_embedder(folder: Path, dimensions: int = 8) -> Path:
    """A model without token types whose state of a token is a row of a table."""
    table = np.random.default_rng(0).normal(size=(len(WORDS), dimensions)).astype(np.float32)
    nodes = [helper.make_node("Gather", ["table", "input_ids"], ["last_hidden_state"])]
    inputs = [_tokens("input_ids"), _tokens("attention_mask")]
    output = helper.make_tensor_value_info("last_hidden_state", FLOAT, ["b", "t", dimensions])
    return _save(folder, nodes, inputs, output, {"table": table})


def save_reranker(folder: Path) -> Path:
    """A cross-encoder whose logit is the number of `cat` in the passage less 2: token types tell the passage."""
    nodes = [
        helper.make_node("Equal", ["input_ids", "cat"], ["is_cat"]),
        helper.make_node("Cast", ["is_cat"], ["cats"], to=INT64),
        helper.make_node("Mul", ["cats", "token_type_ids"], ["in_passage"]),
        helper.make_node("Mul", ["in_passage", "attention_mask"], ["seen"]),
        helper.make_node("ReduceSum", ["seen", "axes"], ["count"], keepdims=1),
        helper.make_node("Cast", ["count"], ["number"], to=FLOAT),
        helper.make_node("Sub", ["number", "two"], ["logits"]),
    ]
    inputs = [_tokens(name) for name in ("input_ids", "attention_mask", "token_type_ids")]
    output = helper.make_tensor_value_info("logits", FLOAT, ["b", 1])
    cat, axes = np.array([WORDS.index("cat")]), np.array([1])
    return _save(folder, nodes, inputs, output, {"cat": cat, "axes": axes, "two": np.array([2], np.float32)})


def _tokens(name: str) -> Any:
    return helper.make_tensor_value_info(name, INT64, ["b", "t"])


def _save(
    folder: Path,
    nodes: list[Any],
    inputs: list[Any],
    output: Any,
    constants: dict[str, Any],
) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    weights = [onnx.numpy_helper.from_array(value, name) for name, value in constants.items()]
    graph = helper.make_graph(nodes, "test", inputs, [output], weights)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    onnx.save(model, str(folder / "model.onnx"))
    return folder / "model.onnx"
