"""How a keyword leg counts: the parameters of BM25 and the weights of the text fields."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

__all__ = [
    "INFLECTED",
    "IN_A_ROW",
    "NAMED_FILE",
    "NAMED_STEM",
    "OTHER_FORMS",
    "STANDARD_B",
    "STANDARD_K1",
    "Scoring",
    "named_file",
]

STANDARD_K1, STANDARD_B = 1.2, 0.75
"""tantivy's built-in parameters."""

INFLECTED = 0.8
"""Weight of a form that differs from what was typed: better than 1 on all seven development sets, by .001 to .007."""

OTHER_FORMS = 0.2
"""What the weaker forms of a word add to its best form: 1 would reward a chunk for saying a word in many ways.
NDCG@10 on SciFact, a development set: 0 .686, 0.2 .691, 0.4 .687, 0.6 .682, plain sum .663."""

IN_A_ROW = 0.5
"""Weight of a compound found as it was typed, besides that of its terms."""

NAMED_FILE, NAMED_STEM = 1.0, 0.3
"""What a file gains when the query names it, with and without its extension, as a share of all the word can score:
whoever types argparse.py wants that file, not the one that mentions it most."""


def named_file(text: str) -> str:
    """A text as the name of a file, without the line that may stand behind it: `queues.py` of `queues.py:120:5`."""
    return _LINE.sub("", text).strip("/").lower()


_LINE = re.compile(r"(?::\d{1,9}){1,2}:?$")


class Scoring(NamedTuple):
    """Parameters of BM25 and the weight of each field. What has no weight is found only by those who name the field."""

    k1: float = STANDARD_K1
    b: float = STANDARD_B
    weights: Mapping[str, float] = {
        "body": 1.0,
        "title": 0.5,
        "heading": 0.5,
        "path": 0.5,
        "tags": 0.5,
        "name": 0.0,
        "description": 0.5,
    }

    @property
    def is_standard(self) -> bool:
        """Whether tantivy's own scores are right as they are."""
        return (self.k1, self.b) == (STANDARD_K1, STANDARD_B)
