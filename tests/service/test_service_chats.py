"""The chats of a workspace."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from findling.domain.errors import InvalidValueError, NotFoundError
from findling.domain.records import Message, Thread
from findling.service.content.chats import ChatReport, ThreadSummary, WorkspaceChats
from findling.service.engine.engine import Engine, open_engine
from findling.service.settings.settings import Settings

START = 1_775_637_480.0


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[Engine]:
    (tmp_path / "root").mkdir()
    own = {
        "store.home": str(tmp_path / "home"),
        "search.mode": "keyword",
        "search.typos": "ignore",
        "search.refresh": "never",
        "semantic.refine": "never",
    }
    with open_engine(tmp_path / "root", settings=Settings().override(own, "test")) as opened:
        yield opened


@pytest.fixture
def chats(engine: Engine) -> WorkspaceChats:
    return WorkspaceChats(engine.writer)


def word(number: int) -> str:
    """A word of its own for each message: letters alone, or it would be taken apart."""
    return "q" + "".join("bcdfghjklm"[int(digit)] for digit in str(number)) + "x"


def thread(id_: str, first: int, last: int, title: str = "") -> Thread:
    messages = (Message(str(n), f"{word(n)} and more", "Ann", START + n * 60) for n in range(first, last))
    return Thread("test", id_, messages, title=title)


def found(engine: Engine, query: str) -> list[tuple[str, str]]:
    return [(hit.rid.rpartition("/")[0], hit.place) for hit in engine.search(query, refresh=False)]


def test_messages_are_found_with_who_and_when(engine: Engine, chats: WorkspaceChats) -> None:
    report = chats.add([thread("a", 0, 150, title="About words"), thread("b", 150, 152)])
    assert report == ChatReport(threads=2, added=152)
    assert found(engine, word(120)) == [("chat:test/a", "Ann, 2026-04-08 10:38")]
    assert found(engine, word(151)) == [("chat:test/b", "Ann, 2026-04-08 11:09")]
    (hit,) = engine.search(word(120), refresh=False)
    assert (hit.type, hit.title) == ("chat", "About words")
    assert f"[2026-04-08 10:38] Ann: {word(120)} and more" in [line.text for line in hit.lines]


def test_an_edited_message_is_found_by_its_new_words_only(engine: Engine, chats: WorkspaceChats) -> None:
    chats.add([thread("a", 0, 10)])
    edited = Message("3", "something else", "Ann", START + 180)
    assert chats.add([Thread("test", "a", [edited])]) == ChatReport(threads=1, changed=1)
    assert found(engine, word(3)) == []
    assert found(engine, "something") == [("chat:test/a", "Ann, 2026-04-08 08:41")]


def test_the_same_export_again_changes_nothing(engine: Engine, chats: WorkspaceChats) -> None:
    chats.add([thread("a", 0, 300), thread("b", 0, 5)])
    seq = engine.writer.store.seq()
    assert chats.add([thread("a", 0, 300), thread("b", 0, 5)]) == ChatReport(threads=2, known=305)
    assert engine.writer.store.seq() == seq


@pytest.mark.parametrize("length", [250, 2450])
def test_one_more_message_changes_as_much_in_a_long_thread(engine: Engine, chats: WorkspaceChats, length: int) -> None:
    chats.add([thread("a", 0, length)])
    seq = engine.writer.store.seq()
    chats.add([thread("a", length, length + 1)])
    assert engine.writer.store.seq() == seq + 1


def test_more_than_one_batch(engine: Engine, chats: WorkspaceChats) -> None:
    told: list[ChatReport] = []
    report = chats.add([thread("a", 0, 4100)], on_progress=told.append)
    assert report == told[-1] == ChatReport(threads=1, added=4100)
    assert len(told) == 3
    assert [len(found(engine, word(n))) for n in (0, 1999, 2000, 4099)] == [1, 1, 1, 1]


def test_what_comes_before_an_error_is_kept(engine: Engine, chats: WorkspaceChats) -> None:
    def broken() -> Iterator[Message]:
        yield from thread("a", 0, 3).messages
        raise InvalidValueError("line 4 is damaged")

    told: list[ChatReport] = []
    with pytest.raises(InvalidValueError, match="line 4 is damaged"):
        chats.add([thread("z", 0, 2), Thread("test", "a", broken())], on_progress=told.append)
    assert told == [ChatReport(threads=2, added=5)]
    assert found(engine, word(2)) == [("chat:test/a", "Ann, 2026-04-08 08:40")]


def test_listing(chats: WorkspaceChats) -> None:
    assert list(chats.threads()) == []
    undated = Thread("test", "b/c", [Message("1", "hm", "Bob")], title="B")
    chats.add([thread("b", 0, 120, title="Talk"), undated])
    assert list(chats.threads()) == [
        ThreadSummary("test/b", "Talk", 120, START, START + 119 * 60),
        ThreadSummary("test/b/c", "B", 1, None, None),
    ]


def test_deleting(engine: Engine, chats: WorkspaceChats) -> None:
    with pytest.raises(NotFoundError, match="there is no thread test/a"):
        chats.delete("test/a")
    chats.add([thread("a", 0, 250), thread("a/b", 0, 3)])
    assert chats.delete("test/a") == 250
    assert [summary.thread for summary in chats.threads()] == ["test/a/b"]
    assert found(engine, word(1)) == [("chat:test/a/b", "Ann, 2026-04-08 08:39")]
    with pytest.raises(NotFoundError):
        chats.delete("test/a")
    assert chats.add([thread("a", 0, 2)]) == ChatReport(threads=1, added=2)


def test_passages_are_a_few_messages_unless_the_user_has_chosen_otherwise(tmp_path: Path, engine: Engine) -> None:
    sizes = {}
    for size, preset in ((0, "default"), (2000, "semantic:2000:tokens")):
        (tmp_path / f"root{size}").mkdir()
        own = {"store.home": str(tmp_path / f"home{size}"), "chunk.preset": preset}
        with open_engine(tmp_path / f"root{size}", settings=Settings().override(own, "test")) as opened:
            WorkspaceChats(opened.writer).add([thread("a", 0, 100)])
            sizes[size] = opened.writer.store.counts()["chunks"]
    assert sizes[2000] == 1 or sizes[2000] < sizes[0] / 4


def test_files_are_still_indexed_beside_chats(engine: Engine, chats: WorkspaceChats) -> None:
    chats.add([thread("a", 0, 3)])
    (engine.root / "notes.md").write_text(f"{word(1)} in a file\n")
    engine.index()
    assert sorted(rid for rid, _ in found(engine, word(1))) == ["", "chat:test/a"]
