"""Values: the classes that hold them, their kinds in settings, profiles and plans, and the one check of them."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import MISSING, FrozenInstanceError, dataclass, field, fields, is_dataclass
from typing import Any, NoReturn, Protocol, TypeVar, dataclass_transform

_Class = TypeVar("_Class", bound=type)
_Record = TypeVar("_Record")

FIELDS = ("body", "title", "heading", "path", "tags", "name", "description")
"""The text fields of a chunk that words are looked for in."""

LARGEST = 1e300
"""Keeps infinity out, which JSON cannot write; "not a number" fails every comparison."""


class Row(Protocol):
    """The declaration of a value; one that is `optional` may also be None."""

    @property
    def kind(self) -> str: ...
    @property
    def choices(self) -> tuple[str, ...]: ...
    @property
    def minimum(self) -> float: ...
    @property
    def maximum(self) -> float: ...
    @property
    def optional(self) -> bool: ...


def loose_name(name: str) -> str:
    """The name without case and separators: `getUser`, `get_user` and `GET-USER` are one."""
    return name.replace("_", "").replace("-", "").lower()


def one_line(text: str) -> str:
    """The text on one line, without signs that a terminal obeys."""
    return " ".join("".join(letter if letter.isprintable() else " " for letter in text).split())


def cut_at_space(text: str, longest: int) -> str:
    """The text, or as many of its words as that."""
    return text if len(text) <= longest else text[: longest + 1].rpartition(" ")[0] or text[:longest]


def counted(number: int, one: str, several: str = "") -> str:
    """A number with its noun: `1 file`, `2,000 files`; `several` is a plural that does not end in s alone."""
    return f"{number:,} {one if number == 1 else several or one + 's'}"


def fit(row: Row, value: object) -> Any:
    """The value in the form that the program holds. Raises ValueError that says which values fit."""
    if value is None and row.optional:
        return None
    fitted = _fitted(row, value)
    if fitted is None:
        raise ValueError(wanted(row))
    return fitted


def wanted(row: Row, nothing: str = "null") -> str:
    """The values that fit, in words; `nothing` is how None is written."""
    words = " or ".join(row.choices) or _KINDS[row.kind]
    if row.choices and row.kind in ("texts", "patterns"):
        words = f"a list of {', '.join(row.choices)}"
    if row.kind in ("count", "size", "number") and row.minimum > -LARGEST:
        words += f" of at least {row.minimum:g}"
        words += f" and at most {row.maximum:g}" if row.maximum != float("inf") else ""
    return f"{words} or {nothing}" if row.optional else words


_KINDS = {
    "text": "text",
    "name": "letters, digits, '-', '_' and '.'",
    "switch": "true or false",
    "count": "a whole number",
    "size": "a number of bytes or a size such as 4MB",
    "number": "a number",
    "texts": "a list of texts",
    "patterns": "a list of patterns",
    "weights": f"numbers of at least 0 under any of {', '.join(FIELDS)}",
    "shares": "numbers from 0 to 1 under any names",
    "days": "numbers of at least 0 under any names",
}

_UNITS = {"": 1, "b": 1, "k": 1 << 10, "kb": 1 << 10, "m": 1 << 20, "mb": 1 << 20, "g": 1 << 30, "gb": 1 << 30}


def _fitted(row: Row, value: object) -> Any:
    """None for a value that does not fit."""
    if row.kind == "switch":
        return value if isinstance(value, bool) else None
    if row.kind in ("text", "name"):
        return _text(row, value)
    if row.kind in ("texts", "patterns"):
        texts = _texts(value, may_be_blank=row.kind == "texts")
        return texts if texts is None or not row.choices or set(texts) <= set(row.choices) else None
    if row.kind == "weights":
        return _numbers(value, names=FIELDS)
    if row.kind in ("shares", "days"):
        return _numbers(value, most=1 if row.kind == "shares" else LARGEST)
    if row.kind == "size" and isinstance(value, str):
        value = _size(value)
    return _number(value, row.minimum, row.maximum, is_whole=row.kind != "number")


def _text(row: Row, value: object) -> str | None:
    if not isinstance(value, str) or (row.choices and value not in row.choices):
        return None
    if row.kind == "name" and value:
        # The name becomes a folder: it must not lead anywhere else.
        letters = value.replace("-", "a").replace("_", "a").replace(".", "a")
        return value if letters.isalnum() and not value.startswith(".") else None
    return value


def _texts(value: object, *, may_be_blank: bool) -> tuple[str, ...] | None:
    if not isinstance(value, list | tuple):
        return None
    return tuple(value) if all(isinstance(part, str) and (may_be_blank or part.strip()) for part in value) else None


def _number(value: object, least: float, most: float, *, is_whole: bool) -> float | None:
    if not isinstance(value, int | float) or isinstance(value, bool) or not least <= value <= min(most, LARGEST):
        return None
    if is_whole:
        return value if isinstance(value, int) else None
    return float(value)


def _numbers(value: object, *, names: Iterable[str] = (), most: float = LARGEST) -> dict[str, float | None] | None:
    if not isinstance(value, Mapping) or (names and not set(names).issuperset(value)):
        return None
    numbers = {str(name): _number(number, 0, most, is_whole=False) for name, number in value.items()}
    return None if None in numbers.values() else numbers


def _size(text: str) -> int | None:
    letters = text.strip().lower().replace("ib", "b")
    unit = letters.lstrip("0123456789.").strip()
    try:
        return int(float(letters[: len(letters) - len(unit)]) * _UNITS[unit])
    except (KeyError, ValueError, OverflowError):
        return None


_PLAIN = frozenset({bool, float, int, str, type(None)})


def plain(value: Any) -> Any:
    """The value in dicts, lists, texts and numbers: dataclasses and named tuples become dicts, paths texts.

    Raises TypeError for any other object.
    """
    if type(value) in _PLAIN or isinstance(value, str | int | float):
        return value
    if isinstance(value, Mapping):
        return {key: plain(item) for key, item in value.items()}
    if is_dataclass(value):
        named = [(field.name, getattr(value, field.name)) for field in fields(value)]
        # An answer holds its plan, whose 34 fields are numbers and texts but for a few.
        return {name: item if type(item) in _PLAIN else plain(item) for name, item in named}
    if hasattr(value, "_asdict"):
        return plain(value._asdict())
    if isinstance(value, list | tuple | set | frozenset):
        return [plain(item) for item in value]
    return os.fspath(value)


def as_dict(value: Any) -> Any:
    """The value with a dict for each record in it, as `dataclasses.asdict` gives it, in a tenth of the time.

    Fields that hold nothing but numbers and texts by their type are not looked through: a page has hundreds of spans.
    """
    kind = type(value)
    if kind in _ATOMS:
        return value
    if kind is tuple or kind is list:
        return kind([as_dict(one) for one in value])
    if kind is dict:
        return {key: as_dict(item) for key, item in value.items()}
    if not is_dataclass(kind):
        from copy import deepcopy

        return deepcopy(value)
    if kind not in _open_fields:
        _open_fields[kind] = [(one.name, not _is_closed(str(one.type))) for one in fields(kind)]
    return {
        name: as_dict(getattr(value, name)) if is_open else getattr(value, name) for name, is_open in _open_fields[kind]
    }


_ATOMS = frozenset({str, int, float, bool, type(None)})
_open_fields: dict[type, list[tuple[str, bool]]] = {}


def _is_closed(annotation: str) -> bool:
    """Whether what a field may hold is made of numbers, texts and tuples alone."""
    for name in ("tuple", "str", "int", "float", "bool", "None"):
        annotation = annotation.replace(name, "")
    return not annotation.strip("[]., |")


def read_json(text: str | bytes) -> Any:
    """The value that JSON stands for, in a file that anybody may have written or damaged.

    Raises ValueError, as `json.JSONDecodeError` or `UnicodeDecodeError`, also for what nests without an end.
    """
    import json  # which a command that asks the daemon does not need

    try:
        return json.loads(text)
    except (json.JSONDecodeError, UnicodeDecodeError):
        raise
    except (ValueError, RecursionError) as error:  # a number of 5,000 digits, lists in lists
        raise json.JSONDecodeError("it nests too deeply, or holds a number without an end", "", 0) from error


def closest_name(name: str, known: Iterable[str], otherwise: str = "") -> str:
    """A hint for an unknown name: the nearest known one, and all of them; `otherwise` stands for a long list."""
    from difflib import get_close_matches

    names = list(known)
    near = get_close_matches(name, names, n=1, cutoff=0.5)
    if otherwise:
        return f"{near[0]} instead" if near else otherwise
    return f"{f'{near[0]} instead? ' if near else ''}there are: {', '.join(names) or 'none'}"


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def record(*, kw_only: bool = False, in_parts: bool = False) -> Callable[[_Class], _Class]:
    """Make a class a frozen dataclass, whose methods all such classes share but for `__init__`.

    `dataclass` compiles six methods for a class, which takes 0.7 ms; a search loads some 80 classes and makes objects
    of half. The first object of a class compiles its `__init__`: 0.05 ms for a class, 0.1 ms more for its first object.
    Records of a class that is made `in_parts` may be begun, see `begun`.
    """

    def made(cls: _Class) -> _Class:
        dataclass(init=False, repr=False, eq=False, kw_only=kw_only)(cls)
        vars(cls)["__dataclass_params__"].frozen = True  # so that a frozen dataclass may inherit from it

        def compile_init() -> Callable[..., None]:
            _uncompiled.pop(cls, None)
            compiled = _initializer(cls, kw_only=kw_only)
            cls.__init__ = compiled  # type: ignore[misc]
            return compiled

        def first(self: object, *given: Any, **named: Any) -> None:
            compile_init()(self, *given, **named)

        _uncompiled[cls] = compile_init

        methods: dict[str, Any] = {"__init__": first, "__setattr__": _refuse, "__delattr__": _refuse}
        if in_parts:
            methods |= {"__getattr__": _lack, "__getstate__": _whole}
            methods |= {one.name: _Late(one.name, one.default) for one in fields(cls)}
        for name, method in (methods | {"__repr__": _shown, "__eq__": _equals, "__hash__": _hashed}).items():
            setattr(cls, name, method)
        return cls

    return made


def begun(kind: type[_Record], rest: Callable[[], Mapping[str, Any]], **values: Any) -> _Record:
    """A record with these values; `rest` gives the others when one of them is first read.

    Nobody can tell it from a record that was made at once, but for the time: of ten hits few have their receipts read.
    """
    one = object.__new__(kind)
    own = vars(one)
    own.update(values)
    own[_REST] = rest
    return one


def changed(value: _Record, **values: Any) -> _Record:
    """A copy of a record with other values; the others are not looked at, and need not be there yet."""
    copy = object.__new__(type(value))
    vars(copy).update(_whole(value) | values)
    return copy


_uncompiled: dict[type, Callable[[], object]] = {}


def compile_records() -> None:
    """Compile every `__init__` now, in a process that others will be forked from."""
    for compile_init in list(_uncompiled.values()):
        compile_init()


def _initializer(cls: type, *, kw_only: bool) -> Callable[..., None]:
    known: dict[str, Any] = {"MISSING": MISSING}
    parameters, lines = ["self", *(["*"] if kw_only else [])], [" __own = self.__dict__"]
    for one in fields(cls):
        default, value = "", one.name
        if one.default is not MISSING:
            known[f"_{one.name}"], default = one.default, f"=_{one.name}"
        elif one.default_factory is not MISSING:
            known[f"_{one.name}"], default = one.default_factory, "=MISSING"
            value = f"_{one.name}() if {one.name} is MISSING else {one.name}"
        parameters.append(one.name + default)
        lines.append(f" __own[{one.name!r}] = {value}")
    lines.insert(0, f"def __init__({', '.join(parameters)}):")
    exec("\n".join(lines), known)
    made: Callable[..., None] = known["__init__"]
    made.__qualname__ = f"{cls.__qualname__}.__init__"  # names the class in a TypeError
    return made


def _refuse(self: object, name: str, value: object = None) -> None:
    raise FrozenInstanceError(f"cannot change {name} of {type(self).__name__}")


def _shown(self: object) -> str:
    return f"{type(self).__qualname__}({', '.join(f'{name}={value!r}' for name, value in _whole(self).items())})"


def _equals(self: object, other: object) -> bool:
    return _whole(self) == _whole(other) if type(self) is type(other) else NotImplemented


def _hashed(self: object) -> int:
    return hash((type(self), *_whole(self).values()))


_REST = "_rest"


def _whole(self: object) -> dict[str, Any]:
    """The values of a record, all of them."""
    own = vars(self)
    if _REST in own:
        known = dict(own)
        rest = known.pop(_REST)
        own = vars(type(self)(**known, **rest()))
        # At once: another thread sees the record as it was begun, or whole.
        object.__setattr__(self, "__dict__", own)
    return own


def _lack(self: object, name: str) -> NoReturn:
    # msgspec reads values of a class with such a method by their names, else those that are there already.
    raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}", name=name, obj=self)


class _Late:
    """A value that a record does not have yet; of its class, the default, as pydantic wants it."""

    def __init__(self, name: str, default: object) -> None:
        self._name, self._default = name, default

    def __get__(self, one: object | None, kind: type) -> Any:
        if one is not None and self._name in (own := _whole(one)):
            return own[self._name]
        if one is not None or self._default is MISSING:
            raise AttributeError(self._name)
        return self._default
