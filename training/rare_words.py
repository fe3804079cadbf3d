"""Make the filter of English words that a model cuts into pieces, from a list with a word a line.

    python training/rare_words.py /usr/share/dict/american-english-large

The list is SCOWL's, as Debian's package wamerican-large has it; data/NOTICE has its licence. The filter is a Bloom
filter of 10 bits a word and 7 hashes: one of 120 other words passes for listed.
"""

from __future__ import annotations

import sys
from hashlib import blake2b
from pathlib import Path

from findling.text.analysis import wordpieces

BITS_A_WORD = 10


def main() -> None:
    lines = Path(sys.argv[1]).read_text(encoding="utf-8").split()
    words = {word.lower() for word in lines if word.isalpha() and word.isascii() and len(word) > 3}
    vocabulary = wordpieces.bert_vocabulary()
    rare = sorted(word for word in words if len(vocabulary.pieces(word)) > 1)
    data = bytearray((BITS_A_WORD * len(rare) + 7) // 8)
    for word in rare:
        digest = blake2b(word.encode(), digest_size=28).digest()
        for at in range(0, 28, 4):
            place = int.from_bytes(digest[at : at + 4], "little") % (8 * len(data))
            data[place >> 3] |= 1 << (place & 7)
    Path(wordpieces.__file__).with_name("data").joinpath("rare-words.bloom").write_bytes(data)
    print(f"{len(rare):,} words, {len(data):,} bytes")


if __name__ == "__main__":
    main()
