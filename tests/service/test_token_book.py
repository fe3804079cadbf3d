"""Tokens: what each stands for, what is kept of it, and who sees a change."""

from __future__ import annotations

import json
import os
import re
import signal
import stat
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from findling.domain.errors import CorruptError, FormatError, InvalidValueError, NotFoundError, TokenError
from findling.domain.permissions import ALL_WORKSPACES, Caller
from findling.service.server.tokens import TokenBook
from tests.processes import BoundedProcess

SOME_TIME = 1_800_000_000.0


def test_a_token_stands_for_its_principals(tmp_path: Path) -> None:
    book = TokenBook(tmp_path / "home")
    secret = book.create("bot", principals=("user:ann", "group:eng"), scopes=("read",), workspaces=("notes",))
    assert re.fullmatch(r"fdl_[A-Za-z0-9_-]{43}", secret)
    assert book.caller(secret) == Caller("bot", ("user:ann", "group:eng"), frozenset({"read"}), ("notes",))


def test_a_token_of_the_owner_is_for_all_workspaces_unless_some_are_named(tmp_path: Path) -> None:
    book = TokenBook(tmp_path)
    everything = book.caller(book.create("all", principals=None, scopes=("read", "write")))
    some = book.caller(book.create("some", principals=None, workspaces=("notes",)))
    assert everything.is_owner and everything.workspaces == (ALL_WORKSPACES,) and everything.may("write")
    assert some.workspaces == ("notes",) and not some.may("write")


def test_the_secret_is_kept_nowhere(tmp_path: Path) -> None:
    secret = TokenBook(tmp_path).create("bot", principals=("user:ann",))
    TokenBook(tmp_path).caller(secret)
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert len(files) == 3  # tokens, lock, day of the last use
    for path in files:
        assert secret[4:] not in path.name and secret[4:].encode() not in path.read_bytes()
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE((tmp_path / ".tokens.used").stat().st_mode) == 0o700


@pytest.mark.parametrize("wrong", ["", "fdl_", "fdl_" + "A" * 43, "nonsense", "x" * 100_000, "ü\ud800"])
def test_a_wrong_secret_is_refused(tmp_path: Path, wrong: str) -> None:
    book = TokenBook(tmp_path)
    with pytest.raises(TokenError):  # when there are no tokens yet
        book.caller(wrong)
    book.create("bot", principals=("user:ann",))
    with pytest.raises(TokenError):
        book.caller(wrong)


def test_a_token_of_another_home_is_refused(tmp_path: Path) -> None:
    secret = TokenBook(tmp_path / "one").create("bot", principals=None)
    other = TokenBook(tmp_path / "two")
    other.create("bot", principals=None)
    with pytest.raises(TokenError):
        other.caller(secret)


def test_expired_revoked_and_unknown_tokens_are_told_alike(tmp_path: Path) -> None:
    now = SOME_TIME
    book = TokenBook(tmp_path, clock=lambda: now)
    expired = book.create("short", principals=("user:ann",), expires_at=now + 10)
    revoked = book.create("gone", principals=("user:ann",))
    assert book.caller(expired).name == "short"
    now += 10
    book.revoke("gone")
    told = set()
    for secret in (expired, revoked, "fdl_unknown"):
        with pytest.raises(TokenError) as caught:
            book.caller(secret)
        told.add((caught.value.message, caught.value.hint))
    assert len(told) == 1
    assert [account.name for account in book.list()] == ["short"]


def test_every_change_is_seen_by_others_at_once(tmp_path: Path) -> None:
    server, owner = TokenBook(tmp_path), TokenBook(tmp_path)
    for _ in range(30):  # the same size and, on many disks, the same time and number of the file again
        secret = owner.create("bot", principals=("user:ann",))
        assert server.caller(secret).name == "bot"
        owner.revoke("bot")
        other = owner.create("bot", principals=("user:bob",))
        with pytest.raises(TokenError):
            server.caller(secret)
        assert server.caller(other).principals == ("user:bob",)
        owner.revoke("bot")


def test_an_unchanged_file_is_not_read_again(tmp_path: Path) -> None:
    secret = TokenBook(tmp_path).create("bot", principals=("user:ann",))
    path = tmp_path / ".tokens.json"
    os.utime(path, (SOME_TIME, SOME_TIME - 1e9))
    server = TokenBook(tmp_path)
    server.caller(secret)
    status = path.stat()
    path.write_bytes(b"x" * status.st_size)  # the same file by its number, time and size
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert server.caller(secret).name == "bot"


def test_a_change_that_the_clock_of_the_disk_cannot_tell_is_seen(tmp_path: Path) -> None:
    server = TokenBook(tmp_path)
    secret = server.create("bot", principals=("user:ann",))
    server.caller(secret)
    path = tmp_path / ".tokens.json"
    status = path.stat()
    path.write_bytes(path.read_bytes().replace(b"user:ann", b"user:bob"))
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert server.caller(secret).principals == ("user:bob",)


def test_the_day_of_the_last_use_is_listed(tmp_path: Path) -> None:
    book = TokenBook(tmp_path)
    secret = book.create("bot", principals=("user:ann",))
    assert book.list()[0].last_used_at is None
    book.caller(secret)
    used = book.list()[0].last_used_at
    assert used is not None and used % 86_400 == 0
    book.revoke("bot")
    assert list((tmp_path / ".tokens.used").iterdir()) == []


def test_where_the_use_cannot_be_noted_the_token_is_good(tmp_path: Path) -> None:
    book = TokenBook(tmp_path)
    secret = book.create("bot", principals=("user:ann",))
    (tmp_path / ".tokens.used").write_text("in the way")
    assert book.caller(secret).name == "bot"


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"name": ""}, "no name of a token"),
        ({"name": "a b"}, "no name of a token"),
        ({"name": "-a"}, "no name of a token"),
        ({"name": "a\n"}, "no name of a token"),
        ({"name": "a" * 65}, "no name of a token"),
        ({"principals": ()}, "is for nobody"),
        ({"principals": ("ann",)}, "'ann' is no principal"),
        ({"scopes": ()}, "has no scope"),
        ({"scopes": ("read", "admin")}, "'admin' is no scope"),
        ({"workspaces": ("",)}, "needs a name"),
        ({"workspaces": ("a\nb",)}, "needs a name"),
        ({"expires_at": SOME_TIME}, "would have expired"),
    ],
)
def test_what_cannot_be_is_refused(tmp_path: Path, changes: dict[str, Any], told: str) -> None:
    book = TokenBook(tmp_path, clock=lambda: SOME_TIME)
    given: dict[str, Any] = {"name": "bot", "principals": ("user:ann",), **changes}
    with pytest.raises(InvalidValueError, match=told):
        book.create(given.pop("name"), **given)
    assert book.list() == []


def test_names_are_unique(tmp_path: Path) -> None:
    book = TokenBook(tmp_path)
    secret = book.create("bot", principals=("user:ann",))
    with pytest.raises(InvalidValueError, match="there is a token bot already"):
        book.create("bot", principals=None)
    assert book.caller(secret).principals == ("user:ann",)
    with pytest.raises(NotFoundError, match="there is no token other"):
        book.revoke("other")


DAMAGED = [
    b"",
    b"{",
    b"[]",
    b"null",
    b'{"schema": 1}',
    b'{"schema": 1, "tokens": {"a": 1}}',
    b'{"schema": 1, "tokens": [{"name": "bot"}]}',
    b"\xff\xfe",
]


@pytest.mark.parametrize("data", DAMAGED)
def test_a_damaged_file_is_an_error_and_stays_as_it_is(tmp_path: Path, data: bytes) -> None:
    book = TokenBook(tmp_path)
    secret = book.create("bot", principals=("user:ann",))
    path = tmp_path / ".tokens.json"
    path.write_bytes(data)
    for attempt in (
        lambda: book.caller(secret),
        lambda: book.list(),
        lambda: book.create("other", principals=None),
        lambda: book.revoke("bot"),
    ):
        with pytest.raises(CorruptError, match=r"\.tokens\.json is damaged") as caught:
            attempt()
        assert "findling token create" in caught.value.hint
    assert path.read_bytes() == data


def test_a_type_that_is_wrong_is_damage(tmp_path: Path) -> None:
    book = TokenBook(tmp_path)
    book.create("bot", principals=("user:ann",))
    path = tmp_path / ".tokens.json"
    good = json.loads(path.read_bytes())
    for key, value in {"principals": "user:ann", "scopes": [1], "sha256": None, "expires_at": "soon"}.items():
        path.write_text(json.dumps({**good, "tokens": [{**good["tokens"][0], key: value}]}))
        with pytest.raises(CorruptError):
            book.list()


def test_a_file_of_a_newer_findling_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / ".tokens.json").write_text('{"schema": 2, "tokens": []}')
    with pytest.raises(FormatError, match="newer findling"):
        TokenBook(tmp_path).create("bot", principals=None)


def test_many_at_once_lose_nothing(tmp_path: Path) -> None:
    made: dict[str, str] = {}

    def make(number: int) -> None:
        for turn in range(5):
            name = f"bot-{number}-{turn}"
            made[name] = TokenBook(tmp_path).create(name, principals=("user:ann",))

    threads = [threading.Thread(target=make, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    book = TokenBook(tmp_path)
    assert {book.caller(secret).name for secret in made.values()} == set(made) and len(made) == 20


_MAKER = """
import sys
from pathlib import Path
from findling.service.server.tokens import TokenBook

book = TokenBook(Path(sys.argv[1]))
for number in range(10_000):
    print(book.create(f"bot-{sys.argv[2]}-{number}", principals=None), flush=True)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="there is no kill -9")
def test_a_killed_writer_leaves_every_token_it_told_of(tmp_path: Path) -> None:
    told: list[str] = []
    for turn in range(3):
        command = [sys.executable, "-c", _MAKER, str(tmp_path), str(turn)]
        with BoundedProcess(command, stdout=subprocess.PIPE) as maker:
            assert maker.stdout is not None
            for _ in range(7 + turn):
                told.append(maker.stdout.readline().strip())
            maker.send_signal(signal.SIGKILL)
            told += [line.strip() for line in maker.stdout if line.endswith("\n")]
    book = TokenBook(tmp_path)
    assert len(told) >= 24
    assert all(book.caller(secret).is_owner for secret in told)
    assert book.caller(book.create("after", principals=None)).name == "after"
