"""Collects the texts that the reader is distilled on, from packages as downloaded: kind, source, text.

    python training/collect_reader.py PACKAGE... --out texts.tsv

Packages are .deb, .whl, .zip, .jar or .tgz files, or folders. What a file is follows from its name. Kinds are `prose`,
`code` and `line`: a line is a heading, a first line of a docstring, a question or a subject of a change. What is drawn
from a package follows from digests, so that the same packages give the same texts.
"""

from __future__ import annotations

import argparse
import ast
import gzip
import hashlib
import io
import json
import re
import sqlite3
import subprocess
import sys
import tarfile
import tempfile
import warnings
import zipfile
import zlib
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from html import unescape
from pathlib import Path

MOST = {"prose": 5_000, "code": 4_000, "line": 3_000}
"""Texts of a kind that one package gives at most."""
RICH = {"wordnet": 30_000, "gene_ontology": 12_000, "ontology": 60_000, "dict": 16_000, "descriptions": 60_000}
MOST_BYTES = 50_000_000
"""Of a larger package only a part of the files is read."""
LONGEST_FILE = 4_000_000

CODE = frozenset(
    "py js ts tsx jsx mjs go rs java kt scala c h cc cpp hpp rb php pl pm lua el ex erl hs ml cs swift sh".split()
)
HASHED = frozenset("py rb pl pm sh ex".split())

Found = Iterator[tuple[str, str]]


def main() -> None:
    """Write what the packages hold, and say how much it is."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("packages", nargs="+", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    total: Counter[str] = Counter()
    seen: set[bytes] = set()
    with options.out.open("w", encoding="utf-8") as out:
        for package in sorted(options.packages):
            counts: Counter[str] = Counter()
            try:
                for kind, text in drawn(package, seen):
                    out.write(f"{kind}\t{package.name.split('_')[0]}\t{text}\n")
                    counts[kind] += 1
            except (
                OSError,
                tarfile.TarError,
                zipfile.BadZipFile,
                EOFError,
                zlib.error,
                subprocess.SubprocessError,
            ) as error:
                print(f"{package.name}: {error!r}", file=sys.stderr)
            total += counts
            print(f"{package.name[:50]:50} {dict(counts)} {sum(total.values()):,}", flush=True)
    print(dict(total))


def drawn(package: Path, seen: set[bytes]) -> Found:
    """The share of a package's texts; `seen` holds the beginnings of what was drawn before."""
    pools: dict[str, dict[bytes, tuple[str, str]]] = defaultdict(dict)
    for name, data in files_of(package):
        try:
            found = list(texts_of(name, data))
        except (OSError, ValueError, LookupError, EOFError, zlib.error, MemoryError):
            continue  # damaged on purpose: test data of a package
        for kind, text in found:
            pool, _, base = kind.rpartition(":")
            plain = " ".join(text.split())
            if len(plain) >= (100 if base == "prose" and not pool else 12) and is_text(plain, base):
                pools[pool or base][digest(plain[:60].lower())] = (base, plain)
    for name, pool_texts in pools.items():
        left = MOST.get(name) or RICH[name]
        for key in sorted(pool_texts):
            if left and key not in seen:
                seen.add(key)
                left -= 1
                yield pool_texts[key]


def digest(text: str) -> bytes:
    """The key that texts are drawn by."""
    return hashlib.blake2b(text.encode("utf-8", "replace"), digest_size=8).digest()


WORDS = frozenset(
    "the of to and is in a that for it as with are be this by or on an not from at you can which if".split()
)


def is_text(text: str, kind: str) -> bool:
    """Whether a text reads like English, or like code."""
    letters = sum(map(str.isalpha, text))
    if kind == "code":
        return letters > 0.4 * len(text) and text.isascii()
    words = text.lower().split()
    if letters < 0.65 * len(text) or sum(map(str.isascii, text)) < 0.97 * len(text):
        return False
    return kind == "line" or sum(word in WORDS for word in words) >= 0.12 * len(words)


def files_of(package: Path) -> Iterator[tuple[str, bytes]]:
    """Names and contents of the files in a package that may hold text."""
    if package.is_dir():
        for path in sorted(package.rglob("*")):
            if path.is_file() and not path.is_symlink() and wanted(str(path), path.stat().st_size, 1.0):
                yield str(path), path.read_bytes()
    elif package.suffix == ".deb":
        size = int(
            subprocess.run(["dpkg-deb", "-f", package, "Installed-Size"], capture_output=True, check=True).stdout
        )
        with subprocess.Popen(["dpkg-deb", "--fsys-tarfile", package], stdout=subprocess.PIPE) as process:
            assert process.stdout is not None
            with tarfile.open(fileobj=process.stdout, mode="r|") as tar:
                yield from members(tar, min(1.0, MOST_BYTES / (1024 * size + 1)))
            process.stdout.read()
    elif package.suffix in (".whl", ".zip", ".jar"):
        with zipfile.ZipFile(package) as archive:
            share = min(1.0, MOST_BYTES / (1 + sum(entry.file_size for entry in archive.infolist())))
            for entry in archive.infolist():
                if wanted(entry.filename, entry.file_size, share):
                    yield entry.filename, archive.read(entry)
    elif package.name.endswith((".tgz", ".tar.gz")):
        with tarfile.open(package) as tar:
            yield from members(tar, 1.0)
    else:
        yield str(package), package.read_bytes()


def members(archive: tarfile.TarFile, share: float) -> Iterator[tuple[str, bytes]]:
    for member in archive:
        if member.isfile() and wanted(member.name, member.size, share):
            content = archive.extractfile(member)
            if content is not None:
                yield member.name, content.read()


SPECIAL = re.compile(
    r"Translation-en$|wordnet/data\.|GO\.sqlite$|\.dict\.dz$|-ontology-.*\.json(\.zst)?$|icd10c-tabular.*\.xml$|\.obo$"
)
LOCAL = re.compile(
    r"/(locale|l10n|translations?|i18n|man/(?!man\d)|[a-z]{2}(_[A-Z]{2})?)/(?<!/en/)(?<!/go/)(?<!/js/)(?<!/py/)|changelog\.Debian|\.min\.|/copyright|LICEN[CS]E|COPYING|\.svg"
)


def wanted(name: str, size: int, share: float) -> bool:
    """Whether a file is read: it may hold text, is not too long, and its digest lies in the share."""
    if SPECIAL.search(name):
        return True
    if size > LONGEST_FILE or size < 200 or LOCAL.search(name):
        return False
    plain = name.removesuffix(".gz")
    ending = plain.rpartition(".")[2] if "." in plain.rpartition("/")[2] else ""
    known = ending in CODE or ending in (
        "html",
        "htm",
        "xhtml",
        "txt",
        "md",
        "rst",
        "adoc",
        "org",
        "page",
        "docbook",
        "pod",
        "yml",
        "json",
        "xml",
    )
    known = (
        known
        or "/man/man" in name
        or "/info/" in name
        or "/fortunes/" in name
        or "README" in name
        or "changelog" in name
        or "NEWS" in name
        or "FAQ" in name
        or name.endswith("/METADATA")
    )
    return known and int.from_bytes(digest(name)[:4]) < share * 2**32


def texts_of(name: str, data: bytes) -> Found:
    """Kind and text of everything in a file."""
    if name.endswith((".gz", ".dz")):
        data = gzip.GzipFile(fileobj=io.BytesIO(data)).read(8 * LONGEST_FILE)
        name = name[:-3]
    elif name.endswith(".zst"):
        data = subprocess.run(["zstd", "-dcq"], input=data, capture_output=True, check=True).stdout
        name = name[:-4]
    base = name.rpartition("/")[2]
    ending = base.rpartition(".")[2] if "." in base else ""
    if base == "GO.sqlite":
        yield from (
            ("gene_ontology:prose", text)
            for text in rows_of(data, "SELECT term || ': ' || definition FROM go_term WHERE definition IS NOT NULL")
        )
        return
    if "-ontology-" in base and ending == "json":
        for term in json.loads(data).values():
            if term.get("description") and not term.get("deprecated"):
                yield "ontology:prose", f"{term['label']}: {term['description']}"[:900]
                if len(term["label"].split()) > 2:
                    yield "line", term["label"]
        return
    text = data.decode("utf-8", "replace")
    if ending == "obo":
        for label, definition in re.findall(r"\nname: (.+)\ndef: \"(.+?)\" ", text):
            yield "ontology:prose", f"{label}: {definition}"
    elif "wordnet/data." in name:
        for line in text.splitlines():
            if " | " in line and not line.startswith("  "):
                fields, _, gloss = line.partition(" | ")
                columns = fields.split()
                words = [word.replace("_", " ") for word in columns[4 : 4 + 2 * int(columns[3], 16) : 2]]
                yield "wordnet:prose", f"{', '.join(words)}: {gloss.strip()}"
    elif base.endswith("Translation-en"):
        for subject, described in re.findall(r"^Description-en: (.+)\n((?: .*\n)+)", text, re.MULTILINE):
            yield "line", subject
            paragraphs = described.replace("\n .\n", "\n\n").split("\n\n")
            yield from (("descriptions:prose", found[1]) for found in passages([*paragraphs]))
    elif ending == "dict":
        for entry in re.split(r"\n(?=\S)", text):
            yield "dict:prose", entry[:900]
    elif base.startswith("icd10c"):
        for found in re.findall(r"<(?:desc|note)>([^<]{15,})</", text):
            yield "line", unescape(found)
    elif "/fortunes/" in name:
        yield from (("prose", part[:1000]) for part in text.split("\n%\n"))
    elif "/man/man" in name:
        yield from manual(text)
    elif ending in ("html", "htm", "xhtml", "page", "docbook", "xml"):
        yield from marked(text)
    elif "changelog" in base.lower() or base.startswith("NEWS"):
        yield from changes(text)
    elif ending == "json":
        yield from game_texts(text)
    elif ending in CODE:
        yield from code(text, ending)
    elif ending == "yml":
        yield from (
            ("line", found) for found in re.findall(r"^\s*-\s+-?\s*([A-Z][^{}:\n]{15,200})$", text, re.MULTILINE)
        )
    else:
        yield from plain_text(text)


def rows_of(data: bytes, query: str) -> list[str]:
    """The one column of a query to an SQLite file."""
    with tempfile.NamedTemporaryFile() as file:
        file.write(data)
        file.flush()
        with sqlite3.connect(file.name) as connection:
            return [row[0] for row in connection.execute(query)]


def passages(paragraphs: Iterable[str]) -> Found:
    """Paragraphs joined to passages of 100 to 1,000 characters; a third of them stay by themselves."""
    parts: list[str] = []
    size = limit = 0
    for paragraph in paragraphs:
        text = " ".join(paragraph.split())
        if len(text) < 40:
            continue
        if not parts:
            limit = (200, 500, 700, 900, 950, 950)[digest(text)[0] % 6]
        if size + len(text) > 1000 and parts:
            yield "prose", " ".join(parts)
            parts, size = [], 0
        parts.append(text[:1000])
        size += len(text)
        for question in re.findall(r"(?<=[.!?] )[A-Z][^.!?]{12,140}\?", text):
            yield "line", question
        if size > limit:
            yield "prose", " ".join(parts)[:1100]
            parts, size = [], 0
    if size > 100:
        yield "prose", " ".join(parts)


MARK = re.compile(
    r"<(h[1-6]|title|dt|p|dd|li|para|pre|blockquote|term|desc)\b[^>]*>(.*?)</\1>", re.DOTALL | re.IGNORECASE
)


def marked(page: str) -> Found:
    """Headings and passages of HTML, DocBook or Mallard."""
    page = re.sub(r"<(script|style|nav)\b.*?</\1>", " ", page, flags=re.DOTALL | re.IGNORECASE)
    paragraphs: list[str] = []
    for tag, inner in MARK.findall(page):
        text = " ".join(unescape(re.sub(r"<[^>]+>", "", inner)).replace("¶", "").split())
        kind = tag.lower()
        if kind in ("p", "dd", "li", "para", "blockquote", "desc"):
            paragraphs.append(text)
        elif kind == "pre":
            if len(text) > 80 and is_text(text, "code"):
                yield "code", text[:1000]
        else:
            yield from heading(text)
    yield from passages(paragraphs)


def heading(text: str) -> Found:
    text = re.sub(r"^(Chapter|Appendix|Section)?\s*[\dA-Z]?[\d.]*\s*[.:—-]?\s+", "", text).strip("# ")
    if 2 <= len(text.split()) <= 25 and len(text) < 200:
        yield "line", text


def plain_text(text: str) -> Found:
    """Paragraphs between empty lines; lines that are headings by their marks or by the line below."""
    lines = text.splitlines()
    for place, line in enumerate(lines):
        below = lines[place + 1] if place + 1 < len(lines) else ""
        if re.match(r"(#{1,5}|\*{1,4}|={1,5}) \S", line) or (len(line) > 8 and re.match(r"([-=~^*])\1{5,}\s*$", below)):
            yield from heading(re.sub(r"^[#*= ]+", "", line))
        elif line.rstrip().endswith("?") and 4 <= len(line.split()) <= 20 and line.lstrip()[:1].isupper():
            yield "line", line
    yield from passages(
        block for block in re.split(r"\n\s*\n", text) if sum(map(str.isalpha, block)) > 0.6 * len(block)
    )


def manual(text: str) -> Found:
    """What a manual page is about, and its paragraphs."""
    plain = re.sub(r"^[.'](?:SH|SS|TP|IP|PP|P|LP|HP|RS|RE|br|sp|Pp|It|Sh|Ss)\b.*$", "\n", text, flags=re.MULTILINE)
    plain = re.sub(r"^\.\\\".*$|^[.'](?:if|ie|el|de|ds|nr|tr|ad|hy|nh|TH|Dd|Dt|Os)\b.*$", "", plain, flags=re.MULTILINE)
    plain = re.sub(r"^\.[A-Za-z]+ ?", "", plain, flags=re.MULTILINE)
    plain = (
        re.sub(r"\\f[A-Z(]|\\f\[\w*\]|\\[&/|^%]", "", plain)
        .replace("\\-", "-")
        .replace('\\"', '"')
        .replace("\\(aq", "'")
    )
    if found := re.search(r"^\.S[hH] \"?NAME\"?\s*\n((?:[^.\n].*\n)+)", text, re.MULTILINE):
        yield "line", re.sub(r"\\f.|\\", "", found[1]).partition(" - ")[2] or found[1].replace("\\", "")
    yield from passages(plain.split("\n\n"))


def changes(text: str) -> Found:
    """Subjects of changes."""
    for found in re.findall(r"^\s{0,8}[*+-] ((?:[^\n*]|\n\s{3,}(?![*+-]))+)", text, re.MULTILINE):
        subject = re.sub(
            r"^[\w./, ()-]+\.\w{1,4}[^:]{0,60}:\s+|\(?(closes|fixes):? #.*$",
            "",
            " ".join(found.split()),
            flags=re.IGNORECASE,
        )
        if 4 <= len(subject.split()) <= 30:
            yield "line", subject


def game_texts(text: str) -> Found:
    """Descriptions in JSON files."""
    try:
        stack = [json.loads(text)]
    except (ValueError, RecursionError):
        return
    while stack:
        value = stack.pop()
        if isinstance(value, dict):
            stack += value.values()
        elif isinstance(value, list):
            stack += value
        elif isinstance(value, str) and value.count(" ") > 12:
            yield "prose", value[:1000]
        elif isinstance(value, str) and value.count(" ") >= 4 and value[:1].isupper():
            yield "line", value


START = re.compile(
    r"^(?:\s{0,4})(?:(?:async |export |default |pub(?:\([^)]*\))? |public |private |protected |static |abstract |"
    r"final |unsafe |inline |override |virtual |const |local )*(?:def|function|func|fn|class|interface|struct|impl|"
    r"trait|sub|module|defun|defmacro|enum|type)\b|[A-Za-z_][\w<>\[\], *&:]*\([^;]*\)\s*(?:const)?\s*\{)"
)


def code(text: str, ending: str) -> Found:
    """Functions with the comment above them, and the first sentences of their documentation."""
    if ending == "py":
        yield from python(text)
        return
    lines = text.splitlines()
    starts = [place for place, line in enumerate(lines) if START.match(line)]
    for place, after in zip(starts, [*starts[1:], len(lines)][-len(starts) :], strict=True):
        top = place
        while top and place - top < 25 and re.match(r"\s*(/\*\*?|\*|//|#[^!i]|--|%|;;|@|\*/)", lines[top - 1]):
            top -= 1
        above = " ".join(
            re.sub(r"^\s*(/\*+|\*+/?|//[/!]?|#|--+|%+|;;+)|\*/", "", line).strip() for line in lines[top:place]
        )
        said = re.split(r"(?<=[.!?])\s|\s@|\s\\", above.strip(), maxsplit=1)[0]
        if 4 <= len(said.split()) <= 30:
            yield "line", said
        body = "\n".join(lines[top : min(after, place + 45)])[:1000]
        if len(body) > 120:
            yield "code", body
    if not starts:
        yield from plain_text("\n".join(re.sub(r"^=\w+ ?", "# ", line) for line in lines))


def python(text: str) -> Found:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return
    lines = text.splitlines()
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            said = ast.get_docstring(node) or ""
            first = " ".join(said.split("\n\n")[0].split())
            if 3 <= len(first.split()) <= 30:
                yield "line", first
            if len(said) > 200:
                yield from passages(said.split("\n\n"))
            body = "\n".join(lines[node.lineno - 1 : node.end_lineno])[:1000]
            if len(body) > 120:
                yield "code", body


if __name__ == "__main__":
    main()
