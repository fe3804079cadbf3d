"""The exact leg keeps its contract, with the compiled core and without it, and survives what other legs survive."""

from __future__ import annotations

import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from findling.core import native
from findling.domain.backends import EXACT
from findling.domain.errors import CorruptError
from findling.domain.ports import ExactLeg
from findling.domain.queries import Filters, Pattern
from findling.stores.keyword import exact_leg
from findling.stores.keyword.exact_leg import TrigramLeg
from findling.stores.local.backend import LocalBackend
from findling.stores.local.maintenance import measure_parts, rewrite_parts
from findling.stores.sqlite.store import SqliteStore
from findling.testing.exact_leg import ExactLegSuite
from findling.testing.keyword_leg import catch_up
from findling.testing.samples import line_document
from findling.text.query import patterns
from findling.text.query.patterns import fold, required_trigrams, trigram_form
from tests.counts import tries
from tests.processes import BoundedProcess
from tests.stores.leg_folders import LegsInFolder

KILLS = tries(6, short=3)


class TestTrigramLeg(LegsInFolder, ExactLegSuite):
    def make_leg(self) -> ExactLeg:
        return self.kept(TrigramLeg.open(self.folder / "exact", store_id="test"))


class TestTrigramLegWithoutCore(TestTrigramLeg):
    @pytest.fixture(autouse=True)
    def _no_core(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(exact_leg, "native", None)
        monkeypatch.setattr(patterns, "native", None)


BUILDER = """
import sys
from pathlib import Path
from findling.stores.keyword.exact_leg import TrigramLeg
from findling.stores.sqlite.store import SqliteStore

store = SqliteStore.open(Path(sys.argv[1]) / "truth.db")
leg = TrigramLeg.open(Path(sys.argv[1]) / "exact", store_id="s")
print(leg.seq(), flush=True)
for change in store.changes(leg.seq()):
    leg.apply([change])
    leg.commit(change.seq)
    print(leg.seq(), flush=True)
"""


def test_a_build_that_is_killed_goes_on_and_loses_nothing(tmp_path: Path) -> None:
    with closing(SqliteStore.open(tmp_path / "truth.db")) as store:
        for number in range(60):
            store.write([line_document(str(number), [f"text number {number} of many", "wolf " * 500])])
        reached, numbers = 0, [*store.matching(Filters())]
        for kill in range(KILLS):
            run = BoundedProcess([sys.executable, "-c", BUILDER, tmp_path], stdout=subprocess.PIPE)
            assert run.stdout is not None
            first = int(run.stdout.readline())
            assert first >= reached, "a commit that was reported is kept"
            reached = max([first, *(int(run.stdout.readline()) for _ in range(kill + 1))])
            run.kill()
            run.wait()
            run.stdout.close()
        assert 0 < reached < store.seq()
        with closing(TrigramLeg.open(tmp_path / "exact", store_id="s")) as leg:
            assert reached <= leg.seq() < store.seq()
            assert len(leg.numbers()) == leg.seq()
            catch_up(store, leg)
            assert leg.numbers() == set(numbers)
            assert (_found(leg, "number 59 of"), _found(leg, "of many")) == (1, 60)
    assert LocalBackend(tmp_path).legs[EXACT].damage() == []


@pytest.mark.skipif(native is None, reason="there is no compiled core")
def test_an_index_of_the_core_continues_without_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with closing(SqliteStore.open(tmp_path / "truth.db")) as store:
        store.write([line_document("a", ["hello world"])])
        with closing(TrigramLeg.open(tmp_path / "exact", store_id="s")) as leg:
            catch_up(store, leg)
        monkeypatch.setattr(exact_leg, "native", None)
        store.write([line_document("b", ["hello wolf"])])
        with closing(TrigramLeg.open(tmp_path / "exact", store_id="s")) as leg:
            catch_up(store, leg)
            assert (_found(leg, "hello wo"), _found(leg, "wolf")) == (2, 1)


def test_a_leg_of_another_store_or_damaged_is_no_leg(tmp_path: Path) -> None:
    backend = LocalBackend(tmp_path)
    with closing(SqliteStore.open(tmp_path / "index.sqlite")) as store:
        store.write([line_document(str(number), [f"text number {number}"]) for number in range(50)])
        with closing(backend.legs[EXACT].open("one")) as leg:
            catch_up(store, leg)
            assert _found(leg, "text number 7") == 1
        backend.settle(store)
    assert measure_parts(tmp_path)["exact leg"] > 0
    assert backend.legs[EXACT].damage() == []
    with closing(backend.legs[EXACT].open("another")) as leg:
        assert (leg.seq(), leg.size()) == (0, 0)
    for part in (tmp_path / "exact").glob("*.term"):
        data = bytearray(part.read_bytes())
        data[len(data) // 2] ^= 0xFF
        part.write_bytes(data)
    assert any("exact" in problem for problem in backend.legs[EXACT].damage())
    with pytest.raises(CorruptError, match="exact leg"):
        for _ in range(100):  # one file of several is looked at
            backend.legs[EXACT].open("one").close()
    backend.legs[EXACT].discard()
    assert not backend.legs[EXACT].exists()


def test_a_leg_of_deleted_entries_is_rewritten(tmp_path: Path) -> None:
    backend = LocalBackend(tmp_path)
    with closing(SqliteStore.open(tmp_path / "index.sqlite")) as store, closing(backend.legs[EXACT].open("s")) as leg:
        store.write([line_document(str(number), [f"text number {number}"]) for number in range(50)])
        catch_up(store, leg)
        store.write([], [str(number) for number in range(25)])
        catch_up(store, leg)
        leg.close()
        rewritten = rewrite_parts(tmp_path, "s", "chunk", full=False, fill=lambda fresh: catch_up(store, fresh))
        assert "exact leg" in list(rewritten)
        with closing(backend.legs[EXACT].open("s")) as fresh:
            assert (fresh.seq(), fresh.size(), _found(fresh, "text number")) == (store.seq(), 25, 25)


@pytest.mark.skipif(native is None, reason="there is no compiled core")
@pytest.mark.parametrize(
    "text",
    [
        "",
        "a",
        "ab",
        "abc",
        "abcabc",
        "a\nb\nc",
        "ab\ncd",
        " \t\r\f\x0b\x00",
        "é" * 5,
        "數據庫數據庫",
        "a😀b😀c",
        "\x7f\x80\u07ff\u0800\uffff\U00010000",
    ],
)
def test_the_core_gives_the_trigrams_of_python(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert native is not None
    given = native.trigram_form(fold(text))
    monkeypatch.setattr(patterns, "native", None)
    assert given == trigram_form(fold(text))


@pytest.mark.skipif(native is None, reason="there is no compiled core")
def test_the_core_gives_the_trigrams_of_files(monkeypatch: pytest.MonkeyPatch) -> None:
    assert native is not None
    sources = sorted(Path(pytest.__file__).parent.parent.glob("_pytest/*.py"))
    texts = [source.read_text("utf-8") for source in sources] + ["".join(map(chr, range(0x100, 0xD800)))]
    given = [native.trigram_form(fold(text)) for text in texts]
    monkeypatch.setattr(patterns, "native", None)
    assert given == [trigram_form(fold(text)) for text in texts]


def _found(leg: ExactLeg, source: str) -> int:
    required = required_trigrams(Pattern(source, False, False))
    assert required is not None
    return len(leg.candidates(required))
