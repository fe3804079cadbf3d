"""Fits the judge: a few layers that say of a question and a passage nearly what a cross-encoder of twelve says.

    python training/train_judge.py DATA --out FOLDER --students NAME:LAYERS[:SECONDS[:RATE[:TABLE]]]...

DATA holds `judge.npz.xz` and `teacher.npz.xz` (`pack_judge.py`). A student begins with the named layers of the teacher.
`three:0.5.11:300` has three and is fitted for 300 seconds. TABLE `shared` takes the words of the reader as they are
(`reader-table.npz` in DATA, `export_judge.py --table-of`) and learns how to turn them. The last layer is asked for the
first token alone, so that it costs a sixth of a layer.
"""

from __future__ import annotations

import argparse
import io
import json
import lzma
import math
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional
from train_reader import CLS, DEVICE, DIMENSIONS, HEADS, SEP, STARTED, Bert, Student, say

LONGEST = 128
CHECKED = 5
"""Candidates of each of the first questions that onnxruntime has judged, too."""


def arrays_of(path: Path) -> dict[str, np.ndarray]:
    with np.load(io.BytesIO(lzma.decompress(path.read_bytes()))) as stored:
        return {name: stored[name] for name in stored.files}


def teacher_weights(path: Path) -> dict[str, Tensor]:
    arrays = arrays_of(path)
    return {
        name: torch.from_numpy(array.astype(np.float32) * arrays.get(f"{name}.scale", np.float32(1))).to(DEVICE)
        for name, array in arrays.items()
        if not name.endswith(".scale")
    }


class Side:
    """Token numbers of all questions or passages on the device."""

    def __init__(self, tokens: np.ndarray, lengths: np.ndarray) -> None:
        self.lengths = lengths.astype(np.int64)
        self.tokens = torch.from_numpy(tokens.astype(np.int32)).to(DEVICE)
        self.sizes = torch.from_numpy(self.lengths).to(DEVICE)
        self.starts = torch.cumsum(self.sizes, 0) - self.sizes

    def read(self, places: Tensor, steps: Tensor) -> Tensor:
        return self.tokens[(self.starts[places][:, None] + steps).clamp(0, len(self.tokens) - 1)].long()


class Pairs:
    """Questions with their candidates; a pair has the number question × candidates + place."""

    def __init__(self, arrays: dict[str, np.ndarray]) -> None:
        self.questions = Side(arrays["questions"], arrays["question_lengths"])
        self.passages = Side(arrays["passages"], arrays["passage_lengths"])
        self.candidates = arrays["candidates"].astype(np.int64)
        self.width = self.candidates.shape[1]
        asked, sizes = self.questions.lengths[:, None], self.passages.lengths
        # Passages are shorter than what findling shows to a judge: a third of them go on with the one behind them.
        joined = np.add.outer(np.arange(len(self.candidates)), np.arange(self.width)) % 3 == 0
        joined[: len(arrays["check"])] = False
        told = sizes[self.candidates] + joined * np.append(sizes[1:], 0)[self.candidates]
        told = np.minimum(told, LONGEST - 3 - asked)
        self.lengths = (told + asked + 3).ravel()
        self.told = torch.from_numpy(told.ravel()).to(DEVICE)
        self.flat = torch.from_numpy(self.candidates.ravel()).to(DEVICE)
        self.held = np.flatnonzero(arrays["held"])
        self.fitted = np.flatnonzero(~arrays["held"])

    def batch(self, pairs: np.ndarray) -> tuple[Tensor, Tensor]:
        """Padded token numbers of pairs, and lengths."""
        longest = int(self.lengths[pairs].max())
        longest += -longest % 16  # attention wants even halves
        given = torch.from_numpy(pairs).to(DEVICE)
        question, passage = given // self.width, self.flat[given]
        asked = self.questions.sizes[question][:, None]
        told = self.told[given][:, None]
        steps = torch.arange(longest, device=DEVICE).expand(len(pairs), -1)
        ids = torch.where(steps <= asked, self.questions.read(question, steps - 1), 0)
        in_passage = (steps > asked + 1) & (steps < asked + told + 2)
        ids = torch.where(in_passage, self.passages.read(passage, steps - asked - 2), ids)
        ids = torch.where((steps == asked + 1) | (steps == asked + told + 2), SEP, ids)
        ids[:, 0] = CLS
        return ids, (asked + told + 3)[:, 0]


def second_of(ids: Tensor) -> Tensor:
    """Whether a token stands behind the first end."""
    ends = ids == SEP
    return (ends.cumsum(1) - ends.long() > 0)[..., None]


class Teacher(Bert):
    """The cross-encoder: a logit for each pair, and what stands before it."""

    def __init__(self, weights: dict[str, Tensor], depth: int) -> None:
        super().__init__(weights, range(depth), cls=True)
        self.weights = weights
        kinds = weights["embeddings.token_type_embeddings.weight"]
        self.own["second"] = kinds[1] - kinds[0]

    def rows(self, ids: Tensor) -> Tensor:
        return super().rows(ids) + self.own["second"] * second_of(ids)

    def forward(self, ids: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
        first, given = super().forward(ids, lengths), self.weights
        pooled = torch.tanh(functional.linear(first, given["pooler.dense.weight"], given["pooler.dense.bias"]))
        return functional.linear(pooled, given["classifier.weight"], given["classifier.bias"])[:, 0], pooled


class Judge(Student):
    """A student whose last layer reads all, and is asked for the first token alone."""

    def __init__(
        self, weights: dict[str, Tensor], layers: Sequence[int], shared: dict[str, np.ndarray] | None = None
    ) -> None:
        super().__init__(weights, layers, ())
        kinds = weights["embeddings.token_type_embeddings.weight"]
        more = {
            "places": self.own["places"].detach()[:LONGEST],
            "second": kinds[1] - kinds[0],
            "head_w": weights["pooler.dense.weight"],
            "head_b": weights["pooler.dense.bias"],
            "score": weights["classifier.weight"][0],
            "score_b": weights["classifier.bias"],
        }
        self.is_shared = shared is not None
        if shared is not None:
            scale = torch.from_numpy(shared["table_scale"].astype(np.float32)).to(DEVICE)
            packed = torch.from_numpy(shared["table"]).to(DEVICE)
            rows = (torch.cat([packed & 15, packed >> 4], 1).float() - 7.5) * scale
            square = rows.T @ rows
            eye = torch.eye(DIMENSIONS, device=DEVICE)
            wanted = rows.T @ weights["embeddings.word_embeddings.weight"]
            more["turn"] = torch.linalg.solve(square + 1e-3 * square.diagonal().mean() * eye, wanted)
            self.own["table"] = nn.Parameter(rows, requires_grad=False)
        for name, value in more.items():
            self.own[name] = nn.Parameter(value.detach().clone())

    def rows(self, ids: Tensor) -> Tensor:
        if self.is_shared:
            rows = functional.embedding(ids, self.own["table"]).to(self.kind) @ self.own["turn"].to(self.kind)
        else:
            rows = super().rows(ids)
        return rows + self.own["second"] * second_of(ids)

    def forward(self, ids: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
        count, longest = ids.shape
        states = self.normed((self.rows(ids) + self.own["places"][:longest]).to(self.kind), "norm")
        known = torch.arange(longest, device=ids.device) < lengths[:, None]
        mask = torch.zeros(count, 1, 1, longest, dtype=self.kind, device=ids.device)
        mask = mask.masked_fill(~known[:, None, None], -30000.0)
        for number in range(self.depth):
            qkv = self.linear(states, f"{number}_qkv").view(count, longest, 3, HEADS, DIMENSIONS // HEADS)
            query, key, value = qkv.permute(2, 0, 3, 1, 4)
            if number == self.depth - 1:
                query, states = query[:, :, :1], states[:, :1]
            size = states.shape[1]
            mixed = functional.scaled_dot_product_attention(
                query, key, value, attn_mask=mask.expand(count, HEADS, size, longest)
            )
            mixed = mixed.transpose(1, 2).reshape(count, size, DIMENSIONS)
            states = self.normed(states + self.linear(mixed, f"{number}_out"), f"{number}_norm1")
            wide = functional.gelu(self.linear(states, f"{number}_wide"))
            states = self.normed(states + self.linear(wide, f"{number}_thin"), f"{number}_norm2")
        pooled = torch.tanh(functional.linear(states[:, 0].float(), self.own["head_w"], self.own["head_b"]))
        return pooled @ self.own["score"] + self.own["score_b"], pooled

    @torch.no_grad()  # type: ignore[untyped-decorator]
    def packed(self) -> dict[str, np.ndarray]:
        out: dict[str, np.ndarray] = super().packed()
        if self.is_shared:
            del out["table"], out["table_scale"]
            out["turn"] = self.own["turn"].half().cpu().numpy()
        return out


@torch.no_grad()  # type: ignore[untyped-decorator]
def read(model: nn.Module, pairs: Pairs, wanted: np.ndarray, most: int) -> tuple[Tensor, Tensor]:
    """Logits and what stands before them, in order."""
    order = np.argsort(pairs.lengths[wanted], kind="stable")
    logits = torch.zeros(len(wanted), device=DEVICE)
    pooled = torch.zeros(len(wanted), DIMENSIONS, device=DEVICE, dtype=torch.float16)
    start, shown = 0, time.time()
    while start < len(order):
        size = max(8, most // (int(pairs.lengths[wanted[order[min(len(order) - 1, start + 2000)]]]) + 16))
        part = order[start : start + size]
        where = torch.from_numpy(part).to(DEVICE)
        logits[where], vectors = model(*pairs.batch(wanted[part]))
        pooled[where] = vectors.half()
        start += size
        if time.time() - shown > 20:
            shown = time.time()
            say(f"read {min(start, len(order)):,} of {len(order):,} pairs")
    return logits, pooled


def agreement(told: Tensor, wanted: Tensor) -> dict[str, float]:
    """How near the order of a student comes to the teacher's. Rows are questions, the first column their passage."""
    given, goal = told.float().cpu().numpy(), wanted.float().cpu().numpy()
    count = goal.shape[1]
    ranks = np.argsort(np.argsort(-goal, 1), 1)
    gains = np.maximum(10 - ranks, 0) / 10
    discount = 1 / np.log2(2 + np.arange(min(10, count)))
    order = np.argsort(-given, 1)[:, :10]
    best = np.sort(gains, 1)[:, ::-1][:, :10] @ discount
    own = np.argsort(np.argsort(-given, 1), 1)
    return {
        "ndcg": float((np.take_along_axis(gains, order, 1) @ discount / best).mean()),
        "first": float((order[:, 0] == goal.argmax(1)).mean()),
        "correlation": float(np.corrcoef(given.ravel(), goal.ravel())[0, 1]),
        "in lists": float(np.mean([np.corrcoef(*pair)[0, 1] for pair in zip(given, goal, strict=True)])),
        "rank of own": float(own[:, 0].mean()),
        "rank of own, teacher": float(ranks[:, 0].mean()),
    }


def shown(figures: dict[str, float]) -> str:
    return " ".join(f"{name} {value:.4f}" for name, value in figures.items())


def batches(questions: np.ndarray, size: int, rng: np.random.Generator) -> Iterator[np.ndarray]:
    while True:
        order = rng.permutation(questions)
        for start in range(0, max(1, len(order) - size + 1), size):
            yield order[start : start + size]


def loss_of(given: Tensor, goal: Tensor, options: argparse.Namespace) -> tuple[Tensor, Tensor]:
    """What is left between the student's lists and the teacher's; and the mean squared difference of the logits."""
    near = (given - goal).square().mean()
    margin = (given - given.mean(1, keepdim=True) - goal + goal.mean(1, keepdim=True)).square().mean()
    spread = functional.kl_div(
        functional.log_softmax(given / options.heat, 1),
        functional.log_softmax(goal / options.heat, 1),
        reduction="batchmean",
        log_target=True,
    )
    return spread + options.margin * margin + options.absolute * near, near


def fit(
    student: str,
    options: argparse.Namespace,
    weights: dict[str, Tensor],
    pairs: Pairs,
    told: tuple[Tensor, Tensor],
    rng: np.random.Generator,
) -> None:
    """Fit a student for its seconds, and write it."""
    name, layers, seconds, rate_given, table = (student.split(":") + [""] * 4)[:5]
    limit, fastest = float(seconds or 60), float(rate_given or options.rate)
    shared = None
    if table == "shared":
        with np.load(options.data / "reader-table.npz") as stored:
            shared = {key: stored[key] for key in stored.files}
    model = Judge(weights, [int(part) for part in layers.split(".")], shared).to(DEVICE)
    if DEVICE == "cpu":
        model.kind = torch.float32
    slow = [value for key, value in model.own.items() if key != "steps" and value.requires_grad]
    optimiser = torch.optim.AdamW(
        [{"params": slow, "weight_decay": 0.01}, {"params": [model.own["steps"]], "weight_decay": 0.0}],
        lr=options.rate,
        betas=(0.9, 0.98),
        fused=DEVICE == "cuda",
    )
    logits, pooled = told
    columns = np.arange(pairs.width)
    begun_at, step, said_at, kept_at = time.time(), 0, 0.0, time.time()
    for questions in batches(pairs.fitted, options.batch, rng):
        part = (time.time() - begun_at) / limit
        if part >= 1:
            break
        rate = fastest * min(1.0, (step + 1) / options.warm) * max(0.0, 1 - part)
        optimiser.param_groups[0]["lr"], optimiser.param_groups[1]["lr"] = rate, rate * 4
        wanted = (questions[:, None] * pairs.width + columns).ravel()
        if part > options.rounded and not model.is_rounded:
            say(name, "before rounding", shown(held_figures(model, pairs, logits, options.most)))
            model.quantise(*pairs.batch(wanted[: 256 * 8 : 8]))
        order = np.argsort(pairs.lengths[wanted], kind="stable")
        found = [model(*pairs.batch(wanted[sub])) for sub in np.array_split(order, 4)]
        where = torch.from_numpy(wanted[order]).to(DEVICE)
        back = torch.from_numpy(np.argsort(order)).to(DEVICE)
        given = torch.cat([one for one, _ in found])[back].view(len(questions), -1)
        loss, near = loss_of(given, logits[torch.from_numpy(wanted).to(DEVICE)].view_as(given), options)
        vectors = torch.cat([vectors for _, vectors in found])
        loss = loss + options.vector * (vectors - pooled[where].float()).square().mean()
        optimiser.zero_grad(set_to_none=True)
        loss.backward()
        nn.utils.clip_grad_norm_(slow, 1.0)
        optimiser.step()
        step += 1
        if step % 25 == 0 and time.time() - said_at > max(2.0, limit / 15):
            said_at = time.time()
            say(f"{name} {part:4.0%} step {step} loss {float(loss.detach()):.4f} error {float(near.detach()):.3f}")
        if part > 0.3 and time.time() - kept_at > 90:
            kept_at = time.time()
            np.savez(options.out / f"{name}.npz", **model.packed())
    if not model.is_rounded:
        model.quantise(*pairs.batch(wanted[: 256 * 8 : 8]))
    np.savez(options.out / f"{name}.npz", **model.packed())
    figures = held_figures(model, pairs, logits, options.most)
    say(f"{name} done, {step} steps:", shown(figures))
    settings = {key: str(value) for key, value in vars(options).items()}
    (options.out / f"{name}.json").write_text(json.dumps({"steps": step, "held": figures, "options": settings}))


def held_figures(model: nn.Module, pairs: Pairs, logits: Tensor, most: int) -> dict[str, float]:
    wanted = (pairs.held[:, None] * pairs.width + np.arange(pairs.width)).ravel()
    goal = logits[torch.from_numpy(wanted).to(DEVICE)].view(-1, pairs.width)
    return agreement(read(model, pairs, wanted, most)[0].view_as(goal), goal)


def teach(
    options: argparse.Namespace, weights: dict[str, Tensor], pairs: Pairs, check: np.ndarray
) -> tuple[Tensor, Tensor]:
    """What the teacher says of every pair. Ends the run where that differs from what onnxruntime said of some."""
    teacher = Teacher(weights, 1 + max(int(key.split(".")[2]) for key in weights if key.startswith("encoder.layer.")))
    teacher.kind = torch.float16 if DEVICE == "cuda" else torch.float32
    checked = (np.arange(len(check))[:, None] * pairs.width + np.arange(CHECKED)).ravel()
    given = read(teacher, pairs, checked, options.most)[0].cpu().numpy()
    near = float(np.corrcoef(given, check.ravel())[0, 1])
    say(f"{len(given)} pairs: correlation {near:.5f}, largest difference {np.abs(given - check.ravel()).max():.3f}")
    if not near > 0.998:  # onnxruntime rounds activations: .9994 with exact ones
        raise SystemExit("the teacher says something else here than in onnxruntime")
    told: tuple[Tensor, Tensor] = read(teacher, pairs, np.arange(pairs.candidates.size), options.most)
    if not math.isfinite(float(told[0].abs().max())):
        raise SystemExit("the teacher gives numbers that are none")
    np.save(options.out / "labels.npy", told[0].half().cpu().numpy())
    say(f"{len(told[0]):,} labels: mean {float(told[0].mean()):.3f}, deviation {float(told[0].std()):.3f}")
    return told


def main() -> None:
    """Label, fit, write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--students", nargs="*", default=[])
    parser.add_argument("--batch", type=int, default=128, help="questions of a step, each with all its candidates")
    parser.add_argument("--rate", type=float, default=4e-4)
    parser.add_argument("--warm", type=int, default=200, help="steps until the rate is reached")
    parser.add_argument("--rounded", type=float, default=0.75, help="the part of the time after which all is rounded")
    parser.add_argument("--heat", type=float, default=2.0, help="what logits are divided by in lists")
    parser.add_argument("--margin", type=float, default=0.1)
    parser.add_argument("--absolute", type=float, default=0.05)
    parser.add_argument("--vector", type=float, default=1.0, help="how much counts what stands before the logit")
    parser.add_argument("--most", type=int, default=400_000 if DEVICE == "cuda" else 8000, help="tokens read at once")
    parser.add_argument("--only", type=int, default=0, help="questions, for a trial")
    parser.add_argument("--until", type=float, default=1e9, help="seconds after which no student is begun")
    options = parser.parse_args()
    torch.manual_seed(7)
    torch.set_float32_matmul_precision("high")
    rng = np.random.default_rng(7)
    say(torch.__version__, DEVICE)
    options.out.mkdir(parents=True, exist_ok=True)
    arrays = arrays_of(options.data / "judge.npz.xz")
    if options.only:
        for name in ("candidates", "held", "question_lengths"):
            arrays[name] = arrays[name][: options.only]
        arrays["held"] = np.arange(options.only) % 6 == 0
    pairs = Pairs(arrays)
    say(
        f"{len(pairs.candidates):,} questions ({len(pairs.held):,} held back), "
        f"{len(pairs.passages.lengths):,} passages, {pairs.candidates.size:,} pairs"
    )
    weights = teacher_weights(options.data / "teacher.npz.xz")
    told = teach(options, weights, pairs, arrays["check"])
    for student in options.students:
        if time.time() - STARTED > options.until:
            break
        fit(student, options, weights, pairs, told, rng)


if __name__ == "__main__":
    main()
