"""A list of candidates with a promise: how many lesions it misses, or how much on it is none, on average."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray

from lesioncount.errors import CalibrationError
from lesioncount.trust.fitting.known_truth import KnownTruth

Promised = Literal["missed", "false"]

# The shares that a calibration keeps a threshold for.
LEVELS = (0.01, 0.02, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.4, 0.5)

# Where so large a part of the level is missed without any candidate, a list cannot promise what is asked for.
_TOO_NEAR = 0.75

# A list has every candidate above this.
_ALL = 0.0
_NONE = 2.0


@dataclass(frozen=True)
class ListRule:
    """What a list promises, such as ``missed<=10%``.

    Parameters
    ----------
    promised : {"missed", "false"}
        The share of a scan's lesions that are not on its list, or the share of its list that is none.
    level : float
        At most so much of it, on average.
    """

    promised: Promised
    level: float

    @classmethod
    def parse(cls, text: str) -> Self:
        """From ``missed<=10%`` or ``false<=0.2``."""
        found = re.fullmatch(r"\s*(missed|false)\s*(?:<=|≤)\s*(\d+(?:\.\d+)?)\s*(%?)\s*", text)
        level = float(found[2]) / (100 if found and found[3] else 1) if found else 0.0
        if not found or not 0 < level < 1:
            raise CalibrationError(f"Expected a promise such as missed<=10% or false<=20%, but got {text!r}.")
        return cls("missed" if found[1] == "missed" else "false", level)

    def __str__(self) -> str:
        return f"{self.promised}<={100 * self.level:g}%"

    @property
    def promise(self) -> str:
        """The exact sentence."""
        begin = f"On average over calibrations, and over scans like theirs, at most {100 * self.level:g} % of"
        if self.promised == "missed":
            return (
                f"{begin} the lesions that have a candidate of their own are missing from a scan's list; scans "
                "without such a lesion are left out."
            )
        return f"{begin} the candidates on a scan's list are not lesions (none, where a list is empty)."


@dataclass(frozen=True)
class CandidateLists:
    """Thresholds of lists, by promise and level.

    Attributes
    ----------
    thresholds : mapping of str to sequence of float or None
        Of ``missed`` and ``false``: the probability from which on a candidate is on the list, for each of `LEVELS`;
        None where no list can promise it.
    without_candidate : float
        The share of lesions that have none, of which no list can know.
    n_scans : int
        That the thresholds come from.

    Notes
    -----
    Conformal risk control. With n scans, and l_i(t) the share of the lesions of scan i that have a candidate below t::

        t = the largest with (Σ_i l_i(t) + 1) / (n + 1) ≤ level

    The share that a new scan misses is then at most the level, on average over calibration scans and new scan together:
    not in each scan, and not of all lesions of a cohort, of which scans with many lesions have more. The share of a
    list that is no lesion does not always rise as t falls; the largest share at this or a higher threshold does.

    References
    ----------
    Angelopoulos, Bates, Fisch, Lei, Schuster, *Conformal risk control*, ICLR 2024.
    """

    thresholds: Mapping[str, tuple[float | None, ...]]
    without_candidate: float
    n_scans: int

    @classmethod
    def fit(cls, truth: KnownTruth, /, *, seed: int = 0) -> Self | None:
        """From scans where it is known which candidates are lesions; None where that is not known."""
        if truth.owns is None:
            return None
        rows = truth.one_per_group(seed=seed)
        scores = [truth.candidates[row].existence() for row in rows]
        owns = [truth.owns[row] for row in rows]
        n_lesions, n_found = int(truth.counts[rows].sum()), int(sum(own.sum() for own in owns))
        missed = [_missed(score[own]) for score, own in zip(scores, owns, strict=True) if own.any()]
        wrong = [_wrong(score, own) for score, own in zip(scores, owns, strict=True)]
        return cls(
            {
                "missed": tuple(_largest(missed, level) for level in LEVELS),
                "false": tuple(_smallest(wrong, level) for level in LEVELS),
            },
            max(0.0, 1 - n_found / n_lesions) if n_lesions else 0.0,
            len(rows),
        )

    def threshold(self, rule: ListRule) -> float:
        """From which probability on a candidate is on the list; an error where the promise cannot be kept."""
        known = [place for place, level in enumerate(LEVELS) if abs(level - rule.level) < 1e-9]
        if not known:
            levels = ", ".join(f"{100 * level:g}" for level in LEVELS)
            raise CalibrationError(f"Expected a list for one of {levels} %, but got {100 * rule.level:g} %.")
        if rule.promised == "missed" and self.without_candidate > _TOO_NEAR * rule.level:
            raise CalibrationError(
                f"{100 * self.without_candidate:.1f} % of the lesions have no candidate of their own, and are on no "
                f"list. That is too near to {100 * rule.level:g} % for a promise. Allow a larger share, or count at a "
                "lower threshold."
            )
        found = self.thresholds[rule.promised][known[0]]
        if found is None:
            raise CalibrationError(
                f"{self.n_scans} scans with known lesions are too few, or too different, to promise {rule}."
            )
        return found

    def to_dict(self) -> dict[str, Any]:
        """As plain values."""
        return {
            "levels": list(LEVELS),
            "thresholds": {name: list(of) for name, of in self.thresholds.items()},
            "without_candidate": self.without_candidate,
            "n_scans": self.n_scans,
        }

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """From what `to_dict` gave."""
        thresholds = {name: tuple(values["thresholds"][name]) for name in ("missed", "false")}
        numbers = [one for of in thresholds.values() for one in of if one is not None]
        if values["levels"] != list(LEVELS) or any(len(of) != len(LEVELS) for of in thresholds.values()):
            raise CalibrationError("Expected thresholds of lists for the levels of this version.")
        if not all(isinstance(one, float | int) and _ALL <= one <= _NONE for one in numbers):
            raise CalibrationError("Expected thresholds of lists to be probabilities.")
        return cls(thresholds, float(values["without_candidate"]), int(values["n_scans"]))


# Steps of a loss: thresholds from high to low, and the loss from each on.
_Steps = tuple[NDArray[np.float64], NDArray[np.float64]]


def _missed(lesions: NDArray[np.float64]) -> _Steps:
    """The share of lesions with a candidate below t."""
    ordered = np.sort(lesions)[::-1]
    return ordered, 1 - np.arange(1, len(ordered) + 1) / len(ordered)


def _wrong(scores: NDArray[np.float64], owns: NDArray[np.bool_]) -> _Steps:
    """The share of a list that is no lesion, or the largest for a shorter list."""
    order = np.argsort(-scores, kind="stable")
    shares = np.cumsum(~owns[order]) / np.arange(1, len(order) + 1)
    return scores[order], np.maximum.accumulate(shares)


def _mean_loss(steps: Sequence[_Steps], thresholds: NDArray[np.float64], empty: float) -> NDArray[np.float64]:
    """(Σ l_i(t) + 1) / (n + 1) at each threshold."""
    total = np.ones(len(thresholds))
    for scores, losses in steps:
        n_listed = np.searchsorted(-scores, -thresholds, "right")
        total += np.concatenate([[empty], losses])[n_listed]
    return np.asarray(total / (len(steps) + 1))


def _largest(missed: Sequence[_Steps], level: float) -> float | None:
    """The highest threshold that misses so little."""
    thresholds = np.unique(np.concatenate([np.empty(0), *(scores for scores, _ in missed)]))
    good = np.flatnonzero(_mean_loss(missed, thresholds, 1.0) <= level)
    return float(thresholds[good[-1]]) if len(good) else None


def _smallest(wrong: Sequence[_Steps], level: float) -> float | None:
    """The lowest threshold with so little that is wrong; an empty list is never."""
    thresholds = np.unique(np.concatenate([[_NONE], *(scores for scores, _ in wrong)]))
    good = np.flatnonzero(_mean_loss(wrong, thresholds, 0.0) <= level)
    return float(thresholds[good[0]]) if len(good) else None
