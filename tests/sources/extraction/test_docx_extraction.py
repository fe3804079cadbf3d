"""Word documents: what a reader of the document sees, in its order, and what its author says about it."""

from __future__ import annotations

import io
import zipfile
from datetime import UTC, datetime

import pytest

from findling.sources.documents.office.docx import extract
from findling.sources.extracted import Extracted, Source
from findling.sources.files.file_text import UnreadableError

WORD = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
STRICT_WORD = "http://purl.oclc.org/ooxml/wordprocessingml/main"
OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
NAMESPACES = (
    f'xmlns:r="{OFFICE}" xmlns:mc="http://schemas.openxmlformats.org/markup-compatibility/2006" '
    'xmlns:wps="urn:wps" xmlns:v="urn:schemas-microsoft-com:vml" xmlns:c="urn:chart" xmlns:dgm="urn:diagram" '
    'xmlns:m="urn:math" xmlns:wp="urn:drawing" xmlns:a="urn:a"'
)


def word_xml(root: str, content: str, namespace: str = WORD) -> str:
    return f'<w:{root} xmlns:w="{namespace}" {NAMESPACES}>{content}</w:{root}>'


def relationships(**targets: str) -> str:
    """Relationships by the last word of their types, with ids of the same name."""
    entries = "".join(
        f'<Relationship Id="{kind}{number}" Type="{OFFICE}/{kind}" Target="{target}"/>'
        for kind, listed in targets.items()
        for number, target in enumerate(listed.split())
    )
    return (
        f'<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships">{entries}</Relationships>'
    )


def zipped(parts: dict[str, str]) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in parts.items():
            archive.writestr(name, text)
    return stream.getvalue()


def docx(body: str, parts: dict[str, str] | None = None, namespace: str = WORD) -> bytes:
    document = word_xml("document", f"<w:body>{body}</w:body>", namespace)
    return zipped(
        {
            "_rels/.rels": relationships(officeDocument="word/document.xml"),
            "word/document.xml": document,
            **(parts or {}),
        }
    )


def read(body: str, parts: dict[str, str] | None = None, limit: int = 1 << 20) -> Extracted:
    return extract(Source(docx(body, parts), "a.docx", limit))


def p(text: str, properties: str = "") -> str:
    return f"<w:p><w:pPr>{properties}</w:pPr>{r(text)}</w:p>"


def r(text: str) -> str:
    return f'<w:r><w:t xml:space="preserve">{text}</w:t></w:r>'


def table(*rows: list[str]) -> str:
    cells = ("".join(f"<w:tc><w:tcPr/>{cell}</w:tc>" for cell in row) for row in rows)
    return f"<w:tbl><w:tblPr/>{''.join(f'<w:tr>{row}</w:tr>' for row in cells)}</w:tbl>"


def labels(extracted: Extracted) -> list[tuple[str, str]]:
    """Each place with the text that begins there."""
    return [(place.label, extracted.text[place.start :].lstrip().partition("\n")[0]) for place in extracted.places]


def test_paragraphs_runs_tabs_and_breaks() -> None:
    body = p("One") + (
        f"<w:p>{r('Two ')}<w:r><w:t>parts</w:t><w:tab/><w:t>tab</w:t><w:br/><w:t>next line</w:t></w:r>"
        "<w:r><w:t>non</w:t><w:noBreakHyphen/><w:t>stop</w:t></w:r></w:p>"
    )
    assert read(body).text == "One\n\nTwo parts\ttab\nnext linenon-stop"


def test_strict_documents_and_other_prefixes_are_read() -> None:
    assert extract(Source(docx(p("Strict"), namespace=STRICT_WORD), "a.docx")).text == "Strict"
    document = f'<document xmlns="{WORD}"><body><p><r><t>No prefix</t></r></p></body></document>'
    assert extract(Source(zipped({"word/document.xml": document}), "a.docx")).text == "No prefix"


def test_headings_come_from_styles_their_parents_and_the_paragraph() -> None:
    styles = word_xml(
        "styles",
        '<w:style w:styleId="Titel"><w:name w:val="Title"/></w:style>'
        '<w:style w:styleId="berschrift2"><w:name w:val="heading 2"/></w:style>'
        '<w:style w:styleId="Mine"><w:name w:val="Mine"/><w:basedOn w:val="berschrift2"/></w:style>'
        '<w:style w:styleId="Deep"><w:name w:val="Deep"/><w:pPr><w:outlineLvl w:val="3"/></w:pPr></w:style>'
        '<w:style w:styleId="Body"><w:basedOn w:val="Mine"/><w:pPr><w:outlineLvl w:val="9"/></w:pPr></w:style>'
        '<w:style w:styleId="LoopA"><w:basedOn w:val="LoopB"/></w:style>'
        '<w:style w:styleId="LoopB"><w:basedOn w:val="LoopA"/></w:style>',
    )
    body = "".join(
        p(name, f'<w:pStyle w:val="{name}"/>')
        for name in ("Titel", "berschrift2", "Mine", "Deep", "Body", "LoopA", "Heading3", "Unknown")
    ) + p("Own", '<w:outlineLvl w:val="4"/>')
    extracted = read(body, {"word/styles.xml": styles})
    assert [(each.title, each.level) for each in extracted.headings] == [
        ("Titel", 1), ("berschrift2", 2), ("Mine", 2), ("Deep", 4), ("Heading3", 3), ("Own", 5)
    ]  # fmt: skip
    assert all(extracted.text.startswith(each.title, each.start) for each in extracted.headings)
    assert extracted.title == "Titel"


def test_a_whole_paragraph_in_a_heading_style_is_no_heading() -> None:
    assert read(p("word " * 100, '<w:pStyle w:val="Heading1"/>')).headings == ()


def test_list_items_stand_together_apart_from_tables() -> None:
    item = '<w:numPr><w:numId w:val="1"/></w:numPr>'
    styles = word_xml("styles", f'<w:style w:styleId="Bullet"><w:pPr>{item}</w:pPr></w:style>')
    body = (
        p("Intro")
        + p("first", item)
        + p("second", '<w:pStyle w:val="Bullet"/>')
        + p("none", '<w:pStyle w:val="Bullet"/><w:numPr><w:numId w:val="0"/></w:numPr>')
        + table([p("a"), p("b")])
        + p("third", item)
    )
    assert read(body, {"word/styles.xml": styles}).text == "Intro\n\n- first\n- second\n\nnone\n\na | b\n\n- third"


def test_tables_are_rows_and_nested_tables_follow_the_row_they_are_in() -> None:
    nested = table([p("n1"), p("n2")])
    body = table([p("Name"), p("Value")], [p("a") + p("b"), p("") + nested], [p(""), p("")], [p("last"), p("row")])
    assert read(body + p("After")).text == "Name | Value\na b |\n\nn1 | n2\nlast | row\n\nAfter"


def test_a_row_with_one_cell_is_a_frame_around_text() -> None:
    body = table([p("Title", '<w:pStyle w:val="Heading1"/>') + p("Text") + table([p("x"), p("y")])])
    extracted = read(body)
    assert extracted.text == "Title\n\nText\n\nx | y"
    assert extracted.headings[0].title == "Title"


def test_rows_and_cells_in_content_controls_are_found_and_deleted_rows_are_not() -> None:
    row = "<w:sdt><w:sdtContent><w:tr><w:sdt><w:sdtContent><w:tc>{}</w:tc></w:sdtContent></w:sdt><w:tc>{}</w:tc></w:tr>"
    body = (
        "<w:tbl>" + row.format(p("in"), p("control")) + "</w:sdtContent></w:sdt>"
        f"<w:tr><w:trPr><w:del/></w:trPr><w:tc>{p('gone')}</w:tc><w:tc>{p('gone')}</w:tc></w:tr></w:tbl>"
    )
    assert read(body).text == "in | control"


def test_inserted_text_is_in_and_deleted_text_is_out() -> None:
    body = (
        f"<w:p>{r('Keep ')}<w:ins>{r('new ')}</w:ins><w:del><w:r><w:delText>old</w:delText></w:r></w:del>"
        f"<w:moveFrom>{r('here')}</w:moveFrom><w:moveTo>{r('there')}</w:moveTo></w:p>"
    )
    assert read(body).text == "Keep new there"


def test_links_fields_controls_and_formulas_give_their_text() -> None:
    body = (
        f'<w:p><w:hyperlink r:id="x">{r("link ")}</w:hyperlink>'
        f'<w:r><w:fldChar w:fldCharType="begin"/></w:r><w:r><w:instrText> PAGEREF x </w:instrText></w:r>{r("12 ")}'
        f'<w:fldSimple w:instr="DATE">{r("today ")}</w:fldSimple>'
        f"<w:sdt><w:sdtContent>{r('control ')}</w:sdtContent></w:sdt>"
        "<m:oMath><m:r><m:t>x+y</m:t></m:r></m:oMath></w:p>"
        f"<w:sdt><w:sdtPr/><w:sdtContent>{p('block')}</w:sdtContent></w:sdt>"
        f"<w:sdt><w:sdtPr><w:showingPlcHdr/></w:sdtPr><w:sdtContent>{p('Click here.')}</w:sdtContent></w:sdt>"
    )
    assert read(body).text == "link 12 today control x+y\n\nblock"


def test_a_text_box_is_read_once_and_after_its_paragraph() -> None:
    box = f"<w:txbxContent>{p('In the box')}</w:txbxContent>"
    alternatives = (
        f"<mc:AlternateContent><mc:Choice><wps:txbx>{box}</wps:txbx></mc:Choice>"
        f"<mc:Fallback><w:pict><v:textbox>{box}</v:textbox></w:pict></mc:Fallback></mc:AlternateContent>"
    )
    fallback_only = (
        "<mc:AlternateContent><mc:Choice><wps:picture/></mc:Choice>"
        f"<mc:Fallback>{r('fallback')}</mc:Fallback></mc:AlternateContent>"
    )
    body = f"<w:p><w:r>{alternatives}</w:r>{r('Anchor')}</w:p><w:p>{fallback_only}</w:p>"
    assert read(body).text == "Anchor\n\nIn the box\n\nfallback"


def test_old_word_art_and_described_pictures_give_text() -> None:
    body = (
        '<w:p><w:r><w:pict><v:textpath string="DRAFT"/></w:pict></w:r></w:p>'
        '<w:p><w:r><w:drawing><wp:docPr descr="A red car&#10;&#10;Description automatically generated"/></w:drawing>'
        '</w:r><w:r><w:drawing><wp:docPr descr="C:\\pictures\\car.PNG"/></w:drawing></w:r></w:p>'
    )
    assert read(body).text == "DRAFT\n\nA red car"


def test_notes_and_comments_follow_the_paragraph_that_refers_to_them() -> None:
    notes = word_xml(
        "footnotes",
        f'<w:footnote w:type="separator" w:id="0">{p("-----")}</w:footnote>'
        f'<w:footnote w:id="1">{p("A footnote.")}</w:footnote><w:footnote w:id="2">{p("Lost footnote.")}</w:footnote>',
    )
    endnotes = word_xml("endnotes", f'<w:endnote w:id="1">{p("An endnote.")}</w:endnote>')
    comments = word_xml("comments", f'<w:comment w:id="1" w:author="Ada">{p("Really?")}{p("Yes.")}</w:comment>')
    body = (
        f'<w:p>{r("First")}<w:r><w:footnoteReference w:id="1"/></w:r><w:r><w:commentReference w:id="1"/></w:r></w:p>'
        + table([f'<w:p>{r("cell")}<w:r><w:endnoteReference w:id="1"/></w:r></w:p>', p("other")])
        + p("Last")
    )
    parts = {"word/footnotes.xml": notes, "word/endnotes.xml": endnotes, "word/comments.xml": comments}
    assert read(body, parts).text == (
        "First\n\nA footnote.\n\nAda: Really?\nYes.\n\ncell | other\n\nAn endnote.\n\nLast\n\nLost footnote."
    )


def test_headers_come_first_and_footers_last_and_each_once() -> None:
    parts = {
        "word/_rels/document.xml.rels": relationships(header="h1.xml h2.xml missing.xml", footer="f.xml"),
        "word/h1.xml": word_xml("hdr", p("Company")),
        "word/h2.xml": word_xml("hdr", p("Company") + p("Draft")),
        "word/f.xml": word_xml("ftr", p("Page 1")),
    }
    assert read(p("Body"), parts).text == "Company\nDraft\n\nBody\n\nPage 1"


def test_pages_are_labelled_when_the_document_was_laid_out() -> None:
    page_break = "<w:lastRenderedPageBreak/>"
    body = (
        p("one")
        + f"<w:p><w:r>{page_break}<w:t>two</w:t></w:r></w:p>"
        + f"<w:p>{r('still two')}<w:r>{page_break}<w:t> and three</w:t></w:r></w:p>"
        + p("three")
        + table([f"<w:p><w:r>{page_break}<w:t>four</w:t></w:r></w:p>", p("cell")])
    )
    extracted = read(body)
    assert labels(extracted) == [("p. 1", "one"), ("p. 2", "two"), ("p. 3", "three"), ("p. 4", "four | cell")]
    assert read(p("one")).places == ()


def test_charts_and_diagrams_give_their_text() -> None:
    chart = (
        '<c:chartSpace xmlns:c="urn:chart" xmlns:a="urn:a"><c:chart><c:title><c:tx><c:rich><a:p><a:r><a:t>Sales</a:t>'
        "</a:r></a:p></c:rich></c:tx></c:title><c:ser><c:tx><c:strCache><c:pt idx='0'><c:v>2024</c:v></c:pt>"
        "</c:strCache></c:tx><c:cat><c:strCache><c:pt idx='0'><c:v>North</c:v></c:pt><c:pt idx='2'>"
        "<c:v>South</c:v></c:pt></c:strCache></c:cat><c:val><c:numCache><c:pt idx='0'><c:v>5</c:v></c:pt><c:pt idx='2'>"
        "<c:v>7</c:v></c:pt></c:numCache></c:val></c:ser></c:chart></c:chartSpace>"
    )
    diagram = (
        '<dgm:dataModel xmlns:dgm="urn:diagram" xmlns:a="urn:a"><dgm:pt><dgm:t><a:p><a:r><a:t>Plan</a:t></a:r></a:p>'
        "</dgm:t></dgm:pt><dgm:pt><dgm:t><a:p><a:r><a:t>Do</a:t></a:r></a:p></dgm:t></dgm:pt></dgm:dataModel>"
    )
    body = (
        '<w:p><w:r><w:drawing><c:chart r:id="chart0"/></w:drawing></w:r></w:p>'
        '<w:p><w:r><w:drawing><dgm:relIds r:dm="diagramData0" r:lo="none"/></w:drawing></w:r></w:p>'
    )
    parts = {
        "word/_rels/document.xml.rels": relationships(chart="charts/chart1.xml", diagramData="/word/data.xml"),
        "word/charts/chart1.xml": chart,
        "word/data.xml": diagram,
    }
    assert read(body, parts).text == "Sales\n2024\nNorth | 5\nSouth | 7\n\nPlan\nDo"


def test_a_document_of_html_in_a_chunk_is_read() -> None:
    parts = {
        "word/_rels/document.xml.rels": relationships(aFChunk="chunk.html"),
        "word/chunk.html": "<html><body><h1>Converted</h1><p>From a page.</p></body></html>",
    }
    assert read('<w:altChunk r:id="aFChunk0"/>', parts).text == "Converted\n\nFrom a page."


def test_properties_of_the_document() -> None:
    core = (
        '<cp:coreProperties xmlns:cp="urn:cp" xmlns:dc="http://purl.org/dc/elements/1.1/" xmlns:dcterms="urn:t">'
        "<dc:title>Annual report</dc:title><dc:creator>Ada Lovelace</dc:creator><dc:language>de-DE</dc:language>"
        "<cp:keywords>money, growth</cp:keywords><dcterms:created>2024-02-03T04:05:06Z</dcterms:created>"
        "<dcterms:modified>not a time</dcterms:modified></cp:coreProperties>"
    )
    extracted = read(p("x"), {"docProps/core.xml": core})
    assert (extracted.title, extracted.author) == ("Annual report", "Ada Lovelace")
    assert extracted.created_at == datetime(2024, 2, 3, 4, 5, 6, tzinfo=UTC).timestamp()
    assert extracted.updated_at is None
    assert extracted.fields == {"language": "de-DE", "keywords": "money, growth"}


@pytest.mark.parametrize("title", ["Microsoft Word - x.doc", "Untitled", "Document1", ""])
def test_a_placeholder_is_no_title(title: str) -> None:
    core = f"<core><title>{title}</title></core>"
    parts = {"docProps/core.xml": core}
    assert read(p("Text"), parts).title == ""
    assert read(p("Top", '<w:pStyle w:val="Heading1"/>'), parts).title == "Top"


def test_the_main_part_may_have_any_name_and_wrong_relationships_do_not_matter() -> None:
    document = word_xml("document", f"<w:body>{p('Found')}</w:body>")
    renamed = {"_rels/.rels": relationships(officeDocument="/word/document2.xml"), "word/document2.xml": document}
    assert extract(Source(zipped(renamed), "a.docx")).text == "Found"
    wrong = {"_rels/.rels": relationships(officeDocument="nowhere.xml"), "word/document.xml": document}
    assert extract(Source(zipped(wrong), "a.docx")).text == "Found"
    assert extract(Source(zipped({"_rels/.rels": "<broken", "word/document.xml": document}), "a.docx")).text == "Found"


def test_broken_side_parts_do_not_lose_the_text() -> None:
    parts = dict.fromkeys(("word/styles.xml", "word/comments.xml", "docProps/core.xml"), "<broken")
    assert read(p("Text"), parts).text == "Text"


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"not a zip file", "damaged"),
        (zipped({"readme.txt": "x"}), "damaged"),
        (zipped({"word/document.xml": "<w:document"}), "damaged"),
        (zipped({"word/document.xml": "<workbook/>"}), "damaged"),
        (docx(""), "no-text"),
        (docx(p("")), "no-text"),
    ],
)
def test_a_document_without_text_says_why(data: bytes, reason: str) -> None:
    with pytest.raises(UnreadableError) as caught:
        extract(Source(data, "a.docx"))
    assert caught.value.reason == reason


def test_deep_nesting_is_read() -> None:
    tables = "<w:tbl><w:tr><w:tc>" * 3000 + p("deep") + "</w:tc></w:tr></w:tbl>" * 3000
    controls = "<w:sdt><w:sdtContent>" * 3000 + p("control") + "</w:sdtContent></w:sdt>" * 3000
    runs = f"<w:p>{'<w:smartTag>' * 5000}{r('run')}{'</w:smartTag>' * 5000}</w:p>"
    assert read(tables + controls + runs).text == "deep\n\ncontrol\n\nrun"


def test_text_beyond_the_limit_is_left_out() -> None:
    extracted = read(p("word " * 10) * 1000, limit=100)
    assert len(extracted.text) <= 100
    assert "truncated" in extracted.fields
