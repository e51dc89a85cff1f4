"""Smooth random fields, as sums of products of cosines: cheap on a grid, and the same between its voxels."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lesioncount_reproduction.synthetic.lattice import FIELD_OF_VIEW_MM, Places


@dataclass(frozen=True)
class SmoothField:
    """A random field of mean 0 and variance 1 whose waves have lengths within a band.

    Parameters
    ----------
    coefficients : ndarray, shape (kz, ky, kx)
        Of products of cosines with 0, 1, 2, … half waves along each axis of the field of view.
    """

    coefficients: NDArray[np.float64]

    @classmethod
    def drawn(cls, rng: np.random.Generator, *, shortest_mm: float, longest_mm: float) -> SmoothField:
        """A field with waves of these lengths, all equally strong."""
        half_waves = [np.arange(int(2 * extent / shortest_mm) + 1) for extent in FIELD_OF_VIEW_MM]
        per_mm = [k / (2 * extent) for k, extent in zip(half_waves, FIELD_OF_VIEW_MM, strict=True)]
        z, y, x = np.ix_(*per_mm)
        squared = z**2 + y**2 + x**2
        in_band = (squared >= longest_mm**-2) & (squared <= shortest_mm**-2)
        coefficients = rng.standard_normal(in_band.shape) * in_band
        # The mean square of a cosine is 1/2, that of a constant 1.
        power_z, power_y, power_x = np.ix_(*[np.where(k > 0, 0.5, 1.0) for k in half_waves])
        variance = (coefficients**2 * power_z * power_y * power_x).sum()
        return cls(coefficients / np.sqrt(variance))

    def on(self, places: Places) -> NDArray[np.float32]:
        """Its values at some places."""
        bases = [
            np.cos(np.pi * np.outer(axis / extent + 0.5, np.arange(n)))
            for axis, extent, n in zip(places.axes, FIELD_OF_VIEW_MM, self.coefficients.shape, strict=True)
        ]
        return places.contracted(self.coefficients, bases)
