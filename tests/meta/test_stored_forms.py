"""Every stored form has the bytes that its format number promises; `stored_forms.toml` has their hashes by number."""

from __future__ import annotations

import json
import sqlite3
import tomllib
import zlib
from collections.abc import Callable, Iterable
from contextlib import closing
from hashlib import blake2b
from pathlib import Path

import numpy as np
import pytest

from findling.domain.ports import Change
from findling.models.local.instant import InstantEmbedder, instant_codes
from findling.service.workspace import manifest
from findling.stores.bundle import bundle, bundle_writer
from findling.stores.graph import graph_file
from findling.stores.graph.graph_leg import EntityGraph, graph_owner
from findling.stores.keyword import segment_files
from findling.stores.keyword.class_files import pack_terms, write_segment
from findling.stores.keyword.entries import PreparedResource, entries, prepare
from findling.stores.keyword.exact_leg import EXACT_LAYOUT, TrigramLeg
from findling.stores.keyword.leg import TantivyLeg
from findling.stores.keyword.query_builder import scope_tokens
from findling.stores.postgres.server.formats import load_migrations
from findling.stores.sqlite import schema
from findling.stores.sqlite.store import SqliteStore
from findling.stores.vectors import vector_files
from findling.stores.vectors.vector_matrix import VectorMatrix
from findling.testing.samples import FULL, LIBRARY, line_document
from findling.text.analysis.analysis import FINGERPRINT, index_form
from findling.text.query.patterns import coded, fold, trigram_form

TABLE = Path(__file__).with_name("stored_forms.toml")
FORMS: dict[str, dict[str, str]] = tomllib.loads(TABLE.read_text("utf-8"))

PROSE = line_document(
    "prose",
    [
        "Marie Curie met Paul Langevin in Brussels, and they spoke about radium (Ra).",
        "It isn't the U.S. office: e-mail ops@example.org, see RFC 2616, naïve Straße, CO₂, ﬁle №5.",
        "def get_user_name(userID): return MAX_VALUE[0]  # C++ and node.js",
        "データベース接続 ฐานข้อมูล книги в библиотеке الكتاب",
    ],
    title="Meeting of Solvay",
    path="Notes/Solvay Conference.md",
    lang="en",
    tags=("History", "two words"),
    author="Ana Lima",
    updated_at=1_700_000_000.5,
    fields={"name": "solvay", "description": "who met whom"},
)
SAMPLES = (PROSE, FULL, *LIBRARY)
TEXTS = [document.text for document in SAMPLES]


def _changes() -> list[Change]:
    return [
        Change(number, one.resource.rid, (), frozenset(chunk.cid for chunk in one.chunks), one, number)
        for number, one in enumerate(SAMPLES, 1)
    ]


def _prepared(unit: str = "chunk") -> list[PreparedResource]:
    """The samples in the words of the index; tokens of scopes are a set, which has any order."""
    found = []
    for number, document in enumerate(SAMPLES):
        one = prepare(document, number, unit=unit)
        common = [(name, " ".join(sorted(text.split())) if name == "scope" else text) for name, text in one.common]
        found.append(one._replace(common=common))
    return found


def _fields_of(index: Path) -> bytes:
    """The fields of a tantivy index, with those options whose meaning does not follow the version of tantivy."""
    kept = ("fast", "indexed", "fieldnorms", "record", "tokenizer", "stored")
    rows = []
    for field in json.loads((index / "meta.json").read_bytes())["schema"]:
        options = {**field["options"], **(field["options"].get("indexing") or {})}
        rows.append([field["name"], field["type"], {name: options[name] for name in kept if name in options}])
    return json.dumps(rows, sort_keys=True).encode()


def terms(tmp_path: Path) -> Iterable[bytes]:
    return [index_form(text).encode() for text in TEXTS]


def keyword_entries(tmp_path: Path) -> Iterable[bytes]:
    with closing(TantivyLeg.open(tmp_path, store_id="test", unit="chunk")) as leg:
        leg.apply(_changes())
        leg.commit(1)
    prepared = [*_prepared("chunk"), *_prepared("page")]
    return [_fields_of(tmp_path), *(entry.encode() for one in prepared for entry in entries(one))]


def scopes(tmp_path: Path) -> Iterable[bytes]:
    return [" ".join(sorted(scope_tokens(document.resource))).encode() for document in SAMPLES]


def class_segments(tmp_path: Path) -> Iterable[bytes]:
    blocks = [*pack_terms(_prepared())]
    segment = write_segment(tmp_path, blocks, {7: 9}, "owner")
    return [(segment.folder / "held").read_bytes(), *(zlib.decompress(block.packed) for block in blocks)]


def exact_trigrams(tmp_path: Path) -> Iterable[bytes]:
    with closing(TrigramLeg.open(tmp_path, store_id="test")) as leg:
        leg.apply(_changes())
        leg.commit(1)
    forms = [f"{coded(fold(text))}\n{trigram_form(fold(text))}".encode("utf-8", "surrogatepass") for text in TEXTS]
    return [_fields_of(tmp_path), *forms]


def instant_vectors(tmp_path: Path) -> Iterable[bytes]:
    return instant_codes(TEXTS)


def vector_matrix(tmp_path: Path) -> Iterable[bytes]:
    # Sums of powers of two, so that no machine rounds them in another way.
    vectors = np.zeros((5, 64), np.float32)
    for row in range(5):
        vectors[row, row : row + 4] = (0.5, -0.5, 0.5, -0.5)
    vectors[4] = 0.125 * np.where(np.arange(64) % 3, 1, -1)
    matrix = VectorMatrix.open(tmp_path, made_for="test", dimensions=64)
    matrix.add([11, 12, 13, 14, 15], [1, 1, 2, 2, 3], vectors)
    matrix.commit(seq=3)
    matrix.drop([12])
    matrix.commit(seq=4)
    matrix.close()
    return [file.name.encode() + b"\n" + file.read_bytes() for file in sorted(tmp_path.iterdir())]


def graph_columns(tmp_path: Path) -> Iterable[bytes]:
    leg = EntityGraph.open(tmp_path, store_id="test")
    leg.apply(_changes())
    leg.commit(5)
    return [(tmp_path / graph_file.FILE).read_bytes()]


def truth_tables(tmp_path: Path) -> Iterable[bytes]:
    with closing(SqliteStore.open(tmp_path / "index.sqlite")) as store:
        store.write(SAMPLES)
    with closing(sqlite3.connect(tmp_path / "index.sqlite")) as connection:
        made = connection.execute("SELECT type, name, sql FROM sqlite_master ORDER BY type, name").fetchall()
        rows = [
            connection.execute(f"SELECT * FROM {table} ORDER BY 1, 2").fetchall()
            for table in ("resources", "bodies", "chunks", "header")
        ]
    return [repr(made).encode(), repr(rows).encode()]


def workspace_manifest(tmp_path: Path) -> Iterable[bytes]:
    manifest.write_manifest(
        tmp_path,
        name="notes",
        root="/home/ana/notes",
        model=manifest.Model("minilm", 384),
        preprocessing=manifest.Preprocessing("prose", "auto", 1200, 0, "chunk", "words"),
        created_at="2026-01-02T03:04:05Z",
        shared=True,
    )
    return [(tmp_path / manifest.MANIFEST_FILE).read_bytes()]


def bundle_manifest(tmp_path: Path) -> Iterable[bytes]:
    target = tmp_path / "bundle"
    parts = [(name, [{"id": 1, "text": "ä"}]) for name in bundle.FILES]
    bundle_writer.write_bundle(target, parts, lambda: {"name": "notes"})
    return [file.name.encode() + b"\n" + file.read_bytes() for file in sorted(target.iterdir())]


Made = Callable[[Path], Iterable[bytes]]
CASES: dict[str, tuple[Made, object, str]] = {
    "terms": (terms, FINGERPRINT, "FINGERPRINT in text/analysis/analysis.py"),
    "keyword entries": (keyword_entries, segment_files.LAYOUT, "LAYOUT in stores/keyword/segment_files.py"),
    "scope tokens": (scopes, segment_files.LAYOUT, "LAYOUT in stores/keyword/segment_files.py"),
    "class segments": (class_segments, segment_files.LAYOUT, "LAYOUT in stores/keyword/segment_files.py"),
    "exact trigrams": (exact_trigrams, EXACT_LAYOUT, "EXACT_LAYOUT in stores/keyword/exact_leg.py"),
    "instant vectors": (instant_vectors, InstantEmbedder.fingerprint, "the fingerprint in models/local/instant.py"),
    "vector matrix": (vector_matrix, vector_files.LAYOUT, "LAYOUT in stores/vectors/vector_files.py"),
    "graph columns": (graph_columns, graph_owner("").partition("|")[0], "_RULES in stores/graph/graph_leg.py"),
    "truth tables": (truth_tables, schema.FORMAT, "MIGRATIONS in stores/sqlite/schema.py"),
    "workspace manifest": (workspace_manifest, manifest.SCHEMA_VERSION, "SCHEMA_VERSION in workspace/manifest.py"),
    "bundle manifest": (bundle_manifest, bundle.SCHEMA_VERSION, "SCHEMA_VERSION in stores/bundle/bundle.py"),
}


def hash_of(parts: Iterable[bytes]) -> str:
    digest = blake2b(digest_size=16)
    for part in parts:
        digest.update(len(part).to_bytes(8, "little") + part)
    return digest.hexdigest()


@pytest.mark.parametrize("name", CASES)
def test_a_stored_form_changes_with_its_number(name: str, tmp_path: Path) -> None:
    make, number, where = CASES[name]
    found, known = hash_of(make(tmp_path)), FORMS[name]
    assert str(number) in known, f'add "{number}" = "{found}" to [{name}] in {TABLE.name}'
    assert found == known[str(number)], f"{name} are stored in another form: raise {where}, or index what is there anew"


def test_a_migration_of_the_server_never_changes() -> None:
    found = {str(one.number): hash_of([one.sql.encode()]) for one in load_migrations()}
    assert found == FORMS["server migrations"], "a database has run it: write the next one instead"


def test_every_form_has_a_sample() -> None:
    assert FORMS.keys() == {*CASES, "server migrations"}


def test_a_changed_form_is_seen() -> None:
    parts = [entry.encode() for entry in entries(prepare(PROSE, 1, unit="chunk"))]
    assert hash_of(parts) != hash_of([parts[0].replace(b"radium", b"radio"), *parts[1:]])
    assert hash_of([b"ab", b"c"]) != hash_of([b"a", b"bc"])


def _written() -> str:
    """The table as the samples are now; `python -m tests.meta.test_stored_forms` prints it."""
    import tempfile

    lines = []
    for name, (make, number, _) in CASES.items():
        with tempfile.TemporaryDirectory() as folder:
            lines.append(f'["{name}"]\n"{number}" = "{hash_of(make(Path(folder)))}"\n')
    lines.append('["server migrations"]')
    lines += [f'"{one.number}" = "{hash_of([one.sql.encode()])}"' for one in load_migrations()]
    return "\n".join(lines)


if __name__ == "__main__":
    print(_written())
