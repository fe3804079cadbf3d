from __future__ import annotations

import pytest

from findling.sources.documents.markup.xml import extract
from findling.sources.extracted import Extracted, Source
from findling.sources.files.file_text import UnreadableError


def read(document: str | bytes, limit: int = 1 << 20) -> Extracted:
    return extract(Source(document.encode() if isinstance(document, str) else document, "file.xml", limit))


def lines_of(extracted: Extracted) -> dict[str, int]:
    return {extracted.text[place.start :].lstrip("\n").split("\n")[0]: place.line for place in extracted.places}


POM = """<?xml version="1.0" encoding="UTF-8"?>
<!-- the build
     of all modules -->
<project xmlns="http://maven.apache.org/POM/4.0.0" xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance">
  <dependencies>
    <dependency scope="test" m:kind="jar">
      <groupId>junit</groupId>
      <version>
        4.13
      </version>
    </dependency>
  </dependencies>
  <note>It is <b>very</b>
     im<i>port</i>ant</note>
  <p><b>First</b> words</p>
  <empty/>
</project>
"""


def test_elements_are_lines_with_their_attributes_and_their_place() -> None:
    document = read(POM)
    assert document.text.split("\n") == [
        "the build of all modules",
        "dependency scope=test kind=jar",
        "groupId: junit",
        "version: 4.13",
        "note: It is very important",
        "p: First words",
    ]
    assert list(lines_of(document).values()) == [2, 6, 7, 9, 13, 15]


def test_the_rest_of_malformed_xml_is_read() -> None:
    document = read(POM.replace("</version>", "</versoin> & <!-- why? -->").replace('"test"', "'test'"))
    for words in ("groupId: junit", "4.13", "why?", "important", "First words"):
        assert words in document.text
    assert read("<r><a>one</b><c x=1 y='2'>two</c>\n<d>three").text == "a: one\nc x=1 y=2: two\nd: three"
    assert lines_of(read("<r>\n<a>one</a>\n<x>&nope;</x>\n<b>two</b></r>\n")) == {
        "a: one": 2,
        "x: &nope;": 3,
        "b: two": 4,
    }
    assert read("no tag at all").text == "no tag at all"


def test_undeclared_entities_lose_nothing() -> None:
    assert read("<r><a>caf&eacute; au lait</a><b>next</b></r>").text == "a: café au lait\nb: next"
    dtd = '<!DOCTYPE r SYSTEM "http://127.0.0.1:9/r.dtd">'
    assert read(f"{dtd}<r><a>caf&eacute; au lait</a></r>").text == "a: café au lait"


def test_entities_are_never_fetched_and_never_grow_without_bound() -> None:
    external = '<!DOCTYPE r [<!ENTITY e SYSTEM "file:///etc/hostname">]><r>before &e; after</r>'
    assert read(external).text == "r: before after"
    assert read('<!DOCTYPE r [<!ENTITY co "&#65;CME Co">]><r>by &co;</r>').text == "r: by ACME Co"
    laughs = '<!DOCTYPE r [<!ENTITY a "ha"><!ENTITY b "&a;&a;"><!ENTITY c "&b;&b;">]><r>&c;</r>'
    growth = f'<!DOCTYPE r [<!ENTITY a "{"x" * 50_000}">]><r>{"&a;" * 1000}</r>'
    for bomb in (laughs, growth):
        with pytest.raises(UnreadableError) as error:
            read(bomb)
        assert error.value.reason == "damaged"


def test_titles_of_sections_are_headings() -> None:
    document = read(
        '<d:book xmlns:d="urn:d" xml:lang="en"><d:title>Guide</d:title><d:chapter><d:title>First <d:em>steps</d:em>'
        "</d:title><d:para>Go.</d:para></d:chapter></d:book>"
    )
    assert [(heading.title, heading.level) for heading in document.headings] == [("Guide", 1), ("First steps", 2)]
    assert (document.title, document.fields["language"]) == ("Guide", "en")
    assert document.text.endswith("para: Go.")


def test_property_lists_pair_keys_and_values() -> None:
    document = read(
        "<plist><dict><key>Name</key><string>findling</string><key>Port</key><integer>80</integer></dict></plist>"
    )
    assert document.text == "Name: findling\nPort: 80"


def test_a_drawing_gives_its_words() -> None:
    drawing = read(
        '<svg xmlns="http://www.w3.org/2000/svg"><title>Plan</title><style>.a { fill: red }</style>\n'
        '<path d="M0 0 L10 10" id="p1"/><!-- layer --><metadata><x>noise</x></metadata>\n'
        '<g><text x="1">Main <tspan>street</tspan></text><text><tspan>Park</tspan></text></g></svg>'
    )
    assert drawing.text == "Plan\nMain street\nPark"
    assert drawing.title == "Plan"
    assert lines_of(drawing)["Main street"] == 3
    with pytest.raises(UnreadableError) as error:
        read('<svg><path d="M0 0"/></svg>')
    assert error.value.reason == "no-text"


def test_a_feed_has_its_articles_as_sections_without_their_markup() -> None:
    feed = read(
        "<rss><channel><title>News</title><language>de</language><item><title>Rain &amp; sun</title>"
        "<link>https://example.org/1</link><description>&lt;p&gt;It &lt;b&gt;rain&lt;/b&gt;ed.&lt;/p&gt;</description>"
        "</item><item><title>Second</title><description><![CDATA[<ul><li>a</li></ul>]]></description></item>"
        "</channel></rss>"
    )
    assert [(heading.title, heading.level) for heading in feed.headings] == [
        ("News", 1),
        ("Rain & sun", 2),
        ("Second", 2),
    ]
    assert "It rained." in feed.text
    assert "- a" in feed.text
    assert "link: https://example.org/1" in feed.text
    assert (feed.title, feed.fields["language"]) == ("News", "de")


def test_xhtml_is_read_as_a_page() -> None:
    page = read(
        '<?xml version="1.0"?><!DOCTYPE html><html xmlns="http://www.w3.org/1999/xhtml"><body><p>a<b>b</b></p></body></html>'
    )
    assert page.text == "ab"


@pytest.mark.parametrize("charset", ["utf-16", "iso-8859-15", "gbk", "utf-8-sig"])
def test_the_declared_encoding_counts(charset: str) -> None:
    declared = charset.removesuffix("-sig")
    word = "漢字" if charset == "gbk" else "Größe"
    assert (
        read(f'<?xml version="1.0" encoding="{declared}"?><r>{word} here</r>'.encode(charset)).text == f"r: {word} here"
    )


def test_binary_data_in_text_is_left_out() -> None:
    document = read(f"<r><a>words</a><binaryData>{'QUJDREVGRw' * 100}</binaryData></r>")
    assert document.text == "a: words"


@pytest.mark.parametrize(
    "document",
    ["<a>" * 100_000 + "deep" + "</a>" * 100_000, "<a>deep & " + "<!-- " * 200_000, "<a>deep" + "<b " * 200_000],
)
def test_depth_and_unclosed_tags_are_read_in_linear_time(document: str) -> None:
    assert read(document).text.startswith("a: deep")


def test_no_text_and_limits() -> None:
    for empty in ("", "<r><a/></r>", "<!-- "):
        with pytest.raises(UnreadableError) as error:
            read(empty)
        assert error.value.reason == "no-text"
    for start in ("<r>", "<r>&"):
        long = read(start + "<a>word</a>" * 10_000 + "</r>", limit=500)
        assert len(long.text) <= 500
        assert "truncated" in long.fields


def test_breaks_paragraphs_and_cells_end_a_word() -> None:
    article = "<item><description>First.<br/>Second <i>w</i>ord<p>third</p>end</description></item>"
    assert read(f"<rss><channel>{article}</channel></rss>").text == "First. Second word third end"
    entry = "<div>Intro<p>One</p><p>Two <b>bo</b>ld</p><ul><li>a</li><li>b</li></ul></div>"
    assert "Intro One Two bold a b" in read(f"<feed><entry><content>{entry}</content></entry></feed>").text
