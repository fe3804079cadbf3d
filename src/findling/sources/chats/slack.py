"""Slack exports: lists of channels and users, and a folder of days for each channel."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from findling.domain.errors import InvalidValueError
from findling.domain.records import Message, Thread
from findling.sources.chats.export_files import ExportFiles
from findling.sources.chats.json_stream import JsonStream, first_text, named_files, objects, text, time

_MARK = re.compile(r"<([@#!]?)([^<>|]+)(?:\|([^<>]*))?>")
_CHANNELS = ("channels.json", "groups.json", "mpims.json", "dms.json")
_USERS = ("users.json", "org_users.json")
_MOST_ENTRIES = 1_000_000
_LONGEST_NAME = 200  # both bound the memory of lists, whatever a small archive unpacks to
# Subtypes of messages that Slack writes about people coming and going.
_LEFT_OUT = frozenset(
    "channel_join channel_leave group_join group_leave mpim_join channel_archive channel_unarchive group_archive"
    " group_unarchive bot_add bot_remove message_deleted tombstone huddle_thread".split()
)


class Names(NamedTuple):
    """Id → name of users and of channels."""

    users: dict[str, str]
    channels: dict[str, str]


def readable(text: str, names: Names) -> str:
    """The text as people saw it: `<@U1>` is `@Ann`, `<https://x.org|docs>` is `docs (https://x.org)`."""
    return html.unescape(_MARK.sub(lambda mark: _written_out(mark, names), text)).strip()


def _written_out(mark: re.Match[str], names: Names) -> str:
    kind, target, label = mark[1], mark[2], mark[3] or ""
    if kind == "@":
        return "@" + (names.users.get(target) or label or target)
    if kind == "#":
        return "#" + (names.channels.get(target) or label or target)
    if kind == "!":
        # `<!here>`, `<!subteam^S1|@team>`, `<!date^1392734382^{date}|Feb 18>`
        return label or "@" + target.partition("^")[0]
    address = target.removeprefix("mailto:").removeprefix("tel:")
    return f"{label} ({target})" if label and label not in (target, address) else address


def is_slack(names: list[str]) -> bool:
    """Whether an export with such files is one of Slack."""
    return any(name in _CHANNELS for name in names)


def read_slack(files: ExportFiles, source: str) -> Iterator[Thread]:
    """One thread for each channel, private channel and direct conversation, by the name of its folder.

    Raises InvalidValueError naming file and line of what is no JSON.
    """
    present = files.names
    users = {_short(user, "id"): _user_name(user) for user in _entries(files, present, _USERS)}
    days: dict[str, list[str]] = {}
    for name in present:
        if "/" in name:
            days.setdefault(name.rpartition("/")[0], []).append(name)
    names, titles = Names(users, {}), dict[str, str]()
    for channel in _entries(files, present, _CHANNELS):
        names.channels[_short(channel, "id")] = _short(channel, "name")
        titles |= {
            folder: _title(channel, users) for folder in (text(channel, "name"), text(channel, "id")) if folder in days
        }
    for folder, own_days in days.items():
        if folder in titles:
            yield Thread(source, folder, _messages(files, own_days, names), title=titles[folder])


def _entries(files: ExportFiles, present: list[str], names: tuple[str, ...]) -> Iterator[Mapping[str, Any]]:
    """The entries of lists, one after the other: of each, little more is kept than its name."""
    for name in names:
        if name not in present:
            continue
        with files.opened(name) as stream:
            for count, entry in enumerate(JsonStream(stream, f"{files.name}/{name}").items()):
                if count >= _MOST_ENTRIES:
                    what = f"{files.name}/{name} lists more than {_MOST_ENTRIES:,}"
                    raise InvalidValueError(what, hint="export it again")
                if isinstance(entry, dict):
                    yield entry


def _messages(files: ExportFiles, days: list[str], names: Names) -> Iterator[Message]:
    for day in days:
        with files.opened(day) as stream:
            for entry in JsonStream(stream, f"{files.name}/{day}").items():
                if isinstance(entry, dict) and (message := _message(entry, names)):
                    yield message


def _message(entry: Mapping[str, Any], names: Names) -> Message | None:
    """The message, or `None` for an entry that is none."""
    id_ = text(entry, "ts")
    if not id_ or text(entry, "subtype") in _LEFT_OUT or text(entry, "type") not in ("message", ""):
        return None
    said = [readable(text(entry, "text"), names)]
    for attachment in objects(entry.get("attachments")):
        added = readable(first_text(attachment, ("text",), ("fallback",), ("title",)), names)
        said += [added] if added and added not in said[0] else []
    said += named_files(entry.get("files"), "title", "name")
    parent = text(entry, "thread_ts")
    return Message(id_, "\n".join(filter(None, said)), _author(entry, names), _at(id_), parent if parent != id_ else "")


def _author(entry: Mapping[str, Any], names: Names) -> str:
    user = text(entry, "user")
    profile = ("user_profile", "display_name"), ("user_profile", "real_name")
    named = names.users.get(user) or first_text(entry, *profile, ("username",), ("bot_profile", "name"))
    return named or user or text(entry, "bot_id")


def _at(ts: str) -> float | None:
    try:
        return time(float(ts))
    except ValueError:
        return None


def _user_name(user: Mapping[str, Any]) -> str:
    profile = ("profile", "display_name"), ("profile", "real_name")
    return first_text(user, *profile, ("real_name",), ("name",), ("id",))[:_LONGEST_NAME]


def _short(entry: Mapping[str, Any], key: str) -> str:
    return text(entry, key)[:_LONGEST_NAME]


def _title(channel: Mapping[str, Any], users: Mapping[str, str]) -> str:
    name = text(channel, "name")
    if name and not name.startswith("mpdm-"):
        return f"#{name}"
    members = channel.get("members")
    people = [users.get(member, member) for member in members if isinstance(member, str)] if members else []
    return ", ".join(people) or name
