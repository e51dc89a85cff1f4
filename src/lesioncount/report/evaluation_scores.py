"""What each score means, in a sentence, and how its values are written."""

from __future__ import annotations

import math
from dataclasses import dataclass

from lesioncount.trust.scores.estimate import Estimate

# A number stays on the line of its unit.
PERCENT = "\u00a0%"


@dataclass(frozen=True)
class ScoreMeaning:
    """What a score means, which direction is better, and whether it is a share of something.

    Numbers have two or three digits that tell something, whether they are tenths of a lesion or hundreds of them.
    """

    name: str
    meaning: str
    better: str
    is_share: bool = False
    digits: int = 2

    def text(self, value: float, *, signed: bool = False) -> str:
        """A value as it is written: shares in percent, a dash when it is undefined."""
        if math.isnan(value):
            return "–"
        if self.is_share:
            number = f"{100 * abs(value):.1f}" if signed else f"{100 * abs(value):.0f}"
        else:
            n_before = sum(abs(value) >= limit for limit in (1, 10, 100)[3 - self.digits :])
            number = f"{abs(value):.{max(0, self.digits - n_before)}f}"
        is_zero = not number.strip("0.")
        sign = "" if is_zero else "\u2212" if value < 0 else "+" if signed else ""
        return sign + number + (PERCENT if self.is_share and not signed else "")

    def interval(self, estimate: Estimate, *, signed: bool = False) -> str:
        """Both ends of the interval; nothing when there is none."""
        if not estimate.has_interval:
            return ""
        low, high = (self.text(value, signed=signed) for value in (estimate.low, estimate.high))
        return f"{low.removesuffix(PERCENT)} to {high}"


_HIGHER, _LOWER = "higher is better", "lower is better"
_SAME_WEIGHT = "averaged over the true and predicted classes that occur, each with the same weight"


def _coverage(percent: int) -> ScoreMeaning:
    return ScoreMeaning(
        f"Coverage of {percent}{PERCENT} intervals",
        f"Share of scans whose true count lies in the {percent}{PERCENT} interval.",
        f"{percent}{PERCENT} or a little more is right, less is overconfident",
        True,
    )


def _width(percent: int) -> ScoreMeaning:
    return ScoreMeaning(
        f"Width of {percent}{PERCENT} intervals",
        "Highest minus lowest count of the interval, in lesions, on average.",
        "smaller is better where coverage is right",
    )


SCORES = {
    "rps": ScoreMeaning(
        "Ranked probability score (RPS)",
        "How far the distribution is from the true count, in lesions: being wrong by one costs less than by three, and "
        "justified doubt costs less than unjustified certainty.",
        "lower is better, 0 is perfect",
        digits=3,
    ),
    "mae": ScoreMeaning("Mean absolute error", "By how many lesions the median count is wrong, on average.", _LOWER),
    "bias": ScoreMeaning(
        "Bias", "Expected minus true number of lesions, on average: above 0, the count is too high.", "near 0 is best"
    ),
    "relative_bias": ScoreMeaning(
        "Relative bias", "The same as a share of all true lesions.", f"near 0{PERCENT} is best", True
    ),
    "accuracy": ScoreMeaning(
        "Count accuracy", "Share of scans whose predicted count, the most probable one, is right.", _HIGHER, True
    ),
    "within_1": ScoreMeaning(
        "Within 1", "Share of scans whose median count is wrong by at most one lesion.", _HIGHER, True
    ),
    "within_10_percent": ScoreMeaning(
        f"Within 10{PERCENT}",
        f"Share of scans whose median count is wrong by at most 10{PERCENT} of the truth; exactly right if it is 0.",
        _HIGHER,
        True,
    ),
    "concordance": ScoreMeaning(
        "Lin's concordance",
        "Agreement of median and true counts: 1 if all are equal; noise and bias lower it.",
        _HIGHER,
        digits=3,
    ),
    "coverage50": _coverage(50),
    "width50": _width(50),
    "coverage80": _coverage(80),
    "width80": _width(80),
    "coverage90": _coverage(90),
    "width90": _width(90),
    "nll": ScoreMeaning(
        "Negative log-likelihood (NLL)",
        "How surprising the true count is to the distribution: −log of its probability.",
        _LOWER,
        digits=3,
    ),
    "nll_floored": ScoreMeaning(
        "Truth next to impossible",
        "Share of scans whose true count was so improbable that the log-likelihood takes a least probability instead.",
        _LOWER,
        True,
    ),
    "zero_mass": ScoreMeaning(
        "Truth held impossible", "Share of scans whose true count had probability 0.", _LOWER, True
    ),
    "f1": ScoreMeaning("F1", f"Harmonic mean of precision and recall, {_SAME_WEIGHT}.", _HIGHER),
    "precision": ScoreMeaning(
        "Precision", f"Of the scans predicted to be in a class, the share that is, {_SAME_WEIGHT}.", _HIGHER
    ),
    "recall": ScoreMeaning(
        "Recall", f"Of the scans that are in a class, the share predicted to be, {_SAME_WEIGHT}.", _HIGHER
    ),
    "ece": ScoreMeaning(
        "Calibration error, mean (ECE)",
        "How far the probability of the predicted count is from how often it is right, on average over scans.",
        _LOWER,
        digits=3,
    ),
    "mce": ScoreMeaning(
        "Calibration error, largest (MCE)",
        "The same in the worst bin of the reliability figure, however few scans are in it.",
        _LOWER,
        digits=3,
    ),
    "auroc": ScoreMeaning(
        "Uncertainty finds errors (AUROC)",
        "Probability that a scan with a wrong count was less certain than one with a right count.",
        "higher is better, 0.5 is chance",
    ),
}
