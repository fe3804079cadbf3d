"""A flipped bit in a file of a leg is seen, the leg is rebuilt, and the answer tells it."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest

import findling
from findling.domain.errors import CorruptError
from findling.domain.resources import Resource
from findling.stores.keyword import segment_files
from findling.stores.keyword.segment_files import DamageGuard, unsound_part
from findling.stores.local.maintenance import check_legs
from tests.processes import PATIENCE_S

REBUILT = "the keyword leg was damaged and has been rebuilt"
ENDINGS = ("fast", "fieldnorm", "idx", "pos", "store", "term", "del")


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    chance, root = Random(3), tmp_path / "tree"
    root.mkdir()
    words = [f"{one}{other}" for one in ("pool", "tree", "lamp", "sand") for other in ("", "s", "er", "ing", "wood")]
    for number in range(40):
        text = " ".join(chance.choices(words, k=60))
        (root / f"{number}.md").write_text(f"# {text[:20]}\n\n{text} word{number}\n")
    return root


def engine(tree: Path, **settings: object) -> findling.Engine:
    values = {"store.home": str(tree.parent / "home"), "semantic.refine": "never", "search.profile": "keyword"}
    return findling.open(tree, settings=findling.Settings().override({**values, **settings}, "test"))


def answers(opened: findling.Engine) -> list[tuple[str, float]]:
    return [(hit.rid, hit.score) for query in ("pools", "lamp word7") for hit in opened.search(query, limit=50)]


def flip(leg: Path, ending: str, chance: Random) -> None:
    """Turn one bit of the content of a file of this kind over."""
    file = chance.choice(sorted(leg.glob(f"*.{ending}")))
    content = bytearray(file.read_bytes())
    content[chance.randrange(segment_files.content_end(bytes(content)))] ^= 1 << chance.randrange(8)
    file.write_bytes(content)


@pytest.fixture
def leg(tree: Path) -> Iterator[Path]:
    """The folder of a keyword leg with deleted entries, whose files were all checked once."""
    with engine(tree) as opened:
        answers(opened)
        (tree / "3.md").unlink()
        (tree / "4.md").write_text("another pool\n")
        opened.index()
        answers(opened)
        folder = opened.home / "keyword"
    assert {file.suffix[1:] for file in folder.glob("*.*")} >= set(ENDINGS)
    assert unsound_part(folder) == ""
    yield folder


@pytest.mark.parametrize("ending", ENDINGS)
def test_a_flipped_bit_changes_no_answer_and_is_told(tree: Path, leg: Path, ending: str) -> None:
    with engine(tree) as opened:
        expected = answers(opened)
    for seed in range(3):
        flip(leg, ending, Random(seed))
        with engine(tree) as opened:
            found = opened.search("pools", limit=50)
            assert [one.what for one in found.degraded] == [REBUILT], seed
            assert answers(opened) == expected
        if ending == "del":
            return  # the leg that was rebuilt has no deleted entries


def test_a_process_that_stays_sees_a_bit_that_flips_while_it_searches(
    tree: Path, leg: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(segment_files, "_LOOK_S", 0.0)
    with engine(tree) as opened:
        expected = answers(opened)
        flip(leg, "fieldnorm", Random(1))
        told, deadline = list[str](), time.monotonic() + PATIENCE_S
        while not told and time.monotonic() < deadline:
            told = [one.what for one in opened.search("pools", limit=50).degraded]
        assert told == [REBUILT]
        assert answers(opened) == expected


def test_files_that_are_too_large_for_an_open_are_checked_by_those_who_have_the_time(tree: Path, leg: Path) -> None:
    flip(leg, "idx", Random(2))
    guard = DamageGuard(leg)
    guard.check(most=0)
    check_legs(leg.parent)
    with pytest.raises(CorruptError, match=r"idx in the keyword leg .* is not what was written"):
        guard.check(most=0)
    with engine(tree) as opened:
        assert [one.what for one in opened.search("pools").degraded] == [REBUILT]


def test_what_was_checked_is_not_read_again(leg: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[str] = []
    real = segment_files._is_sound

    def noted(part: Path, sum_: int | None) -> bool:
        read.append(part.name)
        return real(part, sum_)

    monkeypatch.setattr(segment_files, "_is_sound", noted)
    assert unsound_part(leg) == ""
    assert read == []
    monkeypatch.setattr(segment_files, "time", lambda: 4e9)
    assert unsound_part(leg) == ""
    assert len(read) >= len(ENDINGS), "after a week they are"


@pytest.mark.parametrize("written", ["", "\0", "x\t1\t2\n", "\xff" * 9, "a.idx\t1\t1\t1\t7\n"])
def test_notes_of_checks_that_make_no_sense_are_none(leg: Path, written: str) -> None:
    (leg / "checked.txt").write_bytes(written.encode("latin-1"))
    assert unsound_part(leg) == ""


def test_a_segment_of_a_limited_caller_is_checked(tree: Path) -> None:
    def seen() -> list[str]:
        return [hit.rid for hit in opened.search("pools", limit=50, principals=("user:ana",))]

    with engine(tree) as opened:
        opened.add([(Resource(rid=f"n{at}", visibility=("user:ana",)), f"many pools {at}") for at in range(9)])
        expected = seen()
    assert len(expected) == 9
    (segment,) = (tree.parent / "home").glob("*/views/*.seg")
    flip(segment, "idx", Random(5))
    with engine(tree) as opened:
        assert seen() == expected
    assert not segment.exists(), "another one took its place"
