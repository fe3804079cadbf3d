"""Arguments of the tools. Every key is declared; any other one is refused."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, TypeAdapter, ValidationError, create_model

from findling.domain.errors import InvalidValueError, UsageError
from findling.domain.plans import KNOBS, Knob
from findling.domain.queries import OFFERED, SCOPES, Filters
from findling.domain.values import closest_name
from findling.service.settings.written_filters import written_filters

_LONGEST_WORTH_TELLING = 100
"""A bound above which a length keeps out nothing but nonsense, which is refused all the same."""


def input_schema(kind: type[BaseModel]) -> dict[str, Any]:
    """The schema of arguments; it allows no keys but those in it."""
    return _object(kind.model_json_schema())


def output_schema(kind: type) -> dict[str, Any]:
    """The schema of a result; that every key is always there need not be said."""
    return _object(TypeAdapter(kind).json_schema(), idle=("required", "additionalProperties", "items"))


def _object(schema: dict[str, Any], idle: Collection[str] = ()) -> dict[str, Any]:
    parts = schema.pop("$defs", {})
    slim: dict[str, Any] = _slim(schema, parts, idle)
    return slim


def _slim(node: Any, parts: Mapping[str, Any], idle: Collection[str]) -> Any:
    """A schema without titles and idle keys, and with everything in its place instead of references."""
    if isinstance(node, list):
        return [_slim(each, parts, idle) for each in node]
    if not isinstance(node, dict):
        return node
    if "$ref" in node:
        node = {**parts[node["$ref"].rpartition("/")[2]], **{key: node[key] for key in node if key != "$ref"}}
    if not idle and node.get("default", 0) is None and len(node.get("anyOf", ())) == 2:
        node = {**node["anyOf"][0], **{key: node[key] for key in node if key != "anyOf"}}  # no argument has to be null
    kept = {
        key: value
        for key, value in node.items()
        if (key not in idle or (key == "items" and "$ref" in value)) and not _is_idle(key, value, node)
    }
    if "properties" in kept:
        kept["properties"] = {name: _slim(each, parts, idle) for name, each in kept["properties"].items()}
    return {key: value if key == "properties" else _slim(value, parts, idle) for key, value in kept.items()}


def _is_idle(key: str, value: object, node: Mapping[str, Any]) -> bool:
    """Whether a key says what everybody knows: a title that is the name, a least count, an empty default."""
    if key == "title":
        return isinstance(value, str)
    if key in ("maxLength", "maxItems"):
        return True
    if key == "minLength":
        return value == 1
    if key == "minimum":
        return node.get("type") == "integer"  # an error names it
    if key == "maximum":
        return isinstance(value, int) and value > _LONGEST_WORTH_TELLING
    if key == "description":
        return "properties" in node  # the docstring of a model
    return key == "default" and (not value or isinstance(value, dict))


_LONGEST_QUERY = 4000
_LONGEST_NAME = 1000
_MOST_VALUES = 50
_MOST_CHARS = 100_000


def _as_list(value: Any) -> Any:
    """One value for a list of one, which models write more often than not."""
    return [value] if isinstance(value, str) else value


def _as_object(value: Any) -> Any:
    """An object that was sent as the text of its JSON, as some clients do."""
    if not isinstance(value, str):
        return value
    try:
        return json.loads(value)
    except (ValueError, RecursionError):
        return value


_Name = Annotated[str, Field(min_length=1, max_length=_LONGEST_NAME)]
_Names = Annotated[list[_Name], BeforeValidator(_as_list), Field(max_length=_MOST_VALUES)]
_Id = Annotated[
    str,
    Field(
        min_length=1,
        max_length=_LONGEST_NAME,
        description="`id` or `passage` of a result, a path, or either with :LINE",
    ),
]
_QueryText = Annotated[str, Field(max_length=_LONGEST_QUERY)]
_Limit = Annotated[int, Field(ge=1, le=50)]


class Arguments(BaseModel):
    """Arguments of a tool, none but those that are declared."""

    model_config = ConfigDict(extra="forbid")


_Moment = Annotated[str, Field(max_length=40)]
_OFFERED: dict[str, Any] = {
    name: (kind, Field(default=default, description=one.metadata["mcp"] or None))
    for name, one in OFFERED.items()
    for kind, default in [(_Names, []) if one.default == () else (_Moment, "")]
}


class SearchFilters(create_model("Offered", __base__=Arguments, **_OFFERED)):  # type: ignore[misc]
    """Filters of an answer; a value that fits one of a list is enough."""

    def to_filters(self) -> Filters:
        """As the engine knows them. Raises InvalidValueError for a value that limits nothing."""
        given = self.model_dump()
        return written_filters(**given | {"type": [name.lower() for name in given["type"]]})


_MaxChars = Annotated[int, Field(ge=1000, le=_MOST_CHARS)]
_MaxTokens = Annotated[int | None, Field(ge=250, le=_MOST_CHARS, description="instead of max_chars")]


class _Query(Arguments):
    """The question itself."""

    query: Annotated[
        _QueryText,
        Field(description='Words, or a question. Also "exact phrase", -without, OR, prefix*, title:x. Empty: latest'),
    ]
    limit: _Limit = 10


_KINDS: dict[str, Any] = {"switch": bool, "count": int, "number": float, "text": str, "texts": _Names}


def _shown(knob: Knob) -> tuple[Any, Any]:
    """A knob of the plan as an argument; `auto` leaves a choice to the profile."""
    if knob.choices:
        choices = tuple(dict.fromkeys(("auto", *knob.choices)))
        return Annotated[Literal[choices], Field(description=knob.mcp)], "auto"
    is_bounded = knob.kind in ("count", "number")
    limits: dict[str, Any] = {"ge": knob.minimum, "le": knob.maximum} if is_bounded else {}
    inner: Any = Annotated[_KINDS[knob.kind], Field(**limits)]
    return inner | None, Field(default=None, description=knob.mcp)


_KNOBS: dict[str, Any] = {knob.name: _shown(knob) for knob in KNOBS.values() if knob.mcp}


class SearchArguments(create_model("Shown", __base__=_Query, **_KNOBS)):  # type: ignore[misc]
    """Arguments of `search`."""

    filters: Annotated[SearchFilters, BeforeValidator(_as_object)] = SearchFilters()
    item_type: Annotated[
        Literal["any", "directive", "tool", "knowledge"], Field(description="only items of this type")
    ] = "any"
    scope: Annotated[Literal[SCOPES], Field(description="all: every workspace")] = SCOPES[0]  # type: ignore[valid-type]
    all: Annotated[bool, Field(description="list every file that matches, and names, too")] = False
    cursor: Annotated[str, Field(max_length=1000, description="next_cursor of the same question")] = ""
    detail: Annotated[Literal["concise", "full"], Field(description="full: more lines, and how each scored")] = (
        "concise"
    )
    max_chars: _MaxChars = 8000
    max_tokens: _MaxTokens = None

    def to_changes(self) -> dict[str, Any]:
        """Fields of the plan that were given another value than that of the profile."""
        shown = {name: getattr(self, name) for name in _KNOBS}
        return {name: value for name, value in shown.items() if value not in (None, "auto")}

    def to_filters(self) -> Filters:
        """The filters with the type of items. Raises InvalidValueError for two limits of the type."""
        if self.item_type == "any":
            return self.filters.to_filters()
        if self.filters.type:
            raise InvalidValueError(
                "item_type and filters.type both say which types are meant", hint="leave out one of them"
            )
        typed: SearchFilters = self.filters.model_copy(update={"type": [self.item_type]})
        return typed.to_filters()


class FetchArguments(Arguments):
    """Arguments of `fetch`."""

    id: _Id
    workspace: Annotated[str, Field(max_length=_LONGEST_NAME, description="that of the result, if it has one")] = ""
    offset: Annotated[int, Field(ge=0, le=1 << 40, description="next_offset of the part before")] = 0
    max_chars: Annotated[int, Field(ge=1, le=_MOST_CHARS)] = 20_000
    context_lines: Annotated[int, Field(ge=0, le=500, description="lines before and after a passage")] = 0


class ExplainArguments(Arguments):
    """Arguments of `explain`."""

    query: _QueryText
    id: _Id


class SimilarArguments(Arguments):
    """Arguments of `similar`."""

    id: _Id
    limit: _Limit = 10
    max_chars: _MaxChars = 8000
    max_tokens: _MaxTokens = None


class GrepArguments(Arguments):
    """Arguments of `grep`."""

    pattern: Annotated[str, Field(min_length=1, max_length=1000, description="regular expression, tried on each line")]
    fixed: Annotated[bool, Field(description="pattern is plain text")] = False
    ignore_case: bool = False
    words: Annotated[bool, Field(description="whole words only")] = False
    path: Annotated[str, Field(max_length=_LONGEST_NAME, description="folder or file")] = ""
    glob: Annotated[_Names, Field(description="*.py, src/**, !test_*")] = []
    context: Annotated[int, Field(ge=0, le=20, description="lines around each match")] = 0
    gives: Literal["lines", "counts", "files"] = "lines"
    limit: Annotated[int, Field(ge=1, le=10_000)] = 200
    max_chars: Annotated[int, Field(ge=1000, le=_MOST_CHARS)] = 8000


class GlobArguments(Arguments):
    """Arguments of `glob`."""

    pattern: Annotated[_Names, Field(min_length=1, description="*.py, src/**/test_*, docs/")]
    path: Annotated[str, Field(max_length=_LONGEST_NAME, description="folder that patterns count from")] = ""
    newest: Annotated[bool, Field(description="latest changes first")] = False
    limit: Annotated[int, Field(ge=1, le=10_000)] = 200
    max_chars: Annotated[int, Field(ge=1000, le=_MOST_CHARS)] = 8000


class RefsArguments(Arguments):
    """Arguments of `refs`."""

    name: Annotated[str, Field(min_length=1, max_length=200, description="send, Session.send, Session::send")]
    path: Annotated[str, Field(max_length=_LONGEST_NAME, description="folder or file")] = ""
    limit: Annotated[int, Field(ge=1, le=10_000)] = 200
    max_chars: Annotated[int, Field(ge=1000, le=_MOST_CHARS)] = 8000


class OutlineArguments(Arguments):
    """Arguments of `outline`."""

    id: _Id
    max_chars: Annotated[int, Field(ge=1000, le=_MOST_CHARS)] = 8000


class RelatedArguments(Arguments):
    """Arguments of `related`."""

    of: Annotated[str, Field(min_length=1, max_length=_LONGEST_NAME, description="name, title, path or id")]
    to: Annotated[str, Field(max_length=_LONGEST_NAME)] = ""
    limit: _Limit = 5


class RememberArguments(Arguments):
    """Arguments of `remember`."""

    text: Annotated[str, Field(min_length=1, max_length=20_000, description="One fact, understandable by itself")]
    tags: _Names = []
    importance: Annotated[float, Field(ge=0, le=1)] = 0.5
    source: Annotated[str, Field(max_length=1_000)] = ""
    until: Annotated[str, Field(max_length=40)] = ""


class MemoryArguments(Arguments):
    """Arguments of `memory`."""

    action: Literal["recall", "review", "history", "undo", "keep", "merge", "supersede"] = "recall"
    text: Annotated[str, Field(max_length=_LONGEST_QUERY)] = ""
    older: Annotated[str, Field(max_length=_LONGEST_NAME)] = ""
    at: Annotated[str, Field(max_length=40)] = ""


class NoArguments(Arguments):
    """For tools that take nothing."""


def sizes(asked: SearchArguments | SimilarArguments) -> tuple[int, int | None]:
    """The limits of characters and tokens; where only tokens are limited, characters are not."""
    is_free = asked.max_tokens is not None and "max_chars" not in asked.model_fields_set
    return 1 << 62 if is_free else asked.max_chars, asked.max_tokens


def read_arguments(kind: type[Arguments], given: object) -> Arguments:
    """The arguments that were given. Raises UsageError that names everything that is wrong with them."""
    try:
        return kind.model_validate(given)
    except ValidationError as error:
        problems = error.errors(include_url=False, include_input=False, include_context=False)
    told = list(dict.fromkeys(_told(one["loc"], one["type"], one["msg"]) for one in problems))
    unknown = [one["loc"] for one in problems if one["type"] == "extra_forbidden"]
    raise UsageError("; ".join(told[:_MOST_TOLD]), hint=_known(kind, unknown[0]) if unknown else "")


_MOST_TOLD = 5
_LONGEST_ECHO = 60


def _told(place: tuple[int | str, ...], kind: str, message: str) -> str:
    name = ".".join(str(part)[:_LONGEST_ECHO] for part in place)
    if kind == "extra_forbidden":
        return f"there is no argument {name}"
    if kind == "missing":
        return f"the argument {name} is missing"
    return f"{name}: {message}" if name else message


def _known(kind: type[BaseModel], place: tuple[int | str, ...]) -> str:
    """The nearest name to an unknown argument, and all names."""
    return closest_name(str(place[-1])[:_LONGEST_ECHO], (SearchFilters if len(place) > 1 else kind).model_fields)
