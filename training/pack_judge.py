"""Packs passages, questions and candidates for the judge as token numbers, with the weights of its teacher.

    python training/pack_judge.py documents.jsonl... --teacher FOLDER --held FOLDER... --out DATA

Passages are windows of up to 450 characters, half of them below their headings, as a judge reads hits. A passage that
shares 13 words with a held file is left out, and so is what is asked about itself (`pack_reader.py`). The candidates of
a question are its passage, what words and meaning find together and alone, neighbours in the document, and chance.
"""

from __future__ import annotations

import argparse
import io
import json
import lzma
import re
from collections import Counter
from pathlib import Path
from random import Random
from typing import NamedTuple

import numpy as np
from ask_judge import KINDS, SENTENCE, question
from collect_reader import digest
from numpy.typing import NDArray
from onnxruntime import InferenceSession  # type: ignore[import-untyped]
from pack_reader import LEFT_OUT, held_runs, runs
from teachers import read_weights
from tokenizers import Tokenizer

from findling.models.local.instant import InstantEmbedder
from findling.text.analysis.analysis import terms

WINDOW, SHORTEST, LONGEST = 450, 60, 123
CANDIDATES = 14
TOGETHER, ALONE = 6, 2
"""Candidates by words and meaning together; by each of them alone."""
PROSE = re.compile(r"^(Translation|anarchism|cellxgene|dict-|r-bioc|fortunes|debian-handbook|cataclysm|tuxpaint)")
"""Packages with texts about the world, which give three times as much as others."""
HELD_SHARE = 0.04
CHECKED = 20
"""Questions whose first five candidates onnxruntime judges, too."""
Array = NDArray[np.generic]


class Passage(NamedTuple):
    """A window of a document; `shown` is what a judge reads."""

    document: int
    heading: str
    text: str
    shown: str


def main() -> None:
    """Write `judge.npz.xz` and `teacher.npz.xz`, and say what was dropped."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("documents", nargs="+", type=Path)
    parser.add_argument("--teacher", type=Path, required=True)
    parser.add_argument("--held", nargs="+", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--passages", type=int, default=75_000)
    parser.add_argument("--questions", type=int, default=80_000)
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    if not (options.out / "teacher.npz.xz").exists():
        weights = {name: whole(array) for name, array in read_weights(options.teacher / "model.onnx").items()}
        flat = {name: numbers for name, (numbers, _) in weights.items()}
        flat |= {f"{name}.scale": scale for name, (_, scale) in weights.items() if scale is not None}
        write(options.out / "teacher.npz.xz", flat)
    held = held_runs(options.held)
    print(f"{len(held):,} runs are held back", flush=True)
    passages = drawn(options.documents, held, options.passages)
    kinds, asked, own = ask(passages, options.questions)
    candidates = choose(passages, asked, own)
    tokenizer = Tokenizer.from_file(str(options.teacher / "tokenizer.json"))
    tokenizer.no_padding()
    tokenizer.no_truncation()
    read = packed(tokenizer, [passage.shown for passage in passages], LONGEST)
    questions = packed(tokenizer, asked, 48)
    kept_back = np.array([digest(f"held {passages[place].document}")[0] < HELD_SHARE * 256 for place in own])
    arrays: dict[str, Array] = {
        "passages": read[0],
        "passage_lengths": read[1],
        "questions": questions[0],
        "question_lengths": questions[1],
        "candidates": candidates,
        "kinds": np.array([KINDS.index(kind) for kind in kinds], dtype=np.uint8),
        "held": kept_back,
        "check": checked(options.teacher / "model.onnx", read, questions, candidates),
        "starts_word": np.array([not piece.startswith("##") for piece, _ in by_number(tokenizer)]),
    }
    write(options.out / "judge.npz.xz", arrays)
    (options.out / "sample.txt").write_text(shown_sample(passages, kinds, asked, candidates), encoding="utf-8")
    print(f"{len(passages):,} passages, {len(asked):,} questions, {int(kept_back.sum()):,} held back", Counter(kinds))


def by_number(tokenizer: Tokenizer) -> list[tuple[str, int]]:
    return sorted(tokenizer.get_vocab().items(), key=lambda item: item[1])


def whole(array: Array) -> tuple[Array, Array | None]:
    """A matrix of few steps as whole numbers and their step; anything else as it is."""
    values = array.astype(np.float32)
    if values.size < 10_000:  # too few to tell the step
        return values, None
    step = np.abs(values[values != 0]).min()
    numbers = np.rint(values / step)
    if np.abs(numbers).max() > 255 or np.abs(numbers * step - values).max() > step / 50:
        raise SystemExit("the teacher's weights are no 8-bit numbers of one scale each")
    return numbers.astype(np.int8 if np.abs(numbers).max() < 128 else np.int16), np.array([step], dtype=np.float32)


def write(path: Path, arrays: dict[str, Array]) -> None:
    stored = io.BytesIO()
    np.savez(stored, **arrays)  # type: ignore[arg-type]
    path.write_bytes(lzma.compress(stored.getvalue(), preset=4))
    print(f"{path.name}: {path.stat().st_size:,} bytes", flush=True)


def drawn(files: list[Path], held: set[int], most: int) -> list[Passage]:
    """Passages, so many of each package that all together are `most`."""
    sources: dict[str, list[list[Passage]]] = {}
    dropped: Counter[str] = Counter()
    for path in files:
        for line in path.read_text(encoding="utf-8").splitlines():
            source, title, parts = json.loads(line)
            if LEFT_OUT.search(source):
                dropped["package asked about"] += 1
                continue
            rng = Random(digest(f"{title} {parts[0]}"))
            windows = windows_of(title, parts, rng)
            good = [window for window in windows if held.isdisjoint(runs(f"{window.shown} {window.text}"))]
            dropped["shares 13 words"] += len(windows) - len(good)
            if good:
                sources.setdefault(source, []).append(good)
    shares = {source: 3 if PROSE.search(source) else 1 for source in sources}
    limit = fair([(sum(map(len, documents)), shares[source]) for source, documents in sources.items()], most)
    passages: list[Passage] = []
    number = 0
    for source, documents in sorted(sources.items()):
        left = allowed = limit * shares[source]
        for windows in sorted(documents, key=lambda each: digest(each[0].text)):
            if left <= 0:
                break
            passages += [window._replace(document=number) for window in windows[:left]]
            left, number = left - len(windows), number + 1
        print(f"{source[:40]:40} {sum(map(len, documents)):8,} {allowed - max(left, 0):8,}")
    print(f"dropped {dict(dropped)}; {number:,} documents", flush=True)
    return passages


def fair(counts: list[tuple[int, int]], most: int) -> int:
    """The largest single share that keeps all together within `most`; each has so many, and so many shares."""
    low, high = 0, max(count for count, _ in counts)
    while low < high:
        middle = (low + high + 1) // 2
        total = sum(min(count, middle * shares) for count, shares in counts)
        low, high = (middle, high) if total <= most else (low, middle - 1)
    return low


def windows_of(title: str, parts: list[tuple[str, str]], rng: Random, most: int = 10) -> list[Passage]:
    """Windows of a document: whole sentences, up to 450 characters."""
    found: list[Passage] = []
    seen: set[str] = set()
    for heading, text in parts:
        size, window = rng.choice((180, 320, WINDOW, WINDOW, WINDOW)), ""
        for sentence in [*SENTENCE.split(text), ""]:
            if window and (not sentence or len(window) + len(sentence) > size):
                if len(window) >= (SHORTEST if title or len(parts) > 1 else 30) and window[:60] not in seen:
                    seen.add(window[:60])
                    found.append(Passage(0, heading, window, shown(title, heading, window, rng)))
                window = ""
            window = f"{window} {sentence}".strip()[:WINDOW]
    start = rng.randint(0, max(0, len(found) - most))
    return found[start : start + most]


def shown(title: str, heading: str, text: str, rng: Random) -> str:
    """A window as findling shows it to a judge: below title and heading, or by itself."""
    lines = [title, heading] if rng.random() < 0.45 else [title] if rng.random() < 0.2 else []
    return "\n".join([*dict.fromkeys(line for line in lines if line), text])


def ask(passages: list[Passage], most: int) -> tuple[list[str], list[str], list[int]]:
    """Kind, text and passage of each question."""
    together: dict[int, list[int]] = {}
    for place, passage in enumerate(passages):
        together.setdefault(passage.document, []).append(place)
    kinds: list[str] = []
    asked: list[str] = []
    own: list[int] = []
    seen: set[str] = set()
    order = list(range(len(passages)))
    Random(7).shuffle(order)
    for turn, place in enumerate(order * 3):
        if len(asked) == most:
            break
        passage, rng = passages[place], Random(turn)
        others = [passages[other].text for other in together[passage.document] if other != place]
        kind, text = question(passage.heading, passage.text, others, rng)
        if text and text not in seen:
            seen.add(text)
            kinds.append(kind)
            asked.append(text)
            own.append(place)
    return kinds, asked, own


class Words:
    """BM25 over passages."""

    def __init__(self, texts: list[str]) -> None:
        self.numbers: dict[str, int] = {}
        places: list[int] = []
        words: list[int] = []
        counts: list[int] = []
        lengths = np.zeros(len(texts), dtype=np.float32)
        for place, text in enumerate(texts):
            found = Counter(terms(text))
            lengths[place] = sum(found.values())
            for word, count in found.items():
                words.append(self.numbers.setdefault(word, len(self.numbers)))
                places.append(place)
                counts.append(count)
        order = np.argsort(np.array(words, dtype=np.int32), kind="stable")
        self.places = np.array(places, dtype=np.int32)[order]
        often = np.bincount(np.array(words, dtype=np.int32), minlength=len(self.numbers))
        self.ends = np.cumsum(often)
        self.starts = self.ends - often
        amount = np.array(counts, dtype=np.float32)[order]
        norm = 1.2 * (0.25 + 0.75 * lengths / lengths.mean())
        weight = np.log(1 + (len(texts) - often + 0.5) / (often + 0.5)).astype(np.float32)
        self.values = np.repeat(weight, often) * amount * 2.2 / (amount + norm[self.places])
        self.count = len(texts)

    def found(self, query: str) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
        """Places and scores of passages that have one of the rarer words of a query."""
        known = {self.numbers[word] for word in terms(query) if word in self.numbers}
        slices = [slice(self.starts[number], self.ends[number]) for number in known]
        rare = [part for part in slices if part.stop - part.start < self.count // 25] or slices[:1]
        if not rare:
            return np.zeros(0, dtype=np.int32), np.zeros(0, dtype=np.float32)
        places, rows = np.unique(np.concatenate([self.places[part] for part in rare]), return_inverse=True)
        scores = np.bincount(rows, np.concatenate([self.values[part] for part in rare]))
        return places, scores.astype(np.float32)


def choose(passages: list[Passage], asked: list[str], own: list[int]) -> NDArray[np.uint32]:
    """Candidates of each question: the first is its own passage."""
    embedder = InstantEmbedder()
    texts = [passage.shown for passage in passages]
    words = Words(texts)
    meaning = np.concatenate([embedder.embed(texts[start : start + 2000]) for start in range(0, len(texts), 2000)])
    print(f"{len(words.numbers):,} words, {len(words.places):,} places", flush=True)
    documents = np.array([passage.document for passage in passages])
    rng = np.random.default_rng(7)
    out = np.zeros((len(asked), CANDIDATES), dtype=np.uint32)
    for start in range(0, len(asked), 256):
        part = asked[start : start + 256]
        cosines = embedder.embed(part) @ meaning.T
        nearest = np.argpartition(-cosines, 30, axis=1)[:, :30]
        for row, (query, near, top) in enumerate(zip(part, cosines, nearest, strict=True), start):
            places, found = words.found(query)
            # What has no rarer word comes in by its meaning alone.
            all_places = np.concatenate([places, np.setdiff1d(top, places)])
            told = np.concatenate([found, np.zeros(len(all_places) - len(found), dtype=np.float32)])
            cosine = near[all_places]
            both = told / max(float(told.max()), 1e-6) + cosine / max(float(cosine.max()), 1e-6)
            wanted = [own[row]]
            for scores, count in ((both, TOGETHER), (told, ALONE), (cosine, ALONE)):
                best = all_places[np.argsort(-scores)[:30]]
                wanted += [place for place in best.tolist() if place not in wanted][:count]
            beside = [place for place in (own[row] - 1, own[row] + 1) if 0 <= place < len(texts)]
            wanted += [place for place in beside if documents[place] == documents[own[row]] and place not in wanted]
            chance = [place for place in rng.integers(0, len(texts), 16).tolist() if place not in wanted]
            out[row] = [*wanted, *chance][:CANDIDATES]
        if start % 8192 == 0:
            print(f"{start:,} questions have candidates", flush=True)
    return out


def packed(tokenizer: Tokenizer, texts: list[str], most: int) -> tuple[NDArray[np.uint16], NDArray[np.uint8]]:
    """Token numbers one behind the other, and lengths."""
    rows: list[list[int]] = []
    for start in range(0, len(texts), 4096):
        found = tokenizer.encode_batch(texts[start : start + 4096], add_special_tokens=False)
        rows += [encoding.ids[:most] for encoding in found]
    flat = np.array([number for row in rows for number in row], dtype=np.uint16)
    return flat, np.array([len(row) for row in rows], dtype=np.uint8)


def checked(
    model: Path,
    passages: tuple[NDArray[np.uint16], NDArray[np.uint8]],
    questions: tuple[NDArray[np.uint16], NDArray[np.uint8]],
    candidates: NDArray[np.uint32],
) -> NDArray[np.float32]:
    """What onnxruntime says of the first candidates of the first questions."""
    session = InferenceSession(model, providers=["CPUExecutionProvider"])
    out = np.zeros((CHECKED, 5), dtype=np.float32)
    parts = [np.split(flat, np.cumsum(lengths.astype(int))[:-1]) for flat, lengths in (questions, passages)]
    for row in range(CHECKED):
        for place in range(5):
            asked = [101, *parts[0][row].tolist(), 102]
            told = parts[1][candidates[row, place]].tolist()[: 127 - len(asked)]
            ids = np.array([[*asked, *told, 102]], dtype=np.int64)
            kinds = (np.arange(ids.shape[1]) >= len(asked)).astype(np.int64)[None]
            given = {"input_ids": ids, "attention_mask": np.ones_like(ids), "token_type_ids": kinds}
            out[row, place] = session.run(["logits"], given)[0][0, 0]
    return out


def shown_sample(passages: list[Passage], kinds: list[str], asked: list[str], candidates: NDArray[np.uint32]) -> str:
    """Some questions with the beginnings of their candidates, to be looked at."""
    out = []
    for row in np.random.default_rng(1).choice(len(asked), min(60, len(asked)), replace=False):
        out.append(f"[{kinds[row]}] {asked[row]}")
        out += ["    " + re.sub(r"\s+", " ", passages[place].shown)[:150] for place in candidates[row]]
    return "\n".join(out) + "\n"


if __name__ == "__main__":
    main()
