"""A brain: cortex folded along sulci, white matter, deep grey matter, ventricles; each patient has another."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lesioncount_reproduction.synthetic.lattice import FIELD_OF_VIEW_MM, Coordinates, Places


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


Values = NDArray[np.float32]
Triple = tuple[float, float, float]

# Half axes along z, y, x of an average brain, and how far below the centre of the field of view its own lies: the top
# is seen, the bottom is cut off.
_HALF_AXES_MM = (51.0, 79.0, 64.0)
_BELOW_MM = 12.0

# Depth in mm per unit of radius: between the half axes, so that depth is right to about 20 % on all sides.
_DEPTH_MM = 62.0

# A head is narrower in front.
_NARROWING = 0.10

# Fluid between skull and brain, half the width of a sulcus, and thickness of the cortex.
_RIM_MM = 1.8
_SULCUS_MM = 0.7
_CORTEX_MM = 3.0

# A field of variance 1 crosses zero at a slope of about 1 per this many mm when its waves are 18 to 36 mm long: the
# field times this is about the distance from its zeros, along which sulci run.
_FOLD_MM = 4.0
_FOLD_WAVES_MM = (18.0, 36.0)

# How deep the fissure between the hemispheres is.
_FISSURE_MM = 27.0

# Centre (z, y, |x|) and half axes of thalamus, putamen and head of the caudate nucleus, in both hemispheres.
_DEEP_GREY: tuple[tuple[Triple, Triple], ...] = (
    ((-9.0, -12.0, 11.0), (8.0, 13.0, 8.0)),
    ((-9.0, 8.0, 26.0), (9.0, 16.0, 5.0)),
    ((0.0, 22.0, 15.0), (9.0, 9.0, 5.0)),
)

# Lateral ventricles: y of their middle and half length, half height and half width in the middle, height of the arch.
_VENTRICLE_Y_MM, _VENTRICLE_LENGTH_MM = -4.0, 37.0
_VENTRICLE_HEIGHT_MM, _VENTRICLE_WIDTH_MM = 7.0, 5.0
_VENTRICLE_TOP_MM, _VENTRICLE_ARCH_MM = 10.0, 13.0
_VENTRICLE_APART_MM, _VENTRICLE_SPREAD_MM = 8.5, 12.0

# The third ventricle: centre and half axes.
_THIRD = ((-10.0, -5.0, 0.0), (10.0, 14.0, 2.2))


@dataclass(frozen=True)
class Tissues:
    """What is where: shares of a voxel that add up to 1 inside the brain, and distances in mm.

    Attributes
    ----------
    depth_mm
        From the surface of the brain inwards, sulci left out.
    clearance_mm
        To the nearest fluid or cortex; what is positive is white or deep grey matter.
    from_ventricles_mm
        To the nearest ventricle.
    """

    fluid: Values
    cortex: Values
    deep_grey: Values
    depth_mm: Values
    clearance_mm: Values
    from_ventricles_mm: Values

    @property
    def brain(self) -> NDArray[np.bool_]:
        """Inside the skull."""
        return self.depth_mm > 0

    @property
    def white(self) -> Values:
        """White matter."""
        return 1 - self.fluid - self.cortex - self.deep_grey


@dataclass(frozen=True)
class Anatomy:
    """The brain of one patient, as functions of place.

    Parameters
    ----------
    half_axes_mm : tuple of float
        Of the brain, along z, y, x.
    ventricle_size : float
        1 for an average patient.
    sulcus_depth_mm, cortex_mm : float
        How deep sulci go, how thick the cortex is.
    surface, folds, bending : SmoothField
        What makes this brain differ from an ellipsoid: its outline, its sulci, the place of everything inside.
    """

    half_axes_mm: Triple
    ventricle_size: float
    sulcus_depth_mm: float
    cortex_mm: float
    surface: SmoothField
    folds: SmoothField
    bending: tuple[SmoothField, SmoothField, SmoothField]

    @classmethod
    def drawn(cls, rng: np.random.Generator) -> Anatomy:
        """The brain of a random patient."""
        z, y, x = (float(half * rng.uniform(0.95, 1.04)) for half in _HALF_AXES_MM)
        shortest, longest = _FOLD_WAVES_MM
        bend_z, bend_y, bend_x = (SmoothField.drawn(rng, shortest_mm=60, longest_mm=250) for _ in range(3))
        return cls(
            half_axes_mm=(z, y, x),
            ventricle_size=float(np.clip(rng.lognormal(0.0, 0.2), 0.7, 1.6)),
            sulcus_depth_mm=float(rng.uniform(12, 18)),
            cortex_mm=float(_CORTEX_MM * rng.uniform(0.85, 1.15)),
            surface=SmoothField.drawn(rng, shortest_mm=40, longest_mm=200),
            folds=SmoothField.drawn(rng, shortest_mm=shortest, longest_mm=longest),
            bending=(bend_z, bend_y, bend_x),
        )

    def tissues(self, places: Places, *, edge_mm: float = 1.0) -> Tissues:
        """What is at some places.

        Parameters
        ----------
        places : Places
        edge_mm : float
            Width over which one tissue passes into the next: the size of a voxel, which holds parts of both.
        """
        folds = self.folds.on(places)
        bent = self._bent(places.coordinates, [field.on(places) for field in self.bending])
        depth = self._depth(bent, self.surface.on(places))
        pial = self._from_pia(depth, folds, bent[2])
        ventricles = self._from_ventricles(bent)
        fluid = np.maximum(_share(-pial, edge_mm), _share(-ventricles, edge_mm))
        cortex = np.clip(_share(self.cortex_mm - pial, edge_mm) - fluid, 0, 1)
        deep_grey = np.minimum(_share(_inside_deep_grey(bent), edge_mm), 1 - fluid - cortex)
        clearance = np.minimum(pial - self.cortex_mm, ventricles)
        return Tissues(fluid, cortex, deep_grey, depth, clearance, ventricles)

    def ventricle_centre(self, y: NDArray[np.float64], side: int) -> NDArray[np.float64]:
        """Places (n, 3) along the middle of the ventricle of one side (-1 or 1), before bending."""
        along = (y - _VENTRICLE_Y_MM) / (_VENTRICLE_LENGTH_MM * self._grown)
        return np.stack([_ventricle_z(along), y, side * _ventricle_x(along)], axis=-1)

    @property
    def _grown(self) -> float:
        """Ventricles grow in width first."""
        return float(np.sqrt(self.ventricle_size))

    def _bent(self, coordinates: Coordinates, fields: list[Values]) -> Coordinates:
        z, y, x = (c + np.float32(2.0) * field for c, field in zip(coordinates, fields, strict=True))
        return z, y, x

    def _depth(self, bent: Coordinates, surface: Values) -> Values:
        """Between an ellipsoid and a super-ellipsoid of exponent 4. Only arithmetic that is the same everywhere."""
        z, y, x = (c / half for c, half in zip(bent, self.half_axes_mm, strict=True))
        z = z + np.float32(_BELOW_MM / self.half_axes_mm[0])
        x = x * (1 + np.float32(_NARROWING) * y)
        squares = z * z, y * y, x * x
        round_ = squares[0] + squares[1] + squares[2]
        boxy = np.sqrt(squares[0] ** 2 + squares[1] ** 2 + squares[2] ** 2)
        radius = np.sqrt(np.float32(0.6) * round_ + np.float32(0.4) * boxy)
        return np.asarray((1 - radius) * np.float32(_DEPTH_MM) + surface)

    def _from_pia(self, depth: Values, folds: Values, x: Values) -> Values:
        """Distance to the fluid around the brain: its rim, its sulci, and the fissure between the hemispheres."""
        below_sulci = np.maximum(depth - np.float32(self.sulcus_depth_mm), 0)
        sulci = np.abs(folds) * np.float32(_FOLD_MM) + below_sulci - np.float32(_SULCUS_MM)
        fissure = np.abs(x) + np.maximum(depth - np.float32(_FISSURE_MM), 0) - np.float32(_SULCUS_MM)
        return np.asarray(np.minimum(np.minimum(sulci, fissure), depth - np.float32(_RIM_MM)))

    def _from_ventricles(self, bent: Coordinates) -> Values:
        z, y, x = bent
        along = (y - np.float32(_VENTRICLE_Y_MM)) / np.float32(_VENTRICLE_LENGTH_MM * self._grown)
        wide = np.float32(_VENTRICLE_WIDTH_MM * self.ventricle_size)
        high = np.float32(_VENTRICLE_HEIGHT_MM * self._grown)
        across = (np.abs(x) - _ventricle_x(along)) / wide
        up = (z - _ventricle_z(along)) / high
        lateral = (np.sqrt(across**2 + up**2 + along**4) - 1) * wide
        return np.asarray(np.minimum(lateral, -_inside_ellipsoid(bent, *_THIRD)))


def _ventricle_x(along: NDArray[np.floating]) -> NDArray[np.floating]:
    """The horns lie further apart than the bodies, those behind most."""
    return _VENTRICLE_APART_MM + _VENTRICLE_SPREAD_MM * along**2 * (1 - np.float32(0.35) * along) * np.float32(0.6)


def _ventricle_z(along: NDArray[np.floating]) -> NDArray[np.floating]:
    return np.float32(_VENTRICLE_TOP_MM) - np.float32(_VENTRICLE_ARCH_MM) * along**2


def _inside_deep_grey(bent: Coordinates) -> Values:
    folded = bent[0], bent[1], np.abs(bent[2])
    nuclei = [_inside_ellipsoid(folded, centre, half_axes) for centre, half_axes in _DEEP_GREY]
    return np.asarray(np.maximum.reduce(nuclei))


def _inside_ellipsoid(places: Coordinates, centre: Triple, half_axes: Triple) -> Values:
    """About the distance in mm from the surface of an ellipsoid, positive inside."""
    squares = [((c - np.float32(m)) / np.float32(h)) ** 2 for c, m, h in zip(places, centre, half_axes, strict=True)]
    return np.asarray((1 - np.sqrt(squares[0] + squares[1] + squares[2])) * np.float32(min(half_axes)))


def _share(inside_mm: Values, edge_mm: float) -> Values:
    """How much of a voxel lies inside a surface, from the distance of its centre."""
    return np.asarray(np.clip(np.float32(0.5) + inside_mm / np.float32(edge_mm), 0, 1))
