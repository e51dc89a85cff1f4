"""Results and truth → how good the counts are: scores with intervals, beside the usual ways to count."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lesioncount.assess.beside_truth import Compared, TruthOptions, compare
from lesioncount.assess.evaluation.compared_methods import ThresholdCurve, methods_of
from lesioncount.assess.evaluation.evaluation import Evaluation, ScanRow, TruthSource, check_folder, write_evaluation
from lesioncount.assess.evaluation.lesion_level import LesionLevel, match_rows
from lesioncount.assess.evaluation.lesion_sizes import SizeEdges
from lesioncount.assess.evaluation.method import EvaluatedMethod
from lesioncount.assess.evaluation.notes import notes_on, what_to_try
from lesioncount.errors import CalibrationError, MapFileError
from lesioncount.folder.output import OutputFolder
from lesioncount.results.results import read_countable
from lesioncount.trust.candidate_table import Counted
from lesioncount.trust.fitting import KnownTruth
from lesioncount.trust.scores.agreement import Agreement, BlandAltman, Tercile, terciles
from lesioncount.trust.scores.bootstrap import score_all
from lesioncount.trust.scores.predictions import Predictions
from lesioncount.trust.scores.readers import BetweenReaders

_OURS, _BASELINES = ("calibrated", "raw"), ("cc", "cc_tuned", "all_zero")
_PAIRS = (_OURS, *((ours, baseline) for ours in _OURS for baseline in _BASELINES))


def evaluate(
    results: Path,
    out: Path,
    truth: TruthOptions,
    /,
    *,
    of: Counted | None = None,
    bins: int | None = None,
    counts_only: bool = False,
    size_edges: SizeEdges | None = None,
    jobs: int = 1,
    seed: int = 0,
    overwrite: bool = False,
) -> Evaluation:
    """Compare a folder of results with the truth, and write ``evaluation.json``, ``scores.tsv`` and ``scans.tsv``.

    Parameters
    ----------
    results : Path
        Folder that `count_batch` or `compare_batch` wrote.
    out : Path
        Folder for the evaluation; made if it is not there.
    truth : TruthOptions
        Masks, or a table of counts.
    of : {"new", "gone", "persisting"}, optional
        Of a folder that `compare_batch` wrote: which changes. Default: new ones.
    bins : int, optional
        Score classes 0, 1, … ``bins`` or more, as the paper does with 4. Default: score counts as what they are.
    counts_only : bool, default False
        Compare counts only. Otherwise the maps are read again, to compare single lesions and to tune the threshold of
        the connected-component count.
    size_edges : SizeEdges, optional
        Ranges of lesion sizes for which sensitivity is given. Default: thirds.
    jobs : int, default 1
        Number of processes that read maps.
    seed : int, default 0
        Of resamples and folds.
    overwrite : bool, default False
        Replace an evaluation that is there.

    Returns
    -------
    Evaluation
        The content of ``evaluation.json``.
    """
    folder = OutputFolder(out)
    check_folder(folder, overwrite=overwrite)
    compared = compare(read_countable(results, of), truth, read_maps=not counts_only, jobs=jobs)
    by_reader = compared.by_reader
    methods = methods_of(by_reader, seed, bins)
    ours = methods.get("calibrated", methods["raw"])
    shares = [1 / len(truth.readings) for truth in compared.truths for _ in truth.readings]
    scores, differences = score_all(methods, groups=by_reader.groups, shares=shares, seed=seed)
    advice = () if counts_only else what_to_try(compared, methods, truth, jobs=jobs, seed=seed)
    kind: dict[str, Any] = {"counted": compared.results.of, "has_detections": compared.results.protocol.has_detections}
    evaluation = Evaluation(
        results=str(results),
        truth=TruthSource(truth.kind, truth.where),
        n_scans=len(compared.truths),
        n_groups=len(set(compared.groups)),
        group_by=truth.group_by,
        protocol=compared.results.protocol,
        seed=seed,
        methods={key: EvaluatedMethod.of(key, of, scores[key], seed=seed, **kind) for key, of in methods.items()},
        differences={" - ".join(pair): {**differences[pair]} for pair in _PAIRS if pair in differences},
        agreement=agreement_of(by_reader, ours, seed=seed),
        guaranteed=guaranteed_of(by_reader, ours, seed=seed),
        lesions=LesionLevel.of(compared, size_edges, seed=seed),
        threshold_curve=ThresholdCurve.of(by_reader, bins),
        readers=_between_readers(compared, ours, seed=seed),
        notes=(*notes_on(compared, methods["raw"]), *advice),
        scans=_scans(compared, ours),
        bins=bins,
        of=compared.results.of,
    )
    write_evaluation(evaluation, folder, matches=tuple(match_rows(compared)))
    return evaluation


def _first_rows(compared: Compared) -> NDArray[np.intp]:
    """Where the rows of each scan begin, of which there is one for each reader."""
    return np.cumsum([0, *(len(truth.readings) for truth in compared.truths[:-1])])[: len(compared.truths)]


def _between_readers(compared: Compared, predictions: Predictions, *, seed: int) -> BetweenReaders | None:
    """How far the median is from readers, beside how far they are from each other."""
    medians, readings = predictions.median[_first_rows(compared)], [truth.readings for truth in compared.truths]
    return BetweenReaders.of(medians, readings, compared.groups, seed=seed)


def _scans(compared: Compared, predictions: Predictions) -> tuple[ScanRow, ...]:
    """A row per scan; scores are means over its readers."""
    rows = _first_rows(compared).tolist()
    entropy = predictions.entropy if predictions.entropy is not None else np.zeros(len(predictions.truth))
    return tuple(
        ScanRow(
            scan=scan.shown,
            group=group,
            truth=truth.count,
            predicted=int(predictions.predicted[i]),
            median=int(predictions.median[i]),
            expected=float(predictions.expected[i]),
            interval90_low=int(predictions.low[i]),
            interval90_high=int(predictions.high[i]),
            p_truth=float(predictions.p_truth[i : i + len(truth.readings)].mean()),
            rps=float(predictions.rps[i : i + len(truth.readings)].mean()),
            entropy=float(entropy[i]),
            cc=scan.counted.candidates.cc_count,
            readers=" ".join(map(str, truth.readers)),
        )
        for i, scan, truth, group in zip(rows, compared.scans, compared.truths, compared.groups, strict=True)
    )


def known_truth(
    results: Path,
    truth: TruthOptions,
    /,
    *,
    of: Counted | None = None,
    from_lesions: bool = False,
    features: Sequence[str] = (),
    jobs: int = 1,
) -> tuple[KnownTruth, Compared]:
    """What a calibration is fitted on: counts or, with ``from_lesions``, matched lesions, for which maps are read."""
    if from_lesions and len(truth.masks) > 1:
        raise CalibrationError("To calibrate from lesions, pass the masks of one reader: counts take those of several.")
    if from_lesions and not truth.masks and truth.reviews is None:
        raise CalibrationError(
            "To calibrate from lesions, masks are needed (--truth), or reviews; a table of counts is not enough."
        )
    if from_lesions and truth.table is not None:
        raise CalibrationError(
            "To calibrate from lesions, leave the table out (--truth-counts): lesions and counts must be of the same "
            "masks."
        )
    counted = read_countable(results, of, features=features)
    if from_lesions and counted.of != "lesions":
        raise CalibrationError("Changes are calibrated from counts: leave --fit-from lesions out.")
    if counted.has_members and from_lesions:
        raise MapFileError(
            f"{results} holds the counts of an ensemble, which is calibrated from counts: leave --fit-from lesions out."
        )
    if from_lesions and truth.masks and counted.protocol.has_detections:
        raise CalibrationError(
            "Detections have places and no voxels, so that masks cannot say which of them is which lesion. Decide on "
            "them (lesioncount review, then --reviews in place of --truth), or say it from Python: "
            "KnownTruth.of(candidates, counts, owns=...)."
        )
    compared = compare(counted, truth, read_maps=from_lesions and truth.reviews is None, jobs=jobs)
    owns = [match.owns for truth in compared.truths for match in truth.matches.values()]
    return (
        KnownTruth.of(
            [scan.tables if counted.has_members else scan.tables[0] for scan in compared.scans],
            [t.count for t in compared.truths],
            owns=owns if from_lesions else None,
            groups=compared.groups,
            counted=counted.of,
            coupling=counted.as_it_is.coupling,
            features=features,
        ).read_by([t.readings for t in compared.truths]),
        compared,
    )


def agreement_of(compared: Compared, predictions: Predictions, *, seed: int) -> Agreement:
    """The median beside the truth, and scores by thirds of the truth."""
    truth, groups = predictions.truth, compared.groups
    means = predictions.means
    values = [means[name] for name in ("mae", "bias", "coverage90", "width90")]
    return Agreement(
        BlandAltman.of(predictions.median, truth, groups, seed=seed), terciles(truth, values, groups, seed=seed)
    )


def guaranteed_of(compared: Compared, predictions: Predictions, *, seed: int) -> tuple[Tercile, ...]:
    """How often guaranteed intervals hold the truth and how wide they are, by thirds of the predicted median."""
    intervals = [scan.counted.guaranteed for scan in compared.scans]
    has_one = np.array([interval is not None for interval in intervals], dtype=bool)
    if not has_one.any():
        return ()
    low, high = np.array([interval for interval in intervals if interval is not None]).T
    truth = predictions.truth[has_one]
    inside = (low <= truth) & (truth <= high)
    values = [predictions.means["mae"][has_one], predictions.means["bias"][has_one], inside, high - low]
    groups = [group for group, is_there in zip(compared.groups, has_one, strict=True) if is_there]
    return terciles(predictions.median[has_one], values, groups, seed=seed)
