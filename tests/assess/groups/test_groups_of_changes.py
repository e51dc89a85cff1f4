"""A small trial whose outcome is the number of new lesions: pairs of scans in the place of scans."""

import csv
import json

import numpy as np
import pytest
from nifti_files import save
from two_visits import a_map, write_visits

from lesioncount.assess.groups import summarize
from lesioncount.cli import main
from lesioncount.errors import GroupError, MapFileError
from lesioncount.runs import ChangeSettings, compare_batch, count_batch
from lesioncount.trust.calibration import Calibration
from lesioncount.trust.fitting import CalibrationFit

# New lesions of each patient, of which the last is in doubt. One lesion stays in each, and one goes in the first arm.
PLACEBO, TREATED = (5, 8, 4, 7, 6, 6), (2, 3, 1, 3, 2, 4)
N_PLACES = 10


def visits():
    """Peaks of lesions of each patient, before and after."""
    found = {}
    for number, n_new in enumerate((*PLACEBO, *TREATED), start=1):
        lost = 0.6 if number <= len(PLACEBO) else 0.0
        new = [0.95] * (n_new - 1) + [0.5]
        rest = [0.0] * (N_PLACES - 2 - n_new)
        found[f"sub-{number:02}"] = ([0.9, lost] + [0.0] * (N_PLACES - 2), [0.9, 0.0, *new, *rest])
    return found


def expected(counts):
    """The last new lesion is there with 0.5, the others with 0.95; nothing was there before."""
    return [0.95 * (n - 1) + 0.5 for n in counts]


@pytest.fixture
def out(tmp_path):
    maps = write_visits(tmp_path, visits())
    arms = ["placebo"] * len(PLACEBO) + ["treated"] * len(TREATED)
    rows = [f"{name}\t{arm}\n" for name, arm in zip(visits(), arms, strict=True)]
    (tmp_path / "participants.tsv").write_text("participant_id\tarm\n" + "".join(rows))
    compare_batch(maps, tmp_path / "out")
    return tmp_path / "out"


def rows_of(path):
    with path.open(newline="") as file:
        return list(csv.DictReader(file, delimiter="\t"))


def test_new_lesions_are_what_is_summed_up(out):
    placebo, treated = summarize(out, by="arm").groups
    assert placebo.total.mean() == pytest.approx(sum(expected(PLACEBO)), abs=1e-4)
    assert treated.per_scan.estimate.value == pytest.approx(np.mean(expected(TREATED)), abs=1e-4)
    assert (placebo.n_patients, placebo.n_scans) == (6, 6)


def test_the_treated_have_fewer_new_ones(out):
    pytest.importorskip("statsmodels", reason="needs the extra [stats]")
    (ratio,) = summarize(out, by="arm").ratios
    assert ratio.ratio.value == pytest.approx(np.mean(expected(TREATED)) / np.mean(expected(PLACEBO)), rel=0.05)
    assert ratio.ratio.high < 1
    assert ratio.p_value < 0.05


@pytest.mark.parametrize(("of", "totals"), [("gone", (3.6, 0.0)), ("persisting", (5.4, 5.4))])
def test_other_changes_are_summed_up_when_asked_for(of, totals, out):
    summary = summarize(out, by="arm", of=of)
    assert [group.total.mean() for group in summary.groups] == pytest.approx(totals, abs=1e-4)
    assert (summary.lesions, summary.unit) == (f"{of} lesions", "pair")


def test_files_say_what_was_counted(out, tmp_path):
    summarize(out, tmp_path / "summary", by="arm", n_imputations=3)
    content = json.loads((tmp_path / "summary" / "summary.json").read_text())
    assert (content["of"], content["is_calibrated"]) == ("new", False)
    drawn = rows_of(tmp_path / "summary" / "imputations.tsv")
    assert len(drawn) == 3 * 12
    assert (drawn[0]["scan"], drawn[0]["participant_id"], drawn[0]["arm"]) == ("sub-01", "sub-01", "placebo")


@pytest.mark.usefixtures("out")
def test_calibrated_numbers_are_taken_where_there_are_any(tmp_path):
    fit = CalibrationFit(Calibration(offset=-1.0, coupling=2.5, counted="new"))
    maps = [tmp_path / "before", tmp_path / "after"]
    results = compare_batch(maps, tmp_path / "fitted", settings=ChangeSettings(calibrations=(fit,)))
    summary = summarize(tmp_path / "fitted", by="arm")
    assert summary.is_calibrated
    assert not any("without calibration" in note for note in summary.notes)
    total = sum(one.mean() for one in results.distributions("new").values())
    assert sum(group.total.mean() for group in summary.groups) == pytest.approx(total)
    assert total < sum(expected((*PLACEBO, *TREATED))) - 1
    assert not summarize(tmp_path / "fitted", by="arm", of="gone").is_calibrated


def test_pairs_of_one_patient_belong_together(tmp_path):
    """Three visits are two pairs: grouped by the later session, or with a table that has a row for each pair."""
    for patient in ("sub-a", "sub-b", "sub-c"):
        for visit, peaks in enumerate([(0.9, 0, 0), (0.9, 0.8, 0), (0.9, 0.8, 0.7)], start=1):
            save(tmp_path / "maps" / f"{patient}_ses-{visit}.nii.gz", a_map(peaks))
    out = tmp_path / "out"
    compare_batch([tmp_path / "maps"], out)
    first, second = summarize(out, by="session_id").groups
    assert (first.level, second.level) == (("ses-2",), ("ses-3",))
    assert (first.total.mean(), second.total.mean()) == pytest.approx((3 * 0.8, 3 * 0.7), abs=1e-5)
    names = [f"sub-{one}__ses-{visit}__ses-{visit + 1}" for one in "abc" for visit in (1, 2)]
    (tmp_path / "pairs.tsv").write_text("pair\tarm\tyears\n" + "".join(f"{name}\tx\t0.5\n" for name in names))
    (group,) = summarize(out, by="arm", participants=tmp_path / "pairs.tsv", exposure="years").groups
    assert (group.n_patients, group.n_scans, group.exposure) == (3, 6, 3.0)
    (tmp_path / "patients.tsv").write_text("participant_id\tarm\tyears\na\tx\t1\nb\tx\t1\nc\tx\t1\n")
    with pytest.raises(GroupError, match="has several scans, but"):
        summarize(out, by="arm", participants=tmp_path / "patients.tsv", exposure="years")


def test_patients_without_a_participant_are_called_as_their_maps_are(tmp_path):
    both = {f"case{number}": ((0.9, 0.0), (0.9, 0.8)) for number in (1, 2)}
    compare_batch(write_visits(tmp_path, both), tmp_path / "out")
    (tmp_path / "table.csv").write_text("participant_id,arm\ncase1,x\ncase2,x\n")
    summary = summarize(tmp_path / "out", by="arm", participants=tmp_path / "table.csv")
    assert summary.groups[0].n_patients == 2
    assert not any("not known whose" in note for note in summary.notes)


def test_patients_that_could_not_be_compared_are_told(out, tmp_path):
    (tmp_path / "before" / "sub-01.nii.gz").write_bytes(b"no map")
    (tmp_path / "before" / "sub-02.nii.gz").write_bytes(b"no map")
    compare_batch([tmp_path / "before", tmp_path / "after"], out, overwrite=True)
    (tmp_path / "some.tsv").write_text("participant_id\tarm\nsub-03\tx\nsub-04\tx\n")
    notes = summarize(out, by="arm", participants=tmp_path / "some.tsv", skip_missing=True).notes
    assert "2 patients were left out: comparing failed." in notes
    assert "8 pairs were left out: no group or exposure is known." in notes


def test_a_comparison_of_nobody_has_no_groups(tmp_path):
    maps = write_visits(tmp_path, {"sub-01": ((0.9, 0.0), (0.9, 0.8))})
    (tmp_path / "before" / "sub-01.nii.gz").write_bytes(b"no map")
    compare_batch(maps, tmp_path / "out")
    with pytest.raises(MapFileError, match=r"There is no patient in .*out that was compared"):
        summarize(tmp_path / "out", by="arm")


def test_changes_are_not_sought_where_lesions_were_counted(out, tmp_path):
    count_batch([tmp_path / "after"], tmp_path / "counts")
    with pytest.raises(MapFileError, match="holds no comparison, so that there are no gone lesions in it"):
        summarize(tmp_path / "counts", by="arm", of="gone")
    with pytest.raises(MapFileError, match="holds changes: ask for new, gone or persisting"):
        summarize(out, by="arm", of="lesions")
    assert summarize(tmp_path / "counts", by="arm").unit == "scan"


def test_the_command_and_the_page_speak_of_new_lesions(out, tmp_path, capsys):
    pytest.importorskip("matplotlib")
    pytest.importorskip("jinja2")
    assert main(["summarize", str(out), "--by", "arm", "-o", str(tmp_path / "summary")]) == 0
    shown = capsys.readouterr().out
    assert shown.splitlines()[0].split("  ")[-1].strip() == "doubt"
    assert "new lesions" in shown.splitlines()[0]
    assert "mean per pair" in shown.splitlines()[0]
    assert "New lesions are the total of these pairs" in shown
    page = (tmp_path / "summary" / "summary.html").read_text()
    assert "<h1>New lesions by arm</h1>" in page
    assert "How many new lesions do patients have?" in page
    assert "Each patient has one pair, so that means per pair and per patient are the same." in page
    assert main(["summarize", str(out), "--by", "arm", "--of", "gone"]) == 0
    assert "gone lesions" in capsys.readouterr().out
