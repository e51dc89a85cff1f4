"""What the page sends: bounded, and checked against its types before anything is done."""

from __future__ import annotations

from typing import Any, Literal, TypeVar

from msgspec import Struct
from msgspec.json import decode

from lesioncount.assess.reviews.journals import Verdict
from lesioncount.errors import ReviewError

T = TypeVar("T")

# Of the body of a request: a decision and what was shown take a few hundred bytes.
MOST_BYTES = 1 << 16


class Decision(Struct, frozen=True):
    """A verdict about a candidate."""

    candidate: int
    verdict: Verdict
    n: int = 1
    seconds: float = 0.0
    shown: dict[str, Any] = {}


class Addition(Struct, frozen=True):
    """A lesion that has no candidate, at this voxel."""

    at: tuple[int, ...]
    seconds: float = 0.0
    shown: dict[str, Any] = {}


class Undoing(Struct, frozen=True):
    """The last thing is taken back."""

    seconds: float = 0.0


class Ending(Struct, frozen=True):
    """The whole scan was looked at, or not yet; and what all candidates are that were not decided."""

    done: bool
    seconds: float = 0.0
    rest: Literal["none"] | None = None


class ReaderName(Struct, frozen=True):
    """The name of a reader."""

    name: str


def body_of(content: bytes, kind: type[T]) -> T:
    """The body of a request, as one of the types above."""
    try:
        return decode(content or b"{}", type=kind)
    except (ValueError, RecursionError) as error:
        raise ReviewError(f"The request cannot be understood: {str(error)[:200] or 'it is no JSON'}.") from None
