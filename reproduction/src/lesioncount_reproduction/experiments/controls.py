"""What a reviewer would ask for besides the paper's comparison: every way to count from the same maps."""

from __future__ import annotations

from lesioncount_reproduction.experiments.arms import SEGMENTATION
from lesioncount_reproduction.experiments.estimates import Resampling, estimate_of
from lesioncount_reproduction.experiments.numerals import written
from lesioncount_reproduction.experiments.result import Column, Table
from lesioncount_reproduction.experiments.study import Study
from lesioncount_reproduction.experiments.ways_to_count import NAMES, n_unfitted, post_hoc, segmented

_COLUMNS = {
    "accuracy": Column("accuracy, %", "percent"),
    "f1": Column("F1, %", "percent"),
    "rps": Column("RPS", "score"),
    "nll": Column("NLL", "score"),
    "zero_mass": Column("truth ruled out, %", "percent"),
    "ece": Column("count ECE", "score"),
    "coverage90": Column("in 90 % interval, %", "percent"),
}


def controls_table(study: Study, resampling: Resampling) -> Table:
    """Accuracy, proper scores and calibration of every way to count from maps of segmentation-only networks."""
    rows = {NAMES[name]: resampling.samples(seeds) for name, seeds in post_hoc(study).items()}
    false = resampling.samples(segmented(study, SEGMENTATION))
    mean, above = (estimate_of(false[name]) for name in ("false_positives", "false_positives_above_half"))
    note = (
        "All methods count from the same maps. RPS, the ranked probability score, is the headline: lower is better, "
        "and it is defined even where a method gives the truth a probability of 0. NLL uses probabilities of at least "
        "1e-6. The columns on truths that are ruled out and on intervals refer to exact counts, all others to the "
        f"classes 0, 1, 2, 3, and 4 or more. False positives per scan: {written(mean, 'number')} among all "
        f"candidates, {written(above, 'number')} among those above 0.5."
    )
    if unfitted := n_unfitted(study):
        note += (
            f" For {unfitted} of the networks there were too few validation scans to fit a calibration; none was used."
        )
    return Table.of_scores("controls", "Ways to count from one map", _COLUMNS, rows, note)
