"""Items: from a file or stream of JSON objects to resources, with every field where it is searched."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from itertools import chain
from typing import NamedTuple, NoReturn

from findling.domain.errors import InvalidValueError, UnknownSettingError
from findling.domain.permissions import check_visibility
from findling.domain.resources import FieldRule, Resource, ResourceType
from findling.domain.values import closest_name
from findling.pipelines.content.resource_types import COMMON_KEYS, MADE_ELSEWHERE

_HINT = 'one object a line, or an array of objects: [{"type": "decision", "title": "…"}]'


class Entry(NamedTuple):
    """One value of the input, and its place there: `line 3` or `item 3`."""

    value: object
    where: str


class EntryStream(NamedTuple):
    """The values of an input: one document, which is added as a whole, or lines, each of which is complete."""

    is_document: bool
    entries: Iterator[Entry]


def read_entries(lines: Iterable[bytes], *, bare: bool = False) -> EntryStream:
    """The values in the lines of a file, with `bare` also texts without quotes. Raises InvalidValueError."""
    numbered = _texts(lines)
    first = next(numbered, None)
    if first is None:
        return EntryStream(False, iter(()))
    text = first[1]
    if text.startswith("[") or (text.startswith("{") and not _is_complete(text)):
        return EntryStream(True, _whole(chain([first], numbered)))
    return EntryStream(False, _each(chain([first], numbered), bare))


def _texts(lines: Iterable[bytes]) -> Iterator[tuple[int, str]]:
    """The lines that are not empty, with their numbers."""
    for number, line in enumerate(lines, 1):
        try:
            text = line.decode("utf-8-sig" if number == 1 else "utf-8").strip()
        except UnicodeDecodeError as error:
            raise InvalidValueError(f"line {number} is not UTF-8: {error.reason}", hint="save it as UTF-8") from error
        if text:
            yield number, text


def _whole(numbered: Iterable[tuple[int, str]]) -> Iterator[Entry]:
    """The object, or the objects of the array, that all the lines make up."""
    # Empty lines are restored, so that an error names the right one.
    text: list[str] = []
    for number, line in numbered:
        text += [""] * (number - 1 - len(text)) + [line]
    value = _parsed("\n".join(text))
    if isinstance(value, list):
        yield from (Entry(each, f"item {number}") for number, each in enumerate(value, 1))
    else:
        yield Entry(value, "")


def _each(numbered: Iterable[tuple[int, str]], bare: bool) -> Iterator[Entry]:
    for number, text in numbered:
        where = f"line {number}"
        yield Entry(text if bare and text[0] not in '{["' else _parsed(text, where), where)


def _is_complete(text: str) -> bool:
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


def _parsed(text: str, where: str = "") -> object:
    before = f"{where}: " if where else ""
    try:
        return json.loads(text, object_pairs_hook=_unique, parse_constant=_refuse)
    except json.JSONDecodeError as error:
        place = f"column {error.colno}" if where else f"line {error.lineno}, column {error.colno}"
        raise InvalidValueError(f"{before}no JSON: {error.msg} at {place}", hint=_HINT) from error
    except (ValueError, RecursionError) as error:
        raise InvalidValueError(f"{before}no JSON that can be read: {error}", hint=_HINT) from error


def _unique(pairs: list[tuple[str, object]]) -> dict[str, object]:
    table: dict[str, object] = {}
    for key, value in pairs:
        if key in table:
            raise ValueError(f"{key!r} stands twice in one object")
        table[key] = value
    return table


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is no JSON number")


TRAVERSED = ("depends", "blocks", "supersedes", "conflicts")
"""Types of links along which a change of one item bears on another."""


class Link(NamedTuple):
    """A typed link to another resource, by its id; `strength` is 1 to 10."""

    to: str
    type: str
    strength: int = 5
    note: str = ""


def compose(type: ResourceType, item: Mapping[str, object]) -> tuple[Resource, str]:  # noqa: A002 - the domain's word
    """The resource that an item is, and its text. Raises UnknownSettingError or InvalidValueError, naming the key.

    An item without an id gets one that follows from its content and its readers. Its text is Markdown, unless its
    `lang` is another.
    """
    _check_keys(type, item)
    placed = _placed({**_COMMON_FIELDS, **type.fields}, item)
    links = _links(item.get("links"))
    visibility = _visibility(item.get("visibility"))
    context = item.get("context")
    if context is not None and not isinstance(context, Mapping):
        raise InvalidValueError("context must be an object", hint='{"deadline": "2026-05-01"}')
    special = _special(type.name, item)
    listed = "\n".join(f"- {link.type} {link.to}{f': {_indented(link.note)}' if link.note else ''}" for link in links)
    closing = (("Context", _text(context, "context")), ("System", special.get("system", "")), ("Links", listed))
    sections = [*placed.sections, *((heading, body) for heading, body in closing if body)]
    text = "\n\n".join(f"## {heading}\n\n{body}" if heading else body for heading, body in sections)
    title = placed.title or placed.fields.get("name", "") or _first_line(text)
    if not title:
        raise InvalidValueError("the item holds nothing", hint='give it a "title" or a "body"')
    fields = placed.fields | special
    if links:
        fields["links"] = json.dumps([link._asdict() for link in links], ensure_ascii=False)
    if _text(context, "context"):
        fields["context"] = json.dumps(context, ensure_ascii=False, sort_keys=True)
    resource = Resource(
        rid=f"{type.name}:{_id(item, visibility)}",
        type=type.name,
        title=title,
        path=_path(item.get("path")),
        author=", ".join(placed.authors),
        lang=_one_line(item.get("lang"), "lang") or type.lang,
        tags=tuple(dict.fromkeys((*_text_list(item.get("tags"), "tags"), *placed.tags))),
        visibility=visibility,
        created_at=_moment(item.get("created_at"), "created_at"),
        updated_at=_moment(item.get("updated_at"), "updated_at"),
        fields=fields,
    )
    return resource, text or title


def read_links(fields: Mapping[str, str]) -> list[Link]:
    """The links that a composed resource keeps in its fields."""
    return [Link(**link) for link in json.loads(fields.get("links", "[]"))]


def links_of(resource: Resource) -> list[Link]:
    """The links of a composed resource, its predecessor among them."""
    links = read_links(resource.fields)
    earlier = resource.fields.get("supersedes", "")
    return [*links, Link(earlier, "supersedes", 10)] if earlier else links


_COMMON_FIELDS = {"title": FieldRule(place="title"), "body": FieldRule(), "author": FieldRule(place="author")}
_LEADING_OUT = re.compile(r"^[/\\]|^[A-Za-z]:[/\\]|(?:^|[/\\])\.\.(?:[/\\]|$)")
_ID = re.compile(r"[^\s\x00-\x1f\x7f]{1,200}")
_LONGEST_TITLE = 80
_NOT_CONTENT = frozenset({"id", "type", "visibility", "created_at", "updated_at"})

_DEEPEST = 20  # levels of an object; no person writes metadata that is nested deeper
_LATEST = 253_402_300_800.0  # the end of the year 9999; a greater number counts milliseconds


class _Placed(NamedTuple):
    """The fields of an item by their places."""

    title: str
    authors: list[str]
    tags: list[str]
    fields: dict[str, str]
    sections: list[tuple[str, str]]


def _check_keys(type: ResourceType, item: Mapping[str, object]) -> None:  # noqa: A002 - the domain's word
    if type.name in MADE_ELSEWHERE:
        raise InvalidValueError(f"a {type.name} is no item that can be added", hint=MADE_ELSEWHERE[type.name])
    known = list(dict.fromkeys((*COMMON_KEYS, *type.fields)))
    for key in item:
        if key not in known:
            raise UnknownSettingError(f"items of type {type.name} have no {key!r}", hint=closest_name(key, known))
    for name, rule in type.fields.items():
        if rule.required and not _text_list(item.get(name), name):
            raise InvalidValueError(f"items of type {type.name} must have {name!r}", hint=f'add "{name}"')


def _placed(rules: Mapping[str, FieldRule], item: Mapping[str, object]) -> _Placed:
    title, authors, tags, fields, sections = "", list[str](), list[str](), dict[str, str](), list[tuple[str, str]]()
    for name, rule in rules.items():
        value, place = item.get(name), rule.place
        values = _text_list(value, name) if rule.many else tuple(filter(None, [_text(value, name).strip()]))
        if not values:
            continue
        if place == "body":
            text = "\n".join(f"- {_indented(each)}" for each in values) if rule.many else values[0]
            usual = "" if name == "body" else name.replace("_", " ").strip().capitalize()
            sections.append((rule.heading or usual, text))
        elif place == "title":
            title = " ".join(values[0].split())
        elif place in ("name", "description"):
            fields[place] = " ".join(" ".join((fields.get(place, ""), *values)).split())
        elif place == "tags":
            tags += values
        elif place == "author":
            authors += values
        if place in ("tags", "author", "kept") and name != place:
            fields[name] = ", ".join(values)
    return _Placed(title, authors, tags, fields, sections)


def _special(type_name: str, item: Mapping[str, object]) -> dict[str, str]:
    """The fields that the search itself knows."""
    special = {}
    systems = _text_list(item.get("system"), "system")
    if any("," in system for system in systems):
        raise InvalidValueError("the name of a system cannot have a comma", hint='a list: ["billing", "search"]')
    if systems:
        special["system"] = ", ".join(systems)
    if earlier := _one_line(item.get("supersedes"), "supersedes"):
        special["supersedes"] = earlier if ":" in earlier else f"{type_name}:{earlier}"
    return special


def _links(value: object) -> list[Link]:
    if value is None:
        return []
    if not isinstance(value, list):
        raise InvalidValueError("links must be a list", hint='[{"to": "decision:ID", "type": "depends"}]')
    return [_link(entry, f"link {number}") for number, entry in enumerate(value, 1)]


def _link(entry: object, where: str) -> Link:
    if not isinstance(entry, Mapping):
        raise InvalidValueError(f"{where} must be an object", hint='{"to": "decision:ID", "type": "depends"}')
    for key in entry:
        if key not in Link._fields:
            raise UnknownSettingError(f"{where} has no {key!r}", hint=closest_name(key, Link._fields))
    to, kind = _one_line(entry.get("to"), f"{where}: to"), _one_line(entry.get("type"), f"{where}: type")
    if not to or not kind:
        raise InvalidValueError(f"{where} must say what it leads to and of which type it is", hint='"to" and "type"')
    strength = 5 if entry.get("strength") is None else entry["strength"]
    if isinstance(strength, bool) or not isinstance(strength, int) or not 1 <= strength <= 10:
        raise InvalidValueError(f"{where}: strength must be 1 to 10, not {strength!r}", hint="5 when it is left out")
    return Link(to, kind, strength, _text(entry.get("note"), f"{where}: note").strip())


def _path(value: object) -> str:
    path = _one_line(value, "path")
    if _LEADING_OUT.search(path):
        raise InvalidValueError(f"the path {path!r:.200} leads out of the workspace", hint="from its root: docs/plan")
    return path


def _visibility(value: object) -> tuple[str, ...] | None:
    if value is None:
        return None
    if not isinstance(value, list) or not all(isinstance(entry, str) for entry in value):
        raise InvalidValueError("visibility must be a list of principals, or null", hint='["user:ann", "group:ops"]')
    return check_visibility(value)


def _id(item: Mapping[str, object], visibility: tuple[str, ...] | None) -> str:
    given = _text(item.get("id"), "id").strip()
    if given:
        if not _ID.fullmatch(given):
            raise InvalidValueError(f"{given!r} is no id", hint="up to 200 characters without spaces")
        return given
    from hashlib import blake2b

    content = {key: value for key, value in item.items() if key not in _NOT_CONTENT and value is not None}
    if visibility is not None:
        # The same text for two circles is two items: one must not take the place, or the readers, of the other.
        content["visibility"] = sorted(set(visibility))
    written = json.dumps(content, sort_keys=True, ensure_ascii=False)
    return blake2b(written.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


def _indented(text: str) -> str:
    """A text that stays one entry of a list."""
    return text.replace("\n", "\n  ")


def _first_line(text: str) -> str:
    words = next(filter(None, (line.strip("#- \t") for line in text.splitlines())), "")
    return words if len(words) <= _LONGEST_TITLE else words[: _LONGEST_TITLE - 1].rsplit(" ", 1)[0] + "…"


def _text(value: object, key: str) -> str:
    """A scalar as text, an object as lines, null as nothing."""
    if value is None:
        return ""
    if isinstance(value, Mapping):
        return "\n".join(_lines(value, key))
    if isinstance(value, (list, tuple)):
        raise InvalidValueError(f"{key} must be one value, not a list", hint="write one text")
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, (int, float)):
        return f"{value:g}" if isinstance(value, float) and value.is_integer() else str(value)
    if not isinstance(value, str):
        raise InvalidValueError(f"{key} must be a text, not {type(value).__name__}", hint="write it as a string")
    try:
        value.encode()
    except UnicodeEncodeError:
        raise InvalidValueError(f"{key} holds characters that are not valid Unicode", hint="leave them out") from None
    return value.replace("\0", "")


def _one_line(value: object, key: str) -> str:
    if isinstance(value, Mapping):
        raise InvalidValueError(f"{key} must be a text, not an object", hint="write one text")
    return " ".join(_text(value, key).split())


def _text_list(value: object, key: str) -> tuple[str, ...]:
    """The texts of a list that are not empty; one value is a list of one, an object is one text."""
    values = value if isinstance(value, (list, tuple)) else [value]
    texts = ("; ".join(_lines(each, key)) if isinstance(each, Mapping) else _text(each, key) for each in values)
    return tuple(text.strip() for text in texts if text.strip())


def _lines(value: object, key: str, name: str = "", depth: int = 0) -> Iterator[str]:
    """`name: value` for every value in an object, however deep: `team.lead: Ann`."""
    if depth > _DEEPEST:
        raise InvalidValueError(f"{key} is nested deeper than {_DEEPEST} levels", hint="make it flatter")
    values = value if isinstance(value, (list, tuple)) else [value]
    if isinstance(value, Mapping):
        for part, inner in value.items():
            label = " ".join(_text(part, key).split())
            yield from _lines(inner, key, f"{name}.{label}" if name else label, depth + 1)
    elif any(isinstance(each, (Mapping, list, tuple)) for each in values):
        for each in values:
            yield from _lines(each, key, name, depth + 1)
    elif text := ", ".join(filter(None, (_text(each, key) for each in values))):
        yield f"{name}: {text}"


def _moment(value: object, key: str) -> float | None:
    """Seconds since the epoch, from a number of them or from ISO 8601; without a zone it is UTC."""
    hint = "2026-04-08, 2026-04-08T08:38:00Z or seconds since 1970"
    wrong = InvalidValueError(f"{key} must be a time, not {value!r}", hint=hint)
    if value is None:
        return None
    if isinstance(value, str):
        try:
            read = datetime.fromisoformat(value.strip())
        except ValueError as error:
            raise wrong from error
        return (read if read.tzinfo else read.replace(tzinfo=UTC)).timestamp()
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise wrong
    if not math.isfinite(value) or abs(value) >= _LATEST:
        raise InvalidValueError(wrong.message, hint=f"{hint}; not milliseconds")
    return float(value)
