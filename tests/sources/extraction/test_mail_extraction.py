"""Mails and mail folders: headers, bodies, attachments, and what mail programs get wrong."""

from __future__ import annotations

import base64
from collections.abc import Callable
from datetime import UTC, datetime
from email.message import EmailMessage

import pytest

from findling.sources.documents.mail.mail import extract
from findling.sources.extracted import Extracted, Source
from findling.sources.files.file_text import UnreadableError


def read(data: bytes | str | EmailMessage, name: str = "mail.eml") -> Extracted:
    if isinstance(data, EmailMessage):
        data = data.as_bytes()
    return extract(Source(data.encode() if isinstance(data, str) else data, name))


def mail(subject: str = "Lunch", text: str = "See you at noon.") -> EmailMessage:
    message = EmailMessage()
    message["Subject"] = subject
    message["From"] = "Ann Ä <ann@example.org>"
    message["To"] = "Bob <bob@example.org>, Carl <carl@example.org>"
    message["Cc"] = "dora@example.org"
    message["Date"] = "Tue, 03 Mar 2020 10:20:30 +0100"
    message["Message-ID"] = "<1@example.org>"
    if text:
        message.set_content(text)
    return message


def headings(extracted: Extracted) -> list[tuple[int, str]]:
    return [(heading.level, heading.title) for heading in extracted.headings]


def test_a_mail_with_everything_in_its_place() -> None:
    extracted = read(mail("Mittagessen für alle"))
    assert extracted.text == (
        "Mittagessen für alle\n\n"
        "From: Ann Ä <ann@example.org>\n"
        "To: Bob <bob@example.org>, Carl <carl@example.org>\n"
        "Cc: dora@example.org\n"
        "Date: Tue, 03 Mar 2020 10:20:30 +0100\n\n"
        "See you at noon."
    )
    assert headings(extracted) == [(1, "Mittagessen für alle")]
    assert extracted.title == "Mittagessen für alle"
    assert extracted.author == "Ann Ä <ann@example.org>"
    assert extracted.created_at == datetime(2020, 3, 3, 9, 20, 30, tzinfo=UTC).timestamp()
    assert extracted.fields["to"] == "Bob <bob@example.org>, Carl <carl@example.org>"
    assert extracted.fields["message_id"] == "<1@example.org>"


def test_of_alternatives_the_plain_text_is_taken() -> None:
    message = mail()
    message.add_alternative("<p>See you at <b>noon</b>, in HTML.</p>", subtype="html")
    text = read(message).text
    assert "See you at noon." in text
    assert "HTML" not in text


def test_an_empty_plain_text_gives_way_to_html() -> None:
    message = mail(text=" \n")
    message.add_alternative("<h1>Menu</h1><p>Soup &amp; bread</p>", subtype="html")
    extracted = read(message)
    assert extracted.text.endswith("Menu\n\nSoup & bread")
    assert headings(extracted) == [(1, "Lunch"), (2, "Menu")]


def test_html_is_decoded_as_the_mail_says_not_as_the_page_says() -> None:
    page = '<html><head><meta charset="utf-8"></head><body><p>Grüße</p></body></html>'.encode("latin-1")
    data = b"Subject: Hi\nContent-Type: text/html; charset=iso-8859-1\nContent-Transfer-Encoding: 8bit\n\n" + page
    assert read(data).text == "Hi\n\nGrüße"


def test_files_in_an_alternative_that_is_not_taken_are_kept() -> None:
    inner = EmailMessage()
    inner.set_content("<p>Rich</p>", subtype="html")
    inner.add_attachment("a,b\n1,2\n", subtype="csv", filename="data.csv")
    message = EmailMessage()
    message["Subject"] = "Two"
    message.make_alternative()
    plain = EmailMessage()
    plain.set_content("Plain")
    message.attach(plain)
    message.attach(inner)
    text = read(message).text
    assert "Attachment: data.csv (text/csv, 8 bytes)" in text
    assert "Plain" in text
    assert "Rich" not in text


@pytest.mark.parametrize(
    ("charset", "raw", "text"),
    [
        ("utf-8", "Grüße".encode(), "Grüße"),
        ("us-ascii", "Grüße".encode(), "Grüße"),  # a lie
        ("utf-8", "Grüße".encode("latin-1"), "Grüße"),  # another
        ("iso-8859-1", "„Grüße“".encode("cp1252"), "„Grüße“"),  # the usual one
        ("x-unknown", "Grüße".encode(), "Grüße"),
        ("koi8-r", "Привет".encode("koi8-r"), "Привет"),
        ("gb2312", "镕基".encode("gb18030"), "镕基"),  # a character that GB 2312 lacks
        ('"iso-2022-jp"', "東京".encode("iso-2022-jp"), "東京"),
    ],
)
def test_encodings(charset: str, raw: bytes, text: str) -> None:
    data = f"Subject: x\nContent-Type: text/plain; charset={charset}\nContent-Transfer-Encoding: 8bit\n\n".encode()
    assert read(data + raw).text == f"x\n\n{text}"


def test_transfer_encodings() -> None:
    head = "Subject: x\nContent-Type: text/plain; charset=utf-8\nContent-Transfer-Encoding: "
    assert read(f"{head}quoted-printable\n\nGr=C3=BC=\n=C3=9Fe").text == "x\n\nGrüße"
    assert read(f"{head}base64\n\n{base64.b64encode('Grüße'.encode()).decode()}").text == "x\n\nGrüße"
    assert read(f"{head}base64\n\nR3I").text == "x\n\nGr"  # cut off


@pytest.mark.parametrize(
    ("header", "subject"),
    [
        ("=?utf-8?B?R3LDvMOfZQ==?=", "Grüße"),
        ("=?iso-8859-1?Q?Gr=FC=DFe?= aus =?utf-8?Q?K=C3=B6ln?=", "Grüße aus Köln"),
        ("=?utf-8?Q?Gr=C3?=\n =?utf-8?Q?=BC=C3=9Fe?=", "Grüße"),  # a character in two words
        ("=?nonsense?Q?Gr=C3=BC=C3=9Fe?=", "Grüße"),
        ("=?utf-8?B?broken", "=?utf-8?B?broken"),
        ("one\n two", "one two"),
        ("Grüße", "Grüße"),  # raw bytes, which the rules forbid
    ],
)
def test_subjects(header: str, subject: str) -> None:
    assert read(f"Subject: {header}\n\nText").title == subject


def test_a_subject_in_raw_bytes_of_an_old_encoding() -> None:
    assert read("Subject: Grüße\n\nText".encode("cp1252")).title == "Grüße"


def test_a_date_that_is_none_stays_text() -> None:
    extracted = read("Subject: x\nDate: yesterday, 25:99\n\nText")
    assert "Date: yesterday, 25:99" in extracted.text
    assert extracted.created_at is None


def test_attachments_are_listed_and_read() -> None:
    message = mail()
    message.add_attachment("Title\n\nInside.\n", filename="notes für Bob.txt")
    message.add_attachment(b"\x89PNG\r\n\x1a\n\0\0", maintype="image", subtype="png", filename="logo.png")
    message.add_attachment(b"%PDF-1.4 broken", maintype="application", subtype="pdf", filename="report.pdf")
    extracted = read(message)
    assert "Attachment: notes für Bob.txt (text/plain, 15 bytes)\n" in extracted.text
    assert "Attachment: logo.png (image/png, 10 bytes)\n" in extracted.text
    assert "Attachment: report.pdf (application/pdf, 15 bytes)\n" in extracted.text
    assert "notes für Bob.txt\n\nTitle\n\nInside." in extracted.text
    assert "Attachment report.pdf was not read: damaged" in extracted.text
    assert "logo.png was not read" not in extracted.text
    assert (2, "notes für Bob.txt") in headings(extracted)
    place = next(place for place in extracted.places if place.label == "attachment notes für Bob.txt")
    assert extracted.text[place.start :].lstrip().startswith("notes für Bob.txt\n\nTitle")


def test_places_in_attachments_are_named_after_them() -> None:
    inner = b"From a Mon Jan  1 00:00:00 2024\nSubject: In\n\none\n\n"
    inner += b"From b Mon Jan  1 00:00:00 2024\nSubject: Other\n\ntwo\n"
    message = mail()
    message.add_attachment(inner, maintype="application", subtype="mbox", filename="old.mbox")
    extracted = read(message)
    assert [place.label for place in extracted.places] == [
        "attachment old.mbox", "attachment old.mbox message 1", "attachment old.mbox message 2",
    ]  # fmt: skip
    assert headings(extracted) == [(1, "Lunch"), (2, "old.mbox"), (3, "In"), (3, "Other")]


def test_the_encoding_of_an_attached_text_is_what_the_mail_says() -> None:
    message = mail()
    message.add_attachment("Привет", charset="koi8-r", filename="letter.txt")
    assert read(message).text.endswith("letter.txt\n\nПривет")


def test_a_mail_in_a_mail_is_a_section() -> None:
    outer = mail("Fwd", "Look:")
    outer.add_attachment(mail("Original", "The text."))
    extracted = read(outer)
    assert headings(extracted) == [(1, "Fwd"), (2, "Original")]
    assert "Attachment: Original (a message)" in extracted.text
    assert extracted.text.endswith("The text.")
    assert [place.label for place in extracted.places] == ["attachment Original"]


def test_an_attached_mail_in_base64_is_read_too() -> None:
    inner = base64.b64encode(mail("Original", "The text.").as_bytes()).decode()
    boundary = (
        'Subject: Fwd\nContent-Type: multipart/mixed; boundary="b"\n\n--b\nContent-Type: text/plain\n\nLook:\n--b\n'
    )
    data = f"{boundary}Content-Type: message/rfc822\nContent-Transfer-Encoding: base64\n\n{inner}\n--b--\n"
    extracted = read(data)
    assert headings(extracted) == [(1, "Fwd"), (2, "Original")]
    assert extracted.text.endswith("The text.")


def test_a_report_of_failed_delivery_is_text() -> None:
    data = (
        'Subject: Undeliverable\nContent-Type: multipart/report; boundary="b"\n\n--b\n\nIt failed.\n--b\n'
        "Content-Type: message/delivery-status\n\nReporting-MTA: dns; x\n\nFinal-Recipient: bob@example.org\n--b--\n"
    )
    assert read(data).text == (
        "Undeliverable\n\nIt failed.\n\nReporting-MTA: dns; x\n\nFinal-Recipient: bob@example.org"
    )


def test_a_multipart_that_lost_its_boundary_still_gives_its_text() -> None:
    assert "Kept" in read('Subject: x\nContent-Type: multipart/mixed; boundary="b"\n\nKept\n').text


def test_a_saved_web_page() -> None:
    data = (
        "From: <Saved by Blink>\nSnapshot-Content-Location: https://example.org/\nSubject: A page\n"
        'MIME-Version: 1.0\nContent-Type: multipart/related; type="text/html"; boundary="b"\n\n'
        "--b\nContent-Type: text/html\nContent-Location: https://example.org/\n"
        'Content-Transfer-Encoding: quoted-printable\n\n<h1 class=3D"x">Head</h1><p>Body</p>\n'
        "--b\nContent-Type: text/css\nContent-Location: cid:css\n\nbody { color: red }\n"
        "--b\nContent-Type: image/png\nContent-Location: https://example.org/x.png\n\nxyz\n--b--\n"
    )
    extracted = read(data, "page.mht")
    assert extracted.text == "A page\n\nHead\n\nBody"
    assert (extracted.title, extracted.author) == ("A page", "")
    assert extracted.fields["url"] == "https://example.org/"


MBOX = (
    "From ann@example.org Tue Mar  3 10:20:30 2020\nSubject: First\nFrom: ann@example.org\n\n"
    "Hello.\n\n>From here on it is quoted.\n\nFrom there at 10:30 in 2020 we went on.\nNote: bring tea\n\n"
    "From bob@example.org Tue Mar  3 11:20:30 2020\nFrom: bob@example.org\nSubject: Second\n\nBye.\n"
)


@pytest.mark.parametrize("name", ["inbox.mbox", "inbox.eml"])
def test_a_folder_of_mails(name: str) -> None:
    extracted = read(MBOX, name)
    assert headings(extracted) == [(1, "First"), (1, "Second")]
    assert [place.label for place in extracted.places] == ["message 1", "message 2"]
    assert extracted.title == ""
    assert extracted.text == (
        "First\n\nFrom: ann@example.org\n\n"
        "Hello.\n\nFrom here on it is quoted.\n\nFrom there at 10:30 in 2020 we went on.\nNote: bring tea\n\n"
        "Second\n\nFrom: bob@example.org\n\nBye."
    )
    second = extracted.places[1].start
    assert extracted.text[second:].startswith("Second")


def test_a_folder_with_windows_line_ends() -> None:
    assert headings(read(MBOX.replace("\n", "\r\n"), "inbox.mbox")) == [(1, "First"), (1, "Second")]


def test_a_mail_that_is_named_like_a_folder() -> None:
    assert read(mail(), "inbox.mbox").title == "Lunch"


def test_one_mail_with_an_envelope_line_is_a_mail() -> None:
    assert read("From ann@example.org Tue Mar  3 10:20:30 2020\nSubject: x\n\nText", "mail.eml").title == "x"


def test_mails_without_a_subject_are_sections_of_their_own() -> None:
    folder = "From a Tue Mar  3 10:20:30 2020\nSubject: One\n\n1\n\nFrom b Tue Mar  3 10:20:30 2020\nTo: c\n\n2\n"
    assert headings(read(folder, "inbox.mbox")) == [(1, "One"), (1, "(no subject)")]


def test_a_folder_is_read_up_to_the_limit() -> None:
    extracted = extract(Source(MBOX.encode() * 500, "inbox.mbox", limit=1000))
    assert len(extracted.text) <= 1000
    assert "truncated" in extracted.fields
    assert len(extracted.places) < 20


@pytest.mark.parametrize(
    ("data", "reason"),
    [(b"", "no-text"), (b" \n\n", "no-text"), (b"MIME-Version: 1.0\n\n", "no-text"), (b"\0\1\2\3" * 99, "damaged")],
)
def test_files_without_text(data: bytes, reason: str) -> None:
    with pytest.raises(UnreadableError) as caught:
        read(data)
    assert caught.value.reason == reason


def test_text_without_headers_is_text() -> None:
    assert read("just some words\n\nand more").text == "just some words\n\nand more"


def test_parts_nested_beyond_reason_are_refused_or_cut() -> None:
    data = "Subject: deep\n"
    for number in range(400):
        data += f'Content-Type: multipart/mixed; boundary="{number}"\n\n--{number}\n'
    try:
        extracted = read(data + "\nText")
    except UnreadableError as error:
        assert error.reason == "damaged"
    else:
        assert extracted.title == "deep"


@pytest.mark.parametrize("name", ["mail.eml", "inbox.mbox"])
def test_damage(survives_damage: Callable[[Callable[[Source], Extracted], bytes, str], None], name: str) -> None:
    message = mail("Grüße")
    message.add_alternative("<p>Rich</p>", subtype="html")
    message.add_attachment("a,b\n1,2\n", subtype="csv", filename="data.csv")
    message.add_attachment(mail("Original", "The text."))
    sample = message.as_bytes()
    if name.endswith(".mbox"):
        sample = b"".join(b"From a Tue Mar  3 10:20:30 2020\n" + sample + b"\n\n" for _ in range(2))
    survives_damage(extract, sample, name)
