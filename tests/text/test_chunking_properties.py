"""Thousands of texts from a seeded generator: what holds for every strategy, unit and language."""

from __future__ import annotations

import random
import unicodedata
from itertools import pairwise

import pytest

from findling.domain.resources import Piece
from findling.text.analysis.lines import with_plain_breaks
from findling.text.analysis.wordpieces import count_tokens
from findling.text.chunking.chunk_plan import STRATEGIES, UNITS, ChunkPlan
from findling.text.chunking.chunker import chunk_outline, chunk_text
from findling.text.chunking.code_grammars import CODE_LANGS
from findling.text.chunking.outlines import OUTLINES, Heading, Outline
from findling.text.chunking.windows import BLOCK_CEILING
from tests.counts import tries

TEXTS = tries(10_000, short=1_000)
ROUNDS = tries(20, short=4)
LANGS = [*sorted(OUTLINES), "python", "rust", "javascript", "java", "text", "chat", "yaml", "no such language"]
CHARACTERS = {"characters": 1, "tokens": 5, "words": 10}

FRAGMENTS = [
    *["\n", "\n\n", "\r\n", "\r\n\r\n", "\r", "\n \n", " ", "    ", "\t", "\x0c", "\u2028", "\x00", "\u00a0", "\x85"],
    *["# Title\n", "\n## Sub\n\n", "Title\n=====\n", "---\n", "== A\n", "* Org\n", "#+BEGIN_SRC\n", "#+END_SRC\n"],
    *["\n```\n", "\n```\ncode\n\nmore code\n```\n", "\n~~~\nx\n~~~\n", "\n----\n", "key: value\n"],
    *["def f(x):\n", "class A:\n", "    def m(self):\n", "function f() {\n", "}\n", "pub fn f() {\n", "// note\n"],
    *["| a | b |\n|---|---|\n", "| 1 | 2 |\n", "| 1 | 2 |\n" * 9, "[2024-01-02 10:00] Ann: hi\n", "<bob> yes\n"],
    *["2024-01-02T13:30:00Z Cem: text\n", "Dora: well\n", "word ", "A sentence. ", "Really? ", "word " * 30],
    *[
        "日本語。",
        "数据库连接超时",
        "안녕하세요 ",
        "e\u0301",
        "👩\u200d👩\u200d👧",
        "🇩🇪",
        "naïve ",
        "x" * 50,
        "y" * 130,
        "0af" * 40,
    ],
    *["\ud83d\ude00", "ne\u0301e ", "ก็", "unaffable", "a_b.c(d)[e]{f}", "\u0bca" * 3],
]


def random_text(rng: random.Random) -> str:
    return "".join(rng.choices(FRAGMENTS, k=rng.randrange(1, 50)))


def random_plan(rng: random.Random) -> ChunkPlan:
    unit = rng.choice(UNITS)
    size = rng.randrange(*{"characters": (40, 300), "tokens": (12, 90), "words": (8, 60)}[unit])
    return ChunkPlan(rng.choice(STRATEGIES), size, rng.randrange(size // 2), unit)


@pytest.mark.parametrize("seed", range(ROUNDS))
def test_pieces_of_random_texts(seed: int) -> None:
    rng = random.Random(seed)
    for _ in range(TEXTS // ROUNDS):
        text, plan, lang = random_text(rng), random_plan(rng), rng.choice(LANGS)
        check(text, lang, plan, chunk_text(text, lang, plan))


@pytest.mark.parametrize("seed", range(5))
def test_pieces_of_random_outlines(seed: int) -> None:
    rng = random.Random(seed)
    for _ in range(100):
        text, plan = random_text(rng), random_plan(rng)
        starts = sorted(rng.sample(range(len(text)), min(len(text), rng.randrange(6))))
        outline = Outline([Heading(start, rng.randrange(1, 4), f"title {start}") for start in starts], [])
        check(text, "text", plan, chunk_outline(text, outline, plan))


def check(text: str, lang: str, plan: ChunkPlan, pieces: list[Piece]) -> None:
    case = (text, lang, plan, pieces)
    reached = 0
    for piece in pieces:
        assert 0 <= piece.start < piece.end <= len(text), case
        assert not text[reached : max(piece.start, reached)].strip(), case
        assert text[piece.start : piece.end].strip(), case
        reached = max(reached, piece.end)
    assert not text[reached:].strip(), case
    for before, piece in pairwise(pieces):
        check_overlap(text, plan, before, piece, case)
    inside = blocks_of(text, lang, plan)
    for edge in {edge for piece in pieces for edge in piece[:2]}:
        assert not is_torn(text, edge), (edge, case)
        assert not any(start < edge < end for start, end in inside), (edge, case)
    for piece in pieces:
        assert all(0 < len(step) <= 120 for step in piece.heading), case
        if not any(start < piece.end and end > piece.start for start, end in blocks_of(text, lang, None)):
            check_size(text[piece.start : piece.end], lang, plan, case)


def check_overlap(text: str, plan: ChunkPlan, before: Piece, piece: Piece, case: object) -> None:
    shared = text[piece.start : before.end]
    assert before.start < piece.start and before.end < piece.end, case
    if plan.strategy != "overlapping":
        assert not shared, case
    elif shared:
        assert measured(shared, plan.unit) <= plan.overlap, case
        assert (
            text[piece.start - 1].isspace()
            or piece.start == 0
            or text[piece.start] >= "\u2e80"
            or (text[piece.start - 1] in "。！？")
        ), case


def check_size(body: str, lang: str, plan: ChunkPlan, case: object) -> None:
    if plan.strategy == "semantic" and lang in CODE_LANGS:
        assert len(body) <= plan.size * CHARACTERS[plan.unit], case
    else:
        assert measured(body, plan.unit) <= plan.size, (body, case)


def measured(body: str, unit: str) -> int:
    if unit == "words":
        return len(body.split())
    return count_tokens(body) if unit == "tokens" else len(body)


def blocks_of(text: str, lang: str, plan: ChunkPlan | None) -> list[tuple[int, int]]:
    """The fenced blocks of the text; with a plan only those that have to stay whole under it."""
    if lang not in OUTLINES:
        return []
    plain = with_plain_breaks(text.replace("\r\n\r\n", "  \n\n"))
    blocks = [(start, start + len(text[start:end].rstrip())) for start, end in OUTLINES[lang](plain).blocks]
    if plan is None:
        return blocks
    # Texts that take many tokens have a lower ceiling; an eighth is the least that these fragments lead to.
    ceiling = BLOCK_CEILING * plan.size * CHARACTERS[plan.unit] // (8 if plan.unit == "tokens" else 1)
    overlap = plan.overlap if plan.strategy == "overlapping" else 0
    ceiling = ceiling * (plan.size - overlap) // plan.size
    return [(start, end) for start, end in blocks if end - start <= ceiling]


def is_torn(text: str, position: int) -> bool:
    """Whether a cut here parts a letter from its mark or the halves of a pair, where a better place was near."""
    if not 0 < position < len(text) or text[position - 1].isspace():
        return False
    return unicodedata.category(text[position]) in ("Mn", "Mc", "Me") or (
        "\ud800" <= text[position - 1] <= "\udbff" and "\udc00" <= text[position] <= "\udfff"
    )
