"""Plans: sizes in characters, tokens and words; windows of one size and windows that overlap."""

from __future__ import annotations

from itertools import pairwise

import pytest

from findling.domain.resources import Piece
from findling.text.analysis.wordpieces import count_tokens
from findling.text.chunking.chunk_plan import PRESETS, ChunkPlan
from findling.text.chunking.chunker import chunk_outline, chunk_text
from findling.text.chunking.outlines import Outline

SENTENCES = " ".join(f"Sentence number {number} tells of unaffable things." for number in range(300))
KOREAN = " ".join(["데이터베이스 연결이 시간 초과되었습니다."] * 120)
CHINESE = "数据库连接超时，请检查配置。" * 200
CODE = "".join(f"def function_{number}(value):\n    return value + {number}\n\n\n" for number in range(200))


def bodies(text: str, pieces: list[Piece]) -> list[str]:
    return [text[piece.start : piece.end] for piece in pieces]


@pytest.mark.parametrize(
    ("plan", "reason"),
    [
        (ChunkPlan(size=0), "size must be positive, not 0"),
        (ChunkPlan(size=10, overlap=10), "overlap must be at least 0 and below the size 10, not 10"),
        (ChunkPlan(size=10, overlap=-1), "overlap"),
        (ChunkPlan(strategy="clever"), "one of semantic, fixed, overlapping, not 'clever'"),
        (ChunkPlan(unit="bytes"), "one of characters, tokens, words, not 'bytes'"),
    ],
)
def test_a_plan_that_cannot_be_is_refused(plan: ChunkPlan, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        chunk_text("x", "text", plan)
    with pytest.raises(ValueError, match=reason):
        chunk_outline("x", Outline([], []), plan)


@pytest.mark.parametrize("name", PRESETS)
@pytest.mark.parametrize("lang", ["text", "markdown", "python", "chat"])
def test_presets_cut_everything(name: str, lang: str) -> None:
    pieces = chunk_text(SENTENCES, lang, PRESETS[name])
    assert len(pieces) > 1
    assert pieces[0].start == 0
    assert pieces[-1].end == len(SENTENCES)
    assert all(after.start <= before.end + 1 for before, after in pairwise(pieces))


@pytest.mark.parametrize("text", [SENTENCES, KOREAN, CHINESE, "0af" * 3000, "x" * 500])
@pytest.mark.parametrize("strategy", ["semantic", "fixed", "overlapping"])
def test_no_piece_of_prose_has_more_tokens_than_planned(text: str, strategy: str) -> None:
    pieces = chunk_text(text, "text", ChunkPlan(strategy, 100, 20, "tokens"))
    assert max(map(count_tokens, bodies(text, pieces))) <= 100


@pytest.mark.parametrize("text", [SENTENCES, KOREAN, CHINESE])
def test_windows_in_tokens_are_filled(text: str) -> None:
    counts = [
        count_tokens(body) for body in bodies(text, chunk_text(text, "text", ChunkPlan("fixed", 100, 0, "tokens")))
    ]
    assert min(counts[:-2]) >= 70


def test_a_section_that_just_fits_stays_whole() -> None:
    text = "word " * 100
    assert len(chunk_text(text, "text", ChunkPlan("semantic", 100, 0, "tokens"))) == 1
    assert len(chunk_text(text + "word", "text", ChunkPlan("semantic", 100, 0, "tokens"))) == 2


def test_an_edit_in_a_text_of_many_tokens_leaves_the_other_cuts_where_they_are() -> None:
    plan = ChunkPlan("semantic", 100, 0, "tokens")
    before = chunk_text(CHINESE, "text", plan)
    after = chunk_text(CHINESE + "再见。", "text", plan)
    assert after[: len(before) - 2] == before[:-2]


def test_code_is_sized_in_characters() -> None:
    in_tokens = chunk_text(CODE, "python", ChunkPlan("semantic", 100, 0, "tokens"))
    assert in_tokens == chunk_text(CODE, "python", ChunkPlan("semantic", 500, 0, "characters"))


def test_windows_in_words() -> None:
    text = "word " * 1000
    sizes = [len(body.split()) for body in bodies(text, chunk_text(text, "text", ChunkPlan("fixed", 220, 0, "words")))]
    assert sizes[:3] == [220, 220, 220]
    assert sum(sizes) == 1000


def test_fixed_windows_end_near_their_size_at_a_sentence() -> None:
    pieces = bodies(SENTENCES, chunk_text(SENTENCES, "text", ChunkPlan("fixed", 500)))
    assert all(375 <= len(body) <= 500 and body.endswith(".") for body in pieces[:-2])


def test_fixed_windows_run_over_sections_and_say_what_these_share() -> None:
    filler = "Some words that fill the section.\n"
    text = f"# Guide\n\n{filler}\n## One\n\n{filler}\n## Two\n\n{filler * 9}"
    headings = [piece.heading for piece in chunk_text(text, "markdown", ChunkPlan("fixed", 150))]
    assert headings == [("Guide",), ("Guide", "Two"), ("Guide", "Two")]
    assert {piece.heading for piece in chunk_text(CODE, "python", ChunkPlan("fixed", 500))} == {()}


@pytest.mark.parametrize("unit", ["characters", "tokens", "words"])
def test_overlapping_windows_begin_with_the_end_of_the_one_before(unit: str) -> None:
    size, overlap = {"characters": (500, 120), "tokens": (100, 30), "words": (80, 20)}[unit]
    pieces = chunk_text(SENTENCES, "text", ChunkPlan("overlapping", size, overlap, unit))
    for before, after in pairwise(pieces):
        assert before.start < after.start < before.end < after.end
        assert SENTENCES[after.start :].startswith("Sentence")
        assert SENTENCES[after.start : before.end].endswith(".")


def test_an_overlap_begins_at_a_word_where_no_sentence_does() -> None:
    text = "alpha beta gamma delta " * 100
    for before, after in pairwise(chunk_text(text, "text", ChunkPlan("overlapping", 200, 30))):
        assert 20 <= before.end - after.start <= 30
        assert text[after.start - 1] == " "


def test_an_overlap_without_spaces_begins_between_characters() -> None:
    pieces = chunk_text("数" * 500, "text", ChunkPlan("overlapping", 100, 20))
    assert [before.end - after.start for before, after in pairwise(pieces)] == [20] * (len(pieces) - 1)


def test_a_long_word_has_no_overlap() -> None:
    pieces = chunk_text("x" * 500, "text", ChunkPlan("overlapping", 100, 20))
    assert all(before.end == after.start for before, after in pairwise(pieces))


@pytest.mark.parametrize("strategy", ["fixed", "overlapping"])
def test_blocks_stay_whole_in_windows_of_one_size(strategy: str) -> None:
    fence = "```\n" + "code line\n\n" * 20 + "```"
    text = f"Before the code. And so on.\n\n{fence}\n\n" + SENTENCES
    pieces = chunk_text(text, "markdown", ChunkPlan(strategy, 150, 60))
    edges = {edge for piece in pieces for edge in piece[:2]}
    start = text.index(fence)
    assert not any(start < edge < start + len(fence) for edge in edges)


def test_the_parts_of_a_table_carry_its_header_in_every_strategy() -> None:
    text = "| name | price |\n|---|---|\n" + "\n".join(f"| item {number} | {number} |" for number in range(60))
    for strategy in ("semantic", "fixed", "overlapping"):
        first, *others = chunk_text(text, "markdown", ChunkPlan(strategy, 200, 40))
        assert first.heading == ()
        assert {piece.heading for piece in others} == {("name | price",)}
