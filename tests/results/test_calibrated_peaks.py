"""Peaks are calibrated by their heights: f(peak) - f(saddle), in records, tables, totals and evaluations."""

import csv
import json

import numpy as np
import pytest

import lesioncount as lc
from lesioncount.cli import main
from lesioncount.results.results import read_results
from lesioncount.trust.fitting import CalibrationFit


def touching(rng):
    """Two lesions that touch: 0.9 and 0.8, with 0.5 between them; and noise that differs from map to map."""
    probabilities = np.zeros((12, 12), np.float32)
    probabilities[3, 2:9] = [0.3, 0.9, 0.6, 0.5, 0.6, 0.8, 0.3]
    return probabilities + rng.random((12, 12)).astype(np.float32) * 0.01


@pytest.fixture
def maps(tmp_path, rng):
    (tmp_path / "maps").mkdir()
    for i in range(30):
        np.save(tmp_path / "maps" / f"s{i:02}.npy", touching(rng))
    (tmp_path / "truth.tsv").write_text("scan\tcount\n" + "".join(f"s{i:02}\t2\n" for i in range(30)))
    return tmp_path / "maps"


def test_the_record_corrects_peak_and_saddle(maps, tmp_path):
    calibration = lc.Calibration.for_positive_weight(3)
    CalibrationFit(calibration).save(tmp_path / "cal.json")
    options = ["--protocol", "peaks", "--calibration", str(tmp_path / "cal.json"), "--quiet"]
    assert main(["count", str(maps / "s00.npy"), "-o", str(tmp_path / "out"), *options]) == 0
    lesions = json.loads((tmp_path / "out" / "s00.json").read_text())["lesions"]
    for row in lesions:
        saddle = calibration.existence([row["saddle_probability"]])[0] if row["saddle_probability"] > 0 else 0
        expected = calibration.existence([row["peak_probability"]])[0] - saddle
        assert row["existence_calibrated"] == pytest.approx(expected)
    results = read_results(tmp_path / "out")
    assert results.total(calibration).mean() == pytest.approx(sum(row["existence_calibrated"] for row in lesions))
    with (tmp_path / "out" / "counts.tsv").open() as table:
        (row,) = csv.DictReader(table, delimiter="\t")
    assert float(row["count_mean_calibrated"]) == pytest.approx(results.total(calibration).mean(), rel=1e-4)


def test_a_calibration_is_fitted_to_peaks_and_saddles(maps, tmp_path):
    """Each map has two lesions where the saddle takes from one: fitted, the count comes to two."""
    count = ["--protocol", "peaks", "--quiet"]
    truth = ["--truth-counts", str(tmp_path / "truth.tsv"), "--quiet"]
    assert main(["count", str(maps), "-o", str(tmp_path / "raw"), *count]) == 0
    assert main(["calibrate", str(tmp_path / "raw"), *truth, "-o", str(tmp_path / "cal.json")]) == 0
    fit = CalibrationFit.load(tmp_path / "cal.json")
    assert fit.calibration.protocol.has_peaks
    raw = [scan.distribution(lc.Calibration()).mean() for scan in read_results(tmp_path / "raw").counted]
    fitted = [scan.distribution(fit.calibration).mean() for scan in read_results(tmp_path / "raw").counted]
    assert np.mean(raw) == pytest.approx(1.2, abs=0.05)
    assert np.mean(fitted) == pytest.approx(2, abs=0.2)
    assert main(["evaluate", str(tmp_path / "raw"), *truth, "-o", str(tmp_path / "ev")]) == 0
