"""A mask in which each lesion has a number of its own → its lesions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lesioncount.checks import checked_spacing
from lesioncount.protocol import CountingProtocol
from lesioncount.sweep.sizes import large_enough


@dataclass(frozen=True, eq=False)
class Instances:
    """Lesions that were drawn one by one: each value of a mask is one, wherever its voxels lie.

    Examples
    --------
    >>> drawn = np.array([[7, 7, 900, 900], [0, 7, 0, 3]])
    >>> Instances.of(drawn, CountingProtocol(min_voxels=2), spacing_mm=None).label_map()
    array([[1, 1, 2, 2],
           [0, 1, 0, 0]], dtype=int32)
    """

    n: int
    _labels: NDArray[np.int32]

    @classmethod
    def of(cls, values: NDArray[Any], protocol: CountingProtocol, /, *, spacing_mm: ArrayLike | None) -> Instances:
        """The values of a mask that are not 0, in rising order, but for those that are too small for the protocol."""
        voxel_size = checked_spacing(spacing_mm, values.ndim, protocol)
        where = np.nonzero(values)
        found, which = np.unique(values[where], return_inverse=True)
        high, low = np.zeros((2, len(found), values.ndim), dtype=np.int64)
        low[:] = values.shape
        np.minimum.at(low, which, np.transpose(where))
        np.maximum.at(high, which, np.transpose(where))
        kept = large_enough(
            np.bincount(which, minlength=len(found)),
            high - low + 1,
            protocol,
            voxel_size,
        )
        labels = np.zeros(values.shape, dtype=np.int32)
        labels[where] = np.where(kept, np.cumsum(kept), 0)[which]
        return cls(int(kept.sum()), labels)

    def __len__(self) -> int:
        return self.n

    def label_map(self) -> NDArray[np.int32]:
        """An array of the shape of the mask: 0 outside, 1, 2, … in the voxels of each lesion."""
        return self._labels
