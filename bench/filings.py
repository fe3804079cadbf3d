"""Questions about figures in tables: 24 annual reports of companies that do not exist, as PDF.

    python bench/filings.py WORK [--states words instant] [--set NAME=VALUE] [--half a|b] [--misses]

Eight companies report three years each, of about 20 pages: prose that speaks of the same things, three statements and
the notes. The statements of a company hold the figures of two or three years, so the right page has near twins. Each
company has a layout of its own (`LAYOUTS`): rows or columns drawn one by one, ruled cells, row heads over two lines,
column heads over two lines or under a common one, dot leaders, tables over two pages, and pages on their side.
A question names a company, a year and a figure, mostly in other words than the row. Every page with the row of this
figure under that year is right. Prints NDCG@10 of pages, each at its first hit, how often a right page is first, and
how often the passage of the first right page holds the figure, its row, and the year of its column, with its headings.
"""

from __future__ import annotations

import sys

# A script's own folder comes first on the path; its modules are those of the package `bench`.
sys.path[0] = f"{__file__.rpartition('/')[0] or '.'}/.."

import argparse
import random
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from bench.documents import escaped, pdf_of
from bench.no_answer import opened
from findling.ranking.metrics import mean, ndcg
from findling.service.engine.engine import Engine

COMPANIES = ("Alfa", "Bravo", "Charlie", "Delta", "Echo", "Foxtrot", "Golf", "Hotel")
YEARS = (2017, 2018, 2019)
LAYOUTS = ("rows", "cells", "columns", "leaders", "across", "turned", "two-line heads", "wrapped")
QUESTIONS = 160

# What a table is, what stands above its columns, and its rows: a name, or `name <- what a question calls it`.
TABLES = """
Consolidated Statements of Income | (In millions, except per share amounts) | 3
Net sales <- revenue
Cost of products sold <- cost of goods sold
Gross profit
Operating expenses:
Selling, general and administrative expenses <- SG&A expense
Research, development and related expenses <- R&D spending
Amortization of acquired intangible assets
Restructuring and impairment charges <- restructuring cost
Gain on sale of businesses
Operating income <- operating profit
Other expense (income):
Interest expense <- cost of borrowing
Interest income
Other expense, net, including pension and postretirement components
Income before income taxes <- pre-tax profit
Provision for income taxes <- tax charge
Net income including noncontrolling interest
Less: net income attributable to noncontrolling interest <- profit that belongs to minority owners
Net income attributable to the company
Weighted average common shares outstanding, basic
Basic earnings per share
Weighted average common shares outstanding, diluted
Diluted earnings per share <- EPS after dilution
Dividends declared per common share <- dividend per share

Consolidated Balance Sheets | (Dollars in millions, except par value) | 2
Assets
Current assets:
Cash and cash equivalents <- year-end cash
Marketable securities, current
Trade accounts receivable, less allowances for doubtful accounts <- amount customers owed
Finished goods
Work in process
Raw materials and supplies <- raw material stock
Total inventories
Prepaid expenses and other current assets
Total current assets
Property, plant and equipment, gross
Less: accumulated depreciation
Property, plant and equipment, net <- net PP&E
Operating lease right of use assets
Goodwill
Intangible assets, net
Other assets
Total assets
Liabilities
Current liabilities:
Short-term borrowings and current portion of long-term debt
Accounts payable <- amount owed to suppliers
Accrued payroll
Accrued income taxes
Other current liabilities
Total current liabilities <- short-term obligations in total
Long-term debt
Pension and postretirement benefits
Operating lease liabilities, noncurrent
Other liabilities
Total liabilities
Commitments and contingencies
Shareholders' equity
Common stock, par value $.01 per share
Additional paid-in capital
Retained earnings <- accumulated profits kept
Treasury stock, at cost
Accumulated other comprehensive income (loss)
Total shareholders' equity
Total liabilities and shareholders' equity

Consolidated Statements of Cash Flows | (In millions) | 3
Cash flows from operating activities:
Net income including noncontrolling interest
Adjustments to reconcile net income to net cash provided by operating activities:
Depreciation and amortization <- D&A expense
Company pension and postretirement contributions <- cash paid into pension plans
Company pension and postretirement expense
Stock-based compensation expense <- share-based pay
Gain on sale of businesses
Deferred income taxes
Loss from early extinguishment of debt
Changes in assets and liabilities:
Accounts receivable
Inventories
Accounts payable
Accrued income taxes, current and long-term
Other, net
Net cash provided by operating activities <- operating cash flow
Cash flows from investing activities:
Purchases of property, plant and equipment <- capital expenditure
Proceeds from sale of property, plant and equipment
Acquisitions, net of cash acquired <- spending on buying other businesses
Purchases of marketable securities and investments
Proceeds from maturities and sale of marketable securities and investments
Proceeds from sale of businesses, net of cash sold <- cash received for divested businesses
Other, net
Net cash used in investing activities
Cash flows from financing activities:
Change in short-term debt, net
Repayment of debt with maturities greater than 90 days <- debt paid back
Proceeds from debt with maturities greater than 90 days <- long-term borrowing raised
Purchases of treasury stock <- share buybacks
Proceeds from issuance of treasury stock pursuant to stock option and benefit plans
Dividends paid to shareholders <- cash dividends
Other, net
Net cash used in financing activities
Effect of exchange rate changes on cash and cash equivalents <- currency effect on cash
Net increase (decrease) in cash and cash equivalents
Cash and cash equivalents at beginning of year
Cash and cash equivalents at end of period

Note 3. Business Segments | (Millions) | 3
Net sales:
Safety and Industrial <- revenue of the industrial segment
Transportation and Electronics <- revenue of the transportation segment
Health Care <- revenue of the medical segment
Consumer
Corporate and unallocated
Elimination of dual credit
Total company
Operating income:
Safety and Industrial, operating income
Transportation and Electronics, operating income
Health Care, operating income
Consumer, operating income
Total operating income

Note 8. Income Taxes | (Millions) | 3
Currently payable
Federal <- federal tax currently due
State
International, currently payable
Deferred
Federal, deferred
State, deferred
International, deferred
Total provision
Unrecognized tax benefits, beginning balance
Additions for tax positions of prior years
Settlements with tax authorities <- amount settled with the tax office
Unrecognized tax benefits, ending balance <- uncertain tax positions at year end

Note 14. Leases | (Millions) | 2
Operating lease cost <- rent under operating leases
Finance lease cost:
Amortization of assets
Interest on lease liabilities
Variable lease cost
Income related to sublease activity <- income from subletting
Total net lease cost

Note 17. Stock-Based Compensation | (Thousands) | 3
Options outstanding, January 1
Granted
Exercised <- number of stock options that employees exercised
Forfeited
Options outstanding, December 31
Options exercisable at year end <- options that could be exercised
Restricted stock units, nonvested balance
"""

PROSE = """
Capital expenditures are expected to support growth, {a} and {b}, and the company reviews spending plans every quarter.
Revenue depends on {a}, and demand from customers who buy products for {b} has been uneven in recent periods.
The effective tax rate may change with {a}; tax authorities audit returns and may disagree with positions taken on {b}.
Cash flow from operations funds dividends, share buybacks and {a}; management considers {b} a priority.
Cost of goods sold rose with {a}, while research and development spending followed plans for {b}.
Inventories and amounts owed by customers moved with {a}; suppliers were paid on terms that reflect {b}.
Pension contributions and share-based pay are described in the notes, together with assumptions about {a} and {b}.
The company borrows in several markets; its debt ratings reflect {a}, and covenants refer to {b}.
Operating income of the segments is affected by {a}; restructuring actions address {b}.
The company leases offices and plants; lease terms take account of {a} and of {b}.
Forward-looking statements involve risks such as {a} and {b}, and results may differ from those expected.
Acquisitions and divestitures change the portfolio; goodwill is tested every year with regard to {a} and {b}.
""".strip().splitlines()
THINGS = (
    """
raw material prices; foreign currency movements; new product introductions; supply chain resilience; energy costs;
interest rates; labor markets; changes in regulation; the pace of industrial production; health care reimbursement;
consumer confidence; weather; product liability claims; cybersecurity; trade policy; the integration of businesses;
productivity programs; investments in automation; working capital discipline; geographic mix
""".replace("\n", " ")
    .strip()
    .split("; ")
)
SECTIONS = (
    "Item 1. Business", "Item 1A. Risk Factors", "Item 2. Properties", "Item 5. Market for Common Equity",
    "Item 7. Management's Discussion and Analysis", "Liquidity and Capital Resources", "Critical Accounting Estimates",
    "Note 1. Significant Accounting Policies", "Note 12. Commitments and Contingencies",
)  # fmt: skip


class Row(NamedTuple):
    """A row of a table: its name, what questions call it, whether it holds figures."""

    name: str
    asked: str
    has_figures: bool


class Table(NamedTuple):
    title: str
    unit: str
    years: int
    rows: tuple[Row, ...]


class Question(NamedTuple):
    """A question, the figure that answers it, its row and year, and the right pages as `file#place`."""

    text: str
    figure: str
    row: str
    year: int
    pages: frozenset[str]


def main() -> None:
    """Write the reports, ask every question in every state, and print a line for each."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("work", type=Path)
    parser.add_argument("--states", nargs="+", choices=["words", "instant", "read"], default=["words", "instant"])
    parser.add_argument("--set", action="append", default=[], help="such as search.profile=deep")
    parser.add_argument("--half", choices=["a", "b"], help="four of the eight companies, each with its layout")
    parser.add_argument("--misses", action="store_true", help="name the questions whose right page is not first")
    given = parser.parse_args()
    tree = given.work / "tree"
    questions = make_reports(tree)
    if given.half:
        chosen = COMPANIES["ab".index(given.half) :: 2]
        questions = [each for each in questions if any(f" {name} " in each.text for name in chosen)]
    for state in given.states:
        with opened(given.work, tree, state, given.set) as engine:
            found = [ask(engine, question) for question in questions]
        gains, firsts, whole = zip(*found, strict=True)
        print(
            f"{state:8} {len(found)} questions  NDCG@10 {mean(gains):.3f}  first {sum(firsts)}"
            f"  passage with figure, row and year {sum(whole)}",
            flush=True,
        )
        by_layout: dict[str, list[float]] = {}
        for question, gain in zip(questions, gains, strict=True):
            name = next(name for name in COMPANIES if f" {name} " in question.text)
            by_layout.setdefault(LAYOUTS[COMPANIES.index(name)], []).append(gain)
        print(" " * 8, "  ".join(f"{layout} {mean(values):.3f}" for layout, values in by_layout.items()), flush=True)
        for question, (gain, first, _) in zip(questions, found, strict=True):
            if given.misses and not first:
                print(f"    {gain:.2f} {question.text}: {', '.join(sorted(question.pages))}")


def ask(engine: Engine, question: Question) -> tuple[float, bool, bool]:
    """NDCG@10 of the pages; whether a right one is first; whether the best right passage can be understood alone."""
    hits = engine.search(question.text, limit=30, refresh=False).hits
    pages = list(dict.fromkeys(f"{hit.path}#{hit.place}" for hit in hits))
    right = next((hit for hit in hits if f"{hit.path}#{hit.place}" in question.pages), None)
    whole = False
    if right:
        passage = "\n".join((*right.heading, engine.passages([right.id])[right.id]))
        wanted = (question.figure, str(question.year), question.row)
        whole = all(" ".join(one.split()) in " ".join(passage.split()) for one in wanted)
    grades = dict.fromkeys(question.pages, 1)
    return ndcg(pages, grades, 10), bool(pages) and pages[0] in question.pages, whole


def make_reports(tree: Path) -> list[Question]:
    """The reports as files below the tree, and the questions about them; the same each time."""
    tree.mkdir(parents=True, exist_ok=True)
    dice = random.Random(7)
    tables = list(read_tables())
    pages: dict[tuple[str, str, str, int], set[str]] = {}
    figures: dict[tuple[str, str, str, int], str] = {}
    for company, layout in zip(COMPANIES, LAYOUTS, strict=True):
        for table in tables:
            for row in table.rows:
                for year in range(YEARS[0] - 2, YEARS[-1] + 1):
                    figures[company, table.title, row.name, year] = a_figure(dice, row)
        for year in YEARS:
            path = f"{company.lower()}-{year}-annual-report.pdf"
            report = Report(company, year, layout, random.Random(f"{company}{year}"))
            for title, name, column, number in report.written(tables, figures):
                pages.setdefault((company, title, name, column), set()).add(f"{path}#p. {number}")
            data = pdf_of(report.contents, report.entries)
            if not (tree / path).exists() or (tree / path).read_bytes() != data:
                (tree / path).write_bytes(data)
    return list(some_questions(dice, tables, figures, pages))


def some_questions(
    dice: random.Random,
    tables: list[Table],
    figures: dict[tuple[str, str, str, int], str],
    pages: dict[tuple[str, str, str, int], set[str]],
) -> Iterator[Question]:
    """As many about each company and row that has other words as the number allows."""
    forms = (
        "What was the {} of Company {} in {}?",
        "How much was {} at Company {} in fiscal {}?",
        "What is the FY {2} {0} of Company {1} ?",
        "{} reported by Company {} for {}",
    )
    rows = [(table, row) for table in tables for row in table.rows if row.asked]
    for number in range(QUESTIONS):
        company = COMPANIES[number % len(COMPANIES)]
        table, row = rows[(number * 7 + number // len(COMPANIES)) % len(rows)]
        year = dice.choice(YEARS)
        key = (company, table.title, row.name, year)
        text = forms[number // 3 % len(forms)].format(row.asked, company, year)
        yield Question(text, figures[key], row.name, year, frozenset(pages[key]))


def read_tables() -> Iterator[Table]:
    """The tables that every report holds."""
    for part in TABLES.strip().split("\n\n"):
        head, *lines = part.splitlines()
        title, unit, years = head.split(" | ")
        rows = []
        for line in lines:
            name, _, asked = line.partition(" <- ")
            is_section = name.endswith(":") or name in ("Assets", "Liabilities", "Currently payable", "Deferred")
            rows.append(Row(name, asked, not is_section and name not in ("Commitments and contingencies",)))
        yield Table(title, unit, int(years), tuple(rows))


def a_figure(dice: random.Random, row: Row) -> str:
    """A figure as reports print it; what is paid or taken off stands in parentheses."""
    if "per share" in row.name and "value" not in row.name:
        return f"{dice.uniform(1, 12):.2f}"
    number = f"{int(10 ** dice.uniform(1.7, 4.4)):,}"
    return (
        f"({number})"
        if re.match(r"Purchases|Repayment|Dividends paid|Less|Acquisitions|Treasury", row.name)
        else number
    )


WIDTHS = {".": 278, ",": 278, "(": 333, ")": 333, " ": 278, "$": 556}
"""Widths of Helvetica in thousandths, where not that of a digit."""


class Report:
    """One annual report: `contents` of its pages in PDF, and further `entries` of each page."""

    def __init__(self, company: str, year: int, layout: str, dice: random.Random) -> None:
        self._company, self._year, self._layout, self._dice = company, year, layout, dice
        self.contents: list[str] = []
        self.entries: list[str] = []
        self._shown: list[str] = []
        self._is_turned = False

    def written(
        self, tables: list[Table], figures: dict[tuple[str, str, str, int], str]
    ) -> Iterator[tuple[str, str, int, int]]:
        """Write the report; the table, row, year and page of every figure."""
        self._show(60, 700, f"Company {self._company} Annual Report {self._year}", 18)
        self._show(60, 660, f"Form 10-K for the fiscal year ended December 31, {self._year}", 11)
        self._end_page()
        for section in SECTIONS[:7]:
            self._prose(section, 42)
            self._end_page()
        for number, table in enumerate(tables):
            if number in (3, 4):
                self._prose(SECTIONS[4 + number], 40)
                self._end_page()
            yield from self._write_table(table, figures)
        self._prose("Item 9A. Controls and Procedures", 30)
        self._end_page()

    def _prose(self, title: str, lines: int, top: float = 780) -> None:
        self._show(60, top, title, 12)
        line, y = "", top - 24
        while lines:
            a, b = self._dice.sample(THINGS, 2)
            for word in self._dice.choice(PROSE).format(a=a, b=b).split():
                if len(line) + len(word) > 92:
                    self._show(60, y, line)
                    line, y, lines = "", y - 13, lines - 1
                    if not lines:
                        return
                line = f"{line} {word}".strip()

    def _write_table(
        self, table: Table, figures: dict[tuple[str, str, str, int], str]
    ) -> Iterator[tuple[str, str, int, int]]:
        years = [self._year - back for back in range(table.years)]
        self._is_turned = self._layout == "turned" and not table.title.startswith("Note")
        top = 760.0
        if table.title.startswith("Note"):
            self._prose(table.title, 9, 800)
            top = 630.0
        else:
            self._show(60, top + 30, f"Company {self._company} and Subsidiaries")
            self._show(60, top + 16, table.title, 11)
        cut = len(table.rows) // 2 if self._layout in ("across", "turned") and len(table.rows) > 25 else len(table.rows)
        for part in (table.rows[:cut], table.rows[cut:]):
            if not part:
                continue
            self._write_part(table, part, years, figures, top if part[0] is table.rows[0] else 790)
            page = len(self.contents) + 1
            for row in part:
                if row.has_figures:
                    yield from ((table.title, row.name, year, page) for year in years)
            self._end_page()
        self._is_turned = False

    def _write_part(
        self,
        table: Table,
        rows: tuple[Row, ...],
        years: list[int],
        figures: dict[tuple[str, str, str, int], str],
        top: float,
    ) -> None:
        """Show rows of a table in the layout of the company; a part on a later page has no title, often no heads."""
        rights = [535.0 - 72 * back for back in range(len(years))][::-1]
        cells: list[tuple[int, float, float, str]] = []  # column, x, y, text
        is_first = rows[0] is table.rows[0] or self._layout == "turned"
        y = self._heads(cells, table, years, rights, top) if is_first else top
        for row in rows:
            indent = 0 if row.name.endswith(":") else 10
            lines = self._wrapped(row.name)
            values = [figures[self._company, table.title, row.name, year] for year in years] if row.has_figures else []
            line_y = y - 11 * (len(lines) - 1) / (2 if self._layout == "cells" else 1)
            for number, line in enumerate(lines):
                dots = " ." * max(0, 55 - len(line)) if self._layout == "leaders" and number == len(lines) - 1 else ""
                cells.append((0, 60.0 + indent, y - 11 * number, line + (dots if values else "")))
            for column, (value, right) in enumerate(zip(values, rights, strict=True) if values else (), 1):
                if self._layout in ("cells", "rows") and row is rows[0]:
                    cells.append((column, right - 52, line_y, "$"))
                cells.append((column, right - width_of(value) + (3 if value.endswith(")") else 0), line_y, value))
            y -= 11 * len(lines) + 3
            if self._layout == "cells":
                self._shown.append(f"60 {y + 10:.1f} m 540 {y + 10:.1f} l S")
        if self._layout == "columns":
            cells.sort(key=lambda cell: cell[0])
        for _, x, at, text in cells:
            self._show(x, at, text)

    def _heads(
        self,
        cells: list[tuple[int, float, float, str]],
        table: Table,
        years: list[int],
        rights: list[float],
        top: float,
    ) -> float:
        middle = (rights[0] + rights[-1]) / 2
        if self._layout in ("leaders", "rows", "across"):
            cells.append((1, middle - 60, top - 4, "Years ended December 31,"))
        y = top - 17
        for column, (year, right) in enumerate(zip(years, rights, strict=True), 1):
            if self._layout in ("two-line heads", "cells"):
                cells.append((column, right - 52, y + 11, "December 31,"))
            cells.append((column, right - width_of(str(year)), y, str(year)))
        cells.insert(-len(years), (0, 60.0, y, table.unit))
        return y - 16

    def _wrapped(self, name: str) -> list[str]:
        most = {"wrapped": 30, "cells": 34}.get(self._layout, 56)
        lines = [""]
        for word in name.split():
            if len(lines[-1]) + len(word) >= most:
                lines.append("")
            lines[-1] = f"{lines[-1]} {word}".strip()
        return lines

    def _show(self, x: float, y: float, text: str, size: int = 9) -> None:
        matrix = f"1 0 0 1 {x:.1f} {y:.1f}"
        if self._is_turned:  # the page is turned by 90 degrees: what is right on the screen is up in the file
            matrix = f"0 1 -1 0 {840 - y:.1f} {x:.1f}"
        self._shown.append(f"BT /F1 {size} Tf {matrix} Tm ({escaped(text)}) Tj ET")

    def _end_page(self) -> None:
        self._show(290, 30, str(len(self.contents) + 1))
        self.contents.append("\n".join(self._shown))
        self.entries.append("/Rotate 90" if self._is_turned else "")
        self._shown = []


def width_of(text: str) -> float:
    """The width of a figure at 9 points."""
    return sum(WIDTHS.get(character, 556) for character in text) * 9 / 1000


if __name__ == "__main__":
    main()
