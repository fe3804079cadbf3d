"""Word 97 documents, built byte by byte."""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import NamedTuple

import pytest

from findling.sources.documents.legacy.word97 import extract
from findling.sources.extracted import Extracted, Source
from findling.sources.files.file_text import UnreadableError

Writer = Callable[[Mapping[str, bytes]], bytes]
TEXT_START = 1024
IN_TABLE, ENDS_ROW = b"\x16\x24\x01", b"\x17\x24\x01"


class Style(NamedTuple):
    """The style of a paragraph and the changes to it."""

    number: int = 0
    changes: bytes = b""


def streams(
    text: str,
    *,
    beside: Mapping[int, str] | None = None,
    wide_from: int = 10_000,
    styles: list[Style] | None = None,
    hidden: tuple[int, int] | None = None,
    flags: int = 0x0200,
) -> dict[str, bytes]:
    """A document whose characters take one byte each up to `wide_from`, then two; `beside` are its other texts."""
    whole = text + "".join(text for _, text in sorted((beside or {}).items()))
    narrow, wide = whole[:wide_from], whole[wide_from:]
    raw = narrow.encode("cp1252")
    raw += b"\0" * (len(raw) % 2)
    wide_start = TEXT_START + len(raw)
    pieces = [(len(narrow), TEXT_START * 2 | 1 << 30), (len(wide), wide_start)]
    pieces = [piece for piece in pieces if piece[0]]
    starts = [sum(count for count, _ in pieces[:index]) for index in range(len(pieces) + 1)]
    table = struct.pack(f"<{len(starts)}I", *starts) + b"".join(struct.pack("<HIH", 0, at, 0) for _, at in pieces)
    clx = b"\x01\x02\x00xy" + b"\x02" + struct.pack("<I", len(table)) + table
    main = bytearray(TEXT_START) + raw + wide.encode("utf-16-le")
    struct.pack_into("<HH", main, 0, 0xA5EC, 0xC1)
    struct.pack_into("<H", main, 10, flags)
    struct.pack_into("<I", main, 0x4C, len(text))
    for number, other in (beside or {}).items():
        struct.pack_into("<I", main, 0x4C + 4 * number, len(other))
    struct.pack_into("<II", main, 0x1A2, 0, len(clx))
    if styles is not None:
        layout = page_of_styles(whole, styles, wide_from, wide_start)
        main += bytes(-len(main) % 512)
        struct.pack_into("<II", main, 0x102, len(clx), 12)
        clx += struct.pack("<III", TEXT_START, TEXT_START + 10_000, len(main) // 512)
        main += layout
    if hidden is not None:
        main += bytes(-len(main) % 512)
        struct.pack_into("<II", main, 0xFA, len(clx), 12)
        clx += struct.pack("<III", TEXT_START, TEXT_START + 10_000, len(main) // 512)
        main += page_of_hidden_characters(*(offset_of(index, wide_from, wide_start) for index in hidden))
    return {"WordDocument": bytes(main), "1Table": clx}


def offset_of(index: int, wide_from: int, wide_start: int) -> int:
    return TEXT_START + index if index < wide_from else wide_start + 2 * (index - wide_from)


def page_of_hidden_characters(start: int, end: int) -> bytes:
    page = bytearray(512)
    page[511] = 3
    struct.pack_into("<4I", page, 0, TEXT_START, start, end, TEXT_START + 10_000)
    page[17] = 500 // 2  # only the second run differs from its style
    page[500:507] = b"\x06\x35\x08\x01\x00\x08\x81"  # bold and deleted
    return bytes(page)


def page_of_styles(text: str, styles: list[Style], wide_from: int, wide_start: int) -> bytes:
    ends = [index + 1 for index, char in enumerate(text) if char in "\r\x07"][: len(styles)]
    bounds = [offset_of(index, wide_from, wide_start) for index in (0, *ends)]
    page = bytearray(512)
    page[511] = len(styles)
    struct.pack_into(f"<{len(bounds)}I", page, 0, *bounds)
    at = 510
    for index, style in enumerate(styles):
        properties = struct.pack("<H", style.number) + style.changes
        size = (len(properties) + 2) // 2
        at = (at - 2 * size) // 2 * 2
        page[at : at + 1 + len(properties)] = bytes((size,)) + properties
        page[4 * len(bounds) + 13 * index] = at // 2
    return bytes(page)


def summary(code_page: int, title: bytes, author: bytes, created: int) -> bytes:
    values = [
        (1, struct.pack("<IHH", 2, code_page, 0)),
        (2, struct.pack("<II", 30, len(title)) + title),
        (4, struct.pack("<II", 30, len(author)) + author),
        (12, struct.pack("<IQ", 64, created)),
    ]
    offset = 8 + 8 * len(values)
    index = content = b""
    for number, value in values:
        index += struct.pack("<II", number, offset + len(content))
        content += value
    return bytes(44) + struct.pack("<I", 48) + struct.pack("<II", offset + len(content), len(values)) + index + content


def test_text_of_both_widths_in_order(compound_file: Writer) -> None:
    text = "Café “one”.\rZwei: Привет 東京.\rDrei\x0bvier.\r"
    extracted = extract(Source(compound_file(streams(text, wide_from=14)), "old.doc"))
    assert extracted.text == "Café “one”.\n\nZwei: Привет 東京.\n\nDrei\nvier."


def test_of_fields_the_result_is_text(compound_file: Writer) -> None:
    link = '\x13 HYPERLINK "x" \\o "\x13 PAGE \x14 9\x15" \x14the \x13 REF \x14site\x15\x15'
    text = f"See {link}.\rNo result: \x13 XE tea \x15!\r"
    assert extract(Source(compound_file(streams(text)), "old.doc")).text == "See the site.\n\nNo result: !"


def test_words_with_their_reading_above_them(compound_file: Writer) -> None:
    field = '\x13 EQ \\* jc2 \\* "Font:X" \\* hps10 \\o\\ad(\\s\\up 9(とう),東)\x15'
    data = compound_file(streams(f"{field}\r", wide_from=0))
    assert extract(Source(data, "old.doc")).text == "東 (とう)"


def test_words_beside_a_field_that_shows_nothing_stay_apart(compound_file: Writer) -> None:
    text = "left\x13 FORMCHECKBOX \x15right\x13 FORMTEXT \x14\x15next\x01picture the \x13 REF \x14site\x15s\r"
    extracted = extract(Source(compound_file(streams(text)), "old.doc"))
    assert extracted.text == "left right next picture the sites"


def test_a_field_that_never_ends_loses_nothing(compound_file: Writer) -> None:
    extracted = extract(Source(compound_file(streams("One.\rTwo \x13 three.\rFour.\r")), "old.doc"))
    assert extracted.text == "One.\n\nTwo  three. Four."


def test_tables_become_rows_and_headings_have_levels(compound_file: Writer) -> None:
    text = "Prices\rTea\x07per\rcup\x073\x07\x07Milk\x07\x071\x07\x07After\rLate\r"
    cell, end = Style(0, IN_TABLE), Style(0, IN_TABLE + ENDS_ROW)
    styles = [Style(1), cell, cell, cell, cell, end, cell, cell, cell, end, Style(), Style(0, b"\x40\x26\x02")]
    for wide_from in (10_000, 9, 0):
        data = compound_file(streams(text, styles=styles, wide_from=wide_from))
        extracted = extract(Source(data, "old.doc"))
        assert extracted.text == "Prices\n\nTea | per cup | 3\nMilk | | 1\n\nAfter\n\nLate"
        assert [(heading.level, heading.title) for heading in extracted.headings] == [(1, "Prices"), (3, "Late")]
        assert extracted.title == "Prices"


def test_tables_without_known_layout_become_rows(compound_file: Writer) -> None:
    extracted = extract(Source(compound_file(streams("Tea\x073\x07\x07Milk\x071\x07\x07After\r")), "old.doc"))
    assert extracted.text == "Tea | 3\nMilk | 1\n\nAfter"


@pytest.mark.parametrize("wide_from", [10_000, 9, 0])
def test_deleted_text_is_left_out(compound_file: Writer, wide_from: int) -> None:
    data = compound_file(streams("Keep this\rand\r not this.\r", hidden=(5, 18), wide_from=wide_from))
    assert extract(Source(data, "old.doc")).text == "Keep\n\nthis."


def test_notes_headers_and_boxes_follow_the_text(compound_file: Writer) -> None:
    beside = {1: "\x02 A note.\r", 2: "Our company\rOur company\r", 4: "\x05A comment.\r", 6: "In a box\r"}
    extracted = extract(Source(compound_file(streams("Text\x02.\r", beside=beside)), "old.doc"))
    assert extracted.text == "Text.\n\nA note.\n\nOur company\n\nA comment.\n\nIn a box"


def test_what_the_document_says_about_itself(compound_file: Writer) -> None:
    created = int((datetime(2001, 2, 3, tzinfo=UTC).timestamp() + 11_644_473_600) * 10_000_000)
    properties = summary(1251, "Отчёт\0".encode("cp1251"), b"Ann\0\0", created)
    data = compound_file({**streams("Text\r"), "\x05SummaryInformation": properties})
    extracted = extract(Source(data, "old.doc"))
    assert (extracted.title, extracted.author) == ("Отчёт", "Ann")
    assert extracted.created_at == datetime(2001, 2, 3, tzinfo=UTC).timestamp()
    assert extracted.updated_at is None


def test_broken_properties_are_left_out(compound_file: Writer) -> None:
    properties = summary(1252, b"Title\0", b"Ann\0", 0)[:-20]
    data = compound_file({**streams("Text\r"), "\x05SummaryInformation": properties})
    extracted = extract(Source(data, "old.doc"))
    assert (extracted.text, extracted.title, extracted.author) == ("Text", "Title", "")


@pytest.mark.parametrize(("language", "encoding", "text"), [(0x0409, "cp1252", "Café"), (0x0419, "cp1251", "Привет")])
def test_documents_of_word_95(compound_file: Writer, language: int, encoding: str, text: str) -> None:
    raw = f"{text}\rTea\x073\x07\x07".encode(encoding)
    main = bytearray(TEXT_START) + raw
    struct.pack_into("<HHHH", main, 0, 0xA5DC, 104, 0, language)
    struct.pack_into("<II", main, 0x18, TEXT_START, TEXT_START + len(raw))
    struct.pack_into("<I", main, 0x34, len(raw))
    extracted = extract(Source(compound_file({"WordDocument": bytes(main)}), "old.doc"))
    assert extracted.text == f"{text}\n\nTea | 3"


def refusal(data: bytes) -> tuple[str, str]:
    with pytest.raises(UnreadableError) as caught:
        extract(Source(data, "old.doc"))
    return caught.value.reason, caught.value.detail


def test_documents_without_text(compound_file: Writer) -> None:
    whole = streams("Text\r")
    old = bytearray(whole["WordDocument"])
    struct.pack_into("<H", old, 2, 45)
    assert refusal(b"{\\rtf1 no}") == ("damaged", "the compound file is broken")
    assert refusal(compound_file({"Workbook": b"x"})) == ("damaged", "holds no Word document")
    assert refusal(compound_file({"EncryptedPackage": b"x"}))[0] == "encrypted"
    assert refusal(compound_file(streams("Text\r", flags=0x0300))) == ("encrypted", "needs a password")
    assert refusal(compound_file({"WordDocument": bytes(old)})) == ("unsupported", "a document of Word 2 or older")
    assert refusal(compound_file({"WordDocument": whole["WordDocument"]}))[0] == "damaged"
    assert refusal(compound_file({**whole, "WordDocument": whole["WordDocument"][:100]}))[0] == "damaged"
    assert refusal(compound_file(streams("\x01\r\x0c")))[0] == "no-text"


def test_pieces_that_repeat_the_same_bytes_do_not_multiply_them(compound_file: Writer) -> None:
    whole = streams("x" * 5000 + "\r")
    count = 10_000
    starts = struct.pack(f"<{count + 1}I", *range(0, 5000 * (count + 1), 5000))
    table = starts + struct.pack("<HIH", 0, TEXT_START * 2 | 1 << 30, 0) * count
    clx = b"\x02" + struct.pack("<I", len(table)) + table
    main = bytearray(whole["WordDocument"])
    struct.pack_into("<II", main, 0x1A2, 0, len(clx))
    extracted = extract(Source(compound_file({"WordDocument": bytes(main), "1Table": clx}), "old.doc"))
    assert len(extracted.text) <= len(main)


def test_damage(
    compound_file: Writer, survives_damage: Callable[[Callable[[Source], Extracted], bytes, str], None]
) -> None:
    text = "Prices \x13 REF \x14site\x15\rTea\x073\x07\x07After\r"
    styles = [Style(1), Style(0, IN_TABLE), Style(0, IN_TABLE), Style(0, IN_TABLE + ENDS_ROW), Style()]
    parts = streams(text, styles=styles, wide_from=8, hidden=(2, 4), beside={1: "\x02 A note.\r"})
    parts["\x05SummaryInformation"] = summary(1252, b"Title\0", b"Ann\0", 10**17)
    survives_damage(extract, compound_file(parts), "old.doc")
