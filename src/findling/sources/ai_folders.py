"""Directives, tools and knowledge as they lie in `.ai` folders: which files there are, and what each says of itself."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from findling.domain.ports import SkippedPath
from findling.domain.resources import Resource
from findling.sources.files.discovery import scan
from findling.sources.files.file_text import UnreadableError, decode, read_bytes
from findling.sources.files.file_types import file_type
from findling.sources.files.headers import Header, read_header
from findling.sources.files.rule_patterns import Rules
from findling.text.chunking.outlines import OUTLINES

__all__ = ["AI_FOLDER", "KINDS", "PROJECT", "USER", "AiFile", "describe", "find_ai_files", "read_ai_file"]

AI_FOLDER = ".ai"

KINDS = {"directives": "directive", "tools": "tool", "knowledge": "knowledge"}
"""Folder → type of what lies in it."""

PROJECT, USER = "project", "user"
"""The scopes, the first of which wins."""


class AiFile(NamedTuple):
    """One file in the folder of a scope. `id` is its path below the folder of its type, without the extension.

    `path` begins with `.ai/`.
    """

    type: str
    scope: str
    id: str
    path: str
    absolute: str

    @property
    def rid(self) -> str:
        """The id of the resource: the same whether or not another scope has a file of this id, too."""
        return f"{self.type}:{self.scope}/{self.id}"


def find_ai_files(folder: Path, scope: str, max_size: int) -> Iterator[AiFile | SkippedPath]:
    """The files below the folders of all types in one `.ai` folder, in order, and what was left out and why.

    Secrets, hidden files and links are left out as anywhere else; ignore files do not count, since these folders are
    asked for by name. Of several files with one id the first is taken.
    """
    rules = Rules(use_ignore_files=False, max_file_size=max_size, max_document_size=max_size)
    for name, type_name in KINDS.items():
        root = folder / name
        if not root.is_dir() or root.is_symlink():
            continue
        seen: dict[str, str] = {}
        for entry in scan(str(root), rules):
            path = f"{AI_FOLDER}/{name}/{entry.path}"
            if isinstance(entry, SkippedPath):
                yield entry._replace(path=path)
                continue
            own = PurePosixPath(entry.path).with_suffix("").as_posix()
            if file_type(entry.path.rpartition("/")[2]).kind == "document":
                yield SkippedPath(path, "unsupported", "only text is read here")
            elif own in seen:
                yield SkippedPath(path, "excluded", f"{seen[own]} has the same id")
            else:
                seen[own] = path
                yield AiFile(type_name, scope, own, path, str(root / entry.path))


def read_ai_file(file: AiFile, max_size: int) -> tuple[str, str, float]:
    """The text of a file, the digest of its bytes, and when it changed. Raises UnreadableError."""
    from hashlib import blake2b

    data, status = read_bytes(file.absolute, max_size, follow_symlink=False)
    # What is made of the bytes belongs to the digest: raised when headers are read in another way.
    digest = blake2b(data, digest_size=16, person=b"ai-folders-1").hexdigest()
    text, _ = decode(data)
    if not text.strip():
        raise UnreadableError("empty")
    return text, digest, status.st_mtime


def describe(file: AiFile, text: str, digest: str, changed_at: float) -> Resource:
    """The resource that a file is; its text is the file's, so that lines are those of the file."""
    kind = file_type(file.path.rpartition("/")[2])
    header = read_header(text, kind.lang)
    folder, _, stem = file.id.rpartition("/")
    name = _text(header, "name") or stem
    category = _text(header, "category") or folder
    fields = {
        "name": name,
        "description": _text(header, "description"),
        "category": category,
        "version": _text(header, "version"),
        "scope": file.scope,
        "digest": digest,
        # A path is that of something below the root; what lies elsewhere is named in full.
        "file": "" if file.scope == PROJECT else file.absolute,
    }
    headings = OUTLINES["markdown"](text).headings if kind.lang == "markdown" else []
    return Resource(
        rid=file.rid,
        type=file.type,
        title=_text(header, "title") or (headings[0].title if headings else name),
        path=file.path if file.scope == PROJECT else "",
        author=_text(header, "author"),
        lang=kind.lang,
        tags=tuple(dict.fromkeys((*_list(header, "tags"), *filter(None, [category])))),
        updated_at=changed_at,
        fields={key: value for key, value in fields.items() if value},
    )


def _text(header: Header, key: str) -> str:
    """A value by its key, or by the same key in a table of metadata."""
    value = header.get(key) or header.get(f"metadata.{key}") or ""
    return " ".join((value if isinstance(value, str) else ", ".join(value)).split())


def _list(header: Header, key: str) -> tuple[str, ...]:
    value = header.get(key) or header.get(f"metadata.{key}") or ()
    return tuple(filter(None, (part.strip() for part in value.split(",")))) if isinstance(value, str) else value
