"""Fits the reader: a few layers that give nearly the vectors of several teachers together.

    python training/train_reader.py DATA --out FOLDER --students NAME:LAYERS[:POOLED[:SECONDS[:ORDER[:RATE]]]]...

DATA holds `texts.npz` (`pack_reader.py`), `dev.npz` and the weights of the teachers (`teachers.py`). A student begins
with the named layers of MiniLM; before each layer named in POOLED neighbouring tokens become one. Example:
`four:0.2.3.5:2:150` has four layers, of which the last two read half the length, and is fitted for 150 seconds.

The vectors of the teachers are centred, brought to one spread, joined, and turned to their 384 strongest directions.
"""

from __future__ import annotations

import argparse
import json
import math
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
CLS, SEP = 101, 102
LONGEST = 256
DIMENSIONS, HEADS = 384, 12
E5 = ([23032, 1024], [6019, 1024])
"""The tokens of `query:` and `passage:`."""
BGE_QUERY = [5050, 2023, 6251, 2005, 6575, 7882, 13768, 1024]
"""The tokens of the instruction before a question."""
STARTED = time.time()


def say(*words: object) -> None:
    print(f"[{time.time() - STARTED:5.0f}]", *words, flush=True)


class Texts:
    """Token numbers of many texts on the device, one behind the other."""

    def __init__(self, tokens: np.ndarray, lengths: np.ndarray) -> None:
        self.tokens = torch.from_numpy(tokens.astype(np.int32)).to(DEVICE)
        self.lengths = lengths.astype(np.int64)
        self.starts = np.concatenate([[0], np.cumsum(self.lengths)[:-1]])

    def __len__(self) -> int:
        return len(self.lengths)

    def batch(self, places: np.ndarray, prefix: Sequence[int] = ()) -> tuple[Tensor, Tensor]:
        """Padded token numbers with marks around them, and lengths."""
        head = [CLS, *prefix]
        lengths = np.minimum(self.lengths[places], LONGEST - len(head) - 1)
        longest = int(lengths.max()) + len(head) + 1
        longest += -longest % 16  # attention wants even halves
        sizes = torch.from_numpy(lengths).to(DEVICE)
        starts = torch.from_numpy(self.starts[places]).to(DEVICE)
        steps = torch.arange(longest, device=DEVICE) - len(head)
        where = (starts[:, None] + steps).clamp(0, len(self.tokens) - 1)
        ids = self.tokens[where].long()
        ids = torch.where(steps < sizes[:, None], ids, 0)
        ids = torch.where(steps == sizes[:, None], SEP, ids)
        ids[:, : len(head)] = torch.tensor(head, device=DEVICE)
        return ids, sizes + len(head) + 1


class Bert(nn.Module):  # type: ignore[misc]
    """BERT with the mean, or the first token, of its last layer as the vector of a text."""

    def __init__(
        self, weights: dict[str, Tensor], layers: Sequence[int], pooled: Sequence[int] = (), cls: bool = False
    ) -> None:
        super().__init__()
        own = nn.ParameterDict()
        own["table"] = weights["embeddings.word_embeddings.weight"]
        own["places"] = (
            weights["embeddings.position_embeddings.weight"][:LONGEST]
            + weights["embeddings.token_type_embeddings.weight"][0]
        )
        own["norm_w"], own["norm_b"] = weights["embeddings.LayerNorm.weight"], weights["embeddings.LayerNorm.bias"]
        for number, layer in enumerate(layers):
            base = f"encoder.layer.{layer}."
            for end in ("weight", "bias"):
                own[f"{number}_qkv_{end[0]}"] = torch.cat(
                    [weights[f"{base}attention.self.{part}.{end}"] for part in ("query", "key", "value")]
                )
                own[f"{number}_out_{end[0]}"] = weights[f"{base}attention.output.dense.{end}"]
                own[f"{number}_norm1_{end[0]}"] = weights[f"{base}attention.output.LayerNorm.{end}"]
                own[f"{number}_wide_{end[0]}"] = weights[f"{base}intermediate.dense.{end}"]
                own[f"{number}_thin_{end[0]}"] = weights[f"{base}output.dense.{end}"]
                own[f"{number}_norm2_{end[0]}"] = weights[f"{base}output.LayerNorm.{end}"]
        self.own = own
        self.depth, self.pooled, self.cls = len(layers), frozenset(pooled), cls
        self.kind = torch.bfloat16

    def linear(self, states: Tensor, name: str) -> Tensor:
        return functional.linear(states, self.own[f"{name}_w"].to(self.kind), self.own[f"{name}_b"].to(self.kind))

    def normed(self, states: Tensor, name: str) -> Tensor:
        return functional.layer_norm(
            states, (DIMENSIONS,), self.own[f"{name}_w"].to(self.kind), self.own[f"{name}_b"].to(self.kind), 1e-12
        )

    def rows(self, ids: Tensor) -> Tensor:
        return functional.embedding(ids, self.own["table"])

    def forward(self, ids: Tensor, lengths: Tensor) -> Tensor:
        count, longest = ids.shape
        states = (self.rows(ids) + self.own["places"][:longest]).to(self.kind)
        states = self.normed(states, "norm")
        for number in range(self.depth):
            if number in self.pooled:
                first, second = states[:, ::2], states[:, 1::2]
                both = torch.arange(1, states.shape[1], 2, device=ids.device) < lengths[:, None]
                states = (first + torch.where(both[..., None], second, first)) * 0.5
                lengths = (lengths + 1) // 2
            longest = states.shape[1]
            known = torch.arange(longest, device=ids.device) < lengths[:, None]
            mask = torch.zeros(count, 1, 1, longest, dtype=self.kind, device=ids.device).masked_fill(
                ~known[:, None, None], -30000.0
            )
            qkv = self.linear(states, f"{number}_qkv").view(count, longest, 3, HEADS, DIMENSIONS // HEADS)
            query, key, value = qkv.permute(2, 0, 3, 1, 4)
            mixed = functional.scaled_dot_product_attention(
                query, key, value, attn_mask=mask.expand(count, HEADS, longest, longest)
            )
            mixed = mixed.transpose(1, 2).reshape(count, longest, DIMENSIONS)
            states = self.normed(states + self.linear(mixed, f"{number}_out"), f"{number}_norm1")
            wide = functional.gelu(self.linear(states, f"{number}_wide"))
            states = self.normed(states + self.linear(wide, f"{number}_thin"), f"{number}_norm2")
        if self.cls:
            return states[:, 0].float()
        return (states.float() * known[..., None]).sum(1) / lengths[:, None]


class Rounded(torch.autograd.Function):  # type: ignore[misc]
    """Numbers as 8 bits hold them; the step learns by its own gradient (LSQ)."""

    @staticmethod
    def forward(context, states, log_step, zero):  # type: ignore[no-untyped-def]
        step = log_step.exp()
        scaled = states.float() / step + zero
        rounded = scaled.round().clamp(0, 255)
        inside = (scaled >= 0) & (scaled <= 255)
        # Where it lies inside, the step moves the error of rounding; outside, the bound itself.
        context.save_for_backward(inside, torch.where(inside, rounded - scaled, rounded - zero).to(states.dtype), step)
        return ((rounded - zero) * step).to(states.dtype)

    @staticmethod
    def backward(context, gradient):  # type: ignore[no-untyped-def]
        inside, by_step, step = context.saved_tensors
        return gradient * inside, (gradient.float() * by_step).sum() * step, None


class Student(Bert):
    """A reader: its table has 4 bits a number from the start, all else 8 from the moment `quantise` is called."""

    def __init__(self, weights: dict[str, Tensor], layers: Sequence[int], pooled: Sequence[int]) -> None:
        super().__init__(weights, layers, pooled)
        for name, value in list(self.own.items()):
            self.own[name] = nn.Parameter(value.detach().clone().float())
        self.own["head_w"] = nn.Parameter(torch.eye(DIMENSIONS, device=DEVICE))
        self.own["steps"] = nn.Parameter(torch.zeros(4 * self.depth, device=DEVICE))
        table = self.own["table"].detach()
        most = table.abs().amax(1, keepdim=True) / 7.5
        best, scale = torch.full_like(most, 1e9), most
        for part in np.linspace(0.4, 1.0, 13):
            error = (four_bits(table, most * part) - table).square().sum(1, keepdim=True)
            scale = torch.where(error < best, most * part, scale)
            best = torch.minimum(best, error)
        self.register_buffer("row_scale", scale)
        self.register_buffer("zeros", torch.full((4 * self.depth,), 128.0, device=DEVICE))
        self.is_rounded = False
        self.seen: list[Tensor] | None = None

    def rows(self, ids: Tensor) -> Tensor:
        rows = functional.embedding(ids, self.own["table"])
        return rows + (four_bits(rows, self.row_scale[ids]) - rows).detach()

    def linear(self, states: Tensor, name: str) -> Tensor:
        number, _, part = name.partition("_")
        weight = self.own[f"{name}_w"]
        if self.seen is not None:
            self.seen.append(states.detach())
        if self.is_rounded:
            place = 4 * int(number) + ("qkv", "out", "wide", "thin").index(part)
            states = Rounded.apply(states, self.own["steps"][place], self.zeros[place])
            step = weight.detach().abs().amax(1, keepdim=True) / 63
            weight = weight + ((weight / step).round() * step - weight).detach()
        return functional.linear(states, weight.to(self.kind), self.own[f"{name}_b"].to(self.kind))

    def forward(self, ids: Tensor, lengths: Tensor) -> Tensor:
        return super().forward(ids, lengths) @ self.own["head_w"].T

    @torch.no_grad()  # type: ignore[untyped-decorator]
    def quantise(self, ids: Tensor, lengths: Tensor) -> None:
        """Choose steps by the least error on a few texts, and round from now on."""
        self.seen = []
        self(ids, lengths)
        for place, states in enumerate(self.seen):
            flat = states.float().flatten()
            flat = flat[torch.randint(len(flat), (200_000,), device=DEVICE)]
            low, high = float(flat.min()), float(flat.max())
            if place % 4 == 3:  # behind GELU, whose least value is -.17
                zero = max(1.0, min(40.0, round(0.17 / (max(high, 1.0) * 0.6 / 240))))
                reach, span = high, 255 - zero
            else:
                zero, reach, span = 128.0, max(-low, high), 127.0
            self.zeros[place] = zero
            best = math.inf
            for part in np.linspace(0.15, 1.0, 35):
                step = reach * part / span
                rounded = ((flat / step + zero).round().clamp(0, 255) - zero) * step
                error = float((rounded - flat).square().mean())
                if error < best:
                    best = error
                    self.own["steps"][place] = math.log(step)
        self.seen = None
        self.is_rounded = True

    @torch.no_grad()  # type: ignore[untyped-decorator]
    def packed(self) -> dict[str, np.ndarray]:
        """All that the file of the model is made from."""
        out: dict[str, np.ndarray] = {"pooled": np.array(sorted(self.pooled), dtype=np.int64)}
        rows = self.own["table"]
        fours = (rows / self.row_scale + 7.5).round().clamp(0, 15).to(torch.uint8)
        out["table"] = (fours[:, : DIMENSIONS // 2] | fours[:, DIMENSIONS // 2 :] << 4).cpu().numpy()
        out["table_scale"] = self.row_scale.half().cpu().numpy()
        for name, value in self.own.items():
            if name == "table":
                continue
            if name.endswith("_w") and value.ndim == 2 and name != "head_w":
                step = value.abs().amax(1, keepdim=True) / 63
                out[name] = (value / step).round().to(torch.int8).cpu().numpy()
                out[f"{name}_scale"] = step[:, 0].cpu().numpy()
            elif name in ("places", "head_w"):
                out[name] = value.half().cpu().numpy()
            else:
                out[name] = value.float().cpu().numpy()
        out["steps"], out["zeros"] = self.own["steps"].exp().cpu().numpy(), self.zeros.cpu().numpy().astype(np.uint8)
        return out


def four_bits(rows: Tensor, scale: Tensor) -> Tensor:
    return ((rows / scale + 7.5).round().clamp(0, 15) - 7.5) * scale


def weights_of(path: Path) -> dict[str, Tensor]:
    with np.load(path) as stored:
        arrays = {name: stored[name] for name in stored.files}
    return {
        name: torch.from_numpy(array.astype(np.float32) * arrays.get(f"{name}.scale", np.float32(1))).to(DEVICE)
        for name, array in arrays.items()
        if not name.endswith(".scale")
    }


@torch.no_grad()  # type: ignore[untyped-decorator]
def embed(
    model: Bert,
    texts: Texts,
    prefix: Sequence[int] = (),
    places: np.ndarray | None = None,
    most: int = 200_000 if DEVICE == "cuda" else 4000,
) -> Tensor:
    """Vectors of length 1, in order."""
    places = np.arange(len(texts)) if places is None else places
    order = places[np.argsort(texts.lengths[places], kind="stable")]
    where = np.empty(len(texts), dtype=np.int64)
    where[places] = np.arange(len(places))
    out = torch.zeros(len(places), DIMENSIONS, device=DEVICE)
    start = 0
    while start < len(order):
        size = max(8, most // (int(texts.lengths[order[min(len(order) - 1, start + 2000)]]) + 16))
        part = order[start : start + size]
        out[torch.from_numpy(where[part]).to(DEVICE)] = functional.normalize(
            model(*texts.batch(part, prefix)).float(), dim=1
        )
        start += size
    return out


class Collection:
    """A development set, its documents cut into windows; only ever asked, never fitted."""

    def __init__(self, name: str, stored: dict[str, np.ndarray]) -> None:
        self.name = name
        tokens, lengths = stored[f"{name}/docs"], stored[f"{name}/doc_lengths"].astype(np.int64)
        starts = np.concatenate([[0], np.cumsum(lengths)[:-1]])
        self.owner: list[int] = []
        sizes: list[int] = []
        for number, length in enumerate(lengths):
            for begin in range(0, max(1, min(int(length), 230 * 12)), 230):
                sizes.append(min(230, int(length) - begin))
                self.owner.append(number)
        kept = np.concatenate(
            [np.arange(start, start + min(length, 230 * 12)) for start, length in zip(starts, lengths, strict=True)]
        )
        self.windows = Texts(tokens[kept], np.array(sizes))
        self.owners = torch.tensor(self.owner, device=DEVICE)
        self.count = len(lengths)
        self.queries = Texts(stored[f"{name}/queries"], stored[f"{name}/query_lengths"])
        self.judged = stored[f"{name}/judged"]
        self.words = self.bm25(Texts(tokens, lengths))

    def bm25(self, docs: Texts) -> Tensor:
        lengths = torch.from_numpy(docs.lengths).to(DEVICE).float()
        owner = torch.repeat_interleave(
            torch.arange(self.count, device=DEVICE), torch.from_numpy(docs.lengths).to(DEVICE)
        )
        norm = 1.2 * (0.25 + 0.75 * lengths / lengths.mean())
        scores = torch.zeros(len(self.queries), self.count, device=DEVICE)
        known: dict[int, Tensor] = {}
        for place in range(len(self.queries)):
            start = self.queries.starts[place]
            for token in set(self.queries.tokens[start : start + self.queries.lengths[place]].tolist()):
                if token not in known:
                    counts = torch.bincount(owner[docs.tokens == token], minlength=self.count).float()
                    found = float((counts > 0).sum())
                    weight = math.log(1 + (self.count - found + 0.5) / (found + 0.5))
                    known[token] = weight * counts * 2.2 / (counts + norm)
                scores[place] += known[token]
        return scores

    def vectors(self, model: Bert, query: Sequence[int] = (), passage: Sequence[int] = ()) -> tuple[Tensor, Tensor]:
        return embed(model, self.queries, query), embed(model, self.windows, passage)

    def evaluate(self, queries: Tensor, windows: Tensor) -> tuple[float, float]:
        """NDCG@10 by meaning alone, and blended half and half with BM25."""
        cosines = torch.full((len(queries), self.count), -9.0, device=DEVICE)
        cosines.scatter_reduce_(1, self.owners.expand(len(queries), -1), queries @ windows.T, "amax")
        low, high = cosines.amin(1, keepdim=True), cosines.amax(1, keepdim=True)
        blend = (cosines - low) / (high - low) + self.words / self.words.amax(1, keepdim=True).clamp(min=1e-6)
        return self.ndcg(cosines), self.ndcg(blend)

    def ndcg(self, scores: Tensor) -> float:
        top = scores.topk(10, dim=1).indices.cpu().numpy()
        grades: dict[int, dict[int, float]] = {}
        for query, doc, grade in self.judged:
            grades.setdefault(int(query), {})[int(doc)] = float(grade)
        total = 0.0
        for query, known in grades.items():
            best = sum(
                grade / math.log2(2 + rank) for rank, grade in enumerate(sorted(known.values(), reverse=True)[:10])
            )
            total += sum(known.get(int(doc), 0.0) / math.log2(2 + rank) for rank, doc in enumerate(top[query])) / max(
                best, 1e-9
            )
        return total / len(grades)


def table_line(label: str, values: list[tuple[float, float]]) -> str:
    alone, blend = zip(*values, strict=True)
    shown = " ".join(f"{one:.3f}/{two:.3f}" for one, two in values)
    return f"{label:34} {np.mean(alone):.4f} {np.mean(blend):.4f} | {shown}"


class Mix:
    """Several teachers as one: what turns their vectors into one vector of 384 numbers."""

    def __init__(self, weights: dict[str, float], middles: dict[str, Tensor], sample: dict[str, Tensor]) -> None:
        self.weights, self.middles, self.factors = weights, middles, {}
        for name, weight in weights.items():
            part = functional.normalize(sample[name] - middles[name], dim=1)
            half = len(part) // 2
            spread = float((part[:half] @ part[half : 2 * half].T).std())
            self.factors[name] = math.sqrt(weight / spread)
        joined = self.joined(sample)
        self.turn = torch.linalg.eigh((joined.T @ joined).double()).eigenvectors[:, -DIMENSIONS:].flip(1).float()

    def joined(self, vectors: dict[str, Tensor]) -> Tensor:
        return torch.cat(
            [
                self.factors[name] * functional.normalize(vectors[name].float() - self.middles[name], dim=1)
                for name in self.weights
            ],
            1,
        )

    def __call__(self, vectors: dict[str, Tensor]) -> Tensor:
        return functional.normalize(self.joined(vectors) @ self.turn, dim=1)


def main() -> None:
    """Teach, compare, fit, write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--students", nargs="*", default=[])
    parser.add_argument("--teachers", nargs="+", default=["minilm", "bge", "e5"])
    parser.add_argument("--mix", default="")
    parser.add_argument("--batch", type=int, default=1024)
    parser.add_argument("--rate", type=float, default=5e-4)
    parser.add_argument("--rounded", type=float, default=0.7, help="the part of the time after which all is rounded")
    parser.add_argument("--relations", type=float, default=20.0)
    parser.add_argument("--cache", type=Path, help="keeps the target for a later run over the same texts")
    parser.add_argument("--until", type=float, default=1e9, help="seconds after which no student is begun")
    options = parser.parse_args()
    torch.manual_seed(7)
    torch.set_float32_matmul_precision("high")
    rng = np.random.default_rng(7)
    say(torch.__version__, DEVICE)
    with np.load(options.data / "texts.npz") as stored:
        tokens, lengths, is_line, starts_word = (
            stored[name] for name in ("tokens", "lengths", "is_line", "starts_word")
        )
    texts, is_query = with_crops(tokens, lengths, is_line.astype(bool), starts_word.astype(bool), rng)
    say(f"{len(texts):,} texts, {int(texts.lengths.sum()):,} tokens, {int(is_query.sum()):,} like questions")
    with np.load(options.data / "dev.npz") as stored:
        arrays = {name: stored[name] for name in stored.files}
    sets = [Collection(name, arrays) for name in dict.fromkeys(key.partition("/")[0] for key in arrays)]
    say("development sets", *(each.name for each in sets))

    weights = {name: weights_of(options.data / f"{name}.npz") for name in options.teachers}
    if options.cache and options.cache.exists():
        target = torch.load(options.cache).to(DEVICE)
    else:
        target = teach(options, weights, texts, is_query, sets, rng)
        if options.cache:
            torch.save(target, options.cache)
    blocks = neighbours(target)
    say(f"{int(blocks.max()) + 1} groups of neighbours")
    options.out.mkdir(parents=True, exist_ok=True)
    for student in options.students:
        if time.time() - STARTED > options.until:
            break
        fit(student, options, weights["minilm"], texts, target, blocks.cpu().numpy(), sets, rng)


def teach(
    options: argparse.Namespace,
    weights: dict[str, dict[str, Tensor]],
    texts: Texts,
    is_query: np.ndarray,
    sets: list[Collection],
    rng: np.random.Generator,
) -> Tensor:
    """What the teachers together say of each text, in the mix that answers the development sets best."""
    teachers: dict[str, Bert] = {}
    for name, given in weights.items():
        depth = 1 + max(int(key.split(".")[2]) for key in given if key.startswith("encoder.layer."))
        teachers[name] = Bert(given, range(depth), cls=name == "bge").to(DEVICE)
        teachers[name].kind = torch.float16 if DEVICE == "cuda" else torch.float32
    prefixes: dict[str, tuple[list[int], list[int]]] = {name: E5 if name == "e5" else ([], []) for name in teachers}
    asked = {name: [each.vectors(model, *prefixes[name]) for each in sets] for name, model in teachers.items()}
    for name in teachers:
        say(table_line(name, [each.evaluate(*pair) for each, pair in zip(sets, asked[name], strict=True)]))
    if "bge" in teachers:
        other = [
            (embed(teachers["bge"], each.queries, BGE_QUERY), pair[1])
            for each, pair in zip(sets, asked["bge"], strict=True)
        ]
        say(
            table_line(
                "bge with its instruction", [each.evaluate(*pair) for each, pair in zip(sets, other, strict=True)]
            )
        )

    taught: dict[str, Tensor] = {}
    for name, model in teachers.items():
        found = torch.zeros(len(texts), DIMENSIONS, dtype=torch.float16, device=DEVICE)
        for prefix, places in zip(prefixes[name], (np.flatnonzero(is_query), np.flatnonzero(~is_query)), strict=True):
            found[torch.from_numpy(places).to(DEVICE)] = embed(model, texts, prefix, places).half()
        taught[name] = found
        say(f"taught by {name}")
    drawn = torch.from_numpy(rng.choice(len(texts), min(len(texts), 60_000), replace=False)).to(DEVICE)
    sample = {name: vectors[drawn].float() for name, vectors in taught.items()}
    middles = {name: vectors.mean(0) for name, vectors in sample.items()}
    choices = (
        [options.mix]
        if options.mix
        else [
            "minilm=1",
            "bge=1",
            "e5=1",
            "minilm=1,bge=1",
            "bge=1,e5=1",
            "minilm=1,bge=1,e5=1",
            "minilm=1,bge=2,e5=1",
            "minilm=2,bge=2,e5=1",
        ]
    )
    best, target_of = -1.0, None
    for choice in choices:
        shares = {name: float(share) for name, share in (part.split("=") for part in choice.split(","))}
        mix = Mix(shares, middles, sample)
        values = [
            each.evaluate(
                mix({name: asked[name][place][0] for name in shares}),
                mix({name: asked[name][place][1] for name in shares}),
            )
            for place, each in enumerate(sets)
        ]
        say(table_line(f"mix {choice}", values))
        if (score := float(np.mean([blend for _, blend in values]))) > best:
            best, target_of, chosen = score, mix, choice
    assert target_of is not None
    target = torch.cat(
        [
            target_of({name: vectors[start : start + 65536] for name, vectors in taught.items()})
            for start in range(0, len(texts), 65536)
        ]
    ).half()
    say("target:", chosen)
    return target


def with_crops(
    tokens: np.ndarray, lengths: np.ndarray, is_line: np.ndarray, starts_word: np.ndarray, rng: np.random.Generator
) -> tuple[Texts, np.ndarray]:
    """All texts, and of each passage a few words, which are like a question."""
    begins = np.concatenate([[0], np.cumsum(lengths.astype(np.int64))[:-1]])
    parts, sizes = [tokens], [lengths.astype(np.int64)]
    cut: list[np.ndarray] = []
    cut_sizes: list[int] = []
    fresh = starts_word[tokens]
    for place in np.flatnonzero(~is_line & (lengths > 40)):
        size = int(rng.integers(4, 25))
        start = int(begins[place] + rng.integers(0, lengths[place] - size))
        end = begins[place] + lengths[place]
        while start < end and not fresh[start]:
            start += 1
        stop = start + size
        while stop < end and not fresh[stop]:
            stop += 1
        stop = min(stop, end)
        if stop - start > 2:
            cut.append(tokens[start:stop])
            cut_sizes.append(int(stop - start))
    everything = np.concatenate([*parts, *cut])
    return Texts(everything, np.concatenate([*sizes, np.array(cut_sizes, dtype=np.int64)])), np.concatenate(
        [is_line, np.ones(len(cut_sizes), dtype=bool)]
    )


@torch.no_grad()  # type: ignore[untyped-decorator]
def neighbours(target: Tensor) -> Tensor:
    """The group of each text: texts of a group lie near each other."""
    count = min(2048, max(2, len(target) // 64))
    middles = target[torch.randperm(len(target), device=DEVICE)[:count]].float()
    for _ in range(6):
        group = torch.cat([(part.float() @ middles.T).argmax(1) for part in target.split(65536)])
        sums = torch.zeros_like(middles).index_add_(0, group, target.float())
        middles = functional.normalize(sums + 1e-6 * torch.randn_like(sums), dim=1)
    return group


def batches(groups: np.ndarray, size: int, rng: np.random.Generator, together: int = 16) -> Iterator[np.ndarray]:
    """Batches of blocks; the texts of a block are neighbours."""
    while True:
        order = np.lexsort((rng.random(len(groups)), groups))
        usable = order[: len(order) // together * together].reshape(-1, together)
        rng.shuffle(usable)
        for start in range(0, len(usable) - size // together + 1, size // together):
            yield usable[start : start + size // together].ravel()


def fit(
    student: str,
    options: argparse.Namespace,
    weights: dict[str, Tensor],
    texts: Texts,
    target: Tensor,
    groups: np.ndarray,
    sets: list[Collection],
    rng: np.random.Generator,
) -> None:
    """Fit a student for its seconds, and write it."""
    name, layers, pooled, seconds, order, rate_given = (student.split(":") + [""] * 5)[:6]
    limit, order_weight, fastest = float(seconds or 60), float(order or 0), float(rate_given or options.rate)
    model = Student(
        weights, [int(part) for part in layers.split(".")], [int(part) for part in pooled.split(".") if part]
    ).to(DEVICE)
    if DEVICE == "cpu":
        model.kind = torch.float32
    with torch.no_grad():
        probe = rng.choice(len(texts), min(len(texts), 4096), replace=False)
        begun = torch.cat(
            [functional.normalize(model(*texts.batch(part)).float(), dim=1) for part in np.array_split(probe, 8)]
        )
        goal = target[torch.from_numpy(probe).to(DEVICE)].float()
        square = begun.T @ begun
        model.own["head_w"].copy_(
            torch.linalg.solve(
                square + 1e-3 * square.diagonal().mean() * torch.eye(DIMENSIONS, device=DEVICE), begun.T @ goal
            ).T
        )
    slow = [value for key, value in model.own.items() if key != "steps"]
    optimiser = torch.optim.AdamW(
        [{"params": slow, "weight_decay": 0.01}, {"params": [model.own["steps"]], "weight_decay": 0.0}],
        lr=options.rate,
        betas=(0.9, 0.98),
        fused=DEVICE == "cuda",
    )
    begun_at, step, shown, kept = time.time(), 0, 0.0, 0.0
    for places in batches(groups, options.batch, rng):
        part = (time.time() - begun_at) / limit
        if part >= 1:
            break
        rate = fastest * min(1.0, (step + 1) / 300) * max(0.0, 1 - part)
        optimiser.param_groups[0]["lr"], optimiser.param_groups[1]["lr"] = rate, rate * 4
        if part > options.rounded and not model.is_rounded:
            model.quantise(*texts.batch(places[:256]))
        ordered = places[np.argsort(texts.lengths[places])]
        given = torch.cat([model(*texts.batch(sub)) for sub in np.array_split(ordered, 4)])
        vectors = functional.normalize(given, dim=1)
        goal = target[torch.from_numpy(ordered).to(DEVICE)].float()
        near = 1 - (vectors * goal).sum(1).mean()
        own, others = vectors @ vectors.T, goal @ goal.T
        relations = (own - others).square().mean()
        loss = near + options.relations * relations
        if order_weight:
            gone = torch.eye(len(own), device=DEVICE, dtype=torch.bool)
            wanted = functional.log_softmax((others / 0.05).masked_fill(gone, -1e4), 1)
            loss = loss + order_weight * functional.kl_div(
                functional.log_softmax((own / 0.05).masked_fill(gone, -1e4), 1),
                wanted,
                reduction="batchmean",
                log_target=True,
            )
        optimiser.zero_grad(set_to_none=True)
        loss.backward()
        nn.utils.clip_grad_norm_(slow, 1.0)
        optimiser.step()
        step += 1
        if step % 25 == 0:
            value = 1 - float(near.detach())  # waits for the device
            if time.time() - shown > max(2.0, limit / 12):
                shown = time.time()
                say(f"{name} {part:4.0%} step {step} cosine {value:.4f} relations {float(relations):.5f}")
            if time.time() - kept > 120 and part > 0.3:
                kept = time.time()
                np.savez(options.out / f"{name}.npz", **model.packed())
    model.eval()
    if not model.is_rounded:
        model.quantise(*texts.batch(places[:256]))
    np.savez(options.out / f"{name}.npz", **model.packed())
    say(table_line(f"{name} {step} steps", [each.evaluate(*each.vectors(model)) for each in sets]))
    (options.out / f"{name}.json").write_text(
        json.dumps({"steps": step, "options": {key: str(value) for key, value in vars(options).items()}})
    )


if __name__ == "__main__":
    main()
