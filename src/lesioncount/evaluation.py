"""Results and truth → how good the counts are: scores with intervals, beside what everyone does today."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lesioncount.calibration import Calibration
from lesioncount.errors import CalibrationError, MapFileError
from lesioncount.fitting import KnownTruth
from lesioncount.io.atomic import write_text
from lesioncount.io.comparison import THRESHOLDS, Compared, TruthOptions, compare
from lesioncount.io.records import to_json
from lesioncount.io.results import read_results
from lesioncount.io.tables import to_tsv
from lesioncount.scores.bootstrap import CONFIDENCE, N_RESAMPLES, interval_of, resampled_weights
from lesioncount.scores.classification import confusion, ratio
from lesioncount.scores.lesions import OVERLAP_RULE
from lesioncount.scores.proper import NLL_FLOOR
from lesioncount.scores.reliability import Reliability, reliability
from lesioncount.scores.selective import certainty_curve
from lesioncount.scores.summary import MAX_COUNT, Predictions, Score, score_all
from lesioncount.version import __version__

FORMAT_VERSION = 1
_ABOUT = {
    "raw": ("lesioncount", "the distribution of the count, as the maps have it"),
    "calibrated": ("calibrated lesioncount", "the same after the calibration that the scans were counted with"),
    "cc": ("CC above 0.5", "connected components above 0.5: what everyone does today"),
    "cc_tuned": ("CC, tuned", "connected components above the threshold that is best on the other folds"),
    "all_zero": ("all zero", "no lesion anywhere"),
}
_OURS, _BASELINES = ("calibrated", "raw"), ("cc", "cc_tuned", "all_zero")
_PAIRS = (_OURS, *((ours, baseline) for ours in _OURS for baseline in _BASELINES))
_N_FOLDS = 5

# When so many of the candidates are within this of 0 or 1, the map says that it is sure of nearly everything.
_POLARISED_SHARE, _NEAR_CERTAIN = 0.8, 0.02


def evaluate(
    results: Path,
    out: Path,
    truth: TruthOptions,
    /,
    *,
    counts_only: bool = False,
    jobs: int = 1,
    seed: int = 0,
    overwrite: bool = False,
) -> dict[str, Any]:
    """Compare a folder of results with the truth, and write ``evaluation.json``, ``scores.tsv`` and ``scans.tsv``.

    Parameters
    ----------
    results : Path
        Folder that `count_batch` has written.
    out : Path
        Folder of the evaluation; made if it is not there.
    truth : TruthOptions
        Masks, or a table of counts.
    counts_only : bool, default False
        Compare counts only. Otherwise the maps are read again, to compare lesion with lesion and to tune the
        threshold of the connected-component count.
    jobs : int, default 1
        Number of processes that read maps.
    seed : int, default 0
        Of resamples and folds.
    overwrite : bool, default False
        Write over an evaluation that is there.

    Returns
    -------
    dict
        What ``evaluation.json`` holds.
    """
    if (out / "evaluation.json").exists() and not overwrite:
        raise MapFileError(f"{out} holds an evaluation. Choose another folder, or write over it (--overwrite).")
    counted = read_results(results)
    compared = compare(counted, truth, read_maps=not counts_only, jobs=jobs)
    methods = _methods(compared, seed)
    scores, differences = score_all(methods, groups=compared.groups, seed=seed)
    content = {
        "format": FORMAT_VERSION,
        "version": __version__,
        "results": str(results),
        "truth": {"kind": "masks" if truth.table is None else "counts", "path": str(truth.masks or truth.table)},
        "n_scans": len(compared.truths),
        "n_groups": len(set(compared.groups)),
        "group_by": truth.group_by,
        "protocol": counted.protocol.to_dict(),
        "max_count": MAX_COUNT,
        "n_resamples": N_RESAMPLES,
        "seed": seed,
        "confidence": CONFIDENCE,
        "nll_floor": NLL_FLOOR,
        "methods": {name: _method_content(name, methods[name], scores[name]) for name in methods},
        "differences": {
            f"{a} - {b}": {name: asdict(score) for name, score in differences[a, b].items()}
            for a, b in _PAIRS
            if a in methods and b in methods
        },
        "lesions": _lesion_level(compared, seed),
        "threshold_curve": _threshold_curve(compared),
        "notes": _notes(compared, methods),
        "scans": _scan_rows(compared, methods),
    }
    _write(out, content)
    return content


def known_truth(
    results: Path, truth: TruthOptions, /, *, from_lesions: bool = False, jobs: int = 1
) -> tuple[KnownTruth, Compared]:
    """What a calibration is fitted on: counts, or with ``from_lesions`` matched lesions, for which maps are read."""
    if from_lesions and truth.masks is None:
        raise CalibrationError("To calibrate from lesions, masks are needed (--truth), not a table of counts.")
    counted = read_results(results)
    if counted.has_members:
        raise MapFileError(
            f"{results} holds counts of an ensemble. Calibrate the counts of a single member, and count the ensemble "
            "with that calibration."
        )
    compared = compare(counted, truth, read_maps=from_lesions, jobs=jobs)
    owns = [t.match.owns for t in compared.truths if t.match is not None]
    return (
        KnownTruth.of(
            [scan.existence[0] for scan in compared.results.scans],
            [t.count for t in compared.truths],
            owns=owns if from_lesions else None,
            groups=compared.groups,
        ),
        compared,
    )


def _methods(compared: Compared, seed: int) -> dict[str, Predictions]:
    scans, truth = compared.results.scans, _counts(compared)
    raw = Predictions.of_distributions([scan.distribution(Calibration()) for scan in scans], truth)
    methods = {"raw": raw}
    applied = compared.results.calibration
    if applied is not None:
        methods["calibrated"] = Predictions.of_distributions([scan.distribution(applied) for scan in scans], truth)
    methods["cc"] = Predictions.of_counts([scan.cc_count for scan in scans], truth)
    table = _cc_table(compared)
    if table is not None and len(set(compared.groups)) >= _N_FOLDS:
        methods["cc_tuned"] = Predictions.of_counts(_tuned(table, truth, compared.groups, seed), truth)
    methods["all_zero"] = Predictions.of_counts(np.zeros(len(truth), dtype=np.int64), truth)
    return methods


def _tuned(table: NDArray[np.int64], truth: NDArray[np.int64], groups: Sequence[str], seed: int) -> NDArray[np.int64]:
    """The connected-component count of each scan, at the threshold with the best accuracy on the other folds."""
    rows = KnownTruth.of([np.empty(0)] * len(truth), truth, groups=groups).parts(_N_FOLDS, seed=seed)
    right = np.minimum(table, MAX_COUNT) == np.minimum(truth, MAX_COUNT)[:, None]
    picked = np.zeros(len(truth), dtype=np.int64)
    for part in rows:
        others = np.delete(right, part, axis=0)
        picked[part] = table[part, int(others.mean(axis=0).argmax())]
    return picked


def _counts(compared: Compared) -> NDArray[np.int64]:
    return np.array([truth.count for truth in compared.truths], dtype=np.int64)


def _cc_table(compared: Compared) -> NDArray[np.int64] | None:
    """Connected components of each scan at each threshold, where maps were read."""
    rows = [truth.cc_counts for truth in compared.truths]
    return None if None in rows else np.array(rows, dtype=np.int64)


def _method_content(name: str, method: Predictions, scores: dict[str, Score]) -> dict[str, Any]:
    certainty = None
    if method.entropy is not None:
        shares, accuracy = certainty_curve(method.entropy, method.hits)
        certainty = {"share": shares.tolist(), "accuracy": accuracy.tolist()}
    return {
        "name": _ABOUT[name][0],
        "about": _ABOUT[name][1],
        "scores": {key: asdict(score) for key, score in scores.items()},
        "confusion": method.confusion.matrix.tolist(),
        "reliability": _reliability_content(method.reliability),
        "certainty": certainty,
    }


def _reliability_content(of: Reliability) -> dict[str, Any]:
    return {"n": of.n.tolist(), "confidence": of.confidence.tolist(), "hit_rate": of.hit_rate.tolist()}


def _lesion_level(compared: Compared, seed: int) -> dict[str, Any] | None:
    matches = [truth.match for truth in compared.truths if truth.match is not None]
    if len(matches) < len(compared.truths):
        return None
    existence = [scan.existence[0] for scan in compared.results.scans]
    strong = [p > 0.5 for p in existence]
    n = np.array([match.n_lesions for match in matches], dtype=np.float64)
    columns = {
        "sensitivity": (np.array([m.n_lesions - m.n_missed for m in matches]), n),
        "false_positives_per_scan": (np.array([(~m.touches).sum() for m in matches]), np.ones(len(n))),
        "sensitivity_above_half": (np.array([(m.owns & s).sum() for m, s in zip(matches, strong, strict=True)]), n),
        "false_positives_per_scan_above_half": (
            np.array([(~m.touches & s).sum() for m, s in zip(matches, strong, strict=True)]),
            np.ones(len(n)),
        ),
    }
    all_touches = np.concatenate([match.touches for match in matches])
    return {
        "rule": OVERLAP_RULE,
        "n_lesions": int(n.sum()),
        "n_candidates": len(all_touches),
        "n_hit": int(all_touches.sum()),
        "n_missed": sum(match.n_missed for match in matches),
        "n_split": sum(match.n_split for match in matches),
        "n_merged": sum(match.n_merged for match in matches),
        **{name: asdict(_ratio_score(*parts, compared.groups, seed)) for name, parts in columns.items()},
        "reliability": _reliability_content(reliability(np.concatenate(existence), all_touches)),
    }


def _ratio_score(part: NDArray[Any], whole: NDArray[Any], groups: Sequence[str], seed: int) -> Score:
    drawn = [ratio(weights @ part, weights @ whole) for weights in resampled_weights(groups, seed=seed)]
    return Score(float(ratio(part.sum(), whole.sum())), *interval_of(np.concatenate(drawn)))


def _threshold_curve(compared: Compared) -> dict[str, Any] | None:
    table, truth = _cc_table(compared), _counts(compared)
    if table is None:
        return None
    at = [confusion(column, truth, max_count=MAX_COUNT) for column in table.T]
    return {
        "threshold": list(THRESHOLDS),
        "cc_accuracy": [float(c.accuracy) for c in at],
        "cc_f1": [float(c.f1) for c in at],
    }


def _notes(compared: Compared, methods: dict[str, Predictions]) -> list[str]:
    """What a reader must know, in plain sentences."""
    notes = []
    if compared.results.n_failed:
        notes.append(f"{compared.results.n_failed} scans could not be counted and are not part of this.")
    if compared.n_without_truth:
        notes.append(f"{compared.n_without_truth} scans have no truth and are not part of this.")
    candidates = np.concatenate([p for scan in compared.results.scans for p in scan.existence])
    sure = float(np.mean((candidates < _NEAR_CERTAIN) | (candidates > 1 - _NEAR_CERTAIN))) if len(candidates) else 0.0
    if sure > _POLARISED_SHARE:
        notes.append(
            f"The maps are polarised: {sure:.0%} of the candidates have a probability within {_NEAR_CERTAIN:g} of 0 or "
            "1. The distributions are narrower than the errors; lesioncount calibrate can widen them."
        )
    without_mass = float(methods["raw"].means["zero_mass"].mean())
    if without_mass > 0:
        notes.append(
            f"In {without_mass:.1%} of the scans the true count has probability 0: there are more lesions than "
            f"candidates, or fewer than candidates with probability 1. The negative log-likelihood counts them with a "
            f"floor of {NLL_FLOOR:g}. A calibration allows for missed lesions, and leaves nothing certain."
        )
    held = [
        scan.conformal[0] <= truth.count <= scan.conformal[1]
        for scan, truth in zip(compared.results.scans, compared.truths, strict=True)
        if scan.conformal is not None
    ]
    if held:
        notes.append(
            f"The guaranteed 90 % intervals hold the truth in {sum(held)} of {len(held)} scans ({np.mean(held):.0%})."
        )
    if _cc_table(compared) is None:
        why = (
            "Ensembles are compared by their counts only" if compared.results.has_members else "The maps were not read"
        )
        notes.append(f"{why}: lesions are not compared, and the threshold of CC is not tuned.")
    if len(compared.truths) < 2 * _N_FOLDS:
        notes.append(f"There are only {len(compared.truths)} scans: intervals from so few are rough.")
    return notes


def _scan_rows(compared: Compared, methods: dict[str, Predictions]) -> list[dict[str, Any]]:
    best = methods.get("calibrated", methods["raw"])
    entropy = best.entropy if best.entropy is not None else np.zeros(len(best.truth))
    return [
        {
            "scan": scan.name,
            "group": compared.groups[i],
            "truth": int(best.truth[i]),
            "predicted": int(best.predicted[i]),
            "expected": float(best.expected[i]),
            "interval90_low": int(best.low[i]),
            "interval90_high": int(best.high[i]),
            "p_truth": float(best.p_truth[i]),
            "rps": float(best.means["rps"][i]),
            "entropy": float(entropy[i]),
            "cc": scan.cc_count,
        }
        for i, scan in enumerate(compared.results.scans)
    ]


def _write(out: Path, content: dict[str, Any]) -> None:
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise MapFileError(f"The folder {out} cannot be used: {error.strerror}.") from None
    write_text(out / "evaluation.json", to_json(content))
    rows = [
        {"method": method["name"], "score": name, **score}
        for method in content["methods"].values()
        for name, score in method["scores"].items()
    ]
    write_text(out / "scores.tsv", to_tsv(("method", "score", "estimate", "low", "high"), rows))
    write_text(out / "scans.tsv", to_tsv(tuple(content["scans"][0]), content["scans"]))
