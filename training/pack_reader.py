"""Packs the texts of the reader as token numbers, except those that share 13 words with an evaluation.

    python training/pack_reader.py texts.tsv... --tokenizer FILE --out DATA --held FOLDER... --dev COLLECTION...

Writes `texts.npz` for `train_reader.py`, and `dev.npz`, the development sets that it prints figures of. HELD are
folders whose files are held against the texts.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from tokenizers import Tokenizer

RUN = 13
LONGEST = 254
WORD = re.compile(r"[a-z0-9]+")
LEFT_OUT = re.compile(
    r"^(node-|golang-github-|ruby-|lib|python3-)?(express|aiohttp|fastapi|fmt|gin|gin-gonic-gin|gson|rack|axum|lazy)\b(?!-utils)"
)
"""Packages that are themselves asked about, whatever they share."""


def main() -> None:
    """Write both files and say what was dropped."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("texts", nargs="+", type=Path)
    parser.add_argument("--tokenizer", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--held", nargs="+", type=Path, required=True)
    parser.add_argument("--dev", nargs="*", type=Path, default=[])
    parser.add_argument("--most", nargs="*", default=["prose=270000", "code=80000", "line=380000"])
    options = parser.parse_args()
    tokenizer = Tokenizer.from_file(str(options.tokenizer))
    tokenizer.no_padding()
    tokenizer.no_truncation()
    options.out.mkdir(parents=True, exist_ok=True)
    if options.dev:
        np.savez(options.out / "dev.npz", **development(tokenizer, options.dev))  # type: ignore[arg-type]
    held = held_runs(options.held)
    print(f"{len(held):,} runs are held back")
    found: dict[bytes, tuple[str, str]] = {}
    dropped: Counter[str] = Counter()
    for path in options.texts:
        with path.open(encoding="utf-8", errors="replace") as lines:
            for line in lines:
                kind, source, text = line.rstrip("\n").split("\t", 2)
                if LEFT_OUT.search(source):
                    dropped["package asked about"] += 1
                else:
                    found[hashlib.blake2b(text[:60].lower().encode(), digest_size=8).digest()] = (kind, text)
    left = {kind: int(number) for kind, number in (each.split("=") for each in options.most)}
    kept: dict[bytes, tuple[str, str]] = {}
    for key in sorted(found):
        kind, text = found[key]
        if left[kind] == 0:
            continue
        if held.isdisjoint(runs(text)):
            kept[key] = found[key]
            left[kind] -= 1
        else:
            dropped[f"shares {RUN} words ({kind})"] += 1
    print(f"{len(kept):,} of {len(found):,} texts, dropped {dict(dropped)}")
    order = sorted(kept)
    tokens: list[np.ndarray] = []
    is_line: list[bool] = []
    counts: Counter[str] = Counter()
    total = 0
    for start in range(0, len(order), 4096):
        part = [kept[key] for key in order[start : start + 4096]]
        for (kind, _), encoding in zip(
            part, tokenizer.encode_batch([text for _, text in part], add_special_tokens=False), strict=True
        ):
            ids = np.array(encoding.ids[:LONGEST], dtype=np.uint16)
            if len(ids) < 3 or (ids == 100).mean() > 0.05:
                continue
            tokens.append(ids)
            is_line.append(kind == "line")
            counts[kind] += 1
            total += len(ids)
    pieces = sorted(tokenizer.get_vocab().items(), key=lambda item: item[1])
    starts_word = np.array([not piece.startswith("##") for piece, _ in pieces])
    lengths = np.array([len(ids) for ids in tokens], dtype=np.uint16)
    np.savez(
        options.out / "texts.npz",
        tokens=np.concatenate(tokens),
        lengths=lengths,
        is_line=np.array(is_line),
        starts_word=starts_word,
    )
    print(f"{len(tokens):,} packed, {total:,} tokens, {dict(counts)}")


def runs(text: str) -> Iterator[int]:
    """A number for each run of words."""
    words = WORD.findall(text.lower())
    for start in range(len(words) - RUN + 1):
        yield hash(tuple(words[start : start + RUN]))


def held_runs(folders: list[Path]) -> set[int]:
    """The runs of everything in the folders that is text."""
    held: set[int] = set()
    for folder in folders:
        for path in sorted(folder.rglob("*")):
            if path.suffix == ".jsonl":
                for line in path.read_text(encoding="utf-8").splitlines():
                    record = json.loads(line)
                    held.update(runs(f"{record.get('title', '')} {record.get('text', '')}"))
            elif path.is_file() and path.suffix != ".onnx" and path.stat().st_size < 3_000_000:
                data = path.read_bytes()
                if b"\0" not in data[:4096]:
                    held.update(runs(data.decode("utf-8", "replace")))
    return held


def development(tokenizer: Tokenizer, folders: list[Path]) -> dict[str, np.ndarray]:
    """Tokens of documents and judged queries of collections in BEIR layout."""
    out: dict[str, np.ndarray] = {}
    for folder in folders:
        docs = [json.loads(line) for line in (folder / "corpus.jsonl").read_text(encoding="utf-8").splitlines()]
        rows = [
            line.split("\t") for line in (folder / "qrels" / "test.tsv").read_text(encoding="utf-8").splitlines()[1:]
        ]
        rows = [row for row in rows if float(row[2]) > 0]
        texts = {
            str(query["_id"]): query["text"]
            for query in map(json.loads, (folder / "queries.jsonl").read_text(encoding="utf-8").splitlines())
        }
        places = {str(doc["_id"]): place for place, doc in enumerate(docs)}
        asked = [query for query in dict.fromkeys(row[0] for row in rows) if query in texts]
        numbers = {query: place for place, query in enumerate(asked)}
        for label, given in (
            ("doc", [f"{doc.get('title', '')} {doc['text']}".strip() for doc in docs]),
            ("query", [texts[query] for query in asked]),
        ):
            encoded = [encoding.ids for encoding in tokenizer.encode_batch(given, add_special_tokens=False)]
            out[f"{folder.name}/{'docs' if label == 'doc' else 'queries'}"] = np.concatenate(
                [np.array(ids, dtype=np.uint16) for ids in encoded]
            )
            out[f"{folder.name}/{label}_lengths"] = np.array([len(ids) for ids in encoded], dtype=np.uint32)
        out[f"{folder.name}/judged"] = np.array(
            [
                (numbers[query], places[doc], float(grade))
                for query, doc, grade in rows
                if query in numbers and doc in places
            ],
            dtype=np.float32,
        )
        print(folder.name, len(docs), len(asked))
    return out


if __name__ == "__main__":
    main()
