"""Exports of chats: told apart by what is in them, and read into threads of messages."""

from __future__ import annotations

import io
import json
import random
import sys
import zipfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from findling.domain.errors import FindlingError, InvalidValueError, PathNotFoundError, UsageError
from findling.domain.records import Message, Thread
from findling.sources.chats.chat_formats import Wishes, read_chats, read_chats_stream

Read = list[tuple[str, str, str, list[Message]]]


def unfolded(threads: Iterable[Thread]) -> Read:
    return [(thread.source, thread.id, thread.title, list(thread.messages)) for thread in threads]


def read(path: Path, **wishes: str) -> Read:
    return unfolded(read_chats(path, Wishes(**wishes)))


def write_json(path: Path, value: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value, ensure_ascii=False), encoding="utf-8")
    return path


# JSON lines


def write_lines(path: Path, *rows: dict[str, Any]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def test_json_lines(tmp_path: Path) -> None:
    file = write_lines(
        tmp_path / "talk.txt",
        {
            "thread": "a",
            "id": "1",
            "author": "Ann",
            "at": "2026-04-08T10:38:00+02:00",
            "text": "hi",
            "title": "Morning",
        },
        {"thread": "a", "id": 2, "author": "Bob", "at": 1775637600, "text": "yo", "reply_to": 1},
        {"thread": "b", "id": "x", "author": "", "text": "no time"},
        {"thread": "a", "author": "Ann", "at": 1775637660.5, "text": "back"},
    )
    threads = read(file)
    assert [(source, id_, title) for source, id_, title, _ in threads] == [
        ("jsonl", "a", "Morning"),
        ("jsonl", "b", ""),
        ("jsonl", "a", "Morning"),
    ]
    assert threads[0][3] == [
        Message("1", "hi", "Ann", 1775637480.0),
        Message("2", "yo", "Bob", 1775637600.0, "1"),
    ]
    assert threads[1][3] == [Message("x", "no time")]
    ((last,),) = [messages for *_, messages in threads[2:]]
    assert (last.text, last.at, len(last.id)) == ("back", 1775637660.5, 16)


def test_a_message_without_an_id_gets_the_same_one_each_time(tmp_path: Path) -> None:
    row = {"thread": "a", "author": "Ann", "at": 5, "text": "hi"}
    file = write_lines(tmp_path / "a.jsonl", row, row, {**row, "text": "ho"}, {**row, "at": 6})
    first, again, other_text, later = read(file)[0][3]
    assert first.id == again.id
    assert len({first.id, other_text.id, later.id}) == 3


def test_the_thread_of_lines_that_name_none(tmp_path: Path) -> None:
    file = write_lines(
        tmp_path / "a.jsonl",
        {"author": "Ann", "at": 5, "text": "hi"},
        {"thread": "own", "title": "Own", "author": "Ann", "at": 5, "text": "hi"},
    )
    threads = read(file, thread="given", title="Given", source="irc")
    assert [thread[:3] for thread in threads] == [("irc", "given", "Given"), ("irc", "own", "Own")]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('{"thread": "a", "author": "x", "at": 1, "text": "y", "colour": 1}', ":2: unknown key 'colour'"),
        ('{"thread": "a", "author": "x", "at": 1}', ":2: no text"),
        ('{"thread": "a", "at": 1, "text": "y"}', ":2: no author"),
        ('{"author": "x", "at": 1, "text": "y"}', ":2: no thread"),
        ('{"thread": "a", "author": "x", "text": "y"}', ":2: neither at nor id"),
        ('{"thread": "a", "author": "x", "at": "tuesday", "text": "y"}', ":2: at: 'tuesday' is no time"),
        ('{"thread": "a", "author": "x", "at": 1775637480000, "text": "y"}', ":2: at: 1775637480000 is no time"),
        ('{"thread": "a", "author": "x", "at": true, "text": "y"}', ":2: at: True is no time"),
        ('{"thread": "a", "author": "x", "at": 1, "text": ["y"]}', ":2: text: ['y'] is no text"),
        ('{"thread": "a", "author": "x", "at": 1, "te', ":2: no JSON: "),
        ("[]", ":2: no JSON object"),
    ],
)
def test_a_wrong_line_is_named(tmp_path: Path, line: str, message: str) -> None:
    file = tmp_path / "a.jsonl"
    file.write_text('{"thread": "a", "author": "x", "at": 1, "text": "fine"}\n' + line + "\n")
    read_so_far: list[Message] = []
    with pytest.raises(InvalidValueError) as raised:
        for thread in read_chats(file, Wishes()):
            for one in thread.messages:
                read_so_far.append(one)
    assert raised.value.message.startswith(f"{file}{message}")
    assert [one.text for one in read_so_far] == ["fine"]


def test_many_lines_are_read_one_after_the_other() -> None:
    class Endless(io.RawIOBase):
        lines = 0

        def readable(self) -> bool:
            return True

        def readinto(self, buffer: Any, /) -> int:
            self.lines += 1
            row = b'{"thread": "a", "author": "x", "at": %d, "text": "y"}\n' % self.lines
            buffer[: len(row)] = row
            return len(row)

    source = Endless()
    (thread, *_) = [next(iter(read_chats_stream(io.BufferedReader(source), "stdin", Wishes(format="jsonl"))))]
    messages = iter(thread.messages)
    assert [next(messages).at for _ in range(3)] == [1.0, 2.0, 3.0]
    assert source.lines < 2000


# Slack


def slack_export(folder: Path) -> Path:
    write_json(folder / "channels.json", [{"id": "C1", "name": "general", "members": ["U1", "U2"]}])
    write_json(folder / "dms.json", [{"id": "D1", "members": ["U1", "U2"]}])
    write_json(
        folder / "users.json",
        [
            {"id": "U1", "name": "ann", "profile": {"display_name": "Ann", "real_name": "Ann Lee"}},
            {"id": "U2", "name": "bob", "profile": {"display_name": "", "real_name": "Bob Ray"}},
        ],
    )
    write_json(
        folder / "general" / "2026-04-08.json",
        [
            {"type": "message", "subtype": "channel_join", "user": "U2", "ts": "1775637400.000100", "text": "joined"},
            {
                "type": "message",
                "user": "U1",
                "ts": "1775637480.000200",
                "thread_ts": "1775637480.000200",
                "text": "Hi <@U2>, see <https://x.org/a|the docs> &amp; <#C1|general>, <!here>,"
                " <mailto:a@x.org|a@x.org>",
            },
            {
                "type": "message",
                "user": "U2",
                "ts": "1775637500.000300",
                "thread_ts": "1775637480.000200",
                "text": "<https://y.org>",
                "files": [{"name": "plan.pdf", "title": "The plan"}],
            },
        ],
    )
    write_json(
        folder / "general" / "2026-04-09.json",
        [
            {
                "type": "message",
                "subtype": "bot_message",
                "username": "deploybot",
                "ts": "1775723880.000100",
                "text": "",
                "attachments": [{"fallback": "build 7 failed", "text": "Build 7 *failed*"}],
            }
        ],
    )
    write_json(
        folder / "D1" / "2026-04-08.json", [{"type": "message", "user": "U9", "ts": "1775637480.1", "text": "psst"}]
    )
    return folder


SLACK: Read = [
    ("slack", "D1", "Ann, Bob Ray", [Message("1775637480.1", "psst", "U9", 1775637480.1)]),
    (
        "slack",
        "general",
        "#general",
        [
            Message(
                "1775637480.000200",
                "Hi @Bob Ray, see the docs (https://x.org/a) & #general, @here, a@x.org",
                "Ann",
                1775637480.0002,
            ),
            Message(
                "1775637500.000300",
                "https://y.org\n(file: The plan)",
                "Bob Ray",
                1775637500.0003,
                "1775637480.000200",
            ),
            Message("1775723880.000100", "Build 7 *failed*", "deploybot", 1775723880.0001),
        ],
    ),
]


def test_slack_in_a_folder(tmp_path: Path) -> None:
    assert read(slack_export(tmp_path / "export")) == SLACK


def zipped(folder: Path, archive: Path, top: str = "") -> Path:
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as file:
        for path in sorted(folder.rglob("*.json")):
            file.write(path, f"{top}{path.relative_to(folder).as_posix()}")
    return archive


@pytest.mark.parametrize("top", ["", "Acme Slack export/"])
def test_slack_in_a_zip_archive(tmp_path: Path, top: str) -> None:
    assert read(zipped(slack_export(tmp_path / "export"), tmp_path / "a.zip", top)) == SLACK


def test_damage_in_a_slack_export(tmp_path: Path) -> None:
    folder = slack_export(tmp_path / "export")
    (folder / "general" / "2026-04-09.json").write_text('[\n{"ts": "1"\n')
    with pytest.raises(InvalidValueError, match=r"general/2026-04-09\.json:3: no whole JSON"):
        read(folder)


def test_a_damaged_archive(tmp_path: Path) -> None:
    archive = zipped(slack_export(tmp_path / "export"), tmp_path / "a.zip")
    archive.write_bytes(archive.read_bytes()[:-40])
    with pytest.raises(InvalidValueError, match="no readable zip archive"):
        read(archive)


@pytest.mark.parametrize("method", [zipfile.ZIP_LZMA, zipfile.ZIP_BZIP2, zipfile.ZIP_DEFLATED, zipfile.ZIP_STORED])
@pytest.mark.parametrize("place", [0.1, 0.5, 0.9])
def test_damage_within_an_archive_is_told_however_it_was_packed(tmp_path: Path, method: int, place: float) -> None:
    chance = random.Random(method)
    rows = [{"thread": "a", "author": "x", "at": n, "text": str(chance.random())} for n in range(3000)]
    file = tmp_path / "a.zip"
    with zipfile.ZipFile(file, "w", method) as archive:
        archive.writestr("talk.jsonl", "".join(json.dumps(row) + "\n" for row in rows))
    data = bytearray(file.read_bytes())
    start = int(len(data) * place)
    data[start : start + 20] = bytes(byte ^ 0x15 for byte in data[start : start + 20])
    file.write_bytes(data)
    with pytest.raises(InvalidValueError, match=r"a\.zip"):
        read(file)


def test_lists_of_slack_without_an_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = slack_export(tmp_path / "export")
    monkeypatch.setattr("findling.sources.chats.slack._MOST_ENTRIES", 3)
    assert read(folder) == SLACK
    write_json(folder / "users.json", [{"id": f"U{number}"} for number in range(4)])
    with pytest.raises(InvalidValueError, match=r"users\.json lists more than 3"):
        read(folder)


def test_slack_needs_its_list_of_channels(tmp_path: Path) -> None:
    write_json(tmp_path / "2026-04-08.json", [])
    with pytest.raises(InvalidValueError, match=r"no channels\.json"):
        read(tmp_path, format="slack")
    with pytest.raises(InvalidValueError, match="no folder or zip archive"):
        read(tmp_path / "2026-04-08.json", format="slack")


# Discord


def discord_export() -> dict[str, Any]:
    return {
        "guild": {"id": "1", "name": "Gophers"},
        "channel": {"id": "42", "type": "GuildTextChat", "category": "Text", "name": "help"},
        "dateRange": {"after": None, "before": None},
        "messages": [
            {"id": "9", "type": "GuildMemberJoin", "timestamp": "2026-04-08T08:00:00+00:00", "content": "Joined"},
            {
                "id": "10",
                "type": "Default",
                "timestamp": "2026-04-08T08:38:00.1234567+00:00",
                "content": "hello <@7>",
                "author": {"id": "5", "name": "ann", "nickname": "Ann"},
                "mentions": [{"id": "7", "name": "bob", "nickname": "Bob"}],
                "attachments": [{"id": "1", "fileName": "cat.png"}],
                "embeds": [{"title": "A page", "description": "about cats"}],
            },
            {
                "id": "11",
                "type": "Reply",
                "timestamp": "2026-04-08T08:39:00+00:00",
                "content": "hey",
                "author": {"id": "7", "name": "bob", "nickname": None},
                "reference": {"messageId": "10", "channelId": "42", "guildId": "1"},
            },
        ],
        "messageCount": 3,
    }


def test_discord(tmp_path: Path) -> None:
    assert read(write_json(tmp_path / "help.json", discord_export())) == [
        (
            "discord",
            "42",
            "Gophers › #help",
            [
                Message("10", "hello @Bob\nA page\nabout cats\n(file: cat.png)", "Ann", 1775637480.123456),
                Message("11", "hey", "bob", 1775637540.0, "10"),
            ],
        )
    ]


def test_a_folder_of_channels(tmp_path: Path) -> None:
    other = discord_export()
    other["channel"] = {"id": "43", "type": "DirectTextChat", "name": "Bob"}
    write_json(tmp_path / "a.json", discord_export())
    write_json(tmp_path / "b.json", other)
    write_json(tmp_path / "b.json_Files" / "x.json", {"no": "chat"})
    assert [thread[1:3] for thread in read(tmp_path)] == [("42", "Gophers › #help"), ("43", "Bob")]


def test_discord_without_a_channel(tmp_path: Path) -> None:
    with pytest.raises(InvalidValueError, match="no channel is named before its messages"):
        read(write_json(tmp_path / "a.json", {"guild": {}, "messages": []}))


# ChatGPT


def node(id_: str, parent: str | None, role: str, *parts: Any, **more: Any) -> dict[str, Any]:
    content = {"content_type": more.pop("content_type", "text"), "parts": list(parts)}
    message = {"id": id_, "author": {"role": role}, "create_time": more.pop("at", None), "content": content, **more}
    return {"id": id_, "message": message, "parent": parent, "children": []}


def chatgpt_export() -> list[dict[str, Any]]:
    nodes = [
        {"id": "root", "message": None, "parent": None, "children": ["sys"]},
        node("sys", "root", "system", ""),
        node("ctx", "sys", "user", "profile", content_type="user_editable_context"),
        node("u1", "ctx", "user", "What is a monad?", at=1775637480.5),
        node("old", "u1", "assistant", "A burrito.", at=1775637481.0),
        node("think", "u1", "assistant", "hmm", content_type="thoughts"),
        node("a1", "think", "assistant", "A monoid", "in a category.", at=1775637482.0),
        node("t1", "a1", "tool", "search results"),
        node("hid", "t1", "user", "hidden", metadata={"is_visually_hidden_from_conversation": True}),
        node("u2", "hid", "user", {"content_type": "image_asset_pointer"}, "and this?", content_type="multimodal_text"),
    ]
    mapping = {entry["id"]: entry for entry in nodes}
    for entry in nodes[1:]:
        mapping[entry["parent"]]["children"].append(entry["id"])
    first = {"title": "Monads", "create_time": 1.0, "mapping": mapping, "current_node": "u2", "conversation_id": "c1"}
    return [first, {"title": None, "mapping": {}, "current_node": None, "id": "c2"}]


CHATGPT: Read = [
    (
        "chatgpt",
        "c1",
        "Monads",
        [
            Message("u1", "What is a monad?", "user", 1775637480.5),
            Message("a1", "A monoid\nin a category.", "assistant", 1775637482.0, "u1"),
            Message("u2", "and this?", "user", None, "a1"),
        ],
    ),
    ("chatgpt", "c2", "", []),
]


def test_chatgpt_follows_the_current_branch(tmp_path: Path) -> None:
    assert read(write_json(tmp_path / "conversations.json", chatgpt_export())) == CHATGPT


def test_chatgpt_in_its_archive(tmp_path: Path) -> None:
    write_json(tmp_path / "export" / "conversations.json", chatgpt_export())
    write_json(tmp_path / "export" / "user.json", {"id": "u"})
    assert read(zipped(tmp_path / "export", tmp_path / "a.zip")) == CHATGPT
    assert read(tmp_path / "export") == CHATGPT


def test_a_tree_without_a_current_node_or_with_a_circle(tmp_path: Path) -> None:
    conversation = chatgpt_export()[0]
    del conversation["current_node"]
    assert [m.id for m in read(write_json(tmp_path / "a.json", [conversation]))[0][3]] == ["u1", "a1", "u2"]
    conversation["mapping"]["u1"]["parent"] = "u2"
    conversation["current_node"] = "u2"
    assert [m.id for m in read(write_json(tmp_path / "a.json", conversation))[0][3]] == ["u1", "a1", "u2"]


# Claude


def claude_export() -> list[dict[str, Any]]:
    return [
        {
            "uuid": "k1",
            "name": "Tea",
            "created_at": "2026-04-08T08:38:00.000000Z",
            "account": {"uuid": "me"},
            "chat_messages": [
                {
                    "uuid": "m1",
                    "text": "old form",
                    "content": [{"type": "text", "text": "Which tea?"}],
                    "sender": "human",
                    "created_at": "2026-04-08T08:38:00.500000Z",
                    "attachments": [{"file_name": "paste.txt", "extracted_content": "a list of teas"}],
                    "files": [{"file_name": "cup.png"}],
                },
                {
                    "uuid": "m2",
                    "text": "",
                    "content": [
                        {"type": "thinking", "thinking": "green or black"},
                        {"type": "text", "text": "Green."},
                        {"type": "tool_use", "name": "web"},
                        {"type": "text", "text": "Try it."},
                    ],
                    "sender": "assistant",
                    "created_at": "2026-04-08T08:38:05Z",
                    "parent_message_uuid": "m1",
                },
                {"uuid": "m3", "text": "Thanks", "sender": "human", "created_at": "2026-04-08T08:39:00Z"},
            ],
        }
    ]


def test_claude(tmp_path: Path) -> None:
    assert read(write_json(tmp_path / "conversations.json", claude_export())) == [
        (
            "claude",
            "k1",
            "Tea",
            [
                Message("m1", "Which tea?\n(file: paste.txt)\na list of teas\n(file: cup.png)", "human", 1775637480.5),
                Message("m2", "Green.\nTry it.", "assistant", 1775637485.0, "m1"),
                Message("m3", "Thanks", "human", 1775637540.0),
            ],
        )
    ]


# Detection


@pytest.mark.parametrize("export", [discord_export(), chatgpt_export(), claude_export()])
def test_what_comes_through_a_pipe_is_told_as_well(tmp_path: Path, export: Any) -> None:
    expected = read(write_json(tmp_path / "a.json", export))
    data = json.dumps(export).encode()
    assert unfolded(read_chats_stream(io.BytesIO(data), "stdin", Wishes())) == expected


@pytest.mark.parametrize("text", ["hello", "{}", '{"name": "package", "version": 1}', "[[1]]", "\x00\x01"])
def test_what_is_no_chat_is_refused(tmp_path: Path, text: str) -> None:
    file = tmp_path / "a.json"
    file.write_text(text)
    with pytest.raises(InvalidValueError, match="no chat export"):
        read(file)


@pytest.mark.parametrize("text", ["", "\ufeff\n", "[]", " [\n] "])
def test_an_export_without_anything_in_it(tmp_path: Path, text: str) -> None:
    file = tmp_path / "a.json"
    file.write_text(text, encoding="utf-8")
    assert read(file) == []
    assert read(tmp_path) == []
    assert unfolded(read_chats_stream(io.BytesIO(text.encode()), "stdin", Wishes())) == []
    write_json(tmp_path / "b.json", claude_export())
    assert read(tmp_path) == read(tmp_path / "b.json")


@pytest.mark.parametrize("format_", ["jsonl", "discord", "chatgpt", "claude"])
def test_an_empty_file_of_any_format(tmp_path: Path, format_: str) -> None:
    file = tmp_path / "a.json"
    file.touch()
    assert read(file, format=format_) == []


def test_nothing_of_a_folder_is_read_when_a_file_is_something_else(tmp_path: Path) -> None:
    write_json(tmp_path / "a.json", discord_export())
    write_json(tmp_path / "package.json", {"name": "x"})
    with pytest.raises(InvalidValueError, match=r"package\.json is no chat export"):
        next(read_chats(tmp_path, Wishes()))


def test_the_wrong_format(tmp_path: Path) -> None:
    file = write_json(tmp_path / "a.json", claude_export())
    with pytest.raises(InvalidValueError, match="a conversation without mapping"):
        read(file, format="chatgpt")


@pytest.mark.parametrize("wish", ["thread", "title"])
def test_threads_that_are_named_in_the_export_take_no_other_name(tmp_path: Path, wish: str) -> None:
    file = write_json(tmp_path / "a.json", claude_export())
    with pytest.raises(UsageError, match=f"--{wish} is for JSON lines"):
        read(file, **{wish: "x"})


def test_what_is_not_there(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    for path in (tmp_path / "none.json", tmp_path / "empty"):
        with pytest.raises(PathNotFoundError):
            read(path)


@pytest.mark.parametrize("cut", range(5, 95, 9))
def test_a_cut_off_export_ends_in_a_clear_error(tmp_path: Path, cut: int) -> None:
    for name, export in {"d": discord_export(), "g": chatgpt_export(), "c": claude_export()}.items():
        data = json.dumps(export, indent=1)
        file = tmp_path / f"{name}.json"
        file.write_text(data[: len(data) * cut // 100])
        with pytest.raises(FindlingError) as raised:
            read(file)
        assert str(file) in raised.value.message


@pytest.mark.skipif(sys.platform == "win32", reason="links of POSIX")
def test_a_link_in_an_export_is_not_followed(tmp_path: Path) -> None:
    from findling.sources.chats.export_files import folder_files

    (tmp_path / "export").mkdir()
    (tmp_path / "secret.json").write_text("[]")
    (tmp_path / "export" / "own.json").write_text("[]")
    (tmp_path / "export" / "linked.json").symlink_to(tmp_path / "secret.json")
    assert folder_files(tmp_path / "export").names == ["own.json"]
