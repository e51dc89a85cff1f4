"""Plain values ↔ types and JSON: what is read back from a file is checked against the types that it was made from."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import fields
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, overload

from lesioncount.folder.atomic import is_certified_text

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

T = TypeVar("T")

# Of whole numbers in files: 64 bits.
_LARGEST, _MOST_DIGITS = (1 << 63) - 1, 20


@overload
def typed(value: Any, kind: type[T]) -> T: ...
@overload
def typed(value: Any, kind: Any) -> Any: ...
def typed(value: Any, kind: Any) -> Any:
    """A value of JSON (number, text, list or object) as a type, such as a dataclass; ValueError if it is not one."""
    import msgspec  # not at the top: a hundredth of a second that only those pay who read results back

    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        raise ValueError(str(error)) from None


def read_json(path: Path) -> Any:
    """What a JSON file holds; ValueError if it is none, OSError if it cannot be read."""
    return from_json(path.name, path.read_text("utf-8"))


def from_json(name: str, text: str) -> Any:
    """What the text of a JSON file holds, given the name of the file; ValueError if it is none."""
    return decoded(text, is_ours=is_certified_text(name, text))


def decoded(text: str, *, is_ours: bool) -> Any:
    """What a text of JSON holds, which is ours if it carries our check sum; ValueError if it is none."""
    if is_ours:  # no number in it is too large, and a fast decoder may read it
        import msgspec

        with suppress(ValueError, RecursionError):  # names that are no Unicode are read by the other one only
            return msgspec.json.decode(text)
    try:
        return json.loads(text, parse_int=whole_number)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def decoded_as(text: str, kind: type[T], *, is_ours: bool) -> T:
    """The same as a type, in one step if it is ours; ValueError if it is not one."""
    if is_ours:
        import msgspec

        with suppress(ValueError, RecursionError):  # what is wrong with it is said below
            return msgspec.json.decode(text, type=kind)
    return typed(decoded(text, is_ours=is_ours), kind)


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
    import msgspec

    try:
        return msgspec.json.encode(value).decode()  # null for numbers that JSON does not have
    except (UnicodeEncodeError, TypeError):  # names may be no Unicode, and numbers those of numpy
        return json.dumps(_plain(value), ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def cells(value: DataclassInstance) -> dict[str, Any]:
    """The fields of a dataclass by their names, as they are: `asdict` copies them, which takes ten times as long."""
    return {name: getattr(value, name) for name in field_names(type(value))}


@cache
def field_names(kind: type[DataclassInstance]) -> tuple[str, ...]:
    """The names of the fields of a dataclass."""
    return tuple(one.name for one in fields(kind))


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
