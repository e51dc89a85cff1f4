"""Two maps of one patient → what is new, what is gone and what is still there, each as a distribution."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lesioncount.changes.counted_map import CountedMap
from lesioncount.changes.coupling import DEFAULT_COUPLING, STRONGEST_COUPLING, Rises, only_now
from lesioncount.changes.lineages import Lineages
from lesioncount.changes.resampling import resampled, same_place
from lesioncount.checks import checked_map, checked_mask, defined
from lesioncount.counting import LesionCount
from lesioncount.distributions.count_distribution import is_between
from lesioncount.distributions.poisson_binomial import PoissonBinomial
from lesioncount.errors import MapError, ShapeError
from lesioncount.images import ImageOfMap, image_of
from lesioncount.protocol import CountingProtocol, ProtocolFields
from lesioncount.regions.nearby import voxel_size_of
from lesioncount.sweep.voxels import sigmoid

if TYPE_CHECKING:
    from lesioncount.questions import Question

# In millimetres, and in voxels where these are larger: registration is off by a millimetre or so, and the edge of a
# lesion by a voxel. docs/over_time.md has what it costs, and gains.
TOLERANCE_MM, TOLERANCE_VOXELS = 2.0, 1.0

_PRINTED = 5


@dataclass(frozen=True, eq=False, repr=False)
class LesionChanges:
    """What has changed between two maps, and where the numbers come from. Made by `compare`.

    Attributes
    ----------
    before, after : LesionCount
        Each map by itself, on the grid of the second.
    risen : Rises
        Of each candidate of the map after: where it rises most above the map before.
    fallen : Rises
        Of each candidate of the map before: where it rises most above the map after.
    tolerance_mm : float
    coupling : float
    """

    before: LesionCount
    after: LesionCount
    risen: Rises
    fallen: Rises
    tolerance_mm: float
    coupling: float = DEFAULT_COUPLING

    @cached_property
    def lineages(self) -> Lineages:
        """Which candidates of the two maps are the same lesion."""
        return Lineages.follow([self.before.candidates, self.after.candidates], self.tolerance_mm)

    @cached_property
    def p_new(self) -> NDArray[np.float64]:
        """Of each candidate of the map after: the probability that it is a lesion that was not there before."""
        return _only(self.after, self.risen, self.coupling)

    @cached_property
    def p_persisting(self) -> NDArray[np.float64]:
        """Of each candidate of the map after: the probability that it is a lesion that was there before."""
        return self.after.existence - self.p_new

    @cached_property
    def p_gone(self) -> NDArray[np.float64]:
        """Of each candidate of the map before: the probability that it is a lesion that is no longer there."""
        return _only(self.before, self.fallen, self.coupling)

    @cached_property
    def new(self) -> PoissonBinomial:
        """The number of new lesions."""
        return PoissonBinomial(self.p_new)

    @cached_property
    def gone(self) -> PoissonBinomial:
        """The number of lesions that are no longer there."""
        return PoissonBinomial(self.p_gone)

    @cached_property
    def persisting(self) -> PoissonBinomial:
        """The number of lesions, as seen after, that were there before."""
        return PoissonBinomial(self.p_persisting)

    def ask(self, question: Question | str, /) -> float:
        """The probability that the numbers of changes fulfil a question.

        Parameters
        ----------
        question : str or Question
            About ``new``, ``gone`` and ``persisting`` lesions, and ``count``, those of the map after: such as
            ``"new >= 1"`` or ``"new > gone"``.

        Notes
        -----
        A candidate of the map after is new, or persists, or is no lesion. What is gone is taken as independent of that.

        Examples
        --------
        >>> import numpy as np
        >>> changes = compare(np.array([[0.5, 0.0, 0.0, 0.0]]), np.array([[0.0, 0.0, 0.0, 0.75]]))
        >>> changes.ask("new >= 1"), changes.ask("new = 1 and gone = 1")
        (0.75, 0.375)
        """
        from lesioncount.questions import probability_of  # not at the top: only some ask
        from lesioncount.questions.over_time import asked_over_time, trials_over_time

        asked = asked_over_time(question)
        found = {"new": self.p_new, "persisting": self.p_persisting, "gone": self.p_gone}
        return probability_of(asked, trials_over_time(asked.names, found))

    def __str__(self) -> str:
        """A few readable lines."""
        unit = "voxels" if self.after.candidates.spacing_mm is None else "mm"
        lines = [
            _line("new", self.new),
            _line("gone", self.gone),
            _line("persisting", self.persisting),
            f"candidates   {len(self.before.candidates)} before, {len(self.after.candidates)} after "
            f"({self.after.protocol}), searched for within {self.tolerance_mm:g} {unit}",
        ]
        likely = np.argsort(-self.p_new, kind="stable")[:_PRINTED]
        lines += [self._candidate_line(int(row)) for row in likely if self.p_new[row] > 0]
        return "\n".join(lines)

    __repr__ = __str__

    def _candidate_line(self, row: int) -> str:
        where = ", ".join(map(str, self.risen.index[row]))
        return (
            f"  #{row + 1:<8}  new with probability {self.p_new[row]:.4f}: {self.risen.heights[row]:.4f} after, "
            f"{self.risen.others[row]:.4f} before, at ({where})"
        )


def _only(count: LesionCount, rises: Rises, coupling: float) -> NDArray[np.float64]:
    saddles = count.candidates.saddle_probability
    return np.asarray(only_now(np.maximum(rises.heights, saddles), saddles, rises.others, coupling))


def _line(name: str, count: PoissonBinomial) -> str:
    low, high = count.interval(0.9)
    return (
        f"{name:<12} {count.mode()} most likely, mean {count.mean():.2f} ± {count.std():.2f}, 90 % interval {low} to "
        f"{high}, any with probability {count.sf(0):.3f}"
    )


def compare(
    before: ArrayLike,
    after: ArrayLike,
    /,
    *,
    protocol: CountingProtocol | str | None = None,
    mask: ArrayLike | None = None,
    spacing_mm: ArrayLike | None = None,
    scale: float | None = None,
    logits: bool = False,
    tolerance_mm: float | None = None,
    coupling: float = DEFAULT_COUPLING,
    threads: int = 1,
    **definition: Unpack[ProtocolFields],
) -> LesionChanges:
    """How many lesions are new, gone and still there between two maps of one patient.

    Parameters
    ----------
    before, after : array_like
        Maps as `count_lesions` takes them, aligned with each other. Images that say where their voxels lie (nibabel,
        MONAI) may have other grids: the first is then resampled to the grid of the second.
    protocol, spacing_mm, scale, logits, threads, **definition
        As in `count_lesions`, for both maps.
    mask : array_like, optional
        On the grid of the map after: only voxels where it is not zero are looked at, in both.
    tolerance_mm : float, optional
        How far around a voxel of a candidate the other map is searched; in voxels, where their size is unknown.
        Default: 2 mm, or the size of a voxel if that is larger.
    coupling : float, default 2.5
        How the doubt about a place belongs together at both times: 0 independent, 1 the same, above 1 what the other
        map says counts for more.

    Returns
    -------
    LesionChanges
        With ``new``, ``gone`` and ``persisting``, distributions of numbers of lesions.

    Notes
    -----
    See `lesioncount.changes.coupling.only_now` for the probability that a candidate is new, and docs/over_time.md for
    what that assumes.

    Examples
    --------
    >>> import numpy as np
    >>> before, after = np.zeros((2, 8, 8, 8), dtype=np.float32)
    >>> before[1, 1, 1:3] = 0.75, 0.25
    >>> after[1, 1, 1:3] = 0.25, 0.75
    >>> after[5, 5, 5:7] = 0.5, 0.25
    >>> changes = compare(before, after, spacing_mm=(1, 1, 1))
    >>> changes.new.mean(), changes.gone.mean(), changes.persisting.mean()
    (0.5, 0.0, 0.75)
    >>> print(changes)
    new          0 most likely, mean 0.50 ± 0.50, 90 % interval 0 to 1, any with probability 0.500
    gone         0 most likely, mean 0.00 ± 0.00, 90 % interval 0 to 0, any with probability 0.000
    persisting   1 most likely, mean 0.75 ± 0.43, 90 % interval 0 to 1, any with probability 0.750
    candidates   1 before, 2 after (voxels above 0.1, connected through edges), searched for within 2 mm
      #2         new with probability 0.5000: 0.5000 after, 0.0000 before, at (5, 5, 5)
    """
    protocol = defined(protocol, definition, compare)
    images = image_of(before), image_of(after)
    maps = [checked_map(image.voxels) for image in images]
    inside = checked_mask(mask, maps[1].shape, images[1].voxels)
    spacing = images[1].spacing_mm if spacing_mm is None else spacing_mm
    first, covered = _on_grid(images[0], images[1], maps, scale=scale, logits=logits)
    if covered is not None:  # what the first map does not show cannot be told to be new
        inside = covered if inside is None else inside & covered
    options: dict[str, Any] = {"protocol": protocol, "inside": inside, "spacing_mm": spacing, "threads": threads}
    return changes_between(
        CountedMap.of(*first, **options),
        CountedMap.of(maps[1], scale, logits, **options),
        tolerance_mm=tolerance_mm,
        coupling=coupling,
    )


def changes_between(
    before: CountedMap, after: CountedMap, /, *, tolerance_mm: float | None, coupling: float
) -> LesionChanges:
    """What has changed between two maps that lie on one grid."""
    if not is_between(coupling, 0, STRONGEST_COUPLING):
        raise MapError(
            f"Expected a coupling from 0 (independent) over 1 (the same doubt) to {STRONGEST_COUPLING:g}, but got "
            f"{coupling!r}."
        )
    spacing = voxel_size_of(after.count.candidates).spacing_mm[: after.voxels.ndim]
    tolerance = default_tolerance_mm(spacing) if tolerance_mm is None else tolerance_mm
    return LesionChanges(
        before.count,
        after.count,
        Rises.of(after, before, within_mm=tolerance, coupling=coupling),
        Rises.of(before, after, within_mm=tolerance, coupling=coupling),
        float(tolerance),
        float(coupling),
    )


def default_tolerance_mm(spacing_mm: tuple[float, ...]) -> float:
    """How far from a candidate another map is searched, unless something else is asked for."""
    return max(TOLERANCE_MM, TOLERANCE_VOXELS * max(spacing_mm))


def _on_grid(
    image: ImageOfMap, grid: ImageOfMap, maps: list[NDArray[Any]], *, scale: float | None, logits: bool
) -> tuple[tuple[NDArray[Any], float | None, bool], NDArray[np.bool_] | None]:
    """The first map on the grid of the second (what is stored, its scale, and whether it holds logits), and where."""
    values, shape = maps[0], maps[1].shape
    if image.affine is None or grid.affine is None:
        if values.shape != shape:
            raise ShapeError(
                f"Expected two maps of one shape, but they have {values.shape} and {shape}. Images that say where "
                "their voxels lie, such as those of nibabel, are resampled; so are files, by lesioncount compare."
            )
        return (values, scale, logits), None
    if values.shape == shape and same_place(image.affine, grid.affine, shape):
        return (values, scale, logits), None
    probabilities = sigmoid(values.astype(np.float64)) if logits else values * (1.0 if scale is None else scale)
    found, covered = resampled(probabilities, image.affine, shape, grid.affine)
    return (found, None, False), None if covered.all() else covered
