"""Documents from the file to the hit: what is found, where it says it stands, what is known about it."""

from __future__ import annotations

import json
import sqlite3
import zipfile
from pathlib import Path

import pytest

import findling

NOTEBOOK = {
    "nbformat": 4,
    "nbformat_minor": 5,
    "metadata": {"kernelspec": {"name": "python3", "display_name": "Python", "language": "python"}},
    "cells": [
        {"cell_type": "markdown", "metadata": {}, "source": ["# Tides\n", "When the water rises."]},
        {"cell_type": "code", "metadata": {}, "source": "def moon_phase(day):\n    return day % 29", "outputs": []},
    ],
}


def write_pdf(path: Path, pages: list[str]) -> None:
    """A PDF with one line of text a page, offsets and all."""
    kids = " ".join(f"{4 + 2 * number} 0 R" for number in range(len(pages)))
    objects = [
        "<< /Type /Catalog /Pages 2 0 R >>",
        f"<< /Type /Pages /Kids [{kids}] /Count {len(pages)} >>",
        "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
    ]
    for number, text in enumerate(pages):
        stream = f"BT /F1 12 Tf 72 700 Td ({text}) Tj ET"
        objects.append(
            f"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents {5 + 2 * number} 0 R"
            " /Resources << /Font << /F1 3 0 R >> >> >>"
        )
        objects.append(f"<< /Length {len(stream)} >>\nstream\n{stream}\nendstream")
    data, offsets = "%PDF-1.4\n", []
    for number, body in enumerate(objects, start=1):
        offsets.append(len(data))
        data += f"{number} 0 obj\n{body}\nendobj\n"
    table = "".join(f"{offset:010} 00000 n \n" for offset in offsets)
    count = len(objects) + 1
    start = len(data)
    data += f"xref\n0 {count}\n0000000000 65535 f \n{table}"
    data += f"trailer\n<< /Size {count} /Root 1 0 R >>\nstartxref\n{start}\n%%EOF\n"
    path.write_text(data)


def write_workbook(path: Path) -> None:
    rows = [["Item", "Price"], ["Anchor", "120"], ["Halyard", "35"]]
    cells = "".join(
        f'<row r="{number}">'
        + "".join(
            f'<c r="{column}{number}" t="inlineStr"><is><t>{text}</t></is></c>'
            for column, text in zip("AB", row, strict=True)
        )
        + "</row>"
        for number, row in enumerate(rows, start=5)
    )
    main = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
    office = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
    package = "http://schemas.openxmlformats.org/package/2006"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(
            "[Content_Types].xml",
            f'<Types xmlns="{package}/content-types"><Default Extension="xml" ContentType="application/xml"/></Types>',
        )
        archive.writestr(
            "_rels/.rels",
            f'<Relationships xmlns="{package}/relationships"><Relationship Id="r1" Type="{office}/officeDocument"'
            ' Target="xl/workbook.xml"/></Relationships>',
        )
        archive.writestr(
            "xl/workbook.xml",
            f'<workbook xmlns="{main}" xmlns:r="{office}"><sheets><sheet name="Ship store" sheetId="1" r:id="r1"/>'
            "</sheets></workbook>",
        )
        archive.writestr(
            "xl/_rels/workbook.xml.rels",
            f'<Relationships xmlns="{package}/relationships"><Relationship Id="r1" Type="{office}/worksheet"'
            ' Target="worksheets/sheet1.xml"/></Relationships>',
        )
        archive.writestr(
            "xl/worksheets/sheet1.xml", f'<worksheet xmlns="{main}"><sheetData>{cells}</sheetData></worksheet>'
        )


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> findling.Engine:
    root = tmp_path_factory.mktemp("papers")
    write_pdf(root / "report.pdf", ["Nothing of interest", "The barometer fell sharply", "The end"])
    write_workbook(root / "stock.xlsx")
    (root / "page.html").write_text(
        "<html lang=en><head><title>Knots</title></head>\n<body>\n<h1>Bends</h1>\n<p>The sheet bend joins ropes.</p>\n"
    )
    (root / "data.json").write_text('{\n  "crew": [\n    {"name": "Ishmael", "rank": "whaler"}\n  ]\n}\n')
    (root / "log.jsonl").write_text('{"wind": "north"}\n{oops\n{"wind": "southwest"}\n')
    (root / "rates.csv").write_text("port;fee\nRotterdam;120\nAntwerpen;95\n")
    (root / "talk.srt").write_text("1\n00:00:05,000 --> 00:00:07,000\nMind the boom.\n")
    (root / "mail.eml").write_bytes(
        b"From: Ahab <ahab@example.org>\r\nTo: crew@example.org\r\nSubject: The white whale\r\n"
        b"Date: Mon, 02 Jan 2023 10:00:00 +0000\r\nContent-Type: text/plain\r\n\r\nBring the harpoons.\r\n"
    )
    (root / "tides.ipynb").write_text(json.dumps(NOTEBOOK))
    connection = sqlite3.connect(root / "crew.db")
    connection.execute("CREATE TABLE sailors (name TEXT, tattoo TEXT)")
    connection.execute("INSERT INTO sailors VALUES ('Queequeg', 'spirals')")
    connection.commit()
    connection.close()
    settings = findling.Settings().override({"store.home": str(tmp_path_factory.mktemp("home"))}, "test")
    engine = findling.open(root, settings=settings)
    engine.index()
    assert engine.failed() == []
    return engine


@pytest.mark.parametrize(
    ("query", "path", "place", "line"),
    [
        ("barometer", "report.pdf", "p. 2", "The barometer fell sharply"),
        ("halyard", "stock.xlsx", "'Ship store'!A7", "Item: Halyard | Price: 35"),
        ("queequeg", "crew.db", "sailors row 1", "name: Queequeg | tattoo: spirals"),
        ("boom", "talk.srt", "00:00:05", "Mind the boom."),
        ("moon_phase", "tides.ipynb", "cell 2", "def moon_phase(day):"),
    ],
)
def test_a_hit_names_its_place(engine: findling.Engine, query: str, path: str, place: str, line: str) -> None:
    hit = engine.search(query).hits[0]
    assert (hit.path, hit.place) == (path, place)
    assert line in [shown.text for shown in hit.lines if shown.spans and shown.place == place]


@pytest.mark.parametrize(
    ("query", "path", "number", "line"),
    [
        ("joins ropes", "page.html", 4, "The sheet bend joins ropes."),
        ("ishmael", "data.json", 3, "crew[0].name: Ishmael"),
        ("southwest", "log.jsonl", 3, "wind: southwest"),
        ("antwerpen", "rates.csv", 3, "port: Antwerpen | fee: 95"),
    ],
)
def test_a_hit_in_a_text_format_names_its_line(
    engine: findling.Engine, query: str, path: str, number: int, line: str
) -> None:
    hit = engine.search(query).hits[0]
    assert (hit.path, hit.place) == (path, "")
    assert (number, line) in [(shown.number, shown.text) for shown in hit.lines if shown.spans]


def test_what_a_document_says_about_itself_is_kept(engine: findling.Engine) -> None:
    resources = {resource.path: resource for resource in engine.ls()}
    page, mail = resources["page.html"], resources["mail.eml"]
    assert (page.title, page.lang, page.fields["language"]) == ("Knots", "html", "english")
    assert (mail.title, mail.author) == ("The white whale", "Ahab <ahab@example.org>")
    assert mail.created_at == 1672653600.0
    assert resources["tides.ipynb"].title == "Tides"
    assert engine.search("harpoons").hits[0].title == mail.title


def test_a_document_that_is_touched_is_not_new(engine: findling.Engine) -> None:
    path = engine.root / "report.pdf"
    path.touch()
    report = engine.index()
    assert (report.added, report.updated) == (0, 0)


def test_a_document_that_changes_is_read_again(engine: findling.Engine) -> None:
    write_pdf(engine.root / "report.pdf", ["The glass is rising"])
    assert [hit.place for hit in engine.search("glass")] == ["p. 1"]
    assert not engine.search("barometer").hits


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "tree").mkdir()
    return tmp_path / "tree"


def engine_of(folder: Path, **values: object) -> findling.Engine:
    settings = findling.Settings().override({"store.home": str(folder.parent / "home"), **values}, "test")
    return findling.open(folder, settings=settings)


def test_values_that_share_a_line_have_the_number_of_that_line(folder: Path) -> None:
    (folder / "one.json").write_text(json.dumps({"items": [{"name": f"val{n}"} for n in range(200)]}))
    (folder / "p.xml").write_text("<a>\n<x>one</x>\n<b>two swordfish</b><c>three tuna</c>\n</a>\n")
    (folder / "pre.html").write_text("<p>intro</p>\n<pre>\nfirst row\nsecond row\nthird gannet row\n</pre>\n")
    with engine_of(folder) as engine:
        assert engine.search("val150").hits[0].line == 1
        assert engine.search("tuna").hits[0].line == 3
        assert engine.search("gannet").hits[0].line == 5, "code keeps its lines"


def test_a_hit_points_at_the_whole_identifier_not_at_its_parts(folder: Path) -> None:
    (folder / "log.txt").write_text("".join(f"line {n} E{n} happened\n" for n in range(1, 40)))
    with engine_of(folder) as engine:
        hit = engine.search("E17").hits[0]
        assert hit.line == 17
        assert [line.number for line in hit.lines if line.spans] == [17]
        assert engine.search('"E23 happened"').hits[0].line == 23
        assert engine.search("happened 31").hits[0].line == 31


def test_what_stands_before_the_first_place_is_not_at_that_place(folder: Path) -> None:
    (folder / "mail.eml").write_bytes(
        b"From: a@example.org\r\nSubject: Lunch\r\nMIME-Version: 1.0\r\n"
        b"Content-Type: multipart/mixed; boundary=b\r\n\r\n"
        b"--b\r\nContent-Type: text/plain\r\n\r\nLet us meet at the kestrel cafe.\r\n"
        b"--b\r\nContent-Type: text/plain\r\n"
        b'Content-Disposition: attachment; filename="menu.txt"\r\n\r\nsoup of leek\r\n'
        b"--b--\r\n"
    )
    with engine_of(folder) as engine:
        body, attached = engine.search("kestrel").hits[0], engine.search("leek").hits[0]
        assert (body.place, body.line) == ("", 0)
        assert attached.place == "attachment menu.txt"


def test_documents_that_are_read_in_part_are_told(folder: Path) -> None:
    (folder / "rows.csv").write_text("name,city\n" + "".join(f"n{n},c{n}\n" for n in range(5000)))
    connection = sqlite3.connect(folder / "many.db")
    connection.execute("CREATE TABLE t (word TEXT)")
    connection.executemany("INSERT INTO t VALUES (?)", [(f"w{n}",) for n in range(10_500)])
    connection.commit()
    connection.close()
    with engine_of(folder, **{"index.max_text": 20_000}) as engine:
        assert engine.index().partial == 2
        told = {entry.path: entry for entry in engine.failed()}
        assert {entry.reason for entry in told.values()} == {"read-in-part"}
        assert "20000 characters" in told["rows.csv"].detail
    with engine_of(folder) as engine:
        assert engine.search("n4999").hits, "a larger limit reads them again"
        assert [(entry.path, entry.detail) for entry in engine.failed()] == [("many.db", "the first 10,000 rows of t")]


def test_a_rebuild_that_is_stopped_goes_on_with_the_next_search(folder: Path) -> None:
    for number in range(30):
        (folder / f"{number}.txt").write_text(f"word{number}")

    class StopError(Exception):
        pass

    def stop(event: findling.IndexProgress) -> None:
        if event.done == 10:
            raise StopError

    with engine_of(folder) as engine:
        engine.index()
        with pytest.raises(StopError):
            engine.index(rebuild=True, on_progress=stop)
    with engine_of(folder) as engine:
        assert engine.search("word29").hits[0].path == "29.txt"
        assert engine.status().resources == 30
