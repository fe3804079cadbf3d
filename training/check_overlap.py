"""Drops pairs that share a run of 13 words (or signs, where no spaces stand) with a collection used for evaluation.

python training/check_overlap.py pairs.tsv kept.tsv FOLDER...
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from tongues import is_unspaced, words

RUN = 13


def main() -> None:
    """Write the pairs that share nothing, and say what the others shared with which collection."""
    source, kept, *folders = map(Path, sys.argv[1:])
    held: dict[int, str] = {}
    for folder in folders:
        for name in ("corpus.jsonl", "queries.jsonl"):
            text = (folder / name).read_text(encoding="utf-8")
            for line in text.splitlines():
                held.update((run, folder.name) for run in runs(decoded(line)))
    dropped: Counter[str] = Counter()
    with source.open(encoding="utf-8") as lines, kept.open("w", encoding="utf-8") as out:
        for line in lines:
            _, _, text, english = line.rstrip("\n").split("\t")
            found = next(
                (held[run] for each in (text, english) if len(each) > 20 for run in runs(each) if run in held), None
            )
            if found:
                dropped[found] += 1
            else:
                out.write(line)
    print(f"dropped {sum(dropped.values()):,} pairs: {dict(dropped)}")


def decoded(line: str) -> str:
    """The texts of a record."""
    record = json.loads(line)
    return f"{record.get('title', '')} {record['text']}"


def runs(text: str) -> Iterator[int]:
    """A number for each run of words; every sign of a script without spaces is a word."""
    units = [unit for word in words(text) for unit in (word if is_unspaced(word) else (word,))]
    for start in range(len(units) - RUN + 1):
        yield hash(tuple(units[start : start + RUN]))


if __name__ == "__main__":
    main()
