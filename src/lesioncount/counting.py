"""Probability map → candidates → existence probabilities → count distribution: the three steps in one call."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lesioncount.candidates import Candidates, find_candidates
from lesioncount.checks import defined
from lesioncount.distributions.poisson_binomial import PoissonBinomial
from lesioncount.existence import existence_probabilities
from lesioncount.optional import optional
from lesioncount.protocol import CountingProtocol, ProtocolFields

if TYPE_CHECKING:
    import pandas as pd

# How much of a result is printed: the bins 0, 1, 2, 3, 4+ of the paper, and as many candidates.
_PRINTED_COUNT = 4
_PRINTED_CANDIDATES = 5


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
    """

    candidates: Candidates
    existence: NDArray[np.float64]
    distribution: PoissonBinomial

    @classmethod
    def of(cls, candidates: Candidates) -> LesionCount:
        """Steps 2 and 3, given the candidates."""
        existence = existence_probabilities(candidates)
        return cls(candidates, existence, PoissonBinomial(existence))

    @property
    def protocol(self) -> CountingProtocol:
        """What was counted as one lesion."""
        return self.candidates.protocol

    def to_dataframe(self) -> pd.DataFrame:
        """The candidates as a ``pandas.DataFrame``, a row for each, with its probability of existence."""
        columns = dict(self.candidates.columns())
        table = {"label": columns.pop("label"), "existence": self.existence, **columns}
        frame: pd.DataFrame = optional("pandas", "notebook", "to_dataframe()").DataFrame(table)
        return frame

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain values, under the names that the files of ``lesioncount count`` have for it."""
        count = self.distribution.to_dict()
        pmf = count.pop("pmf")
        found = self.candidates.to_dict()
        lesions = found.pop("lesions")
        return {**found, "count": count, "pmf": pmf, "lesions": lesions}

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
        bins = self.distribution.binned(_PRINTED_COUNT)
        names = [*map(str, range(_PRINTED_COUNT)), f"{_PRINTED_COUNT}+"]
        lines = [
            self.headline,
            "P(count)    " + "  ".join(f"{name}: {p:.3f}" for name, p in zip(names, bins, strict=True)),
            f"from        {self.candidates}",
        ]
        strongest = np.argsort(-self.existence, kind="stable")[:_PRINTED_CANDIDATES]
        lines += [self._candidate_line(int(row)) for row in strongest]
        if len(self.existence) > len(strongest):
            lines.append(f"            … and {len(self.existence) - len(strongest)} weaker candidates")
        return "\n".join(lines)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        from lesioncount.notebook_view import html_of_count  # not at the top: for notebooks only

        return html_of_count(self.headline, self.distribution, self.candidates)

    def _candidate_line(self, row: int) -> str:
        size = f"{self.candidates.n_voxels[row]} voxel{'' if self.candidates.n_voxels[row] == 1 else 's'}"
        if self.candidates.spacing_mm is not None:
            size += f", {self.candidates.volume_mm3[row]:.4g} mm³"
        peak = ", ".join(map(str, self.candidates.peak_index[row]))
        line = f"  #{row + 1:<8} exists with probability {self.existence[row]:.4f}: {size}, peak at ({peak})"
        height = self.candidates.saddle_probability[row]
        return f"{line}, saddle of {height:.4f}" if height > 0 else line


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
    spacing_mm : sequence of float, optional
        Voxel size along each axis of the map. Default: that of an image which has one. Without it volumes are NaN.
    scale : float, optional
        What one unit of the stored numbers is worth, such as ``1/255`` for a map stored as 0 … 255.
    logits : bool, default False
        Whether the map holds logits instead of probabilities.
    threads : int, default 1
        Number of threads. The result does not depend on it.
    **definition
        Fields of `CountingProtocol`, such as ``threshold=0.3, connectivity=26``, in place of those of the protocol.

    Returns
    -------
    LesionCount
        With ``candidates``, ``existence`` and ``distribution``.

    Raises
    ------
    MapError
        When the map, the mask or the voxel size cannot be used; the message says what to do.
    VoxelTypeError, ProtocolError, UnknownOptionError
        When the dtype or the protocol does not fit, or there is no such keyword.

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
    """
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
    return LesionCount.of(candidates)
