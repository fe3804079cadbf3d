"""Extraction of text against the libraries most programs use for it, interleaved in one run.

    python bench/extract.py [--rounds 3] [FILE or FOLDER ...]

Without files it makes some of its own. Prints the CPU time of both sides, their throughput and how many times faster
findling is, by CPU and by wall time: CPU time is the figure to read, as wall time on a shared machine says little. Each
figure is the best of the rounds, since noise only ever adds. `found` is the share of the peer's distinct words that
findling's text holds, `more` the words of findling that the peer lacks, as a share of the peer's. Files that one side
cannot read are listed, and not measured.
"""

from __future__ import annotations

import sys

# A script's own folder comes first on the path; its modules are those of the package `bench`.
sys.path[0] = f"{__file__.rpartition('/')[0] or '.'}/.."

import argparse
import gc
import importlib
import re
import time
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from bench.documents import make_documents
from findling.sources.documents.document_formats import extract
from findling.sources.extracted import Source


class Peer(NamedTuple):
    """What findling is measured against; `bar` is how many times faster findling must be, 0 where nothing is asked."""

    name: str
    package: str
    module: str
    read: Callable[[Any, bytes], str]
    bar: float


class Cost(NamedTuple):
    cpu_s: float
    wall_s: float


class Document(NamedTuple):
    """A file that both sides can read, and the words each of them finds in it."""

    name: str
    data: bytes
    pages: int
    ours: frozenset[str]
    theirs: frozenset[str]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("paths", nargs="*", type=Path, metavar="FILE or FOLDER")
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    with TemporaryDirectory(prefix="findling-bench-") as folder:
        paths = arguments.paths or [make_documents(Path(folder))]
        files = sorted(file for path in paths for file in _files(path))
        print(f"best of {arguments.rounds} rounds, interleaved; times in CPU seconds")
        print(_HEADER)
        for ending, peer in PEERS.items():
            chosen = [file for file in files if _ending(file) == ending]
            if chosen:
                _compare(ending, peer, chosen, arguments.rounds)


def _compare(ending: str, peer: Peer, files: Sequence[Path], rounds: int) -> None:
    try:
        library = importlib.import_module(peer.module)
    except ImportError:
        print(f"{ending:6} skipped: pip install {peer.package}")
        return

    def theirs(document: Document) -> None:
        peer.read(library, document.data)

    documents = [document for file in files if (document := _read_by_both(file, peer, library))]
    if documents:
        costs = [(_cost(_ours, documents), _cost(theirs, documents)) for _ in range(rounds)]
        best = [Cost(*(min(figures) for figures in zip(*side, strict=True))) for side in zip(*costs, strict=True)]
        _print_row(ending, peer, documents, *best)


def _read_by_both(file: Path, peer: Peer, library: Any) -> Document | None:
    """The document, read once by each side, so that what they load at first use is loaded."""
    data = file.read_bytes()
    texts: list[str] = []
    readers: dict[str, Callable[[], str]] = {
        "findling": lambda: extract(Source(data, file.name)).text,
        peer.name: lambda: peer.read(library, data),
    }
    for name, read in readers.items():
        try:
            texts.append(read())
        except Exception as error:  # whatever a peer raises: the file is not measured, and the reason is shown
            reason = str(error).partition("\n")[0][:80]
            print(f"       not measured: {file.name}: {name}: {type(error).__name__}: {reason}", file=sys.stderr)
            return None
    return Document(file.name, data, _page_count(data), _words(texts[0]), _words(texts[1]))


def _ours(document: Document) -> None:
    extract(Source(document.data, document.name))


def _cost(read: Callable[[Document], None], documents: Sequence[Document]) -> Cost:
    gc.collect()
    cpu, wall = time.process_time(), time.perf_counter()
    for document in documents:
        read(document)
    return Cost(time.process_time() - cpu, time.perf_counter() - wall)


_LINE_END_HYPHEN = re.compile("(?<=\\w)[-\u00ad\u2010][ \t]*\r?\n\\s*(?=[a-z])")
_WORD = re.compile(r"\w{2,}")


def _words(text: str) -> frozenset[str]:
    """The distinct words, on both sides without ligatures and without the hyphens that lines are broken at."""
    return frozenset(_WORD.findall(_LINE_END_HYPHEN.sub("", unicodedata.normalize("NFKC", text)).lower()))


def _page_count(data: bytes) -> int:
    if not data.startswith(b"%PDF"):
        return 0
    with importlib.import_module("pypdfium2").PdfDocument(data) as document:
        return len(document)


def _files(path: Path) -> Iterator[Path]:
    if path.is_file():
        yield path
    yield from (file for file in path.rglob("*") if file.is_file())


def _ending(file: Path) -> str:
    ending = file.suffix.lower().removeprefix(".")
    return "html" if ending == "htm" else ending


_HEADER = (
    f"{'':6} {'peer':22} {'files':>5} {'MB':>6} {'findling':>9} {'peer':>9} {'MB/s':>7} {'peer':>7} {'pages/s':>8}"
    f" {'peer':>7} {'CPU':>7} {'wall':>7} {'bar':>5} {'':6} {'found':>7} {'more':>7}"
)


def _print_row(ending: str, peer: Peer, documents: Sequence[Document], ours: Cost, theirs: Cost) -> None:
    size = sum(len(document.data) for document in documents) / 1e6
    pages = sum(document.pages for document in documents)
    peer_words = sum(len(document.theirs) for document in documents) or 1
    found = sum(len(document.theirs & document.ours) for document in documents) / peer_words
    more = sum(len(document.ours - document.theirs) for document in documents) / peer_words
    ratio = theirs.cpu_s / ours.cpu_s
    verdict = "" if not peer.bar else "ok" if ratio >= peer.bar else "MISSED"
    page_rates = [f"{pages / cost.cpu_s:.0f}" if pages else "" for cost in (ours, theirs)]
    print(
        f"{ending:6} {peer.name:22} {len(documents):5} {size:6.2f} {ours.cpu_s:9.4f} {theirs.cpu_s:9.4f}"
        f" {size / ours.cpu_s:7.2f} {size / theirs.cpu_s:7.2f} {page_rates[0]:>8} {page_rates[1]:>7}"
        f" {ratio:6.1f}x {theirs.wall_s / ours.wall_s:6.1f}x {peer.bar or '':>5} {verdict:6} {found:7.2%} {more:7.2%}"
    )


def _pdfminer(library: Any, data: bytes) -> str:
    return str(library.extract_text(BytesIO(data)))


def _python_docx(library: Any, data: bytes) -> str:
    document = library.Document(BytesIO(data))
    cells = (cell.text for table in document.tables for row in table.rows for cell in row.cells)
    return "\n".join([*(paragraph.text for paragraph in document.paragraphs), *cells])


def _openpyxl(library: Any, data: bytes) -> str:
    workbook = library.load_workbook(BytesIO(data), read_only=True, data_only=True)
    rows = (row for sheet in workbook.worksheets for row in sheet.iter_rows(values_only=True))
    return "\n".join(" ".join(str(value) for value in row if value is not None) for row in rows)


def _bs4(library: Any, data: bytes) -> str:
    soup = library.BeautifulSoup(data, "html.parser")
    for element in soup(["script", "style"]):
        element.decompose()
    return str(soup.get_text(" "))


PEERS = {
    "pdf": Peer("pdfminer.six", "pdfminer.six", "pdfminer.high_level", _pdfminer, 10),
    "docx": Peer("python-docx", "python-docx", "docx", _python_docx, 0),
    "xlsx": Peer("openpyxl, read only", "openpyxl", "openpyxl", _openpyxl, 3),
    "html": Peer("bs4, html.parser", "beautifulsoup4", "bs4", _bs4, 3),
}


if __name__ == "__main__":
    main()
