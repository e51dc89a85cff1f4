"""Probability map → candidates → existence probabilities → count distribution: the three steps in one call."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lesioncount.candidates import Candidates, find_candidates
from lesioncount.checks import defined
from lesioncount.distributions.poisson_binomial import PoissonBinomial
from lesioncount.errors import LowerBoundWarning, RegionError
from lesioncount.existence import existence_probabilities
from lesioncount.optional import optional
from lesioncount.protocol import CountingProtocol, ProtocolFields

if TYPE_CHECKING:
    import pandas as pd

    from lesioncount.questions import Question
    from lesioncount.regions import Places, RegionCounts, Regions, Within


@dataclass(frozen=True, eq=False, repr=False)
class LesionCount:
    """How many lesions a map shows, and where the number comes from.

    Printing it gives a summary; in a notebook it shows a picture of the distribution.

    Attributes
    ----------
    candidates : Candidates
        Step 1: the regions that may be lesions, a row each.
    existence : ndarray of float64
        Step 2: the probability that each of them is one, in the same order.
    distribution : PoissonBinomial
        Step 3: the probability of each count.
    places : Places or None
        Which regions the candidates lie in, where it was counted with regions.
    """

    candidates: Candidates
    existence: NDArray[np.float64]
    distribution: PoissonBinomial
    places: Places | None = None

    @classmethod
    def of(cls, candidates: Candidates, regions: Regions | None = None) -> LesionCount:
        """Steps 2 and 3, given the candidates."""
        existence = existence_probabilities(candidates)
        places = None if regions is None else regions.places(candidates)
        return cls(candidates, existence, PoissonBinomial(existence), places)

    @property
    def protocol(self) -> CountingProtocol:
        """What was counted as one lesion."""
        return self.candidates.protocol

    @cached_property
    def regions(self) -> RegionCounts:
        """The number of lesions in each region, by its name; none unless it was counted with regions."""
        from lesioncount.regions import RegionCounts  # not at the top: only some count by region

        members = {} if self.places is None else self.places.members
        return RegionCounts({name: self.existence[member] for name, member in members.items()}, PoissonBinomial)

    def by_region(
        self,
        labels: ArrayLike | Regions,
        /,
        names: Mapping[int, str] | None = None,
        within: str | Within | Iterable[str | Within] = (),
    ) -> RegionCounts:
        """The number of lesions in each region of a label map: `regions`, for a map that was counted without.

        Parameters
        ----------
        labels : array_like of int, or Regions
            Of the shape of the map, with 0 where there is no region.
        names, within
            As in `Regions`.
        """
        return LesionCount.of(self.candidates, _regions(labels, names, within)).regions

    def ask(self, question: Question | str, /) -> float:
        """The probability that the numbers of lesions fulfil a question.

        Parameters
        ----------
        question : str or Question
            Such as ``"count >= 9"`` or ``"periventricular >= 1 and juxtacortical >= 1"``, about the count and the
            regions it was counted with; or the name of a known criterion, such as ``"mcdonald2017-dis"``.

        Warns
        -----
        LowerBoundWarning
            When a known criterion asks for a region that is not there: no lesion is taken to lie in it.

        Examples
        --------
        >>> import numpy as np
        >>> halves = np.array([[1, 1, 2, 2]])
        >>> names = {1: "left", 2: "right"}
        >>> result = count_lesions(np.array([[0.8, 0.0, 0.0, 0.4]]), regions=halves, region_names=names)
        >>> round(result.ask("left >= 1 and right >= 1"), 3), round(result.ask("count >= 1"), 3)
        (0.32, 0.88)
        """
        from lesioncount.questions import Question, Trials, probability_of  # not at the top: only some ask

        places = {} if self.places is None else self.places.members
        adds = {"count": np.ones(len(self.existence), dtype=bool), **places}
        asked, missing = (question if isinstance(question, Question) else Question.asked(question)).given(adds)
        if missing:
            warnings.warn(
                f"There is no region {' nor '.join(missing)}: no lesion is taken to lie there, and the probability is "
                "a lower bound.",
                LowerBoundWarning,
                stacklevel=2,
            )
        used = {name: adds[name] for name in asked.names}
        return probability_of(asked, Trials(probability=self.existence, adds=used))

    def to_dataframe(self) -> pd.DataFrame:
        """The candidates as a ``pandas.DataFrame``, a row for each, with its probability of existence and region."""
        columns = dict(self.candidates.columns())
        table: dict[str, Any] = {"label": columns.pop("label"), "existence": self.existence, **columns}
        if self.places is not None:
            table |= self.places.columns()
        frame: pd.DataFrame = optional("pandas", "notebook", "to_dataframe()").DataFrame(table)
        return frame

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain values, under the names that the files of ``lesioncount count`` have for it."""
        count = self.distribution.to_dict()
        pmf = count.pop("pmf")
        found = self.candidates.to_dict()
        lesions = found.pop("lesions")
        regions = (
            {} if self.places is None else {"regions": {name: one.to_dict() for name, one in self.regions.items()}}
        )
        return {**found, "count": count, "pmf": pmf, **regions, "lesions": lesions}

    def to_json(self) -> str:
        """The same as JSON."""
        import json  # not at the top: only some write JSON

        return json.dumps(self.to_dict(), allow_nan=False, ensure_ascii=False)

    @property
    def headline(self) -> str:
        """The count in one line."""
        count = self.distribution
        low, high = count.interval(0.9)
        mode = count.mode()
        return (
            f"{mode} lesion{'' if mode == 1 else 's'} most likely ({count.pmf(mode):.1%}), "
            f"mean {count.mean():.2f} ± {count.std():.2f}, 90 % interval {low} to {high}"
        )

    def __str__(self) -> str:
        """A few readable lines."""
        from lesioncount.views.text import text_of_count  # not at the top: only some print it

        regions = None if self.places is None else self.regions
        return text_of_count(self.headline, self.distribution, self.candidates, self.existence, regions)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        from lesioncount.views.notebook import html_of_count  # not at the top: for notebooks only

        return html_of_count(self.headline, self.distribution, self.candidates)


def count_lesions(
    probabilities: ArrayLike,
    /,
    *,
    protocol: CountingProtocol | str | None = None,
    mask: ArrayLike | None = None,
    spacing_mm: ArrayLike | None = None,
    scale: float | None = None,
    logits: bool = False,
    threads: int = 1,
    regions: ArrayLike | Regions | None = None,
    region_names: Mapping[int, str] | None = None,
    within: str | Within | Iterable[str | Within] = (),
    **definition: Unpack[ProtocolFields],
) -> LesionCount:
    """The probability distribution of the number of lesions in a map.

    Parameters
    ----------
    probabilities : array_like
        2-D or 3-D map: for each voxel, the probability that it belongs to a lesion. float16, float32, float64, bool, or
        integers with ``scale``, in any memory order. Not written to, and not copied unless the machine cannot read it
        as it is (other byte order, 64-bit integers): then a slab at a time. Images of nibabel and SimpleITK, MONAI's
        ``MetaTensor`` and arrays of xarray are taken as they are, with their voxel size.
    protocol : CountingProtocol or str, optional
        What counts as one lesion, or the name of a preset. Default: that of the paper, ``"paper"``.
    mask : array_like, optional
        Only voxels where it is not zero are looked at; the others may hold anything, NaN included.
    spacing_mm : array_like, optional
        Voxel size along each axis of the map; of a sheared grid, the edges of a voxel as columns, ``affine[:3, :3]``.
        Default: that of an image which has one. Without it volumes are NaN.
    scale : float, optional
        What one unit of the stored numbers is worth, such as ``1/255`` for a map stored as 0 … 255.
    logits : bool, default False
        Whether the map holds logits instead of probabilities.
    threads : int, default 1
        Number of threads. The result does not depend on it.
    regions : array_like of int, or Regions, optional
        A label map of the same shape, 0 where there is no region: then the result has ``regions``, the count in each.
    region_names : mapping of int to str, optional
        What labels are called, such as ``{1: "frontal"}``; several may share a name. Default: their numbers.
    within : str, or sequence of str, optional
        Regions of their own, by distance: ``"periventricular = ventricles <= 3mm"``.
    **definition
        Fields of `CountingProtocol`, such as ``threshold=0.3, connectivity=26``, in place of those of the protocol.

    Returns
    -------
    LesionCount
        With ``candidates``, ``existence`` and ``distribution``, and ``regions`` where these were given.

    Raises
    ------
    MapError
        When the map, the mask or the voxel size cannot be used; the message says what to do.
    VoxelTypeError, ProtocolError, UnknownOptionError
        When the dtype or the protocol does not fit, or there is no such keyword.
    RegionError
        When regions are not whole numbers, or their names or distances make no sense.

    Warns
    -----
    BinaryMapWarning, CutOffMapWarning
        When the map can be counted, but is not a map of probabilities.

    Notes
    -----
    Section 3.1 of the paper: C = Σ_k Bernoulli(max over i in R_k of p(V_i = 1)), R_k the candidates.

    Examples
    --------
    >>> import numpy as np
    >>> probabilities = np.zeros((8, 8, 8), dtype=np.float32)
    >>> probabilities[1:3, 1:3, 1:3] = 0.784
    >>> probabilities[5, 5, 5:7] = 0.3, 0.5189
    >>> print(count_lesions(probabilities, spacing_mm=(1, 1, 3)))
    1 lesion most likely (48.9%), mean 1.30 ± 0.65, 90 % interval 0 to 2
    P(count)    0: 0.104  1: 0.489  2: 0.407  3: 0.000  4+: 0.000
    from        2 candidates (voxels above 0.1, connected through edges)
      #1        exists with probability 0.7840: 8 voxels, 24 mm³, peak at (1, 1, 1)
      #2        exists with probability 0.5189: 2 voxels, 6 mm³, peak at (5, 5, 6)

    And where:

    >>> halves = np.ones((8, 8, 8), dtype=np.uint8)
    >>> halves[4:] = 2
    >>> result = count_lesions(probabilities, regions=halves, region_names={1: "left", 2: "right"})
    >>> result.regions["left"].pmf().round(3)
    array([0.216, 0.784])
    """
    where = _regions(regions, region_names, within)
    candidates = find_candidates(
        probabilities,
        protocol=defined(protocol, definition, count_lesions),
        mask=mask,
        spacing_mm=spacing_mm,
        scale=scale,
        logits=logits,
        threads=threads,
        warn=False,
    )
    candidates.warn(stacklevel=2)
    return LesionCount.of(candidates, where)


def _regions(
    regions: ArrayLike | Regions | None,
    names: Mapping[int, str] | None,
    within: str | Within | Iterable[str | Within],
) -> Regions | None:
    if regions is None:
        if names is not None or within:
            raise RegionError("Names of regions and distances to them need the regions: pass regions=, a label map.")
        return None
    from lesioncount.regions import Regions  # not at the top: only some count by region

    return regions if isinstance(regions, Regions) else Regions(regions, names, within)
