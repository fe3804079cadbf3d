"""Directives, tools and knowledge as they lie in `.ai` folders: which files there are, and what each says of itself."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from findling.domain.ports import SkippedPath
from findling.domain.resources import Resource
from findling.sources.files.discovery import scan
from findling.sources.files.file_text import UnreadableError, decode, read_bytes
from findling.sources.files.file_types import file_type
from findling.sources.files.rule_patterns import Rules
from findling.text.chunking.outlines import OUTLINES

Header = dict[str, str | tuple[str, ...]]
"""Metadata at the head of a text."""

_LONGEST = 20_000  # characters that a header may lie in
_MOST_LINES = 200
_FRONT = re.compile(r"(---|\+\+\+)[ \t]*\n(.*?)\n(?:\1|\.\.\.)[ \t]*(?:\n|\Z)", re.DOTALL)
_KEY = re.compile(r"([A-Za-z_][\w -]{0,40}?)[ \t]*:(?:[ \t]+(.*))?$")
_DOCSTRING = re.compile(r"(?:\s|#[^\n]*\n)*+[rRuU]?(\"\"\"|''')(.*?)\1", re.DOTALL)
_ASSIGNED = re.compile(r"^__(name|title|description|tool_description|category|version|tags)__\s*=\s*(.+)$", re.M)
# Nothing is tried twice (`*+`): 20,000 stars or spaces must not take seconds.
_BLOCK_COMMENT = re.compile(r"\s*+/\*(.*?)\*/", re.DOTALL)
_LINE_COMMENTS = re.compile(r"\s*+((?:[ \t]*+(?:#|//|--|;;?|%)[^\n]*+(?:\n|\Z))+)")
_DRESS = re.compile(r"^[ \t]*(?:\*|#+|//+|--|;+|%+)?[ \t]?")
_COMMENT_KEYS = frozenset({"name", "title", "description", "category", "tags", "version", "author"})
# `tags: a, b`, or `@tags a, b` as in JSDoc.
_COMMENT_KEY = re.compile(r"[ \t]*+(?=@|\w++[ \t]*+:)@?(\w++)(?:[ \t]*+:)?+[ \t]++(\S.*)$")
_TAG = re.compile(r"<(name|title|description|category|tags|version|author)>(.{0,2000}?)</\1>", re.DOTALL)
_ROOT = re.compile(r"<(directive|tool|knowledge)\b([^<>]*)>")
_ATTRIBUTE = re.compile(r"\b(\w++)\s*+=\s*+(?:\"([^\"]*)\"|'([^']*)')")
AI_FOLDER = ".ai"
KINDS = {"directives": "directive", "tools": "tool", "knowledge": "knowledge"}
"""Folder → type of what lies in it."""

PROJECT, USER = "project", "user"
"""The scopes, the first of which wins."""


def read_header(text: str, lang: str) -> Header:
    """The keys of a header in lower case, each with a text or a list of texts; of tables, `table.key`."""
    start = text[:_LONGEST].replace("\r\n", "\n")
    front = _FRONT.match(start)
    if front is not None and front[1] == "+++":
        import tomllib

        return _loaded(tomllib.loads, front[2])
    if front is not None or lang == "yaml":
        return _yaml(front[2] if front else start)
    if lang == "json":
        return _loaded(json.loads, text)
    if lang == "python":
        docstring = _DOCSTRING.match(start)
        return _from_comment(docstring[2] if docstring else _leading_comment(start)) | _assigned(start)
    return _tagged(start) if lang in ("markdown", "xml", "html", "text") else _from_comment(_leading_comment(start))


def _yaml(text: str) -> Header:
    """The part of YAML that headers are written in."""
    found: Header = {}
    lines = [line for line in text.split("\n")[:_MOST_LINES] if line.strip() and not line.lstrip().startswith("#")]
    position = 0
    while position < len(lines):
        key = _KEY.match(lines[position])
        position += 1
        if key is None:
            continue
        inner = []
        while position < len(lines) and (lines[position][0] in " \t" or lines[position].startswith("- ")):
            inner.append(lines[position])
            position += 1
        _take(found, _plain_key(key[1]), (key[2] or "").strip(), inner)
    return found


def _take(found: Header, name: str, value: str, inner: list[str]) -> None:
    """Read one key with its value behind it and below it."""
    stripped = [line.strip() for line in inner]
    if value[:1] in ("|", ">"):
        found[name] = ("\n" if value[0] == "|" else " ").join(stripped)
    elif value:
        whole = " ".join((_without_comment(value), *stripped))
        found[name] = _value(whole)
    elif stripped and all(line.startswith("- ") for line in stripped):
        found[name] = tuple(_unquoted(_without_comment(line[2:])) for line in stripped)
    else:
        for line in stripped:
            if (key := _KEY.match(line)) and key[2]:
                _take(found, f"{name}.{_plain_key(key[1])}", key[2].strip(), [])


def _value(text: str) -> str | tuple[str, ...]:
    return _inline_list(text) if text.startswith("[") else _unquoted(text)


def _inline_list(value: str) -> tuple[str, ...]:
    parts = re.findall(r'\s*(?:"([^"]*)"|\'([^\']*)\'|([^,\[\]]+))', value)
    texts = (next(filter(None, part), "").strip() for part in parts)
    return tuple(text for text in texts if text)


def _unquoted(value: str) -> str:
    value = value.strip()
    return value[1:-1] if len(value) > 1 and value[0] == value[-1] and value[0] in "\"'" else value


def _without_comment(value: str) -> str:
    if value.lstrip()[:1] in ('"', "'"):
        quoted = re.match(r"\s*(\"[^\"]*\"|'[^']*')\s*(?:#.*)?$", value)
        return quoted[1] if quoted else value
    return re.split(r"\s#", value, maxsplit=1)[0]


def _loaded(load: Callable[[str], object], text: str) -> Header:
    try:
        value = load(text)
        return _flat(value) if isinstance(value, dict) else {}
    except (ValueError, RecursionError):  # neither TOML nor JSON, a number of 5,000 digits, lists in lists
        return {}


def _flat(table: Mapping[str, object], prefix: str = "") -> Header:
    found: Header = {}
    for key, value in table.items():
        name = prefix + _plain_key(key)
        if isinstance(value, dict) and not prefix:
            found |= _flat(value, f"{name}.")
        elif isinstance(value, list):
            found[name] = tuple(_plain(each) for each in value if isinstance(each, (str, int, float)))
        elif isinstance(value, (str, int, float)):
            found[name] = _plain(value)
    return found


def _plain(value: object) -> str:
    """A value as text that can be stored: JSON can spell halves of characters, and zeros."""
    return str(value).encode(errors="replace").decode().replace("\0", "")


def _assigned(text: str) -> Header:
    """`__version__ = "1.0"` and the like."""
    found: Header = {}
    for name, value in _ASSIGNED.findall(text):
        read = _without_comment(value)
        listed = read.startswith(("[", "("))
        found[name.removeprefix("tool_")] = _inline_list(read.strip("()")) if listed else _unquoted(read)
    return found


def _leading_comment(text: str) -> str:
    """The first comment without what makes it one; a line that names the interpreter is none of it."""
    text = re.sub(r"\A#!.*\n?", "", text)
    found = _BLOCK_COMMENT.match(text) or _LINE_COMMENTS.match(text)
    return "\n".join(_DRESS.sub("", line) for line in found[1].lstrip("*").split("\n")) if found else ""


def _from_comment(comment: str) -> Header:
    """`key: value` lines; the first paragraph of the rest is the description where no line says so."""
    found: Header = {}
    rest: list[str] = []
    for line in comment.strip().split("\n")[:_MOST_LINES]:
        key = _COMMENT_KEY.match(line)
        if key is not None and key[1].lower() in _COMMENT_KEYS:
            value = key[2].strip()
            found.setdefault(key[1].lower(), _value(value))
        else:
            rest.append(line.strip())
    paragraph = " ".join("\n".join(rest).strip().partition("\n\n")[0].split())
    return {"description": paragraph, **found} if paragraph else found


def _tagged(text: str) -> Header:
    """`<directive name="…" version="…">` and the tags that describe it, wherever they begin."""
    root = _ROOT.search(text)
    if root is None:
        return {}
    found: Header = {name.lower(): one or other for name, one, other in _ATTRIBUTE.findall(root[2])}
    for name, value in _TAG.findall(text, root.end()):
        found.setdefault(name, " ".join(re.sub(r"<[^<>]*>", " ", value).split()))
    return found


def _plain_key(key: str) -> str:
    return key.strip().lower().replace(" ", "_").replace("-", "_")


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
    """The files of all types in one `.ai` folder, in order, and what was left out and why.

    Secrets, hidden files and links are left out as anywhere else. Ignore files do not count: users name these folders.
    Of several files with one id the first is taken.
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
    # Version of header reading, part of the digest: raise it when headers read differently.
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
