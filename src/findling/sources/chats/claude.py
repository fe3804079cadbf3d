"""Claude exports: conversations with their messages in a row."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import IO, Any

from findling.domain.errors import InvalidValueError
from findling.domain.records import Message, Thread
from findling.sources.chats.conversations import conversations
from findling.sources.chats.values import first_text, named_files, objects, text, time

__all__ = ["read_claude"]


def read_claude(stream: IO[bytes], name: str, source: str) -> Iterator[Thread]:
    """One thread for each conversation. Raises InvalidValueError naming the line of what is no JSON."""
    for line, conversation in conversations(stream, name, "chat_messages"):
        id_ = text(conversation, "uuid")
        if not id_:
            raise InvalidValueError(f"{name}:{line}: a conversation without a uuid", hint="export it again")
        yield Thread(source, id_, _messages(conversation), title=text(conversation, "name"))


def _messages(conversation: Mapping[str, Any]) -> Iterator[Message]:
    for number, entry in enumerate(objects(conversation["chat_messages"]), start=1):
        yield Message(
            text(entry, "uuid") or str(number),
            _said(entry),
            text(entry, "sender"),
            time(entry.get("created_at")),
            text(entry, "parent_message_uuid"),
        )


def _said(entry: Mapping[str, Any]) -> str:
    """The blocks of text, or the plain text of older exports; then what was pasted, and the names of files."""
    blocks = [text(block, "text") for block in objects(entry.get("content")) if text(block, "type") == "text"]
    said = [block for block in blocks if block.strip()] or [text(entry, "text")]
    for attachment in objects(entry.get("attachments")):
        said += [*named_files([attachment], "file_name"), first_text(attachment, ("extracted_content",))]
    said += named_files(entry.get("files"), "file_name")
    return "\n".join(part for part in said if part.strip())
