"""Editing of YAML: one key of a mapping at the top comes or goes as whole lines, other bytes stay."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

from findling.domain.errors import MissingExtraError
from findling.service.agents.text_blocks import EditError, append_block, drop_block, line_of, newline_of

_MADE = "# added by findling"
"""The remark behind a mapping that we made, which goes together with its only key."""

_UNIT = "  "


def read_yaml(text: str, path: Sequence[str]) -> Any:
    """The value at a path, None for none. Raises EditError for what is no YAML, MissingExtraError without PyYAML."""
    found: Any = _loaded(text)
    for name in path:
        if found is not None and not isinstance(found, dict):
            raise EditError(1, f"{name} cannot stand in what is no mapping")
        found = (found or {}).get(name)
    _holder(text, path)
    return found


def put_yaml(text: str | None, path: Sequence[str], value: dict[str, Any]) -> str:
    """The text with a key in a mapping at the top. Raises EditError for a mapping in braces."""
    top, name = path
    key, holder = _holder(text or "", path)
    if text is None or key is None:
        indent = "" if text is None else _top_indent(text)
        return append_block(text, "\n".join([f"{indent}{top}: {_MADE}", *_rows(name, value, indent + _UNIT)]))
    newline = newline_of(text)
    is_empty = not isinstance(holder.value, list)
    if (holder.value and (is_empty or holder.flow_style)) or (not is_empty and not holder.value):
        raise EditError(
            key.start_mark.line + 1, f"{top} does not hold its keys in lines of their own; write it that way"
        )
    indent = " " * (key.start_mark.column + len(_UNIT) if is_empty else holder.value[0][0].start_mark.column)
    rows = newline.join(_rows(name, value, indent))
    end = _line_end(text, holder.end_mark.index if is_empty else key.end_mark.index)
    return text[:end] + newline + rows + text[end:]


def cut_yaml(text: str, path: Sequence[str]) -> str | None:
    """The text without a key of a mapping at the top; None for a file that held nothing else. Raises EditError."""
    if read_yaml(text, path) is None:
        return text
    key, holder = _holder(text, path)
    own, value = next((one, other) for one, other in holder.value if one.value == path[1])
    while isinstance(value.value, list) and value.value and not value.flow_style:
        value = value.value[-1][1] if isinstance(value.value[-1], tuple) else value.value[-1]
    end = _line_end(text, value.end_mark.index)
    start = own.start_mark.index - own.start_mark.column
    first = key.start_mark.index - key.start_mark.column
    if len(holder.value) == 1 and text[first:start].rstrip().endswith(_MADE):
        return drop_block(text, first, end)
    return text[:start].removesuffix(newline_of(text)) + text[end:]


def _rows(name: str, value: dict[str, Any], indent: str) -> list[str]:
    # A value in JSON is a value in YAML, too.
    return [f"{indent}{name}:", *[f"{indent}{_UNIT}{key}: {_scalar(each)}" for key, each in value.items()]]


def _scalar(value: object) -> str:
    text = json.dumps(value, ensure_ascii=False)
    is_plain = isinstance(value, str) and re.fullmatch(r"[A-Za-z/][A-Za-z0-9_./-]*", value) and _loaded(value) == value
    return str(value) if is_plain else re.sub(r"[\x7f-\x9f\ufeff\ufffe\uffff\u2028\u2029]", _escaped, text)


def _escaped(letter: re.Match[str]) -> str:
    return f"\\u{ord(letter.group()):04x}"


def _top_indent(text: str) -> str:
    node = _composed(text)
    return " " * node.value[0][0].start_mark.column if node is not None and node.value else ""


def _holder(text: str, path: Sequence[str]) -> tuple[Any, Any]:
    """The nodes of the key at the top and of its value. Raises EditError for a key that is there twice."""
    node = _composed(text)
    if node is None:
        return None, None
    if not isinstance(node.value, list) or node.flow_style or node.tag != "tag:yaml.org,2002:map":
        raise EditError(node.start_mark.line + 1, "the text is no mapping with a key on each line")
    found = [(key, value) for key, value in node.value if key.value == path[0]]
    inner = [pair for _, value in found if isinstance(value.value, list) for pair in value.value]
    again = [pair[0] for pair in inner if isinstance(pair, tuple) and pair[0].value == path[1]]
    for twice in [*[key for key, _ in found[1:]], *again[1:]]:
        raise EditError(twice.start_mark.line + 1, f"{twice.value} stands there twice; delete one of them")
    return found[0] if found else (None, None)


def _line_end(text: str, at: int) -> int:
    """The offset before the line end that follows, or at an offset that stands behind one already."""
    if text[at - 1 : at] in ("\n", "\r"):
        at -= 2 if text[at - 2 : at] == "\r\n" else 1
        return at
    found = re.compile(r"\r\n|\n|\r|\Z").search(text, at)
    return found.start() if found else len(text)


def _loaded(text: str) -> Any:
    return _parsed(text, "load")


def _composed(text: str) -> Any:
    return _parsed(text, "compose")


def _parsed(text: str, verb: str) -> Any:
    try:
        import yaml
    except ImportError as error:
        raise MissingExtraError(
            "this agent's settings need the package PyYAML", hint="pip install 'findling[mcp]'"
        ) from error
    try:
        return getattr(yaml, verb)(text, Loader=yaml.SafeLoader)
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        mark = getattr(error, "problem_mark", None)
        line = mark.line + 1 if mark else line_of(text, getattr(error, "position", 0) or 0)
        raise EditError(line, f"this is no YAML: {getattr(error, 'problem', None) or error}") from error
