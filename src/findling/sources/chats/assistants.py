"""Exports of ChatGPT and Claude: an array of conversations, or a single one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import IO, Any

from findling.domain.errors import InvalidValueError
from findling.domain.records import Message, Thread
from findling.sources.chats.json_stream import JsonStream, first_text, named_files, objects, text, time

# System prompts and the output of tools are no part of what the two have said.
_AUTHORS = frozenset({"user", "assistant"})
# Types of content that people see; thoughts and profiles are others.
_TEXTS = frozenset({"text", "multimodal_text", "code"})


def read_claude(stream: IO[bytes], name: str, source: str) -> Iterator[Thread]:
    """One thread for each conversation. Raises InvalidValueError naming the line of what is no JSON."""
    for id_, conversation in _conversations(stream, name, "chat_messages", "uuid"):
        yield Thread(source, id_, _claude_messages(conversation), title=text(conversation, "name"))


def read_chatgpt(stream: IO[bytes], name: str, source: str) -> Iterator[Thread]:
    """One thread for each conversation. Raises InvalidValueError naming the line of what is no JSON."""
    for id_, conversation in _conversations(stream, name, "mapping", "conversation_id", "id"):
        yield Thread(source, id_, _chatgpt_messages(conversation), title=text(conversation, "title"))


def _conversations(stream: IO[bytes], name: str, needed: str, *ids: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Each conversation with its id, of which `ids` are the keys."""
    json = JsonStream(stream, name)
    if not json.peek():  # an empty file
        return
    entries = json.items() if json.peek() == "[" else iter([json.value()])
    for entry in entries:
        if not isinstance(entry, dict) or needed not in entry:
            hint = "is this the format that --format names?"
            raise InvalidValueError(f"{name}:{json.line}: a conversation without {needed}", hint=hint)
        id_ = first_text(entry, *((key,) for key in ids))
        if not id_:
            raise InvalidValueError(f"{name}:{json.line}: a conversation without {ids[-1]}", hint="export it again")
        yield id_, entry


def _claude_messages(conversation: Mapping[str, Any]) -> Iterator[Message]:
    for number, entry in enumerate(objects(conversation["chat_messages"]), start=1):
        yield Message(
            text(entry, "uuid") or str(number),
            _claude_text(entry),
            text(entry, "sender"),
            time(entry.get("created_at")),
            text(entry, "parent_message_uuid"),
        )


def _claude_text(entry: Mapping[str, Any]) -> str:
    """The blocks of text, or the plain text of older exports; then what was pasted, and the names of files."""
    blocks = [text(block, "text") for block in objects(entry.get("content")) if text(block, "type") == "text"]
    said = [block for block in blocks if block.strip()] or [text(entry, "text")]
    for attachment in objects(entry.get("attachments")):
        said += [*named_files([attachment], "file_name"), first_text(attachment, ("extracted_content",))]
    said += named_files(entry.get("files"), "file_name")
    return "\n".join(part for part in said if part.strip())


def _chatgpt_messages(conversation: Mapping[str, Any]) -> Iterator[Message]:
    previous = ""
    for node in _branch(conversation):
        message = node.get("message")
        said = _chatgpt_text(message)
        if said and isinstance(message, dict):
            id_ = first_text(message, ("id",)) or first_text(node, ("id",))
            yield Message(id_, said, text(message, "author", "role"), time(message.get("create_time")), previous)
            previous = id_


def _branch(conversation: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The nodes from the root to the current one, or to the last one without children."""
    nodes = conversation["mapping"]
    nodes = {id_: node for id_, node in nodes.items() if isinstance(node, dict)} if isinstance(nodes, dict) else {}
    leaves = [id_ for id_, node in nodes.items() if not node.get("children")]
    at = text(conversation, "current_node")
    at = at if at in nodes else (leaves[-1] if leaves else "")
    branch: dict[str, Mapping[str, Any]] = {}
    while at in nodes and at not in branch:  # a damaged tree may lead in a circle
        branch[at] = nodes[at]
        at = text(nodes[at], "parent")
    return list(branch.values())[::-1]


def _chatgpt_text(message: object) -> str:
    """Text of a message for people; empty for calls of tools and the like."""
    if not isinstance(message, dict) or text(message, "author", "role") not in _AUTHORS:
        return ""
    metadata, content = message.get("metadata"), message.get("content")
    is_hidden = isinstance(metadata, dict) and metadata.get("is_visually_hidden_from_conversation") is True
    if is_hidden or text(content, "content_type") not in _TEXTS or not isinstance(content, dict):
        return ""
    parts = content.get("parts")
    parts = parts if isinstance(parts, list) else [content.get("text")]
    # A part of a multimodal message is a text, or a picture, or a recording with its transcript.
    texts = (part if isinstance(part, str) else text(part, "text") for part in parts)
    return "\n".join(part for part in texts if part.strip())
