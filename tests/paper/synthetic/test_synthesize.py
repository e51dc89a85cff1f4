"""The command that makes a cohort."""

import numpy as np
import pytest

from lesioncount.cli import main
from lesioncount.learning.folder import read_cohort
from lesioncount.paper.synthetic import GadCohort

OPTIONS = ["--patients", "3", "--seed", "8", "--shape", "12", "24", "20"]


@pytest.mark.parametrize("jobs", ["1", "2"])
def test_a_command_makes_the_cohort_that_python_makes(tmp_path, capsys, jobs):
    assert main(["synthesize", "-o", str(tmp_path / "cohort"), *OPTIONS, "--jobs", jobs]) == 0
    mine, yours = GadCohort(3, seed=8, shape=(12, 24, 20)), read_cohort(tmp_path / "cohort")
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
