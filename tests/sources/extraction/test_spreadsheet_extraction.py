from __future__ import annotations

import io
import random
import struct
import zipfile
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from xml.sax.saxutils import escape

import pytest

from findling.sources.documents.document_formats import extract as read_by_name
from findling.sources.documents.office.spreadsheets import extract
from findling.sources.extracted import Extracted, Source
from findling.sources.files.file_text import UnreadableError
from tests.counts import tries

Cell = str | float | bool | None
_MAIN = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
_OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
_PACKAGE = "http://schemas.openxmlformats.org/package/2006/relationships"


def letters(column: int) -> str:
    return chr(65 + column) if column < 26 else letters(column // 26 - 1) + chr(65 + column % 26)


def cell_xml(reference: str, value: Cell) -> str:
    if isinstance(value, bool):
        return f'<c r="{reference}" t="b"><v>{int(value)}</v></c>'
    if isinstance(value, str):
        return f'<c r="{reference}" t="inlineStr"><is><t>{escape(value)}</t></is></c>'
    return f'<c r="{reference}"><v>{value!r}</v></c>'


def sheet_xml(rows: Sequence[Sequence[Cell]], first_row: int = 1, first_column: int = 0) -> str:
    lines = []
    for number, row in enumerate(rows, first_row):
        cells = "".join(
            cell_xml(f"{letters(column)}{number}", value)
            for column, value in enumerate(row, first_column)
            if value is not None
        )
        lines.append(f'<row r="{number}">{cells}</row>')
    return "<sheetData>" + "".join(lines) + "</sheetData>"


def zipped(members: Mapping[str, str]) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return file.getvalue()


def relationships(targets: Sequence[tuple[str, str]]) -> str:
    entries = "".join(
        f'<Relationship Id="rId{number}" Type="{_OFFICE}/{kind}" Target="{target}"/>'
        for number, (kind, target) in enumerate(targets, 1)
    )
    return f'<Relationships xmlns="{_PACKAGE}">{entries}</Relationships>'


_STATES = {True: "hidden", False: "visible"}
_STYLES = '<cellXfs count="2"><xf numFmtId="0"/><xf numFmtId="22"/></cellXfs>'


def xlsx(sheets: Mapping[str, str], more: Mapping[str, str] | None = None, hidden: str = "") -> bytes:
    """A workbook of sheets given by their name and XML, and further members."""
    entries = "".join(
        f'<sheet name="{escape(name)}" sheetId="{number}" state="{_STATES[name == hidden]}" r:id="rId{number}"/>'
        for number, name in enumerate(sheets, 1)
    )
    targets = [("worksheet", f"worksheets/sheet{number}.xml") for number in range(1, len(sheets) + 1)]
    types = '<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types"/>'
    members = {
        "[Content_Types].xml": types,
        "_rels/.rels": relationships([("officeDocument", "xl/workbook.xml")]),
        "xl/workbook.xml": f'<workbook xmlns="{_MAIN}" xmlns:r="{_OFFICE}"><sheets>{entries}</sheets></workbook>',
        "xl/_rels/workbook.xml.rels": relationships([*targets, ("styles", "styles.xml")]),
        "xl/styles.xml": f'<styleSheet xmlns="{_MAIN}">{_STYLES}</styleSheet>',
    }
    for number, xml in enumerate(sheets.values(), 1):
        members[f"xl/worksheets/sheet{number}.xml"] = f'<worksheet xmlns="{_MAIN}">{xml}</worksheet>'
    return zipped({**members, **(more or {})})


_ODF = " ".join(
    f'xmlns:{prefix}="urn:oasis:names:tc:opendocument:xmlns:{prefix}:1.0"'
    for prefix in ("office", "table", "text", "meta")
)
_DUBLIN = 'xmlns:dc="http://purl.org/dc/elements/1.1/"'
_META = (
    "<office:meta><dc:title>Ducks</dc:title><dc:creator>Ida</dc:creator><dc:language>de</dc:language>"
    "<meta:creation-date>2024-05-06T07:08:09</meta:creation-date></office:meta>"
)


def odf_cell(kind: str, shown: str, attributes: str = "") -> str:
    shown = f"<text:p>{shown}</text:p>"
    return f'<table:table-cell office:value-type="{kind}" {attributes}>{shown}</table:table-cell>'


def odf_text(text: str, attributes: str = "") -> str:
    return odf_cell("string", text, attributes)


def odf_number(value: float, shown: str) -> str:
    return odf_cell("float", shown, f'office:value="{value}"')


def odf_body(rows: str, name: str = "Birds") -> str:
    table = f'<table:table table:name="{name}">{rows}</table:table>'
    return f"<office:body><office:spreadsheet>{table}</office:spreadsheet></office:body>"


def ods(rows: str) -> bytes:
    body = odf_body(rows)
    kind = "application/vnd.oasis.opendocument.spreadsheet"
    manifest = "urn:oasis:names:tc:opendocument:xmlns:manifest:1.0"
    return zipped(
        {
            "mimetype": kind,
            "META-INF/manifest.xml": f'<m:manifest xmlns:m="{manifest}"><m:file-entry m:full-path="/"/></m:manifest>',
            "content.xml": f"<office:document-content {_ODF}>{body}</office:document-content>",
            "meta.xml": f"<office:document-meta {_ODF} {_DUBLIN}>{_META}</office:document-meta>",
        }
    )


def record(kind: int, body: bytes = b"") -> bytes:
    """A record of a BIFF stream."""
    return struct.pack("<HH", kind, len(body)) + body


def bof(kind: int) -> bytes:
    """The record that begins a part of an Excel 97 workbook: 5 globals, 0x10 a sheet, 0x20 a chart."""
    return record(0x809, struct.pack("<HHHHII", 0x600, kind, 0, 0, 0, 0))


def xls(
    cells: Mapping[tuple[int, int], str | float],
    sheet: str = "Old",
    extra: bytes = b"",
    *,
    above: bytes = b"",
    formats: Sequence[int] = (),
) -> bytes:
    """An Excel 97 workbook of one sheet, in the smallest compound file that holds it.

    `above` stands before the cells; the cells of column n have the n-th of the built-in `formats`.
    """
    extra += b"".join(record(0xE0, struct.pack("<HH16x", 0, number)) for number in formats)

    end = record(0x0A, b"")
    name = bytes([len(sheet), 0]) + sheet.encode("ascii")
    start = len(bof(5)) + len(extra) + 4 + 6 + len(name) + len(end)
    stream = bof(5) + extra + record(0x85, struct.pack("<IBB", start, 0, 0) + name) + end + bof(0x10) + above
    for (row, column), value in cells.items():
        place = struct.pack("<HHH", row, column, column if formats else 0)
        if isinstance(value, str):
            stream += record(0x204, place + struct.pack("<HB", len(value), 0) + value.encode("latin-1"))
        else:
            stream += record(0x203, place + struct.pack("<d", value))
    return _compound_file("Workbook", stream + end)


def _compound_file(name: str, stream: bytes) -> bytes:
    stream = stream.ljust(max(4096, -(-len(stream) // 512) * 512), b"\0")
    count = len(stream) // 512
    chain = [*range(3, count + 2), 0xFFFFFFFE]
    table = [0xFFFFFFFD, 0xFFFFFFFE, *chain]
    magic = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
    numbers = (62, 3, 0xFFFE, 9, 6, 0, 1, 1, 0, 4096, 0xFFFFFFFE, 0, 0xFFFFFFFE, 0)
    header = struct.pack("<8s16xHHHHH6xIIIIIIIII", magic, *numbers)
    header += struct.pack("<I", 0) + b"\xff" * 4 * 108

    def entry(title: str, kind: int, child: int, start: int, size: int) -> bytes:
        encoded = (title + "\0").encode("utf-16-le")
        free = 0xFFFFFFFF
        return struct.pack("<64sHBBIII36xIQ", encoded, len(encoded), kind, 1, free, free, child, start, size)

    directory = entry("Root Entry", 5, 1, 0xFFFFFFFE, 0) + entry(name, 2, 0xFFFFFFFF, 2, len(stream))
    directory += (b"\0" * 68 + b"\xff" * 12 + b"\0" * 48) * 2
    return header + struct.pack("<128I", *table, *[0xFFFFFFFF] * (128 - len(table))) + directory + stream


def read(data: bytes, name: str = "book.xlsx") -> Extracted:
    return extract(Source(data, name))


def lines_by_place(extracted: Extracted) -> dict[str, str]:
    """Every line with the label of the place it begins at."""
    return {place.label: extracted.text[place.start :].partition("\n")[0] for place in extracted.places}


def test_rows_carry_their_header_and_their_cell() -> None:
    rows: list[list[Cell]] = [
        ["Name", "City:", "Age"],
        ["Ada", "London", 36.0],
        [None, "Paris", 12.5],
        ["Zoë", None, None],
    ]
    extracted = read(xlsx({"People": sheet_xml(rows)}))
    assert lines_by_place(extracted) == {
        "People!A1": "Name | City: | Age",
        "People!A2": "Name: Ada | City: London | Age: 36",
        "People!B3": "City: Paris | Age: 12.5",
        "People!A4": "Name: Zoë",
    }


def test_cells_are_named_by_where_they_really_are_and_sheets_quoted() -> None:
    sheets = {
        "My Sheet": sheet_xml([["far away"]], first_row=7, first_column=27),
        "Ada's": sheet_xml([["x"]]),
        "Q1": sheet_xml([["looks like a cell"]]),
        "Übersicht_2": sheet_xml([["plain"]]),
    }
    extracted = read(xlsx(sheets))
    assert list(lines_by_place(extracted)) == ["'My Sheet'!AB7", "'Ada''s'!A1", "'Q1'!A1", "Übersicht_2!A1"]


def test_sheets_are_sections_in_order_hidden_ones_too() -> None:
    sheets = {"First": sheet_xml([["one"]]), "Empty": sheet_xml([]), "Second": sheet_xml([["two"]])}
    extracted = read(xlsx(sheets, hidden="Second"))
    assert extracted.text == "one\n\ntwo"
    headings = [(heading.title, heading.level, extracted.text[heading.start :][:3]) for heading in extracted.headings]
    assert headings == [("First", 1, "one"), ("Second", 1, "two")]


def test_titles_above_a_header_do_not_hide_it() -> None:
    rows: list[list[Cell]] = [["Ducks by year"], [], ["Year", "Ducks"], [2019, 120]]
    assert read(xlsx({"S": sheet_xml(rows)})).text == "Ducks by year\nYear | Ducks\nYear: 2019 | Ducks: 120"


def test_years_may_name_columns() -> None:
    rows: list[list[Cell]] = [["Country", 2019, 2020], ["Malta", 1, 2]]
    assert read(xlsx({"S": sheet_xml(rows)})).text.endswith("\nCountry: Malta | 2019: 1 | 2020: 2")


@pytest.mark.parametrize("first", [["same", "same"], ["text", 5], [1, 2], ["long " * 50, "text"], ["text", True]])
def test_a_row_that_is_no_header_is_not_repeated(first: list[Cell]) -> None:
    assert read(xlsx({"S": sheet_xml([first, ["a", "b"]])})).text.endswith("\na | b")


def test_values_read_as_a_person_reads_them() -> None:
    cells = [0.1 + 0.2, 12.0, True, False, 1e-7, 12345678901234.0, -3.25]
    assert read(xlsx({"S": sheet_xml([cells])})).text == "0.3 | 12 | TRUE | FALSE | 1e-07 | 12345678901234 | -3.25"


def test_dates_and_times_are_iso() -> None:
    values = [45292, 45292.5, 45292.000011574073]  # 1 January 2024, its noon, its first second
    cells = "".join(f'<c r="{letters(column)}1" s="1"><v>{value}</v></c>' for column, value in enumerate(values))
    extracted = read(xlsx({"S": f'<sheetData><row r="1">{cells}</row></sheetData>'}))
    assert extracted.text == "2024-01-01 | 2024-01-01 12:00 | 2024-01-01 00:00:01"


def test_metadata_of_the_package() -> None:
    core = (
        '<p:coreProperties xmlns:p="http://schemas.openxmlformats.org/package/2006/metadata/core-properties"'
        f' {_DUBLIN} xmlns:dcterms="http://purl.org/dc/terms/"><dc:title>Budget</dc:title><dc:creator>Ada</dc:creator>'
        "<dcterms:created>2024-05-06T07:08:09Z</dcterms:created></p:coreProperties>"
    )
    extracted = read(xlsx({"S": sheet_xml([["x"]])}, {"docProps/core.xml": core}))
    assert (extracted.title, extracted.author) == ("Budget", "Ada")
    assert extracted.created_at == datetime(2024, 5, 6, 7, 8, 9, tzinfo=UTC).timestamp()


def test_comments_text_boxes_and_charts_are_read_after_the_cells() -> None:
    drawing = "http://schemas.openxmlformats.org/drawingml/2006"
    comments = (
        f'<comments xmlns="{_MAIN}"><commentList><comment ref="B2"><text><r><t>check </t></r><r><t>this</t></r></text>'
        "</comment></commentList></comments>"
    )
    box = (
        f'<d:wsDr xmlns:d="{drawing}/spreadsheetDrawing" xmlns:a="{drawing}/main"><d:sp><d:txBody>'
        "<a:p><a:r><a:t>in a box</a:t></a:r></a:p></d:txBody></d:sp></d:wsDr>"
    )
    chart = (
        f'<c:chartSpace xmlns:c="{drawing}/chart" xmlns:a="{drawing}/main"><c:title><c:tx><c:rich>'
        "<a:p><a:r><a:t>Growth</a:t></a:r></a:p></c:rich></c:tx></c:title></c:chartSpace>"
    )
    parts = [("comments", "../comments1.xml"), ("drawing", "../drawings/drawing1.xml")]
    more = {
        "xl/worksheets/_rels/sheet1.xml.rels": relationships(parts),
        "xl/comments1.xml": comments,
        "xl/drawings/drawing1.xml": box,
        "xl/drawings/_rels/drawing1.xml.rels": relationships([("chart", "../charts/chart1.xml")]),
        "xl/charts/chart1.xml": chart,
    }
    extracted = read(xlsx({"S": sheet_xml([["cell"]])}, more))
    assert extracted.text.split("\n\n") == ["cell", "check this", "in a box", "Growth"]
    assert lines_by_place(extracted)["S!B2"] == "check this"


def test_two_cells_in_opposite_corners_of_a_sheet_are_read() -> None:
    far = cell_xml("XFD1048576", "the end")
    xml = f'<sheetData><row r="1">{cell_xml("A1", "start")}</row><row r="1048576">{far}</row></sheetData>'
    assert lines_by_place(read(xlsx({"S": xml, "T": sheet_xml([["next"]])}))) == {
        "S!A1": "start",
        "S!XFD1048576": "the end",
        "T!A1": "next",
    }


def test_a_wide_row_in_a_long_sheet_stays_one_row() -> None:
    wide = "".join(cell_xml(f"{letters(column)}1", f"c{column}") for column in range(0, 16_000, 4))
    styled = '<c r="XFD2" s="1"/>'
    rows = "".join(f'<row r="{row}">{cell_xml(f"A{row}", row)}{styled}</row>' for row in range(2, 3000))
    lines = lines_by_place(read(xlsx({"S": f'<sheetData><row r="1">{wide}</row>{rows}</sheetData>'})))
    assert lines["S!A1"].split(" | ") == [f"c{column}" for column in range(0, 16_000, 4)]
    assert lines["S!A2999"] == "c0: 2999"
    assert len(lines) == 2999


def test_a_sheet_too_long_to_read_gives_its_beginning() -> None:
    padding = " " * (1 << 20)
    rows = [[f"row {number}{padding}"] for number in range(40)]
    lines = lines_by_place(read(xlsx({"S": sheet_xml(rows)})))
    assert list(lines.values()) == [f"row {number}" for number in range(31)]


def test_shared_strings_that_unpack_without_end_are_refused() -> None:
    with pytest.raises(UnreadableError) as caught:
        read(xlsx({"S": sheet_xml([["x"]])}, {"xl/sharedStrings.xml": " " * (65 << 20)}))
    assert (caught.value.reason, caught.value.detail) == ("too-large", "unpacks to more than 64 MB")


def test_a_broken_sheet_does_not_lose_the_others() -> None:
    extracted = read(xlsx({"Bad": "<sheetData><row r='1'><c r='A1'><v>1</oops>", "Good": sheet_xml([["fine"]])}))
    assert extracted.text.endswith("fine")


def test_opendocument_sheets_with_their_metadata() -> None:
    rows = (
        f"<table:table-row>{odf_text('Year')}{odf_text('Ducks')}</table:table-row>"
        f"<table:table-row>{odf_number(2019, '2019')}{odf_number(120, '120,00')}</table:table-row>"
    )
    extracted = read(ods(rows), "birds.ods")
    assert lines_by_place(extracted) == {"Birds!A1": "Year | Ducks", "Birds!A2": "Year: 2019 | Ducks: 120"}
    assert (extracted.title, extracted.author, extracted.fields["language"]) == ("Ducks", "Ida", "de")
    assert extracted.created_at == datetime(2024, 5, 6, 7, 8, 9, tzinfo=UTC).timestamp()


def test_opendocument_cells_that_lie_far_apart_or_fill_whole_columns() -> None:
    everywhere = odf_text("x", 'table:number-columns-repeated="16384"')
    gap = '<table:table-cell table:number-columns-repeated="16383"/>'
    rows = (
        f"<table:table-row>{odf_text('start')}{gap.replace('16383', '16382')}{odf_text('right')}</table:table-row>"
        f'<table:table-row table:number-rows-repeated="1048574">{gap}</table:table-row>'
        f"<table:table-row>{gap}{odf_text('corner')}</table:table-row>"
    )
    lines = lines_by_place(read(ods(rows), "far.ods"))
    assert lines == {"Birds!A1": "start | right", "Birds!XFD1048576": "right: corner"}
    bomb = f'<table:table-row table:number-rows-repeated="1048576">{everywhere}</table:table-row>'
    assert 0 < len(read(ods(bomb), "bomb.ods").text) < 1_000_000


def test_a_flat_opendocument_file_is_read() -> None:
    date = odf_cell("date", "6. Mai", 'office:date-value="2024-05-06"')
    note = "<office:annotation><text:p>a comment</text:p></office:annotation>"
    spaced = odf_text("two<text:s/>words").replace("<text:p>", note + "<text:p>", 1)
    flag = '<table:table-cell office:value-type="boolean" office:boolean-value="true"/>'
    body = odf_body(f"<table:table-row>{spaced}{date}{flag}</table:table-row>", "T")
    data = f'<?xml version="1.0"?>\n<office:document {_ODF} {_DUBLIN}>{_META}{body}</office:document>'.encode()
    extracted = read(data, "flat.fods")
    assert lines_by_place(extracted) == {"T!A1": "two words | 6. Mai | TRUE"}
    assert extracted.title == "Ducks"


def test_excel_97_is_read() -> None:
    cells: dict[tuple[int, int], str | float] = {(2, 1): "Name", (2, 2): "Age", (3, 1): "Ada", (3, 2): 36.0}
    assert lines_by_place(read(xls(cells), "old.xls")) == {"Old!B3": "Name | Age", "Old!B4": "Name: Ada | Age: 36"}


def test_dates_of_opendocument_are_read_as_they_are_shown() -> None:
    day = odf_cell("date", "31.12.2024", 'office:date-value="2024-12-31"')
    rows = (
        f"<table:table-row>{odf_text('Day')}{odf_text('Ducks')}</table:table-row>"
        f"<table:table-row>{day}{odf_number(3, '3')}</table:table-row>"
    )
    assert lines_by_place(read(ods(rows), "days.ods"))["Birds!A2"] == "Day: 31.12.2024 | Ducks: 3"


def test_a_chart_in_an_excel_97_sheet_loses_and_misplaces_no_cell() -> None:
    points = b"".join(record(0x203, struct.pack("<HHHd", row, 1, 0, 99.0)) for row in range(4))
    cells: dict[tuple[int, int], str | float] = {(row, 0): f"label {row}" for row in range(4)}
    extracted = read(xls(cells, above=bof(0x20) + points + record(0x0A)), "chart.xls")
    assert extracted.text.splitlines() == [f"label {row}" for row in range(4)]


def test_dates_times_and_durations_of_excel_97() -> None:
    date, time, duration = 14, 20, 46  # the last one is [h]:mm:ss
    cells: dict[tuple[int, int], str | float] = {(0, 0): 33966.0, (0, 1): 0.25, (0, 2): 1.25}
    assert read(xls(cells, formats=(date, time, duration)), "formats.xls").text == "1992-12-28 | 06:00 | 30:00:00"


def test_excel_4_has_no_container_around_its_cells() -> None:
    label = record(0x204, struct.pack("<HHHH", 2, 1, 0, 5) + b"Ducks")
    number = record(0x203, struct.pack("<HHHd", 3, 1, 0, 120.0))
    data = record(0x409, struct.pack("<HHH", 0x400, 0x10, 0)) + label + number + record(0x0A)
    assert read_by_name(Source(data, "old.xls")).text == "Ducks\n120"


def test_passwords() -> None:
    filepass = struct.pack("<HHHHH", 0x2F, 6, 0, 0x1234, 0x5678)
    manifest = {
        "META-INF/manifest.xml": "<m><e full-path='content.xml'><encryption-data/></e></m>",
        "content.xml": "\x07 not XML",
    }
    for data in (xls({(0, 0): "secret"}, extra=filepass), _compound_file("EncryptedPackage", b"?"), zipped(manifest)):
        with pytest.raises(UnreadableError) as caught:
            read(data)
        assert caught.value.reason == "encrypted"


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"neither", "damaged"),
        (b"PK\x03\x04 broken", "damaged"),
        (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1 broken", "damaged"),
        (zipped({"readme.txt": "no workbook"}), "damaged"),
        (b"<Workbook xmlns='urn:schemas-microsoft-com:office:spreadsheet'/>", "unsupported"),
        (b"<office:document", "damaged"),
        (xlsx({"Empty": sheet_xml([])}), "no-text"),
    ],
)
def test_what_cannot_be_read_says_why(data: bytes, reason: str) -> None:
    with pytest.raises(UnreadableError) as caught:
        read(data)
    assert caught.value.reason == reason
    assert caught.value.detail


def test_reading_stops_at_the_limit() -> None:
    data = xlsx({"S": sheet_xml([[f"row {number}"] for number in range(1000)])})
    extracted = extract(Source(data, "long.xlsx", limit=100))
    assert len(extracted.text) <= 100
    assert "truncated" in extracted.fields


@pytest.mark.parametrize(
    "intact",
    [
        xls({(0, 0): "Name", (1, 0): 5.0}),
        ods(f"<table:table-row>{odf_text('x')}</table:table-row>"),
        xlsx({"S": sheet_xml([["a", "b"], [1, 2]])}),
    ],
    ids=["xls", "ods", "xlsx"],
)
def test_damage_anywhere_gives_text_or_a_reason(intact: bytes) -> None:
    dice = random.Random(2)
    outcomes: set[bool | str] = set()
    for _ in range(tries(150, short=40)):
        data = bytearray(intact)
        for _ in range(dice.randint(1, 10)):
            data[dice.randrange(len(data))] = dice.randrange(256)
        try:
            outcomes.add(bool(read(bytes(data)).text))
        except UnreadableError as error:
            outcomes.add(error.reason)
    assert outcomes <= {True, "damaged", "no-text", "encrypted", "too-large", "unsupported"}
    assert len(outcomes) > 1
