"""Calibration, evaluation, guaranteed intervals and groups from a detector's table, as from maps."""

import json

import numpy as np
import pytest
from nifti_files import save

from lesioncount.cli import main
from lesioncount.results.results import read_results

N = 40


@pytest.fixture(scope="module")
def cohort(tmp_path_factory):
    """Scans with some nodules of high scores among many candidates that are none; scores are far too high."""
    folder = tmp_path_factory.mktemp("detector")
    rng = np.random.default_rng(0)
    rows, truth = ["scan,x_mm,y_mm,z_mm,probability"], ["scan,count,arm"]
    for number in range(N):
        n_true = int(rng.poisson(1.5))
        logits = np.concatenate([rng.normal(4, 1, n_true), rng.normal(0, 1.5, 12)])
        places = rng.uniform(0, 300, (len(logits), 3))
        rows += [
            f"s{number},{x:.2f},{y:.2f},{z:.2f},{1 / (1 + np.exp(-one)):.6f}"
            for one, (x, y, z) in zip(logits, places, strict=True)
        ]
        truth.append(f"s{number},{n_true},{'ab'[number % 2]}")
    (folder / "d.csv").write_text("\n".join(rows))
    (folder / "truth.csv").write_text("\n".join(truth))
    (folder / "scans.csv").write_text("\n".join(["scan", *(f"s{number}" for number in range(N))]))
    assert _run("count", folder / "d.csv", "-o", folder / "out", "--scans", folder / "scans.csv") == 0
    known = ("--truth-counts", folder / "truth.csv")
    assert _run("calibrate", folder / "out", *known, "-o", folder / "calibration.json") == 0
    return folder


def _run(*arguments):
    return main([*map(str, arguments), "--quiet"])


def test_a_calibration_is_fitted_and_used(cohort, tmp_path):
    options = ("--scans", cohort / "scans.csv", "--calibration", cohort / "calibration.json", "--interval", "conformal")
    assert _run("count", cohort / "d.csv", "-o", tmp_path / "out", *options) == 0
    total = sum(int(line.split(",")[1]) for line in (cohort / "truth.csv").read_text().splitlines()[1:])
    results = read_results(tmp_path / "out")
    raw, corrected = (
        sum(getattr(scan.counted, kind).count_mean for scan in results.counted) for kind in ("raw", "calibrated")
    )
    assert raw > 3 * total
    assert corrected == pytest.approx(total, rel=0.35)
    assert all(scan.counted.guaranteed is not None for scan in results.counted)


def test_another_floor_is_refused(cohort, tmp_path, capsys):
    options = ("--calibration", cohort / "calibration.json", "--threshold", "0.2")
    assert _run("count", cohort / "d.csv", "-o", tmp_path / "out", *options) == 2
    assert "fitted for lesions defined as detections with a score above 0" in capsys.readouterr().err


def test_counts_are_evaluated_with_the_usual_count_of_scores(cohort, tmp_path):
    known = ("--truth-counts", cohort / "truth.csv")
    assert _run("evaluate", cohort / "out", *known, "-o", tmp_path / "evaluation") == 0
    found = json.loads((tmp_path / "evaluation" / "evaluation.json").read_text())
    assert "cc_tuned" in found["methods"]


def test_masks_may_be_the_truth(tmp_path):
    (tmp_path / "d.csv").write_text("scan,x_mm,y_mm,z_mm,score\na,6,6,6,0.9\nb,6,6,6,0.5\n")
    for name, n in (("a", 1), ("b", 2)):
        mask = np.zeros((24, 16, 12), np.uint8)
        mask[4 : 4 + 8 * n : 8, 6, 6] = 1
        save(tmp_path / "masks" / f"{name}.nii.gz", mask, np.eye(4))
    assert _run("count", tmp_path / "d.csv", "-o", tmp_path / "out") == 0
    assert _run("evaluate", tmp_path / "out", "--truth", tmp_path / "masks", "-o", tmp_path / "evaluation") == 0
    table = (tmp_path / "evaluation" / "scans.tsv").read_text().splitlines()
    column = table[0].split("\t").index("truth")
    assert [line.split("\t")[column] for line in table[1:]] == ["1", "2"]


def test_groups_are_compared(cohort, capsys):
    assert main(["summarize", str(cohort / "out"), "--by", "arm", "--participants", str(cohort / "truth.csv")]) == 0
    assert "Rate ratios to a" in capsys.readouterr().out


def test_tables_are_written_as_parquet(cohort, tmp_path):
    parquet = pytest.importorskip("pyarrow.parquet")
    assert _run("count", cohort / "d.csv", "-o", tmp_path / "out", "--write", "parquet") == 0
    found = parquet.read_table(tmp_path / "out" / "lesions.parquet").to_pydict()
    assert len(found["existence"]) == sum(
        scan.counted.candidates.n_candidates for scan in read_results(tmp_path / "out").counted
    )
