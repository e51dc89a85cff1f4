"""A calibration with its evidence: what it gains on held-out scans, and guaranteed intervals."""

from __future__ import annotations

import hashlib
import json
import math
import os
import reprlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from lesioncount.distributions.count_distribution import CountDistribution
from lesioncount.errors import CalibrationError
from lesioncount.protocol import CountingProtocol
from lesioncount.trust.calibration import Calibration
from lesioncount.trust.conformal import ConformalCounts
from lesioncount.trust.fitting.fit import MIN_LESIONS, MIN_SCANS, fit_calibration
from lesioncount.trust.fitting.known_truth import KnownTruth
from lesioncount.trust.scores.estimate import Estimate
from lesioncount.trust.scores.summary import Predictions, score_all

FORMAT_VERSION = 1
N_FOLDS = 5

# Nobody would notice a change of the ranked probability score by less than this share.
_NEXT_TO_NOTHING = 0.02

# Missed lesions per scan that a file may speak of: the distribution has an entry for every count up to there.
_MOST_MISSED = 10_000

_HELD_OUT_PARTS = ("before", "after", "change")
_REPORTED = ("rps", "nll", "ece", "accuracy", "coverage90", "zero_mass")


@dataclass(frozen=True)
class HeldOut:
    """Scores on held-out scans, fold by fold: before calibration, after it, and the paired change."""

    n_scans: int
    n_folds: int
    before: dict[str, Estimate]
    after: dict[str, Estimate]
    change: dict[str, Estimate]

    @property
    def verdict(self) -> str:
        """What the change of the ranked probability score says, in words."""
        change = self.change["rps"]
        figures = f"{change.value:+.3f} [{change.low:+.3f}, {change.high:+.3f}], {self.n_scans} scans"
        if max(abs(change.low), abs(change.high)) < _NEXT_TO_NOTHING * self.before["rps"].value:
            return f"The calibration changed next to nothing: the counts were already calibrated (RPS {figures})."
        if change.high < 0:
            return f"The calibration made held-out counts better (ranked probability score {figures})."
        if change.low > 0:
            return (
                f"The calibration made held-out counts worse (ranked probability score {figures}, before "
                f"{self.before['rps'].value:.3f}): leave them as they are."
            )
        return f"The calibration gained nothing that can be told from chance (ranked probability score {figures})."

    def to_dict(self) -> dict[str, Any]:
        """As plain values."""
        scores = {
            part: {name: score.to_dict() for name, score in getattr(self, part).items()} for part in _HELD_OUT_PARTS
        }
        return {"n_scans": self.n_scans, "n_folds": self.n_folds, **scores, "verdict": self.verdict}

    @classmethod
    def from_dict(cls, content: dict[str, Any]) -> Self:
        """From plain values."""
        scores = {
            part: {name: Estimate.from_dict(score) for name, score in content[part].items()} for part in _HELD_OUT_PARTS
        }
        return cls(content["n_scans"], content["n_folds"], **scores)


@dataclass(frozen=True, eq=False)
class ConformalFit:
    """Guaranteed intervals: a calibration, and scores of scans that it was not fitted on."""

    calibration: Calibration
    conformal: ConformalCounts

    def interval(self, existence: Any, confidence: float) -> tuple[int, int]:
        """Lowest and highest count, from uncorrected existence probabilities."""
        return self.conformal.interval(self.calibration.distribution(existence), confidence)


@dataclass(frozen=True, eq=False)
class CalibrationFit:
    """What ``calibration.json`` holds.

    Attributes
    ----------
    calibration : Calibration
        Fitted on all scans.
    held_out : HeldOut or None
        What it gained; None when nothing was fitted.
    conformal : ConformalFit or None
        Guaranteed intervals. Half of the scans fit a calibration of their own, the other half its intervals.
    """

    calibration: Calibration
    held_out: HeldOut | None = None
    conformal: ConformalFit | None = None

    @classmethod
    def fit(cls, truth: KnownTruth, /, *, protocol: CountingProtocol | None = None, seed: int = 0) -> Self:
        """Fit on scans with known truth, and test the fit on held-out scans.

        Parameters
        ----------
        truth : KnownTruth
        protocol : CountingProtocol, optional
            What counted as one lesion.
        seed : int, default 0
            Of the folds and halves.
        """
        return cls(
            fit_calibration(truth, protocol=protocol),
            _held_out(truth, seed),
            _conformal(truth, protocol, seed),
        )

    @property
    def fingerprint(self) -> str:
        """A short name that changes with anything that a count depends on."""
        parts: list[Any] = [self.calibration.to_dict()]
        if self.conformal is not None:
            parts += [self.conformal.calibration.to_dict(), self.conformal.conformal.to_dict()]
        return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:12]

    def save(self, path: str | os.PathLike[str], /) -> None:
        """Write it as JSON."""
        Path(path).write_text(self.to_json(), "utf-8")

    @classmethod
    def load(cls, path: str | os.PathLike[str], /) -> Self:
        """Read what `save` wrote."""
        try:
            return cls.from_json(Path(path).read_text("utf-8"))
        except (OSError, UnicodeDecodeError) as error:
            raise CalibrationError(f"The calibration {path} cannot be read: {error}.") from None

    def to_json(self) -> str:
        """As text."""
        content: dict[str, Any] = {
            "format": FORMAT_VERSION,
            "fingerprint": self.fingerprint,
            "calibration": self.calibration.to_dict(),
            "held_out": None if self.held_out is None else self.held_out.to_dict(),
            "conformal": None
            if self.conformal is None
            else {
                "calibration": self.conformal.calibration.to_dict(),
                "scores": self.conformal.conformal.to_dict(),
            },
        }
        return json.dumps(_without_nan(content), indent=1, ensure_ascii=False, allow_nan=False) + "\n"

    @classmethod
    def from_json(cls, text: str) -> Self:
        """From text."""
        try:
            return cls._from_content(json.loads(text))
        except CalibrationError:
            raise
        except RecursionError:
            raise CalibrationError("Expected a calibration, but the file is nested too deeply to be one.") from None
        except KeyError as error:
            raise CalibrationError(f"Expected a calibration as lesioncount calibrate writes it: no {error}.") from None
        except (ValueError, TypeError, AttributeError, OverflowError) as error:
            raise CalibrationError(f"Expected a calibration as lesioncount calibrate writes it: {error}.") from None

    @classmethod
    def _from_content(cls, content: Any) -> Self:
        if not isinstance(content, dict) or "calibration" not in content:
            raise CalibrationError("Expected a calibration as lesioncount calibrate writes it, but it is not one.")
        if content.get("format") != FORMAT_VERSION:
            given = reprlib.repr(content.get("format"))
            raise CalibrationError(f"Expected a calibration of format {FORMAT_VERSION}, but got {given}.")
        held_out, conformal = content.get("held_out"), content.get("conformal")
        return cls(
            read_calibration(content["calibration"]),
            None if held_out is None else HeldOut.from_dict(held_out),
            None
            if conformal is None
            else ConformalFit(
                read_calibration(conformal["calibration"]), ConformalCounts.from_dict(conformal["scores"])
            ),
        )


def read_calibration(values: Any) -> Calibration:
    """A calibration from plain values that were read from a file, whose table of counts fits into memory."""
    try:
        calibration = Calibration.from_dict(values)
    except OverflowError:
        raise CalibrationError("Expected a calibration, but some of its numbers have hundreds of digits.") from None
    if calibration.missed_rate > _MOST_MISSED:
        raise CalibrationError(
            f"Expected a rate of missed lesions of at most {_MOST_MISSED:,} per scan, but got "
            f"{calibration.missed_rate:g}."
        )
    return calibration


def _held_out(truth: KnownTruth, seed: int) -> HeldOut | None:
    """Fit on all folds but one and judge on that one, in turn; None if the folds are too small."""
    parts = truth.parts(N_FOLDS, seed=seed)
    calibrated: list[CountDistribution | None] = [None] * len(truth)
    for part in parts:
        held_out = set(part)
        rest = [row for row in range(len(truth)) if row not in held_out]
        try:
            calibration = fit_calibration(truth[rest])
        except CalibrationError:
            return None
        for row in part:
            calibrated[row] = calibration.distribution(truth.existence[row])
    raw = [Calibration().distribution(p) for p in truth.existence]
    methods = {
        "before": Predictions.of_distributions(raw, truth.counts),
        "after": Predictions.of_distributions([d for d in calibrated if d is not None], truth.counts),
    }
    scores, differences = score_all(methods, groups=truth.groups, seed=seed)
    picked = [{name: of[name] for name in _REPORTED} for of in (*scores.values(), differences["after", "before"])]
    return HeldOut(len(truth), N_FOLDS, *picked)


def _conformal(truth: KnownTruth, protocol: CountingProtocol | None, seed: int) -> ConformalFit:
    """Half of the scans for a calibration, half for its intervals; if they are few, all for uncalibrated intervals.

    Intervals use one scan per patient: several scans of one patient are not exchangeable with that of a new one.
    """
    fitted, judged = truth.parts(2, seed=seed + 1)
    calibration, scored = Calibration(protocol=protocol), truth
    enough = len({truth.groups[row] for row in judged}) >= MIN_SCANS
    if enough and len(fitted) >= MIN_SCANS and int(truth[fitted].counts.sum()) >= MIN_LESIONS:
        calibration, scored = fit_calibration(truth[fitted], protocol=protocol), truth[judged]
    scored = scored[scored.one_per_group(seed=seed)]
    distributions = [calibration.distribution(p) for p in scored.existence]
    return ConformalFit(calibration, ConformalCounts.fit(distributions, scored.counts))


def _without_nan(value: Any) -> Any:
    """With null for NaN and infinity, which JSON does not have."""
    if isinstance(value, dict):
        return {key: _without_nan(item) for key, item in value.items()}
    return None if isinstance(value, float) and not math.isfinite(value) else value
