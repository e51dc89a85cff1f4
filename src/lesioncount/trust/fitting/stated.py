"""A mean or a prevalence that is known from elsewhere → a calibration, without any counted scan."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from lesioncount.errors import CalibrationError
from lesioncount.protocol import CountingProtocol
from lesioncount.trust.calibration import NOT_CHECKED, Calibration
from lesioncount.trust.candidate_table import CandidateTable, TableLike
from lesioncount.trust.fitting.candidates_of_scans import CandidatesOfScans, CorrectedCandidates, Numbers
from lesioncount.trust.fitting.fit import RIPPLE, as_calibration, some_of
from lesioncount.trust.fitting.known_truth import KnownTruth
from lesioncount.trust.fitting.prior import LEARNT, LEARNT_FROM, bounds, numbers_of

# How far a stated number is taken to be off, unless somebody says: as a share of it. Held closer, intervals were too
# short where the number was wrong by a third.
USUAL_DOUBT = 0.35


_N_TRIED, _N_KEPT = 100, 50
_NODES = 9
_MOST_SCANS = 200

# Offsets are looked for in here, until the number is right to this share.
_LOWEST, _HIGHEST = -25.0, 15.0
_NEAR_ENOUGH, _MOST_STEPS = 1e-3, 40

# Refusals. Each limit is the middle between the open data that gained and those that were harmed, rounded down: leaves
# (25 % of candidates touch) and nuclei (49 %); of doubt about the calibration itself, leaves from a mean (0.28; LIDC
# from a prevalence 0.21) and from a prevalence (0.60, by seed 0.44 to 0.72); of scans whose regions hold several
# components, leaves (6 %) and nuclei (39 %).
# The doubt rises with a prevalence, so that one that is stated too low looks well known. It is therefore the larger of
# that at the prevalence and that at the upper end of what is stated. Of 20 draws of 100 leaves (prevalence about 0.80),
# a stated 0.75, 0.70, 0.60 and 0.50 are refused 19, 19, 17 and 8 times, without the upper end 18, 12, 0 and 0 times.
# LIDC with the right one is never refused: 0.22 to 0.38 at the upper end, 8 draws each of 100 and 150 scans.
_MOST_TOUCHING = 0.35
_MOST_JOINED = 0.2
_MOST_DOUBT = 0.4
_HIGHEST_PREVALENCE = 0.95
_FEWEST_SOLVED = 0.5
_FEWEST_SCANS = 10

# The share of doubt about the calibration is asked with the number nearly fixed: how well it is known is said by who
# states it, and says nothing of the scans.
_NEARLY_FIXED = 0.1


@dataclass(frozen=True)
class Stated:
    """What is known of scans without counting any.

    Parameters
    ----------
    mean : float, optional
        Lesions per scan.
    prevalence : float, optional
        The share of scans with at least one. One of the two must be given.
    doubt : float, optional
        How far it may be off (a standard deviation). Default: 35 % of it; of a prevalence above 0.5, 35 % of the share
        of scans without a lesion, for to state one is to state the other.
    """

    mean: float | None = None
    prevalence: float | None = None
    doubt: float | None = None

    def __post_init__(self) -> None:
        if (self.mean is None) == (self.prevalence is None):
            raise CalibrationError("Give a mean or a prevalence, not both. If you know both, give the mean.")
        if self.mean is not None and not 0 < self.mean < 1e6:
            raise CalibrationError(f"Expected a mean above 0, but got {self.mean!r}.")
        if self.prevalence is not None and not 0 < self.prevalence < 1:
            percent = self.prevalence / 100
            hint = f" If it is in percent, write {percent:g}." if 1 < self.prevalence < 100 else ""
            hint = " If every scan has a lesion, give the mean." if self.prevalence == 1 else hint
            raise CalibrationError(f"Expected a prevalence between 0 and 1, but got {self.prevalence:g}.{hint}")
        if self.doubt is not None and not 0 < self.doubt <= self.value:
            raise CalibrationError(
                f"Expected a doubt above 0 and no larger than the number, {self.value:g}, but got {self.doubt:g}."
            )

    @property
    def value(self) -> float:
        """The mean or the prevalence."""
        return self.mean if self.mean is not None else self.prevalence or 0.0

    @property
    def _known(self) -> float:
        """What the usual doubt is a share of."""
        return self.value if self.mean is not None else min(self.value, 1 - self.value)

    @property
    def _own_doubt(self) -> float:
        return USUAL_DOUBT * self._known if self.doubt is None else self.doubt

    @property
    def highest(self) -> Stated:
        """Of a prevalence, the upper end of what is stated; a mean stays as it is."""
        if self.prevalence is None:
            return self
        return Stated(prevalence=max(self.prevalence, min(self.prevalence + self._own_doubt, _HIGHEST_PREVALENCE)))

    def draws(self, noise: NDArray[np.float64], share: float | None = None) -> NDArray[np.float64]:
        """Values that it may have, from standard normal noise, with this share of it as doubt or its own."""
        doubt = self._own_doubt if share is None else share * self.value
        if self.mean is not None:
            return np.asarray(self.mean * np.exp(noise * doubt / self.mean))
        odds = math.log(self.value / (1 - self.value)) + noise * doubt / (self.value * (1 - self.value))
        return np.asarray(1 / (1 + np.exp(-odds)))

    def __str__(self) -> str:
        what = "mean" if self.mean is not None else "prevalence"
        usual = f"{100 * USUAL_DOUBT:g} %" if self.mean is not None else f"{USUAL_DOUBT * self._known:.2g}"
        doubt = usual if self.doubt is None else f"{self.doubt:g}"
        return f"a stated {what} of {self.value:g} ± {doubt}"


def calibration_from(
    stated: Stated,
    candidates: Sequence[TableLike],
    /,
    *,
    protocol: CountingProtocol | None = None,
    joined: float = 0.0,
    seed: int = 0,
) -> Calibration:
    """The average over calibrations under which the scans have, on average, what is stated.

    Parameters
    ----------
    stated : Stated
    candidates : sequence
        Of each scan; none of them needs to be counted, but all must be what the number is stated of.
    protocol : CountingProtocol, optional
        What counted as one lesion.
    joined : float, default 0
        Share of the scans whose regions hold several lesions that touch, as far as maps can tell: candidates cannot.
    seed : int, default 0

    Notes
    -----
    Slope, spread, crowding and extra lesions are drawn from what other data have taught (`prior.LEARNT`), the stated
    number from its doubt, and the offset is solved for each draw::

        mean:        mean over scans of E[C] = the drawn mean
        prevalence:  mean over scans of P(C > 0) = the drawn prevalence

    Draws without a solution are left out. It is refused where it has done harm: see the limits in this module.
    """
    truth = KnownTruth.of(candidates, np.zeros(len(candidates)))
    used = some_of(truth, _MOST_SCANS).without_ripples(RIPPLE)
    _check(stated, used, joined)
    rng = np.random.default_rng(seed)
    drawn, scans = _drawn(_N_TRIED, rng), _Scans(used, stated)
    noise = rng.standard_normal(_N_TRIED)
    sure = [scans.solved(drawn, of.draws(noise, _NEARLY_FIXED)) for of in dict.fromkeys((stated, stated.highest))]
    _check_solved(stated, scans, sure)
    kept = scans.solved(drawn, stated.draws(rng.standard_normal(_N_TRIED)))
    _check_enough(stated, kept)
    kept = kept[:_N_KEPT]
    members = [as_calibration(one, used) for one in kept]
    middle = as_calibration(Numbers.of_vector(np.median([one.vector for one in kept], axis=0)), used)
    return replace(
        middle.averaged_over(members),
        ripple=RIPPLE if truth.touches else 0.0,
        protocol=protocol,
        origin=f"{stated}, with {LEARNT_FROM}, {NOT_CHECKED}: count {_FEWEST_SCANS} scans and calibrate on them",
        prior=LEARNT.to_dict("offset", "weights"),
    )


def _check(stated: Stated, truth: KnownTruth, joined: float) -> None:
    """Refuse what cannot be solved, or has done harm."""
    if len(truth) < _FEWEST_SCANS:
        raise CalibrationError(
            f"A stated mean or prevalence needs {_FEWEST_SCANS} scans whose average it is, but there are {len(truth)}."
        )
    if stated.prevalence is not None and stated.prevalence > _HIGHEST_PREVALENCE:
        raise CalibrationError(
            f"A prevalence of {stated.prevalence:g} says nothing of how many lesions there are. State the mean."
        )
    touching = float(np.mean(CandidateTable.joined(truth.candidates).saddle > 0)) if truth.touches else 0.0
    for share, limit, what in (
        (touching, _MOST_TOUCHING, "of the candidates touch another"),
        (joined, _MOST_JOINED, "of the scans have lesions that touch and are counted as one"),
    ):
        if share > limit:
            raise CalibrationError(
                f"{share:.0%} {what}. With so many, a calibration from a stated number alone has made counts worse. "
                f"Count {_FEWEST_SCANS} scans and calibrate on them."
            )


def _check_enough(stated: Stated, solved: list[Numbers]) -> None:
    if len(solved) < _FEWEST_SOLVED * _N_TRIED:
        raise CalibrationError(
            f"Only {len(solved)} of {_N_TRIED} calibrations could give these scans {stated}. Do the number and the "
            f"scans belong together? Count {_FEWEST_SCANS} scans and calibrate on them."
        )


def _check_solved(stated: Stated, scans: _Scans, sure: Sequence[list[Numbers]]) -> None:
    _check_enough(stated, sure[0])
    if (doubt := max(scans.doubt(one) for one in sure if one)) > _MOST_DOUBT:
        instead = "Count" if stated.prevalence is None else "State the mean, or count"
        raise CalibrationError(
            f"A{str(stated)[1:]} leaves too much open: "
            f"{doubt:.0%} of the doubt about a count would be about the calibration itself. {instead} "
            f"{_FEWEST_SCANS} scans and calibrate on them."
        )


def _drawn(n: int, rng: np.random.Generator) -> list[Numbers]:
    """Numbers as other data have taught them, without an offset."""
    centre, width = LEARNT.centre[:-1], LEARNT.width[:-1]
    heavy = 0.8 * rng.standard_t(4, (n, len(centre)))
    points = centre + width * np.where(LEARNT.is_heavy[:-1], heavy, rng.standard_normal((n, len(centre))))
    spread = Numbers._fields.index("spread")
    points[:, spread] = np.minimum(points[:, spread], math.log(LEARNT.large_spread))
    lowest, highest = bounds(len(centre))
    return [numbers_of(point)._replace(offset=0.0) for point in np.clip(points, lowest, highest)]


class _Scans:
    """Scans, and what is stated of them."""

    def __init__(self, truth: KnownTruth, stated: Stated) -> None:
        self._candidates = CandidatesOfScans(truth)
        self._says: Callable[[CorrectedCandidates, float], float] = (
            self._mean if stated.mean is not None else self._prevalence
        )

    def solved(self, drawn: Sequence[Numbers], values: NDArray[np.float64]) -> list[Numbers]:
        """The draws with the offset that gives each value, but for those where none does."""
        found = (self._solved(one, value) for one, value in zip(drawn, values.tolist(), strict=True))
        return [one for one in found if one is not None]

    def _solved(self, numbers: Numbers, value: float) -> Numbers | None:
        ends = [_LOWEST, _HIGHEST]
        apart = [self._at(numbers, end) - value for end in ends]
        if not apart[0] <= 0 <= apart[1]:
            return None
        offset = sum(ends) / 2
        for step in range(_MOST_STEPS):
            here = self._at(numbers, offset) - value
            if abs(here) < _NEAR_ENOUGH * value:
                break
            side = int(here > 0)
            ends[side], apart[side] = offset, here
            # Where the chord is drawn to, and every third time the middle, so that no end stays for ever.
            chord = ends[0] - apart[0] * (ends[1] - ends[0]) / (apart[1] - apart[0])
            offset = sum(ends) / 2 if step % 3 == 2 else chord
        return numbers._replace(offset=offset)

    def _at(self, numbers: Numbers, offset: float) -> float:
        return self._says(self._candidates.corrected(numbers._replace(offset=offset), _NODES), numbers.extra_shape)

    def _mean(self, at: CorrectedCandidates, _: float) -> float:
        return float(np.mean(at.weights @ (at.expected + at.extra)))

    def _prevalence(self, at: CorrectedCandidates, shape: float) -> float:
        none = self._candidates.sums(np.log1p(-np.minimum(at.p, 1 - 1e-16))) - shape * np.log1p(at.extra / shape)
        return 1 - float(np.mean(at.weights @ np.exp(none)))

    def doubt(self, solved: Sequence[Numbers]) -> float:
        """The share of the variance of counts that is between calibrations."""
        means, variances = zip(*(self._moments(one) for one in solved), strict=True)
        between = float(np.sum(np.var(means, axis=0)))
        return between / (between + float(np.sum(np.mean(variances, axis=0))))

    def _moments(self, numbers: Numbers) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Mean and variance of the count of each scan."""
        at = self._candidates.corrected(numbers, _NODES)
        expected = at.expected + at.extra
        mean = at.weights @ expected
        within = self._candidates.sums(at.p * (1 - at.p)) + at.extra + at.extra**2 / numbers.extra_shape
        return mean, at.weights @ (within + (expected - mean) ** 2)
