"""Rows of tables as resources: the mapping of columns, from flags and a file, and the resource of a row."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, tzinfo
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Any

from findling.domain.errors import InvalidValueError, PathNotFoundError, UnknownSettingError, UsageError
from findling.domain.permissions import check_visibility
from findling.domain.resources import FieldRule, Resource, ResourceType
from findling.domain.values import closest_name, record
from findling.pipelines.content.items import compose
from findling.pipelines.content.resource_types import check_type
from findling.sources.databases.postgres_rows import RowColumns

if TYPE_CHECKING:
    from findling.sources.databases.postgres_rows import TableRow

ROW = "row"
_COLUMNS = tuple(RowColumns._fields)
_LISTS = ("text", "id", "tags", "visibility")
_KEYS = (*_COLUMNS, "table", "name", "type", "time_zone", "visibility")
_LONGEST_ID = 400


@record(kw_only=True)
class RowMapping:
    """A table, the use of its columns, and what all of its rows share.

    `name` is that of the source in ids, by default the table's. `visibility` says who may see the rows; `None` leaves
    it to the workspace.
    """

    table: str
    columns: RowColumns
    name: str = ""
    type: str = ROW
    zone: tzinfo = UTC
    visibility: tuple[str, ...] | None = None

    @property
    def digest(self) -> str:
        """A value that differs when the same rows would make other resources."""
        parts = self.table, self.columns, self.name, self.type, str(self.zone), self.visibility
        return blake2b(repr(parts).encode(), digest_size=8).hexdigest()


def mapping_of(given: Mapping[str, Any], file: Path | None = None) -> RowMapping:
    """The mapping of a TOML or JSON file, with what is given besides in front.

    Raises PathNotFoundError for a file that is not there, UsageError for what cannot be.
    """
    table = {} if file is None else _read(file)
    for key in (*table, *given):
        if key not in _KEYS:
            raise UnknownSettingError(f"{file or '--mapping'}: a mapping has no {key!r}", hint=closest_name(key, _KEYS))
    values: dict[str, Any] = {}
    for key, value in {**table, **{key: value for key, value in given.items() if value}}.items():
        values[key] = _list(key, value) if key in _LISTS else _text(key, value)
    for key, flag in (("table", "--mapping table=SCHEMA.NAME"), ("text", "--mapping text=COLUMN")):
        if not values.get(key):
            raise UsageError(f"the import does not say its {key}", hint=flag)
    visibility = values.get("visibility")
    kind = values.get("type") or ROW
    if kind != ROW:
        check_type(ResourceType(name=kind))
    return RowMapping(
        table=values["table"],
        columns=RowColumns(**{key: values[key] for key in _COLUMNS if key in values}),
        name=row_id(values.get("name", "")),
        type=kind,
        zone=_zone(values.get("time_zone", "")),
        visibility=None if visibility is None else check_visibility(visibility),
    )


def resource_of(row: TableRow, mapping: RowMapping, rid: str, headings: tuple[str, ...]) -> tuple[Resource, str] | None:
    """The resource of a row and its text; `None` for a row that says nothing."""
    if not (row.title or any(text.strip() for text in row.texts)):
        return None
    first, *others = row.texts
    rules = {f"text_{place}": FieldRule(heading=_heading(name)) for place, name in enumerate(headings[1:], 2)}
    item: dict[str, object] = {"id": "row", "title": row.title, "body": first, "author": row.author}
    item |= dict(zip(rules, others, strict=True))
    item |= {"tags": list(row.tags), "created_at": row.created_at, "updated_at": row.updated_at}
    resource, text = compose(ResourceType(name="any", fields=rules), item)
    created = row.updated_at if row.created_at is None else row.created_at
    return replace(resource, rid=rid, type=mapping.type, created_at=created, visibility=mapping.visibility), text


def row_id(written: str) -> str:
    """An id of bounded length and without spaces: the end of a long one is a digest of it."""
    name = "_".join(written.split())
    if len(name) <= _LONGEST_ID:
        return name
    return f"{name[: _LONGEST_ID - 33]}~{blake2b(name.encode(), digest_size=16).hexdigest()}"


def _heading(column: str) -> str:
    return " ".join(column.replace("_", " ").split()).capitalize()


def _read(file: Path) -> dict[str, Any]:
    import tomllib

    try:
        text = file.read_text("utf-8")
    except FileNotFoundError:
        raise PathNotFoundError(f"there is no file {file}", hint="--mapping FILE.toml") from None
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{file} cannot be read: {error}", hint="a TOML or JSON file in UTF-8") from error
    kind, read = ("JSON", json.loads) if file.suffix == ".json" else ("TOML", tomllib.loads)
    try:
        found = read(text)
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{file} is no {kind}: {error}", hint=_EXAMPLE) from error
    if not isinstance(found, dict):
        raise UsageError(f"{file} holds no mapping", hint=_EXAMPLE)
    return found


_EXAMPLE = 'table = "public.tickets", text = ["body"], title = "subject"'


def _list(key: str, value: object) -> tuple[str, ...]:
    """A list of texts; one text is a list by commas, as flags write it."""
    values = value.split(",") if isinstance(value, str) else value
    if not isinstance(values, (list, tuple)) or not all(isinstance(each, str) for each in values):
        raise InvalidValueError(f"{key} must be a text or a list of texts, not {value!r:.60}", hint=_EXAMPLE)
    parts = [part for each in values for part in (each.split(",") if key != "visibility" else [each])]
    return tuple(part.strip() for part in parts if part.strip())


def _text(key: str, value: object) -> str:
    if not isinstance(value, str):
        raise InvalidValueError(f"{key} must be a text, not {value!r:.60}", hint=_EXAMPLE)
    return value.strip()


def _zone(name: str) -> tzinfo:
    if name in ("", "UTC"):
        return UTC
    from zoneinfo import ZoneInfo

    try:
        return ZoneInfo(name)
    except (KeyError, OSError, ValueError) as error:
        raise InvalidValueError(f"there is no time zone {name!r}", hint='time_zone = "Europe/Berlin"') from error
