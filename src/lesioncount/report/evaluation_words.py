"""Scores → plain words: what each of them means, and who is better, worse, or not clearly either."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from lesioncount.runs.evaluation.evaluation import Evaluation
from lesioncount.runs.evaluation.method import EvaluatedMethod
from lesioncount.trust.scores.estimate import Estimate

# A number stays on the line of its unit.
_PERCENT = "\u00a0%"

Verdict = Literal["better", "no clear difference", "worse"]


@dataclass(frozen=True)
class ScoreMeaning:
    """What a score means, which direction is better, and whether it is a share of something."""

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
            number = f"{abs(value):.{self.digits}f}"
        is_zero = not number.strip("0.")
        sign = "" if is_zero else "\u2212" if value < 0 else "+" if signed else ""
        return sign + number + (_PERCENT if self.is_share and not signed else "")

    def interval(self, estimate: Estimate, *, signed: bool = False) -> str:
        """Both ends of the interval; nothing when there is none."""
        if not estimate.has_interval:
            return ""
        low, high = (self.text(value, signed=signed) for value in (estimate.low, estimate.high))
        return f"{low.removesuffix(_PERCENT)} to {high}"


_SAME_WEIGHT = "averaged over the true and predicted counts that occur, each with the same weight"

SCORES = {
    "rps": ScoreMeaning(
        "Ranked probability score (RPS)",
        "How far the distribution is from the true count, in lesions: being wrong by one costs less than by three, and "
        "justified doubt costs less than unjustified certainty.",
        "lower is better, 0 is perfect",
        digits=3,
    ),
    "accuracy": ScoreMeaning(
        "Count accuracy",
        "Share of scans whose predicted count, the most probable one, is right.",
        "higher is better",
        True,
    ),
    "f1": ScoreMeaning("F1", f"Harmonic mean of precision and recall, {_SAME_WEIGHT}.", "higher is better"),
    "precision": ScoreMeaning(
        "Precision",
        f"Of the scans predicted to have a count, the share that has it, {_SAME_WEIGHT}.",
        "higher is better",
    ),
    "recall": ScoreMeaning(
        "Recall", f"Of the scans that have a count, the share predicted to have it, {_SAME_WEIGHT}.", "higher is better"
    ),
    "mae": ScoreMeaning(
        "Mean absolute error", "By how many lesions the count is wrong, on average.", "lower is better"
    ),
    "bias": ScoreMeaning(
        "Bias", "Expected minus true number of lesions, on average: above 0, the count is too high.", "near 0 is best"
    ),
    "nll": ScoreMeaning(
        "Negative log-likelihood (NLL)",
        "How surprising the true count is to the distribution: −log of its probability.",
        "lower is better",
        digits=3,
    ),
    "zero_mass": ScoreMeaning(
        "Truth held impossible", "Share of scans whose true count had probability 0.", "lower is better", True
    ),
    "ece": ScoreMeaning(
        "Calibration error, mean (ECE)",
        "How far the probability of the predicted count is from how often it is right, on average over scans.",
        "lower is better",
        digits=3,
    ),
    "mce": ScoreMeaning(
        "Calibration error, largest (MCE)",
        "The same in the worst bin of the reliability figure, however few scans are in it.",
        "lower is better",
        digits=3,
    ),
    "coverage90": ScoreMeaning(
        f"Coverage of 90{_PERCENT} intervals",
        f"Share of scans whose true count lies in the 90{_PERCENT} interval.",
        f"90{_PERCENT} or a little more is right, less is overconfident",
        True,
    ),
    "width90": ScoreMeaning(
        f"Width of 90{_PERCENT} intervals",
        "Highest minus lowest count of the interval, in lesions, on average.",
        "smaller is better where coverage is right",
    ),
    "auroc": ScoreMeaning(
        "Uncertainty finds errors (AUROC)",
        "Probability that a scan with a wrong count was less certain than one with a right count.",
        "higher is better, 0.5 is chance",
    ),
}


@dataclass(frozen=True)
class Comparison:
    """One method beside another: the verdict by the headline score, and sentences that say what it stands on."""

    one: EvaluatedMethod
    other: EvaluatedMethod
    verdict: Verdict
    accuracy_verdict: Verdict
    sentence: str
    accuracy_sentence: str


def compare(evaluation: Evaluation, one: EvaluatedMethod, other: EvaluatedMethod) -> Comparison:
    """Compare two methods by RPS, where lower is better, and by accuracy."""
    rps, rps_words = _by_score(evaluation, one, other, "rps", sign=-1)
    accuracy, accuracy_words = _by_score(evaluation, one, other, "accuracy", sign=1)
    return Comparison(one, other, rps, accuracy, f"RPS {rps_words}", f"Count accuracy {accuracy_words}")


def comparisons(evaluation: Evaluation) -> list[Comparison]:
    """Our method beside every other; the raw counts where only those were compared scan by scan."""
    found = []
    for other in evaluation.methods.values():
        if other.key == evaluation.ours.key:
            continue
        one, raw = evaluation.ours, evaluation.methods["raw"]
        is_paired = evaluation.difference(one, other, "rps") is not None
        if not is_paired and other is not raw and evaluation.difference(raw, other, "rps") is not None:
            one = raw
        found.append(compare(evaluation, one, other))
    return found


def _by_score(
    evaluation: Evaluation, one: EvaluatedMethod, other: EvaluatedMethod, name: str, *, sign: int
) -> tuple[Verdict, str]:
    score, mine, yours = SCORES[name], one.score(name), other.score(name)
    values = f"{score.text(mine.value)} against {score.text(yours.value)}"
    gain = evaluation.difference(one, other, name)
    if gain is None:
        verdict = _of_two_intervals(mine, yours, sign)
        return verdict, f"{values}; the two were compared by their intervals, not scan by scan."
    verdict = _of_difference(gain if sign > 0 else -gain)
    unit = " percentage points" if score.is_share else ""
    difference = f"difference {score.text(gain.value, signed=True)}{unit}"
    if not gain.has_interval:
        return verdict, f"{values}: {difference}, without an interval."
    level = f"{100 * evaluation.confidence:g}{_PERCENT} interval"
    includes = ", which includes 0" if verdict == "no clear difference" else ""
    return verdict, f"{values}: {difference}, {level} {score.interval(gain, signed=True)}{includes}."


def _of_difference(gain: Estimate) -> Verdict:
    """By the interval of a paired difference; larger is better."""
    if not gain.has_interval or gain.low <= 0 <= gain.high:
        return "no clear difference"
    return "better" if gain.low > 0 else "worse"


def _of_two_intervals(mine: Estimate, yours: Estimate, sign: int) -> Verdict:
    """By whether two intervals are disjoint: less sharp than a paired difference, but never too hopeful."""
    mine, yours = (mine, yours) if sign > 0 else (-mine, -yours)
    if mine.low > yours.high:
        return "better"
    if mine.high < yours.low:
        return "worse"
    return "no clear difference"


# The bad news first. That accuracy is better needs no sentence of its own: the table says it.
_CONCLUSIONS: tuple[tuple[str, Verdict, str], ...] = (
    ("verdict", "worse", "By RPS, {} is worse than {}."),
    ("verdict", "no clear difference", "By RPS, {} shows no clear difference from {}."),
    ("verdict", "better", "By RPS, {} is better than {}."),
    ("accuracy_verdict", "worse", "In count accuracy, {} is worse than {}."),
    ("accuracy_verdict", "no clear difference", "In count accuracy, {} shows no clear difference from {}."),
)


def conclusion(evaluation: Evaluation, found: list[Comparison]) -> str:
    """The comparisons with simple methods in a few sentences."""
    sentences = []
    for kind, verdict, sentence in _CONCLUSIONS:
        others: dict[str, list[str]] = {}
        for comparison in found:
            if getattr(comparison, kind) == verdict and not comparison.other.is_ours:
                who = "it" if comparison.one is evaluation.ours else "the count before calibration"
                others.setdefault(who, []).append(comparison.other.name)
        sentences += [sentence.format(who, _listed(names)) for who, names in others.items()]
    return " ".join(sentences)


def _listed(names: list[str]) -> str:
    return ", ".join(names[:-1]) + " and " + names[-1] if len(names) > 1 else names[0]
