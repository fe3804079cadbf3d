"""Outlook messages, built property by property."""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from datetime import UTC, datetime

import pytest

from findling.sources.documents.mail.msg import decompress_rtf, extract
from findling.sources.extracted import Extracted, Source
from findling.sources.files.file_text import UnreadableError

Writer = Callable[[Mapping[str, bytes]], bytes]
UNICODE, ANSI, BINARY, INTEGER, TIME = 0x001F, 0x001E, 0x0102, 0x0003, 0x0040
SUBJECT, SENDER, SENDER_ADDRESS, HEADERS, TEXT, RTF, HTML = 0x0037, 0x0C1A, 0x0C1F, 0x007D, 0x1000, 0x1009, 0x1013
TO, SUBMITTED, DELIVERED, CODE_PAGE, INTERNET_CODE_PAGE = 0x0E04, 0x0039, 0x0E06, 0x3FFD, 0x3FDE
SENT = datetime(2020, 3, 3, 9, 20, 30, tzinfo=UTC)
TICKS = int((SENT.timestamp() + 11_644_473_600) * 10_000_000)


def properties(values: Mapping[int, str | bytes | int], head: int, text_kind: int = UNICODE) -> dict[str, bytes]:
    """The streams of one storage: text and bytes have streams of their own, numbers stand in a list."""
    streams = {}
    fixed = bytes(head)
    for number, value in values.items():
        if isinstance(value, int):
            kind = TIME if value > 1 << 32 else INTEGER
            fixed += struct.pack("<HHIQ", kind, number, 6, value)
        elif isinstance(value, str):
            encoded = value.encode("utf-16-le" if text_kind == UNICODE else "cp1252")
            streams[f"__substg1.0_{number:04X}{text_kind:04X}"] = encoded
        else:
            streams[f"__substg1.0_{number:04X}{BINARY:04X}"] = value
    return {"__properties_version1.0": fixed, **streams}


def under(path: str, streams: Mapping[str, bytes]) -> dict[str, bytes]:
    return {f"{path}/{name}": data for name, data in streams.items()}


def attachment(number: int, name: str, data: bytes) -> dict[str, bytes]:
    return under(f"__attach_version1.0_#{number:08X}", properties({0x3707: name, 0x3701: data}, 8))


def recipient(number: int, kind: int, name: str, address: str) -> dict[str, bytes]:
    return under(f"__recip_version1.0_#{number:08X}", properties({0x0C15: kind, 0x3001: name, 0x39FE: address}, 8))


def stored(rtf: bytes) -> bytes:
    """RTF as Outlook stores it, without making use of the compression."""
    packed = b"".join(b"\0" + rtf[at : at + 8] for at in range(0, len(rtf), 8))
    return struct.pack("<II4sI", len(packed) + 12, len(rtf), b"LZFu", 0) + packed


def read(data: bytes) -> Extracted:
    return extract(Source(data, "mail.msg"))


def test_a_message_with_everything_in_its_place(compound_file: Writer) -> None:
    values: dict[int, str | bytes | int] = {
        SUBJECT: "Grüße 東京", SENDER: "Ann", SENDER_ADDRESS: "ann@example.org", TEXT: "See you.\r\n\r\nAnn\r\n",
        SUBMITTED: TICKS, 0x1035: "<1@example.org>",
    }  # fmt: skip
    data = compound_file({
        **properties(values, 32),
        **recipient(0, 1, "Bob", "bob@example.org"),
        **recipient(1, 2, "Carl", "carl@example.org"),
        **recipient(2, 1, "dora@example.org", "dora@example.org"),
    })  # fmt: skip
    extracted = read(data)
    assert extracted.text == (
        "Grüße 東京\n\n"
        "From: Ann <ann@example.org>\n"
        "To: Bob <bob@example.org>, dora@example.org\n"
        "Cc: Carl <carl@example.org>\n"
        "Date: Tue, 03 Mar 2020 09:20:30 +0000\n\n"
        "See you.\n\nAnn"
    )
    assert [(heading.level, heading.title) for heading in extracted.headings] == [(1, "Grüße 東京")]
    assert (extracted.title, extracted.author) == ("Grüße 東京", "Ann <ann@example.org>")
    assert extracted.created_at == SENT.timestamp()
    assert extracted.fields["message_id"] == "<1@example.org>"


def test_text_in_a_code_page(compound_file: Writer) -> None:
    streams = properties({CODE_PAGE: 1251}, 32)
    streams[f"__substg1.0_{SUBJECT:04X}{ANSI:04X}"] = "Привет".encode("cp1251")
    streams[f"__substg1.0_{TEXT:04X}{ANSI:04X}"] = "Пока\0".encode("cp1251")
    assert read(compound_file(streams)).text == "Привет\n\nПока"


def test_headers_fill_what_is_missing_and_exchange_addresses_are_left_out(compound_file: Writer) -> None:
    headers = "From: =?utf-8?Q?J=C3=BCrgen?= <j@example.org>\r\nDate: Tue, 03 Mar 2020 10:20:30 +0100\r\n"
    headers += "Cc: x@example.org\r\n"
    extracted = read(compound_file(properties({SUBJECT: "Hi", HEADERS: headers, TO: "Bob"}, 32)))
    assert "From: Jürgen <j@example.org>\nTo: Bob\nCc: x@example.org\nDate: Tue, 03 Mar" in extracted.text
    assert extracted.created_at == SENT.timestamp()
    exchange = properties({SUBJECT: "Hi", SENDER: "Ann", SENDER_ADDRESS: "/O=X/CN=ANN", DELIVERED: TICKS}, 32)
    extracted = read(compound_file(exchange))
    assert extracted.author == "Ann"
    assert extracted.created_at == SENT.timestamp()


def test_html_in_its_code_page(compound_file: Writer) -> None:
    page = "<html><body><h1>Новости</h1><p>Чай</p></body></html>".encode("koi8-r")
    extracted = read(compound_file(properties({SUBJECT: "Hi", HTML: page, INTERNET_CODE_PAGE: 20866}, 32)))
    assert extracted.text == "Hi\n\nНовости\n\nЧай"
    assert [(heading.level, heading.title) for heading in extracted.headings] == [(1, "Hi"), (2, "Новости")]


def test_compressed_rtf_and_html_in_it(compound_file: Writer) -> None:
    plain = stored(rb"{\rtf1\ansi caf\'e9\par tea\par}")
    assert read(compound_file(properties({SUBJECT: "Hi", RTF: plain}, 32))).text == "Hi\n\ncafé\n\ntea"
    wrapped = stored(rb"{\rtf1\ansi\fromhtml1 {\*\htmltag <p>}a &amp; b{\*\htmltag </p>}\htmlrtf x\htmlrtf0}")
    assert read(compound_file(properties({SUBJECT: "Hi", RTF: wrapped}, 32))).text == "Hi\n\na & b"


@pytest.mark.parametrize(
    ("packed", "rtf"),
    [
        (
            "2d0000002b0000004c5a4675f1c5c7a703000a007263706731323542320af32068656c090020627705b06c647d0a800fa0",
            b"{\\rtf1\\ansi\\ansicpg1252\\pard hello world}\r\n",
        ),
        (
            "1a0000001c0000004c5a4675e2d44b51410004205758595a0d6e7d010eb0",  # a copy of what is being written
            b"{\\rtf1 WXYZWXYZWXYZWXYZWXYZ}",
        ),
    ],
)
def test_the_compression_of_outlook(packed: str, rtf: bytes) -> None:
    data = bytes.fromhex(packed)
    assert decompress_rtf(data) == rtf
    for size in range(len(data)):
        assert rtf.startswith(decompress_rtf(data[:size]))


def test_rtf_that_is_not_compressed() -> None:
    assert decompress_rtf(struct.pack("<II4sI", 18, 6, b"MELA", 0) + b"{\\rtf}") == b"{\\rtf}"
    assert decompress_rtf(struct.pack("<II4sI", 18, 6, b"ABCD", 0) + b"{\\rtf}") == b""


def test_attachments_are_listed_and_read(compound_file: Writer) -> None:
    data = compound_file({
        **properties({SUBJECT: "Hi", TEXT: "Look:"}, 32),
        **attachment(0, "notes.txt", b"Inside."),
        **attachment(1, "broken.pdf", b"%PDF-1.4"),
        **attachment(2, "logo.png", b"\x89PNG\r\n\x1a\n\0"),
    })  # fmt: skip
    extracted = read(data)
    assert extracted.text.startswith(
        "Hi\n\nAttachment: notes.txt (text/plain, 7 bytes)\nAttachment: broken.pdf (application/pdf, 8 bytes)\n"
        "Attachment: logo.png (image/png, 9 bytes)\n\nLook:\n\nnotes.txt\n\nInside.\n\n"
        "Attachment broken.pdf was not read: "
    )
    assert "logo.png was not read" not in extracted.text
    assert [place.label for place in extracted.places][:1] == ["attachment notes.txt"]


def test_a_message_in_a_message_is_a_section(compound_file: Writer) -> None:
    inner = {**properties({SUBJECT: "Original", TEXT: "The text."}, 24), **attachment(0, "a.txt", b"Deep.")}
    data = compound_file({
        **properties({SUBJECT: "Fwd", TEXT: "Look:"}, 32),
        **under("__attach_version1.0_#00000000", properties({0x3707: "Original.msg"}, 8)),
        **under("__attach_version1.0_#00000000/__substg1.0_3701000D", inner),
    })  # fmt: skip
    extracted = read(data)
    assert [(heading.level, heading.title) for heading in extracted.headings] == [
        (1, "Fwd"), (2, "Original"), (3, "a.txt"),
    ]  # fmt: skip
    assert extracted.text.endswith("The text.\n\na.txt\n\nDeep.")
    assert [place.label for place in extracted.places] == [
        "attachment Original", "attachment Original attachment a.txt",
    ]  # fmt: skip


def test_messages_within_messages_end_somewhere(compound_file: Writer) -> None:
    streams = properties({SUBJECT: "Level 0"}, 32)
    path = ""
    for level in range(1, 20):
        path += "__attach_version1.0_#00000000/"
        streams |= under(path[:-1], properties({}, 8))
        path += "__substg1.0_3701000D/"
        streams |= under(path[:-1], properties({SUBJECT: f"Level {level}"}, 24))
    text = read(compound_file(streams)).text
    assert "Level 4" in text
    assert "Level 9" not in text


def test_files_without_text(compound_file: Writer) -> None:
    for data, reason in (
        (b"no compound file", "damaged"),
        (compound_file({"WordDocument": b"x"}), "damaged"),
        (compound_file(properties({}, 32)), "no-text"),
    ):
        with pytest.raises(UnreadableError) as caught:
            read(data)
        assert caught.value.reason == reason


def test_damage(
    compound_file: Writer, survives_damage: Callable[[Callable[[Source], Extracted], bytes, str], None]
) -> None:
    rtf = stored(rb"{\rtf1\ansi caf\'e9\par tea\par}")
    sample = compound_file({
        **properties({SUBJECT: "Hi", SENDER: "Ann", RTF: rtf, SUBMITTED: TICKS, CODE_PAGE: 1252}, 32),
        **recipient(0, 1, "Bob", "bob@example.org"),
        **attachment(0, "notes.txt", b"Inside."),
        **under("__attach_version1.0_#00000001", properties({0x3707: "Original.msg"}, 8)),
        **under("__attach_version1.0_#00000001/__substg1.0_3701000D", properties({SUBJECT: "In", TEXT: "x"}, 24)),
    })  # fmt: skip
    survives_damage(extract, sample, "mail.msg")
