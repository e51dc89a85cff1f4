"""What goes from process to process by the hundred thousand."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from operator import attrgetter
from typing import Any

from lesioncount.folder.plain import field_names


class Sent:
    """A frozen dataclass with slots that is pickled as the call that makes it.

    Of those, Python's own way looks all fields up again, on both sides, which takes several times as long.
    """

    __slots__ = ()

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        """The call that makes it again."""
        kind: Any = type(self)
        return kind, _values(kind)(self)


@cache
def _values(kind: Any) -> Callable[[object], tuple[Any, ...]]:
    """What gives the values of the fields of a type, of which there are at least two."""
    values: Callable[[object], tuple[Any, ...]] = attrgetter(*field_names(kind))
    return values
