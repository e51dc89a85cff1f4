"""``periventricular = ventricles <= 3 mm`` → a region of its own: what comes so near to others."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from lesioncount.errors import RegionError
from lesioncount.regions.region_names import checked_name, no_such_region

# A ball of 30 mm has 113 000 voxels of 1 mm³, each of which is looked up for each voxel of a candidate.
FARTHEST_MM = 30.0

# Between the regions of a candidate in a table, so that no name may hold it.
SEPARATOR = ";"

_LONGEST = 1000

_EXAMPLE = "'periventricular = ventricles <= 3mm'"

# A name in quotes, a sign, or a word. Words that follow each other are one name.
_TOKEN = re.compile(r'\s*(?:"(?P<quoted>[^"]*)"|(?P<sign><=|≤|=|\+)|(?P<word>[^\s"<≤=+]+))')
_DISTANCE = re.compile(r"(?P<number>\d+(?:\.\d*)?|\.\d+)\s*(?:mm)?", re.IGNORECASE)


@dataclass(frozen=True)
class Within:
    """A region that is defined by its distance from others; it overlaps with them.

    Attributes
    ----------
    name : str
    regions : tuple of str
        The regions of the label map whose nearest voxel counts.
    distance_mm : float
        From the centre of a voxel of a candidate to that of a voxel of one of these regions, at most.

    Examples
    --------
    >>> Within.parse("periventricular = lateral_left + lateral_right <= 3mm")
    Within(name='periventricular', regions=('lateral_left', 'lateral_right'), distance_mm=3.0)
    >>> Within.parse("ventricles <= 1.5 mm").name
    'ventricles<=1.5mm'
    """

    name: str
    regions: tuple[str, ...]
    distance_mm: float

    @classmethod
    def parse(cls, text: str) -> Within:
        """From a text such as ``'ventricles <= 3mm'``, with a name before it if it is to have one."""
        if not isinstance(text, str) or len(text) > _LONGEST:
            raise RegionError(f"Expected a distance to regions such as {_EXAMPLE}, but got {text!r:.100}.")
        parts = _parts(text)
        names = [part for part, is_sign in parts if not is_sign]
        signs = [part for part, is_sign in parts if is_sign]
        if [is_sign for _, is_sign in parts] != [place % 2 == 1 for place in range(2 * len(names) - 1)]:
            raise _wrong(text, "names and signs do not take turns")
        name = names.pop(0) if signs[:1] == ["="] else None
        if name is not None:
            signs.pop(0)
        if signs != ["+"] * (len(signs) - 1) + ["<="]:
            raise _wrong(text, "it does not end in <= and a distance")
        return cls._of(name, tuple(names[:-1]), _distance(names[-1], text), text)

    @classmethod
    def _of(cls, name: str | None, regions: tuple[str, ...], distance_mm: float, text: str) -> Within:
        default = f"{'+'.join(regions)}<={distance_mm:g}mm"
        checked = checked_name(default if name is None else name)
        if SEPARATOR in checked:
            raise _wrong(text, f"a name must not hold {SEPARATOR!r}; call it otherwise: 'name = …'")
        return cls(checked, regions, distance_mm)

    def __str__(self) -> str:
        """The same as text, which can be parsed."""
        return f"{_written(self.name)} = {' + '.join(map(_written, self.regions))} <= {self.distance_mm:g} mm"


def all_within(given: str | Within | Iterable[str | Within], /) -> tuple[Within, ...]:
    """Distances as they were given, which must have names of their own."""
    several = [given] if isinstance(given, str | Within) else list(given)
    found = tuple(one if isinstance(one, Within) else Within.parse(one) for one in several)
    for place, one in enumerate(found):
        if one.name in [before.name for before in found[:place]]:
            raise RegionError(f"Two regions by distance are called {one.name!r}. Call one otherwise: 'name = …'.")
    return found


def check_known(found: Sequence[Within], known: Iterable[str]) -> None:
    """Raise unless all regions are there that distances are from, and their own names are not taken."""
    names = list(known)
    for one in found:
        if one.name in names:
            raise RegionError(f"{one.name!r} is a region already. Call what is near to it otherwise: 'name = …'.")
        for region in one.regions:
            if region not in names:
                raise RegionError(f"{no_such_region(region, names)} Asked for: '{one}'.")


def _parts(text: str) -> list[tuple[str, bool]]:
    """Names and signs in turn: each with whether it is a sign."""
    parts: list[tuple[str, bool]] = []
    words: list[str] = []
    end = 0
    stripped = text.rstrip()
    while end < len(stripped):
        found = _TOKEN.match(stripped, end)
        if found is None:
            raise _wrong(text, f"nothing can begin with {stripped[end:].lstrip()[:1]!r}")
        end = found.end()
        if found["word"] is not None:
            words.append(found["word"])
            continue
        if words:
            parts.append((" ".join(words), False))
            words = []
        parts.append((found["quoted"].strip(), False) if found["sign"] is None else (found["sign"], True))
    if words:
        parts.append((" ".join(words), False))
    return [("<=", True) if part == ("≤", True) else part for part in parts]


def _distance(text: str, whole: str) -> float:
    found = _DISTANCE.fullmatch(text)
    distance = math.nan if found is None else float(found["number"])
    if not 0 <= distance <= FARTHEST_MM:
        raise _wrong(whole, f"{text!r:.60} is not a distance from 0 to {FARTHEST_MM:g} mm")
    return distance


def _wrong(text: str, why: str) -> RegionError:
    return RegionError(
        f"Expected a distance to regions such as {_EXAMPLE} (names with other signs in double quotes), but got "
        f"{text!r:.200}: {why}."
    )


def _written(name: str) -> str:
    """A name as it must be written to be read as one."""
    return name if re.fullmatch(r'[^\s"<≤=+]+', name) else f'"{name}"'
