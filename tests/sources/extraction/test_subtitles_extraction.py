"""Subtitles of all kinds as lines with their times."""

from __future__ import annotations

import re

import pytest

from findling.sources.documents.data.subtitles import extract
from findling.sources.extracted import Extracted, Source
from findling.sources.files.file_text import UnreadableError


def read(text: str, name: str) -> Extracted:
    return extract(Source(text.encode(), name))


def cues(extracted: Extracted) -> list[tuple[str, int, str]]:
    """Label and line of every place, and the text line that begins there."""
    return [(place.label, place.line, extracted.text[place.start :].split("\n", 1)[0]) for place in extracted.places]


SRT = """1
00:00:01,000 --> 00:00:02,500
<i>Hello</i> there,
{\\an8}old friend.

2
00:00:02,600 --> 00:00:04,000
<font color="#fff">Second</font> &amp; last

3
01:02:03,000 --> 01:02:04,000
After a pause
"""


def test_srt() -> None:
    extracted = read(SRT, "a.srt")
    assert cues(extracted) == [
        ("00:00:01", 3, "Hello there, old friend."),
        ("00:00:02", 8, "Second & last"),
        ("01:02:03", 12, "After a pause"),
    ]
    assert re.split(r"\n{2,}", extracted.text) == ["Hello there, old friend.\nSecond & last", "After a pause"]


def test_srt_with_other_line_ends_and_missing_or_extra_empty_lines() -> None:
    text = (
        "1\r\n00:00:01,000 --> 00:00:02,000\r\none\r\n2\r\n00:00:02,000 --> 00:00:03,000\r\ntwo\r\n\r\nmore\r\n42\r\n"
    )
    assert [cue[2] for cue in cues(read(text, "a.srt"))] == ["one", "two more 42"]


def test_vtt_with_speakers_notes_and_styles() -> None:
    text = """WEBVTT - Some title

NOTE nobody says this

STYLE
::cue { color: red }

intro
00:01.000 --> 00:04.000 align:start position:0%
<v.loud Mary Ann>Hi <00:02.000><c.yellow>you</c></v>
- And 2 < 3

NOTE
neither this

00:04.500 --> 00:06.000
<v Bob>Bye
"""
    assert cues(read(text, "a.vtt")) == [
        ("00:00:01", 10, "Mary Ann: Hi you - And 2 < 3"),
        ("00:00:04", 17, "Bob: Bye"),
    ]


def test_captions_that_roll_up_are_said_once() -> None:
    shown = [
        ("00:00:00.000 --> 00:00:02.000", " \nwelcome<00:00:01.000><c> to</c>"),
        ("00:00:02.000 --> 00:00:02.010", "welcome to\n "),
        ("00:00:02.010 --> 00:00:04.000", "welcome to\nthe show"),
        ("00:00:04.000 --> 00:00:04.010", "the show\n "),
        ("00:00:09.000 --> 00:00:10.000", "the show"),
    ]
    text = "WEBVTT\n\n" + "".join(f"{times}\n{words}\n\n" for times, words in shown)
    assert read(text, "a.vtt").text == "welcome to\nthe show\n\nthe show"


def test_captions_that_grow_are_kept_in_full_only() -> None:
    text = "".join(
        f"{number}\n00:00:0{number},000 --> 00:00:0{number + 1},000\n{words}\n\n"
        for number, words in enumerate(["we", "we the", "we the people", "weather"], start=1)
    )
    assert read(text, "a.srt").text == "we the people\nweather"


def test_sbv() -> None:
    text = "0:00:01.500,0:00:03.000\nFirst line\nand more\n\n0:01:05.000,0:01:06.000\nLater\n"
    assert cues(read(text, "a.sbv")) == [("00:00:01", 2, "First line and more"), ("00:01:05", 6, "Later")]


def test_ass() -> None:
    text = (
        "[Script Info]\nTitle: The Film\n\n[V4+ Styles]\nFormat: Name, Fontname\nStyle: Default,Arial\n\n[Events]\n"
        "Format: Layer, Start, End, Style, Name, MarginL, MarginR, MarginV, Effect, Text\n"
        "Dialogue: 0,0:00:05.00,0:00:06.00,Default,,0,0,0,,Later, with a comma\n"
        "Dialogue: 0,0:00:01.00,0:00:03.00,Default,Ann,0,0,0,,{\\i1}Hello{\\i0}\\Nworld{\\p1}m 0 0 l 9 9{\\p0}!\n"
        "Comment: 0,0:00:03.00,0:00:04.00,Default,,0,0,0,,not shown\n"
    )
    extracted = read(text, "a.ass")
    assert extracted.title == "The Film"
    assert cues(extracted) == [("00:00:01", 11, "Ann: Hello world!"), ("00:00:05", 10, "Later, with a comma")]


def test_lrc() -> None:
    text = "[ti:Song]\n[ar:Singer]\n[al:Album]\n\n[00:12.00][00:30.00]Chorus <00:13.00>line\n[00:20.50]Verse\n"
    extracted = read(text, "a.lrc")
    assert (extracted.title, extracted.author) == ("Song", "Singer")
    assert cues(extracted) == [
        ("00:00:12", 5, "Chorus line"),
        ("00:00:20", 6, "Verse"),
        ("00:00:30", 5, "Chorus line"),
    ]


def test_lyrics_without_times_are_kept() -> None:
    extracted = read("First\n\nSecond\n", "a.lrc")
    assert cues(extracted) == [("", 1, "First"), ("", 3, "Second")]


def test_the_text_stops_at_the_limit() -> None:
    extracted = extract(Source(SRT.encode(), "a.srt", limit=10))
    assert extracted.text == "Hello ther"
    assert "truncated" in extracted.fields


@pytest.mark.parametrize("text", ["", "WEBVTT\n\n", "1\n00:00:01,000 --> 00:00:02,000\n\n"])
def test_a_file_without_words(text: str) -> None:
    with pytest.raises(UnreadableError, match="no-text"):
        read(text, "a.srt")
