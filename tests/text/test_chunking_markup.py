"""Sections of Markdown, reStructuredText, AsciiDoc and Org."""

from __future__ import annotations

import pytest

from findling.text.chunking.chunk_plan import ChunkPlan
from findling.text.chunking.chunker import chunk_outline, chunk_text
from findling.text.chunking.outlines import Heading, Outline
from tests.counts import tries

FILLER = "Some words that fill the section up to a decent length.\n"


def sections(text: str, lang: str, size: int = 200) -> list[tuple[tuple[str, ...], str]]:
    return [(piece.heading, text[piece.start : piece.end]) for piece in chunk_text(text, lang, ChunkPlan(size=size))]


def headings(text: str, lang: str, size: int = 200) -> list[tuple[str, ...]]:
    return [heading for heading, _ in sections(text, lang, size)]


def test_markdown_heading_paths() -> None:
    text = "\n".join(f"{mark}\n\n{FILLER}" for mark in ("# Guide #", "## Install", "### Linux", "## Use", "# End"))
    assert headings(text, "markdown") == [
        ("Guide",),
        ("Guide", "Install"),
        ("Guide", "Install", "Linux"),
        ("Guide", "Use"),
        ("End",),
    ]
    assert sections(text, "markdown")[1][1] == f"## Install\n\n{FILLER}".rstrip()


def test_markdown_underlined_headings() -> None:
    text = f"Guide\n=====\n\n{FILLER}\nInstall\n---\n{FILLER}\n- item\n---\n\n| a |\n---\n{FILLER}"
    assert headings(text, "markdown") == [("Guide",), ("Guide", "Install")]


def test_a_rule_below_a_paragraph_of_two_lines_is_no_heading() -> None:
    assert headings(f"{FILLER}{FILLER}---\n\n{FILLER}", "markdown") == [()]


@pytest.mark.parametrize("fence", ["```", "~~~", "````"])
def test_a_hash_inside_a_fence_is_no_heading(fence: str) -> None:
    text = f"# Guide\n\n{FILLER}\n{fence}bash\n# comment\nTitle\n=====\n{fence}\n\n## Next\n\n{FILLER}"
    assert headings(text, "markdown") == [("Guide",), ("Guide", "Next")]


def test_a_fence_is_closed_by_its_own_kind_only() -> None:
    text = f"# Guide\n\n{FILLER}\n````\n```\n# one\n```\n~~~\n# two\n````\n\n## Next\n\n{FILLER}"
    assert headings(text, "markdown") == [("Guide",), ("Guide", "Next")]


def test_fences_in_lists_and_quotes_are_seen() -> None:
    text = (
        f"# Guide\n{FILLER}\n- ```\n# one\n  ```\n\n> ```\n# two\n> ```\n\n1. ~~~\n# three\n   ~~~\n\n## Next\n{FILLER}"
    )
    assert headings(text, "markdown") == [("Guide",), ("Guide", "Next")]


def test_inline_code_at_line_start_opens_no_fence() -> None:
    text = f"# Guide\n\n```code``` and so on.\n{FILLER}\n## Next\n\n{FILLER}"
    assert headings(text, "markdown") == [("Guide",), ("Guide", "Next")]


def test_an_open_fence_runs_to_the_end() -> None:
    assert headings(f"# Guide\n\n{FILLER}\n```\n# a\n\n# b\n", "markdown") == [("Guide",)]


@pytest.mark.parametrize(
    "line", ["#hashtag", "####### seven", "    # code", "\\# escaped", "text # inside", "#!shebang"]
)
def test_lines_that_only_look_like_headings(line: str) -> None:
    assert headings(f"# Guide\n\n{FILLER}\n{line}\n{FILLER}", "markdown") == [("Guide",)]


@pytest.mark.parametrize("front", ["---\ntitle: A\ntags: [x]\n---\n", '+++\ntitle = "A"\n+++\n', "---\na: 1\n...\n"])
def test_front_matter_is_a_part_of_its_own(front: str) -> None:
    text = f"{front}\n# Guide\n\n{FILLER}"
    assert sections(text, "markdown") == [((), front.rstrip()), (("Guide",), f"# Guide\n\n{FILLER}".rstrip())]


def test_a_rule_at_the_top_is_no_front_matter() -> None:
    assert headings(f"---\n\nHello there\n\n---\n\n# Guide\n\n{FILLER}", "markdown") == [("Guide",)]


def test_small_sections_join_their_siblings_and_children() -> None:
    text = "# Guide\n\n## A\n\nsmall\n\n## B\n\n" + FILLER + "\n## C\n\n" + FILLER * 3
    assert sections(text, "markdown") == [
        (("Guide",), f"# Guide\n\n## A\n\nsmall\n\n## B\n\n{FILLER}".rstrip()),
        (("Guide", "C"), f"## C\n\n{FILLER * 3}".rstrip()),
    ]


def test_a_small_section_does_not_join_its_parents_sibling() -> None:
    text = f"# A\n\n{FILLER}\n## Small\n\nx\n\n# B\n\n{FILLER}"
    assert headings(text, "markdown") == [("A",), ("A", "Small"), ("B",)]


def test_a_small_section_goes_along_with_one_that_has_to_be_cut() -> None:
    text = "# Guide\n\n## Long\n\n" + f"{FILLER}\n" * 6
    parts = sections(text, "markdown")
    assert [heading for heading, _ in parts] == [("Guide",), ("Guide", "Long")]
    assert parts[0][1].startswith("# Guide\n\n## Long\n\nSome words")


def test_what_stands_above_the_first_heading_is_filed_under_it_when_small() -> None:
    assert headings(f"![badge](x)\n\n# Guide\n\n{FILLER}", "markdown") == [("Guide",)]
    assert headings(f"{FILLER}\n# Guide\n\n{FILLER}", "markdown") == [(), ("Guide",)]


def test_large_sections_are_cut_between_paragraphs() -> None:
    paragraphs = [f"Paragraph {number}. {FILLER}{FILLER}".rstrip() for number in range(5)]
    text = "# Guide\n\n" + "\n\n".join(paragraphs)
    bodies = [body for _, body in sections(text, "markdown", 300)]
    assert bodies == [
        "# Guide\n\n" + "\n\n".join(paragraphs[:2]),
        "\n\n".join(paragraphs[2:4]),
        paragraphs[4],
    ]


def test_a_fence_stays_whole_up_to_four_times_the_size() -> None:
    fence = "```\n" + "code line\n\n" * 60 + "```"
    text = f"# Guide\n\n{FILLER * 2}\n{fence}\n\n{FILLER}"
    bodies = [body for _, body in sections(text, "markdown", 200)]
    assert bodies == [f"# Guide\n\n{FILLER * 2}".rstrip(), fence, FILLER.rstrip()]


def test_a_fence_beyond_that_is_cut() -> None:
    text = "# Guide\n\n```\n" + "code line\n\n" * 100 + "```\n"
    assert all(len(body) <= 200 for _, body in sections(text, "markdown", 200))


def test_a_fence_keeps_the_line_that_introduces_it() -> None:
    fence = "```\n" + "code line\n\n" * 20 + "```"
    text = f"# Guide\n\nFor example:\n\n{fence}\n\n{FILLER * 2}"
    bodies = [body for _, body in sections(text, "markdown", 200)]
    assert bodies == [f"# Guide\n\nFor example:\n\n{fence}", (FILLER * 2).rstrip()]


def test_rst_levels_follow_the_order_of_their_adornments() -> None:
    text = "\n".join(
        f"{title}\n\n{FILLER}"
        for title in (
            "=====\nGuide\n=====",
            "Install\n=======",
            "Linux\n-----",
            "Use\n===",
            "=======\n The end\n=======",
        )
    )
    assert headings(text, "rst") == [
        ("Guide",),
        ("Guide", "Install"),
        ("Guide", "Install", "Linux"),
        ("Guide", "Use"),
        ("The end",),
    ]
    assert sections(text, "rst")[4][1].startswith("=======\n The end")


def test_rst_labels_belong_to_the_section_below() -> None:
    text = f"Guide\n=====\n\n{FILLER}\n.. _one:\n.. _two:\n\nNext\n----\n\n{FILLER}"
    assert sections(text, "rst")[1] == (("Guide", "Next"), f".. _one:\n.. _two:\n\nNext\n----\n\n{FILLER}".rstrip())


@pytest.mark.parametrize(
    "block",
    [
        "text\n\n----------\n\ntext",
        "=====  =====\nA      B\n=====  =====\n1      2\n=====  =====",
        "+-----+\n| a   |\n+-----+",
        "Code::\n\n    Title\n    =====\n",
        "a longer line than\n---",
    ],
)
def test_rst_rules_and_tables_are_no_titles(block: str) -> None:
    assert headings(f"Guide\n=====\n\n{FILLER}\n{block}\n\n{FILLER}", "rst", 1000) == [("Guide",)]


def test_rst_titles_of_two_letters() -> None:
    assert headings(f"Go\n==\n\n{FILLER}", "rst") == [("Go",)]


def test_asciidoc_headings_and_blocks() -> None:
    text = (
        f"= Guide\n\n{FILLER}\n== Install\n\n{FILLER}\n----\n== no heading\n----\n\n"
        f"[[use]]\n== Use\n\n....\n== neither\n....\n\n--\n== nor this\n--\n\n{FILLER}"
    )
    assert headings(text, "asciidoc") == [("Guide",), ("Guide", "Install"), ("Guide", "Use")]
    assert sections(text, "asciidoc")[2][1].startswith("[[use]]\n== Use")


def test_asciidoc_underlined_titles() -> None:
    text = f"git-log(1)\n==========\n\n{FILLER}\nNAME\n----\n{FILLER}\n------\ncode\n\nTITLE\n-----\n------\n\n{FILLER}"
    assert headings(text, "asciidoc", 300) == [("git-log(1)",), ("git-log(1)", "NAME")]


def test_org_headings() -> None:
    text = (
        f"* TODO [#A] Guide  :tag:other:\n{FILLER}\n** Install\n{FILLER}\n** HTTP basics\n{FILLER}"
        f"#+begin_src sh\n{FILLER}\n#+end_src\n*bold* text\n"
    )
    assert headings(text, "org") == [("Guide",), ("Guide", "Install"), ("Guide", "HTTP basics")]


def test_org_blocks_stay_whole() -> None:
    block = "#+BEGIN_SRC c\n" + "code\n\n" * 60 + "#+END_SRC"
    text = f"* Guide\n{FILLER}\n{block}\n{FILLER}"
    assert block in [body for _, body in sections(text, "org")]


def test_long_titles_are_shortened() -> None:
    (heading,) = headings("# " + "word " * 60 + "\n\ntext", "markdown", 1000)
    assert len(heading[0]) == 120
    assert heading[0].endswith("…")


@pytest.mark.parametrize("lang", ["markdown", "rst", "asciidoc", "org"])
def test_hostile_texts_take_no_longer_than_others(lang: str) -> None:
    """Each of these took minutes if a line could lead back over all the lines before it."""
    for unit in (
        "#\n",
        "`",
        "```\n",
        "=\n",
        "a\n==\n",
        "--\n",
        ">",
        "<a >\n",
        ".. _a:\n",
        "[a]\n",
        "\n",
        "* \n",
        "a\n----\n",
    ):
        text = unit * tries(20_000, short=8_000)
        chunk_text(text + "# Title\n=======\n", lang)
        chunk_text("---\na: 1\n" + text, lang)


ROWS = [f"| item {number} | {number} | in stock |" for number in range(30)]


@pytest.mark.parametrize(
    ("head", "lang"),
    [
        ("| name | price |  stock|\n|------|:-----:|---|\n", "markdown"),
        ("+--------+--------+\n| name | price | stock |\n+========+========+\n", "rst"),
        ("|===\n|name |price |stock\n", "asciidoc"),
        ("| name | price | stock |\n|------+-------+---|\n", "org"),
    ],
)
def test_later_pieces_of_a_table_carry_its_header(head: str, lang: str) -> None:
    text = "Above.\n\n" + head + "\n".join(ROWS) + f"\n\n{FILLER * 3}"
    parts = sections(text, lang)
    rows = [(heading, body) for heading, body in parts if "item" in body]
    assert len(rows) > 3
    assert rows[0][0] == ()
    assert all(heading == ("name | price | stock",) for heading, _ in rows[1:])
    assert all(line in ROWS for _, body in rows[1:-1] for line in body.split("\n"))
    assert parts[-1][0] == ()


def test_the_header_of_a_table_is_the_last_step_of_the_path() -> None:
    text = "# Shop\n\n## Prices\n\n| name | price | stock |\n|---|---|---|\n" + "\n".join(ROWS)
    first, *others = headings(text, "markdown")
    assert first == ("Shop",)
    assert len(others) > 2
    assert set(others) == {("Shop", "Prices", "name | price | stock")}


def test_two_tables_have_their_own_headers() -> None:
    first, second = "| a | b |\n|---|---|\n", "| c | d |\n|---|---|\n"
    text = first + "\n".join(ROWS[:12]) + "\n\n" + second + "\n".join(ROWS[12:])
    found = {heading for heading, body in sections(text, "markdown") if body.startswith("| item")}
    assert found == {("a | b",), ("c | d",)}


def test_rules_between_the_rows_make_no_header() -> None:
    rows = "\n".join(f"| item {number} | {number} |\n+---------+----+" for number in range(40))
    text = f"Grid\n====\n\n+------+------+\n| name | rank |\n+======+======+\n{rows}\n"
    assert set(headings(text, "rst")[1:]) == {("Grid", "name | rank")}


def test_lines_with_bars_and_no_rule_are_no_table() -> None:
    text = "# Log\n\n" + "\n".join(ROWS)
    assert set(headings(text, "markdown")) == {("Log",)}


def outlined(text: str, titles: dict[str, int], size: int = 200) -> list[tuple[tuple[str, ...], str]]:
    outline = Outline([Heading(text.index(title), level, title) for title, level in titles.items()], [])
    pieces = chunk_outline(text, outline, ChunkPlan(size=size))
    return [(piece.heading, text[piece.start : piece.end]) for piece in pieces]


def test_a_given_outline_is_followed() -> None:
    text = f"{FILLER}\nGuide\n\n{FILLER}\nInstall\n\n{FILLER * 5}\nEnd\n\n{FILLER}"
    parts = outlined(text, {"Guide": 1, "Install": 2, "End": 1})
    assert [heading for heading, _ in parts] == [
        (),
        ("Guide",),
        ("Guide", "Install"),
        ("Guide", "Install"),
        ("End",),
    ]
    assert parts[1][1] == f"Guide\n\n{FILLER}".rstrip()


def test_the_blocks_of_a_given_outline_stay_whole() -> None:
    block = "line of code\n\n" * 40
    text = f"{FILLER * 2}\n{block}\n{FILLER * 2}"
    start = text.index(block)
    pieces = chunk_outline(text, Outline([], [(start, start + len(block))]), ChunkPlan(size=200))
    assert block.rstrip() in [text[piece.start : piece.end] for piece in pieces]


def test_the_first_row_of_an_extracted_table_is_its_header() -> None:
    text = "Prices\n\nname | price | stock\n" + "\n".join(row.strip("| ") for row in ROWS)
    parts = outlined(text, {"Prices": 1})
    assert parts[0][0] == ("Prices",)
    assert {heading for heading, _ in parts[1:]} == {("Prices", "name | price | stock")}


def test_the_rest_of_a_long_table_is_filed_under_its_title_and_the_years_above_its_columns() -> None:
    rows = [f"Some kind of expense, number {number} | {number},000 | ({number},100)" for number in range(10, 40)]
    text = "\n".join(("Consolidated statements of cash flows", "(In millions) | 2018 | 2017", *rows))
    first, *rest = chunk_outline(text, Outline([], []), ChunkPlan(size=600))
    assert first.heading == ()
    assert len(rest) > 1
    title = "Consolidated statements of cash flows"
    assert {piece.heading for piece in rest} == {(title, "(In millions) | 2018 | 2017")}
    figures = chunk_outline("Ends here.\n" + "\n".join(rows), Outline([], []), ChunkPlan(size=600))
    assert {piece.heading for piece in figures} == {()}, "rows of figures name no columns, and prose is no title"
