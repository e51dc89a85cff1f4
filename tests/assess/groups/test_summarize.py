"""Results of a small trial, summarized: numbers, files, and what is said where something is missing."""

import csv
import json
import sys

import numpy as np
import pytest
from nifti_files import save
from small_trial import ARMS, PLACEBO, TREATED, a_map, counted, write_table

from lesioncount.assess.groups import summarize
from lesioncount.cli import main
from lesioncount.errors import GroupError, MapFileError
from lesioncount.results.results import read_results
from lesioncount.runs import Settings, count_batch
from lesioncount.trust.calibration import Calibration
from lesioncount.trust.fitting import CalibrationFit

N = len(ARMS)


@pytest.fixture
def out(tmp_path):
    counted(tmp_path / "maps", tmp_path / "out")
    return tmp_path / "out"


def rows_of(path):
    with path.open(newline="") as file:
        return list(csv.DictReader(file, delimiter="\t"))


def expected(counts):
    """The last lesion of each scan is there with 0.5, the others with 0.95."""
    return [0.95 * (n - 1) + 0.5 for n in counts]


def test_totals_and_means_are_those_of_the_scans(out):
    summary = summarize(out, by="arm")
    placebo, treated = summary.groups
    assert (placebo.name, treated.name) == ("placebo", "treated")
    assert placebo.total.mean() == pytest.approx(sum(expected(PLACEBO)), abs=1e-5)
    assert treated.per_scan.estimate.value == pytest.approx(np.mean(expected(TREATED)), abs=1e-5)
    assert treated.per_patient == treated.per_scan
    assert sorted(treated.expected) == pytest.approx(sorted(expected(TREATED)), abs=1e-5)
    assert placebo.total.mean() + treated.total.mean() == pytest.approx(read_results(out).total().mean())
    assert (summary.reference, summary.has_several_scans) == (placebo, False)
    assert placebo.rate is None
    assert not (out / "summary.json").exists()


def test_the_treated_have_fewer(out):
    pytest.importorskip("statsmodels", reason="needs the extra [stats]")
    (ratio,) = summarize(out, by="arm").ratios
    assert (ratio.name, ratio.reference) == ("treated", ("placebo",))
    assert 0.1 < ratio.ratio.low < ratio.ratio.value < ratio.ratio.high < 0.8
    assert ratio.ratio.value == pytest.approx(np.mean(expected(TREATED)) / np.mean(expected(PLACEBO)), rel=0.05)
    assert ratio.p_value < 0.05
    assert 0 < ratio.doubt_share < 0.5
    (other,) = summarize(out, by="arm", reference="treated").ratios
    assert other.ratio.value == pytest.approx(1 / ratio.ratio.value, rel=1e-4)


def test_files_hold_what_was_found(out, tmp_path):
    write_table(tmp_path / "table.tsv", years=[1.5] * N)
    folder = tmp_path / "summary"
    summary = summarize(
        out, folder, by=["arm"], participants=tmp_path / "table.tsv", exposure="years", n_imputations=7, seed=5
    )
    content = json.loads((folder / "summary.json").read_text())
    assert content["by"] == ["arm"]
    assert (content["n_scans"], content["n_patients"], content["n_imputations"], content["seed"]) == (N, N, 7, 5)
    assert content["groups"] == summary.group_rows()
    assert set(content["files"]) == {"groups.tsv", "ratios.tsv", "imputations.tsv"}
    placebo, treated = rows_of(folder / "groups.tsv")
    assert (placebo["arm"], treated["n_patients"], treated["exposure"]) == ("placebo", "6", "9")
    assert float(placebo["rate"]) == pytest.approx(float(placebo["mean_per_scan"]) / 1.5, rel=1e-4)
    assert int(placebo["total_low"]) <= float(placebo["total"]) <= int(placebo["total_high"])
    (ratio,) = rows_of(folder / "ratios.tsv")
    assert (ratio["arm"], ratio["reference"]) == ("treated", "placebo")


def test_imputations_are_a_table_that_other_programs_read(out, tmp_path):
    write_table(tmp_path / "table.tsv", years=range(1, N + 1))
    options = {"by": "arm", "participants": tmp_path / "table.tsv", "exposure": "years", "n_imputations": 30}
    summary = summarize(out, tmp_path / "summary", **options)
    rows = rows_of(tmp_path / "summary" / "imputations.tsv")
    assert list(rows[0]) == ["imputation", "scan", "participant_id", "arm", "count", "exposure"]
    assert [row["imputation"] for row in rows] == [str(1 + i // N) for i in range(30 * N)]
    assert [row["participant_id"] for row in rows[:N]] == list(ARMS)
    assert {row["participant_id"]: row["arm"] for row in rows} == ARMS
    assert [float(row["exposure"]) for row in rows[:N]] == list(range(1, N + 1))
    drawn = np.array([int(row["count"]) for row in rows]).reshape(30, N)
    assert (drawn == summary.imputations).all()
    assert drawn.mean(axis=0) == pytest.approx(expected((*PLACEBO, *TREATED)), abs=0.5)


def test_several_scans_of_a_patient_are_one_patient(tmp_path):
    counted(tmp_path / "maps", tmp_path / "out", sessions=2)
    summary = summarize(tmp_path / "out", by="arm")
    placebo = summary.groups[0]
    assert (placebo.n_patients, placebo.n_scans, summary.has_several_scans) == (6, 12, True)
    assert placebo.per_patient.estimate.value == pytest.approx(2 * placebo.per_scan.estimate.value)
    assert len(placebo.expected) == 6
    by_session = summarize(tmp_path / "out", by=["arm", "session_id"])
    assert [group.level for group in by_session.groups][:2] == [("placebo", "ses-01"), ("placebo", "ses-02")]
    assert any("scans in several groups" in note for note in by_session.notes)


def test_calibrated_counts_are_taken_where_there_are_any(tmp_path, out):
    fit = CalibrationFit(Calibration(offset=-3.0))
    count_batch([tmp_path / "maps"], tmp_path / "calibrated", settings=Settings(calibration=fit))
    raw, corrected = summarize(out, by="arm"), summarize(tmp_path / "calibrated", by="arm")
    assert corrected.groups[0].total.mean() < 0.7 * raw.groups[0].total.mean()
    assert (raw.is_calibrated, corrected.is_calibrated) == (False, True)
    assert any("without calibration" in note for note in raw.notes)
    assert not any("without calibration" in note for note in corrected.notes)


def test_members_of_an_ensemble_stay_apart(tmp_path, out):
    for patient, n in zip(ARMS, (*PLACEBO, *TREATED), strict=True):
        save(tmp_path / "more" / f"{patient}.nii.gz", a_map(n + 2))
    command = ["count", "--members", str(tmp_path / "maps"), str(tmp_path / "more"), "-o", str(tmp_path / "both")]
    assert main([*command, "--quiet"]) == 0
    one, both = summarize(out, by="arm").groups[0], summarize(tmp_path / "both", by="arm").groups[0]
    assert both.per_scan.doubt_variance > one.per_scan.doubt_variance + 0.8  # members differ by 2 × 0.95 in each scan
    assert both.total.interval(0.9)[1] - both.total.interval(0.9)[0] > 6


def test_without_statsmodels_all_else_is_there(out, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "statsmodels.discrete.discrete_model", None)
    summary = summarize(out, tmp_path / "summary", by="arm")
    assert "pip install '.[stats]'" in summary.ratios[0].why_unknown
    (ratio,) = rows_of(tmp_path / "summary" / "ratios.tsv")
    assert (ratio["ratio"], ratio["p_value"]) == ("n/a", "n/a")
    assert "pip install '.[stats]'" in ratio["why_unknown"]
    assert len(rows_of(tmp_path / "summary" / "groups.tsv")) == 2


@pytest.mark.usefixtures("out")
def test_what_was_left_out_is_said(tmp_path):
    (tmp_path / "maps" / "sub-20.nii.gz").write_bytes(b"no map")
    count_batch([tmp_path / "maps"], tmp_path / "again")
    (tmp_path / "table.tsv").write_text("participant_id\tarm\n" + "sub-01\tx\nsub-02\tx\nsub-03\ty\nsub-05\ty\n")
    summary = summarize(tmp_path / "again", by="arm", participants=tmp_path / "table.tsv", skip_missing=True)
    assert "1 scan was left out: counting failed." in summary.notes
    assert "8 scans were left out: no group or exposure is known." in summary.notes
    assert any("fewer than 10 patients: x, y" in note for note in summary.notes)


@pytest.mark.usefixtures("out")
def test_scans_of_nobody_are_said(tmp_path):
    for path in sorted((tmp_path / "maps").glob("*.nii.gz")):
        path.rename(path.with_name(path.name.removeprefix("sub-")))
    count_batch([tmp_path / "maps"], tmp_path / "again")
    names = [name.removeprefix("sub-") for name in ARMS]
    (tmp_path / "t.csv").write_text("scan,arm\n" + "".join(f"{name},x\n" for name in names))
    summary = summarize(tmp_path / "again", tmp_path / "summary", by="arm", participants=tmp_path / "t.csv")
    assert any(f"Of {N} scans it is not known whose" in note for note in summary.notes)
    assert summary.ratios == ()
    assert rows_of(tmp_path / "summary" / "ratios.tsv") == []


def test_counts_that_vary_no_more_than_poisson_are_said(out):
    pytest.importorskip("statsmodels", reason="needs the extra [stats]")
    assert any("counts vary no more than Poisson" in note for note in summarize(out, by="arm").notes)


@pytest.mark.parametrize("n", [1, 100_000])
def test_numbers_of_imputations_that_make_no_sense(out, n):
    with pytest.raises(GroupError, match="Expected from 2 to 10000 imputations"):
        summarize(out, by="arm", n_imputations=n)


def test_a_summary_is_replaced_only_if_asked(out, tmp_path):
    summarize(out, tmp_path / "summary", by="arm")
    with pytest.raises(MapFileError, match="already holds a summary"):
        summarize(out, tmp_path / "summary", by="arm")
    summarize(out, tmp_path / "summary", by="arm", reference="treated", overwrite=True)
    assert json.loads((tmp_path / "summary" / "summary.json").read_text())["reference"] == ["treated"]
    (tmp_path / "summary" / "groups.tsv").write_text("mine")
    with pytest.raises(MapFileError, match=r"groups\.tsv is not a result"):
        summarize(out, tmp_path / "summary", by="arm", overwrite=True)
    assert (tmp_path / "summary" / "groups.tsv").read_text() == "mine"


def test_a_summary_may_be_written_beside_the_counts(out, tmp_path):
    summarize(out, out, by="arm")
    count_batch([tmp_path / "maps"], out, overwrite=True)
    assert len(summarize(out, out, by="arm", overwrite=True).groups) == 2
