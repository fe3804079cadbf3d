"""Collects the texts that the instant vectors are distilled on: one text a line, drawn from unpacked packages.

    python training/collect_texts.py FOLDER... --out texts.txt

Every folder is walked once; what a file is follows from its name. Of each kind a fixed share is drawn by the digest of
the text, so that the same packages give the same texts in the same order on every machine.
"""

from __future__ import annotations

import argparse
import ast
import hashlib
import json
import os
import re
import sqlite3
import warnings
from collections import defaultdict
from collections.abc import Iterator
from html import unescape
from pathlib import Path

SHARES = {
    "wordnet": 42_000,
    "ontology": 26_000,
    "gene": 2_000,
    "disease": 4_000,
    "paragraph": 24_000,
    "passage": 3_000,
    "docstring": 12_000,
    "function": 7_000,
}
"""How many texts of each kind are drawn; a kind that has fewer gives what it has."""

MOST_OF_A_SOURCE = 0.35
"""No folder or ontology gives more than this part of a kind, so that one long manual does not drown the others."""


def main() -> None:
    """Write the texts and say how many there are of each kind."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    found: dict[str, dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
    for folder in options.folders:
        for kind, source, text in texts_of(folder):
            plain = " ".join(text.split())
            if len(plain) >= 12:
                found[kind][source].add(plain)
    drawn: list[str] = []
    for kind, share in SHARES.items():
        texts = draw(found[kind], share)
        print(f"{kind:10} {len(texts):7,} of {sum(map(len, found[kind].values())):9,} from {len(found[kind])} sources")
        drawn += texts
    # Another order than the one they were drawn by, in which rare kinds would stand first.
    mixed = sorted(set(drawn), key=lambda text: digest(f"order {text}"))
    options.out.write_text("\n".join(mixed) + "\n", encoding="utf-8")


def draw(sources: dict[str, set[str]], share: int) -> list[str]:
    """A fair share of the texts, the same on every run."""
    most = max(1, int(share * MOST_OF_A_SOURCE)) if len(sources) > 3 else share
    pool = [text for texts in sources.values() for text in sorted(texts, key=digest)[:most]]
    return sorted(pool, key=digest)[:share]


def digest(text: str) -> bytes:
    """The key that texts are shuffled by."""
    return hashlib.sha256(text.encode("utf-8", "replace")).digest()


def texts_of(folder: Path) -> Iterator[tuple[str, str, str]]:
    """Kind, source and text of everything in a folder that can be read."""
    for where, folders, files in os.walk(folder):
        folders.sort()
        for name in sorted(files):
            path = Path(where, name)
            source = folder.name
            if path.parent.name == "wordnet" and name.startswith("data."):
                yield from (("wordnet", name, text) for text in glosses(path))
            elif name == "GO.sqlite":
                rows = rows_of(path, "SELECT term || ': ' || definition FROM go_term WHERE definition IS NOT NULL")
                yield from (("ontology", "GO", text) for text in rows)
            elif name == "org.Hs.eg.sqlite":
                rows = rows_of(path, "SELECT gene_name || ' (' || symbol || ')' FROM gene_info")
                yield from (("gene", "NCBI", text) for text in rows)
            elif "-ontology-" in name and name.endswith(".json"):
                yield from (("ontology", name, text) for text in terms(path))
            elif name.startswith("icd10c-tabular") and name.endswith(".xml"):
                found = re.findall(r"<(?:desc|note)>([^<]{15,})</", read(path))
                yield from (("disease", "ICD-10-CM", unescape(text)) for text in found)
            elif name.endswith((".html", ".htm")) and path.is_file():
                yield from ((kind, source, text) for kind, text in prose(read(path)))
            elif name.endswith(".py") and path.is_file():
                yield from ((kind, source, text) for kind, text in functions(read(path)))


def glosses(path: Path) -> Iterator[str]:
    """The words of each synset of WordNet with their gloss."""
    for line in read(path).splitlines():
        if line.startswith("  ") or " | " not in line:
            continue
        data, gloss = line.split(" | ", 1)
        fields = data.split()
        words = [re.sub(r"\(\w+\)$", "", word).replace("_", " ") for word in fields[4 : 4 + 2 * int(fields[3], 16) : 2]]
        yield f"{', '.join(words)}: {gloss.strip()}"


def terms(path: Path) -> Iterator[str]:
    """The terms of an ontology that have a description."""
    for term in json.loads(read(path)).values():
        if term.get("description") and not term.get("deprecated"):
            yield " ".join(f"{term['label']}: {term['description']}".split()[:45])


def rows_of(path: Path, query: str) -> list[str]:
    """The one column of a query to an SQLite file."""
    connection = sqlite3.connect(f"file:{path}?mode=ro&immutable=1", uri=True)
    try:
        return [row[0] for row in connection.execute(query)]
    finally:
        connection.close()


def prose(page: str) -> Iterator[tuple[str, str]]:
    """The paragraphs of a page, and passages of several paragraphs up to about 200 words."""
    passage: list[str] = []
    for found in re.finditer(r"<(?:p|dd|li)\b[^>]*>(.*?)</(?:p|dd|li)>", page, re.DOTALL | re.IGNORECASE):
        text = " ".join(unescape(re.sub(r"<[^>]+>", "", found[1])).split())
        words = text.split()
        if not 6 <= len(words) <= 200 or sum(map(str.isalpha, words)) < 0.6 * len(words):
            continue
        yield "paragraph", " ".join(words[:45])
        passage.append(text)
        if sum(len(part) for part in passage) > 700:
            yield "passage", " ".join(" ".join(passage).split()[:200])
            passage = []


def functions(code: str) -> Iterator[tuple[str, str]]:
    """The first lines of each docstring, and the functions themselves, cut short."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(code)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return
    lines = code.splitlines()
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) and (
            text := ast.get_docstring(node)
        ):
            yield "docstring", text.split("\n\n")[0][:300]
            if not isinstance(node, ast.ClassDef):
                yield "function", "\n".join(lines[node.lineno - 1 : node.end_lineno])[:320]


def read(path: Path) -> str:
    """A file as text; what is not UTF-8 is replaced."""
    return path.read_text(encoding="utf-8", errors="replace")


if __name__ == "__main__":
    main()
