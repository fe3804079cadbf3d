"""The vectors of a SQLite store beyond the contract: bounded work, patience, and other processes."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any as Value

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from findling.domain.errors import LockedError
from findling.domain.ports import TruthStore
from findling.domain.queries import All, Any, Field, Filters, Not, Range, Same, Word
from findling.domain.resources import Document
from findling.stores.keyword.leg import TantivyLeg
from findling.stores.lock import WriteLock
from findling.stores.sqlite.store import SqliteStore
from findling.testing.samples import PLAIN, cids_of, line_document, vectors_of
from tests.compacting import compact
from tests.counts import tries
from tests.memory_store import MemoryStore
from tests.processes import BoundedProcess


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "truth.db"


@pytest.fixture
def store(path: Path) -> Iterator[SqliteStore]:
    with SqliteStore.open(path) as store:
        yield store


# The meaning of filters

NAMES = ("a", "A", "ä", "Ä", ".gz", "a.gz", "x.tar.gz", "X.TAR.GZ", "a_b", "aXb", "a%b", "100 %", "", "a.", "İ.ẞ", "0")
WORDS = ("", "a", "A", "ä", "Ä", "a b", "a%b", "a%20;b", 'q"', ",", "a,b", "team:x", "\n", "\u212a", "k", "İ", "ẞ", "ß")

names = st.sampled_from(NAMES)
paths = st.lists(names, max_size=3).map("/".join)
words = st.sampled_from(WORDS)
some_words = st.lists(words, max_size=3).map(tuple)
times = st.none() | st.sampled_from([-1.5, -0.5, 0.0, 0.5, 1.0, 1.9, 2.0, 2.1]) | st.floats(-3, 3)


def _document(number: int, metadata: dict[str, Value]) -> Document:
    return line_document(f"r{number}", ["common", f"{number}"], **metadata)


documents = st.lists(
    st.fixed_dictionaries(
        {
            "path": paths,
            "type": words,
            "lang": words,
            "author": words,
            "tags": some_words,
            "visibility": st.none() | some_words,
            "updated_at": times,
            "fields": st.just({}) | st.fixed_dictionaries({"system": some_words.map(",".join)}),
        }
    ),
    min_size=1,
    max_size=12,
).map(lambda resources: [_document(number, metadata) for number, metadata in enumerate(resources)])

extensions = st.lists(st.sampled_from(("gz", ".GZ", "tar.gz", "", ".", "ẞ", "g_", "%", "a/b.gz")), max_size=2).map(
    tuple
)
places = paths | st.sampled_from(("/a/", "/", "a/x.tar", "%")) | st.text("aA/*?.gäẞ%", max_size=5)
conditions = st.recursive(
    st.builds(Field, st.sampled_from(("lang", "type", "tag", "author", "system")), some_words)
    | st.builds(Field, st.just("ext"), extensions)
    | st.builds(Field, st.just("path"), st.lists(places, max_size=2).map(tuple))
    | st.builds(Field, st.just("rid"), st.lists(st.sampled_from(("r0", "r1", "R1", "")), max_size=2).map(tuple))
    | st.builds(Range, times, times),
    lambda nodes: st.one_of(
        st.builds(Not, nodes), *(st.builds(kind, st.lists(nodes, max_size=3).map(tuple)) for kind in (Any, Same, All))
    ),
    max_leaves=4,
)

_filters = {
    "ext": extensions,
    "not_ext": st.lists(st.sampled_from(("gz", "tar.gz", ".", "_")), max_size=2).map(tuple),
    "path": st.lists(paths | st.sampled_from(("/a/", "/", "a/x.tar", "%")), max_size=3).map(tuple),
    "type": some_words,
    "lang": some_words,
    "tag": some_words,
    "author": some_words,
    "after": times,
    "before": times,
    "where": st.none() | conditions,
}
# Mostly one filter at a time: all of them together leave nothing.
filters = st.one_of(
    *(st.builds(Filters, **{name: values}) for name, values in _filters.items()),
    *[st.builds(Filters, where=conditions)] * 4,
    st.builds(Filters, **_filters),
)


@given(documents=documents, asked=st.lists(filters, min_size=25, max_size=25))
@settings(
    max_examples=tries(25, short=8),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
def test_filters_mean_what_they_mean_to_the_keyword_leg(documents: list[Document], asked: list[Filters]) -> None:
    with tempfile.TemporaryDirectory(prefix="findling-") as folder:
        leg = TantivyLeg.open(Path(folder) / "keyword", store_id="s")
        with SqliteStore.open(Path(folder) / "truth.db") as store:
            model = MemoryStore()
            leg.apply(store.write(documents))
            leg.commit(len(documents))
            model.write(documents)
            rid_of = {cid: document.resource.rid for document in documents for cid in cids_of(document)}
            for limits in asked:
                hits = leg.search(Word("common"), limits, 1000).hits
                expected = sorted(rid_of[cid] for cid, _ in hits)
                assert _matching(store, limits) == expected, limits
                assert _matching(model, limits) == expected, limits
        leg.close()


def _matching(store: TruthStore, limits: Filters) -> list[str]:
    rids = {change.number: change.rid for change in store.changes(0)}
    return sorted(rids[number] for number in store.matching(limits))


# Bounded work

CHUNKS = 4000


@pytest.fixture
def large(store: SqliteStore) -> SqliteStore:
    """A store with many chunks, all different."""
    store.write(line_document(f"r{n:03}", [f"{n} {line}" for line in range(20)]) for n in range(CHUNKS // 20))
    return store


def _steps(store: SqliteStore, action: Callable[[], object]) -> int:
    """The instructions that SQLite carries out, in hundreds: work that does not depend on the machine."""
    steps = 0

    def count() -> int:
        nonlocal steps
        steps += 1
        return 0

    reader = store._connections._idle[0]
    reader.set_progress_handler(count, 100)
    action()
    reader.set_progress_handler(None, 0)
    return steps


def _embed(store: SqliteStore, limit: int) -> int:
    found = store.unembedded("m", limit)
    store.put_vectors("m", {stored.chunk.digest: b"v" for stored in found})
    return len(found)


def test_finding_what_lacks_vectors_goes_on_where_it_ended(large: SqliteStore) -> None:
    first = _steps(large, lambda: _embed(large, 64))
    later = [_steps(large, lambda: _embed(large, 64)) for _ in range(CHUNKS // 64 - 1)]
    assert max(later) < 2 * first
    assert _embed(large, 64) == CHUNKS % 64
    assert large.coverage("m") == (CHUNKS, CHUNKS)
    assert _steps(large, lambda: large.unembedded("m", 64)) < first / 4
    large.write([line_document("new", ["new"])])
    assert _steps(large, lambda: large.unembedded("m", 64)) < first / 4


def test_a_store_opened_anew_finds_the_same(path: Path, large: SqliteStore) -> None:
    large.put_vectors("m", {stored.chunk.digest: b"v" for stored in large.unembedded("m", CHUNKS)[::2]})
    with SqliteStore.open(path) as other:
        assert other.unembedded("m", 100) == large.unembedded("m", 100)
        other.drop_vectors("m")
        assert other.unembedded("m", 100) == large.unembedded("m", 100)


def test_a_model_that_another_store_dropped_and_filled_anew_starts_from_nothing(path: Path, store: SqliteStore) -> None:
    store.write([PLAIN, line_document("z", ["four"])])
    store.put_vectors("m", vectors_of(PLAIN, b"v"))
    assert [stored.text for stored in store.unembedded("m", 9)] == ["four"]
    with SqliteStore.open(path) as other:
        other.drop_vectors("m")
        other.put_vectors("m", {PLAIN.chunks[-1].digest: b"v"})
    assert [stored.text for stored in store.unembedded("m", 9)] == ["one", "two", "four"]


def test_wishes_do_not_hide_what_nobody_wished_for(store: SqliteStore) -> None:
    store.write([PLAIN, line_document("z", ["four"])])
    store.put_vectors("m", {PLAIN.chunks[0].digest: b"v"})
    store.want([PLAIN.chunks[3].cid, PLAIN.chunks[2].cid])
    assert [stored.text for stored in store.unembedded("m", 1)] == ["three"]
    store.put_vectors("m", {PLAIN.chunks[3].digest: b"v"})
    assert [stored.text for stored in store.unembedded("m", 9)] == ["two", "four"]


def test_chunks_that_cannot_be_embedded_can_be_left_out(store: SqliteStore) -> None:
    store.write([PLAIN])
    skip = {PLAIN.chunks[0].digest}
    assert [stored.text for stored in store.unembedded("m", 2, skip=skip)] == ["two", "three"]
    store.want([PLAIN.chunks[0].cid])
    assert [stored.text for stored in store.unembedded("m", 1, skip=skip)] == ["two"]
    store.put_vectors("m", {chunk.digest: b"v" for chunk in PLAIN.chunks[1:]})
    assert store.unembedded("m", 9, skip=skip) == []
    assert [stored.text for stored in store.unembedded("m", 9)] == ["one"]


def test_coverage_does_not_look_at_every_chunk(large: SqliteStore) -> None:
    _embed(large, CHUNKS - 7)
    assert large.coverage("m") == (CHUNKS - 7, CHUNKS)
    assert _steps(large, lambda: large.coverage("m")) <= 1
    # A count of all is one instruction, however many there are; so see that none is asked for.
    asked: list[str] = []
    large._connections._idle[0].set_trace_callback(asked.append)
    assert large.coverage("m") == (CHUNKS - 7, CHUNKS)
    assert asked
    assert not [text for text in asked if "count(" in text]


def test_coverage_counts_again_after_another_process_wrote(path: Path, large: SqliteStore) -> None:
    assert large.coverage("m") == (0, CHUNKS)
    with closing(SqliteStore.open(path)) as other:
        other.write([line_document("more", ["one", "two"])])
        assert large.coverage("m") == (0, CHUNKS + 2)
        other.write([], [line_document("more", []).resource.rid])
        assert large.coverage("m") == (0, CHUNKS)


def test_rows_cost_what_is_new(large: SqliteStore) -> None:
    large.put_vectors("other", {b"%d" % number: b"v" for number in range(CHUNKS)})
    everything = _steps(large, lambda: _embed(large, CHUNKS))
    *_, last = large.vector_rows("m", 0)
    large.put_vectors("other", {b"x%d" % number: b"v" for number in range(CHUNKS)})
    assert _steps(large, lambda: list(large.vector_rows("m", last.mark))) <= 1
    large.write([line_document("new", ["new"])])
    large.put_vectors("m", vectors_of(line_document("new", ["new"]), b"v"))
    assert len(list(large.vector_rows("m", last.mark))) == 1
    assert _steps(large, lambda: list(large.vector_rows("m", last.mark))) < everything / 100


def test_paths_are_found_by_their_index(large: SqliteStore) -> None:
    large.write(line_document(f"f{n}", ["x"], path=f"folder{n}/file.txt") for n in range(1000))
    everything = _steps(large, lambda: large.matching(Filters(ext=("txt",))))
    assert len(large.matching(Filters(path=("folder7",)))) == 1
    assert _steps(large, lambda: large.matching(Filters(path=("folder7",), ext=("txt",)))) < everything / 20


def test_successors_are_found_by_their_index(large: SqliteStore) -> None:
    large.write(line_document(f"f{n}", ["x"], fields={"status": "open"}) for n in range(1000))
    large.write([line_document("new", ["x"], fields={"supersedes": "f7"})])
    everything = _steps(large, lambda: large.matching(Filters(ext=("txt",))))
    assert large.successors(["f7", "f8"]) == {"f7": "new"}
    assert _steps(large, lambda: large.successors(["f7", "f8"])) < everything / 20
    assert _steps(large, large.superseded) < everything / 20


# Others that write

WRITER = """
import sys
from findling.testing.samples import line_document
from findling.stores.lock import WriteLock
from findling.stores.sqlite.store import SqliteStore

with WriteLock(sys.argv[1] + ".lock", timeout_s=0), SqliteStore.open(sys.argv[1]) as store:
    for turn in range(40):
        store.write([line_document(f"r{turn}", ["common", f"{turn}"])])
        print(turn, flush=True)
    sys.stdin.read()
"""


def test_vectors_can_be_put_while_another_process_writes_documents(path: Path, store: SqliteStore) -> None:
    store.write([PLAIN])
    with BoundedProcess(
        [sys.executable, "-c", WRITER, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as writer:
        assert writer.stdout is not None
        for line in writer.stdout:
            store.put_vectors("m", vectors_of(line_document("any", ["common", line.strip()]), b"v"))
            store.want(cids_of(PLAIN))
            if line == "39\n":
                break
        with pytest.raises(LockedError):
            WriteLock(f"{path}.lock", timeout_s=0).__enter__()
        writer.communicate()
    assert writer.returncode == 0
    assert store.coverage("m") == (80, 84)
    assert len(list(store.vector_rows("m", 0))) == 80
    assert store.integrity() == []


@pytest.mark.parametrize("patience_s", [0, 0.02])
def test_who_has_no_patience_learns_at_once_that_another_process_writes(
    path: Path, store: SqliteStore, patience_s: float
) -> None:
    store.write([PLAIN])
    other = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(LockedError):
        store.put_vectors("m", vectors_of(PLAIN, b"v"), patience_s=patience_s)
    with pytest.raises(LockedError):
        store.want(cids_of(PLAIN), patience_s=patience_s)
    release = threading.Timer(0.3, other.execute, ["ROLLBACK"])
    release.start()
    store.put_vectors("m", vectors_of(PLAIN, b"v"))  # with the usual patience, which has come back
    release.join()
    other.close()
    assert store.coverage("m") == (4, 4)


def test_who_has_no_patience_learns_at_once_that_another_thread_writes(store: SqliteStore) -> None:
    failures: list[BaseException] = []

    def put() -> None:
        try:
            store.put_vectors("m", {b"a": b"v"}, patience_s=0.01)
        except BaseException as error:
            failures.append(error)

    def documents() -> Iterator[Document]:
        yield PLAIN
        thread = threading.Thread(target=put)
        thread.start()
        thread.join()

    store.write(documents())
    (failure,) = failures
    assert isinstance(failure, LockedError)
    assert "thread" in failure.message
    store.put_vectors("m", {b"a": b"v"}, patience_s=0.01)
    assert store.models() == {"m": 1}


def test_a_model_that_is_dropped_gives_its_space_back(path: Path, store: SqliteStore) -> None:
    store.write([PLAIN])
    store.put_vectors("m", {b"%d" % number: bytes(768) for number in range(2000)})
    store.put_vectors("n", vectors_of(PLAIN, bytes(768)))
    assert store.drop_vectors("m") == 2000
    compact(store, store.seq())
    assert path.stat().st_size < 300_000
    latest = max(row.mark for row in store.vector_rows("n", 0))
    assert latest == 2003
    store.drop_vectors("n")
    compact(store, store.seq())
    store.put_vectors("n", vectors_of(PLAIN, bytes(768)))
    assert min(row.mark for row in store.vector_rows("n", 0)) > latest
