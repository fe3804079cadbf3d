"""Collects documents with their headings, from packages as downloaded: one JSON list of title and parts a line.

    python training/collect_judge.py PACKAGE... --out documents.jsonl

Packages are those of `collect_reader.py`. A part is a heading and the text below it; a term with its definition and a
question with its answer are parts, too. What is drawn from a package follows from digests.
"""

from __future__ import annotations

import argparse
import ast
import json
import re
import subprocess
import sys
import tarfile
import warnings
import zipfile
import zlib
from collections.abc import Iterator
from html import unescape
from pathlib import Path
from typing import NamedTuple

from collect_reader import digest, files_of, is_text, rows_of

MOST = 1_000
"""Documents that one package gives at most."""
RICH = {"wordnet": 6_000, "go.db": 4_000, "cellxgene": 9_000, "foldoc": 5_000, "gcide": 4_000, "Translation": 9_000}
LONGEST = 40_000
"""Characters that are read of one document."""


class Part(NamedTuple):
    """A heading, and the text below it."""

    heading: str
    text: str


class Document(NamedTuple):
    """What one file holds, or one entry of a dictionary."""

    title: str
    parts: list[Part]


Found = Iterator[Document]


def main() -> None:
    """Write what the packages hold, and say how much it is."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("packages", nargs="+", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    seen: set[bytes] = set()
    with options.out.open("w", encoding="utf-8") as out:
        for package in sorted(options.packages):
            source, characters, count = package.name.split("_")[0], 0, 0
            for document in drawn(package, seen):
                out.write(json.dumps([source, *document]) + "\n")
                characters += sum(len(part.text) for part in document.parts)
                count += 1
            print(f"{package.name[:50]:50} {count:6,} {characters:12,}", flush=True)


def drawn(package: Path, seen: set[bytes]) -> Found:
    """The share of a package's documents; `seen` holds the beginnings of what was drawn before."""
    pool: dict[bytes, Document] = {}
    try:
        for name, data in files_of(package):
            try:
                found = list(documents_of(name, data))
            except (OSError, ValueError, LookupError, EOFError, zlib.error, MemoryError, RecursionError, SyntaxError):
                continue  # damaged on purpose: test data of a package
            for document in found:
                parts = [part for part in map(plain_part, document.parts) if is_readable(part.text)]
                if parts:
                    pool[digest(parts[0].text[:80].lower())] = Document(plain(document.title), parts)
    except (OSError, tarfile.TarError, zipfile.BadZipFile, EOFError, zlib.error, subprocess.SubprocessError) as error:
        print(f"{package.name}: {error!r}", file=sys.stderr)
    left = next((most for part, most in RICH.items() if part in package.name), MOST)
    for key in sorted(pool):
        if left and key not in seen:
            seen.add(key)
            left -= 1
            yield pool[key]


def plain(text: str) -> str:
    return " ".join(text.split())


def plain_part(part: Part) -> Part:
    return Part(plain(part.heading).strip("# *=:")[:120], plain(part.text))


def is_readable(text: str) -> bool:
    return len(text) >= 40 and (is_text(text, "prose") or (len(text) < 160 and is_text(text, "line")))


def documents_of(name: str, data: bytes) -> Found:
    """Everything in a file that has text under headings."""
    if name.endswith((".gz", ".dz")):
        import gzip

        data, name = gzip.decompress(data), name[:-3]
    elif name.endswith(".zst"):
        data = subprocess.run(["zstd", "-dcq"], input=data, capture_output=True, check=True).stdout
        name = name[:-4]
    base = name.rpartition("/")[2]
    ending = base.rpartition(".")[2] if "." in base else ""
    if base == "GO.sqlite":
        query = "SELECT term || char(9) || definition FROM go_term WHERE definition IS NOT NULL"
        yield from (entry(*row.split("\t", 1)) for row in rows_of(data, query))
        return
    text = data.decode("utf-8", "replace")
    if "-ontology-" in base and ending == "json":
        terms = [term for term in json.loads(text).values() if term.get("description")]
        yield from (entry(term["label"], term["description"]) for term in terms if not term.get("deprecated"))
    elif "wordnet/data." in name:
        yield from glosses(text)
    elif base.endswith("Translation-en"):
        yield from descriptions(text)
    elif ending == "dict":
        for found in re.split(r"\n(?=\S)", text):
            yield entry(found.partition("\n")[0][:60], found[:900])
    elif ending == "yml" and "/english/" in name:
        yield from conversations(base, text)
    elif ending == "json":
        yield from named_things(text)
    elif "/fortunes/" in name:
        yield from (Document("", [Part("", said)]) for said in text.split("\n%\n"))
    else:
        parse = manual if "/man/man" in name else marked if ending in MARKED else python if ending == "py" else headed
        if ending in READ or "/man/man" in name or "README" in base or "FAQ" in base:
            title, parts = parse(text if ending == "py" else text[:LONGEST])
            yield Document(title or base.partition(".")[0].replace("_", " "), parts)


MARKED = ("html", "htm", "xhtml", "page", "docbook", "xml")
READ = (*MARKED, "txt", "md", "rst", "adoc", "org", "pod", "py")


def entry(label: str, text: str) -> Document:
    """A term and what it means, as one part."""
    return Document("", [Part(label.strip(), f"{label.strip()}: {text.strip()}")])


def glosses(text: str) -> Found:
    """The entries of WordNet."""
    for line in text.splitlines():
        if " | " in line and not line.startswith("  "):
            fields, _, gloss = line.partition(" | ")
            columns = fields.split()
            words = [word.replace("_", " ") for word in columns[4 : 4 + 2 * int(columns[3], 16) : 2]]
            yield Document("", [Part(words[0], f"{', '.join(words)}: {gloss.strip()}")])


def descriptions(text: str) -> Found:
    """Descriptions of packages, without the lists that many share."""
    pattern = r"^Package: (.+)\nDescription-md5: .+\nDescription-en: (.+)\n((?: .*\n)+)"
    for package, subject, described in re.findall(pattern, text, re.MULTILINE):
        paragraphs = [part for part in described.split("\n .\n") if not re.search(r"^\s+[*-] ", part)]
        yield Document(package, [Part(subject, " ".join(paragraphs))])


def conversations(base: str, text: str) -> Found:
    """Questions and answers of a corpus for chat programs."""
    for asked, answered in re.findall(r"^- - (.+)\n  - (.+)$", text, re.MULTILINE):
        said = answered.strip("'\"").replace("''", "'")
        yield Document(base.partition(".")[0], [Part(asked.strip("'\""), said)])


def named_things(text: str) -> Found:
    """Things of a game that have a name and a description."""
    stack = [json.loads(text)]
    while stack:
        value = stack.pop()
        if isinstance(value, list):
            stack += value
        elif isinstance(value, dict):
            stack += value.values()
            name, said = value.get("name"), value.get("description")
            name = name.get("str") if isinstance(name, dict) else name
            if isinstance(name, str) and isinstance(said, str) and len(said) > 60:
                yield entry(name, said)


MARK = re.compile(r"<(h[1-6]|title|dt|p|dd|li|para|blockquote|term|desc)\b[^>]*>(.*?)</\1>", re.DOTALL | re.IGNORECASE)
PROSE = frozenset("p dd li para blockquote desc".split())


def marked(page: str) -> tuple[str, list[Part]]:
    """HTML, DocBook or Mallard."""
    page = re.sub(r"<(script|style|nav)\b.*?</\1>", " ", page, flags=re.DOTALL | re.IGNORECASE)
    title, heading, parts = "", "", list[Part]()
    for tag, inner in MARK.findall(page):
        text = plain(unescape(re.sub(r"<[^>]+>", "", inner)).replace("¶", "").replace("#", ""))
        if tag.lower() in PROSE:
            add(parts, heading, text)
        else:
            heading = re.sub(r"^(Chapter|Appendix|Section)?\s*[A-Z]?[\d.]*\d[.:]?\s+", "", text)
            title = title or heading
    return title, parts


def add(parts: list[Part], heading: str, text: str) -> None:
    """Put a paragraph behind those of the same heading."""
    if parts and parts[-1].heading == heading:
        parts[-1] = Part(heading, f"{parts[-1].text} {text}")
    elif len(text) > 20:
        parts.append(Part(heading, text))


def headed(text: str) -> tuple[str, list[Part]]:
    """Paragraphs between empty lines; headings by their marks or by the line below."""
    title, heading, parts = "", "", list[Part]()
    for block in re.split(r"\n\s*\n", text):
        lines = block.strip().splitlines()
        if not lines:
            continue
        is_underlined = len(lines) > 1 and re.match(r"([-=~^*])\1{3,}\s*$", lines[1])
        if is_underlined or re.match(r"(#{1,5}|\*{1,4}|={1,5}) \S", lines[0]):
            heading, lines = lines[0], lines[2 if is_underlined else 1 :]
            title = title or heading
        body = " ".join(lines)
        if sum(map(str.isalpha, body)) > 0.6 * len(body):
            add(parts, heading, body)
    return title.strip("# *="), parts


def manual(text: str) -> tuple[str, list[Part]]:
    """The sections of a manual page."""
    text = re.sub(r"^\.\\\".*$|^[.'](?:if|ie|el|de|ds|nr|tr|ad|hy|nh|TH|Dd|Dt|Os)\b.*$", "", text, flags=re.MULTILINE)
    text = re.sub(r"\\f[A-Z(]|\\f\[\w*\]|\\[&/|^%]|\\s-?\d", "", text).replace("\\-", "-").replace("\\(aq", "'")
    title, parts = "", list[Part]()
    for section in re.split(r"^\.S[HSsh]\s", text, flags=re.MULTILINE)[1:]:
        heading, _, body = section.partition("\n")
        body = re.sub(r"^\.(?:[A-Z][A-Za-z]*|br|sp)\b ?", "", body, flags=re.MULTILINE).replace('"', "")
        if heading.strip('" ') == "NAME":
            title = plain(body)[:100]
        else:
            parts.append(Part(heading.strip('" ').capitalize(), body))
    return title, parts


def python(text: str) -> tuple[str, list[Part]]:
    """Docstrings, each under the name of what it documents."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        tree = ast.parse(text)
    said = plain(ast.get_docstring(tree) or "")
    parts = [Part("", said)]
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            parts.append(Part(node.name, ast.get_docstring(node) or ""))
    return said.partition(". ")[0][:100], parts


if __name__ == "__main__":
    main()
