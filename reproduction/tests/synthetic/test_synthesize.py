"""The command that makes a cohort."""

import numpy as np
import pytest
from written_cohort import scans_in

from lesioncount.cli import main
from lesioncount_reproduction.synthetic import AgeingCohort, GadCohort

pytestmark = pytest.mark.usefixtures("installed_reproduction")

OPTIONS = ["--patients", "3", "--seed", "8", "--shape", "12", "24", "20"]


@pytest.mark.parametrize("jobs", ["1", "2"])
def test_a_command_makes_the_cohort_that_python_makes(tmp_path, capsys, jobs):
    assert main(["synthesize", "-o", str(tmp_path / "cohort"), *OPTIONS, "--jobs", jobs]) == 0
    mine, yours = GadCohort(3, seed=8, shape=(12, 24, 20)), list(scans_in(tmp_path / "cohort"))
    assert len(mine) == len(yours)
    for first, second in zip(mine, yours, strict=True):
        np.testing.assert_array_equal(first.images, second.images)
    shown = capsys.readouterr()
    assert f"{len(mine)} scans of 3 patients" in shown.out
    assert f"{len(mine)}/{len(mine)} {mine[-1].name}" in shown.err


def test_a_quiet_command_says_nothing(tmp_path, capsys):
    assert main(["synthesize", "-o", str(tmp_path / "cohort"), *OPTIONS, "--quiet"]) == 0
    shown = capsys.readouterr()
    assert shown.out + shown.err == ""


def test_what_cannot_be_done_is_said(tmp_path, capsys):
    (tmp_path / "there").write_text("")
    assert main(["synthesize", "-o", str(tmp_path), *OPTIONS]) == 2
    assert "is not empty" in capsys.readouterr().err
    assert main(["synthesize", "-o", str(tmp_path / "new"), *OPTIONS, "--shape", "2", "24", "20"]) == 2
    assert "of at least 8" in capsys.readouterr().err
    assert main(["synthesize", "-o", str(tmp_path / "new"), *OPTIONS, "--seed", "-3"]) == 2
    assert "a seed of at least 0" in capsys.readouterr().err
    assert not (tmp_path / "new").exists()


def test_lesions_age_where_that_is_asked_for(tmp_path, capsys):
    ageing = ["--ageing", "--sessions", "3", "--misregistration", "1.5"]
    assert main(["synthesize", "-o", str(tmp_path / "cohort"), *OPTIONS, *ageing]) == 0
    mine = AgeingCohort(3, seed=8, shape=(12, 24, 20), n_sessions=3, misregistration_mm=1.5)
    for first, second in zip(mine, scans_in(tmp_path / "cohort"), strict=True):
        np.testing.assert_array_equal(first.images, second.images)
    shown = capsys.readouterr()
    assert "9 scans of 3 patients" in shown.out
    assert "changes.tsv" in shown.out
    description = (tmp_path / "cohort" / "dataset_description.json").read_text()
    assert "--ageing --sessions 3 --misregistration 1.5" in description


@pytest.mark.parametrize("option", [["--sessions", "3"], ["--misregistration", "1"]])
def test_options_of_ageing_need_ageing(tmp_path, capsys, option):
    assert main(["synthesize", "-o", str(tmp_path / "new"), *OPTIONS, *option]) == 2
    assert "Add --ageing" in capsys.readouterr().err
    assert not (tmp_path / "new").exists()
