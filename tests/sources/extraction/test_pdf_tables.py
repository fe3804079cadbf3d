from __future__ import annotations

import pytest

from findling.sources.documents.office.pdf_tables import Place, TableRows
from tests.sources.extraction.test_pdf_extraction import pdf, read


def written(*pages: str) -> list[list[str]]:
    """The lines of the pages, tables as rows; characters are 5 wide, letters 10 high, lines 14 apart."""
    tables = TableRows()

    def read_page(text: str) -> str:
        def place(start: int, end: int) -> Place:
            line = text.rfind("\n", 0, start) + 1
            return (start - line) * 5, (end - line) * 5, -14 * text.count("\n", 0, start), 10

        return tables.written(text, place)

    texts = [read_page(page.strip("\n")) for page in pages]
    return [[line for line in text.splitlines() if line.strip()] for text in texts]


FLOWS = """
Company A
Statements of cash flows
(In millions)                     2018     2017
Investing activities:
Purchases of property,
plant and equipment            (1,577)  (1,373)
Acquisitions                      (64)        -
Sale of businesses             $   846  $     5
Net cash                          222      (50)
"""


def test_figures_stand_beside_their_heads() -> None:
    (page,) = written(FLOWS)
    assert page == [
        "Company A",
        "Statements of cash flows",
        "(In millions) | 2018 | 2017",
        "Investing activities: |",
        "Purchases of property, plant and equipment | (1,577) | (1,373)",
        "Acquisitions | (64) | -",
        "Sale of businesses | $ 846 | $ 5",
        "Net cash | 222 | (50)",
    ]


def test_heads_of_columns_over_two_lines_are_one() -> None:
    (page,) = written("""
                   December 31,  December 31,
                           2018          2017
Goodwill                  1,200         1,100
Debt . . . . . . . . .    5,000         4,000
Total...................  6,200         5,100
""")
    assert page == [
        "| December 31, 2018 | December 31, 2017",
        "Goodwill | 1,200 | 1,100",
        "Debt | 5,000 | 4,000",
        "Total | 6,200 | 5,100",
    ]


def test_a_table_over_two_pages_has_its_title_and_heads_on_both() -> None:
    rest = """
Sale of assets                    846        5
Buybacks                         (900)    (800)
Other, net                         12       13
"""
    assert written(FLOWS, rest)[1][:3] == [
        "Company A Statements of cash flows",
        "(In millions) | 2018 | 2017",
        "Sale of assets | 846 | 5",
    ]
    assert written(FLOWS, "Nothing but prose", rest)[2][0] == "Sale of assets | 846 | 5"


@pytest.mark.parametrize(
    "page",
    [
        "Apples 12\npears 7\nplums 3",
        "\n".join(f"A line of prose that names {year} and 12 other years, with its 3 and its 4" for year in range(9)),
        "500\n       400    1\n            300   2\n                    200   3\n                           100   4",
    ],
)
def test_what_is_no_table_stays_as_it_is(page: str) -> None:
    assert written(page) == [page.splitlines()]


def drawn(cells: list[tuple[float, float, str]], page: str = "") -> str:
    """The text of a PDF page with texts at places, drawn in this order; turned pages are turned back by 90 degrees."""
    matrix = "0 1 -1 0 {1} {0}" if page else "1 0 0 1 {0} {1}"
    line = "".join(f") Tj {matrix.format(x, 500 - y if page else y)} Tm ({text}" for x, y, text in cells)
    return read(pdf([line], page=page)).text


ROWS = {"": ("2018", "2017"), "Goodwill": ("1,200", "1,100"), "Debt": ("5,000", "4,000"), "Total": ("6,200", "5,100")}
CELLS = [
    (column, (50.0, 300 - 5 * len(text), 400 - 5 * len(text))[column], 400.0 - 14 * number, text)
    for number, (head, figures) in enumerate(ROWS.items())
    for column, text in enumerate((head, *figures))
]


@pytest.mark.parametrize("page", ["", "/Rotate 90"])
@pytest.mark.parametrize("by_columns", [False, True])
def test_rows_are_told_from_where_cells_stand_not_from_their_order_in_the_file(page: str, by_columns: bool) -> None:
    cells = sorted(CELLS, key=lambda cell: cell[0]) if by_columns else CELLS
    text = drawn([cell[1:] for cell in cells], page)
    assert text.splitlines() == [" | ".join((head, *figures)).strip() for head, figures in ROWS.items()]


def test_a_table_beside_prose_is_left_alone() -> None:
    prose = [(420.0, 400.0 - 14 * number, f"prose line {number}") for number in range(4)]
    text = drawn(
        [*(cell[1:] for cell in CELLS), (420.0, 500.0, "Begin"), *[(420.0, 480.0, "on"), (420.0, 470.0, "x")], *prose]
    )
    assert "|" not in text
    assert all(line in text.splitlines() for line in ("Debt 5,000 4,000", "prose line 2"))
