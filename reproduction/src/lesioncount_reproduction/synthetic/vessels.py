"""Vessels, sinus and choroid plexus: they enhance in every patient, and a cut through one looks like a lesion."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lesioncount_reproduction.synthetic.anatomy import Anatomy
from lesioncount_reproduction.synthetic.lattice import FIELD_OF_VIEW_MM, Lattice, Points

# In each patient; lengths and radii were chosen in voxels of 24 × 48 × 40, which are 3.5 mm wide.
_N_LONG, _N_SHORT = 7.0, 0.7
_LONG_MM, _SHORT_MM = (45.0, 100.0), (8.0, 20.0)
_RADIUS_MM = (2.1, 3.3)
_AMPLITUDE = (0.4, 1.3)
_STEP_MM = 2.0

# How much a vessel changes its direction in one step.
_TURN = 0.28

# Most long vessels run in the outer part of the brain.
_OUTER_MM = 22.0

# The sinus above the fissure, and the choroid plexus in the ventricles.
_SINUS_AMPLITUDE, _SINUS_RADIUS_MM = (0.7, 1.3), (2.2, 3.2)
_PLEXUS_AMPLITUDE, _PLEXUS_RADIUS_MM = (0.4, 1.1), (1.8, 3.0)


@dataclass(frozen=True)
class Tube:
    """A line of some width that enhances.

    Parameters
    ----------
    path_mm : ndarray, shape (n, 3)
        Along z, y, x; its points are less than a radius apart.
    radius_mm, amplitude : float
    """

    path_mm: NDArray[np.float64]
    radius_mm: float
    amplitude: float

    def paint(self, image: NDArray[np.float32], lattice: Lattice) -> None:
        """Let an image shine where it is; where something shines more, that is left."""
        # A tube thinner than a voxel fills only part of it: the edge is as wide as a voxel, its middle at the radius.
        edge = max(1.0, float(np.mean(lattice.spacing_mm)))
        reach = self.radius_mm + edge / 2
        for place in self.path_mm:
            window = lattice.window(place, reach)
            z, y, x = lattice.offsets(window, place)
            inside = np.float32(reach) - np.sqrt(z * z + y * y + x * x)
            share = np.clip(inside / np.float32(edge), 0, 1) * np.float32(self.amplitude)
            np.maximum(image[window], share, out=image[window])


def long_vessels(rng: np.random.Generator, anatomy: Anatomy) -> list[Tube]:
    """Those that a patient has in every scan, with the sinus and the plexus."""
    starts = _places(rng, anatomy, n=rng.poisson(_N_LONG), outer=True)
    vessels = [_vessel(rng, start, _LONG_MM) for start in starts]
    return [*vessels, _sinus(rng, anatomy), *(_plexus(rng, anatomy, side) for side in (-1, 1))]


def short_vessels(rng: np.random.Generator, anatomy: Anatomy) -> list[Tube]:
    """Pieces of vessels, which may be taken for small lesions."""
    starts = _places(rng, anatomy, n=rng.poisson(_N_SHORT), outer=False)
    return [_vessel(rng, start, _SHORT_MM) for start in starts]


def _places(rng: np.random.Generator, anatomy: Anatomy, *, n: int, outer: bool) -> NDArray[np.float64]:
    """Places in the brain, or in its outer part."""
    box = np.array(FIELD_OF_VIEW_MM) / 2
    candidates = rng.uniform(-box, box, size=(20 * n + 20, 3))
    depth = anatomy.tissues(Points(candidates)).depth_mm
    wanted = (depth > 3) & ((depth < _OUTER_MM) if outer else True)
    return candidates[wanted][:n]


def _vessel(rng: np.random.Generator, start: NDArray[np.float64], length_mm: tuple[float, float]) -> Tube:
    """A random walk whose direction changes little by little."""
    n = max(2, int(rng.uniform(*length_mm) / _STEP_MM))
    turns = rng.standard_normal((n, 3)) * _TURN
    turns[0] = rng.standard_normal(3)
    directions = np.cumsum(turns, axis=0)
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    path = start + np.cumsum(directions, axis=0) * _STEP_MM
    return Tube(path, float(rng.uniform(*_RADIUS_MM)), float(rng.uniform(*_AMPLITUDE)))


def _sinus(rng: np.random.Generator, anatomy: Anatomy) -> Tube:
    """Along the top and the back of the brain, in its middle plane."""
    y = np.arange(-0.47 * FIELD_OF_VIEW_MM[1], 0.3 * FIELD_OF_VIEW_MM[1], _STEP_MM)
    heights = np.arange(-FIELD_OF_VIEW_MM[0] / 2, FIELD_OF_VIEW_MM[0] / 2, _STEP_MM)
    places = np.stack([*np.meshgrid(heights, y, indexing="ij"), np.zeros((len(heights), len(y)))], axis=-1)
    inside = (anatomy.tissues(Points(places.reshape(-1, 3))).depth_mm > 1).reshape(len(heights), len(y))
    there = inside.any(axis=0)
    top = len(heights) - 1 - np.argmax(inside[::-1], axis=0)
    path = places[top, np.arange(len(y))][there]
    return Tube(path, float(rng.uniform(*_SINUS_RADIUS_MM)), float(rng.uniform(*_SINUS_AMPLITUDE)))


def _plexus(rng: np.random.Generator, anatomy: Anatomy, side: int) -> Tube:
    """On the floor of a ventricle, in its hinder half."""
    begin, length = rng.uniform(-34, -26), rng.uniform(10, 24)
    path = anatomy.ventricle_centre(np.arange(begin, begin + length, _STEP_MM), side)
    path[:, 0] -= 2 + rng.normal(0, 0.5, len(path))
    return Tube(path, float(rng.uniform(*_PLEXUS_RADIUS_MM)), float(rng.uniform(*_PLEXUS_AMPLITUDE)))
