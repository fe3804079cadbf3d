"""How fast passages become vectors: findling beside fastembed, on the same MiniLM file, texts and cores.

    python bench/embedding.py [--threads N] [--passages N] [--rounds N] [--peer-batch N] [PATH ...]

Takes the paragraphs of text files (the documentation and sources of this repository unless paths are given), mixed as
they come. Both sides read at most 256 tokens of each. Rounds are interleaved, so that a busy machine slows both. Needs
fastembed and tokenizers.
"""

from __future__ import annotations

import sys

# A script's own folder comes first on the path; its modules are those of the package `bench`.
sys.path[0] = f"{__file__.rpartition('/')[0] or '.'}/.."

import argparse
import json
import random
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from findling.models.local.onnx_models import OnnxEmbedder
from findling.models.locating import ModelFiles, locate
from findling.text.analysis.wordpieces import bert_vocabulary, count_tokens

ROOT = Path(__file__).resolve().parents[1]

Embed = Callable[[Sequence[str]], NDArray[np.float32]]


class Cost(NamedTuple):
    cpu: float
    wall: float


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--passages", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--peer-batch", type=int, default=256, help="texts in a batch of fastembed; 256 is its default")
    parser.add_argument("paths", nargs="*", type=Path, default=[ROOT / "docs", ROOT / "src"])
    asked = parser.parse_args()
    texts = sample(list(paragraphs(asked.paths)), asked.passages)
    tokens = sorted(map(count_tokens, texts))
    print(f"{len(texts)} passages, {sum(tokens):,} tokens, median {tokens[len(tokens) // 2]}, longest {tokens[-1]}")
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        files = locate("minilm", home)
        sides: dict[str, Embed] = {
            "findling": OnnxEmbedder(files, home, threads=asked.threads, windows=1, exact=True).embed,
            "findling, fast": OnnxEmbedder(files, home, threads=asked.threads, windows=1).embed,
            "fastembed": fastembed(files, home / "peer", asked.threads, asked.peer_batch),
        }
        report(texts, sides, asked.rounds)


def report(texts: Sequence[str], sides: dict[str, Embed], rounds: int) -> None:
    """Measure all sides in turn and print each beside the last."""
    vectors = {name: embed(texts) for name, embed in sides.items()}  # opens the models and warms them up
    costs: dict[str, list[Cost]] = {name: [] for name in sides}
    for _ in range(rounds):
        for name, embed in sides.items():
            costs[name].append(cost(embed, texts))
    peer = list(sides)[-1]
    print(f"{'':18} {'passages/CPU s':>14} {'ratio':>6} {'passages/s':>11} {'ratio':>6} {'cosine to peer':>15}")
    for name, measured in costs.items():
        cpu, wall = min(c.cpu for c in measured), min(c.wall for c in measured)
        ratios = min(c.cpu for c in costs[peer]) / cpu, min(c.wall for c in costs[peer]) / wall
        alike = float((vectors[name] * vectors[peer]).sum(1).mean())
        speeds = f"{len(texts) / cpu:14.1f} {ratios[0]:5.2f}x {len(texts) / wall:11.1f} {ratios[1]:5.2f}x"
        print(f"{name:18} {speeds} {alike:15.4f}")


def cost(embed: Embed, texts: Sequence[str]) -> Cost:
    cpu, wall = time.process_time(), time.perf_counter()
    embed(texts)
    return Cost(time.process_time() - cpu, time.perf_counter() - wall)


def paragraphs(paths: Sequence[Path]) -> Iterator[str]:
    """Pieces of text between empty lines that are long enough to be a passage."""
    for path in paths:
        files = sorted(path.rglob("*")) if path.is_dir() else [path]
        for file in files:
            if file.suffix in (".md", ".rst", ".txt", ".py"):
                for text in file.read_text(encoding="utf-8", errors="replace").split("\n\n"):
                    if len(text.split()) > 3:
                        yield text


def sample(texts: list[str], size: int) -> list[str]:
    return random.Random(0).sample(texts, min(size, len(texts)))


def fastembed(files: ModelFiles, folder: Path, threads: int, batch: int) -> Embed:
    """The peer, with the same model file and a tokenizer made from the same vocabulary."""
    from fastembed import TextEmbedding  # type: ignore[import-not-found, unused-ignore]
    from fastembed.common.model_description import ModelSource, PoolingType  # type: ignore[import-not-found, unused-ignore]

    write_model_folder(files, folder)
    TextEmbedding.add_custom_model(
        model="bench/minilm",
        pooling=PoolingType.MEAN,
        normalization=True,
        sources=ModelSource(hf="bench/minilm"),
        dim=files.card.dimensions,
        model_file="model.onnx",
    )
    model = TextEmbedding("bench/minilm", specific_model_path=str(folder), threads=threads)

    def embed(texts: Sequence[str]) -> NDArray[np.float32]:
        return np.array(list(model.embed(list(texts), batch_size=batch)), dtype=np.float32)

    return embed


def write_model_folder(files: ModelFiles, folder: Path) -> None:
    import tokenizers

    folder.mkdir()
    shutil.copy(files.model, folder / "model.onnx")
    numbers: Any = dict(bert_vocabulary().numbers)
    tokenizer = tokenizers.Tokenizer(tokenizers.models.WordPiece(numbers, unk_token="[UNK]"))
    tokenizer.normalizer = tokenizers.normalizers.BertNormalizer()
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.BertPreTokenizer()
    specials = [(name, numbers[name]) for name in ("[CLS]", "[SEP]")]
    tokenizer.post_processor = tokenizers.processors.TemplateProcessing("[CLS] $A [SEP]", None, specials)
    tokenizer.save(str(folder / "tokenizer.json"))
    config = {"model_max_length": files.card.max_tokens, "pad_token": "[PAD]"}
    (folder / "tokenizer_config.json").write_text(json.dumps(config))
    (folder / "config.json").write_text(json.dumps({"pad_token_id": 0}))


if __name__ == "__main__":
    main()
