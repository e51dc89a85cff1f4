"""Results and truth → how good the counts are: scores with intervals, beside what everyone does today."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from lesioncount.errors import CalibrationError, MapFileError
from lesioncount.files.atomic import write_text
from lesioncount.runs.comparison import Compared, TruthOptions, compare
from lesioncount.runs.evaluation.compared_methods import methods_of
from lesioncount.runs.evaluation.content import method_content, notes_on, scan_rows, threshold_curve
from lesioncount.runs.evaluation.lesion_level import lesion_level
from lesioncount.runs.plain import to_json
from lesioncount.runs.results import read_counted
from lesioncount.runs.tables import to_tsv
from lesioncount.trust.fitting import KnownTruth
from lesioncount.trust.scores.bootstrap import CONFIDENCE, N_RESAMPLES
from lesioncount.trust.scores.proper import NLL_FLOOR
from lesioncount.trust.scores.summary import MAX_COUNT, score_all
from lesioncount.version import __version__

FORMAT_VERSION = 1
_OURS, _BASELINES = ("calibrated", "raw"), ("cc", "cc_tuned", "all_zero")
_PAIRS = (_OURS, *((ours, baseline) for ours in _OURS for baseline in _BASELINES))


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
    counted = read_counted(results)
    compared = compare(counted, truth, read_maps=not counts_only, jobs=jobs)
    methods = methods_of(compared, seed)
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
        "methods": {name: method_content(name, methods[name], scores[name]) for name in methods},
        "differences": {
            f"{a} - {b}": {name: score.to_dict() for name, score in differences[a, b].items()}
            for a, b in _PAIRS
            if a in methods and b in methods
        },
        "lesions": lesion_level(compared, seed),
        "threshold_curve": threshold_curve(compared),
        "notes": notes_on(compared, methods),
        "scans": scan_rows(compared, methods),
    }
    _write(out, content)
    return content


def known_truth(
    results: Path, truth: TruthOptions, /, *, from_lesions: bool = False, jobs: int = 1
) -> tuple[KnownTruth, Compared]:
    """What a calibration is fitted on: counts, or with ``from_lesions`` matched lesions, for which maps are read."""
    if from_lesions and truth.masks is None:
        raise CalibrationError("To calibrate from lesions, masks are needed (--truth), not a table of counts.")
    counted = read_counted(results)
    if counted.has_members:
        raise MapFileError(
            f"{results} holds counts of an ensemble. Calibrate the counts of a single member, and count the ensemble "
            "with that calibration."
        )
    compared = compare(counted, truth, read_maps=from_lesions, jobs=jobs)
    owns = [t.match.owns for t in compared.truths if t.match is not None]
    return (
        KnownTruth.of(
            [scan.existence[0] for scan in compared.scans],
            [t.count for t in compared.truths],
            owns=owns if from_lesions else None,
            groups=compared.groups,
        ),
        compared,
    )


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
