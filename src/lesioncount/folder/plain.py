"""Structs ↔ JSON and rows: the fields of a type are the keys of its file, and the columns of its table."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import cache
from operator import attrgetter
from pathlib import Path
from typing import Any, TypeVar, overload

import msgspec
from msgspec import Struct

from lesioncount.folder.atomic import is_certified_text

T = TypeVar("T")
AnyStruct = TypeVar("AnyStruct", bound=Struct)

# The default of a number that every file of today has: one that an older version did not write is not known.
UNKNOWN: Any = math.nan

# Of whole numbers in files: 64 bits.
_LARGEST, _MOST_DIGITS = (1 << 63) - 1, 20


@overload
def typed(value: Any, kind: type[T]) -> T: ...
@overload
def typed(value: Any, kind: Any) -> Any: ...
def typed(value: Any, kind: Any) -> Any:
    """A value of JSON (number, text, list or object) as a type, such as a struct; ValueError if it is not one."""
    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        raise ValueError(str(error)) from None


def read_json(path: Path) -> Any:
    """What a JSON file holds; ValueError if it is none, OSError if it cannot be read."""
    text = path.read_text("utf-8")
    return decoded(text, Any, is_ours=is_certified_text(path.name, text))


@overload
def decoded(text: str, kind: type[T], *, is_ours: bool) -> T: ...
@overload
def decoded(text: str, kind: Any, *, is_ours: bool) -> Any: ...
def decoded(text: str, kind: Any, *, is_ours: bool) -> Any:
    """What a text of JSON holds as a type, in one step if it is ours, with our check sum; ValueError if it is none."""
    if is_ours:  # no number in it is too large
        with suppress(ValueError, RecursionError):  # what is wrong is said below; names may be no Unicode
            return msgspec.json.decode(text, type=kind)
    try:
        return typed(json.loads(text, parse_int=whole_number), kind)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def whole_number(text: str) -> int:
    """A whole number of JSON; ValueError if it is larger than any that is counted, and than arrays can hold."""
    value = int(text) if len(text) <= _MOST_DIGITS else _LARGEST + 1
    if abs(value) > _LARGEST:
        raise ValueError(f"a number of {len(text)} digits is too large")
    return value


def to_json(content: Mapping[str, Any]) -> str:
    """An object as text, a line per key: readable, and yet made by a fast encoder, which indents nothing."""
    lines = (f"{json.dumps(key)}: {in_one_line(value)}" for key, value in content.items())
    return "{\n" + ",\n".join(lines) + "\n}\n"


def in_one_line(value: Any) -> str:
    """Any value as JSON."""
    try:
        return msgspec.json.encode(value).decode()  # null for numbers that JSON does not have
    except (UnicodeEncodeError, TypeError):  # names may be no Unicode, and numbers those of numpy
        plain = msgspec.to_builtins(value, enc_hook=lambda number: number.item())
        return json.dumps(_plain(plain), ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def plain_text(content: Mapping[str, Any]) -> str:
    """An object as one line of ASCII."""
    return json.dumps(_plain(dict(content)), allow_nan=False)


def _plain(value: Any) -> Any:
    """With null for numbers that JSON does not have."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return value


def present(content: Mapping[str, Any]) -> dict[str, Any]:
    """Without what is None or empty."""
    return {key: value for key, value in content.items() if value not in (None, ())}


def cells(value: Struct, prefix: str = "", suffix: str = "") -> dict[str, Any]:
    """The fields of a struct as cells of a row, with a prefix or a suffix; without those that have their defaults."""
    names, get, defaults = _layout(type(value), prefix, suffix)
    return {name: one for name, one, default in zip(names, get(value), defaults, strict=True) if one is not default}


def columns(kind: type[Struct], prefix: str = "", suffix: str = "") -> tuple[str, ...]:
    """The columns that the rows of a struct may have."""
    return _layout(kind, prefix, suffix)[0]


def optional_columns(kind: type[Struct], prefix: str = "", suffix: str = "") -> tuple[str, ...]:
    """Those of them that are left out of a table which says nothing in them."""
    names, _, defaults = _layout(kind, prefix, suffix)
    return tuple(name for name, default in zip(names, defaults, strict=True) if default in (None, ()))


@cache
def _layout(
    kind: type[Struct], prefix: str = "", suffix: str = ""
) -> tuple[tuple[str, ...], Callable[[Struct], tuple[Any, ...]], tuple[Any, ...]]:
    """Names of the cells of a struct of two fields or more, what gives their values, and their defaults."""
    known = msgspec.structs.fields(kind)
    names = tuple(f"{prefix}{one.name}{suffix}" for one in known)
    return names, attrgetter(*(one.name for one in known)), tuple(one.default for one in known)


def flat(*parts: type[Struct] | tuple[type[Struct], str]) -> Any:
    """The base of a struct that has the fields of several, side by side: `part` gives one of them back.

    Parameters
    ----------
    *parts : Struct, or Struct and str
        One that is given with a suffix, which may be empty, need not be there.
    """
    fields: list[tuple[str, Any, Any]] = []
    for one in parts:
        kind, suffix = one if isinstance(one, tuple) else (one, "")
        for known in msgspec.structs.fields(kind):
            is_there = not isinstance(one, tuple)
            type_ = known.type if is_there else known.type | None
            fields.append((f"{known.name}{suffix}", type_, known.default if is_there else None))
    return msgspec.defstruct("_Cells", fields, frozen=True, gc=False, omit_defaults=True)


def part(row: Struct, kind: type[AnyStruct], suffix: str = "") -> AnyStruct:
    """One of the structs that a row was made of."""
    return kind(*_part(kind, suffix)(row))


def part_if_there(row: Struct, kind: type[AnyStruct], suffix: str = "") -> AnyStruct | None:
    """The same of one that need not be there; what an older version did not write of it is not known."""
    values = _part(kind, suffix)(row)
    if None not in values:
        return kind(*values)
    there = {name: one for name, one in zip(kind.__struct_fields__, values, strict=True) if one is not None}
    return kind(**there) if there else None


@cache
def _part(kind: type[Struct], suffix: str) -> Callable[[Struct], tuple[Any, ...]]:
    """What gives the values of the fields of a part, from a row."""
    return attrgetter(*columns(kind, suffix=suffix))
