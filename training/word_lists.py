"""Writes the words of wordfreq's lists: language, word, and frequency in hundredths of a power of ten below 1.

    python training/word_lists.py WORDFREQ_DATA words.tsv --most 20000

Needs msgpack.
"""

from __future__ import annotations

import argparse
import gzip
from pathlib import Path

import msgpack


def main() -> None:
    """The largest list of each language, the frequent words first."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--most", type=int, default=20_000)
    where = parser.parse_args()
    lists: dict[str, Path] = {}
    for kind in ("small", "large"):
        lists.update((path.name.split("_")[1].split(".")[0], path) for path in where.data.glob(f"{kind}_*.msgpack.gz"))
    with where.out.open("w", encoding="utf-8") as out:
        for language, path in sorted(lists.items()):
            groups = msgpack.unpackb(gzip.decompress(path.read_bytes()), raw=False)[1:]
            words = [(word, hundredths) for hundredths, group in enumerate(groups) for word in group]
            out.writelines(f"{language}\t{word}\t{hundredths}\n" for word, hundredths in words[: where.most])


if __name__ == "__main__":
    main()
