"""Discord channels as DiscordChatExporter writes them: one JSON object a channel, with its messages in it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import IO, Any

from findling.domain.errors import InvalidValueError
from findling.domain.records import Message, Thread
from findling.sources.chats.json_stream import JsonStream, first_text, named_files, objects, text, time

_ABOUT = ("guild", "channel")
# Types of messages that Discord writes by itself.
_LEFT_OUT = frozenset(
    "RecipientAdd RecipientRemove Call ChannelNameChange ChannelIconChange ChannelPinnedMessage GuildMemberJoin"
    " ThreadCreated".split()
)
_MENTION = re.compile(r"<@!?(\d+)>")


def read_discord(stream: IO[bytes], name: str, source: str) -> Iterator[Thread]:
    """The channel as one thread, by its id. Raises InvalidValueError naming the line of what is no JSON."""
    json = JsonStream(stream, name)
    if not json.peek():  # an empty file
        return
    about: dict[str, Any] = {}
    for key in json.keys():  # noqa: SIM118 - it is no mapping
        if key != "messages":
            value = json.value()
            if key in _ABOUT:
                about[key] = value
            continue
        channel = text(about, "channel", "id")
        if not channel:
            hint = "export it as JSON again"
            raise InvalidValueError(f"{name}:{json.line}: no channel is named before its messages", hint=hint)
        messages = (message for entry in json.items() if (message := _message(entry)) is not None)
        yield Thread(source, channel, messages, title=_title(about))
        for _ in messages:  # what follows the messages can only be read behind them
            pass


def _title(about: Mapping[str, Any]) -> str:
    channel = text(about, "channel", "name")
    is_direct = text(about, "channel", "type").startswith("Direct")
    return channel if is_direct else " › ".join(filter(None, (text(about, "guild", "name"), f"#{channel}")))


def _message(entry: object) -> Message | None:
    """The message, or `None` for an entry that is none."""
    id_ = text(entry, "id")
    if not isinstance(entry, dict) or not id_ or text(entry, "type") in _LEFT_OUT:
        return None
    names = {text(user, "id"): _name(user) for user in objects(entry.get("mentions"))}
    said = [_MENTION.sub(lambda mark: f"@{names.get(mark[1]) or mark[1]}", text(entry, "content"))]
    for embed in objects(entry.get("embeds")):
        said += [first_text(embed, ("title",)), first_text(embed, ("description",))]
    said += named_files(entry.get("attachments"), "fileName")
    return Message(
        id_,
        "\n".join(part for part in said if part.strip()),
        _name(entry.get("author")),
        time(entry.get("timestamp")),
        text(entry, "reference", "messageId"),
    )


def _name(user: object) -> str:
    return first_text(user, ("nickname",), ("name",), ("id",))
