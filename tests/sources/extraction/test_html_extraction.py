from __future__ import annotations

import pytest

from findling.sources.documents.charsets import decode_html
from findling.sources.documents.markup.html import extract
from findling.sources.extracted import Extracted, Source
from findling.sources.files.file_text import UnreadableError


def read(markup: str | bytes, limit: int = 1 << 20) -> Extracted:
    return extract(Source(markup.encode() if isinstance(markup, str) else markup, "page.html", limit))


def lines_of(extracted: Extracted) -> dict[str, int]:
    """The line of the file for the first line of text at each place."""
    return {extracted.text[place.start :].lstrip("\n").split("\n")[0]: place.line for place in extracted.places}


PAGE = """<!DOCTYPE html>
<html lang="de"><head>
<meta charset="utf-8"><title>Der  Bericht</title>
<meta name="author" content="Ada Lovelace"><meta name="description" content="Was &amp; wie">
<meta property="article:published_time" content="2024-03-01T12:00:00Z">
<meta property="article:modified_time" content="Sat, 02 Mar 2024 12:00:00 GMT">
<style>p { color: red }</style><script>var hidden = "<p>no</p>";</script>
</head><body>
<!-- a comment
 over two lines, <p>with tags</p> -->
<h1>Be<b>richt</b></h1>
<script>
  document.write("<p>never</p>");
</script>
<p class="first
  lead">foo<b>bar</b> and
   more &lt;text&gt; &amp;copy;</p>
<p>One<br>two</p><div>after<p>inside</p>tail</div>
<h2>Code</h2>
<pre>
def f():
    return "&lt;b&gt;"  # &amp; more
</pre>
<ul><li>one<ul><li>inner</li></ul></li>
<li><p>two</p></li></ul>
<dl><dt>term<dd>meaning
<dt>lonely</dl>
<img src="x.png" alt="A cat &quot;sleeps&quot;"><input value="Send" placeholder="Name"><input type=hidden value=secret>
<noscript>enable it</noscript><template><p>unused</p></template>
<svg><title>icon</title><path d="M0 0"/><text>Label</text></svg>
</body></html>
"""


def test_a_page_gives_its_text_in_order_and_its_structure() -> None:
    page = read(PAGE)
    assert page.text == (
        "Bericht\n\n"
        "foobar and more <text> &copy;\n\n"
        "One\ntwo\n\n"
        "after\n\ninside\n\ntail\n\n"
        "Code\n\n"
        'def f():\n    return "<b>"  # & more\n\n'
        "- one\n- inner\n- two\n\n"
        "term: meaning\nlonely\n\n"
        'A cat "sleeps" Send Name\n\n'
        "Label"
    )
    assert [(heading.title, heading.level) for heading in page.headings] == [("Bericht", 1), ("Code", 2)]
    assert [page.text[start:end] for start, end in page.blocks] == ['def f():\n    return "<b>"  # & more']


def test_the_head_of_a_page_says_what_it_is_about() -> None:
    page = read(PAGE)
    assert (page.title, page.author) == ("Der Bericht", "Ada Lovelace")
    assert (page.created_at, page.updated_at) == (1709294400.0, 1709380800.0)
    assert page.fields == {"language": "de", "description": "Was & wie"}


@pytest.mark.parametrize("sign", ["¶", "&para;", "#", " § "])
def test_a_link_from_a_heading_to_itself_is_no_text(sign: str) -> None:
    page = f'<main><h2>Setup<a class="headerlink" href="#setup" title="Link">{sign}</a></h2><p>See C#. ¶ is one.</p>'
    assert read(page).text.split() == "Setup See C#. ¶ is one.".split()
    assert read('<p><a href="/issues/7">#</a> seven</p>').text.startswith("#")


def test_every_block_knows_its_line_of_the_file() -> None:
    numbered = PAGE.split("\n")
    found = lines_of(read(PAGE))
    assert found["foobar and more <text> &copy;"] in (15, 16)
    del found["foobar and more <text> &copy;"]
    assert len(found) > 8
    for text, line in found.items():
        word = text.removeprefix("- ").split()[0].replace("Bericht", "Be<b>richt").rstrip(":")
        assert word in numbered[line - 1], (text, line)


def test_lines_are_right_after_windows_line_ends_and_inside_long_code() -> None:
    code = "\r\n".join(f"line {number}\r\n" for number in range(500))
    page = read(f"<p>before</p>\r\n<pre>{code}</pre>\r\n<p>after</p>")
    found = lines_of(page)
    assert found["before"] == 1
    assert found["after"] == 2 + code.count("\n") + 1
    assert len(page.places) > 3
    for text, line in found.items():
        if text.startswith("line "):
            assert line == 2 + 2 * int(text.split()[1])


def test_rows_of_a_table_repeat_the_header_of_their_columns() -> None:
    page = read(
        "<table><caption>Staff</caption><thead><tr><th>Name<th colspan=2>Post and room<th>Since</thead>"
        "<tr><td rowspan=2>Ada</td><td>chief</td><td>1</td><td>1842</td></tr>"
        "<tr><td>writer</td><td></td><td>1843</td></tr>"
        "<tr><td>Bob<td><p>cook</p><p>and gardener</p></tr></table><p>end</p>"
    )
    assert page.text == (
        "Staff\n\n"
        "Name | Post and room | Since\n"
        "Name: Ada | Post and room: chief | Post and room: 1 | Since: 1842\n"
        "Post and room: writer | Since: 1843\n"
        "Name: Bob | Post and room: cook and gardener\n\n"
        "end"
    )


def test_tables_without_a_header_give_plain_rows_and_tables_for_layout_give_paragraphs() -> None:
    assert read("<table><tr><th>Height<td>3 m<tr><td>Width<td>2 m</table>").text == "Height | 3 m\nWidth | 2 m"
    layout = read(
        "<table><tr><td><a>Menu</a><td><h1>Title</h1><p>Text</p><table><tr><td>a<td>b</table></td></tr>"
        "<tr><td>foot<td>note</table>"
    )
    assert layout.text == "Menu\n\nTitle\n\nText\n\na | b\n\nfoot\n\nnote"
    assert [heading.title for heading in layout.headings] == ["Title"]


def test_what_surrounds_the_main_part_of_a_page_is_left_out() -> None:
    page = read(
        "<header>Site <nav>Home</nav></header><aside>Ads</aside><main><h1>News</h1><aside>Note</aside>"
        "<footer>By Ada</footer></main><div role=contentinfo>Imprint</div><footer>Cookies</footer>"
    )
    assert page.text.split() == ["Site", "News", "Note", "By", "Ada"]


def test_a_page_without_a_main_part_loses_only_its_navigation() -> None:
    assert read("<nav>Home</nav><aside>Ads</aside><p>Text<footer>Foot</footer>").text.split() == ["Ads", "Text", "Foot"]
    assert read("<main> </main><footer>All there is</footer>").text == "All there is"
    assert read("<nav><ol><li>Chapter 1</ol></nav>").text == "- Chapter 1"


def test_text_that_is_no_markup_stays_apart() -> None:
    assert read("<xmp><b>raw</b></xmp>").text == "<b>raw</b>"
    assert read("<textarea><p>typed</textarea>").text == "<p>typed"
    assert read("<frameset><frame src=a><noframes><p>No frames</noframes></frameset>").text == "No frames"
    assert read("<title>Use of <p> tags</title><p>text").title == "Use of <p> tags"
    assert read('<p title="<div>">a</p><!--<p-->b').text == "a\n\nb"
    assert read("Hello {{ user.name }}, <x-cell>1</x-cell><x-cell>2</x-cell>").text == "Hello {{ user.name }}, 1 2"


def test_breaks_in_a_row_begin_a_paragraph_with_its_own_line() -> None:
    page = read("<font>first\nline<br><br>\nsecond<br>\nthird</font>")
    assert page.text == "first line\n\nsecond\nthird"
    assert lines_of(page) == {"first line": 1, "second": 3}


@pytest.mark.parametrize(
    "data",
    [
        "<p>größer ž</p>".encode("utf-16"),
        "<p>größer ž</p>".encode("utf-16-le"),
        "<p>größer ž</p>".encode("utf-8-sig"),
        "<meta charset='iso-8859-2'><p>größer ž</p>".encode("iso-8859-2"),
        '<meta http-equiv=content-type content="text/html; charset=windows-1250"><p>größer ž</p>'.encode("cp1250"),
        "<meta charset=latin1><p>größer ž</p>".encode("cp1252"),
        "<meta charset=no-such-set><p>größer ž</p>".encode("cp1252"),
        "<meta charset=unicode_escape><p>größer ž</p>".encode("cp1252"),
        "<meta charset=iso-8859-7><p>größer ž</p>".encode(),
        "<meta charset=utf-8><p>größer ž</p>".encode("cp1252"),
        '<?xml version="1.0" encoding="iso-8859-2"?><p>größer ž</p>'.encode("iso-8859-2"),
        b"<p>gr\0" + "ößer ž</p>".encode(),
    ],
)
def test_the_encoding_is_found(data: bytes) -> None:
    assert read(data).text == "größer ž"


def test_encodings_of_other_scripts() -> None:
    for charset in ("shift_jis", "euc-jp", "iso-2022-jp", "gbk", "big5"):
        assert "漢字" in decode_html(f"<meta charset={charset}><p>漢字 text".encode(charset)), charset
    assert decode_html(("<p>" + "größer " * 20).encode() + b"\xff").startswith("<p>größer")


@pytest.mark.parametrize("data", [b"", b"<script>x</script>", b"<html><body> &nbsp; <br></body></html>"])
def test_a_page_without_text_is_no_text(data: bytes) -> None:
    with pytest.raises(UnreadableError) as error:
        read(data)
    assert error.value.reason == "no-text"


def test_a_page_that_only_has_a_title_gives_it() -> None:
    page = read("<title>App</title><div id=root></div>")
    assert (page.text, page.title) == ("App", "App")


def test_bytes_that_are_no_text_are_damaged() -> None:
    with pytest.raises(UnreadableError) as error:
        read(bytes(number * 7919 % 256 for number in range(50_000)))
    assert error.value.reason == "damaged"


@pytest.mark.parametrize(
    "markup",
    [
        "<div>" * 100_000 + "deep" + "</div>" * 100_000,
        "<nav>" * 20_000 + "deep",
        "".join(f"<FONT size={number}><P>" for number in range(3000)) + "deep",
        "<dl><dd>" * 50_000 + "deep",
        "<table><tr><td>" * 5_000 + "deep",
        "deep" + "<!-- " * 200_000,
        "<script>" + "<div>" * 5_000 + "</script>deep",
    ],
)
def test_depth_and_unclosed_tags_cost_nothing(markup: str) -> None:
    assert read(markup).text == "deep"


def test_text_stops_at_the_limit() -> None:
    page = read("<p>some words</p>" * 1000, limit=100)
    assert len(page.text) <= 100
    assert "truncated" in page.fields


def test_a_long_heading_is_a_paragraph() -> None:
    page = read(f"<h1>{'word ' * 200}</h1><h2>Short</h2>")
    assert [heading.title for heading in page.headings] == ["Short"]
    assert page.text.startswith("word word")
