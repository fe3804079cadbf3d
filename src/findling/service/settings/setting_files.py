"""Settings files: their content, and changes of one value that keep every other line."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from findling.domain.errors import InvalidValueError, UsageError
from findling.domain.values import record

_MOST_BYTES = 1 << 16
"""The largest file that is read: all settings at once take 5 KB."""

_MOST_DOTS = 4096
"""Dots in a file: the parser takes 16 s for one name of 32,000 parts, and 0.3 s for one of 4,096."""

_DEEPEST = 8
"""Tables and lists inside each other; `profiles.NAME.search.types` are five."""


def read_file(path: Path) -> dict[str, Any]:
    """The tables of a settings file. Raises `UsageError` if it cannot be read, `InvalidValueError` if it is no TOML."""
    return _parse(_read_text(path), path)


def set_value(path: Path, name: str, value: object, *, private: bool = False) -> None:
    """Set one value in a file, and create the file if it is missing; one that is `private` only its owner may read.

    Raises `InvalidValueError`, and writes nothing, when the change would touch anything else.
    """
    text, wanted = _opened(path)
    section, _, key = name.partition(".")
    if not isinstance(wanted.setdefault(section, {}), dict):
        raise _not_editable(path, name)
    wanted[section][key] = list(value) if isinstance(value, tuple) else value
    lines, eol = _split_lines(text), "\r\n" if "\r\n" in text else "\n"
    if lines and not lines[-1].endswith("\n"):
        lines[-1] += eol
    _put(lines, (section, key), value, eol)
    _write_checked(path, name, "".join(lines), wanted, private=private)


def unset_value(path: Path, name: str) -> bool:
    """Remove one setting from a file; returns whether it was there. Raises as `set_value` does."""
    text, wanted = _opened(path)
    section, _, key = name.partition(".")
    if not isinstance(wanted.get(section), dict) or key not in wanted[section]:
        return False
    del wanted[section][key]
    lines = _split_lines(text)
    for statement in _statements(lines):
        if statement.keys == [(section, key)]:
            del lines[statement.first : statement.last + 1]
    _write_checked(path, name, "".join(lines), wanted)
    return True


def format_value(value: object) -> str:
    """A value as TOML writes it; None is `auto`."""
    if value is None:
        return '"auto"'
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(format_value, value))}]"
    if isinstance(value, int | float):
        return repr(value)
    escaped = str(value).replace("\\", "\\\\").replace('"', '\\"')
    return '"' + "".join(c if c >= " " and c != "\x7f" else f"\\u{ord(c):04x}" for c in escaped) + '"'


@record()
class _Statement:
    """Lines `first`..`last` of a file: a table header (no keys), or an assignment to `keys`."""

    first: int
    last: int
    table: tuple[str, ...]
    keys: list[tuple[str, ...]]


def _statements(lines: list[str]) -> Iterator[_Statement]:
    """The statements of a valid file, without comments and empty lines."""
    table: tuple[str, ...] = ()
    first = 0
    while first < len(lines):
        last = first
        # A statement without its end is not valid by itself, so the shortest valid run of lines is the statement.
        while (parsed := _loads("".join(lines[first : last + 1]))) is None:
            last += 1
        if lines[first].lstrip().startswith("["):
            table = next(_leaves(parsed), ())
            yield _Statement(first, last, table, [])
        elif parsed:
            yield _Statement(first, last, table, [table + keys for keys in _leaves(parsed)])
        first = last + 1


def _leaves(table: Mapping[str, Any]) -> Iterator[tuple[str, ...]]:
    for key, value in table.items():
        if isinstance(value, dict) and value:
            yield from ((key, *rest) for rest in _leaves(value))
        else:
            yield (key,)


def _put(lines: list[str], keys: tuple[str, str], value: object, eol: str) -> None:
    """Replace the value of `keys`, or add it beside the other values of its table, or in a new table at the end."""
    section, key = keys
    beside: _Statement | None = None
    for statement in _statements(lines):
        if statement.keys == [keys]:
            old = lines[statement.first : statement.last + 1]
            lines[statement.first : statement.last + 1] = _change_list(old, value, eol) or _change(old, value, eol)
            return
        if statement.table == (section,) or any(found[0] == section for found in statement.keys):
            beside = statement
    if beside is not None:
        name = key if beside.table == (section,) else f"{section}.{key}"
        lines.insert(beside.last + 1, f"{name} = {format_value(value)}{eol}")
    else:
        lines += [eol] * bool(lines) + [f"[{section}]{eol}", f"{key} = {format_value(value)}{eol}"]


def _change(statement: list[str], value: object, eol: str) -> list[str]:
    """The statement with another value on one line; the text before it and a comment behind it stay."""
    body, comment = _split_comment("".join(statement).rstrip())
    equals = next(i for i, letter in enumerate(body) if letter == "=" and _loads(f"{body[:i]}= 0") is not None)
    after = body[equals + 1 :]
    gap = after[: len(after) - len(after.lstrip(" \t"))]
    return [f"{body[: equals + 1]}{gap}{format_value(value)}{comment}{eol}"]


def _change_list(statement: list[str], value: object, eol: str) -> list[str] | None:
    """A list with one item a line, changed line by line to keep its comments; `None` for any other statement."""
    if len(statement) < 3 or not isinstance(value, list | tuple) or not statement[-1].lstrip().startswith("]"):
        return None
    wanted, kept = list(value), [statement[0]]
    for line in statement[1:-1]:
        body, comment = _split_comment(line.rstrip(), "x = [", "]")
        items = (_loads(f"x = [{body}]") or {}).get("x")
        if items is None or len(items) > 1:
            return None
        if not items or items[0] in wanted:
            body += "," if items and not body.endswith(",") else ""
            kept.append(f"{body}{comment}{eol}")
            wanted = [item for item in wanted if item not in items]
    indent = statement[1][: len(statement[1]) - len(statement[1].lstrip())]
    changed = [*kept, *(f"{indent}{format_value(item)},{eol}" for item in wanted), statement[-1]]
    holds = _loads("".join(changed))
    return changed if holds is not None and list(value) in _values(holds) else None


def _split_comment(text: str, before: str = "", after: str = "") -> tuple[str, str]:
    """A statement and the comment behind it, which keeps the spaces before it."""
    whole = _loads(f"{before}{text}\n{after}")
    for start in (i for i, letter in enumerate(text) if letter == "#"):
        if _loads(f"{before}{text[:start]}{after}") == whole:
            body = text[:start].rstrip()
            return body, text[len(body) :]
    return text, ""


def _values(table: Mapping[str, Any]) -> Iterator[Any]:
    for value in table.values():
        yield from _values(value) if isinstance(value, dict) else (value,)


def _split_lines(text: str) -> list[str]:
    # str.splitlines would also split at U+2028 and others, which TOML allows inside a line.
    parts = text.split("\n")
    return [part + "\n" for part in parts[:-1]] + [part for part in parts[-1:] if part]


def _loads(text: str) -> dict[str, Any] | None:
    import tomllib

    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError):
        return None


def _opened(path: Path) -> tuple[str, dict[str, Any]]:
    text = _read_text(path) if path.exists() else ""
    return text, _parse(text, path)


def _read_text(path: Path) -> str:
    try:
        with path.open("rb") as file:
            data = file.read(_MOST_BYTES + 1)
        if len(data) > _MOST_BYTES:
            raise InvalidValueError(f"{path} is larger than {_MOST_BYTES >> 10} KB", hint=f"shorten {path}")
        return data.decode()
    except OSError as error:
        message, hint = f"cannot read {path}: {error.strerror}", f"make {path} a file that you can read, or remove it"
        raise UsageError(message, hint=hint) from error
    except UnicodeDecodeError as error:
        raise InvalidValueError(f"{path} is not UTF-8 text: {error}", hint=f"correct {path}") from error


def _parse(text: str, path: Path) -> dict[str, Any]:
    import tomllib

    try:
        holds = tomllib.loads(text) if text.count(".") <= _MOST_DOTS else None
    except RecursionError:
        holds = None
    except ValueError as error:  # no TOML, or a number of more than 4,300 digits
        raise InvalidValueError(f"{path} is not valid TOML: {error}", hint=f"correct {path}") from error
    if holds is None or _is_deep(holds):
        raise InvalidValueError(f"{path} nests tables or lists too deeply", hint=f"correct {path}")
    return holds


def _is_deep(table: dict[str, Any]) -> bool:
    level: list[Any] = [table]
    for _ in range(_DEEPEST):
        inside = [list(one.values()) if isinstance(one, dict) else one for one in level]
        level = [value for values in inside for value in values if isinstance(value, dict | list)]
    return bool(level)


def _write_checked(path: Path, name: str, text: str, wanted: Mapping[str, Any], *, private: bool = False) -> None:
    holds = _loads(text)
    if holds is None or _without_empty(holds) != _without_empty(wanted):
        raise _not_editable(path, name)
    try:
        _replace(path.resolve(), text.encode(), private=private)
    except UnicodeEncodeError as error:
        raise _not_editable(path, name) from error
    except OSError as error:
        raise UsageError(f"cannot write {path}: {error.strerror}", hint=f"make {path} writable") from error


def _without_empty(tables: Mapping[str, Any]) -> dict[str, Any]:
    return {name: table for name, table in tables.items() if table != {}}


def _replace(path: Path, data: bytes, *, private: bool) -> None:
    """Write a whole file or nothing; its permissions stay unless it is to be private."""
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f"{path.name}.{os.getpid()}.new")
    try:
        with draft.open("xb") as file:
            if private:
                draft.chmod(0o600)
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        if path.exists() and not private:
            draft.chmod(path.stat().st_mode & 0o7777)
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)


def _not_editable(path: Path, name: str) -> InvalidValueError:
    return InvalidValueError(f"cannot change {name} in {path} and keep the rest as it is", hint=f"edit {path} by hand")
