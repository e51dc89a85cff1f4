"""A head that lies otherwise than at the first session: shifted and turned by a little, which no header tells."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from lesioncount_reproduction.synthetic.blob import Blob
from lesioncount_reproduction.synthetic.lattice import Bases, Coordinates, Lattice, Points
from lesioncount_reproduction.synthetic.vessels import Tube

# Misregistration is told at this distance from the centre of the field of view, about where lesions are.
_AT_MM = 50.0

# Shares of shift and rotation in it; their squares add up to 1.
_SHIFTED, _TURNED = 0.8, 0.6

# Voxels whose places are worked on at once: fields with many waves take 2.4 kB for each.
_AT_ONCE = 8192


@dataclass(frozen=True, eq=False)
class Motion:
    """A rigid motion: what was at a place before is at ``turn @ place + shift_mm`` now.

    Parameters
    ----------
    turn : ndarray, shape (3, 3)
        A rotation about the centre of the field of view; axes are z, y, x.
    shift_mm : ndarray, shape (3,)

    Examples
    --------
    >>> Motion.none().is_none, Motion.drawn(np.random.default_rng(1), 2.0).is_none
    (True, False)
    """

    turn: NDArray[np.float64]
    shift_mm: NDArray[np.float64]

    @classmethod
    def none(cls) -> Motion:
        """The head lies where it was."""
        return cls(np.eye(3), np.zeros(3))

    @classmethod
    def drawn(cls, rng: np.random.Generator, misregistration_mm: float) -> Motion:
        """A random motion. The same random numbers give the same directions, whatever the distance.

        Parameters
        ----------
        rng : Generator
        misregistration_mm : float
            How far something 50 mm from the centre is moved: the root of the mean square, over directions and patients.
        """
        shift, turn = rng.standard_normal((2, 3))
        # A shift has three components. Of a rotation vector, two of three move a given place.
        shift_mm = shift * _SHIFTED * misregistration_mm / np.sqrt(3)
        return cls(_rotation(turn * _TURNED * misregistration_mm / (_AT_MM * np.sqrt(2))), shift_mm)

    @property
    def is_none(self) -> bool:
        """Whether nothing has moved."""
        return bool(np.array_equal(self.turn, np.eye(3)) and not self.shift_mm.any())

    def distance_mm(self, other: Motion) -> float:
        """How far apart two motions leave what is 50 mm from the centre: root of the mean square over directions."""
        turned = np.square(self.turn - other.turn).sum() * _AT_MM**2 / 3
        return float(np.sqrt(turned + np.square(self.shift_mm - other.shift_mm).sum()))

    def places(self, places_mm: NDArray[np.float64]) -> NDArray[np.float64]:
        """Where places (…, 3) have moved to."""
        return np.asarray(places_mm @ self.turn.T + self.shift_mm)

    def places_before(self, places_mm: NDArray[np.float64]) -> NDArray[np.float64]:
        """Where what is now at places (…, 3) was before."""
        return np.asarray((places_mm - self.shift_mm) @ self.turn)

    def blob(self, blob: Blob) -> Blob:
        """A blob, moved. Its dent is told in its own frame, which moves with it."""
        if self.is_none:
            return blob
        return replace(blob, centre_mm=self.places(blob.centre_mm), squeeze=blob.squeeze @ self.turn.T)

    def tube(self, tube: Tube) -> Tube:
        """A vessel, moved."""
        return replace(tube, path_mm=self.places(tube.path_mm))


@dataclass(frozen=True, eq=False)
class MovedLattice:
    """The voxels of a scan, as places of a head that has moved: `Places` for its anatomy.

    Parameters
    ----------
    lattice : Lattice
    motion : Motion
    """

    lattice: Lattice
    motion: Motion

    @cached_property
    def coordinates(self) -> Coordinates:
        """Three arrays of the shape of the scan."""
        z, y, x = (axis.astype(np.float32).reshape(self.lattice.shape) for axis in self.axes)
        return z, y, x

    @cached_property
    def axes(self) -> Bases:
        """Three vectors with a number for each voxel."""
        voxels = np.stack(np.meshgrid(*self.lattice.axes, indexing="ij"), axis=-1).reshape(-1, 3)
        return tuple(np.ascontiguousarray(self.motion.places_before(voxels).T))

    def contracted(self, coefficients: NDArray[np.float64], bases: Bases) -> NDArray[np.float32]:
        """One value per voxel."""
        begins = range(0, len(bases[0]), _AT_ONCE)
        parts = [[basis[begin : begin + _AT_ONCE] for basis in bases] for begin in begins]
        values = [Points(np.empty((0, 3))).contracted(coefficients, part) for part in parts]
        return np.concatenate(values).reshape(self.lattice.shape)


def _rotation(vector: NDArray[np.float64]) -> NDArray[np.float64]:
    """The matrix that turns about a vector by as many radians as it is long (Rodrigues' formula)."""
    angle = float(np.linalg.norm(vector))
    if angle == 0:
        return np.eye(3)
    a, b, c = vector / angle
    cross = np.array([[0, -c, b], [c, 0, -a], [-b, a, 0]])
    return np.asarray(np.eye(3) + np.sin(angle) * cross + (1 - np.cos(angle)) * cross @ cross)
