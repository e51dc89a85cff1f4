"""The nine claims of the paper, and when each holds: rules that were fixed before the first run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, Self

from msgspec import convert, to_builtins

from lesioncount.trust.scores.estimate import Estimate
from lesioncount_reproduction.experiments.numerals import written

Verdict = Literal["holds", "does not hold", "undecided", "not tested"]

STATEMENTS = {
    1: "The count is stable in the threshold τ, while that of connected components is not",
    2: "At high thresholds both count equally well",
    3: "Entropy predicts error, and the most certain counts are nearly all correct",
    4: "Its uncertainty is better than that of connected components with Monte Carlo dropout",
    5: "The probabilities of counts are calibrated",
    6: "As a multi-task method it counts as well as the best parametric head",
    7: "Count training gives a better calibrated map than segmentation alone, and than the heads",
    8: "With a tenth of the data it counts better than the heads",
    9: "It is the most robust to attacks on the count",
}

# Of several pieces of evidence, the first of these that there is decides.
_DECIDING: tuple[Verdict, ...] = ("does not hold", "not tested", "undecided", "holds")

# What counts as equal: methods within 5 points are not ranked.
EQUAL = 0.05

# Claims that compare networks which were trained in different ways. Fewer seeds than this do not rank them.
COMPARE_TRAININGS, FEWEST_SEEDS = (6, 7, 8, 9), 3

# What counts as nearly all, as a good ranking of errors, and as calibrated.
NEARLY_ALL, GOOD_AUROC, CALIBRATED = 0.95, 0.7, 0.1


@dataclass(frozen=True)
class Evidence:
    """A measured quantity, and the side of a bound on which it must lie.

    Attributes
    ----------
    measured : str
        What it is.
    estimate : Estimate
    kind : str
        How its numbers are written.
    side : {"above", "below"}
    bound : float
    untested : str
        Why this says nothing about the claim, such as that a head it is compared with has not learned to count.
    """

    measured: str
    estimate: Estimate
    kind: str
    side: Literal["above", "below"]
    bound: float = 0.0
    untested: str = ""

    @property
    def verdict(self) -> Verdict:
        """It holds, or does not, if the interval and every seed lie on one side of the bound."""
        if self.untested:
            return "not tested"
        numbers = (self.estimate.low, self.estimate.high, *self.estimate.seeds)
        distances = [(number - self.bound) * (1 if self.side == "above" else -1) for number in numbers]
        if all(distance > 0 for distance in distances):
            return "holds"
        return "does not hold" if all(distance < 0 for distance in distances) else "undecided"

    @property
    def text(self) -> str:
        """In one line."""
        measured, bound = (written(one, self.kind, unit=True) for one in (self.estimate, self.bound))
        untested = f" (not tested: {self.untested})" if self.untested else ""
        return f"{self.measured}: {measured}, should be {self.side} {bound}{untested}"

    def to_dict(self) -> dict[str, Any]:
        """As plain values, for JSON."""
        return vars(self) | {"estimate": to_builtins(self.estimate), "verdict": self.verdict}

    @classmethod
    def from_dict(cls, content: dict[str, Any]) -> Self:
        """From plain values."""
        values = {name: value for name, value in content.items() if name != "verdict"}
        found = cls(**values | {"estimate": convert(content["estimate"], Estimate)})
        if found.side not in ("above", "below"):
            raise ValueError(f"{found.side!r} is not a side of a bound")
        _ = found.text  # a kind that cannot be written shows here
        return found


@dataclass(frozen=True)
class Claim:
    """A claim of the paper, tested on a data set.

    Attributes
    ----------
    number : int
        1 to 9.
    data_set : str
    evidence : tuple of Evidence
        All of it must hold; where there is none, the claim is not tested.
    basis : str
        What it stands on: scans, patients, seeds.
    remark : str
        What else a reader should know.
    """

    number: int
    data_set: str
    evidence: tuple[Evidence, ...]
    basis: str
    remark: str = ""

    @property
    def statement(self) -> str:
        """What is claimed."""
        return STATEMENTS[self.number]

    @property
    def needs_seeds(self) -> bool:
        """Whether trainings are compared, and there are too few of them to tell methods from luck."""
        fewest = min((len(one.estimate.seeds) for one in self.evidence), default=FEWEST_SEEDS)
        return self.number in COMPARE_TRAININGS and fewest < FEWEST_SEEDS

    @property
    def verdict(self) -> Verdict:
        """It holds if all evidence says so, and does not if any says that; without any, it is not tested."""
        if not self.evidence:
            return "not tested"
        if self.needs_seeds:
            return "undecided"
        verdicts = {one.verdict for one in self.evidence}
        return next(one for one in _DECIDING if one in verdicts)

    def to_dict(self) -> dict[str, Any]:
        """As plain values, for JSON."""
        plain = {
            name: getattr(self, name) for name in ("number", "statement", "data_set", "verdict", "basis", "remark")
        }
        return plain | {"evidence": [one.to_dict() for one in self.evidence]}

    @classmethod
    def from_dict(cls, content: dict[str, Any]) -> Self:
        """From plain values."""
        evidence = tuple(Evidence.from_dict(one) for one in content["evidence"])
        if content["number"] not in STATEMENTS:
            raise ValueError(f"there is no claim {content['number']!r}")
        return cls(content["number"], content["data_set"], evidence, content["basis"], content["remark"])
