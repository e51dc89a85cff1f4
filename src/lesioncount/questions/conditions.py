"""What a question is made of: sums, comparisons of sums, and conditions that join them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from itertools import pairwise
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

# Words with a meaning of their own. A name that is one of them goes into quotes.
KEYWORDS = ("and", "or", "not", "at", "least", "most", "exactly", "of")

# What a name may look like without quotes.
NAME = re.compile(r"\w[\w.\-]*")

# Comparisons, and what each becomes when its sides change places.
COMPARISONS: dict[str, Callable[..., Any]] = {
    ">=": np.greater_equal,
    "<=": np.less_equal,
    ">": np.greater,
    "<": np.less,
    "==": np.equal,
    "!=": np.not_equal,
}
_TURNED = {">=": "<=", "<=": ">=", ">": "<", "<": ">", "==": "==", "!=": "!="}

# Where the answer to each changes: at the number itself, at the next one, or at both.
_EDGES = {">=": (0,), "<=": (1,), ">": (1,), "<": (0,), "==": (0, 1), "!=": (0, 1)}

# Names and how often each is counted, sorted by name: what is compared with a number.
Form = tuple[tuple[str, int], ...]


def quoted(name: str) -> str:
    """A name as it is written in a question: in double quotes where it would be read as something else."""
    plain = NAME.fullmatch(name) and not re.fullmatch(r"\d+(\.\d*)?", name) and name.lower() not in KEYWORDS
    return name if plain else '"{}"'.format(name.replace('"', '""'))


@dataclass(frozen=True)
class Sum:
    """Counts that are added, and a number."""

    counted: tuple[str, ...]
    constant: int = 0

    def __str__(self) -> str:
        number = [str(self.constant)] if self.constant or not self.counted else []
        return " + ".join([*map(quoted, self.counted), *number])

    def without(self, missing: frozenset[str]) -> Sum:
        """The same with some counts taken as 0."""
        return Sum(tuple(name for name in self.counted if name not in missing), self.constant)


@dataclass(frozen=True)
class Link:
    """A comparison with a number: `form` `operator` `number`."""

    form: Form
    operator: str
    number: int

    @classmethod
    def between(cls, left: Sum, operator: str, right: Sum) -> Link:
        """The same with all that is counted on the left, its first name above 0 times, and the number on the right."""
        times = Counter(left.counted)
        times.subtract(right.counted)
        form = tuple(sorted((name, n) for name, n in times.items() if n))
        number = right.constant - left.constant
        if form and form[0][1] < 0:
            return cls(tuple((name, -n) for name, n in form), _TURNED[operator], -number)
        return cls(form, operator, number)

    @property
    def edges(self) -> tuple[int, ...]:
        """The values from which on the answer may be another."""
        return tuple(self.number + by for by in _EDGES[self.operator])


@dataclass(frozen=True)
class Comparison:
    """Two or more sums, with a comparison between each and the next."""

    sums: tuple[Sum, ...]
    operators: tuple[str, ...]

    def __str__(self) -> str:
        rest = (f" {operator} {one}" for operator, one in zip(self.operators, self.sums[1:], strict=True))
        return f"{self.sums[0]}{''.join(rest)}"

    def names(self) -> Iterator[str]:
        """All that it counts."""
        for one in self.sums:
            yield from one.counted

    def links(self) -> Iterator[Link]:
        """Its comparisons with a number."""
        for (left, right), operator in zip(pairwise(self.sums), self.operators, strict=True):
            yield Link.between(left, operator, right)

    def without(self, missing: frozenset[str]) -> Condition:
        """The same with some counts taken as 0."""
        return Comparison(tuple(one.without(missing) for one in self.sums), self.operators)

    def holds(self, values: Mapping[Form, NDArray[np.int64]]) -> Any:
        """Whether it holds, for all values of the sums."""
        held = (COMPARISONS[link.operator](values[link.form], link.number) for link in self.links())
        return reduce(np.logical_and, held)


@dataclass(frozen=True)
class _Joined:
    """A condition made of others."""

    parts: tuple[Condition, ...]

    def names(self) -> Iterator[str]:
        """All that its parts count."""
        for part in self.parts:
            yield from part.names()

    def links(self) -> Iterator[Link]:
        """All comparisons with a number."""
        for part in self.parts:
            yield from part.links()

    def without(self, missing: frozenset[str]) -> Self:
        """The same with some counts taken as 0."""
        return replace(self, parts=tuple(part.without(missing) for part in self.parts))


class Not(_Joined):
    """What holds where another does not."""

    def __str__(self) -> str:
        return f"not {_within(self.parts[0], AllOf, AnyOf)}"

    def holds(self, values: Mapping[Form, NDArray[np.int64]]) -> Any:
        """Whether it holds, for all values of the sums."""
        return np.logical_not(self.parts[0].holds(values))


class AllOf(_Joined):
    """Conditions joined by `and`."""

    def __str__(self) -> str:
        return " and ".join(_within(part, AnyOf) for part in self.parts)

    def holds(self, values: Mapping[Form, NDArray[np.int64]]) -> Any:
        """Whether it holds, for all values of the sums."""
        return reduce(np.logical_and, (part.holds(values) for part in self.parts))


class AnyOf(_Joined):
    """Conditions joined by `or`."""

    def __str__(self) -> str:
        return " or ".join(_within(part, AllOf) for part in self.parts)

    def holds(self, values: Mapping[Form, NDArray[np.int64]]) -> Any:
        """Whether it holds, for all values of the sums."""
        return reduce(np.logical_or, (part.holds(values) for part in self.parts))


@dataclass(frozen=True)
class NumberOf(_Joined):
    """A number of conditions, whichever they are: `at least 2 of (…, …, …)`."""

    operator: str
    number: int

    def __str__(self) -> str:
        return f"{_NUMBERS[self.operator]} {self.number} of ({', '.join(map(str, self.parts))})"

    def holds(self, values: Mapping[Form, NDArray[np.int64]]) -> Any:
        """Whether it holds, for all values of the sums."""
        n_held = reduce(np.add, (np.asarray(part.holds(values), dtype=np.int16) for part in self.parts))
        return COMPARISONS[self.operator](n_held, self.number)


Condition = Comparison | Not | AllOf | AnyOf | NumberOf

_NUMBERS = {">=": "at least", "<=": "at most", "==": "exactly"}


def joined(kind: type[AllOf | AnyOf], parts: Sequence[Condition]) -> Condition:
    """Conditions joined by one word; those that it joins already are taken apart, as brackets change nothing there."""
    flat = (part.parts if isinstance(part, kind) else (part,) for part in parts)
    return kind(tuple(one for group in flat for one in group))


def _within(part: Condition, *kinds: type[AllOf | AnyOf]) -> str:
    return f"({part})" if isinstance(part, kinds) else str(part)
