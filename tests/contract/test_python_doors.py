"""What the command refuses or survives, every function of Python refuses or survives likewise."""

import nibabel
import numpy as np
import pytest
from contract_cohorts import KINDS, NAMES, inputs_of, made, run
from two_visits import write_visits

import lesioncount as lc
from lesioncount.errors import CalibrationError
from lesioncount.results.results import read_countable
from lesioncount.runs import ChangeSettings, Settings, compare_batch, count_batch
from lesioncount.trust.candidate_table import CandidateTable
from lesioncount.trust.fitting import CalibrationFit

OTHER = lc.CountingProtocol(threshold=0.3)

# Calibrations that do not fit what is counted, and what is said of them.
WRONG = {
    "count": {
        "of another protocol": (lc.Calibration(0.7, protocol=OTHER), "fitted for lesions defined as voxels above 0.3"),
        "of changes": (lc.Calibration(0.7, counted="new"), "fitted for the number of new lesions"),
    },
    "compare": {
        "of another protocol": (
            lc.Calibration(0.7, counted="new", protocol=OTHER),
            "fitted for lesions defined as voxels above 0.3",
        ),
        "of lesions": (lc.Calibration(0.7), "The calibration is for the lesions of single scans, not for changes"),
    },
}


def in_folder(kind, inputs, out, fit):
    if kind == "count":
        return count_batch(inputs, out, settings=Settings(calibration=fit))
    return compare_batch(inputs, out, settings=ChangeSettings(calibrations=(fit,)))


def in_memory(_kind, inputs, _out, fit):
    return lc.count_files(inputs, calibration=fit)


# compare_files and compare take no calibration.
DOORS = {"count": (in_folder, in_memory), "compare": (in_folder,)}
CASES = [(kind, *case, door) for kind, doors in DOORS.items() for case in WRONG[kind].values() for door in doors]


class TestACalibrationThatDoesNotFit:
    @pytest.mark.parametrize(("kind", "calibration", "said", "door"), CASES)
    def test_is_refused_with_the_words_of_the_command(self, kind, calibration, said, door, tmp_path, capsys):
        write_visits(tmp_path)
        fit, inputs, out = CalibrationFit(calibration), inputs_of(kind, tmp_path), tmp_path / "out"
        fit.save(tmp_path / "calibration.json")
        assert run(kind, *inputs, "-o", out, "--calibration", tmp_path / "calibration.json") == 2
        by_command = capsys.readouterr().err.strip().removeprefix("lesioncount: ")
        with pytest.raises(CalibrationError, match=said) as refused:
            door(kind, inputs, out, fit)
        assert str(refused.value) == by_command
        assert not out.exists()

    @pytest.mark.parametrize("case", ["of another protocol", "of changes"])
    def test_is_refused_before_any_file_is_counted(self, case, tmp_path):
        write_visits(tmp_path)
        told = []
        with pytest.raises(CalibrationError):
            lc.count_files(
                tmp_path / "after",
                calibration=CalibrationFit(WRONG["count"][case][0]),
                progress=lambda *row: told.append(row),
            )
        assert told == []

    @pytest.mark.parametrize(
        ("of", "calibration"),
        [
            (None, lc.Calibration(0.7, protocol=OTHER)),
            (None, lc.Calibration(0.7, counted="new")),
            ("new", lc.Calibration(0.7, counted="new", protocol=OTHER)),
            ("new", lc.Calibration(0.7)),
            ("new", lc.Calibration(0.7, counted="gone")),
            ("persisting", lc.Calibration(0.7, counted="new")),
        ],
    )
    def test_corrects_no_total(self, of, calibration, tmp_path):
        results = read_countable(made("count" if of is None else "compare", tmp_path), of)
        with pytest.raises(CalibrationError, match="The calibration was fitted for"):
            results.total(calibration)

    @pytest.mark.parametrize(("of", "calibration"), [(None, lc.Calibration(counted="new")), ("new", lc.Calibration())])
    def test_corrects_no_scan(self, of, calibration, tmp_path):
        results = read_countable(made("count" if of is None else "compare", tmp_path), of)
        for scan in results.counted:
            with pytest.raises(CalibrationError, match="The calibration was fitted for the number of"):
                scan.distribution(calibration)

    def test_corrects_no_candidates(self):
        with pytest.raises(CalibrationError, match=r"fitted for the number of gone lesions, .* that of lesions"):
            lc.Calibration(counted="gone").distribution([0.5])
        with pytest.raises(CalibrationError, match=r"fitted for the number of lesions, .* that of changes"):
            lc.Calibration().distribution(CandidateTable.of([0.5], other=[0.2]))


def test_a_calibration_that_fits_is_taken_at_every_door(tmp_path):
    write_visits(tmp_path)
    fit = CalibrationFit(lc.Calibration(0.7, protocol=lc.CountingProtocol()))
    table = lc.count_files(inputs_of("count", tmp_path), calibration=fit)
    results = in_folder("count", inputs_of("count", tmp_path), tmp_path / "counts", fit)
    assert table.total().mean() == pytest.approx(results.total(fit.calibration).mean())
    of_new = CalibrationFit(lc.Calibration(0.7, counted="new", protocol=lc.CountingProtocol()))
    changes = in_folder("compare", inputs_of("compare", tmp_path), tmp_path / "changes", of_new)
    expected = sum(count.mean() for count in changes.distributions("new").values())
    assert read_countable(tmp_path / "changes").total(of_new.calibration).mean() == pytest.approx(expected)


@pytest.fixture
def odd(tmp_path, monkeypatch):
    """Maps of which one lies in a place that a package stumbles over, in a way that nobody has foreseen."""
    write_visits(tmp_path)
    odd = tmp_path / "after" / "sub-02.nii.gz"
    image = nibabel.load(odd)
    image.affine[0, 1] = ODD
    image.set_sform(image.affine, code=1)
    image.to_filename(odd)
    determinant = np.linalg.det

    def stumble(axes):
        return determinant(axes) if axes[0, 1] != ODD else 1 // 0

    monkeypatch.setattr(np.linalg, "det", stumble)
    return tmp_path


ODD = 2.0**-20
SAID = "unexpected ZeroDivisionError: integer division or modulo by zero"


class TestAFileThatMakesAReaderStumble:
    """It is a row with its error, and all others are there."""

    @pytest.mark.parametrize("kind", KINDS)
    def test_costs_a_command_one_row(self, kind, odd, capsys):
        assert run(kind, *inputs_of(kind, odd), "-o", odd / "out", "--quiet") == 1
        assert f"failed: sub-02: {SAID}" in capsys.readouterr().err
        read = lc.read_results if kind == "count" else lc.read_changes
        assert [one.error for one in read(odd / "out").failed] == [SAID]

    @pytest.mark.parametrize("kind", KINDS)
    def test_costs_a_batch_one_row(self, kind, odd):
        batch = count_batch if kind == "count" else compare_batch
        results = batch(inputs_of(kind, odd), odd / "out")
        assert [(one.name, one.error) for one in results.failed] == [("sub-02", SAID)]

    def test_costs_a_table_one_row(self, odd):
        table = lc.count_files(inputs_of("count", odd))
        assert [row.name for row in table.counted] == ["sub-01", "sub-03"]
        assert [(row.name, row.error) for row in table.failed] == [("sub-02", SAID)]
        assert table.failed[0].path == odd / "after" / "sub-02.nii.gz"
        assert table.total().mean() == pytest.approx(0.9 + 0.7)


def test_the_error_of_a_row_tells_no_secret(odd, monkeypatch):
    def stumble(_axes):
        raise RuntimeError("cannot fetch https://host/map?X-Amz-Signature=0123456789abcdef")

    monkeypatch.setattr(np.linalg, "det", stumble)
    errors = [row.error for row in lc.count_files(inputs_of("count", odd))]
    assert len(errors) == len(NAMES)
    assert not any("0123456789abcdef" in error for error in errors)
