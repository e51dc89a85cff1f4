"""True counts that nobody counted: refused at every door, with file, row and limit, before anything takes a minute."""

import numpy as np
import pytest
from two_kinds import COUNT

from lesioncount.assess.truth import read_truth_table
from lesioncount.checks import MOST_LESIONS
from lesioncount.cli import main
from lesioncount.distributions.poisson_binomial import PoissonBinomial
from lesioncount.errors import CalibrationError, CohortError, ScoreError, TruthError
from lesioncount.learning.label_table import LabelTable
from lesioncount.trust.conformal import ConformalCounts
from lesioncount.trust.fitting import KnownTruth
from lesioncount.trust.scores.predictions import Predictions

TOO_MANY = ["10000000", "1e9", "1000001", "1e300"]
NO_COUNTS = ["1_000", "１２", "٣", "0x10", "inf", "1,5", "2.5", "-1", "many", "1e", "--1"]


def table(folder, cell):
    path = folder / "truth.tsv"
    path.write_text(f"scan\tcount\na\t2\nb\t{cell}\n", "utf-8")
    return path


@pytest.mark.parametrize("cell", [*TOO_MANY, *NO_COUNTS])
def test_tables_say_file_row_and_limit(tmp_path, cell):
    what = "at most 1,000,000" if cell in TOO_MANY else "at least 0, or n/a,"
    said = rf"truth\.tsv, line 3: expected a whole number of {what} as count of b, but got"
    with pytest.raises(TruthError, match=said):
        read_truth_table(table(tmp_path, cell)).count_of("b")
    with pytest.raises(CohortError, match=said):
        LabelTable(table(tmp_path, cell)).label_of("b")


@pytest.mark.parametrize(("cell", "count"), [("12", 12), ("12.0", 12), ("1E+3", 1000), ("1000000", 10**6), ("+3", 3)])
def test_counts_as_people_and_spreadsheets_write_them(tmp_path, cell, count):
    assert read_truth_table(table(tmp_path, cell)).count_of("b") == count


@pytest.mark.parametrize("command", ["evaluate", "calibrate"])
def test_commands(tmp_path, capsys, command):
    assert COUNT.run(COUNT.cohort(tmp_path / "maps", ["a", "b"]), tmp_path / "out") == 0
    truth = table(tmp_path, "10000000")
    arguments = [command, str(tmp_path / "out"), "--truth-counts", str(truth), "-o", str(tmp_path / "o.json")]
    assert main(arguments) == 2
    assert f"{truth}, line 3: expected a whole number of at most 1,000,000" in capsys.readouterr().err


@pytest.mark.parametrize("count", [MOST_LESIONS + 1, 1e9, 1e300, 10**30])
def test_from_python(count):
    distributions, counts = [PoissonBinomial([0.5]), PoissonBinomial([0.4])], [1, count]
    said = "at most 1,000,000, but that of scan 1 is" if count < 2**63 else "counts"
    with pytest.raises(CalibrationError, match="at most 1,000,000, but that of scan 1 is"):
        KnownTruth.of([[0.5], [0.4]], counts)
    with pytest.raises(ScoreError, match=said):
        Predictions.of_distributions(distributions, counts)
    with pytest.raises(CalibrationError, match=said):
        ConformalCounts.fit(distributions, counts)


@pytest.mark.parametrize("text", ["1_000", "１２"])
def test_texts_are_no_counts(text):
    for counts in ([text, "1"], np.array([text, 1], dtype=object)):
        with pytest.raises(CalibrationError, match="Expected a count of at least 0"):
            KnownTruth.of([[0.5], [0.4]], counts)


def test_a_count_of_candidates_may_be_larger():
    """What a method predicts is what it is: noise has millions of components."""
    assert Predictions.of_counts([3_000_000], [2]).predicted[0] == 3_000_000
