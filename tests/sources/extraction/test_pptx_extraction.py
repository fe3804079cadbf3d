"""Presentations: slides in their order, each with its title, its text, its notes and its comments."""

from __future__ import annotations

import io
import zipfile

import pytest

from findling.sources.documents.office.pptx import extract
from findling.sources.extracted import Extracted, Source
from findling.sources.files.file_text import UnreadableError

OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
NAMESPACES = (
    'xmlns:p="http://schemas.openxmlformats.org/presentationml/2006/main" xmlns:a="urn:a" xmlns:c="urn:chart" '
    f'xmlns:dgm="urn:diagram" xmlns:mc="urn:mc" xmlns:p188="urn:p188" xmlns:r="{OFFICE}"'
)


def xml(root: str, content: str) -> str:
    return f"<p:{root} {NAMESPACES}>{content}</p:{root}>"


def relationships(*targets: tuple[str, str, str]) -> str:
    entries = "".join(
        f'<Relationship Id="{id_}" Type="{OFFICE}/{kind}" Target="{target}"/>' for id_, kind, target in targets
    )
    return f'<Relationships xmlns="urn:relationships">{entries}</Relationships>'


def zipped(parts: dict[str, str]) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in parts.items():
            archive.writestr(name, text)
    return stream.getvalue()


def pptx(slides: list[str], parts: dict[str, str] | None = None) -> bytes:
    """A presentation whose slides are stored in the reverse of their order."""
    numbers = range(len(slides), 0, -1)
    ids = "".join(f'<p:sldId id="{255 + number}" r:id="rId{number}"/>' for number in numbers)
    targets = [(f"rId{number}", "slide", f"slides/slide{number}.xml") for number in numbers]
    return zipped(
        {
            "_rels/.rels": relationships(("rId1", "officeDocument", "ppt/presentation.xml")),
            "ppt/presentation.xml": xml("presentation", f"<p:sldIdLst>{ids}</p:sldIdLst>"),
            "ppt/_rels/presentation.xml.rels": relationships(*targets, ("authors", "commentAuthors", "authors.xml")),
            **{
                f"ppt/slides/slide{number}.xml": xml("sld", f"<p:cSld><p:spTree>{slide}</p:spTree></p:cSld>")
                for number, slide in zip(numbers, slides, strict=True)
            },
            **(parts or {}),
        }
    )


def read(slides: list[str], parts: dict[str, str] | None = None) -> Extracted:
    return extract(Source(pptx(slides, parts), "a.pptx"))


def paragraph(text: str) -> str:
    return f"<a:p><a:pPr/><a:r><a:rPr/><a:t>{text}</a:t></a:r><a:endParaRPr/></a:p>"


def shape(*lines: str, placeholder: str = "") -> str:
    mark = f'<p:ph type="{placeholder}"/>' if placeholder else ""
    body = "".join(map(paragraph, lines))
    return f"<p:sp><p:nvSpPr><p:nvPr>{mark}</p:nvPr></p:nvSpPr><p:txBody><a:bodyPr/>{body}</p:txBody></p:sp>"


def labels(extracted: Extracted) -> list[tuple[str, str]]:
    """Each place with the text that begins there."""
    return [(place.label, extracted.text[place.start :].lstrip().partition("\n")[0]) for place in extracted.places]


def test_slides_come_in_the_order_of_the_presentation_with_their_titles_first() -> None:
    extracted = read(
        [
            shape("Body", "Bullet") + shape("First title", placeholder="ctrTitle"),
            shape("Second", "title", placeholder="title") + shape("More"),
        ]
    )
    assert extracted.text == "First title\n\nBody\nBullet\n\nSecond title\n\nMore"
    assert labels(extracted) == [("slide 1", "First title"), ("slide 2", "Second title")]
    assert [(each.title, each.level) for each in extracted.headings] == [("First title", 1), ("Second title", 1)]
    assert extracted.title == "First title"


def test_a_slide_without_a_title_does_not_belong_to_the_slide_before() -> None:
    extracted = read([shape("Title", placeholder="title"), shape("", placeholder="title") + shape("Text")])
    assert [each.title for each in extracted.headings] == ["Title", "Slide 2"]
    assert extracted.text == "Title\n\nText"
    assert read([shape("Text")]).title == ""


def test_line_breaks_fields_and_groups() -> None:
    text = "<a:p><a:r><a:t>one</a:t></a:r><a:br/><a:fld><a:t>two</a:t></a:fld></a:p>"
    frame = f"<p:sp><p:txBody>{text}</p:txBody></p:sp>"
    group = f"<p:grpSp>{shape('inner')}<p:grpSp>{shape('innermost')}</p:grpSp></p:grpSp>"
    assert read([frame + group + shape("outer")]).text == "one\ntwo\n\ninner\n\ninnermost\n\nouter"


def test_tables_are_rows() -> None:
    cell = "<a:tc><a:txBody>{}</a:txBody></a:tc>"
    first = cell.format(paragraph("Name")) + cell.format(paragraph("Long") + paragraph("value"))
    second = cell.format(paragraph("a")) + cell.format("<a:p/>")
    empty = cell.format("<a:p/>") * 2
    table = "".join(f"<a:tr>{row}</a:tr>" for row in (first, second, empty))
    slide = f"<p:graphicFrame><a:graphic><a:tbl>{table}</a:tbl></a:graphic></p:graphicFrame>"
    assert read([slide]).text == "Name | Long value\na |"


def test_diagrams_charts_and_described_pictures() -> None:
    slide = (
        '<p:graphicFrame><dgm:relIds r:dm="d" r:lo="x"/></p:graphicFrame>'
        '<p:graphicFrame><c:chart r:id="c"/></p:graphicFrame><p:graphicFrame><c:chart r:id="missing"/></p:graphicFrame>'
        '<p:pic><p:nvPicPr><p:cNvPr id="4" descr="A lighthouse"/></p:nvPicPr></p:pic>'
    )
    parts = {
        "ppt/slides/_rels/slide1.xml.rels": relationships(
            ("d", "diagramData", "../diagrams/data1.xml"), ("c", "chart", "../charts/chart1.xml")
        ),
        "ppt/diagrams/data1.xml": xml("data", f"<dgm:pt><dgm:t>{paragraph('Step')}</dgm:t></dgm:pt>"),
        "ppt/charts/chart1.xml": xml("chart", f"<c:title><c:rich>{paragraph('Growth')}</c:rich></c:title>"),
    }
    assert read([slide], parts).text == "Step\n\nGrowth\n\nA lighthouse"


def test_one_of_several_alternatives_is_read() -> None:
    slide = (
        f"<mc:AlternateContent><mc:Choice>{shape('new')}</mc:Choice><mc:Fallback>{shape('old')}</mc:Fallback>"
        "</mc:AlternateContent>"
    )
    assert read([slide]).text == "new"


def test_notes_have_a_place_of_their_own_and_comments_an_author() -> None:
    notes = shape("Say hello.", placeholder="body") + shape("7", placeholder="sldNum") + shape("", placeholder="sldImg")
    parts = {
        "ppt/slides/_rels/slide1.xml.rels": relationships(
            ("n", "notesSlide", "../notesSlides/n.xml"),
            ("old", "comments", "../comments/old.xml"),
            ("new", "comments", "../comments/new.xml"),
        ),
        "ppt/notesSlides/n.xml": xml("notes", f"<p:cSld><p:spTree>{notes}</p:spTree></p:cSld>"),
        "ppt/comments/old.xml": xml("cmLst", '<p:cm authorId="0"><p:text>Too short</p:text></p:cm>'),
        "ppt/comments/new.xml": xml(
            "cmLst",
            f'<p188:cm authorId="1"><p188:replyLst><p188:reply authorId="0"><p188:txBody>{paragraph("No")}'
            f"</p188:txBody></p188:reply></p188:replyLst><p188:txBody>{paragraph('Sure?')}</p188:txBody></p188:cm>",
        ),
        "ppt/authors.xml": xml("lst", '<p:cmAuthor id="0" name="Ada"/><p:cmAuthor id="1" name="Bob"/>'),
    }
    extracted = read([shape("Title", placeholder="title")], parts)
    assert extracted.text == "Title\n\nSay hello.\n\nAda: Too short\n\nBob: Sure?\n\nAda: No"
    assert labels(extracted) == [("slide 1", "Title"), ("slide 1 notes", "Say hello.")]


def test_footers_are_read_once_and_slide_numbers_never() -> None:
    slide = shape("Text") + shape("© Company", placeholder="ftr") + shape("9", placeholder="sldNum")
    assert read([slide, slide]).text == "Text\n\n© Company\n\nText"


def test_text_on_the_master_is_read_once_and_its_hints_are_not() -> None:
    layout = [("l", "slideLayout", "../slideLayouts/l.xml")]
    parts = {
        "ppt/slides/_rels/slide1.xml.rels": relationships(*layout),
        "ppt/slides/_rels/slide2.xml.rels": relationships(*layout),
        "ppt/slideLayouts/l.xml": xml("l", shape("Click to edit", placeholder="title") + shape("On the layout")),
        "ppt/slideLayouts/_rels/l.xml.rels": relationships(("m", "slideMaster", "../slideMasters/m.xml")),
        "ppt/slideMasters/m.xml": xml("m", shape("Confidential")),
    }
    extracted = read([shape("One"), shape("Two")], parts)
    assert extracted.text == "One\n\nTwo\n\nOn the layout\nConfidential"
    assert labels(extracted)[-1] == ("", "On the layout")


def test_a_broken_slide_does_not_lose_the_others() -> None:
    parts = {"ppt/slides/slide2.xml": "<p:sld"}
    extracted = read([shape("One"), shape("Two"), shape("Three")], parts)
    assert labels(extracted) == [("slide 1", "One"), ("slide 3", "Three")]


def test_slides_are_found_without_the_presentation() -> None:
    slides = {f"ppt/slides/slide{number}.xml": xml("sld", shape(f"Slide of {number}")) for number in (10, 9, 1)}
    extracted = extract(Source(zipped(slides), "a.pptx"))
    assert labels(extracted) == [("slide 1", "Slide of 1"), ("slide 2", "Slide of 9"), ("slide 3", "Slide of 10")]


def test_properties_of_the_presentation() -> None:
    core = "<core><title>PowerPoint-Präsentation</title><creator>Ada</creator><subject>Talks</subject></core>"
    extracted = read([shape("Real title", placeholder="title")], {"docProps/core.xml": core})
    assert (extracted.title, extracted.author, extracted.fields["subject"]) == ("Real title", "Ada", "Talks")


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"%PDF-1.4", "damaged"),
        (zipped({"word/document.xml": "<document/>"}), "damaged"),
        (zipped({"ppt/presentation.xml": "<presentation"}), "damaged"),
        (zipped({"ppt/presentation.xml": "<presentation/>"}), "no-text"),
        (pptx([shape("One")], {"ppt/slides/slide1.xml": "<sld"}), "damaged"),
        (pptx([shape("")]), "no-text"),
    ],
)
def test_a_presentation_without_text_says_why(data: bytes, reason: str) -> None:
    with pytest.raises(UnreadableError) as caught:
        extract(Source(data, "a.pptx"))
    assert caught.value.reason == reason


def test_deep_nesting_is_read() -> None:
    assert read(["<p:grpSp>" * 5000 + shape("deep") + "</p:grpSp>" * 5000]).text == "deep"


def test_text_beyond_the_limit_is_left_out() -> None:
    extracted = extract(Source(pptx([shape("word " * 10)] * 20), "a.pptx", limit=100))
    assert len(extracted.text) <= 100
    assert "truncated" in extracted.fields
