"""SQLite databases, row by row."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from findling.sources.documents.data.sqlite_data import extract
from findling.sources.extracted import Extracted, Source
from findling.sources.files.file_text import UnreadableError


def database(script: str) -> bytes:
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.executescript(script)
        return connection.serialize()


def read(script: str) -> Extracted:
    return extract(Source(database(script), "a.db"))


def test_rows_with_their_tables_and_row_ids() -> None:
    extracted = read(
        """CREATE TABLE people (id INTEGER PRIMARY KEY, name TEXT, born REAL, photo BLOB);
        INSERT INTO people VALUES (7, 'Ada', 1815.5, x'00ff'), (9, 'Grace
        Hopper', NULL, NULL);
        CREATE TABLE no_rows (x);
        CREATE TABLE "odd ""name" (x);
        INSERT INTO "odd ""name" VALUES ('é');
        CREATE VIEW seen AS SELECT name AS hidden FROM people;"""
    )
    assert [line for line in extracted.text.split("\n") if line] == [
        "id: 7 | name: Ada | born: 1815.5 | photo: <2 bytes>",
        "id: 9 | name: Grace Hopper",
        "x: é",
    ]
    assert [place.label for place in extracted.places] == ["people row 7", "people row 9", 'odd "name row 1']
    assert [extracted.text[place.start :].lstrip()[:5] for place in extracted.places] == ["id: 7", "id: 9", "x: é"]
    assert [heading.title for heading in extracted.headings] == ["people", 'odd "name']


def test_a_table_without_row_ids_goes_by_its_key() -> None:
    extracted = read(
        """CREATE TABLE prices (amount, day TEXT, shop TEXT, PRIMARY KEY (shop, day)) WITHOUT ROWID;
        INSERT INTO prices VALUES (5, 'Monday', 'corner');"""
    )
    assert extracted.places[0].label == "prices row corner, Monday"
    assert extracted.text == "amount: 5 | day: Monday | shop: corner"


def test_tables_behind_a_search_index_are_left_out() -> None:
    extracted = read(
        """CREATE TABLE notes (body); INSERT INTO notes VALUES ('once');
        CREATE VIRTUAL TABLE found USING fts5(body); INSERT INTO found VALUES ('twice');
        CREATE TABLE t (id INTEGER PRIMARY KEY AUTOINCREMENT); INSERT INTO t DEFAULT VALUES;"""
    )
    assert [heading.title for heading in extracted.headings] == ["notes", "t"]
    assert "twice" not in extracted.text


def test_a_virtual_table_of_an_unknown_module_does_no_harm() -> None:
    script = """CREATE TABLE notes (body); INSERT INTO notes VALUES ('kept');
        PRAGMA writable_schema = ON;
        INSERT INTO sqlite_master VALUES ('table', 'v', 'v', 0, 'CREATE VIRTUAL TABLE v USING nosuchmodule(x)');"""
    assert read(script).text == "body: kept"


def test_a_file_in_write_ahead_mode(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("CREATE TABLE t (word)")
        connection.execute("INSERT INTO t VALUES ('logged')")
        connection.commit()
    data = path.read_bytes()
    assert data[18:20] == b"\x02\x02"
    assert extract(Source(data, "a.db")).text == "word: logged"


def test_long_tables_are_cut() -> None:
    numbers = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {}) SELECT i FROM n"
    extracted = read(f"CREATE TABLE t AS {numbers.format(12_000)}; CREATE TABLE u AS {numbers.format(10_000)};")
    lines = extracted.text.split("\n")
    assert lines[9_999:10_001] == ["i: 10000", "… 2,000 more rows"]
    assert lines[-1] == "i: 10000"


def test_text_in_other_encodings() -> None:
    extracted = read("PRAGMA encoding = 'UTF-16le'; CREATE TABLE t (x); INSERT INTO t VALUES ('grün 😀');")
    assert extracted.text == "x: grün 😀"
    assert read("CREATE TABLE t (x); INSERT INTO t VALUES (CAST(x'61ff62' AS TEXT));").text == "x: a\ufffdb"


def test_a_broken_page_costs_the_rest_of_its_table_only() -> None:
    numbers = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 2000)"
    script = f"CREATE TABLE a AS {numbers} SELECT 'word' || i AS w FROM n; CREATE TABLE b AS SELECT 'whole' AS w;"
    data = bytearray(database(script))
    middle = data.index(b"word1000")
    page = middle // 4096 * 4096
    data[page : page + 4096] = b"\xff" * 4096
    extracted = extract(Source(bytes(data), "a.db"))
    assert "w: word1\n" in extracted.text
    assert "word1999" not in extracted.text
    assert extracted.text.endswith("w: whole")
    assert extracted.fields["incomplete"] == "cannot be read to the end: a"


def test_damage_of_any_kind_ends_in_text_or_a_reason() -> None:
    whole = database("CREATE TABLE t (a, b); INSERT INTO t VALUES ('x', 1), ('y', 2); CREATE INDEX i ON t (a);")
    for offset in range(16, len(whole), 7):
        damaged = whole[:offset] + bytes([whole[offset] ^ 0xFF]) + whole[offset + 1 :]
        try:
            assert extract(Source(damaged, "a.db")).text
        except UnreadableError as error:
            assert error.reason in ("damaged", "no-text")


@pytest.mark.parametrize("data", [b"", b"SQLite format 3\0", b"\x13\x37" * 4096, b"SQLite format 3\0" + b"\xff" * 4096])
def test_what_is_no_database_is_refused(data: bytes) -> None:
    with pytest.raises(UnreadableError, match="damaged"):
        extract(Source(data, "a.db"))


def test_a_database_without_rows_has_no_text() -> None:
    with pytest.raises(UnreadableError, match="no-text"):
        read("CREATE TABLE t (x);")


def test_a_table_that_never_ends_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("findling.sources.documents.data.sqlite_data._MAX_CHECKS", 0)
    monkeypatch.setattr("findling.sources.documents.data.sqlite_data._STEPS_PER_CHECK", 1000)
    rows = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 5000) SELECT i FROM n"
    extracted = read(f"CREATE TABLE t AS {rows};")
    assert extracted.text.startswith("i: 1\n")
    assert "i: 5000" not in extracted.text
    assert "incomplete" in extracted.fields


def test_the_text_stops_at_the_limit() -> None:
    data = database("CREATE TABLE t (x); INSERT INTO t VALUES ('words '), ('more '); CREATE TABLE u AS SELECT 1;")
    extracted = extract(Source(data, "a.db", limit=12))
    assert len(extracted.text) <= 12
    assert "truncated" in extracted.fields
