"""Items: from a JSON object of some type to a resource and its text, with every field where it is searched."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from typing import NamedTuple

from findling.domain.errors import InvalidValueError, UnknownSettingError
from findling.domain.permissions import check_visibility
from findling.domain.resources import FieldRule, Resource, ResourceType
from findling.pipelines.content.resource_types import COMMON_KEYS, MADE_ELSEWHERE

__all__ = ["TRAVERSED", "Link", "compose", "flat_lines", "links_of", "moment", "one_line", "text_list", "text_of"]


_DEEPEST = 20
"""Levels of an object; what is nested deeper is no metadata that a person wrote."""

_LATEST = 253_402_300_800.0
"""The end of the year 9999; a greater number counts milliseconds."""


def text_of(value: object, key: str) -> str:
    """A text, number or truth value as text, an object as lines; nothing for null. Raises InvalidValueError."""
    if value is None:
        return ""
    if isinstance(value, Mapping):
        return "\n".join(flat_lines(value, key))
    if isinstance(value, (list, tuple)):
        raise InvalidValueError(f"{key} must be one value, not a list", hint="write one text")
    return _scalar(value, key)


def one_line(value: object, key: str) -> str:
    """A text without breaks. Raises InvalidValueError."""
    if isinstance(value, Mapping):
        raise InvalidValueError(f"{key} must be a text, not an object", hint="write one text")
    return " ".join(text_of(value, key).split())


def text_list(value: object, key: str) -> tuple[str, ...]:
    """A list of texts without what is empty; one value is a list of one, an object in it is one text.

    Raises InvalidValueError.
    """
    if value is None:
        return ()
    values = list(value) if isinstance(value, (list, tuple)) else [value]
    texts = ("; ".join(flat_lines(each, key)) if isinstance(each, Mapping) else text_of(each, key) for each in values)
    return tuple(text.strip() for text in texts if text.strip())


def flat_lines(table: Mapping[str, object], key: str) -> Iterator[str]:
    """`name: value` for every value in an object, however deep: `team.lead: Ann`. Raises InvalidValueError."""
    return (f"{name}: {text}" for name, text in _leaves(table, "", key, 0) if text)


def moment(value: object, key: str) -> float | None:
    """Seconds since the epoch, from a number of them or from ISO 8601; without a zone it is UTC.

    Raises InvalidValueError.
    """
    if value is None:
        return None
    hint = "2026-04-08, 2026-04-08T08:38:00Z or seconds since 1970"
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        raise InvalidValueError(f"{key} must be a time, not {value!r}", hint=hint)
    if isinstance(value, str):
        try:
            read = datetime.fromisoformat(value.strip())
        except ValueError as error:
            raise InvalidValueError(f"{key} must be a time, not {value!r}", hint=hint) from error
        return (read if read.tzinfo else read.replace(tzinfo=UTC)).timestamp()
    if not math.isfinite(value) or abs(value) >= _LATEST:
        raise InvalidValueError(f"{key} must be a time, not {value!r}", hint=f"{hint}; not milliseconds")
    return float(value)


def _scalar(value: object, key: str) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (int, float)):
        return f"{value:g}" if isinstance(value, float) and value.is_integer() else str(value)
    if not isinstance(value, str):
        raise InvalidValueError(f"{key} must be a text, not {type(value).__name__}", hint="write it as a string")
    if not value.isascii() and not _is_unicode(value):
        raise InvalidValueError(f"{key} holds characters that are not valid Unicode", hint="leave them out")
    return value.replace("\0", "")


def _is_unicode(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _leaves(value: object, name: str, key: str, depth: int) -> Iterator[tuple[str, str]]:
    if depth > _DEEPEST:
        raise InvalidValueError(f"{key} is nested deeper than {_DEEPEST} levels", hint="make it flatter")
    if isinstance(value, Mapping):
        for part, inner in value.items():
            label = " ".join(_scalar(part, key).split())
            yield from _leaves(inner, f"{name}.{label}" if name else label, key, depth + 1)
    elif isinstance(value, (list, tuple)):
        if all(not isinstance(each, (Mapping, list, tuple)) for each in value):
            yield name, ", ".join(filter(None, (text_of(each, key) for each in value)))
            return
        for each in value:
            yield from _leaves(each, name, key, depth + 1)
    else:
        yield name, text_of(value, key)


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
    rules = {**_COMMON_FIELDS, **type.fields}
    found = _sorted_out(rules, item)
    links = _links(item.get("links"))
    visibility = _visibility(item.get("visibility"))
    context = _context(item.get("context"))
    special = _special(type.name, item)
    sections = [*found.sections, *_closing(context, special.get("system", ""), links)]
    text = "\n\n".join(f"## {heading}\n\n{body}" if heading else body for heading, body in sections)
    lang = one_line(item.get("lang"), "lang") or type.lang
    title = found.title or found.fields.get("name", "")
    title = title or _first_line(text)
    if not title:
        raise InvalidValueError("the item holds nothing", hint='give it a "title" or a "body"')
    fields = found.fields | special
    if links:
        fields["links"] = json.dumps([link._asdict() for link in links], ensure_ascii=False)
    if context:
        fields["context"] = json.dumps(item["context"], ensure_ascii=False, sort_keys=True)
    resource = Resource(
        rid=f"{type.name}:{_id(item, visibility)}",
        type=type.name,
        title=title,
        path=_path(item.get("path")),
        author=", ".join(found.authors),
        lang=lang,
        tags=tuple(dict.fromkeys((*text_list(item.get("tags"), "tags"), *found.tags))),
        visibility=visibility,
        created_at=moment(item.get("created_at"), "created_at"),
        updated_at=moment(item.get("updated_at"), "updated_at"),
        fields=fields,
    )
    return resource, text or title


def links_of(resource: Resource) -> list[Link]:
    """The links of a composed resource, what it supersedes among them."""
    links = [Link(**link) for link in json.loads(resource.fields.get("links", "[]"))]
    earlier = resource.fields.get("supersedes", "")
    return [*links, Link(earlier, "supersedes", 10)] if earlier else links


_COMMON_FIELDS = {"title": FieldRule(place="title"), "body": FieldRule(), "author": FieldRule(place="author")}
_LEADING_OUT = re.compile(r"^[/\\]|^[A-Za-z]:[/\\]|(?:^|[/\\])\.\.(?:[/\\]|$)")
_ID = re.compile(r"[^\s\x00-\x1f\x7f]{1,200}")
_LINK_KEYS = ("to", "type", "strength", "note")
_LONGEST_TITLE = 80
_NOT_CONTENT = frozenset({"id", "type", "visibility", "created_at", "updated_at"})


class _SortedOut(NamedTuple):
    """The fields of an item by their places."""

    title: str
    authors: list[str]
    tags: list[str]
    fields: dict[str, str]
    sections: list[tuple[str, str]]


def _check_keys(type: ResourceType, item: Mapping[str, object]) -> None:  # noqa: A002 - the domain's word
    if type.name in MADE_ELSEWHERE:
        raise InvalidValueError(f"a {type.name} is no item that can be added", hint=MADE_ELSEWHERE[type.name])
    known = dict.fromkeys((*COMMON_KEYS, *type.fields))
    for key in item:
        if key not in known:
            raise UnknownSettingError(f"items of type {type.name} have no {key!r}", hint=_near(key, known))
    for name, rule in type.fields.items():
        if rule.required and not text_list(item.get(name), name):
            raise InvalidValueError(f"items of type {type.name} must have {name!r}", hint=f'add "{name}"')


def _sorted_out(rules: Mapping[str, FieldRule], item: Mapping[str, object]) -> _SortedOut:
    found = _SortedOut("", [], [], {}, [])
    for name, rule in rules.items():
        values = _values(rule, item.get(name), name)
        if not values:
            continue
        if rule.place == "body":
            text = "\n".join(f"- {_indented(value)}" for value in values) if rule.many else values[0]
            found.sections.append((rule.heading or ("" if name == "body" else _spelled_out(name)), text))
        elif rule.place == "title":
            found = found._replace(title=" ".join(values[0].split()))
        elif rule.place in ("name", "description"):
            before = found.fields.get(rule.place)
            found.fields[rule.place] = " ".join(" ".join(filter(None, (before, *values))).split())
        elif rule.place == "tags":
            found.tags.extend(values)
        elif rule.place == "author":
            found.authors.extend(values)
        if rule.place in ("tags", "author", "kept") and name != rule.place:
            found.fields[name] = ", ".join(values)
    return found


def _values(rule: FieldRule, value: object, name: str) -> tuple[str, ...]:
    if rule.many:
        return text_list(value, name)
    text = text_of(value, name).strip()
    return (text,) if text else ()


def _special(type_name: str, item: Mapping[str, object]) -> dict[str, str]:
    """What stands in fields that the search itself knows."""
    special = {}
    systems = text_list(item.get("system"), "system")
    if any("," in system for system in systems):
        raise InvalidValueError("the name of a system cannot have a comma", hint='a list: ["billing", "search"]')
    if systems:
        special["system"] = ", ".join(systems)
    if earlier := one_line(item.get("supersedes"), "supersedes"):
        special["supersedes"] = earlier if ":" in earlier else f"{type_name}:{earlier}"
    return special


def _closing(context: str, system: str, links: Iterable[Link]) -> list[tuple[str, str]]:
    """The sections that follow the fields: they are found by their words like everything else."""
    told = "\n".join(f"- {link.type} {link.to}{f': {_indented(link.note)}' if link.note else ''}" for link in links)
    closing = (("Context", context), ("System", system), ("Links", told))
    return [(heading, text) for heading, text in closing if text]


def _context(value: object) -> str:
    if value is None:
        return ""
    if not isinstance(value, Mapping):
        raise InvalidValueError("context must be an object", hint='{"deadline": "2026-05-01"}')
    return "\n".join(flat_lines(value, "context"))


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
        if key not in _LINK_KEYS:
            raise UnknownSettingError(f"{where} has no {key!r}", hint=_near(key, _LINK_KEYS))
    to, kind = one_line(entry.get("to"), f"{where}: to"), one_line(entry.get("type"), f"{where}: type")
    if not to or not kind:
        raise InvalidValueError(f"{where} must say what it leads to and of which type it is", hint='"to" and "type"')
    strength = 5 if entry.get("strength") is None else entry["strength"]
    if isinstance(strength, bool) or not isinstance(strength, int) or not 1 <= strength <= 10:
        raise InvalidValueError(f"{where}: strength must be 1 to 10, not {strength!r}", hint="5 when it is left out")
    return Link(to, kind, strength, text_of(entry.get("note"), f"{where}: note").strip())


def _path(value: object) -> str:
    """Where an item belongs: below the root, as everything that has a path."""
    path = one_line(value, "path")
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
    given = text_of(item.get("id"), "id").strip()
    if given:
        if not _ID.fullmatch(given):
            raise InvalidValueError(f"{given!r} is no id", hint="up to 200 characters without spaces")
        return given
    from hashlib import blake2b

    content = {key: value for key, value in item.items() if key not in _NOT_CONTENT and value is not None}
    if visibility is not None:
        # What is told to two circles is two items: one must not take the place, or the readers, of the other.
        content["visibility"] = sorted(set(visibility))
    told = json.dumps(content, sort_keys=True, ensure_ascii=False)
    return blake2b(told.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


def _indented(text: str) -> str:
    """A text that stays one entry of a list."""
    return text.replace("\n", "\n  ")


def _spelled_out(name: str) -> str:
    return name.replace("_", " ").strip().capitalize()


def _first_line(text: str) -> str:
    for line in text.splitlines():
        words = line.strip("#- \t")
        if words:
            return words if len(words) <= _LONGEST_TITLE else words[: _LONGEST_TITLE - 1].rsplit(" ", 1)[0] + "…"
    return ""


def _near(key: str, known: Iterable[str]) -> str:
    from difflib import get_close_matches

    names = list(known)
    closest = get_close_matches(key, names, n=1, cutoff=0.6)
    return f"{f'{closest[0]} instead? ' if closest else ''}there are: {', '.join(names)}"
