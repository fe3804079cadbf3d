from __future__ import annotations

import hashlib
import random
import struct
from collections.abc import Sequence
from datetime import UTC, datetime

import pytest

from findling.sources.documents.office.pdf import extract, join_lines, split_lines, usual_width
from findling.sources.extracted import Extracted, Source
from findling.sources.files.file_text import UnreadableError
from tests.counts import tries

_PADDING = bytes.fromhex("28BF4E5E4E758A4164004E56FFFA01082E2E00B6D0683E802F0CA9FE6453697A")


def pdf(
    *pages: Sequence[str] | None,
    catalog: str = "",
    page: str = "",
    info: str = "",
    objects: Sequence[str] = (),
    password: bytes | None = None,
) -> bytes:
    """A PDF of pages with lines of text; a page of `None` is missing. Further objects are numbered from 100."""
    bodies: dict[int, bytes] = {
        1: f"<< /Type /Catalog /Pages 2 0 R {catalog} >>".encode("latin-1"),
        3: b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>",
        9: f"<< {info} >>".encode("latin-1"),
    }
    numbers = [10 + 2 * index for index in range(len(pages))]
    for number, lines in zip(numbers, pages, strict=True):
        if lines is not None:
            box = "/MediaBox [0 0 595 842] /Resources << /Font << /F1 3 0 R >> >>"
            bodies[number] = f"<< /Type /Page /Parent 2 0 R {box} /Contents {number + 1} 0 R {page} >>".encode()
            shown = "".join(f"({line}) Tj T*\n" for line in lines)
            bodies[number + 1] = f"BT /F1 9 Tf 40 800 Td 14 TL\n{shown}ET".encode("cp1252")
    kids = " ".join(f"{number} 0 R" for number in numbers)
    bodies[2] = f"<< /Type /Pages /Count {len(pages)} /Kids [{kids}] >>".encode()
    bodies.update({100 + index: body.encode("latin-1") for index, body in enumerate(objects)})
    streams = {number + 1 for number in numbers}
    return _file(bodies, streams, password)


def _file(bodies: dict[int, bytes], streams: set[int], password: bytes | None) -> bytes:
    key, encryption = _encryption(password) if password is not None else (b"", b"")
    file = bytearray(b"%PDF-1.6\n")
    offsets = {}
    for number, body in sorted(bodies.items()):
        offsets[number] = len(file)
        if number in streams:
            content = _rc4(_object_key(key, number), body) if key else body
            body = b"<< /Length %d >>\nstream\n%s\nendstream" % (len(content), content)
        file += b"%d 0 obj\n%s\nendobj\n" % (number, body)
    table = len(file)
    file += b"xref\n0 1\n0000000000 65535 f \n"
    for number, offset in sorted(offsets.items()):
        file += b"%d 1\n%010d 00000 n \n" % (number, offset)
    size = max(bodies) + 1
    file += b"trailer\n<< /Size %d /Root 1 0 R /Info 9 0 R %s >>\nstartxref\n%d\n%%%%EOF\n" % (size, encryption, table)
    return bytes(file)


def _encryption(password: bytes) -> tuple[bytes, bytes]:
    """The key of a file that opens with the password, and its entries in the trailer (RC4 of 40 bits)."""
    padded = (password + _PADDING)[:32]
    owner = _rc4(hashlib.md5(padded).digest()[:5], padded)
    identifier = b"0123456789abcdef"
    key = hashlib.md5(padded + owner + struct.pack("<i", -4) + identifier).digest()[:5]
    user = _rc4(key, _PADDING)
    entries = "/Encrypt << /Filter /Standard /V 1 /R 2 /P -4 /O <{}> /U <{}> >> /ID [<{}> <{}>]"
    return key, entries.format(owner.hex(), user.hex(), identifier.hex(), identifier.hex()).encode()


def _object_key(key: bytes, number: int) -> bytes:
    return hashlib.md5(key + struct.pack("<I", number)[:3] + b"\0\0").digest()[:10]


def _rc4(key: bytes, data: bytes) -> bytes:
    state = list(range(256))
    j = 0
    for i in range(256):
        j = (j + state[i] + key[i % len(key)]) % 256
        state[i], state[j] = state[j], state[i]
    output = bytearray()
    i = j = 0
    for byte in data:
        i = (i + 1) % 256
        j = (j + state[i]) % 256
        state[i], state[j] = state[j], state[i]
        output.append(byte ^ state[(state[i] + state[j]) % 256])
    return bytes(output)


def read(data: bytes) -> Extracted:
    return extract(Source(data, "document.pdf"))


def text_from(extracted: Extracted, place: str) -> str:
    """The text that a place is said to hold."""
    starts = [place.start for place in extracted.places] + [len(extracted.text)]
    index = [place.label for place in extracted.places].index(place)
    return extracted.text[starts[index] : starts[index + 1]].strip()


def test_text_comes_page_by_page_in_order() -> None:
    extracted = read(pdf(["First page", "second line"], ["Middle page"], ["Last page"]))
    assert extracted.text == "First page\nsecond line\n\nMiddle page\n\nLast page"
    assert [place.label for place in extracted.places] == ["p. 1", "p. 2", "p. 3"]
    assert text_from(extracted, "p. 2") == "Middle page"


def test_pages_are_called_by_their_labels() -> None:
    labels = "/PageLabels << /Nums [0 << /S /r /St 3 >> 2 << /S /D /P (A-) >>] >>"
    extracted = read(pdf(["preface"], ["contents"], ["chapter"], catalog=labels))
    assert [place.label for place in extracted.places] == ["p. iii", "p. iv", "p. A-1"]


def test_a_word_hyphenated_at_the_end_of_a_line_is_put_together() -> None:
    extracted = read(pdf(["This is an exam-", "ple of the Anglo-", "Saxon way, in 1990-", "2000."]))
    assert "example" in extracted.text
    assert "Anglo-Saxon" in extracted.text
    assert "1990-2000" in extracted.text


def test_lines_of_one_sentence_run_on_and_a_short_last_line_ends_the_paragraph() -> None:
    full = "the sentence goes on and on until the line has come to its end and"
    extracted = read(pdf([f"Here {full}", full, "then it stops.", f"Another {full}", "ends here."]))
    first, second = extracted.text.split("\n\n")
    assert first == f"Here {full} {full} then it stops."
    assert second == f"Another {full} ends here."


def test_rows_of_short_lines_stay_lines() -> None:
    extracted = read(pdf(["Apples 12", "pears 7", "plums 3"]))
    assert extracted.text == "Apples 12\npears 7\nplums 3"


def outline(*marks: tuple[str, int]) -> tuple[str, list[str]]:
    """Catalog entry and objects of bookmarks, each a title and the index of its page; they nest in each other."""
    objects = ["<< /Type /Outlines /First 101 0 R /Last 101 0 R >>"]
    for depth, (title, page) in enumerate(marks):
        child = f"/First {102 + depth} 0 R /Last {102 + depth} 0 R" if depth + 1 < len(marks) else ""
        target = f"/Dest [{10 + 2 * page} 0 R /Fit]"
        objects.append(f"<< /Title ({title}) /Parent {100 + depth} 0 R {target} {child} >>")
    return "/Outlines 100 0 R", objects


def test_bookmarks_are_headings_where_their_titles_stand() -> None:
    catalog, objects = outline(("Introduction", 0), ("Results", 1))
    pages = (["Cover line", "1. INTRODUCTION", "It begins."], ["still the same", "Results", "It works."])
    extracted = read(pdf(*pages, catalog=catalog, objects=objects))
    assert [(heading.title, heading.level) for heading in extracted.headings] == [
        ("1. INTRODUCTION", 1),
        ("Results", 2),
    ]
    for heading in extracted.headings:
        assert extracted.text[heading.start :].startswith(heading.title + "\n\n")
    assert extracted.text.count("Results") == 1
    assert extracted.text.index("still the same") < extracted.headings[1].start < extracted.text.index("It works.")


def test_a_title_over_two_lines_is_one_heading() -> None:
    catalog, objects = outline(("A Very Long Title", 0))
    extracted = read(pdf(["A Very", "Long Title", "Text."], catalog=catalog, objects=objects))
    assert [heading.title for heading in extracted.headings] == ["A Very Long Title"]


def test_a_bookmark_whose_title_is_not_on_the_page_is_a_section_from_its_start() -> None:
    catalog, objects = outline(("Somewhere else", 1))
    extracted = read(pdf(["one"], ["two"], catalog=catalog, objects=objects))
    assert extracted.text == "one\n\ntwo"
    (heading,) = extracted.headings
    assert (heading.title, extracted.text[heading.start :]) == ("Somewhere else", "two")


def test_metadata_goes_into_the_fields() -> None:
    info = "/Title (A fine report) /Author (Ada) /CreationDate (D:20240131120000+01'30') /ModDate (D:2024)"
    extracted = read(pdf(["text"], info=info, catalog="/Lang (de-CH)"))
    assert (extracted.title, extracted.author) == ("A fine report", "Ada")
    assert extracted.created_at == datetime(2024, 1, 31, 10, 30, tzinfo=UTC).timestamp()
    assert extracted.updated_at == datetime(2024, 1, 1, tzinfo=UTC).timestamp()
    assert extracted.fields == {"language": "de-CH"}


@pytest.mark.parametrize("title", ["Microsoft Word - letter.doc", "untitled", "scan_07.pdf"])
def test_a_title_that_nobody_gave_is_none(title: str) -> None:
    info = f"/Title ({title}) /CreationDate (D:20249931)"
    extracted = read(pdf(["text"], info=info))
    assert extracted.title == ""
    assert extracted.created_at is None


def test_a_password_is_needed_or_not() -> None:
    with pytest.raises(UnreadableError) as caught:
        read(pdf(["secret"], password=b"opensesame"))
    assert caught.value.reason == "encrypted"
    assert read(pdf(["Restricted, but open"], password=b"")).text == "Restricted, but open"


def test_pages_without_text_say_so() -> None:
    with pytest.raises(UnreadableError) as caught:
        read(pdf([], []))
    assert (caught.value.reason, caught.value.detail) == ("no-text", "scanned pages? no text layer")


def test_what_is_no_pdf_is_damaged() -> None:
    with pytest.raises(UnreadableError) as caught:
        read(b"%PDF-1.4\nnothing of the kind")
    assert caught.value.reason == "damaged"


def test_a_file_whose_table_of_objects_is_wrong_is_still_read() -> None:
    data = pdf(["Found all the same"])
    assert read(data.replace(b"startxref\n", b"startxref\n9")).text == "Found all the same"


def test_a_broken_page_is_left_out_and_the_rest_is_read() -> None:
    extracted = read(pdf(["one"], None, ["three"]))
    assert extracted.text == "one\n\nthree"
    assert text_from(extracted, "p. 3") == "three"
    assert extracted.fields == {"damaged": "1 of 3 pages cannot be read"}


def test_notes_and_filled_forms_are_read() -> None:
    objects = [
        "<< /Fields [101 0 R 102 0 R 103 0 R] >>",
        "<< /Type /Annot /Subtype /Widget /FT /Tx /T (name) /TU (Full name) /V (Grace Hopper) /Rect [0 0 9 9] >>",
        "<< /Type /Annot /Subtype /Widget /FT /Tx /T (street) /Rect [0 0 9 9] >>",
        "<< /Type /Annot /Subtype /Widget /FT /Btn /T (member) /V /Off /AS /Off /Rect [0 0 9 9] >>",
        "<< /Type /Annot /Subtype /Text /Contents (please check) /Rect [0 0 9 9] >>",
        "<< /Type /Annot /Subtype /Popup /Contents (please check) /Rect [0 0 9 9] >>",
    ]
    annotations = "/Annots [101 0 R 102 0 R 103 0 R 104 0 R 105 0 R]"
    extracted = read(pdf(["Form"], ["next"], catalog="/AcroForm 100 0 R", page=annotations, objects=objects))
    assert text_from(extracted, "p. 1").split() == "Form Full name: Grace Hopper please check".split()
    assert text_from(extracted, "p. 2").startswith("next")


def test_values_of_an_xfa_form_and_of_fields_without_a_form_are_read(capfd: pytest.CaptureFixture[str]) -> None:
    field = "<< /Type /Annot /Subtype /Widget /FT /Tx /T (name) /V (Grace Hopper) /Rect [0 0 9 9] >>"
    data = "<x:datasets xmlns:x='a'><x:data><form><town>Arlington</town></form></x:data></x:datasets>"
    packet = f"<< /Length {len(data)} >>\nstream\n{data}\nendstream"
    for entries in ("/XFA 102 0 R", "/XFA [(template) 103 0 R (datasets) 102 0 R]"):
        objects = [f"<< /Fields [101 0 R] {entries} >>", field, packet, packet.replace("Arlington", "Template!")]
        form = read(pdf(["Please wait"], catalog="/AcroForm 100 0 R", page="/Annots [101 0 R]", objects=objects))
        assert form.text.split("\n") == ["Please wait", "", "name: Grace Hopper", "", "town: Arlington"]
        assert labels_of(form) == ["p. 1", "form"]
    assert read(pdf(["Loose"], page="/Annots [100 0 R]", objects=[field])).text == "Loose\n\nname: Grace Hopper"
    assert capfd.readouterr() == ("", "")


def labels_of(extracted: Extracted) -> list[str]:
    return [place.label for place in extracted.places]


def test_attachments_are_listed() -> None:
    objects = [
        "<< /Names [(invoice.xml) 101 0 R] >>",
        "<< /Type /Filespec /F (invoice.xml) /UF (invoice.xml) >>",
    ]
    extracted = read(pdf(["See attachment"], catalog="/Names << /EmbeddedFiles 100 0 R >>", objects=objects))
    assert text_from(extracted, "attachments") == "invoice.xml"


def test_reading_stops_at_the_limit() -> None:
    extracted = extract(Source(pdf(*[["word " * 12]] * 50), "long.pdf", limit=200))
    assert len(extracted.text) <= 200
    assert len(extracted.places) < 10
    assert "truncated" in extracted.fields


def test_damage_anywhere_gives_text_or_a_reason() -> None:
    catalog, objects = outline(("Introduction", 0), ("Results", 1))
    intact = pdf(["Introduction", "one"], ["two", "Results"], catalog=catalog, objects=objects, info="/Title (x)")
    dice = random.Random(1)
    outcomes: set[bool | str] = set()
    for _ in range(tries(300, short=60)):
        data = bytearray(intact)
        for _ in range(dice.randint(1, 20)):
            data[dice.randrange(len(data))] = dice.randrange(256)
        try:
            outcomes.add(bool(read(bytes(data)).text))
        except UnreadableError as error:
            outcomes.add(error.reason)
    assert outcomes <= {True, "damaged", "no-text", "encrypted"}
    assert True in outcomes


def test_hyphens_of_pdfium_and_soft_hyphens_are_mended() -> None:
    assert split_lines("eco\ufffesystems and Jean\ufffeLuc and po\u00ad\nlitics") == [
        "ecosystems and Jean-Luc and politics"
    ]
    assert split_lines("a well-known -\nfact - \nthis") == ["a well-known -", "fact -", "this"]


def test_an_indented_line_begins_a_paragraph() -> None:
    lines = split_lines("The first paragraph ends\r\n  The second begins")
    assert join_lines(lines, usual_width(lines)) == "The first paragraph ends\n\nThe second begins"


def test_chinese_lines_are_joined_without_a_space() -> None:
    lines = ["今天的天气非常好" * 6, "我们去公园散步"]
    assert join_lines(lines, 48) == lines[0] + lines[1]
