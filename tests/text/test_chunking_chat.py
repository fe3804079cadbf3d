"""Chats: whole messages, filed under who speaks and when."""

from __future__ import annotations

from datetime import datetime

import pytest

from findling.text.chunking.chat_messages import read_messages
from findling.text.chunking.chunk_plan import ChunkPlan
from findling.text.chunking.chunker import chunk_text


def windows(text: str, size: int = 400) -> list[tuple[tuple[str, ...], str]]:
    pieces = chunk_text(text, "chat", ChunkPlan(size=size))
    return [(piece.heading, text[piece.start : piece.end]) for piece in pieces]


@pytest.mark.parametrize(
    ("line", "author", "time"),
    [
        ("[2024-01-02 10:00] Alice: hi", "Alice", datetime(2024, 1, 2, 10, 0)),
        ("[2024-01-02 10:00:59] Alice B. Carroll: hi", "Alice B. Carroll", datetime(2024, 1, 2, 10, 0)),
        ("2024-01-02T10:00:00Z Alice: hi", "Alice", datetime(2024, 1, 2, 10, 0)),
        ("2024-01-02 10:00:00.123+01:00 Alice: hi", "Alice", datetime(2024, 1, 2, 10, 0)),
        ("<alice> hi", "alice", None),
        ("<@alice> hi", "alice", None),
        ("[10:00] <alice> hi", "alice", datetime(1, 1, 1, 10, 0)),
        ("10:00 <alice> hi", "alice", datetime(1, 1, 1, 10, 0)),
        ("02.01.24, 10:00 - Alice: hi", "Alice", datetime(2024, 1, 2, 10, 0)),
        ("[02.01.24, 10:00:05] Alice: hi", "Alice", datetime(2024, 1, 2, 10, 0)),
        ("\u200e[02/01/2024, 10:00:05] Alice: hi", "Alice", datetime(2024, 1, 2, 10, 0)),
        ("1/2/24, 10:00 PM - Alice: hi", "Alice", datetime(2024, 1, 2, 22, 0)),
        ("1/2/24, 12:05\u202fAM - Alice: hi", "Alice", datetime(2024, 1, 2, 0, 5)),
        ("Alice: hi", "Alice", None),
        ("Alice:\nhi", "Alice", None),
        ("31.06.24, 10:00 - Alice: no such day", "Alice", None),
    ],
)
def test_messages_of_many_exports(line: str, author: str, time: datetime | None) -> None:
    (message,) = read_messages(line)
    assert (message.author, message.time, message.start, message.end) == (author, time, 0, len(line))


def test_a_day_above_twelve_tells_how_dates_are_written() -> None:
    times = [message.time for message in read_messages("1/2/24, 10:00 - A: x\n1/13/24, 10:00 - B: y\n")]
    assert times == [datetime(2024, 1, 2, 10, 0), datetime(2024, 1, 13, 10, 0)]


def test_further_lines_belong_to_the_message() -> None:
    text = "[2024-01-02 10:00] Ann: first\nNote: a second line\n\n<b>third</b>\n[2024-01-02 10:01] Bob: yes\n"
    assert [text[m.start : m.end] for m in read_messages(text)] == [text[:64], text[64:]]


def test_windows_hold_whole_messages() -> None:
    lines = [
        f"[2024-01-02 10:{minute:02}] {'Ann' if minute % 2 else 'Bob'}: message number {minute}" for minute in range(40)
    ]
    text = "Exported chat\n\n" + "\n".join(lines)
    parts = windows(text)
    assert "\n".join(body for _, body in parts) == text
    assert all(body.split("\n")[-1] in lines for _, body in parts)
    assert parts[0][0] == ("Bob, Ann", "2024-01-02 10:00 – 10:08")
    assert all(len(body) <= 400 for _, body in parts)


def test_a_long_silence_begins_a_new_window() -> None:
    talk = "a few words to make it no crumb " * 3
    text = f"[2024-01-02 10:00] Ann: {talk}\n[2024-01-02 10:45] Bob: {talk}\n[2024-01-02 11:46] Ann: {talk}\n"
    assert [heading for heading, _ in windows(text, 1000)] == [
        ("Ann, Bob", "2024-01-02 10:00 – 10:45"),
        ("Ann", "2024-01-02 11:46"),
    ]


def test_a_crumb_before_a_silence_goes_along_with_what_follows() -> None:
    text = "[2024-01-02 23:00] Ann: ok\n[2024-01-03 08:00] Bob: good morning\n"
    assert windows(text) == [(("Ann, Bob", "2024-01-02 23:00 – 2024-01-03 08:00"), text.rstrip())]


def test_undated_times_run_over_midnight() -> None:
    talk = "a few words to make it no crumb " * 3
    text = f"[23:50] <ann> {talk}\n[00:10] <bob> {talk}\n[02:00] <ann> {talk}\n"
    assert [heading for heading, _ in windows(text, 600)] == [("ann, bob", "23:50 – 00:10"), ("ann", "02:00")]


def test_only_a_message_larger_than_a_piece_is_cut() -> None:
    text = f"Ann: short\nBob: {'many words ' * 60}\nAnn: oh\n"
    parts = windows(text)
    assert [heading for heading, _ in parts] == [("Ann",), ("Bob",), ("Bob",), ("Ann",)]
    assert parts[1][1].startswith("Bob: many")


def test_three_participants_are_named() -> None:
    text = "\n".join(f"{name}: hello" for name in ("Ann", "Bob", "Cem", "Dora", "Ann"))
    assert windows(text) == [(("Ann, Bob, Cem, …",), text)]


def test_a_text_without_messages_is_cut_like_any_other() -> None:
    text = "no message here. " * 60
    assert [heading for heading, _ in windows(text)] == [(), (), ()]


def test_windows_in_tokens() -> None:
    text = "\n".join(f"[2024-01-02 10:{minute:02}] Ann: unaffable immunoprecipitation" for minute in range(60))
    pieces = chunk_text(text, "chat", ChunkPlan("semantic", 100, 0, "tokens"))
    assert len(pieces) > 10
    assert all(text[piece.end - 3 : piece.end] == "ion" and text[piece.start] == "[" for piece in pieces)


def test_hostile_chats_take_no_longer_than_others() -> None:
    for unit in ("<", "[", "1", "1:", "a ", "a.", "1/", "[2024-01-02 ", "a b c d ", "\n "):
        chunk_text(unit * 20_000, "chat")
