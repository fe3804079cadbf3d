"""Draws from collected pairs what the fit sees: a share of every language and source, large languages more than others.

    python training/select_tongues.py pairs.tsv... --out drawn.tsv

The pairs of a language and source stand in the order of their digests, so the first are a fair share. Names, words and
prose give more than the labels of programs, of which every language has hundreds of thousands.
"""

from __future__ import annotations

import argparse
from collections import Counter
from pathlib import Path

LARGE = frozenset("de es fr zh ja ko ru it pt pl nl tr ar".split())
USUAL = LARGE | frozenset(
    "bg bn ca cs da el en fa fi he hi hr hu id lt lv nb ro sk sl sr sv ta th uk vi zh-tw".split(),
)

SHARES = {
    "dictionary-freedict": (0, 3_600, 12_000, 27_000),
    "dictionary": (160_000,) * 4,
    "wordnet": (0, 1_200, 12_000, 24_000),
    "cldr": (0, 2_700, 4_200, 4_800),
    "names": (12_000,) * 4,
    "places": (0, 600, 2_100, 3_600),
    "prose": (0, 720, 2_700, 5_400),
    "labels": (0, 54, 180, 360),
}
"""Pairs of a source for a language that is not drawn, small, usual, large."""

PLACES = tuple(
    f"catalogue-{name}"
    for name in (
        "iso-codes libgweather kgeography marble kalzium tzdata libkf5unit libkf5holidays khangman kanagram"
        " libkf5kdelibs step parley"
    ).split()
)
PROSE = (
    *(f"catalogue-{name}" for name in "wesnoth cataclysm freeciv gcompris gramps orca gnucash evolution".split()),
    *"ddtp libreoffice-help gnome-user-docs catalogue-gnome-user quran rights installation-guide".split(),
)
LONGEST, LONGEST_ENGLISH, SHORTEST_TEXT = 260, 220, 8


def main() -> None:
    """Write the pairs in the order of their English, which packs best."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pairs", type=Path, nargs="+")
    parser.add_argument("--languages", type=Path, required=True, help="the codes to be drawn, a line each")
    parser.add_argument("--out", type=Path, required=True)
    where = parser.parse_args()
    kept = USUAL | frozenset(where.languages.read_text(encoding="utf-8").split())
    drawn: Counter[tuple[str, str]] = Counter()
    found: set[tuple[str, str, str, str]] = set()
    for path in where.pairs:
        with path.open(encoding="utf-8") as lines:
            for line in lines:
                language, source, text, english = line.rstrip("\n").split("\t")
                kind = kind_of(source)
                size = 3 if language in LARGE else 2 if language in USUAL else 1 if language in kept else 0
                if drawn[language, source] >= SHARES[kind][size] or not size or too_long(kind, text, english):
                    continue
                drawn[language, source] += 1
                found.add((english, language, source, text))
    with where.out.open("w", encoding="utf-8") as out:
        out.writelines(
            f"{language}\t{source}\t{text}\t{english}\n" for english, language, source, text in sorted(found)
        )
    print(f"{len(found):,} pairs")


def kind_of(source: str) -> str:
    """What a source gives."""
    for kind in ("dictionary-freedict", "dictionary", "wordnet", "cldr", "names"):
        if source.startswith(kind):
            return kind
    return "places" if source.startswith(PLACES) else "prose" if source.startswith(PROSE) else "labels"


def too_long(kind: str, text: str, english: str) -> bool:
    """Whether a pair is too long, or too short for a text."""
    long = len(english) > LONGEST_ENGLISH or len(text) > LONGEST
    return long or (kind in ("prose", "labels") and len(english) < SHORTEST_TEXT)


if __name__ == "__main__":
    main()
