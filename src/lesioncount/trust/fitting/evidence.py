"""A calibration with its evidence: what it gains on held-out scans, and guaranteed intervals."""

from __future__ import annotations

import hashlib
import json
import math
import os
import reprlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self, TypeAlias

import numpy as np
from msgspec import ValidationError, convert, to_builtins

from lesioncount.distributions.count_distribution import CountDistribution
from lesioncount.errors import CalibrationError, reason_of
from lesioncount.protocol import CountingProtocol
from lesioncount.trust.calibration import NOT_CHECKED, Calibration
from lesioncount.trust.candidate_table import TableLike
from lesioncount.trust.conformal import PATIENTS_FOR_HALVES, ConformalCounts, promise_of
from lesioncount.trust.fitting.fit import best_calibration, fit_calibration
from lesioncount.trust.fitting.known_truth import KnownTruth
from lesioncount.trust.fitting.lists import CandidateLists
from lesioncount.trust.fitting.reader_pool import ReaderPool
from lesioncount.trust.jackknife import JackknifeCounts, score_of
from lesioncount.trust.likeness import CalibrationScans, CountCheck, places_of
from lesioncount.trust.scores.bootstrap import score_all
from lesioncount.trust.scores.estimate import Estimate
from lesioncount.trust.scores.predictions import Predictions

# What stands for a calibration: itself, with its evidence, or its file.
CalibrationLike: TypeAlias = "CalibrationFit | Calibration | str | os.PathLike[str]"

# What is kept of how maps were read, and its types.
_READING: Mapping[str, Any] = {"channel": int | None, "scale": float | None, "logits": bool}

FORMAT_VERSION = 2
_SEAL = "content_sha256"
N_FOLDS = 5

# Scans in all folds but one: with fewer, what is held out judges another calibration than that of all.
FEWEST_TO_HOLD_OUT = 8

# Nobody would notice a change of the ranked probability score by less than this share.
_NEXT_TO_NOTHING = 0.02
_NO_LESION = 1e-3

# Intervals of 90 % that hold less than this share, beyond doubt, are of counts that do not fit.
_HOPELESS = 0.7

# Of the intervals that a verdict speaks of.
CONFIDENCE = 0.9

_HELD_OUT_PARTS = ("before", "after", "change")
_REPORTED = ("rps", "mae", "bias", "nll", "accuracy", "coverage90", "width90", "zero_mass")

# How often the random part of where a count lies is drawn, when new scans are checked.
_N_PLACES = 20

# Where counts lie that a calibration gives itself.
_UNIFORM = ((np.arange(300) + 0.5) / 300).tolist()


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
        """What changed for a user, in words and in lesions."""
        change, before = self.change["rps"], self.before["rps"].value
        if change.low == change.high == 0:
            return self._unchanged
        is_small = max(abs(change.low), abs(change.high)) < max(_NEXT_TO_NOTHING * before, _NO_LESION)
        is_slight = abs(change.value) < _NEXT_TO_NOTHING * before and not change.low <= 0 <= change.high
        is_noticed = not (is_small or is_slight)
        if is_noticed and change.high < 0:
            return f"The calibration makes held-out counts better. {self._figures}"
        if is_noticed and change.low > 0:
            return f"The calibration makes held-out counts worse: leave them as they are. {self._figures}"
        if self._covers_better:
            return f"The calibration makes held-out intervals honest, and counts no worse. {self._figures}"
        if not is_noticed:
            return f"The calibration changes next to nothing: the counts were calibrated already. {self._figures}"
        return f"The calibration gains nothing that can be told from chance. {self._figures}"

    @property
    def _unchanged(self) -> str:
        """Of counts that a calibration leaves as they are, since they fit or since nothing helps."""
        covered = self.before["coverage90"]
        if covered.high >= _HOPELESS:
            return f"Nothing needs to be corrected: the counts of {self.n_scans} scans fit the truth as they are."
        return (
            "No calibration helps, and the counts do not fit: 90 % intervals hold the truth of "
            f"{100 * covered.value:.0f} % of {self.n_scans} scans. Do the truth and the maps belong together?"
        )

    @property
    def _covers_better(self) -> bool:
        """Whether 90 % intervals are clearly closer to 90 % than before, and were too short."""
        before, after = self.before["coverage90"], self.after["coverage90"]
        return before.high < CONFIDENCE and self.change["coverage90"].low > 0 and after.high > CONFIDENCE

    @property
    def _figures(self) -> str:
        rps = self.change["rps"]
        parts = [
            f"RPS {self._from_to('rps', '.3g')} lesions ({rps.value:+.3g} [{rps.low:+.3g}, {rps.high:+.3g}])",
            f"bias {self._from_to('bias', '+.2g')} lesions",
            f"90 % intervals hold {self._from_to('coverage90', '.0%')} of {self.n_scans} scans",
        ]
        return "; ".join(parts) + "."

    def _from_to(self, name: str, how: str) -> str:
        return f"{self.before[name].value:{how}} -> {self.after[name].value:{how}}"

    def to_dict(self) -> dict[str, Any]:
        """As plain values."""
        scores = {
            part: {name: to_builtins(score) for name, score in getattr(self, part).items()} for part in _HELD_OUT_PARTS
        }
        return {"n_scans": self.n_scans, "n_folds": self.n_folds, **scores, "verdict": self.verdict}

    @classmethod
    def from_dict(cls, content: dict[str, Any]) -> Self:
        """From plain values."""
        scores = {
            part: {name: convert(score, Estimate) for name, score in content[part].items()} for part in _HELD_OUT_PARTS
        }
        return cls(content["n_scans"], content["n_folds"], **scores)


@dataclass(frozen=True, eq=False)
class ConformalFit:
    """Guaranteed intervals: a calibration, and scores of scans that it was not fitted on.

    Attributes
    ----------
    calibration : Calibration
        Of half of the scans; where they are few, of all.
    conformal : ConformalCounts or JackknifeCounts
    """

    calibration: Calibration
    conformal: ConformalCounts | JackknifeCounts

    @property
    def calibrations(self) -> tuple[Calibration, ...]:
        """All that an interval depends on."""
        few = self.conformal.calibrations if isinstance(self.conformal, JackknifeCounts) else ()
        return (self.calibration, *few)

    @property
    def n_scans(self) -> list[int]:
        """The number of scans that intervals were fitted on, of each group."""
        scores = self.conformal.scores
        return [len(scores)] if isinstance(self.conformal, JackknifeCounts) else [*map(len, scores)]  # type: ignore[arg-type]

    def interval(self, candidates: TableLike, confidence: float) -> tuple[int, int]:
        """Lowest and highest count, from what `Calibration.distribution` takes.

        Of few scans, joined with the interval of the calibration itself: wider, and never less often right.
        """
        distribution = self.calibration.distribution(candidates)
        if isinstance(self.conformal, ConformalCounts):
            return self.conformal.interval(distribution, confidence)
        ends = (*self.conformal.interval(candidates, confidence), *distribution.interval(confidence))
        return min(ends), max(ends)

    def promise(self, confidence: float) -> str:
        """What is proven of intervals of this confidence, and how many scans would prove it."""
        return promise_of(self.conformal.proven(confidence), confidence, what=self.what)

    @property
    def what(self) -> str:
        """What intervals are of: scans, or pairs of scans."""
        return "scans" if self.calibration.counted == "lesions" else "pairs"

    def to_dict(self) -> dict[str, Any]:
        """As plain values."""
        kind = "left_out" if isinstance(self.conformal, JackknifeCounts) else "scores"
        return {"calibration": self.calibration.to_dict(), kind: self.conformal.to_dict()}

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> Self:
        """From plain values."""
        few = content.get("left_out")
        scores = ConformalCounts.from_dict(content["scores"]) if few is None else JackknifeCounts.from_dict(few)
        return cls(read_calibration(content["calibration"]), scores)


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
        Guaranteed intervals; an ensemble has none. From 80 patients on, half of the scans fit a calibration of their
        own, the other half its intervals; with fewer, each scan is judged by a calibration of all others.
    reading : mapping of str to object, or None
        How the maps were read that it was fitted on: ``channel``, ``scale`` and ``logits``. None if there were none.
    scans : CalibrationScans or None
        What it remembers of the scans: whether others look like them can then be told.
    lists : CandidateLists or None
        Lists of candidates with a promise, where true lesions are known.
    pool : ReaderPool or None
        What another reader would count, where several have counted the scans.
    """

    calibration: Calibration
    held_out: HeldOut | None = None
    conformal: ConformalFit | None = None
    reading: Mapping[str, Any] | None = None
    scans: CalibrationScans | None = None
    lists: CandidateLists | None = None
    pool: ReaderPool | None = None

    @classmethod
    def fit(
        cls,
        truth: KnownTruth,
        /,
        *,
        protocol: CountingProtocol | None = None,
        seed: int = 0,
        group_edges: Sequence[int] = (),
        reading: Mapping[str, Any] | None = None,
    ) -> Self:
        """Fit on scans with known truth, and test the fit on held-out scans.

        Parameters
        ----------
        truth : KnownTruth
        protocol : CountingProtocol, optional
            What counted as one lesion.
        seed : int, default 0
            Of the folds and halves.
        group_edges : sequence of int, optional
            Of guaranteed intervals: the smallest predicted count of each group but the first, see `ConformalCounts`.
            Default: one group.
        reading : mapping of str to object, optional
            How the maps were read, of which ``channel``, ``scale`` and ``logits`` are kept.
        """
        calibration = fit_calibration(truth, protocol=protocol)
        held = _held_out_counts(truth, calibration, seed)
        held_out = None if held is None else held_out_scores(truth, held, seed)
        intervals = None
        if truth.members is None and len(set(truth.groups)) > 1:

            def refit(rows: Sequence[int], averaged: bool) -> Calibration:
                return fitted_or_none(truth[rows], None, averaged=averaged)

            intervals = conformal_fit(truth, calibration, refit, seed=seed, group_edges=group_edges)
        scans, lists = remembered(truth, held or ()), CandidateLists.fit(truth)
        return cls(calibration, held_out, intervals, kept_reading(reading), scans, lists, pool_of_readers(truth, held))

    @property
    def features(self) -> tuple[str, ...]:
        """The features of candidates that it needs, beside their probabilities."""
        used = (self.calibration, *(() if self.conformal is None else self.conformal.calibrations))
        return tuple(dict.fromkeys(name for one in used for name in one.weights))

    @property
    def fingerprint(self) -> str:
        """A short name that changes with anything that a count depends on."""
        parts: list[Any] = [self.calibration.to_dict()]
        if self.conformal is not None:
            parts += [self.conformal.calibration.to_dict(), self.conformal.conformal.to_dict()]
        return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:12]

    @property
    def known_protocol(self) -> CountingProtocol | None:
        """What counts as one lesion where nobody says it; None if it does not know which maps it was fitted on."""
        return None if self.reading is None else self.calibration.protocol

    def check_reading(self, reading: Mapping[str, Any]) -> None:
        """Raise if maps are read otherwise than those that it was fitted on, where these needed to be told how."""
        for name, known in (self.reading or {}).items():
            if known is not None and reading[name] != known:
                raise CalibrationError(
                    f"The calibration was fitted on maps read with {name} {known}, but these are read with {name} "
                    f"{reading[name]}. Leave {name} out: the calibration knows it. Or calibrate again."
                )

    def check(self, truth: KnownTruth, /, *, seed: int = 0) -> CountCheck:
        """Whether the true counts of ten new scans or more fit it as those of its own scans do.

        Where it has no counted scans of its own, as from a stated mean, they are compared with counts that it gives.
        """
        if self.calibration.counted != "lesions":
            raise CalibrationError("Calibrations of changes cannot be checked yet.")
        distributions, counts = truth.distributions(self.calibration), truth.counts.tolist()
        places = [places_of(distributions, counts, seed=seed + 1 + draw) for draw in range(_N_PLACES)]
        own = self.scans if self.scans and self.scans.pits else CalibrationScans.of((), _UNIFORM)
        return own.check(places, seed=seed)

    def guaranteed(self, candidates: TableLike, confidence: float) -> tuple[int, int] | None:
        """The guaranteed interval, which also holds the median of the calibrated count; None if there is none."""
        if self.conformal is None:
            return None
        low, high = self.conformal.interval(candidates, confidence)
        median = self.calibration.distribution(candidates).median()
        return min(low, median), max(high, median)

    def save(self, path: str | os.PathLike[str], /) -> None:
        """Write it as JSON."""
        Path(path).write_text(self.to_json(), "utf-8")

    @classmethod
    def load(cls, path: str | os.PathLike[str], /) -> Self:
        """Read what `save` wrote."""
        try:
            return cls.from_json(Path(path).read_text("utf-8"))
        except (OSError, UnicodeDecodeError) as error:
            raise CalibrationError(f"The calibration {path} cannot be read: {reason_of(error)}.") from None

    def to_json(self) -> str:
        """As text."""
        content: dict[str, Any] = {
            "format": FORMAT_VERSION,
            "fingerprint": self.fingerprint,
            "calibration": self.calibration.to_dict(),
            "held_out": None if self.held_out is None else self.held_out.to_dict(),
            "conformal": None if self.conformal is None else self.conformal.to_dict(),
            **({} if self.reading is None else {"reading": dict(self.reading)}),
            **({} if self.scans is None else {"scans": self.scans.to_dict()}),
            **({} if self.lists is None else {"lists": self.lists.to_dict()}),
            **({} if self.pool is None else {"pool": self.pool.to_dict()}),
        }
        content = _without_nan(content)
        return (
            json.dumps(content | {_SEAL: _seal(json.dumps(content))}, indent=1, ensure_ascii=False, allow_nan=False)
            + "\n"
        )

    @classmethod
    def from_json(cls, text: str) -> Self:
        """From text."""
        try:
            content = json.loads(text)
            return cls._as_sealed(cls._from_content(content), content, text)
        except CalibrationError:
            raise
        except RecursionError:
            raise CalibrationError("Expected a calibration, but the file is nested too deeply to be one.") from None
        except KeyError as error:
            raise CalibrationError(f"Expected a calibration as lesioncount calibrate writes it: no {error}.") from None
        except (ValueError, TypeError, AttributeError, OverflowError) as error:
            raise CalibrationError(
                f"Expected a calibration as lesioncount calibrate writes it: {reason_of(error)}."
            ) from None

    @classmethod
    def _from_content(cls, content: Any) -> Self:
        if not isinstance(content, dict) or "calibration" not in content:
            raise CalibrationError("Expected a calibration as lesioncount calibrate writes it, but it is not one.")
        if content.get("format") != FORMAT_VERSION:
            given = reprlib.repr(content.get("format"))
            raise CalibrationError(f"Expected a calibration of format {FORMAT_VERSION}, but got {given}.")
        held_out, conformal = content.get("held_out"), content.get("conformal")
        scans, lists, pool = content.get("scans"), content.get("lists"), content.get("pool")
        return cls(
            read_calibration(content["calibration"]),
            None if held_out is None else HeldOut.from_dict(held_out),
            None if conformal is None else ConformalFit.from_dict(conformal),
            _checked_reading(content.get("reading")),
            None if scans is None else CalibrationScans.from_dict(scans),
            None if lists is None else CandidateLists.from_dict(lists),
            None if pool is None else ReaderPool.from_dict(pool),
        )

    @classmethod
    def _as_sealed(cls, fit: Self, content: Mapping[str, Any], text: str) -> Self:
        """All of it if the file is as it was written; of a file that cannot tell, only what it can vouch for."""
        seal, fingerprint = content.get(_SEAL), content.get("fingerprint")
        is_changed = fingerprint not in (None, fit.fingerprint) if seal is None else seal != _seal(text)
        if is_changed:
            raise CalibrationError(
                "This file has been changed since lesioncount wrote it, and what it says of held-out scans, intervals "
                "and lists may no longer be so. Take the file as it was written, or calibrate again."
            )
        if seal is not None:
            return fit
        if fingerprint is not None:  # of an older version: it covers these
            return replace(fit, held_out=None, scans=None, lists=None, pool=None)
        origin = f"a file without a fingerprint ({fit.calibration.origin}), {NOT_CHECKED}"
        return cls(replace(fit.calibration, origin=origin), reading=fit.reading)


def pool_of_readers(truth: KnownTruth, held: Sequence[CountDistribution] | None) -> ReaderPool | None:
    """The pool of scans that several have counted, given their counts after a calibration that does not know them."""
    return None if held is None or truth.readings is None else ReaderPool.fit(held, truth.readings)


def load_calibration(path: str | os.PathLike[str], /) -> CalibrationFit:
    """Read what ``lesioncount calibrate``, ``count --known`` or `CalibrationFit.save` wrote."""
    return CalibrationFit.load(path)


def as_fit(calibration: CalibrationLike | None) -> CalibrationFit | None:
    """A calibration with its evidence, given as such, without evidence, or as the path of its file."""
    if isinstance(calibration, CalibrationFit | None):
        return calibration
    return CalibrationFit(calibration) if isinstance(calibration, Calibration) else load_calibration(calibration)


def kept_reading(reading: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """What a calibration keeps of how maps were read."""
    return None if reading is None else {name: reading[name] for name in _READING}


def _checked_reading(values: Any) -> dict[str, Any] | None:
    if values is None:
        return None
    try:
        return {name: convert(values[name], kind) for name, kind in _READING.items()}
    except (KeyError, TypeError, ValidationError):
        raise CalibrationError(
            f"Expected how maps were read, by {', '.join(_READING)}, but got {reprlib.repr(values)}."
        ) from None


def read_calibration(values: Any) -> Calibration:
    """A calibration from plain values that were read from a file."""
    try:
        return Calibration.from_dict(values)
    except OverflowError:
        raise CalibrationError("Expected a calibration, but some of its numbers have hundreds of digits.") from None


def _held_out_counts(truth: KnownTruth, near: Calibration, seed: int) -> list[CountDistribution] | None:
    """Fit on all folds but one and count that one, in turn; None if there are too few scans to hold any out."""
    calibrated: dict[int, CountDistribution] = {}
    for part in truth.parts(N_FOLDS, seed=seed):
        rest = truth[sorted(set(range(len(truth))) - set(part))]
        if len(rest) < FEWEST_TO_HOLD_OUT or not rest.counts.any():
            return None
        calibration = fitted_or_none(rest, None, near)
        calibrated |= dict(zip(part, truth[part].distributions(calibration), strict=True))
    return [calibrated[row] for row in range(len(truth))]


def remembered(truth: KnownTruth, held_out: Sequence[CountDistribution]) -> CalibrationScans | None:
    """What a calibration remembers of its scans, with the place of each true count in what it would have said."""
    if truth.counted != "lesions":
        return None
    places = places_of(held_out, truth.counts.tolist(), seed=0) if held_out else ()
    return CalibrationScans.of(truth.candidates, places)


def held_out_scores(truth: KnownTruth, calibrated: Sequence[CountDistribution], seed: int) -> HeldOut:
    """Scores of scans as they are, and of counts that were calibrated without them."""
    methods = {
        "before": Predictions.of_distributions(truth.distributions(truth.as_it_is), truth.counts),
        "after": Predictions.of_distributions(calibrated, truth.counts),
    }
    scores, differences = score_all(methods, groups=truth.groups, seed=seed)
    picked = [{name: of[name] for name in _REPORTED} for of in (*scores.values(), differences["after", "before"])]
    return HeldOut(len(truth), N_FOLDS, *picked)


def conformal_fit(
    truth: KnownTruth,
    calibration: Calibration,
    refit: Callable[[Sequence[int], bool], Calibration],
    *,
    seed: int,
    group_edges: Sequence[int] = (),
) -> ConformalFit:
    """Half of the scans for a calibration, half for its intervals; if patients are few, all for both.

    Intervals use one scan per patient: several scans of one patient are not exchangeable with that of a new one.

    Parameters
    ----------
    truth : KnownTruth
    calibration : Calibration
        Of all scans.
    refit : callable
        Gives a calibration of some of the scans, by their rows, fitted anew: were it begun near that of all scans, it
        would know something of those that are left out.
    seed, group_edges
        As in `CalibrationFit.fit`.
    """
    n_patients = len(set(truth.groups))
    if n_patients < PATIENTS_FOR_HALVES:
        if group_edges:
            raise CalibrationError(
                f"Intervals by group need the scans of {PATIENTS_FOR_HALVES} patients, but there are {n_patients}. "
                "Leave the groups out."
            )
        return ConformalFit(calibration, _left_out(truth, refit, seed))
    fitted, judged = truth.parts(2, seed=seed + 1)
    calibration, scored = replace(refit(fitted, True), protocol=calibration.protocol), truth[judged]
    scored = scored[scored.one_per_group(seed=seed)]
    intervals = ConformalCounts.fit(scored.distributions(calibration), scored.counts, group_edges=group_edges)
    return ConformalFit(calibration, intervals)


def _left_out(truth: KnownTruth, refit: Callable[[Sequence[int], bool], Calibration], seed: int) -> JackknifeCounts:
    """A calibration without each patient, and how far from it one scan of this patient lies."""
    calibrations, scores = [], []
    for row in truth.one_per_group(seed=seed):
        others = [other for other in range(len(truth)) if truth.groups[other] != truth.groups[row]]
        calibrations.append(replace(refit(others, False), origin=""))
        scores.append(score_of(calibrations[-1].distribution(truth.candidates[row]), int(truth.counts[row])))
    return JackknifeCounts(tuple(calibrations), tuple(scores))


def fitted_or_none(
    truth: KnownTruth, protocol: CountingProtocol | None, near: Calibration | None = None, *, averaged: bool = True
) -> Calibration:
    """A calibration, however few scans there are; where there is none, what a user would be left with."""
    try:
        return best_calibration(truth, protocol=protocol, near=near, averaged=averaged)
    except CalibrationError:  # at a bound
        return replace(truth.as_it_is, protocol=protocol)


def _seal(text: str) -> str:
    """The SHA-256 of what a file says, however its numbers, letters and lines are written."""
    content = json.loads(text, parse_int=_number, parse_float=_number)
    said = {name: value for name, value in content.items() if name not in (_SEAL, "checksum")}
    return hashlib.sha256(json.dumps(said, sort_keys=True).encode()).hexdigest()


def _number(text: str) -> float:
    return float(text) + 0.0  # -0 is 0, as other programs write it


def _without_nan(value: Any) -> Any:
    """With null for NaN and infinity, which JSON does not have."""
    if isinstance(value, dict):
        return {key: _without_nan(item) for key, item in value.items()}
    return None if isinstance(value, float) and not math.isfinite(value) else value
