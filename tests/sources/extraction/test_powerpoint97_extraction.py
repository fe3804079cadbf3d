"""PowerPoint 97 presentations, built record by record."""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping

import pytest

from findling.sources.documents.legacy.powerpoint97 import extract
from findling.sources.extracted import Extracted, Source
from findling.sources.files.file_text import UnreadableError
from tests.counts import tries

Writer = Callable[[Mapping[str, bytes]], bytes]
TITLE, BODY, NOTES, OTHER = 0, 1, 2, 4
TOKEN, ENCRYPTED_TOKEN = 0xE391C05F, 0xF3D1C4DF


def atom(kind: int, content: bytes = b"", instance: int = 0) -> bytes:
    return struct.pack("<HHI", instance << 4, kind, len(content)) + content


def container(kind: int, *parts: bytes, instance: int = 0) -> bytes:
    content = b"".join(parts)
    return struct.pack("<HHI", instance << 4 | 0xF, kind, len(content)) + content


def text(kind: int, value: str) -> bytes:
    header = atom(3999, struct.pack("<I", kind))
    if value.isascii():
        return header + atom(4008, value.encode())
    return header + atom(4000, value.encode("utf-16-le"))


def shape(*inside: bytes, placeholder: bool = False, anchor: tuple[int, int] | None = None) -> bytes:
    parts = [atom(0xF00A, bytes(8))]
    if anchor:
        parts.append(atom(0xF00F, struct.pack("<4i", *anchor, 0, 0)))
    if placeholder:
        parts.append(container(0xF011, atom(3011, bytes(8))))
    return container(0xF004, *parts, container(0xF00D, *inside))


def reference(index: int) -> bytes:
    return shape(atom(3998, struct.pack("<I", index)), placeholder=True)


def page(kind: int, *shapes: bytes, head: bytes = b"") -> bytes:
    return container(kind, head, container(1036, container(0xF002, container(0xF003, *shapes))))


def entry(number: int, identity: int, *texts: bytes) -> bytes:
    return atom(1011, struct.pack("<5I", number, 0, len(texts), identity, 0)) + b"".join(texts)


def presentation(
    slides: list[tuple[bytes, list[bytes]]],
    notes: Mapping[int, bytes] | None = None,
    masters: list[bytes] | None = None,
    token: int = TOKEN,
    order: list[int] | None = None,
) -> dict[str, bytes]:
    """The streams of a presentation; slides are their pages and the texts listed for them."""
    stream = b""
    offsets: list[int] = []

    def put(record: bytes) -> int:
        nonlocal stream
        offsets.append(len(stream))
        stream += record
        return len(offsets)  # numbers count from 1

    slide_entries = [entry(put(record), 256 + index, *texts) for index, (record, texts) in enumerate(slides)]
    slide_entries = [slide_entries[index] for index in order or range(len(slides))]
    master_entries = [entry(put(record), 1000 + index) for index, record in enumerate(masters or [])]
    note_entries = [
        entry(put(page(1008, shape(text(NOTES, "")), record, head=atom(1009, struct.pack("<II", 256 + index, 0)))), 0)
        for index, record in (notes or {}).items()
    ]
    document = put(
        container(
            1000,
            container(4080, *master_entries, instance=1),
            container(4080, *slide_entries, instance=0),
            container(4080, *note_entries, instance=2),
        )
    )
    directory = len(stream)
    stream += atom(6002, struct.pack(f"<{len(offsets) + 1}I", len(offsets) << 20 | 1, *offsets))
    edit = len(stream)
    stream += atom(4085, struct.pack("<IIIIIII", 0, 0, 0, directory, document, 0, 0))
    return {"PowerPoint Document": stream, "Current User": atom(4086, struct.pack("<III", 20, token, edit))}


def read(data: bytes) -> Extracted:
    return extract(Source(data, "old.ppt"))


def test_slides_in_the_order_of_the_list_with_titles_text_and_notes(compound_file: Writer) -> None:
    second = page(1006, shape(text(OTHER, "A box")), reference(1), reference(0))
    first = page(1006, shape(text(TITLE, "Начало"), placeholder=True), shape(text(BODY, "one\rtwo\x0bthree")))
    data = compound_file(
        presentation(
            [(second, [text(TITLE, "Next"), text(BODY, "Listed")]), (first, [])],
            notes={1: shape(text(NOTES, "Say hello."))},
            order=[1, 0],
        )
    )
    extracted = read(data)
    assert extracted.text == "Начало\n\none\ntwo\nthree\n\nSay hello.\n\nNext\n\nA box\n\nListed"
    assert [(heading.level, heading.title) for heading in extracted.headings] == [(1, "Начало"), (1, "Next")]
    starts = {place.label: extracted.text[place.start :].split("\n")[0] for place in extracted.places}
    assert starts == {"slide 1": "Начало", "slide 1 notes": "Say hello.", "slide 2": "Next"}
    assert extracted.title == "Начало"


def test_listed_texts_that_no_shape_shows_are_read_once(compound_file: Writer) -> None:
    slide = page(1006, shape(text(OTHER, "Shown")))
    assert (
        read(compound_file(presentation([(slide, [text(OTHER, "Shown"), text(BODY, "Lost")])]))).text == "Shown\n\nLost"
    )


def test_a_slide_without_a_title_has_a_section_of_its_own(compound_file: Writer) -> None:
    slides: list[tuple[bytes, list[bytes]]] = [
        (page(1006, shape(text(TITLE, "One"))), []),
        (page(1006, shape(text(OTHER, "Two"))), []),
    ]
    extracted = read(compound_file(presentation(slides)))
    assert [heading.title for heading in extracted.headings] == ["One", "Slide 2"]
    assert extracted.text == "One\n\nTwo"


def test_tables_become_rows(compound_file: Writer) -> None:
    def cell(value: str, left: int, top: int) -> bytes:
        return shape(text(OTHER, value), anchor=(left, top))

    is_table = container(0xF004, atom(0xF122, struct.pack("<HI", 0x039F, 1), instance=1))
    group = container(
        0xF003, is_table, cell("3", 50, 20), cell("Tea", 10, 20), cell("What", 10, 10), cell("Price", 50, 10)
    )
    assert read(compound_file(presentation([(page(1006, group), [])]))).text == "What | Price\nTea | 3"


def test_masters_give_their_own_text_but_not_their_examples(compound_file: Writer) -> None:
    master = page(
        1016,
        shape(text(TITLE, "Click to edit Master title style"), placeholder=True),
        shape(text(OTHER, "Our company")),
    )
    slide = page(1006, shape(text(TITLE, "One")), shape(text(OTHER, "*")))
    extracted = read(compound_file(presentation([(slide, [])], masters=[master, master])))
    assert extracted.text == "One\n\nOur company"
    assert [place.label for place in extracted.places] == ["slide 1", ""]


def test_footers_and_comments_are_text_and_tags_are_not(compound_file: Writer) -> None:
    def string(value: str, instance: int) -> bytes:
        return atom(4026, value.encode("utf-16-le"), instance)

    footer = container(4057, string("a date", 0), string("Confidential", 2))
    comment = container(12000, string("Ann", 0), string("Why?", 1), string("A", 2))
    tags = container(5000, container(5002, string("___PPT10", 0), atom(5003, comment)))
    slide = container(1006, page(1006, shape(text(TITLE, "One")))[8:], footer, tags)
    assert read(compound_file(presentation([(slide, [])]))).text == "One\n\nConfidential\n\nAnn: Why?"


def test_the_last_save_counts(compound_file: Writer) -> None:
    parts = presentation([(page(1006, shape(text(TITLE, "Old"))), [])])
    stream = parts["PowerPoint Document"]
    (first_edit,) = struct.unpack_from("<I", parts["Current User"], 16)
    new_slide = len(stream)
    stream += page(1006, shape(text(TITLE, "New")))
    directory = len(stream)
    stream += atom(6002, struct.pack("<II", 1 << 20 | 1, new_slide))
    edit = len(stream)
    stream += atom(4085, struct.pack("<IIIIIII", 0, 0, first_edit, directory, 2, 0, 0))
    user = atom(4086, struct.pack("<III", 20, TOKEN, edit))
    assert read(compound_file({"PowerPoint Document": stream, "Current User": user})).text == "New"


def test_without_its_lists_the_slides_are_still_found(compound_file: Writer) -> None:
    slides: list[tuple[bytes, list[bytes]]] = [
        (page(1006, shape(text(TITLE, "One"))), []),
        (page(1006, shape(text(OTHER, "Two"))), []),
    ]
    parts = presentation(slides)
    extracted = read(compound_file({"PowerPoint Document": parts["PowerPoint Document"]}))
    assert extracted.text == "One\n\nTwo"
    assert [place.label for place in extracted.places] == ["slide 1", "slide 2"]


def test_saves_that_point_at_each_other_end(compound_file: Writer) -> None:
    edit = atom(4085, struct.pack("<IIIIIII", 0, 0, 0, 0, 1, 0, 0))
    slide = page(1006, shape(text(TITLE, "One")))
    stream = slide + atom(4085, struct.pack("<IIIIIII", 0, 0, len(slide), 0, 1, 0, 0)) + edit
    user = atom(4086, struct.pack("<III", 20, TOKEN, len(slide)))
    assert read(compound_file({"PowerPoint Document": stream, "Current User": user})).text == "One"


def test_groups_nested_beyond_reason_are_cut(compound_file: Writer) -> None:
    deep = shape(text(OTHER, "Deep"))
    for _ in range(tries(2000, short=300)):
        deep = container(0xF003, deep)
    slide = page(1006, shape(text(TITLE, "One")), deep)
    assert read(compound_file(presentation([(slide, [])]))).text == "One"


def refusal(data: bytes) -> tuple[str, str]:
    with pytest.raises(UnreadableError) as caught:
        read(data)
    return caught.value.reason, caught.value.detail


def test_presentations_without_text(compound_file: Writer) -> None:
    slides: list[tuple[bytes, list[bytes]]] = [(page(1006, shape(text(TITLE, "One"))), [])]
    locked = presentation(slides, token=ENCRYPTED_TOKEN)
    assert refusal(compound_file(locked)) == ("encrypted", "needs a password")
    assert refusal(compound_file({"PP40": b"x"}))[0] == "unsupported"
    assert refusal(compound_file({"WordDocument": b"x"})) == ("damaged", "holds no presentation")
    assert refusal(compound_file(presentation([(page(1006), [])])))[0] == "no-text"


def test_damage(
    compound_file: Writer, survives_damage: Callable[[Callable[[Source], Extracted], bytes, str], None]
) -> None:
    slides: list[tuple[bytes, list[bytes]]] = [
        (page(1006, reference(0), reference(1)), [text(TITLE, "Next"), text(BODY, "Listed")]),
        (page(1006, shape(text(TITLE, "Начало")), shape(text(OTHER, "Box"))), []),
    ]
    parts = presentation(slides, notes={0: shape(text(NOTES, "Say hello."))})
    survives_damage(extract, compound_file(parts), "old.ppt")
