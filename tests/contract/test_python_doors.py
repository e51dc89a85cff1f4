"""What the command refuses or survives, every function of Python refuses or survives likewise."""

import pytest
from contract_cohorts import inputs_of, made, run
from two_visits import write_visits

import lesioncount as lc
from lesioncount.errors import CalibrationError
from lesioncount.runs import Settings, count_batch
from lesioncount.runs.changes import ChangeSettings, compare_batch
from lesioncount.runs.changes.as_counts import read_countable
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
            lc.Calibration().distribution([0.5], None, [0.2])


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
