"""Text and JSON → text and JSON that somebody might have changed, or meant to harm with."""

from __future__ import annotations

import copy
import json
import re
from typing import Any

import numpy as np

from fuzzing.damage import damaged, edge_number

Rng = np.random.Generator

# What may stand where a number stood. Numbers of 400 digits are beyond floats, of 5000 beyond what Python converts.
_NUMBERS = (
    "0", "-1", "1e999", "-1e999", "NaN", "nan", "inf", "-inf", "9" * 400, "9" * 5000, "1e-400", "0x10", "1_0", "",
    "4.5", "18446744073709551615", "9223372036854775808", "-9223372036854775809", "900000000", "1099511627776",
    "0.1 0.1", "1e5",
)  # fmt: skip
_WORDS = (
    "", " ", "x" * 5000, "%n%n%s", "%s" * 50, "../../etc/passwd", "/dev/zero", "/dev/stdin", "LIST", "LOCAL", "\0",
    "\x1b[2J", "é", "=1+1", "<script>alert(1)</script>", "null", "true", "[", "{", '"', "'", "n/a", "\n",
    "\t", ",", ";",
)  # fmt: skip

# Deep enough for every parser that calls itself.
_DEEP = 100_000


def odd_text(rng: Rng, text: str) -> str:
    """A text with one to three changes: numbers, words and lines."""
    for _ in range(int(rng.integers(1, 4))):
        text = _changed(rng, text)
    return text


def odd_json(rng: Rng, content: Any) -> str:
    """An object as JSON with one to three of its parts replaced, left out or doubled; now and then no JSON at all."""
    roll = rng.random()
    if roll < 0.1:
        return damaged(rng, json.dumps(content).encode()).decode("utf-8", "replace")
    if roll < 0.2:
        return odd_text(rng, json.dumps(content))
    if roll < 0.23:
        return nested(rng)
    content = copy.deepcopy(content)
    for _ in range(int(rng.integers(1, 4))):
        content = _with_odd_part(rng, content)
    # Written with a mark, because Python writes no number of 5000 digits, nor nests so deep.
    text = json.dumps(content)
    return text.replace('"<deep>"', "[" * _DEEP + "]" * _DEEP).replace('"<long>"', "9" * 5000)


def nested(rng: Rng) -> str:
    """Brackets, 100 000 deep, closed or not."""
    opening, closing = (("[", "]"), ('{"a":', "}"))[int(rng.integers(2))]
    return opening * _DEEP + ("1" + closing * _DEEP if rng.random() < 0.5 else "")


def odd_value(rng: Rng) -> Any:
    """Something that JSON has, and that stands where nobody expects it."""
    roll = int(rng.integers(10))
    if roll < 4:
        return edge_number(rng)
    if roll == 4:
        return _WORDS[int(rng.integers(len(_WORDS)))]
    several = (None, True, [], {}, [[]], [None], {"a": 1}, 10**400, -(10**400), "<deep>", "<long>", [1] * 1000, "1")
    return several[int(rng.integers(len(several)))]


def _with_odd_part(rng: Rng, content: Any) -> Any:
    """One part, anywhere, changed."""
    if not isinstance(content, dict | list) or not content or rng.random() < 0.08:
        return odd_value(rng)
    keys = list(content) if isinstance(content, dict) else list(range(len(content)))
    key = keys[int(rng.integers(len(keys)))]
    roll = rng.random()
    if isinstance(content[key], dict | list) and content[key] and roll < 0.7:
        content[key] = _with_odd_part(rng, content[key])
    elif roll < 0.8:
        content[key] = odd_value(rng)
    elif roll < 0.9:
        del content[key]
    elif isinstance(content, list):
        content.insert(key, content[key])
    else:
        content[f"{key}2"] = content[key]
    return content


def _changed(rng: Rng, text: str) -> str:
    roll = rng.random()
    if roll < 0.4:
        return _replaced(rng, text, r"-?\d+(?:\.\d+)?(?:e-?\d+)?", _NUMBERS)
    if roll < 0.6:
        return _replaced(rng, text, r"[A-Za-z_][\w.]*", _WORDS)
    lines = text.split("\n")
    at = int(rng.integers(len(lines)))
    if roll < 0.7:
        del lines[at]
    elif roll < 0.8:
        lines.insert(int(rng.integers(len(lines) + 1)), lines[at])
    elif roll < 0.9:
        lines.insert(at, _WORDS[int(rng.integers(len(_WORDS)))])
    else:
        return damaged(rng, text.encode()).decode("utf-8", "replace")
    return "\n".join(lines)


def _replaced(rng: Rng, text: str, pattern: str, by: tuple[str, ...]) -> str:
    found = list(re.finditer(pattern, text))
    if not found:
        return text
    one = found[int(rng.integers(len(found)))]
    return text[: one.start()] + by[int(rng.integers(len(by)))] + text[one.end() :]
