"""What a finished run has left is read as a whole, or not at all: no patient is left out without a word."""

import re
from dataclasses import replace

import pytest
from contract_cohorts import KINDS, NAMES, inputs_of, made, run

from lesioncount import Calibration, read_changes, read_results
from lesioncount.assess.beside_truth import TruthOptions
from lesioncount.assess.evaluation import evaluate, known_truth
from lesioncount.assess.groups import summarize
from lesioncount.distributions.sum_of_counts import SumOfCounts
from lesioncount.errors import MapFileError
from lesioncount.results.results import read_countable

DAMAGES = {
    "missing": lambda path: path.unlink(),
    "empty": lambda path: path.write_bytes(b""),
    "cut off": lambda path: path.write_bytes(path.read_bytes()[:500]),
    "of another patient": lambda path: path.write_bytes(path.with_stem("sub-01").read_bytes()),
}

# More lesions than all patients have together.
UP_TO = range(20)

READERS = ("evaluate", "calibrate", "summarize")


@pytest.fixture
def tables(tmp_path):
    """The truth, and the groups."""
    counts, arms = tmp_path / "counts.tsv", tmp_path / "participants.tsv"
    counts.write_text("scan\tcount\n" + "".join(f"{name}\t1\n" for name in NAMES))
    arms.write_text("participant_id\tarm\n" + "".join(f"{name}\ta\n" for name in NAMES))
    return counts, arms


@pytest.fixture(params=KINDS)
def out(request, tmp_path):
    return made(request.param, tmp_path)


def read_by_command(reader, out, tables):
    counts, arms = tables
    known = ["--by", "arm", "--participants", arms] if reader == "summarize" else ["--truth-counts", counts]
    target = out.parent / ("read.json" if reader == "calibrate" else "read")
    return run(reader, out, *known, "-o", target, "--quiet")


def read_by_python(reader, out, tables):
    counts, arms = tables
    if reader == "evaluate":
        return evaluate(out, out.parent / "read", TruthOptions(table=counts))
    if reader == "summarize":
        return summarize(out, by="arm", participants=arms)
    return known_truth(out, TruthOptions(table=counts))


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("reader", READERS)
def test_a_record_that_is_missing_or_damaged_is_named_and_nothing_is_read_without_it(
    reader, damage, out, tables, capsys
):
    record = out / "sub-02.json"
    DAMAGES[damage](record)
    said = f"The record {record} is missing or not a valid record. Repeat the run with --resume."
    with pytest.raises(MapFileError, match=re.escape(said)):
        read_by_python(reader, out, tables)
    assert read_by_command(reader, out, tables) == 2
    assert said in capsys.readouterr().err
    assert not any(out.parent.glob("read*"))


@pytest.mark.parametrize("kind", KINDS)
def test_repeating_the_run_as_the_message_says_makes_the_record_again(kind, tmp_path, tables):
    out = made(kind, tmp_path)
    whole = (out / "sub-02.json").read_bytes()
    (out / "sub-02.json").unlink()
    assert run(kind, *inputs_of(kind, tmp_path), "-o", out, "--resume", "--quiet") == 0
    assert (out / "sub-02.json").read_bytes() == whole
    assert read_by_command("evaluate", out, tables) == 0


@pytest.mark.parametrize("kind", KINDS)
def test_a_patient_that_failed_is_left_out_as_the_run_has_said(kind, tmp_path, tables):
    out = made(kind, tmp_path)
    (tmp_path / "after" / "sub-02.nii.gz").write_bytes(b"nothing")
    assert run(kind, *inputs_of(kind, tmp_path), "-o", out, "--overwrite", "--quiet") == 1
    assert read_by_command("evaluate", out, tables) == 0
    assert summarize(out, by="arm", participants=tables[1]).groups[0].n_scans == len(NAMES) - 1


class TestTotal:
    """The total of a folder is that of what is asked for, whatever corrects it."""

    @pytest.mark.parametrize("kind", ["new", "gone", "persisting"])
    def test_of_changes_is_that_of_the_new_gone_or_persisting_lesions_of_all_pairs(self, kind, tmp_path):
        out = made("compare", tmp_path)
        pairs = read_changes(out).distributions(kind)
        total = read_countable(out, kind).total()
        assert total.pmf(UP_TO) == pytest.approx(SumOfCounts(list(pairs.values())).pmf(UP_TO))

    @pytest.mark.parametrize("of", [None, "new", "gone", "persisting"])
    @pytest.mark.parametrize("correction", [{"offset": -0.5}, {"crowding": 0.7}, {"spread": 0.8}, {"extra_rate": 0.3}])
    def test_of_corrected_numbers_is_the_sum_of_those_of_all_scans(self, of, correction, tmp_path):
        results = read_countable(made("count" if of is None else "compare", tmp_path), of)
        calibration = replace(results.as_it_is, **correction)
        each = [scan.distribution(calibration) for scan in results.counted]
        assert results.total(calibration).pmf(UP_TO) == pytest.approx(SumOfCounts(each).pmf(UP_TO))
        assert results.total(calibration).mean() != pytest.approx(results.total().mean(), rel=1e-3)

    @pytest.mark.parametrize("correction", [{}, {"spread": 0.8}, {"extra_rate": 0.3}])
    def test_where_nothing_was_counted_is_none(self, correction, tmp_path):
        (tmp_path / "broken.nii.gz").write_bytes(b"nothing")
        run("count", tmp_path / "broken.nii.gz", "-o", tmp_path / "out", "--quiet")
        assert read_results(tmp_path / "out").total(Calibration(**correction)).pmf().tolist() == [1.0]
