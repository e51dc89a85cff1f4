"""Something roundish: what lesions, and what looks like them, are made of."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from lesioncount_reproduction.synthetic.lattice import Lattice, Window

# Lesions fade into what is around them over this distance, or over a voxel if that is larger.
_EDGE_MM = 3.0


@dataclass(frozen=True)
class Blob:
    """Something roundish, in millimetres: an ellipsoid with a dent.

    Parameters
    ----------
    centre_mm : ndarray, shape (3,)
        Along z, y, x.
    volume_mm3 : float
    squeeze : ndarray, shape (3, 3)
        Makes a ball of it; its determinant is 1.
    dent : ndarray, shape (3,)
        Towards this side it is shorter, by this share.
    amplitude : float
        How much it adds to the image that it is seen in first.
    in_flair, is_ring, is_hole : bool
        Whether it shines in FLAIR and T2, enhances as a ring, is dark in T1.
    labelled : bool
        Whether the rater has seen it.
    """

    centre_mm: NDArray[np.float64]
    volume_mm3: float
    squeeze: NDArray[np.float64]
    dent: NDArray[np.float64]
    amplitude: float
    in_flair: bool = True
    is_ring: bool = False
    is_hole: bool = False
    labelled: bool = True

    @property
    def radius_mm(self) -> float:
        """Of the ball of the same volume."""
        return float(np.cbrt(self.volume_mm3 * 3 / (4 * np.pi)))

    @property
    def reach_mm(self) -> float:
        """No part of it is further from its centre."""
        narrowest = float(np.linalg.svd(self.squeeze, compute_uv=False)[-1])
        return self.radius_mm / (narrowest * (1 - float(np.linalg.norm(self.dent))))

    def inside_mm(self, lattice: Lattice, *, margin_mm: float = 0.0) -> tuple[Window, NDArray[np.float32]]:
        """A window of the lattice, and in it about the distance from the surface, positive inside."""
        window = lattice.window(self.centre_mm, self.reach_mm + margin_mm)
        offsets = lattice.offsets(window, self.centre_mm)
        across = [sum(np.float32(a) * o for a, o in zip(row, offsets, strict=True)) for row in self.squeeze]
        length = np.sqrt(sum(np.square(a) for a in across))
        towards = sum(np.float32(d) * a for d, a in zip(self.dent, across, strict=True))
        return window, np.asarray(np.float32(self.radius_mm) - length - towards)

    def paint_mask(self, mask: NDArray[np.bool_], lattice: Lattice) -> None:
        """Set the voxels whose centres are inside, and in any case the one nearest to its centre."""
        window, inside = self.inside_mm(lattice)
        mask[window] |= inside >= 0
        mask[lattice.window(self.centre_mm, 0.0)] = True

    def paint(self, image: NDArray[np.float32], lattice: Lattice, amplitude: float, *, grown: float = 1.0) -> None:
        """Let an image shine (or, below 0, be dark) by an amplitude where it is; ``grown`` in volume."""
        edge = np.float32(max(_EDGE_MM, float(np.mean(lattice.spacing_mm))))
        blob = self if grown == 1.0 else replace(self, volume_mm3=self.volume_mm3 * grown)
        window, inside = blob.inside_mm(lattice, margin_mm=float(edge))
        share = np.clip(np.float32(0.5) + inside / edge, 0, 1)
        if self.is_ring and grown == 1.0:
            share *= 1 - np.float32(0.85) * np.clip((inside - np.float32(0.4 * self.radius_mm)) / edge + 0.5, 0, 1)
        image[window] += np.float32(amplitude) * share
