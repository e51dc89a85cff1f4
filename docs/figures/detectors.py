"""Draws detectors.svg: ``python docs/figures/detectors.py FOLDER``, as ``benchmarks/detector_table.py`` takes it."""

import sys
from pathlib import Path

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))
from detector_table import SEED, merged, read_readers

import lesioncount as lc
from lesioncount.trust.fitting import KnownTruth, fit_calibration

EVERY = 24  # of scans by what readers counted: as many as fit in a picture


def main(folder: Path) -> None:
    """Draw scans that the calibration has not seen."""
    found = lc.read_candidates(folder / "detector_candidates.tsv.gz")
    readers = {scan: counts for scan, counts in read_readers(folder / "reader_counts.tsv.gz").items() if scan in found}
    truth, tables = np.array(list(readers.values())), merged([found[scan] for scan in readers], 5.0)
    order = np.lexsort((truth.max(axis=1), truth.mean(axis=1)))
    shown = order[EVERY // 2 :: EVERY]
    others = np.setdiff1d(order, shown)
    drawn = truth[np.arange(len(truth)), np.random.default_rng(SEED).integers(0, 4, len(truth))]
    fitted = fit_calibration(KnownTruth.of([tables[i] for i in others], drawn[others]))
    mpl.rcParams.update({"svg.fonttype": "none", "svg.hashsalt": "lesioncount", "font.family": "sans-serif"})
    figure, axes = plt.subplots(figsize=(7.2, 3.4), layout="constrained")
    for place, scan in enumerate(shown):
        low, high = fitted.distribution(tables[scan]).interval(0.9)
        axes.plot([place, place], [low, high], color="#d95f02", linewidth=6, alpha=0.45, solid_capstyle="butt")
        axes.plot(place, (tables[scan].peak > 0.5).sum(), "x", color="#777777")
        for count, n in zip(*np.unique(truth[scan], return_counts=True), strict=True):
            axes.plot(place, count, "o", color="#1b1b1b", markersize=2 + 1.5 * n)
    axes.plot([], [], "x", color="#777777", label="scores above 0.5")
    axes.plot([], [], color="#d95f02", linewidth=6, alpha=0.45, label="calibrated count, 90 % interval")
    axes.plot([], [], "o", color="#1b1b1b", label="four readers (larger: several agree)")
    axes.set(xlabel="chest CTs that the calibration has not seen, by what readers counted", ylabel="nodules", xticks=[])
    axes.set_yscale("symlog", linthresh=10)
    axes.set_yticks([0, 2, 4, 6, 8, 10, 20, 50], ["0", "2", "4", "6", "8", "10", "20", "50"])
    axes.spines[["top", "right"]].set_visible(False)
    figure.legend(loc="outside upper center", ncols=3, frameon=False, fontsize="small")
    figure.savefig(Path(__file__).with_name("detectors.svg"), metadata={"Date": None})


main(Path(sys.argv[1]))
