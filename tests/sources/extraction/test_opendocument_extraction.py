"""OpenDocument texts and presentations, zipped and flat."""

from __future__ import annotations

import io
import zipfile
from datetime import UTC, datetime

import pytest

from findling.sources.documents.document_formats import extract as read_by_name
from findling.sources.documents.office.opendocument import extract
from findling.sources.extracted import Extracted, Source
from findling.sources.files.file_text import UnreadableError

PREFIX = "urn:oasis:names:tc:opendocument:xmlns:"
NAMESPACES = " ".join(
    [
        *(
            f'xmlns:{name}="{PREFIX}{name}:1.0"'
            for name in ("office", "text", "table", "style", "presentation", "meta")
        ),
        f'xmlns:draw="{PREFIX}drawing:1.0"',
        f'xmlns:svg="{PREFIX}svg-compatible:1.0"',
        'xmlns:xlink="http://www.w3.org/1999/xlink"',
        'xmlns:dc="http://purl.org/dc/elements/1.1/"',
    ]
)


def xml(root: str, content: str) -> str:
    return f'<?xml version="1.0" encoding="UTF-8"?><office:{root} {NAMESPACES}>{content}</office:{root}>'


def zipped(parts: dict[str, str]) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in parts.items():
            archive.writestr(name, text)
    return stream.getvalue()


def odf(body: str, parts: dict[str, str] | None = None, kind: str = "text", styles: str = "") -> bytes:
    content = f"<office:automatic-styles>{styles}</office:automatic-styles>"
    content += f"<office:body><office:{kind}>{body}</office:{kind}></office:body>"
    return zipped({"content.xml": xml("document-content", content), **(parts or {})})


def read(body: str, parts: dict[str, str] | None = None, kind: str = "text", styles: str = "") -> Extracted:
    return extract(Source(odf(body, parts, kind, styles), "a.odt"))


def p(text: str, style: str = "") -> str:
    return f'<text:p text:style-name="{style}">{text}</text:p>'


def labels(extracted: Extracted) -> list[tuple[str, str]]:
    """Each place with the text that begins there."""
    return [(place.label, extracted.text[place.start :].lstrip().partition("\n")[0]) for place in extracted.places]


def test_paragraphs_with_spaces_tabs_breaks_spans_and_links() -> None:
    body = p("Two\n  words<text:s text:c='3'/>wide<text:s/>on<text:tab/>tab<text:line-break/>line") + p(
        "A <text:span>styled <text:a>link</text:a></text:span> here<text:bookmark/>."
    )
    assert read(body).text == "Two words   wide on\ttab\nline\n\nA styled link here."


def test_headings_by_level_and_by_style() -> None:
    styles = (
        '<style:style style:name="P1" style:parent-style-name="Title"/>'
        '<style:style style:name="P2" style:parent-style-name="Heading_20_3"/>'
        '<style:style style:name="P3" style:parent-style-name="P3"/>'
    )
    body = (
        p("The title", "P1")
        + '<text:h text:outline-level="2">Section</text:h><text:h>No level</text:h>'
        + p("As a style", "P2")
        + p("Plain", "P3")
    )
    extracted = read(body, styles=styles)
    assert [(each.title, each.level) for each in extracted.headings] == [
        ("The title", 1), ("Section", 2), ("No level", 1), ("As a style", 3)
    ]  # fmt: skip
    assert extracted.title == "The title"
    assert extracted.text.endswith("As a style\n\nPlain")


def test_lists_of_lists_are_lines() -> None:
    inner = f"<text:list><text:list-item>{p('inner')}</text:list-item></text:list>"
    body = (
        p("Before")
        + f"<text:list><text:list-item>{p('one')}{inner}</text:list-item><text:list-item>{p('two')}</text:list-item>"
        "</text:list>" + p("After")
    )
    assert read(body).text == "Before\n\n- one\n- inner\n- two\n\nAfter"


def test_tables_are_rows() -> None:
    def cell(content: str) -> str:
        return f"<table:table-cell>{content}</table:table-cell>"

    nested = f"<table:table><table:table-row>{cell(p('n1'))}{cell(p('n2'))}</table:table-row></table:table>"
    items = f"<text:list><text:list-item>{p('x')}</text:list-item><text:list-item>{p('y')}</text:list-item></text:list>"
    body = (
        "<table:table><table:table-header-rows><table:table-row>"
        + cell(p("Name"))
        + cell(p("Value"))
        + "</table:table-row></table:table-header-rows><table:table-row>"
        + cell(p("a") + p("b"))
        + "<table:covered-table-cell/>"
        + cell(items + nested)
        + f"</table:table-row><table:table-row>{cell('')}{cell('')}</table:table-row></table:table>"
        + p("After")
    )
    assert read(body).text == "Name | Value\na b | x y\n\nn1 | n2\n\nAfter"


def test_notes_comments_and_frames_follow_their_paragraph() -> None:
    body = p(
        "See<text:note><text:note-citation>1</text:note-citation><text:note-body>"
        + p("The note.")
        + "</text:note-body></text:note> here<office:annotation><dc:creator>Ada</dc:creator><dc:date>2020</dc:date>"
        + p("Why?")
        + "</office:annotation>, please<draw:frame><draw:text-box>"
        + p("Boxed")
        + "</draw:text-box><svg:title>A cat</svg:title></draw:frame>."
    )
    assert read(body).text == "See here, please.\n\nThe note.\n\nAda: Why?\n\nBoxed\n\nA cat"


def test_deleted_text_and_form_controls_are_left_out() -> None:
    body = (
        f"<text:tracked-changes><text:changed-region><text:deletion>{p('gone')}</text:deletion></text:changed-region>"
        f"</text:tracked-changes><office:forms>{p('control')}</office:forms>"
        + p("<text:ruby><text:ruby-base>漢</text:ruby-base><text:ruby-text>かん</text:ruby-text></text:ruby>")
    )
    assert read(body).text == "漢"


def test_headers_come_first_and_footers_last() -> None:
    styles = xml(
        "document-styles",
        f"<office:master-styles><style:master-page><style:header>{p('Company')}</style:header>"
        f"<style:footer>{p('Page <text:page-number>1</text:page-number>')}</style:footer>"
        f"<style:header-left>{p('Company')}</style:header-left></style:master-page></office:master-styles>",
    )
    assert read(p("Body"), {"styles.xml": styles}).text == "Company\n\nBody\n\nPage 1"


def test_an_object_is_opened_once_even_if_it_holds_itself() -> None:
    reference = '<draw:frame><draw:object xlink:href="./Object 1"/></draw:frame>'
    chart = xml("document-content", f"<office:body>{p('Chart title')}{reference}</office:body>")
    assert read(p(f"Text{reference}"), {"Object 1/content.xml": chart}).text == "Text\n\nChart title"


def slide(content: str) -> str:
    return f"<draw:page>{content}</draw:page>"


def frame(content: str, class_: str = "") -> str:
    return f'<draw:frame presentation:class="{class_}"><draw:text-box>{content}</draw:text-box></draw:frame>'


def test_slides_of_a_presentation() -> None:
    bullets = f"<text:list><text:list-item>{p('Point')}</text:list-item></text:list>"
    notes = f"<presentation:notes><draw:page-thumbnail/>{frame(p('Say hello.'), 'notes')}</presentation:notes>"
    body = (
        slide(frame(bullets, "outline") + frame(p("First") + p("title"), "title") + notes)
        + slide(f"<draw:g><draw:custom-shape>{p('Shape')}</draw:custom-shape></draw:g>{frame(p(''), 'title')}")
        + slide(frame(p("Third"), "title") + "<presentation:notes/>")
    )
    extracted = read(body, kind="presentation")
    assert extracted.text == "First title\n\n- Point\n\nSay hello.\n\nShape\n\nThird"
    assert labels(extracted) == [
        ("slide 1", "First title"), ("slide 1 notes", "Say hello."), ("slide 2", "Shape"), ("slide 3", "Third")
    ]  # fmt: skip
    assert [each.title for each in extracted.headings] == ["First title", "Slide 2", "Third"]


META = (
    "<office:meta><dc:title>Annual report</dc:title><meta:initial-creator>Ada</meta:initial-creator>"
    "<dc:creator>Bob</dc:creator><meta:creation-date>2024-02-03T04:05:06.123456789</meta:creation-date>"
    "<dc:date>2024-03-01</dc:date><dc:language>de-DE</dc:language><meta:keyword>a</meta:keyword>"
    "<meta:keyword>b</meta:keyword></office:meta>"
)


def test_properties_of_the_document() -> None:
    extracted = read(p("Text"), {"meta.xml": xml("document-meta", META)})
    assert (extracted.title, extracted.author) == ("Annual report", "Ada")
    assert extracted.created_at == datetime(2024, 2, 3, 4, 5, 6, 123456, tzinfo=UTC).timestamp()
    assert extracted.updated_at == datetime(2024, 3, 1, tzinfo=UTC).timestamp()
    assert extracted.fields == {"language": "de-DE", "keywords": "a, b"}


def test_flat_files_are_read() -> None:
    picture = "<draw:frame><draw:image><office:binary-data>QUJD</office:binary-data></draw:image></draw:frame>"
    flat = xml("document", f"{META}<office:body><office:text>{p(f'Text{picture}')}</office:text></office:body>")
    extracted = extract(Source(b"\xef\xbb\xbf" + flat.encode(), "a.fodt"))
    assert (extracted.text, extracted.title) == ("Text", "Annual report")


ENCRYPTED = (
    '<manifest:manifest xmlns:manifest="urn:m"><manifest:file-entry manifest:full-path="content.xml">'
    "<manifest:encryption-data/></manifest:file-entry></manifest:manifest>"
)


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"Not a zip file.", "damaged"),
        (b"<html><body", "damaged"),
        (b"<html/>", "damaged"),
        (zipped({"mimetype": "application/vnd.oasis.opendocument.text"}), "damaged"),
        (zipped({"content.xml": "\x17 random bytes", "META-INF/manifest.xml": ENCRYPTED}), "encrypted"),
        (odf(p("")), "no-text"),
    ],
)
def test_a_document_without_text_says_why(data: bytes, reason: str) -> None:
    with pytest.raises(UnreadableError) as caught:
        extract(Source(data, "a.odt"))
    assert caught.value.reason == reason


def test_broken_side_parts_do_not_lose_the_text() -> None:
    parts = dict.fromkeys(("styles.xml", "meta.xml", "META-INF/manifest.xml"), "<broken")
    assert read(p("Text"), parts).text == "Text"


def test_deep_nesting_is_read() -> None:
    lists = "<text:list><text:list-item>" * 3000 + p("deep") + "</text:list-item></text:list>" * 3000
    spans = p("<text:span>" * 5000 + "span" + "</text:span>" * 5000)
    assert read(lists + spans).text == "- deep\n\nspan"


def test_a_huge_count_of_spaces_is_few() -> None:
    assert len(read(p("a<text:s text:c='999999999'/>b")).text) < 200


def test_text_beyond_the_limit_is_left_out() -> None:
    extracted = extract(Source(odf(p("word " * 10) * 100), "a.odt", limit=100))
    assert len(extracted.text) <= 100
    assert "truncated" in extracted.fields


def test_a_broken_part_beside_the_text_is_no_crash() -> None:
    data = bytearray(odf(p("still here"), {"mimetype": "application/vnd.oasis.opendocument.text " * 9}))
    start = data.index(b"mimetype") + len("mimetype")
    data[start : start + 4] = b"\xff" * 4
    assert read_by_name(Source(bytes(data), "a.odt")).text == "still here"
