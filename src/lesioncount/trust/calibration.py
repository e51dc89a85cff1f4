"""A correction of existence probabilities, so that they mean what they say."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, fields
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lesioncount.distributions.count_distribution import CountDistribution, is_between
from lesioncount.distributions.poisson_binomial import PoissonBinomial
from lesioncount.distributions.with_missed import CountWithMissed
from lesioncount.errors import CalibrationError
from lesioncount.protocol import CountingProtocol

# Closer to 0 and 1 than this, a probability is the saturation of a network, and its logit says nothing more.
SATURATION = 1e-6

# Missed lesions per scan. The distribution has an entry for each count up to there, and no patient has as many lesions.
MOST_MISSED = 10_000


@dataclass(frozen=True)
class Calibration:
    """A monotone map of existence probabilities, and a rate of lesions that leave no candidate.

    Parameters
    ----------
    slope : float, default 1
        On the logit, above 0. Below 1 it makes an over-confident network less sure.
    offset : float, default 0
        On the logit. Below 0 it takes back what a positive weight in the loss has added.
    missed_rate : float, default 0
        Expected number of lesions per scan that leave no candidate, at most 10 000.
    protocol : CountingProtocol, optional
        What counted as one lesion where it was fitted. It fits no other; None fits all.
    origin : str, optional
        Where it comes from, in words.

    Notes
    -----
    With σ the logistic function, p an existence probability and μ the rate of missed lesions::

        p' = σ(slope · logit(p) + offset)        C = Σ_k Bernoulli(p'_k) + Poisson(μ)

    Candidates are those of the map as it is: regions above the threshold of the protocol, before the correction.

    Examples
    --------
    A network trained with weight 3 on lesion voxels says 0.75 where one in two is a lesion:

    >>> Calibration.for_positive_weight(3).existence([0.75, 0.9]).round(4)
    array([0.5 , 0.75])
    """

    slope: float = 1.0
    offset: float = 0.0
    missed_rate: float = 0.0
    protocol: CountingProtocol | None = None
    origin: str = "none"

    def __post_init__(self) -> None:
        if not is_between(self.slope, 0, math.inf) or self.slope == 0:
            raise CalibrationError(f"Expected a slope above 0, but got {self.slope!r}: larger must stay larger.")
        if not is_between(self.offset, -math.inf, math.inf):
            raise CalibrationError(f"Expected the offset to be a number, but got {self.offset!r}.")
        if not is_between(self.missed_rate, 0, MOST_MISSED):
            raise CalibrationError(
                f"Expected a rate of missed lesions per scan from 0 to {MOST_MISSED}, but got {self.missed_rate!r}."
            )

    @classmethod
    def for_positive_weight(cls, weight: float) -> Self:
        """Undo the weight that a cross-entropy loss gave to lesion voxels. Nothing is fitted.

        Notes
        -----
        The loss is least where p / (1 - p) = w · q / (1 - q) with the true probability q: the logit is too large by
        log w.
        """
        if not is_between(weight, 0, math.inf) or weight == 0:
            raise CalibrationError(f"Expected a positive weight, but got {weight!r}.")
        return cls(offset=-math.log(weight), origin=f"positive weight {weight:g} of the loss")

    def existence(self, probabilities: ArrayLike, /) -> NDArray[np.float64]:
        """Corrected existence probabilities."""
        p = np.asarray(probabilities, dtype=np.float64)
        if self.slope == 1 and self.offset == 0:
            return p
        return np.asarray(_sigmoid(self.slope * logit(p) + self.offset))

    def inverse(self, probability: float, /) -> float:
        """The uncorrected probability that becomes this one: a threshold on corrected maps is this one on raw maps."""
        raw = (float(logit(np.float64(probability))) - self.offset) / self.slope
        return float(_sigmoid(raw))

    def distribution(self, probabilities: ArrayLike, /) -> CountDistribution:
        """Distribution of the count, from uncorrected existence probabilities."""
        found = PoissonBinomial(self.existence(probabilities))
        return CountWithMissed(found, self.missed_rate) if self.missed_rate > 0 else found

    def check_protocol(self, protocol: CountingProtocol) -> None:
        """Raise unless it was fitted under this protocol."""
        if self.protocol is not None and self.protocol != protocol:
            raise CalibrationError(
                f"The calibration was fitted for lesions defined as {self.protocol}, but these are defined as "
                f"{protocol}. Count with the same protocol, or calibrate again."
            )

    def to_dict(self) -> dict[str, Any]:
        """The fields, as plain values."""
        return asdict(self)

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Self:
        """From the fields; an unknown field is an error."""
        known = [field.name for field in fields(cls)]
        if not isinstance(values, dict) or set(values) - set(known):
            raise CalibrationError(f"Expected a calibration with the fields {', '.join(known)}, but got {values!r}.")
        given = values.get("protocol")
        protocol = CountingProtocol.from_dict(given) if isinstance(given, dict) else given
        return cls(**{**values, "protocol": protocol})

    def __str__(self) -> str:
        """One line in plain words."""
        return (
            f"slope {self.slope:.3g}, offset {self.offset:+.3g} on the logit, {self.missed_rate:.3g} missed lesions "
            f"per scan (from {self.origin})"
        )


def _sigmoid(x: Any) -> Any:
    """The logistic function, which overflows for no argument."""
    return np.exp(-np.logaddexp(0, -x))


def logit(probabilities: ArrayLike) -> NDArray[np.float64]:
    """Logits, with saturated probabilities taken as nearly so."""
    p = np.clip(np.asarray(probabilities, dtype=np.float64), SATURATION, 1 - SATURATION)
    return np.asarray(np.log(p) - np.log1p(-p))
