"""A number and how far it can be trusted: the one type for every score, rate and difference that has an interval."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Annotated, Any

from msgspec import Meta, Struct, field
from msgspec.structs import force_setattr

from lesioncount.errors import ScoreError

if TYPE_CHECKING:
    Number = float
else:
    Number = float | None  # null in a file, NaN here

# As files have them.
AtLeastZero = Annotated[int, Meta(ge=0)]
Share = Annotated[float, Meta(ge=0, le=1)]


class Numbers(Struct, frozen=True):
    """Fields of which some may be unknown: null in a file, NaN here."""

    def __post_init__(self) -> None:
        for name in self.__struct_fields__:
            if getattr(self, name) is None:
                force_setattr(self, name, math.nan)


class Estimate(Numbers, frozen=True, omit_defaults=True):
    """A number with its 95 % interval; NaN where something is not defined.

    Attributes
    ----------
    value : float
        Called ``estimate`` in files.
    low, high : float
        Ends of the interval, over scans or patients.
    seeds : tuple of float
        Of a mean over trainings, the value of each. Files have it only where there are any.

    Examples
    --------
    >>> -Estimate(0.5, 0.4, 0.7)
    Estimate(value=-0.5, low=-0.7, high=-0.4, seeds=())
    """

    # From a factory: files have these three, known or not.
    value: Number = field(default_factory=lambda: math.nan, name="estimate")
    low: Number = field(default_factory=lambda: math.nan)
    high: Number = field(default_factory=lambda: math.nan)
    seeds: tuple[Number, ...] = ()

    def __post_init__(self) -> None:
        super().__post_init__()
        if None in self.seeds:
            force_setattr(self, "seeds", tuple(math.nan if one is None else one for one in self.seeds))

    @property
    def is_defined(self) -> bool:
        """Whether there is a number at all."""
        return not math.isnan(self.value)

    @property
    def has_interval(self) -> bool:
        """Whether both ends are known."""
        return not (math.isnan(self.low) or math.isnan(self.high))

    def cells(self, name: str) -> dict[str, float]:
        """The number and its interval as cells of a row: ``name``, ``name_low`` and ``name_high``."""
        return {name: self.value, f"{name}_low": self.low, f"{name}_high": self.high}

    def __neg__(self) -> Estimate:
        return Estimate(-self.value, -self.high, -self.low, tuple(-value for value in self.seeds))


def cells_of(row: Struct, /) -> dict[str, Any]:
    """The fields as cells of a row: an estimate is three of them, and several names are one."""
    cells: dict[str, Any] = {}
    for name in row.__struct_fields__:
        value = getattr(row, name)
        if isinstance(value, Estimate):
            cells |= value.cells(name)
        else:
            cells[name] = ", ".join(value) if isinstance(value, tuple) else value
    return cells


class Curve(Struct, frozen=True):
    """Columns of one length."""

    def __post_init__(self) -> None:
        names = self.__struct_fields__
        lengths = {len(getattr(self, name)) for name in names}
        if len(lengths) != 1 or 0 in lengths:
            raise ScoreError(f"Expected {', '.join(names)} to be lists of the same length.")
