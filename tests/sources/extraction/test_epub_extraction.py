"""E-books: chapters in the order of reading, under the titles of the table of contents."""

from __future__ import annotations

import io
import zipfile
from datetime import UTC, datetime

import pytest

from findling.sources.documents.markup.epub import extract
from findling.sources.extracted import Extracted, Source
from findling.sources.files.file_text import UnreadableError

CONTAINER = '<container><rootfiles><rootfile full-path="OEBPS/book.opf"/></rootfiles></container>'
METADATA = "<dc:title>A Book</dc:title>"
XHTML = "application/xhtml+xml"


def zipped(parts: dict[str, str]) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in parts.items():
            archive.writestr(name, text)
    return stream.getvalue()


def package(names: list[str], metadata: str = METADATA, extra_items: str = "") -> str:
    """A package document whose manifest lists the chapters in the reverse of their order."""
    items = "".join(f'<item id="{name}" href="text/{name}" media-type="{XHTML}"/>' for name in reversed(names))
    spine = "".join(f'<itemref idref="{name}"/>' for name in names)
    return (
        '<package xmlns="http://www.idpf.org/2007/opf" xmlns:dc="http://purl.org/dc/elements/1.1/" '
        f'xmlns:opf="http://www.idpf.org/2007/opf"><metadata>{metadata}</metadata>'
        f"<manifest>{items}{extra_items}</manifest><spine>{spine}</spine></package>"
    )


def page(body: str) -> str:
    return f'<html xmlns="http://www.w3.org/1999/xhtml"><head><title>no</title></head><body>{body}</body></html>'


def epub(chapters: list[str], parts: dict[str, str] | None = None, metadata: str = METADATA, items: str = "") -> bytes:
    names = [f"c{number}.xhtml" for number in range(1, len(chapters) + 1)]
    return zipped(
        {
            "mimetype": "application/epub+zip",
            "META-INF/container.xml": CONTAINER,
            "OEBPS/book.opf": package(names, metadata, items),
            **{f"OEBPS/text/{name}": chapter for name, chapter in zip(names, chapters, strict=True)},
            **(parts or {}),
        }
    )


def read(
    chapters: list[str], parts: dict[str, str] | None = None, metadata: str = METADATA, items: str = ""
) -> Extracted:
    return extract(Source(epub(chapters, parts, metadata, items), "a.epub"))


def labels(extracted: Extracted) -> list[tuple[str, str]]:
    """Each place with the text that begins there."""
    return [(place.label, extracted.text[place.start :].lstrip().partition("\n")[0]) for place in extracted.places]


def test_chapters_come_in_the_order_of_the_spine() -> None:
    extracted = read([page("<h1>One</h1><p>First.</p>"), page("<h2>Two</h2><p>Second.</p>")])
    assert extracted.text == "One\n\nFirst.\n\nTwo\n\nSecond."
    assert labels(extracted) == [("ch. 1", "One"), ("ch. 2", "Two")]
    assert [(each.title, each.level) for each in extracted.headings] == [("One", 1), ("Two", 2)]


def test_blocks_of_a_chapter() -> None:
    body = """
      <div>Loose <b>text</b>
        in a div<p>A<br/>break &amp; an <i>inline</i>&nbsp;element<sup>1</sup>.</p>tail</div>
      <ul><li>one<ul><li><p>inner</p></li></ul></li><li/><li>two</li></ul>
      <dl><dt>Term</dt><dd>Meaning</dd></dl>
      <pre>def f():
    pass</pre>
      <script>alert(1)</script><style>p {}</style>
      <table><tr><th>Name</th><th>Value</th></tr><tr><td><p>a</p><p>b</p></td><td>1<br/>2</td></tr>
        <tr><td/><td/></tr></table>
      <p><img src="x.png" alt="A map"/> <ruby>漢<rt>かん</rt></ruby></p>
    """
    extracted = read([page(body)])
    assert extracted.text == (
        "Loose text in a div\n\nA\nbreak & an inline element1.\n\ntail\n\n- one\n- inner\n- two\n\nTerm: Meaning\n\n"
        "def f():\n    pass\n\nName | Value\nName: a b | Value: 1 2\n\nA map 漢"
    )
    assert [extracted.text[start:end] for start, end in extracted.blocks] == ["def f():\n    pass"]


NAV = """<html xmlns="http://www.w3.org/1999/xhtml" xmlns:epub="urn:epub"><body>
<nav epub:type="landmarks"><a href="text/c1.xhtml">Start here</a></nav>
<nav epub:type="toc"><ol><li><a href="text/c1.xhtml">The <i>Beginning</i></a></li>
<li><a href="text/c2.xhtml#middle">The Middle</a><ol><li><a href="text/c2.xhtml#deep">Deeper</a></li></ol></li>
</ol></nav></body></html>"""
NCX = """<ncx xmlns="urn:ncx"><navMap><navPoint><navLabel><text>The Beginning</text></navLabel>
<content src="text/c1.xhtml"/><navPoint><navLabel><text>The Middle</text></navLabel>
<content src="text/c2.xhtml#middle"/></navPoint></navPoint>
<navPoint><navLabel><text>Deeper</text></navLabel><content src="text/c2.xhtml#deep"/></navPoint>
<navPoint/></navMap></ncx>"""


@pytest.mark.parametrize(
    ("contents", "item"),
    [
        (NAV, f'<item id="nav" href="toc.xml" media-type="{XHTML}" properties="nav"/>'),
        (NCX, '<item id="ncx" href="toc.xml" media-type="application/x-dtbncx+xml"/>'),
    ],
)
def test_places_are_called_as_in_the_table_of_contents(contents: str, item: str) -> None:
    chapters = [
        page("<p>Once upon a time</p>"),
        page('<p>goes on</p><h1>x <a id="middle"/></h1><p>text</p><p>more <span id="deep"/>and more</p>'),
        page("<p>Afterword</p>"),
    ]
    extracted = read(chapters, {"OEBPS/toc.xml": contents}, items=item)
    assert labels(extracted) == [
        ("The Beginning", "Once upon a time"),
        ("ch. 2", "goes on"),
        ("The Middle", "x"),
        ("Deeper", "and more"),
        ("ch. 3", "Afterword"),
    ]
    assert extracted.headings[0] == (0, 1, "The Beginning")
    assert extracted.text.startswith("Once upon a time")


def test_a_malformed_chapter_is_read_as_html() -> None:
    malformed = "<html><body><h2>Bad</h2><p>Unclosed <b>tags & signs<p>here</body></html>"
    extracted = read([page("<p>Good</p>"), malformed])
    assert extracted.text == "Good\n\nBad\n\nUnclosed tags & signs\n\nhere"
    assert labels(extracted) == [("ch. 1", "Good"), ("ch. 2", "Bad")]
    assert [each.title for each in extracted.headings] == ["Bad"]


def test_properties_of_the_book() -> None:
    metadata = (
        "<dc:title>War and Peace</dc:title><dc:title>A subtitle</dc:title><dc:creator>Leo Tolstoy</dc:creator>"
        "<dc:creator>Louise Maude</dc:creator><dc:language>en</dc:language><dc:date>unknown</dc:date>"
        "<dc:date>0101-01-01T00:00:00+00:00</dc:date>"
        '<dc:date>1869-01</dc:date><dc:publisher>Press</dc:publisher><meta property="dcterms:modified">'
        "2023-10-03T21:39:12Z</meta>"
    )
    extracted = read([page("<p>x</p>")], metadata=metadata)
    assert (extracted.title, extracted.author) == ("War and Peace", "Leo Tolstoy, Louise Maude")
    assert extracted.created_at == datetime(1869, 1, 1, tzinfo=UTC).timestamp()
    assert extracted.updated_at == datetime(2023, 10, 3, 21, 39, 12, tzinfo=UTC).timestamp()
    assert extracted.fields == {"language": "en", "publisher": "Press"}


def encryption(path: str) -> dict[str, str]:
    reference = f'<enc:CipherReference xmlns:enc="http://www.w3.org/2001/04/xmlenc#" URI="{path}"/>'
    return {"META-INF/encryption.xml": f"<encryption>{reference}</encryption>"}


def test_encrypted_fonts_are_no_obstacle() -> None:
    assert read([page("<p>x</p>")], encryption("OEBPS/font.otf")).text == "x"


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"words", "damaged"),
        (zipped({"mimetype": "application/epub+zip"}), "damaged"),
        (zipped({"book.opf": "<package/>"}), "damaged"),
        (epub([page("<p>x</p>")], encryption("OEBPS/text/c1.xhtml")), "encrypted"),
        (epub([page('<p><img src="cover.png"/></p>')]), "no-text"),
    ],
)
def test_a_book_without_text_says_why(data: bytes, reason: str) -> None:
    with pytest.raises(UnreadableError) as caught:
        extract(Source(data, "a.epub"))
    assert caught.value.reason == reason


def test_a_missing_chapter_does_not_lose_the_others() -> None:
    book = {"OEBPS/book.opf": package(["c1.xhtml", "none.xhtml", "c2.xhtml"])}
    assert labels(read([page("<p>One</p>"), page("<p>Two</p>")], book)) == [("ch. 1", "One"), ("ch. 3", "Two")]
    with pytest.raises(UnreadableError, match=r"damaged: OEBPS/text/none\.xhtml is missing"):
        read([], {"OEBPS/book.opf": package(["none.xhtml"])})


def test_a_book_is_found_without_its_container_and_spine() -> None:
    opf = f'<package><manifest><item id="a" href="a%20b.xhtml" media-type="{XHTML}"/></manifest></package>'
    assert extract(Source(zipped({"x.opf": opf, "a b.xhtml": page("<p>Found</p>")}), "a.epub")).text == "Found"


def test_deep_nesting_is_read() -> None:
    assert read([page("<div>" * 5000 + "deep" + "</div>" * 5000)]).text == "deep"


def test_text_beyond_the_limit_is_left_out() -> None:
    extracted = extract(Source(epub([page("<p>word</p>" * 100)] * 5), "a.epub", limit=100))
    assert len(extracted.text) <= 100
    assert "truncated" in extracted.fields
