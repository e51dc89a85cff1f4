"""What counts as one lesion: threshold, connectivity, regions or peaks, and the smallest size, as one named object."""

from __future__ import annotations

import math
import reprlib
from dataclasses import asdict, dataclass, fields, replace
from numbers import Integral, Real
from typing import Any, Self, TypedDict

from lesioncount.errors import ProtocolError, reason_of

# The number of axes along which a step to a neighbour may go, by name and by the number of neighbours.
_BY_NAME = {"faces": 1, "edges": 2, "corners": 3}
_BY_NUMBER = {2: {4: 1, 8: 2}, 3: {6: 1, 18: 2, 26: 3}}
_CONNECTIVITIES = 'In 3-D it is 6, 18 or 26; in 2-D 4 or 8; "faces", "edges" and "corners" hold in both.'

# What a candidate is: a region above the threshold, or each peak in it; without a map, what a detector has found.
_CANDIDATES = ("regions", "peaks", "detections")

# Two detections that lie nearer are one, where no smallest size says what is near; and farther than the second, two
# small lesions may well lie apart.
_MERGED_MM, _MERGED_AT_MOST_MM = 5.0, 10.0

# Smallest sizes in millimetres.
_SIZES_MM = ("min_volume_mm3", "min_diameter_mm", "min_length_mm")


def _number(name: str, value: object) -> float:
    try:
        number = math.nan if isinstance(value, bool) or not isinstance(value, Real) else float(value)
    except OverflowError:  # a whole number of hundreds of digits
        raise ProtocolError(f"Expected {name} to be a number, but got one that is too large.") from None
    if math.isnan(number):
        raise ProtocolError(f"Expected {name} to be a number, but got {reprlib.repr(value)}.")
    return number


def _connectivity(value: object) -> int | str:
    if isinstance(value, str) and value in _BY_NAME:
        return value
    if isinstance(value, Integral) and any(value in numbers for numbers in _BY_NUMBER.values()):
        return int(value)
    raise ProtocolError(f"Connectivity {reprlib.repr(value)} is unknown. {_CONNECTIVITIES}")


class ComponentFields(TypedDict, total=False):
    """What may be said of connected components, whatever their threshold."""

    connectivity: int | str
    min_voxels: int
    min_volume_mm3: float
    min_diameter_mm: float
    min_length_mm: float


class ProtocolFields(ComponentFields, total=False):
    """The fields of a `CountingProtocol` as keywords of the functions that count."""

    threshold: float
    candidates: str
    min_persistence: float
    merge_within_mm: float | None


@dataclass(frozen=True)
class CountingProtocol:
    """The definition of "one lesion" that a count stands on.

    Parameters
    ----------
    threshold : float, default 0.1
        A voxel belongs to a candidate when its probability is **greater** than this. In [0, 1); low, so that weak
        candidates are kept and counted with their low probability.
    connectivity : int or str, default "edges"
        Which voxels touch. In 3-D 6, 18 or 26, in 2-D 4 or 8; or ``"faces"`` (6 and 4), ``"edges"`` (18 and 8) or
        ``"corners"`` (26 and 8), which hold in both.
    min_voxels : int, default 1
        Candidates of fewer voxels are dropped.
    min_volume_mm3 : float, default 0
        Candidates of a smaller volume are dropped. Needs the voxel size.
    min_diameter_mm : float, default 0
        Candidates are dropped when the ball (in 2-D the disc) of the same volume has a smaller diameter. Needs the
        voxel size.
    min_length_mm : float, default 0
        Candidates are dropped when the longest side of their bounding box, along the axes of the map, is shorter: the
        long axis as clinical criteria ask for it. A lesion that lies across the axes is a little longer than that.
        Needs the voxel size.
    candidates : str, default "regions"
        ``"regions"``: each connected region above the threshold is a candidate, as in the paper. ``"peaks"``: each peak
        of the map is one, so that lesions that touch are counted apart. A peak whose own region is smaller than one of
        the sizes above then joins its neighbour, and is dropped if it has none. ``"detections"``: the scored boxes or
        points of a detector, for tables of these. The threshold is then a floor of the scores.
    min_persistence : float, default 0
        Peaks that stand out by less from the saddle to their neighbour join it: ripples are left out. What they would
        have added to the expected count, the sum of their persistences, is lost. Of ``"peaks"`` only.
    merge_within_mm : float, optional
        Of ``"detections"`` only: of two that lie nearer, the one with the lower score is dropped as a double. Default:
        half the smallest size that counts, at most 10 mm; 5 mm where every size counts.

    Examples
    --------
    >>> CountingProtocol()
    CountingProtocol(threshold=0.1, connectivity='edges', min_voxels=1, min_volume_mm3=0.0, min_diameter_mm=0.0,
    min_length_mm=0.0, candidates='regions', min_persistence=0.0, merge_within_mm=None)
    >>> CountingProtocol(connectivity=26, min_volume_mm3=3) == CountingProtocol.from_json(
    ...     '{"connectivity": 26, "min_volume_mm3": 3}'
    ... )
    True
    """

    threshold: float = 0.1
    connectivity: int | str = "edges"
    min_voxels: int = 1
    min_volume_mm3: float = 0.0
    min_diameter_mm: float = 0.0
    min_length_mm: float = 0.0
    candidates: str = "regions"
    min_persistence: float = 0.0
    merge_within_mm: float | None = None

    def __post_init__(self) -> None:
        """Check once, and store plain Python numbers whatever came."""
        threshold = _number("threshold", self.threshold)
        if not 0 <= threshold < 1:
            raise ProtocolError(
                f"Expected a threshold in [0, 1), but got {threshold:g}. A voxel is in when its probability is greater "
                "than the threshold, so nothing can be above 1. Percent or 0-255? Divide first."
            )
        object.__setattr__(self, "threshold", threshold)
        object.__setattr__(self, "connectivity", _connectivity(self.connectivity))
        voxels = _number("min_voxels", self.min_voxels)
        if voxels < 0 or not voxels.is_integer():
            raise ProtocolError(f"Expected min_voxels to be a whole number of voxels, but got {self.min_voxels!r}.")
        object.__setattr__(self, "min_voxels", int(voxels))
        for name in _SIZES_MM:
            size = _number(name, getattr(self, name))
            if size < 0 or math.isinf(size):
                raise ProtocolError(f"Expected {name} to be a size of at least 0, but got {size:g}.")
            object.__setattr__(self, name, size)
        self._check_candidates()

    def _check_candidates(self) -> None:
        if self.candidates not in _CANDIDATES:
            raise ProtocolError(
                'Expected candidates to be "regions", "peaks" or "detections", but got '
                f"{reprlib.repr(self.candidates)}."
            )
        object.__setattr__(self, "candidates", str(self.candidates))
        persistence = _number("min_persistence", self.min_persistence)
        if not 0 <= persistence < 1:
            raise ProtocolError(f"Expected min_persistence in [0, 1), but got {persistence:g}.")
        if persistence > 0 and not self.has_peaks:
            raise ProtocolError(
                'Only peaks have a persistence. Count them (candidates="peaks", CLI: --protocol peaks), or leave '
                "min_persistence out."
            )
        object.__setattr__(self, "min_persistence", persistence)
        self._check_merging()

    def _check_merging(self) -> None:
        """Store how near two detections are one: what is not given follows from the smallest size that counts."""
        if not self.has_detections:
            if self.merge_within_mm is not None:
                raise ProtocolError(
                    "Only detections are merged by distance. Leave merge_within_mm (--merge-within) out, or count a "
                    "table of detections."
                )
            return
        if self.min_voxels > 1:
            raise ProtocolError("Detections have no voxels: give their smallest size in millimetres, not min_voxels.")
        if self.merge_within_mm is None:
            ball_mm = (6 * self.min_volume_mm3 / math.pi) ** (1 / 3)
            smallest_mm = max(self.min_diameter_mm, self.min_length_mm, ball_mm)
            within = min(smallest_mm / 2, _MERGED_AT_MOST_MM) if smallest_mm > 0 else _MERGED_MM
        else:
            within = _number("merge_within_mm", self.merge_within_mm)
        if not 0 <= within < math.inf:
            raise ProtocolError(f"Expected merge_within_mm to be a distance of at least 0, but got {within:g}.")
        object.__setattr__(self, "merge_within_mm", within)

    @property
    def has_detections(self) -> bool:
        """Whether candidates are those of a table, and not of a map."""
        return self.candidates == "detections"

    @property
    def has_peaks(self) -> bool:
        """Whether each peak is a candidate, and not each region."""
        return self.candidates == "peaks"

    def components_above(self, threshold: float) -> CountingProtocol:
        """The same connectivity and smallest size for connected components above a threshold."""
        return replace(self, threshold=threshold, candidates="regions", min_persistence=0.0, merge_within_mm=None)

    def neighbours(self, ndim: int) -> int:
        """Along how many axes a step to a neighbour may go (1, 2 or 3), checked for a map of ``ndim`` axes."""
        if isinstance(self.connectivity, str):
            return min(_BY_NAME[self.connectivity], ndim)
        if self.connectivity not in _BY_NUMBER[ndim]:
            raise ProtocolError(f"Connectivity {self.connectivity} does not fit a {ndim}-D map. {_CONNECTIVITIES}")
        return _BY_NUMBER[ndim][self.connectivity]

    @property
    def needs_spacing(self) -> bool:
        """Whether a smallest size is given in millimetres."""
        return any(getattr(self, name) > 0 for name in _SIZES_MM)

    @classmethod
    def named(cls, name: str) -> CountingProtocol:
        """One of the presets in ``PROTOCOLS``."""
        try:
            return PROTOCOLS[name].protocol
        except (KeyError, TypeError):
            raise ProtocolError(f"There is no protocol {name!r}. Known are {', '.join(PROTOCOLS)}.") from None

    def to_dict(self) -> dict[str, Any]:
        """The fields, as plain values; without what only detections have, where they are none."""
        return {name: value for name, value in asdict(self).items() if value is not None}

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Self:
        """From the fields; what is not given takes its default, and an unknown field is an error."""
        known = [field.name for field in fields(cls)]
        for name in values:
            if name not in known:
                raise ProtocolError(f"A counting protocol has no field {name!r}. Known are {', '.join(known)}.")
        return cls(**values)

    def to_json(self) -> str:
        """The fields as a JSON object."""
        import json  # not at the top: most users of a protocol never see it as JSON

        return json.dumps(self.to_dict())

    @classmethod
    def from_json(cls, text: str) -> Self:
        """From what `to_json` wrote, or from any JSON object with some of the fields."""
        import json

        try:
            values = json.loads(text)
        except ValueError as error:
            raise ProtocolError(
                f"Expected a counting protocol as JSON, but it does not parse: {reason_of(error)}."
            ) from None
        except RecursionError:
            raise ProtocolError("Expected a counting protocol as JSON, but it is nested too deeply.") from None
        if not isinstance(values, dict):
            raise ProtocolError(f"Expected a counting protocol as a JSON object, but got {text[:60]!r}.")
        return cls.from_dict(values)

    def __str__(self) -> str:
        """One line in plain words."""
        if self.has_detections:
            words = [f"detections with a score above {self.threshold:g}"]
            words += [f"one of those within {self.merge_within_mm:g} mm"] if self.merge_within_mm else []
            return ", ".join(words + self._sizes_in_words())
        words = [f"voxels above {self.threshold:g}", f"connected through {self._connectivity_in_words()}"]
        if self.has_peaks:
            least = self.min_persistence
            words.append("split into peaks" + (f" that stand out by at least {least:g}" if least > 0 else ""))
        return ", ".join(words + self._sizes_in_words())

    def _sizes_in_words(self) -> list[str]:
        words = []
        if self.min_voxels > 1:
            words.append(f"at least {self.min_voxels} voxels")
        if self.min_volume_mm3 > 0:
            words.append(f"at least {self.min_volume_mm3:g} mm³")
        if self.min_diameter_mm > 0:
            words.append(f"at least {self.min_diameter_mm:g} mm across")
        if self.min_length_mm > 0:
            words.append(f"at least {self.min_length_mm:g} mm long")
        return words

    def _connectivity_in_words(self) -> str:
        if isinstance(self.connectivity, str):
            return self.connectivity
        return f"{self.connectivity} neighbours"


@dataclass(frozen=True)
class NamedProtocol:
    """A preset, and who counts this way."""

    protocol: CountingProtocol
    description: str


PROTOCOLS: dict[str, NamedProtocol] = {
    "paper": NamedProtocol(
        CountingProtocol(threshold=0.1, connectivity="edges"),
        "Schroeter et al., MIDL 2022: 18 neighbours in 3-D, 8 in 2-D, no smallest size. The default.",
    ),
    "faces": NamedProtocol(
        CountingProtocol(threshold=0.1, connectivity="faces"),
        "6 neighbours in 3-D, 4 in 2-D, as LST-AI and MetricsReloaded: touching corners are two lesions.",
    ),
    "corners": NamedProtocol(
        CountingProtocol(threshold=0.1, connectivity="corners"),
        "26 neighbours in 3-D, 8 in 2-D, as nnDetection, panoptica and Fiji: anything that touches is one lesion.",
    ),
    "ms": NamedProtocol(
        CountingProtocol(threshold=0.1, connectivity="corners", min_length_mm=3),
        "Lesions of multiple sclerosis: at least 3 mm in long axis, as the 2017 McDonald criteria ask (Thompson et "
        "al., Lancet Neurology 2018). Needs the voxel size.",
    ),
    "peaks": NamedProtocol(
        CountingProtocol(threshold=0.1, connectivity="edges", candidates="peaks"),
        "As paper, but each peak of the map is a candidate: lesions that touch are counted apart.",
    ),
    "detections": NamedProtocol(
        CountingProtocol(threshold=0.0, candidates="detections"),
        "Scored boxes or points of a detector, from a table: no map, no voxels. The default for tables.",
    ),
}
