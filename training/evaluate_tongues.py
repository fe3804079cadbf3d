"""Measures the vectors of other languages on collections in BEIR's layout: NDCG@10 alone and blended with BM25.

    python training/evaluate_tongues.py tongues.npz FOLDER... [--alone]

A folder whose name says `-x-` has questions in another language and English passages, which findling's own instant
vectors read. In every other folder both are read as texts of another language.
"""

from __future__ import annotations

import json
import sys
from collections import Counter, defaultdict
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from tongues import Tongues, is_unspaced, words

from findling.models.local.instant import InstantEmbedder

Floats = NDArray[np.float32]

BLENDS = (0.3, 0.5, 0.7)
"""Shares of the vectors beside BM25, both sides brought to 0 … 1."""


def main() -> None:
    """A line a collection."""
    table = Tongues(Path(sys.argv[1]))
    alone = "--alone" in sys.argv
    for folder in (Path(each) for each in sys.argv[2:] if each != "--alone"):
        passages = {
            each["_id"]: f"{each.get('title', '')} {each['text']}".strip() for each in lines(folder / "corpus.jsonl")
        }
        judged: dict[str, dict[str, int]] = defaultdict(dict)
        for row in (folder / "qrels" / "test.tsv").read_text(encoding="utf-8").splitlines()[1:]:
            query, passage, grade = row.split("\t")
            judged[query][passage] = int(grade)
        questions = {each["_id"]: each["text"] for each in lines(folder / "queries.jsonl") if each["_id"] in judged}
        asked = table.embed(questions.values())
        texts = list(passages.values())
        held = InstantEmbedder().embed(texts) if "-x-" in folder.name else table.embed(texts)
        near = asked @ held.T
        if alone:
            print(f"{folder.name} {ndcg(near, list(passages), list(questions), judged):.3f}", end="  ", flush=True)
            continue
        figures = []
        plain = bm25(texts, list(questions.values()))
        for scores in (plain, near, *(share * level(near) + (1 - share) * level(plain) for share in BLENDS)):
            figures.append(ndcg(scores, list(passages), list(questions), judged))
        print(f"{folder.name:16} BM25, alone, blended: {' '.join(f'{figure:.3f}' for figure in figures)}", flush=True)


def lines(path: Path) -> list[dict[str, str]]:
    """The records of a file."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def level(scores: Floats) -> Floats:
    """Each row brought to 0 … 1."""
    low, high = scores.min(axis=1, keepdims=True), scores.max(axis=1, keepdims=True)
    out: Floats = (scores - low) / np.where(high > low, high - low, 1)
    return out


def ndcg(scores: Floats, passages: list[str], questions: list[str], judged: dict[str, dict[str, int]]) -> float:
    """NDCG@10."""
    gains = []
    weights = 1 / np.log2(np.arange(2, 12))
    for row, question in zip(scores, questions, strict=True):
        best = np.argsort(-row, kind="stable")[:10]
        got = np.array([judged[question].get(passages[each], 0) for each in best])
        ideal = np.sort(list(judged[question].values()))[::-1][:10]
        gains.append((got * weights[: len(got)]).sum() / max((ideal * weights[: len(ideal)]).sum(), 1e-9))
    return float(np.mean(gains))


def bm25(texts: list[str], questions: list[str], k1: float = 1.2, b: float = 0.75) -> Floats:
    """Plain BM25 over words, and over pairs of letters where no spaces stand between words."""
    bags = [Counter(terms(text)) for text in texts]
    lengths = np.array([sum(bag.values()) for bag in bags])
    rare = Counter(term for bag in bags for term in bag)
    postings: dict[str, list[tuple[int, int]]] = defaultdict(list)
    for row, bag in enumerate(bags):
        for term, count in bag.items():
            postings[term].append((row, count))
    scores = np.zeros((len(questions), len(texts)), np.float32)
    for row, question in enumerate(questions):
        for term in set(terms(question)):
            if term in postings:
                places, counts = np.array(postings[term]).T
                weight = np.log(1 + (len(texts) - rare[term] + 0.5) / (rare[term] + 0.5))
                scores[row, places] += (
                    weight * counts * (k1 + 1) / (counts + k1 * (1 - b + b * lengths[places] / lengths.mean()))
                )
    return scores


def terms(text: str) -> list[str]:
    """Words, or pairs of letters."""
    return [
        term
        for word in words(text)
        for term in ([word[at : at + 2] for at in range(max(1, len(word) - 1))] if is_unspaced(word) else [word])
    ]


if __name__ == "__main__":
    main()
