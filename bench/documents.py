"""Documents to measure extraction with, made without any file of others."""

from __future__ import annotations

import datetime
import importlib
import random
import zlib
from collections.abc import Sequence
from itertools import zip_longest
from pathlib import Path

__all__ = ["escaped", "make_documents", "pdf_bytes", "pdf_of"]

_SYLLABLES = (
    "ba be bi bo bu da de di do du ka ke ki ko ku la le li lo lu ma me mi mo mu na ne ni no nu ra re ri ro".split()
)


def make_documents(folder: Path) -> Path:
    """Write one document of each format into the folder; those whose library is missing are left out."""
    writer = _Writer(random.Random(3))
    (folder / "report.pdf").write_bytes(pdf_bytes([writer.lines(45) for _ in range(200)]))
    (folder / "manual.html").write_text(_html(writer, 2_000_000), encoding="utf-8")
    for name, write in (("ledger.xlsx", _write_xlsx), ("minutes.docx", _write_docx)):
        try:
            write(folder / name, writer)
        except ImportError as error:
            print(f"{name} is left out: pip install {error.name}")
    return folder


class _Writer:
    """Random words, sentences and lines, the same for the same seed."""

    def __init__(self, source: random.Random) -> None:
        self._source = source
        self._words = ["".join(source.choices(_SYLLABLES, k=source.randint(2, 5))) for _ in range(20_000)]

    def words(self, count: int) -> str:
        return " ".join(self._source.choices(self._words, k=count))

    def paragraph(self) -> str:
        return " ".join(self.words(self._source.randint(6, 20)).capitalize() + "." for _ in range(5))

    def lines(self, count: int) -> list[str]:
        return [self.words(self._source.randint(9, 12)) for _ in range(count)]


def pdf_bytes(pages: list[list[str]]) -> bytes:
    """A PDF whose pages show the given lines of Latin text, one below the other."""
    shown = ("".join(f"({escaped(line)}) Tj T*\n" for line in lines) for lines in pages)
    return pdf_of([f"BT /F1 9 Tf 50 800 Td 14 TL\n{page}ET" for page in shown])


def pdf_of(pages: list[str], page_entries: Sequence[str] = ()) -> bytes:
    """A PDF of pages with this content in Helvetica; each may have further entries, such as its rotation."""
    kids = " ".join(f"{4 + 2 * index} 0 R" for index in range(len(pages)))
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        f"<< /Type /Pages /Count {len(pages)} /Kids [{kids}] >>".encode(),
        b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>",
    ]
    for index, (shown, entries) in enumerate(zip_longest(pages, page_entries, fillvalue="")):
        content = zlib.compress(shown.encode("cp1252"))
        resources = f"/Resources << /Font << /F1 3 0 R >> >> /MediaBox [0 0 595 842] {entries}"
        objects.append(f"<< /Type /Page /Parent 2 0 R {resources} /Contents {5 + 2 * index} 0 R >>".encode())
        objects.append(b"<< /Length %d /Filter /FlateDecode >>\nstream\n%s\nendstream" % (len(content), content))
    return _pdf_file(objects)


def _pdf_file(objects: list[bytes]) -> bytes:
    file = bytearray(b"%PDF-1.4\n")
    offsets = []
    for number, body in enumerate(objects, 1):
        offsets.append(len(file))
        file += b"%d 0 obj\n%s\nendobj\n" % (number, body)
    table = len(file)
    file += b"xref\n0 %d\n0000000000 65535 f \n" % (len(objects) + 1)
    file += b"".join(b"%010d 00000 n \n" % offset for offset in offsets)
    file += b"trailer\n<< /Size %d /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF\n" % (len(objects) + 1, table)
    return bytes(file)


def escaped(line: str) -> str:
    """A line as a string of a PDF."""
    return line.replace("\\", r"\\").replace("(", r"\(").replace(")", r"\)")


def _html(writer: _Writer, size: int) -> str:
    menu = "".join(f'<li><a href="/{number}">{writer.words(2)}</a></li>' for number in range(40))
    parts = [
        "<!doctype html><html lang='en'><head><title>Manual</title><style>p { margin: 0 }</style>"
        f"<script>var settings = {{ 'debug': true }};</script></head><body><nav><ul>{menu}</ul></nav><main>"
    ]
    length = 0
    while length < size:
        link = f"<a href='#'><b>{writer.words(2)}</b></a>"
        texts = "".join(f"<p class='text'>{writer.paragraph()} {link}</p>\n" for _ in range(3))
        items = "".join(f"<li>{writer.words(6)}</li>" for _ in range(5))
        row = "".join(f"<td>{writer.words(2)}</td>" for _ in range(4))
        table = f"<table>{f'<tr>{row}</tr>' * 3}</table>"
        part = f"<h2 id='s{len(parts)}'>{writer.words(4)}</h2>\n{texts}<ul>{items}</ul>\n{table}\n"
        parts.append(part)
        length += len(part)
    return "".join(parts) + "</main></body></html>"


def _write_xlsx(path: Path, writer: _Writer) -> None:
    workbook = importlib.import_module("openpyxl").Workbook(write_only=True)
    sheet = workbook.create_sheet("Ledger")
    sheet.append(["number", "customer", "city", "amount", "date", "paid", "note", "share"])
    first_day = datetime.date(2020, 1, 1)
    for number in range(20_000):
        day = first_day + datetime.timedelta(number % 999)
        amount, share = round(number * 1.17, 2), round(number / 20_000, 4)
        row = [number, writer.words(2), writer.words(1), amount, day, number % 3 == 0, writer.words(5), share]
        sheet.append(row)
    workbook.save(path)


def _write_docx(path: Path, writer: _Writer) -> None:
    document = importlib.import_module("docx").Document()
    for _ in range(60):
        document.add_heading(writer.words(4), 1)
        for _ in range(15):
            document.add_paragraph(writer.paragraph())
        table = document.add_table(4, 4)
        for row in table.rows:
            for cell in row.cells:
                cell.text = writer.words(3)
    document.save(str(path))
