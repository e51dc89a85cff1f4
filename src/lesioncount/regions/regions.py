"""A label map and the names of its labels → where candidates lie."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lesioncount.candidates import Candidates
from lesioncount.errors import RegionError, ShapeError, SpacingError
from lesioncount.images import image_of
from lesioncount.regions.distances import distance_to
from lesioncount.regions.places import Places
from lesioncount.regions.region_names import OUTSIDE, checked_names
from lesioncount.regions.within import Within, all_within, check_known

# Values that a message names.
_SHOWN = 5


@dataclass(frozen=True, eq=False, repr=False)
class Regions:
    """A map of labels in which candidates are looked up.

    Parameters
    ----------
    labels : array_like of int
        Of the shape of the maps: the label of each voxel, 0 where there is no region. Not copied; numbers with a
        fraction are refused.
    names : mapping of int to str, optional
        What labels are called; several may share a name, such as left and right. Labels without one are called by
        their number.
    within : str, or sequence of str, optional
        Regions of their own, by distance: ``"periventricular = ventricles <= 3mm"``.
    present : sequence of int, optional
        Labels that are regions also where no candidate lies in them, as those that have names are.

    Notes
    -----
    A candidate belongs to the region of its peak: existence is the probability of that voxel, so that each unit of the
    count is in one place, and regions add up to the whole. Regions by distance are other questions to the same
    candidates: they hold those of which any voxel comes so near, and overlap with all others.

    Examples
    --------
    >>> from lesioncount import find_candidates
    >>> found = find_candidates([[0.75, 0.0, 0.0, 0.4]], spacing_mm=(1, 1))
    >>> places = Regions([[1, 1, 2, 0]], {1: "left", 2: "right"}, "near = right <= 1mm").places(found)
    >>> places.region_names, places.members["near"]
    (['left', 'outside'], array([False,  True]))
    """

    labels: NDArray[Any]
    names: dict[int, str]
    within: tuple[Within, ...]
    present: tuple[int, ...]

    def __init__(
        self,
        labels: ArrayLike,
        /,
        names: Mapping[int, str] | None = None,
        within: str | Within | Iterable[str | Within] = (),
        *,
        present: Iterable[int] = (),
    ) -> None:
        """Check them."""
        object.__setattr__(self, "labels", _checked_labels(labels))
        object.__setattr__(self, "names", checked_names(names))
        object.__setattr__(self, "within", all_within(within))
        object.__setattr__(self, "present", tuple(present))

    def places(self, candidates: Candidates) -> Places:
        """The regions of candidates of a map of the same shape."""
        if self.labels.shape != candidates.shape:
            raise ShapeError(
                f"Expected regions of the map's shape {candidates.shape}, but their shape is {self.labels.shape}."
            )
        if self.within and candidates.spacing_mm is None:
            raise SpacingError(
                "A distance in millimetres needs the voxel size, which is unknown. Pass spacing_mm=, for example "
                "spacing_mm=(1, 1, 3), or count without --within."
            )
        at_peaks = self.labels[tuple(candidates.peak_index.T)]
        by_label = self._named(at_peaks)
        names = (*dict.fromkeys(by_label.values()), OUTSIDE)
        number = {name: place for place, name in enumerate(names)}
        region = np.array([number[by_label.get(label, OUTSIDE)] for label in at_peaks.tolist()], dtype=np.intp)
        unnamed = tuple(name for label, name in by_label.items() if label not in self.names) if self.names else ()
        return Places(names, region, self.within, self._distances(candidates, by_label), unnamed)

    def _named(self, met: NDArray[Any]) -> dict[int, str]:
        """The names of labels: those that are given, and numbers for others that are met or asked for."""
        asked = {region for one in self.within for region in one.regions} - set(self.names.values())
        numbers = {int(name) for name in asked if name.isascii() and name.isdecimal()}
        found = {label for label in numbers - set(self.names) if label in self.present or (self.labels == label).any()}
        others = (found | set(self.present) | set(map(int, np.unique(met)))) - set(self.names) - {0}
        taken = set(self.names.values())
        return self.names | {label: f"label {label}" if str(label) in taken else str(label) for label in sorted(others)}

    def _distances(self, candidates: Candidates, by_label: Mapping[int, str]) -> NDArray[np.float64]:
        if not self.within:
            return np.empty((0, len(candidates)))
        check_known(self.within, by_label.values())
        wanted = [[label for label, name in by_label.items() if name in one.regions] for one in self.within]
        radii = [one.distance_mm for one in self.within]
        return np.stack(distance_to(candidates, self.labels, list(zip(wanted, radii, strict=True))))

    def __repr__(self) -> str:
        return f"Regions({len(set(self.names.values()))} names, shape {self.labels.shape}, {len(self.within)} within)"


def whole_numbers(values: NDArray[Any], what: str) -> NDArray[Any]:
    """Labels as whole numbers of whatever type; RegionError if they are none."""
    if values.dtype.kind in "biu":
        return values
    if values.dtype.kind != "f":
        raise RegionError(f"Expected {what} to be whole numbers, but their dtype is {values.dtype}.")
    labels: NDArray[Any] = np.nan_to_num(values, nan=0.0, posinf=np.inf, neginf=-np.inf)
    is_wrong = (labels != np.rint(labels)) | (np.abs(labels) > np.iinfo(np.int32).max)
    if is_wrong.any():
        found = np.unique(labels[is_wrong])
        shown = ", ".join(f"{value:g}" for value in found[:_SHOWN]) + (" …" if len(found) > _SHOWN else "")
        raise RegionError(
            f"Expected {what} to be whole numbers, one for each region, but they hold {shown}. A map of probabilities "
            "is no label map, nor is one that was resampled with interpolation: take the nearest voxel."
        )
    return labels.astype(np.int32)


def _checked_labels(labels: ArrayLike) -> NDArray[Any]:
    voxels = np.asarray(image_of(labels, "regions as an array").voxels)
    if voxels.ndim not in (2, 3):
        raise ShapeError(f"Expected regions of two or three axes, but their shape is {voxels.shape}.")
    return whole_numbers(voxels, "the labels of regions")
