"""RTF: characters of many encodings, and which groups are text."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime

import pytest

from findling.sources.documents.legacy.rtf import extract
from findling.sources.extracted import Extracted, Source
from findling.sources.files.file_text import UnreadableError


def text_of(body: str, *, head: str = r"\ansi\ansicpg1252") -> str:
    return extract(Source(f"{{\\rtf1{head} {body}}}".encode("latin-1"), "note.rtf")).text


def test_paragraphs_lines_and_literal_characters() -> None:
    assert text_of(r"One \{brace\} and a back\\slash.\par Two\line three\par") == (
        "One {brace} and a back\\slash.\n\nTwo\nthree"
    )


def test_line_ends_of_the_file_are_not_text() -> None:
    assert text_of("One wo\r\nrd.\\par") == "One word."


@pytest.mark.parametrize(
    ("body", "text"),
    [
        (r"caf\'e9", "café"),
        (r"{\fonttbl{\f1\fcharset204 Arial;}}\f1 \'cf\'f0\'e8", "При"),
        (r"{\fonttbl{\f1\fcharset128 MS Gothic;}}\f1 \'93\'8c\'8b\'9e", "東京"),
        (r"{\fonttbl{\f1\fcharset128 MS Gothic;}}\f1 \'94N", "年"),  # the second byte is a letter
        (r"{\fonttbl{\f1\cpg1250 Arial;}}{\f1 \'b3}\'b3", "ł³"),  # the end of a group brings the old font back
        (r"\u8364?5", "€5"),
        (r"\uc2\u24180\'94\'4e!", "年!"),
        (r"\uc0\u24180 x", "年x"),
        (r"\u-10179?\u-8704?", "\U0001f600"),
        (r"half \u-10240? pair", "half  pair"),
        (r"don\rquote t \endash  now\emdash", "don’t – now—"),
        (r"soft\-hyphen hard\_hyphen no\~break", "softhyphen hard‑hyphen no\u00a0break"),
    ],
)
def test_characters(body: str, text: str) -> None:
    assert text_of(body + r"\par") == text


def test_other_default_encodings() -> None:
    assert text_of(r"\'8e", head=r"\mac") == "é"
    assert text_of(r"\'82", head=r"\pc") == "é"
    assert text_of(r"\'c3\'a9", head=r"\ansi\ansicpg65001") == "é"


def test_tables_become_rows() -> None:
    table = r"\trowd\cellx1\cellx2\pard\intbl Name\cell Price\par in euros\cell\row\intbl Tea\cell 3\cell\cell\row"
    assert text_of(rf"Before\par {table}\pard After\par") == (
        "Before\n\nName | Price in euros\nTea | 3\n\nAfter"
    )  # fmt: skip


def test_headings_by_outline_level_and_by_style() -> None:
    styles = r"{\stylesheet{\s1\outlinelevel0 heading 1;}{\s2\outlinelevel1 heading 2;}}"
    body = styles + r"\pard\s1 First\par\pard Text\par\pard\s2 Second\par\pard\outlinelevel2 Third\par"
    extracted = extract(Source(rf"{{\rtf1\ansi {body}}}".encode(), "note.rtf"))
    assert [(heading.level, heading.title) for heading in extracted.headings] == [
        (1, "First"), (2, "Second"), (3, "Third"),
    ]  # fmt: skip
    assert extracted.text == "First\n\nText\n\nSecond\n\nThird"
    assert extracted.title == "First"


def test_of_fields_the_result_is_text() -> None:
    field = r'{\field{\*\fldinst HYPERLINK "http://example.org"}{\fldrslt the site}}'
    assert text_of(rf"See {field}.\par") == "See the site."


def test_notes_comments_boxes_and_page_headers_follow_the_text_once() -> None:
    body = (
        r"{\headerl Our company\par}{\headerr Our company\par}"
        r"A claim{\footnote A source.} and more{\*\atnauthor Ann}{\*\annotation{\*\atndate 1}Is it so?}.\par"
        r"{\shp{\*\shpinst{\sp{\sn name}{\sv 1}}{\shptxt In a box\par}}}"
    )
    assert text_of(body) == "A claim and more.\n\nOur company\n\nA source.\n\nIs it so?\n\nIn a box"


def test_pictures_hidden_and_deleted_text_and_unknown_groups_are_left_out() -> None:
    body = r"a{\pict\pngblip 89504e47}b{\*\unknown secret}c{\v hidden}d{\deleted gone}e"
    assert text_of(body + r"{\object{\*\objdata 0102}{\result f}}") == "abcdef"


def test_binary_data_is_passed_over_whatever_it_holds() -> None:
    assert text_of(r"a{\pict\bin5 }}{\x}b") == "ab"


def test_text_that_comes_twice_for_old_readers_is_read_once() -> None:
    assert text_of(r"{\upr{old}{\*\ud{new \u24180?}}} end") == "new 年 end"


def test_list_numbers_stay() -> None:
    assert text_of(r"{\listtext 1.\tab}one\par{\pntext 2.\tab}two\par") == "1.\tone\n\n2.\ttwo"


def test_what_the_document_says_about_itself() -> None:
    info = (
        r"{\info{\title A \'84Title\'93}{\author Ann}{\keywords tea}{\*\company X}"
        r"{\creatim\yr2012\mo3\dy4\hr5\min6}{\revtim\yr2013\mo13\dy4}}"
    )
    extracted = extract(Source(rf"{{\rtf1\ansi {info}Text}}".encode(), "note.rtf"))
    assert (extracted.text, extracted.title, extracted.author) == ("Text", "A „Title“", "Ann")
    assert extracted.created_at == datetime(2012, 3, 4, 5, 6, tzinfo=UTC).timestamp()
    assert extracted.updated_at is None  # there is no month 13
    assert extracted.fields == {"keywords": "tea"}


def test_html_wrapped_into_rtf_is_read_as_html() -> None:
    body = (
        r"\fromhtml1 {\*\htmltag19 <html>}{\*\htmltag50 <body>}{\*\htmltag64 <h1>}\htmlrtf {\b \htmlrtf0 News"
        r"\htmlrtf }\htmlrtf0 {\*\htmltag72 </h1>}{\*\htmltag64 <p>}caf\'e9 {\*\htmltag84 &amp;}\htmlrtf &\htmlrtf0"
        r"  tea"
        r"{\*\mhtmltag84 <img>}{\*\htmltag72 </p>}{\*\htmltag58 </body></html>}"
    )
    extracted = extract(Source(rf"{{\rtf1\ansi\ansicpg1252{body}}}".encode(), "mail.rtf"))
    assert extracted.text == "News\n\ncafé & tea"
    assert [heading.title for heading in extracted.headings] == ["News"]


def test_a_file_that_is_cut_off_gives_what_is_there() -> None:
    assert extract(Source(rb"{\rtf1\ansi{\b One\par Two \\"[:-1], "note.rtf")).text == "One\n\nTwo"


@pytest.mark.parametrize(
    ("data", "reason"), [(b"Dear Sir", "damaged"), (b"{\\rtf1\\ansi}", "no-text"), (b"{\\rtf1{\\pict 00}}", "no-text")]
)
def test_files_without_text(data: bytes, reason: str) -> None:
    with pytest.raises(UnreadableError) as caught:
        extract(Source(data, "note.rtf"))
    assert caught.value.reason == reason


def test_a_limit_stops_the_reading() -> None:
    extracted = extract(Source(rb"{\rtf1 " + rb"word \par " * 1000 + b"}", "note.rtf", limit=100))
    assert len(extracted.text) <= 100
    assert "truncated" in extracted.fields


def test_endless_groups_do_no_harm() -> None:
    assert extract(Source(b"{\\rtf1 a" + b"{" * 200_000 + b"b" + b"}" * 200_000 + b"c}", "note.rtf")).text == "abc"


def test_damage(survives_damage: Callable[[Callable[[Source], Extracted], bytes, str], None]) -> None:
    sample = (
        rb"{\rtf1\ansi\ansicpg1252{\fonttbl{\f1\fcharset128 MS Gothic;}}{\info{\title T}{\creatim\yr2012\mo3}}"
        rb"\pard\outlinelevel0 Head\par \trowd\intbl a\cell b\cell\row\pard\f1 \'93\'8c"
        rb" \u8364? {\pict\bin3 abc}{\footnote n}\par}"
    )
    survives_damage(extract, sample, "note.rtf")


def test_a_star_speaks_of_its_group_only_at_its_start() -> None:
    data = rb"{\rtf1\ansi One \*\foo two{\*\secret gone}{\b three \*\bar four}\par five}"
    assert extract(Source(data, "note.rtf")).text == "One twothree four\n\nfive"
